/* SPDX-License-Identifier: MIT
 *
 * A batch: what its workers do and report, and the totals. */
#include "batch/batch.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/workers.h"
#include "batch/outputs.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Workers ---- */

struct batch;

/* A thread, and its data that it keeps from job to job. */
struct worker {
    struct batch *batch;
    _Atomic(const struct job *) job; /* the last job that the worker has begun */
    struct job *taken;               /* the last job that the worker has taken from a stream; NULL if it has none */
    size_t number;                   /* the number of `taken` in the stream, from 0 */
    struct job_worker job_worker;
};

struct batch {
    const struct batch_request *request;
    const struct batch_callbacks *callbacks;
    struct workers workers;
    struct outputs outputs;
    struct worker *list; /* the workers, by their numbers */
    int worker_count;    /* the number of workers that are wanted */
    int usual_count;     /* workers that always work; the others work while a GPU takes images of several workers */
    int threads;         /* CPU threads for one image; 0 for one on each processor */

    enum choice choice;               /* the choice of the backend, for all images */
    struct batch_choice batch_choice; /* for CHOICE_AUTO */

    /* For a stream in order: the results that wait for earlier ones. */
    pthread_mutex_t ordering;
    struct job_result *results; /* `slots` of them; a slot without a job is free */
    size_t window, slots, next; /* `next` is the number of the next job to be reported */
    bool is_reporting;          /* a worker reports the next job */
    pthread_cond_t reported;

    atomic_size_t taken; /* the number of jobs that workers have taken; all jobs of a list */
    struct batch_totals totals;
    double start;
};

static bool is_single_job(const struct batch *batch)
{
    return batch->request->count == 1;
}

/* The estimated work of a job, as in base/workers.h; 0 for a job of a stream. */
static double work_of(const struct batch *batch, const struct job *job)
{
    return batch->request->source != NULL ? 0 : batch->workers.work[job - batch->request->jobs];
}

/* ---- The reports of a job ---- */

static void set_why(struct batch_totals *totals, const char *why)
{
    snprintf(totals->why, sizeof totals->why, "%.*s", (int)sizeof totals->why - 1, why);
}

/* Add the result of a job to the totals. Call with `reporting` locked. */
static void count_result(struct batch *batch, const struct job_result *result)
{
    struct batch_totals *totals = &batch->totals;
    const double work = work_of(batch, result->job);
    totals->done += result->outcome == JOB_DONE;
    totals->skipped += result->outcome == JOB_SKIPPED;
    totals->failed += result->outcome == JOB_FAILED;
    totals->may_retry += result->outcome == JOB_FAILED && error_may_retry(result->error.code);
    totals->no_new_files = totals->no_new_files || (result->outcome == JOB_FAILED && result->error.no_new_files);
    if (result->outcome == JOB_SKIPPED)
        totals->work -= work; /* skipped files do not count in the remaining time */
    else
        totals->work_done += work;
    if (result->outcome == JOB_DONE)
        totals->pixels += (double)result->width * result->height;
}

/* Count what a job reports, and pass it on. Only a single image reports its steps. A failed GPU is reported once. */
static void report_event(void *context, const struct job_result *result, enum job_event event)
{
    struct worker *worker = context;
    struct batch *batch = worker->batch;
    if ((event == JOB_INPUT_KNOWN || event == JOB_PLANNED) && !is_single_job(batch))
        return;
    if (event == JOB_GPU_FAILED && atomic_flag_test_and_set(&worker->job_worker.resources.start->is_warned))
        return;
    if (event == JOB_WRITTEN)
        atomic_store(&worker->job_worker.step, JOB_STEP_NONE); /* report_progress must not count it any more */
    if (event != JOB_GPU_FAILED && batch->results != NULL)     /* report_in_order does the rest */
        return;
    pthread_mutex_lock(&batch->workers.reporting);
    if (event == JOB_PLANNED)
        set_why(&batch->totals, result->run->pipeline->why.message);
    if (event == JOB_WRITTEN)
        count_result(batch, result);
    batch->callbacks->report(batch->callbacks->context, result, event);
    pthread_mutex_unlock(&batch->workers.reporting);
}

