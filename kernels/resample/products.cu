/* SPDX-License-Identifier: MIT
 *
 * resample for samples of uint8_t and uint16_t on tensor cores: the GPU's half of src/cpu/resample.c. Both passes are
 * products of matrices of bytes. A block makes a tile of outputs, with warps that work on their own:
 *
 *     in      rows of the picture, in global memory
 *               |  columns: a warp sums 32 columns for 16 rows of outputs, from 16 rows of the picture a step
 *     sums    in shared memory: for each four columns, the four lowest bytes, then the next ones
 *               |  rows: a warp makes 16 rows x 8 outputs, from 32 sums a step
 *     out     a tile of outputs
 *
 * The taps of neighbouring outputs make a matrix, with zeros where an output has no tap. All numbers are split into
 * bytes. With n bytes a sample, the negative of a tap, which is from -2^(8 n + 7) to 2^(8 n + 7) - 1, has n + 1 digits
 * with a sign, for 16 bits -tap = d0 + 2^8 d1 + 2^16 d2. A sum of columns has n + 1 bytes without a sign. A digit times
 * a byte is at most 2^15 in absolute value. Products of equal weight are added up, and there are at most three of them
 * a term, so 32 bits hold those of 2^14 terms, and what is added to these. In the end, `join` adds the sums:
 *
 *     floor(-(s0 + 2^8 s1) / 2^(8 + n)) = floor((floor(-s0 / 2^8) - s1) / 2^n),
 *
 * so only bits that no result has are lost before the end of a pass. Its result has 32 bits:
 *
 *     columns  uint8_t, in units of 2^8: (1.275 * 255 * 2^6 + 2^13) * 2^(shift - 14) < 2^31, as shift is at most 30
 *              with 2^15 taps; uint16_t, in units of 2^16: (1.275 * 65535 * 2^6 + 2^21) * 2^(shift - 22) < 2^31 for a
 *              shift of 30
 *     rows     at most 1.55 * 2^(shift - 16) * 2^15 and 1.55 * 2^(shift - 24) * 2^23, in units of 2^16 and of 2^24
 *
 * Sums of columns: m is from -0.275 to 1.275 times the highest sample * 2^6, so m + 2^13 has two bytes, and m + 2^21
 * has three. The taps of an output sum to 2^shift, so rows subtract these offsets times that.
 *
 * Matrices are in a table in device memory, in the order in which lanes take them. Outputs that are a period apart have
 * the same taps, so the table ends where blocks of outputs begin to repeat. */
#include "kernels/resample/products.h"

#include "filter/number.h"
#include "kernels/shared/conv.cuh"
#include "kernels/shared/products.cuh"

#include <stdlib.h>

static constexpr int warps = 8, threads = 32 * warps;
static constexpr int column_outputs = 16, column_terms = 16; /* outputs and terms of a product of columns */
static constexpr int row_outputs = 8, row_terms = 32;        /* outputs and terms of a product of rows */
static constexpr int unit = 32;                              /* columns that a warp sums at once */
static constexpr int group = 4;                              /* blocks of outputs of a row that a warp stores at once */
static constexpr int padding = 32; /* bytes: rows of sums begin in other banks of shared memory */
static constexpr size_t table_max = (size_t)64 << 20;

/* Samples of some bytes. */
template <int BYTES>
struct byte_layout {
    static constexpr int digits = BYTES + 1;               /* digits of a tap */
    static constexpr int sum_bytes = BYTES + 1;            /* bytes of a sum of columns */
    static constexpr int column_sums = digits + BYTES - 1; /* sums of columns, one for each weight */
    static constexpr int row_sums = digits + sum_bytes - 1;
    static constexpr int offset_bits = 8 * BYTES + 5; /* sums of columns are stored as m + 2^offset_bits */
    static constexpr int highest = (1 << 8 * BYTES) - 1;
};

static_assert(RESAMPLE_FRACTION == 6, "the range of the sums of columns depends on it");

/* The argument of the kernel. A block of outputs is (its first input, which may be outside the picture; the offset of
 * its matrices among the taps, in pairs of words). */
