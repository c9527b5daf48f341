/* SPDX-License-Identifier: MIT
 *
 * The library's arguments: what is refused, and with which sentence; what overlaps; floats; threads; filters; files and
 * comparisons. tests/library/ compares random calls with the command line. */
#include "library/gpuconv.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { WIDTH = 37, HEIGHT = 29, SAMPLES = WIDTH * HEIGHT * 3 };

static struct gpuconv_context *context;
static struct gpuconv_error error;
static uint8_t in[2 * SAMPLES], out[2 * SAMPLES], expected[2 * SAMPLES];

static int open_all(void **state)
{
    (void)state;
    context = gpuconv_context_open(NULL, &error);
    for (int i = 0; i < 2 * SAMPLES; i++)
        in[i] = (uint8_t)(i * i >> 4);
    return context == NULL;
}

static int close_all(void **state)
{
    (void)state;
    gpuconv_context_close(context);
    return 0;
}

static struct gpuconv_filter *find(const char *name)
{
    struct gpuconv_filter *filter = gpuconv_filter_find(name, &error);
    if (filter == NULL)
        fail_msg("%s", error.message);
    return filter;
}

static struct gpuconv_view view_of(void *data)
{
    return gpuconv_interleaved(data, WIDTH, HEIGHT, 3, GPUCONV_UINT8);
}

static void apply(const struct gpuconv_filter *filter, struct gpuconv_view from, struct gpuconv_view to,
                  const struct gpuconv_options *options)
{
    if (gpuconv_apply(context, filter, &from, &to, options, &error) != GPUCONV_OK)
        fail_msg("%s", error.message);
}

/* ---- Refused ---- */

/* What is wrong with one of the two views, or with the options, and a part of the sentence about it. */
struct refused {
    struct gpuconv_view from, to;
    struct gpuconv_options options;
    const char *sentence;
};

static void test_views_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    const struct gpuconv_view a = view_of(in), b = view_of(out);
    struct refused cases[64];
    int count = 0;
#define REFUSED(which, field, value, words)                                                                            \
    cases[count] = (struct refused){.from = a, .to = b, .sentence = words};                                            \
    cases[count++].which.field = value
    REFUSED(from, data, NULL, "the input is at");
    REFUSED(to, data, NULL, "the output is at");
    REFUSED(from, width, 0, "the input has 0 x 29 pixels");
    REFUSED(from, height, -1, "the input has 37 x -1 pixels");
    REFUSED(from, width, INT_MAX, "the input has 2147483647 x 29 pixels");
    REFUSED(from, height, 1 << 24, "give 1 to 16777215 on a side");
    REFUSED(from, channels, 0, "the input has 0 channels");
    REFUSED(to, channels, 5, "the output has 5 channels");
    REFUSED(from, type, (enum gpuconv_type)7, "the input has no type");
    REFUSED(from, memory, (enum gpuconv_memory)2, "no kind of memory");
    REFUSED(from, memory, GPUCONV_DEVICE, "on the host");
    REFUSED(to, memory, GPUCONV_DEVICE, "on the host");
    REFUSED(from, count, -1, "the input has -1 images");
    REFUSED(from, row_stride, -WIDTH * 3, "the row stride of the input is -111 bytes; give a positive multiple of 1");
    REFUSED(from, column_stride, -3, "the column stride of the input is -3 bytes");
    REFUSED(to, channel_stride, 0, "the channel stride of the output is 0 bytes");
    REFUSED(from, row_stride, PTRDIFF_MAX, "beyond all memory");
    REFUSED(from, row_stride, PTRDIFF_MAX / (HEIGHT - 1), "beyond all memory");
    REFUSED(to, row_stride, WIDTH * 3 - 1, "share memory; give 111 or more");
    REFUSED(to, column_stride, 2, "share memory; give 3 or more");
    REFUSED(to, width, WIDTH - 1, "give an output like the input");
    REFUSED(to, height, HEIGHT - 1, "give an output like the input");
    REFUSED(to, channels, 2, "give an output like the input");
    REFUSED(from, reserved[3], 1, "a reserved field is 1");
    REFUSED(options, border, (enum gpuconv_border)5, "there is no border 5");
    REFUSED(options, alpha, (enum gpuconv_alpha) - 1, "there is no mode -1 of alpha");
    REFUSED(options, reserved[3], -2, "a reserved field is -2");
    REFUSED(options, stream, &context, "not filtered on a CUDA stream");
#undef REFUSED
    /* Samples of 16 bits, and floats. */
    cases[count] = (struct refused){a, b, {0}, "give an address that is a multiple of 2"};
    cases[count].from = gpuconv_interleaved(in + 1, 5, 5, 1, GPUCONV_UINT16);
    count++;
    cases[count] = (struct refused){a, b, {0}, "give a positive multiple of 4"};
    cases[count].from = gpuconv_interleaved(in, 5, 5, 1, GPUCONV_FLOAT);
    cases[count++].from.row_stride = 22;
    cases[count] = (struct refused){a, b, {0}, "give an output like the input"};
    cases[count++].to = gpuconv_interleaved(out, WIDTH, HEIGHT, 3, GPUCONV_UINT16);
    cases[count] = (struct refused){a, b, {.linear = 1}, "set linear to 0"};
    cases[count].from = gpuconv_interleaved(in, 5, 5, 1, GPUCONV_FLOAT);
    cases[count++].to = gpuconv_interleaved(out, 5, 5, 1, GPUCONV_FLOAT);
    cases[count] = (struct refused){a, b, {0}, "give 1 to 16777215 on a side"};
    cases[count++].from = gpuconv_crop(&a, 10, 0, WIDTH, 1);

    struct gpuconv_filter *filter = find("sharpen");
    memset(out, 0x5a, sizeof out);
    for (int i = 0; i < count; i++) {
        const struct refused *c = &cases[i];
        error = (struct gpuconv_error){0};
        assert_int_equal(gpuconv_apply(context, filter, &c->from, &c->to, &c->options, &error), GPUCONV_BAD_ARGUMENT);
        assert_int_equal(error.status, GPUCONV_BAD_ARGUMENT);
        if (strstr(error.message, c->sentence) == NULL)
            fail_msg("%s, not %s", error.message, c->sentence);
        assert_int_equal(gpuconv_apply(context, filter, &c->from, &c->to, &c->options, NULL), GPUCONV_BAD_ARGUMENT);
    }
    for (size_t i = 0; i < sizeof out; i++)
        assert_int_equal(out[i], 0x5a);
    assert_int_equal(gpuconv_apply(NULL, filter, &a, &b, NULL, &error), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_apply(context, NULL, &a, &b, NULL, &error), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_apply(context, filter, NULL, &b, NULL, &error), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_apply(context, filter, &a, NULL, NULL, &error), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_apply_list(context, filter, &a, &b, -1, NULL, &error), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_apply_list(context, filter, NULL, &b, 2, NULL, &error), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_apply_list(context, filter, NULL, NULL, 0, NULL, &error), GPUCONV_OK);
    gpuconv_filter_close(filter);
}

static void test_contexts_that_cannot_be_are_refused(void **state)
{
    (void)state;
    assert_null(gpuconv_context_open(&(struct gpuconv_context_options){.threads = -1}, &error));
    assert_int_equal(error.status, GPUCONV_BAD_ARGUMENT);
    assert_null(gpuconv_context_open(&(struct gpuconv_context_options){.threads = 100000}, &error));
    assert_null(gpuconv_context_open(&(struct gpuconv_context_options){.reserved = {1}}, NULL));
    gpuconv_context_close(NULL);
    assert_true(gpuconv_gpus() >= 0);
    assert_string_equal(gpuconv_version(), GPUCONV_VERSION);
    assert_string_equal(gpuconv_pixels(), "gpuconv pixels 1");
    struct gpuconv_conformance found;
    assert_int_equal(gpuconv_conformance(NULL, &found, NULL), GPUCONV_OK);
    assert_true(found.cases > 900 && found.mismatches == 0 && found.ran_on_cpu > 800 && found.ran_on_gpu == 0);
}

/* ---- Regions ---- */

/* A view of the WIDTH x HEIGHT pixels at DATA, with CHANNELS of TYPE. LAYOUT 0 is interleaved, 1 planar, 2 planar with
 * gaps after rows. */
static struct gpuconv_view lay_out(void *data, int channels, enum gpuconv_type type, int layout)
{
    struct gpuconv_view view = layout == 0 ? gpuconv_interleaved(data, WIDTH, HEIGHT, channels, type)
                                           : gpuconv_planar(data, WIDTH, HEIGHT, channels, type);
    if (layout == 2) {
        view.row_stride += 12;
        view.channel_stride = HEIGHT * view.row_stride;
    }
    return view;
}

static void *sample_at(const struct gpuconv_view *view, int x, int y, int c)
{
    return (char *)view->data + y * view->row_stride + x * view->column_stride + c * view->channel_stride;
}

static double value_at(const struct gpuconv_view *view, int x, int y, int c)
{
    const void *at = sample_at(view, x, y, c);
    return view->type == GPUCONV_UINT8    ? *(const uint8_t *)at
           : view->type == GPUCONV_UINT16 ? *(const uint16_t *)at
                                          : (double)*(const float *)at;
}

/* What LEVEL of 65535 parts of AFTER and the rest of BEFORE are. */
static double blend_values(enum gpuconv_type type, double before, double after, int64_t level)
{
    if (level == 0 || level == 65535)
        return level == 0 ? before : after;
    if (type != GPUCONV_FLOAT)
        return (double)((level * (int64_t)after + (65535 - level) * (int64_t)before + 32767) / 65535);
    const float part = (float)level / 65535, rest = (float)(65535 - level) / 65535;
    const float one = (float)before * rest, other = (float)after * part;
    return one + other;
}

