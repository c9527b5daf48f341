/* SPDX-License-Identifier: MIT
 *
 * A PNG read row by row: the same samples for every number of rows at once and of threads, and the same errors in every
 * build. */
#include "base/file.h"
#include "base/parallel.h"
#include "base/random.h"
#include "codec/codec.h"
#include "container/png.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <libdeflate.h>

/* ---- Files ---- */

static const struct codec_settings settings = {.compression = CODEC_COMPRESSION};

/* Make a PNG around the stream of SIZE bytes, in IDAT chunks of STEP bytes with an empty one before each. Chunks of a
 * few bytes hold the first and the last 3000 bytes only, which takes less time. */
static struct blob make_png(const char header[13], const uint8_t *stream, size_t size, size_t step)
{
    struct blob png = {0};
    assert_true(blob_append(&png, png_signature, PNG_SIGNATURE) && png_chunk_append(&png, "IHDR", header, 13));
    for (size_t at = 0, part; at < size; at += part) {
        part = step < 100 && at >= 3000 && at + 4000 < size ? 1000 : step < size - at ? step : size - at;
        assert_true(png_chunk_append(&png, "IDAT", NULL, 0) && png_chunk_append(&png, "IDAT", stream + at, part));
    }
    assert_true(png_chunk_append(&png, "IEND", NULL, 0));
    return png;
}

/* A file while it is read, ROWS rows at once. */
struct reading {
    struct codec_reader reader;
    int rows;
    uint8_t *samples, *raw[2];
    bool is_good;
    atomic_bool has_ended;
    struct error *error;
};

/* Read all rows, and fetch the rows after them before. */
static void read_all(struct reading *reading)
{
    const struct row_source *source = &reading->reader.source;
    const struct codec_info *info = reading->reader.input.info;
    const size_t row = (size_t)info->width * (size_t)info->channels * (size_t)info->bits / 8;
    const int rows = reading->rows;
    for (int y = -rows, i = 0; reading->is_good && y < info->height; y += rows, i = !i) {
        const int next = y + rows, left = info->height - next;
        if (left > 0)
            reading->is_good =
                source->fetch(&reading->reader, next, left < rows ? left : rows, reading->raw[i], reading->error);
        if (reading->is_good && y >= 0)
            reading->is_good = source->read(&reading->reader, y, left < 0 ? rows + left : rows,
                                            &(struct rows){.data = reading->raw[!i]},
                                            reading->samples + row * (size_t)y, reading->error);
    }
    atomic_store(&reading->has_ended, true);
}

/* The first thread reads, and the others help. */
static void read_or_help(void *context, int64_t index, int thread)
{
    struct reading *reading = context;
    (void)thread;
    if (index == 0)
        read_all(reading);
    while (reading->reader.source.help != NULL && !atomic_load(&reading->has_ended))
        (void)reading->reader.source.help(&reading->reader);
}

/* Read the file on THREADS threads. Returns NULL with an error, or the samples. */
static uint8_t *read_rows(const uint8_t *bytes, size_t size, int rows, int threads, struct codec_info *info,
                          struct error *error)
{
    struct thread_pool pool;
    struct codec_settings own = settings;
    struct reading reading = {.reader = {.input = {bytes, size, "x", info, &own}}, .rows = rows, .error = error};
    reading.reader.source.context = &reading.reader;
    if (!codec_inspect(bytes, size, "x", NULL, info, error))
        return NULL;
    const struct codec *codec = info->codec = codec_find("parallel-png", error);
    thread_pool_open(&pool, threads);
    own.pool = &pool;
    own.reader_extra = codec_reader_extra(info, &own);
    assert_true(threads > 1 || own.reader_extra == 0);
    reading.is_good = codec->functions->reader_open(&reading.reader, error);
    assert_true(!reading.is_good || (reading.reader.source.help != NULL) == (own.reader_extra > 0));
    reading.samples =
        malloc((size_t)info->width * (size_t)info->channels * (size_t)info->bits / 8 * (size_t)info->height);
    for (int i = 0; i < 2; i++)
        reading.raw[i] = malloc(reading.is_good ? reading.reader.source.raw_bytes * (size_t)rows : 1);
    parallel_for(&pool, threads, threads, read_or_help, &reading);
    thread_pool_close(&pool);
    codec->functions->reader_close(&reading.reader);
    free(reading.raw[0]);
    free(reading.raw[1]);
    if (!reading.is_good)
        free(reading.samples);
    return reading.is_good ? reading.samples : NULL;
}

