/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of an encoder for one pixel, one row and one coefficient. The GPU and the CPU share it. Its results
 * are those of libjpeg-turbo, whose C and SIMD code agree for all samples of 8 bits: no sum of 16 bits overflows
 * there. */
#ifndef GPUCONV_JPEG_FORWARD_H
#define GPUCONV_JPEG_FORWARD_H

#include "base/inline.h"
#include "jpeg/jpeg.h"

/* ---- Colours ---- */

/* Y, Cb and Cr of JFIF, 0 to 255, with factors of 16 bits. Chroma rounds 1/2 down, so that it does not become 256. */
static inline HOST_DEVICE int jpeg_luma(int red, int green, int blue)
{
    return (19595 * red + 38470 * green + 7471 * blue + 32768) >> 16;
}

static inline HOST_DEVICE int jpeg_blue_difference(int red, int green, int blue)
{
    return (-11059 * red - 21709 * green + 32768 * blue + (128 << 16) + 32767) >> 16;
}

static inline HOST_DEVICE int jpeg_red_difference(int red, int green, int blue)
{
    return (32768 * red - 27439 * green - 5329 * blue + (128 << 16) + 32767) >> 16;
}

/* Output COLUMN is the sum of horizontal x vertical samples and this bias, divided by the number of samples.
 * With two samples side by side libjpeg rounds neighbouring columns differently. */
static inline HOST_DEVICE int jpeg_chroma_bias(int horizontal, int vertical, int column)
{
    if (horizontal == 2)
        return vertical == 2 ? 1 + (column & 1) : column & 1;
    return horizontal * vertical / 2;
}

/* ---- Forward DCT ---- */

/* The one-dimensional DCT of 8 values that are STRIDE apart, after Loeffler, Ligtenberg and Moschytz (1989), with
 * constants of 13 bits. The first pass, over rows, leaves results 4 x sqrt(8) times too large, and the second one 8
 * times in all. Without the shift by 128, samples make only the first coefficient of a row larger, by 4096. */
static inline HOST_DEVICE void jpeg_forward_dct(int *x, int stride, bool is_second)
{
    const int shift = is_second ? 15 : 11, half = 1 << (shift - 1);
    const int sum07 = x[0] + x[7 * stride], odd7 = x[0] - x[7 * stride];
    const int sum16 = x[stride] + x[6 * stride], odd6 = x[stride] - x[6 * stride];
    const int sum25 = x[2 * stride] + x[5 * stride], odd5 = x[2 * stride] - x[5 * stride];
    const int sum34 = x[3 * stride] + x[4 * stride], odd4 = x[3 * stride] - x[4 * stride];

    const int even0 = sum07 + sum34, even3 = sum07 - sum34, even1 = sum16 + sum25, even2 = sum16 - sum25;
    x[0] = is_second ? (even0 + even1 + 2) >> 2 : (even0 + even1) * 4;
    x[4 * stride] = is_second ? (even0 - even1 + 2) >> 2 : (even0 - even1) * 4;
    const int rotated = 4433 * (even2 + even3) + half;
    x[2 * stride] = (rotated + 6270 * even3) >> shift;
    x[6 * stride] = (rotated - 15137 * even2) >> shift;

    const int sum46 = odd4 + odd6, sum57 = odd5 + odd7, all = 9633 * (sum46 + sum57) + half;
    const int part46 = all - 16069 * sum46, part57 = all - 3196 * sum57;
    const int part47 = -7373 * (odd4 + odd7), part56 = -20995 * (odd5 + odd6);
    x[7 * stride] = (2446 * odd4 + part47 + part46) >> shift;
    x[5 * stride] = (16819 * odd5 + part56 + part57) >> shift;
    x[3 * stride] = (25172 * odd6 + part56 + part46) >> shift;
    x[stride] = (12299 * odd7 + part47 + part57) >> shift;
}

enum { JPEG_FIRST_PASS_LEVEL = 4 * JPEG_SIDE * 128 };

/* ---- Quantisation ---- */

/* A division by 8 x QUANTISER that rounds to nearest, and halves away from zero. */
struct jpeg_divisor {
    uint32_t inverse, half;
};

static inline struct jpeg_divisor jpeg_divisor_of(unsigned quantiser)
{
    const uint64_t divisor = (uint64_t)JPEG_SIDE * quantiser;
    const struct jpeg_divisor result = {(uint32_t)(((UINT64_C(1) << 32) + divisor - 1) / divisor),
                                        (uint32_t)(divisor / 2)};
    return result;
}

/* Exact for n = magnitude + half and divisor below 2^16: inverse is less than 1 above 2^32 / divisor, so n x inverse /
 * 2^32 is less than 2^-16 above n / divisor, which is at least 1 / divisor below the next integer where it is none. */
static inline HOST_DEVICE int jpeg_quantise(int value, struct jpeg_divisor divisor)
{
    const uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);
    const int quotient = (int)((uint64_t)(magnitude + divisor.half) * divisor.inverse >> 32);
    return value < 0 ? -quotient : quotient;
}

/* ---- Huffman codes ---- */

enum {
    JPEG_CODE_MAX = 16,
    JPEG_DC_SIZE_MAX = 11, /* bits of a difference of DC */
    JPEG_AC_SIZE_MAX = 10,
    JPEG_ZERO_RUN = 0xf0, /* the symbol for 16 zeros */
};

#endif
