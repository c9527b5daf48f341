/* SPDX-License-Identifier: MIT
 *
 * The benchmark's cases and rows. bench.h says what is measured, and how. */
#include "bench/bench_internal.h"

#include "base/clock.h"
#include "base/parallel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The reference is not timed if a launch would take longer. Its time is proportional to samples times taps, so larger
 * cases show nothing new. */
static const double longest_reference_seconds = 0.5;

/* FILTER is a filter's name, or empty. */
static void report_case(const struct bench_case *c, const char *filter, const char *what)
{
    char text[512];
    if (c->listener->on_progress == NULL)
        return;
    snprintf(text, sizeof text, "%dx%dx%d %s %s %s", c->size.width, c->size.height, c->size.planes,
             sample_name(c->sample), filter, what);
    c->listener->on_progress(c->listener->context, text);
}

/* ---- Times ---- */

static int compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void bench_statistics(double *milliseconds, int runs, struct bench_row *row)
{
    qsort(milliseconds, (size_t)runs, sizeof *milliseconds, compare_doubles);
    row->runs = runs;
    row->median_ms = (milliseconds[(runs - 1) / 2] + milliseconds[runs / 2]) / 2;
    row->min_ms = milliseconds[0];
    row->max_ms = milliseconds[runs - 1];
    row->spread = (milliseconds[runs - 1 - runs / 4] - milliseconds[runs / 4]) / row->median_ms;
}

/* Time a plan of the CPU, or a copy if PLAN is NULL. FIRST_MS is the time of an earlier launch. */
static bool time_cpu(struct bench_case *c, const struct plan *plan, double first_ms, struct bench_row *row,
                     struct error *error)
{
    double milliseconds[BENCH_RUNS];
    const int runs = first_ms > 300 ? BENCH_CPU_RUNS : BENCH_RUNS; /* see bench.h */
    for (int run = runs == BENCH_RUNS ? -BENCH_WARM_UP : 0; run < runs; run++) {
        const double start = clock_milliseconds();
        if (plan == NULL)
            memcpy(c->actual.data, c->in.data, c->bytes);
        else if (!variant_launch(plan, NULL, &c->in, &c->actual, error))
            return false;
        milliseconds[run < 0 ? 0 : run] = clock_milliseconds() - start;
    }
    bench_statistics(milliseconds, runs, row);
    return true;
}

/* ---- Rows ---- */

static bool is_cuda(const struct bench_row *row)
{
    return row->backend == BACKEND_CUDA;
}

/* The peak rate of the arithmetic that VARIANT uses, in multiply-adds per second. */
static double peak_of(const struct bench *bench, const struct variant *variant, enum sample sample)
{
    if (variant->backend == BACKEND_CPU)
        return bench->cpu_peak;
    if (sample == SAMPLE_F32 && variant->unit == UNIT_TENSOR) /* three products of halves, at half the rate of bytes */
        return bench->peaks.tensor / 6;
    if (sample == SAMPLE_F32 || variant->unit == UNIT_FMA)
        return bench->peaks.fma;
    return variant->unit == UNIT_DP4A ? bench->peaks.dp4a : bench->peaks.tensor;
}

/* The multiply-adds of a row of VARIANT. */
static double multiply_adds(const struct bench_case *c, const struct variant *variant, const struct filter *filter)
{
    const struct kind_of_step *kind = filter_kind(filter);
    if (variant->accepts == ACCEPTS_RANK_1)
        return size_samples(&c->size) * (filter->width + filter->height);
    return kind->work == NULL ? 0 : c->size.planes * kind->work(filter, c->size.width, c->size.height);
}

