/* SPDX-License-Identifier: MIT
 *
 * Images and planes: every orientation, split and merge in every alpha mode into padded planes, the arithmetic of
 * premultiplication against exact fractions. */
#include "image/image.h"
#include "image/linear.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { POISON = 0xa5 };

/* A sample that depends on all three coordinates, so that a confusion of two shows. */
static uint8_t pattern(int x, int y, int c)
{
    return (uint8_t)(37 * x + 101 * y + 59 * c + 11);
}

static struct image pattern_image(int width, int height, int channels)
{
    struct image image;
    assert_true(image_allocate(&image, width, height, channels, 8, NULL));
    for (int y = 0, i = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++, i++)
                image.samples[i] = pattern(x, y, c);
    return image;
}

static uint8_t *plane_sample(const struct plane *planes, int x, int y, int c)
{
    return (uint8_t *)planes->data + (size_t)c * planes->plane_bytes + (size_t)y * planes->row_bytes + x;
}

static struct plane poisoned_planes(int width, int height, int count)
{
    struct plane planes;
    assert_true(plane_allocate(&planes, SAMPLE_U8, width, height, count, NULL));
    memset(planes.data, POISON, planes.plane_bytes * (size_t)count);
    return planes;
}

static void assert_padding_untouched(const struct plane *planes)
{
    for (int c = 0; c < planes->count; c++)
        for (int y = 0; y < planes->height; y++)
            for (int x = planes->width; x < (int)planes->row_bytes; x++)
                assert_int_equal(*plane_sample(planes, x, y, c), POISON);
}

static void test_sizes_that_no_memory_holds_are_refused(void **state)
{
    struct error error = {0};
    struct image image;
    struct plane plane;
    (void)state;
    assert_true(image_allocate(&image, 3, 5, 4, 8, &error));
    assert_int_equal(image_samples(&image), 60);
    image_free(&image);
    assert_null(image.samples);
    image_free(&image);
    assert_false(image_allocate(&image, 0, 5, 1, 8, &error));
    assert_int_equal(error.code, ERROR_WORK);
    assert_false(image_allocate(&image, 5, 5, 5, 8, &error));
    /* More bytes than a size_t or a pointer difference can count. */
    assert_false(image_allocate(&image, INT32_MAX, INT32_MAX, 4, 8, &error));
    assert_false(image_allocate(&image, INT32_MAX, INT32_MAX, 2, 16, &error));
    assert_null(image.samples);
    image_free(&image);

    assert_true(plane_allocate(&plane, SAMPLE_F32, 17, 3, 2, &error));
    assert_int_equal(plane.row_bytes, 128); /* 68 bytes, rounded up to a multiple of 64 */
    assert_int_equal(plane.plane_bytes, 3 * 128);
    assert_int_equal((uintptr_t)plane.data % 64, 0);
    plane_free(&plane);
    assert_null(plane.data);
    assert_false(plane_allocate(&plane, SAMPLE_F32, INT32_MAX, INT32_MAX, INT32_MAX, &error));
    plane_free(&plane);
}

/* The index of the upright picture's pixel (x, y) in a stored picture of WIDTH x HEIGHT, from the table of the EXIF tag
 * Orientation, which says what row 0 and column 0 are to the eye. */
static void stored_at(int orientation, int width, int height, int x, int y, int *column, int *row)
{
    const bool swapped = orientation >= 5;
    const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const int u = swapped ? y : x, v = swapped ? x : y;
    *column = from_right ? width - 1 - u : u;
    *row = from_below ? height - 1 - v : v;
}

static void test_orientations_follow_the_table_of_exif(void **state)
{
    (void)state;
    /* Sizes around the squares that are copied at a time, and lines. */
    static const int sides[][2] = {{1, 1}, {1, 5}, {7, 1}, {2, 3}, {31, 33}, {32, 64}, {65, 40}};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        for (int orientation = 0; orientation <= 9; orientation++)
            for (int channels = 1; channels <= 4; channels++) {
                const int width = sides[i][0], height = sides[i][1];
                const bool valid = orientation >= 1 && orientation <= 8;
                struct image image = pattern_image(width, height, channels);
                assert_true(image_orient(&image, orientation, NULL));
                assert_int_equal(image.width, valid && orientation >= 5 ? height : width);
                assert_int_equal(image.height, valid && orientation >= 5 ? width : height);
                assert_int_equal(image.channels, channels);
                for (int y = 0, k = 0; y < image.height; y++)
                    for (int x = 0; x < image.width; x++)
                        for (int c = 0; c < channels; c++, k++) {
                            int column, row;
                            stored_at(valid ? orientation : 1, width, height, x, y, &column, &row);
                            assert_int_equal(image.samples[k], pattern(column, row, c));
                        }
                image_free(&image);
            }
}

