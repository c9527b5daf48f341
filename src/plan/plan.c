/* SPDX-License-Identifier: MIT */
#include "plan/plan.h"

void plan_make(struct plan *plan, const struct filter *filter, enum border border, enum sample sample)
{
    filter = filter_of_depth(filter, sample != SAMPLE_U8);
    *plan = (struct plan){
        .filter = filter,
        .border = border,
        .sample = sample,
        .offset = (float)filter->offset,
    };
    if (filter->two_pass) {
        passes_make(filter, sample, &plan->passes);
        return;
    }
    plan->float_exact = sums_fit_float(filter, SAMPLE_U8);
    rounding_make(filter, &plan->rounding);
    rounding16_make(filter, &plan->rounding16);
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

void plan_free(struct plan *plan)
{
    if (plan->release != NULL)
        plan->release(plan->prepared);
    *plan = (struct plan){0};
}
