/* SPDX-License-Identifier: MIT
 *
 * The inner loops of the `cpu` variant, compiled once for each instruction set (src/meson.build names them). A block of
 * outputs, four vectors wide and a group of rows high, keeps its sums in registers while the pass's program is walked
 * once. A vector of samples, loaded once, meets the taps of every row of the group.
 *
 * Where a multiply-add sums 4 (or 2) neighbouring samples in each lane, as vpdpbusd (or vpmaddwd) does, one load at
 * column x serves the outputs x, x + 4, x + 8...; loads at x + 1, x + 2 and x + 3 serve the others. The samples need no
 * rearranging, and the four vectors' outputs come together when they are packed to bytes, which takes a shuffle in any
 * case. What that costs, in vectors of 64 bytes and for 64 outputs of one row:
 *
 *                                    3 x 3                     9 x 9              15 x 15
 *     this way, multiply-adds        3 * 4 = 12                9 * 3 * 4 = 108    15 * 4 * 4 = 240
 *               loads (a group of 4) 6 * 4 / 4 = 6             12 * 3 * 4 / 4 = 36 18 * 4 * 4 / 4 = 72
 *     fours of rows interleaved,     (1 + 1 + 2 + 2) * 3 = 18  3 * 9 * 4 = 108    (4 + 4 + 5 + 5) * 15 = 270
 *               loads                2 * 3 * 4 / 4 = 6         27                 5 * 15 * 4 / 4 = 75
 *
 * and interleaving is 16 shuffles for 64 columns of four rows besides. If no byte of a lane were wasted, 9 x 9 would
 * take 81 multiply-adds. */
#include "cpu/cpu.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#if defined(__x86_64__) && !defined(GPUCONV_LOOPS_PORTABLE)
#include <immintrin.h>
#if defined(__AVX512BW__)
#define VECTOR_BYTES 64
enum { VECTOR = 64, GROUP = 4 };
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
enum { VECTOR = 32, GROUP = 2 };
#else
#define VECTOR_BYTES 16
enum { VECTOR = 16, GROUP = 2 };
#endif
#define HAS_WORDS true
#elif defined(__aarch64__)
enum { VECTOR = 16, GROUP = 4 };
#else
enum { VECTOR = 16, GROUP = 2 };
#endif
#ifndef HAS_WORDS
#define HAS_WORDS false
#endif
#ifdef __AVX512VNNI__
#define HAS_BYTES true
#else
#define HAS_BYTES false
#endif

enum { LANES = VECTOR / 4, BLOCK = 4 * LANES };

static_assert((int)BLOCK <= (int)BLOCK_MAX, "rows have room for one block behind their end");
static_assert((int)GROUP <= (int)GROUP_MAX, "a column has taps for every row of a group");

typedef int32_t ints __attribute__((vector_size(VECTOR)));
typedef uint32_t bits __attribute__((vector_size(VECTOR))); /* for what may wrap: lanes behind a row's end do */
typedef float floats __attribute__((vector_size(VECTOR)));
typedef double doubles __attribute__((vector_size(VECTOR)));
typedef int32_t loose_ints __attribute__((vector_size(VECTOR), aligned(1), may_alias));

/* Not every instruction set uses all. */
#define INLINE static inline __attribute__((always_inline, unused))

INLINE ints load(const void *from)
{
    return *(const loose_ints *)from;
}

INLINE void store(void *to, ints value)
{
    *(loose_ints *)to = value;
}

/* A store that does not read the cache line first, nor keep it: TO is a multiple of a vector. */
INLINE void store_past(void *to, ints value)
{
#if HAS_WORDS && VECTOR_BYTES == 64
    _mm512_stream_si512(to, (__m512i)value);
#elif HAS_WORDS && VECTOR_BYTES == 32
    _mm256_stream_si256(to, (__m256i)value);
#elif HAS_WORDS
    _mm_stream_si128(to, (__m128i)value);
#else
    store(to, value);
#endif
}

INLINE void store_way(void *to, ints value, bool past)
{
    if (past)
        store_past(to, value);
    else
        store(to, value);
}

INLINE ints add(ints a, ints b)
{
    return (ints)((bits)a + (bits)b);
}

INLINE ints subtract(ints a, ints b)
{
    return (ints)((bits)a - (bits)b);
}

INLINE ints times(ints a, int32_t b)
{
    return (ints)((bits)a * (uint32_t)b);
}

INLINE ints shift_up(ints a, int by)
{
    return (ints)((bits)a << by);
}

INLINE ints repeat(int32_t value)
{
    return value - (ints){0};
}

INLINE floats repeat_float(float value)
{
    return value - (floats){0};
}

/* The operations that vector types of C do not have. */
#if HAS_WORDS

#if defined(__AVX512BW__)
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
INLINE ints multiply_bytes(ints sums, ints samples, ints taps)
{
    return (ints)_mm512_dpbusd_epi32(AS(sums), AS(samples), AS(taps));
}
#endif

INLINE ints clamp(ints value, ints low, ints high)
{
    return (ints)_mm512_min_epi32(_mm512_max_epi32(AS(value), AS(low)), AS(high));
}

