/* SPDX-License-Identifier: MIT
 *
 * The check of outputs: two images against each other, and the expected image against the reference. */
#include "bench/bench_internal.h"

#include "base/clock.h"
#include "base/parallel.h"
#include "plan/border.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* ---- Two images ---- */

/* Sample X of a row. */
static inline double sample_at(const void *row, enum sample sample, int x)
{
    return sample == SAMPLE_U8    ? ((const uint8_t *)row)[x]
           : sample == SAMPLE_U16 ? ((const uint16_t *)row)[x]
                                  : (double)((const float *)row)[x];
}

enum { COMPARED_ROWS = 16 }; /* a thread compares so many at a time */

struct comparison {
    const struct plane *expected, *actual;
    double allowed;
    atomic_uint_least64_t different, wrong;
};

/* Compare COMPARED_ROWS rows from row INDEX * COMPARED_ROWS on. Rows are counted through all planes. */
static void compare_some_rows(void *context, int64_t index, int thread)
{
    struct comparison *comparison = context;
    const struct plane *expected = comparison->expected;
    const int64_t rows = (int64_t)expected->height * expected->count;
    const int64_t first = index * COMPARED_ROWS;
    uint64_t different = 0, wrong = 0;
    (void)thread;
    for (int64_t i = first; i < rows && i < first + COMPARED_ROWS; i++) {
        const int channel = (int)(i / expected->height), y = (int)(i % expected->height);
        const void *e = plane_row(expected, channel, y), *a = plane_row(comparison->actual, channel, y);
        if (expected->sample != SAMPLE_F32 &&
            memcmp(e, a, (size_t)expected->width * sample_bytes(expected->sample)) == 0)
            continue;
        for (int x = 0; x < expected->width; x++) {
            const double p = sample_at(e, expected->sample, x), q = sample_at(a, expected->sample, x);
            different += !(p == q);
            wrong += !(fabs(p - q) <= comparison->allowed); /* NaN is wrong */
        }
    }
    atomic_fetch_add(&comparison->different, different);
    atomic_fetch_add(&comparison->wrong, wrong);
}

struct bench_difference bench_compare(const struct plane *expected, const struct plane *actual, double allowed,
                                      struct thread_pool *pool)
{
    struct comparison comparison = {.expected = expected, .actual = actual, .allowed = allowed};
    const int64_t rows = (int64_t)expected->height * expected->count;
    const bool small = rows * expected->width <= 1 << 20; /* starting threads would take longer */
    parallel_for(small ? NULL : pool, thread_pool_threads(pool), (rows + COMPARED_ROWS - 1) / COMPARED_ROWS,
                 compare_some_rows, &comparison);
    return (struct bench_difference){comparison.different, comparison.wrong};
}

/* ---- The expected image against the reference ---- */

/* Samples times taps that the reference computes: all of an image up to the first limit, which takes a few seconds of
 * one thread; else three parts that have the second number together. */
static const double check_whole = 2e9, check_parts = 2e8;

/* A rectangle of one plane. */
struct part {
    int channel, x, y, width, height;
};

/* Copy the part of the input and its halo to WINDOW. Where the halo is outside the image, the border gives the samples.
 * So no output of the part depends on the border of the window itself. */
static void copy_window(const struct bench_case *c, const struct filter *filter, const struct part *part,
                        const struct plane *window)
{
    const size_t bytes = sample_bytes(c->sample);
    for (int i = 0; i < window->height; i++) {
        char *to = (char *)window->data + (size_t)i * window->row_bytes;
        const int y = border_index(part->y - filter->anchor_y + i, c->in.height, c->bench->request->border);
        for (int j = 0; j < window->width; j++) {
            const int x = border_index(part->x - filter->anchor_x + j, c->in.width, c->bench->request->border);
            if (y < 0 || x < 0)
                memset(to + (size_t)j * bytes, 0, bytes);
            else
                memcpy(to + (size_t)j * bytes, (const char *)plane_row(&c->in, part->channel, y) + (size_t)x * bytes,
                       bytes);
        }
    }
}

