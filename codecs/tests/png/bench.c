/* SPDX-License-Identifier: MIT
 *
 * How fast the kernels are, in pixels a second, with several streams. Each has its own thread and pictures. */
#include "check.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PICTURES_MAX = 4, ROUNDS = 10 };

/* A file: its samples, and its stream. */
struct source {
    const char *name;
    struct picture picture;
    struct blob stream;
};

/* A picture of a stream. */
struct task_picture {
    const struct source *source;
    struct device *device;
    struct device_png *png;
    struct workspace samples;
};

/* What is timed, without and with the copies of compressed bytes in host memory or to it. */
struct task {
    void (*run)(struct task_picture *picture, bool has_copy);
    const char *name, *text, *text_of_copies;
    const struct source *sources;
    int source_count;
};

/* Read a PNG of 8 or 16 bits, without a palette. */
static void load_source(const char *name, struct source *source)
{
    enum { SIGNATURE = 8, CHUNK_HEAD = 8, CHUNK_OVERHEAD = 12 };
    struct png_layout *layout = &source->picture.layout;
    size_t size, length;
    uint8_t *bytes = read_bytes(name, &size);
    *source = (struct source){.name = name};
    for (size_t at = SIGNATURE; at + CHUNK_OVERHEAD <= size; at += CHUNK_OVERHEAD + length) {
        const uint8_t *const chunk = bytes + at, *const data = chunk + CHUNK_HEAD;
        length = big32(chunk);
        if (length > size - at - CHUNK_OVERHEAD)
            break;
        if (memcmp(chunk + 4, "IHDR", 4) == 0) {
            *layout = (struct png_layout){.width = (int)big32(data), .height = (int)big32(data + 4), .bits = data[8]};
            layout->channels = 1 + (data[9] & 2) + (data[9] >> 2);  /* grey, and for colour 2 more, for alpha 1 more */
            layout->paletted = (data[9] & 1) != 0 || data[12] != 0; /* or interlaced */
        } else if (memcmp(chunk + 4, "IDAT", 4) == 0 && !blob_append(&source->stream, data, length)) {
            fail("no memory");
        }
    }
    free(bytes);
    source->picture.samples = layout->bits >= 8 && !layout->paletted ? reference_decode(&source->stream, layout) : NULL;
    if (source->picture.samples == NULL)
        fail("%s: not an intact PNG of 8 or 16 bits without a palette", name);
}

static void encode(struct task_picture *picture, bool has_copy)
{
    struct error error = {0};
    uint8_t *bytes;
    size_t size;
    uint32_t adler;
    must(device_png_encode(picture->png, &picture->source->picture.layout, picture->samples.bytes, &error) &&
             (has_copy ? device_png_encoded(picture->png, 0, &bytes, &size, &adler, &error)
                       : device_wait(picture->device, &error)),
         &error);
}

/* Without a copy, the stream of the time before is decoded again. */
static void decode(struct task_picture *picture, bool has_copy)
{
    const struct source *source = picture->source;
    struct error error = {0};
    bool is_decoded = false;
    if (has_copy) {
        uint8_t *data;
        must(device_png_reserve(picture->png, source->stream.size, &data, &error), &error);
        memcpy(data, source->stream.bytes, source->stream.size);
    }
    must(device_png_decode(picture->png, &source->picture.layout, picture->samples.bytes, &error) &&
             device_png_decoded(picture->png, &is_decoded, &error),
         &error);
    if (!is_decoded)
        fail("%s: the GPU cannot decode this file", source->name);
}

static void *run_stream(void *argument)
{
    struct bench_stream *stream = argument;
    const struct task *task = stream->work;
    void (*const run)(struct task_picture *, bool) = task->run;
    struct error error = {0};
    struct device *device;
    struct task_picture pictures[PICTURES_MAX];
    must(device_open(0, &device, &error), &error);
    for (int i = 0; i < PICTURES_MAX; i++) {
        const struct source *source = &task->sources[(stream->index * PICTURES_MAX + i) % task->source_count];
        const struct png_layout *layout = &source->picture.layout;
        const size_t size = picture_bytes(layout);
        struct workspace *const samples = &pictures[i].samples;
        pictures[i] = (struct task_picture){.source = source, .device = device};
        must(device_png_open(device, &pictures[i].png, &error) && device_reserve(device, samples, size, &error) &&
                 device_upload(device, samples->bytes, source->picture.samples, size, &error),
             &error);
        stream->pixels += (double)layout->width * layout->height * ROUNDS;
    }
    for (int i = 0; i < 2 * PICTURES_MAX; i++) /* the buffers grow */
        run(&pictures[i % PICTURES_MAX], true);

    for (int copies = 0; copies < 2; copies++) {
        pthread_barrier_wait(stream->barrier);
        const double start = clock_milliseconds();
        for (int i = 0; i < ROUNDS * PICTURES_MAX; i++)
            run(&pictures[i % PICTURES_MAX], copies != 0);
        stream->times[copies] = clock_milliseconds() - start;
    }
    for (int i = 0; i < PICTURES_MAX; i++) {
        device_png_close(pictures[i].png);
        device_release(device, &pictures[i].samples);
    }
    device_close(device);
    return NULL;
}

void bench_files(int count, char **names)
{
    struct source *sources = allocate((size_t)count * sizeof *sources);
    const struct task tasks[] = {
        {encode, "encode", "", "with downloads", sources, count},
        {decode, "decode", " with uploads", "with copies to page-locked memory", sources, count},
    };
    for (int i = 0; i < count; i++)
        load_source(names[i], &sources[i]);
    for (size_t i = 0; i < sizeof tasks / sizeof *tasks; i++)
        for (int streams = 1; streams <= BENCH_STREAMS_MAX; streams *= 4) {
            const struct bench_stream sum = bench_streams(streams, PICTURES_MAX, run_stream, &tasks[i]);
            printf("%s, %2d streams: %7.2f Gpixel/s%s, %7.2f %s\n", tasks[i].name, streams,
                   sum.pixels / sum.times[0] * 1e-6, tasks[i].text, sum.pixels / sum.times[1] * 1e-6,
                   tasks[i].text_of_copies);
        }
    for (int i = 0; i < count; i++) {
        free(sources[i].picture.samples);
        blob_free(&sources[i].stream);
    }
    free(sources);
}