/* The upper halves of 64-bit products of unsigned numbers. */
INLINE ints multiply_high(ints a, ints b)
{
    const __m512i even = _mm512_srli_epi64(_mm512_mul_epu32(AS(a), AS(b)), 32);
    const __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(AS(a), 32), AS(b));
    return (ints)_mm512_mask_mov_epi32(even, 0xaaaa, odd);
}

/* Each lane becomes the sum of those up to it; and the last lane, everywhere. */
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

/* Four vectors to bytes, with saturation, in the order of the columns. */
INLINE void pack(ints c0, ints c1, ints c2, ints c3, enum layout layout, bool past, void *to)
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
    store_way(to, (ints)bytes, past);
}

/* Two vectors to words, with saturation, in the order of the columns. */
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

#elif defined(__AVX2__)
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
    value += (ints)_mm256_slli_si256(AS(value), 8);                              /* each half for itself */
    const __m256i lower = _mm256_permute2x128_si256(AS(value), AS(value), 0x08); /* zero, the lower half */
    return add(value, (ints)_mm256_shuffle_epi32(lower, 0xff));
}

INLINE ints repeat_last(ints value)
{
    return (ints)_mm256_permutevar8x32_epi32(AS(value), _mm256_set1_epi32(7));
}

INLINE void pack(ints c0, ints c1, ints c2, ints c3, enum layout layout, bool past, void *to)
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
    store_way(to, (ints)bytes, past);
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

#else
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

INLINE void pack(ints c0, ints c1, ints c2, ints c3, enum layout layout, bool past, void *to)
{
    __m128i lower = _mm_packs_epi32(AS(c0), AS(c1)), upper = _mm_packs_epi32(AS(c2), AS(c3));
    if (layout == LAYOUT_TWOS) {
        lower = _mm_unpacklo_epi16(lower, _mm_srli_si128(lower, 8));
        upper = _mm_unpacklo_epi16(upper, _mm_srli_si128(upper, 8));
    }
    store_way(to, (ints)_mm_packus_epi16(lower, upper), past);
}

/* SSE2 packs signed words only: what is packed must not be below -2^31 + 32768. */
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
#endif
#endif

/* samples * taps + sums. */
INLINE ints multiply_add(enum arithmetic arithmetic, ints sums, ints samples, ints taps)
{
    switch (arithmetic) {
    case ARITHMETIC_BYTES:
#if HAS_BYTES
        return multiply_bytes(sums, samples, taps);
#else
        return sums;
#endif
    case ARITHMETIC_WORDS:
    case ARITHMETIC_PAIRS:
#if HAS_WORDS
        return multiply_words(sums, samples, taps);
#else
        return sums;
#endif
    case ARITHMETIC_FLOATS:
        return (ints)((floats)samples * (floats)taps + (floats)sums);
    case ARITHMETIC_INTS:
        break;
    }
    return (ints)((bits)samples * (bits)taps + (bits)sums);
}

/* How far apart columns are, in bytes. */
INLINE size_t column_bytes(enum arithmetic arithmetic)
{
    return arithmetic == ARITHMETIC_BYTES ? 1 : arithmetic == ARITHMETIC_WORDS ? 2 : 4;
}

/* How far apart what becomes of sums is, in bytes. */
INLINE size_t bytes_of(enum target target)
{
    return target == TARGET_U8 ? 1 : target == TARGET_U16 ? 2 : 4;
}

/* Where vector V of a block is loaded, in bytes from its first: see enum layout. */
INLINE size_t vector_offset(enum arithmetic arithmetic, size_t v)
{
    return arithmetic == ARITHMETIC_BYTES   ? v
           : arithmetic == ARITHMETIC_WORDS ? v % 2 * 2 + v / 2 * VECTOR
                                            : v * VECTOR;
}

NOT_INLINED static void finish_each(const struct finish *finish, bool is_float, ints c0, ints c1, ints c2, ints c3,
                                    enum layout layout, uint8_t *to)
{
    const struct rounding r = finish->rounding;
    int32_t sums[BLOCK];
    if (is_float) {
        c0 = __builtin_convertvector((floats)c0, ints);
        c1 = __builtin_convertvector((floats)c1, ints);
        c2 = __builtin_convertvector((floats)c2, ints);
        c3 = __builtin_convertvector((floats)c3, ints);
    }
    store(sums, c0);
    store(sums + LANES, c1);
    store(sums + 2 * LANES, c2);
    store(sums + 3 * LANES, c3);
    if (layout == LAYOUT_STRAIGHT && !r.wide && !r.absolute) { /* what a compiler makes vectors of */
        for (int k = 0; k < BLOCK; k++) {
            const int32_t clamped = sums[k] < r.low ? r.low : sums[k] > r.high ? r.high : sums[k];
            const uint32_t t = (uint32_t)clamped + (uint32_t)(uint64_t)r.bias;
            to[k] = (uint8_t)((uint64_t)t * r.multiplier >> 32 >> r.shift);
        }
        return;
    }
    for (int k = 0; k < BLOCK; k++) {
        const int v = k / LANES, l = k % LANES;
        const int x = layout == LAYOUT_FOURS  ? 4 * l + v
                      : layout == LAYOUT_TWOS ? 2 * l + v % 2 + v / 2 * 2 * LANES
                                              : k;
        to[x] =
            rounding_apply(&r, sums[k] > INT32_MIN ? sums[k] : 0); /* the least number stands behind the row's end */
    }
}

