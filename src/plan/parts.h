/* SPDX-License-Identifier: MIT
 *
 * Taps in parts. An instruction that multiplies bytes or words takes only small taps, so a larger tap is cut:
 *
 *     tap = part_0 + 2^bits part_1 + 2^(2 bits) part_2 + ...,  -2^(bits-1) <= part_k < 2^(bits-1)
 *
 * This is the tap in balanced base 2^bits. It exists and is unique. part_0 is the only number of that range that is
 * congruent to the tap modulo 2^bits. The rest is (tap - part_0) / 2^bits. Its absolute value is at most half of the
 * tap's, if the tap's is 2^bits or more. So the parts end. */
#ifndef GPUCONV_PARTS_H
#define GPUCONV_PARTS_H

#include <stdint.h>

/* Part PART of a tap. Parts that tap_parts does not count are 0. */
static inline int32_t tap_part(int64_t tap, int part, int bits)
{
    const int64_t half = (int64_t)1 << (bits - 1);
    for (;; part--) {
        const int64_t lowest = ((tap + half) & (2 * half - 1)) - half;
        if (part == 0)
            return (int32_t)lowest;
        tap = (tap - lowest) / (2 * half);
    }
}

/* How many parts a tap has, at least 1. */
static inline int tap_parts(int64_t tap, int bits)
{
    const int64_t half = (int64_t)1 << (bits - 1);
    int parts = 1;
    for (; tap < -half || tap >= half; parts++)
        tap = (tap - tap_part(tap, 0, bits)) / (2 * half);
    return parts;
}

#endif
