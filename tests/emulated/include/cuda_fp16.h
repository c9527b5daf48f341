/* SPDX-License-Identifier: MIT
 *
 * Halves on the emulated GPU. */
#ifndef GPUCONV_EMULATED_CUDA_FP16_H
#define GPUCONV_EMULATED_CUDA_FP16_H

#include <cuda_runtime.h>

struct __half {
    uint16_t bits;
};

struct alignas(4) __half2 {
    __half x, y;
};

/* The exponents of floats are 112 larger. A product corrects them, also for halves that are not normal. */
static inline float __half2float(__half half)
{
    const unsigned magnitude = half.bits & 0x7fffu, sign = (half.bits & 0x8000u) << 16;
    const float value = __uint_as_float(magnitude << 13) * 0x1p112f;
    return __uint_as_float((magnitude >= 0x7c00 ? magnitude << 13 | 0x7f800000 : __float_as_uint(value)) | sign);
}

/* To the nearest half, or the even one of two. From 65520 on, that is infinity. */
static inline __half __float2half_rn(float value)
{
    const unsigned bits = __float_as_uint(value) & 0x7fffffff, sign = __float_as_uint(value) >> 16 & 0x8000;
    if (bits > 0x7f800000)
        return {0x7fff};
    if (bits >= 0x477ff000)
        return {(uint16_t)(sign | 0x7c00)};
    if (bits < 0x38800000) /* not normal: 1/2 and a float have steps of 2^-24 */
        return {(uint16_t)(sign | (__float_as_uint(__uint_as_float(bits) + 0.5f) - 0x3f000000))};
    return {(uint16_t)(sign | (bits - (112 << 23) + 0xfff + (bits >> 13 & 1)) >> 13)};
}

static inline __half2 __floats2half2_rn(float x, float y)
{
    return {__float2half_rn(x), __float2half_rn(y)};
}

static inline float __low2float(__half2 two)
{
    return __half2float(two.x);
}

static inline float __high2float(__half2 two)
{
    return __half2float(two.y);
}

#endif
