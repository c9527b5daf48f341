/* SPDX-License-Identifier: MIT
 *
 * How fast the decoder is, in pixels a second, with several streams. Each has its own thread and a file. The compressed
 * bytes are in page-locked memory before; their upload counts. */
#include "check.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { IMAGES = 200, WARM_IMAGES = 10, STREAMS_MAX = 16 };

struct run {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const uint8_t *file;
    size_t size;
    double time, pixels; /* of all images; milliseconds */
    float latency;       /* milliseconds of one image on the device */
    size_t handed_over;
};

static void *run_stream(void *argument)
{
    struct run *run = argument;
    struct error error = {0};
    struct place place;
    struct jpeg_layout layout;
    place_open(&place);
    if (!load_file(&place, run->file, run->size, 0, &layout))
        fail("a file is not for this decoder");
    const size_t pixels = (size_t)layout.width * (size_t)layout.height;
    reserve_samples(&place, pixels * (size_t)layout.component_count);
    double begin = 0;
    for (int i = 0; i < WARM_IMAGES + IMAGES; i++) {
        bool is_decoded;
        if (i == WARM_IMAGES) {
            pthread_barrier_wait(run->barrier);
            begin = clock_milliseconds();
        }
        must(device_mark(place.device, 0, &error) &&
                 device_jpeg_decode(place.jpeg, &layout, place.samples.bytes, &error) &&
                 device_mark(place.device, 1, &error) && device_jpeg_decoded(place.jpeg, &is_decoded, &error),
             &error);
        run->handed_over += !is_decoded;
    }
    run->time = clock_milliseconds() - begin;
    run->pixels = (double)pixels * IMAGES;
    must(device_elapsed(place.device, 0, 1, &run->latency, &error), &error);
    place_close(&place);
    return NULL;
}

static void bench_streams(uint8_t *const *files, const size_t *sizes, int count, int streams)
{
    struct run runs[STREAMS_MAX];
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)streams);
    double time = 0, pixels = 0;
    size_t handed_over = 0;
    for (int i = 0; i < streams; i++) {
        runs[i] = (struct run){.barrier = &barrier, .file = files[i % count], .size = sizes[i % count]};
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
    printf("decode, %2d streams: %7.2f Gpixel/s; %.3f ms for a picture of the first; %zu handed over\n", streams,
           pixels / time * 1e-6, (double)runs[0].latency, handed_over);
}

void bench_decoder(int count, char **names)
{
    uint8_t **files = allocate((size_t)count * sizeof *files);
    size_t *sizes = allocate((size_t)count * sizeof *sizes);
    for (int i = 0; i < count; i++)
        files[i] = read_bytes(names[i], &sizes[i]);
    for (int streams = 1; streams <= STREAMS_MAX; streams *= 4)
        bench_streams(files, sizes, count, streams);
    for (int i = 0; i < count; i++)
        free(files[i]);
    free(files);
    free(sizes);
}
