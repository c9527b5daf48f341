/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of src/cpu/resample.c for samples of uint8_t: both passes are products of matrices of bytes, which
 * tensor cores multiply. A block of threads makes a tile of outputs:
 *
 *     in      rows of the picture, in global memory
 *               |  columns: a warp makes 16 rows x 32 columns of sums, from 16 rows of the picture a step
 *     sums    tile rows x the input columns that the tile needs, in shared memory: m + offset, in two bytes
 *               |  rows: a warp makes 16 rows x 8 outputs, from 32 sums a step
 *     out     a tile of outputs
 *
 * The taps of neighbouring outputs make a matrix, with zeros where an output has no tap. The negative of a tap, which
 * is from -2^15 to 2^15 - 1, has two digits of 8 bits with a sign: -tap = d0 + 2^8 d1. A digit of taps times a byte of
 * sums or samples is at most 2^15, so 32 bits hold the sums of 2^15 of them, and what is added to these. The sums of
 * products with equal weight are joined in the end:
 *
 *     floor(-(s0 + 2^8 s1) / 2^(8 + n)) = floor((floor(-s0 / 2^8) - s1) / 2^n),
 *
 * so only bits that no result has are lost before the end of a pass. Sums of columns in units of 2^8 have 32 bits: they
 * are below (1.275 * 255 * 2^6 + 2^13) * 2^(shift - 14) < 2^31, as shift is at most 30 with 2^15 taps.
 *
 * Sums of columns: m is from -0.275 to 1.275 times 255 * 2^6, so m + 2^13 has two bytes without a sign. The taps of an
 * output sum to 2^shift, so rows subtract 2^13 * 2^shift.
 *
 * Matrices are in a table in device memory, in the order in which lanes take them. Outputs that are a period apart have
 * the same taps, so the table ends where blocks of outputs begin to repeat. */
#include "kernels/resample/products.h"

#include "filter/number.h"
#include "kernels/shared/conv.cuh"
#include "kernels/shared/products.cuh"

#include <stdlib.h>

static constexpr int warps = 8, threads = 32 * warps;
static constexpr int digits = 2;                             /* of a tap */
static constexpr int column_outputs = 16, column_terms = 16; /* of a product */
static constexpr int row_outputs = 8, row_terms = 32;
static constexpr int unit = 32;                  /* columns that a warp sums at once */
static constexpr int group = 4;                  /* blocks of outputs of a row that a warp stores at once */
static constexpr int offset_bits = 13;           /* sums are stored as m + 2^13 */
static constexpr int matrix_words = digits * 64; /* of one product: two words a lane and digit */
static constexpr int padding = 32;               /* bytes: rows of sums begin in other banks of shared memory */
static constexpr size_t table_max = (size_t)64 << 20;

static_assert(RESAMPLE_FRACTION == 6, "the range of the sums of columns depends on it");

/* The argument of the kernel. A block of outputs is (its first input, which may be outside the picture; the offset of
 * its matrices among the taps, in pairs of words). */
struct byte_resampling {
    const uint8_t *in;
    uint8_t *out;
    size_t in_row, in_plane, out_row, out_plane; /* strides in bytes */
    int in_width, in_height, out_width, out_height;
    const uint2 *column_taps, *row_taps;
    const int2 *column_blocks, *row_blocks; /* of outputs */
    int column_steps, row_steps;            /* products for a block */
    int column_count, row_count;            /* of all blocks */
    int tile_columns, tile_rows;            /* blocks of a tile */
    int units;                              /* of a row of sums */
    int tiles_x;
    int column_shift, row_shift; /* of sums in units of 2^8 and 2^16 */
    int column_bias, row_bias;   /* in the same units: what rounds, and the offset that is added or taken away */
};

static __device__ __forceinline__ int row_bytes(const struct byte_resampling &launch)
{
    return 2 * unit * launch.units + padding;
}

