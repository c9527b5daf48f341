/* SPDX-License-Identifier: MIT
 *
 * Halves on the emulated GPU. */
#ifndef GPUCONV_EMULATED_CUDA_FP16_H
#define GPUCONV_EMULATED_CUDA_FP16_H

#include "image/stored.h"

struct alignas(4) __half2 {
    uint16_t x, y;
};

static inline __half2 __floats2half2_rn(float x, float y)
{
    return {half_of(x), half_of(y)};
}

static inline float __low2float(__half2 two)
{
    return half_value(two.x);
}

static inline float __high2float(__half2 two)
{
    return half_value(two.y);
}

#endif
