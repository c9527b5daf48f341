/* SPDX-License-Identifier: MIT
 *
 * What the tests of filters share: to read and find filters, to expect refusals, and the invariants of every filter. */
#ifndef GPUCONV_TESTS_FILTERS_H
#define GPUCONV_TESTS_FILTERS_H

#include "filter/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/helpers.h"

#define COUNT(array) (sizeof array / sizeof array[0])

/* A random number below LIMIT. */
uint64_t below(uint64_t *seed, uint64_t limit);

int64_t tap(const struct filter *filter, int x, int y);

/* The invariants of every filter. */
void check_invariants(const struct filter *filter);

/* The invariants that struct filter promises for two passes, for samples of 8 bits, or of 16 (IS_16_BIT). */
void check_passes(const struct filter *filter, bool is_16_bit);

/* Read a text as the file test.txt, and check the filter's invariants. */
void parse_bytes(const char *text, size_t size, struct filter *filter);
void parse(const char *text, struct filter *filter);

/* Expect that a text is refused with MESSAGE. */
void refuse_bytes(const char *text, size_t size, const char *message);
void refuse(const char *text, const char *message);

/* Find a filter, and check its invariants. Its `filter16` lasts until the next call. */
void find(const char *spec, struct filter *filter);

/* Expect that filter_find refuses SPEC. */
void refuse_find(const char *spec, enum error_code code, const char *message);

/* Parse the shipped filter NAME. */
void shipped(const char *name, struct filter *filter);

void check_taps(const struct filter *filter, int width, int height, const int32_t *taps, int32_t scale);
void check_vector(const int32_t *actual, const int32_t *expected, int count);
void check_same(const struct filter *a, const struct filter *b);

/* Are the taps the same after a rotation by 180 degrees and, if MIRRORED, after mirroring along x and the diagonal? */
bool is_symmetric(const struct filter *filter, bool mirrored);

#endif
