/* SPDX-License-Identifier: MIT
 *
 * The GPU's encoder against libjpeg-turbo: all bytes of the scan. */
#include "check.h"

#include "base/random.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct encode_case {
    int width, height, channels;
    int horizontal, vertical; /* the sampling factors of luma */
    int quality;
    enum content content;
    uint64_t key; /* the seed of the samples */
};

/* Grey, and each sampling of colours. */
static const int samplings[][2] = {{0, 0}, {1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}};
enum { SAMPLINGS = sizeof samplings / sizeof samplings[0] };

static void report(const struct encode_case *c, const struct reference *reference, const uint8_t *bytes, size_t size)
{
    const uint8_t *expected = reference->file + reference->first;
    size_t at = 0;
    while (at < size && at < reference->size && bytes[at] == expected[at])
        at++;
    fail("encode %dx%d, %d channels, sampling %dx%d, quality %d, %s, key %" PRIu64
         ": %zu bytes instead of %zu, the first wrong one at %zu",
         c->width, c->height, c->channels, c->horizontal, c->vertical, c->quality, content_names[c->content], c->key,
         size, reference->size, at);
}

enum { GROUP = 7, ALIGNMENT = 512 };

/* Cases whose pictures are encoded at once. */
struct group {
    struct test_gpu *gpu;
    int count;
    struct encode_case cases[GROUP];
};

/* Let the samples be planes, unless PLANE is 0. */
static void make_planes(struct pixels *pixels, size_t plane)
{
    if (plane == 0)
        return;
    uint8_t *planes = allocate(3 * plane);
    for (size_t i = 0; i < 3 * plane; i++)
        planes[i % 3 * plane + i / 3] = pixels->samples[i];
    free(pixels->samples);
    pixels->samples = planes;
}

