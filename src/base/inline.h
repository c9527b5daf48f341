/* SPDX-License-Identifier: MIT
 *
 * INLINE before a function puts its code into each caller, so that arguments that are constant there stay constant. Not
 * every file uses every such function of its headers. */
#ifndef GPUCONV_BASE_INLINE_H
#define GPUCONV_BASE_INLINE_H

#define INLINE static inline __attribute__((always_inline, unused))

/* Marks the small functions that kernels share with the CPU, so that each rule is written once. */
#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#define NOT_INLINED __attribute__((noinline))
#else
#define HOST_DEVICE
#define NOT_INLINED __attribute__((unused))
#endif

#endif
