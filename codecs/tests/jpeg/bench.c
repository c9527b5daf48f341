/* SPDX-License-Identifier: MIT
 *
 * How fast the encoder is, in pixels a second, with several streams. Each has its own thread, and encodes one picture
 * or many at once. */
#include "check.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>

enum { TOGETHER_MAX = 512, ROUNDS = 100, QUALITY = 90 };

/* A file, as it is encoded again: 4:2:0. */
struct source {
    struct pixels pixels;
    struct jpeg_layout layout;
};

struct sources {
    struct source *list;
    int count;
};

/* The times of a stream: of its rounds on the device, without downloads, and of its rounds. */
enum { KERNELS, ALL };

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
    struct bench_stream *stream = argument;
    const struct sources *sources = stream->work;
    struct error error = {0};
    struct device *device;
    struct device_jpeg *jpeg;
    const int count = stream->together;
    must(device_open(0, &device, &error) && device_jpeg_open(device, DECODED_MARK, &jpeg, &error), &error);
    struct jpeg_output *outputs = allocate((size_t)count * sizeof *outputs);
    struct workspace *samples = allocate((size_t)count * sizeof *samples);
    struct jpeg_scan scans[TOGETHER_MAX];
    for (int i = 0; i < count; i++) {
        const struct source *source = &sources->list[(stream->index * count + i) % sources->count];
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
        stream->times[KERNELS] += i >= 0 ? (double)milliseconds : 0;
    }
    stream->times[ALL] = clock_milliseconds() - start;
    for (int i = 0; i < count; i++)
        device_release(device, &samples[i]);
    free(samples);
    free(outputs);
    device_jpeg_close(jpeg);
    device_close(device);
    return NULL;
}

static void bench_encoder(int streams, int together, const struct sources *sources)
{
    const struct bench_stream sum = bench_streams(streams, together, run_stream, sources);
    printf("encode, %2d streams, %3d at once: %7.2f Gpixel/s, %7.2f with downloads, %7.0f pictures/s\n", streams,
           together, sum.pixels / sum.times[KERNELS] * 1e-6, sum.pixels / sum.times[ALL] * 1e-6,
           1e3 * ROUNDS * streams * together / sum.times[ALL]);
}

void bench_files(int count, char **names)
{
    struct sources sources = {allocate((size_t)count * sizeof *sources.list), count};
    for (int i = 0; i < count; i++)
        sources.list[i] = load_source(names[i]);
    for (int streams = 1; streams <= BENCH_STREAMS_MAX; streams *= 4)
        bench_encoder(streams, 1, &sources);
    for (int together = 8; together <= TOGETHER_MAX; together *= 8)
        for (int streams = 1; streams <= 2; streams++)
            bench_encoder(streams, together, &sources);
    for (int i = 0; i < count; i++)
        free(sources.list[i].pixels.samples);
    free(sources.list);
}
