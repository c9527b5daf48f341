/* SPDX-License-Identifier: MIT
 *
 * Readers and writers of JPEG, every row of the table that was built in: progressive and CMYK files, quality, chroma
 * subsampling, damage, the longest sides. */
#include "codec_files.h"

#include "compare/compare.h"

#include <stdlib.h>

static void test_a_progressive_jpeg_is_decoded(void **state)
{
    static struct buffer jpeg;
    (void)state;
    make_progressive(&jpeg);
    EACH_READER(codec, JPEG)
    {
        const struct codec_settings settings = settings_of(codec);
        struct error error = {0};
        struct codec_info info;
        struct image image;
        if (!codec_decode(jpeg.bytes, jpeg.size, "x.jpg", &settings, &image, &info, &error))
            fail_msg("%s: %s", codec->name, error.message);
        assert_ptr_equal(info.format, JPEG);
        assert_true(info.codec == codec || codec->may_fall_back);
        assert_int_equal(info.bits, 8);
        assert_int_equal(image.width, 8);
        assert_int_equal(image.height, 8);
        assert_int_equal(image.channels, 1);
        for (int i = 0; i < 64; i++)
            assert_int_equal(image.samples[i], 178);
        image_free(&image);
    }
}

/* A grey JPEG of 16 x 8 pixels with a restart after each of its two blocks, whose differences are 50 and -50: the
 * second counts from 0 again. */
static void test_a_jpeg_with_restarts_is_decoded(void **state)
{
    const uint8_t frame[9] = {8, 0, 8, 0, 16, 1, 1, 0x11, 0}, interval[2] = {0, 1};
    const uint8_t dc[18] = {0x00, 1, [17] = 6}, ac[18] = {0x10, 1, [17] = 0}, scan[6] = {1, 1, 0, 0, 63, 0};
    uint8_t quantizers[65] = {0};
    static struct buffer jpeg;
    (void)state;
    memset(quantizers + 1, 8, 64);
    put16(&jpeg, 0xffd8);
    put_segment(&jpeg, 0xdb, quantizers, sizeof quantizers);
    put_segment(&jpeg, 0xc0, frame, sizeof frame);
    put_segment(&jpeg, 0xc4, dc, sizeof dc);
    put_segment(&jpeg, 0xc4, ac, sizeof ac);
    put_segment(&jpeg, 0xdd, interval, sizeof interval);
    put_segment(&jpeg, 0xda, scan, sizeof scan);
    put8(&jpeg, 0x64); /* 0, 50 in 6 bits, 0 */
    put16(&jpeg, 0xffd0);
    put8(&jpeg, 0x1a); /* 0, -50 in 6 bits, 0 */
    put16(&jpeg, 0xffd9);
    EACH_READER(codec, JPEG)
    {
        const struct codec_settings settings = settings_of(codec);
        struct error error = {0};
        struct image image;
        if (!codec_decode(jpeg.bytes, jpeg.size, "x.jpg", &settings, &image, NULL, &error))
            fail_msg("%s: %s", codec->name, error.message);
        assert_int_equal(image.width, 16);
        for (int i = 0; i < 16 * 8; i++)
            assert_int_equal(image.samples[i], i % 16 < 8 ? 178 : 78);
        image_free(&image);
    }
}

