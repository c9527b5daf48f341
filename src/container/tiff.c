/* SPDX-License-Identifier: MIT */
#include "container/tiff.h"

#include <string.h>

/* ---- Directories ---- */

/* The number of COUNT bytes, at most 8. */
static uint64_t number_at(const uint8_t *bytes, size_t count, bool big)
{
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++)
        number = number << 8 | bytes[big ? i : count - 1 - i];
    return number;
}

/* Bytes of an offset or a count. */
static size_t word(const struct tiff_directory *directory)
{
    return directory->wide ? 8 : 4;
}

/* A tag and a type of 2 bytes each, a count and a value. */
static size_t entry_bytes(const struct tiff_directory *directory)
{
    return 4 + 2 * word(directory);
}

/* Bytes of the number of entries. */
static size_t head_bytes(const struct tiff_directory *directory)
{
    return directory->wide ? 8 : 2;
}

void tiff_open_damaged_at(const struct tiff_directory *first, uint64_t at, struct tiff_directory *directory)
{
    const size_t head = head_bytes(first), size = first->size;
    *directory = *first;
    directory->count = 0;
    directory->next = 0;
    directory->is_cut = at < 8 || at > size || size - at < head;
    if (directory->is_cut)
        return;
    directory->at = (size_t)at + head;
    const uint64_t count = number_at(first->bytes + at, head, first->big);
    const size_t left = size - directory->at, there = left / entry_bytes(first);
    directory->is_cut = count > there;
    directory->count = directory->is_cut ? there : (size_t)count;
    const size_t end = directory->count * entry_bytes(first);
    if (left - end >= word(first))
        directory->next = number_at(first->bytes + directory->at + end, word(first), first->big);
}

void tiff_open_damaged(const uint8_t *bytes, size_t size, struct tiff_directory *directory)
{
    const bool big = size > 0 && bytes[0] == 'M';
    const struct tiff_directory file = {
        .bytes = bytes, .size = size, .big = big, .wide = size >= 4 && number_at(bytes + 2, 2, big) == 43};
    const size_t offset = file.wide ? 8 : 4, head = offset + word(&file);
    tiff_open_damaged_at(&file, size >= head ? number_at(bytes + offset, word(&file), big) : 0, directory);
}

bool tiff_open_at(const struct tiff_directory *first, uint64_t at, struct tiff_directory *directory)
{
    tiff_open_damaged_at(first, at, directory);
    return !directory->is_cut;
}

bool tiff_open_first(const uint8_t *bytes, size_t size, struct tiff_directory *directory)
{
    tiff_open_damaged(bytes, size, directory);
    return !directory->is_cut &&
           (!directory->wide || number_at(bytes + 4, 4, directory->big) == (directory->big ? 0x80000 : 8));
}

/* ---- Entries ---- */

/* Bytes of a value of TYPE, or 0 if it is unknown. */
static size_t value_bytes(unsigned type)
{
    static const uint8_t sizes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof sizes ? sizes[type] : type == TIFF_TYPE_UTF8 ? 1 : 0;
}

size_t tiff_start(const struct tiff_directory *directory)
{
    return directory->at - head_bytes(directory);
}

size_t tiff_end(const struct tiff_directory *directory)
{
    const size_t end = directory->at + directory->count * entry_bytes(directory), left = directory->size - end;
    return end + (left < word(directory) ? left : word(directory));
}

bool tiff_read_entry(const struct tiff_directory *directory, size_t index, struct tiff_entry *entry)
{
    const bool big = directory->big;
    const size_t bytes = word(directory);
    const uint8_t *at = directory->bytes + directory->at + index * entry_bytes(directory);
    const uint64_t count = number_at(at + 4, bytes, big);
    *entry = (struct tiff_entry){.index = index,
                                 .tag = (unsigned)number_at(at, 2, big),
                                 .type = (unsigned)number_at(at + 2, 2, big),
                                 .value = at + 4 + bytes};
    const size_t each = value_bytes(entry->type);
    if (each == 0 || count == 0 || count > directory->size / each)
        return false;
    entry->count = (size_t)count;
    entry->size = entry->count * each;
    const uint64_t offset = number_at(entry->value, bytes, big);
    if (entry->size <= bytes)
        return true;
    if (offset > directory->size || entry->size > directory->size - offset)
        return false;
    entry->value = directory->bytes + offset;
    return true;
}

bool tiff_find(const struct tiff_directory *directory, unsigned tag, struct tiff_entry *entry)
{
    for (size_t i = 0; i < directory->count; i++)
        if (number_at(directory->bytes + directory->at + i * entry_bytes(directory), 2, directory->big) == tag)
            return tiff_read_entry(directory, i, entry);
    return false;
}

