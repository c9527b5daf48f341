/* SPDX-License-Identifier: MIT
 *
 * Loops on several threads of the CPU. */
#ifndef GPUCONV_PARALLEL_H
#define GPUCONV_PARALLEL_H

#include <stdint.h>

/* How many processors this process may run on, at least 1. */
int parallel_processors(void);

/* The number of threads to use if WANTED are wanted. 0 means one thread per processor. */
int parallel_threads(int wanted);

/* The number of threads that this process can start, at least 1 and at most WANTED (0: one per processor). Without
 * limits on the process (ulimit -u, -v, -d), it is WANTED. Ask before the first parallel_for: OpenMP ends the process
 * if it cannot start a thread. */
int parallel_allowed(int wanted);

/* Call WORK once for each index below COUNT, in any order, on THREADS threads with numbers from 0. The calling thread
 * is one of them, and the only one if THREADS is 1. Returns when all calls have returned. */
void parallel_for(int threads, int64_t count, void (*work)(void *context, int64_t index, int thread), void *context);

#endif
