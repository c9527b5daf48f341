/* SPDX-License-Identifier: MIT
 *
 * Parametric filters: a generator makes taps from a few parameters. It computes with operations that IEEE 754 defines
 * to the last bit, so that the same parameters give the same taps on every machine. */
#include "filter/filter_internal.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The largest radius: the middle of the largest filter. */
#define MAX_RADIUS (FILTER_MAX / 2)

/* Make the filter, whose taps are all 0, a square with the anchor in its middle. */
static void make_square(struct filter *filter, int radius, int32_t scale)
{
    filter->width = filter->height = 2 * radius + 1;
    filter->anchor_x = filter->anchor_y = radius;
    filter->scale = scale;
    filter->exact = true;
}

/* Remove outer columns and rows of zeros, as many on both sides, so that the anchor stays in the middle. */
static void trim_zeros(struct filter *filter)
{
    int reach_x = 0, reach_y = 0; /* the distance of the farthest non-zero taps */
    for (int i = 0; i < filter->width * filter->height; i++) {
        const int x = abs(i % filter->width - filter->anchor_x), y = abs(i / filter->width - filter->anchor_y);
        if (filter->taps[i] != 0 && x > reach_x)
            reach_x = x;
        if (filter->taps[i] != 0 && y > reach_y)
            reach_y = y;
    }

    int32_t *to = filter->taps; /* never ahead of the tap that is read */
    for (int y = -reach_y; y <= reach_y; y++) {
        for (int x = -reach_x; x <= reach_x; x++)
            *to++ = filter->taps[(filter->anchor_y + y) * filter->width + filter->anchor_x + x];
    }
    filter->width = 2 * reach_x + 1;
    filter->height = 2 * reach_y + 1;
    filter->anchor_x = reach_x;
    filter->anchor_y = reach_y;
}

/* e^-x for x >= 0, to about 12 digits, by additions, products and quotients only: exp's last bit differs between C
 * libraries. */
static double decay(double x)
{
    if (!(x < 700.0))
        return 0.0; /* e^-x is about the least double */
    int halvings = 0;
    for (; x > 0.5; x /= 2.0)
        halvings++;
    double power = 1.0, term = 1.0;
    for (int i = 1; i < 16; i++) { /* 0.5^16 / 16! is below the last bit of a double */
        term *= -x / i;
        power += term;
    }
    for (; halvings > 0; halvings--)
        power *= power;
    return power;
}

/* The sine of 0 to 90 degrees, by the same operations. */
static double sine(double degrees)
{
    const double x = degrees * (3.14159265358979323846 / 180.0);
    double sum = x, term = x;
    for (int i = 2; i < 24; i += 2) { /* (pi/2)^25 / 25! is below the last bit of a double */
        term *= -x * x / (i * (i + 1));
        sum += term;
    }
    return sum;
}

/* The arcsine of 0 <= z <= 1, by the same operations and the square root. */
static double arcsine(double z)
{
    double factor = 1.0;
    for (; z > 0.1; factor *= 2.0) /* asin(z) = 2 asin(y) with the sine y of half the angle */
        z /= sqrt(2.0 + 2.0 * sqrt(1.0 - z * z));
    double sum = z, term = z;
    for (int i = 1; i < 16; i += 2) { /* 0.1^17 is below the last bit of a double */
        term *= z * z * i / (i + 1);
        sum += term / (i + 2);
    }
    return factor * sum;
}

/* ---- From weights to a grid of taps ---- */

/* How far rounded taps may move an output, in levels, where finer taps cost time. */
#define FINE_8 0.1
#define FINE_16 0.12

/* Set taps and scale from WEIGHTS, those of the filter's grid, of an odd number. They sum to SUM, 0 or 1, and so do
 * taps / scale. CUT is the sum of the absolute differences of WEIGHTS and the ideal weights, which may go on for ever.
 *
 * The difference d of taps / scale and the ideal weights sums to 0. Samples are from 0 to the highest level, so their
 * distance from the middle level is at most levels / 2, and the output moves by at most
 *
 *     |sum of d * in| = |sum of d * (in - levels / 2)| <= levels / 2 * sum|d|
 *
 * Taps of 7, 15 and 23 bits and a sign take one, two and three bytes. The least bytes whose error is small enough are
 * taken, filled as far as FILTER_MAX_SUM allows; but the least taps that are exact. */
