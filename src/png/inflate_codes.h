/* SPDX-License-Identifier: MIT
 *
 * What a code means, for decoders. The CPU and the GPU share it.
 *
 * The entries of the tables have 32 bits. The lowest five are how many bits to take from the stream, extra bits
 * included. An entry of 0 is a code that is too long for the table, or none.
 *
 *   up to three literals    bits 5 and 6: how many; from bit 8 on: the bytes
 *   a length, a distance    bits 8 to 11: how many bits the code itself has; from bit 16 on: the least value
 *   the end of a block      a length of 0 */
#ifndef GPUCONV_PNG_INFLATE_CODES_H
#define GPUCONV_PNG_INFLATE_CODES_H

#include "png/symbols.h"

#include <stdbool.h>
#include <stdint.h>

enum { INFLATE_CODE_MAX = 15 };
enum { INFLATE_LITERALS = 288, INFLATE_DISTANCES = 32 };

/* A Huffman code as a list of symbols. Its shorter codes are in a table, too. */
struct inflate_code {
    int first[INFLATE_CODE_MAX + 1];      /* the first code of each length */
    uint16_t count[INFLATE_CODE_MAX + 1]; /* how many there are */
    uint16_t place[INFLATE_CODE_MAX + 1]; /* of their first symbol in the list */
    uint16_t list[INFLATE_LITERALS];      /* symbols by code */
};

/* The entry of a symbol whose code has LENGTH bits. */
static inline HOST_DEVICE uint32_t inflate_entry(unsigned symbol, int length, bool is_distance)
{
    const uint32_t bits = (uint32_t)length, own = bits << 8 | bits;
    if (symbol >= (is_distance ? DEFLATE_DISTANCES : DEFLATE_LITLENS))
        return 0;
    if (is_distance)
        return (1 + deflate_base(symbol, DISTANCE_STEPS)) << 16 | (own + deflate_extra(symbol, DISTANCE_STEPS));
    if (symbol <= DEFLATE_END)
        return symbol < DEFLATE_END ? symbol << 8 | 1 << 5 | bits : own;
    const unsigned i = symbol - DEFLATE_LENGTH_FIRST;
    if (i == LENGTH_LAST)
        return (uint32_t)DEFLATE_LENGTH_MAX << 16 | own;
    return (DEFLATE_LENGTH_MIN + deflate_base(i, LENGTH_STEPS)) << 16 | (own + deflate_extra(i, LENGTH_STEPS));
}

/* The entry of the code that BITS begin with. It has more than KNOWN bits. 0: there is none. */
static NOT_INLINED HOST_DEVICE uint32_t inflate_long(const struct inflate_code *code, uint64_t bits, int known,
                                                     bool is_distance)
{
    uint32_t value = 0;
    for (int length = 1; length <= INFLATE_CODE_MAX; length++, bits >>= 1) {
        value = value << 1 | (uint32_t)(bits & 1);
        const uint32_t i = value - (uint32_t)code->first[length];
        if (length > known && i < code->count[length])
            return inflate_entry(code->list[code->place[length] + i], length, is_distance);
    }
    return 0;
}

#endif
