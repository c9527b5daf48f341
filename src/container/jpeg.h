/* SPDX-License-Identifier: MIT
 *
 * The container of JPEG: segments, each with a marker at its beginning, and the data of scans between them (ITU-T T.81,
 * annex B). This file walks over segments for the check and the metadata, and writes them. It knows nothing of
 * samples. */
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
    JPEG_MARKER_SOF2 = 0xc2, /* progressive */
    JPEG_MARKER_DHT = 0xc4,
    JPEG_MARKER_JPG = 0xc8,
    JPEG_MARKER_SOF9 = 0xc9,  /* sequential with arithmetic codes */
    JPEG_MARKER_SOF10 = 0xca, /* progressive with arithmetic codes */
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
    JPEG_SOI_BYTES = 2,       /* before the first segment */
    JPEG_SEGMENT_MAX = 65533, /* the most data of a segment in bytes: the length has 16 bits and counts itself */
};

/* Chroma subsampling: how many samples of brightness there are for one of colour in each direction. 0, 0 means that it
 * is unknown or irregular. */
struct chroma_subsampling {
    int horizontal, vertical;
};

enum {
    JPEG_BLOCK = 64,              /* coefficients of a block */
    JPEG_TABLES = 4,              /* of each kind */
    JPEG_COMPONENTS_IN_FRAME = 4, /* at most */
};

/* The index in natural order (row by row) of each coefficient in zigzag order (T.81, figure A.6). */
#define JPEG_NATURAL_ORDER_LIST                                                                                        \
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,  \
        28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60,    \
        61, 54, 47, 55, 62, 63
#define JPEG_NATURAL_ORDER                                                                                             \
    {                                                                                                                  \
        JPEG_NATURAL_ORDER_LIST                                                                                        \
    }

/* A Huffman table as DHT gives it (T.81, B.2.4.2). */
struct jpeg_huffman {
    uint8_t counts[17]; /* codes of each length; counts[0] is 0 */
    uint8_t symbols[256];
};

/* Tables by their numbers. */
struct jpeg_tables {
    uint16_t quantisers[JPEG_TABLES][JPEG_BLOCK]; /* in natural order */
    struct jpeg_huffman dc[JPEG_TABLES], ac[JPEG_TABLES];
};

/* A component of the frame. */
struct jpeg_frame_component {
    uint8_t id, horizontal, vertical; /* its sampling factors */
    uint8_t quantiser, dc, ac;        /* numbers of its tables; those of Huffman tables are from the first scan */
};

/* What the headers of a file say, up to the header of its first scan. jpeg_check makes this. */
struct jpeg_headers {
    unsigned frame; /* its marker */
    int width, height, component_count;
    struct jpeg_frame_component components[JPEG_COMPONENTS_IN_FRAME];
    struct jpeg_tables tables;
    unsigned quantisers, dc, ac; /* a bit for each table that is there */
    int restart_interval;        /* in units (MCUs), or 0 */
    bool has_jfif, has_adobe;
    unsigned adobe_transform;
    bool is_sequential; /* there is one scan, of whole blocks of all components in their order, in Huffman codes, and
                           nothing beside it is unusual: see jpeg_check.c */
    size_t scan, scan_size; /* if IS_SEQUENTIAL: where the data of the scan begin in the file, and their size */
    bool has_quantisers;    /* all components have theirs before the first scan, and there are 1 or 3 */
};

/* A complete segment of a file. */
struct jpeg_segment {
    size_t at;           /* the offset of its marker in the file, or of the first fill byte FF before it */
    unsigned marker;     /* 0 if the file ends before it */
    const uint8_t *data; /* after the length */
    size_t size;         /* bytes of data; after a failed step, the size that the length claims */
    size_t left;         /* bytes from the length to the end of the file */
};

/* The result of a step of the walk. */
enum jpeg_step {
    JPEG_STEP_SEGMENT,
    JPEG_STEP_END,       /* the marker that ends the image */
    JPEG_STEP_MISPLACED, /* a marker that is not allowed there */
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

/* The chroma subsampling of three components; 0, 0 for others. */
struct chroma_subsampling jpeg_chroma_subsampling(const struct jpeg_headers *headers);

/* The chroma subsampling J:a:b of the three digits 444, 422, 420, 440 or 411, else 0, 0. In two rows of J = 4 samples,
 * the first row has a colours and the second b. If b is 0, both rows share the colours. */
static inline struct chroma_subsampling jpeg_chroma_of(int digits)
{
    const int a = digits / 10 % 10, b = digits % 10;
    if (digits != 444 && digits != 422 && digits != 420 && digits != 440 && digits != 411)
        return (struct chroma_subsampling){0, 0};
    return (struct chroma_subsampling){.horizontal = 4 / a, .vertical = b == 0 ? 2 : 1};
}

/* CHROMA or, if it is 0, 0, the subsampling for a file of QUALITY, as stb chooses it. */
static inline struct chroma_subsampling jpeg_chroma_for(struct chroma_subsampling chroma, int quality)
{
    const int factor = quality <= 90 ? 2 : 1;
    return chroma.horizontal != 0 ? chroma : (struct chroma_subsampling){factor, factor};
}

/* Is this the marker of a frame header? */
bool jpeg_is_frame(unsigned marker);

/* Append a segment to OUT: HEAD, then SIZE bytes. Both together have at most JPEG_SEGMENT_MAX bytes. Returns false if
 * there is not enough memory. */
bool jpeg_segment_append(struct blob *out, enum jpeg_marker marker, const void *head, size_t head_size,
                         const uint8_t *bytes, size_t size);

#endif
