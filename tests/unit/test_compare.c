/* SPDX-License-Identifier: MIT
 *
 * Two images side by side: how they differ, and the picture of that. */
#include "base/parallel.h"
#include "compare/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* An image of 8 bits whose samples depend on all three coordinates. */
static struct image pattern_image(int width, int height, int channels)
{
    struct image image;
    assert_true(image_allocate(&image, width, height, channels, 8, NULL));
    for (int y = 0, i = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++, i++)
                image.samples[i] = (uint8_t)(37 * x + 101 * y + 59 * c + 11);
    return image;
}

static void set_sample16(struct image *image, size_t i, unsigned value)
{
    image_samples16(image)[i] = (uint16_t)value;
}

static void test_differences_of_16_bits_are_counted_and_shown(void **state)
{
    struct image a, b, picture;
    struct difference difference;
    struct error error = {0};
    (void)state;
    assert_true(image_allocate(&a, 3, 2, 2, 16, NULL));
    assert_true(image_allocate(&b, 3, 2, 2, 16, NULL));
    memset(a.samples, 0, image_bytes(&a));
    memset(b.samples, 0, image_bytes(&b));
    compare_images(&a, &b, &(struct compare_rules){0}, 0, &difference);
    assert_true(difference.same_shape && difference.pixels == 0 && isinf(difference.psnr));
    set_sample16(&b, 2 * 4, 1);     /* pixel (1, 1), a difference that 8 bits do not have */
    set_sample16(&b, 2 * 4 + 1, 2); /* in alpha too */
    set_sample16(&a, 2 * 5 + 1, 65535);
    compare_images(&a, &b, &(struct compare_rules){0}, 0, &difference);
    assert_int_equal(difference.pixels, 2);
    assert_int_equal(difference.first_x, 1);
    assert_int_equal(difference.first_y, 1);
    assert_int_equal(difference.first_channel, 0);
    assert_int_equal(difference.largest, 65535);
    assert_true(fabs(difference.psnr - 10 * log10(65535.0 * 65535.0 / ((5 + 65535.0 * 65535.0) / 12))) < 1e-9);

    /* The picture has 8 bits: grey by 1 of at most 65535 is nothing, alpha by all is all. */
    assert_true(difference_picture(&a, &b, NULL, &picture, &error));
    assert_int_equal(picture.bits, 8);
    assert_memory_equal(picture.samples, ((const uint8_t[]){0, 0, 0, 0, 0, 255}), 6);
    image_free(&picture);
    set_sample16(&a, 2 * 5 + 1, 0);
    assert_true(difference_picture(&a, &b, NULL, &picture, &error)); /* now 1 is the largest */
    assert_memory_equal(picture.samples, ((const uint8_t[]){0, 0, 0, 0, 255, 0}), 6);
    image_free(&picture);

    image_free(&a);
    image_free(&b);
}

static void test_differences_of_8_bits_are_counted(void **state)
{
    struct image a = pattern_image(7, 5, 3), b = pattern_image(7, 5, 3);
    struct difference difference;
    (void)state;
    compare_images(&a, &b, &(struct compare_rules){0}, 0, &difference);
    assert_true(difference.same_shape);
    assert_int_equal(difference.pixels, 0);
    assert_int_equal(difference.first_x, -1);
    assert_int_equal(difference.first_y, -1);
    assert_int_equal(difference.first_channel, -1);
    assert_int_equal(difference.largest, 0);
    assert_true(isinf(difference.psnr) && difference.psnr > 0);

    /* Pixel (4, 1) differs in two channels, by -3 and 4; pixel (0, 3) in one, by 1: squares 9 + 16 + 1. */
    a.samples[(1 * 7 + 4) * 3 + 1] = 100;
    b.samples[(1 * 7 + 4) * 3 + 1] = 97;
    a.samples[(1 * 7 + 4) * 3 + 2] = 10;
    b.samples[(1 * 7 + 4) * 3 + 2] = 14;
    a.samples[(3 * 7 + 0) * 3 + 0] = 50;
    b.samples[(3 * 7 + 0) * 3 + 0] = 51;
    compare_images(&a, &b, &(struct compare_rules){0}, 0, &difference);
    assert_int_equal(difference.pixels, 2);
    assert_int_equal(difference.first_x, 4);
    assert_int_equal(difference.first_y, 1);
    assert_int_equal(difference.first_channel, 1);
    assert_int_equal(difference.largest, 4);
    assert_true(fabs(difference.psnr - 10 * log10(255.0 * 255.0 / (26.0 / 105.0))) < 1e-9);
    image_free(&a);
    image_free(&b);
}

