/* SPDX-License-Identifier: MIT
 *
 * Vectors for encode_loops.c: one, two or four lanes; and plain ones for other processors. */
#ifndef GPUCONV_JPEG_ENCODE_VECTORS_H
#define GPUCONV_JPEG_ENCODE_VECTORS_H

#include "jpeg/encode_loops.h"
#include "jpeg/vectors.h"

#include <string.h>

typedef words loose_words __attribute__((aligned(2), may_alias));

INLINE words load(const int16_t *from)
{
    return *(const loose_words *)from;
}

INLINE void store(int16_t *to, words value)
{
    *(loose_words *)to = value;
}

static const uint8_t natural_order[JPEG_BLOCK] = JPEG_NATURAL_ORDER;

#ifdef INTRINSIC

/* The high halves of products of unsigned numbers. */
BINARY(words, multiply_high, mulhi_epu16)

#else

typedef uint32_t bits32 __attribute__((vector_size(VECTOR)));

/* Word i of the result is word I of A, or word I - 8 of B. */
#if defined(__clang__) || __GNUC__ >= 12
#define CHOOSE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CHOOSE(a, b, ...) __builtin_shuffle(a, b, (words){__VA_ARGS__})
#endif
#define INTERLEAVE(name, ...)                                                                                          \
    INLINE words name(words a, words b)                                                                                \
    {                                                                                                                  \
        return CHOOSE(a, b, __VA_ARGS__);                                                                              \
    }
INTERLEAVE(first16, 0, 8, 1, 9, 2, 10, 3, 11)
INTERLEAVE(last16, 4, 12, 5, 13, 6, 14, 7, 15)
INTERLEAVE(first32, 0, 1, 8, 9, 2, 3, 10, 11)
INTERLEAVE(last32, 4, 5, 12, 13, 6, 7, 14, 15)
INTERLEAVE(first64, 0, 1, 2, 3, 8, 9, 10, 11)
INTERLEAVE(last64, 4, 5, 6, 7, 12, 13, 14, 15)

/* The halves of 32 bits are the words, in the machine's order. */
INLINE ints multiply_pairs(words a, words b)
{
    const ints low_a = (ints)((bits32)a << 16) >> 16, low_b = (ints)((bits32)b << 16) >> 16;
    return low_a * low_b + ((ints)a >> 16) * ((ints)b >> 16);
}

INLINE words multiply_high(words a, words b)
{
    const bits32 low = ((bits32)a & 0xffff) * ((bits32)b & 0xffff), high = ((bits32)a >> 16) * ((bits32)b >> 16);
    return (words)(low >> 16 | (high & 0xffff0000));
}

INLINE words pack_ints(ints a, ints b)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return CHOOSE((words)a, (words)b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
    return CHOOSE((words)a, (words)b, 1, 3, 5, 7, 9, 11, 13, 15);
#endif
}

#endif

/* ---- What differs ---- */

/* load_row: the same 8 words in each lane.
 * load_pixels: 16 bytes for each lane, STEP bytes apart.
 * shuffle: each lane's bytes at the places that PLACES has, or 0 for 128.
 * pack_in_order: as pack_ints, but A comes before B as a whole.
 * store_zigzag: store the blocks, whose rows are ROWS, in zigzag order, at places AT of BLOCKS_. */

#if VECTOR == 64

INLINE words load_row(const void *from)
{
    return (words)_mm512_broadcast_i32x4(_mm_loadu_si128(from));
}

INLINE words load_pixels(const uint8_t *from, size_t step)
{
    const __m512i low = _mm512_inserti32x4(_mm512_castsi128_si512(_mm_loadu_si128((const void *)from)),
                                           _mm_loadu_si128((const void *)(from + step)), 1);
    const __m256i high =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)(from + 2 * step))),
                                _mm_loadu_si128((const void *)(from + 3 * step)), 1);
    return (words)_mm512_inserti64x4(low, high, 1);
}

INLINE words shuffle(words value, words places)
{
    return (words)_mm512_shuffle_epi8(AS(value), AS(places));
}

INLINE words pack_in_order(ints a, ints b)
{
    return (words)_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), AS(pack_ints(a, b)));
}

INLINE void store_block(__m512i top, __m512i bottom, int at, struct jpeg_blocks *blocks)
{
    const __m512i first = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)natural_order));
    const __m512i last = _mm512_cvtepu8_epi16(_mm256_loadu_si256((const void *)(natural_order + 32)));
    const __m512i low = _mm512_permutex2var_epi16(top, first, bottom);
    const __m512i high = _mm512_permutex2var_epi16(top, last, bottom);
    _mm512_store_si512(blocks->coefficients[at], low);
    _mm512_store_si512(blocks->coefficients[at] + 32, high);
    blocks->nonzero[at] = _mm512_test_epi16_mask(low, low) | (uint64_t)_mm512_test_epi16_mask(high, high) << 32;
}

