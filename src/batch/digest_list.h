/* SPDX-License-Identifier: MIT
 *
 * Lists of digests, as sha256sum prints and reads them. */
#ifndef GPUCONV_DIGEST_LIST_H
#define GPUCONV_DIGEST_LIST_H

#include "base/error.h"
#include "batch/file_list.h"

#include <stdbool.h>
#include <stdio.h>

/* Fill LIST with jobs that have no output and a digest, one for each line of the file FROM, "-" for standard input. A
 * line is the digest, two blanks and the path, as digest_print_line prints it. Release LIST with file_list_free, also
 * after a failure. */
bool digest_list_make(const char *from, struct file_list *list, struct error *error);

/* Print DIGEST, two blanks and PATH; only PATH if DIGEST is "". If PATH has characters to escape, a backslash comes
 * first. These are those of sha256sum and of text_print_escaped. Fails if there is not enough memory. */
bool digest_print_line(FILE *file, const char *digest, const char *path);

#endif
