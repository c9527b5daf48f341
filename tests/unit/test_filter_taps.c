/* SPDX-License-Identifier: MIT
 *
 * src/filter/taps.c: exact and rounded taps, the bias, factoring, flips, and the scale and steps of two grids. */
#include "filters.h"

#include "base/random.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Numbers ---- */

static void test_a_common_denominator_keeps_taps_exact(void **state)
{
    (void)state;
    struct filter filter;
    parse("1/16 2/16 1/16\n0.125 1/4 .125\n1/16 125e-3 0.0625", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){1, 2, 1, 2, 4, 2, 1, 2, 1}, 16);
    assert_true(filter.exact);

    parse("1/3 1/4 -1/6", &filter);
    check_taps(&filter, 3, 1, (const int32_t[]){4, 3, -2}, 12);
    parse("scale 16\n2 4 2", &filter); /* reduced */
    check_taps(&filter, 3, 1, (const int32_t[]){1, 2, 1}, 8);
    parse("scale 2/3\n1 1.5/4", &filter);
    check_taps(&filter, 2, 1, (const int32_t[]){24, 9}, 16);
    parse("scale 1e20\n1e20 3e20 25e19", &filter); /* beyond 64 bits: rounded correctly */
    check_taps(&filter, 3, 1, (const int32_t[]){1 << 20, 3 << 20, 5 << 19}, 1 << 20);
    assert_false(filter.exact);
    parse("scale 1e15\n1e15 3e15 25e14", &filter);
    check_taps(&filter, 3, 1, (const int32_t[]){2, 6, 5}, 2);
    assert_true(filter.exact);
    parse("0 0\n0 0", &filter);
    check_taps(&filter, 2, 2, (const int32_t[]){0, 0, 0, 0}, 1);
    assert_true(filter.exact);
    parse("0.250000000000000000000000000000", &filter); /* more digits than 64 bits hold, but zeros */
    check_taps(&filter, 1, 1, (const int32_t[]){1}, 4);
    assert_true(filter.exact);

    /* The largest scale and the largest sum of exact taps, and one more. */
    parse("1/1073741824", &filter);
    check_taps(&filter, 1, 1, (const int32_t[]){1}, 1 << 30);
    assert_true(filter.exact);
    parse("1/1073741825", &filter);
    assert_false(filter.exact);
    parse("1/32768 1/32769", &filter);
    assert_false(filter.exact);
    parse("8421503 -1", &filter);
    check_taps(&filter, 2, 1, (const int32_t[]){8421503, -1}, 1);
    assert_true(filter.absolute_sum == FILTER_MAX_SUM);
    refuse("8421504 -1", "test.txt: the absolute values of the taps, divided by the scale, sum to 8421505, and at most "
                         "8421504 fit in 32 bits; use smaller taps or a larger scale");
    parse("4210752.5 4210751", &filter); /* over 2 the exact sum is too large; over 1 the sum 8421503.5 rounds up */
    check_taps(&filter, 2, 1, (const int32_t[]){4210753, 4210751}, 1);
    assert_false(filter.exact);
    assert_true(filter.largest_error == 127.5);
}

static void test_rounded_taps_keep_their_sum(void **state)
{
    (void)state;
    struct filter filter;
    /* Thirds with 7 digits: the sum of 2^23 is kept, and the difference goes to the tap nearest to the anchor. */
    parse("0.33333333333 0.33333333333 0.33333333333", &filter);
    check_taps(&filter, 3, 1, (const int32_t[]){2796203, 2796202, 2796203}, 1 << 23);
    assert_true(filter.tap_sum == filter.scale);
    assert_false(filter.exact);

    /* Four equal remainders of 1/4: the anchor is raised first, then its neighbours in reading order. */
    parse("anchor 2 0\nscale 16777216.0000001\n3000001 3000001 3000001 3000001", &filter);
    check_taps(&filter, 4, 1, (const int32_t[]){1500000, 1500001, 1500001, 1500000}, 1 << 23);
}

