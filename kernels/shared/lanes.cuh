/* SPDX-License-Identifier: MIT
 *
 * Sums over the lanes of a warp, and over the warps of a block of threads. */
#ifndef GPUCONV_LANES_CUH
#define GPUCONV_LANES_CUH

#include <cuda_runtime.h>
#include <stdint.h>

constexpr unsigned all_lanes = 0xffffffff;

static __device__ __forceinline__ int lane_id()
{
    return (int)threadIdx.x % 32;
}

/* The number of lanes before this one in a set of lanes. */
static __device__ __forceinline__ unsigned lanes_before(unsigned lanes)
{
    return (unsigned)__popc((int)(lanes & ((1u << lane_id()) - 1)));
}

/* The sum of VALUE over the lanes up to this one, in its group of WIDTH. */
template <int WIDTH = 32, typename T>
static __device__ __forceinline__ T sum_up_to_lane(T value)
{
#pragma unroll
    for (int step = 1; step < WIDTH; step *= 2) {
        const T other = __shfl_up_sync(all_lanes, value, (unsigned)step, WIDTH);
        value += (int)threadIdx.x % WIDTH >= step ? other : 0;
    }
    return value;
}

/* The sum of VALUE over all lanes. */
template <typename T>
static __device__ __forceinline__ T sum_of_lanes(T value)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        value += __shfl_xor_sync(all_lanes, value, step);
    return value;
}

/* The sum of VALUE over the threads before, by all WARPS. *WHOLE becomes the sum over all. SUMS has a number for each
 * warp, and may change after the next barrier. */
template <int WARPS>
static __device__ __forceinline__ uint32_t sum_before(uint32_t *sums, uint32_t value, uint32_t *whole)
{
    const int warp = (int)threadIdx.x / 32;
    const uint32_t sum = sum_up_to_lane(value);
    if (lane_id() == 31)
        sums[warp] = sum;
    __syncthreads();
    uint32_t before = sum - value;
    *whole = 0;
#pragma unroll
    for (int i = 0; i < WARPS; i++) {
        before += i < warp ? sums[i] : 0;
        *whole += sums[i];
    }
    return before;
}

#endif
