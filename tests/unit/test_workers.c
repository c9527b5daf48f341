/* SPDX-License-Identifier: MIT
 *
 * Workers: the order of jobs, the end by a failure or a signal, outputs that are being written, reports that hang, the
 * memory budget, and a system that refuses threads. */
#include "base/workers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { JOBS = 40 };

struct record {
    struct workers workers;
    atomic_int begun; /* jobs */
    size_t order[JOBS];
    atomic_int counts[JOBS];
    pthread_t caller;
    atomic_int on_caller; /* jobs on the calling thread */
    atomic_int unblocked; /* jobs on a thread that takes SIGTERM */
    atomic_int threads;   /* that have asked for jobs */
    atomic_int written;
    atomic_int reports;
    int stop_after; /* jobs, or 0 if it never stops */
};

static const double work[JOBS] = {2, 5, 1, 5, 0}; /* the work of some jobs; its mean is 3.25 */

static double estimate(void *context, size_t job)
{
    (void)context;
    return work[job];
}

static void wait_milliseconds(int milliseconds)
{
    const struct timespec time = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000L};
    nanosleep(&time, NULL);
}

static double seconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)(now.tv_sec - start->tv_sec) + 1e-9 * (double)(now.tv_nsec - start->tv_nsec);
}

/* Does the calling thread block SIGTERM? */
static bool is_blocked(void)
{
    sigset_t set;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    return sigismember(&set, SIGTERM) == 1;
}

static void note_job(struct record *record, size_t job)
{
    record->order[atomic_fetch_add(&record->begun, 1)] = job;
    record->counts[job]++;
    record->on_caller += pthread_equal(pthread_self(), record->caller) != 0;
    record->unblocked += !is_blocked();
}

static void note_jobs(void *context, int worker)
{
    struct record *record = context;
    size_t job;
    (void)worker;
    record->threads++;
    while (workers_next(&record->workers, &job)) {
        note_job(record, job);
        if (record->stop_after > 0 && record->begun >= record->stop_after)
            workers_stop(&record->workers);
    }
}

/* Do the jobs of REQUEST, and release the workers if no signal came. */
static bool run_jobs(struct record *record, struct workers_request request, struct error *error)
{
    request.context = record;
    request.estimate = estimate;
    record->caller = pthread_self();
    const bool done = workers_open(&record->workers, &request, error) && workers_run(&record->workers, error);
    if (record->workers.signal == 0)
        workers_close(&record->workers);
    return done;
}

/* ---- Order ---- */

static void test_each_job_once(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 5; workers++) {
        struct record record = {0};
        struct error error;
        assert_true(
            run_jobs(&record, (struct workers_request){.count = JOBS, .workers = workers, .run = note_jobs}, &error));
        for (int i = 0; i < JOBS; i++)
            assert_int_equal(record.counts[i], 1);
        assert_int_equal(record.threads, workers);
        assert_int_equal(record.on_caller, 0);
        assert_int_equal(record.unblocked, 0);
        assert_false(is_blocked());
    }
}

/* Only the second worker does jobs. */
static void note_jobs_of_one(void *context, int worker)
{
    if (worker == 1)
        note_jobs(context, worker);
}

static void test_the_longest_jobs_begin_first(void **state)
{
    (void)state;
    static const size_t longest[] = {1, 3, 4, 0, 2}, listed[] = {0, 1, 2, 3, 4};
    const struct workers_request two = {.count = 5, .workers = 2, .run = note_jobs_of_one};
    const struct workers_request one = {.count = 5, .workers = 1, .run = note_jobs};
    struct record records[2] = {0};
    struct error error;
    assert_true(run_jobs(&records[0], two, &error));
    assert_memory_equal(records[0].order, longest, sizeof longest);
    assert_true(run_jobs(&records[1], one, &error));
    assert_memory_equal(records[1].order, listed, sizeof listed);
    assert_true(records[0].workers.all_work == 16.25);
}

