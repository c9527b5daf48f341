/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of blur: products of bytes, sums of weights to m and to outputs. blur.cu explains the numbers. */
#ifndef GPUCONV_BLUR_SUMS_CUH
#define GPUCONV_BLUR_SUMS_CUH

#include "kernels/shared/copies.cuh"
#include "kernels/shared/products.cuh"
#include "kernels/shared/tile.cuh"

#include <type_traits>

static constexpr int step_rows = 32;         /* rows of samples, and of outputs, that are worked on at a time */
static constexpr int eights = step_rows / 8; /* groups of 8 rows, or of 8 columns */

/* The bytes of a tap, and of m. */
template <typename T>
constexpr int parts_of = (int)sizeof(T) + 1;

/* The COUNT blocks of 32 terms from FIRST on. In the others, a part of the taps is all zero. */
struct used_blocks {
    int first, count;
};

/* ---- Rounding ---- */

/* The initial value of the sums of a row, so that m is rounded. Then, m from its sums of all weights. */
template <int PARTS>
static __device__ __forceinline__ uint32_t row_start(const struct passes &passes, int weight)
{
    return PARTS == 3 ? (weight == 1 ? (uint32_t)(passes.row_half >> 8) : 0)
                      : (weight == 0 ? (uint32_t)passes.row_half : 0);
}

template <int PARTS>
static __device__ __forceinline__ uint32_t row_sum(const struct passes &passes, const uint32_t *sum)
{
    if constexpr (PARTS == 3) /* row_shift is at least 16 */
        return ((((sum[0] >> 8) + sum[1]) >> 8) + sum[2] + (sum[3] << 8)) >> (passes.row_shift - 16);
    else
        return (sum[0] + (sum[1] << 8)) >> passes.row_shift;
}

/* The output of a column's sums, rounded; it is the highest byte for uint8_t. The scale of uint8_t is 2^24 (see
 * arrange), and that of uint16_t at least 2^28. */
template <int PARTS>
static __device__ __forceinline__ uint32_t column_start(const struct passes &passes, int weight)
{
    return PARTS == 3 ? (weight == 3 ? (uint32_t)(passes.half >> 24) : 0) : weight == 2 ? 1 << 7 : 0;
}

template <int PARTS>
static __device__ __forceinline__ uint32_t column_level(const struct passes &passes, const uint32_t *sum)
{
    if constexpr (PARTS == 3)
        return ((((((sum[0] >> 8) + sum[1]) >> 8) + sum[2]) >> 8) + sum[3] + (sum[4] << 8)) >>
               (passes.scale_shift - 24);
    else
        return sum[0] + (sum[1] << 8) + (sum[2] << 16);
}

/* How far a sample is above the blur of an unsharp mask: as passes_detail, from the column's sums. */
template <typename T, int WEIGHTS>
static __device__ __forceinline__ int unsharp_detail(const struct passes &passes, const uint32_t *sum, int in)
{
    uint32_t blur;
    if constexpr (sizeof(T) == 1) {
        blur = (sum[0] + (sum[1] << 8) + (sum[2] << 16) + (1 << 15)) >> 16; /* the scale is 2^24; below 2^32 */
    } else {
        const uint64_t upper = ((((sum[0] >> 8) + sum[1]) >> 8) + sum[2]) + ((uint64_t)sum[3] << 8) +
                               ((uint64_t)sum[WEIGHTS - 1] << 16); /* the whole / 2^16 */
        blur = (uint32_t)((upper + (uint64_t)(passes.half >> 24)) >> (passes.scale_shift - UNSHARP_LEVEL_BITS - 16));
    }
    return (in << UNSHARP_LEVEL_BITS) - (int)blur;
}

/* ---- Products, and the rows of m between them ---- */

/* All matrices of a part of the taps are in one list of words: word w has the tap at offset w - 15 from an output to a
 * term, and those of the lane's three next terms. A lane needs four words of each block of 32 terms: those of an output
 * and of the one BELOW, and the same for the terms that are 16 further. The next block is 32 words further. Here is the
 * first word. The outputs of a row are in an order that makes four of a lane neighbours, and terms may be PAIRED from
 * both halves of 16. */
static __host__ __device__ constexpr int lane_word(int lane, bool of_rows, bool paired)
{
    return 15 + (paired ? 2 : 4) * (lane % 4) - (of_rows ? lane / 8 * 4 + lane / 4 % 2 : lane / 4);
}

static __host__ __device__ constexpr int below(bool of_rows)
{
    return of_rows ? 2 : 8;
}

/* Loads what a lane has of the matrices of one block of terms after the other: from the words, in shared memory, or
 * from the matrices, in device memory. */
template <int PARTS, bool OF_ROWS>
struct word_taps {
    uint32_t at, part_bytes;

