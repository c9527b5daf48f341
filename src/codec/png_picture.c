/* SPDX-License-Identifier: MIT */
#include "codec/png_picture.h"

#include <string.h>

/* ---- Chunks ---- */

/* Colours that the palette lacks are opaque black, as in libpng. */
static void read_png_palette(const struct png_chunk *chunk, struct png_layout *layout)
{
    for (size_t i = 0; i < PNG_PALETTE_MAX; i++)
        layout->palette[i][3] = 255;
    for (size_t i = 0; i < chunk->size / 3; i++)
        memcpy(layout->palette[i], chunk->data + 3 * i, 3);
}

static void read_transparency(const struct png_chunk *chunk, struct png_layout *layout)
{
    layout->transparent = true;
    for (size_t i = 0; layout->paletted && i < chunk->size; i++)
        layout->palette[i][3] = chunk->data[i];
    for (size_t i = 0; !layout->paletted && i < (size_t)layout->channels; i++)
        layout->key[i] = big16(chunk->data + 2 * i) & ((1u << layout->bits) - 1);
}

void png_picture_read(const struct codec_input *input, struct png_picture *picture)
{
    const struct png_header header = png_file_header(input->bytes);
    struct png_layout *layout = &picture->layout;
    struct png_stream *stream = &picture->stream;
    struct png_walk walk = png_walk_begin(input->bytes, input->size);
    struct png_chunk chunk;
    *picture = (struct png_picture){.interlaced = header.interlace != 0};
    layout->width = (int)header.width;
    layout->height = (int)header.height;
    layout->channels = header.colour & PNG_COLOUR && !(header.colour & PNG_PALETTE) ? 3 : 1;
    layout->channels += header.colour & PNG_ALPHA ? 1 : 0;
    layout->bits = (int)header.bits;
    layout->paletted = header.colour & PNG_PALETTE;
    while (png_walk_next(&walk, &chunk) == PNG_STEP_CHUNK) {
        if (png_chunk_is(&chunk, "PLTE")) {
            read_png_palette(&chunk, layout);
        } else if (png_chunk_is(&chunk, "tRNS")) {
            read_transparency(&chunk, layout);
        } else if (png_chunk_is(&chunk, "IDAT")) {
            if (stream->chunks == NULL)
                stream->chunks = chunk.head;
            stream->size += chunk.size;
        } else if (stream->chunks != NULL) {
            break;
        }
    }
}

/* ---- Samples ---- */

/* Convert a row of COUNT pixels to samples of 8 or 16 bits with all channels. Pixels are STEP bytes apart. */
static inline void expand_pixels(const struct png_layout *layout, const uint8_t *row, size_t count, unsigned bits,
                                 size_t channels, uint8_t *out, size_t step)
{
    for (size_t x = 0; x < count; x++, out += step)
        png_expand_pixel(layout, row, x, bits, channels, out);
}

static inline void expand_palette(const struct png_layout *layout, const uint8_t *row, size_t count, unsigned bits,
                                  uint8_t *out, size_t step)
{
    if (layout->transparent)
        for (size_t x = 0; x < count; x++, out += step)
            memcpy(out, png_find_colour(layout, row, x, bits), 4);
    else
        for (size_t x = 0; x < count; x++, out += step)
            memcpy(out, png_find_colour(layout, row, x, bits), 3);
}

/* With a constant number of bits and channels, the compiler makes plain loops. */
static inline void expand(const struct png_layout *layout, const uint8_t *row, size_t count, unsigned bits,
                          uint8_t *out, size_t step)
{
    if (layout->paletted)
        expand_palette(layout, row, count, bits, out, step);
    else if (layout->channels == 1)
        expand_pixels(layout, row, count, bits, 1, out, step);
    else if (layout->channels == 3)
        expand_pixels(layout, row, count, bits, 3, out, step);
    else
        expand_pixels(layout, row, count, bits, (size_t)layout->channels, out, step);
}

/* Convert a row of COUNT pixels. */
static void expand_row(const struct png_layout *layout, const uint8_t *row, size_t count, uint8_t *out, size_t step)
{
    const size_t channels = (size_t)layout->channels;
    if (layout->bits == 16 && !layout->transparent && step == 2 * channels)
        bytes_swap_big16(row, count * channels, out);
    else if (layout->bits == 16)
        expand(layout, row, count, 16, out, step);
    else if (layout->bits == 8)
        expand(layout, row, count, 8, out, step);
    else if (layout->bits == 4)
        expand(layout, row, count, 4, out, step);
    else if (layout->bits == 2)
        expand(layout, row, count, 2, out, step);
    else
        expand(layout, row, count, 1, out, step);
}

bool png_filters_are_known(const uint8_t *raw, size_t rows, size_t raw_bytes)
{
    for (size_t y = 0; y < rows; y++)
        if (raw[y * raw_bytes] >= PNG_FILTERS)
            return false;
    return true;
}

void png_make_samples(const struct png_layout *layout, const uint8_t *raw, size_t rows, size_t width, uint8_t *scratch,
                      struct png_samples to)
{
    const size_t size = png_row_bytes(layout, width), pixel = (size_t)png_layout_pixel(layout);
    const bool plain = layout->bits == 8 && !layout->paletted && !layout->transparent && to.stride == size;
    uint8_t *above = scratch, *scratch_row = scratch + size, *some = scratch + 2 * size;
    for (size_t done; rows > 0; rows -= done) {
        done = plain || rows < PNG_ROWS ? rows : PNG_ROWS;
        uint8_t *produced = plain ? to.first : some;
        png_unfilter(raw, done, above, size, pixel, produced, scratch_row);
        for (size_t y = 0; y < done && !plain; y++)
            expand_row(layout, produced + y * size, width, to.first + y * to.stride, to.step);
        memcpy(above, produced + (done - 1) * size, size);
        raw += done * (size + 1);
        to.first += done * to.stride;
    }
}
