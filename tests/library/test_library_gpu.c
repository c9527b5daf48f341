/* SPDX-License-Identifier: MIT
 *
 * Contexts on a GPU, with the stub in place of one: what is refused, failures, floats, threads. The stub's device
 * memory is memory of the host. check_library.c compares random calls with the command line. */
#include "tests/lib/stub_device.h"

#include <gpuconv.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { WIDTH = 45, HEIGHT = 31, SAMPLES = WIDTH * HEIGHT * 4 };

static struct gpuconv_context *cpu, *gpu;
static struct gpuconv_error error;
static float in[SAMPLES], out[SAMPLES + 1], expected[SAMPLES];

static int open_all(void **state)
{
    (void)state;
    cpu = gpuconv_context_open(NULL, &error);
    gpu = gpuconv_context_open(&(struct gpuconv_context_options){.uses_gpu = 1, .device = 1}, &error);
    for (int i = 0; i < SAMPLES; i++)
        in[i] = (float)(i * i % 1001) / 1001;
    return cpu == NULL || gpu == NULL;
}

static int close_all(void **state)
{
    (void)state;
    gpuconv_context_close(cpu);
    gpuconv_context_close(gpu);
    return 0;
}

static struct gpuconv_view view_of(void *data, int channels, enum gpuconv_type type, enum gpuconv_memory memory)
{
    struct gpuconv_view view = gpuconv_interleaved(data, WIDTH, HEIGHT, channels, type);
    view.memory = memory;
    return view;
}

static enum gpuconv_status apply(struct gpuconv_context *context, const char *name, struct gpuconv_view from,
                                 struct gpuconv_view to, const struct gpuconv_options *options)
{
    struct gpuconv_filter *filter = gpuconv_filter_find(name, &error);
    assert_non_null(filter);
    const enum gpuconv_status status = gpuconv_apply(context, filter, &from, &to, options, &error);
    gpuconv_filter_close(filter);
    return status;
}

/* ---- Results ---- */

/* The types and layouts that take different ways on a GPU. check_library does not have floats. */
static void test_device_memory_gives_the_same(void **state)
{
    (void)state;
    static const char *const names[] = {"blur", "gaussian:2,sobel,emboss", "shift-left"};
    for (int type = GPUCONV_UINT8; type <= GPUCONV_BFLOAT16; type++)
        for (int channels = 1; channels <= 4; channels++)
            for (int i = 0; i < 12; i++) {
                const struct gpuconv_options options = {.alpha = i % 2 ? GPUCONV_KEEP : GPUCONV_PREMULTIPLY,
                                                        .linear = type <= GPUCONV_UINT16 && i % 4 == 3};
                const char *name = names[i % 3];
                struct gpuconv_view a = view_of(in, channels, (enum gpuconv_type)type, GPUCONV_HOST), b = a;
                b.data = expected;
                assert_int_equal(apply(cpu, name, a, b, &options), GPUCONV_OK);
                b.data = out;
                a.memory = b.memory = i < 6 ? GPUCONV_DEVICE : GPUCONV_HOST;
                memset(out, 0x77, sizeof out);
                if (apply(gpu, name, a, b, &options) != GPUCONV_OK)
                    fail_msg("%s", error.message);
                assert_memory_equal(out, expected, (size_t)(b.row_stride * HEIGHT));
            }
}

