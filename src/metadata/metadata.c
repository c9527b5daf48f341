/* SPDX-License-Identifier: MIT */
#include "metadata/metadata_internal.h"

#include "base/text.h"
#include "container/zlib.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bytes_begin(const uint8_t *bytes, size_t size, const char *head, size_t head_size)
{
    return size >= head_size && memcmp(bytes, head, head_size) == 0;
}

bool metadata_is_exif(const uint8_t *bytes, size_t size)
{
    return size >= sizeof EXIF_HEAD && bytes_begin(bytes, size, EXIF_HEAD, sizeof EXIF_HEAD - 1);
}

/* ---- Dropped parts ---- */

uint64_t metadata_bit(enum metadata_part part, enum metadata_reason reason)
{
    static_assert(METADATA_PARTS * METADATA_REASONS <= 64, "a bit for each");
    return (uint64_t)1 << ((unsigned)part * METADATA_REASONS + (unsigned)reason);
}

uint64_t metadata_without_notes(uint64_t dropped)
{
    const uint64_t maker = metadata_bit(METADATA_EXIF, METADATA_MAKER);
    return dropped & ~(maker | metadata_bit(METADATA_CHUNK, METADATA_UNKNOWN));
}

const char *metadata_part_name(enum metadata_part part)
{
    static const char *const parts[METADATA_PARTS] = {
        [METADATA_ICC] = "ICC profile",
        [METADATA_EXIF] = "EXIF",
        [METADATA_XMP] = "XMP",
        [METADATA_IPTC] = "IPTC",
        [METADATA_TEXT] = "text",
        [METADATA_COLOUR] = "gamma or colour space",
        [METADATA_CHUNK] = "another chunk",
        [METADATA_RESOLUTION] = "resolution",
        [METADATA_C2PA] = "C2PA",
    };
    return parts[part];
}

void metadata_print_dropped(uint64_t dropped, char *text, size_t size)
{
    static const char *const reasons[METADATA_REASONS] = {
        [METADATA_DAMAGED] = "is damaged",
        [METADATA_TOO_LARGE] = "is too large",
        [METADATA_OTHER_COLOUR] = "is for other colours",
        [METADATA_UNKNOWN] = "parts of an unknown kind",
        [METADATA_NOT_SUPPORTED] = "the format has none",
        [METADATA_NEEDS_KEEP_TEXT] = "parts need --keep-text",
        [METADATA_LOSES_COLOURS] = "the colours look different without it",
    };
    char word[64];
    text[0] = '\0';
    for (enum metadata_part part = 0; part < METADATA_PARTS; part++)
        for (enum metadata_reason reason = 0; reason < METADATA_REASONS; reason++)
            if (dropped & metadata_bit(part, reason)) {
                snprintf(word, sizeof word, "%s (%s)",
                         part == METADATA_CHUNK && reason == METADATA_UNKNOWN ? "other chunks or segments"
                                                                              : metadata_part_name(part),
                         part == METADATA_C2PA                                     ? "signs the input only"
                         : part == METADATA_EXIF && reason == METADATA_MAKER       ? "maker's notes"
                         : part != METADATA_ICC && reason == METADATA_OTHER_COLOUR ? "has the old size or orientation"
                                                                                   : reasons[reason]);
                text_add_word(text, size, word, NULL);
            }
}

bool metadata_drop(struct metadata *metadata, enum metadata_part part, enum metadata_reason reason)
{
    metadata->dropped |= metadata_bit(part, reason);
    return true;
}

/* ---- Differences ---- */

static bool fields_differ(bool has_a, const void *a, bool has_b, const void *b, size_t size)
{
    return has_a != has_b || (has_a && memcmp(a, b, size) != 0);
}

/* Pixels per metre, or only their ratio, may be rounded by a format. */
static bool resolutions_differ(const struct resolution *a, const struct resolution *b)
{
    enum { ROUNDED = 20 };
    uint32_t sides[2][2];
    if (a->unit == RESOLUTION_NONE || b->unit == RESOLUTION_NONE)
        return a->unit != b->unit;
    if (a->unit == RESOLUTION_ASPECT || b->unit == RESOLUTION_ASPECT)
        return a->unit != b->unit || (uint64_t)a->horizontal * b->vertical != (uint64_t)a->vertical * b->horizontal;
    for (int i = 0; i < 2; i++) {
        sides[i][0] = resolution_per_metre(i == 0 ? a : b, false);
        sides[i][1] = resolution_per_metre(i == 0 ? a : b, true);
    }
    return abs((int)sides[0][0] - (int)sides[1][0]) > ROUNDED || abs((int)sides[0][1] - (int)sides[1][1]) > ROUNDED;
}

