/* SPDX-License-Identifier: MIT
 *
 * Sums over the lanes of a warp, and over the warps of a block of threads; words that lanes exchange. */
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

/* Exchange the words of a warp. Thread t has words 3 t to 3 t + 2 of 96, and gets words t, t + 32 and t + 64. */
static __device__ __forceinline__ void exchange(uint32_t *shared, uint32_t word[3])
{
    const int t = (int)threadIdx.x;
#pragma unroll
    for (int k = 0; k < 3; k++)
        shared[3 * t + k] = word[k]; /* no two threads in one bank: 3 and 32 have no common factor */
    __syncwarp();
#pragma unroll
    for (int k = 0; k < 3; k++)
        word[k] = shared[t + 32 * k];
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

/* The sum of VALUE over the threads up to this one. All THREADS call this. Afterwards SUMS has the sum of each. */
template <int THREADS, typename T>
static __device__ __forceinline__ T sum_up_to(T *sums, T value)
{
    const int t = (int)threadIdx.x;
    sums[t] = value;
    __syncthreads();
    for (int step = 1; step < THREADS; step *= 2) {
        const T other = t >= step ? sums[t - step] : 0;
        __syncthreads();
        sums[t] += other;
        __syncthreads();
    }
    return sums[t];
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
