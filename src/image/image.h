/* SPDX-License-Identifier: MIT
 *
 * An image is the picture of a file: interleaved samples of 8 or 16 bits. A caller of the library may have floats, and
 * samples at other distances. A plane is one channel with contiguous rows: variants work on planes. This room has both,
 * and splits and merges images on the CPU. */
#ifndef GPUCONV_IMAGE_H
#define GPUCONV_IMAGE_H

#include "base/error.h"
#include "base/inline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The definition of all samples, and of the bytes of JPEG and PNG files: docs/spec/pixels-1.md. A change of any digest
 * there makes another version. */
#define PIXELS_NAME "gpuconv pixels 1"

struct linear; /* image/linear.h */

/* How the samples of an image of floats are stored, in memory of a caller of the library. */
enum storage { STORED_FLOAT, STORED_HALF, STORED_BFLOAT16, STORED_DOUBLE, STORED_BOOL };

struct image {
    int width, height; /* pixels, at least 1 each */
    int channels;      /* 1 grey, 2 grey and alpha, 3 RGB, 4 RGB and alpha */
    int bits;          /* bits of one sample: 8, 16, or 32 for floats from 0 to 1 */
    uint8_t *samples;  /* height x width x channels, no padding; those of 16 bits are aligned uint16_t in the
                          machine's byte order, floats are aligned, too; owned by the image */

    /* Bytes from a row, a pixel or a channel to the next one. They are 0 in an image without padding. Other values make
     * a view, for example of planes or of a part of a larger image. Only functions that say so take views. */
    size_t row_stride, pixel_stride, channel_stride;

    enum storage stored; /* how samples of 32 bits are stored; only image_copy and the GPU take all but STORED_FLOAT */
};

/* Images alike, at equal distances. */
struct images {
    struct image first;
    size_t count, stride; /* the number of images, and the bytes from one image to the next */
    size_t bytes;         /* bytes from the first byte of all images to the end of the last */
};

/* Image number INDEX of IMAGES, from 0. */
static inline struct image images_at(const struct images *images, size_t index)
{
    struct image image = images->first;
    image.samples += index * images->stride;
    return image;
}

/* The type of a plane's samples: 8-bit levels, 16-bit levels in the machine's byte order, or floats from 0 to 1. */
enum sample { SAMPLE_U8, SAMPLE_U16, SAMPLE_F32, SAMPLE_COUNT };

/* COUNT planes of one size, at equal distances in one buffer, on the host or on a device. Strides are in bytes. Padding
 * may follow a row; nobody reads or writes it. The struct does not own DATA. On a device, DATA is aligned to 512 bytes
 * and both strides to 128. */
struct plane {
    enum sample sample;
    int width, height, count;
    size_t row_bytes;   /* from one row to the next, at least width samples */
    size_t plane_bytes; /* from one plane to the next, at least height rows; any value if count is 1 */
    void *data;

    /* The samples of a pixel lie together, as in an image: plane_bytes is that of a sample, and neighbours in a row are
     * COUNT samples apart. Some filters take such planes, on the CPU. */
    bool is_together;

    enum storage stored; /* how samples of SAMPLE_F32 are stored; only some variants take all but STORED_FLOAT */
};

/* The samples from one to the next in a row. */
static inline int plane_step(const struct plane *planes)
{
    return planes->is_together ? planes->count : 1;
}

/* How to treat the alpha channel of 2- and 4-channel images. */
enum alpha {
    ALPHA_KEEP,        /* filter the colours as they are, copy alpha */
    ALPHA_PREMULTIPLY, /* multiply the colours by alpha, filter all planes, divide the colours by the new alpha */
    ALPHA_FILTER,      /* filter alpha as any other channel */
    ALPHA_HEADROOM,    /* ALPHA_PREMULTIPLY in planes of 16 bits that hold sums up to twice white */
    ALPHA_BLACK,       /* filter the colours as they look on black, copy alpha */
    ALPHA_PILLOW,      /* ALPHA_PREMULTIPLY in levels of 8 bits, divided as pillow_unpremultiply does */
};

