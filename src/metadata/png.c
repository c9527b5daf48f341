/* SPDX-License-Identifier: MIT
 *
 * Metadata in the chunks of a PNG. */
#include "metadata/metadata_internal.h"

#include "base/text.h"
#include "container/png.h"

#include <ctype.h>
#include <libdeflate.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    KEYWORD_MAX = 79,    /* letters of a keyword */
    COMPRESSION = 6,     /* libdeflate's level for a profile */
    RAW_LINE_BYTES = 36, /* in a line of a raw profile */
};

static const char xmp_keyword[] = "XML:com.adobe.xmp";
static const char raw_keyword[] = "Raw profile type ";
static const char digits[] = "0123456789abcdef"; /* the digits of a raw profile */

/* ---- Compressed parts ---- */

/* The length of the keyword at the beginning of a chunk's data, its NUL included, or 0 if there is none. */
static size_t keyword_length(const uint8_t *data, size_t size)
{
    const uint8_t *end = memchr(data, 0, size < KEYWORD_MAX + 1 ? size : KEYWORD_MAX + 1);
    return end != NULL && end > data ? (size_t)(end - data) + 1 : 0;
}

/* Read iCCP: a name, 0 for the only compression method, and a profile. */
static bool read_icc(struct metadata *metadata, const uint8_t *data, size_t size)
{
    const size_t name = keyword_length(data, size);
    struct blob profile = {0};
    if (metadata->icc.size > 0)
        return true;
    if (name == 0 || size - name < 1 || data[name] != 0)
        return metadata_drop(metadata, METADATA_ICC, METADATA_DAMAGED);
    size_t packed = size - name - 1;
    const bool done = metadata_inflate(metadata, METADATA_ICC, data + name + 1, &packed, METADATA_PART_MAX, &profile) &&
                      (profile.bytes == NULL || metadata_add_icc(metadata, profile.bytes, profile.size));
    if (metadata->icc.size > 0)
        memcpy(metadata->icc_name, data, name);
    blob_free(&profile);
    return done;
}

/* ---- Texts ---- */

/* Decode a raw profile, as ImageMagick writes it: a line end, a name, the number of bytes, the bytes in hexadecimal.
 * BYTES stays empty if the text is no raw profile or is damaged. Returns false if there is not enough memory. */
static bool decode_raw(const uint8_t *text, size_t size, struct blob *bytes)
{
    size_t at = 0, count = 0, filled = 0;
    int high = -1;
    for (int lines = 0; at < size && lines < 2; at++) /* up to the number */
        lines += text[at] == '\n';
    while (at < size && text[at] == ' ')
        at++;
    for (; at < size && text[at] >= '0' && text[at] <= '9' && count <= METADATA_PART_MAX; at++)
        count = 10 * count + (size_t)(text[at] - '0');
    if (count == 0 || count > METADATA_PART_MAX || count > size / 2)
        return true;
    if (blob_extend(bytes, count) == NULL)
        return false;
    for (; at < size && filled < count; at++) {
        const char *hit = memchr(digits, tolower(text[at]), sizeof digits - 1);
        if (hit == NULL)
            continue;
        const int digit = (int)(hit - digits);
        if (high >= 0)
            bytes->bytes[filled++] = (uint8_t)(high << 4 | digit);
        high = high >= 0 ? -1 : digit;
    }
    if (filled < count)
        blob_free(bytes);
    return true;
}

/* Read a raw profile whose keyword ends in NAME. An unknown one is ignored, because it may be a picture. */
static bool read_raw(struct metadata *metadata, const char *name, const uint8_t *text, size_t size)
{
    struct blob raw = {0};
    bool done = decode_raw(text, size, &raw);
    if (!done || raw.size == 0)
        ;
    else if (metadata_is_exif(raw.bytes, raw.size) || strcmp(name, "exif") == 0)
        done = metadata_add_exif(metadata, raw.bytes, raw.size);
    else if (bytes_begin(raw.bytes, raw.size, XMP_HEAD, sizeof XMP_HEAD))
        done = metadata_add_xmp(metadata, raw.bytes + sizeof XMP_HEAD, raw.size - sizeof XMP_HEAD);
    else if (strcmp(name, "xmp") == 0)
        done = metadata_add_xmp(metadata, raw.bytes, raw.size);
    else if (metadata->iptc.size == 0 && (strcmp(name, "iptc") == 0 || strcmp(name, "8bim") == 0))
        done = metadata_add_resources(metadata, raw.bytes, raw.size);
    blob_free(&raw);
    return done;
}

