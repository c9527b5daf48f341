/* SPDX-License-Identifier: MIT
 *
 * The report: the result of each job, as one JSON object per line, appended to a file. Bytes of names that are not
 * UTF-8 become lone surrogates, DC80 to DCFF, as in Python's surrogateescape, which os.fsencode turns back. */
#ifndef GPUCONV_REPORT_H
#define GPUCONV_REPORT_H

#include "base/error.h"
#include "base/text.h"
#include "batch/job.h"
#include "batch/journal.h"
#include "batch/shard.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* The members that all lines of a run share. */
struct report_run {
    const char *filter, *options; /* as given; the options that can change a picture */
    const char *recipe;           /* in place, as in batch/journal.h; else NULL */
    struct shard shard;
    uint64_t listing; /* the `listing` of struct file_list; `files` is its `listed` */
    size_t files;     /* 0 if not known; then the line has neither shard, listing nor files */
};

struct report {
    struct report_run run;
    struct journal journal; /* in place: what earlier runs have done */
    char host[65];          /* the machine's name */
    const char *path;       /* "-" is standard output; NULL if there is no report */
    int descriptor;         /* -1 if it is not open */
    dev_t device;
    ino_t inode;        /* the inode of the open file; 0 if that is no regular file */
    atomic_bool failed; /* a line is missing from it */
};

/* Open the file at PATH to append lines about RUN. In place, first read its lines as a journal. If PATH is NULL, there
 * is no report, and the functions below do nothing. */
bool report_open(struct report *report, const char *path, const struct report_run *run, struct error *error);

/* In place, record that BYTES, of result->output_bytes bytes, are about to replace the file, and flush this to the
 * disk. Sets result->sha256. If it fails, the file must not be replaced. Several threads may call this. */
bool report_begin(struct report *report, struct job_result *result, const uint8_t *bytes, struct error *error);

/* Append a job's line. Only the first failure returns false: after it no line is written. */
bool report_append(struct report *report, const struct job_result *result, struct error *error);

/* Close FILE, which text_open has opened for LINE, and append the line, which is released. The report is open. FILE is
 * NULL if text_open has failed. */
bool report_append_text(struct report *report, FILE *file, struct text_buffer *line, struct error *error);

/* Close the file. Returns false if that fails, which means that lines are missing; but not after an earlier failure. */
bool report_close(struct report *report, struct error *error);

#endif
