/* SPDX-License-Identifier: MIT
 *
 * From natural order to zigzag order. A vector has a block in each quad. */
#ifndef GPUCONV_JPEG_ENCODE_VECTORS_H
#define GPUCONV_JPEG_ENCODE_VECTORS_H

#include "base/vector/vector.h"
#include "jpeg/encode_loops.h"

#include <string.h>

enum { BLOCKS = QUADS };

static const uint8_t natural_order[JPEG_BLOCK] = JPEG_NATURAL_ORDER;

/* store_zigzag: store the blocks, whose rows are ROWS, in zigzag order, at the indices AT of BLOCKS. */

#if VECTOR == 64

INLINE void store_block(raw top, raw bottom, int at, struct jpeg_blocks *blocks)
{
    const raw first = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)natural_order));
    const raw last = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(natural_order + 32)));
    const raw low = _mm512_permutex2var_epi16(top, first, bottom);
    const raw high = _mm512_permutex2var_epi16(top, last, bottom);
    _mm512_store_si512(blocks->coefficients[at], low);
    _mm512_store_si512(blocks->coefficients[at] + 32, high);
    blocks->nonzero[at] = _mm512_test_epi16_mask(low, low) | (uint64_t)_mm512_test_epi16_mask(high, high) << 32;
}

INLINE void store_zigzag(const shorts rows[8], const int at[BLOCKS], struct jpeg_blocks *blocks)
{
    raw half[2][BLOCKS];
    for (int i = 0; i < 2; i++) {
        const shorts *row = rows + 4 * i;
        const raw a = _mm512_shuffle_i32x4((raw)row[0], (raw)row[1], 0x44);
        const raw b = _mm512_shuffle_i32x4((raw)row[0], (raw)row[1], 0xee);
        const raw c = _mm512_shuffle_i32x4((raw)row[2], (raw)row[3], 0x44);
        const raw d = _mm512_shuffle_i32x4((raw)row[2], (raw)row[3], 0xee);
        half[i][0] = _mm512_shuffle_i32x4(a, c, 0x88);
        half[i][1] = _mm512_shuffle_i32x4(a, c, 0xdd);
        half[i][2] = _mm512_shuffle_i32x4(b, d, 0x88);
        half[i][3] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    for (int i = 0; i < BLOCKS; i++)
        store_block(half[0][i], half[1][i], at[i], blocks);
}

#elif VECTOR == 32

/* The bytes of a row that eight coefficients take from it: N is an index in natural order. */
#define BYTE(n, row, i) (n) / 8 == (row) ? 2 * ((n) % 8) + (i) : 128
#define WORD(n, row) BYTE(n, row, 0), BYTE(n, row, 1)
#define INDICES(row, a, b, c, d, e, f, g, h)                                                                           \
    {                                                                                                                  \
        WORD(a, row), WORD(b, row), WORD(c, row), WORD(d, row), WORD(e, row), WORD(f, row), WORD(g, row), WORD(h, row) \
    }
#define INDICES_OF_ALL_ROWS(...)                                                                                       \
    {                                                                                                                  \
        INDICES(0, __VA_ARGS__), INDICES(1, __VA_ARGS__), INDICES(2, __VA_ARGS__), INDICES(3, __VA_ARGS__),            \
            INDICES(4, __VA_ARGS__), INDICES(5, __VA_ARGS__), INDICES(6, __VA_ARGS__), INDICES(7, __VA_ARGS__)         \
    }

static const uint8_t zigzag_indices[8][8][QUAD] = {
    INDICES_OF_ALL_ROWS(0, 1, 8, 16, 9, 2, 3, 10),       INDICES_OF_ALL_ROWS(17, 24, 32, 25, 18, 11, 4, 5),
    INDICES_OF_ALL_ROWS(12, 19, 26, 33, 40, 48, 41, 34), INDICES_OF_ALL_ROWS(27, 20, 13, 6, 7, 14, 21, 28),
    INDICES_OF_ALL_ROWS(35, 42, 49, 56, 57, 50, 43, 36), INDICES_OF_ALL_ROWS(29, 22, 15, 23, 30, 37, 44, 51),
    INDICES_OF_ALL_ROWS(58, 59, 52, 45, 38, 31, 39, 46), INDICES_OF_ALL_ROWS(53, 60, 61, 54, 47, 55, 62, 63),
};

/* Eight coefficients, which are in rows FIRST to LAST. */
INLINE shorts gather_coefficients(const shorts rows[8], int group, int first, int last)
{
    shorts to = {0};
    for (int row = first; row <= last; row++)
        to |= shuffle(rows[row], load_quad(zigzag_indices[group][row]));
    return to;
}

INLINE void store_zigzag(const shorts rows[8], const int at[BLOCKS], struct jpeg_blocks *blocks)
{
    const shorts zigzag[8] = {gather_coefficients(rows, 0, 0, 2), gather_coefficients(rows, 1, 0, 4),
                              gather_coefficients(rows, 2, 1, 6), gather_coefficients(rows, 3, 0, 3),
                              gather_coefficients(rows, 4, 4, 7), gather_coefficients(rows, 5, 1, 6),
                              gather_coefficients(rows, 6, 3, 7), gather_coefficients(rows, 7, 5, 7)};
    uint64_t zeros[2] = {0};
    for (int i = 0; i < 8; i += 2) {
        const shorts a = zigzag[i], b = zigzag[i + 1];
        const uint32_t bits = (uint32_t)_mm256_movemask_epi8((raw)pack_shorts(a == 0, b == 0));
        zeros[0] |= (uint64_t)(bits & 0xffff) << 8 * i;
        zeros[1] |= (uint64_t)(bits >> 16) << 8 * i;
        for (int k = i; k < i + 2; k++) {
            _mm_store_si128((void *)(blocks->coefficients[at[0]] + 8 * k), quad(zigzag[k], 0));
            _mm_store_si128((void *)(blocks->coefficients[at[1]] + 8 * k), quad(zigzag[k], 1));
        }
    }
    blocks->nonzero[at[0]] = ~zeros[0];
    blocks->nonzero[at[1]] = ~zeros[1];
}

#elif defined(__aarch64__) && !defined(GPUCONV_PORTABLE)

INLINE void store_zigzag(const shorts rows[8], const int at[BLOCKS], struct jpeg_blocks *blocks)
{
    static const uint8_t bits[QUAD] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16x4_t top, bottom;
    uchars nonzero[JPEG_SIDE];
    memcpy(&top, rows, sizeof top);
    memcpy(&bottom, rows + 4, sizeof bottom);
    for (int i = 0; i < JPEG_SIDE; i++) {
        /* The indices of both bytes of eight coefficients. An index beyond one table selects from the other. */
        const uchars indices = (uchars)(vmovl_u8(vld1_u8(natural_order + JPEG_SIDE * i)) * 0x202 + 0x100);
        const uchars zigzag = vqtbx4q_u8(vqtbl4q_u8(top, indices), bottom, indices - sizeof top);
        store_shorts(blocks->coefficients[at[0]] + JPEG_SIDE * i, (shorts)zigzag);
        nonzero[i] = (uchars)((shorts)zigzag != 0);
    }
    for (int i = 0; i < JPEG_SIDE / 2; i++)
        nonzero[i] = vuzp1q_u8(nonzero[2 * i], nonzero[2 * i + 1]) & vld1q_u8(bits);
    const uchars sums = vpaddq_u8(vpaddq_u8(nonzero[0], nonzero[1]), vpaddq_u8(nonzero[2], nonzero[3]));
    blocks->nonzero[at[0]] = (uint64_t)((longs)vpaddq_u8(sums, sums))[0];
}

#else

INLINE void store_zigzag(const shorts rows[8], const int at[BLOCKS], struct jpeg_blocks *blocks)
{
    int16_t natural[JPEG_BLOCK], *to = blocks->coefficients[at[0]];
    uint64_t nonzero = 0;
    memcpy(natural, rows, sizeof natural);
    for (int i = 0; i < JPEG_BLOCK; i++) {
        to[i] = natural[natural_order[i]];
        nonzero |= (uint64_t)(to[i] != 0) << i;
    }
    blocks->nonzero[at[0]] = nonzero;
}

#endif

#endif
