/* SPDX-License-Identifier: MIT
 *
 * The members of a tar archive as a stream of jobs, and their results as another archive. Images are filtered; all
 * other members are copied unchanged, or left out. Members keep their order. */
#ifndef GPUCONV_MEMBERS_H
#define GPUCONV_MEMBERS_H

#include "base/error.h"
#include "batch/batch.h"
#include "batch/file_list.h"

#include <stdbool.h>
#include <stddef.h>

struct members_request {
    const char *input, *output;  /* paths; "-" is standard input or output */
    const struct format *format; /* the format to write; NULL if the suffix of each name says it */
    const char *suffix;          /* what to add to the images' names; NULL for nothing */
    size_t memory;               /* as in struct batch_request */
    int workers;                 /* likewise */
    bool images_only;            /* leave out all other members */
    bool keep_failed;            /* copy also an image that fails; else it is left out */
};

struct members;

/* Open both archives, and set SOURCE to the stream of jobs. REQUEST must outlive *MEMBERS. The signals that end a
 * program are blocked until members_close. Release *MEMBERS with members_close, also after a failure. */
bool members_open(struct members **members, const struct members_request *request, struct job_source *source,
                  struct error *error);

/* Has the archive a fault that ends the work? Then other errors do not matter. */
bool members_are_broken(struct members *members);

/* End the output. After a fault of the input, it has what was done. Unless KEEP, a file stays as it was. Fails after
 * any fault of the archives, also in members_open. */
bool members_close(struct members *members, bool keep, struct error *error);

/* Let an output file stay as it was, after an interruption. Workers may still use MEMBERS. */
void members_abandon(struct members *members);

#endif
