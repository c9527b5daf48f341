/* SPDX-License-Identifier: MIT */
#include "batch/digest_list.h"

#include "base/file.h"
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

bool digest_print_line(FILE *file, const char *digest, const char *path)
{
    struct text_buffer text;
    char *doubled = malloc(2 * strlen(path) + 1), *end = doubled;
    FILE *escaped = doubled != NULL ? text_open(&text) : NULL;
    for (const char *at = path; doubled != NULL && (*end = *at) != '\0'; at++)
        if (*end++ == '\\')
            *end++ = '\\';
    if (escaped != NULL)
        text_print_escaped(escaped, doubled);
    free(doubled);
    if (escaped == NULL || !text_close(escaped, &text))
        return false;
    fprintf(file, "%s%s%s%s", strcmp(text.bytes, path) != 0 ? "\\" : "", digest, digest[0] != '\0' ? "  " : "",
            text.bytes);
    free(text.bytes);
    return true;
}

/* Undo the escapes in TEXT, in place: a backslash twice, or before n, r, t or two hexadecimal digits after x. Returns
 * false for others. */
static bool unescape(char *text)
{
    static const char letters[] = "nrt\\", meant[] = "\n\r\t\\";
    char *end = text;
    for (const char *at = text; *at != '\0'; at++) {
        const char *letter = *at == '\\' && at[1] != '\0' ? strchr(letters, at[1]) : NULL;
        if (*at != '\\') {
            *end++ = *at;
        } else if (letter != NULL) {
            *end++ = meant[letter - letters];
            at++;
        } else if (at[1] == 'x' && isxdigit((unsigned char)at[2]) && isxdigit((unsigned char)at[3]) &&
                   strncmp(at + 2, "00", 2) != 0) {
            const char digits[] = {at[2], at[3], '\0'};
            *end++ = (char)strtol(digits, NULL, 16);
            at += 3;
        } else {
            return false;
        }
    }
    *end = '\0';
    return text[0] != '\0';
}

/* The lines of a list of digests. */
struct digest_lines {
    struct file_list *list;
    const char *from;
    size_t count;
};

/* Add the file of a line. */
static bool add_digest(void *context, const char *line, struct error *error)
{
    enum { DIGITS = SHA256_DIGEST_STRING_LENGTH - 1 };
    struct digest_lines *lines = context;
    const bool is_escaped = line[0] == '\\';
    const char *digits = line + is_escaped, *blanks = digits + strspn(digits, "0123456789abcdefABCDEF");
    const bool is_whole = blanks - digits == DIGITS && blanks[0] == ' ' && (blanks[1] == ' ' || blanks[1] == '*');
    char *path = is_whole ? strdup(blanks + 2) : NULL;
    lines->count++;
    if (is_whole && path == NULL)
        return error_no_memory(error, "the list of files");
    if (path == NULL || path[0] == '\0' || (is_escaped && !unescape(path))) {
        free(path);
        return error_about(error, ERROR_WORK, file_input_name(lines->from),
                           "line %zu is not a digest, two spaces and a name; make the list with gpuconv --digest",
                           lines->count);
    }
    const bool done = file_list_add(lines->list, path, error);
    free(path);
    if (!done)
        return false;
    char **digest = &lines->list->jobs[lines->list->count - 1].digest;
    *digest = strndup(digits, DIGITS);
    return *digest != NULL || error_no_memory(error, "the list of files");
}

bool digest_list_make(const char *from, struct file_list *list, struct error *error)
{
    struct digest_lines lines = {.list = list, .from = from};
    *list = (struct file_list){0};
    return file_list_read_names(from, false, add_digest, &lines, error) &&
           (list->count > 0 ||
            error_about(error, ERROR_WORK, file_input_name(from), "has no line; make the list with gpuconv --digest"));
}
