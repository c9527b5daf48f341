/* SPDX-License-Identifier: MIT
 *
 * row-ring: rows-ahead with asynchronous copies of rows to a ring in shared memory, one ring per warp.
 *
 *     memory  --cp.async-->  [....|......  row r + 7  ......|....]   slot (r + 7) % 8
 *                            [....|......     ...     ......|....]
 *                            [....|......    row r    ......|....]   slot r % 8  -->  v  -->  sums, as in rows-ahead
 *
 * register-tiled does the same with fewer instructions: copies of 16 bytes, two rows per iteration, taps in registers,
 * no conversions, and no multiply-adds for sums that are not stored.
 *
 * Limits: none. For sizes other than 3, 5, 7 and 9, and for anchors outside the centre, constant does the work. */
#include "kernels/lesson/lesson.cuh"

static __constant__ float taps[max_taps];

static constexpr int slots = 8, strip_height = 32;

template <typename T, int SIZE>
static __global__ void row_ring(struct launch launch)
{
    constexpr int before = SIZE / 2 + lead_of(SIZE / 2), count = window_of<SIZE>;
    constexpr int samples = strip_width - columns + count, row_bytes = samples * (int)sizeof(T);
    __shared__ __align__(16) unsigned char memory[strip_warps][slots][row_bytes];
    const int2 tile = block_tile(launch);
    const int strip_x = (tile.x * strip_warps + (int)threadIdx.y) * strip_width,
              x = strip_x + columns * (int)threadIdx.x;
    const int y = tile.y * strip_height, rows = min(strip_height, launch.height - y) + SIZE - 1;
    if (strip_x >= launch.width)
        return;
    const unsigned char *plane = launch.in + blockIdx.z * launch.in_plane;
    const uint32_t ring = shared_address(memory[threadIdx.y]);

    auto start_copy = [&](int r) {
        if (r < rows)
            load_border_row<T>(plane, launch.in_row, launch.width, launch.height, launch.border, y - SIZE / 2 + r,
                               strip_x - before, ring + r % slots * row_bytes, row_bytes / 4);
        copy_commit();
    };
    for (int r = 0; r < slots - 1; r++)
        start_copy(r);
    float sum[SIZE][columns] = {};
#pragma unroll 1
    for (int r = 0; r < rows; r++) {
        copy_wait<slots - 2>(); /* row r has come, and all lanes have read row r - 1 */
        start_copy(r + slots - 1);
        float v[count];
        read_window<T>(ring + r % slots * row_bytes + columns * threadIdx.x * (int)sizeof(T), v);
#pragma unroll
        for (int i = SIZE - 1; i >= 0; i--) {
#pragma unroll
            for (int c = 0; c < columns; c++)
                sum[i][c] = i > 0 ? sum[i - 1][c] : 0;
            add_taps<SIZE>(sum[i], taps, i, v);
        }
        if (r >= SIZE - 1 && x < launch.width)
            store_quad<T>(launch, y + r - (SIZE - 1), x, sum[SIZE - 1]);
    }
}

LESSON_VARIANT(row_ring, {strip_warps * strip_width, strip_height, dim3(32, strip_warps)})
