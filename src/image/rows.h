/* SPDX-License-Identifier: MIT
 *
 * Rows of an image on their way: rows with their neighbours, a source that gives rows, and a sink that takes them. The
 * pipeline and codecs share these. image/stream.h moves rows from a source to a sink. */
#ifndef GPUCONV_ROWS_H
#define GPUCONV_ROWS_H

#include "image/image.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Raw rows: what a source has fetched, and reads in its next step. If the source takes any order, the rows above and
 * below are fetched already, and other threads read all of these at the same time. Otherwise the read may change its
 * rows, and the other two are NULL. */
struct rows {
    uint8_t *data;
    const uint8_t *above; /* the end of the raw rows above; NULL at the top */
    const uint8_t *below; /* the raw rows below; NULL at the bottom */
};

/* Gives the rows of an image. The functions return false after an error, which ends the stream. */
struct row_source {
    const struct image *image; /* the whole image, in memory; NULL if the functions below make its rows */
    void *context;             /* the first argument of the functions */
    size_t raw_bytes;          /* bytes of one fetched row */
    int multiple;              /* calls get a multiple of this number of rows, except for the last rows; at least 1 */
    bool any_order; /* several threads call at once, in any order; else each function gets the rows from the top down,
                       and one thread may fetch while another reads, so the two share no state */
    int readers;    /* without any_order: the maximal number of threads that read at once; a read waits for the rows
                       above where it needs them; 0 means 1 */
    atomic_bool *translucent; /* set, and the stream fails, once a pixel is not opaque; or NULL */

    /* Fetch ROWS rows, from row FIRST on, to RAW. That has raw_bytes for each row, and for as many more as the multiple
     * asks for. It is NULL if rows are read without a fetch. */
    bool (*fetch)(void *context, int first, int rows, uint8_t *raw, struct error *error);

    /* Do part of the work of later fetches. Any thread may call this at any time. Returns false if there is
     * nothing to do before another call ends. It is NULL if there never is. */
    bool (*help)(void *context);

    /* Read ROWS rows, from row FIRST on, to SAMPLES. RAW is what a fetch of the same rows has made. */
    bool (*read)(void *context, int first, int rows, const struct rows *raw, uint8_t *samples, struct error *error);
};

/* Takes the rows of an image. The functions return false after an error, which ends the stream. */
struct row_sink {
    struct image *image; /* receives the rows, and the functions below get them from it; or NULL */
    void *context;       /* the first argument of the functions */
    int multiple;        /* calls get a multiple of this number of rows, except for the last rows; at least 1 */
    bool reads_above;    /* `encode` gets the row above its rows, too: it stands before them in memory */

    /* Encode ROWS, from row FIRST of the image on, on thread number THREAD, below those of the pool. Several threads
     * call this at once. It is NULL if nothing is encoded before the write. */
    bool (*encode)(void *context, int thread, int first, const struct image *rows, struct error *error);

    /* Write ROWS, from row FIRST on, which are encoded. They come from the top down. */
    bool (*write)(void *context, int first, const struct image *rows, struct error *error);
};

#endif
