/* SPDX-License-Identifier: MIT
 *
 * Text: what is UTF-8, what a terminal and a JSON reader get to see, numbers, and a stream into memory. */
#include "base/text.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* AddressSanitizer ends the program when an allocation is too large, unless told to return NULL as malloc does. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

/* ---- UTF-8 ---- */

static int length_of(const char *text, size_t size)
{
    return text_utf8_length((const uint8_t *)text, size);
}

static void test_first_and_last_character_of_each_length_are_utf8(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int length;
    } characters[] = {
        {"\x01", 1},
        {"\x7f", 1}, /* U+0001, U+007F */
        {"\xc2\x80", 2},
        {"\xdf\xbf", 2}, /* U+0080, U+07FF */
        {"\xe0\xa0\x80", 3},
        {"\xed\x9f\xbf", 3}, /* U+0800, U+D7FF: the last before the surrogates */
        {"\xee\x80\x80", 3},
        {"\xef\xbf\xbf", 3},     /* U+E000: the first after them; U+FFFF */
        {"\xf0\x90\x80\x80", 4}, /* U+10000 */
        {"\xf4\x8f\xbf\xbf", 4}, /* U+10FFFF */
    };
    for (size_t i = 0; i < sizeof characters / sizeof characters[0]; i++) {
        const size_t size = strlen(characters[i].text);
        assert_int_equal(size, characters[i].length);
        assert_int_equal(length_of(characters[i].text, size), characters[i].length);
        assert_int_equal(length_of(characters[i].text, size + 1), characters[i].length); /* the NUL after it */
        for (size_t cut = 0; cut < size; cut++)
            assert_int_equal(length_of(characters[i].text, cut), 0);
    }
    assert_int_equal(length_of("", 1), 1); /* U+0000 */
}

static void test_what_rfc_3629_forbids_is_no_utf8(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "\x80",
        "\xbf", /* a continuation without a beginning */
        "\xc0\x80",
        "\xc1\xbf",
        "\xe0\x9f\xbf",
        "\xf0\x8f\xbf\xbf", /* not the shortest form */
        "\xed\xa0\x80",
        "\xed\xbf\xbf", /* surrogates */
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xff", /* beyond U+10FFFF */
        "\xc3\x28",
        "\xe2\x82\x28",
        "\xe2\x28\xa1",
        "\xf0\x9f\x98\x28",
        "\xf0\x28\x8c\xbc", /* no continuation */
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        assert_int_equal(length_of(texts[i], strlen(texts[i])), 0);
        assert_false(text_is_utf8((const uint8_t *)texts[i], strlen(texts[i])));
    }
}

