/* SPDX-License-Identifier: MIT
 *
 * blur: filters in two passes (struct filter), of up to 1701 taps a side, by the integer matrix units: blurs, unsharp
 * masks, wide boxes. Samples are uint8_t or uint16_t.
 *
 * Both passes are products of bytes with band matrices, as in tensor-core. A block walks down a strip of 32, 64 or 128
 * columns, 16 rows of samples and 32 of outputs at a time, with a warp for each 16 columns:
 *
 *     row taps         samples, in shared memory       rounded sums m of the rows, in a ring in shared memory
 *     [a b c . . ]     [32 samples of 8 rows,]         [blocks of 16 rows: of each column, 16 bytes side by side,]
 *     [. a b c . ]  x  [block after block    ]  ---->  [for each byte of m                                       ]
 *     [. . a b c ]
 *
 *     column taps      m, two blocks at a time         outputs
 *     [d e f . . ]     [32 rows of 8 columns,]         [16 rows of]
 *     [. d e f . ]  x  [pair after pair      ]  ---->  [ 8 columns]
 *
 * A lane's part of the first product is also its part of the second operand: rows 2 t, 2 t + 1, 8 + 2 t and 9 + 2 t of
 * column g, for lane (g, t) = (lane / 4, lane % 4). The operand should have rows 4 t to 4 t + 3 there, but the terms of a
 * sum may have any order, and the matrix of column taps has its columns in the same order. The rows of the first matrix,
 * which are columns of the image, are ordered so that a lane ends with four outputs side by side.
 *
 * Numbers: a sample has 1 or 2 bytes, a tap PARTS, and m PLANES, all unsigned. The products of byte i of one and byte j of
 * the other are added up in the sum of weight i + j, below 3 * 1728 * 255^2 < 2^31. The whole, sum(weight w) * 256^w, has
 * up to 53 bits, but only its upper bits are needed: floor(floor(a / 256) + b) = floor((a + 256 b) / 256), so the sums are
 * joined from the lowest on, with a shift and an addition each, in 32 bits.
 *
 * gaussian:8 of 16 bits has 81 taps, so its windows have 96 samples: 6 * 96 and 9 * 96 multiply-adds of bytes an output.
 * Loads: each sample once from memory; the halos of strips come from L2.
 *
 * Limits: filters in two passes whose ring fits in a block's shared memory. */
#include "kernels/shared/conv.cuh"
#include "kernels/shared/copies.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static constexpr int parts_most = 3;     /* bytes of a tap */
static constexpr int width_most = 128;   /* columns of a strip */
static constexpr int stages = 3;         /* of rows of samples; one of them is being worked on */
static constexpr int step_rows = 32;     /* rows of outputs that are made at a time */
static constexpr int segment_most = 4;   /* blocks of 32 samples of a window that are loaded at a time */
static constexpr int matrix_bytes = 512; /* 16 x 32: taps of a part for 16 outputs and 32 terms */
static_assert((width_most - 16 + 32 * segment_most) * 2 <= 32 * 16, "a warp loads a row at once, 16 bytes a lane");

/* The COUNT blocks of 32 terms from FIRST on. In the others, a part of the taps is all zero. */
struct used_blocks {
    int first, count;
};

/* The argument of the kernel. */
struct blur_call {
    struct launch launch;
    struct passes passes;
    const uint4 *row_taps, *column_taps; /* a matrix for each block of terms and part, 16 bytes a lane */
    struct used_blocks row_used[parts_most], column_used[parts_most];
    int strip;            /* output rows of a tile */
    int columns, tiles_y; /* tiles side by side, and one below the other */
    int tile_width;
    int shift;                     /* columns to the left of the image that the first tile also covers */
    int lead;                      /* samples from the first of a window to its first output */
    int row_blocks, column_blocks; /* of 32 terms in a window */
    int segment;                   /* of row_blocks that are loaded at a time */
    int pitch;                     /* bytes from a row of samples to the next */
    int kernel_blocks;             /* BLOCKS of the kernel */
    int high;                      /* blocks of 16 rows that the outputs of 16 rows need */
};

/* D += A B. A is taps, 16 rows of 32 bytes: a.x and a.y are 16 bytes of rows g and g + 8, a.z and a.w another 16. B is 32
 * bytes of 8 columns: b0 is 16 bytes of column g, b1 another 16. */
static __device__ __forceinline__ void multiply(uint32_t (&d)[4], const uint4 &a, uint32_t b0, uint32_t b1)
{
#if __CUDA_ARCH__ >= 800
    asm("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
        : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b0), "r"(b1));
#else
#define MMA8(c0, c1, a, b)                                                                                             \
    asm("mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 {%0,%1}, {%2}, {%3}, {%0,%1};"                                 \
        : "+r"(c0), "+r"(c1)                                                                                           \
        : "r"(a), "r"(b))
    MMA8(d[0], d[1], a.x, b0);
    MMA8(d[2], d[3], a.y, b0);
    MMA8(d[0], d[1], a.z, b1);
    MMA8(d[2], d[3], a.w, b1);
