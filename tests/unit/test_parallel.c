/* SPDX-License-Identifier: MIT
 *
 * Loops on threads: each index once, numbers of threads in range, pools that are used again and again, and a system
 * that refuses threads. */
#include "base/parallel.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { INDICES = 1000, THREADS = 5 };

struct counts {
    atomic_int indices[INDICES], threads[THREADS], wrong;
    pthread_t caller;
};

static void count_index(void *context, int64_t index, int thread)
{
    struct counts *counts = context;
    if (thread < 0 || thread >= THREADS || (thread == 0) != (pthread_equal(pthread_self(), counts->caller) != 0)) {
        counts->wrong++;
        return;
    }
    counts->indices[index]++;
    counts->threads[thread]++;
}

/* Run a loop of COUNT indices. Returns whether each was called once, on at most THREADS threads with right numbers. */
static bool loop_is_right(struct thread_pool *pool, int threads, int count)
{
    struct counts counts = {.caller = pthread_self()};
    parallel_for(pool, threads, count, count_index, &counts);
    bool right = counts.wrong == 0;
    for (int i = 0; i < INDICES; i++)
        right = right && counts.indices[i] == (i < count ? 1 : 0);
    for (int i = threads; i < THREADS; i++)
        right = right && counts.threads[i] == 0;
    return right;
}

static void test_each_index_once(void **state)
{
    (void)state;
    struct thread_pool pool;
    assert_true(loop_is_right(NULL, THREADS, INDICES));
    thread_pool_open(&pool, THREADS);
    assert_int_equal(thread_pool_threads(&pool), THREADS);
    for (int threads = 1; threads <= THREADS; threads++)
        for (int count = 0; count < 20; count++)
            assert_true(loop_is_right(&pool, threads, count));
    for (int round = 0; round < 2000; round++)
        assert_true(loop_is_right(&pool, THREADS, round % 7));
    assert_true(loop_is_right(&pool, THREADS, INDICES));
    thread_pool_close(&pool);
}

/* Wait until all threads of the loop are here. */
static void meet(void *context, int64_t index, int thread)
{
    atomic_int *here = context;
    (void)index, (void)thread;
    (*here)++;
    while (*here < THREADS)
        nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

static void test_threads_run_at_once(void **state)
{
    (void)state;
    struct thread_pool pool;
    thread_pool_open(&pool, THREADS);
    for (int round = 0; round < 3; round++) {
        atomic_int here = 0;
        parallel_for(&pool, THREADS, THREADS, meet, &here);
        assert_int_equal(here, THREADS);
    }
    thread_pool_close(&pool);
}

/* No thread is started before a loop needs it. */
static void test_threads_start_late(void **state)
{
    (void)state;
    struct thread_pool pool;
    thread_pool_open(&pool, THREADS);
    assert_true(loop_is_right(&pool, THREADS, 1));
    assert_int_equal(pool.started, 0);
    assert_true(loop_is_right(&pool, 2, INDICES));
    assert_int_equal(pool.started, 1);
    thread_pool_close(&pool);
    thread_pool_close(&pool);
    thread_pool_open(&pool, 0);
    assert_int_equal(thread_pool_threads(&pool), parallel_processors());
    thread_pool_close(&pool);
    thread_pool_open(&pool, 1 << 30);
    assert_int_equal(thread_pool_threads(&pool), PARALLEL_THREADS_MAX);
    thread_pool_close(&pool);
}

/* Without address space for a stack, the calling thread does all the work. */
static void test_refused_threads(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    skip(); /* it needs terabytes of address space */
#endif
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static struct thread_pool pool;
        const struct rlimit none = {0, 0};
        thread_pool_open(&pool, THREADS);
        const bool done = setrlimit(RLIMIT_AS, &none) == 0 && loop_is_right(&pool, THREADS, INDICES) &&
                          pool.started == 0 && loop_is_right(&pool, THREADS, INDICES);
        thread_pool_close(&pool);
        _exit(done ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_threads), /* first: libc keeps the stacks of threads that have ended */
        cmocka_unit_test(test_each_index_once),
        cmocka_unit_test(test_threads_run_at_once),
        cmocka_unit_test(test_threads_start_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