/* Compute the rates of a row from its median time. VARIANT is NULL for a copy. */
static void set_rates(const struct bench_case *c, const struct variant *variant, struct bench_row *row)
{
    const double samples = size_samples(&c->size), seconds = row->median_ms / 1e3;
    const double outputs =
        row->filter != NULL ? (double)c->expected.width * c->expected.height * c->expected.count : samples;
    const double bytes = (samples + outputs) * (double)sample_bytes(c->sample);
    const double copy_seconds = c->copy_ms[row->backend] / 1e3;
    row->memory_bound = true;
    if (row->runs == 0)
        return;
    row->gpixel_s = samples / seconds / 1e9;
    row->gb_s = bytes / seconds / 1e9;
    row->x_copy = seconds / copy_seconds;
    row->percent_copy = 100 * copy_seconds / seconds;
    if (variant == NULL)
        return;
    const double macs = multiply_adds(c, variant, row->filter);
    const double peak = peak_of(c->bench, variant, c->sample);
    row->tmac_s = macs / seconds / 1e12;
    row->intensity = 2 * macs / bytes;
    row->percent_peak = 100 * macs / seconds / peak;
    row->memory_bound = macs / copy_seconds < peak;
}

static void deliver_row(struct bench_case *c, const struct bench_row *row)
{
    c->wrong_rows += row->wrong;
    c->listener->on_row(c->listener->context, row);
}

static struct bench_row new_row(const struct bench_case *c, const char *variant, enum backend backend)
{
    return (struct bench_row){
        .variant = variant,
        .backend = backend,
        .size = c->size,
        .sample = c->sample,
        .border = c->bench->request->border,
        .canonical = true,
        .upload_ms = backend == BACKEND_CUDA ? c->upload_ms : 0,
        .download_ms = backend == BACKEND_CUDA ? c->download_ms : 0,
    };
}

/* Time copies on both backends. */
static bool measure_copies(struct bench_case *c, struct error *error)
{
    const bool wanted[2] = {[BACKEND_CPU] = c->bench->request->cpu, [BACKEND_CUDA] = c->bench->device != NULL};
    report_case(c, "", "copies");
    for (enum backend backend = BACKEND_CPU; backend <= BACKEND_CUDA; backend++) {
        struct bench_row row = new_row(c, backend == BACKEND_CUDA ? "(copy)" : "(memcpy)", backend);
        if (!wanted[backend])
            continue;
        if (!(is_cuda(&row) ? bench_gpu.time(c, NULL, false, &row, error) : time_cpu(c, NULL, 0, &row, error)))
            return false;
        c->copy_ms[backend] = row.median_ms;
        set_rates(c, NULL, &row);
        deliver_row(c, &row);
    }
    return true;
}

static bool names_variant(const struct bench *bench, const struct variant *variant)
{
    size_t count;
    return (bench->request->variants >> (variant - variants(&count)) & 1) != 0;
}

/* Is VARIANT measured with FILTER? The time of the reference and of the textbook variants, which are not canonical,
 * does not depend on the values of the taps: of the default filters they get one kind only. */
static bool is_wanted(const struct bench *bench, const struct variant *variant, const struct filter *filter,
                      enum sample sample)
{
    const struct bench_request *request = bench->request;
    if (!variant_is_built(variant) || !variant_accepts(variant, filter, sample) ||
        (request->variants != 0 && !names_variant(bench, variant)))
        return false;
    if (variant->backend == BACKEND_CPU ? !request->cpu
                                        : bench->device == NULL || variant->capability > bench->info.capability)
        return false;
    if (!request->default_filters)
        return true;
    const enum filter_kind kind = (enum filter_kind)((filter - request->filters) % KIND_COUNT);
    if (sample == SAMPLE_F32 && kind == KIND_INT16)
        return false; /* in float all dense taps take the same time */
    return kind == KIND_INT8 || (variant_is_canonical(variant) && !variant->is_reference);
}

/* Check the output of PLAN's variant against the expected image. If it is right, time it. With IMAGE, do so from an
 * interleaved image to an interleaved image. */
