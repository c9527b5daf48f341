/* SPDX-License-Identifier: MIT
 *
 * Two images side by side: how they differ, and the picture of that. */
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
    struct image a, b, image8, picture;
    struct difference difference;
    struct error error = {0};
    (void)state;
    assert_true(image_allocate(&a, 3, 2, 2, 16, NULL));
    assert_true(image_allocate(&b, 3, 2, 2, 16, NULL));
    memset(a.samples, 0, image_bytes(&a));
    memset(b.samples, 0, image_bytes(&b));
    compare_images(&a, &b, &difference);
    assert_true(difference.same_shape && difference.pixels == 0 && isinf(difference.psnr));
    set_sample16(&b, 2 * 4, 1);     /* pixel (1, 1), a difference that 8 bits do not have */
    set_sample16(&b, 2 * 4 + 1, 2); /* in alpha too */
    set_sample16(&a, 2 * 5 + 1, 65535);
    compare_images(&a, &b, &difference);
    assert_int_equal(difference.pixels, 2);
    assert_int_equal(difference.first_x, 1);
    assert_int_equal(difference.first_y, 1);
    assert_int_equal(difference.first_channel, 0);
    assert_int_equal(difference.largest, 65535);
    assert_true(fabs(difference.psnr - 10 * log10(65535.0 * 65535.0 / ((5 + 65535.0 * 65535.0) / 12))) < 1e-9);

    /* The picture has 8 bits: grey by 1 of at most 65535 is nothing, alpha by all is all. */
    assert_true(difference_picture(&a, &b, &picture, &error));
    assert_int_equal(picture.bits, 8);
    assert_memory_equal(picture.samples, ((const uint8_t[]){0, 0, 0, 0, 0, 255}), 6);
    image_free(&picture);
    set_sample16(&a, 2 * 5 + 1, 0);
    assert_true(difference_picture(&a, &b, &picture, &error)); /* now 1 is the largest */
    assert_memory_equal(picture.samples, ((const uint8_t[]){0, 0, 0, 0, 255, 0}), 6);
    image_free(&picture);

    assert_true(image_convert(&a, 8, &image8, NULL));
    compare_images(&a, &image8, &difference);
    assert_false(difference.same_shape);
    assert_false(difference_picture(&a, &image8, &picture, &error));
    image_free(&a);
    image_free(&b);
    image_free(&image8);
}

static void test_differences_of_8_bits_are_counted(void **state)
{
    struct image a = pattern_image(7, 5, 3), b = pattern_image(7, 5, 3), other = pattern_image(5, 7, 3);
    struct difference difference;
    (void)state;
    compare_images(&a, &b, &difference);
    assert_true(difference.same_shape);
    assert_int_equal(difference.pixels, 0);
    assert_int_equal(difference.first_x, -1);
    assert_int_equal(difference.first_y, -1);
    assert_int_equal(difference.first_channel, -1);
    assert_int_equal(difference.largest, 0);
    assert_true(isinf(difference.psnr) && difference.psnr > 0);

    compare_images(&a, &other, &difference);
    assert_false(difference.same_shape);

    /* Pixel (4, 1) differs in two channels, by -3 and 4; pixel (0, 3) in one, by 1: squares 9 + 16 + 1. */
    a.samples[(1 * 7 + 4) * 3 + 1] = 100;
    b.samples[(1 * 7 + 4) * 3 + 1] = 97;
    a.samples[(1 * 7 + 4) * 3 + 2] = 10;
    b.samples[(1 * 7 + 4) * 3 + 2] = 14;
    a.samples[(3 * 7 + 0) * 3 + 0] = 50;
    b.samples[(3 * 7 + 0) * 3 + 0] = 51;
    compare_images(&a, &b, &difference);
    assert_int_equal(difference.pixels, 2);
    assert_int_equal(difference.first_x, 4);
    assert_int_equal(difference.first_y, 1);
    assert_int_equal(difference.first_channel, 1);
    assert_int_equal(difference.largest, 4);
    assert_true(fabs(difference.psnr - 10 * log10(255.0 * 255.0 / (26.0 / 105.0))) < 1e-9);
    image_free(&a);
    image_free(&b);
    image_free(&other);
}

static void test_the_picture_shows_where_and_how_much(void **state)
{
    struct image a = pattern_image(3, 2, 4), b = pattern_image(3, 2, 4), grey = pattern_image(3, 2, 1), picture;
    struct error error = {0};
    (void)state;
    assert_true(difference_picture(&a, &b, &picture, &error));
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
    assert_true(difference_picture(&a, &b, &picture, &error));
    const uint8_t expected[18] = {0, 0, 0, 0, 255, 0, 26, 0, 0, 128, 128, 128, 0, 0, 51, 0, 0, 0};
    assert_memory_equal(picture.samples, expected, sizeof expected);
    image_free(&picture);

    assert_true(difference_picture(&grey, &grey, &picture, &error));
    assert_int_equal(picture.channels, 1);
    image_free(&picture);
    assert_false(difference_picture(&a, &grey, &picture, &error));
    assert_int_equal(error.code, ERROR_WORK);
    assert_null(picture.samples);
    image_free(&a);
    image_free(&b);
    image_free(&grey);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_differences_of_8_bits_are_counted),
        cmocka_unit_test(test_differences_of_16_bits_are_counted_and_shown),
        cmocka_unit_test(test_the_picture_shows_where_and_how_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