struct resample_product {
    const unsigned char *in;
    unsigned char *out;
    size_t in_row, in_plane, out_row, out_plane; /* strides in bytes */
    int in_width, in_height, out_width, out_height;
    const uint2 *column_taps, *row_taps;
    const int2 *column_blocks, *row_blocks; /* blocks of outputs */
    int column_steps, row_steps;            /* products for a block */
    int column_count, row_count;            /* the number of all blocks */
    int tile_columns, tile_rows;            /* blocks of a tile */
    int units;                              /* units of a row of sums */
    int tiles_x;
    int column_shift, row_shift; /* the shift of what `join` returns */
    int column_bias, row_bias;   /* in its units: what rounds, and the offset that is added or taken away */
};

template <int BYTES>
static __host__ __device__ __forceinline__ int row_bytes(int units)
{
    return byte_layout<BYTES>::sum_bytes * unit * units + padding;
}

/* The bytes of samples X to X + 3 of ROW: the lowest bytes in one word, the highest in the next. If IS_INSIDE is false,
 * some samples may lie beyond the picture; those at its edge replace them. */
template <int BYTES, bool IS_INSIDE>
static __device__ __forceinline__ void load_samples(const unsigned char *row, int x, int width, uint32_t words[BYTES])
{
    if (!IS_INSIDE && (x < 0 || x + 4 > width)) {
#pragma unroll
        for (int b = 0; b < BYTES; b++) {
            words[b] = 0;
            for (int k = 0; k < 4; k++)
                words[b] |= (uint32_t)row[BYTES * min(max(x + k, 0), width - 1) + b] << 8 * k;
        }
    } else if (BYTES == 1) {
        words[0] = *(const uint32_t *)(row + x);
    } else {
        const uint2 four = *(const uint2 *)(row + 2 * x);
        words[0] = __byte_perm(four.x, four.y, 0x6420);
        words[BYTES - 1] = __byte_perm(four.x, four.y, 0x7531);
    }
}

/* -(s0 + 2^8 s1 + ...) in units of 2^(8 UNIT), rounded down; sK is SUMS[K].v[V]. */
template <int UNIT, int COUNT>
static __device__ __forceinline__ int join(const struct matrix sums[COUNT], int v)
{
    int sum = -sums[0].v[v];
#pragma unroll
    for (int k = 1; k < COUNT; k++)
        sum = k <= UNIT ? (sum >> 8) - sums[k].v[v] : sum - sums[k].v[v] * (1 << 8 * (k - UNIT));
    return sum;
}

/* Rows of four bytes to columns. */
static __device__ __forceinline__ void transpose(uint32_t words[4])
{
    const uint32_t a = __byte_perm(words[0], words[1], 0x5140), b = __byte_perm(words[2], words[3], 0x5140);
    const uint32_t c = __byte_perm(words[0], words[1], 0x7362), d = __byte_perm(words[2], words[3], 0x7362);
    words[0] = __byte_perm(a, b, 0x5410);
    words[1] = __byte_perm(a, b, 0x7632);
    words[2] = __byte_perm(c, d, 0x5410);
    words[3] = __byte_perm(c, d, 0x7632);
}

/* ---- Columns ---- */

/* Sum the columns of a unit from X on, for a block of 16 rows of OUTPUTS, to rows of shared memory at TO. A
 * has the taps, and B the samples: lane (g, t) has rows 4 t to 4 t + 3 of columns 4 g to 4 g + 3, one for each of four
 * products. So it gets the sums of columns 8 t to 8 t + 7. STEPS is 0 for any number. If IS_INSIDE, all samples are in
 * the picture. */
template <int BYTES, int STEPS, bool IS_INSIDE>
static __device__ __forceinline__ void sum_columns(const struct resample_product &launch, int2 outputs, int x,
                                                   unsigned char *to)
{
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4, last = launch.in_height - 1;
    typedef byte_layout<BYTES> a;
    const int first = outputs.x + 4 * t;
    const unsigned char *plane = launch.in + blockIdx.y * launch.in_plane;
    const unsigned char *from = IS_INSIDE ? plane + (size_t)first * launch.in_row : NULL;
    const uint2 *taps = launch.column_taps + outputs.y + lane;
    const struct matrix zero = {};
    struct matrix sums[4][a::column_sums];
    const auto load = [&](int step, uint32_t words[BYTES][4]) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int y = min(max(first + step * column_terms + k, 0), last);
            uint32_t four[BYTES];
            load_samples<BYTES, IS_INSIDE>(IS_INSIDE ? from + k * launch.in_row : plane + (size_t)y * launch.in_row,
                                           x + 4 * g, launch.in_width, four);
#pragma unroll
            for (int b = 0; b < BYTES; b++)
                words[b][k] = four[b];
        }
        if (IS_INSIDE)
            from += column_terms * launch.in_row;
