/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of this room: how a worker compares a pair, the picture of a difference, and thumbnails. */
#ifndef GPUCONV_COMPARE_INTERNAL_H
#define GPUCONV_COMPARE_INTERNAL_H

#include "base/parallel.h"
#include "base/workers.h"
#include "codec/format.h"
#include "compare/pair.h"
#include "compare/report.h"

/* ---- pair.c ---- */

/* What one thread keeps from pair to pair. */
struct pair_worker {
    const struct compare_settings *settings; /* of this pair */
    struct workers *workers;                 /* of which this is one */
    struct thread_pool both, each[2];        /* for the two files at the same time, and for each of them */
    size_t reserved;                         /* bytes of the budget */
};

/* ---- picture.c ---- */

/* Write PICTURE, encoded as CODEC says, to the file that the settings name for ROW, and note its path there. It gets
 * the mark that a later run looks for. If a signal came, no file is written. */
bool picture_save(const struct pair_worker *worker, const struct codec_settings *codec, const struct image *picture,
                  struct compare_row *row, struct error *error);

/* ---- thumbnail.c ---- */

/* The longest side, in pixels. */
enum { THUMBNAIL_SIDE = 160 };

/* A picture in a file, with 8 bits per sample and without alpha. */
struct thumbnail {
    const struct format *format; /* NULL if there is no thumbnail */
    uint8_t *bytes;
    size_t size;
    int width, height;
    int orientation; /* of the original's EXIF, or 0; browsers follow it, and thumbnails do not */
};

/* The thumbnails of a row. */
struct thumbnails {
    struct thumbnail expected, actual, difference;
};

/* How many pixels become one. */
enum shrink {
    SHRINK_MEAN,    /* their mean, weighed by alpha, over a chequered ground */
    SHRINK_LARGEST, /* the largest of each channel, so that one different pixel stays visible; no alpha */
};

/* Set SMALL to IMAGE with 8 bits per sample and without alpha, and both sides divided by the smallest whole number that
 * makes them fit. Release it with image_free. Fails if there is not enough memory. */
bool image_shrink(const struct image *image, enum shrink shrink, struct image *small, struct error *error);

/* Encode SMALL, a shrunk image: one of a few pixels exactly, others as a JPEG. Release its bytes with free. Fails if
 * there is not enough memory. */
bool thumbnail_encode(const struct image *small, struct thumbnail *thumbnail);

/* ---- page_pictures.c ---- */

/* The bytes of all pictures that are in the page itself. */
enum { PAGE_EMBEDDED_MAX = 16 << 20 };

enum page_side { PAGE_EXPECTED, PAGE_ACTUAL, PAGE_DIFFERENCE, PAGE_SIDES };

const char *page_side_name(enum page_side side);

/* The thumbnail and the path of a side, or NULL. */
const struct thumbnail *page_thumbnail(const struct compare_row *row, enum page_side side);
const char *page_picture_path(const struct compare_row *row, enum page_side side);

/* How a page brings its pictures. */
struct page_pictures {
    char *folder;     /* where they are copied to, or NULL if they are in the page; release it with free */
    size_t left;      /* bytes that the page can still hold */
    bool leaves_some; /* no folder can be made, and the page cannot hold all */
    const struct compare_row *row;
    size_t number; /* of that row */
};

/* A picture that a page brings. All is NULL if it does not: it has gone, or does not fit. */
struct page_picture {
    char *link;     /* its path, relative to the page, or NULL if the bytes are in the page */
    uint8_t *bytes; /* release both with free */
    size_t size;
    const struct format *format; /* one that browsers show */
};

/* Prepare for the page at PATH, and remove what an earlier one brought. */
bool page_pictures_open(struct page_pictures *pictures, const char *path, const struct report_request *request,
                        struct error *error);

/* Take the picture of a side of a row; the rows come one after another. Fails if it cannot be copied to the folder. */
bool page_picture_take(struct page_pictures *pictures, const struct compare_row *row, enum page_side side,
                       struct page_picture *picture, struct error *error);

#endif
