/* SPDX-License-Identifier: MIT
 *
 * tensor-core: planes of uint8_t by the integer matrix units, exactly, for any filter.
 *
 * The sum over a row of taps is a product with a band matrix. For outputs 0 to 7 that are side by side, and taps a to
 * i:
 *
 *                                    a . . . . . . .
 *     (samples 0 to 15 of the row)   b a . . . . . .
 *                                    c b a . . . . .    = what this row adds to the sums of outputs 0 to 7
 *                                    . . .  and so on
 *                                    . . . . . . . i
 *
 * Many such chunks are the rows of one operand, the band matrix is the other, and the sums of all rows of taps add up
 * in the accumulators, 32-bit integers. Samples are u8, taps s8; a filter with larger taps is cut into parts, q = q0 +
 * 256 q1
 * + 256^2 q2 + 256^3 q3 with parts of -128 to 127. Sums of parts may wrap; the whole, taken modulo 2^32, does not.
 *
 * There are four kernels. A 9 x 9 filter in a window of 16 does 144 multiply-adds for 81 that are useful, and its
 * loads, one read of shared memory for 128 samples, leave it bound by memory:
 *
 *     tensor-walk.cuh    small filters: taps and rows in registers
 *     tensor-passes.cuh  larger ones of rank 1, up to 33 taps a side: two products, one after the other
 *     tensor-wide.cuh    other larger ones on compute capability 9.0: both operands in shared memory
 *     tensor-group.cuh   all others, and other chips
 *
 * Loads: each sample once from memory but for the halo of a strip. The arithmetic is far below the units' rate for up
 * to 9 x 9, so rounding counts: it takes one multiplication and half a clamping conversion an output (quick_make).
 *
 * Limits: none. */
#include "kernels/tensor-core/tensor-group.cuh"
#include "kernels/tensor-core/tensor-passes.cuh"
#include "kernels/tensor-core/tensor-walk.cuh"
#include "kernels/tensor-core/tensor-wide.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How a filter is laid out for the matrix unit. */
struct arrangement {
    enum kernel { WALK, PASSES, WIDE, GROUP } kernel;
    int lead;   /* samples from the first of a window to its first output */
    int height; /* WALK: the filter's, made odd; GROUP: rows of taps, in pairs, and one down for odd outputs */
    int full, packed, blocks; /* GROUP */
    int units, terms;         /* WIDE */
    int window, planes;       /* PASSES: blocks of 16 taps' window; bytes of row sums */
    bool unsigned_taps;       /* PASSES */
    enum pass_finish finish;  /* PASSES */
    uint32_t start, first;    /* PASSES: where row sums start, and where sums start */
    int parts;
    int factor; /* of all taps, for the sake of quick rounding */
    bool quick;
    int bias, multiplier, shift;
};

static_assert(FILTER_MAX_SUM < 127ll << 24, "four parts of int8 hold every tap");

/* Digits of q to the base 256, from -128 to 127; how many there are up to the highest that is not 0, at least 1. */
static int digits_of(int64_t q, int8_t *digit)
{
    int parts = 1;
    for (int p = 0; p < 4; p++) {
        digit[p] = (int8_t)(uint8_t)(q & 255);
        q = (q - digit[p]) / 256;
        if (digit[p] != 0)
            parts = p + 1;
    }
    return parts;
}

/* clamp(floor((S + B) / D)) as one multiplication and a conversion that clamps.
 *
 * With m = ceil(2^(32+s) / D) = (2^(32+s) + e) / D, 0 <= e < D, and t = S + B in 32 bits, level = t m >> 32 >> s is
 * floor(t / D) for 0 <= t < 256 D if t e < 2^(32+s) (see rounding_make), so 256 D e < 2^(32+s) suffices. Below, it is
 * negative and is clamped to 0; above, it is 255 or more, as it does not decrease with t. The multiplication is signed,
 * so m < 2^31, which D = 1 and 2 miss: there taps, bias and D are multiplied by 4 and 2. For D <= 4096, and for all
 * powers of two, s = 0 does. */
static void quick_make(const struct filter *f, struct arrangement *a)
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

