/* SPDX-License-Identifier: MIT
 *
 * How fast the decoder is, in pixels a second, with several streams. Each has its own thread, and decodes one file, or
 * many at once. The compressed bytes are in page-locked memory before; their upload counts. */
#include "check.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 200, WARM_ROUNDS = 10, STREAMS_MAX = 16, TOGETHER_MAX = 512 };

struct run {
    pthread_t thread;
    pthread_barrier_t *barrier;
    uint8_t *const *files;
    const size_t *sizes;
    int count, first, together; /* files; that of this stream, and how many it decodes at once */
    double time, pixels;        /* milliseconds and pixels of all rounds */
    float latency;              /* milliseconds of one round on the device */
    size_t handed_over;
};

/* Load the files of a round. Returns its pixels. */
static double load(struct test_gpu *gpu, const struct run *run, struct jpeg_layout *layouts, struct jpeg_input *inputs)
{
    struct error error = {0};
    size_t used = 0, pixels = 0;
    for (int i = 0; i < run->together; i++) {
        const int file = (run->first + i) % run->count;
        inputs[i] = (struct jpeg_input){.layout = &layouts[i]};
        if (!find_picture(run->files[file], run->sizes[file], 0, &layouts[i], &inputs[i].scan))
            fail("a file is not for this decoder");
        const size_t own = (size_t)layouts[i].width * (size_t)layouts[i].height;
        inputs[i].samples = (uint8_t *)used; /* an offset, as yet */
        used += (own * (size_t)layouts[i].component_count + 15) / 16 * 16;
        pixels += own;
    }
    reserve_samples(gpu, used);
    must(device_jpeg_reserve(gpu->jpeg, inputs, (size_t)run->together, &error), &error);
    for (int i = 0; i < run->together; i++) {
        inputs[i].samples = gpu->samples.bytes + (size_t)inputs[i].samples;
        device_jpeg_load(gpu->jpeg, (size_t)i);
    }
    return (double)pixels;
}

static void *run_stream(void *argument)
{
    struct run *run = argument;
    struct error error = {0};
    struct test_gpu gpu;
    struct jpeg_layout *layouts = allocate((size_t)run->together * sizeof *layouts);
    struct jpeg_input *inputs = allocate((size_t)run->together * sizeof *inputs);
    bool is_decoded[TOGETHER_MAX];
    test_gpu_open(&gpu);
    run->pixels = ROUNDS * load(&gpu, run, layouts, inputs);
    double begin = 0;
    for (int i = 0; i < WARM_ROUNDS + ROUNDS; i++) {
        if (i == WARM_ROUNDS) {
            pthread_barrier_wait(run->barrier);
            begin = clock_milliseconds();
        }
        must(device_mark(gpu.device, 0, &error) && device_jpeg_decode(gpu.jpeg, &error) &&
                 device_mark(gpu.device, 1, &error) && device_jpeg_decoded(gpu.jpeg, is_decoded, &error),
             &error);
        for (int k = 0; k < run->together; k++)
            run->handed_over += !is_decoded[k];
    }
    run->time = clock_milliseconds() - begin;
    must(device_elapsed(gpu.device, 0, 1, &run->latency, &error), &error);
    test_gpu_close(&gpu);
    free(inputs);
    free(layouts);
    return NULL;
}

static void bench_streams(uint8_t *const *files, const size_t *sizes, int count, int streams, int together)
{
    struct run runs[STREAMS_MAX];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)streams);
    double time = 0, pixels = 0;
    size_t handed_over = 0;
    for (int i = 0; i < streams; i++) {
        runs[i] = (struct run){
            .barrier = &barrier, .files = files, .sizes = sizes, .count = count, .first = i, .together = together};
        if (pthread_create(&runs[i].thread, NULL, run_stream, &runs[i]) != 0)
            fail("no thread");
    }
    for (int i = 0; i < streams; i++) {
        pthread_join(runs[i].thread, NULL);
        time = runs[i].time > time ? runs[i].time : time;
        pixels += runs[i].pixels;
        handed_over += runs[i].handed_over;
    }
    pthread_barrier_destroy(&barrier);
    printf("decode, %2d streams, %3d at once: %7.2f Gpixel/s, %7.0f pictures/s; %.3f ms for those of the first; %zu "
           "handed over\n",
           streams, together, pixels / time * 1e-6, 1e3 * ROUNDS * streams * together / time, (double)runs[0].latency,
           handed_over);
}

void bench_decoder(int count, char **names)
{
    uint8_t **files = allocate((size_t)count * sizeof *files);
    size_t *sizes = allocate((size_t)count * sizeof *sizes);
    for (int i = 0; i < count; i++)
        files[i] = read_bytes(names[i], &sizes[i]);
    for (int streams = 1; streams <= STREAMS_MAX; streams *= 4)
        bench_streams(files, sizes, count, streams, 1);
    for (int together = 8; together <= TOGETHER_MAX; together *= 8)
        for (int streams = 1; streams <= 2; streams++)
            bench_streams(files, sizes, count, streams, together);
    for (int i = 0; i < count; i++)
        free(files[i]);
    free(files);
    free(sizes);
}
