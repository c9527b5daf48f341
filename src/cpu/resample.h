/* SPDX-License-Identifier: MIT
 *
 * Filters that change the size, on the CPU: what resample.c shares with resample_loops.c, which knows one instruction
 * set. struct filter has the formulas.
 *
 * A tile is a group of LANES rows of outputs by some columns. Its way:
 *
 *   columns     each row of the group is summed from rows of the plane, one vector of columns at a time
 *   to_cells    these sums become rows of LANES cells of 32 bits: cell l of row u is unit u of row l of the group
 *   rows        an output of all rows of the group at once is a sum of whole vectors: no tap needs a gather
 *   to_rows     the outputs, in cells too, become rows of the plane
 *
 * A unit is as many samples as 32 bits hold: two sums of 16 bits, or one float; four, two or one outputs. */
#ifndef GPUCONV_CPU_RESAMPLE_H
#define GPUCONV_CPU_RESAMPLE_H

#include "base/vector/instruction_sets.h"
#include "plan/plan.h"

#include <stddef.h>
#include <stdint.h>

enum {
    RESAMPLE_LANES_MAX = 16,
    RESAMPLE_VECTOR_MAX = 64, /* bytes */
    RESAMPLE_PIECE = 16,      /* bytes of a row that are transposed at once */
};

/* The taps of an axis, as the loops read them.
 *
 * For samples of uint8_t, in pairs for neighbouring inputs, and each tap as high * 2^low_bits + low, both int16_t with
 * |low| <= 2^(low_bits - 1). With low_bits = shift - 14, high is at most 1.01 * 2^14, and all sums of high parts fit in
 * 32 bits: 1.55 * 2^14 * 2^15 < 2^30. The sums of low parts might not: after each CHUNK of pairs, their upper bits are
 * added to the high sums. That is exact, because floor((2^n a + b) / 2^m) = floor((a + floor(b / 2^n)) / 2^(m - n)).
 * A pair is two ints: the high parts, and the low parts.
 *
 * For others, doubles. They hold the sums of columns for uint16_t exactly: 1.55 * 2^35 * 2^16 < 2^52. The sums m are
 * stored as m - 2^22, whose absolute value is below 1.55 * 2^22. The sums of rows are below 1.55 * 2^shift *
 * 1.55 * 2^22 <= 2^53 for a shift of at most 29. Beyond, a tap is split, too: it is two doubles, and the low one
 * is from 0 to 2^low_bits - 1. After each chunk of 128 taps, the upper bits of the low sums are added to the high sums.
 * In units of 2^low_bits, the low sums of a chunk are below 128 * 1.55 * 2^22 < 2^30, so 32 bits hold these bits. */
struct resample_taps {
    const struct resample_axis *axis;
    int period; /* outputs with taps of their own; twice the axis's if these begin at odd inputs in turns */
    int count;  /* pairs or taps of an output */
    int low_bits, chunk;
    bool is_split;
    int32_t *pairs;
    double *taps;
};

/* The samples that a row of sums comes from: row Y of the picture is at base + (Y - top) * stride, from the first
 * column on. */
struct resample_source {
    const char *base;
    size_t stride;
    int top, last; /* the row at BASE; the last row that is there, which stands for those below it */
};

/* One instruction set. */
struct resample_loops {
    int lanes, vector; /* bytes of a vector */

    /* Sum WIDTH columns of SOURCE, from row FIRST of the picture on, by the taps of output number OUTPUT. SPARE has
     * room for four vectors of each row. OUT has room for four more. For integers, it receives m less its middle, in an
     * order that to_cells knows. */
    void (*columns)(const struct resample_taps *taps, enum sample sample, const struct resample_source *source,
                    int output, int width, char *spare, char *out);

    /* Transpose LANES rows of UNITS units, which are STRIDE bytes apart, to cells. IS_ZIPPED says that they are in the
     * order of `columns` for integers. UNITS is rounded up to what is transposed at once. */
    void (*to_cells)(const char *rows, size_t stride, int units, bool is_zipped, int32_t *cells);

    /* Make outputs FIRST to LAST - 1 of all rows of the group. CELLS begin with input START, which is even. */
    void (*rows)(const struct resample_taps *taps, enum sample sample, const int32_t *cells, int start, int first,
                 int last, int32_t *out);

    /* Transpose cells to the first COUNT rows of LANES, which have BYTES bytes each. */
    void (*to_rows)(const int32_t *cells, size_t bytes, int count, char *const *rows);
};

extern const struct resample_loops resample_portable, resample_sse2, resample_avx2, resample_avx512, resample_vnni,
    resample_neon, resample_i8mm;

#endif
