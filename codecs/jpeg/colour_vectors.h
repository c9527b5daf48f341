/* SPDX-License-Identifier: MIT
 *
 * Colours in vectors, as libjpeg-turbo has them: jpeg_colour of samples.h in shorts. */
#ifndef GPUCONV_JPEG_COLOUR_VECTORS_H
#define GPUCONV_JPEG_COLOUR_VECTORS_H

#include "base/vector/vector.h"

enum { GROUP = VECTOR, BLOCKS = QUADS }; /* pixels at once */

/* A x FACTOR / 2^16, rounded, for A of 9 bits. */
INLINE shorts scale(shorts a, int factor)
{
    return add_shorts(multiply_high_shorts(add_shorts(a, a), repeat_short(factor)), repeat_short(1)) >> 1;
}

/* Eight pixels in each lane. 1.402 is 1 + 26345 / 2^16, 1.772 is 2 - 14942 / 2^16, 0.34414 is 22554 / 2^16, and 0.71414
 * is 1 - 18734 / 2^16. */
INLINE void convert_words(shorts luma, shorts blue, shorts red, shorts rgb[3])
{
    const shorts factors = repeat_pair(-22554, 18734);
    const ints half = repeat(1 << 15);
    blue = subtract_shorts(blue, repeat_short(128));
    red = subtract_shorts(red, repeat_short(128));
    rgb[0] = add_shorts(luma, add_shorts(red, scale(red, 26345)));
    rgb[2] = add_shorts(luma, add_shorts(add_shorts(blue, blue), scale(blue, -14942)));
    const ints low = add(multiply_pairs(zip_first16(blue, red), factors), half) >> 16;
    const ints high = add(multiply_pairs(zip_last16(blue, red), factors), half) >> 16;
    rgb[1] = add_shorts(luma, subtract_shorts(pack(low, high), red));
}

/* Store GROUP pixels. */
#ifdef __AVX2__
#define SHUFFLE_INDEX(colour, i) (char)((i) % 3 == (colour) ? (i) / 3 : 0x80)
#define FOUR(colour, i)                                                                                                \
    SHUFFLE_INDEX(colour, i), SHUFFLE_INDEX(colour, (i) + 1), SHUFFLE_INDEX(colour, (i) + 2),                          \
        SHUFFLE_INDEX(colour, (i) + 3)
#define MASK(colour, i)                                                                                                \
    _mm256_broadcastsi128_si256(                                                                                       \
        _mm_setr_epi8(FOUR(colour, i), FOUR(colour, (i) + 4), FOUR(colour, (i) + 8), FOUR(colour, (i) + 12)))
#define PIXEL_BYTES(i)                                                                                                 \
    _mm256_or_si256(_mm256_or_si256(_mm256_shuffle_epi8((raw)(colours[0]), MASK(0, i)),                                \
                                    _mm256_shuffle_epi8((raw)(colours[1]), MASK(1, i))),                               \
                    _mm256_shuffle_epi8((raw)(colours[2]), MASK(2, i)))

INLINE void store_pixels(const shorts colours[3], uint8_t *rgb)
{
    const __m256i pixels[3] = {PIXEL_BYTES(0), PIXEL_BYTES(16), PIXEL_BYTES(32)};
    for (int j = 0; j < BLOCKS; j++)
        for (int i = 0; i < 3; i++)
            _mm_storeu_si128((__m128i *)(void *)(rgb + 48 * j + 16 * i), quad((shorts)pixels[i], j));
}
#elif defined(__aarch64__)
INLINE void store_pixels(const shorts colours[3], uint8_t *rgb)
{
    const uint8x16x3_t pixels = {{(uchars)colours[0], (uchars)colours[1], (uchars)colours[2]}};
    vst3q_u8(rgb, pixels);
}
#else
INLINE void store_pixels(const shorts colours[3], uint8_t *rgb)
{
    for (int i = 0; i < GROUP; i++)
        for (int j = 0; j < 3; j++)
            rgb[3 * i + j] = ((const uint8_t *)&colours[j])[i];
}
#endif

INLINE void convert_group(const uint8_t *luma, const uint8_t *blue, const uint8_t *red, uint8_t *rgb)
{
    const shorts none = repeat_short(0);
    const shorts y = load_shorts(luma), b = load_shorts(blue), r = load_shorts(red);
    shorts low[3], high[3], colours[3];
    convert_words(zip_first8(y, none), zip_first8(b, none), zip_first8(r, none), low);
    convert_words(zip_last8(y, none), zip_last8(b, none), zip_last8(r, none), high);
    for (int i = 0; i < 3; i++)
        colours[i] = pack_shorts_unsigned(low[i], high[i]);
    store_pixels(colours, rgb);
}

/* Convert COUNT pixels. */
static void convert_pixels(const uint8_t *luma, const uint8_t *blue, const uint8_t *red, int count, uint8_t *rgb)
{
    uint8_t rest[3][GROUP], pixels[3 * GROUP];
    int i = 0;
    for (; count - i >= GROUP; i += GROUP)
        convert_group(luma + i, blue + i, red + i, rgb + 3 * (size_t)i);
    const size_t left = (size_t)(count - i);
    if (left == 0)
        return;
    memcpy(rest[0], luma + i, left);
    memcpy(rest[1], blue + i, left);
    memcpy(rest[2], red + i, left);
    memset(rest[0] + left, 0, GROUP - left);
    memset(rest[1] + left, 0, GROUP - left);
    memset(rest[2] + left, 0, GROUP - left);
    convert_group(rest[0], rest[1], rest[2], pixels);
    memcpy(rgb + 3 * (size_t)i, pixels, 3 * left);
}

#endif
