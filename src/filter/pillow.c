/* SPDX-License-Identifier: MIT
 *
 * The taps of Pillow's resize: see resample.h. They come from doubles, which must be the same on every machine. So this
 * file has a sine and a cosine of its own, and the compiler must not fuse its products and sums. */
#include "filter/resample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sine and cosine ---- */

__extension__ typedef unsigned __int128 uint128;

/* A number in 2^-192, of 64-bit words from the lowest one on. It is negative if its highest bit is set. */
enum { WORDS = 4, FRACTION = 64 * (WORDS - 1) };
struct fixed {
    uint64_t words[WORDS];
};

/* A * B, rounded down. Both are positive, and the product is below 2^63. */
static struct fixed multiply(const struct fixed *a, const struct fixed *b)
{
    uint64_t whole[2 * WORDS] = {0};
    struct fixed product;
    for (int i = 0; i < WORDS; i++) {
        uint128 carry = 0;
        for (int j = 0; j < WORDS; j++, carry >>= 64) {
            carry += (uint128)a->words[i] * b->words[j] + whole[i + j];
            whole[i + j] = (uint64_t)carry;
        }
        whole[i + WORDS] = (uint64_t)carry;
    }
    memcpy(product.words, whole + WORDS - 1, sizeof product.words);
    return product;
}

/* Divide *A by DIVISOR, rounded down. Returns whether something is left. */
static bool divide(struct fixed *a, uint64_t divisor)
{
    uint128 rest = 0;
    uint64_t left = 0;
    for (int i = WORDS - 1; i >= 0; i--, rest %= divisor) {
        rest = rest << 64 | a->words[i];
        left |= a->words[i] = (uint64_t)(rest / divisor);
    }
    return left != 0;
}

static void add(struct fixed *sum, const struct fixed *term, bool is_negative)
{
    uint128 carry = is_negative;
    for (int i = 0; i < WORDS; i++, carry >>= 64) {
        carry += (uint128)sum->words[i] + (is_negative ? ~term->words[i] : term->words[i]);
        sum->words[i] = (uint64_t)carry;
    }
}

/* The double nearest to A, whose absolute value is at least 2^-64. */
static double to_double(const struct fixed *a)
{
    const bool is_negative = a->words[WORDS - 1] >> 63;
    struct fixed positive = {{0}};
    int top = WORDS - 1;
    add(&positive, a, is_negative);
    while (positive.words[top] == 0)
        top--;
    /* Neither a sine nor a cosine of a double but 0 is a double or lies in the middle of two. So the bits that are left
     * out are not 0. */
    const uint128 high = (uint128)positive.words[top] << 64 | positive.words[top - 1] | 1;
    const double nearest = ldexp((double)high, 64 * (top - 1) - FRACTION);
    return is_negative ? -nearest : nearest;
}

/* The double nearest to the sine of X, or to its cosine, for 2^-27 <= x < 10: the series, whose terms are below 2^12.
 * The sum is within 2^-168. No sine or cosine of a double is known that is nearer than 2^-120 to the middle of two
 * doubles. */
static double exact_sine(double x, bool is_cosine)
{
    int exponent, k = is_cosine ? 1 : 2;
    const uint64_t digits = (uint64_t)ldexp(frexp(x, &exponent), 53);
    const int at = exponent - 53 + FRACTION;
    const uint128 placed = (uint128)digits << at % 64;
    struct fixed number = {{0}}, term = {{0}};
    number.words[at / 64] = (uint64_t)placed;
    number.words[at / 64 + 1] = (uint64_t)(placed >> 64);
    term.words[WORDS - 1] = 1;
    if (!is_cosine)
        term = number;
    const struct fixed square = multiply(&number, &number);
    struct fixed sum = term;
    for (bool is_negative = true, goes_on = true; goes_on; is_negative = !is_negative, k += 2) {
        term = multiply(&term, &square);
        goes_on = divide(&term, (uint64_t)(k * (k + 1)));
        add(&sum, &term, is_negative);
    }
    return to_double(&sum);
}

