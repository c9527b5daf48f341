/* SPDX-License-Identifier: MIT
 *
 * The inverse DCT in vectors: as samples.h has it number by number. Sums of words wrap, products of pairs of words are
 * exact, and both passes saturate to 16 bits. */
#ifndef GPUCONV_JPEG_INVERSE_VECTORS_H
#define GPUCONV_JPEG_INVERSE_VECTORS_H

#include "jpeg/decode_vectors.h"

/* Constants of 13 bits (Loeffler, Ligtenberg and Moschytz, 1989). */
enum {
    F0298 = 2446,
    F0390 = 3196,
    F0541 = 4433,
    F0765 = 6270,
    F0899 = 7373,
    F1175 = 9633,
    F1501 = 12299,
    F1847 = 15137,
    F1961 = 16069,
    F2053 = 16819,
    F2562 = 20995,
    F3072 = 25172,
};

/* (A + B) and (A - B), rounded and shifted, in 16 bits. The sums have two halves. */
#define BUTTERFLY(sum, difference, a, b, shift)                                                                        \
    do {                                                                                                               \
        const ints half = (ints)INTRINSIC(set1_epi32)(1 << ((shift)-1));                                               \
        const ints a0 = add_ints((a)[0], half), a1 = add_ints((a)[1], half);                                           \
        (sum) = pack_ints(add_ints(a0, (b)[0]) >> (shift), add_ints(a1, (b)[1]) >> (shift));                           \
        (difference) = pack_ints(subtract_ints(a0, (b)[0]) >> (shift), subtract_ints(a1, (b)[1]) >> (shift));          \
    } while (0)

/* P x A + Q x B, in two halves. */
#define PRODUCTS(to, a, p, b, q)                                                                                       \
    do {                                                                                                               \
        const words factors = all_pairs(p, q);                                                                         \
        (to)[0] = multiply_pairs(first16(a, b), factors);                                                              \
        (to)[1] = multiply_pairs(last16(a, b), factors);                                                               \
    } while (0)

/* A x 2^13, in two halves. */
#define WIDEN(to, a)                                                                                                   \
    do {                                                                                                               \
        (to)[0] = (ints)first16(all(0), a) >> 3;                                                                       \
        (to)[1] = (ints)last16(all(0), a) >> 3;                                                                        \
    } while (0)

#define SUM(to, a, b)                                                                                                  \
    do {                                                                                                               \
        (to)[0] = add_ints((a)[0], (b)[0]);                                                                            \
        (to)[1] = add_ints((a)[1], (b)[1]);                                                                            \
    } while (0)

#define DIFFERENCE(to, a, b)                                                                                           \
    do {                                                                                                               \
        (to)[0] = subtract_ints((a)[0], (b)[0]);                                                                       \
        (to)[1] = subtract_ints((a)[1], (b)[1]);                                                                       \
    } while (0)

/* One pass over eight vectors, in place. IS_FEW: the last four are 0. */
INLINE void inverse_pass(words v[8], int shift, bool is_few)
{
    const words none = all(0);
    ints even0[2], even1[2], even2[2], even3[2], e0[2], e1[2], e2[2], e3[2], p3[2], p4[2], o0[2], o1[2], o2[2], o3[2];
    PRODUCTS(even2, v[2], F0541, is_few ? none : v[6], F0541 - F1847);
    PRODUCTS(even3, v[2], F0541 + F0765, is_few ? none : v[6], F0541);
    WIDEN(even0, is_few ? v[0] : add(v[0], v[4]));
    WIDEN(even1, is_few ? v[0] : subtract(v[0], v[4]));
    SUM(e0, even0, even3);
    SUM(e1, even1, even2);
    DIFFERENCE(e2, even1, even2);
    DIFFERENCE(e3, even0, even3);
    if (is_few) { /* the sums of products are exact, so they may be joined */
        PRODUCTS(o0, v[3], F1175 - F1961, v[1], F1175 - F0899);
        PRODUCTS(o1, v[3], F1175 - F2562, v[1], F1175 - F0390);
        PRODUCTS(o2, v[3], F3072 - F2562 + F1175 - F1961, v[1], F1175);
        PRODUCTS(o3, v[3], F1175, v[1], F1501 - F0899 + F1175 - F0390);
    } else {
        const words z3 = add(v[7], v[3]), z4 = add(v[5], v[1]);
        PRODUCTS(p3, z3, F1175 - F1961, z4, F1175);
        PRODUCTS(p4, z3, F1175, z4, F1175 - F0390);
        PRODUCTS(o0, v[7], F0298 - F0899, v[1], -F0899);
        PRODUCTS(o1, v[5], F2053 - F2562, v[3], -F2562);
        PRODUCTS(o2, v[5], -F2562, v[3], F3072 - F2562);
        PRODUCTS(o3, v[7], -F0899, v[1], F1501 - F0899);
        SUM(o0, o0, p3);
        SUM(o1, o1, p4);
        SUM(o2, o2, p3);
        SUM(o3, o3, p4);
    }
    BUTTERFLY(v[0], v[7], e0, o3, shift);
    BUTTERFLY(v[1], v[6], e1, o2, shift);
    BUTTERFLY(v[2], v[5], e2, o1, shift);
    BUTTERFLY(v[3], v[4], e3, o0, shift);
}

