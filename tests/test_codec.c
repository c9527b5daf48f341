/* SPDX-License-Identifier: MIT
 *
 * The codec: every kind of PNG against pixels computed here, round trips, files cut at every byte and flipped at every
 * bit, the committed bad files, limits; and writing: modes, links, full disks, signals, nothing left behind. */
#include "codec.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* Where a test makes its files; made and emptied by the group's set-up and tear-down. */
static char folder[] = "/tmp/gpuconv-codec-XXXXXX";

/* Whether open() below plays a file system without unnamed files. */
static bool named_only;

/* The signal that comes when a temporary file has just got its name, or 0. */
static int signal_after_link;

/* Stands in for libc's linkat, for the codec too. */
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags)
{
    const int result = (int)syscall(SYS_linkat, from_folder, from, to_folder, to, flags);

    if (signal_after_link != 0)
        raise(signal_after_link);
    return result;
}

/* Stands in for libc's open, for the codec too. */
int open(const char *path, int flags, ...)
{
    va_list arguments;
    mode_t mode = 0;

    va_start(arguments, flags);
    if (flags & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY)))
        mode = va_arg(arguments, mode_t);
    va_end(arguments);
    if (named_only && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ---- Bytes put together ---- */

struct buffer {
    uint8_t bytes[1 << 16];
    size_t size;
};

static void put(struct buffer *buffer, const void *bytes, size_t size)
{
    assert_true(buffer->size + size <= sizeof(buffer->bytes));
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

/* A kind of PNG, and the sample that stands at (x, y) in channel c: a value of `bits` bits. */
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

/* The rows of a pass: pixels at x0, x0 + dx, ... of rows y0, y0 + dy, ..., each row after its filter byte. */
static void put_pass(struct buffer *raw, const struct kind *kind, unsigned width, unsigned height, unsigned x0,
                     unsigned y0, unsigned dx, unsigned dy)
{
    if (x0 >= width)
        return;
    for (unsigned y = y0; y < height; y += dy) {
        unsigned held = 0, bits = 0; /* bits that do not fill a byte yet */
        put8(raw, 0);
        for (unsigned x = x0; x < width; x += dx) {
            for (unsigned c = 0; c < kind->channels; c++) {
                held = held << kind->bits | kind_sample(kind, x, y, c);
                for (bits += kind->bits; bits >= 8; bits -= 8)
                    put8(raw, held >> (bits - 8));
            }
        }
        if (bits > 0)
            put8(raw, held << (8 - bits));
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
    put(&part, tail, sizeof(tail));
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
    struct libdeflate_compressor *const compressor = libdeflate_alloc_compressor(6);
    const size_t size = libdeflate_zlib_compress(compressor, raw.bytes, raw.size, compressed, sizeof(compressed));
    libdeflate_free_compressor(compressor);
    assert_true(size > 2);
    put_chunk(png, "IDAT", compressed, 2); /* the stream may be cut anywhere */
    put_chunk(png, "IDAT", compressed + 2, size - 2);
    put_chunk(png, "IEND", NULL, 0);
}

/* The byte that the codec must give for channel c at (x, y). */
static unsigned expected_sample(const struct kind *kind, unsigned x, unsigned y, unsigned c)
{
    if (kind->colour == 3)
        return palette_sample(kind_sample(kind, x, y, 0), c);
    if (c == kind->channels) {
        bool same = true;
        for (unsigned i = 0; i < kind->channels; i++)
            same &= kind_sample(kind, x, y, i) == kind_sample(kind, 1, 0, i);
        return same ? 0 : 255;
    }
    const unsigned value = kind_sample(kind, x, y, c);
    return kind->bits == 16 ? value >> 8 : value * 255 / ((1u << kind->bits) - 1);
}

static void test_png_kinds(void **state)
{
    static const unsigned colours[][2] = {{0, 1}, {2, 3}, {3, 1}, {4, 2}, {6, 4}};
    static const unsigned sizes[][2] = {{1, 1}, {3, 1}, {1, 5}, {13, 11}};
    static struct buffer png;
    int kinds = 0;

    (void)state;
    for (unsigned i = 0; i < 5 * 5 * 2 * 2 * 4; i++) {
        const unsigned width = sizes[i / 100][0], height = sizes[i / 100][1];
        const struct kind kind = {.colour = colours[i % 5][0],
                                  .channels = colours[i % 5][1],
                                  .bits = 1u << i / 5 % 5,
                                  .interlaced = i / 25 % 2,
                                  .transparent = i / 50 % 2};
        const unsigned channels = (kind.colour == 3 ? 3 : kind.channels) + kind.transparent;
        struct error error = {0};
        struct codec_info info;
        struct image image;

        if ((kind.colour != 0 && kind.colour != 3 && kind.bits < 8) || (kind.colour == 3 && kind.bits > 8) ||
            (kind.colour >= 4 && kind.transparent))
            continue;
        kinds++;
        make_png(&png, &kind, width, height);
        if (!codec_decode(png.bytes, png.size, "x.png", &image, &info, &error))
            fail_msg("colour %u, %u bits: %s", kind.colour, kind.bits, error.message);
        assert_int_equal(info.format, FORMAT_PNG);
        assert_int_equal(info.reduced, kind.bits == 16);
        assert_int_equal(image.width, width);
        assert_int_equal(image.height, height);
        assert_int_equal(image.channels, channels);
        for (unsigned y = 0, at = 0; y < height; y++)
            for (unsigned x = 0; x < width; x++)
                for (unsigned c = 0; c < channels; c++, at++)
                    if (image.samples[at] != expected_sample(&kind, x, y, c))
                        fail_msg("colour %u, %u bits, (%u, %u) channel %u: %u, expected %u", kind.colour, kind.bits, x,
                                 y, c, image.samples[at], expected_sample(&kind, x, y, c));
        image_free(&image);
    }
    assert_int_equal(kinds,
                     (15 + 11) * 2 * 4); /* 15 kinds by the standard, of which 11 may name a transparent colour */
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
    put_segment(jpeg, 0xdb, quantizers, sizeof(quantizers));
    put_segment(jpeg, 0xc2, frame, sizeof(frame));
    put_segment(jpeg, 0xc4, dc, sizeof(dc));
    put_segment(jpeg, 0xda, dc_scan, sizeof(dc_scan));
    put8(jpeg, 0x65); /* 0, then 50 in 6 bits, then padding */
    put_segment(jpeg, 0xc4, ac, sizeof(ac));
    put_segment(jpeg, 0xda, ac_scan, sizeof(ac_scan));
    put8(jpeg, 0x7f);
    put16(jpeg, 0xffd9);
}

static void test_progressive_jpeg(void **state)
{
    static struct buffer jpeg;
    struct error error = {0};
    struct codec_info info;
    struct image image;

    (void)state;
    make_progressive(&jpeg);
    if (!codec_decode(jpeg.bytes, jpeg.size, "x.jpg", &image, &info, &error))
        fail_msg("%s", error.message);
    assert_int_equal(info.format, FORMAT_JPEG);
    assert_false(info.reduced);
    assert_int_equal(image.width, 8);
    assert_int_equal(image.height, 8);
    assert_int_equal(image.channels, 1);
    for (int i = 0; i < 64; i++)
        assert_int_equal(image.samples[i], 178);
    image_free(&image);
}

/* A grey JPEG of 16 x 8 pixels with a restart after each of its two blocks, whose differences are 50 and -50: the
 * second counts from 0 again. */
static void test_jpeg_with_restarts(void **state)
{
    const uint8_t frame[9] = {8, 0, 8, 0, 16, 1, 1, 0x11, 0}, interval[2] = {0, 1};
    const uint8_t dc[18] = {0x00, 1, [17] = 6}, ac[18] = {0x10, 1, [17] = 0}, scan[6] = {1, 1, 0, 0, 63, 0};
    uint8_t quantizers[65] = {0};
    static struct buffer jpeg;
    struct error error = {0};
    struct image image;

    (void)state;
    memset(quantizers + 1, 8, 64);
    put16(&jpeg, 0xffd8);
    put_segment(&jpeg, 0xdb, quantizers, sizeof(quantizers));
    put_segment(&jpeg, 0xc0, frame, sizeof(frame));
    put_segment(&jpeg, 0xc4, dc, sizeof(dc));
    put_segment(&jpeg, 0xc4, ac, sizeof(ac));
    put_segment(&jpeg, 0xdd, interval, sizeof(interval));
    put_segment(&jpeg, 0xda, scan, sizeof(scan));
    put8(&jpeg, 0x64); /* 0, 50 in 6 bits, 0 */
    put16(&jpeg, 0xffd0);
    put8(&jpeg, 0x1a); /* 0, -50 in 6 bits, 0 */
    put16(&jpeg, 0xffd9);
    if (!codec_decode(jpeg.bytes, jpeg.size, "x.jpg", &image, NULL, &error))
        fail_msg("%s", error.message);
    assert_int_equal(image.width, 16);
    for (int i = 0; i < 16 * 8; i++)
        assert_int_equal(image.samples[i], i % 16 < 8 ? 178 : 78);
    image_free(&image);
}

/* ---- Round trips ---- */

static struct image make_image(int width, int height, int channels, bool smooth)
{
    struct image image;
    unsigned noise = 12345;

    assert_true(image_allocate(&image, width, height, channels, NULL));
    for (int y = 0, i = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < channels; c++, i++) {
                noise = noise * 1664525 + 1013904223;
                image.samples[i] = (uint8_t)(smooth ? 40 + 2 * x + 3 * y + 20 * c : (int)(noise >> 24));
            }
    return image;
}

static void test_round_trips(void **state)
{
    static const int sizes[][2] = {{1, 1}, {1, 31}, {31, 1}, {17, 13}, {64, 48}};

    (void)state;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (int channels = 1; channels <= 4; channels++) {
            for (enum format format = FORMAT_PNG; format <= FORMAT_JPEG; format++) {
                const bool png = format == FORMAT_PNG;
                struct image image = make_image(sizes[s][0], sizes[s][1], channels, !png), back;
                struct codec_info info;
                struct error error = {0};
                uint8_t *bytes;
                size_t size;

                assert_true(codec_encode(&image, format, 100, &bytes, &size, &error));
                if (!codec_decode(bytes, size, "x", &back, &info, &error))
                    fail_msg("%s", error.message);
                assert_int_equal(info.format, format);
                assert_false(info.reduced);
                assert_int_equal(back.width, image.width);
                assert_int_equal(back.height, image.height);
                assert_int_equal(back.channels, png ? channels : 3); /* stb writes a grey JPEG in colour */
                for (size_t p = 0; p < (size_t)(image.width * image.height); p++)
                    for (size_t c = 0; c < (size_t)back.channels; c++) {
                        const size_t from = png || channels >= 3 ? c : 0;
                        const int a = image.samples[p * (size_t)channels + from];
                        const int b = back.samples[p * (size_t)back.channels + c];
                        assert_in_range(abs(a - b), 0, png ? 0 : 4);
                    }
                free(bytes);
                image_free(&image);
                image_free(&back);
            }
        }
    }
}

/* A lower quality gives a smaller file. */
static void test_quality(void **state)
{
    struct image image = make_image(64, 48, 3, false);
    size_t low, high;
    uint8_t *bytes;

    (void)state;
    assert_true(codec_encode(&image, FORMAT_JPEG, 20, &bytes, &low, NULL));
    free(bytes);
    assert_true(codec_encode(&image, FORMAT_JPEG, 95, &bytes, &high, NULL));
    free(bytes);
    assert_true(2 * low < high);
    image_free(&image);
}

/* ---- Damage ---- */

/* Decode, and expect success or failure (-1: either). The bytes stand in a block of their own size, so that a sanitizer
 * sees a read past their end. */
static void decode_copy(const uint8_t *bytes, size_t size, int expected, const char *what, size_t at)
{
    uint8_t *const copy = malloc(size ? size : 1);
    struct error error = {0};
    struct image image;

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    const bool done = codec_decode(copy, size, "x", &image, NULL, &error);
    if (expected >= 0 && done != expected)
        fail_msg("%s at %zu: %s", what, at, done ? "decoded" : error.message);
    if (done) {
        assert_true(image.width > 0 && image.height > 0 && image.samples);
    } else {
        assert_null(image.samples);
        assert_int_equal(error.code, ERROR_WORK);
        assert_memory_equal(error.message, "x: ", 3);
    }
    image_free(&image);
    free(copy);
}

static void cut_and_flip(const uint8_t *bytes, size_t size, int flipped)
{
    uint8_t *const copy = malloc(size + 3);

    assert_non_null(copy);
    memcpy(copy, bytes, size);
    memcpy(copy + size, "\r\n", 3);
    decode_copy(copy, size + 3, true, "trailing bytes", size);
    for (size_t i = 0; i < size; i++)
        decode_copy(copy, i, false, "cut", i);
    for (size_t i = 0; i < size; i++)
        for (int bit = 0; bit < 8; bit++) {
            copy[i] ^= (uint8_t)(1 << bit);
            decode_copy(copy, size, flipped, "flip", i);
            copy[i] ^= (uint8_t)(1 << bit);
        }
    free(copy);
}

static void test_damaged_png(void **state)
{
    const struct kind kind = {.colour = 3, .bits = 4, .channels = 1, .interlaced = true, .transparent = true};
    static struct buffer png;

    (void)state;
    make_png(&png, &kind, 13, 11);
    cut_and_flip(png.bytes, png.size, false);
}

static void test_damaged_jpeg(void **state)
{
    struct image image = make_image(17, 9, 3, true);
    static struct buffer jpeg;
    uint8_t *bytes;
    size_t size;

    (void)state;
    make_progressive(&jpeg);
    cut_and_flip(jpeg.bytes, jpeg.size, -1);
    assert_true(codec_encode(&image, FORMAT_JPEG, 50, &bytes, &size, NULL));
    cut_and_flip(bytes, size, -1);
    free(bytes);
    image_free(&image);
}

/* The chunks' CRCs hide stb's PNG decoder from damage; make them right again after each flip of the data. */
static void test_damaged_png_data(void **state)
{
    const struct kind kind = {.colour = 2, .bits = 8, .channels = 3};
    static struct buffer png;

    (void)state;
    make_png(&png, &kind, 13, 11);
    const size_t idat = png.size - 12 - 4; /* ends here: its CRC, then IEND */
    const uint8_t *type = memmem(png.bytes, idat, "IDAT", 4);
    assert_non_null(type);
    type = memmem(type + 4, idat - (size_t)(type + 4 - png.bytes), "IDAT", 4); /* the second one has all but 2 bytes */
    assert_non_null(type);
    const size_t start = (size_t)(type - png.bytes);
    for (size_t i = start + 4; i < idat; i++)
        for (int bit = 0; bit < 8; bit++) {
            png.bytes[i] ^= (uint8_t)(1 << bit);
            const size_t size = png.size;
            png.size = idat;
            put32(&png, libdeflate_crc32(0, png.bytes + start, idat - start));
            png.size = size;
            decode_copy(png.bytes, png.size, -1, "flip", i);
            png.bytes[i] ^= (uint8_t)(1 << bit);
        }
}

static void test_bad_files(void **state)
{
    static const char *const files[][2] = {
        {"empty.png", "is empty"},
        {"not-an-image.png", "is neither a PNG nor a JPEG"},
        {"gif.png", "is a GIF image"},
        {"webp.jpg", "is a WebP image"},
        {"svg.png", "is an SVG drawing"},
        {"truncated.png", "truncated: chunk IDAT at byte 33 claims 152 bytes and 144 are left"},
        {"crc.png", "the checksum of chunk IDAT at byte 33 is wrong"},
        {"signature.png", "signature"},
        {"no-ihdr.png", "chunk IDAT at byte 8 stands where IHDR must be"},
        {"no-idat.png", "it holds no IDAT chunk"},
        {"no-iend.png", "truncated: it ends after 197 bytes without an IEND chunk"},
        {"no-palette.png", "(no PLTE)"},
        {"huge.png", "100000 x 100000 pixels of 3 channels are too many"},
        {"wide.png", "2147483647 x 1 pixels of 3 channels are too many"},
        {"zero-width.png", "it claims 0 x 8 pixels"},
        {"depth.png", "there is no colour type 2 with 4 bits a sample"},
        {"long-chunk.png", "chunk IDAT at byte 33 claims 4294967295 bytes"},
        {"unknown-chunk.png", "chunk NEWS at byte 33"},
        {"few-rows.png", "not enough pixels"},
        {"not-deflate.png", "its data cannot be decoded"},
        {"truncated.jpg", "truncated: it ends after 139 bytes without an end marker"},
        {"no-scan.jpg", "it holds no picture"},
        {"no-frame.jpg", "it holds no frame header"},
        {"zero-width.jpg", "it claims 0 pixels a row"},
        {"12-bit.jpg", "12 bits a sample"},
        {"lossless.jpg", "of the lossless kind"},
        {"arithmetic.jpg", "of the arithmetic-coded kind"},
        {"segment.jpg", "truncated: segment E0 at byte 2 claims 65535 bytes and 6 are left"},
        {"huffman.jpg", "the Huffman tables at byte 84 are wrong"},
    };
    const char *const root = getenv("GPUCONV_SOURCE_ROOT");

    (void)state;
    if (!root)
        fail_msg("GPUCONV_SOURCE_ROOT is not set to the folder of the sources");
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        struct error error = {0};
        struct image image = {0};
        uint8_t *bytes;
        size_t size;
        char path[4096];

        snprintf(path, sizeof(path), "%s/tests/bad/%s", root, files[i][0]);
        if (codec_read(path, 1 << 20, &bytes, &size, &error) && codec_decode(bytes, size, path, &image, NULL, &error))
            fail_msg("%s was decoded", files[i][0]);
        free(bytes);
        assert_null(image.samples);
        assert_int_equal(error.code, ERROR_WORK);
        if (strncmp(error.message, path, strlen(path)) != 0 || !strstr(error.message, files[i][1]))
            fail_msg("%s: expected \"%s\", got \"%s\"", files[i][0], files[i][1], error.message);
    }
}

static void test_limits(void **state)
{
    const struct kind kind = {.colour = 0, .bits = 16, .channels = 1};
    static struct buffer png;
    struct error error = {0};
    struct image image;
    uint8_t sample = 0, *bytes;
    size_t size;

    (void)state;
    /* 2^30 - 2^15 samples: few enough of 8 bits, too many of 16, which stb decodes to 2 bytes each. */
    make_png(&png, &kind, 1, 1);
    png.size = 16;
    put32(&png, 32767);
    put32(&png, 32768);
    png.size = 29;
    put32(&png, libdeflate_crc32(0, png.bytes + 12, 17));
    assert_false(codec_decode(png.bytes, sizeof(png.bytes), "x", &image, NULL, &error));
    assert_non_null(strstr(error.message, "too many"));
    png.bytes[24] = 8;
    png.size = 29;
    put32(&png, libdeflate_crc32(0, png.bytes + 12, 17));
    assert_false(codec_decode(png.bytes, sizeof(png.bytes), "x", &image, NULL, &error));
    assert_null(strstr(error.message, "too many"));

    const struct image wide = {.width = 65536, .height = 1, .channels = 1, .samples = &sample};
    assert_false(codec_encode(&wide, FORMAT_JPEG, 90, &bytes, &size, &error));
    assert_non_null(strstr(error.message, "too many for a JPEG file"));
    assert_null(bytes);
    const struct image large = {.width = 32768, .height = 32769, .channels = 1, .samples = &sample};
    assert_false(codec_encode(&large, FORMAT_PNG, 90, &bytes, &size, &error));
    assert_non_null(strstr(error.message, "too many for a PNG file"));
}

static void test_formats(void **state)
{
    (void)state;
    assert_int_equal(codec_format_of_path("a.png"), FORMAT_PNG);
    assert_int_equal(codec_format_of_path("a.b/c.JPG"), FORMAT_JPEG);
    assert_int_equal(codec_format_of_path(".jpeg"), FORMAT_JPEG);
    assert_int_equal(codec_format_of_path("a.png/b"), FORMAT_UNKNOWN);
    assert_int_equal(codec_format_of_path("png"), FORMAT_UNKNOWN);
    assert_int_equal(codec_format_of_path("a.pngx"), FORMAT_UNKNOWN);
    assert_int_equal(codec_format_of_path("-"), FORMAT_UNKNOWN);
    assert_int_equal(codec_format_of_name("PNG"), FORMAT_PNG);
    assert_int_equal(codec_format_of_name("jpg"), FORMAT_JPEG);
    assert_int_equal(codec_format_of_name("gif"), FORMAT_UNKNOWN);
    assert_string_equal(codec_format_name(FORMAT_PNG), "PNG");
    assert_string_equal(codec_format_name(FORMAT_JPEG), "JPEG");
}

/* ---- Reading and writing ---- */

/* The path of a file in the test's folder; good until the next call but one. */
static const char *in_folder(const char *name)
{
    static char paths[2][4096];
    static int next;

    next = !next;
    snprintf(paths[next], sizeof(paths[next]), "%s/%s", folder, name);
    return paths[next];
}

static void remove_all(void)
{
    DIR *const directory = opendir(folder);

    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));)
        unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
}

