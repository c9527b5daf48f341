/* SPDX-License-Identifier: MIT
 *
 * Plans are made and prepared once for many images, not once an image or a band: for an image like the last, only the
 * image, its bands and the threads' scratch are allocated, the scratch once a launch. The linker passes the allocations
 * of the program's own code to the functions here (-Wl,--wrap). */
#include "base/error.h"
#include "filter/filter.h"
#include "image/image.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/helpers.h"

static size_t allocations, scratches;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);

void *__wrap_malloc(size_t size)
{
    allocations++;
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    allocations++;
    return __real_calloc(count, size);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    scratches++;
    return __real_aligned_alloc(alignment, size);
}

/* Images of 8 bits that go through the pipeline in bands, and of both depths. */
enum { WIDTH = 1500, HEIGHT = 1800 };

static struct image make_image(int bits)
{
    struct image image;
    assert_true(image_allocate(&image, WIDTH, HEIGHT, 3, bits, NULL));
    for (size_t i = 0; i < image_bytes(&image); i++)
        image.samples[i] = (uint8_t)(i * i >> 5);
    return image;
}

/* Filter an image of BITS bits. *ALLOCATED becomes the number of allocations, and *LAUNCHES that of launches. Returns
 * the image's plans. */
static const struct plan *filter_image(struct pipeline *pipeline, const struct recipe *recipe, int bits,
                                       size_t *allocated, size_t *launches)
{
    struct phases phases;
    struct image image = make_image(bits), result = {0};
    phases_begin(&phases);
    const size_t before = allocations, launched = scratches;
    struct pipeline_run run = {.pipeline = pipeline, .recipe = recipe, .input.shape = image, .phases = &phases};
    pipeline_choose(&run);
    assert_true(pipeline_plan(&run, &image, NULL));
    assert_true(pipeline_run(&run, &(struct end){.kind = END_HOST, .image = &image},
                             &(struct end){.kind = END_HOST, .image = &result}, NULL));
    *allocated = allocations - before;
    *launches = scratches - launched;
    image_free(&image);
    return run.planned->plans;
}

static void test_an_image_like_the_last_needs_no_new_plans(void **state)
{
    (void)state;
    static const char *const specs[] = {"sharpen", "blur", "gaussian:3", "box9", "sobel", "unsharp"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        static struct filter filter;
        assert_true(filter_find(specs[i], &filter, NULL, NULL));
        const struct recipe recipe = {.chain = CHAIN(&filter, 1), .choice = CHOICE_CPU};
        struct pipeline pipeline;
        size_t first, second, launches;
        pipeline_open(&pipeline, &(struct resources){.pool = NULL});
        const void *prepared = filter_image(&pipeline, &recipe, 8, &first, &launches)->prepared;
        assert_true(launches > 1);
        assert_ptr_equal(filter_image(&pipeline, &recipe, 8, &second, &launches)->prepared, prepared);
        assert_true(second < first);
        /* Samples of 16 bits need plans of their own. */
        filter_image(&pipeline, &recipe, 16, &first, &launches);
        assert_true(first > second);
        filter_image(&pipeline, &recipe, 16, &first, &launches);
        assert_int_equal(first, second);
        pipeline_close(&pipeline);
    }
}

/* A decoder has made the image smaller. The first filter gives the result the size that it has for the full image, also
 * if the next image has the same size and was larger before. */
static void test_a_shrunk_image_gets_the_size_of_the_full_one(void **state)
{
    (void)state;
    static struct filter filters[2];
    const struct {
        int width, height, made;
    } full[] = {{311, 237, 30}, {311, 238, 31}, {312, 238, 31}, {311, 237, 30}, {0, 0, 31}};
    assert_true(filter_find("thumbnail:40x", &filters[0], NULL, NULL));
    assert_true(filter_find("mirror:x", &filters[1], NULL, NULL));
    const struct recipe recipe = {.chain = CHAIN(filters, 2), .choice = CHOICE_CPU};
    struct pipeline pipeline;
    pipeline_open(&pipeline, &(struct resources){.pool = NULL});
    for (size_t i = 0; i < sizeof full / sizeof *full; i++) {
        struct phases phases;
        struct image image, result = {0};
        assert_true(image_allocate(&image, 156, 119, 3, 8, NULL));
        memset(image.samples, 200, image_bytes(&image));
        struct pipeline_run run = {
            .pipeline = &pipeline,
            .recipe = &recipe,
            .input = {.shape = image, .full_width = full[i].width, .full_height = full[i].height},
            .phases = &phases};
        phases_begin(&phases);
        pipeline_choose(&run);
        assert_true(pipeline_plan(&run, &image, NULL));
        assert_true(pipeline_run(&run, &(struct end){.kind = END_HOST, .image = &image},
                                 &(struct end){.kind = END_HOST, .image = &result}, NULL));
        assert_int_equal(result.width, 40);
        assert_int_equal(result.height, full[i].made);
        for (size_t k = 0; k < image_bytes(&result); k++)
            assert_int_equal(result.samples[k], 200);
        image_free(&image);
    }
    pipeline_close(&pipeline);
}

