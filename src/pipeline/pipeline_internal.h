/* SPDX-License-Identifier: MIT
 *
 * What the files of the pipeline share. cuda.c and no_cuda.c implement the same functions; Meson picks one. */
#ifndef GPUCONV_PIPELINE_INTERNAL_H
#define GPUCONV_PIPELINE_INTERNAL_H

#include "pipeline/pipeline.h"

/* ---- pipeline.c ---- */

/* Must planes become an image and planes again between two filters? With premultiplied colours or in linear light, the
 * merge rounds. A chain must round in the same places to give the bytes of one run for each filter. */
bool request_merges_between(const struct request *request, const struct image *image);

/* Make the plans for pipeline->work on pipeline->backend. A plan of the last image is kept where its variant and sample
 * type are the same: all else comes from the request. */
bool pipeline_make_plans(struct pipeline *pipeline, struct error *error);

/* ---- stream.c ---- */

/* Filter IMAGE by the plans. The result replaces its samples. */
bool run_on_cpu(struct pipeline *pipeline, struct image *image, struct error *error);

/* ---- cuda.c, no_cuda.c ---- */

/* Check that the GPU of the request exists. */
bool gpu_check(const struct request *request, struct error *error);

/* Choose CUDA: make the plans, open the GPU unless it is open, and check that it is new enough for the plans. */
bool gpu_open(struct pipeline *pipeline, struct error *error);

/* Release the buffers on the GPU and the page-locked one. */
void gpu_buffers_release(struct pipeline *pipeline);

/* Release the buffers and the GPU. */
void gpu_close(struct pipeline *pipeline);

/* The same, after the last image: where the context ends with the batch, it releases what is on the GPU. */
void gpu_leave(struct pipeline *pipeline);

/* Filter IMAGE by the plans. ENDS is as for pipeline_run. RESULT, a copy of IMAGE's struct, becomes the view that
 * pipeline_run describes. After a failure *INTACT says whether IMAGE still has the samples that it had. If the CPU may
 * take over, it has them, unless there was too little memory for a second image. */
bool run_on_gpu(struct pipeline *pipeline, struct image *image, struct jpeg_ends *ends, struct image *result,
                bool *intact, struct error *error);

#endif
