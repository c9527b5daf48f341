/* SPDX-License-Identifier: MIT
 *
 * JPEG's container: segments, each begun by a marker, and the data of scans between them (ITU-T T.81, annex B). One
 * walker, which the check and the metadata use, and what puts a segment together. Knows nothing of samples. */
#ifndef GPUCONV_CONTAINER_JPEG_H
#define GPUCONV_CONTAINER_JPEG_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The byte behind FF. */
enum jpeg_marker {
    JPEG_MARKER_SOF0 = 0xc0, /* frame headers are SOF0 to SOF15, without the next three */
    JPEG_MARKER_SOF2 = 0xc2, /* the last kind that is read: progressive */
    JPEG_MARKER_DHT = 0xc4,
    JPEG_MARKER_JPG = 0xc8,
    JPEG_MARKER_DAC = 0xcc,
    JPEG_MARKER_SOF15 = 0xcf,
    JPEG_MARKER_RST0 = 0xd0, /* restart markers are RST0 to RST7 */
    JPEG_MARKER_SOI = 0xd8,
    JPEG_MARKER_EOI = 0xd9,
    JPEG_MARKER_SOS = 0xda,
    JPEG_MARKER_APP0 = 0xe0,
    JPEG_MARKER_APP1 = 0xe1,
    JPEG_MARKER_APP2 = 0xe2,
    JPEG_MARKER_APP13 = 0xed,
    JPEG_MARKER_COM = 0xfe,
};

enum {
    JPEG_SOI_BYTES = 2,        /* before the first segment */
    JPEG_SEGMENT_MOST = 65533, /* bytes of data of a segment: its length has 16 bits and counts itself */
};

/* How many samples of brightness a JPEG has for one of colour in each direction. 0, 0: unknown, or not so simple. */
struct chroma_subsampling {
    int horizontal, vertical;
};

/* A segment that lies in the file as a whole. */
struct jpeg_segment {
    size_t at;           /* where its marker begins in the file, with the bytes FF that may fill the place before it */
    unsigned marker;     /* 0 where the file ends before it */
    const uint8_t *data; /* behind the length */
    size_t size;         /* of the data in bytes; where the step failed, what the length says */
    size_t left;         /* bytes of the file from the length on */
};

/* What a step of the walk found. */
enum jpeg_step {
    JPEG_STEP_SEGMENT,
    JPEG_STEP_END,       /* the marker that ends the image */
    JPEG_STEP_NO_PLACE,  /* a marker that does not begin a segment */
    JPEG_STEP_NO_END,    /* the file ends before a marker, or behind one before its length */
    JPEG_STEP_TOO_SHORT, /* the length does not even count itself */
    JPEG_STEP_TRUNCATED, /* the segment is longer than the rest of the file */
};

/* A walk over the segments of a file. */
struct jpeg_walk {
    const uint8_t *bytes;
    size_t size;
    size_t at;    /* where to look for the next marker */
    bool in_scan; /* after SOS: first go past the data of the scan */
};

/* Begin at the first segment. The file is as long as its SOI marker at least. */
struct jpeg_walk jpeg_walk_begin(const uint8_t *bytes, size_t size);

/* Step to the next segment, and fill SEGMENT. A step behind SOS goes past the data of the scan first. */
enum jpeg_step jpeg_walk_next(struct jpeg_walk *walk, struct jpeg_segment *segment);

/* The same up to the first scan: false there, at the end, and where no segment follows. */
bool jpeg_walk_headers(struct jpeg_walk *walk, struct jpeg_segment *segment);

/* Is this the marker of a frame header? */
bool jpeg_is_frame(unsigned marker);

/* Append a segment to OUT: HEAD, then SIZE bytes; both together at most JPEG_SEGMENT_MOST. False where there is not
 * enough memory. */
bool jpeg_segment_append(struct blob *out, enum jpeg_marker marker, const void *head, size_t head_size,
                         const uint8_t *bytes, size_t size);

#endif
