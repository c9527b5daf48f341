/* SPDX-License-Identifier: MIT
 *
 * The cases of the benchmark: sizes, filters, random samples, and plans. */
#include "bench/bench_internal.h"

#include "base/random.h"
#include "base/text.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Sizes ---- */

static bool read_size(const char **text, struct bench_size *size)
{
    size->planes = 1;
    if (!text_read_number(text, 1, BENCH_SIDE, &size->width) || *(*text)++ != 'x' ||
        !text_read_number(text, 1, BENCH_SIDE, &size->height))
        return false;
    if (**text != 'x')
        return true;
    (*text)++;
    return text_read_number(text, 1, BENCH_PLANES, &size->planes);
}

bool bench_parse_sizes(const char *text, struct bench_size *sizes, size_t *count, struct error *error)
{
    const char *at = text;
    for (*count = 0;; at++) {
        if (*count == BENCH_SIZES)
            return error_set(error, ERROR_USAGE, "--bench-size takes at most %d sizes; run gpuconv twice", BENCH_SIZES);
        if (!read_size(&at, &sizes[(*count)++]) || (*at != ',' && *at != '\0'))
            return error_set(
                error, ERROR_USAGE,
                "--bench-size takes sizes such as 4096x4096 or, with planes (1 to %d), 4096x4096x3, joined "
                "by commas, not \"%s\"",
                BENCH_PLANES, text);
        if (*at == '\0')
            return true;
    }
}

/* Does a case of SIZE fit into nine tenths of memory? The host holds three images; the GPU holds at least two pairs of
 * buffers and two interleaved images. */
static bool fits_memory(const struct bench *bench, const struct bench_size *size)
{
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++) {
        struct plane plane;
        const double bytes = (double)bench_gpu.plane_layout(size, sample, &plane);
        if (bench->request->samples[sample] &&
            ((pages > 0 && 3 * bytes > 0.9 * (double)pages * (double)page) ||
             (bench->device != NULL && 6 * bytes > 0.9 * (double)bench->info.memory)))
            return false;
    }
    return true;
}

void bench_set_sizes(struct bench *bench)
{
    const struct bench_request *request = bench->request;
    for (size_t i = 0; i < request->size_count; i++)
        bench->sizes[bench->size_count++] = request->sizes[i];
    for (int side = 1024; request->size_count == 0 && side <= 16384; side *= 2)
        for (int planes = 1; planes <= 3; planes += 2) {
            const struct bench_size size = {side, side, planes};
            if (fits_memory(bench, &size))
                bench->sizes[bench->size_count++] = size;
            else
                bench->omitted_sizes++;
        }
}

/* ---- Filters ---- */

enum { SMALLEST_SIDE = 3, LARGEST_SIDE = 31 };

enum { INT16_TAP = 8000 };
static_assert(INT16_TAP * LARGEST_SIDE * LARGEST_SIDE <= FILTER_MAX_SUM, "sum|q| * 255 < 2^31");

static const char *const kind_names[KIND_COUNT] = {"int8", "int16", "rank1"};
static const char *const kind_titles[KIND_COUNT] = {"random taps from -127 to 127", "random taps from -8000 to 8000",
                                                    "separable: a column times a row, a smooth blur"};

/* Element I of a smooth vector of SIDE small integers: 1 2 3 ... 3 2 1. */
static int ramp(int i, int side)
{
    return i < side - i ? i + 1 : side - i;
}

/* Random taps get a scale and an offset that give outputs for random samples a mean near 128 and a standard deviation
 * near 45. Such outputs are neither saturated nor constant, so a wrong sum shows. The taps of rank 1 are a weighted
 * mean. */
static bool make_random_filter(enum filter_kind kind, int side, struct filter *filter, struct error *error)
{
    const int limit = kind == KIND_INT8 ? 127 : INT16_TAP;
    uint64_t state = (uint64_t)(1000 * side + (int)kind);
    int taps[LARGEST_SIDE * LARGEST_SIDE];
    double sum = 0, squares = 0;
    for (int i = 0; i < side * side; i++) {
        taps[i] = kind == KIND_RANK_1 ? ramp(i / side, side) * ramp(i % side, side)
                                      : (int)(random_next(&state) % (uint64_t)(2 * limit + 1)) - limit;
        sum += taps[i];
        squares += (double)taps[i] * taps[i];
    }
    /* Random samples from 0 to 255 have a mean of 127.5 and a standard deviation of 73.9. */
    const double scale = kind == KIND_RANK_1 ? sum : floor(sqrt(squares) * 73.9 / 45) + 1;
    const double offset = kind == KIND_RANK_1 ? 0 : floor(128 - sum * 127.5 / scale);

    char name[32];
    struct text_buffer text;
    snprintf(name, sizeof name, "%s-%d", kind_names[kind], side);
    FILE *stream = text_open(&text);
    if (stream == NULL)
        return error_no_memory(error, "the filter %s", name);
    fprintf(stream, "title %s\nscale %.0f\noffset %.0f\n", kind_titles[kind], scale, offset);
    for (int i = 0; i < side * side; i++)
        fprintf(stream, "%d%c", taps[i], (i + 1) % side ? ' ' : '\n');
    const bool done = text_close(stream, &text) ? filter_parse(text.bytes, text.size, name, filter, error)
                                                : error_no_memory(error, "the filter %s", name);
    free(text.bytes);
    return done;
}

