/* SPDX-License-Identifier: MIT
 *
 * The tables of formats and codecs: each row, round trips from each to each, PNM, the committed bad files, limits. */
#include "codec_files.h"

#include "base/file.h"

#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>

static void test_formats_are_complete_and_found_by_suffix(void **state)
{
    size_t count, rows;
    const struct format *table = formats(&count);
    char text[128];
    (void)state;
    assert_ptr_equal(format_find_by_path("a.png"), PNG);
    assert_ptr_equal(format_find_by_path("a.b/c.JPG"), JPEG);
    assert_ptr_equal(format_find_by_path(".jpeg"), JPEG);
    assert_null(format_find_by_path("a.png/b"));
    assert_null(format_find_by_path("png"));
    assert_null(format_find_by_path("a.pngx"));
    assert_null(format_find_by_path("-"));
    assert_ptr_equal(format_find_by_suffix("PNG"), PNG);
    assert_ptr_equal(format_find_by_suffix("jpg"), JPEG);
    assert_null(format_find_by_suffix("gif"));
    assert_string_equal(PNG->name, "PNG");
    assert_string_equal(JPEG->name, "JPEG");
    for (size_t i = 0; i < count; i++) { /* a row is where its id says, and all of it is filled in */
        const struct format *format = &table[i];
        assert_int_equal(format->id, i);
        assert_ptr_equal(format_of(format->id), format);
        assert_ptr_equal(format_find_by_suffix(format->suffixes[0]), format);
        assert_true(format->max_side > 0 && format->max_bits >= 8 && format->work_of_byte > 0);
        assert_true(format->holds_grey || format->holds_colour);
        assert_int_equal(format->magics[0] == NULL, format->magic_size == 0);
        assert_non_null(format->check);
        assert_non_null(format->read_metadata);
        assert_non_null(format->write_metadata);
        bool read = false; /* by a codec of the table; each of its depths is written, if one is built in */
        for (const struct codec *codec = codecs(&rows), *end = codec + rows; codec < end; codec++)
            read = read || codec_reads(codec, format);
        assert_true(read);
        for (int bits = 8; bits <= format->max_bits; bits += 8)
            assert_int_equal(codec_is_available(format) && !format->is_only_read,
                             codec_find_writer(format, &(struct image){.bits = bits},
                                               &(struct codec_settings){.bits = 0}, NULL) != NULL);
    }
    format_join_suffixes("and", false, text, sizeof text);
    assert_string_equal(text, ".png, .jpg, .jpeg, .pgm, .ppm, .pnm, .pam, .webp, .tif, .tiff, .avif, .heic, .heif and "
                              ".hif");
}

/* ---- Round trips ---- */

static void test_an_encoded_image_comes_back(void **state)
{
    static const int sizes[][2] = {{1, 1}, {1, 31}, {31, 1}, {17, 13}, {64, 48}};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] * 4 * 2; i++) {
        const int bits = i % 2 ? 16 : 8, channels = (int)(i / 2 % 4) + 1;
        for (int id = 0; id < FORMAT_COUNT; id++) {
            const struct format *format = format_of((enum format_id)id);
            struct image image = make_image(sizes[i / 8][0], sizes[i / 8][1], channels, bits, format == JPEG);
            EACH_WRITER(writer, format)
            {
                struct codec_settings settings = settings_of(writer);
                settings.quality = 100;
                settings.lossless = true;
                if (!format->holds_colour && channels >= 3)
                    assert_null(codec_find_writer(format, &image, &settings, NULL));
                else if (codec_find_writer(format, &(struct image){.bits = bits}, &settings, NULL))
                    check_all_back(&image, format, writer, &settings);
                else
                    assert_true(format == PNG && writer->write_bits < bits);
            }
            image_free(&image);
        }
    }
}

/* A codec that is named does what it can, and says what it cannot. */
static void test_a_named_codec_refuses_what_it_cannot(void **state)
{
    const struct codec_settings png = settings_of(codec_find("parallel-png", NULL));
    static struct buffer jpeg;
    struct error error = {0};
    struct image image;
    (void)state;
    make_progressive(&jpeg);
    assert_non_null(png.codec);
    assert_false(codec_decode(jpeg.bytes, jpeg.size, "x", &png, &image, NULL, &error));
    assert_string_equal(error.subject, "x");
    assert_non_null(strstr(error.message, "the codec parallel-png cannot read JPEG; leave --codec out, or give "));
    assert_null(codec_find_writer(JPEG, &(struct image){.bits = 8}, &png, &error));
    assert_int_equal(error.code, ERROR_USAGE);
    assert_null(codec_find("libgif", &error));
    assert_non_null(strstr(error.message, "there is no codec named \"libgif\""));
    assert_null(codec_find("parallel-pn", &error));
    assert_non_null(strstr(error.message, "did you mean \"parallel-png\""));
}

