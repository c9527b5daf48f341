/* SPDX-License-Identifier: MIT
 *
 * The block of EXIF: directories of entries, in the form of TIFF (EXIF 2.32, 4.5 and 4.6; TIFF 6.0, section 2). It may
 * be damaged, so each offset and length is checked against the block's size, and directories are only followed
 * downwards. */
#include "metadata/metadata_internal.h"

#include <string.h>

/* Tags of other directories than the image's. */
enum tag {
    TAG_INTEROP_INDEX = 0x0001,
    TAG_COLOUR_SPACE = 0xa001,
    TAG_DESCRIPTION = 0x010e,
    TAG_SUBJECT_AREA = 0x9214,
    TAG_EXIF_WIDTH = 0xa002,
    TAG_EXIF_HEIGHT = 0xa003,
    TAG_FOCAL_X_RESOLUTION = 0xa20e, /* both are of the focal plane */
    TAG_FOCAL_Y_RESOLUTION = 0xa20f,
    TAG_SUBJECT_LOCATION = 0xa214,
};

/* A block of bytes that may be damaged. Blocks that are built from it are never BigTIFF. */
struct block {
    struct tiff_directory directories[DIRECTORIES]; /* those that are missing have no entries */
    size_t kept[DIRECTORIES];                       /* the number of entries that are kept */
    bool turned;
    struct metadata *metadata; /* notes what is left out */
    size_t text_bytes;         /* in the texts that are kept */
};

enum { TIFF_HEADER = 8, ENTRY = 12 };

struct entry {
    struct tiff_entry of;
    bool is_text;
    enum exif_directory below; /* the directory that it refers to; DIRECTORY_IMAGE if it refers to none */
};

/* A walk over the entries of a directory. */
struct walk {
    const struct block *block;
    enum exif_directory directory;
    size_t next, budget;     /* the next entry; the bytes of values, which may overlap and must not take long */
    uint8_t seen[65536 / 8]; /* a bit for each tag that was met */
};

static struct walk walk_begin(const struct block *block, enum exif_directory directory)
{
    return (struct walk){.block = block, .directory = directory, .budget = block->directories[directory].size};
}

/* The directory that an entry refers to, or DIRECTORY_IMAGE if it refers to none. */
static enum exif_directory directory_below(enum exif_directory directory, unsigned tag)
{
    if (directory == DIRECTORY_IMAGE && tag == TIFF_TAG_EXIF)
        return DIRECTORY_EXIF;
    if (directory == DIRECTORY_IMAGE && tag == TIFF_TAG_GPS)
        return DIRECTORY_GPS;
    if (directory == DIRECTORY_EXIF && tag == TIFF_TAG_INTEROP)
        return DIRECTORY_INTEROP;
    return DIRECTORY_IMAGE;
}

/* Is the description that of ImageJ or OME-XML, which give the sides of the picture and of a pixel? */
static bool is_of_size(const struct tiff_entry *entry)
{
    return bytes_begin(entry->value, entry->size, "ImageJ=", 7) || bytes_contain(entry->value, entry->size, "<OME ");
}

/* Is the entry carried? Its text may be cut. */
static bool entry_judge(struct walk *walk, struct entry *entry)
{
    struct metadata *metadata = walk->block->metadata;
    const unsigned tag = entry->of.tag;
    if (walk->block->turned && walk->directory == DIRECTORY_EXIF &&
        (tag == TAG_SUBJECT_AREA || tag == TAG_SUBJECT_LOCATION))
        return false;
    if (walk->block->turned && tag == TAG_DESCRIPTION && is_of_size(&entry->of))
        return !metadata_drop(metadata, METADATA_EXIF, METADATA_OTHER_COLOUR);
    const size_t size = entry->of.size;
    const enum exif_action action = exif_judge(metadata, walk->directory, &entry->of);
    entry->is_text = action == EXIF_TEXT;
    if (action == EXIF_UNKNOWN || entry->of.size < size)
        metadata_drop(metadata, METADATA_EXIF, METADATA_UNKNOWN);
    if (action == EXIF_LONG)
        metadata_drop(metadata, METADATA_EXIF, METADATA_NEEDS_KEEP_TEXT);
    if (action == EXIF_MAKER)
        metadata_drop(metadata, METADATA_EXIF, METADATA_MAKER);
    return action == EXIF_CARRIED || action == EXIF_TEXT;
}

