/* SPDX-License-Identifier: MIT
 *
 * Filters: the text format and its messages, exact and rounded taps, the bias, factoring, flips, libvips matrices, the
 * parametric filters, the shipped ones, the search path, and invariants that hold for every text. */
#include "base/random.h"
#include "filter/filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "tests/lib/helpers.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof array / sizeof array[0])

/* ---- Helpers ---- */

static uint64_t below(uint64_t *seed, uint64_t limit)
{
    return (random_next(seed) >> 11) % limit;
}

static int64_t tap(const struct filter *filter, int x, int y)
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

/* The invariants that struct filter promises for two passes, for samples of 8 bits, or of 16 (IS_16_BIT). */
static void check_passes(const struct filter *filter, bool is_16_bit)
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

/* The invariants of every filter. */
static void check_invariants(const struct filter *filter)
{
    if (filter->filter16 != NULL && filter->filter16->two_pass)
        check_passes(filter->filter16, true);
    if (filter->two_pass) {
        if (!filter_resizes(filter))
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

static void parse_bytes(const char *text, size_t size, struct filter *filter)
{
    struct error error = {.code = ERROR_NONE};
    if (!filter_parse(text, size, "test.txt", filter, &error))
        fail_msg("%s", error.message);
    assert_string_equal(filter->name, "test.txt");
    check_invariants(filter);
}

static void parse(const char *text, struct filter *filter)
{
    parse_bytes(text, strlen(text), filter);
}

static void refuse_bytes(const char *text, size_t size, const char *message)
{
    struct filter filter;
    struct error error = {.code = ERROR_NONE};
    if (filter_parse(text, size, "test.txt", &filter, &error))
        fail_msg("was read; expected: %s", message);
    assert_error(&error, message);
    assert_int_equal(error.code, ERROR_USAGE);
    assert_false(filter_parse(text, size, "test.txt", &filter, NULL));
}

static void refuse(const char *text, const char *message)
{
    refuse_bytes(text, strlen(text), message);
}

/* The room for the `filter16` of the filter that was found last. */
static struct filter filter16_room;

static void find(const char *spec, struct filter *filter)
{
    struct error error = {.code = ERROR_NONE};
    if (!filter_find(spec, filter, &filter16_room, &error))
        fail_msg("%s", error.message);
    assert_string_equal(filter->name, spec);
    check_invariants(filter);
}

static void refuse_find(const char *spec, enum error_code code, const char *message)
{
    struct filter filter;
    struct error error = {.code = ERROR_NONE};
    if (filter_find(spec, &filter, NULL, &error))
        fail_msg("%s was found; expected: %s", spec, message);
    assert_error(&error, message);
    assert_int_equal(error.code, code);
}

static void check_taps(const struct filter *filter, int width, int height, const int32_t *taps, int32_t scale)
{
    assert_int_equal(filter->width, width);
    assert_int_equal(filter->height, height);
    assert_int_equal(filter->scale, scale);
    for (int i = 0; i < width * height; i++)
        assert_int_equal(filter->taps[i], taps[i]);
}

static void check_same(const struct filter *a, const struct filter *b)
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

/* Are the taps the same after a rotation by 180 degrees and, if MIRRORED, after mirroring along x and the diagonal? */
static bool is_symmetric(const struct filter *filter, bool mirrored)
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

/* ---- The text ---- */

static void test_rows_of_integers_are_taps(void **state)
{
    (void)state;
    struct filter filter;
    parse("1 2 3\n4 5 6\n", &filter);
    check_taps(&filter, 3, 2, (const int32_t[]){1, 2, 3, 4, 5, 6}, 1);
    assert_int_equal(filter.anchor_x, 1);
    assert_int_equal(filter.anchor_y, 1);
    assert_string_equal(filter.title, "");
    assert_true(filter.offset == 0.0);
    assert_true(filter.bias == 0);
    assert_false(filter.absolute);
    assert_true(filter.exact);
    assert_int_equal(filter.tap_sum, 21);

    parse("0", &filter);
    check_taps(&filter, 1, 1, (const int32_t[]){0}, 1);
    assert_true(filter.separable);
}

static void test_keywords_set_title_scale_offset_abs_and_anchor(void **state)
{
    (void)state;
    struct filter filter;
    parse("title  Relief, from the left;  # not this\n"
          "scale 7\n"
          "offset 128\n"
          "abs\n"
          "anchor 2 0\n"
          "1 2 3\n4 5 6\n",
          &filter);
    check_taps(&filter, 3, 2, (const int32_t[]){1, 2, 3, 4, 5, 6}, 7);
    assert_string_equal(filter.title, "Relief, from the left");
    assert_true(filter.offset == 128.0);
    assert_true(filter.bias == 7 * 128 + 3);
    assert_true(filter.absolute);
    assert_int_equal(filter.anchor_x, 2);
    assert_int_equal(filter.anchor_y, 0);

    /* A negative scale turns the signs of the taps. */
    parse("scale -7\n1 -2\n", &filter);
    check_taps(&filter, 2, 1, (const int32_t[]){-1, 2}, 7);

    /* With even sizes, the anchor is to the right of the middle and below it. */
    parse("scale 1\n1 2\n3 4\n5 6\n7 9", &filter);
    assert_int_equal(filter.anchor_x, 1);
    assert_int_equal(filter.anchor_y, 2);

    /* A title has at most 127 bytes. */
    char text[200] = "title ";
    memset(text + 6, 'x', 127);
    strcpy(text + 6 + 127, "\n1");
    parse(text, &filter);
    assert_int_equal(strlen(filter.title), 127);
    strcpy(text + 6 + 127, "x\n1");
    refuse(text, "test.txt:1:7: expected a title of at most 127 bytes, found 128");
}

static void test_blanks_comments_and_line_ends_do_not_matter(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "1 2\n3 5\n",
        "1 2\n3 5",
        "1 2\r\n3 5\r\n",
        "1 2\r\n3 5\r",
        "\357\273\2771 2\n3 5\n", /* a byte order mark */
        "\n \t\n# comment\n1,2 # tail\n\n 3\t;5;\n,;,\n#",
        "  +1 2.0\n\n30e-1 5.\n",
        "1/1 4/2\n1.5/.5 500e-2/1",
        "# caf\xc3\xa9\n1 2\n3 5\n",
    };
    struct filter filter;
    for (size_t i = 0; i < COUNT(texts); i++) {
        parse(texts[i], &filter);
        check_taps(&filter, 2, 2, (const int32_t[]){1, 2, 3, 5}, 1);
        assert_true(filter.exact);
    }
}

/* Blanks, commas and semicolons separate taps; a comma or semicolon may have blanks around it, and may end a row. */
static void test_blanks_commas_and_semicolons_separate_taps(void **state)
{
    (void)state;
    static const char *const rows[] = {
        "1 -2 5",    "1\t-2  5", "1,-2,5",    "1, -2, 5",  " 1,\t-2, 5 , ",
        "1 , -2 ,5", "1;-2;5",   "1; -2 ;5;", "1,-2, 5 ;", "1.,-2, 5",
    };
    struct filter filter;
    for (size_t i = 0; i < COUNT(rows); i++) {
        parse(rows[i], &filter);
        check_taps(&filter, 3, 1, (const int32_t[]){1, -2, 5}, 1);
    }
    parse("0,5,1,25,0,5", &filter); /* commas alone: six taps */
    check_taps(&filter, 6, 1, (const int32_t[]){0, 5, 1, 25, 0, 5}, 1);
}

/* Half of the world writes 0,5 for a half. */
static void test_a_decimal_comma_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line, column;
    } cases[] = {
        {"0,5 1,25 0,5", 1, 2},
        {"0,5;1,25;0,5", 1, 2},
        {"0,5, 1,25, 0,5", 1, 2},
        {"0,5\t1", 1, 2},
        {"1 0,5", 1, 4},
        {"1;0,5", 1, 4},
        {"# x\n1 2\n  -1,5  2 # y", 3, 5},
        {"1, 2,5", 1, 5},
        {"1/2,5e1 3", 1, 4},
        {"combine sum\n1 2\n---\n0,5 1", 4, 2},
        {"3 3 4,5\n1 2 3\n4 5 6\n7 8 9", 1, 6},
        {"1,2,3 ;4", 1, 2},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char message[256];
        snprintf(message, sizeof message,
                 "test.txt:%d:%d: expected a blank after each comma in a row that has blanks or semicolons, found a "
                 "digit; write a decimal comma as a point, such as 0.5",
                 cases[i].line, cases[i].column);
        refuse(cases[i].text, message);
    }
    refuse("scale 0,5\n1", "test.txt:1:8: expected one number, found a comma and a digit; write a decimal comma as a "
                           "point, such as 0.5");
    refuse("offset -2,5\n1",
           "test.txt:1:10: expected one number, found a comma and a digit; write a decimal comma as a "
           "point, such as 0.5");
    refuse("scale 2, 5\n1", "test.txt:1:10: expected the end of the line, found \"5\"");
}