#endif
}

/* Samples of a copy. */
template <typename T>
constexpr int unit = 16 / (int)sizeof(T);

/* Load those of UNITS units of ROWS rows from row Y and column X on that are not wholly inside the image, a word of 4 bytes
 * at a time. The threads share the work. Not inlined, and called with values instead of the launch, because few stages
 * need it. */
template <typename T>
static __device__ __noinline__ void load_border(const unsigned char *plane, size_t in_row, int width, int height,
                                                enum border border, int y, int rows, int x, int units, uint32_t to,
                                                int pitch)
{
    constexpr int word = 4 / (int)sizeof(T); /* samples of 4 bytes */
    const bool rows_inside = y >= 0 && y + rows <= height;
    const int before = x < 0 ? min((-x + unit<T> - 1) / unit<T>, units) : 0; /* units that begin left of the image */
    const int after = max(min((width - x) / unit<T>, units), before);        /* the first that ends right of it */
    const int count = 4 * (rows_inside ? before + units - after : units);    /* words of a row that are loaded here */
#pragma unroll 1
    for (int k = (int)threadIdx.x; k < rows * count; k += (int)blockDim.x) {
        const int r = k / count, i = k % count;
        const int w = i + (rows_inside && i >= 4 * before ? 4 * (after - before) : 0);
        const int from_y = border_index(y + r, height, border), from_x = x + w * word;
        const T *const row = (const T *)(plane + (size_t)max(from_y, 0) * in_row);
        uint32_t four = 0;
        if (from_y >= 0 && from_x >= 0 && from_x + word <= width)
            four = *(const uint32_t *)(row + from_x);
        else
            for (int b = 0; b < word && from_y >= 0; b++) {
                const int from = border_index(from_x + b, width, border);
                four |= (from < 0 ? 0 : (uint32_t)row[from]) << 8 * (int)sizeof(T) * b;
            }
        write_shared(to + r * pitch + 4 * w, four);
    }
}

/* What the sums of a row start with, so that m is rounded; then m from its sums of all weights. */
template <int PARTS>
static __device__ __forceinline__ uint32_t row_start(const struct passes &passes, int weight)
{
    return PARTS == 3 ? (weight == 1 ? (uint32_t)(passes.row_half >> 8) : 0)
                      : (weight == 0 ? (uint32_t)passes.row_half : 0);
}

template <int PARTS, int WEIGHTS>
static __device__ __forceinline__ uint32_t row_sum(const struct passes &passes, const uint32_t *sum)
{
    if constexpr (PARTS == 3) /* row_shift is at least 16 */
        return ((((sum[0] >> 8) + sum[1]) >> 8) + sum[2] + (sum[3] << 8)) >> (passes.row_shift - 16);
    else
        return (sum[0] + (WEIGHTS == 2 ? sum[WEIGHTS - 1] << 8 : 0)) >> passes.row_shift;
}

/* The whole sum of a column. */
template <int WEIGHTS>
static __device__ __forceinline__ int64_t whole_sum(const uint32_t *sum)
{
    int64_t whole = sum[WEIGHTS - 1];
#pragma unroll
    for (int w = WEIGHTS - 2; w >= 0; w--)
        whole = (whole << 8) + sum[w];
    return whole;
}

/* The same for a column and its output, which is the highest byte for uint8_t. The scale of uint8_t is 2^24 (see arrange),
 * and that of uint16_t at least 2^28. A box adds its half at the end. */
template <int PARTS>
static __device__ __forceinline__ uint32_t column_start(const struct passes &passes, int weight)
{
    return PARTS == 3 ? (weight == 3 ? (uint32_t)(passes.half >> 24) : 0) : PARTS == 2 && weight == 2 ? 1 << 7 : 0;
}

template <typename T, int PARTS, int WEIGHTS>
static __device__ __forceinline__ uint32_t column_level(const struct passes &passes, const uint32_t *sum)
{
    if constexpr (PARTS == 3)
        return ((((((sum[0] >> 8) + sum[1]) >> 8) + sum[2]) >> 8) + sum[3] + (sum[4] << 8)) >>
               (passes.scale_shift - 24);
    else if constexpr (PARTS == 2)
        return sum[0] + (sum[1] << 8) + (sum[2] << 16);
    /* A box, whose scale is no power of two: see rounding16_make, with S + B below 2^40. */
    return (uint32_t)(((double)(whole_sum<WEIGHTS>(sum) + passes.half) + 0.5) / (double)passes.scale)
           << (sizeof(T) == 1 ? 24 : 0);
}

