/* SPDX-License-Identifier: MIT
 *
 * The codecs, every row of the table that was built in: every kind of PNG against pixels computed here, round trips
 * from each to each, files cut at every byte and flipped at every bit, the committed bad files, limits. */
#include "base/file.h"
#include "base/parallel.h"
#include "codec/codec.h"
#include "codec/gpu_files.h"
#include "compare/compare.h"
#include "container/png.h"
#include "container/zlib.h"

#include <libdeflate.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/helpers.h"

/* ---- The rows of the tables ---- */

#define PNG format_of(FORMAT_PNG)
#define JPEG format_of(FORMAT_JPEG)
#define WEBP format_of(FORMAT_WEBP)

/* Row number I of those that are built in and read, or write, FORMAT; NULL after the last. */
static const struct codec *row_of(const struct format *format, bool writes, size_t i)
{
    size_t count;
    const struct codec *table = codecs(&count);
    for (size_t k = 0; k < count; k++)
        if (codec_is_built_in(&table[k]) &&
            (writes ? codec_writes(&table[k], format) : codec_reads(&table[k], format)) && i-- == 0)
            return &table[k];
    return NULL;
}

#define EACH_READER(row, format)                                                                                       \
    size_t reader_ = 0;                                                                                                \
    for (const struct codec *row; (row = row_of(format, false, reader_)) != NULL; reader_++)
#define EACH_WRITER(row, format)                                                                                       \
    size_t writer_ = 0;                                                                                                \
    for (const struct codec *row; (row = row_of(format, true, writer_)) != NULL; writer_++)

static struct codec_settings settings_of(const struct codec *codec)
{
    return (struct codec_settings){.codec = codec, .quality = CODEC_QUALITY, .compression = CODEC_COMPRESSION};
}

/* ---- Bytes put together ---- */

struct buffer {
    uint8_t bytes[1 << 16];
    size_t size;
};

static void put(struct buffer *buffer, const void *bytes, size_t size)
{
    assert_true(buffer->size + size <= sizeof buffer->bytes);
    if (size > 0)
        memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
}

static void put8(struct buffer *buffer, unsigned value)
{
    const uint8_t byte = (uint8_t)value;
    put(buffer, &byte, 1);
}

static void put16(struct buffer *buffer, unsigned value)
{
    put8(buffer, value >> 8);
    put8(buffer, value);
}

static void put32(struct buffer *buffer, uint32_t value)
{
    put16(buffer, value >> 16);
    put16(buffer, value);
}

static void put_chunk(struct buffer *png, const char *type, const void *data, size_t size)
{
    put32(png, (uint32_t)size);
    const size_t start = png->size;
    put(png, type, 4);
    put(png, data, size);
    put32(png, libdeflate_crc32(0, png->bytes + start, png->size - start));
}

/* A kind of PNG, and its sample at (x, y) in channel c: a value of `bits` bits. */
struct kind {
    unsigned colour, bits, channels;
    bool interlaced, transparent;
};

static unsigned kind_sample(const struct kind *kind, unsigned x, unsigned y, unsigned c)
{
    return (x * 7349 + y * 2741 + c * 12289 + x * y) & ((1u << kind->bits) - 1);
}

/* The palette: entry i is (i * 3, 255 - i, i * i), alpha 255 - 2 * i for the first 8. */
static unsigned palette_sample(unsigned i, unsigned c)
{
    return (c == 0 ? i * 3 : c == 1 ? 255 - i : c == 2 ? i * i : i < 8 ? 255 - 2 * i : 255) & 255;
}

/* The prediction that the standard subtracts from a byte with the neighbours LEFT, ABOVE and CORNER. */
static unsigned predicted(unsigned filter, int left, int above, int corner)
{
    const int guess = left + above - corner;
    const int a = abs(guess - left), b = abs(guess - above), c = abs(guess - corner);
    switch (filter) {
    case 0:
        return 0;
    case 1:
        return (unsigned)left;
    case 2:
        return (unsigned)above;
    case 3:
        return (unsigned)(left + above) / 2;
    default:
        return (unsigned)(a <= b && a <= c ? left : b <= c ? above : corner);
    }
}

