/* SPDX-License-Identifier: MIT
 *
 * Rows as JUnit's XML. The format has no standard: this is what Jenkins and GitLab read. */
#include "compare/report.h"

#include "base/file.h"
#include "base/text.h"

#include <string.h>

/* Print the folder of NAME as a class of Java: gpuconv.menu for menu/open.png. CI servers group by it. */
static void print_class(FILE *file, const char *name)
{
    char part[4097];
    fputs("gpuconv", file);
    for (const char *end; (end = strchr(name, '/')) != NULL; name = end + 1) {
        snprintf(part, sizeof part, "%.*s", (int)(end - name), name);
        if (part[strspn(part, ".")] == '\0')
            continue; /* "", "." and ".." */
        fputc('.', file);
        text_print_xml(file, part);
    }
}

/* Print the line by which Jenkins and GitLab find the file at PATH, which may be NULL. GitLab shows only the first one
 * of a case. */
static void print_attachment(FILE *file, const char *path)
{
    struct stat status;
    if (path == NULL || file_is_standard(path) || !file_find_input(path, &status) || strpbrk(path, "[]|\n") != NULL)
        return;
    fputs("[[ATTACHMENT|", file);
    text_print_xml(file, path);
    fputs("]]\n", file);
}

static void print_case(FILE *file, const struct compare_row *row, const struct compare_rules *rules, bool new_fails)
{
    const bool fails = row_fails(row, new_fails);
    const char *element = row->kind >= ROW_UNREADABLE ? "error"
                          : fails                     ? "failure"
                          : row->kind == ROW_NEW      ? "skipped"
                                                      : NULL;
    fputs("  <testcase classname=\"", file);
    print_class(file, row->name);
    fputs("\" name=\"", file);
    text_print_xml(file, row->name);
    fprintf(file, "\" time=\"%.3f\"", row->seconds);
    if (row->kind == ROW_EQUAL) {
        fputs("/>\n", file);
        return;
    }
    fputs(">\n", file);
    if (element != NULL) {
        fprintf(file, "    <%s", element);
        if (fails)
            fprintf(file, " type=\"%s\"", row_kind_name(row->kind));
        fputs(" message=\"", file);
        row_describe(file, row, rules, text_print_xml);
        fputs("\">", file);
        row_describe(file, row, rules, text_print_xml);
        fprintf(file, "</%s>\n", element);
    }
    fputs("    <system-out>", file);
    if (element == NULL)
        row_describe(file, row, rules, text_print_xml);
    fputc('\n', file);
    print_attachment(file, row->picture);
    print_attachment(file, row->actual.path);
    print_attachment(file, row->expected.path);
    fputs("    </system-out>\n  </testcase>\n", file);
}

bool junit_print(FILE *file, const char *path, const struct report_request *request, struct error *error)
{
    const struct compare_rows *rows = request->rows;
    size_t failures = 0, errors = 0;
    double seconds = 0;
    (void)path, (void)error;
    for (size_t i = 0; i < rows->count; i++) {
        const struct compare_row *row = &rows->rows[i];
        errors += row->kind >= ROW_UNREADABLE;
        failures += row->kind < ROW_UNREADABLE && row_fails(row, request->new_fails);
        seconds += row->seconds;
    }
    fprintf(file,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"gpuconv --compare\" tests=\"%zu\" "
            "failures=\"%zu\" errors=\"%zu\" skipped=\"%zu\" time=\"%.3f\">\n",
            rows->count, failures, errors, request->new_fails ? 0 : rows->counts[ROW_NEW], seconds);
    for (size_t i = 0; i < rows->count; i++)
        print_case(file, &rows->rows[i], request->rules, request->new_fails);
    fputs("</testsuite>\n", file);
    return true;
}
