/* SPDX-License-Identifier: MIT
 *
 * The index of a scan: where each row of MCUs begins in its data, so that rows can be decoded in any order. The index
 * walks over all Huffman codes, on several threads. Without restart markers, a thread begins a little before its chunk
 * of the data and in a guessed state. Wrong guesses come right by themselves, because Huffman codes synchronise. */
#ifndef GPUCONV_JPEG_INDEX_H
#define GPUCONV_JPEG_INDEX_H

#include "jpeg/lookup.h"

struct jpeg_decode_loops;

/* The beginning of a row of MCUs. */
struct jpeg_entry {
    uint64_t bit;                     /* in the data */
    uint16_t dc[JPEG_COMPONENTS_MAX]; /* predictors, modulo 2^16 */
};

struct jpeg_index {
    struct jpeg_layout layout;
    const struct jpeg_decode_loops *loops;
    uint8_t *data; /* the scan's data, without stuffed bytes and restart markers; JPEG_DATA_PADDING zeros follow */
    size_t size;
    uint32_t *segments; /* where each restart segment begins; one more is the end of the data */
    size_t segment_count;
    struct jpeg_lookup *lookups;                           /* different ones */
    const struct jpeg_lookup *blocks[JPEG_MCU_BLOCKS_MAX]; /* the lookup of each block of an MCU */
    int period;                                            /* blocks of an MCU after which the lookups repeat */
    struct jpeg_entry *rows;                               /* layout.mcus_down of them */
    size_t wrong_guesses;                                  /* chunks that were walked again */
};

/* How the data are cut, in bits. */
struct jpeg_chunking {
    uint32_t chunk; /* at least 1024 */
    uint32_t lead;  /* so much before its chunk, a thread begins */
};

/* The usual cut, as measured on photos. */
extern const struct jpeg_chunking jpeg_usual_chunking;

/* jpeg_index_open, with one instruction set and another cut. */
struct jpeg_index *jpeg_index_build(const struct jpeg_layout *layout, const struct jpeg_scan *scan,
                                    const struct jpeg_decode_loops *loops, const struct jpeg_chunking *chunking,
                                    struct thread_pool *pool);

#endif
