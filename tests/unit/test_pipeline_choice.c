/* SPDX-License-Identifier: MIT
 *
 * The pipeline's choice of the backend, its fallback to the CPU, and images that go through it in bands. */
#include "base/error.h"
#include "filter/filter.h"
#include "image/image.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void find(const char *spec, struct filter *filter)
{
    struct error error;
    if (!filter_find(spec, filter, &error))
        fail_msg("%s", error.message);
}

/* ---- The backend ---- */

/* An image of which only the shape matters, because no pixel is touched. */
static struct image shape(int width, int height, int bits)
{
    return (struct image){.width = width, .height = height, .channels = 3, .bits = bits};
}

/* Open PIPELINE and plan an image of that shape. */
static bool plan_image(struct pipeline *pipeline, const struct request *request, int side, int bits,
                       struct error *error)
{
    static struct stages stages;
    const struct image image = shape(side, side, bits);
    stages_begin(&stages);
    assert_true(pipeline_open(pipeline, request, error));
    return pipeline_plan(pipeline, &image, &stages, error);
}

static void test_a_small_image_stays_on_the_cpu(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct error error;
    find("blur", &filter);
    const struct request request = {.filters = &filter, .count = 1};
    assert_true(plan_image(&pipeline, &request, 64, 8, &error));
    assert_int_equal(pipeline.backend, BACKEND_CPU);
    assert_non_null(strstr(pipeline.why.message, "the CPU is expected to take"));
    assert_int_equal(pipeline.plans[0].variant->backend, BACKEND_CPU);
    assert_null(pipeline_gpu_facts(&pipeline));
    pipeline_close(&pipeline);
}

/* A large image goes to the GPU if there is one. Else the CPU takes it, and that is no failure. */
static void test_a_large_image_goes_to_a_gpu(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct error error;
    find("gaussian:20", &filter);
    const struct request request = {.filters = &filter, .count = 1};
    assert_true(plan_image(&pipeline, &request, 30000, 8, &error));
    assert_int_equal(pipeline.backend, pipeline_gpus() > 0 ? BACKEND_CUDA : BACKEND_CPU);
    assert_int_equal(pipeline.plans[0].variant->backend, pipeline.backend);
    assert_true((pipeline_gpu_facts(&pipeline) != NULL) == (pipeline.backend == BACKEND_CUDA));
    assert_null(strstr(pipeline.why.message, "the CPU is expected to take"));
    assert_int_equal(pipeline.fallback.code, ERROR_NONE);
    pipeline_close(&pipeline);
}

static void test_a_request_overrules_the_choice(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct error error;
    find("gaussian:20", &filter);
    const struct request request = {.filters = &filter, .count = 1, .choice = CHOICE_CPU};
    assert_true(pipeline_check(&request, &error));
    assert_true(plan_image(&pipeline, &request, 30000, 8, &error));
    assert_int_equal(pipeline.backend, BACKEND_CPU);
    assert_string_equal(pipeline.why.message, "asked for");
    pipeline_close(&pipeline);
}

/* GPU number 1000000 exists nowhere. */
static void test_a_missing_gpu_is_an_error_where_it_was_asked_for(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct error error;
    find("blur", &filter);
    const struct request request = {.filters = &filter, .count = 1, .choice = CHOICE_CUDA, .device = 1000000};
    assert_false(pipeline_check(&request, &error));
    assert_non_null(strstr(error.message, "there is no GPU to work on: "));
    assert_non_null(strstr(error.message, "; --backend cpu works everywhere"));
    assert_false(plan_image(&pipeline, &request, 64, 8, &error));
    assert_int_equal(error.code, ERROR_WORK);
    pipeline_close(&pipeline);
}

static void test_the_cpu_takes_over_for_this_and_all_later_images(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct error error;
    struct stages stages;
    find("blur", &filter);
    const struct request request = {
        .filters = &filter, .count = 1, .choice = CHOICE_CUDA, .device = 1000000, .cpu_fallback = true};
    assert_true(plan_image(&pipeline, &request, 64, 8, &error));
    assert_int_equal(pipeline.backend, BACKEND_CPU);
    assert_int_equal(pipeline.fallback.code, ERROR_WORK);
    assert_true(pipeline.fallback.message[0] != '\0');
    struct image image, result;
    for (int bits = 8; bits <= 16; bits += 8) {
        assert_true(image_allocate(&image, 64, 64, 3, bits, &error));
        memset(image.samples, 77, image_bytes(&image));
        stages_begin(&stages);
        assert_true(pipeline_plan(&pipeline, &image, &stages, &error));
        assert_true(pipeline_run(&pipeline, &image, &result, &error));
        assert_int_equal(pipeline.backend, BACKEND_CPU);
        assert_ptr_equal(result.samples, image.samples);
        for (size_t i = 0; i < image_bytes(&result); i++)
            assert_int_equal(result.samples[i], 77); /* blurred, a constant image stays what it was */
        image_free(&image);
    }
    pipeline_close(&pipeline);
}

static void test_a_named_variant_is_refused_before_and_with_the_image(void **state)
{
    (void)state;
    static struct filter edge, blur;
    struct pipeline pipeline;
    struct error error;
    find("edge", &edge);
    find("blur", &blur);
    struct request request = {.filters = &edge, .count = 1, .cpu_fallback = true};
    request.variant = variant_find("separable", &error); /* which edge is not */
    assert_non_null(request.variant);
    assert_false(pipeline_check(&request, &error));
    assert_non_null(strstr(error.message, "separable"));
    assert_false(plan_image(&pipeline, &request, 64, 8, &error));
    assert_int_equal(pipeline.fallback.code, ERROR_NONE); /* the CPU does not take over */
    pipeline_close(&pipeline);

    request.filters = &blur;
    request.variant = variant_find("basic", &error); /* which takes no samples of 16 bits */
    assert_non_null(request.variant);
    assert_false(plan_image(&pipeline, &request, 64, 16, &error));
    assert_int_equal(pipeline.fallback.code, ERROR_NONE);
    pipeline_close(&pipeline);

    request.variant = variant_find("reference", &error);
    assert_true(pipeline_check(&request, &error));
    assert_true(plan_image(&pipeline, &request, 64, 16, &error));
    assert_ptr_equal(pipeline.plans[0].variant, request.variant);
    pipeline_close(&pipeline);
}

