/* SPDX-License-Identifier: MIT */
#include "plan/passes.h"

void passes_make(const struct filter *filter, enum sample sample, struct passes *passes)
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