static void test_the_mode_of_alpha_gives_the_number_of_planes(void **state)
{
    static const int expected[5][3] = {{0}, {1, 1, 1}, {1, 2, 2}, {3, 3, 3}, {3, 4, 4}};
    (void)state;
    for (int channels = 1; channels <= 4; channels++) {
        const struct image image = {.width = 1, .height = 1, .channels = channels, .bits = 8};
        assert_int_equal(image_planes(&image, ALPHA_KEEP), expected[channels][0]);
        assert_int_equal(image_planes(&image, ALPHA_PREMULTIPLY), expected[channels][1]);
        assert_int_equal(image_planes(&image, ALPHA_FILTER), expected[channels][2]);
    }
}

/* An image whose first COUNT channels have planes. */
static void check_round_trip(int width, int height, int channels, enum alpha alpha, int count)
{
    struct image image = pattern_image(width, height, channels), merged = image;
    struct plane planes = poisoned_planes(width, height, count);
    if (alpha == ALPHA_PREMULTIPLY && image_has_alpha(&image)) /* opaque: a factor of one */
        for (size_t i = (size_t)channels - 1; i < image_samples(&image); i += (size_t)channels)
            image.samples[i] = 255;
    image_split(&image, alpha, NULL, &planes);
    for (int c = 0; c < count; c++)
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++)
                assert_int_equal(*plane_sample(&planes, x, y, c), image.samples[(y * width + x) * channels + c]);
    assert_padding_untouched(&planes);

    merged.samples = malloc(image_samples(&image));
    assert_non_null(merged.samples);
    memset(merged.samples, POISON, image_samples(&image));
    image_merge(&planes, alpha, NULL, &merged);
    for (size_t i = 0; i < image_samples(&image); i++)
        assert_int_equal(merged.samples[i], (int)(i % (size_t)channels) < count ? image.samples[i] : POISON);
    plane_free(&planes);
    image_free(&image);
    image_free(&merged);
}

/* In every mode that multiplies nothing, for every size, and with fewer planes than channels. */
static void test_split_and_merge_give_the_image_back(void **state)
{
    static const int sizes[][2] = {{1, 1}, {1, 7}, {7, 1}, {64, 2}, {65, 3}, {13, 11}};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (int channels = 1; channels <= 4; channels++) {
            const struct image image = {.width = 1, .height = 1, .channels = channels, .bits = 8};
            for (enum alpha alpha = ALPHA_PREMULTIPLY; alpha <= ALPHA_FILTER; alpha++)
                check_round_trip(sizes[s][0], sizes[s][1], channels, alpha, image_planes(&image, alpha));
            for (int count = 1; count <= channels; count++)
                check_round_trip(sizes[s][0], sizes[s][1], channels, ALPHA_KEEP, count);
        }
}

/* Colours are multiplied by the alpha of their own pixel, and divided by the alpha of the filtered planes. */
static void test_colours_are_multiplied_by_the_alpha_of_their_pixel(void **state)
{
    (void)state;
    for (int channels = 2; channels <= 4; channels += 2) {
        struct image image = pattern_image(9, 5, channels);
        struct plane planes = poisoned_planes(9, 5, channels);

        image_split(&image, ALPHA_PREMULTIPLY, NULL, &planes);
        for (int c = 0; c < channels; c++)
            for (int y = 0; y < 5; y++)
                for (int x = 0; x < 9; x++) {
                    const unsigned value = pattern(x, y, c), alpha = pattern(x, y, channels - 1);
                    assert_int_equal(*plane_sample(&planes, x, y, c),
                                     c == channels - 1 ? alpha : premultiply_sample(value, alpha));
                    *plane_sample(&planes, x, y, c) = c == channels - 1 ? (uint8_t)(x * 30) : (uint8_t)(y * 3 + c);
                }
        image_merge(&planes, ALPHA_PREMULTIPLY, NULL, &image);
        for (int y = 0, i = 0; y < 5; y++)
            for (int x = 0; x < 9; x++)
                for (int c = 0; c < channels; c++, i++)
                    assert_int_equal(image.samples[i],
                                     c == channels - 1 ? (unsigned)x * 30
                                                       : unpremultiply_sample((unsigned)(y * 3 + c), (unsigned)x * 30));
        assert_padding_untouched(&planes);
        plane_free(&planes);
        image_free(&image);
    }
}

