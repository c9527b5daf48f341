/* SPDX-License-Identifier: MIT
 *
 * The variant `reference`, written to be read: the truth for all others. */
#include "base/parallel.h"
#include "cpu/cpu.h"
#include "image/image.h"

#include <math.h>
#include <stdlib.h>

/* The sum of the filter's grid number GRID at (y, x). */
static int64_t reference_sum(const struct plan *plan, int grid, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    int64_t sum = 0;
    for (int i = 0; i < f->height; i++)
        for (int j = 0; j < f->width; j++) {
            const int from_y = border_index(y + i - f->anchor_y, in->height, plan->border);
            const int from_x = border_index(x + j - f->anchor_x, in->width, plan->border);
            if (from_y >= 0 && from_x >= 0)
                sum += (int64_t)f->taps[(grid * f->height + i) * f->width + j] *
                       (in->sample == SAMPLE_U8 ? ((const uint8_t *)plane_row(in, channel, from_y))[from_x]
                                                : ((const uint16_t *)plane_row(in, channel, from_y))[from_x]);
        }
    return sum;
}

static uint8_t reference_u8(const struct plan *plan, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    int64_t sum = reference_sum(plan, 0, in, channel, y, x);
    if (f->combine != COMBINE_NONE) {
        const int64_t first = llabs(sum), second = llabs(reference_sum(plan, 1, in, channel, y, x));
        if (f->combine == COMBINE_MAGNITUDE) {
            int level = 0;
            while (level < FILTER_LEVELS - 1 && f->steps[level + 1] <= first * first + second * second)
                level++;
            return (uint8_t)level;
        }
        sum = f->combine == COMBINE_SUM ? first + second : first > second ? first : second;
    }
    if (f->absolute && sum < 0)
        sum = -sum;
    sum += f->bias;
    const int64_t level = sum < 0 ? 0 : sum / f->scale; /* floor, because a negative sum becomes 0 anyway */
    return (uint8_t)(level < 255 ? level : 255);
}

static uint16_t reference_u16(const struct plan *plan, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    int64_t sum = reference_sum(plan, 0, in, channel, y, x);
    if (f->combine != COMBINE_NONE) {
        const int64_t first = llabs(sum), second = llabs(reference_sum(plan, 1, in, channel, y, x));
        if (f->combine == COMBINE_MAGNITUDE) {
            const uint128 squares = (uint128)first * (uint128)first + (uint128)second * (uint128)second;
            int level = 0;
            for (int half = 1 << 15; half > 0; half /= 2)
                level += root16_reaches(&plan->root16, squares, level + half) ? half : 0;
            return (uint16_t)level;
        }
        sum = f->combine == COMBINE_SUM ? first + second : first > second ? first : second;
    }
    if (f->absolute && sum < 0)
        sum = -sum;
    sum += f->bias16;
    const int64_t level = sum < 0 ? 0 : sum / f->scale;
    return (uint16_t)(level < 65535 ? level : 65535);
}

static double reference_float_sum(const struct plan *plan, int grid, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    double sum = 0;
    for (int i = 0; i < f->height; i++)
        for (int j = 0; j < f->width; j++) {
            const int from_y = border_index(y + i - f->anchor_y, in->height, plan->border);
            const int from_x = border_index(x + j - f->anchor_x, in->width, plan->border);
            if (from_y >= 0 && from_x >= 0)
                sum += (double)f->taps[(grid * f->height + i) * f->width + j] *
                       (double)((const float *)plane_row(in, channel, from_y))[from_x];
        }
    return sum;
}

static float reference_f32(const struct plan *plan, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    double sum = reference_float_sum(plan, 0, in, channel, y, x);
    if (f->combine != COMBINE_NONE) {
        const double first = fabs(sum), second = fabs(reference_float_sum(plan, 1, in, channel, y, x));
        sum = f->combine == COMBINE_MAGNITUDE ? sqrt(first * first + second * second)
              : f->combine == COMBINE_SUM     ? first + second
                                              : fmax(first, second);
    }
    return (float)((f->absolute ? fabs(sum) : sum) / f->scale + f->offset);
}

struct images {
    const struct plan *plan;
    const struct plane *in, *out;
};

static void reference_row(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct images *images = context;
    const struct plane *in = images->in, *out = images->out;
    const int channel = (int)(index / in->height), y = (int)(index % in->height);
    if (images->plan->last_row > 0 && (y < images->plan->first_row || y >= images->plan->last_row))
        return;
    for (int x = 0; x < in->width; x++)
        if (in->sample == SAMPLE_U8)
            ((uint8_t *)plane_row(out, channel, y))[x] = reference_u8(images->plan, in, channel, y, x);
        else if (in->sample == SAMPLE_U16)
            ((uint16_t *)plane_row(out, channel, y))[x] = reference_u16(images->plan, in, channel, y, x);
        else
            ((float *)plane_row(out, channel, y))[x] = reference_f32(images->plan, in, channel, y, x);
}

bool reference_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                      struct error *error)
{
    (void)device;
    (void)error;
    struct images images = {plan, in, out};
    parallel_for(plan->pool, thread_pool_threads(plan->pool), (int64_t)in->count * in->height, reference_row, &images);
    return true;
}
