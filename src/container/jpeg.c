/* SPDX-License-Identifier: MIT */
#include "container/jpeg.h"

#include <string.h>

struct jpeg_walk jpeg_walk_begin(const uint8_t *bytes, size_t size)
{
    return (struct jpeg_walk){.bytes = bytes, .size = size, .at = JPEG_SOI_BYTES};
}

/* The end of the data of a scan that begin at AT, which is the next marker that is neither a restart nor FF 00. FF 00
 * stands for a byte FF of the data. Returns the file's size if there is no such marker. */
static size_t find_scan_end(const uint8_t *bytes, size_t size, size_t at)
{
    const uint8_t *end = bytes + size, *next = bytes + at;
    while ((next = memchr(next, 0xff, (size_t)(end - next))) != NULL) {
        const uint8_t *marker = next;
        while (next < end && *next == 0xff)
            next++;
        if (next == end)
            break;
        if (*next != 0 && (*next & 0xf8) != JPEG_MARKER_RST0)
            return (size_t)(marker - bytes);
        next++;
    }
    return size;
}

/* Is this a marker without a length, or no marker at all? */
static bool begins_no_segment(unsigned marker)
{
    return marker < 2 || (marker >= JPEG_MARKER_RST0 && marker <= JPEG_MARKER_SOI);
}

enum jpeg_step jpeg_walk_next(struct jpeg_walk *walk, struct jpeg_segment *segment)
{
    const uint8_t *bytes = walk->bytes;
    const size_t size = walk->size;
    size_t at = walk->in_scan ? find_scan_end(bytes, size, walk->at) : walk->at;
    /* Skip other bytes before the FF: the codecs decide whether they accept these. */
    const uint8_t *fill = at < size ? memchr(bytes + at, 0xff, size - at) : NULL;
    at = fill != NULL ? (size_t)(fill - bytes) : size;
    *segment = (struct jpeg_segment){.at = at};
    while (at < size && bytes[at] == 0xff)
        at++;
    segment->marker = at < size ? bytes[at++] : 0;
    segment->left = size - at;
    walk->in_scan = false;
    if (segment->marker == JPEG_MARKER_EOI)
        return JPEG_STEP_END;
    if (segment->left > 0 && begins_no_segment(segment->marker))
        return JPEG_STEP_NOT_ALLOWED;
    if (segment->left < 2)
        return JPEG_STEP_NO_END;
    segment->size = big16(bytes + at);
    if (segment->size < 2)
        return JPEG_STEP_TOO_SHORT;
    if (segment->left < segment->size)
        return JPEG_STEP_TRUNCATED;
    segment->data = bytes + at + 2;
    walk->at = at + segment->size;
    walk->in_scan = segment->marker == JPEG_MARKER_SOS;
    segment->size -= 2;
    return JPEG_STEP_SEGMENT;
}

bool jpeg_walk_headers(struct jpeg_walk *walk, struct jpeg_segment *segment)
{
    return !walk->in_scan && jpeg_walk_next(walk, segment) == JPEG_STEP_SEGMENT && segment->marker != JPEG_MARKER_SOS;
}

bool jpeg_is_frame(unsigned marker)
{
    return marker >= JPEG_MARKER_SOF0 && marker <= JPEG_MARKER_SOF15 && marker != JPEG_MARKER_DHT &&
           marker != JPEG_MARKER_JPG && marker != JPEG_MARKER_DAC;
}
