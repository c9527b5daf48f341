/* SPDX-License-Identifier: MIT
 *
 * How pairs are compared, and the comparison of all of them on all cores. */
#ifndef GPUCONV_COMPARE_RUN_H
#define GPUCONV_COMPARE_RUN_H

#include "base/error.h"
#include "base/workers.h"
#include "batch/batch.h"
#include "codec/codec.h"
#include "compare/rows.h"

#include <stdbool.h>
#include <stddef.h>

/* How all pairs are compared. */
struct compare_settings {
    struct codec_settings codec; /* its pool is set for each file */
    struct compare_rules rules;
    const char *mask_path;               /* of the mask of the rules */
    const char *pictures;                /* the folder for pictures of differences, or NULL to draw none */
    const char *picture;                 /* for a lone pair instead: the file */
    const struct format *picture_format; /* if NULL, the picture's suffix decides, or it is PNG */
    bool thumbnails;                     /* make those of all rows that are not equal */
};

struct compare_request {
    const struct compare_settings *settings;
    int threads;   /* of all, or 0 for one for each processor */
    int jobs;      /* pairs at a time, or 0 for as many as threads */
    size_t memory; /* bytes of all pairs, or 0 for the default */
    /* Called about ten times per second; may be NULL. */
    void (*on_progress)(void *context, const struct batch_totals *totals);
    void *context;
};

/* Only the first rows by name have thumbnails: the size of the page is bounded, and the same in each run. */
enum { COMPARE_THUMBNAILS_MAX = 2000 };

/* Compare each pair of ROWS that has two readable files, and count the kinds. Each pair takes one thread, largest files
 * first. If there are fewer pairs than threads, a pair takes several. TOTALS receives the pairs, and their bytes as
 * work. Signals that end a program are blocked meanwhile. If one comes, no picture is written any more, and
 * totals->signal is set: threads may still use everything, so the caller must release nothing and call _exit. Fails
 * only if it cannot begin. */
bool compare_run(const struct compare_request *request, struct compare_rows *rows, struct batch_totals *totals,
                 struct error *error);

/* What a worker keeps from pair to pair, for pairs that come one after another. */
struct pair_worker;

/* Make one that uses THREADS threads for a pair, and the memory budget of WORKERS. Release it with compare_worker_free.
 * NULL if there is not enough memory. */
struct pair_worker *compare_worker_make(struct workers *workers, int threads);

/* Compare the pair of ROW as SETTINGS say. */
void compare_pair(struct pair_worker *worker, const struct compare_settings *settings, struct compare_row *row);

void compare_worker_free(struct pair_worker *worker);

/* Remove the pictures of an earlier run: the files at the paths of these rows' pictures, if they have the mark. Any
 * other file stays. Fails if one cannot be removed. */
bool pictures_remove_old(const struct compare_settings *settings, const struct compare_rows *rows, struct error *error);

#endif