/* Words of 4 samples in a window of OUTPUTS outputs with that lead. */
static int window_words(const struct filter *f, int lead, int outputs)
{
    return (lead + outputs - 1 + f->width - 1 - f->anchor_x) / 4 + 1;
}

/* Stages under the rows of a block, one more because the first row need not start a stage, and those ahead. */
static int wide_slots(int units, int filter_height)
{
    const int rows = wide_stage(units);
    return (rows + filter_height + rows - 1) / rows + wide_ahead;
}

/* Bytes of shared memory: barriers, taps, ring. */
static size_t wide_shared(const struct arrangement *a, int filter_height)
{
    return (size_t)16 * wide_slots_most + (size_t)a->parts * a->terms * term_bytes +
           (size_t)wide_slots(a->units, filter_height) * wide_stage(a->units) * wide_pitch(a->units);
}

static constexpr size_t wide_shared_most = 227 * 1024; /* what a block may have on compute capability 9.0 */

static bool arrange_wide(const struct filter *f, struct arrangement *a)
{
    a->lead = (f->anchor_x + 7) / 8 * 8; /* rows start at multiples of 8 samples, for copies of 8 bytes */
    const int words = window_words(f, a->lead, wide_chunk);
    a->units = words <= 8 ? 2 : 3;
    const int rows = f->height + wide_rows - 1;
    a->terms = a->units == 2 ? rows : (rows + 1) / 2 * 3;
    if (words > 4 * a->units || wide_slots(a->units, f->height) > wide_slots_most ||
        wide_shared(a, f->height) > wide_shared_most)
        return false;
    a->kernel = arrangement::WIDE;
    return true;
}

/* Is a window of that many blocks of 16, which starts at a multiple of a copy's bytes, enough for 16 outputs? */
static bool window_fits(const struct filter *f, int blocks)
{
    const int unit = pass_copy(blocks), lead = (f->anchor_x + unit - 1) / unit * unit;
    return lead - f->anchor_x + f->width - 1 + pass_chunk <= 16 * blocks && f->height - 1 + pass_chunk <= 16 * blocks;
}

static bool arrange_passes(const struct filter *f, struct arrangement *a)
{
    a->window = window_fits(f, 2) ? 2 : 3;
    if (!f->separable || !window_fits(f, a->window))
        return false;
    const int unit = pass_copy(a->window);
    a->lead = (f->anchor_x + unit - 1) / unit * unit;

    int64_t least = 0, most = 0, column_sum = 0, lowest = 0, highest = 0;
    a->parts = 1;
    for (int k = 0; k < f->width + f->height; k++) {
        const int64_t q = k < f->width ? f->row[k] : (int64_t)f->column[k - f->width] * a->factor;
        int8_t digit[4];
        const int parts = digits_of(q, digit);
        a->parts = parts > a->parts ? parts : a->parts;
        least = q < least ? q : least;
        most = q > most ? q : most;
        lowest -= k < f->width && q < 0 ? q * 255 : 0;
        highest += k < f->width && q > 0 ? q * 255 : 0;
        column_sum += k < f->width ? 0 : q;
    }
    a->unsigned_taps = a->parts > 1 && least >= 0 && most <= 255;
    if (a->unsigned_taps)
        a->parts = 1;
    if (a->parts > 2 || lowest + highest >= 1 << 24)
        return false;
    a->planes = a->parts == 1 && !a->unsigned_taps && lowest + highest < 1 << 16 ? 2 : 3;
    a->start = (uint32_t)lowest;
    const int64_t scale = (int64_t)f->scale * a->factor;
    if (!f->absolute && (scale & (scale - 1)) == 0) {
        a->finish = PASS_SHIFT;
        for (a->shift = 0; scale >> a->shift > 1;)
            a->shift++;
    } else {
        a->finish = f->absolute || a->shift != 0 ? PASS_ANY : PASS_SCALE;
    }
    a->first = (uint32_t)((a->finish == PASS_ANY ? 0 : a->bias) - lowest * column_sum);
    a->kernel = arrangement::PASSES;
    return true;
}