/* The definition read backwards: every code point has one encoding, and no other sequence of bytes is any. */
static void test_each_code_point_has_exactly_one_encoding(void **state)
{
    (void)state;
    long counts[5] = {0};
    for (unsigned long i = 0; i < 1ul << 24; i++) { /* all sequences of three bytes, and what they begin with */
        const uint8_t bytes[3] = {(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i};
        const int length = text_utf8_length(bytes, 3);
        counts[length]++;
    }
    assert_true(counts[1] == 0x80l << 16);             /* then any two bytes */
    assert_true(counts[2] == (0x800l - 0x80) << 8);    /* then any byte */
    assert_true(counts[3] == 0x10000l - 0x800 - 2048); /* without 2048 surrogates */
    assert_true(counts[4] == 0);                       /* too short for four */
    for (unsigned long i = 0; i < 1ul << 18; i++) {    /* sequences of four bytes, the last three continuations */
        const uint8_t bytes[4] = {0xf0, (uint8_t)(0x80 | (i >> 12)), (uint8_t)(0x80 | (i >> 6 & 63)),
                                  (uint8_t)(0x80 | (i & 63))};
        assert_int_equal(text_utf8_length(bytes, 4), i >= 0x10000 ? 4 : 0);
    }
}

static void test_a_text_is_utf8_if_all_of_it_is(void **state)
{
    (void)state;
    static const char text[] = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80z";
    const size_t size = sizeof text - 1;
    assert_true(text_is_utf8((const uint8_t *)text, 0));
    assert_true(text_is_utf8((const uint8_t *)text, size));
    for (size_t i = 0; i < size; i++) { /* cut within a character, or not */
        const bool whole = i <= 1 || i == 3 || i == 6 || i == 10;
        assert_int_equal(text_is_utf8((const uint8_t *)text, i), whole);
    }
    char broken[sizeof text];
    for (size_t i = 0; i < size; i++) {
        memcpy(broken, text, sizeof text);
        broken[i] = '\xff';
        assert_false(text_is_utf8((const uint8_t *)broken, size));
    }
}

/* ---- Printing ---- */

/* What PRINT makes of TEXT. */
static void check_printed(void (*print)(FILE *file, const char *text), const char *text, const char *expected)
{
    struct text_buffer buffer;
    FILE *stream = text_open(&buffer);
    assert_non_null(stream);
    print(stream, text);
    assert_true(text_close(stream, &buffer));
    assert_string_equal(buffer.bytes, expected);
    assert_int_equal(buffer.size, strlen(expected));
    free(buffer.bytes);
}

static void test_no_control_character_reaches_the_terminal(void **state)
{
    (void)state;
    check_printed(text_print_escaped, "", "");
    check_printed(text_print_escaped, "plain ~ \"text\" \\", "plain ~ \"text\" \\");
    check_printed(text_print_escaped, "a\nb\tc\rd", "a\\nb\\tc\\x0dd");
    check_printed(text_print_escaped, "\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m");
    check_printed(text_print_escaped, "\x01\x1f\x7f", "\\x01\\x1f\\x7f");
    /* U+0080, U+009B (the control sequence introducer) and U+009F; U+00A0 and others are letters to a terminal. */
    check_printed(text_print_escaped, "\xc2\x80\xc2\x9b\xc2\x9f", "\\xc2\\x80\\xc2\\x9b\\xc2\\x9f");
    check_printed(text_print_escaped, "\xc2\xa0\xc3\xa4\xe2\x82\xac", "\xc2\xa0\xc3\xa4\xe2\x82\xac");
}

/* In Latin-1 they are letters or control characters. A terminal could also join them to what is printed next. */
static void test_bytes_that_are_no_utf8_do_not_reach_the_terminal(void **state)
{
    (void)state;
    check_printed(text_print_escaped, "\x9b[31m", "\\x9b[31m");
    check_printed(text_print_escaped, "a\x80z\xff", "a\\x80z\\xff");
    check_printed(text_print_escaped, "\xc2", "\\xc2"); /* cut short: the NUL is not skipped */
    check_printed(text_print_escaped, "\xc2\n", "\\xc2\\n");
    check_printed(text_print_escaped, "\xe2\x80", "\\xe2\\x80");
    check_printed(text_print_escaped, "\xed\xa0\x80", "\\xed\\xa0\\x80");
}

/* UTF-8's definition. It encodes a surrogate as CESU-8 does. */
static void encode(unsigned c, char text[5])
{
    if (c < 0x80)
        snprintf(text, 5, "%c", (int)c);
    else if (c < 0x800)
        snprintf(text, 5, "%c%c", (int)(0xc0 | c >> 6), (int)(0x80 | (c & 63)));
    else if (c < 0x10000)
        snprintf(text, 5, "%c%c%c", (int)(0xe0 | c >> 12), (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
    else
        snprintf(text, 5, "%c%c%c%c", (int)(0xf0 | c >> 18), (int)(0x80 | (c >> 12 & 63)), (int)(0x80 | (c >> 6 & 63)),
                 (int)(0x80 | (c & 63)));
}

/* Print all code points, each on a line. */
static char *print_all(void (*print)(FILE *file, const char *text))
{
    struct text_buffer buffer;
    FILE *stream = text_open(&buffer);
    assert_non_null(stream);
    for (unsigned c = 1; c < 0x110000; c++) {
        char text[5];
        encode(c, text);
        print(stream, text);
        fputc('\n', stream);
    }
    assert_true(text_close(stream, &buffer));
    return buffer.bytes;
}

/* The escaped characters are of Unicode's categories Cc, Zl and Zp, or have the property Bidi_Control: they end lines,
 * command the terminal, or change the order of the text around them. U+FFFE and U+FFFF are not allowed in XML. */
static void test_exactly_the_characters_that_change_other_text_are_escaped(void **state)
{
    (void)state;
    static const unsigned escaped[][2] = {{0x01, 0x1f},     {0x7f, 0x9f},     {0x61c, 0x61c},  {0x200e, 0x200f},
                                          {0x2028, 0x202e}, {0x2066, 0x2069}, {0xfffe, 0xffff}};
    char *plain = print_all(text_print_escaped), *json = print_all(text_print_json);
    char *plain_rest = plain, *json_rest = json;
    for (unsigned c = 1; c < 0x110000; c++) {
        char text[5], quoted[8];
        const char *plain_line = strsep(&plain_rest, "\n"), *json_line = strsep(&json_rest, "\n");
        bool listed = c >= 0xd800 && c < 0xe000; /* surrogates are no UTF-8 */
        for (size_t i = 0; i < sizeof escaped / sizeof escaped[0]; i++)
            listed = listed || (c >= escaped[i][0] && c <= escaped[i][1]);
        encode(c, text);
        snprintf(quoted, sizeof quoted, c == '"' || c == '\\' ? "\"\\%s\"" : "\"%s\"", text);
        if ((strcmp(plain_line, text) == 0) == listed || (strcmp(json_line, quoted) == 0) == listed)
            fail_msg("U+%04X: %s, %s", c, plain_line, json_line);
    }
    free(plain);
    free(json);
}

static void test_json_escapes_what_json_must(void **state)
{
    (void)state;
    check_printed(text_print_json, NULL, "null");
    check_printed(text_print_json, "", "\"\"");
    check_printed(text_print_json, "say \"hi\" \\ /", "\"say \\\"hi\\\" \\\\ /\"");
    check_printed(text_print_json, "\x01\b\t\n\f\r\x1f\x7f",
                  "\"\\u0001\\u0008\\u0009\\u000a\\u000c\\u000d\\u001f\\u007f\"");
    check_printed(text_print_json, "\xc2\x9b\xd8\x9c\xe2\x80\xae\xe2\x81\xa9", "\"\\u009b\\u061c\\u202e\\u2069\"");
    check_printed(text_print_json, "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80\"");
}

static void test_json_keeps_invalid_bytes_as_lone_surrogates(void **state)
{
    (void)state;
    check_printed(text_print_json, "\x80\xff", "\"\\udc80\\udcff\"");
    check_printed(text_print_json, "a\xc3", "\"a\\udcc3\"");                     /* cut short by the end */
    check_printed(text_print_json, "\xc3(", "\"\\udcc3(\"");                     /* and by another character */
    check_printed(text_print_json, "\xe2\x82\"", "\"\\udce2\\udc82\\\"\"");      /* the quotation mark stays escaped */
    check_printed(text_print_json, "\xed\xa0\x80", "\"\\udced\\udca0\\udc80\""); /* a surrogate is no UTF-8 */
    check_printed(text_print_json, "\xc0\xaf", "\"\\udcc0\\udcaf\"");            /* nor is a slash of two bytes */
    check_printed(text_print_json, "\xf4\x90\x80\x80", "\"\\udcf4\\udc90\\udc80\\udc80\"");
}

/* ---- Files of text ---- */

static const char *begin(const char *text, size_t size, struct error *error)
{
    const char *start = text;
    error->message[0] = '\0';
    if (text_begin(&start, text + size, "list", ERROR_USAGE, error))
        return start;
    assert_int_equal(error->code, ERROR_USAGE);
    assert_string_equal(error->subject, "list");
    assert_ptr_equal(start, text);
    return NULL;
}

static void test_a_text_begins_behind_its_byte_order_mark(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t size, skipped;
    } cases[] = {
        {"", 0, 0},
        {"a", 1, 0},
        {"a\nb", 3, 0},
        {"\xef\xbb\xbf", 3, 3},
        {"\xef\xbb\xbf\xef\xbb\xbf", 6, 3},
        {"\xef\xbb", 2, 0},
        {"\xef\xbb\xbf"
         "1 2\r\n",
         8, 3},
        {"1 2\r", 4, 0},    /* a line end that was cut */
        {"1\r2\n3", 5, 0},  /* a name may hold a CR */
        {"ab\0cd\0", 6, 0}, /* names with NUL bytes after them */
        {"a\0bc\0", 5, 0},
        {"\0", 1, 0},
        {"\0\0\0\0", 4, 0},
        {"\x89PNG\r\n\x1a\n\0\0", 10, 0},
    };
    struct error error;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *start = begin(cases[i].text, cases[i].size, &error);
        if (start != cases[i].text + cases[i].skipped)
            fail_msg("case %zu: %s", i, error.message);
    }
}

static void test_a_text_in_utf16_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *form;
        size_t size;
    } cases[] = {
        {"\xff\xfe", "UTF-16LE", 2},
        {"\xff\xfe"
         "1\0\n\0",
         "UTF-16LE", 6},
        {"1\0", "UTF-16LE", 2},
        {"1\0 \0002\0", "UTF-16LE", 6},
        {"\xfe\xff", "UTF-16BE", 2},
        {"\xfe\xff\0001", "UTF-16BE", 4},
        {"\0001", "UTF-16BE", 2},
        {"\0001\0 \0002", "UTF-16BE", 6},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct error error;
        char message[128];
        snprintf(message, sizeof message, "is text in UTF-16; save it as UTF-8, or convert it: iconv -f %s -t UTF-8",
                 cases[i].form);
        assert_null(begin(cases[i].text, cases[i].size, &error));
        assert_string_equal(error.message, message);
    }
}

