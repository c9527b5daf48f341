/* SPDX-License-Identifier: MIT
 *
 * Dense filters of samples of uint8_t with fewer multiply-adds than taps: the fast FIR algorithm, from row to row.
 *
 * Two rows of outputs take the sums of taps h times rows x, which are
 *
 *     y0 = sum of h[2r] x[2r]     + h[2r + 1] x[2r + 1]
 *     y1 = sum of h[2r] x[2r + 1] + h[2r + 1] x[2r + 2]
 *
 * These are y0 = P + Q and y1 = Q + R, for three products with half of the rows each, instead of four:
 *
 *     P = sum of h[2r]                  (x[2r] - x[2r + 1])
 *     Q = sum of (h[2r] + h[2r + 1])     x[2r + 1]
 *     R = sum of -h[2r + 1]             (x[2r + 1] - x[2r + 2])
 *
 * Each of them is a filter of every second row, so it is done in the same way: in two levels, four rows of outputs take
 * nine products, each with every fourth row. These are 9/16 of the multiply-adds. One more level would save 2% of time.
 *
 * A product has two sets of levels, as bits: FREE, where it is Q, and ONES, where it is R. Its first row of samples is
 * ONES | FREE. Its rows are differences in all levels but FREE, which are their kind: in level l, of rows that are 2^l
 * apart. Its taps are sums of the rows ONES | s of taps, for all subsets s of FREE. It is a part of the outputs
 * ONES | s. */
#ifndef GPUCONV_FAST_FIR_H
#define GPUCONV_FAST_FIR_H

#include <stdbool.h>
#include <stdint.h>

enum { FIR_STEP = 4, FIR_PRODUCTS = 9 };

struct fir_product {
    int free, ones;
};

/* All products. */
extern const struct fir_product fir_products[FIR_PRODUCTS];

/* Do HEIGHT x WIDTH taps take less than ONCE, the multiply-adds for one vector of outputs without a fast FIR? */
bool fir_pays(const int32_t *taps, int width, int height, double once);

/* The taps of a product, WIDTH in a row. Free them. Returns NULL if there is not enough memory. */
int32_t *fir_taps(const int32_t *taps, int width, int height, const struct fir_product *p);

#endif
