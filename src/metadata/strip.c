/* SPDX-License-Identifier: MIT
 *
 * What --strip drops of the metadata of a file. */
#include "metadata/metadata_internal.h"

#include <string.h>

bool metadata_strips(const struct metadata *metadata, enum metadata_class class)
{
    static const unsigned kinds[] = {[METADATA_COPYRIGHT] = 1 << KEEP_COPYRIGHT, [METADATA_GPS] = 1 << KEEP_GPS};
    const enum metadata_level level = metadata->strip.level;
    if (level == STRIP_NOTHING || metadata->strip.kept & kinds[class])
        return false;
    return level == STRIP_ALL || (level == STRIP_MOST ? class != METADATA_COPYRIGHT : class >= METADATA_PRIVATE);
}

bool metadata_strips_colours(const struct metadata *metadata, struct metadata_strip strip, bool grey)
{
    return !(strip.kept & 1 << METADATA_ICC) &&
           (strip.level == STRIP_ALL || (strip.level == STRIP_MOST && metadata_is_srgb(metadata, grey)));
}

void metadata_drop_colours(struct metadata *metadata)
{
    blob_free(&metadata->icc);
    metadata->has_chromaticities = metadata->has_gamma = metadata->has_coding = metadata->has_srgb = false;
    metadata->has_mastering = metadata->has_light = false;
}

/* The class of a chunk of a PNG, by the keyword at the beginning of its data. */
static enum metadata_class class_of_text(const uint8_t *data, size_t size)
{
    static const struct {
        const char *keyword;
        enum metadata_class class;
    } classes[] = {
        {"Copyright", METADATA_COPYRIGHT},      {"Author", METADATA_PRIVATE}, {"Artist", METADATA_PRIVATE},
        {"Raw profile type", METADATA_PRIVATE}, {"GPS", METADATA_GPS},
    };
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (size >= strlen(classes[i].keyword) && memcmp(data, classes[i].keyword, strlen(classes[i].keyword)) == 0)
            return classes[i].class;
    return METADATA_PUBLIC;
}

/* Keep the chunks whose class the METADATA do not strip. Returns false if there is not enough memory. */
static bool strip_texts(struct metadata *metadata)
{
    enum { HEAD = 8, AROUND = 12 }; /* bytes before the data of a chunk, and in all besides these */
    struct blob kept = {0};
    bool done = true;
    if (metadata->strip.kept & 1 << METADATA_TEXT)
        return true;
    for (size_t at = 0; done && at < metadata->texts.size;) {
        const uint8_t *chunk = metadata->texts.bytes + at;
        const size_t size = big32(chunk);
        if (!metadata_strips(metadata, class_of_text(chunk + HEAD, size)))
            done = blob_append(&kept, chunk, size + AROUND);
        at += size + AROUND;
    }
    blob_free(&metadata->texts);
    metadata->texts = kept;
    return done;
}

/* Replace a part that is not kept by what a function makes of it. */
static bool rebuild(struct metadata *metadata, enum metadata_part number,
                    bool (*make)(struct metadata *, const uint8_t *, size_t, bool, struct blob *))
{
    struct blob *part = &metadata->blobs[number];
    struct metadata rules = {.keep_text = true, .strip = metadata->strip};
    struct blob rebuilt = {0};
    if (part->size == 0 || metadata->strip.kept >> number & 1)
        return true;
    const bool done = make(&rules, part->bytes, part->size, false, &rebuilt);
    blob_free(part);
    *part = rebuilt;
    return done;
}

static bool add_resources(struct metadata *rules, const uint8_t *bytes, size_t size, bool turned, struct blob *iptc)
{
    (void)turned;
    const bool done = metadata_add_resources(rules, bytes, size);
    *iptc = rules->iptc;
    return done;
}

bool metadata_strip(struct metadata *metadata, struct metadata_strip strip, bool grey, struct error *error)
{
    const bool drops_colours = metadata_strips_colours(metadata, strip, grey);
    const bool changes = drops_colours && !metadata_is_srgb(metadata, grey);
    uint64_t kept = 0, unused = 0;
    if (strip.level == STRIP_NOTHING)
        return true;
    metadata->strip = strip;
    for (enum metadata_part part = 0; part < METADATA_BLOBS; part++)
        if (strip.kept >> part & 1)
            kept |= (((uint64_t)1 << METADATA_REASONS) - 1) << part * METADATA_REASONS;
    if (strip.level != STRIP_PRIVATE) {
        if (!(strip.kept & 1 << KEEP_RESOLUTION))
            metadata->resolution = (struct resolution){RESOLUTION_NONE, 0, 0};
        metadata->dropped &= kept;
        if (changes)
            metadata_drop(metadata, metadata->icc.size > 0 ? METADATA_ICC : METADATA_COLOUR, METADATA_LOSES_COLOURS);
    }
    if (drops_colours)
        metadata_drop_colours(metadata);
    if (strip.level == STRIP_MOST && !metadata_has_icc_for(metadata, grey, &unused))
        blob_free(&metadata->icc);
    return (rebuild(metadata, METADATA_EXIF, exif_rebuild) && rebuild(metadata, METADATA_XMP, xmp_rebuild) &&
            rebuild(metadata, METADATA_IPTC, add_resources) && strip_texts(metadata)) ||
           error_no_memory(error, "metadata");
}