size_t png_text_start(const char *type, const uint8_t *data, size_t size, bool *compressed)
{
    const size_t keyword = keyword_length(data, size);
    *compressed = false;
    if (keyword == 0 || type[0] == 't')
        return keyword;
    if (type[0] == 'z') {
        *compressed = true;
        return size > keyword && data[keyword] == 0 ? keyword + 1 : 0;
    }
    if (size < keyword + 4 || data[keyword] > 1 || data[keyword + 1] != 0)
        return 0;
    *compressed = data[keyword] == 1;
    size_t at = keyword + 2;
    for (int i = 0; i < 2; i++) { /* a language, and the keyword in that language */
        const uint8_t *end = memchr(data + at, 0, size - at);
        if (end == NULL)
            return 0;
        at = (size_t)(end - data) + 1;
    }
    return at;
}

/* Does the keyword say that the text holds other metadata, or anything else, as a raw profile? */
static bool is_raw(const char *keyword)
{
    return strncasecmp(keyword, raw_keyword, strlen(raw_keyword)) == 0;
}

/* Read the inflated text of a chunk. A text that is no other metadata is kept as the chunk that holds it. */
static bool read_plain(struct metadata *metadata, const struct png_chunk *chunk, const uint8_t *text, size_t size)
{
    const char *keyword = (const char *)chunk->data;
    if (strcmp(keyword, xmp_keyword) == 0)
        return metadata_add_xmp(metadata, text, size);
    if (is_raw(keyword))
        return read_raw(metadata, keyword + strlen(raw_keyword), text, size);
    if (size > METADATA_LONG_TEXT_MAX)
        return metadata_drop(metadata, METADATA_TEXT, METADATA_TOO_LARGE);
    if (png_chunk_is(chunk, "iTXt") && !text_is_utf8(text, size))
        return metadata_drop(metadata, METADATA_TEXT, METADATA_DAMAGED);
    return metadata_add_text(metadata, text, size, chunk->head, PNG_CHUNK_OVERHEAD + chunk->size);
}

static bool read_text(struct metadata *metadata, const struct png_chunk *chunk)
{
    enum { HEAD_MAX = 512 }; /* bytes before the text: its keyword, a language, the keyword in that language */
    const char *keyword = (const char *)chunk->data;
    bool compressed;
    const size_t start = png_text_start(chunk->type, chunk->data, chunk->size, &compressed);
    if (start == 0 || start > HEAD_MAX)
        return metadata_drop(metadata, METADATA_TEXT, METADATA_DAMAGED);
    const uint8_t *text = chunk->data + start;
    const size_t size = chunk->size - start;
    if (!compressed)
        return read_plain(metadata, chunk, text, size);
    const bool xmp = strcmp(keyword, xmp_keyword) == 0, wrapped = xmp || is_raw(keyword);
    struct blob inflated = {0};
    size_t packed = size;
    bool done = metadata_inflate(metadata, xmp ? METADATA_XMP : METADATA_TEXT, text, &packed,
                                 wrapped ? METADATA_PART_MAX : METADATA_LONG_TEXT_MAX, &inflated);
    if (done && inflated.bytes != NULL && packed < size && !wrapped) /* bytes after the stream would be kept, too */
        metadata_drop(metadata, METADATA_TEXT, METADATA_DAMAGED);
    else if (done && inflated.bytes != NULL)
        done = read_plain(metadata, chunk, inflated.bytes, inflated.size);
    blob_free(&inflated);
    return done;
}

/* ---- Reading ---- */

/* Read a chunk of a fixed SIZE that describes the samples. Only the first of each type counts. */
static void read_fixed(const struct png_chunk *chunk, const char *type, size_t size, uint8_t *field, bool *has)
{
    if (!png_chunk_is(chunk, type) || chunk->size != size || *has)
        return;
    *has = true;
    memcpy(field, chunk->data, size);
}

