/* SPDX-License-Identifier: MIT
 *
 * The check of outputs: two images against each other, and the expected image against the reference. */
#include "bench/bench_internal.h"

#include "base/clock.h"
#include "base/parallel.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* ---- Two images ---- */

double bench_sample(const struct plane *plane, int channel, int y, int x)
{
    const void *row = plane_row(plane, channel, y);
    return plane->sample == SAMPLE_U8    ? ((const uint8_t *)row)[x]
           : plane->sample == SAMPLE_U16 ? ((const uint16_t *)row)[x]
                                         : (double)((const float *)row)[x];
}

enum { COMPARED_ROWS = 16 }; /* rows that a thread compares at a time */

struct comparison {
    const struct plane *expected, *actual;
    double allowed;
    atomic_uint_least64_t different, wrong;
    atomic_int_least64_t first; /* the least index of a wrong sample; samples are counted through all planes */
};

/* Compare COMPARED_ROWS rows from row INDEX * COMPARED_ROWS on. Rows are counted through all planes. */
static void compare_some_rows(void *context, int64_t index, int thread)
{
    struct comparison *comparison = context;
    const struct plane *expected = comparison->expected, *actual = comparison->actual;
    const int64_t rows = (int64_t)expected->height * expected->count, begin = index * COMPARED_ROWS;
    uint64_t different = 0, wrong = 0;
    int64_t first = INT64_MAX, known = atomic_load(&comparison->first);
    (void)thread;
    for (int64_t i = begin; i < rows && i < begin + COMPARED_ROWS; i++) {
        const int channel = (int)(i / expected->height), y = (int)(i % expected->height);
        if (expected->sample != SAMPLE_F32 && memcmp(plane_row(expected, channel, y), plane_row(actual, channel, y),
                                                     (size_t)expected->width * sample_bytes(expected->sample)) == 0)
            continue;
        for (int x = 0; x < expected->width; x++) {
            const double p = bench_sample(expected, channel, y, x), q = bench_sample(actual, channel, y, x);
            different += !(p == q);
            if (fabs(p - q) <= comparison->allowed)
                continue;
            if (wrong++ == 0) /* NaN is wrong */
                first = i * expected->width + x;
        }
    }
    atomic_fetch_add(&comparison->different, different);
    atomic_fetch_add(&comparison->wrong, wrong);
    while (first < known && !atomic_compare_exchange_weak(&comparison->first, &known, first))
        ;
}

struct bench_difference bench_compare(const struct plane *expected, const struct plane *actual, double allowed,
                                      struct thread_pool *pool)
{
    struct comparison comparison = {.expected = expected, .actual = actual, .allowed = allowed, .first = INT64_MAX};
    const int64_t rows = (int64_t)expected->height * expected->count;
    const bool small = rows * expected->width <= 1 << 20; /* starting threads would take longer */
    parallel_for(small ? NULL : pool, thread_pool_threads(pool), (rows + COMPARED_ROWS - 1) / COMPARED_ROWS,
                 compare_some_rows, &comparison);
    return (struct bench_difference){comparison.different, comparison.wrong, comparison.first};
}

const char *bench_hides_errors(const struct plane *expected)
{
    size_t extremes = 0, other = 0;
    const double first = bench_sample(expected, 0, 0, 0), white = expected->sample == SAMPLE_U8 ? 255 : 65535;
    const size_t samples = (size_t)expected->width * (size_t)expected->height;
    if (samples < 4096 || expected->sample == SAMPLE_F32) /* a small image may be so by chance */
        return NULL;
    for (int y = 0; y < expected->height; y++)
        for (int x = 0; x < expected->width; x++) {
            const double value = bench_sample(expected, 0, y, x);
            extremes += value == 0 || value == white;
            other += value != first;
        }
    return other == 0 ? "constant" : extremes > samples / 10 ? "saturated" : NULL;
}

/* ---- The expected image against the reference ---- */

/* Samples times taps that the reference computes: all of an image up to the first limit, which takes a few seconds of
 * one thread; else three bands of rows that have the second number together. */
static const double check_whole = 2e9, check_bands = 2e8;

/* Compute the rows of outputs from FIRST to LAST - 1 by the reference, and compare them with the expected ones. */
static bool check_band(struct bench_case *c, struct plan *reference, int first, int last, double allowed,
                       uint64_t *wrong, struct error *error)
{
    struct plane expected = c->expected, actual = c->actual;
    reference->first_row = first;
    reference->last_row = last;
    if (!variant_launch(reference, NULL, &c->in, &c->actual, error))
        return false;
    expected.data = plane_row(&c->expected, 0, first);
    actual.data = plane_row(&c->actual, 0, first);
    expected.height = actual.height = last - first;
    *wrong += bench_compare(&expected, &actual, allowed, &c->bench->pool).wrong;
    return true;
}

bool check_expected(struct bench_case *c, const struct filter *filter, double allowed, uint64_t *wrong,
                    struct error *error)
{
    struct plan reference;
    const double row_work = filter_multiply_adds(filter) * size_samples(&c->size) / c->size.height;
    const int height = c->expected.height;
    const int rows =
        row_work * c->size.height <= check_whole ? height : clamp_to_int(check_bands / 3 / row_work, 1, height);
    const int bands = rows < height ? 3 : 1; /* the first rows, the middle and the last */
    *wrong = 0;
    if (!case_plan(c, filter, variant_reference(), &reference, error))
        return false;
    const double start = clock_milliseconds();
    bool done = true;
    for (int band = 0; done && band < bands; band++) {
        const int first = (int)((int64_t)(height - rows) * band / 2);
        done = check_band(c, &reference, first, first + rows, allowed, wrong, error);
    }
    c->tap_seconds = (clock_milliseconds() - start) / 1e3 / (bands * rows * row_work);
    plan_free(&reference);
    return done;
}
