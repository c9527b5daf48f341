/* SPDX-License-Identifier: MIT
 *
 * A program says how the variant `cpu` applies a filter: the passes, the arithmetic of each, and their steps. */
#ifndef GPUCONV_PROGRAM_H
#define GPUCONV_PROGRAM_H

#include "cpu/fast_fir.h"
#include "cpu/loops.h"
#include "plan/plan.h"

#include <stdbool.h>

/* What cpu_prepare derives from a plan. It does not depend on the size of the planes, and launches only read it. */
struct program {
    struct program *pixels; /* for planes that are together, if cpu_takes_pixels; else NULL */
    const struct loops *loops;
    struct pass *first, *last; /* one pass if the filter is applied in one pass */
    struct pass *second; /* for a filter of two grids: the second grid, over the rows that `first` reads; else NULL */
    struct pass *products[FIR_PRODUCTS]; /* a fast FIR's, or NULL: `first` is one of them, `last` adds their sums */
    bool is_narrow_root;                 /* samples of uint8_t: loops->run_roots joins the grids, with ROOT_TERM */
    float root_term;
    int joined_rows; /* SUM_PARTS for each grid, or the blur of an unsharp mask: rows of sums that are joined to one
                          * row of outputs; 0 if none are joined */
    int sum_parts;   /* rows of one sum: 1, or 2 for samples of uint16_t whose sums 32 bits do not hold */
    enum sample_part sample_parts[2]; /* samples of uint16_t: what the first pass reads, for each part of the sum */
    bool is_root16;       /* samples of uint16_t: doubles do not give the magnitudes exactly (struct root16) */
    struct join join;     /* samples of uint8_t and float: how the sums of the two grids are joined */
    struct join16 join16; /* samples of uint16_t: how all JOINED_ROWS are joined */
    bool is_shift;        /* outputs are samples: plan->shift_x, shift_y says where they are */
    bool is_window;       /* all taps are equal: running sums replace the passes */
    bool is_wide_window;  /* running sums replace the passes of a filter in two passes, whose taps are 1 */
    struct wide_window wide_window; /* without the memory of prefixes */
};

/* Make the program of PLAN for the instruction set of LOOPS. Returns NULL if there is not enough memory. Free it with
 * program_free, which also takes NULL. */
struct program *program_make(const struct plan *plan, const struct loops *loops);

/* Free the program and its passes. */
void program_free(struct program *program);

#endif