static void test_jobs_on_this_thread(void **state)
{
    (void)state;
    struct record record = {0};
    struct error error;
    const struct workers_request request = {.count = 3, .workers = 1, .on_this_thread = true, .run = note_jobs};
    assert_true(run_jobs(&record, request, &error));
    assert_int_equal(record.on_caller, 3);
    assert_int_equal(record.unblocked, 3);
}

static void test_a_failure_stops_the_others(void **state)
{
    (void)state;
    struct record record = {.stop_after = 7};
    struct error error;
    const struct workers_request request = {.count = JOBS, .workers = 2, .run = note_jobs_of_one};
    assert_true(run_jobs(&record, request, &error));
    assert_int_equal(record.begun, 7);
    assert_int_equal(record.workers.signal, 0);
}

/* ---- Signals ---- */

/* The first job, number 1, sends SIGTERM while it writes its output, and takes 200 ms more for that. Later jobs try to
 * write theirs. */
static void write_and_signal(void *context, int worker)
{
    struct record *record = context;
    size_t job;
    (void)worker;
    while (workers_next(&record->workers, &job)) {
        note_job(record, job);
        if (!workers_begin_output(&record->workers))
            continue;
        if (job == 1) {
            kill(getpid(), SIGTERM);
            wait_milliseconds(200);
        }
        record->written++;
        workers_end_output(&record->workers);
        while (job != 1 && !workers_interrupted(&record->workers))
            wait_milliseconds(1);
    }
}

static void test_a_signal_waits_for_outputs(void **state)
{
    (void)state;
    static struct record record; /* its threads may outlive this function */
    struct error error;
    const struct workers_request request = {.count = JOBS, .workers = 2, .run = write_and_signal};
    assert_true(run_jobs(&record, request, &error));
    assert_int_equal(record.workers.signal, SIGTERM);
    assert_false(record.workers.hangs);
    const int written = record.written;
    assert_in_range(written, 1, 2);
    assert_in_range(record.begun, 1, 3); /* no job begins after the signal */
    assert_false(workers_begin_output(&record.workers));
    wait_milliseconds(50);
    assert_int_equal(record.written, written);
    pthread_sigmask(SIG_SETMASK, &record.workers.before, NULL);
}

/* The job sends a signal while it writes its output, which never ends; then another one. */
static void write_forever(void *context, int worker)
{
    struct record *record = context;
    (void)worker;
    workers_begin_output(&record->workers);
    kill(getpid(), SIGTERM);
    wait_milliseconds(300);
    kill(getpid(), SIGHUP);
    for (;;)
        pause();
}

static void test_a_second_signal_ends_the_wait(void **state)
{
    (void)state;
    static struct record record;
    struct error error;
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    assert_true(run_jobs(&record, (struct workers_request){.count = 1, .workers = 1, .run = write_forever}, &error));
    assert_int_equal(record.workers.signal, SIGTERM);
    assert_true(seconds_since(&start) >= 0.2);
    assert_true(seconds_since(&start) < 4);
    pthread_sigmask(SIG_SETMASK, &record.workers.before, NULL);
}

/* A report that never ends, and a signal. */
static void report_forever(void *context, int worker)
{
    struct record *record = context;
    (void)worker;
    pthread_mutex_lock(&record->workers.reporting);
    wait_milliseconds(250); /* the calling thread wants to report its progress meanwhile */
    kill(getpid(), SIGTERM);
    for (;;)
        pause();
}

static void count_report(void *context)
{
    struct record *record = context;
    assert_true(pthread_equal(pthread_self(), record->caller));
    record->reports++;
}

static void test_a_report_that_hangs_keeps_no_signal_away(void **state)
{
    (void)state;
    static struct record record;
    struct error error;
    const struct workers_request request = {
        .count = 1, .workers = 1, .run = report_forever, .on_progress = count_report};
    assert_true(run_jobs(&record, request, &error));
    assert_int_equal(record.workers.signal, SIGTERM);
    assert_true(record.workers.hangs);
    assert_in_range(record.reports, 0, 1); /* one, if it came before the worker's */
    pthread_sigmask(SIG_SETMASK, &record.workers.before, NULL);
}

