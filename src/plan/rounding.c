/* SPDX-License-Identifier: MIT
 *
 * The numbers of a filter's rounding, and the proofs that they give the right sample. */
#include "plan/rounding.h"

#include <math.h>

static int64_t clamp64(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* out = clamp(floor((S + B) / D)) without a division, where S is an integer with |S| <= M = 2^31 - 1:
 *
 * Only t = S + B in [0, 256 D) matters: below it the output is 0, above it 255, as at 256 D - 1. So S is first clamped
 * to [-B, 256 D - 1 - B]. Both ends are themselves clamped to 32 bits. This changes nothing for |S| <= M once B is
 * clamped to [-M, 256 D - 1 + M]: at either end of that range every S gives 0 (all t <= 0), or every S gives 255.
 *
 * For D <= 2^23, t < 2^31. With s = ceil(log2 D) - 1 and
 *
 *     m = ceil(2^(32+s) / D) = (2^(32+s) + e) / D,  0 <= e < D:
 *     t m / 2^(32+s) = t/D + t e / (D 2^(32+s)),  and  t e < 2^31 D <= 2^31 2^(s+1) = 2^(32+s),
 *
 * so the second term is below 1/D, and the floor is floor(t/D), exactly. m < 2^32, because D > 2^s. For D = 1 there is
 * no such s; there t <= 255 and (t + 1) (2^32 - 1) >> 32 = t. (Granlund and Montgomery, Division by invariant integers
 * using multiplication, 1994.) */
void rounding_make(int64_t scale, int64_t bias, bool absolute, struct rounding *rounding)
{
    *rounding = (struct rounding){.scale = (int32_t)scale, .absolute = absolute};
    if (scale > ROUNDING_SCALE) {
        rounding->wide = true;
        rounding->bias = bias;
        return;
    }
    bias = clamp64(bias, -INT32_MAX, 256 * scale - 1 + INT32_MAX);
    rounding->low = (int32_t)clamp64(-bias, INT32_MIN, INT32_MAX);
    rounding->high = (int32_t)clamp64(256 * scale - 1 - bias, INT32_MIN, INT32_MAX);
    if (scale == 1) {
        rounding->bias = bias + 1;
        rounding->multiplier = UINT32_MAX;
        return;
    }
    rounding->bias = bias;
    while (scale > (int64_t)2 << rounding->shift)
        rounding->shift++;
    rounding->multiplier =
        (uint32_t)((((uint64_t)1 << (32 + rounding->shift)) + (uint64_t)scale - 1) / (uint64_t)scale);
}

/* With t = S + B, floor(t / D) = floor((t + 1/2) / D). (t + 1/2) / D is at least 1 / 2D away from any integer, so the
 * computed value may err by less than that. It is fl(S fl(1/D)) + fl((B + 1/2) fl(1/D)), rounded. With u = 2^-53:
 *
 * - The two products err by 2u |S| / D and 2u (|B| + 1/2) / D, and by so little more that 3u covers it.
 * - The sum errs by 65536 u if it is below 65536. If it is above, or below 0, it stays there, because 0 and 65536
 *   are floating-point numbers.
 *
 * The whole error is below 1 / 2D if
 *
 *     6 |S| + 6 |B| + 3 + 2^17 D < 2^53
 *
 * |S| <= M = 2^40 and D <= 2^30. As for 8 bits, nothing changes when B is clamped to [-M - D, 65536 D + M], where |B| <
 * 2^47. So the left side is below 2^50. Truncation is floor from 0 on, and between -1 and 0 both ways give 0. */
void rounding16_make(int64_t scale, int64_t bias, bool absolute, struct rounding16 *rounding)
{
    const int64_t max = (int64_t)1 << 40;
    bias = clamp64(bias, -max - scale, 65536 * scale + max);
    rounding->factor = 1.0 / (double)scale;
    rounding->term = ((double)bias + 0.5) * rounding->factor;
    rounding->absolute = absolute;
}

/* Levels are computed in doubles. Where `is_exact` is set, 2^-33 is added, so that none is too low.
 *
 * With T = 257 O + 1/2, O = p/r and w = 2r: level n is reached if x = sqrt(N) / D + T >= n. This is equivalent to
 * w sqrt(N) >= v = w D (n - T), an integer. If it is not reached, w^2 N <= v^2 - 1, so that v - w sqrt(N) >= 1 / 2v,
 * and x is below n by at least 1 / (2v w D). With |T| < 2^16 + 1, v <= w D 2^17, and the distance is at least
 * 2^-18 / (w D)^2. For w D <= 128 that is 2^-32.
 *
 * The computed value errs by less than 2^-33. N is exact up to 2^53, and a larger N gives the highest level. Up to
 * there, sqrt(N) / D < 2^17 + 2. With u = 2^-53, the root, 1 / D and their product err by 3u of it, T by less than
 * 2u 2^17, and the sum by u 2^17 at most. All of it is below u 2^20. */
void root16_make(const struct filter *filter, struct root16 *root)
{
    *root = (struct root16){
        .numerator = filter->offset_numerator,
        .denominator = filter->offset_denominator,
        .scale = filter->scale,
        .is_exact = filter->offset_denominator <= 64 && 2 * filter->offset_denominator * filter->scale <= 128 &&
                    fabs(filter->offset) <= 255,
    };
    root->rounding.factor = 1.0 / filter->scale;
    root->rounding.term = 257 * filter->offset + 0.5 + (root->is_exact ? ldexp(1, -33) : 0);
}

bool root_fits_float(const struct filter *filter, int32_t *twice_bias)
{
    const int64_t max = 1 << 24;
    const double bias = 2 * filter->scale * (filter->offset + 0.5);
    if (filter->combine != COMBINE_MAGNITUDE || filter->absolute_sum * 255 >= max ||
        filter->steps[FILTER_LEVELS - 1] > max || !(bias >= 0 && bias <= 1 << 13))
        return false;
    *twice_bias = (int32_t)bias;
    for (int n = 1; n < FILTER_LEVELS; n++) {
        const int64_t k = 2 * (int64_t)filter->scale * n - *twice_bias; /* 4 N >= k^2: N >= k^2 / 4, rounded up */
        if (filter->steps[n] != (k <= 0 ? 0 : (k * k + 3) / 4))
            return false;
    }
    return true;
}