static void set_weights(struct filter *filter, const double *weights, int sum, double cut, bool is_16_bit)
{
    const int count = filter->width * filter->height;
    const double levels = is_16_bit ? 65535.0 : 255.0;
    double absolute_sum = 0.0, largest = 0.0;
    for (int i = 0; i < count; i++) {
        absolute_sum += fabs(weights[i]);
        largest = fmax(largest, fabs(weights[i]));
    }
    /* Each tap is rounded by up to a half, and the middle corrects the sum: COUNT in all. The scale is at most 2^30. */
    const double max = fmin((FILTER_MAX_SUM - count) / absolute_sum, 1 << 30);
    for (int bits = 0; bits < 24; bits++) {
        const int32_t tap = bits % 8 == 7 ? (1 << bits) - 1 : 1 << bits;
        const double unit = floor(fmin((sum == 1 ? tap : tap - tap / 32) / largest, max)); /* the middle may grow */
        int32_t tap_sum = 0;
        for (int i = 0; i < count; i++)
            tap_sum += filter->taps[i] = (int32_t)round(weights[i] * unit);
        filter->scale = sum == 1 ? tap_sum : (int32_t)unit;
        if (filter->scale == 0)
            continue;
        if (sum == 0)
            filter->taps[count / 2] -= tap_sum; /* so the filter stays symmetric */

        double error = cut;
        for (int i = 0; i < count; i++)
            error += fabs((double)filter->taps[i] / filter->scale - weights[i]);
        filter->largest_error = levels / 2.0 * error;
        filter->exact = filter->largest_error < 1e-9; /* doubles err by less, and other taps by more */
        if (filter->exact || (bits % 8 == 7 && filter->largest_error <= (is_16_bit ? FINE_16 : FINE_8)))
            break;
    }
    if (filter->exact)
        filter->largest_error = 0.0;
}

/* ---- Blurs in two passes ---- */

/* The largest radius of a filter in two passes. */
#define MAX_PASS_RADIUS (FILTER_PASS_MAX / 2)

/* The widest Gaussian: MAX_PASS_RADIUS is 5 of its standard deviations. */
#define MAX_SIGMA 170.0

/* The sums of the widest box: see struct filter. */
static_assert(255 * FILTER_PASS_MAX < 1 << 19, "m of 8 bits");
static_assert(65535 * FILTER_PASS_MAX < 1 << 27, "m of 16 bits");
static_assert((int64_t)255 * FILTER_PASS_MAX * FILTER_PASS_MAX < (int64_t)1 << 31, "s of 8 bits, with half a scale");
static_assert((int64_t)65535 * FILTER_PASS_MAX * FILTER_PASS_MAX < (int64_t)1 << 52, "s of 16 bits, the same");

/* All sums of a box are exact, so one filter serves all depths. */
bool make_box(const struct number *parameters, bool is_16_bit, double *weights, struct filter *filter)
{
    (void)is_16_bit;
    (void)weights;
    if (!number_is_integer(parameters[0], 0, MAX_PASS_RADIUS))
        return false;
    const int radius = (int)parameters[0].numerator, side = 2 * radius + 1;
    filter->two_pass = side > FILTER_MAX;
    make_square(filter, radius, filter->two_pass ? 1 : side * side);
    if (filter->two_pass) {
        filter->separable = true;
        filter->tap_sum = filter->absolute_sum = 1;
        filter->pass_scale = (int64_t)side * side;
        for (int i = 0; i < side; i++)
            filter->column[i] = filter->row[i] = 1;
    } else {
        for (int i = 0; i < side * side; i++)
            filter->taps[i] = 1;
    }
    return true;
}

/* How the taps of a blur are rounded: those of its row and column sum to 2^row_bits and 2^column_bits, and the sums of
 * a row are rounded to 2^-fraction_bits levels. */
