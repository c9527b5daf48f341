/* SPDX-License-Identifier: MIT
 *
 * The container of JPEG: segments, each with a marker at its beginning, and the data of scans between them (ITU-T T.81,
 * annex B). This file walks over segments for the check and the metadata, and writes them. It knows nothing of samples.
 * */
#ifndef GPUCONV_CONTAINER_JPEG_H
#define GPUCONV_CONTAINER_JPEG_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Markers: the byte after FF. */
enum jpeg_marker {
    JPEG_MARKER_SOF0 = 0xc0, /* frame headers are SOF0 to SOF15, without the next three */
    JPEG_MARKER_SOF1 = 0xc1, /* extended sequential: a baseline picture may have it, too */
    JPEG_MARKER_SOF2 = 0xc2, /* progressive; no later kind is read */
    JPEG_MARKER_DHT = 0xc4,
    JPEG_MARKER_JPG = 0xc8,
    JPEG_MARKER_DAC = 0xcc,
    JPEG_MARKER_SOF15 = 0xcf,
    JPEG_MARKER_RST0 = 0xd0, /* restart markers are RST0 to RST7 */
    JPEG_MARKER_SOI = 0xd8,
    JPEG_MARKER_EOI = 0xd9,
    JPEG_MARKER_SOS = 0xda,
    JPEG_MARKER_DQT = 0xdb,
    JPEG_MARKER_DRI = 0xdd,
    JPEG_MARKER_APP0 = 0xe0,
    JPEG_MARKER_APP1 = 0xe1,
    JPEG_MARKER_APP2 = 0xe2,
    JPEG_MARKER_APP3 = 0xe3,
    JPEG_MARKER_APP10 = 0xea,
    JPEG_MARKER_APP13 = 0xed,
    JPEG_MARKER_APP14 = 0xee,
    JPEG_MARKER_APP15 = 0xef,
    JPEG_MARKER_COM = 0xfe,
};

enum {
    JPEG_SOI_BYTES = 2,        /* before the first segment */
    JPEG_SEGMENT_MOST = 65533, /* the most data of a segment in bytes: the length has 16 bits and counts itself */
};

/* Chroma subsampling: how many samples of brightness there are for one of colour in each direction. 0, 0 means that it
 * is unknown or irregular. */
struct chroma_subsampling {
    int horizontal, vertical;
};

/* The tables of quantisers by their numbers, each in the order of a file (zigzag). */
struct jpeg_quantiser_tables {
    bool is_known[4];
    uint16_t values[4][64];
};

/* The quantisers of a picture: at most three tables, each in the order of a file (zigzag), and the table of each
 * component. */
struct jpeg_quantisers {
    int tables;
    uint16_t values[3][64];
    int of[3];
};

/* A complete segment of a file. */
struct jpeg_segment {
    size_t at;           /* the place of its marker in the file, or of the first fill byte FF before it */
    unsigned marker;     /* 0 if the file ends before it */
    const uint8_t *data; /* after the length */
    size_t size;         /* bytes of data; after a failed step, the size that the length claims */
    size_t left;         /* bytes from the length to the end of the file */
};

/* The result of a step of the walk. */
enum jpeg_step {
    JPEG_STEP_SEGMENT,
    JPEG_STEP_END,       /* the marker that ends the image */
    JPEG_STEP_NO_PLACE,  /* a marker that may not be at this place */
    JPEG_STEP_NO_END,    /* the file ends before the next marker, or before its length */
    JPEG_STEP_TOO_SHORT, /* the length is below 2, its own size */
    JPEG_STEP_TRUNCATED, /* the segment is longer than the rest of the file */
};

/* A walk over the segments of a file. */
struct jpeg_walk {
    const uint8_t *bytes;
    size_t size;
    size_t at;    /* the search for the next marker starts here */
    bool in_scan; /* after SOS: first go past the data of the scan */
};

/* Begin a walk at the first segment. The file must be at least as long as its SOI marker. */
struct jpeg_walk jpeg_walk_begin(const uint8_t *bytes, size_t size);

/* Step to the next segment and fill SEGMENT. After SOS, the step skips the data of the scan first. */
enum jpeg_step jpeg_walk_next(struct jpeg_walk *walk, struct jpeg_segment *segment);

/* The same, but only up to the first scan. Returns false at the scan, at the end, and after a failed step. */
bool jpeg_walk_headers(struct jpeg_walk *walk, struct jpeg_segment *segment);

/* Read a DQT segment: for each table 4 bits of precision, 4 of its number, and 64 values of 1 or 2 bytes. False: the
 * segment is damaged. */
bool jpeg_read_quantisers(const struct jpeg_segment *segment, struct jpeg_quantiser_tables *tables);

/* Set QUANTISERS to those that the file defines before its first scan. Returns false if one is missing there, or if it
 * has four components. */
bool jpeg_find_quantisers(const uint8_t *bytes, size_t size, struct jpeg_quantisers *quantisers);

/* Is this the marker of a frame header? */
bool jpeg_is_frame(unsigned marker);

/* Append a segment to OUT: HEAD, then SIZE bytes. Both together have at most JPEG_SEGMENT_MOST bytes. Returns false if
 * there is not enough memory. */
bool jpeg_segment_append(struct blob *out, enum jpeg_marker marker, const void *head, size_t head_size,
                         const uint8_t *bytes, size_t size);

#endif
