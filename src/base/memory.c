/* SPDX-License-Identifier: MIT
 *
 * The memory budget: a counter, a mutex and a condition. */
#include "base/memory.h"

#include "base/resource_limits.h"
#include "base/text.h"

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#ifndef M_ARENA_MAX /* musl has no such function: its malloc keeps no block of 128 KiB or more */
#define mallopt(parameter, value) (void)(value)
#endif

/* glibc's HEAP_MAX_SIZE on 64-bit machines: the largest block of memory, in bytes, that a thread's arena has. */
enum { HEAP_BYTES = 64 << 20 };

/* malloc keeps what was freed, up to 64 MiB for each thread by default, and no budget counts that. Where this is little
 * of LIMIT, the threads keep as much: else a batch on a GPU spends a third of its time on new pages. Otherwise they
 * keep little, in few arenas. Each arena also reserves 64 MiB of addresses, which `ulimit -v` limits. */
static void bound_malloc(size_t limit, bool keeps)
{
    enum { ARENA_BYTES = 1 << 27, ARENAS_MAX = 1 << 10 };
    const size_t arenas = limit / ARENA_BYTES;
    mallopt(M_ARENA_MAX, arenas > ARENAS_MAX ? ARENAS_MAX : arenas > 1 ? (int)arenas : 1);
    mallopt(M_MMAP_THRESHOLD, keeps ? HEAP_BYTES / 2 : MEMORY_COPIED_MAX); /* malloc takes no more than half a heap */
    mallopt(M_TRIM_THRESHOLD, keeps ? HEAP_BYTES : 2 * MEMORY_COPIED_MAX);
}

void budget_open(struct memory_budget *budget, size_t given, int workers)
{
    const struct resource_limits limits = resource_limits_find("");
    const size_t share = limits.memory / 4 * (limits.has_memory_limit ? 3 : 1), half = budget_left() / 2;
    const size_t limit = given > 0 ? given : share;
    *budget = (struct memory_budget){
        .max = given > 0 ? given : SIZE_MAX, .file_max = limits.memory / 2, .limit = half < limit ? half : limit};
    pthread_mutex_init(&budget->mutex, NULL);
    pthread_cond_init(&budget->changed, NULL);
    bound_malloc(budget->limit, given == 0 && budget->limit / 8 / HEAP_BYTES >= (size_t)workers);
}

void budget_close(struct memory_budget *budget)
{
    pthread_mutex_destroy(&budget->mutex);
    pthread_cond_destroy(&budget->changed);
}

bool budget_check(const struct memory_budget *budget, size_t need, const char *name, struct error *error)
{
    char needed[TEXT_OF_SIZE], allowed[TEXT_OF_SIZE];
    return need <= budget->max ||
           error_about(error, ERROR_LIMIT, name, "needs %s of memory, and --memory allows %s; allow more",
                       text_of_size(need, needed), text_of_size(budget->max, allowed));
}

/* May a job that has reserved RESERVED bytes reserve SIZE more now? The sum cannot overflow, because both are sizes of
 * objects. */
static bool fits(const struct memory_budget *budget, size_t size, size_t reserved)
{
    return budget->used + size <= budget->limit || budget->used <= reserved;
}

bool budget_try(struct memory_budget *budget, size_t size, size_t reserved)
{
    pthread_mutex_lock(&budget->mutex);
    const bool done = (budget->waiting == 0 || reserved > 0) && fits(budget, size, reserved);
    if (done)
        budget->used += size;
    pthread_mutex_unlock(&budget->mutex);
    return done;
}

void budget_begin_wait(struct memory_budget *budget)
{
    pthread_mutex_lock(&budget->mutex);
    budget->waiting++;
    while (budget->taken)
        pthread_cond_wait(&budget->changed, &budget->mutex);
    budget->taken = true;
    pthread_mutex_unlock(&budget->mutex);
}

void budget_wait(struct memory_budget *budget, size_t size, size_t reserved)
{
    pthread_mutex_lock(&budget->mutex);
    while (!fits(budget, size, reserved))
        pthread_cond_wait(&budget->changed, &budget->mutex);
    budget->used += size;
    pthread_mutex_unlock(&budget->mutex);
}

void budget_end_wait(struct memory_budget *budget)
{
    pthread_mutex_lock(&budget->mutex);
    budget->waiting--;
    budget->taken = false;
    pthread_cond_broadcast(&budget->changed);
    pthread_mutex_unlock(&budget->mutex);
}

void budget_raise(struct memory_budget *budget, size_t need, size_t *reserved)
{
    if (need <= *reserved)
        return;
    if (!budget_try(budget, need - *reserved, *reserved)) {
        budget_release(budget, *reserved);
        budget_begin_wait(budget);
        budget_wait(budget, need, 0);
        budget_end_wait(budget);
    }
    *reserved = need;
}

void budget_release(struct memory_budget *budget, size_t size)
{
    pthread_mutex_lock(&budget->mutex);
    budget->used -= size;
    pthread_cond_broadcast(&budget->changed);
    pthread_mutex_unlock(&budget->mutex);
}

size_t budget_file_max(void)
{
    return resource_limits_find("").memory / 2;
}

size_t budget_input_max(const struct memory_budget *budget)
{
    return budget->file_max < budget->max ? budget->file_max : budget->max;
}

/* The bytes that LIMIT leaves, if PAGES memory pages count for it already. */
static size_t limit_leaves(const struct rlimit *limit, unsigned long pages)
{
    const size_t used = pages * (size_t)sysconf(_SC_PAGE_SIZE);
    if (limit->rlim_cur == RLIM_INFINITY)
        return SIZE_MAX;
    return limit->rlim_cur > used ? limit->rlim_cur - used : 0;
}

size_t budget_left(void)
{
    struct rlimit addresses, heap;
    unsigned long all = 0, data = 0;
    if (getrlimit(RLIMIT_AS, &addresses) != 0 || getrlimit(RLIMIT_DATA, &heap) != 0)
        return SIZE_MAX;
    FILE *file = fopen("/proc/self/statm", "re"); /* proc(5): the first number is of all pages, the sixth of data */
    if (file != NULL) {
        if (fscanf(file, "%lu %*u %*u %*u %*u %lu", &all, &data) != 2)
            all = data = 0;
        fclose(file);
    }
    const size_t of_addresses = limit_leaves(&addresses, all), of_heap = limit_leaves(&heap, data);
    return of_addresses < of_heap ? of_addresses : of_heap;
}
