/* SPDX-License-Identifier: MIT
 *
 * A walk down a strip of rows with all sums in registers, shared by register-tiled and separable. They differ in what
 * one input row adds to the sums of the outputs it belongs to.
 *
 *     columns of one thread      Each row is loaded once, in quads of 4 samples (16 bytes of float, 4 of uint8_t), and
 *     [....][iiii][....]         is added at once to every output it belongs to: 4 columns times SIZE rows, whose sums
 *     [....][iiii][....]  row r  are in registers. When the last row under an output has gone by, the output is stored,
 *     [....][oooo][....]         and the sums move up one place.
 *     [....][oooo][....]
 *
 * Unrolling all rows of a strip would save moving the sums, and was slower by 10 to 20%: 41 KB of instructions for 9 x
 * 9 miss the instruction cache. Two rows a turn of the loop are 12 KB, and moving the sums by two places costs about 30
 * instructions beside 648 multiply-adds. */
#ifndef GPUCONV_STRIP_CUH
#define GPUCONV_STRIP_CUH

#include "conv.cuh"

#include <string.h>

static constexpr int columns = 4;                   /* outputs of a thread side by side */
static constexpr int threads_x = 32, threads_y = 4; /* of a block */
static constexpr int tile_width = threads_x * columns;

/* Samples that stand before the window so that it starts at a multiple of 4. */
static __host__ __device__ constexpr int lead_of(int anchor_x)
{
    return (4 - anchor_x % 4) % 4;
}

/* Samples of a row that a thread loads for a square filter of SIZE taps. */
template <int SIZE>
constexpr int window_of = (lead_of(SIZE / 2) + SIZE + columns - 1 + 3) / 4 * 4;

/* The window of samples of a row, as memory holds it while it is under way, and unpacked. */
template <typename T, typename Sum, int COUNT>
struct window {
    raw_quad<T> raw[COUNT / 4];

    __device__ __forceinline__ void fetch(const T *from)
    {
#pragma unroll
        for (int k = 0; k < COUNT / 4; k++)
            raw[k] = read_quad(from + 4 * k);
    }

    __device__ __forceinline__ void unpack(Sum (&v)[COUNT]) const
    {
#pragma unroll
        for (int k = 0; k < COUNT / 4; k++) {
            const quad<Sum> four = raw[k].template unpack<Sum>();
#pragma unroll
            for (int c = 0; c < 4; c++)
                v[4 * k + c] = four.v[c];
        }
    }
};

/* The same from row Y and column X on, where some of it may be outside the image. */
template <typename T, typename Sum, int COUNT>
static __device__ __forceinline__ void load_window(const struct job &job, int y, int x, Sum (&v)[COUNT])
{
    const int from_y = border_index(y, job.height, job.border);
#pragma unroll
    for (int k = 0; k < COUNT; k += 4) {
        const quad<Sum> four = load_quad<T, Sum>(job, from_y, x + k);
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[k + c] = four.v[c];
    }
}

/* Walk down a strip of ROWS rows whose first output is at (y, x), for a square filter of SIZE taps with its anchor in
 * the centre. Row is constructed from a window of samples that starts at the filter's left column, and row.add(sum, i)
 * adds to 4 sums what filter row i makes of it. GUARDED: some of the window may be outside the image. If not, the next
 * two rows are fetched while these two are worked on; without that, a third of all stalls waited for loads. */
