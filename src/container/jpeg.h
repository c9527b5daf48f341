/* SPDX-License-Identifier: MIT
 *
 * The container of JPEG: segments, each with a marker at its beginning, and the data of scans between them (ITU-T T.81,
 * annex B). This file walks over segments for the check and the metadata. It knows nothing of samples. codecs/jpeg has
 * the markers and the tables, and writes segments. */
#ifndef GPUCONV_CONTAINER_JPEG_H
#define GPUCONV_CONTAINER_JPEG_H

#include "jpeg/jpeg.h"

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
    JPEG_STEP_END,         /* the marker that ends the image */
    JPEG_STEP_NOT_ALLOWED, /* a marker that is not allowed there */
    JPEG_STEP_NO_END,      /* the file ends before the next marker, or before its length */
    JPEG_STEP_TOO_SHORT,   /* the length is below 2, its own size */
    JPEG_STEP_TRUNCATED,   /* the segment is longer than the rest of the file */
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

/* Take the next segment before the first scan. Returns false at the scan, at the end, and after a failed step. */
bool jpeg_walk_headers(struct jpeg_walk *walk, struct jpeg_segment *segment);

/* The chroma subsampling J:a:b of the three digits 444, 422, 420, 440 or 411, else 0, 0. In two rows of J = 4 samples,
 * the first row has a colours and the second b. If b is 0, both rows share the colours. */
static inline struct chroma_subsampling jpeg_chroma_of(int digits)
{
    const int a = digits / 10 % 10, b = digits % 10;
    if (digits != 444 && digits != 422 && digits != 420 && digits != 440 && digits != 411)
        return (struct chroma_subsampling){0, 0};
    return (struct chroma_subsampling){.horizontal = 4 / a, .vertical = b == 0 ? 2 : 1};
}

/* Is this the marker of a frame header? */
bool jpeg_is_frame(unsigned marker);

#endif