#if HAS_WORDS
INLINE ints finish_vector(const struct finish *f, enum finish_way way, bool is_float, bool absolute, ints c)
{
    if (way == FINISH_FLOAT) {
        floats value = is_float ? (floats)c : __builtin_convertvector(c, floats);
        if (absolute)
            value = (floats)((ints)value & INT32_MAX);
        return __builtin_convertvector(value * repeat_float(f->factor) + repeat_float(f->term), ints);
    }
    if (is_float)
        c = __builtin_convertvector((floats)c, ints);
    if (absolute)
        c = subtract(c ^ c >> 31, c >> 31);
    if (way == FINISH_SHIFT)
        return add(c, repeat(f->bias)) >> f->shift;
    c = add(clamp(c, repeat(f->rounding.low), repeat(f->rounding.high)),
            repeat((int32_t)(uint32_t)(uint64_t)f->rounding.bias));
    return multiply_high(c, repeat((int32_t)f->rounding.multiplier)) >> f->rounding.shift;
}
#endif

INLINE void finish_bytes(const struct finish *finish, bool is_float, ints c0, ints c1, ints c2, ints c3,
                         enum layout layout, bool past, uint8_t *to)
{
#if HAS_WORDS
#define FINISH_VECTORS(way, absolute)                                                                                  \
    pack(finish_vector(finish, way, is_float, absolute, c0), finish_vector(finish, way, is_float, absolute, c1),       \
         finish_vector(finish, way, is_float, absolute, c2), finish_vector(finish, way, is_float, absolute, c3),       \
         layout, past, to)
    if (finish->way == FINISH_FLOAT && !finish->absolute)
        FINISH_VECTORS(FINISH_FLOAT, false);
    else if (finish->way == FINISH_SHIFT && !finish->absolute)
        FINISH_VECTORS(FINISH_SHIFT, false);
    else if (finish->way == FINISH_EACH)
        finish_each(finish, is_float, c0, c1, c2, c3, layout, to);
    else
        FINISH_VECTORS(finish->way, finish->absolute);
#else
    (void)past;
    finish_each(finish, is_float, c0, c1, c2, c3, layout, to);
#endif
}

/* As rounding16_apply, but that the result is left as a double from 0 to 65535. */
#if HAS_WORDS
INLINE doubles finish_double(const struct rounding16 *r, doubles value)
{
    const doubles zeros = {0}, white = 65535 - zeros;
    const doubles size = r->absolute ? larger_double(value, -value) : value;
    return smaller_double(larger_double(size * (r->factor - zeros) + (r->term - zeros), zeros), white);
}

INLINE ints finish16_vector(const struct finish *f, enum finish_way way, bool is_float, ints c)
{
    if (is_float)
        c = __builtin_convertvector((floats)c, ints);
    if (way == FINISH_DOUBLE)
        return join_doubles(finish_double(&f->rounding16, lower_doubles(c)),
                            finish_double(&f->rounding16, upper_doubles(c)));
    if (f->absolute)
        c = subtract(c ^ c >> 31, c >> 31);
    return add(c, repeat(f->bias)) >> f->shift;
}

INLINE void store_words(ints c0, ints c1, ints c2, ints c3, enum layout layout, bool past, uint16_t *to)
{
    store_way(to, pack_words(c0, c1, layout), past);
    store_way(to + 2 * LANES, pack_words(c2, c3, layout), past);
}
#endif

INLINE void finish_words(const struct finish *finish, bool is_float, ints c0, ints c1, ints c2, ints c3,
                         enum layout layout, bool past, uint16_t *to)
{
#if HAS_WORDS
#define FINISH_WORDS(way)                                                                                              \
    store_words(finish16_vector(finish, way, is_float, c0), finish16_vector(finish, way, is_float, c1),                \
                finish16_vector(finish, way, is_float, c2), finish16_vector(finish, way, is_float, c3), layout, past,  \
                to)
    if (finish->way == FINISH_SHIFT)
        FINISH_WORDS(FINISH_SHIFT);
    else
        FINISH_WORDS(FINISH_DOUBLE);
#else
    const struct rounding16 r = finish->rounding16;
    union cell sums[BLOCK];
    (void)layout, (void)past; /* straight, where there are no words */
    store(sums, c0);
    store(sums + LANES, c1);
    store(sums + 2 * LANES, c2);
    store(sums + 3 * LANES, c3);
    for (int k = 0; k < BLOCK; k++)
        to[k] = rounding16_apply(&r, is_float ? (double)sums[k].f : (double)sums[k].i);
#endif
}

INLINE ints finish_plane(float offset, bool absolute, ints c)
{
    if (absolute)
        c &= INT32_MAX;
    return (ints)((floats)c + repeat_float(offset));
}

INLINE void store_row(union cell *to, ints c0, ints c1, ints c2, ints c3, bool past)
{
    store_way(to, c0, past);
    store_way(to + LANES, c1, past);
    store_way(to + 2 * LANES, c2, past);
    store_way(to + 3 * LANES, c3, past);
}

INLINE ints pair(ints first, ints second)
{
    return (first & 0xffff) | shift_up(second, 16);
}

