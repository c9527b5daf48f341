/* SPDX-License-Identifier: MIT
 *
 * The bounds of codec/memory.c beside the memory that codecs take: each codec reads and writes pictures of several
 * shapes. The allocations of the program and of all its libraries come to the functions here, which count bytes. */
#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "codec/codec.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Counting ---- */

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

static atomic_long held, peak;

static void count(long more)
{
    const long now = atomic_fetch_add(&held, more) + more;
    long seen = atomic_load(&peak);
    while (now > seen && !atomic_compare_exchange_weak(&peak, &seen, now))
        ;
}

static void *counted(void *block)
{
    count((long)malloc_usable_size(block));
    return block;
}

void *malloc(size_t size)
{
    return counted(__libc_malloc(size));
}

void *calloc(size_t number, size_t size)
{
    return counted(__libc_calloc(number, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size));
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
    *block = counted(__libc_memalign(alignment, size));
    return *block == NULL;
}

void free(void *block)
{
    count(-(long)malloc_usable_size(block));
    __libc_free(block);
}

/* A small block is copied, so both are in memory. A large one is moved. */
void *realloc(void *block, size_t size)
{
    const long before = (long)malloc_usable_size(block), both = before < MEMORY_COPIED_MAX ? (long)size : 0;
    count(both);
    void *moved = __libc_realloc(block, size);
    count(-both);
    if (moved != NULL || size == 0)
        count((long)malloc_usable_size(moved) - before);
    return moved;
}

/* The bytes from now on count from 0. */
static void begin_count(void)
{
    atomic_store(&held, 0);
    atomic_store(&peak, 0);
}

/* The bytes that were used since then, without KEPT bytes of the test. */
static size_t end_count(size_t kept)
{
    const long used = atomic_load(&peak) - (long)kept;
    return used > 0 ? (size_t)used : 0;
}

/* ---- The cases ---- */

static const struct image shapes[] = {
    {.width = 900, .height = 600, .channels = 3, .bits = 8},  {.width = 900, .height = 600, .channels = 3, .bits = 16},
    {.width = 800, .height = 500, .channels = 1, .bits = 8},  {.width = 500, .height = 700, .channels = 4, .bits = 8},
    {.width = 700, .height = 400, .channels = 2, .bits = 16}, {.width = 9000, .height = 40, .channels = 3, .bits = 8},
    {.width = 40, .height = 9000, .channels = 3, .bits = 8},  {.width = 9, .height = 7, .channels = 3, .bits = 8},
};

/* How to write them, and the format_option that this is about. Each codec has the first way. */
static const struct way {
    unsigned option;
    struct codec_settings settings;
} ways[] = {
    {0, {.quality = 90, .compression = 1}},
    {FORMAT_QUALITY, {.quality = 100, .compression = 1}},
    {FORMAT_COMPRESSION, {.quality = 90, .compression = CODEC_COMPRESSION_FAST}},
    {FORMAT_COMPRESSION, {.quality = 90, .compression = 0}},
    {FORMAT_COMPRESSION, {.quality = 90, .compression = 6}},
    {FORMAT_COMPRESSION, {.quality = 90, .compression = 9}},
    {FORMAT_PROGRESSIVE, {.quality = 90, .compression = 1, .progressive = true}},
    {FORMAT_LOSSLESS, {.quality = 90, .compression = 1, .lossless = true}},
};

enum { SHAPES = sizeof shapes / sizeof *shapes, WAYS = sizeof ways / sizeof *ways };

/* Noise, which no codec makes smaller, or one colour, whose file is so small that it hides no other need. */
static struct image make_image(const struct image *shape, bool is_noise)
{
    struct image image;
    uint64_t state = 88172645463325252;
    assert_true(image_allocate(&image, shape->width, shape->height, shape->channels, shape->bits, NULL));
    memset(image.samples, 77, image_bytes(&image));
    for (size_t i = 0; is_noise && i < image_bytes(&image); i++) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        image.samples[i] = (uint8_t)state;
    }
    return image;
}

/* What the buffer of a file of SIZE bytes has had at most: twice the size and, while a small one was copied, half of
 * that. codec_file_need counts only pages that are written. */
static size_t file_bytes(size_t size)
{
    enum { FIRST = 1 << 18 };
    return FIRST + (size < MEMORY_COPIED_MAX ? 3 : 2) * size;
}

/* malloc rounds a large block up to pages. The program allows more for that: see estimate_memory of a job. */
enum { ROUNDING = 1 << 14 };

