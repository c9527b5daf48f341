/* SPDX-License-Identifier: MIT
 *
 * The kernel of device/orient.cu against the CPU: filters that move samples, in planes of random sizes, and images that
 * are turned upright. The emulated device sees what is written beside a buffer, and a sanitizer what is read there. */
#include "base/random.h"
#include "cpu/cpu.h"
#include "kernels/device/device.h"
#include "tests/lib/program.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool move_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                 struct error *error);

enum { CASES = 300 };

/* Planes without padding in MEMORY of DEVICE, filled with BYTE. */
static struct plane make_planes(struct device *device, struct workspace *memory, enum sample sample, int width,
                                int height, int count, int byte)
{
    struct error error;
    struct plane planes = {.sample = sample, .width = width, .height = height, .count = count};
    planes.row_bytes = (size_t)width * sample_bytes(sample);
    planes.plane_bytes = planes.row_bytes * (size_t)height;
    if (!device_reserve(device, memory, (size_t)count * planes.plane_bytes, &error))
        fail("%s", error.message);
    planes.data = memset(memory->bytes, byte, (size_t)count * planes.plane_bytes);
    return planes;
}

static void fill(void *memory, size_t size, uint64_t *state)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)memory)[i] = (uint8_t)(random_next(state) >> 56);
}

/* A filter that takes WIDTH x HEIGHT. */
static void random_spec(uint64_t *state, int width, int height, char spec[64])
{
    static const char *const words[] = {"turn:90", "turn:180", "turn:270", "mirror:x", "mirror:y", "crop:40%:bottom"};
    static const char *const colours[] = {"", ":black", ":#f08010"};
    const int kind = random_between(state, 0, 7), w = random_between(state, 1, width),
              h = random_between(state, 1, height);
    if (kind < 6)
        snprintf(spec, 64, "%s", words[kind]);
    else if (kind == 6)
        snprintf(spec, 64, "crop:%dx%d+%d+%d", w, h, random_between(state, 0, width - w),
                 random_between(state, 0, height - h));
    else
        snprintf(spec, 64, "pad:%dx%d%s", width + w - 1, height + h, colours[random_between(state, 0, 2)]);
}

static void check_move(uint64_t *state, struct device *device, struct filter *filter)
{
    const enum sample sample = (enum sample)random_between(state, 0, SAMPLE_COUNT - 1);
    const int width = random_between(state, 1, 90), height = random_between(state, 1, 80);
    const int count = random_between(state, 1, 4);
    int new_width = width, new_height = height;
    struct error error = {0};
    char spec[64];
    struct plan plan;
    struct workspace memory[3] = {0};
    random_spec(state, width, height, spec);
    if (!filter_find(spec, filter, NULL, &error) || !filter_resize(filter, &new_width, &new_height, &error))
        fail("%s", error.message);
    struct plane in = make_planes(device, &memory[0], sample, width, height, count, 0);
    struct plane expected = make_planes(device, &memory[1], sample, new_width, new_height, count, 0x5a);
    struct plane actual = make_planes(device, &memory[2], sample, new_width, new_height, count, 0xa5);
    const size_t size = (size_t)count * expected.plane_bytes;
    fill(in.data, (size_t)count * in.plane_bytes, state);
    plan_make(&plan, filter, BORDER_REPLICATE, sample);
    if (!plan_resize(&plan, width, height, &error) || !cpu_move_launch(&plan, NULL, &in, &expected, &error) ||
        !move_launch(&plan, device, &in, &actual, &error))
        fail("%s: %s", spec, error.message);
    if (memcmp(expected.data, actual.data, size) != 0)
        fail("%s of %d x %d %s, %d planes, has other samples", spec, width, height, sample_name(sample), count);
    plan_free(&plan);
    for (int i = 0; i < 3; i++)
        device_release(device, &memory[i]);
}

static void check_image(uint64_t *state, struct device *device)
{
    struct error error = {0};
    struct image from, expected, actual, turned;
    const int orientation = random_between(state, 1, 8), bits = 8 << random_between(state, 0, 1);
    if (!image_allocate(&from, random_between(state, 1, 70), random_between(state, 1, 70), random_between(state, 1, 4),
                        8 << random_between(state, 0, 1), &error) ||
        !image_convert(&from, from.bits, &turned, &error))
        fail("%s", error.message);
    fill(from.samples, image_bytes(&from), state);
    memcpy(turned.samples, from.samples, image_bytes(&from));
    if (!image_orient(&turned, orientation, &error) || !image_convert(&turned, bits, &expected, &error) ||
        !image_allocate(&actual, expected.width, expected.height, expected.channels, bits, &error) ||
        !device_orient(device, &from, orientation, &actual, &error))
        fail("%s", error.message);
    if (memcmp(expected.samples, actual.samples, image_bytes(&expected)) != 0)
        fail("orientation %d of %d x %d x %d has other samples", orientation, from.width, from.height, from.channels);
    image_free(&from);
    image_free(&turned);
    image_free(&expected);
    image_free(&actual);
}

int main(void)
{
    struct error error;
    struct device *device;
    uint64_t state = 50;
    struct filter *filter = allocate(sizeof *filter);
    if (!device_open(0, &device, &error))
        fail("%s", error.message);
    for (int i = 0; i < CASES; i++) {
        check_move(&state, device, filter);
        check_image(&state, device);
    }
    device_close(device);
    free(filter);
    printf("%d cases\n", CASES);
    return 0;
}
