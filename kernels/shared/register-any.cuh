/* SPDX-License-Identifier: MIT
 *
 * register-tiled for any filter. A warp computes 512 x 4 outputs. Each of its lanes has the sums of four quads of four
 * rows, 64 sums, in registers. It reads the input rows one after another, from a ring in shared memory:
 *
 *     row r of input, in shared memory                 outputs of a lane
 *     [....|iiii....|....|iiii....|....|...] x2        [oooo]   [oooo]   [oooo]   [oooo]  += taps of row r
 *          quad and next                               [oooo]   [oooo]   [oooo]   [oooo]  += taps of row r - 1
 *                                                      ...
 *
 * An iteration of the loop is for four columns of taps. It has 256 multiply-adds for 8 loads of samples and 16 taps,
 * and fits the instruction cache whatever the filter's size. The lane's next quad is 128 columns further, so that a
 * warp reads and writes side by side. At the ends of a tile some rows of taps do not exist, and at the end of a row
 * some columns. They are skipped and not padded, because 0 times a sample that is not finite is not 0. Sums by halves
 * take two registers: then a warp computes 256 x 4 outputs, and a lane has two quads of four rows.
 *
 * If there are few taps, they are operands in uniform registers, loaded from constant memory. Such multiply-adds read
 * only two registers. Many taps miss the cache of constant memory. They come through L1 to
 * registers instead: FAR. */
#ifndef GPUCONV_REGISTER_ANY_CUH
#define GPUCONV_REGISTER_ANY_CUH

#include "kernels/shared/strip.cuh"

static constexpr int any_rows = 4; /* outputs of a lane: rows, and quads in each */
template <typename Sum>
constexpr int any_quads = 16 / (int)sizeof(Sum); /* 4, and 2 of halves */
template <typename Sum>
constexpr int any_width = any_quads<Sum> *strip_width;
static constexpr int any_slots = 3; /* rows of a ring: the work on a row takes long, so one row on its way is enough */

/* Warps of a block, one above the other. With FAR there are four, and they read the same taps and rows through L1 soon
 * after one another. Without it there is one. Then the compiler sees that all lanes of a block are in the same row, and
 * loads taps once for all. */
template <bool FAR>
constexpr int any_warps = FAR ? 4 : 1;

/* Samples of a row: the last lane's last quad reads up to 3 beyond its window. */
template <typename Sum>
constexpr int any_samples = round_up(any_width<Sum> + FILTER_MAX - 1 + 3, 4);

/* The table of taps, in quads: the first quads of all rows, then the second ones, and so on. Up to 3 quads on either
 * side of it are read and not used. */
static constexpr int any_slack = any_rows - 1;
static constexpr int any_quads_max = (FILTER_MAX + 3) / 4 * FILTER_MAX + 2 * any_slack;
static constexpr int any_near = 96; /* quads in constant memory: 17 x 17 is faster there, 19 x 19 is not */

static __constant__ uint4 near_taps[any_near];

template <typename Sum>
static __device__ __forceinline__ void weights(Sum *to, const uint4 &words)
{
    to[0] = weight<Sum>(words.x);
    to[1] = weight<Sum>(words.y);
    to[2] = weight<Sum>(words.z);
    to[3] = weight<Sum>(words.w);
}

/* Four samples of a row in shared memory, in the type of the sums. Samples by halves have two rows, one after the
 * other. */
template <typename Sum>
static __device__ __forceinline__ void read_four(Sum *to, uint32_t from)
{
    if constexpr (sizeof(Sum) == 4) {
        weights(to, read_shared16(from));
    } else {
        tap_of<Sum> high[4], low[4];
        weights(high, read_shared16(from));
        weights(low, read_shared16(from + 4 * any_samples<Sum>));
#pragma unroll
        for (int c = 0; c < 4; c++)
            to[c] = Sum(high[c], low[c]);
    }
}

/* Unpack a sample to element K of this row. */
template <typename Sum, typename T>
static __device__ __forceinline__ void unpack_to(uint32_t *row, int k, T sample)
{
    Sum value;
    if constexpr (sizeof(T) == 1)
        value = byte_as<Sum>(sample, 0);
    else
        value = word_as<Sum>(sample, 0);
    memcpy(&row[k], &value, 4);
    if (sizeof(Sum) == 8)
        memcpy(&row[any_samples<Sum> + k], (const char *)&value + sizeof value / 2, 4);
}

/* Add the next STEP taps, from quad AT of the table on, of the filter rows that are over input row R. If ALL, every row
 * of outputs has such a filter row. */
template <typename Sum, int STEP, bool ALL, bool FAR>
static __device__ __forceinline__ void add_taps(Sum (&sum)[any_rows][any_quads<Sum>][4], uint32_t from,
                                                const uint4 *table, int at, int r, int height)
{
    constexpr int count = round_up(4 + STEP - 1, 4), quads = any_quads<Sum>;
    tap_of<Sum> tap[any_rows][4];
    Sum v[quads][count];
    auto read = [&](int q) {
#pragma unroll
        for (int k = 0; k < count; k += 4)
            read_four(&v[q][k], from + 4 * (strip_width * q + k));
    };
    auto add = [&](int k, int q, int j) {
#pragma unroll
        for (int c = 0; c < 4; c++)
            sum[k][q][c] += tap[k][j] * v[q][j + c];
    };
    /* Either all taps or all samples are in registers. The others are read one by one. */
    if (FAR) {
#pragma unroll
        for (int k = 0; k < any_rows; k++)
            weights(tap[k], __ldg(table + at - k));
#pragma unroll
        for (int q = 0; q < quads; q++) {
            read(q);
#pragma unroll
            for (int k = 0; k < any_rows; k++)
                if (ALL || (unsigned)(r - k) < (unsigned)height)
#pragma unroll
                    for (int j = 0; j < STEP; j++)
                        add(k, q, j);
        }
    } else {
#pragma unroll
        for (int q = 0; q < quads; q++)
            read(q);
#pragma unroll
        for (int k = 0; k < any_rows; k++) {
            weights(tap[k], near_taps[at - k]);
            if (ALL || (unsigned)(r - k) < (unsigned)height)
#pragma unroll
                for (int j = 0; j < STEP; j++)
#pragma unroll
                    for (int q = 0; q < quads; q++)
                        add(k, q, j);
        }
    }
}

