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
 * So the job that has its turn gets its memory at last, and there is no deadlock. */
#ifndef GPUCONV_MEMORY_H
#define GPUCONV_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct memory_budget {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t limit, used; /* bytes */
    size_t waiting;     /* jobs between budget_begin_wait and budget_end_wait; no other job overtakes them */
    bool taken;         /* one of them has its turn */
};

/* Open a budget of LIMIT bytes; 0 is no limit. */
void budget_open(struct memory_budget *budget, size_t limit);

/* Release the budget. No thread may use it any more. */
void budget_close(struct memory_budget *budget);

/* Reserve SIZE bytes. Returns false if that would need waiting. */
bool budget_try(struct memory_budget *budget, size_t size);

/* Wait for the caller's turn. The caller must hold nothing. */
void budget_begin_wait(struct memory_budget *budget);

/* Reserve SIZE bytes, and wait until they are there. It must be the caller's turn, and what it holds and SIZE together
 * must not exceed the limit. */
void budget_wait(struct memory_budget *budget, size_t size);

/* End the caller's turn; the next job gets its own. */
void budget_end_wait(struct memory_budget *budget);

/* Give back SIZE bytes. */
void budget_release(struct memory_budget *budget, size_t size);

/* A quarter of this machine's memory: the default limit for many images. */
size_t budget_default(void);

#endif
