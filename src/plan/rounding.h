/* SPDX-License-Identifier: MIT
 *
 * How an integer sum becomes a sample. Every variant, on the CPU and on a GPU, uses these functions or computes the
 * same. rounding.c has the proofs. */
#ifndef GPUCONV_ROUNDING_H
#define GPUCONV_ROUNDING_H

#include "filter/filter.h"
#include "image/image.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* The largest scale D for which a multiplication replaces the division. */
#define ROUNDING_SCALE (1 << 23)

/* How a sum S of taps times samples becomes a sample of uint8_t, without a division for each output:
 *
 *     S = |S| where absolute;  t = min(max(S, low), high) + bias;  out = t * multiplier >> 32 >> shift
 *
 * This equals clamp(floor((S + B) / D)) for every |S| < 2^31 and D up to ROUNDING_SCALE (proof: rounding_make). For a
 * larger D (`wide`), t is kept in 64 bits and divided. */
struct rounding {
    int64_t bias; /* wide: B; else, modulo 2^32, the number that makes t start at 0 (at 1 where D is 1) */
    int32_t low, high;
    uint32_t multiplier;
    int32_t shift;
    int32_t scale;
    bool wide;
    bool absolute;
};

/* How a sum S of samples of uint16_t, |S| < 2^40, becomes one of uint16_t:
 *
 *     S = |S| where absolute;  out = truncate(min(max(S * factor + term, 0), 65535))
 *
 * This equals clamp(floor((S + B) / D)) with B = floor(D * (257 * O + 1/2)) for every D up to 2^30, whether or not the
 * product is rounded before the addition (proof: rounding16_make). */
struct rounding16 {
    double factor, term;
    bool absolute;
};

/* How two such sums become a level with COMBINE_MAGNITUDE, O = numerator / denominator:
 *
 *     the greatest n up to 65535 with n <= sqrt(s1^2 + s2^2) / D + 257 * O + 1/2, or 0
 *
 * `rounding` takes the root, which is computed in doubles. Where `is_exact` is set, the result is n (proof:
 * root16_make). Otherwise it may be wrong, and root16_reaches corrects it. */
struct root16 {
    struct rounding16 rounding;
    int64_t numerator, denominator;
    int32_t scale;
    bool is_exact;
};

/* Derive the numbers of a filter's rounding, for D, B and abs. plan_make calls all three. */
void rounding_make(int64_t scale, int64_t bias, bool absolute, struct rounding *rounding);
void rounding16_make(int64_t scale, int64_t bias, bool absolute, struct rounding16 *rounding);
void root16_make(const struct filter *filter, struct root16 *root);

/* Do floats hold all sums of samples of SAMPLE, _U8 or _U16, exactly, in any order? Every partial sum is an integer of
 * at most sum|q| times the highest sample, and floats hold all integers up to 2^24. */
static inline bool sums_fit_float(const struct filter *filter, enum sample sample)
{
    return filter->absolute_sum * (sample == SAMPLE_U16 ? 65535 : 255) < 1 << 24;
}

/* May floats and one exact test find the level of COMBINE_MAGNITUDE? They may if three conditions hold: sums are exact
 * in float; 2 D (O + 1/2) is an integer from 0 to 2^13; squares N of at most 2^24 reach the highest level. Then the
 * squares of all sums that give a lower level are exact in float, those of larger sums stay above 2^24 when they are
 * rounded, and
 *
 *     level n is reached  <=>  k |k| <= 4 N,  k = 2 D n - *TWICE_BIAS,  |k| <= 2^13, k k <= 2^26
 *
 * which 32 bits hold. The function checks for each level that this gives the filter's steps. */
bool root_fits_float(const struct filter *filter, int32_t *twice_bias);

/* The level of COMBINE_MAGNITUDE for any two sums: the last of the filter's STEPS that s1^2 + s2^2 reaches. */
HOST_DEVICE static inline uint8_t root_level(const int64_t *steps, int32_t first, int32_t second)
{
    const uint64_t squares = (uint64_t)((int64_t)first * first) + (uint64_t)((int64_t)second * second);
    int level = 0;
    for (int half = FILTER_LEVELS / 2; half > 0; half /= 2)
        level += squares >= (uint64_t)steps[level + half] ? half : 0;
    return (uint8_t)level;
}

/* The formula at struct rounding for a scale that is too large for 32 bits. It is not inlined: it is rare, and its
 * division is long. It takes values, because a pointer would force the kernels' parameters into local memory. */
HOST_DEVICE NOT_INLINED static uint8_t rounding_apply_wide(int64_t bias, int32_t scale, int32_t sum)
{
    const int64_t t = sum + bias;
    const int64_t level = t < 0 ? 0 : t / scale;
    return (uint8_t)(level < 255 ? level : 255);
}

/* One output from its sum, by the formula at struct rounding. */
HOST_DEVICE static inline uint8_t rounding_apply(const struct rounding *r, int32_t sum)
{
    if (r->absolute && sum < 0)
        sum = -sum;
    if (r->wide)
        return rounding_apply_wide(r->bias, r->scale, sum);
    sum = sum < r->low ? r->low : sum > r->high ? r->high : sum;
    const uint32_t t = (uint32_t)sum + (uint32_t)(uint64_t)r->bias;
    return (uint8_t)((uint64_t)t * r->multiplier >> 32 >> r->shift);
}

/* One output of uint16_t from its sum, by the formula at struct rounding16. */
HOST_DEVICE static inline uint16_t rounding16_apply(const struct rounding16 *r, double sum)
{
    const double value = (r->absolute && sum < 0 ? -sum : sum) * r->factor + r->term;
    return (uint16_t)(value < 0 ? 0 : value > 65535 ? 65535 : value);
}

__extension__ typedef __int128 int128;
__extension__ typedef unsigned __int128 uint128;

/* Does sqrt(SQUARES) / D + 257 * O + 1/2 reach the level? It does if sqrt(SQUARES) >= D (level - 257 * O - 1/2). With
 * O = p / r and both sides times 2r and squared, this is 4 r^2 SQUARES >= edge^2, unless the edge is below 0.
 *
 * sqrt(SQUARES) <= |s1| + |s2| < 2^40 and r <= 2^20, so the left side is below 2^122, and no sum reaches an edge of
 * 2^61 or more. The edge itself is below 2^77, because D <= 2^30 and |p| < 2^16 r. */
HOST_DEVICE static inline bool root16_reaches(const struct root16 *root, uint128 squares, int level)
{
    const int128 r = root->denominator, p = root->numerator;
    const int128 edge = root->scale * (2 * r * level - 514 * p - r);
    return edge <= 0 || (edge < (int128)1 << 61 && 4 * (uint128)(r * r) * squares >= (uint128)(edge * edge));
}

/* The level of COMBINE_MAGNITUDE of two sums, by the formula at struct root16. */
HOST_DEVICE static inline uint16_t root16_level(const struct root16 *root, double first, double second)
{
    int level = rounding16_apply(&root->rounding, sqrt(first * first + second * second));
    if (!root->is_exact) {
        const int64_t a = (int64_t)first, b = (int64_t)second;
        const uint128 squares = (uint128)((int128)a * a) + (uint128)((int128)b * b);
        while (level < 65535 && root16_reaches(root, squares, level + 1))
            level++;
        while (level > 0 && !root16_reaches(root, squares, level))
            level--;
    }
    return (uint16_t)level;
}

#endif
