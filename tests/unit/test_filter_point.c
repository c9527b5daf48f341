/* SPDX-License-Identifier: MIT
 *
 * src/filter/point.c and src/plan/point.c: what curves and matrices make of levels. */
#include "filters.h"

#include "base/random.h"
#include "plan/point.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint16_t level_of(const struct filter *filter, int channel, int level)
{
    return point_curve_level(&filter->point.curve[channel], (uint16_t)level);
}

/* Round FROM the 16-bit level of 255 as the specification says. */
static int nearest(double level)
{
    return (int)floor(257 * level + 0.5);
}

static void test_a_curve_joins_its_points(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        struct {
            int in;
            double out; /* a level from 0 to 255 */
        } levels[5];
    } cases[] = {
        {"curve\n51 100\n40% 50\n", {{0, 100}, {51 * 257, 100}, {76 * 257, 75.4901961}, {102 * 257, 50}, {65535, 50}}},
        {"curve steps\n0 9\n128 50%\n255 3\n", {{0, 9}, {32895, 9}, {32896, 127.5}, {65534, 127.5}, {65535, 3}}},
        {"curve smooth\n0 0\n100 100\n200 0\n",
         {{0, 0}, {50 * 257, 62.5}, {100 * 257, 100}, {150 * 257, 62.5}, {65535, 0}}},
        {"curve gamma 2\n55 10\n155 210\n",
         {{0, 10}, {80 * 257, 110}, {91 * 257, 130}, {155 * 257, 210}, {65535, 210}}},
        {"curve gamma 0.5\n0 255\n255 0\n",
         {{0, 255}, {51 * 257, 244.8}, {102 * 257, 214.2}, {204 * 257, 91.8}, {65535, 0}}},
        {"curve\n0 1/3\n255 2/3\n",
         {{0, 1 / 3.0}, {10 * 257, 0.34640523}, {51 * 257, 0.4}, {204 * 257, 0.6}, {65535, 2 / 3.0}}},
    };
    struct filter filter;
    for (size_t i = 0; i < COUNT(cases); i++) {
        parse(cases[i].text, &filter);
        for (size_t k = 0; k < COUNT(cases[i].levels); k++)
            assert_int_equal(level_of(&filter, 1, cases[i].levels[k].in), nearest(cases[i].levels[k].out));
    }
}

/* Between points a smooth curve rises or falls only as they do, and never leaves their levels. */
static void test_a_smooth_curve_is_monotone(void **state)
{
    (void)state;
    uint64_t seed = 1848;
    struct filter filter;
    for (int round = 0; round < 400; round++) {
        char text[2048] = "curve smooth\n";
        const int points = 2 + (int)below(&seed, 9);
        int64_t in = (int64_t)below(&seed, 9);
        const uint64_t range = round % 3 == 0 ? 2 : 256; /* hardly rising, and steep */
        for (int i = 0; i < points; i++) {
            const uint64_t out = range == 2 ? 500 + below(&seed, 9) : 1000 * below(&seed, range);
            snprintf(text + strlen(text), sizeof text - strlen(text), "%d/1000 %d/1000\n", (int)in, (int)out);
            in += 1 + (int64_t)below(&seed, round % 2 ? 2000 : 27000);
        }
        parse(text, &filter);
        const struct point_curve *curve = &filter.point.curve[2];
        for (int i = 0, level = 0; i + 1 < curve->count; i++) {
            const int low = (int)(curve->out[i] + POINT_UNIT / 2) / POINT_UNIT;
            const int high = (int)(curve->out[i + 1] + POINT_UNIT / 2) / POINT_UNIT;
            int before = low;
            for (; (int64_t)level * POINT_UNIT <= curve->in[i + 1]; level++) {
                const int value = level_of(&filter, 2, level);
                if ((int64_t)level * POINT_UNIT < curve->in[i])
                    continue;
                assert_true(low <= high ? before <= value && value <= high : before >= value && value >= high);
                before = value;
            }
        }
    }
}

/* A table for each word is the one that its definition says. */
static void test_words_have_their_levels(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        int in, out; /* 8 bits, in channel 1 */
    } cases[] = {
        {"levels:20:220", 20, 0},      {"levels:20:220", 120, 128}, {"levels:20:220:2", 70, 128},
        {"levels:10%:90%:0.5", 51, 4}, {"gamma:2.2", 56, 128},      {"gamma:0.5", 128, 64},
        {"brightness:-20", 200, 149},  {"brightness:50", 200, 255}, {"contrast:50", 28, 0},
        {"contrast:-100", 3, 128},     {"posterize:2", 127, 0},     {"posterize:2", 128, 255},
        {"posterize:128", 255, 255},   {"contrast:1000", 128, 133}, {"levels:0:255", 77, 77},
        {"levels:99%:100%", 253, 55},
    };
    struct filter filter;
    for (size_t i = 0; i < COUNT(cases); i++) {
        find(cases[i].spec, &filter);
        struct plan plan = {.filter = &filter, .sample = SAMPLE_U8};
        struct point_tables *tables = point_tables_make(&plan);
        assert_non_null(tables);
        assert_int_equal(tables->rows, 0); /* a matrix that weighs only a channel itself is a table */
        assert_int_equal(tables->tables, 1);
        assert_null(point_table_of(tables, 4, 3));
        assert_int_equal(((const uint8_t *)point_table_of(tables, 3, 1))[cases[i].in], cases[i].out);
        free(tables);
    }
}

static void test_filters_that_read_alpha_or_make_colours_are_known(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool alpha, colours;
    } cases[] = {
        {"matrix\n0.2 0.3 0.5\n", false, false},
        {"matrix\n1/3 1/3 1/3\n0 2/2 0\n0 0 1\n", false, false},
        {"matrix\n1/3 1/3 1/3\n0 1 0\n0 0 1.01\n", false, true},
        {"matrix\n1 0 0 5\n0 1 0 5\n0 0 1 5\n", false, false},
        {"matrix\n1 0 0 5\n0 1 0 5\n0 0 1 6\n", false, true},
        {"matrix\n1 0 0 0 0\n", true, false},
        {"matrix\n1 0 0 1 0\n0 1 0 1 0\n0 0 1 2 0\n", true, true},
        {"matrix\n1 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1\n", true, false},
        {"curve\n0 5\n9 7\n", false, false},
        {"curve blue\n0 5\n9 7\n", false, true},
        {"curve red\n0 5\n9 7\ncurve green blue\n0 5\n9 7\n", false, false},
        {"curve red\n0 5\n9 7\ncurve green blue smooth\n0 5\n9 7\n", false, true},
        {"curve alpha\n0 5\n9 7\n", true, false},
    };
    struct filter filter;
    for (size_t i = 0; i < COUNT(cases); i++) {
        parse(cases[i].text, &filter);
        assert_int_equal(filter_uses_alpha(&filter), cases[i].alpha);
        assert_int_equal(filter_makes_colours(&filter), cases[i].colours);
    }
    parse("1 2 1\n", &filter);
    assert_false(filter_uses_alpha(&filter) || filter_makes_colours(&filter));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_curve_joins_its_points),
        cmocka_unit_test(test_a_smooth_curve_is_monotone),
        cmocka_unit_test(test_words_have_their_levels),
        cmocka_unit_test(test_filters_that_read_alpha_or_make_colours_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
