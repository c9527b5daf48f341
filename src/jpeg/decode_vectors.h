/* SPDX-License-Identifier: MIT
 *
 * Vectors for the decoder on x86-64. A vector has one or two lanes of 128 bits. A lane has eight words: a row of a block.
 * All lanes do the same, so BLOCKS blocks are transformed at once. */
#ifndef GPUCONV_JPEG_DECODE_VECTORS_H
#define GPUCONV_JPEG_DECODE_VECTORS_H

#include "jpeg/bits.h"

#include <immintrin.h>

#ifdef __AVX2__
#define VECTOR 32
#define INTRINSIC(name) _mm256_##name
#define AS(value) ((__m256i)(value))
#else
#define VECTOR 16
#define INTRINSIC(name) _mm_##name
#define AS(value) ((__m128i)(value))
#endif

enum { LANE = 16, BLOCKS = VECTOR / LANE };

typedef int16_t words __attribute__((vector_size(VECTOR)));
typedef int32_t ints __attribute__((vector_size(VECTOR)));

#define BINARY(type, name, intrinsic)                                                                                  \
    INLINE type name(type a, type b)                                                                                   \
    {                                                                                                                  \
        return (type)INTRINSIC(intrinsic)(AS(a), AS(b));                                                               \
    }

/* Sums and products that wrap. */
BINARY(words, add, add_epi16)
BINARY(words, subtract, sub_epi16)
BINARY(words, multiply, mullo_epi16)
BINARY(words, multiply_high, mulhi_epi16)
BINARY(ints, add_ints, add_epi32)
BINARY(ints, subtract_ints, sub_epi32)

/* Interleave the first or the last halves of two lanes, in units of 8, 16, 32 or 64 bits. */
BINARY(words, first8, unpacklo_epi8)
BINARY(words, last8, unpackhi_epi8)
BINARY(words, first16, unpacklo_epi16)
BINARY(words, last16, unpackhi_epi16)
BINARY(words, first32, unpacklo_epi32)
BINARY(words, last32, unpackhi_epi32)
BINARY(words, first64, unpacklo_epi64)
BINARY(words, last64, unpackhi_epi64)

/* The two vectors behind each other in each lane, in half as many bits, saturated. */
BINARY(words, pack_signed, packs_epi16)
BINARY(words, pack_unsigned, packus_epi16)

INLINE words pack_ints(ints a, ints b)
{
    return (words)INTRINSIC(packs_epi32)(AS(a), AS(b));
}

/* a[2i] b[2i] + a[2i + 1] b[2i + 1] */
INLINE ints multiply_pairs(words a, words b)
{
    return (ints)INTRINSIC(madd_epi16)(AS(a), AS(b));
}

INLINE words all(int value)
{
    return (words)INTRINSIC(set1_epi16)((int16_t)value);
}

/* A in all even places, B in all odd ones. */
INLINE words all_pairs(int a, int b)
{
    return (words)INTRINSIC(set1_epi32)((int32_t)((uint32_t)b << 16 | (uint16_t)a));
}

INLINE bool is_zero(words value)
{
    return (unsigned)INTRINSIC(movemask_epi8)(INTRINSIC(cmpeq_epi8)(AS(value), AS(all(0)))) ==
           (unsigned)((1ull << VECTOR) - 1);
}

INLINE __m128i load_lane(const void *from)
{
    return _mm_loadu_si128((const __m128i *)from);
}

/* A lane from each address. */
INLINE words load_lanes(const void *const *from, size_t offset)
{
#ifdef __AVX2__
    return (words)_mm256_inserti128_si256(_mm256_castsi128_si256(load_lane((const uint8_t *)from[0] + offset)),
                                          load_lane((const uint8_t *)from[1] + offset), 1);
#else
    return (words)load_lane((const uint8_t *)from[0] + offset);
#endif
}

INLINE words load_vector(const void *from)
{
    words value;
    memcpy(&value, from, sizeof value);
    return value;
}

INLINE __m128i lane(words value, int number)
{
#ifdef __AVX2__
    return number == 0 ? _mm256_castsi256_si128(AS(value)) : _mm256_extracti128_si256(AS(value), 1);
#else
    (void)number;
    return AS(value);
#endif
}

#endif
