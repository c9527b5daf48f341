/* SPDX-License-Identifier: MIT
 *
 * Unit tests of the benchmark: sizes, filters, statistics, the comparison, a small run, and the three ways to print. */
#include "bench/bench.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void test_sizes(void **state)
{
    (void)state;
    struct bench_size sizes[BENCH_SIZES];
    struct error error;
    size_t count;
    assert_true(bench_parse_sizes("640x480,1x2x4", sizes, &count, &error));
    assert_int_equal(count, 2);
    assert_int_equal(sizes[0].width, 640);
    assert_int_equal(sizes[0].height, 480);
    assert_int_equal(sizes[0].planes, 1);
    assert_int_equal(sizes[1].width, 1);
    assert_int_equal(sizes[1].height, 2);
    assert_int_equal(sizes[1].planes, 4);
    static const char *const bad[] = {"",        "64",      "64x",      "64x0",          "0x64",
                                      "64x48x5", "64x48x0", "64x48x1x", "64x48,",        "64x48,,1x1",
                                      "-64x48",  "x64",     "64 x 48",  "99999999999x4", "16777216x1"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(bench_parse_sizes(bad[i], sizes, &count, &error));
        assert_int_equal(error.code, ERROR_USAGE);
    }
    char many[BENCH_SIZES * 4 + 4] = "1x1";
    for (int i = 1; i < BENCH_SIZES; i++)
        strcat(many, ",1x1");
    assert_true(bench_parse_sizes(many, sizes, &count, &error));
    assert_int_equal(count, BENCH_SIZES);
    strcat(many, ",1x1");
    assert_false(bench_parse_sizes(many, sizes, &count, &error));
}

static void test_filters(void **state)
{
    (void)state;
    struct filter *filters, *again;
    size_t count;
    struct error error;
    assert_true(filter_find_all(BENCH_FILTERS, bench_find_filter, &filters, &count, &error));
    assert_true(filter_find_all(BENCH_FILTERS, bench_find_filter, &again, &count, &error));
    assert_int_equal(count, 18);
    for (size_t i = 0; i < count; i++) {
        const struct filter *f = &filters[i];
        static const int sides[] = {3, 5, 7, 9, 15, 31};
        int largest = 0;
        assert_int_equal(f->width, sides[i / 3]);
        assert_int_equal(f->height, sides[i / 3]);
        for (int k = 0; k < f->width * f->height; k++)
            largest = abs(f->taps[k]) > largest ? abs(f->taps[k]) : largest;
        const bool rank1 = strncmp(f->name, "rank1-", 6) == 0;
        assert_true(f->separable == rank1);
        assert_true(f->exact);
        if (strncmp(f->name, "int8-", 5) == 0)
            assert_in_range(largest, 64, 127);
        else if (strncmp(f->name, "int16-", 6) == 0)
            assert_in_range(largest, 4000, 8000);
        else
            assert_true(rank1);
        assert_memory_equal(f->taps, again[i].taps, sizeof(int32_t) * (size_t)(f->width * f->height));
    }
    free(filters);
    free(again);
}

/* Filters of any side that the names allow; other names are those of ordinary filters. */
static void test_names(void **state)
{
    (void)state;
    struct filter *filter = malloc(sizeof *filter);
    struct error error;
    assert_non_null(filter);
    for (int side = 2; side <= 32; side++)
        for (int kind = 0; kind < 3; kind++) {
            char name[32];
            snprintf(name, sizeof name, "%s-%d", (const char *const[]){"int8", "int16", "rank1"}[kind], side);
            assert_int_equal(bench_find_filter(name, filter, NULL, &error), side >= 3 && side <= 31);
            if (side < 3 || side > 31)
                continue;
            assert_string_equal(filter->name, name);
            assert_true(filter->width == side && filter->height == side && filter->exact);
            assert_int_equal(filter->separable, kind == 2);
        }
    assert_true(bench_find_filter("blur", filter, NULL, &error));
    assert_int_equal(filter->width, 5);
    assert_false(bench_find_filter("int8", filter, NULL, &error));
    assert_false(bench_find_filter("int8-", filter, NULL, &error));
    assert_int_equal(error.code, ERROR_USAGE);
    free(filter);
}

