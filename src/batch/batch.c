/* SPDX-License-Identifier: MIT
 *
 * A batch: what its workers do, the choice of the backend, and the totals. */
#include "batch/batch.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "base/workers.h"
#include "batch/outputs.h"
#include "variants/choose.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* ---- Workers ---- */

struct batch;

struct gpu {
    struct gpu_start *start;
    struct constant_memory constant_memory;
    atomic_bool warned;     /* its failure has been reported */
    atomic_flag is_awaited; /* a worker waits for its start */
};

/* A thread, and what it keeps from job to job. */
struct worker {
    struct batch *batch;
    struct gpu *gpu;                 /* NULL: there is none; or there is one job, whose pipeline opens the GPU itself */
    _Atomic(const struct job *) job; /* the last that it has begun */
    struct job_worker tools;
};

struct batch {
    const struct batch_request *request;
    const struct batch_callbacks *callbacks;
    struct workers workers;
    struct outputs outputs;
    struct gpu *gpus;
    struct worker *list; /* the workers, by their numbers */
    int worker_count;    /* workers wanted */
    int threads;         /* of the CPU for one image; 0: one for each processor */
    bool takes_all;      /* the workers take all processors */
    double bytes;        /* of all inputs */

    pthread_mutex_t choosing;
    enum choice choice;        /* CHOICE_AUTO: the first image of each kind decides for the kind */
    enum choice choices[2][2]; /* by job_shape's is_decoded and is_encoded; CHOICE_AUTO: not yet decided */
    bool uses_gpus;            /* some kind, or all, goes to the GPUs */

    struct batch_totals totals;
    double start;
};

/* A batch of one job leaves the choice of the backend to the pipeline, which knows what starting up costs. */
static bool is_single(const struct batch *batch)
{
    return batch->request->count == 1;
}

/* ---- Where to filter ---- */

static void open_gpus(struct batch *batch)
{
    for (size_t i = 0; i < batch->request->gpu_count; i++)
        gpu_start_begin(batch->gpus[i].start);
}

/* Choose the backend of all images like this one. Their estimated number is the bytes of all files divided by the bytes
 * of its file. */
static enum choice choose_for_kind(struct batch *batch, const struct job *job, const struct job_shape *shape)
{
    const struct request *request = batch->request->request;
    const struct image *image = &shape->image;
    const struct batch_work work = {
        .image = {.width = image->width,
                  .height = image->height,
                  .planes = pipeline_planes(request, image),
                  .sample = pipeline_sample(request, image),
                  .threads = batch->threads},
        .images = job->bytes > 0 ? batch->bytes / (double)job->bytes : (double)batch->request->count,
        .workers = batch->worker_count,
        .gpus = (int)batch->request->gpu_count,
        .is_decoded = shape->is_decoded,
        .is_encoded = shape->is_encoded,
    };
    const double cpu = cost_batch_cpu_seconds(request->filters, request->count, &work);
    const double cuda = cost_batch_cuda_seconds(request->filters, request->count, &work);
    if (cuda >= cpu) {
        if (!batch->uses_gpus && pipeline_may_have_gpu())
            error_set(&batch->totals.why, ERROR_NONE,
                      "a GPU would be expected to take %.2f s of the batch with its start-up, the CPU takes %.2f s",
                      cuda, cpu);
        return CHOICE_CPU;
    }
    error_set(&batch->totals.why, ERROR_NONE,
              "a GPU is expected to take %.2f s of the batch with its start-up, the CPU %.2f s", cuda, cpu);
    batch->uses_gpus = true;
    open_gpus(batch);
    return CHOICE_CUDA;
}

/* Does the CPU have to work because a GPU is not ready? The start of a GPU needs a processor. Where the workers take all
 * of them, one worker waits. */
static bool is_starting(struct batch *batch, struct gpu *gpu)
{
    if (atomic_load(&gpu->start->step) == GPU_CONTEXT)
        return false;
    return !batch->takes_all || atomic_flag_test_and_set(&gpu->is_awaited) ||
           !gpu_start_wait(gpu->start, GPU_CONTEXT, NULL);
}

