/* SPDX-License-Identifier: MIT
 *
 * The inner loops of the `cpu` variant, compiled once for each instruction set (src/meson.build names them). A block of
 * outputs, four vectors wide and a group of rows high, keeps its sums in registers while the pass's program is walked
 * once. A vector of samples, loaded once, meets the taps of every row of the group.
 *
 * Where a multiply-add sums 4 (or 2) neighbouring samples in each lane, as vpdpbusd (or vpmaddwd) does, one load at
 * column x serves the outputs x, x + 4, x + 8...; loads at x + 1, x + 2 and x + 3 serve the others. The samples need no
 * rearranging, and the four vectors' outputs come together when they are packed to bytes, which takes a shuffle in any
 * case. For 64 outputs of one row, 9 x 9 taps of int8_t:
 *
 *     this way                     9 * 3 * 4 = 108 multiply-adds, 108 loads, for the four rows of a group: 27 loads a
 * row four rows interleaved first  9 * 3 * 4 = 108 as well; 16 shuffles and shifts for each 4 x 64 samples besides, and
 *                                  one load serves only every fourth row of outputs
 *
 * against 9 * 9 * 64 / 64 = 81 multiply-adds if no byte of the twelve under nine were wasted. */
#include "conv_cpu.h"

#include <assert.h>
#include <string.h>

#if defined(__x86_64__) && !defined(GPUCONV_LOOPS_PORTABLE)
#include <immintrin.h>
#if defined(__AVX512BW__)
enum { VECTOR = 64, GROUP = 4 };
#elif defined(__AVX2__)
enum { VECTOR = 32, GROUP = 2 };
#else
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
typedef float floats __attribute__((vector_size(VECTOR)));
typedef int32_t loose_ints __attribute__((vector_size(VECTOR), aligned(1), may_alias));

#define INLINE static inline __attribute__((always_inline))

INLINE ints load(const void *from)
{
    return *(const loose_ints *)from;
}

INLINE void store(void *to, ints value)
{
    *(loose_ints *)to = value;
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
    return sums + (ints)_mm512_madd_epi16(AS(samples), AS(taps));
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

/* Four vectors to bytes, with saturation, in the order of the columns. */
INLINE void pack(ints c0, ints c1, ints c2, ints c3, enum layout layout, void *to)
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
    _mm512_storeu_si512(to, bytes);
}

#elif defined(__AVX2__)
#define AS(v) ((__m256i)(v))
INLINE ints multiply_words(ints sums, ints samples, ints taps)
{
    return sums + (ints)_mm256_madd_epi16(AS(samples), AS(taps));
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

INLINE void pack(ints c0, ints c1, ints c2, ints c3, enum layout layout, void *to)
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
    _mm256_storeu_si256(to, bytes);
}

#else
#define AS(v) ((__m128i)(v))
INLINE ints multiply_words(ints sums, ints samples, ints taps)
{
    return sums + (ints)_mm_madd_epi16(AS(samples), AS(taps));
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

INLINE void pack(ints c0, ints c1, ints c2, ints c3, enum layout layout, void *to)
{
    __m128i lower = _mm_packs_epi32(AS(c0), AS(c1)), upper = _mm_packs_epi32(AS(c2), AS(c3));
    if (layout == LAYOUT_TWOS) {
        lower = _mm_unpacklo_epi16(lower, _mm_srli_si128(lower, 8));
        upper = _mm_unpacklo_epi16(upper, _mm_srli_si128(upper, 8));
    }
    _mm_storeu_si128(to, _mm_packus_epi16(lower, upper));
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
    return sums + samples * taps;
}

/* How far apart columns are, in bytes. */
INLINE size_t column_bytes(enum arithmetic arithmetic)
{
    return arithmetic == ARITHMETIC_BYTES ? 1 : arithmetic == ARITHMETIC_WORDS ? 2 : 4;
}

/* Where vector V of a block is loaded, in bytes from its first: see enum layout. */
INLINE size_t vector_offset(enum arithmetic arithmetic, size_t v)
{
    return arithmetic == ARITHMETIC_BYTES   ? v
           : arithmetic == ARITHMETIC_WORDS ? v % 2 * 2 + v / 2 * VECTOR
                                            : v * VECTOR;
}

INLINE void finish_each(const struct finish *finish, bool is_float, ints c0, ints c1, ints c2, ints c3,
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
        to[x] = rounding_apply(&r, sums[k]);
    }
}

