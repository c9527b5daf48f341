/* SPDX-License-Identifier: MIT
 *
 * The codec `libdeflate`, reading. The whole picture of a PNG is inflated at once into one block. Its row filters are
 * undone there, and then the block holds the samples. */
#include "codec/codec_internal.h"

#include "codec/png_filter.h"
#include "container/png.h"
#include "container/zlib.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

/* The contents of a file, apart from the samples. */
struct png_picture {
    size_t width, height, channels;         /* as in the file: the index of a palette is one channel */
    unsigned bits;                          /* of a sample */
    bool interlaced, paletted, transparent; /* transparent: KEY is transparent, or the palette has alpha */
    uint8_t palette[PNG_PALETTE_MOST][4];   /* red, green, blue, alpha */
    unsigned key[3];
    const uint8_t *stream; /* the data of all IDAT chunks: a zlib stream */
    size_t stream_size;
    uint8_t *joined; /* a copy of a stream in several chunks, or NULL; release it with free */
};

/* The pixels of one pass over an interlaced picture, or all pixels of another picture. */
struct pass {
    size_t x, y;           /* of the first pixel */
    size_t step_x, step_y; /* from one pixel to the next */
    size_t width, height, row_bytes;
};

/* ---- Chunks ---- */

/* Colours that the palette lacks are opaque black, as in libpng. */
static void read_palette(const struct png_chunk *chunk, struct png_picture *picture)
{
    for (size_t i = 0; i < PNG_PALETTE_MOST; i++)
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

/* Join the data of all IDAT chunks in a copy. The first of them begins at AT. Returns false if there is not enough
 * memory. */
static bool join_stream(const struct codec_input *input, size_t at, struct png_picture *picture)
{
    struct png_walk walk = {.bytes = input->bytes, .size = input->size, .at = at};
    struct png_chunk chunk;
    uint8_t *to = malloc(picture->stream_size + 1); /* chunks may be empty */
    if (to == NULL)
        return false;
    picture->stream = picture->joined = to;
    for (; png_walk_next(&walk, &chunk) == PNG_STEP_CHUNK && png_chunk_is(&chunk, "IDAT"); to += chunk.size)
        memcpy(to, chunk.data, chunk.size);
    return true;
}

/* Read the chunks up to the last IDAT. Returns false if there is not enough memory. */
static bool read_chunks(const struct codec_input *input, struct png_picture *picture)
{
    const struct png_header header = png_file_header(input->bytes);
    struct png_walk walk = png_walk_begin(input->bytes, input->size);
    struct png_chunk chunk;
    size_t first = 0, first_size = 0;
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
            if (picture->stream == NULL) {
                picture->stream = chunk.data;
                first = chunk.at;
                first_size = chunk.size;
            }
            picture->stream_size += chunk.size;
        } else if (picture->stream != NULL) {
            break;
        }
    }
    return picture->stream_size == first_size || join_stream(input, first, picture);
}

/* ---- Rows ---- */

