/* SPDX-License-Identifier: MIT
 *
 * From taps to a program: choose the passes and the arithmetic, then write the taps as steps.
 *
 * A lane of 32 bits multiplies and adds 4 taps of int8_t, 2 taps of int16_t, or one float or int32_t. Small taps of
 * int8_t have sums of 16 bits: then each half of a lane multiplies and adds 2 of them.
 *
 * A tap that is too large for its byte or word is split into parts: signed digits in base 256 or 65536. The sum of the
 * highest part is computed first and multiplied by the base before the next part is added. All of this is modulo 2^32;
 * the whole sum fits in 32 bits, so it is exact. */
#include "cpu/program.h"

#include "cpu/cpu.h"
#include "cpu/narrow.h"
#include "plan/parts.h"

#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum {
    WINDOW_TAPS = 25, /* equal taps from which on running sums are faster than multiply-adds, in planes */
    WINDOW_ROWS = 4,  /* rows of scratch: an entering row, a leaving row, and the column sums, twice as long */
};

/* The HEIGHT x WIDTH taps of a pass. */
struct weights {
    int width, height;
    const int32_t *taps;
    double divisor; /* float taps are divided by it */
};

static int weights_parts(const struct weights *w, int bits)
{
    int max = 1;
    for (int i = 0; i < w->width * w->height; i++) {
        const int parts = tap_parts(w->taps[i], bits);
        max = parts > max ? parts : max;
    }
    return max;
}

/* Neighbouring taps of a row in one lane. */
static int lane_taps(enum arithmetic arithmetic)
{
    return arithmetic == ARITHMETIC_BYTES ? 4 : arithmetic <= ARITHMETIC_WORDS ? 2 : 1;
}

/* The bits of a part of a tap, or 0 if taps are not split. */
static int part_bits(enum arithmetic arithmetic)
{
    return arithmetic <= ARITHMETIC_NARROW ? 8 : arithmetic == ARITHMETIC_WORDS ? 16 : 0;
}

static void pass_free(struct pass *pass)
{
    if (pass == NULL)
        return;
    free(pass->row_parts.taps);
    free(pass->double_column.taps);
    free(pass->columns);
    free(pass->steps);
    free(pass);
}

/* The tap in row I and column J; 0 outside the filter. */
static int32_t weight_at(const struct weights *w, int i, int j)
{
    return i >= 0 && i < w->height && j < w->width ? w->taps[i * w->width + j] : 0;
}

/* The taps of one lane, from column J on, for output row A of the group and memory row R. */
static union cell lane_cell(const struct pass *pass, const struct weights *w, int part, int r, int a, int j)
{
    union cell cell = {.i = 0};
    switch (pass->arithmetic) {
    case ARITHMETIC_BYTES:
        for (int k = 0; k < 4; k++)
            cell.bytes[k] = (int8_t)tap_part(weight_at(w, r - a, j + k), part, 8);
        break;
    case ARITHMETIC_NARROW:
        for (int k = 0; k < 4; k++)
            cell.bytes[k] = (int8_t)weight_at(w, r - a, j + k % 2);
        break;
    case ARITHMETIC_WORDS:
        for (int k = 0; k < 2; k++)
            cell.words[k] = (int16_t)tap_part(weight_at(w, r - a, j + k), part, 16);
        break;
    case ARITHMETIC_PAIRS:
        for (int k = 0; k < 2; k++)
            cell.words[k] = (int16_t)weight_at(w, 2 * r + k - a, j);
        break;
    case ARITHMETIC_FLOATS:
        cell.f = (float)(weight_at(w, r - a, j) / w->divisor);
        break;
    case ARITHMETIC_INTS:
        cell.i = weight_at(w, r - a, j);
        break;
    }
    return cell;
}

/* Is there a tap in the lane's first column? */
static bool starts_lane(enum arithmetic arithmetic, union cell cell)
{
    return arithmetic <= ARITHMETIC_NARROW  ? cell.bytes[0] != 0
           : arithmetic == ARITHMETIC_WORDS ? cell.words[0] != 0
                                            : cell.i != 0;
}

/* Leave the second tap of each lane to the next column if a lane could saturate. */
static bool split_narrow(struct column *column)
{
    bool splits = false;
    for (int a = 0; a < GROUP_MAX; a++)
        splits |= abs(column->taps[a].bytes[0] + column->taps[a].bytes[1]) > NARROW_PAIR;
    for (int a = 0; a < GROUP_MAX && splits; a++)
        column->taps[a].bytes[1] = column->taps[a].bytes[3] = 0;
    return splits;
}

/* Add the step for memory row R and one part of the taps. Columns whose taps are 0 for every row of the group are left
 * out. */
