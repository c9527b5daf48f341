/* SPDX-License-Identifier: MIT
 *
 * How far a batch is: a line that is drawn over and over on a terminal, and a summary at the end. */
#ifndef GPUCONV_PROGRESS_H
#define GPUCONV_PROGRESS_H

#include "batch/batch.h"

#include <stdbool.h>

struct progress {
    bool wanted; /* draw it */
    bool drawn;  /* it is on the cursor's line */
};

/* Draw the line: a bar where there is room for it, files, speed and the time that is left. */
void progress_draw(struct progress *progress, const struct batch_totals *totals);

/* Clear the line if it is drawn, so that something else can be printed. */
void progress_clear(struct progress *progress);

/* Print what was done, in one line. */
void print_summary(const struct batch_totals *totals);

#endif