/* A filter with a region, or with the mask of LEVELS unless it is NULL, changes a view as the filter does there. */
static void check_region(const char *name, const char *region, const uint16_t *levels, int number)
{
    enum { X = 11, Y = 4, W = 9, H = 50 }; /* the rectangle; it reaches beyond the picture */
    static uint64_t memory[3][SAMPLES];
    static const enum gpuconv_type types[] = {GPUCONV_UINT8, GPUCONV_UINT16, GPUCONV_FLOAT};
    const enum gpuconv_type type = types[number % 3];
    const int channels = strcmp(name, "sepia") == 0 ? 3 + number % 2 : 1 + number % 4;
    const struct gpuconv_options options = {.border = (enum gpuconv_border)(number % 5),
                                            .alpha = (enum gpuconv_alpha)(number % 3),
                                            .linear = type != GPUCONV_FLOAT && number % 7 == 0};
    const struct gpuconv_context_options threads = {.threads = 1 + number % 3};
    const struct gpuconv_view before = lay_out(memory[0], channels, type, number % 3),
                              after = lay_out(memory[1], channels, type, 0),
                              made = lay_out(memory[2], channels, type, (number + 1) % 3);
    struct gpuconv_context *own = gpuconv_context_open(&threads, &error);
    char spec[128];
    assert_non_null(own);
    memset(memory[2], 0x5a, sizeof memory[2]);
    for (int i = 0; i < WIDTH * HEIGHT * channels; i++) {
        void *at = sample_at(&before, i % WIDTH, i / WIDTH % HEIGHT, i / (WIDTH * HEIGHT));
        const unsigned level = (unsigned)i * 40503u >> 4 & 65535;
        if (type == GPUCONV_UINT8)
            *(uint8_t *)at = (uint8_t)level;
        else if (type == GPUCONV_UINT16)
            *(uint16_t *)at = (uint16_t)level;
        else
            *(float *)at = (float)level / 65535;
    }
    snprintf(spec, sizeof spec, "%s@%s", name, region);
    struct gpuconv_filter *whole = find(name), *limited = find(spec);
    if (gpuconv_apply(own, whole, &before, &after, &options, &error) != GPUCONV_OK ||
        gpuconv_apply(own, limited, &before, &made, &options, &error) != GPUCONV_OK)
        fail_msg("%s: %s", spec, error.message);
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < channels; c++) {
                const int64_t level = levels != NULL                               ? levels[y * WIDTH + x]
                                      : x >= X && x < X + W && y >= Y && y < Y + H ? 65535
                                                                                   : 0;
                const double one = value_at(&before, x, y, c), other = value_at(&after, x, y, c);
                if (value_at(&made, x, y, c) != blend_values(type, one, other, level))
                    fail_msg("%s, number %d: %d %d %d", spec, number, x, y, c);
            }
    gpuconv_filter_close(whole);
    gpuconv_filter_close(limited);
    gpuconv_context_close(own);
}

static void test_a_region_of_any_view_is_filtered(void **state)
{
    static const char *const names[] = {"gaussian:2",    "sharpen",       "box:9",    "unsharp:2:1:4",
                                        "shift",         "invert",        "sepia",    "pixelate:7",
                                        "auto-levels:2", "auto-contrast", "median:2", "tophat:1"};
    static uint16_t levels[WIDTH * HEIGHT];
    char path[] = "/tmp/gpuconv-mask-XXXXXX";
    const int file = mkstemp(path);
    FILE *mask = fdopen(file, "wb");
    (void)state;
    assert_non_null(mask);
    fprintf(mask, "P5 %d %d 65535\n", WIDTH, HEIGHT);
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        levels[i] = i % 3 == 0 ? 0 : i % 3 == 1 ? 65535 : (uint16_t)(i * 7919);
        fputc(levels[i] >> 8, mask);
        fputc(levels[i] & 255, mask);
    }
    assert_int_equal(fclose(mask), 0);
    for (int number = 0; number < 288; number++) {
        const char *name = names[number % (int)(sizeof names / sizeof *names)];
        check_region(name, "9x50+11+4", NULL, number / 3);
        check_region(name, path, levels, number / 3);
    }
    /* A mask of another size, one that is no image, and none. */
    struct gpuconv_view small = gpuconv_interleaved(in, 5, 5, 1, GPUCONV_UINT8), result = small;
    char spec[64];
    result.data = out;
    snprintf(spec, sizeof spec, "blur@%s", path);
    struct gpuconv_filter *filter = find(spec);
    assert_int_equal(gpuconv_apply(context, filter, &small, &result, NULL, &error), GPUCONV_BAD_DATA);
    assert_non_null(strstr(error.message, "has 37 x 29 pixels, and the picture has 5 x 5 there"));
    gpuconv_filter_close(filter);
    assert_int_equal(truncate(path, 20), 0);
    assert_null(gpuconv_filter_find(spec, &error));
    assert_int_equal(unlink(path), 0);
    assert_null(gpuconv_filter_find(spec, &error));
    assert_non_null(strstr(error.message, "is neither a region nor the file of a mask"));
    filter = find("blur@5x5+5+0");
    assert_int_equal(gpuconv_apply(context, filter, &small, &result, NULL, &error), GPUCONV_BAD_DATA);
    assert_non_null(strstr(error.message, "is empty, or outside the picture of 5 x 5 pixels"));
    gpuconv_filter_close(filter);
}

/* Arrays keep their channels, so grey ones get no colours. */
static void test_views_have_no_profile(void **state)
{
    struct gpuconv_filter *filter = find("blur,to-srgb");
    const struct gpuconv_view from = gpuconv_interleaved(in, 9, 8, 3, GPUCONV_UINT8),
                              to = gpuconv_interleaved(out, 9, 8, 3, GPUCONV_UINT8);
    (void)state;
    assert_int_equal(gpuconv_apply(context, filter, &from, &to, NULL, &error), GPUCONV_BAD_ARGUMENT);
    assert_string_equal(error.message, "to-srgb needs the profile of a file, and this image has none; leave it out");
    gpuconv_filter_close(filter);
}

static void test_grey_views_get_no_colours(void **state)
{
    static const char *const names[] = {"sepia", "blur,sepia", "sepia,grey", "tint:#f80", "sepia@5x5+0+0"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct gpuconv_filter *filter = find(names[i]);
        for (int channels = 1; channels <= 4; channels++) {
            const struct gpuconv_view from = gpuconv_interleaved(in, 9, 8, channels, GPUCONV_UINT8),
                                      to = gpuconv_interleaved(out, 9, 8, channels, GPUCONV_UINT8);
            const enum gpuconv_status status = gpuconv_apply(context, filter, &from, &to, NULL, &error);
            assert_int_equal(status, channels > 2 ? GPUCONV_OK : GPUCONV_BAD_ARGUMENT);
            if (channels <= 2)
                assert_string_equal(error.message,
                                    channels == 1
                                        ? "a filter makes colours from grey, and the image has 1 channel; give "
                                          "an image of 3 channels"
                                        : "a filter makes colours from grey, and the image has 2 channels; give "
                                          "an image of 4 channels");
        }
        gpuconv_filter_close(filter);
    }
    /* And colours that become grey stay three channels. */
    struct gpuconv_filter *filter = find("grey");
    apply(filter, view_of(in), view_of(out), NULL);
    for (int i = 0; i < SAMPLES; i += 3)
        assert_true(out[i] == out[i + 1] && out[i] == out[i + 2]);
    gpuconv_filter_close(filter);
}

/* ---- Views ---- */

/* A stride does not count where there is one row, column, channel or image. Rows may be shared in the input. */
static void test_only_the_strides_that_count_are_checked(void **state)
{
    (void)state;
    struct gpuconv_filter *filter = find("gaussian3");
    struct gpuconv_view a = gpuconv_interleaved(in, WIDTH, 1, 1, GPUCONV_UINT8), b = a;
    b.data = expected;
    apply(filter, a, b, NULL);
    a.row_stride = -5;
    a.channel_stride = 0;
    a.image_stride = PTRDIFF_MIN;
    b.data = out;
    apply(filter, a, b, NULL);
    assert_memory_equal(out, expected, WIDTH);
    /* One pixel of three channels far apart. */
    a = (struct gpuconv_view){.data = in, .width = 1, .height = 1, .channels = 3, .channel_stride = 100};
    b = a;
    b.data = out;
    apply(filter, a, b, NULL);
    for (int c = 0; c < 3; c++)
        assert_int_equal(out[100 * c], in[100 * c]);
    /* Windows that slide along a row: each row begins a sample later. */
    a = gpuconv_interleaved(in, 8, 20, 1, GPUCONV_UINT8);
    a.row_stride = 1;
    for (int y = 0; y < 20; y++)
        memcpy(expected + 8 * y, in + y, 8);
    apply(filter, gpuconv_interleaved(expected, 8, 20, 1, GPUCONV_UINT8),
          gpuconv_interleaved(expected + 160, 8, 20, 1, GPUCONV_UINT8), NULL);
    apply(filter, a, gpuconv_interleaved(out, 8, 20, 1, GPUCONV_UINT8), NULL);
    assert_memory_equal(out, expected + 160, 160);
    gpuconv_filter_close(filter);
}

static void test_views_may_overlap(void **state)
{
    (void)state;
    struct gpuconv_filter *filter = find("gaussian:2");
    static uint8_t memory[2 * SAMPLES];
    apply(filter, view_of(in), view_of(expected), NULL);
    const int shifts[] = {0, 1, 3, WIDTH * 3, 5 * WIDTH * 3 + 1, SAMPLES - 1};
    for (size_t i = 0; i < sizeof shifts / sizeof *shifts; i++)
        for (int back = 0; back < 2; back++) {
            uint8_t *from = memory + (back ? shifts[i] : 0), *to = memory + (back ? 0 : shifts[i]);
            memcpy(from, in, SAMPLES);
            apply(filter, view_of(from), view_of(to), NULL);
            assert_memory_equal(to, expected, SAMPLES);
        }
    gpuconv_filter_close(filter);
}