static void arrange(const struct plan *plan, const struct device *device, struct arrangement *a)
{
    const struct filter *f = plan->filter;
    memset(a, 0, sizeof *a);
    quick_make(f, a);
    int parts = 1;
    for (int k = 0; k < f->width * f->height; k++) {
        int8_t digit[4];
        const int digits = digits_of((int64_t)f->taps[k] * a->factor, digit);
        parts = digits > parts ? digits : parts;
    }
    a->parts = parts;
    a->lead = (f->anchor_x + 3) / 4 * 4;
    const int words = window_words(f, a->lead, chunk);
    if (words <= 4 && f->height <= walk_height && parts <= 2 && a->quick) {
        a->kernel = arrangement::WALK;
        a->height = f->height | 1;
        return;
    }
    if (device_facts(device)->capability >= 80 && a->quick && arrange_passes(f, a))
        return;
#ifdef GPUCONV_SM90A
    a->parts = parts;
    if (device_facts(device)->capability == 90 && a->quick && arrange_wide(f, a))
        return;
#endif
    a->parts = parts;
    a->kernel = arrangement::GROUP;
    a->lead = (f->anchor_x + 3) / 4 * 4;
    a->height = f->height / 2 * 2 + 2;
    int best = 0;
    for (int full = 1; full <= 2; full++)
        for (int packed = 0; packed <= 1; packed++) {
            const int block = 4 * full + 2 * packed, blocks = (words + block - 1) / block;
            const int cost = blocks * (16 * full + 9 * packed); /* in cycles, for a pair of rows: 8, and 4.5 */
            if (best == 0 || cost <= best) {
                best = cost;
                a->full = full;
                a->packed = packed;
                a->blocks = blocks;
            }
        }
}

/* Part PART of the taps of filter row I that output N of a chunk has over samples 4 WORD to 4 WORD + 3 of its window.
 */
static uint32_t tap_word(const struct filter *f, const struct arrangement *a, int part, int i, int word, int n)
{
    uint32_t value = 0;
    for (int e = 0; e < 4; e++) {
        const int j = 4 * word + e - a->lead - n + f->anchor_x;
        if (i < 0 || i >= f->height || j < 0 || j >= f->width)
            continue;
        int8_t digit[4];
        digits_of((int64_t)f->taps[i * f->width + j] * a->factor, digit);
        value |= (uint32_t)(uint8_t)digit[part] << 8 * e;
    }
    return value;
}

/* The table of taps of one part, as the kernel reads it; what follows it. */

static uint32_t *fill_walk(const struct filter *f, const struct arrangement *a, int part, uint32_t *to)
{
    for (int lower = 0; lower < 2; lower++)
        for (int i = 0; i < a->height + 1; i++)
            for (int lane = 0; lane < 32; lane++)
                *to++ = tap_word(f, a, part, i - lower, lane % 4, lane / 4);
    for (int k = 0; k < 4; k++) /* after the last part */
        to[k] = f->absolute ? 0 : (uint32_t)a->bias;
    return to;
}

static uint32_t *fill_wide(const struct filter *f, const struct arrangement *a, int part, uint32_t *to)
{
    for (int k = 0; k < a->terms * term_bytes / 4; k++) {
        /* A term is two units of 64 rows of 4 words. Units go through the windows of all rows of samples in turn. */
        const int unit = k / 256, m = k % 256 / 4, word = k % 4;
        const int row = unit / a->units, at = unit % a->units;
        /* matrix row m: output row m / 16, output x of the chunk; a lane has rows g and g + 8, which are outputs 2 g
         * and 2 g + 1 */
        *to++ = tap_word(f, a, part, row - m / 16, 4 * at + word, m % 8 * 2 + m / 8 % 2);
    }
    return to;
}

/* All parts of the band matrix of VECTOR, whose first output has its first tap over term LEAD of the window. Terms and
 * outputs stand in the order that tensor-passes.cuh tells, in that of samples where OF_ROWS. */
