/* SPDX-License-Identifier: MIT
 *
 * Check every row of the table against the reference. (gpuconv --bench times the rows, and checks each again before.)
 *
 * A case is a filter, a size, a border and a sample type. Its input is random, with poison in the padding of its rows
 * and around it, so a read outside the image shows. Each variant writes into a buffer full of poison with guards on
 * both sides, so an output that is not written shows too, and so does a write outside the image. The poison of uint8_t
 * planes changes from case to case, so that it cannot always equal the right answer. The poison of float planes is
 * NaN. */
#include "check.h"

#include "base/vector/instruction_sets.h"
#include "kernels/device/device.h"

#include <inttypes.h>

/* ---- Random filters and images ---- */

const int sizes[][2] = {
    {1, 1},     {1, 67},    {67, 1},   {2, 3},    {15, 16},    {16, 17}, {17, 15},   {23, 25},   {31, 32},
    {32, 31},   {33, 33},   {63, 64},  {64, 65},  {65, 63},    {97, 61}, {127, 129}, {128, 128}, {129, 127},
    {523, 101}, {256, 300}, {1023, 9}, {1024, 7}, {1025, 130}, {1, 301}, {3, 200},   {20, 131},  {29, 97},
};
const size_t size_count = sizeof sizes / sizeof sizes[0];

/* Check one case of random samples. */
static void check_random(struct checker *checker, struct test_case c, uint64_t *state)
{
    const struct filter *filter = c.filter;
    c.planes = 1 + (int)(c.number % 4);
    c.is_telling = c.border != BORDER_ZERO && !filter->absolute;
    snprintf(c.what, sizeof c.what, "%d x %d taps, combine %s, anchor %d %d, %d x %d %s, %d planes, border %s",
             filter->width, filter->height, combine_name(filter->combine), filter->anchor_x, filter->anchor_y, c.width,
             c.height, sample_name(c.sample), c.planes, border_name(c.border));
    case_open(&c);
    fill_random(&c.in.plane, state);
    case_check(checker, &c);
    case_close(&c);
}

enum { LARGE_WIDTH = 2411, LARGE_HEIGHT = 2377, LARGE_NUMBER = 6 }; /* 16 MiB and more in the three planes of case 6 */

static void check_large(struct checker *checker, uint64_t *state)
{
    struct filter *filter = allocate(sizeof *filter);
    struct test_case c = {.filter = filter,
                          .border = BORDER_REFLECT101,
                          .width = LARGE_WIDTH,
                          .height = LARGE_HEIGHT,
                          .number = LARGE_NUMBER};
    for (size_t f = 0; f < large_shape_count; f++) {
        random_filter(&large_shapes[f], state, filter);
        for (c.sample = 0; c.sample < SAMPLE_COUNT; c.sample++)
            if (!checker->options.quick || f % SAMPLE_COUNT == c.sample)
                check_random(checker, c, state);
    }
    free(filter);
}

static void check_all(struct checker *checker)
{
    const struct options *options = &checker->options;
    uint64_t state = options->seed;
    struct filter *filter = allocate(sizeof *filter);
    struct test_case c = {.filter = filter};
    for (size_t f = 0; f < shape_count; f++) {
        random_filter(&shapes[f], &state, filter);
        for (size_t s = 0; s < size_count; s++) {
            c.width = sizes[s][0];
            c.height = sizes[s][1];
            const int64_t taps = filter_grids(filter) * filter->width * filter->height;
            /* The reference takes a few nanoseconds a tap: the largest filters meet the smaller images only. */
            if (taps * c.width * c.height > (options->quick ? 1500000 : 20000000))
                continue;
            for (c.border = 0; c.border < BORDER_COUNT; c.border++)
                for (c.sample = 0; c.sample < SAMPLE_COUNT; c.sample++, c.number++)
                    if ((c.number + f + s) % options->share == 0)
                        check_random(checker, c, &state);
        }
    }
    free(filter);
    if (!options->quick)
        check_large(checker, &state);
}

/* ---- The program ---- */

static const char usage[] =
    "usage: check_variants [--cpu | --cuda] [--quick [--large | --share N]] [--seed N] [--variant NAME]\n";

