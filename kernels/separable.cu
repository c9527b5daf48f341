/* SPDX-License-Identifier: MIT
 *
 * separable: the work of src/cpu/ on the GPU, for filters of rank 1: taps = column x row, as two passes fused in one
 * kernel.
 *
 *     an input row, from memory      its row sums              added to the sums of fh output rows
 *     [....][iiii][....]  -- row -->  [ssss]  -- column -->     [oooo] += column[i] * [ssss]
 *
 * For odd sizes from 3 to 31 (integers: to 15; tensor-core takes larger ones of uint8_t faster) with the anchor in the
 * centre, a warp walks down a strip (strip.cuh) with all of that in registers. Multiply-adds per output: fw + fh,
 * times (s + fh - 1) / s for the halo rows of a strip of s rows. For 9 x 9 in strips of 16, these are 27 instead of
 * 81. Loads: a warp copies each row once to its ring in shared memory, and a lane reads 1 + 2 ceil((fw - 1) / 8) quads
 * of it for 4 outputs. The row sums never leave the registers, so device memory sees each sample once in and once out,
 * and is the bound for planes of float. Two kernels would also write and read the row sums.
 *
 * Measured, 9 x 9 of 16384 x 16384 on an NVIDIA H200: uint8_t 0.401 ms (3.0 copies), float 0.558 ms (1.1 copies)
 *
 * Other filters use the general kernel. A block computes a tile of 64 x 64 outputs (uint16_t: 32 x 64), with the row
 * sums in shared memory:
 *
 *     input rows, from memory       row sums, in shared memory      outputs
 *     +----------------------+      +----------------+
 *     | h h  . . . . . . h h | row  | h h h h h h h h | column
 *     | h h  . . . . . . h h | ---> | . . . . . . . . | ----->  o o o o o o o o
 *     | h h  . . . . . . h h |      | h h h h h h h h |
 *     +----------------------+      +----------------+
 *
 * This takes fw (64 + fh - 1) / 64 + fh multiply-adds per output. A thread computes 4 rows of outputs, so it reads a
 * row sum once for all 4. With one row per thread, shared memory was the bound.
 *
 * Sums: |row sum| <= sum|row| * 255 <= sum|q| * 255, because some |column| >= 1. So the rules of register-tiled for
 * float sums, int32 sums and halves are true for the row sums, too, and the bytes are the canonical ones.
 *
 * Limits: rank 1 (the filter factors it exactly, in integers). */
#include "kernels/shared/strip.cuh"

#include <math.h>

/* First the row, then the column. */
static __constant__ uint32_t taps[2 * FILTER_MAX];

static constexpr int step_rows = 2; /* rows of an iteration of the loop */

/* Blocks that the registers of a multiprocessor must hold. From 17 taps on, the sums alone fill the registers, and a
 * limit would spill them. */
template <typename Sum>
static __host__ __device__ constexpr int separable_blocks(int size)
{
    if (sizeof(Sum) == 8)
        return size == 3 ? 6 : size == 5 ? 5 : size == 7 ? 4 : size <= 11 ? 3 : 2;
    return size <= 7 ? 6 : size <= 13 ? 5 : size == 15 ? 4 : 1;
}

/* The largest number of rows of a strip. The blocks that run at one time cover the image's whole width and the height
 * of some strips. If their input and output fit into L2, no halo row comes from memory twice. Planes of uint8_t (more
 * of them fits) and large filters (a halo row costs more) need longer strips. */
static constexpr int separable_strip(int size, enum sample sample)
{
    return sample == SAMPLE_F32 ? (size <= 11 ? 16 : size <= 15 ? 32 : 128) : size == 3 ? 32 : size <= 15 ? 64 : 128;
}

/* Add a row's sums, multiplied by tap I of the column, to SUM, the sums before it, and write them to TO. */
template <typename Sum>
static __device__ __forceinline__ void add_column(Sum (&to)[columns], const Sum (&sum)[columns],
                                                  const Sum (&s)[columns], int i)
{
#pragma unroll
    for (int c = 0; c < columns; c++)
        to[c] = sum[c] + weight<tap_of<Sum>>(taps[FILTER_MAX + i]) * s[c];
}

