/* SPDX-License-Identifier: MIT
 *
 * A memory budget: bytes that jobs on several threads reserve before they allocate them, up to a limit. It counts; it
 * allocates nothing.
 *
 * A job reserves twice: first for its file, then, when the file's header is known, for its image. Two jobs that each
 * hold memory for a file and wait for an image could wait for each other for ever. So jobs that have to wait take
 * turns:
 *   - a job first gives back all that it holds;
 *   - budget_begin_wait lets one job at a time through, and only that job may wait while it holds memory;
 *   - any other job holds nothing, or all that it needs; in the latter case it ends and gives that back.
 * So the job that has its turn gets its memory at last, and there is no deadlock.
 *
 * If `ulimit -v` or `ulimit -d` limits the process, the budget is at most half of what that leaves. A job that needs
 * more is no error, because such needs are upper bounds: it runs alone. */
#ifndef GPUCONV_MEMORY_H
#define GPUCONV_MEMORY_H

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct memory_budget {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t max;         /* bytes that one job may need */
    size_t file_max;    /* by budget_file_max, which reads many files */
    size_t limit, used; /* bytes of all jobs; only a job that runs alone may exceed the limit */
    size_t waiting;     /* jobs between budget_begin_wait and budget_end_wait; no other job overtakes them */
    bool taken;         /* one of them has its turn */
};

/* Open a budget of LIMIT bytes; 0 is no limit. */
void budget_open(struct memory_budget *budget, size_t limit);

/* Release the budget. No thread may use it any more. */
void budget_close(struct memory_budget *budget);

/* May one job reserve NEED bytes at all? If not, the error is about the file NAME. */
bool budget_check(const struct memory_budget *budget, size_t need, const char *name, struct error *error);

/* Reserve SIZE bytes more for a job that holds HELD bytes. Returns false if that would need waiting. */
bool budget_try(struct memory_budget *budget, size_t size, size_t held);

/* Wait for the caller's turn. The caller must hold nothing. */
void budget_begin_wait(struct memory_budget *budget);

/* The same, but wait until the bytes are there, or until no other job holds any. It must be the caller's turn. */
void budget_wait(struct memory_budget *budget, size_t size, size_t held);

/* End the caller's turn; the next job gets its own. */
void budget_end_wait(struct memory_budget *budget);

/* Let a job that holds *RESERVED bytes hold at least NEED. If they are not free now, give all back and wait. */
void budget_raise(struct memory_budget *budget, size_t need, size_t *reserved);

/* Give back SIZE bytes. */
void budget_release(struct memory_budget *budget, size_t size);

/* A quarter of this process's memory (base/resource_limits.h): the default limit for many images. */
size_t budget_default(void);

/* The largest file that is read, also from a pipe that does not end: half of this process's memory. Its result may have
 * the same size. */
size_t budget_file_max(void);

/* The most bytes of one input: file_max, but no more than may be reserved. */
size_t budget_input_max(const struct memory_budget *budget);

/* The bytes that `ulimit -v` and `ulimit -d` leave to this process. SIZE_MAX if they do not limit it. */
size_t budget_left(void);

#endif
