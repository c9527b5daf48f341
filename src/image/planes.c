/* SPDX-License-Identifier: MIT
 *
 * Planes on the host: lay them out, split an image into them, and merge them again. On a device,
 * kernels/device/planes.cu does the same and gives the same bytes. */
#include "base/clones.h"
#include "base/round.h"
#include "image/image.h"
#include "image/linear.h"

#include <stdlib.h>
#include <string.h>

enum {
    ROW_ALIGNMENT = 64, /* bytes that rows of planes are aligned to: a cache line, and the widest vector of a CPU */
    ROW_PIXELS = 1024,  /* narrow rows are joined, and split and merged as one row of at most this number of pixels */
};

/* ---- Layout ---- */

bool plane_layout(struct plane *plane, enum sample sample, int width, int height, int count, size_t *size,
                  struct error *error)
{
    *plane = (struct plane){.sample = sample, .width = width, .height = height, .count = count};
    if (width < 1 || height < 1 || count < 1)
        return error_set(error, ERROR_WORK, "there are no planes of %d x %d samples, %d of them", width, height, count);
    plane->row_bytes = (size_t)width * sample_bytes(sample);
    if (plane->row_bytes > ROW_ALIGNMENT) /* padding would be most of a narrow plane */
        plane->row_bytes = round_up(plane->row_bytes, ROW_ALIGNMENT);
    if (__builtin_mul_overflow(plane->row_bytes, (size_t)height, &plane->plane_bytes) ||
        __builtin_mul_overflow(plane->plane_bytes, (size_t)count, size) || *size > PTRDIFF_MAX)
        return error_no_memory(error, "%d planes of %d x %d samples", count, width, height);
    *size = round_up(*size, ROW_ALIGNMENT);
    return true;
}

bool plane_allocate(struct plane *plane, enum sample sample, int width, int height, int count, struct error *error)
{
    size_t size;
    if (!plane_layout(plane, sample, width, height, count, &size, error))
        return false;
    plane->data = aligned_alloc(ROW_ALIGNMENT, size);
    return plane->data != NULL || error_no_memory(error, "%d planes of %d x %d samples", count, width, height);
}

void plane_free(struct plane *plane)
{
    free(plane->data);
    *plane = (struct plane){0};
}

/* ---- Rows ---- */

/* Row 0 of planes of SAMPLE_U16. */
static uint16_t *plane_row16(const struct plane *planes, int c)
{
    return plane_row(planes, c, 0);
}

/* Take the rows of IMAGE and PLANES from Y on as one row. They are several if they lie one after the other and are
 * narrow. Returns their number. */
static int join_rows(const struct image *image, const struct plane *planes, int y, struct image *row,
                     struct plane *row_planes)
{
    const bool joined = planes->row_bytes == (size_t)image->width * sample_bytes(planes->sample) &&
                        image_row_stride(image) == (size_t)image->width * image_pixel_stride(image);
    const int left = image->height - y, wanted = joined ? ROW_PIXELS / image->width : 1;
    const int rows = wanted < 1 ? 1 : wanted < left ? wanted : left;
    *row = image_rows(image, y, 1);
    row->width *= rows;
    *row_planes = *planes;
    row_planes->data = plane_row(planes, 0, y);
    return rows;
}

/* The number of the alpha channel that multiplies the colours, or -1. */
static int multiplying_alpha(const struct image *image, enum alpha alpha)
{
    return alpha_multiplies(alpha) && image_has_alpha(image) ? image->channels - 1 : -1;
}

/* The number of the alpha channel that divides them, or -1. */
static int dividing_alpha(const struct image *image, enum alpha alpha)
{
    return alpha != ALPHA_BLACK ? multiplying_alpha(image, alpha) : -1;
}

/* Samples from one pixel of the image to the next. */
static size_t pixel_step(const struct image *image)
{
    return image_pixel_stride(image) / image_sample_bytes(image);
}

/* The first sample of channel C. */
static uint8_t *channel_of(const struct image *image, int c)
{
    return image->samples + (size_t)c * image_channel_stride(image);
}

/* Are planes of 16 bits of the image in the unit of HEADROOM_WHITE? */
static bool has_headroom(const struct image *image, enum alpha alpha, const struct linear *linear)
{
    return alpha == ALPHA_HEADROOM && image_has_alpha(image) && image_sample_bytes(image) == 1 && linear == NULL;
}

