/* SPDX-License-Identifier: MIT
 *
 * The automatic choice: which variant runs a filter, and how long the whole work takes on each backend. */
#ifndef GPUCONV_CHOOSE_H
#define GPUCONV_CHOOSE_H

#include "variants/cost_model.h"
#include "variants/table.h"

/* The variant that runs a filter on a backend if the user names none: the canonical one with the lowest cost. NULL if
 * no variant of the backend takes the filter. */
const struct variant *variant_choose(const struct filter *filter, enum backend backend, const struct work *work);

/* The variant that would be chosen if CHOSEN did not exist, or NULL if there is no other. */
const struct variant *variant_runner_up(const struct filter *filter, const struct variant *chosen,
                                        const struct work *work);

/* The expected seconds of a canonical variant. The planes are already in the variant's memory. */
double cost_variant_seconds(const struct variant *variant, const struct filter *filter, const struct work *work);

/* The expected seconds on the CPU for all FILTERS one after the other, from image to image. */
double cost_cpu_seconds(const struct filter *filters, size_t count, const struct work *work);

/* What a GPU can decode of the inputs, or encode of the outputs. */
enum gpu_codec { GPU_CODEC_NONE, GPU_CODEC_JPEG, GPU_CODEC_PNG, GPU_CODECS };

/* A single image, before the GPU has started, or one of a batch. */
struct total_work {
    struct work image;
    int workers; /* the batch's workers, with image.threads threads each; 0 if there is none */
    int gpus;    /* the batch's GPUs */
    enum gpu_codec gpu_decodes, gpu_encodes; /* all other decoding and encoding does not count */
};

/* The expected seconds on each backend. */
struct backend_seconds {
    double cpu, cuda;
};

/* How long all FILTERS, one after the other, take on each backend, from image to image. For a single image, with the
 * start of the GPU. In a batch, the seconds of one worker, and those of the GPUs beside other images. */
struct backend_seconds cost_backends(const struct filter *filters, size_t count, const struct total_work *work);

/* How long a batch of images like this one waits for the start and the end of its GPUs. */
double cost_start(const struct total_work *work);

#endif