static uint32_t *fill_band(const int32_t *vector, int count, int factor, int lead, bool of_rows,
                           const struct arrangement *a, uint32_t *to)
{
    /* Of an even window; where it has three, the two of an odd one that are an operand, and the last of an even one. */
    static const int blocks[] = {0, 1, 1, 2, 2};
    for (int part = a->parts - 1; part >= 0; part--)
        for (int k = 0; k < pass_words(a->window); k++)
            for (int lane = 0; lane < 32; lane++) {
                const int t = lane % 4, m = lane / 4, below = k % 2;
                /* Rows m and m + 8 of the matrix are outputs that lane m / 2 has side by side in the end. */
                const int output = of_rows ? m / 2 * 4 + 2 * below + m % 2 : m + 8 * below;
                uint32_t word = 0;
                for (int e = 0; e < 4; e++) {
                    const int term = 16 * blocks[k / 2] + (of_rows ? 4 * t + e : 2 * t + e % 2 + 8 * (e / 2));
                    const int at = term - lead - output;
                    if (at < 0 || at >= count)
                        continue;
                    const int64_t q = (int64_t)vector[at] * factor;
                    int8_t digit[4];
                    digits_of(q, digit);
                    word |= (uint32_t)(uint8_t)(a->unsigned_taps ? (uint8_t)q : (uint8_t)digit[part]) << 8 * e;
                }
                *to++ = word;
            }
    return to;
}

static uint32_t *fill_passes(const struct filter *f, const struct arrangement *a, uint32_t *to)
{
    to = fill_band(f->row, f->width, 1, a->lead - f->anchor_x, true, a, to);
    to = fill_band(f->column, f->height, a->factor, 0, false, a, to);
    for (int k = 0; k < 4; k++)
        *to++ = a->start;
    *to++ = 256;
    return to;
}

/* Words FIRST to FIRST + COUNT - 1 of all lanes. */
static uint32_t *put_lanes(uint32_t *to, const uint32_t (*lanes)[32], int first, int count)
{
    for (int lane = 0; lane < 32; lane++)
        for (int k = 0; k < count; k++)
            *to++ = lanes[first + k][lane];
    return to;
}

static uint32_t *fill_group(const struct filter *f, const struct arrangement *a, int part, uint32_t *to)
{
    const int words = 2 * a->full + a->packed;
    for (int block = 0; block < a->blocks; block++)
        for (int k = 0; k < a->height; k++) {
            const int i = k / 2 * 2 - k % 2; /* 0, -1, 2, 1, 4, 3: even outputs, odd outputs */
            const int word = block * (4 * a->full + 2 * a->packed);
            uint32_t lanes[5][32];
            for (int lane = 0; lane < 32; lane++) {
                const int t = lane % 4, n = lane / 4;
                for (int q = 0; q < 2 * a->full; q++)
                    lanes[q][lane] = tap_word(f, a, part, i + q % 2, word + 4 * (q / 2) + t, n);
                if (a->packed)
                    lanes[2 * a->full][lane] = tap_word(f, a, part, i + t / 2, word + 4 * a->full + t % 2, n);
            }
            int at = 0;
            if (words >= 4)
                to = put_lanes(to, lanes, 0, 4), at = 4;
            if (words % 4 >= 2)
                to = put_lanes(to, lanes, at, 2), at += 2;
            if (words % 2)
                to = put_lanes(to, lanes, at, 1);
        }
    return to;
}

static size_t table_bytes(const struct arrangement *a)
{
    switch (a->kernel) {
    case arrangement::WALK: /* and the bias four times */
        return ((size_t)a->parts * 2 * (a->height + 1) * 32 + 4) * 4;
    case arrangement::PASSES: /* and where row sums start four times, and 256 */
        return ((size_t)2 * a->parts * pass_words(a->window) * 32 + 5) * 4;
    case arrangement::WIDE:
        return (size_t)a->parts * a->terms * term_bytes;
    default: /* and what the last step fetches ahead */
        return ((size_t)a->parts * a->blocks * a->height + 2) * (2 * a->full + a->packed) * 32 * 4;
    }
}

extern "C" bool tensor_core_prepare(struct plan *plan, struct device *device, struct error *error)
{
    struct arrangement a;
    arrange(plan, device, &a);
    uint32_t *table = (uint32_t *)calloc(1, table_bytes(&a)), *to = table;
    if (!table)
        return error_set(error, ERROR_WORK, "not enough memory for the taps of %s; close other programs",
                         plan->filter->name);
    if (a.kernel == arrangement::PASSES)
        fill_passes(plan->filter, &a, to);
    else
        for (int part = a.parts - 1; part >= 0; part--)
            to = a.kernel == arrangement::WALK   ? fill_walk(plan->filter, &a, part, to)
                 : a.kernel == arrangement::WIDE ? fill_wide(plan->filter, &a, part, to)
                                                 : fill_group(plan->filter, &a, part, to);
    const bool done = upload_table(device, table, table_bytes(&a), error);
    free(table);
    return done;
}