/* Are the colours multiplied by alpha? */
static inline bool alpha_multiplies(enum alpha alpha)
{
    return alpha == ALPHA_PREMULTIPLY || alpha == ALPHA_HEADROOM || alpha == ALPHA_BLACK || alpha == ALPHA_PILLOW;
}

/* Bytes of one sample of a plane. */
static inline size_t sample_bytes(enum sample sample)
{
    return sample == SAMPLE_U8 ? 1 : sample == SAMPLE_U16 ? sizeof(uint16_t) : sizeof(float);
}

/* The name of a sample type, for messages and the benchmark. */
const char *sample_name(enum sample sample);

/* The number of samples. */
static inline size_t image_samples(const struct image *image)
{
    return (size_t)image->width * (size_t)image->height * (size_t)image->channels;
}

/* Bytes of one sample. */
static inline size_t image_sample_bytes(const struct image *image)
{
    const size_t float_bytes = image->stored == STORED_DOUBLE  ? sizeof(double)
                               : image->stored == STORED_BOOL  ? 1
                               : image->stored != STORED_FLOAT ? sizeof(uint16_t)
                                                               : sizeof(float);
    return image->bits > 16 ? float_bytes : image->bits > 8 ? sizeof(uint16_t) : 1;
}

/* Bytes of one pixel. */
static inline size_t image_pixel_bytes(const struct image *image)
{
    return (size_t)image->channels * image_sample_bytes(image);
}

/* Bytes of one row, without padding. */
static inline size_t image_row_bytes(const struct image *image)
{
    return (size_t)image->width * image_pixel_bytes(image);
}

/* Bytes from one row, pixel or channel to the next, also of a view with strides. */
static inline size_t image_row_stride(const struct image *image)
{
    return image->row_stride > 0 ? image->row_stride : image_row_bytes(image);
}

static inline size_t image_pixel_stride(const struct image *image)
{
    return image->pixel_stride > 0 ? image->pixel_stride : image_pixel_bytes(image);
}

static inline size_t image_channel_stride(const struct image *image)
{
    return image->channel_stride > 0 ? image->channel_stride : image_sample_bytes(image);
}

/* Do the samples of each row lie one after the other? */
static inline bool image_has_packed_rows(const struct image *image)
{
    return image_pixel_stride(image) == image_pixel_bytes(image) &&
           image_channel_stride(image) == image_sample_bytes(image);
}

/* And is there no padding between rows either? */
static inline bool image_is_packed(const struct image *image)
{
    return image_has_packed_rows(image) && image_row_stride(image) == image_row_bytes(image);
}

/* Bytes of all samples. */
static inline size_t image_bytes(const struct image *image)
{
    return (size_t)image->height * image_row_bytes(image);
}

/* Row Y of an image, or of a view with strides. */
static inline uint8_t *image_row(const struct image *image, int y)
{
    return image->samples + (size_t)y * image_row_stride(image);
}

/* A view of ROWS rows of IMAGE, or of a view with strides, from row FIRST on. */
static inline struct image image_rows(const struct image *image, int first, int rows)
{
    struct image part = *image;
    part.height = rows;
    part.samples = image_row(image, first);
    return part;
}

/* A view of IMAGE, or of a view with strides, as an image of CHANNELS: all, or red for 1, or red and alpha for 2. */
static inline struct image image_narrow(const struct image *image, int channels)
{
    struct image part = *image;
    part.row_stride = image_row_stride(image);
    part.pixel_stride = image_pixel_stride(image);
    part.channel_stride = image_channel_stride(image) * (channels == 2 && image->channels == 4 ? 3 : 1);
    part.channels = channels;
    return part;
}

/* A view of COLUMNS columns of IMAGE, or of a view with strides, from column FIRST on. */
static inline struct image image_columns(const struct image *image, int first, int columns)
{
    struct image part = *image;
    part.width = columns;
    part.row_stride = image_row_stride(image);
    part.samples += (size_t)first * image_pixel_stride(image);
    return part;
}

/* An image at SAMPLES with the shape of IMAGE, without padding. Its floats are stored as floats. */
static inline struct image image_packed(const struct image *image, uint8_t *samples)
{
    const struct image packed = {image->width, image->height, image->channels, image->bits, samples, 0, 0, 0,
                                 STORED_FLOAT};
    return packed;
}

