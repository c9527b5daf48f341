/* SPDX-License-Identifier: MIT
 *
 * Images that stream through the CPU's filters in bands give the bytes of whole planes: every border, anchor and height
 * of the last band, chains, alpha, linear light, 16 bits, any number of threads, rows from memory and from functions,
 * in order and in any order. A source or a sink that fails ends the stream. */
#include "base/error.h"
#include "base/parallel.h"
#include "filter/filter.h"
#include "image/image.h"
#include "image/linear.h"
#include "pipeline/pipeline.h"
#include "plan/plan.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "tests/lib/helpers.h"

/* A set of planes of BAND_BYTES (stream.c): 124 rows of 1400 pixels with 3 channels. */
enum { WIDTH = 1400, BAND = 124, CHAIN_MAX = 3 };

static struct image make_image(int width, int height, int channels, int bits)
{
    struct image image;
    uint32_t state = 1;
    assert_true(image_allocate(&image, width, height, channels, bits, NULL));
    for (size_t i = 0, bytes = image_bytes(&image); i < bytes; i++) {
        state = state * 1664525 + 1013904223;
        image.samples[i] = (uint8_t)(state >> 24);
    }
    return image;
}

/* An image of the shape of SHAPE, with one value in all bytes. */
static struct image make_blank(const struct image *shape)
{
    struct image image;
    assert_true(image_allocate(&image, shape->width, shape->height, shape->channels, shape->bits, NULL));
    memset(image.samples, 0xEE, image_bytes(&image));
    return image;
}