typedef void tensor_kernel(struct tensor_launch);

template <int PARTS, int FINISH>
static tensor_kernel *walk_of_height(int height)
{
    switch (height) {
    case 1:
        return tensor_walk<1, PARTS, FINISH>;
    case 3:
        return tensor_walk<3, PARTS, FINISH>;
    case 5:
        return tensor_walk<5, PARTS, FINISH>;
    case 7:
        return tensor_walk<7, PARTS, FINISH>;
    default:
        return tensor_walk<9, PARTS, FINISH>;
    }
}

template <int FINISH>
static tensor_kernel *quick_kernel(const struct arrangement *a)
{
    if (a->kernel == arrangement::WIDE)
        return a->units == 2 ? tensor_wide<2, FINISH> : tensor_wide<3, FINISH>;
    return a->parts == 1 ? walk_of_height<1, FINISH>(a->height) : walk_of_height<2, FINISH>(a->height);
}

template <int BLOCKS, int FINISH>
static tensor_kernel *passes_kernel(const struct arrangement *a)
{
    if (a->planes == 2)
        return tensor_passes<BLOCKS, 2, 1, false, FINISH>;
    if (a->parts == 2)
        return tensor_passes<BLOCKS, 3, 2, false, FINISH>;
    return a->unsigned_taps ? tensor_passes<BLOCKS, 3, 1, true, FINISH> : tensor_passes<BLOCKS, 3, 1, false, FINISH>;
}

template <int BLOCKS>
static tensor_kernel *passes_finish(const struct arrangement *a)
{
    return a->finish == PASS_SHIFT   ? passes_kernel<BLOCKS, PASS_SHIFT>(a)
           : a->finish == PASS_SCALE ? passes_kernel<BLOCKS, PASS_SCALE>(a)
                                     : passes_kernel<BLOCKS, PASS_ANY>(a);
}

static tensor_kernel *choose_kernel(const struct plan *plan, const struct arrangement *a)
{
    if (a->kernel == arrangement::PASSES) {
        return a->window == 2 ? passes_finish<2>(a) : passes_finish<3>(a);
    }
    if (a->kernel != arrangement::GROUP)
        return plan->filter->absolute ? quick_kernel<FINISH_ABSOLUTE>(a)
               : a->shift == 0        ? quick_kernel<FINISH_SCALE>(a)
                                      : quick_kernel<FINISH_SHIFT>(a);
    return a->full == 1 ? a->packed ? tensor_group<1, 1> : tensor_group<1, 0>
           : a->packed ? tensor_group<2, 1>
                        : tensor_group<2, 0>;
}

/* How a kernel is launched. A strip is LEAST to LONGEST units of UNIT rows, less TRIM, so that it is whole stages with
 * its halo; each costs as much as START rows more. */
struct shape {
    int tile_width, unit, trim, least, longest, start;
    dim3 block;
    int tiles_a_block;
    int resident; /* tiles of a multiprocessor at one time, about */
    size_t shared;
};

