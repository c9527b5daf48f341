/* SPDX-License-Identifier: MIT
 *
 * THE TABLE of what the formats hold, and what is made of metadata that a format has no place for: a profile of a PNG's
 * colours, XMP of its texts, and EXIF of a resolution. All else is dropped with a word. */
#include "metadata/metadata_internal.h"

#include "container/png.h"
#include "container/zlib.h"

#include <stdio.h>
#include <string.h>

/* A part that only some formats hold. */
enum {
    HOLDS_ICC = 1,
    HOLDS_EXIF = 2,
    HOLDS_XMP = 4,
    HOLDS_IPTC = 8,
    HOLDS_RESOLUTION = 16,
    HOLDS_COMMENT = 32,
    HOLDS_CODING = 64
};

static const unsigned held[] = {
    [METADATA_OF_JPEG] = HOLDS_ICC | HOLDS_EXIF | HOLDS_XMP | HOLDS_IPTC | HOLDS_RESOLUTION | HOLDS_COMMENT,
    [METADATA_OF_TIFF] = HOLDS_ICC | HOLDS_EXIF | HOLDS_XMP | HOLDS_IPTC | HOLDS_RESOLUTION,
    [METADATA_OF_WEBP] = HOLDS_ICC | HOLDS_EXIF | HOLDS_XMP,
    [METADATA_OF_AVIF] = HOLDS_ICC | HOLDS_EXIF | HOLDS_XMP | HOLDS_CODING,
    [METADATA_OF_NONE] = 0,
};

/* ---- Texts ---- */

/* The properties of XMP for a PNG's keywords (PNG, third edition, 11.3.3.1; XMP, part 1, 8). */
static const struct property {
    const char *keyword, *name;
    const char *list; /* the kind of its list, in which it stands; NULL if in none */
} properties[] = {
    {"Title", "dc:title", "Alt"},      {"Author", "dc:creator", "Seq"},       {"Description", "dc:description", "Alt"},
    {"Copyright", "dc:rights", "Alt"}, {"Software", "xmp:CreatorTool", NULL}, {"Source", "dc:source", NULL},
};
enum { PROPERTIES = sizeof properties / sizeof *properties };

/* Append SIZE bytes of text, in UTF-8 or Latin-1, as XML has it. */
static bool append_text(struct blob *out, const uint8_t *text, size_t size, bool is_utf8)
{
    bool done = true;
    for (size_t i = 0; done && i < size; i++) {
        const uint8_t byte = text[i], two[2] = {(uint8_t)(0xc0 | byte >> 6), (uint8_t)(0x80 | (byte & 0x3f))};
        const char *escape = byte == '&' ? "&amp;" : byte == '<' ? "&lt;" : byte == '>' ? "&gt;" : NULL;
        done = escape != NULL               ? blob_append(out, escape, strlen(escape))
               : byte >= 0x80 && !is_utf8   ? blob_append(out, two, 2)
               : byte < ' ' && byte != '\n' ? blob_append(out, " ", 1)
                                            : blob_append(out, &byte, 1);
    }
    return done;
}

static bool append_property(struct blob *out, const struct property *property, const uint8_t *text, size_t size,
                            bool is_utf8)
{
    char open[128], close[128];
    const bool is_alt = property->list != NULL && strcmp(property->list, "Alt") == 0;
    int opened, closed;
    if (property->list == NULL) {
        opened = snprintf(open, sizeof open, "<%s>", property->name);
        closed = snprintf(close, sizeof close, "</%s>", property->name);
    } else {
        opened = snprintf(open, sizeof open, "<%s><rdf:%s><rdf:li%s>", property->name, property->list,
                          is_alt ? " xml:lang=\"x-default\"" : "");
        closed = snprintf(close, sizeof close, "</rdf:li></rdf:%s></%s>", property->list, property->name);
    }
    return blob_append(out, open, (size_t)opened) && append_text(out, text, size, is_utf8) &&
           blob_append(out, close, (size_t)closed);
}

/* Append the text of CHUNK, if XMP has a place for it, and if the packet XMP has not the property yet. *IS_LOST becomes
 * true if there is no place. */
