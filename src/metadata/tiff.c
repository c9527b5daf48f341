/* SPDX-License-Identifier: MIT
 *
 * Metadata in the first directory of a TIFF: EXIF among the other entries, and a profile, XMP, IPTC and Photoshop's
 * resources as the values of one entry each. */
#include "metadata/metadata_internal.h"

#include "container/tiff.h"

#include <string.h>

/* ---- Reading ---- */

/* Read a resolution times SCALE: two numbers of 4 bytes each, whose quotient is rounded to the nearest. */
static uint32_t read_rational(const struct tiff_directory *directory, unsigned tag, uint64_t scale)
{
    struct tiff_entry entry;
    if (!tiff_find(directory, tag, &entry) || entry.type != TIFF_TYPE_RATIONAL)
        return 0;
    const uint64_t above = scale * bytes_number(entry.value, 4, directory->big);
    const uint64_t below = bytes_number(entry.value + 4, 4, directory->big);
    const uint64_t number = below > 0 ? (above + below / 2) / below : 0;
    return number <= INT32_MAX ? (uint32_t)number : 0;
}

/* Read the resolution: only a ratio, or in pixels per inch, or per centimetre, which become those per metre. */
static void read_resolution(struct metadata *metadata, const struct tiff_directory *directory)
{
    static const enum resolution_unit units[] = {[1] = RESOLUTION_ASPECT, RESOLUTION_INCH, RESOLUTION_METRE};
    const uint64_t unit = tiff_find_number(directory, TIFF_TAG_RESOLUTION_UNIT, 2), scale = unit == 3 ? 100 : 1;
    if (unit >= 1 && unit <= 3)
        metadata->resolution = (struct resolution){.unit = units[unit],
                                                   .horizontal = read_rational(directory, TIFF_TAG_X_RESOLUTION, scale),
                                                   .vertical = read_rational(directory, TIFF_TAG_Y_RESOLUTION, scale)};
}

/* IPTC without Photoshop's resources becomes one of them. Some writers count it in numbers of 4 bytes. */
static bool add_iptc(struct metadata *metadata, const struct tiff_entry *entry)
{
    uint8_t head[12] = {'8', 'B', 'I', 'M', 4, 4};
    struct blob resource = {0};
    if (entry->size > METADATA_PART_MAX)
        return metadata_drop(metadata, METADATA_IPTC, METADATA_TOO_LARGE);
    put_big32(head + 8, (uint32_t)entry->size);
    const bool done = blob_append(&resource, head, sizeof head) && blob_append(&resource, entry->value, entry->size) &&
                      metadata_add_resources(metadata, resource.bytes, resource.size);
    blob_free(&resource);
    return done;
}

bool exif_says_nothing(const struct blob *exif)
{
    struct tiff_directory directory;
    bool done = exif->size > 0 && tiff_open_first(exif->bytes, exif->size, &directory);
    struct tiff_entry entry;
    for (size_t i = 0; done && i < directory.count; i++)
        done = tiff_read_entry(&directory, i, &entry) &&
               (entry.tag == TIFF_TAG_WIDTH || entry.tag == TIFF_TAG_HEIGHT || entry.tag == TIFF_TAG_X_RESOLUTION ||
                entry.tag == TIFF_TAG_Y_RESOLUTION || entry.tag == TIFF_TAG_RESOLUTION_UNIT ||
                (entry.tag == TIFF_TAG_ORIENTATION && exif_orientation(exif) == 1));
    return done;
}

/* Add EXIF of a directory of the file. */
static bool add_exif_of_directory(struct metadata *metadata, const struct tiff_directory *directory)
{
    metadata->directory = tiff_start(directory);
    const bool done = metadata_add_exif_of_file(metadata, directory->bytes, directory->size);
    metadata->directory = 0;
    if (exif_says_nothing(&metadata->exif))
        blob_free(&metadata->exif);
    return done;
}

/* If the first directory is that of a smaller size of the picture, the picture has what it lacks from there. */
bool metadata_read_tiff(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error)
{
    struct tiff_directory first, own;
    struct tiff_entry entry;
    int pages;
    metadata->orientation = 1;
    if (!tiff_open_first(bytes, size, &first))
        return metadata_read_end(true, metadata, error);
    const int page = tiff_find_page(&first, metadata->page, &own, &pages);
    const struct tiff_directory *ways[] = {&own, metadata->page == 0 && page > 1 ? &first : &own};
    bool done = true;
    for (int i = 0; done && i < 1 + (ways[1] != &own); i++) {
        const struct tiff_directory *directory = ways[i];
        if (metadata->resolution.unit == RESOLUTION_NONE)
            read_resolution(metadata, directory);
        if (metadata->exif.size == 0)
            done = add_exif_of_directory(metadata, directory);
        if (done && metadata->icc.size == 0 && tiff_find(directory, TIFF_TAG_ICC, &entry))
            done = metadata_add_icc(metadata, entry.value, entry.size);
        if (done && tiff_find(directory, TIFF_TAG_XMP, &entry))
            done = metadata_add_xmp(metadata, entry.value, entry.size);
        if (done && metadata->iptc.size == 0 && tiff_find(directory, TIFF_TAG_PHOTOSHOP, &entry))
            done = metadata_add_resources(metadata, entry.value, entry.size);
        if (done && metadata->iptc.size == 0 && tiff_find(directory, TIFF_TAG_IPTC, &entry))
            done = add_iptc(metadata, &entry);
    }
    return metadata_read_end(done, metadata, error);
}

/* ---- Writing ---- */

enum { ENTRY = 12, HEADER = 8, OWN_MAX = 32 };

