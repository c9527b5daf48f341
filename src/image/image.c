/* SPDX-License-Identifier: MIT */
#include "image/image.h"

#include "base/bytes.h"
#include "base/clones.h"
#include "image/stored.h"

#include <stdlib.h>
#include <string.h>

int image_planes(const struct image *image, enum alpha alpha)
{
    return image->channels - (image_has_alpha(image) && (alpha == ALPHA_KEEP || alpha == ALPHA_BLACK));
}

bool image_is_opaque(const struct image *image)
{
    const bool is_8_bit = image_sample_bytes(image) == 1;
    const size_t step = image_pixel_stride(image), last = (size_t)(image->channels - 1) * image_channel_stride(image);
    unsigned min = 65535;
    if (!image_has_alpha(image))
        return true;
    for (int y = 0; y < image->height; y++) {
        const uint8_t *alphas = image_row(image, y) + last;
        if (is_8_bit)
            for (int x = 0; x < image->width; x++, alphas += step)
                min = *alphas < min ? *alphas : min;
        else
            for (int x = 0; x < image->width; x++, alphas += step) {
                const unsigned alpha = *(const uint16_t *)(const void *)alphas;
                min = alpha < min ? alpha : min;
            }
        if (min < (is_8_bit ? 255 : 65535))
            return false;
    }
    return true;
}

/* Copy a row of COUNT samples of SIZE bytes at distances FROM_STEP and TO_STEP in bytes. */
static void copy_strided(const uint8_t *from, size_t from_step, uint8_t *to, size_t to_step, int count, size_t size)
{
    if (from_step == size && to_step == size)
        memcpy(to, from, (size_t)count * size);
    else if (size == 1)
        for (int x = 0; x < count; x++, from += from_step, to += to_step)
            *to = *from;
    else if (size == sizeof(uint16_t))
        for (int x = 0; x < count; x++, from += from_step, to += to_step)
            memcpy(to, from, sizeof(uint16_t));
    else if (size == sizeof(float))
        for (int x = 0; x < count; x++, from += from_step, to += to_step)
            memcpy(to, from, sizeof(float));
    else
        for (int x = 0; x < count; x++, from += from_step, to += to_step)
            memcpy(to, from, sizeof(double));
}

/* Copy the samples of FROM to TO, one of which does not store floats as floats. */
static bool convert_stored(const struct image *from, const struct image *to)
{
    bool is_exact = true;
    for (int y = 0; y < from->height; y++)
        for (int c = 0; c < from->channels; c++) {
            const uint8_t *in = image_row(from, y) + (size_t)c * image_channel_stride(from);
            uint8_t *out = image_row(to, y) + (size_t)c * image_channel_stride(to);
            for (int x = 0; x < from->width; x++, in += image_pixel_stride(from), out += image_pixel_stride(to))
                stored_write(stored_value(in, from->stored, &is_exact), to->stored, out, &is_exact);
        }
    return is_exact;
}

bool image_copy(const struct image *from, const struct image *to)
{
    const bool is_packed = image_has_packed_rows(from) && image_has_packed_rows(to);
    if (from->stored != to->stored)
        return convert_stored(from, to);
    for (int y = 0; y < from->height; y++) {
        const uint8_t *in = image_row(from, y);
        uint8_t *out = image_row(to, y);
        if (is_packed)
            memcpy(out, in, image_row_bytes(from));
        for (int c = 0; !is_packed && c < from->channels; c++)
            copy_strided(in + (size_t)c * image_channel_stride(from), image_pixel_stride(from),
                         out + (size_t)c * image_channel_stride(to), image_pixel_stride(to), from->width,
                         image_sample_bytes(from));
    }
    return true;
}

void image_blend(const struct image *from, const uint16_t *levels, const struct image *to)
{
    for (int y = 0; y < from->height; y++, levels += from->width)
        for (int c = 0; c < from->channels; c++) {
            const uint8_t *in = image_row(from, y) + (size_t)c * image_channel_stride(from);
            uint8_t *out = image_row(to, y) + (size_t)c * image_channel_stride(to);
            for (int x = 0; x < from->width; x++, in += image_pixel_stride(from), out += image_pixel_stride(to)) {
                uint16_t *out16 = (uint16_t *)(void *)out;
                float *out_float = (float *)(void *)out;
                if (from->bits == 8)
                    *out = (uint8_t)blend_sample(*out, *in, levels[x]);
                else if (from->bits == 16)
                    *out16 = blend_sample(*out16, *(const uint16_t *)(const void *)in, levels[x]);
                else
                    *out_float = blend_float(*out_float, *(const float *)(const void *)in, levels[x]);
            }
        }
}

bool image_refuse(const struct image *image, struct error *error)
{
    return error_set(error, ERROR_USAGE,
                     image->stored == STORED_BOOL
                         ? "the result is not only True and False, so bool cannot store it; give the image as float32"
                         : "the input has samples that float32 cannot store; divide them");
}

