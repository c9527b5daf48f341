/* SPDX-License-Identifier: MIT
 *
 * tiled-output: a tile in shared memory; the block is as big as the output tile and loads the larger input tile in
 * several steps.
 *
 *     +----------------------+   block = output tile (o) = 32 x 32
 *     | h h h h h h h h h h h|   input tile = (31 + fw) x (31 + fh), loaded by all threads in turn:
 *     | h o o o o o o o o o h|   the first 32 x 32 samples, then the remaining strips
 *     | h o o o o o o o o o h|
 *     | h h h h h h h h h h h|   every thread then computes one output
 *     +----------------------+
 *
 * Loads: (31 + fw)(31 + fh) samples for 32 * 32 outputs, 1.6 per output for 9 x 9; then fw fh reads of shared memory
 * per output. Intensity (basic.cu defines it), asked: 2 fw fh 32^2 / ((31 + fw)(31 + fh) * bytes a sample), for 9 x 9
 * 104 (uint8_t) or 26 (float); roofline: 81 or 20. No thread is idle in the arithmetic. But the loading is a loop with
 * a test, whose last steps load narrow strips with few threads, while the others wait at the barrier. tiled-input,
 * whose threads load one sample each, is the faster of the two up to 9 x 9, and constant is faster than both there.
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

TEXTBOOK_VARIANT(tiled_output, {block, block, dim3(block, block)})
