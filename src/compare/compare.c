/* SPDX-License-Identifier: MIT
 *
 * How two images differ, and a picture of that. */
#include "compare/compare.h"

#include <math.h>
#include <string.h>

/* The absolute difference of sample number I of two images of one shape. */
static int sample_difference(const struct image *a, const struct image *b, size_t i)
{
    const int p = image_sample_bytes(a) == 1 ? a->samples[i] : image_samples16(a)[i];
    const int q = image_sample_bytes(b) == 1 ? b->samples[i] : image_samples16(b)[i];
    return p < q ? q - p : p - q;
}

static bool same_shape(const struct image *a, const struct image *b)
{
    return a->width == b->width && a->height == b->height && a->channels == b->channels && a->bits == b->bits;
}

void compare_images(const struct image *expected, const struct image *actual, struct difference *difference)
{
    const size_t channels = (size_t)expected->channels, row = (size_t)expected->width * channels;
    const double peak = image_sample_bytes(expected) == 1 ? 255 : 65535;
    uint64_t squares = 0; /* no overflow for up to 2^48 samples of 8 bits, or 2^32 of 16 */
    *difference = (struct difference){.first_x = -1, .first_y = -1, .first_channel = -1, .psnr = INFINITY};
    if (!same_shape(expected, actual))
        return;
    difference->same_shape = true;
    for (int y = 0; y < expected->height; y++) {
        if (memcmp(image_row(expected, y), image_row(actual, y), row * image_sample_bytes(expected)) == 0)
            continue;
        for (int x = 0; x < expected->width; x++) {
            bool differs = false;
            for (size_t c = 0; c < channels; c++) {
                const int d = sample_difference(expected, actual, (size_t)y * row + (size_t)x * channels + c);
                if (d == 0)
                    continue;
                if (difference->first_x < 0) {
                    difference->first_x = x;
                    difference->first_y = y;
                    difference->first_channel = (int)c;
                }
                differs = true;
                difference->largest = d > difference->largest ? d : difference->largest;
                squares += (uint64_t)d * (uint64_t)d;
            }
            difference->pixels += differs;
        }
    }
    if (squares > 0)
        difference->psnr = 10 * log10(peak * peak * (double)image_samples(expected) / (double)squares);
}

/* Set OUT to the COLOURS numbers that the picture shows at pixel number I, before they are scaled. Returns the largest
 * of these numbers. */
static int pixel_difference(const struct image *expected, const struct image *actual, size_t i, size_t colours,
                            int out[3])
{
    const size_t first = i * (size_t)expected->channels;
    int largest = 0;
    for (size_t c = 0; c < colours; c++) {
        out[c] = sample_difference(expected, actual, first + c);
        largest = out[c] > largest ? out[c] : largest;
    }
    if (largest == 0 && image_has_alpha(expected)) {
        largest = sample_difference(expected, actual, first + colours);
        for (size_t c = 0; c < colours; c++)
            out[c] = largest;
    }
    return largest;
}

bool difference_picture(const struct image *expected, const struct image *actual, struct image *picture,
                        struct error *error)
{
    const size_t colours = expected->channels >= 3 ? 3 : 1;
    const size_t pixels = (size_t)expected->width * (size_t)expected->height;
    int largest = 1, differences[3];
    *picture = (struct image){0};
    if (!same_shape(expected, actual))
        return error_set(
            error, ERROR_WORK,
            "images of different shapes (%d x %d, %d channels of %d bits; %d x %d, %d channels of %d bits) "
            "have no picture of their difference",
            expected->width, expected->height, expected->channels, expected->bits, actual->width, actual->height,
            actual->channels, actual->bits);
    if (!image_allocate(picture, expected->width, expected->height, (int)colours, 8, error))
        return false;

    for (size_t i = 0; i < pixels; i++) {
        const int most = pixel_difference(expected, actual, i, colours, differences);
        largest = most > largest ? most : largest;
    }
    for (size_t i = 0; i < pixels; i++) {
        pixel_difference(expected, actual, i, colours, differences);
        for (size_t c = 0; c < colours; c++)
            picture->samples[i * colours + c] = (uint8_t)((2 * differences[c] * 255 + largest) / (2 * largest));
    }
    return true;
}
