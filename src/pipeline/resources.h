/* SPDX-License-Identifier: MIT
 *
 * With what a pipeline works: threads, a GPU and the kinds of memory to use. Recipes say what it does. */
#ifndef GPUCONV_RESOURCES_H
#define GPUCONV_RESOURCES_H

#include "base/error.h"
#include "pipeline/balance.h"
#include "pipeline/recipe.h"
#include "pipeline/start.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct device;
struct pipeline_run;
struct thread_pool;

/* The automatic choice of the backend for the images of a batch. The workers share it. The batch owns it, and sets the
 * first five fields and balance.workers before the workers start. The others begin with 0; `mutex` guards them. */
struct batch_choice {
    size_t images;          /* the batch's images; 0 for a stream */
    double work;            /* the work of all files, as pipeline_input.work; 0 for a stream whose end nobody knows */
    bool takes_all;         /* the workers take all processors, and one may wait for a GPU: the batch has an end */
    struct gpu_start *gpus; /* the GPUs; worker N uses number N modulo gpu_count */
    size_t gpu_count;       /* at least 1 */

    pthread_mutex_t mutex;
    struct balance balance;
    double left;                  /* the work of the files that no worker has begun */
    struct pipeline_run *running; /* the images that workers have: a list */
    double looked;                /* when pipeline_look has looked at them, in seconds of the clock */
    bool uses_gpus;               /* GPUs have started, or do */
    double prepared;              /* when their drivers began to start, in seconds of the clock; 0 if they have not */
    double began_start;           /* when the GPUs began to start, likewise */
    double lost;                  /* in a stream without a known end: the seconds that GPUs would have saved so far */
    unsigned long groups;         /* groups of small images that GPUs have taken from the workers */
    bool has_ended;               /* there are no more jobs */
    pthread_cond_t changed;       /* one of the last two */
    struct error why;             /* its message says why this backend does the work */
};

/* They do not change while a pipeline is open, and outlive it with all that they point to. */
struct resources {
    struct thread_pool *pool; /* threads of the CPU; NULL for the calling thread only */
    int device;               /* index of the GPU */
    struct gpu_start *start;  /* the start of that GPU; if it is NULL, the GPU starts when a pipeline opens it */
    struct device *shared;    /* that GPU, which pipelines share and leave open; NULL if each opens its own */
    void *const *stream; /* a cudaStream_t of the caller, for images on a shared GPU; NULL for the GPU's own. It may
                                 change between images */

    /* Ends an image on the CPU before its next filter or block of rows, once it is not 0; NULL if nothing does. It may
     * change between images. */
    const int *stop;

    /* For batches. */
    bool cpu_only;     /* there is no GPU, whatever a recipe wishes */
    bool page_locked;  /* keep page-locked memory for copies to and from the GPU; it pays off after a few images */
    bool cpu_fallback; /* the CPU takes over from a GPU that fails, even with CHOICE_CUDA */
    struct constant_memory *constant_memory; /* the GPU's constant memory; NULL if no other pipeline uses it */
    struct batch_choice *batch;              /* for CHOICE_AUTO; NULL if there is only one image */
};

#endif