/* The output of an unsharp mask: as passes_level, with the blur from the column's sums. */
template <typename T, int WEIGHTS>
static __device__ __forceinline__ uint32_t unsharp_level(const struct passes &passes, const uint32_t *sum, int in)
{
    uint32_t blur;
    if constexpr (sizeof(T) == 1) {
        blur = (sum[0] + (sum[1] << 8) + (sum[2] << 16) + (1 << 15)) >> 16; /* the scale is 2^24; below 2^32 */
    } else {
        const uint64_t upper = ((((sum[0] >> 8) + sum[1]) >> 8) + sum[2]) + ((uint64_t)sum[3] << 8) +
                               ((uint64_t)sum[WEIGHTS - 1] << 16); /* the whole / 2^16 */
        blur = (uint32_t)((upper + (uint64_t)(passes.half >> 24)) >> (passes.scale_shift - UNSHARP_LEVEL_BITS - 16));
    }
    /* passes_unsharp, without branches. */
    constexpr int bits = UNSHARP_LEVEL_BITS + UNSHARP_AMOUNT_BITS;
    const int e = (in << UNSHARP_LEVEL_BITS) - (int)blur;
    const int moved = in + (int)(((int64_t)passes.amount * e + ((int64_t)1 << (bits - 1))) >> bits);
    const int level = abs(e) < passes.threshold ? in : min(max(moved, 0), sizeof(T) == 1 ? 255 : 65535);
    return (uint32_t)level << (sizeof(T) == 1 ? 24 : 0);
}

/* Sample K of four in words. */
template <typename T>
static __device__ __forceinline__ int sample_of(const uint32_t *words, int k)
{
    return sizeof(T) == 1 ? (int)(words[0] >> 8 * k & 255) : (int)(words[k / 2] >> 16 * (k % 2) & 65535);
}

/* Four outputs side by side as words. Those of uint8_t are in the highest bytes. */
static __device__ __forceinline__ void pack_four(const uint32_t (&level)[4], uint32_t (&word)[1])
{
    word[0] = __byte_perm(__byte_perm(level[0], level[1], 0x0073), __byte_perm(level[2], level[3], 0x0073), 0x5410);
}

static __device__ __forceinline__ void pack_four(const uint32_t (&level)[4], uint32_t (&word)[2])
{
    word[0] = level[0] | level[1] << 16;
    word[1] = level[2] | level[3] << 16;
}

/* Store eight samples side by side. Only the first LEFT are inside the image. */
static __device__ __forceinline__ void store_eight(unsigned char *to, const uint32_t (&word)[2], int left, uint8_t)
{
    if (left >= 8)
        *(uint2 *)to = make_uint2(word[0], word[1]);
    else
#pragma unroll 1
        for (int k = 0; k < left; k++)
            to[k] = (uint8_t)((k < 4 ? word[0] : word[1]) >> 8 * (k % 4));
}

static __device__ __forceinline__ void store_eight(unsigned char *to, const uint32_t (&word)[4], int left, uint16_t)
{
    if (left >= 8)
        *(uint4 *)to = make_uint4(word[0], word[1], word[2], word[3]);
    else
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (k < left)
                ((uint16_t *)to)[k] = (uint16_t)(word[k / 2] >> 16 * (k % 2));
}

/* Blocks of a window that a kernel of its own takes, at most. */
template <typename T>
constexpr int blocks_most = sizeof(T) == 2 ? 2 : 3;

/* Rows of samples of a stage. With fewer, sums take fewer registers; with more, a matrix of taps meets more samples. Large
 * windows need the latter, as there are many such matrices. */
static __host__ __device__ constexpr int stage_rows_of(int blocks)
{
    return blocks > 0 ? 16 : 32;
}

/* Blocks of threads whose registers a multiprocessor must hold. */
template <typename T>
static __host__ __device__ constexpr int resident(int blocks)
{
    return sizeof(T) == 2 ? 2 + (blocks > 0) : 3 + (blocks == 1);
}

