/* SPDX-License-Identifier: MIT
 *
 * Through OpenMP where there is one, and on the calling thread alone where there is none. */
#include "base/parallel.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/resource.h>

#ifdef _OPENMP
#include <omp.h>
#endif

int parallel_threads(int wanted)
{
#ifdef _OPENMP
    return wanted > 0 ? wanted : omp_get_max_threads();
#else
    (void)wanted;
    return 1;
#endif
}

/* More processes than this are as many as anybody starts. */
enum { PROCESSES_MOST = 1 << 14 };

/* May there be fewer threads than are wanted, or less memory than their stacks take? */
static bool limited(void)
{
    struct rlimit processes, memory, data;
    return getrlimit(RLIMIT_NPROC, &processes) != 0 || processes.rlim_cur < PROCESSES_MOST ||
           getrlimit(RLIMIT_AS, &memory) != 0 || memory.rlim_cur != RLIM_INFINITY ||
           getrlimit(RLIMIT_DATA, &data) != 0 || data.rlim_cur != RLIM_INFINITY;
}

static void *pass(void *gate)
{
    pthread_mutex_lock(gate);
    pthread_mutex_unlock(gate);
    return NULL;
}

int parallel_allowed(int wanted)
{
    enum { TRIED_MOST = 1023 }; /* as --threads */
    pthread_t threads[TRIED_MOST];
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    const int others = parallel_threads(wanted) - 1;
    int started = 0;
    if (!limited())
        return wanted;
    /* All at once, as they are to be; each waits until there are no more. */
    pthread_mutex_lock(&gate);
    while (started < others && started < TRIED_MOST && pthread_create(&threads[started], NULL, pass, &gate) == 0)
        started++;
    pthread_mutex_unlock(&gate);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return started + 1;
}

void parallel_for(int threads, int64_t count, void (*work)(void *context, int64_t index, int thread), void *context)
{
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        /* Signals that end the program are left to the calling thread: it holds them back while it writes a file
         * (file_write), which is of no use while another thread takes them. */
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
