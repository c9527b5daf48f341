/* SPDX-License-Identifier: MIT
 *
 * Vectors for the decoder on x86-64: one or two lanes. */
#ifndef GPUCONV_JPEG_DECODE_VECTORS_H
#define GPUCONV_JPEG_DECODE_VECTORS_H

#include "jpeg/vectors.h"

#include <stdbool.h>
#include <string.h>

/* Sums and products that wrap. */
BINARY(words, add, add_epi16)
BINARY(words, subtract, sub_epi16)
BINARY(words, multiply, mullo_epi16)
BINARY(words, multiply_high, mulhi_epi16)
BINARY(ints, add_ints, add_epi32)
BINARY(ints, subtract_ints, sub_epi32)

/* Interleave the first or the last halves of two lanes, byte by byte. */
BINARY(words, first8, unpacklo_epi8)
BINARY(words, last8, unpackhi_epi8)

/* The two vectors behind each other in each lane, in half as many bits, saturated. */
BINARY(words, pack_signed, packs_epi16)
BINARY(words, pack_unsigned, packus_epi16)

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