/* round(v) = floor(v + 1/2): the result r of n/d is the one with -d < 2(r*d - n) <= d. */
static bool is_rounded(int r, int n, int d)
{
    const int twice = 2 * (r * d - n);
    return -d < twice && twice <= d;
}

static void test_premultiplying_rounds_to_nearest(void **state)
{
    (void)state;
    for (int colour = 0; colour < 256; colour++) {
        for (int alpha = 0; alpha < 256; alpha++) {
            const int product = (int)premultiply_sample((unsigned)colour, (unsigned)alpha);
            const int quotient = (int)unpremultiply_sample((unsigned)colour, (unsigned)alpha);
            assert_true(is_rounded(product, colour * alpha, 255));
            if (alpha == 0)
                assert_int_equal(quotient, 0);
            else if (quotient == 255)
                assert_true(2 * colour * 255 >= (2 * 255 - 1) * alpha); /* 254.5 and more */
            else
                assert_true(quotient < 255 && is_rounded(quotient, colour * 255, alpha));
        }
    }
}

/* ---- 16 bits ---- */

/* Is R the rounded N / D, for numbers that need 64 bits? */
static bool is_rounded16(int64_t r, int64_t n, int64_t d)
{
    const int64_t twice = 2 * (r * d - n);
    return -d < twice && twice <= d;
}

static void test_premultiplying_16_bits_rounds_to_nearest(void **state)
{
    (void)state;
    /* Every 241st level and the last. 241 is prime and does not divide 65535. */
    for (uint64_t i = 0; i <= 272; i++) {
        for (uint64_t j = 0; j <= 272; j++) {
            const uint64_t colour = i < 272 ? i * 241 : 65535, alpha = j < 272 ? j * 241 : 65535;
            const int64_t product = premultiply_sample16(colour, alpha);
            const int64_t quotient = unpremultiply_sample16(colour, alpha);
            assert_true(is_rounded16(product, (int64_t)(colour * alpha), 65535));
            if (alpha == 0)
                assert_int_equal(quotient, 0);
            else if (quotient == 65535)
                assert_true(2 * colour * 65535 >= (2 * 65535 - 1) * alpha);
            else
                assert_true(is_rounded16(quotient, (int64_t)colour * 65535, (int64_t)alpha));
        }
    }
}

static void test_conversion_rounds_to_nearest_and_gives_8_bits_back(void **state)
{
    struct image image16, image8, again16, again8;
    (void)state;
    assert_true(image_allocate(&image16, 128, 128, 4, 16, NULL));
    assert_int_equal(image_samples(&image16), 65536);
    assert_int_equal(image_bytes(&image16), 131072);
    assert_int_equal(image_pixel_bytes(&image16), 8);
    for (int i = 0; i < 65536; i++)
        image_samples16(&image16)[i] = (uint16_t)i;
    assert_true(image_convert(&image16, 8, &image8, NULL));
    assert_int_equal(image8.bits, 8);
    for (int i = 0; i < 65536; i++)
        assert_true(is_rounded(image8.samples[i], i * 255, 65535));
    assert_true(image_convert(&image8, 16, &again16, NULL));
    assert_true(image_convert(&again16, 8, &again8, NULL));
    for (int i = 0; i < 65536; i++)
        assert_int_equal(image_samples16(&again16)[i], image8.samples[i] * 257);
    assert_memory_equal(again8.samples, image8.samples, 65536);
    image_free(&image16);
    image_free(&image8);
    image_free(&again16);
    image_free(&again8);
}

/* A sample of 16 bits that depends on all three coordinates in both of its bytes. */
static uint16_t pattern16(int x, int y, int c)
{
    return (uint16_t)(9973 * x + 31013 * y + 15101 * c + 12345);
}

static uint16_t *plane_sample16(const struct plane *planes, int x, int y, int c)
{
    return (uint16_t *)(void *)plane_sample(planes, 2 * x, y, c);
}