static bool append_chunk(struct blob *out, const struct blob *xmp, const struct png_chunk *chunk, unsigned *seen,
                         bool *is_lost)
{
    bool compressed;
    const char *keyword = (const char *)chunk->data;
    const size_t start = png_text_start(chunk->type, chunk->data, chunk->size, &compressed);
    size_t i = 0, size = chunk->size - start;
    while (i < PROPERTIES && (strcmp(keyword, properties[i].keyword) != 0 || *seen >> i & 1))
        i++;
    *is_lost |= i == PROPERTIES;
    if (i == PROPERTIES || bytes_contain(xmp->bytes, xmp->size, properties[i].name))
        return true;
    struct blob inflated = {0};
    *seen |= 1u << i;
    if (compressed && zlib_inflate_blob(chunk->data + start, &size, METADATA_LONG_TEXT_MAX, &inflated) != ZLIB_DONE)
        return false; /* it was inflated before, so this is a lack of memory */
    const bool done = append_property(out, &properties[i], compressed ? inflated.bytes : chunk->data + start,
                                      compressed ? inflated.size : size, png_chunk_is(chunk, "iTXt"));
    blob_free(&inflated);
    return done;
}

/* Put PROPERTIES into a packet after the last of OLD, or into a new one if OLD is empty. *IS_DONE becomes false if OLD
 * has no end that is known. */
static bool put_properties(const struct blob *old, const struct blob *added, struct blob *out, bool *is_done)
{
    static const char head[] = "<?xpacket begin=\"\xef\xbb\xbf\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?><x:xmpmeta "
                               "xmlns:x=\"adobe:ns:meta/\"><rdf:RDF "
                               "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\">",
                      tail[] = "</rdf:RDF></x:xmpmeta><?xpacket end=\"w\"?>", close[] = "</rdf:RDF>",
                      open[] = "<rdf:Description rdf:about=\"\" xmlns:dc=\"http://purl.org/dc/elements/1.1/\" "
                               "xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\">",
                      end[] = "</rdf:Description>";
    const uint8_t *at = old->size > 0 ? memmem(old->bytes, old->size, close, sizeof close - 1) : NULL;
    const size_t before = at != NULL ? (size_t)(at - old->bytes) : 0;
    *is_done = old->size == 0 || at != NULL;
    return !*is_done ||
           ((at != NULL ? blob_append(out, old->bytes, before) : blob_append(out, head, sizeof head - 1)) &&
            blob_append(out, open, sizeof open - 1) && blob_append(out, added->bytes, added->size) &&
            blob_append(out, end, sizeof end - 1) &&
            (at != NULL ? blob_append(out, at, old->size - before) : blob_append(out, tail, sizeof tail - 1)));
}

/* Make properties of XMP of the texts. */
static bool adapt_texts(struct adapted *adapted, unsigned holds, uint64_t *dropped)
{
    struct metadata *metadata = &adapted->metadata;
    struct png_walk walk = {.bytes = metadata->texts.bytes, .size = metadata->texts.size};
    struct png_chunk chunk;
    struct blob added = {0};
    bool done = true, is_lost = !(holds & (HOLDS_XMP | HOLDS_COMMENT)), is_put = true;
    unsigned seen = 0;
    while (done && png_walk_next(&walk, &chunk) == PNG_STEP_CHUNK) {
        if ((holds & HOLDS_COMMENT) && strcmp((const char *)chunk.data, "Comment") == 0)
            continue; /* the writer does it */
        is_lost |= !(holds & HOLDS_XMP);
        done = !(holds & HOLDS_XMP) || append_chunk(&added, &metadata->xmp, &chunk, &seen, &is_lost);
    }
    if (done && added.size > 0)
        done = put_properties(&metadata->xmp, &added, &adapted->xmp, &is_put);
    blob_free(&added);
    if (adapted->xmp.size > 0)
        metadata->xmp = adapted->xmp;
    if (is_lost || !is_put)
        *dropped |= metadata_bit(METADATA_TEXT, METADATA_NOT_SUPPORTED);
    return done;
}

/* ---- Resolution ---- */