/* Another thread may end a call, which is here told to end before it begins. */
static void test_a_call_can_be_stopped(void **state)
{
    (void)state;
    int stop = 1;
    const struct gpuconv_options options = {.stop = &stop};
    const struct gpuconv_view from = view_of(in), to = view_of(out);
    struct gpuconv_filter *filter = find("blur");
    assert_int_equal(gpuconv_apply(context, filter, &from, &to, &options, &error), GPUCONV_BAD_DATA);
    assert_non_null(strstr(error.message, "stopped before its end"));
    stop = 0;
    assert_int_equal(gpuconv_apply(context, filter, &from, &to, &options, &error), GPUCONV_OK);
    gpuconv_filter_close(filter);
}

/* What a thread stops after a while, and the seconds of processor time that the process had used then. */
struct stopping {
    int stop;
    double seconds;
};

static double processor_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void *stop_soon(void *context)
{
    struct stopping *stopping = context;
    usleep(200000);
    stopping->seconds = processor_seconds();
    __atomic_store_n(&stopping->stop, 1, __ATOMIC_RELAXED);
    return NULL;
}

/* Wide filters end long before the 3 s of processor time that each of them takes for the picture, which is one band. */
static void test_a_wide_filter_ends_soon_when_it_is_stopped(void **state)
{
    (void)state;
    enum { SIDE = 3000 };
    static const char *const chains[] = {"gaussian:170,gaussian:160", "disk:60,disk:59"};
    const struct gpuconv_context_options one = {.threads = 1};
    struct gpuconv_context *slow = gpuconv_context_open(&one, &error);
    uint16_t *from = calloc((size_t)SIDE * SIDE * 3, sizeof *from), *to = calloc((size_t)SIDE * SIDE * 3, sizeof *to);
    assert_true(slow != NULL && from != NULL && to != NULL);
    const struct gpuconv_view a = gpuconv_interleaved(from, SIDE, SIDE, 3, GPUCONV_UINT16),
                              b = gpuconv_interleaved(to, SIDE, SIDE, 3, GPUCONV_UINT16);
    for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) {
        struct gpuconv_filter *filter = find(chains[i]);
        struct stopping stopping = {.stop = 0};
        const struct gpuconv_options options = {.stop = &stopping.stop};
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, stop_soon, &stopping), 0);
        assert_int_equal(gpuconv_apply(slow, filter, &a, &b, &options, &error), GPUCONV_BAD_DATA);
        const double end = processor_seconds();
        pthread_join(thread, NULL);
        assert_non_null(strstr(error.message, "stopped before its end"));
        assert_true(end - stopping.seconds < 1);
        gpuconv_filter_close(filter);
    }
    gpuconv_context_close(slow);
    free(from);
    free(to);
}

/* A part of an image is filtered as its copy is: what is outside the part does not take part. */
static void test_a_part_is_an_image_of_its_own(void **state)
{
    (void)state;
    enum { X = 5, Y = 3, PART_WIDTH = 20, PART_HEIGHT = 11 };
    static uint8_t copy[PART_HEIGHT][PART_WIDTH][3];
    struct gpuconv_filter *filter = find("gaussian:2");
    const struct gpuconv_view planes = gpuconv_planar(in, WIDTH, HEIGHT, 3, GPUCONV_UINT8);
    for (int y = 0; y < PART_HEIGHT; y++)
        for (int x = 0; x < PART_WIDTH; x++)
            for (int c = 0; c < 3; c++)
                copy[y][x][c] = in[(c * HEIGHT + Y + y) * WIDTH + X + x];
    apply(filter, gpuconv_crop(&planes, X, Y, PART_WIDTH, PART_HEIGHT),
          gpuconv_interleaved(out, PART_WIDTH, PART_HEIGHT, 3, GPUCONV_UINT8), NULL);
    apply(filter, gpuconv_interleaved(copy, PART_WIDTH, PART_HEIGHT, 3, GPUCONV_UINT8),
          gpuconv_interleaved(expected, PART_WIDTH, PART_HEIGHT, 3, GPUCONV_UINT8), NULL);
    assert_memory_equal(out, expected, sizeof copy);
    gpuconv_filter_close(filter);

    static const int outside[][4] = {{-1, 0, 5, 5},        {0, -1, 5, 5},        {0, 0, 0, 5},
                                     {0, 0, 5, -1},        {WIDTH - 4, 0, 5, 5}, {0, HEIGHT - 4, 5, 5},
                                     {0, 0, WIDTH + 1, 5}, {INT_MAX, 0, 5, 5},   {0, 0, 5, INT_MAX}};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        const int *part = outside[i];
        assert_int_equal(gpuconv_crop(&planes, part[0], part[1], part[2], part[3]).width, 0);
    }
    assert_int_equal(gpuconv_crop(&planes, WIDTH - 5, HEIGHT - 5, 5, 5).width, 5);
    struct gpuconv_view far = planes;
    far.row_stride = PTRDIFF_MAX / 2;
    assert_int_equal(gpuconv_crop(&far, 0, 2, 5, 5).width, 5);
    assert_int_equal(gpuconv_crop(&far, 0, 3, 5, 5).width, 0);
    assert_int_equal(gpuconv_crop(&far, 2, 2, 5, 5).width, 0); /* the sum is too large */
}

/* A stride that no number holds is 0, and never wraps to one that looks right. */
static void test_strides_do_not_overflow(void **state)
{
    (void)state;
    const enum gpuconv_type type = GPUCONV_FLOAT;
    assert_int_equal(gpuconv_interleaved(in, INT_MAX, 1, INT_MAX, type).row_stride, 0);
    assert_int_equal(gpuconv_interleaved(in, INT_MIN, 1, INT_MIN, type).row_stride, 0);
    assert_int_equal(gpuconv_planar(in, INT_MAX, INT_MAX, 1, type).channel_stride, 0);
    assert_int_equal(gpuconv_planar(in, INT_MIN, INT_MIN, 1, type).channel_stride, 0);
    const struct gpuconv_view wide = gpuconv_interleaved(in, (1 << 24) - 1, 2, 4, type);
    assert_int_equal(wide.row_stride, 16 * ((1 << 24) - 1));
}

/* Several images of one shape, also if the result of each overlaps the next input. */
static void test_a_view_has_several_images(void **state)
{
    (void)state;
    enum { COUNT = 5, SIDE = 9, EACH = SIDE * SIDE * 3 };
    struct gpuconv_filter *filter = find("emboss");
    struct gpuconv_view a = gpuconv_planar(in, SIDE, SIDE, 3, GPUCONV_UINT8), b = a, one = a;
    a.count = b.count = COUNT;
    a.image_stride = EACH + 7;
    b.image_stride = EACH;
    b.data = out;
    apply(filter, a, b, NULL);
    for (int i = 0; i < COUNT; i++) {
        one.data = in + i * (EACH + 7);
        struct gpuconv_view result = one;
        result.data = expected + i * EACH;
        apply(filter, one, result, NULL);
    }
    assert_memory_equal(out, expected, COUNT * EACH);
    memcpy(out, in, COUNT * (EACH + 7));
    a.data = out;
    b.data = out + EACH / 2;
    apply(filter, a, b, NULL);
    assert_memory_equal(b.data, expected, COUNT * EACH);
    gpuconv_filter_close(filter);
}

/* ---- Floats ---- */

/* Floats are within the rounding of the exact result, where that is not clamped. */
static void test_floats_agree_with_integers(void **state)
{
    (void)state;
    static const char *const names[] = {"gaussian:2", "sharpen", "emboss",      "sobel",    "box9",
                                        "blur,edge",  "shift",   "unsharp:2:1", "disk:2.5", "unsharp:1.5:0.8:3"};
    static float from[SAMPLES], to[SAMPLES];
    for (int i = 0; i < SAMPLES; i++)
        from[i] = (float)in[i] / 255;
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct gpuconv_filter *filter = find(names[n]);
        apply(filter, view_of(in), view_of(out), NULL);
        apply(filter, gpuconv_interleaved(from, WIDTH, HEIGHT, 3, GPUCONV_FLOAT),
              gpuconv_interleaved(to, WIDTH, HEIGHT, 3, GPUCONV_FLOAT), NULL);
        const float most = strchr(names[n], ',') != NULL ? 8.5f : 0.53f; /* a chain rounds and clamps in between */
        for (int i = 0; i < SAMPLES; i++) {
            const float level = fminf(fmaxf(255 * to[i], 0), 255);
            if (!(fabsf(level - (float)out[i]) <= most))
                fail_msg("%s: sample %d is %g and not %d", names[n], i, (double)level, out[i]);
        }
        gpuconv_filter_close(filter);
    }
}

/* Neither the threads nor the layout change the order of a sum. */
/* Samples of 16 bits and floats, in planes and interleaved, with and without the same sizes. */
static void test_sizes_change(void **state)
{
    (void)state;
    enum { SIDE = 40 };
    static const char *const specs[] = {"resize:23x31:exact", "resize:61x47:exact:cubic",
                                        "resize:50%:box,resize:x33:triangle"};
    uint16_t words[3 * SIDE * SIDE], results[3 * 99 * 99];
    float floats[3 * SIDE * SIDE], float_results[3 * 99 * 99];
    for (int i = 0; i < 3 * SIDE * SIDE; i++) {
        words[i] = (uint16_t)(20000 + i * 7919 % 25000);
        floats[i] = words[i] / 65535.0f;
    }
    for (size_t s = 0; s < sizeof specs / sizeof *specs; s++) {
        struct gpuconv_filter *filter = find(specs[s]);
        int width = SIDE, height = SIDE;
        assert_int_equal(gpuconv_filter_size(filter, &width, &height, &error), GPUCONV_OK);
        apply(filter, gpuconv_interleaved(words, SIDE, SIDE, 3, GPUCONV_UINT16),
              gpuconv_interleaved(results, width, height, 3, GPUCONV_UINT16), NULL);
        apply(filter, gpuconv_interleaved(floats, SIDE, SIDE, 3, GPUCONV_FLOAT),
              gpuconv_interleaved(float_results, width, height, 3, GPUCONV_FLOAT), NULL);
        for (int i = 0; i < 3 * width * height; i++)
            assert_true(fabs(results[i] - 65535.0 * (double)float_results[i]) < 1.1);
        struct gpuconv_view from = gpuconv_interleaved(words, SIDE, SIDE, 3, GPUCONV_UINT16), to = from;
        to.data = results;
        assert_int_equal(gpuconv_apply(context, filter, &from, &to, NULL, &error), GPUCONV_BAD_ARGUMENT);
        width = 0;
        assert_int_equal(gpuconv_filter_size(filter, &width, &height, &error), GPUCONV_BAD_ARGUMENT);
        gpuconv_filter_close(filter);
    }
}

