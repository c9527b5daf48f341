/* SPDX-License-Identifier: MIT */
#include "app/option_table.h"
#include "base/text.h"
#include "codec/format.h"
#include "filter/filter.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Options ---- */

bool suggest_option(const char *argument, struct error *error)
{
    char typed[128], filter[64];
    const char *names[OPTIONS_MAX], *nearest;
    snprintf(typed, sizeof typed, "%.*s", (int)strcspn(argument, "="), argument);
    const char *word = typed + strspn(typed, "-"), *meant = words_find(word);
    const bool has_dash = word > typed;
    const char *what = has_dash ? "unknown option" : "no filter, option or topic is named";
    if (format_find_by_path(argument) != NULL || access(argument, F_OK) == 0)
        return error_set(error, ERROR_USAGE, "%s %s; if it is a file, write ./%s", what, argument, argument);
    for (size_t i = 0; i < option_count; i++)
        names[i] = option_table[i].name;
    const bool is_filter = meant == NULL && filter_is_named(word);
    if (meant != NULL && meant[0] == '!')
        return error_set(error, ERROR_USAGE, "%s %s; %s", what, typed, meant + 1);
    if (meant != NULL && meant[0] == '-')
        return error_set(error, ERROR_USAGE, "%s %s; did you mean %s?", what, typed, meant);
    if (meant == NULL && !is_filter && error_nearest(word, names, option_count, &nearest, 1) > 0)
        return error_set(error, ERROR_USAGE, "%s %s; did you mean --%s?", what, typed, nearest);
    if (meant == NULL && !is_filter && !filter_nearest(word, filter, sizeof filter))
        return error_set(error, ERROR_USAGE, "%s %s; gpuconv %s", what, typed,
                         has_dash ? "--help all lists them" : "--list and gpuconv --help all list them");
    return error_set(error, ERROR_USAGE, "%s %s; did you mean the filter %s%s?", what, typed,
                     meant != NULL ? meant
                     : is_filter   ? word
                                   : filter,
                     has_dash ? ", which has no dash" : "");
}

/* ---- Values ---- */

bool suggest_is_number(const char *text)
{
    return isdigit((unsigned char)*text) && text[strspn(text, "0123456789.%")] == '\0';
}

bool suggest_word(const struct option *o, const char *value, struct error *error)
{
    const char *names[16], *nearest; /* no option has as many words */
    size_t count = 0;
    char text[256], asked[64];
    while (count < sizeof names / sizeof *names && o->word((int)count) != NULL) {
        names[count] = o->word((int)count);
        count++;
    }
    snprintf(asked, sizeof asked, "%s %s", o->name, value);
    nearest = words_find(asked);
    if (nearest == NULL && !suggest_is_number(value)) /* a number is not a mistyped word */
        error_nearest(value, names, count, &nearest, 1);
    option_join_words(o, text, sizeof text);
    return error_set(error, ERROR_USAGE, "--%s takes %s, not \"%s\"%s%s%s", o->name, text, value,
                     nearest != NULL ? "; did you mean " : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "?" : "");
}

bool suggest_no_value(const struct option *o, bool is_letter, const char *value, struct error *error)
{
    char text[128] = "", typed[64];
    for (const struct option *other = option_table; other < option_table + option_count; other++)
        if (suggest_is_number(value) && other->kind == KIND_NUMBER && other->name[0] == o->name[0])
            snprintf(text, sizeof text, "; did you mean --%s %.16s?", other->name, value);
    snprintf(typed, sizeof typed, is_letter ? "-%c is --%s and" : "-%c%s", is_letter ? o->letter : '-', o->name);
    return error_set(error, ERROR_USAGE, "%s takes no value%s%s, but \"%s\" was given%s", typed,
                     o->keyword != NULL ? " but " : "", o->keyword != NULL ? o->keyword : "", value, text);
}

bool suggest_operands(int count, const struct options *options, struct error *error)
{
    char *const *operands = options->operands;
    const char *first = operands[0], *second = count > 1 ? operands[1] : "";
    char head[4096]; /* the first filter, without its region and those after it */
    snprintf(head, sizeof head, "%.*s", (int)strcspn(first, ",@"), first);
    const bool is_there = access(first, F_OK) == 0, is_filter = filter_is_named(first);
    const bool is_image = format_find_by_path(first) != NULL &&
                          (is_there || access(head, F_OK) != 0 || format_find_by_path(head) != NULL);
    const struct option *o = option_find(first, strlen(first));
    if (is_filter && suggest_is_number(second) && access(second, F_OK) != 0)
        return error_set(error, ERROR_USAGE,
                         "\"%s\" is not an image; give the parameters of a filter after a colon, as in %s:%s", second,
                         first, second);
    /* A word alone may ask what its parameters are. */
    if ((is_filter && count == 1) || (!is_image && !is_there && words_find(first) != NULL)) {
        struct filter *filters = NULL;
        size_t filter_count;
        const bool done = filter_find_all(first, filter_find, &filters, &filter_count, error);
        free(filters);
        return done;
    }
    if (!is_filter && !is_there && o != NULL)
        return error_set(error, ERROR_USAGE, "there is no filter named \"%s\"; did you mean --%s?", first, o->name);
    for (int i = 1; is_filter && i + 1 < count && count <= 32; i++) { /* nobody types longer lists */
        char name[1024];
        snprintf(name, sizeof name, "%s %s", operands[i], operands[i + 1]);
        if (access(operands[i], F_OK) != 0 && access(name, F_OK) == 0)
            return error_set(error, ERROR_USAGE, "%s is not a file; quote a name with spaces: '%s'", operands[i], name);
    }
    if (!is_filter && count == 3 && filter_is_named(second))
        return error_set(error, ERROR_USAGE, "FILTER comes first, and %s is %s: gpuconv %s %s %s", first,
                         is_image ? "an image" : "not a filter", second, first, operands[2]);
    if (is_image && !is_filter && count == 2 && options->list.output == NULL && options->filter == NULL)
        return error_set(error, ERROR_USAGE,
                         "FILTER comes first, and %s is an image; to convert only: gpuconv identity %s %s", first,
                         first, second);
    return is_filter || !is_image ||
           error_set(error, ERROR_USAGE, "FILTER comes first, and %s is an image; " USAGE, first);
}