static void add_step(struct pass *pass, const struct weights *w, int part, int r)
{
    int low = GROUP_MAX, high = 0, count = 0;
    for (int j = 0; j < w->width;) {
        struct column *column = &pass->columns[pass->column_count];
        bool starts = false;
        for (int a = 0; a < GROUP_MAX; a++) {
            column->taps[a] = a < pass->group ? lane_cell(pass, w, part, r, a, j) : (union cell){.i = 0};
            starts |= starts_lane(pass->arithmetic, column->taps[a]);
        }
        if (!starts) {
            j++;
            continue;
        }
        for (int a = 0; a < GROUP_MAX; a++)
            if (column->taps[a].i != 0) {
                low = a < low ? a : low;
                high = a > high ? a : high;
            }
        column->offset = j * (int32_t)column_bytes(pass->arithmetic);
        pass->column_count++;
        count++;
        j += pass->arithmetic == ARITHMETIC_NARROW && split_narrow(column) ? 1 : lane_taps(pass->arithmetic);
    }
    if (count > 0)
        pass->steps[pass->step_count++] =
            (struct step){.row = (int16_t)r, .columns = (int16_t)count, .range = (uint8_t)STEP_RANGE(low, high)};
}

/* Write all steps of the pass, from the highest part of the taps to the lowest. */
static bool pass_fill(struct pass *pass, const struct weights *w)
{
    const int bits = part_bits(pass->arithmetic);
    const int unit = pass->arithmetic == ARITHMETIC_PAIRS ? 2 : 1;
    pass->row_count = (w->height + pass->group - 1 + unit - 1) / unit;
    const int parts = bits > 0 ? weights_parts(w, bits) : 1;
    if (pass->arithmetic == ARITHMETIC_NARROW)
        narrow_fits(w->taps, w->width * w->height, &pass->narrow_start);
    /* Each step has a column, or begins a part of the taps. */
    const size_t columns = (size_t)(parts * pass->row_count) * (size_t)w->width;
    pass->columns = malloc(columns * sizeof *pass->columns);
    pass->steps = malloc((columns + (size_t)parts) * sizeof *pass->steps);
    if (pass->columns == NULL || pass->steps == NULL)
        return false;
    for (int part = parts - 1; part >= 0; part--) {
        if (part < parts - 1)
            pass->steps[pass->step_count++] = (struct step){.range = STEP_NEXT_PART};
        for (int r = 0; r < pass->row_count; r++)
            add_step(pass, w, part, r);
    }
    pass->is_row = w->height == 1 && parts == 1 && pass->arithmetic != ARITHMETIC_PAIRS && pass->step_count > 0;
    return true;
}

/* Make a pass over rows for ARITHMETIC, with the steps of W, or with none if W is NULL. Returns NULL if there is not
 * enough memory. */
static struct pass *pass_make(const struct loops *loops, enum arithmetic arithmetic, enum target target,
                              const struct weights *w)
{
    struct pass *pass = calloc(1, sizeof *pass);
    if (pass == NULL)
        return NULL;
    pass->arithmetic = arithmetic;
    pass->target = target;
    pass->group = arithmetic == ARITHMETIC_NARROW ? loops->narrow_group : loops->group;
    if (w == NULL || pass_fill(pass, w))
        return pass;
    pass_free(pass);
    return NULL;
}

/* Rows of sums in PARTS rows each, for a second pass with ARITHMETIC. */
static enum target sums_target(enum arithmetic arithmetic, int parts)
{
    if (arithmetic == ARITHMETIC_FLOATS)
        return TARGET_FLOATS;
    if (arithmetic == ARITHMETIC_PAIRS)
        return parts == 2 ? TARGET_PAIRS_HIGH_LOW : TARGET_PAIRS;
    return parts == 2 ? TARGET_HIGH_LOW : TARGET_INTS;
}

static enum target output_target(enum sample sample)
{
    return sample == SAMPLE_U8 ? TARGET_U8 : sample == SAMPLE_U16 ? TARGET_U16 : TARGET_F32;
}

/* Choose the first enum finish_way that is exact for the plan.
 *
 * FINISH_SHIFT: the sum plus the bias does not wrap, and SSE2 can pack it (see pack_unsigned in x86.h).
 *
 * FINISH_FLOAT: let t = S + B. The output is floor((t + 1/2) / D), and (t + 1/2) / D is at least 1 / 2D away from any
 * integer. The float result is S * fl(1/D) + fl((B + 1/2) / D). Each of its four roundings errs by at most u = 2^-24 of
 * its result: twice by u |S| / D, once by u (|B| + 1) / D, and once by u 300 for a result below 300 (above that, the
 * output is 255 anyway). The total is below 1 / 2D where 2 |S| + |B| + 1 + 300 D < 2^23. Truncation equals floor
 * wherever the output is not 0. */
