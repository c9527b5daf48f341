/* SPDX-License-Identifier: MIT
 *
 * Workers, the limit on their memory, and the end of it all: by itself, by a failure, by a signal. */
#include "batch/batch.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/parallel.h"
#include "codec/codec.h"
#include "metadata/metadata.h"
#include "variants/choose.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* How often progress is told of, and how long and how often an output is waited for that is being written when a signal
 * comes, in milliseconds. */
enum { PROGRESS_MILLISECONDS = 100, PATIENCE_MILLISECONDS = 5000, GLANCE_MILLISECONDS = 10 };

/* ---- Memory ---- */

/* Bytes that are reserved, of which there is a limit. A job needs some for its file before it knows what the image
 * needs. Whoever holds the first while it waits for the second is the only one that waits so (it is admitted): all
 * others hold nothing, or all that they need, and end, so there is no deadlock. */
struct gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t limit, used;
    size_t waiting; /* jobs that wait; while there are any, nobody overtakes them */
    bool admitted;
};

/* Reserve SIZE bytes if that needs no waiting. */
static bool gate_try(struct gate *gate, size_t size)
{
    pthread_mutex_lock(&gate->mutex);
    const bool done = gate->waiting == 0 && size <= gate->limit - gate->used;
    if (done)
        gate->used += size;
    pthread_mutex_unlock(&gate->mutex);
    return done;
}

/* Wait to be the one that may wait for more. */
static void gate_admit(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->waiting++;
    while (gate->admitted)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    gate->admitted = true;
    pthread_mutex_unlock(&gate->mutex);
}

/* Being admitted, reserve SIZE bytes. What the job holds and these must not exceed the limit. */
static void gate_wait(struct gate *gate, size_t size)
{
    pthread_mutex_lock(&gate->mutex);
    while (size > gate->limit - gate->used)
        pthread_cond_wait(&gate->changed, &gate->mutex);
    gate->used += size;
    pthread_mutex_unlock(&gate->mutex);
}