#pragma unroll
        for (int b = 0; b < BYTES; b++)
            transpose(words[b]);
    };
    const auto add = [&](int step, const uint32_t words[BYTES][4], bool is_first) {
#pragma unroll
        for (int d = a::digits - 1; d >= 0; d--) {
            const uint2 pair = __ldg(&taps[(step * a::digits + d) * 32]);
            const uint32_t digit[2] = {pair.x, pair.y};
#pragma unroll
            for (int b = 0; b < BYTES; b++)
#pragma unroll
                for (int j = 0; j < 4; j++) {
                    const bool is_new = is_first && (d == a::digits - 1 || b == 0);
                    struct matrix &sum = sums[j][d + b];
                    multiply16<int8_t, uint8_t>(sum, digit, words[b][j], is_new ? zero : sum);
                }
        }
    };
    if (STEPS > 0) { /* all loads begin at once */
        uint32_t words[STEPS > 0 ? STEPS : 1][BYTES][4];
#pragma unroll
        for (int step = 0; step < STEPS; step++)
            load(step, words[step]);
#pragma unroll
        for (int step = 0; step < STEPS; step++)
            add(step, words[step], step == 0);
    } else {
#pragma unroll
        for (int k = 0; k < 4 * a::column_sums; k++)
            sums[k / a::column_sums][k % a::column_sums] = zero;
#pragma unroll 1
        for (int step = 0; step < launch.column_steps; step++) {
            uint32_t words[BYTES][4];
            load(step, words);
            add(step, words, false);
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) { /* rows g and g + 8 */
        uint32_t m[2][4];
#pragma unroll
        for (int h = 0; h < 2; h++) { /* four columns each */
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int sum = join<BYTES, a::column_sums>(sums[j], 2 * half + h);
                m[h][j] = (uint32_t)((launch.column_bias + sum) >> launch.column_shift);
            }
            transpose(m[h]);
        }
        uint2 *row = (uint2 *)(to + (g + 8 * half) * row_bytes<BYTES>(launch.units) + 8 * a::sum_bytes * t);
        if (BYTES == 1) {
            *(uint4 *)row = make_uint4(m[0][0], m[0][1], m[1][0], m[1][1]);
        } else {
            row[0] = make_uint2(m[0][0], m[0][1]);
            row[1] = make_uint2(m[0][2], m[1][0]);
            row[2] = make_uint2(m[1][1], m[1][2]);
        }
    }
}

/* ---- Rows ---- */

/* Make a block of OUTPUTS, from the rows of sums at FROM, whose first column is START: outputs 2 t and 2 t + 1 of row g
 * and of row g + 8. A has the sums, and B the taps. */
template <int BYTES>
static __device__ __forceinline__ void sum_rows(const struct resample_product &launch, int2 outputs, int start,
                                                const unsigned char *from, int levels[4])
{
    typedef byte_layout<BYTES> a;
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4, bytes = row_bytes<BYTES>(launch.units);
    const uint2 *taps = launch.row_taps + outputs.y + lane;
    const struct matrix zero = {};
    struct matrix sums[a::row_sums];
    from += g * bytes + a::sum_bytes * (4 * t + outputs.x - start);
    const auto add_products = [&](bool is_first) {
        uint32_t words[a::sum_bytes][4];
#pragma unroll
        for (int i = 0; i < 4; i++) { /* rows g and g + 8 of 16 sums, and of the others */
            const unsigned char *four = from + i % 2 * 8 * bytes + i / 2 * 16 * a::sum_bytes;
            if (BYTES == 1) {
                const uint2 pair = *(const uint2 *)four;
                words[0][i] = pair.x;
                words[1][i] = pair.y;
            } else {
#pragma unroll
                for (int b = 0; b < a::sum_bytes; b++)
                    words[b][i] = ((const uint32_t *)four)[b];
            }
        }
#pragma unroll
        for (int d = 0; d < a::digits; d++) {
            const uint2 pair = __ldg(&taps[d * 32]);
            const uint32_t digit[2] = {pair.x, pair.y};
#pragma unroll
            for (int b = 0; b < a::sum_bytes; b++) {
                const bool is_new = is_first && (d == 0 || b == a::sum_bytes - 1);
                multiply32<uint8_t, int8_t>(sums[d + b], words[b], digit, is_new ? zero : sums[d + b]);
            }
        }
        from += a::sum_bytes * row_terms;
        taps += a::digits * 32;
    };
    add_products(true);
    for (int step = 1; step < launch.row_steps; step++)
        add_products(false);
#pragma unroll
    for (int v = 0; v < 4; v++)
        levels[v] = (join<a::sum_bytes, a::row_sums>(sums, v) + launch.row_bias) >> launch.row_shift;
}