/* A column of HEIGHT taps that differ, so that a row out of place shows. */
static struct filter make_column(int height, int anchor)
{
    char text[2048];
    size_t used = (size_t)snprintf(text, sizeof text, "anchor 0 %d\nscale %d\n", anchor, 2 * height);
    for (int i = 0; i < height; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%d\n", i % 5 + (i == anchor));
    return parsed(text);
}

/* ---- The expected image ---- */

/* A curve for linear light. Many dark levels have the same light. */
static const struct curve curve = {.g = 2.6, .a = 1};

/* Apply the filters to whole planes, one launch each. */
static void filter_whole(const struct recipe *recipe, struct image *image)
{
    const struct work work = recipe_work(recipe, recipe->alpha, image, 1);
    const bool rounds = recipe->linear || (recipe->alpha == ALPHA_PREMULTIPLY && image_has_alpha(image));
    struct linear *linear = recipe->linear ? linear_allocate(NULL) : NULL;
    struct plane planes[2];
    int in = 0;
    assert_true(!recipe->linear || linear_set(linear, &curve, 1, image->bits));
    for (int i = 0; i < 2; i++)
        assert_true(plane_allocate(&planes[i], work.sample, image->width, image->height, work.planes, NULL));
    planes[0].count = image_planes(image, recipe_alpha(recipe, &work, recipe->alpha, 0));
    image_split(image, recipe_alpha(recipe, &work, recipe->alpha, 0), linear, &planes[0]);
    for (size_t i = 0; i < recipe->chain->count; i++, in = !in) {
        struct plan plan;
        if (i > 0 && rounds) {
            image_merge(&planes[in], recipe_alpha(recipe, &work, recipe->alpha, i - 1), linear, image);
            planes[in].count = image_planes(image, recipe_alpha(recipe, &work, recipe->alpha, i));
            image_split(image, recipe_alpha(recipe, &work, recipe->alpha, i), linear, &planes[in]);
        }
        planes[!in].count = planes[in].count;
        assert_true(variant_plan(&plan, &recipe->chain->filters[i], recipe->border, work.sample,
                                 variant_find("cpu", NULL), NULL));
        assert_true(variant_prepare(&plan, NULL, NULL));
        assert_true(variant_launch(&plan, NULL, &planes[in], &planes[!in], NULL));
        plan_free(&plan);
    }
    image_merge(&planes[in], recipe_alpha(recipe, &work, recipe->alpha, recipe->chain->count - 1), linear, image);
    free(linear);
    plane_free(&planes[0]);
    plane_free(&planes[1]);
}

/* ---- Rows by functions ---- */

struct call_rows {
    const struct image *in;
    struct image out;
    struct image above; /* the row above each encoded band, as the band's encoder saw it; other rows are not set */
    bool *encoded;      /* for each row */
    int fetched, read, written, multiple;
    bool any_order;
    int source_multiple;
    atomic_uint *calls; /* for each row, of sources in any order: 1 if it was fetched, 2 if it was read */
    int fail_at;        /* the row whose fetch, read, encode or write fails */
    enum { FAIL_NEVER, FAIL_FETCH, FAIL_READ, FAIL_ENCODE, FAIL_WRITE } fails;
};

static bool maybe_fail(const struct call_rows *rows, int kind, int first, int count, struct error *error)
{
    if ((int)rows->fails != kind || rows->fail_at < first || rows->fail_at >= first + count)
        return true;
    return error_set(error, ERROR_WORK, "failed at row %d", rows->fail_at);
}

static size_t bytes_of(const struct image *image, int rows)
{
    return (size_t)rows * (size_t)image->width * image_pixel_bytes(image);
}

/* Raw rows are the image's with all bits flipped. */
static bool fetch(void *context, int first, int count, uint8_t *raw, struct error *error)
{
    struct call_rows *rows = context;
    assert_int_equal(first, rows->fetched);
    const uint8_t *from = image_row(rows->in, rows->fetched);
    for (size_t i = 0, bytes = bytes_of(rows->in, count); i < bytes; i++)
        raw[i] = (uint8_t)~from[i];
    rows->fetched += count;
    return maybe_fail(rows, FAIL_FETCH, rows->fetched - count, count, error);
}

static bool read_rows(void *context, int first, int count, const struct rows *raw, uint8_t *samples,
                      struct error *error)
{
    struct call_rows *rows = context;
    assert_int_equal(first, rows->read);
    for (size_t i = 0, bytes = bytes_of(rows->in, count); i < bytes; i++)
        samples[i] = (uint8_t)~raw->data[i];
    rows->read += count;
    return maybe_fail(rows, FAIL_READ, rows->read - count, count, error);
}

/* Let other threads go ahead as far as they may, where these rows are amid the image. */
static void pause_amid(const struct call_rows *rows, int first, int count)
{
    const struct timespec milliseconds = {.tv_nsec = 5000000};
    const int middle = rows->in->height / 2;
    if (rows->any_order && first <= middle && middle < first + count)
        nanosleep(&milliseconds, NULL);
}

/* Note that the rows from FIRST on are fetched or read, for the first time. All but the last are whole multiples. */
static void note_call(const struct call_rows *rows, int first, int count, unsigned call)
{
    assert_int_equal(first % rows->source_multiple, 0);
    assert_true(count > 0 && (count % rows->source_multiple == 0 || first + count == rows->in->height));
    for (int y = first; y < first + count; y++)
        assert_int_equal(atomic_fetch_or(&rows->calls[y], call), call - 1);
    sched_yield();
}

/* Raw rows up to the multiple are there, but hold nothing. */
static bool fetch_any(void *context, int first, int count, uint8_t *raw, struct error *error)
{
    const struct call_rows *rows = context;
    const uint8_t *from = image_row(rows->in, first);
    const int multiple = rows->source_multiple, whole = (count + multiple - 1) / multiple * multiple;
    memset(raw, 0xEE, bytes_of(rows->in, whole));
    note_call(rows, first, count, 1);
    for (size_t i = 0, bytes = bytes_of(rows->in, count); i < bytes; i++)
        raw[i] = (uint8_t)~from[i];
    return maybe_fail(rows, FAIL_FETCH, first, count, error);
}

/* Is RAW what fetches have made of the COUNT rows from FIRST on? */
static bool is_fetched(const struct call_rows *rows, int first, int count, const uint8_t *raw)
{
    const uint8_t *from = image_row(rows->in, first);
    unsigned differences = 0;
    for (size_t i = 0, bytes = bytes_of(rows->in, count); i < bytes; i++)
        differences |= raw[i] ^ (from[i] ^ 0xFFU);
    return differences == 0;
}

/* A read takes a unit of rows above it and below, and they stay as they are while it lasts. */
static bool read_any(void *context, int first, int count, const struct rows *raw, uint8_t *samples, struct error *error)
{
    const struct call_rows *rows = context;
    const int unit = rows->source_multiple, left = rows->in->height - first - count, below = left < unit ? left : unit;
    assert_true((raw->above != NULL) == (first > 0) && (raw->below != NULL) == (left > 0));
    for (int i = 0; i < 2; i++) {
        assert_true(is_fetched(rows, first, count, raw->data));
        assert_true(first == 0 || is_fetched(rows, first - unit, unit, raw->above - bytes_of(rows->in, unit)));
        assert_true(left == 0 || is_fetched(rows, first + count, below, raw->below));
        if (i == 0) {
            note_call(rows, first, count, 2);
            pause_amid(rows, first, count);
        }
    }
    memcpy(samples, image_row(rows->in, first), bytes_of(rows->in, count));
    return maybe_fail(rows, FAIL_READ, first, count, error);
}

static bool encode(void *context, int thread, int first, const struct image *band, struct error *error)
{
    struct call_rows *rows = context;
    assert_true(thread >= 0 && thread < 8);
    assert_int_equal(first % rows->multiple, 0);
    assert_true(band->height % rows->multiple == 0 || first + band->height == rows->out.height);
    memcpy(image_row(&rows->out, first), band->samples, image_bytes(band));
    if (first > 0)
        memcpy(image_row(&rows->above, first - 1), band->samples - bytes_of(band, 1), bytes_of(band, 1));
    for (int y = first; y < first + band->height; y++)
        rows->encoded[y] = true;
    pause_amid(rows, first, band->height);
    return maybe_fail(rows, FAIL_ENCODE, first, band->height, error);
}

static bool write_rows(void *context, int first, const struct image *band, struct error *error)
{
    struct call_rows *rows = context;
    assert_int_equal(first, rows->written);
    for (int y = first; y < first + band->height; y++)
        assert_true(rows->encoded[y]);
    assert_memory_equal(image_row(&rows->out, first), band->samples, image_bytes(band));
    if (first > 0)
        assert_memory_equal(image_row(&rows->above, first - 1), image_row(&rows->out, first - 1), bytes_of(band, 1));
    rows->written += band->height;
    return maybe_fail(rows, FAIL_WRITE, first, band->height, error);
}

/* ---- Checks ---- */

static void open_pipeline(struct pipeline *pipeline, struct pipeline_run *run, const struct recipe *recipe,
                          const struct resources *resources, const struct image *image, struct phases *phases)
{
    phases_begin(phases);
    pipeline_open(pipeline, resources);
    assert_true(!recipe->linear || linear_set(pipeline_linear(pipeline, NULL), &curve, 1, image->bits));
    *run = (struct pipeline_run){.pipeline = pipeline, .recipe = recipe, .input.shape = *image, .phases = phases};
    pipeline_choose(run);
    assert_true(pipeline_plan(run, image, NULL));
}

/* Stream IMAGE by functions. ROWS says what fails. */
static bool stream(const struct recipe *recipe, const struct resources *resources, const struct image *image,
                   struct call_rows *rows, struct error *error)
{
    struct pipeline pipeline;
    struct pipeline_run run;
    struct phases phases;
    struct image made = *image;
    rows->in = image;
    assert_true(recipe_resize(recipe, &(struct work){0}, &made, NULL));
    rows->out = make_blank(&made);
    rows->above = make_blank(&made);
    rows->encoded = calloc((size_t)made.height, sizeof *rows->encoded);
    assert_non_null(rows->encoded);
    open_pipeline(&pipeline, &run, recipe, resources, image, &phases);
    const struct row_source in_order = {
        .context = rows, .raw_bytes = bytes_of(image, 1), .multiple = 1, .fetch = fetch, .read = read_rows};
    const struct row_source any_order = {.context = rows,
                                         .raw_bytes = bytes_of(image, 1),
                                         .multiple = rows->source_multiple,
                                         .any_order = true,
                                         .fetch = fetch_any,
                                         .read = read_any};
    rows->calls = calloc((size_t)image->height, sizeof *rows->calls);
    assert_non_null(rows->calls);
    const struct row_sink sink = {
        .context = rows, .multiple = rows->multiple, .reads_above = true, .encode = encode, .write = write_rows};
    struct image unused = *image;
    const struct end in = {.kind = END_ROWS, .image = &unused, .source = rows->any_order ? &any_order : &in_order};
    struct end out = {.kind = END_ROWS, .image = &unused, .sink = &sink};
    const bool done = pipeline_run(&run, &in, &out, error);
    for (int y = 0; done && rows->any_order && y < image->height; y++)
        assert_int_equal(atomic_load(&rows->calls[y]), 3);
    assert_true(!done || rows->any_order || rows->read == image->height);
    pipeline_close(&pipeline);
    free(rows->calls);
    image_free(&rows->above);
    free(rows->encoded);
    return done;
}

/* Rows in any order give the bytes of WHOLE. */
static void check_any_order(const struct recipe *recipe, const struct resources *resources, const struct image *image,
                            const struct image *whole, int source_multiple)
{
    struct call_rows rows = {.multiple = 34, .any_order = true, .source_multiple = source_multiple};
    assert_true(stream(recipe, resources, image, &rows, NULL));
    assert_memory_equal(rows.out.samples, whole->samples, image_bytes(whole));
    assert_int_equal(rows.written, image->height);
    image_free(&rows.out);
}

/* All ways give the bytes of whole planes. */
static void check(struct recipe recipe, int width, int height, int channels, int bits)
{
    const struct image image = make_image(width, height, channels, bits);
    struct image whole, result;
    assert_true(image_convert(&image, bits, &whole, NULL));
    filter_whole(&recipe, &whole);
    for (int threads = 1; threads <= 3; threads += 2) {
        struct thread_pool pool;
        struct pipeline pipeline;
        struct pipeline_run run;
        struct phases phases;
        thread_pool_open(&pool, threads);
        const struct resources resources = {.pool = &pool};
        struct image copy;
        assert_true(image_convert(&image, bits, &copy, NULL));
        open_pipeline(&pipeline, &run, &recipe, &resources, &copy, &phases);
        result = (struct image){0};
        const struct end in = {.kind = END_HOST, .image = &copy};
        struct end out = {.kind = END_HOST, .image = &result};
        assert_true(pipeline_run(&run, &in, &out, NULL));
        assert_memory_equal(result.samples, whole.samples, image_bytes(&whole));
        pipeline_close(&pipeline);
        image_free(&copy);
        struct call_rows rows = {.multiple = threads == 1 ? 1 : 34};
        assert_true(stream(&recipe, &resources, &image, &rows, NULL));
        assert_memory_equal(rows.out.samples, whole.samples, image_bytes(&whole));
        assert_int_equal(rows.written, height);
        image_free(&rows.out);
        if (threads > 1)
            check_any_order(&recipe, &resources, &image, &whole, height % 2 ? 16 : 7);
        thread_pool_close(&pool);
    }
    struct image unused = image;
    image_free(&unused);
    image_free(&whole);
}

/* ---- Tests ---- */

/* Last bands of every kind of height: none, one row, as many as the halo below and one more. Each border meets each of
 * them, and each anchor meets each border and each of them. */
static void test_borders_anchors_and_last_bands(void **state)
{
    (void)state;
    enum { HEIGHT = 15, LAST = 4 };
    static struct filter filter;
    static const int anchors[] = {0, 7, HEIGHT - 1};
    for (int border = 0; border < BORDER_COUNT; border++)
        for (int i = 0; i < LAST; i++) {
            const int anchor = anchors[(border + i) % 3], below = HEIGHT - 1 - anchor;
            const int last[LAST] = {0, 1, below, below + 1};
            filter = make_column(HEIGHT, anchor);
            check((struct recipe){.chain = CHAIN(&filter, 1), .border = (enum border)border, .choice = CHOICE_CPU},
                  WIDTH, 2 * BAND + last[i] + (last[i] == 0 ? BAND : 0), 3, 8);
        }
}

/* The tallest filter, whose bands have four times its halo. */
static void test_a_tall_filter(void **state)
{
    (void)state;
    enum { HEIGHT = 127, ANCHOR = 5, HALO = HEIGHT - 1 - ANCHOR, ROWS = 4 * HALO };
    static struct filter filter;
    filter = make_column(HEIGHT, ANCHOR);
    for (enum border border = 0; border < BORDER_COUNT; border++)
        check((struct recipe){.chain = CHAIN(&filter, 1), .border = border, .choice = CHOICE_CPU}, 1400,
              2 * ROWS + HALO - 1, 1, 8);
}

/* A chain's bands need the halo of all filters, and it rounds between them. */
static void test_chains(void **state)
{
    (void)state;
    static struct filter chain[CHAIN_MAX];
    chain[0] = make_column(9, 1);
    chain[1] = make_column(5, 4);
    assert_true(filter_find("sobel", &chain[2], NULL, NULL));
    for (enum border border = 0; border < BORDER_COUNT; border++)
        for (int channels = 2; channels <= 4; channels++) {
            struct recipe recipe = {.chain = CHAIN(chain, CHAIN_MAX), .border = border, .choice = CHOICE_CPU};
            recipe.alpha = channels == 3 ? ALPHA_FILTER : channels == 2 ? ALPHA_PREMULTIPLY : ALPHA_KEEP;
            check(recipe, WIDTH, 3 * BAND + 7, channels, 8);
            recipe.linear = true;
            check(recipe, WIDTH, BAND + 1, channels, channels == 3 ? 16 : 8);
        }
}

static void test_16_bits(void **state)
{
    (void)state;
    static struct filter filter;
    filter = make_column(9, 2);
    check((struct recipe){.chain = CHAIN(&filter, 1), .border = BORDER_REFLECT, .choice = CHOICE_CPU}, WIDTH, 500, 3,
          16);
    check((struct recipe){.chain = CHAIN(&filter, 1), .alpha = ALPHA_PREMULTIPLY, .choice = CHOICE_CPU}, WIDTH, 300, 4,
          16);
}

/* Small images, in one band, and rows that are wider than a band. */
static void test_one_band_and_single_rows(void **state)
{
    (void)state;
    static struct filter filter;
    filter = make_column(3, 1);
    const struct recipe recipe = {.chain = CHAIN(&filter, 1), .choice = CHOICE_CPU};
    check(recipe, 7, 5, 3, 8);
    check(recipe, 1, 1, 1, 8);
    check(recipe, 200000, 9, 3, 8);
    filter = make_column(1, 0);
    check(recipe, 200000, 5, 3, 8);
}

/* Few and many threads, multiples that bands and strips do not share, halos beyond a strip, and one band for all: all
 * pairs of a height, a multiple and a number of threads. */
static void test_rows_in_any_order(void **state)
{
    static const int heights[] = {1, 3, 15, 127}, multiples[] = {1, 16, 100, 250}, threads[] = {1, 2, 3, 8};
    static struct filter filter;
    (void)state;
    const struct image image = make_image(WIDTH, 7 * BAND + 5, 3, 8);
    for (size_t i = 0; i < sizeof heights / sizeof heights[0]; i++) {
        struct recipe recipe = {.chain = CHAIN(&filter, 1), .choice = CHOICE_CPU};
        struct image whole;
        recipe.border = i == 2 ? BORDER_WRAP : BORDER_REFLECT101;
        filter = make_column(heights[i], heights[i] / 3);
        assert_true(image_convert(&image, 8, &whole, NULL));
        filter_whole(&recipe, &whole);
        for (size_t k = 0; k < 4; k++) {
            struct thread_pool pool;
            thread_pool_open(&pool, threads[k]);
            const struct resources resources = {.pool = &pool};
            check_any_order(&recipe, &resources, &image, &whole, multiples[(i + k) % 4]);
            thread_pool_close(&pool);
        }
        image_free(&whole);
    }
    struct image unused = image;
    image_free(&unused);
}

/* All rows are read, also those that no band needs. */
static void test_rows_that_no_band_needs(void **state)
{
    (void)state;
    static const char *const specs[] = {"crop:300x40+5+600", "crop:1400x700+0+530", "crop:7x1+1+0", "pad:1500x4000"};
    static struct filter filter;
    const struct image image = make_image(WIDTH, 10 * BAND, 3, 8);
    for (size_t i = 0; i < 4 * sizeof specs / sizeof *specs; i++) {
        struct thread_pool pool;
        assert_true(filter_find(specs[i / 4], &filter, NULL, NULL));
        thread_pool_open(&pool, i % 4 < 2 ? 1 : 4);
        const struct recipe recipe = {.chain = CHAIN(&filter, 1), .choice = CHOICE_CPU};
        const struct resources resources = {.pool = &pool};
        struct call_rows rows = {.multiple = 8, .any_order = i % 2, .source_multiple = 16};
        assert_true(stream(&recipe, &resources, &image, &rows, NULL));
        const struct origin origin = filter_origin(&filter, WIDTH, image.height);
        for (int y = 0; y < rows.out.height; y++) {
            const int from = y + origin.y, skip = origin.x < 0 ? -origin.x : 0;
            const int width = filter.move.pads ? WIDTH : rows.out.width;
            if (from >= 0 && from < image.height)
                assert_memory_equal(image_row(&rows.out, y) + 3 * (ptrdiff_t)skip,
                                    image_row(&image, from) + 3 * (ptrdiff_t)(origin.x + skip), 3 * (size_t)width);
        }
        image_free(&rows.out);
        thread_pool_close(&pool);
    }
    struct image unused = image;
    image_free(&unused);
}

/* The first failure ends the stream, and its sentence is the stream's. */
static void test_failures(void **state)
{
    (void)state;
    static struct filter filter;
    filter = make_column(3, 1);
    const struct image image = make_image(WIDTH, 10 * BAND, 3, 8);
    for (int threads = 1; threads <= 4; threads += 3)
        for (int kind = FAIL_FETCH; kind <= FAIL_WRITE; kind++)
            for (int k = 0; k < 4; k++) {
                const int row = k & 1 ? 10 * BAND - 1 : 0;
                struct thread_pool pool;
                struct error error;
                thread_pool_open(&pool, threads);
                const struct recipe recipe = {.chain = CHAIN(&filter, 1), .choice = CHOICE_CPU};
                const struct resources resources = {.pool = &pool};
                struct call_rows rows = {
                    .multiple = 1, .any_order = k & 2, .source_multiple = 16, .fails = kind, .fail_at = row};
                assert_false(stream(&recipe, &resources, &image, &rows, &error));
                char text[64];
                snprintf(text, sizeof text, "failed at row %d", row);
                assert_error(&error, text);
                image_free(&rows.out);
                thread_pool_close(&pool);
            }
    struct image unused = image;
    image_free(&unused);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_borders_anchors_and_last_bands),
        cmocka_unit_test(test_a_tall_filter),
        cmocka_unit_test(test_chains),
        cmocka_unit_test(test_16_bits),
        cmocka_unit_test(test_one_band_and_single_rows),
        cmocka_unit_test(test_rows_in_any_order),
        cmocka_unit_test(test_rows_that_no_band_needs),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
