/* SPDX-License-Identifier: MIT
 *
 * The symbols of deflate (RFC 1951), for both directions. */
#ifndef GPUCONV_PNG_SYMBOLS_H
#define GPUCONV_PNG_SYMBOLS_H

#include "base/inline.h"

#include <stdint.h>

enum {
    DEFLATE_WINDOW = 1 << 15, /* the largest distance */
    DEFLATE_LENGTH_MIN = 3,
    DEFLATE_LENGTH_MAX = 258,
    DEFLATE_LITERALS = 256,
    DEFLATE_END = 256, /* the symbol that ends a block */
    DEFLATE_LENGTH_FIRST = 257,
    DEFLATE_LITLENS = 286,
    DEFLATE_DISTANCES = 30,
    PRECODES = 19,   /* of the third code, which has the lengths of the other two */
    PRECODE_MAX = 7, /* the longest of its codes: the most that 3 bits hold */
};

/* The symbol of the third code whose length is number PLACE. Rare ones are last. */
static inline HOST_DEVICE unsigned precode_at(int place)
{
    const uint8_t order[PRECODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    return order[place];
}

static inline HOST_DEVICE unsigned precode_extra(unsigned symbol)
{
    return symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
}

/* Of how many lengths a symbol of the third code is: this, and its extra bits. */
static inline HOST_DEVICE int precode_least(unsigned symbol)
{
    return symbol < 16 ? 1 : symbol == 18 ? 11 : 3;
}

static inline HOST_DEVICE unsigned deflate_log2(unsigned value)
{
#ifdef __CUDA_ARCH__
    return 31u - (unsigned)__clz((int)value);
#else
    return 31u - (unsigned)__builtin_clz(value);
#endif
}

/* Lengths minus 3 and distances minus 1 use the same scheme: one symbol for each value below 2^(STEPS+1), then 2^STEPS
 * symbols for each power of two. A symbol's base is its least value. */
static inline HOST_DEVICE unsigned deflate_symbol(unsigned value, unsigned steps)
{
    if (value < 2u << steps)
        return value;
    const unsigned power = deflate_log2(value);
    return ((power - steps) << steps) + (value >> (power - steps));
}

static inline HOST_DEVICE unsigned deflate_extra(unsigned symbol, unsigned steps)
{
    return symbol < 2u << steps ? 0 : (symbol >> steps) - 1;
}

static inline HOST_DEVICE unsigned deflate_base(unsigned symbol, unsigned steps)
{
    const unsigned extra = deflate_extra(symbol, steps);
    return (symbol - (extra << steps)) << extra;
}

enum { LENGTH_STEPS = 2, DISTANCE_STEPS = 1, LENGTH_LAST = 28 };

static inline HOST_DEVICE unsigned deflate_length_extra(unsigned symbol)
{
    return symbol == LENGTH_LAST ? 0 : deflate_extra(symbol, LENGTH_STEPS);
}

/* The longest repetition has a symbol of its own. */
static inline HOST_DEVICE unsigned deflate_length_symbol(unsigned length)
{
    return length == DEFLATE_LENGTH_MAX ? LENGTH_LAST : deflate_symbol(length - DEFLATE_LENGTH_MIN, LENGTH_STEPS);
}

#endif