/* Rows of 3 channels at once, as loops that the compiler can vectorise. */
CLONES(split_3, (const uint8_t *restrict in, int width, uint8_t *restrict a, uint8_t *restrict b, uint8_t *restrict c),
       (in, width, a, b, c))
{
    for (int x = 0; x < width; x++) {
        a[x] = in[3 * x];
        b[x] = in[3 * x + 1];
        c[x] = in[3 * x + 2];
    }
}

CLONES(merge_3,
       (const uint8_t *restrict a, const uint8_t *restrict b, const uint8_t *restrict c, int width,
        uint8_t *restrict out),
       (a, b, c, width, out))
{
    for (int x = 0; x < width; x++) {
        out[3 * x] = a[x];
        out[3 * x + 1] = b[x];
        out[3 * x + 2] = c[x];
    }
}

CLONES(split_headroom,
       (const uint8_t *restrict in, int width, uint16_t *restrict a, uint16_t *restrict b, uint16_t *restrict c,
        uint16_t *restrict alphas),
       (in, width, a, b, c, alphas))
{
    for (int x = 0; x < width; x++) {
        const unsigned alpha = in[4 * x + 3];
        a[x] = premultiply_headroom(in[4 * x], alpha);
        b[x] = premultiply_headroom(in[4 * x + 1], alpha);
        c[x] = premultiply_headroom(in[4 * x + 2], alpha);
        alphas[x] = (uint16_t)(alpha * HEADROOM_UNIT);
    }
}

/* Do the bytes of the image's pixels lie one after the other, and do PLANES have COUNT of COUNT channels? */
static bool is_plain(const struct image *image, const struct plane *planes, int count)
{
    return image->channels == count && planes->count == count && pixel_step(image) == (size_t)count &&
           image_channel_stride(image) == 1;
}

/* ---- Planes of 16 bits ---- */

/* Copy one channel of a row of the image to ROW, through TABLES unless these are NULL. IN is its first sample. */
static void split_channel16(const struct image *image, const uint8_t *in, const struct linear_tables *tables,
                            uint16_t *row)
{
    const size_t width = (size_t)image->width, step = pixel_step(image);
    const uint16_t *samples = (const uint16_t *)(const void *)in;
    if (image_sample_bytes(image) == 1)
        for (size_t x = 0; x < width; x++)
            row[x] = tables != NULL ? tables->from8[in[x * step]] : widen_sample(in[x * step]);
    else if (tables != NULL)
        for (size_t x = 0; x < width; x++)
            row[x] = tables->from16[samples[x * step]];
    else if (step == 1)
        memcpy(row, samples, width * sizeof *row);
    else
        for (size_t x = 0; x < width; x++)
            row[x] = samples[x * step];
}

/* Copy ROW, divided by ALPHAS unless that is NULL, to one channel of a row of the image, through TABLES unless these
 * are NULL. OUT is its first sample. */
static void merge_channel16(const struct image *image, const uint16_t *row, const uint16_t *alphas,
                            const struct linear_tables *tables, uint8_t *out)
{
    uint16_t *samples = (uint16_t *)(void *)out;
    const size_t step = pixel_step(image);
    size_t i = 0;
    for (int x = 0; x < image->width; x++, i += step) {
        const uint16_t value = alphas != NULL ? unpremultiply_sample16(row[x], alphas[x]) : row[x];
        if (image_sample_bytes(image) == 1)
            out[i] = tables != NULL ? linear_to8(tables, value, out[i]) : reduce_sample(value);
        else
            samples[i] = tables != NULL ? linear_to16(tables, value, samples[i]) : value;
    }
}

/* Is channel C of the image a colour, not alpha? */
static bool is_colour_channel(const struct image *image, int c)
{
    return !image_has_alpha(image) || c < image->channels - 1;
}

