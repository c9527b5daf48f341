/* SPDX-License-Identifier: MIT
 *
 * A stream of jobs in memory: their order, their own requests, the window, and signals. */
#include "batch/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/lib/helpers.h"

enum { JOBS = 600, WINDOW = 6, WORKERS = 3, SIDE = 12, HEADER = 13 };

struct test_job {
    struct job job; /* first, so that a report finds this struct */
    size_t number;
    uint8_t content[HEADER + SIDE * SIDE];
    atomic_int released;
};

struct stream {
    struct test_job jobs[JOBS];
    struct recipe recipes[2];
    atomic_size_t taken; /* by `next`, while reports come */
    size_t reported[JOBS], report_count;
    size_t most; /* jobs taken and not reported */
    bool hangs;  /* instead of the end, `next` waits for ever */
    size_t last; /* the number of jobs */
    const struct batch_callbacks *callbacks;
};

static void wait_milliseconds(int milliseconds)
{
    const struct timespec time = {.tv_sec = 0, .tv_nsec = milliseconds * 1000000L};
    nanosleep(&time, NULL);
}

/* cmocka's own checks are for the thread of the test. */
static void check_line(bool holds, int line)
{
    if (holds)
        return;
    fprintf(stderr, "the check in line %d failed\n", line);
    abort();
}

#define check(holds) check_line(holds, __LINE__)

/* ---- The jobs ---- */

/* The first job of eight takes longer than the seven others. */
static void run_alone(const struct job *job, struct workers *workers, int number, struct job_result *result)
{
    const struct test_job *test = (struct test_job *)job;
    (void)workers, (void)number;
    wait_milliseconds(5);
    if (test->number % 16 == 0) {
        result->outcome = JOB_FAILED;
        error_set(&result->error, ERROR_WORK, "fails on purpose");
    }
}

static uint8_t level(size_t number, int x, int y)
{
    return (uint8_t)(number * 7 + (size_t)x * 3 + (size_t)y * 5);
}

/* A PGM whose request is one of the two, a job with a problem, or one that does itself. */
static struct job *make_job(struct stream *stream, size_t number)
{
    static char name[] = "member", problem[] = "has a problem";
    struct test_job *test = &stream->jobs[number];
    test->number = number;
    memcpy(test->content, "P5 12 12 255\n", HEADER);
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            test->content[HEADER + y * SIDE + x] = level(number, x, y);
    test->job = (struct job){
        .input = name,
        .bytes = sizeof test->content,
        .content = test->content,
        .in_memory = true,
        .recipe = number % 3 > 0 ? &stream->recipes[number % 3 - 1] : NULL,
        .problem = number % 8 == 5 ? problem : NULL,
        .run = number % 8 == 0 ? run_alone : NULL,
    };
    return &test->job;
}

static struct job *next(void *context)
{
    struct stream *stream = context;
    while (stream->taken == stream->last && stream->hangs)
        pause();
    if (stream->taken == stream->last)
        return NULL;
    return make_job(stream, stream->taken++);
}

static void release(void *context, struct job *job)
{
    (void)context;
    ((struct test_job *)job)->released++;
}

/* The column of the input that the request shows at column X: the batch's shifts nothing, the others left and right. */
static int source_column(size_t number, int x)
{
    const int column = x + (number % 3 == 1 ? 1 : number % 3 == 2 ? -1 : 0);
    return column < 0 ? 0 : column >= SIDE ? SIDE - 1 : column;
}

static void on_report(void *context, const struct job_result *result, enum job_event event)
{
    struct stream *stream = context;
    const struct test_job *test = (const struct test_job *)result->job;
    const size_t number = test->number;
    char text[ERROR_TEXT];
    if (event != JOB_ENDED)
        return;
    const size_t open = stream->taken - stream->report_count; /* another worker may take one now */
    stream->most = open > stream->most ? open : stream->most;
    stream->reported[stream->report_count++] = number;
    check(test->released == 0);
    if (test->job.run != NULL || test->job.problem != NULL) {
        const bool fails = test->job.run == NULL || number % 16 == 0;
        check((result->outcome == JOB_FAILED) == fails);
        if (fails) {
            error_text(&result->error, text, sizeof text);
            check(strcmp(text, test->job.run == NULL ? "member: has a problem" : "fails on purpose") == 0);
        }
        check(result->output == NULL);
        return;
    }
    if (result->outcome == JOB_FAILED)
        fprintf(stderr, "%s\n", result->error.message);
    check(result->outcome == JOB_DONE);
    check(result->output_bytes > SIDE * SIDE);
    const uint8_t *samples = result->output + result->output_bytes - SIDE * SIDE;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++)
            check(samples[y * SIDE + x] == level(number, source_column(number, x), y));
}

