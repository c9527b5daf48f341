/* SPDX-License-Identifier: MIT
 *
 * The taps of fast FIRs: fast_fir.h describes them. */
#include "cpu/fast_fir.h"

#include "cpu/loops.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Words hold rows: differences in L levels of samples of uint8_t are at most 2^(L - 1) 255. */
static_assert(255 << (FIR_LEVELS_MAX - 1) <= INT16_MAX, "words hold the rows of products");

/* Multiply-adds for one vector of outputs. Measured, in the time of a multiply-add: a product has one more row of
 * samples than of taps, and its sums are added to those of the outputs. */
static double fir_cost(int width, int height, int levels)
{
    const int rows = (height + (1 << levels) - 1) >> levels;
    return pow(1.5, levels) * (rows + 0.6) * ((width + 1) / 2) + 4.3 * (1 << levels);
}

int fir_levels(const int32_t *taps, int width, int height, double once)
{
    int32_t max = 0;
    for (int k = 0; k < width * height; k++)
        max = abs(taps[k]) > max ? abs(taps[k]) : max;
    int best = 0;
    for (int levels = 1; levels <= FIR_LEVELS_MAX && max <= INT16_MAX >> levels; levels++)
        if (fir_cost(width, height, levels) < once) {
            best = levels;
            once = fir_cost(width, height, levels);
        }
    return best;
}

/* The tap of product P in row R of its taps, and column J. */
static int32_t product_tap(const int32_t *taps, int width, int height, int levels, const struct fir_product *p, int r,
                           int j)
{
    int32_t sum = 0;
    for (int s = p->free;; s = (s - 1) & p->free) {
        const int i = (r << levels) + (p->ones | s);
        sum += i < height && j < width ? taps[i * width + j] : 0;
        if (s == 0)
            return __builtin_popcount((unsigned)p->ones) % 2 ? -sum : sum;
    }
}

bool fir_fill(struct pass *pass, const int32_t *taps, int width, int height, int levels)
{
    const int step = 1 << levels;
    struct fast_fir *f = &pass->fir;
    *f = (struct fast_fir){levels, (height + step - 1) / step, (width + 1) / 2, NULL};
    pass->group = 2 * step;
    pass->row_count = f->height * step + 2 * step - 1;
    int products = 1;
    for (int level = 0; level < levels; level++)
        products *= 3;
    f->taps = malloc((size_t)(products * f->height * f->columns) * sizeof *f->taps);
    if (f->taps == NULL)
        return false;
    union cell *to = f->taps;
    struct fir_product p = {0};
    do
        for (int r = 0; r < f->height; r++)
            for (int c = 0; c < f->columns; c++, to++)
                for (int k = 0; k < 2; k++)
                    to->words[k] = (int16_t)product_tap(taps, width, height, levels, &p, r, 2 * c + k);
    while (fir_next(&p, step));
    return true;
}
