/* SPDX-License-Identifier: MIT
 *
 * device_copy_samples against image_copy, in random layouts. */
#include "base/random.h"
#include "image/image.h"
#include "kernels/device/device.h"
#include "tests/lib/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CASES = 300, MEMORY = 1 << 18 };

/* A random layout of a shape that is already set. */
static void place_samples(uint64_t *state, uint8_t *memory, struct image *image)
{
    const size_t size = image_sample_bytes(image), gap = size * (size_t)random_between(state, 0, 3);
    const int order = random_between(state, 0, 2);
    const size_t width = (size_t)image->width, height = (size_t)image->height, channels = (size_t)image->channels;
    image->samples = memory;
    image->channel_stride = order == 1 ? (size * width + gap) * height : size;
    image->pixel_stride = order == 1 ? size : size * channels + gap;
    image->row_stride = order == 1 ? size * width + gap : image->pixel_stride * width;
    if (order == 2) {
        image->row_stride = size * channels;
        image->pixel_stride = image->row_stride * height + gap;
    }
}

int main(void)
{
    struct error error;
    struct device *device;
    uint64_t state = 5;
    uint8_t *in = allocate(MEMORY), *out = allocate(MEMORY), *expected = allocate(MEMORY);
    if (!device_open(0, &device, &error))
        fail("%s", error.message);
    for (int i = 0; i < MEMORY; i++)
        in[i] = (uint8_t)random_next(&state);
    for (int i = 0; i < CASES; i++) {
        struct image from = {.width = random_between(&state, 1, 150),
                             .height = random_between(&state, 1, 30),
                             .channels = random_between(&state, 1, 4),
                             .bits = 8 << random_between(&state, 0, 2)};
        struct image to = from;
        if (from.bits == 32) { /* one of them has floats */
            struct image *const other = random_between(&state, 0, 1) ? &from : &to;
            other->stored = (enum storage)random_between(&state, STORED_FLOAT, STORED_BOOL);
        }
        memset(out, i, MEMORY);
        memset(expected, i, MEMORY);
        place_samples(&state, in, &from);
        place_samples(&state, expected, &to);
        uint8_t is_lost = 0;
        const bool is_exact = image_copy(&from, &to);
        to.samples = out;
        if (!device_copy_samples(device, &from, &to, &is_lost, &error))
            fail("%s", error.message);
        if (is_lost == is_exact)
            fail("%s", is_exact ? "samples are lost" : "no samples are lost");
        if (memcmp(out, expected, MEMORY) != 0)
            fail("other bytes: %d x %d x %d of %d bits", from.width, from.height, from.channels, from.bits);
    }
    device_close(device);
    free(in);
    free(out);
    free(expected);
    printf("%d cases\n", CASES);
    return 0;
}
