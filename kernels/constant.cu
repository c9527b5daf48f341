/* SPDX-License-Identifier: MIT
 *
 * constant: basic with its taps in constant memory, and the loops over the common sizes unrolled.
 *
 *     basic      load tap, load sample, multiply-add
 *     constant             load sample, multiply-add (tap from the constant bank)
 *
 * Measured, 9 x 9 of 16384 x 16384 on an NVIDIA H200: uint8_t 4.06 ms (30.4 copies), float 3.67 ms (7.2 copies)
 *
 * Limits: none. Square sizes 3, 5, 7 and 9 are unrolled; others loop and load each tap. 127 x 127 taps fill constant
 * memory. Only 8 KB of it is cached near a multiprocessor: above 45 x 45, taps come from the next cache. */
#include "kernels/shared/conv.cuh"

static __constant__ float taps[max_taps];

static constexpr int block_width = 32, block_height = 8;

/* SIZE is the filter's width and height, or 0 if they are known only at run time. */
template <typename T, int SIZE>
static __global__ void constant(struct launch launch)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * block_width + (int)threadIdx.x;
    const int y = tile.y * block_height + (int)threadIdx.y;
    if (x >= launch.width || y >= launch.height)
        return;
    const int filter_width = SIZE ? SIZE : launch.filter_width, filter_height = SIZE ? SIZE : launch.filter_height;
    const int top = y - launch.anchor_y, left = x - launch.anchor_x;
    float sum = 0;
    if (window_inside(launch, y, x)) {
        const T *row = in_row<T>(launch, top) + left;
#pragma unroll(SIZE ? SIZE : 1)
        for (int i = 0; i < filter_height; i++) {
#pragma unroll(SIZE ? SIZE : 1)
            for (int j = 0; j < filter_width; j++)
                sum += taps[i * filter_width + j] * (float)row[j];
            row = (const T *)((const char *)row + launch.in_row);
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

TEXTBOOK_VARIANT(constant, KERNEL_FOR(plan, constant), {block_width, block_height, dim3(block_width, block_height)})