/* A pipeline keeps the plans of PLANNED_MAX recipes. It drops those of the one that was not used for the longest
 * time. */
static void test_recipes_in_turn_need_no_new_plans(void **state)
{
    (void)state;
    static struct filter filters[PLANNED_MAX + 1];
    struct recipe recipes[PLANNED_MAX + 1];
    const void *prepared[PLANNED_MAX + 1];
    struct pipeline pipeline;
    size_t allocated, launches;
    pipeline_open(&pipeline, &(struct resources){.pool = NULL});
    for (int i = 0; i <= PLANNED_MAX; i++) {
        assert_true(filter_find("box9", &filters[i], NULL, NULL));
        recipes[i] = (struct recipe){.chain = chain_make(NULL, 0, NULL), .choice = CHOICE_CPU};
        assert_non_null(recipes[i].chain);
        recipes[i].chain->count = 1;
        recipes[i].chain->filters = &filters[i];
        prepared[i] = filter_image(&pipeline, &recipes[i], 8, &allocated, &launches)->prepared;
    }
    for (int i = 1; i <= PLANNED_MAX; i++) {
        assert_ptr_equal(filter_image(&pipeline, &recipes[i], 8, &allocated, &launches)->prepared, prepared[i]);
        assert_int_equal(atomic_load(&recipes[i].chain->references), 2);
    }
    assert_int_equal(atomic_load(&recipes[0].chain->references), 1);
    /* A chain with another border is another recipe. */
    struct recipe wrapped = recipes[PLANNED_MAX];
    wrapped.border = BORDER_WRAP;
    assert_int_equal(filter_image(&pipeline, &wrapped, 8, &allocated, &launches)->border, BORDER_WRAP);
    assert_int_equal(atomic_load(&recipes[1].chain->references), 1);
    pipeline_close(&pipeline);
    for (int i = 0; i <= PLANNED_MAX; i++) {
        assert_int_equal(atomic_load(&recipes[i].chain->references), 1);
        recipes[i].chain->filters = NULL;
        chain_release(recipes[i].chain);
    }
}

static void test_a_plan_is_prepared_once(void **state)
{
    (void)state;
    enum { SIDE = 40 };
    static uint8_t in[SIDE * SIDE], out[2][SIDE * SIDE];
    static struct filter filter;
    struct plan plan;
    for (size_t i = 0; i < sizeof in; i++)
        in[i] = (uint8_t)(i * i >> 3);
    assert_true(filter_find("gaussian:2", &filter, NULL, NULL));
    assert_true(variant_plan(&plan, &filter, BORDER_REFLECT, SAMPLE_U8, variant_find("cpu", NULL), NULL));
    assert_null(plan.prepared);
    assert_true(variant_prepare(&plan, NULL, NULL));
    const void *prepared = plan.prepared;
    assert_non_null(prepared);
    assert_true(variant_prepare(&plan, NULL, NULL));
    assert_ptr_equal(plan.prepared, prepared);
    for (int k = 0; k < 2; k++) {
        const struct plane from = {SAMPLE_U8, SIDE, SIDE, 1, SIDE, sizeof in, in, false, STORED_FLOAT};
        const struct plane to = {SAMPLE_U8, SIDE, SIDE, 1, SIDE, sizeof out[k], out[k], false, STORED_FLOAT};
        const size_t before = allocations, launched = scratches;
        assert_true(variant_launch(&plan, NULL, &from, &to, NULL));
        assert_int_equal(allocations, before);
        assert_int_equal(scratches, launched + 1);
        assert_ptr_equal(plan.prepared, prepared);
    }
    assert_memory_equal(out[0], out[1], sizeof out[0]);
    plan_free(&plan);
    assert_null(plan.prepared);
    plan_free(&plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_image_like_the_last_needs_no_new_plans),
        cmocka_unit_test(test_a_shrunk_image_gets_the_size_of_the_full_one),
        cmocka_unit_test(test_recipes_in_turn_need_no_new_plans),
        cmocka_unit_test(test_a_plan_is_prepared_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
