/* SPDX-License-Identifier: MIT
 *
 * Deflate (RFC 1951) and the rows of PNG, on all cores. png_gpu.h does this on a GPU. Other folders use only these two
 * headers. nvcc reads this file.
 *
 * To decode, inflate the stream of a file, on one thread or in parts on several. Then undo the filters of the rows, and
 * make samples of them. To encode, filter the rows of a band, and deflate it. Bands do not depend on each other, and
 * together they are one stream. The caller knows the file around it. */
#ifndef GPUCONV_PNG_PNG_H
#define GPUCONV_PNG_PNG_H

#include "base/inline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- Rows ---- */

/* What the chunks of a PNG say about its rows. */
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

/* ---- Deflating bands of rows: rules.h defines the bytes ---- */

/* The bytes of a band at most, unless one row has more. A band and the compressor's memory fit into the second cache of
 * a processor. A band is large enough that starting anew with each one costs the compressor nothing. */
enum { PNG_BAND_BYTES = 1 << 19 };

/* The rows of each band but the last of a picture with HEIGHT rows. A row has ROW_BYTES bytes, and one in front. */
static inline int png_band_rows(size_t row_bytes, int height)
{
    const size_t fitting = row_bytes < PNG_BAND_BYTES ? PNG_BAND_BYTES / (row_bytes + 1) : 1;
    return fitting < (size_t)height ? (int)fitting : height;
}

