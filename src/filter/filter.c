/* SPDX-License-Identifier: MIT
 *
 * Filters: from text to numbers, from numbers to integer taps, the parametric ones, the search path, and a
 * description for people. Numbers are kept as exact fractions for as long as 64 bits hold them, so that taps which have
 * a common denominator are never rounded; whatever is real is computed in double with operations that IEEE 754
 * defines to the last bit, so that the same text makes the same taps on every machine. */
#include "filter/filter.h"

#include "base/file.h"
#include "base/text.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

__extension__ typedef __int128 int128;

/* ---- Numbers ---- */

/* A number of the text. */
struct number {
    int64_t numerator, denominator; /* in lowest terms; the denominator is 0 where 64 bits could not hold the two */
    double value;
};

static const struct number zero = {0, 1, 0.0};
static const struct number one = {1, 1, 1.0};

enum number_fault { NUMBER_FINE, NUMBER_MALFORMED, NUMBER_TOO_LARGE, NUMBER_OVER_ZERO };

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

/* A / B, where B is not 0: exact if both are and 64 bits hold the result. */
static struct number number_divide(struct number a, struct number b)
{
    struct number quotient = {0, 0, a.value / b.value};
    if (a.denominator == 0 || b.denominator == 0)
        return quotient;

    /* Cancelled across before the products, which are then in lowest terms and as small as can be. */
    const int64_t upper = gcd(a.numerator, b.numerator);
    const int64_t lower = gcd(a.denominator, b.denominator);
    const int64_t sign = b.numerator < 0 ? -1 : 1;
    int64_t numerator, denominator;
    if (__builtin_mul_overflow(a.numerator / upper * sign, b.denominator / lower, &numerator) ||
        __builtin_mul_overflow(b.numerator / upper * sign, a.denominator / lower, &denominator))
        return quotient;
    return (struct number){numerator, denominator, (double)numerator / (double)denominator};
}