/* Random taps without a common denominator, compared with long double. */
static void test_rounding_stays_within_the_error_it_reports(void **state)
{
    (void)state;
    uint64_t seed = 20240607;
    for (int round = 0; round < 300; round++) {
        const int width = 1 + (int)below(&seed, round < 290 ? 12 : FILTER_MAX);
        const int height = 1 + (int)below(&seed, round < 290 ? 12 : FILTER_MAX);
        const long double scale = powl(10.0L, (long double)below(&seed, 9) - 4.0L) * 1.2345678901L;
        char *text = NULL;
        size_t size = 0;
        long double *expected = malloc((size_t)(width * height) * sizeof *expected);
        FILE *stream = open_memstream(&text, &size);
        assert_non_null(expected);
        assert_non_null(stream);
        fprintf(stream, "scale %.20Lf\n", scale * 1e6L); /* so that sums are near 1 */
        for (int i = 0; i < width * height; i++) {
            /* Half of the filters have taps of both signs: their sum is far below the sum of absolute values. */
            char number[40];
            const long shift = round % 2 ? 500000 : 0;
            snprintf(number, sizeof number, "%ld.%012ld", (long)below(&seed, 1000000) - shift,
                     (long)below(&seed, 1000000000000));
            fprintf(stream, "%s%c", number, i % width == width - 1 ? '\n' : ' ');
            expected[i] = strtold(number, NULL) / 1e6L / scale;
        }
        assert_int_equal(fclose(stream), 0);

        struct filter filter;
        struct error error = {.code = ERROR_NONE};
        long double sum = 0.0L, absolute_sum = 0.0L, largest_error = 0.0L;
        for (int i = 0; i < width * height; i++) {
            sum += expected[i];
            absolute_sum += fabsl(expected[i]);
        }
        const bool done = filter_parse(text, size, "test.txt", &filter, &error);
        if (!done) {
            assert_true(absolute_sum > FILTER_MAX_SUM - width * height);
        } else {
            check_invariants(&filter);
            assert_false(filter.exact);
            for (int i = 0; i < width * height; i++) {
                const long double moved = fabsl((long double)filter.taps[i] / filter.scale - expected[i]);
                assert_true(moved <= 1.000001L / filter.scale);
                largest_error += 255.0L * moved;
            }
            /* The scale is a power of two and the finest that fits, the sum is kept, and the bound is right. */
            assert_int_equal(filter.scale & (filter.scale - 1), 0);
            assert_true(filter.tap_sum == (int64_t)roundl(sum * filter.scale));
            assert_true(filter.scale == 1 << 30 ||
                        2.0L * absolute_sum * filter.scale > FILTER_MAX_SUM - width * height);
            assert_true(fabsl(largest_error - (long double)filter.largest_error) <= 1e-9L * (1.0L + largest_error));
        }
        free(text);
        free(expected);
    }
}

static void test_the_bias_holds_offset_and_half_the_scale(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t bias;
    } cases[] = {
        {"scale 2\n1", 1},               /* floor(2 * 0.5) */
        {"scale 9\n1", 4},               /* floor(9 * 0.5) */
        {"offset 128\n1", 128},          /* floor(128.5) */
        {"offset -1\n1", -1},            /* floor(-0.5), not 0 */
        {"offset -0.5\n1", 0},           /* floor(0) */
        {"offset -0.6\n1", -1},          /* floor(-0.1) */
        {"offset -1/2\nscale 3\n1", 0},  /* floor(0) */
        {"offset -1\nscale 3\n1", -2},   /* floor(-1.5) */
        {"offset 0.7\nscale 10\n1", 12}, /* exactly 12; 10 * (0.7 + 0.5) in double may differ */
        {"offset 1/3\nscale 6\n1", 5},   /* exactly 5 */
        {"offset 65535\n1/1073741824", 65535 * ((int64_t)1 << 30) + ((int64_t)1 << 29)},
        {"offset -65535\n1/1073741824", -65535 * ((int64_t)1 << 30) + ((int64_t)1 << 29)},
        {"offset 0.5000000000000000000000001\n1", 1}, /* beyond 64 bits: as 0.5 */
        {"offset 0.333333333333333333333\nscale 1048576\n1", 349525 + 524288},
        {"offset -1e-300\n1", 0},
    };
    struct filter filter;
    for (size_t i = 0; i < COUNT(cases); i++) {
        parse(cases[i].text, &filter);
        if (filter.bias != cases[i].bias)
            fail_msg("%s: bias %lld", cases[i].text, (long long)filter.bias);
    }
    parse("offset 2.5\n1", &filter);
    assert_true(filter.offset == 2.5);
}

/* ---- Factoring and flipping ---- */