/* In MATLAB a semicolon begins a new row. */
static void test_a_row_has_one_kind_of_separator(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int column;
    } cases[] = {
        {"1 2 1; 2 4 2", 6}, {"1, 2, 1; 2, 4, 2", 8}, {"1, 2 1", 5}, {"1 2,-1", 4}, {"1;2 1", 4}, {"1 ; 2 , 1", 6},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char message[256];
        snprintf(
            message, sizeof message,
            "test.txt:1:%d: expected one kind of separator in a row, found another here; begin a new line for each "
            "row of taps",
            cases[i].column);
        refuse(cases[i].text, message);
    }
}

/* An empty cell of a table is not left out, because the taps behind it would move. */
static void test_an_empty_place_between_taps_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int line, column;
    } cases[] = {
        {"-1,,1\n-2,,2", 1, 4}, {"1;;2", 1, 3}, {"1 , ; 2", 1, 5}, {"1,2,,", 1, 5}, {"1 2\n,5", 2, 1}, {" ; 1", 1, 2},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char message[256];
        snprintf(message, sizeof message, "test.txt:%d:%d: expected a tap before this %s; write 0 for an empty place",
                 cases[i].line, cases[i].column, strchr(cases[i].text, ';') != NULL ? "semicolon" : "comma");
        refuse(cases[i].text, message);
    }
}

static void test_a_wrong_text_is_refused_with_its_place(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "test.txt: the file holds no taps; expected at least one row of them"},
        {"# only\n\n # comments", "test.txt: the file holds no taps; expected at least one row of them"},
        {"scale 3\n", "test.txt: the file holds no taps; expected at least one row of them"},
        {"1 2 3\n4 5", "test.txt:2:4: expected 3 taps as in line 1, found 2"},
        {"# x\n1 2 9\n\n1 2 3 \n4 5 6   7 8", "test.txt:5:9: expected 3 taps as in line 2, found 5"},
        {"9\n1 2", "test.txt:2:3: expected 1 tap as in line 1, found 2"},
        {"1 2 3\n4 5 12abc", "test.txt:2:5: expected a tap such as 3, -0.5 or 1/16, found \"12abc\""},
        {"1 0x10", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"0x10\""},
        {"1 nan", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"nan\""},
        {"1\t-inf", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"-inf\""},
        {"nan",
         "test.txt:1:1: expected a row of taps or one of title, scale, offset, abs, anchor and combine, found \"nan\""},
        {"1 -", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"-\""},
        {"1 .", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \".\""},
        {"1 1.2.3", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1.2.3\""},
        {"1 1e", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1e\""},
        {"1 1e+", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1e+\""},
        {"1 --1", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"--1\""},
        {"1 1/", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1/\""},
        {"1 1/2/3", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1/2/3\""},
        {"1 1/-2", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1/-2\""},
        {"1 \xc3\xa9", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"\xc3\xa9\", which has "
                       "characters other than ASCII; type it anew"},
        {"\xe2\x88\x92"
         "1 2", /* a minus sign, and below a blank, as typesetters use */
         "test.txt:1:1: expected a tap such as 3, -0.5 or 1/16, found \"\xe2\x88\x92"
         "1\", which has characters other than ASCII; type it anew"},
        {"scale 1\xc2\xa0\n2", "test.txt:1:7: expected a scale such as 16 or 0.5, found \"1\xc2\xa0\", which has "
                               "characters other than ASCII; "
                               "type it anew"},
        {"1 12345678901234567890123456789012345678x",
         "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"12345678901234567890123456789012...\""},
        {"1 1e999", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1e999\", which is too large"},
        {"1 -1e309", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"-1e309\", which is too large"},
        {"1 1e300/1e-300",
         "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1e300/1e-300\", which is too large"},
        {"1 1/1e999", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1/1e999\", which is too large"},
        {"1 1/0", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1/0\", which divides by 0"},
        {"1 1/0.0e9", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"1/0.0e9\", which divides by 0"},
        {"9000000", "test.txt: the absolute values of the taps, divided by the scale, sum to 9000000, and at most "
                    "8421504 fit in 32 bits; use smaller taps or a larger scale"},
        {"scale 1e-300\n1e300 2", "test.txt: the absolute values of the taps, divided by the scale, sum to inf, and at "
                                  "most 8421504 fit in 32 bits; use smaller taps or a larger scale"},
        {"scale 0\n1", "test.txt:1:7: expected a scale other than 0: it divides the sum"},
        {"scale\n1", "test.txt:1:6: expected a scale such as 16 or 0.5, found the end of the line"},
        {"scale x\n1", "test.txt:1:7: expected a scale such as 16 or 0.5, found \"x\""},
        {"scale 1 2\n1", "test.txt:1:9: expected the end of the line, found \"2\""},
        {"offset\n1", "test.txt:1:7: expected an offset such as 128 or -0.5, found the end of the line"},
        {"offset 65535.1\n1", "test.txt:1:8: expected an offset from -65535 to 65535, found 65535.1"},
        {"offset -65536\n1", "test.txt:1:8: expected an offset from -65535 to 65535, found -65536"},
        {"offset 1e30\n1", "test.txt:1:8: expected an offset from -65535 to 65535, found 1e+30"},
        {"abs 1\n1", "test.txt:1:5: expected the end of the line, found \"1\""},
        {"title #x\n1", "test.txt:1:7: expected a title of a few words"},
        {"title\n1", "test.txt:1:6: expected a title of a few words"},
        {"anchor 1\n1 2",
         "test.txt:1:9: expected the anchor's column and row, counted from 0, found the end of the line"},
        {"anchor 0.5 0\n1 2", "test.txt:1:8: expected the anchor's column and row, counted from 0, each a whole number "
                              "from 0 to 126, found \"0.5\""},
        {"anchor 0 -1\n1 2", "test.txt:1:10: expected the anchor's column and row, counted from 0, each a whole number "
                             "from 0 to 126, found \"-1\""},
        {"# x\nanchor  2 0\n1 2",
         "test.txt:2:9: expected an anchor within the 2 x 1 taps: a column from 0 to 1 and a row from 0 to 0"},
        {"anchor 0 1\n1 2",
         "test.txt:1:8: expected an anchor within the 2 x 1 taps: a column from 0 to 1 and a row from 0 to 0"},
        {"scale 1\nabs\nscale 2\n1",
         "test.txt:3:1: expected \"scale\" only once, but line 1 has it too; remove one of the two"},
        {"1\n scale 2", "test.txt:2:2: expected a row of taps, found \"scale\", which must come before the first row"},
        {"ofset 3\n1", "test.txt:1:1: expected a row of taps or one of title, scale, offset, abs, anchor and combine, "
                       "found \"ofset\"; did you mean \"offset\"?"},
        {"Scale 3\n1", "test.txt:1:1: expected a row of taps or one of title, scale, offset, abs, anchor and combine, "
                       "found \"Scale\"; did you mean \"scale\"?"},
        {"#!\x01\n", "test.txt:1:3: expected text, found the byte 0x01; this is not a filter file"},
        {"1 2\n1\r2", "test.txt:2:2: expected text, found the byte 0x0d; this is not a filter file"},
        {"1\x7f", "test.txt:1:2: expected text, found the byte 0x7f; this is not a filter file"},
        {"\x89PNG\r\n\x1a\n", "test.txt:2:1: expected text, found the byte 0x1a; this is not a filter file"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        refuse(cases[i][0], cases[i][1]);
    refuse_bytes("1 2\n3\0004", 7, "test.txt:2:2: expected text, found the byte 0x00; this is not a filter file");
}

/* WIDTH x HEIGHT ones, then END, in a string to be freed. */
static char *ones(int width, int height, const char *end)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    for (int i = 0; i < width * height; i++)
        fputs(i % width == width - 1 ? "1\n" : "1 ", stream);
    fputs(end, stream);
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void test_127_rows_and_columns_are_the_most(void **state)
{
    (void)state;
    struct filter filter;
    char *text = ones(127, 127, "");
    parse(text, &filter);
    assert_int_equal(filter.tap_sum, 127 * 127);
    free(text);

    text = ones(128, 1, "");
    refuse(text, "test.txt:1:255: expected at most 127 taps in a row");
    free(text);
    text = ones(1, 128, "");
    refuse(text, "test.txt:128:1: expected at most 127 rows of taps");
    free(text);
    text = ones(1, 1000, "");
    refuse(text, "test.txt:129:1: expected at most 127 rows of taps");
    free(text);

    /* The largest file, in one line: of taps, of one number, of a comment; and one byte more. */
    const size_t size = FILTER_MAX_TEXT;
    text = malloc(size + 1);
    assert_non_null(text);
    for (size_t i = 0; i <= size; i++)
        text[i] = i % 2 ? ' ' : '1';
    refuse_bytes(text, size, "test.txt:1:255: expected at most 127 taps in a row");
    refuse_bytes(text, size + 1,
                 "test.txt: is larger than the 1048576 bytes that are read at most; give a smaller file");
    memset(text, '1', size);
    refuse_bytes(text, size,
                 "test.txt:1:1: expected a tap such as 3, -0.5 or 1/16, found \"11111111111111111111111111111111...\", "
                 "which is too large");
    memset(text, '0', size);
    text[0] = '.';
    text[size - 1] = '1';
    parse_bytes(text, size, &filter);
    assert_int_equal(filter.taps[0], 0);
    memset(text, 'x', size);
    refuse_bytes(text, size,
                 "test.txt:1:1: expected a row of taps or one of title, scale, offset, abs, anchor and combine, found "
                 "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...\"");
    text[0] = '#';
    text[size - 2] = '\n';
    text[size - 1] = '7';
    parse_bytes(text, size, &filter);
    assert_int_equal(filter.taps[0], 7);
    free(text);

    /* Zero times the largest powers of ten: a loop over the power would take minutes. */
    size_t length;
    FILE *stream = open_memstream(&text, &length);
    assert_non_null(stream);
    for (int i = 0; i < 127 * 127; i++)
        fputs(i % 127 == 126 ? "0e9999999\n" : "0e9999999 ", stream);
    assert_int_equal(fclose(stream), 0);
    const clock_t start = clock();
    parse(text, &filter);
    assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
    assert_true(filter.exact);
    assert_int_equal(filter.absolute_sum, 0);
    free(text);
}

