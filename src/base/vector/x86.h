/* SPDX-License-Identifier: MIT
 *
 * The words of vector.h that need instructions of x86-64: SSE2, AVX2 or AVX-512. */
#ifndef GPUCONV_BASE_VECTOR_X86_H
#define GPUCONV_BASE_VECTOR_X86_H

#include "base/vector/types.h"

#include <immintrin.h>

/* Most instructions differ between the sets only in a prefix, and some also in a suffix. */
#if VECTOR == 64
#define INTRINSIC(name) _mm512_##name
#define WHOLE(name) _mm512_##name##_si512
#define FIRST_HALF(value) _mm512_castsi512_si256(value)
#define LAST_HALF(value) _mm512_extracti64x4_epi64(value, 1)
#define WIDEN_HALF(half) _mm512_castsi256_si512(half)
#define PUT_LAST_HALF(value, half) _mm512_inserti64x4(value, half, 1)
#define LOAD_HALF(from) _mm256_loadu_si256((const void *)(from))
typedef __m512i raw;
typedef __m512 raw_floats;
typedef __m512d raw_doubles;
#elif VECTOR == 32
#define INTRINSIC(name) _mm256_##name
#define WHOLE(name) _mm256_##name##_si256
#define FIRST_HALF(value) _mm256_castsi256_si128(value)
#define LAST_HALF(value) _mm256_extracti128_si256(value, 1)
#define WIDEN_HALF(half) _mm256_castsi128_si256(half)
#define PUT_LAST_HALF(value, half) _mm256_inserti128_si256(value, half, 1)
#define LOAD_HALF(from) _mm_loadu_si128((const void *)(from))
typedef __m256i raw;
typedef __m256 raw_floats;
typedef __m256d raw_doubles;
#else
#define INTRINSIC(name) _mm_##name
#define WHOLE(name) _mm_##name##_si128
#define FIRST_HALF(value) (value)
#define LAST_HALF(value) _mm_shuffle_epi32(value, 0xee)
#define WIDEN_HALF(half) (half)
#define PUT_LAST_HALF(value, half) _mm_unpacklo_epi64(value, half)
#define LOAD_HALF(from) _mm_loadl_epi64((const void *)(from))
typedef __m128i raw;
typedef __m128 raw_floats;
typedef __m128d raw_doubles;
#endif

#define HAS_PAIRS 1
#define HAS_SHUFFLE (VECTOR > 16)
#ifdef __AVX512VNNI__
#define HAS_FOURS 1
#else
#define HAS_FOURS 0
#endif
#define HAS_BYTE_PAIRS (VECTOR > 16)

#define BINARY(to, name, from, intrinsic)                                                                              \
    INLINE to name(from a, from b)                                                                                     \
    {                                                                                                                  \
        return (to)INTRINSIC(intrinsic)((raw)a, (raw)b);                                                               \
    }

/* Zip the first or the last halves of two quads: elements of 8, 16, 32 or 64 bits of A and of B alternate. */
BINARY(shorts, zip_first8, shorts, unpacklo_epi8)
BINARY(shorts, zip_last8, shorts, unpackhi_epi8)
BINARY(shorts, zip_first16, shorts, unpacklo_epi16)
BINARY(shorts, zip_last16, shorts, unpackhi_epi16)
BINARY(shorts, zip_first32, shorts, unpacklo_epi32)
BINARY(shorts, zip_last32, shorts, unpackhi_epi32)
BINARY(shorts, zip_first64, shorts, unpacklo_epi64)
BINARY(shorts, zip_last64, shorts, unpackhi_epi64)

/* Pack to half as many bits, saturated. In each quad, the elements of A come before those of B. pack_small is for ints
 * that fit in shorts: plain C has no saturation. */
BINARY(shorts, pack, ints, packs_epi32)
BINARY(shorts, pack_small, ints, packs_epi32)
BINARY(shorts, pack_shorts, shorts, packs_epi16)
BINARY(shorts, pack_shorts_unsigned, shorts, packus_epi16)

/* a[2i] b[2i] + a[2i + 1] b[2i + 1] */
BINARY(ints, multiply_pairs, shorts, madd_epi16)

#if HAS_BYTE_PAIRS
/* a[2i] b[2i] + a[2i + 1] b[2i + 1] for uint8_t in A and int8_t in B, saturated to 16 bits. */
BINARY(shorts, multiply_byte_pairs, ints, maddubs_epi16)

/* Differences of uint16_t of at least 0. */
BINARY(shorts, subtract_ushorts, shorts, subs_epu16)
BINARY(shorts, smaller_ushorts, shorts, min_epu16)
#endif