static void test_statistics(void **state)
{
    (void)state;
    struct bench_row row;
    double odd[] = {5, 1, 4, 2, 9}, even[] = {4, 1, 2, 9};
    bench_statistics(odd, 5, &row);
    assert_int_equal(row.runs, 5);
    assert_true(row.median_ms == 4 && row.min_ms == 1 && row.max_ms == 9);
    assert_true(row.spread == (5.0 - 2.0) / 4);
    bench_statistics(even, 4, &row);
    assert_true(row.median_ms == 3 && row.min_ms == 1 && row.max_ms == 9);
}

static void test_compare(void **state)
{
    (void)state;
    /* Two planes of 3 x 2 with padding that differs. */
    uint8_t e[2 * 10] = {0}, a[2 * 10] = {0};
    struct plane expected = {SAMPLE_U8, 3, 2, 2, 4, 10, e, false, STORED_FLOAT},
                 actual = {SAMPLE_U8, 3, 2, 2, 4, 10, a, false, STORED_FLOAT};
    a[3] = a[9] = 77;
    struct bench_difference difference = bench_compare(&expected, &actual, 0, NULL);
    assert_int_equal(difference.different, 0);
    a[2] = 1;
    a[10 + 6] = 2;
    difference = bench_compare(&expected, &actual, 0, NULL);
    assert_int_equal(difference.different, 2);
    assert_int_equal(difference.wrong, 2);
    assert_int_equal(difference.first, 2);
    difference = bench_compare(&expected, &actual, 1, NULL);
    assert_int_equal(difference.different, 2);
    assert_int_equal(difference.wrong, 1);
    assert_int_equal(difference.first, 3 * 3 + 2); /* the last sample of the fourth row */

    uint16_t v[3] = {0x0100, 0, 65535}, w[3] = {0x0200, 0, 65534}; /* one differs in its high byte only */
    expected = (struct plane){SAMPLE_U16, 3, 1, 1, 6, 6, v, false, STORED_FLOAT};
    actual = (struct plane){SAMPLE_U16, 3, 1, 1, 6, 6, w, false, STORED_FLOAT};
    difference = bench_compare(&expected, &actual, 1, NULL);
    assert_int_equal(difference.different, 2);
    assert_int_equal(difference.wrong, 1);

    float x[4] = {0, 0.5f, 1, 0}, y[4] = {0, 0.625f, NAN, 0};
    expected = (struct plane){SAMPLE_F32, 4, 1, 1, 16, 16, x, false, STORED_FLOAT};
    actual = (struct plane){SAMPLE_F32, 4, 1, 1, 16, 16, y, false, STORED_FLOAT};
    difference = bench_compare(&expected, &actual, 0.125, NULL);
    assert_int_equal(difference.different, 2);
    assert_int_equal(difference.wrong, 1); /* the NaN */
    difference = bench_compare(&expected, &actual, 0.1, NULL);
    assert_int_equal(difference.wrong, 2);
}

/* Large enough for several threads: the same counts with any number of them. */
static void test_compare_on_threads(void **state)
{
    (void)state;
    enum { WIDTH = 1031, HEIGHT = 523, PLANES = 2, BYTES = WIDTH * HEIGHT * PLANES };
    uint8_t *e = calloc(1, BYTES), *a = calloc(1, BYTES);
    assert_non_null(e);
    assert_non_null(a);
    for (size_t i = 0; i < BYTES; i += 1000)
        a[i] = i % 3000 == 0 ? 2 : 1;
    const struct plane expected = {SAMPLE_U8, WIDTH, HEIGHT, PLANES, WIDTH, WIDTH * HEIGHT, e, false, STORED_FLOAT};
    const struct plane actual = {SAMPLE_U8, WIDTH, HEIGHT, PLANES, WIDTH, WIDTH * HEIGHT, a, false, STORED_FLOAT};
    for (int threads = 1; threads <= 3; threads++) {
        struct thread_pool pool;
        thread_pool_open(&pool, threads);
        const struct bench_difference difference = bench_compare(&expected, &actual, 1, &pool);
        thread_pool_close(&pool);
        assert_int_equal(difference.different, (BYTES + 999) / 1000);
        assert_int_equal(difference.wrong, (BYTES + 2999) / 3000);
    }
    free(e);
    free(a);
}