static void test_separable_taps_are_factored(void **state)
{
    (void)state;
    struct filter filter;
    parse("1 2 1\n2 4 2\n1 2 1", &filter);
    assert_true(filter.separable);
    check_vector(filter.column, (const int32_t[]){1, 2, 1}, 3);
    check_vector(filter.row, (const int32_t[]){1, 2, 1}, 3);

    /* The first row is zero, and the row begins with zero and a negative tap. The column gets the signs. */
    parse("0 0 0\n0 -6 9\n0 2 -3\n0 0 0", &filter);
    assert_true(filter.separable);
    check_vector(filter.row, (const int32_t[]){0, 2, -3}, 3);
    check_vector(filter.column, (const int32_t[]){0, -3, 1, 0}, 4);

    /* The first row has a factor that the second lacks: 2 3 is in lowest terms. */
    parse("4 6\n2 3\n-6 -9", &filter);
    assert_true(filter.separable);
    check_vector(filter.row, (const int32_t[]){2, 3}, 2);
    check_vector(filter.column, (const int32_t[]){2, 1, -3}, 3);

    parse("-3 0 6", &filter);
    assert_true(filter.separable);
    check_vector(filter.row, (const int32_t[]){1, 0, -2}, 3);
    check_vector(filter.column, (const int32_t[]){-3}, 1);
    parse("0\n-5\n5", &filter);
    assert_true(filter.separable);
    check_vector(filter.row, (const int32_t[]){1}, 1);
    check_vector(filter.column, (const int32_t[]){0, -5, 5}, 3);
    parse("0 0\n0 0\n0 0", &filter);
    assert_true(filter.separable);
    check_vector(filter.row, NULL, 0);
    check_vector(filter.column, NULL, 0);

    /* Almost a product: the last tap is one unit off; a row is zero only where the row vector begins. */
    parse("1 2 1\n2 4 2\n1 2 2", &filter);
    assert_false(filter.separable);
    check_vector(filter.row, NULL, 0);
    check_vector(filter.column, NULL, 0);
    parse("scale 1\n1 2\n0 1", &filter);
    assert_false(filter.separable);
    parse("3 5\n2 3\n1 1\n", &filter);
    assert_false(filter.separable);
    parse("2000003 1999993\n1999993 1999983", &filter); /* its determinant is -100 of 4e12 */
    assert_false(filter.separable);
}

static void test_flipping_turns_taps_and_anchor(void **state)
{
    (void)state;
    struct filter filter, again;
    parse("anchor 0 1\nscale 1\n1 2 3\n4 5 7", &filter);
    again = filter;
    filter_flip(&filter);
    check_invariants(&filter);
    check_taps(&filter, 3, 2, (const int32_t[]){7, 5, 4, 3, 2, 1}, 1);
    assert_int_equal(filter.anchor_x, 2);
    assert_int_equal(filter.anchor_y, 0);
    filter_flip(&filter);
    check_same(&filter, &again);

    parse("1 -2 0\n3 -6 0\n-1 2 0", &filter);
    filter_flip(&filter);
    check_invariants(&filter);
    check_vector(filter.row, (const int32_t[]){0, 2, -1}, 3);
    check_vector(filter.column, (const int32_t[]){1, -3, -1}, 3);
    check_taps(&filter, 3, 3, (const int32_t[]){0, 2, -1, 0, -6, 3, 0, -2, 1}, 1);
}

/* ---- Two grids ---- */

