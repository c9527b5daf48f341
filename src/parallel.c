/* SPDX-License-Identifier: MIT
 *
 * Through OpenMP where there is one, and on the calling thread alone where there is none. */
#include "parallel.h"

#include <signal.h>

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