static void test_a_vips_matrix_is_read(void **state)
{
    (void)state;
    struct filter filter;
    parse("3 3\n1 2 1\n2 4 2\n1 2 1\n", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){1, 2, 1, 2, 4, 2, 1, 2, 1}, 1);

    parse("# made by vips\n3 2 16 -1.5\n1 2 1\n2 4 3\n", &filter);
    check_taps(&filter, 3, 2, (const int32_t[]){1, 2, 1, 2, 4, 3}, 16);
    assert_true(filter.offset == -1.5);
    assert_int_equal(filter.anchor_x, 1);
    assert_int_equal(filter.anchor_y, 1);

    parse("5,1,0.5\n1,2,3,4,5\n", &filter);
    check_taps(&filter, 5, 1, (const int32_t[]){2, 4, 6, 8, 10}, 1);
    parse("1 1\n9", &filter);
    check_taps(&filter, 1, 1, (const int32_t[]){9}, 1);
    parse("1 3\n9\n8\n7", &filter);
    check_taps(&filter, 1, 3, (const int32_t[]){9, 8, 7}, 1);

    refuse("3 1 0\n1 2 4\n\n",
           "test.txt:1:1: these lines are 2 rows of 3 taps and also a libvips matrix of 3 x 1; for the rows put the "
           "line `scale 1` before them, for the matrix put `scale` and `offset` lines in place of its first line");
    refuse("2 1 0\n1 2", "test.txt:1:5: expected a scale other than 0: it divides the sum");
    refuse("2 1 1 1e6\n1 2", "test.txt:1:7: expected an offset from -65535 to 65535, found 1000000");
    refuse("5 3 25 0\n1 1 1 1 1\n1 1 1 1 1", "test.txt:2:9: expected 4 taps as in line 1, found 5 (or, if line 1 "
                                             "begins a libvips matrix, 3 rows of 5 taps in all)");
    refuse("5 2 25 0\n1 1 1 1 1\n1 1 1 1", "test.txt:2:9: expected 4 taps as in line 1, found 5 (or, if line 1 begins "
                                           "a libvips matrix, 2 rows of 5 taps in all)");
    refuse("128 1\n1 2 3", "test.txt:2:5: expected 2 taps as in line 1, found 3");

    /* 127 rows after a header with as many numbers as columns: 128 rows would be too many. */
    char *text = ones(2, 127, "");
    char *matrix = NULL;
    assert_true(asprintf(&matrix, "2 127\n%s", text) > 0);
    parse(matrix, &filter);
    assert_int_equal(filter.height, 127);
    free(matrix);
    free(text);
}

static void test_taps_that_resemble_a_vips_matrix_stay_taps(void **state)
{
    (void)state;
    struct filter filter;
    parse("3 3\n1 2\n", &filter); /* a matrix would have rows of 3 */
    check_taps(&filter, 2, 2, (const int32_t[]){3, 3, 1, 2}, 1);
    parse("2 2\n1 2\n", &filter); /* a matrix would have 2 rows */
    check_taps(&filter, 2, 2, (const int32_t[]){2, 2, 1, 2}, 1);
    parse("1 1\n2 3\n", &filter);
    check_taps(&filter, 2, 2, (const int32_t[]){1, 1, 2, 3}, 1);
    parse("3 2 1.5\n2 4 2\n", &filter);
    check_taps(&filter, 3, 2, (const int32_t[]){6, 4, 3, 4, 8, 4}, 2);
    parse("2 1", &filter);
    check_taps(&filter, 2, 1, (const int32_t[]){2, 1}, 1);
    parse("2 -1\n1 1", &filter);
    check_taps(&filter, 2, 2, (const int32_t[]){2, -1, 1, 1}, 1);

    /* Ambiguous, unless a keyword says rows or an explicit scale says matrix. */
    refuse("2 1\n1 7",
           "test.txt:1:1: these lines are 2 rows of 2 taps and also a libvips matrix of 2 x 1; for the rows put the "
           "line `scale 1` before them, for the matrix put `scale` and `offset` lines in place of its first line");
    parse("scale 1\n2 1\n1 7", &filter);
    check_taps(&filter, 2, 2, (const int32_t[]){2, 1, 1, 7}, 1);
    parse("2 1 1\n1 7", &filter);
    check_taps(&filter, 2, 1, (const int32_t[]){1, 7}, 1);
    refuse("abs\n3 1\n1 1 1", "test.txt:3:5: expected 2 taps as in line 2, found 3");
}

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

static void check_vector(const int32_t *actual, const int32_t *expected, int count)
{
    for (int i = 0; i < FILTER_MAX; i++)
        assert_int_equal(actual[i], i < count ? expected[i] : 0);
}

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

/* ---- Parametric filters ---- */

static void test_a_box_has_equal_taps(void **state)
{
    (void)state;
    struct filter filter, shipped;
    find("box:1", &filter);
    find("box3", &shipped);
    check_same(&filter, &shipped);
    find("box:0", &filter);
    check_taps(&filter, 1, 1, (const int32_t[]){1}, 1);
    find("box:63", &filter);
    assert_int_equal(filter.width, 127);
    assert_int_equal(filter.scale, 127 * 127);
    assert_int_equal(filter.tap_sum, 127 * 127);
    assert_int_equal(filter.absolute_sum, 127 * 127);
    assert_string_equal(filter.title, "mean of a square");

    /* Wider ones are two exact passes, the same for all depths. */
    static const char *const wide[] = {"box:64", "box:511", "box:850"};
    for (size_t i = 0; i < COUNT(wide); i++) {
        const int side = 2 * atoi(wide[i] + strlen("box:")) + 1;
        find(wide[i], &filter);
        assert_true(filter.two_pass && filter.exact && filter.filter16 == NULL && filter_is_centred_square(&filter));
        assert_int_equal(filter.width, side);
        assert_int_equal(filter.pass_scale, (int64_t)side * side);
        assert_int_equal(filter.row_shift, 0);
        check_passes(&filter, true);
    }
}

/* Compare a blur with the Gaussian of SIGMA, whose weights go on for ever, and its bound with its own taps. */
static void check_gaussian(const struct filter *filter, double sigma, bool is_16_bit)
{
    const double levels = is_16_bit ? 65535.0 : 255.0;
    const int radius = filter->width / 2, far = (int)(12.0 * sigma) + radius + 2; /* e^-72 is left out */
    double sum = 1.0, row_sum = 0.0, column_sum = 0.0, error = 0.0;
    for (int x = 1; x <= far; x++)
        sum += 2.0 * exp(-0.5 * (x / sigma) * (x / sigma));
    for (int x = 0; x < filter->width; x++) {
        row_sum += filter->row[x];
        column_sum += filter->column[x];
    }
    assert_true(filter_is_centred_square(filter));
    for (int x = 0; x <= far; x++) {
        const double row = x <= radius ? filter->row[radius + x] / row_sum : 0.0;
        const double column = x <= radius ? filter->column[radius + x] / column_sum : 0.0;
        const double weight = exp(-0.5 * (x / sigma) * (x / sigma)) / sum;
        error += (x == 0 ? 0.5 : 1.0) * (fabs(row - weight) + fabs(column - weight));
        assert_true(x > radius || filter->row[radius + x] == filter->row[radius - x]);
        assert_true(x > radius || filter->column[radius + x] == filter->column[radius - x]);
    }
    if (!filter->two_pass) { /* one tap, whose error is exact: 1 minus the weight of the middle */
        check_taps(filter, 1, 1, (const int32_t[]){1}, 1);
        assert_true(fabs(levels * (1.0 - 1.0 / (sum * sum)) - filter->largest_error) < 1e-6);
    } else {
        const double rounded = ldexp(0.5, -(int)(log2(row_sum) - filter->row_shift));
        assert_true(fabs(levels * error + rounded - filter->largest_error) < 1e-6);
        assert_true(row_sum == exp2(floor(log2(row_sum))) && column_sum == exp2(floor(log2(column_sum))));
    }
    assert_false(filter->exact);
    assert_true(filter->largest_error <= (is_16_bit ? 0.09 : 0.092));
}

