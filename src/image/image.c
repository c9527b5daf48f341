/* SPDX-License-Identifier: MIT */
#include "image/image.h"

#include "base/bytes.h"
#include "base/clones.h"

#include <stdlib.h>
#include <string.h>

int image_planes(const struct image *image, enum alpha alpha)
{
    return image->channels - (image_has_alpha(image) && (alpha == ALPHA_KEEP || alpha == ALPHA_BLACK));
}

bool image_is_opaque(const struct image *image)
{
    const size_t step = (size_t)image->channels, count = image_samples(image);
    unsigned min = 65535;
    if (!image_has_alpha(image))
        return true;
    if (image_sample_bytes(image) == 1) {
        const uint8_t *samples = image->samples;
        for (size_t i = step - 1; i < count; i += step)
            min = samples[i] < min ? samples[i] : min;
        return min == 255;
    }
    const uint16_t *samples = image_samples16(image);
    for (size_t i = step - 1; i < count; i += step)
        min = samples[i] < min ? samples[i] : min;
    return min == 65535;
}

bool image_allocate(struct image *image, int width, int height, int channels, int bits, struct error *error)
{
    size_t size;
    *image = (struct image){.width = width, .height = height, .channels = channels, .bits = bits};
    if (width < 1 || height < 1 || channels < 1 || channels > 4)
        return error_set(error, ERROR_WORK, "there is no image of %d x %d pixels and %d channels", width, height,
                         channels);
    if (!__builtin_mul_overflow((size_t)width * (size_t)height, image_pixel_bytes(image), &size) && size <= PTRDIFF_MAX)
        image->samples = bytes_allocate(size);
    if (image->samples == NULL)
        return error_no_memory(error, "an image of %d x %d pixels and %d channels", width, height, channels);
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

CLONES static void widen(const uint8_t *restrict in, size_t count, uint16_t *restrict out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = widen_sample(in[i]);
}

CLONES static void reduce(const uint16_t *restrict in, size_t count, uint8_t *restrict out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = reduce_sample(in[i]);
}

void image_convert_samples(const struct image *from, const struct image *to)
{
    if (from->bits == to->bits)
        memcpy(to->samples, from->samples, image_bytes(from));
    else if (to->bits > from->bits)
        widen(from->samples, image_samples(from), image_samples16(to));
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

/* ---- Composing ---- */

int image_composed_channels(int channels, const uint8_t rgb[3])
{
    const bool is_grey = rgb[0] == rgb[1] && rgb[1] == rgb[2];
    return channels < 3 && is_grey ? 1 : 3;
}

/* One channel of COUNT pixels: every STEP samples one colour, and ALPHA; every WIDE samples one result. */
CLONES static void compose8(const uint8_t *restrict colour, const uint8_t *restrict alpha, size_t step, size_t count,
                            uint8_t ground, uint8_t *restrict out, size_t wide)
{
    for (size_t i = 0; i < count; i++)
        out[i * wide] = (uint8_t)compose_sample(colour[i * step], alpha[i * step], ground, 255);
}

CLONES static void compose16(const uint16_t *restrict colour, const uint16_t *restrict alpha, size_t step, size_t count,
                             uint16_t ground, uint16_t *restrict out, size_t wide)
{
    for (size_t i = 0; i < count; i++)
        out[i * wide] = (uint16_t)compose_sample(colour[i * step], alpha[i * step], ground, 65535);
}

/* Repeat each of COUNT samples of SIZE bytes as red, green and blue. */
static void repeat(const uint8_t *in, size_t count, size_t size, uint8_t *out)
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
        repeat(image->samples, count, image_sample_bytes(image), composed->samples);
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
