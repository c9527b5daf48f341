/* SPDX-License-Identifier: MIT */
#include "filters.h"

#include "base/random.h"

#include <math.h>
#include <stdlib.h>

uint64_t below(uint64_t *seed, uint64_t limit)
{
    return (random_next(seed) >> 11) % limit;
}

int64_t tap(const struct filter *filter, int x, int y)
{
    return filter->taps[y * filter->width + x];
}

/* Are the taps a product? This computes minors, unlike src/filter/taps.c: all taps are multiples of a row and a column
 * through one non-zero tap. */
static bool has_rank_one(const struct filter *filter)
{
    const int count = filter->width * filter->height;
    int pivot = 0;
    while (pivot < count && filter->taps[pivot] == 0)
        pivot++;
    if (pivot == count)
        return true;
    const int px = pivot % filter->width, py = pivot / filter->width;
    for (int y = 0; y < filter->height; y++) {
        for (int x = 0; x < filter->width; x++) {
            if (tap(filter, x, y) * tap(filter, px, py) != tap(filter, px, y) * tap(filter, x, py))
                return false;
        }
    }
    return true;
}

void check_passes(const struct filter *filter, bool is_16_bit)
{
    assert_in_range(filter->width, 1, FILTER_PASS_MAX);
    assert_in_range(filter->height, 1, FILTER_PASS_MAX);
    assert_in_range(filter->anchor_x, 0, filter->width - 1);
    assert_in_range(filter->anchor_y, 0, filter->height - 1);
    int64_t row_sum = 0, column_sum = 0;
    for (int x = 0; x < filter->width; x++) {
        assert_in_range(filter->row[x], 0, (1 << (is_16_bit ? 22 : 15)) - 1);
        row_sum += filter->row[x];
    }
    for (int y = 0; y < filter->height; y++) {
        assert_in_range(filter->column[y], 0, (1 << (is_16_bit ? 22 : 15)) - 1);
        column_sum += filter->column[y];
    }
    const int64_t unit = (int64_t)1 << filter->row_shift, levels = is_16_bit ? 65535 : 255;
    const int64_t m = (levels * row_sum + unit / 2) / unit;
    assert_true(m < (int64_t)1 << (filter->row_shift == 0 ? (is_16_bit ? 27 : 19) : (is_16_bit ? 22 : 16)));
    assert_true(column_sum * m + filter->pass_scale / 2 < (int64_t)1 << (is_16_bit ? 53 : 32));
    assert_true(row_sum * column_sum % unit == 0 && row_sum * column_sum / unit == filter->pass_scale);
    assert_true((column_sum * m + filter->pass_scale / 2) / filter->pass_scale == levels); /* white stays white */
    if (filter->row_shift != 0) {
        assert_true((filter->pass_scale & (filter->pass_scale - 1)) == 0);
        assert_true(filter->pass_scale >= (int64_t)1 << (is_16_bit ? 27 : 23));
        assert_true(is_16_bit || filter->pass_scale <= (int64_t)1 << 24);
    }
    assert_true(filter->separable && !filter->absolute && filter->combine == COMBINE_NONE && filter->offset == 0);
    assert_int_equal(filter->tap_sum, 1);
    assert_int_equal(filter->scale, 1);
    assert_true(filter->amount != 0 || filter->absolute_sum == 1);
    assert_true(filter->largest_error >= 0.0 && (!filter->exact || filter->largest_error == 0.0));
}

static void check_rank(const struct filter *filter)
{
    const struct rank *rank = &filter->rank;
    int count = 0;
    assert_in_range(rank->width, 1, FILTER_MAX);
    assert_in_range(rank->height, 1, FILTER_MAX);
    assert_in_range(rank->anchor_x, 0, rank->width - 1);
    assert_in_range(rank->anchor_y, 0, rank->height - 1);
    for (int y = 0; y < FILTER_MAX; y++)
        for (int x = 0; x < 128; x++) {
            assert_true(!rank_has(rank, x, y) || (x < rank->width && y < rank->height));
            count += rank_has(rank, x, y);
        }
    assert_int_equal(count, rank->count);
    assert_in_range(rank->index, 0, count - 1);
    assert_true(filter->width >= rank->width && filter->anchor_x - rank->anchor_x == (filter->width - rank->width) / 2);
}