/* Fail if USED bytes are more than NEED. */
static void check_need(const char *what, const struct codec *codec, const struct image *shape,
                       const struct codec_settings *settings, size_t used, size_t need)
{
    if (used > need + ROUNDING)
        fail_msg("%s of %s, %d x %d pixels, %d channels of %d bits, %d threads, quality %d, compression %d%s%s: takes "
                 "%zu bytes, and the bound is %zu",
                 what, codec->name, shape->width, shape->height, shape->channels, shape->bits,
                 thread_pool_threads(settings->pool), settings->quality, settings->compression,
                 settings->progressive ? ", progressive" : "", settings->lossless ? ", lossless" : "", used, need);
}

/* Write IMAGE row by row, and compare. Each thread encodes a band of as many rows as a stream gives it before the first
 * is written. */
static void write_rows(const struct codec *codec, const struct image *image, const struct format *format,
                       const struct codec_settings *settings, uint8_t **bytes, size_t *size)
{
    const int threads = thread_pool_threads(settings->pool);
    struct codec_writer writer;
    const struct row_sink *sink = &writer.sink;
    begin_count();
    assert_true(codec_writer_open(&writer, image, format, settings, NULL));
    const int units = (int)(CODEC_BAND_BYTES / image_row_bytes(image)) / sink->multiple;
    const int band = units > 1 ? units * sink->multiple : sink->multiple;
    for (int first = 0; first < image->height; first += threads * band)
        for (int step = 0; step < 2; step++)
            for (int thread = 0, y = first; thread < threads && y < image->height; thread++, y += band) {
                const struct image rows = image_rows(image, y, band < image->height - y ? band : image->height - y);
                assert_true(step == 0 ? sink->encode == NULL || sink->encode(sink->context, thread, y, &rows, NULL)
                                      : sink->write == NULL || sink->write(sink->context, y, &rows, NULL));
            }
    assert_true(codec_writer_finish(&writer, bytes, size, NULL));
    codec_writer_close(&writer);
    const bool converts = image->bits > format->max_bits || (image_has_alpha(image) && !format->holds_alpha);
    const size_t copies = converts ? 2 * (size_t)(threads * band) * image_row_bytes(image) : 0; /* counted as bands */
    check_need("the writer", codec, image, settings, end_count(0),
               codec_writer_need(codec, image, format, settings) + file_bytes(*size) + copies);
}

/* Read a file row by row, and compare. */
static void read_rows(const struct codec_input *input)
{
    const struct codec_info *info = input->info;
    const struct image shape = {
        .width = info->width, .height = info->height, .channels = info->channels, .bits = info->bits};
    struct codec_reader reader;
    begin_count();
    assert_true(codec_reader_open(&reader, input, NULL));
    const struct row_source *source = &reader.source;
    const size_t units = ((size_t)info->height + (size_t)source->multiple - 1) / (size_t)source->multiple;
    const size_t unit = source->raw_bytes * (size_t)source->multiple;
    uint8_t *raw = malloc(units * unit + 1), *samples = malloc((size_t)source->multiple * image_row_bytes(&shape));
    const size_t own = malloc_usable_size(raw) + malloc_usable_size(samples);
    assert_true(raw != NULL && samples != NULL);
    for (int step = source->fetch != NULL ? 0 : 1; step < 2; step++)
        for (int y = 0; y < info->height; y += source->multiple) {
            const int left = info->height - y, rows = left < source->multiple ? left : source->multiple;
            uint8_t *at = raw + (size_t)(y / source->multiple) * unit;
            const struct rows around = {.data = at,
                                        .above = source->any_order && y > 0 ? at : NULL,
                                        .below = source->any_order && left > rows ? at + unit : NULL};
            assert_true(step == 0 ? source->fetch(source->context, y, rows, at, NULL)
                                  : source->read(source->context, y, rows, &around, samples, NULL));
        }
    check_need("the reader", reader.codec, &shape, input->settings, end_count(own),
               codec_reader_need(info) + input->settings->reader_extra);
    codec_reader_close(&reader);
    free(raw);
    free(samples);
}

/* Decode a file at once, encode the image at once, and compare. */
static void convert_whole(const struct codec *codec, const uint8_t *bytes, size_t size,
                          const struct codec_settings *settings)
{
    struct image image;
    struct codec_info info;
    uint8_t *again;
    size_t again_size;
    begin_count();
    assert_true(codec_decode(bytes, size, "x", settings, &image, &info, NULL));
    const struct format *format = info.format;
    check_need("decoding", info.codec, &image, settings, end_count(0),
               codec_whole_need(&info, &image, NULL, format, settings) + size);
    if (format->id == FORMAT_WEBP) /* there the reader's need is all that decoding takes besides the image */
        check_need("decoding", info.codec, &image, settings, end_count(0),
                   codec_reader_need(&info) + image_bytes(&image));
    assert_true(codec_encode(&image, format, settings, &again, &again_size, NULL));
    check_need("encoding", codec, &image, settings, end_count(0),
               codec_whole_need(&info, &image, codec, format, settings) + size);
    image_free(&image);
    free(again);
}

