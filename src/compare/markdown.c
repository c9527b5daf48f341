/* SPDX-License-Identifier: MIT
 *
 * Rows as Markdown, for a comment on a pull request: GitHub's dialect, which GitLab reads, too. */
#include "compare/report.h"

#include "base/file.h"
#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* GitHub takes comments of 65,536 characters. */
enum { ROWS_MAX = 50, BYTES_MAX = 60000 };

/* Print TEXT so that it is no markup and no cell's end. Entities are never markup. Names also need <code>, where @name
 * mentions nobody. */
static void print_plain(FILE *file, const char *text)
{
    struct text_buffer escaped;
    FILE *printed = text_open(&escaped);
    if (printed != NULL)
        text_print_escaped(printed, text);
    if (printed == NULL || !text_close(printed, &escaped))
        return;
    for (const char *at = escaped.bytes; *at != '\0'; at++)
        if (isalnum((unsigned char)*at) || strchr(" ./-", *at) != NULL || !isascii(*at))
            fputc(*at, file);
        else
            fprintf(file, "&#%d;", *at);
    free(escaped.bytes);
}

/* Print the line of a row. Returns false if it does not fit. */
static bool print_row(FILE *file, size_t *left, const struct compare_row *row, const struct compare_rules *rules)
{
    struct text_buffer text;
    FILE *line = text_open(&text);
    if (line == NULL)
        return false;
    fprintf(line, "| %s | <code>", row_kind_name(row->kind));
    print_plain(line, row->name);
    const bool has_names = row->kind >= ROW_UNREADABLE;
    fprintf(line, "</code> | %s", has_names ? "<code>" : "");
    row_describe(line, row, rules, print_plain);
    fprintf(line, "%s |\n", has_names ? "</code>" : "");
    if (!text_close(line, &text))
        return false;
    const bool fits = text.size <= *left;
    if (fits)
        fputs(text.bytes, file);
    *left -= fits ? text.size : 0;
    free(text.bytes);
    return fits;
}

static void print_rows(FILE *file, const struct compare_rows *rows, const struct compare_rules *rules)
{
    const size_t looks = rows_count_looks(rows);
    size_t printed = 0, left = BYTES_MAX;
    bool fits = true;
    if (looks > 0)
        fputs("\n| result | image | difference |\n| --- | --- | --- |\n", file);
    for (size_t i = 0; fits && printed < ROWS_MAX && i < rows->count; i++)
        if (rows->rows[i].kind > ROW_TOLERATED) {
            fits = print_row(file, &left, &rows->rows[i], rules);
            printed += fits;
        }
    if (printed < looks)
        fprintf(file, "\n%zu more %s not listed.\n", looks - printed, looks - printed == 1 ? "is" : "are");
}

bool rows_write_markdown(const char *path, const struct compare_rows *rows, const struct compare_rules *rules,
                         struct error *error)
{
    struct text_buffer text;
    FILE *file = text_open(&text);
    if (file != NULL) {
        fputs("### Images: ", file);
        rows_print_verdict(file, rows);
        fputs("\n\n", file);
        rows_print_counts(file, rows);
        fputc('\n', file);
        print_rows(file, rows, rules);
    }
    const bool done = file != NULL && text_close(file, &text)
                          ? file_write(path, (const uint8_t *)text.bytes, text.size, NULL, error)
                          : error_no_memory(error, "the file of --markdown");
    free(text.bytes);
    return done;
}
