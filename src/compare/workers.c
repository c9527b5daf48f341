/* SPDX-License-Identifier: MIT
 *
 * Threads that compare pairs, and the wait for them or for a signal. */
#include "compare/workers.h"

#include "base/signals.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    PROGRESS_NANOSECONDS = 100000000,
    SHUTDOWN_SECONDS = 5, /* after a signal, the longest wait for pictures that are being written */
};

struct workers {
    const struct workers_request *request;
    struct compare_row **order; /* the pairs, largest first */
    size_t count;
    atomic_size_t next;
    atomic_bool interrupted;
    atomic_int running;
    pthread_t waiter;         /* gets the signal SIGRTMIN when the last thread ends */
    pthread_rwlock_t writing; /* read-locked while a picture is written; write-locked once none may be */
    pthread_mutex_t lock;     /* held while progress changes */
    struct workers_progress progress;
    struct memory_budget budget;
    size_t shown;              /* rows with thumbnails */
    struct compare_row *bound; /* no row from this one on keeps thumbnails */
};

/* A thread, and its tools. */
struct worker {
    struct workers *workers;
    pthread_t thread;
    struct pair_worker tools;
};

static bool begin_write(void *context)
{
    struct workers *workers = context;
    if (atomic_load(&workers->interrupted))
        return false;
    pthread_rwlock_rdlock(&workers->writing);
    return true;
}

static void end_write(void *context)
{
    struct workers *workers = context;
    pthread_rwlock_unlock(&workers->writing);
}

/* Keep the thumbnails that a row got, or release those of the last row that has some. The caller holds the lock. */
static void keep_thumbnails(struct workers *workers, struct compare_row *row, struct thumbnails *thumbnails)
{
    if (thumbnails == NULL)
        return;
    if (row >= workers->bound) {
        thumbnails_free(thumbnails);
        return;
    }
    row->thumbnails = thumbnails;
    if (++workers->shown <= WORKERS_THUMBNAILS_MOST)
        return;
    do
        workers->bound--;
    while (workers->bound->thumbnails == NULL);
    thumbnails_free(workers->bound->thumbnails);
    workers->bound->thumbnails = NULL;
    workers->shown--;
}

static void *run_worker(void *context)
{
    struct worker *worker = context;
    struct workers *workers = worker->workers;
    size_t index;
    while (!atomic_load(&workers->interrupted) && (index = atomic_fetch_add(&workers->next, 1)) < workers->count) {
        struct compare_row *row = workers->order[index];
        const double bytes = (double)row->expected.bytes + (double)row->actual.bytes;
        pthread_mutex_lock(&workers->lock);
        worker->tools.wants_thumbnails = row < workers->bound;
        pthread_mutex_unlock(&workers->lock);
        pair_compare(&worker->tools, row);
        if (atomic_load(&workers->interrupted))
            break; /* its picture may be missing: do not count it */
        pthread_mutex_lock(&workers->lock);
        keep_thumbnails(workers, row, worker->tools.thumbnails);
        worker->tools.thumbnails = NULL;
        workers->progress.ended++;
        workers->progress.bytes_ended += bytes;
        workers->progress.pixels += (double)row->expected.width * row->expected.height;
        pthread_mutex_unlock(&workers->lock);
    }
    if (atomic_fetch_sub(&workers->running, 1) == 1)
        pthread_kill(workers->waiter, SIGRTMIN);
    return NULL;
}

static struct workers_progress read_progress(struct workers *workers)
{
    pthread_mutex_lock(&workers->lock);
    const struct workers_progress progress = workers->progress;
    pthread_mutex_unlock(&workers->lock);
    return progress;
}

/* ---- Signals ---- */

/* Wait until all threads have ended, and report progress. Returns 0, or the signal that came: writing has then stopped,
 * or did not stop in time. */
static int wait_for_workers(struct workers *workers, const sigset_t *signals)
{
    const struct timespec pause = {.tv_nsec = PROGRESS_NANOSECONDS};
    const struct workers_request *request = workers->request;
    for (;;) {
        const int number =
            request->on_progress != NULL ? sigtimedwait(signals, NULL, &pause) : sigwaitinfo(signals, NULL);
        if (number == SIGRTMIN)
            return 0;
        if (number > 0) {
            struct timespec end;
            atomic_store(&workers->interrupted, true);
            clock_gettime(CLOCK_REALTIME, &end);
            end.tv_sec += SHUTDOWN_SECONDS;
            (void)pthread_rwlock_timedwrlock(&workers->writing, &end); /* it stays locked */
            return number;
        }
        if (errno == EAGAIN && request->on_progress != NULL) {
            const struct workers_progress progress = read_progress(workers);
            request->on_progress(request->context, &progress);
        }
    }
}

/* ---- The whole ---- */

