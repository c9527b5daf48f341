/* SPDX-License-Identifier: MIT
 *
 * Vectors for the inner loops. A vector has one, two or four lanes of 128 bits, and a lane has eight words: a row of a
 * block. All lanes do the same, so BLOCKS blocks are transformed at once. Without INTRINSIC, a file that needs the
 * functions below has its own. */
#ifndef GPUCONV_JPEG_VECTORS_H
#define GPUCONV_JPEG_VECTORS_H

#include "base/inline.h"

#include <stdint.h>

#define VECTOR 16
#if !defined(GPUCONV_PORTABLE) && defined(__x86_64__)
#include <immintrin.h>
#if defined(__AVX512BW__)
#undef VECTOR
#define VECTOR 64
#define INTRINSIC(name) _mm512_##name
#define AS(value) ((__m512i)(value))
#elif defined(__AVX2__)
#undef VECTOR
#define VECTOR 32
#define INTRINSIC(name) _mm256_##name
#define AS(value) ((__m256i)(value))
#else
#define INTRINSIC(name) _mm_##name
#define AS(value) ((__m128i)(value))
#endif
#endif

enum { LANE = 16, BLOCKS = VECTOR / LANE };

typedef int16_t words __attribute__((vector_size(VECTOR)));
typedef int32_t ints __attribute__((vector_size(VECTOR)));

#ifdef INTRINSIC

#define BINARY(type, name, intrinsic)                                                                                  \
    INLINE type name(type a, type b)                                                                                   \
    {                                                                                                                  \
        return (type)INTRINSIC(intrinsic)(AS(a), AS(b));                                                               \
    }

/* Interleave the first or the last halves of two lanes, in units of 16, 32 or 64 bits. */
BINARY(words, first16, unpacklo_epi16)
BINARY(words, last16, unpackhi_epi16)
BINARY(words, first32, unpacklo_epi32)
BINARY(words, last32, unpackhi_epi32)
BINARY(words, first64, unpacklo_epi64)
BINARY(words, last64, unpackhi_epi64)

/* The two vectors behind each other in each lane, as words, saturated. */
INLINE words pack_ints(ints a, ints b)
{
    return (words)INTRINSIC(packs_epi32)(AS(a), AS(b));
}

/* a[2i] b[2i] + a[2i + 1] b[2i + 1] */
INLINE ints multiply_pairs(words a, words b)
{
    return (ints)INTRINSIC(madd_epi16)(AS(a), AS(b));
}

#endif

#endif
