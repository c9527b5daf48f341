/* SPDX-License-Identifier: MIT */
#include "app/digests.h"

#include "base/file.h"
#include "batch/digest_list.h"

#include <stdlib.h>
#include <string.h>

struct digest_line {
    bool is_known, is_right;
    char digest[SHA256_DIGEST_STRING_LENGTH]; /* "": the file could not be read */
};

bool digests_open(struct digests *digests, const struct options *options, const struct batch_request *batch,
                  struct error *error)
{
    *digests = (struct digests){.options = options, .jobs = batch->jobs, .count = batch->count};
    digests->lines = calloc(batch->count + 1, sizeof *digests->lines); /* a shard may have none */
    return digests->lines != NULL || error_no_memory(error, "%zu digests", batch->count);
}

/* Print a line as sha256sum does, with and without its --check. */
static void print_line(const struct digests *digests, size_t index)
{
    const struct digest_line *line = &digests->lines[index];
    const char *path = digests->jobs[index].input;
    const bool checks = digests->options->check != NULL;
    if (checks ? line->is_right && digests->options->quiet : line->digest[0] == '\0')
        return;
    if (!digest_print_line(stdout, checks ? "" : line->digest, path))
        fputs("(not enough memory for a name)", stdout);
    puts(!checks ? "" : line->is_right ? ": OK" : line->digest[0] != '\0' ? ": FAILED" : ": FAILED open or read");
}

void digests_add(struct digests *digests, const struct job_result *result)
{
    const char *report = digests->options->report;
    struct digest_line *line = &digests->lines[result->job - digests->jobs];
    line->is_known = true;
    line->is_right = result->outcome == JOB_DONE;
    memcpy(line->digest, result->digest, sizeof line->digest);
    for (; digests->printed < digests->count && digests->lines[digests->printed].is_known; digests->printed++)
        if (report == NULL || !file_is_standard(report))
            print_line(digests, digests->printed);
}

void digests_close(struct digests *digests)
{
    free(digests->lines);
}
