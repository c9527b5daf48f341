/* SPDX-License-Identifier: MIT
 *
 * How the sums of a filter in two passes are rounded. Every variant, on the CPU and on a GPU, uses these functions or
 * computes the same. struct filter has the formulas. */
#ifndef GPUCONV_PASSES_H
#define GPUCONV_PASSES_H

#include "filter/filter.h"

#include <stdint.h>

/* The numbers of a filter in two passes, for samples of one type. plan_make derives them. */
struct passes {
    int row_shift;
    int64_t row_half;  /* 2^row_shift / 2, rounded down: m = (sum + row_half) >> row_shift */
    int scale_shift;   /* pass_scale = 2^scale_shift, or 0 if it is no power of two */
    int64_t scale;     /* pass_scale */
    int64_t half;      /* pass_scale / 2, rounded down: out = (s + half) / scale */
    int32_t amount;    /* an unsharp mask's amount; 0 if the outputs are the blur */
    int32_t threshold; /* in 2^-8 levels of this sample type */
    int32_t highest;   /* level */
};

/* m from the sum of a row. */
HOST_DEVICE static inline int64_t passes_row(const struct passes *p, int64_t sum)
{
    return (sum + p->row_half) >> p->row_shift;
}

/* The output of a blur from the sum S of the column. */
HOST_DEVICE static inline int32_t passes_level(const struct passes *p, int64_t s)
{
    return (int32_t)(p->scale_shift > 0 ? (s + p->half) >> p->scale_shift : (s + p->half) / p->scale);
}

/* How far the sample IN is above the blur of an unsharp mask, in 2^-UNSHARP_LEVEL_BITS levels. The scale is at least
 * 2^23, so the shift is positive. */
HOST_DEVICE static inline int32_t passes_detail(const struct passes *p, int64_t s, int32_t in)
{
    return (in << UNSHARP_LEVEL_BITS) -
           (int32_t)((s + (p->half >> UNSHARP_LEVEL_BITS)) >> (p->scale_shift - UNSHARP_LEVEL_BITS));
}

/* The output of an unsharp mask for the sample IN, where its pixel has detail. |A e| < 2^52. No branch: GPUs and
 * vectors take all ways. */
HOST_DEVICE static inline int32_t passes_unsharp(const struct passes *p, int32_t in, int32_t detail)
{
    const int bits = UNSHARP_LEVEL_BITS + UNSHARP_AMOUNT_BITS;
    const int32_t moved = in + (int32_t)(((int64_t)p->amount * detail + ((int64_t)1 << (bits - 1))) >> bits);
    const int32_t above = moved < 0 ? 0 : moved;
    return above > p->highest ? p->highest : above;
}

/* Is that enough detail for an unsharp mask to change the pixel, in all planes? */
HOST_DEVICE static inline bool passes_has_detail(const struct passes *p, int32_t detail)
{
    return (detail < 0 ? -detail : detail) >= p->threshold;
}

#endif
