/* SPDX-License-Identifier: MIT
 *
 * Metadata: from a container into struct metadata, and from there into another. Nothing in a file is trusted: each
 * length is held against what is there, and whatever is read is copied once, so that the time is that of the bytes. */
#include "metadata/metadata.h"

#include "base/text.h"
#include "metadata/exif.h"

#include <assert.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_OVERHEAD = 12,   /* a PNG chunk's length, type and checksum */
    SEGMENT_MOST = 65533,  /* a JPEG segment's bytes without its length */
    SEGMENTS_MOST = 255,   /* that a JPEG's profile may be cut into */
    KEYWORD_MOST = 79,     /* letters of a PNG's keyword */
    ICC_COLOUR = 16,       /* where a profile's header names the kind of colour */
    ICC_SIGNATURE = 36,    /* and where it says "acsp" */
    ICC_HEADER = 128,      /* its bytes */
    COMPRESSION = 6,       /* of a profile in a PNG */
    RESOURCE_OVERHEAD = 8, /* a Photoshop resource's signature, number and, at least, empty name */
    JFIF_DENSITY = 7,      /* where an APP0 segment's data say the unit, and then twice two bytes */
};

static const char exif_head[] = "Exif\0"; /* and the literal's own NUL, in an APP1 segment: 6 bytes */
static const char xmp_head[] = "http://ns.adobe.com/xap/1.0/";
static const char icc_head[] = "ICC_PROFILE";
static const char photoshop_head[] = "Photoshop 3.0";
static const char jfif_head[] = "JFIF";
static const char xmp_keyword[] = "XML:com.adobe.xmp";
static const char raw_keyword[] = "Raw profile type ";

/* Do SIZE bytes begin with HEAD, its NUL included? */
static bool begins(const uint8_t *bytes, size_t size, const char *head, size_t head_size)
{
    return size >= head_size && memcmp(bytes, head, head_size) == 0;
}

/* ---- What is left out, and what goes wrong ---- */

static uint32_t reason_bit(enum metadata_part part, enum metadata_reason reason)
{
    static_assert(METADATA_PARTS * METADATA_REASONS <= 32, "a bit for each");
    return (uint32_t)1 << ((unsigned)part * METADATA_REASONS + (unsigned)reason);
}

void metadata_print_left_out(uint32_t left_out, char *text, size_t size)
{
    static const char *const parts[METADATA_PARTS] = {
        [METADATA_ICC] = "ICC profile", [METADATA_EXIF] = "EXIF", [METADATA_XMP] = "XMP",
        [METADATA_IPTC] = "IPTC",       [METADATA_TEXT] = "text",
    };
    static const char *const reasons[METADATA_REASONS] = {
        [METADATA_DAMAGED] = "is damaged",
        [METADATA_TOO_LARGE] = "is too large",
        [METADATA_PICTURES] = "holds other pictures",
        [METADATA_OTHER_COLOUR] = "is for other colours",
    };
    size_t used = 0;

    text[0] = '\0';
    for (int part = 0; part < METADATA_PARTS; part++)
        for (int reason = 0; reason < METADATA_REASONS; reason++)
            if ((left_out & reason_bit((enum metadata_part)part, (enum metadata_reason)reason)) && used < size)
                used += (size_t)snprintf(text + used, size - used, "%s%s (%s)", used > 0 ? ", " : "", parts[part],
                                         reasons[reason]);
}

static bool no_memory(struct error *error)
{
    return error_set(error, ERROR_WORK, "there is not enough memory for an image's metadata; free some");
}

static bool leave_out(struct metadata *metadata, enum metadata_part part, enum metadata_reason reason)
{
    metadata->left_out |= reason_bit(part, reason);
    return true;
}

/* Take SIZE bytes into BLOB, one of METADATA's, unless they are too many. */
static bool take(struct metadata *metadata, enum metadata_part part, struct blob *blob, const void *bytes, size_t size,
                 struct error *error)
{
    if (size > METADATA_PART_MOST || size > METADATA_MOST - metadata_bytes(metadata))
        return leave_out(metadata, part, METADATA_TOO_LARGE);
    return blob_append(blob, bytes, size) || no_memory(error);
}

/* Inflate a zlib stream into OUT. *WHY is set where that is not possible for another reason than memory. */
static bool inflate(const uint8_t *bytes, size_t size, struct blob *out, enum metadata_reason *why, bool *done,
                    struct error *error)
{
    struct libdeflate_decompressor *const decompressor = libdeflate_alloc_decompressor();
    enum libdeflate_result result = LIBDEFLATE_INSUFFICIENT_SPACE;
    /* Sizes are tried in doubling steps, which together take no more than twice the time of the last. */
    size_t capacity = size < METADATA_PART_MOST / 4 ? 4 * size + 1024 : METADATA_PART_MOST, used = 0;