static void test_a_gaussian_has_the_weights_of_its_deviation(void **state)
{
    (void)state;
    struct filter filter;
    double sigma = 0.02;
    for (int i = 0; sigma < 170.0; i++) {
        char spec[32];
        snprintf(spec, sizeof spec, "gaussian:%.3f", sigma);
        sigma = strtod(spec + strlen("gaussian:"), NULL);
        find(spec, &filter);
        check_gaussian(&filter, sigma, false);
        check_gaussian(filter.filter16 != NULL ? filter.filter16 : &filter, sigma, filter.filter16 != NULL);
        sigma = i % 40 == 39 ? ceil(sigma * 4.0 + 0.001) / 4.0 : sigma * 1.02; /* also the round ones */
    }
    find("gaussian:170", &filter);
    check_gaussian(&filter, 170.0, false);
    check_gaussian(filter.filter16, 170.0, true);
    assert_true(filter.filter16->width > 1500);

    find("gaussian:1e-200", &filter);
    check_taps(&filter, 1, 1, (const int32_t[]){1}, 1);
    assert_true(filter_is_shift(&filter) && filter.filter16 == NULL);
    find("gaussian:0.2", &filter); /* what is left out shows in 16 bits only */
    assert_true(filter_is_shift(&filter) && filter.filter16->width == 3);
}

static void test_motion_draws_a_line_at_its_angle(void **state)
{
    (void)state;
    struct filter filter;
    static const int32_t nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    find("motion:9:0", &filter);
    check_taps(&filter, 9, 1, nine, 9);
    find("motion:9:180", &filter);
    check_taps(&filter, 9, 1, nine, 9);
    find("motion:9:90", &filter);
    check_taps(&filter, 1, 9, nine, 9);
    find("motion:9:-90", &filter);
    check_taps(&filter, 1, 9, nine, 9);
    find("motion:1:33", &filter);
    check_taps(&filter, 1, 1, nine, 1);
    find("motion:2:0", &filter); /* half a pixel at both ends */
    check_taps(&filter, 3, 1, (const int32_t[]){1, 2, 1}, 4);
    find("motion:127:0", &filter);
    assert_int_equal(filter.width, 127);
    assert_int_equal(filter.tap_sum, 127);
    find("motion:127:45", &filter);
    assert_int_equal(filter.height, filter.width);

    /* Counter-clockwise: at 45 degrees the line goes from the lower left to the upper right. */
    find("motion:5:45", &filter);
    assert_true(tap(&filter, filter.width - 1, 0) > 0);
    assert_true(tap(&filter, 0, 0) == 0);
    find("motion:5:135", &filter);
    assert_true(tap(&filter, filter.width - 1, 0) == 0);
    assert_true(tap(&filter, 0, 0) > 0);
    find("motion:15:20", &filter); /* wider than high, with the right end above the left */
    assert_true(filter.width > filter.height);
    assert_true(tap(&filter, filter.width - 2, 0) > 0);

    struct filter turned;
    static const char *const specs[][2] = {{"motion:15:30", "motion:15:210"}, {"motion:20.5:-17", "motion:20.5:163"}};
    for (size_t i = 0; i < COUNT(specs); i++) {
        find(specs[i][0], &filter);
        find(specs[i][1], &turned);
        check_same(&filter, &turned);
        assert_true(is_symmetric(&filter, false));
        assert_int_equal(filter.tap_sum, filter.scale);
        assert_int_equal(filter.absolute_sum, filter.scale);
    }
}

/* The area of the pixel at X, Y in the circle: from many strips, not from the integral. */
static double area_in_circle(double radius, int x, int y)
{
    enum { STRIPS = 3000 };
    const double left = fmax(x - 0.5, -radius), width = fmin(x + 0.5, radius) - left;
    double area = 0.0;
    for (int i = 0; width > 0.0 && i < STRIPS; i++) {
        const double at = left + width * (i + 0.5) / STRIPS;
        const double height = sqrt(radius * radius - at * at);
        area += fmax(fmin(height, y + 0.5) - fmax(-height, y - 0.5), 0.0) * width / STRIPS;
    }
    return area;
}

static void check_disk(const struct filter *filter, double radius, double levels, double bound)
{
    double error = 0.0;
    const int reach = (int)ceil(radius);
    for (int y = -reach; y <= reach; y++)
        for (int x = -reach; x <= reach; x++) {
            const int column = x + filter->anchor_x, row = y + filter->anchor_y;
            const bool inside = column >= 0 && column < filter->width && row >= 0 && row < filter->height;
            error += fabs((inside ? (double)tap(filter, column, row) / filter->scale : 0.0) -
                          area_in_circle(radius, x, y) / (3.14159265358979323846 * radius * radius));
        }
    assert_true(fabs(levels / 2.0 * error - filter->largest_error) < levels * 1e-6);
    assert_true(filter->largest_error <= bound);
    assert_true(is_symmetric(filter, true));
    assert_int_equal(filter->tap_sum, filter->scale);
    assert_int_equal(filter->absolute_sum, filter->scale);
}

static void test_a_disk_has_the_area_of_its_radius(void **state)
{
    (void)state;
    struct filter filter;
    static const struct {
        const char *spec;
        double radius, bound; /* of 16 bits */
        int side;
    } cases[] = {{"disk:0.01", 0.01, 0, 1}, {"disk:0.5", 0.5, 0, 1},    {"disk:0.75", 0.75, 0.12, 3},
                 {"disk:1", 1, 0.12, 3},    {"disk:4.5", 4.5, 0.12, 9}, {"disk:10", 10, 0.12, 21},
                 {"disk:31", 31, 0.5, 63}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        find(cases[i].spec, &filter);
        assert_int_equal(filter.width, cases[i].side);
        check_disk(&filter, cases[i].radius, 255.0, 0.1);
        if (filter.filter16 != NULL)
            check_disk(filter.filter16, cases[i].radius, 65535.0, cases[i].bound);
    }
    find("disk:63", &filter);
    assert_int_equal(filter.width, 127);
    assert_true(filter.largest_error < 0.1 && filter.filter16->largest_error < 0.6);
    find("disk:1.5", &filter); /* by hand: the corners' area is 0.5451, the edges' 0.9722 */
    assert_true(fabs(tap(&filter, 0, 0) / (double)tap(&filter, 1, 1) - 0.5451) < 1e-3);
}

/* Compare with the infinite Laplacian of Gaussian, from libm. */
static void check_log(const struct filter *filter, double sigma, double levels)
{
    const int far = (int)(12.0 * sigma) + 2;
    double sum = 0.0, mean = 0.0, error = 0.0;
    for (int x = -far; x <= far; x++) {
        sum += exp(-0.5 * (x / sigma) * (x / sigma));
        mean += 2.0 * x * x * exp(-0.5 * (x / sigma) * (x / sigma));
    }
    mean /= sum;
    for (int y = -far; y <= far; y++)
        for (int x = -far; x <= far; x++) {
            const double weight =
                exp(-0.5 * (x * x + y * y) / (sigma * sigma)) / (sum * sum) * (x * x + y * y - mean) / (sigma * sigma);
            const int column = x + filter->anchor_x, row = y + filter->anchor_y;
            const bool inside = column >= 0 && column < filter->width && row >= 0 && row < filter->height;
            error += fabs((inside ? (double)tap(filter, column, row) / filter->scale : 0.0) - weight);
        }
    assert_true(levels / 2.0 * error <= filter->largest_error + levels * 1e-9);
    assert_true(levels / 2.0 * error >= 0.5 * filter->largest_error);
    assert_true(is_symmetric(filter, true));
    assert_int_equal(filter->tap_sum, 0);
    assert_true(tap(filter, filter->anchor_x, filter->anchor_y) < 0);
}

static void test_a_laplacian_of_gaussian_sums_to_zero(void **state)
{
    (void)state;
    struct filter filter;
    static const struct {
        const char *spec;
        double sigma, bound, bound16;
    } cases[] = {{"log:0.2", 0.2, 0.1, 0.12},   {"log:0.48", 0.48, 0.1, 0.12}, {"log:1", 1, 0.1, 0.3},
                 {"log:1.4", 1.4, 0.1, 0.4},    {"log:5", 5, 0.1, 5},          {"log:12", 12, 0.1, 25},
                 {"log:15.75", 15.75, 0.7, 160}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        find(cases[i].spec, &filter);
        check_log(&filter, cases[i].sigma, 255.0);
        assert_true(filter.largest_error <= cases[i].bound);
        if (filter.filter16 == NULL) {
            assert_true(257.0 * filter.largest_error <= cases[i].bound16);
            continue;
        }
        check_log(filter.filter16, cases[i].sigma, 65535.0);
        assert_true(filter.filter16->largest_error <= cases[i].bound16);
    }

    /* The second derivative of x^2 is 2, here times sigma squared. */
    find("log:3", &filter);
    double response = 0.0;
    for (int y = 0; y < filter.height; y++) {
        for (int x = 0; x < filter.width; x++)
            response += (double)tap(&filter, x, y) * (x - filter.anchor_x) * (x - filter.anchor_x) / filter.scale;
    }
    assert_true(response > 17.9 && response < 18.1);
}