static bool number_is_integer(struct number number, int64_t from, int64_t to)
{
    return number.denominator == 1 && number.numerator >= from && number.numerator <= to;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* DIGITS * 10^EXPONENT; ROUNDED if DIGITS are not all that were written. */
static struct number number_scaled(int64_t digits, long exponent, bool rounded)
{
    if (digits == 0) /* not rounded then; and no power of ten would ever end the loops below */
        return zero;
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
    const int64_t common = gcd(numerator, denominator);
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

/* Read a number that is the whole of AT to END: a decimal, or a fraction of two. */
static enum number_fault number_read(const char *at, const char *end, struct number *number)
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

/* ---- Numbers to taps ---- */

/* Fill column and row if the taps are their product. The row is the first row of taps that is not zero, divided by
 * its gcd, with its first tap that is not zero above 0. As its entries have no common divisor, any integer row that
 * is a multiple of it is an integer multiple, so this finds a factoring in integers whenever there is one. And
 * sum|column| * sum|row| = sum|q|, so both passes stay in 32 bits too. */
static void factor(struct filter *filter)
{
    const int width = filter->width;
    const int count = width * filter->height;
    memset(filter->column, 0, sizeof filter->column);
    memset(filter->row, 0, sizeof filter->row);
    filter->separable = filter->combine == COMBINE_NONE;
    if (!filter->separable)
        return;

    int first = 0; /* the first tap that is not zero */
    while (first < count && filter->taps[first] == 0)
        first++;
    if (first == count)
        return;

    const int lead = first % width;
    const int32_t *row = filter->taps + (first - lead);
    int64_t divisor = 0;
    for (int x = 0; x < width; x++)
        divisor = gcd(divisor, row[x]);
    if (row[lead] < 0)
        divisor = -divisor;
    for (int x = 0; x < width; x++)
        filter->row[x] = (int32_t)(row[x] / divisor);

    for (int y = 0; y < filter->height; y++)
        filter->column[y] = filter->taps[y * width + lead] / filter->row[lead];
    for (int i = 0; i < count; i++) {
        const int64_t product = (int64_t)filter->column[i / width] * filter->row[i % width];
        if (product != filter->taps[i])
            filter->separable = false;
    }
    if (!filter->separable) {
        memset(filter->column, 0, sizeof filter->column);
        memset(filter->row, 0, sizeof filter->row);
    }
}

/* OFFSET, at most 65536, to 1/2^20: far below what an 8-bit level shows. */
static struct number round_offset(struct number offset)
{
    const int64_t unit = (int64_t)1 << 20;
    const double rounded = round(offset.value * (double)unit);
    return number_divide((struct number){(int64_t)rounded, 1, rounded}, (struct number){unit, 1, (double)unit});
}

/* Level n is reached where sqrt(N) >= a = D (n - O - 1/2), so where a <= 0 or N >= a^2: its step is ceil(a^2).
 *
 * With O = p/r, a = u / w where u = D (2rn - 2p - r) and w = 2r. As r <= 2^20, |p| <= 2^16 r and D <= 2^30, |u| is
 * below 2^70. With i = floor(a) and rest = u - i w, a^2 = i^2 + (2 i rest w + rest^2) / w^2. sqrt(N) <= |s1| + |s2| <
 * 2^31, so that i >= 2^31 is out of reach; below, i^2 < 2^62 and 2 i rest w < 2^74. */
static void make_steps(struct filter *filter, struct number offset)
{
    const int128 w = 2 * (int128)offset.denominator;
    for (int n = 0; n < FILTER_LEVELS; n++) {
        const int128 u = filter->scale * (n * w - 2 * (int128)offset.numerator - offset.denominator);
        const int128 i = u / w, rest = u % w;
        if (n == 0 || u <= 0)
            filter->steps[n] = 0;
        else if (i > INT32_MAX)
            filter->steps[n] = INT64_MAX;
        else
            filter->steps[n] = (int64_t)(i * i + (2 * i * rest * w + rest * rest + w * w - 1) / (w * w));
    }
}

/* floor(D * (k p/r + 1/2)) = floor(D * (2kp + r) / 2r), where an offset of p/r levels is k p/r of finer ones: D has up
 * to 30 bits, p 63 and k 9, which 128 hold. As |p/r| < 2^16, the result is below 2^55. */
static int64_t bias_of(int32_t scale, struct number offset, int finer)
{
    const int128 dividend = (2 * finer * (int128)offset.numerator + offset.denominator) * scale;
    const int128 divisor = 2 * (int128)offset.denominator;
    const int128 quotient = dividend / divisor;
    return (int64_t)(quotient - (dividend % divisor < 0));
}

/* From taps, scale and offset (exact, at most 65535) to everything that follows from them. */
static void finish(struct filter *filter, struct number offset)
{
    const int count = filter_grids(filter) * filter->width * filter->height;
    int64_t common = filter->exact ? filter->scale : 1; /* what was rounded stays over its power of two */
    for (int i = 0; i < count; i++)
        common = gcd(common, filter->taps[i]);

    filter->scale = (int32_t)(filter->scale / common);
    filter->tap_sum = 0;
    filter->absolute_sum = 0;
    for (int i = 0; i < count; i++) {
        filter->taps[i] = (int32_t)(filter->taps[i] / common);
        filter->tap_sum += i < filter->width * filter->height ? filter->taps[i] : 0;
        filter->absolute_sum += filter->taps[i] < 0 ? -filter->taps[i] : filter->taps[i];
    }

    if (filter->combine != COMBINE_NONE && offset.denominator > 1 << 20)
        offset = round_offset(offset); /* so that 128 bits hold what make_steps needs */
    if (filter->combine == COMBINE_MAGNITUDE)
        make_steps(filter, offset);

    filter->bias = bias_of(filter->scale, offset, 1);
    filter->bias16 = bias_of(filter->scale, offset, 257);
    filter->offset_numerator = offset.numerator;
    filter->offset_denominator = offset.denominator;
    filter->offset = offset.value;
    factor(filter);
}

/* Hold the taps exactly, over their common denominator, if that and the sum are small enough. Every tap is in lowest
 * terms, so the least common denominator leaves nothing to cancel. */
static bool hold_exactly(struct filter *filter, const struct number *taps)
{
    const int count = filter_grids(filter) * filter->width * filter->height;
    int64_t scale = 1;
    for (int i = 0; i < count; i++) {
        const int64_t denominator = taps[i].denominator;
        if (denominator == 0 || __builtin_mul_overflow(scale / gcd(scale, denominator), denominator, &scale) ||
            scale > (int64_t)1 << 30)
            return false;
    }

    int64_t sum = 0;
    for (int i = 0; i < count; i++) {
        int64_t tap;
        if (__builtin_mul_overflow(taps[i].numerator, scale / taps[i].denominator, &tap) || tap > FILTER_MAX_SUM ||
            tap < -FILTER_MAX_SUM)
            return false;
        filter->taps[i] = (int32_t)tap;
        sum += tap < 0 ? -tap : tap;
    }
    filter->scale = (int32_t)scale;
    filter->exact = true;
    filter->largest_error = 0.0;
    return sum <= FILTER_MAX_SUM;
}

/* What rounding took from a tap. */
struct remainder {
    double value;
    int distance; /* to the anchor, squared */
    int index;
};

/* qsort's order of the taps that take up what is missing in the sum: the largest remainder first. */
static int compare_remainders(const void *a, const void *b)
{
    const struct remainder *left = a, *right = b;
    if (left->value != right->value)
        return left->value > right->value ? -1 : 1;
    if (left->distance != right->distance)
        return left->distance - right->distance;
    return left->index - right->index;
}

/* Round TAPS times 2^K to the integers TO whose sum is that of TAPS times 2^K, rounded. |taps| * 2^K must fit in 32
 * bits. Returns the sum of their absolute values. */
static int64_t round_taps(const struct filter *filter, const struct number *taps, int k, struct remainder *remainders,
                          int32_t *to)
{
    const int count = filter->width * filter->height;
    double sum = 0.0;
    for (int i = 0; i < count; i++)
        sum += taps[i].value;
    int64_t missing = (int64_t)round(ldexp(sum, k));
    for (int i = 0; i < count; i++) {
        const double tap = ldexp(taps[i].value, k);
        const int dx = i % filter->width - filter->anchor_x, dy = i / filter->width - filter->anchor_y;
        to[i] = (int32_t)round(tap); /* half away from zero, so that it keeps symmetry */
        remainders[i] = (struct remainder){tap - to[i], dx * dx + dy * dy, i};
        missing -= to[i];
    }

    /* Each remainder is at most a half, so fewer taps than there are need one step each. */
    const int32_t step = missing < 0 ? -1 : 1;
    for (int i = 0; i < count; i++)
        remainders[i].value *= step;
    if (missing != 0)
        qsort(remainders, (size_t)count, sizeof *remainders, compare_remainders);
    for (int i = 0; i < missing * step; i++)
        to[remainders[i].index] += step;

    int64_t absolute_sum = 0;
    for (int i = 0; i < count; i++)
        absolute_sum += to[i] < 0 ? -to[i] : to[i];
    return absolute_sum;
}

/* Round the taps once, to the finest power of two that FILTER_MAX_SUM allows. Each grid keeps its sum. Of two, C moves
 * by no more than their sums do together, whichever it is, so that the bound below holds for both. */
static bool hold_rounded(struct filter *filter, const struct number *taps, const char *name, struct error *error)
{
    const int grid = filter->width * filter->height, count = filter_grids(filter) * grid;
    double absolute_sum = 0.0;
    for (int i = 0; i < count; i++)
        absolute_sum += fabs(taps[i].value);

    struct remainder *remainders = malloc((size_t)grid * sizeof *remainders);
    if (!remainders)
        return error_about(error, ERROR_WORK, name, "there is not enough memory to read this filter");
    int k = 30;
    for (; k >= 0; k--) {
        /* Rounding moves the sum by less than COUNT: anything larger need not be tried, and would not fit. */
        if (!(ldexp(absolute_sum, k) <= FILTER_MAX_SUM + count))
            continue;
        int64_t rounded_sum = 0;
        for (int i = 0; i < count; i += grid)
            rounded_sum += round_taps(filter, taps + i, k, remainders, filter->taps + i);
        if (rounded_sum <= FILTER_MAX_SUM)
            break;
    }
    free(remainders);
    if (k < 0)
        return error_about(error, ERROR_WORK, name,
                           "the absolute values of the taps, divided by the scale, sum to %.10g, and at most %d fit "
                           "in 32 bits; use smaller taps or a larger scale",
                           absolute_sum, FILTER_MAX_SUM);

    filter->scale = (int32_t)1 << k;
    filter->exact = false;
    filter->largest_error = 0.0;
    for (int i = 0; i < count; i++)
        filter->largest_error += 255.0 * fabs(ldexp(filter->taps[i], -k) - taps[i].value);
    return true;
}

/* ---- Text to numbers ---- */

/* One row more than a grid has, for the first line of a libvips matrix, and the second grid. */
#define MAX_LINES (FILTER_MAX + 1 + FILTER_MAX)

enum keyword {
    KEYWORD_TITLE,
    KEYWORD_SCALE,
    KEYWORD_OFFSET,
    KEYWORD_ABS,
    KEYWORD_ANCHOR,
    KEYWORD_COMBINE,
    KEYWORD_COUNT
};

static const char *const keywords[KEYWORD_COUNT] = {"title", "scale", "offset", "abs", "anchor", "combine"};

static const char *const combine_names[COMBINE_COUNT] = {
    [COMBINE_NONE] = "none", [COMBINE_MAGNITUDE] = "magnitude", [COMBINE_MAX] = "max", [COMBINE_SUM] = "sum"};

const char *combine_name(enum combine combine)
{
    return combine_names[combine];
}

/* The line between two grids. */
static const char separator[] = "---";

/* A line of taps as it was read. */
struct line {
    size_t number;                     /* in the file, from 1 */
    int count;                         /* of taps */
    uint32_t columns[FILTER_MAX + 1];  /* where each tap begins, from 1, and where the line ends */
    struct number numbers[FILTER_MAX]; /* the taps */
};

struct parser {
    const char *name; /* for messages */
    struct error *error;
    const char *start, *at, *end; /* of the line, without its comment */
    size_t number;                /* of the line, from 1 */

    size_t seen[KEYWORD_COUNT];    /* the line of each keyword, 0 for none */
    size_t columns[KEYWORD_COUNT]; /* and where it begins */
    uint32_t anchor_column;        /* where its numbers begin */
    int64_t anchor_x, anchor_y;
    struct number scale, offset;
    size_t separator;        /* the line between two grids, 0 for none */
    size_t separator_column; /* where it begins */
    int first_count;         /* of lines before it */
    int count;
    struct line lines[MAX_LINES];
};

static bool fail_at(struct parser *parser, size_t line, size_t column, const char *format, ...) ERROR_PRINTF(4, 5);

/* Say what is wrong at LINE and COLUMN. */
static bool fail_at(struct parser *parser, size_t line, size_t column, const char *format, ...)
{
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(sentence, sizeof sentence, format, arguments) < 0)
        sentence[0] = '\0';
    va_end(arguments);
    return error_set(parser->error, ERROR_WORK, "%s:%zu:%zu: %s", parser->name, line, column, sentence);
}

static size_t column_of(const struct parser *parser, const char *at)
{
    return (size_t)(at - parser->start) + 1;
}

static bool is_separator(char c)
{
    return c == ' ' || c == '\t' || c == ',' || c == ';';
}

/* Skip separators. Is there anything behind them? */
static bool more(struct parser *parser)
{
    while (parser->at < parser->end && is_separator(*parser->at))
        parser->at++;
    return parser->at < parser->end;
}

static const char *token_end(const struct parser *parser)
{
    const char *end = parser->at;
    while (end < parser->end && !is_separator(*end))
        end++;
    return end;
}

/* What stands at the parser, for a message: a word in quotes, cut where it is long, or `the end of the line`. */
struct found {
    char text[48];
};

static struct found found(struct parser *parser)
{
    struct found found = {"the end of the line"};
    if (!more(parser))
        return found;
    const size_t longest = 32;
    const size_t length = (size_t)(token_end(parser) - parser->at);
    char *to = found.text;
    *to++ = '"';
    for (size_t i = 0; i < length && i < longest; i++) /* a terminal may read bytes that are not ASCII as commands */
        *to++ = parser->at[i] >= 0x20 && parser->at[i] < 0x7f ? parser->at[i] : '?';
    strcpy(to, length > longest ? "...\"" : "\"");
    return found;
}

/* Take the next number of the line; EXPECTED says what it is. */
static bool take_number(struct parser *parser, const char *expected, struct number *number)
{
    const struct found text = found(parser);
    const size_t column = column_of(parser, parser->at);
    const char *const end = token_end(parser);
    switch (number_read(parser->at, end, number)) {
    case NUMBER_MALFORMED:
        return fail_at(parser, parser->number, column, "expected %s, found %s", expected, text.text);
    case NUMBER_TOO_LARGE:
        return fail_at(parser, parser->number, column, "expected %s, found %s, which is too large", expected,
                       text.text);
    case NUMBER_OVER_ZERO:
        return fail_at(parser, parser->number, column, "expected %s, found %s, which divides by 0", expected,
                       text.text);
    case NUMBER_FINE:
        break;
    }
    parser->at = end;
    return true;
}

static bool take_scale(struct parser *parser, size_t line, size_t column, struct number scale)
{
    if (scale.value == 0.0)
        return fail_at(parser, line, column, "expected a scale other than 0, by which the sum is divided");
    parser->scale = scale;
    return true;
}

static bool take_offset(struct parser *parser, size_t line, size_t column, struct number offset)
{
    if (offset.denominator == 0 && fabs(offset.value) <= 65536.0)
        offset = round_offset(offset); /* more digits than a fraction holds */
    /* 8-bit levels need no more, and 16-bit ones end there. */
    const int128 most = (int128)65535 * offset.denominator;
    if (offset.denominator == 0 || offset.numerator > most || offset.numerator < -most)
        return fail_at(parser, line, column, "expected an offset from -65535 to 65535, found %.10g", offset.value);
    parser->offset = offset;
    return true;
}

static bool take_anchor(struct parser *parser, int64_t *place)
{
    const char *const expected = "the anchor's column and row, counted from 0";
    const struct found text = found(parser);
    const size_t column = column_of(parser, parser->at);
    struct number number;
    if (!take_number(parser, expected, &number))
        return false;
    if (!number_is_integer(number, 0, FILTER_MAX - 1))
        return fail_at(parser, parser->number, column, "expected %s, each a whole number from 0 to %d, found %s",
                       expected, FILTER_MAX - 1, text.text);
    *place = number.numerator;
    return true;
}

static bool take_title(struct parser *parser, char *title, size_t size)
{
    if (!more(parser))
        return fail_at(parser, parser->number, column_of(parser, parser->at), "expected a title of a few words");
    const char *end = parser->end;
    while (is_separator(end[-1]))
        end--;
    const size_t length = (size_t)(end - parser->at);
    if (length >= size)
        return fail_at(parser, parser->number, column_of(parser, parser->at),
                       "expected a title of at most %zu bytes, found %zu", size - 1, length);
    memcpy(title, parser->at, length);
    title[length] = '\0';
    parser->at = parser->end;
    return true;
}

static bool take_combine(struct parser *parser, enum combine *combine)
{
    const struct found word = found(parser);
    const char *const start = parser->at;
    parser->at = token_end(parser);
    for (int i = COMBINE_NONE + 1; i < COMBINE_COUNT; i++) {
        const size_t length = strlen(combine_names[i]);
        if ((size_t)(parser->at - start) == length && memcmp(start, combine_names[i], length) == 0) {
            *combine = (enum combine)i;
            return true;
        }
    }
    return fail_at(parser, parser->number, column_of(parser, start),
                   "expected magnitude, max or sum, by which the sums of two grids become one, found %s", word.text);
}

/* The line begins with a letter. */
static bool parse_keyword(struct parser *parser, struct filter *filter)
{
    const struct found word = found(parser);
    const char *const start = parser->at;
    const char *const end = token_end(parser);
    const size_t column = column_of(parser, start), length = (size_t)(end - start);
    int keyword = 0;
    while (keyword < KEYWORD_COUNT &&
           (strlen(keywords[keyword]) != length || memcmp(start, keywords[keyword], length) != 0))
        keyword++;

    if (keyword == KEYWORD_COUNT) {
        char copy[48] = "";
        if (length < sizeof copy)
            memcpy(copy, start, length);
        const char *const nearest = error_nearest(copy, keywords, KEYWORD_COUNT);
        return fail_at(parser, parser->number, column,
                       "expected a row of taps or one of title, scale, offset, abs, anchor and combine, found %s%s%s%s",
                       word.text, nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
    }
    if (parser->count > 0)
        return fail_at(parser, parser->number, column,
                       "expected a row of taps, found %s, which must stand before the first row", word.text);
    if (parser->seen[keyword] != 0)
        return fail_at(parser, parser->number, column,
                       "expected %s only once, but line %zu has it too; remove one of the two", word.text,
                       parser->seen[keyword]);
    parser->seen[keyword] = parser->number;
    parser->columns[keyword] = column;

    parser->at = end;
    more(parser);
    const size_t value_column = column_of(parser, parser->at);
    struct number number;
    bool taken = true;
    switch ((enum keyword)keyword) {
    case KEYWORD_TITLE:
        taken = take_title(parser, filter->title, sizeof filter->title);
        break;
    case KEYWORD_SCALE:
        taken = take_number(parser, "a scale such as 16 or 0.5", &number) &&
                take_scale(parser, parser->number, value_column, number);
        break;
    case KEYWORD_OFFSET:
        taken = take_number(parser, "an offset such as 128 or -0.5", &number) &&
                take_offset(parser, parser->number, value_column, number);
        break;
    case KEYWORD_ABS:
        filter->absolute = true;
        break;
    case KEYWORD_ANCHOR:
        parser->anchor_column = (uint32_t)value_column;
        taken = take_anchor(parser, &parser->anchor_x) && take_anchor(parser, &parser->anchor_y);
        break;
    case KEYWORD_COMBINE:
        taken = take_combine(parser, &filter->combine);
        break;
    case KEYWORD_COUNT:
        break;
    }
    if (taken && more(parser))
        return fail_at(parser, parser->number, column_of(parser, parser->at), "expected the end of the line, found %s",
                       found(parser).text);
    return taken;
}

static bool is_grid_separator(const struct parser *parser)
{
    const size_t length = strlen(separator);
    return (size_t)(token_end(parser) - parser->at) == length && memcmp(parser->at, separator, length) == 0;
}

static bool parse_separator(struct parser *parser)
{
    const size_t column = column_of(parser, parser->at);
    if (parser->count == 0)
        return fail_at(parser, parser->number, column,
                       "expected the rows of the first of two grids before the line %s between them", separator);
    if (parser->separator != 0)
        return fail_at(parser, parser->number, column,
                       "expected at most two grids, but the line %s before the second is line %zu", separator,
                       parser->separator);
    if (parser->seen[KEYWORD_COMBINE] == 0)
        return fail_at(parser, parser->number, column,
                       "expected a row of taps, found \"%s\", behind which a second grid begins; say before the first "
                       "row how the sums of the two become one: combine magnitude, combine max or combine sum",
                       separator);
    parser->separator = parser->number;
    parser->separator_column = column;
    parser->first_count = parser->count;
    parser->at = token_end(parser);
    if (more(parser))
        return fail_at(parser, parser->number, column_of(parser, parser->at), "expected the end of the line, found %s",
                       found(parser).text);
    return true;
}

static bool parse_row(struct parser *parser)
{
    const int most = parser->separator == 0 ? FILTER_MAX + 1 : parser->first_count + FILTER_MAX;
    if (parser->count == most)
        return fail_at(parser, parser->number, column_of(parser, parser->at), "expected at most %d rows of taps",
                       FILTER_MAX);
    struct line *line = &parser->lines[parser->count++];
    line->number = parser->number;
    line->count = 0;
    do {
        const size_t column = column_of(parser, parser->at);
        if (line->count == FILTER_MAX)
            return fail_at(parser, parser->number, column, "expected at most %d taps in a row", FILTER_MAX);
        line->columns[line->count] = (uint32_t)column;
        if (!take_number(parser, "a tap such as 3, -0.5 or 1/16", &line->numbers[line->count]))
            return false;
        line->count++;
        line->columns[line->count] = (uint32_t)column_of(parser, parser->at);
    } while (more(parser));
    return true;
}

/* Text holds no control bytes but tabs and line ends (with a CR before them or without). */
static bool check_bytes(struct parser *parser, const char *text, const char *end)
{
    size_t line = 1;
    const char *start = text;
    for (const char *at = text; at < end; at++) {
        if (*at == '\n') {
            line++;
            start = at + 1;
            continue;
        }
        const unsigned char byte = (unsigned char)*at;
        const bool line_end = byte == '\r' && (at + 1 == end || at[1] == '\n');
        if ((byte < 0x20 && byte != '\t' && !line_end) || byte == 0x7f)
            return fail_at(parser, line, (size_t)(at - start) + 1,
                           "expected text, found the byte 0x%02x; this is no filter file", byte);
    }
    return true;
}

/* Read all lines of the text. */
static bool parse_lines(struct parser *parser, const char *text, const char *end, struct filter *filter)
{
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *const line_end = newline ? newline : end;
        const char *const comment = memchr(text, '#', (size_t)(line_end - text));
        parser->number++;
        parser->start = parser->at = text;
        parser->end = comment ? comment : line_end;
        if (parser->end > text && parser->end[-1] == '\r')
            parser->end--;
        if (more(parser) && !(is_letter(*parser->at)      ? parse_keyword(parser, filter)
                              : is_grid_separator(parser) ? parse_separator(parser)
                                                          : parse_row(parser)))
            return false;
        text = newline ? newline + 1 : end;
    }
    if (parser->count == 0)
        return error_about(parser->error, ERROR_WORK, parser->name,
                           "the file holds no taps; expected at least one row of them");
    return true;
}

/* Have the lines from FIRST on each COUNT taps? Returns the first that has not, or the number of lines. */
static int first_ragged(const struct parser *parser, int first, int64_t count)
{
    while (first < parser->count && parser->lines[first].count == count)
        first++;
    return first;
}

/* Could the first line be the one of a libvips matrix: WIDTH HEIGHT [SCALE [OFFSET]], and no keyword before it? */
static bool is_matrix_header(const struct parser *parser)
{
    for (int i = 0; i < KEYWORD_COUNT; i++) {
        if (parser->seen[i] != 0)
            return false;
    }
    const struct line *line = &parser->lines[0];
    return line->count >= 2 && line->count <= 4 && number_is_integer(line->numbers[0], 1, FILTER_MAX) &&
           number_is_integer(line->numbers[1], 1, FILTER_MAX);
}

/* Decide what the lines are, and give the number of the first row of taps: 0, or 1 behind the header of a matrix.
 *
 * The text is a matrix if its first line can be the header of one and exactly HEIGHT lines of WIDTH taps follow, and it
 * is rows of taps if all lines have as many taps as the first. Both hold only where the header has as many numbers as
 * the matrix has columns, 2 to 4, as in `3 3 9` and three lines of three. Guessing wrong would silently make another
 * picture, so such a text is refused, with the way to say which is meant. */
static bool find_rows(struct parser *parser, int *first)
{
    const struct line *header = &parser->lines[0];
    const int ragged = first_ragged(parser, 0, header->count);
    const bool plain = ragged == parser->count && parser->count <= FILTER_MAX;
    const bool headed = is_matrix_header(parser);
    const int64_t width = headed ? header->numbers[0].numerator : 0;
    const int64_t height = headed ? header->numbers[1].numerator : 0;
    const bool matrix = headed && parser->count == height + 1 && first_ragged(parser, 1, width) == parser->count;

    *first = matrix;
    if (matrix && plain)
        return fail_at(parser, header->number, header->columns[0],
                       "these lines are %d rows of %d taps as well as a libvips matrix of %d x %d; for the rows put "
                       "the line `scale 1` before them, for the matrix put `scale` and `offset` lines in place of its "
                       "first line",
                       parser->count, header->count, (int)width, (int)height);
    if (matrix)
        return (header->count < 3 || take_scale(parser, header->number, header->columns[2], header->numbers[2])) &&
               (header->count < 4 || take_offset(parser, header->number, header->columns[3], header->numbers[3]));
    if (plain)
        return true;
    if (ragged == parser->count)
        return fail_at(parser, parser->lines[FILTER_MAX].number, parser->lines[FILTER_MAX].columns[0],
                       "expected at most %d rows of taps", FILTER_MAX);

    char hint[128] = "";
    if (headed && parser->lines[1].count == width)
        snprintf(hint, sizeof hint, " (or, if line %zu begins a libvips matrix, %d rows of %d taps in all)",
                 header->number, (int)height, (int)width);
    const struct line *line = &parser->lines[ragged];
    const int column = line->count < header->count ? line->count : header->count;
    return fail_at(parser, line->number, line->columns[column], "expected %d tap%s as in line %zu, found %d%s",
                   header->count, header->count == 1 ? "" : "s", header->number, line->count, hint);
}

/* Are the lines two grids of one size? Taps that stand over the same sample are then at the same place in both. */
static bool check_grids(struct parser *parser)
{
    const size_t combine = parser->seen[KEYWORD_COMBINE], column = parser->columns[KEYWORD_COMBINE];
    if (parser->separator == 0)
        return fail_at(parser, combine, column,
                       "expected two grids of taps with a line %s between them, as combine makes one sum of two; add "
                       "the second grid or remove this line",
                       separator);
    if (parser->seen[KEYWORD_ABS] != 0)
        return fail_at(parser, parser->seen[KEYWORD_ABS], parser->columns[KEYWORD_ABS],
                       "expected no abs beside combine, which takes no sign from the sums to the result; remove this "
                       "line");
    const int rows = parser->first_count, second_rows = parser->count - rows;
    if (rows > FILTER_MAX)
        return fail_at(parser, parser->lines[FILTER_MAX].number, parser->lines[FILTER_MAX].columns[0],
                       "expected at most %d rows of taps", FILTER_MAX);
    const struct line *const first = &parser->lines[0];
    const int ragged = first_ragged(parser, 0, first->count);
    if (ragged < parser->count) {
        const struct line *const line = &parser->lines[ragged];
        return fail_at(parser, line->number, line->columns[line->count < first->count ? line->count : first->count],
                       "expected %d tap%s as in line %zu, found %d", first->count, first->count == 1 ? "" : "s",
                       first->number, line->count);
    }
    if (second_rows != rows)
        return fail_at(parser, parser->separator, parser->separator_column,
                       "expected %d row%s of taps behind this line, as many as the first grid has, found %d; fill the "
                       "smaller grid up with zeros",
                       rows, rows == 1 ? "" : "s", second_rows);
    return true;
}

/* From the lines to the filter's shape and, divided by the scale, its taps in NUMBERS. */
static bool shape(struct parser *parser, struct filter *filter, struct number *numbers)
{
    const bool two = filter->combine != COMBINE_NONE;
    int first = 0;
    if (!(two ? check_grids(parser) : find_rows(parser, &first)))
        return false;
    filter->width = parser->lines[first].count;
    filter->height = two ? parser->first_count : parser->count - first;
    filter->anchor_x = filter->width / 2;
    filter->anchor_y = filter->height / 2;
    if (parser->seen[KEYWORD_ANCHOR] != 0) {
        if (parser->anchor_x >= filter->width || parser->anchor_y >= filter->height)
            return fail_at(parser, parser->seen[KEYWORD_ANCHOR], parser->anchor_column,
                           "expected an anchor within the %d x %d taps: a column from 0 to %d and a row from 0 to %d",
                           filter->width, filter->height, filter->width - 1, filter->height - 1);
        filter->anchor_x = (int)parser->anchor_x;
        filter->anchor_y = (int)parser->anchor_y;
    }
    for (int y = 0; first + y < parser->count; y++) {
        for (int x = 0; x < filter->width; x++)
            numbers[y * filter->width + x] = number_divide(parser->lines[first + y].numbers[x], parser->scale);
    }
    return true;
}

/* Set filter->name to as much of NAME as fits. */
static void set_name(struct filter *filter, const char *name)
{
    snprintf(filter->name, sizeof filter->name, "%.*s", (int)sizeof filter->name - 1, name);
}

bool filter_parse(const char *text, size_t size, const char *name, struct filter *filter, struct error *error)
{
    memset(filter, 0, sizeof *filter);
    set_name(filter, name);
    if (size > FILTER_MAX_TEXT)
        return error_about(error, ERROR_WORK, name,
                           "the file is too large for a filter, of which at most %zu bytes are read", FILTER_MAX_TEXT);

    bool done = false;
    struct parser *parser = calloc(1, sizeof *parser);
    struct number *numbers = calloc(2 * FILTER_MAX * FILTER_MAX, sizeof *numbers);
    if (!parser || !numbers) {
        error_about(error, ERROR_WORK, name, "there is not enough memory to read this filter");
        goto end;
    }
    parser->name = name;
    parser->error = error;
    parser->scale = one;
    parser->offset = zero;

    const char *const end = text + size;
    if (size >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
        text += 3; /* editors on Windows begin UTF-8 files with this mark */
    if (!check_bytes(parser, text, end) || !parse_lines(parser, text, end, filter) || !shape(parser, filter, numbers))
        goto end;
    if (!hold_exactly(filter, numbers) && !hold_rounded(filter, numbers, name, error))
        goto end;
    finish(filter, parser->offset);
    done = true;
end:
    free(numbers);
    free(parser);
    return done;
}

void filter_flip(struct filter *filter)
{
    const int count = filter->width * filter->height;
    for (int grid = 0; grid < filter_grids(filter); grid++) {
        int32_t *const taps = filter->taps + grid * count;
        for (int i = 0; i < count / 2; i++) {
            const int32_t tap = taps[i];
            taps[i] = taps[count - 1 - i];
            taps[count - 1 - i] = tap;
        }
    }
    filter->anchor_x = filter->width - 1 - filter->anchor_x;
    filter->anchor_y = filter->height - 1 - filter->anchor_y;
    factor(filter);
}

/* ---- Parametric filters ---- */

const char *const filter_forms[][2] = {
    {"box:R", "mean of a square of 2R+1 by 2R+1 pixels"},
    {"gaussian:SIGMA", "Gaussian blur with a standard deviation of SIGMA pixels"},
    {"motion:LENGTH:ANGLE", "motion blur along a line, ANGLE in degrees counter-clockwise from the x axis"},
    {"disk:R", "mean of a disk of radius R pixels, as a lens out of focus makes it"},
    {"log:SIGMA", "Laplacian of Gaussian times SIGMA squared: finds spots of about SIGMA pixels"},
    {NULL, NULL},
};

/* The middle of the largest filter: the greatest radius. */
#define MAX_RADIUS (FILTER_MAX / 2)

/* Give the filter a square of zeros with the anchor in its middle. */
static void make_square(struct filter *filter, int radius, int32_t scale)
{
    filter->width = filter->height = 2 * radius + 1;
    filter->anchor_x = filter->anchor_y = radius;
    filter->scale = scale;
    filter->exact = true;
}

/* The tap at X, Y from the anchor. */
static int32_t *tap_at(struct filter *filter, int x, int y)
{
    return &filter->taps[(filter->anchor_y + y) * filter->width + filter->anchor_x + x];
}

/* Cut outer columns and rows of zeros off, on both sides alike, so that the anchor stays in the middle. */
static void trim(struct filter *filter)
{
    int reach_x = 0, reach_y = 0; /* the farthest taps from the anchor that are not zero */
    for (int i = 0; i < filter->width * filter->height; i++) {
        const int x = abs(i % filter->width - filter->anchor_x), y = abs(i / filter->width - filter->anchor_y);
        if (filter->taps[i] != 0 && x > reach_x)
            reach_x = x;
        if (filter->taps[i] != 0 && y > reach_y)
            reach_y = y;
    }

    int32_t *to = filter->taps; /* never ahead of what is still to be read */
    for (int y = -reach_y; y <= reach_y; y++) {
        for (int x = -reach_x; x <= reach_x; x++)
            *to++ = *tap_at(filter, x, y);
    }
    filter->width = 2 * reach_x + 1;
    filter->height = 2 * reach_y + 1;
    filter->anchor_x = reach_x;
    filter->anchor_y = reach_y;
}

/* e^-x for x >= 0, to about 12 digits, by nothing but additions, products and quotients: exp may differ in its last
 * bit from one C library to the next. */
static double decay(double x)
{
    if (!(x < 700.0))
        return 0.0; /* where doubles end */
    int halvings = 0;
    for (; x > 0.5; x /= 2.0)
        halvings++;
    double power = 1.0, term = 1.0;
    for (int i = 1; i < 16; i++) { /* 0.5^16 / 16! is below a double's last bit */
        term *= -x / i;
        power += term;
    }
    for (; halvings > 0; halvings--)
        power *= power;
    return power;
}

/* The sine of 0 to 90 degrees, by the same operations for the same reason. */
static double sine(double degrees)
{
    const double x = degrees * (3.14159265358979323846 / 180.0);
    double sum = x, term = x;
    for (int i = 2; i < 24; i += 2) { /* (pi/2)^25 / 25! is below a double's last bit */
        term *= -x * x / (i * (i + 1));
        sum += term;
    }
    return sum;
}

static bool make_box(const struct number *parameters, struct filter *filter)
{
    if (!number_is_integer(parameters[0], 0, MAX_RADIUS))
        return false;
    const int radius = (int)parameters[0].numerator, side = 2 * radius + 1;
    make_square(filter, radius, side * side);
    for (int i = 0; i < side * side; i++)
        filter->taps[i] = 1;
    return true;
}

/* The weights of a Gaussian at 0 to RADIUS from its middle, such that all, on both sides, sum to 1. */
static void gaussian_weights(double sigma, int radius, double *weights)
{
    double sum = weights[0] = 1.0;
    for (int i = 1; i <= radius; i++) {
        weights[i] = decay(i / sigma * (i / sigma) / 2.0);
        sum += 2.0 * weights[i];
    }
    for (int i = 0; i <= radius; i++)
        weights[i] /= sum;
}

static bool make_gaussian(const struct number *parameters, struct filter *filter)
{
    const double sigma = parameters[0].value;
    if (!(sigma > 0.0 && sigma <= 21.0)) /* 3 * 21 is the greatest radius */
        return false;

    /* Column and row are one vector of integers, so the taps are their product by construction. Its sum is 2^11: then
     * sum|q| is 2^22 and sum|q| * 255 = 1,069,547,520 < 2^31, where 2^12 would give four times that. */
    const int32_t unit = 1 << 11;
    const int radius = (int)ceil(3.0 * sigma);
    double weights[MAX_RADIUS + 1];
    int32_t vector[MAX_RADIUS + 1];
    gaussian_weights(sigma, radius, weights);
    int32_t missing = unit;
    for (int i = 0; i <= radius; i++) {
        vector[i] = (int32_t)floor(weights[i] * unit);
        missing -= i == 0 ? vector[i] : 2 * vector[i];
    }

    /* By the largest remainder, but both sides at a time, and the one that may be left goes to the middle. */
    for (; missing >= 2; missing -= 2) {
        int largest = 1;
        for (int i = 2; i <= radius; i++) {
            if (weights[i] * unit - vector[i] > weights[largest] * unit - vector[largest])
                largest = i;
        }
        vector[largest]++;
    }
    vector[0] += missing;

    make_square(filter, radius, unit * unit);
    filter->exact = false;
    for (int y = -radius; y <= radius; y++) {
        for (int x = -radius; x <= radius; x++) {
            const int32_t tap = vector[abs(x)] * vector[abs(y)];
            *tap_at(filter, x, y) = tap;
            filter->largest_error += 255.0 * fabs((double)tap / filter->scale - weights[abs(x)] * weights[abs(y)]);
        }
    }
    return true;
}

static bool make_motion(const struct number *parameters, struct filter *filter)
{
    const double length = parameters[0].value, angle = parameters[1].value;
    if (!(length >= 1.0 && length <= FILTER_MAX && fabs(angle) <= 360.0))
        return false;

    /* A line has no direction: half a turn is enough. Rows count downwards, so counter-clockwise is towards -y. */
    const double turn = angle < 0.0 ? fmod(angle + 360.0, 180.0) : fmod(angle, 180.0);
    const double dx = turn <= 90.0 ? sine(90.0 - turn) : -sine(turn - 90.0);
    const double dy = turn <= 90.0 ? -sine(turn) : -sine(180.0 - turn);
    const double half = (length - 1.0) / 2.0;

    make_square(filter, MAX_RADIUS, 1);
    int32_t sum = 0;
    for (int y = -MAX_RADIUS; y <= MAX_RADIUS; y++) {
        for (int x = -MAX_RADIUS; x <= MAX_RADIUS; x++) {
            const double across = x * dy - y * dx;
            const double beyond = fmax(fabs(x * dx + y * dy) - half, 0.0);
            const double distance = sqrt(across * across + beyond * beyond);
            const int32_t weight = (int32_t)round(256.0 * fmax(1.0 - distance, 0.0));
            *tap_at(filter, x, y) = weight;
            sum += weight;
        }
    }
    filter->scale = sum; /* the middle alone weighs 256 */
    return true;
}

static bool make_disk(const struct number *parameters, struct filter *filter)
{
    const double radius = parameters[0].value;
    if (!(radius > 0.0 && radius <= MAX_RADIUS))
        return false;

    /* In units of 1/32 pixel the middles of a pixel's 16 x 16 samples are the odd numbers from -15 to 15. */
    const double square = 32.0 * radius * (32.0 * radius);
    const int reach = (int)ceil(radius);
    make_square(filter, reach, 1);
    int32_t sum = 0;
    for (int y = -reach; y <= reach; y++) {
        for (int x = -reach; x <= reach; x++) {
            int32_t inside = 0;
            for (int i = 0; i < 256; i++) {
                const int sample_x = 32 * x + i % 16 * 2 - 15, sample_y = 32 * y + i / 16 * 2 - 15;
                inside += sample_x * sample_x + sample_y * sample_y <= square;
            }
            *tap_at(filter, x, y) = inside;
            sum += inside;
        }
    }
    if (sum == 0) { /* the circle is smaller than the distance of two samples: one pixel */
        *tap_at(filter, 0, 0) = 1;
        sum = 1;
    }
    filter->scale = sum;
    return true;
}

/* The Laplacian of Gaussian's weight at X, Y. It is g(x) g(y) (x^2 + y^2 - 2 sigma^2) / sigma^4, but for two things: in
 * place of 2 sigma^2 stands the mean of x^2 + y^2 over the taps, to which it tends, so that the weights sum to 0; and a
 * factor of sigma^2 keeps the output's strength the same for every sigma. */
static double log_weight(const double *weights, double sigma, double mean, int x, int y)
{
    return weights[abs(x)] * weights[abs(y)] * (x * x + y * y - mean) / (sigma * sigma);
}

static bool make_log(const struct number *parameters, struct filter *filter)
{
    const double sigma = parameters[0].value;
    if (!(sigma >= 0.2 && sigma <= 15.75)) /* below, nothing is left but the middle; 4 * 15.75 is the greatest radius */
        return false;

    const int radius = (int)ceil(4.0 * sigma);
    double weights[MAX_RADIUS + 1], mean = 0.0;
    gaussian_weights(sigma, radius, weights);
    for (int i = 1; i <= radius; i++)
        mean += 4.0 * weights[i] * (i * i);

    /* sum|weight| is at most 2.15, at a sigma of 0.48, so that 2^21 is the finest scale that fits every sigma. */
    const int32_t unit = 1 << 21;
    make_square(filter, radius, unit);
    filter->exact = false;
    int32_t sum = 0;
    for (int y = -radius; y <= radius; y++) {
        for (int x = -radius; x <= radius; x++)
            sum += *tap_at(filter, x, y) = (int32_t)round(log_weight(weights, sigma, mean, x, y) * unit);
    }
    *tap_at(filter, 0, 0) -= sum; /* the sum is to be 0 and the filter symmetric */

    for (int y = -radius; y <= radius; y++) {
        for (int x = -radius; x <= radius; x++) {
            const double tap = (double)*tap_at(filter, x, y) / unit;
            filter->largest_error += 255.0 * fabs(tap - log_weight(weights, sigma, mean, x, y));
        }
    }
    return true;
}

/* A way to make filters, in the order of filter_forms. */
struct generator {
    const char *word; /* what stands before the first colon */
    int parameters;
    const char *title;
    const char *usage;
    bool (*make)(const struct number *parameters, struct filter *filter); /* false if a parameter is out of range */
};

static const struct generator generators[] = {
    {"box", 1, "mean of a square", "takes one whole number from 0 to 63, for example box:2", make_box},
    {"gaussian", 1, "Gaussian blur", "takes one number above 0 and up to 21, for example gaussian:2.5", make_gaussian},
    {"motion", 2, "motion blur",
     "takes a length from 1 to 127 and an angle from -360 to 360 degrees, for example motion:15:30", make_motion},
    {"disk", 1, "mean of a disk", "takes one number above 0 and up to 63, for example disk:4.5", make_disk},
    {"log", 1, "Laplacian of Gaussian", "takes one number from 0.2 to 15.75, for example log:1.5", make_log},
};

#define GENERATORS (sizeof generators / sizeof generators[0])
static_assert(sizeof filter_forms / sizeof filter_forms[0] == GENERATORS + 1, "a generator has no form");
#define MAX_PARAMETERS 2

/* The index of the generator whose word is the first LENGTH bytes of SPEC, or GENERATORS. */
static size_t generator_of(const char *spec, size_t length)
{
    size_t i = 0;
    while (i < GENERATORS && (strlen(generators[i].word) != length || memcmp(generators[i].word, spec, length) != 0))
        i++;
    return i;
}

/* Make what SPEC says, whose parameters, each behind a colon, begin at AT. */
static bool generate(const char *spec, const char *at, size_t index, struct filter *filter, struct error *error)
{
    const struct generator *generator = &generators[index];
    struct number parameters[MAX_PARAMETERS];
    int count = 0;
    for (; count < generator->parameters && *at == ':'; count++) {
        const char *const end = at + 1 + strcspn(at + 1, ":");
        if (number_read(at + 1, end, &parameters[count]) != NUMBER_FINE)
            break;
        at = end;
    }

    memset(filter, 0, sizeof *filter);
    if (count < generator->parameters || *at != '\0' || !generator->make(parameters, filter))
        return error_set(error, ERROR_USAGE, "there is no filter \"%s\": %s %s", spec, filter_forms[index][0],
                         generator->usage);
    set_name(filter, spec);
    snprintf(filter->title, sizeof filter->title, "%s", generator->title);
    trim(filter);
    finish(filter, zero);
    return true;
}

/* ---- Finding filters ---- */

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode);
}

