/* SPDX-License-Identifier: MIT
 *
 * One pair of files: read, decode, compare, draw the difference. */
#ifndef GPUCONV_PAIR_H
#define GPUCONV_PAIR_H

#include "base/error.h"
#include "base/parallel.h"
#include "base/workers.h"
#include "codec/codec.h"
#include "compare/rows.h"

#include <stdbool.h>

/* How all pairs are compared. */
struct compare_settings {
    struct codec_settings codec; /* its pool is set for each file */
    struct compare_rules rules;
    const char *pictures;                /* the folder for pictures of differences; NULL: draw none */
    const char *picture;                 /* for a lone pair instead: the file */
    const struct format *picture_format; /* NULL: what the picture's suffix says, else PNG */
    bool thumbnails;                     /* make those of all rows that are not equal */
};

/* What one thread keeps from pair to pair. The caller sets the first two fields, and may set the third for each pair. */
struct pair_worker {
    const struct compare_settings *settings;
    struct workers *workers; /* of which this is one */
    bool wants_thumbnails;
    struct thumbnails *thumbnails;    /* of the last pair, which the caller takes; NULL: none */
    struct thread_pool both, each[2]; /* for the two files beside each other, and for each of them */
    size_t reserved;                  /* bytes of the budget */
};

/* Prepare a worker that uses THREADS threads. Release with pair_worker_close. */
void pair_worker_open(struct pair_worker *worker, int threads);
void pair_worker_close(struct pair_worker *worker);

/* Compare the two files of ROW, and set its kind and all that follows. Files of the same bytes are not decoded. A row of
 * one file keeps its kind and may get a thumbnail. */
void pair_compare(struct pair_worker *worker, struct compare_row *row);

#endif