/* ---- PNM ---- */

/* All samples of files with these maxvals become the nearest level of 8 or 16 bits, also in the last bytes of a row. */
static void test_a_sample_of_any_maxval_becomes_the_nearest_level(void **state)
{
    static const int deep[] = {256, 257, 300, 1000, 1023, 4095, 16383, 32767, 32768, 65521, 65533, 65534, 65535};
    (void)state;
    for (int i = 1; i < 256 + (int)(sizeof deep / sizeof *deep); i++) {
        const int maxval = i < 256 ? i : deep[i - 256];
        const uint64_t white = maxval > 255 ? 65535 : 255;
        static uint8_t bytes[3 * 65536];
        size_t size = (size_t)snprintf((char *)bytes, 64, "P5\n%d 1\n%d\n", maxval + 1, maxval);
        for (int v = 0; v <= maxval; v++) {
            if (maxval > 255)
                bytes[size++] = (uint8_t)(v >> 8);
            bytes[size++] = (uint8_t)v;
        }
        struct image image;
        const struct codec_settings settings = settings_of(NULL);
        assert_true(codec_decode(bytes, size, "x", &settings, &image, NULL, NULL));
        assert_int_equal(image.bits, maxval > 255 ? 16 : 8);
        for (size_t v = 0; v <= (size_t)maxval; v++)
            if (sample_of(&image, v) != (2 * v * white + (uint64_t)maxval) / (2 * (uint64_t)maxval))
                fail_msg("of maxval %d, %zu became %u", maxval, v, sample_of(&image, v));
        image_free(&image);
    }
}

/* ---- Bad files and limits ---- */

