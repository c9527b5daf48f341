/* SPDX-License-Identifier: MIT
 *
 * The instruction sets for which inner loops are compiled, and the choice of one at run time. src/base/meson.build has
 * their compiler arguments. Each user has a table of its loops by instruction set: the CPU's variants (cpu/cpu.c), and
 * the decoder and the encoder of JPEG (jpeg/decode.c, jpeg/encode.c). */
#ifndef GPUCONV_BASE_VECTOR_INSTRUCTION_SETS_H
#define GPUCONV_BASE_VECTOR_INSTRUCTION_SETS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* Each set of x86-64 needs all that the sets before it need. */
enum instruction_set { SET_PORTABLE, SET_SSE2, SET_AVX2, SET_AVX512, SET_VNNI, SET_NEON, SET_I8MM, INSTRUCTION_SETS };

/* The name that $GPUCONV_CPU takes. */
const char *instruction_set_name(enum instruction_set set);

/* The instruction sets that this machine and this build have, from the slowest to the fastest. *COUNT is set to their
 * number. */
const enum instruction_set *instruction_sets(size_t *count);

/* Set *SET to the instruction set that $GPUCONV_CPU asks for, or to the fastest. Fails if the machine or the build does
 * not have what $GPUCONV_CPU asks for; *SET is then the fastest, too. ERROR may be NULL. */
bool instruction_set_find(enum instruction_set *set, struct error *error);

/* The initialiser of a table of loops by instruction set: NAME_portable, NAME_sse2 and so on. AVX512, VNNI and I8MM are
 * the sets whose loops these three use. */
#ifdef __x86_64__
#define LOOPS_BY_SET(name, avx512, vnni, i8mm)                                                                         \
    {                                                                                                                  \
        [SET_PORTABLE] = &name##_portable, [SET_SSE2] = &name##_sse2, [SET_AVX2] = &name##_avx2,                       \
        [SET_AVX512] = &name##_##avx512, [SET_VNNI] = &name##_##vnni                                                   \
    }
#elif defined(__aarch64__)
#define LOOPS_BY_SET(name, avx512, vnni, i8mm)                                                                         \
    {                                                                                                                  \
        [SET_PORTABLE] = &name##_portable, [SET_NEON] = &name##_neon, [SET_I8MM] = &name##_##i8mm                      \
    }
#else
#define LOOPS_BY_SET(name, avx512, vnni, i8mm)                                                                         \
    {                                                                                                                  \
        [SET_PORTABLE] = &name##_portable                                                                              \
    }
#endif

/* In a file that is compiled for each instruction set: the function or the table NAME of this one, as loops_avx2. */
#ifdef GPUCONV_SET
#define JOIN_NAMES(name, set) name##_##set
#define NAME_IN_SET(name, set) JOIN_NAMES(name, set)
#define IN_SET(name) NAME_IN_SET(name, GPUCONV_SET)
#endif

#endif