/* Filter images of changing sizes by the GPU, from A to B or, if it OVERLAPS, to where A begins. */
static void check_sizes(const struct gpuconv_filter *filter, enum gpuconv_type type, int number, bool overlaps)
{
    static float own[SAMPLES + 1], wanted[SAMPLES];
    struct gpuconv_view (*const view)(const void *, int, int, int, enum gpuconv_type) =
        number / 4 % 2 ? gpuconv_planar : gpuconv_interleaved;
    const int channels = 1 + number % 4, sample_size = type == GPUCONV_FLOAT ? 4 : type == GPUCONV_UINT8 ? 1 : 2;
    const struct gpuconv_options options = {
        .alpha = number / 8 % 2 ? GPUCONV_KEEP : GPUCONV_PREMULTIPLY,
        .linear = type <= GPUCONV_UINT16 && number / 16,
    };
    int width = WIDTH - number % 3, height = HEIGHT - number % 2;
    struct gpuconv_view a = view(own, width, height, channels, type);
    assert_int_equal(gpuconv_filter_size(filter, &width, &height, &error), GPUCONV_OK);
    for (int memory = GPUCONV_HOST; memory <= GPUCONV_DEVICE; memory++) {
        struct gpuconv_view b = view(wanted, width, height, channels, type);
        memcpy(own, in, sizeof in);
        a.memory = GPUCONV_HOST;
        assert_int_equal(gpuconv_apply(cpu, filter, &a, &b, &options, &error), GPUCONV_OK);
        a.memory = b.memory = (enum gpuconv_memory)memory;
        b.data = overlaps ? own : out;
        const size_t size = (size_t)(width * height * channels * sample_size);
        uint8_t *end = (uint8_t *)b.data + size;
        if (!overlaps)
            *end = 0x77;
        if (gpuconv_apply(gpu, filter, &a, &b, &options, &error) != GPUCONV_OK)
            fail_msg("%s", error.message);
        assert_memory_equal(b.data, wanted, size);
        assert_true(overlaps || *end == 0x77);
    }
}

static void test_sizes_change(void **state)
{
    (void)state;
    static const char *const names[] = {"resize:60%", "blur,resize:30x40:exact,sharpen",
                                        "resize:200%:enlarge,resize:50%,blur", "resize:45x31:exact"};
    for (int i = 0; i < 4; i++) {
        struct gpuconv_filter *filter = gpuconv_filter_find(names[i], &error);
        assert_non_null(filter);
        for (int type = GPUCONV_UINT8; type <= GPUCONV_BFLOAT16; type++)
            for (int k = 0; k < 64; k++)
                check_sizes(filter, (enum gpuconv_type)type, k % 32, k >= 32);
        gpuconv_filter_close(filter);
    }
}

/* Planes that a kernel could read and write where they are. */
static void test_planes_may_overlap(void **state)
{
    (void)state;
    enum { SIDE = 128, SHIFT = 512 };
    static _Alignas(512) uint8_t planes[SIDE * SIDE + SHIFT];
    for (int i = 0; i < SIDE * SIDE; i++)
        planes[i] = (uint8_t)(i * i % 251);
    struct gpuconv_view a = gpuconv_planar(planes, SIDE, SIDE, 1, GPUCONV_UINT8), b = a;
    b.data = expected;
    assert_int_equal(apply(cpu, "blur", a, b, NULL), GPUCONV_OK);
    b.data = planes + SHIFT;
    a.memory = b.memory = GPUCONV_DEVICE;
    assert_int_equal(apply(gpu, "blur", a, b, NULL), GPUCONV_OK);
    assert_memory_equal(b.data, expected, SIDE * SIDE);
}

/* In 16 bits, which weighing by alpha takes, two passes give another level for a few samples. */
static void test_an_opaque_image_keeps_its_levels(void **state)
{
    (void)state;
    static const char *const names[] = {"gaussian:0.6", "gaussian:2", "gaussian:6"};
    uint8_t *levels = (uint8_t *)out;
    for (int i = 0; i < 3; i++)
        for (int channels = 2; channels <= 4; channels += 2) {
            static uint8_t opaque[SAMPLES];
            uint32_t noise = 1;
            for (int k = 0; k < SAMPLES; k++) {
                noise = noise * 1664525 + 1013904223;
                opaque[k] = k % channels == channels - 1 ? 255 : (uint8_t)(noise >> 24);
            }
            struct gpuconv_view from = view_of(opaque, channels, GPUCONV_UINT8, GPUCONV_HOST), to = from;
            to.data = expected;
            assert_int_equal(apply(cpu, names[i], from, to, NULL), GPUCONV_OK);
            to.data = levels;
            from.memory = to.memory = GPUCONV_DEVICE;
            assert_int_equal(apply(gpu, names[i], from, to, NULL), GPUCONV_OK);
            assert_memory_equal(levels, expected, (size_t)WIDTH * HEIGHT * (size_t)channels);
        }
}