static void test_bad_files_are_refused_with_their_reason(void **state)
{
    static const char *const files[][2] = {
        {"empty.png", "is empty"},
        {"not-an-image.png", "is not a PNG, JPEG, PGM, PPM, PAM, WebP, TIFF, AVIF or HEIC"},
        {"gif.png", "is a GIF image"},
        {"heic.jpg", "it has no picture"},
        {"film.heic", "is a film without a still picture"},
        {"truncated.heic", "truncated: the box at byte 173 is longer than the rest of the file"},
        {"no-configuration.heic", "its picture has no configuration"},
        {"jpeg.heic", "its picture is not coded as HEVC or AV1"},
        {"15-bit.heic", "its samples have 15 bits, and at most 12 are read"},
        {"no-size.heic", "its picture has no size"},
        {"zero-width.heic", "it claims 0 x 8 pixels"},
        {"wide.heic", "it claims 2147483648 x 8 pixels"},
        {"large.heic", "32769 x 8 pixels are too many: at most 32768 on a side are read"},
        {"crop.heic", "its crop does not fit its picture of 8 x 8 pixels"},
        {"truncated.webp", "truncated: it has 31 of 34 bytes"},
        {"signature.webp", "its first 12 bytes are wrong"},
        {"long-chunk.webp", "the chunk at byte 12 is longer than its container"},
        {"header.webp", "its picture at byte 12 has no header"},
        {"few-data.webp", "its data are too few for 16383 x 16383 pixels"},
        {"canvas.webp", "its picture of 1 x 1 pixels does not fit its canvas of 2 x 1"},
        {"no-picture.webp", "it has no picture"},
        {"no-frame.webp", "it is an animation without a frame"},
        {"svg.png", "is an SVG drawing"},
        {"truncated.png", "truncated: chunk IDAT at byte 33 claims 152 bytes and 144 are left"},
        {"crc.png", "the checksum of chunk IDAT at byte 33 is wrong"},
        {"crc-trns.png", "the checksum of chunk tRNS at byte 33 is wrong"},
        {"cgbi.png", "is a PNG optimised for iPhones (CgBI)"},
        {"signature.png", "signature"},
        {"no-ihdr.png", "chunk IDAT at byte 8 is where IHDR must be"},
        {"no-idat.png", "it has no IDAT chunk"},
        {"no-iend.png", "truncated: it ends after 197 bytes without an IEND chunk"},
        {"no-palette.png", "it has no PLTE chunk before byte 33"},
        {"huge.png", "data are too few for 100000 x 100000 pixels"},
        {"wide.png", "2147483647 x 1 pixels are too many"},
        {"zero-width.png", "it claims 0 x 8 pixels"},
        {"depth.png", "there is no colour type 2 with 4 bits per sample"},
        {"long-chunk.png", "chunk IDAT at byte 33 claims 4294967295 bytes"},
        {"unknown-chunk.png", "chunk NEWS at byte 33"},
        {"few-rows.png", "its data cannot be decoded ("},
        {"not-deflate.png", "its data cannot be decoded"},
        {"bomb.png", "its data cannot be decoded (it continues after the last row)"},
        {"few-data.png", "its data are too few for 16000 x 16000 pixels"},
        {"few-data.jpg", "its data are too few for 65500 x 5400 pixels"},
        {"checksum.png", "its data cannot be decoded (its compression or checksum is damaged)"},
        {"truncated.jpg", "truncated: it ends after 139 bytes without an end marker"},
        {"no-scan.jpg", "it has no picture"},
        {"no-frame.jpg", "it has no frame header"},
        {"zero-width.jpg", "it claims 0 pixels per row"},
        {"12-bit.jpg", "12 bits per sample"},
        {"two-channels.jpg", "is a JPEG of 2 channels, which is not read"},
        {"lossless.jpg", "is a lossless JPEG"},
        {"hierarchical.jpg", "is a hierarchical JPEG"},
        {"jpeg-ls.jpg", "is a JPEG-LS file"},
        {"segment.jpg", "truncated: segment E0 at byte 2 claims 65535 bytes and 6 are left"},
        {"scans.jpg", "more than 100 scans"},
        {"huffman.jpg", "the Huffman tables at byte 84 are wrong"},
        {"plain.ppm", "is a PPM as text"},
        {"bitmap.pnm", "is a PBM bitmap"},
        {"float.pnm", "is a PFM image"},
        {"truncated.pgm", "the PGM file is truncated: it ends in row 8 of 8"},
        {"no-blank.pgm", "no space follows its first 2 bytes"},
        {"header.ppm", "the PPM file is truncated: it ends in its header"},
        {"negative.ppm", "its height is not a number from 1 to 2147483647"},
        {"huge.pgm", "it ends in row 1 of 2147483647"},
        {"overflow.ppm", "its width is not a number from 1 to 2147483647"},
        {"maxval.pgm", "its maxval is not a number from 1 to 65535"},
        {"above.pgm", "its data cannot be decoded (a sample is above its maxval)"},
        {"above.pam", "its data cannot be decoded (a sample is above its maxval)"},
        {"thumbnail.pam", "no end of line follows its first 2 bytes"},
        {"no-depth.pam", "its header has no line WIDTH, HEIGHT, DEPTH or MAXVAL"},
        {"no-end.pam", "the PAM file is truncated: it ends in its header"},
        {"line.pam", "its header has an unknown line at byte 11"},
        {"cmyk.pam", "is a PAM of depth 4 and tuple type \"CMYK\", which is not read"},
        {"depth.pam", "is a PAM of depth 2 and tuple type \"RGB\", which is not read"},
    };
    const char *root = getenv("GPUCONV_BAD_INPUTS");
    (void)state;
    if (root == NULL)
        fail_msg("GPUCONV_BAD_INPUTS is not set to the folder of tests/data/bad.py");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const struct format *format = format_find_by_path(files[i][0]);
        uint8_t *bytes;
        size_t size;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", root, files[i][0]);
        EACH_READER(codec, format)
        {
            const struct codec_settings settings = settings_of(codec);
            struct error error = {0};
            struct image image = {0};
            if (file_read(path, 1 << 20, &bytes, &size, NULL, &error) &&
                codec_decode(bytes, size, path, &settings, &image, NULL, &error))
                fail_msg("%s was decoded by %s", files[i][0], codec->name);
            free(bytes);
            assert_null(image.samples);
            assert_int_equal(error.code, ERROR_WORK);
            if (strcmp(error.subject, path) != 0 || !strstr(error.message, files[i][1]))
                fail_msg("%s by %s: expected \"%s\", got \"%s\"", files[i][0], codec->name, files[i][1], error.message);
        }
    }
}