/* ---- Bands ---- */

static void fill(struct image *image)
{
    uint32_t state = 1;
    for (size_t i = 0; i < image_bytes(image); i++) {
        state = state * 1664525 + 1013904223;
        image->samples[i] = (uint8_t)(state >> 24);
    }
}

/* Filter IMAGE in place. *KEPT becomes the bytes that the pipeline kept for it. */
static void run(const struct request *request, struct image *image, size_t *kept)
{
    struct pipeline pipeline;
    struct stages stages;
    struct error error;
    struct image result;
    stages_begin(&stages);
    assert_true(pipeline_open(&pipeline, request, &error));
    assert_true(pipeline_plan(&pipeline, image, &stages, &error));
    assert_true(pipeline_run(&pipeline, image, &result, &error));
    *kept = pipeline_kept(&pipeline);
    assert_in_range(*kept, 1,
                    pipeline_need(&pipeline, image->width, image->height, image->channels, image->bits) + 128);
    pipeline_shrink(&pipeline);
    assert_int_equal(pipeline_kept(&pipeline), 0);
    pipeline_close(&pipeline);
}

/* A chain never goes in bands, and identity changes nothing: the filter alone must give the same bytes as with identity
 * behind it. */
static void check_bands(const struct filter *filter, enum border border, int width, int height, int channels, int bits)
{
    static struct filter chain[2];
    struct image banded, whole;
    struct error error;
    size_t banded_bytes, whole_bytes;
    chain[0] = *filter;
    find("identity", &chain[1]);
    assert_true(image_allocate(&banded, width, height, channels, bits, &error));
    assert_true(image_allocate(&whole, width, height, channels, bits, &error));
    fill(&banded);
    fill(&whole);
    struct request request = {.filters = chain, .count = 1, .border = border, .choice = CHOICE_CPU};
    run(&request, &banded, &banded_bytes);
    request.count = 2;
    run(&request, &whole, &whole_bytes);
    if (border != BORDER_WRAP)
        assert_true(banded_bytes < whole_bytes); /* there were bands */
    assert_memory_equal(banded.samples, whole.samples, image_bytes(&whole));
    image_free(&banded);
    image_free(&whole);
}

/* A column of HEIGHT taps that differ, so that a row out of place shows. */
static void make_column(int height, int anchor, struct filter *filter)
{
    char text[2048];
    struct error error;
    size_t used = (size_t)snprintf(text, sizeof text, "anchor 0 %d\nscale %d\n", anchor, 2 * height);
    for (int i = 0; i < height; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d\n", i % 5 + (i == anchor));
    if (!filter_parse(text, used, "column", filter, &error))
        fail_msg("%s", error.message);
}

/* The halo's sizes above and below, all borders, and last bands of every kind of height: a band of 1 MiB has 249 rows
 * of 4200 bytes, and one of no more rows than the halo below is joined to the band before. */
static void test_bands_give_the_whole_images_bytes(void **state)
{
    (void)state;
    enum { HEIGHT = 15, BAND = 249 };
    static struct filter filter;
    static const int anchors[] = {0, 7, HEIGHT - 1};
    for (size_t k = 0; k < sizeof anchors / sizeof anchors[0]; k++) {
        const int below = HEIGHT - 1 - anchors[k];
        const int last[] = {0, 1, below, below + 1};
        make_column(HEIGHT, anchors[k], &filter);
        for (enum border border = 0; border < BORDER_COUNT; border++)
            for (size_t i = 0; i < sizeof last / sizeof last[0]; i++)
                check_bands(&filter, border, 1400, 2 * BAND + last[i] + (last[i] == 0 ? BAND : 0), 3, 8);
    }
}

/* The tallest filter, whose bands have 16 times its rows. */
static void test_bands_of_a_tall_filter(void **state)
{
    (void)state;
    enum { HEIGHT = 127, BAND = 16 * HEIGHT };
    static struct filter filter;
    make_column(HEIGHT, 5, &filter);
    for (enum border border = 0; border < BORDER_COUNT; border++)
        check_bands(&filter, border, 530, 2 * BAND + 121, 1, 8);
}

/* Rows of twice as many bytes. */
static void test_bands_of_16_bits(void **state)
{
    (void)state;
    static struct filter filter;
    make_column(9, 2, &filter);
    check_bands(&filter, BORDER_REFLECT, 1400, 500, 3, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_image_stays_on_the_cpu),
        cmocka_unit_test(test_a_large_image_goes_to_a_gpu),
        cmocka_unit_test(test_a_request_overrules_the_choice),
        cmocka_unit_test(test_a_missing_gpu_is_an_error_where_it_was_asked_for),
        cmocka_unit_test(test_the_cpu_takes_over_for_this_and_all_later_images),
        cmocka_unit_test(test_a_named_variant_is_refused_before_and_with_the_image),
        cmocka_unit_test(test_bands_give_the_whole_images_bytes),
        cmocka_unit_test(test_bands_of_a_tall_filter),
        cmocka_unit_test(test_bands_of_16_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
