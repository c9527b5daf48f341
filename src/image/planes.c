/* SPDX-License-Identifier: MIT
 *
 * Planes on the host: lay them out, split an image into them, and merge them again. On a device, kernels/device/planes.cu
 * does the same and gives the same bytes. */
#include "base/clones.h"
#include "image/image.h"
#include "image/linear.h"

#include <stdlib.h>
#include <string.h>

/* Rows of planes on the host are padded to a cache line, which is also the widest vector of a CPU. */
enum { ROW_ALIGNMENT = 64 };

/* ---- Layout ---- */

static bool plane_too_large(int width, int height, int count, struct error *error)
{
    return error_set(error, ERROR_WORK, "there is not enough memory for %d planes of %d x %d samples", count, width,
                     height);
}

bool plane_layout(struct plane *plane, enum sample sample, int width, int height, int count, size_t *size,
                  struct error *error)
{
    *plane = (struct plane){.sample = sample, .width = width, .height = height, .count = count};
    if (width < 1 || height < 1 || count < 1)
        return error_set(error, ERROR_WORK, "there are no planes of %d x %d samples, %d of them", width, height, count);
    plane->row_bytes = ((size_t)width * sample_bytes(sample) + ROW_ALIGNMENT - 1) / ROW_ALIGNMENT * ROW_ALIGNMENT;
    if (__builtin_mul_overflow(plane->row_bytes, (size_t)height, &plane->plane_bytes) ||
        __builtin_mul_overflow(plane->plane_bytes, (size_t)count, size) || *size > PTRDIFF_MAX)
        return plane_too_large(width, height, count, error);
    return true;
}

bool plane_allocate(struct plane *plane, enum sample sample, int width, int height, int count, struct error *error)
{
    size_t size;
    if (!plane_layout(plane, sample, width, height, count, &size, error))
        return false;
    plane->data = aligned_alloc(ROW_ALIGNMENT, size);
    return plane->data || plane_too_large(width, height, count, error);
}

void plane_free(struct plane *plane)
{
    free(plane->data);
    *plane = (struct plane){0};
}

/* ---- Rows ---- */

/* plane_row, for planes of uint16_t. */
static uint16_t *plane_row16(const struct plane *planes, int c, int y)
{
    return plane_row(planes, c, y);
}

/* Which channel holds the alpha that the colours are multiplied by, or -1 for none. */
static int premultiplied_by(const struct image *image, enum alpha alpha)
{
    return alpha == ALPHA_PREMULTIPLY && image_has_alpha(image) ? image->channels - 1 : -1;
}

/* Rows of 3 channels at once, as loops that a compiler makes vectors of. */
CLONES static void split_3(const uint8_t *restrict in, int width, uint8_t *restrict a, uint8_t *restrict b,
                           uint8_t *restrict c)
{
    for (int x = 0; x < width; x++) {
        a[x] = in[3 * x];
        b[x] = in[3 * x + 1];
        c[x] = in[3 * x + 2];
    }
}

CLONES static void merge_3(const uint8_t *restrict a, const uint8_t *restrict b, const uint8_t *restrict c, int width,
                           uint8_t *restrict out)
{
    for (int x = 0; x < width; x++) {
        out[3 * x] = a[x];
        out[3 * x + 1] = b[x];
        out[3 * x + 2] = c[x];
    }
}

/* ---- Planes of 16 bits ---- */

/* The samples of one channel in a row of an image, from IN on, to ROW. */
static void load_channel(const struct image *image, const uint8_t *in, const struct linear *linear, uint16_t *row)
{
    const int width = image->width, step = image->channels;
    const uint16_t *deep = (const uint16_t *)(const void *)in;
    if (image_sample_bytes(image) == 1)
        for (int x = 0; x < width; x++)
            row[x] = linear ? linear->from8[in[x * step]] : widen_sample(in[x * step]);
    else
        for (int x = 0; x < width; x++)
            row[x] = linear ? linear->from16[deep[x * step]] : deep[x * step];
}

/* The way back: colours are divided by ALPHAS where these are not NULL. */
static void store_channel(const struct image *image, const uint16_t *row, const uint16_t *alphas,
                          const struct linear *linear, uint8_t *out)
{
    uint16_t *deep = (uint16_t *)(void *)out;
    for (int x = 0, i = 0; x < image->width; x++, i += image->channels) {
        const uint16_t value = alphas ? unpremultiply_sample16(row[x], alphas[x]) : row[x];
        if (image_sample_bytes(image) == 1)
            out[i] = linear ? linear->to8[value] : reduce_sample(value);
        else
            deep[i] = linear ? linear->to16[value] : value;
    }
}