static void check_file(const uint8_t *bytes, size_t size, const char *name)
{
    struct codec_settings stb = settings;
    struct codec_info info;
    struct error error;
    struct image image;
    stb.codec = codec_find("stb", NULL);
    assert_true(codec_decode(bytes, size, "x", &stb, &image, NULL, &error));
    for (int rows = 1; rows <= image.height + 1; rows += rows < 3 ? 1 : image.height / 3 + 1) {
        uint8_t *samples = read_rows(bytes, size, rows, 1 + rows % 3, &info, &error);
        if (samples == NULL)
            fail_msg("%s, %d rows: %s", name, rows, error.message);
        if (memcmp(samples, image.samples, image_bytes(&image)) != 0)
            fail_msg("%s, %d rows: other samples", name, rows);
        free(samples);
    }
    image_free(&image);
}

/* ---- Tests ---- */

static void test_rows_come_alike_in_every_step(void **state)
{
    char folder[4096];
    int files = 0;
    (void)state;
    snprintf(folder, sizeof folder, "%s/tests/data/pngsuite", getenv("GPUCONV_SOURCE_ROOT"));
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (const struct dirent *entry; (entry = readdir(all)) != NULL;) {
        char path[8192];
        uint8_t *bytes;
        size_t size;
        struct codec_info info;
        if (strstr(entry->d_name, ".png") == NULL || entry->d_name[0] == 'x') /* those are damaged */
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        assert_true(file_read(path, SIZE_MAX / 2, &bytes, &size, NULL, NULL));
        assert_true(codec_inspect(bytes, size, "x", NULL, &info, NULL));
        assert_true(info.interlaced == (bytes[28] == 1));
        if (!info.interlaced) {
            check_file(bytes, size, entry->d_name);
            files++;
        }
        free(bytes);
    }
    closedir(all);
    assert_true(files > 90);
}

enum { WIDTH = 300, HEIGHT = 1200, ROW = 3 * WIDTH + 1, SPARE = ROW - 1 + (1 << 16) };

static const char header[] = "\0\0\1\54\0\0\4\260\10\2\0\0"; /* 300 x 1200 pixels of 3 channels */

/* Deflate rows of noise in which each byte repeats at times, and MORE bytes after them. */
static uint8_t *make_stream(ptrdiff_t more, unsigned filter, size_t *size)
{
    enum { MAX = ROW * HEIGHT + SPARE + 1 };
    static uint8_t raw[MAX];
    uint8_t *stream = malloc(2 * MAX);
    uint32_t seed = 1;
    assert_non_null(stream);
    for (size_t i = 0; i < MAX; i++) {
        seed = seed * 1664525 + 1013904223;
        raw[i] = seed >> 30 == 0 ? (uint8_t)(seed >> 16) : i > 700 ? raw[i - 7 - (seed >> 21) % 600] : 0;
        if (i % ROW == 0)
            raw[i] = (uint8_t)(i / ROW == HEIGHT / 2 ? filter : i / ROW % 5);
    }
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
    *size = libdeflate_zlib_compress(compressor, raw, (size_t)(ROW * HEIGHT + more), stream, 2 * MAX);
    libdeflate_free_compressor(compressor);
    assert_true(*size > 0);
    return stream;
}

static void test_chunks_may_end_anywhere(void **state)
{
    static const size_t steps[] = {1, 2, 3, 4, 5, 6, 7, 9, 100, 327, 328, 329, 1000, 5000, SIZE_MAX / 2};
    size_t size;
    uint8_t *stream = make_stream(0, 0, &size);
    (void)state;
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        struct blob png = make_png(header, stream, size, steps[i]);
        check_file(png.bytes, png.size, "split");
        blob_free(&png);
    }
    free(stream);
}

/* Expect the error that ends with WORDS, or none, whatever is fetched at once. */
static void expect(const uint8_t *stream, size_t size, const char *words)
{
    static const int rows[] = {1, 7, HEIGHT / 2, HEIGHT};
    struct blob png = make_png(header, stream, size, 10000);
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        const int count = rows[i / 2], threads = i % 2 == 0 ? 1 : 4 + (int)i % 3;
        struct codec_info info;
        struct error error = {.message = "no error"};
        uint8_t *samples = read_rows(png.bytes, png.size, count, threads, &info, &error);
        if ((samples != NULL) != (words == NULL) || (words != NULL && strstr(error.message, words) == NULL))
            fail_msg("%d rows, %d threads: expected %s: %s", count, threads, words, error.message);
        free(samples);
    }
    blob_free(&png);
}