template <typename T, typename Sum, int SIZE, bool QUICK>
static __global__ void __launch_bounds__(32 * strip_warps, separable_blocks<Sum>(SIZE))
    separable(const __grid_constant__ struct launch launch, const __grid_constant__ struct level level)
{
    using rows_ring = ring<T, SIZE / 2, step_rows>;
    constexpr int lead = lead_of(SIZE / 2), count = window_of<SIZE>;
    __shared__ __align__(16) unsigned char memory[strip_warps][rows_ring::bytes];
    const struct strip strip = find_strip(launch);
    if (strip.x >= launch.width)
        return;
    const int rows = strip.rows, x = strip.x + columns * (int)threadIdx.x, left = launch.width - x;
    rows_ring ring(launch, memory[threadIdx.y], strip.x, strip.y - SIZE / 2, rows + SIZE - 1);
    ring.start(launch);

    Sum sum[SIZE][columns] = {}, first[columns], done[columns];
#pragma unroll
    for (int c = 0; c < columns; c++)
        first[c] = sum_start<T, Sum, QUICK>(launch);
    const uint32_t begin = ring.window(lead);
    uint32_t from = begin;
    T *to = out_row<T>(launch, strip.y) + x;
    /* At row r of the strip's input, sum[i] belongs to output row r - i, and filter row i is over it. */
    int finished = -(SIZE - 1);
    auto take_step = [&](auto is_clear) {
        constexpr bool clear = decltype(is_clear)::value;
        ring.wait();
#pragma unroll
        for (int k = 0; k < step_rows; k++) {
            Sum v[count], s[columns] = {};
            read_window<T>(from + k * rows_ring::row_bytes, v);
            if (k == 0)
                ring.template load<clear>(launch);
#pragma unroll
            for (int j = 0; j < SIZE; j++)
#pragma unroll
                for (int c = 0; c < columns; c++)
                    s[c] += weight<tap_of<Sum>>(taps[j]) * v[lead + j + c];
            add_column<Sum>(done, sum[SIZE - 1], s, SIZE - 1);
            if ((unsigned)(finished + k) < (unsigned)rows) {
                store_sums<QUICK>(launch, level, to, clear ? columns : left, done);
                to = next_row(to, launch.out_row);
            }
#pragma unroll
            for (int i = SIZE - 2; i >= 0; i--)
                add_column<Sum>(sum[i + 1], i > 0 ? sum[i] : first, s, i);
        }
        from = ring.following(from, begin);
        finished += step_rows;
    };
    if (ring.clear && strip.y >= SIZE / 2)
#pragma unroll 1
        do
            take_step(known<true>());
        while (finished < rows);
    else
#pragma unroll 1
        do
            take_step(known<false>());
        while (finished < rows);
}

/* The general kernel. A tile has 64 columns, or 32 with sums of halves: then the row sums for a filter of 127 rows
 * still fit in 48 KB. */
template <typename Sum>
constexpr int general_width = 256 / (int)sizeof(Sum);
static constexpr int general_height = 64, general_rows = 4, general_threads_y = general_height / general_rows;

template <typename Sum>
constexpr int general_threads_x = general_width<Sum> / 4;

/* Bytes of row sums. */
template <typename Sum>
static constexpr size_t general_shared(int filter_height)
{
    return (size_t)(general_height + filter_height - 1) * general_width<Sum> * sizeof(Sum);
}
static_assert(general_shared<float>(FILTER_MAX) <= 48 * 1024 && general_shared<halves<float>>(FILTER_MAX) <= 48 * 1024,
              "what a block has without asking for more is 48 KB");

/* Row sums at columns x to x + 3 of the row FROM_Y. INSIDE: all columns that contribute are inside the image. */
template <typename T, typename Sum, bool INSIDE>
static __device__ __forceinline__ quad<Sum> sum_row(const struct launch &launch, int from_y, int x)
{
    quad<Sum> sum = {};
    if (from_y < 0)
        return sum;
    const int lead = lead_of(launch.anchor_x), left = x - launch.anchor_x;
    const T *const row = in_row<T>(launch, from_y);
    auto load = [&](int at) {
        return INSIDE ? read_quad(row + at).template unpack<Sum>() : load_quad<T, Sum>(launch, from_y, at);
    };
    quad<Sum> next = load(left - lead);
    auto add_four = [&](int j0, auto is_whole) {
        const quad<Sum> first = next;
        next = load(left + j0 + 4);
        const Sum v[8] = {first.v[0], first.v[1], first.v[2], first.v[3], next.v[0], next.v[1], next.v[2], next.v[3]};
#pragma unroll
        for (int u = 0; u < 4; u++) {
            if (!decltype(is_whole)::value && (j0 + u < 0 || j0 + u >= launch.filter_width))
                continue;
            const tap_of<Sum> tap = weight<tap_of<Sum>>(taps[j0 + u]);
#pragma unroll
            for (int c = 0; c < 4; c++)
                sum.v[c] += tap * v[u + c];
        }
    };
    int j0 = -lead;
    if (lead > 0) {
        add_four(j0, known<false>());
        j0 += 4;
    }
    for (; j0 + 4 <= launch.filter_width; j0 += 4)
        add_four(j0, known<true>());
    if (j0 < launch.filter_width)
        add_four(j0, known<false>());
    return sum;
}