/* Report the next result of a stream in order. */
static void report_next(struct batch *batch, struct job_result *next)
{
    const struct batch_callbacks *callbacks = batch->callbacks;
    const struct job_source *source = batch->request->source;
    pthread_mutex_lock(&batch->workers.reporting);
    if (source->complete != NULL)
        source->complete(source->context, next);
    count_result(batch, next);
    callbacks->report(callbacks->context, next, JOB_WRITTEN);
    callbacks->report(callbacks->context, next, JOB_ENDED);
    pthread_mutex_unlock(&batch->workers.reporting);
    free(next->output);
    source->release(source->context, (struct job *)next->job);
}

/* Keep the result of a job of a stream in order. Report all that are next, unless another worker does so: nobody waits
 * meanwhile. */
static void report_in_order(struct batch *batch, size_t number, const struct job_result *result)
{
    pthread_mutex_lock(&batch->ordering);
    batch->results[number % batch->slots] = *result;
    while (!batch->is_reporting && batch->results[batch->next % batch->slots].job != NULL) {
        struct job_result *next = &batch->results[batch->next % batch->slots];
        batch->is_reporting = true;
        pthread_mutex_unlock(&batch->ordering);
        report_next(batch, next);
        pthread_mutex_lock(&batch->ordering);
        batch->is_reporting = false;
        next->job = NULL;
        batch->next++;
        pthread_cond_signal(&batch->reported);
    }
    pthread_mutex_unlock(&batch->ordering);
}

/* Report the jobs that a signal interrupts. No other report comes after this. */
static void report_interrupted(struct batch *batch)
{
    for (int i = 0; i < batch->worker_count; i++) {
        const struct job_worker *worker = &batch->list[i].job_worker;
        struct job_result result = {.job = atomic_load(&batch->list[i].job), .outcome = JOB_FAILED, .device = -1};
        if (atomic_load(&worker->step) == JOB_STEP_NONE)
            continue;
        result.input_bytes = (size_t)result.job->bytes;
        result.phases = (struct phases){.start = atomic_load(&worker->start), .last = clock_milliseconds()};
        error_about(&result.error, ERROR_INTERRUPTED,
                    result.job->input != NULL ? file_input_name(result.job->input) : "the job",
                    "was interrupted (%s) before its output was written", strsignal(batch->workers.signal));
        batch->callbacks->report(batch->callbacks->context, &result, JOB_INTERRUPTED);
    }
}

/* Report the progress, with that of the jobs under way. No job ends meanwhile. */
static void report_progress(void *context)
{
    struct batch *batch = context;
    batch->totals.milliseconds = clock_milliseconds() - batch->start;
    batch->totals.count = batch->taken;
    struct batch_totals totals = batch->totals;
    for (int i = 0; i < batch->worker_count; i++) {
        struct worker *worker = &batch->list[i];
        const struct job_progress progress = job_find_progress(&worker->job_worker);
        if (progress.done > 0)
            totals.work_done += progress.done * work_of(batch, atomic_load(&worker->job));
        totals.only = progress;
    }
    if (!is_single_job(batch))
        totals.only = (struct job_progress){0};
    else if (totals.only.word == NULL) /* before or after its job */
        return;
    batch->callbacks->on_progress(batch->callbacks->context, &totals);
}

/* Look at what the workers do, for the automatic choice. */
static void look(void *context)
{
    struct batch *batch = context;
    pipeline_look(&batch->batch_choice);
}

/* ---- The work ---- */

/* Do a job by its own function `run`. */
static void run_other(struct worker *worker, int number, const struct job *job, struct job_result *result)
{
    struct workers *workers = &worker->batch->workers;
    *result = (struct job_result){.job = job, .outcome = JOB_DONE, .device = -1};
    phases_begin(&result->phases);
    atomic_store(&worker->job_worker.start, result->phases.start);
    atomic_store(&worker->job_worker.step, JOB_STEP_READ);
    job->run(job, workers, number, result);
    if (workers_begin_output(workers)) {
        report_event(worker, result, JOB_WRITTEN);
        workers_end_output(workers);
    }
}