    *done = false;
    if (!decompressor)
        return no_memory(error);
    for (; result == LIBDEFLATE_INSUFFICIENT_SPACE && capacity < 2 * METADATA_PART_MOST; capacity *= 2) {
        const size_t room = capacity < METADATA_PART_MOST ? capacity : METADATA_PART_MOST;
        blob_free(out);
        if (!blob_extend(out, room)) {
            libdeflate_free_decompressor(decompressor);
            return no_memory(error);
        }
        result = libdeflate_zlib_decompress(decompressor, bytes, size, out->bytes, room, &used);
    }
    libdeflate_free_decompressor(decompressor);
    *done = result == LIBDEFLATE_SUCCESS;
    *why = result == LIBDEFLATE_INSUFFICIENT_SPACE ? METADATA_TOO_LARGE : METADATA_DAMAGED;
    out->size = *done ? used : 0; /* its room stays until it is released */
    return true;
}

/* ---- EXIF ---- */

static bool take_exif(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error)
{
    struct blob exif = {0};

    if (metadata->exif.size > 0)
        return true;                                        /* the first one counts */
    if (begins(bytes, size, exif_head, sizeof exif_head)) { /* wrong in a PNG, and common */
        bytes += sizeof exif_head;
        size -= sizeof exif_head;
    }
    if (size > METADATA_PART_MOST)
        return leave_out(metadata, METADATA_EXIF, METADATA_TOO_LARGE);
    bool done = exif_rebuild(bytes, size, false, &exif) || no_memory(error);
    if (done && exif.size == 0)
        leave_out(metadata, METADATA_EXIF, METADATA_DAMAGED);
    done = done && take(metadata, METADATA_EXIF, &metadata->exif, exif.bytes, exif.size, error);
    blob_free(&exif);
    metadata->orientation = exif_orientation(&metadata->exif);
    return done;
}

/* ---- XMP ---- */

