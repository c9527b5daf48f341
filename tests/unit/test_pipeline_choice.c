/* SPDX-License-Identifier: MIT
 *
 * The pipeline's choice of the backend, and its fallback to the CPU. */
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
    if (!filter_find(spec, filter, NULL, &error))
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
    static struct phases phases;
    const struct pipeline_input input = {.shape = shape(side, side, bits), .alpha = request->alpha};
    phases_begin(&phases);
    assert_true(pipeline_open(pipeline, request, error));
    return pipeline_plan(pipeline, &input, pipeline_choose(pipeline, &input, &phases), &phases, error);
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
    assert_null(pipeline.device);
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
    assert_true((pipeline.device != NULL) == (pipeline.backend == BACKEND_CUDA));
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
    assert_true(pipeline_check(&request, &error));
    assert_false(pipeline_check_gpu(&request, &error));
    assert_non_null(strstr(error.message, "no GPU can be used: "));
    assert_non_null(strstr(error.message, "; --backend cpu works on every machine"));
    assert_false(plan_image(&pipeline, &request, 64, 8, &error));
    assert_int_equal(error.code, ERROR_NO_GPU);
    pipeline_close(&pipeline);
}

static void test_the_cpu_takes_over_for_this_and_all_later_images(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct error error;
    struct phases phases;
    find("blur", &filter);
    const struct request request = {
        .filters = &filter, .count = 1, .choice = CHOICE_CUDA, .device = 1000000, .cpu_fallback = true};
    assert_true(plan_image(&pipeline, &request, 64, 8, &error));
    assert_int_equal(pipeline.backend, BACKEND_CPU);
    assert_int_equal(pipeline.fallback.code, ERROR_NO_GPU);
    assert_true(pipeline.fallback.message[0] != '\0');
    struct image image, result;
    for (int bits = 8; bits <= 16; bits += 8) {
        assert_true(image_allocate(&image, 64, 64, 3, bits, &error));
        memset(image.samples, 77, image_bytes(&image));
        phases_begin(&phases);
        const struct pipeline_input input = {.shape = image};
        const enum backend backend = pipeline_choose(&pipeline, &input, &phases);
        assert_true(pipeline_plan(&pipeline, &input, backend, &phases, &error));
        assert_true(pipeline_run(&pipeline, &image, NULL, &result, &error));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_image_stays_on_the_cpu),
        cmocka_unit_test(test_a_large_image_goes_to_a_gpu),
        cmocka_unit_test(test_a_request_overrules_the_choice),
        cmocka_unit_test(test_a_missing_gpu_is_an_error_where_it_was_asked_for),
        cmocka_unit_test(test_the_cpu_takes_over_for_this_and_all_later_images),
        cmocka_unit_test(test_a_named_variant_is_refused_before_and_with_the_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
