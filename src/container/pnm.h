/* SPDX-License-Identifier: MIT
 *
 * Netpbm's binary formats: PGM (P5), PPM (P6) and PAM (P7). A header in ASCII stands before the samples, which are not
 * compressed. Samples of 16 bits are big-endian. */
#ifndef GPUCONV_PNM_H
#define GPUCONV_PNM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the magic, and the largest maxval. */
enum { PNM_MAGIC = 2, PNM_MAXVAL_MAX = 65535 };

struct pnm_header {
    int width, height, channels; /* at least 1 each; at most 4 channels */
    int maxval;                  /* the sample that is white, or opaque: 1 to PNM_MAXVAL_MAX */
    size_t samples;              /* the offset of the first sample */
};

/* Bytes of a row, at most 2^34. A sample has 2 if maxval does not fit into one. */
static inline uint64_t pnm_row_bytes(const struct pnm_header *header)
{
    return (uint64_t)header->width * (uint64_t)header->channels * (header->maxval > 255 ? 2 : 1);
}

#endif