static void test_errors_are_the_same_in_every_step_and_build(void **state)
{
    static const struct {
        ptrdiff_t more; /* bytes than the rows have */
        size_t cut;     /* bytes of the stream */
        int flipped;    /* byte of the stream, from the end if it is negative, or 0 */
        int head;       /* the stream's first bytes, or 0 if they stay as they are */
        unsigned filter;
        const char *words; /* NULL if it is read */
    } cases[] = {
        {.words = NULL},
        {.more = SPARE, .words = NULL},
        {.more = SPARE + 1, .words = "(it continues after the last row)"},
        {.more = -1, .words = "(it ends before the last row)"},
        {.more = -ROW * HEIGHT / 2, .words = "(it ends before the last row)"},
        {.cut = 1, .words = "(its compression or checksum is damaged)"},
        {.cut = 4, .words = "(its compression or checksum is damaged)"},
        {.cut = 5, .words = "(its compression or checksum is damaged)"},
        {.cut = 60000, .words = "(its compression or checksum is damaged)"},
        {.flipped = -1, .words = "(its compression or checksum is damaged)"},
        {.flipped = -4, .words = "(its compression or checksum is damaged)"},
        {.flipped = 30000, .words = "(its compression or checksum is damaged)"},
        {.head = 0x7800, .words = "(its compression is unknown)"},
        {.head = 0x7901, .words = "(its compression is unknown)"},
        {.head = 0x8800 + 31 - 0x8800 % 31, .words = "(its compression is unknown)"}, /* a window of 64 KiB */
        {.head = 0x7820 + 31 - 0x7820 % 31, .words = "(its compression is unknown)"}, /* a dictionary */
        {.filter = 5, .words = "(unknown row filter)"},
        {.filter = 255, .more = SPARE, .words = "(unknown row filter)"},
        {.filter = 5, .flipped = -2, .words = "(its compression or checksum is damaged)"},
        {.filter = 5, .more = SPARE + 1, .words = "(it continues after the last row)"},
        {.filter = 5, .more = -1, .words = "(it ends before the last row)"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t size;
        uint8_t *stream = make_stream(cases[i].more, cases[i].filter, &size);
        const size_t at = cases[i].flipped < 0 ? size + (size_t)cases[i].flipped : (size_t)cases[i].flipped;
        if (at > 0)
            stream[at] ^= 1;
        if (cases[i].head != 0) {
            stream[0] = (uint8_t)(cases[i].head >> 8);
            stream[1] = (uint8_t)cases[i].head;
        }
        expect(stream, size - cases[i].cut, cases[i].words);
        free(stream);
    }
}

/* Deflate rows of WIDTH pixels with BITS a sample, of noise and with random filters, into a file. */
static struct blob make_picture(size_t width, size_t height, unsigned colour, unsigned bits, uint64_t seed)
{
    static const unsigned channels[] = {1, 0, 3, 0, 2, 0, 4};
    const size_t row = 1 + width * channels[colour] * bits / 8, max = row * height + 1000;
    uint8_t *raw = malloc(row * height), *stream = malloc(max);
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(1);
    char ihdr[13] = {0};
    assert_true(raw != NULL && stream != NULL && compressor != NULL);
    for (size_t i = 0; i < row * height; i++) {
        const uint64_t chance = random_next(&seed);
        raw[i] = (uint8_t)(i % row == 0 ? chance % 5 : chance & 31);
    }
    const size_t size = libdeflate_zlib_compress(compressor, raw, row * height, stream, max);
    libdeflate_free_compressor(compressor);
    put_big32((uint8_t *)ihdr, (uint32_t)width);
    put_big32((uint8_t *)ihdr + 4, (uint32_t)height);
    ihdr[8] = (char)bits;
    ihdr[9] = (char)colour;
    struct blob png = make_png(ihdr, stream, size, 8192);
    free(raw);
    free(stream);
    return png;
}

/* All threads inflate, and several undo the row filters. */
static void test_threads_make_the_same_samples(void **state)
{
    static const unsigned kinds[][2] = {{0, 8}, {0, 16}, {2, 8}, {2, 16}, {4, 8}, {4, 16}, {6, 8}, {6, 16}};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof kinds / sizeof *kinds; i++) {
        const unsigned *kind = kinds[i / 2];
        struct blob png = make_picture(500 + 37 * i, 1 + 900 * (i % 2), kind[0], kind[1], i);
        struct image expected, image;
        struct codec_info info;
        struct error error;
        assert_true(codec_decode(png.bytes, png.size, "x", &settings, &expected, &info, &error));
        for (int threads = 2; threads <= 8; threads *= 2) {
            struct thread_pool pool;
            struct codec_settings own = settings;
            thread_pool_open(&pool, threads);
            own.pool = &pool;
            own.reader_extra = codec_reader_extra(&info, &own);
            assert_true((own.reader_extra > 0) == (threads >= 4 && png.size > 1 << 19));
            if (!codec_decode(png.bytes, png.size, "x", &own, &image, NULL, &error))
                fail_msg("%d threads: %s", threads, error.message);
            assert_memory_equal(image.samples, expected.samples, image_bytes(&expected));
            image_free(&image);
            thread_pool_close(&pool);
        }
        image_free(&expected);
        blob_free(&png);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_come_alike_in_every_step),
        cmocka_unit_test(test_chunks_may_end_anywhere),
        cmocka_unit_test(test_errors_are_the_same_in_every_step_and_build),
        cmocka_unit_test(test_threads_make_the_same_samples),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