/* Read the filter in the file PATH; SPEC becomes its name. */
static bool read_file(const char *path, const char *spec, struct filter *filter, struct error *error)
{
    bool done = false;
    char *text = NULL;
    FILE *file = fopen(path, "re");
    struct stat status;
    if (!file || fstat(fileno(file), &status) != 0) {
        error_about(error, ERROR_WORK, path, "the filter file cannot be opened: %s", strerror(errno));
        goto end;
    }
    if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode)) { /* a terminal or /dev/zero would never end */
        error_about(error, ERROR_WORK, path, "this is %s; expected a filter file",
                    S_ISDIR(status.st_mode) ? "a folder" : "no regular file");
        goto end;
    }
    text = malloc(FILTER_MAX_TEXT + 1); /* one more than is taken, so that filter_parse sees what is too large */
    if (!text) {
        error_about(error, ERROR_WORK, path, "there is not enough memory to read this filter");
        goto end;
    }
    const size_t size = fread(text, 1, FILTER_MAX_TEXT + 1, file);
    if (ferror(file)) {
        error_about(error, ERROR_WORK, path, "the filter file cannot be read: %s", strerror(errno));
        goto end;
    }
    done = filter_parse(text, size, path, filter, error);
    set_name(filter, spec);
end:
    free(text);
    if (file)
        fclose(file);
    return done;
}

