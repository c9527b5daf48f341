/* SPDX-License-Identifier: MIT
 *
 * resample: the GPU's half of src/cpu/resample.c, for filters that change the size. A block makes a tile of outputs by
 * both passes. Integers have a kernel of their own, in resample/products.cu, and the rule of Pillow in
 * resample/pillow.cu; the one here takes floats, and the few sizes that products.cu does not.
 *
 *     in      rows of the picture, in global memory
 *               |  columns: a thread sums a word of 4 samples (2 of uint16_t, 1 float) of a row of outputs
 *     sums    tile rows x the input columns that the tile needs, in shared memory, rounded: m - middle
 *               |  rows: a thread sums an output; neighbours read neighbouring taps and sums
 *     out     a tile of outputs
 *
 * Taps are in a table in device memory: those of columns one output after the other, as all threads of a warp work on
 * one row; those of rows one tap after the other, as a warp works on neighbouring outputs. Both come from L1.
 *
 * Limits: the sums of one output must fit in shared memory, so a side may become up to some 2000 times shorter. */
#include "kernels/resample/pillow.h"
#include "kernels/resample/products.h"
#include "kernels/shared/conv.cuh"

#include <stdlib.h>

static constexpr int threads_x = 32, threads_y = 8, threads = threads_x * threads_y;
static constexpr size_t shared_max = 48 << 10;

/* The argument of the kernel. */
struct resampling {
    const unsigned char *in;
    unsigned char *out;
    size_t in_row, in_plane, out_row, out_plane; /* strides in bytes */
    struct resample_axis columns, rows;          /* without taps */
    const int32_t *columns_taps, *rows_taps;
    const int32_t *columns_first, *rows_first; /* resample_first of each output: it divides 64 bits */
    int tile_width, tile_height, tiles_x;
    int width; /* samples of a row of sums */
};

/* ---- Samples of one type ---- */

/* The sums of uint8_t: m - 2^13 as int16_t. */
template <typename T>
struct arithmetic;

template <>
struct arithmetic<uint8_t> {
    typedef int16_t stored;
    typedef int64_t sum;
    static constexpr int word = 4, middle = 1 << 13, half_level = 128, highest = 255;
};

template <>
struct arithmetic<uint16_t> {
    typedef int32_t stored;
    typedef int64_t sum;
    static constexpr int word = 2, middle = 1 << 21, half_level = 32768, highest = 65535;
};

template <>
struct arithmetic<float> {
    typedef float stored;
    typedef float sum;
    static constexpr int word = 1, middle = 0, half_level = 0, highest = 0;
};

/* Sample K of a word. */
template <typename T>
static __device__ __forceinline__ T sample_of(uint32_t word, int k)
{
    if (sizeof(T) == 4)
        return (T)__uint_as_float(word);
    return (T)(word >> (8 * (int)sizeof(T) * k));
}

/* For each tap of output row Y, call ADD with its index and the word of samples at column X. */
template <typename T, typename Add>
static __device__ __forceinline__ void walk_rows(const struct resampling &launch, int y, int x, Add add)
{
    const int first = __ldg(&launch.columns_first[y]), count = launch.columns.count, last = launch.columns.from - 1;
    const unsigned char *plane = launch.in + blockIdx.y * launch.in_plane + (size_t)x * sizeof(T);
    if (first >= 0 && first + count <= last + 1) {
        const unsigned char *row = plane + (size_t)first * launch.in_row;
#pragma unroll 4
        for (int i = 0; i < count; i++, row += launch.in_row)
            add(i, *(const uint32_t *)row);
    } else {
#pragma unroll 1
        for (int i = 0; i < count; i++)
            add(i, *(const uint32_t *)(plane + (size_t)min(max(first + i, 0), last) * launch.in_row));
    }
}

/* ---- Columns ---- */

