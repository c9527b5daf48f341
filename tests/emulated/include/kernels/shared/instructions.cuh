/* SPDX-License-Identifier: MIT
 *
 * The instructions of kernels/shared/instructions.cuh on the emulated GPU. */
#ifndef GPUCONV_INSTRUCTIONS_CUH
#define GPUCONV_INSTRUCTIONS_CUH

#include <cuda_runtime.h>
#include <math.h>

static inline int dot_lower(uint32_t weights, uint32_t word, int sum)
{
    return sum + (int16_t)weights * (int)(word & 255) + (int16_t)(weights >> 16) * (int)(word >> 8 & 255);
}

static inline int dot_upper(uint32_t weights, uint32_t word, int sum)
{
    return dot_lower(weights, word >> 16, sum);
}

static inline void add_products(uint32_t &sum, uint32_t word, int weights)
{
    for (int i = 0; i < 32; i += 8)
        sum += (uint32_t)((int)(word >> i & 255) * (int8_t)(weights >> i));
}

static inline uint32_t pack_levels16(int first, int second)
{
    return (unsigned)min(max(second, 0), 65535) << 16 | (unsigned)min(max(first, 0), 65535);
}

static inline float quick_root(float value)
{
    return sqrtf(value);
}

#endif
