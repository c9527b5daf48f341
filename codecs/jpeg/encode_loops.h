/* SPDX-License-Identifier: MIT
 *
 * Between encode.c, which knows bands and files, and encode_loops.c, which is compiled once for each instruction
 * set. */
#ifndef GPUCONV_JPEG_ENCODE_LOOPS_H
#define GPUCONV_JPEG_ENCODE_LOOPS_H

#include "base/vector/instruction_sets.h"
#include "jpeg/jpeg.h"

enum {
    JPEG_TILE = 128, /* pixels: a whole number of MCUs, whose blocks stay in the first cache */
    JPEG_TILE_BLOCKS = JPEG_TILE / JPEG_SIDE * 4, /* at most: 16 MCUs of 1 x 2, with 4 blocks each */

    /* A code has at most 16 bits. Its value has at most 11 bits for a DC difference, and 10 for an AC coefficient. Only
     * 63 AC coefficients take most. */
    JPEG_BLOCK_BYTES_MAX = (27 + 63 * 26 + 7) / 8,

    /* Coefficients below this magnitude have tables of their codes with their values. */
    JPEG_SMALL = 32,
};

/* To divide a coefficient x, scaled by 8, by a quantiser of 1 to 255, to the nearest and halves away from 0:
 * ((|x| + bias) * reciprocal >> 16) * scale >> 16. In natural order. */
struct jpeg_divisors {
    uint16_t bias[JPEG_BLOCK], reciprocal[JPEG_BLOCK], scale[JPEG_BLOCK];
};

/* What the Huffman tables of a component make of symbols. */
struct jpeg_codes {
    uint32_t small[16]
                  [2 * JPEG_SMALL]; /* by run and value + JPEG_SMALL: the length, and from bit 8 on code and value */
    uint32_t dc[16], ac[256];       /* as jpeg_symbol_codes sets them */
};

/* Quantised blocks in zigzag order, in the order of the scan. */
struct jpeg_blocks {
    _Alignas(64) int16_t coefficients[JPEG_TILE_BLOCKS][JPEG_BLOCK];
    uint64_t nonzero[JPEG_TILE_BLOCKS]; /* bit i: coefficient i is not zero; the DC's bit may be anything */
};

/* Some pixels of a row of MCUs. */
struct jpeg_tile {
    const uint8_t *samples; /* the samples of the first pixel */
    size_t row_bytes;       /* bytes from a row to the next */
    int channels;           /* 1 or 3 */
    int columns;            /* pixels from the first one to the end of its row */
    int rows;               /* at most those of an MCU */
};

/* Bits on their way to memory. */
struct jpeg_bits {
    uint8_t *next;
    uint64_t pending; /* the last COUNT bits, 0 to 7, are not in memory yet */
    int count;
};

/* The bits of a magnitude, and those that stand for VALUE (T.81, F.1.2.1). */
static inline int count_bits(int value)
{
    const unsigned magnitude = (unsigned)(value < 0 ? -value : value);
    return magnitude == 0 ? 0 : 32 - __builtin_clz(magnitude);
}

static inline uint32_t value_bits(int value, int count)
{
    return (uint32_t)(value - (value < 0)) & ((1u << count) - 1);
}

/* One instruction set. */
struct jpeg_encode_loops {
    /* Convert, subsample, transform and quantise a tile. Returns the number of its MCUs. */
    int (*transform)(const struct jpeg_layout *layout, const struct jpeg_divisors divisors[2],
                     const struct jpeg_tile *tile, struct jpeg_blocks *blocks);

    /* Write the codes of MCUs FIRST up to LAST. PREDICTORS are the DC values before them, and then of the last ones.
     * Memory for JPEG_BLOCK_BYTES_MAX a block is there, and for 8 bytes more. */
    void (*encode)(const struct jpeg_layout *layout, const struct jpeg_codes codes[2], const struct jpeg_blocks *blocks,
                   int first, int last, int predictors[JPEG_COMPONENTS_MAX], struct jpeg_bits *bits);
};

extern const struct jpeg_encode_loops jpeg_encode_portable;
#ifdef __x86_64__
extern const struct jpeg_encode_loops jpeg_encode_sse2, jpeg_encode_avx2, jpeg_encode_avx512;
#elif defined(__aarch64__)
extern const struct jpeg_encode_loops jpeg_encode_neon;
#endif

/* ---- The encoder, for encode.c and its tests ---- */

/* A file, as far as it is written. */
struct jpeg_file {
    struct blob blob;
    uint64_t pending; /* the last PENDING_COUNT bits, 0 to 7, are not in the blob yet */
    int pending_count;
    int predictors[JPEG_COMPONENTS_MAX];
};

struct jpeg_encoder {
    struct jpeg_layout layout;
    struct jpeg_divisors divisors[2]; /* the divisors of luma, and of chroma */
    struct jpeg_codes codes[2];
    const struct jpeg_encode_loops *loops;
    struct jpeg_file file;
    struct jpeg_band **bands; /* by the row of MCUs that a band begins with, until it is in the file; else NULL */
};

const struct jpeg_encode_loops *jpeg_encode_loops_for(enum instruction_set set);

/* Append the first COUNT bits at BITS, with a 0 byte after each FF. Returns false if there is not enough memory. */
bool jpeg_file_append_bits(struct jpeg_file *file, const uint8_t *bits, uint64_t count);

#endif