static void finish_make(const struct plan *plan, struct finish *finish)
{
    const struct filter *f = plan->filter;
    const bool words = plan->sample == SAMPLE_U16;
    const int64_t bias = words ? f->bias16 : f->bias, distance = bias < 0 ? -bias : bias;
    const int64_t largest = f->absolute_sum * (words ? 65535 : 255);
    *finish = (struct finish){
        .way = words                 ? FINISH_DOUBLE
               : plan->rounding.wide ? FINISH_EACH
                                     : FINISH_MULTIPLY,
        .absolute = f->absolute,
        .rounding = plan->rounding,
        .rounding16 = plan->rounding16,
    };
    if (finish->way == FINISH_EACH)
        return;
    if ((f->scale & (f->scale - 1)) == 0 && largest + distance <= INT32_MAX - (words ? 32768 : 0)) {
        finish->way = FINISH_SHIFT;
        finish->bias = (int32_t)bias;
        while (1 << finish->shift < f->scale)
            finish->shift++;
    } else if (!words && 2 * largest + distance + 1 + 300 * (int64_t)f->scale < 1 << 23) {
        finish->way = FINISH_FLOAT;
        finish->factor = (float)(1.0 / f->scale);
        finish->term = (float)(((double)bias + 0.5) / f->scale);
    }
}

/* Multiply-adds for one vector of outputs. */
static double pass_cost(enum arithmetic arithmetic, const struct weights *w)
{
    const int bits = part_bits(arithmetic), lane = lane_taps(arithmetic);
    const double share = arithmetic == ARITHMETIC_NARROW ? 0.5 : 1; /* it does two vectors at once */
    return share * w->height * ((w->width + lane - 1) / lane) * (bits > 0 ? weights_parts(w, bits) : 1);
}

/* The arithmetic that takes fewer multiply-adds of samples for these taps. Where one of them has four taps, sums of 16
 * bits gain only if rows of sums or roots are made of them. */
static enum arithmetic sample_arithmetic(const struct plan *plan, const struct program *program,
                                         const struct weights *w)
{
    if (plan->sample == SAMPLE_F32)
        return ARITHMETIC_FLOATS;
    const enum arithmetic other = program->loops->words                        ? ARITHMETIC_WORDS
                                  : sums_fit_float(plan->filter, plan->sample) ? ARITHMETIC_FLOATS
                                                                               : ARITHMETIC_INTS;
    int16_t start;
    float term;
    const bool prefers_narrow = !program->loops->bytes || w->height == 1 ||
                                (plan->filter->combine == COMBINE_MAGNITUDE && narrow_root_fits(plan, &term));
    if (plan->sample == SAMPLE_U8 && program->loops->narrow && prefers_narrow &&
        narrow_fits(w->taps, w->width * w->height, &start))
        return ARITHMETIC_NARROW;
    if (plan->sample == SAMPLE_U16 || !program->loops->bytes || weights_parts(w, 8) > TAP_PARTS_MAX)
        return other;
    return pass_cost(ARITHMETIC_BYTES, w) <= pass_cost(other, w) ? ARITHMETIC_BYTES : other;
}

/* The value that sums of PART of the samples start with. For samples less 32768, it is the 32768 sum(q) that are
 * missing, modulo 2^32. */
static int32_t part_start(enum sample_part part, const struct weights *w)
{
    const int64_t missing = taps_sum(w->taps, w->width * w->height) * 32768;
    return part == PART_CENTRED ? (int32_t)(uint32_t)(uint64_t)missing : 0;
}

/* ---- One pass for each grid ---- */

/* Derive how the sums of two grids are joined, for samples of uint8_t and float. */
static void join_make(const struct plan *plan, enum arithmetic arithmetic, struct join *join)
{
    const struct filter *f = plan->filter;
    *join = (struct join){
        .combine = f->combine,
        .is_float = arithmetic == ARITHMETIC_FLOATS,
        .target = output_target(plan->sample),
        .layout = sums_layout(arithmetic),
        .offset = plan->offset,
        .steps = f->steps,
    };
    finish_make(plan, &join->finish);
    if (f->combine != COMBINE_MAGNITUDE || plan->sample == SAMPLE_F32)
        return;
    /* The join of a magnitude gives levels. The finish leaves them: it shifts by 0, or rounds with D = 1 and B = 0. */
    join->finish = (struct finish){.way = FINISH_SHIFT,
                                   .rounding = {.scale = 1, .high = 255, .bias = 1, .multiplier = UINT32_MAX}};
    /* N is at most 2^24 here, so sqrt(N) / D <= 2^12, and (O + 1/2) is at most that too. At most seven roundings by
     * u = 2^-24 give an error below 7 * 2^-12 < 2^-8. Adding 2^-8 makes sure that the level is not too low. */
    join->in_float = plan->root_in_float;
    join->factor = (float)(1.0 / f->scale);
    join->term = (float)(plan->twice_bias / (2.0 * f->scale) + 1.0 / 256);
    join->scale = f->scale;
    join->twice_bias = plan->twice_bias;
}

