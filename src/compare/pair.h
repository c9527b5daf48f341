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
    struct codec_settings codec; /* compare_pair sets the pool of each file */
    struct compare_rules rules;
    const char *mask_path;               /* the path of the file of rules.mask, for messages */
    const char *pictures;                /* the folder for pictures of differences, or NULL to draw none */
    const char *picture;                 /* for a lone pair: the file for the picture, instead of `pictures` */
    const struct format *picture_format; /* if NULL, the picture's suffix decides, or it is PNG */
    bool thumbnails;                     /* make the row's thumbnails, if its images are not equal */
    atomic_bool *no_new_files;           /* the folder of the pictures is full or read-only; NULL if pairs share none */
};

/* A worker's data that it keeps from pair to pair. */
struct pair_worker;

/* Compare the pair of ROW as SETTINGS say, and set its kind and the fields after it. Files with the same bytes are not
 * decoded. A row of one file keeps its kind and may get a thumbnail. *WORKER is NULL at first; it uses THREADS threads,
 * and the memory budget of WORKERS. Release it with compare_worker_free. If memory is too small, the row has a
 * problem. */
void compare_pair(struct pair_worker **worker, struct workers *workers, int threads,
                  const struct compare_settings *settings, struct compare_row *row);

void compare_worker_free(struct pair_worker *worker);

/* Remove the pictures of an earlier run: the files at the paths of these rows' pictures, if they have the mark of
 * picture_save. Any other file stays. Fails if one cannot be removed. */
bool pictures_remove_old(const struct compare_settings *settings, const struct compare_rows *rows, struct error *error);

#endif