unsigned metadata_find_differences(struct metadata *a, struct metadata *b)
{
    unsigned differences = 0;
    struct metadata *const both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        exif_set_upright(&both[i]->exif);
        if (exif_says_nothing(&both[i]->exif))
            blob_free(&both[i]->exif);
    }
    for (enum metadata_part part = 0; part < METADATA_BLOBS; part++) {
        const struct blob *one = &a->blobs[part], *other = &b->blobs[part];
        if (one->size != other->size || (one->size > 0 && memcmp(one->bytes, other->bytes, one->size) != 0))
            differences |= 1u << part;
    }
    if (fields_differ(a->has_chromaticities, a->chromaticities, b->has_chromaticities, b->chromaticities, 32) ||
        fields_differ(a->has_gamma, a->gamma, b->has_gamma, b->gamma, 4) ||
        fields_differ(a->has_coding, a->coding, b->has_coding, b->coding, 4) ||
        fields_differ(a->has_srgb, &a->intent, b->has_srgb, &b->intent, 1) ||
        fields_differ(a->has_mastering, a->mastering, b->has_mastering, b->mastering, 24) ||
        fields_differ(a->has_light, a->light, b->has_light, b->light, 8))
        differences |= 1u << METADATA_COLOUR;
    if (resolutions_differ(&a->resolution, &b->resolution))
        differences |= 1u << METADATA_RESOLUTION;
    if (((a->dropped ^ b->dropped) & metadata_bit(METADATA_C2PA, METADATA_UNKNOWN)) != 0)
        differences |= 1u << METADATA_C2PA;
    return differences;
}

/* ---- Reading ---- */

bool metadata_inflate(struct metadata *metadata, enum metadata_part part, const uint8_t *bytes, size_t *size,
                      size_t max, struct blob *out)
{
    const size_t left = METADATA_MAX - metadata->inflated;
    if (left == 0)
        return metadata_drop(metadata, part, METADATA_TOO_LARGE);
    const size_t wanted = left < max ? left : max, allowed = wanted < metadata->max ? wanted : metadata->max;
    const enum zlib_result result = zlib_inflate_blob(bytes, size, allowed, out);
    metadata->needs_more = metadata->needs_more || (result == ZLIB_TOO_LARGE && allowed < wanted);
    metadata->inflated += out->size;
    if (result == ZLIB_DONE)
        return true;
    blob_free(out);
    metadata_drop(metadata, part, result == ZLIB_TOO_LARGE ? METADATA_TOO_LARGE : METADATA_DAMAGED);
    return result != ZLIB_NO_MEMORY;
}

bool metadata_add(struct metadata *metadata, enum metadata_part part, const void *bytes, size_t size)
{
    if (size > METADATA_PART_MAX || size > METADATA_MAX - metadata_bytes(metadata))
        return metadata_drop(metadata, part, METADATA_TOO_LARGE);
    return blob_append(&metadata->blobs[part], bytes, size);
}

/* ---- Texts ---- */

bool metadata_is_text(const uint8_t *bytes, size_t size)
{
    enum { ESCAPE = 0x1b };
    for (size_t i = 0; i < size; i++)
        if (bytes[i] < ' ' && bytes[i] != 0 && bytes[i] != ESCAPE && !(bytes[i] >= '\t' && bytes[i] <= '\r'))
            return false;
    return true;
}

bool metadata_text_fits(const struct metadata *metadata, size_t size)
{
    return metadata->keep_text || (size <= METADATA_TEXT_MAX && metadata->text_bytes + size <= METADATA_TEXTS_MAX);
}

bool metadata_take_text(struct metadata *metadata, enum metadata_part part, size_t size)
{
    if (!metadata_text_fits(metadata, size))
        return !metadata_drop(metadata, part, METADATA_NEEDS_KEEP_TEXT);
    metadata->text_bytes += size;
    return true;
}