/* Is the entry kept? IS_THERE says whether its value is in the block. */
static bool entry_take(struct walk *walk, bool is_there, struct entry *entry)
{
    const struct tiff_directory *directory = &walk->block->directories[walk->directory];
    const struct tiff_entry *of = &entry->of;
    const bool is_offset8 = of->type == TIFF_TYPE_LONG8 || of->type == TIFF_TYPE_IFD8;
    if (of->size == 0 || of->size > walk->budget ||
        (of->type >= TIFF_TYPE_LONG8 && of->type <= TIFF_TYPE_IFD8 && !(is_offset8 && directory->wide)))
        return false;
    walk->budget -= of->size;
    if (!is_there)
        return false;
    entry->below = directory_below(walk->directory, of->tag);
    if (entry->below == DIRECTORY_IMAGE)
        return !is_offset8 && entry_judge(walk, entry);
    return (of->type == TIFF_TYPE_LONG || of->type == TIFF_TYPE_IFD || is_offset8) && of->count == 1 &&
           walk->block->kept[entry->below] > 0;
}

/* Step to the next entry that is kept. If several entries have one tag, only the first counts. */
static bool walk_next(struct walk *walk, struct entry *entry)
{
    const struct tiff_directory *directory = &walk->block->directories[walk->directory];
    while (walk->next < directory->count) {
        *entry = (struct entry){.is_text = false};
        const bool is_there = tiff_read_entry(directory, walk->next++, &entry->of);
        const unsigned tag = entry->of.tag, bit = 1u << (tag & 7);
        const bool again = walk->seen[tag >> 3] & bit;
        walk->seen[tag >> 3] |= (uint8_t)bit;
        if (!again && entry_take(walk, is_there, entry))
            return true;
    }
    return false;
}

/* Open a block: find its directories, and count the entries of each that are kept. Returns false if there are none. */
static bool block_open(const uint8_t *bytes, size_t size, struct block *block)
{
    struct tiff_directory *directories = block->directories;
    struct entry entry;
    tiff_open_damaged(bytes, size, &directories[DIRECTORY_IMAGE]);
    if (block->metadata->directory > 0)
        tiff_open_damaged_at(directories, block->metadata->directory, &directories[DIRECTORY_IMAGE]);
    if (size < TIFF_HEADER || (!directories->wide && memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0))
        return false;
    for (int d = 0; d < DIRECTORIES; d++)
        block->kept[d] = 1; /* not known yet; 0 would mean that it is empty */
    for (int d = 0; d < DIRECTORIES; d++) {
        struct walk walk = walk_begin(block, (enum exif_directory)d);
        while (walk_next(&walk, &entry))
            if (entry.below != DIRECTORY_IMAGE)
                tiff_open_damaged_at(directories, tiff_number(&directories[d], &entry.of, 0),
                                     &directories[entry.below]);
    }
    for (int d = DIRECTORIES - 1; d >= 0; d--) { /* upwards: an entry that refers to an empty directory is dropped */
        size_t count = 0;
        struct walk walk = walk_begin(block, (enum exif_directory)d);
        for (; walk_next(&walk, &entry); count++)
            block->text_bytes += entry.is_text ? entry.of.size : 0;
        block->kept[d] = count;
    }
    return block->kept[DIRECTORY_IMAGE] > 0;
}

/* Append SIZE zeros at an even offset. Returns that offset, or 0 if there is not enough memory. */
static size_t tiff_extend(struct blob *out, size_t size)
{
    const size_t added = (out->size & 1) + size;
    uint8_t *bytes = blob_extend(out, added);
    if (bytes == NULL)
        return 0;
    memset(bytes, 0, added);
    return out->size - size;
}

/* What is built of a block: a block of its own, or directories of a TIFF file. */
struct target {
    struct blob *out;
    bool big;              /* big-endian */
    size_t base;           /* the offset of OUT in the file */
    const uint8_t *others; /* entries that the first directory has besides, and before those of the block */
    size_t other_count;
    size_t links[DIRECTORIES]; /* the offset in OUT of what refers to each directory; 0 if nothing does */
};