/* The jobs of a stream share the threads that they would have together. A small file gains nothing from several. */
static void share_threads(struct worker *worker, const struct job *job)
{
    enum { THREAD_FILE_BYTES = 1 << 18 };
    struct batch *batch = worker->batch;
    const uint64_t useful = 1 + job->bytes / THREAD_FILE_BYTES;
    const int busy = workers_busy(&batch->workers), share = busy < batch->threads ? batch->threads / busy : 1;
    if (batch->request->threads == 0)
        thread_pool_limit(&worker->job_worker.pool, useful < (uint64_t)share ? (int)useful : share);
}

/* A worker begins the job. */
static void begin_work(struct worker *worker, const struct job *job)
{
    const struct batch *batch = worker->batch;
    struct batch_choice *choice = &worker->batch->batch_choice;
    const double work = batch->request->source != NULL ? (double)job->bytes : work_of(batch, job);
    worker->job_worker.work = work;
    pthread_mutex_lock(&choice->mutex);
    choice->left -= fmin(work, choice->left);
    pthread_mutex_unlock(&choice->mutex);
}

/* Do a job, and report its end. Returns false if no other may begin. */
static bool do_job(struct worker *worker, int number, const struct job *job)
{
    struct batch *batch = worker->batch;
    const struct batch_request *request = batch->request;
    struct job_result result;
    atomic_store(&worker->job, job);
    begin_work(worker, job);
    worker->job_worker.settings = job->settings != NULL ? job->settings : request->settings;
    worker->job_worker.recipe = job->recipe != NULL ? job->recipe : request->recipe;
    if (job->run != NULL)
        run_other(worker, number, job, &result);
    else
        job_run(&worker->job_worker, job, &result);
    const bool stops =
        result.outcome == JOB_FAILED && (request->fail_fast || (result.error.no_new_files && request->source == NULL));
    if (stops)
        workers_stop(&batch->workers);
    if (workers_interrupted(&batch->workers))
        return false;
    if (batch->results != NULL) {
        report_in_order(batch, worker->number++, &result);
        return true;
    }
    report_event(worker, &result, JOB_ENDED);
    free(result.output);
    if (request->source != NULL)
        request->source->release(request->source->context, (struct job *)job);
    return !stops;
}

/* Do JOB and those after it with the same input. Each may be gone once it is done. */
static void do_outputs(struct worker *worker, int number, const struct job *job)
{
    for (const struct job *next; job != NULL; job = next) {
        next = job->next;
        if (!do_job(worker, number, job))
            break;
    }
    job_end_input(&worker->job_worker);
}

static size_t count_outputs(const struct job *job)
{
    size_t count = 0;
    for (; job != NULL; job = job->next)
        count++;
    return count;
}

/* Take the next job of the stream. In order, wait until a slot for its result is free. */
static bool take_job(void *context)
{
    struct worker *worker = context;
    struct batch *batch = worker->batch;
    pthread_mutex_lock(&batch->ordering);
    while (batch->results != NULL && batch->taken - batch->next >= batch->window)
        pthread_cond_wait(&batch->reported, &batch->ordering);
    pthread_mutex_unlock(&batch->ordering);
    worker->taken = batch->request->source->next(batch->request->source->context);
    if (worker->taken == NULL)
        return false;
    worker->number = batch->taken;
    batch->taken += count_outputs(worker->taken);
    return true;
}

/* May the worker take a job? One that is not usual waits until a GPU takes a group of images, again
 * after each job that was no such image. Sets *SEEN. */
static bool may_take(struct worker *worker, int number, unsigned long *seen)
{
    struct batch_choice *choice = &worker->batch->batch_choice;
    if (number < worker->batch->usual_count || worker->job_worker.is_grouped)
        return true;
    pthread_mutex_lock(&choice->mutex);
    while (choice->groups == *seen && !choice->has_ended)
        pthread_cond_wait(&choice->changed, &choice->mutex);
    const bool may = !choice->has_ended;
    *seen = choice->groups;
    pthread_mutex_unlock(&choice->mutex);
    return may;
}

