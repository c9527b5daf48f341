/* SPDX-License-Identifier: MIT
 *
 * What a plan of STEP_POINT makes of a pixel. Every variant, on the CPU and on a GPU, uses these functions.
 *
 * A row of the matrix makes the level clamp(floor((sum of weight * sample + bias) / D)) of a pixel, as a grid makes it
 * of neighbours, and a curve is a table of levels. Both are for 16 bits: a level v of 8 bits counts as 257 v, and the
 * result is rounded to 8 bits at the end. As 257 is odd, this rounds as one rounding of the matrix or the curve to 8
 * bits does, and the result is the same in planes of 8 and of 16 bits. A matrix whose rows weigh only their own channel
 * becomes tables, too.
 *
 * Floats: a row is the sum of (float)(weight / D) * sample in order of the channels, and then of offset / 255. No
 * product is fused with a sum, and nothing is clamped. A curve takes a sample x as t = clamp(x, 0, 1) * 65535, and makes
 * (T[i] + (T[i + 1] - T[i]) * (t - i)) / 65535 with i = min(floor(t), 65534); NaN stays. */
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
    size_t bytes;    /* of all, with the tables */
    int rows;        /* of the matrix: 0 if there is none, 1 for all colours, 3 or 4 */
    int columns;     /* weights of a row */
    int table_of[4]; /* the number of each channel's table; -1 if the levels stay */
    int tables;
    bool is_wide; /* the tables have 65536 levels of uint16_t; otherwise 256 of uint8_t, for samples of 8 bits */
    struct point_sum row[4];
    alignas(16) uint8_t levels[]; /* the tables */
};

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