/* The samples of an image of 16 bits. */
static inline uint16_t *image_samples16(const struct image *image)
{
    return (uint16_t *)(void *)image->samples;
}

/* Has the image an alpha channel? It is always the last. */
static inline bool image_has_alpha(const struct image *image)
{
    return image->channels == 2 || image->channels == 4;
}

/* Is every pixel opaque? Also true without an alpha channel. IMAGE may have strides, and no floats. */
bool image_is_opaque(const struct image *image);

/* The number of planes that are convolved in the mode ALPHA: all channels, or all but alpha. */
int image_planes(const struct image *image, enum alpha alpha);

/* Reserve an image with BITS (8, 16 or 32) per sample and undefined samples. Release it with image_free. Fails if a
 * size is impossible or there is not enough memory. */
bool image_allocate(struct image *image, int width, int height, int channels, int bits, struct error *error);

/* Copy the samples of FROM to TO, which has its shape and bits, but not its memory. Both may have strides. If floats
 * are stored in two ways, STORED_FLOAT is one of them. A sample that TO does not hold becomes infinite, or true. Gives
 * false if it was a double or is to be a bool; all other kinds are rounded so without a word. */
bool image_copy(const struct image *from, const struct image *to);

/* Blend the samples of FROM into those of TO, which has its shape: LEVELS has a level for each pixel, row by row. Both
 * may have strides, and floats are STORED_FLOAT. */
void image_blend(const struct image *from, const uint16_t *levels, const struct image *to);

/* Report why that was, for IMAGE or its result. Returns false. */
bool image_refuse(const struct image *image, struct error *error);

/* Copy the samples of FROM to TO, which has its shape: reduce_sample makes 8 bits of 16, widen_sample makes 16 of 8. */
void image_convert_samples(const struct image *from, const struct image *to);

/* Set CONVERTED to such a copy of IMAGE with BITS per sample. Release it with image_free. Fails if there is not enough
 * memory. */
bool image_convert(const struct image *image, int bits, struct image *converted, struct error *error);

/* Give IMAGE, of 8 or 16 bits, CHANNELS that hold all of its own: grey becomes three equal channels, and new alpha is
 * opaque. */
bool image_widen(struct image *image, int channels, struct error *error);

/* The channels of an image of CHANNELS over the colour RGB. Grey over grey stays grey. */
int image_composed_channels(int channels, const uint8_t rgb[3]);

/* Set COMPOSED to IMAGE over the colour RGB of 8 bits: compose_sample of each colour. It has as many bits, and
 * CHANNELS: image_composed_channels, or 3. Release it with image_free. Fails if there is not enough memory. */
bool image_compose(const struct image *image, const uint8_t rgb[3], int channels, struct image *composed,
                   struct error *error);

/* Release the samples. The struct may be all zero, and is all zero afterwards. */
void image_free(struct image *image);

/* Turn the image upright, from the value of the EXIF tag Orientation:
 *
 *     1 unchanged                       5 mirrored, then turned by 90 degrees counter-clockwise
 *     2 mirrored                        6 turned by 90 degrees clockwise
 *     3 turned by 180 degrees           7 mirrored, then turned by 90 degrees clockwise
 *     4 upside down                     8 turned by 90 degrees counter-clockwise
 *
 * Other values change nothing. 5 to 8 swap width and height. An image without samples changes its shape. Fails if there
 * is not enough memory for a second image. */
bool image_orient(struct image *image, int orientation, struct error *error);

/* Does ORIENTATION make columns of rows? */
static inline bool orientation_swaps(int orientation)
{
    return orientation >= 5 && orientation <= 8;
}

/* Bytes from the first pixel of an image to the first one of the upright image, and from one pixel of that to the next
 * one in its row and in its column. */
struct pixel_walk {
    ptrdiff_t first, column, row;
};

/* The walk over an image of WIDTH x HEIGHT, whose pixels are PIXEL bytes apart, and its rows ROW_BYTES. */
static inline struct pixel_walk orient_walk(int orientation, int width, int height, ptrdiff_t pixel,
                                            ptrdiff_t row_bytes)
{
    const bool from_right = orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
    const bool from_below = orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
    const ptrdiff_t column = from_right ? -pixel : pixel, row = from_below ? -row_bytes : row_bytes;
    struct pixel_walk walk;
    walk.first = (from_below ? (height - 1) * row_bytes : 0) + (from_right ? (width - 1) * pixel : 0);
    walk.column = orientation_swaps(orientation) ? row : column;
    walk.row = orientation_swaps(orientation) ? column : row;
    return walk;
}

