/* SPDX-License-Identifier: MIT
 *
 * Borders, rounding, plans and the automatic choice. What the variants compute is check_variants' matter. */
#include "plan/plan.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Borders. */

/* What stands around "abcd", written down by hand from the table in conv.h, 7 samples to either side. */
static void test_borders_as_drawn(void **state)
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
static void test_borders_far_outside(void **state)
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
static void test_borders_of_long_sides(void **state)
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

/* Rounding. */

static struct filter with_numbers(int32_t scale, int64_t bias, bool absolute)
{
    return (struct filter){.width = 1, .height = 1, .scale = scale, .bias = bias, .absolute = absolute};
}

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
    const struct filter filter = with_numbers(scale, bias, absolute);
    rounding_make(&filter, &rounding);
    const int level = rounding_apply(&rounding, (int32_t)sum);
    const int expected = expected_level(scale, bias, absolute, (int32_t)sum);
    if (level != expected)
        fail_msg("scale %d bias %lld absolute %d sum %lld: %d, not %d", scale, (long long)bias, absolute,
                 (long long)sum, level, expected);
}

/* At each step from one level to the next, one below and one above: where a wrong multiplier or shift shows. */
static void test_rounding_at_every_step(void **state)
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
static void test_rounding_of_every_scale(void **state)
{
    (void)state;
    for (int32_t scale = 1; scale <= 1 << 23; scale += scale < 1 << 12 ? 1 : 997)
        for (int64_t level = 250; level < 257; level++)
            for (int64_t step = -1; step < 1; step++)
                check_level(scale, scale / 2, false, level * scale - scale / 2 + step);
}

/* The same of 16 bits, at the levels where a rounding of doubles would show, for every size of scale; sums reach 2^39.
 */
static void test_rounding16_at_steps(void **state)
{
    (void)state;
    static const int32_t scales[] = {1,       2,        3,         7,          16,        81,      255,
                                     256,     257,      4095,      65535,      65537,     1000003, 4194304,
                                     8388607, 16777217, 536870911, 1073741823, 1073741824};
    const int64_t most = (int64_t)FILTER_MAX_SUM * 65535;
    for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++) {
        const int64_t scale = scales[s];
        const int64_t biases[] = {
            scale / 2, 0,    -scale, scale * 257 * 128 + scale / 2, -scale * 257 * 65535, scale * 257 * 65535, -7,
            -most,     most, 1};
        for (size_t b = 0; b < sizeof biases / sizeof biases[0]; b++) {
            static struct rounding16 rounding;
            const struct filter filter = {.scale = scales[s], .bias16 = biases[b]};
            rounding16_make(&filter, &rounding);
            for (int64_t level = -1; level<65538; level += level> 600 && level < 65000 ? 311 : 1)
                for (int64_t step = -1; step < 2; step++) {
                    const int64_t sum = level * scale - biases[b] + step, t = sum + biases[b];
                    const int64_t expected = t < 0 ? 0 : t / scale < 65535 ? t / scale : 65535;
                    if (llabs(sum) <= most && rounding16_apply(&rounding, (double)sum) != expected)
                        fail_msg("scale %d bias %lld sum %lld", scales[s], (long long)biases[b], (long long)sum);
                }
            const int64_t ends[] = {-most, most};
            for (int e = 0; e < 2; e++) {
                const int64_t t = ends[e] + biases[b], level = t < 0 ? 0 : t / scale;
                assert_int_equal(rounding16_apply(&rounding, (double)ends[e]), level < 65535 ? level : 65535);
            }
        }
    }
}

/* Plans and choice. */

static struct filter parsed(const char *text)
{
    struct filter filter;
    struct error error;
    if (!filter_parse(text, strlen(text), "test", &filter, &error))
        fail_msg("%s", error.message);
    return filter;
}

/* 16 bits, by fractions of Python and the formula: sums beyond 32 bits, offsets that are no integers, all that combine.
 */
