/* SPDX-License-Identifier: MIT
 *
 * Check JPEG on a GPU against libjpeg-turbo, byte for byte: check_jpeg --cuda [--quick] [--huge] [--seed NUMBER]. A
 * buffer of samples has exactly the size of the samples, so compute-sanitizer finds accesses beyond them.
 *
 * check_jpeg --bench FILE... times the kernels with the pictures of JPEG files. */
#include "check.h"

#include "kernels/device/device.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STREAMS = 4 };

static const char usage[] = "usage: check_jpeg --cuda [--quick] [--huge] [--seed NUMBER]\n"
                            "       check_jpeg --bench FILE...\n";

/* ---- What all files use ---- */

void must(bool is_done, const struct error *error)
{
    if (!is_done)
        fail("%s", error->message);
}

void reserve_samples(struct place *place, size_t size)
{
    struct error error = {0};
    device_release(place->device, place->samples);
    must(device_allocate(place->device, size, &place->samples, &error), &error);
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

/* ---- The run ---- */

void place_open(struct place *place)
{
    struct error error = {0};
    *place = (struct place){0};
    must(device_open(0, &place->device, &error), &error);
    must(device_jpeg_open(place->device, &place->jpeg, &error), &error);
}

void place_close(struct place *place)
{
    device_jpeg_close(place->jpeg);
    device_release(place->device, place->samples);
    device_close(place->device);
}

struct beside {
    struct options options;
    uint64_t cases;
};

static void *run_beside(void *argument)
{
    struct beside *beside = argument;
    struct place place;
    place_open(&place);
    check_decoder_beside(&beside->options, &place);
    check_encoder_beside(&beside->options, &place);
    beside->cases = place.cases;
    place_close(&place);
    return NULL;
}

/* Several streams at once. */
static uint64_t check_streams(const struct options *options)
{
    pthread_t threads[STREAMS];
    struct beside beside[STREAMS];
    uint64_t cases = 0;
    for (int i = 0; i < STREAMS; i++) {
        beside[i] = (struct beside){.options = *options};
        beside[i].options.seed += (uint64_t)i + 1;
        if (pthread_create(&threads[i], NULL, run_beside, &beside[i]) != 0)
            fail("no thread");
    }
    for (int i = 0; i < STREAMS; i++) {
        pthread_join(threads[i], NULL);
        cases += beside[i].cases;
    }
    return cases;
}

static bool parse(int argc, char **argv, struct options *options)
{
    bool cuda = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--cuda") == 0)
            cuda = true;
        else if (strcmp(argv[i], "--quick") == 0)
            options->quick = true;
        else if (strcmp(argv[i], "--huge") == 0)
            options->huge = true;
        else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            options->seed = strtoull(argv[++i], NULL, 0);
        else
            return false;
    }
    return cuda;
}

int main(int argc, char **argv)
{
    struct options options = {.seed = 20261122};
    const bool is_bench = argc > 2 && strcmp(argv[1], "--bench") == 0;
    if (!is_bench && !parse(argc, argv, &options)) {
        fputs(usage, stderr);
        return 2;
    }
    struct error error = {0};
    int devices;
    if (!device_count(&devices, &error)) {
        printf("skipped: %s\n", error.message);
        return EXIT_SKIPPED;
    }
    if (is_bench) {
        bench_decoder(argc - 2, argv + 2);
        bench_files(argc - 2, argv + 2);
        return 0;
    }
    printf("seed %" PRIu64 "\n", options.seed);
    struct place place;
    place_open(&place);
    check_decoder(&options, &place);
    check_encoder(&options, &place);
    const uint64_t cases = place.cases + check_streams(&options);
    place_close(&place);
    printf("%" PRIu64 " cases, 0 mismatches\n", cases);
    return 0;
}