/* Planar images that lie one after the other take one launch, unless their channels have to do with each other. */
static void test_a_view_has_several_images(void **state)
{
    (void)state;
    static const char *const names[] = {"sharpen", "unsharp:1.5:0.8:9", "gaussian:2,edge"};
    for (int channels = 1; channels <= 4; channels++)
        for (int alpha = GPUCONV_PREMULTIPLY; alpha <= GPUCONV_FILTER_ALPHA; alpha++)
            for (int i = 0; i < 12; i++) {
                const struct gpuconv_options options = {.alpha = (enum gpuconv_alpha)alpha, .linear = i % 4 == 3};
                const char *name = names[i % 3];
                struct gpuconv_view a = gpuconv_planar(in, 20, 10, channels, GPUCONV_UINT8), b = a;
                a.count = b.count = i < 3 ? 4 : 6;
                a.image_stride = b.image_stride = 200 * channels;
                b.data = expected;
                assert_int_equal(apply(cpu, name, a, b, &options), GPUCONV_OK);
                b.data = out;
                a.memory = b.memory = GPUCONV_DEVICE;
                memset(out, 0, sizeof out);
                const long before = stub_launches();
                assert_int_equal(apply(gpu, name, a, b, &options), GPUCONV_OK);
                assert_memory_equal(out, expected, (size_t)(a.count * a.image_stride));
                const bool is_joined = (channels % 2 || alpha == GPUCONV_FILTER_ALPHA) && i % 3 != 1 && i % 4 != 3;
                assert_int_equal(stub_launches() - before, (is_joined ? 1 : a.count) * (i % 3 == 2 ? 2 : 1));
                assert_int_equal(apply(gpu, name, a, a, NULL), GPUCONV_BAD_ARGUMENT);
            }
}

/* ---- Refused ---- */

static void test_what_a_gpu_cannot_do_is_refused(void **state)
{
    (void)state;
    struct gpuconv_view host = view_of(in, 4, GPUCONV_FLOAT, GPUCONV_HOST), a = host, b = host;
    a.memory = b.memory = GPUCONV_DEVICE;
    b.data = out;
    const struct gpuconv_options options = {.alpha = GPUCONV_KEEP, .stream = (void *)&stub_captured};
    assert_int_equal(apply(gpu, "blur", a, b, &options), GPUCONV_BAD_ARGUMENT);
    assert_non_null(strstr(error.message, "CUDA graph"));
    assert_int_equal(apply(gpu, "blur", host, b, NULL), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(apply(gpu, "blur", a, host, NULL), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(apply(cpu, "blur", a, b, NULL), GPUCONV_BAD_ARGUMENT);
    assert_int_equal(apply(gpu, "blur", host, host, &options), GPUCONV_BAD_ARGUMENT);
    assert_non_null(strstr(error.message, "on the host"));
    assert_null(gpuconv_context_open(&(struct gpuconv_context_options){.uses_gpu = 1, .device = 2}, &error));
    assert_int_equal(error.status, GPUCONV_NO_GPU);
    assert_null(gpuconv_context_open(&(struct gpuconv_context_options){.uses_gpu = 1, .device = -1}, &error));
}

/* After a failure of any call, the next call works. */
static void test_a_failure_is_reported(void **state)
{
    (void)state;
    static const char *const calls[] = {"allocate", "split",  "prepare", "launch",
                                        "merge",    "upload", "wait",    "download"};
    struct gpuconv_view a = view_of(in, 3, GPUCONV_UINT8, GPUCONV_HOST), b = a;
    b.data = expected;
    assert_int_equal(apply(cpu, "box9", a, b, NULL), GPUCONV_OK);
    b.data = out;
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        char fail[32];
        snprintf(fail, sizeof fail, "%s:1", calls[i]);
        setenv("GPUCONV_STUB_FAIL", fail, 1);
        assert_int_equal(apply(gpu, "box9", a, b, NULL), GPUCONV_NO_GPU);
        assert_non_null(strstr(error.message, calls[i]));
        unsetenv("GPUCONV_STUB_FAIL");
        assert_int_equal(apply(gpu, "box9", a, b, NULL), GPUCONV_OK);
        assert_memory_equal(out, expected, WIDTH * HEIGHT * 3);
    }
}

/* A GPU that fails, or whose stream is captured, stops only the files that it was to do. */
static void test_files_on_the_host_do_not_need_the_gpu(void **state)
{
    (void)state;
    enum { COUNT = 3, SIDE = 150, SIZE = SIDE * SIDE * 3 }; /* larger than JPEGs that are for the CPU */
    static uint8_t pixels[SIZE], samples[COUNT * SIZE];
    static const enum gpuconv_status statuses[] = {GPUCONV_OK, GPUCONV_NO_GPU, GPUCONV_BAD_ARGUMENT};
    struct gpuconv_view views[COUNT];
    struct gpuconv_bytes files[COUNT];
    struct gpuconv_error errors[COUNT], decoded[COUNT];
    for (int number = 0; number < 3; number++) {
        void *stream = number == 2 ? (void *)&stub_captured : NULL;
        for (int i = 0; i < COUNT; i++) {
            views[i] = gpuconv_interleaved(pixels, SIDE, SIDE, 3, GPUCONV_UINT8);
            views[i].memory = i == 1 ? GPUCONV_HOST : GPUCONV_DEVICE;
        }
        if (number == 1)
            setenv("GPUCONV_STUB_FAIL", "jpeg:1", 1);
        gpuconv_encode_all(gpu, views, COUNT, &(struct gpuconv_encode_options){.format = "jpg", .stream = stream},
                           files, errors);
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(errors[i].status, i == 1 ? GPUCONV_OK : statuses[number]);
            assert_int_equal(files[i].data != NULL, errors[i].status == GPUCONV_OK);
            views[i].data = samples + i * SIZE;
        }
        const struct gpuconv_bytes same[COUNT] = {files[1], files[1], files[1]};
        memset(samples, 0x77, sizeof samples);
        gpuconv_decode_all(gpu, same, COUNT, &(struct gpuconv_decode_options){.stream = stream}, views, decoded);
        unsetenv("GPUCONV_STUB_FAIL");
        for (int i = 0; i < COUNT; i++) {
            assert_int_equal(decoded[i].status, errors[i].status);
            assert_int_equal(memcmp(views[i].data, samples + SIZE, SIZE) == 0, errors[i].status == GPUCONV_OK);
            gpuconv_free(files[i].data);
        }
    }
}