/* Store a number, which has 4 bytes, or 2 for a count of entries. */
static void target_put(const struct target *target, size_t at, size_t size, size_t number)
{
    bytes_put_number(target->out->bytes + at, size, target->big, (uint32_t)number);
}

/* Copy the value of ENTRY to TO, in the order of the target. The parts of a rational number have 4 bytes each. */
static void target_copy(const struct target *target, bool big, const struct tiff_entry *entry, size_t to)
{
    const bool is_rational = entry->type == TIFF_TYPE_RATIONAL || entry->type == TIFF_TYPE_SIGNED_RATIONAL;
    const size_t each = is_rational ? 4 : entry->size / entry->count;
    uint8_t *out = target->out->bytes + to;
    memcpy(out, entry->value, entry->size);
    for (size_t at = 0; big != target->big && each > 1 && at < entry->size; at += each)
        for (size_t i = 0; i < each; i++)
            out[at + i] = entry->value[at + each - 1 - i];
}

/* Is there an entry of this tag among those of the target? */
static bool target_has(const struct target *target, unsigned tag)
{
    for (size_t i = 0; i < target->other_count; i++)
        if (bytes_number(target->others + i * ENTRY, 2, target->big) == tag)
            return true;
    return false;
}

/* Sort COUNT entries at TABLE by their tags where they are merged, and note those that refer to directories. */
static void target_sort(struct target *target, enum exif_directory directory, size_t table, size_t count)
{
    uint8_t *first = target->out->bytes + table, entry[ENTRY];
    for (size_t i = 1; target->other_count > 0 && i < count; i++) {
        size_t k = i;
        memcpy(entry, first + i * ENTRY, ENTRY);
        const uint32_t tag = bytes_number(entry, 2, target->big);
        for (; k > 0 && bytes_number(first + (k - 1) * ENTRY, 2, target->big) > tag; k--)
            memcpy(first + k * ENTRY, first + (k - 1) * ENTRY, ENTRY);
        memcpy(first + k * ENTRY, entry, ENTRY);
    }
    for (size_t i = 0; i < count; i++) {
        const unsigned tag = bytes_number(first + i * ENTRY, 2, target->big);
        const enum exif_directory below = directory_below(directory, tag);
        if (below != DIRECTORY_IMAGE)
            target->links[below] = table + i * ENTRY + 8;
    }
}

static bool copy_directory(const struct block *block, enum exif_directory directory, struct target *target)
{
    struct walk walk = walk_begin(block, directory);
    struct entry entry;
    const size_t others = directory == DIRECTORY_IMAGE ? target->other_count : 0;
    const size_t table = tiff_extend(target->out, 2 + (others + block->kept[directory]) * ENTRY + 4);
    size_t at = table + 2;
    if (table == 0)
        return false;
    if (others > 0)
        memcpy(target->out->bytes + at, target->others, others * ENTRY);
    at += others * ENTRY;
    while (walk_next(&walk, &entry)) {
        if (others > 0 && target_has(target, entry.of.tag))
            continue;
        const bool refers = entry.below != DIRECTORY_IMAGE, is_long = entry.of.size > 4;
        target_put(target, at, 2, entry.of.tag);
        target_put(target, at + 2, 2, refers ? TIFF_TYPE_LONG : entry.of.type);
        target_put(target, at + 4, 4, entry.of.count);
        const size_t value = refers || !is_long ? at + 8 : tiff_extend(target->out, entry.of.size);
        if (value == 0)
            return false;
        if (!refers)
            target_copy(target, block->directories[directory].big, &entry.of, value);
        if (!refers && is_long)
            target_put(target, at + 8, 4, target->base + value); /* four directories of 16 MB at most: it fits */
        at += ENTRY;
    }
    const size_t count = (at - table - 2) / ENTRY;
    target_put(target, table, 2, count);
    memset(target->out->bytes + at, 0, 4); /* no next directory */
    target_sort(target, directory, table + 2, count);
    if (target->links[directory] > 0)
        target_put(target, target->links[directory], 4, target->base + table);
    return true;
}

/* Build directories from the entries of a block that are kept. */
static bool copy_directories(const struct block *block, struct target *target)
{
    for (int d = 0; d < DIRECTORIES; d++)
        if (d == DIRECTORY_IMAGE || (block->kept[d] > 0 && target->links[d] > 0))
            if (!copy_directory(block, (enum exif_directory)d, target))
                return false;
    return true;
}

