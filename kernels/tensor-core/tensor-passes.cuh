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
 * 31 x 31 with row sums of two bytes: 48 + 2 * 48 multiply-adds per output instead of 961, or of 1632 in
 * tensor-wide.cuh. For 32 rows of 64 outputs, a warp has 6 reads of 4 matrices, 96 products, 64 instructions that pack
 * row sums, 64 that add up bytes, 96 that round, 12 that store: about 6 per output and lane. Loads: each sample once
 * from memory, except for the halo of a tile, 32 columns for 256 and 30 rows for a strip of 736. Rows on their way are
 * in a ring in shared memory that a block's warps fill together, and outputs go through shared memory too, so that
 * whole cache lines are stored.
 *
 * Limits: up to 33 taps a side, and a window that fits (see tensor_arrange_passes); taps of 16 bits; row sums of 24
 * bits. */
#ifndef GPUCONV_TENSOR_PASSES_CUH
#define GPUCONV_TENSOR_PASSES_CUH

#include "kernels/tensor-core/tensor.cuh"

static constexpr int pass_chunks = 4; /* chunks of a warp, side by side */
static constexpr int pass_width = pass_chunks * pass_chunk;
static constexpr int pass_warps = 4; /* warps of a block, side by side: they share the ring */
static constexpr int pass_columns = pass_warps * pass_width;
static constexpr int pass_rows = 2 * pass_chunk; /* rows of a stage */
static constexpr int pass_stages = 3;            /* stages of the ring; the block works on one of them */
static constexpr int pass_strip = 24;            /* stages of a strip, at most; by measurement, as are the next two */
static constexpr int pass_short = 6;             /* stages of a strip of those that come last */
static constexpr double pass_share = 0.3;        /* the share of the rows that are in such strips */
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

/* ---- Samples: from memory to the ring ---- */

/* Find a tile. The first tiles have tensor.strip rows, in all planes. Then come those of tensor.short_strip rows, below
 * them. */
static __device__ __forceinline__ struct tile find_pass_tile(const struct tensor_launch &tensor, int index)
{
    const int down = index / tensor.columns, longer = tensor.tiles_y * tensor.planes;
    const bool is_long = down < longer;
    const int at = is_long ? down : down - longer, of = is_long ? tensor.tiles_y : tensor.short_y;
    const int plane = at / of, strip = is_long ? tensor.strip : tensor.short_strip;
    return make_tile(tensor.launch, plane, (index - down * tensor.columns) * pass_columns,
                     (at - plane * of) * strip + (is_long ? 0 : tensor.tiles_y * tensor.strip), strip);
}

/* Load a column as load_column does, where some rows are outside the image. Not inlined, and called with values instead
 * of the launch: few tiles need it, and the loop must stay in the instruction cache. */
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

/* A column of units of a stage, which a thread copies: from ROW and BYTE of the stage on. */
struct unit_column {
    int row, byte;
    bool is_inside;      /* the image's columns */
    uint32_t offset;     /* in the ring's stage */
    const uint8_t *from; /* for the next stage */
};

/* Starts the copies of stages: each thread copies a column of units, and the first threads also copy a unit beyond the
 * tile's width. */
template <int BLOCKS>
struct pass_loader {
    static constexpr int threads = 32 * pass_warps, pitch = pass_pitch(BLOCKS), stage_bytes = pass_rows * pitch;
    static constexpr int unit = pass_copy(BLOCKS), across = pass_columns / unit, rows = pass_rows / (threads / across);
    static constexpr int beyond = (pass_row(BLOCKS) - pass_columns) / unit; /* units of a row */
    static_assert(threads % across == 0 && rows * (threads / across) == pass_rows && beyond * pass_rows <= threads,
                  "rounds are whole");

    const struct launch &launch;
    const struct tile &tile;
    const int thread, left_x, top_y;
    const struct edges edges;
    const bool edged; /* some columns of the stages are outside the image */
    const uint32_t first, end;
    struct unit_column mine, other;
    int loaded = 0; /* rows */
    uint32_t to;    /* the next stage */

