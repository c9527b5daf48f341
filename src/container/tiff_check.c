/* SPDX-License-Identifier: MIT
 *
 * The check of a TIFF: its directories, and the offset of each strip or tile of its picture. */
#include "container/check.h"
#include "container/other_content.h"
#include "container/report.h"
#include "container/tiff.h"

enum { CELL_SIDE_MAX = 1 << 24 }; /* pixels on a side of a tile */

/* A check under way. */
struct reading {
    struct checked_file file;
    struct tiff_directory directory; /* the directory of the picture */
};

/* Refuse a kind of TIFF. */
#define NOT_READ_BUT(other, reading, text, ...)                                                                        \
    REFUSE(reading, "is a TIFF " text ", which is not read; save it again " other, __VA_ARGS__)
#define NOT_READ(...) NOT_READ_BUT("as RGB of 8 or 16 bits", __VA_ARGS__)
#define BITS_NOT_READ(...) NOT_READ_BUT("with 8 or 16 bits for each sample", __VA_ARGS__)
#define CODES_NOT_READ(...) NOT_READ_BUT("with deflate or LZW", __VA_ARGS__)

/* The maximal number of bytes that a byte of compressed data gives, or 0 if there is no limit. A code of LZW has 9 bits
 * or more, and stands for at most 4096 bytes; one of deflate as in a PNG. PackBits repeats a byte 128 times. */
static uint64_t max_ratio(unsigned compression)
{
    switch (compression) {
    case TIFF_UNCOMPRESSED:
        return 1;
    case TIFF_LZW:
        return 4096;
    case TIFF_DEFLATE:
    case TIFF_DEFLATE_OLD:
        return 1032;
    case TIFF_PACKBITS:
        return 64;
    default:
        return 0;
    }
}

/* Is the compression one that libtiff reads, and that is known not to take memory without a bound? Those of fax are for
 * one bit. */
static bool check_compression(const struct reading *reading, const struct tiff_header *header)
{
    static const unsigned known[] = {TIFF_UNCOMPRESSED, TIFF_LZW,         TIFF_JPEG, TIFF_DEFLATE,
                                     TIFF_PACKBITS,     TIFF_DEFLATE_OLD, TIFF_LZMA, TIFF_ZSTD};
    const unsigned compression = header->compression;
    bool is_known =
        compression >= TIFF_FAX_RUNS && compression <= TIFF_FAX_4 && header->bits == 1 && header->samples == 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        is_known = is_known || compression == known[i];
    if (compression == 6)
        return CODES_NOT_READ(reading, "with JPEG of the old kind (compression %u)", compression);
    if (compression == TIFF_JPEG && header->bits != 8)
        return CODES_NOT_READ(reading, "with JPEG of %d bits", header->bits);
    return is_known || CODES_NOT_READ(reading, "of compression %u", compression);
}

/* Read the bits of a sample, which must be alike in all channels, and of unsigned numbers. */
static bool read_bits(const struct reading *reading, struct tiff_header *header)
{
    const struct tiff_directory *directory = &reading->directory;
    struct tiff_entry entry;
    header->bits = 1;
    if (tiff_find(directory, TIFF_TAG_BITS, &entry)) {
        const uint64_t bits = tiff_number(directory, &entry, 0);
        const uint64_t samples = tiff_find_number(directory, TIFF_TAG_SAMPLES, 1); /* some writers list more */
        for (size_t i = 1; i < entry.count && i < samples; i++)
            if (tiff_number(directory, &entry, i) != bits)
                return BITS_NOT_READ(reading, "whose channels have different %s", "bits");
        if (bits < 1 || bits > 64)
            return DAMAGED(reading, "its samples have %llu bits", (unsigned long long)bits);
        header->bits = (int)bits;
    }
    const uint64_t format = tiff_find_number(directory, TIFF_TAG_SAMPLE_FORMAT, 1);
    return format == 1 || format == 4 ||
           BITS_NOT_READ(reading, "of %s", format == 3 ? "floating-point samples" : "samples with a sign");
}

