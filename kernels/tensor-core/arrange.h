/* SPDX-License-Identifier: MIT
 *
 * How tensor-core arranges a filter: which of its kernels applies it, and with which numbers. The launch and the cost
 * model both use this file. So it is plain integer arithmetic, in the common part of C and CUDA. */
#ifndef GPUCONV_ARRANGE_H
#define GPUCONV_ARRANGE_H

#include "base/round.h"
#include "filter/filter.h"
#include "plan/parts.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sizes of the kernels' tiles ---- */

static const int chunk = 8; /* outputs of a row of the matrix, in tensor_walk and tensor_group */

static const int walk_height = 9; /* rows of the largest filter */

static const int pass_chunk = 16; /* outputs of a matrix of row taps, rows of one of column taps */

/* Bytes of a copy for a window of BLOCKS times 16 samples. Windows start at multiples of it. */
CONSTANT_FUNCTION int pass_copy(int blocks)
{
    return blocks == 2 ? 8 : 16;
}

static const int wide_chunk = 16;                         /* outputs of a column of the matrix */
static const int wide_chunks = 128;                       /* columns of the matrix */
static const int wide_columns = wide_chunk * wide_chunks; /* outputs of a tile in a row */
static const int wide_rows = 4;                           /* rows of outputs of a warpgroup's matrix */
static const int term_bytes = 64 * 32;                    /* bytes of taps for a product */
static const int wide_ahead = 2;                          /* stages that are loaded ahead of need */
static const int wide_slots_max = 32;          /* stages of the ring; it has (31 + 8) / 8 + 1 + wide_ahead at most */
static const int wide_shared_max = 227 * 1024; /* bytes that a block may have on compute capability 9.0 */

/* Bytes of the ring's row for windows of UNITS times 16 samples. */
CONSTANT_FUNCTION int wide_pitch(int units)
{
    return wide_columns + 16 * (units - 1);
}

/* Warpgroups of a block. Four fill the registers. With the taps of large filters, the ring of four does not fit. */
CONSTANT_FUNCTION int wide_groups(int units)
{
    return units == 2 ? 4 : 2;
}

/* Rows of a stage, and rows of outputs that a block makes at a time. */
CONSTANT_FUNCTION int wide_stage(int units)
{
    return wide_rows * wide_groups(units);
}

static const int float_columns = 128, float_rows = 64;   /* outputs of a tile of tensor_float */
static const int float_blocks_min = 3, float_blocks = 5; /* blocks of 8 columns of taps */

/* Cells of 2 x 2 samples in a tile of tensor_float, for STEPS pairs of rows of taps. */
CONSTANT_FUNCTION int float_cells(int blocks, int steps)
{
    return (float_rows / 2 - 2 + steps) * (float_columns / 2 + 4 * blocks);
}

/* ---- The arrangement ---- */

/* The kernel, named as its file tensor-NAME.cuh. NONE: register-tiled applies the filter. */
enum tensor_kernel { TENSOR_NONE, TENSOR_WALK, TENSOR_PASSES, TENSOR_WIDE, TENSOR_GROUP, TENSOR_16, TENSOR_FLOAT };

/* How quick sums become levels, before they are clamped. With the first three, sums include the bias from the start. */
enum tensor_level {
    LEVEL_SCALE,       /* multiply */
    LEVEL_SCALE_SHIFT, /* multiply and shift */
    LEVEL_SHIFT,       /* shift, because the scale is a power of two; PASSES */
    LEVEL_ABSOLUTE,    /* take the absolute value, add the bias, multiply and shift */
    LEVEL_ANY          /* as LEVEL_ABSOLUTE, but take the absolute value only if the filter does */
};

struct tensor_arrangement {
    enum tensor_kernel kernel;
    int lead;   /* samples from the first of a window to its first output */
    int height; /* WALK: the filter's, made odd; GROUP, 16, FLOAT: rows of taps, in pairs, for a matrix's outputs */
    int full, packed, blocks; /* GROUP, 16; FLOAT: blocks alone */
    size_t shared;            /* FLOAT: bytes of shared memory */
    int units, terms;         /* WIDE: windows of units times 16 samples; products of a part */
    int window, planes;       /* PASSES: blocks of 16 taps in a window; bytes of row sums */
    bool unsigned_taps;       /* PASSES */
    enum tensor_level level;  /* WALK, PASSES, WIDE */
    uint32_t start, first;    /* PASSES: the start of row sums, and that of sums */
    int parts;                /* parts of int8 that the taps are cut into */
    int factor;               /* all taps are multiplied by this, for quick rounding */
    bool quick;               /* level = (sum + bias) * multiplier >> 32 >> shift; else the plan's rounding. 16: 32
                               * bits hold levels before they are clamped */
    int bias, multiplier, shift;
};

