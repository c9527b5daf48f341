/* SPDX-License-Identifier: MIT
 *
 * image -> filters -> image, on one backend. The pipeline chooses the backend unless the recipe does. If a GPU fails
 * that the recipe does not insist on, the CPU takes over. A pipeline takes one image after another, each by its own
 * recipe, and keeps its buffers and its plans between them. Nothing here knows files or options.
 *
 * A pipeline belongs to one thread. Others may read `progress_permille`. */
#ifndef GPUCONV_PIPELINE_H
#define GPUCONV_PIPELINE_H

#include "base/error.h"
#include "codec/end.h"
#include "filter/filter.h"
#include "image/image.h"
#include "image/rows.h"
#include "kernels/device/device.h"
#include "kernels/resample/pillow.h"
#include "pipeline/phases.h"
#include "pipeline/resources.h"
#include "plan/plan.h"
#include "variants/choose.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device_jpeg;
struct device_png;

/* What a GPU keeps from image to image. */
enum gpu_memory {
    MEMORY_PLANES,
    MEMORY_OTHER_PLANES,
    MEMORY_IMAGE,   /* interleaved */
    MEMORY_ASIDE,   /* what a filter has made, if filters are limited to regions */
    MEMORY_MASK,    /* the levels of a mask */
    MEMORY_COPY,    /* a copy of an image, without padding */
    MEMORY_INPUT,   /* the decoded image that runs share */
    MEMORY_DECODED, /* an image before it is turned upright, or before or after its depth changes */
    MEMORY_LINEAR,  /* the tables of linear light */
    MEMORY_LOST,    /* a byte, which is 1 if a sample was lost: see device_copy_samples */
    MEMORY_LOCKED,  /* page-locked: an interleaved image */
    MEMORY_TABLE,   /* the table of a tensor, for the groups with even numbers; the next is for the others */
    MEMORY_OTHER_TABLE,
    MEMORY_LOCKED_TABLE, /* page-locked: the same tables on the host */
    MEMORY_OTHER_LOCKED_TABLE,
    MEMORY_COUNT
};

/* An image, for the choice of its backend. It need not be decoded yet. */
struct pipeline_input {
    struct image shape;          /* its samples do not matter */
    double work;                 /* how long the file takes, in bytes of any one format; 0 if that is not known */
    enum end_kind gpu_decodes;   /* what a GPU can decode of the file: END_JPEG or END_PNG; END_HOST for nothing */
    enum end_kind gpu_encodes;   /* what a GPU can encode of the output, likewise */
    int full_width, full_height; /* before its decoder makes it smaller; 0 if no decoder does so */
    bool is_upright;             /* the file has the rows in their order */
    int busy;                    /* images of a stream at work, with this one; 0 counts as 1 */
};

/* The plans of a recipe for samples of one kind, on one backend. */
struct planned {
    struct recipe recipe; /* with a reference to its chain */
    enum backend backend;
    enum sample sample;
    struct plan *plans;        /* one for each filter */
    struct device_taps **taps; /* each plan's taps, on a GPU that pipelines share; NULL until the first image */
    unsigned long last_use;    /* 0 if there are no plans */
};

/* The most recipes whose plans a pipeline keeps. */
enum { PLANNED_MAX = 16 };

/* What a pipeline keeps from image to image. */
struct pipeline {
    const struct resources *resources;
    struct linear *tables;        /* tables of linear light; NULL until pipeline_linear makes them */
    atomic_int progress_permille; /* thousandths of the image's rows that the CPU has filtered; -1 if unknown */
    int moves;                    /* 1: the CPU leaves its image, for a GPU. resources->stop may point to it */

    /* The plans of the last recipes. New plans replace those that were not used for the longest time. */
    struct planned kept[PLANNED_MAX];
    unsigned long uses; /* how often a recipe was planned */

    struct error why; /* its message says why the last image has its backend */

