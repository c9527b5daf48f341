/* SPDX-License-Identifier: MIT
 *
 * How the variant `cpu` cuts planes into tiles, and applies a program to a tile. */
#ifndef GPUCONV_TILES_H
#define GPUCONV_TILES_H

#include "cpu/program.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCRATCH_ALIGNMENT = 64 }; /* a cache line, and the widest vector */

/* What all tiles of one launch share. */
struct tiling {
    const struct plan *plan;
    const struct program *program;
    const struct plane *in, *out;
    int step;                /* samples from a pixel to the next one in a row */
    int first_row, last_row; /* the rows of the outputs that are made */
    bool past_caches;        /* outputs are written past the caches */
    bool in_place;           /* away from the border, passes read the samples of the input plane without a copy */
    int first_width, tile_width, tile_height, tiles_x, tiles_y; /* the first column of tiles has its own width */
    int tile_planes;            /* planes of a tile: all for the threshold of an unsharp mask, else one */
    int input_sets, input_rows; /* sets and rows of inputs in a thread's scratch; a set for each part of the samples */
    int ring_rows;              /* rows of the ring of the first pass's sums, one ring for each part; 0 for one pass */
    int sum_rows;               /* joined_rows for each row of a group */
    size_t input_bytes, ring_bytes, spare_bytes; /* bytes of a row; a row of sums is as long as a row of a ring */
    size_t mark_bytes;    /* for the marks of the threshold, a byte for each pixel of a tile, or 0 */
    size_t scratch_bytes; /* the marks come last */
    char *scratch;
};

/* Choose the size of the tiles: as wide as a ring in L1 allows, and enough of them for THREADS. Sets the sizes of the
 * scratch too. */
void tiles_choose(struct tiling *tiling, int threads);

/* The number of tiles in all planes. */
int64_t tiles_count(const struct tiling *tiling);

/* Convolve tile number INDEX in the scratch of THREAD. CONTEXT is a struct tiling. A function for parallel_for. */
void tile_convolve(void *context, int64_t index, int thread);

#endif
