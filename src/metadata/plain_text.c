/* SPDX-License-Identifier: MIT
 *
 * A picture may be written as text in base64 or in hexadecimal digits, or its bytes may be taken for characters. So a
 * text is measured, character by character. A language has short words, so many long ones in a row are base64. */
#include "metadata/metadata_internal.h"

#include "base/text.h"

enum {
    WORD_MIN = 12,    /* letters of a word that is long */
    RUN_MAX = 256,    /* letters of long words in a row */
    DIGITS_MAX = 512, /* digits, if there is nothing else */
    CONTROLS_MAX = 8, /* a few are mistakes; an eighth of a picture's bytes are control characters */
};

/* The first bytes of JPEG and PNG; and those of JPEG, PNG, GIF and RIFF (WebP), and of an address, in base64. */
static bool begins_picture(uint64_t window)
{
    static const struct {
        uint64_t mask, bytes;
    } signs[] = {
        {0xffffff, 0xffd8ff},
        {0xffffffff, 0x89504e47},
        {0xffffffff, 0x2f396a2f},                 /* "/9j/" */
        {0xffffffffffffffff, 0x6956424f5277304b}, /* "iVBORw0K" */
        {0xffffffffffff, 0x52306c474f44},         /* "R0lGOD" */
        {0xffffffffff, 0x556b6c4752},             /* "UklGR" */
        {0xffffffffffffffff, 0x646174613a696d61}, /* "data:ima" */
    };
    for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
        if ((window & signs[i].mask) == signs[i].bytes)
            return true;
    return false;
}

static bool is_digit(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* A letter of base64, of either alphabet, or of hexadecimal digits. */
static bool is_letter(uint32_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' || c == '/' ||
           c == '-' || c == '_' || c == '=';
}

/* A character that may stand between two pieces of one list. */
static bool is_separator(uint32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || c == ',' || c == ';' || c == '"' || c == '\'' || c == '\\';
}

static bool is_control(uint32_t c)
{
    enum { ESCAPE = 0x1b }; /* of ISO 2022, for Japanese */
    return (c < ' ' && !(c >= '\t' && c <= '\r') && c != ESCAPE) || (c >= 0x7f && c < 0xa0);
}

static void end_word(struct plain_text *text, bool in_list)
{
    if (!in_list || (text->word > 0 && text->word < WORD_MIN))
        text->run = 0;
    else
        text->run += text->word;
    text->word = 0;
}

void plain_text_add(struct plain_text *text, uint32_t c)
{
    if (c == 0)
        return;
    text->window = text->window << 8 | (c < 0x100 ? c : 0);
    text->shows_a_picture = text->shows_a_picture || begins_picture(text->window);
    text->size += c > ' ';
    text->controls += is_control(c);
    text->digits += is_digit(c);
    text->others += !(is_digit(c) || is_separator(c) || c == 'x' || c == ':' || c == '&' || c == '#');
    if (!is_letter(c)) {
        end_word(text, is_separator(c));
        return;
    }
    text->word++;
    if (text->word >= WORD_MIN && text->run + text->word > text->longest)
        text->longest = text->run + text->word;
}

bool plain_text_holds(const struct plain_text *text)
{
    return !text->shows_a_picture && text->longest <= RUN_MAX && text->controls <= CONTROLS_MAX &&
           (text->digits <= DIGITS_MAX || text->others > text->digits / 8);
}

void plain_text_add_bytes(struct plain_text *text, const uint8_t *bytes, size_t size)
{
    if (text_is_utf8(bytes, size)) {
        for (int length; size > 0; bytes += length, size -= (size_t)length) {
            length = text_utf8_length(bytes, size);
            plain_text_add(text, text_code_point(bytes, length));
        }
        return;
    }
    for (size_t i = 0; i < size; i++) {
        plain_text_add(text, bytes[i]);
        text->controls -= bytes[i] >= 0x7f && is_control(bytes[i]); /* a letter in Windows-1252 or Shift JIS */
    }
}

bool plain_text_is(const uint8_t *bytes, size_t size)
{
    struct plain_text text = {0};
    plain_text_add_bytes(&text, bytes, size);
    return plain_text_holds(&text);
}

static bool is_utf16(const uint8_t *bytes, size_t size, bool big)
{
    bool high = false; /* was the last unit the first half of a pair? */
    for (size_t i = 0; i + 1 < size; i += 2) {
        const unsigned unit = (unsigned)(bytes[i + !big] | bytes[i + big] << 8);
        const bool low = unit >= 0xdc00 && unit < 0xe000;
        if (low != high)
            return false;
        high = unit >= 0xd800 && unit < 0xdc00;
    }
    return !high;
}

bool plain_text_is_utf16(const uint8_t *bytes, size_t size)
{
    struct plain_text text = {0};
    for (size_t i = 0; i < size; i++) { /* byte by byte: ASCII is then seen in either order */
        plain_text_add(&text, bytes[i]);
        text.controls = 0; /* half a unit may have any value */
    }
    return plain_text_holds(&text) && (is_utf16(bytes, size, false) || is_utf16(bytes, size, true));
}