/* BLOCKS of 32 terms in both windows, or 0: any number. */
template <typename T, int PARTS, int PLANES, bool UNSHARP, int BLOCKS>
static __global__ void __launch_bounds__(2 * width_most, resident<T>(BLOCKS))
    blur(const __grid_constant__ struct blur_call call)
{
    constexpr int bytes = (int)sizeof(T), row_weights = bytes + PARTS - 1, column_weights = PLANES + PARTS - 1;
    constexpr int stage_rows = stage_rows_of(BLOCKS), halves = step_rows / stage_rows; /* stages of a step */
    constexpr int tiles = stage_rows / 8;                                              /* of 8 rows, or of 8 columns */
    const int row_blocks = BLOCKS > 0 ? BLOCKS : call.row_blocks, segment = BLOCKS > 0 ? BLOCKS : call.segment;
    const int column_blocks = BLOCKS > 0 ? BLOCKS : call.column_blocks;
    extern __shared__ uint4 memory[];
    const struct launch &launch = call.launch;
    const int lane = (int)threadIdx.x % 32, warps = (int)blockDim.x / 32;
    /* One lane sends it to the others, so that the compiler sees that it is the same for a warp. */
    const int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
    const int across = (int)blockIdx.x / call.columns, plane_index = across / call.tiles_y;
    const int tile_x = ((int)blockIdx.x - across * call.columns) * call.tile_width - call.shift;
    const int tile_y = (across - plane_index * call.tiles_y) * call.strip;
    const int rows = min(call.strip, launch.height - tile_y);
    const unsigned char *const plane = launch.in + plane_index * launch.in_plane;
    unsigned char *const out_plane = launch.out + plane_index * launch.out_plane;

    const uint32_t first_stage = shared_address(memory), stage_bytes = (uint32_t)(stage_rows * call.pitch);
    const uint32_t ring = first_stage + stages * stage_bytes;
    const uint32_t block_bytes = 16 * (uint32_t)call.tile_width;         /* of 16 rows, one byte of m */
    const uint32_t ring_bytes = (uint32_t)(call.high + 1) * block_bytes; /* of one byte of m */

    /* A stage is `segment` blocks of the windows of some rows. A warp loads every `warps`-th row, a lane 16 bytes of it. */
    const int groups = (rows + 15) / 16, steps = (groups + call.high) / 2;
    int load_y = tile_y - launch.anchor_y, load_block = 0; /* of the next stage */
    const int load_end = load_y + steps * step_rows;
    const unsigned char *load_from =
        plane + (load_y + warp) * (ptrdiff_t)launch.in_row + (tile_x - call.lead) * bytes + 16 * lane;
    const ptrdiff_t next_from = warps * (ptrdiff_t)launch.in_row;
    const uint32_t next_to = warps * call.pitch, load_lane = warp * call.pitch + 16 * lane;
    uint32_t load_to = first_stage;
    int load_x, load_units; /* of the stage; and is a lane's unit inside the image, and are all? */
    bool lane_inside, all_inside;
    auto set_columns = [&]() {
        load_x = tile_x - call.lead + 32 * load_block;
        load_units = (call.tile_width - 16 + 32 * min(segment, row_blocks - load_block)) / unit<T>;
        const int x = load_x + lane * unit<T>;
        lane_inside = lane < load_units && x >= 0 && x + unit<T> <= launch.width;
        all_inside = load_x >= 0 && load_x + load_units * unit<T> <= launch.width;
    };
    set_columns();
    auto load_stage = [&]() {
        if (load_y < load_end) {
            const bool rows_inside = load_y >= 0 && load_y <= launch.height - stage_rows;
            if (rows_inside && lane_inside) {
                const unsigned char *from = load_from + 32 * bytes * load_block;
                uint32_t to = load_to + load_lane;
#pragma unroll 1
                for (int r = 0; r < stage_rows; r += 2 * warps) {
                    copy_start<16, true>(to, from);
                    copy_start<16, true>(to + next_to, from + next_from);
                    from += 2 * next_from;
                    to += 2 * next_to;
                }
            }
            if (!rows_inside || !all_inside)
                load_border<T>(plane, launch.in_row, launch.width, launch.height, launch.border, load_y, stage_rows,
                               load_x, load_units, load_to, call.pitch);
        }
        copy_commit();
        load_to = load_to == first_stage + (stages - 1) * stage_bytes ? first_stage : load_to + stage_bytes;
        if (BLOCKS == 0) {
            load_block = load_block + segment < row_blocks ? load_block + segment : 0;
            set_columns();
            if (load_block > 0)
                return;
        }
        load_y += stage_rows;
        load_from += stage_rows * (ptrdiff_t)launch.in_row;
    };
#pragma unroll 1
    for (int k = 0; k < stages - 1; k++)
        load_stage();

    /* Of samples: lane l gives the address of row l % 8 of matrix l / 8. For uint16_t, the four matrices are 32 samples of
     * 8 rows; for uint8_t, 32 samples of 16 rows. */
    const uint32_t first_from = first_stage + warp * 16 * bytes +
                                (bytes == 2 ? lane % 8 * call.pitch + lane / 8 * 16
                                            : (lane / 16 * 8 + lane % 8) * call.pitch + lane / 8 % 2 * 16);
    uint32_t from = first_from;

    /* Of the ring: 8 columns of a block and of the next, then the next 8 columns. */
    const int column_group = warp / 2, row_group = warp % 2; /* of a warp's outputs: 32 columns of 16 rows */
    const uint32_t ring_lane = ring + (column_group * 32 + lane / 16 * 8 + lane % 8) * 16;
    const uint32_t ring_to = ring + (warp * 16 + lane / 4) * 16 + lane % 4 * 4;
    uint32_t write_at = 0;                 /* the ring's place of the next block */
    int group = 1 - call.high + row_group; /* the warp's next 16 rows of outputs */
    const bool odd = lane % 2 != 0;
    const int x = tile_x + column_group * 32 + lane % 4 * 4; /* of four outputs of the first chunk of columns */
    const int to_x = odd ? x + 12 : x;                       /* of eight */
    int out_y = 16 * group + lane / 4;                       /* and eight rows below that */
    unsigned char *to = out_plane + (tile_y + out_y) * (ptrdiff_t)launch.out_row + to_x * bytes;
    /* The place of its first block, or the next: block 1 - high is 2 modulo high + 1. */
    uint32_t read_at = (2 + row_group + lane / 8 % 2) % (call.high + 1) * block_bytes;

#pragma unroll 1
    for (int step = 0; step < steps; step++) {
#pragma unroll 1
        for (int half = 0; half < halves; half++) {
            uint32_t row[row_weights][tiles][4];
#pragma unroll
            for (int w = 0; w < row_weights; w++)
#pragma unroll
                for (int k = 0; k < 4 * tiles; k++)
                    row[w][k / 4][k % 4] = row_start<PARTS>(call.passes, w);
            const uint4 *taps_at = call.row_taps + lane;
            for (int k = 0; k < row_blocks;) {
                copy_wait<stages - 2>();
                __syncthreads();
                load_stage();
                const int end = min(k + segment, row_blocks);
#pragma unroll(BLOCKS > 0 ? BLOCKS : 1)
                for (uint32_t at = from; k < end; k++, at += 32 * bytes, taps_at += PARTS * 32) {
                    uint4 taps[PARTS];
#pragma unroll
                    for (int p = 0; p < PARTS; p++)
                        taps[p] = __ldg(taps_at + p * 32);
                    uint32_t samples[tiles][bytes][2]; /* of 8 rows: bytes and halves */
#pragma unroll
                    for (int j = 0; j < tiles; j += 3 - bytes) { /* 8 rows at a time, or 16 */
                        uint32_t word[4];
                        read_matrices(word, at + 8 * j * call.pitch);
#pragma unroll
                        for (int k = 0; k < 4; k++)
                            samples[j + k / 2 * (2 - bytes)][k / 2 * (bytes - 1)][k % 2] =
                                bytes == 1
                                    ? word[k]
                                    : __byte_perm(word[2 * (k % 2)], word[2 * (k % 2) + 1], k < 2 ? 0x6420 : 0x7531);
                    }
#pragma unroll
                    for (int p = 0; p < PARTS; p++)
                        if (BLOCKS > 0 || p == 0 ||
                            (unsigned)(k - call.row_used[p].first) < (unsigned)call.row_used[p].count)
#pragma unroll
                            for (int i = 0; i < bytes; i++)
#pragma unroll
                                for (int j = 0; j < tiles; j++)
                                    multiply(row[p + i][j], taps[p], samples[j][i][0], samples[j][i][1]);
                }
                from = from == first_from + (stages - 1) * stage_bytes ? first_from : from + stage_bytes;
            }
            /* Blocks of 16 rows: of columns g and g + 8, the bytes of rows 2 t, 2 t + 1, 8 + 2 t and 9 + 2 t. */
#pragma unroll
            for (int b = 0; b < tiles / 2; b++) {
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    uint32_t m[4];
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        uint32_t sum[row_weights];
#pragma unroll
                        for (int w = 0; w < row_weights; w++)
                            sum[w] = row[w][2 * b + e / 2][2 * h + e % 2];
                        m[e] = row_sum<PARTS, row_weights>(call.passes, sum);
                    }
                    const uint32_t at = ring_to + write_at + h * 128;
#pragma unroll
                    for (int i = 0; i < PLANES; i += 2) {
                        const uint32_t upper = __byte_perm(m[0], m[1], i == 0 ? 0x5140 : 0x7362);
                        const uint32_t lower = __byte_perm(m[2], m[3], i == 0 ? 0x5140 : 0x7362);
                        write_shared(at + i * ring_bytes, __byte_perm(upper, lower, 0x5410));
                        if (i + 1 < PLANES)
                            write_shared(at + (i + 1) * ring_bytes, __byte_perm(upper, lower, 0x7632));
                    }
                }
                write_at = write_at + block_bytes == ring_bytes ? 0 : write_at + block_bytes;
            }
        }
        __syncthreads();

        if (group >= 0 && group < groups) {
            constexpr int words = bytes; /* of four outputs */
            uint32_t four[2][2][words];  /* of a row and of the eighth row below; of each chunk of columns */
            uint32_t in[2][2][words];    /* the same of samples, for an unsharp mask; any where there is no output */
            if (UNSHARP)
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    const int y = tile_y + out_y + 8 * (k % 2), from_x = x + 16 * (k / 2);
                    const bool is_inside = y < launch.height && from_x >= 0 && from_x < launch.width;
                    const unsigned char *const row =
                        plane + (is_inside ? (size_t)y * launch.in_row + from_x * bytes : 0);
                    if constexpr (words == 1) {
                        in[k % 2][k / 2][0] = __ldg((const uint32_t *)row);
                    } else {
                        const uint2 two = __ldg((const uint2 *)row);
                        in[k % 2][k / 2][0] = two.x;
                        in[k % 2][k / 2][words - 1] = two.y;
                    }
                }