/* The rows of a pass: pixels at x0, x0 + dx, ... of rows y0, y0 + dy, ..., each row after its filter's number: all in
 * turn. */
static void put_pass(struct buffer *raw, const struct kind *kind, unsigned width, unsigned height, unsigned x0,
                     unsigned y0, unsigned dx, unsigned dy)
{
    static struct buffer row, above;
    const unsigned pixel = kind->bits * kind->channels > 8 ? kind->bits * kind->channels / 8 : 1;
    if (x0 >= width)
        return;
    memset(&above, 0, sizeof above);
    for (unsigned y = y0, filter = x0 + y0; y < height; y += dy, filter++) {
        unsigned held = 0, bits = 0; /* bits that do not fill a byte yet */
        row.size = 0;
        for (unsigned x = x0; x < width; x += dx) {
            for (unsigned c = 0; c < kind->channels; c++) {
                held = held << kind->bits | kind_sample(kind, x, y, c);
                for (bits += kind->bits; bits >= 8; bits -= 8)
                    put8(&row, held >> (bits - 8));
            }
        }
        if (bits > 0)
            put8(&row, held << (8 - bits));
        put8(raw, filter % 5);
        for (unsigned i = 0; i < row.size; i++) {
            const bool first = i < pixel;
            put8(raw, row.bytes[i] - predicted(filter % 5, first ? 0 : row.bytes[i - pixel], above.bytes[i],
                                               first ? 0 : above.bytes[i - pixel]));
        }
        above = row;
    }
}

static void make_png(struct buffer *png, const struct kind *kind, unsigned width, unsigned height)
{
    static const unsigned passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                          {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    static struct buffer raw, part;
    uint8_t compressed[1 << 16];
    *png = (struct buffer){.size = 0};
    put(png, "\x89PNG\r\n\x1a\n", 8);
    part.size = 0;
    put32(&part, width);
    put32(&part, height);
    const uint8_t tail[5] = {(uint8_t)kind->bits, (uint8_t)kind->colour, 0, 0, kind->interlaced};
    put(&part, tail, sizeof tail);
    put_chunk(png, "IHDR", part.bytes, part.size);
    put_chunk(png, "tEXt", "Comment\0any", 11);
    if (kind->colour == 3) {
        part.size = 0;
        for (unsigned i = 0; i < 1u << kind->bits; i++)
            for (unsigned c = 0; c < 3; c++)
                put8(&part, palette_sample(i, c));
        put_chunk(png, "PLTE", part.bytes, part.size);
    }
    if (kind->transparent) { /* the palette's first entries, or the colour of pixel (1, 0) */
        part.size = 0;
        for (unsigned i = 0; kind->colour == 3 && i < 8 && i < 1u << kind->bits; i++)
            put8(&part, palette_sample(i, 3));
        for (unsigned c = 0; kind->colour != 3 && c < kind->channels; c++)
            put16(&part, kind_sample(kind, 1, 0, c));
        put_chunk(png, "tRNS", part.bytes, part.size);
    }
    raw.size = 0;
    if (!kind->interlaced)
        put_pass(&raw, kind, width, height, 0, 0, 1, 1);
    for (int i = 0; kind->interlaced && i < 7; i++)
        put_pass(&raw, kind, width, height, passes[i][0], passes[i][1], passes[i][2], passes[i][3]);
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(6);
    const size_t size = libdeflate_zlib_compress(compressor, raw.bytes, raw.size, compressed, sizeof compressed);
    libdeflate_free_compressor(compressor);
    assert_true(size > 2);
    put_chunk(png, "IDAT", compressed, 2); /* the stream may be cut anywhere */
    put_chunk(png, "IDAT", compressed + 2, size - 2);
    put_chunk(png, "IEND", NULL, 0);
}

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

/* Sample number I of an image. */
static unsigned sample_of(const struct image *image, size_t i)
{
    uint16_t deep;
    if (image->bits == 8)
        return image->samples[i];
    memcpy(&deep, image->samples + 2 * i, sizeof deep);
    return deep;
}

/* A sample of FROM bits, converted to TO bits. */
static unsigned with_bits(unsigned value, int from, int to)
{
    return from == to ? value : to == 16 ? value * 257 : (2 * value * 255 + 65535) / (2 * 65535);
}

/* WANTED is the bits a sample; 0: as in the file. */
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
    assert_int_equal(kinds,
                     (15 + 11) * 2 * 5); /* 15 kinds by the standard, of which 11 may name a transparent colour */
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
            struct png_layout layout;
            struct png_stream stream;
            uint8_t joined[1 << 12], raw[1 << 12];
            size_t used;
            const struct codec_input input = {png.bytes, png.size, "x.png", &info, &settings};
            assert_true(codec_inspect(png.bytes, png.size, "x.png", &settings, &info, NULL));
            const struct codec *found = codec_find_stream(&input, &layout, &stream);
            assert_ptr_equal(found, row == codec && !kinds[i].interlaced ? codec : NULL);
            if (found == NULL)
                continue;
            assert_int_equal(png_layout_channels(&layout), info.channels);
            assert_null(png_stream_data(&stream)); /* there are two chunks */
            assert_true(stream.size < sizeof joined);
            for (size_t at = 0; at < stream.size; at++)
                png_stream_copy(&stream, at, at + 1, joined + at);
            assert_int_equal(zlib_inflate(joined, stream.size, raw, sizeof raw, NULL, &used), ZLIB_DONE);
            assert_int_equal(used, 11 * (1 + png_row_bytes(&layout, 13)));
            png_stream_copy(&stream, 0, stream.size, raw);
            assert_memory_equal(raw, joined, stream.size);
        }
    }
}

