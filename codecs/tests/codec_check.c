/* SPDX-License-Identifier: MIT */
#include "codecs/tests/codec_check.h"

#include "kernels/device/stream.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 4, CONNECTIONS = 8 };

void must(bool is_done, const struct error *error)
{
    if (!is_done)
        fail("%s", error->message);
}

uint8_t *read_bytes(const char *name, size_t *size)
{
    FILE *file = fopen(name, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        fail("%s cannot be read", name);
    *size = (size_t)ftell(file);
    uint8_t *bytes = allocate(*size);
    rewind(file);
    if (fread(bytes, 1, *size, file) != *size)
        fail("%s cannot be read", name);
    fclose(file);
    return bytes;
}

struct beside {
    pthread_t thread;
    check_function *run;
    struct check_options options;
    struct check_counts counts;
};

static void *run_beside(void *argument)
{
    struct beside *beside = argument;
    beside->counts = beside->run(&beside->options);
    return NULL;
}

/* Several streams at once, each with its own seed. */
static void run_streams(const struct codec_check *check, const struct check_options *options,
                        struct check_counts *counts)
{
    struct beside beside[STREAMS];
    for (int i = 0; i < STREAMS; i++) {
        beside[i] = (struct beside){.run = check->run_beside, .options = *options};
        beside[i].options.seed += (uint64_t)i + 1;
        if (pthread_create(&beside[i].thread, NULL, run_beside, &beside[i]) != 0)
            fail("no thread");
    }
    for (int i = 0; i < STREAMS; i++) {
        pthread_join(beside[i].thread, NULL);
        counts->cases += beside[i].counts.cases;
        counts->others += beside[i].counts.others;
        counts->left += beside[i].counts.left;
    }
}

struct bench_stream bench_streams(int count, int together, void *(*run)(void *), const void *work)
{
    struct bench_stream streams[BENCH_STREAMS_MAX], sum = {0};
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        streams[i] = (struct bench_stream){.barrier = &barrier, .work = work, .index = i, .together = together};
        if (pthread_create(&streams[i].thread, NULL, run, &streams[i]) != 0)
            fail("no thread");
    }
    for (int i = 0; i < count; i++) {
        pthread_join(streams[i].thread, NULL);
        sum.pixels += streams[i].pixels;
        sum.left += streams[i].left;
        for (int k = 0; k < 2; k++)
            sum.times[k] = streams[i].times[k] > sum.times[k] ? streams[i].times[k] : sum.times[k];
    }
    pthread_barrier_destroy(&barrier);
    return sum;
}

static bool parse(const struct codec_check *check, int argc, char **argv, struct check_options *options)
{
    bool cuda = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--cuda") == 0)
            cuda = true;
        else if (strcmp(argv[i], "--quick") == 0)
            options->cases = check->quick_cases;
        else if (strcmp(argv[i], "--cases") == 0 && check->cases > 1 && i + 1 < argc)
            options->cases = atoi(argv[++i]);
        else if (strcmp(argv[i], "--huge") == 0 && check->has_huge)
            options->huge = true;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            options->seed = strtoull(argv[++i], NULL, 0);
        else
            return false;
    }
    options->quick = options->cases < check->cases;
    return cuda;
}

int codec_check_main(const struct codec_check *check, int argc, char **argv)
{
    struct check_options options = {.seed = check->seed, .cases = check->cases};
    const bool is_bench = argc > 2 && strcmp(argv[1], "--bench") == 0;
    if (!is_bench && !parse(check, argc, argv, &options)) {
        fputs(check->usage, stderr);
        return 2;
    }
    struct error error = {0};
    int devices;
    if (!device_count(&devices, &error)) {
        printf("skipped: %s\n", error.message);
        return EXIT_SKIPPED;
    }
    if (is_bench) {
        device_expect_streams(CONNECTIONS);
        check->bench(argc - 2, argv + 2);
        return 0;
    }
    printf("seed %" PRIu64 "\n", options.seed);
    struct check_counts counts = check->run(&options);
    if (options.cases >= check->quick_cases)
        run_streams(check, &options, &counts);
    printf("%" PRIu64 " cases, 0 mismatches", counts.cases);
    if (counts.others > 0)
        printf("; the GPU left %" PRIu64 " of %" PRIu64 " files of other writers to the CPU", counts.left,
               counts.others);
    putchar('\n');
    return 0;
}
