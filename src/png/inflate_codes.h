/* SPDX-License-Identifier: MIT
 *
 * Huffman codes, for decoders. The CPU and the GPU share this file. */
#ifndef GPUCONV_PNG_INFLATE_CODES_H
#define GPUCONV_PNG_INFLATE_CODES_H

#include "png/symbols.h"

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

#endif
