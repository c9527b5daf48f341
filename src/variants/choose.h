/* SPDX-License-Identifier: MIT
 *
 * The automatic choice: which variant runs a filter, and what the whole work costs on each backend. */
#ifndef GPUCONV_CHOOSE_H
#define GPUCONV_CHOOSE_H

#include "variants/cost_model.h"
#include "variants/table.h"

/* The variant to run a filter with on a backend when none is named: the canonical one with the lowest cost. */
const struct variant *variant_choose(const struct filter *filter, enum backend backend, const struct work *work);

/* The variant that would be chosen if CHOSEN did not exist; NULL where there is no other. */
const struct variant *variant_runner_up(const struct filter *filter, const struct variant *chosen,
                                        const struct work *work);

/* The expected seconds of a canonical variant, for planes that are in place. */
double cost_variant_seconds(const struct variant *variant, const struct filter *filter, const struct work *work);

/* The expected seconds of the CPU for all FILTERS in turn, from image to image. */
double cost_cpu_seconds(const struct filter *filters, size_t count, const struct work *work);

/* The expected seconds of a GPU for the same from a cold start: context, copies, kernels. */
double cost_cuda_seconds(const struct filter *filters, size_t count, const struct work *work);

/* The expected seconds of a batch of IMAGES like WORK without decoding and encoding: on WORKERS that have work->threads
 * of the CPU each, and on GPUS that start once. */
double cost_batch_cpu_seconds(const struct filter *filters, size_t count, const struct work *work, double images,
                              int workers);
double cost_batch_cuda_seconds(const struct filter *filters, size_t count, const struct work *work, double images,
                               int workers, int gpus);

#endif