/* Fill the channels and bits of INFO from what the file says of its colours. */
static bool read_colours(const struct reading *reading, struct tiff_header *header, struct codec_info *info)
{
    const struct tiff_directory *directory = &reading->directory;
    const uint64_t photometric = tiff_find_number(directory, TIFF_TAG_PHOTOMETRIC, UINT64_MAX);
    const uint64_t samples = tiff_find_number(directory, TIFF_TAG_SAMPLES, 1);
    struct tiff_entry palette;
    if (photometric == UINT64_MAX)
        return DAMAGED(reading, "it does not say what its %s mean", "samples");
    if (!read_bits(reading, header))
        return false;
    const bool is_grey = photometric <= TIFF_BLACK_IS_0, is_palette = photometric == TIFF_PALETTE;
    const bool is_colour = photometric == TIFF_RGB || photometric == TIFF_YCBCR;
    if (!is_grey && !is_palette && !is_colour)
        return NOT_READ(reading, "%s", photometric == TIFF_CMYK ? "in CMYK" : "in an unusual colour space");
    const uint64_t colours = is_colour ? 3 : 1, max = is_palette || photometric == TIFF_YCBCR ? colours : colours + 1;
    if (samples < colours || samples > max)
        return NOT_READ(reading, "with %llu channel%s", (unsigned long long)samples, samples == 1 ? "" : "s");
    const int bits = header->bits;
    if (bits != 8 && (bits != 16 || is_palette) && (is_colour || samples > 1 || (bits != 1 && bits != 2 && bits != 4)))
        return BITS_NOT_READ(reading, "with %d bits per sample", bits);
    header->photometric = (unsigned)photometric;
    header->samples = (int)samples;
    header->compression = (unsigned)tiff_find_number(directory, TIFF_TAG_COMPRESSION, 1);
    const uint64_t extra = tiff_find_number(directory, TIFF_TAG_EXTRA, TIFF_UNASSOCIATED);
    header->is_associated = extra == TIFF_ASSOCIATED && samples > colours;
    if (samples > colours && extra != TIFF_ASSOCIATED && extra != TIFF_UNASSOCIATED)
        return NOT_READ(reading, "with an extra channel that is not alpha (ExtraSamples %llu)",
                        (unsigned long long)extra);
    if (photometric == TIFF_YCBCR && (header->compression != TIFF_JPEG || bits != 8))
        return NOT_READ(reading, "in YCbCr %s", "without JPEG");
    if (photometric == TIFF_YCBCR && tiff_find_number(directory, TIFF_TAG_PLANAR, 1) == 2)
        return NOT_READ(reading, "in YCbCr %s", "with separate channels");
    if (is_palette && (!tiff_find(directory, TIFF_TAG_PALETTE, &palette) || palette.count < (size_t)3 << bits))
        return DAMAGED(reading, "it has no palette of %d colours", 1 << bits);
    info->channels = is_palette ? 3 : (int)samples;
    info->bits = bits == 16 ? 16 : 8;
    return check_compression(reading, header);
}

/* Read the sides of strips or tiles. */
static bool read_cell_sides(const struct reading *reading, struct tiff_header *header, const struct codec_info *info)
{
    const struct tiff_directory *directory = &reading->directory;
    struct tiff_entry entry;
    header->is_tiled =
        tiff_find(directory, TIFF_TAG_TILES, &entry) || tiff_find(directory, TIFF_TAG_TILE_WIDTH, &entry);
    header->is_separate = tiff_find_number(directory, TIFF_TAG_PLANAR, 1) == 2 && header->samples > 1;
    uint64_t width = (uint64_t)info->width, height = (uint64_t)info->height;
    if (header->is_tiled) {
        width = tiff_find_number(directory, TIFF_TAG_TILE_WIDTH, 0);
        height = tiff_find_number(directory, TIFF_TAG_TILE_HEIGHT, 0);
    } else {
        const uint64_t rows = tiff_find_number(directory, TIFF_TAG_STRIP_ROWS, height);
        height = rows < height ? rows : height;
    }
    if (width == 0 || height == 0 || (header->is_tiled && (width > CELL_SIDE_MAX || height > CELL_SIDE_MAX)))
        return DAMAGED(reading, "its strips or tiles have %llu x %llu pixels", (unsigned long long)width,
                       (unsigned long long)height);
    if (header->is_tiled && header->bits < 8 && width % 8 != 0)
        return DAMAGED(reading, "its tiles are %llu pixels wide, not a multiple of 8", (unsigned long long)width);
    header->cell_width = (int)width;
    header->cell_height = (int)height;
    header->cells = (((size_t)info->width - 1) / width + 1) * (((size_t)info->height - 1) / height + 1) *
                    (header->is_separate ? (size_t)header->samples : 1);
    return true;
}

/* Raise *COUNT to the coefficients that libjpeg holds of a JPEG in a strip or tile: all of one in several scans, else
 * none. A scan without all components is one of several. Returns false if there is no frame and scan. */
static bool count_coefficients(const uint8_t *bytes, size_t size, size_t *count)
{
    enum {
        UNIT = 32,
        FRAME = 6
    }; /* the maximal number of samples on a side of a unit, which are filled up; bytes of a frame's head */
    struct jpeg_walk walk = jpeg_walk_begin(bytes, size);
    struct jpeg_segment segment, frame = {.size = 0};
    while (size >= JPEG_SOI_BYTES && jpeg_walk_headers(&walk, &segment))
        if (jpeg_is_frame(segment.marker))
            frame = segment;
    if (!walk.in_scan || frame.size < FRAME || segment.size < 1)
        return false;
    const size_t height = big16(frame.data + 1), width = big16(frame.data + 3), components = frame.data[5];
    const bool has_scans =
        frame.marker == JPEG_MARKER_SOF2 || frame.marker == JPEG_MARKER_SOF10 || segment.data[0] < components;
    const size_t all = has_scans ? components * (width + UNIT) * (height + UNIT) : 0;
    *count = all > *count ? all : *count;
    return true;
}