#pragma unroll
            for (int half = 0; half < halves; half++) {
                uint32_t column[column_weights][tiles][4];
#pragma unroll
                for (int w = 0; w < column_weights; w++)
#pragma unroll
                    for (int k = 0; k < 4 * tiles; k++)
                        column[w][k / 4][k % 4] = UNSHARP ? 0 : column_start<PARTS>(call.passes, w);
                uint32_t at = read_at;
                const uint4 *taps_at = call.column_taps + lane;
#pragma unroll(BLOCKS > 0 ? BLOCKS : 1)
                for (int k = 0; k < column_blocks; k++, taps_at += PARTS * 32) {
                    uint4 taps[PARTS];
#pragma unroll
                    for (int p = 0; p < PARTS; p++)
                        taps[p] = __ldg(taps_at + p * 32);
                    uint32_t word[PLANES][tiles / 2][4];
#pragma unroll
                    for (int i = 0; i < PLANES; i++)
#pragma unroll
                        for (int c = 0; c < tiles / 2; c++)
                            read_matrices(word[i][c], ring_lane + i * ring_bytes + at + 256 * (half + c));
#pragma unroll
                    for (int p = 0; p < PARTS; p++)
                        if (BLOCKS > 0 || p == 0 ||
                            (unsigned)(k - call.column_used[p].first) < (unsigned)call.column_used[p].count)
#pragma unroll
                            for (int i = 0; i < PLANES; i++)
#pragma unroll
                                for (int j = 0; j < tiles; j++)
                                    multiply(column[p + i][j], taps[p], word[i][j / 2][2 * (j % 2)],
                                             word[i][j / 2][2 * (j % 2) + 1]);
                    at += 2 * block_bytes;
                    at -= at >= ring_bytes ? ring_bytes : 0;
                }
#pragma unroll
                for (int k = 0; k < tiles; k++) {
                    const int c = half + k / 2, r = k % 2; /* the chunk and the row */
                    uint32_t level[4];
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        uint32_t sum[column_weights];
#pragma unroll
                        for (int w = 0; w < column_weights; w++)
                            sum[w] = column[w][k / 2 * 2 + e / 2][2 * r + e % 2];
                        level[e] = UNSHARP
                                       ? unsharp_level<T, column_weights>(call.passes, sum, sample_of<T>(in[r][c], e))
                                       : column_level<T, PARTS, column_weights>(call.passes, sum);
                    }
                    pack_four(level, four[r][c]);
                }
            }
            /* Lanes exchange outputs, so that each has eight side by side: the odd ones those of the second chunk. */
