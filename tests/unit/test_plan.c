/* SPDX-License-Identifier: MIT
 *
 * Borders, rounding and the numbers of a plan. check_variants checks what the variants compute. */
#include "plan/parts.h"
#include "plan/plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/lib/helpers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Borders ---- */

/* The 7 samples on either side of "abcd", written down by hand from the table in plan/border.h. */
static void test_borders_are_as_drawn_in_the_header(void **state)
{
    (void)state;
    static const struct {
        enum border border;
        const char *drawn;
    } cases[] = {
        {BORDER_REPLICATE, "aaaaaaaabcdddddddd"},  {BORDER_REFLECT, "bcddcbaabcddcbaabc"},
        {BORDER_REFLECT101, "babcdcbabcdcbabcdc"}, {BORDER_WRAP, "bcdabcdabcdabcdabc"},
        {BORDER_ZERO, ".......abcd......."},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int i = -7; i < 11; i++) {
            const int index = border_index(i, 4, cases[c].border);
            assert_int_equal(index < 0 ? '.' : "abcd"[index], cases[c].drawn[i + 7]);
        }
}

/* One step beyond an edge, from the definitions; then whole periods. */
static void test_borders_repeat_far_outside_the_image(void **state)
{
    (void)state;
    for (int n = 1; n < 9; n++)
        for (int i = -300; i < 300; i++) {
            assert_int_equal(border_index(i, n, BORDER_WRAP), ((i % n) + n) % n);
            assert_int_equal(border_index(i, n, BORDER_REFLECT), border_index(i + 2 * n, n, BORDER_REFLECT));
            assert_int_equal(border_index(-1 - i, n, BORDER_REFLECT), border_index(i, n, BORDER_REFLECT));
            assert_int_equal(border_index(-i, n, BORDER_REFLECT101), border_index(i, n, BORDER_REFLECT101));
            assert_int_equal(border_index(i, n, BORDER_REPLICATE), i < 0 ? 0 : i < n ? i : n - 1);
            assert_int_equal(border_index(i, n, BORDER_ZERO), i >= 0 && i < n ? i : -1);
        }
}

/* Twice the longest side does not fit in an int. */
static void test_borders_of_long_sides_do_not_overflow(void **state)
{
    (void)state;
    const int n = INT32_MAX - 64;
    for (enum border border = BORDER_REPLICATE; border < BORDER_ZERO; border++)
        for (int i = -63; i < n + 63; i += i == -1 ? n + 1 : 1) {
            const int index = border_index(i, n, border);
            assert_in_range(index, 0, n - 1);
        }
    assert_int_equal(border_index(-1, n, BORDER_REFLECT), 0);
    assert_int_equal(border_index(n, n, BORDER_REFLECT), n - 1);
    assert_int_equal(border_index(n, n, BORDER_REFLECT101), n - 2);
    assert_int_equal(border_index(n, n, BORDER_WRAP), 0);
}

/* ---- Rounding ---- */

/* The rule as DESIGN has it: clamp(floor((|S| or S + B) / D)). */
static int expected_level(int32_t scale, int64_t bias, bool absolute, int32_t sum)
{
    const int64_t t = (absolute && sum < 0 ? -(int64_t)sum : sum) + bias;
    const int64_t level = t >= 0 ? t / scale : -((-t + scale - 1) / scale);
    return (int)(level < 0 ? 0 : level > 255 ? 255 : level);
}

static void check_level(int32_t scale, int64_t bias, bool absolute, int64_t sum)
{
    if (sum < -INT32_MAX || sum > INT32_MAX)
        return;
    static struct rounding rounding;
    rounding_make(scale, bias, absolute, &rounding);
    const int level = rounding_apply(&rounding, (int32_t)sum);
    const int expected = expected_level(scale, bias, absolute, (int32_t)sum);
    if (level != expected)
        fail_msg("scale %d bias %lld absolute %d sum %lld: %d, not %d", scale, (long long)bias, absolute,
                 (long long)sum, level, expected);
}

