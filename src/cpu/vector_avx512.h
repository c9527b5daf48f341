/* SPDX-License-Identifier: MIT
 *
 * AVX-512: vectors of 64 bytes, with and without VNNI. */
#ifndef GPUCONV_VECTOR_AVX512_H
#define GPUCONV_VECTOR_AVX512_H

#include <immintrin.h>

enum { VECTOR = 64, GROUP = 4 };
#define HAS_WORDS true

#include "cpu/vector.h"

#define AS(v) ((__m512i)(v))
INLINE ints multiply_words(ints sums, ints samples, ints taps)
{
#ifdef __AVX512VNNI__
    return (ints)_mm512_dpwssd_epi32(AS(sums), AS(samples), AS(taps));
#else
    return add(sums, (ints)_mm512_madd_epi16(AS(samples), AS(taps)));
#endif
}

#ifdef __AVX512VNNI__
#define HAS_BYTES true
INLINE ints multiply_bytes(ints sums, ints samples, ints taps)
{
    return (ints)_mm512_dpbusd_epi32(AS(sums), AS(samples), AS(taps));
}
#else
#define HAS_BYTES false
/* There are no multiply-adds of bytes: HAS_BYTES is false, so nothing calls this. */
INLINE ints multiply_bytes(ints sums, ints samples, ints taps)
{
    (void)samples, (void)taps;
    return sums;
}
#endif

INLINE ints clamp(ints value, ints low, ints high)
{
    return (ints)_mm512_min_epi32(_mm512_max_epi32(AS(value), AS(low)), AS(high));
}

/* The high halves of 64-bit products of unsigned numbers. */
INLINE ints multiply_high(ints a, ints b)
{
    const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(AS(a), AS(b)), 32);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(AS(a), 32), AS(b));
    return (ints)_mm512_mask_mov_epi32(even, 0xaaaa, odd);
}

/* sum_lanes: each lane becomes the sum of the lanes up to it. repeat_last: all lanes become the last one. */
INLINE ints sum_lanes(ints value)
{
    const __m512i zero = _mm512_setzero_si512();
    value = add(value, (ints)_mm512_alignr_epi32(AS(value), zero, 15));
    value = add(value, (ints)_mm512_alignr_epi32(AS(value), zero, 14));
    value = add(value, (ints)_mm512_alignr_epi32(AS(value), zero, 12));
    return add(value, (ints)_mm512_alignr_epi32(AS(value), zero, 8));
}

INLINE ints repeat_last(ints value)
{
    return (ints)_mm512_permutexvar_epi32(_mm512_set1_epi32(15), AS(value));
}

/* Pack four vectors to bytes, with saturation, in the order of the columns. */
INLINE ints pack_bytes(ints c0, ints c1, ints c2, ints c3, enum layout layout)
{
    const __m512i lower = _mm512_packs_epi32(AS(c0), AS(c1)), upper = _mm512_packs_epi32(AS(c2), AS(c3));
    __m512i bytes = _mm512_packus_epi16(lower, upper); /* in each 128 bits, 4 lanes of c0, 4 of c1, c2, c3 */
    if (layout == LAYOUT_FOURS) {
        const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        bytes = _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(order));
    } else if (layout == LAYOUT_TWOS) {
        const __m128i order = _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
        bytes = _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(order));
        bytes = _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), bytes);
    } else {
        bytes =
            _mm512_permutexvar_epi32(_mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), bytes);
    }
    return (ints)bytes;
}

/* Pack two vectors to words, with saturation, in the order of the columns. */
INLINE ints pack_words(ints c0, ints c1, enum layout layout)
{
    const __m512i words = _mm512_packus_epi32(AS(c0), AS(c1)); /* in each 128 bits, 4 lanes of c0, 4 of c1 */
    if (layout == LAYOUT_TWOS) {
        const __m128i order = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
        return (ints)_mm512_shuffle_epi8(words, _mm512_broadcast_i32x4(order));
    }
    return (ints)_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), words);
}

INLINE doubles lower_doubles(ints value)
{
    return (doubles)_mm512_cvtepi32_pd(_mm512_castsi512_si256(AS(value)));
}

INLINE doubles upper_doubles(ints value)
{
    return (doubles)_mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(AS(value), 1));
}

INLINE doubles load_doubles(const int32_t *from)
{
    return (doubles)_mm512_cvtepi32_pd(_mm256_loadu_si256((const __m256i *)(const void *)from));
}

/* Truncated. */
INLINE ints join_doubles(doubles lower, doubles upper)
{
    const __m512i low = _mm512_castsi256_si512(_mm512_cvttpd_epi32((__m512d)lower));
    return (ints)_mm512_inserti64x4(low, _mm512_cvttpd_epi32((__m512d)upper), 1);
}

INLINE doubles larger_double(doubles a, doubles b)
{
    return (doubles)_mm512_max_pd((__m512d)a, (__m512d)b);
}

INLINE doubles smaller_double(doubles a, doubles b)
{
    return (doubles)_mm512_min_pd((__m512d)a, (__m512d)b);
}

INLINE doubles root_double(doubles value)
{
    return (doubles)_mm512_sqrt_pd((__m512d)value);
}

INLINE floats square_root(floats value)
{
    return (floats)_mm512_sqrt_ps((__m512)value);
}

/* Store past the caches: it neither reads the cache line first nor keeps it. TO is a multiple of a vector. */
INLINE void store_past(void *to, ints value)
{
    _mm512_stream_si512(to, (__m512i)value);
}

/* Complete the stores past the caches, before another thread learns that the outputs are there. */
INLINE void fence_past(void)
{
    _mm_sfence();
}

#include "cpu/vector_outputs.h"

#endif
