/* SPDX-License-Identifier: MIT
 *
 * SSE2, which every x86-64 has: vectors of 16 bytes. */
#ifndef GPUCONV_VECTOR_SSE2_H
#define GPUCONV_VECTOR_SSE2_H

#include <immintrin.h>

enum { VECTOR = 16, GROUP = 2 };
#define HAS_WORDS true

#include "cpu/vector.h"

#define HAS_BYTES false
/* There are no multiply-adds of bytes: HAS_BYTES is false, so nothing calls this. */
INLINE ints multiply_bytes(ints sums, ints samples, ints taps)
{
    (void)samples, (void)taps;
    return sums;
}

#define AS(v) ((__m128i)(v))
INLINE ints multiply_words(ints sums, ints samples, ints taps)
{
    return add(sums, (ints)_mm_madd_epi16(AS(samples), AS(taps)));
}

INLINE ints choose(ints mask, ints a, ints b)
{
    return (a & mask) | (b & ~mask);
}

INLINE ints clamp(ints value, ints low, ints high)
{
    value = choose(value < low, low, value);
    return choose(value > high, high, value);
}

INLINE ints multiply_high(ints a, ints b)
{
    const __m128i even = _mm_srli_epi64(_mm_mul_epu32(AS(a), AS(b)), 32);
    const __m128i odd = _mm_mul_epu32(_mm_srli_epi64(AS(a), 32), AS(b));
    return (ints)even | ((ints)odd & (ints){0, -1, 0, -1});
}

INLINE ints sum_lanes(ints value)
{
    value = add(value, (ints)_mm_slli_si128(AS(value), 4));
    return add(value, (ints)_mm_slli_si128(AS(value), 8));
}

INLINE ints repeat_last(ints value)
{
    return (ints)_mm_shuffle_epi32(AS(value), 0xff);
}

INLINE ints pack_bytes(ints c0, ints c1, ints c2, ints c3, enum layout layout)
{
    __m128i lower = _mm_packs_epi32(AS(c0), AS(c1)), upper = _mm_packs_epi32(AS(c2), AS(c3));
    if (layout == LAYOUT_TWOS) {
        lower = _mm_unpacklo_epi16(lower, _mm_srli_si128(lower, 8));
        upper = _mm_unpacklo_epi16(upper, _mm_srli_si128(upper, 8));
    }
    return (ints)_mm_packus_epi16(lower, upper);
}

/* SSE2 packs signed words only, so sums must be at least -2^31 + 32768. */
INLINE ints pack_words(ints c0, ints c1, enum layout layout)
{
    const ints middle = repeat(32768);
    const __m128i words = _mm_packs_epi32(AS(subtract(c0, middle)), AS(subtract(c1, middle)));
    const __m128i ordered = layout == LAYOUT_TWOS ? _mm_unpacklo_epi16(words, _mm_srli_si128(words, 8)) : words;
    return (ints)_mm_xor_si128(ordered, _mm_set1_epi16(INT16_MIN));
}

INLINE doubles lower_doubles(ints value)
{
    return (doubles)_mm_cvtepi32_pd(AS(value));
}

INLINE doubles upper_doubles(ints value)
{
    return (doubles)_mm_cvtepi32_pd(_mm_shuffle_epi32(AS(value), 0xee));
}

INLINE doubles load_doubles(const int32_t *from)
{
    return (doubles)_mm_cvtepi32_pd(_mm_loadl_epi64((const __m128i *)(const void *)from));
}

INLINE ints join_doubles(doubles lower, doubles upper)
{
    return (ints)_mm_unpacklo_epi64(_mm_cvttpd_epi32((__m128d)lower), _mm_cvttpd_epi32((__m128d)upper));
}

INLINE doubles larger_double(doubles a, doubles b)
{
    return (doubles)_mm_max_pd((__m128d)a, (__m128d)b);
}

INLINE doubles smaller_double(doubles a, doubles b)
{
    return (doubles)_mm_min_pd((__m128d)a, (__m128d)b);
}

INLINE doubles root_double(doubles value)
{
    return (doubles)_mm_sqrt_pd((__m128d)value);
}

INLINE floats square_root(floats value)
{
    return (floats)_mm_sqrt_ps((__m128)value);
}

/* Store past the caches: it neither reads the cache line first nor keeps it. TO is a multiple of a vector. */
INLINE void store_past(void *to, ints value)
{
    _mm_stream_si128(to, (__m128i)value);
}

/* Complete the stores past the caches, before another thread learns that the outputs are there. */
INLINE void fence_past(void)
{
    _mm_sfence();
}

#include "cpu/vector_outputs.h"

#endif