/* Choose the backend of one image. With the automatic choice the CPU works until a GPU is ready. */
static enum choice choose_for_image(void *context, const struct job *job, const struct job_shape *shape)
{
    struct worker *worker = context;
    struct batch *batch = worker->batch;
    const enum choice wanted = batch->request->request->choice;
    if (is_single(batch))
        return wanted;
    if (batch->choice != CHOICE_AUTO)
        return batch->choice;
    pthread_mutex_lock(&batch->choosing);
    enum choice *of_kind = &batch->choices[shape->is_decoded][shape->is_encoded];
    if (*of_kind == CHOICE_AUTO)
        *of_kind = choose_for_kind(batch, job, shape);
    const enum choice choice = *of_kind;
    pthread_mutex_unlock(&batch->choosing);
    return choice == CHOICE_CUDA && is_starting(batch, worker->gpu) ? CHOICE_CPU : choice;
}

/* ---- The hooks of a job ---- */

static void forward_decoded(void *context, const struct job_result *result)
{
    struct batch *batch = ((struct worker *)context)->batch;
    if (!is_single(batch) || batch->callbacks->on_decoded == NULL)
        return;
    pthread_mutex_lock(&batch->workers.reporting);
    batch->callbacks->on_decoded(batch->callbacks->context, result);
    pthread_mutex_unlock(&batch->workers.reporting);
}

static void forward_planned(void *context, const struct pipeline *pipeline)
{
    struct batch *batch = ((struct worker *)context)->batch;
    if (!is_single(batch))
        return;
    pthread_mutex_lock(&batch->workers.reporting);
    batch->totals.why = pipeline->why;
    if (batch->callbacks->on_planned != NULL)
        batch->callbacks->on_planned(batch->callbacks->context, pipeline);
    pthread_mutex_unlock(&batch->workers.reporting);
}

static void warn_once(void *context, const struct error *reason)
{
    struct worker *worker = context;
    struct batch *batch = worker->batch;
    if (batch->callbacks->on_fallback == NULL || (worker->gpu != NULL && atomic_exchange(&worker->gpu->warned, true)))
        return;
    pthread_mutex_lock(&batch->workers.reporting);
    batch->callbacks->on_fallback(batch->callbacks->context, reason);
    pthread_mutex_unlock(&batch->workers.reporting);
}

/* Call with `reporting` held. */
static void count_result(struct worker *worker, const struct job_result *result)
{
    struct batch *batch = worker->batch;
    struct batch_totals *totals = &batch->totals;
    const double work = batch->workers.work[result->job - batch->request->jobs];
    totals->done += result->outcome == JOB_DONE;
    totals->skipped += result->outcome == JOB_SKIPPED;
    totals->failed += result->outcome == JOB_FAILED;
    if (result->outcome == JOB_SKIPPED)
        totals->work -= work; /* skipped files do not count in the remaining time */
    else
        totals->work_done += work;
    if (result->outcome == JOB_DONE)
        totals->pixels += (double)result->width * result->height;
    atomic_store(&worker->tools.step, JOB_STEP_NONE); /* it is no longer under way, for report_progress */
}

static void report_result(void *context, const struct job_result *result)
{
    struct worker *worker = context;
    struct batch *batch = worker->batch;
    pthread_mutex_lock(&batch->workers.reporting);
    count_result(worker, result);
    if (batch->callbacks->on_written != NULL)
        batch->callbacks->on_written(batch->callbacks->context, result);
    pthread_mutex_unlock(&batch->workers.reporting);
}

static const struct job_hooks hooks = {
    .decoded = forward_decoded,
    .choose = choose_for_image,
    .planned = forward_planned,
    .fell_back = warn_once,
    .report = report_result,
};

/* ---- The work ---- */

