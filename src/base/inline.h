/* SPDX-License-Identifier: MIT
 *
 * INLINE before a function puts its code into each caller, so that arguments that are constant there stay constant. Not
 * every file uses every such function of its headers. */
#ifndef GPUCONV_BASE_INLINE_H
#define GPUCONV_BASE_INLINE_H

#define INLINE static inline __attribute__((always_inline, unused))

#endif
