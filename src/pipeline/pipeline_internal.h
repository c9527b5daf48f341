/* SPDX-License-Identifier: MIT
 *
 * What the files of the pipeline share. cuda.c and no_cuda.c implement the same functions; Meson picks one. */
#ifndef GPUCONV_PIPELINE_INTERNAL_H
#define GPUCONV_PIPELINE_INTERNAL_H

#include "pipeline/pipeline.h"
#include "pipeline/steps.h"

/* ---- plans.c ---- */

/* Find or make the plans for pipeline->recipe and pipeline->work on BACKEND, which becomes the pipeline's. */
bool plans_make(struct pipeline *pipeline, enum backend backend, struct error *error);

/* Release all that the GPU holds of the plans. */
void plans_free_taps(struct pipeline *pipeline);

/* Release all plans. */
void plans_free(struct pipeline *pipeline);

/* ---- stream.c ---- */

/* As pipeline_run on the CPU. If a pixel is not opaque as expected, it fails and sets pipeline->translucent. */
bool stream_image(struct pipeline *pipeline, const struct end *in, struct end *out, struct error *error);

/* ---- cuda.c, no_cuda.c ---- */

/* Check that the GPU exists. */
bool gpu_check(const struct resources *resources, struct error *error);

/* Open the GPU unless it is open, and check that it is new enough for the plans. */
bool gpu_open(struct pipeline *pipeline, struct error *error);

/* Release the buffers and the GPU. After the last image of a batch, the end of the context releases what is on the
 * GPU. */
void gpu_close(struct pipeline *pipeline, bool is_last);

/* Release the taps on the GPU of plan NUMBER, if there are some. */
void gpu_forget_taps(struct pipeline *pipeline, struct planned *planned, size_t number);

/* As pipeline_run on the pipeline's own GPU. After a failure *IS_INTACT says whether the image at IN still has the
 * samples that it had. If the CPU may take over, it has them, unless there was too little memory for a second image. */
enum run_result run_on_gpu(struct pipeline *pipeline, const struct end *in, struct end *out, bool *is_intact,
                           struct error *error);

/* ---- queue.c, no_cuda.c ---- */

/* As pipeline_run on a GPU that pipelines share. */
bool run_on_shared_gpu(struct pipeline *pipeline, const struct end *in, const struct end *out, struct error *error);

/* Is alpha the largest level everywhere in IMAGE, which is in the memory of a shared GPU and may have strides? Waits
 * for the work that is queued on the caller's stream. */
bool gpu_is_opaque(struct pipeline *pipeline, const struct image *image, bool *is_opaque, struct error *error);

/* ---- cuda.c, for queue.c ---- */

/* The device memory of one image. */
struct gpu_image {
    struct image image; /* interleaved */
    struct plane planes[2];
    const struct linear *linear; /* NULL if the samples are filtered as they are */
    struct image decoded;        /* as the decoder makes it; the same samples where these are right */
    struct image encoded;        /* as the encoder wants it, likewise */
    bool reads_taps;             /* the lock of constant memory is held for reading */
};

/* Let the device hold the tables of linear light. No other image uses those that are there. *ON_DEVICE becomes them, or
 * NULL if the samples are filtered as they are: the device may still hold the tables of an earlier image. */
bool gpu_upload_linear(struct pipeline *pipeline, const struct linear **on_device, struct error *error);

/* Queue the filters, beginning at planes[0], and before each the upload of its taps if UPLOADS, or the use of those in
 * pipeline->planned->taps if it has them. *IN becomes the index of the planes that hold the result. The workspace's
 * image has the size of IMAGE, and then that of the result. If it has no samples, nothing is merged between filters,
 * and planes that a filter leaves out are copied. Planes that have a filter's size already keep their layout. */
bool gpu_queue_filters(struct pipeline *pipeline, const struct image *image, struct gpu_image *workspace, bool uploads,
                       int *in, struct error *error);

/* Merge the planes after filter NUMBER to the workspace's image. Where it has changed the size, levels of linear light
 * keep nothing. */
bool gpu_merge_after(struct pipeline *pipeline, size_t number, const struct plane *planes,
                     const struct gpu_image *workspace, struct error *error);

/* Lay out planes for images like IMAGE, in the memory of PLANES. Returns their bytes. */
size_t gpu_lay_out(const struct pipeline *pipeline, const struct image *image, struct plane *planes);

/* The bytes of the planes, and of the samples, of the largest image: the filters may change its size. */
void gpu_find_largest(const struct pipeline *pipeline, const struct image *image, size_t *planes, size_t *samples);

#endif
