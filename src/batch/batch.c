/* SPDX-License-Identifier: MIT
 *
 * A batch: its workers, the choice of the backend, and the end, which may be a failure or a signal. */
#include "batch/batch.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "base/signals.h"
#include "batch/outputs.h"
#include "variants/choose.h"

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    PROGRESS_MILLISECONDS = 100,  /* between two calls of on_progress */
    SHUTDOWN_MILLISECONDS = 5000, /* after a signal, the longest wait for outputs that are being written */
    POLL_MILLISECONDS = 10,       /* between two looks at these outputs */
};

/* ---- Workers ---- */

struct batch;

struct gpu {
    struct gpu_start *start;
    struct constant_memory constant_memory;
    atomic_bool warned;     /* its failure has been reported */
    atomic_flag is_awaited; /* a worker waits for its start */
};

enum state {
    STATE_RUN,
    STATE_STOPPING,    /* the jobs that have begun continue; no other begins */
    STATE_INTERRUPTED, /* nothing is written any more */
};

/* A thread, and what it keeps from job to job. */
struct worker {
    struct batch *batch;
    pthread_t thread;
    struct gpu *gpu;                 /* NULL: there is none; or there is one job, whose pipeline opens the GPU itself */
    _Atomic(const struct job *) job; /* the last that it has begun */
    struct job_worker tools;
};

struct batch {
    const struct batch_request *request;
    const struct batch_callbacks *callbacks;
    struct memory_budget budget;
    struct outputs outputs;
    struct gpu *gpus;
    struct worker *workers;
    int worker_count; /* workers wanted */
    int started;      /* workers started */
    int threads;      /* of the CPU for one image; 0: one for each processor */
    bool takes_all;   /* the workers take all processors */
    double bytes;     /* of all inputs */
    double mean_work; /* of an input */

    const struct job **order; /* the order in which jobs begin */
    atomic_size_t next;       /* the index in it of the next job */
    atomic_int state;         /* enum state */
    atomic_int running;       /* workers that have not ended */
    int ended;                /* an eventfd that the last worker writes to; -1: there is none */

    pthread_mutex_t choosing;
    enum choice choice;        /* CHOICE_AUTO: the first image of each kind decides for the kind */
    enum choice choices[2][2]; /* by job_shape's is_decoded and is_encoded; CHOICE_AUTO: not yet decided */
    bool uses_gpus;            /* some kind, or all, goes to the GPUs */

    pthread_rwlock_t writing;  /* read-locked while an output is written; write-locked once none may be written */
    pthread_mutex_t reporting; /* held while a callback runs, and while totals change */
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
    pthread_mutex_lock(&batch->reporting);
    batch->callbacks->on_decoded(batch->callbacks->context, result);
    pthread_mutex_unlock(&batch->reporting);
}

static void forward_planned(void *context, const struct pipeline *pipeline)
{
    struct batch *batch = ((struct worker *)context)->batch;
    if (!is_single(batch))
        return;
    pthread_mutex_lock(&batch->reporting);
    batch->totals.why = pipeline->why;
    if (batch->callbacks->on_planned != NULL)
        batch->callbacks->on_planned(batch->callbacks->context, pipeline);
    pthread_mutex_unlock(&batch->reporting);
}

static void warn_once(void *context, const struct error *reason)
{
    struct worker *worker = context;
    struct batch *batch = worker->batch;
    if (batch->callbacks->on_fallback == NULL || (worker->gpu != NULL && atomic_exchange(&worker->gpu->warned, true)))
        return;
    pthread_mutex_lock(&batch->reporting);
    batch->callbacks->on_fallback(batch->callbacks->context, reason);
    pthread_mutex_unlock(&batch->reporting);
}

static bool begin_write(void *context)
{
    struct batch *batch = ((struct worker *)context)->batch;
    if (atomic_load(&batch->state) == STATE_INTERRUPTED)
        return false;
    pthread_rwlock_rdlock(&batch->writing);
    return true;
}

/* About how long a job takes, in bytes of the quickest format. A file whose size is not known counts as the mean. */
static double estimate_work(const struct batch *batch, const struct job *job)
{
    const struct format *format = format_find_by_path(job->input);
    return job->bytes > 0 ? (double)job->bytes * (format != NULL ? format->work_of_byte : 1) : batch->mean_work;
}