    __device__ __forceinline__ pass_loader(const struct tensor_launch &tensor, const struct tile &tile_, uint32_t ring)
        : launch(tensor.launch), tile(tile_), thread((int)threadIdx.x), left_x(tile.x - tensor.lead),
          top_y(tile.y - launch.anchor_y),
          edges(find_edges(left_x, pass_row(BLOCKS) / 4, launch.filter_width, launch.width)),
          edged(edges.first > 0 || edges.last < edges.words || left_x + pass_row(BLOCKS) > launch.width), first(ring),
          end(ring + pass_stages * stage_bytes), mine(find_column(thread / across * rows, thread % across * unit)),
          other(find_column(thread / beyond, (across + thread % beyond) * unit)), to(ring)
    {
    }

    __device__ __forceinline__ struct unit_column find_column(int row, int byte) const
    {
        struct unit_column column;
        column.row = row;
        column.byte = byte;
        column.is_inside = byte / 4 >= edges.first && byte / 4 < edges.last;
        column.offset = row * pitch + byte;
        column.from = tile.in + (top_y + row) * (ptrdiff_t)launch.in_row + left_x + byte;
        return column;
    }

    __device__ __forceinline__ void load_border(const struct unit_column &column, int y, int count) const
    {
        if (column.is_inside)
            load_border_column<unit>(tile.in + left_x + column.byte, launch.in_row, launch.height, launch.border,
                                     y + column.row, count, to + column.offset, pitch);
    }

    /* Start the copies of the next stage, if there is one. */
    __device__ __forceinline__ void load()
    {
        if (loaded < tile.rows + launch.filter_height - 1) {
            const int y = top_y + loaded;
            if (!edged && y >= 0 && y + pass_rows <= launch.height) {
                const uint8_t *from = mine.from;
#pragma unroll
                for (int k = 0; k < rows; k++) {
                    copy_start<unit, true>(to + mine.offset + k * pitch, from);
                    from += launch.in_row;
                }
                if (other.row < pass_rows)
                    copy_start<unit, true>(to + other.offset, other.from);
            } else {
                load_border(mine, y, rows);
                if (other.row < pass_rows)
                    load_border(other, y, 1);
                gather_edges(launch, tile.in, edges, y, pass_rows, left_x, to, pitch, thread, threads);
            }
        }
        copy_commit();
        loaded += pass_rows;
        mine.from += pass_rows * launch.in_row;
        other.from += pass_rows * launch.in_row;
        to = next_stage(to);
    }

    __device__ __forceinline__ uint32_t next_stage(uint32_t stage) const
    {
        return stage + stage_bytes == end ? first : stage + stage_bytes;
    }
};

/* ---- Outputs: from shared memory to memory ---- */

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

/* Outputs wait in one of two sets of rows until the next stage has begun. Then those of all warps are there, and whole
 * lines are stored: 16 outputs a thread in each round. */
struct pass_writer {
    static constexpr int line = pass_columns / 16; /* threads of a row */
    static constexpr int round_rows = 32 * pass_warps / line;

    int row;         /* the thread's row among the ROUND_ROWS that are stored at once */
    int left;        /* samples from its column to the image's right edge */
    bool full;       /* the tile's columns are all inside */
    uint32_t staged; /* its outputs in the first set */
    uint8_t *to;     /* its first output of the stage that is stored next */

    /* The first stage makes the outputs from row FIRST on. */
    __device__ __forceinline__ pass_writer(const struct launch &launch, const struct tile &tile, int first,
                                           uint32_t staging, int thread)
        : row(thread / line), left(launch.width - (tile.x + thread % line * 16)),
          full(tile.x + pass_columns <= launch.width), staged(staging + row * pass_staging + thread % line * 16),
          to(tile.out + (tile.y + first + row) * (ptrdiff_t)launch.out_row + tile.x + thread % line * 16)
    {
    }

