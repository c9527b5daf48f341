/* SPDX-License-Identifier: MIT
 *
 * JPEG as written by src/jpeg and by the codec parallel-jpeg, byte by byte against libjpeg-turbo: every instruction
 * set, chroma subsampling, number of channels and quality, all small sizes, bands of all heights. */
#include "base/parallel.h"
#include "base/random.h"
#include "codec/codec.h"
#include "jpeg/encode_loops.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define JPEG format_of(FORMAT_JPEG)

static const struct chroma_subsampling all_chroma[] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}, {4, 2}, {0, 0}};

enum { CHROMAS = sizeof all_chroma / sizeof *all_chroma };

/* ---- Images ---- */

enum content { NOISE, FLAT, EXTREMES, BLOCKS, STRIPES, RAMP, CONTENTS };

/* A sample of CONTENT. The extremes are 0 and 255: in noise, in blocks that make the largest DC differences, and in
 * stripes that make the largest AC coefficients. */
static uint8_t make_sample(enum content content, int x, int y, int channel, uint64_t *random)
{
    const uint64_t bits = content <= EXTREMES ? random_next(random) : 0;
    switch (content) {
    case NOISE:
        return (uint8_t)bits;
    case FLAT:
        return 77;
    case EXTREMES:
        return bits & 1 ? 255 : 0;
    case BLOCKS:
        return (x / 8 + y / 8 + channel) % 2 != 0 ? 255 : 0;
    case STRIPES:
        return (x / (1 + channel) + (y / 8 % 2 != 0 ? y : 0)) % 2 != 0 ? 255 : 0;
    default:
        return (uint8_t)(3 * x + 2 * y + 40 * channel);
    }
}

static struct image make_image(int width, int height, int channels, enum content content)
{
    struct image image;
    uint64_t random = (uint64_t)(width * 1000 + height);
    assert_true(image_allocate(&image, width, height, channels, 8, NULL));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                image_row(&image, y)[x * channels + c] = make_sample(content, x, y, c, &random);
    return image;
}

/* ---- Files ---- */

struct file {
    uint8_t *bytes;
    size_t size;
};

static const struct codec *find_or_skip(const char *name)
{
    const struct codec *codec = codec_find(name, NULL);
    if (codec == NULL) {
        print_message("%s was not built in\n", name);
        skip();
    }
    return codec;
}

static struct file encode_by_codec(const char *name, const struct image *image, struct chroma_subsampling chroma,
                                   int quality, struct thread_pool *pool)
{
    const struct codec_settings settings = {
        .codec = find_or_skip(name), .quality = quality, .chroma_subsampling = chroma, .pool = pool};
    struct file file;
    assert_true(codec_encode(image, JPEG, &settings, &file.bytes, &file.size, NULL));
    return file;
}

/* Encode bands of ROWS rows of MCUs, with one instruction set. */
static struct file encode_bands(const struct jpeg_encode_loops *loops, const struct image *image,
                                struct chroma_subsampling chroma, int quality, int rows)
{
    struct jpeg_layout layout;
    struct file file;
    jpeg_layout_for_writing(&layout, image->width, image->height, image->channels, chroma, quality);
    struct jpeg_encoder *encoder = jpeg_encoder_open(&layout);
    assert_non_null(encoder);
    encoder->loops = loops;
    rows *= JPEG_SIDE * layout.vertical;
    for (int y = 0; y < image->height; y += rows) {
        const struct image part = image_rows(image, y, image->height - y < rows ? image->height - y : rows);
        assert_true(jpeg_encode_band(encoder, y, &part) && jpeg_write_bands(encoder, y, part.height));
    }
    assert_true(jpeg_encoder_finish(encoder, &file.bytes, &file.size));
    jpeg_encoder_close(encoder);
    return file;
}

/* Release the ACTUAL file. */
static void expect_equal(struct file expected, struct file actual, const char *name, const struct image *image,
                         struct chroma_subsampling chroma, int quality)
{
    if (expected.size != actual.size || memcmp(expected.bytes, actual.bytes, expected.size) != 0)
        fail_msg("%s differs: %d x %d x %d, chroma %d x %d, quality %d", name, image->width, image->height,
                 image->channels, chroma.horizontal, chroma.vertical, quality);
    free(actual.bytes);
}