/* Exchange the words of four lanes, so that lane t has what all have of block t: row g in *UPPER, and g + 8 in *LOWER.
 * A lane gives two outputs of each row of a block, and gets eight. */
static __device__ __forceinline__ void gather(const uint32_t blocks[group], uint2 *upper, uint2 *lower)
{
    const int t = (int)threadIdx.x % group;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const unsigned selector = half == 0 ? 0x5410 : 0x7632;
        const uint32_t first = __byte_perm(blocks[0], blocks[1], selector);
        const uint32_t second = __byte_perm(blocks[2], blocks[3], selector);
        /* Lanes 0 and 1 take blocks 0 and 1; then even lanes take the first of these. */
        const uint32_t mine = t < 2 ? first : second, other = __shfl_xor_sync(~0u, t < 2 ? second : first, 2);
        const uint32_t a = t < 2 ? mine : other, b = t < 2 ? other : mine; /* words of lanes t % 2 and t % 2 + 2 */
        const bool is_odd = t % 2 != 0;
        const uint32_t kept = __byte_perm(a, b, is_odd ? 0x7632 : 0x5410);
        const uint32_t got = __shfl_xor_sync(~0u, __byte_perm(a, b, is_odd ? 0x5410 : 0x7632), 1);
        const uint32_t even = is_odd ? got : kept, odd = is_odd ? kept : got;
        *(half == 0 ? upper : lower) = make_uint2(__byte_perm(even, odd, 0x5410), __byte_perm(even, odd, 0x7632));
    }
}

/* Store eight outputs of row Y from X on, if they are in the picture. */
static __device__ __forceinline__ void store_eight(const struct resample_product &launch, int x, int y, uint2 levels)
{
    if (y >= launch.out_height)
        return;
    unsigned char *to = launch.out + blockIdx.y * launch.out_plane + (size_t)y * launch.out_row + x;
    if (x + 8 <= launch.out_width) {
        *(uint2 *)to = levels;
        return;
    }
    for (int k = 0; x + k < launch.out_width; k++)
        to[k] = (unsigned char)((k < 4 ? levels.x : levels.y) >> 8 * (k % 4));
}

/* Store two outputs of uint16_t. */
static __device__ __forceinline__ void store_two(const struct resample_product &launch, int x, int y, int first,
                                                 int second)
{
    if (y >= launch.out_height || x >= launch.out_width)
        return;
    uint16_t *to = (uint16_t *)(launch.out + blockIdx.y * launch.out_plane + (size_t)y * launch.out_row) + x;
    first = min(max(first, 0), byte_layout<2>::highest);
    second = min(max(second, 0), byte_layout<2>::highest);
    if (x + 2 <= launch.out_width)
        *(uint32_t *)to = (uint32_t)first | (uint32_t)second << 16;
    else
        *to = (uint16_t)first;
}

/* ---- The kernel ---- */

/* Set ROW and NUMBER to those of item NUMBER, where a row has LENGTH items. False if it is after the last of ROWS. */
static __device__ __forceinline__ bool find_item(int &row, int &number, int length, int rows)
{
    for (; number >= length; number -= length)
        row++;
    return row < rows;
}

/* Make up to GROUP blocks of outputs, from block FIRST on and before block LAST. The rows of sums are at FROM. Their
 * first column is START. */
template <int BYTES>
static __device__ __forceinline__ void make_group(const struct resample_product &launch, int first, int last, int start,
                                                  int top, const unsigned char *from)
{
    const int t = (int)threadIdx.x % group, y = top + (int)threadIdx.x % 32 / 4;
    int2 chosen[group];
    uint32_t blocks[group];
    uint2 upper, lower;
#pragma unroll
    for (int j = 0; j < group; j++)
        chosen[j] = __ldg(&launch.row_blocks[min(first + j, last - 1)]);
#pragma unroll
    for (int j = 0; j < group; j++) {
        blocks[j] = 0;
        if (first + j >= last)
            continue;
        int levels[4];
        sum_rows<BYTES>(launch, chosen[j], start, from, levels);
        if (BYTES == 1) {
            blocks[j] = pack_pair(levels[0], levels[1], pack_pair(levels[2], levels[3], 0));
        } else {
            const int x = (first + j) * row_outputs + 2 * t;
            store_two(launch, x, y, levels[0], levels[1]);
            store_two(launch, x, y + 8, levels[2], levels[3]);
        }
    }
    if (BYTES > 1)
        return;
    gather(blocks, &upper, &lower);
    if (first + t < last) {
        store_eight(launch, (first + t) * row_outputs, y, upper);
        store_eight(launch, (first + t) * row_outputs, y + 8, lower);
    }
}

