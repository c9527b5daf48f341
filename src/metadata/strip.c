/* SPDX-License-Identifier: MIT
 *
 * What --strip drops of the metadata of a file. */
#include "metadata/metadata_internal.h"

#include <string.h>

bool metadata_strips(const struct metadata *metadata, enum metadata_class class)
{
    return metadata->strip == STRIP_MOST ? class != METADATA_COPYRIGHT
                                         : metadata->strip == STRIP_PRIVATE && class == METADATA_PRIVATE;
}

bool metadata_strips_colours(const struct metadata *metadata, enum metadata_strip strip, bool grey)
{
    return strip == STRIP_ALL || (strip == STRIP_MOST && metadata_is_srgb(metadata, grey));
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
        {"Raw profile type", METADATA_PRIVATE}, {"GPS", METADATA_PRIVATE},
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

/* Replace a part by what a function makes of it. */
static bool rebuild(struct metadata *metadata, struct blob *part,
                    bool (*make)(struct metadata *, const uint8_t *, size_t, bool, struct blob *))
{
    struct metadata rules = {.keep_text = true, .strip = metadata->strip};
    struct blob rebuilt = {0};
    const bool done = part->size == 0 || make(&rules, part->bytes, part->size, false, &rebuilt);
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

bool metadata_strip(struct metadata *metadata, enum metadata_strip strip, bool grey, struct error *error)
{
    const bool drops_colours = metadata_strips_colours(metadata, strip, grey);
    const bool changes = strip == STRIP_ALL && !metadata_is_srgb(metadata, grey);
    uint64_t unused = 0;
    if (strip == STRIP_NOTHING)
        return true;
    if (strip != STRIP_PRIVATE) {
        metadata->resolution = (struct resolution){RESOLUTION_NONE, 0, 0};
        metadata->dropped =
            changes ? metadata_bit(metadata->icc.size > 0 ? METADATA_ICC : METADATA_COLOUR, METADATA_LOSES_COLOURS) : 0;
    }
    if (drops_colours)
        metadata_drop_colours(metadata);
    if (strip == STRIP_MOST && !metadata_has_icc_for(metadata, grey, &unused))
        blob_free(&metadata->icc);
    metadata->strip = strip;
    if (strip == STRIP_ALL) {
        for (enum metadata_part part = 0; part < METADATA_BLOBS; part++)
            blob_free(&metadata->blobs[part]);
        return true;
    }
    return (rebuild(metadata, &metadata->exif, exif_rebuild) && rebuild(metadata, &metadata->xmp, xmp_rebuild) &&
            rebuild(metadata, &metadata->iptc, add_resources) && strip_texts(metadata)) ||
           error_no_memory(error, "metadata");
}
