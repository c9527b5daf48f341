/* SPDX-License-Identifier: MIT
 *
 * How fast the kernels are, in pixels a second, with several streams. Each has its own thread and pictures. */
#include "check.h"

#include "base/clock.h"
#include "base/file.h"
#include "codec/gpu_codec.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    struct device *device;
    struct device_png *png;
    struct workspace samples;
    struct image image; /* in device memory */
};

/* What is timed, without and with the copies of compressed bytes in host memory or to it. */
struct task {
    void (*run)(struct picture *picture, bool has_copy);
    const char *name, *text, *text_of_copies;
};

struct stream {
    pthread_t thread;
    pthread_barrier_t *barrier;
    const struct task *task;
    const struct source *sources;
    int source_count, index;
    double pixels;     /* of all rounds */
    double seconds[2]; /* without and with copies */
};

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

static void encode(struct picture *picture, bool has_copy)
{
    struct error error = {0};
    uint8_t *bytes;
    size_t size;
    uint32_t adler;
    must(device_png_encode(picture->png, &picture->image, &error) &&
             (has_copy ? device_png_encoded(picture->png, 0, &bytes, &size, &adler, &error)
                       : device_wait(picture->device, &error)),
         &error);
}

/* Without a copy, the stream of the time before is decoded again. */
static void decode(struct picture *picture, bool has_copy)
{
    const struct source *source = picture->source;
    struct error error = {0};
    bool is_decoded = false;
    if (has_copy) {
        uint8_t *data;
        must(device_png_reserve(picture->png, source->size, &data, &error), &error);
        memcpy(data, source->data, source->size);
    }
    must(device_png_decode(picture->png, &source->layout, picture->image.samples, &error) &&
             device_png_decoded(picture->png, &is_decoded, &error),
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
        struct workspace *const samples = &pictures[i].samples;
        pictures[i] = (struct picture){.source = source, .device = device, .image = *image};
        must(device_png_open(device, &pictures[i].png, &error) && device_reserve(device, samples, size, &error) &&
                 device_upload(device, samples->bytes, image->samples, size, &error),
             &error);
        pictures[i].image.samples = samples->bytes;
        stream->pixels += (double)image->width * image->height * ROUNDS;
    }
    for (int i = 0; i < 2 * PICTURES_MAX; i++) /* the buffers grow */
        run(&pictures[i % PICTURES_MAX], true);

    for (int copies = 0; copies < 2; copies++) {
        pthread_barrier_wait(stream->barrier);
        const double start = clock_milliseconds();
        for (int i = 0; i < ROUNDS * PICTURES_MAX; i++)
            run(&pictures[i % PICTURES_MAX], copies != 0);
        stream->seconds[copies] = 1e-3 * (clock_milliseconds() - start);
    }
    for (int i = 0; i < PICTURES_MAX; i++) {
        device_png_close(pictures[i].png);
        device_release(device, &pictures[i].samples);
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
    double pixels = 0, seconds[2] = {0};
    for (int i = 0; i < count; i++) {
        pthread_join(streams[i].thread, NULL);
        pixels += streams[i].pixels;
        for (int copies = 0; copies < 2; copies++)
            seconds[copies] =
                streams[i].seconds[copies] > seconds[copies] ? streams[i].seconds[copies] : seconds[copies];
    }
    pthread_barrier_destroy(&barrier);
    printf("%s, %2d streams: %7.2f Gpixel/s%s, %7.2f %s\n", task->name, count, pixels / seconds[0] * 1e-9, task->text,
           pixels / seconds[1] * 1e-9, task->text_of_copies);
}

void bench_files(int count, char **names)
{
    static const struct task tasks[] = {
        {encode, "encode", "", "with downloads"},
        {decode, "decode", " with uploads", "with copies to page-locked memory"},
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
