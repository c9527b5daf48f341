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
    bool big; /* big-endian */
    bool turned;
    struct metadata *metadata; /* notes what is left out */
    size_t at[DIRECTORIES];    /* the place of each directory; 0: there is none */
    size_t count[DIRECTORIES]; /* the number of entries that are kept */
    size_t text_bytes;         /* in the texts that are kept */
};

enum { TIFF_HEADER = 8, ENTRY = 12 };

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
    *walk = (struct walk){.tiff = tiff, .directory = directory, .at = at + 2, .budget = tiff->size};
    if (at < TIFF_HEADER || at > tiff->size || tiff->size - at < 2)
        return;
    const size_t claimed = bytes_number(tiff->bytes + at, 2, tiff->big), there = (tiff->size - at - 2) / ENTRY;
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
        .count = bytes_number(bytes + 4, 4, tiff->big),
        .value = bytes + 8,
    };
    entry->size = (size_t)entry->count * exif_type_size(entry->type);
    if (entry->size == 0 || entry->size > walk->budget)
        return false;
    walk->budget -= entry->size;
    if (entry->size > 4) {
        const size_t at = bytes_number(bytes + 8, 4, tiff->big);
        if (at > tiff->size || entry->size > tiff->size - at)
            return false;
        entry->value = tiff->bytes + at;
    }
    entry->directory = directory_below(walk->directory, entry->tag);
    if (entry->directory == DIRECTORY_IMAGE)
        return entry_judge(walk, entry);
    entry->at = bytes_number(entry->value, 4, tiff->big);
    return (entry->type == TYPE_LONG || entry->type == TYPE_IFD) && entry->count == 1 &&
           tiff->count[entry->directory] > 0;
}

/* Step to the next entry that is kept. If several entries have one tag, only the first counts. */
static bool walk_next(struct walk *walk, struct entry *entry)
{
    while (walk->left > 0) {
        const uint8_t *bytes = walk->tiff->bytes + walk->at;
        const unsigned tag = bytes_number(bytes, 2, walk->tiff->big), bit = 1u << (tag & 7);
        const bool again = walk->seen[tag >> 3] & bit;
        walk->at += ENTRY;
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
    if (size < TIFF_HEADER || (memcmp(bytes, "II*\0", 4) != 0 && memcmp(bytes, "MM\0*", 4) != 0))
        return false;
    tiff->at[DIRECTORY_IMAGE] = bytes_number(bytes + 4, 4, tiff->big);
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

/* Copy a directory to the end of OUT. PLACES are the places in OUT that refer to each directory. */
static bool tiff_copy(const struct tiff *tiff, enum exif_directory directory, size_t *places, struct blob *out)
{
    struct walk walk;
    struct entry entry;
    const size_t table = tiff_extend(out, 2 + tiff->count[directory] * ENTRY + 4); /* 4: no next directory */
    size_t at = table + 2;
    if (table == 0)
        return false;
    bytes_put_number(out->bytes + places[directory], 4, tiff->big, (uint32_t)table);
    bytes_put_number(out->bytes + table, 2, tiff->big, (unsigned)tiff->count[directory]);
    walk_begin(&walk, tiff, directory);
    for (; walk_next(&walk, &entry); at += ENTRY) {
        uint8_t *to = out->bytes + at;
        bytes_put_number(to, 2, tiff->big, entry.tag);
        bytes_put_number(to + 2, 2, tiff->big, entry.type);
        bytes_put_number(to + 4, 4, tiff->big, entry.count);
        if (entry.directory != DIRECTORY_IMAGE) {
            places[entry.directory] = at + 8;
        } else if (entry.size <= 4) {
            memcpy(to + 8, entry.value, entry.size);
        } else {
            const size_t value = tiff_extend(out, entry.size);
            if (value == 0)
                return false;
            memcpy(out->bytes + value, entry.value, entry.size);
            bytes_put_number(out->bytes + at + 8, 4, tiff->big,
                             (uint32_t)value); /* at most four directories of 16 MB, so it fits */
        }
    }
    return true;
}

/* Build a block from the entries of another that are kept. */
static bool tiff_rebuild(const struct tiff *tiff, struct blob *out)
{
    size_t places[DIRECTORIES] = {[DIRECTORY_IMAGE] = 4};
    if (!blob_append(out, tiff->bytes, TIFF_HEADER))
        return false;
    for (int d = 0; d < DIRECTORIES; d++)
        if (tiff->count[d] > 0 && (d == DIRECTORY_IMAGE || places[d] > 0) &&
            !tiff_copy(tiff, (enum exif_directory)d, places, out))
            return false;
    return true;
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
    if (tiff_open(bytes, size, &tiff) && !tiff_rebuild(&tiff, exif)) {
        blob_free(exif);
        return false;
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
