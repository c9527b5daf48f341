/* SPDX-License-Identifier: MIT
 *
 * tiled-cached: only the interior of the tile is in shared memory; the halo is left to the L1 and L2 caches.
 *
 *       h h h h h h        block = input tile = output tile = 32 x 32, 1 load per thread, no idle
 *     h +---------+ h      threads, no strips. The halo (h) of this tile is the interior of its
 *     h | o o o o | h      neighbours, which some other block has loaded or is about to load, so it is
 *     h | o o o o | h      probably in L2, and the reads below hit there.
 *     h +---------+ h
 *       h h h h h h
 *
 * Loads: 1 per output into shared memory, then the reads that miss the tile. In a row of 2 r + 1 taps, r (r + 1) / 32
 * miss it on average. So fw fh - (fw - r (r + 1) / 32)(fh - r (r + 1) / 32) reads per output go to global memory, 11 of
 * 81 for 9 x 9. Intensity (basic.cu defines it) for 9 x 9: 162 operations for 12 samples, 14 (uint8_t) or
 * 3.4 (float) asked; roofline: 81 or 20.
 *
 * It is slower, by a factor of 2, than constant, which is the same kernel without the tile. Each of the fw fh reads
 * first tests whether it is inside the tile. The lanes of one warp differ in this near the left and right edges of the
 * tile. A tile is one warp wide, so every warp runs both sides of the branch. constant has no such test, and its reads
 * of global memory hit L1 just as well. The textbooks' version also tests at each read whether it is inside the image.
 * That version is slower than even basic, by a factor of 4. The trick helps only if L1 does not cache global memory.
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

TEXTBOOK_VARIANT(tiled_cached, {block, block, dim3(block, block)})
