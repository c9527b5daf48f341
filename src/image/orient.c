/* SPDX-License-Identifier: MIT
 *
 * The EXIF tag Orientation: turn and mirror images. */
#include "image/image.h"

#include <stdlib.h>
#include <string.h>

/* The copy goes square by square, so that both sides stay in the cache when rows become columns: a square touches 32
 * lines of at most 32 x 8 bytes on each side. */
static inline void copy_pixels(const uint8_t *in, struct pixel_walk walk, uint8_t *out, size_t out_row, int width,
                               int height, size_t bytes)
{
    enum { SQUARE = 32 };
    for (int y0 = 0; y0 < height; y0 += SQUARE)
        for (int x0 = 0; x0 < width; x0 += SQUARE)
            for (int y = y0; y < height && y < y0 + SQUARE; y++)
                for (int x = x0; x < width && x < x0 + SQUARE; x++)
                    memcpy(out + (size_t)y * out_row + (size_t)x * bytes, in + x * walk.column + y * walk.row, bytes);
}

/* There is one loop for each size of a pixel: memcpy then is one or two moves. */
void orient_copy(const uint8_t *in, struct pixel_walk walk, uint8_t *out, size_t out_row, int width, int height,
                 size_t bytes)
{
    if (walk.column == (ptrdiff_t)bytes)
        for (int y = 0; y < height; y++)
            memcpy(out + (size_t)y * out_row, in + y * walk.row, (size_t)width * bytes);
    else if (bytes == 1)
        copy_pixels(in, walk, out, out_row, width, height, 1);
    else if (bytes == 2)
        copy_pixels(in, walk, out, out_row, width, height, 2);
    else if (bytes == 3)
        copy_pixels(in, walk, out, out_row, width, height, 3);
    else if (bytes == 4)
        copy_pixels(in, walk, out, out_row, width, height, 4);
    else if (bytes == 6)
        copy_pixels(in, walk, out, out_row, width, height, 6);
    else
        copy_pixels(in, walk, out, out_row, width, height, bytes);
}

bool image_orient(struct image *image, int orientation, struct error *error)
{
    const size_t bytes = image_pixel_bytes(image), row_bytes = image_row_bytes(image);
    const int width = image->width, height = image->height;
    if (orientation < 2 || orientation > 8)
        return true;
    if (orientation_swaps(orientation)) {
        image->width = height;
        image->height = width;
    }
    if (image->samples == NULL)
        return true;
    uint8_t *turned = malloc(image_bytes(image));
    if (turned == NULL)
        return error_no_memory(error, "a rotated image of %d x %d pixels", image->width, image->height);
    const struct pixel_walk walk = orient_walk(orientation, width, height, (ptrdiff_t)bytes, (ptrdiff_t)row_bytes);
    orient_copy(image->samples + walk.first, walk, turned, image_row_bytes(image), image->width, image->height, bytes);
    free(image->samples);
    image->samples = turned;
    return true;
}
