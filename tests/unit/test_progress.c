/* SPDX-License-Identifier: MIT
 *
 * The line of progress: its bar, its words, and the estimate. */
#include "app/progress.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

enum { COLUMNS = 80 };

static void check_line(const struct batch_totals *totals, size_t size, const char *expected)
{
    char line[COLUMNS];

    assert_true(size <= sizeof line);
    progress_print(totals, line, size);
    assert_string_equal(line, expected);
}

static void test_nothing_is_estimated_from_nothing(void **state)
{
    (void)state;
    struct batch_totals totals = {.count = 7, .work = 100, .milliseconds = 500};

    check_line(&totals, COLUMNS, "[                              ] 0/7 files");
    totals.failed = 1; /* its work is unknown: there is still no time to go by */
    check_line(&totals, COLUMNS, "[                              ] 1/7 files");
}

static void test_work_fills_the_bar_and_gives_the_time(void **state)
{
    (void)state;
    struct batch_totals totals = {.count = 7, .work = 100, .work_done = 10, .milliseconds = 500};

    /* The first file is under way. */
    check_line(&totals, COLUMNS, "[===                           ] 0/7 files, 0:05 left");
    totals.done = 1;
    totals.pixels = 1.5e6;
    totals.work_done = 60;
    totals.milliseconds = 6000;
    check_line(&totals, COLUMNS, "[==================            ] 1/7 files, 0.2 Mpixel/s, 0:04 left");
    totals.skipped = 5;
    totals.work = 1e5;
    totals.work_done = 10;
    totals.milliseconds = 1e3;
    check_line(&totals, COLUMNS, "[                              ] 6/7 files, 1.5 Mpixel/s, 2:46:39 left");
}

static void test_a_bar_is_full_at_the_end(void **state)
{
    (void)state;
    struct batch_totals totals = {.count = 2, .done = 1, .skipped = 1, .work = 0.3, .work_done = 0.1 + 0.2};

    totals.milliseconds = 1000;
    check_line(&totals, COLUMNS, "[==============================] 2/2 files, 0:00 left");
    totals = (struct batch_totals){.count = 2, .skipped = 2, .milliseconds = 1000};
    check_line(&totals, COLUMNS, "[==============================] 2/2 files");
}

static void test_one_image_has_steps_and_rows(void **state)
{
    (void)state;
    struct batch_totals totals = {.count = 1, .work = 50, .milliseconds = 2000};

    totals.only = (struct job_progress){.word = "reading", .is_rough = true, .rows = -1};
    check_line(&totals, COLUMNS, "[                              ] reading");
    totals.only = (struct job_progress){.word = "filtering", .done = 0.25, .rows = 0.25};
    totals.work_done = 12.5;
    check_line(&totals, COLUMNS, "[=======                       ] filtering: 25% of the rows, 0:06 left");
    totals.only = (struct job_progress){.word = "filtering", .done = 0.5, .is_rough = true, .rows = 0.5};
    totals.work_done = 25;
    check_line(&totals, COLUMNS, "[===============               ] filtering: 50% of the rows");
}

static void test_a_narrow_terminal_gets_a_short_line(void **state)
{
    (void)state;
    const struct batch_totals totals = {
        .count = 20, .done = 10, .pixels = 25e6, .work = 10, .work_done = 5, .milliseconds = 1e4};

    check_line(&totals, 60, "[==========          ] 10/20 files, 2.5 Mpixel/s, 0:10 left");
    check_line(&totals, 45, "[==   ] 10/20 files, 2.5 Mpixel/s, 0:10 left");
    check_line(&totals, 38, "10/20 files, 2.5 Mpixel/s, 0:10 left");
    check_line(&totals, 20, "10/20 files, 2.5 Mp");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_estimated_from_nothing),
        cmocka_unit_test(test_work_fills_the_bar_and_gives_the_time),
        cmocka_unit_test(test_a_bar_is_full_at_the_end),
        cmocka_unit_test(test_one_image_has_steps_and_rows),
        cmocka_unit_test(test_a_narrow_terminal_gets_a_short_line),
    };

    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
