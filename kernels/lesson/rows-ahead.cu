/* SPDX-License-Identifier: MIT
 *
 * rows-ahead: registers with a loop. A thread walks down 4 columns of a strip.
 *
 *     row r + 1    [....|....|....]    on its way to the registers `next`
 *     row r        [....|iiii|....]    in the registers `v`, added to SIZE rows of sums
 *
 *     sum[0] of output row r    -->  sum[1]  -->  ...  -->  sum[SIZE - 1] of output row r - SIZE + 1: done
 *
 * sum[i] is always the one that has filter row i over this row, and becomes sum[i + 1] for the next row. The move is
 * the first multiply-add, which writes to another register than it reads from. The last iteration loads a row that
 * nobody needs.
 *
 * Limits: none. For sizes other than 3, 5, 7 and 9, and for anchors outside the centre, constant does the work. */
#include "kernels/lesson/lesson.cuh"

static __constant__ float taps[max_taps];

static constexpr int block_width = 128, strip_height = 32;

template <typename T, int SIZE>
static __global__ void rows_ahead(struct launch launch)
{
    const int2 tile = block_tile(launch);
    const int x = columns * (tile.x * block_width + (int)threadIdx.x), y = tile.y * strip_height;
    if (x >= launch.width)
        return;
    constexpr int count = window_of<SIZE>;
    const int left = x - SIZE / 2 - lead_of(SIZE / 2), top = y - SIZE / 2;
    const int rows = min(strip_height, launch.height - y) + SIZE - 1;
    float sum[SIZE][columns] = {}, next[count];
    load_window<T>(launch, top, left, next);
#pragma unroll 1
    for (int r = 0; r < rows; r++) {
        float v[count];
        memcpy(v, next, sizeof v);
        load_window<T>(launch, top + r + 1, left, next);
#pragma unroll
        for (int i = SIZE - 1; i >= 0; i--) {
#pragma unroll
            for (int c = 0; c < columns; c++)
                sum[i][c] = i > 0 ? sum[i - 1][c] : 0;
            add_taps<SIZE>(sum[i], taps, i, v);
        }
        if (r >= SIZE - 1)
            store_quad<T>(launch, y + r - (SIZE - 1), x, sum[SIZE - 1]);
    }
}

LESSON_VARIANT(rows_ahead, {columns * block_width, strip_height, dim3(block_width)})