/* Check that each strip or tile is in the file, and add up their bytes. */
static bool check_cells(const struct reading *reading, struct tiff_header *header, struct codec_info *info)
{
    const struct tiff_directory *directory = &reading->directory;
    struct tiff_cells cells;
    if (!tiff_find_cells(directory, &cells) || cells.offsets.count < header->cells)
        return DAMAGED(reading, "it does not list its %zu strips or tiles", header->cells);
    for (size_t i = 0; i < header->cells; i++) {
        const uint64_t offset = tiff_number(directory, &cells.offsets, i),
                       size = tiff_cell_size(directory, header, &cells, i);
        header->has_wrong_sizes |= size != tiff_number(directory, &cells.sizes, i);
        if (size == 0)
            return DAMAGED(reading, "strip or tile %zu is empty", i);
        if (offset > directory->size || size > directory->size - offset)
            return TRUNCATED(reading, "strip or tile %zu at byte %llu claims %llu bytes", i, (unsigned long long)offset,
                             (unsigned long long)size);
        if (header->compression == TIFF_JPEG &&
            !count_coefficients(directory->bytes + offset, (size_t)size, &header->coefficients))
            return DAMAGED(reading, "strip or tile %zu is not a JPEG", i);
        info->data += (size_t)size;
        header->cell_max = size > header->cell_max ? (size_t)size : header->cell_max;
    }
    const uint64_t ratio = max_ratio(header->compression);
    const uint64_t rows = header->is_tiled
                              ? header->cells * (uint64_t)header->cell_height
                              : (uint64_t)info->height * (header->is_separate ? (uint64_t)header->samples : 1);
    const uint64_t row = tiff_cell_row(header);
    info->is_too_short = ratio > 0 && (rows > UINT64_MAX / row || rows * row / ratio > info->data);
    info->data = info->data < directory->size ? info->data : directory->size; /* strips may overlap */
    return true;
}

/* ---- Other content ---- */

enum { DIRECTORIES_MAX = 1000, BUDGET_MIN = 1 << 20 }; /* directories that are visited; steps of the walk */

/* A walk over all directories of a file. */
struct walk {
    const struct tiff_directory *picture; /* the directory of the file's picture */
    size_t end;                           /* the largest end of what directories refer to, as an offset in the file */
    size_t budget;                        /* steps that are left: a step looks at an entry or a number */
    unsigned others;
    size_t count;
    uint64_t offsets[DIRECTORIES_MAX]; /* the offsets of the directories that were found */
};

/* Add the directory at OFFSET to the walk, once. If OFFSET is 0, there is none. */
static void add_to_walk(struct walk *walk, uint64_t offset)
{
    size_t i = 0;
    while (i < walk->count && walk->offsets[i] != offset)
        i++;
    if (i == walk->count && i < DIRECTORIES_MAX && offset != 0)
        walk->offsets[walk->count++] = offset;
}

/* Take COUNT more steps, unless the file names the same bytes again and again. */
static bool spend(struct walk *walk, size_t count)
{
    const bool done = count <= walk->budget;
    walk->budget -= done ? count : walk->budget;
    return done;
}

static void record_end(struct walk *walk, uint64_t offset, uint64_t size)
{
    if (offset <= walk->picture->size && size <= walk->picture->size - offset && offset + size > walk->end)
        walk->end = (size_t)(offset + size);
}

/* Record the ends of what the lists of a directory refer to: strips, tiles and previews, by their offsets and sizes. */
static void record_lists(struct walk *walk, const struct tiff_directory *directory)
{
    static const unsigned lists[][2] = {{TIFF_TAG_STRIPS, TIFF_TAG_STRIP_SIZES},
                                        {TIFF_TAG_TILES, TIFF_TAG_TILE_SIZES},
                                        {TIFF_TAG_PREVIEW, TIFF_TAG_PREVIEW_SIZE}};
    struct tiff_entry offsets, sizes;
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++)
        if (tiff_find(directory, lists[k][0], &offsets) && tiff_find(directory, lists[k][1], &sizes) &&
            spend(walk, offsets.count))
            for (size_t i = 0; i < offsets.count; i++)
                record_end(walk, tiff_number(directory, &offsets, i), tiff_number(directory, &sizes, i));
}