static void test_an_unsharp_mask_is_a_blur_and_an_amount(void **state)
{
    (void)state;
    struct filter filter, blur;
    static struct filter blur16;
    find("gaussian:2", &blur);
    blur16 = *blur.filter16;
    find("unsharp:2:1.1:2.5", &filter);
    assert_string_equal(filter.title, "unsharp mask");
    assert_int_equal(filter.row_shift, blur.row_shift);
    assert_int_equal(filter.pass_scale, blur.pass_scale);
    assert_memory_equal(filter.row, blur.row, sizeof blur.row);
    assert_memory_equal(filter.filter16->column, blur16.column, sizeof blur.column);
    assert_int_equal(filter.amount, 1153434); /* 1.1 * 2^20 = 1153433.6 */
    assert_int_equal(filter.filter16->amount, 1153434);
    assert_int_equal(filter.threshold, 640);
    assert_int_equal(filter.filter16->threshold, 640 * 257);
    assert_int_equal(filter.absolute_sum, 5);
    const double step = 1153434.0 / 1048576.0;
    assert_true(fabs(filter.largest_error - 255.0 * (step - 1.1) - step * (blur.largest_error + 1.0 / 512)) < 1e-9);
    assert_true(fabs(filter.filter16->largest_error - 65535.0 * (step - 1.1) -
                     step * (blur16.largest_error + 1.0 / 512)) < 1e-9);

    find("unsharp:0.7:0.5", &filter);
    assert_int_equal(filter.threshold, 0);
    assert_int_equal(filter.absolute_sum, 3);
    find("unsharp:170:100:255", &filter);
    assert_true(filter.amount == 100 << 20 && filter.filter16->threshold == 65535 << 8);
    find("unsharp:1:0.000001", &filter);
    assert_int_equal(filter.amount, 1);
    find("unsharp:0.01:100", &filter); /* its blur is the image */
    assert_true(filter_is_shift(&filter) && filter.filter16 == NULL);
    find("unsharp", &filter); /* the shipped one */
    assert_false(filter.two_pass);
    assert_int_equal(filter.width, 5);
}

static void test_every_parametric_form_is_found(void **state)
{
    (void)state;
    struct filter filter;
    size_t count = 0;
    for (; filter_forms[count][0]; count++) {
        char spec[64];
        snprintf(spec, sizeof spec, "%.*s%s", (int)strcspn(filter_forms[count][0], ":"), filter_forms[count][0],
                 strstr(filter_forms[count][0], "ANGLE")    ? ":3:30"
                 : strstr(filter_forms[count][0], "AMOUNT") ? ":2:0.5"
                 : strstr(filter_forms[count][0], "SIZE")   ? ":2x"
                                                            : ":2");
        find(spec, &filter);
        assert_true(strlen(filter_forms[count][1]) > 0);
    }
    assert_int_equal(count, 7);

#define UNSHARP_USAGE                                                                                                  \
    "unsharp:SIGMA:AMOUNT[:THRESHOLD] takes a deviation above 0 and up to 170, an amount from 0.000001 to 100 and "    \
    "perhaps a threshold from 0 to 255 levels, for example unsharp:2:0.5 or unsharp:2:0.5:3"
    static const char *const cases[][2] = {
        {"unsharp:2", UNSHARP_USAGE},
        {"unsharp:2:", UNSHARP_USAGE},
        {"unsharp:2:0", UNSHARP_USAGE},
        {"unsharp:2:-1", UNSHARP_USAGE},
        {"unsharp:2:101", UNSHARP_USAGE},
        {"unsharp:171:1", UNSHARP_USAGE},
        {"unsharp:2:1:", UNSHARP_USAGE},
        {"unsharp:2:1:256", UNSHARP_USAGE},
        {"unsharp:2:1:-1", UNSHARP_USAGE},
        {"unsharp:2:1:3:4", UNSHARP_USAGE},
        {"gaussian", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:0", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:-1", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:170.01", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:nan", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:1e999", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:2x", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:2:3", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:2:", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"box:1.5", "box:R takes one whole number from 0 to 850, for example box:2"},
        {"box:-1", "box:R takes one whole number from 0 to 850, for example box:2"},
        {"box:851", "box:R takes one whole number from 0 to 850, for example box:2"},
        {"motion:9", "motion:LENGTH:ANGLE takes a length from 1 to 127 and an angle from -360 to 360 degrees, for "
                     "example motion:15:30"},
        {"motion:0.9:0", "motion:LENGTH:ANGLE takes a length from 1 to 127 and an angle from -360 to 360 degrees, for "
                         "example motion:15:30"},
        {"motion:127.1:0", "motion:LENGTH:ANGLE takes a length from 1 to 127 and an angle from -360 to 360 degrees, "
                           "for example motion:15:30"},
        {"motion:9:361", "motion:LENGTH:ANGLE takes a length from 1 to 127 and an angle from -360 to 360 degrees, for "
                         "example motion:15:30"},
        {"disk:0", "disk:R takes one number above 0 and up to 63, for example disk:4.5"},
        {"disk:63.1", "disk:R takes one number above 0 and up to 63, for example disk:4.5"},
        {"log:0.1", "log:SIGMA takes one number from 0.2 to 15.75, for example log:1.5"},
        {"log:16", "log:SIGMA takes one number from 0.2 to 15.75, for example log:1.5"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char message[512];
        snprintf(message, sizeof message, "there is no filter \"%s\": %s", cases[i][0], cases[i][1]);
        refuse_find(cases[i][0], ERROR_USAGE, message);
    }
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

static void test_a_wrong_second_grid_is_refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"1 2\n---\n3 4",
         "test.txt:2:1: expected a row of taps, found \"---\", which begins a second grid; add a line before the first "
         "row that says how to combine the sums of both: combine magnitude, combine max or combine sum"},
        {"1\n combine max\n2",
         "test.txt:2:2: expected a row of taps, found \"combine\", which must come before the first row"},
        {"  combine max\n1 2", "test.txt:1:3: expected two grids of taps with a line --- between them, because combine "
                               "makes one sum of two; add the second grid or remove this line"},
        {"combine max\n---\n1 2", "test.txt:2:1: expected the rows of the first grid before the line ---"},
        {"---", "test.txt:1:1: expected the rows of the first grid before the line ---"},
        {"combine max\n1\n---\n1\n---\n1",
         "test.txt:5:1: expected at most two grids, but line 3 already begins the second"},
        {"combine max\n1\n --- 2\n1", "test.txt:3:6: expected the end of the line, found \"2\""},
        {"combine max\n1\n ---", "test.txt:3:2: expected 1 row of taps after this line, as many as the first grid has, "
                                 "found 0; fill the smaller grid with zeros"},
        {"combine max\n1\n2\n---\n1\n2\n3", "test.txt:4:1: expected 2 rows of taps after this line, as many as the "
                                            "first grid has, found 3; fill the smaller grid with zeros"},
        {"combine max\n1 2\n---\n1", "test.txt:4:2: expected 2 taps as in line 2, found 1"},
        {"combine max\n1 2\n3\n---\n1", "test.txt:3:2: expected 2 taps as in line 2, found 1"},
        {"combine\n1", "test.txt:1:8: expected magnitude, max or sum, the ways to combine the sums of two grids, found "
                       "the end of the line"},
        {"combine  mean\n1", "test.txt:1:10: expected magnitude, max or sum, the ways to combine the sums of two "
                             "grids, found \"mean\"; did you mean \"max\"?"},
        {"combine none\n1",
         "test.txt:1:9: expected magnitude, max or sum, the ways to combine the sums of two grids, found \"none\""},
        {"combine max sum\n1", "test.txt:1:13: expected the end of the line, found \"sum\""},
        {"combine max\ncombine max\n1",
         "test.txt:2:1: expected \"combine\" only once, but line 1 has it too; remove one of the two"},
        {"combine max\nabs\n1\n---\n1",
         "test.txt:2:1: expected no abs with combine, whose result has no sign; remove this line"},
        {"combine max\n1\n----\n1", "test.txt:3:1: expected a tap such as 3, -0.5 or 1/16, found \"----\""},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        refuse(cases[i][0], cases[i][1]);
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

/* ---- The shipped filters ---- */

static void shipped(const char *name, struct filter *filter)
{
    for (size_t i = 0; i < builtin_filter_count; i++) {
        if (strcmp(builtin_filters[i].name, name) == 0) {
            parse_bytes(builtin_filters[i].text, builtin_filters[i].size, filter);
            return;
        }
    }
    fail_msg("there is no filter %s", name);
}

static void test_shipped_filters_have_their_sizes_and_sums(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int width, height;
        int64_t sum; /* over the scale */
        bool separable, symmetric;
    } cases[] = {
        {"blur", 5, 5, 1, true, true},         {"box3", 3, 3, 1, true, true},
        {"box5", 5, 5, 1, true, true},         {"box9", 9, 9, 1, true, true},
        {"edge", 3, 3, 0, false, true},        {"emboss", 3, 3, 1, false, false},
        {"gaussian3", 3, 3, 1, true, true},    {"gaussian5", 5, 5, 1, true, true},
        {"gaussian7", 7, 7, 1, true, true},    {"gaussian9", 9, 9, 1, true, true},
        {"identity", 1, 1, 1, true, true},     {"laplacian", 3, 3, 0, false, true},
        {"prewitt", 3, 3, 0, false, false},    {"scharr", 3, 3, 0, false, false},
        {"sharpen", 3, 3, 1, false, true},     {"shift", 3, 1, 1, true, false},
        {"shift-down", 1, 3, 1, true, false},  {"shift-left", 3, 1, 1, true, false},
        {"shift-right", 3, 1, 1, true, false}, {"shift-up", 1, 3, 1, true, false},
        {"sobel", 3, 3, 0, false, false},      {"sobel-x", 3, 3, 0, true, false},
        {"sobel-y", 3, 3, 0, true, false},     {"unsharp", 5, 5, 1, false, true},
    };
    struct filter filter;
    for (size_t i = 0; i < COUNT(cases); i++) {
        shipped(cases[i].name, &filter);
        assert_int_equal(filter.width, cases[i].width);
        assert_int_equal(filter.height, cases[i].height);
        assert_int_equal(filter.anchor_x, cases[i].width / 2);
        assert_int_equal(filter.anchor_y, cases[i].height / 2);
        assert_int_equal(filter.tap_sum, cases[i].sum * filter.scale);
        assert_int_equal(filter.separable, cases[i].separable);
        assert_int_equal(is_symmetric(&filter, true), cases[i].symmetric);
        assert_int_equal(filter.absolute, strncmp(cases[i].name, "sobel-", 6) == 0);
        assert_true(filter.exact);
        assert_true(filter.offset == 0.0);
        assert_true(filter.absolute_sum * 255 < 1 << 24); /* exact in float too */
        assert_true(strlen(filter.title) > 0);
        assert_true(builtin_filters[i].text[0] == '#');
        assert_true(strlen(builtin_filters[i].text) == builtin_filters[i].size);
        assert_string_equal(builtin_filters[i].name, cases[i].name); /* sorted, and no other filters */
    }
    assert_int_equal(builtin_filter_count, COUNT(cases));
}