/* Multiply ROW, colour C of a row of the image, by alpha. */
static void multiply_row16(const struct image *image, int c, enum alpha alpha, const struct linear *linear,
                           uint16_t *row)
{
    const size_t width = (size_t)image->width, step = pixel_step(image);
    const uint8_t *in = channel_of(image, c), *alphas = channel_of(image, image->channels - 1);
    const uint16_t *alphas16 = (const uint16_t *)(const void *)alphas;
    if (image_sample_bytes(image) > 1)
        for (size_t x = 0; x < width; x++)
            row[x] = premultiply_sample16(row[x], alphas16[x * step]);
    else if (linear != NULL)
        for (size_t x = 0; x < width; x++)
            row[x] = premultiply_sample16(row[x], widen_sample(alphas[x * step]));
    else
        for (size_t x = 0; x < width; x++)
            row[x] = multiply_alpha(alpha == ALPHA_PILLOW ? ALPHA_BLACK : alpha, in[x * step], alphas[x * step]);
}

static void split_16(const struct image *image, enum alpha alpha, const struct linear *linear,
                     const struct plane *planes)
{
    const bool multiplies = multiplying_alpha(image, alpha) >= 0, headroom = has_headroom(image, alpha, linear);
    const size_t width = (size_t)image->width, step = pixel_step(image);
    if (headroom && is_plain(image, planes, 4)) {
        split_headroom(image->samples, image->width, plane_row16(planes, 0), plane_row16(planes, 1),
                       plane_row16(planes, 2), plane_row16(planes, 3));
        return;
    }
    for (int c = 0; c < planes->count; c++) {
        uint16_t *row = plane_row16(planes, c);
        const bool colour = is_colour_channel(image, c);
        const uint8_t *in = channel_of(image, c);
        split_channel16(image, in, colour ? linear_of(linear, c) : NULL, row);
        if (colour && multiplies)
            multiply_row16(image, c, alpha, linear, row);
        for (size_t x = 0; !colour && headroom && x < width; x++)
            row[x] = (uint16_t)(in[x * step] * HEADROOM_UNIT);
    }
}

/* Copy ROW with headroom, divided by ALPHAS unless it is these, to one channel of a row of the image. */
static void merge_headroom(const struct image *image, const uint16_t *row, const uint16_t *alphas, uint8_t *out)
{
    const size_t width = (size_t)image->width, step = pixel_step(image);
    for (size_t x = 0; x < width; x++)
        out[x * step] = row != alphas ? (uint8_t)unpremultiply_sample(row[x], alphas[x]) : reduce_headroom(row[x]);
}

/* Copy ROW, premultiplied levels of 8 bits that are widened, to one channel of a row of the image. */
static void merge_pillow(const struct image *image, const uint16_t *row, const uint16_t *alphas, uint8_t *out)
{
    const size_t width = (size_t)image->width, step = pixel_step(image);
    for (size_t x = 0; x < width; x++)
        out[x * step] = (uint8_t)pillow_unpremultiply(reduce_sample(row[x]), reduce_sample(alphas[x]));
}

static void merge_16(const struct plane *planes, enum alpha alpha, const struct linear *linear, struct image *image)
{
    const int alpha_channel = dividing_alpha(image, alpha);
    const bool headroom = has_headroom(image, alpha, linear);
    for (int c = 0; c < planes->count; c++) {
        const bool colour = is_colour_channel(image, c);
        const uint16_t *row = plane_row16(planes, c);
        const uint16_t *alphas = alpha_channel >= 0 ? plane_row16(planes, alpha_channel) : NULL;
        if (headroom)
            merge_headroom(image, row, alphas, channel_of(image, c));
        else if (alpha == ALPHA_PILLOW && colour && alphas != NULL)
            merge_pillow(image, row, alphas, channel_of(image, c));
        else
            merge_channel16(image, row, colour ? alphas : NULL, colour ? linear_of(linear, c) : NULL,
                            channel_of(image, c));
    }
}

/* ---- Planes of 8 bits ---- */

static void split_8(const struct image *image, enum alpha alpha, const struct plane *planes)
{
    const size_t width = (size_t)image->width, step = pixel_step(image);
    const int alpha_channel = multiplying_alpha(image, alpha);
    if (is_plain(image, planes, 3)) {
        split_3(image->samples, image->width, plane_row(planes, 0, 0), plane_row(planes, 1, 0),
                plane_row(planes, 2, 0));
        return;
    }
    const uint8_t *alphas = alpha_channel < 0 ? NULL : channel_of(image, alpha_channel);
    for (int c = 0; c < planes->count; c++) {
        uint8_t *row = plane_row(planes, c, 0);
        const uint8_t *in = channel_of(image, c);
        if (alpha_channel >= 0 && c != alpha_channel)
            for (size_t x = 0; x < width; x++)
                row[x] = (uint8_t)premultiply_sample(in[x * step], alphas[x * step]);
        else if (step == 1)
            memcpy(row, in, width);
        else
            for (size_t x = 0; x < width; x++)
                row[x] = in[x * step];
    }
}

