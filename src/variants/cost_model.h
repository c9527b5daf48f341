/* SPDX-License-Identifier: MIT
 *
 * The cost model of the table's canonical rows. Each function gives the expected seconds of one variant. The planes are
 * already in the variant's memory. */
#ifndef GPUCONV_COST_MODEL_H
#define GPUCONV_COST_MODEL_H

#include "filter/filter.h"
#include "image/image.h"

/* The properties of the work, besides the filter, that a cost depends on. */
struct work {
    int width, height, planes;
    enum sample sample;
    int threads;                 /* threads of the CPU that share the work */
    int full_width, full_height; /* the image before its decoder made it smaller; 0 if it did not */
};

/* The samples of all planes. */
static inline double work_samples(const struct work *work)
{
    return (double)work->width * work->height * work->planes;
}

/* The expected seconds of each canonical row, as struct variant's `seconds`. */
typedef double cost_function(const struct filter *filter, const struct work *work);
cost_function reference_cost, reference_resample_cost, cpu_move_cost, cpu_resample_cost, cpu_cost, register_tiled_cost,
    separable_cost, tensor_core_cost, sparse_cost, blur_cost, running_sums_cost, passes_cost, copy_cost, resample_cost,
    gradient_cost;

#endif
