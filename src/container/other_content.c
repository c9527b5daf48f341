/* SPDX-License-Identifier: MIT */
#include "container/other_content.h"

#include "base/text.h"
#include "container/check.h"
#include "container/png.h"
#include "container/pnm.h"
#include "container/tiff.h"

#include <string.h>

/* ---- The index of pictures ---- */

/* MPF is a TIFF block after a name. The value of the tag MP_ENTRIES has 16 bytes for each picture: attributes, size and
 * offset in 4 bytes each, then 4 others. Offsets begin with the block; that of the first picture is 0. */
enum {
    MP_NAME = 4,
    MP_ENTRIES = 0xb002,
    MP_ENTRY = 16,
    MP_PREVIEW = 1, /* bits 16 to 23 of the attributes: a "large thumbnail" */
};

bool container_is_picture_index(const struct jpeg_segment *segment)
{
    return segment->marker == JPEG_MARKER_APP2 && segment->size > MP_NAME && memcmp(segment->data, "MPF", MP_NAME) == 0;
}

/* The size of the preview that is at byte AT of the file, or 0 if INDEX lists none there. */
static size_t preview_size(const uint8_t *bytes, const struct jpeg_segment *index, size_t at)
{
    struct tiff_directory directory;
    struct tiff_entry pictures;
    if (index->data == NULL)
        return 0;
    const uint8_t *block = index->data + MP_NAME;
    tiff_open_damaged(block, index->size - MP_NAME, &directory);
    if (!tiff_find(&directory, MP_ENTRIES, &pictures))
        return 0;
    for (const uint8_t *picture = pictures.value; pictures.size >= MP_ENTRY;
         picture += MP_ENTRY, pictures.size -= MP_ENTRY)
        if (bytes_number(picture + 8, 4, directory.big) == at - (size_t)(block - bytes) &&
            (bytes_number(picture, 4, directory.big) >> 16 & 0xff) == MP_PREVIEW)
            return bytes_number(picture + 4, 4, directory.big);
    return 0;
}

/* ---- In segments ---- */

/* Does a segment begin with HEAD, and contain TEXT? */
static bool segment_has(const struct jpeg_segment *segment, enum jpeg_marker marker, const char *head, const char *text)
{
    const size_t length = strlen(head);
    return segment->marker == marker && segment->size >= length && memcmp(segment->data, head, length) == 0 &&
           bytes_contain(segment->data, segment->size, text);
}

/* FLIR puts a thermal camera's samples into APP1. DJI and InfiRay fill segments of APP3 and later with them. The other
 * uses of APP3 to APP10 are small. */
unsigned container_other_content_of(const struct jpeg_segment *segment)
{
    static const char extended[] = "http://ns.adobe.com/xmp/extension/";
    if (segment_has(segment, JPEG_MARKER_APP1, extended, "http://ns.google.com/photos/1.0/image/") ||
        segment_has(segment, JPEG_MARKER_APP1, extended, "http://ns.google.com/photos/1.0/depthmap/"))
        return 1U << OTHER_PICTURES;
    if (segment_has(segment, JPEG_MARKER_APP1, "FLIR", "") ||
        (segment->marker >= JPEG_MARKER_APP3 && segment->marker <= JPEG_MARKER_APP10 &&
         segment->size > JPEG_SEGMENT_MAX - 100))
        return 1U << OTHER_RAW;
    return 0;
}

/* ---- After the end ---- */

/* The size of the padding. A second EOI counts too. */
static size_t padding_size(const uint8_t *bytes, size_t size)
{
    size_t at = 0;
    for (; at < size; at++) {
        const uint8_t byte = bytes[at], next = at + 1 < size ? bytes[at + 1] : 0;
        if (byte == 0xff && next == JPEG_MARKER_SOI)
            break;
        if (byte == 0xff && next == JPEG_MARKER_EOI)
            at++;
        else if (byte != 0 && byte != 0xff && byte != ' ' && byte != '\t' && byte != '\r' && byte != '\n')
            break;
    }
    return at;
}

