/* SPDX-License-Identifier: MIT
 *
 * JPEG files for tests, made by libjpeg-turbo, and what it decodes them to. A failure of the library fails the test. */
#ifndef GPUCONV_TESTS_JPEG_FILES_H
#define GPUCONV_TESTS_JPEG_FILES_H

#include "jpeg/jpeg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How to make a file. */
struct jpeg_recipe {
    int width, height, components; /* 1, 3, or 4 of CMYK */
    int horizontal, vertical;      /* sampling factors of the first component, and of black; 0 counts as 1 */
    int quality;
    int scale;                      /* the percentage of the standard quantisers, instead of a quality; or 0 */
    int restart_mcus, restart_rows; /* one of them, or none */
    bool is_optimised;              /* its own Huffman tables */
    bool shares_tables;             /* all components use the same tables */
    int long_tables; /* the number of the components' AC tables whose codes have 11 bits or more; 0 for usual tables */
    bool is_ycck;    /* 4 components are stored as YCCK */
    bool is_arithmetic; /* arithmetic codes */
    bool is_progressive;
    int noise;    /* noise in the picture: 0, flat areas, to 255, noise alone */
    bool is_flat; /* all pixels are the same, instead */
    uint32_t seed;
    uint32_t coefficients; /* if above 0, random coefficients of this kind instead of a picture */
};

/* The bytes of a file. Release with free. */
uint8_t *make_jpeg(const struct jpeg_recipe *recipe, size_t *size);

/* Read the headers of a file with libjpeg-turbo. Returns false if it refuses them. */
bool read_jpeg_headers(const uint8_t *bytes, size_t size, struct jpeg_headers *headers);

/* Decode with libjpeg-turbo, 1/2^SHRINK as wide and high, to height x width pixels of 1, 3 or 4 bytes. Release with
 * free. NULL if it refused the file, or warned of what the codec libjpeg-turbo takes for damage. */
uint8_t *decode_jpeg(const uint8_t *bytes, size_t size, int shrink, int *width, int *height, int *components);

#endif
