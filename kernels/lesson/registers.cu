/* SPDX-License-Identifier: MIT
 *
 * registers: the step from coarsened to register-tiled that matters most. A thread computes 4 x 8 neighbouring outputs,
 * which share samples, and keeps their sums in registers.
 *
 *     a row of its window     [....|oooo|....]     read once, in quads: 3 loads for 9 taps
 *     outputs of the thread        [oooo]
 *                                  [oooo]          a row is added to all rows of outputs that it belongs to,
 *                                  [oooo]          each with another row of the filter
 *
 * Limits: none. For sizes other than 3, 5, 7 and 9, and for anchors outside the centre, constant does the work. */
#include "kernels/lesson/lesson.cuh"

static __constant__ float taps[max_taps];

static constexpr int block_width = 32, block_height = 4, rows = 8;

template <typename T, int SIZE>
static __global__ void registers(struct launch launch)
{
    const int2 tile = block_tile(launch);
    const int x = columns * (tile.x * block_width + (int)threadIdx.x);
    const int y = rows * (tile.y * block_height + (int)threadIdx.y);
    if (x >= launch.width || y >= launch.height)
        return;
    float sum[rows][columns] = {};
#pragma unroll
    for (int r = 0; r < rows + SIZE - 1; r++) {
        float v[window_of<SIZE>];
        load_window<T>(launch, y - SIZE / 2 + r, x - SIZE / 2 - lead_of(SIZE / 2), v);
#pragma unroll
        for (int k = 0; k < rows; k++)
            if (r - k >= 0 && r - k < SIZE) /* over output row k lies filter row r - k */
                add_taps<SIZE>(sum[k], taps, r - k, v);
    }
#pragma unroll
    for (int k = 0; k < rows; k++)
        if (y + k < launch.height)
            store_quad<T>(launch, y + k, x, sum[k]);
}

LESSON_VARIANT(registers, {columns * block_width, rows *block_height, dim3(block_width, block_height)})