    /* Its code is set once the GPU has failed and the CPU has taken over, for this image and all later ones. */
    struct error fallback;
    struct device *device; /* NULL on the CPU */

    struct workspace memory[MEMORY_COUNT];
    bool has_input;       /* the device has the decoded image that runs share; the caller clears it for another image */
    unsigned mask_serial; /* serial of the mask on the device; 0 if it has none */
    unsigned device_serial;       /* version of the tables of linear light on the device; 0 if it has none */
    struct device_jpeg *jpegs[2]; /* NULL until the GPU decodes or encodes a JPEG; the second is for groups of files */
    struct device_png *png;       /* NULL until the GPU decodes or encodes a PNG */
    struct tensor_axes *axes;     /* NULL until a GPU resizes many pictures */
    uint8_t *scan; /* the data of a scan that was encoded together with those of other pipelines; NULL if none was */

    /* The device has the taps of these plans beside constant memory, and they are of one filter. NULL if it has no such
     * taps. */
    const struct planned *uploaded;
};

/* One image on its way through a pipeline. It must not be moved. */
struct pipeline_run {
    /* The caller sets these fields and leaves the others 0. The objects that they point to must outlive the run. */
    struct pipeline *pipeline;
    const struct recipe *recipe;
    struct pipeline_input input;
    struct phases *phases; /* receives the times */
    int images; /* END_DEVICE: the number of interleaved images like it, each right after the one before, that are
                   filtered at once, channel by channel; 0 is 1. If it is negative, the channels are those of several
                   images, -IMAGES of each */
    int produced_channels; /* channels of the result, 1 or 2 if all colours are equal; 0 for those of the input */
    bool shares_input; /* the next run may have the same encoded input: keep the decoded image on the GPU, or take it */
    bool (*set_ends)(void *context, struct error *error); /* see pipeline_run; or NULL */
    void *context;                                        /* the first argument of set_ends */

    /* pipeline_choose sets these. */
    enum backend backend;
    enum alpha effective_alpha; /* the recipe's, or ALPHA_KEEP where plain filters give the same bytes */
    double counted;             /* the image's seconds in the batch's `lost` */

    /* In a batch with an end, from pipeline_choose to pipeline_end. The batch's mutex guards them. */
    bool is_running;      /* it is in the batch's list */
    bool on_gpu;          /* a GPU has it, or will once the CPU has left it */
    atomic_bool may_move; /* the CPU can leave it: its rows come from its file */
    double began;         /* when, in seconds of the clock */
    int first_permille; /* the pipeline's progress when it was first seen to be more than 0, at the time `first_seen` */
    double first_seen;
    struct balance_image placed;
    struct pipeline_run *next;

    /* pipeline_plan sets these, and may choose again. */
    bool expects_opaque;         /* no pixel has been seen; they are filtered as if all were opaque, until one is not */
    const struct linear *linear; /* the tables, if the recipe asks for linear light, else NULL */
    struct work work;            /* what the variants were chosen for */
    struct planned *planned;     /* one of pipeline->kept */

    /* pipeline_run sets these. */
    atomic_bool translucent; /* a pixel is, although opaque ones were expected */
    bool needs_samples;      /* the GPU has not decoded the input */
    bool is_decoded;         /* the GPU has the decoded image, which was not opaque as expected */
    bool is_grouped;         /* the image went to the GPU in a group with those of other pipelines */
};

/* Was this program built with CUDA? */
extern const bool pipeline_has_cuda;

/* For which GPUs it has code, in the compiler's names: sm_90a is machine code, and compute_80 is PTX. */
extern const char pipeline_gpu_code[];

/* ---- GPUs ---- */

/* May this machine have a GPU, and this program use it? It looks for the files of a driver, because to ask CUDA takes
 * long. This is for messages: where there is no GPU, the automatic choice does not mention GPUs. */
bool pipeline_may_have_gpu(void);

/* The number of GPUs; 0 where there is no GPU or no driver. */
int pipeline_gpus(void);

