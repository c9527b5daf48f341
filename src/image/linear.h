/* SPDX-License-Identifier: MIT
 *
 * The curve of an image as tables: from samples to linear light and back. */
#ifndef GPUCONV_LINEAR_H
#define GPUCONV_LINEAR_H

#include "base/error.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A curve L(x): the light of a sample x, both from 0 to 1. Samples and light below 0 count as 0, and above 1 as 1. */
enum curve_kind {
    CURVE_POWER,   /* x >= d ? (a x + b)^g + e : c x + f, where g > 0, and a negative base counts as 0 */
    CURVE_SAMPLED, /* straight lines between entries */
    CURVE_PQ,      /* SMPTE ST 2084; 1 is 10,000 cd/m^2 */
    CURVE_HLG,     /* ARIB STD-B67; light is of the scene */
};
struct curve {
    enum curve_kind kind;
    double g, a, b, c, d, e, f;
    const uint8_t *entries; /* for the samples from 0 to 1 in equal steps; big-endian numbers, 65535 is 1 */
    size_t count;           /* the number of entries, at least 2 */
};

/* IEC 61966-2-1. */
extern const struct curve curve_srgb;

/* With the highest level n, 255 or 65535,
 *
 *     from(v) = round(65535 * L(v / n)),
 *     to(w) = the v whose L(v / n) is nearest to w / 65535 on the curve
 *           = the number of v > 0 with 65535 * L((v - 1/2) / n) < w.
 *
 * Levels of the same light share one w: for sRGB none of 8 bits, and up to 13 of the darkest of 16 bits. For other
 * curves they may be more. So image_merge keeps a level whose light does not change.
 *
 * The tables are the same on every machine. They are computed by sums, products and quotients of doubles, which IEEE
 * 754 defines to the last bit, and by no function of libm that rounds. 65535 L is within 1e-10 of the curve, and within
 * 1e-8 for PQ. No number of sRGB's that is rounded or compared is nearer than 4e-7 to the point where the result would
 * change. Tests check this, and sRGB's tables against integer arithmetic. */
struct linear_tables {
    uint16_t from8[256], from16[65536];
    uint8_t to8[65536];
    uint16_t to16[65536];
};

struct linear {
    int count;              /* the number of tables: 1 for all colours, or 3 for red, green and blue */
    int depths;             /* the bits of the samples whose tables are filled in: 8, 16, or their sum for both */
    unsigned version;       /* a number that changes with the tables */
    struct curve curves[3]; /* the curve that each table was computed from */
    struct linear_tables tables[3]; /* the last member, because linear_bytes cuts off what is not used */
};

/* Reserve memory for tables. Release it with free. Returns NULL if there is not enough memory. */
struct linear *linear_allocate(struct error *error);

/* Fill in the tables for samples of BITS, 8 or 16: of a curve for all colours, or of three. A curve that is less than 2
 * of 65535 levels from sRGB's counts as sRGB's. If the tables are there already, they stay. Otherwise this takes 0.1 ms
 * for 8 bits and some milliseconds for 16. Returns false if a curve falls by more than one of 65535 levels, or does not
 * rise. */
bool linear_set(struct linear *linear, const struct curve *curves, int count, int bits);

/* X^G for X up to 1, with a relative error below 1e-13; or 0 if X is not positive. A result above 2^100 becomes that.
 * It is computed as the tables are, so it is the same on every machine. */
double linear_power(double x, double g);

/* 65535 L(k / 131070). */
double linear_level(const struct curve *curve, int k);

/* The bytes of LINEAR that are used. */
static inline size_t linear_bytes(const struct linear *linear)
{
    return offsetof(struct linear, tables) + (size_t)linear->count * sizeof *linear->tables;
}

/* The tables for colour C. LINEAR may be NULL, and then they are, too. */
HOST_DEVICE static inline const struct linear_tables *linear_of(const struct linear *linear, int c)
{
    return linear == NULL ? NULL : &linear->tables[linear->count > 1 ? c : 0];
}

/* The level of a linear one where the image had the level BEFORE. It stays if its light is the same. */
HOST_DEVICE static inline uint8_t linear_to8(const struct linear_tables *tables, uint16_t linear, uint8_t before)
{
    return tables->from8[before] == linear ? before : tables->to8[linear];
}

HOST_DEVICE static inline uint16_t linear_to16(const struct linear_tables *tables, uint16_t linear, uint16_t before)
{
    return tables->from16[before] == linear ? before : tables->to16[linear];
}

#endif
