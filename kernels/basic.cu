/* SPDX-License-Identifier: MIT
 *
 * basic: one thread per pixel, and taps in global memory. This is the kernel that everybody writes first.
 *
 *     image            thread (x, y) walks the fw x fh window around its pixel:
 *     . . . . . .      two loads (a sample, a tap) and one multiply-add per tap.
 *     . [ window ]
 *     . [   o    ]     block = 32 x 8 threads = 32 x 8 outputs: a warp is a row of 32, so that its loads
 *     . [        ]     are of neighbouring samples
 *
 * Arithmetic intensity, here and in the other heads, is operations per byte. A multiply-add is 2 operations. There are
 * two counts of the bytes. "Asked" counts what the loads ask of global memory, whichever cache answers. "Roofline"
 * counts each sample as read once and written once, as the benchmark does. It depends on the filter alone, and is 81
 * (uint8_t) or 20 (float) for 9 x 9.
 *
 * Loads: 2 fw fh per output, 162 for 9 x 9. Intensity: 2 operations for 1 + 4 bytes (uint8_t) or 4 + 4 (float), so 0.4
 * or 0.25 asked, whatever the filter's size. The caches make up for it. Neighbouring threads share all but one column
 * of their windows, and the 32 threads of a warp read the same tap at once. So device memory delivers each sample about
 * once, and the number of load instructions bounds the kernel.
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

extern "C" bool basic_prepare(struct plan *plan, struct device *device, struct error *error)
{
    return upload_taps(plan, device, taps, error);
}

extern "C" bool basic_launch(const struct plan *plan, struct device *device, const struct plane *in,
                             const struct plane *out, struct error *error)
{
    return launch_tiles(plan->sample == SAMPLE_U8 ? basic<uint8_t> : basic<float>, plan, device, in, out,
                        {block_width, block_height, dim3(block_width, block_height)}, error);
}
