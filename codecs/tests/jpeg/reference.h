/* SPDX-License-Identifier: MIT
 *
 * libjpeg-turbo's files and samples, set up as its users do it. */
#ifndef GPUCONV_TESTS_JPEG_REFERENCE_H
#define GPUCONV_TESTS_JPEG_REFERENCE_H

#include "jpeg/jpeg.h"

/* The pixels of a picture: height x width, of CHANNELS bytes each. */
struct pixels {
    int width, height, channels;
    uint8_t *samples;
};

static inline size_t pixels_bytes(const struct pixels *pixels)
{
    return (size_t)pixels->width * (size_t)pixels->height * (size_t)pixels->channels;
}

/* libjpeg-turbo's file, and where in it the data of the scan are. */
struct reference {
    uint8_t *file;
    size_t file_size, first, size;
};

/* Encode PIXELS with the sampling factors of luma, and fill LAYOUT. Release the file with free. */
void reference_encode(const struct pixels *pixels, int quality, int horizontal, int vertical,
                      struct jpeg_layout *layout, struct reference *reference);

/* Decode a file to RGB or grey; release the samples with free. */
void reference_decode(const uint8_t *file, size_t size, struct pixels *pixels);

#endif