static void test_shipped_filters_have_their_taps(void **state)
{
    (void)state;
    struct filter filter;
    shipped("sobel", &filter);
    assert_int_equal(filter.combine, COMBINE_MAGNITUDE);
    check_vector(filter.taps, (const int32_t[]){-1, 0, 1, -2, 0, 2, -1, 0, 1, -1, -2, -1, 0, 0, 0, 1, 2, 1}, 18);
    shipped("prewitt", &filter);
    check_vector(filter.taps, (const int32_t[]){-1, 0, 1, -1, 0, 1, -1, 0, 1, -1, -1, -1, 0, 0, 0, 1, 1, 1}, 18);
    shipped("scharr", &filter);
    assert_int_equal(filter.scale, 16);
    check_vector(filter.taps, (const int32_t[]){-3, 0, 3, -10, 0, 10, -3, 0, 3, -3, -10, -3, 0, 0, 0, 3, 10, 3}, 18);

    shipped("blur", &filter);
    check_vector(filter.row, (const int32_t[]){1, 4, 6, 4, 1}, 5);
    check_vector(filter.column, (const int32_t[]){1, 4, 6, 4, 1}, 5);
    shipped("gaussian3", &filter);
    check_vector(filter.row, (const int32_t[]){1, 2, 1}, 3);
    shipped("gaussian9", &filter);
    check_vector(filter.row, (const int32_t[]){4, 13, 30, 51, 60, 51, 30, 13, 4}, 9);
    shipped("edge", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){-1, -1, -1, -1, 8, -1, -1, -1, -1}, 1);
    shipped("laplacian", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){0, 1, 0, 1, -4, 1, 0, 1, 0}, 1);
    shipped("sharpen", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){0, -1, 0, -1, 5, -1, 0, -1, 0}, 1);
    shipped("sobel-x", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){-1, 0, 1, -2, 0, 2, -1, 0, 1}, 1);
    shipped("sobel-y", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){-1, -2, -1, 0, 0, 0, 1, 2, 1}, 1);

    /* out(x) = in(x - 1) moves the picture to the right: the tap is left of the anchor. */
    shipped("shift", &filter);
    check_taps(&filter, 3, 1, (const int32_t[]){1, 0, 0}, 1);
    shipped("shift-right", &filter);
    check_taps(&filter, 3, 1, (const int32_t[]){1, 0, 0}, 1);
    shipped("shift-left", &filter);
    check_taps(&filter, 3, 1, (const int32_t[]){0, 0, 1}, 1);
    shipped("shift-down", &filter);
    check_taps(&filter, 1, 3, (const int32_t[]){1, 0, 0}, 1);
    shipped("shift-up", &filter);
    check_taps(&filter, 1, 3, (const int32_t[]){0, 0, 1}, 1);

    /* Twice the picture minus its blur. */
    struct filter blur;
    shipped("unsharp", &filter);
    shipped("blur", &blur);
    assert_int_equal(filter.scale, blur.scale);
    for (int i = 0; i < 25; i++)
        assert_int_equal(filter.taps[i], (i == 12 ? 512 : 0) - blur.taps[i]);
}

/* ---- Finding ---- */

/* A temporary folder, which is the working folder while a test runs. */
struct place {
    char folder[64];
};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int enter(void **state)
{
    struct place *place = malloc(sizeof *place);
    if (place == NULL)
        return -1;
    strcpy(place->folder, "/tmp/gpuconv-test-XXXXXX");
    if (!mkdtemp(place->folder) || chdir(place->folder) != 0)
        return -1;
    *state = place;
    return 0;
}

static int leave(void **state)
{
    struct place *place = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", place->folder);
    const bool done = chdir("/") == 0 && system(command) == 0;
    unsetenv("GPUCONV_FILTERS");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    free(place);
    return done ? 0 : -1;
}

static void test_the_users_filters_come_before_the_built_in(void **state)
{
    const struct place *place = *state;
    struct filter filter;
    find("blur", &filter);
    assert_int_equal(filter.width, 5);

    /* The user's folder overrides built-in filters. The folders of the variable override that, in their order. */
    assert_int_equal(mkdir("config", 0700), 0);
    assert_int_equal(mkdir("config/gpuconv", 0700), 0);
    assert_int_equal(mkdir("config/gpuconv/filters", 0700), 0);
    assert_int_equal(mkdir("one", 0700), 0);
    assert_int_equal(mkdir("two", 0700), 0);
    write_file("config/gpuconv/filters/blur.txt", "1 1");
    write_file("config/gpuconv/filters/own.txt", "2 2 2");
    char path[128], list[256];
    snprintf(path, sizeof path, "%s/config", place->folder);
    setenv("XDG_CONFIG_HOME", path, 1);
    find("blur", &filter);
    assert_int_equal(filter.width, 2);
    find("own", &filter);
    assert_int_equal(filter.width, 3);

    write_file("two/blur.txt", "1 2 3 4");
    snprintf(list, sizeof list, ":%s/missing::%s/one:%s/two:", place->folder, place->folder, place->folder);
    setenv("GPUCONV_FILTERS", list, 1);
    find("blur", &filter);
    assert_int_equal(filter.width, 4);
    write_file("one/blur.txt", "1 2 3 4 5 6");
    find("blur", &filter);
    assert_int_equal(filter.width, 6);
    find("own", &filter);
    assert_int_equal(filter.width, 3);

    /* A broken file is an error, with the name of the file. */
    char message[256];
    write_file("one/blur.txt", "1 x");
    snprintf(message, sizeof message, "%s/one/blur.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"x\"",
             place->folder);
    refuse_find("blur", ERROR_USAGE, message);

    /* A relative XDG_CONFIG_HOME is ignored; the folder is then in HOME. */
    unsetenv("GPUCONV_FILTERS");
    setenv("XDG_CONFIG_HOME", "config", 1);
    find("blur", &filter);
    assert_int_equal(filter.width, 5);
    unsetenv("XDG_CONFIG_HOME");
    snprintf(path, sizeof path, "%s/home", place->folder);
    assert_int_equal(rename("config", "home"), 0);
    assert_int_equal(mkdir("home/.config", 0700), 0);
    assert_int_equal(rename("home/gpuconv", "home/.config/gpuconv"), 0);
    char *home = getenv("HOME") != NULL ? strdup(getenv("HOME")) : NULL;
    setenv("HOME", path, 1);
    find("blur", &filter);
    assert_int_equal(filter.width, 2);
    unsetenv("HOME");
    find("blur", &filter);
    assert_int_equal(filter.width, 5);
    if (home)
        setenv("HOME", home, 1);
    free(home);
}