template <int BYTES, int STEPS>
__global__ void __launch_bounds__(threads, BYTES > 1                ? 2
                                           : STEPS > 0 && STEPS < 4 ? 4
                                                                    : 3)
    resample_products(struct resample_product launch)
{
    extern __shared__ unsigned char shared[];
    const int warp = (int)threadIdx.x / 32;
    const int first = (int)blockIdx.x % launch.tiles_x * launch.tile_columns;
    const int last = min(first + launch.tile_columns, launch.row_count);
    const int top = (int)blockIdx.x / launch.tiles_x * launch.tile_rows;
    const int rows = min(launch.tile_rows, launch.column_count - top);
    const int start = __ldg(&launch.row_blocks[first]).x;
    const int block_bytes = column_outputs * row_bytes<BYTES>(launch.units);
    for (int row = 0, number = warp; find_item(row, number, launch.units, rows); number += warps) {
        const int2 outputs = __ldg(&launch.column_blocks[top + row]);
        const int x = start + number * unit;
        unsigned char *to = shared + row * block_bytes + byte_layout<BYTES>::sum_bytes * unit * number;
        if (x >= 0 && x + unit <= launch.in_width && outputs.x >= 0 &&
            outputs.x + column_terms * (STEPS > 0 ? STEPS : launch.column_steps) <= launch.in_height)
            sum_columns<BYTES, STEPS, true>(launch, outputs, x, to);
        else
            sum_columns<BYTES, STEPS, false>(launch, outputs, x, to);
    }
    __syncthreads();
    const int groups = (last - first + group - 1) / group;
    for (int row = 0, number = warp; find_item(row, number, groups, rows); number += warps)
        make_group<BYTES>(launch, first + number * group, last, start, (top + row) * column_outputs,
                          shared + row * block_bytes);
}

/* ---- Matrices ---- */

/* How the outputs of an axis are made in blocks. */
struct blocks {
    int outputs, terms; /* outputs and terms of a product */
    int align;          /* a block's first input is a multiple of this */
    int count;          /* the number of blocks */
    int steps;          /* products for a block */
    int matrices;       /* blocks until taps and alignment repeat, or all */
    int words;          /* words of the matrices of a product: two a lane and digit */
    size_t taps, list;  /* offsets in the table: of the matrices, and of a pair of words for each block */
};

/* The first inputs of outputs N apart are this many inputs apart, at most. */
static int64_t reach(const struct resample_axis *axis, int64_t n)
{
    return (n * axis->from + axis->to - 1) / axis->to;
}

static struct blocks blocks_of(const struct resample_axis *axis, int digits, int outputs, int terms, int align)
{
    struct blocks blocks = {};
    blocks.words = 64 * digits;
    blocks.outputs = outputs;
    blocks.terms = terms;
    blocks.align = align;
    blocks.count = (axis->to + outputs - 1) / outputs;
    blocks.steps = (int)((reach(axis, outputs - 1) + axis->count + align - 1 + terms - 1) / terms);
    const int64_t advance = (int64_t)axis->period * axis->from / axis->to; /* inputs of a period */
    const int64_t repeats = (int64_t)axis->period * (align / greatest_common_divisor(align, (int)(advance % align)));
    const int64_t matrices = repeats / greatest_common_divisor(outputs, (int)(repeats % outputs));
    blocks.matrices = matrices < blocks.count ? (int)matrices : blocks.count;
    return blocks;
}