#if HAS_WORDS
INLINE ints finish_vector(const struct finish *f, bool is_float, ints c)
{
    if (f->way == FINISH_FLOAT) {
        floats value = is_float ? (floats)c : __builtin_convertvector(c, floats);
        if (f->absolute)
            value = (floats)((ints)value & INT32_MAX);
        return __builtin_convertvector(value * repeat_float(f->factor) + repeat_float(f->term), ints);
    }
    if (is_float)
        c = __builtin_convertvector((floats)c, ints);
    if (f->absolute)
        c = (c ^ c >> 31) - (c >> 31);
    if (f->way == FINISH_SHIFT)
        return (c + f->bias) >> f->shift;
    c = clamp(c, repeat(f->rounding.low), repeat(f->rounding.high)) + (int32_t)(uint32_t)(uint64_t)f->rounding.bias;
    return multiply_high(c, repeat((int32_t)f->rounding.multiplier)) >> f->rounding.shift;
}
#endif

INLINE void finish_bytes(const struct finish *finish, bool is_float, ints c0, ints c1, ints c2, ints c3,
                         enum layout layout, uint8_t *to)
{
#if HAS_WORDS
    if (finish->way != FINISH_EACH) {
        pack(finish_vector(finish, is_float, c0), finish_vector(finish, is_float, c1),
             finish_vector(finish, is_float, c2), finish_vector(finish, is_float, c3), layout, to);
        return;
    }
#endif
    finish_each(finish, is_float, c0, c1, c2, c3, layout, to);
}

INLINE ints finish_plane(const struct pass *pass, ints c)
{
    if (pass->absolute)
        c &= INT32_MAX;
    return (ints)((floats)c + repeat_float(pass->offset));
}

/* The sums of one row of a block, to its place in the row. */
INLINE void finish_row(const struct pass *pass, enum arithmetic arithmetic, ints c0, ints c1, ints c2, ints c3, int x,
                       int width, void *row)
{
    const bool is_float = arithmetic == ARITHMETIC_FLOATS;
    const bool whole = width - x >= BLOCK;
    union cell *cells = (union cell *)row + x;
    if (pass->target == TARGET_U8) {
        const enum layout layout = arithmetic == ARITHMETIC_BYTES   ? LAYOUT_FOURS
                                   : arithmetic == ARITHMETIC_WORDS ? LAYOUT_TWOS
                                                                    : pass->layout;
        uint8_t bytes[BLOCK], *to = whole ? (uint8_t *)row + x : bytes;
        finish_bytes(&pass->finish, is_float, c0, c1, c2, c3, layout, to);
        if (!whole)
            memcpy((uint8_t *)row + x, bytes, (size_t)(width - x));
        return;
    }
    union cell rest[BLOCK], *to = cells;
    if (pass->target == TARGET_F32) {
        c0 = finish_plane(pass, c0);
        c1 = finish_plane(pass, c1);
        c2 = finish_plane(pass, c2);
        c3 = finish_plane(pass, c3);
        to = whole ? cells : rest;
    } else if (pass->target == TARGET_FLOATS && !is_float) {
        c0 = (ints) __builtin_convertvector(c0, floats);
        c1 = (ints) __builtin_convertvector(c1, floats);
        c2 = (ints) __builtin_convertvector(c2, floats);
        c3 = (ints) __builtin_convertvector(c3, floats);
    }
    store(to, c0);
    store(to + LANES, c1);
    store(to + 2 * LANES, c2);
    store(to + 3 * LANES, c3);
    if (to == rest)
        memcpy(cells, rest, (size_t)(width - x) * sizeof *rest);
}

INLINE ints pair(ints first, ints second)
{
    return (first & 0xffff) | second << 16;
}

/* Name every sum, so that each has a register: c<row><vector>. */
#define EACH_VECTOR(DO, row) DO(row, 0) DO(row, 1) DO(row, 2) DO(row, 3)
#define EACH_SUM(DO) EACH_VECTOR(DO, 0) EACH_VECTOR(DO, 1) EACH_VECTOR(DO, 2) EACH_VECTOR(DO, 3)

#define SUM_DECLARE(a, v) ints c##a##v = start;
#define SUM_SCALE(a, v) c##a##v <<= part_bits;

/* The multiply-adds of one column with vector V, for rows LOW to HIGH of the group. */
#define ROW_MULTIPLY(a, v, LOW, HIGH)                                                                                  \
    if ((LOW) <= (a) && (a) <= (HIGH))                                                                                 \
        c##a##v = multiply_add(arithmetic, c##a##v, samples, t##a);