template <typename Sum, bool ALL, bool FAR>
static __device__ __forceinline__ void add_row(Sum (&sum)[any_rows][any_quads<Sum>][4], uint32_t from,
                                               const uint4 *table, int width, int r, int height)
{
    int left = width, at = any_slack + r;
#pragma unroll 1
    for (; left >= 4; left -= 4) {
        add_taps<Sum, 4, ALL, FAR>(sum, from, table, at, r, height);
        from += 4 * 4;
        at += height;
    }
    if (left == 1)
        add_taps<Sum, 1, ALL, FAR>(sum, from, table, at, r, height);
    else if (left == 2)
        add_taps<Sum, 2, ALL, FAR>(sum, from, table, at, r, height);
    else if (left == 3)
        add_taps<Sum, 3, ALL, FAR>(sum, from, table, at, r, height);
}

template <typename T, typename Sum, bool FAR>
static __global__ void __launch_bounds__(32 * any_warps<FAR>, 16 / any_warps<FAR>) /* 128 registers */
    register_tiled_any(const __grid_constant__ struct launch launch, const uint4 *table)
{
    constexpr bool packed = sizeof(T) < 4;
    constexpr int quads = any_quads<Sum>, row_width = any_width<Sum>, samples_max = any_samples<Sum>;
    constexpr int word = 4 / (int)sizeof(T); /* samples of 4 bytes, the unit of the ring */
    constexpr int all_words = row_width / word, max_words = (samples_max + word - 1 + word - 1) / word;
    constexpr int row_bytes = round_up(4 * max_words, 16);
    __shared__ __align__(16) unsigned char all_memory[any_warps<FAR>][any_slots][row_bytes];
    __shared__ __align__(16) uint32_t all_unpacked[any_warps<FAR>][packed ? samples_max * (int)sizeof(Sum) / 4 : 1];
    const int width = launch.filter_width, height = launch.filter_height, lane = (int)threadIdx.x;
    const int2 tile = block_tile(launch);
    const int strip_x = tile.x * row_width;
    const int warp = FAR ? __shfl_sync(~0u, (int)threadIdx.y, 0) : 0;
    const int y = (tile.y * any_warps<FAR> + warp) * any_rows;
    if (FAR && y >= launch.height)
        return;
    unsigned char *memory = all_memory[warp][0];
    uint32_t *unpacked = all_unpacked[warp]; /* a row of samples as Sum */

    /* The first column of the rows, and that of the ring's rows. Whole words of memory fill the ring's rows. */
    const int first_x = strip_x - launch.anchor_x, x = first_x & -word;
    const int words = (first_x - x + row_width + width - 1 + word - 1) / word;
    const bool inside = x >= 0 && x + words * word <= launch.width;
    const int rows = min(any_rows, launch.height - y) + height - 1;
    const uint32_t begin = shared_address(memory);
    uint32_t to = begin, from = begin;
    int next = 0;
    auto load = [&]() {
        if (next < rows) {
            const int from_y = y - launch.anchor_y + next;
            if (inside && (unsigned)from_y < (unsigned)launch.height) {
                const unsigned char *row = (const unsigned char *)(in_row<T>(launch, from_y) + x) + 4 * lane;
#pragma unroll
                for (int k = 0; k < max_words; k += 32)
                    if (k + 32 <= all_words || lane < words - k)
                        copy_start<4, false>(to + 4 * (k + lane), row + 4 * k);
            } else {
                load_border_row<T>(launch.in + blockIdx.z * launch.in_plane, launch.in_row, launch.width, launch.height,
                                   launch.border, from_y, x, to, words);
            }
            next++;
            to = to == begin + (any_slots - 1) * row_bytes ? begin : to + row_bytes;
        }
        copy_commit();
    };
#pragma unroll 1
    for (int k = 0; k < any_slots - 1; k++)
        load();

    Sum sum[any_rows][quads][4] = {};
#pragma unroll 1
    for (int r = 0; r < rows; r++) {
        copy_wait<any_slots - 2>();
        load();
        uint32_t row = from;
        if constexpr (packed) {
            const T *samples = (const T *)(memory + (from - begin)) + (first_x - x);
#pragma unroll 4
            for (int k = lane; k < row_width + width - 1; k += 32)
                unpack_to<Sum>(unpacked, k, samples[k]);
            __syncwarp();
            row = shared_address(unpacked);
        }
        row += 16 * lane;
        if (r >= any_rows - 1 && r < height)
            add_row<Sum, true, FAR>(sum, row, table, width, r, height);
        else
            add_row<Sum, false, FAR>(sum, row, table, width, r, height);
        from = from == begin + (any_slots - 1) * row_bytes ? begin : from + row_bytes;
    }

#pragma unroll
    for (int k = 0; k < any_rows; k++)
        if (y + k < launch.height)
#pragma unroll
            for (int q = 0; q < quads; q++)
                store_quad<T>(launch, y + k, strip_x + strip_width * q + columns * lane, sum[k][q]);
}

#endif
