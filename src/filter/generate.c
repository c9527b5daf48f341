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

const char *const filter_forms[][2] = {
    {"box:R", "mean of a square of 2R+1 by 2R+1 pixels"},
    {"gaussian:SIGMA", "Gaussian blur with a standard deviation of SIGMA pixels"},
    {"motion:LENGTH:ANGLE", "motion blur along a line, ANGLE in degrees counter-clockwise from the x axis"},
    {"disk:R", "mean of a disk of radius R pixels, as a lens out of focus makes it"},
    {"log:SIGMA", "Laplacian of Gaussian times SIGMA squared: finds spots of about SIGMA pixels"},
    {NULL, NULL},
};

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

/* The tap at X, Y from the anchor. */
static int32_t *tap_at(struct filter *filter, int x, int y)
{
    return &filter->taps[(filter->anchor_y + y) * filter->width + filter->anchor_x + x];
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
            *to++ = *tap_at(filter, x, y);
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

static bool make_box(const struct number *parameters, bool deep, struct filter *filter)
{
    (void)deep;
    if (!number_is_integer(parameters[0], 0, MAX_RADIUS))
        return false;
    const int radius = (int)parameters[0].numerator, side = 2 * radius + 1;
    make_square(filter, radius, side * side);
    for (int i = 0; i < side * side; i++)
        filter->taps[i] = 1;
    return true;
}

/* The weights of a Gaussian at distances 0 to RADIUS. Those of both sides sum to 1. */
static void gaussian_weights(double sigma, int radius, double *weights)
{
    double sum = weights[0] = 1.0;
    for (int i = 1; i <= radius; i++) {
        weights[i] = decay(i / sigma * (i / sigma) / 2.0);
        sum += 2.0 * weights[i];
    }
    for (int i = 0; i <= radius; i++)
        weights[i] /= sum;
}

/* ---- Blurs in two passes ---- */

/* The largest radius of a filter in two passes. */
#define MAX_PASS_RADIUS (FILTER_PASS_MAX / 2)

/* How the taps of a blur are rounded: each vector's integer taps sum to 2^unit_bits, and the sums of a row are rounded to
 * 2^-fraction_bits levels. */
struct precision {
    int unit_bits, fraction_bits;
};

/* The weights of the Gaussian at distances from 0 to MAX_PASS_RADIUS, as the sum over all integers is 1. *RADIUS is the
 * least distance whose weights, with all up to it, leave out at most half of the mass LEFT_OUT on each side. */
static void infinite_weights(double sigma, double left_out, double *weights, int *radius)
{
    double sum = weights[0] = 1.0;
    for (int i = 1; i < 40 * sigma + 2; i++) { /* e^-800 is below the least double */
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
    double remainders[MAX_PASS_RADIUS + 1], inside = 0.0;
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

/* Make the Gaussian blur of SIGMA as a filter in two passes. Let v be the vector of taps, divided by its sum, and g the
 * true weights, which go on for ever. The outputs differ by at most
 *
 *     levels * 1/2 * sum|v x v - g x g| <= levels * sum|v - g|
 *
 * because v and g have the sum 1, and that of their difference is 0. The rounding of the row's sums adds half of its
 * unit. `largest_error` is the sum of both, in levels of the samples' depth.
 *
 * For samples of 8 bits, unit_bits + fraction_bits = 24, or 23 if a tap would not be below 2^15 otherwise. The finer the
 * one, the coarser the other: the best pair is taken. For 16 bits, the largest tap is from 2^21 to 2^22. */
static void make_blur(double sigma, bool deep, struct filter *filter)
{
    const int tap_bits = deep ? 22 : 15;
    const double levels = deep ? 65535.0 : 255.0;
    double weights[MAX_PASS_RADIUS + 1];
    int32_t vector[MAX_PASS_RADIUS + 1];
    int radius;
    infinite_weights(sigma, (deep ? 0.06 : 0.03) / levels / 2.0, weights, &radius);
    if (radius == 0) {
        make_square(filter, 0, 1);
        filter->taps[0] = 1;
        filter->exact = false;
        filter->largest_error = levels * (2.0 - 2.0 * weights[0]);
        return;
    }

    struct precision best = {0, 0};
    for (int fraction_bits = deep ? 6 : 8; fraction_bits >= (deep ? 6 : 3); fraction_bits--) {
        struct precision tried = {deep ? 31 : 24 - fraction_bits, fraction_bits};
        while (ldexp(weights[0], tried.unit_bits) + 1.0 >= 1 << tap_bits)
            tried.unit_bits--;
        const double error =
            levels * round_weights(weights, radius, tried.unit_bits, vector) + ldexp(0.5, -fraction_bits);
        if (best.unit_bits == 0 || error < filter->largest_error) {
            best = tried;
            filter->largest_error = error;
        }
    }
    round_weights(weights, radius, best.unit_bits, vector);

    make_square(filter, radius, 1);
    filter->exact = false;
    filter->two_pass = filter->separable = true;
    filter->tap_sum = filter->absolute_sum = 1;
    filter->row_shift = best.unit_bits - best.fraction_bits;
    filter->pass_scale = (int64_t)1 << (best.unit_bits + best.fraction_bits);
    for (int i = -radius; i <= radius; i++)
        filter->column[radius + i] = filter->row[radius + i] = vector[abs(i)];
}

static bool make_gaussian(const struct number *parameters, bool deep, struct filter *filter)
{
    const double sigma = parameters[0].value;
    if (!(sigma > 0.0 && sigma <= 170.0))
        return false;
    make_blur(sigma, deep, filter);
    return true;
}

static bool make_motion(const struct number *parameters, bool deep, struct filter *filter)
{
    (void)deep;
    const double length = parameters[0].value, angle = parameters[1].value;
    if (!(length >= 1.0 && length <= FILTER_MAX && fabs(angle) <= 360.0))
        return false;

    /* A line has no direction: angles below 180 degrees are enough. Rows count downwards: counter-clockwise is -y. */
    const double direction = angle < 0.0 ? fmod(angle + 360.0, 180.0) : fmod(angle, 180.0);
    const double dx = direction <= 90.0 ? sine(90.0 - direction) : -sine(direction - 90.0);
    const double dy = direction <= 90.0 ? -sine(direction) : -sine(180.0 - direction);
    const double half = (length - 1.0) / 2.0;

    make_square(filter, MAX_RADIUS, 1);
    int32_t sum = 0;
    for (int y = -MAX_RADIUS; y <= MAX_RADIUS; y++) {
        for (int x = -MAX_RADIUS; x <= MAX_RADIUS; x++) {
            const double across = x * dy - y * dx;
            const double beyond = fmax(fabs(x * dx + y * dy) - half, 0.0);
            const double distance = sqrt(across * across + beyond * beyond);
            const int32_t weight = (int32_t)round(256.0 * fmax(1.0 - distance, 0.0));
            *tap_at(filter, x, y) = weight;
            sum += weight;
        }
    }
    filter->scale = sum; /* at least 256, the weight of the middle */
    return true;
}

static bool make_disk(const struct number *parameters, bool deep, struct filter *filter)
{
    (void)deep;
    const double radius = parameters[0].value;
    if (!(radius > 0.0 && radius <= MAX_RADIUS))
        return false;

    /* The weight of a pixel: how many of 16 x 16 points in it are inside the circle. In units of 1/32 pixel, the points
     * are at the odd numbers from -15 to 15. */
    const double square = 32.0 * radius * (32.0 * radius);
    const int reach = (int)ceil(radius);
    make_square(filter, reach, 1);
    int32_t sum = 0;
    for (int y = -reach; y <= reach; y++) {
        for (int x = -reach; x <= reach; x++) {
            int32_t inside = 0;
            for (int i = 0; i < 256; i++) {
                const int sample_x = 32 * x + i % 16 * 2 - 15, sample_y = 32 * y + i / 16 * 2 - 15;
                inside += sample_x * sample_x + sample_y * sample_y <= square;
            }
            *tap_at(filter, x, y) = inside;
            sum += inside;
        }
    }
    if (sum == 0) { /* the circle is smaller than the distance of two points: one pixel */
        *tap_at(filter, 0, 0) = 1;
        sum = 1;
    }
    filter->scale = sum;
    return true;
}

/* The weight of the Laplacian of Gaussian at X, Y: g(x) g(y) (x^2 + y^2 - MEAN) / sigma^2. The textbook's weight is
 * g(x) g(y) (x^2 + y^2 - 2 sigma^2) / sigma^4. There are two differences. MEAN, the mean of x^2 + y^2 over the taps,
 * replaces its limit 2 sigma^2, so that the weights sum to 0. A factor of sigma^2 makes the output equally strong for
 * every sigma. */
static double log_weight(const double *weights, double sigma, double mean, int x, int y)
{
    return weights[abs(x)] * weights[abs(y)] * (x * x + y * y - mean) / (sigma * sigma);
}

static bool make_log(const struct number *parameters, bool deep, struct filter *filter)
{
    (void)deep;
    const double sigma = parameters[0].value;
    if (!(sigma >= 0.2 && sigma <= 15.75)) /* below 0.2 only the middle is left; 4 * 15.75 is the largest radius */
        return false;

    const int radius = (int)ceil(4.0 * sigma);
    double weights[MAX_RADIUS + 1], mean = 0.0;
    gaussian_weights(sigma, radius, weights);
    for (int i = 1; i <= radius; i++)
        mean += 4.0 * weights[i] * (i * i);

    /* sum|weight| is at most 2.15, at a sigma of 0.48, so 2^21 is the finest scale that fits every sigma. */
    const int32_t unit = 1 << 21;
    make_square(filter, radius, unit);
    filter->exact = false;
    int32_t sum = 0;
    for (int y = -radius; y <= radius; y++) {
        for (int x = -radius; x <= radius; x++)
            sum += *tap_at(filter, x, y) = (int32_t)round(log_weight(weights, sigma, mean, x, y) * unit);
    }
    *tap_at(filter, 0, 0) -= sum; /* so the sum is 0, and the filter stays symmetric */

    for (int y = -radius; y <= radius; y++) {
        for (int x = -radius; x <= radius; x++) {
            const double tap = (double)*tap_at(filter, x, y) / unit;
            filter->largest_error += 255.0 * fabs(tap - log_weight(weights, sigma, mean, x, y));
        }
    }
    return true;
}

const struct generator generators[GENERATOR_COUNT] = {
    {.name = "box",
     .parameters = 1,
     .title = "mean of a square",
     .usage = "takes one whole number from 0 to 63, for example box:2",
     .make = make_box},
    {.name = "gaussian",
     .parameters = 1,
     .title = "Gaussian blur",
     .usage = "takes one number above 0 and up to 170, for example gaussian:2.5",
     .has_deep = true,
     .make = make_gaussian},
    {.name = "motion",
     .parameters = 2,
     .title = "motion blur",
     .usage = "takes a length from 1 to 127 and an angle from -360 to 360 degrees, for example motion:15:30",
     .make = make_motion},
    {.name = "disk",
     .parameters = 1,
     .title = "mean of a disk",
     .usage = "takes one number above 0 and up to 63, for example disk:4.5",
     .make = make_disk},
    {.name = "log",
     .parameters = 1,
     .title = "Laplacian of Gaussian",
     .usage = "takes one number from 0.2 to 15.75, for example log:1.5",
     .make = make_log},
};

static_assert(sizeof filter_forms / sizeof filter_forms[0] == GENERATOR_COUNT + 1, "a generator has no form");

size_t generator_index(const char *spec, size_t length)
{
    size_t i = 0;
    while (i < GENERATOR_COUNT &&
           (strlen(generators[i].name) != length || memcmp(generators[i].name, spec, length) != 0))
        i++;
    return i;
}

/* Make the filter SPEC with these parameters, for samples of more than 8 bits (DEEP) or of 8. */
static bool generate(const char *spec, const struct generator *generator, const struct number *parameters, bool deep,
                     struct filter *filter)
{
    memset(filter, 0, sizeof *filter);
    if (!generator->make(parameters, deep, filter))
        return false;
    filter_set_name(filter, spec);
    snprintf(filter->title, sizeof filter->title, "%s", generator->title);
    if (!filter->two_pass) {
        trim_zeros(filter);
        filter_derive(filter, NUMBER_ZERO);
    }
    return true;
}

bool filter_generate(const char *spec, size_t index, struct filter *filter, struct filter *deep, struct error *error)
{
    const struct generator *generator = &generators[index];
    const char *at = spec + strlen(generator->name);
    struct number parameters[MAX_PARAMETERS];
    int count = 0;
    for (; count < generator->parameters && *at == ':'; count++) {
        const char *end = at + 1 + strcspn(at + 1, ":");
        if (number_read(at + 1, end, &parameters[count]) != NUMBER_FINE)
            break;
        at = end;
    }

    if (count < generator->parameters || *at != '\0' || !generate(spec, generator, parameters, false, filter))
        return error_set(error, ERROR_USAGE, "there is no filter \"%s\": %s %s", spec, filter_forms[index][0],
                         generator->usage);
    if (generator->has_deep && deep != NULL && generate(spec, generator, parameters, true, deep))
        filter->deep = deep;
    return true;
}
