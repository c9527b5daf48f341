/* SPDX-License-Identifier: MIT
 *
 * The block of EXIF: directories of entries, in the form of TIFF (EXIF 2.32, 4.5 and 4.6; TIFF 6.0, section 2). It may
 * be damaged, so each place and length is checked against the block's size, and directories are only followed
 * downwards. */
#include "metadata/metadata_internal.h"

#include <string.h>

enum tag {
    TAG_INTEROP_INDEX = 0x0001, /* in DIRECTORY_INTEROP */
    TAG_WIDTH = 0x0100,
    TAG_HEIGHT = 0x0101,
    TAG_ORIENTATION = 0x0112,
    TAG_X_RESOLUTION = 0x011a,
    TAG_Y_RESOLUTION = 0x011b,
    TAG_EXIF = 0x8769,
    TAG_GPS = 0x8825,
    TAG_COLOUR_SPACE = 0xa001,
    TAG_SUBJECT_AREA = 0x9214,
    TAG_EXIF_WIDTH = 0xa002,
    TAG_EXIF_HEIGHT = 0xa003,
    TAG_INTEROP = 0xa005,
    TAG_FOCAL_X_RESOLUTION = 0xa20e, /* both are of the focal plane */
    TAG_FOCAL_Y_RESOLUTION = 0xa20f,
    TAG_SUBJECT_LOCATION = 0xa214,
};

/* A block of bytes that may be damaged. */
struct tiff {
    const uint8_t *bytes;
    size_t size;
    bool big;  /* big-endian */
    bool wide; /* BigTIFF, whose places and counts have 8 bytes; what is built of it is no BigTIFF */
    bool turned;
    struct metadata *metadata; /* notes what is left out */
    size_t at[DIRECTORIES];    /* the place of each directory; 0: there is none */
    size_t count[DIRECTORIES]; /* the number of entries that are kept */
    size_t text_bytes;         /* in the texts that are kept */
};

enum { TIFF_HEADER = 8, ENTRY = 12, WIDE_ENTRY = 20 };

/* A place or a count. One that is too large for 32 bits becomes the largest, which is in no block. */
static uint32_t read_place(const struct tiff *tiff, const uint8_t *bytes)
{
    if (!tiff->wide)
        return bytes_number(bytes, 4, tiff->big);
    const uint32_t high = bytes_number(bytes + (tiff->big ? 0 : 4), 4, tiff->big);
    return high > 0 ? UINT32_MAX : bytes_number(bytes + (tiff->big ? 4 : 0), 4, tiff->big);
}

/* One entry of a directory. */
struct entry {
    unsigned tag, type;
    uint32_t count;
    const uint8_t *value;
    size_t size; /* bytes of the value */
    bool is_text;
    enum exif_directory directory; /* the directory that it refers to; DIRECTORY_IMAGE: none */
    size_t at;                     /* the place of that directory */
};

/* A walk over the entries of a directory. */
struct walk {
    const struct tiff *tiff;
    enum exif_directory directory;
    size_t at, left;         /* the next entry, and the number of entries from there on */
    size_t budget;           /* limit of the bytes of values, because values may overlap and must not take long */
    uint8_t seen[65536 / 8]; /* a bit for each tag that was met */
};

/* Begin a walk over a directory. A missing directory has no entries. */
static void walk_begin(struct walk *walk, const struct tiff *tiff, enum exif_directory directory)
{
    const size_t at = tiff->at[directory];
    const size_t head = tiff->wide ? 8 : 2;
    *walk = (struct walk){.tiff = tiff, .directory = directory, .at = at + head, .budget = tiff->size};
    if (at < TIFF_HEADER || at > tiff->size || tiff->size - at < head)
        return;
    const uint8_t *count = tiff->bytes + at;
    const size_t claimed = tiff->wide ? read_place(tiff, count) : bytes_number(count, 2, tiff->big);
    const size_t there = (tiff->size - at - head) / (tiff->wide ? WIDE_ENTRY : ENTRY);
    walk->left = claimed < there ? claimed : there;
}

