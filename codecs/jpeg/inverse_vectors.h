/* SPDX-License-Identifier: MIT
 *
 * The inverse DCT in vectors: as samples.h has it number by number. Sums of shorts wrap, products of pairs of shorts
 * are exact, and both passes saturate to 16 bits. */
#ifndef GPUCONV_JPEG_INVERSE_VECTORS_H
#define GPUCONV_JPEG_INVERSE_VECTORS_H

#include "base/vector/vector.h"

enum { BLOCKS = QUADS }; /* a block in each quad */

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
        const ints half = repeat(1 << ((shift)-1));                                                                    \
        const ints a0 = add((a)[0], half), a1 = add((a)[1], half);                                                     \
        (sum) = pack(add(a0, (b)[0]) >> (shift), add(a1, (b)[1]) >> (shift));                                          \
        (difference) = pack(subtract(a0, (b)[0]) >> (shift), subtract(a1, (b)[1]) >> (shift));                         \
    } while (0)

/* P x A + Q x B, in two halves. */
#define PRODUCTS(to, a, p, b, q)                                                                                       \
    do {                                                                                                               \
        const shorts factors = repeat_pair(p, q);                                                                      \
        (to)[0] = multiply_pairs(zip_first16(a, b), factors);                                                          \
        (to)[1] = multiply_pairs(zip_last16(a, b), factors);                                                           \
    } while (0)

/* A x 2^13, in two halves. */
#define WIDEN(to, a)                                                                                                   \
    do {                                                                                                               \
        (to)[0] = (ints)zip_first16(repeat_short(0), a) >> 3;                                                          \
        (to)[1] = (ints)zip_last16(repeat_short(0), a) >> 3;                                                           \
    } while (0)

#define SUM(to, a, b)                                                                                                  \
    do {                                                                                                               \
        (to)[0] = add((a)[0], (b)[0]);                                                                                 \
        (to)[1] = add((a)[1], (b)[1]);                                                                                 \
    } while (0)

#define DIFFERENCE(to, a, b)                                                                                           \
    do {                                                                                                               \
        (to)[0] = subtract((a)[0], (b)[0]);                                                                            \
        (to)[1] = subtract((a)[1], (b)[1]);                                                                            \
    } while (0)

/* One pass over eight vectors, in place. If IS_FEW is set, the last four are 0. */
INLINE void inverse_pass(shorts v[8], int shift, bool is_few)
{
    const shorts none = repeat_short(0);
    ints even0[2], even1[2], even2[2], even3[2], e0[2], e1[2], e2[2], e3[2], o0[2], o1[2], o2[2], o3[2];
    PRODUCTS(even2, v[2], F0541, is_few ? none : v[6], F0541 - F1847);
    PRODUCTS(even3, v[2], F0541 + F0765, is_few ? none : v[6], F0541);
    WIDEN(even0, is_few ? v[0] : add_shorts(v[0], v[4]));
    WIDEN(even1, is_few ? v[0] : subtract_shorts(v[0], v[4]));
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
        const shorts z3 = add_shorts(v[7], v[3]), z4 = add_shorts(v[5], v[1]);
        ints p3[2], p4[2];
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

/* Exchange rows and columns. If IS_FEW is set, only the first four columns are wanted. */
INLINE void transpose(shorts v[8], bool is_few)
{
    const shorts a0 = zip_first16(v[0], v[1]), a1 = zip_first16(v[2], v[3]), a2 = zip_first16(v[4], v[5]),
                 a3 = zip_first16(v[6], v[7]);
    const shorts c0 = zip_first32(a0, a1), c1 = zip_last32(a0, a1), c2 = zip_first32(a2, a3), c3 = zip_last32(a2, a3);
    const shorts b0 = zip_last16(v[0], v[1]), b1 = zip_last16(v[2], v[3]), b2 = zip_last16(v[4], v[5]),
                 b3 = zip_last16(v[6], v[7]);
    v[0] = zip_first64(c0, c2);
    v[1] = zip_last64(c0, c2);
    v[2] = zip_first64(c1, c3);
    v[3] = zip_last64(c1, c3);
    if (is_few)
        return;
    const shorts d0 = zip_first32(b0, b1), d1 = zip_last32(b0, b1), d2 = zip_first32(b2, b3), d3 = zip_last32(b2, b3);
    v[4] = zip_first64(d0, d2);
    v[5] = zip_last64(d0, d2);
    v[6] = zip_first64(d1, d3);
    v[7] = zip_last64(d1, d3);
}

/* Store columns of samples, which are shorts, as rows of bytes. */
INLINE void store_columns(const shorts v[8], uint8_t *const to[BLOCKS], size_t stride)
{
    const shorts a = pack_shorts(v[0], v[4]), b = pack_shorts(v[1], v[5]), c = pack_shorts(v[2], v[6]),
                 d = pack_shorts(v[3], v[7]), centre = repeat_short(0x8080);
    const shorts ab = zip_first8(a, b), cd = zip_first8(c, d), ef = zip_last8(a, b), gh = zip_last8(c, d);
    const shorts left0 = zip_first16(ab, cd), left4 = zip_last16(ab, cd), right0 = zip_first16(ef, gh),
                 right4 = zip_last16(ef, gh);
    const shorts rows[4] = {zip_first32(left0, right0), zip_last32(left0, right0), zip_first32(left4, right4),
                            zip_last32(left4, right4)};
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < BLOCKS; j++) {
            const longs two = (longs)(rows[i] ^ centre);
            const int64_t even = two[2 * j], odd = two[2 * j + 1];
            uint8_t *at = to[j] + 2 * (size_t)i * stride;
            memcpy(at, &even, sizeof even);
            memcpy(at + stride, &odd, sizeof odd);
        }
}