/* At each step from one level to the next, one below and one above: where a wrong multiplier or shift shows. */
static void test_8_bits_round_to_nearest_at_every_step(void **state)
{
    (void)state;
    static const int32_t scales[] = {1,       2,       3,        4,          5,         7,       9,       10,
                                     16,      25,      81,       127,        128,       255,     256,     257,
                                     6561,    65535,   65536,    65537,      1000003,   4194304, 8388593, 8388607,
                                     8388608, 8388609, 16777216, 1073741824, 1073741823};
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        const int64_t scale = scales[s];
        const int64_t biases[] = {
            scale / 2,        0,          -scale,   scale * 128 + scale / 2, -scale * 65535, scale * 65535 + 1, -7,
            scale * 255 + 11, -INT32_MAX, INT32_MAX};
        for (size_t b = 0; b < sizeof biases / sizeof biases[0]; b++)
            for (int absolute = 0; absolute < 2; absolute++) {
                for (int64_t level = -2; level < 259; level++)
                    for (int64_t step = -1; step < 2; step++) {
                        check_level(scales[s], biases[b], absolute, level * scale - biases[b] + step);
                        check_level(scales[s], biases[b], absolute, -(level * scale - biases[b] + step));
                    }
                const int64_t extremes[] = {-INT32_MAX, -INT32_MAX + 1, -1, 0, 1, INT32_MAX - 1, INT32_MAX};
                for (size_t e = 0; e < sizeof extremes / sizeof extremes[0]; e++)
                    check_level(scales[s], biases[b], absolute, extremes[e]);
            }
    }
}

/* Every scale up to 2^12 and a stride through the rest, at the largest dividends. */
static void test_8_bits_round_to_nearest_for_every_scale(void **state)
{
    (void)state;
    for (int32_t scale = 1; scale <= 1 << 23; scale += scale < 1 << 12 ? 1 : 997)
        for (int64_t level = 250; level < 257; level++)
            for (int64_t step = -1; step < 1; step++)
                check_level(scale, scale / 2, false, level * scale - scale / 2 + step);
}

/* Levels of 16 bits where a rounding of doubles would show, for every size of scale; sums reach 2^39. */
static void test_16_bits_round_to_nearest_at_steps(void **state)
{
    (void)state;
    static const int32_t scales[] = {1,       2,        3,         7,          16,        81,      255,
                                     256,     257,      4095,      65535,      65537,     1000003, 4194304,
                                     8388607, 16777217, 536870911, 1073741823, 1073741824};
    const int64_t max = (int64_t)FILTER_MAX_SUM * 65535;
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        const int64_t scale = scales[s];
        const int64_t biases[] = {
            scale / 2, 0,   -scale, scale * 257 * 128 + scale / 2, -scale * 257 * 65535, scale * 257 * 65535, -7,
            -max,      max, 1};
        for (size_t b = 0; b < sizeof biases / sizeof biases[0]; b++) {
            static struct rounding16 rounding;
            rounding16_make(scale, biases[b], false, &rounding);
            for (int64_t level = -1; level<65538; level += level> 600 && level < 65000 ? 311 : 1)
                for (int64_t step = -1; step < 2; step++) {
                    const int64_t sum = level * scale - biases[b] + step, t = sum + biases[b];
                    const int64_t expected = t < 0 ? 0 : t / scale < 65535 ? t / scale : 65535;
                    if (llabs(sum) <= max && rounding16_apply(&rounding, (double)sum) != expected)
                        fail_msg("scale %d bias %lld sum %lld", scales[s], (long long)biases[b], (long long)sum);
                }
            const int64_t ends[] = {-max, max};
            for (int e = 0; e < 2; e++) {
                const int64_t t = ends[e] + biases[b], level = t < 0 ? 0 : t / scale;
                assert_int_equal(rounding16_apply(&rounding, (double)ends[e]), level < 65535 ? level : 65535);
            }
        }
    }
}

/* ---- Parts of taps ---- */

static void check_parts(int64_t tap, int bits)
{
    const int parts = tap_parts(tap, bits), half = 1 << (bits - 1);
    int64_t sum = 0, unit = 1;
    for (int p = 0; p < parts; p++, unit <<= bits) {
        const int part = tap_part(tap, p, bits);
        assert_in_range(part + half, 0, 2 * half - 1);
        sum += part * unit;
    }
    assert_true(sum == tap);
    assert_true(parts == 1 || tap_part(tap, parts - 1, bits) != 0);
    assert_int_equal(tap_part(tap, parts, bits), 0);
}

