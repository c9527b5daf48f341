/* SPDX-License-Identifier: MIT
 *
 * How the sums of a filter in two passes are rounded. Every variant, on the CPU and on a GPU, uses these functions or
 * computes the same. struct filter has the formulas. */
#ifndef GPUCONV_PASSES_H
#define GPUCONV_PASSES_H

#include "filter/filter.h"
#include "image/image.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The numbers of a filter in two passes, for samples of one type. plan_make derives them. */
struct passes {
    int row_shift;
    int64_t row_half;  /* 2^row_shift / 2, rounded down: m = (sum + row_half) >> row_shift */
    int scale_shift;   /* pass_scale = 2^scale_shift; 0: it is no power of two */
    int64_t scale;     /* pass_scale */
    int64_t half;      /* pass_scale / 2, rounded down: out = (s + half) / scale */
    int32_t amount;    /* of an unsharp mask; 0: the outputs are the blur */
    int32_t threshold; /* in 2^-8 levels of this sample type */
    int32_t highest;   /* level */
};

/* m from the sum of a row. */
HOST_DEVICE static inline int64_t passes_row(const struct passes *p, int64_t sum)
{
    return (sum + p->row_half) >> p->row_shift;
}

/* The output of an unsharp mask for the sample IN and a blur of BLUR / 2^UNSHARP_LEVEL_BITS levels. |A e| < 2^52. No
 * branch: GPUs and vectors take all ways. */
HOST_DEVICE static inline int32_t passes_unsharp(const struct passes *p, int32_t in, int32_t blur)
{
    const int bits = UNSHARP_LEVEL_BITS + UNSHARP_AMOUNT_BITS;
    const int32_t e = (in << UNSHARP_LEVEL_BITS) - blur;
    const int32_t moved = in + (int32_t)(((int64_t)p->amount * e + ((int64_t)1 << (bits - 1))) >> bits);
    const int32_t size = e < 0 ? -e : e, above = moved < 0 ? 0 : moved;
    const int32_t level = above > p->highest ? p->highest : above;
    return size < p->threshold ? in : level;
}

/* The output from the sum S of the column, for the sample IN. */
HOST_DEVICE static inline int32_t passes_level(const struct passes *p, int64_t s, int32_t in)
{
    if (p->amount != 0) /* the scale is at least 2^23, so the shift is positive */
        return passes_unsharp(
            p, in, (int32_t)((s + (p->half >> UNSHARP_LEVEL_BITS)) >> (p->scale_shift - UNSHARP_LEVEL_BITS)));
    return (int32_t)(p->scale_shift > 0 ? (s + p->half) >> p->scale_shift : (s + p->half) / p->scale);
}

#ifdef __cplusplus
}
#endif

#endif