/* Samples X to X + 3 of ROW. Beyond the picture are those at its edge. */
static __device__ __forceinline__ uint32_t load_word(const uint8_t *row, int x, int width)
{
    if (x >= 0 && x + 4 <= width)
        return *(const uint32_t *)(row + x);
    uint32_t word = 0;
    for (int k = 0; k < 4; k++)
        word |= (uint32_t)row[min(max(x + k, 0), width - 1)] << 8 * k;
    return word;
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
template <int STEPS, bool IS_INSIDE>
static __device__ __forceinline__ void sum_columns(const struct byte_resampling &launch, int2 outputs, int x,
                                                   unsigned char *to)
{
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4, last = launch.in_height - 1;
    const int first = outputs.x + 4 * t;
    const uint8_t *plane = launch.in + blockIdx.y * launch.in_plane;
    const uint8_t *from = IS_INSIDE ? plane + (size_t)first * launch.in_row + x + 4 * g : NULL;
    const uint2 *taps = launch.column_taps + outputs.y + lane;
    const struct matrix zero = {};
    struct matrix low_sums[4], sums[4]; /* of the lowest digits; of the others, in units of 2^8 */
    const auto load = [&](int step, uint32_t words[4]) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            const int y = min(max(first + step * column_terms + k, 0), last);
            words[k] = IS_INSIDE ? *(const uint32_t *)(from + k * launch.in_row)
                                 : load_word(plane + (size_t)y * launch.in_row, x + 4 * g, launch.in_width);
        }
        if (IS_INSIDE)
            from += column_terms * launch.in_row;
        transpose(words);
    };
    const auto add = [&](int step, int d, const uint32_t words[4], struct matrix to_sums[4], bool is_first) {
        const uint2 pair = __ldg(&taps[(step * digits + d) * 32]);
        const uint32_t a[2] = {pair.x, pair.y};
#pragma unroll
        for (int j = 0; j < 4; j++)
            multiply16<int8_t, uint8_t>(to_sums[j], a, words[j], is_first ? zero : to_sums[j]);
    };
    if (STEPS > 0) { /* all loads begin at once */
        uint32_t words[STEPS > 0 ? STEPS : 1][4];
#pragma unroll
        for (int step = 0; step < STEPS; step++)
            load(step, words[step]);
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            add(step, 1, words[step], sums, step == 0);
            add(step, 0, words[step], low_sums, step == 0);
        }
    } else {
#pragma unroll
        for (int j = 0; j < 4; j++)
            low_sums[j] = sums[j] = zero;
#pragma unroll 1
        for (int step = 0; step < launch.column_steps; step++) {
            uint32_t words[4];
            load(step, words);
            add(step, 0, words, low_sums, false);
            add(step, 1, words, sums, false);
        }
    }
#pragma unroll
    for (int half = 0; half < 2; half++) { /* rows g and g + 8 */
        uint32_t low[2], high[2];
#pragma unroll
        for (int h = 0; h < 2; h++) { /* four columns each */
            uint32_t m[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                const int v = 2 * half + h;
                const int sum = launch.column_bias + (-low_sums[j].v[v] >> 8) - sums[j].v[v];
                m[j] = (uint32_t)(sum >> launch.column_shift);
            }
            const uint32_t a = __byte_perm(m[0], m[1], 0x5140), b = __byte_perm(m[2], m[3], 0x5140);
            low[h] = __byte_perm(a, b, 0x5410);
            high[h] = __byte_perm(a, b, 0x7632);
        }
        *(uint4 *)(to + (g + 8 * half) * row_bytes(launch) + 16 * t) = make_uint4(low[0], high[0], low[1], high[1]);
    }
}

/* ---- Rows ---- */

/* The block of OUTPUTS, from the rows of sums at FROM, whose first column is START: those of row g in the
 * lower half of the result, and those of row g + 8 in the upper one. A has the sums, and B the taps. */
