/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of the rule of Pillow (src/filter/resample.h): two passes, each rounded to bytes. Tables of pictures
 * have our own rule, too. A block makes a tile of one picture:
 *
 *     in       levels in global memory, of any strides
 *                |  the first pass, of rows or of columns, as far as the second one needs it
 *     middle   in shared memory: for each pixel, its channels. They are bytes or, by our own rule, m as int16_t
 *                |  the second pass
 *     out      levels, or what a table makes of them: the samples of a tensor
 *
 * A thread makes all channels of a pixel. The taps of neighbouring outputs are side by side, so a warp loads them
 * together. A sum of 22-bit taps and bytes is exact in 32 bits, in any order (PILLOW_SHIFT). A sum of our own rule
 * needs 64 bits: |m| is below 2^15, and the taps of an output sum to 2^shift. */
#include "kernels/resample/pillow.h"

#include "kernels/shared/conv.cuh"

#include <stdlib.h>

namespace
{
constexpr int threads_x = 32, threads_y = 8;

__device__ __forceinline__ int level_of(uint8_t sample)
{
    return sample;
}

__device__ __forceinline__ int level_of(uint16_t sample)
{
    return reduce_sample(sample);
}

__device__ __forceinline__ int level_of(int16_t m)
{
    return m;
}

/* The rules: the type of a sum, and that of what the first pass makes. */
struct pillows_rule {
    static constexpr bool is_pillow = true;
    typedef int sum;
    typedef uint8_t middle;
};

struct own_rule {
    static constexpr bool is_pillow = false;
    typedef long long sum;
    typedef int16_t middle;
};

/* Make the CHANNELS levels of output I, or m: its input 0 is at FROM, and others are STEP bytes apart. */
template <int CHANNELS, typename T, typename RULE>
__device__ __forceinline__ void sum_output(const struct pillow_pass &pass, int i, const uint8_t *from, ptrdiff_t step,
                                           size_t channel, int (&levels)[CHANNELS])
{
    const int32_t *taps = pass.words + 2 * (size_t)pass.outputs + i;
    const int count = __ldg(pass.words + pass.outputs + i);
    const int shift = RULE::is_pillow ? PILLOW_SHIFT : pass.shift;
    typename RULE::sum sums[CHANNELS];
    from += __ldg(pass.words + i) * step;
#pragma unroll
    for (int c = 0; c < CHANNELS; c++)
        sums[c] = (typename RULE::sum)1 << (shift - 1);
#pragma unroll 4
    for (int k = 0; k < count; k++, taps += pass.outputs, from += step) {
        const int tap = __ldg(taps);
#pragma unroll
        for (int c = 0; c < CHANNELS; c++)
            sums[c] += (typename RULE::sum)tap * level_of(*(const T *)(from + c * channel));
    }
#pragma unroll
    for (int c = 0; c < CHANNELS; c++) {
        levels[c] = (int)(sums[c] >> shift);
        if (RULE::is_pillow || sizeof(T) > 1) /* else it is m */
            levels[c] = min(max(levels[c], 0), 255);
    }
}

/* The inputs that outputs FIRST to LAST - 1 read: from *FROM to *TO - 1. */
__device__ __forceinline__ void find_inputs(const struct pillow_pass &pass, int first, int last, int *from, int *to)
{
    *from = __ldg(pass.words + first);
    *to = __ldg(pass.words + last - 1) + __ldg(pass.words + pass.outputs + last - 1);
}

/* Store a level of channel C at pixel (X, Y) of OUT. */
template <typename T>
__device__ __forceinline__ void store(const struct pillow_picture &picture, const struct pillow_levels *levels, int x,
                                      int y, int c, int level)
{
    uint8_t *to = picture.out + y * picture.out_row + x * picture.out_pixel + c * picture.out_channel;
    if (!levels)
        *(T *)to = sizeof(T) == 1 ? (T)level : (T)widen_sample((unsigned)level);
    else if (levels->bytes == 1)
        *to = (uint8_t)level;
    else if (levels->bytes == 2)
        *(uint16_t *)to = __ldg((const uint16_t *)levels->samples[c][level]);
    else
        *(uint32_t *)to = __ldg((const uint32_t *)levels->samples[c][level]);
}

/* Picture blockIdx.y of PICTURES, or plane blockIdx.y of ONE if that is NULL. T is the type of samples, which are
 * bytes in a table. */
template <int CHANNELS, typename T, typename RULE>
__global__ void __launch_bounds__(threads_x *threads_y)
    pillow(const struct pillow_picture *pictures, const struct pillow_picture one, const struct pillow_levels *levels)
{
    typedef typename RULE::middle made;
    extern __shared__ unsigned char shared[];
    made *middle = (made *)shared;
    struct pillow_picture p = pictures ? pictures[blockIdx.y] : one;
    if (!pictures) {
        p.in += blockIdx.y * one.in_channel;
        p.out += blockIdx.y * one.out_channel;
    }
    const int tiles_x = (p.width - 1) / p.tile_width + 1;
    const int left = (int)blockIdx.x % tiles_x * p.tile_width, top = (int)blockIdx.x / tiles_x * p.tile_height;
    const int right = min(left + p.tile_width, p.width), bottom = min(top + p.tile_height, p.height);
    const int thread_x = (int)threadIdx.x % threads_x, thread_y = (int)threadIdx.x / threads_x;
    if (top >= p.height)
        return;

    /* The outputs of the tile. */
    const int x0 = max(left - p.x, 0), x1 = min(right - p.x, p.rows.outputs);
    const int y0 = max(top - p.y, 0), y1 = min(bottom - p.y, p.columns.outputs);
    const bool has_outputs = x0 < x1 && y0 < y1;
    int first = 0, last = 0; /* the rows of the first pass, or its columns */
    int sums[CHANNELS];
    if (has_outputs && p.rows_first) {
        find_inputs(p.columns, y0, y1, &first, &last);
        for (int y = first + thread_y; y < last; y += threads_y)
            for (int x = x0 + thread_x; x < x1; x += threads_x) {
                sum_output<CHANNELS, T, RULE>(p.rows, x, p.in + y * p.in_row, p.in_pixel, p.in_channel, sums);
                for (int c = 0; c < CHANNELS; c++)
                    middle[((y - first) * p.tile_width + x - x0) * CHANNELS + c] = (made)sums[c];
            }
    } else if (has_outputs) {
        find_inputs(p.rows, x0, x1, &first, &last);
        for (int y = y0 + thread_y; y < y1; y += threads_y)
            for (int x = first + thread_x; x < last; x += threads_x) {
                sum_output<CHANNELS, T, RULE>(p.columns, y, p.in + x * p.in_pixel, p.in_row, p.in_channel, sums);
                for (int c = 0; c < CHANNELS; c++)
                    middle[((y - y0) * (last - first) + x - first) * CHANNELS + c] = (made)sums[c];
            }
    }
    __syncthreads();
    for (int y = top + thread_y; y < bottom; y += threads_y)
        for (int x = left + thread_x; x < right; x += threads_x) {
            const int i = x - p.x, j = y - p.y;
            const bool is_inside = has_outputs && i >= x0 && i < x1 && j >= y0 && j < y1;
            if (is_inside && p.rows_first)
                sum_output<CHANNELS, made, RULE>(p.columns, j,
                                                 (const uint8_t *)(middle + (i - x0 - first * p.tile_width) * CHANNELS),
                                                 p.tile_width * CHANNELS * (int)sizeof(made), sizeof(made), sums);
            else if (is_inside)
                sum_output<CHANNELS, made, RULE>(
                    p.rows, i, (const uint8_t *)(middle + ((j - y0) * (last - first) - first) * CHANNELS),
                    CHANNELS * (int)sizeof(made), sizeof(made), sums);
#pragma unroll
            for (int c = 0; c < CHANNELS; c++)
                store<T>(p, levels, x, y, c, is_inside ? sums[c] : levels->outside[c]);
        }
}

struct pillow_pass pass_of(const struct resample_axis *axis, const int32_t *words)
{
    return {words, axis->made, axis->shift};
}
} // namespace