/* The directory that an entry refers to, or DIRECTORY_IMAGE if it refers to none. */
static enum exif_directory directory_below(enum exif_directory directory, unsigned tag)
{
    if (directory == DIRECTORY_IMAGE && tag == TAG_EXIF)
        return DIRECTORY_EXIF;
    if (directory == DIRECTORY_IMAGE && tag == TAG_GPS)
        return DIRECTORY_GPS;
    if (directory == DIRECTORY_EXIF && tag == TAG_INTEROP)
        return DIRECTORY_INTEROP;
    return DIRECTORY_IMAGE;
}

/* Is the entry carried? Its text may be cut. */
static bool entry_judge(struct walk *walk, struct entry *entry)
{
    struct metadata *metadata = walk->tiff->metadata;
    if (walk->tiff->turned && walk->directory == DIRECTORY_EXIF &&
        (entry->tag == TAG_SUBJECT_AREA || entry->tag == TAG_SUBJECT_LOCATION))
        return false;
    const uint32_t count = entry->count;
    const enum exif_action action =
        exif_judge(metadata, walk->directory, entry->tag, entry->type, &entry->count, entry->value);
    entry->size = (size_t)entry->count * exif_type_size(entry->type);
    entry->is_text = action == EXIF_TEXT;
    if (action == EXIF_UNKNOWN || entry->count < count)
        metadata_drop(metadata, METADATA_EXIF, METADATA_UNKNOWN);
    if (action == EXIF_LONG)
        metadata_drop(metadata, METADATA_EXIF, METADATA_NEEDS_KEEP_TEXT);
    return action == EXIF_CARRIED || action == EXIF_TEXT;
}

/* Read the entry at BYTES. Returns false if it cannot be kept. */
static bool entry_read(struct walk *walk, const uint8_t *bytes, struct entry *entry)
{
    const struct tiff *tiff = walk->tiff;
    *entry = (struct entry){
        .tag = bytes_number(bytes, 2, tiff->big),
        .type = bytes_number(bytes + 2, 2, tiff->big),
        .count = read_place(tiff, bytes + 4),
        .value = bytes + (tiff->wide ? 12 : 8),
    };
    const bool is_wide = tiff->wide && (entry->type == TYPE_LONG8 || entry->type == TYPE_IFD8); /* of places only */
    entry->size = (size_t)entry->count * (is_wide ? 8 : exif_type_size(entry->type));
    if (entry->size == 0 || entry->size > walk->budget)
        return false;
    walk->budget -= entry->size;
    if (entry->size > (tiff->wide ? 8 : 4)) {
        const size_t at = read_place(tiff, entry->value);
        if (at > tiff->size || entry->size > tiff->size - at)
            return false;
        entry->value = tiff->bytes + at;
    }
    entry->directory = directory_below(walk->directory, entry->tag);
    if (entry->directory == DIRECTORY_IMAGE)
        return !is_wide && entry_judge(walk, entry);
    entry->at = is_wide ? read_place(tiff, entry->value) : bytes_number(entry->value, 4, tiff->big);
    return (entry->type == TYPE_LONG || entry->type == TYPE_IFD || is_wide) && entry->count == 1 &&
           tiff->count[entry->directory] > 0;
}

/* Step to the next entry that is kept. If several entries have one tag, only the first counts. */
static bool walk_next(struct walk *walk, struct entry *entry)
{
    while (walk->left > 0) {
        const uint8_t *bytes = walk->tiff->bytes + walk->at;
        const unsigned tag = bytes_number(bytes, 2, walk->tiff->big), bit = 1u << (tag & 7);
        const bool again = walk->seen[tag >> 3] & bit;
        walk->at += walk->tiff->wide ? WIDE_ENTRY : ENTRY;
        walk->left--;
        walk->seen[tag >> 3] |= (uint8_t)bit;
        if (!again && entry_read(walk, bytes, entry))
            return true;
    }
    return false;
}