static void test_two_grids_share_one_scale(void **state)
{
    (void)state;
    struct filter filter;
    parse("combine max\nscale 4\noffset 1\nanchor 2 0\n1 2 3\n4 5 6\n--- # and\n\n0 1/2 0\n7 -8 9\n", &filter);
    assert_int_equal(filter.combine, COMBINE_MAX);
    assert_int_equal(filter_grids(&filter), 2);
    assert_int_equal(filter_tap_count(&filter), 10);
    assert_int_equal(filter.scale, 8); /* one scale for both */
    check_vector(filter.taps, (const int32_t[]){2, 4, 6, 8, 10, 12, 0, 1, 0, 14, -16, 18}, 12);
    assert_int_equal(filter.width, 3);
    assert_int_equal(filter.height, 2);
    assert_int_equal(filter.anchor_x, 2);
    assert_int_equal(filter.anchor_y, 0);
    assert_int_equal(filter.absolute_sum, 42 + 49);
    assert_true(filter.bias == 12);

    /* Each grid rotates on its own. */
    filter_flip(&filter);
    check_vector(filter.taps, (const int32_t[]){12, 10, 8, 6, 4, 2, 18, -16, 14, 0, 1, 0}, 12);
    assert_int_equal(filter.anchor_x, 0);
    assert_int_equal(filter.anchor_y, 1);

    /* Each grid keeps its sum when its taps are rounded, and |s1| + |s2| stays in 32 bits. */
    parse("combine sum\n0.123456789 0.876543211\n---\n0.333333333 1e-7\n", &filter);
    assert_false(filter.exact);
    assert_int_equal(filter.taps[0] + filter.taps[1], filter.scale);
    assert_true(llabs(llround(0.3333334330 * filter.scale) - filter.taps[2] - filter.taps[3]) == 0);
    parse("combine sum\n8421503\n---\n-1\n", &filter);
    refuse("combine sum\n8421503\n---\n-2\n",
           "test.txt: the absolute values of the taps, divided by the scale, sum to 8421505, and at most 8421504 fit "
           "in 32 bits; use smaller taps or a larger scale");

    /* The largest. */
    static char text[2 * FILTER_MAX * (2 * FILTER_MAX + 1) + 100];
    char *at = text + sprintf(text, "combine magnitude\n");
    for (int y = 0; y < 2 * FILTER_MAX; y++) {
        if (y == FILTER_MAX)
            at += sprintf(at, "---\n");
        for (int x = 0; x < FILTER_MAX; x++)
            at += sprintf(at, "%d%c", (x + y) % 7, x + 1 < FILTER_MAX ? ' ' : '\n');
    }
    parse(text, &filter);
    assert_int_equal(filter.height, FILTER_MAX);
    assert_int_equal(filter.taps[2 * FILTER_MAX * FILTER_MAX - 1], (3 * FILTER_MAX - 2) % 7);
    strstr(text, "---")[0] = '#';
    refuse(text, "test.txt:131:1: expected at most 127 rows of taps");
}

/* Compare the steps with the definition, in 128 bits: N reaches n if 2 D (n - O) - D <= 2 sqrt(N), O = P / R. */
static void check_steps(const char *text, int64_t scale, int64_t p, int64_t r)
{
    __extension__ typedef __int128 wide;
    struct filter filter;
    parse(text, &filter);
    assert_int_equal(filter.scale, scale);
    assert_true(filter.steps[0] == 0);
    for (int n = 1; n < FILTER_LEVELS; n++) {
        const wide min = 2 * scale * (n * r - p) - scale * r; /* <= 2 r sqrt(N) */
        const wide step = filter.steps[n];
        if (filter.steps[n] == INT64_MAX) {
            assert_true(min >= 2 * r * ((wide)1 << 31));
            continue;
        }
        assert_true(min <= 0 || min * min <= 4 * r * r * step);
        assert_true(step == 0 || (min > 0 && min * min > 4 * r * r * (step - 1)));
    }
}

static void test_steps_follow_their_definition(void **state)
{
    (void)state;
    check_steps("combine magnitude\n1\n---\n1", 1, 0, 1);
    check_steps("combine magnitude\nscale 16\n3\n---\n10", 16, 0, 1);
    check_steps("combine magnitude\nscale 7\noffset -20.3\n3\n---\n10", 7, -203, 10);
    check_steps("combine magnitude\noffset 128.5\n3\n---\n10", 1, 257, 2);
    check_steps("combine magnitude\nscale 999983\noffset 1/3\n3\n---\n10", 999983, 1, 3);
    check_steps("combine magnitude\nscale 1000000007\noffset -65535\n3\n---\n10", 1000000007, -65535, 1);
    check_steps("combine magnitude\nscale 8421504\n3\n---\n10", 8421504, 0, 1); /* sums reach some steps, but not all */
    /* 0.1000001 is rounded to 1/2^20: 104858 / 2^20. */
    check_steps("combine magnitude\nscale 3\noffset 0.1000001\n1\n---\n1", 3, 52429, 1 << 19);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_common_denominator_keeps_taps_exact),
        cmocka_unit_test(test_rounded_taps_keep_their_sum),
        cmocka_unit_test(test_rounding_stays_within_the_error_it_reports),
        cmocka_unit_test(test_the_bias_holds_offset_and_half_the_scale),
        cmocka_unit_test(test_separable_taps_are_factored),
        cmocka_unit_test(test_flipping_turns_taps_and_anchor),
        cmocka_unit_test(test_two_grids_share_one_scale),
        cmocka_unit_test(test_steps_follow_their_definition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