struct precision {
    int row_bits, column_bits, fraction_bits;
};

/* The weights of the Gaussian at distances from 0 to MAX_PASS_RADIUS, as the sum over all integers is 1. *RADIUS is the
 * least distance whose weights, with all up to it, leave out at most half of the mass LEFT_OUT on each side. */
static void infinite_weights(double sigma, double left_out, double *weights, int *radius)
{
    double sum = weights[0] = 1.0;
    for (int i = 1; i <= MAX_PASS_RADIUS || i < 40 * sigma; i++) { /* e^-800 is below the least double */
        const double weight = decay(i / sigma * (i / sigma) / 2.0);
        if (i <= MAX_PASS_RADIUS)
            weights[i] = weight;
        sum += 2.0 * weight;
    }
    double inside = 0.0;
    *radius = -1;
    for (int i = 0; i <= MAX_PASS_RADIUS; i++) {
        weights[i] /= sum;
        inside += i == 0 ? weights[i] : 2.0 * weights[i];
        if (*radius < 0 && 1.0 - inside <= left_out)
            *radius = i;
    }
    if (*radius < 0)
        *radius = MAX_PASS_RADIUS;
}

/* Round the weights of the radii up to RADIUS to integers VECTOR whose sum over both sides is 2^UNIT_BITS. Each is the
 * weight rounded down, and the rest of the sum goes to the largest remainders, on both sides at once. If it is odd, the
 * last unit goes to the middle. Returns the sum of the errors of all taps, and of the weights beyond them. */
static double round_weights(const double *weights, int radius, int unit_bits, int32_t *vector)
{
    double remainders[MAX_PASS_RADIUS + 1] = {0}, inside = 0.0;
    int64_t missing = (int64_t)1 << unit_bits;
    for (int i = 0; i <= radius; i++) {
        const double weight = ldexp(weights[i], unit_bits);
        vector[i] = (int32_t)floor(weight);
        remainders[i] = weight - vector[i];
        missing -= i == 0 ? vector[i] : 2 * (int64_t)vector[i];
        inside += i == 0 ? weights[i] : 2.0 * weights[i];
    }
    for (; missing >= 2; missing -= 2) {
        int largest = radius > 0 ? 1 : 0;
        for (int i = 2; i <= radius; i++)
            largest = remainders[i] > remainders[largest] ? i : largest;
        vector[largest]++;
        remainders[largest] -= 1.0;
    }
    vector[0] += (int32_t)missing;

    double error = 1.0 - inside;
    for (int i = 0; i <= radius; i++)
        error += (i == 0 ? 1.0 : 2.0) * fabs(ldexp(vector[i], -unit_bits) - weights[i]);
    return error;
}

/* Make the Gaussian blur of SIGMA as a filter in two passes. Let r and c be the vectors of taps, divided by their sums,
 * and g the true weights, which go on for ever. All three sum to 1. By the proof of set_weights, the outputs differ by
 * at most
 *
 *     levels / 2 * sum|c x r - g x g| <= levels / 2 * (sum|c - g| + sum|r - g|)
 *
 * because c x r - g x g = c x (r - g) + (c - g) x g. The rounding of the row's sums adds half of its unit.
 * `largest_error` is the sum of both, in levels of the samples' depth.
 *
 * The row's taps are as fine as their bits allow. For samples of 8 bits its sums fit in 31 bits, and column_bits +
 * fraction_bits = 24, or 23 if a tap would not be below 2^15 otherwise. The finer the one, the coarser the other: the
 * best pair is taken. For 16 bits, the largest tap is from 2^21 to 2^22.
 *
 * If the middle is all that is left, the filter is a grid of one tap. With two more taps, the middle is below 2^15 - 1
 * units of 2^-15 and 2^22 - 1 units of 2^-22, so it fits. */