/* Derive how sums are joined to outputs of uint16_t. */
static void join16_make(const struct plan *plan, struct program *program, bool is_float)
{
    const struct filter *f = plan->filter;
    program->join16 = (struct join16){
        .combine = f->combine,
        .layout = program->loops->words ? LAYOUT_TWOS : LAYOUT_STRAIGHT,
        .is_float = is_float,
        .sum_parts = program->sum_parts,
        .unit = 256,
        .rounding = f->combine == COMBINE_MAGNITUDE ? plan->root16.rounding : plan->rounding16,
    };
    program->is_root16 = f->combine == COMBINE_MAGNITUDE && !plan->root16.is_exact;
}

/* Does a fast FIR take less than one pass of W with ARITHMETIC? */
static bool takes_fir(const struct plan *plan, const struct program *program, enum arithmetic arithmetic,
                      const struct weights *w)
{
    return plan->sample == SAMPLE_U8 && plan->filter->combine == COMBINE_NONE && program->loops->words &&
           fir_pays(w->taps, w->width, w->height, fmin(pass_cost(arithmetic, w), filter_tap_count(plan->filter)));
}

/* Make the passes of a fast FIR. The last one adds the rows of sums of four products, which lie one after the other. */
static bool make_fir(const struct plan *plan, struct program *program, const struct weights *w)
{
    const int group = program->loops->group;
    int32_t ones[(FIR_STEP - 1) * GROUP_MAX + 1] = {0};
    bool done = true;
    for (int n = 0; n < FIR_PRODUCTS; n++) {
        int32_t *taps = fir_taps(w->taps, w->width, w->height, &fir_products[n]);
        const struct weights part = {w->width, (w->height + FIR_STEP - 1) / FIR_STEP, taps, 1};
        program->products[n] = taps != NULL ? pass_make(program->loops, ARITHMETIC_WORDS, TARGET_INTS, &part) : NULL;
        free(taps);
        done &= program->products[n] != NULL;
    }
    for (int k = 0; k < FIR_STEP; k++)
        ones[k * group] = 1;
    program->first = program->products[0];
    program->last = pass_make(program->loops, ARITHMETIC_INTS, TARGET_U8,
                              &(struct weights){1, (FIR_STEP - 1) * group + 1, ones, 1});
    if (!done || program->last == NULL)
        return false;
    program->last->group = FIR_STEP * group;
    program->last->layout = LAYOUT_TWOS;
    finish_make(plan, &program->last->finish);
    return true;
}

/* Make one pass for each grid, over the same rows of samples. If 32 bits do not hold the sums of samples of uint16_t,
 * the pass reads their high bytes and then their low bytes. Then derive how the sums are joined, if there are
 * several. */
static bool make_at_once(const struct plan *plan, struct program *program, enum arithmetic arithmetic)
{
    const struct filter *f = plan->filter;
    const int grids = filter_grids(f);
    program->is_narrow_root = arithmetic == ARITHMETIC_NARROW && f->combine == COMBINE_MAGNITUDE &&
                              narrow_root_fits(plan, &program->root_term);
    const bool joined = (grids == 2 && !program->is_narrow_root) || program->sum_parts == 2;
    if (program->sum_parts == 2) {
        program->sample_parts[0] = PART_HIGH;
        program->sample_parts[1] = PART_LOW;
    }
    for (int grid = 0; grid < grids; grid++) {
        const struct weights w = {f->width, f->height, f->taps + grid * f->width * f->height,
                                  plan->sample == SAMPLE_F32 ? f->scale : 1};
        if (takes_fir(plan, program, arithmetic, &w))
            return make_fir(plan, program, &w);
        struct pass *pass = pass_make(program->loops, arithmetic,
                                      joined ? sums_target(arithmetic, 1) : output_target(plan->sample), &w);
        *(grid == 0 ? &program->last : &program->second) = pass;
        if (pass == NULL)
            return false;
        pass->start = part_start(program->sample_parts[0], &w);
        pass->offset = plan->offset;
        pass->absolute = f->absolute;
        finish_make(plan, &pass->finish);
        if (program->is_narrow_root)
            pass->narrow_start = 0;
        else if (arithmetic == ARITHMETIC_NARROW && !joined)
            narrow_finish_make(plan, w.width * w.height, pass);
    }
    program->first = program->last;
    program->joined_rows = joined ? program->sum_parts * grids : 0;
    if (joined && plan->sample == SAMPLE_U16)
        join16_make(plan, program, arithmetic == ARITHMETIC_FLOATS);
    else if (joined)
        join_make(plan, arithmetic, &program->join);
    return true;
}

