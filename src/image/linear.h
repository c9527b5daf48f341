/* SPDX-License-Identifier: MIT
 *
 * The curve of sRGB as tables: from samples to linear light and back. */
#ifndef GPUCONV_LINEAR_H
#define GPUCONV_LINEAR_H

#include "base/error.h"

#include <stdint.h>

/* The curve of IEC 61966-2-1 is L(c) = c / 12.92 if c <= 0.04045, else ((c + 0.055) / 1.055)^2.4. With the highest
 * level n, 255 or 65535,
 *
 *     from(v) = round(65535 * L(v / n)),
 *     to(w) = the v whose L(v / n) is nearest to w / 65535 on the curve
 *           = the number of v > 0 with 65535 * L((v - 1/2) / n) <= w.
 *
 * to(from(v)) = v for all 8-bit levels: their linear levels are at least 19 apart. It does not hold for the darkest
 * 16-bit levels: up to 13 of them share one linear level.
 *
 * The tables are the same on every machine, although pow is not: no number that is rounded or compared is nearer than
 * 4e-7 to the point where the result would change, and an error of one unit in the last place of pow is below 2e-11.
 * Tests check both, and the tables against integer arithmetic. */
struct linear {
    uint16_t from8[256], from16[65536];
    uint8_t to8[65536];
    uint16_t to16[65536];
};

/* Make the tables, which takes a few milliseconds. Release them with free. NULL if there is not enough memory. */
struct linear *linear_make(struct error *error);

/* L(c) for c from 0 to 1. */
double linear_light(double c);

#endif
