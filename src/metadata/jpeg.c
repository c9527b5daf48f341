/* SPDX-License-Identifier: MIT
 *
 * Metadata in the segments of a JPEG. */
#include "metadata/metadata_internal.h"

#include "base/text.h"
#include "container/png.h"

#include <string.h>

#define ICC_HEAD "ICC_PROFILE"
#define PHOTOSHOP_HEAD "Photoshop 3.0"
#define JFIF_HEAD "JFIF"

enum {
    PROFILE_PIECES_MAX = 255, /* the maximal number of segments of a profile */
    JFIF_RESOLUTION = 7,      /* the offset in JFIF's data of the unit, 1 byte, and two resolutions, 2 bytes each */
    JFIF_RESOLUTION_BYTES = 5,
    FRAME_COMPONENTS = 5, /* the offset of the number of components in a frame header */
};

/* ---- Reading ---- */

/* Parts that may be in several segments, while they are read. */
struct pieces {
    struct {
        const uint8_t *bytes;
        size_t size;
    } profile[PROFILE_PIECES_MAX + 1]; /* indexed by their numbers, from 1 on */
    unsigned claimed;                  /* the number of pieces that each of them claims; 0 before the first */
    bool damaged;
    struct blob resources;
};

/* Note one piece of a profile: its number, the number of pieces, its bytes. */
static void record_profile_piece(struct pieces *pieces, const uint8_t *data, size_t size)
{
    const unsigned number = data[0], count = data[1];
    if (pieces->claimed == 0)
        pieces->claimed = count;
    if (number == 0 || number > count || count != pieces->claimed || pieces->profile[number].bytes != NULL) {
        pieces->damaged = true;
        return;
    }
    pieces->profile[number].bytes = data + 2;
    pieces->profile[number].size = size - 2;
}

static bool join_profile(struct metadata *metadata, const struct pieces *pieces)
{
    struct blob profile = {0};
    bool done = true, whole = !pieces->damaged;
    for (unsigned i = 1; whole && i <= pieces->claimed; i++)
        whole = pieces->profile[i].bytes != NULL;
    if (!whole)
        return metadata_drop(metadata, METADATA_ICC, METADATA_DAMAGED);
    for (unsigned i = 1; done && i <= pieces->claimed; i++)
        done = blob_append(&profile, pieces->profile[i].bytes, pieces->profile[i].size);
    done = done && (pieces->claimed == 0 || metadata_add_icc(metadata, profile.bytes, profile.size));
    blob_free(&profile);
    return done;
}

static bool is_ascii_text(const uint8_t *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] >= 0x80)
            return false;
    return true;
}

/* Make a text chunk of a comment. No comment declares its character set: tEXt is for Latin-1, iTXt for UTF-8. */
static bool read_comment(struct metadata *metadata, const uint8_t *text, size_t size)
{
    static const char latin_head[] = "Comment", utf8_head[] = "Comment\0\0\0\0"; /* each literal adds a NUL */
    struct blob data = {0}, chunk = {0};
    while (size > 0 && text[size - 1] == 0)
        size--;
    if (size == 0 || memchr(text, 0, size) != NULL)
        return size == 0 || metadata_drop(metadata, METADATA_TEXT, METADATA_DAMAGED);
    const bool utf8 = !is_ascii_text(text, size) && text_is_utf8(text, size); /* Latin-1 almost never is */
    const bool done = blob_append(&data, utf8 ? utf8_head : latin_head, utf8 ? sizeof utf8_head : sizeof latin_head) &&
                      blob_append(&data, text, size) &&
                      png_chunk_append(&chunk, utf8 ? "iTXt" : "tEXt", data.bytes, data.size) &&
                      metadata_add_text(metadata, text, size, chunk.bytes, chunk.size);
    blob_free(&data);
    blob_free(&chunk);
    return done;
}

/* Is the segment a JFIF header with a resolution? */
static bool is_jfif(const struct jpeg_segment *segment)
{
    return segment->marker == JPEG_MARKER_APP0 &&
           bytes_begin(segment->data, segment->size, JFIF_HEAD, sizeof JFIF_HEAD) &&
           segment->size >= JFIF_RESOLUTION + JFIF_RESOLUTION_BYTES;
}

static void read_jfif_resolution(struct metadata *metadata, const uint8_t *data)
{
    static const enum resolution_unit units[] = {RESOLUTION_ASPECT, RESOLUTION_INCH, RESOLUTION_CENTIMETRE};
    if (metadata->resolution.unit != RESOLUTION_NONE || data[0] > 2)
        return;
    metadata->resolution = (struct resolution){
        .unit = units[data[0]],
        .horizontal = big16(data + 1),
        .vertical = big16(data + 3),
    };
}