static bool measure_plan(struct bench_case *c, struct plan *plan, bool image, const struct work *work,
                         struct error *error)
{
    const struct variant *variant = plan->variant;
    const struct filter *filter = plan->filter;
    struct bench_row row = new_row(c, image ? "(image)" : variant->name, variant->backend);
    row.filter = filter;
    row.canonical = variant_is_canonical(variant);
    row.chosen = !image && variant_choose(filter, variant->backend, work) == variant;
    memset(c->actual.data, 0xff, c->bytes); /* poison; for floats NaN */
    const double start = clock_milliseconds();
    if (!(is_cuda(&row) ? bench_gpu.run(c, plan, image, error) : variant_launch(plan, NULL, &c->in, &c->actual, error)))
        return false;
    const double first_ms = clock_milliseconds() - start;
    /* Both float sums are rounded. */
    const double allowed = c->sample == SAMPLE_F32 ? 2 * variant_tolerance(plan) : variant_tolerance(plan);
    const struct bench_difference difference = bench_compare(&c->expected, &c->actual, allowed, &c->bench->pool);
    row.different = difference.different;
    row.wrong = difference.wrong > 0;
    if (!row.wrong &&
        !(is_cuda(&row) ? bench_gpu.time(c, plan, image, &row, error) : time_cpu(c, plan, first_ms, &row, error)))
        return false;
    set_rates(c, image ? NULL : variant, &row);
    deliver_row(c, &row);
    return true;
}

static bool measure_row(struct bench_case *c, const struct variant *variant, const struct filter *filter, bool image,
                        const struct work *work, struct error *error)
{
    struct plan plan;
    report_case(c, filter->name, image ? "(image)" : variant->name);
    if (!case_plan(c, filter, variant, &plan, error))
        return false;
    const bool done = measure_plan(c, &plan, image, work, error);
    plan_free(&plan);
    return done;
}

/* The variant of the row (image): the chosen one or, if variants are named, the first of them that works on the GPU.
 * NULL if there is none, the planes make no image, or the filter makes another size. */
static const struct variant *image_variant(const struct bench_case *c, const struct filter *filter,
                                           const struct work *work)
{
    size_t count;
    const struct variant *table = variants(&count), *chosen = variant_choose(filter, BACKEND_CUDA, work);
    const struct kind_of_step *kind = filter_kind(filter);
    for (const struct variant *row = table;
         c->images.bytes != NULL && (!kind->resizes || kind->moves) && row < table + count; row++)
        if ((c->bench->request->variants != 0 ? row->backend == BACKEND_CUDA : row == chosen) &&
            is_wanted(c->bench, row, filter, c->sample))
            return row;
    return NULL;
}

/* Would the reference take too long? If the user named it, it is timed anyway. */
static bool is_too_slow(const struct bench_case *c, const struct variant *variant, const struct filter *filter)
{
    return variant->is_reference && !names_variant(c->bench, variant) &&
           c->tap_seconds * filter_multiply_adds(filter) * size_samples(&c->size) > longest_reference_seconds;
}

static bool measure_filter(struct bench_case *c, const struct filter *filter, struct error *error)
{
    size_t count, wanted = 0;
    const struct bench *bench = c->bench;
    const struct variant *table = variants(&count);
    for (size_t i = 0; i < count; i++)
        wanted += is_wanted(bench, &table[i], filter, c->sample);
    if (wanted == 0)
        return true;
    if (!case_size_outputs(c, filter, error))
        return false;

    const struct work work = {.width = c->size.width,
                              .height = c->size.height,
                              .planes = c->size.planes,
                              .sample = c->sample,
                              .threads = bench->pool.threads};
    const struct variant *canonical = variant_choose(filter, BACKEND_CPU, &work);
    struct plan plan;
    uint64_t wrong;
    report_case(c, filter->name, "expected samples");
    if (!case_plan(c, filter, canonical, &plan, error))
        return false;
    const bool done = variant_launch(&plan, NULL, &c->in, &c->expected, error);
    const double allowed = variant_tolerance(&plan);
    plan_free(&plan);
    if (!done || !check_expected(c, filter, allowed, &wrong, error))
        return false;
    if (wrong > 0) { /* without right samples no other variant can be checked */
        struct bench_row row = new_row(c, canonical->name, BACKEND_CPU);
        row.filter = filter;
        row.wrong = row.chosen = true;
        row.different = wrong;
        set_rates(c, canonical, &row);
        deliver_row(c, &row);
        return true;
    }
    const char *hides = bench->request->default_filters ? bench_hides_errors(&c->expected) : NULL;
    if (hides != NULL)
        return error_set(error, ERROR_WORK,
                         "the benchmark's filter %s makes a %s image, which would hide errors; give other filters with "
                         "--bench-filter",
                         filter->name, hides);
    for (size_t i = 0; i < count; i++)
        if (is_wanted(bench, &table[i], filter, c->sample) && !is_too_slow(c, &table[i], filter) &&
            !measure_row(c, &table[i], filter, false, &work, error))
            return false;
    const struct variant *variant = image_variant(c, filter, &work);
    return variant == NULL || measure_row(c, variant, filter, true, &work, error);
}

