/* SPDX-License-Identifier: MIT
 *
 * Errors: their text, and the guess which name a mistyped word means. */
#include "base/error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof array / sizeof array[0])

static void test_an_error_may_quote_itself(void **state)
{
    (void)state;
    struct error error = {.code = ERROR_NONE};
    assert_false(error_set(&error, ERROR_USAGE, "%s: %d of %d", "a.png", 3, 4));
    assert_int_equal(error.code, ERROR_USAGE);
    assert_string_equal(error.message, "a.png: 3 of 4");

    assert_false(error_set(&error, ERROR_WORK, "filter 2: %s", error.message));
    assert_int_equal(error.code, ERROR_WORK);
    assert_string_equal(error.message, "filter 2: a.png: 3 of 4");
}

static void test_a_reason_that_nobody_wants_is_dropped(void **state)
{
    (void)state;
    assert_false(error_set(NULL, ERROR_WORK, "%s", "dropped"));
}

static void test_the_subject_is_shown_once(void **state)
{
    (void)state;
    struct error error;
    char text[ERROR_TEXT];
    assert_false(error_about(&error, ERROR_WORK, "the", "cannot be read: %d", 5));
    error_text(&error, text, sizeof text);
    assert_string_equal(text, "the: cannot be read: 5");
    error_add_subject(&error, "other");
    assert_string_equal(error.subject, "the");

    assert_false(error_set(&error, ERROR_WORK, "the variant is not there"));
    assert_string_equal(error.subject, "");
    error_text(&error, text, sizeof text);
    assert_string_equal(text, "the variant is not there");
    error_add_subject(&error, "the");
    error_text(&error, text, sizeof text);
    assert_string_equal(text, "the: the variant is not there");

    assert_false(error_about(&error, ERROR_WORK, error.subject, "%s", error.message));
    error_text(&error, text, sizeof text);
    assert_string_equal(text, "the: the variant is not there");
    assert_false(error_about(NULL, ERROR_WORK, "the", "dropped"));
}

static void test_a_long_message_is_cut(void **state)
{
    (void)state;
    struct error error;
    const size_t size = 2 * sizeof error.message;
    char *text = malloc(size + 1);
    assert_non_null(text);
    memset(text, 'x', size);
    text[size] = '\0';
    assert_false(error_set(&error, ERROR_WORK, "%s", text));
    assert_int_equal(strlen(error.message), sizeof error.message - 1);
    free(text);
}

static const char *const names[] = {"blur", "edge", "gaussian3", "gaussian5", "sobel-x", "shift"};

static void check_nearest(const char *word, const char *expected)
{
    const char *nearest = NULL;
    const size_t count = error_nearest(word, names, COUNT(names), &nearest, 1);
    assert_int_equal(count, expected != NULL);
    if (expected == NULL)
        assert_null(nearest);
    else if (nearest == NULL)
        fail_msg("nothing is near %s; expected %s", word, expected);
    else
        assert_string_equal(nearest, expected);
}

static void test_a_mistyped_name_is_recognised(void **state)
{
    (void)state;
    check_nearest("blur", "blur");
    check_nearest("blurr", "blur");          /* one too many */
    check_nearest("blr", "blur");            /* one too few */
    check_nearest("blux", "blur");           /* another */
    check_nearest("egde", "edge");           /* two swapped */
    check_nearest("edeg", "edge");           /* two swapped, at the end */
    check_nearest("guassain5", "gaussian5"); /* two swaps: 2 of 3 */
    check_nearest("sobelx", "sobel-x");
    check_nearest("gaussian", "gaussian3"); /* the first of two that are equally near */
    check_nearest("EDGE", "edge");          /* in another case */
    check_nearest("BLXR", "blur");
    check_nearest("gauss", "gaussian3");     /* a part of the name, however long the rest is */
    check_nearest("edge-detection", "edge"); /* the name is a part */
    check_nearest("shiftwxyz", "shift");
}