bool metadata_add_text(struct metadata *metadata, const uint8_t *text, size_t size, const uint8_t *chunk,
                       size_t chunk_size)
{
    if (!metadata_is_text(text, size))
        return metadata_drop(metadata, METADATA_TEXT, METADATA_UNKNOWN);
    return !metadata_take_text(metadata, METADATA_TEXT, size > chunk_size ? size : chunk_size) ||
           metadata_add(metadata, METADATA_TEXT, chunk, chunk_size);
}

bool metadata_add_exif_of_file(struct metadata *metadata, const uint8_t *bytes, size_t size)
{
    struct blob exif = {0};
    const size_t before = metadata->text_bytes;
    const bool is_first = metadata->exif.size == 0;
    if (!is_first && exif_orientation(&metadata->exif) > 0)
        return true;
    bool done = exif_rebuild(metadata, bytes, size, false, &exif);
    metadata->orientation = exif_orientation(&exif) > 0 ? exif_orientation(&exif) : 1;
    if (!is_first) {
        metadata_drop(metadata, METADATA_EXIF, METADATA_UNKNOWN);
        metadata->text_bytes = before;
    } else if (metadata_text_fits(metadata, 0)) {
        done = done && metadata_add(metadata, METADATA_EXIF, exif.bytes, exif.size);
    } else {
        metadata_drop(metadata, METADATA_EXIF, METADATA_NEEDS_KEEP_TEXT);
        metadata->text_bytes = before;
    }
    blob_free(&exif);
    return done;
}

bool metadata_add_exif(struct metadata *metadata, const uint8_t *bytes, size_t size)
{
    if (metadata_is_exif(bytes, size)) { /* wrong in a PNG, but common */
        bytes += sizeof EXIF_HEAD;
        size -= sizeof EXIF_HEAD;
    }
    return size > METADATA_PART_MAX ? metadata_drop(metadata, METADATA_EXIF, METADATA_TOO_LARGE)
                                    : metadata_add_exif_of_file(metadata, bytes, size);
}

bool metadata_add_xmp(struct metadata *metadata, const uint8_t *bytes, size_t size)
{
    struct blob xmp = {0};
    while (size > 0 && bytes[size - 1] == 0)
        size--;
    if (metadata->xmp.size > 0)
        return true;
    if (size > METADATA_PART_MAX)
        return metadata_drop(metadata, METADATA_XMP, METADATA_TOO_LARGE);
    const bool done =
        xmp_rebuild(metadata, bytes, size, false, &xmp) && metadata_add(metadata, METADATA_XMP, xmp.bytes, xmp.size);
    blob_free(&xmp);
    return done;
}

bool metadata_read_end(bool done, struct metadata *metadata, struct error *error)
{
    const struct resolution *r = &metadata->resolution;
    metadata->has_srgb = metadata->has_srgb && metadata->icc.size == 0; /* a file may have only one of the two */
    if (r->horizontal == 0 || r->vertical == 0 || r->horizontal > INT32_MAX || r->vertical > INT32_MAX ||
        (r->unit == RESOLUTION_ASPECT && r->horizontal == r->vertical)) /* square pixels, which is the default */
        metadata->resolution = (struct resolution){RESOLUTION_NONE, 0, 0};
    return done || error_no_memory(error, "metadata");
}

bool metadata_read_none(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error)
{
    (void)bytes;
    (void)size;
    metadata->orientation = 1;
    return metadata_read_end(true, metadata, error);
}

/* ---- Turning ---- */

bool metadata_rebuild_turned(struct metadata *metadata)
{
    struct metadata unlimited = {.keep_text = true};
    struct blob exif = {0}, xmp = {0};
    const bool done = exif_rebuild(&unlimited, metadata->exif.bytes, metadata->exif.size, true, &exif) &&
                      xmp_rebuild(&unlimited, metadata->xmp.bytes, metadata->xmp.size, true, &xmp);
    metadata->dropped |= unlimited.dropped & metadata_bit(METADATA_EXIF, METADATA_OTHER_COLOUR);
    blob_free(&metadata->exif);
    blob_free(&metadata->xmp);
    metadata->exif = exif;
    metadata->xmp = xmp;
    return done;
}

