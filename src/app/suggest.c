/* SPDX-License-Identifier: MIT */
#include "app/option_table.h"
#include "base/text.h"
#include "codec/format.h"
#include "filter/filter.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool is_number(const char *text)
{
    return isdigit((unsigned char)*text) && text[strspn(text, "0123456789.%")] == '\0';
}

/* ---- Options ---- */

/* The mode that must stand before OURS: an option with its dashes, or other text, which needs none. COMPARES says
 * whether the command line has --compare already. */
static const char *mode_before(const char *ours, bool compares)
{
    const struct option *o = ours[0] == '-' ? option_find(ours + 2, strcspn(ours + 2, " ")) : NULL;
    const unsigned bits = o != NULL ? o->bits : 0;
    return bits & ONLY_BENCH                  ? "--bench "
           : bits & ONLY_DIGEST               ? "--digest "
           : bits & ONLY_JOBS                 ? "--jobs-from FILE "
           : bits & ONLY_COMPARE && !compares ? "--compare "
                                              : "";
}

/* Write what the option WORD, without its dashes, probably means to TEXT: after "; " a sentence or a question, or "" if
 * that is not known. */
static void guess_option(const char *word, bool compares, char *text, size_t size)
{
    enum { NEAREST_MAX = 4 };
    const char *names[OPTIONS_MAX], *nearest[NEAREST_MAX] = {""}, *meant = compares ? words_find('~', word) : NULL;
    char list[256] = "", **filters = NULL;
    size_t count = 0;
    meant = meant != NULL ? meant : words_find('-', word);
    text[0] = '\0';
    if (meant != NULL && meant[0] == '!')
        snprintf(text, size, "; %s", meant + 1);
    else if (meant != NULL)
        snprintf(list, sizeof list, "%s%s", mode_before(meant, compares), meant);
    for (size_t i = 0; i < option_count; i++)
        names[i] = option_table[i].name;
    if (meant == NULL && !filter_is_named(word))
        count = error_nearest(word, names, option_count, nearest, NEAREST_MAX);
    for (size_t i = 0; i < count; i++) {
        char ours[64], name[96];
        snprintf(ours, sizeof ours, "--%s", nearest[i]);
        snprintf(name, sizeof name, "%s%s", mode_before(ours, compares), ours);
        text_add_word(list, sizeof list, name, i + 1 == count ? " or " : NULL);
    }
    if (meant == NULL && count == 0 && filter_names(&filters, &count, NULL) &&
        (filter_is_named(word) || error_nearest(word, (const char *const *)filters, count, nearest, 1) > 0))
        snprintf(list, sizeof list, "the filter %s, which has no dash", filter_is_named(word) ? word : nearest[0]);
    free(filters);
    if (list[0] != '\0')
        snprintf(text, size, "; did you mean %s?%s", list, compares ? " gpuconv --compare --help lists all" : "");
}

/* Report the unknown option TYPED in ARGUMENT, which probably means GUESS. Returns false. */
static bool report_unknown(const char *argument, const char *typed, const char *guess, bool compares,
                           struct error *error)
{
    if (format_find_by_path(argument) != NULL || access(argument, F_OK) == 0)
        return error_set(error, ERROR_USAGE, "unknown option %s; if it is a file, write ./%s", argument, argument);
    return error_set(error, ERROR_USAGE, "unknown option %s%s%s", typed, guess,
                     guess[0] != '\0' ? ""
                     : compares       ? "; gpuconv --compare --help lists all"
                                      : "; gpuconv --help lists all");
}

bool suggest_option(const char *argument, size_t length, bool compares, struct error *error)
{
    char typed[256], text[384]; /* what is cut is longer than any option's name */
    snprintf(typed, sizeof typed, "%.*s", (int)length, argument);
    guess_option(typed + strspn(typed, "-"), compares, text, sizeof text);
    return report_unknown(argument, typed, text, compares, error);
}

bool suggest_letter(const char *argument, const char *letter, bool compares, struct error *error)
{
    char typed[256], text[384] = "";
    const int character = text_utf8_length((const uint8_t *)letter, strlen(letter));
    const int length = character > 0 ? character : 1, code = (unsigned char)*letter;
    const bool alone = strlen(argument) == 1 + (size_t)length;
    const struct option *before = letter > argument + 1 ? option_of_letter(letter[-1]) : NULL;
    const struct option *o = option_of_letter((char)(isupper(code) ? tolower(code) : toupper(code)));
    if (before != NULL && is_number(letter))
        return suggest_no_value(before, true, letter, error);
    if (!alone || compares || words_find('-', argument + 1) != NULL)
        guess_option(argument + 1, compares, text, sizeof text);
    else if (o != NULL)
        snprintf(text, sizeof text, "; did you mean -%c, --%s?", o->letter, o->name);
    if (alone || text[0] != '\0')
        snprintf(typed, sizeof typed, "%s", argument);
    else
        snprintf(typed, sizeof typed, "-%.*s in %s", length, letter, argument);
    return report_unknown(argument, typed, text, compares, error);
}

/* ---- Values ---- */

