/* SPDX-License-Identifier: MIT
 *
 * Loops on several threads, for all that works on the CPU. */
#ifndef GPUCONV_PARALLEL_H
#define GPUCONV_PARALLEL_H

#include <stdint.h>

/* How many threads a wish for WANTED makes: as many as there are processors where that is 0. */
int parallel_threads(int wanted);

/* How many threads a wish for WANTED is to be cut to, as few as 1, where the limits on this process (ulimit -u, -v, -d)
 * let no more start; WANTED itself where they are no concern. OpenMP ends the process when it cannot start a thread. */
int parallel_allowed(int wanted);

/* Call WORK for each index below COUNT, on THREADS threads (numbered from 0), the calling one among them. No other is
 * started where THREADS is 1. */
void parallel_for(int threads, int64_t count, void (*work)(void *context, int64_t index, int thread), void *context);

#endif