static void gate_dismiss(struct gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->waiting--;
    gate->admitted = false;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

static void gate_release(struct gate *gate, size_t size)
{
    pthread_mutex_lock(&gate->mutex);
    gate->used -= size;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

/* ---- Workers ---- */

struct batch;

struct gpu {
    struct batch *batch;
    int index;
    pthread_t opener; /* creates the context while the first files are decoded */
    bool opening;
    pthread_mutex_t constant_memory_lock; /* see struct request */
    atomic_bool ready;
    struct error reason;  /* why it is not, once opener has been joined */
    atomic_bool lamented; /* its failure has been told of */
};

enum state {
    STATE_RUN,
    STATE_NO_MORE,     /* what has begun is ended, nothing else is begun */
    STATE_INTERRUPTED, /* nothing is written any more */
};

struct batch {
    const struct batch_request *request;
    const struct batch_listener *listener;
    struct gate gate;
    struct gpu *gpus;
    struct worker *workers;
    int worker_count; /* that there are to be */
    int started;      /* that there are */
    int threads;      /* of the CPU for one image */
    double bytes;     /* of all inputs */

    const struct job **order; /* in which jobs are begun */
    atomic_size_t next;       /* the one that is to begin */
    atomic_int state;         /* enum state */
    atomic_int running;       /* workers */
    int ended;                /* an eventfd that the last worker writes to */

    pthread_mutex_t choosing;
    enum choice choice; /* CHOICE_AUTO until the first image that a GPU could work on is there to choose by */

    pthread_rwlock_t writing; /* for reading: an output is being written; for writing: none may be any more */
    pthread_mutex_t telling;  /* held while the listener is called and totals are changed */
    struct batch_totals totals;
    double start;
};

/* Of one thread. */
struct worker {
    struct batch *batch;
    pthread_t thread;
    struct gpu *gpu; /* NULL: there is none for it */
    struct request request;
    struct pipeline pipeline;
    size_t kept;     /* bytes reserved for what the pipeline keeps */
    size_t reserved; /* for this image */
};

static void release(struct worker *worker)
{
    gate_release(&worker->batch->gate, worker->reserved);
    worker->reserved = 0;
}

/* Give back the buffers that are kept. */
static void shrink(struct worker *worker)
{
    pipeline_shrink(&worker->pipeline);
    gate_release(&worker->batch->gate, worker->kept);
    worker->kept = 0;
}

/* Bytes that an image of INFO takes from a file of SIZE, but for what the pipeline keeps: the file, a copy of it that a
 * decoder makes, and with S its samples, in the file or of BITS each, whichever is more, the most of
 *   decoding: S, and S more for an inflated PNG, or 3 S for the coefficients and planes of a progressive JPEG;
 *   making other bits of them: S and at most S more;
 *   turning it upright: S and S;
 *   encoding: S, S filtered rows and, for the file, as much again and what growing it by halves takes; a JPEG of 16
 * bits a sample is made of S reduced, which is half of it.
 * When encoding begins the file is no longer there: its bytes are then those of its metadata, twice. */
static size_t image_need(const struct codec_info *info, int bits, size_t size)
{
    const size_t bytes = bits > 8 || info->bits > 8 ? 2 : 1;
    return 2 * size + 4 * bytes * (size_t)info->width * (size_t)info->height * (size_t)info->channels;
}

static bool too_large(const struct gate *gate, const struct job *job, size_t need, struct error *error)
{
    const double mega = 1 << 20;
    return error_about(error, ERROR_WORK, job->input,
                       "needs %.1f MiB of memory, and --memory allows %.1f MiB; allow more", (double)need / mega,
                       (double)gate->limit / mega);
}

/* Reserve memory for the job's image, given its file's bytes. With WAIT, the job has been admitted. */
static bool reserve(struct worker *worker, const struct job *job, const struct codec_info *info, size_t size, bool wait,
                    bool *reserved, struct error *error)
{
    struct gate *gate = &worker->batch->gate;
    const int bits = codec_bits(info, &worker->batch->request->codec);
    const size_t planes = pipeline_need(&worker->pipeline, info->width, info->height, info->channels, bits);
    const size_t image = image_need(info, bits, size);
    *reserved = false;
    if (planes > gate->limit || image > gate->limit - planes)
        return too_large(gate, job, image + planes, error);
    const size_t growth = planes > worker->kept ? planes - worker->kept : 0;
    const size_t more = image + growth - worker->reserved;
    if (wait)
        gate_wait(gate, more);
    else if (!gate_try(gate, more))
        return true;
    worker->reserved = image;
    worker->kept += growth;
    *reserved = true;
    return true;
}

/* Read the job's file, look what it holds and reserve memory for it. */
static bool read_within(struct worker *worker, const struct job *job, bool wait, struct result *result,
                        struct codec_info *info, uint8_t **bytes, size_t *size, bool *reserved)
{
    struct gate *gate = &worker->batch->gate;
    const size_t expected = job->bytes < CODEC_MAX_BYTES ? (size_t)job->bytes : CODEC_MAX_BYTES;
    *reserved = false;
    *bytes = NULL;
    if (expected > gate->limit)
        return too_large(gate, job, expected, &result->error);
    if (wait)
        gate_wait(gate, expected);
    else if (!gate_try(gate, expected))
        return true;
    worker->reserved = expected;
    stages_end(&result->stages, STAGE_WAIT);

    bool done = file_read(job->input, CODEC_MAX_BYTES, bytes, size, &result->error);
    stages_end(&result->stages, STAGE_READ);
    done = done && codec_inspect(*bytes, *size, job->input, &worker->batch->request->codec, info, &result->error);
    stages_end(&result->stages, STAGE_DECODE);
    /* Of a file that has grown since it was listed, no more is known than after reading it. */
    done = done && reserve(worker, job, info, *size > expected ? *size : expected, wait, reserved, &result->error);
    stages_end(&result->stages, STAGE_WAIT);
    if (!done || !*reserved) {
        free(*bytes);
        *bytes = NULL;
        release(worker);
    }
    return done;
}

static bool load(struct worker *worker, const struct job *job, struct image *image, struct metadata *metadata,
                 struct chroma_subsampling *chroma, struct result *result)
{
    const struct batch_request *request = worker->batch->request;
    struct gate *gate = &worker->batch->gate;
    struct codec_settings settings = worker->batch->request->codec;
    struct codec_info info;
    uint8_t *bytes;
    size_t size;
    bool reserved;
    bool done = read_within(worker, job, false, result, &info, &bytes, &size, &reserved);
    if (done && !reserved) {
        shrink(worker); /* who waits holds nothing */
        gate_admit(gate);
        done = read_within(worker, job, true, result, &info, &bytes, &size, &reserved);
        gate_dismiss(gate);
    }
    if (!done)
        return false;
    result->input_bytes = size;
    settings.threads = worker->batch->threads;
    done = codec_decode_inspected(bytes, size, job->input, &settings, &info, image, &result->error) &&
           info.format->read_metadata(bytes, size, metadata, &result->error) &&
           (request->not_turned || metadata_orient(metadata, image, &info.chroma_subsampling, &result->error));
    free(bytes);
    stages_end(&result->stages, STAGE_DECODE);
    if (!done)
        return false;
    if (request->strip)
        metadata_free(metadata);
    result->width = image->width;
    result->height = image->height;
    result->channels = image->channels;
    result->bits = image->bits;
    result->not_read = metadata->dropped;
    result->decoder = info.codec;
    *chroma = info.chroma_subsampling;
    return true;
}

/* ---- Where to work ---- */

static void *open_gpu(void *context)
{
    struct gpu *gpu = context;
    if (pipeline_warm(gpu->index, &gpu->reason))
        atomic_store(&gpu->ready, true);
    return NULL; /* a failure shows again, and is told of, where the GPU is to be used */
}

static void open_gpus(struct batch *batch)
{
    for (size_t i = 0; i < batch->request->device_count; i++) {
        struct gpu *gpu = &batch->gpus[i];
        gpu->opening = pthread_create(&gpu->opener, NULL, open_gpu, gpu) == 0;
        if (!gpu->opening)
            error_set(&gpu->reason, ERROR_WORK, "no thread can be started to open the GPU");
    }
}

/* The choice for all images by the first of them: as many of its size as there are of its bytes in all the files. */
static void choose(struct batch *batch, const struct image *image, const struct job *job)
{
    const struct request *request = batch->request->request;
    const double images = job->bytes > 0 ? batch->bytes / (double)job->bytes : (double)batch->request->count;
    const struct work work = {
        .width = image->width,
        .height = image->height,
        .planes = image_planes(image, request->alpha),
        .sample = pipeline_sample(request, image->bits),
        .threads = batch->threads,
    };
    const int gpus = (int)batch->request->device_count, workers = batch->worker_count;
    const double cpu = cost_batch_cpu_seconds(request->filters, request->count, &work, images, workers);
    const double cuda = cost_batch_cuda_seconds(request->filters, request->count, &work, images, workers, gpus);
    batch->choice = cuda < cpu ? CHOICE_CUDA : CHOICE_CPU;
    error_set(&batch->totals.why, ERROR_NONE,
              batch->choice == CHOICE_CUDA
                  ? "a GPU is expected to take %.2f s of the batch with its start-up, the CPU %.2f s"
                  : "a GPU would be expected to take %.2f s of the batch with its start-up, the CPU takes %.2f s",
              cuda, cpu);
    if (batch->choice == CHOICE_CUDA)
        open_gpus(batch);
}

/* Where this image is worked on. What chose the GPU itself need not wait for it: the CPU works until it is ready. */
static enum choice choice_for(struct worker *worker, const struct image *image, const struct job *job)
{
    struct batch *batch = worker->batch;
    pthread_mutex_lock(&batch->choosing);
    if (batch->choice == CHOICE_AUTO)
        choose(batch, image, job);
    const enum choice choice = batch->choice;
    pthread_mutex_unlock(&batch->choosing);
    if (choice == CHOICE_CUDA && batch->request->request->choice == CHOICE_AUTO && !atomic_load(&worker->gpu->ready))
        return CHOICE_CPU;
    return choice;
}

static void lament(struct worker *worker)
{
    struct batch *batch = worker->batch;
    if (worker->pipeline.fallback.code == ERROR_NONE || atomic_exchange(&worker->gpu->lamented, true))
        return;
    pthread_mutex_lock(&batch->telling);
    if (batch->listener->warn != NULL)
        batch->listener->warn(batch->listener->context, worker->pipeline.fallback.message);
    pthread_mutex_unlock(&batch->telling);
}

static void note_variants(const struct pipeline *pipeline, struct result *result)
{
    size_t used = 0;
    for (size_t i = 0; i < pipeline->request->count && used < sizeof result->variants; i++)
        used += (size_t)snprintf(result->variants + used, sizeof result->variants - used, "%s%s", i > 0 ? "," : "",
                                 pipeline->plans[i].variant->name);
    result->backend = pipeline->backend;
    result->device = pipeline->backend == BACKEND_CUDA ? pipeline->request->device : -1;
}

static bool convolve(struct worker *worker, struct image *image, struct image *filtered, struct result *result)
{
    worker->request.choice = choice_for(worker, image, result->job);
    const bool done = pipeline_plan(&worker->pipeline, image, &result->stages, &result->error) &&
                      pipeline_run(&worker->pipeline, image, filtered, &result->error);
    lament(worker);
    if (done)
        note_variants(&worker->pipeline, result);
    return done;
}

/* ---- One job ---- */

/* Is the output there? An empty file is what a power cut may leave of one. */
static bool is_there(const char *path)
{
    struct stat facts;
    return stat(path, &facts) == 0 && (facts.st_size > 0 || !S_ISREG(facts.st_mode));
}

static bool make_folder(const char *path, struct error *error)
{
    struct stat facts;
    char *folder = file_folder(path);
    if (folder == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for the name of a folder; free some");
    const bool done = stat(folder, &facts) == 0 || file_make_folders(folder, error);
    free(folder);
    return done;
}

/* Write the output and take down the result, both or neither. A batch that has been interrupted ends here. */
static void conclude(struct worker *worker, const uint8_t *bytes, size_t size, struct result *result)
{
    struct batch *batch = worker->batch;
    const struct batch_listener *listener = batch->listener;
    const char *path = result->job->output;
    if (atomic_load(&batch->state) == STATE_INTERRUPTED)
        return;
    pthread_rwlock_rdlock(&batch->writing);
    /* In place, a folder that is not there any more was moved, and its files with it. */
    if (bytes != NULL && !((strcmp(path, result->job->input) == 0 || make_folder(path, &result->error)) &&
                           file_write(path, bytes, size, &result->error)))
        result->outcome = OUTCOME_FAILED;
    stages_end(&result->stages, STAGE_WRITE);
    pthread_mutex_lock(&batch->telling);
    if (listener->record != NULL)
        listener->record(listener->context, result);
    pthread_mutex_unlock(&batch->telling);
    pthread_rwlock_unlock(&batch->writing);
}

/* Count and tell. */
static void tell(struct batch *batch, const struct result *result)
{
    struct batch_totals *totals = &batch->totals;
    pthread_mutex_lock(&batch->telling);
    totals->done += result->outcome == OUTCOME_DONE;
    totals->skipped += result->outcome == OUTCOME_SKIPPED;
    totals->failed += result->outcome == OUTCOME_FAILED;
    if (result->outcome == OUTCOME_SKIPPED)
        totals->bytes -= (double)result->job->bytes; /* what is skipped says nothing about the time that is left */
    else
        totals->bytes_ended += (double)result->job->bytes;
    if (result->outcome == OUTCOME_DONE)
        totals->pixels += (double)result->width * result->height;
    if (batch->listener->ended != NULL)
        batch->listener->ended(batch->listener->context, result);
    pthread_mutex_unlock(&batch->telling);
}

static void do_job(struct worker *worker, const struct job *job)
{
    struct batch *batch = worker->batch;
    struct result result = {.job = job, .device = -1, .outcome = OUTCOME_FAILED, .input_bytes = (size_t)job->bytes};
    struct image image = {0}, filtered = {0};
    struct metadata metadata = {0};
    struct codec_settings settings = batch->request->codec;
    uint8_t *bytes = NULL;
    size_t size = 0;
    stages_begin(&result.stages);
    if (job->problem != NULL) {
        error_about(&result.error, ERROR_WORK, job->input, "%s", job->problem);
    } else if (batch->request->skip_existing && is_there(job->output)) {
        result.outcome = OUTCOME_SKIPPED;
    } else if (load(worker, job, &image, &metadata, &settings.chroma_subsampling, &result) &&
               codec_writer(job->format, image.bits, &settings, &result.error) != NULL &&
               convolve(worker, &image, &filtered, &result)) {
        if (filtered.samples != image.samples)
            image_free(&image);
        result.alpha_dropped = !job->format->holds_alpha && image_has_alpha(&filtered);
        result.reduced = filtered.bits > job->format->most_bits;
        settings.threads = batch->threads;
        if (codec_encode(&filtered, job->format, &settings, &bytes, &size, &result.error) &&
            job->format->write_metadata(&metadata, &bytes, &size, &result.not_written, &result.error)) {
            result.outcome = OUTCOME_DONE;
            result.encoder = codec_writer(job->format, filtered.bits, &settings, NULL);
        } else {
            free(bytes); /* without its metadata */
            bytes = NULL;
            size = 0;
        }
        result.output_bytes = size;
        stages_end(&result.stages, STAGE_ENCODE);
    }
    image_free(&image);
    metadata_free(&metadata);
    conclude(worker, bytes, size, &result);
    free(bytes);
    release(worker);
    if (result.outcome == OUTCOME_FAILED)
        error_add_subject(&result.error, job->input);
    if (result.outcome == OUTCOME_FAILED && batch->request->fail_fast) {
        int running = STATE_RUN;
        atomic_compare_exchange_strong(&batch->state, &running, STATE_NO_MORE);
    }
    if (atomic_load(&batch->state) != STATE_INTERRUPTED)
        tell(batch, &result);
}

static void *work(void *context)
{
    struct worker *worker = context;
    struct batch *batch = worker->batch;
    while (atomic_load(&batch->state) == STATE_RUN) {
        const size_t index = atomic_fetch_add(&batch->next, 1);
        if (index >= batch->request->count)
            break;
        do_job(worker, batch->order[index]);
    }
    pipeline_close(&worker->pipeline);
    gate_release(&batch->gate, worker->kept);
    const uint64_t one = 1;
    if (atomic_fetch_sub(&batch->running, 1) == 1 && write(batch->ended, &one, sizeof one) < 0)
        abort(); /* an eventfd takes a number that is not its largest */
    return NULL;
}

/* ---- The whole ---- */

/* The signals that end a program and are not ignored. */
static void find_signals(sigset_t *set)
{
    static const int all[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU};
    sigemptyset(set);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct sigaction action;
        if (sigaction(all[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
            sigaddset(set, all[i]);
    }
}

/* Let no output be written any more. One that is being written is waited for, as long as no other signal comes, but not
 * for ever: the output may be a pipe that nobody reads, or stand on a disk that is gone. A file is whole or not there
 * even then. */
static void stop_writing(struct batch *batch, int signals)
{
    struct pollfd file = {.fd = signals, .events = POLLIN};
    for (int waited = 0; waited < PATIENCE_MILLISECONDS; waited += GLANCE_MILLISECONDS)
        if (pthread_rwlock_trywrlock(&batch->writing) == 0 /* and never unlocked */ ||
            poll(&file, 1, GLANCE_MILLISECONDS) > 0)
            return;
}

/* Wait for the workers, telling of progress. Returns false on a signal, whose *NUMBER is set, after which nothing is
 * written any more. */
static bool wait_for_workers(struct batch *batch, int signals, int *number)
{
    struct pollfd files[] = {{.fd = batch->ended, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
    const struct batch_listener *listener = batch->listener;
    for (;;) {
        const int ready = poll(files, 2, listener->progress != NULL ? PROGRESS_MILLISECONDS : -1);
        struct signalfd_siginfo info;
        if (ready > 0 && (files[1].revents & POLLIN) && read(signals, &info, sizeof info) == sizeof info) {
            atomic_store(&batch->state, STATE_INTERRUPTED);
            stop_writing(batch, signals);
            *number = (int)info.ssi_signo;
            return false;
        }
        if (ready > 0 && (files[0].revents & POLLIN))
            return true;
        /* Who tells of something just now may wait for a pipe that nobody reads; a signal must still be heard here. */
        if (listener->progress != NULL && pthread_mutex_trylock(&batch->telling) == 0) {
            batch->totals.milliseconds = clock_milliseconds() - batch->start;
            listener->progress(listener->context, &batch->totals);
            pthread_mutex_unlock(&batch->telling);
        }
    }
}

static bool prepare_worker(struct batch *batch, int index, struct error *error)
{
    struct worker *worker = &batch->workers[index];
    const size_t devices = batch->request->device_count;
    worker->batch = batch;
    worker->gpu = devices > 0 ? &batch->gpus[(size_t)index % devices] : NULL;
    worker->request = *batch->request->request;
    worker->request.threads = batch->threads;
    worker->request.page_locked = worker->request.cpu_fallback = true;
    if (worker->gpu != NULL) {
        worker->request.device = worker->gpu->index;
        worker->request.constant_memory_lock = &worker->gpu->constant_memory_lock;
    }
    return pipeline_open(&worker->pipeline, &worker->request, error);
}

/* Start the workers; all of them, or as many as the system lets. */
static bool start_workers(struct batch *batch, struct error *error)
{
    int started = 0, reason = 0;
    atomic_store(&batch->running, 1); /* counts as one until all are started */
    for (; started < batch->worker_count; started++) {
        struct worker *worker = &batch->workers[started];
        atomic_fetch_add(&batch->running, 1);
        reason = pthread_create(&worker->thread, NULL, work, worker);
        if (reason != 0) {
            atomic_fetch_sub(&batch->running, 1);
            break;
        }
    }
    batch->started = started;
    const uint64_t one = 1;
    if (atomic_fetch_sub(&batch->running, 1) == 1 && started > 0 && write(batch->ended, &one, sizeof one) < 0)
        abort();
    if (started == 0)
        return error_set(error, ERROR_WORK, "no thread can be started: %s; close other programs", strerror(reason));
    return true;
}

static int compare_sizes(const void *a, const void *b)
{
    const struct job *p = *(struct job *const *)a, *q = *(struct job *const *)b;
    if (p->bytes != q->bytes)
        return p->bytes > q->bytes ? -1 : 1;
    return p < q ? -1 : p > q;
}

/* Largest files first, so that at the end no worker is left alone with one. One worker takes them as they come. */
static bool make_order(struct batch *batch, struct error *error)
{
    const struct batch_request *request = batch->request;
    batch->order = calloc(request->count, sizeof *batch->order);
    if (batch->order == NULL)
        return error_set(error, ERROR_WORK, "there is not enough memory for %zu files; give fewer at a time",
                         request->count);
    for (size_t i = 0; i < request->count; i++) {
        batch->order[i] = &request->jobs[i];
        batch->bytes += (double)request->jobs[i].bytes;
    }
    batch->totals.bytes = batch->bytes;
    if (batch->worker_count > 1)
        qsort(batch->order, request->count, sizeof *batch->order, compare_sizes);
    return true;
}

static bool prepare(struct batch *batch, struct error *error)
{
    const struct batch_request *request = batch->request;
    const int processors = parallel_processors();
    const int wanted = request->workers > 0 ? request->workers : processors;
    const bool few = request->count < (size_t)wanted; /* then they share out the processors */
    batch->worker_count = few ? (int)request->count : wanted;
    batch->threads = request->request->threads > 0 ? request->request->threads : few ? wanted / batch->worker_count : 1;
    if (batch->threads > 1) {
        const int allowed = parallel_allowed(batch->worker_count * batch->threads) / batch->worker_count;
        batch->threads = allowed > 1 ? allowed : 1;
    }
    batch->totals.count = request->count;
    batch->totals.workers = batch->worker_count;
    batch->choice = request->request->choice;
    if (batch->choice == CHOICE_AUTO && request->device_count == 0) {
        batch->choice = CHOICE_CPU;
        error_set(&batch->totals.why, ERROR_NONE, "there is no GPU");
    } else {
        error_set(&batch->totals.why, ERROR_NONE, "asked for");
    }
    batch->gate.limit = request->memory;
    pthread_mutex_init(&batch->gate.mutex, NULL);
    pthread_cond_init(&batch->gate.changed, NULL);
    pthread_mutex_init(&batch->choosing, NULL);
    pthread_mutex_init(&batch->telling, NULL);
    pthread_rwlock_init(&batch->writing, NULL);

    batch->gpus = calloc(request->device_count + 1, sizeof *batch->gpus);
    batch->workers = calloc((size_t)batch->worker_count, sizeof *batch->workers);
    batch->ended = eventfd(0, EFD_CLOEXEC);
    if (batch->ended < 0)
        return error_set(error, ERROR_WORK, "the workers' end cannot be waited for: %s; close other files",
                         strerror(errno));
    if (batch->gpus == NULL || batch->workers == NULL)
        return error_set(error, ERROR_WORK, "there is not enough memory for %d workers; give fewer --jobs",
                         batch->worker_count);
    for (size_t i = 0; i < request->device_count; i++) {
        batch->gpus[i].batch = batch;
        batch->gpus[i].index = request->devices[i];
        pthread_mutex_init(&batch->gpus[i].constant_memory_lock, NULL);
    }
    bool done = make_order(batch, error);
    for (int i = 0; done && i < batch->worker_count; i++)
        done = prepare_worker(batch, i, error);
    return done;
}

static void finish(struct batch *batch)
{
    for (size_t i = 0; batch->gpus != NULL && i < batch->request->device_count; i++)
        pthread_mutex_destroy(&batch->gpus[i].constant_memory_lock);
    for (int i = 0; batch->workers != NULL && i < batch->worker_count; i++)
        pipeline_close(&batch->workers[i].pipeline);
    if (batch->ended >= 0)
        close(batch->ended);
    pthread_mutex_destroy(&batch->gate.mutex);
    pthread_cond_destroy(&batch->gate.changed);
    pthread_mutex_destroy(&batch->choosing);
    pthread_mutex_destroy(&batch->telling);
    pthread_rwlock_destroy(&batch->writing);
    free(batch->order);
    free(batch->gpus);
    free(batch->workers);
    free(batch);
}

bool batch_run(const struct batch_request *request, const struct batch_listener *listener, struct batch_totals *totals,
               struct error *error)
{
    *totals = (struct batch_totals){0};
    if (request->count == 0)
        return true;
    struct batch *batch = calloc(1, sizeof *batch);
    if (batch == NULL)
        return error_set(error, ERROR_WORK, "there is not enough memory to begin; free some");
    batch->request = request;
    batch->listener = listener;
    batch->start = clock_milliseconds();

    /* Blocked before any thread is there, so that all threads inherit it, CUDA's own too. */
    sigset_t signals, before;
    find_signals(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    const int descriptor = signalfd(-1, &signals, SFD_CLOEXEC);
    bool done = prepare(batch, error);
    if (done && descriptor < 0)
        done = error_set(error, ERROR_WORK, "signals cannot be waited for: %s; close other files", strerror(errno));
    if (done && batch->choice == CHOICE_CUDA)
        open_gpus(batch);
    done = done && start_workers(batch, error);
    if (done && !wait_for_workers(batch, descriptor, &totals->signal))
        return true;
    for (int i = 0; i < batch->started; i++)
        pthread_join(batch->workers[i].thread, NULL);
    for (size_t i = 0; batch->gpus != NULL && i < request->device_count; i++)
        if (batch->gpus[i].opening)
            pthread_join(batch->gpus[i].opener, NULL);
    if (done && batch->gpus != NULL && request->request->choice == CHOICE_AUTO && batch->choice == CHOICE_CUDA &&
        !atomic_load(&batch->gpus[0].ready))
        batch->totals.why = batch->gpus[0].reason;
    batch->totals.milliseconds = clock_milliseconds() - batch->start;
    *totals = batch->totals;
    if (descriptor >= 0)
        close(descriptor);
    finish(batch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return done;
}

size_t batch_default_memory(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
    /* A machine that does not say gets what the smallest have. */
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 4 : (size_t)1 << 28;
}