uint64_t tiff_number(const struct tiff_directory *directory, const struct tiff_entry *entry, size_t index)
{
    const size_t each = value_bytes(entry->type);
    const unsigned type = entry->type;
    const bool is_whole = type == TIFF_TYPE_BYTE || type == TIFF_TYPE_SHORT || type == TIFF_TYPE_LONG ||
                          type == TIFF_TYPE_IFD || type == TIFF_TYPE_LONG8 || type == TIFF_TYPE_IFD8;
    return is_whole && index < entry->count ? number_at(entry->value + index * each, each, directory->big) : 0;
}

uint64_t tiff_find_number(const struct tiff_directory *directory, unsigned tag, uint64_t other)
{
    struct tiff_entry entry;
    return tiff_find(directory, tag, &entry) ? tiff_number(directory, &entry, 0) : other;
}

/* ---- Pages ---- */

/* The pixels of a picture that is whole, and is no smaller size of another one; else 0. */
static uint64_t full_pixels(const struct tiff_directory *directory)
{
    const uint64_t width = tiff_find_number(directory, TIFF_TAG_WIDTH, 0),
                   height = tiff_find_number(directory, TIFF_TAG_HEIGHT, 0);
    const bool is_full = !directory->is_cut && !(tiff_find_number(directory, TIFF_TAG_KIND, 0) & TIFF_SMALLER);
    return is_full && width <= INT32_MAX && height <= INT32_MAX ? width * height : 0;
}

/* The bytes of directories that do not overlap are at most those of the file, which bounds the walk. */
int tiff_find_page(const struct tiff_directory *first, int page, struct tiff_directory *directory, int *pages)
{
    enum { PAGES_MAX = 1 << 16 };
    const bool is_smaller = tiff_find_number(first, TIFF_TAG_KIND, 0) & TIFF_SMALLER;
    struct tiff_directory at = *first;
    size_t left = first->size;
    uint64_t largest = 0;
    int found = page == 0;
    *directory = *first;
    for (int number = 1;; number++) {
        const uint64_t pixels = page == 0 && is_smaller ? full_pixels(&at) : 0;
        if (number == page || pixels > largest) {
            *directory = at;
            found = number;
            largest = pixels;
        }
        *pages = number;
        if (at.is_cut || at.next == 0 || number == PAGES_MAX)
            return found;
        const size_t bytes = tiff_end(&at) - tiff_start(&at);
        if (bytes > left) {
            *pages = 0;
            return found;
        }
        left -= bytes;
        tiff_open_damaged_at(first, at.next, &at);
    }
}

/* ---- What a decoder needs ---- */

static const uint16_t needed[] = {TIFF_TAG_WIDTH,
                                  TIFF_TAG_HEIGHT,
                                  TIFF_TAG_BITS,
                                  TIFF_TAG_COMPRESSION,
                                  TIFF_TAG_PHOTOMETRIC,
                                  TIFF_TAG_FILL_ORDER,
                                  TIFF_TAG_STRIPS,
                                  TIFF_TAG_SAMPLES,
                                  TIFF_TAG_STRIP_ROWS,
                                  TIFF_TAG_STRIP_SIZES,
                                  TIFF_TAG_PLANAR,
                                  TIFF_TAG_FAX_3,
                                  TIFF_TAG_FAX_4,
                                  TIFF_TAG_PREDICTOR,
                                  TIFF_TAG_PALETTE,
                                  TIFF_TAG_TILE_WIDTH,
                                  TIFF_TAG_TILE_HEIGHT,
                                  TIFF_TAG_TILES,
                                  TIFF_TAG_TILE_SIZES,
                                  TIFF_TAG_EXTRA,
                                  TIFF_TAG_SAMPLE_FORMAT,
                                  TIFF_TAG_JPEG_TABLES,
                                  TIFF_TAG_CHROMA_SUBSAMPLING};

enum { NEEDED = sizeof needed / sizeof *needed };

size_t tiff_count_needed(const struct tiff_directory *directory)
{
    struct tiff_entry entry;
    size_t count = 0;
    for (size_t i = 0; i < NEEDED; i++) {
        const bool is_list = needed[i] == TIFF_TAG_STRIPS || needed[i] == TIFF_TAG_STRIP_SIZES ||
                             needed[i] == TIFF_TAG_TILES || needed[i] == TIFF_TAG_TILE_SIZES;
        if (!is_list && tiff_find(directory, needed[i], &entry))
            count += entry.count;
    }
    return count;
}

