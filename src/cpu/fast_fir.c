/* SPDX-License-Identifier: MIT
 *
 * The taps of fast FIRs: fast_fir.h describes them. */
#include "cpu/fast_fir.h"

#include <stdlib.h>

const struct fir_product fir_products[FIR_PRODUCTS] = {{0, 0}, {0, 1}, {0, 2}, {0, 3}, {1, 0},
                                                       {1, 2}, {2, 0}, {2, 1}, {3, 0}};

/* Words hold the taps of products. Measured, in the time of a multiply-add: the sums of a product are stored, and added
 * to those of the outputs. */
bool fir_pays(const int32_t *taps, int width, int height, double once)
{
    const int rows = (height + FIR_STEP - 1) / FIR_STEP;
    for (int k = 0; k < width * height; k++)
        if (abs(taps[k]) > INT16_MAX / FIR_STEP)
            return false;
    return 2.25 * rows * ((width + 1) / 2) + 36 < once;
}

int32_t *fir_taps(const int32_t *taps, int width, int height, const struct fir_product *p)
{
    int32_t *sums = calloc((size_t)((height + FIR_STEP - 1) / FIR_STEP * width), sizeof *sums);
    for (int i = 0; i < height && sums != NULL; i++)
        for (int j = 0; j < width && (i % FIR_STEP & ~p->free) == p->ones; j++)
            sums[i / FIR_STEP * width + j] +=
                __builtin_parity((unsigned)p->ones) ? -taps[i * width + j] : taps[i * width + j];
    return sums;
}
