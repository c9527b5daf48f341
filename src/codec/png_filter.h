/* SPDX-License-Identifier: MIT
 *
 * The row filters of PNG, both ways: what a row holds is replaced by its difference from a prediction, which compresses
 * better. Nothing but rows of bytes here; png_read.c and png_write.c know the file around them. */
#ifndef GPUCONV_PNG_FILTER_H
#define GPUCONV_PNG_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes of a pixel: four samples of 16 bits. Rows that are read need as many bytes of room before them. */
enum { PNG_PIXEL_MAX = 8 };

/* What png_filter needs for rows of SIZE bytes. */
static inline size_t png_filter_scratch(size_t size)
{
    return 4 * size;
}

/* Filter ROW, below ABOVE (zeros over the first), both of SIZE bytes and with PNG_PIXEL_MAX zeros before them, in the
 * way that leaves the smallest absolute differences. Write the filter's number and the row to OUT, 1 + SIZE bytes.
 * PIXEL is the bytes of a pixel, ROOM png_filter_scratch(SIZE) bytes that it may scribble on. */
void png_filter(const uint8_t *row, const uint8_t *above, size_t size, size_t pixel, uint8_t *room, uint8_t *out);

/* Undo filter number FILTER in place; ABOVE is NULL over the first row. False where there is no such filter. */
bool png_unfilter(unsigned filter, uint8_t *row, const uint8_t *above, size_t size, size_t pixel);

#endif