INLINE void store_zigzag(const words rows[8], const int at[BLOCKS], struct jpeg_blocks *blocks)
{
    __m512i half[2][BLOCKS];
    for (int i = 0; i < 2; i++) {
        const words *row = rows + 4 * i;
        const __m512i a = _mm512_shuffle_i32x4(AS(row[0]), AS(row[1]), 0x44);
        const __m512i b = _mm512_shuffle_i32x4(AS(row[0]), AS(row[1]), 0xee);
        const __m512i c = _mm512_shuffle_i32x4(AS(row[2]), AS(row[3]), 0x44);
        const __m512i d = _mm512_shuffle_i32x4(AS(row[2]), AS(row[3]), 0xee);
        half[i][0] = _mm512_shuffle_i32x4(a, c, 0x88);
        half[i][1] = _mm512_shuffle_i32x4(a, c, 0xdd);
        half[i][2] = _mm512_shuffle_i32x4(b, d, 0x88);
        half[i][3] = _mm512_shuffle_i32x4(b, d, 0xdd);
    }
    for (int i = 0; i < BLOCKS; i++)
        store_block(half[0][i], half[1][i], at[i], blocks);
}

#elif VECTOR == 32

INLINE words load_row(const void *from)
{
    return (words)_mm256_broadcastsi128_si256(_mm_loadu_si128(from));
}

INLINE words load_pixels(const uint8_t *from, size_t step)
{
    return (words)_mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128((const void *)from)),
                                          _mm_loadu_si128((const void *)(from + step)), 1);
}

INLINE words shuffle(words value, words places)
{
    return (words)_mm256_shuffle_epi8(AS(value), AS(places));
}

INLINE words pack_in_order(ints a, ints b)
{
    return (words)_mm256_permute4x64_epi64(AS(pack_ints(a, b)), 0xd8);
}

/* The bytes of a row that eight coefficients take from it: N is a place in natural order. */
#define BYTE(n, row, i) (n) / 8 == (row) ? 2 * ((n) % 8) + (i) : 128
#define WORD(n, row) BYTE(n, row, 0), BYTE(n, row, 1)
#define PLACES(row, a, b, c, d, e, f, g, h)                                                                            \
    {                                                                                                                  \
        WORD(a, row), WORD(b, row), WORD(c, row), WORD(d, row), WORD(e, row), WORD(f, row), WORD(g, row), WORD(h, row) \
    }
#define PLACES_OF_ALL_ROWS(...)                                                                                        \
    {                                                                                                                  \
        PLACES(0, __VA_ARGS__), PLACES(1, __VA_ARGS__), PLACES(2, __VA_ARGS__), PLACES(3, __VA_ARGS__),                \
            PLACES(4, __VA_ARGS__), PLACES(5, __VA_ARGS__), PLACES(6, __VA_ARGS__), PLACES(7, __VA_ARGS__)             \
    }

static const uint8_t zigzag_places[8][8][LANE] = {
    PLACES_OF_ALL_ROWS(0, 1, 8, 16, 9, 2, 3, 10),       PLACES_OF_ALL_ROWS(17, 24, 32, 25, 18, 11, 4, 5),
    PLACES_OF_ALL_ROWS(12, 19, 26, 33, 40, 48, 41, 34), PLACES_OF_ALL_ROWS(27, 20, 13, 6, 7, 14, 21, 28),
    PLACES_OF_ALL_ROWS(35, 42, 49, 56, 57, 50, 43, 36), PLACES_OF_ALL_ROWS(29, 22, 15, 23, 30, 37, 44, 51),
    PLACES_OF_ALL_ROWS(58, 59, 52, 45, 38, 31, 39, 46), PLACES_OF_ALL_ROWS(53, 60, 61, 54, 47, 55, 62, 63),
};

/* Eight coefficients, which are in rows FIRST to LAST. */
INLINE words gather(const words rows[8], int group, int first, int last)
{
    words to = {0};
    for (int row = first; row <= last; row++)
        to |= shuffle(rows[row], load_row(zigzag_places[group][row]));
    return to;
}

INLINE void store_zigzag(const words rows[8], const int at[BLOCKS], struct jpeg_blocks *blocks)
{
    const words zigzag[8] = {gather(rows, 0, 0, 2), gather(rows, 1, 0, 4), gather(rows, 2, 1, 6),
                             gather(rows, 3, 0, 3), gather(rows, 4, 4, 7), gather(rows, 5, 1, 6),
                             gather(rows, 6, 3, 7), gather(rows, 7, 5, 7)};
    uint64_t zeros[2] = {0};
    for (int i = 0; i < 8; i += 2) {
        const words a = zigzag[i], b = zigzag[i + 1];
        const uint32_t bits = (uint32_t)_mm256_movemask_epi8(_mm256_packs_epi16(AS(a == 0), AS(b == 0)));
        zeros[0] |= (uint64_t)(bits & 0xffff) << 8 * i;
        zeros[1] |= (uint64_t)(bits >> 16) << 8 * i;
        for (int k = i; k < i + 2; k++) {
            _mm_store_si128((void *)(blocks->coefficients[at[0]] + 8 * k), _mm256_castsi256_si128(AS(zigzag[k])));
            _mm_store_si128((void *)(blocks->coefficients[at[1]] + 8 * k), _mm256_extracti128_si256(AS(zigzag[k]), 1));
        }
    }
    blocks->nonzero[at[0]] = ~zeros[0];
    blocks->nonzero[at[1]] = ~zeros[1];
}

#else

INLINE words load_row(const void *from)
{
    words to;
    memcpy(&to, from, sizeof to);
    return to;
}

INLINE words pack_in_order(ints a, ints b)
{
    return pack_ints(a, b);
}

INLINE void store_zigzag(const words rows[8], const int at[BLOCKS], struct jpeg_blocks *blocks)
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