/* Set the blocks of columns and rows. Returns the words of the table. */
static size_t arrange(const struct plan *plan, struct blocks *columns, struct blocks *rows)
{
    const int digits = (int)sample_bytes(plan->sample) + 1;
    *columns = blocks_of(&plan->columns, digits, column_outputs, column_terms, 1);
    *rows = blocks_of(&plan->rows, digits, row_outputs, row_terms, 4);
    columns->taps = 0;
    rows->taps = (size_t)columns->matrices * (size_t)columns->steps * (size_t)columns->words;
    columns->list = rows->taps + (size_t)rows->matrices * (size_t)rows->steps * (size_t)rows->words;
    rows->list = columns->list + 2 * (size_t)columns->count;
    return rows->list + 2 * (size_t)rows->count;
}

static int first_input(const struct resample_axis *axis, const struct blocks *blocks, int block)
{
    return resample_first(axis, block * blocks->outputs) & -blocks->align;
}

/* Digit D of the negative of TAP. */
static uint32_t tap_digit(int32_t tap, int d)
{
    int32_t rest = -tap;
    for (; d > 0; d--)
        rest = (rest - (int8_t)rest) / 256;
    return (uint8_t)rest;
}

/* Make the table's part for an axis. A lane's two words of a product are those of outputs g and g + 8, or, of blocks of
 * eight, of terms 4 t and 16 + 4 t on. */
static void make_matrices(const struct resample_axis *axis, const struct blocks *blocks, uint32_t *table)
{
    const int digits = blocks->words / 64;
    uint32_t *to = table + blocks->taps;
    for (int block = 0; block < blocks->matrices; block++)
        for (int i = 0; i < blocks->steps * blocks->words; i++) {
            const int step = i / blocks->words, d = i / 64 % digits, g = i / 8 % 8, t = i / 2 % 4, part = i % 2;
            const int output = block * blocks->outputs + g + (blocks->outputs > 8 ? 8 * part : 0);
            const int term = step * blocks->terms + 4 * t + (blocks->outputs > 8 ? 0 : 16 * part);
            const int32_t *taps = axis->taps + (size_t)(output % axis->period) * (size_t)axis->count;
            const int first = first_input(axis, blocks, block) + term - resample_first(axis, output);
            uint32_t word = 0;
            for (int k = 0; k < 4; k++)
                if (first + k >= 0 && first + k < axis->count)
                    word |= tap_digit(taps[first + k], d) << 8 * k;
            *to++ = word;
        }
    to = table + blocks->list;
    for (int block = 0; block < blocks->count; block++) {
        *to++ = (uint32_t)first_input(axis, blocks, block);
        *to++ = (uint32_t)(block % blocks->matrices * blocks->steps * (blocks->words / 2));
    }
}

bool resample_prepare_products(const struct plan *plan, struct device *device, struct error *error)
{
    struct blocks columns, rows;
    const size_t bytes = arrange(plan, &columns, &rows) * sizeof(uint32_t);
    uint32_t *table = (uint32_t *)malloc(bytes);
    if (table == NULL)
        return error_no_memory(error, "the taps of %s", plan->filter->name);
    make_matrices(&plan->columns, &columns, table);
    make_matrices(&plan->rows, &rows, table);
    const bool done = upload_table(device, table, bytes, error) && device_wait(device, error);
    free(table);
    return done;
}

/* ---- Launches ---- */

/* The columns of sums that COUNT blocks of a row need, in units. */
static int64_t units_of(const struct resample_axis *axis, const struct blocks *rows, int count)
{
    const int64_t apart = (reach(axis, (int64_t)(count - 1) * row_outputs) + rows->align - 1) & -(int64_t)rows->align;
    return (apart + (int64_t)rows->steps * row_terms + unit - 1) / unit;
}

static_assert(64 * (2 * unit * 8 + padding) <= 48 << 10 && 32 * (2 * unit * 16 + padding) <= 48 << 10 &&
                  16 * (2 * unit * 40 + padding) <= 48 << 10 && 64 * (3 * unit * 5 + padding) <= 48 << 10 &&
                  32 * (3 * unit * 10 + padding) <= 48 << 10 && 16 * (3 * unit * 26 + padding) <= 48 << 10,
              "the sums of a tile fit in shared memory, whatever choose_tile takes");

/* Set the size of the tiles, so that their sums fit in 48 KB. There are enough of them for a large GPU if possible.
 * False if not even the smallest tile fits. */
