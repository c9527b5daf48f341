/* SPDX-License-Identifier: MIT
 *
 * Exact fractions: numbers are fractions for as long as 64 bits hold them, so that taps with a common denominator are
 * never rounded. Doubles come from operations that IEEE 754 defines to the last bit, so that the same text makes the
 * same taps on every machine. */
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
    struct number quotient = {0, 0, a.value / b.value};
    if (a.denominator == 0 || b.denominator == 0)
        return quotient;

    /* Cancelled across before the products, which are then in lowest terms and as small as can be. */
    const int64_t upper = greatest_common_divisor(a.numerator, b.numerator);
    const int64_t lower = greatest_common_divisor(a.denominator, b.denominator);
    const int64_t sign = b.numerator < 0 ? -1 : 1;
    int64_t numerator, denominator;
    if (__builtin_mul_overflow(a.numerator / upper * sign, b.denominator / lower, &numerator) ||
        __builtin_mul_overflow(b.numerator / upper * sign, a.denominator / lower, &denominator))
        return quotient;
    return (struct number){numerator, denominator, (double)numerator / (double)denominator};
}

bool number_is_integer(struct number number, int64_t from, int64_t to)
{
    return number.denominator == 1 && number.numerator >= from && number.numerator <= to;
}

struct number number_round(struct number number)
{
    const int64_t unit = (int64_t)1 << 20;
    const double rounded = round(number.value * (double)unit);
    return number_divide((struct number){(int64_t)rounded, 1, rounded}, (struct number){unit, 1, (double)unit});
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* DIGITS * 10^EXPONENT; ROUNDED if DIGITS are not all that were written. */
static struct number number_scaled(int64_t digits, long exponent, bool rounded)
{
    if (digits == 0) /* not rounded then; and no power of ten would ever end the loops below */
        return NUMBER_ZERO;
    for (; exponent < 0 && digits % 10 == 0; exponent++)
        digits /= 10; /* 0.2500000000000000000 is still a quarter */
    int64_t numerator = digits, denominator = 1;
    double value = (double)digits;
    bool exact = !rounded;
    for (; exponent > 0 && isfinite(value); exponent--) {
        value *= 10.0;
        exact = exact && !__builtin_mul_overflow(numerator, 10, &numerator);
    }
    for (; exponent < 0 && value != 0.0; exponent++) {
        value /= 10.0;
        exact = exact && !__builtin_mul_overflow(denominator, 10, &denominator);
    }
    if (!exact)
        return (struct number){0, 0, value};
    const int64_t common = greatest_common_divisor(numerator, denominator);
    return (struct number){numerator / common, denominator / common, (double)numerator / (double)denominator};
}

/* Read `12`, `.5`, `1.` or `2.5e-3`, without a sign, from AT on. Returns where it ends, or NULL. Written out, because
 * strtod follows the locale and takes nan, inf and 0x10 too. */
static const char *decimal_read(const char *at, const char *end, struct number *number)
{
    const long far = 1000000; /* beyond any double and any file, so that exponents need no overflow check */
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
    if (at && at < end && *at == '/') {
        struct number divisor;
        at = decimal_read(at + 1, end, &divisor);
        if (at && divisor.value == 0.0)
            return NUMBER_OVER_ZERO;
        if (at && !isfinite(divisor.value))
            return NUMBER_TOO_LARGE;
        if (at)
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