static bool is_space(uint8_t byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

static size_t skip_space(const struct blob *text, size_t at)
{
    while (at < text->size && is_space(text->bytes[at]))
        at++;
    return at;
}

/* A property in a packet: as an attribute name="value" or an element <name>value</name>. */
struct property {
    size_t value, value_end; /* in quotes or between tags */
    size_t start, end;       /* of all of it */
};

/* Find the property NAME from *AT on, and let *AT stand behind it. */
static bool xmp_find(const struct blob *xmp, const char *name, size_t *at, struct property *found)
{
    const size_t length = strlen(name);
    const uint8_t *hit;

    while (*at < xmp->size && (hit = memmem(xmp->bytes + *at, xmp->size - *at, name, length))) {
        const size_t start = (size_t)(hit - xmp->bytes), next = skip_space(xmp, start + length);
        *at = start + length;
        if (start == 0 || next == xmp->size)
            continue;
        const bool element = xmp->bytes[start - 1] == '<' && xmp->bytes[next] == '>';
        const size_t quote = skip_space(xmp, next + 1);
        if (!element && (!is_space(xmp->bytes[start - 1]) || xmp->bytes[next] != '=' || quote == xmp->size ||
                         (xmp->bytes[quote] != '"' && xmp->bytes[quote] != '\'')))
            continue;
        const size_t value = element ? next + 1 : quote + 1;
        const uint8_t *const end = memchr(xmp->bytes + value, element ? '<' : xmp->bytes[quote], xmp->size - value);
        if (!end)
            return false;
        const size_t value_end = (size_t)(end - xmp->bytes), left = xmp->size - value_end;
        *at = value_end;
        if (element &&
            (left < length + 3 || end[1] != '/' || memcmp(end + 2, name, length) != 0 || end[length + 2] != '>'))
            continue;
        *found =
            (struct property){value, value_end, element ? start - 1 : start, value_end + (element ? length + 3 : 1)};
        *at = found->end;
        return true;
    }
    return false;
}

/* Overwrite a property with spaces, wherever it stands. */
static void xmp_remove(struct blob *xmp, const char *name)
{
    struct property found;

    for (size_t at = 0; xmp_find(xmp, name, &at, &found);)
        memset(xmp->bytes + found.start, ' ', found.end - found.start);
}

/* Set a property of one digit, wherever it stands. */
static void xmp_set_digit(struct blob *xmp, const char *name, char digit)
{
    struct property found;

    for (size_t at = 0; xmp_find(xmp, name, &at, &found);)
        if (found.value_end - found.value == 1)
            xmp->bytes[found.value] = (uint8_t)digit;
}

/* Does a packet hold pictures? By the namespaces of thumbnails and of what phones add, and by how a JPEG begins in
 * base64. To cut them out would take a parser of XML; the packet is left out as a whole. */
static bool xmp_pictures(const uint8_t *bytes, size_t size)
{
    static const char *const signs[] = {"http://ns.adobe.com/xap/1.0/g/img/", "http://ns.google.com/photos/1.0/image/",
                                        "http://ns.google.com/photos/1.0/depthmap/", "/9j/"};

    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if (bytes_contain(bytes, size, signs[i]))
            return true;
    return false;
}

static bool take_xmp(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error)
{
    while (size > 0 && bytes[size - 1] == 0)
        size--;
    if (metadata->xmp.size > 0)
        return true;
    if (size == 0 || memchr(bytes, 0, size)) /* not UTF-8, which containers ask for */
        return leave_out(metadata, METADATA_XMP, METADATA_DAMAGED);
    if (xmp_pictures(bytes, size))
        return leave_out(metadata, METADATA_XMP, METADATA_PICTURES);
    if (!take(metadata, METADATA_XMP, &metadata->xmp, bytes, size, error))
        return false;
    xmp_remove(&metadata->xmp, "xmpNote:HasExtendedXMP"); /* what it names is not carried */
    return true;
}

/* ---- Photoshop's resources ---- */

/* Of a row of resources, take the IPTC block, its digest, the mark of copyright and its address. Another one is a
 * thumbnail. */
static bool take_resources(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error)
{
    while (size >= RESOURCE_OVERHEAD + 4 && memcmp(bytes, "8BIM", 4) == 0) {
        const unsigned number = big16(bytes + 4);
        const size_t name = ((size_t)bytes[6] + 2) & ~(size_t)1; /* its length and itself, made even */
        if (size - 6 < name + 4)
            break;
        const size_t head = 6 + name + 4, data = big32(bytes + 6 + name);
        if (data > size - head)
            break;
        const size_t whole = head + data + ((data & 1) && data < size - head);
        if (number == 0x0404 || number == 0x0425 || number == 0x040a || number == 0x040b) {
            const size_t before = metadata->iptc.size;
            if (!take(metadata, METADATA_IPTC, &metadata->iptc, bytes, head + data, error))
                return false;
            if ((data & 1) && metadata->iptc.size > before && !blob_append(&metadata->iptc, "", 1))
                return no_memory(error);
        }
        bytes += whole;
        size -= whole;
    }
    if (size >= 4 && memcmp(bytes, "8BIM", 4) == 0)
        leave_out(metadata, METADATA_IPTC, METADATA_DAMAGED);
    return true;
}

/* ---- Profiles ---- */

static bool take_icc(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error)
{
    if (size <= ICC_HEADER || big32(bytes) > size || memcmp(bytes + ICC_SIGNATURE, "acsp", 4) != 0)
        return leave_out(metadata, METADATA_ICC, METADATA_DAMAGED);
    return take(metadata, METADATA_ICC, &metadata->icc, bytes, size, error);
}

/* ---- PNG ---- */

/* Append a chunk. */
static bool put_chunk(struct blob *out, const char *type, const void *data, size_t size)
{
    uint8_t *const chunk = blob_extend(out, CHUNK_OVERHEAD + size);

    if (!chunk)
        return false;
    put_big32(chunk, (uint32_t)size);
    memcpy(chunk + 4, type, 4);
    if (size > 0)
        memcpy(chunk + 8, data, size);
    put_big32(chunk + 8 + size, libdeflate_crc32(0, chunk + 4, size + 4));
    return true;
}

/* The length of the keyword that a chunk's data begin with, with its NUL; 0 where there is none. */
static size_t keyword_length(const uint8_t *data, size_t size)
{
    const uint8_t *const end = memchr(data, 0, size < KEYWORD_MOST + 1 ? size : KEYWORD_MOST + 1);

    return end && end > data ? (size_t)(end - data) + 1 : 0;
}

static bool png_icc(struct metadata *metadata, const uint8_t *data, size_t size, struct error *error)
{
    const size_t name = keyword_length(data, size);
    struct blob profile = {0};
    enum metadata_reason why;
    bool inflated = false;

    if (metadata->icc.size > 0)
        return true;
    if (name == 0 || size - name < 1 || data[name] != 0) /* the only method of compression */
        return leave_out(metadata, METADATA_ICC, METADATA_DAMAGED);
    bool done = inflate(data + name + 1, size - name - 1, &profile, &why, &inflated, error);
    if (done && !inflated)
        leave_out(metadata, METADATA_ICC, why);
    done = done && (!inflated || take_icc(metadata, profile.bytes, profile.size, error));
    if (metadata->icc.size > 0)
        memcpy(metadata->icc_name, data, name);
    blob_free(&profile);
    return done;
}

static int hexadecimal(uint8_t digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                          : -1;
}

/* What ImageMagick puts into a text: a line end, a name, the number of bytes, the bytes in hexadecimal. NAME is the
 * keyword's end. Whatever is not understood may be a picture, and is passed over. */
static bool raw_profile(struct metadata *metadata, const char *name, const uint8_t *text, size_t size,
                        struct error *error)
{
    struct blob bytes = {0};
    size_t at = 0, count = 0;
    int high = -1;

    for (int lines = 0; at < size && lines < 2; at++) /* up to the number */
        lines += text[at] == '\n';
    while (at < size && text[at] == ' ')
        at++;
    for (; at < size && text[at] >= '0' && text[at] <= '9' && count <= METADATA_PART_MOST; at++)
        count = 10 * count + (size_t)(text[at] - '0');
    if (count > METADATA_PART_MOST || count > size / 2)
        return true;
    if (count > 0 && !blob_extend(&bytes, count))
        return no_memory(error);
    size_t have = 0;
    for (; at < size && have < count; at++) {
        const int digit = hexadecimal(text[at]);
        if (digit < 0)
            continue;
        if (high >= 0)
            bytes.bytes[have++] = (uint8_t)(high << 4 | digit);
        high = high >= 0 ? -1 : digit;
    }
    bool done = true;
    if (have < count || count == 0)
        ;
    else if (begins(bytes.bytes, count, exif_head, sizeof exif_head) || strcmp(name, "exif") == 0)
        done = take_exif(metadata, bytes.bytes, count, error);
    else if (begins(bytes.bytes, count, xmp_head, sizeof xmp_head))
        done = take_xmp(metadata, bytes.bytes + sizeof xmp_head, count - sizeof xmp_head, error);
    else if (strcmp(name, "xmp") == 0)
        done = take_xmp(metadata, bytes.bytes, count, error);
    else if (metadata->iptc.size == 0 && (strcmp(name, "iptc") == 0 || strcmp(name, "8bim") == 0))
        done = take_resources(metadata, bytes.bytes, count, error);
    blob_free(&bytes);
    return done;
}

/* A chunk of text whose keyword is one of those that hold other metadata, inflated if need be. */
static bool png_hidden(struct metadata *metadata, const char *keyword, const uint8_t *text, size_t size,
                       bool compressed, struct error *error)
{
    const bool xmp = strcmp(keyword, xmp_keyword) == 0;
    struct blob inflated = {0};
    enum metadata_reason why = METADATA_DAMAGED;
    bool good = true;
    bool done = !compressed || inflate(text, size, &inflated, &why, &good, error);

    if (compressed) {
        text = inflated.bytes;
        size = inflated.size;
    }
    if (done && !good)
        leave_out(metadata, xmp ? METADATA_XMP : METADATA_TEXT, why);
    if (done && good)
        done = xmp ? take_xmp(metadata, text, size, error)
                   : raw_profile(metadata, keyword + strlen(raw_keyword), text, size, error);
    blob_free(&inflated);
    return done;
}

/* Where the text of a chunk begins, 0 where it is damaged, and is it compressed? */
static size_t png_text_start(const char *type, const uint8_t *data, size_t size, bool *compressed)
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
    for (int i = 0; i < 2; i++) { /* a language and the keyword in it */
        const uint8_t *const end = memchr(data + at, 0, size - at);
        if (!end)
            return 0;
        at = (size_t)(end - data) + 1;
    }
    return at;
}

