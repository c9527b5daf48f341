/* SPDX-License-Identifier: MIT
 *
 * The kernel of tensor-core for filters of rank 1, taps = column x row, of up to 33 taps a side (compute capability 8.0
 * and later): both passes are products with band matrices, and the sums between them never leave the registers.
 *
 * A warp walks down a strip of 64 columns, 32 rows at a time. For 16 outputs that are side by side, and for 8 rows:
 *
 *     row taps            samples             row sums
 *     [a b c . . . ]      [16 to 48 bytes     [16 columns    two such, of 8 rows each, are bytes of
 *     [. a b c . . ]   x   of 8 rows, as   =   of 8 rows]    16 rows once they are cut and packed:
 *     [. . a b c . ]       they lie in
 *         ...              shared memory]     lane (g, t) has rows 2 t, 2 t + 1 of columns g and g + 8
 *
 *     column taps         bytes of row sums   sums
 *     [d . e f . . ]      [16 to 48 rows      [16 rows of     a product for each byte of the row sums,
 *     [. d . e f . ]   x   of 8 columns]   =   8 columns]     from the highest on, times 256 in between
 *         ...
 *
 * A lane's part of the first product is also its part of an operand of the second: its rows 2 t, 2 t + 1, 8 + 2 t and 9
 * + 2 t are the four bytes of a word. The operand should have rows 4 t to 4 t + 3 there. But the terms of a sum may
 * have any order, and the matrix of column taps has its columns in the same order. The rows of the matrix of row taps
 * may have any order, too. They are ordered so that in the end the four sums of a lane in a row of outputs are side by
 * side.
 *
 * Exactness: row sums, plus a constant that makes them start at 0, are cut into 2 or 3 bytes, as many as sum|row| * 255
 * needs. The sums start lower by the constant's share. Taps outside -128 to 127 (or 0 to 255) are cut too, q = q0 + 256
 * q1. Products of one weight share their sums, which may wrap; the whole, modulo 2^32, does not.
 *
 * 31 x 31 with row sums of two bytes: 48 + 2 * 48 multiply-adds an output instead of 961, or of 1632 in
 * tensor-wide.cuh. For 32 rows of 64 outputs, a warp has 6 reads of 4 matrices, 96 products, 64 instructions that pack
 * row sums, 64 that add up bytes, 96 that round, 12 that store: about 6 an output and lane. Loads: each sample once
 * from memory, except for the halo of a tile, 32 columns for 256 and 30 rows for a strip of 736. Rows on their way are
 * in a ring in shared memory that a block's warps fill together, and outputs go through shared memory too, so that
 * whole lines are stored.
 *
 * Limits: up to 33 taps a side, and a window that fits (see tensor_arrange_passes); taps of 16 bits; row sums of 24
 * bits. */
#ifndef GPUCONV_TENSOR_PASSES_CUH
#define GPUCONV_TENSOR_PASSES_CUH

#include "kernels/tensor-core/tensor.cuh"

static constexpr int pass_chunks = 4; /* of a warp, side by side */
static constexpr int pass_width = pass_chunks * pass_chunk;
static constexpr int pass_warps = 4; /* of a block, side by side: they share the ring */
static constexpr int pass_columns = pass_warps * pass_width;
static constexpr int pass_rows = 2 * pass_chunk; /* of a stage */
static constexpr int pass_stages = 3;            /* of the ring, one of them being worked on */
static constexpr int pass_strip = 24;            /* stages of a strip, at most; by measurement, as are the next two */
static constexpr int pass_short = 6;             /* stages of a strip of those that come last */
static constexpr double pass_share = 0.3;        /* of the rows, in such strips */
static constexpr int pass_staging = pass_columns + 16; /* bytes of a row of outputs on their way, 8 in all banks */

/* A window is BLOCKS times 16 samples, or rows; a lane has two words of each matrix of 16 x 16 taps. */
static __host__ __device__ constexpr int pass_words(int blocks)
{
    return blocks == 2 ? 4 : 10;
}

