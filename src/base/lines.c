/* SPDX-License-Identifier: MIT */
#include "base/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Read more bytes after those in the buffer, which is not full. At the end of the file there are none. */
static bool fill_buffer(struct line_reader *reader, struct error *error)
{
    ssize_t got;
    do
        got = read(reader->descriptor, reader->buffer + reader->end, reader->max + 1 - reader->end);
    while (got < 0 && errno == EINTR);
    reader->has_ended = got <= 0;
    reader->end += got > 0 ? (size_t)got : 0;
    return got >= 0 ||
           error_set(error, error_of_errno(errno, ERROR_WORK, ERROR_READ), "cannot be read: %s", strerror(errno));
}

enum line_result lines_next(struct line_reader *reader, char **line, size_t *size, struct error *error)
{
    bool is_too_long = false;
    size_t seen = 0; /* bytes of the line without an end of line */
    error->code = ERROR_NONE;
    if (reader->buffer == NULL && (reader->buffer = malloc(reader->max + 1)) == NULL) {
        error_no_memory(error, "the lines");
        return LINE_END;
    }
    reader->number++;
    for (;;) {
        char *begin = reader->buffer + reader->begin;
        const size_t length = reader->end - reader->begin;
        char *found = length > seen ? memchr(begin + seen, '\n', length - seen) : NULL;
        if (found != NULL || (reader->has_ended && length > 0)) {
            *line = begin;
            *size = found != NULL ? (size_t)(found - begin) : length;
            reader->begin += *size + (found != NULL);
            begin[*size] = '\0'; /* without an end the line has at most `max` bytes */
            return is_too_long ? LINE_TOO_LONG : LINE_READ;
        }
        if (reader->has_ended)
            return is_too_long ? LINE_TOO_LONG : LINE_END;
        seen = length;
        if (length > reader->max) { /* drop it, and look for its end */
            is_too_long = true;
            reader->begin = reader->end = seen = 0;
        } else if (reader->begin > 0) { /* so that more bytes fit after these */
            memmove(reader->buffer, begin, length);
            reader->end = length;
            reader->begin = 0;
        }
        if (!fill_buffer(reader, error))
            return LINE_END;
    }
}

void lines_free(struct line_reader *reader)
{
    free(reader->buffer);
    reader->buffer = NULL;
}
