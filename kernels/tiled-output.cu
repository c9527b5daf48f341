/* SPDX-License-Identifier: MIT
 *
 * tiled-output: constant, with a tile in shared memory; the block is as big as the output tile and loads the larger
 * input tile in several steps.
 *
 *     +----------------------+   block = output tile (o) = 32 x 32
 *     | h h h h h h h h h h h|   input tile = (31 + fw) x (31 + fh), loaded by all threads:
 *     | h o o o o o o o o o h|   the first 32 x 32 samples, then the remaining strips
 *     | h o o o o o o o o o h|
 *     | h h h h h h h h h h h|   every thread then computes one output
 *     +----------------------+
 *
 * Measured, 9 x 9 of 16384 x 16384 on an NVIDIA H200: uint8_t 5.87 ms (44.0 copies), float 5.87 ms (11.5 copies)
 *
 * Limits: none, because a filter larger than 33 in a direction is cut into panels of at most 33 (as in tiled-input):
 * the input tile is 64 x 64 at most, 16 KB of float. */
#include "kernels/shared/conv.cuh"

static __constant__ float taps[max_taps];

static constexpr int block = 32, panel = 33, tile_side = block + panel - 1;

/* SIZE is the filter's width and height, or 0 if they are known only at run time. */
template <typename T, int SIZE>
static __global__ void __launch_bounds__(block *block) tiled_output(struct launch launch)
{
    constexpr int side = SIZE ? block + SIZE - 1 : tile_side;
    __shared__ float tile[side][side];
    const int2 at = block_tile(launch);
    const int tx = (int)threadIdx.x, ty = (int)threadIdx.y;
    const int x = at.x * block + tx, y = at.y * block + ty;
    const int filter_width = SIZE ? SIZE : launch.filter_width, filter_height = SIZE ? SIZE : launch.filter_height;
    const bool works = x < launch.width && y < launch.height;
    float sum = 0;
    for (int i0 = 0; i0 < filter_height; i0 += panel)
        for (int j0 = 0; j0 < filter_width; j0 += panel) {
            const int rows = SIZE ? SIZE : min(panel, filter_height - i0);
            const int columns = SIZE ? SIZE : min(panel, filter_width - j0);
            for (int i = ty; i < block + rows - 1; i += block)
                for (int j = tx; j < block + columns - 1; j += block)
                    tile[i][j] = load<T>(launch, at.y * block - launch.anchor_y + i0 + i,
                                         at.x * block - launch.anchor_x + j0 + j);
            __syncthreads();
            if (works)
#pragma unroll(SIZE ? SIZE : 1)
                for (int i = 0; i < rows; i++)
#pragma unroll(SIZE ? SIZE : 1)
                    for (int j = 0; j < columns; j++)
                        sum += taps[(i0 + i) * filter_width + j0 + j] * tile[ty + i][tx + j];
            __syncthreads(); /* no thread may load the next panel while another reads this one */
        }
    if (works)
        finish(launch, sum, &out_row<T>(launch, y)[x]);
}

TEXTBOOK_VARIANT(tiled_output, KERNEL_FOR(plan, tiled_output), {block, block, dim3(block, block)})
