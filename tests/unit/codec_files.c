/* SPDX-License-Identifier: MIT */
#include "codec_files.h"

#include <libdeflate.h>
#include <stdlib.h>

bool lacks_encoder(const struct codec *codec, const struct format *format)
{
    char text[256];
    codec_describe(codec, text, sizeof text);
    return format == AVIF && strstr(text, "writes AV1 by nothing") != NULL;
}

const struct codec *row_of(const struct format *format, bool writes, size_t i)
{
    size_t count;
    const struct codec *table = codecs(&count);
    for (size_t k = 0; k < count; k++)
        if (codec_is_built_in(&table[k]) &&
            (writes ? codec_writes(&table[k], format) && !lacks_encoder(&table[k], format)
                    : codec_reads(&table[k], format)) &&
            i-- == 0)
            return &table[k];
    return NULL;
}

struct codec_settings settings_of(const struct codec *codec)
{
    return (struct codec_settings){.codec = codec, .quality = CODEC_QUALITY, .compression = CODEC_COMPRESSION};
}

void put(struct buffer *buffer, const void *bytes, size_t size)
{
    assert_true(buffer->size + size <= sizeof buffer->bytes);
    if (size > 0)
        memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
}

void put8(struct buffer *buffer, unsigned value)
{
    const uint8_t byte = (uint8_t)value;
    put(buffer, &byte, 1);
}

void put16(struct buffer *buffer, unsigned value)
{
    put8(buffer, value >> 8);
    put8(buffer, value);
}

void put32(struct buffer *buffer, uint32_t value)
{
    put16(buffer, value >> 16);
    put16(buffer, value);
}

void put_chunk(struct buffer *png, const char *type, const void *data, size_t size)
{
    put32(png, (uint32_t)size);
    const size_t start = png->size;
    put(png, type, 4);
    put(png, data, size);
    put32(png, libdeflate_crc32(0, png->bytes + start, png->size - start));
}

void put_segment(struct buffer *jpeg, unsigned marker, const void *data, size_t size)
{
    put16(jpeg, 0xff00 | marker);
    put16(jpeg, (unsigned)size + 2);
    put(jpeg, data, size);
}

unsigned kind_sample(const struct kind *kind, unsigned x, unsigned y, unsigned c)
{
    return (x * 7349 + y * 2741 + c * 12289 + x * y) & ((1u << kind->bits) - 1);
}

unsigned palette_sample(unsigned i, unsigned c)
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

/* The rows of a pass: pixels at x0, x0 + dx, ... of rows y0, y0 + dy, ..., each row after its filter's number. The rows
 * take all filters, one after another. */
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

void make_png(struct buffer *png, const struct kind *kind, unsigned width, unsigned height)
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

void make_progressive(struct buffer *jpeg)
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

unsigned sample_of(const struct image *image, size_t i)
{
    uint16_t deep;
    if (image->bits == 8)
        return image->samples[i];
    memcpy(&deep, image->samples + 2 * i, sizeof deep);
    return deep;
}

unsigned with_bits(unsigned value, int from, int to)
{
    return from == to ? value : to == 16 ? value * 257 : (2 * value * 255 + 65535) / (2 * 65535);
}

struct image make_image(int width, int height, int channels, int bits, bool smooth)
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

void check_back(const struct image *image, const struct format *format, const struct codec *writer,
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
    assert_int_equal(info.bits, format->max_bits > 8 ? image->bits : 8);
    assert_int_equal(back.width, image->width);
    assert_int_equal(back.height, image->height);
    assert_int_equal(back.channels, as_colour ? 3 + image_has_alpha(image) : image->channels);
    for (size_t p = 0; p < (size_t)(image->width * image->height); p++)
        for (size_t c = 0; c < (size_t)back.channels; c++) {
            const size_t from = channels > 2 ? c : image_has_alpha(image) && c == (size_t)back.channels - 1;
            const unsigned sample = sample_of(image, p * channels + from);
            const int a = (int)with_bits(sample, image->bits, back.bits);
            const int b = (int)sample_of(&back, p * (size_t)back.channels + c);
            if (abs(a - b) > (format == JPEG ? 4 : format == AVIF && back.bits == 16 ? 8 : 0)) /* 12 bits */
                fail_msg("%s, %s, %d channels, pixel %zu, channel %zu: %d became %d", writer->name, reader->name,
                         image->channels, p, c, a, b);
        }
    image_free(&back);
    image_free(&composed);
}

void check_all_back(const struct image *image, const struct format *format, const struct codec *writer,
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

void decode_copy(const struct codec *codec, const uint8_t *bytes, size_t size, int expected, const struct image *same,
                 const char *what, size_t at)
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

void cut_and_flip(const struct codec *codec, const uint8_t *bytes, size_t size, int flipped, const struct image *same,
                  size_t harmless, size_t end)
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
