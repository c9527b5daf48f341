/* SPDX-License-Identifier: MIT
 *
 * Readers of whole files, with codecs made here: rows in any order from several threads, with the raw rows around them;
 * and files that a codec does not support. */
#include "base/error.h"
#include "base/parallel.h"
#include "codec/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/helpers.h"

enum { CHANNELS = 3, RAW_MORE = 5 };

/* ---- Rows in any order ---- */

/* What a reader's calls share. */
struct calls {
    int multiple, fail_at; /* the row whose fetch fails, or -1 */
    bool fetches;
    atomic_int opened, closed;
    atomic_int fetched[4096], read[4096]; /* for each row */
};

static struct calls calls;

/* The raw byte of a sample. */
static uint8_t raw_at(int y, size_t x)
{
    return (uint8_t)((size_t)y * 31 + x * 7 + (size_t)y / 16);
}

/* The sample that three raw rows make. */
static uint8_t sample_at(int y, size_t x, int height)
{
    const uint8_t above = raw_at(y > 0 ? y - 1 : 0, x), below = raw_at(y + 1 < height ? y + 1 : y, x);
    return (uint8_t)(above + 2 * raw_at(y, x) + 3 * below);
}

/* Rows up to the multiple are there, but hold nothing. */
static bool fetch_any(void *context, int first, int rows, uint8_t *raw, struct error *error)
{
    const struct codec_reader *reader = context;
    const int height = reader->input.info->height,
              whole = (rows + calls.multiple - 1) / calls.multiple * calls.multiple;
    assert_true(first % calls.multiple == 0 && (rows % calls.multiple == 0 || first + rows == height));
    for (int y = first; y < first + whole; y++)
        for (size_t x = 0; x < reader->source.raw_bytes; x++)
            raw[(size_t)(y - first) * reader->source.raw_bytes + x] = y < height ? raw_at(y, x) : 0xEE;
    for (int y = first; y < first + rows; y++)
        assert_int_equal(atomic_fetch_add(&calls.fetched[y], 1), 0);
    return calls.fail_at < first || calls.fail_at >= first + rows ||
           error_set(error, ERROR_WORK, "failed at row %d", calls.fail_at);
}

static bool read_any(void *context, int first, int rows, const struct rows *raw, uint8_t *samples, struct error *error)
{
    const struct codec_reader *reader = context;
    const int height = reader->input.info->height;
    const size_t row = (size_t)reader->input.info->width * CHANNELS;
    (void)error;
    assert_true(first % calls.multiple == 0 && (rows % calls.multiple == 0 || first + rows == height));
    for (int y = first; y < first + rows; y++) {
        assert_int_equal(atomic_fetch_add(&calls.read[y], 1), 0);
        for (size_t x = 0; x < row; x++)
            samples[(size_t)(y - first) * row + x] = sample_at(y, x, height);
    }
    if (!calls.fetches)
        return raw->data == NULL;
    assert_true((raw->above != NULL) == (first > 0) && (raw->below != NULL) == (first + rows < height));
    for (int y = first - (raw->above != NULL); y < first + rows + (raw->below != NULL); y++) {
        const uint8_t *from = y < first          ? raw->above - reader->source.raw_bytes
                              : y < first + rows ? raw->data + (size_t)(y - first) * reader->source.raw_bytes
                                                 : raw->below;
        for (size_t x = 0; x < row; x++)
            assert_int_equal(from[x], raw_at(y, x));
    }
    return true;
}

static bool open_any(struct codec_reader *reader, struct error *error)
{
    (void)error;
    struct row_source *source = &reader->source;
    assert_true(source->any_order);
    source->multiple = calls.multiple;
    source->raw_bytes = calls.fetches ? (size_t)reader->input.info->width * CHANNELS + RAW_MORE : 0;
    source->fetch = calls.fetches ? fetch_any : NULL;
    source->read = read_any;
    atomic_fetch_add(&calls.opened, 1);
    return true;
}

static void close_any(struct codec_reader *reader)
{
    (void)reader;
    atomic_fetch_add(&calls.closed, 1);
}

static const struct codec_functions any_functions = {.reader_open = open_any, .reader_close = close_any};
static const struct codec any_order = {
    .name = "any",
    .reads = 1 << FORMAT_JPEG,
    .any_order = true,
    .functions = &any_functions,
};

