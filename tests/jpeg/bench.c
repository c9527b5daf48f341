/* SPDX-License-Identifier: MIT
 *
 * How fast the kernels are, in pixels a second, with several streams. Each has its own thread and pictures. */
#include "check.h"

#include "base/clock.h"
#include "kernels/device/device.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STREAMS_MAX = 16, PICTURES_MAX = 4, ROUNDS = 25, QUALITY = 90 };

/* A file, as it is encoded again: 4:2:0. */
struct source {
    struct image image;
    struct jpeg_layout layout;
};

struct stream {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const struct source *sources;
    int source_count, index;
    double pixels;         /* of all rounds */
    float kernels;         /* milliseconds of the rounds on the device */
    double with_downloads; /* seconds of the rounds, each picture waited for */
};

static struct source load_source(const char *name)
{
    size_t size;
    uint8_t *bytes = read_bytes(name, &size);
    struct source source;
    struct reference reference;
    reference_decode(bytes, size, &source.image);
    reference_encode(&source.image, QUALITY, 2, 2, &source.layout, &reference);
    free(reference.file);
    free(bytes);
    return source;
}

static void encode(struct device_jpeg *jpeg, const struct source *source, const struct image *image, bool is_waited)
{
    struct error error = {0};
    const uint8_t *bytes;
    size_t size;
    must(device_jpeg_encode(jpeg, &source->layout, image, &error) &&
             (!is_waited || device_jpeg_encoded(jpeg, &bytes, &size, &error)),
         &error);
}

static void *run_stream(void *argument)
{
    struct stream *stream = argument;
    struct error error = {0};
    struct device *device;
    struct device_jpeg *jpeg;
    must(device_open(0, &device, &error) && device_jpeg_open(device, &jpeg, &error), &error);
    const struct source *sources[PICTURES_MAX];
    struct image images[PICTURES_MAX];
    struct workspace samples[PICTURES_MAX] = {0};
    for (int i = 0; i < PICTURES_MAX; i++) {
        sources[i] = &stream->sources[(stream->index * PICTURES_MAX + i) % stream->source_count];
        images[i] = sources[i]->image;
        const size_t size = image_bytes(&images[i]);
        must(device_reserve(device, &samples[i], size, &error) &&
                 device_upload(device, samples[i].bytes, sources[i]->image.samples, size, &error),
             &error);
        images[i].samples = samples[i].bytes;
        stream->pixels += (double)images[i].width * images[i].height * ROUNDS;
    }
    for (int i = 0; i < 2 * PICTURES_MAX; i++) /* the buffers grow */
        encode(jpeg, sources[i % PICTURES_MAX], &images[i % PICTURES_MAX], true);

    pthread_barrier_wait(stream->barrier);
    must(device_mark(device, 0, &error), &error);
    for (int i = 0; i < ROUNDS * PICTURES_MAX; i++)
        encode(jpeg, sources[i % PICTURES_MAX], &images[i % PICTURES_MAX], false);
    must(device_mark(device, 1, &error) && device_elapsed(device, 0, 1, &stream->kernels, &error), &error);

    pthread_barrier_wait(stream->barrier);
    const double start = clock_milliseconds();
    for (int i = 0; i < ROUNDS * PICTURES_MAX; i++)
        encode(jpeg, sources[i % PICTURES_MAX], &images[i % PICTURES_MAX], true);
    stream->with_downloads = 1e-3 * (clock_milliseconds() - start);
    for (int i = 0; i < PICTURES_MAX; i++)
        device_release(device, &samples[i]);
    device_jpeg_close(jpeg);
    device_close(device);
    return NULL;
}

static void bench_streams(int count, const struct source *sources, int source_count)
{
    struct stream streams[STREAMS_MAX] = {{0}};
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        streams[i].barrier = &barrier;
        streams[i].sources = sources;
        streams[i].source_count = source_count;
        streams[i].index = i;
        if (pthread_create(&streams[i].thread, NULL, run_stream, &streams[i]) != 0)
            fail("no thread");
    }
    double pixels = 0, kernels = 0, with_downloads = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(streams[i].thread, NULL);
        pixels += streams[i].pixels;
        kernels = streams[i].kernels > kernels ? streams[i].kernels : kernels;
        with_downloads = streams[i].with_downloads > with_downloads ? streams[i].with_downloads : with_downloads;
    }
    pthread_barrier_destroy(&barrier);
    printf("encode, %2d streams: %7.2f Gpixel/s, %7.2f with downloads\n", count, pixels / kernels * 1e-6,
           pixels / with_downloads * 1e-9);
}

void bench_files(int count, char **names)
{
    struct source *sources = allocate((size_t)count * sizeof *sources);
    for (int i = 0; i < count; i++)
        sources[i] = load_source(names[i]);
    for (int streams = 1; streams <= STREAMS_MAX; streams *= 4)
        bench_streams(streams, sources, count);
    for (int i = 0; i < count; i++)
        free(sources[i].image.samples);
    free(sources);
}
