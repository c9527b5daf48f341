/* SPDX-License-Identifier: MIT
 *
 * How fast the encoder is, in pixels a second, with several streams. Each has its own thread, and encodes one picture
 * or many at once. */
#include "check.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STREAMS_MAX = 16, TOGETHER_MAX = 512, ROUNDS = 100, QUALITY = 90 };

/* A file, as it is encoded again: 4:2:0. */
struct source {
    struct pixels pixels;
    struct jpeg_layout layout;
};

struct stream {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const struct source *sources;
    int source_count, first, together; /* sources; that of this stream, and how many it encodes at once */
    double pixels;                     /* pixels of all rounds */
    double kernels;                    /* milliseconds of the rounds on the device, without downloads */
    double all;                        /* milliseconds of the rounds */
};

static struct source load_source(const char *name)
{
    size_t size;
    uint8_t *bytes = read_bytes(name, &size);
    struct source source;
    struct reference reference;
    reference_decode(bytes, size, &source.pixels);
    reference_encode(&source.pixels, QUALITY, 2, 2, &source.layout, &reference);
    free(reference.file);
    free(bytes);
    return source;
}

static void *run_stream(void *argument)
{
    struct stream *stream = argument;
    struct error error = {0};
    struct device *device;
    struct device_jpeg *jpeg;
    const int count = stream->together;
    must(device_open(0, &device, &error) && device_jpeg_open(device, DECODED_MARK, &jpeg, &error), &error);
    struct jpeg_output *outputs = allocate((size_t)count * sizeof *outputs);
    struct workspace *samples = allocate((size_t)count * sizeof *samples);
    struct jpeg_scan scans[TOGETHER_MAX];
    for (int i = 0; i < count; i++) {
        const struct source *source = &stream->sources[(stream->first + i) % stream->source_count];
        const size_t size = pixels_bytes(&source->pixels);
        samples[i] = (struct workspace){0};
        must(device_reserve(device, &samples[i], size, &error) &&
                 device_upload(device, samples[i].bytes, source->pixels.samples, size, &error),
             &error);
        outputs[i] = (struct jpeg_output){
            .layout = &source->layout, .samples = samples[i].bytes, .channels = source->pixels.channels};
        stream->pixels += (double)source->pixels.width * source->pixels.height * ROUNDS;
    }
    double start = 0;
    for (int i = -2; i < ROUNDS; i++) { /* in the first rounds the buffers grow */
        float milliseconds;
        if (i == 0) {
            pthread_barrier_wait(stream->barrier);
            start = clock_milliseconds();
        }
        must(device_mark(device, 0, &error) && device_jpeg_encode(jpeg, outputs, (size_t)count, &error) &&
                 device_mark(device, 1, &error) && device_jpeg_encoded(jpeg, scans, &error) &&
                 device_elapsed(device, 0, 1, &milliseconds, &error),
             &error);
        stream->kernels += i >= 0 ? (double)milliseconds : 0;
    }
    stream->all = clock_milliseconds() - start;
    for (int i = 0; i < count; i++)
        device_release(device, &samples[i]);
    free(samples);
    free(outputs);
    device_jpeg_close(jpeg);
    device_close(device);
    return NULL;
}

static void bench_streams(int count, const struct source *sources, int source_count, int together)
{
    struct stream streams[STREAMS_MAX] = {{0}};
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        streams[i] = (struct stream){.barrier = &barrier,
                                     .sources = sources,
                                     .source_count = source_count,
                                     .first = i * together,
                                     .together = together};
        if (pthread_create(&streams[i].thread, NULL, run_stream, &streams[i]) != 0)
            fail("no thread");
    }
    double pixels = 0, kernels = 0, all = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(streams[i].thread, NULL);
        pixels += streams[i].pixels;
        kernels = streams[i].kernels > kernels ? streams[i].kernels : kernels;
        all = streams[i].all > all ? streams[i].all : all;
    }
    pthread_barrier_destroy(&barrier);
    printf("encode, %2d streams, %3d at once: %7.2f Gpixel/s, %7.2f with downloads, %7.0f pictures/s\n", count,
           together, pixels / kernels * 1e-6, pixels / all * 1e-6, 1e3 * ROUNDS * count * together / all);
}

void bench_files(int count, char **names)
{
    struct source *sources = allocate((size_t)count * sizeof *sources);
    for (int i = 0; i < count; i++)
        sources[i] = load_source(names[i]);
    for (int streams = 1; streams <= STREAMS_MAX; streams *= 4)
        bench_streams(streams, sources, count, 1);
    for (int together = 8; together <= TOGETHER_MAX; together *= 8)
        for (int streams = 1; streams <= 2; streams++)
            bench_streams(streams, sources, count, together);
    for (int i = 0; i < count; i++)
        free(sources[i].pixels.samples);
    free(sources);
}