/* The expected sample in a plane of 16 bits for sample VALUE of BITS; of a colour with TABLES, or without. */
static uint16_t in_plane(unsigned value, int bits, const struct linear_tables *tables)
{
    if (tables)
        return bits == 8 ? tables->from8[value] : tables->from16[value];
    return (uint16_t)(bits == 8 ? 257 * value : value);
}

/* The expected sample of BITS for VALUE in a plane of 16 bits, where the image had the sample BEFORE. */
static unsigned from_plane(unsigned value, unsigned before, int bits, const struct linear_tables *tables)
{
    if (tables && in_plane(before, bits, tables) == value)
        return before;
    if (tables)
        return bits == 8 ? tables->to8[value] : tables->to16[value];
    return bits == 8 ? (2 * value * 255 + 65535) / (2 * 65535) : value;
}

static void set_sample(struct image *image, size_t i, unsigned value)
{
    if (image->bits == 8)
        image->samples[i] = (uint8_t)value;
    else
        image_samples16(image)[i] = (uint16_t)value;
}

static unsigned sample_of(const struct image *image, size_t i)
{
    return image->bits == 8 ? image->samples[i] : image_samples16(image)[i];
}

/* Split an image of BITS into planes of 16 bits and merge others: every sample has its value, and colours are
 * multiplied and divided in linear light. */
