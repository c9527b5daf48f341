/* SPDX-License-Identifier: MIT
 *
 * The progress of a batch or of one image: a line that is redrawn on a terminal, and a summary at the end. */
#ifndef GPUCONV_PROGRESS_H
#define GPUCONV_PROGRESS_H

#include "batch/batch.h"

#include <stdbool.h>

struct progress {
    bool wanted; /* standard error is a terminal, and the user wants the line */
    bool drawn;  /* the line is on the screen */
};

/* Write the line to TEXT, of SIZE bytes: a bar of the work if it fits; the files and the speed of a batch, or the step
 * and the rows of one image; and the remaining time, as soon as it can be estimated. */
void progress_print(const struct batch_totals *totals, char *text, size_t size);

/* Draw the line; for one image, only after a second. A process in the background draws nothing. */
void progress_draw(struct progress *progress, const struct batch_totals *totals);

/* Clear the line if it is drawn, so that something else can be printed. */
void progress_clear(struct progress *progress);

/* Print why a batch was done on this backend, a line of --verbose. */
void print_choice(const struct batch_totals *totals);

/* Print the summary, one line, with UNIT "file". WHY says why files were skipped. */
void print_summary(const struct batch_totals *totals, const char *unit, const char *why);

/* Does DESCRIPTOR take some bytes at once? A pipe that nobody reads may not. */
bool is_writable(int descriptor);

/* Print the last line of work that a signal ended: "interrupted: 3 of 8 files done", with UNIT "file" and VERB "done",
 * and then HINT. It neither waits for a reader nor takes a lock, because workers may hang. */
void print_interrupted(const struct batch_totals *totals, const char *unit, const char *verb, const char *hint);

#endif
