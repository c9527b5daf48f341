/* SPDX-License-Identifier: MIT
 *
 * What the plan of a matrix and curves makes of a pixel. Every variant, on the CPU and on a GPU, uses these functions.
 *
 * A row of the matrix makes the level clamp(floor((sum of weight * sample + bias) / D)) of a pixel's samples, as a grid
 * does of neighbours. A curve is a table of levels. Both are for 16 bits: a level v of 8 bits counts as 257 v, and the
 * result is rounded to 8 bits at the end. As 257 is odd, this rounds as one rounding of the matrix to 8 bits does. So
 * the result is the same in planes of 8 and of 16 bits. A matrix whose rows weigh only their own channel becomes
 * tables, too.
 *
 * Where the colours are converted (struct colours), levels first become light, by tables too, and so the matrix has
 * light.
 *
 * With floats, a row is the sum of (float)(weight / D) * sample in the order of the channels, and then of offset / 255.
 * No product is fused with a sum, and nothing is clamped. A curve takes a sample x as t = clamp(x, 0, 1) * 65535, and
 * makes (T[i] + (T[i + 1] - T[i]) * (t - i)) / 65535 with i = min(floor(t), 65534); NaN stays. */
#ifndef GPUCONV_PLAN_POINT_H
#define GPUCONV_PLAN_POINT_H

#include "plan/plan.h"

#ifndef __cplusplus
#include <stdalign.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* A row of the matrix. */
struct point_sum {
    int32_t weights[4];
    struct rounding rounding;
    struct rounding16 rounding16;
    float factors[4], offset; /* for floats */
};

/* The numbers of a plan. They have no pointers, so that they can be copied to a device. */
struct point_tables {
    size_t bytes;    /* bytes of this struct with the tables */
    int rows;        /* rows of the matrix: 0 if there is none, 1 for all colours, 3 or 4 */
    int columns;     /* weights of a row */
    int table_of[4]; /* the number of each channel's table; -1 if the levels stay */
    int tables;
    int lights;          /* tables of light before the matrix: 0, 1 for all colours, or 3 */
    int light_levels;    /* levels of uint16_t that each has: 256 for samples of 8 bits, or 65536 */
    size_t light_offset; /* bytes from the first of the other tables to them */
    bool is_wide;        /* the tables have 65536 levels of uint16_t; otherwise 256 of uint8_t, for samples of 8 bits */
    struct point_sum row[4];
    alignas(16) uint8_t levels[]; /* the tables */
};

/* The levels that AUTOMATIC_EACH and _ALL make black and white, 8 bits for SAMPLE_U8 and otherwise 16: the darkest and
 * the lightest one of a channel, or of all colours. If CLIP is C, floor(C n) of n samples may be below BLACK, and as
 * many above WHITE. A float counts as the level floor(65535 clamp(x, 0, 1) + 1/2), and NaN does not count. Level v
 * becomes round(clamp((v - BLACK) / (WHITE - BLACK)) * highest level); it stays if BLACK >= WHITE. */
struct point_range {
    int black, white;
};

/* The range of COUNTS for LEVELS levels, which sum to N. */
HOST_DEVICE static inline struct point_range point_range_find(const uint64_t *counts, int levels, uint64_t n,
                                                              struct share clip)
{
    /* N is below 2^35, three colours of a picture. The numerator is below 2^26: filter_make_automatic. So 64 bits hold
     * the product. */
    const uint64_t cut = n * (uint64_t)clip.numerator / (uint64_t)clip.denominator;
    struct point_range range = {0, levels - 1};
    for (uint64_t below = counts[0]; range.black < levels - 1 && below <= cut; below += counts[range.black])
        range.black++;
    for (uint64_t above = counts[levels - 1]; range.white > 0 && above <= cut; above += counts[range.white])
        range.white--;
    return range;
}

/* What becomes of LEVEL, where HIGHEST is the highest level. */
HOST_DEVICE static inline uint16_t point_stretch(struct point_range range, int level, int highest)
{
    const int64_t span = range.white - range.black, above = level - range.black;
    if (span <= 0)
        return (uint16_t)level;
    return (uint16_t)(above <= 0 ? 0 : above >= span ? highest : (2 * above * highest + span) / (2 * span));
}

/* The level that a float counts as, or -1. */
HOST_DEVICE static inline int point_float_level(float x)
{
    return !(x == x) ? -1 : x <= 0 ? 0 : x >= 1 ? 65535 : (int)(x * 65535.0f + 0.5f);
}

/* Let the tables of red, green and blue be those of RANGE, of SAMPLE; alpha has none. */
void point_tables_stretch(struct point_tables *tables, enum sample sample, const struct point_range range[3]);

/* Make the tables for PLAN. Release them with free. Returns NULL if there is not enough memory. */
struct point_tables *point_tables_make(const struct plan *plan);

/* The row of the matrix for channel C of a pixel with COUNT planes, or NULL: alpha may have none. */
HOST_DEVICE static inline const struct point_sum *point_row_of(const struct point_tables *tables, int count, int c)
{
    const bool is_alpha = count % 2 == 0 && c == count - 1;
    if (tables->rows == 0 || (is_alpha && tables->rows < 4))
        return NULL;
    return &tables->row[is_alpha ? 3 : tables->rows == 1 ? 0 : c];
}

/* The bytes of a table. */
HOST_DEVICE static inline size_t point_table_bytes(const struct point_tables *tables)
{
    return tables->is_wide ? 65536 * sizeof(uint16_t) : 256;
}

/* The table for channel C of a pixel with COUNT planes, or NULL. */
HOST_DEVICE static inline const void *point_table_of(const struct point_tables *tables, int count, int c)
{
    const int table = tables->table_of[count % 2 == 0 && c == count - 1 ? 3 : c];
    return table < 0 ? NULL : tables->levels + (size_t)table * point_table_bytes(tables);
}

/* The light of the levels of colour C. */
HOST_DEVICE static inline const uint16_t *point_light_of(const struct point_tables *tables, int c)
{
    return (const uint16_t *)(tables->levels + tables->light_offset) +
           (tables->lights > 1 ? c : 0) * (ptrdiff_t)tables->light_levels;
}

/* A float on a curve. */
HOST_DEVICE static inline float point_curve_float(const uint16_t *table, float x)
{
    if (!(x == x))
        return x;
    const float t = (x < 0 ? 0 : x > 1 ? 1 : x) * 65535.0f;
    const int i = t < 65534 ? (int)t : 65534;
    const float rise = (float)(table[i + 1] - table[i]) * (t - (float)i);
    return ((float)table[i] + rise) / 65535.0f;
}

#ifdef __cplusplus
}
#endif

#endif