/* Entries of the first directory, and their values, which will be at byte BASE of the file. */
struct directory {
    uint8_t entries[OWN_MAX * ENTRY];
    size_t count, base;
    struct blob values;
    bool done;
};

/* Add an entry of COUNT times TYPE. VALUE has SIZE bytes, at least 4, little-endian. */
static void add_tag(struct directory *directory, unsigned tag, enum tiff_type type, size_t count, const uint8_t *value,
                    size_t size)
{
    uint8_t *entry = directory->entries + directory->count++ * ENTRY;
    bytes_put_number(entry, 2, false, tag);
    bytes_put_number(entry + 2, 2, false, type);
    bytes_put_number(entry + 4, 4, false, (uint32_t)count);
    memcpy(entry + 8, value, 4);
    if (size <= 4)
        return;
    bytes_put_number(entry + 8, 4, false, (uint32_t)(directory->base + directory->values.size));
    directory->done = directory->done && blob_append(&directory->values, value, size) &&
                      blob_append(&directory->values, "", size & 1);
}

static void add_blob(struct directory *directory, unsigned tag, enum tiff_type type, const struct blob *blob)
{
    if (blob->size >= 4)
        add_tag(directory, tag, type, blob->size, blob->bytes, blob->size);
}

bool metadata_exif_says(const struct blob *exif, const struct resolution *resolution)
{
    struct metadata found = {0};
    struct tiff_directory directory;
    if (exif->size > 0 && tiff_open_first(exif->bytes, exif->size, &directory))
        read_resolution(&found, &directory);
    return found.resolution.unit == resolution->unit && found.resolution.horizontal == resolution->horizontal &&
           found.resolution.vertical == resolution->vertical;
}

/* Add the resolution, in numbers per inch or centimetre, unless EXIF does. */
static void add_resolution(struct directory *directory, const struct metadata *metadata)
{
    const struct resolution *resolution = &metadata->resolution;
    const uint32_t sides[2] = {resolution->horizontal, resolution->vertical};
    const bool is_metre = resolution->unit == RESOLUTION_METRE;
    if (resolution->unit == RESOLUTION_NONE || metadata_exif_says(&metadata->exif, resolution))
        return;
    for (unsigned i = 0; i < 2; i++) {
        uint8_t value[8];
        bytes_put_number(value, 4, false, sides[i]);
        bytes_put_number(value + 4, 4, false, is_metre ? 100 : 1);
        add_tag(directory, TIFF_TAG_X_RESOLUTION + i, TIFF_TYPE_RATIONAL, 1, value, sizeof value);
    }
    const uint8_t unit[4] = {resolution->unit == RESOLUTION_ASPECT ? 1 : resolution->unit == RESOLUTION_INCH ? 2 : 3};
    add_tag(directory, TIFF_TAG_RESOLUTION_UNIT, TIFF_TYPE_SHORT, 1, unit, sizeof unit);
}

/* Has the file more than one channel of colour? */
static bool is_grey(const uint8_t *bytes, size_t size)
{
    struct tiff_directory directory;
    return tiff_open_first(bytes, size, &directory) &&
           tiff_find_number(&directory, TIFF_TAG_PHOTOMETRIC, TIFF_RGB) <= TIFF_BLACK_IS_0;
}

/* The first directory is written again, after the end of the file, with the entries of the old one, whose values stay
 * where they are. The files of gpuconv are little-endian; a BigTIFF is larger than 4 GB and gets no metadata. */
static bool write_directory(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint64_t *dropped,
                            struct error *error)
{
    struct tiff_directory first;
    struct directory directory = {.base = *size + (*size & 1), .done = true};
    struct blob added = {0};
    const bool has_icc = metadata_has_icc_for(metadata, is_grey(*bytes, *size), dropped);
    if (!has_icc && metadata->exif.size == 0 && metadata->xmp.size == 0 && metadata->iptc.size == 0 &&
        metadata->resolution.unit == RESOLUTION_NONE)
        return true;
    if (!tiff_open_first(*bytes, *size, &first) || first.wide || first.count > OWN_MAX - 8 ||
        *size + 4 * metadata_bytes(metadata) > INT32_MAX) {
        *dropped |= metadata_bit(METADATA_EXIF, METADATA_TOO_LARGE);
        return true;
    }
    memcpy(directory.entries, *bytes + first.at, first.count * ENTRY);
    directory.count = first.count;
    if (has_icc)
        add_blob(&directory, TIFF_TAG_ICC, TIFF_TYPE_UNDEFINED, &metadata->icc);
    add_blob(&directory, TIFF_TAG_XMP, TIFF_TYPE_BYTE, &metadata->xmp);
    add_blob(&directory, TIFF_TAG_PHOTOSHOP, TIFF_TYPE_BYTE, &metadata->iptc);
    add_resolution(&directory, metadata);
    bool done = directory.done && blob_append(&added, "\0", (*size & 1)) &&
                blob_append(&added, directory.values.bytes, directory.values.size) && blob_append(&added, "\0", 2);
    const size_t offset = *size + added.size;
    done = done && exif_append_directory(&metadata->exif, *size, directory.entries, directory.count, &added);
    blob_free(&directory.values);
    if (!metadata_insert(done, &added, *size, bytes, size, error))
        return false;
    bytes_put_number(*bytes + 4, 4, false, (uint32_t)offset);
    return true;
}

bool metadata_write_tiff(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint64_t *dropped,
                         struct error *error)
{
    struct adapted adapted;
    bool done = metadata_adapt(metadata, METADATA_OF_TIFF, is_grey(*bytes, *size), &adapted, dropped);
    done = done ? write_directory(&adapted.metadata, bytes, size, dropped, error) : error_no_memory(error, "metadata");
    metadata_adapted_free(&adapted);
    return done;
}