#pragma unroll
            for (int r = 0; r < 2; r++) {
                uint32_t eight[2 * words];
#pragma unroll
                for (int k = 0; k < words; k++) {
                    const uint32_t other = __shfl_xor_sync(~0u, odd ? four[r][0][k] : four[r][1][k], 1);
                    eight[k] = odd ? other : four[r][0][k];
                    eight[words + k] = odd ? four[r][1][k] : other;
                }
                if (out_y + 8 * r < rows && to_x >= 0)
                    store_eight(to + 8 * r * launch.out_row, eight, launch.width - to_x, T());
            }
        }
        group += 2;
        out_y += step_rows;
        to += step_rows * (ptrdiff_t)launch.out_row;
        read_at += 2 * block_bytes;
        read_at -= read_at >= ring_bytes ? ring_bytes : 0;
    }
}

/* ---- The table of taps ---- */

/* Write the matrices of VECTOR: for each block of 32 terms and each part, 16 bytes for each lane. The first output has its
 * first tap over term LEAD. OF_ROWS: outputs are columns, in the order that makes four of a lane neighbours. PAIRED: terms
 * are in pairs from both halves of 16. TO is all zeros. Returns the place after them. */
static uint32_t *fill_matrices(const int32_t *vector, int count, int factor, int parts, int blocks, int lead,
                               bool of_rows, bool paired, uint32_t *to)
{
    for (int b = 0; b < blocks; b++)
        for (int p = 0; p < parts; p++)
            for (int word = 0; word < 128; word++, to++) {
                const int lane = word / 4, t = lane % 4, m = lane / 4, below = word % 2;
                const int output = of_rows ? m / 2 * 4 + 2 * below + m % 2 : m + 8 * below;
                for (int e = 0; e < 4; e++) {
                    const int term = 32 * b + word % 4 / 2 * 16 + (paired ? 2 * t + e % 2 + 8 * (e / 2) : 4 * t + e);
                    const int at = term - lead - output;
                    if (at >= 0 && at < count)
                        *to |= ((uint32_t)(vector[at] * factor) >> 8 * p & 255) << 8 * e;
                }
            }
    return to;
}

