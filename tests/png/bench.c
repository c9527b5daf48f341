/* SPDX-License-Identifier: MIT
 *
 * How fast the kernels are, in pixels a second, with several streams. Each has its own thread and pictures. */
#include "check.h"

#include "base/file.h"
#include "codec/codec.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { STREAMS_MAX = 16, PICTURES_MAX = 4, ROUNDS = 10 };

struct stream {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const struct image *sources;
    int source_count, index;
    double pixels;         /* of all rounds */
    float kernels;         /* milliseconds of the rounds on the device */
    double with_downloads; /* seconds of the rounds, each picture waited for */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static struct image load_source(const char *name)
{
    const struct codec_settings settings = {.compression = CODEC_COMPRESSION};
    struct error error = {0};
    struct image image;
    uint8_t *bytes;
    size_t size;
    must(file_read(name, SIZE_MAX, &bytes, &size, NULL, &error) &&
             codec_decode(bytes, size, name, &settings, &image, NULL, &error),
         &error);
    free(bytes);
    return image;
}

static void encode(struct device_png *png, const struct image *image, bool is_waited)
{
    struct error error = {0};
    const uint8_t *bytes;
    size_t size;
    uint32_t adler;
    must(device_png_encode(png, image, &error) &&
             (!is_waited || device_png_encoded(png, &bytes, &size, &adler, &error)),
         &error);
}

static void *run_stream(void *argument)
{
    struct stream *stream = argument;
    struct error error = {0};
    struct device *device;
    struct device_png *png;
    struct image images[PICTURES_MAX];
    must(device_open(0, &device, &error) && device_png_open(device, &png, &error), &error);
    for (int i = 0; i < PICTURES_MAX; i++) {
        const struct image *source = &stream->sources[(stream->index * PICTURES_MAX + i) % stream->source_count];
        const size_t size = image_bytes(source);
        void *samples;
        must(device_allocate(device, size, &samples, &error) &&
                 device_upload(device, samples, source->samples, size, &error),
             &error);
        images[i] = *source;
        images[i].samples = samples;
        stream->pixels += (double)source->width * source->height * ROUNDS;
    }
    for (int i = 0; i < 2 * PICTURES_MAX; i++) /* the buffers grow */
        encode(png, &images[i % PICTURES_MAX], true);

    pthread_barrier_wait(stream->barrier);
    must(device_mark(device, 0, &error), &error);
    for (int i = 0; i < ROUNDS * PICTURES_MAX; i++)
        encode(png, &images[i % PICTURES_MAX], false);
    must(device_mark(device, 1, &error) && device_elapsed(device, 0, 1, &stream->kernels, &error), &error);

    pthread_barrier_wait(stream->barrier);
    const double start = now();
    for (int i = 0; i < ROUNDS * PICTURES_MAX; i++)
        encode(png, &images[i % PICTURES_MAX], true);
    stream->with_downloads = now() - start;
    for (int i = 0; i < PICTURES_MAX; i++)
        device_release(device, images[i].samples);
    device_png_close(png);
    device_close(device);
    return NULL;
}

static void bench_streams(int count, const struct image *sources, int source_count)
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
    struct image *sources = allocate((size_t)count * sizeof *sources);
    for (int i = 0; i < count; i++)
        sources[i] = load_source(names[i]);
    for (int streams = 1; streams <= STREAMS_MAX; streams *= 4)
        bench_streams(streams, sources, count);
    for (int i = 0; i < count; i++)
        free(sources[i].samples);
    free(sources);
}