static bool parse(int argc, char **argv, struct options *options)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--quick") == 0)
            options->quick = true;
        else if (strcmp(argv[i], "--large") == 0)
            options->large = true;
        else if (strcmp(argv[i], "--cpu") == 0)
            options->cpu = true;
        else if (strcmp(argv[i], "--cuda") == 0)
            options->cuda = true;
        else if (value == NULL)
            return false;
        else if (strcmp(argv[i++], "--seed") == 0)
            options->seed = strtoull(value, NULL, 0);
        else if (strcmp(argv[i - 1], "--share") == 0)
            options->share = strtoull(value, NULL, 0);
        else if (strcmp(argv[i - 1], "--variant") == 0)
            options->variant = value;
        else
            return false;
    }
    if (options->share == 0)
        options->share = options->quick ? 29 : 1;
    const struct variant *only = options->variant != NULL ? variant_find(options->variant, NULL) : NULL;
    if (!options->cpu && !options->cuda) {
        options->cpu = only == NULL || only->backend == BACKEND_CPU;
        options->cuda = only == NULL || only->backend == BACKEND_CUDA;
    }
    return options->variant == NULL || only != NULL;
}

/* Open the first GPU. If there is none, print why. */
static bool open_device(struct device **device)
{
    struct error error = {0};
#ifdef GPUCONV_CUDA
    if (device_open(0, device, &error)) {
        const struct device_info *info = device_get_info(*device);
        const int version = device_driver_version();
        printf("GPU: %s, compute capability %d.%d, code for %d.%d, %d multiprocessors, driver for CUDA %d.%d\n",
               info->name, info->capability / 10, info->capability % 10, info->code_capability / 10,
               info->code_capability % 10, info->multiprocessors, version / 1000, version % 1000 / 10);
        return true;
    }
#else
    error_set(&error, ERROR_WORK, "this build has no CUDA");
    (void)device;
#endif
    printf("no GPU: %s\n", error.message);
    return false;
}

static void print_instruction_sets(void)
{
    size_t count;
    const enum instruction_set *sets = instruction_sets(&count);
    printf("CPU:");
    for (size_t i = 0; i < count; i++)
        printf(" %s", instruction_set_name(sets[i]));
    putchar('\n');
}

int main(int argc, char **argv)
{
    struct checker checker = {.options.seed = 20261123};
    struct options *options = &checker.options;
    if (!parse(argc, argv, options)) {
        fputs(usage, stderr);
        return 2;
    }
    thread_pool_open(&checker.pool, parallel_processors() > 4 ? 0 : 4); /* tiles of large images in several threads */
    const bool only_cuda = options->cuda && !options->cpu;
    if (options->cuda && !open_device(&checker.device)) {
        options->cuda = false;
        if (only_cuda) {
            puts("skipped: there is no GPU");
            return EXIT_SKIPPED;
        }
    }
    printf("seed %" PRIu64 "\n", options->seed);
    if (options->cpu)
        print_instruction_sets();
    check_ranks(&checker);
    if (options->large) {
        check_large(&checker, &(uint64_t){options->seed});
    } else {
        check_all(&checker);
        check_extremes(&checker);
        check_floats(&checker);
        check_passes(&checker);
        check_properties(&checker);
        check_resizes(&checker);
        check_moves(&checker);
        check_points(&checker);
    }
#ifdef GPUCONV_CUDA
    check_images(&checker);
#endif
    size_t count;
    const struct variant *rows = variants(&count);
    for (size_t i = 0; i < count; i++)
        checker.rows += !rows[i].is_reference && is_wanted(options, &rows[i]);
    printf("%" PRIu64 " rows, %" PRIu64 " cases, %" PRIu64 " mismatches\n", checker.rows, checker.cases,
           checker.mismatches);
    if (checker.cases == 0)
        fail("nothing was checked");
#ifdef GPUCONV_CUDA
    if (checker.device != NULL) {
        device_release(checker.device, &checker.in);
        device_release(checker.device, &checker.out);
        device_close(checker.device);
    }
#endif
    thread_pool_close(&checker.pool);
    return checker.mismatches > 0 ? 1 : 0;
}
