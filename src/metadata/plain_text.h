/* SPDX-License-Identifier: MIT
 *
 * Plain text: is a value text that somebody may read, or a picture in disguise? A picture is written as text in base64
 * or in hexadecimal digits, or its bytes are taken for characters. */
#ifndef GPUCONV_PLAIN_TEXT_H
#define GPUCONV_PLAIN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The properties of a text that are measured. All zero at first. */
struct plain_text {
    uint64_t window;           /* the last eight characters */
    size_t word, run, longest; /* letters of this word, and of long words in a row; the most in a row */
    size_t size;               /* characters that are not blank */
    size_t digits, others;     /* hexadecimal digits; characters that are in no list of them */
    size_t controls;           /* control characters that no text needs */
    bool shows_a_picture;      /* the first bytes of one were met */
};

/* Add a CHARACTER, a byte or a code point. NUL counts for nothing. */
void plain_text_add(struct plain_text *text, uint32_t character);

/* Are all characters that were added plain text? */
bool plain_text_holds(const struct plain_text *text);

/* Add SIZE bytes in UTF-8, or else in any other superset of ASCII. */
void plain_text_add_bytes(struct plain_text *text, const uint8_t *bytes, size_t size);

/* Are the SIZE bytes plain text? */
bool plain_text_is(const uint8_t *bytes, size_t size);

/* Are the SIZE bytes plain text in UTF-16, of either byte order? */
bool plain_text_is_utf16(const uint8_t *bytes, size_t size);

#endif