static bool read_segment(struct metadata *metadata, struct pieces *pieces, const struct jpeg_segment *segment)
{
    const uint8_t *data = segment->data;
    const size_t size = segment->size;
    bool is_known = false;
    switch (segment->marker) {
    case JPEG_MARKER_APP0:
        if (is_jfif(segment))
            read_jfif_resolution(metadata, data + JFIF_RESOLUTION);
        return true;
    case JPEG_MARKER_APP1:
        if (bytes_begin(data, size, XMP_HEAD, sizeof XMP_HEAD))
            return metadata_add_xmp(metadata, data + sizeof XMP_HEAD, size - sizeof XMP_HEAD);
        if (metadata_is_exif(data, size))
            return metadata_add_exif(metadata, data, size);
        break;
    case JPEG_MARKER_APP2:
        is_known = bytes_begin(data, size, "MPF", 4); /* other content */
        if (bytes_begin(data, size, ICC_HEAD, sizeof ICC_HEAD) && size >= sizeof ICC_HEAD + 2) {
            record_profile_piece(pieces, data + sizeof ICC_HEAD, size - sizeof ICC_HEAD);
            is_known = true;
        }
        break;
    case JPEG_MARKER_APP0 + 11: /* JUMBF (ISO/IEC 19566-5): "JP", numbers of 2 and 4 bytes, and a box */
        if (size >= 16 && memcmp(data, "JP", 2) == 0 && memcmp(data + 12, "jumb", 4) == 0)
            return metadata_drop(metadata, METADATA_C2PA, METADATA_UNKNOWN);
        break;
    case JPEG_MARKER_APP13:
        if (bytes_begin(data, size, PHOTOSHOP_HEAD, sizeof PHOTOSHOP_HEAD))
            return blob_append(&pieces->resources, data + sizeof PHOTOSHOP_HEAD, size - sizeof PHOTOSHOP_HEAD);
        break;
    case JPEG_MARKER_APP0 + 14: /* Adobe's, which says how the colours are coded */
        return true;
    case JPEG_MARKER_COM:
        return read_comment(metadata, data, size);
    default:
        break;
    }
    return is_known || segment->marker < JPEG_MARKER_APP0 || segment->marker > JPEG_MARKER_APP0 + 15 ||
           metadata_drop(metadata, METADATA_CHUNK, METADATA_UNKNOWN);
}

bool metadata_read_jpeg(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error)
{
    struct pieces pieces = {0};
    struct jpeg_walk walk = jpeg_walk_begin(bytes, size);
    struct jpeg_segment segment;
    bool done = true;
    metadata->orientation = 1;
    while (done && jpeg_walk_headers(&walk, &segment))
        done = read_segment(metadata, &pieces, &segment);
    done = done && join_profile(metadata, &pieces) &&
           metadata_add_resources(metadata, pieces.resources.bytes, pieces.resources.size);
    blob_free(&pieces.resources);
    return metadata_read_end(done, metadata, error);
}

/* ---- Writing ---- */

/* Append a part in one segment, or drop it if it does not fit. */
static bool append_part(struct blob *out, const char *head, size_t head_size, const struct blob *blob,
                        enum metadata_part part, uint64_t *dropped)
{
    if (blob->size > JPEG_SEGMENT_MAX - head_size) {
        *dropped |= metadata_bit(part, METADATA_TOO_LARGE);
        return true;
    }
    return blob->size == 0 || jpeg_segment_append(out, JPEG_MARKER_APP1, head, head_size, blob->bytes, blob->size);
}

static bool append_profile(const struct blob *icc, struct blob *out, uint64_t *dropped)
{
    enum { HEAD = sizeof ICC_HEAD + 2, PIECE = JPEG_SEGMENT_MAX - HEAD };
    const size_t count = (icc->size + PIECE - 1) / PIECE;
    uint8_t head[HEAD] = ICC_HEAD;
    bool done = true;
    if (count > PROFILE_PIECES_MAX) {
        *dropped |= metadata_bit(METADATA_ICC, METADATA_TOO_LARGE);
        return true;
    }
    head[HEAD - 1] = (uint8_t)count;
    for (size_t i = 0; done && i < count; i++) {
        head[HEAD - 2] = (uint8_t)(i + 1);
        done = jpeg_segment_append(out, JPEG_MARKER_APP2, head, HEAD, icc->bytes + i * PIECE,
                                   i + 1 < count ? PIECE : icc->size - i * PIECE);
    }
    return done;
}

