/* SPDX-License-Identifier: MIT
 *
 * A launch of the variant `cpu`: how planes are cut into tiles, and how a program is applied to one. */
#ifndef GPUCONV_TILES_H
#define GPUCONV_TILES_H

#include "cpu/program.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SCRATCH_ALIGNMENT = 64 }; /* a cache line, and the widest vector */

/* One launch: what all its tiles share. */
struct launch {
    const struct plan *plan;
    const struct program *program;
    const struct plane *in, *out;
    bool past_caches; /* outputs are written past the caches */
    bool in_place;    /* samples are read where they stand, away from the border */
    int first_width, tile_width, tile_height, tiles_x, tiles_y; /* the first column of tiles has a width of its own */
    int input_sets, input_rows;                                 /* of a thread's scratch */
    int ring_rows; /* for each digit a ring of the first pass's sums, where there are two passes */
    int sum_rows;  /* SUMS of each row of a group */
    size_t input_bytes, ring_bytes, spare_bytes; /* of a row; sums are as long as the rings' rows */
    size_t scratch_bytes;
    char *scratch;
};

/* Choose the tiles: as wide as a ring in L1 allows, and enough of them for the threads. */
void tiles_choose(struct launch *launch, int threads);

/* Convolve tile number INDEX, of tiles_x * tiles_y * planes, with the scratch of THREAD. CONTEXT is the launch. */
void tile_convolve(void *context, int64_t index, int thread);

#endif