/* Store the sums of a word of columns from X on, for row Y of outputs. */
template <typename T>
static __device__ __forceinline__ void sum_columns(const struct resampling &launch, int y, int x,
                                                   typename arithmetic<T>::stored *to)
{
    typedef arithmetic<T> a;
    typedef typename a::stored stored;
    const struct resample_axis &axis = launch.columns;
    const int bits = axis.shift - RESAMPLE_FRACTION;
    const int32_t *taps = launch.columns_taps + (size_t)(y % axis.period) * (size_t)axis.count;
    typename a::sum sums[a::word] = {};
    const float unit = ldexpf(1, -axis.shift);
    walk_rows<T>(launch, y, x, [&](int i, uint32_t word) {
        const int32_t tap = __ldg(&taps[i]);
#pragma unroll
        for (int k = 0; k < a::word; k++)
            sums[k] += sizeof(T) == 4 ? (typename a::sum)((float)tap * unit * (float)sample_of<T>(word, k))
                                      : (typename a::sum)((int64_t)tap * (int32_t)sample_of<T>(word, k));
    });
#pragma unroll
    for (int k = 0; k < a::word; k++)
        to[k] = sizeof(T) == 4 ? (stored)sums[k]
                               : (stored)((((int64_t)sums[k] + ((int64_t)1 << (bits - 1))) >> bits) - a::middle);
}

/* ---- Rows ---- */

/* Output X of a row whose sums from column START on are at SUMS. */
template <typename T>
static __device__ __forceinline__ T sum_row(const struct resampling &launch, int x, int start,
                                            const typename arithmetic<T>::stored *sums)
{
    typedef arithmetic<T> a;
    const struct resample_axis &axis = launch.rows;
    const int first = __ldg(&launch.rows_first[x]), last = axis.from - 1, bits = axis.shift + RESAMPLE_FRACTION;
    const int32_t *taps = launch.rows_taps + x % axis.period;
    typename a::sum sum = 0;
    const float unit = ldexpf(1, -axis.shift);
    const auto add = [&](int i, typename a::stored from) {
        const int32_t tap = __ldg(&taps[(size_t)i * (size_t)axis.period]);
        sum += sizeof(T) == 4 ? (typename a::sum)((float)tap * unit * (float)from)
                              : (typename a::sum)((int64_t)tap * (int32_t)from);
    };
    if (first >= 0 && first + axis.count <= axis.from) {
        sums += first - start;
#pragma unroll 4
        for (int i = 0; i < axis.count; i++)
            add(i, sums[i]);
    } else {
#pragma unroll 1
        for (int i = 0; i < axis.count; i++)
            add(i, sums[min(max(first + i, 0), last) - start]);
    }
    if (sizeof(T) == 4)
        return (T)sum;
    const int level = (int)(((int64_t)sum + ((int64_t)1 << (bits - 1))) >> bits) + a::half_level;
    return (T)min(max(level, 0), a::highest);
}

/* ---- The kernel ---- */

template <typename T>
__global__ void __launch_bounds__(threads) resample(struct resampling launch)
{
    typedef arithmetic<T> a;
    extern __shared__ unsigned char shared[];
    typename a::stored *sums = (typename a::stored *)shared;
    const int thread_x = (int)threadIdx.x % threads_x, thread_y = (int)threadIdx.x / threads_x;
    const int x0 = (int)blockIdx.x % launch.tiles_x * launch.tile_width;
    const int y0 = (int)blockIdx.x / launch.tiles_x * launch.tile_height;
    const int x1 = min(x0 + launch.tile_width, launch.rows.to), y1 = min(y0 + launch.tile_height, launch.columns.to);
    /* The inputs of the tile that are in the picture, from a whole word on. The last tap of an output may be 0: its
     * input is summed, too, because a float that is not a number times 0 is none. */
    const int first = __ldg(&launch.rows_first[x0]), last = launch.rows.from - 1;
    const int start = min(max(first, 0), last) & -a::word;
    const int end = min(__ldg(&launch.rows_first[x1 - 1]) + launch.rows.count, last + 1);
    for (int y = y0 + thread_y; y < y1; y += threads_y)
        for (int x = start + thread_x * a::word; x < end; x += threads_x * a::word)
            sum_columns<T>(launch, y, x, sums + (y - y0) * launch.width + (x - start));
    __syncthreads();
    for (int y = y0 + thread_y; y < y1; y += threads_y) {
        T *row = (T *)(launch.out + blockIdx.y * launch.out_plane + (size_t)y * launch.out_row);
        for (int x = x0 + thread_x; x < x1; x += threads_x)
            row[x] = sum_row<T>(launch, x, start, sums + (y - y0) * launch.width);
    }
}

/* The words of the table: the taps of columns; those of rows, one tap after the other; and the first inputs of both. */
static size_t table_words(const struct resample_axis *columns, const struct resample_axis *rows, size_t offsets[4])
{
    const size_t sizes[4] = {(size_t)columns->period * (size_t)columns->count,
                             (size_t)rows->period * (size_t)rows->count, (size_t)columns->to, (size_t)rows->to};
    size_t words = 0;
    for (int i = 0; i < 4; i++) {
        offsets[i] = words;
        words += sizes[i];
    }
    return words;
}

