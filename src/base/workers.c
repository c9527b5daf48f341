/* SPDX-License-Identifier: MIT
 *
 * Threads that take jobs, and the wait for them or for a signal. */
#include "base/workers.h"

#include "base/parallel.h"
#include "base/signals.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum {
    TICK_MILLISECONDS = 25,       /* between two calls of on_tick */
    PROGRESS_TICKS = 4,           /* between two calls of on_progress */
    SHUTDOWN_MILLISECONDS = 5000, /* after a signal, the longest wait for outputs that are being written */
    POLL_MILLISECONDS = 10,       /* between two looks at these outputs */
    REPORT_SECONDS = 1,           /* the longest wait for a report that has begun */
    /* The signal that tells the calling thread of the last worker's end. Nothing else sends it, and it does no harm if
     * nobody waits for it. Unlike a signal of real time, it is not put into a queue, which may be full. */
    SIGNAL_ENDED = SIGURG,
};

enum state {
    STATE_RUN,
    STATE_STOPPING,    /* the jobs that have begun continue; no other begins */
    STATE_INTERRUPTED, /* nothing is written any more */
};

struct worker_thread {
    struct workers *workers;
    pthread_t handle;
};

/* ---- Jobs ---- */

static int compare_work(const void *a, const void *b)
{
    const double *first = *(const double *const *)a, *second = *(const double *const *)b;
    if (*first != *second)
        return *first > *second ? -1 : 1;
    return first < second ? -1 : first > second;
}

/* Estimate all jobs, and put the longest ones first. */
static void order_jobs(struct workers *workers)
{
    const struct workers_request *request = &workers->request;
    size_t known = 0;
    for (size_t i = 0; i < request->count; i++) {
        workers->order[i] = workers->work + i;
        workers->work[i] = request->estimate(request->context, i);
        workers->all_work += workers->work[i];
        known += workers->work[i] > 0;
    }
    const double mean = known > 0 ? workers->all_work / (double)known : 1;
    workers->all_work += mean * (double)(request->count - known);
    for (size_t i = 0; i < request->count; i++)
        if (workers->work[i] == 0)
            workers->work[i] = mean;
    if (request->workers > 1)
        qsort(workers->order, request->count, sizeof *workers->order, compare_work);
}

bool workers_next(struct workers *workers, size_t *job)
{
    if (atomic_load(&workers->state) != STATE_RUN)
        return false;
    const size_t next = atomic_fetch_add(&workers->next, 1);
    if (next >= workers->request.count)
        return false;
    *job = (size_t)(workers->order[next] - workers->work);
    return true;
}

/* A worker that waits until it may take a job. */
struct taker {
    pthread_cond_t called;
    bool may_try;
    struct taker *before; /* which came earlier */
};

/* Wait until nobody takes a job. The last that came is the next: caches still have its memory. So if jobs come one at a
 * time, two workers do them all. One that has just done a job need not wait for another to wake up. */
static void begin_taking(struct workers *workers)
{
    struct taker self = {.called = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&workers->taking);
    while (workers->is_taken) {
        self.may_try = false;
        self.before = workers->takers;
        workers->takers = &self; // cppcheck-suppress autoVariables; end_taking takes it out before this returns
        while (!self.may_try)
            pthread_cond_wait(&self.called, &workers->taking);
    }
    workers->is_taken = true;
    pthread_mutex_unlock(&workers->taking);
}

static void end_taking(struct workers *workers)
{
    pthread_mutex_lock(&workers->taking);
    struct taker *next = workers->takers;
    workers->is_taken = false;
    if (next != NULL) {
        workers->takers = next->before;
        next->may_try = true;
        pthread_cond_signal(&next->called);
    }
    pthread_mutex_unlock(&workers->taking);
}

/* A job counts as begun before the next one is taken, so that jobs begin in the order of the stream. */
bool workers_take(struct workers *workers, bool (*take)(void *context), void *context)
{
    begin_taking(workers);
    bool done = atomic_load(&workers->state) == STATE_RUN && !workers->has_ended;
    if (done && !take(context)) {
        workers->has_ended = true;
        done = false;
    }
    if (done) {
        atomic_fetch_add(&workers->busy, 1);
        done = atomic_load(&workers->state) == STATE_RUN;
        if (!done)
            workers_end_job(workers);
    }
    end_taking(workers);
    return done;
}

void workers_end_job(struct workers *workers)
{
    if (atomic_fetch_sub(&workers->busy, 1) == 1 && atomic_load(&workers->state) != STATE_RUN)
        pthread_kill(workers->caller, SIGNAL_ENDED);
}

int workers_busy(struct workers *workers)
{
    return atomic_load(&workers->busy);
}

void workers_stop(struct workers *workers)
{
    int running = STATE_RUN;
    atomic_compare_exchange_strong(&workers->state, &running, STATE_STOPPING);
}

/* ---- Outputs ---- */

bool workers_interrupted(struct workers *workers)
{
    return atomic_load(&workers->state) == STATE_INTERRUPTED;
}

bool workers_begin_output(struct workers *workers)
{
    if (workers_interrupted(workers))
        return false;
    pthread_rwlock_rdlock(&workers->writing);
    return true;
}

void workers_end_output(struct workers *workers)
{
    pthread_rwlock_unlock(&workers->writing);
}

/* ---- Threads ---- */

static void *run_worker(void *context)
{
    struct worker_thread *thread = context;
    struct workers *workers = thread->workers;
    workers->request.run(workers->request.context, (int)(thread - workers->threads));
    if (atomic_fetch_sub(&workers->running, 1) == 1)
        pthread_kill(workers->caller, SIGNAL_ENDED);
    return NULL;
}