/* ---- A row pass and a column pass ---- */

/* The two passes of a separable filter. */
struct rank_1 {
    struct weights row, column;
    enum arithmetic across, down; /* the arithmetic of the row pass, and of the column pass */
    int32_t row_start, column_start;
    int sum_parts;
};

/* The largest sum|q| for which 32 bits hold the sums of samples of uint16_t. Each tap then fits in 16 bits. */
enum { NARROW_SUM = INT16_MAX };
static_assert((int64_t)NARROW_SUM * 65535 <= INT32_MAX, "32 bits hold the sums");

/* Do the row pass's sums fit in 16 bits after their midpoint is subtracted? *START is the value that the sums start
 * with. */
static bool fits_pairs(const struct filter *f, int32_t *start)
{
    int64_t negative = 0, positive = 0;
    for (int j = 0; j < f->width; j++)
        *(f->row[j] < 0 ? &negative : &positive) += (int64_t)f->row[j] * 255;
    *start = (int32_t)(INT16_MIN - negative);
    bool fits = positive - negative <= UINT16_MAX;
    for (int i = 0; i < f->height; i++)
        fits &= f->column[i] >= -INT16_MAX && f->column[i] <= INT16_MAX;
    return fits;
}

/* Choose the arithmetic of the column pass: floats, pairs or integers. For samples of uint8_t, the sums in pairs are
 * centred. For samples of uint16_t, pairs need two parts: the column pass runs over the high and over the low halves of
 * the row's sums. Returns false if 32 bits do not hold the row's sums. */
static bool choose_down(const struct plan *plan, const struct program *program, struct rank_1 *two)
{
    const struct filter *f = plan->filter;
    const bool words = program->loops->words, is_float = sums_fit_float(f, plan->sample);
    int32_t start;
    two->down = is_float ? ARITHMETIC_FLOATS : ARITHMETIC_INTS;
    if (plan->sample == SAMPLE_U8 && words && fits_pairs(f, &start)) {
        two->down = ARITHMETIC_PAIRS;
        two->row_start = start;
        two->column_start = (int32_t)(uint32_t)(uint64_t)(-start * taps_sum(f->column, f->height));
    }
    if (plan->sample == SAMPLE_U8)
        return true;
    if (words && !is_float)
        two->down = ARITHMETIC_PAIRS;
    two->row_start = part_start(program->sample_parts[0], &two->row);
    two->sum_parts = two->down == ARITHMETIC_PAIRS ? 2 : program->sum_parts;
    return taps_absolute_sum(f->row, f->width) <= NARROW_SUM && taps_absolute_sum(f->column, f->height) <= NARROW_SUM;
}

/* Choose two passes if the filter is separable and they cost less than one pass with the arithmetic ONCE over ALL. */
static bool choose_rank_1(const struct plan *plan, const struct program *program, enum arithmetic once,
                          const struct weights *all, struct rank_1 *two)
{
    const struct filter *f = plan->filter;
    if (!f->separable || f->width == 1 || f->height == 1)
        return false;
    *two = (struct rank_1){
        .row = {f->width, 1, f->row, 1},
        .column = {1, f->height, f->column, all->divisor},
        .down = once,
        .sum_parts = 1,
    };
    two->across = sample_arithmetic(plan, program, &two->row);
    if (plan->sample != SAMPLE_F32 && !choose_down(plan, program, two))
        return false;
    const bool halves = two->down == ARITHMETIC_PAIRS && two->sum_parts == 1;
    const double down_cost = halves ? (f->height + 1) / 2 : f->height;
    return 3 * pass_cost(two->across, &two->row) + down_cost + 6 < program->sum_parts * pass_cost(once, all);
}

static bool make_rank_1(const struct plan *plan, struct program *program, const struct rank_1 *two)
{
    program->sum_parts = two->sum_parts;
    program->first = pass_make(program->loops, two->across, sums_target(two->down, two->sum_parts), &two->row);
    program->last = pass_make(program->loops, two->down,
                              two->sum_parts == 1 ? output_target(plan->sample) : TARGET_INTS, &two->column);
    if (program->first == NULL || program->last == NULL)
        return false;
    struct pass *last = program->last;
    program->first->start = two->row_start;
    assert(two->across != ARITHMETIC_NARROW || two->down != ARITHMETIC_PAIRS ||
           program->first->start == program->first->narrow_start);
    last->start = two->column_start;
    last->layout = sums_layout(two->across);
    last->offset = plan->offset;
    last->absolute = plan->filter->absolute;
    finish_make(plan, &last->finish);
    if (two->sum_parts == 1)
        return true;
    program->joined_rows = 2;
    join16_make(plan, program, false);
    program->join16.unit = 65536;
    program->join16.base =
        two->down == ARITHMETIC_PAIRS ? 32768.0 * (double)taps_sum(two->column.taps, two->column.height) : 0;
    return true;
}