static void make_blur(double sigma, bool is_16_bit, struct filter *filter)
{
    const double levels = is_16_bit ? 65535.0 : 255.0;
    double weights[MAX_PASS_RADIUS + 1] = {0};
    int radius;
    infinite_weights(sigma, (is_16_bit ? 0.06 : 0.02) / levels / 2.0, weights, &radius);
    make_square(filter, radius, 1);
    filter->exact = false;
    if (radius == 0) {
        filter->taps[0] = 1;
        filter->largest_error = levels * (1.0 - weights[0] * weights[0]);
        return;
    }

    int finest = is_16_bit ? 31 : 23;
    while (ldexp(weights[0], finest) + 1.0 >= 1 << (is_16_bit ? 22 : 15))
        finest--;
    int32_t vector[MAX_PASS_RADIUS + 1] = {0};
    const double row_error = round_weights(weights, radius, finest, vector);
    for (int i = 0; i < filter->width; i++)
        filter->row[i] = vector[abs(i - radius)];

    struct precision best = {.row_bits = finest};
    for (int fraction_bits = is_16_bit ? 6 : 8; fraction_bits >= (is_16_bit ? 6 : 3); fraction_bits--) {
        const int column_bits = is_16_bit || finest < 24 - fraction_bits ? finest : 24 - fraction_bits;
        if (!is_16_bit && column_bits + fraction_bits < 23)
            break;
        const double error = levels / 2.0 * (row_error + round_weights(weights, radius, column_bits, vector)) +
                             ldexp(0.5, -fraction_bits);
        if (best.column_bits == 0 || error < filter->largest_error) {
            best.column_bits = column_bits;
            best.fraction_bits = fraction_bits;
            filter->largest_error = error;
        }
    }
    round_weights(weights, radius, best.column_bits, vector);
    for (int i = 0; i < filter->height; i++)
        filter->column[i] = vector[abs(i - radius)];

    filter->two_pass = filter->separable = true;
    filter->tap_sum = filter->absolute_sum = 1;
    filter->row_shift = best.row_bits - best.fraction_bits;
    filter->pass_scale = (int64_t)1 << (best.column_bits + best.fraction_bits);
}

bool make_gaussian(const struct number *parameters, bool is_16_bit, double *weights, struct filter *filter)
{
    (void)weights;
    const double sigma = parameters[0].value;
    if (!(sigma > 0.0 && sigma <= MAX_SIGMA))
        return false;
    make_blur(sigma, is_16_bit, filter);
    return true;
}

/* An unsharp mask is in + a (in - g), for the amount a and the blur g. The one made here is in + A (in - b): A is a
 * rounded to 2^-20, and b is the blur of make_blur rounded to 2^-8 levels. Both differ by at most
 *
 *     |A - a| |in - g| + A |b - g| <= levels |A - a| + A (error of the blur + 2^-9)
 *
 * and clamping makes that no larger. If |in - b| is that near to the threshold, one may be above it and the other not.
 * If the blur is one tap, the mask changes nothing. */
bool make_unsharp(const struct number *parameters, bool is_16_bit, double *weights, struct filter *filter)
{
    (void)weights;
    const double sigma = parameters[0].value, amount = parameters[1].value, threshold = parameters[2].value;
    if (!(sigma > 0.0 && sigma <= MAX_SIGMA && amount >= 1e-6 && amount <= 100.0 && threshold >= 0.0 &&
          threshold <= 255.0))
        return false;
    make_blur(sigma, is_16_bit, filter);
    if (!filter->two_pass) {
        filter->largest_error *= amount;
        return true;
    }
    const double rounded = round(ldexp(amount, UNSHARP_AMOUNT_BITS));
    const double step = ldexp(rounded, -UNSHARP_AMOUNT_BITS), levels = is_16_bit ? 65535.0 : 255.0;
    filter->amount = (int32_t)rounded;
    filter->threshold = (int32_t)round(ldexp(threshold, UNSHARP_LEVEL_BITS)) * (is_16_bit ? 257 : 1);
    filter->absolute_sum = 1 + 2 * (int64_t)ceil(step);
    filter->largest_error =
        levels * fabs(step - amount) + step * (filter->largest_error + ldexp(0.5, -UNSHARP_LEVEL_BITS));
    return true;
}

