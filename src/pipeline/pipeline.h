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
#include "container/png.h"
#include "filter/filter.h"
#include "image/image.h"
#include "image/rows.h"
#include "jpeg/jpeg.h"
#include "pipeline/phases.h"
#include "pipeline/resources.h"
#include "plan/plan.h"
#include "png/layout.h"
#include "variants/choose.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct device;
struct device_info;
struct device_jpeg;
struct device_png;
struct device_taps;

/* Encoded data in the place of samples, as the input or the output of a pipeline on a GPU. Only they cross the bus. */
struct gpu_io {
    /* The image before the filters is samples, the scan of a JPEG, or the stream of a PNG that is not interlaced. */
    enum gpu_codec decodes;
    const struct jpeg_layout *jpeg_in;
    struct jpeg_scan scan;
    const struct png_layout *png_in;
    struct png_stream stream;
    int orientation;          /* how to turn the decoded image upright, as for image_orient */
    atomic_bool *translucent; /* set, and the run fails, if a pixel is not opaque; NULL: any pixel is welcome */
    bool is_decoded;          /* such a run has left the image on the GPU: plan, and run again with NULL */

    /* The image after the filters becomes samples, the scan of a JPEG, or the stream of a PNG. */
    enum gpu_codec encodes;
    const struct jpeg_layout *jpeg_out;
    const uint8_t *data; /* receives the scan or the stream, which is valid until the next call */
    size_t data_size;
    uint32_t adler; /* receives the checksum of the PNG's filtered rows */

    bool needs_cpu_decode; /* the GPU has not decoded the input: decode it on the CPU, and run again with its samples */
};

/* Memory that is kept from image to image. It only grows. */
struct buffer {
    void *data;
    size_t capacity; /* bytes */
};

/* An image, for the choice of its backend. It need not be decoded yet. */
struct pipeline_input {
    struct image shape;         /* its samples do not matter */
    enum alpha alpha;           /* the recipe's, or ALPHA_KEEP where plain filters give the same bytes */
    uint64_t bytes;             /* of the file; 0: not known */
    enum gpu_codec gpu_decodes; /* what a GPU can decode of the file */
    enum gpu_codec gpu_encodes; /* what a GPU can encode of the output */
};

/* The plans of a recipe for samples of one kind, on one backend. */
struct planned {
    struct recipe recipe; /* with a reference to its chain */
    enum backend backend;
    enum sample sample;
    struct plan *plans;        /* one for each filter */
    struct device_taps **taps; /* on a GPU, of each plan, for pipeline_queue; NULL until the first image */
    unsigned long last_use;    /* 0 if there are no plans */
};

/* The most recipes whose plans a pipeline keeps. */
enum { PLANNED_MAX = 16 };

struct pipeline {
    const struct resources *resources;
    struct linear *tables; /* NULL until pipeline_linear makes them */
    struct error why;      /* its message says why this backend was chosen */

    /* The image at work. pipeline_plan sets these. */
    const struct recipe *recipe;
    const struct linear *linear; /* the tables, if the recipe asks for linear light, else NULL */
    struct phases *phases;
    enum alpha effective_alpha; /* as in struct pipeline_input */
    enum backend backend;
    struct work work; /* what the variants were chosen for */
    struct planned *planned;
    atomic_int progress_permille; /* thousandths of the image's rows that pipeline_stream has done; -1 if unknown */

    /* The plans that are kept. In place of those that were not used for the longest time come new ones. */
    struct planned kept[PLANNED_MAX];
    unsigned long uses;

    /* Its code is set once the GPU has failed and the CPU has taken over, for this image and all later ones. */
    struct error fallback;
    struct device *device; /* NULL on the CPU */

    struct buffer page_locked;    /* an interleaved image */
    struct buffer device_samples; /* an interleaved image */
    struct buffer device_planes[2];
    struct buffer device_linear;  /* the tables of linear light */
    unsigned device_serial;       /* of these tables */
    struct buffer device_decoded; /* an image before it is turned upright, or before or after its depth changes */
    struct device_jpeg *jpeg;     /* NULL until the GPU decodes or encodes a JPEG */
    struct device_png *png;       /* NULL until the GPU decodes or encodes a PNG */

    /* The device has the taps of these, beside constant memory, and they are of one filter. NULL if it has no such. */
    const struct planned *uploaded;
};

