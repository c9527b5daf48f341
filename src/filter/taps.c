/* SPDX-License-Identifier: MIT
 *
 * From numbers to integer taps, and from the taps to the numbers that are derived from them. */
#include "filter/filter_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 int128;

/* ---- Numbers derived from the taps ---- */

int64_t taps_sum(const int32_t *taps, int count)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += taps[i];
    return sum;
}

int64_t taps_absolute_sum(const int32_t *taps, int count)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += taps[i] < 0 ? -(int64_t)taps[i] : taps[i];
    return sum;
}

/* Set column and row if the taps are their product. The row is the first row of taps that is not all zero, divided by
 * its greatest common divisor, with a sign that makes its first non-zero tap positive. Its entries have no common
 * divisor, so every integer row that is a multiple of it is an integer multiple: a factoring in integers is found if
 * there is one. sum|column| * sum|row| = sum|q|, so both passes fit in 32 bits, too. */
static void set_column_and_row(struct filter *filter)
{
    const int width = filter->width;
    const int count = width * filter->height;
    memset(filter->column, 0, sizeof filter->column);
    memset(filter->row, 0, sizeof filter->row);
    filter->separable = filter->combine == COMBINE_NONE;
    if (!filter->separable)
        return;

    int first = 0; /* the first non-zero tap */
    while (first < count && filter->taps[first] == 0)
        first++;
    if (first == count)
        return;

    const int lead = first % width;
    const int32_t *row = filter->taps + (first - lead);
    int64_t divisor = 0;
    for (int x = 0; x < width; x++)
        divisor = greatest_common_divisor(divisor, row[x]);
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

/* The output reaches level n if sqrt(N) >= a = D (n - O - 1/2), for N = s1^2 + s2^2. That is if a <= 0 or N >= a^2, so
 * the step is ceil(a^2).
 *
 * With O = p/r, a = u / w, u = D (2rn - 2p - r) and w = 2r. From r <= 2^20, |p| <= 2^16 r and D <= 2^30 follows |u| <
 * 2^70. With i = floor(a) and rest = u - i w, a^2 = i^2 + (2 i rest w + rest^2) / w^2. As sqrt(N) <= |s1| + |s2| <
 * 2^31, no sums reach i >= 2^31; below that, i^2 < 2^62 and 2 i rest w < 2^74. */
static void set_steps(struct filter *filter, struct number offset)
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

/* The bias for levels that are k = FINER times as fine, for an offset of p/r: floor(D * (k p/r + 1/2)) =
 * floor(D * (2kp + r) / 2r). D has at most 30 bits, p 63 and k 9, so 128 bits hold the product. As |p/r| < 2^16, the
 * result is below 2^55. */
static int64_t bias_of(int32_t scale, struct number offset, int finer)
{
    const int128 dividend = (2 * finer * (int128)offset.numerator + offset.denominator) * scale;
    const int128 divisor = 2 * (int128)offset.denominator;
    const int128 quotient = dividend / divisor;
    return (int64_t)(quotient - (dividend % divisor < 0));
}

void filter_derive(struct filter *filter, struct number offset)
{
    const int count = filter_grids(filter) * filter->width * filter->height;
    int64_t common = filter->exact ? filter->scale : 1; /* rounded taps keep their power of two */
    for (int i = 0; i < count; i++)
        common = greatest_common_divisor(common, filter->taps[i]);

    filter->scale = (int32_t)(filter->scale / common);
    for (int i = 0; i < count; i++)
        filter->taps[i] = (int32_t)(filter->taps[i] / common);
    filter->tap_sum = taps_sum(filter->taps, filter->width * filter->height);
    filter->absolute_sum = taps_absolute_sum(filter->taps, count);

    if (filter->combine != COMBINE_NONE && offset.denominator > 1 << 20)
        offset = number_round(offset); /* so that 128 bits are enough in set_steps */
    if (filter->combine == COMBINE_MAGNITUDE)
        set_steps(filter, offset);

    filter->bias = bias_of(filter->scale, offset, 1);
    filter->bias16 = bias_of(filter->scale, offset, 257);
    filter->offset_numerator = offset.numerator;
    filter->offset_denominator = offset.denominator;
    filter->offset = offset.value;
    set_column_and_row(filter);
}

/* ---- From numbers to taps ---- */

/* Set exact taps over their common denominator. Returns false if that or the sum is too large. Every tap is in lowest
 * terms, so the least common denominator leaves nothing to cancel. */
static bool set_exact_taps(struct filter *filter, const struct number *taps)
{
    const int count = filter_grids(filter) * filter->width * filter->height;
    int64_t scale = 1;
    for (int i = 0; i < count; i++) {
        const int64_t denominator = taps[i].denominator;
        if (denominator == 0 ||
            __builtin_mul_overflow(scale / greatest_common_divisor(scale, denominator), denominator, &scale) ||
            scale > (int64_t)1 << 30)
            return false;
    }

    for (int i = 0; i < count; i++) {
        int64_t tap;
        if (__builtin_mul_overflow(taps[i].numerator, scale / taps[i].denominator, &tap) || tap > FILTER_MAX_SUM ||
            tap < -FILTER_MAX_SUM)
            return false;
        filter->taps[i] = (int32_t)tap;
    }
    filter->scale = (int32_t)scale;
    filter->exact = true;
    filter->largest_error = 0.0;
    return taps_absolute_sum(filter->taps, count) <= FILTER_MAX_SUM;
}

/* The error of a rounded tap. Its sign is that of the correction. */
struct remainder {
    double value;
    int distance; /* to the anchor, squared */
    int index;
};

/* A comparison for qsort: the taps that correct the sum come first, the largest remainder before all others. */
static int compare_remainders(const void *a, const void *b)
{
    const struct remainder *left = a, *right = b;
    if (left->value != right->value)
        return left->value > right->value ? -1 : 1;
    if (left->distance != right->distance)
        return left->distance - right->distance;
    return left->index - right->index;
}

/* Round TAPS * 2^K to integers TO, so that the sum of TO is the rounded sum of TAPS * 2^K. |TAPS| * 2^K must fit in 32
 * bits. Returns the sum of the absolute values of TO. */
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
        to[i] = (int32_t)round(tap); /* half away from zero keeps symmetry */
        remainders[i] = (struct remainder){.value = tap - to[i], .distance = dx * dx + dy * dy, .index = i};
        missing -= to[i];
    }

    /* Each remainder is at most a half, so the sum misses less than the number of taps: one step for some of them. */
    const int32_t step = missing < 0 ? -1 : 1;
    for (int i = 0; i < count; i++)
        remainders[i].value *= step;
    if (missing != 0)
        qsort(remainders, (size_t)count, sizeof *remainders, compare_remainders);
    for (int i = 0; i < missing * step; i++)
        to[remainders[i].index] += step;
    return taps_absolute_sum(to, count);
}

