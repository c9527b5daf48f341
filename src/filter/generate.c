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

static bool make_box(const struct number *parameters, struct filter *filter)
{
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

static bool make_gaussian(const struct number *parameters, struct filter *filter)
{
    const double sigma = parameters[0].value;
    if (!(sigma > 0.0 && sigma <= 21.0)) /* 3 * 21 is the largest radius */
        return false;

    /* Column and row are one vector of integers, so the taps are their product by construction. The vector's sum is
     * 2^11: sum|q| is 2^22, and sum|q| * 255 = 1,069,547,520 < 2^31. A sum of 2^12 would give four times that. */
    const int32_t unit = 1 << 11;
    const int radius = (int)ceil(3.0 * sigma);
    double weights[MAX_RADIUS + 1];
    int32_t vector[MAX_RADIUS + 1];
    gaussian_weights(sigma, radius, weights);
    int32_t missing = unit;
    for (int i = 0; i <= radius; i++) {
        vector[i] = (int32_t)floor(weights[i] * unit);
        missing -= i == 0 ? vector[i] : 2 * vector[i];
    }

    /* Add the missing weight to the largest remainders, on both sides at once. If it is odd, the last unit goes to the
     * middle. */
    for (; missing >= 2; missing -= 2) {
        int largest = 1;
        for (int i = 2; i <= radius; i++) {
            if (weights[i] * unit - vector[i] > weights[largest] * unit - vector[largest])
                largest = i;
        }
        vector[largest]++;
    }
    vector[0] += missing;

    make_square(filter, radius, unit * unit);
    filter->exact = false;
    for (int y = -radius; y <= radius; y++) {
        for (int x = -radius; x <= radius; x++) {
            const int32_t tap = vector[abs(x)] * vector[abs(y)];
            *tap_at(filter, x, y) = tap;
            filter->largest_error += 255.0 * fabs((double)tap / filter->scale - weights[abs(x)] * weights[abs(y)]);
        }
    }
    return true;
}

static bool make_motion(const struct number *parameters, struct filter *filter)
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

static bool make_disk(const struct number *parameters, struct filter *filter)
{
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

static bool make_log(const struct number *parameters, struct filter *filter)
{
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
     .usage = "takes one number above 0 and up to 21, for example gaussian:2.5",
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

bool filter_generate(const char *spec, size_t index, struct filter *filter, struct error *error)
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

    memset(filter, 0, sizeof *filter);
    if (count < generator->parameters || *at != '\0' || !generator->make(parameters, filter))
        return error_set(error, ERROR_USAGE, "there is no filter \"%s\": %s %s", spec, filter_forms[index][0],
                         generator->usage);
    filter_set_name(filter, spec);
    snprintf(filter->title, sizeof filter->title, "%s", generator->title);
    trim_zeros(filter);
    filter_derive(filter, NUMBER_ZERO);
    return true;
}
