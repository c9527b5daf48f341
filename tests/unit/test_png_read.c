/* SPDX-License-Identifier: MIT
 *
 * Readers of PNG, every row of the table that was built in: every kind of PNG against pixels computed here, files cut
 * at every byte and flipped at every bit, misplaced chunks. */
#include "codec_files.h"

#include "codec/gpu_codec.h"
#include "container/png.h"
#include "container/zlib.h"

#include <libdeflate.h>
#include <stdlib.h>

/* The sample that the codec must return for channel c at (x, y); it has 16 bits if the kind has them. */
static unsigned expected_sample(const struct kind *kind, unsigned x, unsigned y, unsigned c)
{
    if (kind->colour == 3)
        return palette_sample(kind_sample(kind, x, y, 0), c);
    if (c == kind->channels) {
        bool same = true;
        for (unsigned i = 0; i < kind->channels; i++)
            same &= kind_sample(kind, x, y, i) == kind_sample(kind, 1, 0, i);
        return same ? 0 : kind->bits == 16 ? 65535 : 255;
    }
    const unsigned value = kind_sample(kind, x, y, c);
    return kind->bits == 16 ? value : value * 255 / ((1u << kind->bits) - 1);
}

/* WANTED is the bits a sample, or 0 for those of the file. */
static void check_kind(const struct codec *codec, const struct buffer *png, const struct kind *kind, unsigned width,
                       unsigned height, int wanted)
{
    const unsigned channels = (kind->colour == 3 ? 3 : kind->channels) + kind->transparent;
    const int bits = kind->bits == 16 ? 16 : 8;
    struct codec_settings settings = settings_of(codec);
    struct error error = {0};
    struct codec_info info;
    struct image image;
    settings.bits = wanted;
    if (!codec_decode(png->bytes, png->size, "x.png", &settings, &image, &info, &error))
        fail_msg("%s, colour %u, %u bits: %s", codec->name, kind->colour, kind->bits, error.message);
    assert_ptr_equal(info.format, PNG);
    assert_ptr_equal(info.codec, codec);
    assert_int_equal(info.bits, bits);
    assert_int_equal(codec_bits(&info, &settings), image.bits);
    assert_int_equal(image.bits, wanted > 0 ? wanted : bits);
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, height);
    assert_int_equal(image.channels, channels);
    for (unsigned y = 0, at = 0; y < height; y++)
        for (unsigned x = 0; x < width; x++)
            for (unsigned c = 0; c < channels; c++, at++) {
                const unsigned expected = with_bits(expected_sample(kind, x, y, c), bits, image.bits);
                if (sample_of(&image, at) != expected)
                    fail_msg("%s, colour %u, %u bits, %d wanted, (%u, %u) channel %u: %u, expected %u", codec->name,
                             kind->colour, kind->bits, wanted, x, y, c, sample_of(&image, at), expected);
            }
    image_free(&image);
}

/* Every reader returns the same samples for every kind, with the bits of the file and with 8 and 16. */
static void test_every_kind_of_png_is_decoded_alike(void **state)
{
    static const unsigned colours[][2] = {{0, 1}, {2, 3}, {3, 1}, {4, 2}, {6, 4}};
    static const unsigned sizes[][2] = {{1, 1}, {3, 1}, {1, 5}, {13, 11}, {37, 12}};
    static struct buffer png;
    int kinds = 0;
    (void)state;
    for (unsigned i = 0; i < 5 * 5 * 2 * 2 * 5; i++) {
        const unsigned width = sizes[i / 100][0], height = sizes[i / 100][1];
        const struct kind kind = {.colour = colours[i % 5][0],
                                  .channels = colours[i % 5][1],
                                  .bits = 1u << i / 5 % 5,
                                  .interlaced = i / 25 % 2,
                                  .transparent = i / 50 % 2};

        if ((kind.colour != 0 && kind.colour != 3 && kind.bits < 8) || (kind.colour == 3 && kind.bits > 8) ||
            (kind.colour >= 4 && kind.transparent))
            continue;
        kinds++;
        make_png(&png, &kind, width, height);
        EACH_READER(codec, PNG)
        {
            for (int wanted = 0; wanted <= 16; wanted += 8)
                check_kind(codec, &png, &kind, width, height, wanted);
        }
    }
    assert_int_equal(kinds, (15 + 11) * 2 * 5); /* the standard has 15 kinds, and 11 may name a transparent colour */
}

/* The stream that a GPU decodes is that of the file, whose IDAT chunks are joined, whole and in parts. The layout says
 * what its rows are. There is none for an interlaced file, or for another codec. */