/* Call with `reporting` held. */
static void count_result(struct worker *worker, const struct job_result *result)
{
    struct batch_totals *totals = &worker->batch->totals;
    const double work = estimate_work(worker->batch, result->job);
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

static void end_write(void *context, const struct job_result *result)
{
    struct worker *worker = context;
    struct batch *batch = worker->batch;
    pthread_mutex_lock(&batch->reporting);
    count_result(worker, result);
    if (batch->callbacks->on_written != NULL)
        batch->callbacks->on_written(batch->callbacks->context, result);
    pthread_mutex_unlock(&batch->reporting);
    pthread_rwlock_unlock(&batch->writing);
}

static const struct job_hooks hooks = {
    .decoded = forward_decoded,
    .choose = choose_for_image,
    .planned = forward_planned,
    .fell_back = warn_once,
    .begin_write = begin_write,
    .end_write = end_write,
};

/* ---- The work ---- */

static void forward_result(struct batch *batch, const struct job_result *result)
{
    if (batch->callbacks->on_result == NULL)
        return;
    pthread_mutex_lock(&batch->reporting);
    batch->callbacks->on_result(batch->callbacks->context, result);
    pthread_mutex_unlock(&batch->reporting);
}

/* Do jobs until there are no more. */
static void do_jobs(struct batch *batch, struct worker *worker)
{
    while (atomic_load(&batch->state) == STATE_RUN) {
        const size_t index = atomic_fetch_add(&batch->next, 1);
        if (index >= batch->request->count)
            break;
        struct job_result result;
        atomic_store(&worker->job, batch->order[index]);
        job_run(&worker->tools, batch->order[index], &result);
        if (result.outcome == JOB_FAILED && batch->request->fail_fast) {
            int running = STATE_RUN;
            atomic_compare_exchange_strong(&batch->state, &running, STATE_STOPPING);
        }
        if (atomic_load(&batch->state) != STATE_INTERRUPTED)
            forward_result(batch, &result);
    }
    job_worker_close(&worker->tools);
}

static void signal_end(const struct batch *batch)
{
    const uint64_t one = 1;
    if (write(batch->ended, &one, sizeof one) < 0)
        abort(); /* an eventfd takes a number that is not its largest */
}

static void *run_worker(void *context)
{
    struct worker *worker = context;
    struct batch *batch = worker->batch;
    do_jobs(batch, worker);
    if (atomic_fetch_sub(&batch->running, 1) == 1)
        signal_end(batch);
    return NULL;
}

/* ---- Signals ---- */

/* Stop all writing. Wait for the outputs that are being written, but only SHUTDOWN_MILLISECONDS, or until another
 * signal comes: an output may be a pipe that nobody reads, or its disk may be gone. Even then a file is whole or
 * missing. */
static void stop_writing(struct batch *batch, int signals)
{
    struct pollfd file = {.fd = signals, .events = POLLIN};
    for (int waited = 0; waited < SHUTDOWN_MILLISECONDS; waited += POLL_MILLISECONDS)
        if (pthread_rwlock_trywrlock(&batch->writing) == 0 /* it stays locked */ ||
            poll(&file, 1, POLL_MILLISECONDS) > 0)
            return;
}

/* Report the progress, with that of the jobs under way. Call with `reporting` held: no job ends meanwhile. */
static void report_progress(struct batch *batch)
{
    batch->totals.milliseconds = clock_milliseconds() - batch->start;
    struct batch_totals totals = batch->totals;
    for (int i = 0; i < batch->started; i++) {
        struct worker *worker = &batch->workers[i];
        const struct job_progress progress = job_find_progress(&worker->tools);
        if (progress.done > 0)
            totals.work_done += progress.done * estimate_work(batch, atomic_load(&worker->job));
        totals.only = progress;
    }
    if (!is_single(batch))
        totals.only = (struct job_progress){0};
    else if (totals.only.word == NULL) /* before or after its job */
        return;
    batch->callbacks->on_progress(batch->callbacks->context, &totals);
}

/* Wait for the workers and report progress. On a signal, stop all writing, set *NUMBER to the signal and return
 * false. */
static bool wait_for_workers(struct batch *batch, int signals, int *number)
{
    struct pollfd files[] = {{.fd = batch->ended, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    const struct batch_callbacks *callbacks = batch->callbacks;
    for (;;) {
        const int ready = poll(files, 2, callbacks->on_progress != NULL ? PROGRESS_MILLISECONDS : -1);
        struct signalfd_siginfo info;
        if (ready > 0 && (files[1].revents & POLLIN) && read(signals, &info, sizeof info) == sizeof info) {
            atomic_store(&batch->state, STATE_INTERRUPTED);
            stop_writing(batch, signals);
            *number = (int)info.ssi_signo;
            return false;
        }
        if (ready > 0 && (files[0].revents & POLLIN))
            return true;
        /* A callback that runs now may hang at a pipe that nobody reads. Do not wait for it, so that signals are
         * seen. */
        if (callbacks->on_progress != NULL && pthread_mutex_trylock(&batch->reporting) == 0) {
            report_progress(batch);
            pthread_mutex_unlock(&batch->reporting);
        }
    }
}

/* ---- The whole ---- */

/* Prepare worker INDEX, which is all zeros. */
static bool prepare_worker(struct batch *batch, int index, struct error *error)
{
    const struct batch_request *request = batch->request;
    struct worker *worker = &batch->workers[index];
    struct job_worker *tools = &worker->tools;
    worker->batch = batch;
    tools->settings = request->settings;
    tools->budget = &batch->budget;
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

/* Start all workers, or as many as the system allows. */
static bool start_workers(struct batch *batch, struct error *error)
{
    int started = 0, reason = 0;
    atomic_store(&batch->running, 1); /* one more than the workers, until all are started */
    for (; started < batch->worker_count; started++) {
        struct worker *worker = &batch->workers[started];
        atomic_fetch_add(&batch->running, 1);
        reason = pthread_create(&worker->thread, NULL, run_worker, worker);
        if (reason != 0) {
            atomic_fetch_sub(&batch->running, 1);
            break;
        }
    }
    batch->started = started;
    if (atomic_fetch_sub(&batch->running, 1) == 1 && started > 0)
        signal_end(batch);
    if (started == 0)
        return error_set(error, ERROR_WORK, "no thread can be started: %s; close other programs", strerror(reason));
    return true;
}

/* A job, and about how long it takes. */
struct ordered_job {
    const struct job *job;
    double work;
};

static int compare_work(const void *a, const void *b)
{
    const struct ordered_job *p = a, *q = b;
    if (p->work != q->work)
        return p->work > q->work ? -1 : 1;
    return p->job < q->job ? -1 : p->job > q->job;
}

/* Add up the bytes, and find the mean of the work for files of known size; 1 where there are none. */
static void estimate_mean(struct batch *batch)
{
    const struct batch_request *request = batch->request;
    double work = 0;
    size_t known = 0;
    for (size_t i = 0; i < request->count; i++) {
        const struct job *job = &request->jobs[i];
        batch->bytes += (double)job->bytes;
        work += estimate_work(batch, job); /* 0 where the size is not known: there is no mean yet */
        known += job->bytes > 0;
    }
    batch->mean_work = known > 0 ? work / (double)known : 1;
}

/* The longest jobs first, so that no worker is left alone with one at the end. A single worker keeps the order of the
 * list. */
static bool make_order(struct batch *batch, struct error *error)
{
    const struct batch_request *request = batch->request;
    struct ordered_job *ordered = calloc(request->count, sizeof *ordered);
    batch->order = calloc(request->count, sizeof *batch->order);
    if (batch->order == NULL || ordered == NULL) {
        free(ordered);
        return error_set(error, ERROR_WORK, "there is not enough memory for %zu files; give fewer at a time",
                         request->count);
    }
    estimate_mean(batch);
    for (size_t i = 0; i < request->count; i++) {
        ordered[i] = (struct ordered_job){.job = &request->jobs[i], .work = estimate_work(batch, &request->jobs[i])};
        batch->totals.work += ordered[i].work;
    }
    if (batch->worker_count > 1)
        qsort(ordered, request->count, sizeof *ordered, compare_work);
    for (size_t i = 0; i < request->count; i++)
        batch->order[i] = ordered[i].job;
    free(ordered);
    return true;
}

/* Where the process may not have much memory, let the workers' stacks take a quarter of it at most, and let them share
 * one heap: otherwise malloc reserves 64 MiB of addresses for each thread. */
static void limit_workers(struct batch *batch)
{
    const size_t left = budget_left();
    struct rlimit stack;
    if (left == SIZE_MAX)
        return;
    mallopt(M_ARENA_MAX, 1);
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY || stack.rlim_cur == 0)
        return;
    const size_t most = left / 4 / stack.rlim_cur;
    if (most < (size_t)batch->worker_count)
        batch->worker_count = most > 1 ? (int)most : 1;
}

/* Choose the number of workers, and of threads for an image. With fewer images than processors, an image gets several
 * threads. */
static void share_out_processors(struct batch *batch)
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
    limit_workers(batch);
    batch->takes_all = batch->worker_count >= processors;
}

static bool prepare_batch(struct batch *batch, struct error *error)
{
    const struct batch_request *request = batch->request;
    share_out_processors(batch);
    batch->totals.count = request->count;
    batch->totals.workers = batch->worker_count;
    batch->choice = request->request->choice;
    batch->uses_gpus = batch->choice == CHOICE_CUDA;
    error_set(&batch->totals.why, ERROR_NONE, "%s", batch->choice == CHOICE_AUTO ? "cpu" : "asked for");
    if (batch->choice == CHOICE_AUTO && request->gpu_count == 0)
        batch->choice = CHOICE_CPU;
    budget_open(&batch->budget, request->memory);
    pthread_mutex_init(&batch->choosing, NULL);
    pthread_mutex_init(&batch->reporting, NULL);
    pthread_rwlock_init(&batch->writing, NULL);

    batch->gpus = calloc(request->gpu_count + 1, sizeof *batch->gpus);
    batch->workers = calloc((size_t)batch->worker_count, sizeof *batch->workers);
    if (batch->gpus == NULL || batch->workers == NULL)
        return error_set(error, ERROR_WORK, "there is not enough memory for %d workers; give fewer --jobs",
                         batch->worker_count);
    for (size_t i = 0; i < request->gpu_count; i++) {
        batch->gpus[i].start = &request->gpus[i];
        constant_memory_open(&batch->gpus[i].constant_memory);
    }
    bool done = outputs_open(&batch->outputs, request->count, request->report, error) && make_order(batch, error);
    for (int i = 0; done && i < batch->worker_count; i++)
        done = prepare_worker(batch, i, error);
    return done;
}

static void release_batch(struct batch *batch)
{
    for (size_t i = 0; batch->gpus != NULL && i < batch->request->gpu_count; i++)
        constant_memory_close(&batch->gpus[i].constant_memory);
    for (int i = 0; batch->workers != NULL && i < batch->worker_count; i++)
        job_worker_close(&batch->workers[i].tools);
    if (batch->ended >= 0)
        close(batch->ended);
    budget_close(&batch->budget);
    outputs_close(&batch->outputs);
    pthread_mutex_destroy(&batch->choosing);
    pthread_mutex_destroy(&batch->reporting);
    pthread_rwlock_destroy(&batch->writing);
    free(batch->order);
    free(batch->gpus);
    free(batch->workers);
    free(batch);
}

/* Join the threads that were started, and say why an automatically chosen GPU was never ready. */
static void join_workers(struct batch *batch)
{
    for (int i = 0; i < batch->started; i++)
        pthread_join(batch->workers[i].thread, NULL);
    struct error reason;
    if (batch->started > 0 && !is_single(batch) && batch->request->request->choice == CHOICE_AUTO && batch->uses_gpus &&
        !gpu_start_wait(batch->gpus[0].start, GPU_CONTEXT, &reason))
        error_set(&batch->totals.why, ERROR_NONE, "%s", pipeline_may_have_gpu() ? reason.message : "cpu");
}

/* Do the jobs on other threads while this one waits for signals. *NUMBER becomes the signal that ended the batch. */
static bool run_on_threads(struct batch *batch, int *number, struct error *error)
{
    /* Block the signals before any thread starts: all threads inherit that, CUDA's own too. */
    sigset_t signals, before;
    signals_find_ending(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    const int descriptor = signalfd(-1, &signals, SFD_CLOEXEC);
    batch->ended = eventfd(0, EFD_CLOEXEC);
    bool done = prepare_batch(batch, error);
    if (done && batch->ended < 0)
        done = error_set(error, ERROR_WORK, "the end of the workers cannot be waited for: %s; close other files",
                         strerror(errno));
    if (done && descriptor < 0)
        done = error_set(error, ERROR_WORK, "signals cannot be waited for: %s; close other files", strerror(errno));
    if (done && batch->uses_gpus && !is_single(batch))
        open_gpus(batch);
    done = done && start_workers(batch, error);
    if (done && !wait_for_workers(batch, descriptor, number))
        return true;
    join_workers(batch);
    if (descriptor >= 0)
        close(descriptor);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

static bool run_on_this_thread(struct batch *batch, struct error *error)
{
    if (!prepare_batch(batch, error))
        return false;
    do_jobs(batch, &batch->workers[0]);
    return true;
}

bool batch_run(const struct batch_request *request, const struct batch_callbacks *callbacks,
               struct batch_totals *totals, struct error *error)
{
    *totals = (struct batch_totals){0};
    if (request->count == 0)
        return true;
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return error_set(error, ERROR_WORK, "there is not enough memory to begin; free some");
    batch->request = request;
    batch->callbacks = callbacks;
    batch->start = clock_milliseconds();
    batch->ended = -1;
    int number = 0;
    const bool done =
        request->on_this_thread ? run_on_this_thread(batch, error) : run_on_threads(batch, &number, error);
    if (number != 0) {                                     /* workers still use the batch */
        if (pthread_mutex_trylock(&batch->reporting) == 0) /* it stays locked: nothing is reported any more */
            *totals = batch->totals;
        totals->signal = number;
        return true;
    }
    batch->totals.milliseconds = clock_milliseconds() - batch->start;
    *totals = batch->totals;
    release_batch(batch);
    return done;
}