bool pillow_launch(struct device *device, const struct pillow_table *table, size_t count, struct error *error)
{
    const struct pillow_picture none = {};
    return queue_kernel(table->is_pillow ? pillow<3, uint8_t, pillows_rule> : pillow<3, uint8_t, own_rule>,
                        dim3(table->tiles, (unsigned)count), threads_x * threads_y, table->shared, device, error,
                        table->pictures, none, table->levels);
}

bool pillow_prepare_planes(struct plan *plan, struct device *device, struct error *error)
{
    const size_t first = pillow_words(&plan->columns), count = first + pillow_words(&plan->rows);
    int32_t *words = (int32_t *)malloc(count * sizeof *words);
    if (words == NULL)
        return error_no_memory(error, "the taps of %s", plan->filter->name);
    pillow_pack(&plan->columns, words);
    pillow_pack(&plan->rows, words + first);
    const bool done = upload_table(device, words, count * sizeof *words, error) && device_wait(device, error);
    free(words);
    return done;
}

bool pillow_launch_planes(const struct plan *plan, struct device *device, const struct plane *in,
                          const struct plane *out, struct error *error)
{
    const int32_t *words = (const int32_t *)device_table(device);
    struct pillow_picture picture = {};
    picture.in = (const uint8_t *)in->data;
    picture.out = (uint8_t *)out->data;
    picture.in_row = (ptrdiff_t)in->row_bytes;
    picture.out_row = (ptrdiff_t)out->row_bytes;
    picture.in_pixel = picture.out_pixel = (ptrdiff_t)sample_bytes(in->sample);
    picture.in_channel = in->plane_bytes;
    picture.out_channel = out->plane_bytes;
    picture.width = out->width;
    picture.height = out->height;
    picture.columns = pass_of(&plan->columns, words);
    picture.rows = pass_of(&plan->rows, words + pillow_words(&plan->columns));
    picture.rows_first = plan->rows_first;
    const size_t shared = pillow_tiles(&picture, &plan->columns, &plan->rows, 1, (size_t)in->count);
    return queue_kernel(in->sample == SAMPLE_U8 ? pillow<1, uint8_t, pillows_rule> : pillow<1, uint16_t, pillows_rule>,
                        dim3(pillow_tile_count(&picture), (unsigned)in->count), threads_x * threads_y, shared, device,
                        error, (const struct pillow_picture *)NULL, picture, (const struct pillow_levels *)NULL);
}
