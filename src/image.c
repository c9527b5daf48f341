/* SPDX-License-Identifier: MIT
 *
 * Images and planes: reserve and release them, take an image apart into planes and put it together again, and say how
 * two images differ. The way between image and planes on a device is in kernels/planes.cu and gives the same bytes. */
#include "image.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the rows of planes on the host are padded to: a cache line, which is also the widest vector of a CPU. */
enum { ROW_ALIGNMENT = 64 };

#ifdef GPUCONV_CLONES /* instruction sets that a row's loops are compiled for besides; the loader chooses */
#define CLONES __attribute__((target_clones(GPUCONV_CLONES)))
#else
#define CLONES
#endif

int image_planes(const struct image *image, enum alpha alpha)
{
    return image->channels - (image_has_alpha(image) && alpha == ALPHA_KEEP);
}

bool image_allocate(struct image *image, int width, int height, int channels, struct error *error)
{
    size_t size;

    *image = (struct image){.width = width, .height = height, .channels = channels};
    if (width < 1 || height < 1 || channels < 1 || channels > 4)
        return error_set(error, ERROR_WORK, "there is no image of %d x %d pixels and %d channels", width, height,
                         channels);
    if (!__builtin_mul_overflow((size_t)width * (size_t)height, (size_t)channels, &size) && size <= PTRDIFF_MAX)
        image->samples = malloc(size);
    if (!image->samples)
        return error_set(error, ERROR_WORK, "there is not enough memory for an image of %d x %d pixels and %d channels",
                         width, height, channels);
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

/* Row Y of plane C of planes of uint8_t. */
static uint8_t *plane_row(const struct plane *planes, int c, int y)
{
    return (uint8_t *)planes->data + (size_t)c * planes->plane_bytes + (size_t)y * planes->row_bytes;
}

/* Row Y of an image. */
static uint8_t *image_row(const struct image *image, int y)
{
    return image->samples + (size_t)y * (size_t)image->width * (size_t)image->channels;
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

void image_split(const struct image *image, enum alpha alpha, const struct plane *planes)
{
    const int channels = image->channels, alpha_channel = premultiplied_by(image, alpha);

    for (int y = 0; y < image->height; y++) {
        const uint8_t *const samples = image_row(image, y);
        if (channels == 1 && planes->count == 1) {
            memcpy(plane_row(planes, 0, y), samples, (size_t)image->width);
            continue;
        }
        if (channels == 3 && planes->count == 3) {
            split_3(samples, image->width, plane_row(planes, 0, y), plane_row(planes, 1, y), plane_row(planes, 2, y));
            continue;
        }
        for (int c = 0; c < planes->count; c++) {
            uint8_t *const row = plane_row(planes, c, y);
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

void image_merge(const struct plane *planes, enum alpha alpha, struct image *image)
{
    const int channels = image->channels, alpha_channel = premultiplied_by(image, alpha);

    for (int y = 0; y < image->height; y++) {
        uint8_t *const samples = image_row(image, y);
        if (channels == 1 && planes->count == 1) {
            memcpy(samples, plane_row(planes, 0, y), (size_t)image->width);
            continue;
        }
        if (channels == 3 && planes->count == 3) {
            merge_3(plane_row(planes, 0, y), plane_row(planes, 1, y), plane_row(planes, 2, y), image->width, samples);
            continue;
        }
        const uint8_t *const alphas = alpha_channel < 0 ? NULL : plane_row(planes, alpha_channel, y);
        for (int c = 0; c < planes->count; c++) {
            const uint8_t *const row = plane_row(planes, c, y);
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

static int sample_difference(uint8_t a, uint8_t b)
{
    return a < b ? b - a : a - b;
}

void image_compare(const struct image *expected, const struct image *actual, struct image_difference *difference)
{
    const int channels = expected->channels;
    uint64_t squares = 0; /* below 2^64 for 2^48 samples */

    *difference = (struct image_difference){.first_x = -1, .first_y = -1, .first_channel = -1, .psnr = INFINITY};
    if (expected->width != actual->width || expected->height != actual->height || channels != actual->channels)
        return;
    difference->same_shape = true;
    for (int y = 0; y < expected->height; y++) {
        const uint8_t *a = image_row(expected, y), *b = image_row(actual, y);
        if (memcmp(a, b, (size_t)expected->width * (size_t)channels) == 0)
            continue;
        for (int x = 0; x < expected->width; x++, a += channels, b += channels) {
            bool differs = false;
            for (int c = 0; c < channels; c++) {
                const int d = sample_difference(a[c], b[c]);
                if (d == 0)
                    continue;
                if (difference->first_x < 0) {
                    difference->first_x = x;
                    difference->first_y = y;
                    difference->first_channel = c;
                }
                differs = true;
                difference->largest = d > difference->largest ? d : difference->largest;
                squares += (uint64_t)(d * d);
            }
            difference->pixels += differs;
        }
    }
    if (squares > 0)
        difference->psnr = 10 * log10(255.0 * 255.0 * (double)image_samples(expected) / (double)squares);
}

bool image_difference_picture(const struct image *expected, const struct image *actual, struct image *picture,
                              struct error *error)
{
    const int channels = expected->channels, colours = channels >= 3 ? 3 : 1;
    const size_t pixels = (size_t)expected->width * (size_t)expected->height;
    int largest = 0;

    *picture = (struct image){0};
    if (expected->width != actual->width || expected->height != actual->height || channels != actual->channels)
        return error_set(error, ERROR_WORK,
                         "images of different shapes (%d x %d, %d channels; %d x %d, %d channels) have no picture of "
                         "their difference",
                         expected->width, expected->height, channels, actual->width, actual->height, actual->channels);
    if (!image_allocate(picture, expected->width, expected->height, colours, error))
        return false;

    for (size_t i = 0; i < pixels; i++) {
        const uint8_t *const a = expected->samples + i * (size_t)channels, *const b =
                                                                               actual->samples + i * (size_t)channels;
        uint8_t *const out = picture->samples + i * (size_t)colours;
        int of_colours = 0;
        for (int c = 0; c < colours; c++) {
            const int d = sample_difference(a[c], b[c]);
            out[c] = (uint8_t)d;
            of_colours = d > of_colours ? d : of_colours;
        }
        if (of_colours == 0 && image_has_alpha(expected)) {
            of_colours = sample_difference(a[colours], b[colours]);
            memset(out, of_colours, (size_t)colours);
        }
        largest = of_colours > largest ? of_colours : largest;
    }
    for (size_t i = 0; largest > 0 && i < pixels * (size_t)colours; i++)
        picture->samples[i] = (uint8_t)((2 * picture->samples[i] * 255 + largest) / (2 * largest));
    return true;
}
