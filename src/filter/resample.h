/* SPDX-License-Identifier: MIT
 *
 * The taps that change the length of a row or of a column from FROM samples to TO, in integers. Each output has taps of
 * its own:
 *
 *   - The pictures are aligned at their edges, so the middle of output i is at input (i + 1/2) from / to - 1/2.
 *   - With longest = max(from, to), input j is at the distance
 *
 *         x = ((2 j + 1) to - (2 i + 1) from) / (2 longest)
 *
 *     from there, in units of the inputs or, where the picture shrinks, of the outputs. So a kernel becomes as much
 *     wider as the picture becomes smaller. For the kernel `nearest`, longest is `to`, so x is in units of the inputs.
 *   - The weight of input j is kernel(x). It is an integer in 2^-30, for some kernels times 2 or 18, and is made by
 *     sums, products, shifts and quotients of 64 bits only. So it is the same on every machine. It is within 3 of these
 *     units, times 1, 2 or 18, of the kernel. tests/cli/resize.py checks that.
 *   - The tap is the weight times 2^shift / the sum of all weights, rounded to nearest, halves upwards. What the taps
 *     then lack to 2^shift, or have beyond it, is the rest. One tap after another gives 1 to it or takes 1 from it, if
 *     that makes up for more than 7/16 of the tap's rounding: from the middle outwards, two taps at equal distances
 *     only together. Then those of more than 6/16 follow, and so on, until no rest is left. If the rest is odd and the
 *     taps are in pairs but for a middle one, that is first rounded the other way.
 *
 * So the taps sum to 2^shift exactly: a constant picture stays as it is, and a mirrored picture has the mirrored
 * result, but for the ties of `nearest`. Each tap is less than 1 away from what it should be. Inputs outside the
 * picture are those at its edge. An axis that keeps its length is not filtered: its only tap is 1.
 *
 * The axis's shift is the largest with which no weight becomes more than 2^15 for samples of 8 bits, 2^23 for those of
 * 16 and 2^29 for floats. So taps of samples of 8 bits are above -2^15 and at most 2^15, and their negatives fit in 16
 * bits. It is at most 36, and 30 for samples of 16 bits unless an output has more than 4096 taps. It is at least 15, 23
 * or 29: no weight is above their sum, but for what the weights are rounded by, and that moves no tap to 2^15 + 1.
 *
 * The kernels of Pillow have its rule instead, in place of all the above. It is for samples of 8 bits:
 *
 *   - With scale = from / to, c = (i + 1/2) scale and s = support * max(scale, 1), output i has taps for inputs
 *     floor(c - s + 1/2) to floor(c + s - 1/2), as far as the picture has them. So an output near the edge has fewer.
 *     Doubles compute this. `nearest` has one input, floor(scale / 2 + scale + scale...). If only a part of the inputs
 *     becomes the outputs, the box, its length is in place of FROM in the scale, and c counts from where it begins.
 *   - The weights are doubles, as Pillow computes them. They are divided by their sum, and the tap is 2^22 times that,
 *     rounded to nearest, halves away from 0. So the taps of an output sum to 2^22 within count / 2. No tap is above
 *     2^23, and sums of |tap| 255 are below 2^31.
 *   - Each output has taps of its own, and shift is 22: level = clamp((sum of tap * input + 2^21) >> 22), after each
 *     pass. An axis that keeps its length has one tap of 2^22 for all outputs: its pass changes nothing.
 *   - The rows are summed first, as resample_rows_first says, and the results of both passes are bytes.
 *   - Planes of uint16_t have 257 times the levels of 8 bits, as widen_sample makes them. They are reduced before, and
 *     the results are widened. There is no such step for floats. */
#ifndef GPUCONV_RESAMPLE_H
#define GPUCONV_RESAMPLE_H

#include "base/error.h"
#include "base/inline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The longest side that a picture can have before or after: below 2^24. */
#define RESAMPLE_SIDE_MAX 16777215

/* The largest shift; the largest shift for samples of 16 bits while no output has more than RESAMPLE_TAPS_MAX taps. */
#define RESAMPLE_SHIFT_MAX 36
#define RESAMPLE_SHIFT_WORDS 30
#define RESAMPLE_TAPS_MAX 4096

