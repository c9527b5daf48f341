/* SPDX-License-Identifier: MIT
 *
 * The codecs parallel-jpeg and libjpeg-turbo: both have the samples, the bytes and the words of libjpeg-turbo, also for
 * damaged files and for those that parallel-jpeg leaves to it. */
#include "base/parallel.h"
#include "codec/codec.h"
#include "codecs/tests/jpeg/jpeg_files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const int factors[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}};

enum { FACTORS = sizeof factors / sizeof *factors };

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* A recipe of colours, or of grey if KIND is FACTORS. */
static struct jpeg_recipe make_recipe(int number, int kind, uint32_t *seed)
{
    struct jpeg_recipe recipe = {.width = 70 + number, .height = 60, .seed = next_random(seed)};
    recipe.components = kind < FACTORS ? 3 : 1;
    recipe.horizontal = kind < FACTORS ? factors[kind][0] : 1;
    recipe.vertical = kind < FACTORS ? factors[kind][1] : 1;
    recipe.quality = 1 + (int)(next_random(seed) % 100);
    recipe.is_optimised = next_random(seed) % 3 == 0;
    recipe.shares_tables = next_random(seed) % 4 == 0;
    recipe.restart_mcus = (int)(next_random(seed) % 9);
    recipe.noise = (int)(next_random(seed) & 255);
    return recipe;
}

/* The check of a file reads what libjpeg-turbo reads. */
static void test_headers_are_those_of_libjpeg_turbo(void **state)
{
    uint32_t seed = 8;
    (void)state;
    for (int i = 0; i < 60; i++) {
        const struct jpeg_recipe recipe = make_recipe(i, i % (FACTORS + 1), &seed);
        struct jpeg_headers expected;
        struct codec_info info;
        size_t size = 0;
        uint8_t *file = make_jpeg(&recipe, &size);
        assert_true(read_jpeg_headers(file, size, &expected));
        assert_true(jpeg_check(file, size, "file", &info, NULL));
        assert_memory_equal(&info.jpeg.components, &expected.components, sizeof expected.components);
        assert_memory_equal(&info.jpeg.tables, &expected.tables, sizeof expected.tables);
        assert_int_equal(info.jpeg.width, expected.width);
        assert_int_equal(info.jpeg.height, expected.height);
        assert_int_equal(info.jpeg.component_count, expected.component_count);
        assert_int_equal(info.jpeg.restart_interval, expected.restart_interval);
        assert_int_equal(info.jpeg.has_jfif, expected.has_jfif);
        assert_int_equal(info.jpeg.has_adobe, expected.has_adobe);
        assert_true(info.jpeg.is_sequential && expected.is_sequential);
        assert_int_equal(info.jpeg.scan, expected.scan);
        assert_int_equal(info.jpeg.scan_size, expected.scan_size);
        free(file);
    }
}

/* Decode with the codecs parallel-jpeg and libjpeg-turbo: the same samples, or the same words. */
static void compare_codecs(const uint8_t *file, size_t size, struct thread_pool *pool)
{
    static const char *const names[2] = {"parallel-jpeg", "libjpeg-turbo"};
    struct image images[2];
    struct error errors[2];
    bool done[2];
    for (int i = 0; i < 2; i++) {
        const struct codec_settings settings = {.codec = codec_find(names[i], NULL), .quality = 90, .pool = pool};
        assert_non_null(settings.codec);
        done[i] = codec_decode(file, size, "mutated", &settings, &images[i], NULL, &errors[i]);
    }
    assert_int_equal(done[0], done[1]);
    if (done[0])
        assert_memory_equal(images[0].samples, images[1].samples, image_bytes(&images[0]));
    else
        assert_string_equal(errors[0].message, errors[1].message);
    for (int i = 0; i < 2 && done[i]; i++)
        image_free(&images[i]);
}

