/* SPDX-License-Identifier: MIT
 *
 * From sums to outputs, a block at a time. */
#ifndef GPUCONV_CPU_OUTPUTS_H
#define GPUCONV_CPU_OUTPUTS_H

#include "base/vector/vector.h"
#include "cpu/loops.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCK = 4 * LANES,
    GROUP = VECTOR_REGISTERS == 32 ? 4 : 2,
    NARROW_GROUP = 4,                    /* its sums take two registers a row */
    COLUMN_GROUP = VECTOR == 64 ? 8 : 4, /* its sums fill half of the vector registers */
};

static_assert((int)BLOCK <= (int)BLOCK_MAX, "rows have memory for one block after their end");
static_assert((int)GROUP <= (int)GROUP_MAX && (int)NARROW_GROUP <= (int)GROUP_MAX,
              "a column has taps for every row of a group");

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

/* The offset of vector V of a block from the first one, in bytes: see enum layout. */
INLINE int vector_offset(enum arithmetic arithmetic, int v)
{
    return arithmetic <= ARITHMETIC_NARROW  ? v
           : arithmetic == ARITHMETIC_WORDS ? v % 2 * 2 + v / 2 * VECTOR
                                            : v * VECTOR;
}

INLINE void store_output(void *to, ints value, bool past)
{
    if (past)
        store_past(to, value);
    else
        store(to, value);
}

/* The position in a block of lane L of vector V: see enum layout. */
INLINE int block_position(enum layout layout, int v, int l)
{
    return layout == LAYOUT_FOURS  ? 4 * l + v
           : layout == LAYOUT_TWOS ? 2 * l + v % 2 + v / 2 * 2 * LANES
                                   : v * LANES + l;
}

/* FINISH_EACH: the rounding is too wide for vectors. */
NOT_INLINED static void finish_each(const struct finish *finish, bool is_float, const ints sums[4], enum layout layout,
                                    uint8_t *to)
{
    const struct rounding r = finish->rounding;
    for (int k = 0; k < BLOCK; k++) {
        const ints vector = sums[k / LANES];
        const int32_t sum = is_float ? (int32_t)((floats)vector)[k % LANES] : vector[k % LANES];
        /* INT32_MIN only occurs beyond the end of a row. */
        to[block_position(layout, k / LANES, k % LANES)] = rounding_apply(&r, sum > INT32_MIN ? sum : 0);
    }
}

/* Pack the sums of a block to bytes, in the order of the columns. */
INLINE ints pack_output_bytes(const ints c[4], enum layout layout)
{
#if !HAS_SHUFFLE /* and no layout of fours */
    shorts first = pack(c[0], c[1]), last = pack(c[2], c[3]);
    if (layout == LAYOUT_TWOS) {
        first = alternate(first);
        last = alternate(last);
    }
    return (ints)pack_shorts_unsigned(first, last);
#else
    static const uint8_t fours[QUAD] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    static const uint8_t twos[QUAD] = {0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15};
    /* in each quad, 4 of c[0], 4 of c[1], c[2], c[3] */
    const shorts bytes = pack_shorts_unsigned(pack(c[0], c[1]), pack(c[2], c[3]));
    if (layout == LAYOUT_FOURS)
        return (ints)shuffle(bytes, load_quad(fours));
    if (layout == LAYOUT_TWOS)
        return gather_halves((ints)shuffle(bytes, load_quad(twos)));
    return gather_quarters((ints)bytes);
#endif
}

/* Pack half of the sums of a block to shorts, in the order of the columns. */
INLINE ints pack_words(ints c0, ints c1, enum layout layout)
{
    const shorts words = pack_unsigned(c0, c1);
    return layout == LAYOUT_TWOS ? (ints)alternate(words) : gather_halves((ints)words);
}

/* As rounding16_apply, but the result stays a double, from 0 to 65535. */
INLINE doubles finish_double(const struct rounding16 *r, doubles value)
{
    const doubles zeros = {0}, white = 65535 - zeros;
    const doubles size = r->absolute ? larger_doubles(value, -value) : value;
    return smaller_doubles(larger_doubles(size * (r->factor - zeros) + (r->term - zeros), zeros), white);
}

