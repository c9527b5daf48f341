/* SPDX-License-Identifier: MIT
 *
 * The tables are made at run time: they are 330 KB, curves are many, and few runs need them. */
#include "image/linear.h"

#include "base/bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HIGHEST = 65535, STEPS = 2 * HIGHEST }; /* a curve is computed at half levels */

const struct curve curve_srgb = {.g = 2.4, .a = 1 / 1.055, .b = 0.055 / 1.055, .c = 1 / 12.92, .d = 0.04045};

/* ---- Powers ---- */

/* FACTORS[0] + FACTORS[1] X + ... */
static double polynomial(double x, const double *factors, int count)
{
    double sum = 0;
    for (int i = count - 1; i >= 0; i--)
        sum = sum * x + factors[i];
    return sum;
}

/* The base-2 logarithm of X > 0. With x = 2^n m and s = (m - 1) / (m + 1), ln m = 2 (s + s^3 / 3 + s^5 / 5...). m is
 * from sqrt(1/2) to sqrt(2), so |s| < 0.172, and what is left out is below 1e-18. */
static double binary_logarithm(double x)
{
    static const double factors[] = {1,        1 / 3.0,  1 / 5.0,  1 / 7.0,  1 / 9.0, 1 / 11.0,
                                     1 / 13.0, 1 / 15.0, 1 / 17.0, 1 / 19.0, 1 / 21.0};
    int n;
    double m = frexp(x, &n);
    if (m < 0.70710678118654752) {
        m *= 2;
        n--;
    }
    const double s = (m - 1) / (m + 1);
    return n + 2.8853900817779268 * s * polynomial(s * s, factors, 11); /* 2 / ln 2 */
}

/* 2^X for X up to 100. With x = n + y and |y| <= 1/2, z = y ln 2 is at most 0.347, and what the series of e^z leaves
 * out is below 1e-17. */
static double binary_power(double x)
{
    static const double factors[] = {
        1,          1,           1 / 2.0,      1 / 6.0,       1 / 24.0,       1 / 120.0,       1 / 720.0,
        1 / 5040.0, 1 / 40320.0, 1 / 362880.0, 1 / 3628800.0, 1 / 39916800.0, 1 / 479001600.0, 1 / 6227020800.0};
    if (x < -100)
        return 0; /* far below a level */
    const double n = floor(x + 0.5);
    return ldexp(polynomial((x - n) * 0.69314718055994531, factors, 14), (int)n);
}

double linear_power(double x, double g)
{
    return x > 0 ? binary_power(fmin(g * binary_logarithm(x), 100)) : 0;
}

/* ---- Curves ---- */

/* ITU-R BT.2100, table 4. */
static double pq_light(double x)
{
    const double root = linear_power(x, 32 / 2523.0), above = root - 3424 / 4096.0;
    return linear_power(above / (2413 / 128.0 - 2392 / 128.0 * root), 16384 / 2610.0);
}

/* ITU-R BT.2100, table 5. */
static double hlg_light(double x)
{
    const double a = 0.17883277, b = 0.28466892, c = 0.55991073;
    return x <= 0.5 ? x * x / 3 : (binary_power((x - c) / a * 1.4426950408889634) + b) / 12; /* 1 / ln 2 */
}

/* The quotient is rounded once, so it is exact where it is a whole number or a half. */
static double sampled_level(const struct curve *curve, uint64_t k)
{
    const uint64_t index = k * (curve->count - 1), rest = index % STEPS;
    const uint8_t *entry = curve->entries + 2 * (index / STEPS);
    const uint64_t sum = big16(entry) * (STEPS - rest) + (rest > 0 ? big16(entry + 2) * rest : 0);
    return (double)sum / STEPS;
}

