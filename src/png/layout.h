/* SPDX-License-Identifier: MIT
 *
 * What the chunks of a PNG say about its rows, for decoders that make samples of them. */
#ifndef GPUCONV_PNG_LAYOUT_H
#define GPUCONV_PNG_LAYOUT_H

#include "base/inline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The rows are not interlaced. */
struct png_layout {
    int width, height;
    int channels, bits;         /* as in the file: the index of a palette is one channel */
    bool paletted, transparent; /* transparent: KEY is transparent, or the palette has alpha */
    uint8_t palette[256][4];    /* red, green, blue, alpha */
    unsigned key[3];
};

/* Bytes of a row, without the number of its filter. */
static inline HOST_DEVICE size_t png_layout_row(const struct png_layout *layout)
{
    return ((size_t)layout->width * (size_t)(layout->channels * layout->bits) + 7) / 8;
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

#endif