static void check_planes_of_16_bits(int bits, int channels, enum alpha alpha, const struct linear *linear)
{
    enum { WIDTH = 9, HEIGHT = 5 };
    const bool has_alpha = channels % 2 == 0, multiplies = has_alpha && alpha == ALPHA_PREMULTIPLY;
    struct image image;
    struct plane planes;
    assert_true(image_allocate(&image, WIDTH, HEIGHT, channels, bits, NULL));
    assert_true(plane_allocate(&planes, SAMPLE_U16, WIDTH, HEIGHT, image_planes(&image, alpha), NULL));
    memset(planes.data, POISON, planes.plane_bytes * (size_t)planes.count);
    for (int y = 0, i = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < channels; c++, i++)
                set_sample(&image, (size_t)i, (unsigned)pattern16(x, y, c) >> (16 - bits));
    image_split(&image, alpha, linear, &planes);
    for (int c = 0; c < planes.count; c++)
        for (int y = 0; y < HEIGHT; y++)
            for (int x = 0; x < WIDTH; x++) {
                const bool colour = !has_alpha || c < channels - 1;
                const size_t pixel = (size_t)(y * WIDTH + x) * (size_t)channels;
                const struct linear_tables *tables = colour ? linear_of(linear, c) : NULL;
                const unsigned value = in_plane(sample_of(&image, pixel + (size_t)c), bits, tables);
                const unsigned by = in_plane(sample_of(&image, pixel + (size_t)channels - 1), bits, NULL);
                assert_int_equal(*plane_sample16(&planes, x, y, c),
                                 multiplies && colour ? premultiply_sample16(value, by) : value);
                if (x % 3 > 0) /* different samples to merge */
                    *plane_sample16(&planes, x, y, c) = pattern16(y, c, x);
            }
    for (int c = 0; c < planes.count; c++)
        for (int y = 0; y < HEIGHT; y++)
            for (int i = 2 * WIDTH; i < (int)planes.row_bytes; i++)
                assert_int_equal(*plane_sample(&planes, i, y, c), POISON);

    image_merge(&planes, alpha, linear, &image);
    for (int y = 0, i = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            for (int c = 0; c < channels; c++, i++) {
                const bool colour = !has_alpha || c < channels - 1;
                unsigned expected = (unsigned)pattern16(x, y, c) >> (16 - bits); /* if it has no plane */
                if (c < planes.count) {
                    const unsigned value = *plane_sample16(&planes, x, y, c);
                    const unsigned by = multiplies ? *plane_sample16(&planes, x, y, channels - 1) : 0;
                    expected = from_plane(multiplies && colour ? unpremultiply_sample16(value, by) : value, expected,
                                          bits, colour ? linear_of(linear, c) : NULL);
                }
                assert_int_equal(sample_of(&image, (size_t)i), expected);
            }
    plane_free(&planes);
    image_free(&image);
}

static void test_planes_of_16_bits_hold_both_depths_and_linear_light(void **state)
{
    const struct curve curves[3] = {{.g = 2.2, .a = 1}, curve_srgb, {.kind = CURVE_PQ}};
    struct linear *linear = linear_allocate(NULL);
    (void)state;
    assert_non_null(linear);
    assert_true(linear_set(linear, curves, 3, 8) && linear_set(linear, curves, 3, 16));
    for (int bits = 8; bits <= 16; bits += 8)
        for (int channels = 1; channels <= 4; channels++)
            for (enum alpha alpha = ALPHA_KEEP; alpha <= ALPHA_FILTER; alpha++) {
                check_planes_of_16_bits(bits, channels, alpha, NULL);
                check_planes_of_16_bits(bits, channels, alpha, linear);
            }
    free(linear);
}

/* R(level / 65535) of the sample after and the rest of the sample before: no sum is a half. */
static void test_blending_rounds_to_nearest(void **state)
{
    (void)state;
    assert_int_equal(blend_sample(0, 32767, 1), 0);
    assert_int_equal(blend_sample(0, 32768, 1), 1);
    assert_int_equal(blend_sample(32768, 0, 65534), 1);
    assert_int_equal(blend_sample(32767, 0, 65534), 0);
    for (uint32_t i = 0, r = 1; i < 1000000; i++) {
        r = r * 1664525 + 1013904223;
        const uint64_t before = r >> 16, after = (r ^ r >> 7) & 65535, level = (r * 31) >> 16;
        const uint64_t sum = level * after + (65535 - level) * before;
        assert_int_equal(blend_sample((unsigned)before, (unsigned)after, (unsigned)level), (2 * sum + 65535) / 131070);
        assert_int_equal(blend_sample((unsigned)before, (unsigned)after, 0), before);
        assert_int_equal(blend_sample((unsigned)before, (unsigned)after, 65535), after);
        assert_int_equal(blend_sample((unsigned)after, (unsigned)after, (unsigned)level), after);
    }
}

/* A float that the mask does not choose may be infinite or NaN. */
static void test_blending_floats_leaves_the_other_out(void **state)
{
    (void)state;
    assert_true(blend_float(2, INFINITY, 0) == 2 && blend_float(NAN, 3, 65535) == 3);
    assert_true(blend_float(1, 2, 32768) == 1 * (32767 / 65535.0f) + 2 * (32768 / 65535.0f));
}

/* The channels may be planes, and rows may have gaps: bytes of gaps stay. */
static void test_images_with_strides_are_blended(void **state)
{
    (void)state;
    enum { W = 5, H = 3, ROW = 8 };
    static const uint16_t levels[W * H] = {0, 65535, 1, 32768, 500, 65534, 7, 0, 65535, 12345, 3, 4, 50000, 60000, 0};
    uint8_t from[H][W][2], to[2][H][ROW];
    memset(to, POISON, sizeof to);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++)
            for (int c = 0; c < 2; c++) {
                from[y][x][c] = pattern(x, y, c);
                to[c][y][x] = pattern(y, x, c + 5);
            }
    struct image in = {.width = W, .height = H, .channels = 2, .bits = 8, .samples = &from[0][0][0]}, out = in;
    out.samples = &to[0][0][0];
    out.row_stride = ROW;
    out.pixel_stride = 1;
    out.channel_stride = H * ROW;
    image_blend(&in, levels, &out);
    for (int y = 0; y < H; y++)
        for (int x = 0; x < ROW; x++)
            for (int c = 0; c < 2; c++)
                assert_int_equal(to[c][y][x],
                                 x >= W ? POISON
                                        : blend_sample(pattern(y, x, c + 5), pattern(x, y, c), levels[y * W + x]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes_that_no_memory_holds_are_refused),
        cmocka_unit_test(test_orientations_follow_the_table_of_exif),
        cmocka_unit_test(test_the_mode_of_alpha_gives_the_number_of_planes),
        cmocka_unit_test(test_split_and_merge_give_the_image_back),
        cmocka_unit_test(test_colours_are_multiplied_by_the_alpha_of_their_pixel),
        cmocka_unit_test(test_premultiplying_rounds_to_nearest),
        cmocka_unit_test(test_premultiplying_16_bits_rounds_to_nearest),
        cmocka_unit_test(test_conversion_rounds_to_nearest_and_gives_8_bits_back),
        cmocka_unit_test(test_planes_of_16_bits_hold_both_depths_and_linear_light),
        cmocka_unit_test(test_blending_rounds_to_nearest),
        cmocka_unit_test(test_blending_floats_leaves_the_other_out),
        cmocka_unit_test(test_images_with_strides_are_blended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