    __device__ __forceinline__ void load(uint32_t (&taps)[PARTS][4])
    {
        constexpr int down = 4 * below(OF_ROWS);
#pragma unroll
        for (int p = 0; p < PARTS; p++) {
            const uint32_t from = at + p * part_bytes;
            taps[p][0] = read_shared(from), taps[p][1] = read_shared(from - down);
            taps[p][2] = read_shared(from + 64), taps[p][3] = read_shared(from + 64 - down);
        }
        at += 32 * 4;
    }
};

template <int PARTS>
struct matrix_taps {
    const uint4 *at;

    __device__ __forceinline__ void load(uint32_t (&taps)[PARTS][4])
    {
#pragma unroll
        for (int p = 0; p < PARTS; p++, at += 32) {
            const uint4 four = __ldg(at);
            taps[p][0] = four.x, taps[p][1] = four.y, taps[p][2] = four.z, taps[p][3] = four.w;
        }
    }
};

/* Add the products of PARTS parts of taps and COUNT bytes of 8 rows or columns each to the sums of their weights.
 * Unless ALL, the parts of the taps that are zero in block K are left out. */
template <bool ALL, int PARTS, int COUNT>
static __device__ __forceinline__ void
add_products(matrix (&sum)[PARTS + COUNT - 1][eights], const uint32_t (&taps)[PARTS][4],
             const uint32_t (&values)[COUNT][eights][2], const struct used_blocks *used, int k)
{
#pragma unroll
    for (int p = 0; p < PARTS; p++)
        if (ALL || p == 0 || (unsigned)(k - used[p].first) < (unsigned)used[p].count)
#pragma unroll
            for (int i = 0; i < COUNT; i++)
#pragma unroll
                for (int j = 0; j < eights; j++)
                    multiply32<uint8_t, uint8_t>(sum[p + i][j], taps[p], values[i][j], sum[p + i][j]);
}

/* The bytes of 32 samples of 32 rows, from a stage. */
static __device__ __forceinline__ void read_samples(uint32_t at, int pitch, uint32_t (&samples)[1][eights][2])
{
#pragma unroll
    for (int j = 0; j < eights; j += 2) {
        uint32_t word[4];
        read_matrices(word, at + 8 * j * pitch);
#pragma unroll
        for (int k = 0; k < 4; k++)
            samples[0][j + k / 2][k % 2] = word[k];
    }
}

static __device__ __forceinline__ void read_samples(uint32_t at, int pitch, uint32_t (&samples)[2][eights][2])
{
#pragma unroll
    for (int j = 0; j < eights; j++) {
        uint32_t word[4];
        read_matrices(word, at + 8 * j * pitch);
#pragma unroll
        for (int k = 0; k < 4; k++) /* low bytes, then high ones */
            samples[k / 2][j][k % 2] = __byte_perm(word[2 * (k % 2)], word[2 * (k % 2) + 1], k < 2 ? 0x6420 : 0x7531);
    }
}

/* The bytes of 32 rows of 8 columns each from the ring's block AT and the next. */
template <int PARTS>
static __device__ __forceinline__ void read_sums(uint32_t at, uint32_t ring_bytes, uint32_t (&sums)[PARTS][eights][2])
{
#pragma unroll
    for (int i = 0; i < PARTS; i++)
#pragma unroll
        for (int j = 0; j < eights; j += 2) {
            uint32_t word[4];
            read_matrices(word, at + i * ring_bytes + 128 * j);
#pragma unroll
            for (int k = 0; k < 4; k++)
                sums[i][j + k / 2][k % 2] = word[k];
        }
}

/* Element K of the sums of all weights. */
template <int WEIGHTS>
static __device__ __forceinline__ void take_sums(const matrix (&sum)[WEIGHTS][eights], int eight, int k,
                                                 uint32_t (&taken)[WEIGHTS])
{
#pragma unroll
    for (int w = 0; w < WEIGHTS; w++)
        taken[w] = (uint32_t)sum[w][eight].v[k];
}

/* Write the bytes of m of a block of 16 rows to the ring: of column g and then of g + 8 the rows 2 t, 2 t + 1, 8 + 2 t
 * and 9 + 2 t. B is the block among those of ROW. */
template <int PARTS, int WEIGHTS>
static __device__ __forceinline__ void write_block(const struct passes &passes, const matrix (&row)[WEIGHTS][eights],
                                                   int b, uint32_t to, uint32_t ring_bytes)
{
#pragma unroll
    for (int h = 0; h < 2; h++) {
        uint32_t m[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            uint32_t sum[WEIGHTS];
            take_sums(row, 2 * b + e / 2, 2 * h + e % 2, sum);
            m[e] = row_sum<PARTS>(passes, sum);
        }
#pragma unroll
        for (int i = 0; i < PARTS; i += 2) {
            const uint32_t upper = __byte_perm(m[0], m[1], i == 0 ? 0x5140 : 0x7362);
            const uint32_t lower = __byte_perm(m[2], m[3], i == 0 ? 0x5140 : 0x7362);
            write_shared(to + h * 128 + i * ring_bytes, __byte_perm(upper, lower, 0x5410));
            if (i + 1 < PARTS)
                write_shared(to + h * 128 + (i + 1) * ring_bytes, __byte_perm(upper, lower, 0x7632));
        }
    }
}