    /* Store the set at OFFSET from the first, which has rows Q to Q + 31 of the tile's ROWS. */
    __device__ __forceinline__ void store(const struct launch &launch, uint32_t offset, int q, int rows)
    {
        const uint32_t from = staged + offset;
        if (full && q >= 0 && q + pass_rows <= rows) {
#pragma unroll
            for (int k = 0; k < pass_rows; k += round_rows)
                *(uint4 *)(to + k * launch.out_row) = read_shared16(from + k * pass_staging);
        } else if (left > 0) {
#pragma unroll 1
            for (int k = 0; k < pass_rows; k += round_rows)
                if ((unsigned)(q + row + k) < (unsigned)rows)
                    store_guarded16(to + k * launch.out_row, read_shared16(from + k * pass_staging), left);
        }
        to += pass_rows * launch.out_row;
    }
};

/* ---- Sums: from samples in the ring to outputs ---- */

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

/* A band matrix of PARTS parts, and its product with a window. A window starts at an even block of 16 or at an odd one.
 * Blocks are in registers in pairs, as products over 32 bytes need them. So an even window of three blocks is a pair
 * and half of the next pair; an odd one is half of a pair and the next pair. A window of two blocks is a pair, or
 * halves of two pairs. */
template <int BLOCKS, int PARTS, typename TAP>
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

    /* D = part P times the window + C. The window starts in the pair FIRST, in its upper half if ODD. */
    __device__ __forceinline__ void multiply(matrix &d, int p, bool odd, const uint32_t *first, const uint32_t *second,
                                             const matrix &c) const
    {
        if (!odd) {
            multiply32<TAP, uint8_t>(d, word[p], first, c);
            if constexpr (BLOCKS == 3)
                multiply16<TAP, uint8_t>(d, word[p] + 8, second[0], d);
        } else {
            multiply16<TAP, uint8_t>(d, word[p], first[1], c);
            if constexpr (BLOCKS == 3)
                multiply32<TAP, uint8_t>(d, word[p] + 4, second, d);
            else
                multiply16<TAP, uint8_t>(d, word[p] + 2, second[0], d);
        }
    }
};

/* 32 rows of a pair of blocks: for each 8 rows the 16 bytes of both blocks. */
typedef uint32_t sample_pair[4][2];

/* The bytes of 32 rows of a chunk's row sums: of columns 0 to 7, then 8 to 15; for each plane the upper 16 rows, then
 * the lower. */
template <int PLANES>
using sum_window = uint32_t[2][PLANES][2];

/* A lane's part of the taps, and how it sums with them. */
template <int BLOCKS, int PLANES, int PARTS, typename TAP, int LEVEL>
struct pass_sums {
    band<BLOCKS, PARTS, TAP> row_taps, column_taps;
    matrix start, zero = {};     /* the start of row sums, and of column sums */
    int base;                    /* 256 */
    uint32_t pair_at, single_at; /* where a lane reads a row of a pair of blocks, or of one block, in a stage */

    __device__ __forceinline__ pass_sums(const uint32_t *table, int warp, int lane)
        : pair_at(warp * pass_width + (lane / 16 * 8 + lane % 8) * pass_pitch(BLOCKS) + lane / 8 % 2 * 16),
          single_at(warp * pass_width + lane * pass_pitch(BLOCKS))
    {
        row_taps.load(table, lane);
        column_taps.load(table + PARTS * pass_words(BLOCKS) * 32, lane);
        /* Loaded from memory, so that the compiler keeps it in four registers (see tensor_walk). */
        const uint32_t *numbers = table + 2 * PARTS * pass_words(BLOCKS) * 32;
#pragma unroll
        for (int k = 0; k < 4; k++)
            start.v[k] = (int)__ldg(numbers + k);
        /* Loaded from memory, so that it stays a multiplication. The pipe for shifts is busy with packing and, for
         * LEVEL_SHIFT, with shifts of the sums. The pipe for multiplications is idle. */
        base = LEVEL == LEVEL_SHIFT && PARTS == 1 ? (int)__ldg(numbers + 4) : 256;
    }

