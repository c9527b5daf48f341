/* SPDX-License-Identifier: MIT
 *
 * The limits of ARITHMETIC_NARROW, whose sums have 16 bits, and how such sums become outputs. */
#ifndef GPUCONV_CPU_NARROW_H
#define GPUCONV_CPU_NARROW_H

#include "cpu/loops.h"

enum { NARROW_PAIR = 128 }; /* the largest size of the sum of two taps in one lane: their products saturate */

/* Do 16 bits hold the sums of samples of uint8_t and these taps, if they start with *START? */
bool narrow_fits(const int32_t *taps, int count, int16_t *start);

/* If sums of COUNT taps can be rounded in 16 bits, let PASS do so. */
void narrow_finish_make(const struct plan *plan, int count, struct pass *pass);

/* Is the root of the sums of both grids exact in floats? Then *TERM is what is added to it. */
bool narrow_root_fits(const struct plan *plan, float *term);

#endif
