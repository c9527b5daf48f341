/* SPDX-License-Identifier: MIT
 *
 * The variant `reference` for filters that change the size: struct filter's formulas, one row of outputs after the
 * other. */
#include "base/parallel.h"
#include "cpu/cpu.h"
#include "cpu/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct resampling {
    const struct plan *plan;
    const struct plane *in, *out;
    double *sums; /* a row of column sums for each thread: below 1.55 * 2^36 * 2^16 < 2^53, so a double is exact */
};

static int clamp_index(int i, int n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

static const int32_t *taps_of(const struct resample_axis *axis, int i)
{
    return axis->taps + (ptrdiff_t)((i - axis->first) % axis->period) * axis->count;
}

/* floor(SUM / 2^BITS + 1/2) */
static double round_sum(int64_t sum, int bits)
{
    return (double)((sum + ((int64_t)1 << (bits - 1))) >> bits);
}

static double number_at_column(const void *row, enum sample sample, int x)
{
    return sample == SAMPLE_U8    ? ((const uint8_t *)row)[x]
           : sample == SAMPLE_U16 ? ((const uint16_t *)row)[x]
                                  : (double)((const float *)row)[x];
}

/* Sum the columns for row Y of the outputs: m of integers. */
static void sum_reference_columns(const struct resampling *work, int channel, int y, double *sums)
{
    const struct resample_axis *axis = &work->plan->columns;
    const enum sample sample = work->in->sample;
    const int width = work->in->width, first = resample_first(axis, y), step = plane_step(work->in);
    const int32_t *taps = taps_of(axis, y);
    memset(sums, 0, (size_t)width * sizeof *sums);
    for (int k = 0; k < axis->count && !cpu_is_stopped(work->plan->stop); k++) {
        const void *row = plane_row(work->in, channel, clamp_index(first + k, axis->from) - work->plan->in_row);
        for (int x = 0; x < width && taps[k] != 0; x++)
            sums[x] += taps[k] * number_at_column(row, sample, x * step);
    }
    for (int x = 0; x < width; x++)
        sums[x] = sample == SAMPLE_F32 ? ldexp(sums[x], -axis->shift)
                                       : round_sum((int64_t)sums[x], axis->shift - RESAMPLE_FRACTION);
}

/* The level of column X and row Y of a picture. */
typedef int level_function(const struct resampling *work, int channel, int x, int y);

static int level_of_input(const struct resampling *work, int channel, int x, int y)
{
    const struct plane *in = work->in;
    const double level =
        number_at_column(plane_row(in, channel, y - work->plan->in_row), in->sample, x * plane_step(in));
    return in->sample == SAMPLE_U16 ? reduce_sample((unsigned)level) : (int)level;
}

/* Column X and row Y of what a pass of Pillow's rule, of rows or of columns, makes of the picture with LEVEL_OF. */
static int pillow_level(const struct resampling *work, bool sums_rows, level_function *level_of, int channel, int x,
                        int y)
{
    const struct resample_axis *axis = sums_rows ? &work->plan->rows : &work->plan->columns;
    const int i = sums_rows ? x : y, first = resample_first(axis, i), last = resample_last(axis, i);
    const int32_t *taps = taps_of(axis, i);
    int32_t sum = 1 << (PILLOW_SHIFT - 1);
    for (int k = first; k <= last; k++)
        sum += taps[k - first] * level_of(work, channel, sums_rows ? k : x, sums_rows ? y : k);
    sum >>= PILLOW_SHIFT;
    return sum < 0 ? 0 : sum < 255 ? sum : 255;
}

static int level_of_first_pass(const struct resampling *work, int channel, int x, int y)
{
    return pillow_level(work, work->plan->rows_first, level_of_input, channel, x, y);
}

static void pillow_row(const struct resampling *work, int channel, int y)
{
    const struct plan *plan = work->plan;
    void *row = plane_row(work->out, channel, y);
    for (int x = 0; x < work->out->width && !cpu_is_stopped(plan->stop); x++) {
        const int level = pillow_level(work, !plan->rows_first, level_of_first_pass, channel, plan->rows.first + x,
                                       plan->out_row + y);
        const int at = x * plane_step(work->out);
        if (work->out->sample == SAMPLE_U16)
            ((uint16_t *)row)[at] = widen_sample((unsigned)level);
        else
            ((uint8_t *)row)[at] = (uint8_t)level;
    }
}

static void resample_row(void *context, int64_t index, int thread)
{
    const struct resampling *work = context;
    const struct plan *plan = work->plan;
    const struct plane *in = work->in, *out = work->out;
    const struct resample_axis *axis = &plan->rows;
    const int channel = (int)(index / out->height), y = (int)(index % out->height);
    if (plan->last_row > 0 && (y < plan->first_row || y >= plan->last_row))
        return;
    if (resample_is_pillow(axis->kernel)) {
        pillow_row(work, channel, y);
        return;
    }
    double *sums = work->sums + (ptrdiff_t)thread * in->width;
    void *row = plane_row(out, channel, y);
    sum_reference_columns(work, channel, plan->out_row + y, sums);
    for (int x = 0; x < out->width; x++) {
        const int first = resample_first(axis, axis->first + x);
        const int32_t *taps = taps_of(axis, axis->first + x);
        int64_t sum = 0;
        double float_sum = 0;
        for (int k = 0; k < axis->count; k++) {
            const double from = sums[clamp_index(first + k, axis->from)];
            if (in->sample == SAMPLE_F32)
                float_sum += taps[k] * from;
            else
                sum += taps[k] * (int64_t)from;
        }
        const double level = round_sum(sum, axis->shift + RESAMPLE_FRACTION);
        const int at = x * plane_step(out);
        if (in->sample == SAMPLE_F32)
            ((float *)row)[at] = (float)ldexp(float_sum, -axis->shift);
        else if (in->sample == SAMPLE_U8)
            ((uint8_t *)row)[at] = (uint8_t)fmax(0, fmin(level, 255));
        else
            ((uint16_t *)row)[at] = (uint16_t)fmax(0, fmin(level, 65535));
    }
}

bool reference_resample_launch(const struct plan *plan, struct device *device, const struct plane *in,
                               const struct plane *out, struct error *error)
{
    (void)device;
    struct resampling work = {.plan = plan, .in = in, .out = out};
    const int64_t rows = (int64_t)out->count * out->height;
    const int max = thread_pool_threads(plan->pool), threads = rows < max ? (int)rows : max;
    work.sums = calloc((size_t)threads * (size_t)in->width, sizeof *work.sums);
    if (work.sums == NULL)
        return error_no_memory(error, "the sums of %s", plan->filter->name);
    parallel_for(plan->pool, threads, rows, resample_row, &work);
    free(work.sums);
    return true;
}