/* Do jobs until there are no more. */
static void do_jobs(void *context, int number)
{
    struct batch *batch = context;
    const struct batch_callbacks *callbacks = batch->callbacks;
    struct worker *worker = &batch->list[number];
    size_t index;
    while (workers_next(&batch->workers, &index)) {
        const struct job *job = &batch->request->jobs[index];
        struct job_result result;
        atomic_store(&worker->job, job);
        job_run(&worker->tools, job, &result);
        if (result.outcome == JOB_FAILED && batch->request->fail_fast)
            workers_stop(&batch->workers);
        if (callbacks->on_result == NULL || workers_interrupted(&batch->workers))
            continue;
        pthread_mutex_lock(&batch->workers.reporting);
        callbacks->on_result(callbacks->context, &result);
        pthread_mutex_unlock(&batch->workers.reporting);
    }
    job_worker_close(&worker->tools);
}

/* Report the progress, with that of the jobs under way. No job ends meanwhile. */
static void report_progress(void *context)
{
    struct batch *batch = context;
    batch->totals.milliseconds = clock_milliseconds() - batch->start;
    struct batch_totals totals = batch->totals;
    for (int i = 0; i < batch->worker_count; i++) {
        struct worker *worker = &batch->list[i];
        const struct job_progress progress = job_find_progress(&worker->tools);
        if (progress.done > 0)
            totals.work_done += progress.done * batch->workers.work[atomic_load(&worker->job) - batch->request->jobs];
        totals.only = progress;
    }
    if (!is_single(batch))
        totals.only = (struct job_progress){0};
    else if (totals.only.word == NULL) /* before or after its job */
        return;
    batch->callbacks->on_progress(batch->callbacks->context, &totals);
}

/* ---- The whole ---- */

/* Prepare worker INDEX, which is all zeros. */
static bool prepare_worker(struct batch *batch, int index, struct error *error)
{
    const struct batch_request *request = batch->request;
    struct worker *worker = &batch->list[index];
    struct job_worker *tools = &worker->tools;
    worker->batch = batch;
    tools->settings = request->settings;
    tools->workers = &batch->workers;
    tools->budget = &batch->workers.budget;
    tools->outputs = &batch->outputs;
    tools->hooks = &hooks;
    tools->context = worker;
    tools->request = *request->request;
    tools->threads = batch->threads;
    tools->is_cpu_only = batch->choice == CHOICE_CPU || !pipeline_has_cuda;
    if (request->gpu_count > 0) {
        tools->request.start = &request->gpus[(size_t)index % request->gpu_count];
        tools->request.device = tools->request.start->device;
    }
    if (request->gpu_count > 0 && !is_single(batch)) {
        worker->gpu = &batch->gpus[(size_t)index % request->gpu_count];
        tools->request.constant_memory = &worker->gpu->constant_memory;
    }
    tools->request.page_locked = !is_single(batch);
    return job_worker_open(tools, error);
}

/* About how long a job takes, in bytes of the quickest format; 0 if the size of its file is not known. */
static double estimate_work(void *context, size_t index)
{
    const struct batch *batch = context;
    const struct job *job = &batch->request->jobs[index];
    const struct format *format = format_find_by_path(job->input);
    return (double)job->bytes * (format != NULL ? format->work_of_byte : 1);
}

/* Choose the number of workers, and of threads for an image. With fewer images than processors, an image gets several
 * threads. */
static void choose_worker_counts(struct batch *batch)
{
    const struct batch_request *request = batch->request;
    if (is_single(batch)) {
        batch->worker_count = 1;
        batch->threads = request->threads > 0 ? request->threads : request->workers;
        return;
    }
    const int processors = parallel_processors(), wanted = request->workers > 0 ? request->workers : processors;
    const bool few = request->count < (size_t)wanted;
    batch->worker_count = few ? (int)request->count : wanted;
    batch->threads = request->threads > 0 ? request->threads : few ? wanted / batch->worker_count : 1;
    batch->worker_count = workers_limit(batch->worker_count);
    batch->takes_all = batch->worker_count >= processors;
}