static void test_names_that_are_equally_near_are_all_found(void **state)
{
    (void)state;
    const char *nearest[COUNT(names)];
    assert_int_equal(error_nearest("gauss", names, COUNT(names), nearest, COUNT(nearest)), 2);
    assert_string_equal(nearest[0], "gaussian3");
    assert_string_equal(nearest[1], "gaussian5");
    assert_int_equal(error_nearest("gaussian6", names, COUNT(names), nearest, 1), 1);
    /* A nearer name replaces all that came before. */
    assert_int_equal(error_nearest("gaussian5", names, COUNT(names), nearest, COUNT(nearest)), 1);
    assert_string_equal(nearest[0], "gaussian5");
    /* The nearest names may replace all. */
    memcpy(nearest, names, sizeof names);
    assert_int_equal(error_nearest("gaussian6", nearest, COUNT(names), nearest, COUNT(nearest)), 2);
    assert_string_equal(nearest[0], "gaussian3");
    assert_string_equal(nearest[1], "gaussian5");
}

static void test_an_unknown_name_lists_the_nearest(void **state)
{
    (void)state;
    struct error error;
    const char *const nearest[] = {"a", "b", "c"};
    assert_false(error_unknown(&error, "letter", "x", nearest, 3, "--list"));
    assert_int_equal(error.code, ERROR_USAGE);
    assert_string_equal(
        error.message,
        "there is no letter named \"x\"; did you mean \"a\", \"b\" or \"c\"? (gpuconv --list shows all)");
    error_unknown(&error, "letter", "x", nearest, 0, "--list");
    assert_string_equal(error.message, "there is no letter named \"x\"; gpuconv --list shows all");
}

static void test_a_distant_name_is_not_suggested(void **state)
{
    (void)state;
    check_nearest("", NULL);
    check_nearest("zzzz", NULL);
    check_nearest("bl", NULL);        /* 2 away, and a third of 2 is 1 */
    check_nearest("blue", "blur");    /* 1 away of 1 */
    check_nearest("blxy", NULL);      /* 2 away of 1 */
    check_nearest("shixft", "shift"); /* 1 away of 2 */
    check_nearest("shxyft", "shift"); /* 2 away of 2 */
    check_nearest("shixyzft", NULL);  /* 3 away of 2 */
    check_nearest("shiwxyzft", NULL); /* 4 away of 3 */
    const char *nearest;
    assert_int_equal(error_nearest("blur", names, 0, &nearest, 1), 0);

    /* A swap costs 1, not 2; and swapped letters are not touched again: "ca" to "abc" is 3. */
    const char *short_names[] = {"ab"};
    assert_int_equal(error_nearest("ba", short_names, 1, &nearest, 1), 1);
    const char *abc[] = {"abc----"};
    assert_int_equal(error_nearest("ca----", abc, 1, &nearest, 1), 0);

    /* Within the limit, but without a letter in common. */
    const char *digit[] = {"1"};
    assert_int_equal(error_nearest("2", digit, 1, &nearest, 1), 0);
}

static void test_long_words_and_names_are_not_compared(void **state)
{
    (void)state;
    char word[5000];
    memset(word, 'b', sizeof word);
    word[sizeof word - 1] = '\0';
    check_nearest(word, NULL);

    const char *long_names[] = {word, "blur"};
    const char *nearest;
    assert_int_equal(error_nearest("blur", long_names, 2, &nearest, 1), 1);
    assert_string_equal(nearest, "blur");

    char name[65];
    memset(name, 'b', 64);
    name[64] = '\0';
    const char *longest[] = {name};
    assert_int_equal(error_nearest(name + 1, longest, 1, &nearest, 1), 1);
    assert_ptr_equal(nearest, name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_error_may_quote_itself),
        cmocka_unit_test(test_a_reason_that_nobody_wants_is_dropped),
        cmocka_unit_test(test_the_subject_is_shown_once),
        cmocka_unit_test(test_a_long_message_is_cut),
        cmocka_unit_test(test_a_mistyped_name_is_recognised),
        cmocka_unit_test(test_names_that_are_equally_near_are_all_found),
        cmocka_unit_test(test_a_distant_name_is_not_suggested),
        cmocka_unit_test(test_an_unknown_name_lists_the_nearest),
        cmocka_unit_test(test_long_words_and_names_are_not_compared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