static __device__ __forceinline__ uint32_t sum_rows(const struct byte_resampling &launch, int2 outputs, int start,
                                                    const unsigned char *from)
{
    const int lane = (int)threadIdx.x % 32, g = lane / 4, t = lane % 4, bytes = row_bytes(launch);
    const uint2 *taps = launch.row_taps + outputs.y + lane;
    const struct matrix zero = {};
    struct matrix sums[digits + 1];
    from += g * bytes + 8 * t + 2 * (outputs.x - start);
    const auto add_products = [&](bool is_first) {
        uint32_t low[4], high[4];
#pragma unroll
        for (int i = 0; i < 4; i++) { /* rows g and g + 8 of 16 sums, and of the others */
            const uint2 pair = *(const uint2 *)(from + i % 2 * 8 * bytes + i / 2 * row_terms);
            low[i] = pair.x;
            high[i] = pair.y;
        }
#pragma unroll
        for (int d = 0; d < digits; d++) {
            const uint2 pair = __ldg(&taps[d * 32]);
            const uint32_t b[2] = {pair.x, pair.y};
            multiply32<uint8_t, int8_t>(sums[d], low, b, is_first && d == 0 ? zero : sums[d]);
            multiply32<uint8_t, int8_t>(sums[d + 1], high, b, is_first ? zero : sums[d + 1]);
        }
        from += 2 * row_terms;
        taps += matrix_words / 2;
    };
    add_products(true);
    for (int step = 1; step < launch.row_steps; step++)
        add_products(false);
    int level[4];
#pragma unroll
    for (int v = 0; v < 4; v++) {
        level[v] = -sums[0].v[v];
#pragma unroll
        for (int d = 1; d <= digits; d++)
            level[v] = (level[v] >> 8) - sums[d].v[v];
        level[v] = (level[v] + launch.row_bias) >> launch.row_shift;
    }
    return pack_pair(level[0], level[1], pack_pair(level[2], level[3], 0));
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
        const uint32_t a = t < 2 ? mine : other, b = t < 2 ? other : mine; /* of lanes t % 2 and t % 2 + 2 */
        const bool is_odd = t % 2 != 0;
        const uint32_t kept = __byte_perm(a, b, is_odd ? 0x7632 : 0x5410);
        const uint32_t got = __shfl_xor_sync(~0u, __byte_perm(a, b, is_odd ? 0x5410 : 0x7632), 1);
        const uint32_t even = is_odd ? got : kept, odd = is_odd ? kept : got;
        *(half == 0 ? upper : lower) = make_uint2(__byte_perm(even, odd, 0x5410), __byte_perm(even, odd, 0x7632));
    }
}

/* Store eight outputs of row Y from X on, if they are in the picture. */
static __device__ __forceinline__ void store(const struct byte_resampling &launch, int x, int y, uint2 levels)
{
    if (y >= launch.out_height)
        return;
    uint8_t *to = launch.out + blockIdx.y * launch.out_plane + (size_t)y * launch.out_row + x;
    if (x + 8 <= launch.out_width) {
        *(uint2 *)to = levels;
        return;
    }
    for (int k = 0; x + k < launch.out_width; k++)
        to[k] = (uint8_t)((k < 4 ? levels.x : levels.y) >> 8 * (k % 4));
}

/* ---- The kernel ---- */

/* Set ROW and NUMBER to those of item NUMBER, where a row has LENGTH items. False if it is after the last of ROWS. */
static __device__ __forceinline__ bool find_item(int &row, int &number, int length, int rows)
{
    for (; number >= length; number -= length)
        row++;
    return row < rows;
}

