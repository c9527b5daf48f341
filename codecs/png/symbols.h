/* SPDX-License-Identifier: MIT
 *
 * The symbols and blocks of deflate (RFC 1951). The CPU and the GPU share this file. */
#ifndef GPUCONV_PNG_SYMBOLS_H
#define GPUCONV_PNG_SYMBOLS_H

#include "base/inline.h"

#include <stdbool.h>
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
    PRECODES = 19,   /* symbols of the precode, the code of the lengths of the other two codes */
    PRECODE_MAX = 7, /* bits of its longest code: the largest number that 3 bits hold */
};

/* The symbol of the precode whose length is number INDEX. Rare ones are last. */
static inline HOST_DEVICE unsigned precode_at(int index)
{
    const uint8_t order[PRECODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    return order[index];
}

static inline HOST_DEVICE unsigned precode_extra(unsigned symbol)
{
    return symbol < 16 ? 0 : symbol == 16 ? 2 : symbol == 17 ? 3 : 7;
}

/* A symbol of the precode stands for this number of lengths, and as many more as its extra bits say. */
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

/* ---- For decoders ---- */

enum {
    INFLATE_CODE_MAX = 15,
    INFLATE_LITERALS = 288,
    INFLATE_DISTANCES = 32,
    INFLATE_MARKER = 1 << 15, /* and above are markers; this is the window's first byte */
};

/* The length of the code of a symbol in a block with fixed codes; the distances follow the literals. */
static inline HOST_DEVICE int inflate_fixed_length(int i)
{
    return i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : i < INFLATE_LITERALS ? 8 : 5;
}

/* Do all decoders accept COUNT codes, if UNUSED of 2^INFLATE_CODE_MAX codes of the greatest length are left? The codes
 * are whole, or a single one of one bit. */
static inline HOST_DEVICE bool inflate_accepts(int unused, int count)
{
    return unused == 0 || (unused == 1 << (INFLATE_CODE_MAX - 1) && count == 1);
}

/* Where a block with its own codes may begin: a bit for each of the lower bits of B, the stream. It is not the last
 * block, and of type 2. Neither count of codes is 30 or 31 above its least. There are the lengths of at least 12
 * lengths: with fewer, all codes would have 5 to 11 bits. */
static inline HOST_DEVICE uint64_t inflate_find_heads(uint64_t b)
{
    return ~b & ~(b >> 1) & (b >> 2) & ~(b >> 4 & b >> 5 & b >> 6 & b >> 7) & ~(b >> 9 & b >> 10 & b >> 11 & b >> 12) &
           b >> 16;
}

/* A Huffman code as a list of symbols. Its shorter codes are in a table, too. */
struct inflate_code {
    int first[INFLATE_CODE_MAX + 1];      /* the first code of each length */
    uint16_t count[INFLATE_CODE_MAX + 1]; /* how many there are */
    uint16_t index[INFLATE_CODE_MAX + 1]; /* the index in the list of the first symbol of each length */
    uint16_t list[INFLATE_LITERALS];      /* symbols by code */
};

#endif