static void test_the_picture_shows_where_and_how_much(void **state)
{
    struct image a = pattern_image(3, 2, 4), b = pattern_image(3, 2, 4), grey = pattern_image(3, 2, 1), picture;
    struct error error = {0};
    (void)state;
    assert_true(difference_picture(&a, &b, NULL, &picture, &error));
    assert_int_equal(picture.channels, 3);
    for (size_t i = 0; i < image_samples(&picture); i++)
        assert_int_equal(picture.samples[i], 0);
    image_free(&picture);

    /* Green of pixel 1 differs by 10, the largest; red of pixel 2 by 1; pixel 3 in alpha alone, by 5; pixel 4 in blue
     * by 2 and in alpha, which then does not show. */
    memset(a.samples, 20, image_samples(&a));
    memset(b.samples, 20, image_samples(&b));
    b.samples[1 * 4 + 1] = 30;
    b.samples[2 * 4 + 0] = 19;
    b.samples[3 * 4 + 3] = 25;
    b.samples[4 * 4 + 2] = 22;
    b.samples[4 * 4 + 3] = 40;
    assert_true(difference_picture(&a, &b, NULL, &picture, &error));
    const uint8_t expected[18] = {0, 0, 0, 0, 255, 0, 26, 0, 0, 128, 128, 128, 0, 0, 51, 0, 0, 0};
    assert_memory_equal(picture.samples, expected, sizeof expected);
    image_free(&picture);

    assert_true(difference_picture(&grey, &grey, NULL, &picture, &error));
    assert_int_equal(picture.channels, 1);
    image_free(&picture);
    image_free(&a);
    image_free(&b);
    image_free(&grey);
}

/* SSIM by its definition: a window at a time, as in the paper, with luma of whole images. */
static struct ssim plain_ssim(const struct image *a, const struct image *b)
{
    const struct image *const images[2] = {a, b};
    double weights[SSIM_WINDOW][SSIM_WINDOW], total = 0, sum = 0;
    struct ssim ssim = {.lowest = 2};
    for (int i = 0; i < SSIM_WINDOW; i++)
        for (int j = 0; j < SSIM_WINDOW; j++)
            total += weights[i][j] = exp(-((i - 5) * (i - 5) + (j - 5) * (j - 5)) / 4.5);
    for (int y = 0; y + SSIM_WINDOW <= a->height; y++)
        for (int x = 0; x + SSIM_WINDOW <= a->width; x++) {
            double mean[2] = {0}, square[2] = {0}, product = 0;
            for (int i = 0; i < SSIM_WINDOW; i++)
                for (int j = 0; j < SSIM_WINDOW; j++) {
                    double luma[2];
                    for (int k = 0; k < 2; k++) {
                        const uint8_t *p = images[k]->samples + ((y + i) * a->width + x + j) * a->channels;
                        luma[k] = a->channels < 3 ? p[0] : 0.299 * p[0] + 0.587 * p[1] + 0.114 * p[2];
                        mean[k] += weights[i][j] / total * luma[k];
                        square[k] += weights[i][j] / total * luma[k] * luma[k];
                    }
                    product += weights[i][j] / total * luma[0] * luma[1];
                }
            const double c1 = 2.55 * 2.55, c2 = 7.65 * 7.65, both = mean[0] * mean[1];
            const double one = (2 * both + c1) * (2 * (product - both) + c2) /
                               ((mean[0] * mean[0] + mean[1] * mean[1] + c1) *
                                (square[0] - mean[0] * mean[0] + square[1] - mean[1] * mean[1] + c2));
            sum += one;
            if (one < ssim.lowest)
                ssim = (struct ssim){.lowest = one, .x = x, .y = y};
        }
    ssim.mean = sum / (a->width - SSIM_WINDOW + 1) / (a->height - SSIM_WINDOW + 1);
    return ssim;
}