/* List the passes of the picture. Returns the bytes of all passes, with one byte more in front of each row. */
static size_t list_passes(const struct png_picture *picture, struct pass passes[7], int *count)
{
    /* Adam7: the first pixel's x and y, and the steps. */
    static const uint8_t adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                        {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    size_t size = 0;
    *count = 0;
    for (int i = 0; i < (picture->interlaced ? 7 : 1); i++) {
        struct pass pass = {.step_x = 1, .step_y = 1};
        if (picture->interlaced)
            pass = (struct pass){.x = adam7[i][0], .y = adam7[i][1], .step_x = adam7[i][2], .step_y = adam7[i][3]};
        if (picture->width <= pass.x || picture->height <= pass.y)
            continue;
        pass.width = (picture->width - pass.x - 1) / pass.step_x + 1;
        pass.height = (picture->height - pass.y - 1) / pass.step_y + 1;
        pass.row_bytes = (pass.width * picture->channels * picture->bits + 7) / 8;
        size += pass.height * (pass.row_bytes + 1);
        passes[(*count)++] = pass;
    }
    return size;
}

/* Inflate SIZE bytes, or up to SPARE more: some writers add a few bytes, and all readers ignore them. Returns NULL with
 * a reason, or without one if there is not enough memory. */
static uint8_t *inflate_rows(const struct png_picture *picture, size_t size, size_t spare, const char **reason)
{
    size_t used = 0;
    uint8_t *raw = malloc(size + spare);
    *reason = NULL;
    if (raw == NULL)
        return NULL;
    switch (zlib_inflate(picture->stream, picture->stream_size, raw, size + spare, &used)) {
    case ZLIB_DONE:
        if (used >= size)
            return raw;
        *reason = "it ends before the last row";
        break;
    case ZLIB_NO_MEMORY:
        break;
    case ZLIB_UNKNOWN:
        *reason = "its compression is unknown";
        break;
    case ZLIB_DAMAGED:
        *reason = "its compression or checksum is damaged";
        break;
    case ZLIB_TOO_LARGE:
        *reason = "it goes on after the last row";
        break;
    }
    free(raw);
    return NULL;
}

/* Undo the row filters of a pass at RAW. The rows move together: the bytes in front of them go. */
static bool unfilter_pass(const struct png_picture *picture, const struct pass *pass, uint8_t *raw)
{
    const size_t bits = picture->channels * picture->bits, size = pass->row_bytes;
    for (size_t y = 0; y < pass->height; y++) {
        const unsigned filter = raw[y * (size + 1)];
        uint8_t *row = raw + y * size;
        memmove(row, raw + y * (size + 1) + 1, size);
        if (!png_unfilter(filter, row, y > 0 ? row - size : NULL, size, bits > 8 ? bits / 8 : 1))
            return false;
    }
    return true;
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

static void expand_palette(const struct png_picture *picture, const uint8_t *row, size_t count, uint8_t *out,
                           size_t step)
{
    for (size_t x = 0; x < count; x++, out += step)
        memcpy(out, picture->palette[read_sample(row, x, picture->bits)], picture->transparent ? 4 : 3);
}

/* With a constant number of bits, the compiler turns expand_pixels into plain loops. */
static void expand_row(const struct png_picture *picture, const uint8_t *row, size_t count, uint8_t *out, size_t step)
{
    if (picture->paletted)
        expand_palette(picture, row, count, out, step);
    else if (picture->bits == 8)
        expand_pixels(picture, row, count, 8, out, step);
    else if (picture->bits == 16)
        expand_pixels(picture, row, count, 16, out, step);
    else
        expand_pixels(picture, row, count, picture->bits, out, step);
}

/* Swap COUNT samples of 16 bits from a PNG's byte order, the upper byte first, to the machine's. */
static void swap_to_machine(void *samples, size_t count)
{
    uint16_t *all = samples;
    for (size_t i = 0; i < count; i++)
        all[i] = be16toh(all[i]);
}

/* Copy the pixels of all passes to their places in IMAGE. RAW has no row filters any more. */
static void expand_passes(const struct png_picture *picture, const struct pass *passes, int count, const uint8_t *raw,
                          struct image *image)
{
    const size_t pixel = image_pixel_bytes(image);
    for (int i = 0; i < count; i++) {
        const struct pass *pass = &passes[i];
        for (size_t y = 0; y < pass->height; y++)
            expand_row(picture, raw + y * pass->row_bytes, pass->width,
                       image->samples + ((pass->y + y * pass->step_y) * picture->width + pass->x) * pixel,
                       pass->step_x * pixel);
        raw += pass->height * (pass->row_bytes + 1);
    }
}

/* Make IMAGE, whose shape is set, from the inflated rows at RAW. This function takes ownership of RAW: if the rows
 * already are the samples, the block becomes the image's own. */
static bool make_image(const struct codec_input *input, const struct png_picture *picture, const struct pass *passes,
                       int count, uint8_t *raw, struct image *image, struct error *error)
{
    uint8_t *at = raw;
    for (int i = 0; i < count; i++) {
        if (!unfilter_pass(picture, &passes[i], at)) {
            free(raw);
            return codec_report_damaged(input, "unknown row filter", error);
        }
        at += passes[i].height * (passes[i].row_bytes + 1);
    }
    if (!picture->interlaced && !picture->paletted && !picture->transparent && picture->bits >= 8) {
        if (picture->bits == 16)
            swap_to_machine(raw, image_samples(image));
        image->samples = raw;
        return true;
    }
    const bool done = image_allocate(image, image->width, image->height, image->channels, image->bits, error);
    if (done)
        expand_passes(picture, passes, count, raw, image);
    free(raw);
    return done;
}

/* Read the chunks of INPUT into PICTURE, list its passes, and inflate its rows. Release the rows with free. NULL is an
 * error. */
static uint8_t *read_rows(const struct codec_input *input, struct png_picture *picture, struct pass passes[7],
                          int *count, struct error *error)
{
    enum { SPARE_BYTES = 1 << 16 }; /* besides a row; a stream with more bytes is damaged */
    const char *reason = NULL;
    uint8_t *raw = NULL;
    if (read_chunks(input, picture)) {
        const size_t size = list_passes(picture, passes, count);
        raw = inflate_rows(picture, size, passes[0].row_bytes + SPARE_BYTES, &reason);
        free(picture->joined);
    }
    if (raw == NULL && reason != NULL)
        codec_report_damaged(input, reason, error);
    else if (raw == NULL)
        codec_report_decode_memory(input, error);
    return raw;
}

bool png_check_rows(const struct codec_input *input, struct error *error)
{
    struct pass passes[7] = {{0}};
    struct png_picture picture;
    int count;
    uint8_t *raw = read_rows(input, &picture, passes, &count, error);
    free(raw);
    return raw != NULL;
}

bool png_decode(const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    struct image made = {.width = info->width, .height = info->height, .channels = info->channels, .bits = info->bits};
    struct pass passes[7] = {{0}};
    struct png_picture picture;
    int count;
    uint8_t *raw = read_rows(input, &picture, passes, &count, error);
    if (raw == NULL || !make_image(input, &picture, passes, count, raw, &made, error))
        return false;
    *image = made;
    return true;
}
