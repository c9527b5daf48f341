/* SPDX-License-Identifier: MIT
 *
 * One pass of a filter of ranks, as rank.c asks for it. */
#ifndef GPUCONV_CPU_RANK_H
#define GPUCONV_CPU_RANK_H

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

#endif