static int compare_sizes(const void *a, const void *b)
{
    const struct compare_row *p = *(struct compare_row *const *)a, *q = *(struct compare_row *const *)b;
    const uint64_t m = p->expected.bytes + p->actual.bytes, n = q->expected.bytes + q->actual.bytes;
    return m != n ? (m > n ? -1 : 1) : (p > q) - (p < q);
}

static bool make_order(struct workers *workers, const struct compare_rows *rows, struct error *error)
{
    workers->order = calloc(rows->count + 1, sizeof(struct compare_row *));
    if (workers->order == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for %zu pairs; compare fewer at a time", rows->count);
    for (size_t i = 0; i < rows->count; i++) {
        struct compare_row *row = &rows->rows[i];
        const bool lone = row->kind == ROW_MISSING || row->kind == ROW_NEW;
        if (row->kind != ROW_EQUAL && !(lone && workers->request->settings->thumbnails))
            continue;
        workers->order[workers->count++] = row;
        workers->progress.bytes += (double)row->expected.bytes + (double)row->actual.bytes;
    }
    workers->progress.count = workers->count;
    if (workers->request->settings->thumbnails && rows->count > 0)
        workers->bound = rows->rows + rows->count; /* NULL: no row is below it */
    if (workers->count > 0)
        qsort(workers->order, workers->count, sizeof *workers->order, compare_sizes);
    return true;
}

/* Start WANTED threads, or as many as the system allows. Returns how many. */
static int start_workers(struct workers *workers, struct worker *list, int wanted, int threads)
{
    /* As in parallel.c: small stacks leave address space to images. */
    enum { STACK_BYTES = 1 << 20 };
    pthread_attr_t attributes;
    int started = 0;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    atomic_store(&workers->running, wanted);
    for (; started < wanted; started++) {
        struct worker *worker = &list[started];
        worker->workers = workers;
        worker->tools = (struct pair_worker){.settings = workers->request->settings,
                                             .budget = &workers->budget,
                                             .begin_write = begin_write,
                                             .end_write = end_write,
                                             .context = workers};
        pair_worker_open(&worker->tools, threads);
        if (pthread_create(&worker->thread, &attributes, run_worker, worker) != 0) {
            pair_worker_close(&worker->tools);
            break;
        }
    }
    pthread_attr_destroy(&attributes);
    const int missing = wanted - started;
    if (missing > 0 && started > 0 && atomic_fetch_sub(&workers->running, missing) == missing)
        pthread_kill(workers->waiter, SIGRTMIN);
    return started;
}

/* Start threads and wait for them. WORKERS is ready, and has pairs. Returns false if no thread can be started. */
static bool run_threads(struct workers *workers, int *signal, struct error *error)
{
    const struct workers_request *request = workers->request;
    sigset_t signals, before;
    const int threads = request->threads > 0 ? request->threads : parallel_processors();
    const int jobs = request->jobs > 0 ? request->jobs : threads;
    const int wanted = workers->count < (size_t)jobs ? (int)workers->count : jobs;
    struct worker *list = calloc((size_t)wanted, sizeof *list);
    if (list == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for %d threads; free some", wanted);
    budget_open(&workers->budget, request->memory);
    pthread_rwlock_init(&workers->writing, NULL);
    signals_find_ending(&signals);
    sigaddset(&signals, SIGRTMIN);
    pthread_sigmask(SIG_BLOCK, &signals, &before);
    const int started = start_workers(workers, list, wanted, threads / wanted);
    *signal = started > 0 ? wait_for_workers(workers, &signals) : 0;
    if (*signal != 0)
        return true; /* threads still run: release nothing */
    for (int i = 0; i < started; i++) {
        pthread_join(list[i].thread, NULL);
        pair_worker_close(&list[i].tools);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_rwlock_destroy(&workers->writing);
    budget_close(&workers->budget);
    free(list);
    return started > 0 || error_set(error, ERROR_WORK, "no thread can be started; close other programs");
}

bool workers_run(const struct workers_request *request, struct compare_rows *rows, int *signal,
                 struct workers_progress *progress, struct error *error)
{
    *signal = 0;
    struct workers *workers = calloc(1, sizeof *workers); /* threads may outlive this call */
    if (workers == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for threads; free some");
    workers->request = request;
    workers->waiter = pthread_self();
    pthread_mutex_init(&workers->lock, NULL);
    bool done = make_order(workers, rows, error);
    if (done && workers->count > 0)
        done = run_threads(workers, signal, error);
    *progress = read_progress(workers);
    if (*signal != 0)
        return true;
    for (size_t i = 0; done && i < rows->count; i++)
        rows->counts[rows->rows[i].kind]++;
    pthread_mutex_destroy(&workers->lock);
    free(workers->order);
    free(workers);
    return done;
}