/* Copy WIDTH x HEIGHT pixels of BYTES each: the first is at IN, which goes on as WALK says, and the rows of OUT are
 * OUT_ROW bytes apart. */
void orient_copy(const uint8_t *in, struct pixel_walk walk, uint8_t *out, size_t out_row, int width, int height,
                 size_t bytes);

/* The first sample of row Y of plane CHANNEL. */
static inline void *plane_row(const struct plane *planes, int channel, int y)
{
    return (char *)planes->data + (size_t)channel * planes->plane_bytes + (size_t)y * planes->row_bytes;
}

/* Lay out COUNT planes with rows padded to 64 bytes, unless they are shorter. Sets *SIZE to the bytes that they need, a
 * multiple of 64, and plane->data to NULL; the caller reserves the bytes and sets plane->data. Fails if no memory could
 * hold them. */
bool plane_layout(struct plane *plane, enum sample sample, int width, int height, int count, size_t *size,
                  struct error *error);

/* Reserve COUNT planes of that layout, with undefined samples. Release them with plane_free. */
bool plane_allocate(struct plane *plane, enum sample sample, int width, int height, int count, struct error *error);

/* Release plane->data. The struct may be all zero, and is all zero afterwards. */
void plane_free(struct plane *plane);

/* Split the image, which may have strides, into planes->count planes of its size: channel c becomes plane c. An image
 * of 8 bits becomes planes of SAMPLE_U8, or of SAMPLE_U16 (by widen_sample). An image of 16 bits becomes planes of
 * SAMPLE_U16, and one of floats planes of SAMPLE_F32, whose colours alpha multiplies and divides as floats. If LINEAR
 * is not NULL, the planes are SAMPLE_U16, and its tables convert the colours to linear light. With ALPHA_PREMULTIPLY
 * and an alpha channel, colours then become premultiply_sample(colour, alpha). ALPHA_HEADROOM has another unit for
 * images of 8 bits that are not in linear light, see premultiply_headroom. */
void image_split(const struct image *image, enum alpha alpha, const struct linear *linear, const struct plane *planes);

/* The inverse, for an image that may have strides: plane c becomes channel c. Channels without a plane keep their
 * samples. With ALPHA_PREMULTIPLY and an alpha channel, colours first become unpremultiply_sample(colour, alpha), with
 * the alpha of the planes. With LINEAR, IMAGE holds the samples before the filter: a level whose light is the same
 * stays. */
void image_merge(const struct plane *planes, enum alpha alpha, const struct linear *linear, struct image *image);

/* LEVEL of 65535 parts of AFTER and the rest of BEFORE, rounded to nearest, for samples of up to 16 bits: the sum is
 * below 65535 * 65535 + 32768 < 2^32. Equal samples stay. */
HOST_DEVICE static inline uint16_t blend_sample(unsigned before, unsigned after, unsigned level)
{
    return (uint16_t)((level * after + (65535 - level) * before + 32767) / 65535);
}

/* Likewise for floats. No product is fused with the sum. */
HOST_DEVICE static inline float blend_float(float before, float after, unsigned level)
{
    const float part = (float)level / 65535, rest = (float)(65535 - level) / 65535;
    return level == 0 ? before : level == 65535 ? after : before * rest + after * part;
}

/* 8 bits to 16: black stays black and white stays white, as 65535 / 255 = 257 is a whole number. */
HOST_DEVICE static inline uint16_t widen_sample(unsigned value)
{
    return (uint16_t)(value * 257);
}

/* 16 bits to 8, rounded to nearest: floor(v*255/65535 + 1/2).
 *
 * With v = 257 k + r and 0 <= r <= 256, that is k if r <= 128, else k + 1. And 255 v + 32895 = 65536 k + t with
 * t = 255 r - k + 32895. If r <= 128, then k <= 255, and t is from 32640 to 65535. If r >= 129, then k <= 254, and t is
 * from 65536 to 98175. */