static struct used_blocks find_used(const int32_t *vector, int count, int factor, int part, int lead)
{
    int first = count, last = -1; /* taps */
    for (int k = 0; k < count; k++)
        if ((uint32_t)(vector[k] * factor) >> 8 * part & 255) {
            first = k < first ? k : first;
            last = k;
        }
    if (last < 0)
        return {0, 0};
    first = (lead + first) / 32; /* a tap is over as many terms as there are outputs */
    return {first, (lead + last + 15) / 32 - first + 1};
}

/* What all taps are multiplied by: those of the row so that row_shift of uint16_t is at least 16, and those of the column so
 * that the scale of uint8_t is 2^24. They still have as many bytes. */
struct factors {
    int row, column;
};

/* The numbers of a launch that follow from the filter and the sample type alone. */
static struct factors arrange(const struct plan *plan, int *parts, struct blur_call *call)
{
    struct factors factors = {1, 1};
    const struct filter *f = plan->filter;
    *parts = f->row_shift == 0 ? 1 : plan->sample == SAMPLE_U16 ? 3 : 2;
    call->passes = plan->passes;
    for (; *parts == 3 && call->passes.row_shift < 16; factors.row *= 2) {
        call->passes.row_shift++;
        call->passes.row_half *= 2;
    }
    for (; *parts == 2 && call->passes.scale_shift < 24; factors.column *= 2) {
        call->passes.scale_shift++;
        call->passes.scale *= 2;
        call->passes.half *= 2;
    }
    call->lead = (f->anchor_x + 7) / 8 * 8;
    call->shift = plan->sample == SAMPLE_U16 ? 0 : (16 - call->lead % 16) % 16; /* copies are aligned to 16 bytes */
    call->row_blocks = (call->lead - f->anchor_x + f->width + 15 + 31) / 32;
    call->column_blocks = (f->height + 15 + 31) / 32;
    call->high = (f->height + 15 + 15) / 16;
    const int blocks = call->row_blocks > call->column_blocks ? call->row_blocks : call->column_blocks;
    if (*parts > 1 && f->amount == 0 &&
        blocks <= (plan->sample == SAMPLE_U16 ? blocks_most<uint16_t> : blocks_most<uint8_t>))
        call->row_blocks = call->column_blocks = call->kernel_blocks = blocks;
    const int segments = (call->row_blocks + segment_most - 1) / segment_most;
    call->segment = (call->row_blocks + segments - 1) / segments;
    for (int p = 0; p < *parts; p++) {
        call->row_used[p] = find_used(f->row, f->width, factors.row, p, call->lead - f->anchor_x);
        call->column_used[p] = find_used(f->column, f->height, factors.column, p, 0);
    }
    return factors;
}

