/* SPDX-License-Identifier: MIT
 *
 * From coefficients to pixels, number by number: what libjpeg-turbo's code for x86-64 computes, for any coefficients.
 * The decoder on a GPU calls these functions, so nvcc reads this file too. */
#ifndef GPUCONV_JPEG_SAMPLES_H
#define GPUCONV_JPEG_SAMPLES_H

#include "image/image.h"

#include <stdint.h>

/* Bits that the sums of the two passes of the inverse DCT lose. */
enum { JPEG_COLUMN_SHIFT = 11, JPEG_ROW_SHIFT = 18 };

/* SUM / 2^SHIFT, rounded, in 16 bits: as psrad and packssdw do it. */
HOST_DEVICE static inline int jpeg_descale(uint32_t sum, int shift)
{
    const int value = (int32_t)(sum + (1u << (shift - 1))) >> shift;
    return value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value;
}

/* One pass of the inverse DCT (Loeffler, Ligtenberg and Moschytz, 1989, with constants of 13 bits), in place. Values
 * are of 16 bits. Sums of two of them wrap, as paddw does; products are exact, and their sums wrap in 32 bits. */
HOST_DEVICE static inline void jpeg_inverse_pass(int value[8], int shift)
{
    const int sum = (int16_t)(value[0] + value[4]), difference = (int16_t)(value[0] - value[4]);
    const uint32_t even0 = (uint32_t)sum << 13, even1 = (uint32_t)difference << 13;
    const uint32_t even2 = (uint32_t)(value[2] * 4433) + (uint32_t)(value[6] * (4433 - 15137));
    const uint32_t even3 = (uint32_t)(value[2] * (4433 + 6270)) + (uint32_t)(value[6] * 4433);

    const int z3 = (int16_t)(value[7] + value[3]), z4 = (int16_t)(value[5] + value[1]);
    const uint32_t p3 = (uint32_t)(z3 * (9633 - 16069)) + (uint32_t)(z4 * 9633);
    const uint32_t p4 = (uint32_t)(z3 * 9633) + (uint32_t)(z4 * (9633 - 3196));
    const uint32_t odd0 = (uint32_t)(value[7] * (2446 - 7373)) - (uint32_t)(value[1] * 7373) + p3;
    const uint32_t odd1 = (uint32_t)(value[5] * (16819 - 20995)) - (uint32_t)(value[3] * 20995) + p4;
    const uint32_t odd2 = (uint32_t)(value[3] * (25172 - 20995)) - (uint32_t)(value[5] * 20995) + p3;
    const uint32_t odd3 = (uint32_t)(value[1] * (12299 - 7373)) - (uint32_t)(value[7] * 7373) + p4;

    value[0] = jpeg_descale(even0 + even3 + odd3, shift);
    value[7] = jpeg_descale(even0 + even3 - odd3, shift);
    value[1] = jpeg_descale(even1 + even2 + odd2, shift);
    value[6] = jpeg_descale(even1 + even2 - odd2, shift);
    value[2] = jpeg_descale(even1 - even2 + odd1, shift);
    value[5] = jpeg_descale(even1 - even2 - odd1, shift);
    value[3] = jpeg_descale(even0 - even3 + odd0, shift);
    value[4] = jpeg_descale(even0 - even3 - odd0, shift);
}

/* What the first pass makes of a column of a block whose coefficients outside its first row are all 0: the shift wraps
 * there, where jpeg_inverse_pass saturates. */
HOST_DEVICE static inline int jpeg_inverse_flat(int value)
{
    return (int16_t)(value * 4);
}

/* A sample from the second pass: packsswb, and the centre of the range. */
HOST_DEVICE static inline uint8_t jpeg_inverse_sample(int value)
{
    return (uint8_t)((value < -128 ? -128 : value > 127 ? 127 : value) + 128);
}

/* Upsampling by 2 in one direction: the output at an even place (IS_ODD is 0) or at an odd one, between the NEAR sample
 * and the next but one, FAR. At the borders FAR is NEAR. */
HOST_DEVICE static inline unsigned jpeg_upsample(unsigned near, unsigned far, unsigned is_odd)
{
    return (3 * near + far + 1 + is_odd) >> 2;
}

/* The same in both directions: NEAR and FAR are 3 x the sample of the near row + the sample of the far row. */
HOST_DEVICE static inline unsigned jpeg_upsample_sums(unsigned near, unsigned far, unsigned is_odd)
{
    return (3 * near + far + 8 - is_odd) >> 4;
}

HOST_DEVICE static inline uint8_t jpeg_clamp(int value)
{
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* A pixel from luma, blue difference and red difference, with factors of 16 bits: 1.402, 0.34414, 0.71414, 1.772. */
HOST_DEVICE static inline void jpeg_colour(int y, int blue, int red, uint8_t rgb[3])
{
    blue -= 128;
    red -= 128;
    rgb[0] = jpeg_clamp(y + ((91881 * red + 32768) >> 16));
    rgb[1] = jpeg_clamp(y + ((-22554 * blue - 46802 * red + 32768) >> 16));
    rgb[2] = jpeg_clamp(y + ((116130 * blue + 32768) >> 16));
}

#endif