static void test_a_text_whose_lines_end_in_cr_is_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {"1 2\r3 4\r", "1\r2", "\r1", "\xef\xbb\xbf# a\r1\r"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct error error;
        assert_null(begin(texts[i], strlen(texts[i]), &error));
        assert_string_equal(error.message, "its lines end in CR, as on old Macs; save it with LF line ends, or "
                                           "convert it: tr '\\r' '\\n'");
    }
}

/* ---- Numbers ---- */

static void check_number(const char *text, int min, int max, int expected, const char *rest)
{
    const char *at = text;
    int number = -7;
    assert_true(text_read_number(&at, min, max, &number));
    assert_int_equal(number, expected);
    assert_string_equal(at, rest);
}

static void refuse_number(const char *text, int min, int max)
{
    const char *at = text;
    int number = -7;
    assert_false(text_read_number(&at, min, max, &number));
    assert_int_equal(number, -7);
    assert_ptr_equal(at, text);
}

static void test_a_number_ends_at_the_first_byte_that_is_no_digit(void **state)
{
    (void)state;
    check_number("0", 0, 0, 0, "");
    check_number("12x34", 0, 99, 12, "x34");
    check_number("007/9", 1, 9, 7, "/9");
    check_number("5.5", 0, 9, 5, ".5");
    check_number("999999999", 0, INT_MAX, 999999999, "");
    check_number("000000001 ", 0, INT_MAX, 1, " ");
}