/* Write the search path's folder INDEX to FOLDER, of SIZE bytes. False where there are no more. */
static bool search_folder(size_t index, char *folder, size_t size)
{
    const char *list = getenv("GPUCONV_FILTERS");
    for (size_t length; list && *list != '\0'; list += length + (list[length] == ':')) {
        length = strcspn(list, ":");
        if (length > 0 && index-- == 0)
            return snprintf(folder, size, "%.*s", (int)length, list) >= 0;
    }

    const char *const config = getenv("XDG_CONFIG_HOME"), *const home = getenv("HOME");
    if (config && *config == '/') { /* the XDG standard says to ignore relative ones */
        if (index-- == 0)
            return snprintf(folder, size, "%s/gpuconv/filters", config) >= 0;
    } else if (home && *home != '\0') {
        if (index-- == 0)
            return snprintf(folder, size, "%s/.config/gpuconv/filters", home) >= 0;
    }
#ifdef GPUCONV_FILTER_DIR
    if (index == 0)
        return snprintf(folder, size, "%s", GPUCONV_FILTER_DIR) >= 0;
#endif
    return false;
}

/* Find a filter by name alone. *IS_THERE says whether there is one; if so, the result says whether it could be read. */
static bool find_named(const char *name, bool *is_there, struct filter *filter, struct error *error)
{
    char folder[PATH_MAX], path[PATH_MAX];
    *is_there = true;
    for (size_t i = 0; search_folder(i, folder, sizeof folder); i++) {
        const int length = snprintf(path, sizeof path, "%s/%s.txt", folder, name);
        if (length > 0 && (size_t)length < sizeof path && is_file(path))
            return read_file(path, name, filter, error);
    }
    for (size_t i = 0; i < builtin_filter_count; i++) {
        if (strcmp(builtin_filters[i].name, name) == 0)
            return filter_parse(builtin_filters[i].text, builtin_filters[i].size, name, filter, error);
    }
    *is_there = false;
    return false;
}

