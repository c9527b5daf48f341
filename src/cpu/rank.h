/* SPDX-License-Identifier: MIT
 *
 * One pass of a filter of ranks, as rank.c asks for it and rank_loops.c does it for one instruction set. */
#ifndef GPUCONV_CPU_RANK_H
#define GPUCONV_CPU_RANK_H

#include "base/vector/instruction_sets.h"
#include "plan/plan.h"
#include "plan/rank.h"

/* What a pass makes: in rows from FIRST_ROW to the one before LAST_ROW of OUT, the samples of rank INDEX of the
 * footprint's windows of IN. */
struct rank_run {
    const struct plan *plan;
    const struct plane *in, *out;
    int index;
    int first_row, last_row;
};

enum rank_method {
    RANK_ENDS,       /* the lowest or the highest sample */
    RANK_NETWORK,    /* the median of 3 x 3 or 5 x 5 samples, by a network of comparisons */
    RANK_THRESHOLDS, /* any rank in a rectangle of uint8_t, by the number of samples below a level */
    RANK_HISTOGRAM,  /* a histogram that moves with the window */
};

enum {
    RANK_TILE = 128,  /* pixels of a side of a tile for a histogram or thresholds, at most */
    RANK_PART = 2048, /* keys of a part of a row, and of a row of a tile for a network, at most */
    RANK_PITCH =
        2048 + 64,    /* keys from a row of the scratch of a network to the next; rows begin in other cache sets */
    RANK_AHEAD = 2,   /* rows of the image that are fetched before they are read */
    RANK_FACTORS = 8, /* factors of a window's width, at most */
    RANK_ROW_ALIGNMENT = 64, /* keys of a row of scratch: a multiple of this */
};

/* Samples of one row of the footprint: COUNT from column X on. */
struct rank_samples {
    uint8_t x, y, count;
};

/* What all tiles of a pass share. */
struct rank_tiling {
    const struct rank_run *run;
    enum rank_method method;
    int lanes;                   /* samples of a pixel that a tile has: 1, or all of planes that are together */
    int tile_width, tile_height; /* pixels */
    int tiles_x, tiles_y;        /* tiles of a plane */
    int pitch;                   /* keys from a row of a tile's scratch to the next */
    uint8_t factors
        [RANK_FACTORS]; /* factors of the footprint's width, as across() in rank_keys.h takes them; ends with 1 */
    int sample_count, longest;          /* entries of SAMPLES, and the largest of their counts */
    const struct rank_samples *samples; /* the footprint's samples, row after row */
    /* For a histogram: where samples are that enter the window and leave it when it moves by a pixel to the right, to
     * the left and down. They are counted from the window's first key before it moves. */
    int move_counts[3];
    const int32_t *entering[3], *leaving[3];
    char *scratch; /* SCRATCH_BYTES for each thread */
    size_t scratch_bytes;
};

/* The pixels of a tile are columns X0 to X1 - 1 of rows Y0 to Y1 - 1. LEFT and RIGHT columns of its windows are outside
 * the image, and can be made of those inside. */
struct rank_tile {
    int channel, x0, x1, y0, y1;
    int left, right;
};

/* One instruction set: the function makes one tile of planes of a type of samples. */
struct rank_loops {
    void (*run[SAMPLE_COUNT])(const struct rank_tiling *tiling, const struct rank_tile *tile, char *scratch);
};

extern const struct rank_loops rank_loops_portable, rank_loops_sse2, rank_loops_avx2, rank_loops_avx512,
    rank_loops_vnni, rank_loops_neon, rank_loops_i8mm;

#endif
