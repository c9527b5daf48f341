/* SPDX-License-Identifier: MIT
 *
 * exercise: yours to edit. It starts as a copy of basic, whose head says how that works. It is a row of the table of
 * variants if it is built:
 *
 *     meson setup build -Dexercise=true
 *     ninja -C build gpuconv tests/variants/check_variants      # all kernels once; after an edit only this file
 *     build/tests/variants/check_variants --quick --variant exercise
 *     build/gpuconv --bench --variant exercise,constant --bench-filter int8-9 --bench-size 8192x8192
 *
 * docs/notes/exercises.md has questions and answers. `git checkout kernels/exercise.cu` starts again. */
#include "kernels/shared/conv.cuh"

static __device__ float taps[max_taps];

static constexpr int block_width = 32, block_height = 8;

template <typename T>
static __global__ void exercise(struct launch launch)
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

extern "C" bool exercise_prepare(struct plan *plan, struct device *device, struct error *error)
{
    return upload_taps(plan, device, taps, error);
}

extern "C" bool exercise_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                const struct plane *out, struct error *error)
{
    return launch_tiles(plan->sample == SAMPLE_U8 ? exercise<uint8_t> : exercise<float>, plan, device, in, out,
                        {block_width, block_height, dim3(block_width, block_height)}, error);
}