/* ---- Runs ---- */

static void run_stream(struct stream *stream, bool in_order, struct batch_totals *totals)
{
    static struct filter filters[3];
    static const char *const texts[] = {"0 0 0\n0 0 1\n0 0 0\n", "0 0 0\n1 0 0\n0 0 0\n", "1\n"};
    struct error error;
    for (int i = 0; i < 3; i++)
        filters[i] = parsed(texts[i]);
    const struct recipe recipe = {.chain = CHAIN(&filters[2], 1), .choice = CHOICE_CPU};
    stream->recipes[0] = stream->recipes[1] = recipe;
    stream->recipes[0].chain = CHAIN(&filters[0], 1);
    stream->recipes[1].chain = CHAIN(&filters[1], 1);
    const struct job_settings settings = {.codec = {.quality = CODEC_QUALITY}};
    const struct job_source source = {
        .next = next, .release = release, .context = stream, .in_order = in_order, .window = WINDOW};
    struct report report = {.descriptor = -1};
    const struct batch_request batch = {
        .recipe = &recipe, .settings = &settings, .source = &source, .workers = WORKERS, .report = &report};
    const struct batch_callbacks callbacks = {.context = stream, .report = on_report};
    assert_true(batch_run(&batch, &callbacks, totals, &error));
}

static void check_counts(const struct stream *stream, const struct batch_totals *totals)
{
    size_t failed = 0;
    for (size_t i = 0; i < stream->last; i++)
        failed += i % 8 == 5 || i % 16 == 0;
    assert_int_equal(totals->count, stream->last);
    assert_int_equal(totals->failed, failed);
    assert_int_equal(totals->done, stream->last - failed);
    for (size_t i = 0; i < stream->last; i++)
        assert_int_equal(stream->jobs[i].released, 1);
}

static void test_in_order(void **state)
{
    (void)state;
    struct stream *stream = calloc(1, sizeof *stream);
    struct batch_totals totals;
    stream->last = JOBS;
    run_stream(stream, true, &totals);
    assert_int_equal(stream->report_count, JOBS);
    for (size_t i = 0; i < JOBS; i++)
        assert_int_equal(stream->reported[i], i);
    assert_true(stream->most <= WINDOW);
    assert_true(stream->most > WORKERS); /* a slow job does not hold the others */
    check_counts(stream, &totals);
    free(stream);
}

static void test_as_they_finish(void **state)
{
    (void)state;
    struct stream *stream = calloc(1, sizeof *stream);
    struct batch_totals totals;
    bool seen[JOBS] = {false};
    stream->last = JOBS;
    run_stream(stream, false, &totals);
    assert_int_equal(stream->report_count, JOBS);
    for (size_t i = 0; i < JOBS; i++)
        seen[stream->reported[i]] = true;
    bool overtaken = false;
    for (size_t i = 0; i < JOBS; i++) {
        assert_true(seen[i]);
        overtaken |= i > 0 && stream->reported[i - 1] > stream->reported[i];
    }
    assert_true(overtaken); /* a slow job, by a later one: not each of them where other programs hold the processors */
    check_counts(stream, &totals);
    free(stream);
}

/* Ends the program as a user of a stream does. */
static void run_until_signal(bool in_order)
{
    struct stream *stream = calloc(1, sizeof *stream);
    struct batch_totals totals;
    stream->last = 40;
    stream->hangs = true;
    run_stream(stream, in_order, &totals);
    _exit(totals.signal == SIGTERM && stream->report_count == 40 && totals.done + totals.failed == 40 ? 7 : 1);
}

/* A worker waits for a job that does not come. The others have done theirs when the signal comes, or do them then. */
static void test_a_signal_ends_a_stream(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        int status;
        const pid_t child = fork();
        if (child == 0)
            run_until_signal(i % 2 == 0);
        wait_milliseconds(200);
        kill(child, SIGTERM);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_in_order),
        cmocka_unit_test(test_as_they_finish),
        cmocka_unit_test(test_a_signal_ends_a_stream),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
