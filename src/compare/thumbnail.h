/* SPDX-License-Identifier: MIT
 *
 * Small pictures for the page of results. */
#ifndef GPUCONV_THUMBNAIL_H
#define GPUCONV_THUMBNAIL_H

#include "codec/format.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest side, in pixels. */
enum { THUMBNAIL_SIDE = 160 };

/* A picture in a file of 8 bits a sample and without alpha. */
struct thumbnail {
    const struct format *format; /* NULL: there is none */
    uint8_t *bytes;
    size_t size;
    int width, height;
    int orientation; /* of the original's EXIF, which browsers follow and thumbnails do not; 0: there is none */
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

/* Set SMALL to IMAGE with 8 bits a sample and without alpha, and both sides divided by the smallest whole number that
 * makes them fit. Release it with image_free. Fails if there is not enough memory. */
bool image_shrink(const struct image *image, enum shrink shrink, struct image *small, struct error *error);

/* Encode SMALL, a shrunk image: one of a few pixels exactly, others as a JPEG. Release its bytes with free. Fails if
 * there is not enough memory. */
bool thumbnail_encode(const struct image *small, struct thumbnail *thumbnail);

/* Shrink and encode. */
bool thumbnail_make(const struct image *image, enum shrink shrink, struct thumbnail *thumbnail);

/* Release the thumbnails, each from malloc; NULL is allowed. */
void thumbnails_free(struct thumbnails *thumbnails);

#endif
