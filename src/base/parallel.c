/* SPDX-License-Identifier: MIT
 *
 * A loop has seats. A waiting thread takes one, and then indices until none is left. The caller takes indices too. Once
 * it finds none, it withdraws the seats that are still free: it never waits for a thread that has not begun. */
#include "base/parallel.h"

#include "base/resource_limits.h"

#include <sched.h>
#include <signal.h>
#include <stddef.h>

int parallel_processors(void)
{
    cpu_set_t set;
    const int allowed = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    const int share = resource_limits_find("").processors;
    return share < allowed ? share : allowed;
}

int parallel_start_thread(pthread_t *thread, void *(*run)(void *), void *context)
{
    pthread_attr_t attributes;
    size_t size = 0;
    int reason = pthread_attr_init(&attributes);
    if (reason != 0)
        return reason;
    pthread_attr_getstacksize(&attributes, &size);
    if (size < PARALLEL_STACK_MIN)
        pthread_attr_setstacksize(&attributes, PARALLEL_STACK_MIN);
    reason = pthread_create(thread, &attributes, run, context);
    pthread_attr_destroy(&attributes);
    return reason;
}

void thread_pool_open(struct thread_pool *pool, int threads)
{
    const int wanted = threads > 0 ? threads : parallel_processors();
    *pool = (struct thread_pool){.threads_max = wanted < PARALLEL_THREADS_MAX ? wanted : PARALLEL_THREADS_MAX};
    pool->threads = pool->threads_max;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->begun, NULL);
    pthread_cond_init(&pool->ended, NULL);
}

void thread_pool_limit(struct thread_pool *pool, int threads)
{
    pool->threads = threads < 1 ? 1 : threads < pool->threads_max ? threads : pool->threads_max;
}

void thread_pool_close(struct thread_pool *pool)
{
    if (pool->threads == 0) /* it was never opened */
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->is_closing = true;
    pthread_cond_broadcast(&pool->begun);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->started; i++)
        pthread_join(pool->handles[i], NULL);
    pthread_mutex_destroy(&pool->mutex);
    pthread_cond_destroy(&pool->begun);
    pthread_cond_destroy(&pool->ended);
    pool->threads = 0;
}

int thread_pool_threads(const struct thread_pool *pool)
{
    return pool != NULL ? pool->threads : 1;
}

/* Take indices until none is left. */
static void take_indices(struct thread_pool *pool, int thread)
{
    int64_t index;
    while ((index = atomic_fetch_add(&pool->next, 1)) < pool->count)
        pool->work(pool->context, index, thread);
}

static void *run_pool_thread(void *argument)
{
    struct thread_pool *pool = argument;
    pthread_mutex_lock(&pool->mutex);
    while (!pool->is_closing) {
        if (pool->seats == 0) {
            pthread_cond_wait(&pool->begun, &pool->mutex);
            continue;
        }
        const int number = ++pool->joined;
        pool->seats--;
        pool->busy++;
        pthread_mutex_unlock(&pool->mutex);
        take_indices(pool, number);
        pthread_mutex_lock(&pool->mutex);
        if (--pool->busy == 0)
            pthread_cond_signal(&pool->ended);
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* Let the pool have COUNT threads, or as many as the system allows. Only the calling thread takes signals that end the
 * program. It blocks them while it writes a file (file_write), and that would be useless if another thread took
 * them. */
static void start_pool_threads(struct thread_pool *pool, int count)
{
    sigset_t all, before;
    pthread_attr_t attributes;
    if (pool->is_refused || pthread_attr_init(&attributes) != 0)
        return;
    pthread_attr_setstacksize(&attributes, PARALLEL_STACK_MIN); /* small: `ulimit -v` may limit the address space */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    while (pool->started < count && !pool->is_refused) {
        pool->is_refused = pthread_create(&pool->handles[pool->started], &attributes, run_pool_thread, pool) != 0;
        pool->started += pool->is_refused ? 0 : 1;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
}

/* Offer the loop to the other threads, take part in it, and wait for those that joined. */
static void share_loop(struct thread_pool *pool, int others)
{
    pthread_mutex_lock(&pool->mutex);
    pool->joined = 0;
    pool->seats = others;
    pthread_cond_broadcast(&pool->begun);
    pthread_mutex_unlock(&pool->mutex);
    take_indices(pool, 0);
    pthread_mutex_lock(&pool->mutex);
    pool->seats = 0;
    while (pool->busy > 0)
        pthread_cond_wait(&pool->ended, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
}

void parallel_for(struct thread_pool *pool, int threads, int64_t count,
                  void (*work)(void *context, int64_t index, int thread), void *context)
{
    const int max = threads < thread_pool_threads(pool) ? threads : thread_pool_threads(pool);
    const int others = (int)(count < max ? count : max) - 1;
    if (others > 0)
        start_pool_threads(pool, others);
    if (others <= 0 || pool->started == 0) {
        for (int64_t index = 0; index < count; index++)
            work(context, index, 0);
        return;
    }
    pool->work = work;
    pool->context = context;
    pool->count = count;
    atomic_store(&pool->next, 0);
    share_loop(pool, others);
}