/* Every instruction set writes IMAGE as libjpeg-turbo does. */
static void check_sets(const struct image *image, struct chroma_subsampling chroma, int quality, int rows)
{
    size_t count;
    const enum instruction_set *sets = instruction_sets(&count);
    const struct file expected = encode_by_codec("libjpeg-turbo", image, chroma, quality, NULL);
    for (size_t i = 0; i < count; i++)
        expect_equal(expected, encode_bands(jpeg_encode_loops_for(sets[i]), image, chroma, quality, rows),
                     instruction_set_name(sets[i]), image, chroma, quality);
    free(expected.bytes);
}

/* ---- Tests ---- */

static void test_the_headers_are_libjpeg_turbos(void **state)
{
    (void)state;
    for (int channels = 1; channels <= 3; channels += 2)
        for (int i = 0; i < CHROMAS; i++)
            for (int quality = 1; quality <= 100; quality++) {
                struct image image = make_image(40, 23, channels, FLAT);
                struct jpeg_layout layout;
                struct blob headers = {0};
                jpeg_layout_for_writing(&layout, 40, 23, channels, all_chroma[i], quality);
                assert_true(jpeg_append_headers(&headers, &layout));
                const struct file file = encode_by_codec("libjpeg-turbo", &image, all_chroma[i], quality, NULL);
                assert_true(headers.size < file.size);
                assert_memory_equal(file.bytes, headers.bytes, headers.size);
                blob_free(&headers);
                free(file.bytes);
                image_free(&image);
            }
}

/* All sizes up to 64 x 64 with the usual subsamplings, and a part of them with the others. */
static void test_small_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < CHROMAS - 1; i++)
        for (int width = 1; width <= 64; width++)
            for (int height = 1; height <= 64; height++) {
                const int number = width * 67 + height;
                if ((width > 17 || height > 17) && (number + i) % 5 != 0)
                    continue;
                struct image image = make_image(width, height, 3, (enum content)(number % CONTENTS));
                check_sets(&image, all_chroma[i], 1 + number * 7 % 100, 1 + number % 3);
                image_free(&image);
            }
}

static void test_sizes_of_grey(void **state)
{
    (void)state;
    for (int width = 1; width <= 64; width++)
        for (int height = 1; height <= 64; height++) {
            const int number = width * 67 + height;
            if ((width > 9 || height > 9) && number % 7 != 0)
                continue;
            struct image image = make_image(width, height, 1, (enum content)(number % CONTENTS));
            check_sets(&image, all_chroma[number % CHROMAS], 1 + number * 7 % 100, 1 + number % 3);
            image_free(&image);
        }
}

/* Around the ends of tiles. */
static void test_wide_sizes(void **state)
{
    (void)state;
    for (int i = 0; i < CHROMAS - 1; i++)
        for (int tiles = 1; tiles <= 3; tiles++)
            for (int more = -33; more <= 33; more++) {
                const int number = tiles * 67 + more, width = tiles * JPEG_TILE + more,
                          channels = number % 4 == 0 ? 1 : 3;
                struct image image = make_image(width, 17 + number % 16, channels, (enum content)(number % CONTENTS));
                check_sets(&image, all_chroma[i], 1 + number * 7 % 100, 1 + number % 2);
                image_free(&image);
            }
}

static void test_qualities(void **state)
{
    (void)state;
    for (int content = 0; content < CONTENTS; content++)
        for (int channels = 1; channels <= 3; channels += 2) {
            struct image image = make_image(139, 70, channels, (enum content)content);
            for (int quality = 1; quality <= 100; quality++)
                check_sets(&image, all_chroma[quality % CHROMAS], quality, 2);
            image_free(&image);
        }
}

/* Bands of all heights, on several threads. */
static void test_threads(void **state)
{
    static const int threads[] = {1, 2, 5};
    (void)state;
    for (int content = 0; content < CONTENTS; content++)
        for (int i = 0; i < CHROMAS; i++) {
            struct image image = make_image(150, 331, 3, (enum content)content);
            const struct file expected = encode_by_codec("libjpeg-turbo", &image, all_chroma[i], 85, NULL);
            for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
                struct thread_pool pool;
                thread_pool_open(&pool, threads[k]);
                expect_equal(expected, encode_by_codec("parallel-jpeg", &image, all_chroma[i], 85, &pool),
                             "parallel-jpeg", &image, all_chroma[i], 85);
                thread_pool_close(&pool);
            }
            free(expected.bytes);
            image_free(&image);
        }
}

