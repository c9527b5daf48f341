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

/* Set *WIDTH and *HEIGHT, the size that filter NUMBER of a chain gets, to the size of its result. If a decoder has made
 * the image smaller, the first filter gives the result the size that it has for the full image. Fails if FILTER does
 * not take images of that size. ERROR may be NULL. */
static inline bool work_resize(const struct work *work, const struct filter *filter, size_t number, int *width,
                               int *height, struct error *error)
{
    if (number == 0 && work->full_width > 0) {
        *width = work->full_width;
        *height = work->full_height;
    }
    return filter_resize(filter, width, height, error);
}

/* The expected seconds of each canonical row, as struct variant's `seconds`. */
typedef double cost_function(const struct filter *filter, const struct work *work);
cost_function reference_cost, reference_resample_cost, cpu_move_cost, cpu_resample_cost, cpu_cost, register_tiled_cost,
    separable_cost, tensor_core_cost, sparse_cost, blur_cost, running_sums_cost, passes_cost, copy_cost, resample_cost,
    gradient_cost, cpu_point_cost, cpu_squares_cost, point_cost, reference_rank_cost, cpu_rank_cost, rank_cost;

#endif