/* How many files are in the test's folder. */
static int count_files(void)
{
    DIR *const directory = opendir(folder);
    int count = 0;

    assert_non_null(directory);
    for (const struct dirent *entry; (entry = readdir(directory));)
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    closedir(directory);
    return count;
}

static void assert_holds(const char *path, const char *text)
{
    struct error error = {0};
    uint8_t *bytes;
    size_t size;

    if (!codec_read(path, 1 << 20, &bytes, &size, &error))
        fail_msg("%s", error.message);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(bytes, text, size);
    free(bytes);
}

static mode_t mode_of(const char *path)
{
    struct stat status;

    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

static bool write_text(const char *path, const char *text, struct error *error)
{
    return codec_write(path, (const uint8_t *)text, strlen(text), error);
}

static void assert_not_written(const char *path, const char *reason)
{
    struct error error = {0};

    assert_false(write_text(path, "new", &error));
    assert_int_equal(error.code, ERROR_WORK);
    if (!strstr(error.message, reason))
        fail_msg("expected \"%s\", got \"%s\"", reason, error.message);
}

/* Once on a file system with unnamed files, once without. */
static void test_write(void **state)
{
    struct error error = {0};
    const mode_t mask = umask(027);

    (void)state;
    for (int named = 0; named < 2; named++) {
        named_only = named;
        if (!write_text(in_folder("new"), "first", &error))
            fail_msg("%s", error.message);
        assert_int_equal(mode_of(in_folder("new")), 0640);
        assert_holds(in_folder("new"), "first");

        assert_int_equal(chmod(in_folder("new"), 0606), 0);
        assert_true(write_text(in_folder("new"), "second, longer", &error));
        assert_int_equal(mode_of(in_folder("new")), 0606);
        assert_holds(in_folder("new"), "second, longer");

        assert_int_equal(symlink("new", in_folder("link")), 0);
        assert_true(write_text(in_folder("link"), "third", &error));
        assert_holds(in_folder("new"), "third");
        struct stat status;
        assert_int_equal(lstat(in_folder("link"), &status), 0);
        assert_true(S_ISLNK(status.st_mode));
        assert_int_equal(count_files(), 2);
        remove_all();
    }
    named_only = false;
    umask(mask);
}

static void test_write_in_working_folder(void **state)
{
    const int before = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct error error = {0};

    (void)state;
    assert_true(before >= 0);
    assert_int_equal(chdir(folder), 0);
    const bool done = write_text("plain", "text", &error);
    assert_int_equal(fchdir(before), 0);
    close(before);
    assert_true(done);
    assert_holds(in_folder("plain"), "text");
    remove_all();
}

static void test_write_fails(void **state)
{
    (void)state;
    assert_not_written(folder, "is a folder");
    assert_not_written(in_folder("x/"), "names a folder");
    assert_not_written(in_folder("missing/x"), "its folder must exist");
    assert_not_written("", "names a folder");
    assert_not_written("/dev/full", "No space left on device; make room");
    assert_int_equal(symlink("nothing", in_folder("link")), 0);
    assert_not_written(in_folder("link"), "symbolic link to a file that does not exist");
    assert_int_equal(count_files(), 1);
    remove_all();

    assert_true(write_text("/dev/null", "text", NULL));
    assert_true(write_text(in_folder("file"), "old", NULL));
    assert_not_written(in_folder("file/x"), "its folder must exist");

    /* A disk that fills up on the way, with and without a file to keep. */
    struct rlimit limit, small = {.rlim_cur = 1 << 16, .rlim_max = RLIM_INFINITY};
    static uint8_t bytes[1 << 18];
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    small.rlim_max = limit.rlim_max;
    void (*const handler)(int) = signal(SIGXFSZ, SIG_IGN);
    for (int named = 0; named < 2; named++) {
        struct error error = {0};
        named_only = named;
        setrlimit(RLIMIT_FSIZE, &small);
        const bool replaced = codec_write(in_folder("file"), bytes, sizeof(bytes), &error);
        const bool made = codec_write(in_folder("other"), bytes, sizeof(bytes), &error);
        setrlimit(RLIMIT_FSIZE, &limit);
        assert_false(replaced);
        assert_false(made);
        assert_non_null(strstr(error.message, "File too large; make room"));
        assert_holds(in_folder("file"), "old");
        assert_int_equal(count_files(), 1);
    }
    named_only = false;
    signal(SIGXFSZ, handler);
    remove_all();
}

static void test_write_needs_rights(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        print_message("root may write anywhere: skipped\n");
        skip();
    }
    assert_true(write_text(in_folder("file"), "old", NULL));
    assert_int_equal(chmod(in_folder("file"), 0444), 0);
    assert_not_written(in_folder("file"), "Permission denied");
    assert_int_equal(chmod(folder, 0555), 0);
    assert_not_written(in_folder("other"), "Permission denied");
    assert_int_equal(chmod(folder, 0755), 0);
    assert_holds(in_folder("file"), "old");
    assert_int_equal(count_files(), 1);
    remove_all();
}