bool make_motion(const struct number *parameters, bool is_16_bit, double *weights, struct filter *filter)
{
    const double length = parameters[0].value, angle = parameters[1].value;
    if (!(length >= 1.0 && length <= FILTER_MAX && fabs(angle) <= 360.0))
        return false;

    /* A line has no direction: angles below 180 degrees are enough. Rows count downwards: counter-clockwise is -y. */
    const double direction = angle < 0.0 ? fmod(angle + 360.0, 180.0) : fmod(angle, 180.0);
    const double dx = direction <= 90.0 ? sine(90.0 - direction) : -sine(direction - 90.0);
    const double dy = direction <= 90.0 ? -sine(direction) : -sine(180.0 - direction);
    const double half = (length - 1.0) / 2.0;

    make_square(filter, MAX_RADIUS, 1);
    double sum = 0.0;
    for (int i = 0; i < FILTER_MAX * FILTER_MAX; i++) {
        const int x = i % FILTER_MAX - MAX_RADIUS, y = i / FILTER_MAX - MAX_RADIUS;
        const double across = x * dy - y * dx;
        const double beyond = fmax(fabs(x * dx + y * dy) - half, 0.0);
        weights[i] = fmax(1.0 - sqrt(across * across + beyond * beyond), 0.0);
        sum += weights[i];
    }
    for (int i = 0; i < FILTER_MAX * FILTER_MAX; i++)
        weights[i] /= sum;
    set_weights(filter, weights, 1, 0.0, is_16_bit);
    return true;
}

/* The area of the part of the circle of RADIUS where 0 <= x <= X and 0 <= y <= Y; negative if one of X, Y is. Left of
 * the point where the circle meets the height Y it is a rectangle; from there on, the integral of sqrt(radius^2 - x^2)
 * is (x sqrt(radius^2 - x^2) + radius^2 asin(x / radius)) / 2. */
static double quarter_area(double radius, double x, double y)
{
    const double sign = (x < 0.0) != (y < 0.0) ? -1.0 : 1.0;
    x = fmin(fabs(x), radius);
    y = fmin(fabs(y), radius);
    if (x * x + y * y <= radius * radius)
        return sign * x * y;
    const double meet = sqrt(radius * radius - y * y), height = sqrt(radius * radius - x * x);
    return sign * (meet * y +
                   (x * height - meet * y + radius * radius * (arcsine(x / radius) - arcsine(meet / radius))) / 2.0);
}

/* The area of the pixel at X, Y that is in the circle. */
static double disk_weight(double radius, int x, int y)
{
    /* Mirrored pixels have equal sides here, and so equal taps. */
    const int larger = abs(x) > abs(y) ? abs(x) : abs(y), smaller = abs(x) + abs(y) - larger;
    return fmax(quarter_area(radius, larger + 0.5, smaller + 0.5) - quarter_area(radius, larger - 0.5, smaller + 0.5) -
                    quarter_area(radius, larger + 0.5, smaller - 0.5) +
                    quarter_area(radius, larger - 0.5, smaller - 0.5),
                0.0);
}

bool make_disk(const struct number *parameters, bool is_16_bit, double *weights, struct filter *filter)
{
    const double radius = fmax(parameters[0].value, 0.5); /* a smaller disk is one pixel, too */
    if (!(parameters[0].value > 0.0 && radius <= MAX_RADIUS))
        return false;

    const int reach = (int)ceil(radius);
    make_square(filter, reach, 1);
    double sum = 0.0;
    for (int i = 0; i < filter->width * filter->width; i++)
        sum += weights[i] = disk_weight(radius, i % filter->width - reach, i / filter->width - reach);
    for (int i = 0; i < filter->width * filter->width; i++)
        weights[i] /= sum;
    set_weights(filter, weights, 1, 0.0, is_16_bit);
    return true;
}

/* The weight of the Laplacian of Gaussian at X, Y is g(x) g(y) (x^2 + y^2 - m) / sigma^2. The textbook's weight is
 * g(x) g(y) (x^2 + y^2 - 2 sigma^2) / sigma^4. There are two differences. The mean m of x^2 + y^2 over all pixels
 * replaces its limit 2 sigma^2, so that the weights sum to 0. A factor of sigma^2 makes the output equally strong for
 * every sigma.
 *
 * Beyond a radius of 2 sigma the weights are positive. The outer ones, which move no output by more than a part of a
 * level, are left out. A smaller m makes the others sum to 0: it adds to them as much as was left out, so both
 * differences are equally large. */