/* Round the taps once, to the finest power of two that FILTER_MAX_SUM allows. Each grid keeps its sum. With two grids
 * |change of C| <= |change of s1| + |change of s2| for every `combine`, so the largest error is a bound for them,
 * too. */
static bool set_rounded_taps(struct filter *filter, const struct number *taps, const char *name, struct error *error)
{
    const int grid = filter->width * filter->height, count = filter_grids(filter) * grid;
    double absolute_sum = 0.0;
    for (int i = 0; i < count; i++)
        absolute_sum += fabs(taps[i].value);

    struct remainder *remainders = malloc((size_t)grid * sizeof *remainders);
    if (remainders == NULL)
        return error_no_memory(error, "the taps of %s", name);
    int k = 30;
    for (; k >= 0; k--) {
        /* Rounding changes the sum by less than COUNT, so a larger sum cannot fit. */
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
        return error_about(error, ERROR_USAGE, name,
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

bool filter_set_taps(struct filter *filter, const struct number *taps, const char *name, struct error *error)
{
    return set_exact_taps(filter, taps) || set_rounded_taps(filter, taps, name, error);
}

/* ---- A filter as a whole ---- */

static void reverse(int32_t *taps, int count)
{
    for (int i = 0; i < count / 2; i++) {
        const int32_t tap = taps[i];
        taps[i] = taps[count - 1 - i];
        taps[count - 1 - i] = tap;
    }
}

void taps_flip(struct filter *filter)
{
    filter->anchor_x = filter->width - 1 - filter->anchor_x;
    filter->anchor_y = filter->height - 1 - filter->anchor_y;
    if (filter->two_pass) {
        reverse(filter->column, filter->height);
        reverse(filter->row, filter->width);
        return;
    }
    const int count = filter->width * filter->height;
    for (int grid = 0; grid < filter_grids(filter); grid++)
        reverse(filter->taps + grid * count, count);
    set_column_and_row(filter);
}

void filter_flip(struct filter *filter)
{
    for (; filter != NULL && filter_kind(filter)->flip != NULL; filter = filter->filter16)
        filter_kind(filter)->flip(filter);
}

void filter_set_options(struct filter *filter, bool flips, bool is_absolute)
{
    if (flips)
        filter_flip(filter);
    for (; filter != NULL && filter_kind(filter)->has_taps; filter = filter->filter16)
        filter->absolute |= is_absolute && filter_grids(filter) == 1 && !filter->two_pass;
}

int filter_grids(const struct filter *filter)
{
    return filter->combine == COMBINE_NONE ? 1 : 2;
}

int filter_multiply_adds(const struct filter *filter)
{
    const int width = filter->width, height = filter->height;
    return !filter_kind(filter)->has_taps || filter->two_pass ? width + height : filter_grids(filter) * width * height;
}

bool filter_is_zero(const struct filter *filter)
{
    return filter_kind(filter)->has_taps && !filter->two_pass && filter_tap_count(filter) == 0;
}

bool filter_is_separable(const struct filter *filter)
{
    return !filter_kind(filter)->has_taps || filter->separable;
}

int filter_tap_count(const struct filter *filter)
{
    if (filter->two_pass)
        return filter->width * filter->height;
    int count = 0;
    for (int i = 0; i < filter_grids(filter) * filter->width * filter->height; i++)
        count += filter->taps[i] != 0;
    return count;
}

double filter_brightness(const struct filter *filter)
{
    if (!filter_kind(filter)->has_taps || filter->two_pass || !filter->unscaled || filter_tap_count(filter) < 2 ||
        filter->tap_sum < 2 * (int64_t)filter->scale)
        return 0;
    return (double)filter->tap_sum / filter->scale;
}

bool filter_is_shift(const struct filter *filter)
{
    if (!filter_kind(filter)->has_taps || filter->two_pass)
        return false;
    bool kept = true;
    for (int i = 0; i < filter->width * filter->height; i++)
        kept &= filter->taps[i] == 0 || filter->taps[i] == filter->scale;
    return filter_grids(filter) == 1 && filter_tap_count(filter) == 1 && kept && filter->offset == 0 &&
           !filter->absolute;
}

static bool are_ones(const int32_t *taps, int count)
{
    int k = 0;
    while (k < count && taps[k] == 1)
        k++;
    return k == count;
}

bool filter_is_box(const struct filter *filter)
{
    if (!filter_kind(filter)->has_taps || filter_grids(filter) != 1 || filter->amount != 0)
        return false;
    if (!filter->two_pass)
        return are_ones(filter->taps, filter->width * filter->height);
    return filter->row_shift == 0 && are_ones(filter->row, filter->width) && are_ones(filter->column, filter->height);
}

bool filter_is_centred_square(const struct filter *filter)
{
    return filter->width == filter->height && filter->width % 2 == 1 && filter->anchor_x == filter->width / 2 &&
           filter->anchor_y == filter->height / 2;
}

/* ---- The row of the kind ---- */

double taps_work(const struct filter *filter, int width, int height)
{
    return (double)width * height * filter_multiply_adds(filter);
}

/* A sum of n products in any order, with samples up to 1, errs by at most n sum|t| units. Two passes and the rounding
 * of taps and offset add a little. `combine` adds up the errors of both sums at most, and has the errors of four
 * roundings of its own. */
double taps_float_error(const struct filter *f, int taps)
{
    (void)taps;
    const int n = (f->two_pass ? f->width + f->height : f->width * f->height) + 8 + 4 * filter_grids(f);
    return n * ((double)f->absolute_sum / f->scale + fabs(f->offset) / 255);
}

bool taps_join_planes(const struct filter *filter)
{
    return filter_of_depth(filter, true)->threshold > 0; /* all colours of a pixel decide */
}