/* A view of PART as a plane. */
static struct plane part_of_plane(const struct plane *plane, const struct part *part)
{
    struct plane small = *plane;
    small.width = part->width;
    small.height = part->height;
    small.count = 1;
    small.data = (char *)plane->data + (size_t)part->channel * plane->plane_bytes + (size_t)part->y * plane->row_bytes +
                 (size_t)part->x * sample_bytes(plane->sample);
    return small;
}

static bool check_part(struct bench_case *c, const struct plan *reference, const struct part *part, double allowed,
                       uint64_t *wrong, struct error *error)
{
    const struct filter *filter = reference->filter;
    const int width = part->width + filter->width - 1, height = part->height + filter->height - 1;
    struct plane window = {0}, result = {0};
    bool done = plane_allocate(&window, c->sample, width, height, 1, error) &&
                plane_allocate(&result, c->sample, width, height, 1, error);
    if (done) {
        copy_window(c, filter, part, &window);
        const double start = clock_milliseconds();
        done = reference->variant->launch(reference, NULL, &window, &result, error);
        c->tap_seconds = (clock_milliseconds() - start) / 1e3 / ((double)width * height * filter_multiply_adds(filter));
    }
    if (done) {
        const struct plane expected = part_of_plane(&c->expected, part);
        const struct plane actual =
            part_of_plane(&result, &(struct part){0, filter->anchor_x, filter->anchor_y, part->width, part->height});
        *wrong += bench_compare(&expected, &actual, allowed, &c->bench->pool).wrong;
    }
    plane_free(&window);
    plane_free(&result);
    return done;
}

static bool check_with_plan(struct bench_case *c, const struct plan *reference, double allowed, uint64_t *wrong,
                            struct error *error)
{
    const struct filter *filter = reference->filter;
    const double work = filter_multiply_adds(filter) * size_samples(&c->size);
    *wrong = 0;
    if (work <= check_whole || filter_resizes(filter)) { /* other sizes have no parts that are alone */
        const double start = clock_milliseconds();
        if (!reference->variant->launch(reference, NULL, &c->in, &c->actual, error))
            return false;
        c->tap_seconds = (clock_milliseconds() - start) / 1e3 / work;
        *wrong = bench_compare(&c->expected, &c->actual, allowed, &c->bench->pool).wrong;
        return true;
    }
    /* Parts are as wide as the image if that leaves at least 4 rows, else narrower and 4 rows high. The reference
     * computes their halo too. */
    const double samples = check_parts / 3 / filter_multiply_adds(filter);
    const int width = clamp_to_int(samples / (4 + filter->height - 1) - (filter->width - 1), 64, c->size.width);
    const int part_width = width < c->size.width ? width : c->size.width;
    const int height =
        clamp_to_int(samples / (part_width + filter->width - 1) - (filter->height - 1), 4, c->size.height);
    const int part_height = height < c->size.height ? height : c->size.height;
    const int right = c->size.width - part_width, bottom = c->size.height - part_height;
    const struct part parts[] = {
        {0, 0, 0, part_width, part_height},
        {c->size.planes / 2, right / 2, bottom / 2, part_width, part_height},
        {c->size.planes - 1, right, bottom, part_width, part_height},
    };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (!check_part(c, reference, &parts[i], allowed, wrong, error))
            return false;
    return true;
}

bool check_expected(struct bench_case *c, const struct filter *filter, double allowed, uint64_t *wrong,
                    struct error *error)
{
    struct plan reference;
    if (!case_plan(c, filter, variant_reference(), &reference, error))
        return false;
    const bool done = check_with_plan(c, &reference, allowed, wrong, error);
    plan_free(&reference);
    return done;
}

bool hides_errors(const struct plane *plane)
{
    size_t extremes = 0, other = 0;
    const uint8_t first = *(const uint8_t *)plane_row(plane, 0, 0);
    for (int y = 0; y < plane->height; y++) {
        const uint8_t *row = plane_row(plane, 0, y);
        for (int x = 0; x < plane->width; x++) {
            extremes += row[x] == 0 || row[x] == 255;
            other += row[x] != first;
        }
    }
    const size_t samples = (size_t)plane->width * (size_t)plane->height;
    return samples >= 4096 && (other == 0 || extremes > samples / 10); /* a small image may be so by chance */
}
