/* SPDX-License-Identifier: MIT
 *
 * The variant `reference` for filters that change the size: struct filter's formulas, one output after the other. */
#include "base/parallel.h"
#include "cpu/resample.h"

#include <math.h>
#include <stdlib.h>

struct resampling {
    const struct plan *plan;
    const struct plane *in, *out;
    double *sums; /* m of a row of inputs, for each thread: a double holds it exactly */
};

static int clamp_index(int i, int n)
{
    return i < 0 ? 0 : i < n ? i : n - 1;
}

static const int32_t *taps_of(const struct resample_axis *axis, int i)
{
    return axis->taps + (ptrdiff_t)(i % axis->period) * axis->count;
}

/* floor(SUM / 2^BITS + 1/2) */
static double round_sum(int64_t sum, int bits)
{
    return (double)((sum + ((int64_t)1 << (bits - 1))) >> bits);
}

/* The sum of column X for row Y of the outputs. */
static double sum_column(const struct resampling *work, int channel, int y, int x)
{
    const struct resample_axis *axis = &work->plan->columns;
    int64_t sum = 0;
    double float_sum = 0;
    for (int k = 0; k < axis->count; k++) {
        const int from = clamp_index(resample_first(axis, y) + k, axis->from) - work->plan->in_row;
        const int32_t tap = taps_of(axis, y)[k];
        if (tap == 0)
            continue;
        const void *row = plane_row(work->in, channel, from);
        if (work->in->sample == SAMPLE_F32)
            float_sum += tap * (double)((const float *)row)[x];
        else
            sum +=
                (int64_t)tap * (work->in->sample == SAMPLE_U8 ? ((const uint8_t *)row)[x] : ((const uint16_t *)row)[x]);
    }
    return work->in->sample == SAMPLE_F32 ? ldexp(float_sum, -axis->shift)
                                          : round_sum(sum, axis->shift - RESAMPLE_FRACTION);
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
    for (int x = 0; x < in->width; x++)
        sums[x] = sum_column(work, channel, plan->out_row + y, x);
    for (int x = 0; x < out->width; x++) {
        int64_t sum = 0;
        double float_sum = 0;
        for (int k = 0; k < axis->count; k++) {
            const double from = sums[clamp_index(resample_first(axis, x) + k, axis->from)];
            if (in->sample == SAMPLE_F32)
                float_sum += taps_of(axis, x)[k] * from;
            else
                sum += taps_of(axis, x)[k] * (int64_t)from;
        }
        const double level = round_sum(sum, axis->shift + RESAMPLE_FRACTION);
        if (in->sample == SAMPLE_F32)
            ((float *)row)[x] = (float)ldexp(float_sum, -axis->shift);
        else if (in->sample == SAMPLE_U8)
            ((uint8_t *)row)[x] = (uint8_t)fmax(0, fmin(level, 255));
        else
            ((uint16_t *)row)[x] = (uint16_t)fmax(0, fmin(level, 65535));
    }
}

bool resample_reference(const struct plan *plan, const struct plane *in, const struct plane *out, struct error *error)
{
    struct resampling work = {.plan = plan, .in = in, .out = out};
    const int threads = thread_pool_threads(plan->pool);
    work.sums = calloc((size_t)threads * (size_t)in->width, sizeof *work.sums);
    if (work.sums == NULL)
        return error_no_memory(error, "the sums of %s", plan->filter->name);
    parallel_for(plan->pool, threads, (int64_t)out->count * out->height, resample_row, &work);
    free(work.sums);
    return true;
}
