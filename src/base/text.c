/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- UTF-8 ---- */

int text_utf8_length(const uint8_t *text, size_t size)
{
    if (size == 0)
        return 0;
    const int length = text[0] < 0x80                       ? 1
                       : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
                       : text[0] >= 0xe0 && text[0] <= 0xef ? 3
                       : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                            : 0;
    if ((size_t)length > size)
        return 0;
    for (int i = 1; i < length; i++)
        if ((text[i] & 0xc0) != 0x80)
            return 0;
    const unsigned second = length > 1 ? text[1] : 0;
    /* A form that is not the shortest, a surrogate, or beyond U+10FFFF. */
    if ((text[0] == 0xe0 && second < 0xa0) || (text[0] == 0xed && second > 0x9f) ||
        (text[0] == 0xf0 && second < 0x90) || (text[0] == 0xf4 && second > 0x8f))
        return 0;
    return length;
}

/* The code point of the UTF-8 character of LENGTH bytes at TEXT. */
static uint32_t code_point(const uint8_t *text, int length)
{
    uint32_t code = length == 1 ? text[0] : text[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++)
        code = code << 6 | (text[i] & 0x3f);
    return code;
}

bool text_is_utf8(const uint8_t *text, size_t size)
{
    for (size_t i = 0; i < size;) {
        const int length = text_utf8_length(text + i, size - i);
        if (length == 0)
            return false;
        i += (size_t)length;
    }
    return true;
}

/* ---- Printing ---- */

/* Can the character CODE end the line, command a terminal, or change the order of the text around it? Or is it none
 * that XML allows? */
static bool changes_other_text(uint32_t code)
{
    return code < ' ' || (code >= 0x7f && code <= 0x9f) || /* control characters: Unicode's category Cc */
           (code >= 0x2028 && code <= 0x2029) ||           /* the separators of lines and paragraphs: Zl, Zp */
           code == 0x61c || (code >= 0x200e && code <= 0x200f) || (code >= 0x202a && code <= 0x202e) ||
           (code >= 0x2066 && code <= 0x2069) || /* the property Bidi_Control */
           code == 0xfffe || code == 0xffff;     /* no characters, in XML 1.0 */
}

/* The maximal size in bytes of one escaped character, with the NUL: four times \xff. */
enum { ESCAPED = 17 };

/* Write the first character of SIZE bytes at C to TO, for people, or for the inside of a JSON string. Returns its bytes
 * at C. */
static size_t escape_character(const uint8_t *c, size_t size, bool json, char to[ESCAPED])
{
    const int length = text_utf8_length(c, size);
    const size_t bytes = length > 0 ? (size_t)length : 1;
    if (json && length == 0)
        snprintf(to, ESCAPED, "\\udc%02x", *c);
    else if (json && (*c == '"' || *c == '\\'))
        snprintf(to, ESCAPED, "\\%c", *c);
    else if (length > 0 && !changes_other_text(code_point(c, length)))
        snprintf(to, ESCAPED, "%.*s", length, (const char *)c);
    else if (json)
        snprintf(to, ESCAPED, "\\u%04x", code_point(c, length)); /* all of them have four digits */
    else if (*c == '\n' || *c == '\t')
        snprintf(to, ESCAPED, "\\%c", *c == '\n' ? 'n' : 't');
    else
        for (size_t i = 0; i < bytes; i++)
            snprintf(to + 4 * i, ESCAPED - 4 * i, "\\x%02x", c[i]);
    return bytes;
}

/* Print SIZE bytes of text for people, or as the inside of a JSON string. */
static void print_characters(FILE *file, const char *text, size_t size, bool json)
{
    char escaped[ESCAPED];
    for (const uint8_t *c = (const uint8_t *)text, *end = c + size; c < end;) {
        const uint8_t *first = c; /* the first of the bytes that need no escape, nearly all of a usual text */
        while (c < end && *c >= ' ' && *c < 0x7f && *c != '"' && *c != '\\')
            c++;
        fwrite(first, 1, (size_t)(c - first), file);
        if (c == end)
            break;
        c += escape_character(c, (size_t)(end - c), json, escaped);
        fputs(escaped, file);
    }
}

void text_print_escaped(FILE *file, const char *text)
{
    print_characters(file, text, strlen(text), false);
}

void text_escape(const char *text, char *to, size_t size)
{
    char escaped[ESCAPED];
    to[0] = '\0';
    for (size_t used = 0, left = strlen(text); left > 0; used += strlen(escaped)) {
        const size_t bytes = escape_character((const uint8_t *)text, left, false, escaped);
        if (strlen(escaped) >= size - used)
            break;
        strcpy(to + used, escaped);
        text += bytes;
        left -= bytes;
    }
}

void text_print_xml(FILE *file, const char *text)
{
    static const char special[] = "&<>\"", *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;"};
    for (;;) {
        const size_t plain = strcspn(text, special); /* no other character of UTF-8 has these bytes */
        print_characters(file, text, plain, false);
        if (text[plain] == '\0')
            break;
        fputs(entities[strchr(special, text[plain]) - special], file);
        text += plain + 1;
    }
}

void text_print_json(FILE *file, const char *text)
{
    if (text == NULL) {
        fputs("null", file);
        return;
    }
    fputc('"', file);
    print_characters(file, text, strlen(text), true);
    fputc('"', file);
}