/* Was this program built with CUDA? */
extern const bool pipeline_has_cuda;

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

/* Choose who filters INPUT, by the recipe, the costs and the state of the GPU. If a GPU does, let it start. With
 * CHOICE_AUTO, a single image waits until the driver says that there is a GPU. In a batch, the first image of each kind
 * decides for the kind, and the CPU works until the GPU is ready. Sets pipeline->why. */
enum backend pipeline_choose(struct pipeline *pipeline, const struct recipe *recipe, const struct pipeline_input *input,
                             struct phases *phases);

/* Plan RECIPE for INPUT on BACKEND, which pipeline_choose has chosen: find or make the plans, and open the device unless
 * it is open. If the GPU cannot be opened, the CPU may take over. The recipe must stay until the next call, and PHASES
 * receives the times until then. */
bool pipeline_plan(struct pipeline *pipeline, const struct recipe *recipe, const struct pipeline_input *input,
                   enum backend backend, struct phases *phases, struct error *error);

/* Write to TEXT what a planned pipeline works on: the GPU's name and compute capability, or the CPU's instruction set.
 * Returns false if that is not known: the variant `reference` needs no instruction set. */
bool pipeline_describe_hardware(const struct pipeline *pipeline, char *text, size_t size);

/* Apply the planned filters to IMAGE. RESULT becomes a view of the samples: read it until the next call, do not free
 * it. They are in IMAGE, or, with resources->page_locked and a GPU, in the pipeline's own memory. IO may be NULL, and is
 * for plans on a GPU. With io->decodes, IMAGE is the shape of the upright image. If the GPU cannot decode it, the
 * function fails without an error and sets io->needs_cpu_decode. It also fails without an error if it sets
 * io->translucent. With io->encodes, io->data are the result, and RESULT has no samples; if the CPU takes over,
 * io->encodes becomes GPU_CODEC_NONE. */
bool pipeline_run(struct pipeline *pipeline, struct image *image, struct gpu_io *io, struct image *result,
                  struct error *error);

/* Apply the filters of a pipeline that is planned for the CPU to an image of SHAPE, whose samples do not matter.
 * Reading, filtering and writing run beside each other on the threads of the pool. Only some bands of rows are in
 * memory, unless the filters need the whole image at once. The phases of these threads add up. */
bool pipeline_stream(struct pipeline *pipeline, const struct image *shape, const struct row_source *source,
                     const struct row_sink *sink, struct error *error);

/* Bytes of memory that pipeline_stream needs on the threads of POOL, however alpha takes part. SIZE_MAX if they are too
 * many to count. */
size_t pipeline_stream_need(const struct recipe *recipe, struct thread_pool *pool, const struct image *shape,
                            const struct row_source *source, const struct row_sink *sink);

/* Open GPU INDEX for pipelines that share it, as resources->shared. Close it after the pipelines. */
bool pipeline_open_device(int index, struct device **device, struct error *error);
void pipeline_close_device(struct device *device);

/* Is alpha the largest level everywhere in IMAGE, which is in the memory of the GPU DEVICE and may have strides? Waits for
 * the work that is queued on *STREAM. */
bool pipeline_is_opaque(struct device *device, const struct image *image, void *const *stream, bool *is_opaque,
                        struct error *error);

/* Apply the filters of a pipeline that is planned for a GPU to IN, and write the result to OUT, an image of the same
 * channels and bits, and of the size that the filters make. Both are in the memory of the GPU, may have strides, and may overlap. The work is queued on *STREAM, a
 * cudaStream_t, or on the device's own if STREAM is NULL, and the next wait reports errors of kernels. The host does not
 * wait for it, but may wait when the pipeline's first image uploads the taps. */
bool pipeline_queue(struct pipeline *pipeline, const struct image *in, const struct image *out, void *const *stream,
                    struct error *error);

/* The same for images on the host, whose rows have no padding. Returns when OUT is written. */
bool pipeline_copy_and_run(struct pipeline *pipeline, const struct image *in, const struct image *out,
                           struct error *error);

/* Release the buffers; the device stays open. */
void pipeline_shrink(struct pipeline *pipeline);

/* After the last image: release the GPU, whose context ends on another thread. */
void pipeline_leave_gpu(struct pipeline *pipeline);

/* Release everything. It may be called again. */
void pipeline_close(struct pipeline *pipeline);

#endif
