/* SPDX-License-Identifier: MIT
 *
 * What the files of the pipeline share. cuda.c and no_cuda.c implement the same functions; Meson picks one. */
#ifndef GPUCONV_PIPELINE_INTERNAL_H
#define GPUCONV_PIPELINE_INTERNAL_H

#include "pipeline/pipeline.h"

/* ---- stream.c ---- */

/* Filter IMAGE by the plans. The result replaces its samples. */
bool run_on_cpu(struct pipeline *pipeline, struct image *image, struct error *error);

/* ---- cuda.c, no_cuda.c ---- */

/* Check that the GPU of the request exists. */
bool gpu_check(const struct request *request, struct error *error);

/* Open the GPU unless it is open, and check that it is new enough for the plans. */
bool gpu_open(struct pipeline *pipeline, struct error *error);

/* Release the buffers and the GPU. After the last image of a batch, the end of the context releases what is on the
 * GPU. */
void gpu_close(struct pipeline *pipeline, bool is_last);

/* Filter IMAGE by the plans. IO is as for pipeline_run. RESULT, a copy of IMAGE's struct, becomes the view that
 * pipeline_run describes. After a failure *INTACT says whether IMAGE still has the samples that it had. If the CPU may
 * take over, it has them, unless there was too little memory for a second image. */
bool run_on_gpu(struct pipeline *pipeline, struct image *image, struct gpu_io *io, struct image *result, bool *intact,
                struct error *error);

#endif
