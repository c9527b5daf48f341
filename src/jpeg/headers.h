/* SPDX-License-Identifier: MIT
 *
 * The headers of a baseline JPEG, and the data of its scan. Both functions decline what libjpeg-turbo refuses or warns
 * of, and what is rare: another codec then reads the file, and finds the words. */
#ifndef GPUCONV_JPEG_HEADERS_H
#define GPUCONV_JPEG_HEADERS_H

#include "jpeg/layout.h"

/* The data of a scan in its file, with stuffed bytes and restart markers. */
struct jpeg_scan {
    const uint8_t *bytes;
    size_t size;
};

/* Read the headers of a file. Its container is intact, as codec_inspect checks. False: declined. */
bool jpeg_read_headers(const uint8_t *bytes, size_t size, struct jpeg_layout *layout, struct jpeg_scan *scan);

/* The restart segments of a picture of LAYOUT; 1 without restart markers. */
static inline size_t jpeg_segment_count(const struct jpeg_layout *layout)
{
    const size_t mcus = (size_t)layout->mcus_across * (size_t)layout->mcus_down;
    const size_t interval = layout->restart_interval > 0 ? (size_t)layout->restart_interval : mcus;
    return (mcus + interval - 1) / interval;
}

/* Can SCAN hold so many segments? Check this before memory for them is reserved. Each has a byte at least, and a marker
 * before the next. */
static inline bool jpeg_scan_holds(const struct jpeg_scan *scan, size_t segments)
{
    return segments <= scan->size / 3 + 1;
}

/* Copy the data of SCAN without stuffed bytes and restart markers to DATA, which has scan->size bytes. Set *SIZE, and in
 * STARTS the place of each of SEGMENTS segments. False: declined, because the restart markers are not those that belong
 * there, or the data have 2^32 bytes. */
bool jpeg_copy_scan(const struct jpeg_scan *scan, size_t segments, uint8_t *data, size_t *size, uint32_t *starts);

#endif
