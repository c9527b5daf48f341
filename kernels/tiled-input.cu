/* SPDX-License-Identifier: MIT
 *
 * tiled-input: constant, with a tile in shared memory; the block is as big as the input tile.
 *
 *     +----------------+   each thread loads one sample of the input tile, halo (h) included;
 *     | h h h h h h h h|   after the barrier only the threads over the output tile (o) work,
 *     | h o o o o o o h|   and those over the halo are idle.
 *     | h o o o o o o h|
 *     | h h h h h h h h|   block = input tile = 32 x 32, output tile = (33 - fw) x (33 - fh)
 *     +----------------+
 *
 * Measured, 9 x 9 of 16384 x 16384 on an NVIDIA H200: uint8_t 5.73 ms (43.0 copies), float 5.65 ms (11.1 copies)
 *
 * Limits: none, because a filter larger than 17 in a direction is cut into panels of at most 17. The block keeps the
 * sums of its outputs in registers, and loads and adds one panel's input tile after another. The output tile is then 16
 * in that direction. */
#include "kernels/shared/conv.cuh"

static __constant__ float taps[max_taps];

static constexpr int block = 32, panel = 17;

/* Outputs of a block in a direction in which the filter has SIZE taps. */
static __host__ __device__ int outputs(int size)
{
    return block + 1 - (size < panel ? size : panel);
}

/* SIZE is the filter's width and height, or 0 if they are known only at run time. */
template <typename T, int SIZE>
static __global__ void __launch_bounds__(block *block) tiled_input(struct launch launch)
{
    __shared__ float tile[block][block];
    const int2 at = block_tile(launch);
    const int tx = (int)threadIdx.x, ty = (int)threadIdx.y;
    const int filter_width = SIZE ? SIZE : launch.filter_width, filter_height = SIZE ? SIZE : launch.filter_height;
    const int tile_width = outputs(filter_width), tile_height = outputs(filter_height);
    const int x = at.x * tile_width + tx, y = at.y * tile_height + ty;
    const bool works = tx < tile_width && ty < tile_height && x < launch.width && y < launch.height;
    float sum = 0;
    for (int i0 = 0; i0 < filter_height; i0 += panel)
        for (int j0 = 0; j0 < filter_width; j0 += panel) {
            tile[ty][tx] = load<T>(launch, y - launch.anchor_y + i0, x - launch.anchor_x + j0);
            __syncthreads();
            if (works) {
                const int rows = SIZE ? SIZE : min(panel, filter_height - i0);
                const int columns = SIZE ? SIZE : min(panel, filter_width - j0);
#pragma unroll(SIZE ? SIZE : 1)
                for (int i = 0; i < rows; i++)
#pragma unroll(SIZE ? SIZE : 1)
                    for (int j = 0; j < columns; j++)
                        sum += taps[(i0 + i) * filter_width + j0 + j] * tile[ty + i][tx + j];
            }
            __syncthreads(); /* no thread may load the next panel while another reads this one */
        }
    if (works)
        finish(launch, sum, &out_row<T>(launch, y)[x]);
}

TEXTBOOK_VARIANT(tiled_input, KERNEL_FOR(plan, tiled_input),
                 {outputs(plan->filter->width), outputs(plan->filter->height), dim3(block, block)})
