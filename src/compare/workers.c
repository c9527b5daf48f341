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

struct crew {
    const struct crew_request *request;
    struct compare_row **order; /* the pairs, largest first */
    size_t count;
    atomic_size_t next;
    atomic_bool interrupted;
    atomic_int running;
    pthread_t waiter;         /* gets the signal SIGRTMIN when the last thread ends */
    pthread_rwlock_t writing; /* read-locked while a picture is written; write-locked once none may be */
    pthread_mutex_t lock;     /* held while progress changes */
    struct crew_progress progress;
    struct memory_budget budget;
};

/* A thread, and its tools. */
struct hand {
    struct crew *crew;
    pthread_t thread;
    struct pair_worker worker;
};

static bool begin_write(void *context)
{
    struct crew *crew = context;
    if (atomic_load(&crew->interrupted))
        return false;
    pthread_rwlock_rdlock(&crew->writing);
    return true;
}

static void end_write(void *context)
{
    struct crew *crew = context;
    pthread_rwlock_unlock(&crew->writing);
}

static void *run_hand(void *context)
{
    struct hand *hand = context;
    struct crew *crew = hand->crew;
    size_t index;
    while (!atomic_load(&crew->interrupted) && (index = atomic_fetch_add(&crew->next, 1)) < crew->count) {
        struct compare_row *row = crew->order[index];
        const double bytes = (double)row->expected.bytes + (double)row->actual.bytes;
        pair_compare(&hand->worker, row);
        pthread_mutex_lock(&crew->lock);
        crew->progress.ended++;
        crew->progress.bytes_ended += bytes;
        crew->progress.pixels += (double)row->expected.width * row->expected.height;
        pthread_mutex_unlock(&crew->lock);
    }
    if (atomic_fetch_sub(&crew->running, 1) == 1)
        pthread_kill(crew->waiter, SIGRTMIN);
    return NULL;
}

/* ---- Signals ---- */

/* Wait until all threads have ended, and report progress. Returns 0, or the signal that came: writing has then stopped,
 * or did not stop in time. */
static int wait_for_hands(struct crew *crew, const sigset_t *signals)
{
    const struct timespec pause = {.tv_nsec = PROGRESS_NANOSECONDS};
    const struct crew_request *request = crew->request;
    for (;;) {
        const int number =
            request->on_progress != NULL ? sigtimedwait(signals, NULL, &pause) : sigwaitinfo(signals, NULL);
        if (number == SIGRTMIN)
            return 0;
        if (number > 0) {
            struct timespec end;
            atomic_store(&crew->interrupted, true);
            clock_gettime(CLOCK_REALTIME, &end);
            end.tv_sec += SHUTDOWN_SECONDS;
            (void)pthread_rwlock_timedwrlock(&crew->writing, &end); /* it stays locked */
            return number;
        }
        if (errno == EAGAIN && request->on_progress != NULL) {
            pthread_mutex_lock(&crew->lock);
            const struct crew_progress progress = crew->progress;
            pthread_mutex_unlock(&crew->lock);
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

static bool make_order(struct crew *crew, const struct compare_rows *rows, struct error *error)
{
    crew->order = calloc(rows->count + 1, sizeof(struct compare_row *));
    if (crew->order == NULL)
        return error_set(error, ERROR_WORK, "not enough memory for %zu pairs; compare fewer at a time", rows->count);
    for (size_t i = 0; i < rows->count; i++) {
        struct compare_row *row = &rows->rows[i];
        if (row->kind != ROW_EQUAL)
            continue;
        crew->order[crew->count++] = row;
        crew->progress.bytes += (double)row->expected.bytes + (double)row->actual.bytes;
    }
    crew->progress.count = crew->count;
    if (crew->count > 0)
        qsort(crew->order, crew->count, sizeof *crew->order, compare_sizes);
    return true;
}

/* Start WANTED threads, or as many as the system allows. Returns how many. */
static int start_hands(struct crew *crew, struct hand *hands, int wanted, int threads)
{
    /* As in parallel.c: small stacks leave address space to images. */
    enum { STACK_BYTES = 1 << 20 };
    pthread_attr_t attributes;
    int started = 0;
    if (pthread_attr_init(&attributes) != 0)
        return 0;
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    atomic_store(&crew->running, wanted);
    for (; started < wanted; started++) {
        struct hand *hand = &hands[started];
        hand->crew = crew;
        hand->worker = (struct pair_worker){.settings = crew->request->settings,
                                            .budget = &crew->budget,
                                            .begin_write = begin_write,
                                            .end_write = end_write,
                                            .context = crew};
        pair_worker_open(&hand->worker, threads);
        if (pthread_create(&hand->thread, &attributes, run_hand, hand) != 0) {
            pair_worker_close(&hand->worker);
            break;
        }
    }
    pthread_attr_destroy(&attributes);
    const int missing = wanted - started;
    if (missing > 0 && started > 0 && atomic_fetch_sub(&crew->running, missing) == missing)
        pthread_kill(crew->waiter, SIGRTMIN);
    return started;
}

bool crew_run(const struct crew_request *request, struct compare_rows *rows, int *signal, struct error *error)
{
    struct crew crew = {.request = request, .waiter = pthread_self()};
    sigset_t signals, before;
    *signal = 0;
    if (!make_order(&crew, rows, error))
        return false;
    const int threads = request->threads > 0 ? request->threads : parallel_processors();
    const int jobs = request->jobs > 0 ? request->jobs : threads;
    const int wanted = crew.count < (size_t)jobs ? (int)crew.count : jobs;
    struct hand *hands = calloc((size_t)wanted + 1, sizeof *hands);
    bool done = hands != NULL || error_set(error, ERROR_WORK, "not enough memory for %d threads; free some", wanted);
    if (done && wanted > 0) {
        budget_open(&crew.budget, request->memory);
        pthread_rwlock_init(&crew.writing, NULL);
        pthread_mutex_init(&crew.lock, NULL);
        signals_find_ending(&signals);
        sigaddset(&signals, SIGRTMIN);
        pthread_sigmask(SIG_BLOCK, &signals, &before);
        const int started = start_hands(&crew, hands, wanted, threads / wanted);
        done = started > 0 || error_set(error, ERROR_WORK, "no thread can be started; close other programs");
        *signal = done ? wait_for_hands(&crew, &signals) : 0;
        if (*signal != 0)
            return true; /* threads still run: release nothing */
        for (int i = 0; i < started; i++) {
            pthread_join(hands[i].thread, NULL);
            pair_worker_close(&hands[i].worker);
        }
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_mutex_destroy(&crew.lock);
        pthread_rwlock_destroy(&crew.writing);
        budget_close(&crew.budget);
    }
    for (size_t i = 0; done && i < rows->count; i++)
        rows->counts[rows->rows[i].kind]++;
    free(hands);
    free(crew.order);
    return done;
}
