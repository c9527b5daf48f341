/* SPDX-License-Identifier: MIT
 *
 * From taps to a program: which passes a filter takes, in which arithmetic, and their steps. */
#ifndef GPUCONV_PROGRAM_H
#define GPUCONV_PROGRAM_H

#include "cpu/loops.h"
#include "plan/plan.h"

#include <stdbool.h>

/* What cpu_prepare derives from a plan. It does not depend on the planes, and launches only read it. */
struct program {
    const struct loops *loops;
    struct pass *first, *last; /* the same where there is one pass */
    struct pass *second;       /* of the second grid, after the first; NULL where there is one grid */
    int sums;                  /* rows of sums that are joined to one of outputs: DIGITS of each grid; 0: none are */
    int digits;                /* 1; of samples of uint16_t 2 where 32 bits do not hold a sum */
    enum share shares[2]; /* of samples of uint16_t: what the first pass reads, for each digit if there is one pass */
    bool is_root16;       /* magnitudes of uint16_t that doubles do not serve */
    struct join join;     /* of the two */
    struct join16 join16; /* of all SUMS, for samples of uint16_t */
    int shift_tap;        /* where outputs are samples: the tap that takes them; else -1 */
    bool is_window;       /* of equal taps: no steps */
};

/* The program of PLAN for LOOPS; NULL where there is not enough memory. Free it with program_free. */
struct program *program_make(const struct plan *plan, const struct loops *loops);

void program_free(struct program *program);

#endif