/* ---- Filters that need no multiply-adds ---- */

/* Are all taps equal? */
static bool is_window(const struct filter *f)
{
    bool equal = f->combine == COMBINE_NONE && f->width > 1;
    for (int i = 1; i < f->width * f->height; i++)
        equal &= f->taps[i] == f->taps[0];
    return equal;
}

bool cpu_takes_pixels(const struct filter *filter, int width)
{
    const struct plan plan = {.filter = filter};
    const int taps = filter->width * filter->height;
    struct pass pass = {.group = 0};
    if (taps == 1 && filter_is_shift(filter)) /* nothing is done */
        return width >= BLOCK_MAX && width <= INT_MAX / 8;
    if (width < BLOCK_MAX || width > INT_MAX / 8 || filter->two_pass || !is_window(filter) || filter->taps[0] != 1 ||
        taps * 255 > UINT16_MAX)
        return false;
    narrow_finish_make(&plan, taps, &pass);
    return pass.finish.narrow.is_used;
}

/* Make a pass without steps, in the arithmetic that leaves rows as they are. It needs ROWS rows of scratch, to which
 * tiles_choose fits the tiles. */
static bool make_plain(const struct plan *plan, struct program *program, int rows)
{
    static const enum arithmetic arithmetics[] = {
        [SAMPLE_U8] = ARITHMETIC_BYTES, [SAMPLE_U16] = ARITHMETIC_WORDS, [SAMPLE_F32] = ARITHMETIC_FLOATS};
    program->first = program->last =
        pass_make(program->loops, arithmetics[plan->sample], output_target(plan->sample), NULL);
    if (program->last == NULL)
        return false;
    program->last->row_count = rows;
    finish_make(plan, &program->last->finish);
    if (program->is_window)
        narrow_finish_make(plan, plan->filter->width * plan->filter->height, program->last);
    return true;
}

/* Choose the arithmetic of a filter that is a grid or two, and make the passes. */
static bool make_grids(const struct plan *plan, struct program *program, bool pixels)
{
    const struct filter *f = plan->filter;
    program->is_shift = filter_is_shift(f);
    if (program->is_shift)
        return make_plain(plan, program, 1);
    program->is_window = plan->sample == SAMPLE_U8 && is_window(f) && (pixels || f->width * f->height >= WINDOW_TAPS);
    if (program->is_window)
        return make_plain(plan, program, WINDOW_ROWS);
    if (plan->sample == SAMPLE_U16) {
        program->sample_parts[0] = program->loops->words ? PART_CENTRED : PART_ALL;
        program->sum_parts = f->absolute_sum <= NARROW_SUM ? 1 : 2;
    }
    const struct weights all = {f->width, filter_grids(f) * f->height, f->taps,
                                plan->sample == SAMPLE_F32 ? f->scale : 1};
    const enum arithmetic once = sample_arithmetic(plan, program, &all);
    struct rank_1 two;
    return choose_rank_1(plan, program, once, &all, &two) ? make_rank_1(plan, program, &two)
                                                          : make_at_once(plan, program, once);
}

/* ---- Filters in two passes ---- */

/* Samples of uint8_t where the sums of rows are shifted, in words and pairs, or else in integers: joined taps may be
 * too large (thin.c). All of it is modulo 2^32, and s + pass_scale / 2 is below 2^32.
 *
 * Pairs hold m - C in 16 bits, where C is half of the least power of two above all m. So the row's sums start with half
 * of a unit less C units, and the column's sums with C times its taps. */
static bool make_shifted(const struct plan *plan, struct program *program, const struct weights *row,
                         const struct weights *column)
{
    const struct passes *p = &plan->passes;
    const bool words = program->loops->words && weights_parts(row, 16) == 1;
    const bool pairs = program->loops->words && weights_parts(column, 16) == 1;
    struct pass *first = pass_make(program->loops, words ? ARITHMETIC_WORDS : ARITHMETIC_INTS,
                                   pairs ? TARGET_SHIFTED_PAIRS : TARGET_SHIFTED_INTS, row);
    struct pass *last = pass_make(program->loops, pairs ? ARITHMETIC_PAIRS : ARITHMETIC_INTS,
                                  p->amount != 0 ? TARGET_U16 : TARGET_U8, column);
    program->first = first;
    program->last = last;
    if (first == NULL || last == NULL)
        return false;
    int64_t centre = 0;
    if (pairs)
        for (centre = 1; 2 * centre <= passes_row(p, 255 * taps_sum(row->taps, row->width));)
            centre *= 2;
    first->start = (int32_t)(p->row_half - (centre << p->row_shift));
    first->finish.shift = p->row_shift;
    const int finer = p->amount != 0 ? UNSHARP_LEVEL_BITS : 0; /* bits of the blur below one level */
    last->layout = sums_layout(first->arithmetic);
    last->start = (int32_t)(uint32_t)(uint64_t)(centre * taps_sum(column->taps, column->height) + (p->half >> finer));
    last->finish = (struct finish){.way = FINISH_UNSIGNED, .shift = p->scale_shift - finer};
    return true;
}