static enum metadata_part chunk_part(const struct png_chunk *chunk)
{
    static const char texts[] = "tEXt zTXt iTXt", colours[] = "gAMA cHRM sRGB cICP mDCV cLLI";
    return png_chunk_is(chunk, "iCCP")                               ? METADATA_ICC
           : png_chunk_is(chunk, "eXIf")                             ? METADATA_EXIF
           : memmem(texts, sizeof texts, chunk->type, 4) != NULL     ? METADATA_TEXT
           : memmem(colours, sizeof colours, chunk->type, 4) != NULL ? METADATA_COLOUR
                                                                     : METADATA_CHUNK;
}

static bool read_chunk(struct metadata *metadata, const struct png_chunk *chunk)
{
    /* The picture, what is read here or reported as other content, and what describes the file as it was. */
    static const char known[] = "IHDR PLTE tRNS IDAT IEND pHYs caBX acTL fcTL fdAT sBIT hIST tIME dSIG";
    const enum metadata_part part = chunk_part(chunk);
    const uint8_t *data = chunk->data;
    if (png_chunk_is_needless(chunk) && !png_chunk_crc_fits(chunk))
        return metadata_drop(metadata, part, METADATA_DAMAGED);
    if (part == METADATA_ICC)
        return read_icc(metadata, data, chunk->size);
    if (part == METADATA_EXIF)
        return metadata_add_exif(metadata, data, chunk->size);
    if (part == METADATA_TEXT)
        return read_text(metadata, chunk);
    read_fixed(chunk, "gAMA", sizeof metadata->gamma, metadata->gamma, &metadata->has_gamma);
    read_fixed(chunk, "cHRM", sizeof metadata->chromaticities, metadata->chromaticities, &metadata->has_chromaticities);
    read_fixed(chunk, "cICP", sizeof metadata->coding, metadata->coding, &metadata->has_coding);
    read_fixed(chunk, "mDCV", sizeof metadata->mastering, metadata->mastering, &metadata->has_mastering);
    read_fixed(chunk, "cLLI", sizeof metadata->light, metadata->light, &metadata->has_light);
    if (png_chunk_is(chunk, "caBX"))
        metadata_drop(metadata, METADATA_C2PA, METADATA_UNKNOWN);
    if (png_chunk_is(chunk, "sRGB") && chunk->size == 1 && data[0] < 4)
        read_fixed(chunk, "sRGB", 1, &metadata->intent, &metadata->has_srgb);
    if (png_chunk_is(chunk, "pHYs") && chunk->size == 9 && metadata->resolution.unit == RESOLUTION_NONE && data[8] < 2)
        metadata->resolution = (struct resolution){
            .unit = data[8] == 1 ? RESOLUTION_METRE : RESOLUTION_ASPECT,
            .horizontal = big32(data),
            .vertical = big32(data + 4),
        };
    if (part == METADATA_CHUNK && memmem(known, sizeof known, chunk->type, 4) == NULL)
        metadata_drop(metadata, METADATA_CHUNK, METADATA_UNKNOWN);
    return true;
}

bool metadata_read_png(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error)
{
    struct png_walk walk = png_walk_begin(bytes, size);
    struct png_chunk chunk;
    bool done = true;
    metadata->orientation = 1;
    while (done && png_walk_next(&walk, &chunk) == PNG_STEP_CHUNK)
        done = read_chunk(metadata, &chunk);
    return metadata_read_end(done, metadata, error);
}

/* ---- Writing ---- */

uint32_t resolution_per_metre(const struct resolution *resolution, bool vertical)
{
    const uint64_t value = vertical ? resolution->vertical : resolution->horizontal;
    const uint64_t scaled = resolution->unit == RESOLUTION_INCH         ? (value * 10000 + 127) / 254
                            : resolution->unit == RESOLUTION_CENTIMETRE ? value * 100
                                                                        : value;
    return scaled <= INT32_MAX ? (uint32_t)scaled : 0;
}

static bool append_resolution(const struct resolution *resolution, struct blob *out)
{
    uint8_t data[9];
    const uint32_t horizontal = resolution_per_metre(resolution, false);
    const uint32_t vertical = resolution_per_metre(resolution, true);
    if (resolution->unit == RESOLUTION_NONE || horizontal == 0 || vertical == 0)
        return true;
    put_big32(data, horizontal);
    put_big32(data + 4, vertical);
    data[8] = resolution->unit != RESOLUTION_ASPECT;
    return png_chunk_append(out, "pHYs", data, sizeof data);
}