static bool png_text(struct metadata *metadata, const uint8_t *chunk, size_t size, struct error *error)
{
    const char *const type = (const char *)chunk + 4, *const keyword = (const char *)chunk + 8;
    bool compressed;
    const size_t start = png_text_start(type, chunk + 8, size, &compressed);

    if (start == 0)
        return leave_out(metadata, METADATA_TEXT, METADATA_DAMAGED);
    if (strcmp(keyword, xmp_keyword) == 0 || strncmp(keyword, raw_keyword, strlen(raw_keyword)) == 0)
        return png_hidden(metadata, keyword, chunk + 8 + start, size - start, compressed, error);
    return take(metadata, METADATA_TEXT, &metadata->texts, chunk, CHUNK_OVERHEAD + size, error);
}

static bool png_read_chunk(struct metadata *metadata, const uint8_t *chunk, size_t size, struct error *error)
{
    const char *const type = (const char *)chunk + 4;
    const uint8_t *const data = chunk + 8;

    if (memcmp(type, "iCCP", 4) == 0)
        return png_icc(metadata, data, size, error);
    if (memcmp(type, "eXIf", 4) == 0)
        return take_exif(metadata, data, size, error);
    if (memcmp(type, "tEXt", 4) == 0 || memcmp(type, "zTXt", 4) == 0 || memcmp(type, "iTXt", 4) == 0)
        return png_text(metadata, chunk, size, error);
    if (memcmp(type, "gAMA", 4) == 0 && size == 4 && !metadata->has_gamma) {
        metadata->has_gamma = true;
        memcpy(metadata->gamma, data, size);
    } else if (memcmp(type, "cHRM", 4) == 0 && size == 32 && !metadata->has_chromaticities) {
        metadata->has_chromaticities = true;
        memcpy(metadata->chromaticities, data, size);
    } else if (memcmp(type, "cICP", 4) == 0 && size == 4 && !metadata->has_coding) {
        metadata->has_coding = true;
        memcpy(metadata->coding, data, size);
    } else if (memcmp(type, "sRGB", 4) == 0 && size == 1 && data[0] < 4 && !metadata->has_srgb) {
        metadata->has_srgb = true;
        metadata->intent = data[0];
    } else if (memcmp(type, "pHYs", 4) == 0 && size == 9 && metadata->density == DENSITY_NONE && data[8] < 2) {
        metadata->across = big32(data);
        metadata->down = big32(data + 4);
        metadata->density = data[8] == 1 ? DENSITY_METRE : DENSITY_ASPECT;
    }
    return true;
}

static bool png_read(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error)
{
    for (size_t at = 8; at < size && size - at >= CHUNK_OVERHEAD;) {
        const size_t length = big32(bytes + at);
        if (length > size - at - CHUNK_OVERHEAD)
            break;
        if (!png_read_chunk(metadata, bytes + at, length, error))
            return false;
        at += CHUNK_OVERHEAD + length;
    }
    return true;
}

/* ---- JPEG ---- */

/* What is in several segments, while they are read. */
struct pieces {
    struct {
        const uint8_t *bytes;
        size_t size;
    } profile[SEGMENTS_MOST + 1]; /* by their numbers, from 1 on */
    unsigned claimed;             /* how many of them there are to be; 0: none has been met */
    bool damaged;
    struct blob resources;
};