static bool measure_case(struct bench_case *c, struct error *error)
{
    report_case(c, "", "samples");
    if (!case_reserve(c, error) || (c->bench->device != NULL && !bench_gpu.reserve(c, error)) ||
        !measure_copies(c, error))
        return false;
    const struct bench_request *request = c->bench->request;
    for (size_t i = 0; i < request->filter_count; i++)
        if (!measure_filter(c, &request->filters[i], error))
            return false;
    return true;
}

bool bench_run(struct bench *bench, const struct bench_listener *listener, size_t *wrong, struct error *error)
{
    *wrong = 0;
    for (size_t i = 0; i < bench->size_count; i++)
        for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++) {
            if (!bench->request->samples[sample])
                continue;
            struct bench_case c = {.bench = bench, .listener = listener, .size = bench->sizes[i], .sample = sample};
            const bool done = measure_case(&c, error);
            if (bench->device != NULL)
                bench_gpu.release(&c);
            case_release(&c);
            *wrong += c.wrong_rows;
            if (!done)
                return false;
        }
    return true;
}

/* ---- Opening ---- */

static void read_cpu_name(char name[128])
{
    char line[256];
    strcpy(name, "unknown");
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL && sscanf(line, "model name : %127[^\n]", name) != 1)
        ;
    fclose(file);
}

/* Check that VARIANT, which is named, can run here and takes at least one of the filters. */
static bool check_named(const struct bench *bench, const struct variant *variant, struct error *error)
{
    const struct bench_request *request = bench->request;
    if (variant_is_built(variant) && variant->backend == BACKEND_CUDA && bench->device == NULL)
        return error_set(error, ERROR_WORK, "the variant %s needs a GPU, and no GPU can be used: %s", variant->name,
                         bench->no_device.message);
    if (bench->device != NULL && variant->capability > bench->info.capability)
        return error_set(error, ERROR_WORK, "the variant %s needs a GPU of compute capability %d.%d and %s has %d.%d",
                         variant->name, variant->capability / 10, variant->capability % 10, bench->info.name,
                         bench->info.capability / 10, bench->info.capability % 10);
    enum sample first = 0;
    while (!request->samples[first])
        first++;
    for (size_t i = 0; i < request->filter_count; i++)
        for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++)
            if (request->samples[sample] && is_wanted(bench, variant, &request->filters[i], sample))
                return true;
    if (request->default_filters)
        return error_set(
            error, ERROR_USAGE,
            "the variant %s takes none of the benchmark's filters; give a filter that it takes with --bench-filter",
            variant->name);
    struct plan plan;
    return variant_plan(&plan, &request->filters[0], request->border, first, variant, error);
}

bool bench_open(struct bench *bench, const struct bench_request *request, struct error *error)
{
    *bench = (struct bench){.request = request};
    thread_pool_open(&bench->pool, request->threads);
    if (request->cuda && !bench_gpu.open(bench, &bench->no_device) && !request->cpu)
        return error_set(error, ERROR_WORK, "no GPU can be used: %s; --backend cpu works on every machine",
                         bench->no_device.message);
    size_t count;
    const struct variant *table = variants(&count);
    for (const struct variant *row = table; row < table + count; row++)
        if (names_variant(bench, row) && !check_named(bench, row, error))
            return false;
    if (bench->device != NULL && !bench_gpu.measure(bench, error))
        return false;
    read_cpu_name(bench->cpu);
    if (request->cpu && !bench_measure_cpu(&bench->pool, &bench->cpu_peak, error))
        return false;
    bench_set_sizes(bench);
    return true;
}

void bench_close(struct bench *bench)
{
    if (bench->device != NULL)
        bench_gpu.close(bench);
    thread_pool_close(&bench->pool);
}
