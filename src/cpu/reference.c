/* SPDX-License-Identifier: MIT
 *
 * The variant `reference`, written to be read: the truth for all others. */
#include "base/inline.h"
#include "base/parallel.h"
#include "cpu/cpu.h"
#include "cpu/resample.h"
#include "image/image.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* Sample X of a row. */
INLINE double row_sample(enum sample sample, const void *row, int x)
{
    return sample == SAMPLE_U8    ? ((const uint8_t *)row)[x]
           : sample == SAMPLE_U16 ? ((const uint16_t *)row)[x]
                                  : (double)((const float *)row)[x];
}

static void store_reference(const struct plane *out, int channel, int y, int x, double value)
{
    x *= plane_step(out);
    if (out->sample == SAMPLE_F32)
        ((float *)plane_row(out, channel, y))[x] = (float)value;
    else if (out->sample == SAMPLE_U8)
        ((uint8_t *)plane_row(out, channel, y))[x] = (uint8_t)value;
    else
        ((uint16_t *)plane_row(out, channel, y))[x] = (uint16_t)value;
}

/* The sum of the filter's grid number GRID at (y, x), for samples of one type. It is exact for integers: sum|q| is
 * below 2^31, so all sums are below 2^47. */
INLINE double sum_grid(const struct plan *plan, int grid, const struct plane *in, int channel, int y, int x,
                       enum sample sample)
{
    const struct filter *f = plan->filter;
    double sum = 0;
    for (int i = 0; i < f->height; i++) {
        const int from_y = border_index(y + i - f->anchor_y, in->height, plan->border);
        const void *row = from_y >= 0 ? plane_row(in, channel, from_y) : NULL;
        for (int j = 0; j < f->width && row != NULL; j++) {
            const int from_x = border_index(x + j - f->anchor_x, in->width, plan->border);
            if (from_x >= 0)
                sum += (double)f->taps[(grid * f->height + i) * f->width + j] *
                       row_sample(sample, row, from_x * plane_step(in));
        }
    }
    return sum;
}

static double reference_sum(const struct plan *plan, int grid, const struct plane *in, int channel, int y, int x)
{
    return in->sample == SAMPLE_U8    ? sum_grid(plan, grid, in, channel, y, x, SAMPLE_U8)
           : in->sample == SAMPLE_U16 ? sum_grid(plan, grid, in, channel, y, x, SAMPLE_U16)
                                      : sum_grid(plan, grid, in, channel, y, x, SAMPLE_F32);
}

/* The greatest level whose step the sums of a filter of COMBINE_MAGNITUDE reach. */
static int reference_root(const struct plan *plan, bool is_u8, int64_t first, int64_t second)
{
    const uint128 squares = (uint128)first * (uint128)first + (uint128)second * (uint128)second;
    int level = 0;
    for (int half = is_u8 ? FILTER_LEVELS / 2 : 1 << 15; half > 0; half /= 2)
        level += (is_u8 ? squares >= (uint128)plan->filter->steps[level + half]
                        : root16_reaches(&plan->root16, squares, level + half))
                     ? half
                     : 0;
    return level;
}

/* The output of uint8_t or uint16_t. */
static int reference_level(const struct plan *plan, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    const bool is_u8 = in->sample == SAMPLE_U8;
    int64_t sum = (int64_t)reference_sum(plan, 0, in, channel, y, x);
    if (f->combine != COMBINE_NONE) {
        const int64_t first = llabs(sum), second = llabs((int64_t)reference_sum(plan, 1, in, channel, y, x));
        if (f->combine == COMBINE_MAGNITUDE)
            return reference_root(plan, is_u8, first, second);
        sum = f->combine == COMBINE_SUM ? first + second : first > second ? first : second;
    }
    if (f->absolute && sum < 0)
        sum = -sum;
    sum += is_u8 ? f->bias : f->bias16;
    const int64_t level = sum < 0 ? 0 : sum / f->scale; /* floor, because a negative sum becomes 0 anyway */
    const int highest = is_u8 ? 255 : 65535;
    return level < highest ? (int)level : highest;
}

static double reference_f32(const struct plan *plan, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    double sum = reference_sum(plan, 0, in, channel, y, x);
    if (f->combine != COMBINE_NONE) {
        const double first = fabs(sum), second = fabs(reference_sum(plan, 1, in, channel, y, x));
        sum = f->combine == COMBINE_MAGNITUDE ? sqrt(first * first + second * second)
              : f->combine == COMBINE_SUM     ? first + second
                                              : fmax(first, second);
    }
    return (f->absolute ? fabs(sum) : sum) / f->scale + f->offset / 255;
}

/* A run of the loops. */
struct reference {
    const struct plan *plan;
    const struct plane *in, *out;
    double *row_sums; /* m of all planes, for a filter in two passes */
};

/* ---- Filters in two passes ---- */

