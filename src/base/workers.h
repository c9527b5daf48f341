/* SPDX-License-Identifier: MIT
 *
 * Workers: threads that do jobs, one after another, while the calling thread waits for signals and reports progress.
 * Here a job is a number, or it comes from a stream. The user of the workers knows what it stands for, and keeps what
 * each worker needs.
 *
 * The signals that end a program are blocked from workers_open to workers_close. After one, no new job and no new
 * output begins. Outputs that are being written are waited for, but not for long: an output may be a pipe that nobody
 * reads, or its disk may be gone. With a stream of jobs, only the second signal does this: after the first one the jobs
 * that have begun are done. */
#ifndef GPUCONV_BASE_WORKERS_H
#define GPUCONV_BASE_WORKERS_H

#include "base/error.h"
#include "base/memory.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

struct workers_request {
    size_t count;        /* jobs; 0 for a stream, whose jobs workers_take takes */
    int workers;         /* at most; the system may refuse to start all, but at least one starts */
    int usual;           /* workers that do any job; the others only do jobs that take little memory; 0 means all */
    size_t memory;       /* bytes that all jobs in progress may use together, or 0 for the default of base/memory.h */
    bool on_this_thread; /* the only worker is the calling thread, which leaves signals alone and reports no progress */
    void *context;
    bool is_stream;                                /* the first signal only lets no other job begin */
    double (*estimate)(void *context, size_t job); /* about how long it takes, in any unit; 0 if that is not known */
    void (*run)(void *context, int worker);        /* on the worker's thread: do each job that workers_next gives */
    void (*on_progress)(void *context);            /* about ten times per second, on the calling thread; may be NULL */
    void (*on_tick)(void *context);                /* about 40 times per second, likewise */
};

struct workers {
    struct workers_request request;
    struct memory_budget budget; /* for the jobs */

    /* After workers_run. */
    int signal;   /* that ended the work, or 0 */
    bool hangs;   /* and a report that had begun did not end */
    bool at_rest; /* and no job is under way: a stream was left after the jobs that had begun */

    double *work;         /* the estimated work of each job; the mean of the other jobs if it is not known */
    double all_work;      /* their sum */
    const double **order; /* the jobs as they begin: where in WORK each one is */
    atomic_size_t next;
    atomic_int state;
    bool has_ended;         /* the stream */
    bool is_taken;          /* a worker takes a job from it, or waits for one to come */
    struct taker *takers;   /* workers that wait until it is not; the last one that came is the first */
    pthread_mutex_t taking; /* guards is_taken and takers */
    atomic_int busy;        /* workers that have a job of the stream */
    struct worker_thread *threads;
    int started;
    atomic_int running;
    pthread_t caller;
    sigset_t signals, before;
    pthread_mutex_t reporting; /* to be locked by whoever reports something, or changes what is reported */
    pthread_rwlock_t writing;  /* read-locked while an output is written; write-locked once none may be written */
};

/* How many of WANTED workers may start, at least 1. Where the process may not have much memory, their stacks take a
 * quarter of it at most. Call this before there are other threads. */
int workers_limit(int wanted);

/* Prepare for the jobs of REQUEST, and block signals for all threads that start later. With several workers the jobs
 * that take the longest begin first, so that no worker is left alone with one at the end; else they keep their order.
 * Release with workers_close, also after a failure. */
bool workers_open(struct workers *workers, const struct workers_request *request, struct error *error);

/* Start the workers, and return when they have ended. Fails if no thread can be started. If a signal ends the work,
 * `signal` is set, and workers may still use everything: release nothing, and call _exit. */
bool workers_run(struct workers *workers, struct error *error);

void workers_close(struct workers *workers);

/* ---- For the workers ---- */

/* Let JOB be the next job. Returns false if there is none, or none may begin any more. */
bool workers_next(struct workers *workers, size_t *job);

/* Take the next job of a stream by TAKE, which may wait for it as long as it likes, and returns false at the end of the
 * stream. One worker at a time takes a job. Returns false if there is none, or none may begin any more; TAKE may have
 * taken one by then. After a job comes workers_end_job. */
bool workers_take(struct workers *workers, bool (*take)(void *context), void *context);
void workers_end_job(struct workers *workers);

/* How many workers have a job of the stream. */
int workers_busy(struct workers *workers);

/* Let no other job begin. */
void workers_stop(struct workers *workers);

/* Has a signal ended the work? */
bool workers_interrupted(struct workers *workers);

/* Begin to write an output and to count it, and end this. Returns false if a signal came: write and count nothing. No
 * signal ends the work in between. */
bool workers_begin_output(struct workers *workers);
void workers_end_output(struct workers *workers);

#endif
