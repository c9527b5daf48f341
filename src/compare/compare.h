/* SPDX-License-Identifier: MIT
 *
 * How two images differ, what may be overlooked, and a picture of the difference. */
#ifndef GPUCONV_COMPARE_H
#define GPUCONV_COMPARE_H

#include "base/error.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct thread_pool;

/* The largest number of rectangles of pixels to ignore. */
enum { COMPARE_AREAS_MAX = 64 };

/* A rectangle of pixels. It may reach beyond the image. */
struct compare_area {
    int x, y, width, height;
};

/* All pixels of an image, as a share: shares are in millionths of a percent. */
enum { COMPARE_WHOLE = 100000000 };

/* The limits from LIMIT_PSNR on, and the threshold of colours, are in millionths. */
enum { COMPARE_MILLION = 1000000 };

/* The limits. A pair must be within all that are set. */
enum limit { LIMIT_PIXELS, LIMIT_PSNR, LIMIT_SSIM, LIMIT_LOCAL_SSIM, LIMITS };

/* The differences that are tolerated. A struct of zeros tolerates none. */
struct compare_rules {
    int tolerance;            /* levels, in the images' bit depth, that a sample may differ by */
    int yiq;                  /* the threshold of colours_differ in millionths, or 0 */
    bool any_pixels;          /* LIMIT_PIXELS is not set: any number of pixels may be beyond the tolerance */
    int lowest[LIMITS];       /* from LIMIT_PSNR on: the lowest allowed value in millionths; 0 if not set */
    uint64_t different;       /* the number of pixels that may be beyond the tolerance */
    int share;                /* unless 0, replaces `different`: a share of the compared pixels, up to COMPARE_WHOLE */
    bool ignores_transparent; /* ignore pixels whose alpha is 0 in both images */
    bool ignores_antialiasing;
    bool strict_channels; /* opaque alpha, and grey as three equal channels, are a difference */
    bool takes_metadata;  /* compare the metadata too */
    struct compare_area areas[COMPARE_AREAS_MAX];
    size_t area_count;
    const struct image *mask; /* ignore the pixels that are black in this image; may be NULL */
};

/* The side of a window of the SSIM, in pixels. Smaller images have no SSIM. */
enum { SSIM_WINDOW = 11 };

/* The structural similarity. NAN if it is not defined or was not computed. */
struct ssim {
    double mean;   /* the mean SSIM of all windows */
    double lowest; /* the lowest SSIM of a window */
    int x, y;      /* the upper left pixel of the first window with `lowest`, in reading order */
};

/* How two images of one size differ. */
struct difference {
    bool same_shape;          /* width, height and bits agree, and the images were compared; else all fields are 0 */
    int channels;             /* the compared channels */
    uint64_t ignored, hidden; /* the ignored pixels, and the ignored pixels that differ */
    uint64_t compared;        /* the pixels that were not ignored */
    uint64_t pixels;          /* the compared pixels that are beyond the tolerance */
    uint64_t tolerated;       /* the compared pixels that differ, but are within the tolerance */
    uint64_t antialiased;     /* the compared pixels that count as equal because they are antialiased */
    int first_x, first_y,
        first_channel;       /* the first sample beyond the tolerance in reading order; -1 if there is none */
    struct compare_area box; /* around all pixels beyond the tolerance */
    int largest;             /* the largest absolute difference of two samples that were not ignored */
    int largest_of[4];       /* `largest`, for each channel */
    double psnr;             /* 10 log10(peak^2 / mean square error) in dB, peak 255 or 65535; INFINITY if equal */
    struct ssim ssim;
};

/* The channels of an image that can hold both an image of A channels and one of B: three colours if one of them has
 * colours, and alpha if one has alpha. */
static inline int channels_of_both(int a, int b)
{
    return (a >= 3 || b >= 3 ? 3 : 1) + (a % 2 == 0 || b % 2 == 0);
}

/* Copy the pixels of EXPECTED that RULES ignore over those of ACTUAL, so that they are equal from now on. *IGNORED
 * becomes the number of these pixels, and *HIDDEN the number of them that differed. The images have one shape, and the
 * mask has their size. Fails if there is not enough memory. */