/* The shift of the taps of Pillow's kernels, and the most taps of an output. With more, what 2^22 is missed by could
 * change a plain area: 2^14 / 2 * 255 < 2^21. */
#define PILLOW_SHIFT 22
#define PILLOW_TAPS_MAX 16384

enum resample_kernel {
    RESAMPLE_NONE,
    RESAMPLE_LANCZOS3, /* sinc(x) sinc(x / 3), |x| < 3 */
    RESAMPLE_LANCZOS2, /* sinc(x) sinc(x / 2), |x| < 2 */
    RESAMPLE_CUBIC,    /* Catmull-Rom: Keys' kernel with a = -1/2, |x| < 2 */
    RESAMPLE_MITCHELL, /* Mitchell and Netravali's with B = C = 1/3, |x| < 2 */
    RESAMPLE_TRIANGLE, /* 1 - |x|, |x| < 1 */
    RESAMPLE_BOX,      /* 1 for |x| < 1/2, and 1/2 at |x| = 1/2 */
    RESAMPLE_NEAREST,  /* 1 for -1/2 < x <= 1/2 in units of the inputs: one tap */

    /* The kernels of Pillow 13 and later, and those of Pillow up to 12. */
    RESAMPLE_PILLOW_NEAREST,
    RESAMPLE_PILLOW_BOX,
    RESAMPLE_PILLOW_BILINEAR,
    RESAMPLE_PILLOW_HAMMING,
    RESAMPLE_PILLOW_BICUBIC,
    RESAMPLE_PILLOW_LANCZOS,
    RESAMPLE_PILLOW_MKS2013,
    RESAMPLE_PILLOW_MKS2021,
    RESAMPLE_PILLOW12_NEAREST,
    RESAMPLE_PILLOW12_BOX,
    RESAMPLE_PILLOW12_BILINEAR,
    RESAMPLE_PILLOW12_HAMMING,
    RESAMPLE_PILLOW12_BICUBIC,
    RESAMPLE_PILLOW12_LANCZOS,
    RESAMPLE_KERNELS
};

/* The word for a kernel in a filter's name; and the kernel of the word from AT to END, or RESAMPLE_NONE. */
const char *resample_name(enum resample_kernel kernel);
enum resample_kernel resample_find(const char *at, const char *end);

/* Is it one of Pillow's? */
static inline bool resample_is_pillow(enum resample_kernel kernel)
{
    return kernel >= RESAMPLE_PILLOW_NEAREST;
}

/* The kernel of Pillow 13 with the formula of KERNEL, which is one of Pillow's. */
static inline enum resample_kernel pillow_formula(enum resample_kernel kernel)
{
    return kernel < RESAMPLE_PILLOW12_NEAREST
               ? kernel
               : (enum resample_kernel)(kernel - RESAMPLE_PILLOW12_NEAREST + RESAMPLE_PILLOW_NEAREST);
}

/* Are rows summed before columns? Pillow does that, but from version 13 on not if a picture loses more than twice as
 * many rows as columns. */
static inline bool resample_rows_first(enum resample_kernel kernel, int width, int height, int new_width,
                                       int new_height)
{
    const int64_t rows = (int64_t)height - new_height, columns = (int64_t)width - new_width;
    return kernel >= RESAMPLE_PILLOW12_NEAREST || (resample_is_pillow(kernel) && (rows <= 0 || rows <= 2 * columns));
}

/* The taps of one axis. The axis makes `made` outputs, from output `first` on: all, but for the CPU, which may make a
 * part. Output i has `count` taps, from taps[((i - first) % period) * count] on. The first tap multiplies input
 * resample_first(axis, i), which may lie outside the picture. For a kernel of Pillow it never does, and the taps after
 * resample_last(axis, i) are 0. There, the first inputs of all outputs that are made follow the taps of an axis that
 * changes its length. */
