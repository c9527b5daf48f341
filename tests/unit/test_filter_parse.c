/* SPDX-License-Identifier: MIT
 *
 * src/filter/parse.c: the text format and its messages, libvips matrices, two grids, and invariants that hold for any
 * text. */
#include "filters.h"

#include "base/random.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

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
                 "test.txt:%d:%d: expected a space after each comma in a row that has spaces or semicolons, found a "
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
        {"", "test.txt: the file has no taps; expected at least one row of taps"},
        {"# only\n\n # comments", "test.txt: the file has no taps; expected at least one row of taps"},
        {"scale 3\n", "test.txt: the file has no taps; expected at least one row of taps"},
        {"1 2 3\n4 5", "test.txt:2:4: expected 3 taps as in line 1, found 2"},
        {"# x\n1 2 9\n\n1 2 3 \n4 5 6   7 8", "test.txt:5:9: expected 3 taps as in line 2, found 5"},
        {"9\n1 2", "test.txt:2:3: expected 1 tap as in line 1, found 2"},
        {"1 2 3\n4 5 12abc", "test.txt:2:5: expected a tap such as 3, -0.5 or 1/16, found \"12abc\""},
        {"1 0x10", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"0x10\""},
        {"1 nan", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"nan\""},
        {"1\t-inf", "test.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"-inf\""},
        {"nan", "test.txt:1:1: expected a row of taps or one of title, scale, offset, abs, anchor, combine, matrix, "
                "curve and table, found \"nan\""},
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
                       "characters other than ASCII; type it again"},
        {"\xe2\x88\x92"
         "1 2", /* a minus sign, and below a blank, as typesetters use */
         "test.txt:1:1: expected a tap such as 3, -0.5 or 1/16, found \"\xe2\x88\x92"
         "1\", which has characters other than ASCII; type it again"},
        {"scale 1\xc2\xa0\n2", "test.txt:1:7: expected a scale such as 16 or 0.5, found \"1\xc2\xa0\", which has "
                               "characters other than ASCII; "
                               "type it again"},
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
        {"ofset 3\n1", "test.txt:1:1: expected a row of taps or one of title, scale, offset, abs, anchor, combine, "
                       "matrix, curve and table, "
                       "found \"ofset\"; did you mean \"offset\"?"},
        {"Scale 3\n1", "test.txt:1:1: expected a row of taps or one of title, scale, offset, abs, anchor, combine, "
                       "matrix, curve and table, "
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
    refuse_bytes(text, size + 1, "test.txt: is larger than the limit of 1048576 bytes; give a smaller file");
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
                 "test.txt:1:1: expected a row of taps or one of title, scale, offset, abs, anchor, combine, matrix, "
                 "curve and table, found "
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

/* ---- Two grids ---- */

#define COMBINE                                                                                                        \
    "magnitude, max or sum, the ways to combine the sums of two grids, or median, minimum, maximum or rank P%, the "   \
    "sample that becomes the output"

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
        {"combine\n1", "test.txt:1:8: expected " COMBINE ", found the end of the line"},
        {"combine  mean\n1", "test.txt:1:10: expected " COMBINE ", found \"mean\""},
        {"combine none\n1", "test.txt:1:9: expected " COMBINE ", found \"none\""},
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

/* ---- Ranks ---- */

static void test_a_footprint_and_its_rank_are_read(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int width, height, anchor_x, anchor_y, count, index;
    } cases[] = {
        {"combine median\n1", 1, 1, 0, 0, 1, 0},
        {"combine median\n1 1\n0 1", 2, 2, 1, 1, 3, 1},
        {"combine median\n1 1 0\n0 1 1", 3, 2, 1, 1, 4, 2}, /* the upper one of both in the middle */
        {"title t\nanchor 0 1\ncombine minimum\n1;0;1\n1;1;1\n", 3, 2, 0, 1, 5, 0},
        {"combine maximum\n1/1 0e9 10e-1\n", 3, 1, 1, 0, 2, 1},
        {"combine rank 0%\n1 1 1 1", 4, 1, 2, 0, 4, 0},
        {"combine rank 100%\n1 1 1 1", 4, 1, 2, 0, 4, 3},
        {"combine , rank ; 99.9% \n1 1 1 1", 4, 1, 2, 0, 4, 3},
        {"combine rank 25%\n1 1 1 1", 4, 1, 2, 0, 4, 1},
        {"combine rank 24.999999999999999999999999%\n1 1 1 1", 4, 1, 2, 0, 4, 1}, /* rounded to 2^-20 of all */
        {"combine rank 24.9999%\n1 1 1 1", 4, 1, 2, 0, 4, 0},
        {"combine rank 100/3%\n1 1 1", 3, 1, 1, 0, 3, 1},
    };
    struct filter filter;
    for (size_t i = 0; i < COUNT(cases); i++) {
        parse(cases[i].text, &filter);
        check_invariants(&filter);
        assert_int_equal(filter.kind, STEP_RANK);
        assert_true(filter.width == cases[i].width && filter.height == cases[i].height);
        assert_true(filter.anchor_x == cases[i].anchor_x && filter.anchor_y == cases[i].anchor_y);
        assert_true(filter.rank.count == cases[i].count && filter.rank.index == cases[i].index);
        assert_int_equal(filter.rank.form, RANK_ONE);
    }
    parse("combine median\nanchor 2 0\n1 0 1\n0 0 1\n", &filter);
    filter_flip(&filter);
    check_invariants(&filter);
    assert_true(filter.anchor_x == 0 && filter.anchor_y == 1 && filter.rank.anchor_x == 0 && filter.rank.anchor_y == 1);
    assert_true(rank_has(&filter.rank, 0, 0) && rank_has(&filter.rank, 0, 1) && rank_has(&filter.rank, 2, 1));
}

