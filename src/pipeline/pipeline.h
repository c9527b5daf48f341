/* SPDX-License-Identifier: MIT
 *
 * image -> filters -> image, on one backend. The pipeline chooses the backend unless the request does. If a GPU fails
 * that the request does not insist on, the CPU takes over. A pipeline takes one image after another and keeps its
 * buffers between them. Nothing here knows files or options.
 *
 * A pipeline belongs to one thread. Others may read `passed`. */
#ifndef GPUCONV_PIPELINE_H
#define GPUCONV_PIPELINE_H

#include "base/error.h"
#include "filter/filter.h"
#include "image/image.h"
#include "image/rows.h"
#include "jpeg/jpeg.h"
#include "pipeline/stages.h"
#include "pipeline/start.h"
#include "plan/plan.h"
#include "variants/choose.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct device;
struct device_info;
struct device_jpeg;

/* Who decides on the backend. */
enum choice { CHOICE_AUTO, CHOICE_CUDA, CHOICE_CPU };

/* The taps in a GPU's constant memory, which all pipelines on that GPU share. Pipelines whose filter is there read it at
 * the same time. Those that upload another wait until nobody reads it. */
struct constant_memory {
    pthread_rwlock_t lock;
    const struct variant *variant; /* that holds the request's filter; NULL: unknown */
    enum sample sample;
};

/* What to do to an image. Everything that it points to must outlive the pipeline. */
struct request {
    const struct filter *filters; /* applied in turn; the same bytes as one run for each filter */
    size_t count;
    enum border border;
    enum alpha alpha;
    const struct linear *linear;   /* filter in linear light by these tables; NULL: filter the samples as they are */
    enum choice choice;            /* where a variant is named, its backend or CHOICE_AUTO */
    const struct variant *variant; /* NULL: the fastest canonical one for each filter, as far as the model knows */
    int device;                    /* index of the GPU */
    struct gpu_start *start;       /* of that GPU; NULL: it starts when a pipeline opens it */
    struct thread_pool *pool;      /* of the CPU; NULL: the calling thread only */

    /* For batches. */
    bool page_locked;  /* keep page-locked memory for copies to and from the GPU; it pays off after a few images */
    bool cpu_fallback; /* the CPU takes over from a GPU that fails, even with CHOICE_CUDA */
    struct constant_memory *constant_memory; /* of the GPU; NULL: no other pipeline uses it */
};

/* JPEG data in the place of samples, at either end of a pipeline on a GPU. Only they cross the bus. */
struct jpeg_ends {
    /* The image before the filters is the scan of a JPEG. */
    const struct jpeg_layout *in; /* NULL: the image has samples */
    struct jpeg_scan scan;
    int orientation; /* how to turn the decoded image upright, as for image_orient */

    /* The image after the filters becomes the scan of a JPEG. */
    const struct jpeg_layout *out; /* NULL: it becomes samples */
    const uint8_t *data;           /* receives the data of the scan, which are valid until the next call */
    size_t data_size;

    bool is_handed_over; /* the input was not decoded: decode it on the CPU, and call again without `in` */
};

/* Memory that is kept from image to image. It only grows. */
struct buffer {
    void *data;
    size_t capacity; /* bytes */
};

struct pipeline {
    const struct request *request;
    struct stages *stages; /* of the image at work */
    enum backend backend;
    struct work work;   /* what the variants were chosen for */
    struct error why;   /* its message says why this backend was chosen */
    struct plan *plans; /* one for each filter */
    atomic_int passed;  /* thousandths of the planned image's rows that pipeline_stream has done; -1: unknown */
    /* Its code is set once the GPU has failed and the CPU has taken over, for this image and all later ones. */
    struct error fallback;
    struct device *device; /* NULL on the CPU */

    struct buffer page_locked;    /* an interleaved image */
    struct buffer device_samples; /* an interleaved image */
    struct buffer device_planes[2];
    struct buffer device_linear;  /* the request's tables */
    struct buffer device_decoded; /* an image before it is turned upright, or before or after its depth changes */
    struct device_jpeg *jpeg;     /* NULL until the GPU decodes or encodes a JPEG */
    bool has_taps;                /* the open device has the taps of the only filter, beside constant memory */
};

/* Was this program built with CUDA? */
extern const bool pipeline_has_cuda;