/* Every magnitude of a coefficient, and more, is divided as libjpeg-turbo does it: to the nearest. */
static void test_divisions(void **state)
{
    (void)state;
    for (unsigned quantiser = 1; quantiser <= 255; quantiser++) {
        struct jpeg_layout layout;
        jpeg_layout_for_writing(&layout, 8, 8, 1, all_chroma[0], 50);
        layout.tables.quantisers[0][9] = (uint16_t)quantiser;
        struct jpeg_encoder *encoder = jpeg_encoder_open(&layout);
        const struct jpeg_divisors *divisors = &encoder->divisors[0];
        for (unsigned x = 0; x <= 9000; x++) {
            const unsigned scaled = (x + divisors->bias[9]) * divisors->reciprocal[9] >> 16;
            assert_int_equal(scaled * divisors->scale[9] >> 16, (x + 4 * quantiser) / (8 * quantiser));
        }
        jpeg_encoder_close(encoder);
    }
}

/* Encode from the bottom to the top in bands of some multiples, and write in bands of others. */
static struct file write_bands(const struct image *image, const struct codec_settings *settings, int encoded,
                               int written)
{
    struct codec_writer writer;
    struct file file;
    assert_true(codec_writer_open(&writer, image, JPEG, settings, NULL));
    encoded *= writer.sink.multiple;
    written *= writer.sink.multiple;
    for (int y = (image->height - 1) / encoded * encoded; y >= 0; y -= encoded) {
        const int left = image->height - y;
        const struct image rows = image_rows(image, y, left < encoded ? left : encoded);
        assert_true(writer.sink.encode(&writer, 0, y, &rows, NULL));
    }
    for (int y = 0; y < image->height; y += written) {
        const int left = image->height - y;
        const struct image rows = image_rows(image, y, left < written ? left : written);
        assert_true(writer.sink.write(&writer, y, &rows, NULL));
    }
    assert_true(codec_writer_finish(&writer, &file.bytes, &file.size, NULL));
    codec_writer_close(&writer);
    return file;
}

static void test_bands_of_all_heights(void **state)
{
    const struct codec_settings settings = {.codec = find_or_skip("parallel-jpeg"), .quality = 95};
    (void)state;
    for (int content = 0; content < CONTENTS; content++) {
        struct image image = make_image(130, 123, 3, (enum content)content);
        const struct file expected = encode_by_codec("libjpeg-turbo", &image, settings.chroma_subsampling, 95, NULL);
        for (int encoded = 1; encoded <= 17; encoded++)
            for (int written = 1; written <= encoded; written += 3)
                expect_equal(expected, write_bands(&image, &settings, encoded, written), "parallel-jpeg", &image,
                             settings.chroma_subsampling, 95);
        free(expected.bytes);
        image_free(&image);
    }
}

/* Append one bit after the other. */
static void put_bits(struct file *file, int *count, const uint8_t *bits, uint64_t size)
{
    for (uint64_t i = 0; i < size; i++) {
        uint8_t *byte = &file->bytes[file->size];
        *byte = (uint8_t)(*byte << 1 | (bits[i / 8] >> (7 - i % 8) & 1));
        *count = (*count + 1) % 8;
        if (*count == 0)
            file->size += *byte == 0xff ? 2 : 1;
    }
}

/* Strings of bits of all lengths, at all places in a byte, with few and many bytes of FF. */
static void test_joining(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (int length = 0; length <= 300; length++)
        for (int offset = 0; offset < 8; offset++)
            for (int kind = 0; kind < 3; kind++) {
                uint8_t bits[40], bytes[200] = {0};
                struct file expected = {.bytes = bytes};
                struct jpeg_file file = {.pending_count = 0};
                int count = 0;
                for (size_t i = 0; i < sizeof bits; i++) {
                    const uint64_t value = random_next(&random);
                    bits[i] = kind == 0 || (kind == 1 && value % 3 == 0) ? 0xff : (uint8_t)(value >> 8);
                }
                const uint64_t sizes[] = {(uint64_t)offset, (uint64_t)length, 13};
                for (int i = 0; i < 3; i++) {
                    put_bits(&expected, &count, bits, sizes[i]);
                    assert_true(jpeg_file_append_bits(&file, bits, sizes[i]));
                    assert_int_equal(file.pending_count, count);
                    assert_int_equal(file.blob.size, expected.size);
                    assert_memory_equal(file.blob.bytes, expected.bytes, expected.size);
                }
                blob_free(&file.blob);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_headers_are_libjpeg_turbos),
        cmocka_unit_test(test_small_sizes),
        cmocka_unit_test(test_sizes_of_grey),
        cmocka_unit_test(test_wide_sizes),
        cmocka_unit_test(test_qualities),
        cmocka_unit_test(test_divisions),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_bands_of_all_heights),
        cmocka_unit_test(test_joining),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