/* Encode the pictures of all cases at once, and compare. */
static void check_group(struct group *group)
{
    struct error error = {0};
    struct test_gpu *gpu = group->gpu;
    struct jpeg_layout layouts[GROUP];
    struct reference references[GROUP];
    struct pixels pictures[GROUP];
    struct jpeg_output outputs[GROUP];
    struct jpeg_scan scans[GROUP];
    size_t end = 0;
    if (group->count == 0)
        return;
    for (int i = 0; i < group->count; i++) {
        const struct encode_case *c = &group->cases[i];
        uint64_t state = c->key;
        struct pixels *pixels = &pictures[i];
        *pixels = (struct pixels){.width = c->width, .height = c->height, .channels = c->channels};
        make_picture(pixels, c->content, &state);
        reference_encode(pixels, c->quality, c->horizontal, c->vertical, &layouts[i], &references[i]);
        outputs[i] = (struct jpeg_output){
            .layout = &layouts[i],
            .channels = c->channels,
            .plane = c->channels == 3 && c->key % 3 == 0 ? (size_t)c->width * (size_t)c->height : 0,
            .margin = (size_t)(GROUP - i), /* the next has less */
        };
        make_planes(pixels, outputs[i].plane);
        end = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT + pixels_bytes(pixels);
    }
    reserve_samples(gpu, end); /* the last picture ends where the memory does */
    size_t at = 0;
    for (int i = 0; i < group->count; i++) {
        struct pixels *pixels = &pictures[i];
        const size_t size = pixels_bytes(pixels);
        must(device_upload(gpu->device, gpu->samples.bytes + at, pixels->samples, size, &error) &&
                 device_wait(gpu->device, &error),
             &error);
        free(pixels->samples);
        outputs[i].samples = gpu->samples.bytes + at;
        at += (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    must(device_jpeg_encode(gpu->jpeg, outputs, (size_t)group->count, &error), &error);
    must(device_jpeg_encoded(gpu->jpeg, scans, &error), &error);
    for (int i = 0; i < group->count; i++) { /* the margins may be written */
        uint8_t *bytes = (uint8_t *)scans[i].bytes;
        memset(bytes - outputs[i].margin, 0, outputs[i].margin);
        memset(bytes + scans[i].size, 0, outputs[i].margin);
    }
    for (int i = 0; i < group->count; i++) {
        const struct reference *reference = &references[i];
        if (scans[i].size != reference->size ||
            memcmp(scans[i].bytes, reference->file + reference->first, reference->size) != 0)
            report(&group->cases[i], reference, scans[i].bytes, scans[i].size);
        free(reference->file);
        gpu->cases++;
    }
    group->count = 0;
}

/* Check a case, together with others once there are some: call check_group at the end. */
static void check_case(struct group *group, const struct encode_case *c)
{
    group->cases[group->count++] = *c;
    if (group->count == GROUP || (size_t)c->width * (size_t)c->height > 1 << 20 || c->key % 4 == 0)
        check_group(group);
}

/* A case of this size with all else random. Sampling is a row of SAMPLINGS. */
static void check_size(struct group *group, int width, int height, int sampling, uint64_t *state)
{
    const struct encode_case c = {.width = width,
                                  .height = height,
                                  .channels = (sampling == 0 ? 1 : 3) + random_between(state, 0, 1),
                                  .horizontal = samplings[sampling][0],
                                  .vertical = samplings[sampling][1],
                                  .quality = random_between(state, 1, 100),
                                  .content = (enum content)random_between(state, 0, CONTENTS - 1),
                                  .key = random_next(state)};
    check_case(group, &c);
}

/* Every quality with every sampling and content. */
static void check_qualities(const struct check_options *options, struct group *group, uint64_t *state)
{
    for (int quality = 1; quality <= 100; quality += options->quick ? 33 : 1)
        for (int sampling = 0; sampling < SAMPLINGS; sampling++)
            for (int content = 0; content < CONTENTS; content += options->quick ? 3 : 1) {
                const struct encode_case c = {.width = random_between(state, 30, 150),
                                              .height = random_between(state, 30, 150),
                                              .channels = sampling == 0 ? 1 : 3,
                                              .horizontal = samplings[sampling][0],
                                              .vertical = samplings[sampling][1],
                                              .quality = quality,
                                              .content = (enum content)content,
                                              .key = random_next(state)};
                check_case(group, &c);
            }
}

static void check_sizes(const struct check_options *options, struct group *group, uint64_t *state)
{
    const int thinned = options->quick ? 150 : 2;
    for (int sampling = 0; sampling < SAMPLINGS; sampling++)
        for (int width = 1; width <= 64; width++)
            for (int height = 1; height <= 64; height++)
                if ((width <= 3 && height <= 3) || random_next(state) % (uint64_t)thinned == 0)
                    check_size(group, width, height, sampling, state);
    for (int i = 0; i < (options->quick ? 12 : 1200); i++) /* around multiples of 16 */
        check_size(group, 16 * random_between(state, 1, 40) + random_between(state, -1, 1),
                   16 * random_between(state, 1, 20) + random_between(state, -1, 1), i % SAMPLINGS, state);
}

/* Long rows and columns, and pictures of many tiles. Noise of the best quality is larger than the first buffer. */
static void check_large(const struct check_options *options, struct group *group, uint64_t *state)
{
    static const int sizes[][2] = {{65500, 1}, {1, 65500}, {65500, 17}, {33, 65499}, {4000, 3000}, {3001, 2003}};
    const size_t count = options->quick ? 2 : sizeof sizes / sizeof sizes[0];
    for (size_t i = 0; i < count; i++)
        for (int sampling = 0; sampling < SAMPLINGS; sampling++)
            check_size(group, sizes[i][0], sizes[i][1], sampling, state);
    for (int sampling = 0; sampling < SAMPLINGS; sampling++)
        for (int content = NOISE; content <= EXTREMES; content++) {
            const struct encode_case c = {.width = options->quick ? 150 : 2111,
                                          .height = options->quick ? 90 : 1333,
                                          .channels = sampling == 0 ? 1 : 3,
                                          .horizontal = samplings[sampling][0],
                                          .vertical = samplings[sampling][1],
                                          .quality = 100,
                                          .content = (enum content)content,
                                          .key = random_next(state) | 1};
            check_case(group, &c);
        }
    if (options->huge)
        for (int sampling = 1; sampling < SAMPLINGS; sampling += 2) {
            const struct encode_case c = {.width = 30011,
                                          .height = 30007,
                                          .channels = 3 + sampling % 4 / 3,
                                          .horizontal = samplings[sampling][0],
                                          .vertical = samplings[sampling][1],
                                          .quality = sampling == 1 ? 100 : 80,
                                          .content = PHOTO,
                                          .key = random_next(state)};
            check_case(group, &c);
        }
}

void check_encoder(const struct check_options *options, struct test_gpu *gpu)
{
    uint64_t state = options->seed;
    struct group group = {.gpu = gpu};
    check_qualities(options, &group, &state);
    check_sizes(options, &group, &state);
    check_large(options, &group, &state);
    check_group(&group);
}

void check_encoder_beside(const struct check_options *options, struct test_gpu *gpu)
{
    uint64_t state = options->seed;
    struct group group = {.gpu = gpu};
    for (int i = 0; i < (options->quick ? 6 : 120); i++)
        check_size(&group, random_between(&state, 1, 900), random_between(&state, 1, 700), i % SAMPLINGS, &state);
    check_group(&group);
}
