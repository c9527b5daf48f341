/* SPDX-License-Identifier: MIT
 *
 * Filters that change the size, on the CPU: what resample.c shares with resample_loops.c, which knows one instruction
 * set. struct filter has the formulas.
 *
 * A tile is some columns of outputs, and LANES rows of them after LANES others. Its way:
 *
 *   pair_rows   two rows of the plane become pairs of int16_t, once for all outputs that read them
 *   columns     each row of the group is summed from these, some vectors of columns at a time
 *   to_cells    these sums become rows of LANES cells of 32 bits: cell l of row u is unit u of row l of the group
 *   rows        an output of all rows of the group at once is a sum of whole vectors: no tap needs a gather
 *   to_rows     the outputs, in cells too, become rows of the plane
 *
 * A unit is as many samples as 32 bits hold: two sums of 16 bits, or one float; four, two or one outputs. Where a plane
 * has the samples of pixels together, the columns of all channels are interleaved, and so are units: those of sums are
 * two of one channel. */
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
    PILLOW_LOW_BITS = 8,      /* bits of the lower part of a tap of Pillow's rule */
    RESAMPLE_BLOCK = 512,     /* columns that are summed for all rows of a group, from pairs in the nearest cache */
};

/* The taps of an axis, as the loops read them.
 *
 * For samples of uint8_t, and for the columns of uint16_t, in pairs for an even input and the next one. They are
 * negative: -tap fits in int16_t where tap may be 2^15. A pair is `parts` ints. For uint16_t these are two parts of
 * each tap, high * 2^low_bits + low, with |high| <= 2^15 and |low| <= 2^(low_bits - 1). The samples are less 2^15.
 *
 * Sums of pairs, and of low parts, might not fit in 32 bits. After each CHUNK of pairs, their upper bits are added to
 * other sums, the high ones. That is exact, because floor((2^n a + b) / 2^m) = floor((a + floor(b / 2^n)) / 2^(m - n)).
 *
 *   - A column of uint8_t: 128 pairs are at most 2^8 2^15 255 = 2^31 - 2^23. The high sums, in units of 2^8, are below
 *     1.55 * 2^shift. With 4096 taps, the largest weight is at least 2^-12, so a shift is at most 27. A sum of one
 *     chunk has at most 256 taps and a shift of 23: with what makes it m - 2^13, it is at most 12700 * 2^17 < 2^31.
 *   - A row of uint8_t: m - 2^13 is at most 1.55 * 127.5 * 2^6 + 32 < 12700. The whole sum fits in 32 bits, or 2 pairs
 *     do: 4 * 2^15 * 12700 < 2^31 - 2^28. The high sums, in units of 2^16, are below 1.55 * 12700 * 2^(27 - 16) < 2^26.
 *   - A column of uint16_t: low_bits is shift - 14, or 15. So the high parts of a tap of weight w are 2^14 w, or 2^15
 *     w, as shift is at most 30. Their sums are at most 1.55 * 2^15 * 2^15 < 2^31, and those of low parts in a chunk
 *     (2^(16 - low_bits) - 1) * 2^low_bits * 2^15.
 *
 * For a kernel of Pillow, both axes have two parts of each tap, with 8 low bits. The high parts are at most 2^15, and
 * their sums 1.55 * 2^14 * 255 < 2^23. The sums of low parts are at most 16384 * 2^7 * 255 < 2^30.
 *
 * For others, doubles. They hold the sums of rows for uint16_t exactly: 1.55 * 2^30 * 1.55 * 2^21 < 2^53. */
struct resample_taps {
    const struct resample_axis *axis;
    int period; /* outputs with taps of their own; twice the axis's if every second period begins at an odd input */
    int count;  /* pairs or taps of an output */
    int parts, low_bits, chunk;
    int32_t *pairs;
    int *used; /* the pairs of each output that have taps */
    double *taps;
    int *firsts; /* resample_first of each output that is made of a row: it divides 64 bits */
};

/* One instruction set. */
struct resample_loops {
    int lanes, vector; /* bytes of a vector */

    /* Pair COUNT columns of rows A and B, or copy those of A for floats. COUNT is rounded up to 8 lanes here and
     * below. */
    void (*pair_rows)(enum sample sample, const char *a, const char *b, int count, int32_t *to);

    /* Sum COUNT columns by the taps of output number OUTPUT of those that are made. ROWS has the pairs of rows, or
     * rows, for all taps. For integers, OUT receives m less its middle. */
    void (*columns)(const struct resample_taps *taps, enum sample sample, int output, const int32_t *const *rows,
                    int count, char *out);

    /* Copy COUNT bytes to numbers of int16_t, and let the processor fetch the bytes that are AHEAD of them. Or copy
     * such numbers from 0 to 255 to bytes. A tile begins and ends so if it has only one pass of a kernel of Pillow. */
    void (*widen)(const uint8_t *from, int count, size_t ahead, char *to);
    void (*narrow)(const char *from, int count, uint8_t *to);

    /* Transpose LANES rows of UNITS units, which are STRIDE bytes apart, to cells. A unit of two samples is of one of
     * CHANNELS; otherwise CHANNELS is 1. UNITS is rounded up to what is transposed at once. */
    void (*to_cells)(const char *rows, size_t stride, int units, int channels, int32_t *cells);

    /* Make outputs FIRST to LAST - 1 of all rows of the group. CELLS begin with input START, which is even. */
    void (*rows)(const struct resample_taps *taps, enum sample sample, int channels, const int32_t *cells, int start,
                 int first, int last, int32_t *out);

    /* Transpose cells to the first COUNT rows of LANES, which have BYTES bytes each. */
    void (*to_rows)(const int32_t *cells, size_t bytes, int count, char *const *rows);
};

extern const struct resample_loops resample_portable, resample_sse2, resample_avx2, resample_avx512, resample_vnni,
    resample_neon, resample_i8mm;

#endif
