/* SPDX-License-Identifier: MIT
 *
 * How a pair is compared. */
#ifndef GPUCONV_COMPARE_PAIR_H
#define GPUCONV_COMPARE_PAIR_H

#include "base/error.h"
#include "base/workers.h"
#include "codec/codec.h"
#include "compare/rows.h"

#include <stdatomic.h>
#include <stdbool.h>

/* How all pairs are compared. */
struct compare_settings {
    struct codec_settings codec; /* its pool is set for each file */
    struct compare_rules rules;
    const char *mask_path;               /* of the mask of the rules */
    const char *pictures;                /* the folder for pictures of differences, or NULL to draw none */
    const char *picture;                 /* for a lone pair instead: the file */
    const struct format *picture_format; /* if NULL, the picture's suffix decides, or it is PNG */
    bool thumbnails;                     /* make those of the row, if it is not equal */
    atomic_bool *no_new_files;           /* the folder of the pictures is full or read-only; NULL if pairs share none */
};

/* What a worker keeps from pair to pair. */
struct pair_worker;

/* Compare the pair of ROW as SETTINGS say, and set its kind and all that follows. Files of the same bytes are not
 * decoded. A row of one file keeps its kind and may get a thumbnail. *WORKER is NULL at first; it uses THREADS threads,
 * and the memory budget of WORKERS. Release it with compare_worker_free. A lack of memory is the problem of the row. */
void compare_pair(struct pair_worker **worker, struct workers *workers, int threads,
                  const struct compare_settings *settings, struct compare_row *row);

void compare_worker_free(struct pair_worker *worker);

/* Remove the pictures of an earlier run: the files at the paths of these rows' pictures, if they have the mark. Any
 * other file stays. Fails if one cannot be removed. */
bool pictures_remove_old(const struct compare_settings *settings, const struct compare_rows *rows, struct error *error);

#endif