    /* Read pair Q of the warp's blocks from STAGE. */
    __device__ __forceinline__ void read_pair(sample_pair &samples, uint32_t stage, int q) const
    {
        uint32_t word[4];
        if (BLOCKS == 2 && q == pass_chunks / 2) { /* only the first half of the last pair is used */
            read_matrices(word, stage + single_at + 32 * q);
#pragma unroll
            for (int k = 0; k < 4; k++)
                samples[k][0] = word[k], samples[k][1] = 0;
            return;
        }
#pragma unroll
        for (int j = 0; j < 4; j += 2) {
            read_matrices(word, stage + pair_at + 32 * q + 8 * j * pass_pitch(BLOCKS));
#pragma unroll
            for (int k = 0; k < 4; k++)
                samples[j + k / 2][k % 2] = word[k];
        }
    }

    /* The row sums of 8 rows. */
    __device__ __forceinline__ matrix row_sum(bool odd, const uint32_t *first, const uint32_t *second) const
    {
        matrix sum;
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            if (p > 0)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    sum.v[k] = sum.v[k] * base + start.v[k];
            row_taps.multiply(sum, p, odd, first, second, p > 0 ? sum : PARTS == 1 ? start : zero);
        }
        return sum;
    }

    /* The bytes of the row sums of 16 rows of chunk C, the B-th of the stage. PAIR and NEXT hold the samples. */
    __device__ __forceinline__ void sum_rows(int c, int b, const sample_pair &pair, const sample_pair &next,
                                             sum_window<PLANES> &sums) const
    {
        const matrix upper = row_sum(c % 2, pair[2 * b], next[2 * b]);
        const matrix lower = row_sum(c % 2, pair[2 * b + 1], next[2 * b + 1]);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const uint32_t s[4] = {(uint32_t)upper.v[2 * h], (uint32_t)upper.v[2 * h + 1], (uint32_t)lower.v[2 * h],
                                   (uint32_t)lower.v[2 * h + 1]};
            const uint32_t first = __byte_perm(s[0], s[1], 0x5410), second = __byte_perm(s[2], s[3], 0x5410);
            sums[h][0][b] = __byte_perm(first, second, 0x6420);
            sums[h][1][b] = __byte_perm(first, second, 0x7531);
            if (PLANES == 3)
                sums[h][PLANES - 1][b] =
                    __byte_perm(__byte_perm(s[0], s[1], 0x0062), __byte_perm(s[2], s[3], 0x0062), 0x5410);
        }
    }

    /* The sums of 16 rows of outputs of 8 columns, the O-th of the stage. Their window starts BLOCKS - 1 blocks of 16
     * rows before them: in OLD, or in NOW. */
    __device__ __forceinline__ matrix column_sum(int o, const uint32_t (&old)[PLANES][2],
                                                 const uint32_t (&now)[PLANES][2], int first) const
    {
        constexpr int highest = PLANES + PARTS - 2; /* weight of a product */
        const bool odd = (BLOCKS == 3) == (o == 1), in_now = BLOCKS == 2 && o == 1;
        matrix sum;
        bool begun = false;
#pragma unroll
        for (int w = highest; w >= 0; w--) {
            if (w < highest)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    sum.v[k] = sum.v[k] * base + (w == 0 ? first : 0);
#pragma unroll
            for (int p = 0; p < PARTS; p++) { /* part p is the digit PARTS - 1 - p */
                const int plane = w - (PARTS - 1 - p);
                if (plane < 0 || plane >= PLANES)
                    continue;
                column_taps.multiply(sum, p, odd, in_now ? now[plane] : old[plane], now[plane], begun ? sum : zero);
                begun = true;
            }
        }
        return sum;
    }

    /* The outputs of 32 rows of a chunk, to the staging's rows from TO on. */
    __device__ __forceinline__ void make_outputs(const struct tensor_launch &tensor, const sum_window<PLANES> &old,
                                                 const sum_window<PLANES> &now, uint32_t to, int lane) const
    {
        uint32_t words[4]; /* outputs of rows g, g + 8, g + 16, g + 24 */
#pragma unroll
        for (int o = 0; o < 2; o++) {
            const matrix left = column_sum(o, old[0], now[0], tensor.first);
            const matrix right = column_sum(o, old[1], now[1], tensor.first);
            int level[8];
#pragma unroll
            for (int k = 0; k < 8; k++)
                level[k] = quick_level<LEVEL>(tensor, k < 4 ? left.v[k] : right.v[k - 4]);
#pragma unroll
            for (int k = 0; k < 4; k += 2)
                words[2 * o + k / 2] = pack_pair(level[k], level[k + 1], pack_pair(level[4 + k], level[5 + k], 0));
        }
        write_matrices(to, words, lane);
    }
};

