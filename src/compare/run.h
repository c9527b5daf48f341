/* SPDX-License-Identifier: MIT
 *
 * All pairs, on all cores. */
#ifndef GPUCONV_COMPARE_RUN_H
#define GPUCONV_COMPARE_RUN_H

#include "base/error.h"
#include "batch/batch.h"
#include "compare/pair.h"
#include "compare/rows.h"

#include <stdbool.h>
#include <stddef.h>

struct compare_request {
    const struct compare_settings *settings;
    int threads;                                                           /* of all; 0: one for each processor */
    int jobs;                                                              /* pairs at a time; 0: as many as threads */
    size_t memory;                                                         /* bytes of all pairs; 0: no limit */
    void (*on_progress)(void *context, const struct batch_totals *totals); /* about ten times a second; or NULL */
    void *context;
};

/* So many rows have thumbnails, the first ones by name: what the page holds is bounded, and the same in each run. */
enum { COMPARE_THUMBNAILS_MAX = 2000 };

/* Compare each pair of ROWS that has two readable files, and count the kinds. Each pair takes one thread, largest files
 * first; where there are fewer pairs than threads, a pair takes several. TOTALS receives the pairs, and their bytes as
 * work. Signals that end a program are blocked meanwhile. If one comes, no picture is written any more, and totals->signal
 * is set: threads may still use everything, so the caller must release nothing and call _exit. Fails only if it cannot
 * begin. */
bool compare_run(const struct compare_request *request, struct compare_rows *rows, struct batch_totals *totals,
                 struct error *error);

#endif