/* stb takes a JPEG, and an image, up to 2^30 bytes of samples. Others take more. */
static void test_limits_of_stb(void **state)
{
    const struct codec_settings stb = settings_of(codec_find("stb", NULL)), any = settings_of(NULL);
    struct codec_info info = {.format = PNG, .size = 100, .width = 32768, .height = 32768, .channels = 1, .bits = 8};
    struct image shape = {.width = 32768, .height = 32768, .channels = 1, .bits = 8};
    struct error error;
    (void)state;
    assert_true(codec_choose_reader(&info, &stb, "x", &error));
    assert_non_null(codec_find_writer(PNG, &shape, &stb, &error));
    info.height = shape.height = 32769;
    assert_false(codec_choose_reader(&info, &stb, "x", &error));
    assert_string_equal(error.message, "32768 x 32769 x 1 samples are too many for the codec stb: it takes at "
                                       "most 2^30 samples, half as many of 16 bits, and files of 2 GiB; leave --codec "
                                       "out, or give parallel-png");
    assert_null(codec_find_writer(PNG, &shape, &stb, &error));
    assert_non_null(strstr(error.message, "too many for the codec stb"));
    assert_true(codec_choose_reader(&info, &any, "x", &error));
    assert_non_null(codec_find_writer(PNG, &shape, &any, &error));
    info.height = 16385; /* an image of 16 bits may have half as many rows */
    info.bits = 16;
    assert_false(codec_choose_reader(&info, &stb, "x", &error));
    info.height = 1; /* a file that stb cannot count */
    info.size = (size_t)1 << 31;
    assert_false(codec_choose_reader(&info, &stb, "x", &error));
    assert_true(codec_choose_reader(&info, &any, "x", &error));
    info.format = JPEG;
    info.cmyk = true; /* stb does not read it */
    info.width = 65501;
    assert_false(codec_choose_reader(&info, &any, "x", &error));
    assert_non_null(strstr(error.message, codec_find("libjpeg-turbo", NULL)
                                              ? "cut the image into pieces or scale it down"
                                              : "is a CMYK JPEG"));
}

static void test_images_beyond_the_limits_are_refused(void **state)
{
    const struct kind kind = {.colour = 0, .bits = 16, .channels = 1};
    const struct codec_settings settings = settings_of(NULL);
    static struct buffer png;
    struct error error = {0};
    struct image image;
    uint8_t sample = 0, *bytes;
    size_t size;
    (void)state;
    /* A row of 2^24 pixels is too long. One pixel less is not, but there are too few data for it. */
    for (uint32_t more = 0; more < 2; more++) {
        make_png(&png, &kind, 1, 1);
        png.size = 16;
        put32(&png, FORMAT_SIDE_MAX + more);
        put32(&png, 2);
        png.size = 29;
        put32(&png, libdeflate_crc32(0, png.bytes + 12, 17));
        assert_false(codec_decode(png.bytes, sizeof png.bytes, "x", &settings, &image, NULL, &error));
        assert_non_null(strstr(error.message, more ? "too many: at most 16777215 on a side" : "data are too few"));
    }

    const struct image wide = {.width = 65536, .height = 1, .channels = 1, .bits = 8, .samples = &sample};
    assert_false(codec_encode(&wide, JPEG, &settings, &bytes, &size, &error));
    assert_non_null(strstr(error.message, "too many for a JPEG file: at most 65535 on a side"));
    assert_null(bytes);
    const struct image wider = {.width = FORMAT_SIDE_MAX + 1, .height = 1, .channels = 1, .bits = 8};
    assert_null(codec_find_writer(PNG, &wider, &settings, &error));
    assert_non_null(strstr(error.message, "too many for a PNG file: at most 16777215 on a side"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats_are_complete_and_found_by_suffix),
        cmocka_unit_test(test_a_sample_of_any_maxval_becomes_the_nearest_level),
        cmocka_unit_test(test_an_encoded_image_comes_back),
        cmocka_unit_test(test_a_named_codec_refuses_what_it_cannot),
        cmocka_unit_test(test_bad_files_are_refused_with_their_reason),
        cmocka_unit_test(test_limits_of_stb),
        cmocka_unit_test(test_images_beyond_the_limits_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