static void test_a_stream_is_found_for_a_gpu(void **state)
{
    static const struct kind kinds[] = {
        {.colour = 3, .bits = 2, .channels = 1, .transparent = true},
        {.colour = 2, .bits = 16, .channels = 3, .transparent = true},
        {.colour = 0, .bits = 1, .channels = 1},
        {.colour = 6, .bits = 8, .channels = 4, .interlaced = true},
    };
    static struct buffer png;
    const struct codec *codec = codec_find("parallel-png", NULL);
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        make_png(&png, &kinds[i], 13, 11);
        EACH_READER(row, PNG)
        {
            const struct codec_settings settings = settings_of(row);
            struct codec_info info;
            struct end end;
            uint8_t joined[1 << 12], raw[1 << 12];
            size_t used;
            const struct codec_input input = {png.bytes, png.size, "x.png", &info, &settings};
            assert_true(codec_inspect(png.bytes, png.size, "x.png", &settings, &info, NULL));
            const struct codec *found = codec_plan_gpu_input(&input, &end);
            assert_ptr_equal(found, row == codec && !kinds[i].interlaced ? codec : NULL);
            assert_int_equal(end.kind, found != NULL ? END_PNG : END_HOST);
            if (found == NULL)
                continue;
            assert_int_equal(png_layout_channels(&end.png), info.channels);
            assert_null(png_stream_data(&end.stream)); /* there are two chunks */
            assert_true(end.stream.size < sizeof joined);
            for (size_t at = 0; at < end.stream.size; at++)
                png_stream_copy(&end.stream, at, at + 1, joined + at);
            assert_int_equal(zlib_inflate(joined, end.stream.size, raw, sizeof raw, NULL, &used), ZLIB_DONE);
            assert_int_equal(used, 11 * (1 + png_row_bytes(&end.png, 13)));
            png_stream_copy(&end.stream, 0, end.stream.size, raw);
            assert_memory_equal(raw, joined, end.stream.size);
        }
    }
}

/* Indices without a colour are opaque black. */
static void test_indices_beyond_the_palette_are_black(void **state)
{
    const struct kind kind = {.colour = 3, .bits = 8, .channels = 1, .transparent = true};
    static struct buffer png;
    (void)state;
    make_png(&png, &kind, 13, 11);
    uint8_t *palette = memmem(png.bytes, png.size, "PLTE", 4);
    assert_non_null(palette);
    const size_t at = (size_t)(palette - png.bytes), cut = 3 * (256 - 9); /* leaves 9 colours */
    memmove(palette + 4 + 27, palette + 4 + 768, png.size - at - 4 - 768);
    png.bytes[at - 2] = 0;
    png.bytes[at - 1] = 27;
    const size_t size = png.size - cut;
    png.size = at + 4 + 27;
    put32(&png, libdeflate_crc32(0, palette, 4 + 27));
    png.size = size;
    EACH_READER(codec, PNG)
    {
        const struct codec_settings settings = settings_of(codec);
        struct error error = {0};
        struct image image;
        if (!codec_decode(png.bytes, png.size, "x", &settings, &image, NULL, &error))
            fail_msg("%s: %s", codec->name, error.message);
        for (unsigned i = 0; i < 13 * 11; i++) {
            const unsigned index = kind_sample(&kind, i % 13, i / 13, 0);
            for (unsigned c = 0; c < 4; c++)
                assert_int_equal(image.samples[4 * i + c], index < 9 ? palette_sample(index, c) : c < 3 ? 0 : 255);
        }
        image_free(&image);
    }
}

/* ---- Damage ---- */

static void test_a_damaged_png_is_refused(void **state)
{
    const struct kind kind = {.colour = 3, .bits = 4, .channels = 1, .interlaced = true, .transparent = true};
    static struct buffer png;
    (void)state;
    make_png(&png, &kind, 13, 11);
    const uint8_t *text = memmem(png.bytes, png.size, "Comment", 7);
    assert_non_null(text);
    const size_t at = (size_t)(text - png.bytes), end = at + 11 + 4; /* with its CRC */
    EACH_READER(codec, PNG)
    {
        const struct codec_settings settings = settings_of(codec);
        struct image image;
        assert_true(codec_decode(png.bytes, png.size, "x", &settings, &image, NULL, NULL));
        cut_and_flip(codec, png.bytes, png.size, false, &image, at, end);
        image_free(&image);
    }
}

/* The chunks' CRCs hide the decoders from damage; make them right again after each flip of the data. The checksum of
 * the stream is left: the file is refused, or the flipped bit does not matter. */
static void flip_data(const struct codec *codec, struct buffer *png)
{
    const struct codec_settings settings = settings_of(codec);
    struct image image;
    assert_true(codec_decode(png->bytes, png->size, "x", &settings, &image, NULL, NULL));
    const size_t idat = png->size - 12 - 4; /* ends here: its CRC, then IEND */
    const uint8_t *type = memmem(png->bytes, idat, "IDAT", 4);
    assert_non_null(type);
    type = memmem(type + 4, idat - (size_t)(type + 4 - png->bytes), "IDAT", 4); /* the second has all but 2 bytes */
    assert_non_null(type);
    const size_t start = (size_t)(type - png->bytes);
    uint8_t kept[4];
    memcpy(kept, png->bytes + idat, sizeof kept);
    for (size_t i = start + 4; i < idat; i++)
        for (int bit = 0; bit < 8; bit++) {
            png->bytes[i] ^= (uint8_t)(1 << bit);
            put_big32(png->bytes + idat, libdeflate_crc32(0, png->bytes + start, idat - start));
            decode_copy(codec, png->bytes, png->size, -1, &image, "flip", i);
            png->bytes[i] ^= (uint8_t)(1 << bit);
        }
    memcpy(png->bytes + idat, kept, sizeof kept);
    image_free(&image);
}