/* Bytes of a row in the ring, and the distance between rows: 8 rows are in all banks. */
static __host__ __device__ constexpr int pass_row(int blocks)
{
    return pass_columns + 16 * (blocks - 1);
}

static __host__ __device__ constexpr int pass_pitch(int blocks)
{
    return pass_row(blocks) + (pass_row(blocks) / 16 % 2 ? 0 : 16);
}

static __host__ __device__ constexpr int pass_shared(int blocks)
{
    return pass_stages * pass_rows * pass_pitch(blocks) + 2 * pass_rows * pass_staging;
}

/* Blocks whose registers a multiprocessor must hold. With one more, products wait for each other. */
static __host__ __device__ constexpr int pass_resident(int planes, int parts)
{
    return planes == 2 || parts == 1 ? 3 : 2;
}

/* The same as load_column, if some rows are outside the image. Not inlined, and called with values instead of the
 * launch: few tiles need it, and the loop must stay in the instruction cache. */
template <int BYTES>
static __device__ __noinline__ void load_border_column(const uint8_t *plane, size_t row_bytes, int height,
                                                       enum border border, int y, int rows, uint32_t to, int pitch)
{
#pragma unroll 1
    for (int k = 0; k < rows; k++) {
        const int from_y = border_index(y + k, height, border);
        if (from_y >= 0)
            copy_start<BYTES, true>(to + k * pitch, plane + from_y * row_bytes);
        else
            for (int byte = 0; byte < BYTES; byte += 4)
                write_shared(to + k * pitch + byte, 0);
    }
}

#if __CUDA_ARCH__ >= 800
/* D = A B + C. A is taps, 16 rows of 32 or 16 bytes: a[0] and a[1] are 16 bytes of rows g and g + 8, a[2] and a[3]
 * another 16. B is samples or bytes of row sums: b[0] is 16 bytes of column g, b[1] another 16. */
template <bool UNSIGNED>
static __device__ __forceinline__ void pass_multiply32(matrix &d, const uint32_t *a, const uint32_t *b, const matrix &c)
{
    if (UNSIGNED)
        asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%10,%11,%12,%13};"
            : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]),
              "r"(c.v[3]));
    else
        asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
            "{%10,%11,%12,%13};"
            : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]),
              "r"(c.v[3]));
}

template <bool UNSIGNED>
static __device__ __forceinline__ void pass_multiply16(matrix &d, const uint32_t *a, uint32_t b, const matrix &c)
{
    if (UNSIGNED)
        asm("mma.sync.aligned.m16n8k16.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
            : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
            : "r"(a[0]), "r"(a[1]), "r"(b), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"
            : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])
            : "r"(a[0]), "r"(a[1]), "r"(b), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]));
}

/* The reverse of read_matrices: write four matrices to rows of the staging from TO on. */
static __device__ __forceinline__ void write_matrices(uint32_t to, const uint32_t (&word)[4], int lane)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to + lane * pass_staging),
                 "r"(word[0]), "r"(word[1]), "r"(word[2]), "r"(word[3])
                 : "memory");
#else
#pragma unroll
    for (int k = 0; k < 4; k++)
        write_shared(to + (8 * k + lane / 4) * pass_staging + lane % 4 * 4, word[k]);
#endif
}