/* There is no filter SPEC: say so, and which may have been meant. */
static bool fail_unknown(const char *spec, struct error *error)
{
    char word[65] = ""; /* what stands before a colon; error_nearest takes no longer words */
    const size_t length = strcspn(spec, ":");
    if (length < sizeof word)
        memcpy(word, spec, length);

    const char *candidates[GENERATORS + 1];
    for (size_t i = 0; i < GENERATORS; i++)
        candidates[i] = generators[i].word;
    char **names = NULL;
    size_t count = 0, candidate_count = GENERATORS;
    if (filter_names(&names, &count, NULL)) {
        const char *const name = error_nearest(word, (const char *const *)names, count);
        if (name)
            candidates[candidate_count++] = name;
    }

    const char *nearest = error_nearest(word, candidates, candidate_count);
    const size_t generator = nearest ? generator_of(nearest, strlen(nearest)) : GENERATORS;
    if (generator < GENERATORS)
        nearest = filter_forms[generator][0];
    error_unknown(error, "filter", spec, nearest, "--list");
    free(names);
    return false;
}

bool filter_find(const char *spec, struct filter *filter, struct error *error)
{
    if (*spec == '\0')
        return error_set(error, ERROR_USAGE, "a filter's name is empty; gpuconv --list shows all filters");
    const size_t word = strcspn(spec, ":");
    const size_t generator = generator_of(spec, word);
    if (generator < GENERATORS && spec[word] == ':')
        return generate(spec, spec + word, generator, filter, error);
    if (strchr(spec, '/'))
        return read_file(spec, spec, filter, error);

    bool is_there;
    const bool done = find_named(spec, &is_there, filter, error);
    if (is_there)
        return done;
    if (is_file(spec))
        return read_file(spec, spec, filter, error);
    if (generator < GENERATORS)
        return generate(spec, spec + word, generator, filter, error); /* says which parameters are missing */
    return fail_unknown(spec, error);
}

