/* SPDX-License-Identifier: MIT
 *
 * Vectors: the words in which the inner loops of the CPU's variants and of JPEG are written. A file that includes this
 * one is compiled once for each instruction set (instruction_sets.h). Its vectors are as long as those of the set.
 *
 * A vector has LANES lanes of 32 bits. Four lanes are a quad: 128 bits. Instructions that move elements mostly move
 * them within a quad. A word that names no type works on ints, lane by lane; the others name theirs. Sums and products
 * wrap.
 *
 * The words of types.h are plain C. The header of an instruction set adds those that need its instructions: x86.h for
 * SSE2, AVX2 and AVX-512, where they are described, neon.h for AArch64, and portable.h for any processor.
 *
 * To add an instruction set: write a header with the words of neon.h, and include it below. Define HAS_PAIRS,
 * HAS_BYTE_PAIRS, HAS_FOURS and HAS_SHUFFLE there, which say whether the set has an instruction for multiply_pairs,
 * multiply_byte_pairs, multiply_fours_add and shuffle. Then add the set to instruction_sets.[ch], to
 * src/base/meson.build and to the tables of its users. */
#ifndef GPUCONV_BASE_VECTOR_H
#define GPUCONV_BASE_VECTOR_H

#include "base/vector/types.h"

#ifdef GPUCONV_PORTABLE
#include "base/vector/portable.h"
#elif defined(__aarch64__)
#include "base/vector/neon.h"
#else
#include "base/vector/x86.h"
#endif

#ifndef __AVX512VNNI__
INLINE ints multiply_pairs_add(ints sums, shorts a, shorts b)
{
    return add(sums, multiply_pairs(a, b));
}
#endif

/* A vector for several uses. A compiler may read memory for each of them, and x86 reads two vectors a cycle. */
INLINE shorts load_shorts_once(const void *from)
{
    shorts value = load_shorts(from);
#if defined(__x86_64__) && !defined(GPUCONV_PORTABLE)
    __asm__("" : "+x"(value));
#endif
    return value;
}

/* The shorts of the two halves of each quad, alternately. */
INLINE shorts alternate(shorts value)
{
#if !HAS_SHUFFLE
    return zip_first16(value, zip_last64(value, value));
#else
    static const uint8_t indices[QUAD] = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
    return shuffle(value, load_quad(indices));
#endif
}

INLINE ints clamp(ints value, ints low, ints high)
{
    return smaller(larger(value, low), high);
}

#endif
