/* SPDX-License-Identifier: MIT
 *
 * Huffman codes, and lookup tables to decode them on the CPU. A table is indexed by the next JPEG_LOOKUP_BITS bits.
 *
 * An entry holds the bits to skip (bits 0 to 5), the steps to go in zigzag order (bits 8 to 15), and a value (bits 16
 * to 31). JPEG_STEPS_END among the steps says that the block ends. Where the next bits do not tell enough, an entry
 * skips nothing and has JPEG_STEPS_SLOW. */
#ifndef GPUCONV_JPEG_LOOKUP_H
#define GPUCONV_JPEG_LOOKUP_H

#include "jpeg/jpeg.h"

#include <endian.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    JPEG_LOOKUP_BITS = 12,
    JPEG_STEPS_END = 128,
    JPEG_STEPS_SLOW = 255,
    JPEG_SYMBOL_BITS_MAX = 16 + 15,                          /* a code, and its value */
    JPEG_BLOCK_BITS_MAX = JPEG_BLOCK * JPEG_SYMBOL_BITS_MAX, /* bits that a decoder may read past the end of the data */
    JPEG_DATA_PADDING = JPEG_BLOCK_BITS_MAX / 8 + 16,        /* bytes of zeros that must follow the data */
};

/* The codes of a table, in their order (ITU-T T.81, F.2.2.3). */
struct jpeg_code_order {
    uint32_t ends[18];   /* entry n: the end of the codes of at most n bits, as a number of 16 bits */
    int32_t offsets[17]; /* entry n: what is added to a code of n bits for the index of its symbol */
    uint8_t symbols[256];
};

/* The tables of the blocks of a component. */
struct jpeg_lookup {
    struct jpeg_code_order dc, ac;
    uint32_t first[1 << JPEG_LOOKUP_BITS]; /* a DC coefficient, its value, and what follows it: for the index */
    uint32_t next[1 << JPEG_LOOKUP_BITS];  /* several AC coefficients, without values */
    uint32_t dc_values[1 << JPEG_LOOKUP_BITS];
    uint32_t ac_values[1 << JPEG_LOOKUP_BITS]; /* one AC coefficient */
};

/* Put the codes of TABLE into their order. Returns false if they are not those of a prefix code (C.2), or if the code
 * of all ones is used. */
bool jpeg_order_codes(struct jpeg_code_order *codes, const struct jpeg_huffman *table);

/* Set CODES of the symbols below COUNT. The low 16 bits are the code, and those above are how long it is with the bits
 * of the value that follow it. CODES has 0 where TABLE has no such symbol. */
void jpeg_symbol_codes(const struct jpeg_huffman *table, uint32_t *codes, int count);

void jpeg_lookup_make(struct jpeg_lookup *lookup, const struct jpeg_huffman *dc, const struct jpeg_huffman *ac);

/* The 57 bits from bit number BIT on, or more, at the top of the result. */
static inline uint64_t jpeg_bits_at(const uint8_t *data, uint64_t bit)
{
    uint64_t word;
    memcpy(&word, data + (bit >> 3), sizeof word);
    return be64toh(word) << (bit & 7);
}

/* The symbol of the code at the top of BITS, or -1 if there is no such code. *LENGTH becomes the code's length. */
static inline int jpeg_find_symbol(const struct jpeg_code_order *codes, uint64_t bits, int *length)
{
    const uint32_t window = (uint32_t)(bits >> 48);
    int found = 1;
    while (window >= codes->ends[found])
        found++;
    *length = found;
    return found > 16 ? -1 : codes->symbols[(int32_t)(window >> (16 - found)) + codes->offsets[found]];
}

/* The value that SIZE bits at the top of BITS stand for (F.2.2.1). SIZE is at most 15. */
static inline int jpeg_extend(uint64_t bits, int size)
{
    const int value = size > 0 ? (int)(bits >> (64 - size)) : 0;
    return size > 0 && value < 1 << (size - 1) ? value - (1 << size) + 1 : value;
}

/* Decode a DC difference at the top of BITS. Returns its bits, or 0 if there is no such code. */
static inline int jpeg_read_dc(const struct jpeg_code_order *codes, uint64_t bits, int *value)
{
    int length;
    const int symbol = jpeg_find_symbol(codes, bits, &length);
    if (symbol < 0)
        return 0;
    *value = jpeg_extend(bits << length, symbol);
    return length + symbol;
}

/* Read an AC coefficient as jpeg_read_dc reads DC, and the steps to it. */
static inline int jpeg_read_ac(const struct jpeg_code_order *codes, uint64_t bits, int *steps, int *value)
{
    int length;
    const int symbol = jpeg_find_symbol(codes, bits, &length), size = symbol & 15;
    if (symbol < 0)
        return 0;
    *steps = size == 0 && symbol >> 4 != 15 ? JPEG_STEPS_END : (symbol >> 4) + 1;
    *value = jpeg_extend(bits << length, size);
    return length + size;
}

#ifdef __cplusplus
}
#endif

#endif