/* clamp(floor((S + B) / D)) as one multiplication and a conversion that clamps.
 *
 * With m = ceil(2^(32+s) / D) = (2^(32+s) + e) / D, 0 <= e < D, and t = S + B in 32 bits, level = t m >> 32 >> s is
 * floor(t / D) for 0 <= t < 256 D if t e < 2^(32+s) (see rounding_make), so 256 D e < 2^(32+s) suffices. Below 0 the
 * level is negative and is clamped to 0. Above 256 D it is 255 or more, because it does not decrease with t. The
 * multiplication is signed, so m < 2^31, which D = 1 and 2 miss: there taps, bias and D are multiplied by 4 and 2. For
 * D <= 4096, and for all powers of two, s = 0 is enough. */
static inline void tensor_make_quick(const struct filter *f, struct tensor_arrangement *a)
{
    const int64_t scaled = f->scale == 1 ? 4 : f->scale == 2 ? 2 : 1, scale = f->scale * scaled;
    a->factor = 1;
    if (scale > 1 << 22 || llabs(f->bias) > INT32_MAX ||
        llabs(f->bias) * scaled + f->absolute_sum * 255 * scaled > INT32_MAX)
        return;
    for (int shift = 0; shift < 31; shift++) {
        const int64_t power = (int64_t)1 << (32 + shift), multiplier = (power + scale - 1) / scale;
        if (multiplier > INT32_MAX)
            return;
        if ((multiplier * scale - power) * 256 * scale < power) {
            a->quick = true;
            a->factor = (int)scaled;
            a->bias = (int)(f->bias * scaled);
            a->multiplier = (int)multiplier;
            a->shift = shift;
            return;
        }
    }
}

/* Words of 4 samples in a window of OUTPUTS outputs, for the lead LEAD. */
static inline int tensor_window_words(const struct filter *f, int lead, int outputs)
{
    return (lead + outputs - 1 + f->width - 1 - f->anchor_x) / 4 + 1;
}

/* Stages of the ring: those under the rows of a block, one more because the first row may be inside a stage, and those
 * that are loaded ahead. */
static inline int wide_slots(int units, int filter_height)
{
    const int rows = wide_stage(units);
    return (rows + filter_height + rows - 1) / rows + wide_ahead;
}

/* Bytes of shared memory: barriers, taps, ring. */
static inline size_t wide_shared(const struct tensor_arrangement *a, int filter_height)
{
    return (size_t)16 * (size_t)wide_slots_max + (size_t)a->parts * (size_t)a->terms * (size_t)term_bytes +
           (size_t)wide_slots(a->units, filter_height) * (size_t)wide_stage(a->units) * (size_t)wide_pitch(a->units);
}

/* Can tensor_wide apply the filter? */
static inline bool tensor_arrange_wide(const struct filter *f, struct tensor_arrangement *a)
{
    a->lead = (f->anchor_x + 7) / 8 * 8; /* rows start at multiples of 8 samples, for copies of 8 bytes */
    const int words = tensor_window_words(f, a->lead, wide_chunk);
    a->units = words <= 8 ? 2 : 3;
    const int rows = f->height + wide_rows - 1;
    a->terms = a->units == 2 ? rows : (rows + 1) / 2 * 3;
    if (words > 4 * a->units || wide_slots(a->units, f->height) > wide_slots_max ||
        wide_shared(a, f->height) > (size_t)wide_shared_max)
        return false;
    a->kernel = TENSOR_WIDE;
    return true;
}

/* Is a window of BLOCKS times 16 samples enough for 16 outputs, if it starts at a multiple of a copy's bytes? */
static inline bool pass_window_fits(const struct filter *f, int blocks)
{
    const int unit = pass_copy(blocks), lead = (f->anchor_x + unit - 1) / unit * unit;
    return lead - f->anchor_x + f->width - 1 + pass_chunk <= 16 * blocks && f->height - 1 + pass_chunk <= 16 * blocks;
}

/* Can tensor_passes apply the filter? Its taps have at most two parts, and its row sums at most 24 bits. */
static inline bool tensor_arrange_passes(const struct filter *f, struct tensor_arrangement *a)
{
    a->window = pass_window_fits(f, 2) ? 2 : 3;
    if (!f->separable || !pass_window_fits(f, a->window))
        return false;
    const int unit = pass_copy(a->window);
    a->lead = (f->anchor_x + unit - 1) / unit * unit;

    int64_t min = 0, max = 0, column_sum = 0, lowest = 0, highest = 0;
    a->parts = 1;
    for (int k = 0; k < f->width + f->height; k++) {
        const int64_t q = k < f->width ? f->row[k] : (int64_t)f->column[k - f->width] * a->factor;
        const int parts = tap_parts(q, 8);
        a->parts = parts > a->parts ? parts : a->parts;
        min = q < min ? q : min;
        max = q > max ? q : max;
        lowest -= k < f->width && q < 0 ? q * 255 : 0;
        highest += k < f->width && q > 0 ? q * 255 : 0;
        column_sum += k < f->width ? 0 : q;
    }
    a->unsigned_taps = a->parts > 1 && min >= 0 && max <= 255;
    if (a->unsigned_taps)
        a->parts = 1;
    if (a->parts > 2 || lowest + highest >= 1 << 24)
        return false;
    a->planes = a->parts == 1 && !a->unsigned_taps && lowest + highest < 1 << 16 ? 2 : 3;
    a->start = (uint32_t)lowest;
    const int64_t scale = (int64_t)f->scale * a->factor;
    if (!f->absolute && (scale & (scale - 1)) == 0) {
        a->level = LEVEL_SHIFT;
        for (a->shift = 0; scale >> a->shift > 1;)
            a->shift++;
    } else {
        a->level = f->absolute || a->shift != 0 ? LEVEL_ANY : LEVEL_SCALE;
    }
    a->first = (uint32_t)((a->level == LEVEL_ANY ? 0 : a->bias) - lowest * column_sum);
    a->kernel = TENSOR_PASSES;
    return true;
}