bool make_log(const struct number *parameters, bool is_16_bit, double *weights, struct filter *filter)
{
    const double sigma = parameters[0].value;
    if (!(sigma >= 0.2 && sigma <= 15.75)) /* below 0.2 only the middle is left; 4 * 15.75 is the largest radius */
        return false;

    double gaussian[MAX_PASS_RADIUS + 1], mean = 0.0;
    int radius;
    infinite_weights(sigma, 1.0, gaussian, &radius);
    for (int i = 1; i <= MAX_PASS_RADIUS; i++)
        mean += 4.0 * gaussian[i] * ((double)i * i);

    double inside = gaussian[0], squares = 0.0, outside; /* sums of g and g x^2 inside, and of the weights outside */
    radius = 0;
    do {
        radius++;
        inside += 2.0 * gaussian[radius];
        squares += 2.0 * gaussian[radius] * (radius * radius);
        outside = -inside * (2.0 * squares - mean * inside) / (sigma * sigma);
    } while (radius < MAX_RADIUS &&
             (radius < 2.0 * sigma || outside * (is_16_bit ? 65535.0 : 255.0) > (is_16_bit ? 0.06 : 0.03)));

    make_square(filter, radius, 1);
    mean = 2.0 * squares / inside;
    for (int i = 0; i < filter->width * filter->width; i++) {
        const int x = i % filter->width - radius, y = i / filter->width - radius;
        weights[i] = gaussian[abs(x)] * gaussian[abs(y)] * (x * x + y * y - mean) / (sigma * sigma);
    }
    set_weights(filter, weights, 0, 2.0 * outside, is_16_bit);
    return true;
}

/* Make the filter SPEC with these parameters, for samples of more than 8 bits (IS_16_BIT) or of 8. WEIGHTS is memory,
 * as for struct filter_form. */
static bool generate(const char *spec, const struct filter_form *form, const struct number *parameters, bool is_16_bit,
                     double *weights, struct filter *filter)
{
    filter_begin(STEP_CONVOLVE, spec, form->title, filter);
    if (!form->generate(parameters, is_16_bit, weights, filter))
        return false;
    if (!filter->two_pass) {
        trim_zeros(filter);
        filter_derive(filter, NUMBER_ZERO);
    }
    return true;
}

static bool is_same_grid(const struct filter *a, const struct filter *b)
{
    return !a->two_pass && !b->two_pass && a->width == b->width && a->height == b->height && a->scale == b->scale &&
           memcmp(a->taps, b->taps, sizeof a->taps) == 0;
}

bool filter_generate(const struct filter_form *form, const char *spec, struct filter *filter, struct filter *filter16,
                     struct error *error)
{
    const char *at = spec + strcspn(spec, ":");
    struct number parameters[MAX_PARAMETERS] = {NUMBER_ZERO, NUMBER_ZERO, NUMBER_ZERO};
    int count = 0;
    for (; count < form->parameters && *at == ':'; count++) {
        const char *end = at + 1 + strcspn(at + 1, ":");
        if (number_read(at + 1, end, &parameters[count]) != NUMBER_FINE)
            break;
        at = end;
    }

    double *weights = malloc(FILTER_MAX * FILTER_MAX * sizeof *weights);
    if (weights == NULL)
        return error_no_memory(error, "a filter");
    const bool done = count >= form->parameters - form->optional && *at == '\0' &&
                      generate(spec, form, parameters, false, weights, filter);
    if (!done)
        error_set(error, ERROR_USAGE, "there is no filter \"%s\": %s %s", spec, form->form, form->usage);
    if (done && filter16 != NULL && form->has_filter16 && !filter->exact &&
        generate(spec, form, parameters, true, weights, filter16) && !is_same_grid(filter, filter16))
        filter->filter16 = filter16;
    free(weights);
    return done;
}