/* ---- JPEG ---- */

static void put_segment(struct buffer *jpeg, unsigned marker, const void *data, size_t size)
{
    put16(jpeg, 0xff00 | marker);
    put16(jpeg, (unsigned)size + 2);
    put(jpeg, data, size);
}

/* A progressive grey JPEG of 8 x 8 pixels whose one difference is 50: with a quantizer of 8, all are 128 + 50. */
static void make_progressive(struct buffer *jpeg)
{
    const uint8_t frame[9] = {8, 0, 8, 0, 8, 1, 1, 0x11, 0};
    const uint8_t dc[18] = {0x00, 1, [17] = 6}, ac[18] = {0x10, 1, [17] = 0}; /* one code, 0, for the symbols 6 and 0 */
    const uint8_t dc_scan[6] = {1, 1, 0, 0, 0, 0}, ac_scan[6] = {1, 1, 0, 1, 63, 0};
    uint8_t quantizers[65] = {0};
    memset(quantizers + 1, 8, 64);
    *jpeg = (struct buffer){.size = 0};
    put16(jpeg, 0xffd8);
    put_segment(jpeg, 0xe0, "JFIF\0\1\1\0\0\1\0\1\0\0", 14);
    put_segment(jpeg, 0xdb, quantizers, sizeof quantizers);
    put_segment(jpeg, 0xc2, frame, sizeof frame);
    put_segment(jpeg, 0xc4, dc, sizeof dc);
    put_segment(jpeg, 0xda, dc_scan, sizeof dc_scan);
    put8(jpeg, 0x65); /* 0, then 50 in 6 bits, then padding */
    put_segment(jpeg, 0xc4, ac, sizeof ac);
    put_segment(jpeg, 0xda, ac_scan, sizeof ac_scan);
    put8(jpeg, 0x7f);
    put16(jpeg, 0xffd9);
}

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
        assert_error(&error, "x: is a JPEG of the CMYK kind, which is read only if libjpeg-turbo is built in; save it "
                             "again as a plain JPEG or PNG");
        return;
    }
    assert_error(&error, "x: the codec stb reads no CMYK JPEG; leave --codec out, or give libjpeg-turbo");
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

/* ---- Round trips ---- */

