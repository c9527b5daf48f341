/* SPDX-License-Identifier: MIT
 *
 * All pairs, on all cores. */
#ifndef GPUCONV_WORKERS_H
#define GPUCONV_WORKERS_H

#include "base/error.h"
#include "compare/pair.h"
#include "compare/rows.h"

#include <stdbool.h>
#include <stddef.h>

/* How far the work is. */
struct workers_progress {
    size_t ended, count; /* pairs to compare */
    double bytes_ended, bytes;
    double pixels;
};

struct workers_request {
    const struct compare_settings *settings;
    int threads;   /* of all; 0: one for each processor */
    int jobs;      /* pairs at a time; 0: as many as threads */
    size_t memory; /* bytes of all pairs; 0: no limit */
    void (*on_progress)(void *context, const struct workers_progress *progress); /* about ten times a second; or NULL */
    void *context;
};

/* So many rows have thumbnails, the first ones by name: what the page holds is bounded, and the same in each run. */
enum { WORKERS_THUMBNAILS_MOST = 2000 };

/* Compare each pair of ROWS that has two readable files, and count the kinds. Each pair takes one thread, largest files
 * first; where there are fewer pairs than threads, a pair takes several. Signals that end a program are blocked
 * meanwhile. If one comes, no picture is written any more, *SIGNAL is set, and *PROGRESS is what was done: threads may
 * still use everything, so the caller must release nothing and call _exit. Fails only if it cannot begin. */
bool workers_run(const struct workers_request *request, struct compare_rows *rows, int *signal,
                 struct workers_progress *progress, struct error *error);

#endif
