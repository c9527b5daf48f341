/* SPDX-License-Identifier: MIT
 *
 * How fast the decoder is, in pixels a second, with several streams. Each has its own thread, and decodes one file, or
 * many at once. The compressed bytes are in page-locked memory before; their upload counts. */
#include "check.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROUNDS = 200, WARM_ROUNDS = 10, TOGETHER_MAX = 512 };

struct files {
    uint8_t **bytes;
    size_t *sizes;
    int count;
};

/* The times of a stream: of its rounds, and of one round on the device. */
enum { ALL, ROUND };

/* Load the files of a round. Returns its pixels. */
static double load(struct test_gpu *gpu, const struct bench_stream *run, struct jpeg_layout *layouts,
                   struct jpeg_input *inputs)
{
    const struct files *files = run->work;
    struct error error = {0};
    size_t used = 0, pixels = 0;
    for (int i = 0; i < run->together; i++) {
        const int file = (run->index + i) % files->count;
        inputs[i] = (struct jpeg_input){.layout = &layouts[i]};
        if (!find_picture(files->bytes[file], files->sizes[file], 0, &layouts[i], &inputs[i].scan))
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
    struct bench_stream *run = argument;
    struct error error = {0};
    struct test_gpu gpu;
    struct jpeg_layout *layouts = allocate((size_t)run->together * sizeof *layouts);
    struct jpeg_input *inputs = allocate((size_t)run->together * sizeof *inputs);
    bool is_decoded[TOGETHER_MAX];
    test_gpu_open(&gpu);
    run->pixels = ROUNDS * load(&gpu, run, layouts, inputs);
    double begin = 0;
    float latency;
    for (int i = 0; i < WARM_ROUNDS + ROUNDS; i++) {
        if (i == WARM_ROUNDS) {
            pthread_barrier_wait(run->barrier);
            begin = clock_milliseconds();
        }
        must(device_mark(gpu.device, 0, &error) && device_jpeg_decode(gpu.jpeg, &error) &&
                 device_mark(gpu.device, 1, &error) && device_jpeg_decoded(gpu.jpeg, is_decoded, &error),
             &error);
        for (int k = 0; k < run->together; k++)
            run->left += !is_decoded[k];
    }
    run->times[ALL] = clock_milliseconds() - begin;
    must(device_elapsed(gpu.device, 0, 1, &latency, &error), &error);
    run->times[ROUND] = (double)latency;
    test_gpu_close(&gpu);
    free(inputs);
    free(layouts);
    return NULL;
}

static void bench_files_at(int streams, int together, const struct files *files)
{
    const struct bench_stream sum = bench_streams(streams, together, run_stream, files);
    printf("decode, %2d streams, %3d at once: %7.2f Gpixel/s, %7.0f pictures/s; %.3f ms for those of a stream; %zu "
           "handed over\n",
           streams, together, sum.pixels / sum.times[ALL] * 1e-6, 1e3 * ROUNDS * streams * together / sum.times[ALL],
           sum.times[ROUND], sum.left);
}

void bench_decoder(int count, char **names)
{
    struct files files = {allocate((size_t)count * sizeof *files.bytes), allocate((size_t)count * sizeof *files.sizes),
                          count};
    for (int i = 0; i < count; i++)
        files.bytes[i] = read_bytes(names[i], &files.sizes[i]);
    for (int streams = 1; streams <= BENCH_STREAMS_MAX; streams *= 4)
        bench_files_at(streams, 1, &files);
    for (int together = 8; together <= TOGETHER_MAX; together *= 8)
        for (int streams = 1; streams <= 2; streams++)
            bench_files_at(streams, together, &files);
    for (int i = 0; i < count; i++)
        free(files.bytes[i]);
    free(files.bytes);
    free(files.sizes);
}