static void test_a_path_is_read_unless_a_filter_has_its_name(void **state)
{
    (void)state;
    struct filter filter;
    write_file("blur", "7");
    write_file("mine", "7 8");
    write_file("a,b", "7 8 9");
    write_file("big", "1");
    assert_int_equal(truncate("big", FILTER_MAX_TEXT + 1), 0);
    write_file("void", "");
    assert_int_equal(mkdir("folder", 0700), 0);

    find("./blur", &filter);
    assert_int_equal(filter.width, 1);
    find("blur", &filter); /* a name wins over a file */
    assert_int_equal(filter.width, 5);
    find("mine", &filter);
    assert_int_equal(filter.width, 2);
    find("a,b", &filter);
    assert_int_equal(filter.width, 3);

    refuse_find("./no/file", ERROR_USAGE, "./no/file: cannot be read: No such file or directory");
    refuse_find("./folder", ERROR_USAGE,
                "./folder: is a folder; FILTER is a name that gpuconv --list shows, or a file");
    refuse_find("/dev/zero", ERROR_USAGE, "/dev/zero: is not a regular file; give the path of a filter file");
    refuse_find("./big", ERROR_USAGE,
                "./big: is larger than the 1048576 bytes that are read at most; give a smaller file");
    refuse_find("void", ERROR_USAGE, "void: the file holds no taps; expected at least one row of them");
    refuse_find("folder", ERROR_USAGE, "folder: is a folder; FILTER is a name that gpuconv --list shows, or a file");

    /* A pipe. */
    int ends[2];
    const int input = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "4 5 6 7 8", 9), 9);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    find("/dev/stdin", &filter);
    assert_int_equal(filter.width, 5);
    dup2(input, STDIN_FILENO);
    close(input);

    /* A long path is complete in messages, and cut in the name. */
    char path[300];
    snprintf(path, sizeof path, "%s%s", "./", "");
    while (strlen(path) < 200)
        strcat(path, "./");
    strcat(path, "mine");
    struct error error = {.code = ERROR_NONE};
    assert_true(filter_find(path, &filter, NULL, &error));
    assert_int_equal(strlen(filter.name), sizeof filter.name - 1);
    assert_memory_equal(filter.name, path, sizeof filter.name - 1);
}

static void test_an_unknown_name_is_refused_with_the_nearest(void **state)
{
    (void)state;
    refuse_find("blurr", ERROR_USAGE,
                "there is no filter named \"blurr\"; did you mean \"blur\"? (gpuconv --list shows all)");
    refuse_find("unsharpp", ERROR_USAGE,
                "there is no filter named \"unsharpp\"; did you mean \"unsharp\"? (gpuconv --list shows all)");
    refuse_find("unsharpp:2:1", ERROR_USAGE,
                "there is no filter named \"unsharpp:2:1\"; did you mean \"unsharp:2:1\"? (gpuconv --list shows all)");
    refuse_find("sobelt", ERROR_USAGE,
                "there is no filter named \"sobelt\"; did you mean \"sobel\"? (gpuconv --list shows all)");
    refuse_find("gausian", ERROR_USAGE,
                "there is no filter named \"gausian\"; did you mean \"gaussian:SIGMA\"? (gpuconv --list shows all)");
    refuse_find("gausian3", ERROR_USAGE,
                "there is no filter named \"gausian3\"; did you mean \"gaussian3\"? (gpuconv --list shows all)");
    refuse_find("bx:3", ERROR_USAGE,
                "there is no filter named \"bx:3\"; did you mean \"box:3\"? (gpuconv --list shows all)");
    refuse_find(
        "blur:3", ERROR_USAGE,
        "there is no filter \"blur:3\": blur takes no parameter, but box:R, gaussian:SIGMA, motion:LENGTH:ANGLE, "
        "disk:R, log:SIGMA and unsharp:SIGMA:AMOUNT[:THRESHOLD] do");
    refuse_find("quux", ERROR_USAGE, "there is no filter named \"quux\"; gpuconv --list shows all");
    refuse_find("", ERROR_USAGE, "a filter's name is empty; gpuconv --list shows all filters");
}

static void test_a_chain_of_filters_is_found_in_order(void **state)
{
    (void)state;
    struct filter *filters = NULL;
    size_t count = 0;
    struct error error = {.code = ERROR_NONE};
    write_file("blur,edge", "3 4 5");
    write_file("mine", "7 8");

    assert_true(filter_find_all("blur,gaussian:2,./mine", filter_find, &filters, &count, &error));
    assert_int_equal(count, 3);
    assert_string_equal(filters[0].name, "blur");
    assert_string_equal(filters[1].name, "gaussian:2");
    assert_string_equal(filters[2].name, "./mine");
    assert_int_equal(filters[2].width, 2);
    free(filters);

    assert_true(filter_find_all("blur,edge", filter_find, &filters, &count, &error)); /* a file of this name exists */
    assert_int_equal(count, 1);
    assert_int_equal(filters[0].width, 3);
    assert_int_equal(filters[0].height, 1);
    free(filters);

    static const char *const cases[][2] = {
        {"blur,,edge", "filter 2 of \"blur,,edge\" is empty; expected names with one comma in between"},
        {",blur", "filter 1 of \",blur\" is empty; expected names with one comma in between"},
        {"blur,", "filter 2 of \"blur,\" is empty; expected names with one comma in between"},
        {"", "a filter's name is empty; gpuconv --list shows all filters"},
        {"blur,edgy", "there is no filter named \"edgy\"; did you mean \"edge\"? (gpuconv --list shows all)"},
        {"blur,gaussian:2,5",
         "there is no filter named \"5\", and commas join filters; write a decimal comma as a point: "
         "gaussian:2.5"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_false(filter_find_all(cases[i][0], filter_find, &filters, &count, &error));
        assert_null(filters);
        assert_string_equal(error.message, cases[i][1]);
        assert_int_equal(error.code, ERROR_USAGE);
    }
}

static bool has(char **names, size_t count, const char *name)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += strcmp(names[i], name) == 0;
    assert_true(found <= 1);
    return found == 1;
}

static void test_names_are_listed_once_and_sorted(void **state)
{
    (void)state;
    char **names = NULL;
    size_t count = 0, before = 0;
    struct error error = {.code = ERROR_NONE};
    assert_true(filter_names(&names, &before, &error));
    assert_true(before >= builtin_filter_count);
    for (size_t i = 0; i < builtin_filter_count; i++)
        assert_true(has(names, before, builtin_filters[i].name));
    assert_false(has(names, before, "mine"));
    free(names);

    write_file("mine.txt", "1");
    write_file("blur.txt", "1");
    write_file("notes.md", "1");
    write_file(".hidden.txt", "1");
    write_file(".txt", "1");
    assert_int_equal(mkdir("folder.txt", 0700), 0);
    setenv("GPUCONV_FILTERS", ".:.", 1);
    assert_true(filter_names(&names, &count, &error));
    assert_int_equal(count, before + 1);
    assert_true(has(names, count, "mine"));
    assert_true(has(names, count, "blur"));
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(names[i - 1], names[i]) < 0);
    free(names);
}

/* ---- Describing ---- */