static void test_ssim_follows_its_definition(void **state)
{
    struct thread_pool pool;
    (void)state;
    thread_pool_open(&pool, 3);
    for (int channels = 1; channels <= 4; channels++) {
        struct image a = pattern_image(29, 90, channels), b = pattern_image(29, 90, channels);
        struct ssim one, many;
        assert_true(ssim_compute(&a, &b, NULL, &one, NULL));
        assert_true(one.mean == 1 && one.lowest == 1 && one.x == 0 && one.y == 0);
        for (int y = 40; y < 48; y++) /* bands with and without differences */
            for (size_t i = 0; i < 20; i++)
                b.samples[(size_t)y * 29 * (size_t)channels + i] ^= (uint8_t)(i * 13);
        assert_true(ssim_compute(&a, &b, NULL, &one, NULL) && ssim_compute(&a, &b, &pool, &many, NULL));
        assert_true(one.mean == many.mean && one.lowest == many.lowest && one.x == many.x && one.y == many.y);
        const struct ssim plain = plain_ssim(&a, &b);
        assert_true(one.mean < 0.999 && fabs(one.mean - plain.mean) < 1e-9);
        assert_true(fabs(one.lowest - plain.lowest) < 1e-9 && one.x == plain.x && one.y == plain.y);
        a.height = b.height = SSIM_WINDOW - 1;
        assert_true(ssim_compute(&a, &b, NULL, &one, NULL) && isnan(one.mean) && isnan(one.lowest));
        image_free(&a);
        image_free(&b);
    }
    thread_pool_close(&pool);
}

static void test_tolerance_box_and_ignored_pixels(void **state)
{
    struct image a = pattern_image(9, 7, 4), b = pattern_image(9, 7, 4), mask = pattern_image(9, 7, 1);
    struct compare_rules rules = {.areas = {{7, 5, 100, 100}, {8, 6, 1, 1}}, .area_count = 2};
    struct difference difference;
    struct error error;
    uint64_t ignored, hidden;
    (void)state;
    memset(a.samples, 9, image_bytes(&a));
    memset(b.samples, 9, image_bytes(&b));
    b.samples[4 * (9 * 2 + 3) + 3] = 4;             /* (3, 2) by 5 in alpha */
    b.samples[4 * (9 * 4 + 1) + 1] = 16;            /* (1, 4) by 7 in green */
    b.samples[4 * (9 * 4 + 5) + 2] = 11;            /* (5, 4) by 2 in blue */
    b.samples[4 * (9 * 6 + 8) + 0] = 99;            /* (8, 6), ignored twice */
    a.samples[3] = b.samples[3] = a.samples[7] = 0; /* (0, 0) is transparent in both, (1, 0) in one */
    b.samples[0] = 200;
    rules.ignores_transparent = true;
    assert_true(compare_ignore(&a, &b, &rules, &ignored, &hidden, &error));
    assert_int_equal(ignored, 5);
    assert_int_equal(hidden, 2);
    rules.tolerance = 2;
    compare_images(&a, &b, &rules, ignored, &difference);
    assert_int_equal(difference.compared, 58);
    assert_int_equal(difference.pixels, 3);
    assert_int_equal(difference.tolerated, 1);
    assert_int_equal(difference.first_x, 1);
    assert_int_equal(difference.first_channel, 3);
    assert_int_equal(difference.box.x, 1);
    assert_int_equal(difference.box.y, 0);
    assert_int_equal(difference.box.width, 3);
    assert_int_equal(difference.box.height, 5);
    assert_memory_equal(difference.largest_of, ((const int[]){0, 7, 2, 9}), sizeof difference.largest_of);
    rules.share = COMPARE_WHOLE / 2;
    assert_int_equal(compare_allowed(&rules, &difference), 29);

    memset(mask.samples, 1, image_bytes(&mask));
    mask.samples[9 * 2 + 3] = 0;
    rules = (struct compare_rules){.mask = &mask};
    assert_true(compare_ignore(&a, &b, &rules, &ignored, &hidden, &error));
    assert_true(ignored == 1 && hidden == 1);
    image_free(&a);
    image_free(&b);
    image_free(&mask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences_of_8_bits_are_counted),
        cmocka_unit_test(test_differences_of_16_bits_are_counted_and_shown),
        cmocka_unit_test(test_the_picture_shows_where_and_how_much),
        cmocka_unit_test(test_ssim_follows_its_definition),
        cmocka_unit_test(test_tolerance_box_and_ignored_pixels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
