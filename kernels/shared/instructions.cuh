/* SPDX-License-Identifier: MIT
 *
 * Single instructions that CUDA has no function for. Tests on an emulated GPU have their own file. */
#ifndef GPUCONV_INSTRUCTIONS_CUH
#define GPUCONV_INSTRUCTIONS_CUH

#include <stdint.h>

/* SUM and the products of the two 16-bit WEIGHTS with the lower, or the upper, two bytes of WORD. */
static __device__ __forceinline__ int dot_lower(uint32_t weights, uint32_t word, int sum)
{
    asm("dp2a.lo.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(weights), "r"(word));
    return sum;
}

static __device__ __forceinline__ int dot_upper(uint32_t weights, uint32_t word, int sum)
{
    asm("dp2a.hi.s32.u32 %0, %1, %2, %0;" : "+r"(sum) : "r"(weights), "r"(word));
    return sum;
}

/* Add the products of the bytes of WORD with the signed bytes of WEIGHTS to SUM. */
static __device__ __forceinline__ void add_products(uint32_t &sum, uint32_t word, int weights)
{
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(sum) : "r"(word), "r"(weights));
}

/* Clamp two levels and pack them into a word. */
static __device__ __forceinline__ uint32_t pack_levels16(int first, int second)
{
    uint32_t word;
    asm("cvt.pack.sat.u16.s32 %0, %1, %2;" : "=r"(word) : "r"(second), "r"(first));
    return word;
}

/* About the root of VALUE. */
static __device__ __forceinline__ float quick_root(float value)
{
    float root;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(root) : "f"(value));
    return root;
}

#endif
