/* SPDX-License-Identifier: MIT */
#include "filter/resample.h"

#include "filter/number.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define ONE ((int64_t)1 << 30)

static const struct {
    const char *name;
    int reach; /* twice the distance from which on the kernel is 0 */
} kernels[RESAMPLE_KERNELS] = {
    [RESAMPLE_NONE] = {"none", 0},   [RESAMPLE_LANCZOS3] = {"lanczos3", 6}, [RESAMPLE_LANCZOS2] = {"lanczos2", 4},
    [RESAMPLE_CUBIC] = {"cubic", 4}, [RESAMPLE_MITCHELL] = {"mitchell", 4}, [RESAMPLE_TRIANGLE] = {"triangle", 2},
    [RESAMPLE_BOX] = {"box", 1},
};

const char *resample_name(enum resample_kernel kernel)
{
    return kernels[kernel].name;
}

/* ---- Kernels ---- */

/* A * B for numbers in 2^-30, rounded to nearest. |A B| is below 2^62. */
static int64_t times(int64_t a, int64_t b)
{
    return (a * b + ONE / 2) >> 30;
}

/* sin(pi y) / (pi y) for 0 <= y <= 1/2: the series in y^2, whose factors are pi^(2k) / (2k + 1)!. What it leaves out is
 * below 2^-36. Each product is rounded by at most 2^-31 and then multiplied by at most 1/4. */
static int64_t sinc_near(int64_t y)
{
    static const int32_t factors[] = {1073741824, 1766234505, 871601792, 204818212, 28076038, 2519085, 159374, 7490};
    const int64_t square = times(y, y);
    int64_t sum = factors[7];
    for (int k = 6; k >= 0; k--)
        sum = factors[k] - times(sum, square);
    return sum;
}

/* sin(pi x) / (pi x) for x >= 0. With the nearest whole number n, sin(pi x) = (-1)^n sin(pi (x - n)). */
static int64_t sinc(int64_t x)
{
    if (x <= ONE / 2)
        return sinc_near(x);
    const int64_t n = (x + ONE / 2) >> 30, y = x - n * ONE, size = y < 0 ? -y : y;
    const int64_t value = (size * sinc_near(size) + x / 2) / x;
    return (n % 2 == 1) != (y < 0) ? -value : value;
}

/* A / B in 2^-30, rounded to nearest. A is below 2^32. */
static int64_t ratio(int64_t a, int64_t b)
{
    return (2 * a * ONE + b) / (2 * b);
}

static int64_t lanczos(int64_t distance, int64_t longest, int lobes)
{
    if (distance >= 2 * lobes * longest)
        return 0;
    const int64_t product = sinc(ratio(distance, 2 * longest)) * sinc(ratio(distance, 2 * lobes * longest));
    return product < 0 ? -((-product + ONE / 2) >> 30) : (product + ONE / 2) >> 30;
}

/* kernel(distance / (2 longest)) in 2^-30; twice that of cubic and box, and 18 times that of mitchell. */
static int64_t kernel_weight(enum resample_kernel kernel, int64_t distance, int64_t longest)
{
    if (kernel == RESAMPLE_BOX)
        return distance < longest ? 2 * ONE : distance == longest ? ONE : 0;
    if (kernel == RESAMPLE_LANCZOS3 || kernel == RESAMPLE_LANCZOS2)
        return lanczos(distance, longest, kernel == RESAMPLE_LANCZOS3 ? 3 : 2);
    if (distance >= kernels[kernel].reach * longest)
        return 0;
    const int64_t x = ratio(distance, 2 * longest), square = times(x, x), cube = times(square, x);
    if (kernel == RESAMPLE_TRIANGLE)
        return ONE - x;
    if (kernel == RESAMPLE_CUBIC)
        return x < ONE ? 3 * cube - 5 * square + 2 * ONE : -cube + 5 * square - 8 * x + 4 * ONE;
    return x < ONE ? 21 * cube - 36 * square + 16 * ONE : -7 * cube + 36 * square - 60 * x + 32 * ONE;
}

/* ---- Taps ---- */

