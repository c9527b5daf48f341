/* SPDX-License-Identifier: MIT
 *
 * Writers of PNG, every row of the table that was built in: depths, levels of compression, bands and threads. */
#include "codec_files.h"

#include "base/parallel.h"
#include "codec/gpu_codec.h"
#include "container/png.h"
#include "container/zlib.h"

#include <stdlib.h>

/* A codec that writes only 8 bits refuses an image of 16 and names another codec. A JPEG always has 8. */
static void test_a_writer_of_8_bits_refuses_16(void **state)
{
    struct image image = make_image(5, 4, 3, 16, false);
    int refusals = 0;
    (void)state;
    EACH_WRITER(writer, PNG)
    {
        const struct codec_settings settings = settings_of(writer);
        struct error error = {0};
        uint8_t *bytes;
        size_t size;
        if (writer->write_bits == 16)
            continue;
        refusals++;
        assert_false(codec_encode(&image, PNG, &settings, &bytes, &size, &error));
        assert_null(bytes);
        assert_int_equal(error.code, ERROR_WORK);
        assert_non_null(
            strstr(error.message, "writes 8 bits per sample, and the image has 16; give --codec parallel-png"));
        assert_ptr_equal(codec_find_writer(PNG, &(struct image){.bits = 8}, &settings, NULL), writer);
        assert_ptr_equal(codec_find_writer(JPEG, &(struct image){.bits = 16}, &settings, NULL), writer);
    }
    assert_int_equal(refusals, 1); /* stb */
    assert_int_equal(
        codec_find_writer(PNG, &(struct image){.bits = 16}, &(struct codec_settings){.compression = 1}, NULL)
            ->write_bits,
        16);
    image_free(&image);
}

/* With several bands, the last of them shorter, the file is the same for any number of threads, and all read it. */
static void test_bands_and_threads_do_not_change_the_file(void **state)
{
    (void)state;
    for (int i = 0; i < 16; i++) {
        const int channels = i / 2 % 4 + 1;
        struct image image = make_image(1400, 1100, channels, i % 2 ? 16 : 8, channels % 2 == 0);
        struct codec_settings settings = settings_of(NULL);
        settings.compression = i < 8 ? CODEC_COMPRESSION : CODEC_COMPRESSION_FAST;
        size_t size[3];
        uint8_t *bytes[3];
        static const int threads[3] = {1, 4, 0};
        for (int k = 0; k < 3; k++) {
            struct thread_pool pool;
            thread_pool_open(&pool, threads[k]);
            settings.pool = &pool;
            assert_true(codec_encode(&image, PNG, &settings, &bytes[k], &size[k], NULL));
            assert_int_equal(size[k], size[0]);
            assert_memory_equal(bytes[k], bytes[0], size[0]);
            thread_pool_close(&pool);
        }
        settings.pool = NULL;
        EACH_READER(reader, PNG)
        {
            check_back(&image, PNG, codec_find_writer(PNG, &(struct image){.bits = image.bits}, &settings, NULL),
                       reader, bytes[0], size[0]);
        }
        for (int k = 0; k < 3; k++)
            free(bytes[k]);
        image_free(&image);
    }
}

/* The file around a stream is that which the codec writes, in each shape. The stream is taken out of that one. */
static void test_a_file_around_a_stream_is_as_written(void **state)
{
    (void)state;
    for (int i = 0; i < 8; i++) {
        struct image image = make_image(700, 300, i / 2 + 1, i % 2 ? 16 : 8, true);
        const struct codec_settings settings = settings_of(NULL);
        struct blob data = {0};
        struct end end = {.kind = END_PNG};
        uint8_t *want;
        size_t want_size;
        struct png_chunk chunk;
        assert_true(codec_encode(&image, PNG, &settings, &want, &want_size, NULL));
        struct png_walk walk = png_walk_begin(want, want_size);
        do
            assert_int_equal(png_walk_next(&walk, &chunk), PNG_STEP_CHUNK);
        while (!png_chunk_is(&chunk, "IDAT"));
        size_t size;
        end.size = chunk.size - ZLIB_HEAD - ZLIB_TAIL;
        const uint8_t *stream = chunk.data + ZLIB_HEAD;
        end.adler = big32(stream + end.size);
        assert_true(codec_begin_file(&image, &end, NULL));
        assert_non_null(blob_extend(&data, end.head.size));
        assert_true(blob_append(&data, stream, end.size));
        assert_non_null(blob_extend(&data, end.head.size));
        end.data = data.bytes + end.head.size;
        uint8_t *copy = codec_end_file(&end, true, &size, NULL);
        assert_int_equal(size, want_size);
        assert_memory_equal(copy, want, size);
        free(copy);
        const uint8_t *bytes = codec_end_file(&end, false, &size, NULL);
        assert_ptr_equal(bytes, data.bytes);
        assert_int_equal(size, want_size);
        assert_memory_equal(bytes, want, size);
        blob_free(&end.head);
        blob_free(&data);
        free(want);
        image_free(&image);
    }
}

