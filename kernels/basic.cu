/* SPDX-License-Identifier: MIT
 *
 * basic: the GPU's half of src/cpu/reference.c, as everybody writes it first: one thread per pixel, and taps in global
 * memory. docs/kernels.md explains the textbook variants, with drawings, counts of loads and measurements.
 *
 *     image            thread (x, y) walks the fw x fh window around its pixel:
 *     . . . . . .      two loads (a sample, a tap) and one multiply-add per tap.
 *     . [ window ]
 *     . [   o    ]     block = 32 x 8 threads = 32 x 8 outputs: a warp is a row of 32, so that its loads
 *     . [        ]     are of neighbouring samples
 *
 * Measured, 9 x 9 of 16384 x 16384 on an NVIDIA H200: uint8_t 9.14 ms (68.6 copies), float 8.51 ms (16.7 copies)
 *
 * Limits: none. Threads whose window crosses the edge of the image run the slow loop, which applies the border to each
 * sample. */
#include "kernels/shared/conv.cuh"

static __device__ float taps[max_taps];

static constexpr int block_width = 32, block_height = 8;

template <typename T>
static __global__ void basic(struct launch launch)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * block_width + (int)threadIdx.x;
    const int y = tile.y * block_height + (int)threadIdx.y;
    if (x >= launch.width || y >= launch.height)
        return;
    const int top = y - launch.anchor_y, left = x - launch.anchor_x;
    float sum = 0;
    if (window_inside(launch, y, x)) {
        for (int i = 0; i < launch.filter_height; i++) {
            const T *row = in_row<T>(launch, top + i) + left;
            for (int j = 0; j < launch.filter_width; j++)
                sum += taps[i * launch.filter_width + j] * (float)row[j];
        }
    } else {
        for (int i = 0; i < launch.filter_height; i++)
            for (int j = 0; j < launch.filter_width; j++)
                sum += taps[i * launch.filter_width + j] * load<T>(launch, top + i, left + j);
    }
    finish(launch, sum, &out_row<T>(launch, y)[x]);
}

TEXTBOOK_VARIANT(basic, plan->sample == SAMPLE_U8 ? basic<uint8_t> : basic<float>,
                 {block_width, block_height, dim3(block_width, block_height)})