/* Decode a file at once whose decoder makes it smaller. */
static void check_shrunk(const struct codec_input *input)
{
    struct image image;
    begin_count();
    assert_non_null(codec_read_picture(input, &image, NULL, NULL));
    check_need("decoding to a smaller size", input->info->codec, &image, input->settings, end_count(0),
               codec_whole_need(input->info, &image, NULL, input->info->format, input->settings) + input->size);
    image_free(&image);
}

/* Write IMAGE by CODEC as FORMAT, and read it. */
static void check_codec(const struct codec *codec, const struct image *image, const struct format *format,
                        struct codec_settings settings)
{
    uint8_t *bytes;
    size_t size;
    struct codec_info info;
    settings.codec = codec;
    if (codec_find_writer(format, image, &settings, NULL) == NULL)
        return;
    if (codec_writes_rows(codec))
        write_rows(codec, image, format, &settings, &bytes, &size);
    else
        assert_true(codec_encode(image, format, &settings, &bytes, &size, NULL));
    convert_whole(codec, bytes, size, &settings);
    assert_true(codec_inspect(bytes, size, "x", &settings, &info, NULL) &&
                codec_choose_reader(&info, &settings, "x", NULL));
    const struct codec_input input = {.bytes = bytes, .size = size, .name = "x", .info = &info, .settings = &settings};
    for (int extra = 0; extra < 2 && codec_reads_rows(&info); extra++) {
        settings.reader_extra = extra > 0 ? codec_reader_extra(&info, &settings) : 0;
        read_rows(&input);
    }
    for (int shrink = 1; shrink <= 3 && info.codec->shrinks; shrink++) {
        assert_true(codec_inspect(bytes, size, "x", &settings, &info, NULL) &&
                    codec_choose_reader(&info, &settings, "x", NULL));
        codec_shrink(&info, shrink);
        read_rows(&input);
        check_shrunk(&input);
    }
    free(bytes);
}

/* Is libheif here without the plug-in that encodes AV1? */
static bool lacks_encoder(const struct codec *codec, const struct format *format)
{
    char text[256];
    codec_describe(codec, text, sizeof text);
    return format->id == FORMAT_AVIF && strstr(text, "writes AV1 by nothing") != NULL;
}

/* Is FORMAT too slow for each picture? Noise that is written as AV1 without loss takes most of its bound: 67% with 16
 * bits and 82% in wide rows, where a quality takes at most 44% and 64%. */
static bool is_too_slow(const struct format *format, const struct way *way, bool slow_too)
{
    enum { SLOW = 100, AV1 = 300 };
    return format->work_of_byte >= (slow_too ? AV1 : SLOW) && !(slow_too && way->settings.lossless);
}

/* Write IMAGE by all codecs as all formats, in all ways, and read it. Formats whose encoders take a second for it only
 * take part if SLOW_TOO, and AV1 then without loss. */
static void check_image(const struct image *image, bool slow_too)
{
    size_t codec_count, format_count;
    const struct codec *all = codecs(&codec_count);
    const struct format *rows = formats(&format_count);
    for (size_t i = 0; i < codec_count * format_count * WAYS; i++) {
        const struct codec *codec = &all[i % codec_count];
        const struct format *format = &rows[i / codec_count % format_count];
        const struct way *way = &ways[i / codec_count / format_count];
        struct codec_settings settings = way->settings;
        struct thread_pool pool;
        if (!codec_is_built_in(codec) || !codec_writes(codec, format) || lacks_encoder(codec, format) ||
            (format->options & way->option) != way->option || is_too_slow(format, way, slow_too))
            continue;
        thread_pool_open(&pool, i % 2 > 0 ? 4 : 1);
        settings.pool = &pool;
        check_codec(codec, image, format, settings);
        thread_pool_close(&pool);
    }
}

static void test_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2 * SHAPES; i++) {
        struct image image = make_image(&shapes[i / 2], i % 2 > 0);
        check_image(&image, i % 4 == 3); /* noise of each number of bits, with alpha, and tiny */
        image_free(&image);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
