/* SPDX-License-Identifier: MIT
 *
 * The EXIF tag Orientation: turn and mirror images. */
#include "image/image.h"

#include <stdlib.h>
#include <string.h>

/* Copy WIDTH x HEIGHT pixels of BYTES each. In the input, the next pixel of a row is IN_STEP bytes further, and the
 * next row is IN_ROW bytes further; both may be negative. The copy goes square by square, so that both sides stay in
 * the cache when rows become columns: a square touches 32 lines of at most 32 x 8 bytes on each side. */
static inline void copy_pixels(const uint8_t *in, ptrdiff_t in_step, ptrdiff_t in_row, uint8_t *out, int width,
                               int height, size_t bytes)
{
    enum { SQUARE = 32 };
    for (int y0 = 0; y0 < height; y0 += SQUARE)
        for (int x0 = 0; x0 < width; x0 += SQUARE)
            for (int y = y0; y < height && y < y0 + SQUARE; y++)
                for (int x = x0; x < width && x < x0 + SQUARE; x++)
                    memcpy(out + ((size_t)y * (size_t)width + (size_t)x) * bytes, in + x * in_step + y * in_row, bytes);
}

/* The same, with one loop for each size of a pixel: memcpy then is one or two moves. */
static void copy_pixels_of(const uint8_t *in, ptrdiff_t in_step, ptrdiff_t in_row, uint8_t *out, int width, int height,
                           size_t bytes)
{
    if (bytes == 1)
        copy_pixels(in, in_step, in_row, out, width, height, 1);
    else if (bytes == 2)
        copy_pixels(in, in_step, in_row, out, width, height, 2);
    else if (bytes == 3)
        copy_pixels(in, in_step, in_row, out, width, height, 3);
    else if (bytes == 4)
        copy_pixels(in, in_step, in_row, out, width, height, 4);
    else if (bytes == 6)
        copy_pixels(in, in_step, in_row, out, width, height, 6);
    else
        copy_pixels(in, in_step, in_row, out, width, height, bytes);
}

bool image_orient(struct image *image, int orientation, struct error *error)
{
    const size_t bytes = image_pixel_bytes(image), width = (size_t)image->width, height = (size_t)image->height;
    const size_t row_bytes = width * bytes;
    /* Are rows read from the right, columns from below, and do columns become rows? */
    const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const bool swapped = orientation >= 5;

    if (orientation < 2 || orientation > 8)
        return true;
    if (swapped) {
        image->width = (int)height;
        image->height = (int)width;
    }
    if (image->samples == NULL)
        return true;
    uint8_t *turned = malloc(row_bytes * height);
    if (turned == NULL)
        return error_no_memory(error, "a rotated image of %d x %d pixels", image->width, image->height);
    const uint8_t *first =
        image->samples + (from_below ? (height - 1) * row_bytes : 0) + (from_right ? row_bytes - bytes : 0);
    const ptrdiff_t column = from_right ? -(ptrdiff_t)bytes : (ptrdiff_t)bytes;
    const ptrdiff_t row = from_below ? -(ptrdiff_t)row_bytes : (ptrdiff_t)row_bytes;
    copy_pixels_of(first, swapped ? row : column, swapped ? column : row, turned, image->width, image->height, bytes);
    free(image->samples);
    image->samples = turned;
    return true;
}