template <int STEPS>
__global__ void __launch_bounds__(threads, STEPS > 0 && STEPS < 4 ? 4 : 3) resample_bytes(struct byte_resampling launch)
{
    extern __shared__ unsigned char shared[];
    const int warp = (int)threadIdx.x / 32, t = (int)threadIdx.x % group, g = (int)threadIdx.x % 32 / 4;
    const int first = (int)blockIdx.x % launch.tiles_x * launch.tile_columns;
    const int last = min(first + launch.tile_columns, launch.row_count);
    const int top = (int)blockIdx.x / launch.tiles_x * launch.tile_rows;
    const int rows = min(launch.tile_rows, launch.column_count - top);
    const int start = __ldg(&launch.row_blocks[first]).x, block_bytes = column_outputs * row_bytes(launch);
    for (int row = 0, number = warp; find_item(row, number, launch.units, rows); number += warps) {
        const int2 outputs = __ldg(&launch.column_blocks[top + row]);
        const int x = start + number * unit;
        unsigned char *to = shared + row * block_bytes + 2 * unit * number;
        if (x >= 0 && x + unit <= launch.in_width && outputs.x >= 0 &&
            outputs.x + column_terms * (STEPS > 0 ? STEPS : launch.column_steps) <= launch.in_height)
            sum_columns<STEPS, true>(launch, outputs, x, to);
        else
            sum_columns<STEPS, false>(launch, outputs, x, to);
    }
    __syncthreads();
    const int groups = (last - first + group - 1) / group;
    for (int row = 0, number = warp; find_item(row, number, groups, rows); number += warps) {
        const int block = first + number * group;
        int2 chosen[group];
        uint32_t blocks[group];
        uint2 upper, lower;
#pragma unroll
        for (int j = 0; j < group; j++)
            chosen[j] = __ldg(&launch.row_blocks[min(block + j, last - 1)]);
#pragma unroll
        for (int j = 0; j < group; j++) {
            blocks[j] = 0;
            if (block + j < last)
                blocks[j] = sum_rows(launch, chosen[j], start, shared + row * block_bytes);
        }
        gather(blocks, &upper, &lower);
        if (block + t < last) {
            const int x = (block + t) * row_outputs, y = (top + row) * column_outputs + g;
            store(launch, x, y, upper);
            store(launch, x, y + 8, lower);
        }
    }
}

/* ---- Matrices ---- */

/* How the outputs of an axis are made in blocks. */
struct blocks {
    int outputs, terms; /* of a product */
    int align;          /* a block's first input is a multiple of this */
    int count;          /* of blocks */
    int steps;          /* products for a block */
    int matrices;       /* blocks until taps and alignment repeat, or all */
    size_t words, list; /* offsets in the table: of the matrices, and of a pair of words for each block */
};

/* The first inputs of outputs N apart are this many inputs apart, at most. */
static int64_t reach(const struct resample_axis *axis, int64_t n)
{
    return (n * axis->from + axis->to - 1) / axis->to;
}

static struct blocks blocks_of(const struct resample_axis *axis, int outputs, int terms, int align)
{
    struct blocks blocks = {};
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
    *columns = blocks_of(&plan->columns, column_outputs, column_terms, 1);
    *rows = blocks_of(&plan->rows, row_outputs, row_terms, 4);
    columns->words = 0;
    rows->words = (size_t)columns->matrices * (size_t)columns->steps * matrix_words;
    columns->list = rows->words + (size_t)rows->matrices * (size_t)rows->steps * matrix_words;
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
    return (uint8_t)(d == 0 ? -tap : (-tap - (int8_t)-tap) / 256);
}

/* Make the table's part for an axis. A lane's two words of a product are those of outputs g and g + 8, or, of blocks of
 * eight, of terms 4 t and 16 + 4 t on. */
static void make_matrices(const struct resample_axis *axis, const struct blocks *blocks, uint32_t *table)
{
    uint32_t *to = table + blocks->words;
    for (int block = 0; block < blocks->matrices; block++)
        for (int i = 0; i < blocks->steps * matrix_words; i++) {
            const int step = i / matrix_words, d = i / 64 % digits, g = i / 8 % 8, t = i / 2 % 4, part = i % 2;
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
        *to++ = (uint32_t)(block % blocks->matrices * blocks->steps * (matrix_words / 2));
    }
}