/* The sine of X within 2^-49, for 0 <= x < 13. */
static double near_sine(double x)
{
    static const double inverses[] = {1.0 / 6,   1.0 / 20,  1.0 / 42,  1.0 / 72,  1.0 / 110,
                                      1.0 / 156, 1.0 / 210, 1.0 / 272, 1.0 / 342, 1.0 / 420};
    const int n = (int)(x / M_PI + 0.5);
    const double y = x - n * M_PI, square = y * y;
    double sum = 1;
    for (int k = 9; k >= 0; k--)
        sum = 1 - square * inverses[k] * sum;
    return n % 2 != 0 ? -y * sum : y * sum;
}

/* The sine or the cosine of X, 0 < x < 10, if it IS_EXACT the nearest double. That of x below 2^-26 is x: x^3 / 6 is
 * less than half of its last digit. */
static double sine(double x, bool is_exact)
{
    return !is_exact ? near_sine(x) : x < 0x1p-26 ? x : exact_sine(x, false);
}

static double cosine(double x, bool is_exact)
{
    return !is_exact ? near_sine(x + M_PI / 2) : x < 0x1p-27 ? 1 : exact_sine(x, true);
}

/* ---- Kernels ---- */

static double sinc(double x, bool is_exact)
{
    if (x == 0)
        return 1;
    x = fabs(x) * M_PI;
    return sine(x, is_exact) / x;
}

static double mks2013(double x)
{
    return x < 0.5   ? 17.0 / 16 - 7.0 / 4 * (x * x)
           : x < 1.5 ? (1 - x) * (7.0 / 4 - x)
           : x < 2.5 ? -1.0 / 8 * ((x - 5.0 / 2) * (x - 5.0 / 2))
                     : 0;
}

static double mks2021(double x)
{
    return x < 0.5   ? 577.0 / 576 - 239.0 / 144 * (x * x)
           : x < 1.5 ? 35.0 / 36 * (x - 1) * (x - 239.0 / 140)
           : x < 2.5 ? 1.0 / 6 * (x - 2) * (65.0 / 24 - x)
           : x < 3.5 ? 1.0 / 36 * (x - 3) * (x - 15.0 / 4)
           : x < 4.5 ? -1.0 / 288 * ((x - 9.0 / 2) * (x - 9.0 / 2))
                     : 0;
}

/* The weight at a distance of AT. The factors of the Hamming window are floats in Pillow. */
static double pillow_weight(enum resample_kernel kernel, double at, bool is_exact)
{
    const double x = fabs(at);
    switch (kernel) {
    case RESAMPLE_PILLOW_BOX:
        return at > -0.5 && at <= 0.5 ? 1 : 0;
    case RESAMPLE_PILLOW_BILINEAR:
        return x < 1 ? 1 - x : 0;
    case RESAMPLE_PILLOW_HAMMING:
        return x == 0   ? 1
               : x >= 1 ? 0
                        : sinc(x, is_exact) * ((double)0.54f + (double)0.46f * cosine(x * M_PI, is_exact));
    case RESAMPLE_PILLOW_BICUBIC:
        return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : x < 2 ? (((x - 5) * x + 8) * x - 4) * -0.5 : 0;
    case RESAMPLE_PILLOW_LANCZOS:
        return at >= -3 && at < 3 ? sinc(at, is_exact) * sinc(at / 3, is_exact) : 0;
    case RESAMPLE_PILLOW_MKS2013:
        return mks2013(x);
    case RESAMPLE_PILLOW_MKS2021:
        return mks2021(x);
    default:
        return 1;
    }
}

/* ---- Taps ---- */

/* The box is of floats in Pillow. */
static double scale_of(const struct resample_axis *axis)
{
    return (double)(axis->box[1] - axis->box[0]) / axis->to;
}

void pillow_cut(struct resample_axis *axis, float start, float end)
{
    const int length = (int)ceilf(end - start);
    axis->box[0] = start;
    axis->box[1] = end;
    axis->longest = length > axis->to ? length : axis->to;
    axis->period = pillow_keeps(axis) ? 1 : axis->to;
    const int64_t count = (int64_t)axis->longest * axis->reach / axis->to + 2;
    axis->count = pillow_keeps(axis) || axis->reach == 0 ? 1 : count < axis->from ? (int)count : axis->from;
}