/* A signal, while a report takes its time. */
static void report_and_signal(void *context, int worker)
{
    struct record *record = context;
    (void)worker;
    pthread_mutex_lock(&record->workers.reporting);
    kill(getpid(), SIGTERM);
    wait_milliseconds(100);
    record->reports++;
    pthread_mutex_unlock(&record->workers.reporting);
}

static void test_a_signal_waits_for_a_report(void **state)
{
    (void)state;
    static struct record record;
    struct error error;
    assert_true(
        run_jobs(&record, (struct workers_request){.count = 1, .workers = 1, .run = report_and_signal}, &error));
    assert_int_equal(record.workers.signal, SIGTERM);
    assert_false(record.workers.hangs);
    assert_int_equal(record.reports, 1);
    pthread_sigmask(SIG_SETMASK, &record.workers.before, NULL);
}

static void work_slowly(void *context, int worker)
{
    (void)context;
    (void)worker;
    wait_milliseconds(450);
}

static void test_progress_is_reported(void **state)
{
    (void)state;
    struct record record = {0};
    struct error error;
    const struct workers_request request = {.count = 1, .workers = 1, .run = work_slowly, .on_progress = count_report};
    assert_true(run_jobs(&record, request, &error));
    assert_in_range(record.reports, 1, 4);
}

/* Send a signal and end, while the calling thread is busy with a report. */
static void signal_and_end(void *context, int worker)
{
    struct record *record = context;
    (void)worker;
    while (record->reports == 0)
        wait_milliseconds(1);
    kill(getpid(), SIGTERM);
}

static void report_slowly(void *context)
{
    struct record *record = context;
    record->reports++;
    wait_milliseconds(200);
}

static void test_no_signal_is_lost(void **state)
{
    (void)state;
    static struct record record;
    struct error error;
    const struct workers_request request = {
        .count = 1, .workers = 1, .run = signal_and_end, .on_progress = report_slowly};
    assert_true(run_jobs(&record, request, &error));
    assert_int_equal(record.workers.signal, SIGTERM);
    pthread_sigmask(SIG_SETMASK, &record.workers.before, NULL);
}

/* ---- Streams ---- */

/* Wait for the next job of a stream. */
static bool take_slowly(void *context)
{
    struct record *record = context;
    wait_milliseconds(5);
    return record->begun++ < JOBS;
}

static void note_jobs_of_stream(void *context, int worker)
{
    struct record *record = context;
    for (; workers_take(&record->workers, take_slowly, record); workers_end_job(&record->workers)) {
        record->counts[worker]++;
        wait_milliseconds(1); /* another one waits for the next job by then */
    }
}

/* Jobs that come one at a time go to the same few workers, whose memory is still in the caches. */
static void test_few_workers_do_jobs_that_come_one_at_a_time(void **state)
{
    (void)state;
    static struct record record;
    struct error error;
    int jobs = 0, most = 0;
    const struct workers_request request = {.workers = 8, .is_stream = true, .run = note_jobs_of_stream};
    assert_true(run_jobs(&record, request, &error));
    for (int i = 0; i < 8; i++) {
        jobs += record.counts[i];
        most = record.counts[i] > most ? record.counts[i] : most;
    }
    assert_int_equal(jobs, JOBS);
    assert_in_range(most, JOBS / 4, JOBS); /* half of them if no other program delays the workers; in turn, an eighth */
}

/* ---- Memory ---- */

struct memory_record {
    struct workers workers;
    atomic_int holding, max;
};

/* Each job needs 60 of 100 bytes, half of them at first. */
static void hold_memory(void *context, int worker)
{
    struct memory_record *record = context;
    struct memory_budget *budget = &record->workers.budget;
    size_t job, reserved = 0;
    (void)worker;
    while (workers_next(&record->workers, &job)) {
        budget_raise(budget, 30, &reserved);
        budget_raise(budget, 60, &reserved);
        const int holding = ++record->holding;
        if (holding > record->max)
            record->max = holding;
        wait_milliseconds(2);
        record->holding--;
        budget_release(budget, reserved);
        reserved = 0;
    }
}