static void test_parts_sum_to_the_tap(void **state)
{
    (void)state;
    for (int bits = 8; bits <= 16; bits += 8)
        for (int power = 0; power < 34; power++)
            for (int step = -130; step <= 130; step++) {
                check_parts(((int64_t)1 << power) + step, bits);
                check_parts(-((int64_t)1 << power) + step, bits);
            }
    assert_int_equal(tap_parts(127, 8), 1);
    assert_int_equal(tap_parts(128, 8), 2);
    assert_int_equal(tap_parts(-128, 8), 1);
    assert_int_equal(tap_parts(-129, 8), 2);
    assert_int_equal(tap_parts(32639, 8), 2); /* 127 * 256 + 127 */
    assert_int_equal(tap_parts(32640, 8), 3);
    assert_int_equal(tap_parts(32767, 16), 1);
    assert_int_equal(tap_parts(32768, 16), 2);
}

/* ---- Plans ---- */

/* For every filter that floats are trusted with, k |k| <= 4 N is N >= steps[n]; and they are not where they must not.
 */
static void test_float_roots_are_used_only_where_exact(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool fits;
    } cases[] = {
        {"combine magnitude\n1 2\n---\n3 4\n", true},
        {"combine magnitude\nscale 16\n3 10\n---\n3 4\n", true},
        {"combine magnitude\noffset 12.5\n1\n---\n1\n", true},
        {"combine magnitude\nscale 2\noffset 1/4\n3\n---\n1\n", true}, /* 2 D (O + 1/2) = 3 */
        {"combine magnitude\nscale 3\noffset 1/4\n7\n---\n1\n", false},
        {"combine magnitude\noffset -1\n1\n---\n1\n", false},
        {"combine magnitude\nscale 16\noffset 0.1000001\n3\n---\n1\n", false},
        {"combine magnitude\nscale 17\n1\n---\n1\n", false}, /* 255 * 17 > 2^12 */
        {"combine magnitude\nscale 13\n65000\n---\n1000\n", false},
        {"combine magnitude\noffset 5000\n1\n---\n1\n", false},
        {"combine max\n1 2\n---\n3 4\n", false},
        {"1 2\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static struct filter filter;
        int32_t bias = -1;
        filter = parsed(cases[i].text);
        if (root_fits_float(&filter, &bias) != cases[i].fits)
            fail_msg("%s", cases[i].text);
        for (int n = 1; cases[i].fits && n < FILTER_LEVELS; n++) {
            const int64_t k = 2 * filter.scale * n - bias;
            assert_true(llabs(k) <= 1 << 13);
            assert_true(k * llabs(k) <= 4 * filter.steps[n]);
            assert_true(filter.steps[n] == 0 || k * llabs(k) > 4 * (filter.steps[n] - 1));
        }
    }
}

static void test_plan_counts_taps(void **state)
{
    (void)state;
    static struct filter filter;
    struct plan plan;
    filter = parsed("anchor 2 0\n0 0 0\n0 5 0\n-7 0 0\n");
    plan_make(&plan, &filter, BORDER_ZERO, SAMPLE_U8);
    assert_int_equal(plan.tap_count, 2);
    assert_int_equal(plan.largest_tap, 7);
    assert_int_equal(plan.shift_x, -2);
    assert_int_equal(plan.shift_y, 2);
}

/* Floats hold all integers up to 2^24: 65793 * 255 is the last sum below it, 65794 * 255 is beyond. */
static void test_plan_knows_when_float_is_exact(void **state)
{
    (void)state;
    static struct filter filter;
    struct plan plan;
    filter = parsed("scale 65793\n65793 0\n");
    filter.absolute_sum = 65793; /* the parser reduces by the common factor; here only the bound counts */
    plan_make(&plan, &filter, BORDER_ZERO, SAMPLE_U8);
    assert_true(plan.float_exact);
    filter.absolute_sum = 65794;
    plan_make(&plan, &filter, BORDER_ZERO, SAMPLE_U8);
    assert_false(plan.float_exact);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_borders_are_as_drawn_in_the_header),
        cmocka_unit_test(test_borders_repeat_far_outside_the_image),
        cmocka_unit_test(test_borders_of_long_sides_do_not_overflow),
        cmocka_unit_test(test_8_bits_round_to_nearest_at_every_step),
        cmocka_unit_test(test_8_bits_round_to_nearest_for_every_scale),
        cmocka_unit_test(test_16_bits_round_to_nearest_at_steps),
        cmocka_unit_test(test_parts_sum_to_the_tap),
        cmocka_unit_test(test_float_roots_are_used_only_where_exact),
        cmocka_unit_test(test_plan_counts_taps),
        cmocka_unit_test(test_plan_knows_when_float_is_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