bool bench_find_filter(const char *spec, struct filter *filter, struct filter *filter16, struct error *error)
{
    for (enum filter_kind kind = 0; kind < KIND_COUNT; kind++) {
        const size_t length = strlen(kind_names[kind]);
        const char *at = spec + length + 1;
        int side;
        if (strncmp(spec, kind_names[kind], length) != 0 || spec[length] != '-' || at[strspn(at, "0123456789")] != '\0')
            continue;
        if (text_read_number(&at, SMALLEST_SIDE, LARGEST_SIDE, &side))
            return make_random_filter(kind, side, filter, error);
        return error_set(error, ERROR_USAGE, "the benchmark's filters %s-N have %d to %d taps per side, not \"%s\"",
                         kind_names[kind], SMALLEST_SIDE, LARGEST_SIDE, spec + length + 1);
    }
    return filter_find(spec, filter, filter16, error);
}

/* ---- Samples ---- */

/* Fill PLANE with random samples: bytes, words of 16 bits, or floats from 0 to 1. The padding is random too, so that
 * the output of a variant that reads it is wrong. BYTES is a multiple of 8. */
static void fill_random(const struct plane *plane, size_t bytes)
{
    uint64_t state = 20261121; /* any */
    char *to = plane->data;
    for (size_t at = 0; at < bytes; at += sizeof(uint64_t)) {
        const uint64_t word = random_next(&state);
        const float two[2] = {(float)(word >> 40) / (1 << 24), (float)(word >> 8 & 0xffffff) / (1 << 24)};
        memcpy(to + at, plane->sample != SAMPLE_F32 ? (const void *)&word : two, sizeof word);
    }
}

bool case_reserve(struct bench_case *c, struct error *error)
{
    struct plane *const planes[] = {&c->in, &c->expected, &c->actual};
    for (size_t i = 0; i < sizeof planes / sizeof planes[0]; i++) {
        c->bytes = bench_gpu.plane_layout(&c->size, c->sample, planes[i]);
        planes[i]->data = malloc(c->bytes);
        if (planes[i]->data == NULL)
            return error_no_memory(error, "%d x %d x %d samples", c->size.width, c->size.height, c->size.planes);
    }
    fill_random(&c->in, c->bytes);
    return true;
}

bool case_size_outputs(struct bench_case *c, const struct filter *filter, struct error *error)
{
    struct plane *const planes[] = {&c->expected, &c->actual, &c->device_out};
    struct bench_size size = c->size;
    if (!filter_resize(filter, &size.width, &size.height, error))
        return false;
    for (size_t i = 0; i < sizeof planes / sizeof planes[0]; i++) {
        void *data = planes[i]->data;
        if (bench_gpu.plane_layout(&size, c->sample, planes[i]) > c->bytes)
            return error_set(error, ERROR_USAGE,
                             "--bench measures filters whose result is not larger than the image, and %s makes %d x %d "
                             "pixels of %d x %d; give another filter or size",
                             filter->name, size.width, size.height, c->size.width, c->size.height);
        planes[i]->data = data;
    }
    return true;
}

void case_release(struct bench_case *c)
{
    free(c->in.data);
    free(c->expected.data);
    free(c->actual.data);
}

/* ---- Plans ---- */

bool case_plan(const struct bench_case *c, const struct filter *filter, const struct variant *variant,
               struct plan *plan, struct error *error)
{
    if (!variant_plan(plan, filter, c->bench->request->border, c->sample, variant, error))
        return false;
    plan->pool = &c->bench->pool;
    if (!plan_resize(plan, c->size.width, c->size.height, error))
        return false;
    return variant->backend != BACKEND_CPU || variant_prepare(plan, NULL, error);
}
