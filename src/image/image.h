/* SPDX-License-Identifier: MIT
 *
 * An image is what a file holds: interleaved samples of 8 or 16 bits. A plane is one channel with contiguous
 * rows, which is what a variant works on. This file owns both, and the way between them on the CPU. */
#ifndef GPUCONV_IMAGE_H
#define GPUCONV_IMAGE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks the few small functions that the kernels share with the CPU, so that each rule is written once. */
#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#define NOT_INLINED __noinline__
#else
#define HOST_DEVICE
#define NOT_INLINED __attribute__((unused))
#endif

struct linear; /* linear.h */

struct image {
    int width, height; /* pixels, at least 1 each */
    int channels;      /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha */
    int bits;          /* of a sample: 8, or 16 */
    uint8_t *samples;  /* height x width x channels, no padding; of 16 bits, uint16_t as the machine has them, aligned
                          to their size; owned by the image */
};

/* What a sample of a plane is: an 8-bit level, a 16-bit one in the order of the machine's bytes, or a float from 0
 * to 1.
 */
enum sample { SAMPLE_U8, SAMPLE_U16, SAMPLE_F32, SAMPLE_COUNT };

/* COUNT planes of one size that stand at equal distances in one buffer, on the host or on a device.
 * Strides are in bytes; a row may be followed by padding that nobody reads or writes. The struct does not own
 * DATA. On a device DATA is aligned to 512 bytes and both strides to 128. */
struct plane {
    enum sample sample;
    int width, height, count;
    size_t row_bytes;   /* from a row to the next, at least width samples */
    size_t plane_bytes; /* from a plane to the next, at least height rows; any value where count is 1 */
    void *data;
};

/* What happens to the alpha channel of 2- and 4-channel images. */
enum alpha {
    ALPHA_KEEP,        /* colours are filtered as they are, alpha is copied */
    ALPHA_PREMULTIPLY, /* colours are multiplied by alpha, all planes filtered, colours divided by the new alpha */
    ALPHA_FILTER,      /* alpha is filtered as any other channel */
};

/* Bytes of one sample of a plane. */
static inline size_t sample_bytes(enum sample sample)
{
    return sample == SAMPLE_U8 ? 1 : sample == SAMPLE_U16 ? sizeof(uint16_t) : sizeof(float);
}

/* What messages and the benchmark call a sample type. */
const char *sample_name(enum sample sample);

/* Number of samples. */
static inline size_t image_samples(const struct image *image)
{
    return (size_t)image->width * (size_t)image->height * (size_t)image->channels;
}

/* Bytes of one sample. */
static inline size_t image_sample_bytes(const struct image *image)
{
    return image->bits > 8 ? 2 : 1;
}

/* Bytes of one pixel. */
static inline size_t image_pixel_bytes(const struct image *image)
{
    return (size_t)image->channels * image_sample_bytes(image);
}

/* Bytes of all samples. */
static inline size_t image_bytes(const struct image *image)
{
    return (size_t)image->width * (size_t)image->height * image_pixel_bytes(image);
}

/* Row Y of an image. */
static inline uint8_t *image_row(const struct image *image, int y)
{
    return image->samples + (size_t)y * (size_t)image->width * image_pixel_bytes(image);
}

/* The samples of an image of 16 bits. */
static inline uint16_t *image_samples16(const struct image *image)
{
    return (uint16_t *)(void *)image->samples;
}

/* Has it an alpha channel (always the last)? */
static inline bool image_has_alpha(const struct image *image)
{
    return image->channels == 2 || image->channels == 4;
}

/* How many planes of the image a variant convolves under ALPHA: all of them, or all but alpha. */
int image_planes(const struct image *image, enum alpha alpha);

/* Reserve an image of that size, of BITS (8 or 16) a sample, with undefined samples. Fails when there is not enough
 * memory. */
bool image_allocate(struct image *image, int width, int height, int channels, int bits, struct error *error);

/* Make CONVERTED, to be released with image_free, from IMAGE with BITS a sample: 8 of 16 by reduce_sample, 16 of 8 by
 * widen_sample. Fails when there is not enough memory. */
bool image_convert(const struct image *image, int bits, struct image *converted, struct error *error);

/* Release the samples; the struct may be all zero. */
void image_free(struct image *image);