/* Does XMP say that the picture is not upright? */
static bool xmp_turns(const struct blob *xmp)
{
    static const char name[] = ":Orientation", between[] = " \t\r\n=>\"'";
    const uint8_t *at = xmp->bytes, *end = at + xmp->size;
    while (xmp->size > 0 && (at = memmem(at, (size_t)(end - at), name, sizeof name - 1)) != NULL) {
        at += sizeof name - 1;
        while (at < end && memchr(between, *at, sizeof between - 1) != NULL)
            at++;
        if (at < end && *at >= '2' && *at <= '8')
            return true;
    }
    return false;
}

/* Turn chroma subsampling by 90 degrees. A factor of 4 in a column cannot be written, so a factor of 4 in a row becomes
 * unknown. */
static struct chroma_subsampling turn_chroma(struct chroma_subsampling chroma)
{
    if (chroma.horizontal > 2)
        return (struct chroma_subsampling){0, 0};
    return (struct chroma_subsampling){.horizontal = chroma.vertical, .vertical = chroma.horizontal};
}

/* Let METADATA and CHROMA be of a picture whose rows have become columns. */
static void swap_axes(struct metadata *metadata, struct chroma_subsampling *chroma)
{
    const uint32_t horizontal = metadata->resolution.horizontal;
    metadata->resolution.horizontal = metadata->resolution.vertical;
    metadata->resolution.vertical = horizontal;
    exif_swap_resolutions(&metadata->exif);
    *chroma = turn_chroma(*chroma);
}

bool metadata_orient(struct metadata *metadata, struct image *image, struct chroma_subsampling *chroma,
                     struct error *error)
{
    const int orientation = metadata->orientation;
    if (orientation > 1) {
        if (!image_orient(image, orientation, error))
            return false;
        if (!metadata_rebuild_turned(metadata))
            return error_no_memory(error, "metadata");
        metadata->orientation = 1;
        exif_set_upright(&metadata->exif);
    }
    if (orientation_swaps(orientation))
        swap_axes(metadata, chroma);
    exif_set_sides(&metadata->exif, image->width, image->height);
    return true;
}

bool metadata_resize(struct metadata *metadata, const struct geometry *geometry, struct chroma_subsampling *chroma,
                     struct error *error)
{
    if (!geometry->is_moved)
        return true;
    if (xmp_turns(&metadata->xmp)) /* and nothing else does: metadata_orient would have dropped it */
        metadata_drop(metadata, METADATA_XMP, METADATA_OTHER_COLOUR);
    if (!metadata_rebuild_turned(metadata))
        return error_no_memory(error, "metadata");
    if (geometry->is_turned)
        swap_axes(metadata, chroma);
    exif_set_sides(&metadata->exif, geometry->width, geometry->height);
    exif_scale_focal_plane(&metadata->exif, geometry->horizontal, geometry->vertical);
    return true;
}

/* ---- Writing ---- */

bool metadata_has_icc_for(const struct metadata *metadata, bool grey, uint64_t *dropped)
{
    if (metadata->icc.size == 0)
        return false;
    if (memcmp(metadata->icc.bytes + ICC_COLOUR, grey ? "GRAY" : "RGB ", 4) == 0)
        return true;
    *dropped |= metadata_bit(METADATA_ICC, METADATA_OTHER_COLOUR);
    return false;
}

bool metadata_write_none(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint64_t *dropped,
                         struct error *error)
{
    struct adapted adapted;
    (void)bytes;
    (void)size;
    const bool done = metadata_adapt(metadata, METADATA_OF_NONE, false, &adapted, dropped);
    metadata_adapted_free(&adapted);
    return done || error_no_memory(error, "metadata");
}

bool metadata_insert(bool done, struct blob *added, size_t offset, uint8_t **bytes, size_t *size, struct error *error)
{
    if (done && added->size > 0) {
        uint8_t *larger = realloc(*bytes, *size + added->size);
        if (larger == NULL) {
            done = false;
        } else {
            memmove(larger + offset + added->size, larger + offset, *size - offset);
            memcpy(larger + offset, added->bytes, added->size);
            *bytes = larger;
            *size += added->size;
        }
    }
    blob_free(added);
    return done || error_no_memory(error, "metadata");
}

size_t metadata_bytes(const struct metadata *metadata)
{
    return metadata->icc.size + metadata->exif.size + metadata->xmp.size + metadata->iptc.size + metadata->texts.size;
}

void metadata_free(struct metadata *metadata)
{
    for (int i = 0; i < METADATA_BLOBS; i++)
        blob_free(&metadata->blobs[i]);
    *metadata = (struct metadata){0};
}