static void test_floats_do_not_depend_on_threads(void **state)
{
    (void)state;
    enum { SIDE = 700, COUNT = SIDE * SIDE * 3 };
    static const char *const names[] = {"box9", "gaussian:2", "sobel", "unsharp:2:1", "sharpen"};
    struct gpuconv_context *one = gpuconv_context_open(&(struct gpuconv_context_options){.threads = 1}, &error);
    struct gpuconv_context *four = gpuconv_context_open(&(struct gpuconv_context_options){.threads = 4}, &error);
    float *memory[4];
    for (int i = 0; i < 4; i++)
        memory[i] = malloc(COUNT * sizeof(float));
    assert_true(one != NULL && four != NULL && memory[0] && memory[1] && memory[2] && memory[3]);
    struct gpuconv_view view[4];
    for (int i = 0; i < 4; i++)
        view[i] = i % 2 ? gpuconv_planar(memory[i], SIDE, SIDE, 3, GPUCONV_FLOAT)
                        : gpuconv_interleaved(memory[i], SIDE, SIDE, 3, GPUCONV_FLOAT);
    for (int i = 0; i < COUNT; i++) {
        memory[0][i] = (float)(i % 65521 * 7919 % 65521) / 65521;
        memory[1][i % 3 * SIDE * SIDE + i / 3] = memory[0][i];
    }
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
        struct gpuconv_filter *filter = find(names[n]);
        assert_int_equal(gpuconv_apply(one, filter, &view[0], &view[2], NULL, &error), GPUCONV_OK);
        assert_int_equal(gpuconv_apply(four, filter, &view[1], &view[3], NULL, &error), GPUCONV_OK);
        for (int i = 0; i < COUNT; i++)
            if (memcmp(&memory[2][i], &memory[3][i % 3 * SIDE * SIDE + i / 3], sizeof(float)) != 0)
                fail_msg("%s: sample %d", names[n], i);
        gpuconv_filter_close(filter);
    }
    for (int i = 0; i < 4; i++)
        free(memory[i]);
    gpuconv_context_close(one);
    gpuconv_context_close(four);
}

/* The colours of floats are weighed by alpha, and not clamped. */
static void test_floats_have_alpha(void **state)
{
    (void)state;
    const float pixels[2 * 4] = {4, 0, 0, 0.5f, 0, 8, 0, 0.25f};
    float result[8];
    struct gpuconv_filter *filter = find("box:1");
    struct gpuconv_options options = {.border = GPUCONV_REPLICATE};
    const struct gpuconv_view a = gpuconv_interleaved((void *)pixels, 2, 1, 4, GPUCONV_FLOAT);
    const struct gpuconv_view b = gpuconv_interleaved(result, 2, 1, 4, GPUCONV_FLOAT);
    apply(filter, a, b, &options);
    const float first[4] = {2 * 2 / 1.25f, 2 / 1.25f, 0, 1.25f / 3}; /* from two pixels 1 and one pixel 2 */
    for (int c = 0; c < 4; c++)
        assert_true(fabsf(result[c] - first[c]) < 1e-5f);
    options.alpha = GPUCONV_KEEP;
    apply(filter, a, b, &options);
    assert_true(fabsf(result[0] - 8 / 3.0f) < 1e-5f && fabsf(result[1] - 8 / 3.0f) < 1e-5f && result[3] == 0.5f);
    options.alpha = GPUCONV_FILTER_ALPHA;
    apply(filter, a, b, &options);
    assert_true(fabsf(result[3] - 1.25f / 3) < 1e-6f);
    gpuconv_filter_close(filter);
}

/* ---- Threads ---- */

struct user {
    struct gpuconv_context *context; /* NULL if it opens its own */
    struct gpuconv_filter *filters[4];
    uint8_t (*results)[SAMPLES];
    bool failed;
};

static void *use(void *argument)
{
    struct user *user = argument;
    struct gpuconv_error own;
    struct gpuconv_context *own_context = user->context != NULL ? user->context : gpuconv_context_open(NULL, &own);
    uint8_t *memory = malloc(SAMPLES);
    const struct gpuconv_view a = view_of(in), b = view_of(memory);
    user->failed = own_context == NULL || memory == NULL;
    for (int i = 0; !user->failed && i < 200; i++)
        user->failed = gpuconv_apply(own_context, user->filters[i % 4], &a, &b, NULL, &own) != GPUCONV_OK ||
                       memcmp(memory, user->results[i % 4], SAMPLES) != 0;
    if (user->context == NULL)
        gpuconv_context_close(own_context);
    free(memory);
    return NULL;
}

static void test_threads_share_contexts_and_filters(void **state)
{
    (void)state;
    enum { USERS = 6 };
    static const char *const names[] = {"blur", "sobel", "unsharp", "gaussian:3"};
    static uint8_t results[4][SAMPLES];
    struct user users[USERS];
    pthread_t threads[USERS];
    struct gpuconv_filter *filters[4];
    for (int i = 0; i < 4; i++) {
        filters[i] = find(names[i]);
        apply(filters[i], view_of(in), view_of(results[i]), NULL);
    }
    for (int i = 0; i < USERS; i++) {
        users[i] = (struct user){.context = i % 2 ? context : NULL, .results = results};
        memcpy(users[i].filters, filters, sizeof filters);
        assert_int_equal(pthread_create(&threads[i], NULL, use, &users[i]), 0);
    }
    for (int i = 0; i < USERS; i++) {
        pthread_join(threads[i], NULL);
        assert_false(users[i].failed);
    }
    for (int i = 0; i < 4; i++)
        gpuconv_filter_close(filters[i]);
}

enum { WIDE = 1000 }; /* so wide that the threads of a pool start */

/* Filter once by a context, on all its threads. */
static void *apply_once(void *argument)
{
    static uint8_t memory[WIDE * WIDE];
    const struct gpuconv_view view = gpuconv_interleaved(memory, WIDE, WIDE, 1, GPUCONV_UINT8);
    struct gpuconv_filter *filter = gpuconv_filter_find("blur", NULL);
    const bool failed = gpuconv_apply(argument, filter, &view, &view, NULL, NULL) != GPUCONV_OK;
    gpuconv_filter_close(filter);
    return failed ? argument : NULL;
}

/* What a child does with CONTEXTS of its parent. Returns whether all went well. */
static bool use_in_child(struct gpuconv_context *contexts[2], const struct gpuconv_filter *filter)
{
    const struct gpuconv_context_options options = {.threads = 1};
    const struct gpuconv_view from = view_of(in), to = view_of(out);
    struct gpuconv_difference difference;
    void *bytes;
    size_t size;
    for (int i = 0; i < 2; i++) {
        if (gpuconv_apply(contexts[i], filter, &from, &to, NULL, &error) != GPUCONV_BAD_ARGUMENT ||
            gpuconv_encode(contexts[i], &from, NULL, &bytes, &size, &error) != GPUCONV_BAD_ARGUMENT ||
            gpuconv_decode(contexts[i], in, SAMPLES, NULL, &error) != NULL ||
            gpuconv_compare(contexts[i], &from, &from, 0, &difference, &error) != GPUCONV_BAD_ARGUMENT ||
            strstr(error.message, "belongs to the parent") == NULL)
            return false;
        gpuconv_context_close(contexts[i]);
    }
    struct gpuconv_context *own = gpuconv_context_open(&options, &error);
    const bool done = gpuconv_apply(own, filter, &from, &to, NULL, &error) == GPUCONV_OK;
    gpuconv_context_close(own);
    return done && memcmp(out, expected, SAMPLES) == 0;
}

