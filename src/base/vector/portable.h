/* SPDX-License-Identifier: MIT
 *
 * The words of x86.h in C, for any processor. */
#ifndef GPUCONV_BASE_VECTOR_PORTABLE_H
#define GPUCONV_BASE_VECTOR_PORTABLE_H

#include <math.h>

#define HAS_PAIRS 0
#define HAS_FOURS 0

/* Element i of the result is element i of A, or element i - 8 of B. */
#if defined(__clang__) || __GNUC__ >= 12
#define CHOOSE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CHOOSE(a, b, ...) __builtin_shuffle(a, b, (shorts){__VA_ARGS__})
#endif
#define ZIP(name, ...)                                                                                                 \
    INLINE shorts name(shorts a, shorts b)                                                                             \
    {                                                                                                                  \
        return CHOOSE(a, b, __VA_ARGS__);                                                                              \
    }
ZIP(zip_first16, 0, 8, 1, 9, 2, 10, 3, 11)
ZIP(zip_last16, 4, 12, 5, 13, 6, 14, 7, 15)
ZIP(zip_first32, 0, 1, 8, 9, 2, 3, 10, 11)
ZIP(zip_last32, 4, 5, 12, 13, 6, 7, 14, 15)
ZIP(zip_first64, 0, 1, 2, 3, 8, 9, 10, 11)
ZIP(zip_last64, 4, 5, 6, 7, 12, 13, 14, 15)

INLINE shorts pack_small(ints a, ints b)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    return CHOOSE((shorts)a, (shorts)b, 0, 2, 4, 6, 8, 10, 12, 14);
#else
    return CHOOSE((shorts)a, (shorts)b, 1, 3, 5, 7, 9, 11, 13, 15);
#endif
}

/* The halves of 32 bits are the shorts, in the machine's order. */
INLINE ints multiply_pairs(shorts a, shorts b)
{
    const ints low_a = (ints)((uints)a << 16) >> 16, low_b = (ints)((uints)b << 16) >> 16;
    return low_a * low_b + ((ints)a >> 16) * ((ints)b >> 16);
}

INLINE ints multiply_pairs_add(ints sums, shorts a, shorts b)
{
    return add(sums, multiply_pairs(a, b));
}

INLINE shorts multiply_high_ushorts(shorts a, shorts b)
{
    const uints low = ((uints)a & 0xffff) * ((uints)b & 0xffff), high = ((uints)a >> 16) * ((uints)b >> 16);
    return (shorts)(low >> 16 | (high & 0xffff0000));
}

INLINE ints larger(ints a, ints b)
{
    const ints mask = a > b;
    return (a & mask) | (b & ~mask);
}

INLINE ints smaller(ints a, ints b)
{
    const ints mask = a < b;
    return (a & mask) | (b & ~mask);
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

/* C has no stores past the caches. */
INLINE void store_past(void *to, ints value)
{
    store(to, value);
}

INLINE void fence_past(void)
{
}

INLINE ints gather_halves(ints value)
{
    return value;
}

INLINE shorts load_quad(const void *from)
{
    return load_shorts(from);
}

#endif