static void test_mutated_files(void **state)
{
    enum { FILES = 60, MUTATIONS = 15 };
    uint32_t seed = 6;
    struct thread_pool pool;
    (void)state;
#ifndef __x86_64__
    skip(); /* only libjpeg-turbo's code for x86-64 makes the decoder's samples of numbers that overflow */
#endif
    thread_pool_open(&pool, 2);
    for (int i = 0; i < FILES; i++) {
        const struct jpeg_recipe recipe = make_recipe(i, i % (FACTORS + 1), &seed);
        size_t size = 0;
        uint8_t *file = make_jpeg(&recipe, &size);
        for (uint32_t j = 0; j < MUTATIONS; j++) {
            const uint32_t from = j % 3 == 0 ? 0 : next_random(&seed),
                           at = (from + next_random(&seed)) % (uint32_t)size;
            const uint8_t old = file[at];
            file[at] = (uint8_t)(j % 2 == 0 ? old ^ 1u << (next_random(&seed) & 7) : next_random(&seed));
            compare_codecs(file, size, &pool);
            file[at] = old;
        }
        free(file);
    }
    thread_pool_close(&pool);
}

/* Any number of threads writes the bytes of libjpeg-turbo. */
static void test_files_are_those_of_libjpeg_turbo(void **state)
{
    uint32_t seed = 9;
    (void)state;
    for (int i = 0; i < 60; i++) {
        struct image image;
        uint8_t *files[2];
        size_t sizes[2];
        assert_true(image_allocate(&image, 150 + i, 331, i % 6 == 5 ? 1 : 3, 8, NULL));
        for (size_t k = 0; k < image_bytes(&image); k++)
            image.samples[k] = (uint8_t)(k / 3 + (next_random(&seed) & 31));
        for (int k = 0; k < 2; k++) {
            struct thread_pool pool;
            thread_pool_open(&pool, 1 + i % 5);
            const struct codec_settings settings = {
                .codec = codec_find(k == 0 ? "parallel-jpeg" : "libjpeg-turbo", NULL),
                .quality = 1 + 37 * i % 100,
                .chroma_subsampling = {factors[i % FACTORS][0], factors[i % FACTORS][1]},
                .pool = &pool,
            };
            assert_true(codec_encode(&image, format_of(FORMAT_JPEG), &settings, &files[k], &sizes[k], NULL));
            thread_pool_close(&pool);
        }
        assert_int_equal(sizes[0], sizes[1]);
        assert_memory_equal(files[0], files[1], sizes[0]);
        free(files[0]);
        free(files[1]);
        image_free(&image);
    }
}

/* ---- CMYK and arithmetic codes ---- */

/* The kinds that only libjpeg-turbo reads. All parts of NUMBER say what the recipe has; there are 96. */
static struct jpeg_recipe make_rare_recipe(int number)
{
    static const int restarts[] = {0, 5};
    struct jpeg_recipe recipe = {.width = 61, .height = 45, .quality = 80, .noise = 60, .seed = (uint32_t)number};
    recipe.components = number % 4 == 0 ? 1 : number % 4 == 1 ? 3 : 4;
    recipe.is_ycck = number % 4 == 3;
    const int *factor = factors[recipe.components == 1 ? 0 : number / 4 % 3];
    recipe.horizontal = factor[0];
    recipe.vertical = factor[1];
    recipe.is_progressive = number / 12 % 2 != 0;
    recipe.is_arithmetic = number / 24 % 2 != 0;
    recipe.restart_mcus = restarts[number / 48 % 2];
    return recipe;
}

/* What CMYK becomes, in place, by the formula of the manual. */
static void convert_cmyk(uint8_t *samples, int pixels)
{
    for (int i = 0; i < pixels; i++)
        for (int c = 0; c < 3; c++)
            samples[3 * i + c] = (uint8_t)lround(samples[4 * i + c] * samples[4 * i + 3] / 255.0);
}

/* Decode a file by the codec NAME, 1/2^SHRINK as wide and high. */
static void decode_shrunk(const uint8_t *file, size_t size, const char *name, int shrink, struct image *image)
{
    const struct codec_settings settings = {.codec = codec_find(name, NULL)};
    struct codec_info info;
    struct error error;
    const struct codec_input input = {
        .bytes = file, .size = size, .name = "rare", .info = &info, .settings = &settings};
    if (!codec_inspect(file, size, "rare", &settings, &info, &error) ||
        !codec_choose_reader(&info, &settings, "rare", &error))
        fail_msg("%s", error.message);
    codec_shrink(&info, shrink);
    if (codec_read_picture(&input, image, NULL, &error) == NULL)
        fail_msg("%s at 1/%d: %s", name, 1 << shrink, error.message);
}

