/* SPDX-License-Identifier: MIT */
#include "plan/plan.h"

#include <stdlib.h>
#include <string.h>

const char *border_name(enum border border)
{
    static const char *const names[BORDER_COUNT] = {
        [BORDER_REPLICATE] = "replicate", [BORDER_REFLECT] = "reflect", [BORDER_REFLECT101] = "reflect101",
        [BORDER_WRAP] = "wrap",           [BORDER_ZERO] = "zero",
    };
    return names[border];
}

/* Derive the numbers of a filter in two passes. */
static void passes_make(const struct filter *filter, enum sample sample, struct passes *passes)
{
    *passes = (struct passes){
        .row_shift = filter->row_shift,
        .row_half = ((int64_t)1 << filter->row_shift) / 2,
        .scale = filter->pass_scale,
        .half = filter->pass_scale / 2,
        .amount = filter->amount,
        .threshold = filter->threshold,
        .highest = sample == SAMPLE_U16 ? 65535 : 255,
    };
    if ((filter->pass_scale & (filter->pass_scale - 1)) == 0)
        while ((int64_t)1 << passes->scale_shift < filter->pass_scale)
            passes->scale_shift++;
}

void plan_make(struct plan *plan, const struct filter *filter, enum border border, enum sample sample)
{
    filter = filter_of_depth(filter, sample != SAMPLE_U8);
    *plan = (struct plan){
        .filter = filter,
        .border = border,
        .sample = sample,
    };
    if (!filter_kind(filter)->has_taps) /* the numbers follow from the size: see plan_resize */
        return;
    plan->offset = (float)(filter->offset / 255);
    if (filter->two_pass) {
        passes_make(filter, sample, &plan->passes);
        if (filter_is_box(filter)) { /* its sums are rounded once */
            rounding_make(filter->pass_scale, plan->passes.half, false, &plan->rounding);
            rounding16_make(filter->pass_scale, plan->passes.half, false, &plan->rounding16);
        }
        return;
    }
    plan->float_exact = sums_fit_float(filter, SAMPLE_U8);
    rounding_make(filter->scale, filter->bias, filter->absolute, &plan->rounding);
    rounding16_make(filter->scale, filter->bias16, filter->absolute, &plan->rounding16);
    root16_make(filter, &plan->root16);
    plan->root_in_float = root_fits_float(filter, &plan->twice_bias);
    for (int i = 0; i < filter_grids(filter) * filter->width * filter->height; i++)
        if (filter->taps[i] != 0) {
            const int32_t size = filter->taps[i] < 0 ? -filter->taps[i] : filter->taps[i];
            plan->tap_count++;
            plan->largest_tap = size > plan->largest_tap ? size : plan->largest_tap;
            plan->shift_x = i % filter->width - filter->anchor_x;
            plan->shift_y = i / filter->width % filter->height - filter->anchor_y;
        }
}

void plan_fill(const struct plan *plan, int count, uint32_t fill[4])
{
    const struct move *move = &plan->filter->move;
    const uint8_t *rgb = move->colour;
    for (int c = 0; c < 4; c++) {
        const bool has_alpha = count % 2 == 0, is_alpha = has_alpha && c == count - 1;
        unsigned level = count > 2 ? rgb[c % 3] : (rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 32768) >> 16;
        if (is_alpha || !move->has_colour)
            level = move->has_colour || !has_alpha ? 255 : 0;
        const float value = (float)level / 255;
        fill[c] = plan->sample == SAMPLE_U8 ? level : widen_sample(level);
        if (plan->sample == SAMPLE_F32)
            memcpy(&fill[c], &value, sizeof value);
    }
}

static void release_prepared(struct plan *plan)
{
    if (plan->release != NULL)
        plan->release(plan->prepared);
    plan->release = NULL;
    plan->prepared = NULL;
}

bool plan_resize(struct plan *plan, int width, int height, struct error *error)
{
    int new_width = width, new_height = height;
    return filter_resize(plan->filter, &new_width, &new_height, error) &&
           plan_resize_to(plan, width, height, new_width, new_height, error);
}

bool plan_resize_to(struct plan *plan, int width, int height, int new_width, int new_height, struct error *error)
{
    struct resample_axis *columns = &plan->columns, *rows = &plan->rows;
    if (!filter_kind(plan->filter)->resizes ||
        (columns->taps != NULL && columns->from == height && rows->from == width && columns->to == new_height &&
         rows->to == new_width))
        return true;
    if (filter_kind(plan->filter)->moves) {
        plan->origin = filter_origin(plan->filter, width, height);
        *columns = (struct resample_axis){.from = height, .to = new_height};
        *rows = (struct resample_axis){.from = width, .to = new_width};
        return true;
    }
    const enum resample_kernel kernel = plan->filter->resize.kernel;
    release_prepared(plan);
    free(columns->taps);
    free(rows->taps);
    resample_shape(columns, kernel, height, new_height, 8 * (int)sample_bytes(plan->sample));
    resample_shape(rows, kernel, width, new_width, 8 * (int)sample_bytes(plan->sample));
    plan->rows_first = resample_rows_first(kernel, width, height, new_width, new_height);
    if (plan->needed.width > 0) {
        columns->first = plan->needed.y;
        columns->made = plan->needed.height;
        rows->first = plan->needed.x;
        rows->made = plan->needed.width;
    }
    const bool has_columns = resample_make(columns), has_rows = resample_make(rows);
    return (has_columns && has_rows) || error_no_memory(error, "the taps of %s", plan->filter->name);
}

void plan_free(struct plan *plan)
{
    release_prepared(plan);
    free(plan->columns.taps);
    free(plan->rows.taps);
    *plan = (struct plan){0};
}