/* Open a block: find its directories, and count the entries of each that are kept. Returns false if there are none. */
static bool tiff_open(const uint8_t *bytes, size_t size, struct tiff *tiff)
{
    struct walk walk;
    struct entry entry;
    tiff->bytes = bytes;
    tiff->size = size;
    tiff->big = size > 0 && bytes[0] == 'M';
    tiff->wide = size >= 2 * TIFF_HEADER && bytes_number(bytes + 2, 2, tiff->big) == 43;
    if (size < TIFF_HEADER || (!tiff->wide && memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0))
        return false;
    tiff->at[DIRECTORY_IMAGE] = read_place(tiff, bytes + (tiff->wide ? 8 : 4));
    for (int d = 0; d < DIRECTORIES; d++)
        tiff->count[d] = 1; /* not known yet; 0 would mean that it is empty */
    for (int d = 0; d < DIRECTORIES; d++) {
        walk_begin(&walk, tiff, (enum exif_directory)d);
        while (walk_next(&walk, &entry))
            if (entry.directory != DIRECTORY_IMAGE)
                tiff->at[entry.directory] = entry.at;
    }
    for (int d = DIRECTORIES - 1; d >= 0; d--) { /* upwards: an entry that refers to an empty directory is dropped */
        size_t count = 0;
        walk_begin(&walk, tiff, (enum exif_directory)d);
        for (; walk_next(&walk, &entry); count++)
            tiff->text_bytes += entry.is_text ? entry.size : 0;
        tiff->count[d] = count;
    }
    return tiff->count[DIRECTORY_IMAGE] > 0;
}

/* Append SIZE zeros at an even place. Returns that place, or 0 if there is not enough memory. */
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
    bool big;           /* big-endian */
    size_t base;        /* the place of OUT in the file */
    const uint8_t *own; /* entries that the first directory has besides, and before those of the block */
    size_t own_count;
    size_t places[DIRECTORIES]; /* those in OUT that refer to each directory; 0: none */
};

/* Store a number, which has 4 bytes, or 2 for a count of entries. */
static void target_put(const struct target *target, size_t at, size_t size, size_t number)
{
    bytes_put_number(target->out->bytes + at, size, target->big, (uint32_t)number);
}

/* Copy the value of ENTRY to TO, in the order of the target. The parts of a rational number have 4 bytes each. */
static void target_copy(const struct target *target, const struct tiff *tiff, const struct entry *entry, size_t to)
{
    const size_t whole = exif_type_size(entry->type);
    const size_t each = entry->type == TYPE_RATIONAL || entry->type == TYPE_SIGNED_RATIONAL ? 4 : whole;
    uint8_t *out = target->out->bytes + to;
    memcpy(out, entry->value, entry->size);
    for (size_t at = 0; tiff->big != target->big && each > 1 && at < entry->size; at += each)
        for (size_t i = 0; i < each; i++)
            out[at + i] = entry->value[at + each - 1 - i];
}

/* Is there an entry of this tag among those of the target? */
static bool target_has(const struct target *target, unsigned tag)
{
    for (size_t i = 0; i < target->own_count; i++)
        if (bytes_number(target->own + i * ENTRY, 2, target->big) == tag)
            return true;
    return false;
}

/* Sort COUNT entries at TABLE by their tags where they are merged, and note those that refer to directories. */
static void target_sort(struct target *target, enum exif_directory directory, size_t table, size_t count)
{
    uint8_t *first = target->out->bytes + table, entry[ENTRY];
    for (size_t i = 1; target->own_count > 0 && i < count; i++) {
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
            target->places[below] = table + i * ENTRY + 8;
    }
}

