/* SPDX-License-Identifier: MIT */
#include "base/error.h"

#include "base/text.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Names are short, so a longer word is no mistyped name. The limit also bounds the rows of distances. */
#define LONGEST_WORD 64

#undef error_about /* error.h makes macros of these for static analysers */
#undef error_no_memory

/* The texts are formatted aside, because an argument may be a part of *ERROR. Only the texts are copied: the struct is
 * large, and errors that carry a reason for --verbose are set in every run. */
bool error_about(struct error *error, enum error_code code, const char *subject, const char *format, ...)
{
    va_list arguments;
    if (error == NULL)
        return false;
    char new_subject[sizeof error->subject], message[sizeof error->message];
    va_start(arguments, format);
    if (vsnprintf(message, sizeof message, format, arguments) < 0)
        message[0] = '\0';
    va_end(arguments);
    snprintf(new_subject, sizeof new_subject, "%s", subject);
    error->code = code;
    error->no_new_files = false;
    memcpy(error->subject, new_subject, strlen(new_subject) + 1);
    memcpy(error->message, message, strlen(message) + 1);
    return false;
}

bool error_no_memory(struct error *error, const char *what, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, what);
    if (vsnprintf(text, sizeof text, what, arguments) < 0)
        text[0] = '\0';
    va_end(arguments);
    return error_set(error, ERROR_MEMORY, "there is not enough memory for %s; close other programs", text);
}

bool error_may_retry(enum error_code code)
{
    return code == ERROR_READ || code == ERROR_WRITE || code == ERROR_MEMORY || code == ERROR_GPU ||
           code == ERROR_INTERRUPTED;
}

int error_status(enum error_code code)
{
    return code == ERROR_NONE ? 0 : code == ERROR_USAGE ? 2 : error_may_retry(code) ? STATUS_RETRY : STATUS_FAILED;
}

int error_join_status(int a, int b)
{
    return a > b ? a : b;
}

enum error_code error_of_errno(int reason, enum error_code lasting, enum error_code passing)
{
    static const int reasons[] = {ENOENT, EACCES, EPERM, EROFS,  ENOTDIR,    EISDIR, ELOOP,     ENAMETOOLONG, EINVAL,
                                  EEXIST, EXDEV,  ENXIO, ENODEV, EOPNOTSUPP, EFBIG,  EOVERFLOW, EBADF};
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i] == reason)
            return lasting;
    return passing;
}

void error_add_subject(struct error *error, const char *subject)
{
    if (error != NULL && error->subject[0] == '\0')
        snprintf(error->subject, sizeof error->subject, "%s", subject);
}

void error_text(const struct error *error, char *text, size_t size)
{
    snprintf(text, size, "%s%s%s", error->subject, error->subject[0] == '\0' ? "" : ": ", error->message);
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

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
            row[j] = smaller(replaced, smaller(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1]))
                row[j] = smaller(row[j], rows[(i - 2) % 3][j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

/* Is PART, of at least three letters, a part of WHOLE? */
static bool is_part(const char *part, const char *whole)
{
    return strlen(part) >= 3 && strcasestr(whole, part) != NULL;
}

/* How far NAME is from WORD, or SIZE_MAX if that is too far for a mistyped name. */
static size_t distance_of_name(const char *word, const char *name)
{
    const size_t length = strlen(word), name_length = strlen(name);
    if (length > LONGEST_WORD || name_length > LONGEST_WORD)
        return SIZE_MAX;
    const size_t far = distance(word, length, name, name_length);
    if (far > 1 && (is_part(word, name) || is_part(name, word)))
        return 2;
    /* With every letter replaced, nothing of the word is left. */
    return far <= (length + 2) / 3 && far < (length > name_length ? length : name_length) ? far : SIZE_MAX;
}

size_t error_nearest(const char *word, const char *const *names, size_t count, const char **nearest, size_t max)
{
    size_t best = SIZE_MAX - 1, found = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t far = distance_of_name(word, names[i]);
        if (far < best)
            found = 0;
        if (far <= best && found < max) {
            best = far;
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