/* Pictures of one size may go to other places: their axes have other first outputs. */
static void test_parts_of_tensors_differ(void **state)
{
    (void)state;
    enum { COUNT = 3, SIDE = 20, SIZE = 3 * SIDE * SIDE };
    static const struct gpuconv_placement placements[COUNT] = {{40, 40, 0, 0}, {40, 40, 7, 20}, {40, 40, 20, -3}};
    static const struct gpuconv_bytes none[COUNT];
    static uint8_t tensors[2][COUNT * SIZE];
    const struct gpuconv_preprocess_options options = {.kernel = "pillow-bicubic", .placements = placements};
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
        struct gpuconv_view views[COUNT], tensor = gpuconv_interleaved(tensors[on_gpu], SIDE, SIDE, 3, GPUCONV_UINT8);
        struct gpuconv_error errors[COUNT];
        tensor.count = COUNT;
        tensor.image_stride = SIZE;
        tensor.memory = on_gpu ? GPUCONV_DEVICE : GPUCONV_HOST;
        for (int i = 0; i < COUNT; i++)
            views[i] = view_of(in, 3, GPUCONV_UINT8, on_gpu && i > 0 ? GPUCONV_DEVICE : GPUCONV_HOST);
        if (gpuconv_preprocess_all(gpu, none, views, COUNT, &options, &tensor, errors) != GPUCONV_OK)
            fail_msg("%s", errors[0].message);
    }
    assert_memory_equal(tensors[0], tensors[1], sizeof *tensors);
}

