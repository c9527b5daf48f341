/* SPDX-License-Identifier: MIT
 *
 * The types of vectors, and the words that are plain C: vector.h describes them. */
#ifndef GPUCONV_BASE_VECTOR_TYPES_H
#define GPUCONV_BASE_VECTOR_TYPES_H

#include "base/inline.h"

#include <stdbool.h>
#include <stdint.h>

/* VECTOR: bytes of a vector. */
#if defined(__AVX512BW__) && !defined(GPUCONV_PORTABLE)
#define VECTOR 64
#elif defined(__AVX2__) && !defined(GPUCONV_PORTABLE)
#define VECTOR 32
#else
#define VECTOR 16
#endif

#if VECTOR == 64 || defined(__aarch64__)
enum { VECTOR_REGISTERS = 32 };
#else
enum { VECTOR_REGISTERS = 16 };
#endif

enum { LANES = VECTOR / 4, QUAD = 16, QUADS = VECTOR / QUAD };

typedef uint8_t uchars __attribute__((vector_size(VECTOR)));
typedef int16_t shorts __attribute__((vector_size(VECTOR)));
typedef uint16_t ushorts __attribute__((vector_size(VECTOR)));
typedef int32_t ints __attribute__((vector_size(VECTOR)));
typedef uint32_t uints __attribute__((vector_size(VECTOR)));
typedef int64_t longs __attribute__((vector_size(VECTOR)));
typedef float floats __attribute__((vector_size(VECTOR)));
typedef double doubles __attribute__((vector_size(VECTOR)));
typedef int32_t loose_ints __attribute__((vector_size(VECTOR), aligned(1), may_alias));

/* The elements of two vectors of TYPE at some indices: those of B follow those of A. */
#if defined(__clang__) || __GNUC__ >= 12
#define CHOOSE(type, a, b, ...) __builtin_shufflevector((type)(a), (type)(b), __VA_ARGS__)
#else
#define CHOOSE(type, a, b, ...) __builtin_shuffle((type)(a), (type)(b), (type){__VA_ARGS__})
#endif

INLINE ints load(const void *from)
{
    return *(const loose_ints *)from;
}

INLINE void store(void *to, ints value)
{
    *(loose_ints *)to = value;
}

INLINE shorts load_shorts(const void *from)
{
    return (shorts)load(from);
}

INLINE void store_shorts(void *to, shorts value)
{
    store(to, (ints)value);
}

INLINE uchars load_uchars(const void *from)
{
    return (uchars)load(from);
}

/* ---- One value in all lanes ---- */

INLINE ints repeat(int32_t value)
{
    return value - (ints){0};
}

INLINE shorts repeat_short(int value)
{
    return (int16_t)value - (shorts){0};
}

/* A and B alternate, as in memory. */
INLINE shorts repeat_pair(int a, int b)
{
    const bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    const uint32_t low = (uint16_t)(is_little ? a : b), high = (uint16_t)(is_little ? b : a);
    return (shorts)repeat((int32_t)(low | high << 16));
}

INLINE floats repeat_float(float value)
{
    return value - (floats){0};
}

INLINE doubles repeat_double(double value)
{
    return value - (doubles){0};
}

/* ---- Arithmetic ---- */

/* Sums, differences and products wrap, because they are of unsigned numbers. */
#define WRAPPING(to, name, unsigned_to, sign)                                                                          \
    INLINE to name(to a, to b)                                                                                         \
    {                                                                                                                  \
        const unsigned_to c = (unsigned_to)a, d = (unsigned_to)b;                                                      \
        return (to)(c sign d);                                                                                         \
    }
WRAPPING(ints, add, uints, +)
WRAPPING(ints, subtract, uints, -)
WRAPPING(ints, multiply, uints, *)
WRAPPING(shorts, add_shorts, ushorts, +)
WRAPPING(shorts, subtract_shorts, ushorts, -)
WRAPPING(shorts, multiply_shorts, ushorts, *)

INLINE ints shift_left(ints a, int by)
{
    return (ints)((uints)a << by);
}

/* The second of the two shorts in each lane, in the order of memory. */
INLINE ints second_shorts(ints a)
{
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? a >> 16 : shift_left(a, 16) >> 16;
}

INLINE ints magnitude(ints a)
{
    return subtract(a ^ a >> 31, a >> 31);
}

INLINE floats magnitude_floats(floats a)
{
    return (floats)((ints)a & INT32_MAX);
}

/* The words of x86.h that need no instructions of their own where a vector is one quad. */
#if VECTOR == 16

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

INLINE ints gather_halves(ints value)
{
    return value;
}

INLINE ints gather_quarters(ints value)
{
    return value;
}

INLINE shorts load_quad(const void *from)
{
    return load_shorts(from);
}

INLINE shorts load_quads(const void *const from[QUADS])
{
    return load_shorts(from[0]);
}

#endif

#endif
