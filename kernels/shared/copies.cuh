/* SPDX-License-Identifier: MIT
 *
 * Asynchronous copies from memory to shared memory, in groups (cp.async, from compute capability 8.0 on; earlier chips
 * copy at once). A warp starts copies, closes the group, and later waits for it. Then it reads what was copied. */
#ifndef GPUCONV_COPIES_CUH
#define GPUCONV_COPIES_CUH

#include <cuda_runtime.h>
#include <stdint.h>

static __device__ __forceinline__ uint32_t shared_address(const void *pointer)
{
    return (uint32_t)__cvta_generic_to_shared(pointer);
}

static __device__ __forceinline__ void write_shared(uint32_t to, uint32_t word)
{
    asm volatile("st.shared.u32 [%0], %1;" ::"r"(to), "r"(word) : "memory");
}

static __device__ __forceinline__ uint32_t read_shared(uint32_t from)
{
    uint32_t word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(from));
    return word;
}

static __device__ __forceinline__ uint2 read_shared8(uint32_t from)
{
    uint2 two;
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];" : "=r"(two.x), "=r"(two.y) : "r"(from));
    return two;
}

static __device__ __forceinline__ uint4 read_shared16(uint32_t from)
{
    uint4 four;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(four.x), "=r"(four.y), "=r"(four.z), "=r"(four.w)
                 : "r"(from));
    return four;
}

static __device__ __forceinline__ void write_shared2(uint32_t to, uint32_t two)
{
    asm volatile("st.shared.u16 [%0], %1;" ::"r"(to), "h"((uint16_t)two) : "memory");
}

static __device__ __forceinline__ void write_shared16(uint32_t to, const uint32_t (&word)[4])
{
    asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(word[0]), "r"(word[1]), "r"(word[2]),
                 "r"(word[3])
                 : "memory");
}

template <typename T>
static __device__ __forceinline__ int read_sample(uint32_t from)
{
    uint32_t sample;
    if (sizeof(T) == 1)
        asm volatile("ld.shared.u8 %0, [%1];" : "=r"(sample) : "r"(from));
    else
        asm volatile("ld.shared.u16 %0, [%1];" : "=r"(sample) : "r"(from));
    return (int)sample;
}

/* Read four matrices of 8 rows of 16 bytes. Lane (g, t) gets bytes 4 t to 4 t + 3 of row g. A lane gives the address of
 * row lane % 8 of matrix lane / 8. */
static __device__ __forceinline__ void read_matrices(uint32_t (&word)[4], uint32_t from)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(word[0]), "=r"(word[1]), "=r"(word[2]), "=r"(word[3])
                 : "r"(from)
                 : "memory");
}

/* Start a copy of BYTES (4, 8 or 16) to the address TO, through L1, because neighbours read the same halo. WIDE makes
 * L2 fetch 256 bytes at a time, which is right if a warp's row is smaller than that. */
template <int BYTES, bool WIDE>
static __device__ __forceinline__ void copy_start(uint32_t to, const void *from)
{
#if __CUDA_ARCH__ >= 800
    if (WIDE)
        asm volatile("cp.async.ca.shared.global.L2::256B [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(from), "n"(BYTES) : "memory");
#else
    for (int k = 0; k < BYTES; k += 4)
        write_shared(to + k, *(const uint32_t *)((const uint8_t *)from + k));
#endif
}

/* Close the group: it has all copies since the last call. */
static __device__ __forceinline__ void copy_commit()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Wait for all of the thread's groups but the newest PENDING, and for the warp. */
template <int PENDING>
static __device__ __forceinline__ void copy_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
    __syncwarp();
}

#endif