/* A pipe keeps being one. */
static void test_write_to_pipe(void **state)
{
    char got[8] = {0};
    struct stat status;

    (void)state;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    const int fd = open(in_folder("pipe"), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_true(write_text(in_folder("pipe"), "text", NULL));
    assert_int_equal(read(fd, got, sizeof(got)), 4);
    assert_string_equal(got, "text");
    assert_int_equal(stat(in_folder("pipe"), &status), 0);
    assert_true(S_ISFIFO(status.st_mode));
    close(fd);
    remove_all();
}

/* A process that is told to end while it writes leaves the old or the new file, whole, and no other; and the signal is
 * not lost. */
static void test_write_interrupted(void **state)
{
    enum { SIZE = 1 << 20 };
    static uint8_t bytes[SIZE];
    struct error error = {0};

    (void)state;
    for (int round = 0; round < 12; round++) {
        const int signals[] = {SIGINT, SIGTERM, SIGHUP}, number = signals[round % 3];
        named_only = round % 2;
        const pid_t child = fork();
        if (child == 0) {
            alarm(10);               /* should the signal be lost */
            signal(number, SIG_DFL); /* nohup, for one, leaves SIGHUP ignored */
            for (unsigned i = 0;; i++) {
                memset(bytes, (int)i, sizeof(bytes));
                codec_write(in_folder("file"), bytes, sizeof(bytes), NULL);
            }
        }
        assert_true(child > 0);
        const struct timespec moment = {.tv_nsec = 20000000 + round * 1700000};
        nanosleep(&moment, NULL);
        kill(child, number);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == number);
        assert_int_equal(count_files(), 1);
        uint8_t *got;
        size_t size;
        if (!codec_read(in_folder("file"), SIZE, &got, &size, &error))
            fail_msg("%s", error.message);
        assert_int_equal(size, SIZE);
        for (size_t i = 1; i < size; i++)
            assert_int_equal(got[i], got[0]);
        free(got);
    }
    named_only = false;
    remove_all();
}

