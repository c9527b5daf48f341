/* SPDX-License-Identifier: MIT
 *
 * tiled-cached: constant, and the interior of the tile is in shared memory; the halo is left to the L1 and L2 caches.
 *
 *       h h h h h h        block = input tile = output tile = 32 x 32, 1 load per thread, no idle
 *     h +---------+ h      threads, no strips. The halo (h) of this tile is the interior of its
 *     h | o o o o | h      neighbours, which some other block has loaded or is about to load, so it is
 *     h | o o o o | h      probably in L2, and the reads below hit there.
 *     h +---------+ h
 *       h h h h h h
 *
 * Measured, 9 x 9 of 16384 x 16384 on an NVIDIA H200: uint8_t 7.46 ms (55.9 copies), float 7.62 ms (15.0 copies)
 *
 * Limits: none. */
#include "kernels/shared/conv.cuh"

static __constant__ float taps[max_taps];

static constexpr int block = 32;

/* SIZE is the filter's width and height, or 0 if they are known only at run time. */
template <typename T, int SIZE>
static __global__ void __launch_bounds__(block *block) tiled_cached(struct launch launch)
{
    __shared__ float tile[block][block];
    const int filter_width = SIZE ? SIZE : launch.filter_width, filter_height = SIZE ? SIZE : launch.filter_height;
    const int2 at = block_tile(launch);
    const int tx = (int)threadIdx.x, ty = (int)threadIdx.y;
    const int x = at.x * block + tx, y = at.y * block + ty;
    if (x < launch.width && y < launch.height)
        tile[ty][tx] = (float)in_row<T>(launch, y)[x];
    __syncthreads();
    if (x >= launch.width || y >= launch.height)
        return;
    const int top = y - launch.anchor_y, left = x - launch.anchor_x;
    float sum = 0;
    if (window_inside(launch, y, x)) {
#pragma unroll(SIZE ? SIZE : 1)
        for (int i = 0; i < filter_height; i++) {
            const T *from = in_row<T>(launch, top + i) + left;
            const int row = ty - launch.anchor_y + i;
#pragma unroll(SIZE ? SIZE : 1)
            for (int j = 0; j < filter_width; j++) {
                const int column = tx - launch.anchor_x + j;
                const bool in_tile = row >= 0 && row < block && column >= 0 && column < block;
                sum += taps[i * filter_width + j] * (in_tile ? tile[row][column] : (float)from[j]);
            }
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < filter_height; i++)
#pragma unroll 1
            for (int j = 0; j < filter_width; j++)
                sum += taps[i * filter_width + j] * load<T>(launch, top + i, left + j);
    }
    finish(launch, sum, &out_row<T>(launch, y)[x]);
}

TEXTBOOK_VARIANT(tiled_cached, KERNEL_FOR(plan, tiled_cached), {block, block, dim3(block, block)})
