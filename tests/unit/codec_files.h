/* SPDX-License-Identifier: MIT
 *
 * What the tests of codecs share: the rows of the table, files put together byte by byte, images, round trips, and
 * damage. */
#ifndef GPUCONV_TESTS_CODEC_FILES_H
#define GPUCONV_TESTS_CODEC_FILES_H

#include "codec/codec.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/lib/helpers.h"

#define PNG format_of(FORMAT_PNG)
#define JPEG format_of(FORMAT_JPEG)
#define WEBP format_of(FORMAT_WEBP)
#define AVIF format_of(FORMAT_AVIF)

/* Is libheif here without the plug-in that encodes AV1? */
bool lacks_encoder(const struct codec *codec, const struct format *format);

/* ---- The rows of the tables ---- */

/* Row number I of those that are built in and read, or write, FORMAT. NULL if there are fewer. */
const struct codec *row_of(const struct format *format, bool writes, size_t i);

#define EACH_READER(row, format)                                                                                       \
    size_t reader_ = 0;                                                                                                \
    for (const struct codec *row; (row = row_of(format, false, reader_)) != NULL; reader_++)
#define EACH_WRITER(row, format)                                                                                       \
    size_t writer_ = 0;                                                                                                \
    for (const struct codec *row; (row = row_of(format, true, writer_)) != NULL; writer_++)

/* The standard settings of CODEC, or of the automatic choice if it is NULL. */
struct codec_settings settings_of(const struct codec *codec);

/* ---- Bytes put together ---- */

struct buffer {
    uint8_t bytes[1 << 16];
    size_t size;
};

/* Append bytes, or a number of 8, 16 or 32 bits, the highest first. */
void put(struct buffer *buffer, const void *bytes, size_t size);
void put8(struct buffer *buffer, unsigned value);
void put16(struct buffer *buffer, unsigned value);
void put32(struct buffer *buffer, uint32_t value);

/* Append a chunk with its length and its CRC. */
void put_chunk(struct buffer *png, const char *type, const void *data, size_t size);

/* Append a JPEG's segment. */
void put_segment(struct buffer *jpeg, unsigned marker, const void *data, size_t size);

/* A kind of PNG. */
struct kind {
    unsigned colour, bits, channels;
    bool interlaced, transparent;
};

/* The sample of a kind at (x, y) in channel c: a value of `bits` bits. */
unsigned kind_sample(const struct kind *kind, unsigned x, unsigned y, unsigned c);

/* The palette: entry i is (i * 3, 255 - i, i * i), alpha 255 - 2 * i for the first 8. */
unsigned palette_sample(unsigned i, unsigned c);

/* A PNG of a kind. Its stream is in two IDAT chunks. */
void make_png(struct buffer *png, const struct kind *kind, unsigned width, unsigned height);

/* A progressive grey JPEG of 8 x 8 pixels whose one difference is 50: with a quantizer of 8, all are 128 + 50. */
void make_progressive(struct buffer *jpeg);

/* ---- Images ---- */

/* Sample number I of an image. */
unsigned sample_of(const struct image *image, size_t i);

/* A sample of FROM bits, converted to TO bits. */
unsigned with_bits(unsigned value, int from, int to);

/* Gradients if SMOOTH, else noise. Release with image_free. */
struct image make_image(int width, int height, int channels, int bits, bool smooth);

/* Decode with READER what WRITER made of IMAGE, and compare. */
void check_back(const struct image *image, const struct format *format, const struct codec *writer,
                const struct codec *reader, const uint8_t *bytes, size_t size);

/* Encode IMAGE with WRITER, and decode it with each reader. */
void check_all_back(const struct image *image, const struct format *format, const struct codec *writer,
                    const struct codec_settings *settings);

/* ---- Damage ---- */

/* Decode, and expect success or failure, or either if EXPECTED is -1. A decoded picture has the samples of SAME, unless
 * that is NULL. The bytes stand in a block of their own size, so that a sanitizer sees a read past their end. */
void decode_copy(const struct codec *codec, const uint8_t *bytes, size_t size, int expected, const struct image *same,
                 const char *what, size_t at);

/* Cut the file everywhere, and flip each bit. With a bit flipped, expect FLIPPED, and from HARMLESS to END the samples
 * of SAME. */
void cut_and_flip(const struct codec *codec, const uint8_t *bytes, size_t size, int flipped, const struct image *same,
                  size_t harmless, size_t end);

#endif