extern "C" bool resample_prepare(struct plan *plan, struct device *device, struct error *error)
{
    if (filter_is_pillow(plan->filter))
        return pillow_prepare_planes(plan, device, error);
    if (resample_takes_products(plan))
        return resample_prepare_products(plan, device, error);
    const struct resample_axis *columns = &plan->columns, *rows = &plan->rows;
    size_t offsets[4];
    const size_t count = table_words(columns, rows, offsets);
    int32_t *words = (int32_t *)malloc(count * sizeof *words);
    if (words == NULL)
        return error_no_memory(error, "the taps of %s", plan->filter->name);
    memcpy(words, columns->taps, offsets[1] * sizeof *words);
    for (int i = 0; i < rows->period; i++)
        for (int k = 0; k < rows->count; k++)
            words[offsets[1] + (size_t)k * (size_t)rows->period + (size_t)i] =
                rows->taps[(size_t)i * (size_t)rows->count + (size_t)k];
    for (int y = 0; y < columns->to; y++)
        words[offsets[2] + (size_t)y] = resample_first(columns, y);
    for (int x = 0; x < rows->to; x++)
        words[offsets[3] + (size_t)x] = resample_first(rows, x);
    const bool done = upload_table(device, words, count * sizeof *words, error) && device_wait(device, error);
    free(words);
    return done;
}

/* Set the tile's size, so that its sums fit in shared memory. Returns the bytes of these, or 0. */
template <typename T>
static size_t choose_tile(struct resampling *launch)
{
    static const int sizes[][2] = {{64, 16}, {64, 8}, {32, 8}, {16, 8}, {8, 8}, {8, 4}, {4, 4}, {2, 2}, {1, 1}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        launch->tile_width = sizes[i][0];
        launch->tile_height = sizes[i][1];
        /* The inputs of the first output and of the others, one more for rounding, and whole words at both ends. */
        const int64_t width = (int64_t)launch->tile_width * launch->rows.from / launch->rows.to + launch->rows.count +
                              1 + 2 * arithmetic<T>::word;
        const size_t bytes = (size_t)width * (size_t)launch->tile_height * sizeof(typename arithmetic<T>::stored);
        launch->width = (int)width;
        if (bytes <= shared_max)
            return bytes;
    }
    return 0;
}

template <typename T>
static bool launch_tiles_of(const struct plan *plan, struct device *device, const struct plane *in,
                            const struct plane *out, struct error *error)
{
    struct resampling launch = {};
    set_planes(&launch, in, out);
    launch.columns = plan->columns;
    launch.rows = plan->rows;
    size_t offsets[4];
    table_words(&plan->columns, &plan->rows, offsets);
    launch.columns_taps = (const int32_t *)device_table(device);
    launch.rows_taps = launch.columns_taps + offsets[1];
    launch.columns_first = launch.columns_taps + offsets[2];
    launch.rows_first = launch.columns_taps + offsets[3];
    const size_t shared = choose_tile<T>(&launch);
    if (shared == 0)
        return error_set(error, ERROR_GPU,
                         "%s makes %d x %d pixels from %d x %d, which a GPU cannot do; give --backend cpu",
                         plan->filter->name, out->width, out->height, in->width, in->height);
    launch.tiles_x = (out->width + launch.tile_width - 1) / launch.tile_width;
    const int tiles_y = (out->height + launch.tile_height - 1) / launch.tile_height;
    const dim3 grid((unsigned)launch.tiles_x * (unsigned)tiles_y, (unsigned)in->count);
    return queue_kernel(resample<T>, grid, threads, shared, device, error, launch);
}

extern "C" bool resample_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                const struct plane *out, struct error *error)
{
    if (filter_is_pillow(plan->filter))
        return pillow_launch_planes(plan, device, in, out, error);
    if (resample_takes_products(plan))
        return resample_launch_products(plan, device, in, out, error);
    return plan->sample == SAMPLE_U8    ? launch_tiles_of<uint8_t>(plan, device, in, out, error)
           : plan->sample == SAMPLE_U16 ? launch_tiles_of<uint16_t>(plan, device, in, out, error)
                                        : launch_tiles_of<float>(plan, device, in, out, error);
}
