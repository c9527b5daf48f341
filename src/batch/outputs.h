/* SPDX-License-Identifier: MIT
 *
 * The outputs that a batch has written, by device and inode. A folder may use one file for two names, because it
 * ignores case or normalises Unicode. Only the first output under such names is written. */
#ifndef GPUCONV_OUTPUTS_H
#define GPUCONV_OUTPUTS_H

#include "base/error.h"
#include "batch/job.h"
#include "batch/report.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* An existing output: a slot of a hash table. */
struct output {
    const struct job *job; /* NULL if the slot is free */
    dev_t device;
    ino_t inode;
};

struct outputs {
    pthread_mutex_t lock; /* locked from the check of an output until it is recorded */
    struct output *slots;
    size_t capacity;
    struct report *report;
};

/* Allocate the table for the outputs of COUNT jobs, none of which may be the REPORT. If COUNT is 0, for a stream of
 * jobs, no output is recorded, and one may replace another. Release with outputs_close, also after a failure. */
bool outputs_open(struct outputs *outputs, size_t count, struct report *report, struct error *error);
void outputs_close(struct outputs *outputs);

/* Fail if the file that STATUS describes is the output of another job, or the report. */
bool outputs_check(struct outputs *outputs, const struct job *job, const struct stat *status, struct error *error);

/* Write the output of JOB, of SIZE bytes. Fails if it is the output of another job, or if another process has written
 * other bytes since the list was made. READ is NULL, or in place the status of the file when it was read: if the file
 * has changed since, it stays as it is. */
bool outputs_write(struct outputs *outputs, const struct job *job, const struct stat *read, const uint8_t *bytes,
                   size_t size, struct error *error);

#endif