size_t tiff_put_needed(const struct tiff_directory *directory, size_t sizes_at, size_t cells,
                       uint8_t bytes[TIFF_NEEDED_BYTES])
{
    const size_t head = head_bytes(directory), each = entry_bytes(directory), word_bytes = word(directory);
    struct tiff_entry entry;
    size_t count = 0;
    memset(bytes, 0, TIFF_NEEDED_BYTES);
    for (size_t i = 0; i < NEEDED; i++) {
        uint8_t *to = bytes + head + count * each;
        const bool is_list = needed[i] == TIFF_TAG_STRIP_SIZES || needed[i] == TIFF_TAG_TILE_SIZES;
        if (sizes_at != 0 && needed[i] == TIFF_TAG_STRIP_SIZES) {
            bytes_put_number(to, 2, directory->big, TIFF_TAG_STRIP_SIZES);
            bytes_put_number(to + 2, 2, directory->big, directory->wide ? TIFF_TYPE_LONG8 : TIFF_TYPE_LONG);
            bytes_put_number(to + 4, word_bytes, directory->big, cells);
            bytes_put_number(to + 4 + word_bytes, word_bytes, directory->big, sizes_at);
            count++;
        } else if (!(sizes_at != 0 && is_list) && tiff_find(directory, needed[i], &entry)) {
            memcpy(to, directory->bytes + directory->at + entry.index * each, each);
            count++;
        }
    }
    bytes[directory->big ? head - 1 : 0] = (uint8_t)count;
    return head + count * each + word_bytes;
}

/* ---- Strips and tiles ---- */

size_t tiff_offset_bytes(const struct tiff_directory *directory)
{
    return word(directory);
}

bool tiff_find_cells(const struct tiff_directory *directory, struct tiff_cells *cells)
{
    *cells = (struct tiff_cells){.sizes = {.count = 0}};
    if (!tiff_find(directory, TIFF_TAG_TILE_SIZES, &cells->sizes) &&
        !tiff_find(directory, TIFF_TAG_STRIP_SIZES, &cells->sizes))
        cells->sizes.count = 0;
    return tiff_find(directory, TIFF_TAG_TILES, &cells->offsets) ||
           tiff_find(directory, TIFF_TAG_STRIPS, &cells->offsets);
}

uint64_t tiff_cell_size(const struct tiff_directory *directory, const struct tiff_header *header,
                        const struct tiff_cells *cells, size_t index)
{
    const uint64_t offset = tiff_number(directory, &cells->offsets, index),
                   next = tiff_number(directory, &cells->offsets, index + 1),
                   listed = tiff_number(directory, &cells->sizes, index),
                   left = offset < directory->size ? directory->size - offset : 0,
                   whole = tiff_cell_row(header) * (uint64_t)header->cell_height;
    if ((index < cells->sizes.count && listed <= left) || left == 0)
        return listed;
    if (header->compression == TIFF_UNCOMPRESSED)
        return whole < left ? whole : left;
    return next > offset && next - offset < left ? next - offset : left;
}

/* ---- Several pages ---- */

static void move_offset(uint8_t *offset, size_t distance)
{
    bytes_put_number(offset, 4, false, bytes_number(offset, 4, false) + distance);
}

/* Add DISTANCE to all offsets of a file: those in its directory and in the ones below it, of values, strips and
 * directories. */
static void move_offsets(uint8_t *bytes, const struct tiff_directory *first, size_t distance)
{
    enum { BELOW_MAX = 3 }; /* EXIF, what that has for other programs, and GPS */
    struct tiff_directory directories[1 + BELOW_MAX] = {*first};
    struct tiff_entry entry;
    int count = 1;
    for (int d = 0; d < count; d++)
        for (size_t i = 0; i < directories[d].count; i++) {
            uint8_t *offset = bytes + directories[d].at + i * entry_bytes(first) + 8;
            if (!tiff_read_entry(&directories[d], i, &entry))
                continue;
            const bool is_below =
                entry.tag == TIFF_TAG_EXIF || entry.tag == TIFF_TAG_GPS || entry.tag == TIFF_TAG_INTEROP;
            if (is_below && count <= BELOW_MAX &&
                tiff_open_at(first, tiff_number(first, &entry, 0), &directories[count]))
                count++;
            for (size_t k = 0; (is_below || entry.tag == TIFF_TAG_STRIPS) && k < entry.size / 4; k++)
                move_offset(bytes + (entry.value - first->bytes) + 4 * k, distance);
            if (entry.size > 4)
                move_offset(offset, distance);
        }
}

bool tiff_add_page(struct tiff_pages *pages, uint8_t *bytes, size_t size, struct error *error)
{
    enum { HEADER = 8 }; /* each page after the first one leaves it out */
    struct blob *file = &pages->file;
    struct tiff_directory directory;
    const size_t odd = file->size & 1, skipped = file->size > 0 ? HEADER : 0, distance = file->size + odd - skipped;
    if (!tiff_open_first(bytes, size, &directory) || directory.wide || size > UINT32_MAX - file->size)
        return error_set(error, ERROR_WORK,
                         "the pages need more than the 4 GiB of a TIFF; write each page to a file, with -o DIR");
    if (skipped > 0)
        move_offsets(bytes, &directory, distance);
    if (!blob_append(file, "", odd) || !blob_append(file, bytes + skipped, size - skipped))
        return error_no_memory(error, "the pages");
    if (skipped > 0)
        bytes_put_number(file->bytes + pages->link, 4, false, distance + tiff_start(&directory));
    pages->link = distance + tiff_end(&directory) - 4;
    return true;
}
