/* SPDX-License-Identifier: MIT
 *
 * The numbers of a filter's text: exact fractions while 64 bits hold them, and their nearest doubles. */
#ifndef GPUCONV_NUMBER_H
#define GPUCONV_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct number {
    int64_t numerator, denominator; /* in lowest terms; the denominator is 0 if 64 bits do not hold both */
    double value;                   /* always set */
};

#define NUMBER_ZERO ((struct number){.numerator = 0, .denominator = 1, .value = 0.0})
#define NUMBER_ONE ((struct number){.numerator = 1, .denominator = 1, .value = 1.0})
#define NUMBER_HUNDRED ((struct number){.numerator = 100, .denominator = 1, .value = 100.0})

static inline bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* The faults of the text of a number. */
enum number_fault { NUMBER_FINE, NUMBER_MALFORMED, NUMBER_TOO_LARGE, NUMBER_OVER_ZERO };

/* Read the number that fills the bytes from AT to END: a decimal (`12`, `.5`, `1.`, `2.5e-3`) or a fraction of two,
 * with an optional sign. *NUMBER is undefined unless the result is NUMBER_FINE. */
enum number_fault number_read(const char *at, const char *end, struct number *number);

/* A / B; B is not 0. The quotient is exact if A and B are exact and 64 bits hold the result. */
struct number number_divide(struct number a, struct number b);

/* NUMBER, at most 65536 in absolute value, rounded to the nearest 1/2^20. */
struct number number_round(struct number number);

/* Is NUMBER a whole number from FROM to TO? */
bool number_is_integer(struct number number, int64_t from, int64_t to);

/* The greatest common divisor of A and B, at least 0. */
int64_t greatest_common_divisor(int64_t a, int64_t b);

#ifdef __cplusplus
}
#endif

#endif
