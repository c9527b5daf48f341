/* SPDX-License-Identifier: MIT
 *
 * How fast the kernels are, in pixels a second, with several streams. Each has its own thread and pictures. */
#include "check.h"

#include "base/file.h"
#include "codec/gpu_files.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STREAMS_MAX = 16, PICTURES_MAX = 4, ROUNDS = 10 };

/* A file: its samples, and its stream. */
struct source {
    const char *name;
    struct image image;
    struct png_layout layout;
    uint8_t *data;
    size_t size;
};

/* A picture of a stream. */
struct picture {
    const struct source *source;
    struct device_png *png;
    struct image image; /* in device memory */
};

struct task {
    void (*run)(struct picture *picture, bool is_waited);
    const char *name, *queued, *waited; /* what the times include */
};

struct stream {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const struct task *task;
    const struct source *sources;
    int source_count, index;
    double pixels; /* of all rounds */
    float queued;  /* milliseconds of the rounds on the device */
    double waited; /* seconds of the rounds, each picture waited for */
};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void load_source(const char *name, struct source *source)
{
    const struct codec_settings settings = {.compression = CODEC_COMPRESSION};
    struct codec_info info;
    struct png_stream stream;
    struct error error = {0};
    uint8_t *bytes;
    size_t size;
    must(file_read(name, SIZE_MAX, &bytes, &size, NULL, &error) &&
             codec_decode(bytes, size, name, &settings, &source->image, &info, &error),
         &error);
    const struct codec_input input = {bytes, size, name, &info, &settings};
    if (codec_find_stream(&input, &source->layout, &stream) == NULL)
        fail("%s: not a PNG that a GPU reads", name);
    source->name = name;
    source->size = stream.size;
    source->data = allocate(stream.size);
    png_stream_copy(&stream, 0, stream.size, source->data);
    free(bytes);
}

static void encode(struct picture *picture, bool is_waited)
{
    struct error error = {0};
    const uint8_t *bytes;
    size_t size;
    uint32_t adler;
    must(device_png_encode(picture->png, &picture->image, &error) &&
             (!is_waited || device_png_encoded(picture->png, &bytes, &size, &adler, &error)),
         &error);
}

/* The stream stays in page-locked memory until the next one that is waited for. */
static void decode(struct picture *picture, bool is_waited)
{
    const struct source *source = picture->source;
    struct error error = {0};
    bool is_decoded = true;
    if (is_waited) {
        uint8_t *data;
        must(device_png_reserve(picture->png, source->size, &data, &error), &error);
        memcpy(data, source->data, source->size);
    }
    must(device_png_decode(picture->png, &source->layout, picture->image.samples, &error) &&
             (!is_waited || device_png_decoded(picture->png, &is_decoded, &error)),
         &error);
    if (!is_decoded)
        fail("%s: the GPU cannot decode this file", source->name);
}

static void *run_stream(void *argument)
{
    struct stream *stream = argument;
    void (*const run)(struct picture *, bool) = stream->task->run;
    struct error error = {0};
    struct device *device;
    struct picture pictures[PICTURES_MAX];
    must(device_open(0, &device, &error), &error);
    for (int i = 0; i < PICTURES_MAX; i++) {
        const struct source *source = &stream->sources[(stream->index * PICTURES_MAX + i) % stream->source_count];
        const struct image *image = &source->image;
        const size_t size = image_bytes(image);
        void *samples = NULL;
        pictures[i] = (struct picture){.source = source, .image = *image};
        must(device_png_open(device, &pictures[i].png, &error) && device_allocate(device, size, &samples, &error) &&
                 device_upload(device, samples, image->samples, size, &error),
             &error);
        pictures[i].image.samples = samples;
        stream->pixels += (double)image->width * image->height * ROUNDS;
    }
    for (int i = 0; i < 2 * PICTURES_MAX; i++) /* the buffers grow */
        run(&pictures[i % PICTURES_MAX], true);

    pthread_barrier_wait(stream->barrier);
    must(device_mark(device, 0, &error), &error);
    for (int i = 0; i < ROUNDS * PICTURES_MAX; i++)
        run(&pictures[i % PICTURES_MAX], false);
    must(device_mark(device, 1, &error) && device_elapsed(device, 0, 1, &stream->queued, &error), &error);

    pthread_barrier_wait(stream->barrier);
    const double start = now();
    for (int i = 0; i < ROUNDS * PICTURES_MAX; i++)
        run(&pictures[i % PICTURES_MAX], true);
    stream->waited = now() - start;
    for (int i = 0; i < PICTURES_MAX; i++) {
        device_png_close(pictures[i].png);
        device_release(device, pictures[i].image.samples);
    }
    device_close(device);
    return NULL;
}

static void bench_streams(const struct task *task, int count, const struct source *sources, int source_count)
{
    struct stream streams[STREAMS_MAX] = {{0}};
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, (unsigned)count);
    for (int i = 0; i < count; i++) {
        streams[i].barrier = &barrier;
        streams[i].task = task;
        streams[i].sources = sources;
        streams[i].source_count = source_count;
        streams[i].index = i;
        if (pthread_create(&streams[i].thread, NULL, run_stream, &streams[i]) != 0)
            fail("no thread");
    }
    double pixels = 0, queued = 0, waited = 0;
    for (int i = 0; i < count; i++) {
        pthread_join(streams[i].thread, NULL);
        pixels += streams[i].pixels;
        queued = streams[i].queued > queued ? streams[i].queued : queued;
        waited = streams[i].waited > waited ? streams[i].waited : waited;
    }
    pthread_barrier_destroy(&barrier);
    printf("%s, %2d streams: %7.2f Gpixel/s%s, %7.2f %s\n", task->name, count, pixels / queued * 1e-6, task->queued,
           pixels / waited * 1e-9, task->waited);
}

void bench_files(int count, char **names)
{
    static const struct task tasks[] = {
        {encode, "encode", "", "with downloads"},
        {decode, "decode", " with uploads", "with copies and waits"},
    };
    struct source *sources = allocate((size_t)count * sizeof *sources);
    for (int i = 0; i < count; i++)
        load_source(names[i], &sources[i]);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        for (int streams = 1; streams <= STREAMS_MAX; streams *= 4)
            bench_streams(&tasks[i], streams, sources, count);
    for (int i = 0; i < count; i++) {
        free(sources[i].image.samples);
        free(sources[i].data);
    }
    free(sources);
}