/* ---- Outputs ---- */

/* Sample K of four in words. */
template <typename T>
static __device__ __forceinline__ int sample_of(const uint32_t *words, int k)
{
    return sizeof(T) == 1 ? (int)(words[0] >> 8 * k & 255) : (int)(words[k / 2] >> 16 * (k % 2) & 65535);
}

/* Four outputs side by side as words. For uint8_t they are in the highest bytes. */
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

/* Words of four samples or outputs side by side: of a row and of the eighth row below, each of two chunks of 16
 * columns. */
template <typename T>
using quads = uint32_t[2][2][sizeof(T)];

/* The samples of a lane's outputs, for an unsharp mask. They are arbitrary outside the image. */
template <typename T>
static __device__ __forceinline__ void load_quads(const struct launch &launch, const struct tile &tile, int x,
                                                  int out_y, quads<T> &in)
{
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int y = tile.y + out_y + 8 * (k % 2), from_x = x + 16 * (k / 2);
        const bool is_inside = y < launch.height && from_x >= 0 && from_x < launch.width;
        const unsigned char *const row =
            tile.in + (is_inside ? (size_t)y * launch.in_row + from_x * (int)sizeof(T) : 0);
        if constexpr (sizeof(T) == 1) {
            in[k % 2][k / 2][0] = __ldg((const uint32_t *)row);
        } else {
            const uint2 two = __ldg((const uint2 *)row);
            in[k % 2][k / 2][0] = two.x;
            in[k % 2][k / 2][1] = two.y;
        }
    }
}

/* The outputs of sums of columns. For an unsharp mask, bit 4 k + e of the result is set if there is detail in output e
 * of chunk k / 2 and row k % 2. */
template <typename T, int PARTS, bool UNSHARP, int WEIGHTS>
static __device__ __forceinline__ uint32_t finish_quads(const struct passes &passes,
                                                        const matrix (&column)[WEIGHTS][eights], const quads<T> &in,
                                                        quads<T> &out)
{
    uint32_t marks = 0;
#pragma unroll
    for (int k = 0; k < eights; k++) {
        const int c = k / 2, r = k % 2; /* the chunk and the row */
        uint32_t level[4];
#pragma unroll
        for (int e = 0; e < 4; e++) {
            uint32_t sum[WEIGHTS];
            take_sums(column, 2 * c + e / 2, 2 * r + e % 2, sum);
            if (UNSHARP) {
                const int sample = sample_of<T>(in[r][c], e), detail = unsharp_detail<T, WEIGHTS>(passes, sum, sample);
                level[e] = (uint32_t)passes_unsharp(&passes, sample, detail) << (sizeof(T) == 1 ? 24 : 0);
                marks |= passes_has_detail(&passes, detail) ? 1u << (4 * k + e) : 0;
            } else {
                level[e] = column_level<PARTS>(passes, sum);
            }
        }
        pack_four(level, out[r][c]);
    }
    return marks;
}

/* Set the byte of each output whose bit in BITS, from finish_quads, is set. TO is the byte of the lane's first output,
 * at (Y, X). */
static __device__ __forceinline__ void store_marks(const struct launch &launch, uint32_t bits, unsigned char *to,
                                                   size_t pitch, int y, int x)
{
    for (; bits != 0; bits &= bits - 1) {
        const int bit = __ffs((int)bits) - 1, down = 8 * (bit / 4 % 2), right = 16 * (bit / 8) + bit % 4;
        if (y + down < launch.height && x + right >= 0 && x + right < launch.width)
            to[down * pitch + right] = 1;
    }
}

/* Lanes exchange outputs, so that each has eight side by side. Odd lanes get those of the second chunk. Each lane
 * stores its outputs in ROWS rows. LEFT samples are inside the image. */
template <typename T>
static __device__ __forceinline__ void store_quads(const quads<T> &out, bool odd, unsigned char *to, size_t out_row,
                                                   int rows, int left)
{
    constexpr int words = (int)sizeof(T);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        uint32_t eight[2 * words];
#pragma unroll
        for (int k = 0; k < words; k++) {
            const uint32_t other = __shfl_xor_sync(~0u, odd ? out[r][0][k] : out[r][1][k], 1);
            eight[k] = odd ? other : out[r][0][k];
            eight[words + k] = odd ? out[r][1][k] : other;
        }
        if (8 * r < rows)
            store_eight(to + 8 * r * out_row, eight, left, T());
    }
}

#endif
