/* SPDX-License-Identifier: MIT */
#include "codec/png_picture.h"

#include <string.h>

/* ---- Chunks ---- */

/* Colours that the palette lacks are opaque black, as in libpng. */
static void read_palette(const struct png_chunk *chunk, struct png_picture *picture)
{
    for (size_t i = 0; i < PNG_PALETTE_MAX; i++)
        picture->palette[i][3] = 255;
    for (size_t i = 0; i < chunk->size / 3; i++)
        memcpy(picture->palette[i], chunk->data + 3 * i, 3);
}

static void read_transparency(const struct png_chunk *chunk, struct png_picture *picture)
{
    picture->transparent = true;
    for (size_t i = 0; picture->paletted && i < chunk->size; i++)
        picture->palette[i][3] = chunk->data[i];
    for (size_t i = 0; !picture->paletted && i < picture->channels; i++)
        picture->key[i] = big16(chunk->data + 2 * i) & ((1u << picture->bits) - 1);
}

void png_picture_read(const struct codec_input *input, struct png_picture *picture)
{
    const struct png_header header = png_file_header(input->bytes);
    struct png_walk walk = png_walk_begin(input->bytes, input->size);
    struct png_chunk chunk;
    *picture = (struct png_picture){
        .width = header.width,
        .height = header.height,
        .channels = header.colour & PNG_COLOUR && !(header.colour & PNG_PALETTE) ? 3 : 1,
        .bits = header.bits,
        .interlaced = header.interlace != 0,
        .paletted = header.colour & PNG_PALETTE,
    };
    picture->channels += header.colour & PNG_ALPHA ? 1 : 0;
    while (png_walk_next(&walk, &chunk) == PNG_STEP_CHUNK) {
        if (png_chunk_is(&chunk, "PLTE")) {
            read_palette(&chunk, picture);
        } else if (png_chunk_is(&chunk, "tRNS")) {
            read_transparency(&chunk, picture);
        } else if (png_chunk_is(&chunk, "IDAT")) {
            if (picture->stream == 0)
                picture->stream = chunk.at;
            picture->stream_size += chunk.size;
        } else if (picture->stream != 0) {
            break;
        }
    }
}

/* ---- Errors ---- */

bool png_inflate_report(const struct codec_input *input, enum zlib_result result, struct error *error)
{
    static const char *const reasons[] = {
        [ZLIB_DONE] = "it ends before the last row",
        [ZLIB_UNKNOWN] = "its compression is unknown",
        [ZLIB_DAMAGED] = "its compression or checksum is damaged",
        [ZLIB_TOO_LARGE] = "it continues after the last row",
    };
    if (result == ZLIB_NO_MEMORY)
        return error_no_memory(error, "the decoder");
    return codec_report_damaged(input, reasons[result], error);
}

/* ---- Samples ---- */

/* Sample number I of a row. */
static inline unsigned read_sample(const uint8_t *row, size_t i, unsigned bits)
{
    if (bits == 8)
        return row[i];
    if (bits == 16)
        return (unsigned)row[2 * i] << 8 | row[2 * i + 1];
    return (unsigned)row[i * bits / 8] >> (8 - bits - i * bits % 8) & ((1u << bits) - 1);
}

/* Set sample number I of a pixel. IS_16_BIT: a sample has 16 bits, else 8. */
static inline void write_sample(uint8_t *pixel, size_t i, bool is_16_bit, unsigned value)
{
    const uint16_t wide = (uint16_t)value;
    if (is_16_bit)
        memcpy(pixel + 2 * i, &wide, sizeof wide);
    else
        pixel[i] = (uint8_t)value; /* 65535 becomes 255 */
}

/* Convert a row of COUNT pixels to samples of 8 or 16 bits with all channels. Pixels are STEP bytes apart. */
static inline void expand_pixels(const struct png_picture *picture, const uint8_t *row, size_t count, unsigned bits,
                                 uint8_t *out, size_t step)
{
    const unsigned scale = bits < 8 ? 255 / ((1u << bits) - 1) : 1;
    const size_t channels = picture->channels;
    const bool is_16_bit = bits == 16;
    for (size_t x = 0; x < count; x++, out += step) {
        bool key = true;
        for (size_t c = 0; c < channels; c++) {
            const unsigned sample = read_sample(row, x * channels + c, bits);
            key = key && sample == picture->key[c < 3 ? c : 0];
            write_sample(out, c, is_16_bit, sample * scale);
        }
        if (picture->transparent)
            write_sample(out, channels, is_16_bit, key ? 0 : 65535);
    }
}

static inline void expand_palette(const struct png_picture *picture, const uint8_t *row, size_t count, unsigned bits,
                                  uint8_t *out, size_t step)
{
    if (picture->transparent)
        for (size_t x = 0; x < count; x++, out += step)
            memcpy(out, picture->palette[read_sample(row, x, bits)], 4);
    else
        for (size_t x = 0; x < count; x++, out += step)
            memcpy(out, picture->palette[read_sample(row, x, bits)], 3);
}

/* Convert a row of COUNT pixels. With a constant number of bits, the compiler makes plain loops. */
static void expand_row(const struct png_picture *picture, const uint8_t *row, size_t count, uint8_t *out, size_t step)
{
    const size_t channels = picture->channels;
    if (picture->paletted && picture->bits == 8)
        expand_palette(picture, row, count, 8, out, step);
    else if (picture->paletted)
        expand_palette(picture, row, count, picture->bits, out, step);
    else if (picture->bits == 8)
        expand_pixels(picture, row, count, 8, out, step);
    else if (picture->bits == 16 && !picture->transparent && step == 2 * channels)
        bytes_swap_big16(row, count * channels, out);
    else if (picture->bits == 16)
        expand_pixels(picture, row, count, 16, out, step);
    else
        expand_pixels(picture, row, count, picture->bits, out, step);
}

bool png_filters_are_known(const uint8_t *raw, size_t rows, size_t raw_bytes)
{
    for (size_t y = 0; y < rows; y++)
        if (raw[y * raw_bytes] >= PNG_FILTERS)
            return false;
    return true;
}

void png_make_samples(const struct png_picture *picture, const uint8_t *raw, size_t rows, size_t width,
                      uint8_t *scratch, uint8_t *out, size_t step, size_t stride)
{
    const size_t size = png_row_bytes(picture, width), bits = picture->channels * picture->bits;
    const size_t pixel = bits > 8 ? bits / 8 : 1;
    const bool plain = picture->bits == 8 && !picture->paletted && !picture->transparent && stride == size;
    uint8_t *above = scratch, *waste = scratch + size, *some = scratch + 2 * size;
    for (size_t done; rows > 0; rows -= done) {
        done = plain || rows < PNG_ROWS ? rows : PNG_ROWS;
        uint8_t *produced = plain ? out : some;
        png_unfilter(raw, done, above, size, pixel, produced, waste);
        for (size_t y = 0; y < done && !plain; y++)
            expand_row(picture, produced + y * size, width, out + y * stride, step);
        memcpy(above, produced + (done - 1) * size, size);
        raw += done * (size + 1);
        out += done * stride;
    }
}