bool exif_append_directory(const struct blob *exif, size_t base, const uint8_t *others, size_t other_count,
                           struct blob *out)
{
    struct metadata unlimited = {.keep_text = true};
    struct block block = {.metadata = &unlimited};
    struct target target = {.out = out, .base = base, .others = others, .other_count = other_count};
    if (exif->size == 0 || !block_open(exif->bytes, exif->size, &block))
        block = (struct block){.metadata = &unlimited};
    return copy_directories(&block, &target);
}

/* ---- Blocks that are rebuilt ---- */

/* Find TAG in a block from copy_directories. */
static bool find_exif_entry(const struct blob *exif, enum exif_directory directory, unsigned tag,
                            struct tiff_entry *entry)
{
    static const unsigned ways[DIRECTORIES][2] = {[DIRECTORY_EXIF] = {TIFF_TAG_EXIF},
                                                  [DIRECTORY_GPS] = {TIFF_TAG_GPS},
                                                  [DIRECTORY_INTEROP] = {TIFF_TAG_EXIF, TIFF_TAG_INTEROP}};
    struct tiff_directory at;
    bool done = exif->size > 0 && tiff_open_first(exif->bytes, exif->size, &at);
    for (int i = 0; done && i < 2 && ways[directory][i] != 0; i++)
        done = tiff_open_at(&at, tiff_find_number(&at, ways[directory][i], 0), &at);
    return done && tiff_find(&at, tag, entry);
}

/* The value of TAG in such a block, if it is one integer of any type, or one rational number; else NULL. */
static uint8_t *find_single_number(const struct blob *exif, enum exif_directory directory, unsigned tag,
                                   bool is_rational)
{
    const unsigned integers = 1U << TIFF_TYPE_BYTE | 1U << TIFF_TYPE_SHORT | 1U << TIFF_TYPE_LONG |
                              1U << TIFF_TYPE_SIGNED_BYTE | 1U << TIFF_TYPE_SIGNED_SHORT | 1U << TIFF_TYPE_SIGNED_LONG;
    struct tiff_entry entry;
    if (!find_exif_entry(exif, directory, tag, &entry) || entry.count != 1 || entry.type >= 32 ||
        !((is_rational ? 1U << TIFF_TYPE_RATIONAL : integers) >> entry.type & 1))
        return NULL;
    return exif->bytes + (entry.value - exif->bytes);
}

static bool is_big(const struct blob *exif)
{
    return exif->bytes[0] == 'M';
}

/* The integer that TAG holds, taken as unsigned; -1 if there is none. */
static int64_t read_integer(const struct blob *exif, enum exif_directory directory, unsigned tag)
{
    struct tiff_entry entry;
    if (find_single_number(exif, directory, tag, false) == NULL || !find_exif_entry(exif, directory, tag, &entry))
        return -1;
    return bytes_number(entry.value, entry.size, is_big(exif));
}

int exif_orientation(const struct blob *exif)
{
    const int64_t value = read_integer(exif, DIRECTORY_IMAGE, TIFF_TAG_ORIENTATION);
    return value >= 1 && value <= 8 ? (int)value : value < 0 ? 0 : 1;
}

enum exif_colours exif_colours(const struct blob *exif)
{
    const int64_t value = read_integer(exif, DIRECTORY_EXIF, TAG_COLOUR_SPACE);
    struct tiff_entry index;
    if (value < 0)
        return EXIF_COLOURS_NONE;
    if (value == 1)
        return EXIF_COLOURS_SRGB;
    return find_exif_entry(exif, DIRECTORY_INTEROP, TAG_INTEROP_INDEX, &index) &&
                   bytes_begin(index.value, index.size, "R03", 3)
               ? EXIF_COLOURS_ADOBE
               : EXIF_COLOURS_OTHER;
}

/* Set a tag to NUMBER of TYPE, if the block has it and it holds one number. */
static void set_number(struct blob *exif, enum exif_directory directory, unsigned tag, enum tiff_type type,
                       uint32_t number)
{
    uint8_t *value = find_single_number(exif, directory, tag, false);
    if (value == NULL)
        return;
    bytes_put_number(value - 6, 2, is_big(exif), type); /* it is in the entry itself, after a type and a count */
    memset(value, 0, 4);
    bytes_put_number(value, type == TIFF_TYPE_SHORT ? 2 : 4, is_big(exif), number);
}

