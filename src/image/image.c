/* SPDX-License-Identifier: MIT
 *
 * Images and planes: reserve and release them, take an image apart into planes and put it together again, and say how
 * two images differ. The way between image and planes on a device is in kernels/planes.cu and gives the same bytes. */
#include "image/image.h"

#include "image/linear.h"

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

bool image_allocate(struct image *image, int width, int height, int channels, int bits, struct error *error)
{
    size_t size;

    *image = (struct image){.width = width, .height = height, .channels = channels, .bits = bits};
    if (width < 1 || height < 1 || channels < 1 || channels > 4)
        return error_set(error, ERROR_WORK, "there is no image of %d x %d pixels and %d channels", width, height,
                         channels);
    if (!__builtin_mul_overflow((size_t)width * (size_t)height, image_pixel_bytes(image), &size) && size <= PTRDIFF_MAX)
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

/* The samples of an image of 16 bits. */
static uint16_t *deep_samples(const struct image *image)
{
    return (uint16_t *)(void *)image->samples;
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

bool image_convert(const struct image *image, int bits, struct image *converted, struct error *error)
{
    if (!image_allocate(converted, image->width, image->height, image->channels, bits, error))
        return false;
    if (image->bits == bits)
        memcpy(converted->samples, image->samples, image_bytes(image));
    else if (bits > image->bits)
        widen(image->samples, image_samples(image), deep_samples(converted));
    else
        reduce(deep_samples(image), image_samples(image), converted->samples);
    return true;
}

/* ---- Orientation ---- */

/* Copy WIDTH x HEIGHT pixels of BYTES each: the next in a row stands IN_STEP bytes further in the input, the next row
 * IN_ROW; steps may be negative. In squares, so that where rows become columns neither side leaves the cache: a
 * square's 32 lines on each side hold at most 32 x 8 bytes. */
static inline void copy_pixels(const uint8_t *in, ptrdiff_t in_step, ptrdiff_t in_row, uint8_t *out, int width,
                               int height, size_t bytes)
{
    enum { SQUARE = 32 };

    for (int y0 = 0; y0 < height; y0 += SQUARE)
        for (int x0 = 0; x0 < width; x0 += SQUARE)
            for (int y = y0; y < height && y < y0 + SQUARE; y++)
                for (int x = x0; x < width && x < x0 + SQUARE; x++)
                    memcpy(out + ((size_t)y * (size_t)width + (size_t)x) * bytes, in + x * in_step + y * in_row, bytes);
}

/* The same, with a loop of its own for each size that a pixel can have, so that memcpy is a move or two. */
static void copy_pixels_of(const uint8_t *in, ptrdiff_t in_step, ptrdiff_t in_row, uint8_t *out, int width, int height,
                           size_t bytes)
{
    switch (bytes) {
    case 1:
        copy_pixels(in, in_step, in_row, out, width, height, 1);
        break;
    case 2:
        copy_pixels(in, in_step, in_row, out, width, height, 2);
        break;
    case 3:
        copy_pixels(in, in_step, in_row, out, width, height, 3);
        break;
    case 4:
        copy_pixels(in, in_step, in_row, out, width, height, 4);
        break;
    case 6: /* of 16 bits a sample, as are 8 and some of those above */
        copy_pixels(in, in_step, in_row, out, width, height, 6);
        break;
    default:
        copy_pixels(in, in_step, in_row, out, width, height, bytes);
    }
}

bool image_orient(struct image *image, int orientation, struct error *error)
{
    const size_t bytes = image_pixel_bytes(image), width = (size_t)image->width, height = (size_t)image->height;
    const size_t row_bytes = width * bytes;
    /* From which end the input's rows and columns are read, and whether its columns become rows. */
    const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const bool swapped = orientation >= 5;

    if (orientation < 2 || orientation > 8)
        return true;
    uint8_t *const turned = malloc(row_bytes * height);
    if (!turned)
        return error_set(error, ERROR_WORK, "there is not enough memory to turn an image of %d x %d pixels",
                         image->width, image->height);
    const uint8_t *const first =
        image->samples + (from_below ? (height - 1) * row_bytes : 0) + (from_right ? row_bytes - bytes : 0);
    const ptrdiff_t column = from_right ? -(ptrdiff_t)bytes : (ptrdiff_t)bytes;
    const ptrdiff_t row = from_below ? -(ptrdiff_t)row_bytes : (ptrdiff_t)row_bytes;
    if (swapped) {
        image->width = (int)height;
        image->height = (int)width;
    }
    copy_pixels_of(first, swapped ? row : column, swapped ? column : row, turned, image->width, image->height, bytes);
    free(image->samples);
    image->samples = turned;
    return true;
}

/* ---- Planes ---- */

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

/* Row Y of plane C. */
static uint8_t *plane_row(const struct plane *planes, int c, int y)
{
    return (uint8_t *)planes->data + (size_t)c * planes->plane_bytes + (size_t)y * planes->row_bytes;
}

/* The same of planes of uint16_t. */
static uint16_t *deep_row(const struct plane *planes, int c, int y)
{
    return (uint16_t *)(void *)plane_row(planes, c, y);
}

/* Row Y of an image. */
static uint8_t *image_row(const struct image *image, int y)
{
    return image->samples + (size_t)y * (size_t)image->width * image_pixel_bytes(image);
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
    const uint16_t *const deep = (const uint16_t *)(const void *)in;

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
    uint16_t *const deep = (uint16_t *)(void *)out;

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
            uint16_t *const row = deep_row(planes, c, y);
            const bool colour = is_colour(image, c);
            load_channel(image, image_row(image, y) + (size_t)c * image_sample_bytes(image), colour ? linear : NULL,
                         row);
            if (colour && alpha_channel >= 0) {
                const uint16_t *const alphas = deep_row(planes, alpha_channel, y);
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
            const uint16_t *const alphas = colour && alpha_channel >= 0 ? deep_row(planes, alpha_channel, y) : NULL;
            store_channel(image, deep_row(planes, c, y), alphas, colour ? linear : NULL,
                          image_row(image, y) + (size_t)c * image_sample_bytes(image));
        }
}

void image_split(const struct image *image, enum alpha alpha, const struct linear *linear, const struct plane *planes)
{
    const int channels = image->channels, alpha_channel = premultiplied_by(image, alpha);

    if (planes->sample == SAMPLE_U16) {
        split_16(image, alpha, linear, planes);
        return;
    }
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

void image_merge(const struct plane *planes, enum alpha alpha, const struct linear *linear, struct image *image)
{
    const int channels = image->channels, alpha_channel = premultiplied_by(image, alpha);

    if (planes->sample == SAMPLE_U16) {
        merge_16(planes, alpha, linear, image);
        return;
    }
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

/* How much sample number I of two images of one shape differs. */
static int sample_difference(const struct image *a, const struct image *b, size_t i)
{
    const int p = image_sample_bytes(a) == 1 ? a->samples[i] : deep_samples(a)[i];
    const int q = image_sample_bytes(b) == 1 ? b->samples[i] : deep_samples(b)[i];

    return p < q ? q - p : p - q;
}

static bool same_shape(const struct image *a, const struct image *b)
{
    return a->width == b->width && a->height == b->height && a->channels == b->channels && a->bits == b->bits;
}

void image_compare(const struct image *expected, const struct image *actual, struct image_difference *difference)
{
    const size_t channels = (size_t)expected->channels, row = (size_t)expected->width * channels;
    const double peak = image_sample_bytes(expected) == 1 ? 255 : 65535;
    uint64_t squares = 0; /* below 2^64 for 2^48 samples of 8 bits, or 2^32 of 16 */

    *difference = (struct image_difference){.first_x = -1, .first_y = -1, .first_channel = -1, .psnr = INFINITY};
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

/* Set OUT to what the picture of a difference shows at pixel number I, before it is scaled: COLOURS numbers. Returns
 * the largest of them. */
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

bool image_difference_picture(const struct image *expected, const struct image *actual, struct image *picture,
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
