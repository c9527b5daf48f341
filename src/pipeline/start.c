/* SPDX-License-Identifier: MIT */
#include "pipeline/start.h"

#include "base/parallel.h"
#include "kernels/device/device.h"
#include "pipeline/pipeline_internal.h"

#include <signal.h>
#include <stddef.h>
#include <time.h>

/* Record that STEP has succeeded, or failed. */
static bool record_step(struct gpu_start *start, enum gpu_step step, bool done)
{
    pthread_mutex_lock(&start->mutex);
    if (done)
        atomic_store(&start->step, (int)step);
    start->has_failed = !done;
    pthread_cond_broadcast(&start->changed);
    pthread_mutex_unlock(&start->mutex);
    return done;
}

/* Create the context. It stays when the device is closed, and each pipeline finds it when it opens the device. */
static bool create_context(struct gpu_start *start)
{
    struct device *device;
    if (!device_open(start->device, &device, &start->reason))
        return false;
    device_close(device);
    return true;
}

/* Is the context wanted? Waits until that is known. */
static bool is_wanted(struct gpu_start *start)
{
    pthread_mutex_lock(&start->mutex);
    while (!start->is_wanted && !start->is_released)
        pthread_cond_wait(&start->changed, &start->mutex);
    const bool wanted = start->is_wanted;
    pthread_mutex_unlock(&start->mutex);
    return wanted;
}

static bool start_gpu(struct gpu_start *start)
{
    int count;
    return record_step(start, GPU_DRIVER, device_count(&count, &start->reason)) && is_wanted(start) &&
           record_step(start, GPU_CONTEXT, create_context(start));
}

static void *run_gpu(void *context)
{
    struct gpu_start *start = context;
    if (!start_gpu(start))
        return NULL;
    pthread_mutex_lock(&start->mutex);
    while (!start->is_released)
        pthread_cond_wait(&start->changed, &start->mutex);
    pthread_mutex_unlock(&start->mutex);
    device_reset(start->device);
    return NULL;
}

/* Pipelines read it nearly all the time, so one that must write goes first. */
static void open_constant_memory(struct constant_memory *memory)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&memory->lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

/* The threads that CUDA starts inherit the blocked signals, so signals go to the main thread, which blocks them while
 * it writes a file (file_write). */
static void create_start_thread(struct gpu_start *start, bool is_wanted)
{
    sigset_t all, before;
    start->is_asked = true;
    start->is_wanted = is_wanted;
    device_expect_streams(start->connections);
    pthread_mutex_init(&start->mutex, NULL);
    pthread_cond_init(&start->changed, NULL);
    open_constant_memory(&start->constant_memory);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    start->is_running = parallel_start_thread(&start->thread, run_gpu, start) == 0;
    if (!start->is_running) {
        start->is_wanted = true;
        start_gpu(start);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void begin(struct gpu_start *start, bool is_wanted)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    if (start == NULL)
        return;
    pthread_mutex_lock(&mutex);
    if (!start->is_asked)
        create_start_thread(start, is_wanted);
    pthread_mutex_lock(&start->mutex);
    start->is_wanted |= is_wanted;
    pthread_cond_broadcast(&start->changed);
    pthread_mutex_unlock(&start->mutex);
    pthread_mutex_unlock(&mutex);
}

void gpu_start_begin(struct gpu_start *start)
{
    begin(start, true);
}

void gpu_start_prepare(struct gpu_start *start)
{
    begin(start, false);
}

bool gpu_start_wait(struct gpu_start *start, enum gpu_step step, struct error *error)
{
    if (start == NULL || !start->is_asked)
        return true;
    pthread_mutex_lock(&start->mutex);
    while (atomic_load(&start->step) < (int)step && !start->has_failed &&
           (atomic_load(&start->step) < GPU_DRIVER || start->is_wanted))
        pthread_cond_wait(&start->changed, &start->mutex);
    const bool done = atomic_load(&start->step) >= (int)step;
    pthread_mutex_unlock(&start->mutex);
    if (!done && error != NULL)
        *error = start->reason;
    return done;
}

void gpu_start_wait_briefly(struct gpu_start *start, double seconds)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    const double whole = (double)end.tv_nsec / 1e9 + seconds;
    end.tv_sec += (time_t)whole;
    end.tv_nsec = (long)((whole - (double)(time_t)whole) * 1e9);
    pthread_mutex_lock(&start->mutex);
    while (atomic_load(&start->step) < GPU_CONTEXT && !start->has_failed &&
           pthread_cond_timedwait(&start->changed, &start->mutex, &end) == 0)
        ;
    pthread_mutex_unlock(&start->mutex);
}

void gpu_start_release(struct gpu_start *start)
{
    if (start == NULL || !start->is_asked)
        return;
    pthread_mutex_lock(&start->mutex);
    start->is_released = true;
    pthread_cond_broadcast(&start->changed);
    pthread_mutex_unlock(&start->mutex);
}

void gpu_start_end(struct gpu_start *start)
{
    if (!start->is_asked)
        return;
    batcher_close(start);
    gpu_start_release(start);
    if (start->is_running)
        pthread_join(start->thread, NULL);
    start->is_asked = start->is_running = start->is_wanted = false;
    pthread_mutex_destroy(&start->mutex);
    pthread_cond_destroy(&start->changed);
    pthread_rwlock_destroy(&start->constant_memory.lock);
    chain_release(start->constant_memory.recipe.chain);
    start->constant_memory.recipe.chain = NULL;
}