/* Digit PART of a tap with PARTS digits of BITS bits, from the lowest up. All but the highest are from -2^(bits - 1) to
 * 2^(bits - 1) - 1. */
static int32_t tap_digit(int32_t tap, int bits, int parts, int part)
{
    const int32_t half = bits > 0 ? 1 << (bits - 1) : 0;
    int32_t digit = tap;
    for (int p = 0; p <= part; p++) {
        digit = p == parts - 1 ? tap : ((tap + half) & (2 * half - 1)) - half;
        tap = (tap - digit) >> bits;
    }
    return digit;
}

/* Do 32 bits hold the numbers of struct row_parts, and 16 bits the digits, for samples of sizes up to MAX? Before the
 * last shift this is so for a sum of all taps times MAX of at most 2^31 times 2^(bits * (parts - 1)), because the
 * shifts before it give that sum, divided and rounded down. */
static bool row_parts_fit(const struct weights *row, int64_t max, const struct row_parts *p)
{
    const int below = p->bits * (p->parts - 1);
    int64_t bound = p->start;
    for (int part = 0; part < p->parts; part++) {
        int64_t sum = 0;
        for (int j = 0; j < row->width; j++) {
            const int32_t digit = tap_digit(row->taps[j], p->bits, p->parts, part);
            sum += digit < 0 ? -digit : digit;
            if (digit > INT16_MAX)
                return false;
        }
        bound = (part > 0 ? (bound >> p->bits) + 1 : bound) + sum * max;
        if (part < p->parts - 1 && bound > INT32_MAX)
            return false;
    }
    return taps_sum(row->taps, row->width) * max >> below <= (int64_t)1 << 31;
}

/* The row pass of sums beyond 32 bits: the fewest digits that fit. Four always do: 2^27 bounds a row's rounded sum. */
static bool make_row_parts(const struct plan *plan, const struct weights *row, struct pass *pass)
{
    const int64_t max = plan->sample == SAMPLE_U8 ? 255 : 32768;
    const int lane = lane_taps(pass->arithmetic);
    struct row_parts *p = &pass->row_parts;
    *p = (struct row_parts){
        .parts = 1, .start = (int32_t)plan->passes.row_half, .count = (row->width + lane - 1) / lane};
    while (!row_parts_fit(row, max, p) && p->parts <= ROW_PARTS_MAX) {
        p->bits++;
        if (p->parts == 1 || p->bits > 15 || p->bits * (p->parts - 1) > plan->passes.row_shift) {
            p->parts++;
            p->bits = 1;
        }
    }
    assert(p->parts <= ROW_PARTS_MAX);
    p->shift = plan->passes.row_shift - p->bits * (p->parts - 1);
    pass->row_count = pass->group;
    p->taps = malloc((size_t)(p->count * p->parts) * sizeof *p->taps);
    for (int j = 0; j < p->count && p->taps != NULL; j++)
        for (int part = 0; part < p->parts; part++) {
            union cell *cell = &p->taps[j * p->parts + part];
            const int32_t tap = tap_digit(weight_at(row, 0, j * lane), p->bits, p->parts, part);
            if (lane == 1)
                cell->i = tap;
            else
                *cell = (union cell){.words = {(int16_t)tap, (int16_t)tap_digit(weight_at(row, 0, j * lane + 1),
                                                                                p->bits, p->parts, part)}};
        }
    return p->taps != NULL;
}

/* The column pass in doubles, over rows of m, or of m - C where samples are centred.
 *
 * A sum plus half of the scale is scaled by a power of two, exactly, or divided. A quotient below n + 1 <= 2^16 is at
 * most n + 1 - 2^-37, because scales are at most 2^37. That is a double, so the rounded quotient is at most that too,
 * and its floor is n. */
static bool make_double_column(const struct plan *plan, int64_t centre, const struct weights *column, struct pass *pass)
{
    const struct passes *p = &plan->passes;
    const int finer = p->amount != 0 ? UNSHARP_LEVEL_BITS : 0, height = column->height;
    struct double_column *c = &pass->double_column;
    *c = (struct double_column){
        .start = (double)((p->half >> finer) + centre * taps_sum(column->taps, height)),
        .factor = ldexp(1, finer - p->scale_shift),
        .divisor = p->scale_shift > 0 ? 0 : (double)p->scale,
        .taps = calloc((size_t)height + 2 * (COLUMN_GROUP_MAX - 1), sizeof *c->taps),
        .height = height,
    };
    for (int i = 0; i < height && c->taps != NULL; i++)
        c->taps[COLUMN_GROUP_MAX - 1 + i] = column->taps[i];
    pass->row_count = height + pass->group - 1;
    return c->taps != NULL;
}

