/* SPDX-License-Identifier: MIT
 *
 * Lines from a file or a pipe, one after another. A line is returned as soon as it is there, however slowly the next
 * one comes. */
#ifndef GPUCONV_LINES_H
#define GPUCONV_LINES_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

/* The caller sets the first two fields and leaves the others 0. */
struct line_reader {
    int descriptor;
    size_t max; /* bytes of the longest line that is read */

    char *buffer; /* max + 1 bytes */
    size_t begin, end;
    size_t number; /* the number of the line that was read last, from 1 */
    bool has_ended;
};

enum line_result {
    LINE_READ,
    LINE_TOO_LONG, /* it is skipped */
    LINE_END,      /* there are no more, or the file cannot be read: then ERROR is set */
};

/* Read the next line: *LINE points to its *SIZE bytes and a NUL instead of its line end, until the next call. The last
 * line may lack a line end. */
enum line_result lines_next(struct line_reader *reader, char **line, size_t *size, struct error *error);

/* Release the buffer. */
void lines_free(struct line_reader *reader);

#endif
