/* SPDX-License-Identifier: MIT
 *
 * A batch: jobs that workers do within a memory limit. They are a list, or a stream of unknown length. A
 * single image is a batch of one job. Callbacks report what happens; nothing here prints. */
#ifndef GPUCONV_BATCH_H
#define GPUCONV_BATCH_H

#include "batch/file_list.h"
#include "batch/job.h"
#include "batch/report.h"
#include "pipeline/pipeline.h"

#include <stdbool.h>
#include <stddef.h>

/* A stream of jobs. Nothing is read ahead: a worker takes a job when it has done the one before. */
struct job_source {
    /* Wait for the next job, and return it, or the first of those with one input; NULL at the end. One thread at a time
     * calls this, and not after the end. */
    struct job *(*next)(void *context);
    /* In order: complete the result of a job before it is counted and reported. It may become a failed one. It is
     * NULL if results are complete. One thread at a time calls this. */
    void (*complete)(void *context, struct job_result *result);
    void (*release)(void *context, struct job *job); /* JOB has been reported. Any thread calls this. */
    void *context;
    bool in_order; /* report the jobs in their order, not as they finish */
    size_t window; /* in order: the limit of jobs that have begun and are not reported; 0 for four per worker */
    double bytes;  /* the sum of the sizes of all jobs' files; 0 if not known */
};

struct batch_request {
    const struct recipe *recipe; /* what to do to each image */
    const struct job_settings *settings;
    const struct job *jobs;
    size_t count;
    const struct job_source *source; /* the stream of jobs, instead of `jobs`; NULL for a list */
    int workers;                     /* jobs at a time; 0 for one on each processor */
    int threads;                     /* CPU threads for one image; if 0, the workers share the processors */
    struct gpu_start *gpus;          /* worker I uses GPU number I % gpu_count */
    size_t gpu_count;
    size_t memory;         /* bytes that all images in progress may use together; 0 for the default (base/memory.h) */
    bool cpu_fallback;     /* the CPU takes over from a GPU that fails, even where a recipe asks for it */
    bool fail_fast;        /* begin no job after one has failed */
    struct report *report; /* no output may be this open file */
    /* Do the jobs on the calling thread, the only worker, and leave the signals alone: a signal then ends the program
     * at once, and the output is whole or missing. Not for a batch that must hear of every output, or with
     * on_progress. */
    bool on_this_thread;
};

struct batch_totals {
    size_t count, done, skipped, failed; /* a stream counts the jobs that it has taken */
    size_t may_retry;                    /* failed jobs that may succeed later */
    double pixels;                       /* the sum of the pixels of all inputs that are done */
    double work, work_done; /* estimates for all inputs except skipped ones, in bytes of the quickest format */
    double milliseconds;
    struct job_progress only; /* for on_progress of a batch of one job: the progress of the job */
    int workers;
    bool no_new_files; /* the batch has ended because an output's folder or disk is full or read-only */
    int signal;        /* the signal that ended the batch, or 0 */
    char why[512];     /* why this backend did the work */
};

/* Callbacks. Only one runs at a time. */
struct batch_callbacks {
    void *context;
    /* A job has reached EVENT. JOB_INPUT_KNOWN and JOB_PLANNED are reported in a batch of one job only.
     * JOB_GPU_FAILED is reported once for each GPU. */
    void (*report)(void *context, const struct job_result *result, enum job_event event);
    void (*on_progress)(void *context, const struct batch_totals *totals); /* about ten times a second. May be NULL. */
};

/* Do all jobs. Fails only if it cannot begin; failed jobs are counted. The signals that end a program are blocked
 * meanwhile. If one comes, writing stops, the jobs under way are reported as interrupted, and totals->signal is set;
 * totals->count is 0 if a callback hangs. Workers may then still use the request and the callbacks, so the caller must
 * release nothing and call _exit.
 *
 * A stream goes on after a full folder. After the first signal, no job begins, and those under way are done and
 * reported before batch_run returns with totals->signal. So the caller may complete its own output before it calls
 * _exit; a worker may still wait in `next`. Reports in order come after the output is written, and a second signal may
 * come in between. */
bool batch_run(const struct batch_request *request, const struct batch_callbacks *callbacks,
               struct batch_totals *totals, struct error *error);

#endif
