/* SPDX-License-Identifier: MIT
 *
 * What kernels with products of warpgroups (wgmma, sm_90a) share: operands, and barriers between warps. */
#ifndef GPUCONV_WARPGROUP_CUH
#define GPUCONV_WARPGROUP_CUH

#include <stdint.h>

#if __CUDA_ARCH_FEAT_SM90_ALL
/* The descriptor of an operand in shared memory. The next 16 bytes of its rows are NEXT_K further, its next 8 rows 128.
 * To advance ADDRESS, add to the result. (PTX ISA, Asynchronous warpgroup-level matrix instructions, matrix descriptor
 * without swizzle; 18 bits of address suffice for shared memory.) */
static __device__ __forceinline__ uint64_t describe(uint32_t address, uint32_t next_k)
{
    return (uint64_t)(address >> 4) | (uint64_t)(next_k >> 4) << 16 | (uint64_t)(128 >> 4) << 32;
}

/* Barriers in shared memory, of 8 bytes. (PTX ISA, mbarrier.) */

static __device__ __forceinline__ void barrier_make(uint32_t barrier, int arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}

static __device__ __forceinline__ void barrier_arrive(uint32_t barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

/* Wait until the barrier's phase of that parity has passed. */
static __device__ __forceinline__ void barrier_wait(uint32_t barrier, int parity)
{
    asm volatile("{.reg .pred p;\n"
                 "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
                 "@!p bra again;}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* A slot of the ring, and the parity of the number of times around the ring. */
struct ring_slot {
    int slot, parity;

    __device__ __forceinline__ void advance(int slots)
    {
        if (++slot == slots) {
            slot = 0;
            parity ^= 1;
        }
    }
};
#endif

#endif
