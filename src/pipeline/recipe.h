/* SPDX-License-Identifier: MIT
 *
 * What to do to images, and what follows from that for an image of one shape. Nothing here changes a request. */
#ifndef GPUCONV_RECIPE_H
#define GPUCONV_RECIPE_H

#include "base/error.h"
#include "filter/filter.h"
#include "image/image.h"
#include "pipeline/start.h"
#include "plan/plan.h"
#include "variants/choose.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* Who decides on the backend. */
enum choice { CHOICE_AUTO, CHOICE_CUDA, CHOICE_CPU };

/* The automatic choice of the backend for the images of a batch. The workers share it. The batch owns it, and sets the
 * first six fields before the workers start. The others begin with 0; `mutex` guards them. */
struct batch_choice {
    size_t images;          /* of the batch; 0: a stream, of which nobody knows the end */
    double bytes;           /* of all their files */
    int workers;            /* images at a time */
    bool takes_all;         /* the workers take all processors */
    struct gpu_start *gpus; /* for the workers, in turn */
    size_t gpu_count;       /* at least 1 */

    pthread_mutex_t mutex;
    enum choice kinds[3][3]; /* by what a GPU can decode and encode; CHOICE_AUTO: not yet decided */
    bool uses_gpus;          /* GPUs filter some kind of images, or all images */
    double lost;             /* of a stream: the seconds that GPUs would have saved so far */
    struct error why;        /* its message says why this backend does the work */
};

/* What to do to an image. It does not change while a pipeline uses it. Everything that it points to must outlive the
 * pipeline, or until the pipeline changes its request. */
struct request {
    unsigned long id;             /* in a stream of jobs, another for each request, and not 0 */
    const struct filter *filters; /* applied in turn; the same bytes as one run for each filter */
    size_t count;
    enum border border;
    enum alpha alpha;
    bool linear;                   /* filter in linear light, by the tables of the pipeline */
    enum choice choice;            /* where a variant is named, its backend or CHOICE_AUTO */
    const struct variant *variant; /* NULL: the fastest canonical one for each filter, as far as the model knows */
    int device;                    /* index of the GPU */
    struct gpu_start *start;       /* of that GPU; NULL: it starts when a pipeline opens it */
    struct thread_pool *pool;      /* of the CPU; NULL: the calling thread only */

    /* For batches. */
    bool page_locked;  /* keep page-locked memory for copies to and from the GPU; it pays off after a few images */
    bool cpu_fallback; /* the CPU takes over from a GPU that fails, even with CHOICE_CUDA */
    struct constant_memory *constant_memory; /* of the GPU; NULL: no other pipeline uses it */
    struct batch_choice *batch;              /* for CHOICE_AUTO; NULL: there is only one image */
};

/* Set the size of SHAPE, an image's, to that of the result. Fails if a filter does not take images of that size. ERROR
 * may be NULL. */
bool request_resize(const struct request *request, struct image *shape, struct error *error);

/* Does a filter change the size of images? */
bool request_resizes(const struct request *request);

/* How the alpha channel takes part in filter NUMBER of an image where it takes part as ALPHA. With ALPHA_PREMULTIPLY
 * it depends on the filter. If its taps sum to 1, it is applied to alpha as well, and the colours are divided by the
 * new alpha. If some of these taps are negative, sums need headroom. Any other filter, such as for edges, is applied to
 * the picture on a black background. The border zero does this with every filter: alpha is 0 there, and the edge of the
 * picture would become transparent. A filter that changes the size is applied to alpha, too, and knows no border. */
enum alpha request_alpha(const struct request *request, enum alpha alpha, size_t number);

/* The work of the request on an image of SHAPE: the sample type and the most planes that a filter needs. */
struct work request_work(const struct request *request, enum alpha alpha, const struct image *shape);

/* Must planes become an image and planes again between two filters? With premultiplied colours or in linear light, the
 * merge rounds. A chain must round in the same places to give the bytes of one run for each filter. */
bool request_merges_between(const struct request *request, enum alpha alpha, const struct image *shape);

#endif