#ifdef __cplusplus
extern "C" {
#endif

/* The scratch memory of a thread, about 460 KB. It keeps nothing from one band to the next. */
struct deflate_workspace;

/* A workspace for the standard or the fast level. Release it with free. It is NULL if there is not enough memory. */
struct deflate_workspace *deflate_workspace_new(bool is_fast);

/* An upper bound of the compressed size of a band of SIZE bytes. */
size_t deflate_bound(size_t size);

/* Bytes that the fast level may have written beyond the block before it stores it: 12 bits a byte, and the codes. */
enum { DEFLATE_FAST_EXTRA = 292 << 10 };

/* Compress a band of 1 byte to 1 GiB to OUT, which can hold deflate_bound(SIZE) bytes, and DEFLATE_FAST_EXTRA more on
 * the fast level. Returns the compressed size. The data end at a whole byte, so that the next band can follow; the
 * LAST band ends the stream. The result depends only on the band. */
size_t deflate_band(struct deflate_workspace *workspace, const uint8_t *bytes, size_t size, size_t pixel, bool last,
                    uint8_t *out);

/* Write a band in the same way, without compression. */
size_t deflate_store(const uint8_t *bytes, size_t size, bool last, uint8_t *out);

/* ---- Filters ----
 *
 * A filter replaces a row by its difference from a prediction, which compresses better. These functions know only rows
 * of bytes. */

/* Bytes of the largest pixel: four samples of 16 bits. */
enum { PNG_PIXEL_MAX = 8 };

/* The numbers of the filters. */
enum { PNG_NONE, PNG_SUB, PNG_UP, PNG_AVERAGE, PNG_PAETH, PNG_FILTERS };

/* For the choice of a filter, larger differences count as much: the code of a rare byte is hardly longer than others.
 * Limits of 7, 15 and 20 make most files smaller yet, but some larger than no limit does. */
enum { PNG_DIFFERENCE_MAX = 31 };

/* Bytes of a group. On the fast level only one group in four counts for the choice, the first group included. */
enum { PNG_FAST_BYTES = 64 };

enum { PNG_ROWS = 8 }; /* that are undone at once, which is faster than one by one */

/* Filter ROW with the filter whose sum of magnitudes of differences is smallest; each counts at most
 * PNG_DIFFERENCE_MAX. The first of several such filters is taken. ABOVE is the row above, or zeros for the first row.
 * Both rows have SIZE bytes. Write the filter's number and the filtered row to OUT, 1 + SIZE bytes. A pixel has PIXEL
 * bytes. WORKSPACE has the loops of the instruction set. */
void png_filter(const struct deflate_workspace *workspace, const uint8_t *row, const uint8_t *above, size_t size,
                size_t pixel, uint8_t *out);

/* Some columns of rows: the bytes from FIRST on, before LAST, of rows with SIZE bytes. A pixel has PIXEL bytes, and
 * FIRST and LAST are multiples of that. */
struct png_columns {
    size_t size, pixel, first, last;
};

/* Do what png_unfilter does for some columns only. The columns to the left must already be undone, in the rows and in
 * ABOVE. RAW, ABOVE and OUT are whole rows. SCRATCH_ROW has a byte for each of these columns. */
void png_unfilter_columns(const uint8_t *raw, size_t rows, const uint8_t *above, const struct png_columns *columns,
                          uint8_t *out, uint8_t *scratch_row);

/* Undo the filters of ROWS rows at RAW, each SIZE bytes after the number of its filter, which is below PNG_FILTERS.
 * Write them to OUT, without the numbers. A pixel has 1, 2, 3, 4, 6 or 8 bytes. ABOVE is the row above the first, or
 * zeros. SCRATCH_ROW has SIZE bytes. */
void png_unfilter(const uint8_t *raw, size_t rows, const uint8_t *above, size_t size, size_t pixel, uint8_t *out,
                  uint8_t *scratch_row);

/* ---- Inflating on one thread: the stream comes in pieces, which are copied to a buffer ---- */

/* Copies the next bytes of a stream to OUT. Returns their number: SIZE, or fewer at the end of the stream. */
typedef size_t inflate_read(void *context, uint8_t *out, size_t size);

struct inflate_stream;

/* Begin with a stream. READ is called with CONTEXT. Release the result with free. It is NULL if there is not enough
 * memory. */
struct inflate_stream *inflate_stream_open(inflate_read *read, void *context);

/* Bytes of memory. */
size_t inflate_stream_need(void);

/* Inflate the next SIZE bytes to OUT. Returns how many there are: fewer at the end, or before a damaged position. */
size_t inflate_stream_next(struct inflate_stream *stream, uint8_t *out, size_t size);

/* Copy the SIZE bytes that follow the last block to OUT. Returns false if the stream has not ended, or if there are
 * fewer. */
bool inflate_stream_end(struct inflate_stream *stream, uint8_t *out, size_t size);

/* ---- Inflating on several threads ----
 *
 * The stream is cut into parts. One thread asks for the bytes from the first to the last, and the others help. The
 * bytes never depend on the number of threads, or on their speed. */

/* How a stream is cut. */
struct inflate_cut {
    size_t part;    /* bytes of a part of the stream */
    size_t symbols; /* that are decoded of a part at most, before its bytes are asked for */
    int slots;      /* parts that are in memory */
};

/* The usual cut of a stream of SIZE bytes, which inflates to about BYTES bytes, for THREADS threads. */
struct inflate_cut inflate_usual_cut(size_t size, size_t bytes, int threads);

/* Bytes of memory at most. */
size_t inflate_parts_need(const struct inflate_cut *cut);

struct inflate_parts;

/* Begin with the SIZE bytes of a stream. They must outlive the result. Release it with inflate_parts_free. It is NULL
 * if there is not enough memory. */
struct inflate_parts *inflate_parts_open(const uint8_t *stream, size_t size, const struct inflate_cut *cut);

/* Inflate the next SIZE bytes to OUT. Returns how many there are: fewer at the end, or before a damaged position. */
size_t inflate_parts_next(struct inflate_parts *parts, uint8_t *out, size_t size);

/* Do a piece of the work, on any thread, while others do the same or ask for bytes. Returns false if there is none
 * now. There may be some when the others return. */
bool inflate_parts_help(struct inflate_parts *parts);

/* The byte of the stream after its last block. It is 0 while more bytes come, and if the stream is damaged. */
size_t inflate_parts_end(struct inflate_parts *parts);

/* Release the parts. NULL is allowed. */
void inflate_parts_free(struct inflate_parts *parts);

#ifdef __cplusplus
}
#endif

#endif