static void test_what_is_no_number_or_out_of_range_is_refused(void **state)
{
    (void)state;
    refuse_number("", 0, 9);
    refuse_number("x1", 0, 9);
    refuse_number("-1", -9, 9);
    refuse_number("+1", 0, 9);
    refuse_number(" 1", 0, 9);
    refuse_number("0", 1, 9);
    refuse_number("10", 1, 9);
    refuse_number("1000000000", 0, INT_MAX); /* ten digits, even where an int holds them */
    refuse_number("0000000001", 0, INT_MAX);
    refuse_number("99999999999999999999", 0, INT_MAX);
}

/* ---- In memory ---- */

static void test_a_size_has_the_unit_that_fits(void **state)
{
    static const struct {
        size_t size;
        const char *text;
    } cases[] = {
        {0, "0 bytes"},
        {1, "1 byte"},
        {1023, "1023 bytes"},
        {1024, "1.0 KiB"},
        {3500, "3.4 KiB"},
        {(size_t)1 << 20, "1.0 MiB"},
        {(size_t)3 << 29, "1.5 GiB"},
        {(size_t)1 << 40, "1.0 TiB"},
        {SIZE_MAX, "16777216.0 TiB"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[TEXT_OF_SIZE];
        assert_string_equal(text_of_size(cases[i].size, text), cases[i].text);
    }
}

static void test_a_stream_holds_all_that_is_printed(void **state)
{
    (void)state;
    struct text_buffer buffer;
    FILE *stream = text_open(&buffer);
    assert_non_null(stream);
    assert_true(text_close(stream, &buffer));
    assert_int_equal(buffer.size, 0);
    assert_string_equal(buffer.bytes, "");
    free(buffer.bytes);

    enum { LINES = 50000 }; /* far beyond the stream's own buffer and several doublings */
    stream = text_open(&buffer);
    assert_non_null(stream);
    for (int i = 0; i < LINES; i++)
        fprintf(stream, "%05d\n", i);
    fputc('\0', stream); /* a byte as any other */
    fputs("end", stream);
    assert_true(text_close(stream, &buffer));
    assert_int_equal(buffer.size, 6 * LINES + 4);
    assert_int_equal(buffer.bytes[buffer.size], '\0');
    for (int i = 0; i < LINES; i++)
        assert_int_equal(atoi(buffer.bytes + 6 * i), i);
    assert_string_equal(buffer.bytes + 6 * LINES + 1, "end");
    free(buffer.bytes);
}

/* The stream believes that it holds three eighths of the address space, so the next byte needs more than there is. */
static void test_a_stream_without_memory_fails_when_it_is_closed(void **state)
{
    (void)state;
    for (int flushed = 0; flushed < 2; flushed++) {
        struct text_buffer buffer;
        FILE *stream = text_open(&buffer);
        assert_non_null(stream);
        fputs("first", stream);
        assert_int_equal(fflush(stream), 0);
        buffer.size = buffer.capacity = SIZE_MAX / 8 * 3;
        fputs("lost", stream);
        if (flushed) /* the error is remembered */
            assert_int_not_equal(fflush(stream), 0);
        assert_false(text_close(stream, &buffer));
        assert_null(buffer.bytes);
        assert_int_equal(buffer.size, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_and_last_character_of_each_length_are_utf8),
        cmocka_unit_test(test_what_rfc_3629_forbids_is_no_utf8),
        cmocka_unit_test(test_each_code_point_has_exactly_one_encoding),
        cmocka_unit_test(test_a_text_is_utf8_if_all_of_it_is),
        cmocka_unit_test(test_no_control_character_reaches_the_terminal),
        cmocka_unit_test(test_bytes_that_are_no_utf8_do_not_reach_the_terminal),
        cmocka_unit_test(test_exactly_the_characters_that_change_other_text_are_escaped),
        cmocka_unit_test(test_json_escapes_what_json_must),
        cmocka_unit_test(test_json_keeps_invalid_bytes_as_lone_surrogates),
        cmocka_unit_test(test_a_text_begins_behind_its_byte_order_mark),
        cmocka_unit_test(test_a_text_in_utf16_is_refused),
        cmocka_unit_test(test_a_text_whose_lines_end_in_cr_is_refused),
        cmocka_unit_test(test_a_number_ends_at_the_first_byte_that_is_no_digit),
        cmocka_unit_test(test_what_is_no_number_or_out_of_range_is_refused),
        cmocka_unit_test(test_a_size_has_the_unit_that_fits),
        cmocka_unit_test(test_a_stream_holds_all_that_is_printed),
        cmocka_unit_test(test_a_stream_without_memory_fails_when_it_is_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
