/* SPDX-License-Identifier: MIT
 *
 * The lines of --digest and --check on standard output, in the order of the files, whatever order they are done in. */
#ifndef GPUCONV_DIGESTS_H
#define GPUCONV_DIGESTS_H

#include "app/options.h"
#include "base/error.h"
#include "batch/batch.h"

#include <stdbool.h>
#include <stddef.h>

struct digest_line;

struct digests {
    const struct options *options;
    const struct job *jobs;
    size_t count, printed;
    struct digest_line *lines; /* one for each job */
};

/* Prepare for the results of BATCH. Release with digests_close. Fails if there is not enough memory. */
bool digests_open(struct digests *digests, const struct options *options, const struct batch_request *batch,
                  struct error *error);

/* Note a result, and print the lines of all files that are done up to the first that is not. Nothing is printed if the
 * report goes to standard output. */
void digests_add(struct digests *digests, const struct job_result *result);

/* Release the lines. */
void digests_close(struct digests *digests);

#endif
