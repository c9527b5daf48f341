/* SPDX-License-Identifier: MIT
 *
 * Run rows of the table on one case, and compare their outputs with the reference's. */
#include "check.h"

#include "base/vector/instruction_sets.h"
#include "kernels/device/device.h"

#include <inttypes.h>
#include <math.h>

bool is_wanted(const struct options *options, const struct variant *row)
{
    return variant_is_built(row) && (row->backend == BACKEND_CPU ? options->cpu : options->cuda) &&
           (options->variant == NULL || strcmp(options->variant, row->name) == 0);
}

#ifdef GPUCONV_CUDA
void checker_reserve(struct checker *checker, size_t size)
{
    struct error error = {0};
    if (!device_reserve(checker->device, &checker->in, size, &error) ||
        !device_reserve(checker->device, &checker->out, size, &error))
        fail("%s", error.message);
}
#endif

bool run_variant(struct checker *checker, struct plan *plan, const struct guarded *in, struct guarded *out,
                 struct error *error)
{
#ifdef GPUCONV_CUDA
    if (plan->variant->backend == BACKEND_CUDA) {
        struct device *device = checker->device;
        checker_reserve(checker, in->size > out->size ? in->size : out->size);
        struct plane from = in->plane, to = out->plane;
        from.data = checker->in.bytes + GUARD;
        to.data = checker->out.bytes + GUARD;
        return device_upload(device, checker->in.bytes, in->memory, in->size, error) &&
               device_upload(device, checker->out.bytes, out->memory, out->size, error) &&
               variant_prepare(plan, device, error) && variant_launch(plan, device, &from, &to, error) &&
               device_download(device, out->memory, checker->out.bytes, out->size, error) && device_wait(device, error);
    }
#endif
    plan->pool = &checker->pool;
    return variant_prepare(plan, NULL, error) && variant_launch(plan, NULL, &in->plane, &out->plane, error);
}

void case_open(struct test_case *c)
{
    const bool resizes = c->out_width > 0;
    const int width = resizes ? c->out_width : c->width, height = resizes ? c->out_height : c->height;
    /* Padding in a third of the inputs of each sample type, and in a fifth of the outputs. */
    const size_t in_padding = c->number / SAMPLE_COUNT % 3 == 0 ? ROW_STEP : 0;
    const size_t out_padding = c->number % 5 == 0 ? ROW_STEP : 0;
    c->poison = c->sample == SAMPLE_F32 ? 0xff : c->number & 1 ? 0xa5 : 0x5a;
    c->in = guarded_make(c->sample, c->width, c->height, c->planes, in_padding);
    c->expected = guarded_make(c->sample, width, height, c->planes, 0);
    c->actual = guarded_make(c->sample, width, height, c->planes, out_padding);
    memset(c->in.memory, c->poison, c->in.size);
}

void case_close(struct test_case *c)
{
    free(c->in.memory);
    free(c->expected.memory);
    free(c->actual.memory);
}

/* Compare one plane of floats, each by its magnitude. Any order of the sum keeps the first bound. The mean of the
 * squares shows errors that are small for this number of taps, such as that of a product without its last bits. */
static struct bench_difference compare_by_magnitude(const struct test_case *c)
{
    const double unit = ldexp(1, -24), allowed = (c->filter->width * c->filter->height + 12) * unit;
    struct bench_difference found = {.first = INT64_MAX};
    double squares = 0;
    uint64_t finite = 0;
    for (int64_t k = 0; k < (int64_t)c->width * c->height; k++) {
        const int x = (int)(k % c->width), y = (int)(k / c->width);
        const double expected = bench_sample(&c->expected.plane, 0, y, x);
        const double actual = bench_sample(&c->actual.plane, 0, y, x);
        /* the least float that is not 0, so often that it counts as rounding */
        const double error = fabs(expected - actual) / (c->magnitudes[k] + ldexp(1, -149) / unit);
        if (isfinite(expected) ? error <= allowed : !isfinite(actual)) {
            squares += isfinite(expected) ? error * error : 0;
            finite += isfinite(expected) != 0;
        } else if (found.wrong++ == 0) {
            found.first = k;
        }
    }
    if (found.wrong == 0 && sqrt(squares / (double)finite) > 16 * unit)
        found = (struct bench_difference){.wrong = finite, .first = 0};
    return found;
}