/* What a run handed over. */
struct heard {
    size_t rows, copies, chosen, timed, right;
    double samples;
};

static void hear(void *context, const struct bench_row *row)
{
    struct heard *heard = context;
    heard->rows++;
    heard->copies += row->filter == NULL;
    heard->chosen += row->chosen;
    heard->right += !row->wrong;
    heard->timed += row->runs >= BENCH_CPU_RUNS && row->min_ms > 0 && row->min_ms <= row->median_ms &&
                    row->median_ms <= row->max_ms;
    assert_true(fabs(row->gpixel_s * row->median_ms * 1e6 / heard->samples - 1) < 1e-9);
}

static struct heard run(struct bench_request *request)
{
    struct bench bench;
    struct error error;
    struct heard heard = {.samples = (double)request->sizes->width * request->sizes->height * request->sizes->planes};
    const struct bench_listener listener = {&heard, hear, NULL};
    size_t wrong = 0;
    request->size_count = 1;
    request->threads = 1;
    request->cpu = true;
    assert_true(bench_open(&bench, request, &error));
    assert_true(bench.cpu_peak > 0);
    const bool done = bench_run(&bench, &listener, &wrong, &error);
    bench_close(&bench);
    assert_true(done);
    assert_int_equal(wrong, 0);
    assert_int_equal(heard.right, heard.rows);
    assert_int_equal(heard.timed, heard.rows);
    return heard;
}

/* The default filters: one row of the automatic choice a filter, and the reference with those of one kind. */
static void test_run_default(void **state)
{
    (void)state;
    struct filter *filters;
    size_t count;
    assert_true(filter_find_all(BENCH_FILTERS, bench_find_filter, &filters, &count, NULL));
    /* Small: the reference is left out where it takes long, which under sanitizers it soon does. */
    const struct bench_size size = {37, 47, 2};
    struct bench_request request = {.sizes = &size,
                                    .filters = filters,
                                    .filter_count = count,
                                    .default_filters = true,
                                    .samples = {[SAMPLE_U8] = true, [SAMPLE_F32] = true},
                                    .border = BORDER_WRAP};
    const struct heard heard = run(&request);
    assert_int_equal(heard.copies, 2);
    assert_int_equal(heard.chosen, 18 + 12); /* uint8: all; float: without int16 */
    assert_int_equal(heard.rows, 2 + 30 + 12);
    free(filters);
}

/* With these taps, the reference checks only some rows of the image, borders included. */
static void test_run_in_bands(void **state)
{
    (void)state;
    enum { SIDE = 63 };
    static char text[SIDE * SIDE * 4 + 64];
    size_t used = (size_t)sprintf(text, "anchor 50 3\nscale 2500\noffset 128\n");
    /* A column times a row, so that the variant that is timed takes no time. */
    for (int i = 0; i < SIDE * SIDE; i++)
        used += (size_t)sprintf(text + used, "%d%c", (i / SIDE * 5 % 7 - 3) * (i % SIDE * 3 % 7 - 2),
                                (i + 1) % SIDE ? ' ' : '\n');
    struct filter *filter = malloc(sizeof *filter);
    assert_true(filter_parse(text, used, "large", filter, NULL));
    assert_true(filter->separable);
    const struct bench_size size = {733, 699, 1};
    assert_true((double)size.width * size.height * SIDE * SIDE > 2e9); /* see check.c */
    for (enum border border = 0; border < BORDER_COUNT; border++) {
        struct bench_request request = {.sizes = &size,
                                        .filters = filter,
                                        .filter_count = 1,
                                        .samples = {[SAMPLE_U8] = true, [SAMPLE_F32] = border == 0},
                                        .border = border};
        const struct heard heard = run(&request);
        assert_int_equal(heard.chosen, border == 0 ? 2 : 1);
    }
    free(filter);
}