INLINE ints finish_vector(const struct finish *f, enum finish_way way, bool is_float, bool absolute, ints c)
{
    if (way == FINISH_FLOAT) {
        floats value = is_float ? (floats)c : __builtin_convertvector(c, floats);
        if (absolute)
            value = magnitude_floats(value);
        return __builtin_convertvector(value * repeat_float(f->factor) + repeat_float(f->term), ints);
    }
    if (is_float)
        c = __builtin_convertvector((floats)c, ints);
    if (way == FINISH_DOUBLE)
        return join_doubles(finish_double(&f->rounding16, first_doubles(c)),
                            finish_double(&f->rounding16, last_doubles(c)));
    if (way == FINISH_UNSIGNED)
        return (ints)((uints)c >> f->shift);
    if (absolute)
        c = magnitude(c);
    if (way == FINISH_SHIFT)
        return add(c, repeat(f->bias)) >> f->shift;
    c = add(clamp(c, repeat(f->rounding.low), repeat(f->rounding.high)),
            repeat((int32_t)(uint32_t)(uint64_t)f->rounding.bias));
    return multiply_high(c, repeat((int32_t)f->rounding.multiplier)) >> f->rounding.shift;
}

INLINE void finish_bytes_by(const struct finish *finish, enum finish_way way, bool is_float, bool absolute,
                            const ints sums[4], enum layout layout, bool past, uint8_t *to)
{
    ints c[4];
    FOR_UNROLLED (v, 0, 4)
        c[v] = finish_vector(finish, way, is_float, absolute, sums[v]);
    store_output(to, pack_output_bytes(c, layout), past);
}

INLINE void finish_bytes(const struct finish *finish, bool is_float, const ints sums[4], enum layout layout, bool past,
                         uint8_t *to)
{
    if (finish->way == FINISH_FLOAT && !finish->absolute)
        finish_bytes_by(finish, FINISH_FLOAT, is_float, false, sums, layout, past, to);
    else if (finish->way == FINISH_SHIFT && !finish->absolute)
        finish_bytes_by(finish, FINISH_SHIFT, is_float, false, sums, layout, past, to);
    else if (finish->way == FINISH_UNSIGNED)
        finish_bytes_by(finish, FINISH_UNSIGNED, is_float, false, sums, layout, past, to);
    else if (finish->way == FINISH_MULTIPLY)
        finish_bytes_by(finish, FINISH_MULTIPLY, is_float, finish->absolute, sums, layout, past, to);
    else if (finish->way == FINISH_FLOAT)
        finish_bytes_by(finish, FINISH_FLOAT, is_float, true, sums, layout, past, to);
    else if (finish->way == FINISH_SHIFT)
        finish_bytes_by(finish, FINISH_SHIFT, is_float, true, sums, layout, past, to);
    else {
        const ints copy[4] = {sums[0], sums[1], sums[2], sums[3]}; /* a pointer to SUMS would keep them in memory */
        finish_each(finish, is_float, copy, layout, to);
    }
}

INLINE void store_word_outputs(const ints c[4], enum layout layout, bool past, uint16_t *to)
{
    store_output(to, pack_words(c[0], c[1], layout), past);
    store_output(to + 2 * LANES, pack_words(c[2], c[3], layout), past);
}

INLINE void finish_words_by(const struct finish *finish, enum finish_way way, bool is_float, const ints sums[4],
                            enum layout layout, bool past, uint16_t *to)
{
    ints c[4];
    FOR_UNROLLED (v, 0, 4)
        c[v] = finish_vector(finish, way, is_float, finish->absolute, sums[v]);
    store_word_outputs(c, layout, past, to);
}

INLINE void finish_words(const struct finish *finish, bool is_float, const ints sums[4], enum layout layout, bool past,
                         uint16_t *to)
{
    if (finish->way == FINISH_SHIFT)
        finish_words_by(finish, FINISH_SHIFT, is_float, sums, layout, past, to);
    else if (finish->way == FINISH_UNSIGNED)
        finish_words_by(finish, FINISH_UNSIGNED, is_float, sums, layout, past, to);
    else
        finish_words_by(finish, FINISH_DOUBLE, is_float, sums, layout, past, to);
}

