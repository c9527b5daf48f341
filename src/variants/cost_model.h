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
    int threads; /* of the CPU */
};

/* The samples of all planes. */
static inline double work_samples(const struct work *work)
{
    return (double)work->width * work->height * work->planes;
}

/* The expected seconds of each canonical row, as struct variant's `seconds`. */
double reference_cost(const struct filter *filter, const struct work *work);
double reference_resample_cost(const struct filter *filter, const struct work *work);
double cpu_move_cost(const struct filter *filter, const struct work *work);
double cpu_resample_cost(const struct filter *filter, const struct work *work);
double cpu_cost(const struct filter *filter, const struct work *work);
double register_tiled_cost(const struct filter *filter, const struct work *work);
double separable_cost(const struct filter *filter, const struct work *work);
double tensor_core_cost(const struct filter *filter, const struct work *work);
double sparse_cost(const struct filter *filter, const struct work *work);
double blur_cost(const struct filter *filter, const struct work *work);
double running_sums_cost(const struct filter *filter, const struct work *work);
double copy_cost(const struct filter *filter, const struct work *work);
double resample_cost(const struct filter *filter, const struct work *work);
double gradient_cost(const struct filter *filter, const struct work *work);

#endif
