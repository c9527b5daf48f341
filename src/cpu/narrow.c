/* SPDX-License-Identifier: MIT
 *
 * The limits of ARITHMETIC_NARROW. */
#include "cpu/narrow.h"

#include <assert.h>

static_assert(NARROW_PAIR * 255 <= INT16_MAX && INT8_MIN * 255 >= INT16_MIN, "16 bits hold the products of a lane");

/* The least and the largest sum of samples of uint8_t. */
static void sum_range(const int32_t *taps, int count, int32_t *min, int32_t *max)
{
    *min = *max = 0;
    for (int k = 0; k < count; k++)
        *(taps[k] < 0 ? min : max) += taps[k] * 255;
}

bool narrow_fits(const int32_t *taps, int count, int16_t *start)
{
    int32_t min, max;
    for (int k = 0; k < count; k++)
        if (taps[k] < INT8_MIN || taps[k] > INT8_MAX)
            return false;
    sum_range(taps, count, &min, &max);
    *start = (int16_t)(INT16_MIN - min);
    return max - min <= UINT16_MAX;
}

/* With t = S + B, the output is floor(t / D), clamped. The pass makes t + LESS, which uint16_t holds: LESS is 0, or it
 * makes the least sum 0. Let M = (2^(16 + shift) + e) / D. Then floor(t M / 2^(16 + shift)) = floor(t / D) where
 * t e < 2^(16 + shift). From t = 256 D on, any result above 255 will do, and a larger t has no smaller one. */
void narrow_finish_make(const struct plan *plan, int count, struct pass *pass)
{
    const struct filter *f = plan->filter;
    int32_t min, max;
    sum_range(f->taps, count, &min, &max);
    const int64_t lowest = min + (int64_t)f->bias, highest = max + (int64_t)f->bias, top = UINT16_MAX;
    if (f->absolute || f->scale > top || lowest < -top || (lowest >= 0 && highest > top))
        return;
    const int64_t largest = highest < 256 * (int64_t)f->scale ? highest : 256 * (int64_t)f->scale;
    for (int shift = 0; shift < 16; shift++) {
        const int64_t unit = (int64_t)1 << (16 + shift), multiplier = (unit + f->scale - 1) / f->scale;
        if (f->scale > 1 && (multiplier > top || (multiplier * f->scale - unit) * largest >= unit))
            continue;
        pass->narrow_start = (int16_t)(lowest < 0 ? -min : f->bias);
        pass->finish.narrow = (struct narrow_finish){
            .is_used = true,
            .less = (uint16_t)(lowest < 0 ? -lowest : 0),
            .multiplier = (uint16_t)(f->scale > 1 ? multiplier : 0),
            .shift = f->scale > 1 ? shift : 0,
        };
        return;
    }
}

/* The level is the greatest n with 2 n <= 2 sqrt(N) + b, where b is the twice_bias. If n is too large, then with
 * k = 2 n - b, 4 N < k^2. So sqrt(N) <= sqrt(k^2 - 1) / 2, which is at least 1 / 4k below k / 2. Levels up to 255 and
 * |b| <= 2 give k <= 512: half of that distance, 2^-12, is added. Below 258, the roundings of N, of the root, of the
 * term and of the sum err by 2 * 258 * 2^-24 at most. N is exact below 2^24, and larger roots give more than 255. */
bool narrow_root_fits(const struct plan *plan, float *term)
{
    const struct filter *f = plan->filter;
    const int count = f->width * f->height;
    for (int grid = 0; grid < 2; grid++)
        if (taps_absolute_sum(f->taps + grid * count, count) * 255 > INT16_MAX)
            return false;
    *term = (float)plan->twice_bias / 2 + 1.0f / 4096;
    return plan->root_in_float && f->scale == 1 && plan->twice_bias >= -2 && plan->twice_bias <= 2;
}