extern "C" bool blur_prepare(struct plan *plan, struct device *device, struct error *error)
{
    const struct filter *f = plan->filter;
    struct blur_call call = {};
    int parts;
    const struct factors factors = arrange(plan, &parts, &call);
    const size_t bytes = (size_t)matrix_bytes * parts * (call.row_blocks + call.column_blocks);
    uint32_t *table = (uint32_t *)calloc(1, bytes);
    if (table == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for the taps of %s; close other programs", f->name);
    uint32_t *to = fill_matrices(f->row, f->width, factors.row, parts, call.row_blocks, call.lead - f->anchor_x, true,
                                 plan->sample == SAMPLE_U16, table);
    fill_matrices(f->column, f->height, factors.column, parts, call.column_blocks, 0, false, true, to);
    const bool done = upload_table(device, table, bytes, error);
    free(table);
    return done;
}

/* ---- The launch ---- */

typedef void blur_function(struct blur_call);

template <typename T, int PARTS, int PLANES, bool UNSHARP>
static blur_function *kernel_of_blocks(int blocks)
{
    if constexpr (blocks_most<T> >= 3)
        if (blocks == 3)
            return blur<T, PARTS, PLANES, UNSHARP, 3>;
    return blocks == 1   ? blur<T, PARTS, PLANES, UNSHARP, 1>
           : blocks == 2 ? blur<T, PARTS, PLANES, UNSHARP, 2>
                         : blur<T, PARTS, PLANES, UNSHARP, 0>;
}

/* The kernel, and the bytes of its m. */
static blur_function *choose_kernel(const struct plan *plan, const struct blur_call *call, int parts, int *planes)
{
    const bool deep = plan->sample == SAMPLE_U16, unsharp = plan->passes.amount != 0;
    const int blocks = call->kernel_blocks;
    *planes = (deep ? 3 : 2) + (parts == 1);
    if (parts == 1)
        return deep ? blur<uint16_t, 1, 4, false, 0> : blur<uint8_t, 1, 3, false, 0>;
    return deep      ? unsharp ? kernel_of_blocks<uint16_t, 3, 3, true>(blocks)
                               : kernel_of_blocks<uint16_t, 3, 3, false>(blocks)
                : unsharp ? kernel_of_blocks<uint8_t, 2, 2, true>(blocks)
                     : kernel_of_blocks<uint8_t, 2, 2, false>(blocks);
}

/* Set the strip's width and the pitch. Returns the bytes of shared memory of a block. The rows of eight samples that a
 * warp reads at a time should be in all banks, so the pitch is an odd multiple of 16 bytes if PADDED. */
static size_t set_width(struct blur_call *call, int width, bool padded, int planes, enum sample sample)
{
    call->tile_width = width;
    call->pitch = (width - 16 + 32 * call->segment) * (int)sample_bytes(sample);
    call->pitch += padded && call->pitch / 16 % 2 == 0 ? 16 : 0;
    return (size_t)(stages * stage_rows_of(call->kernel_blocks) * call->pitch) +
           (size_t)planes * (size_t)(call->high + 1) * 16 * (size_t)width;
}

/* Choose the widest strip that two blocks of a multiprocessor have room for, else the narrowest, and load less of the
 * windows at a time if that does not fit. Returns the bytes of shared memory of a block. */
static size_t choose_width(struct blur_call *call, int planes, enum sample sample, size_t block_shared)
{
    size_t shared = 0;
    for (int width = width_most; width >= 32; width /= 2) {
        shared = set_width(call, width, true, planes, sample);
        if (2 * (shared + 1024) <= block_shared + 1024) /* CUDA takes 1 KB of each block */
            return shared;
    }
    while (shared > block_shared && call->segment > 1) {
        call->segment--;
        shared = set_width(call, 32, true, planes, sample);
    }
    return shared > block_shared ? set_width(call, 32, false, planes, sample) : shared;
}

/* Choose the rows of a strip with the least total time: the waves of the blocks that run at one time, times the rows of a
 * block and its halo. Blocks are not equally fast: those at the border take longer. So the blocks of a later wave fill the
 * gaps of the one before, and the number of waves need not be whole. */
static void choose_strip(struct blur_call *call, const struct filter *f, const struct plane *in, double resident)
{
    double best = 0;
    call->columns = (in->width + call->shift + call->tile_width - 1) / call->tile_width;
    for (int steps = 1; steps <= (in->height + step_rows - 1) / step_rows; steps += steps < 64 ? 1 : steps / 8) {
        const int strip = steps * step_rows, tiles_y = (in->height + strip - 1) / strip;
        const double waves = (double)call->columns * tiles_y * in->count / resident;
        const double cost = (fmax(waves, 1) + 0.5) * (strip + f->height + step_rows);
        if (best == 0 || cost < best) {
            best = cost;
            call->strip = strip;
            call->tiles_y = tiles_y;
        }
    }
}

extern "C" bool blur_launch(const struct plan *plan, struct device *device, const struct plane *in,
                            const struct plane *out, struct error *error)
{
    const struct device_info *facts = device_facts(device);
    struct blur_call call = {};
    int parts, planes;
    arrange(plan, &parts, &call);
    blur_function *kernel = choose_kernel(plan, &call, parts, &planes);
    call.launch = make_launch(plan, in, out);
    call.row_taps = (const uint4 *)device_table(device);
    call.column_taps = call.row_taps + (size_t)parts * call.row_blocks * matrix_bytes / sizeof(uint4);
    const size_t shared = choose_width(&call, planes, plan->sample, facts->block_shared);
    if (shared > facts->block_shared)
        return error_set(error, ERROR_WORK,
                         "%s needs %zu bytes of shared memory, and a block of %s has %zu; use --backend cpu",
                         plan->filter->name, shared, facts->name, facts->block_shared);
    const int threads = 2 * call.tile_width,
              by_registers = (plan->sample == SAMPLE_U16 ? resident<uint16_t>(call.kernel_blocks)
                                                         : resident<uint8_t>(call.kernel_blocks)) *
                             2 * width_most / threads;
    const int by_memory = (int)(facts->block_shared / shared);
    choose_strip(&call, plan->filter, in,
                 (double)facts->multiprocessors * (by_memory < by_registers ? by_memory : by_registers));
    CUDA_TRY(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shared),
             error);
    const dim3 grid((unsigned)call.columns * (unsigned)call.tiles_y * (unsigned)in->count);
    kernel<<<grid, (unsigned)threads, shared, device_stream(device)>>>(call);
    CUDA_TRY(cudaGetLastError(), error);
    return true;
}
