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
    bool same_shape;                     /* width, height, channels and bits agree; if not, nothing below is set */
    uint64_t pixels;                     /* pixels with at least one sample that differs */
    int first_x, first_y, first_channel; /* the first differing sample in reading order; -1 where none differs */
    int largest;                         /* largest absolute difference of two samples */
    double psnr; /* 10 log10(peak^2 / mean square error) in dB, peak 255 or 65535; INFINITY where equal */
};

/* Compare two images sample by sample. */
void compare_images(const struct image *expected, const struct image *actual, struct difference *difference);

/* A picture of 8 bits of where and how much two images of one shape differ: grey or RGB, black where equal, otherwise
 * the absolute difference of each colour scaled so that the largest is 255; a difference in alpha alone shows as its
 * grey. The result is to be released with image_free. */
bool difference_picture(const struct image *expected, const struct image *actual, struct image *picture,
                        struct error *error);

#endif
