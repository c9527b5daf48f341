/* SPDX-License-Identifier: MIT
 *
 * The pipeline's choice of the backend, and its fallback to the CPU. */
#include "base/error.h"
#include "base/parallel.h"
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

#include "tests/lib/helpers.h"

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

/* GPU number 1000000 exists nowhere. */
static const struct resources plain, missing = {.device = 1000000},
                                     fallback = {.device = 1000000, .cpu_fallback = true};

/* Open PIPELINE and plan an image of that shape. */
static bool plan_image(struct pipeline *pipeline, struct pipeline_run *run, const struct recipe *recipe,
                       const struct resources *resources, int side, int bits, struct error *error)
{
    static struct phases phases;
    const struct image image = shape(side, side, bits);
    phases_begin(&phases);
    pipeline_open(pipeline, resources);
    *run = (struct pipeline_run){.pipeline = pipeline, .recipe = recipe, .input.shape = image, .phases = &phases};
    pipeline_choose(run);
    return pipeline_plan(run, &image, error);
}

static void test_a_small_image_stays_on_the_cpu(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct pipeline_run run;
    struct error error;
    find("blur", &filter);
    const struct recipe recipe = {.chain = CHAIN(&filter, 1)};
    assert_true(plan_image(&pipeline, &run, &recipe, &plain, 64, 8, &error));
    assert_int_equal(run.backend, BACKEND_CPU);
    assert_non_null(strstr(pipeline.why.message, "the CPU is expected to take"));
    assert_int_equal(run.planned->plans[0].variant->backend, BACKEND_CPU);
    assert_null(pipeline.device);
    pipeline_close(&pipeline);
}

/* If there is a GPU, it takes a large image with a large filter, however many processors there are. Otherwise the CPU
 * takes the image without an error. (A GPU takes at most 2^30 samples.) */
static void test_a_large_image_goes_to_a_gpu(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct pipeline_run run;
    struct error error;
    find("disk:63", &filter);
    const struct recipe recipe = {.chain = CHAIN(&filter, 1)};
    assert_true(plan_image(&pipeline, &run, &recipe, &plain, 15000, 8, &error));
    assert_int_equal(run.backend, pipeline_gpus() > 0 ? BACKEND_CUDA : BACKEND_CPU);
    assert_int_equal(run.planned->plans[0].variant->backend, run.backend);
    assert_true((pipeline.device != NULL) == (run.backend == BACKEND_CUDA));
    assert_true((strstr(pipeline.why.message, "a GPU is expected to take") != NULL) == (pipeline_gpus() > 0));
    assert_int_equal(pipeline.fallback.code, ERROR_NONE);
    pipeline_close(&pipeline);
}

static void test_a_recipe_overrules_the_choice(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct pipeline_run run;
    struct error error;
    find("gaussian:20", &filter);
    const struct recipe recipe = {.chain = CHAIN(&filter, 1), .choice = CHOICE_CPU};
    assert_true(pipeline_check(&recipe, &error));
    assert_true(plan_image(&pipeline, &run, &recipe, &plain, 30000, 8, &error));
    assert_int_equal(run.backend, BACKEND_CPU);
    assert_string_equal(pipeline.why.message, "asked for");
    pipeline_close(&pipeline);
}

static void test_a_missing_gpu_is_an_error_where_it_was_asked_for(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct pipeline_run run;
    struct error error;
    find("blur", &filter);
    const struct recipe recipe = {.chain = CHAIN(&filter, 1), .choice = CHOICE_CUDA};
    assert_true(pipeline_check(&recipe, &error));
    assert_false(pipeline_check_gpu(&recipe, &missing, &error));
    assert_non_null(strstr(error.message, "no GPU can be used: "));
    assert_non_null(strstr(error.message, "; --backend cpu works on every machine"));
    assert_false(plan_image(&pipeline, &run, &recipe, &missing, 64, 8, &error));
    assert_int_equal(error.code, ERROR_NO_GPU);
    pipeline_close(&pipeline);
}