bool filter_find_all(const char *argument, struct filter **filters, size_t *count, struct error *error)
{
    const bool one_file = is_file(argument);
    *count = 1;
    for (const char *at = argument; *at != '\0'; at++)
        *count += *at == ',' && !one_file;

    bool done = false;
    *filters = calloc(*count, sizeof **filters);
    char *copy = strdup(argument);
    if (!*filters || !copy) {
        error_set(error, ERROR_WORK, "there is not enough memory for %zu filters", *count);
        goto end;
    }
    char *spec = copy;
    for (size_t i = 0; i < *count; i++) {
        char *next = spec + (one_file ? strlen(spec) : strcspn(spec, ","));
        if (*next == ',')
            *next++ = '\0';
        if (*spec == '\0' && *count > 1) {
            error_set(error, ERROR_USAGE, "filter %zu of \"%s\" is empty; expected names with one comma in between",
                      i + 1, argument);
            goto end;
        }
        if (!filter_find(spec, &(*filters)[i], error))
            goto end;
        spec = next;
    }
    done = true;
end:
    free(copy);
    if (!done) {
        free(*filters);
        *filters = NULL;
    }
    return done;
}

static int compare_names(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

/* Write the names of the filters in FOLDER to STREAM, each with its final NUL, and add their number to COUNT. Fails
 * only for want of memory or descriptors: folders of the search path need not exist. */
static bool list_folder(const char *folder, FILE *stream, size_t *count)
{
    DIR *directory = opendir(folder);
    if (!directory)
        return errno != ENOMEM && errno != EMFILE && errno != ENFILE;
    for (const struct dirent *entry; (entry = readdir(directory));) {
        const char *const name = entry->d_name, *const suffix = ".txt";
        const size_t length = strlen(name), rest = strlen(suffix);
        char path[PATH_MAX];
        if (length <= rest || name[0] == '.' || strcmp(name + length - rest, suffix) != 0)
            continue;
        const int path_length = snprintf(path, sizeof path, "%s/%s", folder, name);
        if (path_length < 0 || (size_t)path_length >= sizeof path || !is_file(path))
            continue;
        fprintf(stream, "%.*s%c", (int)(length - rest), name, '\0');
        ++*count;
    }
    closedir(directory);
    return true;
}

bool filter_names(char ***names, size_t *count, struct error *error)
{
    struct text_buffer text;
    char **list = NULL;
    size_t found = builtin_filter_count;
    FILE *stream = text_open(&text);
    if (!stream)
        goto end;
    for (size_t i = 0; i < builtin_filter_count; i++)
        fprintf(stream, "%s%c", builtin_filters[i].name, '\0');
    char folder[PATH_MAX];
    bool done = true;
    for (size_t i = 0; done && search_folder(i, folder, sizeof folder); i++)
        done = list_folder(folder, stream, &found);
    if (!text_close(stream, &text) || !done)
        goto end;

    list = malloc(found * sizeof *list + text.size);
    if (!list)
        goto end;
    char *name = memcpy((void *)(list + found), text.bytes, text.size);
    for (size_t i = 0; i < found; i++, name += strlen(name) + 1)
        list[i] = name;
    qsort(list, found, sizeof *list, compare_names);

    *count = 0;
    for (size_t i = 0; i < found; i++) {
        if (i == 0 || strcmp(list[i], list[*count - 1]) != 0)
            list[(*count)++] = list[i];
    }
    *names = list;
end:
    free(text.bytes);
    return list || error_set(error, ERROR_WORK, "there is not enough memory to list the filters");
}

/* ---- Describing ---- */

static void print_vector(FILE *stream, const char *name, const int32_t *values, int count)
{
    fprintf(stream, "%s", name);
    for (int i = 0; i < count; i++)
        fprintf(stream, " %d", values[i]);
}

/* What becomes of an image of one colour, in words. */
static void print_sum(FILE *stream, const struct filter *filter)
{
    double sum = (double)filter->tap_sum;
    fprintf(stream, "  sum        %lld", (long long)filter->tap_sum);
    if (filter->combine != COMBINE_NONE) {
        const int count = filter->width * filter->height;
        int64_t second_sum = 0;
        for (int i = count; i < 2 * count; i++)
            second_sum += filter->taps[i];
        fprintf(stream, " and %lld", (long long)second_sum);
        const double first = fabs(sum), second = fabs((double)second_sum);
        sum = filter->combine == COMBINE_MAX   ? fmax(first, second)
              : filter->combine == COMBINE_SUM ? first + second
                                               : sqrt(first * first + second * second);
    }
    fprintf(stream, ": a constant image ");
    if (sum == filter->scale)
        fprintf(stream, "stays as it is");
    else if (sum == 0.0)
        fprintf(stream, "becomes 0");
    else
        fprintf(stream, "is multiplied by %.6g", sum / filter->scale);
    if (filter->offset != 0.0)
        fprintf(stream, ", then the offset is added");
    fprintf(stream, "\n");
}

static void print_exactness(FILE *stream, const struct filter *filter)
{
    if (filter->exact) {
        fprintf(stream, "  taps       exact\n");
        return;
    }
    int power = 0; /* the scale of what was rounded is a power of two */
    while ((int64_t)1 << power < filter->scale)
        power++;
    fprintf(stream, "  taps       rounded once to 1/2^%d, largest error %.2g of 255 levels\n", power,
            filter->largest_error);
}

static void print_taps(FILE *stream, const struct filter *filter)
{
    const int rows = filter_grids(filter) * filter->height;
    int widest = 0;
    for (int i = 0; i < filter->width * rows; i++) {
        const int width = snprintf(NULL, 0, "%d", filter->taps[i]);
        if (width > widest)
            widest = width;
    }
    for (int y = 0; y < rows; y++) {
        if (y == filter->height)
            fprintf(stream, "  %s\n", separator);
        fprintf(stream, " ");
        for (int x = 0; x < filter->width; x++)
            fprintf(stream, " %*d", widest, filter->taps[y * filter->width + x]);
        fprintf(stream, "\n");
    }
}

int filter_grids(const struct filter *filter)
{
    return filter->combine == COMBINE_NONE ? 1 : 2;
}

int filter_tap_count(const struct filter *filter)
{
    int count = 0;
    for (int i = 0; i < filter_grids(filter) * filter->width * filter->height; i++)
        count += filter->taps[i] != 0;
    return count;
}

bool filter_is_centred_square(const struct filter *filter)
{
    return filter->width == filter->height && filter->width % 2 == 1 && filter->anchor_x == filter->width / 2 &&
           filter->anchor_y == filter->height / 2;
}

char *filter_describe(const struct filter *filter)
{
    struct text_buffer text;
    FILE *stream = text_open(&text);
    if (!stream)
        return NULL;
    fprintf(stream, "%s%s%s\n", filter->name, filter->title[0] != '\0' ? ": " : "", filter->title);
    static const char *const formulas[COMBINE_COUNT] = {
        [COMBINE_MAGNITUDE] = "sqrt(s1^2 + s2^2)", [COMBINE_MAX] = "max(|s1|, |s2|)", [COMBINE_SUM] = "|s1| + |s2|"};
    const bool two = filter->combine != COMBINE_NONE;
    fprintf(stream, "  size       %d x %d%s, anchor %d %d\n", filter->width, filter->height, two ? ", two grids" : "",
            filter->anchor_x, filter->anchor_y);
    if (two)
        fprintf(stream, "  combine    %s: %s of the grids' sums\n", combine_names[filter->combine],
                formulas[filter->combine]);
    fprintf(stream, "  scale      %d\n", filter->scale);
    print_sum(stream, filter);
    fprintf(stream, "  offset     %.10g\n", filter->offset);
    if (filter->absolute)
        fprintf(stream, "  abs        the sum's absolute value is taken\n");
    print_exactness(stream, filter);
    if (!two)
        fprintf(stream, "  separable  ");
    if (two) {
        fprintf(stream, "\n");
    } else if (filter->separable) {
        print_vector(stream, "yes: column", filter->column, filter->height);
        print_vector(stream, ", row", filter->row, filter->width);
        fprintf(stream, "\n\n");
    } else {
        fprintf(stream, "no\n\n");
    }
    print_taps(stream, filter);
    return text_close(stream, &text) ? text.bytes : NULL;
}
