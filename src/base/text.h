/* SPDX-License-Identifier: MIT
 *
 * Text: UTF-8, escapes, JSON strings, numbers, and a stream that prints into memory. */
#ifndef GPUCONV_TEXT_H
#define GPUCONV_TEXT_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The length, 1 to 4, of the UTF-8 character at the beginning of the SIZE bytes at TEXT, or 0 if there is none. As in
 * RFC 3629: the shortest form only, no surrogates, up to U+10FFFF. */
int text_utf8_length(const uint8_t *text, size_t size);

/* Are the SIZE bytes at TEXT UTF-8? */
bool text_is_utf8(const uint8_t *text, size_t size);

/* Print TEXT, such as a file's name, for people. Bytes that are not UTF-8 become \x9b; so do the bytes of characters
 * that can change other text: control characters, separators of lines, marks that order text from right to left; and
 * those of U+FFFE and U+FFFF, which are no characters. A line end becomes \n, a tab \t. */
void text_print_escaped(FILE *file, const char *text);

/* Write TEXT as text_print_escaped prints it to TO, of SIZE bytes, at least 1. Longer text is cut after a character. */
void text_escape(const char *text, char *to, size_t size);

/* Print TEXT, escaped as for people, because XML 1.0 has no control characters, and then for XML and HTML: between
 * tags, or as an attribute's value in double quotation marks. */
void text_print_xml(FILE *file, const char *text);

/* Print TEXT as a JSON string with its quotation marks. The characters that text_print_escaped escapes become \u009b. A
 * byte that is not UTF-8 becomes a lone surrogate, U+DC80 to U+DCFF, as Python's surrogateescape does. NULL is printed
 * as null. */
void text_print_json(FILE *file, const char *text);

/* Print a comma, NAME and TEXT: one more member of a JSON object. NAME needs no escapes. */
void text_print_json_member(FILE *file, const char *name, const char *text);

/* Add WORD to the list "a, b and c" in TEXT, of SIZE bytes. TEXT is empty before the first word. CONJUNCTION, such as
 * " and ", replaces the comma before the last word; it is NULL for the other words. Longer text is cut. */
void text_add_word(char *text, size_t size, const char *word, const char *conjunction);

/* Step over the byte order mark that some editors write before UTF-8, at the beginning of the text from *TEXT to END.
 * Fails with CODE, about the file NAME, if the text is in UTF-16, or has no LF but a CR that is not its last byte: it
 * must be saved in another way. */
bool text_begin(const char **text, const char *end, const char *name, enum error_code code, struct error *error);

/* Read the decimal number at *TEXT and step over it. It has one to nine digits and no sign. Returns false and changes
 * nothing if there is no number, or if it is not from MIN to MAX. */
bool text_read_number(const char **text, int min, int max, int *number);

/* Read the colour TEXT: white, black, #RGB or #RRGGBB. Returns false if it is none. */
bool text_read_colour(const char *text, uint8_t rgb[3]);

/* The end of a noun after COUNT: "" or "s". */
const char *text_plural(int count);

/* The maximal number of bytes that text_of_size and text_of_double write, with the NUL. */
enum { TEXT_OF_SIZE = 32 };

/* Write SIZE bytes to TEXT in the unit that fits: "812 bytes", "3.4 KiB", "1.5 GiB". Returns TEXT. */
const char *text_of_size(size_t size, char text[TEXT_OF_SIZE]);

/* Write the shortest decimal that reads back as NUMBER to TEXT. Returns TEXT. */
const char *text_of_double(double number, char text[TEXT_OF_SIZE]);

/* Text in memory: SIZE bytes and a NUL after them. */
struct text_buffer {
    char *bytes; /* release with free */
    size_t size, capacity;
};

/* Open a stream that appends to BUFFER, which is empty at first. Returns NULL if there is not enough memory. The stream
 * fails when it runs out of memory; libc's open_memstream would lose text silently. */
FILE *text_open(struct text_buffer *buffer);

/* Close the stream. Returns false, and releases the bytes, if a part of the text was lost. */
bool text_close(FILE *stream, struct text_buffer *buffer);

#endif