/* Choose the blocks of a window of WORDS that take the fewest cycles. Every filter fits tensor_group. */
static inline void tensor_arrange_group(const struct filter *f, int words, struct tensor_arrangement *a)
{
    a->kernel = TENSOR_GROUP;
    a->height = f->height / 2 * 2 + 2;
    int best = 0;
    for (int full = 1; full <= 2; full++)
        for (int packed = 0; packed <= 1; packed++) {
            const int block = 4 * full + 2 * packed, blocks = (words + block - 1) / block;
            const int cost = blocks * (16 * full + 9 * packed); /* half cycles for a pair of rows: 8, and 4.5 */
            if (best == 0 || cost <= best) {
                best = cost;
                a->full = full;
                a->packed = packed;
                a->blocks = blocks;
            }
        }
}

/* The parts of int8 that all taps are cut into. */
static inline int tensor_parts(const struct filter *f, int factor)
{
    int parts = 1;
    for (int k = 0; k < f->width * f->height; k++) {
        const int needed = tap_parts((int64_t)f->taps[k] * factor, 8);
        parts = needed > parts ? needed : parts;
    }
    return parts;
}

/* Arrange a grid of taps for samples of uint16_t. Windows start at a unit of 8 samples. */
static inline void tensor_arrange_16(const struct filter *f, struct tensor_arrangement *a)
{
    memset(a, 0, sizeof *a);
    a->factor = 1;
    a->parts = tensor_parts(f, 1);
    a->lead = (f->anchor_x + 7) / 8 * 8;
    a->quick = f->absolute_sum * 65535 / f->scale < 1 << 30; /* and 257 |O| < 2^25 */
    tensor_arrange_group(f, tensor_window_words(f, a->lead, chunk), a);
    a->kernel = TENSOR_16;
}

/* Arrange a grid of taps for samples of float, if it has 16 to 39 columns, SHARED bytes suffice, and the bound of the
 * error is not above that of sums of float. Each number of blocks is a kernel of its own, of 15 KB in a package. */
static inline void tensor_arrange_float(const struct filter *f, size_t shared, struct tensor_arrangement *a)
{
    memset(a, 0, sizeof *a);
    const int blocks = (f->width + 8) / 8, steps = (f->height + 4) / 2;
    a->blocks = blocks;
    a->height = 2 * steps;
    a->shared = (size_t)(float_cells(blocks, steps) + 32 * blocks * steps) * 16 + (size_t)64; /* and 8 ranges */
    if (blocks >= float_blocks_min && blocks <= float_blocks && a->shared <= shared &&
        26 + 36 * blocks + steps <= f->width * f->height)
        a->kernel = TENSOR_FLOAT;
}

/* Arrange a filter for the loaded code. HAS_PASSES: it has the kernel tensor_passes (compute capability 8.0 and later).
 * HAS_WIDE: it has tensor_wide (9.0 only). Every filter has an arrangement. */
static inline void tensor_arrange(const struct filter *f, bool has_passes, bool has_wide, struct tensor_arrangement *a)
{
    memset(a, 0, sizeof *a);
    tensor_make_quick(f, a);
    a->level = f->absolute ? LEVEL_ABSOLUTE : a->shift == 0 ? LEVEL_SCALE : LEVEL_SCALE_SHIFT;
    const int parts = tensor_parts(f, a->factor);
    a->parts = parts;
    a->lead = (f->anchor_x + 3) / 4 * 4;
    const int words = tensor_window_words(f, a->lead, chunk);
    if (words <= 4 && f->height <= walk_height && parts <= 2 && a->quick) {
        a->kernel = TENSOR_WALK;
        a->height = f->height | 1;
        return;
    }
    if (has_passes && a->quick && tensor_arrange_passes(f, a))
        return;
    a->parts = parts;
    if (has_wide && a->quick && tensor_arrange_wide(f, a))
        return;
    a->lead = (f->anchor_x + 3) / 4 * 4;
    tensor_arrange_group(f, words, a);
}

#endif
