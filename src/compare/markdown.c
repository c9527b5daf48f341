/* SPDX-License-Identifier: MIT
 *
 * Rows as Markdown, for a comment on a pull request: GitHub's dialect, which GitLab reads, too. */
#include "compare/report.h"

#include "base/text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* GitHub takes comments of 65,536 characters. */
enum { ROWS_MAX = 50, BYTES_MAX = 60000 };

/* Print TEXT, escaped as for people, so that it is no markup and no cell's end. Entities are never markup. Names also
 * need <code>, where @name mentions nobody. Returns the bytes. FILE may be NULL. */
static size_t print_plain(FILE *file, const char *text)
{
    size_t size = 0;
    for (; *text != '\0'; text++) {
        char entity[8] = {*text};
        if (!isalnum((unsigned char)*text) && strchr(" ./-", *text) == NULL && isascii(*text))
            snprintf(entity, sizeof entity, "&#%d;", *text);
        size += strlen(entity);
        if (file != NULL)
            fputs(entity, file);
    }
    return size;
}

/* Print the line of a row, if it has at most *LEFT bytes. *LOST becomes true if there is not enough memory. */
static bool print_table_row(FILE *file, size_t *left, const struct compare_row *row, const struct compare_rules *rules,
                            bool *lost)
{
    struct text_buffer text; /* the name, a line end, and the words */
    FILE *cells = text_open(&text);
    if (cells != NULL) {
        text_print_escaped(cells, row->name);
        fputc('\n', cells);
        row_describe(cells, row, rules, text_print_escaped);
    }
    if (cells == NULL || !text_close(cells, &text))
        return !(*lost = true);
    char *words = strchr(text.bytes, '\n');
    *words++ = '\0';
    const size_t size = print_plain(NULL, text.bytes) + print_plain(NULL, words) + 64; /* and the rest of the line */
    const bool fits = size <= *left, has_names = row->kind >= ROW_UNREADABLE;
    if (fits) {
        fprintf(file, "| %s | <code>", row_kind_name(row->kind));
        print_plain(file, text.bytes);
        fprintf(file, "</code> | %s", has_names ? "<code>" : "");
        print_plain(file, words);
        fprintf(file, "%s |\n", has_names ? "</code>" : "");
        *left -= size;
    }
    free(text.bytes);
    return fits;
}

static void print_table(FILE *file, const struct compare_rows *rows, const struct compare_rules *rules, bool *lost)
{
    const size_t count = rows_count_looks(rows) + rows->counts[ROW_TOLERATED];
    size_t printed = 0, left = BYTES_MAX;
    bool fits = true;
    if (count > 0)
        fputs("\n| result | image | difference |\n| --- | --- | --- |\n", file);
    for (int tolerated = 0; tolerated < 2; tolerated++) /* these come last */
        for (size_t i = 0; fits && printed < ROWS_MAX && i < rows->count; i++)
            if (tolerated ? rows->rows[i].kind == ROW_TOLERATED : rows->rows[i].kind > ROW_TOLERATED) {
                fits = print_table_row(file, &left, &rows->rows[i], rules, lost);
                printed += fits;
            }
    if (printed < count)
        fprintf(file, "\n%zu more %s not listed.\n", count - printed, count - printed == 1 ? "is" : "are");
}

bool markdown_print(FILE *file, const char *path, const struct report_request *request, struct error *error)
{
    bool lost = false;
    (void)path, (void)error;
    fputs("### Images: ", file);
    rows_print_verdict(file, request->rows);
    fputs("\n\n", file);
    rows_print_counts(file, request->rows);
    fputc('\n', file);
    print_table(file, request->rows, request->rules, &lost);
    return !lost;
}