/* Passes for sums beyond 32 bits. */
static bool make_beyond_32_bits(const struct plan *plan, struct program *program, const struct weights *row,
                                const struct weights *column)
{
    const bool words = program->loops->words, bytes = plan->sample == SAMPLE_U8, masks = plan->passes.amount != 0;
    const enum target blur = bytes ? TARGET_U16 : TARGET_INTS;
    struct pass *first = pass_make(program->loops, words ? ARITHMETIC_WORDS : ARITHMETIC_INTS, TARGET_INTS, NULL);
    struct pass *last = pass_make(program->loops, ARITHMETIC_INTS, masks ? blur : output_target(plan->sample), NULL);
    program->first = first;
    program->last = last;
    if (first == NULL || last == NULL)
        return false;
    program->sample_parts[0] = bytes ? PART_ALL : PART_CENTRED;
    last->layout = sums_layout(first->arithmetic);
    last->group = program->loops->column_group;
    /* Taps that are shifted sum to a power of two, so the centre is an integer. */
    const int64_t centre = bytes ? 0 : taps_sum(row->taps, row->width) * 32768 >> plan->passes.row_shift;
    return make_row_parts(plan, row, first) && make_double_column(plan, centre, column, last);
}

/* Running sums, of 64 bits along rows. With t = s + half of the scale D, floor(t / D) = floor((t + 1/2) / D), and
 * (t + 1/2) / D is at least 1 / 2D away from any integer. D is below 2^22, and t + 1/2 is exact. The computed value is
 * below 2^16, and its two roundings err by less than 2^-36. */
static bool make_wide_window(const struct plan *plan, struct program *program)
{
    program->is_wide_window = true;
    program->wide_window = (struct wide_window){
        .sample = plan->sample,
        .columns = plan->filter->width,
        .term = (double)plan->passes.half + 0.5,
        .factor = 1.0 / (double)plan->passes.scale,
    };
    return make_plain(plan, program, WINDOW_ROWS);
}

/* Make the passes of a filter in two passes. */
static bool make_two_pass(const struct plan *plan, struct program *program)
{
    const struct filter *f = plan->filter;
    if (plan->sample != SAMPLE_F32 && filter_is_box(f))
        return make_wide_window(plan, program);
    const struct weights row = {f->width, 1, f->row, ldexp(1, f->row_shift)};
    const struct weights column = {1, f->height, f->column, (double)f->pass_scale};
    program->joined_rows = f->amount != 0 ? 1 : 0;
    if (plan->sample == SAMPLE_U8)
        return make_shifted(plan, program, &row, &column);
    if (plan->sample != SAMPLE_F32)
        return make_beyond_32_bits(plan, program, &row, &column);
    program->first = pass_make(program->loops, ARITHMETIC_FLOATS, TARGET_FLOATS, &row);
    program->last = pass_make(program->loops, ARITHMETIC_FLOATS, TARGET_F32, &column);
    return program->first != NULL && program->last != NULL;
}

static void free_one(struct program *program)
{
    if (program == NULL)
        return;
    if (program->first != program->last)
        pass_free(program->first);
    pass_free(program->second);
    for (int n = 1; n < FIR_PRODUCTS; n++)
        pass_free(program->products[n]);
    pass_free(program->last);
    free(program);
}

void program_free(struct program *program)
{
    if (program != NULL)
        free_one(program->pixels);
    free_one(program);
}

/* Make the program for planes, or for PIXELS. */
static struct program *make_one(const struct plan *plan, const struct loops *loops, bool pixels)
{
    struct program *program = calloc(1, sizeof *program);
    if (program == NULL)
        return NULL;
    program->loops = loops;
    program->sum_parts = 1;
    const bool is_made = plan->filter->two_pass ? make_two_pass(plan, program) : make_grids(plan, program, pixels);
    if (is_made && program->first != NULL) {
        program->first->ahead_bytes = sample_bytes(plan->sample);
        return program;
    }
    free_one(program);
    return NULL;
}

struct program *program_make(const struct plan *plan, const struct loops *loops)
{
    struct program *program = make_one(plan, loops, false);
    if (program == NULL || plan->sample != SAMPLE_U8 || !cpu_takes_pixels(plan->filter, BLOCK_MAX))
        return program;
    program->pixels = make_one(plan, loops, true);
    if (program->pixels != NULL)
        return program;
    program_free(program);
    return NULL;
}
