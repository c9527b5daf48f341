/* SPDX-License-Identifier: MIT
 *
 * The report of a run in place as a journal, from which the next run goes on.
 *
 * Before a file is replaced, a line with the status `begun` says which bytes replace it, by their SHA-256, and by which
 * filter and options, as a recipe. This line is on the disk before the file is renamed. So whenever a run ends, by a
 * signal or a power cut, a file that was replaced is in the journal. And a file that was not replaced does not have
 * these bytes, so it does not matter if its line is there, too. Names do not count: a file may be renamed or moved. */
#ifndef GPUCONV_JOURNAL_H
#define GPUCONV_JOURNAL_H

#include "base/error.h"

#include <sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of a recipe in hexadecimal digits, with the NUL. Equal recipes make the same bytes of the same file. */
enum { RECIPE_TEXT = 17 };

/* The bytes that replaced a file. */
struct journal_entry {
    size_t size;
    char hash[SHA256_DIGEST_STRING_LENGTH];
};

/* The entries of one recipe, sorted. All zeros: none. */
struct journal {
    struct journal_entry *entries;
    size_t count;
};

/* Read the entries with this RECIPE from the report at PATH, which may not exist. A line that a full disk or a power
 * cut has cut off is skipped: nothing was replaced before its line was whole. Any other line that is not a report's is
 * an error. Release JOURNAL with journal_free, also after a failure. */
bool journal_read(const char *path, const char *recipe, struct journal *journal, struct error *error);

/* Did an earlier run write these bytes? */
bool journal_holds(const struct journal *journal, const uint8_t *bytes, size_t size);

void journal_free(struct journal *journal);

#endif
