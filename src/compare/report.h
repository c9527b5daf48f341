/* SPDX-License-Identifier: MIT
 *
 * The reports of a comparison: text for people, lines of JSON, JUnit's XML, Markdown, and a page of HTML. */
#ifndef GPUCONV_COMPARE_REPORT_H
#define GPUCONV_COMPARE_REPORT_H

#include "base/error.h"
#include "compare/rows.h"

#include <stdbool.h>
#include <stdio.h>

/* Print the result of a row, without its name: "equal", or "2 of 8 pixels (25%) differ, first at ...". It contains all
 * numbers that decided the result. No line end follows. PRINT is text_print_escaped or text_print_xml. */
void row_describe(FILE *file, const struct compare_row *row, const struct compare_rules *rules,
                  void (*print)(FILE *file, const char *text));

/* Print the limits of the PSNR and the SSIM, a sentence each. A blank comes before each sentence. */
void rules_print_limits(FILE *file, const struct compare_rules *rules);

/* Print a row as one line of JSON. Names are encoded as in batch/report.h. */
void row_print_json(FILE *file, const struct compare_row *row, const struct compare_rules *rules);

/* Is the row a reason for the exit status 1? New files are one if NEW_FAILS. */
bool row_fails(const struct compare_row *row, bool new_fails);

/* The exit status for the row. */
int row_status(const struct compare_row *row, bool new_fails);

/* The number of pairs that a person should look at: all that are neither equal nor tolerated. */
size_t rows_count_looks(const struct compare_rows *rows);

/* Print the number of these pairs as a title: "9 of 11 need a look". */
void rows_print_verdict(FILE *file, const struct compare_rows *rows);

/* Print the number of rows of each kind: "11 pairs: 2 equal, 9 different". No line end follows. */
void rows_print_counts(FILE *file, const struct compare_rows *rows);

/* The contents of a report in a file. */
struct report_request {
    const char *expected, *actual; /* as the user named them */
    const struct compare_rows *rows;
    const struct compare_rules *rules;
    bool new_fails;
};

/* Print a report, which becomes the file at PATH. If it fails and sets no error, there was not enough memory. */
typedef bool report_print(FILE *file, const char *path, const struct report_request *request, struct error *error);

/* JUnit's XML, one test case per row. */
report_print junit_print;

/* Markdown: the verdict, the counts, and the first rows to look at. */
report_print markdown_print;

/* A page of HTML, which browsers open from disk: all rows that are not equal, with their thumbnails and pictures.
 * Pictures of more than PAGE_EMBEDDED_MAX bytes together are copied to a folder beside the page, whose old pictures are
 * removed. */
report_print page_print;

/* The lines of page.html, which embed_page.py writes as C. NULL follows the last line. */
extern const char *const page_template[];

/* Write what PRINT prints to the file at PATH. */
bool rows_write(const char *path, report_print *print, const struct report_request *request, struct error *error);

#endif