struct resample_axis {
    enum resample_kernel kernel;
    int from, to;
    int longest, reach; /* input j has a tap where |(2 j + 1) to - (2 i + 1) from| <= longest * reach */
    int count;          /* taps of an output; the last of them may be 0 */
    int period;         /* outputs with taps of their own */
    int tap_bits;       /* no tap is above 2^tap_bits */
    int shift;          /* the taps of an output sum to 2^shift */
    int excluded; /* 1 if an input at the lower end of the reach has no tap: of two nearest inputs, the later one */
    union {
        double taps_error; /* the sum of |tap / 2^shift - what it should be|, of the worst output */
        float box[2];      /* for a kernel of Pillow: from where to where inputs become outputs, see pillow_cut */
    };
    union {
        double gain;     /* the sum of |tap| / 2^shift, of the worst output: at most 1.55 */
        double *weights; /* for a kernel of Pillow: NULL, or see pillow_make */
    };
    int32_t *taps;
    int first, made;
};

/* The outputs whose taps are kept. */
static inline int resample_kept(const struct resample_axis *axis)
{
    return axis->period < axis->made ? axis->period : axis->made;
}

/* A / B, rounded down. B is positive. */
HOST_DEVICE static inline int64_t resample_floor(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

/* Does an axis with a kernel of Pillow keep all its samples? */
static inline bool pillow_keeps(const struct resample_axis *axis)
{
    return axis->from == axis->to && axis->box[0] == 0 && axis->box[1] == (float)axis->to;
}

/* The input of the first tap of output I of an axis with a kernel of Pillow, or of the last one. */
int pillow_input(const struct resample_axis *axis, int i, bool is_last);

/* The input of the first tap of output I, and of the last one. */
static inline int resample_first(const struct resample_axis *axis, int i)
{
    if (resample_is_pillow(axis->kernel))
        return axis->taps == NULL || pillow_keeps(axis)
                   ? pillow_input(axis, i, false)
                   : axis->taps[(size_t)axis->made * (size_t)axis->count + (size_t)(i - axis->first)];
    const int64_t middle = (2 * (int64_t)i + 1) * axis->from;
    const int64_t reach = (int64_t)axis->longest * axis->reach - axis->excluded;
    return (int)-resample_floor(axis->to + reach - middle, 2 * (int64_t)axis->to);
}

static inline int resample_last(const struct resample_axis *axis, int i)
{
    if (resample_is_pillow(axis->kernel))
        return axis->reach == 0 ? resample_first(axis, i) : pillow_input(axis, i, true);
    const int64_t middle = (2 * (int64_t)i + 1) * axis->from;
    return (int)resample_floor(middle + (int64_t)axis->longest * axis->reach - axis->to, 2 * (int64_t)axis->to);
}

/* The inputs of outputs FIRST to LAST - 1 that are in the picture: from *FROM to *TO - 1. */
static inline void resample_span(const struct resample_axis *axis, int first, int last, int *from, int *to)
{
    const int low = resample_first(axis, first), high = resample_last(axis, last - 1) + 1;
    *from = low < 0 ? 0 : low < axis->from ? low : axis->from - 1;
    *to = high > axis->from ? axis->from : high > 0 ? high : 1;
}

/* Set all but the taps, their shift and their errors, for all outputs. SAMPLE_BITS is 8, 16 or 32 for floats. */
void resample_shape(struct resample_axis *axis, enum resample_kernel kernel, int from, int to, int sample_bits);

/* Can KERNEL make TO samples of FROM? NAME, that of the filter or the kernel, is for messages. */
bool resample_check(const char *name, enum resample_kernel kernel, int from, int to, struct error *error);

/* Likewise, for an axis whose shape is set. */
bool resample_check_axis(const char *name, const struct resample_axis *axis, struct error *error);

/* Let an axis with a kernel of Pillow, whose shape is set, make its outputs of the inputs from START to END only. These
 * are distances from the edge of the picture, in inputs. The kernel reaches inputs beyond them. */
void pillow_cut(struct resample_axis *axis, float start, float end);

/* Bytes of the taps of an axis whose shape is set, at most. */
size_t resample_bytes(const struct resample_axis *axis);

/* Make the taps of an axis whose shape is set. Release them with free. Fails if there is too little memory. For
 * a kernel of Pillow it calls pillow_make for 8 bits. For 16 or 32, that makes weights instead, which sum to about 1:
 * those of output i, from weights[i % period * count] on. For 16, the inputs of `nearest` come from products, not from
 * sums. */
bool resample_make(struct resample_axis *axis);
bool pillow_make(struct resample_axis *axis, int sample_bits);

#ifdef __cplusplus
}
#endif

#endif