/* Copy a directory to the end of the target. */
static bool tiff_copy(const struct tiff *tiff, enum exif_directory directory, struct target *target)
{
    struct walk walk;
    struct entry entry;
    const size_t own = directory == DIRECTORY_IMAGE ? target->own_count : 0;
    const size_t table = tiff_extend(target->out, 2 + (own + tiff->count[directory]) * ENTRY + 4);
    size_t at = table + 2;
    if (table == 0)
        return false;
    if (own > 0)
        memcpy(target->out->bytes + at, target->own, own * ENTRY);
    at += own * ENTRY;
    walk_begin(&walk, tiff, directory);
    while (walk_next(&walk, &entry)) {
        if (own > 0 && target_has(target, entry.tag))
            continue;
        const bool refers = entry.directory != DIRECTORY_IMAGE;
        target_put(target, at, 2, entry.tag);
        target_put(target, at + 2, 2, refers ? TYPE_LONG : entry.type);
        target_put(target, at + 4, 4, entry.count);
        if (!refers && entry.size <= 4) {
            target_copy(target, tiff, &entry, at + 8);
        } else if (!refers) {
            const size_t value = tiff_extend(target->out, entry.size);
            if (value == 0)
                return false;
            target_copy(target, tiff, &entry, value);
            target_put(target, at + 8, 4, target->base + value); /* four directories of 16 MB at most: it fits */
        }
        at += ENTRY;
    }
    const size_t count = (at - table - 2) / ENTRY;
    target_put(target, table, 2, count);
    memset(target->out->bytes + at, 0, 4); /* no next directory */
    target_sort(target, directory, table + 2, count);
    if (target->places[directory] > 0)
        target_put(target, target->places[directory], 4, target->base + table);
    return true;
}

/* Build directories from the entries of a block that are kept. */
static bool tiff_rebuild(const struct tiff *tiff, struct target *target)
{
    for (int d = 0; d < DIRECTORIES; d++)
        if (d == DIRECTORY_IMAGE || (tiff->count[d] > 0 && target->places[d] > 0))
            if (!tiff_copy(tiff, (enum exif_directory)d, target))
                return false;
    return true;
}

bool exif_append_directory(const struct blob *exif, size_t base, const uint8_t *own, size_t own_count, struct blob *out)
{
    struct metadata unlimited = {.keep_text = true};
    struct tiff tiff = {.metadata = &unlimited};
    struct target target = {.out = out, .base = base, .own = own, .own_count = own_count};
    if (exif->size == 0 || !tiff_open(exif->bytes, exif->size, &tiff))
        tiff = (struct tiff){.metadata = &unlimited};
    return tiff_rebuild(&tiff, &target);
}

/* Find TAG in a block from tiff_rebuild. */
static bool find_entry(const struct blob *exif, enum exif_directory directory, unsigned tag, struct entry *entry)
{
    struct metadata unlimited = {.keep_text = true};
    struct tiff tiff = {.metadata = &unlimited};
    struct walk walk;
    if (exif->bytes == NULL || !tiff_open(exif->bytes, exif->size, &tiff))
        return false;
    walk_begin(&walk, &tiff, directory);
    while (walk_next(&walk, entry))
        if (entry->tag == tag)
            return true;
    return false;
}

/* The value of TAG in a block from tiff_rebuild, if it is one number of a type from FIRST to LAST; else NULL. */
static uint8_t *find_number(const struct blob *exif, enum exif_directory directory, unsigned tag, enum exif_type first,
                            enum exif_type last)
{
    struct entry entry;
    return find_entry(exif, directory, tag, &entry) && entry.type >= first && entry.type <= last && entry.count == 1
               ? exif->bytes + (entry.value - exif->bytes)
               : NULL;
}

static bool is_big(const struct blob *exif)
{
    return exif->bytes[0] == 'M';
}

/* The number that the tag Orientation holds; -1 if there is none. */
static int read_orientation(const struct blob *exif)
{
    const uint8_t *value = find_number(exif, DIRECTORY_IMAGE, TAG_ORIENTATION, TYPE_SHORT, TYPE_SHORT);
    return value != NULL ? (int)bytes_number(value, 2, is_big(exif)) : -1;
}

int exif_orientation(const struct blob *exif)
{
    const int value = read_orientation(exif);
    return value >= 1 && value <= 8 ? value : 1;
}

enum exif_colours exif_colours(const struct blob *exif)
{
    const uint8_t *value = find_number(exif, DIRECTORY_EXIF, TAG_COLOUR_SPACE, TYPE_SHORT, TYPE_SHORT);
    struct entry index;
    if (value == NULL)
        return EXIF_COLOURS_NONE;
    if (bytes_number(value, 2, is_big(exif)) == 1)
        return EXIF_COLOURS_SRGB;
    return find_entry(exif, DIRECTORY_INTEROP, TAG_INTEROP_INDEX, &index) &&
                   bytes_begin(index.value, index.size, "R03", 3)
               ? EXIF_COLOURS_ADOBE
               : EXIF_COLOURS_OTHER;
}