bool compare_ignore(const struct image *expected, const struct image *actual, const struct compare_rules *rules,
                    uint64_t *ignored, uint64_t *hidden, struct error *error);

/* Sample number I of an image. */
static inline int nth_sample(const struct image *image, size_t i)
{
    return image_sample_bytes(image) == 1 ? image->samples[i] : image_samples16(image)[i];
}

/* The absolute difference of sample number I of two images of one shape. */
static inline int sample_difference(const struct image *a, const struct image *b, size_t i)
{
    const int p = nth_sample(a, i), q = nth_sample(b, i);
    return p < q ? q - p : p - q;
}

/* Is the distance of the two colours of pixel number I larger than THRESHOLD millionths of the largest distance? */
bool colours_differ(const struct image *expected, const struct image *actual, size_t i, int threshold);

/* Is pixel number I, whose samples differ by at most MAX, beyond the tolerance of RULES? The tolerance of samples
 * counts if it is set, or if there is none of colours. The tolerance of colours counts if it is set. */
static inline bool pixel_is_beyond(const struct compare_rules *rules, const struct image *expected,
                                   const struct image *actual, size_t i, int max)
{
    return (max > rules->tolerance && (rules->tolerance > 0 || rules->yiq == 0)) ||
           (max > 0 && rules->yiq > 0 && colours_differ(expected, actual, i, rules->yiq));
}

/* Copy the pixels of EXPECTED that are beyond the tolerance, and antialiased in one of the images, over those of
 * ACTUAL. *COUNT becomes the number of these pixels, and *FLAGS a byte for each pixel, 1 for these pixels. Release it
 * with free, also after a failure. The result does not depend on the number of threads. POOL may be NULL. Fails if
 * there is not enough memory. */
bool antialiasing_ignore(const struct image *expected, const struct image *actual, const struct compare_rules *rules,
                         struct thread_pool *pool, uint8_t **flags, uint64_t *count, struct error *error);

/* Compare two images of one shape sample by sample, after IGNORED pixels were made equal. */
void compare_images(const struct image *expected, const struct image *actual, const struct compare_rules *rules,
                    uint64_t ignored, struct difference *difference);

/* Ignore pixels as RULES say, compare the images, and set all of *DIFFERENCE. ACTUAL changes where pixels are ignored.
 * *FLAGS is as for antialiasing_ignore, or NULL if antialiased pixels count. There is no SSIM if no sample differs. */
bool compare_by_rules(const struct image *expected, const struct image *actual, const struct compare_rules *rules,
                      struct thread_pool *pool, struct difference *difference, uint8_t **flags, struct error *error);

/* The number of pixels that may be beyond the tolerance. */
uint64_t compare_allowed(const struct compare_rules *rules, const struct difference *difference);

/* Is a limit from LIMIT_PSNR on set? */
bool rules_limit_numbers(const struct compare_rules *rules);

/* The number of DIFFERENCE that LIMIT limits. LIMIT is LIMIT_PSNR or later. */
double compare_number(const struct difference *difference, enum limit limit);

/* The limits that the images violate, as bits: 1 << limit for each. */
unsigned compare_limits(const struct compare_rules *rules, const struct difference *difference);

/* Set *SSIM to the structural similarity of the luma of two images of one shape: 0.299 red + 0.587 green + 0.114 blue
 * (ITU-R BT.601), or the grey level. Alpha does not count. NAN if the images are smaller than the window. The result
 * does not depend on the number of threads or on the machine. POOL may be NULL. Fails if there is not enough memory. */
bool ssim_compute(const struct image *expected, const struct image *actual, struct thread_pool *pool, struct ssim *ssim,
                  struct error *error);

/* Set PICTURE to an image that shows where and how much two images of one shape differ. It is grey or RGB with 8 bits.
 * Equal pixels are black. In the others each colour is the absolute difference, scaled so that the largest one in the
 * picture is 255. A pixel that differs in alpha alone is grey. With ANTIALIASED, a byte for each pixel, it is RGB,
 * where the pixels whose byte is 1 are yellow and all others grey. Release it with image_free. Fails if there is not
 * enough memory. */
bool difference_picture(const struct image *expected, const struct image *actual, const uint8_t *antialiased,
                        struct image *picture, struct error *error);

#endif
