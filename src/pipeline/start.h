/* SPDX-License-Identifier: MIT
 *
 * What the pipelines of a GPU share, and its start. A GPU starts and ends on a thread of its own, beside other work:
 * the driver and the context take about 0.1 s each, and the end of the context nearly as much. In a build without CUDA
 * these functions do nothing. */
#ifndef GPUCONV_START_H
#define GPUCONV_START_H

#include "base/error.h"
#include "image/image.h"
#include "pipeline/recipe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

/* What has started, in this order. */
enum gpu_step { GPU_NONE, GPU_DRIVER, GPU_CONTEXT };

/* The taps in a GPU's constant memory, which all pipelines on that GPU share. Pipelines whose filter is there read it
 * at the same time. A pipeline that uploads another filter waits until nobody reads it. */
struct constant_memory {
    pthread_rwlock_t lock;
    const struct variant *variant; /* that holds the recipe's filter; NULL if that is unknown */
    struct recipe recipe;          /* with a reference to its chain */
    enum sample sample;
};

/* How many streams of a process use a GPU at the same time. A connection adds 25 ms to the start and end of a context.
 * So work of about a second gets 4, and a single image gets 1. (375 JPEGs of 7.7 Mpixel beside an H200 took 0.62, 0.48
 * and 0.55 s with 1, 4 and 8, and 3,000 took 2.96, 1.57 and 1.30 s.) */
enum { CONNECTIONS_FEW = 4, CONNECTIONS_MANY = 8 };

/* The caller sets the first two fields and leaves the others 0. */
struct gpu_start {
    int device;      /* the GPU's index */
    int connections; /* 1, or one of these two */

    bool is_asked;   /* it has been told to begin */
    bool is_wanted;  /* the context, too */
    bool is_running; /* `thread` starts the GPU */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    atomic_int step;     /* enum gpu_step: the last one that succeeded */
    bool has_failed;     /* the step after the last one that succeeded has failed */
    struct error reason; /* why that step has failed */
    bool is_released;    /* nobody needs the context any more */

    /* For a batch. */
    struct constant_memory constant_memory;
    atomic_flag is_awaited;  /* a worker has waited for the start, or does */
    atomic_flag is_warned;   /* its failure has been reported */
    struct batcher *batcher; /* makes groups of small images; NULL until there are some: see batcher.c */
};

/* Let the GPU start, unless it has begun to. Any thread may call this. If the system refuses a thread, the GPU starts
 * before this returns. */
void gpu_start_begin(struct gpu_start *start);

/* As gpu_start_begin, but only the driver starts, until gpu_start_begin is called: little is lost if the GPU does not
 * pay off. */
void gpu_start_prepare(struct gpu_start *start);

/* Wait until a GPU that has begun to start has come to STEP. Fails with the reason if it does not come there, and
 * without one if it is a step that is not wanted. START may be NULL. */
bool gpu_start_wait(struct gpu_start *start, enum gpu_step step, struct error *error);

/* Wait until the context is there, for at most as many SECONDS. */
void gpu_start_wait_briefly(struct gpu_start *start, double seconds);

/* Let the context end. No pipeline may have the GPU open, or open it again. START may be NULL. */
void gpu_start_release(struct gpu_start *start);

/* Release the start as gpu_start_release does, and wait for the thread. */
void gpu_start_end(struct gpu_start *start);

#endif