/* One context has threads that wait. Another thread holds the mutex of the other context when the process forks. */
static void test_a_child_leaves_contexts_of_its_parent_alone(void **state)
{
    (void)state;
    struct gpuconv_context *contexts[2];
    struct gpuconv_filter *filter = find("sobel");
    pthread_t thread;
    void *failed;
    int status;
    apply(filter, view_of(in), view_of(expected), NULL);
    for (int i = 0; i < 2; i++) {
        contexts[i] = gpuconv_context_open(&(struct gpuconv_context_options){.threads = 3}, &error);
        assert_non_null(contexts[i]);
    }
    assert_null(apply_once(contexts[0]));
    assert_int_equal(pthread_create(&thread, NULL, apply_once, contexts[1]), 0);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        _exit(use_in_child(contexts, filter) ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pthread_join(thread, &failed);
    assert_null(failed);
    gpuconv_context_close(contexts[0]);
    gpuconv_context_close(contexts[1]);
    gpuconv_filter_close(filter);
}

/* Samples that are constant may be in memory that cannot be written. */
static void test_inputs_are_not_written(void **state)
{
    (void)state;
    static const uint16_t pixels[11 * 11 * 4] = {1, 2, 3, 65535, 4, 5, 6, 7};
    const struct gpuconv_view view = gpuconv_interleaved(pixels, 11, 11, 4, GPUCONV_UINT16),
                              planes = gpuconv_planar(pixels, 11, 11, 4, GPUCONV_UINT16);
    struct gpuconv_filter *filter = find("blur");
    struct gpuconv_difference difference;
    void *bytes;
    size_t size;
    for (int i = 0; i < 2; i++)
        apply(filter, i == 0 ? view : planes, gpuconv_interleaved(out, 11, 11, 4, GPUCONV_UINT16),
              &(struct gpuconv_options){.linear = i});
    assert_int_equal(gpuconv_encode(context, &view, NULL, &bytes, &size, &error), GPUCONV_OK);
    gpuconv_free(bytes);
    assert_int_equal(gpuconv_compare(context, &view, &planes, 0, &difference, &error), GPUCONV_OK);
    assert_true(difference.pixels > 0);
    struct gpuconv_image *picture = gpuconv_compare_picture(&view, &planes, &error);
    assert_non_null(picture);
    gpuconv_image_free(picture);
    gpuconv_filter_close(filter);
}

/* A context keeps plans of 16 filters. A new filter may have the address of one that is closed. */
static void test_plans_are_those_of_the_filter(void **state)
{
    (void)state;
    for (int i = 0; i < 60; i++) {
        const int32_t tap = i + 1;
        struct gpuconv_filter *filter =
            gpuconv_filter_make(&(struct gpuconv_taps){.taps = &tap, .width = 1, .height = 1, .scale = 7}, &error);
        assert_non_null(filter);
        apply(filter, gpuconv_interleaved(in, 100, 1, 1, GPUCONV_UINT8),
              gpuconv_interleaved(out, 100, 1, 1, GPUCONV_UINT8), NULL);
        for (int x = 0; x < 100; x++) {
            const int level = (2 * in[x] * tap + 7) / 14;
            assert_int_equal(out[x], level < 255 ? level : 255);
        }
        gpuconv_filter_close(filter);
    }
}

/* ---- Filters ---- */

static void test_filters_are_found_made_and_described(void **state)
{
    (void)state;
    struct gpuconv_filter_info info;
    struct gpuconv_filter *filter = find("gaussian:2,shift-left");
    gpuconv_filter_describe(filter, &info);
    assert_int_equal(info.count, 2);
    assert_true(info.left >= 6 && info.right >= 6 && info.left + info.right == info.above + info.below + 2);
    assert_int_equal(info.above, info.below);
    struct gpuconv_filter *turned = gpuconv_filter_flip(filter, &error);
    char *deep = gpuconv_filter_text(turned, 0, 1, &error); /* its taps for 16 bits are turned, too */
    assert_non_null(strstr(deep, "\"deep\":{"));
    gpuconv_free(deep);
    gpuconv_filter_close(turned);
    gpuconv_filter_close(filter);
    filter = find("open:3:disk,shift,rank:2:40");
    gpuconv_filter_describe(filter, &info);
    assert_true(!info.exact && info.left == 9 && info.right == 9 && info.above == 8 && info.below == 8);
    gpuconv_filter_close(filter);

    const int32_t taps[] = {1, 2, 3, 4, 5, 6};
    struct gpuconv_taps made = {.taps = taps, .width = 3, .height = 2, .has_anchor = 1, .scale = 10, .offset = -0.1};
    filter = gpuconv_filter_make(&made, &error);
    assert_non_null(filter);
    struct gpuconv_filter *flipped = gpuconv_filter_flip(filter, &error);
    assert_non_null(flipped);
    gpuconv_filter_describe(flipped, &info);
    assert_true(info.exact && info.left == 2 && info.right == 0 && info.above == 1 && info.below == 0);
    /* These numbers, read from text, make the same filter, in a locale with commas, too. */
    const char *text = "scale 10\noffset -0.1\nanchor 0 0\n1 2 3\n4 5 6\n";
    struct gpuconv_filter *parsed = gpuconv_filter_parse(text, strlen(text), "a", &error);
    assert_non_null(parsed);
    setlocale(LC_ALL, "de_DE.UTF-8");
    char *texts[2] = {gpuconv_filter_text(filter, 0, 1, &error), gpuconv_filter_text(parsed, 0, 1, &error)};
    setlocale(LC_ALL, "C");
    assert_non_null(strstr(texts[0], "\"offset\":-0.1"));
    assert_string_equal(strstr(texts[0], "\"width\""), strstr(texts[1], "\"width\""));
    gpuconv_free(texts[0]);
    gpuconv_free(texts[1]);
    assert_null(gpuconv_filter_text(filter, 1, 0, &error));
    gpuconv_filter_close(filter);
    gpuconv_filter_close(flipped);
    gpuconv_filter_close(parsed);

    bool has_blur = false;
    for (int i = 0; gpuconv_filter_name(i) != NULL; i++)
        has_blur |= strcmp(gpuconv_filter_name(i), "blur") == 0;
    assert_true(has_blur);
    assert_null(gpuconv_filter_name(-1));
}

static void test_filters_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    const int32_t taps[4] = {INT32_MAX, INT32_MIN, 0, 1};
    const struct gpuconv_taps cases[] = {
        {.taps = NULL, .width = 1, .height = 1},
        {.taps = taps, .width = 0, .height = 1},
        {.taps = taps, .width = 128, .height = 1},
        {.taps = taps, .width = INT_MAX, .height = INT_MAX},
        {.taps = taps + 3, .width = 1, .height = 1, .has_anchor = 1, .anchor_x = 1},
        {.taps = taps + 3, .width = 1, .height = 1, .scale = -1},
        {.taps = taps + 3, .width = 1, .height = 1, .offset = NAN},
        {.taps = taps + 3, .width = 1, .height = 1, .offset = 1e300},
        {.taps = taps + 3, .width = 1, .height = 1, .reserved = {0, 0, 0, 9}},
        {.taps = taps, .width = 2, .height = 2}, /* a sum of 2^32 */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        error.status = GPUCONV_OK;
        assert_null(gpuconv_filter_make(&cases[i], &error));
        assert_int_equal(error.status, GPUCONV_BAD_ARGUMENT);
        assert_true(strlen(error.message) > 20);
    }
    static const char *const names[] = {"", "blurr", "gaussian:-1", "blur,,blur", "/dev/null/x"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_null(gpuconv_filter_find(names[i], &error));
        assert_int_equal(error.status, GPUCONV_BAD_ARGUMENT);
    }
    assert_null(gpuconv_filter_find(NULL, &error));
    assert_null(gpuconv_filter_parse(NULL, 0, NULL, &error));
    assert_null(gpuconv_filter_parse("1 x\n", 4, "mine", &error));
    assert_string_equal(error.message, "mine:1:3: expected a tap such as 3, -0.5 or 1/16, found \"x\"");
    gpuconv_filter_close(NULL);
}

/* A name may have any bytes, and a message is one line that commands no terminal. */
static void test_messages_are_one_line(void **state)
{
    (void)state;
    static const char name[] = "a\nb\x1b[31m\xff\xe2\x80\xae";
    static const char escaped[] = "a\\nb\\x1b[31m\\xff\\xe2\\x80\\xae";
    static char long_name[5000];
    assert_null(gpuconv_filter_parse("1 x\n", 4, name, &error));
    assert_ptr_equal(strstr(error.message, escaped), error.message);
    assert_null(gpuconv_filter_find(name, &error));
    assert_non_null(strstr(error.message, escaped));
    assert_null(gpuconv_decode(context, "x", 1, &(struct gpuconv_decode_options){.name = name}, &error));
    assert_ptr_equal(strstr(error.message, escaped), error.message);
    /* No escape is cut, wherever the message ends. */
    memset(long_name, '\x1b', sizeof long_name - 1);
    for (int letters = 0; letters < 4; letters++) {
        memset(long_name, 'a', (size_t)letters);
        assert_null(gpuconv_filter_parse("1 x\n", 4, long_name, &error));
        assert_true(strlen(error.message) > sizeof error.message - 5);
        assert_string_equal(error.message + strlen(error.message) - 4, "\\x1b");
    }
}

/* ---- Files and comparisons ---- */

static void test_images_are_encoded_decoded_and_compared(void **state)
{
    (void)state;
    static const char *const formats[] = {"png", "ppm", "pam", NULL};
    void *bytes;
    size_t size;
    struct gpuconv_difference difference;
    struct gpuconv_view view = view_of(in);
    for (int i = 0; i < 4; i++) {
        struct gpuconv_file_info info;
        const struct gpuconv_encode_options options = {.format = formats[i]};
        view.width = WIDTH - 2 * i; /* the rows have gaps */
        assert_int_equal(gpuconv_encode(context, &view, &options, &bytes, &size, &error), GPUCONV_OK);
        assert_int_equal(gpuconv_inspect(bytes, size, &info, &error), GPUCONV_OK);
        assert_true(info.width == view.width && info.channels == 3 && info.type == GPUCONV_UINT8);
        struct gpuconv_image *image = gpuconv_decode(context, bytes, size, NULL, &error);
        assert_non_null(image);
        const struct gpuconv_view decoded = gpuconv_image_view(image);
        assert_int_equal(gpuconv_compare(context, &view, &decoded, 0, &difference, &error), GPUCONV_OK);
        assert_true(difference.same_shape && difference.largest == 0 && isinf(difference.psnr) &&
                    difference.ssim == 1 && difference.first_x == -1);
        /* A truncated file is refused. */
        assert_null(gpuconv_decode(context, bytes, size / 2, &(struct gpuconv_decode_options){.name = "half"}, &error));
        assert_int_equal(error.status, GPUCONV_BAD_DATA);
        assert_int_equal(strncmp(error.message, "half: ", 6), 0);
        /* A larger one than the caller wants, too. */
        assert_null(gpuconv_decode(context, bytes, size, &(struct gpuconv_decode_options){.max_pixels = 9}, &error));
        gpuconv_free(bytes);
        gpuconv_image_free(image);
    }
}

