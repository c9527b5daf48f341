/* SPDX-License-Identifier: MIT
 *
 * Rows as text for people, as lines of JSON, and as JUnit's XML. */
#ifndef GPUCONV_DESCRIBE_H
#define GPUCONV_DESCRIBE_H

#include "base/error.h"
#include "compare/rows.h"

#include <stdbool.h>
#include <stdio.h>

/* Print what the comparison found, without the name: "equal", or "2 of 8 pixels (25%) differ, first at ...". It contains
 * all numbers that decided. No line end follows. PRINT is text_print_escaped or text_print_xml. */
void row_describe(FILE *file, const struct compare_row *row, const struct compare_rules *rules,
                  void (*print)(FILE *file, const char *text));

/* Print a row as one line of JSON. Names are encoded as in batch/report.h. */
void row_print_json(FILE *file, const struct compare_row *row, const struct compare_rules *rules);

/* Is the row a reason for the exit status 1? New files are one if NEW_FAILS. */
bool row_fails(const struct compare_row *row, bool new_fails);

/* Write all rows to the file at PATH, as JUnit's XML: a test case each. */
bool rows_write_junit(const char *path, const struct compare_rows *rows, const struct compare_rules *rules,
                      bool new_fails, struct error *error);

#endif
