/* SPDX-License-Identifier: MIT
 *
 * The automatic choice: which variant runs a filter, and how long the whole work takes on each backend. */
#ifndef GPUCONV_CHOOSE_H
#define GPUCONV_CHOOSE_H

#include "variants/cost_model.h"
#include "variants/table.h"

/* The variant that runs a filter on a backend if the user names none: the canonical one with the lowest cost. */
const struct variant *variant_choose(const struct filter *filter, enum backend backend, const struct work *work);

/* The variant that would be chosen if CHOSEN did not exist, or NULL if there is no other. */
const struct variant *variant_runner_up(const struct filter *filter, const struct variant *chosen,
                                        const struct work *work);

/* The expected seconds of a canonical variant. The planes are already in the variant's memory. */
double cost_variant_seconds(const struct variant *variant, const struct filter *filter, const struct work *work);

/* The expected seconds on the CPU for all FILTERS one after the other, from image to image. */
double cost_cpu_seconds(const struct filter *filters, size_t count, const struct work *work);

/* The same on a GPU from a cold start: create the context, copy, run the kernels. */
double cost_cuda_seconds(const struct filter *filters, size_t count, const struct work *work);

/* A batch of images like one. */
struct batch_work {
    struct work image;
    double images;
    int workers; /* with image.threads threads each */
    int gpus;    /* each starts once */
    /* A GPU can decode the input, or encode the output: it is a JPEG. All other decoding and encoding does not count. */
    bool is_decoded, is_encoded;
};

/* The expected seconds of a batch on the CPU, and on GPUs. */
double cost_batch_cpu_seconds(const struct filter *filters, size_t count, const struct batch_work *batch);
double cost_batch_cuda_seconds(const struct filter *filters, size_t count, const struct batch_work *batch);

#endif