bool suggest_word(const struct option *o, const char *value, struct error *error)
{
    const char *words[16], *nearest = NULL; /* no option has as many words */
    size_t count = 0;
    char text[256];
    option_join_words(o, text, sizeof text);
    while (count < sizeof words / sizeof *words && o->word((int)count) != NULL) {
        words[count] = o->word((int)count);
        count++;
    }
    for (size_t i = 0; o->meant != NULL && o->meant[i][0] != NULL; i++)
        nearest = strcasecmp(o->meant[i][0], value) == 0 ? o->meant[i][1] : nearest;
    if (nearest == NULL && !is_number(value)) /* a number is not a mistyped word */
        error_nearest(value, words, count, &nearest, 1);
    return error_set(error, ERROR_USAGE, "--%s takes %s, not \"%s\"%s%s%s", o->name, text, value,
                     nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "?" : "");
}

bool suggest_no_value(const struct option *o, bool is_letter, const char *value, struct error *error)
{
    char text[128] = "", typed[64];
    for (const struct option *other = option_table; is_number(value) && other < option_table + option_count; other++)
        if (other->kind == KIND_NUMBER && other->name[0] == o->name[0])
            snprintf(text, sizeof text, "; did you mean --%s %.16s?", other->name, value);
    snprintf(typed, sizeof typed, is_letter ? "-%c is --%s and" : "-%c%s", is_letter ? o->letter : '-', o->name);
    return error_set(error, ERROR_USAGE, "%s takes no value%s%s, but \"%s\" was given%s", typed,
                     o->keyword != NULL ? " but " : "", o->keyword != NULL ? o->keyword : "", value, text);
}

/* ---- Operands ---- */

/* Report that operands are parts of the name of a file, which has blanks and no quotes. Returns false if so. A long
 * list was not typed, and is not looked at. */
static bool check_blanks(int count, char *const *operands, struct error *error)
{
    enum { TYPED_MAX = 32 };
    for (int i = 1; i < count && count <= TYPED_MAX; i++) {
        char name[1024];
        if (access(operands[i], F_OK) == 0)
            continue;
        int length = snprintf(name, sizeof name, "%s", operands[i]);
        for (int j = i + 1; j < count && length < (int)sizeof name; j++) {
            length += snprintf(name + length, sizeof name - (size_t)length, " %s", operands[j]);
            if (length < (int)sizeof name && access(name, F_OK) == 0)
                return error_set(error, ERROR_USAGE, "%s is no file; quote a name with blanks: '%s'", operands[i],
                                 name);
        }
    }
    return true;
}

/* Is OPERAND a number, and no file, right after an option without a value? Sets *FLAG to that. */
static bool is_value(int argc, char *const argv[], const char *operand, const char **flag)
{
    for (int i = 2; i < argc; i++)
        if (argv[i] == operand && argv[i - 1][0] == '-' && is_number(operand) && access(operand, F_OK) != 0)
            *flag = argv[i - 1];
    return *flag != NULL;
}

bool suggest_operands(int argc, char *const argv[], int count, const struct options *options, struct error *error)
{
    char *const *operands = options->operands;
    const char *first = operands[0], *second = count > 1 ? operands[1] : "", *flag = NULL;
    const bool is_image = format_find_by_path(first) != NULL, is_filter = filter_is_named(first);
    for (int i = is_filter; i < 2 && i < count; i++)
        if (is_value(argc, argv, operands[i], &flag)) {
            const bool is_letter = flag[1] != '-';
            const struct option *o =
                is_letter ? option_of_letter(flag[strlen(flag) - 1]) : option_find(flag + 2, strlen(flag + 2));
            if (o != NULL && o->argument == NULL)
                return suggest_no_value(o, is_letter, operands[i], error);
        }
    if (is_filter && is_number(second) && access(second, F_OK) != 0)
        return error_set(error, ERROR_USAGE,
                         "\"%s\" is no image; the parameters of a filter follow a colon, as in %s:%s", second, first,
                         second);
    /* A word alone may ask what its parameters are. */
    if ((is_filter && count == 1) || (!is_image && access(first, F_OK) != 0 && words_find('=', first) != NULL)) {
        struct filter *filters = NULL;
        size_t filter_count;
        const bool done = filter_find_all(first, filter_find, &filters, &filter_count, error);
        free(filters);
        return done;
    }
    if (is_filter)
        return check_blanks(count, operands, error);
    const struct option *o = option_find(first, strlen(first));
    if (o != NULL && access(first, F_OK) != 0)
        return error_set(error, ERROR_USAGE, "there is no filter named \"%s\"; did you mean --%s?", first, o->name);
    if (count == 3 && format_find_by_path(second) == NULL && (is_image || filter_is_named(second)))
        return error_set(error, ERROR_USAGE, "FILTER comes first, and %s is %s: gpuconv %s %s %s", first,
                         is_image ? "an image" : "no filter", second, first, operands[2]);
    if (count == 2 && is_image && format_find_by_path(second) != NULL && options->list.output == NULL &&
        options->filter == NULL)
        return error_set(error, ERROR_USAGE,
                         "FILTER comes first, and %s is an image; to convert only: gpuconv identity %s %s", first,
                         first, second);
    return !is_image || error_set(error, ERROR_USAGE, "FILTER comes first, and %s is an image; " USAGE, first);
}