static void test_sixteen_bits_by_hand(void **state)
{
    (void)state;
    enum { WIDTH = 5, HEIGHT = 3 };
    static uint16_t in[HEIGHT][WIDTH] = {
        {0, 65535, 1, 40000, 65534}, {12345, 777, 50001, 32768, 65535}, {65535, 32767, 257, 9999, 60000}};
    static const struct {
        const char *text;
        enum border border;
        uint16_t out[HEIGHT * WIDTH];
    } cases[] = {
        {"scale 16\n1 2 1\n2 4 2\n1 2 1\n",
         BORDER_REFLECT101,
         {19664, 24371, 29886, 40826, 50959, 23760, 24387, 25994, 36746, 46517, 27856, 24403, 22103, 32666, 42076}},
        {"offset 128\n-2 -1 0\n-1 1 1\n0 1 2\n",
         BORDER_REPLICATE,
         {65535, 65535, 0, 65535, 65535, 65535, 39075, 4072, 65535, 65535, 65535, 8199, 0, 65535, 65535}},
        {"scale 7\noffset 0.3\nabs\n-5 1 3\n",
         BORDER_WRAP,
         {18801, 9440, 29745, 33877, 19287, 44791, 12799, 20709, 3025, 8830, 19529, 42097, 19160, 27036, 29593}},
        {"scale 5000001\n1400000 1399999 1400001\n1 -800000 1600003\n7 11 13\n",
         BORDER_REFLECT,
         {39321, 7865, 42350, 44121, 58385, 16624, 34226, 32036, 45278, 58385, 7131, 12514, 26552, 59125, 55475}},
        {"scale 8388607\noffset -100\n8000000 400000\n",
         BORDER_ZERO,
         {0, 0, 36799, 0, 15572, 0, 0, 0, 23547, 8675, 0, 38362, 5561, 0, 0}},
        {"scale 3\noffset 1/7\ncombine magnitude\n-1 1\n---\n2 -1\n",
         BORDER_ZERO,
         {37, 30930, 48883, 18892, 9819, 5856, 8891, 23059, 23173, 10959, 30930, 34577, 24345, 4569, 21381}},
        {"combine magnitude\n0 0 0\n-1 0 1\n0 0 0\n---\n0 -1 0\n0 0 0\n0 1 0\n",
         BORDER_REFLECT101,
         {0, 1, 25535, 65533, 0, 65535, 49917, 31992, 33784, 5534, 0, 65278, 22768, 59743, 0}},
        {"scale 4000003\noffset -2\ncombine magnitude\n3000000 -2999999\n---\n-1000000 1000003\n",
         BORDER_WRAP,
         {51295, 51296, 51295, 31108, 19672, 41536, 8631, 38401, 13110, 25391, 3862, 25391, 25187, 7188, 39015}},
        {"scale 9\ncombine sum\n5 -7\n---\n-4 2\n",
         BORDER_REPLICATE,
         {0, 65535, 65534, 39999, 31963, 5487, 11568, 49224, 17233, 32767, 29127, 32768, 32510, 9742, 50001}},
        {"scale 5\noffset 20.5\ncombine max\n3 -4\n---\n-4 2\n",
         BORDER_REFLECT,
         {5269, 57697, 57696, 37268, 33696, 10207, 14834, 44803, 32162, 38036, 31483, 44590, 31379, 13114, 47269}},
        {"offset 3\n0 0\n0 0\n",
         BORDER_ZERO,
         {771, 771, 771, 771, 771, 771, 771, 771, 771, 771, 771, 771, 771, 771, 771}},
        {"0 0 1\n", BORDER_ZERO, {65535, 1, 40000, 65534, 0, 777, 50001, 32768, 65535, 0, 32767, 257, 9999, 60000, 0}},
    };
    size_t count, rows = 0;
    const struct variant *table = variants(&count);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t i = 0; i < count; i++) {
            static struct filter filter;
            uint16_t out[HEIGHT][WIDTH] = {{0}};
            const struct plane from = {SAMPLE_U16, WIDTH, HEIGHT, 1, sizeof in[0], sizeof in, in};
            const struct plane to = {SAMPLE_U16, WIDTH, HEIGHT, 1, sizeof out[0], sizeof out, out};
            struct plan plan;
            filter = parsed(cases[c].text);
            if (table[i].backend != BACKEND_CPU || !variant_takes(&table[i], &filter, SAMPLE_U16))
                continue;
            assert_true(plan_make(&plan, &filter, cases[c].border, SAMPLE_U16, &table[i], NULL));
            assert_true(plan_prepare(&plan, NULL, NULL));
            assert_true(table[i].launch(&plan, NULL, &from, &to, NULL));
            plan_free(&plan);
            assert_memory_equal(out, cases[c].out, sizeof out);
            rows++;
        }
    assert_true(rows >= sizeof cases / sizeof cases[0]);
}

