/* SPDX-License-Identifier: MIT
 *
 * AVX2: vectors of 32 bytes. */
#ifndef GPUCONV_VECTOR_AVX2_H
#define GPUCONV_VECTOR_AVX2_H

#include <immintrin.h>

enum { VECTOR = 32, GROUP = 2 };
#define HAS_WORDS true

#include "cpu/vector.h"

#define HAS_BYTES false
/* There are no multiply-adds of bytes: HAS_BYTES is false, so nothing calls this. */
INLINE ints multiply_bytes(ints sums, ints samples, ints taps)
{
    (void)samples, (void)taps;
    return sums;
}

#define AS(v) ((__m256i)(v))
INLINE ints multiply_words(ints sums, ints samples, ints taps)
{
    return add(sums, (ints)_mm256_madd_epi16(AS(samples), AS(taps)));
}

INLINE ints clamp(ints value, ints low, ints high)
{
    return (ints)_mm256_min_epi32(_mm256_max_epi32(AS(value), AS(low)), AS(high));
}

INLINE ints multiply_high(ints a, ints b)
{
    const __m256i even = _mm256_srli_epi64(_mm256_mul_epu32(AS(a), AS(b)), 32);
    const __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(AS(a), 32), AS(b));
    return (ints)_mm256_blend_epi32(even, odd, 0xaa);
}

INLINE ints sum_lanes(ints value)
{
    value = add(value, (ints)_mm256_slli_si256(AS(value), 4));
    value += (ints)_mm256_slli_si256(AS(value), 8);                              /* within each half */
    const __m256i lower = _mm256_permute2x128_si256(AS(value), AS(value), 0x08); /* zero, the lower half */
    return add(value, (ints)_mm256_shuffle_epi32(lower, 0xff));
}

INLINE ints repeat_last(ints value)
{
    return (ints)_mm256_permutevar8x32_epi32(AS(value), _mm256_set1_epi32(7));
}

INLINE ints pack_bytes(ints c0, ints c1, ints c2, ints c3, enum layout layout)
{
    const __m256i lower = _mm256_packs_epi32(AS(c0), AS(c1)), upper = _mm256_packs_epi32(AS(c2), AS(c3));
    __m256i bytes = _mm256_packus_epi16(lower, upper);
    if (layout == LAYOUT_FOURS) {
        const __m128i order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        bytes = _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(order));
    } else if (layout == LAYOUT_TWOS) {
        const __m128i order = _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
        bytes = _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(order));
        bytes = _mm256_permute4x64_epi64(bytes, 0xd8);
    } else {
        bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    }
    return (ints)bytes;
}

INLINE ints pack_words(ints c0, ints c1, enum layout layout)
{
    const __m256i words = _mm256_packus_epi32(AS(c0), AS(c1));
    if (layout == LAYOUT_TWOS) {
        const __m128i order = _mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
        return (ints)_mm256_shuffle_epi8(words, _mm256_broadcastsi128_si256(order));
    }
    return (ints)_mm256_permute4x64_epi64(words, 0xd8);
}

INLINE doubles lower_doubles(ints value)
{
    return (doubles)_mm256_cvtepi32_pd(_mm256_castsi256_si128(AS(value)));
}

INLINE doubles upper_doubles(ints value)
{
    return (doubles)_mm256_cvtepi32_pd(_mm256_extracti128_si256(AS(value), 1));
}

INLINE doubles load_doubles(const int32_t *from)
{
    return (doubles)_mm256_cvtepi32_pd(_mm_loadu_si128((const __m128i *)(const void *)from));
}

INLINE ints join_doubles(doubles lower, doubles upper)
{
    const __m256i low = _mm256_castsi128_si256(_mm256_cvttpd_epi32((__m256d)lower));
    return (ints)_mm256_inserti128_si256(low, _mm256_cvttpd_epi32((__m256d)upper), 1);
}

INLINE doubles larger_double(doubles a, doubles b)
{
    return (doubles)_mm256_max_pd((__m256d)a, (__m256d)b);
}

INLINE doubles smaller_double(doubles a, doubles b)
{
    return (doubles)_mm256_min_pd((__m256d)a, (__m256d)b);
}

INLINE doubles root_double(doubles value)
{
    return (doubles)_mm256_sqrt_pd((__m256d)value);
}

INLINE floats square_root(floats value)
{
    return (floats)_mm256_sqrt_ps((__m256)value);
}

/* Store past the caches: it neither reads the cache line first nor keeps it. TO is a multiple of a vector. */
INLINE void store_past(void *to, ints value)
{
    _mm256_stream_si256(to, (__m256i)value);
}

/* Complete the stores past the caches, before another thread learns that the outputs are there. */
INLINE void fence_past(void)
{
    _mm_sfence();
}

#include "cpu/vector_outputs.h"

#endif
