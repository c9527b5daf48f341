/* SPDX-License-Identifier: MIT
 *
 * The encoder, for encode.c and its tests. */
#ifndef GPUCONV_JPEG_ENCODE_H
#define GPUCONV_JPEG_ENCODE_H

#include "jpeg/encode_loops.h"

struct jpeg_encoder {
    struct jpeg_layout layout;
    struct jpeg_divisors divisors[2]; /* of luma, of chroma */
    struct jpeg_codes codes[2];
    const struct jpeg_encode_loops *loops;
};

const struct jpeg_encode_loops *jpeg_encode_loops_for(enum instruction_set set);

/* Append the first COUNT bits at BITS, with a 0 byte behind each FF. Returns false if there is not enough memory. */
bool jpeg_file_append_bits(struct jpeg_file *file, const uint8_t *bits, uint64_t count);

#endif