/* Decode on THREADS threads, and compare all samples. */
static void check_any_order(int width, int height, int threads, int bits)
{
    const struct codec_info info = {.format = format_of(FORMAT_JPEG),
                                    .width = width,
                                    .height = height,
                                    .channels = CHANNELS,
                                    .bits = 8,
                                    .codec = &any_order};
    struct thread_pool pool;
    const struct codec_settings settings = {.bits = bits, .pool = &pool};
    const struct codec_input input = {.name = "x", .info = &info, .settings = &settings};
    struct codec_reader reader;
    struct image image;
    struct error error;
    thread_pool_open(&pool, threads);
    assert_true(codec_reader_open(&reader, &input, &error) && reader.source.read != NULL);
    const bool done = codec_reader_decode(&reader, &image, &error);
    assert_true(done == (calls.fail_at < 0));
    if (!done) {
        assert_error(&error, "failed at row 100");
        assert_null(image.samples);
    } else {
        assert_int_equal(image.bits, bits > 0 ? bits : 8);
        for (int y = 0; y < height; y++) {
            assert_int_equal(atomic_load(&calls.read[y]), 1);
            for (size_t x = 0; x < (size_t)width * CHANNELS; x++) {
                const unsigned sample = sample_at(y, x, height);
                if (bits == 16)
                    assert_int_equal(((const uint16_t *)(const void *)image_row(&image, y))[x], sample * 257);
                else
                    assert_int_equal(image_row(&image, y)[x], sample);
            }
        }
        image_free(&image);
    }
    codec_reader_close(&reader);
    assert_true(atomic_load(&calls.opened) == 1 && atomic_load(&calls.closed) == 1);
    thread_pool_close(&pool);
}

static void test_rows_in_any_order(void **state)
{
    (void)state;
    static const int heights[] = {1, 15, 16, 17, 300, 301};
    for (size_t i = 0; i < sizeof heights / sizeof *heights; i++)
        for (int threads = 1; threads <= 4; threads += 3)
            for (int k = 0; k < 8; k++) {
                memset(&calls, 0, sizeof calls);
                calls.multiple = k & 1 ? 16 : 1;
                calls.fetches = k & 2;
                calls.fail_at = -1;
                check_any_order(k & 1 ? 1500 : 7, heights[i], threads, k & 4 ? 16 : 0);
            }
}

static void test_a_failure_ends_the_decoding(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads += 3) {
        memset(&calls, 0, sizeof calls);
        calls.multiple = 8;
        calls.fetches = true;
        calls.fail_at = 100;
        check_any_order(1500, 400, threads, 0);
    }
}

/* ---- Declined files ---- */

static bool open_declined(struct codec_reader *reader, struct error *error)
{
    (void)error;
    atomic_fetch_add(&calls.opened, 1);
    reader->unsupported = true;
    return false;
}

static size_t need_nothing(const struct codec_info *info)
{
    (void)info;
    return 0;
}

/* Another codec reads a file that the first does not support, and gives its name. */
static void test_a_declined_file_is_read_by_another_codec(void **state)
{
    (void)state;
    const struct codec_functions functions = {
        .reader_open = open_declined, .reader_close = close_any, .reader_need = need_nothing};
    const struct codec unsupporting = {
        .name = "unsupporting",
        .reads = 1 << FORMAT_JPEG,
        .may_fall_back = true,
        .any_order = true,
        .functions = &functions,
    };
    const struct codec_settings settings = {.quality = CODEC_QUALITY, .compression = CODEC_COMPRESSION};
    struct image image, expected;
    struct codec_info info;
    struct error error;
    struct codec_reader reader;
    uint8_t *bytes;
    size_t size;
    assert_true(image_allocate(&image, 70, 50, CHANNELS, 8, NULL));
    for (size_t i = 0; i < image_bytes(&image); i++)
        image.samples[i] = (uint8_t)(i * i / 1000);
    assert_true(codec_encode(&image, format_of(FORMAT_JPEG), &settings, &bytes, &size, &error));
    image_free(&image);
    assert_true(codec_decode(bytes, size, "x", &settings, &expected, &info, &error));
    const struct codec *other = info.codec;
    const bool by_rows = codec_reads_rows(&info);
    const size_t need = by_rows ? codec_reader_need(&info) : 0;

    memset(&calls, 0, sizeof calls);
    info.codec = &unsupporting;
    assert_true(codec_reads_rows(&info) == by_rows);
    assert_true(!by_rows || codec_reader_need(&info) == need);
    const struct codec_input input = {.bytes = bytes, .size = size, .name = "x", .info = &info, .settings = &settings};
    assert_true(codec_reader_open(&reader, &input, &error));
    assert_ptr_equal(reader.codec, other);
    assert_false(reader.source.any_order || reader.unsupported);
    assert_true(atomic_load(&calls.opened) == 1 && atomic_load(&calls.closed) == 1);
    assert_true(codec_reader_decode(&reader, &image, &error));
    assert_memory_equal(image.samples, expected.samples, image_bytes(&expected));
    image_free(&image);
    codec_reader_close(&reader);
    image_free(&expected);
    free(bytes);

    info.width = info.height = 70000; /* too large for all others */
    assert_true(codec_reads_rows(&info));
    assert_false(codec_reader_open(&reader, &input, &error));
    assert_non_null(strstr(error.message, "70000 x 70000 x 3 samples are too many for the codec "));
    assert_string_equal(error.subject, "x");
    codec_reader_close(&reader);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_in_any_order),
        cmocka_unit_test(test_a_failure_ends_the_decoding),
        cmocka_unit_test(test_a_declined_file_is_read_by_another_codec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