template <typename T, typename Sum>
static __global__ void __launch_bounds__(general_threads_x<Sum> *general_threads_y)
    separable_general(const __grid_constant__ struct launch launch)
{
    constexpr int threads_x = general_threads_x<Sum>;
    extern __shared__ uint4 memory[];
    quad<Sum>(*const sums)[threads_x] = (quad<Sum>(*)[threads_x])memory;
    const int2 tile = block_tile(launch);
    const int tx = (int)threadIdx.x, ty = (int)threadIdx.y;
    const int x = tile.x * general_width<Sum> + 4 * tx, tile_y = tile.y * general_height;

    /* Reads may start up to 3 samples before the first window, and end up to 7 samples after the last one. */
    const int window_x = tile.x * general_width<Sum> - launch.anchor_x;
    const bool inside =
        window_x - 3 >= 0 && window_x + general_width<Sum> - 4 + launch.filter_width + 7 <= launch.width;
    for (int r = ty; r < general_height + launch.filter_height - 1; r += general_threads_y) {
        const int from_y = border_index(tile_y - launch.anchor_y + r, launch.height, launch.border);
        sums[r][tx] = inside ? sum_row<T, Sum, true>(launch, from_y, x) : sum_row<T, Sum, false>(launch, from_y, x);
    }
    __syncthreads();
    if (x >= launch.width)
        return;

    Sum sum[general_rows][4] = {};
    const int first = ty * general_rows;
    auto add_row = [&](int r, auto is_whole) {
        const quad<Sum> four = sums[first + r][tx];
#pragma unroll
        for (int k = 0; k < general_rows; k++) {
            if (!decltype(is_whole)::value && (r < k || r - k >= launch.filter_height))
                continue;
            const tap_of<Sum> tap = weight<tap_of<Sum>>(taps[FILTER_MAX + r - k]);
#pragma unroll
            for (int c = 0; c < 4; c++)
                sum[k][c] += tap * four.v[c];
        }
    };
    /* At row r, filter row r - k is over sum[k], if there is one. */
    int r = 0;
    for (; r < general_rows - 1; r++)
        add_row(r, known<false>());
#pragma unroll 4
    for (; r < launch.filter_height; r++)
        add_row(r, known<true>());
    for (; r < general_rows + launch.filter_height - 1; r++)
        add_row(r, known<false>());
#pragma unroll
    for (int k = 0; k < general_rows; k++)
        if (tile_y + first + k < launch.height)
            store_quad<T>(launch, tile_y + first + k, x, sum[k]);
}

/* The kernel for a square filter of SIZE taps, or NULL. */
template <typename T, typename Sum, int SIZE = sizeof(T) == 4 ? 31 : 15>
static walk_kernel *separable_of_size(int size, bool quick)
{
    if (size == SIZE)
        return quick ? separable<T, Sum, SIZE, may_be_quick<T, Sum>> : separable<T, Sum, SIZE, false>;
    if constexpr (SIZE > 3)
        return separable_of_size<T, Sum, SIZE - 2>(size, quick);
    else
        return NULL;
}

/* For planes of float, the column's taps are divided by D and the row's are not. In a filter of two passes, both
 * vectors have a divisor. */
extern "C" bool separable_prepare(struct plan *plan, struct device *device, struct error *error)
{
    const struct filter *filter = plan->filter;
    const double column_divisor = filter->two_pass ? (double)filter->pass_scale : filter->scale;
    uint32_t words[2 * FILTER_MAX] = {};
    for (int j = 0; j < filter->width; j++)
        words[j] = tap_word(plan, filter->row[j], ldexp(1, filter->row_shift));
    for (int i = 0; i < filter->height; i++)
        words[FILTER_MAX + i] = tap_word(plan, filter->column[i], column_divisor);
    return upload_words(device, taps, words, 2 * FILTER_MAX, error);
}

template <typename T, typename Sum>
static bool launch_separable(sum_types<T, Sum>, const struct plan *plan, struct device *device, const struct plane *in,
                             const struct plane *out, struct error *error)
{
    const struct level level = level_of(plan);
    walk_kernel *square =
        filter_is_centred_square(plan->filter) ? separable_of_size<T, Sum>(plan->filter->width, level.quick) : NULL;
    if (square)
        return launch_walk(square, level, separable_strip(plan->filter->width, plan->sample), 20 * plan->filter->width,
                           plan, device, in, out, error);
    struct layout layout = {general_width<Sum>, general_height, dim3(general_threads_x<Sum>, general_threads_y)};
    layout.shared = general_shared<Sum>(plan->filter->height);
    return launch_tiles(separable_general<T, Sum>, plan, device, in, out, layout, error);
}

extern "C" bool separable_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                 const struct plane *out, struct error *error)
{
    return with_types(plan, [&](auto types) { return launch_separable(types, plan, device, in, out, error); });
}