/* The upper halves of two sums in a lane, and the lower ones less 32768. */
INLINE ints pair_high(ints first, ints second)
{
    return (ints)((bits)first >> 16) | (second & (int32_t)0xffff0000);
}

INLINE ints pair_low(ints first, ints second)
{
    return pair(first, second) ^ (int32_t)0x80008000;
}

/* Name every sum, so that each has a register: c<row><vector>. */
#define EACH_VECTOR(DO, row) DO(row, 0) DO(row, 1) DO(row, 2) DO(row, 3)
#define EACH_SUM(DO) EACH_VECTOR(DO, 0) EACH_VECTOR(DO, 1) EACH_VECTOR(DO, 2) EACH_VECTOR(DO, 3)

#define SUM_DECLARE(a, v) ints c##a##v = start;
#define SUM_SCALE(a, v) c##a##v = shift_up(c##a##v, part_bits);
#define SUM_FINISH_PLANE(a, v) c##a##v = finish_plane(offset, absolute, c##a##v);
#define SUM_FLOAT(a, v) c##a##v = (ints) __builtin_convertvector(c##a##v, floats);

/* The multiply-adds of one column with vector V, for rows LOW to HIGH of the group. */
#define ROW_MULTIPLY(a, v, LOW, HIGH)                                                                                  \
    if ((LOW) <= (a) && (a) <= (HIGH))                                                                                 \
        c##a##v = multiply_add(arithmetic, c##a##v, samples, t##a);
#define VECTOR_MULTIPLY(v, LOW, HIGH)                                                                                  \
    {                                                                                                                  \
        const ints samples = load(at + vector_offset(arithmetic, v));                                                  \
        ROW_MULTIPLY(0, v, LOW, HIGH)                                                                                  \
        ROW_MULTIPLY(1, v, LOW, HIGH)                                                                                  \
        ROW_MULTIPLY(2, v, LOW, HIGH)                                                                                  \
        ROW_MULTIPLY(3, v, LOW, HIGH)                                                                                  \
    }
/* Two columns a turn: floats take a tenth less time so, bytes and words the same. */
#ifdef __clang__
#define TWICE _Pragma("clang loop unroll_count(2)")
#else
#define TWICE _Pragma("GCC unroll 2")
#endif
#define STEP(LOW, HIGH)                                                                                                \
    case STEP_RANGE(LOW, HIGH):                                                                                        \
        TWICE do                                                                                                       \
        {                                                                                                              \
            const ints t0 = repeat(column->taps[0].i), t1 = repeat(column->taps[1].i);                                 \
            const ints t2 = repeat(column->taps[2].i), t3 = repeat(column->taps[3].i);                                 \
            const char *at = from + column->offset;                                                                    \
            (void)t0, (void)t1, (void)t2, (void)t3;                                                                    \
            VECTOR_MULTIPLY(0, LOW, HIGH)                                                                              \
            VECTOR_MULTIPLY(1, LOW, HIGH)                                                                              \
            VECTOR_MULTIPLY(2, LOW, HIGH)                                                                              \
            VECTOR_MULTIPLY(3, LOW, HIGH)                                                                              \
        }                                                                                                              \
        while (++column < column_end)                                                                                  \
            ;                                                                                                          \
        break;

