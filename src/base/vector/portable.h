/* SPDX-License-Identifier: MIT
 *
 * The words of x86.h in C, for any processor. */
#ifndef GPUCONV_BASE_VECTOR_PORTABLE_H
#define GPUCONV_BASE_VECTOR_PORTABLE_H

#include "base/vector/quad.h"

#include <math.h>

#define HAS_PAIRS 0
#define HAS_BYTE_PAIRS 0
#define HAS_FOURS 0
#define HAS_SHUFFLE 0

INLINE shorts pack(ints a, ints b)
{
    const ints low = repeat(INT16_MIN), high = repeat(INT16_MAX);
    return pack_small(smaller(larger(a, low), high), smaller(larger(b, low), high));
}

INLINE shorts pack_unsigned(ints a, ints b)
{
    const ints low = repeat(0), high = repeat(UINT16_MAX);
    return pack_small(smaller(larger(a, low), high), smaller(larger(b, low), high));
}

INLINE shorts clamp_to_bytes(shorts a)
{
    const shorts is_large = a > 255;
    return ((a & ~is_large) | (255 & is_large)) & (a > 0);
}

INLINE shorts pack_shorts_unsigned(shorts a, shorts b)
{
    enum { LOW = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? 0 : 1 };
    return (shorts)CHOOSE(uchars, clamp_to_bytes(a), clamp_to_bytes(b), LOW, LOW + 2, LOW + 4, LOW + 6, LOW + 8,
                          LOW + 10, LOW + 12, LOW + 14, LOW + 16, LOW + 18, LOW + 20, LOW + 22, LOW + 24, LOW + 26,
                          LOW + 28, LOW + 30);
}

/* The halves of 32 bits are the shorts, in the machine's order. */
INLINE ints multiply_pairs(shorts a, shorts b)
{
    const ints low_a = (ints)((uints)a << 16) >> 16, low_b = (ints)((uints)b << 16) >> 16;
    return low_a * low_b + ((ints)a >> 16) * ((ints)b >> 16);
}

INLINE shorts multiply_high_ushorts(shorts a, shorts b)
{
    const uints low = ((uints)a & 0xffff) * ((uints)b & 0xffff), high = ((uints)a >> 16) * ((uints)b >> 16);
    return (shorts)(low >> 16 | (high & 0xffff0000));
}

INLINE ints multiply_high(ints a, ints b)
{
    for (int l = 0; l < LANES; l++)
        a[l] = (int32_t)((uint64_t)(uint32_t)a[l] * (uint32_t)b[l] >> 32);
    return a;
}

INLINE uchars smaller_uchars(uchars a, uchars b)
{
    const uchars mask = (uchars)(a < b);
    return (a & mask) | (b & ~mask);
}

INLINE uchars larger_uchars(uchars a, uchars b)
{
    const uchars mask = (uchars)(a < b);
    return (b & mask) | (a & ~mask);
}

INLINE uchars add_uchars(uchars a, uchars b)
{
    const uchars sum = a + b;
    return sum | (uchars)(sum < a);
}

INLINE uchars subtract_uchars(uchars a, uchars b)
{
    return (a - b) & (uchars)(a > b);
}

INLINE ints add_byte_sums(ints sums, uchars bytes)
{
    for (int i = 0; i < VECTOR; i++)
        sums[i / 4] += bytes[i];
    return sums;
}

INLINE uint64_t equal_uchars(uchars a, uchars b)
{
    uint64_t bits = 0;
    for (int i = 0; i < VECTOR; i++)
        bits |= (uint64_t)(a[i] == b[i]) << i;
    return bits;
}

INLINE ints prefix_sums(ints value)
{
    uints sums = (uints)value;
    for (int l = 1; l < LANES; l++)
        sums[l] += sums[l - 1];
    return (ints)sums;
}

INLINE doubles larger_doubles(doubles a, doubles b)
{
    for (int l = 0; l < LANES / 2; l++)
        a[l] = a[l] > b[l] ? a[l] : b[l];
    return a;
}

INLINE doubles smaller_doubles(doubles a, doubles b)
{
    for (int l = 0; l < LANES / 2; l++)
        a[l] = a[l] < b[l] ? a[l] : b[l];
    return a;
}

INLINE doubles square_root_doubles(doubles value)
{
    for (int l = 0; l < LANES / 2; l++)
        value[l] = sqrt(value[l]);
    return value;
}

INLINE doubles first_doubles(ints value)
{
    return (doubles){value[0], value[1]};
}

INLINE doubles last_doubles(ints value)
{
    return (doubles){value[2], value[3]};
}

INLINE floats square_root(floats value)
{
    for (int l = 0; l < LANES; l++)
        value[l] = sqrtf(value[l]);
    return value;
}

INLINE doubles load_doubles(const int32_t *from)
{
    return (doubles){from[0], from[1]};
}

INLINE ints join_doubles(doubles first, doubles last)
{
    return (ints){(int32_t)first[0], (int32_t)first[1], (int32_t)last[0], (int32_t)last[1]};
}

#endif