/* If all rows after the first are 0, but for the row UNUSED, libjpeg-turbo's code shifts the first row without
 * saturation. This matters only where the result needs more than 16 bits. */
static __attribute__((noinline)) void wrap_flat(const int16_t *const *coefficients, int16_t *first, int unused)
{
    for (int i = 0; i < BLOCKS; i++) {
        bool is_flat = true;
        for (int k = JPEG_SIDE; k < JPEG_BLOCK; k++)
            is_flat &= coefficients[i][k] == 0 || k / JPEG_SIDE == unused;
        for (int k = i * JPEG_SIDE; is_flat && k < (i + 1) * JPEG_SIDE; k++)
            first[k] = (int16_t)((int16_t)((uint16_t)first[k] << 2) >> 2);
    }
}

/* Load COUNT rows of coefficients, times their quantisers. */
INLINE void dequantise(const int16_t *const *coefficients, const uint16_t *quantisers, int count, shorts *v)
{
    for (int i = 0; i < count; i++) {
        const void *rows[BLOCKS];
        for (int j = 0; j < BLOCKS; j++)
            rows[j] = coefficients[j] + JPEG_SIDE * i;
        v[i] = multiply_shorts(load_quads(rows), load_quad(quantisers + JPEG_SIDE * i));
    }
}

INLINE bool may_wrap(shorts first)
{
    return !is_zero(add_shorts(first, repeat_short(0x2000)) & repeat_short(0xc000));
}