/* libjpeg-turbo gets a JPEG of four channels. stb, which would accept a damaged one, never does. */
static void test_a_cmyk_jpeg_goes_to_the_codec_that_checks_it(void **state)
{
    const uint8_t frame[18] = {8, 0, 8, 0, 8, 4, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0, 4, 0x11, 0};
    const uint8_t dc[18] = {0x00, 1, [17] = 6}, ac[18] = {0x10, 1, [17] = 0};
    const uint8_t scan[12] = {4, 1, 0, 2, 0, 3, 0, 4, 0, 0, 63, 0};
    const struct codec_settings any = settings_of(NULL), stb = settings_of(codec_find("stb", NULL));
    uint8_t quantizers[65] = {0};
    static struct buffer jpeg;
    struct error error = {0};
    struct codec_info info;
    struct image image;
    (void)state;
    memset(quantizers + 1, 8, 64);
    put16(&jpeg, 0xffd8);
    put_segment(&jpeg, 0xee, "Adobe\0d\0\0\0\0\0", 12); /* CMYK, not YCCK */
    put_segment(&jpeg, 0xdb, quantizers, sizeof quantizers);
    put_segment(&jpeg, 0xc0, frame, sizeof frame);
    put_segment(&jpeg, 0xc4, dc, sizeof dc);
    put_segment(&jpeg, 0xc4, ac, sizeof ac);
    put_segment(&jpeg, 0xda, scan, sizeof scan);
    for (int i = 0; i < 4; i++)
        put8(&jpeg, 0x64); /* 0, 50 in 6 bits, 0 */
    put16(&jpeg, 0xffd9);
    assert_false(codec_decode(jpeg.bytes, jpeg.size, "x", &stb, &image, NULL, &error));
    if (!codec_find("libjpeg-turbo", NULL)) {
        assert_error(&error, "x: is a CMYK JPEG, which is read only if libjpeg-turbo is built in; save it "
                             "again as a plain JPEG or PNG");
        return;
    }
    assert_error(&error, "x: the codec stb cannot read CMYK JPEG; leave --codec out, or give libjpeg-turbo");
    if (!codec_decode(jpeg.bytes, jpeg.size, "x", &any, &image, &info, &error))
        fail_msg("%s", error.message);
    assert_true(info.cmyk);
    assert_string_equal(info.codec->name, "libjpeg-turbo");
    assert_int_equal(image.channels, 3);
    for (int i = 0; i < 64 * 3; i++)
        assert_int_equal(image.samples[i], 124); /* 178 x 178 / 255: inverted colour times inverted black */
    image_free(&image);
    jpeg.size -= 4; /* the last blocks */
    put16(&jpeg, 0xffd9);
    assert_false(codec_decode(jpeg.bytes, jpeg.size, "x", &any, &image, NULL, &error));
    assert_non_null(strstr(error.message, "is damaged"));
}

/* A lower quality gives a smaller file. */
static void test_a_lower_quality_is_smaller(void **state)
{
    struct image image = make_image(64, 48, 3, 8, false);
    (void)state;
    EACH_WRITER(writer, JPEG)
    {
        struct codec_settings settings = settings_of(writer);
        size_t low, high;
        uint8_t *bytes;
        settings.quality = 20;
        assert_true(codec_encode(&image, JPEG, &settings, &bytes, &low, NULL));
        free(bytes);
        settings.quality = 95;
        assert_true(codec_encode(&image, JPEG, &settings, &bytes, &high, NULL));
        free(bytes);
        assert_true(2 * low < high);
    }
    image_free(&image);
}

/* The file has the requested chroma subsampling, and its picture keeps its colours. */
static void test_the_chroma_subsampling_is_in_the_file(void **state)
{
    static const struct chroma_subsampling samplings[] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}};
    struct codec_settings settings = settings_of(codec_find("libjpeg-turbo", NULL));
    struct image image = make_image(20, 18, 3, 8, true);
    (void)state;
    if (!settings.codec) {
        image_free(&image);
        print_message("libjpeg-turbo was not built in\n");
        skip();
    }
    settings.quality = 100;
    for (size_t i = 0; i < sizeof samplings / sizeof samplings[0]; i++) {
        struct codec_info info;
        uint8_t *bytes;
        size_t size;
        settings.chroma_subsampling = samplings[i];
        assert_true(codec_encode(&image, JPEG, &settings, &bytes, &size, NULL));
        assert_true(codec_inspect(bytes, size, "x", NULL, &info, NULL));
        assert_int_equal(info.chroma_subsampling.horizontal, samplings[i].horizontal);
        assert_int_equal(info.chroma_subsampling.vertical, samplings[i].vertical);
        free(bytes);
        check_all_back(&image, JPEG, settings.codec, &settings);
    }
    /* Without a wish the quality decides, as it does in stb. */
    for (int quality = 90; quality <= 91; quality++) {
        EACH_WRITER(writer, JPEG)
        {
            struct codec_settings plain = settings_of(writer);
            struct codec_info info;
            uint8_t *bytes;
            size_t size;
            plain.quality = quality;
            assert_true(codec_encode(&image, JPEG, &plain, &bytes, &size, NULL));
            assert_true(codec_inspect(bytes, size, "x", NULL, &info, NULL));
            assert_int_equal(info.chroma_subsampling.horizontal, quality == 90 ? 2 : 1);
            assert_int_equal(info.chroma_subsampling.vertical, quality == 90 ? 2 : 1);
            free(bytes);
        }
    }
    image_free(&image);
}