static void test_plan_refuses_what_a_variant_does_not_take(void **state)
{
    (void)state;
    static const char general[] = "1 2\n3 4\n";
    static struct filter filter;
    filter = parsed(general);
    size_t count, refused = 0;
    const struct variant *table = variants(&count);
    for (size_t i = 0; i < count; i++) {
        struct plan plan;
        struct error error = {0};
        const bool taken = table[i].fits == FITS_ALL || table[i].fits == FITS_ONE_GRID || table[i].fits == FITS_SPARSE;
        const bool made = plan_make(&plan, &filter, BORDER_WRAP, SAMPLE_U8, &table[i], &error);
        assert_true(made == (table[i].launch && taken));
        if (!made) {
            assert_non_null(strstr(error.message, table[i].name));
            assert_int_equal(error.code, !taken ? ERROR_USAGE : ERROR_WORK);
            refused++;
        }
    }
    assert_true(refused >= 1);
    struct plan plan;
    struct error error = {0};
    assert_false(plan_make(&plan, &filter, BORDER_WRAP, SAMPLE_U16, variant_find("basic", NULL), &error));
    assert_string_equal(error.message, "the variant basic does not take uint16 samples; leave --variant out or choose "
                                       "another (gpuconv --list-variants says which samples each takes)");
}

/* Rows for one grid refuse two, and the other way round, whatever the taps are. */
static void test_plan_refuses_the_other_number_of_grids(void **state)
{
    (void)state;
    static struct filter one, two;
    one = parsed("1\n");
    two = parsed("combine max\n1\n---\n0\n");
    size_t count, of_two = 0, both = 0;
    const struct variant *table = variants(&count);
    for (size_t i = 0; i < count; i++) {
        struct plan plan;
        struct error error = {0};
        const bool takes_one = variant_takes(&table[i], &one, SAMPLE_U8);
        const bool takes_two = variant_takes(&table[i], &two, SAMPLE_U8);
        assert_true(takes_one || takes_two); /* a column, a row, a shift and few taps */
        assert_true((takes_one && takes_two) == (table[i].fits == FITS_ALL));
        of_two += takes_two && !takes_one;
        both += takes_one && takes_two;
        if (!takes_two) {
            assert_false(plan_make(&plan, &two, BORDER_WRAP, SAMPLE_U8, &table[i], &error));
            assert_non_null(strstr(error.message, "takes only filters of one grid, and test has two; "));
            assert_int_equal(error.code, ERROR_USAGE);
        }
        if (!takes_one) {
            assert_false(plan_make(&plan, &one, BORDER_WRAP, SAMPLE_U8, &table[i], &error));
            assert_non_null(strstr(error.message, "takes only filters of two grids, and test has one; "));
        }
    }
    assert_true(of_two >= 1 && both == 2);
}

/* For every filter that floats are trusted with, k |k| <= 4 N is N >= steps[n]; and they are not where they must not.
 */
static void test_root_fits_float(void **state)
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
    struct error error = {0};
    const struct variant *sparse = variant_find("sparse", NULL), *copy = variant_find("copy", NULL);
    filter = parsed("anchor 2 0\n0 0 0\n0 5 0\n-7 0 0\n");
    assert_true(plan_make(&plan, &filter, BORDER_ZERO, SAMPLE_U8, variant_find("reference", NULL), NULL));
    assert_int_equal(plan.tap_count, 2);
    assert_int_equal(plan.largest_tap, 7);
    assert_int_equal(plan.shift_x, -2);
    assert_int_equal(plan.shift_y, 2);
    assert_false(variant_takes(copy, &filter, SAMPLE_U8));
    filter = parsed("scale 7\n0 7 0\n");
    assert_true(variant_takes(copy, &filter, SAMPLE_U8));
    filter.absolute = true;
    assert_false(variant_takes(copy, &filter, SAMPLE_U8));

    filter.width = filter.height = FILTER_MAX;
    memset(filter.taps, 0, sizeof filter.taps);
    for (int i = 0; i < SPARSE_MAX; i++)
        filter.taps[FILTER_MAX * FILTER_MAX - 1 - i] = -1;
    assert_true(variant_takes(sparse, &filter, SAMPLE_F32));
    filter.taps[0] = 1;
    assert_false(plan_make(&plan, &filter, BORDER_ZERO, SAMPLE_U8, sparse, &error));
    assert_non_null(strstr(error.message, "at most 8192 taps that are not zero"));
    assert_non_null(strstr(error.message, "has 8193"));
}

