/* SPDX-License-Identifier: MIT
 *
 * The report: the result of each job, as one JSON object a line, appended to a file. Bytes of names that are not UTF-8
 * become lone surrogates, DC80 to DCFF, as in Python's surrogateescape, which os.fsencode turns back. */
#ifndef GPUCONV_REPORT_H
#define GPUCONV_REPORT_H

#include "base/error.h"
#include "batch/job.h"

#include <stdbool.h>
#include <sys/types.h>

struct report {
    const char *path; /* "-" is standard output; NULL: there is no report */
    int descriptor;   /* -1: it is not open */
    dev_t device;
    ino_t inode; /* of the open file; 0: it is no regular file */
    bool failed; /* a line is missing from it */
};

/* Open the file at PATH to append lines. PATH NULL: there is no report, and the functions below do nothing. */
bool report_open(struct report *report, const char *path, struct error *error);

/* Append a job's line. Only the first failure returns false: after it no line is written. */
bool report_append(struct report *report, const struct job_result *result, struct error *error);

/* Close the file. Returns false if that fails, which means that lines are missing; but not after an earlier failure. */
bool report_close(struct report *report, struct error *error);

#endif