/* Swap the values of two tags, if the block has both and each is one rational number. */
static void swap_rationals(struct blob *exif, enum exif_directory directory, unsigned a, unsigned b)
{
    uint8_t *first = find_single_number(exif, directory, a, true);
    uint8_t *second = find_single_number(exif, directory, b, true), kept[8];
    if (first == NULL || second == NULL)
        return;
    memcpy(kept, first, sizeof kept);
    memcpy(first, second, sizeof kept);
    memcpy(second, kept, sizeof kept);
}

bool exif_rebuild(struct metadata *metadata, const uint8_t *bytes, size_t size, bool turned, struct blob *exif)
{
    const uint64_t before = metadata->dropped;
    struct block block = {.turned = turned, .metadata = metadata};
    *exif = (struct blob){0};
    if (block_open(bytes, size, &block)) {
        const bool big = block.directories->big;
        struct target target = {.out = exif, .big = big, .links = {[DIRECTORY_IMAGE] = 4}};
        if (!blob_append(exif, big ? "MM\0*\0\0\0" : "II*\0\0\0\0", TIFF_HEADER) ||
            !copy_directories(&block, &target)) {
            blob_free(exif);
            return false;
        }
    }
    metadata->text_bytes += block.text_bytes;
    if (exif->size == 0 && metadata->dropped == before)
        metadata_drop(metadata, METADATA_EXIF, METADATA_DAMAGED);
    const int64_t orientation = read_integer(exif, DIRECTORY_IMAGE, TIFF_TAG_ORIENTATION);
    if (orientation == 0 || orientation > 8) /* it has no meaning, and readers treat it differently */
        exif_set_upright(exif);
    return true;
}

void exif_set_upright(struct blob *exif)
{
    set_number(exif, DIRECTORY_IMAGE, TIFF_TAG_ORIENTATION, TIFF_TYPE_SHORT, 1);
}

void exif_set_srgb(struct blob *exif)
{
    set_number(exif, DIRECTORY_EXIF, TAG_COLOUR_SPACE, TIFF_TYPE_SHORT, 1);
}

void exif_set_sides(struct blob *exif, int width, int height)
{
    set_number(exif, DIRECTORY_IMAGE, TIFF_TAG_WIDTH, TIFF_TYPE_LONG, (uint32_t)width);
    set_number(exif, DIRECTORY_IMAGE, TIFF_TAG_HEIGHT, TIFF_TYPE_LONG, (uint32_t)height);
    set_number(exif, DIRECTORY_EXIF, TAG_EXIF_WIDTH, TIFF_TYPE_LONG, (uint32_t)width);
    set_number(exif, DIRECTORY_EXIF, TAG_EXIF_HEIGHT, TIFF_TYPE_LONG, (uint32_t)height);
}

void exif_swap_resolutions(struct blob *exif)
{
    swap_rationals(exif, DIRECTORY_IMAGE, TIFF_TAG_X_RESOLUTION, TIFF_TAG_Y_RESOLUTION);
    swap_rationals(exif, DIRECTORY_EXIF, TAG_FOCAL_X_RESOLUTION, TAG_FOCAL_Y_RESOLUTION);
}

/* Multiply the numerator of a tag, if the block has it and it is one rational number. */
static void scale_rational(struct blob *exif, unsigned tag, double factor)
{
    uint8_t *value = find_single_number(exif, DIRECTORY_EXIF, tag, true);
    if (value == NULL)
        return;
    const double scaled = (double)bytes_number(value, 4, is_big(exif)) * factor + 0.5;
    bytes_put_number(value, 4, is_big(exif), scaled < UINT32_MAX ? (uint32_t)scaled : UINT32_MAX);
}

void exif_scale_focal_plane(struct blob *exif, double horizontal, double vertical)
{
    scale_rational(exif, TAG_FOCAL_X_RESOLUTION, horizontal);
    scale_rational(exif, TAG_FOCAL_Y_RESOLUTION, vertical);
}
