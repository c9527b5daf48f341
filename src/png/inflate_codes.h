/* SPDX-License-Identifier: MIT
 *
 * Huffman codes, for decoders. The CPU and the GPU share this file. */
#ifndef GPUCONV_PNG_INFLATE_CODES_H
#define GPUCONV_PNG_INFLATE_CODES_H

#include "png/symbols.h"

#include <stdbool.h>
#include <stdint.h>

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
    uint16_t place[INFLATE_CODE_MAX + 1]; /* of their first symbol in the list */
    uint16_t list[INFLATE_LITERALS];      /* symbols by code */
};

#endif
