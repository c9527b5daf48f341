/* SPDX-License-Identifier: MIT
 *
 * What the chunks of a PNG say about its rows, for decoders that make samples of them. */
#ifndef GPUCONV_PNG_LAYOUT_H
#define GPUCONV_PNG_LAYOUT_H

#include "base/inline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct png_layout {
    int width, height;
    int channels, bits;         /* as in the file: the index of a palette is one channel */
    bool paletted, transparent; /* transparent: KEY is transparent, or the palette has alpha */
    uint8_t palette[256][4];    /* red, green, blue, alpha */
    unsigned key[3];
};

/* Bytes of a row of WIDTH pixels, without the number of its filter. */
static inline HOST_DEVICE size_t png_row_bytes(const struct png_layout *layout, size_t width)
{
    return (width * (size_t)(layout->channels * layout->bits) + 7) / 8;
}

/* Bytes between a byte of a row and that of the pixel before. */
static inline HOST_DEVICE int png_layout_pixel(const struct png_layout *layout)
{
    const int bits = layout->channels * layout->bits;
    return bits > 8 ? bits / 8 : 1;
}

/* Channels of the decoded image. Its samples have 16 bits if those of the file have, else 8. */
static inline HOST_DEVICE int png_layout_channels(const struct png_layout *layout)
{
    return layout->paletted ? (layout->transparent ? 4 : 3) : layout->channels + layout->transparent;
}

/* Sample number I of a row of samples of BITS bits. */
static inline HOST_DEVICE unsigned png_read_sample(const uint8_t *row, size_t i, unsigned bits)
{
    if (bits == 8)
        return row[i];
    if (bits == 16)
        return (unsigned)row[2 * i] << 8 | row[2 * i + 1];
    return (unsigned)row[i * bits / 8] >> (8 - bits - i * bits % 8) & ((1u << bits) - 1);
}

/* Set sample number I of a pixel. If BITS is 16, PIXEL is aligned to 2 bytes. */
static inline HOST_DEVICE void png_write_sample(uint8_t *pixel, size_t i, unsigned bits, unsigned value)
{
    const uint16_t wide = (uint16_t)value;
    if (bits == 16)
        memcpy(__builtin_assume_aligned(pixel + 2 * i, sizeof wide), &wide, sizeof wide);
    else
        pixel[i] = (uint8_t)value; /* 65535 becomes 255 */
}

/* Make pixel X of a row without a palette. BITS and CHANNELS are the layout's: constants make plain loops. */
static inline HOST_DEVICE void png_expand_pixel(const struct png_layout *layout, const uint8_t *row, size_t x,
                                                unsigned bits, size_t channels, uint8_t *pixel)
{
    const unsigned scale = bits < 8 ? 255 / ((1u << bits) - 1) : 1;
    bool is_key = true;
    for (size_t c = 0; c < channels; c++) {
        const unsigned sample = png_read_sample(row, x * channels + c, bits);
        is_key = is_key && sample == layout->key[c < 3 ? c : 0];
        png_write_sample(pixel, c, bits, sample * scale);
    }
    if (layout->transparent)
        png_write_sample(pixel, channels, bits, is_key ? 0 : 65535);
}

/* The colour of pixel X of a row with a palette. */
static inline HOST_DEVICE const uint8_t *png_find_colour(const struct png_layout *layout, const uint8_t *row, size_t x,
                                                         unsigned bits)
{
    return layout->palette[png_read_sample(row, x, bits)];
}

#endif
