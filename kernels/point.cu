/* SPDX-License-Identifier: MIT
 *
 * point: the GPU's half of src/cpu/point.c, for filters that change each pixel by itself. A thread has a word of 4
 * bytes of each channel of some pixels, in planes or in an interleaved image. The pipeline calls it for several steps
 * at once; device/planes.cu does those before the first other filter, or after the last one. */
#include "kernels/point/automatic.h"
#include "kernels/shared/lanes.cuh"
#include "kernels/shared/point.cuh"

#include <stdlib.h>

static constexpr int threads_x = 32, threads_y = 8;
static constexpr int rounds = 4; /* groups of pixels that a thread loads before it stores one */

/* Pixels of a thread in an image: as many words as channels. */
template <int CHANNELS>
struct alignas(CHANNELS == 3 ? 4 : 4 * CHANNELS) neighbours {
    uint32_t word[CHANNELS];
};

/* Where a thread works in a round: its first pixel, and the number of its warp in a row of them. */
struct place {
    int x, y, warp;
};

/* In an IMAGE, one row has all pixels. */
template <bool IMAGE>
static __device__ __forceinline__ struct place find_place(const struct launch &launch, int round, int count)
{
    const int2 tile = block_tile(launch);
    const int part = ((IMAGE ? tile.x : tile.y) * rounds + round) * threads_y + (int)threadIdx.y;
    const int warp = IMAGE ? part : tile.x, y = IMAGE ? 0 : part, x = (warp * threads_x + (int)threadIdx.x) * count;
    return {x, y, warp};
}

/* In an IMAGE, in_plane and out_plane are the bytes of a sample. */
template <typename T, int CHANNELS, bool IMAGE>
static __global__ void __launch_bounds__(threads_x *threads_y, 4)
    point(struct launch launch, const __grid_constant__ struct point_steps steps)
{
    __shared__ uint32_t shared[IMAGE && CHANNELS == 3 ? threads_y : 1][threads_x * 3];
    constexpr int count = 4 / (int)sizeof(T), step = IMAGE ? CHANNELS : 1; /* pixels of a thread; samples of a pixel */
    const unsigned char *in = launch.in + (size_t)blockIdx.z * CHANNELS * launch.in_plane;
    unsigned char *out = launch.out + (size_t)blockIdx.z * CHANNELS * launch.out_plane;
    uint32_t word[rounds][CHANNELS];
#pragma unroll
    for (int r = 0; r < rounds; r++) {
        const struct place place = find_place<IMAGE>(launch, r, count);
        const int inside = place.y < launch.height ? launch.width - place.x : 0;
        const unsigned char *from = in + (size_t)place.y * launch.in_row + (size_t)place.x * step * sizeof(T);
        neighbours<CHANNELS> side = {};
        if (IMAGE && inside >= count)
            side = *(const neighbours<CHANNELS> *)from;
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            const T *samples = (const T *)(from + c * launch.in_plane);
            if (inside < count)
                word[r][c] = word_of<T, count>([=](int k) { return k < inside ? samples[k * step] : (T)0; });
            else if (!IMAGE)
                word[r][c] = *(const uint32_t *)samples;
            else
                word[r][c] = word_of<T, count>([&](int k) {
                    return sample_in<T>(side.word[(k * CHANNELS + c) / count], (k * CHANNELS + c) % count);
                });
        }
    }
    const uint8_t *levels = sizeof(T) == 1 ? load_levels(steps) : NULL;
#pragma unroll
    for (int r = 0; r < rounds; r++) {
        const struct place place = find_place<IMAGE>(launch, r, count);
        const int inside = place.y < launch.height ? launch.width - place.x : 0;
        unsigned char *to = out + (size_t)place.y * launch.out_row + (size_t)place.x * step * sizeof(T);
        neighbours<CHANNELS> side;
        change<T, count, CHANNELS>(word[r], levels, steps);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++) {
            T *samples = (T *)(to + c * launch.out_plane);
            side.word[c] = word_of<T, count>(
                [&](int k) { return sample_in<T>(word[r][(c * count + k) % CHANNELS], (c * count + k) / CHANNELS); });
            if (!IMAGE && inside >= count)
                *(uint32_t *)samples = word[r][c];
            for (int k = 0; inside < count && k < inside; k++)
                samples[k * step] = sample_in<T>(word[r][c], k);
        }
        if constexpr (IMAGE && CHANNELS == 3) { /* each store of a warp is 128 contiguous bytes */
            __syncwarp();                       /* wait until the last round's words are read */
            exchange(shared[threadIdx.y], side.word);
#pragma unroll
            for (int k = 0; k < 3; k++) {
                const int at = 3 * threads_x * place.warp + threads_x * k + (int)threadIdx.x;
                if (at < launch.width / count * 3)
                    ((uint32_t *)launch.out)[at] = side.word[k];
            }
        } else if (IMAGE && inside >= count) {
            *(neighbours<CHANNELS> *)to = side;
        }
    }
}

template <bool IMAGE>
static bool run(size_t size, const struct point_steps &steps, int channels, struct device *device,
                const struct launch &launch, int images, struct error *error)
{
#define CHANNELS_OF(type)                                                                                              \
    {                                                                                                                  \
        point<type, 1, IMAGE>, point<type, 2, IMAGE>, point<type, 3, IMAGE>, point<type, 4, IMAGE>                     \
    }
    void (*const kernels[][4])(struct launch, struct point_steps) = {CHANNELS_OF(uint8_t), CHANNELS_OF(uint16_t),
                                                                     CHANNELS_OF(float)};
    const int width = threads_x * 4 / (int)size;
    return launch_kernel(
        kernels[size / 2][channels - 1], launch, images, device,
        {IMAGE ? width * threads_y * rounds : width, IMAGE ? 1 : threads_y * rounds, dim3(threads_x, threads_y)}, error,
        steps);
}

bool device_change_planes(struct device *device, const struct device_points *points, int channels,
                          const struct plane *in, const struct plane *out, struct error *error)
{
    return run<false>(sample_bytes(in->sample), steps_of(points), channels, device, planes_launch(in, out),
                      in->count / channels, error);
}

bool device_change_image(struct device *device, const struct device_points *points, const struct image *from,
                         const struct image *to, struct error *error)
{
    struct launch launch = {};
    launch.in = from->samples;
    launch.out = to->samples;
    launch.in_plane = launch.out_plane = image_sample_bytes(from);
    launch.width = from->width * from->height * (points->is_flat ? from->channels : 1); /* at most 2^30 */
    launch.height = 1;
    return run<true>(launch.in_plane, steps_of(points), points->is_flat ? 1 : from->channels, device, launch, 1, error);
}

extern "C" bool point_prepare(struct plan *plan, struct device *device, struct error *error)
{
    struct point_tables *tables = point_tables_make(plan);
    if (tables == NULL)
        return error_no_memory(error, "the tables of %s", plan->filter->name);
    const bool done = upload_table(device, tables, tables->bytes, error) && device_wait(device, error);
    free(tables);
    return done;
}

extern "C" bool point_launch(const struct plan *plan, struct device *device, const struct plane *in,
                             const struct plane *out, struct error *error)
{
    struct point_steps steps = {{(const struct point_tables *)device_table(device)}, 1};
    if (plan->filter->point.automatic != AUTOMATIC_NONE && !automatic_tables(plan, device, in, &steps.step[0], error))
        return false;
    return run<false>(sample_bytes(plan->sample), steps, in->count, device, planes_launch(in, out), 1, error);
}