/* The threads of the CPU are faster with small PNGs, so these do not need the GPU. */
static void test_small_pngs_are_for_the_cpu(void **state)
{
    (void)state;
    enum { SIDE = 512 };
    static const struct {
        int threads, count, encoded, decoded; /* the least pixels for a GPU */
    } cases[] = {{1, 3, 1 << 15, 1 << 17}, {4, 1, 1 << 15, 1 << 17}, {4, 2, 1 << 16, 1 << 18}};
    uint8_t *samples = calloc(SIDE, SIDE);
    assert_non_null(samples);
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const int count = cases[i / 2].count, is_small = i % 2;
        const struct gpuconv_context_options options = {.threads = cases[i / 2].threads, .uses_gpu = 1};
        struct gpuconv_context *context = gpuconv_context_open(&options, &error);
        struct gpuconv_view views[3];
        struct gpuconv_bytes files[3];
        for (int k = 0; k < count; k++) {
            views[k] = gpuconv_interleaved(samples, SIDE, cases[i / 2].encoded / SIDE - is_small, 1, GPUCONV_UINT8);
            views[k].memory = GPUCONV_DEVICE;
        }
        const struct gpuconv_encode_options png = {.format = "png"};
        const enum gpuconv_status status = is_small ? GPUCONV_OK : GPUCONV_NO_GPU;
        setenv("GPUCONV_STUB_FAIL", "png:1", 1);
        assert_int_equal(gpuconv_encode_all(context, views, count, &png, files, NULL), status);
        for (int k = 0; k < count; k++)
            gpuconv_free(files[k].data);
        unsetenv("GPUCONV_STUB_FAIL");
        for (int k = 0; k < count; k++)
            views[k].height = cases[i / 2].decoded / SIDE - is_small;
        assert_int_equal(gpuconv_encode_all(context, views, count, &png, files, NULL), GPUCONV_OK);
        setenv("GPUCONV_STUB_FAIL", "png:1", 1);
        assert_int_equal(gpuconv_decode_all(context, files, count, NULL, views, NULL), status);
        unsetenv("GPUCONV_STUB_FAIL");
        for (int k = 0; k < count; k++)
            gpuconv_free(files[k].data);
        gpuconv_context_close(context);
    }
    free(samples);
}

/* ---- Threads ---- */

static void *use(void *context)
{
    static uint8_t *const failed = (uint8_t *)"failed";
    uint8_t *memory = malloc(WIDTH * HEIGHT * 3);
    for (int i = 0; memory != NULL && i < 30; i++) {
        struct gpuconv_error own;
        struct gpuconv_filter *filter = gpuconv_filter_find("box9", &own);
        const struct gpuconv_view a = view_of(in, 3, GPUCONV_UINT8, GPUCONV_DEVICE);
        const struct gpuconv_view b = view_of(memory, 3, GPUCONV_UINT8, GPUCONV_DEVICE);
        const bool done = filter != NULL && gpuconv_apply(context, filter, &a, &b, NULL, &own) == GPUCONV_OK &&
                          memcmp(memory, expected, WIDTH * HEIGHT * 3) == 0;
        gpuconv_filter_close(filter);
        if (!done) {
            free(memory);
            return failed;
        }
    }
    free(memory);
    return NULL;
}

static void test_threads_share_a_gpu(void **state)
{
    (void)state;
    enum { USERS = 4 };
    pthread_t threads[USERS];
    struct gpuconv_context *other =
        gpuconv_context_open(&(struct gpuconv_context_options){.uses_gpu = 1, .device = 1}, &error);
    struct gpuconv_view a = view_of(in, 3, GPUCONV_UINT8, GPUCONV_HOST), b = a;
    assert_non_null(other);
    b.data = expected;
    assert_int_equal(apply(cpu, "box9", a, b, NULL), GPUCONV_OK);
    for (int i = 0; i < USERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, i % 2 ? gpu : other), 0);
    for (int i = 0; i < USERS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
    gpuconv_context_close(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_device_memory_gives_the_same),
        cmocka_unit_test(test_an_opaque_image_keeps_its_levels),
        cmocka_unit_test(test_a_view_has_several_images),
        cmocka_unit_test(test_what_a_gpu_cannot_do_is_refused),
        cmocka_unit_test(test_a_failure_is_reported),
        cmocka_unit_test(test_files_on_the_host_do_not_need_the_gpu),
        cmocka_unit_test(test_parts_of_tensors_differ),
        cmocka_unit_test(test_small_pngs_are_for_the_cpu),
        cmocka_unit_test(test_threads_share_a_gpu),
        cmocka_unit_test(test_sizes_change),
        cmocka_unit_test(test_planes_may_overlap),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
