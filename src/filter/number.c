/* SPDX-License-Identifier: MIT
 *
 * Exact fractions. A number stays a fraction while 64 bits hold it, so that taps with a common denominator are never
 * rounded. IEEE 754 defines the operations on doubles to the last bit, so the same text gives the same taps on every
 * machine. */
#include "filter/number.h"

#include <math.h>
#include <stddef.h>

int64_t greatest_common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

struct number number_divide(struct number a, struct number b)
{
    const struct number inexact = {.value = a.value / b.value};
    if (a.denominator == 0 || b.denominator == 0)
        return inexact;

    /* Cancel across first: then the products are in lowest terms and as small as possible. */
    const int64_t upper = greatest_common_divisor(a.numerator, b.numerator);
    const int64_t lower = greatest_common_divisor(a.denominator, b.denominator);
    const int64_t sign = b.numerator < 0 ? -1 : 1;
    int64_t numerator, denominator;
    if (__builtin_mul_overflow(a.numerator / upper * sign, b.denominator / lower, &numerator) ||
        __builtin_mul_overflow(b.numerator / upper * sign, a.denominator / lower, &denominator))
        return inexact;
    return (struct number){
        .numerator = numerator, .denominator = denominator, .value = (double)numerator / (double)denominator};
}

bool number_is_integer(struct number number, int64_t from, int64_t to)
{
    return number.denominator == 1 && number.numerator >= from && number.numerator <= to;
}

struct number number_round(struct number number)
{
    const int64_t unit = (int64_t)1 << 20;
    const double rounded = round(number.value * (double)unit);
    return number_divide((struct number){.numerator = (int64_t)rounded, .denominator = 1, .value = rounded},
                         (struct number){.numerator = unit, .denominator = 1, .value = (double)unit});
}

/* The number DIGITS * 10^EXPONENT. IS_ROUNDED says that the text has more digits than DIGITS. */
static struct number number_scaled(int64_t digits, long exponent, bool is_rounded)
{
    if (digits == 0) /* never rounded, and the loops below would not end */
        return NUMBER_ZERO;
    for (; exponent < 0 && digits % 10 == 0; exponent++)
        digits /= 10; /* 0.2500000000000000000 is a quarter */
    int64_t numerator = digits, denominator = 1;
    double value = (double)digits;
    bool exact = !is_rounded;
    for (; exponent > 0 && isfinite(value); exponent--) {
        value *= 10.0;
        exact = exact && !__builtin_mul_overflow(numerator, 10, &numerator);
    }
    for (; exponent < 0 && value != 0.0; exponent++) {
        value /= 10.0;
        exact = exact && !__builtin_mul_overflow(denominator, 10, &denominator);
    }
    if (!exact)
        return (struct number){.value = value};
    const int64_t common = greatest_common_divisor(numerator, denominator);
    return (struct number){.numerator = numerator / common,
                           .denominator = denominator / common,
                           .value = (double)numerator / (double)denominator};
}

/* Read `12`, `.5`, `1.` or `2.5e-3`, without a sign, at AT. Returns the end of the number, or NULL. strtod is not
 * suitable: it follows the locale and also reads nan, inf and 0x10. */
static const char *decimal_read(const char *at, const char *end, struct number *number)
{
    const long far = 1000000; /* larger than any exponent of a double and any file, so exponents cannot overflow */
    int64_t digits = 0;
    long exponent = 0;
    bool any = false, point = false, rounded = false;
    for (; at < end && (is_digit(*at) || (*at == '.' && !point)); at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        any = true;
        if (digits <= (INT64_MAX - 9) / 10) {
            digits = digits * 10 + (*at - '0');
        } else {
            rounded = rounded || *at != '0';
            exponent++;
        }
        exponent -= point;
    }
    if (!any)
        return NULL;

    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        const bool negative = at < end && *at == '-';
        if (at < end && (*at == '-' || *at == '+'))
            at++;
        if (at == end || !is_digit(*at))
            return NULL;
        long power = 0;
        for (; at < end && is_digit(*at); at++)
            power = power < far ? power * 10 + (*at - '0') : power;
        exponent += negative ? -power : power;
    }
    *number = number_scaled(digits, exponent, rounded);
    return at;
}

enum number_fault number_read(const char *at, const char *end, struct number *number)
{
    const bool negative = at < end && *at == '-';
    if (at < end && (*at == '-' || *at == '+'))
        at++;
    at = decimal_read(at, end, number);
    if (at != NULL && at < end && *at == '/') {
        struct number divisor;
        at = decimal_read(at + 1, end, &divisor);
        if (at != NULL && divisor.value == 0.0)
            return NUMBER_OVER_ZERO;
        if (at != NULL && !isfinite(divisor.value))
            return NUMBER_TOO_LARGE;
        if (at != NULL)
            *number = number_divide(*number, divisor);
    }
    if (at != end)
        return NUMBER_MALFORMED;
    if (!isfinite(number->value))
        return NUMBER_TOO_LARGE;
    if (negative) {
        number->numerator = -number->numerator;
        number->value = -number->value;
    }
    return NUMBER_FINE;
}