static void profile_piece(struct pieces *pieces, const uint8_t *data, size_t size)
{
    const unsigned number = data[0], count = data[1];

    if (pieces->claimed == 0)
        pieces->claimed = count;
    if (number == 0 || number > count || count != pieces->claimed || pieces->profile[number].bytes) {
        pieces->damaged = true;
        return;
    }
    pieces->profile[number].bytes = data + 2;
    pieces->profile[number].size = size - 2;
}

static bool join_profile(struct metadata *metadata, const struct pieces *pieces, struct error *error)
{
    struct blob profile = {0};
    bool done = true, whole = !pieces->damaged && pieces->claimed > 0;

    for (unsigned i = 1; whole && i <= pieces->claimed; i++)
        whole = pieces->profile[i].bytes != NULL;
    for (unsigned i = 1; done && whole && i <= pieces->claimed; i++)
        done = blob_append(&profile, pieces->profile[i].bytes, pieces->profile[i].size) || no_memory(error);
    if (done && whole)
        done = take_icc(metadata, profile.bytes, profile.size, error);
    else if (done && (pieces->damaged || pieces->claimed > 0))
        leave_out(metadata, METADATA_ICC, METADATA_DAMAGED);
    blob_free(&profile);
    return done;
}

static bool is_ascii(const uint8_t *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] >= 0x80)
            return false;
    return true;
}

/* A JPEG's comment becomes a chunk of text. Its letters are nowhere declared: tEXt is for Latin-1, iTXt for UTF-8. */
static bool take_comment(struct metadata *metadata, const uint8_t *text, size_t size, struct error *error)
{
    static const char latin_head[] = "Comment", utf8_head[] = "Comment\0\0\0\0"; /* and the literals' own NULs */
    struct blob data = {0}, chunk = {0};

    while (size > 0 && text[size - 1] == 0)
        size--;
    if (size == 0 || memchr(text, 0, size))
        return size == 0 || leave_out(metadata, METADATA_TEXT, METADATA_DAMAGED);
    const bool utf8 = !is_ascii(text, size) && text_is_utf8(text, size); /* Latin-1 next to never is */
    bool done = (blob_append(&data, utf8 ? utf8_head : latin_head, utf8 ? sizeof utf8_head : sizeof latin_head) &&
                 blob_append(&data, text, size) && put_chunk(&chunk, utf8 ? "iTXt" : "tEXt", data.bytes, data.size)) ||
                no_memory(error);
    done = done && take(metadata, METADATA_TEXT, &metadata->texts, chunk.bytes, chunk.size, error);
    blob_free(&data);
    blob_free(&chunk);
    return done;
}

static void take_density(struct metadata *metadata, const uint8_t *data)
{
    static const enum density units[] = {DENSITY_ASPECT, DENSITY_INCH, DENSITY_CENTIMETRE};

    if (metadata->density != DENSITY_NONE || data[0] > 2)
        return;
    metadata->density = units[data[0]];
    metadata->across = big16(data + 1);
    metadata->down = big16(data + 3);
}

static bool jpeg_read_segment(struct metadata *metadata, struct pieces *pieces, unsigned marker, const uint8_t *data,
                              size_t size, struct error *error)
{
    switch (marker) {
    case 0xe0:
        if (begins(data, size, jfif_head, sizeof jfif_head) && size >= JFIF_DENSITY + 5)
            take_density(metadata, data + JFIF_DENSITY);
        return true;
    case 0xe1:
        if (begins(data, size, xmp_head, sizeof xmp_head))
            return take_xmp(metadata, data + sizeof xmp_head, size - sizeof xmp_head, error);
        return !begins(data, size, exif_head, sizeof exif_head) || take_exif(metadata, data, size, error);
    case 0xe2:
        if (begins(data, size, icc_head, sizeof icc_head) && size >= sizeof icc_head + 2)
            profile_piece(pieces, data + sizeof icc_head, size - sizeof icc_head);
        return true;
    case 0xed:
        return !begins(data, size, photoshop_head, sizeof photoshop_head) ||
               blob_append(&pieces->resources, data + sizeof photoshop_head, size - sizeof photoshop_head) ||
               no_memory(error);
    case 0xfe:
        return take_comment(metadata, data, size, error);
    default:
        return true;
    }
}

/* Find the next segment from *AT on, up to the first scan; *AT then stands behind it. */
static bool jpeg_next(const uint8_t *bytes, size_t size, size_t *at, unsigned *marker, size_t *data, size_t *length)
{
    const uint8_t *const found = memchr(bytes + *at, 0xff, size - *at);
    size_t next = found ? (size_t)(found - bytes) : size;

    while (next < size && bytes[next] == 0xff)
        next++;
    if (next + 3 > size)
        return false;
    *marker = bytes[next];
    *length = big16(bytes + next + 1);
    if (*marker == 0xda || *marker == 0xd9 || *length < 2 || *length > size - next - 1)
        return false;
    *data = next + 3;
    *at = next + 1 + *length;
    *length -= 2;
    return true;
}