/* Store sixteen samples. Only the first LEFT are inside the image. */
static __device__ __noinline__ void store_guarded16(uint8_t *to, uint4 four, int left)
{
    if (left >= 16) {
        *(uint4 *)to = four;
        return;
    }
    const uint32_t word[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
    for (int k = 0; k < 16; k++)
        if (k < left)
            to[k] = (uint8_t)(word[k / 4] >> 8 * (k % 4));
}

/* A band matrix of PARTS parts, and its product with a window. A window starts at an even block of 16 or at an odd one.
 * Blocks are in registers in pairs, as products over 32 bytes need them. So an even window of three blocks is a pair
 * and half of the next pair; an odd one is half of a pair and the next pair. A window of two blocks is a pair, or
 * halves of two pairs. */
template <int BLOCKS, int PARTS, bool UNSIGNED>
struct band {
    uint32_t word[PARTS][pass_words(BLOCKS)];

    __device__ __forceinline__ void load(const uint32_t *table, int lane)
    {
#pragma unroll
        for (int p = 0; p < PARTS; p++)
#pragma unroll
            for (int k = 0; k < pass_words(BLOCKS); k++)
                word[p][k] = __ldg(table + (p * pass_words(BLOCKS) + k) * 32 + lane);
    }

    /* Add part P times the window that starts in the pair FIRST, in its upper half if ODD. */
    template <bool ODD>
    __device__ __forceinline__ void multiply(matrix &d, int p, const uint32_t *first, const uint32_t *second,
                                             const matrix &c) const
    {
        if (!ODD) {
            pass_multiply32<UNSIGNED>(d, word[p], first, c);
            if constexpr (BLOCKS == 3)
                pass_multiply16<UNSIGNED>(d, word[p] + 8, second[0], d);
        } else {
            pass_multiply16<UNSIGNED>(d, word[p], first[1], c);
            if constexpr (BLOCKS == 3)
                pass_multiply32<UNSIGNED>(d, word[p] + 4, second, d);
            else
                pass_multiply16<UNSIGNED>(d, word[p] + 2, second[0], d);
        }
    }
};
#endif

/* Find a tile: first come those of tensor.strip rows, in all planes, then those of tensor.short_strip rows below
 * them. */
static __device__ __forceinline__ struct tile find_pass_tile(const struct tensor_launch &tensor, int index)
{
    const struct launch &launch = tensor.launch;
    const int down = index / tensor.columns, longer = tensor.tiles_y * tensor.planes;
    const bool is_long = down < longer;
    const int at = is_long ? down : down - longer, of = is_long ? tensor.tiles_y : tensor.short_y;
    const int plane = at / of, strip = is_long ? tensor.strip : tensor.short_strip;
    struct tile tile;
    tile.x = (index - down * tensor.columns) * pass_columns;
    tile.y = (at - plane * of) * strip + (is_long ? 0 : tensor.tiles_y * tensor.strip);
    tile.rows = min(strip, launch.height - tile.y);
    tile.in = launch.in + plane * launch.in_plane;
    tile.out = launch.out + plane * launch.out_plane;
    return tile;
}

template <int BLOCKS, int PLANES, int PARTS, bool UNSIGNED, int FINISH>
static __global__ void __launch_bounds__(32 * pass_warps, pass_resident(PLANES, PARTS))
    tensor_passes(const __grid_constant__ struct tensor_launch tensor)
{
#if __CUDA_ARCH__ >= 800
    constexpr int threads = 32 * pass_warps, pitch = pass_pitch(BLOCKS), stage_bytes = pass_rows * pitch;
    constexpr int before = 16 * (BLOCKS - 1); /* rows of sums that a stage of samples is ahead of one of outputs */
    extern __shared__ uint4 ring[];
    const struct launch &launch = tensor.launch;
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, thread / 32, 0); /* so that the compiler sees that it is one for a warp */
    const struct tile tile = find_pass_tile(tensor, (int)blockIdx.x);
    const uint32_t stages = shared_address(ring), end = stages + pass_stages * stage_bytes;
    const int input_rows = tile.rows + launch.filter_height - 1;

    /* A thread copies a column of units from each stage; the first threads also copy the units beyond the tile's width.
     */
    constexpr int unit = pass_copy(BLOCKS), across = pass_columns / unit, down = threads / across;
    constexpr int rest = (pass_row(BLOCKS) - pass_columns) / unit;
    static_assert(threads % across == 0 && pass_rows % down == 0 && rest * pass_rows <= threads, "rounds are whole");
    const int load_x = tile.x - tensor.lead;
    const struct edges edges = find_edges(load_x, pass_row(BLOCKS) / 4, launch.filter_width, launch.width);
    const int my_row = thread / across * (pass_rows / down), my_byte = thread % across * unit;
    const bool loads = my_byte / 4 >= edges.first && my_byte / 4 < edges.last;
    const int rest_row = thread / rest, rest_byte = (across + thread % rest) * unit;
    const bool loads_rest = rest_row < pass_rows && rest_byte / 4 >= edges.first && rest_byte / 4 < edges.last;
    const bool edged = edges.first > 0 || edges.last < edges.words || load_x + pass_row(BLOCKS) > launch.width;
    const uint32_t my_to = my_row * pitch + my_byte, rest_to = rest_row * pitch + rest_byte;
    const uint8_t *my_from =
        tile.in + (tile.y - launch.anchor_y + my_row) * (ptrdiff_t)launch.in_row + load_x + my_byte;
    const uint8_t *rest_from =
        tile.in + (tile.y - launch.anchor_y + rest_row) * (ptrdiff_t)launch.in_row + load_x + rest_byte;
    int load_row = 0;
    uint32_t load_to = stages;
    auto load_stage = [&]() {
        if (load_row < input_rows) {
            const int y = tile.y - launch.anchor_y + load_row;
            if (!edged && y >= 0 && y + pass_rows <= launch.height) {
                const uint8_t *from = my_from;
#pragma unroll
                for (int k = 0; k < pass_rows / down; k++) {
                    copy_start<unit, true>(load_to + my_to + k * pitch, from);
                    from += launch.in_row;
                }
                if (rest_row < pass_rows)
                    copy_start<unit, true>(load_to + rest_to, rest_from);
            } else {
                if (loads)
                    load_border_column<unit>(tile.in + load_x + my_byte, launch.in_row, launch.height, launch.border,
                                             y + my_row, pass_rows / down, load_to + my_to, pitch);
                if (loads_rest)
                    load_border_column<unit>(tile.in + load_x + rest_byte, launch.in_row, launch.height, launch.border,
                                             y + rest_row, 1, load_to + rest_to, pitch);
                gather_edges(launch, tile.in, edges, y, pass_rows, load_x, load_to, pitch, thread, threads);
            }
        }
        copy_commit();
        load_row += pass_rows;
        my_from += pass_rows * launch.in_row;
        rest_from += pass_rows * launch.in_row;
        load_to = load_to + stage_bytes == end ? stages : load_to + stage_bytes;
    };
#pragma unroll 1
    for (int s = 0; s < pass_stages - 1; s++)
        load_stage();

    band<BLOCKS, PARTS, UNSIGNED> row_taps, column_taps;
    row_taps.load(tensor.table, lane);
    column_taps.load(tensor.table + PARTS * pass_words(BLOCKS) * 32, lane);
    /* Loaded from memory, so that the compiler keeps it in four registers (see tensor_walk). */
    matrix start, zero;
#pragma unroll
    for (int k = 0; k < 4; k++) {
        start.v[k] = (int)__ldg(tensor.table + 2 * PARTS * pass_words(BLOCKS) * 32 + k);
        zero.v[k] = 0;
    }
    /* Loaded from memory, so that it stays a multiplication. The pipe for shifts is busy with packing and, for
     * PASS_SHIFT, with shifts of the sums. The pipe for multiplications is idle. */
    const int base =
        FINISH == PASS_SHIFT && PARTS == 1 ? (int)__ldg(tensor.table + 2 * PARTS * pass_words(BLOCKS) * 32 + 4) : 256;

    /* The bytes of the row sums of 32 rows: those of columns 0 to 7 of a chunk, then 8 to 15 (of its matrix); for each
     * plane the upper 16 rows, then the lower. */
    typedef uint32_t window[pass_chunks][2][PLANES][2];
    window windows[2];
#pragma unroll
    for (int c = 0; c < pass_chunks; c++)
#pragma unroll
        for (int k = 0; k < 4 * PLANES; k++)
            windows[0][c][k / (2 * PLANES)][k / 2 % PLANES][k % 2] = 0;

    const uint32_t staging = end + warp * pass_width;
    constexpr int line = pass_columns / 16; /* threads of a row */
    constexpr int turn_rows = threads / line;
    const int my_line = thread / line;
    const uint32_t staged = end + my_line * pass_staging + thread % line * 16;
    const int column = tile.x + thread % line * 16, left = launch.width - column;
    uint32_t flip = 0;
    const bool full = tile.x + pass_columns <= launch.width;
    uint8_t *to = tile.out + (tile.y - before + my_line) * (ptrdiff_t)launch.out_row + column;
    const uint32_t lane_pair = warp * pass_width + (lane / 16 * 8 + lane % 8) * pitch + lane / 8 % 2 * 16;
    const uint32_t lane_single = warp * pass_width + lane * pitch;
    uint32_t from = stages;
    int r = -before; /* the first row of outputs that this stage makes */

    /* Outputs wait in one of two sets of rows until the next stage has begun. Then those of all warps are there, and
     * whole lines are stored. */
    auto store_lines = [&]() {
        const int q = r - pass_rows; /* the first row of that stage */
        const uint32_t last = staged + (flip ^ pass_rows * pass_staging);
        if (full && q >= 0 && q + pass_rows <= tile.rows) {
#pragma unroll
            for (int k = 0; k < pass_rows; k += turn_rows)
                *(uint4 *)(to + k * launch.out_row) = read_shared16(last + k * pass_staging);
        } else if (left > 0) {
#pragma unroll 1
            for (int k = 0; k < pass_rows; k += turn_rows)
                if ((unsigned)(q + my_line + k) < (unsigned)tile.rows)
                    store_guarded16(to + k * launch.out_row, read_shared16(last + k * pass_staging), left);
        }
        to += pass_rows * launch.out_row;
    };
    auto work_on_stage = [&](const window &old, window &now) {
        copy_wait<pass_stages - 2>();
        __syncthreads();
        load_stage();
        if (r > -before)
            store_lines();
        uint32_t samples[3][4][2]; /* pairs of blocks, 8 rows at a time */
        auto read_pair = [&](int q) {
            if (BLOCKS == 2 && q == pass_chunks / 2) { /* of the last only the first half is looked at */
                uint32_t word[4];
                read_matrices(word, from + lane_single + 32 * q);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    samples[q % 3][k][0] = word[k], samples[q % 3][k][1] = 0;
                return;
            }
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
                uint32_t word[4];
                read_matrices(word, from + lane_pair + 32 * q + 8 * j * pitch);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    samples[q % 3][j + k / 2][k % 2] = word[k];
            }
        };
        read_pair(0);
        auto add_rows = [&](int c) {
            if (c % 2 == 0)
                read_pair(c / 2 + 1);
#pragma unroll
            for (int b = 0; b < 2; b++) {
                matrix sum[2];
#pragma unroll
                for (int p = 0; p < PARTS; p++)
#pragma unroll
                    for (int j = 0; j < 2; j++) {
                        const uint32_t *first = samples[c / 2 % 3][2 * b + j];
                        const uint32_t *second = samples[(c / 2 + 1) % 3][2 * b + j];
                        if (p > 0)
#pragma unroll
                            for (int k = 0; k < 4; k++)
                                sum[j].v[k] = sum[j].v[k] * base + start.v[k];
                        const matrix &before_it = p > 0 ? sum[j] : PARTS == 1 ? start : zero;
                        if (c % 2 == 0)
                            row_taps.template multiply<false>(sum[j], p, first, second, before_it);
                        else
                            row_taps.template multiply<true>(sum[j], p, first, second, before_it);
                    }
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    const uint32_t s[4] = {(uint32_t)sum[0].v[2 * h], (uint32_t)sum[0].v[2 * h + 1],
                                           (uint32_t)sum[1].v[2 * h], (uint32_t)sum[1].v[2 * h + 1]};
                    const uint32_t upper = __byte_perm(s[0], s[1], 0x5410), lower = __byte_perm(s[2], s[3], 0x5410);
                    now[c][h][0][b] = __byte_perm(upper, lower, 0x6420);
                    now[c][h][1][b] = __byte_perm(upper, lower, 0x7531);
                    if (PLANES == 3)
                        now[c][h][PLANES - 1][b] =
                            __byte_perm(__byte_perm(s[0], s[1], 0x0062), __byte_perm(s[2], s[3], 0x0062), 0x5410);
                }
            }
        };
        auto add_columns = [&](int c) {
            uint32_t words[4]; /* of rows g, g + 8, g + 16, g + 24 */
#pragma unroll
            for (int o = 0; o < 2; o++) {
                matrix sum[2];
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    constexpr int highest = PLANES + PARTS - 2;
                    bool begun = false;
#pragma unroll
                    for (int w = highest; w >= 0; w--) {
                        if (w < highest)
#pragma unroll
                            for (int k = 0; k < 4; k++)
                                sum[h].v[k] = sum[h].v[k] * base + (w == 0 ? tensor.first : 0);
#pragma unroll
                        for (int p = 0; p < PARTS; p++) { /* part p is the digit PARTS - 1 - p */
                            const int plane = w - (PARTS - 1 - p);
                            if (plane < 0 || plane >= PLANES)
                                continue;
                            const matrix &before_it = begun ? sum[h] : zero;
                            /* The window of outputs o starts BLOCKS - 1 blocks before block o of this stage. */
                            if (BLOCKS == 3 && o == 0)
                                column_taps.template multiply<false>(sum[h], p, old[c][h][plane], now[c][h][plane],
                                                                     before_it);
                            else if (BLOCKS == 3 || o == 0)
                                column_taps.template multiply<true>(sum[h], p, old[c][h][plane], now[c][h][plane],
                                                                    before_it);
                            else
                                column_taps.template multiply<false>(sum[h], p, now[c][h][plane], now[c][h][plane],
                                                                     before_it);
                            begun = true;
                        }
                    }
                }
                int level[2][4];
#pragma unroll
                for (int h = 0; h < 2; h++)
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const int s = sum[h].v[k];
                        level[h][k] =
                            FINISH == PASS_SHIFT ? s >> tensor.shift
                            : FINISH == PASS_SCALE
                                ? __mulhi(s, tensor.multiplier)
                                : __mulhi((launch.rounding.absolute ? abs(s) : s) + tensor.bias, tensor.multiplier) >>
                                      tensor.shift;
                    }
#pragma unroll
                for (int k = 0; k < 2; k++)
                    words[2 * o + k] = pack_pair(level[0][2 * k], level[0][2 * k + 1],
                                                 pack_pair(level[1][2 * k], level[1][2 * k + 1], 0));
            }
            write_matrices(staging + flip + 16 * c, words, lane);
        };
#pragma unroll
        for (int c = 0; c < pass_chunks; c++) {
            add_rows(c);
            add_columns(c);
        }
        flip ^= pass_rows * pass_staging;
        r += pass_rows;
        from = from + stage_bytes == end ? stages : from + stage_bytes;
    };
    /* Two stages a turn, so that old and new registers need not be exchanged. */
#pragma unroll 1
    while (true) {
        work_on_stage(windows[0], windows[1]);
        if (r >= tile.rows)
            break;
        work_on_stage(windows[1], windows[0]);
        if (r >= tile.rows)
            break;
    }
    __syncthreads();
    store_lines();
#else
    __trap(); /* no body: the launch fails */
#endif
}

#endif
