/* SPDX-License-Identifier: MIT
 *
 * The inverse DCT without vectors. */
#ifndef GPUCONV_JPEG_INVERSE_PLAIN_H
#define GPUCONV_JPEG_INVERSE_PLAIN_H

#include "jpeg/samples.h"

#include <stdbool.h>

enum { BLOCKS = 1 };

static void inverse(const int16_t *const *coefficients, const uint16_t *quantisers, uint8_t *const to[BLOCKS],
                    size_t stride)
{
    int columns[8][8]; /* by column */
    bool is_flat = true;
    for (int k = 8; k < 64; k++)
        is_flat &= coefficients[0][k] == 0;
    for (int x = 0; x < 8; x++) {
        for (int y = 0; y < 8; y++)
            columns[x][y] = (int16_t)((unsigned)coefficients[0][8 * y + x] * quantisers[8 * y + x]);
        const int flat = jpeg_inverse_flat(columns[x][0]);
        if (!is_flat)
            jpeg_inverse_pass(columns[x], JPEG_COLUMN_SHIFT);
        for (int y = 0; is_flat && y < 8; y++)
            columns[x][y] = flat;
    }
    for (int y = 0; y < 8; y++) {
        int row[8];
        for (int x = 0; x < 8; x++)
            row[x] = columns[x][y];
        jpeg_inverse_pass(row, JPEG_ROW_SHIFT);
        for (int x = 0; x < 8; x++)
            to[0][(size_t)y * stride + (size_t)x] = jpeg_inverse_sample(row[x]);
    }
}

static void inverse_few(const int16_t *const *coefficients, const uint16_t *quantisers, uint8_t *const to[BLOCKS],
                        size_t stride)
{
    inverse(coefficients, quantisers, to, stride);
}

/* Likewise to SIDE x SIDE samples, 4 or 2. */
static void inverse_small(const int16_t *const *coefficients, const uint16_t *quantisers, uint8_t *const to[BLOCKS],
                          size_t stride, int side, bool is_few)
{
    (void)is_few;
    jpeg_inverse_small(coefficients[0], quantisers, coefficients[0][0], 1, side, to[0], stride);
}

#endif