/* Does a segment describe its picture as a gain map? */
static bool describes_gain_map(const struct jpeg_segment *segment)
{
    static const char *const names[] = {"hdr-gain-map", "hdrgainmap", "urn:iso:std:iso:ts:21496:-1"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if ((segment->marker == JPEG_MARKER_APP1 || segment->marker == JPEG_MARKER_APP2) &&
            bytes_contain(segment->data, segment->size, names[i]))
            return true;
    return false;
}

/* Add the JPEG at BYTES to OTHER_CONTENT. Returns its size: all bytes if it has no end. */
static size_t add_jpeg(const uint8_t *bytes, size_t size, unsigned *other_content)
{
    struct jpeg_walk walk = jpeg_walk_begin(bytes, size);
    struct jpeg_segment segment;
    enum container_extra extra = OTHER_PICTURES;
    enum jpeg_step step;
    while ((step = jpeg_walk_next(&walk, &segment)) == JPEG_STEP_SEGMENT)
        if (describes_gain_map(&segment))
            extra = OTHER_GAIN_MAP;
    *other_content |= 1U << extra;
    return step == JPEG_STEP_END ? size - segment.left : size;
}

/* The kind of the bytes after padding, which begin with no JPEG. A film (MP4) begins with a length of 4 bytes and
 * "ftyp". The first bytes of the length are zeros, so they count as padding. Samsung puts the film into a part with a
 * name. */
static enum container_extra name_rest(const uint8_t *bytes, size_t size)
{
    if (bytes_contain(bytes, size < 8 ? size : 8, "ftyp") || bytes_contain(bytes, size, "MotionPhoto_Data"))
        return OTHER_FILM;
    if ((size >= PNG_SIGNATURE && memcmp(bytes, png_signature, PNG_SIGNATURE) == 0) ||
        (size >= PNM_MAGIC && bytes[0] == 'P' && bytes[1] >= '1' && bytes[1] <= '7'))
        return OTHER_PICTURES;
    return OTHER_DATA;
}

unsigned container_other_content_behind(const uint8_t *bytes, size_t size, size_t end, const struct jpeg_segment *index)
{
    unsigned other_content = 0;
    for (size_t at = end;;) {
        at += padding_size(bytes + at, size - at);
        const size_t left = size - at;
        if (left == 0)
            return other_content;
        if (left < 2 || bytes[at] != 0xff) /* padding leaves no other FF than that of SOI */
            return other_content | 1U << name_rest(bytes + at, left);
        /* Each preview is at another position of the index, and none is looked up after another picture. So this takes
         * time in proportion to the file. */
        const size_t preview = other_content == 0 ? preview_size(bytes, index, at) : 0;
        at += preview > 0 && preview <= left ? preview : add_jpeg(bytes + at, left, &other_content);
    }
}

/* ---- Pages ---- */

bool container_check_page(int page, int pages, const char *name, struct error *error)
{
    return page <= pages ||
           error_about(error, ERROR_WORK, name, "has %d page%s, so there is no page %d; ask for %s%d", pages,
                       text_plural(pages), page, pages > 1 ? "a page from 1 to " : "page ", pages);
}

/* ---- Words ---- */

void container_print_other_content(unsigned other_content, char text[OTHER_CONTENT_TEXT])
{
    static const char *const names[OTHER_COUNT] = {
        [OTHER_FRAMES] = "frames of an animation",
        [OTHER_LAYERS] = "layers",
        [OTHER_GAIN_MAP] = "a gain map",
        [OTHER_PICTURES] = "other pictures",
        [OTHER_RAW] = "a camera's raw samples",
        [OTHER_FILM] = "a film",
        [OTHER_DATA] = "data after the end of its picture",
    };
    text[0] = '\0';
    for (unsigned extra = 0; extra < OTHER_COUNT; extra++)
        if (other_content >> extra & 1)
            text_add_word(text, OTHER_CONTENT_TEXT, names[extra], other_content >> extra == 1 ? " and " : NULL);
}
