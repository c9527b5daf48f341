/* SPDX-License-Identifier: MIT
 *
 * The headers of PGM, PPM and PAM, read as libnetpbm reads them, and the check that all rows are there. */
#include "base/bytes.h"
#include "container/check.h"
#include "container/other_content.h"
#include "container/report.h"

#include <stdio.h>
#include <string.h>

/* Bytes of the longest tuple type that messages quote, with its NUL. */
enum { TYPE_SIZE = 64 };

/* A header that is read. */
struct reading {
    struct checked_file file;
    const uint8_t *bytes, *at, *end;
};

static bool report_truncated(const struct reading *reading)
{
    return TRUNCATED(reading, "it ends in its %s", "header");
}

/* NUMBER with one more digit. INT64_MAX if BYTE is no digit, or if NUMBER is above INT32_MAX already. */
static int64_t add_digit(int64_t number, int byte)
{
    return number <= INT32_MAX && byte >= '0' && byte <= '9' ? 10 * number + byte - '0' : INT64_MAX;
}

/* Set FIELD to NUMBER, which must be from 1 to MAX. */
static bool set_field(const struct reading *reading, const char *what, int64_t number, int max, int *field)
{
    if (number < 1 || number > max)
        return DAMAGED(reading, "its %s is not a number from 1 to %d", what, max);
    *field = (int)number;
    return true;
}

/* ---- PGM and PPM ---- */

/* The next byte, or -1 at the end. A comment counts as its end of line, also after a digit. */
static int next_header_byte(struct reading *reading)
{
    if (reading->at < reading->end && *reading->at == '#')
        while (reading->at < reading->end && *reading->at != '\n' && *reading->at != '\r')
            reading->at++;
    return reading->at < reading->end ? *reading->at++ : -1;
}

/* Read a number, and the one blank after it. */
static bool read_header_number(struct reading *reading, const char *what, int max, int *field)
{
    int64_t number = 0;
    int byte = next_header_byte(reading);
    while (byte_is_blank(byte))
        byte = next_header_byte(reading);
    for (; byte >= 0 && !byte_is_blank(byte); byte = next_header_byte(reading))
        number = add_digit(number, byte);
    return byte >= 0 ? set_field(reading, what, number, max, field) : report_truncated(reading);
}

static bool read_header_numbers(struct reading *reading, struct pnm_header *header)
{
    if (!byte_is_blank(next_header_byte(reading)))
        return DAMAGED(reading, "no space follows its first %d bytes", PNM_MAGIC);
    return read_header_number(reading, "width", INT32_MAX, &header->width) &&
           read_header_number(reading, "height", INT32_MAX, &header->height) &&
           read_header_number(reading, "maxval", PNM_MAXVAL_MAX, &header->maxval);
}

/* ---- PAM ---- */

/* A line of a header without the blanks around it: a word, and what follows that. */
struct line {
    const uint8_t *word, *value;
    size_t word_size, value_size;
};

/* Read the next line. Fails if none ends. */
static bool read_header_line(struct reading *reading, struct line *line)
{
    const uint8_t *at = reading->at, *end = memchr(at, '\n', (size_t)(reading->end - at));
    if (end == NULL)
        return report_truncated(reading);
    reading->at = end + 1;
    while (end > at && byte_is_blank(end[-1]))
        end--;
    while (at < end && byte_is_blank(*at))
        at++;
    line->word = at;
    while (at < end && !byte_is_blank(*at))
        at++;
    line->word_size = (size_t)(at - line->word);
    while (at < end && byte_is_blank(*at))
        at++;
    line->value = at;
    line->value_size = (size_t)(end - at);
    return true;
}

static bool line_is(const struct line *line, const char *word)
{
    return line->word_size == strlen(word) && memcmp(line->word, word, line->word_size) == 0;
}