/* Make EXIF of the resolution, if there is none. */
static bool adapt_resolution(struct adapted *adapted, unsigned holds, uint64_t *dropped)
{
    enum { SIZE = 66, VALUES = 50 };
    struct metadata *metadata = &adapted->metadata;
    const struct resolution *resolution = &metadata->resolution;
    if (resolution->unit == RESOLUTION_NONE || (holds & HOLDS_RESOLUTION) ||
        metadata_exif_says(&metadata->exif, resolution))
        return true;
    if (!(holds & HOLDS_EXIF) || metadata->exif.size > 0) {
        *dropped |= metadata_bit(METADATA_RESOLUTION, METADATA_NOT_SUPPORTED);
        return true;
    }
    const unsigned unit = resolution->unit == RESOLUTION_ASPECT ? 1 : resolution->unit == RESOLUTION_INCH ? 2 : 3;
    const uint32_t entries[3][4] = {{TIFF_TAG_X_RESOLUTION, TIFF_TYPE_RATIONAL, 1, VALUES},
                                    {TIFF_TAG_Y_RESOLUTION, TIFF_TYPE_RATIONAL, 1, VALUES + 8},
                                    {TIFF_TAG_RESOLUTION_UNIT, TIFF_TYPE_SHORT, 1, unit}};
    const uint32_t values[4] = {resolution->horizontal, resolution->unit == RESOLUTION_METRE ? 100 : 1,
                                resolution->vertical, resolution->unit == RESOLUTION_METRE ? 100 : 1};
    uint8_t bytes[SIZE] = "II*\0\x08\0\0\0\x03";
    for (size_t i = 0; i < 3; i++) {
        uint8_t *entry = bytes + 10 + 12 * i;
        bytes_put_number(entry, 2, false, entries[i][0]);
        bytes_put_number(entry + 2, 2, false, entries[i][1]);
        bytes_put_number(entry + 4, 4, false, entries[i][2]);
        bytes_put_number(entry + 8, 4, false, entries[i][3]);
    }
    for (size_t i = 0; i < 4; i++)
        bytes_put_number(bytes + VALUES + 4 * i, 4, false, values[i]);
    if (!blob_append(&adapted->exif, bytes, SIZE))
        return false;
    metadata->exif = adapted->exif;
    return true;
}

/* ---- Colours ---- */

/* Make a profile of a PNG's cICP, or of its gAMA and cHRM unless it has a profile. */
static bool adapt_colours(struct adapted *adapted, unsigned holds, bool grey, uint64_t *dropped)
{
    struct metadata *metadata = &adapted->metadata;
    bool is_made = false;
    if ((metadata->icc.size > 0 && !metadata->has_coding) || !(metadata->has_coding || metadata->has_gamma) ||
        (metadata->has_coding && (holds & HOLDS_CODING)) || metadata_is_srgb(metadata, grey))
        return true;
    if ((holds & HOLDS_ICC) && !metadata_make_icc(metadata, grey, &adapted->icc, &is_made))
        return false;
    if (is_made)
        metadata->icc = adapted->icc;
    else
        *dropped |= metadata_bit(METADATA_COLOUR, METADATA_NOT_SUPPORTED);
    return true;
}

bool metadata_adapt(const struct metadata *metadata, enum metadata_of of, bool grey, struct adapted *adapted,
                    uint64_t *dropped)
{
    const unsigned holds = held[of];
    const struct {
        unsigned holds;
        enum metadata_part part;
    } parts[] = {
        {HOLDS_ICC, METADATA_ICC}, {HOLDS_EXIF, METADATA_EXIF}, {HOLDS_XMP, METADATA_XMP}, {HOLDS_IPTC, METADATA_IPTC}};
    *adapted = (struct adapted){.metadata = *metadata};
    *dropped = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (!(holds & parts[i].holds) && metadata->blobs[parts[i].part].size > 0)
            *dropped |= metadata_bit(parts[i].part, METADATA_NOT_SUPPORTED);
    if (metadata->has_light || metadata->has_mastering)
        *dropped |= metadata_bit(METADATA_COLOUR, METADATA_NOT_SUPPORTED);
    return (metadata->texts.size == 0 || adapt_texts(adapted, holds, dropped)) &&
           adapt_resolution(adapted, holds, dropped) && adapt_colours(adapted, holds, grey, dropped);
}

void metadata_adapted_free(struct adapted *adapted)
{
    blob_free(&adapted->icc);
    blob_free(&adapted->xmp);
    blob_free(&adapted->exif);
}
