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

static void resample_row(void *context, int64_t index, int thread)
{
    const struct resampling *work = context;
    const struct plan *plan = work->plan;
    const struct plane *in = work->in, *out = work->out;
    const struct resample_axis *axis = &plan->rows;
    const int channel = (int)(index / out->height), y = (int)(index % out->height);
    if (plan->last_row > 0 && (y < plan->first_row || y >= plan->last_row))
        return;
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

/* ---- Pillow ---- */

struct pillow_work {
    const struct plan *plan;
    const struct plane *in, *out;
    uint8_t *middle;        /* what the first pass makes of the channels, one after the other */
    int width, first, rows; /* its columns, the row of the picture that it begins with, and its rows */
    bool is_second;
};

/* Sample X of a row of levels. Those of 16 bits are reduced. */
static int level_at(const void *row, enum sample sample, int x)
{
    return sample == SAMPLE_U8 ? ((const uint8_t *)row)[x] : reduce_sample(((const uint16_t *)row)[x]);
}

static void set_level(void *row, enum sample sample, int x, int level)
{
    if (sample == SAMPLE_U8)
        ((uint8_t *)row)[x] = (uint8_t)level;
    else
        ((uint16_t *)row)[x] = widen_sample((unsigned)level);
}

/* Make row INDEX of all rows of a pass: of the picture in the middle, or of the outputs. */
static void pillow_row(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct pillow_work *work = context;
    const struct plan *plan = work->plan;
    const bool sums_rows = plan->rows_first != work->is_second;
    const struct resample_axis *axis = sums_rows ? &plan->rows : &plan->columns;
    const struct plane *in = work->in, *out = work->out;
    const int rows = work->is_second ? out->height : work->rows, width = work->is_second ? out->width : work->width;
    const int channel = (int)(index / rows), y = (int)(index % rows);
    uint8_t *middle = work->middle + (size_t)channel * (size_t)work->rows * (size_t)work->width;
    void *to = work->is_second ? plane_row(out, channel, y) : middle + (size_t)y * (size_t)work->width;
    if (work->is_second && plan->last_row > 0 && (y < plan->first_row || y >= plan->last_row))
        return;
    for (int x = 0; x < width && !cpu_is_stopped(plan->stop); x++) {
        const int i = sums_rows ? axis->first + x : y + (work->is_second ? plan->out_row : work->first);
        const int first = resample_first(axis, i), last = resample_last(axis, i);
        const int32_t *taps = taps_of(axis, i);
        int32_t sum = 1 << (PILLOW_SHIFT - 1);
        for (int k = 0; k <= last - first; k++) {
            const int column = sums_rows ? first + k : x;
            const int row = sums_rows ? y + (work->is_second ? plan->out_row : work->first) : first + k;
            sum += taps[k] * (work->is_second ? middle[(ptrdiff_t)(row - work->first) * work->width + column]
                                              : level_at(plane_row(in, channel, row - plan->in_row), in->sample,
                                                         column * plane_step(in)));
        }
        const int level = sum >> PILLOW_SHIFT, clamped = level < 0 ? 0 : level < 255 ? level : 255;
        if (work->is_second)
            set_level(to, out->sample, x * plane_step(out), clamped);
        else
            ((uint8_t *)to)[x] = (uint8_t)clamped;
    }
}

/* Resize as Pillow does, whose first pass makes a picture of bytes. */
static bool launch_pillow(const struct plan *plan, const struct plane *in, const struct plane *out, struct error *error)
{
    struct pillow_work work = {.plan = plan, .in = in, .out = out, .width = in->width};
    const int from = plan->out_row + plan->first_row,
              to = plan->out_row + (plan->last_row > 0 ? plan->last_row : out->height);
    work.first = from;
    work.rows = to - from;
    if (plan->rows_first) {
        work.width = out->width;
        resample_span(&plan->columns, from, to, &work.first, &work.rows);
        work.rows -= work.first;
    }
    work.middle = malloc((size_t)work.width * (size_t)work.rows * (size_t)in->count);
    if (work.middle == NULL)
        return error_no_memory(error, "the sums of %s", plan->filter->name);
    parallel_for(plan->pool, thread_pool_threads(plan->pool), (int64_t)work.rows * in->count, pillow_row, &work);
    work.is_second = true;
    parallel_for(plan->pool, thread_pool_threads(plan->pool), (int64_t)out->height * in->count, pillow_row, &work);
    free(work.middle);
    return true;
}

bool reference_resample_launch(const struct plan *plan, struct device *device, const struct plane *in,
                               const struct plane *out, struct error *error)
{
    (void)device;
    struct resampling work = {.plan = plan, .in = in, .out = out};
    const int64_t rows = (int64_t)out->count * out->height;
    const int max = thread_pool_threads(plan->pool), threads = rows < max ? (int)rows : max;
    if (resample_is_pillow(plan->columns.kernel))
        return launch_pillow(plan, in, out, error);
    work.sums = calloc((size_t)threads * (size_t)in->width, sizeof *work.sums);
    if (work.sums == NULL)
        return error_no_memory(error, "the sums of %s", plan->filter->name);
    parallel_for(plan->pool, threads, rows, resample_row, &work);
    free(work.sums);
    return true;
}
