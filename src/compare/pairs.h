/* SPDX-License-Identifier: MIT
 *
 * From two folders to pairs of files: by their relative paths; the others by their paths without suffixes. */
#ifndef GPUCONV_PAIRS_H
#define GPUCONV_PAIRS_H

#include "base/error.h"
#include "batch/file_list.h"
#include "batch/shard.h"
#include "compare/rows.h"

#include <stdbool.h>

struct pairs_request {
    const char *expected, *actual; /* folders */
    const char *masks;             /* a folder of masks with the names of the pairs, or NULL */
    bool updates;                  /* EXPECTED need not exist, and files without a partner are also work */
    const char *files_from; /* a file that lists the files and folders to compare, below either folder; or NULL */
    bool null_separated;
    struct shard shard; /* if its count is 0, all pairs are compared */
    list_warner *warn;  /* called for each link to a folder; may be NULL */
    void *context;
};

/* Fill ROWS, which is empty, with a row for each pair, sorted by name. Its kind is ROW_MISSING, ROW_NEW or
 * ROW_UNREADABLE, or ROW_EQUAL if there are two files to compare. Folders inside the folders count; hidden files and
 * links to folders do not. Release ROWS with rows_free, also after a failure. */
bool pairs_make(const struct pairs_request *request, struct compare_rows *rows, struct error *error);

/* Fill ROWS with one row: two files. Either may be "-". One of them may be absent: then the row is ROW_MISSING or
 * ROW_NEW. UPDATES is as above. */
bool pairs_make_one(const char *expected, const char *actual, bool updates, struct compare_rows *rows,
                    struct error *error);

/* Is there nothing at PATH, not even a link? Standard input is never absent. */
bool path_is_absent(const char *path);

#endif