/* The high halves of products. */
BINARY(shorts, multiply_high_shorts, shorts, mulhi_epi16)
BINARY(shorts, multiply_high_ushorts, shorts, mulhi_epu16)

#if HAS_FOURS
/* sums + multiply_pairs(a, b), and the same for fours of uint8_t in A and int8_t in B. */
INLINE ints multiply_pairs_add(ints sums, shorts a, shorts b)
{
    return (ints)_mm512_dpwssd_epi32((raw)sums, (raw)a, (raw)b);
}

INLINE ints multiply_fours_add(ints sums, ints a, ints b)
{
    return (ints)_mm512_dpbusd_epi32((raw)sums, (raw)a, (raw)b);
}
#endif

INLINE floats square_root(floats value)
{
    return (floats)INTRINSIC(sqrt_ps)((raw_floats)value);
}

INLINE doubles square_root_doubles(doubles value)
{
    return (doubles)INTRINSIC(sqrt_pd)((raw_doubles)value);
}

INLINE doubles larger_doubles(doubles a, doubles b)
{
    return (doubles)INTRINSIC(max_pd)((raw_doubles)a, (raw_doubles)b);
}

INLINE doubles smaller_doubles(doubles a, doubles b)
{
    return (doubles)INTRINSIC(min_pd)((raw_doubles)a, (raw_doubles)b);
}

/* ---- What differs ----
 *
 * larger, smaller: the maximum and the minimum.
 * odd_lanes: the odd lanes of ODD, and the even ones of EVEN.
 * prefix_sums: each lane becomes the sum of the lanes up to it. repeat_last: each lane becomes the last one.
 * first_doubles, last_doubles: half of the lanes as doubles. load_doubles: half a vector of ints in memory as doubles.
 *     join_doubles: two halves as ints, truncated.
 * store_past: store past the caches. It neither reads the cache line first nor keeps it. TO is a multiple of a vector.
 * pack_unsigned: as pack, to uint16_t. With SSE2 only for ints of at least -2^31 + 32768.
 * gather_halves: the first halves of all quads, and then the last ones. gather_quarters: the first lanes of all quads,
 *     then the second ones, and so on.
 * load_quad: one block of 16 bytes in each quad. load_quads: 16 bytes from each address.
 * shuffle: each quad's bytes at the INDICES, or 0 for 128. Not with SSE2.
 * quad: one quad. is_zero: are all bits 0? Both are not for AVX-512: nothing needs them. */

BINARY(uchars, smaller_uchars, uchars, min_epu8)
BINARY(uchars, larger_uchars, uchars, max_epu8)

/* Sums of at most 255, and differences of at least 0. */
BINARY(uchars, add_uchars, uchars, adds_epu8)
BINARY(uchars, subtract_uchars, uchars, subs_epu8)

/* Add the bytes to the sums: which lane a byte goes to is left open. */
INLINE ints add_byte_sums(ints sums, uchars bytes)
{
    return add(sums, (ints)INTRINSIC(sad_epu8)((raw)bytes, (raw){0}));
}

/* A bit for each byte: is it the same in A and B? */
INLINE uint64_t equal_uchars(uchars a, uchars b)
{
#if VECTOR == 64
    return _mm512_cmpeq_epi8_mask((raw)a, (raw)b);
#else
    return (uint32_t)INTRINSIC(movemask_epi8)(INTRINSIC(cmpeq_epi8)((raw)a, (raw)b));
#endif
}

#if VECTOR > 16
BINARY(ints, larger, ints, max_epi32)
BINARY(ints, smaller, ints, min_epi32)
BINARY(shorts, pack_unsigned, ints, packus_epi32)
BINARY(shorts, shuffle, shorts, shuffle_epi8)
#endif

#if VECTOR == 64

INLINE ints odd_lanes(ints even, ints odd)
{
    return (ints)_mm512_mask_mov_epi32((raw)even, 0xaaaa, (raw)odd);
}

INLINE ints prefix_sums(ints value)
{
    const raw zero = _mm512_setzero_si512();
    value = add(value, (ints)_mm512_alignr_epi32((raw)value, zero, 15));
    value = add(value, (ints)_mm512_alignr_epi32((raw)value, zero, 14));
    value = add(value, (ints)_mm512_alignr_epi32((raw)value, zero, 12));
    return add(value, (ints)_mm512_alignr_epi32((raw)value, zero, 8));
}

INLINE ints repeat_last(ints value)
{
    return (ints)_mm512_permutexvar_epi32(_mm512_set1_epi32(15), (raw)value);
}

INLINE ints gather_halves(ints value)
{
    return (ints)_mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), (raw)value);
}

INLINE ints gather_quarters(ints value)
{
    const raw indices = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return (ints)_mm512_permutexvar_epi32(indices, (raw)value);
}