void resample_shape(struct resample_axis *axis, enum resample_kernel kernel, int from, int to, bool is_16_bit)
{
    int shrinks = 0;
    while (shrinks < 7 && from >> (shrinks + 1) >= to)
        shrinks++;
    kernel = from == to ? RESAMPLE_BOX : kernel;
    *axis = (struct resample_axis){
        .kernel = kernel,
        .from = from,
        .to = to,
        .longest = from > to ? from : to,
        .reach = kernels[kernel].reach,
        .period = from == to ? 1 : (int)(to / greatest_common_divisor(from, to)),
        .shift = (is_16_bit ? 28 : 22) + shrinks,
    };
    axis->count = from == to ? 1 : (int)((int64_t)axis->longest * axis->reach / to) + 1;
}

size_t resample_bytes(const struct resample_axis *axis)
{
    return (size_t)axis->period * (size_t)axis->count * sizeof *axis->taps;
}

/* 2^SHIFT * WEIGHT / SUM, rounded to nearest; halves away from 0. The quotient has at most SHIFT + 1 bits. SUM is below
 * 2^35 * 2^28, and in use below 2^44: then SHIFT bits come in pieces. */
static int64_t scale_weight(int64_t weight, int64_t sum, int shift)
{
    assert(sum > 0); /* the nearest input has the largest weight */
    const int64_t size = weight < 0 ? -weight : weight;
    int64_t quotient = size / sum, rest = size % sum;
    int free_bits = 0;
    while (sum >> (62 - free_bits) == 0)
        free_bits++;
    for (int bits; shift > 0; shift -= bits) {
        bits = shift < free_bits ? shift : free_bits;
        quotient = (quotient << bits) + (rest << bits) / sum;
        rest = (rest << bits) % sum;
    }
    quotient += 2 * rest >= sum;
    return weight < 0 ? -quotient : quotient;
}

/* Make the taps of output I at TAPS, from WEIGHTS, which is memory. Updates the errors. */
static void make_output(struct resample_axis *axis, int i, int64_t *weights, int32_t *taps)
{
    const int first = resample_first(axis, i), count = resample_last(axis, i) - first + 1;
    int64_t sum = 0, rest = (int64_t)1 << axis->shift, least = INT64_MAX;
    int nearest = 0, second = -1;
    assert(count > 0); /* the nearest input is at most 1/2 away, and has one */
    for (int k = 0; k < count; k++) {
        const int64_t at = (2 * (int64_t)(first + k) + 1) * axis->to - (2 * (int64_t)i + 1) * axis->from;
        const int64_t distance = at < 0 ? -at : at;
        sum += weights[k] = kernel_weight(axis->kernel, distance, axis->longest);
        second = distance == least ? k : distance < least ? -1 : second;
        nearest = distance < least ? k : nearest;
        least = distance < least ? distance : least;
    }
    for (int k = 0; k < count; k++)
        rest -= taps[k] = (int32_t)scale_weight(weights[k], sum, axis->shift);
    for (int k = count; k < axis->count; k++)
        taps[k] = 0;
    taps[nearest] += (int32_t)(second < 0 ? rest : rest / 2);
    if (second >= 0)
        taps[second] += (int32_t)(rest / 2);

    const double unit = ldexp(1, -axis->shift), share = 1.0 / (double)sum;
    double error = 0, gain = 0;
    for (int k = 0; k < count; k++) {
        error += fabs(taps[k] * unit - (double)weights[k] * share);
        gain += fabs(taps[k] * unit);
    }
    axis->taps_error = fmax(axis->taps_error, error);
    axis->gain = fmax(axis->gain, gain);
}

/* The most taps that an output of the axis has. Its shape has one more where no output has taps at both ends. */
static int count_taps(const struct resample_axis *axis)
{
    int max = 1;
    for (int i = 0; i < axis->period; i++) {
        const int count = resample_last(axis, i) - resample_first(axis, i) + 1;
        max = count > max ? count : max;
    }
    return max;
}

bool resample_make(struct resample_axis *axis)
{
    axis->count = count_taps(axis);
    int64_t *weights = malloc((size_t)axis->count * sizeof *weights);
    axis->taps = malloc(resample_bytes(axis));
    for (int i = 0; weights != NULL && axis->taps != NULL && i < axis->period; i++)
        make_output(axis, i, weights, axis->taps + (size_t)i * (size_t)axis->count);
    const bool done = weights != NULL && axis->taps != NULL;
    free(weights);
    if (!done) {
        free(axis->taps);
        axis->taps = NULL;
    }
    return done;
}