int pillow_input(const struct resample_axis *axis, int i, bool is_last)
{
    const double scale = scale_of(axis), support = axis->reach / 2.0 * fmax(scale, 1);
    const double middle = axis->box[0] + (i + 0.5) * scale;
    double nearest = axis->box[0] + scale * 0.5;
    if (pillow_keeps(axis))
        return i;
    if (axis->reach == 0) {
        while (i-- > 0) /* the errors of this sum are Pillow's, too */
            nearest += scale;
        return (int)fmin(nearest, axis->from - 1);
    }
    const int input = (int)(is_last ? middle + support + 0.5 : middle - support + 0.5);
    return is_last ? (input < axis->from ? input : axis->from) - 1 : input < 0 ? 0 : input;
}

/* How near to the middle of two integers a tap may be that comes from weights with near_sine: their errors of 2^-48
 * move no tap by 2^-20. */
static const double near_tie = 0x1p-18;

/* Make the weights of output I, and return their number. */
static int make_weights(const struct resample_axis *axis, int i, double *weights, bool is_exact)
{
    const enum resample_kernel kernel = pillow_formula(axis->kernel);
    const int first = resample_first(axis, i), count = resample_last(axis, i) - first + 1;
    const double unit = 1 / fmax(scale_of(axis), 1), middle = axis->box[0] + (i + 0.5) * scale_of(axis);
    double sum = 0;
    for (int k = 0; k < count; k++) {
        weights[k] = pillow_keeps(axis) ? 1 : pillow_weight(kernel, (k + first - middle + 0.5) * unit, is_exact);
        sum += weights[k];
    }
    for (int k = 0; k < count; k++)
        weights[k] /= sum;
    return count;
}

/* Make the taps of output I at TAPS. Returns false if one of them needs exact weights. */
static bool make_output(const struct resample_axis *axis, int i, double *weights, bool is_exact, int32_t *taps)
{
    const enum resample_kernel kernel = pillow_formula(axis->kernel);
    const bool is_near = !is_exact && (kernel == RESAMPLE_PILLOW_LANCZOS || kernel == RESAMPLE_PILLOW_HAMMING);
    const int count = make_weights(axis, i, weights, is_exact);
    for (int k = 0; k < count; k++) {
        const double tap = weights[k] * (1 << PILLOW_SHIFT), size = fabs(tap);
        if (is_near && fabs(size - floor(size) - 0.5) < near_tie)
            return false;
        taps[k] = (int32_t)(tap < 0 ? tap - 0.5 : tap + 0.5);
    }
    return true;
}

/* The most taps of an output that is made. */
static int count_taps(const struct resample_axis *axis)
{
    int max = 1;
    for (int i = axis->first; i < axis->first + axis->made && axis->count > 1; i++) {
        const int count = pillow_input(axis, i, true) - pillow_input(axis, i, false) + 1;
        max = count > max ? count : max;
    }
    return max;
}

/* Set the first input of each output that is made at FIRSTS. */
static void find_inputs(const struct resample_axis *axis, bool is_16_bit, int32_t *firsts)
{
    const double start = axis->box[0], scale = scale_of(axis);
    double nearest = start + scale * 0.5;
    for (int i = 0; i < axis->first + axis->made; i++, nearest += scale) {
        const double at = fmin(is_16_bit ? start + (i + 0.5) * scale : nearest, axis->from - 1);
        if (i >= axis->first)
            firsts[i - axis->first] = axis->reach == 0 ? (int)at : pillow_input(axis, i, false);
    }
}

bool pillow_make(struct resample_axis *axis, int sample_bits)
{
    axis->count = count_taps(axis);
    const int kept = resample_kept(axis);
    const size_t count = (size_t)axis->count, rows = sample_bits > 8 ? (size_t)kept : 1;
    double *weights = malloc(rows * count * sizeof *weights);
    int32_t *taps = calloc(resample_bytes(axis), 1);
    if (weights == NULL || taps == NULL) {
        free(weights);
        free(taps);
        return false;
    }
    if (!pillow_keeps(axis))
        find_inputs(axis, sample_bits == 16, taps + (size_t)kept * count);
    axis->taps = taps;
    for (int i = 0; i < kept; i++, taps += count)
        if (sample_bits > 8)
            make_weights(axis, axis->first + i, weights + (size_t)i * count, true);
        else if (!make_output(axis, axis->first + i, weights, false, taps))
            make_output(axis, axis->first + i, weights, true, taps);
    if (sample_bits > 8)
        axis->weights = weights;
    else
        free(weights);
    return true;
}
