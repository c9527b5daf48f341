/* SPDX-License-Identifier: MIT
 *
 * What a batch tells, for people and for machines: the line of progress, the summary, and the report of one JSON object
 * a line. */
#ifndef GPUCONV_BATCH_PRINT_H
#define GPUCONV_BATCH_PRINT_H

#include "base/error.h"
#include "batch/batch.h"

#include <stdbool.h>
#include <stddef.h>

/* How far it is, in at most SIZE - 1 characters of one line: a bar where there is room for it, files, speed and the
 * time that is left. */
void batch_print_progress(const struct batch_totals *totals, char *line, size_t size);

/* What was done, in one line. */
void batch_print_summary(const struct batch_totals *totals, char *line, size_t size);

/* Write a result as one line of JSON to the descriptor, by one call, so that lines that several programs append to one
 * file stay whole. Bytes of names that are not UTF-8 become lone surrogates, DC80 to DCFF, as in Python's
 * surrogateescape, which os.fsencode turns back. */
bool batch_report(int descriptor, const char *name, const struct result *result, struct error *error);

#endif