static void check_description(const struct filter *filter, const char *expected)
{
    char *text = filter_describe(filter);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

static void test_a_description_says_what_was_read(void **state)
{
    (void)state;
    struct filter filter;
    shipped("gaussian3", &filter);
    check_description(&filter, "test.txt: 3x3 Gaussian blur\n"
                               "  size       3 x 3, anchor 1 1\n"
                               "  scale      16\n"
                               "  sum        16: a constant image stays as it is\n"
                               "  offset     0\n"
                               "  taps       exact\n"
                               "  separable  yes: column 1 2 1, row 1 2 1\n"
                               "\n"
                               "  1 2 1\n"
                               "  2 4 2\n"
                               "  1 2 1\n");

    parse("abs\noffset 2.5\nscale 2\nanchor 0 0\n10 -1 7", &filter);
    check_description(&filter, "test.txt\n"
                               "  size       3 x 1, anchor 0 0\n"
                               "  scale      2\n"
                               "  sum        16: a constant image is multiplied by 8, then the offset is added\n"
                               "  offset     2.5\n"
                               "  abs        the sum's absolute value is taken\n"
                               "  taps       exact\n"
                               "  separable  yes: column 1, row 10 -1 7\n"
                               "\n"
                               "  10 -1  7\n");

    parse("0.123456789 0.876543211\n1 -2", &filter);
    check_description(&filter, "test.txt\n"
                               "  size       2 x 2, anchor 1 1\n"
                               "  scale      2097152\n"
                               "  sum        0: a constant image becomes 0\n"
                               "  offset     0\n"
                               "  taps       rounded once to 1/2^21, largest error 8.5e-05 of 255 levels\n"
                               "  separable  no\n"
                               "\n"
                               "    258908  1838244\n"
                               "   2097152 -4194304\n");

    parse("combine magnitude\nscale 2\n1 2\n---\n-1 5\n", &filter);
    check_description(&filter, "test.txt\n"
                               "  size       2 x 1, two grids, anchor 1 0\n"
                               "  combine    magnitude: sqrt(s1^2 + s2^2) of the grids' sums\n"
                               "  scale      2\n"
                               "  sum        3 and 4: a constant image is multiplied by 2.5\n"
                               "  offset     0\n"
                               "  taps       exact\n"
                               "\n"
                               "   1  2\n"
                               "  ---\n"
                               "  -1  5\n");
}

static void test_a_description_of_two_passes_has_two_vectors(void **state)
{
    (void)state;
    struct filter filter;
    find("unsharp:0.3:0.5:3", &filter);
    check_description(&filter, "unsharp:0.3:0.5:3: unsharp mask\n"
                               "  size       3 x 3, anchor 1 1\n"
                               "  passes     the row, its sums rounded to 1/2^8 of a level, then the column\n"
                               "  mask       in + 0.5 (in - blur), where |in - blur| is at least 3 levels\n"
                               "  sum        32768 and 32768: a constant image stays as it is\n"
                               "  taps       rounded once to 1/2^15 and 1/2^15, largest error 0.0065 of 255 levels\n"
                               "  row        126 32516 126\n"
                               "  column     126 32516 126\n"
                               "\n"
                               "  For samples of more than 8 bits:\n"
                               "  size       3 x 3, anchor 1 1\n"
                               "  passes     the row, its sums rounded to 1/2^6 of a level, then the column\n"
                               "  mask       in + 0.5 (in - blur), where |in - blur| is at least 771 levels\n"
                               "  sum        4194304 and 4194304: a constant image stays as it is\n"
                               "  taps       rounded once to 1/2^22 and 1/2^22, largest error 0.019 of 65535 levels\n"
                               "  row        16090 4162124 16090\n"
                               "  column     16090 4162124 16090\n");
    find("box:64", &filter);
    char *text = filter_describe(&filter);
    assert_non_null(strstr(text,
                           "  passes     the row, then the column\n  sum        129 and 129: a constant image stays "
                           "as it is\n  taps       exact\n  row        1 1 1 1"));
    assert_null(strstr(text, "more than 8 bits"));
    free(text);
}

/* ---- Any text ---- */

/* Any bytes give a valid filter or one sentence. */
static void check_any(const char *text, size_t size)
{
    struct filter filter, turned;
    struct error error = {.code = ERROR_NONE};
    if (!filter_parse(text, size, "test.txt", &filter, &error)) {
        assert_int_equal(error.code, ERROR_USAGE);
        assert_true(strcmp(error.subject, "test.txt") == 0 || strncmp(error.subject, "test.txt:", 9) == 0);
        for (const char *at = error.message; *at != '\0'; at++)
            assert_true((unsigned char)*at >= 0x20 && *at != 0x7f);
        return;
    }
    check_invariants(&filter);
    turned = filter;
    filter_flip(&turned);
    check_invariants(&turned);
    filter_flip(&turned);
    check_same(&filter, &turned);
}

static void test_any_text_gives_a_filter_or_an_error(void **state)
{
    (void)state;
    static const char letters[] = "0123456789 0123456789 \n\n.-+/e,;#\tscaleoffsetanchorabs\r";
    uint64_t seed = 4711;
    char text[64];
    for (int round = 0; round < 15000; round++) {
        const size_t size = below(&seed, sizeof text);
        for (size_t i = 0; i < size; i++)
            text[i] = round % 4 == 0 ? (char)random_next(&seed) : letters[below(&seed, sizeof letters - 1)];
        check_any(text, size);
    }
}

static void test_any_changed_filter_gives_a_filter_or_an_error(void **state)
{
    (void)state;
    static const char *const extra[] = {
        "scale -1/3\noffset 12.25\nabs\nanchor 0 0\n1/3 0.1 1e-3\n-2 7/9 3\n",
        "3 2 8 0.5\n1 2 3\n4 5 6\n",
        "0.123456789012345678901 3 99999999\nscale 1e15\n",
        "scale 12345678\n9876543 1e15 -1e15\n",
        "combine magnitude\noffset 0.12345678901\nscale 1/7\n1 2\n---\n-1/9 0.3\n",
        "combine sum\n1 2 3\n4 5 6\n---\n3 2 8\n7 7 7\n",
    };
    static const char *const pieces[] = {
        "e", "/", "-", ".", "0", "9999999", "\n", " ", "#", "1e18", "\xef\xbb\xbf", "scale ", "\n---\n"};
    uint64_t seed = 815;
    char text[4096];
    for (int round = 0; round < 15000; round++) {
        const uint64_t which = below(&seed, builtin_filter_count + 2 * COUNT(extra));
        const char *from =
            which < builtin_filter_count ? builtin_filters[which].text : extra[(which - builtin_filter_count) / 2];
        size_t size = strlen(from);
        assert_true(size + 40 < sizeof text);
        memcpy(text, from, size);
        for (uint64_t changes = 1 + below(&seed, 4); changes > 0 && size > 0; changes--) {
            const size_t at = below(&seed, size);
            const char *piece = pieces[below(&seed, COUNT(pieces))];
            switch (below(&seed, 4)) {
            case 0: /* another byte */
                text[at] = (char)random_next(&seed);
                break;
            case 1: /* one less */
                memmove(text + at, text + at + 1, size - at - 1);
                size--;
                break;
            case 2: /* an insertion */
                memmove(text + at + strlen(piece), text + at, size - at);
                memcpy(text + at, piece, strlen(piece));
                size += strlen(piece);
                break;
            default: /* the end */
                size = below(&seed, 8) == 0 ? at : size;
                break;
            }
        }
        check_any(text, size);
    }
}

int main(void)
{
    /* The tests must not see the user's own filters. */
    unsetenv("GPUCONV_FILTERS");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows_of_integers_are_taps),
        cmocka_unit_test(test_keywords_set_title_scale_offset_abs_and_anchor),
        cmocka_unit_test(test_blanks_comments_and_line_ends_do_not_matter),
        cmocka_unit_test(test_blanks_commas_and_semicolons_separate_taps),
        cmocka_unit_test(test_a_decimal_comma_is_refused),
        cmocka_unit_test(test_a_row_has_one_kind_of_separator),
        cmocka_unit_test(test_an_empty_place_between_taps_is_refused),
        cmocka_unit_test(test_a_wrong_text_is_refused_with_its_place),
        cmocka_unit_test(test_127_rows_and_columns_are_the_most),
        cmocka_unit_test(test_a_vips_matrix_is_read),
        cmocka_unit_test(test_taps_that_resemble_a_vips_matrix_stay_taps),
        cmocka_unit_test(test_a_common_denominator_keeps_taps_exact),
        cmocka_unit_test(test_rounded_taps_keep_their_sum),
        cmocka_unit_test(test_rounding_stays_within_the_error_it_reports),
        cmocka_unit_test(test_the_bias_holds_offset_and_half_the_scale),
        cmocka_unit_test(test_separable_taps_are_factored),
        cmocka_unit_test(test_flipping_turns_taps_and_anchor),
        cmocka_unit_test(test_a_box_has_equal_taps),
        cmocka_unit_test(test_a_gaussian_has_the_weights_of_its_deviation),
        cmocka_unit_test(test_motion_draws_a_line_at_its_angle),
        cmocka_unit_test(test_a_disk_has_the_area_of_its_radius),
        cmocka_unit_test(test_a_laplacian_of_gaussian_sums_to_zero),
        cmocka_unit_test(test_an_unsharp_mask_is_a_blur_and_an_amount),
        cmocka_unit_test(test_every_parametric_form_is_found),
        cmocka_unit_test(test_two_grids_share_one_scale),
        cmocka_unit_test(test_a_wrong_second_grid_is_refused),
        cmocka_unit_test(test_steps_follow_their_definition),
        cmocka_unit_test(test_shipped_filters_have_their_sizes_and_sums),
        cmocka_unit_test(test_shipped_filters_have_their_taps),
        cmocka_unit_test_setup_teardown(test_the_users_filters_come_before_the_built_in, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_path_is_read_unless_a_filter_has_its_name, enter, leave),
        cmocka_unit_test(test_an_unknown_name_is_refused_with_the_nearest),
        cmocka_unit_test_setup_teardown(test_a_chain_of_filters_is_found_in_order, enter, leave),
        cmocka_unit_test_setup_teardown(test_names_are_listed_once_and_sorted, enter, leave),
        cmocka_unit_test(test_a_description_says_what_was_read),
        cmocka_unit_test(test_a_description_of_two_passes_has_two_vectors),
        cmocka_unit_test(test_any_text_gives_a_filter_or_an_error),
        cmocka_unit_test(test_any_changed_filter_gives_a_filter_or_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
