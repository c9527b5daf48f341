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
 * Each of them is a filter of every second row, so it is done in the same way, level by level. With L levels, a group
 * of 2^L rows of outputs takes 3^L products, each with every 2^L-th row: (3/4)^L of the multiply-adds.
 *
 * A product has two sets of levels, as bits: FREE, where it is Q, and ONES, where it is R. Its first row of samples is
 * ONES | FREE. Its rows are differences in all levels but FREE, which are their kind: in level l, of rows that are 2^l
 * apart. Its taps are sums of the rows ONES | s of taps, for all subsets s of FREE. It is a part of the outputs
 * ONES | s. */
#ifndef GPUCONV_FAST_FIR_H
#define GPUCONV_FAST_FIR_H

#include <stdbool.h>
#include <stdint.h>

struct pass;
union cell;

enum {
    FIR_LEVELS_MAX = 3,
    FIR_GROUP_MAX = 2 << FIR_LEVELS_MAX, /* rows of outputs: two of each product, which share the loads of samples */
};

struct fast_fir {
    int levels;
    int height;       /* rows of taps of a product */
    int columns;      /* pairs of taps in a row */
    union cell *taps; /* of all products, in the order of fir_next; NULL if the pass is another one */
};

struct fir_product {
    int free, ones;
};

/* Step from a product to the next one, where STEP is 2^levels. They begin at {0, 0}. Returns 0 after the last one. */
static inline int fir_next(struct fir_product *p, int step)
{
    do {
        p->free += ++p->ones == step;
        p->ones %= step;
    } while (p->ones & p->free);
    return p->free < step;
}

/* The levels for which HEIGHT x WIDTH taps take the least, or 0 if ONCE is less: the multiply-adds for one vector of
 * outputs without a fast FIR. */
int fir_levels(const int32_t *taps, int width, int height, double once);

/* Give the pass, of ARITHMETIC_WORDS, a fast FIR with these taps. Returns false if there is not enough memory. */
bool fir_fill(struct pass *pass, const int32_t *taps, int width, int height, int levels);

#endif