/* Exchange rows and columns. IS_FEW: only the first four columns are wanted. */
INLINE void transpose(words v[8], bool is_few)
{
    const words a0 = first16(v[0], v[1]), a1 = first16(v[2], v[3]), a2 = first16(v[4], v[5]), a3 = first16(v[6], v[7]);
    const words c0 = first32(a0, a1), c1 = last32(a0, a1), c2 = first32(a2, a3), c3 = last32(a2, a3);
    const words b0 = last16(v[0], v[1]), b1 = last16(v[2], v[3]), b2 = last16(v[4], v[5]), b3 = last16(v[6], v[7]);
    v[0] = first64(c0, c2);
    v[1] = last64(c0, c2);
    v[2] = first64(c1, c3);
    v[3] = last64(c1, c3);
    if (is_few)
        return;
    const words d0 = first32(b0, b1), d1 = last32(b0, b1), d2 = first32(b2, b3), d3 = last32(b2, b3);
    v[4] = first64(d0, d2);
    v[5] = last64(d0, d2);
    v[6] = first64(d1, d3);
    v[7] = last64(d1, d3);
}

/* Store columns of samples, which are words, as rows of bytes. */
INLINE void store_columns(const words v[8], uint8_t *const to[BLOCKS], size_t stride)
{
    const words a = pack_signed(v[0], v[4]), b = pack_signed(v[1], v[5]), c = pack_signed(v[2], v[6]),
                d = pack_signed(v[3], v[7]), centre = all((int16_t)0x8080);
    const words ab = first8(a, b), cd = first8(c, d), ef = last8(a, b), gh = last8(c, d);
    const words left0 = first16(ab, cd), left4 = last16(ab, cd), right0 = first16(ef, gh), right4 = last16(ef, gh);
    const words rows[4] = {first32(left0, right0), last32(left0, right0), first32(left4, right4),
                           last32(left4, right4)};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < BLOCKS; j++) {
            const __m128i two = lane(rows[i] ^ centre, j);
            uint8_t *at = to[j] + 2 * (size_t)i * stride;
            _mm_storel_epi64((__m128i *)(void *)at, two);
            _mm_storeh_pd((double *)(void *)(at + stride), _mm_castsi128_pd(two));
        }
}

/* Where the rows behind the first are all 0, libjpeg-turbo's code shifts the first row without saturation. This matters
 * only where the result needs more than 16 bits. */
static __attribute__((noinline)) void wrap_flat(const int16_t *const *coefficients, int16_t *first)
{
    for (int i = 0; i < BLOCKS; i++) {
        bool is_flat = true;
        for (int k = JPEG_SIDE; k < JPEG_BLOCK; k++)
            is_flat &= coefficients[i][k] == 0;
        for (int k = i * JPEG_SIDE; is_flat && k < (i + 1) * JPEG_SIDE; k++)
            first[k] = (int16_t)((int16_t)((uint16_t)first[k] << 2) >> 2);
    }
}

INLINE void inverse_blocks(const int16_t *const *coefficients, const uint16_t *quantisers, uint8_t *const to[BLOCKS],
                           size_t stride, bool is_few)
{
    words v[8];
    for (int i = 0; i < (is_few ? 4 : 8); i++) {
        const void *const same[2] = {quantisers, quantisers};
        v[i] =
            multiply(load_lanes((const void *const *)coefficients, 16 * (size_t)i), load_lanes(same, 16 * (size_t)i));
    }
    if (!is_zero(add(v[0], all(0x2000)) & all((int16_t)0xc000)))
        wrap_flat(coefficients, (int16_t *)&v[0]);
    inverse_pass(v, 11, is_few);
    transpose(v, is_few);
    inverse_pass(v, 18, is_few);
    store_columns(v, to, stride);
}

static void inverse(const int16_t *const *coefficients, const uint16_t *quantisers, uint8_t *const to[BLOCKS],
                    size_t stride)
{
    inverse_blocks(coefficients, quantisers, to, stride, false);
}

/* Only the first 10 coefficients in zigzag order, which are in the first 4 x 4 places, are not 0. */
static void inverse_few(const int16_t *const *coefficients, const uint16_t *quantisers, uint8_t *const to[BLOCKS],
                        size_t stride)
{
    inverse_blocks(coefficients, quantisers, to, stride, true);
}

#endif