/* Nothing is left behind by any signal that can be held back, at the worst moment. */
static void test_write_signals(void **state)
{
    const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1};

    (void)state;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        const pid_t child = fork();
        if (child == 0) {
            const struct rlimit no_core = {0, 0};
            setrlimit(RLIMIT_CORE, &no_core);
            signal(signals[i], SIG_DFL);
            signal_after_link = signals[i];
            write_text(in_folder("file"), "text", NULL);
            _exit(0);
        }
        assert_true(child > 0);
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFSIGNALED(status)) /* and not where files without a name cannot be had */
            assert_int_equal(WTERMSIG(status), signals[i]);
        assert_holds(in_folder("file"), "text");
        assert_int_equal(count_files(), 1);
        remove_all();
    }
}

static void test_read(void **state)
{
    struct error error = {0};
    uint8_t *bytes;
    size_t size;
    int ends[2];

    (void)state;
    assert_false(codec_read(folder, 100, &bytes, &size, &error));
    assert_non_null(strstr(error.message, "is a folder"));
    assert_false(codec_read(in_folder("missing"), 100, &bytes, &size, &error));
    assert_non_null(strstr(error.message, "No such file or directory"));
    assert_null(bytes);
    assert_false(codec_read("/dev/null", 100, &bytes, &size, &error));
    assert_non_null(strstr(error.message, "is empty"));
    assert_false(codec_read("/dev/zero", 1 << 20, &bytes, &size, &error));
    assert_non_null(strstr(error.message, "larger than the 1048576 bytes"));

    assert_true(write_text(in_folder("file"), "12345", NULL));
    assert_true(codec_read(in_folder("file"), 5, &bytes, &size, &error));
    assert_int_equal(size, 5);
    free(bytes);
    assert_false(codec_read(in_folder("file"), 4, &bytes, &size, &error));
    assert_non_null(strstr(error.message, "larger than the 4 bytes"));
    remove_all();

    /* More than fits in a pipe and in the first buffer. */
    enum { SIZE = 300000 };
    assert_int_equal(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        for (int i = 0; i < SIZE; i += 3)
            if (write(ends[1], "abc", 3) != 3)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    char path[64];
    snprintf(path, sizeof(path), "/dev/fd/%d", ends[0]);
    assert_true(codec_read(path, 1 << 20, &bytes, &size, &error));
    assert_int_equal(size, SIZE);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(bytes[i], "abc"[i % 3]);
    free(bytes);
    close(ends[0]);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void test_same_file(void **state)
{
    (void)state;
    assert_true(write_text(in_folder("a"), "text", NULL));
    assert_true(write_text(in_folder("b"), "text", NULL));
    assert_int_equal(link(in_folder("a"), in_folder("hard")), 0);
    assert_int_equal(symlink("a", in_folder("soft")), 0);
    assert_true(codec_same_file(in_folder("a"), in_folder("./a")));
    assert_true(codec_same_file(in_folder("a"), in_folder("hard")));
    assert_true(codec_same_file(in_folder("soft"), in_folder("a")));
    assert_false(codec_same_file(in_folder("a"), in_folder("b")));
    assert_false(codec_same_file(in_folder("a"), in_folder("missing")));
    assert_false(codec_same_file("-", "-"));
    assert_false(codec_same_file("/dev/null", "/dev/null"));
    remove_all();
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_png_kinds),
        cmocka_unit_test(test_progressive_jpeg),
        cmocka_unit_test(test_jpeg_with_restarts),
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_quality),
        cmocka_unit_test(test_damaged_png),
        cmocka_unit_test(test_damaged_jpeg),
        cmocka_unit_test(test_damaged_png_data),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_in_working_folder),
        cmocka_unit_test(test_write_fails),
        cmocka_unit_test(test_write_needs_rights),
        cmocka_unit_test(test_write_to_pipe),
        cmocka_unit_test(test_write_interrupted),
        cmocka_unit_test(test_write_signals),
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_same_file),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