static void test_differences_are_found(void **state)
{
    (void)state;
    struct gpuconv_difference difference;
    struct gpuconv_view a = view_of(in), b = view_of(out);
    memcpy(out, in, SAMPLES);
    out[(5 * WIDTH + 7) * 3 + 1] ^= 4;
    out[(9 * WIDTH + 2) * 3] ^= 1;
    assert_int_equal(gpuconv_compare(context, &a, &b, 1, &difference, &error), GPUCONV_OK);
    assert_true(difference.largest == 4 && difference.largest_of[1] == 4 && difference.largest_of[0] == 1);
    assert_true(difference.pixels == 1 && difference.tolerated == 1);
    assert_true(difference.first_x == 7 && difference.first_y == 5);
    assert_true(difference.box_x == 7 && difference.box_y == 5 && difference.box_width == 1);
    assert_true(difference.psnr > 40 && difference.ssim < 1 && difference.ssim > 0.9);
    struct gpuconv_image *picture = gpuconv_compare_picture(&a, &b, &error);
    assert_non_null(picture);
    const struct gpuconv_view shown = gpuconv_image_view(picture);
    assert_true(shown.width == WIDTH && shown.height == HEIGHT);
    gpuconv_image_free(picture);
    b.height--;
    assert_int_equal(gpuconv_compare(context, &a, &b, 0, &difference, &error), GPUCONV_OK);
    assert_false(difference.same_shape);
    assert_null(gpuconv_compare_picture(&a, &b, &error));
    assert_int_equal(gpuconv_compare(context, &a, &b, -1, &difference, &error), GPUCONV_BAD_ARGUMENT);
}

/* Comparisons by options leave the images alone, and widen channels unless they are strict. */
static void test_options_say_what_may_differ(void **state)
{
    (void)state;
    enum { EDGE = 24 };
    static uint8_t sharp[EDGE * EDGE], smooth[EDGE * EDGE], colours[EDGE * EDGE * 3], kept[EDGE * EDGE];
    struct gpuconv_difference difference;
    for (int i = 0; i < EDGE * EDGE; i++)
        sharp[i] = smooth[i] = i % EDGE < EDGE / 2 ? 0 : 255;
    for (int y = 5; y < EDGE - 5; y++)
        smooth[y * EDGE + EDGE / 2 - 1] = 90;
    for (int i = 0; i < EDGE * EDGE * 3; i++)
        colours[i] = sharp[i / 3];
    memcpy(kept, smooth, sizeof kept);
    const struct gpuconv_view a = gpuconv_interleaved(sharp, EDGE, EDGE, 1, GPUCONV_UINT8);
    const struct gpuconv_view b = gpuconv_interleaved(smooth, EDGE, EDGE, 1, GPUCONV_UINT8);
    const struct gpuconv_view rgb = gpuconv_interleaved(colours, EDGE, EDGE, 3, GPUCONV_UINT8);
    const struct {
        const struct gpuconv_view *other;
        struct gpuconv_compare_options options;
        int beyond, same_shape;
    } cases[] = {
        {&b, {0}, 1, 1},
        {&b, {.tolerance = 90}, 0, 1},
        {&b, {.different = EDGE}, 0, 1},
        {&b, {.min_ssim = 0.5}, 0, 1},
        {&b, {.min_local_ssim = 0.9999}, 1, 1},
        {&b, {.min_psnr = 60}, 1, 1},
        {&b, {.ignore_antialiasing = 1}, 0, 1},
        {&rgb, {0}, 0, 1},
        {&rgb, {.strict_channels = 1}, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(gpuconv_compare_with(context, &a, cases[i].other, &cases[i].options, &difference, &error),
                         GPUCONV_OK);
        assert_int_equal(difference.beyond, cases[i].beyond);
        assert_int_equal(difference.same_shape, cases[i].same_shape);
        assert_memory_equal(smooth, kept, sizeof kept);
    }
    assert_int_equal(
        gpuconv_compare_with(context, &a, &b, &(struct gpuconv_compare_options){.min_ssim = NAN}, &difference, &error),
        GPUCONV_BAD_ARGUMENT);
}

/* A packed image gives the metadata that it had, and damaged bytes give none. A success may leave warnings. */
static void test_metadata_are_packed_and_losses_warned_of(void **state)
{
    (void)state;
    static const uint8_t image[2 * 2 * 4] = {255, 0, 0, 128};
    struct gpuconv_view view = gpuconv_interleaved(image, 2, 2, 4, GPUCONV_UINT8);
    void *png, *again, *jpeg;
    size_t png_size, packed_size, again_size, size;
    assert_int_equal(gpuconv_encode(context, &view, NULL, &png, &png_size, &error), GPUCONV_OK);
    assert_string_equal(error.message, "");
    assert_int_equal(
        gpuconv_encode(context, &view, &(struct gpuconv_encode_options){.format = "jpg"}, &jpeg, &size, &error),
        GPUCONV_OK);
    assert_non_null(strstr(error.message, "JPEG cannot store alpha"));
    assert_int_equal(error.status, GPUCONV_OK);
    gpuconv_free(jpeg);
    struct gpuconv_image *decoded = gpuconv_decode(context, png, png_size, NULL, &error);
    assert_non_null(decoded);
    assert_null(gpuconv_image_metadata(decoded, "exif", &size));
    assert_int_equal(size, 0);
    uint8_t *packed = gpuconv_metadata_pack(decoded, &packed_size, &error);
    assert_non_null(packed);
    struct gpuconv_image *other = gpuconv_metadata_unpack(packed, packed_size, &error);
    assert_non_null(other);
    assert_int_equal(gpuconv_encode(context, &view, &(struct gpuconv_encode_options){.metadata_of = other}, &again,
                                    &again_size, &error),
                     GPUCONV_OK);
    assert_int_equal(again_size, png_size);
    assert_memory_equal(again, png, png_size);
    for (size_t cut = 0; cut < packed_size; cut += 7)
        assert_null(gpuconv_metadata_unpack(packed, cut, &error));
    uint8_t *longer = calloc(packed_size + 1, 1);
    assert_non_null(longer);
    memcpy(longer, packed, packed_size);
    assert_null(gpuconv_metadata_unpack(longer, packed_size + 1, &error));
    free(longer);
    packed[0] ^= 1;
    assert_null(gpuconv_metadata_unpack(packed, packed_size, &error));
    gpuconv_free(packed);
    gpuconv_free(png);
    gpuconv_free(again);
    gpuconv_image_free(other);
    gpuconv_image_free(decoded);
    static const char *const texts[] = {"1 2 1\n", "scale 1\n1 2 1\n"};
    for (int i = 0; i < 2; i++) {
        struct gpuconv_filter *filter = gpuconv_filter_parse(texts[i], strlen(texts[i]), "mine", &error);
        assert_non_null(filter);
        assert_int_equal(strstr(error.message, "mine: the taps sum to 4") != NULL, i == 0);
        gpuconv_filter_close(filter);
    }
}

/* The numbers of gpuconv.h, from the most effort to the least, make larger files. */
static void test_compressions_of_a_png_have_their_sizes(void **state)
{
    static const int levels[] = {1, 0, -2, -1};
    const struct gpuconv_view view = gpuconv_interleaved(in, 64, 64, 1, GPUCONV_UINT8);
    size_t sizes[4];
    (void)state;
    for (int i = 0; i < 64 * 64; i++)
        in[i] = (uint8_t)(i / 64 * (i / 64) + i % 64); /* runs of the same difference, shorter than 32 bytes */
    for (int i = 0; i < 4; i++) {
        const struct gpuconv_encode_options options = {.compression = levels[i]};
        void *bytes;
        assert_int_equal(gpuconv_encode(context, &view, &options, &bytes, &sizes[i], &error), GPUCONV_OK);
        gpuconv_free(bytes);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_true(sizes[1] < sizes[2] && sizes[2] < sizes[3]);
}

static void test_bad_requests_for_files_are_refused(void **state)
{
    (void)state;
    const struct gpuconv_view view = view_of(in), floats = gpuconv_interleaved(in, 4, 4, 1, GPUCONV_FLOAT);
    struct gpuconv_image *other = gpuconv_image_new(3, 3, 1, GPUCONV_UINT8, &error);
    const struct gpuconv_encode_options cases[] = {
        {.format = "gif"},
        {.format = ""},
        {.format = "jpg", .quality = 101},
        {.quality = -1},
        {.compression = 10},
        {.compression = -3},
        {.format = "jpg", .subsampling = 123},
        {.reserved = {[2] = 1}},
        {.background = 1 << 24, .has_background = 1},
    };
    void *bytes;
    size_t size;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(gpuconv_encode(context, &view, &cases[i], &bytes, &size, &error), GPUCONV_BAD_ARGUMENT);
        assert_null(bytes);
    }
    assert_int_equal(gpuconv_encode(context, &floats, NULL, &bytes, &size, &error), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_encode(NULL, &view, NULL, &bytes, &size, &error), GPUCONV_BAD_ARGUMENT);
    const struct gpuconv_encode_options resized = {.metadata_of = other}; /* metadata are made to fit */
    assert_int_equal(gpuconv_encode(context, &view, &resized, &bytes, &size, &error), GPUCONV_OK);
    gpuconv_free(bytes);
    gpuconv_image_free(other);
    assert_null(gpuconv_image_new(0, 1, 1, GPUCONV_UINT8, &error));
    assert_null(gpuconv_image_new(1 << 24, 1, 1, GPUCONV_UINT8, &error));
    assert_null(gpuconv_decode(context, NULL, 0, NULL, &error));
    assert_null(gpuconv_decode(context, "", 0, NULL, &error));
    assert_null(gpuconv_decode(context, "P5 1 1 255\n", 11, &(struct gpuconv_decode_options){.bits = 12}, &error));
    gpuconv_image_free(NULL);
    gpuconv_free(NULL);
}

/* A file that fails, or a view, does not stop the others, and each has its own sentence. */
static void test_each_file_of_a_list_has_its_error(void **state)
{
    (void)state;
    enum { COUNT = 4 };
    struct gpuconv_view views[COUNT] = {view_of(in), view_of(in + 1), view_of(NULL), view_of(in)};
    struct gpuconv_bytes files[COUNT];
    struct gpuconv_file_info infos[COUNT];
    struct gpuconv_error errors[COUNT];
    assert_int_equal(gpuconv_encode_all(context, views, COUNT, NULL, files, errors), GPUCONV_BAD_ARGUMENT);
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(errors[i].status, i == 2 ? GPUCONV_BAD_ARGUMENT : GPUCONV_OK);
    assert_null(files[2].data);
    files[2] = (struct gpuconv_bytes){"P5 1 1", 6};
    assert_int_equal(gpuconv_inspect_all(context, files, COUNT, NULL, infos, NULL), GPUCONV_BAD_DATA);
    assert_int_equal(infos[2].width, 0);
    assert_int_equal(infos[3].height, HEIGHT);
    memset(out, 0, sizeof out);
    for (int i = 0; i < COUNT; i++)
        views[i] = view_of(i == 3 ? expected : out);
    views[0].memory = GPUCONV_DEVICE;
    views[3].width--;
    assert_int_equal(gpuconv_decode_all(context, files, COUNT, NULL, views, errors), GPUCONV_BAD_ARGUMENT);
    static const char *const parts[COUNT] = {"the context has no GPU", "", "image", "29 x 37 x 3 samples of 8 bits"};
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(errors[i].status == GPUCONV_OK, i == 1);
        if (strstr(errors[i].message, parts[i]) == NULL)
            fail_msg("file %d: %s", i, errors[i].message);
    }
    assert_memory_equal(out, in + 1, SAMPLES);
    files[2].data = NULL;
    for (int i = 0; i < COUNT; i++)
        gpuconv_free(files[i].data);
}

