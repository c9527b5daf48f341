/* SPDX-License-Identifier: MIT
 *
 * Between index.c and decode.c, which know scans and pictures, and the inner loops of the decoder, which are compiled
 * once for each instruction set. */
#ifndef GPUCONV_JPEG_DECODE_LOOPS_H
#define GPUCONV_JPEG_DECODE_LOOPS_H

#include "base/vector/instruction_sets.h"
#include "jpeg/index.h"

/* A position between two blocks of the data. */
struct jpeg_cursor {
    uint64_t bit;
    uint64_t blocks;                    /* walked so far */
    int phase;                          /* number of the next block in its MCU */
    uint16_t sums[JPEG_MCU_BLOCKS_MAX]; /* sums of the DC differences so far, modulo 2^16, by the block in the MCU */
};

/* Walk over COUNT blocks, without the values of AC coefficients, or until CURSOR reaches or passes bit number STOP. END
 * is the end of the data, not below STOP unless that is UINT64_MAX. Returns false if a block is damaged or passes END.
 * The cursor then stands before it, and *FAILED is the bit where it broke. */
typedef bool jpeg_walk_function(const struct jpeg_index *index, struct jpeg_cursor *cursor, uint64_t count,
                                uint64_t stop, uint64_t end, uint64_t *failed);

/* Decode row number ROW of MCUs to its planes, which follow each other. */
typedef void jpeg_decode_function(const struct jpeg_index *index, int row, uint8_t *planes);

/* Upsample and convert ROWS rows of pixels, from row FIRST on, which begins a row of MCUs, to SAMPLES. PLANES are the
 * decoded rows of MCUs that hold them, and those above and below. */
typedef void jpeg_convert_function(const struct jpeg_layout *layout, int first, int rows,
                                   const struct jpeg_planes *planes, uint8_t *samples);

/* One instruction set. */
struct jpeg_decode_loops {
    jpeg_walk_function *walk;
    jpeg_decode_function *decode;
    jpeg_convert_function *convert;
};

const struct jpeg_decode_loops *jpeg_decode_loops_for(enum instruction_set set);

extern const struct jpeg_decode_loops jpeg_decode_portable;
#ifdef __x86_64__
extern const struct jpeg_decode_loops jpeg_decode_sse2, jpeg_decode_avx2;
#elif defined(__aarch64__)
extern const struct jpeg_decode_loops jpeg_decode_neon;
#endif

#ifdef GPUCONV_SET /* the functions of the set that is compiled */
jpeg_walk_function IN_SET(jpeg_walk);
jpeg_decode_function IN_SET(jpeg_decode_row);
jpeg_convert_function IN_SET(jpeg_convert);
#endif

#endif