/* End the workers that wait. */
static void end_waiting(struct batch *batch)
{
    struct batch_choice *choice = &batch->batch_choice;
    pthread_mutex_lock(&choice->mutex);
    choice->has_ended = true;
    pthread_cond_broadcast(&choice->changed);
    pthread_mutex_unlock(&choice->mutex);
}

/* Do jobs of the stream until it ends. A job that was taken too late is not done, and not reported. */
static void do_stream(struct worker *worker, int number)
{
    struct batch *batch = worker->batch;
    const struct job_source *source = batch->request->source;
    unsigned long seen = 0;
    for (;;) {
        worker->taken = NULL;
        if (!may_take(worker, number, &seen) || !workers_take(&batch->workers, take_job, worker))
            break;
        share_threads(worker, worker->taken);
        do_outputs(worker, number, worker->taken);
        workers_end_job(&batch->workers);
    }
    if (worker->taken == NULL)
        return;
    batch->taken -= count_outputs(worker->taken);
    for (struct job *job = worker->taken, *next; job != NULL; job = next) {
        next = job->next;
        source->release(source->context, job);
    }
}

/* Do jobs until there are no more. */
static void do_jobs(void *context, int number)
{
    struct batch *batch = context;
    struct worker *worker = &batch->list[number];
    unsigned long seen = 0;
    size_t index;
    if (batch->request->source != NULL)
        do_stream(worker, number);
    else
        while (may_take(worker, number, &seen) && workers_next(&batch->workers, &index))
            if (batch->request->jobs[index].number == 0)
                do_outputs(worker, number, &batch->request->jobs[index]);
    end_waiting(batch);
    job_worker_close(&worker->job_worker);
}

/* ---- The whole ---- */

/* The number of workers for each usual worker, if a GPU may take their small images together. Nearly all of them wait
 * for the GPU. */
enum { WAITING_FACTOR = 8 };

/* Open worker INDEX, which is all zeros. */
static void open_worker(struct batch *batch, int index)
{
    const struct batch_request *request = batch->request;
    struct worker *worker = &batch->list[index];
    struct job_worker *job_worker = &worker->job_worker;
    struct resources *resources = &job_worker->resources;
    const bool is_stream = request->source != NULL, single = is_single_job(batch);
    worker->batch = batch;
    job_worker->workers = &batch->workers;
    job_worker->outputs = &batch->outputs;
    job_worker->report = report_event;
    job_worker->context = worker;
    job_worker->threads = batch->threads;
    job_worker->has_gpu = request->gpu_count > 0 && pipeline_may_have_gpu();
    if (request->gpu_count > 0) {
        resources->start = &request->gpus[(size_t)index % request->gpu_count];
        resources->device = resources->start->device;
        resources->constant_memory = single ? NULL : &resources->start->constant_memory;
    }
    resources->batch = single ? NULL : &batch->batch_choice;
    resources->cpu_only = !job_worker->has_gpu && !single && (is_stream || batch->choice == CHOICE_AUTO);
    resources->page_locked = !single;
    resources->cpu_fallback = request->cpu_fallback;
    resources->stop = &job_worker->pipeline.moves;
    job_worker_open(job_worker);
}

/* About how long a job takes, in bytes of the quickest format; 0 if the size of its file is not known. */
static double estimate_work(void *context, size_t index)
{
    const struct batch *batch = context;
    const struct job *job = &batch->request->jobs[index];
    const struct format *format = format_find_by_path(job->input);
    return (double)job->bytes * (format != NULL ? format->work_of_byte : 1);
}

static bool may_use_gpu(const struct batch_request *request)
{
    return request->gpu_count > 0 && request->recipe->choice != CHOICE_CPU && pipeline_may_have_gpu();
}

/* Choose the number of workers, and of threads for an image. With fewer images than processors, an image gets several
 * threads. */