static bool append_photoshop(const struct blob *iptc, struct blob *out)
{
    enum { PIECE = JPEG_SEGMENT_MAX - sizeof PHOTOSHOP_HEAD };
    bool done = true;
    for (size_t at = 0; done && at < iptc->size; at += PIECE)
        done = jpeg_segment_append(out, JPEG_MARKER_APP13, PHOTOSHOP_HEAD, sizeof PHOTOSHOP_HEAD, iptc->bytes + at,
                                   iptc->size - at < PIECE ? iptc->size - at : PIECE);
    return done;
}

/* Append one text chunk as a comment, if it is a comment. Compressed texts and all other texts are ignored. */
static bool append_comment(const struct png_chunk *chunk, struct blob *out, uint64_t *dropped)
{
    bool compressed;
    const size_t start = png_text_start(chunk->type, chunk->data, chunk->size, &compressed);
    const uint8_t *text = chunk->data + start;
    size_t length = chunk->size - start;
    while (length > 0 && text[length - 1] == 0)
        length--;
    if (strcmp((const char *)chunk->data, "Comment") != 0 || compressed || length == 0)
        return true;
    if (length > JPEG_SEGMENT_MAX)
        *dropped |= metadata_bit(METADATA_TEXT, METADATA_TOO_LARGE);
    else if (memchr(text, 0, length) != NULL)
        *dropped |= metadata_bit(METADATA_TEXT, METADATA_DAMAGED);
    else
        return jpeg_segment_append(out, JPEG_MARKER_COM, "", 0, text, length);
    return true;
}

static bool append_comments(const struct blob *texts, struct blob *out, uint64_t *dropped)
{
    struct png_walk walk = {.bytes = texts->bytes, .size = texts->size};
    struct png_chunk chunk;
    bool done = true;
    while (done && png_walk_next(&walk, &chunk) == PNG_STEP_CHUNK)
        done = append_comment(&chunk, out, dropped);
    return done;
}

static bool append_segments(const struct metadata *metadata, bool grey, struct blob *out, uint64_t *dropped)
{
    const bool profile = metadata_has_icc_for(metadata, grey, dropped);
    return append_part(out, EXIF_HEAD, sizeof EXIF_HEAD, &metadata->exif, METADATA_EXIF, dropped) &&
           append_part(out, XMP_HEAD, sizeof XMP_HEAD, &metadata->xmp, METADATA_XMP, dropped) &&
           append_photoshop(&metadata->iptc, out) && (!profile || append_profile(&metadata->icc, out, dropped)) &&
           append_comments(&metadata->texts, out, dropped);
}

/* Write the resolution to DATA: JFIF_RESOLUTION_BYTES of the JFIF segment at the beginning of encoded files. */
static void write_resolution(const struct resolution *resolution, uint8_t *data)
{
    enum resolution_unit unit = resolution->unit;
    uint32_t horizontal = resolution->horizontal, vertical = resolution->vertical;
    if (unit == RESOLUTION_METRE) {
        unit = RESOLUTION_INCH;
        horizontal = (uint32_t)(((uint64_t)horizontal * 254 + 5000) / 10000);
        vertical = (uint32_t)(((uint64_t)vertical * 254 + 5000) / 10000);
    }
    if (unit == RESOLUTION_NONE || horizontal == 0 || vertical == 0 || horizontal > UINT16_MAX || vertical > UINT16_MAX)
        return;
    data[0] = unit == RESOLUTION_INCH ? 1 : unit == RESOLUTION_CENTIMETRE ? 2 : 0;
    put_big16(data + 1, horizontal);
    put_big16(data + 3, vertical);
}

bool metadata_write_jpeg(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint64_t *dropped,
                         struct error *error)
{
    struct jpeg_walk walk = jpeg_walk_begin(*bytes, *size);
    struct jpeg_segment segment;
    size_t offset = JPEG_SOI_BYTES;
    bool grey = false;
    struct blob added = {0};
    while (jpeg_walk_headers(&walk, &segment)) {
        if (is_jfif(&segment)) {
            write_resolution(&metadata->resolution, *bytes + (segment.data - *bytes) + JFIF_RESOLUTION);
            offset = walk.at;
        } else if (segment.marker >= JPEG_MARKER_SOF0 && segment.marker <= JPEG_MARKER_SOF2 &&
                   segment.size > FRAME_COMPONENTS) {
            grey = segment.data[FRAME_COMPONENTS] == 1;
        }
    }
    struct adapted adapted;
    const bool done = metadata_adapt(metadata, METADATA_OF_JPEG, grey, &adapted, dropped) &&
                      append_segments(&adapted.metadata, grey, &added, dropped);
    metadata_adapted_free(&adapted);
    return metadata_insert(done, &added, offset, bytes, size, error);
}