static bool jpeg_read(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error)
{
    struct pieces pieces = {0};
    size_t at = 2, data, length;
    unsigned marker;
    bool done = true;

    while (done && jpeg_next(bytes, size, &at, &marker, &data, &length))
        done = jpeg_read_segment(metadata, &pieces, marker, bytes + data, length, error);
    done = done && join_profile(metadata, &pieces, error) &&
           take_resources(metadata, pieces.resources.bytes, pieces.resources.size, error);
    blob_free(&pieces.resources);
    return done;
}

/* ---- Reading and turning ---- */

bool metadata_read(const uint8_t *bytes, size_t size, enum format format, struct metadata *metadata,
                   struct error *error)
{
    *metadata = (struct metadata){.orientation = 1};
    const bool done = (format == FORMAT_PNG ? png_read : jpeg_read)(metadata, bytes, size, error);
    metadata->has_srgb = metadata->has_srgb && metadata->icc.size == 0; /* a file has one of both */
    if (metadata->across == 0 || metadata->down == 0 || metadata->across > INT32_MAX || metadata->down > INT32_MAX ||
        (metadata->density == DENSITY_ASPECT && metadata->across == metadata->down)) { /* squares, as without */
        metadata->density = DENSITY_NONE;
        metadata->across = metadata->down = 0;
    }
    return done;
}

/* Turn what the metadata say about places and sides by a quarter. */
static void turn_sides(struct metadata *metadata)
{
    static const char *const sides[] = {"tiff:ImageWidth", "tiff:ImageLength", "exif:PixelXDimension",
                                        "exif:PixelYDimension"};
    const uint32_t across = metadata->across;

    metadata->across = metadata->down;
    metadata->down = across;
    exif_swap_densities(&metadata->exif);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++)
        xmp_remove(&metadata->xmp, sides[i]);
}

bool metadata_orient(struct metadata *metadata, struct image *image, struct sampling *sampling, struct error *error)
{
    const int orientation = metadata->orientation;

    if (orientation > 1) {
        struct blob exif = {0};
        if (!image_orient(image, orientation, error))
            return false;
        if (!exif_rebuild(metadata->exif.bytes, metadata->exif.size, true, &exif))
            return no_memory(error);
        blob_free(&metadata->exif);
        metadata->exif = exif;
        metadata->orientation = 1;
        exif_set_upright(&metadata->exif);
        xmp_set_digit(&metadata->xmp, "tiff:Orientation", '1');
    }
    if (orientation >= 5) {
        turn_sides(metadata);
        *sampling =
            sampling->across <= 2 ? (struct sampling){sampling->down, sampling->across} : (struct sampling){0, 0};
    }
    exif_set_sides(&metadata->exif, image->width, image->height);
    return true;
}

/* ---- Writing ---- */

/* Does the profile describe the kind of colour, grey or not, of the encoded file? */
static bool icc_fits(const struct metadata *metadata, bool grey)
{
    return memcmp(metadata->icc.bytes + ICC_COLOUR, grey ? "GRAY" : "RGB ", 4) == 0;
}

/* Pixels a metre; 0 where that does not fit or is not known. */
static uint32_t per_metre(enum density density, uint32_t value)
{
    const uint64_t scaled = density == DENSITY_INCH         ? ((uint64_t)value * 10000 + 127) / 254
                            : density == DENSITY_CENTIMETRE ? (uint64_t)value * 100
                                                            : value;
    return scaled <= INT32_MAX ? (uint32_t)scaled : 0;
}

static bool png_put_density(const struct metadata *metadata, struct blob *out)
{
    uint8_t data[9];
    const uint32_t across = per_metre(metadata->density, metadata->across);
    const uint32_t down = per_metre(metadata->density, metadata->down);

    if (metadata->density == DENSITY_NONE || across == 0 || down == 0)
        return true;
    put_big32(data, across);
    put_big32(data + 4, down);
    data[8] = metadata->density != DENSITY_ASPECT;
    return put_chunk(out, "pHYs", data, sizeof data);
}

static bool png_put_icc(const struct metadata *metadata, struct blob *out)
{
    static const char standard[] = "ICC Profile";
    const char *const name = metadata->icc_name[0] != '\0' ? metadata->icc_name : standard;
    struct libdeflate_compressor *const compressor = libdeflate_alloc_compressor(COMPRESSION);
    struct blob data = {0};
    bool done = false;

    if (compressor && blob_append(&data, name, strlen(name) + 1) && blob_append(&data, "", 1)) {
        const size_t head = data.size, room = libdeflate_zlib_compress_bound(compressor, metadata->icc.size);
        uint8_t *const packed = blob_extend(&data, room);
        if (packed) {
            const size_t size =
                libdeflate_zlib_compress(compressor, metadata->icc.bytes, metadata->icc.size, packed, room);
            done = put_chunk(out, "iCCP", data.bytes, head + size);
        }
    }
    libdeflate_free_compressor(compressor);
    blob_free(&data);
    return done;
}