/* A GPU encodes PNGs of the standard level only, unless another codec is named. */
static void test_a_stream_is_planned_for_one_level(void **state)
{
    (void)state;
    const struct codec *codec = codec_find("parallel-png", NULL);
    const struct image shape = {.width = 5, .height = 4, .channels = 3, .bits = 16};
    struct end end;
    EACH_WRITER(row, PNG)
    {
        for (int level = CODEC_COMPRESSION_FAST; level < 10; level++) {
            struct codec_settings settings = settings_of(row);
            settings.compression = level;
            const bool is_planned = row == codec && level == 1;
            assert_ptr_equal(codec_plan_gpu_output(PNG, &shape, &settings, &end), is_planned ? codec : NULL);
            assert_int_equal(end.kind, is_planned ? END_PNG : END_HOST);
        }
    }
    size_t count;
    const struct format *all = formats(&count);
    const struct codec_settings settings = settings_of(NULL);
    for (const struct format *format = all; format < all + count; format++)
        assert_true((codec_plan_gpu_output(format, &shape, &settings, &end) == codec) == (format == PNG));
}

/* For each depth, level 0 stores and the others compress. The last level of a library is not worse than its first.
 * Every codec reads every file. */
static void check_compression(int bits)
{
    struct image image = make_image(700, 400, 3, 8, true), deep;
    for (size_t i = 0; i < image_samples(&image); i++)
        image.samples[i] = (uint8_t)(image.samples[i] + (i * i >> 7 & 3)); /* neither noise nor empty */
    if (bits == 16) {
        assert_true(image_convert(&image, bits, &deep, NULL));
        image_free(&image);
        image = deep;
    }
    EACH_WRITER(writer, PNG)
    {
        if (writer->write_bits < bits)
            continue;
        struct codec_settings settings = settings_of(writer);
        size_t size[11] = {0}, *sizes = size + 1;
        for (int level = CODEC_COMPRESSION_FAST; level < 10; level++) {
            struct error error = {0};
            uint8_t *bytes;
            settings.compression = level;
            if (!codec_encode(&image, PNG, &settings, &bytes, &sizes[level], &error)) {
                assert_false(writer->takes_compression);
                assert_int_not_equal(level, CODEC_COMPRESSION);
                assert_int_equal(error.code, ERROR_USAGE);
                continue;
            }
            EACH_READER(reader, PNG)
            {
                check_back(&image, PNG, writer, reader, bytes, sizes[level]);
            }
            free(bytes);
        }
        if (!writer->takes_compression)
            continue;
        assert_true(sizes[0] > image_bytes(&image));
        for (int level = 1; level < 10; level++)
            assert_true(2 * sizes[level] < sizes[0]);
        assert_true(sizes[9] <= sizes[1]);
        assert_true(2 * sizes[CODEC_COMPRESSION_FAST] < sizes[0]);
    }
    image_free(&image);
}

static void test_higher_compression_is_not_larger(void **state)
{
    (void)state;
    check_compression(8);
    check_compression(16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_writer_of_8_bits_refuses_16),
        cmocka_unit_test(test_bands_and_threads_do_not_change_the_file),
        cmocka_unit_test(test_a_file_around_a_stream_is_as_written),
        cmocka_unit_test(test_a_stream_is_planned_for_one_level),
        cmocka_unit_test(test_higher_compression_is_not_larger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
