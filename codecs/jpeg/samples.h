/* SPDX-License-Identifier: MIT
 *
 * From coefficients to pixels, number by number: what libjpeg-turbo's code for x86-64 computes, for any coefficients.
 * The decoder on a GPU calls these functions, so nvcc reads this file too. */
#ifndef GPUCONV_JPEG_SAMPLES_H
#define GPUCONV_JPEG_SAMPLES_H

#include "base/inline.h"
#include "jpeg/jpeg.h"

/* Bits that the sums of the two passes of the inverse DCT lose. */
enum { JPEG_COLUMN_SHIFT = 11, JPEG_ROW_SHIFT = 18 };

/* In 16 bits, as packssdw does it. */
HOST_DEVICE static inline int jpeg_saturate(int value)
{
    return value < INT16_MIN ? INT16_MIN : value > INT16_MAX ? INT16_MAX : value;
}

/* SUM / 2^SHIFT, rounded, in 16 bits: as psrad and packssdw do it. */
HOST_DEVICE static inline int jpeg_descale(uint32_t sum, int shift)
{
    return jpeg_saturate((int32_t)(sum + (1u << (shift - 1))) >> shift);
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

/* ---- Fewer samples ---- */

/* One pass of the inverse DCT to SIDE samples, 4 or 2, as in libjpeg-turbo's jidctred.c: 4 uses all values but the
 * fifth, and 2 the first and those with an odd index. The results, in 32 bits, replace the first values. */
HOST_DEVICE static inline void jpeg_inverse_pass_small(int value[8], int side, int shift)
{
    const uint32_t half = 1u << (shift - 1);
    if (side == 2) {
        const uint32_t even = ((uint32_t)value[0] << 15) + half;
        const uint32_t odd = (uint32_t)(value[1] * 29692) + (uint32_t)(value[3] * -10426) +
                             (uint32_t)(value[5] * 6967) + (uint32_t)(value[7] * -5906);
        value[0] = (int32_t)(even + odd) >> shift;
        value[1] = (int32_t)(even - odd) >> shift;
        return;
    }
    const uint32_t first = ((uint32_t)value[0] << 14) + half;
    const uint32_t even = (uint32_t)(value[2] * 15137) + (uint32_t)(value[6] * -6270);
    const uint32_t odd0 = (uint32_t)(value[1] * 20995) + (uint32_t)(value[3] * 7373) + (uint32_t)(value[5] * -4926) +
                          (uint32_t)(value[7] * -4176);
    const uint32_t odd1 = (uint32_t)(value[1] * 8697) + (uint32_t)(value[3] * -17799) + (uint32_t)(value[5] * 11893) +
                          (uint32_t)(value[7] * -1730);
    value[0] = (int32_t)(first + even + odd0) >> shift;
    value[1] = (int32_t)(first - even + odd1) >> shift;
    value[2] = (int32_t)(first - even - odd1) >> shift;
    value[3] = (int32_t)(first + even - odd0) >> shift;
}

/* The only sample of a block. The quantiser is a short there, and the sample a number of 10 bits. */
HOST_DEVICE static inline uint8_t jpeg_inverse_single(int dc, uint16_t quantiser)
{
    const uint32_t sum = (uint32_t)(dc * (int16_t)quantiser) + 4;
    return jpeg_inverse_sample((int32_t)(sum << 19) >> 22);
}

/* The inverse DCT of a block to SIDE x SIDE samples, 4, 2 or 1. DC replaces the first of COEFFICIENTS. The coefficients
 * of a row are ACROSS apart, 1 or 8, and those of a column 8 / ACROSS. The quantisers lie likewise. */
HOST_DEVICE static inline void jpeg_inverse_small(const int16_t *coefficients, const uint16_t *quantisers, int dc,
                                                  int across, int side, uint8_t *to, size_t stride)
{
    const int down = JPEG_SIDE / across, step = side == 4 ? 1 : 2; /* 2: the odd rows, and the first */
    int rows[4][8] = {{0}};
    bool is_flat = side == 4;
    if (side == 1) {
        *to = jpeg_inverse_single(dc, quantisers[0]);
        return;
    }
    for (int y = 1; is_flat && y < 8; y++)
        for (int x = 0; y != 4 && x < 8; x++)
            is_flat = is_flat && coefficients[y * down + x * across] == 0;
    for (int x = 0; x < 8; x += x == 0 ? 1 : step) {
        int column[8];
        for (int y = 0; y < 8; y++) {
            const int at = y * down + x * across;
            column[y] = (int16_t)((x + y == 0 ? dc : coefficients[at]) * quantisers[at]);
        }
        const int flat = jpeg_inverse_flat(column[0]);
        jpeg_inverse_pass_small(column, side, side == 4 ? 12 : 13);
        for (int y = 0; y < side; y++) /* libjpeg-turbo's code does not saturate the first column of 2 x 2 */
            rows[y][x] = is_flat ? flat : side == 2 && x == 0 ? column[y] : jpeg_saturate(column[y]);
    }
    for (int y = 0; y < side; y++) {
        jpeg_inverse_pass_small(rows[y], side, side == 4 ? 19 : 20);
        for (int x = 0; x < side; x++)
            to[(size_t)y * stride + (size_t)x] = jpeg_inverse_sample(rows[y][x]);
    }
}

/* ---- Colours ---- */

/* Upsampling by 2 in one direction: the output with an even index (IS_ODD is 0) or an odd one, between the NEAR sample
 * and the next but one, FAR. At the borders FAR is NEAR. */
HOST_DEVICE static inline unsigned jpeg_upsample(unsigned near, unsigned far, unsigned is_odd)
{
    return (3 * near + far + 1 + is_odd) >> 2;
}

/* Upsampling by 2 in both directions: NEAR and FAR are 3 x the sample of the near row + the sample of the far row. */
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
