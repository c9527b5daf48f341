/* SPDX-License-Identifier: MIT
 *
 * Shared memory by its addresses, and copies to it, on the emulated GPU. An address is the distance from the block's
 * dynamic memory, which is in the same module's memory of the thread. */
#ifndef GPUCONV_COPIES_CUH
#define GPUCONV_COPIES_CUH

#include <cuda_runtime.h>

static inline uint32_t shared_address(const void *pointer)
{
    return (uint32_t)((const unsigned char *)pointer - emulated_memory);
}

template <typename T>
static inline T *emulated_shared(uint32_t address)
{
    return (T *)(emulated_memory + (int32_t)address);
}

static inline void write_shared(uint32_t to, uint32_t word)
{
    *emulated_shared<uint32_t>(to) = word;
}

static inline uint32_t read_shared(uint32_t from)
{
    return *emulated_shared<uint32_t>(from);
}

static inline uint2 read_shared8(uint32_t from)
{
    return *emulated_shared<uint2>(from);
}

static inline uint4 read_shared16(uint32_t from)
{
    return *emulated_shared<uint4>(from);
}

static inline void write_shared2(uint32_t to, uint32_t two)
{
    *emulated_shared<uint16_t>(to) = (uint16_t)two;
}

static inline void write_shared16(uint32_t to, const uint32_t (&word)[4])
{
    *emulated_shared<uint4>(to) = make_uint4(word[0], word[1], word[2], word[3]);
}

template <typename T>
static inline int read_sample(uint32_t from)
{
    return *emulated_shared<T>(from);
}

static inline void read_matrices(uint32_t (&word)[4], uint32_t from)
{
    const unsigned lane = threadIdx.x % 32;
    const uint64_t *rows = emulated_exchange(from);
    for (unsigned k = 0; k < 4; k++)
        word[k] = read_shared((uint32_t)rows[8 * k + lane / 4] + lane % 4 * 4);
}

template <int BYTES, bool WIDE>
static inline void copy_start(uint32_t to, const void *from)
{
    for (int k = 0; k < BYTES; k += 4)
        write_shared(to + k, *(const uint32_t *)((const uint8_t *)from + k));
}

static inline void copy_commit()
{
}

template <int PENDING>
static inline void copy_wait()
{
    __syncwarp();
}

#endif
