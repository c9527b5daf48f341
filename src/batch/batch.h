/* SPDX-License-Identifier: MIT
 *
 * A list of jobs, done by a number of workers within a memory limit; one job is a batch of one. What happens is passed to
 * callbacks; nothing here prints. */
#ifndef GPUCONV_BATCH_H
#define GPUCONV_BATCH_H

#include "batch/file_list.h"
#include "batch/job.h"
#include "pipeline/pipeline.h"

#include <stdbool.h>
#include <stddef.h>

struct batch_request {
    const struct request *request; /* what is done to each image; threads 0: the processors are shared out */
    const struct job_settings *settings;
    const struct job *jobs;
    size_t count;
    int workers;        /* jobs at a time; 0: one a processor */
    const int *devices; /* GPUs that the workers are dealt out to */
    size_t device_count;
    size_t memory;  /* bytes that all images in work may take together; 0: no limit */
    bool fail_fast; /* begin no job after one has failed */
    /* Do the one job on the calling thread, and leave the signals alone: one that ends the program then does so, as ever,
     * and the output is whole or not there. Not for a batch that is recorded (see batch_callbacks). */
    bool on_this_thread;
};

struct batch_totals {
    size_t count, done, skipped, failed;
    double pixels;             /* of the images that are done */
    double bytes, bytes_ended; /* of all inputs but the skipped ones; of those that are done or have failed */
    double milliseconds;
    int workers;
    int signal;       /* the one that ended the batch; 0: none */
    struct error why; /* its message says why the work was done where it was */
};

/* Who hears of the batch, one call at a time. Each may be NULL. */
struct batch_callbacks {
    void *context;
    /* For the record. A signal never comes between the writing of the output and this call. */
    void (*on_written)(void *context, const struct job_result *result);
    void (*on_result)(void *context, const struct job_result *result);
    void (*on_fallback)(void *context, const struct error *reason);        /* a GPU has failed: once a GPU */
    void (*on_progress)(void *context, const struct batch_totals *totals); /* about ten times a second */
    /* Where there is one job: its image is decoded; its variants are chosen. */
    void (*on_decoded)(void *context, const struct job_result *result);
    void (*on_planned)(void *context, const struct pipeline *pipeline);
};

/* Do all jobs. Fails only where it cannot begin; jobs that fail are counted. All signals that end a program are held back
 * meanwhile. Where one comes, nothing is written any more and totals->signal is set: workers may still be busy, with the
 * request and the callbacks in their hands, and all that is left to the caller is _exit. */
bool batch_run(const struct batch_request *request, const struct batch_callbacks *callbacks,
               struct batch_totals *totals, struct error *error);

#endif
