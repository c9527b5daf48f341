/* SPDX-License-Identifier: MIT
 *
 * Rounding of sizes. nvcc reads this, too, so that kernels have constant sizes. */
#ifndef GPUCONV_ROUND_H
#define GPUCONV_ROUND_H

#include <stddef.h>

/* A function whose result kernels use as a constant. */
#ifdef __CUDACC__
#define CONSTANT_FUNCTION static __host__ __device__ constexpr
#else
#define CONSTANT_FUNCTION static inline
#endif

/* VALUE, rounded up to a multiple of MULTIPLE. */
CONSTANT_FUNCTION size_t round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

#endif
