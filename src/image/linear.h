/* SPDX-License-Identifier: MIT
 *
 * The curve of sRGB as tables: from samples to linear light and back. Knows nothing of images. */
#ifndef GPUCONV_LINEAR_H
#define GPUCONV_LINEAR_H

#include "base/error.h"

#include <stdint.h>

/* With the curve of IEC 61966-2-1, L(c) = c / 12.92 where c <= 0.04045, else ((c + 0.055) / 1.055)^2.4, and n = 255 or
 * 65535, the highest level,
 *
 *     from(v) = round(65535 * L(v / n)),   to(w) = the v whose L(v / n) is nearest to w / 65535 on the curve:
 *                                                  the number of v > 0 with 65535 * L((v - 1/2) / n) <= w
 *
 * to(from(v)) is v for all 8-bit levels: they are at least 19 linear ones apart. Of 16 bits the darkest are not: 13 of
 * them share one linear level. All entries are the same on every machine, whatever its pow: what is rounded, and what
 * is compared, is nowhere nearer than 4e-7 to where it would go the other way, where an error of one unit in the last
 * place of pow is below 2e-11. (A test holds both, and the tables against integer arithmetic.) */
struct linear {
    uint16_t from8[256], from16[65536];
    uint8_t to8[65536];
    uint16_t to16[65536];
};

/* Make the tables, which takes a few milliseconds; to be released with free. NULL where there is not enough memory. */
struct linear *linear_make(struct error *error);

/* L(c), for c from 0 to 1. */
double linear_light(double c);

#endif
