/* SPDX-License-Identifier: MIT
 *
 * The memory budget: a counter, a mutex and a condition. */
#include "batch/memory.h"

#include <stdint.h>
#include <unistd.h>

void budget_open(struct memory_budget *budget, size_t limit)
{
    *budget = (struct memory_budget){.limit = limit > 0 ? limit : SIZE_MAX};
    pthread_mutex_init(&budget->mutex, NULL);
    pthread_cond_init(&budget->changed, NULL);
}

void budget_close(struct memory_budget *budget)
{
    pthread_mutex_destroy(&budget->mutex);
    pthread_cond_destroy(&budget->changed);
}

bool budget_try(struct memory_budget *budget, size_t size)
{
    pthread_mutex_lock(&budget->mutex);
    const bool done = budget->waiting == 0 && size <= budget->limit - budget->used;
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

void budget_wait(struct memory_budget *budget, size_t size)
{
    pthread_mutex_lock(&budget->mutex);
    while (size > budget->limit - budget->used)
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

void budget_release(struct memory_budget *budget, size_t size)
{
    pthread_mutex_lock(&budget->mutex);
    budget->used -= size;
    pthread_cond_broadcast(&budget->changed);
    pthread_mutex_unlock(&budget->mutex);
}

size_t budget_default(void)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGE_SIZE);
    /* If the machine does not say, assume 1 GiB of memory. */
    return pages > 0 && page > 0 ? (size_t)pages * (size_t)page / 4 : (size_t)1 << 28;
}
