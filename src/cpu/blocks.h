/* SPDX-License-Identifier: MIT
 *
 * Blocks of sums, and their outputs sum by sum. */
#ifndef GPUCONV_CPU_BLOCKS_H
#define GPUCONV_CPU_BLOCKS_H

#include "base/vector/vector.h"
#include "cpu/loops.h"

#include <assert.h>
#include <string.h>

enum {
    BLOCK = 4 * LANES,
    GROUP = VECTOR_REGISTERS == 32 ? 4 : 2,
    COLUMN_GROUP = VECTOR == 64 ? 8 : 4, /* its sums fill half of the vector registers */
};

static_assert((int)BLOCK <= (int)BLOCK_MAX, "rows have room for one block behind their end");
static_assert((int)GROUP <= (int)GROUP_MAX, "a column has taps for every row of a group");

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