/* Photoshop's resources, as ImageMagick puts them into a PNG and others look for them: raw_profile reads it. */
static bool png_put_resources(const struct blob *iptc, struct blob *out)
{
    static const char digits[] = "0123456789abcdef";
    struct blob data = {0};
    char head[64];
    const int length = snprintf(head, sizeof head, "%s%s%c\niptc\n%8zu\n", raw_keyword, "iptc", 0, iptc->size);
    bool done = blob_append(&data, head, (size_t)length);

    for (size_t i = 0; done && i < iptc->size; i++) {
        const bool last = i % 36 == 35 || i + 1 == iptc->size; /* of a line */
        const char text[3] = {digits[iptc->bytes[i] >> 4], digits[iptc->bytes[i] & 15], '\n'};
        done = blob_append(&data, text, last ? 3 : 2);
    }
    done = done && put_chunk(out, "tEXt", data.bytes, data.size);
    blob_free(&data);
    return done;
}

static bool png_put_xmp(const struct blob *xmp, struct blob *out)
{
    static const char head[] =
        "XML:com.adobe.xmp\0\0\0\0"; /* not compressed, no language, no translation; its own NUL */
    struct blob data = {0};
    const bool done = blob_append(&data, head, sizeof head) && blob_append(&data, xmp->bytes, xmp->size) &&
                      put_chunk(out, "iTXt", data.bytes, data.size);

    blob_free(&data);
    return done;
}

/* All chunks, in an order that the standard allows behind IHDR. */
static bool png_put(const struct metadata *metadata, bool grey, struct blob *out, uint32_t *left_out)
{
    const bool profile = metadata->icc.size > 0 && icc_fits(metadata, grey);

    if (metadata->icc.size > 0 && !profile)
        *left_out |= reason_bit(METADATA_ICC, METADATA_OTHER_COLOUR);
    return (!metadata->has_coding || put_chunk(out, "cICP", metadata->coding, sizeof metadata->coding)) &&
           (!profile || png_put_icc(metadata, out)) &&
           (!metadata->has_srgb || put_chunk(out, "sRGB", &metadata->intent, 1)) &&
           (!metadata->has_gamma || put_chunk(out, "gAMA", metadata->gamma, sizeof metadata->gamma)) &&
           (!metadata->has_chromaticities ||
            put_chunk(out, "cHRM", metadata->chromaticities, sizeof metadata->chromaticities)) &&
           png_put_density(metadata, out) &&
           (metadata->exif.size == 0 || put_chunk(out, "eXIf", metadata->exif.bytes, metadata->exif.size)) &&
           (metadata->xmp.size == 0 || png_put_xmp(&metadata->xmp, out)) &&
           (metadata->iptc.size == 0 || png_put_resources(&metadata->iptc, out)) &&
           blob_append(out, metadata->texts.bytes, metadata->texts.size);
}

/* Append a segment: HEAD, then SIZE bytes, which fit. */
static bool put_segment(struct blob *out, unsigned marker, const void *head, size_t head_size, const uint8_t *bytes,
                        size_t size)
{
    const size_t length = 2 + head_size + size;
    const uint8_t start[4] = {0xff, (uint8_t)marker, (uint8_t)(length >> 8), (uint8_t)length};

    return blob_append(out, start, sizeof start) && blob_append(out, head, head_size) && blob_append(out, bytes, size);
}

/* One that is left out if it does not fit. */
static bool put_part(struct blob *out, unsigned marker, const char *head, size_t head_size, const struct blob *blob,
                     enum metadata_part part, uint32_t *left_out)
{
    if (blob->size > SEGMENT_MOST - head_size) {
        *left_out |= reason_bit(part, METADATA_TOO_LARGE);
        return true;
    }
    return blob->size == 0 || put_segment(out, marker, head, head_size, blob->bytes, blob->size);
}

static bool jpeg_put_icc(const struct blob *icc, struct blob *out, uint32_t *left_out)
{
    enum { HEAD = sizeof icc_head + 2, ROOM = SEGMENT_MOST - HEAD };
    const size_t count = (icc->size + ROOM - 1) / ROOM;
    uint8_t head[HEAD] = "ICC_PROFILE";
    bool done = true;

    if (count > SEGMENTS_MOST) {
        *left_out |= reason_bit(METADATA_ICC, METADATA_TOO_LARGE);
        return true;
    }
    head[HEAD - 1] = (uint8_t)count;
    for (size_t i = 0; done && i < count; i++) {
        head[HEAD - 2] = (uint8_t)(i + 1);
        done = put_segment(out, 0xe2, head, HEAD, icc->bytes + i * ROOM, i + 1 < count ? ROOM : icc->size - i * ROOM);
    }
    return done;
}

static bool jpeg_put_resources(const struct blob *iptc, struct blob *out)
{
    enum { ROOM = SEGMENT_MOST - sizeof photoshop_head };
    bool done = true;

    for (size_t at = 0; done && at < iptc->size; at += ROOM)
        done = put_segment(out, 0xed, photoshop_head, sizeof photoshop_head, iptc->bytes + at,
                           iptc->size - at < ROOM ? iptc->size - at : ROOM);
    return done;
}

