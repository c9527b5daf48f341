/* SPDX-License-Identifier: MIT
 *
 * The encoder, byte by byte against libjpeg-turbo: every instruction set, chroma subsampling, number of channels and
 * quality, all small sizes, bands of all heights. */
#include "base/parallel.h"
#include "base/random.h"
#include "jpeg/encode_loops.h"
#include "reference.h"
#include "tests/lib/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

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

static struct pixels make_image(int width, int height, int channels, enum content content)
{
    struct pixels image = {.width = width, .height = height, .channels = channels};
    uint64_t random = (uint64_t)(width * 1000 + height);
    uint8_t *to = image.samples = allocate(pixels_bytes(&image));
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++)
                *to++ = make_sample(content, x, y, c, &random);
    return image;
}

/* ---- Files ---- */

struct file {
    uint8_t *bytes;
    size_t size;
};

static struct file encode_by_reference(const struct pixels *image, struct chroma_subsampling chroma, int quality)
{
    struct jpeg_layout layout;
    struct reference reference;
    chroma = jpeg_chroma_for(chroma, quality);
    reference_encode(image, quality, chroma.horizontal, chroma.vertical, &layout, &reference);
    return (struct file){reference.file, reference.file_size};
}

/* An encoding of some bands. */
struct encoding {
    struct jpeg_encoder *encoder;
    const struct pixels *image;
    int rows; /* rows of the picture in a band */
};

static struct encoding begin(const struct pixels *image, struct chroma_subsampling chroma, int quality, int rows)
{
    struct jpeg_layout layout;
    jpeg_layout_for_writing(&layout, image->width, image->height, image->channels, chroma, quality);
    struct encoding encoding = {jpeg_encoder_open(&layout), image, rows * JPEG_SIDE * layout.vertical};
    assert_non_null(encoding.encoder);
    return encoding;
}

static int rows_from(const struct encoding *encoding, int y)
{
    const int left = encoding->image->height - y;
    return left < encoding->rows ? left : encoding->rows;
}

static void encode_band(void *context, int64_t index, int thread)
{
    struct encoding *encoding = context;
    const struct pixels *image = encoding->image;
    const int y = (int)index * encoding->rows;
    (void)thread;
    assert_true(jpeg_encode_band(encoding->encoder, y, rows_from(encoding, y),
                                 image->samples + (size_t)y * (size_t)image->width * (size_t)image->channels));
}

static int64_t count_bands(const struct encoding *encoding)
{
    return (encoding->image->height - 1) / encoding->rows + 1;
}

/* Write bands of ROWS rows of pixels, and end. */
static struct file finish(struct encoding *encoding, int rows)
{
    struct file file;
    encoding->rows = rows;
    for (int y = 0; y < encoding->image->height; y += rows)
        assert_true(jpeg_write_bands(encoding->encoder, y, rows_from(encoding, y)));
    assert_true(jpeg_encoder_finish(encoding->encoder, &file.bytes, &file.size));
    jpeg_encoder_close(encoding->encoder);
    return file;
}

/* Encode bands of ROWS rows of MCUs, with one instruction set. */
static struct file encode_bands(const struct jpeg_encode_loops *loops, const struct pixels *image,
                                struct chroma_subsampling chroma, int quality, int rows)
{
    struct encoding encoding = begin(image, chroma, quality, rows);
    encoding.encoder->loops = loops;
    for (int64_t i = 0; i < count_bands(&encoding); i++)
        encode_band(&encoding, i, 0);
    return finish(&encoding, encoding.rows);
}

/* Release the ACTUAL file. */
static void expect_equal(struct file expected, struct file actual, const char *name, const struct pixels *image,
                         struct chroma_subsampling chroma, int quality)
{
    if (expected.size != actual.size || memcmp(expected.bytes, actual.bytes, expected.size) != 0)
        fail_msg("%s differs: %d x %d x %d, chroma %d x %d, quality %d", name, image->width, image->height,
                 image->channels, chroma.horizontal, chroma.vertical, quality);
    free(actual.bytes);
}

