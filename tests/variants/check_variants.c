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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Random filters and images ---- */

const int sizes[][2] = {
    {1, 1},     {1, 67},    {67, 1},   {2, 3},    {15, 16},    {16, 17}, {17, 15},   {23, 25},   {31, 32},
    {32, 31},   {33, 33},   {63, 64},  {64, 65},  {65, 63},    {97, 61}, {127, 129}, {128, 128}, {129, 127},
    {523, 101}, {256, 300}, {1023, 9}, {1024, 7}, {1025, 130}, {1, 301}, {3, 200},   {20, 131},  {29, 97},
};
const size_t size_count = sizeof sizes / sizeof sizes[0];

/* Make case NUMBER, with its own padding and poison, and check it. */
static void check_numbered(const struct options *options, struct place *place, const struct filter *filter, int width,
                           int height, enum border border, enum sample sample, uint64_t number, uint64_t *state,
                           struct tally *tally)
{
    const int planes = 1 + (int)(number % 4);
    const size_t extra = number / SAMPLE_COUNT % 3 ? 0 : ROW_STEP; /* for a third of each sample type */
    const unsigned char poison = sample == SAMPLE_F32 ? 0xff : number & 1 ? 0xa5 : 0x5a;
    struct guarded in = guarded_make(sample, width, height, planes, extra);
    struct guarded expected = guarded_make(sample, width, height, planes, 0);
    struct guarded actual = guarded_make(sample, width, height, planes, number % 5 ? 0 : ROW_STEP);
    memset(in.memory, poison, in.size);
    fill_random(&in.plane, state);

    char what[256];
    snprintf(what, sizeof what, "%d x %d taps, combine %s, anchor %d %d, %d x %d %s, %d planes, border %s",
             filter->width, filter->height, combine_name(filter->combine), filter->anchor_x, filter->anchor_y, width,
             height, sample_name(sample), planes, border_name(border));
    const struct test_case c = {.place = place,
                                .filter = filter,
                                .border = border,
                                .sample = sample,
                                .what = what,
                                .poison = poison,
                                .is_telling = border != BORDER_ZERO && !filter->absolute,
                                .in = &in,
                                .expected = &expected,
                                .actual = &actual};
    check_case(options, &c, tally);
    free(in.memory);
    free(expected.memory);
    free(actual.memory);
}

enum { LARGE_WIDTH = 2411, LARGE_HEIGHT = 2377, LARGE_NUMBER = 6 }; /* 16 MiB and more in the three planes of case 6 */

static void check_large(const struct options *options, struct place *place, uint64_t *state, struct tally *tally)
{
    struct filter *filter = allocate(sizeof *filter);
    for (size_t f = 0; f < large_shape_count; f++) {
        random_filter(&large_shapes[f], state, filter);
        for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++)
            if (!options->quick || f % SAMPLE_COUNT == sample)
                check_numbered(options, place, filter, LARGE_WIDTH, LARGE_HEIGHT, BORDER_REFLECT101, sample,
                               LARGE_NUMBER, state, tally);
    }
    free(filter);
}

static struct tally check_all(const struct options *options, struct place *place)
{
    struct tally tally = {0};
    uint64_t state = options->seed, number = 0;
    struct filter *filter = allocate(sizeof *filter);
    for (size_t f = 0; f < shape_count; f++) {
        random_filter(&shapes[f], &state, filter);
        for (size_t s = 0; s < size_count; s++) {
            const int width = sizes[s][0], height = sizes[s][1];
            const int64_t taps = filter_grids(filter) * filter->width * filter->height;
            /* The reference takes a few nanoseconds a tap: the largest filters meet the smaller images only. */
            if (taps * width * height > (options->quick ? 1500000 : 20000000))
                continue;
            for (enum border border = 0; border < BORDER_COUNT; border++)
                for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++, number++)
                    if ((number + f + s) % options->share == 0)
                        check_numbered(options, place, filter, width, height, border, sample, number, &state, &tally);
        }
    }
    free(filter);
    if (!options->quick || options->large)
        check_large(options, place, &state, &tally);
    return tally;
}

/* ---- The program ---- */

static const char usage[] =
    "usage: check_variants [--cpu | --cuda] [--quick [--large] [--share N]] [--seed N] [--variant NAME]\n";

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
    struct options options = {.seed = 20261123};
    if (!parse(argc, argv, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    struct place place = {0};
    thread_pool_open(&place.pool, parallel_processors() > 4 ? 0 : 4); /* tiles of large images in several threads */
    const bool only_cuda = options.cuda && !options.cpu;
    if (options.cuda && !open_device(&place.device)) {
        options.cuda = false;
        if (only_cuda) {
            puts("skipped: there is no GPU");
            return EXIT_SKIPPED;
        }
    }
    printf("seed %" PRIu64 "\n", options.seed);
    if (options.cpu)
        print_instruction_sets();
    struct tally tally = check_all(&options, &place);
    check_extremes(&options, &place, &tally);
    check_passes(&options, &place, &tally);
    check_properties(&options, &place, &tally);
    check_resizes(&options, &place, &tally);
#ifdef GPUCONV_CUDA
    check_images(&options, &place, &tally);
#endif
    size_t count;
    const struct variant *rows = variants(&count);
    for (size_t i = 0; i < count; i++)
        tally.rows += !rows[i].is_reference && is_wanted(&options, &rows[i]);
    printf("%" PRIu64 " rows, %" PRIu64 " cases, %" PRIu64 " mismatches\n", tally.rows, tally.cases, tally.mismatches);
    if (tally.cases == 0)
        fail("nothing was checked");
#ifdef GPUCONV_CUDA
    if (place.device != NULL) {
        device_release(place.device, place.in);
        device_release(place.device, place.out);
        device_close(place.device);
    }
#endif
    thread_pool_close(&place.pool);
    return tally.mismatches > 0 ? 1 : 0;
}
