/* SPDX-License-Identifier: MIT
 *
 * Colours without vectors of their own. */
#ifndef GPUCONV_JPEG_COLOUR_PLAIN_H
#define GPUCONV_JPEG_COLOUR_PLAIN_H

#include "jpeg/samples.h"

/* Convert COUNT pixels. */
static void convert_pixels(const uint8_t *luma, const uint8_t *blue, const uint8_t *red, int count, uint8_t *rgb)
{
    for (int i = 0; i < count; i++)
        jpeg_colour(luma[i], blue[i], red[i], rgb + 3 * (size_t)i);
}

#endif