/* Turn and mirror the image as the EXIF tag Orientation says that it is to be shown: 1 as it is, 2 mirrored, 3 turned
 * by 180 degrees, 4 upside down, 6 turned by 90 degrees clockwise, 8 the other way round, 5 and 7 mirrored and then
 * turned as 8 and 6 are; any other number changes nothing. 5 to 8 swap width and height. All that can fail is memory
 * for a second image meanwhile. */
bool image_orient(struct image *image, int orientation, struct error *error);

/* The first sample of row Y of plane CHANNEL. */
static inline void *plane_row(const struct plane *planes, int channel, int y)
{
    return (char *)planes->data + (size_t)channel * planes->plane_bytes + (size_t)y * planes->row_bytes;
}

/* Lay out COUNT planes, rows padded to 64 bytes, in *SIZE bytes that the caller finds memory for; data becomes NULL. */
bool plane_layout(struct plane *plane, enum sample sample, int width, int height, int count, size_t *size,
                  struct error *error);

/* Reserve COUNT planes of that layout. plane->data is to be released with plane_free. */
bool plane_allocate(struct plane *plane, enum sample sample, int width, int height, int count, struct error *error);
void plane_free(struct plane *plane);

/* Take the image apart into planes->count planes of the image's size: channel c to plane c. An image of 8 bits goes to
 * planes of SAMPLE_U8 or, by widen_sample, SAMPLE_U16, one of 16 bits to SAMPLE_U16. Where LINEAR is not NULL, which
 * needs SAMPLE_U16, colours go through its curve to linear light. With ALPHA_PREMULTIPLY and an alpha channel, colours
 * then become premultiply_sample(colour, alpha). */
void image_split(const struct image *image, enum alpha alpha, const struct linear *linear, const struct plane *planes);

/* The way back: plane c to channel c. Channels that have no plane keep what the image holds. With
 * ALPHA_PREMULTIPLY and an alpha channel, colours become unpremultiply_sample(colour, alpha) first. */
void image_merge(const struct plane *planes, enum alpha alpha, const struct linear *linear, struct image *image);

/* 8 bits as 16: black stays black and white white, and 65535 / 255 is a whole number. */
HOST_DEVICE static inline uint16_t widen_sample(unsigned value)
{
    return (uint16_t)(value * 257);
}

/* 16 bits as 8, rounded to nearest: floor(v*255/65535 + 1/2). With v = 257 k + r, 0 <= r <= 256, that is k where r <=
 * 128, else k + 1; and 255 v + 32895 = 65536 k + t, where t = 255 r - k + 32895 is from 32640 to 65535 where r <= 128
 * (k <= 255), and from 65536 to 98175 where r >= 129 (then k <= 254). */
HOST_DEVICE static inline uint8_t reduce_sample(unsigned value)
{
    return (uint8_t)((value * 255 + 32895) >> 16);
}

/* colour * alpha / 255, rounded to nearest: floor(c*a/255 + 1/2). Both 0 to 255. */
HOST_DEVICE static inline unsigned premultiply_sample(unsigned colour, unsigned alpha)
{
    return (2 * colour * alpha + 255) / 510;
}

/* colour * 255 / alpha, rounded to nearest and at most 255; 0 where alpha is 0. */
HOST_DEVICE static inline unsigned unpremultiply_sample(unsigned colour, unsigned alpha)
{
    if (alpha == 0)
        return 0;
    const unsigned value = (2 * colour * 255 + alpha) / (2 * alpha);
    return value < 255 ? value : 255;
}

/* The same of 16 bits: 65535 in place of 255. 2 * 65535^2 does not fit in 32 bits. */
HOST_DEVICE static inline uint16_t premultiply_sample16(uint64_t colour, uint64_t alpha)
{
    return (uint16_t)((2 * colour * alpha + 65535) / 131070);
}

HOST_DEVICE static inline uint16_t unpremultiply_sample16(uint64_t colour, uint64_t alpha)
{
    if (alpha == 0)
        return 0;
    const uint64_t value = (2 * colour * 65535 + alpha) / (2 * alpha);
    return (uint16_t)(value < 65535 ? value : 65535);
}

#ifdef __cplusplus
}
#endif

#endif
