/* SPDX-License-Identifier: MIT
 *
 * From the names of files and folders to a list of jobs: one input and one output each, checked so that no two write
 * the same file and none writes what another reads. Looks at names, never into images. */
#ifndef GPUCONV_JOBS_H
#define GPUCONV_JOBS_H

#include "base/error.h"
#include "codec/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct job {
    char *input;
    char *output;                /* NULL where there is a problem */
    char *problem;               /* NULL, or the sentence that says why this input cannot be read */
    uint64_t bytes;              /* of the input; 0 where it is no regular file */
    const struct format *format; /* to write */

    /* For the checks. */
    dev_t device;
    ino_t inode; /* of the input; 0 where it is not there */
};

struct job_list {
    struct job *jobs; /* in the order of their outputs: the same on every machine that sees the same files */
    size_t count, capacity;
};

struct job_request {
    char *const *inputs; /* files and folders */
    size_t input_count;
    const char *files_from; /* NULL, or a file that lists more of them, "-" for standard input */
    bool null_separated;    /* by NUL bytes, not by the ends of lines */
    bool recursive;
    bool in_place;
    const char *output;          /* the folder; NULL in place */
    const char *suffix;          /* what to add to each name; NULL: nothing */
    const struct format *format; /* NULL: what each name's suffix says */

    /* Told of what is left out, if not NULL. */
    void (*warn)(const void *context, const char *name, const char *text);
    const void *context;
};

/* Fill LIST, to be released with jobs_free also after a failure. Nothing is written or created. */
bool jobs_make(const struct job_request *request, struct job_list *list, struct error *error);

/* Drop the jobs that are not KEPT, of list->count flags. */
void jobs_keep(struct job_list *list, const bool *kept);

void jobs_free(struct job_list *list);

#endif
