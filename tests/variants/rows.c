/* SPDX-License-Identifier: MIT
 *
 * Run rows of the table on one case, and compare their outputs with the reference's. */
#include "check.h"

#include "base/vector/instruction_sets.h"
#include "kernels/device/device.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool is_wanted(const struct options *options, const struct variant *row)
{
    return row->launch != NULL && (row->backend == BACKEND_CPU ? options->cpu : options->cuda) &&
           (options->variant == NULL || strcmp(options->variant, row->name) == 0);
}

#ifdef GPUCONV_CUDA
void place_reserve(struct place *place, size_t size)
{
    struct error error = {0};
    if (place->capacity >= size)
        return;
    device_release(place->device, place->in);
    device_release(place->device, place->out);
    place->capacity = size + (size >> 1);
    if (!device_allocate(place->device, place->capacity, &place->in, &error) ||
        !device_allocate(place->device, place->capacity, &place->out, &error))
        fail("%s", error.message);
}
#endif

bool run_variant(struct plan *plan, struct place *place, const struct guarded *in, struct guarded *out,
                 struct error *error)
{
#ifdef GPUCONV_CUDA
    if (plan->variant->backend == BACKEND_CUDA) {
        struct device *device = place->device;
        place_reserve(place, in->size > out->size ? in->size : out->size);
        struct plane from = in->plane, to = out->plane;
        from.data = (char *)place->in + GUARD;
        to.data = (char *)place->out + GUARD;
        return device_upload(device, place->in, in->memory, in->size, error) &&
               device_upload(device, place->out, out->memory, out->size, error) &&
               variant_prepare(plan, device, error) && plan->variant->launch(plan, device, &from, &to, error) &&
               device_download(device, out->memory, place->out, out->size, error) && device_wait(device, error);
    }
#endif
    plan->pool = &place->pool;
    return variant_prepare(plan, NULL, error) && plan->variant->launch(plan, NULL, &in->plane, &out->plane, error);
}

/* Run one row of the table and compare. SET is the CPU's instruction set, or empty. */
static void check_row(const struct test_case *c, const struct variant *row, const char *set, struct tally *tally)
{
    struct plan plan;
    struct error error = {0};
    memset(c->actual->memory, c->poison, c->actual->size);
    if (!variant_plan(&plan, c->filter, c->border, c->sample, row, &error) ||
        !plan_resize(&plan, c->in->plane.width, c->in->plane.height, &error) ||
        !run_variant(&plan, c->place, c->in, c->actual, &error)) {
        plan_free(&plan);
        if (error.code == ERROR_WORK && getenv("GPUCONV_MAX_CAPABILITY") != NULL)
            return; /* an older chip has too little shared memory for the filter, and says so */
        if (error.code == ERROR_GPU && c->in->plane.width / c->actual->plane.width > 800)
            return; /* 48 KB of shared memory have no room for 7 * 878 sums of 8 bytes, and the variant says so */
        fail("%s %s: %s: %s", row->name, set, c->what, error.message);
    }
    const struct plane *expected = &c->expected->plane;
    const struct bench_difference found = bench_compare(expected, &c->actual->plane, variant_tolerance(&plan), NULL);
    const int64_t row_number = found.first / expected->width;
    plan_free(&plan);
    const bool intact = guards_intact(c->actual, c->poison);
    tally->cases++;
    if (found.wrong == 0 && intact)
        return;
    tally->mismatches++;
    fprintf(stderr, "MISMATCH %s %s: %s: ", row->name, set, c->what);
    if (found.wrong > 0)
        fprintf(stderr, "%" PRIu64 " samples differ, first at x %d y %d plane %d\n", found.wrong,
                (int)(found.first % expected->width), (int)(row_number % expected->height),
                (int)(row_number / expected->height));
    else
        fprintf(stderr, "a write outside the image\n");
}

static void check_rows(const struct options *options, const struct test_case *c, struct tally *tally)
{
    size_t count;
    const struct variant *rows = variants(&count);
    for (size_t i = 0; i < count; i++) {
        const struct variant *row = &rows[i];
        if (row->is_reference || !is_wanted(options, row) || !variant_accepts(row, c->filter, c->sample))
            continue;
        if (row->backend == BACKEND_CUDA) {
            check_row(c, row, "", tally);
            continue;
        }
        size_t sets;
        const enum instruction_set *all = instruction_sets(&sets);
        for (size_t s = 0; s < sets; s++) {
            setenv("GPUCONV_CPU", instruction_set_name(all[s]), 1);
            check_row(c, row, instruction_set_name(all[s]), tally);
        }
    }
}

void check_case(const struct options *options, const struct test_case *c, struct tally *tally)
{
    struct plan plan;
    struct error error = {0};
    memset(c->expected->memory, 0, c->expected->size);
    struct guarded expected = *c->expected;
    if (!variant_plan(&plan, c->filter, c->border, c->sample, variant_reference(), &error) ||
        !plan_resize(&plan, c->in->plane.width, c->in->plane.height, &error) ||
        !run_variant(&plan, c->place, c->in, &expected, &error))
        fail("%s", error.message);
    plan_free(&plan);
    const char *hides = c->is_telling ? bench_hides_errors(&c->expected->plane) : NULL;
    if (hides != NULL)
        fail("%s: the expected image is %s; it would hide errors", c->what, hides);
    check_rows(options, c, tally);
}
