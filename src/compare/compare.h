/* SPDX-License-Identifier: MIT
 *
 * How two images differ, and a picture of that. */
#ifndef GPUCONV_COMPARE_H
#define GPUCONV_COMPARE_H

#include "base/error.h"
#include "image/image.h"

#include <stdbool.h>
#include <stdint.h>

/* How two images of one size differ. */
struct difference {
    bool same_shape;                     /* width, height, channels and bits agree; if not, nothing else is set */
    uint64_t pixels;                     /* pixels with at least one different sample */
    int first_x, first_y, first_channel; /* the first different sample in reading order; -1 if none differs */
    int largest;                         /* the largest absolute difference of two samples */
    double psnr; /* 10 log10(peak^2 / mean square error) in dB, peak 255 or 65535; INFINITY if equal */
};

/* Compare two images sample by sample. */
void compare_images(const struct image *expected, const struct image *actual, struct difference *difference);

/* Set PICTURE to an image that shows where and how much two images of one shape differ. It is grey or RGB with 8 bits,
 * and black where the images are equal. Elsewhere each colour is the absolute difference, scaled so that the largest
 * one in the picture is 255. A pixel that differs in alpha alone is grey. Release it with image_free. Fails if the
 * shapes differ, or if there is not enough memory. */
bool difference_picture(const struct image *expected, const struct image *actual, struct image *picture,
                        struct error *error);

#endif