/* What BENCH and ROWS print in FORMAT. */
static void print(enum bench_format format, const struct bench *bench, const struct bench_row *rows, size_t count,
                  char **text)
{
    size_t size;
    FILE *file = open_memstream(text, &size);
    struct bench_writer writer;
    assert_non_null(file);
    assert_true(bench_write_begin(&writer, file, format, bench, NULL));
    for (size_t i = 0; i < count; i++)
        bench_write_row(&writer, &rows[i]);
    bench_write_end(&writer);
    fclose(file);
}

static size_t times(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

static void test_print(void **state)
{
    (void)state;
    struct filter *filters;
    size_t count;
    assert_true(filter_find_all(BENCH_FILTERS, bench_find_filter, &filters, &count, NULL));
    strcpy(filters[1].name, "a \"b\",c");
    const struct bench_request request = {.filters = filters, .filter_count = 2};
    struct bench bench = {.request = &request, .cpu = "a processor", .pool.threads = 2, .cpu_peak = 1e11};
    const struct bench_row row = {.variant = "slow",
                                  .backend = BACKEND_CUDA,
                                  .filter = &filters[0],
                                  .size = {16384, 16384, 3},
                                  .runs = 21,
                                  .median_ms = 12345.678,
                                  .min_ms = 2,
                                  .max_ms = 99999,
                                  .gpixel_s = 12345.678,
                                  .gb_s = 99999,
                                  .tmac_s = 1234.5,
                                  .intensity = 961,
                                  .percent_copy = 100,
                                  .percent_peak = 100,
                                  .upload_ms = 123456,
                                  .download_ms = 99999,
                                  .canonical = true};
    struct bench_row rows[5];
    for (size_t i = 0; i < 5; i++)
        rows[i] = row;
    rows[1].variant = "quick";
    rows[1].median_ms = 11800; /* the choice is within 10 % of it */
    rows[0].chosen = true;
    rows[2].filter = rows[3].filter = rows[4].filter = &filters[1];
    rows[2].chosen = true;
    rows[3].median_ms = 6172.839;
    rows[3].variant = "quick";
    rows[4].variant = "broken";
    rows[4].wrong = true;
    rows[4].different = 7;
    rows[4].runs = 0;

    char *text;
    print(BENCH_TABLE, &bench, rows, 5, &text);
    assert_int_equal(times(text, "\n variant "), 2); /* a header a group */
    assert_int_equal(times(text, "\n*slow "), 2);
    assert_int_equal(times(text, "broken          WRONG, so not timed: 7 samples differ from the expected ones\n"), 1);
    assert_non_null(strstr(text, "in 1 of 2 cases; not in these:\n"));
    assert_non_null(
        strstr(text, "  16384x16384x3 uint8 a \"b\",c: slow took 12345.6780 ms, quick 6172.8390 ms (2.00 "));
    for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n"))
        assert_in_range(strlen(line), 0, 120);
    free(text);

    print(BENCH_JSON, &bench, rows, 5, &text);
    assert_int_equal(times(text, "\"status\": \"wrong\""), 1);
    assert_int_equal(times(text, "\"median_ms\": null"), 1);
    assert_int_equal(times(text, "\"chosen\": true"), 2);
    assert_int_equal(times(text, "\"filter\": \"a \\\"b\\\",c\""), 3);
    assert_non_null(strstr(text, "\"device\": null"));
    assert_non_null(strstr(text, "\"fma_tmac_s\": null"));
    assert_non_null(strstr(text, "\"cpu_fma_tmac_s\": 0.1}"));
    free(text);

    print(BENCH_CSV, &bench, rows, 5, &text);
    assert_int_equal(times(text, "\n"), 6);
    assert_int_equal(times(text, ",\"a \"\"b\"\",c\",3,3,uint8,"), 3);
    free(text);
    free(filters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),       cmocka_unit_test(test_filters),
        cmocka_unit_test(test_names),       cmocka_unit_test(test_statistics),
        cmocka_unit_test(test_compare),     cmocka_unit_test(test_compare_on_threads),
        cmocka_unit_test(test_run_default), cmocka_unit_test(test_run_in_bands),
        cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