/* Every instruction set writes IMAGE as libjpeg-turbo does. */
static void check_sets(const struct pixels *image, struct chroma_subsampling chroma, int quality, int rows)
{
    size_t count;
    const enum instruction_set *sets = instruction_sets(&count);
    const struct file expected = encode_by_reference(image, chroma, quality);
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
                struct pixels image = make_image(40, 23, channels, FLAT);
                struct jpeg_layout layout;
                struct blob headers = {0};
                jpeg_layout_for_writing(&layout, 40, 23, channels, all_chroma[i], quality);
                assert_true(jpeg_append_headers(&headers, &layout));
                const struct file file = encode_by_reference(&image, all_chroma[i], quality);
                assert_true(headers.size < file.size);
                assert_memory_equal(file.bytes, headers.bytes, headers.size);
                blob_free(&headers);
                free(file.bytes);
                free(image.samples);
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
                struct pixels image = make_image(width, height, 3, (enum content)(number % CONTENTS));
                check_sets(&image, all_chroma[i], 1 + number * 7 % 100, 1 + number % 3);
                free(image.samples);
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
            struct pixels image = make_image(width, height, 1, (enum content)(number % CONTENTS));
            check_sets(&image, all_chroma[number % CHROMAS], 1 + number * 7 % 100, 1 + number % 3);
            free(image.samples);
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
                struct pixels image = make_image(width, 17 + number % 16, channels, (enum content)(number % CONTENTS));
                check_sets(&image, all_chroma[i], 1 + number * 7 % 100, 1 + number % 2);
                free(image.samples);
            }
}

static void test_qualities(void **state)
{
    (void)state;
    for (int content = 0; content < CONTENTS; content++)
        for (int channels = 1; channels <= 3; channels += 2) {
            struct pixels image = make_image(139, 70, channels, (enum content)content);
            for (int quality = 1; quality <= 100; quality++)
                check_sets(&image, all_chroma[quality % CHROMAS], quality, 2);
            free(image.samples);
        }
}

/* Bands of all heights, on several threads. */
static void test_threads(void **state)
{
    static const int threads[] = {1, 2, 5};
    (void)state;
    for (int content = 0; content < CONTENTS; content++)
        for (int i = 0; i < CHROMAS; i++) {
            struct pixels image = make_image(150, 331, 3, (enum content)content);
            const struct file expected = encode_by_reference(&image, all_chroma[i], 85);
            for (size_t k = 0; k < sizeof threads / sizeof *threads; k++) {
                struct thread_pool pool;
                thread_pool_open(&pool, threads[k]);
                struct encoding encoding = begin(&image, all_chroma[i], 85, 1 + (int)k);
                parallel_for(&pool, threads[k], count_bands(&encoding), encode_band, &encoding);
                expect_equal(expected, finish(&encoding, encoding.rows), "a file of several threads", &image,
                             all_chroma[i], 85);
                thread_pool_close(&pool);
            }
            free(expected.bytes);
            free(image.samples);
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

/* Encode from the bottom to the top in bands of ENCODED rows of MCUs, and write in bands of WRITTEN. */
static struct file write_bands(const struct pixels *image, int encoded, int written)
{
    struct encoding encoding = begin(image, all_chroma[0], 95, encoded);
    for (int64_t i = count_bands(&encoding); i > 0; i--)
        encode_band(&encoding, i - 1, 0);
    return finish(&encoding, encoding.rows / encoded * written);
}

static void test_bands_of_all_heights(void **state)
{
    (void)state;
    for (int content = 0; content < CONTENTS; content++) {
        struct pixels image = make_image(130, 123, 3, (enum content)content);
        const struct file expected = encode_by_reference(&image, all_chroma[0], 95);
        for (int encoded = 1; encoded <= 17; encoded++)
            for (int written = 1; written <= encoded; written += 3)
                expect_equal(expected, write_bands(&image, encoded, written), "a file of bands", &image, all_chroma[0],
                             95);
        free(expected.bytes);
        free(image.samples);
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

/* Strings of bits of all lengths, at all offsets in a byte, with few and many bytes of FF. */
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