template <int BLOCKS, int PLANES, int PARTS, typename TAP, int LEVEL>
static __global__ void __launch_bounds__(32 * pass_warps, pass_resident(PLANES, PARTS))
    tensor_passes(const __grid_constant__ struct tensor_launch tensor)
{
#if __CUDA_ARCH__ >= 800
    constexpr int before = 16 * (BLOCKS - 1); /* rows of sums that a stage of samples is ahead of one of outputs */
    constexpr int set_bytes = pass_rows * pass_staging;
    extern __shared__ uint4 memory[];
    const int thread = (int)threadIdx.x, lane = thread % 32;
    const int warp = __shfl_sync(~0u, thread / 32, 0); /* so that the compiler sees that it is one for a warp */
    const struct tile tile = find_pass_tile(tensor, (int)blockIdx.x);
    const uint32_t ring = shared_address(memory);
    pass_loader<BLOCKS> loader(tensor, tile, ring);
#pragma unroll 1
    for (int s = 0; s < pass_stages - 1; s++)
        loader.load();

    const pass_sums<BLOCKS, PLANES, PARTS, TAP, LEVEL> sums(tensor.table, warp, lane);
    sum_window<PLANES> windows[2][pass_chunks] = {};
    pass_writer writer(tensor.launch, tile, -before, loader.end, thread);
    uint32_t stage = ring, offset = 0; /* addresses of the stage, and of the set of its outputs */
    int r = -before;                   /* the first row of outputs that the stage makes */
    auto work_on_stage = [&](const sum_window<PLANES>(&old)[pass_chunks], sum_window<PLANES>(&now)[pass_chunks]) {
        copy_wait<pass_stages - 2>();
        __syncthreads();
        loader.load();
        if (r > -before)
            writer.store(tensor.launch, offset ^ set_bytes, r - pass_rows, tile.rows);
        sample_pair samples[3];
        sums.read_pair(samples[0], stage, 0);
#pragma unroll
        for (int c = 0; c < pass_chunks; c++) {
            const int q = c / 2; /* the chunk's window starts in this pair, and ends in the next */
            if (c % 2 == 0)
                sums.read_pair(samples[(q + 1) % 3], stage, q + 1);
#pragma unroll
            for (int b = 0; b < 2; b++)
                sums.sum_rows(c, b, samples[q % 3], samples[(q + 1) % 3], now[c]);
            sums.make_outputs(tensor, old[c], now[c], loader.end + warp * pass_width + offset + 16 * c, lane);
        }
        offset ^= set_bytes;
        r += pass_rows;
        stage = loader.next_stage(stage);
    };
    /* Two stages a round, so that old and new registers need not be exchanged. */
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
    writer.store(tensor.launch, offset ^ set_bytes, r - pass_rows, tile.rows);
#else
    __trap(); /* no body: the launch fails */
#endif
}

#endif