/* ---- Matrices and curves ---- */

#define SHAPES "expected a matrix after this line: 1 or 3 rows of 3 to 5 numbers, or 4 rows of 4 or 5 numbers; found "
#define LEVELS "expected a level from 0 to 255, or a percentage from 0% to 100%"

static void test_a_wrong_matrix_or_curve_is_refused_with_its_place(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"curve\n0 0\n 30 5\n 30 7\n",
         "test.txt:4:2: expected a larger first number than in the point before: a level has one result"},
        {"curve\n0 0\n5.1 9\n2% 8\n255 3\n",
         "test.txt:4:1: expected a larger first number than in the point before: a level has one result"},
        {"curve\n0 0\n255.5 3\n", "test.txt:3:1: " LEVELS},
        {"curve smooth\n0 -1e-9\n255 3\n", "test.txt:2:3: " LEVELS},
        {"curve\n0 0\n50% 100.01%\n", "test.txt:3:5: " LEVELS},
        {"matrix\n50% 0 0\n", "test.txt:2:1: expected a weight such as 3, -0.5 or 1/16, found \"50%\""},
        {"curve\n0 0\n9 5%%\n",
         "test.txt:3:3: expected a level such as 128, or a percentage such as 50%, found \"5%%\""},
        {"curve\n0 0\n9 %\n", "test.txt:3:3: expected a level such as 128, or a percentage such as 50%, found \"%\""},
        {"curve\n0 0\n9 1e999\n", "test.txt:3:3: expected a level such as 128, or a percentage such as 50%, found "
                                  "\"1e999\", which is too large"},
        {"matrix\n1 0 0\n0 1 0\n", "test.txt:1:1: " SHAPES "2 rows, the first of 3 numbers"},
        {"# x\n matrix\n1 0\n", "test.txt:2:2: " SHAPES "1 row, the first of 2 numbers"},
        {"matrix\n1 0 0 0 0 0\n", "test.txt:1:1: " SHAPES "1 row, the first of 6 numbers"},
        {"matrix\n1 0 0\n1 0 0\n1 0 0\n1 0 0\n", "test.txt:1:1: " SHAPES "4 rows, the first of 3 numbers"},
        {"matrix\n", "test.txt:1:1: " SHAPES "0 rows, the first of 0 numbers"},
        {"matrix\ncurve\n0 0\n9 9\n", "test.txt:1:1: " SHAPES "0 rows, the first of 0 numbers"},
        {"matrix\n1 0 0\n0 1 0 7\n0 0 1\n",
         "test.txt:3:7: expected 3 numbers as in the first row of the matrix, found 4"},
        {"matrix\n1 0 0\n0 1\n0 0 1\n", "test.txt:3:4: expected 3 numbers as in the first row of the matrix, found 2"},
        {"matrix\n1 0 0 70000\n", "test.txt:2:7: expected an offset from -65535 to 65535"},
        {"matrix\n9e6 0 1\n", "test.txt:2:1: expected weights whose absolute values sum to at most 8421504"},
        {"matrix\n1 0 0\nmatrix\n1 0 0\n",
         "test.txt:3:1: expected \"matrix\" only once, but line 1 has it too; remove one of the two"},
        {"curve blue\n0 0\n9 9\nmatrix\n1 0 0\n", "test.txt:4:1: expected the matrix before all curves; move it up"},
        {"curve blue\n0 0\n9 9\ncurve\n0 0\n9 9\n", "test.txt:4:1: expected one curve for blue, found a second"},
        {"curve alpha\ncurve red\ncurve green\ncurve blue\ncurve\n  curve alpha\n",
         "test.txt:6:3: expected at most a matrix and a curve for each channel"},
        {"curve\n0 0\n", "test.txt:1:1: expected at least two points IN OUT after this line, found 1"},
        {"curve red\n", "test.txt:1:1: expected at least two points IN OUT after this line, found 0"},
        {"curve\n0 0 0\n9 9\n", "test.txt:2:5: expected a point of the curve, the two numbers IN OUT, found 3"},
        {"curve\n0 0\n9\n", "test.txt:3:2: expected a point of the curve, the two numbers IN OUT, found 1"},
        {"table\n", "test.txt:1:1: expected 256 levels after this line, found 0"},
        {"table\n1 2 3\ncurve alpha\n0 0\n9 9\n", "test.txt:1:1: expected 256 levels after this line, found 3"},
        {"table smooth\n",
         "test.txt:1:7: expected red, green, blue or alpha, the channels of the table, found \"smooth\""},
        {"curve gren\n",
         "test.txt:1:7: expected red, green, blue or alpha, the channels of the curve, or smooth, steps "
         "or gamma, found \"gren\"; did you mean \"green\"?"},
        {"curve gamma\n", "test.txt:1:12: expected the gamma, such as 2.2, found the end of the line"},
        {"curve gamma  0.09\n", "test.txt:1:14: expected a gamma from 0.1 to 10"},
        {"curve red gamma 1% blue\n", "test.txt:1:17: expected the gamma, such as 2.2, found \"1%\""},
        {"curve red\n0 0\n9 9\ncurve blue gamma 1%\n", "test.txt:4:18: expected the gamma, such as 2.2, found \"1%\""},
        {"curve gamma 2 steps\n", "test.txt:1:15: expected only one of smooth, steps and gamma, found a second"},
        {"matrix red\n1 0 0\n", "test.txt:1:8: expected the end of the line, found \"red\""},
        {"scale 2\nmatrix\n1 0 0\n",
         "test.txt:1:1: expected no scale in a filter of a matrix or curves; remove this line"},
        {"matrix\n1 0 0\n offset 2\n",
         "test.txt:3:2: expected no offset in a filter of a matrix or curves; remove this line"},
        {"abs\ncurve\n0 0\n9 9\n", "test.txt:1:1: expected no abs in a filter of a matrix or curves; remove this line"},
        {"anchor 0 0\ncurve\n0 0\n9 9\n",
         "test.txt:1:1: expected no anchor in a filter of a matrix or curves; remove this line"},
        {"combine sum\ncurve\n0 0\n9 9\n",
         "test.txt:1:1: expected no combine in a filter of a matrix or curves; remove this line"},
        {"combine sum\ncurve\n0 0\n---\n9 9\n",
         "test.txt:4:1: expected no second grid with a matrix or curves; remove this line"},
        {"curve\n0 0\n9 9\ntitle x\n",
         "test.txt:4:1: expected a row of numbers, found \"title\", which must come before the first row"},
        {"1 2 1\ncurve\n0 0\n9 9\n",
         "test.txt:2:1: expected a row of taps, found \"curve\", which must come before the first row"},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        refuse(cases[i][0], cases[i][1]);
}

