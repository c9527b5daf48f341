/* SPDX-License-Identifier: MIT
 *
 * Loops on several threads of the CPU. */
#ifndef GPUCONV_PARALLEL_H
#define GPUCONV_PARALLEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* The maximal number of threads of a pool, and of --threads. */
enum { PARALLEL_THREADS_MAX = 1024 };

/* Threads that wait for loops. One thread at a time may use a pool. Threads start when a loop first needs them, and end
 * with the pool. If the system refuses a thread, loops run on the threads that there are. */
struct thread_pool {
    int threads;     /* the maximal number of threads of a loop, the calling thread included */
    int threads_max; /* the largest value that THREADS may get */
    int started;     /* threads besides the calling one */
    bool is_refused; /* the system has refused to start one */
    bool is_closing;
    pthread_mutex_t mutex;
    pthread_cond_t begun, ended;
    pthread_t handles[PARALLEL_THREADS_MAX - 1];

    /* The loop. */
    void (*work)(void *context, int64_t index, int thread);
    void *context;
    int64_t count;
    atomic_int_least64_t next;
    int seats;  /* how many more threads may join */
    int joined; /* how many have joined; the number of the last one */
    int busy;   /* how many of these have not ended */
};

/* How many processors this process may use, at least 1: by its affinity and by its limits (base/resource_limits.h). */
int parallel_processors(void);

/* The least bytes of a thread's stack. The deepest frames, those of codecs, need a tenth. */
enum { PARALLEL_STACK_MIN = 1 << 20 };

/* Start a thread as pthread_create does, with a stack of at least PARALLEL_STACK_MIN, however small `ulimit -s` is.
 * Returns 0, or the reason of the failure. */
int parallel_start_thread(pthread_t *thread, void *(*run)(void *), void *context);

/* Make a pool of at most THREADS threads; 0 is one for each processor. No thread is started yet. */
void thread_pool_open(struct thread_pool *pool, int threads);

/* Let the next loops use at most THREADS threads, and no more than the pool was made for. */
void thread_pool_limit(struct thread_pool *pool, int threads);

/* End the threads. A pool of zeros is allowed. */
void thread_pool_close(struct thread_pool *pool);

/* The maximal number of threads of a loop. A pool that is NULL has one thread, the caller's. */
int thread_pool_threads(const struct thread_pool *pool);

/* Call WORK once for each index below COUNT, in any order, on at most THREADS threads of POOL. They have numbers from 0
 * to THREADS - 1. The calling thread is one of them. Returns when all calls have returned. POOL may be NULL. */
void parallel_for(struct thread_pool *pool, int threads, int64_t count,
                  void (*work)(void *context, int64_t index, int thread), void *context);

#endif
