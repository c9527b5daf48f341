/* SPDX-License-Identifier: MIT
 *
 * Loops run on OpenMP's threads, or on the calling thread alone if the compiler has no OpenMP. */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#ifdef _OPENMP
#include <omp.h>
#endif

int parallel_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

int parallel_threads(int wanted)
{
#ifdef _OPENMP
    return wanted > 0 ? wanted : omp_get_max_threads();
#else
    (void)wanted;
    return 1;
#endif
}

/* A limit of this many processes is no limit in practice. */
enum { ENOUGH_PROCESSES = 1 << 14 };

/* Could a limit on this process prevent new threads, or memory for their stacks? */
static bool is_limited(void)
{
    struct rlimit processes, memory, data;
    return getrlimit(RLIMIT_NPROC, &processes) != 0 || processes.rlim_cur < ENOUGH_PROCESSES ||
           getrlimit(RLIMIT_AS, &memory) != 0 || memory.rlim_cur != RLIM_INFINITY ||
           getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur != RLIM_INFINITY;
}

/* A thread that ends as soon as LOCK is free. */
static void *wait_for_lock(void *lock)
{
    pthread_mutex_lock(lock);
    pthread_mutex_unlock(lock);
    return NULL;
}

int parallel_allowed(int wanted)
{
    enum { MOST_THREADS = 1023 }; /* as --threads */
    pthread_t threads[MOST_THREADS];
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const int others = parallel_threads(wanted) - 1;
    int started = 0;
    if (!is_limited())
        return wanted;
    /* The limits apply to threads that exist at the same time, so each thread waits until no more can be started. */
    pthread_mutex_lock(&lock);
    while (started < others && started < MOST_THREADS &&
           pthread_create(&threads[started], NULL, wait_for_lock, &lock) == 0)
        started++;
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started + 1;
}

void parallel_for(int threads, int64_t count, void (*work)(void *context, int64_t index, int thread), void *context)
{
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        /* Only the calling thread takes signals that end the program. It blocks them while it writes a file
         * (file_write), and that would be useless if another thread took them. */
        sigset_t all;
        sigfillset(&all);
        if (omp_get_thread_num() != 0)
            pthread_sigmask(SIG_BLOCK, &all, NULL);
#pragma omp for schedule(dynamic)
        for (int64_t index = 0; index < count; index++)
            work(context, index, omp_get_thread_num());
    }
#else
    (void)threads;
    for (int64_t index = 0; index < count; index++)
        work(context, index, 0);
#endif
}