/* Floats hold all integers up to 2^24: 65793 * 255 is the last sum below it, 65794 * 255 is beyond. */
static void test_plan_knows_when_float_is_exact(void **state)
{
    (void)state;
    static struct filter filter;
    struct plan plan;
    filter = parsed("scale 65793\n65793 0\n");
    filter.absolute_sum = 65793; /* the parser reduces by the common factor; here only the bound counts */
    assert_true(plan_make(&plan, &filter, BORDER_ZERO, SAMPLE_U8, variant_find("reference", NULL), NULL));
    assert_true(plan.float_exact);
    filter.absolute_sum = 65794;
    assert_true(plan_make(&plan, &filter, BORDER_ZERO, SAMPLE_U8, variant_find("reference", NULL), NULL));
    assert_false(plan.float_exact);
}

static void test_choice_is_canonical_and_fits(void **state)
{
    (void)state;
    static const char *const texts[] = {"1\n", "1 2 1\n2 4 2\n1 2 1\n", "0 1 0\n1 -4 1\n0 1 0\n", "1 1 1 1\n",
                                        "combine max\n1\n---\n2\n"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        static struct filter filter;
        filter = parsed(texts[t]);
        for (enum backend backend = BACKEND_CPU; backend <= BACKEND_CUDA; backend++)
            for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++) {
                const struct variant *choice = conv_choose(&filter, backend, &(struct work){640, 480, 3, sample, 1});
                assert_non_null(choice);
                assert_int_equal(choice->backend, backend);
                assert_non_null(choice->seconds);
                assert_true(choice->samples & 1u << sample);
                assert_true(variant_takes(choice, &filter, sample));
            }
    }
}

/* One small image is done on the CPU before a GPU has started; a large one with a large filter is not. */
static void test_model_prefers_the_cpu_for_small_work(void **state)
{
    (void)state;
    static struct filter small, large;
    small = parsed("1 2 1\n");
    struct error error;
    if (!filter_find("disk:31", &large, &error))
        fail_msg("%s", error.message);
    const struct work photo = {1920, 1080, 3, SAMPLE_U8, 2}, huge = {16384, 16384, 3, SAMPLE_U8, 16};
    assert_true(conv_cpu_seconds(&small, 1, &photo) < conv_cuda_seconds(&small, 1, &photo));
    assert_true(conv_cpu_seconds(&large, 1, &huge) > conv_cuda_seconds(&large, 1, &huge));
}

static void test_variant_names(void **state)
{
    (void)state;
    size_t count;
    const struct variant *table = variants(&count);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(variant_find(table[i].name, NULL), &table[i]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(table[i].name, table[j].name);
    }
    struct error error;
    assert_null(variant_find("seperable", &error));
    assert_non_null(strstr(error.message, "did you mean \"separable\"?"));
    assert_int_equal(error.code, ERROR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_borders_as_drawn),
        cmocka_unit_test(test_borders_far_outside),
        cmocka_unit_test(test_borders_of_long_sides),
        cmocka_unit_test(test_rounding_at_every_step),
        cmocka_unit_test(test_rounding_of_every_scale),
        cmocka_unit_test(test_rounding16_at_steps),
        cmocka_unit_test(test_sixteen_bits_by_hand),
        cmocka_unit_test(test_plan_refuses_what_a_variant_does_not_take),
        cmocka_unit_test(test_plan_refuses_the_other_number_of_grids),
        cmocka_unit_test(test_root_fits_float),
        cmocka_unit_test(test_plan_counts_taps),
        cmocka_unit_test(test_plan_knows_when_float_is_exact),
        cmocka_unit_test(test_choice_is_canonical_and_fits),
        cmocka_unit_test(test_model_prefers_the_cpu_for_small_work),
        cmocka_unit_test(test_variant_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