HOST_DEVICE static inline uint8_t reduce_sample(unsigned value)
{
    return (uint8_t)((value * 255 + 32895) >> 16);
}

/* colour * alpha / 255, rounded to nearest: floor(c*a/255 + 1/2). Both are 0 to 255. */
HOST_DEVICE static inline unsigned premultiply_sample(unsigned colour, unsigned alpha)
{
    return (2 * colour * alpha + 255) / 510;
}

/* A colour over a ground: (colour * alpha + ground * (white - alpha)) / white, rounded to nearest; white is 255 or
 * 65535. It is odd, so there are no ties. The dividend is at most 65535^2 + 32767, which fits in 32 bits. An opaque
 * colour stays as it is. */
HOST_DEVICE static inline uint32_t compose_sample(uint32_t colour, uint32_t alpha, uint32_t ground, uint32_t white)
{
    return (colour * alpha + ground * (white - alpha) + white / 2) / white;
}

/* colour * 255 / alpha, rounded to nearest and at most 255; 0 if alpha is 0. Both are 0 to 65535. */
HOST_DEVICE static inline unsigned unpremultiply_sample(unsigned colour, unsigned alpha)
{
    if (alpha == 0)
        return 0;
    const unsigned value = (2 * colour * 255 + alpha) / (2 * alpha);
    return value < 255 ? value : 255;
}

/* colour * 255 / alpha, rounded down and at most 255, as Pillow makes RGBA of RGBa; the colour if alpha is 0. */
HOST_DEVICE static inline unsigned pillow_unpremultiply(unsigned colour, unsigned alpha)
{
    const unsigned value = alpha == 0 ? colour : 255 * colour / alpha;
    return value < 255 ? value : 255;
}

/* premultiply_sample for 16 bits, with 65535 instead of 255. 2 * 65535^2 does not fit in 32 bits. */
HOST_DEVICE static inline uint16_t premultiply_sample16(uint64_t colour, uint64_t alpha)
{
    return (uint16_t)((2 * colour * alpha + 65535) / 131070);
}

/* unpremultiply_sample for 16 bits, with 65535 instead of 255. */
HOST_DEVICE static inline uint16_t unpremultiply_sample16(uint64_t colour, uint64_t alpha)
{
    if (alpha == 0)
        return 0;
    const uint64_t value = (2 * colour * 65535 + alpha) / (2 * alpha);
    return (uint16_t)(value < 65535 ? value : 65535);
}

/* White and opaque in planes with headroom. It is odd times 255, as 65535 is: then rounding to a plane's level and
 * again to one of 8 bits is rounding once. For the odd u, round(round(u x) / u) = round(x): u x rounds to at least u n
 * + (u + 1) / 2 if and only if u x >= u n + u / 2. So an opaque picture keeps its bytes. */
enum { HEADROOM_UNIT = 127, HEADROOM_WHITE = 255 * HEADROOM_UNIT };

/* colour * alpha / 255 in planes with headroom, rounded to nearest. Both are 0 to 255. */
HOST_DEVICE static inline uint16_t premultiply_headroom(unsigned colour, unsigned alpha)
{
    return (uint16_t)((2 * colour * alpha * HEADROOM_UNIT + 255) / 510);
}

/* The alpha of 8 bits for one in planes with headroom. */
HOST_DEVICE static inline uint8_t reduce_headroom(unsigned alpha)
{
    const unsigned value = (alpha + HEADROOM_UNIT / 2) / HEADROOM_UNIT;
    return (uint8_t)(value < 255 ? value : 255);
}

/* A colour of 8 bits, not in linear light, in planes of 16 bits: multiplied by alpha. */
HOST_DEVICE static inline uint16_t multiply_alpha(enum alpha mode, unsigned colour, unsigned alpha)
{
    if (mode == ALPHA_HEADROOM)
        return premultiply_headroom(colour, alpha);
    if (mode == ALPHA_BLACK) /* the level that planes of 8 bits have */
        return widen_sample(premultiply_sample(colour, alpha));
    return premultiply_sample16(widen_sample(colour), widen_sample(alpha));
}

#endif