static struct shape choose_shape(const struct plan *plan, const struct arrangement *a, struct tensor_launch *tensor)
{
    const struct filter *f = plan->filter;
    if (a->kernel == arrangement::WALK) {
        const int rows = walk_rows(a->height);
        return {walk_columns,
                rows,
                a->height - 1,
                2,
                walk_strip(a->height),
                a->height,
                dim3(32, warps),
                warps,
                4 * warps,
                (size_t)warps * walk_stages(a->height) * rows * walk_pitch};
    }
    if (a->kernel == arrangement::PASSES) {
        tensor->first = (int)a->first;
        return {pass_columns,
                pass_rows,
                16 * (a->window - 1),
                2,
                pass_strip,
                pass_rows,
                dim3(32 * pass_warps),
                1,
                pass_resident(a->planes, a->parts),
                (size_t)pass_shared(a->window)};
    }
    if (a->kernel == arrangement::WIDE) {
        const int rows = wide_stage(a->units);
        tensor->terms = a->terms;
        tensor->slots = wide_slots(a->units, f->height);
        return {wide_columns,
                rows,
                0,
                1,
                wide_strip / rows,
                f->height + wide_ahead * rows,
                dim3(128 * wide_groups(a->units)),
                1,
                1,
                wide_shared(a, f->height)};
    }
    tensor->blocks = a->blocks;
    tensor->steps = a->height / 2;
    tensor->before = (a->lead + 15) / 16 * 16;
    tensor->pitch =
        (tensor->before - a->lead + tile_columns - chunk + 4 * a->blocks * (4 * a->full + 2 * a->packed) + 15) / 16 *
        16;
    /* Stages under a group's rows, window and what it fetches ahead included; and two under way. */
    tensor->slots = (group + a->height + 1 + group - 1) / group + 2;
    const size_t ring = (size_t)tensor->slots * group * tensor->pitch;
    int count = warps; /* so that two blocks share a multiprocessor even where the filter is large */
    while (count > 1 && count * ring > 100 * 1024)
        count /= 2;
    return {tile_columns, group,     0,           1, group_strip / group, f->height, dim3(32, (unsigned)count),
            count,        4 * count, count * ring};
}

/* The strip for which the waves of resident tiles, times what a tile takes, are least. From four waves on they overlap,
 * so that their number need not be whole. */
static void choose_strip(const struct shape &shape, const struct device *device, const struct plane *in,
                         struct tensor_launch *tensor)
{
    const double resident = (double)device_facts(device)->multiprocessors * shape.resident;
    const int columns = (in->width + shape.tile_width - 1) / shape.tile_width;
    double best = 0;
    for (int units = shape.longest; units >= shape.least; units--) {
        const int strip = units * shape.unit - shape.trim, tiles_y = (in->height + strip - 1) / strip;
        const double waves = (double)columns * tiles_y * in->count / resident;
        const double cost = (waves < 4 ? ceil(waves) : waves) * (strip + shape.start);
        if (best == 0 || cost < best) {
            best = cost;
            tensor->strip = strip;
            tensor->tiles_y = tiles_y;
        }
    }
    tensor->columns = columns;
    tensor->tiles = columns * tensor->tiles_y * in->count;
}

/* Multiprocessors are not equally fast, and the last tiles leave most of them idle: where there are several waves, the
 * lower rows of the image are in shorter strips, which come last. */
static void shorten_last_strips(const struct shape &shape, const struct device *device, const struct plane *in,
                                struct tensor_launch *tensor)
{
    const double waves = (double)tensor->tiles / (device_facts(device)->multiprocessors * shape.resident);
    tensor->planes = in->count;
    if (waves < 3)
        return;
    tensor->short_strip = pass_short * shape.unit - shape.trim;
    tensor->tiles_y = (int)(in->height * (1 - pass_share) / tensor->strip);
    const int left = in->height - tensor->tiles_y * tensor->strip;
    tensor->short_y = (left + tensor->short_strip - 1) / tensor->short_strip;
    tensor->tiles = tensor->columns * (tensor->tiles_y + tensor->short_y) * in->count;
}

extern "C" bool tensor_core_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                   const struct plane *out, struct error *error)
{
    struct arrangement a;
    arrange(plan, device, &a);
    struct tensor_launch tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.launch = make_launch(plan, in, out);
    tensor.table = (const uint32_t *)device_table(device);
    tensor.parts = a.parts;
    tensor.lead = a.lead;
    tensor.quick = a.quick;
    tensor.bias = a.bias;
    tensor.multiplier = a.multiplier;
    tensor.shift = a.shift;
    tensor_kernel *kernel = choose_kernel(plan, &a);
    const struct shape shape = choose_shape(plan, &a, &tensor);

    choose_strip(shape, device, in, &tensor);
    if (a.kernel == arrangement::PASSES)
        shorten_last_strips(shape, device, in, &tensor);
    CUDA_TRY(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)shape.shared),
             error);
    const dim3 grid((unsigned)((tensor.tiles + shape.tiles_a_block - 1) / shape.tiles_a_block));
    kernel<<<grid, shape.block, shape.shared, device_stream(device)>>>(tensor);
    CUDA_TRY(cudaGetLastError(), error);
    return true;
}