static bool has_directories(const struct tiff_entry *entry)
{
    return entry->tag == TIFF_TAG_DIRECTORIES || entry->tag == TIFF_TAG_EXIF || entry->tag == TIFF_TAG_GPS ||
           entry->tag == TIFF_TAG_INTEROP || entry->type == TIFF_TYPE_IFD || entry->type == TIFF_TYPE_IFD8;
}

/* Is there another picture in a directory, which is no smaller size of the file's? */
static bool has_picture(const struct walk *walk, const struct tiff_directory *directory)
{
    const uint64_t width = tiff_find_number(directory, TIFF_TAG_WIDTH, 0);
    return directory->at != walk->picture->at && width > 0 &&
           (!(tiff_find_number(directory, TIFF_TAG_KIND, 0) & TIFF_SMALLER) ||
            width >= tiff_find_number(walk->picture, TIFF_TAG_WIDTH, 0));
}

/* Look at a directory: what it refers to, and which directories are after and below it. */
static void look_at(struct walk *walk, const struct tiff_directory *directory)
{
    struct tiff_entry entry;
    if (has_picture(walk, directory))
        walk->others |= 1U << OTHER_PICTURES;
    record_end(walk, tiff_end(directory), 0);
    record_lists(walk, directory);
    add_to_walk(walk, directory->next);
    for (size_t i = 0; i < directory->count && spend(walk, 1); i++) {
        if (!tiff_read_entry(directory, i, &entry))
            continue;
        record_end(walk, (uint64_t)(entry.value - directory->bytes), entry.size);
        if (entry.tag == TIFF_TAG_LAYERS)
            walk->others |= 1U << OTHER_LAYERS;
        for (size_t k = 0; has_directories(&entry) && k < entry.count && spend(walk, DIRECTORIES_MAX); k++)
            add_to_walk(walk, tiff_number(directory, &entry, k));
    }
}

/* The other content: further directories, but for smaller sizes of a picture; what stands below a small picture, as
 * cameras do it; layers; and what no directory refers to, after all else. */
static unsigned find_others(const struct tiff_directory *first, const struct tiff_directory *picture)
{
    static const struct jpeg_segment no_index;
    struct walk walk = {.picture = picture, .budget = BUDGET_MIN + first->size};
    struct tiff_directory directory;
    struct tiff_entry entry;
    if (tiff_find_number(picture, TIFF_TAG_KIND, 0) & TIFF_SMALLER && tiff_find(picture, TIFF_TAG_DIRECTORIES, &entry))
        return 1U << OTHER_RAW;
    add_to_walk(&walk, tiff_start(first));
    for (size_t i = 0; i < walk.count; i++)
        if (tiff_open_at(first, walk.offsets[i], &directory))
            look_at(&walk, &directory);
    const bool is_whole = walk.budget > 0 && walk.count < DIRECTORIES_MAX;
    return walk.others |
           (is_whole ? container_other_content_behind(first->bytes, first->size, walk.end, &no_index) : 0);
}

bool tiff_check(const uint8_t *bytes, size_t size, const char *name, struct codec_info *info, struct error *error)
{
    struct reading reading = {.file = {"TIFF", name, error}};
    struct tiff_header header = {0};
    struct tiff_directory first;
    struct tiff_entry entry;
    if (!tiff_open_first(bytes, size, &first))
        return DAMAGED(&reading, "its first directory is not in the %zu bytes of the file", size);
    if (tiff_find(&first, TIFF_TAG_DNG, &entry))
        return NOT_READ(&reading, "%s", "of a camera's raw samples (DNG)");
    const int wanted = info->page, page = tiff_find_page(&first, wanted, &reading.directory, &info->pages);
    const int pages = info->pages;
    if (wanted > 0 && pages == 0)
        return DAMAGED(&reading, "its directories overlap, or follow each other in a %s", "circle");
    if (!container_check_page(wanted, pages, name, error))
        return false;
    if (reading.directory.is_cut)
        return DAMAGED(&reading, "directory %d is not in the %zu bytes of the file", page, size);
    const uint64_t width = tiff_find_number(&reading.directory, TIFF_TAG_WIDTH, 0);
    const uint64_t height = tiff_find_number(&reading.directory, TIFF_TAG_HEIGHT, 0);
    if (width < 1 || height < 1 || width > INT32_MAX || height > INT32_MAX)
        return DAMAGED(&reading, "it claims %llu x %llu pixels", (unsigned long long)width, (unsigned long long)height);
    *info = (struct codec_info){
        .page = page, .pages = pages > page ? pages : page, .width = (int)width, .height = (int)height};
    if (!read_colours(&reading, &header, info) || !read_cell_sides(&reading, &header, info) ||
        !check_cells(&reading, &header, info))
        return false;
    header.numbers = tiff_count_needed(&reading.directory);
    info->tiff = header;
    info->other_content = find_others(&first, &reading.directory);
    return true;
}