template <typename T, typename Sum, int SIZE, typename Row, bool GUARDED>
static __device__ __forceinline__ void walk_rows(const struct job &job, int y, int x, int rows)
{
    constexpr int lead = lead_of(SIZE / 2), count = window_of<SIZE>;
    const int left = x - SIZE / 2 - lead, last = rows + SIZE - 2;
    const T *from = GUARDED ? NULL : in_row<T>(job, y - SIZE / 2) + left;
    const size_t step = job.in_row / sizeof(T);
    window<T, Sum, count> next[2];
    if (!GUARDED) {
        next[0].fetch(from);
        next[1].fetch(from + step);
    }

    /* At row r of the strip's input, sum[i] belongs to output row r - i, which has filter row i over it. */
    Sum sum[SIZE][columns] = {};
#pragma unroll 1
    for (int r = 0; r <= last; r += 2) {
        Sum v[count], fresh[columns] = {};
        const bool more = r + 2 <= last;
        if (GUARDED) {
            load_window<T, Sum>(job, y - SIZE / 2 + r, left, v);
        } else {
            next[0].unpack(v);
            if (more)
                next[0].fetch(from += 2 * step);
        }
        const Row upper(v + lead);
#pragma unroll
        for (int i = 0; i < SIZE; i++)
            upper.add(sum[i], i);
        /* One row down, what was under filter row i - 1 is under filter row i. */
        if (GUARDED) {
            load_window<T, Sum>(job, y - SIZE / 2 + r + 1, left, v);
        } else {
            next[1].unpack(v);
            if (more)
                next[1].fetch(from + step);
        }
        const Row lower(v + lead);
        lower.add(fresh, 0);
#pragma unroll
        for (int i = 1; i < SIZE; i++)
            lower.add(sum[i - 1], i);
        const int finished = r - (SIZE - 1);
        if (finished >= 0)
            store_quad<GUARDED>(job, y + finished, x, sum[SIZE - 1], (T *)0);
        if (finished + 1 >= 0 && (!GUARDED || finished + 1 < rows))
            store_quad<GUARDED>(job, y + finished + 1, x, sum[SIZE - 2], (T *)0);
#pragma unroll
        for (int i = SIZE - 1; i > 0; i--)
#pragma unroll
            for (int c = 0; c < columns; c++)
                sum[i][c] = i > 1 ? sum[i - 2][c] : fresh[c];
#pragma unroll
        for (int c = 0; c < columns; c++)
            sum[0][c] = 0;
    }
}

/* Walk down the thread's strip; the whole block decides whether it touches an edge. */
template <typename T, typename Sum, int SIZE, typename Row>
static __device__ __forceinline__ void walk_strip(const struct job &job)
{
    constexpr int reach = SIZE / 2 + 3; /* columns that a window extends beyond its outputs, at most */
    const int2 tile = block_tile(job);
    const int tile_x = tile.x * tile_width, tile_y = tile.y * threads_y * job.strip;
    const int x = tile_x + (int)threadIdx.x * columns, y = tile_y + (int)threadIdx.y * job.strip;
    if (tile_x >= reach && tile_x + tile_width + reach <= job.width && tile_y >= SIZE / 2 &&
        tile_y + threads_y * job.strip + SIZE / 2 <= job.height)
        walk_rows<T, Sum, SIZE, Row, false>(job, y, x, job.strip);
    else if (x < job.width && y < job.height)
        walk_rows<T, Sum, SIZE, Row, true>(job, y, x, min(job.strip, job.height - y));
}

/* Rows of a strip: LONGEST or fewer. Long strips load fewer halo rows; short ones make enough threads to fill the GPU:
 * at least 40 warps a multiprocessor, twice what it holds at 96 registers a thread. */
static inline int strip_rows(int longest, const struct device *device, const struct plane *in)
{
    const int64_t threads = (int64_t)device_facts(device)->multiprocessors * 40 * 32;
    const int64_t threads_a_row = (int64_t)(in->width + columns - 1) / columns * in->count;
    int rows = 128;
    while (rows > 8 && (rows / 2 >= longest || threads_a_row * (in->height / rows) < threads))
        rows /= 2;
    return rows;
}

/* A tap as what sums are made of: q for planes of uint8_t, q / DIVISOR for planes of float. */
static inline uint32_t tap_word(const struct plan *plan, int32_t q, int32_t divisor)
{
    if (plan->sample == SAMPLE_U8 && !plan->float_exact)
        return (uint32_t)q;
    const float tap = (float)(plan->sample == SAMPLE_U8 ? q : (double)q / divisor);
    uint32_t word;
    memcpy(&word, &tap, sizeof word);
    return word;
}

/* Is it a square filter with its anchor in the centre, which walk_strip asks for? */
static inline bool is_centred_square(const struct filter *filter)
{
    return filter->width == filter->height && filter->width % 2 == 1 && filter->anchor_x == filter->width / 2 &&
           filter->anchor_y == filter->height / 2;
}

/* Launch a kernel that is a walk_strip, in strips of about LONGEST rows where the image is large. */
static inline bool launch_walk(void (*kernel)(struct job), int longest, const struct plan *plan, struct device *device,
                               const struct plane *in, const struct plane *out, struct error *error)
{
    const int strip = strip_rows(longest, device, in);
    return launch_tiles(kernel, plan, device, in, out,
                        {tile_width, threads_y * strip, dim3(threads_x, threads_y), strip}, error);
}

#endif
