/* SPDX-License-Identifier: MIT
 *
 * coarsened: constant, and each thread computes several pixels, one block height apart. In register-tiled a thread
 * computes neighbouring pixels instead, which share samples; docs/learn/strips.md has the steps between.
 *
 *     thread (x, y):   o          the same index arithmetic and loop overhead now serve `coarsening` pixels,
 *                      .          and each tap, once loaded, is used for all of them;
 *                      o          rows stay contiguous across a warp, so loads stay whole cache lines.
 *                      .
 *                      o
 *
 * Measured, 9 x 9 of 16384 x 16384 on an NVIDIA H200: uint8_t 4.20 ms (31.5 copies), float 3.53 ms (6.9 copies)
 *
 * Limits: none. */
#include "kernels/shared/conv.cuh"

static __constant__ float taps[max_taps];

static constexpr int block_width = 32, block_height = 8, coarsening = 4;

/* SIZE is the filter's width and height, or 0 if they are known only at run time. */
template <typename T, int SIZE>
static __global__ void coarsened(struct launch launch)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * block_width + (int)threadIdx.x;
    const int y = tile.y * block_height * coarsening + (int)threadIdx.y;
    if (x >= launch.width || y >= launch.height)
        return;
    const int filter_width = SIZE ? SIZE : launch.filter_width, filter_height = SIZE ? SIZE : launch.filter_height;
    const int left = x - launch.anchor_x;
    const int last = y + (coarsening - 1) * block_height;
    float sum[coarsening] = {};
    if (window_inside(launch, y, x) && window_inside(launch, last, x)) {
#pragma unroll(SIZE ? SIZE : 1)
        for (int i = 0; i < filter_height; i++) {
            const T *rows[coarsening];
#pragma unroll
            for (int k = 0; k < coarsening; k++)
                rows[k] = in_row<T>(launch, y + k * block_height - launch.anchor_y + i) + left;
#pragma unroll(SIZE ? SIZE : 1)
            for (int j = 0; j < filter_width; j++) {
                const float tap = taps[i * filter_width + j];
#pragma unroll
                for (int k = 0; k < coarsening; k++)
                    sum[k] += tap * (float)rows[k][j];
            }
        }
    } else {
#pragma unroll 1
        for (int i = 0; i < filter_height; i++)
#pragma unroll 1
            for (int j = 0; j < filter_width; j++) {
                const float tap = taps[i * filter_width + j];
#pragma unroll
                for (int k = 0; k < coarsening; k++)
                    sum[k] += tap * load<T>(launch, y + k * block_height - launch.anchor_y + i, left + j);
            }
    }
#pragma unroll
    for (int k = 0; k < coarsening; k++)
        if (y + k * block_height < launch.height)
            finish(launch, sum[k], &out_row<T>(launch, y + k * block_height)[x]);
}

TEXTBOOK_VARIANT(coarsened, KERNEL_FOR(plan, coarsened),
                 {block_width, block_height *coarsening, dim3(block_width, block_height)})
