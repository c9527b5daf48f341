/* SPDX-License-Identifier: MIT
 *
 * The kernels of `resample` and `passes` against the reference, in random sizes. */
#include "base/random.h"
#include "base/round.h"
#include "cpu/cpu.h"
#include "kernels/device/device.h"
#include "tests/lib/program.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef bool prepare_function(struct plan *plan, struct device *device, struct error *error);
typedef bool launch_function(const struct plan *plan, struct device *device, const struct plane *in,
                             const struct plane *out, struct error *error);
prepare_function resample_prepare, passes_prepare;
launch_function resample_launch, passes_launch;

enum { CASES = 240, PASSES_CASES = 120, ROW = 128, PLANES = 2 };

/* Planes as a device has them, filled with BYTE. */
static struct plane make_planes(enum sample sample, int width, int height, int byte)
{
    struct plane planes = {.sample = sample, .width = width, .height = height, .count = PLANES};
    planes.row_bytes = round_up((size_t)width * sample_bytes(sample), ROW);
    planes.plane_bytes = planes.row_bytes * (size_t)height;
    planes.data = allocate(PLANES * planes.plane_bytes);
    memset(planes.data, byte, PLANES * planes.plane_bytes);
    return planes;
}

static bool are_equal(const struct plane *a, const struct plane *b)
{
    for (int i = 0; i < PLANES * a->height; i++) {
        const void *x = plane_row(a, i / a->height, i % a->height), *y = plane_row(b, i / a->height, i % a->height);
        for (int k = 0; a->sample == SAMPLE_F32 && k < a->width; k++)
            if (!(fabsf(((const float *)x)[k] - ((const float *)y)[k]) < 1e-4f))
                return false;
        if (a->sample != SAMPLE_F32 && memcmp(x, y, (size_t)a->width * sample_bytes(a->sample)) != 0)
            return false;
    }
    return true;
}

struct resize_case {
    enum sample sample;
    int width, height, new_width, new_height;
    int kernel;
    const char *blur; /* a filter for `passes`, in place of a resize */
    bool is_extreme, is_bright;
};

static struct resize_case random_case(uint64_t *state)
{
    const enum sample sample = (enum sample)random_between(state, 0, SAMPLE_COUNT - 1);
    const int width = random_between(state, 1, 150), height = random_between(state, 1, 60);
    const int new_width = random_between(state, 1, 120), new_height = random_between(state, 1, 40);
    const bool is_float = sample == SAMPLE_F32; /* Pillow's rule is for levels of 8 bits */
    const int kernel = random_between(state, RESAMPLE_LANCZOS3, is_float ? RESAMPLE_NEAREST : RESAMPLE_KERNELS - 1);
    const bool is_extreme = random_between(state, 0, 1);
    return (struct resize_case){.sample = sample,
                                .width = width,
                                .height = height,
                                .new_width = new_width,
                                .new_height = new_height,
                                .kernel = kernel,
                                .is_extreme = is_extreme};
}

static struct resize_case random_blur(uint64_t *state)
{
    static const char *const names[] = {"gaussian:3.5", "gaussian:11", "box:70", "unsharp:4:1", "unsharp:9:0.7:3"};
    const int width = random_between(state, 1, 150), height = random_between(state, 1, 400);
    return (struct resize_case){.sample = SAMPLE_F32,
                                .width = width,
                                .height = height,
                                .new_width = width,
                                .new_height = height,
                                .blur = names[random_between(state, 0, 4)]};
}

static void check_case(const struct resize_case *c, uint64_t *state, struct device *device, struct filter *filter)
{
    static struct filter filter16;
    const enum sample sample = c->sample;
    const int width = c->width, height = c->height, new_width = c->new_width, new_height = c->new_height;
    struct error error = {0};
    char spec[64];
    struct plan plan;
    if (c->blur != NULL)
        snprintf(spec, sizeof spec, "%s", c->blur);
    else
        snprintf(spec, sizeof spec, "resize:%dx%d:exact:%s", new_width, new_height,
                 resample_name((enum resample_kernel)c->kernel));
    struct plane in = make_planes(sample, width, height, 0xff);
    struct plane expected = make_planes(sample, new_width, new_height, 0), actual = expected;
    actual.data = make_planes(sample, new_width, new_height, 0xff).data;
    for (int i = 0; i < PLANES * height; i++)
        for (int x = 0; x < width; x++) {
            void *row = plane_row(&in, i / height, i % height);
            const uint64_t r = c->is_bright ? (uint64_t)253 << 56 : random_next(state);
            if (sample == SAMPLE_U8)
                ((uint8_t *)row)[x] = (uint8_t)(c->is_extreme ? r >> 63 ? 255 : 0 : r >> 56);
            else if (sample == SAMPLE_U16)
                ((uint16_t *)row)[x] = (uint16_t)(c->is_extreme ? r >> 63 ? 65535 : 0 : r >> 48);
            else
                ((float *)row)[x] = (float)(r >> 40) / (1 << 24);
        }
    if (!filter_find(spec, filter, c->blur != NULL ? &filter16 : NULL, &error))
        fail("%s", error.message);
    const enum border border = (enum border)(c->blur != NULL ? random_between(state, 0, BORDER_COUNT - 1) : 0);
    launch_function *const reference = c->blur != NULL ? reference_launch : reference_resample_launch;
    plan_make(&plan, filter, border, sample);
    if (!plan_resize(&plan, width, height, &error) || !reference(&plan, NULL, &in, &expected, &error) ||
        !(c->blur != NULL ? passes_prepare : resample_prepare)(&plan, device, &error) ||
        !(c->blur != NULL ? passes_launch : resample_launch)(&plan, device, &in, &actual, &error))
        fail("%s: %s", spec, error.message);
    if (!are_equal(&expected, &actual))
        fail("%s of %d x %d %s has other samples", spec, width, height, sample_name(sample));
    plan_free(&plan);
    free(in.data);
    free(expected.data);
    free(actual.data);
}

int main(void)
{
    struct error error;
    struct device *device;
    uint64_t state = 35;
    struct filter *filter = allocate(sizeof *filter);
    if (!device_open(0, &device, &error))
        fail("%s", error.message);
    for (int i = 0; i < CASES; i++) {
        const struct resize_case c = random_case(&state);
        check_case(&c, &state, device, filter);
    }
    /* With this height, sums of products of digits would need more than 32 bits: 253 * 2^31 / 2^8 + 2^30. */
    const struct resize_case tall = {.sample = SAMPLE_U8,
                                     .width = 3,
                                     .height = 66576,
                                     .new_width = 3,
                                     .new_height = 1,
                                     .kernel = RESAMPLE_BOX,
                                     .is_bright = true};
    check_case(&tall, &state, device, filter);
    for (int i = 0; i < PASSES_CASES; i++) {
        const struct resize_case c = random_blur(&state);
        check_case(&c, &state, device, filter);
    }
    device_close(device);
    free(filter);
    printf("%d cases\n", CASES + PASSES_CASES);
    return 0;
}
