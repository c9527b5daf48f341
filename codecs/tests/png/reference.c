/* SPDX-License-Identifier: MIT
 *
 * PNG on the CPU, by png/png.h, with libdeflate for checksums, and for the streams of other levels. */
#include "check.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

/* ---- Encoding ---- */

static void append(struct blob *out, const void *bytes, size_t size)
{
    if (!blob_append(out, bytes, size))
        fail("no memory");
}

/* Filter all rows of PICTURE to OUT, or leave them as they are if WORKSPACE is NULL. */
static void filter_rows(const struct picture *picture, const struct deflate_workspace *workspace, uint8_t *out)
{
    const struct png_layout *layout = &picture->layout;
    const size_t size = png_row_bytes(layout, (size_t)layout->width), padded = PNG_PIXEL_MAX + size;
    uint8_t *const bytes = allocate(2 * padded), *above = bytes + PNG_PIXEL_MAX, *row = above + padded;
    memset(bytes, 0, 2 * padded);
    for (int y = 0; y < layout->height; y++, out += 1 + size) {
        const uint8_t *const samples = picture->samples + (size_t)y * size;
        if (layout->bits == 16)
            bytes_swap_big16(samples, size / 2, row);
        else
            memcpy(row, samples, size);
        if (workspace != NULL) {
            png_filter(workspace, row, above, size, (size_t)png_layout_pixel(layout), out);
        } else {
            out[0] = PNG_NONE;
            memcpy(out + 1, row, size);
        }
        uint8_t *const next = above;
        above = row;
        row = next;
    }
    free(bytes);
}

/* Compress the filtered rows in bands. */
static void deflate_rows(const struct png_layout *layout, const uint8_t *rows, struct deflate_workspace *workspace,
                         struct blob *data)
{
    const size_t row = 1 + png_row_bytes(layout, (size_t)layout->width);
    const int band_rows = png_band_rows(row - 1, layout->height);
    uint8_t *const out = allocate(deflate_bound((size_t)band_rows * row) + DEFLATE_FAST_EXTRA);
    for (int y = 0; y < layout->height; y += band_rows) {
        const bool is_last = layout->height - y <= band_rows;
        const size_t size = (size_t)(is_last ? layout->height - y : band_rows) * row;
        const uint8_t *const band = rows + (size_t)y * row;
        append(data, out,
               workspace == NULL ? deflate_store(band, size, is_last, out)
                                 : deflate_band(workspace, band, size, (size_t)png_layout_pixel(layout), is_last, out));
    }
    free(out);
}

/* Replace DATA if libdeflate makes fewer bytes of the filtered rows. */
static void compress_again(const uint8_t *rows, size_t size, int level, struct blob *data)
{
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    uint8_t *const again = allocate(data->size);
    if (compressor == NULL)
        fail("no memory");
    const size_t used = libdeflate_deflate_compress(compressor, rows, size, again, data->size - 1);
    if (used > 0) {
        memcpy(data->bytes, again, used);
        data->size = used;
    }
    libdeflate_free_compressor(compressor);
    free(again);
}

void reference_encode(const struct picture *picture, int level, struct blob *data, uint32_t *adler)
{
    const struct png_layout *layout = &picture->layout;
    const size_t size = (size_t)layout->height * (1 + png_row_bytes(layout, (size_t)layout->width));
    struct deflate_workspace *workspace = level == LEVEL_STORED ? NULL : deflate_workspace_new(level == LEVEL_FAST);
    uint8_t *const rows = allocate(size);
    filter_rows(picture, workspace, rows);
    deflate_rows(layout, rows, workspace, data);
    if (level > LEVEL_FAST)
        compress_again(rows, size, level, data);
    *adler = libdeflate_adler32(1, rows, size);
    free(rows);
    free(workspace);
}

void wrap_zlib(const struct blob *data, int window_bits, uint32_t adler, struct blob *stream)
{
    const unsigned method = 8 | (unsigned)(window_bits - 8) << 4;
    const uint8_t head[] = {(uint8_t)method, (uint8_t)(31 - (method << 8) % 31)};
    uint8_t tail[4];
    put_big32(tail, adler);
    append(stream, head, sizeof head);
    append(stream, data->bytes, data->size);
    append(stream, tail, sizeof tail);
}

/* ---- Decoding ---- */

uint8_t *reference_inflate(const struct blob *stream, size_t size)
{
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    uint8_t *rows = allocate(size);
    if (decompressor == NULL)
        fail("no memory");
    if (libdeflate_zlib_decompress(decompressor, stream->bytes, stream->size, rows, size, NULL) != LIBDEFLATE_SUCCESS) {
        free(rows);
        rows = NULL;
    }
    libdeflate_free_decompressor(decompressor);
    return rows;
}

/* Make the samples of a row without its filter. */
static void expand_row(const struct png_layout *layout, const uint8_t *row, uint8_t *out)
{
    const unsigned bits = (unsigned)layout->bits;
    const size_t channels = (size_t)png_layout_channels(layout), pixel = bits == 16 ? 2 * channels : channels;
    for (size_t x = 0; x < (size_t)layout->width; x++, out += pixel)
        if (layout->paletted)
            memcpy(out, png_find_colour(layout, row, x, bits), pixel);
        else
            png_expand_pixel(layout, row, x, bits, (size_t)layout->channels, out);
}

uint8_t *reference_decode(const struct blob *stream, const struct png_layout *layout)
{
    const size_t rows = (size_t)layout->height, size = png_row_bytes(layout, (size_t)layout->width);
    uint8_t *const raw = reference_inflate(stream, rows * (1 + size));
    bool is_good = raw != NULL;
    for (size_t y = 0; is_good && y < rows; y++)
        is_good = raw[y * (1 + size)] < PNG_FILTERS;
    uint8_t *samples = NULL;
    if (is_good) {
        uint8_t *const bytes = allocate((rows + 2) * size), *const scratch_row = bytes + rows * size;
        uint8_t *const above = scratch_row + size;
        memset(above, 0, size);
        png_unfilter(raw, rows, above, size, (size_t)png_layout_pixel(layout), bytes, scratch_row);
        samples = allocate(picture_bytes(layout));
        for (size_t y = 0; y < rows; y++)
            expand_row(layout, bytes + y * size, samples + y * (picture_bytes(layout) / rows));
        free(bytes);
    }
    free(raw);
    return samples;
}
