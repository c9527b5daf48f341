/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of this folder: how a worker compares a pair, the picture of a difference, and thumbnails. */
#ifndef GPUCONV_COMPARE_INTERNAL_H
#define GPUCONV_COMPARE_INTERNAL_H

#include "base/parallel.h"
#include "base/workers.h"
#include "codec/format.h"
#include "compare/pair.h"
#include "compare/report.h"

/* ---- pair.c ---- */

/* A thread's data that it keeps from pair to pair. */
struct pair_worker {
    const struct compare_settings *settings; /* the settings of the current pair */
    struct workers *workers;                 /* all workers of the comparison, and their memory budget */
    struct thread_pool both, each[2];        /* for both files at once and their comparison; for each file */
    size_t reserved;                         /* bytes of the memory budget that the current pair has reserved */
};

/* ---- picture.c ---- */

/* Write PICTURE, encoded as CODEC says, to the file that the settings name for ROW, and record its path in ROW. The
 * file gets the mark that a later run looks for. If a signal came, no file is written. */
bool picture_save(const struct pair_worker *worker, const struct codec_settings *codec, const struct image *picture,
                  struct compare_row *row, struct error *error);

/* ---- thumbnail.c ---- */

/* The longest side of a thumbnail, in pixels. */
enum { THUMBNAIL_SIDE = 160 };

/* A picture in a file, with 8 bits per sample and without alpha. */
struct thumbnail {
    const struct format *format; /* NULL if there is no thumbnail */
    uint8_t *bytes;
    size_t size;
    int width, height;
    int orientation; /* the EXIF orientation of the original, or 0: browsers obey it, but the thumbnail is not turned */
};

/* The thumbnails of a row. */
struct thumbnails {
    struct thumbnail expected, actual, difference;
};

/* How a square of pixels becomes one pixel. */
enum shrink {
    SHRINK_MEAN,    /* their mean, weighted by alpha, over a chequered ground */
    SHRINK_LARGEST, /* the largest sample of each channel, so that one different pixel stays visible; no alpha */
};

/* Set SMALL to IMAGE with 8 bits per sample and without alpha, and both sides divided by the smallest whole number that
 * makes them fit. Release it with image_free. Fails if there is not enough memory. */
bool image_shrink(const struct image *image, enum shrink shrink, struct image *small, struct error *error);

/* Encode SMALL, a shrunk image: as a PNG if it has few pixels, else as a JPEG. Release the thumbnail's bytes with free.
 * Fails if there is not enough memory. */
bool thumbnail_encode(const struct image *small, struct thumbnail *thumbnail);

/* ---- page_pictures.c ---- */

/* The largest number of bytes of all pictures that are in the page itself. */
enum { PAGE_EMBEDDED_MAX = 16 << 20 };

enum page_side { PAGE_EXPECTED, PAGE_ACTUAL, PAGE_DIFFERENCE, PAGE_SIDES };

const char *page_side_name(enum page_side side);

/* The thumbnail and the path of a side, or NULL. */
const struct thumbnail *page_thumbnail(const struct compare_row *row, enum page_side side);
const char *page_picture_path(const struct compare_row *row, enum page_side side);

/* The pictures of a page: in the page itself, or in a folder beside it. */
struct page_pictures {
    char *folder;     /* the pictures are copied to this folder; NULL if they are in the page; release it with free */
    size_t left;      /* bytes of pictures that still fit into the page */
    bool leaves_some; /* some pictures are left out: they do not fit into the page, and no folder can be made */
    const struct compare_row *row; /* the row whose picture was taken last */
    size_t number; /* the number of `row`, counted from 1; the names of its files in the folder contain it */
};

/* A picture of a page. LINK and BYTES are NULL if the file has gone, or does not fit. */
struct page_picture {
    char *link;     /* the picture's path, relative to the page; NULL if the bytes are in the page */
    uint8_t *bytes; /* release both with free */
    size_t size;
    const struct format *format; /* a format that browsers show */
};

/* Prepare for the page at PATH, and remove the pictures of an earlier page there. */
bool page_pictures_open(struct page_pictures *pictures, const char *path, const struct report_request *request,
                        struct error *error);

/* Take the picture of a side of a row; the rows come one after another. Fails if it cannot be copied to the folder. */
bool page_picture_take(struct page_pictures *pictures, const struct compare_row *row, enum page_side side,
                       struct page_picture *picture, struct error *error);

#endif