/* Of the texts those that are comments; compressed ones are passed over as all others are. */
static bool jpeg_put_comments(const struct blob *texts, struct blob *out, uint32_t *left_out)
{
    bool done = true;

    for (size_t at = 0; done && at < texts->size;) {
        const uint8_t *const chunk = texts->bytes + at;
        const size_t size = big32(chunk);
        bool compressed;
        const size_t start = png_text_start((const char *)chunk + 4, chunk + 8, size, &compressed);
        const uint8_t *const text = chunk + 8 + start;
        size_t length = size - start;
        at += CHUNK_OVERHEAD + size;
        while (length > 0 && text[length - 1] == 0)
            length--;
        if (strcmp((const char *)chunk + 8, "Comment") != 0 || compressed || length == 0)
            continue;
        if (length > SEGMENT_MOST)
            *left_out |= reason_bit(METADATA_TEXT, METADATA_TOO_LARGE);
        else if (memchr(text, 0, length))
            *left_out |= reason_bit(METADATA_TEXT, METADATA_DAMAGED);
        else
            done = put_segment(out, 0xfe, "", 0, text, length);
    }
    return done;
}

/* All segments. */
static bool jpeg_put(const struct metadata *metadata, bool grey, struct blob *out, uint32_t *left_out)
{
    const bool profile = metadata->icc.size > 0 && icc_fits(metadata, grey);

    if (metadata->icc.size > 0 && !profile)
        *left_out |= reason_bit(METADATA_ICC, METADATA_OTHER_COLOUR);
    return put_part(out, 0xe1, exif_head, sizeof exif_head, &metadata->exif, METADATA_EXIF, left_out) &&
           put_part(out, 0xe1, xmp_head, sizeof xmp_head, &metadata->xmp, METADATA_XMP, left_out) &&
           jpeg_put_resources(&metadata->iptc, out) && (!profile || jpeg_put_icc(&metadata->icc, out, left_out)) &&
           jpeg_put_comments(&metadata->texts, out, left_out);
}

/* Put the density into the JFIF segment that encoders begin with, the data of which are at BYTES. */
static void jpeg_set_density(const struct metadata *metadata, uint8_t *data)
{
    enum density density = metadata->density;
    uint32_t across = metadata->across, down = metadata->down;

    if (density == DENSITY_METRE) {
        density = DENSITY_INCH;
        across = (uint32_t)(((uint64_t)across * 254 + 5000) / 10000);
        down = (uint32_t)(((uint64_t)down * 254 + 5000) / 10000);
    }
    if (density == DENSITY_NONE || across == 0 || down == 0 || across > UINT16_MAX || down > UINT16_MAX)
        return;
    data[0] = density == DENSITY_INCH ? 1 : density == DENSITY_CENTIMETRE ? 2 : 0;
    data[1] = (uint8_t)(across >> 8);
    data[2] = (uint8_t)across;
    data[3] = (uint8_t)(down >> 8);
    data[4] = (uint8_t)down;
}

/* Where in an encoded file the metadata go, and is it grey? The density is set on the way. */
static size_t find_place(const struct metadata *metadata, enum format format, uint8_t *bytes, size_t size, bool *grey)
{
    enum { SIGNATURE = 8, PNG_COLOUR = 25, JPEG_COMPONENTS = 5 };
    size_t at = 2, place = 2, data, length;
    unsigned marker;

    *grey = false;
    if (format == FORMAT_PNG) {
        *grey = !(bytes[PNG_COLOUR] & 2);
        return SIGNATURE + CHUNK_OVERHEAD + big32(bytes + SIGNATURE);
    }
    while (jpeg_next(bytes, size, &at, &marker, &data, &length)) {
        if (marker == 0xe0 && begins(bytes + data, length, jfif_head, sizeof jfif_head) && length >= JFIF_DENSITY + 5) {
            jpeg_set_density(metadata, bytes + data + JFIF_DENSITY);
            place = at;
        } else if (marker >= 0xc0 && marker <= 0xc2 && length > JPEG_COMPONENTS) {
            *grey = bytes[data + JPEG_COMPONENTS] == 1;
        }
    }
    return place;
}

bool metadata_write(const struct metadata *metadata, enum format format, uint8_t **bytes, size_t *size,
                    uint32_t *left_out, struct error *error)
{
    struct blob added = {0};
    bool grey;
    const size_t place = find_place(metadata, format, *bytes, *size, &grey);

    *left_out = 0;
    bool done = (format == FORMAT_PNG ? png_put : jpeg_put)(metadata, grey, &added, left_out);
    if (done && added.size > 0) {
        uint8_t *const larger = realloc(*bytes, *size + added.size);
        done = larger;
        if (done) {
            memmove(larger + place + added.size, larger + place, *size - place);
            memcpy(larger + place, added.bytes, added.size);
            *bytes = larger;
            *size += added.size;
        }
    }
    blob_free(&added);
    return done || no_memory(error);
}

size_t metadata_bytes(const struct metadata *metadata)
{
    return metadata->icc.size + metadata->exif.size + metadata->xmp.size + metadata->iptc.size + metadata->texts.size;
}

void metadata_free(struct metadata *metadata)
{
    blob_free(&metadata->icc);
    blob_free(&metadata->exif);
    blob_free(&metadata->xmp);
    blob_free(&metadata->iptc);
    blob_free(&metadata->texts);
    *metadata = (struct metadata){0};
}
