/* SPDX-License-Identifier: MIT
 *
 * A line of --jobs-from: a JSON object becomes the files of a job and the options that it gives. Which options there
 * are is not known here. */
#ifndef GPUCONV_JOB_LINE_H
#define GPUCONV_JOB_LINE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* The files of a job. */
enum job_file { JOB_INPUT, JOB_OUTPUT, JOB_EXPECTED, JOB_ACTUAL, JOB_DIFF, JOB_FILES };

struct job_line {
    char *id;               /* its text in the line, or NULL if there is none or the line is no object of JSON */
    char *files[JOB_FILES]; /* NULL for a file that is not given */

    /* The options, one after another in the order of the line: the name and a NUL, then one of '=', '+' and '-' and the
     * value, which is empty without '=', and a NUL. '-' removes an option of the command line. */
    char *options;
    size_t size; /* bytes of these */

    size_t outputs; /* the number of objects in its "outputs"; 1 if it has none */
};

/* "input", "output", "expected", "actual" or "diff". */
const char *job_file_name(enum job_file file);

/* Parse SIZE bytes of TEXT, after which there is a NUL, as if output NUMBER, from 0, were the only one. Names have
 * bytes that are not UTF-8 as a report has them. Release LINE with job_line_free, also after a failure, which may know
 * the id and the number of outputs. Errors are usage errors, or a lack of memory. */
bool job_line_parse(const char *text, size_t size, size_t number, struct job_line *line, struct error *error);

/* Release everything. */
void job_line_free(struct job_line *line);

#endif
