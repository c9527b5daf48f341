/* SPDX-License-Identifier: MIT
 *
 * Text: UTF-8, escapes, JSON strings, numbers, and a stream that prints into memory. */
#ifndef GPUCONV_TEXT_H
#define GPUCONV_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The bytes of the UTF-8 character that the SIZE bytes at TEXT begin with, 1 to 4; 0 where they begin with none (RFC 3629:
 * the shortest form only, no surrogates, up to U+10FFFF). */
int text_utf8_length(const uint8_t *text, size_t size);

/* Are the SIZE bytes at TEXT UTF-8? */
bool text_is_utf8(const uint8_t *text, size_t size);

/* Print TEXT, which may hold names of files, so that no control character in it can move the cursor or change the
 * terminal: as \n, \t or \x1b. */
void text_print_escaped(FILE *file, const char *text);

/* Print TEXT as a JSON string in its quotation marks. A byte that is no UTF-8 becomes a lone surrogate, U+DC80 to U+DCFF,
 * as Python's surrogateescape has it. NULL is printed as null. */
void text_print_json(FILE *file, const char *text);

/* Read the decimal number at *TEXT, which begins with a digit and has at most nine, and step over it. False, with nothing
 * changed, where there is none or it is not from LEAST to MOST. */
bool text_read_number(const char **text, int least, int most, int *number);

/* Text that is printed into memory: SIZE bytes, then a NUL. */
struct text_buffer {
    char *bytes; /* to be released with free */
    size_t size, capacity;
};

/* Open a stream that appends to BUFFER; NULL where there is no memory. Unlike libc's open_memstream, which silently loses
 * what it has no memory for, the stream has an error then. */
FILE *text_open(struct text_buffer *buffer);

/* Close it. Returns false, and releases the bytes, where a part was lost. */
bool text_close(FILE *stream, struct text_buffer *buffer);

#endif