static void test_lists_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    struct gpuconv_view view = view_of(in);
    struct gpuconv_bytes file = {"P5 1 1 255\nx", 12};
    struct gpuconv_file_info info;
    const struct gpuconv_decode_options bad = {.bits = 9};
    assert_int_equal(gpuconv_inspect_all(context, NULL, 0, NULL, NULL, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_decode_all(context, NULL, 0, NULL, NULL, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_encode_all(context, NULL, 0, NULL, NULL, NULL), GPUCONV_OK);
    for (int count = -1; count <= 1; count += 2) { /* an array is missing, or a negative number is given */
        assert_int_equal(gpuconv_inspect_all(context, NULL, count, NULL, &info, NULL), GPUCONV_BAD_ARGUMENT);
        assert_int_equal(gpuconv_decode_all(context, NULL, count, NULL, &view, &error), GPUCONV_BAD_ARGUMENT);
        assert_int_equal(gpuconv_decode_all(context, &file, count, NULL, NULL, &error), GPUCONV_BAD_ARGUMENT);
        assert_int_equal(gpuconv_encode_all(context, NULL, count, NULL, &file, &error), GPUCONV_BAD_ARGUMENT);
    }
    file = (struct gpuconv_bytes){NULL, 5};
    assert_int_equal(gpuconv_inspect_all(context, &file, 1, NULL, &info, &error), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_inspect_all(context, &file, 1, &bad, &info, &error), GPUCONV_BAD_ARGUMENT);
    assert_non_null(strstr(error.message, "9 bits"));
    assert_int_equal(gpuconv_inspect_all(NULL, &file, 1, NULL, &info, &error), GPUCONV_BAD_ARGUMENT);
}

/* ---- Preprocess ---- */

enum { SIDE = 3, TENSOR = 2 * 3 * SIDE * SIDE };

static const struct gpuconv_bytes grey_and_none[2] = {{"P5 2 2 255\n\1\2\3\4", 15}, {NULL, 0}};
static const struct gpuconv_placement two_places[2] = {{2, 2, 0, -1}, {2, 2, 1, 1}};
static const uint8_t colours[2][2][3] = {{{1, 11, 21}, {2, 12, 22}}, {{3, 13, 23}, {4, 14, 24}}};
static float channel_levels[3][256];

static struct gpuconv_view tensor_of(void *data, enum gpuconv_type type)
{
    struct gpuconv_view tensor = gpuconv_planar(data, SIDE, SIDE, 3, type);
    tensor.count = 2;
    tensor.image_stride = 3 * tensor.channel_stride;
    return tensor;
}

/* The picture of a grey file and that of a view, each at another place of its output. Python's tests have more. */
static void test_pictures_become_a_tensor(void **state)
{
    (void)state;
    static const uint8_t shown[2][SIDE][SIDE] = {{{7, 7, 7}, {1, 2, 7}, {3, 4, 7}}, {{4, 7, 7}, {7, 7, 7}, {7, 7, 7}}};
    const struct gpuconv_view views[2] = {{0}, gpuconv_interleaved(colours, 2, 2, 3, GPUCONV_UINT8)};
    struct gpuconv_preprocess_options options = {.kernel = "cubic", .placements = two_places, .pad = 0x07111b};
    float floats[TENSOR];
    const struct gpuconv_view bytes_view = tensor_of(out, GPUCONV_UINT8), view = tensor_of(floats, GPUCONV_FLOAT);
    for (int i = 0; i < 3 * 256; i++)
        channel_levels[i / 256][i % 256] = (float)(i % 256) / 8 - (float)(i / 256);
    out[TENSOR] = 0xa5;
    assert_int_equal(gpuconv_preprocess_all(context, grey_and_none, views, 2, &options, &bytes_view, NULL), GPUCONV_OK);
    options.levels = *channel_levels;
    assert_int_equal(gpuconv_preprocess_all(context, grey_and_none, views, 2, &options, &view, NULL), GPUCONV_OK);
    for (int i = 0; i < TENSOR; i++) {
        const int c = i / (SIDE * SIDE) % 3, value = shown[i / (TENSOR / 2)][i / SIDE % SIDE][i % SIDE];
        const int level = i < TENSOR / 2 && value < 7 ? value : value + 10 * c;
        if (out[i] != level || !(floats[i] == channel_levels[c][level]))
            fail_msg("sample %d: %d and %g, not %d and %g", i, out[i], floats[i], level, channel_levels[c][level]);
    }
    assert_int_equal(out[TENSOR], 0xa5);
}

static void test_tensors_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    const struct gpuconv_view picture = gpuconv_interleaved(colours, 2, 2, 3, GPUCONV_UINT8);
    const struct gpuconv_view right[2] = {{0}, picture};
    const struct gpuconv_preprocess_options usual = {.kernel = "cubic", .placements = two_places};
    char long_kernel[256] = ""; /* with "resize:400x2:exact:" before it, it has 255 bytes */
    for (int i = 0; i < 38; i++)
        strcat(long_kernel, "exact:");
    strcat(long_kernel, "triangle");
    const struct {
        const char *sentence;
        int option, view; /* what is wrong with the options, and with the output or a picture */
    } cases[] = {
        {"there is no kernel \"cubic,blur\"", 1, 0},
        {"no placement for each picture", 2, 0},
        {"a colour is 0x1000000", 3, 0},
        {"samples of uint8 with levels", 4, 0},
        {"samples of float32 without levels", 0, 1},
        {"samples of uint16 with levels", 4, 2},
        {"samples of float64 with levels", 4, 3},
        {"a reserved field is 5", 5, 0},
        {"9 bits", 6, 0},
        {"the output has 2 images of 1 channels; give 2 images of 3", 0, 4},
        {"the output has 1 images of 3 channels", 0, 5},
        {"the context has no GPU", 0, 6},
        {"share memory", 0, 7},
        {"nothing of the picture of 2 x 2 pixels from (2, 0)", 7, 0},
        {"nothing of the picture of 2 x 2 pixels from (-3, 0)", 8, 0},
        {"a placement has 2 x 0 pixels; give sides from 1 to 100000", 9, 0},
        {"a placement has 100001 x 2 pixels", 10, 0},
        {"a placement has -2147483648 x 2 pixels", 11, 0},
        {"there is no kernel \"exact:exact", 12, 0},
        {"there is no kernel \"none\"", 13, 0},
        {"the context has no GPU", 0, 8},
        {"there are no bytes", 0, 9},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int option = cases[i].option, view = cases[i].view;
        struct gpuconv_placement places[2] = {two_places[0], two_places[1]};
        struct gpuconv_preprocess_options o = usual;
        struct gpuconv_view views[2] = {right[0], right[1]};
        struct gpuconv_view tensor = tensor_of(expected, view == 1   ? GPUCONV_FLOAT
                                                         : view == 2 ? GPUCONV_UINT16
                                                         : view == 3 ? GPUCONV_DOUBLE
                                                                     : GPUCONV_UINT8);
        struct gpuconv_error errors[2];
        o.kernel = option == 1 ? "cubic,blur" : option == 12 ? long_kernel : option == 13 ? "none" : "cubic";
        o.pad = option == 3 ? 1 << 24 : 0;
        o.levels = option == 4 ? *channel_levels : NULL;
        o.reserved[2] = option == 5 ? 5 : 0;
        o.decode.bits = option == 6 ? 9 : 0;
        o.placements = option == 2 ? NULL : places;
        places[1].x = option == 7 ? 2 : option == 8 ? -SIDE : option == 11 ? INT_MAX : 0;
        places[1].y = 0;
        places[1].height = option == 9 ? 0 : 2;
        places[1].width = option == 10 ? 100001 : option == 11 ? INT_MIN : option == 12 ? 400 : 2;
        tensor.channels = view == 4 ? 1 : 3;
        tensor.count = view == 5 ? 1 : 2;
        tensor.memory = view == 6 ? GPUCONV_DEVICE : GPUCONV_HOST;
        tensor.image_stride -= view == 7;
        views[1].memory = view == 8 ? GPUCONV_DEVICE : GPUCONV_HOST;
        assert_int_equal(
            gpuconv_preprocess_all(context, grey_and_none, view == 9 ? NULL : views, 2, &o, &tensor, errors),
            GPUCONV_BAD_ARGUMENT);
        if (strstr(errors[1].message, cases[i].sentence) == NULL && view != 9)
            fail_msg("case %zu: %s", i, errors[1].message);
    }
    const struct gpuconv_view tensor = tensor_of(expected, GPUCONV_UINT8);
    assert_int_equal(gpuconv_preprocess_all(context, NULL, NULL, 0, NULL, NULL, NULL), GPUCONV_OK);
    assert_int_equal(gpuconv_preprocess_all(context, NULL, NULL, -1, &usual, &tensor, NULL), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_preprocess_all(context, NULL, NULL, 2, &usual, &tensor, NULL), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_preprocess_all(context, NULL, right, 2, NULL, &tensor, NULL), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_preprocess_all(NULL, NULL, right, 2, &usual, &tensor, NULL), GPUCONV_BAD_ARGUMENT);
}