/* Start all threads, or as many as the system allows. */
static bool start_workers(struct workers *workers, struct error *error)
{
    int reason = 0;
    workers->caller = pthread_self();
    for (; workers->started < workers->request.workers; workers->started++) {
        struct worker_thread *thread = &workers->threads[workers->started];
        thread->workers = workers;
        atomic_fetch_add(&workers->running, 1);
        reason = parallel_start_thread(&thread->handle, run_worker, thread);
        if (reason != 0) {
            atomic_fetch_sub(&workers->running, 1);
            break;
        }
    }
    return workers->started > 0 ||
           error_set(error, ERROR_MEMORY, "no thread can be started: %s; close other programs", strerror(reason));
}

/* A report that is under way may hang at a pipe that nobody reads. Do not wait for it, so that signals are heard. */
static void report_workers_progress(struct workers *workers)
{
    if (pthread_mutex_trylock(&workers->reporting) != 0)
        return;
    workers->request.on_progress(workers->request.context);
    pthread_mutex_unlock(&workers->reporting);
}

/* Do what is due at a tick. */
static void tick(struct workers *workers, unsigned number)
{
    if (workers->request.on_tick != NULL)
        workers->request.on_tick(workers->request.context);
    if (workers->request.on_progress != NULL && number % PROGRESS_TICKS == 0)
        report_workers_progress(workers);
}

/* Wait until all workers have ended, and report progress. Returns 0, or the signal that came. After the first signal a
 * worker of a stream may wait for a job for ever, so wait for the others only. */
static int wait_for_threads(struct workers *workers)
{
    const struct workers_request *request = &workers->request;
    const int pause = request->on_progress != NULL || request->on_tick != NULL ? TICK_MILLISECONDS : -1;
    unsigned ticks = 0;
    for (int first = 0;;) {
        const bool have_ended = atomic_load(&workers->running) == 0;
        workers->at_rest = first != 0 && (have_ended || atomic_load(&workers->busy) == 0);
        if (workers->at_rest)
            return first;
        const int number = signals_wait(&workers->signals, have_ended ? 0 : pause);
        if (number != 0 && number != SIGNAL_ENDED && (first != 0 || !workers->request.is_stream))
            return number;
        if (number != 0 && number != SIGNAL_ENDED) {
            first = number;
            workers_stop(workers);
        }
        if (have_ended && number == 0)
            return 0;
        if (number == 0 && pause > 0)
            tick(workers, ++ticks);
    }
}

/* Stop all writing. Wait for outputs that are being written, but not for long, and not after another signal: even then
 * a file is whole or missing. A report that has begun hangs, or its thread only waits for a processor. Both locks stay
 * locked. */
static void stop_writing(struct workers *workers)
{
    atomic_store(&workers->state, STATE_INTERRUPTED);
    for (int waited = 0; waited < SHUTDOWN_MILLISECONDS; waited += POLL_MILLISECONDS) {
        if (pthread_rwlock_trywrlock(&workers->writing) == 0)
            break;
        const int number = signals_wait(&workers->signals, POLL_MILLISECONDS);
        if (number != 0 && number != SIGNAL_ENDED)
            break;
    }
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += REPORT_SECONDS;
    workers->hangs = pthread_mutex_timedlock(&workers->reporting, &end) != 0;
}

/* ---- The whole ---- */

int workers_limit(int wanted)
{
    const size_t left = budget_left();
    struct rlimit stack;
    if (left == SIZE_MAX)
        return wanted;
    if (getrlimit(RLIMIT_STACK, &stack) != 0 || stack.rlim_cur == RLIM_INFINITY)
        return wanted;
    const size_t bytes = stack.rlim_cur > PARALLEL_STACK_MIN ? (size_t)stack.rlim_cur : PARALLEL_STACK_MIN;
    const size_t max = left / 4 / bytes;
    return max >= (size_t)wanted ? wanted : max > 1 ? (int)max : 1;
}

bool workers_open(struct workers *workers, const struct workers_request *request, struct error *error)
{
    *workers = (struct workers){.request = *request};
    budget_open(&workers->budget, request->memory, request->usual > 0 ? request->usual : request->workers);
    pthread_rwlock_init(&workers->writing, NULL);
    pthread_mutex_init(&workers->reporting, NULL);
    pthread_mutex_init(&workers->taking, NULL);
    signals_find_ending(&workers->signals);
    sigaddset(&workers->signals, SIGNAL_ENDED);
    if (!request->on_this_thread)
        pthread_sigmask(SIG_BLOCK, &workers->signals, &workers->before);
    workers->order = calloc(request->count + 1, sizeof *workers->order);
    workers->work = calloc(request->count + 1, sizeof *workers->work);
    workers->threads = calloc((size_t)request->workers, sizeof *workers->threads);
    if (workers->order == NULL || workers->work == NULL || workers->threads == NULL)
        return error_no_memory(error, "the list of files");
    order_jobs(workers);
    return true;
}

bool workers_run(struct workers *workers, struct error *error)
{
    if (workers->request.on_this_thread) {
        workers->request.run(workers->request.context, 0);
        return true;
    }
    if (!start_workers(workers, error))
        return false;
    workers->signal = wait_for_threads(workers);
    if (workers->signal != 0 && !workers->at_rest)
        stop_writing(workers);
    for (int i = 0; workers->signal == 0 && i < workers->started; i++)
        pthread_join(workers->threads[i].handle, NULL);
    return true;
}

void workers_close(struct workers *workers)
{
    if (!workers->request.on_this_thread)
        pthread_sigmask(SIG_SETMASK, &workers->before, NULL);
    budget_close(&workers->budget);
    pthread_rwlock_destroy(&workers->writing);
    pthread_mutex_destroy(&workers->reporting);
    pthread_mutex_destroy(&workers->taking);
    free(workers->order);
    free(workers->work);
    free(workers->threads);
}