static void test_the_cpu_takes_over_for_this_and_all_later_images(void **state)
{
    (void)state;
    static struct filter filter;
    struct pipeline pipeline;
    struct pipeline_run run;
    struct error error;
    struct phases phases;
    find("blur", &filter);
    const struct recipe recipe = {.chain = CHAIN(&filter, 1), .choice = CHOICE_CUDA};
    assert_true(plan_image(&pipeline, &run, &recipe, &fallback, 64, 8, &error));
    assert_int_equal(run.backend, BACKEND_CPU);
    assert_int_equal(pipeline.fallback.code, ERROR_NO_GPU);
    assert_true(pipeline.fallback.message[0] != '\0');
    struct image image;
    for (int bits = 8; bits <= 16; bits += 8) {
        assert_true(image_allocate(&image, 64, 64, 3, bits, &error));
        memset(image.samples, 77, image_bytes(&image));
        phases_begin(&phases);
        struct image result = {0};
        const struct end in = {.kind = END_HOST, .image = &image};
        struct end out = {.kind = END_HOST, .image = &result};
        run = (struct pipeline_run){.pipeline = &pipeline, .recipe = &recipe, .input.shape = image, .phases = &phases};
        pipeline_choose(&run);
        assert_true(pipeline_plan(&run, &image, &error));
        assert_true(pipeline_run(&run, &in, &out, &error));
        assert_int_equal(run.backend, BACKEND_CPU);
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
    struct pipeline_run run;
    struct error error;
    find("edge", &edge);
    find("blur", &blur);
    struct recipe recipe = {.chain = CHAIN(&edge, 1)};
    recipe.variant = variant_find("separable", &error); /* which edge is not */
    assert_non_null(recipe.variant);
    assert_false(pipeline_check(&recipe, &error));
    assert_non_null(strstr(error.message, "separable"));
    assert_false(plan_image(&pipeline, &run, &recipe, &fallback, 64, 8, &error));
    assert_int_equal(pipeline.fallback.code, ERROR_NONE); /* the CPU does not take over */
    pipeline_close(&pipeline);

    recipe.chain = CHAIN(&blur, 1);
    recipe.variant = variant_find("basic", &error); /* which takes no samples of 16 bits */
    assert_non_null(recipe.variant);
    assert_false(plan_image(&pipeline, &run, &recipe, &fallback, 64, 16, &error));
    assert_int_equal(pipeline.fallback.code, ERROR_NONE);
    pipeline_close(&pipeline);

    recipe.variant = variant_find("reference", &error);
    assert_true(pipeline_check(&recipe, &error));
    assert_true(plan_image(&pipeline, &run, &recipe, &fallback, 64, 16, &error));
    assert_ptr_equal(run.planned->plans[0].variant, recipe.variant);
    pipeline_close(&pipeline);
}

/* A stream of JPEGs. A GPU starts when it would have saved as much as its start takes: after a few photos, on one
 * thread each or on all of them, after more smaller pictures, and never for tiny ones. It counts how many are at work,
 * not how many could be. A start that a job has asked for is paid. */
static void test_a_stream_learns(void **state)
{
    (void)state;
    static struct filter filter;
    struct thread_pool pool;
    const struct {
        int side, channels, threads, busy, step;
        int min, max; /* images until the start; 1000 for never */
    } cases[] = {{3900, 3, 16, 1, GPU_NONE, 8, 20},   {3900, 3, 1, 16, GPU_NONE, 22, 60},
                 {3900, 4, 1, 16, GPU_NONE, 22, 60},  {3900, 3, 1, 1, GPU_NONE, 2, 4},
                 {1000, 3, 1, 1, GPU_NONE, 15, 40},   {300, 3, 1, 1, GPU_NONE, 200, 600},
                 {60, 3, 1, 1, GPU_NONE, 1000, 1000}, {60, 3, 1, 16, GPU_CONTEXT, 1000, 1000},
                 {3900, 3, 16, 1, GPU_CONTEXT, 1, 1}};
    find("blur", &filter);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct gpu_start gpu = {.device = 1000000, .step = cases[i].step};
        struct batch_choice choice = {
            .balance.workers = 16, .gpus = &gpu, .gpu_count = 1, .mutex = PTHREAD_MUTEX_INITIALIZER};
        const struct resources resources = {.pool = &pool, .batch = &choice, .start = &gpu};
        const struct recipe recipe = {.chain = CHAIN(&filter, 1), .alpha = ALPHA_PREMULTIPLY};
        struct pipeline_input input = {.shape = shape(cases[i].side, cases[i].side, 8),
                                       .gpu_decodes = END_JPEG,
                                       .gpu_encodes = END_JPEG,
                                       .busy = cases[i].busy};
        struct pipeline pipeline;
        struct phases phases;
        struct error error;
        int images = 0;
        input.shape.channels = cases[i].channels;
        phases_begin(&phases);
        thread_pool_open(&pool, cases[i].threads);
        pipeline_open(&pipeline, &resources);
        for (; images < 1000 && !choice.uses_gpus; images++) {
            struct pipeline_run run = {.pipeline = &pipeline, .recipe = &recipe, .input = input, .phases = &phases};
            pipeline_choose(&run);
            assert_true(pipeline_plan(&run, &input.shape, &error)); /* which chooses again if alpha may be opaque */
        }
        assert_in_range(images, cases[i].min, cases[i].max);
        assert_non_null(strstr(choice.why.message, !choice.uses_gpus              ? "a GPU would have saved 0.00 s, "
                                                   : cases[i].step == GPU_CONTEXT ? "a GPU has started for "
                                                                                  : "a GPU began to start when it "));
        pipeline_close(&pipeline);
        gpu_start_end(&gpu);
        thread_pool_close(&pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_small_image_stays_on_the_cpu),
        cmocka_unit_test(test_a_stream_learns),
        cmocka_unit_test(test_a_large_image_goes_to_a_gpu),
        cmocka_unit_test(test_a_recipe_overrules_the_choice),
        cmocka_unit_test(test_a_missing_gpu_is_an_error_where_it_was_asked_for),
        cmocka_unit_test(test_the_cpu_takes_over_for_this_and_all_later_images),
        cmocka_unit_test(test_a_named_variant_is_refused_before_and_with_the_image),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