/* The window's sum at column x is the one at x - 1, plus the column that enters, minus the one that leaves. A lane has
 * the sum of two such differences, so prefix sums give the windows of odd columns. Differences fit in 16 bits, because
 * the sums of FILTER_MAX samples do. Sums are right modulo 2^32. Column -1 is 0. */
static void slide_across(const struct pass *pass, const struct window *of, const uint16_t *columns, int width,
                         bool past, const uint8_t *next, const uint8_t *gone, uint8_t *out)
{
    const struct finish finish = pass->finish;
    const uint16_t *entering = columns + of->columns - 1, *leaving = columns - 1;
    const ints tap = repeat(of->tap);
    int32_t first = 0;
    for (int k = 0; k < of->columns - 1; k++)
        first += columns[k];
    ints carry = repeat(first);
    for (int x = 0; x < width; x += BLOCK) {
        ints c[4];
        __builtin_prefetch(next + x);
        __builtin_prefetch(gone + x);
        FOR_UNROLLED (half, 0, 2) {
            const int from = x + half * 2 * LANES;
            const shorts two = subtract_shorts(load_shorts(entering + from), load_shorts(leaving + from));
            const ints sums = prefix_sums(multiply_pairs(two, repeat_short(1))), odd = add(sums, carry);
            carry = add(carry, repeat_last(sums));
            c[2 * half] = subtract(odd, second_shorts((ints)two));
            c[2 * half + 1] = odd;
        }
        if (of->tap != 1)
            FOR_UNROLLED (v, 0, 4)
                c[v] = multiply(c[v], tap);
        uint8_t rest[BLOCK];
        const bool whole = width - x >= BLOCK;
        finish_bytes(&finish, false, c, LAYOUT_TWOS, past && whole, whole ? out + x : rest);
        if (!whole)
            memcpy(out + x, rest, (size_t)(width - x));
    }
    if (past)
        fence_past();
}

/* Half a vector of the sums in ROWS, from X on. */
INLINE doubles join16_sum(const struct join16 *j, void *const *rows, int x, bool upper)
{
    const doubles zeros = {0};
    ints first = load((const int32_t *)rows[0] + x);
    if (j->is_float)
        first = __builtin_convertvector((floats)first, ints);
    const doubles value = upper ? last_doubles(first) : first_doubles(first);
    if (j->sum_parts == 1)
        return value;
    const ints second = load((const int32_t *)rows[1] + x);
    return value * (j->unit - zeros) + ((upper ? last_doubles(second) : first_doubles(second)) + (j->base - zeros));
}

INLINE doubles join16_half(const struct join16 *j, void *const *sums, int x, bool upper)
{
    doubles value = join16_sum(j, sums, x, upper);
    if (j->combine != COMBINE_NONE) {
        const doubles second = join16_sum(j, sums + j->sum_parts, x, upper);
        value = j->combine == COMBINE_MAGNITUDE ? square_root_doubles(value * value + second * second)
                : j->combine == COMBINE_SUM
                    ? larger_doubles(value, -value) + larger_doubles(second, -second)
                    : larger_doubles(larger_doubles(value, -value), larger_doubles(second, -second));
    }
    return finish_double(&j->rounding, value);
}

static void join16(const struct join16 *from, void *const *sums, int width, bool past_caches, uint16_t *out)
{
    const struct join16 j = *from; /* a copy, because a compiler must assume that a store may change it */
    for (int x = 0; x < width; x += BLOCK) {
        uint16_t rest[BLOCK] __attribute__((aligned(VECTOR)));
        const bool whole = width - x >= BLOCK;
        ints c[4];
        FOR_UNROLLED (v, 0, 4)
            c[v] =
                join_doubles(join16_half(&j, sums, x + v * LANES, false), join16_half(&j, sums, x + v * LANES, true));
        store_word_outputs(c, j.layout, past_caches && whole, whole ? out + x : rest);
        if (!whole)
            memcpy(out + x, rest, (size_t)(width - x) * sizeof *rest);
    }
    if (past_caches)
        fence_past();
}

#endif