/* The two decoders of JPEG give nearly the same samples, and stb's is not the default. */
static void test_the_jpeg_decoders_are_close(void **state)
{
    const struct codec_settings stb = settings_of(codec_find("stb", NULL)), best = settings_of(NULL);
    struct codec_settings settings = settings_of(NULL);
    struct image image = make_image(80, 60, 3, 8, true), a, b;
    struct difference difference;
    struct codec_info info;
    uint8_t *bytes;
    size_t size;
    (void)state;
    settings.chroma_subsampling = (struct chroma_subsampling){2, 2};
    assert_true(codec_encode(&image, JPEG, &settings, &bytes, &size, NULL));
    assert_true(codec_decode(bytes, size, "x", &stb, &a, NULL, NULL));
    assert_true(codec_decode(bytes, size, "x", &best, &b, &info, NULL));
    assert_true(info.codec != stb.codec || codec_find("libjpeg-turbo", NULL) == NULL);
    compare_images(&a, &b, &(struct compare_rules){0}, 0, &difference);
    assert_true(difference.same_shape);
    assert_in_range(difference.largest, 0, 3);
    free(bytes);
    image_free(&image);
    image_free(&a);
    image_free(&b);
}

static void test_a_damaged_jpeg_does_no_harm(void **state)
{
    const struct codec_settings settings = settings_of(NULL);
    struct image image = make_image(17, 9, 3, 8, true);
    static struct buffer jpeg;
    uint8_t *bytes;
    size_t size;
    (void)state;
    make_progressive(&jpeg);
    assert_true(codec_encode(&image, JPEG, &settings, &bytes, &size, NULL));
    EACH_READER(codec, JPEG)
    {
        cut_and_flip(codec, jpeg.bytes, jpeg.size, -1, NULL, 0, 0);
        cut_and_flip(codec, bytes, size, -1, NULL, 0, 0);
    }
    free(bytes);
    image_free(&image);
}

/* libjpeg-turbo takes sides up to 65500, and stb all that a JPEG holds. */
static void test_longest_sides_of_jpeg(void **state)
{
    const struct codec_settings settings = settings_of(NULL);
    struct error error;
    (void)state;
    for (int width = 65500; width <= 65535; width += 35) {
        struct image image, back;
        uint8_t *bytes;
        size_t size;
        assert_true(image_allocate(&image, width, 8, 1, 8, &error));
        memset(image.samples, 77, image_bytes(&image));
        assert_true(codec_encode(&image, JPEG, &settings, &bytes, &size, &error));
        assert_true(codec_decode(bytes, size, "x", &settings, &back, NULL, &error));
        assert_int_equal(back.width, width);
        free(bytes);
        image_free(&image);
        image_free(&back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_progressive_jpeg_is_decoded),
        cmocka_unit_test(test_a_jpeg_with_restarts_is_decoded),
        cmocka_unit_test(test_a_cmyk_jpeg_goes_to_the_codec_that_checks_it),
        cmocka_unit_test(test_the_chroma_subsampling_is_in_the_file),
        cmocka_unit_test(test_the_jpeg_decoders_are_close),
        cmocka_unit_test(test_a_lower_quality_is_smaller),
        cmocka_unit_test(test_a_damaged_jpeg_does_no_harm),
        cmocka_unit_test(test_longest_sides_of_jpeg),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