/* Set *COUNT to the number of GPUs. It fails where there is none; the message says why. */
bool pipeline_count_gpus(int *count, struct error *error);

/* Set *INFO to those of GPU INDEX, without a context on it. */
bool pipeline_describe_gpu(int index, struct device_info *info, struct error *error);

/* ---- A pipeline ---- */

/* Check what does not depend on the image: the named variant accepts the filters. */
bool pipeline_check(const struct recipe *recipe, struct error *error);

/* Check that the GPU exists where CHOICE_CUDA asks for it. Wait for the driver's start. */
bool pipeline_check_gpu(const struct recipe *recipe, const struct resources *resources, struct error *error);

/* Open a pipeline. Release it with pipeline_close. */
void pipeline_open(struct pipeline *pipeline, const struct resources *resources);

/* The tables of linear light. Set them before an image is filtered by a recipe that asks for them. NULL if there is too
 * little memory. */
struct linear *pipeline_linear(struct pipeline *pipeline, struct error *error);

/* Choose who filters the image: by the recipe's wish, the costs and the state of the GPU. If a GPU does, let it start.
 * With CHOICE_AUTO, a single image waits until the driver says that there is a GPU. In a batch, the CPU works until the
 * GPU is ready, and then each image goes where it is done first: see balance.h. */
void pipeline_choose(struct pipeline_run *run);

/* Before the first image of a batch with an end is read: let GPUs start, if images like this one, which is a guess, pay
 * for that by far. */
void pipeline_expect(struct pipeline_run *run);

/* The image has ended, and the batch learns how long it took, if it is DONE. Only for a batch; once or more. */
void pipeline_end(struct pipeline_run *run, bool done);

/* Look at what the workers of a batch do. GPUs start that now pay off, and those that have started take over images
 * that would take the workers longer. */
void pipeline_look(struct batch_choice *batch);

/* Plan the filters for IMAGE, which is upright: find or make the plans, and open the device unless it is open. If the
 * GPU cannot be opened, the CPU may take over. Filtering an opaque image without premultiplying is faster and gives the
 * same bytes. So if IMAGE has samples, they say whether alpha takes part; otherwise the image is expected to be opaque.
 * The costs depend on that, so the backend may change. */
bool pipeline_plan(struct pipeline_run *run, const struct image *image, struct error *error);

/* Write to TEXT what BACKEND works on: the name and compute capability of GPU number DEVICE, or the CPU's instruction
 * set. Returns false if that is not known: the variant `reference` needs no instruction set. */
bool pipeline_describe_hardware(enum backend backend, int device, char *text, size_t size);

/* Apply the planned filters to the image at IN, and bring the result to OUT. Call run->set_ends before, to let the ends
 * suit run->backend, and again each time that the run begins anew: if the CPU takes over from the GPU, if the GPU has
 * not decoded the input, which then needs samples, or if not all pixels are opaque, as was expected. In the last case
 * the filters are planned again, and a source begins again. The ends may be
 *
 *   on the CPU     END_ROWS or END_HOST. Reading, filtering and writing run beside each other on the threads of the
 *                  pool. Only some bands of rows are in memory, unless the filters need the whole image at once. The
 *                  phases of these threads add up.
 *   on a GPU       END_HOST, END_JPEG or END_PNG.
 *   on a GPU       END_HOST twice, where OUT has samples, or END_DEVICE twice. Images may overlap, or be the same. Work
 *   that is        in device memory is queued on *resources->stream. The host does not wait for it, but may wait when
 *   shared         the first image uploads the taps. The next wait reports errors of kernels.
 *
 * If an OUT of END_HOST has no samples, its image becomes a view of the result: read it until the next call, do not
 * free it. The result replaces the samples at IN or, with resources->page_locked and a GPU, is in the pipeline's own
 * memory. Otherwise the result goes to the samples of OUT, and images may have strides. */