static bool choose_tile(const struct plan *plan, const struct blocks *rows, int planes, struct resample_product *launch)
{
    static const struct {
        int units[2], rows; /* units for samples of one and of two bytes */
    } sizes[] = {{{8, 5}, 4}, {{16, 10}, 2}, {{40, 26}, 1}};
    enum { TILES = 512 };
    const size_t bytes = sample_bytes(plan->sample);
    int columns = 0;
    for (int i = 0; i < 3 && columns < 8; i++) {
        for (columns = 32; columns > 0 && units_of(&plan->rows, rows, columns) > sizes[i].units[bytes - 1]; columns--)
            ;
        launch->tile_rows = sizes[i].rows;
    }
    if (columns == 0)
        return false;
    const auto tiles = [&] {
        return (int64_t)planes * ((rows->count + columns - 1) / columns) *
               ((launch->column_count + launch->tile_rows - 1) / launch->tile_rows);
    };
    while (launch->tile_rows > 1 && tiles() < TILES)
        launch->tile_rows /= 2;
    while (columns > group && tiles() < TILES)
        columns /= 2;
    launch->tile_columns = columns;
    launch->units = (int)units_of(&plan->rows, rows, columns);
    launch->tiles_x = (rows->count + columns - 1) / columns;
    return true;
}

bool resample_takes_products(const struct plan *plan)
{
    struct blocks columns, rows;
    struct resample_product launch = {};
    if (plan->sample == SAMPLE_F32 || (plan->sample == SAMPLE_U16 && (plan->columns.shift > RESAMPLE_SHIFT_WORDS ||
                                                                      plan->rows.shift > RESAMPLE_SHIFT_WORDS)))
        return false;
    return arrange(plan, &columns, &rows) * sizeof(uint32_t) <= table_max &&
           columns.steps <= (1 << 14) / column_terms && /* choose_tile limits the steps of rows */
           choose_tile(plan, &rows, 1, &launch);
}

template <int BYTES>
static bool launch_products(const struct plan *plan, struct device *device, const struct plane *in,
                            const struct plane *out, struct error *error)
{
    typedef byte_layout<BYTES> a;
    struct blocks columns, rows;
    arrange(plan, &columns, &rows);
    const uint32_t *table = (const uint32_t *)device_table(device);
    const int column_bits = plan->columns.shift - RESAMPLE_FRACTION, row_bits = plan->rows.shift + RESAMPLE_FRACTION;
    const int column_unit = 8 * BYTES, row_unit = 8 * a::sum_bytes;
    struct resample_product launch = {};
    set_planes(&launch, in, out);
    launch.in_width = in->width;
    launch.in_height = in->height;
    launch.out_width = out->width;
    launch.out_height = out->height;
    launch.column_taps = (const uint2 *)(table + columns.taps);
    launch.row_taps = (const uint2 *)(table + rows.taps);
    launch.column_blocks = (const int2 *)(table + columns.list);
    launch.row_blocks = (const int2 *)(table + rows.list);
    launch.column_steps = columns.steps;
    launch.row_steps = rows.steps;
    launch.column_count = columns.count;
    launch.row_count = rows.count;
    launch.column_shift = column_bits - column_unit;
    launch.row_shift = row_bits - row_unit;
    launch.column_bias = (1 << (column_bits - 1 - column_unit)) + (1 << (a::offset_bits + column_bits - column_unit));
    launch.row_bias = (1 << (row_bits - 1 - row_unit)) - (1 << (a::offset_bits + plan->rows.shift - row_unit));
    choose_tile(plan, &rows, in->count, &launch);
    const int tiles_y = (columns.count + launch.tile_rows - 1) / launch.tile_rows;
    const size_t shared = (size_t)(launch.tile_rows * column_outputs) * (size_t)row_bytes<BYTES>(launch.units);
    const dim3 grid((unsigned)launch.tiles_x * (unsigned)tiles_y, (unsigned)in->count);
    void (*const kernel)(struct resample_product) = columns.steps == 1   ? resample_products<BYTES, 1>
                                                    : columns.steps == 2 ? resample_products<BYTES, 2>
                                                    : columns.steps == 3 ? resample_products<BYTES, 3>
                                                    : columns.steps == 4 ? resample_products<BYTES, 4>
                                                                         : resample_products<BYTES, 0>;
    return queue_kernel(kernel, grid, threads, shared, device, error, launch);
}

bool resample_launch_products(const struct plan *plan, struct device *device, const struct plane *in,
                              const struct plane *out, struct error *error)
{
    return plan->sample == SAMPLE_U8 ? launch_products<1>(plan, device, in, out, error)
                                     : launch_products<2>(plan, device, in, out, error);
}