bool image_allocate(struct image *image, int width, int height, int channels, int bits, struct error *error)
{
    size_t size;
    *image = (struct image){.width = width, .height = height, .channels = channels, .bits = bits};
    if (width < 1 || height < 1 || channels < 1 || channels > 4)
        return error_set(error, ERROR_WORK, "there is no image of %d x %d x %d samples", width, height, channels);
    if (!__builtin_mul_overflow((size_t)width * (size_t)height, image_pixel_bytes(image), &size) && size <= PTRDIFF_MAX)
        image->samples = bytes_allocate(size);
    if (image->samples == NULL)
        return error_no_memory(error, "an image of %d x %d x %d samples", width, height, channels);
    return true;
}

void image_free(struct image *image)
{
    free(image->samples);
    *image = (struct image){0};
}

const char *sample_name(enum sample sample)
{
    static const char *const names[SAMPLE_COUNT] = {
        [SAMPLE_U8] = "uint8", [SAMPLE_U16] = "uint16", [SAMPLE_F32] = "float"};
    return names[sample];
}

CLONES(widen_bytes, (const uint8_t *restrict in, size_t count, uint16_t *restrict out), (in, count, out))
{
    for (size_t i = 0; i < count; i++)
        out[i] = widen_sample(in[i]);
}

CLONES(reduce, (const uint16_t *restrict in, size_t count, uint8_t *restrict out), (in, count, out))
{
    for (size_t i = 0; i < count; i++)
        out[i] = reduce_sample(in[i]);
}

void image_convert_samples(const struct image *from, const struct image *to)
{
    if (from->bits == to->bits)
        memcpy(to->samples, from->samples, image_bytes(from));
    else if (to->bits > from->bits)
        widen_bytes(from->samples, image_samples(from), image_samples16(to));
    else
        reduce(image_samples16(from), image_samples(from), to->samples);
}

bool image_convert(const struct image *image, int bits, struct image *converted, struct error *error)
{
    if (!image_allocate(converted, image->width, image->height, image->channels, bits, error))
        return false;
    image_convert_samples(image, converted);
    return true;
}

bool image_widen(struct image *image, int channels, struct error *error)
{
    struct image wide;
    const size_t size = image_sample_bytes(image), step = image_pixel_bytes(image);
    const size_t colours = channels >= 3 ? 3 * size : size;
    if (channels == image->channels)
        return true;
    if (!image_allocate(&wide, image->width, image->height, channels, image->bits, error))
        return false;
    const uint8_t *from = image->samples, *end = wide.samples + image_bytes(&wide);
    for (uint8_t *to = wide.samples; to < end; to += image_pixel_bytes(&wide), from += step) {
        for (size_t i = 0; i < colours; i += size)
            memcpy(to + i, from + (image->channels >= 3 ? i : 0), size);
        if (image_has_alpha(image))
            memcpy(to + colours, from + step - size, size);
        else if (image_has_alpha(&wide))
            memset(to + colours, 0xff, size);
    }
    image_free(image);
    *image = wide;
    return true;
}

/* ---- Composing ---- */

int image_composed_channels(int channels, const uint8_t rgb[3])
{
    const bool is_grey = rgb[0] == rgb[1] && rgb[1] == rgb[2];
    return channels < 3 && is_grey ? 1 : 3;
}

/* One channel of COUNT pixels: every STEP samples one colour, and ALPHA; every WIDE samples one result. */
CLONES(compose8,
       (const uint8_t *restrict colour, const uint8_t *restrict alpha, size_t step, size_t count, uint8_t ground,
        uint8_t *restrict out, size_t wide),
       (colour, alpha, step, count, ground, out, wide))
{
    for (size_t i = 0; i < count; i++)
        out[i * wide] = (uint8_t)compose_sample(colour[i * step], alpha[i * step], ground, 255);
}

CLONES(compose16,
       (const uint16_t *restrict colour, const uint16_t *restrict alpha, size_t step, size_t count, uint16_t ground,
        uint16_t *restrict out, size_t wide),
       (colour, alpha, step, count, ground, out, wide))
{
    for (size_t i = 0; i < count; i++)
        out[i * wide] = (uint16_t)compose_sample(colour[i * step], alpha[i * step], ground, 65535);
}

/* Repeat each of COUNT samples of SIZE bytes as red, green and blue. */
static void repeat_as_rgb(const uint8_t *in, size_t count, size_t size, uint8_t *out)
{
    for (size_t i = 0; i < 3 * count; i++)
        memcpy(out + i * size, in + i / 3 * size, size);
}

bool image_compose(const struct image *image, const uint8_t rgb[3], int channels, struct image *composed,
                   struct error *error)
{
    const size_t step = (size_t)image->channels, wide = (size_t)channels;
    const size_t count = (size_t)image->width * (size_t)image->height;
    if (!image_allocate(composed, image->width, image->height, channels, image->bits, error))
        return false;
    if (!image_has_alpha(image)) {
        repeat_as_rgb(image->samples, count, image_sample_bytes(image), composed->samples);
        return true;
    }
    for (size_t c = 0; c < wide; c++) {
        const size_t from = step == 2 ? 0 : c;
        if (image->bits == 8)
            compose8(image->samples + from, image->samples + step - 1, step, count, rgb[c], composed->samples + c,
                     wide);
        else
            compose16(image_samples16(image) + from, image_samples16(image) + step - 1, step, count,
                      widen_sample(rgb[c]), image_samples16(composed) + c, wide);
    }
    return true;
}