bool resample_prepare_bytes(const struct plan *plan, struct device *device, struct error *error)
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

/* Set the size of the tiles, so that their sums fit in 48 KB. There are enough of them for a large GPU if possible.
 * False if not even the smallest tile fits. */
static bool choose_tile(const struct plan *plan, const struct blocks *rows, int planes, struct byte_resampling *launch)
{
    static const struct {
        int units, rows;
    } sizes[] = {{8, 4}, {16, 2}, {40, 1}};
    enum { TILES = 512 };
    static_assert(16 * (2 * unit * 40 + padding) <= 48 << 10 && 32 * (2 * unit * 16 + padding) <= 48 << 10 &&
                      64 * (2 * unit * 8 + padding) <= 48 << 10,
                  "the sums of a tile fit in shared memory");
    int columns = 0;
    for (int i = 0; i < 3 && columns < 8; i++) {
        for (columns = 32; columns > 0 && units_of(&plan->rows, rows, columns) > sizes[i].units; columns--)
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

bool resample_takes_bytes(const struct plan *plan)
{
    struct blocks columns, rows;
    struct byte_resampling launch = {};
    return plan->sample == SAMPLE_U8 && arrange(plan, &columns, &rows) * sizeof(uint32_t) <= table_max &&
           columns.steps <= (1 << 15) / column_terms && /* choose_tile limits the steps of rows */
           choose_tile(plan, &rows, 1, &launch);
}

bool resample_launch_bytes(const struct plan *plan, struct device *device, const struct plane *in,
                           const struct plane *out, struct error *error)
{
    struct blocks columns, rows;
    arrange(plan, &columns, &rows);
    const uint32_t *table = (const uint32_t *)device_table(device);
    const int column_bits = plan->columns.shift - RESAMPLE_FRACTION, row_bits = plan->rows.shift + RESAMPLE_FRACTION;
    struct byte_resampling launch = {};
    launch.in = (const uint8_t *)in->data;
    launch.out = (uint8_t *)out->data;
    launch.in_row = in->row_bytes;
    launch.in_plane = in->plane_bytes;
    launch.out_row = out->row_bytes;
    launch.out_plane = out->plane_bytes;
    launch.in_width = in->width;
    launch.in_height = in->height;
    launch.out_width = out->width;
    launch.out_height = out->height;
    launch.column_taps = (const uint2 *)(table + columns.words);
    launch.row_taps = (const uint2 *)(table + rows.words);
    launch.column_blocks = (const int2 *)(table + columns.list);
    launch.row_blocks = (const int2 *)(table + rows.list);
    launch.column_steps = columns.steps;
    launch.row_steps = rows.steps;
    launch.column_count = columns.count;
    launch.row_count = rows.count;
    launch.column_shift = column_bits - 8;
    launch.row_shift = row_bits - 16;
    launch.column_bias = (1 << (column_bits - 1 - 8)) + (1 << (offset_bits + column_bits - 8));
    launch.row_bias = (1 << (row_bits - 1 - 16)) - (1 << (offset_bits + plan->rows.shift - 16));
    choose_tile(plan, &rows, in->count, &launch);
    const int tiles_y = (columns.count + launch.tile_rows - 1) / launch.tile_rows;
    const size_t shared = (size_t)(launch.tile_rows * column_outputs) * (size_t)(2 * unit * launch.units + padding);
    const dim3 grid((unsigned)launch.tiles_x * (unsigned)tiles_y, (unsigned)in->count);
    void (*const kernel)(struct byte_resampling) = columns.steps == 1   ? resample_bytes<1>
                                                   : columns.steps == 2 ? resample_bytes<2>
                                                   : columns.steps == 3 ? resample_bytes<3>
                                                   : columns.steps == 4 ? resample_bytes<4>
                                                                        : resample_bytes<0>;
    kernel<<<grid, threads, shared, device_stream(device)>>>(launch);
    CUDA_TRY(cudaGetLastError(), error);
    return true;
}
