/* SPDX-License-Identifier: MIT
 *
 * A memory budget: bytes that jobs on several threads reserve before they allocate them, up to a limit. It counts; it
 * allocates nothing.
 *
 * A job reserves for its file, then, when the file's header is known, for its image, and then for its output as it
 * grows. Two jobs that each hold memory and wait for more could wait for each other for ever. So only one job waits at
 * a time:
 *   - a job first gives back all that it holds;
 *   - budget_begin_wait lets one job at a time through, and only that job may wait while it holds memory;
 *   - any other job holds nothing, or does not wait: it ends, or lacks memory, and gives back what it holds.
 * So the job that waits gets its memory at last, and there is no deadlock.
 *
 * Only a limit that the user gives refuses a job. By default the limit is a share of this process's memory
 * (base/resource_limits.h): three quarters of what a container or Slurm sets aside for it, or a quarter of a machine,
 * which has other users. If `ulimit -v` or `ulimit -d` limits the process, the budget is at most half of what that
 * leaves, given or not. A job that needs more runs alone. */
#ifndef GPUCONV_MEMORY_H
#define GPUCONV_MEMORY_H

#include "base/error.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

/* From this size on, or from 32 MiB where there is much memory, a block is mapped: realloc moves it without a copy, and
 * free gives it back to the system. */
enum { MEMORY_COPIED_MAX = 2 << 20 };

struct memory_budget {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    size_t max;         /* bytes that one job may need: the given limit, or SIZE_MAX */
    size_t file_max;    /* by budget_file_max, which reads many files */
    size_t limit, used; /* bytes of all jobs; only a job that runs alone may exceed the limit */
    size_t waiting;     /* jobs between budget_begin_wait and budget_end_wait; no new job begins before them */
    bool taken;         /* one job is between budget_begin_wait and budget_end_wait, and may wait for memory */
};

/* Open a budget of GIVEN bytes. If GIVEN is 0, the budget has the default size. WORKERS is the number of workers whose
 * jobs may be large. */
void budget_open(struct memory_budget *budget, size_t given, int workers);

/* Release the budget. No thread may use it any more. */
void budget_close(struct memory_budget *budget);

/* May one job reserve NEED bytes at all? Always, if no limit is given. If not, the error is about the file NAME. */
bool budget_check(const struct memory_budget *budget, size_t need, const char *name, struct error *error);

/* Reserve SIZE bytes more for a job that has reserved RESERVED bytes. Returns false if that would need waiting. */
bool budget_try(struct memory_budget *budget, size_t size, size_t reserved);

/* Wait until no other job may wait for memory; then the caller may. The caller must hold no memory. */
void budget_begin_wait(struct memory_budget *budget);

/* Reserve SIZE bytes more, as budget_try does, but wait until they are there, or until no other job holds any. Only
 * between budget_begin_wait and budget_end_wait. */
void budget_wait(struct memory_budget *budget, size_t size, size_t reserved);

/* Let the next job past budget_begin_wait. */
void budget_end_wait(struct memory_budget *budget);

/* Let a job that holds *RESERVED bytes hold at least NEED. If they are not free now, give all back and wait. */
void budget_raise(struct memory_budget *budget, size_t need, size_t *reserved);

/* Give back SIZE bytes. */
void budget_release(struct memory_budget *budget, size_t size);

/* The largest file in bytes that is read, also from a pipe that does not end: half of this process's memory. Its result
 * may be as large. */
size_t budget_file_max(void);

/* The largest input in bytes: file_max, but no more than may be reserved. */
size_t budget_input_max(const struct memory_budget *budget);

/* The bytes that `ulimit -v` and `ulimit -d` leave to this process. SIZE_MAX if they do not limit it. */
size_t budget_left(void);

#endif
