/* SPDX-License-Identifier: MIT */
#include "filter/resample.h"

#include "filter/filter_internal.h"
#include "filter/number.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#define ONE ((int64_t)1 << 30)

/* Both rows of a kernel of Pillow. `nearest` reaches no other input. */
#define PILLOW(kernel, name, reach)                                                                                    \
    [RESAMPLE_PILLOW_##kernel] = {"pillow-" name, reach}, [RESAMPLE_PILLOW12_##kernel] = {"pillow12-" name, reach}

static const struct {
    const char *name;
    int reach; /* twice the distance from which on the kernel is 0 */
} kernels[RESAMPLE_KERNELS] = {
    [RESAMPLE_NONE] = {"none", 0},
    [RESAMPLE_LANCZOS3] = {"lanczos3", 6},
    [RESAMPLE_LANCZOS2] = {"lanczos2", 4},
    [RESAMPLE_CUBIC] = {"cubic", 4},
    [RESAMPLE_MITCHELL] = {"mitchell", 4},
    [RESAMPLE_TRIANGLE] = {"triangle", 2},
    [RESAMPLE_BOX] = {"box", 1},
    [RESAMPLE_NEAREST] = {"nearest", 1},
    PILLOW(NEAREST, "nearest", 0),
    PILLOW(BOX, "box", 1),
    PILLOW(BILINEAR, "bilinear", 2),
    PILLOW(HAMMING, "hamming", 2),
    PILLOW(BICUBIC, "bicubic", 4),
    PILLOW(LANCZOS, "lanczos", 6),
    [RESAMPLE_PILLOW_MKS2013] = {"pillow-mks2013", 5},
    [RESAMPLE_PILLOW_MKS2021] = {"pillow-mks2021", 9},
};

const char *resample_name(enum resample_kernel kernel)
{
    return kernels[kernel].name;
}

enum resample_kernel resample_find(const char *at, const char *end)
{
    enum resample_kernel kernel = RESAMPLE_KERNELS - 1;
    while (kernel > RESAMPLE_NONE && !is_word(kernels[kernel].name, at, end))
        kernel--;
    return kernel;
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
    if (kernel == RESAMPLE_NEAREST)
        return ONE;
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

void resample_shape(struct resample_axis *axis, enum resample_kernel kernel, int from, int to, int sample_bits)
{
    kernel = from == to && !resample_is_pillow(kernel) ? RESAMPLE_BOX : kernel;
    *axis = (struct resample_axis){
        .kernel = kernel,
        .from = from,
        .to = to,
        .made = to,
        .longest = from > to && kernel != RESAMPLE_NEAREST ? from : to,
        .reach = kernels[kernel].reach,
        .excluded = kernel == RESAMPLE_NEAREST,
        .period = from == to ? 1 : (int)(to / greatest_common_divisor(from, to)),
        .tap_bits = sample_bits == 8    ? 15
                    : sample_bits == 16 ? 23
                                        : 29,
    };
    axis->count = from == to ? 1 : (int)((int64_t)axis->longest * axis->reach / to + 1);
    if (resample_is_pillow(kernel)) {
        axis->shift = PILLOW_SHIFT;
        pillow_cut(axis, 0, (float)from);
    }
}

bool resample_check(const char *name, enum resample_kernel kernel, int from, int to, struct error *error)
{
    struct resample_axis axis;
    resample_shape(&axis, kernel, from, to, 8);
    return resample_check_axis(name, &axis, error);
}

bool resample_check_axis(const char *name, const struct resample_axis *axis, struct error *error)
{
    return !resample_is_pillow(axis->kernel) || axis->count <= PILLOW_TAPS_MAX ||
           error_set(error, ERROR_WORK,
                     "%s sums %d samples, and the kernels of Pillow sum at most %d here; resize in two steps", name,
                     axis->count, PILLOW_TAPS_MAX);
}

size_t resample_bytes(const struct resample_axis *axis)
{
    return (size_t)resample_kept(axis) * (size_t)(axis->count + resample_is_pillow(axis->kernel)) * sizeof *axis->taps;
}

/* 2^SHIFT * WEIGHT / SUM, rounded to nearest; halves upwards. *ERROR receives SUM times what this is too small by. The
 * quotient has at most 30 bits. SUM is below 2^35 * 2^28, and in use below 2^44: then SHIFT bits come in pieces. */
static int64_t scale_weight(int64_t weight, int64_t sum, int shift, int64_t *error)
{
    int64_t quotient = resample_floor(weight, sum), rest = weight - quotient * sum;
    int free_bits = 0;
    while (sum >> (62 - free_bits) == 0)
        free_bits++;
    for (int bits; shift > 0; shift -= bits) {
        bits = shift < free_bits ? shift : free_bits;
        quotient = quotient * ((int64_t)1 << bits) + (rest << bits) / sum;
        rest = (rest << bits) % sum;
    }
    const int64_t more = 2 * rest >= sum;
    *error = rest - more * sum;
    return quotient + more;
}

/* An output while its taps are made. */
struct output {
    int count;
    int nearest;    /* the tap nearest to the middle, and the first of two such taps */
    int64_t middle; /* the distance from the middle to input j is |middle + 2 to j| */
    int64_t to, sum;
    int64_t *weights; /* then SUM times what each tap is too small by */
    int32_t *taps;
};

static int64_t distance_of(const struct output *output, int k)
{
    const int64_t at = output->middle + 2 * output->to * k;
    return at < 0 ? -at : at;
}

/* Set all of the output after NUMBER others that are made, but what is at its pointers. All weights that are not kept
 * share the memory after the others. */
static struct output find_output(const struct resample_axis *axis, int number, int64_t *weights)
{
    const int i = axis->first + number, first = resample_first(axis, i), kept = resample_kept(axis);
    const size_t at = (size_t)(number < kept ? number : kept) * (size_t)axis->count;
    const int64_t middle = (2 * (int64_t)first + 1) * axis->to - (2 * (int64_t)i + 1) * axis->from;
    const int count = resample_last(axis, i) - first + 1;
    assert(count > 0); /* the nearest input is at most 1/2 away, and has one */
    return (struct output){
        .count = count,
        .nearest = (int)-resample_floor(middle + axis->to - axis->excluded, 2 * (int64_t)axis->to),
        .middle = middle,
        .to = axis->to,
        .weights = weights + at,
        .taps = axis->taps + at,
    };
}

static int64_t sum_weights(const struct output *output)
{
    int64_t sum = 0;
    for (int k = 0; k < output->count; k++)
        sum += output->weights[k];
    assert(sum > 0); /* the nearest input has the largest weight */
    return sum;
}

static void change_tap(struct output *output, int k, int by)
{
    output->taps[k] += by;
    output->weights[k] -= by * output->sum;
}

/* Change the taps by REST together, as resample.h says. There are enough taps for that: before, the errors of the taps
 * that change by 1 at most sum to REST, and each is at most 1/2. So no tap is more than 1 from its weight. */
static void spread_rest(struct output *output, int64_t rest)
{
    int start = output->nearest;
    if (distance_of(output, start) == 0) {
        const int by = output->weights[start] > 0 ? 1 : -1;
        if (rest % 2 != 0) {
            change_tap(output, start, by);
            rest -= by;
        }
        start--;
    }
    for (int sixteenths = 7; rest != 0; sixteenths--) {
        assert(sixteenths >= 0);
        for (int low = start, high = output->nearest + 1; rest != 0 && (low >= 0 || high < output->count);) {
            const int64_t below = low < 0 ? INT64_MAX : distance_of(output, low);
            const int64_t above = high < output->count ? distance_of(output, high) : INT64_MAX;
            const int by = rest > 0 ? 1 : -1, k = below <= above ? low : high, both = below == above;
            if (16 * by * output->weights[k] > sixteenths * output->sum && by * rest > both) {
                change_tap(output, k, by);
                if (both)
                    change_tap(output, high, by);
                rest -= by * (1 + both);
            }
            low -= below <= above;
            high += above <= below;
        }
    }
}

/* Make the taps of an output from its weights. Updates the errors. */
static void make_output(struct resample_axis *axis, struct output *output)
{
    int64_t rest = (int64_t)1 << axis->shift;
    for (int k = 0; k < output->count; k++)
        rest -= output->taps[k] =
            (int32_t)scale_weight(output->weights[k], output->sum, axis->shift, &output->weights[k]);
    for (int k = output->count; k < axis->count; k++)
        output->taps[k] = 0;
    spread_rest(output, rest);

    const double unit = ldexp(1, -axis->shift), share = unit / (double)output->sum;
    double error = 0, gain = 0;
    for (int k = 0; k < output->count; k++) {
        error += fabs((double)output->weights[k] * share);
        gain += fabs(output->taps[k] * unit);
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

/* Set the weights of all outputs, and the axis's shift by the largest of them. */
static void make_weights(struct resample_axis *axis, int64_t *weights)
{
    const bool is_words = axis->tap_bits == 23 && axis->count <= RESAMPLE_TAPS_MAX;
    axis->shift = is_words ? RESAMPLE_SHIFT_WORDS : RESAMPLE_SHIFT_MAX;
    for (int i = 0; i < axis->period; i++) {
        const struct output output = find_output(axis, i, weights);
        for (int k = 0; k < output.count; k++)
            output.weights[k] = kernel_weight(axis->kernel, distance_of(&output, k), axis->longest);
        const int64_t largest = output.weights[output.nearest], sum = sum_weights(&output);
        while (axis->shift > axis->tap_bits && largest > sum >> (axis->shift - axis->tap_bits))
            axis->shift--;
    }
}

bool resample_make(struct resample_axis *axis)
{
    if (resample_is_pillow(axis->kernel))
        return pillow_make(axis, 8);
    axis->count = count_taps(axis);
    const int kept = resample_kept(axis);
    int64_t *weights = calloc(((size_t)kept + 1) * (size_t)axis->count, sizeof *weights);
    axis->taps = malloc(resample_bytes(axis));
    const bool done = weights != NULL && axis->taps != NULL;
    if (done)
        make_weights(axis, weights);
    for (int i = 0; done && i < kept; i++) {
        struct output output = find_output(axis, i, weights);
        output.sum = sum_weights(&output);
        make_output(axis, &output);
    }
    free(weights);
    if (!done) {
        free(axis->taps);
        axis->taps = NULL;
    }
    return done;
}