INLINE shorts load_quad(const void *from)
{
    return (shorts)_mm512_broadcast_i32x4(_mm_loadu_si128(from));
}

INLINE shorts load_quads(const void *const from[QUADS])
{
    const raw low = _mm512_inserti32x4(_mm512_castsi128_si512(_mm_loadu_si128(from[0])), _mm_loadu_si128(from[1]), 1);
    const __m256i high =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(from[2])), _mm_loadu_si128(from[3]), 1);
    return (shorts)_mm512_inserti64x4(low, high, 1);
}

#elif VECTOR == 32

INLINE ints odd_lanes(ints even, ints odd)
{
    return (ints)_mm256_blend_epi32((raw)even, (raw)odd, 0xaa);
}

INLINE ints prefix_sums(ints value)
{
    value = add(value, (ints)_mm256_slli_si256((raw)value, 4));
    value = add(value, (ints)_mm256_slli_si256((raw)value, 8));                /* within each half */
    const raw lower = _mm256_permute2x128_si256((raw)value, (raw)value, 0x08); /* zero, the lower half */
    return add(value, (ints)_mm256_shuffle_epi32(lower, 0xff));
}

INLINE ints repeat_last(ints value)
{
    return (ints)_mm256_permutevar8x32_epi32((raw)value, _mm256_set1_epi32(7));
}

INLINE ints gather_halves(ints value)
{
    return (ints)_mm256_permute4x64_epi64((raw)value, 0xd8);
}

INLINE ints gather_quarters(ints value)
{
    return (ints)_mm256_permutevar8x32_epi32((raw)value, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

INLINE shorts load_quad(const void *from)
{
    return (shorts)_mm256_broadcastsi128_si256(_mm_loadu_si128(from));
}

INLINE shorts load_quads(const void *const from[QUADS])
{
    return (shorts)_mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(from[0])), _mm_loadu_si128(from[1]),
                                           1);
}

INLINE __m128i quad(shorts value, int number)
{
    return number == 0 ? _mm256_castsi256_si128((raw)value) : _mm256_extracti128_si256((raw)value, 1);
}

#else

INLINE ints odd_lanes(ints even, ints odd)
{
    return even | (odd & (ints){0, -1, 0, -1});
}

INLINE ints prefix_sums(ints value)
{
    value = add(value, (ints)_mm_slli_si128((raw)value, 4));
    return add(value, (ints)_mm_slli_si128((raw)value, 8));
}

INLINE ints repeat_last(ints value)
{
    return (ints)_mm_shuffle_epi32((raw)value, 0xff);
}

INLINE shorts pack_unsigned(ints a, ints b)
{
    const ints middle = repeat(32768);
    return pack(subtract(a, middle), subtract(b, middle)) ^ INT16_MIN;
}

INLINE __m128i quad(shorts value, int number)
{
    (void)number;
    return (raw)value;
}

#endif

INLINE doubles first_doubles(ints value)
{
    return (doubles)INTRINSIC(cvtepi32_pd)(FIRST_HALF((raw)value));
}

INLINE doubles last_doubles(ints value)
{
    return (doubles)INTRINSIC(cvtepi32_pd)(LAST_HALF((raw)value));
}

INLINE doubles load_doubles(const int32_t *from)
{
    return (doubles)INTRINSIC(cvtepi32_pd)(LOAD_HALF(from));
}

INLINE ints join_doubles(doubles first, doubles last)
{
    const raw value = WIDEN_HALF(INTRINSIC(cvttpd_epi32)((raw_doubles)first));
    return (ints)PUT_LAST_HALF(value, INTRINSIC(cvttpd_epi32)((raw_doubles)last));
}

INLINE void store_past(void *to, ints value)
{
    WHOLE(stream)(to, (raw)value);
}

/* The high halves of products of uints. */
INLINE ints multiply_high(ints a, ints b)
{
    const raw even = INTRINSIC(mul_epu32)((raw)a, (raw)b);
    const raw odd = INTRINSIC(mul_epu32)(INTRINSIC(srli_epi64)((raw)a, 32), (raw)b);
    return odd_lanes((ints)INTRINSIC(srli_epi64)(even, 32), (ints)odd);
}

/* Complete the stores past the caches, before another thread learns of them. */
INLINE void fence_past(void)
{
    _mm_sfence();
}

#if VECTOR < 64
INLINE bool is_zero(shorts value)
{
    return (unsigned)INTRINSIC(movemask_epi8)(INTRINSIC(cmpeq_epi8)((raw)value, (raw){0})) ==
           (unsigned)((1ull << VECTOR) - 1);
}
#endif

#endif
