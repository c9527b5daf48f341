/* SPDX-License-Identifier: MIT
 *
 * Images that split into planes and merge again on a device. */
#include "check.h"

#include "base/random.h"
#include "image/linear.h"
#include "kernels/device/device.h"

/* Images have 8 or 16 bits. Planes of 16 bits take either, also through the tables of linear light. */
struct image_case {
    int width, height, channels, bits, planes;
    enum alpha alpha;
    enum sample sample;
    const struct linear *linear, *device_linear; /* NULL if the samples are not made linear */
};

/* A colour or alpha at the ends of its range, or in between. */
static uint16_t awkward_sample(uint64_t *state)
{
    static const uint16_t ends[] = {0, 1, 2, 127, 128, 255, 256, 257, 32767, 32768, 65278, 65279, 65534, 65535};
    const uint64_t r = random_next(state);
    return r >> 63 ? (uint16_t)(r >> 40) : ends[(r >> 32) % (sizeof ends / sizeof ends[0])];
}

/* Fill two thirds of the columns. The others stay as the split made them, and linear light gives their levels back. */
static void fill_awkward(const struct plane *plane, uint64_t *state)
{
    for (int channel = 0; channel < plane->count; channel++)
        for (int y = 0; y < plane->height; y++)
            for (int x = 0; x < plane->width; x += 1 + x % 3 % 2)
                ((uint16_t *)(void *)row_of(plane, channel, y))[x] = awkward_sample(state);
}

/* Does one image split and merge on the device as it does on the CPU? This compares whole buffers, with the poison in
 * their guards and padding. */
static void check_image(struct checker *checker, const struct image_case *c, uint64_t *state)
{
    const size_t samples_count = (size_t)c->width * (size_t)c->height * (size_t)c->channels;
    const size_t size = samples_count * (c->bits > 8 ? 2 : 1), whole = size + 2 * GUARD;
    const bool is_16_bit = c->sample == SAMPLE_U16, all_pairs = !is_16_bit && c->width == 256 && c->height == 256;
    const unsigned char poison = checker->cases & 1 ? 0xa5 : 0x5a;
    struct guarded expected =
        guarded_make(c->sample, c->width, c->height, c->planes, checker->cases % 3 ? 0 : ROW_STEP);
    unsigned char *actual = allocate(expected.size), *samples = allocate(whole), *merged = allocate(whole);
    memset(expected.memory, poison, expected.size);
    memset(actual, poison, expected.size);
    memset(samples, poison, whole);
    for (size_t i = 0; i < samples_count; i++)
        if (c->bits > 8)
            ((uint16_t *)(void *)(samples + GUARD))[i] = awkward_sample(state);
        else
            samples[GUARD + i] = (unsigned char)(random_next(state) >> 56);
    if (all_pairs) /* every colour with every alpha */
        for (size_t i = 0; i < 256 * 256; i++) {
            unsigned char *pixel = samples + GUARD + i * (size_t)c->channels;
            pixel[0] = (unsigned char)i;
            pixel[c->channels - 1] = (unsigned char)(i >> 8);
        }
    struct image image = {
        .width = c->width, .height = c->height, .channels = c->channels, .bits = c->bits, .samples = samples + GUARD};
    image_split(&image, c->alpha, c->linear, &expected.plane);

    struct device *device = checker->device;
    checker_reserve(checker, whole > expected.size ? whole : expected.size);
    struct plane plane = expected.plane;
    struct image device_image = image;
    plane.data = checker->out.bytes + GUARD;
    device_image.samples = checker->in.bytes + GUARD;
    struct error error = {0};
    bool done = device_upload(device, checker->in.bytes, samples, whole, &error) &&
                device_upload(device, checker->out.bytes, actual, expected.size, &error) &&
                device_split(device, &device_image, c->alpha, c->device_linear, &plane, &error) &&
                device_download(device, actual, checker->out.bytes, expected.size, &error) &&
                device_wait(device, &error);
    const bool split = done && memcmp(expected.memory, actual, expected.size) == 0;

    if (is_16_bit)
        fill_awkward(&expected.plane, state);
    else
        fill_random(&expected.plane, state); /* as filters leave planes, with any colour and any alpha */
    if (all_pairs)
        for (int y = 0; y < c->height; y++)
            for (int x = 0; x < c->width; x++) {
                row_of(&expected.plane, 0, y)[x] = (unsigned char)x;
                row_of(&expected.plane, c->planes - 1, y)[x] = (unsigned char)y;
            }
    done = done && device_upload(device, checker->out.bytes, expected.memory, expected.size, &error) &&
           device_merge(device, &plane, c->alpha, c->device_linear, &device_image, &error) &&
           device_download(device, merged, checker->in.bytes, whole, &error) && device_wait(device, &error);
    if (!done)
        fail("split and merge: %s", error.message);
    image_merge(&expected.plane, c->alpha, c->linear, &image);
    const bool merge = memcmp(samples, merged, whole) == 0;
    checker->cases++;
    checker->mismatches += !split || !merge;
    if (!split || !merge)
        fprintf(stderr, "MISMATCH %s: %d x %d, %d channels of %d bits, %d planes of %s, alpha %d%s\n",
                split ? "merge" : "split", c->width, c->height, c->channels, c->bits, c->planes, sample_name(c->sample),
                c->alpha, c->linear ? ", linear" : "");
    free(expected.memory);
    free(actual);
    free(samples);
    free(merged);
}

/* An image with each number of channels and each treatment of alpha. */
static void check_channels(struct checker *checker, struct image_case c, uint64_t *state)
{
    for (c.channels = 1; c.channels <= 4; c.channels++) {
        c.alpha = ALPHA_KEEP;
        for (c.planes = 1; c.planes < c.channels; c.planes++)
            check_image(checker, &c, state);
        c.planes = c.channels;
        c.alpha = ALPHA_FILTER;
        check_image(checker, &c, state);
        c.alpha = ALPHA_PREMULTIPLY;
        check_image(checker, &c, state);
    }
}

void check_images(struct checker *checker)
{
    uint64_t state = checker->options.seed;
    if (!checker->options.cuda || checker->options.variant != NULL)
        return;
    struct error error = {0};
    const struct curve curves[3] = {{.g = 2.2, .a = 1}, curve_srgb, {.kind = CURVE_PQ}};
    struct linear *linear = linear_allocate(&error);
    struct workspace device_linear = {0};
    if (linear == NULL || !linear_set(linear, curves, 3, 8) || !linear_set(linear, curves, 3, 16) ||
        !device_reserve(checker->device, &device_linear, sizeof *linear, &error) ||
        !device_upload(checker->device, device_linear.bytes, linear, sizeof *linear, &error))
        fail("%s", error.message);
    for (size_t s = 0; s <= size_count; s++) {
        const bool pairs = s == size_count;
        struct image_case c = {.width = pairs ? 256 : sizes[s][0], .height = pairs ? 256 : sizes[s][1], .bits = 8};
        check_channels(checker, c, &state);
        c.sample = SAMPLE_U16;
        for (c.bits = 8; c.bits <= 16; c.bits += 8) {
            c.linear = c.device_linear = NULL;
            check_channels(checker, c, &state);
            c.linear = linear;
            c.device_linear = (const struct linear *)device_linear.bytes;
            check_channels(checker, c, &state);
        }
    }
    device_release(checker->device, &device_linear);
    free(linear);
}
