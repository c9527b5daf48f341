/* SPDX-License-Identifier: MIT
 *
 * Many images: a list of jobs on a number of workers, each of which reads, decodes, convolves, encodes and writes one
 * image after the other, within a limit of memory. What happens is told to a listener; nothing here prints. */
#ifndef GPUCONV_BATCH_H
#define GPUCONV_BATCH_H

#include "batch/file_list.h"
#include "codec/codec.h"
#include "pipeline/pipeline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct batch_request {
    const struct request *request; /* what is done to each image; threads 0: the processors are shared out */
    const struct job *jobs;
    size_t count;
    int workers;        /* 0: one a processor */
    const int *devices; /* GPUs that the workers are dealt out to */
    size_t device_count;
    size_t memory;               /* bytes that all images in work may take together */
    struct codec_settings codec; /* but for the threads and the chroma subsampling, which are each image's */
    bool strip;                  /* carry no metadata */
    bool not_turned;             /* do not turn images upright */
    bool skip_existing;
    bool fail_fast; /* begin no image after one has failed */
};

enum outcome { OUTCOME_DONE, OUTCOME_SKIPPED, OUTCOME_FAILED };

/* What became of a job. */
struct result {
    const struct job *job;
    enum outcome outcome;
    struct error error;          /* OUTCOME_FAILED */
    int width, height, channels; /* 0 where the image could not be read */
    int bits;                    /* of a sample, as it is filtered */
    size_t input_bytes, output_bytes;
    enum backend backend;
    int device;                            /* -1 on the CPU */
    char variants[256];                    /* their names, joined by commas; empty where nothing was convolved */
    const struct codec *decoder, *encoder; /* NULL where it did not come to that */
    struct stages stages;
    bool reduced;         /* the output holds 8 bits a sample of 16 */
    bool alpha_dropped;   /* the output holds no alpha */
    uint32_t not_read;    /* metadata of the input that are left out, as in struct metadata */
    uint32_t not_written; /* those that do not go into the output */
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

/* Who hears of it, one call at a time. Each may be NULL. */
struct batch_listener {
    void *context;
    /* For the record: called together with the writing of the output, so that a signal never comes between the two. */
    void (*record)(void *context, const struct result *result);
    void (*ended)(void *context, const struct result *result);
    void (*warn)(void *context, const char *text);                      /* a GPU has failed */
    void (*progress)(void *context, const struct batch_totals *totals); /* about ten times a second */
};

/* Do all jobs. Fails only where it cannot begin; files that fail are counted. All signals that end a program are held
 * back meanwhile. Where one comes, nothing is written any more and totals->signal is set: workers may still be busy,
 * with the request and the listener in their hands, and all that is left to the caller is _exit. */
bool batch_run(const struct batch_request *request, const struct batch_listener *listener, struct batch_totals *totals,
               struct error *error);

/* A quarter of this machine's memory. */
size_t batch_default_memory(void);

#endif