static void merge_8(const struct plane *planes, enum alpha alpha, struct image *image)
{
    const size_t width = (size_t)image->width, step = pixel_step(image);
    const int alpha_channel = dividing_alpha(image, alpha);
    if (is_plain(image, planes, 3)) {
        merge_3(plane_row(planes, 0, 0), plane_row(planes, 1, 0), plane_row(planes, 2, 0), image->width,
                image->samples);
        return;
    }
    const uint8_t *alphas = alpha_channel < 0 ? NULL : plane_row(planes, alpha_channel, 0);
    for (int c = 0; c < planes->count; c++) {
        const uint8_t *row = plane_row(planes, c, 0);
        uint8_t *out = channel_of(image, c);
        if (alpha_channel >= 0 && c != alpha_channel)
            for (size_t x = 0; x < width; x++)
                out[x * step] = (uint8_t)(alpha == ALPHA_PILLOW ? pillow_unpremultiply(row[x], alphas[x])
                                                                : unpremultiply_sample(row[x], alphas[x]));
        else if (step == 1)
            memcpy(out, row, width);
        else
            for (size_t x = 0; x < width; x++)
                out[x * step] = row[x];
    }
}

/* ---- Planes of floats ---- */

static void split_float(const struct image *image, enum alpha alpha, const struct plane *planes)
{
    const size_t width = (size_t)image->width, step = pixel_step(image);
    const int alpha_channel = multiplying_alpha(image, alpha);
    const float *alphas = alpha_channel < 0 ? NULL : (const float *)(const void *)channel_of(image, alpha_channel);
    for (int c = 0; c < planes->count; c++) {
        float *row = plane_row(planes, c, 0);
        const float *in = (const float *)(const void *)channel_of(image, c);
        for (size_t x = 0; x < width; x++)
            row[x] = in[x * step];
        for (size_t x = 0; alphas != NULL && c != alpha_channel && x < width; x++)
            row[x] *= alphas[x * step];
    }
}

static void merge_float(const struct plane *planes, enum alpha alpha, struct image *image)
{
    const size_t width = (size_t)image->width, step = pixel_step(image);
    const int alpha_channel = dividing_alpha(image, alpha);
    const float *alphas = alpha_channel < 0 ? NULL : plane_row(planes, alpha_channel, 0);
    for (int c = 0; c < planes->count; c++) {
        const float *row = plane_row(planes, c, 0);
        float *out = (float *)(void *)channel_of(image, c);
        if (alphas != NULL && c != alpha_channel)
            for (size_t x = 0; x < width; x++)
                out[x * step] = alphas[x] > 0 ? row[x] / alphas[x] : 0;
        else
            for (size_t x = 0; x < width; x++)
                out[x * step] = row[x];
    }
}

/* ---- Split and merge ---- */

void image_split(const struct image *image, enum alpha alpha, const struct linear *linear, const struct plane *planes)
{
    struct image row;
    struct plane to;
    for (int y = 0; y < image->height;) {
        y += join_rows(image, planes, y, &row, &to);
        if (planes->sample == SAMPLE_U16)
            split_16(&row, alpha, linear, &to);
        else if (planes->sample == SAMPLE_F32)
            split_float(&row, alpha, &to);
        else
            split_8(&row, alpha, &to);
    }
}

void image_merge(const struct plane *planes, enum alpha alpha, const struct linear *linear, struct image *image)
{
    struct image row;
    struct plane from;
    for (int y = 0; y < image->height;) {
        y += join_rows(image, planes, y, &row, &from);
        if (planes->sample == SAMPLE_U16)
            merge_16(&from, alpha, linear, &row);
        else if (planes->sample == SAMPLE_F32)
            merge_float(&from, alpha, &row);
        else
            merge_8(&from, alpha, &row);
    }
}
