/* SPDX-License-Identifier: MIT
 *
 * A memory budget: bytes that jobs on several threads reserve before they allocate them, up to a limit. It counts; it
 * allocates nothing.
 *
 * A job reserves twice: first for its file, then, when the file's header is known, for its image. Two jobs that each hold
 * memory for a file and wait for an image could wait for each other for ever. So a job that has to wait goes in turn:
 *   - it first gives back all that it holds;
 *   - budget_begin_wait lets one job at a time through, and only that job may wait while it holds memory;
 *   - all other jobs hold nothing, or all that they need, and these end and give it back.
 * So the job whose turn it is gets its memory at last, and there is no deadlock. */
#ifndef GPUCONV_MEMORY_H
#define GPUCONV_MEMORY_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

struct memory_budget {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t limit, used; /* bytes */
    size_t
        waiting; /* jobs between budget_begin_wait and budget_end_wait; while there are any, no other overtakes them */
    bool taken;  /* it is some job's turn */
};

/* Begin with a limit of so many bytes; 0 is no limit. */
void budget_open(struct memory_budget *budget, size_t limit);

void budget_close(struct memory_budget *budget);

/* Reserve SIZE bytes if that needs no waiting; false if it does. */
bool budget_try(struct memory_budget *budget, size_t size);

/* Wait for the turn to wait. The caller holds nothing. */
void budget_begin_wait(struct memory_budget *budget);

/* Reserve SIZE bytes, and wait until they are there. It must be the caller's turn, and what it holds and SIZE together
 * must not exceed the limit. */
void budget_wait(struct memory_budget *budget, size_t size);

/* Let the next job have its turn. */
void budget_end_wait(struct memory_budget *budget);

/* Give back SIZE bytes. */
void budget_release(struct memory_budget *budget, size_t size);

/* A quarter of this machine's memory: the limit for many images where the user gives none. */
size_t budget_default(void);

#endif