void check_invariants(const struct filter *filter)
{
    if (filter->kind == STEP_RANK)
        check_rank(filter);
    if (filter->filter16 != NULL && filter->filter16->two_pass)
        check_passes(filter->filter16, true);
    if (!filter_kind(filter)->has_taps)
        return;
    if (filter->two_pass) {
        check_passes(filter, false);
        return;
    }
    assert_in_range(filter->width, 1, FILTER_MAX);
    assert_in_range(filter->height, 1, FILTER_MAX);
    assert_in_range(filter->anchor_x, 0, filter->width - 1);
    assert_in_range(filter->anchor_y, 0, filter->height - 1);
    assert_in_range(filter->scale, 1, 1 << 30);
    assert_true(strlen(filter->name) < sizeof filter->name);
    assert_true(strlen(filter->title) < sizeof filter->title);

    int64_t sum = 0, absolute_sum = 0;
    for (int i = 0; i < filter_grids(filter) * filter->width * filter->height; i++) {
        sum += i < filter->width * filter->height ? filter->taps[i] : 0;
        absolute_sum += llabs(filter->taps[i]);
    }
    assert_true(filter->tap_sum == sum);
    assert_true(filter->absolute_sum == absolute_sum);
    assert_true(absolute_sum * 255 <= INT32_MAX);

    /* The offset is the nearest double, so the bias may be off by what that loses. */
    assert_true(fabs(filter->offset) <= 65535.0);
    const long double bias = filter->scale * ((long double)filter->offset + 0.5L);
    assert_true((long double)filter->bias <= bias + 1e-3L && (long double)filter->bias > bias - 1.001L);

    assert_true(filter->largest_error >= 0.0);
    assert_true(!filter->exact || filter->largest_error == 0.0);

    if (filter->combine == COMBINE_MAGNITUDE) {
        assert_true(filter->steps[0] == 0);
        for (int n = 1; n < FILTER_LEVELS; n++)
            assert_true(filter->steps[n] >= filter->steps[n - 1]);
    }
    assert_false(filter->combine != COMBINE_NONE && (filter->separable || filter->absolute));
    if (filter->combine == COMBINE_NONE)
        assert_int_equal(filter->separable, has_rank_one(filter));
    for (int y = 0; filter->separable && y < filter->height; y++) {
        for (int x = 0; x < filter->width; x++)
            assert_true((int64_t)filter->column[y] * filter->row[x] == tap(filter, x, y));
    }
}

void parse_bytes(const char *text, size_t size, struct filter *filter)
{
    struct error error = {.code = ERROR_NONE};
    if (!filter_parse(text, size, "test.txt", filter, &error))
        fail_msg("%s", error.message);
    assert_string_equal(filter->name, "test.txt");
    check_invariants(filter);
}

void parse(const char *text, struct filter *filter)
{
    parse_bytes(text, strlen(text), filter);
}

void refuse_bytes(const char *text, size_t size, const char *message)
{
    struct filter filter;
    struct error error = {.code = ERROR_NONE};
    if (filter_parse(text, size, "test.txt", &filter, &error))
        fail_msg("was read; expected: %s", message);
    assert_error(&error, message);
    assert_int_equal(error.code, ERROR_USAGE);
    assert_false(filter_parse(text, size, "test.txt", &filter, NULL));
}

void refuse(const char *text, const char *message)
{
    refuse_bytes(text, strlen(text), message);
}

static struct filter found_filter16; /* the filter that was found last, for 16 bits */

void find(const char *spec, struct filter *filter)
{
    struct error error = {.code = ERROR_NONE};
    if (!filter_find(spec, filter, &found_filter16, &error))
        fail_msg("%s", error.message);
    assert_string_equal(filter->name, spec);
    check_invariants(filter);
}

void refuse_find(const char *spec, enum error_code code, const char *message)
{
    struct filter filter;
    struct error error = {.code = ERROR_NONE};
    if (filter_find(spec, &filter, NULL, &error))
        fail_msg("%s was found; expected: %s", spec, message);
    assert_error(&error, message);
    assert_int_equal(error.code, code);
}

void check_taps(const struct filter *filter, int width, int height, const int32_t *taps, int32_t scale)
{
    assert_int_equal(filter->width, width);
    assert_int_equal(filter->height, height);
    assert_int_equal(filter->scale, scale);
    for (int i = 0; i < width * height; i++)
        assert_int_equal(filter->taps[i], taps[i]);
}

void check_vector(const int32_t *actual, const int32_t *expected, int count)
{
    for (int i = 0; i < FILTER_MAX; i++)
        assert_int_equal(actual[i], i < count ? expected[i] : 0);
}

void check_same(const struct filter *a, const struct filter *b)
{
    check_taps(a, b->width, b->height, b->taps, b->scale);
    assert_int_equal(a->anchor_x, b->anchor_x);
    assert_int_equal(a->anchor_y, b->anchor_y);
    assert_true(a->bias == b->bias);
    assert_int_equal(a->absolute, b->absolute);
    assert_int_equal(a->combine, b->combine);
    assert_memory_equal(a->taps, b->taps, sizeof a->taps);
    assert_memory_equal(a->steps, b->steps, sizeof a->steps);
    assert_int_equal(a->separable, b->separable);
    assert_memory_equal(a->column, b->column, sizeof a->column);
    assert_memory_equal(a->row, b->row, sizeof a->row);
}

bool is_symmetric(const struct filter *filter, bool mirrored)
{
    const int w = filter->width, h = filter->height;
    for (int y = 0; y < h; y++) {
        for (int x = 0; x < w; x++) {
            if (tap(filter, x, y) != tap(filter, w - 1 - x, h - 1 - y))
                return false;
            if (mirrored &&
                (w != h || tap(filter, x, y) != tap(filter, w - 1 - x, y) || tap(filter, x, y) != tap(filter, y, x)))
                return false;
        }
    }
    return true;
}

void shipped(const char *name, struct filter *filter)
{
    for (size_t i = 0; i < builtin_filter_count; i++) {
        if (strcmp(builtin_filters[i].name, name) == 0) {
            parse_bytes(builtin_filters[i].text, builtin_filters[i].size, filter);
            return;
        }
    }
    fail_msg("there is no filter %s", name);
}
