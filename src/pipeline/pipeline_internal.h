/* SPDX-License-Identifier: MIT
 *
 * What the files of the pipeline share. cuda.c and no_cuda.c implement the same functions; Meson picks one. */
#ifndef GPUCONV_PIPELINE_INTERNAL_H
#define GPUCONV_PIPELINE_INTERNAL_H

#include "pipeline/pipeline.h"
#include "pipeline/steps.h"

/* How a run of an image ends. All but the first two begin it anew. */
enum run_result {
    RUN_DONE,
    RUN_FAILED,
    RUN_FELL_BACK,     /* the GPU has failed, and the filters are planned for the CPU */
    RUN_NEEDS_SAMPLES, /* the GPU has not decoded the input */
    RUN_TRANSLUCENT,   /* not all pixels are opaque, as was expected */
    RUN_MOVES,         /* the CPU has left the image for a GPU */
};

/* The work of the recipe on the run's input, where alpha takes part as ALPHA says. */
struct work pipeline_work(const struct pipeline_run *run, enum alpha alpha);

/* ---- plans.c ---- */

/* Find or make the plans for run->recipe and run->work on BACKEND, which becomes the run's. */
bool plans_make(struct pipeline_run *run, enum backend backend, struct error *error);

/* Release the memory of the plans on the GPU. */
void plans_free_taps(struct pipeline *pipeline);

/* Release all plans. */
void plans_free(struct pipeline *pipeline);

/* ---- stream.c ---- */

/* As pipeline_run on the CPU. If a pixel is not opaque as expected, it fails and sets run->translucent. */
bool stream_image(struct pipeline_run *run, const struct end *in, struct end *out, struct error *error);

/* ---- cuda.c, no_cuda.c ---- */

/* Check that the GPU exists. */
bool gpu_check(const struct resources *resources, struct error *error);

/* Open the GPU unless it is open, and check that it is new enough for the plans. */
bool gpu_open(struct pipeline_run *run, struct error *error);

/* Release the buffers and the GPU. After the last image of a batch, the end of the context releases what is on the
 * GPU. */
void gpu_close(struct pipeline *pipeline, bool is_last);

/* Release the taps on the GPU of plan NUMBER, if there are some. */
void gpu_forget_taps(struct pipeline *pipeline, struct planned *planned, size_t number);

/* As pipeline_run on a GPU. After a failure *IS_INTACT says whether the image at IN still has the samples that it had.
 * If the CPU may take over, it has them, unless there was too little memory for a second image. */
enum run_result run_on_gpu(struct pipeline_run *run, const struct end *in, struct end *out, bool *is_intact,
                           struct error *error);

/* ---- batcher.c ---- */

/* Does this planned image, a small JPEG of a batch, go to a GPU together with others? The pipeline then needs no GPU of
 * its own. */
bool batcher_takes(const struct pipeline_run *run);

/* As run_on_gpu, for such an image. The pipeline keeps the data of the scan. */
enum run_result batcher_run(struct pipeline_run *run, const struct end *in, struct end *out, struct error *error);

/* Release the batcher of a GPU. */
void batcher_close(struct gpu_start *start);

/* ---- tensor.c ---- */

struct group;

/* Make the taps for the pictures of a group, which have their views, and upload them. Then queue the launch. */
bool tensor_load(struct group *group, struct error *error);
bool tensor_queue(struct group *group, struct error *error);

/* Release the taps that the pipeline keeps. */
void tensor_release(struct pipeline *pipeline);

/* ---- group.c ---- */

/* Pictures that a GPU decodes or encodes together: JPEGs, or one picture of another kind. */
struct group {
    struct pipeline *pipeline;
    int number;               /* 0; or 1, with a stream and memory of its own, for the second of two groups at a time */
    struct workspace *memory; /* for samples that are not directly in the views */
    struct gpu_picture **pictures;
    size_t count;
    struct device_jpeg *jpeg; /* NULL if the group has no JPEGs; then the next are NULL, too */
    struct jpeg_input *inputs;
    struct jpeg_output *outputs;
    struct jpeg_scan *scans;
    bool *is_decoded;
    const struct gpu_tensor *tensor; /* what becomes of the pictures once they are decoded; or NULL */
    const struct gpu_picture *first; /* the picture for the first image of the tensor */
    struct pillow_table table;       /* for that */
};

/* Begin a group of COUNT pictures, which stay until it is closed. Close it, also after a failure. */
bool group_open(struct pipeline *pipeline, int number, struct gpu_picture **pictures, size_t count, struct group *group,
                struct error *error);
void group_close(struct group *group);

/* Load the pictures, and queue the way from their ends to their views, and on to the tensor if there is one. A view
 * without samples is then in the memory of the group, until another group has that. Then wait for the decoder, and not
 * for what was queued later: a picture that is not done afterwards is for the CPU. */
bool group_decode(struct group *group, struct error *error);
bool group_decoded(struct group *group, struct error *error);

/* Queue the way from the views to the ends. Then wait for the encoder, and download its data, which are valid until the
 * codec is used again. Samples that an END_HOST gets are there after the next wait. */
bool group_encode(struct group *group, struct error *error);
bool group_encoded(struct group *group, struct error *error);

/* ---- queue.c ---- */

/* Do the kernels for images take this one? */
bool gpu_is_packed(const struct image *image);

/* Marks on the device's stream: one at the end of each phase, MARK_BEGIN before the first, and MARK_LOCK once the lock
 * of constant memory is held. On a shared device nobody asks for times, and gpu_mark does nothing. */
enum mark { MARK_BEGIN, MARK_INPUT, MARK_SPLIT, MARK_LOCK, MARK_CONVOLVE, MARK_MERGE, MARK_OUTPUT, MARK_COUNT };
bool gpu_mark(const struct pipeline_run *run, enum mark mark, struct error *error);

/* An image on its way through a GPU. */
struct gpu_image {
    struct image image; /* interleaved; without samples if channels are filtered as they are */
    size_t largest;     /* bytes of the largest image: the filters may change its size */
    struct plane planes[2];
    const struct linear *linear; /* NULL if the samples are filtered as they are */
    size_t first, last;          /* filters from the first to the one before the last work on planes; the split does the
                                    steps before them, and the merge those after them */
    bool reads_taps;             /* the lock of constant memory is held for reading */
};

/* Reserve what the run needs for COUNT images like SHAPE: planes, tables of linear light, on a shared device kept taps,
 * and interleaved images. *SIZE becomes the bytes from one image to the next in MEMORY_IMAGE. */
bool gpu_reserve(struct pipeline_run *run, const struct image *shape, size_t count, struct gpu_image *gpu, size_t *size,
                 struct error *error);

/* Queue the filters of a picture in MEMORY_IMAGE. Its view becomes the result, in the same memory. */
bool gpu_filter(struct pipeline_run *run, struct gpu_image *gpu, struct gpu_picture *picture, struct error *error);

/* As pipeline_run, for images in the memory of a shared GPU, between device_enter and device_leave. */
enum run_result run_on_device(struct pipeline_run *run, const struct image *in, const struct image *out,
                              struct error *error);

#endif