static void test_damaged_png_data_are_refused(void **state)
{
    static const struct kind kinds[] = {
        {.colour = 2, .bits = 8, .channels = 3},
        {.colour = 3, .bits = 2, .channels = 1, .interlaced = true, .transparent = true},
        {.colour = 2, .bits = 16, .channels = 3, .interlaced = true, .transparent = true},
    };
    static struct buffer png;
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        make_png(&png, &kinds[i], 13, 11);
        EACH_READER(codec, PNG)
        {
            flip_data(codec, &png);
        }
    }
}

/* A stream whose rows, or whose bytes after the checksum, go on a little is read. One that ends before the last row,
 * or within the checksum, is not: by all alike. */
static void test_a_long_stream_is_read_and_a_short_one_refused(void **state)
{
    static const struct {
        int rows, stream; /* bytes more than needed */
        bool reads;
    } cases[] = {{0, 0, true}, {1, 0, true},   {1000, 0, true}, {-1, 0, false}, {-40, 0, false}, {0, 1000, true},
                 {0, 1, true}, {0, -1, false}, {0, -4, false},  {0, -5, false}, {1000, 9, true}, {1, -2, false}};
    static struct buffer png;
    uint8_t raw[11 * 40 + 1000] = {0};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t compressed[4096] = {0};
        const size_t size = (size_t)(11 * 40 + cases[i].rows);
        struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
        const size_t used = libdeflate_zlib_compress(compressor, raw, size, compressed, sizeof compressed);
        libdeflate_free_compressor(compressor);
        png.size = 0;
        put(&png, "\x89PNG\r\n\x1a\n", 8);
        put_chunk(&png, "IHDR", "\0\0\0\15\0\0\0\13\10\2\0\0\0", 13); /* 13 x 11 pixels of 3 channels */
        put_chunk(&png, "IDAT", compressed, used + (size_t)cases[i].stream);
        put_chunk(&png, "IEND", NULL, 0);
        EACH_READER(codec, PNG)
        {
            decode_copy(codec, png.bytes, png.size, cases[i].reads, NULL, "case", i);
        }
    }
}

/* Insert a chunk before the one of type BEFORE. */
static void insert_chunk(struct buffer *png, const char *before, const char *type, const void *data, size_t size)
{
    static struct buffer rest;
    const uint8_t *at = memmem(png->bytes, png->size, before, 4);
    assert_non_null(at);
    rest.size = 0;
    put(&rest, at - 4, (size_t)(png->bytes + png->size - (at - 4)));
    png->size = (size_t)(at - 4 - png->bytes);
    put_chunk(png, type, data, size);
    put(png, rest.bytes, rest.size);
}

/* Chunks of colours that are not where or as they must be, which the libraries take differently. */
static void test_misplaced_chunks_are_refused(void **state)
{
    static const struct {
        unsigned colour, channels;
        const char *before, *type;
        size_t size;
        const char *message;
    } cases[] = {
        {3, 1, "IDAT", "PLTE", 12, "chunk PLTE at byte 80 is not the first"},
        {3, 1, "PLTE", "tRNS", 1, "chunk tRNS at byte 56 is before PLTE"},
        {3, 1, "IEND", "tRNS", 1, "is too late"},
        {3, 1, "IDAT", "tRNS", 5, "its tRNS chunk has 5 bytes"},
        {2, 3, "IDAT", "PLTE", 10, "its PLTE chunk has 10 bytes"},
        {2, 3, "IDAT", "PLTE", 769, "its PLTE chunk has 769 bytes"},
        {2, 3, "IEND", "PLTE", 3, "is too late"},
        {2, 3, "IDAT", "tRNS", 2, "its tRNS chunk has 2 bytes"},
        {6, 4, "IDAT", "tRNS", 6, "it has an alpha channel and chunk tRNS"},
    };
    static const uint8_t data[1024];
    static struct buffer png;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct kind kind = {
            .colour = cases[i].colour, .bits = cases[i].colour == 3 ? 2 : 8, .channels = cases[i].channels};
        struct codec_info info;
        struct error error = {0};
        make_png(&png, &kind, 3, 3);
        assert_true(codec_inspect(png.bytes, png.size, "x", NULL, &info, &error));
        insert_chunk(&png, cases[i].before, cases[i].type, data, cases[i].size);
        assert_false(codec_inspect(png.bytes, png.size, "x", NULL, &info, &error));
        if (!strstr(error.message, cases[i].message))
            fail_msg("expected \"%s\", got \"%s\"", cases[i].message, error.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_of_png_is_decoded_alike),
        cmocka_unit_test(test_a_stream_is_found_for_a_gpu),
        cmocka_unit_test(test_misplaced_chunks_are_refused),
        cmocka_unit_test(test_indices_beyond_the_palette_are_black),
        cmocka_unit_test(test_a_long_stream_is_read_and_a_short_one_refused),
        cmocka_unit_test(test_a_damaged_png_is_refused),
        cmocka_unit_test(test_damaged_png_data_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
