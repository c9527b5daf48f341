/* SPDX-License-Identifier: MIT
 *
 * Huffman codes, for decoders. The CPU and the GPU share this file. */
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

/* The symbol of the code that BITS begin with, which has more than *LENGTH bits. *LENGTH becomes how many. -1: there is
 * none. */
static inline HOST_DEVICE int inflate_search(const struct inflate_code *code, uint64_t bits, int *length)
{
    uint32_t value = 0;
    for (int here = 1; here <= INFLATE_CODE_MAX; here++, bits >>= 1) {
        value = value << 1 | (uint32_t)(bits & 1);
        const uint32_t i = value - (uint32_t)code->first[here];
        if (here <= *length || i >= code->count[here])
            continue;
        *length = here;
        return code->list[code->place[here] + i];
    }
    return -1;
}

#endif