#define VECTOR_MULTIPLY(v, LOW, HIGH)                                                                                  \
    {                                                                                                                  \
        const ints samples = load(from + offsets[k] + vector_offset(arithmetic, v));                                   \
        ROW_MULTIPLY(0, v, LOW, HIGH)                                                                                  \
        ROW_MULTIPLY(1, v, LOW, HIGH)                                                                                  \
        ROW_MULTIPLY(2, v, LOW, HIGH)                                                                                  \
        ROW_MULTIPLY(3, v, LOW, HIGH)                                                                                  \
    }
#define RANGE(LOW, HIGH) ((LOW)*GROUP_MAX + (HIGH))
#define STEP(LOW, HIGH)                                                                                                \
    case RANGE(LOW, HIGH):                                                                                             \
        for (int k = 0; k < count; k++) {                                                                              \
            const ints t0 = repeat(taps[k][0].i), t1 = repeat(taps[k][1].i), t2 = repeat(taps[k][2].i),                \
                       t3 = repeat(taps[k][3].i);                                                                      \
            (void)t0, (void)t1, (void)t2, (void)t3;                                                                    \
            VECTOR_MULTIPLY(0, LOW, HIGH)                                                                              \
            VECTOR_MULTIPLY(1, LOW, HIGH)                                                                              \
            VECTOR_MULTIPLY(2, LOW, HIGH)                                                                              \
            VECTOR_MULTIPLY(3, LOW, HIGH)                                                                              \
        }                                                                                                              \
        break;

#define FINISH(a) finish_row(pass, arithmetic, c##a##0, c##a##1, c##a##2, c##a##3, x, width, outs[a]);
#define FINISH_PAIRS(a, b)                                                                                             \
    {                                                                                                                  \
        union cell *to = (union cell *)outs[(a) / 2] + x;                                                              \
        store(to, pair(c##a##0, c##b##0));                                                                             \
        store(to + LANES, pair(c##a##1, c##b##1));                                                                     \
        store(to + 2 * LANES, pair(c##a##2, c##b##2));                                                                 \
        store(to + 3 * LANES, pair(c##a##3, c##b##3));                                                                 \
    }

INLINE void run_pass(const struct pass *pass, const void *const *rows, int width, void *const *outs,
                     const enum arithmetic arithmetic)
{
    const int part_bits = arithmetic == ARITHMETIC_BYTES ? 8 : 16;
    const struct step *end = pass->steps + pass->step_count;
    const ints start = arithmetic == ARITHMETIC_FLOATS ? (ints){0} : repeat(pass->start);
    for (int x = 0; x < width; x += BLOCK) {
        EACH_SUM(SUM_DECLARE)
        for (const struct step *step = pass->steps; step < end; step++) {
            const char *from = (const char *)rows[step->row] + (size_t)x * column_bytes(arithmetic);
            const int32_t *offsets = pass->offsets + step->begin;
            const union cell(*taps)[GROUP_MAX] = (const union cell(*)[GROUP_MAX])(pass->taps + step->begin);
            const int count = step->end - step->begin;
            if (step->next_part) {
                EACH_SUM(SUM_SCALE)
            }
            switch (RANGE(step->low, step->high)) {
                STEP(0, 0)
                STEP(0, 1)
                STEP(1, 1)
#if defined(__AVX512BW__) || defined(__aarch64__) /* groups of four rows */
                STEP(0, 2)
                STEP(0, 3)
                STEP(1, 2)
                STEP(1, 3)
                STEP(2, 2)
                STEP(2, 3)
                STEP(3, 3)
#endif
            default:
                __builtin_unreachable();
            }
        }
        if (pass->target == TARGET_PAIRS) {
            FINISH_PAIRS(0, 1)
            if (GROUP == 4)
                FINISH_PAIRS(2, 3)
            continue;
        }
        FINISH(0)
        if (pass->group > 1)
            FINISH(1)
        if (GROUP == 4 && pass->group > 2) {
            FINISH(2)
            FINISH(3)
        }
    }
}

static void run(const struct pass *pass, const void *const *rows, int width, void *const *outs)
{
    switch (pass->arithmetic) {
    case ARITHMETIC_BYTES:
        run_pass(pass, rows, width, outs, ARITHMETIC_BYTES);
        break;
    case ARITHMETIC_WORDS:
        run_pass(pass, rows, width, outs, ARITHMETIC_WORDS);
        break;
    case ARITHMETIC_PAIRS:
        run_pass(pass, rows, width, outs, ARITHMETIC_PAIRS);
        break;
    case ARITHMETIC_FLOATS:
        run_pass(pass, rows, width, outs, ARITHMETIC_FLOATS);
        break;
    case ARITHMETIC_INTS:
        run_pass(pass, rows, width, outs, ARITHMETIC_INTS);
        break;
    }
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
    .widen = widen,
};
