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
 * or 29: no weight is above their sum, but for what the weights are rounded by, and that moves no tap to 2^15 + 1. */
#ifndef GPUCONV_RESAMPLE_H
#define GPUCONV_RESAMPLE_H

#include "base/inline.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest side that a picture can have before or after: below 2^24. */
#define RESAMPLE_SIDE_MAX 16777215

/* The largest shift; the largest shift for samples of 16 bits while no output has more than RESAMPLE_TAPS_MAX taps. */
#define RESAMPLE_SHIFT_MAX 36
#define RESAMPLE_SHIFT_WORDS 30
#define RESAMPLE_TAPS_MAX 4096

enum resample_kernel {
    RESAMPLE_NONE,
    RESAMPLE_LANCZOS3, /* sinc(x) sinc(x / 3), |x| < 3 */
    RESAMPLE_LANCZOS2, /* sinc(x) sinc(x / 2), |x| < 2 */
    RESAMPLE_CUBIC,    /* Catmull-Rom: Keys' kernel with a = -1/2, |x| < 2 */
    RESAMPLE_MITCHELL, /* Mitchell and Netravali's with B = C = 1/3, |x| < 2 */
    RESAMPLE_TRIANGLE, /* 1 - |x|, |x| < 1 */
    RESAMPLE_BOX,      /* 1 for |x| < 1/2, and 1/2 at |x| = 1/2 */
    RESAMPLE_NEAREST,  /* 1 for -1/2 < x <= 1/2 in units of the inputs: one tap */
    RESAMPLE_KERNELS
};

/* The word for a kernel in a filter's name. */
const char *resample_name(enum resample_kernel kernel);

/* The taps of one axis. The axis makes `made` outputs, from output `first` on: all, but for the CPU, which may make a
 * part. Output i has `count` taps, from taps[((i - first) % period) * count] on. The first tap multiplies input
 * resample_first(axis, i), which may lie outside the picture. */
struct resample_axis {
    enum resample_kernel kernel;
    int from, to;
    int longest, reach; /* input j has a tap where |(2 j + 1) to - (2 i + 1) from| <= longest * reach */
    int count;          /* taps of an output; the last of them may be 0 */
    int period;         /* outputs with taps of their own */
    int tap_bits;       /* no tap is above 2^tap_bits */
    int shift;          /* the taps of an output sum to 2^shift */
    int excluded; /* 1 if an input at the lower end of the reach has no tap: of two nearest inputs, the later one */
    double taps_error; /* the sum of |tap / 2^shift - what it should be|, of the worst output */
    double gain;       /* the sum of |tap| / 2^shift, of the worst output: at most 1.55 */
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

/* The input of the first tap of output I, and of the last one. */
HOST_DEVICE static inline int resample_first(const struct resample_axis *axis, int i)
{
    const int64_t middle = (2 * (int64_t)i + 1) * axis->from;
    const int64_t reach = (int64_t)axis->longest * axis->reach - axis->excluded;
    return (int)-resample_floor(axis->to + reach - middle, 2 * (int64_t)axis->to);
}

HOST_DEVICE static inline int resample_last(const struct resample_axis *axis, int i)
{
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

/* Bytes of the taps of an axis whose shape is set, at most. */
size_t resample_bytes(const struct resample_axis *axis);

/* Make the taps of an axis whose shape is set. Release them with free. Fails if there is too little memory. */
bool resample_make(struct resample_axis *axis);

#endif