void text_print_json_member(FILE *file, const char *name, const char *text)
{
    fprintf(file, ",\"%s\":", name);
    text_print_json(file, text);
}

void text_add_word(char *text, size_t size, const char *word, const char *conjunction)
{
    const size_t used = strlen(text);
    snprintf(text + used, size - used, "%s%s", used == 0 ? "" : conjunction != NULL ? conjunction : ", ", word);
}

bool text_read_colour(const char *text, uint8_t rgb[3])
{
    const char *digits = strcasecmp(text, "white") == 0 ? "#fff" : strcasecmp(text, "black") == 0 ? "#000" : text;
    const size_t length = strlen(digits);
    if (digits[0] != '#' || (length != 4 && length != 7) || strspn(digits + 1, "0123456789abcdefABCDEF") != length - 1)
        return false;
    const unsigned long number = strtoul(digits + 1, NULL, 16);
    for (int i = 0; i < 3; i++)
        rgb[i] = (uint8_t)(length == 7 ? number >> (16 - 8 * i) & 255 : (number >> (8 - 4 * i) & 15) * 17);
    return true;
}

const char *text_plural(int count)
{
    return count == 1 ? "" : "s";
}

const char *text_of_size(size_t size, char text[TEXT_OF_SIZE])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB"};
    enum { UNITS = sizeof units / sizeof *units };
    if (size < 1024) {
        snprintf(text, TEXT_OF_SIZE, "%zu byte%s", size, size == 1 ? "" : "s");
        return text;
    }
    double amount = (double)size / 1024;
    int unit = 0;
    for (; amount >= 1024 && unit < UNITS - 1; unit++)
        amount /= 1024;
    snprintf(text, TEXT_OF_SIZE, "%.1f %s", amount, units[unit]);
    return text;
}

/* ---- Reading ---- */

/* The form of UTF-16 that a text of SIZE bytes is in, or NULL. Without a byte order mark, the high byte of each of the
 * first two characters is 0. */
static const char *utf16_form(const uint8_t *text, size_t size)
{
    if (size < 2)
        return NULL;
    const int zero = text[0] == 0 ? 0 : 1;
    const bool plain =
        text[zero] == 0 && text[!zero] != 0 && (size < 4 || (text[2 + zero] == 0 && text[2 + !zero] != 0));
    if (memcmp(text, "\xff\xfe", 2) == 0 || (plain && zero == 1))
        return "UTF-16LE";
    return memcmp(text, "\xfe\xff", 2) == 0 || plain ? "UTF-16BE" : NULL;
}

bool text_begin(const char **text, const char *end, const char *name, enum error_code code, struct error *error)
{
    const size_t size = (size_t)(end - *text);
    const char *form = utf16_form((const uint8_t *)*text, size);
    if (form != NULL)
        return error_about(error, code, name,
                           "is text in UTF-16; save it as UTF-8, or convert it: iconv -f %s -t UTF-8", form);
    const char *cr = memchr(*text, '\r', size);
    if (cr != NULL && cr + 1 < end && memchr(*text, '\n', size) == NULL)
        return error_about(error, code, name,
                           "its lines end in CR, as on old Macs; save it with LF line ends, or convert it: tr "
                           "'\\r' '\\n'");
    if (size >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0)
        *text += 3;
    return true;
}

bool text_read_number(const char **text, int min, int max, int *number)
{
    const size_t digits = strspn(*text, "0123456789");
    if (digits == 0 || digits > 9) /* nine digits fit in an int */
        return false;
    const int value = atoi(*text);
    if (value < min || value > max)
        return false;
    *number = value;
    *text += digits;
    return true;
}

const char *text_of_double(double number, char text[TEXT_OF_SIZE])
{
    int digits = 10;
    do
        snprintf(text, TEXT_OF_SIZE, "%.*g", digits, number);
    while (strtod(text, NULL) != number && digits++ < 17);
    return text;
}

/* ---- In memory ---- */

static ssize_t append_to_memory(void *context, const char *bytes, size_t size)
{
    struct text_buffer *buffer = context;
    if (size >= buffer->capacity - buffer->size) {                /* the NUL needs a byte, too */
        const size_t capacity = 2 * (buffer->size + size) + 1024; /* text is nowhere near half of the address space */
        char *larger = realloc(buffer->bytes, capacity);
        if (larger == NULL)
            return 0;
        buffer->bytes = larger;
        buffer->capacity = capacity;
    }
    memcpy(buffer->bytes + buffer->size, bytes, size);
    buffer->size += size;
    buffer->bytes[buffer->size] = '\0';
    return (ssize_t)size;
}

FILE *text_open(struct text_buffer *buffer)
{
    FILE *stream = NULL;
    *buffer = (struct text_buffer){0};
    append_to_memory(buffer, "", 0);
    if (buffer->bytes != NULL)
        stream = fopencookie(buffer, "w", (cookie_io_functions_t){.write = append_to_memory});
    if (stream == NULL) {
        free(buffer->bytes);
        *buffer = (struct text_buffer){0};
    }
    return stream;
}

bool text_close(FILE *stream, struct text_buffer *buffer)
{
    const bool failed = fflush(stream) != 0 || ferror(stream) != 0;
    if (fclose(stream) == 0 && !failed)
        return true;
    free(buffer->bytes);
    *buffer = (struct text_buffer){0};
    return false;
}
