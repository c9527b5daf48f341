/* SPDX-License-Identifier: MIT
 *
 * Products of matrices of bytes by a warp (mma.sync), with sums of 32 bits: D = A B + C. A has 16 rows, and B 8
 * columns. For each 16 terms, lane (g, t) = (lane / 4, lane % 4) has bytes 4 t to 4 t + 3: those of rows g and g + 8 of
 * A in two words, and those of column g of B in one. It has columns 2 t and 2 t + 1 of rows g and g + 8 of C and D.
 * (PTX ISA, Matrix fragments for mma.m16n8k16 and .m16n8k32 with 8-bit types.)
 *
 * A and B are uint8_t or int8_t, as the template's parameters say. Both int8_t is not needed anywhere. */
#ifndef GPUCONV_PRODUCTS_CUH
#define GPUCONV_PRODUCTS_CUH

#include <stdint.h>
#include <type_traits>

/* A lane's part of C or D. */
struct matrix {
    int v[4];
};

/* PRODUCT of the types' names. */
#define OF_TYPES(PRODUCT)                                                                                              \
    static_assert(!std::is_signed<A>::value || !std::is_signed<B>::value, "one of the types is uint8_t");              \
    if constexpr (std::is_signed<A>::value)                                                                            \
        PRODUCT("s8.u8");                                                                                              \
    else if constexpr (std::is_signed<B>::value)                                                                       \
        PRODUCT("u8.s8");                                                                                              \
    else                                                                                                               \
        PRODUCT("u8.u8")

/* The product of Turing: 8 rows and 16 terms. */
template <typename A, typename B>
static __device__ __forceinline__ void multiply8(int &d0, int &d1, uint32_t a, uint32_t b)
{
#define PRODUCT(types)                                                                                                 \
    asm("mma.sync.aligned.m8n8k16.row.col.s32." types ".s32 {%0,%1}, {%2}, {%3}, {%0,%1};"                             \
        : "+r"(d0), "+r"(d1)                                                                                           \
        : "r"(a), "r"(b))
    OF_TYPES(PRODUCT);
#undef PRODUCT
}

/* 32 terms: the words of the first 16 come before those of the others. */
template <typename A = uint8_t, typename B = int8_t>
static __device__ __forceinline__ void multiply32(matrix &d, const uint32_t *a, const uint32_t *b, const matrix &c)
{
#if __CUDA_ARCH__ >= 800
#define PRODUCT(types)                                                                                                 \
    asm("mma.sync.aligned.m16n8k32.row.col.s32." types ".s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "                  \
        "{%10,%11,%12,%13};"                                                                                           \
        : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])                                                       \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]),     \
          "r"(c.v[3]))
    OF_TYPES(PRODUCT);
#undef PRODUCT
#else
    d = c;
    multiply8<A, B>(d.v[0], d.v[1], a[0], b[0]);
    multiply8<A, B>(d.v[2], d.v[3], a[1], b[0]);
    multiply8<A, B>(d.v[0], d.v[1], a[2], b[1]);
    multiply8<A, B>(d.v[2], d.v[3], a[3], b[1]);
#endif
}

/* 16 terms. */
template <typename A = uint8_t, typename B = int8_t>
static __device__ __forceinline__ void multiply16(matrix &d, const uint32_t *a, uint32_t b, const matrix &c)
{
#if __CUDA_ARCH__ >= 800
#define PRODUCT(types)                                                                                                 \
    asm("mma.sync.aligned.m16n8k16.row.col.s32." types ".s32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%7,%8,%9,%10};"            \
        : "=r"(d.v[0]), "=r"(d.v[1]), "=r"(d.v[2]), "=r"(d.v[3])                                                       \
        : "r"(a[0]), "r"(a[1]), "r"(b), "r"(c.v[0]), "r"(c.v[1]), "r"(c.v[2]), "r"(c.v[3]))
    OF_TYPES(PRODUCT);
#undef PRODUCT
#else
    d = c;
    multiply8<A, B>(d.v[0], d.v[1], a[0], b);
    multiply8<A, B>(d.v[2], d.v[3], a[1], b);
#endif
}

#undef OF_TYPES

/* Two levels, clamped to 0 to 255, to the low half of a word whose high half is ABOVE's low half. */
static __device__ __forceinline__ uint32_t pack_pair(int first, int second, uint32_t above)
{
    uint32_t word;
    asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %3;" : "=r"(word) : "r"(second), "r"(first), "r"(above));
    return word;
}

#endif