double linear_level(const struct curve *curve, int k)
{
    const double x = k / (double)STEPS;
    double level;
    switch (curve->kind) {
    case CURVE_SAMPLED:
        return sampled_level(curve, (uint64_t)k);
    case CURVE_PQ:
        level = HIGHEST * pq_light(x);
        break;
    case CURVE_HLG:
        level = HIGHEST * hlg_light(x);
        break;
    default: /* HIGHEST x is k / 2: so the straight part of a profile's curve is exact, and ties are rounded up */
        level = x >= curve->d ? HIGHEST * (linear_power(curve->a * x + curve->b, curve->g) + curve->e)
                              : curve->c * (k / 2.0) + HIGHEST * curve->f;
    }
    return fmax(0, fmin(level, HIGHEST));
}

static bool are_equal(const struct curve *a, const struct curve *b)
{
    return a->kind == b->kind && a->g == b->g && a->a == b->a && a->b == b->b && a->c == b->c && a->d == b->d &&
           a->e == b->e && a->f == b->f && a->count == b->count &&
           (a->count == 0 || memcmp(a->entries, b->entries, 2 * a->count) == 0);
}

/* 1 if all curves are equal, else COUNT. */
static int count_different(const struct curve *curves, int count)
{
    for (int i = 1; i < count; i++)
        if (!are_equal(&curves[i], &curves[0]))
            return count;
    return 1;
}

/* Is the curve sRGB's, but for its rounding? Profiles hold 16 bits after the point. Their curves of sRGB and Display P3
 * are within one level of 65535. A power of 2.2 is 559 levels away. */
static bool is_srgb(const struct curve *curve)
{
    bool is_near = true;
    if (are_equal(curve, &curve_srgb))
        return true;
    for (int k = 0; is_near && k <= STEPS; k += STEPS / 255)
        is_near = fabs(linear_level(curve, k) - linear_level(&curve_srgb, k)) < 2;
    return is_near;
}

/* ---- Tables ---- */

/* Fill in the tables for one depth. An even step is a level, and an odd one is the end of the level before. */
static bool fill_tables(struct linear_tables *tables, const struct curve *curve, int bits)
{
    const int steps = bits == 8 ? 2 * 255 : STEPS;
    double last = 0;
    for (int step = 0, next = 0; step <= steps + 1; step++) {
        const double level = step <= steps ? linear_level(curve, step * (STEPS / steps)) : HIGHEST;
        if (level < last - 1)
            return false;
        last = fmax(last, level);
        if (step % 2 == 0 && bits == 8)
            tables->from8[step / 2] = (uint16_t)(last + 0.5);
        else if (step % 2 == 0)
            tables->from16[step / 2] = (uint16_t)(last + 0.5);
        else
            for (; next <= last; next++)
                if (bits == 8)
                    tables->to8[next] = (uint8_t)(step / 2);
                else
                    tables->to16[next] = (uint16_t)(step / 2);
    }
    return bits == 8 ? tables->from8[255] > tables->from8[0] : tables->from16[HIGHEST] > tables->from16[0];
}

struct linear *linear_allocate(struct error *error)
{
    struct linear *linear = calloc(1, sizeof *linear);
    if (linear == NULL)
        error_no_memory(error, "the tables of linear light");
    return linear;
}

bool linear_set(struct linear *linear, const struct curve *curves, int count, int bits)
{
    struct curve chosen[3] = {{.count = 0}};
    count = count_different(curves, count);
    for (int i = 0; i < count; i++)
        chosen[i] = is_srgb(&curves[i]) ? curve_srgb : curves[i];
    count = count_different(chosen, count);
    bool are_same = count == linear->count;
    for (int i = 0; are_same && i < count; i++) /* the entries for the tables that are there may be gone */
        are_same = linear->curves[i].kind != CURVE_SAMPLED && are_equal(&chosen[i], &linear->curves[i]);
    if (are_same && (linear->depths & bits) != 0)
        return true;
    linear->depths = are_same ? linear->depths | bits : bits;
    linear->count = count;
    linear->version++;
    bool done = true;
    for (int i = 0; done && i < count; i++) {
        linear->curves[i] = chosen[i];
        done = fill_tables(&linear->tables[i], &chosen[i], bits);
    }
    if (!done)
        linear->depths = 0;
    return done;
}