/* Both codecs read each file to the samples of libjpeg-turbo. A GPU leaves files that it cannot read to the CPU. */
static void test_rare_files(void **state)
{
    (void)state;
    for (int i = 0; i < 96 * 4; i++) {
        const struct jpeg_recipe recipe = make_rare_recipe(i / 4);
        int width = 0, height = 0, components = 0;
        struct jpeg_layout layout;
        struct codec_info info;
        struct image image;
        size_t size = 0;
        uint8_t *file = make_jpeg(&recipe, &size);
        uint8_t *expected = decode_jpeg(file, size, i % 4, &width, &height, &components);
        assert_int_equal(components, recipe.components);
        if (components == 4)
            convert_cmyk(expected, width * height);
        for (int j = 0; j < 2; j++) {
            decode_shrunk(file, size, j == 0 ? "parallel-jpeg" : "libjpeg-turbo", i % 4, &image);
            assert_int_equal(image.width, width);
            assert_int_equal(image.height, height);
            assert_int_equal(image.channels, components == 1 ? 1 : 3);
            assert_memory_equal(image.samples, expected, image_bytes(&image));
            image_free(&image);
        }
        assert_true(jpeg_check(file, size, "rare", &info, NULL));
        assert_int_equal(jpeg_layout_for_reading(&layout, &info.jpeg),
                         components < 4 && !recipe.is_progressive && !recipe.is_arithmetic);
        free(expected);
        free(file);
    }
}

/* Is a file refused, by whichever codec is chosen? */
static bool is_refused(const uint8_t *file, size_t size)
{
    const struct codec_settings settings = {.codec = NULL};
    struct image image;
    struct error error;
    const bool done = codec_decode(file, size, "damaged", &settings, &image, NULL, &error);
    if (done)
        image_free(&image);
    return !done;
}

/* Damaged CMYK is refused if its data end early. Arithmetic-coded data are refused if any are left, which nearly every
 * change of a byte leads to. */
static void test_damaged_rare_files(void **state)
{
    enum { TIMES = 20, MORE = 40 };
    int missed = 0, changed = 0;
    uint32_t seed = 7;
    (void)state;
    for (int i = 0; i < 48; i++) {
        const struct jpeg_recipe recipe = make_rare_recipe(i);
        size_t size = 0;
        uint8_t *file = make_jpeg(&recipe, &size);
        uint8_t *copy = malloc(size + MORE);
        for (size_t j = 0; j < TIMES && (recipe.is_arithmetic || recipe.components == 4); j++) {
            memcpy(copy, file, size);
            const size_t at = size - 2 - (size / 2) * j / TIMES; /* all in the data of the last scan, or a marker */
            if (recipe.is_arithmetic) {
                copy[at - 1] ^= (uint8_t)(1u << (next_random(&seed) & 7));
                missed += !is_refused(copy, size);
                changed++;
            } else if (!recipe.is_progressive && j > 0) {
                memcpy(copy + at, "\xff\xd9", 2);
                assert_true(is_refused(copy, at + 2));
            }
        }
        memcpy(copy, file, size - 2);
        memset(copy + size - 2, 'x', MORE);
        memcpy(copy + size - 2 + MORE, "\xff\xd9", 2);
        assert_int_equal(is_refused(copy, size + MORE), recipe.is_arithmetic);
        free(copy);
        free(file);
    }
    assert_in_range(missed, 0, changed / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_are_those_of_libjpeg_turbo),
        cmocka_unit_test(test_mutated_files),
        cmocka_unit_test(test_files_are_those_of_libjpeg_turbo),
        cmocka_unit_test(test_rare_files),
        cmocka_unit_test(test_damaged_rare_files),
    };
    return cmocka_run_group_tests_name("jpeg_turbo", tests, NULL, NULL);
}