/* Run one row of the table and compare. SET is the CPU's instruction set, or empty. */
static void check_row(struct checker *checker, struct test_case *c, const struct variant *row, const char *set)
{
    struct plan plan;
    struct error error = {0};
    memset(c->actual.memory, c->poison, c->actual.size);
    if (!variant_plan(&plan, c->filter, c->border, c->sample, row, &error) ||
        !plan_resize(&plan, c->in.plane.width, c->in.plane.height, &error) ||
        !run_variant(checker, &plan, &c->in, &c->actual, &error)) {
        plan_free(&plan);
        if (error.code == ERROR_WORK && getenv("GPUCONV_MAX_CAPABILITY") != NULL)
            return; /* an older chip has too little shared memory for the filter, and says so */
        if (error.code == ERROR_GPU && c->in.plane.width / c->actual.plane.width > 800)
            return; /* 48 KB of shared memory have no room for 7 * 878 sums of 8 bytes, and the variant says so */
        fail("%s %s: %s: %s", row->name, set, c->what, error.message);
    }
    const struct plane *expected = &c->expected.plane;
    const struct bench_difference found =
        c->magnitudes != NULL ? compare_by_magnitude(c)
                              : bench_compare(expected, &c->actual.plane, variant_tolerance(&plan), NULL);
    const int64_t row_number = found.first / expected->width;
    plan_free(&plan);
    const bool intact = guards_intact(&c->actual, c->poison);
    checker->cases++;
    if (found.wrong == 0 && intact)
        return;
    checker->mismatches++;
    fprintf(stderr, "MISMATCH %s %s: %s: ", row->name, set, c->what);
    if (found.wrong > 0)
        fprintf(stderr, "%" PRIu64 " samples differ, first at x %d y %d plane %d\n", found.wrong,
                (int)(found.first % expected->width), (int)(row_number % expected->height),
                (int)(row_number / expected->height));
    else
        fprintf(stderr, "a write outside the image\n");
}

/* The first row at FIRST or after it that the case is for; after the last one, NULL. */
static const struct variant *next_row(const struct checker *checker, const struct test_case *c,
                                      const struct variant *first)
{
    size_t count;
    const struct variant *end = variants(&count);
    end += count;
    while (first < end && (first->is_reference || !is_wanted(&checker->options, first) ||
                           !variant_accepts(first, c->filter, c->sample)))
        first++;
    return first < end ? first : NULL;
}

static void check_rows(struct checker *checker, struct test_case *c, const struct variant *row)
{
    for (; row != NULL; row = next_row(checker, c, row + 1)) {
        if (row->backend == BACKEND_CUDA) {
            check_row(checker, c, row, "");
            continue;
        }
        size_t sets;
        const enum instruction_set *all = instruction_sets(&sets);
        for (size_t s = 0; s < sets; s++) {
            setenv("GPUCONV_CPU", instruction_set_name(all[s]), 1);
            check_row(checker, c, row, instruction_set_name(all[s]));
        }
    }
}

bool case_check(struct checker *checker, struct test_case *c)
{
    struct plan plan;
    struct error error = {0};
    size_t count;
    const struct variant *first = next_row(checker, c, variants(&count));
    if (first == NULL)
        return false;
    memset(c->expected.memory, 0, c->expected.size);
    if (!variant_plan(&plan, c->filter, c->border, c->sample, variant_reference(), &error) ||
        !plan_resize(&plan, c->in.plane.width, c->in.plane.height, &error) ||
        !run_variant(checker, &plan, &c->in, &c->expected, &error))
        fail("%s", error.message);
    plan_free(&plan);
    const char *hides = c->is_telling ? bench_hides_errors(&c->expected.plane) : NULL;
    if (hides != NULL)
        fail("%s: the expected image is %s; it would hide errors", c->what, hides);
    check_rows(checker, c, first);
    return true;
}