/* ---- Pillow ---- */

static void test_pillow_resizes_without_a_context(void **state)
{
    (void)state;
    /* Sums of sample * (index + 1) that Pillow 13.0.0 and 12.0.0 gave for these bytes. */
    static const struct {
        const char *kernel;
        int channels, width, height;
        uint32_t sum;
    } cases[] = {{"pillow-bicubic", 3, 30, 5, 12409641}, {"pillow12-bicubic", 3, 30, 5, 12411899},
                 {"pillow-lanczos", 4, 11, 9, 9695431},  {"pillow12-lanczos", 4, 11, 9, 9695431},
                 {"pillow-box", 2, 50, 31, 579307675},   {"pillow-hamming", 1, 5, 9, 127303}};
    struct gpuconv_view a = view_of(in), b = view_of(out);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t sum = 0, count = (uint32_t)(cases[i].channels * cases[i].width * cases[i].height);
        a = gpuconv_interleaved(in, WIDTH, HEIGHT, cases[i].channels, GPUCONV_UINT8);
        b = gpuconv_interleaved(out, cases[i].width, cases[i].height, cases[i].channels, GPUCONV_UINT8);
        assert_int_equal(gpuconv_pillow_resize(cases[i].kernel, &a, &b, NULL, 0, &error), GPUCONV_OK);
        assert_int_equal(gpuconv_pillow_resize(cases[i].kernel, &a, &b, NULL, 0, NULL), GPUCONV_OK);
        for (uint32_t k = 0; k < count; k++)
            sum += out[k] * (k + 1);
        assert_int_equal(sum, cases[i].sum);
    }
    static const char *const wrong[] = {
        NULL, "bicubic", "pillow", "pillow-cubic", "pillow-box:enlarge", "pillow-box,blur"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(gpuconv_pillow_resize(wrong[i], &a, &b, NULL, 0, &error), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_pillow_resize("pillow-box", NULL, &b, NULL, 0, &error), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(gpuconv_pillow_resize("pillow-box", &a, NULL, NULL, 0, &error), GPUCONV_BAD_ARGUMENT);
    b = gpuconv_interleaved(out, 9, 9, 1, GPUCONV_UINT8);
    a = gpuconv_interleaved(in, WIDTH, HEIGHT, 3, GPUCONV_UINT8);
    assert_int_equal(gpuconv_pillow_resize("pillow-box", &a, &b, NULL, 0, &error), GPUCONV_BAD_ARGUMENT);
    a = b = gpuconv_interleaved(in, 9, 9, 3, GPUCONV_UINT16);
    assert_int_equal(gpuconv_pillow_resize("pillow-box", &a, &b, NULL, 0, &error), GPUCONV_BAD_ARGUMENT);
    assert_non_null(strstr(error.message, "or 1 of uint16"));
}

static void test_pillow_resizes_a_part_and_other_modes(void **state)
{
    (void)state;
    /* Likewise; sums of the bits of floats. */
    static const struct {
        const char *kernel;
        int channels, type, width, height;
        double box[4], reducing_gap;
        uint32_t sum;
    } cases[] = {{"pillow-bicubic", 3, GPUCONV_UINT8, 9, 6, {2.25, 1, 30.5, 27.75}, 0, 1593944},
                 {"pillow-lanczos", 4, GPUCONV_UINT8, 5, 4, {0, 0, WIDTH, HEIGHT}, 1.5, 399087},
                 {"pillow12-lanczos", 4, GPUCONV_UINT8, 5, 4, {0, 0, WIDTH, HEIGHT}, 1.5, 396732},
                 {"pillow-bilinear", 2, GPUCONV_UINT8, 6, 5, {0, 0, WIDTH, 28.5}, 2, 223307},
                 {"pillow-box", 1, GPUCONV_UINT8, 3, 2, {4, 4, 36, HEIGHT}, 1, 2605},
                 {"pillow-bilinear", 1, GPUCONV_UINT8, WIDTH, 4 * HEIGHT, {0, 0, WIDTH, HEIGHT}, 0, 1135065319},
                 {"pillow-lanczos", 1, GPUCONV_UINT16, 12, 20, {3, 0.5, 33.3, HEIGHT}, 0, 909417925},
                 {"pillow-nearest", 1, GPUCONV_UINT16, 11, 13, {3, 0.5, 33.3, HEIGHT}, 0, 297120013},
                 {"pillow12-hamming", 1, GPUCONV_FLOAT, 12, 9, {0, 0, WIDTH, HEIGHT}, 0, 1213873612},
                 {"pillow-bilinear", 1, GPUCONV_FLOAT, WIDTH, 9, {0, 0, WIDTH, HEIGHT}, 0, 161845152},
                 {"pillow-bicubic", 1, GPUCONV_FLOAT, 5, 3, {1, 2, 36, 28}, 1, 2224427333}};
    static uint8_t bytes[4 * WIDTH * HEIGHT];
    static uint16_t words[WIDTH * HEIGHT];
    static float floats[4 * WIDTH * HEIGHT];
    void *const samples[] = {bytes, words, floats};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int k = 0; k < 4 * WIDTH * HEIGHT; k++)
            bytes[k] = in[k];
        for (int k = 0; k < WIDTH * HEIGHT; k++) {
            words[k] = (uint16_t)(257 * in[k]);
            floats[k] = (float)in[k] / 255;
        }
        uint32_t sum = 0, bits;
        void *data = samples[cases[i].type];
        const enum gpuconv_type type = (enum gpuconv_type)cases[i].type;
        const struct gpuconv_view a = gpuconv_interleaved(data, WIDTH, HEIGHT, cases[i].channels, type),
                                  b = gpuconv_interleaved(data, cases[i].width, cases[i].height, cases[i].channels,
                                                          type);
        assert_int_equal(gpuconv_pillow_resize(cases[i].kernel, &a, &b, cases[i].box, cases[i].reducing_gap, &error),
                         GPUCONV_OK); /* the views overlap */
        for (uint32_t k = 0; k < (uint32_t)(b.channels * b.width * b.height); k++) {
            memcpy(&bits, &floats[k], sizeof bits);
            sum += (type == GPUCONV_UINT8 ? bytes[k] : type == GPUCONV_UINT16 ? words[k] : bits) * (k + 1);
        }
        assert_int_equal(sum, cases[i].sum);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pillow_resizes_without_a_context),
        cmocka_unit_test(test_pillow_resizes_a_part_and_other_modes),
        cmocka_unit_test(test_views_that_make_no_sense_are_refused),
        cmocka_unit_test(test_contexts_that_cannot_be_are_refused),
        cmocka_unit_test(test_only_the_strides_that_count_are_checked),
        cmocka_unit_test(test_views_may_overlap),
        cmocka_unit_test(test_a_region_of_any_view_is_filtered),
        cmocka_unit_test(test_views_have_no_profile),
        cmocka_unit_test(test_grey_views_get_no_colours),
        cmocka_unit_test(test_a_call_can_be_stopped),
        cmocka_unit_test(test_a_wide_filter_ends_soon_when_it_is_stopped),
        cmocka_unit_test(test_a_part_is_an_image_of_its_own),
        cmocka_unit_test(test_strides_do_not_overflow),
        cmocka_unit_test(test_a_view_has_several_images),
        cmocka_unit_test(test_floats_agree_with_integers),
        cmocka_unit_test(test_sizes_change),
        cmocka_unit_test(test_floats_do_not_depend_on_threads),
        cmocka_unit_test(test_floats_have_alpha),
        cmocka_unit_test(test_threads_share_contexts_and_filters),
        cmocka_unit_test(test_inputs_are_not_written),
        cmocka_unit_test(test_a_child_leaves_contexts_of_its_parent_alone),
        cmocka_unit_test(test_plans_are_those_of_the_filter),
        cmocka_unit_test(test_filters_are_found_made_and_described),
        cmocka_unit_test(test_filters_that_make_no_sense_are_refused),
        cmocka_unit_test(test_messages_are_one_line),
        cmocka_unit_test(test_images_are_encoded_decoded_and_compared),
        cmocka_unit_test(test_differences_are_found),
        cmocka_unit_test(test_options_say_what_may_differ),
        cmocka_unit_test(test_metadata_are_packed_and_losses_warned_of),
        cmocka_unit_test(test_compressions_of_a_png_have_their_sizes),
        cmocka_unit_test(test_bad_requests_for_files_are_refused),
        cmocka_unit_test(test_each_file_of_a_list_has_its_error),
        cmocka_unit_test(test_lists_that_make_no_sense_are_refused),
        cmocka_unit_test(test_pictures_become_a_tensor),
        cmocka_unit_test(test_tensors_that_make_no_sense_are_refused),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