/* WORD, then COUNT lines of NUMBERS, in a string to be freed. With 2 numbers, they rise. */
static char *section(const char *word, int count, int numbers)
{
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    fprintf(stream, "%s\n", word);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < numbers; k++)
            fprintf(stream, "%g%c", numbers == 2 ? i / 8.0 : k, k == numbers - 1 ? '\n' : ' ');
    assert_int_equal(fclose(stream), 0);
    return text;
}

static void test_256_levels_and_points_are_the_most(void **state)
{
    (void)state;
    static const struct {
        const char *word;
        int count, numbers;
        const char *message; /* NULL if the text is read */
    } cases[] = {
        {"table", 256, 1, NULL},
        {"table", 1, 256, NULL},
        {"table", 2, 128, NULL},
        {"curve", 256, 2, NULL},
        {"table", 255, 1, "test.txt:1:1: expected 256 levels after this line, found 255"},
        {"table", 257, 1, "test.txt:258:1: expected 256 levels, found more"},
        {"table", 1, 257, "test.txt:2:915: expected at most 256 numbers in a row"},
        {"curve", 257, 2, "test.txt:258:1: expected at most 256 points of a curve"},
        {"matrix", 1029, 3, "test.txt:1030:1: expected at most 1028 rows of numbers"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct filter filter;
        char *text = section(cases[i].word, cases[i].count, cases[i].numbers);
        if (cases[i].message != NULL)
            refuse(text, cases[i].message);
        else
            parse(text, &filter);
        free(text);
    }
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
    static const char letters[] = "0123456789 0123456789 \n\n.-+/e,;#\tscaleoffsetanchorabs\rcurvematrix%";
    uint64_t seed = 4711;
    char text[64];
    for (int round = 0; round < 1200; round++) {
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
        "title x\nmatrix\n1/3 0.1 1e-3 0 9\n-2 7/9 3 0 9\n0 0 1 1 9\ncurve red smooth\n0 5%\n1/3 3\n99% 255\n",
        "title y\ncombine rank 33.3%\nanchor 1 1\n0 1 1 0\n1 1 1 0\n",
        "combine median\n1,1,0\n0,1,1\n",
        "curve gamma 2.2 alpha\n0 0\n255 255\ncurve red blue steps\n7 0\n8 100%\n9 50%\ncurve green\n0 1\n1 0\n",
    };
    static const char *const pieces[] = {"e",
                                         "/",
                                         "-",
                                         ".",
                                         "0",
                                         "9999999",
                                         "\n",
                                         " ",
                                         "#",
                                         "1e18",
                                         "\xef\xbb\xbf",
                                         "scale ",
                                         "\n---\n",
                                         "%",
                                         "\ncurve ",
                                         "table",
                                         "matrix\n",
                                         " smooth ",
                                         "gamma 2 ",
                                         "rank 7%",
                                         "median",
                                         "combine maximum\n"};
    uint64_t seed = 815;
    char text[4096];
    for (int round = 0; round < 1200; round++) {
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
        cmocka_unit_test(test_a_wrong_second_grid_is_refused),
        cmocka_unit_test(test_a_footprint_and_its_rank_are_read),
        cmocka_unit_test(test_a_wrong_matrix_or_curve_is_refused_with_its_place),
        cmocka_unit_test(test_256_levels_and_points_are_the_most),
        cmocka_unit_test(test_any_text_gives_a_filter_or_an_error),
        cmocka_unit_test(test_any_changed_filter_gives_a_filter_or_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