/* Set a tag to NUMBER of TYPE, if the block has it and it holds one number. */
static void set_number(struct blob *exif, enum exif_directory directory, unsigned tag, enum exif_type type,
                       uint32_t number)
{
    uint8_t *value = find_number(exif, directory, tag, TYPE_SHORT, TYPE_LONG);
    if (value == NULL)
        return;
    bytes_put_number(value - 6, 2, is_big(exif), type); /* it is in the entry itself, after a type and a count */
    memset(value, 0, 4);
    bytes_put_number(value, type == TYPE_SHORT ? 2 : 4, is_big(exif), number);
}

/* Swap the values of two tags, if the block has both and each is one rational number. */
static void swap_rationals(struct blob *exif, enum exif_directory directory, unsigned a, unsigned b)
{
    uint8_t *first = find_number(exif, directory, a, TYPE_RATIONAL, TYPE_RATIONAL);
    uint8_t *second = find_number(exif, directory, b, TYPE_RATIONAL, TYPE_RATIONAL), kept[8];
    if (first == NULL || second == NULL)
        return;
    memcpy(kept, first, sizeof kept);
    memcpy(first, second, sizeof kept);
    memcpy(second, kept, sizeof kept);
}

bool exif_rebuild(struct metadata *metadata, const uint8_t *bytes, size_t size, bool turned, struct blob *exif)
{
    const uint64_t before = metadata->dropped;
    struct tiff tiff = {.turned = turned, .metadata = metadata};
    *exif = (struct blob){0};
    if (tiff_open(bytes, size, &tiff)) {
        const bool big = tiff.big;
        struct target target = {.out = exif, .big = big, .places = {[DIRECTORY_IMAGE] = 4}};
        if (!blob_append(exif, big ? "MM\0*\0\0\0" : "II*\0\0\0\0", TIFF_HEADER) || !tiff_rebuild(&tiff, &target)) {
            blob_free(exif);
            return false;
        }
    }
    metadata->text_bytes += tiff.text_bytes;
    if (exif->size == 0 && metadata->dropped == before)
        metadata_drop(metadata, METADATA_EXIF, METADATA_DAMAGED);
    const int orientation = read_orientation(exif);
    if (orientation == 0 || orientation > 8) /* it has no meaning, and readers treat it differently */
        exif_set_upright(exif);
    return true;
}

void exif_set_upright(struct blob *exif)
{
    set_number(exif, DIRECTORY_IMAGE, TAG_ORIENTATION, TYPE_SHORT, 1);
}

void exif_set_sides(struct blob *exif, int width, int height)
{
    set_number(exif, DIRECTORY_IMAGE, TAG_WIDTH, TYPE_LONG, (uint32_t)width);
    set_number(exif, DIRECTORY_IMAGE, TAG_HEIGHT, TYPE_LONG, (uint32_t)height);
    set_number(exif, DIRECTORY_EXIF, TAG_EXIF_WIDTH, TYPE_LONG, (uint32_t)width);
    set_number(exif, DIRECTORY_EXIF, TAG_EXIF_HEIGHT, TYPE_LONG, (uint32_t)height);
}

void exif_swap_resolutions(struct blob *exif)
{
    swap_rationals(exif, DIRECTORY_IMAGE, TAG_X_RESOLUTION, TAG_Y_RESOLUTION);
    swap_rationals(exif, DIRECTORY_EXIF, TAG_FOCAL_X_RESOLUTION, TAG_FOCAL_Y_RESOLUTION);
}

/* Multiply the numerator of a tag, if the block has it and it is one rational number. */
static void scale_rational(struct blob *exif, unsigned tag, double factor)
{
    uint8_t *value = find_number(exif, DIRECTORY_EXIF, tag, TYPE_RATIONAL, TYPE_RATIONAL);
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
