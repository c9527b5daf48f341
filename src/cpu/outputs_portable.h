/* SPDX-License-Identifier: MIT
 *
 * From sums to outputs in plain C. The compiler makes vectors of the loops where it can. Sums are of floats or of
 * int32_t, because portable vectors multiply no pairs, so LAYOUT_STRAIGHT is the only layout. */
#ifndef GPUCONV_CPU_OUTPUTS_PORTABLE_H
#define GPUCONV_CPU_OUTPUTS_PORTABLE_H

#include "cpu/blocks.h"

#include <math.h>

/* Store a block of sums to TO. */
INLINE void store_block_sums(ints c0, ints c1, ints c2, ints c3, void *to)
{
    store(to, c0);
    store((char *)to + VECTOR, c1);
    store((char *)to + 2 * VECTOR, c2);
    store((char *)to + 3 * VECTOR, c3);
}

INLINE void finish_bytes(const struct finish *finish, bool is_float, ints c0, ints c1, ints c2, ints c3,
                         enum layout layout, bool past, uint8_t *to)
{
    (void)past;
    if (finish->way == FINISH_UNSIGNED) {
        uint32_t sums[BLOCK];
        store_block_sums(c0, c1, c2, c3, sums);
        for (int k = 0; k < BLOCK; k++)
            to[k] = (uint8_t)(sums[k] >> finish->shift);
    } else {
        finish_each(finish, is_float, c0, c1, c2, c3, layout, to);
    }
}

INLINE void finish_words(const struct finish *finish, bool is_float, ints c0, ints c1, ints c2, ints c3,
                         enum layout layout, bool past, uint16_t *to)
{
    const struct rounding16 r = finish->rounding16;
    union cell sums[BLOCK];
    (void)layout, (void)past; /* always straight, because there are no words */
    store_block_sums(c0, c1, c2, c3, sums);
    if (finish->way == FINISH_UNSIGNED) {
        for (int k = 0; k < BLOCK; k++)
            to[k] = (uint16_t)((uint32_t)sums[k].i >> finish->shift);
        return;
    }
    for (int k = 0; k < BLOCK; k++)
        to[k] = rounding16_apply(&r, is_float ? (double)sums[k].f : (double)sums[k].i);
}

static void slide_across(const struct pass *pass, const struct window *of, const uint16_t *columns, int width,
                         bool past, const uint8_t *next, const uint8_t *gone, uint8_t *out)
{
    const int window = of->columns;
    int32_t *prefixes = of->prefixes;
    (void)past, (void)next, (void)gone;
    int32_t sum = 0;
    for (int k = 0; k < window - 1; k++)
        sum += columns[k];
    for (int x = 0; x < width; x++) {
        sum += columns[x + window - 1];
        prefixes[x] = sum * of->tap;
        sum -= columns[x];
    }
    for (int x = 0; x < width; x += BLOCK) {
        uint8_t rest[BLOCK];
        const bool whole = width - x >= BLOCK;
        finish_each(&pass->finish, false, load(prefixes + x), load(prefixes + x + LANES),
                    load(prefixes + x + 2 * LANES), load(prefixes + x + 3 * LANES), LAYOUT_STRAIGHT,
                    whole ? out + x : rest);
        if (!whole)
            memcpy(out + x, rest, (size_t)(width - x));
    }
}

INLINE double join16_sum(const struct join16 *j, void *const *rows, int x)
{
    const union cell first = ((const union cell *)rows[0])[x];
    const double value = j->is_float ? (double)first.f : (double)first.i;
    return j->sum_parts == 1 ? value : value * j->unit + (((const union cell *)rows[1])[x].i + j->base);
}

static void join16(const struct join16 *from, void *const *sums, int width, bool past_caches, uint16_t *out)
{
    const struct join16 j = *from;
    (void)past_caches;
    for (int x = 0; x < width; x++) {
        double value = join16_sum(&j, sums, x);
        if (j.combine != COMBINE_NONE) {
            const double first = fabs(value), second = fabs(join16_sum(&j, sums + j.sum_parts, x));
            value = j.combine == COMBINE_MAGNITUDE ? sqrt(first * first + second * second)
                    : j.combine == COMBINE_SUM     ? first + second
                    : first > second               ? first
                                                   : second;
        }
        out[x] = rounding16_apply(&j.rounding, value);
    }
}

#endif