bool pipeline_run(struct pipeline_run *run, const struct end *in, struct end *out, struct error *error);

/* Bytes of memory that filtering the run's input from SOURCE to SINK takes on the CPU, however alpha takes part. The
 * run need not be planned. SIZE_MAX if they are too many to count. */
size_t pipeline_stream_need(const struct pipeline_run *run, const struct row_source *source,
                            const struct row_sink *sink);

/* ---- Many files and device memory ---- */

/* An image between one or two ends and a view in the memory of a GPU. */
struct gpu_picture {
    const struct end *in; /* where it comes from: END_JPEG or END_PNG, as for pipeline_run; END_HOST, and its image has
                             samples without padding, of the size and the bits of the view; or, for a tensor,
                             END_DEVICE, and it is in the view. NULL if it is there and goes to OUT */
    struct end *out;      /* where it goes to, likewise. NULL if it stays in the view */
    struct image view;    /* upright; it may have strides */
    bool is_done;
};

/* Where a picture goes: it is resized to WIDTH x HEIGHT, and the pixel (0, 0) of PART, which is a part of that, becomes
 * the pixel (X, Y) of the output. */
struct tensor_part {
    int width, height;
    struct rectangle part;
    int x, y;
};

/* Images that pictures become, in the GPU's memory. */
struct gpu_tensor {
    struct images out;        /* with 3 channels and samples as LEVELS has them */
    const struct image *outs; /* or one for each picture, with its channels and levels as samples; NULL if not */
    const struct tensor_part *parts;
    enum resample_kernel kernel;
    const struct pillow_levels *levels; /* NULL with OUTS */
};

/* Decode each picture that is not done to its view, queued on *resources->stream, and wait. A picture that is still not
 * done afterwards is for the CPU: give it again, as END_HOST. If TENSOR is not NULL, picture I becomes its image I.
 * Then views have 8 bits, 1 or 3 channels, and no samples; they get some while they are decoded. */
bool pipeline_decode_pictures(struct pipeline *pipeline, struct gpu_picture *pictures, size_t count,
                              const struct gpu_tensor *tensor, struct error *error);

/* Encode each picture that is not done, from its view. Samples of 16 bits become a JPEG's 8. Call WRAP for each, on any
 * thread of the pool, while the data at its end, or the samples of its end's image, are there. */
bool pipeline_encode_pictures(struct pipeline *pipeline, struct gpu_picture *pictures, size_t count,
                              void (*wrap)(void *context, size_t index), void *context, struct error *error);

/* Images in the caller's memory, and what becomes of them. */
struct image_pair {
    struct images in, out;
};

/* Apply RECIPE to those of COUNT pairs in the memory of a GPU that one launch can resize together, whatever their sizes
 * are. IS_DONE says which these are. It waits for them. */
bool pipeline_resize_images(struct pipeline *pipeline, const struct recipe *recipe, const struct image_pair *pairs,
                            size_t count, bool *is_done, struct error *error);

/* May one launch for each filter of RECIPE serve all images IN and OUT, in the memory of a GPU? Returns 0 if not. Else
 * *JOINED_IN and *JOINED_OUT become the ends of one run whose recipe has ALPHA_FILTER, and the return value is its
 * field `images`. */
int pipeline_join_images(const struct recipe *recipe, const struct images *in, const struct images *out,
                         struct image *joined_in, struct image *joined_out);

/* Open GPU INDEX for pipelines that share it, as resources->shared. Close it after the pipelines. */
bool pipeline_open_device(int index, struct device **device, struct error *error);
void pipeline_close_device(struct device *device);

/* Release the buffers; the device stays open. */
void pipeline_shrink(struct pipeline *pipeline);

/* After the last image: release the GPU, whose context ends on another thread. */
void pipeline_leave_gpu(struct pipeline *pipeline);

/* Release everything. It may be called again. */
void pipeline_close(struct pipeline *pipeline);

#endif
