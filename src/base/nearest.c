/* SPDX-License-Identifier: MIT
 *
 * The names that a mistyped word probably means. */
#include "base/error.h"
#include "base/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Names are short, so a longer word is no mistyped name. The limit also bounds the rows of distances. */
#define LONGEST_WORD 64

static bool same_letter(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

/* The optimal string alignment distance of two words of at most LONGEST_WORD letters. Row i of the table holds the
 * distances of the first i letters of A to every prefix of B. A swap looks two rows back, so three rows are enough. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][LONGEST_WORD + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;

    for (size_t i = 1; i <= a_length; i++) {
        size_t *row = rows[i % 3];
        const size_t *above = rows[(i - 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            const size_t replaced = above[j - 1] + !same_letter(a[i - 1], b[j - 1]);
            const size_t added = (above[j] < row[j - 1] ? above[j] : row[j - 1]) + 1;
            row[j] = replaced < added ? replaced : added;
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                row[j] = row[j] <= rows[(i - 2) % 3][j - 2] ? row[j] : rows[(i - 2) % 3][j - 2] + 1;
        }
    }
    return rows[a_length % 3][b_length];
}

/* How far NAME is from WORD, or SIZE_MAX if that is too far for a mistyped name. */
static size_t distance_of_name(const char *word, const char *name)
{
    const size_t length = strlen(word), name_length = strlen(name);
    if (length > LONGEST_WORD || name_length > LONGEST_WORD)
        return SIZE_MAX;
    const size_t changes = distance(word, length, name, name_length);
    const bool is_part =
        (length >= 3 && strcasestr(name, word) != NULL) || (name_length >= 3 && strcasestr(word, name) != NULL);
    if (changes > 1 && is_part)
        return 2;
    /* With every letter replaced, nothing of the word is left. */
    return changes <= (length < 6 ? 1 : length / 3) && changes < (length > name_length ? length : name_length)
               ? changes
               : SIZE_MAX;
}

size_t error_nearest(const char *word, const char *const *names, size_t count, const char **nearest, size_t max)
{
    size_t best = SIZE_MAX - 1, found = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t changes = distance_of_name(word, names[i]);
        if (changes < best)
            found = 0;
        if (changes <= best && found < max) {
            best = changes;
            nearest[found++] = names[i];
        }
    }
    return found;
}

bool error_unknown(struct error *error, const char *kind, const char *name, const char *const *nearest, size_t count,
                   const char *list)
{
    char text[1024] = "", quoted[320]; /* a name may be a chain of filters */
    for (size_t i = 0; i < count; i++) {
        snprintf(quoted, sizeof quoted, "\"%s\"", nearest[i]);
        text_add_word(text, sizeof text, quoted, i + 1 == count ? " or " : NULL);
    }
    if (count > 0)
        return error_set(error, ERROR_USAGE, "there is no %s named \"%s\"; did you mean %s? (gpuconv %s shows all)",
                         kind, name, text, list);
    return error_set(error, ERROR_USAGE, "there is no %s named \"%s\"; gpuconv %s shows all", kind, name, list);
}