/* Is row Y of the input read for outputs that are to be made? */
static bool is_read(const struct plan *plan, int height, int y)
{
    const int first = plan->first_row, last = plan->last_row > 0 ? plan->last_row : height;
    const struct filter *f = plan->filter;
    if (last - first + f->height > height)
        return true;
    for (int at = first - f->anchor_y; at < last - f->anchor_y + f->height; at++)
        if (border_index(at, height, plan->border) == y)
            return true;
    return false;
}

/* Doubles hold the integers of both passes exactly: the sums of the second are at most 2^53 (struct filter). */
static void first_pass_row(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct reference *run = context;
    const struct plane *in = run->in;
    const struct filter *f = run->plan->filter;
    const int channel = (int)(index / in->height), y = (int)(index % in->height);
    const void *row = plane_row(in, channel, y);
    if (!is_read(run->plan, in->height, y))
        return;
    for (int x = 0; x < in->width; x++) {
        double sum = 0;
        for (int j = 0; j < f->width; j++) {
            const int from_x = border_index(x + j - f->anchor_x, in->width, run->plan->border);
            if (from_x >= 0)
                sum += f->row[j] * row_sample(in->sample, row, from_x);
        }
        run->row_sums[index * in->width + x] =
            in->sample == SAMPLE_F32 ? ldexp(sum, -f->row_shift) : (double)passes_row(&run->plan->passes, (int64_t)sum);
    }
}

/* The output of a plane. *HAS_DETAIL becomes true if an unsharp mask changes the pixel because of this plane. */
static double second_pass(const struct reference *run, int channel, int y, int x, bool *has_detail)
{
    const struct plane *in = run->in;
    const struct filter *f = run->plan->filter;
    const struct passes *passes = &run->plan->passes;
    double sum = 0;
    for (int i = 0; i < f->height; i++) {
        const int from_y = border_index(y + i - f->anchor_y, in->height, run->plan->border);
        if (from_y >= 0)
            sum += f->column[i] * run->row_sums[((int64_t)channel * in->height + from_y) * in->width + x];
    }
    const double sample = row_sample(in->sample, plane_row(in, channel, y), x);
    if (in->sample == SAMPLE_F32) {
        const double blur = sum / (double)f->pass_scale, detail = sample - blur;
        *has_detail |= fabs(detail) >= ldexp(f->threshold, -UNSHARP_LEVEL_BITS) / 65535;
        return f->amount == 0 ? blur : sample + ldexp(f->amount, -UNSHARP_AMOUNT_BITS) * detail;
    }
    if (f->amount == 0)
        return passes_level(passes, (int64_t)sum);
    const int32_t detail = passes_detail(passes, (int64_t)sum, (int32_t)sample);
    *has_detail |= passes_has_detail(passes, detail);
    return passes_unsharp(passes, (int32_t)sample, detail);
}

static void second_pass_row(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct reference *run = context;
    const struct plane *in = run->in;
    const int y = (int)index;
    if (run->plan->last_row > 0 && (y < run->plan->first_row || y >= run->plan->last_row))
        return;
    for (int x = 0; x < in->width; x++) {
        bool is_changed = run->plan->filter->amount == 0;
        for (int channel = 0; channel < in->count; channel++)
            store_reference(run->out, channel, y, x, second_pass(run, channel, y, x, &is_changed));
        for (int channel = 0; channel < in->count && !is_changed; channel++)
            store_reference(run->out, channel, y, x, row_sample(in->sample, plane_row(in, channel, y), x));
    }
}

static bool launch_passes(struct reference *run, struct error *error)
{
    const struct plane *in = run->in;
    struct thread_pool *pool = run->plan->pool;
    const int64_t rows = (int64_t)in->count * in->height;
    run->row_sums = calloc((size_t)rows * (size_t)in->width, sizeof *run->row_sums);
    if (run->row_sums == NULL)
        return error_no_memory(error, "the sums of %s", run->plan->filter->name);
    parallel_for(pool, thread_pool_threads(pool), rows, first_pass_row, run);
    parallel_for(pool, thread_pool_threads(pool), in->height, second_pass_row, run);
    free(run->row_sums);
    return true;
}

/* ---- The variant ---- */

static void reference_row(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct reference *run = context;
    const struct plane *in = run->in;
    const int channel = (int)(index / in->height), y = (int)(index % in->height);
    if (run->plan->last_row > 0 && (y < run->plan->first_row || y >= run->plan->last_row))
        return;
    for (int x = 0; x < in->width; x++)
        store_reference(run->out, channel, y, x,
                        in->sample == SAMPLE_F32 ? reference_f32(run->plan, in, channel, y, x)
                                                 : reference_level(run->plan, in, channel, y, x));
}

bool reference_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                      struct error *error)
{
    (void)device;
    struct reference run = {.plan = plan, .in = in, .out = out};
    if (plan->filter->two_pass)
        return launch_passes(&run, error);
    parallel_for(plan->pool, thread_pool_threads(plan->pool), (int64_t)in->count * in->height, reference_row, &run);
    return true;
}