static void choose_worker_counts(struct batch *batch)
{
    const struct batch_request *request = batch->request;
    if (is_single_job(batch)) {
        batch->usual_count = batch->worker_count = 1;
        batch->threads = request->threads > 0 ? request->threads : request->workers;
        return;
    }
    const int processors = parallel_processors(), wanted = request->workers > 0 ? request->workers : processors;
    size_t inputs = 1;
    for (size_t i = 1; i < request->count; i++)
        inputs += request->jobs[i].number == 0;
    const bool few = request->source == NULL && inputs < (size_t)wanted;
    batch->usual_count = batch->worker_count = few ? (int)inputs : wanted;
    batch->threads = request->threads > 0 ? request->threads : few ? wanted / batch->worker_count : 1;
    if (request->source != NULL && request->threads == 0)
        batch->threads = wanted; /* the largest number: see share_threads */
    if (!few && request->workers == 0 && may_use_gpu(request))
        batch->worker_count = batch->worker_count < PARALLEL_THREADS_MAX / WAITING_FACTOR
                                  ? WAITING_FACTOR * batch->worker_count
                                  : PARALLEL_THREADS_MAX;
    batch->worker_count = workers_limit(batch->worker_count);
    batch->usual_count = batch->usual_count < batch->worker_count ? batch->usual_count : batch->worker_count;
    const bool is_endless = request->source != NULL && request->source->bytes == 0;
    batch->batch_choice.takes_all = !is_endless && batch->usual_count >= processors;
}

/* Prepare the choice of the backend. For a single image the pipeline chooses, which knows how long a GPU takes to
 * start. */
static void prepare_choice(struct batch *batch)
{
    const struct batch_request *request = batch->request;
    struct batch_choice *choice = &batch->batch_choice;
    batch->choice = request->recipe->choice;
    choice->images = request->count;
    choice->work = request->source != NULL ? request->source->bytes : batch->workers.all_work;
    choice->left = choice->work;
    choice->balance.workers = batch->usual_count;
    choice->gpus = request->gpus;
    choice->gpu_count = request->gpu_count;
    choice->uses_gpus = batch->choice == CHOICE_CUDA;
    error_set(&choice->why, ERROR_NONE, "%s", batch->choice == CHOICE_AUTO ? "cpu" : "asked for");
    set_why(&batch->totals, choice->why.message);
    pthread_mutex_init(&choice->mutex, NULL);
    pthread_cond_init(&choice->changed, NULL);
}

/* Allocate the slots of results, if these are reported in order. */
static bool prepare_order(struct batch *batch, struct error *error)
{
    enum { RESULTS_OF_WORKER = 4 };
    const struct job_source *source = batch->request->source;
    if (source == NULL || !source->in_order)
        return true;
    batch->window = source->window > 0 ? source->window : RESULTS_OF_WORKER * (size_t)batch->worker_count;
    batch->slots = batch->window + OUTPUTS_MAX - 1;
    batch->results = calloc(batch->slots, sizeof *batch->results);
    return batch->results != NULL || error_no_memory(error, "%zu results", batch->slots);
}

static bool prepare_batch(struct batch *batch, struct error *error)
{
    const struct batch_request *request = batch->request;
    choose_worker_counts(batch);
    const struct workers_request workers = {
        .count = request->count,
        .workers = batch->worker_count,
        .usual = batch->usual_count,
        .memory = request->memory,
        .on_this_thread = request->on_this_thread,
        .is_stream = request->source != NULL,
        .context = batch,
        .estimate = estimate_work,
        .run = do_jobs,
        .on_progress = batch->callbacks->on_progress != NULL ? report_progress : NULL,
        .on_tick = may_use_gpu(request) && request->recipe->choice == CHOICE_AUTO ? look : NULL,
    };
    /* Block signals before any thread starts: all threads inherit that, CUDA's too. */
    bool done = workers_open(&batch->workers, &workers, error);
    batch->taken = request->count;
    batch->totals.workers = batch->usual_count;
    batch->totals.work = batch->workers.all_work;
    prepare_choice(batch);
    batch->list = calloc((size_t)batch->worker_count, sizeof *batch->list);
    if (done && batch->list == NULL)
        done = error_no_memory(error, "%d workers", batch->worker_count);
    done = done && prepare_order(batch, error) && outputs_open(&batch->outputs, request->count, request->report, error);
    for (int i = 0; done && i < batch->worker_count; i++)
        open_worker(batch, i);
    return done;
}

