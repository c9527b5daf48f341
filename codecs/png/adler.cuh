/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of libdeflate's checksum, which the CPU uses.
 * Adler-32 (RFC 1950) of rows, each with one byte in front. It has two sums, modulo the largest prime below 2^16: 1 and
 * all bytes; and the values of the first sum after each byte. */
#ifndef GPUCONV_PNG_ADLER_CUH
#define GPUCONV_PNG_ADLER_CUH

#include "kernels/shared/lanes.cuh"

constexpr uint32_t adler_prime = 65521;
constexpr int adler_threads = 1024; /* that join the rows */

/* A lane's sums of a row: of its bytes, and of these times how far they are from the row's end. They fit, because a row
 * has less than 2^28 bytes. */
struct adler_sums {
    uint64_t sum, weighted;
};

/* Add 4 bytes, the first of them SIZE bytes before the row's end. Those after the end are 0. */
static __device__ __forceinline__ void adler_add(struct adler_sums &sums, uint32_t bytes, int size)
{
    const uint32_t sum = __dp4a(bytes, 0x01010101u, 0u);
    sums.sum += sum;
    sums.weighted += (uint64_t)sum * (uint32_t)size - __dp4a(bytes, 0x03020100u, 0u);
}

/* The sums of a row of SIZE bytes, by a warp. FRONT is the byte in front, which no lane has added. */
static __device__ __forceinline__ uint2 adler_end(struct adler_sums sums, uint32_t front, size_t size)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        sums.sum += __shfl_xor_sync(all_lanes, sums.sum, step);
        sums.weighted += __shfl_xor_sync(all_lanes, sums.weighted, step);
    }
    sums.weighted += (uint64_t)front * (size % adler_prime);
    return make_uint2((uint32_t)((sums.sum + front) % adler_prime), (uint32_t)(sums.weighted % adler_prime));
}

/* The Adler-32 of HEIGHT rows of SIZE bytes, from their sums, by adler_threads. SCRATCH has as many numbers. */
static __device__ __forceinline__ uint32_t adler_join(uint64_t *scratch, const uint2 *rows, int height, size_t size)
{
    uint64_t low = 0, high = 0;
    for (int row = (int)threadIdx.x; row < height; row += adler_threads) {
        const uint64_t after = (uint64_t)(height - 1 - row) * size % adler_prime;
        low += rows[row].x;
        high = (high + rows[row].y + after * rows[row].x) % adler_prime;
    }
    __syncthreads();
    sum_up_to<adler_threads>(scratch, low);
    low = (1 + scratch[adler_threads - 1]) % adler_prime;
    __syncthreads();
    sum_up_to<adler_threads>(scratch, high);
    high = (scratch[adler_threads - 1] + (uint64_t)height * size) % adler_prime;
    return (uint32_t)(high << 16 | low);
}

#endif