static struct image make_image(int width, int height, int channels, int bits, bool smooth)
{
    struct image image;
    unsigned noise = 12345;
    assert_true(image_allocate(&image, width, height, channels, bits, NULL));
    for (int y = 0, i = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++, i++) {
                noise = noise * 1664525 + 1013904223;
                const int level = smooth ? 40 + 2 * x + 3 * y + 20 * c : (int)(noise >> 24);
                const uint16_t deep = (uint16_t)((unsigned)level << 8 | (noise >> 8 & 255));
                if (bits == 8)
                    image.samples[i] = (uint8_t)level;
                else
                    memcpy(image.samples + 2 * i, &deep, sizeof deep);
            }
    return image;
}

/* Decode what WRITER has made of IMAGE with READER. */
static void check_back(const struct image *image, const struct format *format, const struct codec *writer,
                       const struct codec *reader, const uint8_t *bytes, size_t size)
{
    const struct codec_settings settings = settings_of(reader);
    struct image composed = {0};
    if (!format->holds_alpha && image_has_alpha(image)) { /* over the background of all settings here */
        const int left = image_composed_channels(image->channels, settings.background);
        assert_true(image_compose(image, settings.background, left, &composed, NULL));
        image = &composed;
    }
    const bool as_colour =
        !format->holds_grey || format == WEBP || (format == JPEG && strcmp(writer->name, "stb") == 0);
    const size_t channels = (size_t)image->channels;
    struct codec_info info;
    struct error error = {0};
    struct image back;
    if (!codec_decode(bytes, size, "x", &settings, &back, &info, &error))
        fail_msg("%s, %s: %s", writer->name, reader->name, error.message);
    assert_ptr_equal(info.format,
                     format->magics[0] != NULL ? format : format_of(channels == 1 ? FORMAT_PGM : FORMAT_PPM));
    assert_int_equal(info.bits, image->bits < format->max_bits ? image->bits : format->max_bits);
    assert_int_equal(back.width, image->width);
    assert_int_equal(back.height, image->height);
    assert_int_equal(back.channels, as_colour ? 3 + image_has_alpha(image) : image->channels);
    for (size_t p = 0; p < (size_t)(image->width * image->height); p++)
        for (size_t c = 0; c < (size_t)back.channels; c++) {
            const size_t from = channels > 2 ? c : image_has_alpha(image) && c == (size_t)back.channels - 1;
            const unsigned sample = sample_of(image, p * channels + from);
            const int a = (int)with_bits(sample, image->bits, back.bits);
            const int b = (int)sample_of(&back, p * (size_t)back.channels + c);
            if (abs(a - b) > (format == JPEG ? 4 : 0))
                fail_msg("%s, %s, %d channels, pixel %zu, channel %zu: %d became %d", writer->name, reader->name,
                         image->channels, p, c, a, b);
        }
    image_free(&back);
    image_free(&composed);
}

static void check_all_back(const struct image *image, const struct format *format, const struct codec *writer,
                           const struct codec_settings *settings)
{
    struct error error = {0};
    uint8_t *bytes;
    size_t size;
    if (!codec_encode(image, format, settings, &bytes, &size, &error))
        fail_msg("%s: %s", writer->name, error.message);
    EACH_READER(reader, format)
    {
        check_back(image, format, writer, reader, bytes, size);
    }
    free(bytes);
}

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
    for (int i = 0; i < 8; i++) {
        const int channels = i / 2 + 1;
        struct image image = make_image(1400, 1100, channels, i % 2 ? 16 : 8, channels % 2 == 0);
        struct codec_settings settings = settings_of(NULL);
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
        uint8_t *want, *bytes;
        size_t want_size, size;
        struct png_chunk chunk;
        assert_true(codec_encode(&image, PNG, &settings, &want, &want_size, NULL));
        struct png_walk walk = png_walk_begin(want, want_size);
        do
            assert_int_equal(png_walk_next(&walk, &chunk), PNG_STEP_CHUNK);
        while (!png_chunk_is(&chunk, "IDAT"));
        const size_t data = chunk.size - ZLIB_HEAD - ZLIB_TAIL;
        const uint8_t *stream = chunk.data + ZLIB_HEAD;
        assert_true(codec_wrap_stream(&image, stream, data, big32(stream + data), &bytes, &size, NULL));
        assert_int_equal(size, want_size);
        assert_memory_equal(bytes, want, size);
        free(bytes);
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
    struct jpeg_layout layout;
    EACH_WRITER(row, PNG)
    {
        for (int level = 0; level < 10; level++) {
            struct codec_settings settings = settings_of(row);
            settings.compression = level;
            assert_ptr_equal(codec_plan_stream(PNG, &settings), row == codec && level == 1 ? codec : NULL);
            assert_null(codec_plan_scan(PNG, &shape, &settings, &layout));
        }
    }
    size_t count;
    const struct format *all = formats(&count);
    const struct codec_settings settings = settings_of(NULL);
    for (const struct format *format = all; format < all + count; format++)
        assert_ptr_equal(codec_plan_stream(format, &settings), format == PNG ? codec : NULL);
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
        size_t sizes[10] = {0};
        for (int level = 0; level < 10; level++) {
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
    }
    image_free(&image);
}