static void release_batch(struct batch *batch)
{
    for (int i = 0; batch->list != NULL && i < batch->worker_count; i++)
        job_worker_close(&batch->list[i].job_worker);
    outputs_close(&batch->outputs);
    workers_close(&batch->workers);
    pthread_mutex_destroy(&batch->batch_choice.mutex);
    pthread_cond_destroy(&batch->batch_choice.changed);
    pthread_mutex_destroy(&batch->ordering);
    pthread_cond_destroy(&batch->reported);
    free(batch->results);
    free(batch->list);
    free(batch);
}

/* Record why the backend did the work, or why a GPU that was chosen automatically was never ready. */
static void explain_choice(struct batch *batch)
{
    const struct batch_choice *choice = &batch->batch_choice;
    struct error reason;
    set_why(&batch->totals, choice->why.message);
    if (batch->choice == CHOICE_AUTO && choice->uses_gpus && !gpu_start_wait(choice->gpus, GPU_CONTEXT, &reason))
        set_why(&batch->totals, pipeline_may_have_gpu() ? reason.message : "cpu");
}

/* Let GPUs start before the first file is read, if the sizes of the files say that this pays off. */
static void start_early(struct batch *batch)
{
    /* Photos with little noise have as many pixels for a byte of a JPEG of quality 90, and of a PNG. */
    const double jpeg_pixels = 6, png_pixels = 0.7;
    const struct batch_request *request = batch->request;
    const struct job *job = &request->jobs[batch->workers.order[0] - batch->workers.work]; /* which takes the longest */
    const struct format *format = job->input != NULL ? format_find_by_path(job->input) : NULL;
    const bool is_jpeg = format != NULL && format->id == FORMAT_JPEG;
    if (job->run != NULL || format == NULL || (!is_jpeg && format->id != FORMAT_PNG))
        return;
    const int side = (int)sqrt((double)job->bytes * (is_jpeg ? jpeg_pixels : png_pixels));
    const enum end_kind end = is_jpeg ? END_JPEG : END_PNG;
    struct pipeline_run run = {.pipeline = &batch->list->job_worker.pipeline,
                               .recipe = job->recipe != NULL ? job->recipe : request->recipe,
                               .input = {.shape = {.width = side, .height = side, .channels = 3, .bits = 8},
                                         .work = work_of(batch, job),
                                         .gpu_decodes = end,
                                         .gpu_encodes = end,
                                         .is_upright = true}};
    pipeline_expect(&run);
}

bool batch_run(const struct batch_request *request, const struct batch_callbacks *callbacks,
               struct batch_totals *totals, struct error *error)
{
    *totals = (struct batch_totals){0};
    if (request->count == 0 && request->source == NULL)
        return true;
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return error_no_memory(error, "the batch");
    batch->request = request;
    batch->callbacks = callbacks;
    batch->start = clock_milliseconds();
    pthread_mutex_init(&batch->ordering, NULL);
    pthread_cond_init(&batch->reported, NULL);
    bool done = prepare_batch(batch, error);
    for (size_t i = 0; done && batch->choice == CHOICE_CUDA && !is_single_job(batch) && i < request->gpu_count; i++)
        gpu_start_begin(&request->gpus[i]);
    if (done && batch->choice == CHOICE_AUTO && !is_single_job(batch) && request->source == NULL &&
        may_use_gpu(request))
        start_early(batch);
    done = done && workers_run(&batch->workers, error);
    batch->totals.count = batch->taken;
    if (batch->workers.signal != 0) { /* workers still use the batch */
        if (!batch->workers.hangs) {
            report_interrupted(batch);
            *totals = batch->totals;
        }
        totals->signal = batch->workers.signal;
        return true;
    }
    if (done && !is_single_job(batch))
        explain_choice(batch);
    batch->totals.milliseconds = clock_milliseconds() - batch->start;
    *totals = batch->totals;
    release_batch(batch);
    return done;
}