/* ---- GPUs ---- */

/* May this machine have a GPU, and this program use it? This is for messages: where there is none, the automatic choice
 * says nothing of GPUs. To ask CUDA takes long. */
bool pipeline_may_have_gpu(void);

/* The number of GPUs; 0 where there is no GPU or no driver. */
int pipeline_gpus(void);

/* Set *COUNT to the number of GPUs. It fails where there is none; the message says why. */
bool pipeline_count_gpus(int *count, struct error *error);

/* Set *FACTS to those of GPU INDEX, without a context on it. */
bool pipeline_describe_gpu(int index, struct device_info *facts, struct error *error);

/* The facts of the pipeline's open GPU; NULL if it has none. They live as long as the device. */
const struct device_info *pipeline_gpu_facts(const struct pipeline *pipeline);

/* Open and close what the pipelines of one GPU share. */
void constant_memory_open(struct constant_memory *memory);
void constant_memory_close(struct constant_memory *memory);

/* ---- A pipeline ---- */

/* How the alpha channel takes part in filter NUMBER. Where alpha weighs the colours, that depends on the filter: one that
 * keeps brightness, its taps summing to 1, filters alpha as well, and the colours are divided by the new alpha. Where its
 * taps are negative in part, sums need headroom. Any other filter, such as for edges, sees the picture on black, as does
 * every filter with the border zero, which would make the picture's rim transparent. */
enum alpha pipeline_alpha(const struct request *request, size_t number);

/* The sample type and the most planes for images of SHAPE. */
enum sample pipeline_sample(const struct request *request, const struct image *shape);
int pipeline_planes(const struct request *request, const struct image *shape);

/* Check what does not depend on the image: the named variant accepts the filters. */
bool pipeline_check(const struct request *request, struct error *error);

/* Check that the GPU exists where CHOICE_CUDA asks for it. Wait for the driver's start. */
bool pipeline_check_gpu(const struct request *request, struct error *error);

/* Open a pipeline for REQUEST. Release with pipeline_close, also after a failure. */
bool pipeline_open(struct pipeline *pipeline, const struct request *request, struct error *error);

/* Will a GPU filter images like this one, unless it fails? If so, let it start. With CHOICE_AUTO wait until the driver
 * says that there is one. */
bool pipeline_expects_gpu(struct pipeline *pipeline, const struct image *image, struct stages *stages);

/* Prepare for images like this one: choose the backend, make the plans, open the device unless it is open. STAGES
 * receives the times until the next call. */
bool pipeline_plan(struct pipeline *pipeline, const struct image *image, struct stages *stages, struct error *error);

/* Apply the planned filters to IMAGE. RESULT becomes a view of the samples: read it until the next call, do not free
 * it. They are in IMAGE, or, with request->page_locked and a GPU, in the pipeline's own memory. ENDS may be NULL, and is
 * for plans on a GPU. With ends->in, IMAGE is the shape of the upright image; if the GPU cannot decode it, the function
 * fails without an error and sets ends->is_handed_over. With ends->out, ends->data are the result, and RESULT has no
 * samples; if the CPU takes over, ends->out becomes NULL. */
bool pipeline_run(struct pipeline *pipeline, struct image *image, struct jpeg_ends *ends, struct image *result,
                  struct error *error);

/* Apply the filters of a pipeline that is planned for the CPU to an image of SHAPE, whose samples do not matter. Reading,
 * filtering and writing run beside each other on the threads of the pool. Only some bands of rows are in memory, unless
 * the filters need the whole image at once. The stages of these threads add up. */
bool pipeline_stream(struct pipeline *pipeline, const struct image *shape, const struct row_source *source,
                     const struct row_sink *sink, struct error *error);

/* Bytes of memory that pipeline_stream needs. SIZE_MAX: too many to count. */
size_t pipeline_stream_need(const struct request *request, const struct image *shape, const struct row_source *source,
                            const struct row_sink *sink);

/* Release the buffers; the device stays open. */
void pipeline_shrink(struct pipeline *pipeline);

/* After the last image: release the GPU, whose context ends on another thread. */
void pipeline_leave_gpu(struct pipeline *pipeline);

/* Release everything. */
void pipeline_close(struct pipeline *pipeline);

#endif