/* Store what LINE says in HEADER, or in TYPE of TYPE_SIZE bytes. Several types are one, with blanks between them. */
static bool read_field(const struct reading *reading, const struct line *line, struct pnm_header *header, char *type)
{
    const struct {
        const char *word;
        int max, *field;
    } fields[] = {
        {"WIDTH", INT32_MAX, &header->width},
        {"HEIGHT", INT32_MAX, &header->height},
        {"DEPTH", INT32_MAX, &header->channels},
        {"MAXVAL", PNM_MAXVAL_MAX, &header->maxval},
    };
    int64_t number = 0;
    if (line_is(line, "TUPLTYPE")) {
        const size_t used = strlen(type);
        snprintf(type + used, TYPE_SIZE - used, "%s%.*s", used > 0 ? " " : "",
                 (int)(line->value_size < TYPE_SIZE ? line->value_size : TYPE_SIZE), (const char *)line->value);
        return true;
    }
    for (size_t i = 0; i < line->value_size; i++)
        number = add_digit(number, line->value[i]);
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (line_is(line, fields[i].word))
            return set_field(reading, fields[i].word, number, fields[i].max, fields[i].field);
    return DAMAGED(reading, "its header has an unknown line at byte %zu", (size_t)(line->word - reading->bytes));
}

/* Check that the tuple type TYPE is one that is read, and that it has CHANNELS channels. TYPE may be missing, and then
 * the number of channels says all. */
static bool check_type(const struct reading *reading, const char *type, int channels)
{
    static const struct {
        const char *type;
        int min, max;
    } types[] = {
        {"", 1, 4},          {"BLACKANDWHITE", 1, 1},       {"GRAYSCALE", 1, 1},
        {"RGB", 3, 3},       {"BLACKANDWHITE_ALPHA", 2, 2}, {"GRAYSCALE_ALPHA", 2, 2},
        {"RGB_ALPHA", 4, 4},
    };
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i].type) == 0 && channels >= types[i].min && channels <= types[i].max)
            return true;
    return REFUSE(reading,
                  "is a PAM of depth %d and tuple type \"%s\", which is not read; save it again as GRAYSCALE or "
                  "RGB, with or without _ALPHA",
                  channels, type);
}

static bool read_lines(struct reading *reading, struct pnm_header *header)
{
    char type[TYPE_SIZE] = "";
    struct line line;
    if (!read_header_line(reading, &line))
        return false;
    if (line.word_size > 0)
        return DAMAGED(reading, "no end of line follows its first %d bytes", PNM_MAGIC);
    while (read_header_line(reading, &line)) {
        const bool is_comment = line.word_size == 0 || line.word[0] == '#';
        if (line_is(&line, "ENDHDR"))
            return header->width > 0 && header->height > 0 && header->channels > 0 && header->maxval > 0
                       ? check_type(reading, type, header->channels)
                       : DAMAGED(reading, "its header has no line %s", "WIDTH, HEIGHT, DEPTH or MAXVAL");
        if (!is_comment && !read_field(reading, &line, header, type))
            return false;
    }
    return false;
}

/* ---- The file ---- */

/* Read the header of the SIZE bytes, which begin with P5, P6 or P7, and check that all rows follow it. */
static bool read_pnm_header(const uint8_t *bytes, size_t size, const char *name, struct pnm_header *header,
                            struct error *error)
{
    const uint8_t kind = bytes[1];
    struct reading reading = {
        .file = {kind == '5'   ? "PGM"
                 : kind == '6' ? "PPM"
                               : "PAM",
                 name, error},
        .bytes = bytes,
        .at = bytes + PNM_MAGIC,
        .end = bytes + size,
    };
    *header = (struct pnm_header){.channels = kind == '5' ? 1 : kind == '6' ? 3 : 0};
    if (!(kind == '7' ? read_lines(&reading, header) : read_header_numbers(&reading, header)))
        return false;
    header->samples = (size_t)(reading.at - bytes);
    const uint64_t rows = (size - header->samples) / pnm_row_bytes(header);
    return rows >= (uint64_t)header->height ||
           TRUNCATED(&reading, "it ends in row %d of %d", (int)rows + 1, header->height);
}

bool pnm_check(const uint8_t *bytes, size_t size, const char *name, struct codec_info *info, struct error *error)
{
    struct pnm_header header;
    if (!read_pnm_header(bytes, size, name, &header, error))
        return false;
    *info = (struct codec_info){
        .width = header.width,
        .height = header.height,
        .channels = header.channels,
        .bits = header.maxval > 255 ? 16 : 8,
        .data = (size_t)(pnm_row_bytes(&header) * (uint64_t)header.height),
        .pnm = header,
    };
    info->other_content =
        container_other_content_behind(bytes, size, header.samples + info->data, &(struct jpeg_segment){0});
    return true;
}