static void test_jobs_wait_for_memory(void **state)
{
    (void)state;
    for (size_t memory = 100; memory <= 1000; memory += 900) {
        struct memory_record record = {0};
        struct error error;
        const struct workers_request request = {.count = JOBS,
                                                .workers = 4,
                                                .memory = memory,
                                                .context = &record,
                                                .estimate = estimate,
                                                .run = hold_memory};
        assert_true(workers_open(&record.workers, &request, &error));
        assert_true(workers_run(&record.workers, &error));
        assert_int_equal(record.workers.budget.used, 0);
        assert_true(memory == 100 ? record.max == 1 : record.max > 1);
        workers_close(&record.workers);
    }
}

static void test_memory_that_is_never_there(void **state)
{
    (void)state;
    struct memory_budget budget;
    struct error error = {.code = ERROR_NONE};
    budget_open(&budget, 1000, 2);
    assert_true(budget_check(&budget, 1000, "a.png", &error));
    assert_false(budget_check(&budget, 1001, "a.png", &error));
    assert_int_equal(error.code, ERROR_LIMIT);
    assert_string_equal(error.subject, "a.png");
    assert_non_null(strstr(error.message, "--memory allows"));
    budget_close(&budget);
}

/* The default limit refuses nothing: what needs more waits, and then runs alone. */
static void test_memory_beyond_the_default(void **state)
{
    (void)state;
    struct memory_budget budget;
    budget_open(&budget, 0, 2);
    const size_t all = budget.limit + 1;
    assert_true(budget.limit < SIZE_MAX && budget_check(&budget, all, "a.png", NULL));
    assert_true(budget_try(&budget, 1, 0));
    assert_false(budget_try(&budget, all, 0));
    budget_release(&budget, 1);
    assert_true(budget_try(&budget, all, 0));
    assert_false(budget_try(&budget, 1, 0));
    budget_release(&budget, all);
    budget_close(&budget);
}

/* ---- Threads that the system refuses ---- */

/* The exit status of a child whom the system allows ALLOWED threads more, and who wants 4 workers: how many it got, or
 * 9 for an error. */
static int count_workers(int allowed)
{
    const pid_t child = fork();
    if (child == 0) {
        struct record record = {0};
        struct error error;
        const struct workers_request request = {.count = JOBS, .workers = 4, .run = work_slowly};
        const struct rlimit limit = {.rlim_cur = (rlim_t)(1 + allowed), .rlim_max = (rlim_t)(1 + allowed)};
        if (setuid(54322) != 0 || setrlimit(RLIMIT_NPROC, &limit) != 0)
            _exit(8);
        const bool done = run_jobs(&record, request, &error);
        _exit(!done && strstr(error.message, "no thread can be started: ") != NULL ? 9 : record.workers.started);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void test_fewer_threads_than_wanted(void **state)
{
    (void)state;
    if (getuid() != 0)
        skip(); /* the limit counts all that a user runs, and does not bind root */
    assert_int_equal(count_workers(0), 9);
    assert_int_equal(count_workers(1), 1);
    assert_int_equal(count_workers(2), 2);
    assert_int_equal(count_workers(7), 4);
}

int main(void)
{
    signal(SIGHUP, SIG_DFL); /* nohup ignores it, and an ignored signal ends nothing */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_job_once),
        cmocka_unit_test(test_the_longest_jobs_begin_first),
        cmocka_unit_test(test_jobs_on_this_thread),
        cmocka_unit_test(test_a_failure_stops_the_others),
        cmocka_unit_test(test_a_signal_waits_for_outputs),
        cmocka_unit_test(test_a_second_signal_ends_the_wait),
        cmocka_unit_test(test_a_report_that_hangs_keeps_no_signal_away),
        cmocka_unit_test(test_a_signal_waits_for_a_report),
        cmocka_unit_test(test_progress_is_reported),
        cmocka_unit_test(test_no_signal_is_lost),
        cmocka_unit_test(test_few_workers_do_jobs_that_come_one_at_a_time),
        cmocka_unit_test(test_jobs_wait_for_memory),
        cmocka_unit_test(test_memory_that_is_never_there),
        cmocka_unit_test(test_memory_beyond_the_default),
        cmocka_unit_test(test_fewer_threads_than_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