static bool prepare_batch(struct batch *batch, struct error *error)
{
    const struct batch_request *request = batch->request;
    choose_worker_counts(batch);
    const struct workers_request workers = {
        .count = request->count,
        .workers = batch->worker_count,
        .memory = request->memory,
        .on_this_thread = request->on_this_thread,
        .context = batch,
        .estimate = estimate_work,
        .run = do_jobs,
        .on_progress = batch->callbacks->on_progress != NULL ? report_progress : NULL,
    };
    /* First of all: all threads inherit the blocked signals, CUDA's own too. */
    bool done = workers_open(&batch->workers, &workers, error);
    batch->totals =
        (struct batch_totals){.count = request->count, .workers = batch->worker_count, .work = batch->workers.all_work};
    for (size_t i = 0; i < request->count; i++)
        batch->bytes += (double)request->jobs[i].bytes;
    batch->choice = request->request->choice;
    batch->uses_gpus = batch->choice == CHOICE_CUDA;
    error_set(&batch->totals.why, ERROR_NONE, "%s", batch->choice == CHOICE_AUTO ? "cpu" : "asked for");
    if (batch->choice == CHOICE_AUTO && request->gpu_count == 0)
        batch->choice = CHOICE_CPU;
    pthread_mutex_init(&batch->choosing, NULL);

    batch->gpus = calloc(request->gpu_count + 1, sizeof *batch->gpus);
    batch->list = calloc((size_t)batch->worker_count, sizeof *batch->list);
    if (batch->gpus == NULL || batch->list == NULL)
        return error_set(error, ERROR_WORK, "there is not enough memory for %d workers; give fewer --jobs",
                         batch->worker_count);
    for (size_t i = 0; i < request->gpu_count; i++) {
        batch->gpus[i].start = &request->gpus[i];
        constant_memory_open(&batch->gpus[i].constant_memory);
    }
    done = done && outputs_open(&batch->outputs, request->count, request->report, error);
    for (int i = 0; done && i < batch->worker_count; i++)
        done = prepare_worker(batch, i, error);
    return done;
}

static void release_batch(struct batch *batch)
{
    for (size_t i = 0; batch->gpus != NULL && i < batch->request->gpu_count; i++)
        constant_memory_close(&batch->gpus[i].constant_memory);
    for (int i = 0; batch->list != NULL && i < batch->worker_count; i++)
        job_worker_close(&batch->list[i].tools);
    outputs_close(&batch->outputs);
    workers_close(&batch->workers);
    pthread_mutex_destroy(&batch->choosing);
    free(batch->gpus);
    free(batch->list);
    free(batch);
}

bool batch_run(const struct batch_request *request, const struct batch_callbacks *callbacks,
               struct batch_totals *totals, struct error *error)
{
    struct error reason;
    *totals = (struct batch_totals){0};
    if (request->count == 0)
        return true;
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return error_set(error, ERROR_WORK, "there is not enough memory to begin; free some");
    batch->request = request;
    batch->callbacks = callbacks;
    batch->start = clock_milliseconds();
    bool done = prepare_batch(batch, error);
    if (done && batch->uses_gpus && !is_single(batch))
        open_gpus(batch);
    done = done && workers_run(&batch->workers, error);
    if (batch->workers.signal != 0) { /* workers still use the batch */
        if (!batch->workers.hangs)
            *totals = batch->totals;
        totals->signal = batch->workers.signal;
        return true;
    }
    /* Why was a GPU never ready that was chosen automatically? */
    if (done && !is_single(batch) && request->request->choice == CHOICE_AUTO && batch->uses_gpus &&
        !gpu_start_wait(batch->gpus[0].start, GPU_CONTEXT, &reason))
        error_set(&batch->totals.why, ERROR_NONE, "%s", pipeline_may_have_gpu() ? reason.message : "cpu");
    batch->totals.milliseconds = clock_milliseconds() - batch->start;
    *totals = batch->totals;
    release_batch(batch);
    return done;
}
