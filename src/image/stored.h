/* SPDX-License-Identifier: MIT
 *
 * Samples of a caller that are computed as floats, and stored in another way. CPU and GPU convert them by these
 * functions, so both give the same bits. */
#ifndef GPUCONV_STORED_H
#define GPUCONV_STORED_H

#include "base/inline.h"
#include "image/image.h"

#include <float.h>
#include <math.h>
#include <string.h>

HOST_DEVICE static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

HOST_DEVICE static inline float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* IEEE 754's binary16: 1 bit of sign, 5 of exponent, 10 of mantissa. With the exponent's bits where a float has them,
 * the value is 2^112 times too small, as the biases 15 and 127 differ by 112. */
HOST_DEVICE static inline float half_value(uint16_t half)
{
    const uint32_t sign = (half & 0x8000u) << 16, rest = (half & 0x7fffu) << 13;
    if ((half & 0x7c00) == 0x7c00) /* infinite, or no number */
        return float_of_bits(sign | 0x7f800000 | rest);
    return float_of_bits(sign | float_bits(float_of_bits(rest) * 0x1p112f));
}

/* The nearest half, an even one if there are two. It is infinite from 65520 on. */
HOST_DEVICE static inline uint16_t half_of(float value)
{
    const uint32_t bits = float_bits(value), rest = bits & 0x7fffffff;
    const uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    if (rest > 0x7f800000) /* no number */
        return (uint16_t)(sign | 0x7e00);
    if (rest >= 0x477ff000) /* 65520 */
        return (uint16_t)(sign | 0x7c00);
    if (rest < 0x38800000) /* below 2^-14, halves are 2^-24 apart, as floats from 1/2 on are */
        return (uint16_t)(sign | (float_bits(float_of_bits(rest) + 0.5f) - float_bits(0.5f)));
    return (uint16_t)(sign | (rest + 0xfff + (rest >> 13 & 1) - (112u << 23)) >> 13);
}

/* bfloat16 is the upper half of a float. */
HOST_DEVICE static inline float bfloat16_value(uint16_t upper)
{
    return float_of_bits((uint32_t)upper << 16);
}

/* The nearest bfloat16, an even one if there are two. */
HOST_DEVICE static inline uint16_t bfloat16_of(float value)
{
    const uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000) /* no number */
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* The sample at FROM, which is stored as STORED says. *IS_EXACT becomes false if no float is near that double. */
HOST_DEVICE static inline float stored_value(const void *from, enum storage stored, bool *is_exact)
{
    uint16_t bits;
    double value;
    switch (stored) {
    case STORED_HALF:
    case STORED_BFLOAT16:
        memcpy(&bits, from, sizeof bits);
        return stored == STORED_HALF ? half_value(bits) : bfloat16_value(bits);
    case STORED_DOUBLE:
        memcpy(&value, from, sizeof value);
        if (isinf((float)value) && !isinf(value))
            *is_exact = false;
        return (float)value;
    case STORED_BOOL:
        return *(const uint8_t *)from != 0;
    default:
        return *(const float *)from;
    }
}

/* Store VALUE at TO. *IS_EXACT becomes false if it is to be a bool, and neither 0 nor 1: further away from both than
 * sums of floats are rounded. */
HOST_DEVICE static inline void stored_write(float value, enum storage stored, void *to, bool *is_exact)
{
    const uint16_t bits = stored == STORED_HALF ? half_of(value) : bfloat16_of(value);
    const double wide = value;
    switch (stored) {
    case STORED_HALF:
    case STORED_BFLOAT16:
        memcpy(to, &bits, sizeof bits);
        break;
    case STORED_DOUBLE:
        memcpy(to, &wide, sizeof wide);
        break;
    case STORED_BOOL:
        *(uint8_t *)to = !(value < 0.5f);
        if (!(fabsf(value - (value < 0.5f ? 0 : 1)) <= 0x1p-12f))
            *is_exact = false;
        break;
    default:
        *(float *)to = value;
    }
}

#endif