/* Is channel C of the image a colour, and no alpha? */
static bool is_colour(const struct image *image, int c)
{
    return !image_has_alpha(image) || c < image->channels - 1;
}

static void split_16(const struct image *image, enum alpha alpha, const struct linear *linear,
                     const struct plane *planes)
{
    const int alpha_channel = premultiplied_by(image, alpha);
    for (int y = 0; y < image->height; y++)
        for (int c = planes->count - 1; c >= 0; c--) { /* alpha is the first */
            uint16_t *row = plane_row16(planes, c, y);
            const bool colour = is_colour(image, c);
            load_channel(image, image_row(image, y) + (size_t)c * image_sample_bytes(image), colour ? linear : NULL,
                         row);
            if (colour && alpha_channel >= 0) {
                const uint16_t *alphas = plane_row16(planes, alpha_channel, y);
                for (int x = 0; x < image->width; x++)
                    row[x] = premultiply_sample16(row[x], alphas[x]);
            }
        }
}

static void merge_16(const struct plane *planes, enum alpha alpha, const struct linear *linear, struct image *image)
{
    const int alpha_channel = premultiplied_by(image, alpha);
    for (int y = 0; y < image->height; y++)
        for (int c = 0; c < planes->count; c++) {
            const bool colour = is_colour(image, c);
            const uint16_t *alphas = colour && alpha_channel >= 0 ? plane_row16(planes, alpha_channel, y) : NULL;
            store_channel(image, plane_row16(planes, c, y), alphas, colour ? linear : NULL,
                          image_row(image, y) + (size_t)c * image_sample_bytes(image));
        }
}

/* ---- Split and merge ---- */

void image_split(const struct image *image, enum alpha alpha, const struct linear *linear, const struct plane *planes)
{
    const int channels = image->channels, alpha_channel = premultiplied_by(image, alpha);
    if (planes->sample == SAMPLE_U16) {
        split_16(image, alpha, linear, planes);
        return;
    }
    for (int y = 0; y < image->height; y++) {
        const uint8_t *samples = image_row(image, y);
        if (channels == 1 && planes->count == 1) {
            memcpy(plane_row(planes, 0, y), samples, (size_t)image->width);
            continue;
        }
        if (channels == 3 && planes->count == 3) {
            split_3(samples, image->width, plane_row(planes, 0, y), plane_row(planes, 1, y), plane_row(planes, 2, y));
            continue;
        }
        for (int c = 0; c < planes->count; c++) {
            uint8_t *row = plane_row(planes, c, y);
            const uint8_t *in = samples + c;
            if (alpha_channel < 0 || c == alpha_channel) {
                for (int x = 0; x < image->width; x++, in += channels)
                    row[x] = *in;
            } else {
                for (int x = 0; x < image->width; x++, in += channels)
                    row[x] = (uint8_t)premultiply_sample(*in, in[alpha_channel - c]);
            }
        }
    }
}

void image_merge(const struct plane *planes, enum alpha alpha, const struct linear *linear, struct image *image)
{
    const int channels = image->channels, alpha_channel = premultiplied_by(image, alpha);
    if (planes->sample == SAMPLE_U16) {
        merge_16(planes, alpha, linear, image);
        return;
    }
    for (int y = 0; y < image->height; y++) {
        uint8_t *samples = image_row(image, y);
        if (channels == 1 && planes->count == 1) {
            memcpy(samples, plane_row(planes, 0, y), (size_t)image->width);
            continue;
        }
        if (channels == 3 && planes->count == 3) {
            merge_3(plane_row(planes, 0, y), plane_row(planes, 1, y), plane_row(planes, 2, y), image->width, samples);
            continue;
        }
        const uint8_t *alphas = alpha_channel < 0 ? NULL : plane_row(planes, alpha_channel, y);
        for (int c = 0; c < planes->count; c++) {
            const uint8_t *row = plane_row(planes, c, y);
            uint8_t *out = samples + c;
            if (alpha_channel < 0 || c == alpha_channel) {
                for (int x = 0; x < image->width; x++, out += channels)
                    *out = row[x];
            } else {
                for (int x = 0; x < image->width; x++, out += channels)
                    *out = (uint8_t)unpremultiply_sample(row[x], alphas[x]);
            }
        }
    }
}