static void test_higher_compression_is_not_larger(void **state)
{
    (void)state;
    check_compression(8);
    check_compression(16);
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
    assert_non_null(strstr(error.message, "the codec parallel-png reads no JPEG; leave --codec out, or give "));
    assert_null(codec_find_writer(JPEG, &(struct image){.bits = 8}, &png, &error));
    assert_int_equal(error.code, ERROR_USAGE);
    assert_null(codec_find("libgif", &error));
    assert_non_null(strstr(error.message, "there is no codec named \"libgif\""));
    assert_null(codec_find("parallel-pn", &error));
    assert_non_null(strstr(error.message, "did you mean \"parallel-png\""));
}

/* ---- Damage ---- */

/* Decode, and expect success or failure (-1: either). A decoded picture has the samples of SAME, unless that is NULL.
 * The bytes stand in a block of their own size, so that a sanitizer sees a read past their end. */
static void decode_copy(const struct codec *codec, const uint8_t *bytes, size_t size, int expected,
                        const struct image *same, const char *what, size_t at)
{
    const struct codec_settings settings = settings_of(codec);
    uint8_t *copy = malloc(size ? size : 1);
    struct error error = {0};
    struct image image;
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    const bool done = codec_decode(copy, size, "x", &settings, &image, NULL, &error);
    if (expected >= 0 && done != expected)
        fail_msg("%s: %s at %zu: %s", codec->name, what, at, done ? "decoded" : error.message);
    if (done) {
        assert_true(image.width > 0 && image.height > 0 && image.samples);
        if (same != NULL && memcmp(image.samples, same->samples, image_bytes(same)) != 0)
            fail_msg("%s: %s at %zu: other samples", codec->name, what, at);
    } else {
        assert_null(image.samples);
        assert_int_equal(error.code, ERROR_WORK);
        assert_string_equal(error.subject, "x");
    }
    image_free(&image);
    free(copy);
}

/* Cut the file everywhere, and flip each bit. With a bit flipped, expect FLIPPED, and from HARMLESS to END the samples
 * of SAME. */
static void cut_and_flip(const struct codec *codec, const uint8_t *bytes, size_t size, int flipped,
                         const struct image *same, size_t harmless, size_t end)
{
    uint8_t *copy = malloc(size + 3);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    memcpy(copy + size, "\r\n", 3);
    decode_copy(codec, copy, size + 3, true, NULL, "trailing bytes", size);
    for (size_t i = 0; i < size; i++)
        decode_copy(codec, copy, i, false, NULL, "cut", i);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            copy[i] ^= (uint8_t)(1 << bit);
            const bool is_harmless = i >= harmless && i < end;
            decode_copy(codec, copy, size, is_harmless ? true : flipped, is_harmless ? same : NULL, "flip", i);
            copy[i] ^= (uint8_t)(1 << bit);
        }
    free(copy);
}

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

