/* SPDX-License-Identifier: MIT
 *
 * The decoder of baseline JPEG. Its samples are those of libjpeg-turbo's code for x86-64, for any coefficients. First an
 * index of the scan is made, on all threads. Then bands of rows are decoded in any order, on any threads. */
#ifndef GPUCONV_JPEG_DECODE_H
#define GPUCONV_JPEG_DECODE_H

#include "jpeg/decode_loops.h"

/* Decode the rows of MCUs that begin in ROWS rows of pixels from row FIRST on, which begins one, to PLANES. That has
 * jpeg_planes_bytes for each. */
void jpeg_decode_band(const struct jpeg_index *index, int first, int rows, uint8_t *planes);

/* Convert ROWS rows of pixels, from row FIRST on, which begins a row of MCUs, to SAMPLES: 1 or 3 bytes each, row by row.
 * PLANES are what jpeg_decode_band has made of the same rows. */
void jpeg_convert_band(const struct jpeg_index *index, int first, int rows, const struct rows *planes,
                       uint8_t *samples);

#endif