INLINE void inverse_blocks(const int16_t *const *coefficients, const uint16_t *quantisers, uint8_t *const to[BLOCKS],
                           size_t stride, bool is_few)
{
    shorts v[8];
    dequantise(coefficients, quantisers, is_few ? 4 : 8, v);
    if (may_wrap(v[0]))
        wrap_flat(coefficients, (int16_t *)&v[0], 0);
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

/* Only the first 10 coefficients in zigzag order, which are the first four of four rows, are not 0. */
static void inverse_few(const int16_t *const *coefficients, const uint16_t *quantisers, uint8_t *const to[BLOCKS],
                        size_t stride)
{
    inverse_blocks(coefficients, quantisers, to, stride, true);
}

/* ---- Fewer samples ---- */

/* One pass of jpeg_inverse_pass_small to 4 samples, in place. If IS_FEW is set, the last four vectors are 0. */
INLINE void inverse_pass_4(shorts v[8], int shift, bool is_few)
{
    const shorts none = repeat_short(0);
    const ints first[2] = {(ints)zip_first16(none, v[0]) >> 2, (ints)zip_last16(none, v[0]) >> 2};
    ints even[2], even0[2], even1[2], odd0[2], odd1[2];
    PRODUCTS(even, v[2], 15137, is_few ? none : v[6], -6270);
    SUM(even0, first, even);
    DIFFERENCE(even1, first, even);
    PRODUCTS(odd0, v[1], 20995, v[3], 7373);
    PRODUCTS(odd1, v[1], 8697, v[3], -17799);
    if (!is_few) {
        ints more[2];
        PRODUCTS(more, v[5], -4926, v[7], -4176);
        SUM(odd0, odd0, more);
        PRODUCTS(more, v[5], 11893, v[7], -1730);
        SUM(odd1, odd1, more);
    }
    BUTTERFLY(v[0], v[3], even0, odd0, shift);
    BUTTERFLY(v[1], v[2], even1, odd1, shift);
}

/* Four columns of 4 samples, the first shorts of each quad, as rows. */
INLINE ints join_columns(const shorts v[4])
{
    const shorts columns = pack_shorts(zip_first64(v[0], v[2]), zip_first64(v[1], v[3]));
    return (ints)alternate(zip_first8(columns, zip_last64(columns, columns)));
}

/* Both passes to 2 x 2 samples. The first column is not saturated between them. */
INLINE ints inverse_2(const shorts v[8], bool is_few)
{
    static const int16_t row_factors[8] = {0, 29692, 0, -10426, 0, 6967, 0, -5906};
    const shorts none = repeat_short(0);
    ints even[2] = {(ints)zip_first16(none, v[0]) >> 1, (ints)zip_last16(none, v[0]) >> 1}, odd[2];
    PRODUCTS(odd, v[1], 29692, v[3], -10426);
    if (!is_few) {
        ints more[2];
        PRODUCTS(more, v[5], 6967, v[7], -5906);
        SUM(odd, odd, more);
    }
    const ints half[2] = {repeat(1 << 12), repeat(1 << 12)};
    ints low[2], high[2];
    SUM(even, even, half);
    SUM(low, even, odd);
    DIFFERENCE(high, even, odd);
    for (int i = 0; i < 2; i++) {
        low[i] = low[i] >> 13;
        high[i] = high[i] >> 13;
    }
    /* The odd part of a row is the sum of four products. The first two lanes of a quad get those of two rows. */
    const shorts a = (shorts)multiply_pairs(pack(low[0], low[1]), load_quad(row_factors));
    const shorts b = (shorts)multiply_pairs(pack(high[0], high[1]), load_quad(row_factors));
    const ints pairs = add((ints)zip_first32(a, b), (ints)zip_last32(a, b));
    const ints odds = add(pairs, (ints)zip_last64((shorts)pairs, (shorts)pairs));
    const ints evens = add(shift_left((ints)zip_first32((shorts)low[0], (shorts)high[0]), 15), repeat(1 << 19));
    const ints rows = (ints)zip_first32((shorts)(add(evens, odds) >> 20), (shorts)(subtract(evens, odds) >> 20));
    return (ints)pack_shorts(pack(rows, rows), none);
}

/* The inverse DCT to SIDE x SIDE samples, 4 or 2. */
INLINE void inverse_small(const int16_t *const *coefficients, const uint16_t *quantisers, uint8_t *const to[BLOCKS],
                          size_t stride, int side, bool is_few)
{
    shorts v[8];
    ints samples;
    dequantise(coefficients, quantisers, is_few ? 4 : 8, v);
    if (side == 2) {
        samples = inverse_2(v, is_few);
    } else {
        if (may_wrap(v[0]))
            wrap_flat(coefficients, (int16_t *)&v[0], 4);
        inverse_pass_4(v, 12, is_few);
        v[4] = v[5] = v[6] = v[7] = repeat_short(0);
        transpose(v, is_few);
        inverse_pass_4(v, 19, is_few);
        samples = join_columns(v);
    }
    samples ^= repeat((int32_t)0x80808080);
    for (int j = 0; j < BLOCKS; j++)
        for (int i = 0; i < side; i++) {
            const uint32_t row = side == 4 ? (uint32_t)samples[4 * j + i] : (uint32_t)samples[4 * j] >> 16 * i;
            memcpy(to[j] + (size_t)i * stride, &row, (size_t)side);
        }
}

#endif