/* Chunks of colours that are not where or as they must be, which the libraries take differently. */
static void test_misplaced_chunks_are_refused(void **state)
{
    static const struct {
        unsigned colour, channels;
        const char *before, *type;
        size_t size;
        const char *message;
    } cases[] = {
        {3, 1, "IDAT", "PLTE", 12, "chunk PLTE at byte 80 stands there a second time"},
        {3, 1, "PLTE", "tRNS", 1, "chunk tRNS at byte 56 stands before PLTE"},
        {3, 1, "IEND", "tRNS", 1, "stands too late"},
        {3, 1, "IDAT", "tRNS", 5, "its tRNS chunk has 5 bytes"},
        {2, 3, "IDAT", "PLTE", 10, "its PLTE chunk has 10 bytes"},
        {2, 3, "IDAT", "PLTE", 769, "its PLTE chunk has 769 bytes"},
        {2, 3, "IEND", "PLTE", 3, "stands too late"},
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

static void test_bad_files_are_refused_with_their_reason(void **state)
{
    static const char *const files[][2] = {
        {"empty.png", "is empty"},
        {"not-an-image.png", "is not a PNG, JPEG, PGM, PPM, PAM, WebP or TIFF"},
        {"gif.png", "is a GIF image"},
        {"heic.jpg", "is a HEIC image"},
        {"truncated.webp", "truncated: it has 31 of 34 bytes"},
        {"signature.webp", "its first 12 bytes are wrong"},
        {"long-chunk.webp", "the chunk at byte 12 is longer than what holds it"},
        {"header.webp", "its picture at byte 12 has no header"},
        {"few-data.webp", "its data are too few for 16383 x 16383 pixels"},
        {"canvas.webp", "its picture of 1 x 1 pixels does not fit its canvas of 2 x 1"},
        {"no-picture.webp", "it holds no picture"},
        {"no-frame.webp", "it is an animation without a frame"},
        {"svg.png", "is an SVG drawing"},
        {"truncated.png", "truncated: chunk IDAT at byte 33 claims 152 bytes and 144 are left"},
        {"crc.png", "the checksum of chunk IDAT at byte 33 is wrong"},
        {"crc-trns.png", "the checksum of chunk tRNS at byte 33 is wrong"},
        {"cgbi.png", "is a PNG optimised for iPhones (CgBI)"},
        {"signature.png", "signature"},
        {"no-ihdr.png", "chunk IDAT at byte 8 stands where IHDR must be"},
        {"no-idat.png", "it holds no IDAT chunk"},
        {"no-iend.png", "truncated: it ends after 197 bytes without an IEND chunk"},
        {"no-palette.png", "it holds no PLTE chunk before byte 33"},
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
        {"no-scan.jpg", "it holds no picture"},
        {"no-frame.jpg", "it holds no frame header"},
        {"zero-width.jpg", "it claims 0 pixels per row"},
        {"12-bit.jpg", "12 bits per sample"},
        {"lossless.jpg", "of the lossless kind"},
        {"hierarchical.jpg", "of the hierarchical kind"},
        {"jpeg-ls.jpg", "of the JPEG-LS kind"},
        {"segment.jpg", "truncated: segment E0 at byte 2 claims 65535 bytes and 6 are left"},
        {"scans.jpg", "more than 100 scans"},
        {"huffman.jpg", "the Huffman tables at byte 84 are wrong"},
        {"plain.ppm", "is a PPM as text"},
        {"bitmap.pnm", "is a PBM bitmap"},
        {"float.pnm", "is a PFM image"},
        {"truncated.pgm", "the PGM file is truncated: it ends in row 8 of 8"},
        {"no-blank.pgm", "no blank follows its first 2 bytes"},
        {"header.ppm", "the PPM file is truncated: it ends in its header"},
        {"negative.ppm", "its height is no number from 1 to 2147483647"},
        {"huge.pgm", "it ends in row 1 of 2147483647"},
        {"overflow.ppm", "its width is no number from 1 to 2147483647"},
        {"maxval.pgm", "its maxval is no number from 1 to 65535"},
        {"above.pgm", "its data cannot be decoded (a sample is above its maxval)"},
        {"above.pam", "its data cannot be decoded (a sample is above its maxval)"},
        {"thumbnail.pam", "no end of line follows its first 2 bytes"},
        {"no-depth.pam", "its header lacks a line WIDTH, HEIGHT, DEPTH or MAXVAL"},
        {"no-end.pam", "the PAM file is truncated: it ends in its header"},
        {"line.pam", "its header has an unknown line at byte 11"},
        {"cmyk.pam", "is a PAM of depth 4 and tuple type \"CMYK\", which is not read"},
        {"depth.pam", "is a PAM of depth 2 and tuple type \"RGB\", which is not read"},
    };
    const char *root = getenv("GPUCONV_SOURCE_ROOT");
    (void)state;
    if (root == NULL)
        fail_msg("GPUCONV_SOURCE_ROOT is not set to the folder of the sources");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        const struct format *format = format_find_by_path(files[i][0]);
        uint8_t *bytes;
        size_t size;
        char path[4096];
        snprintf(path, sizeof path, "%s/tests/data/bad/%s", root, files[i][0]);
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
    assert_string_equal(error.message,
                        "32768 x 32769 pixels of 1 channels are too large for the codec stb: it takes at "
                        "most 2^30 samples, half as many of 16 bits, and files of 2 GiB; leave --codec "
                        "out, or give parallel-png");
    assert_null(codec_find_writer(PNG, &shape, &stb, &error));
    assert_non_null(strstr(error.message, "too large for the codec stb"));
    assert_true(codec_choose_reader(&info, &any, "x", &error));
    assert_non_null(codec_find_writer(PNG, &shape, &any, &error));
    info.height = 16385; /* of 16 bits, half as many */
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
                                              : "is a JPEG of the CMYK kind"));
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
            assert_int_equal(codec_is_available(format),
                             codec_find_writer(format, &(struct image){.bits = bits},
                                               &(struct codec_settings){.bits = 0}, NULL) != NULL);
    }
    format_join_suffixes("and", text, sizeof text);
    assert_string_equal(text, ".png, .jpg, .jpeg, .pgm, .ppm, .pnm, .pam, .webp, .tif and .tiff");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats_are_complete_and_found_by_suffix),
        cmocka_unit_test(test_every_kind_of_png_is_decoded_alike),
        cmocka_unit_test(test_a_progressive_jpeg_is_decoded),
        cmocka_unit_test(test_a_jpeg_with_restarts_is_decoded),
        cmocka_unit_test(test_a_cmyk_jpeg_goes_to_the_codec_that_checks_it),
        cmocka_unit_test(test_a_sample_of_any_maxval_becomes_the_nearest_level),
        cmocka_unit_test(test_an_encoded_image_comes_back),
        cmocka_unit_test(test_a_writer_of_8_bits_refuses_16),
        cmocka_unit_test(test_bands_and_threads_do_not_change_the_file),
        cmocka_unit_test(test_a_stream_is_found_for_a_gpu),
        cmocka_unit_test(test_a_file_around_a_stream_is_as_written),
        cmocka_unit_test(test_a_stream_is_planned_for_one_level),
        cmocka_unit_test(test_higher_compression_is_not_larger),
        cmocka_unit_test(test_the_chroma_subsampling_is_in_the_file),
        cmocka_unit_test(test_the_jpeg_decoders_are_close),
        cmocka_unit_test(test_a_named_codec_refuses_what_it_cannot),
        cmocka_unit_test(test_misplaced_chunks_are_refused),
        cmocka_unit_test(test_indices_beyond_the_palette_are_black),
        cmocka_unit_test(test_a_long_stream_is_read_and_a_short_one_refused),
        cmocka_unit_test(test_a_lower_quality_is_smaller),
        cmocka_unit_test(test_a_damaged_png_is_refused),
        cmocka_unit_test(test_a_damaged_jpeg_does_no_harm),
        cmocka_unit_test(test_damaged_png_data_are_refused),
        cmocka_unit_test(test_bad_files_are_refused_with_their_reason),
        cmocka_unit_test(test_limits_of_stb),
        cmocka_unit_test(test_images_beyond_the_limits_are_refused),
        cmocka_unit_test(test_longest_sides_of_jpeg),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
