/* SPDX-License-Identifier: MIT
 *
 * The encoder, for encode.c and its tests. */
#ifndef GPUCONV_JPEG_ENCODE_H
#define GPUCONV_JPEG_ENCODE_H

#include "jpeg/encode_loops.h"

/* A file, as far as it is written. */
struct jpeg_file {
    struct blob blob;
    uint64_t held; /* the last HELD_COUNT bits, 0 to 7, are not in the blob yet */
    int held_count;
    int predictors[JPEG_COMPONENTS_MOST];
};

struct jpeg_encoder {
    struct jpeg_layout layout;
    struct jpeg_divisors divisors[2]; /* of luma, of chroma */
    struct jpeg_codes codes[2];
    const struct jpeg_encode_loops *loops;
    struct jpeg_file file;
    struct jpeg_band **bands; /* by the row of MCUs that a band begins with, until it is in the file; else NULL */
};

const struct jpeg_encode_loops *jpeg_encode_loops_for(enum instruction_set set);

/* Append the first COUNT bits at BITS, with a 0 byte behind each FF. Returns false if there is not enough memory. */
bool jpeg_file_append_bits(struct jpeg_file *file, const uint8_t *bits, uint64_t count);

#endif