static bool append_icc(const struct metadata *metadata, struct blob *out)
{
    static const char standard[] = "ICC Profile";
    const char *name = metadata->icc_name[0] != '\0' ? metadata->icc_name : standard;
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(COMPRESSION);
    struct blob data = {0};
    bool done = false;
    if (compressor != NULL && blob_append(&data, name, strlen(name) + 1) && blob_append(&data, "", 1)) {
        const size_t head = data.size, bound = libdeflate_zlib_compress_bound(compressor, metadata->icc.size);
        uint8_t *packed = blob_extend(&data, bound);
        if (packed != NULL) {
            const size_t size =
                libdeflate_zlib_compress(compressor, metadata->icc.bytes, metadata->icc.size, packed, bound);
            done = png_chunk_append(out, "iCCP", data.bytes, head + size);
        }
    }
    libdeflate_free_compressor(compressor);
    blob_free(&data);
    return done;
}

/* Append Photoshop's resources as a raw profile, because other programs look for them there. read_raw reads it. */
static bool append_resources(const struct blob *iptc, struct blob *out)
{
    struct blob data = {0};
    char head[64];
    const int length = snprintf(head, sizeof head, "%s%s%c\niptc\n%8zu\n", raw_keyword, "iptc", 0, iptc->size);
    bool done = blob_append(&data, head, (size_t)length);
    for (size_t i = 0; done && i < iptc->size; i++) {
        const bool line_ends = i % RAW_LINE_BYTES == RAW_LINE_BYTES - 1 || i + 1 == iptc->size;
        const char text[3] = {digits[iptc->bytes[i] >> 4], digits[iptc->bytes[i] & 15], '\n'};
        done = blob_append(&data, text, line_ends ? 3 : 2);
    }
    done = done && png_chunk_append(out, "tEXt", data.bytes, data.size);
    blob_free(&data);
    return done;
}

static bool append_xmp(const struct blob *xmp, struct blob *out)
{
    /* Not compressed, no language, no translation; the last byte is the literal's own NUL. */
    static const char head[] = "XML:com.adobe.xmp\0\0\0\0";
    struct blob data = {0};
    const bool done = blob_append(&data, head, sizeof head) && blob_append(&data, xmp->bytes, xmp->size) &&
                      png_chunk_append(out, "iTXt", data.bytes, data.size);
    blob_free(&data);
    return done;
}

/* Append all chunks, in an order that the standard allows after IHDR. */
static bool append_chunks(const struct metadata *metadata, bool grey, struct blob *out, uint64_t *dropped)
{
    const bool profile = metadata_has_icc_for(metadata, grey, dropped);
    return (!metadata->has_coding || png_chunk_append(out, "cICP", metadata->coding, sizeof metadata->coding)) &&
           (!metadata->has_mastering ||
            png_chunk_append(out, "mDCV", metadata->mastering, sizeof metadata->mastering)) &&
           (!metadata->has_light || png_chunk_append(out, "cLLI", metadata->light, sizeof metadata->light)) &&
           (!profile || append_icc(metadata, out)) &&
           (!metadata->has_srgb || png_chunk_append(out, "sRGB", &metadata->intent, 1)) &&
           (!metadata->has_gamma || png_chunk_append(out, "gAMA", metadata->gamma, sizeof metadata->gamma)) &&
           (!metadata->has_chromaticities ||
            png_chunk_append(out, "cHRM", metadata->chromaticities, sizeof metadata->chromaticities)) &&
           append_resolution(&metadata->resolution, out) &&
           (metadata->exif.size == 0 || png_chunk_append(out, "eXIf", metadata->exif.bytes, metadata->exif.size)) &&
           (metadata->xmp.size == 0 || append_xmp(&metadata->xmp, out)) &&
           (metadata->iptc.size == 0 || append_resources(&metadata->iptc, out)) &&
           blob_append(out, metadata->texts.bytes, metadata->texts.size);
}

bool metadata_write_png(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint64_t *dropped,
                        struct error *error)
{
    const bool grey = !(png_file_header(*bytes).colour & PNG_COLOUR);
    const size_t offset = PNG_SIGNATURE + PNG_CHUNK_OVERHEAD + PNG_HEADER_DATA; /* after IHDR */
    struct blob added = {0};
    *dropped = 0;
    const bool done = append_chunks(metadata, grey, &added, dropped);
    return metadata_insert(done, &added, offset, bytes, size, error);
}
