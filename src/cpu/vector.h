/* SPDX-License-Identifier: MIT
 *
 * What all instruction sets share: vectors of VECTOR bytes, by the vector types of C, and the finish that works sum by
 * sum. The header of an instruction set defines VECTOR and GROUP and then includes this one. */
#ifndef GPUCONV_VECTOR_H
#define GPUCONV_VECTOR_H

#include "base/inline.h"
#include "cpu/loops.h"

#include <assert.h>
#include <string.h>

enum { LANES = VECTOR / 4, BLOCK = 4 * LANES };
enum { COLUMN_GROUP = VECTOR == 64 ? 8 : 4 }; /* its sums fill half of the vector registers */

static_assert((int)BLOCK <= (int)BLOCK_MAX, "rows have room for one block behind their end");
static_assert((int)GROUP <= (int)GROUP_MAX, "a column has taps for every row of a group");

typedef int32_t ints __attribute__((vector_size(VECTOR)));
typedef uint32_t bits __attribute__((vector_size(VECTOR))); /* for sums that may wrap: lanes beyond a row's end do */
typedef float floats __attribute__((vector_size(VECTOR)));
typedef double doubles __attribute__((vector_size(VECTOR)));
typedef int32_t loose_ints __attribute__((vector_size(VECTOR), aligned(1), may_alias));

INLINE ints load(const void *from)
{
    return *(const loose_ints *)from;
}

INLINE void store(void *to, ints value)
{
    *(loose_ints *)to = value;
}

/* The header of each instruction set defines the functions below, and HAS_BYTES and HAS_WORDS: does it have the
 * multiply-adds of bytes, and of words? */

/* samples * taps + sums: four bytes a lane, and two words a lane. */
INLINE ints multiply_bytes(ints sums, ints samples, ints taps);
INLINE ints multiply_words(ints sums, ints samples, ints taps);

INLINE floats square_root(floats value);

/* Half a vector of integers from memory as doubles, and two halves joined, truncated. */
INLINE doubles load_doubles(const int32_t *from);
INLINE ints join_doubles(doubles lower, doubles upper);

/* Store past the caches: neither read the cache line first nor keep it. TO is a multiple of a vector. */
INLINE void store_past(void *to, ints value);

/* Complete the stores past the caches, before another thread learns that the outputs are there. */
INLINE void fence_past(void);

/* Turn a block of sums, in four vectors, into outputs of uint8_t or uint16_t. */
INLINE void finish_bytes(const struct finish *finish, bool is_float, ints c0, ints c1, ints c2, ints c3,
                         enum layout layout, bool past, uint8_t *to);
INLINE void finish_words(const struct finish *finish, bool is_float, ints c0, ints c1, ints c2, ints c3,
                         enum layout layout, bool past, uint16_t *to);

/* As in struct loops. */
static void slide_across(const struct pass *pass, const struct window *of, const uint16_t *columns, int width,
                         bool past, const uint8_t *next, const uint8_t *gone, uint8_t *out);
static void join16(const struct join16 *from, void *const *sums, int width, bool past_caches, uint16_t *out);

INLINE void store_output(void *to, ints value, bool past)
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

INLINE doubles repeat_double(double value)
{
    return value - (doubles){0};
}

/* TWICE unrolls the loop that follows by two. UNROLLED unrolls all of it. */
#ifdef __clang__
#define TWICE _Pragma("clang loop unroll_count(2)")
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define TWICE _Pragma("GCC unroll 2")
#define UNROLLED _Pragma("GCC unroll 8")
#endif

/* For each I from FROM to END - 1: at most eight, all unrolled. */
#define FOR_UNROLLED(i, from, end) UNROLLED for (int i = (from); i < (end); i++)

/* The position in a block of lane L of vector V: see enum layout. */
INLINE int block_position(enum layout layout, int v, int l)
{
    return layout == LAYOUT_FOURS  ? 4 * l + v
           : layout == LAYOUT_TWOS ? 2 * l + v % 2 + v / 2 * 2 * LANES
                                   : v * LANES + l;
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
    if (layout == LAYOUT_STRAIGHT && !r.wide && !r.absolute) { /* the compiler vectorises this loop */
        for (int k = 0; k < BLOCK; k++) {
            const int32_t clamped = sums[k] < r.low ? r.low : sums[k] > r.high ? r.high : sums[k];
            const uint32_t t = (uint32_t)clamped + (uint32_t)(uint64_t)r.bias;
            to[k] = (uint8_t)((uint64_t)t * r.multiplier >> 32 >> r.shift);
        }
        return;
    }
    for (int k = 0; k < BLOCK; k++) {
        const int place = block_position(layout, k / LANES, k % LANES);
        /* INT32_MIN only occurs beyond the end of a row. */
        to[place] = rounding_apply(&r, sums[k] > INT32_MIN ? sums[k] : 0);
    }
}

#endif