#define ROW_ARGUMENTS(a) c##a##0, c##a##1, c##a##2, c##a##3
#if defined(__AVX512BW__) || defined(__aarch64__) /* groups of four rows */
#define EACH_ROW(DO) DO(0) DO(1) DO(2) DO(3)
#define EACH_TWO_ROWS(DO) DO(0, 1) DO(2, 3)
#else
#define EACH_ROW(DO) DO(0) DO(1)
#define EACH_TWO_ROWS(DO) DO(0, 1)
#endif
#define ROW_BYTES(a) finish_bytes(&finish, is_float, ROW_ARGUMENTS(a), layout, past, (uint8_t *)to[a]);
#define ROW_WORDS(a) finish_words(&finish, is_float, ROW_ARGUMENTS(a), layout, past, (uint16_t *)(void *)to[a]);
#define ROW_STORE(a) store_row((union cell *)to[a], ROW_ARGUMENTS(a), false);
#define ROW_STORE_OUTPUTS(a) store_row((union cell *)to[a], ROW_ARGUMENTS(a), past);
#define ROWS_PAIR(a, b)                                                                                                \
    store_row((union cell *)to[(a) / 2], pair(c##a##0, c##b##0), pair(c##a##1, c##b##1), pair(c##a##2, c##b##2),       \
              pair(c##a##3, c##b##3), false);

/* Sums as TARGET_HALVES and _PAIR_HALVES say. */
#define ROW_HALVES(a)                                                                                                  \
    store_row((union cell *)to[a], c##a##0 >> 16, c##a##1 >> 16, c##a##2 >> 16, c##a##3 >> 16, false);                 \
    store_row((union cell *)to[GROUP + (a)], c##a##0 & 0xffff, c##a##1 & 0xffff, c##a##2 & 0xffff, c##a##3 & 0xffff,   \
              false);
#define ROWS_HIGH(a, b)                                                                                                \
    store_row((union cell *)to[(a) / 2], pair_high(c##a##0, c##b##0), pair_high(c##a##1, c##b##1),                     \
              pair_high(c##a##2, c##b##2), pair_high(c##a##3, c##b##3), false);
#define ROWS_LOW(a, b)                                                                                                 \
    store_row((union cell *)to[GROUP + (a) / 2], pair_low(c##a##0, c##b##0), pair_low(c##a##1, c##b##1),               \
              pair_low(c##a##2, c##b##2), pair_low(c##a##3, c##b##3), false);

/* Blocks from column X on, while there are COUNT outputs left of which at least one is in the block. */
INLINE void run_blocks(const struct pass *pass, const void *const *rows, int x, int count, bool past, char *const *outs,
                       const enum arithmetic arithmetic)
{
    const bool is_float = arithmetic == ARITHMETIC_FLOATS;
    const int part_bits = arithmetic == ARITHMETIC_BYTES ? 8 : 16;
    const enum target target = pass->target;
    const bool halves = target == TARGET_HALVES || target == TARGET_PAIR_HALVES;
    const size_t output_bytes = bytes_of(target);
    const enum layout layout = arithmetic == ARITHMETIC_BYTES   ? LAYOUT_FOURS
                               : arithmetic == ARITHMETIC_WORDS ? LAYOUT_TWOS
                                                                : pass->layout;
    const struct finish finish = pass->finish; /* copies: what is stored could be the pass, as a compiler sees it */
    const float offset = pass->offset;
    const bool absolute = pass->absolute;
    const struct step *const end = pass->steps + pass->step_count;
    const ints start = is_float ? (ints){0} : repeat(pass->start);
    char *to[2 * GROUP];
    for (int a = 0; a < (halves ? 2 : 1) * GROUP; a++)
        to[a] = outs[a];
    for (; count > 0; x += BLOCK, count -= BLOCK) {
        EACH_SUM(SUM_DECLARE)
        const struct column *column = pass->columns;
        for (const struct step *step = pass->steps; step < end; step++) {
            const char *from = (const char *)rows[step->row] + (size_t)x * column_bytes(arithmetic);
            const struct column *column_end = column + step->columns;
            switch (step->range) {
                STEP(0, 0)
                STEP(0, 1)
                STEP(1, 1)
#if defined(__AVX512BW__) || defined(__aarch64__)
                STEP(0, 2)
                STEP(0, 3)
                STEP(1, 2)
                STEP(1, 3)
                STEP(2, 2)
                STEP(2, 3)
                STEP(3, 3)
#endif
            case STEP_NEXT_PART:
                EACH_SUM(SUM_SCALE)
                break;
            default:
                __builtin_unreachable();
            }
        }
        switch (target) {
        case TARGET_U8:
            EACH_ROW(ROW_BYTES)
            break;
        case TARGET_PAIRS:
            EACH_TWO_ROWS(ROWS_PAIR)
            break;
        case TARGET_U16:
            EACH_ROW(ROW_WORDS)
            break;
        case TARGET_HALVES:
            EACH_ROW(ROW_HALVES)
            break;
        case TARGET_PAIR_HALVES:
            EACH_TWO_ROWS(ROWS_HIGH)
            EACH_TWO_ROWS(ROWS_LOW)
            break;
        case TARGET_F32:
            EACH_SUM(SUM_FINISH_PLANE)
            EACH_ROW(ROW_STORE_OUTPUTS)
            break;
        case TARGET_FLOATS:
            if (!is_float) {
                EACH_SUM(SUM_FLOAT)
            }
            EACH_ROW(ROW_STORE)
            break;
        case TARGET_INTS:
            EACH_ROW(ROW_STORE)
            break;
        }
        for (int a = 0; a < GROUP; a++)
            to[a] += BLOCK * output_bytes;
        for (int a = GROUP; halves && a < 2 * GROUP; a++)
            to[a] += BLOCK * output_bytes;
    }
}

/* Whole blocks to their places; what is left by way of a block of its own, except where rows have room for it. */
INLINE void run_pass(const struct pass *pass, const void *const *rows, int width, bool past, void *const *outs,
                     const enum arithmetic arithmetic)
{
    const bool exact = pass->target == TARGET_U8 || pass->target == TARGET_U16 || pass->target == TARGET_F32;
    const bool halves = pass->target == TARGET_HALVES || pass->target == TARGET_PAIR_HALVES;
    const int whole = exact ? width / BLOCK * BLOCK : width;
    const size_t output_bytes = bytes_of(pass->target);
    union cell rest[GROUP][BLOCK] __attribute__((aligned(VECTOR)));
    char *to[2 * GROUP];
    int count;
    for (int x = 0; x < width; x += count) {
        count = x < whole ? whole : width - whole;
        for (int a = 0; a < (halves ? 2 : 1) * GROUP; a++)
            to[a] = x < whole ? outs[a] : (char *)rest[a];
        run_blocks(pass, rows, x, count, past, to, arithmetic);
    }
#if HAS_WORDS
    if (past)
        _mm_sfence(); /* before another thread is told that the outputs are there */
#endif
    if (whole < width)
        for (int a = 0; a < GROUP; a++)
            memcpy((char *)outs[a] + (size_t)whole * output_bytes, rest[a], (size_t)(width - whole) * output_bytes);
}

static void run(const struct pass *pass, const void *const *rows, int width, bool past, void *const *outs)
{
    switch (pass->arithmetic) {
    case ARITHMETIC_BYTES:
        run_pass(pass, rows, width, past, outs, ARITHMETIC_BYTES);
        break;
    case ARITHMETIC_WORDS:
        run_pass(pass, rows, width, past, outs, ARITHMETIC_WORDS);
        break;
    case ARITHMETIC_PAIRS:
        run_pass(pass, rows, width, past, outs, ARITHMETIC_PAIRS);
        break;
    case ARITHMETIC_FLOATS:
        run_pass(pass, rows, width, past, outs, ARITHMETIC_FLOATS);
        break;
    case ARITHMETIC_INTS:
        run_pass(pass, rows, width, past, outs, ARITHMETIC_INTS);
        break;
    }
}

static void slide(const uint8_t *entering, const uint8_t *leaving, int count, uint16_t *columns)
{
    for (int k = 0; k < count; k++)
        columns[k] = (uint16_t)(columns[k] + entering[k] - leaving[k]);
}

#if HAS_WORDS
/* The window's sum at column x is P[x + window - 1] - P[x - 1], where P[k] is the sum of all columns up to k; it is
 * right modulo 2^32 whatever P does. P of even and of odd columns stand apart, as the two loads of LAYOUT_TWOS do. */
static void slide_across(const struct pass *pass, const struct window *of, const uint16_t *columns, int width,
                         bool past, const uint8_t *next, const uint8_t *gone, uint8_t *out)
{
    const struct finish finish = pass->finish;
    const int window = of->columns;
    const int32_t tap = of->tap;
    const int count = (width + window + BLOCK - 1) / (2 * LANES) + 1; /* vectors of two columns a lane */
    int32_t *odd = of->prefixes + BLOCK_MAX, *even = odd + (size_t)count * LANES + BLOCK_MAX;
    ints carry = {0};
    odd[-1] = 0;
    for (int k = 0; k < count; k++) {
        __builtin_prefetch(next + (size_t)k * 2 * LANES);
        __builtin_prefetch(gone + (size_t)k * 2 * LANES);
        const ints two = load(columns + (size_t)k * 2 * LANES);
        const ints sums = add(sum_lanes(multiply_words((ints){0}, two, repeat(0x00010001))), carry);
        carry = repeat_last(sums);
        store(odd + (size_t)k * LANES, sums);
        store(even + (size_t)k * LANES, subtract(sums, two >> 16));
    }
    const int32_t *even_to = window % 2 ? even + window / 2 : odd + window / 2 - 1;
    const int32_t *odd_to = window % 2 ? odd + window / 2 : even + window / 2;
    for (int x = 0; x < width; x += BLOCK) {
        const int l = x / 2;
        const ints c0 = times(subtract(load(even_to + l), load(odd + l - 1)), tap);
        const ints c1 = times(subtract(load(odd_to + l), load(even + l)), tap);
        const ints c2 = times(subtract(load(even_to + l + LANES), load(odd + l + LANES - 1)), tap);
        const ints c3 = times(subtract(load(odd_to + l + LANES), load(even + l + LANES)), tap);
        uint8_t rest[BLOCK];
        const bool whole = width - x >= BLOCK;
        finish_bytes(&finish, false, c0, c1, c2, c3, LAYOUT_TWOS, past && whole, whole ? out + x : rest);
        if (!whole)
            memcpy(out + x, rest, (size_t)(width - x));
    }
    if (past)
        _mm_sfence();
}
#else
static void slide_across(const struct pass *pass, const struct window *of, const uint16_t *columns, int width,
                         bool past, const uint8_t *next, const uint8_t *gone, uint8_t *out)
{
    const int window = of->columns;
    int32_t *prefixes = of->prefixes;
    (void)past, (void)next, (void)gone;
    int32_t sum = 0;
    for (int k = 0; k < window - 1; k++)
        sum += columns[k];
    for (int x = 0; x < width; x++) {
        sum += columns[x + window - 1];
        prefixes[x] = sum * of->tap;
        sum -= columns[x];
    }
    for (int x = 0; x < width; x += BLOCK) {
        uint8_t rest[BLOCK];
        const bool whole = width - x >= BLOCK;
        finish_each(&pass->finish, false, load(prefixes + x), load(prefixes + x + LANES),
                    load(prefixes + x + 2 * LANES), load(prefixes + x + 3 * LANES), LAYOUT_STRAIGHT,
                    whole ? out + x : rest);
        if (!whole)
            memcpy(out + x, rest, (size_t)(width - x));
    }
}
#endif

/* The larger of each lane's two. */
INLINE ints larger(ints a, ints b)
{
    const ints mask = (ints)(a > b);
    return (a & mask) | (b & ~mask);
}

INLINE floats square_root(floats value)
{
#if HAS_WORDS && VECTOR_BYTES == 64
    return (floats)_mm512_sqrt_ps((__m512)value);
#elif HAS_WORDS && VECTOR_BYTES == 32
    return (floats)_mm256_sqrt_ps((__m256)value);
#elif HAS_WORDS
    return (floats)_mm_sqrt_ps((__m128)value);
#else
    for (int l = 0; l < LANES; l++)
        value[l] = sqrtf(value[l]);
    return value;
#endif
}

/* Levels of COMBINE_MAGNITUDE, as root_fits_float says. Numbers of float that are not negative have the order of their
 * bits. Below 2^24 squares are exact, whether the compiler joins a multiplication to the addition or not. */
INLINE ints root_levels(const struct join *j, floats a, floats b)
{
    const floats most = repeat_float(1 << 24);
    const ints wide = (ints)(a * a + b * b);
    const floats n = (floats)(wide ^ larger(wide, (ints)most) ^ (ints)most); /* the smaller */
    const floats guess = square_root(n) * repeat_float(j->factor) + repeat_float(j->term);
    ints level = larger(__builtin_convertvector(guess, ints), repeat(0));
    level = level ^ larger(level, repeat(FILTER_LEVELS - 1)) ^ repeat(FILTER_LEVELS - 1);
    const ints k = subtract(times(level, 2 * j->scale), repeat(j->twice_bias));
    const ints sign = k >> 31, size = subtract(k ^ sign, sign);
    const ints signed_square = (ints)((bits)k * (bits)size);
    return level + (ints)(signed_square > shift_up(__builtin_convertvector(n, ints), 2)); /* a true lane is -1 */
}

/* One vector of both grids' sums to what the finish takes, or to outputs of float. */
INLINE ints join_vector(const struct join *j, ints a, ints b)
{
    if (j->is_float) {
        a &= INT32_MAX;
        b &= INT32_MAX;
    } else {
        a = subtract(a ^ a >> 31, a >> 31);
        b = subtract(b ^ b >> 31, b >> 31);
    }
    if (j->combine == COMBINE_MAX)
        return larger(a, b);
    if (j->combine == COMBINE_SUM)
        return j->is_float ? (ints)((floats)a + (floats)b) : add(a, b);
    if (j->target == TARGET_F32)
        return (ints)square_root((floats)a * (floats)a + (floats)b * (floats)b);
    return j->is_float ? root_levels(j, (floats)a, (floats)b)
                       : root_levels(j, __builtin_convertvector(a, floats), __builtin_convertvector(b, floats));
}

/* The place in a block of what vector v holds in lane l; see enum layout. */
INLINE int place_of(enum layout layout, int v, int l)
{
    return layout == LAYOUT_FOURS  ? 4 * l + v
           : layout == LAYOUT_TWOS ? 2 * l + v % 2 + v / 2 * 2 * LANES
                                   : v * LANES + l;
}

/* A block of which COUNT outputs are wanted, sum by sum: magnitudes that floats do not serve. */
NOT_INLINED static void join_each(const struct join *j, const int32_t *first, const int32_t *second, int count,
                                  uint8_t *out)
{
    for (int k = 0; k < BLOCK; k++) {
        const int place = place_of(j->layout, k / LANES, k % LANES);
        float a, b;
        if (place >= count)
            continue;
        memcpy(&a, &first[k], sizeof a);
        memcpy(&b, &second[k], sizeof b);
        out[place] =
            j->is_float ? root_level(j->steps, (int32_t)a, (int32_t)b) : root_level(j->steps, first[k], second[k]);
    }
}

static void join(const struct join *from, const void *first, const void *second, int width, bool past_caches, void *out)
{
    const struct join j = *from; /* a copy: what is stored could be it, as a compiler sees it */
    const bool each = j.combine == COMBINE_MAGNITUDE && j.target == TARGET_U8 && !j.in_float;
    const bool is_float = j.is_float && j.combine != COMBINE_MAGNITUDE; /* levels are integers */
    const size_t output_bytes = j.target == TARGET_U8 ? 1 : sizeof(union cell);
    union cell rest[BLOCK] __attribute__((aligned(VECTOR)));
    const int32_t *a = first, *b = second;
    for (int x = 0; x < width; x += BLOCK, a += BLOCK, b += BLOCK) {
        const int left = width - x;
        if (each) {
            join_each(&j, a, b, left, (uint8_t *)out + x);
            continue;
        }
        void *to = left >= BLOCK ? (char *)out + (size_t)x * output_bytes : (char *)rest;
        const bool past = past_caches && left >= BLOCK;
        const ints c0 = join_vector(&j, load(a), load(b));
        const ints c1 = join_vector(&j, load(a + LANES), load(b + LANES));
        const ints c2 = join_vector(&j, load(a + 2 * LANES), load(b + 2 * LANES));
        const ints c3 = join_vector(&j, load(a + 3 * LANES), load(b + 3 * LANES));
        if (j.target == TARGET_U8)
            finish_bytes(&j.finish, is_float, c0, c1, c2, c3, j.layout, past, to);
        else
            store_row(to, finish_plane(j.offset, false, c0), finish_plane(j.offset, false, c1),
                      finish_plane(j.offset, false, c2), finish_plane(j.offset, false, c3), past);
        if (left < BLOCK)
            memcpy((char *)out + (size_t)x * output_bytes, rest, (size_t)left * output_bytes);
    }
#if HAS_WORDS
    if (past_caches)
        _mm_sfence();
#endif
}

#if HAS_WORDS
/* A half of a vector of the sum that stands in ROWS from X on. */
INLINE doubles join16_sum(const struct join16 *j, void *const *rows, int x, bool upper)
{
    const doubles zeros = {0};
    ints first = load((const int32_t *)rows[0] + x);
    if (j->is_float)
        first = __builtin_convertvector((floats)first, ints);
    const doubles value = upper ? upper_doubles(first) : lower_doubles(first);
    if (j->digits == 1)
        return value;
    const ints second = load((const int32_t *)rows[1] + x);
    return value * (j->unit - zeros) + ((upper ? upper_doubles(second) : lower_doubles(second)) + (j->base - zeros));
}

INLINE doubles join16_half(const struct join16 *j, void *const *sums, int x, bool upper)
{
    doubles value = join16_sum(j, sums, x, upper);
    if (j->combine != COMBINE_NONE) {
        const doubles second = join16_sum(j, sums + j->digits, x, upper);
        value = j->combine == COMBINE_MAGNITUDE ? root_double(value * value + second * second)
                : j->combine == COMBINE_SUM
                    ? larger_double(value, -value) + larger_double(second, -second)
                    : larger_double(larger_double(value, -value), larger_double(second, -second));
    }
    return finish_double(&j->rounding, value);
}

INLINE ints join16_vector(const struct join16 *j, void *const *sums, int x)
{
    return join_doubles(join16_half(j, sums, x, false), join16_half(j, sums, x, true));
}

static void join16(const struct join16 *from, void *const *sums, int width, bool past_caches, uint16_t *out)
{
    const struct join16 j = *from; /* a copy: what is stored could be it, as a compiler sees it */
    for (int x = 0; x < width; x += BLOCK) {
        uint16_t rest[BLOCK] __attribute__((aligned(VECTOR)));
        const bool whole = width - x >= BLOCK;
        store_words(join16_vector(&j, sums, x), join16_vector(&j, sums, x + LANES),
                    join16_vector(&j, sums, x + 2 * LANES), join16_vector(&j, sums, x + 3 * LANES), j.layout,
                    past_caches && whole, whole ? out + x : rest);
        if (!whole)
            memcpy(out + x, rest, (size_t)(width - x) * sizeof *rest);
    }
    if (past_caches)
        _mm_sfence();
}
#else
INLINE double join16_sum(const struct join16 *j, void *const *rows, int x)
{
    const union cell first = ((const union cell *)rows[0])[x];
    const double value = j->is_float ? (double)first.f : (double)first.i;
    return j->digits == 1 ? value : value * j->unit + (((const union cell *)rows[1])[x].i + j->base);
}

static void join16(const struct join16 *from, void *const *sums, int width, bool past_caches, uint16_t *out)
{
    const struct join16 j = *from;
    (void)past_caches;
    for (int x = 0; x < width; x++) {
        double value = join16_sum(&j, sums, x);
        if (j.combine != COMBINE_NONE) {
            const double first = fabs(value), second = fabs(join16_sum(&j, sums + j.digits, x));
            value = j.combine == COMBINE_MAGNITUDE ? sqrt(first * first + second * second)
                    : j.combine == COMBINE_SUM     ? first + second
                    : first > second               ? first
                                                   : second;
        }
        out[x] = rounding16_apply(&j.rounding, value);
    }
}
#endif

static void widen16(enum arithmetic arithmetic, enum share share, const uint16_t *from, int count, void *to)
{
    const int shift = share == SHARE_HIGH ? 8 : 0, mask = share == SHARE_LOW ? 255 : 65535;
    if (arithmetic == ARITHMETIC_WORDS && share == SHARE_ALL)
        memcpy(to, from, (size_t)count * sizeof *from);
    else if (arithmetic == ARITHMETIC_WORDS && share == SHARE_CENTRED)
        for (int k = 0; k < count; k++)
            ((uint16_t *)to)[k] = from[k] ^ 0x8000;
    else if (arithmetic == ARITHMETIC_WORDS)
        for (int k = 0; k < count; k++)
            ((uint16_t *)to)[k] = (uint16_t)(from[k] >> shift & mask);
    else if (arithmetic == ARITHMETIC_FLOATS)
        for (int k = 0; k < count; k++)
            ((float *)to)[k] = from[k];
    else
        for (int k = 0; k < count; k++)
            ((int32_t *)to)[k] = from[k] >> shift & mask;
}

static void widen(enum arithmetic arithmetic, const uint8_t *from, int count, void *to)
{
    if (arithmetic == ARITHMETIC_BYTES)
        memcpy(to, from, (size_t)count);
    else if (arithmetic == ARITHMETIC_WORDS)
        for (int k = 0; k < count; k++)
            ((int16_t *)to)[k] = from[k];
    else if (arithmetic == ARITHMETIC_FLOATS)
        for (int k = 0; k < count; k++)
            ((float *)to)[k] = from[k];
    else
        for (int k = 0; k < count; k++)
            ((int32_t *)to)[k] = from[k];
}

#define JOIN(a, b) a##b
#define LOOPS(name) JOIN(loops_, name)
#define TEXT(name) #name
#define NAME(name) TEXT(name)

const struct loops LOOPS(GPUCONV_LOOPS) = {
    .name = NAME(GPUCONV_LOOPS),
    .group = GROUP,
    .lanes = LANES,
    .bytes = HAS_BYTES,
    .words = HAS_WORDS,
    .run = run,
    .slide = slide,
    .slide_across = slide_across,
    .join = join,
    .join16 = join16,
    .widen = widen,
    .widen16 = widen16,
};
