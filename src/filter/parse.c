/* SPDX-License-Identifier: MIT
 *
 * The parser of filter files: from text to lines, from lines to numbers, from numbers to the filter. */
#include "base/text.h"
#include "filter/filter_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__extension__ typedef __int128 int128;

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The most lines of a matrix and curves. Grids have fewer: the first line of a libvips matrix, and two times FILTER_MAX
 * rows. */
#define MAX_LINES (4 + 4 * POINT_MAX)

enum keyword {
    KEYWORD_TITLE,
    KEYWORD_SCALE,
    KEYWORD_OFFSET,
    KEYWORD_ABS,
    KEYWORD_ANCHOR,
    KEYWORD_COMBINE,
    KEYWORD_MATRIX, /* from here on, words that begin a section of lines */
    KEYWORD_CURVE,
    KEYWORD_TABLE,
    KEYWORD_COUNT
};

static const char *const keywords[KEYWORD_COUNT] = {
    [KEYWORD_TITLE] = "title",   [KEYWORD_SCALE] = "scale",   [KEYWORD_OFFSET] = "offset",
    [KEYWORD_ABS] = "abs",       [KEYWORD_ANCHOR] = "anchor", [KEYWORD_COMBINE] = "combine",
    [KEYWORD_MATRIX] = "matrix", [KEYWORD_CURVE] = "curve",   [KEYWORD_TABLE] = "table"};

/* The most sections: a matrix, and a curve for each channel. */
#define MAX_SECTIONS 5

struct parser {
    const char *name; /* the file's name, for messages */
    struct error *error;
    const char *start, *at, *end; /* the line without its comment, and the position in it */
    size_t number;                /* the line's number in the text, from 1 */

    size_t seen[KEYWORD_COUNT];    /* the line of each keyword, or 0 */
    size_t columns[KEYWORD_COUNT]; /* and its column */
    uint32_t anchor_column;        /* the column of its numbers */
    int64_t anchor_x, anchor_y;
    struct number scale, offset;
    bool scaled;             /* the text has a scale */
    size_t separator;        /* the line between two grids, or 0 */
    size_t separator_column; /* its column */
    int first_count;         /* the number of lines before it */
    int count;               /* the number of lines */
    int sections;            /* the number of sections */
    bool has_levels;         /* the rows of this section are levels, which may be percentages */
    bool is_rank;            /* the taps are the footprint of ranks */
    struct number share;     /* and of these the output is this one, from 0 to 1 */
    struct point_section section[MAX_SECTIONS];
    struct filter_line lines[MAX_LINES];
    struct number taps[2 * FILTER_MAX * FILTER_MAX]; /* the taps of both grids, divided by the scale */
};

/* Fill the error: its subject is the position, NAME:LINE:COLUMN. Returns false. */
ERROR_PRINTF(4, 5)
static bool fail_at(struct parser *parser, size_t line, size_t column, const char *format, ...)
{
    char sentence[1024];
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(sentence, sizeof sentence, format, arguments) < 0)
        sentence[0] = '\0';
    va_end(arguments);
    char position[sizeof parser->error->subject]; /* a long name is cut, the numbers are not */
    snprintf(position, sizeof position, "%.*s:%zu:%zu", (int)sizeof position - 48, parser->name, line, column);
    return error_about(parser->error, ERROR_USAGE, position, "%s", sentence);
}

static size_t column_of(const struct parser *parser, const char *at)
{
    return (size_t)(at - parser->start) + 1;
}

/* fail_at, for the position AT in this line. */
#define FAIL_HERE(parser, at, ...) fail_at(parser, (parser)->number, column_of(parser, at), __VA_ARGS__)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool is_separator(char c)
{
    return is_blank(c) || c == ',' || c == ';';
}

/* Skip separators. Returns whether anything follows in the line. */
static bool skip_separators(struct parser *parser)
{
    while (parser->at < parser->end && is_separator(*parser->at))
        parser->at++;
    return parser->at < parser->end;
}

static const char *token_end(const struct parser *parser)
{
    const char *end = parser->at;
    while (end < parser->end && !is_separator(*end))
        end++;
    return end;
}

/* The next word of the line for a message: in quotation marks and cut if it is long, or `the end of the line`. */
struct quoted_word {
    char text[48];
};

static struct quoted_word next_word(struct parser *parser)
{
    struct quoted_word word = {"the end of the line"};
    if (!skip_separators(parser))
        return word;
    const size_t longest = 32;
    const size_t length = (size_t)(token_end(parser) - parser->at);
    snprintf(word.text, sizeof word.text, "\"%.*s%s\"", (int)(length < longest ? length : longest), parser->at,
             length > longest ? "..." : "");
    return word;
}

/* Report that the text from START to END is none of COUNT words, and suggest one of them. */
static bool fail_word(struct parser *parser, const char *start, const char *end, const char *expected,
                      const char *const *words, size_t count)
{
    char copy[48] = "";
    if (end - start < (ptrdiff_t)sizeof copy)
        memcpy(copy, start, (size_t)(end - start));
    const char *nearest = NULL;
    error_nearest(copy, words, count, &nearest, 1);
    parser->at = start;
    return FAIL_HERE(parser, start, "expected %s, found %s%s%s%s", expected, next_word(parser).text,
                     nearest != NULL ? "; did you mean \"" : "", nearest != NULL ? nearest : "",
                     nearest != NULL ? "\"?" : "");
}

static bool is_ascii(const char *text, const char *end)
{
    while (text < end && (unsigned char)*text < 0x80)
        text++;
    return text == end;
}

/* Read the next number of the line. EXPECTED says what it is, for messages. */
static bool parse_number(struct parser *parser, const char *expected, struct number *number)
{
    const struct quoted_word text = next_word(parser);
    const char *end = token_end(parser);
    const bool is_percentage = parser->has_levels && end > parser->at && end[-1] == '%';
    switch (number_read(parser->at, end - is_percentage, number)) {
    case NUMBER_MALFORMED:
        return FAIL_HERE(parser, parser->at, "expected %s, found %s%s", expected, text.text,
                         is_ascii(parser->at, end) ? "" : ", which has characters other than ASCII; type it again");
    case NUMBER_TOO_LARGE:
        return FAIL_HERE(parser, parser->at, "expected %s, found %s, which is too large", expected, text.text);
    case NUMBER_OVER_ZERO:
        return FAIL_HERE(parser, parser->at, "expected %s, found %s, which divides by 0", expected, text.text);
    case NUMBER_FINE:
        break;
    }
    if (is_percentage) /* 255 levels are 100% */
        *number = number_divide(*number, (struct number){.numerator = 20, .denominator = 51, .value = 20 / 51.0});
    parser->at = end;
    return true;
}

#define DECIMAL_COMMA "write a decimal comma as a point, such as 0.5"

/* Read the value of a setting, which is one number. */
static bool parse_single_number(struct parser *parser, const char *expected, struct number *number)
{
    if (!parse_number(parser, expected, number))
        return false;
    if (parser->end - parser->at > 1 && parser->at[0] == ',' && is_digit(parser->at[1]))
        return FAIL_HERE(parser, parser->at, "expected one number, found a comma and a digit; " DECIMAL_COMMA);
    return true;
}

/* Check and set the scale. The text has it at LINE and COLUMN. */
static bool set_scale(struct parser *parser, size_t line, size_t column, struct number scale)
{
    if (scale.value == 0.0)
        return fail_at(parser, line, column, "expected a scale other than 0: it divides the sum");
    parser->scale = scale;
    parser->scaled = true;
    return true;
}

/* Check and set the offset, in the same way. */
static bool set_offset(struct parser *parser, size_t line, size_t column, struct number offset)
{
    if (offset.denominator == 0 && fabs(offset.value) <= 65536.0)
        offset = number_round(offset); /* it has more digits than a fraction holds */
    /* The highest level of 16 bits; an offset for 8 bits needs no more. */
    const int128 max = (int128)65535 * offset.denominator;
    if (offset.denominator == 0 || offset.numerator > max || offset.numerator < -max)
        return fail_at(parser, line, column, "expected an offset from -65535 to 65535, found %.15g", offset.value);
    parser->offset = offset;
    return true;
}

/* Read the column or the row of the anchor. */
static bool parse_anchor(struct parser *parser, int64_t *index)
{
    const char *expected = "the anchor's column and row, counted from 0";
    const struct quoted_word text = next_word(parser);
    const size_t column = column_of(parser, parser->at);
    struct number number;
    if (!parse_number(parser, expected, &number))
        return false;
    if (!number_is_integer(number, 0, FILTER_MAX - 1))
        return fail_at(parser, parser->number, column, "expected %s, each a whole number from 0 to %d, found %s",
                       expected, FILTER_MAX - 1, text.text);
    *index = number.numerator;
    return true;
}

/* Read the rest of the line into TITLE, of SIZE bytes. */
static bool parse_title(struct parser *parser, char *title, size_t size)
{
    if (!skip_separators(parser))
        return FAIL_HERE(parser, parser->at, "expected a title of a few words");
    const char *end = parser->end;
    while (is_separator(end[-1]))
        end--;
    const size_t length = (size_t)(end - parser->at);
    if (length >= size)
        return FAIL_HERE(parser, parser->at, "expected a title of at most %zu bytes, found %zu", size - 1, length);
    memcpy(title, parser->at, length);
    title[length] = '\0';
    parser->at = parser->end;
    return true;
}

/* Read the rank of the output, a percentage. */
static bool parse_share(struct parser *parser)
{
    skip_separators(parser);
    const char *start = parser->at, *end = token_end(parser);
    struct number percentage;
    if (start == end || end[-1] != '%' || number_read(start, end - 1, &percentage) != NUMBER_FINE ||
        !(percentage.value >= 0 && percentage.value <= 100))
        return FAIL_HERE(parser, start, "expected a percentage from 0%% to 100%%, found %s", next_word(parser).text);
    parser->share = number_divide(percentage, NUMBER_HUNDRED);
    parser->at = end;
    return true;
}

static bool parse_combine(struct parser *parser, enum combine *combine)
{
    static const char *const ranks[] = {"minimum", "median", "maximum", "rank"};
    enum { RANKS = sizeof ranks / sizeof *ranks, SUMS = COMBINE_COUNT - COMBINE_NONE - 1 };
    const char *start = parser->at, *end = token_end(parser);
    const char *names[SUMS + RANKS];
    for (int i = 0; i < SUMS + RANKS; i++) {
        names[i] = i < SUMS ? combine_name((enum combine)(COMBINE_NONE + 1 + i)) : ranks[i - SUMS];
        if (!is_word(names[i], start, end))
            continue;
        parser->at = end;
        if (i < SUMS) {
            *combine = (enum combine)(COMBINE_NONE + 1 + i);
            return true;
        }
        const int half = i - SUMS; /* halves of the way from the lowest sample to the highest */
        parser->is_rank = true;
        parser->share =
            (struct number){.numerator = half < 2 ? half : 1, .denominator = half == 1 ? 2 : 1, .value = half / 2.0};
        return half < RANKS - 1 || parse_share(parser);
    }
    return fail_word(parser, start, end,
                     "magnitude, max or sum, the ways to combine the sums of two grids, or median, minimum, maximum "
                     "or rank P%, the sample that becomes the output",
                     names, SUMS + RANKS);
}

/* Begin a section. Words after a curve say its channels, and how it goes from point to point. */
static bool parse_section(struct parser *parser, enum keyword keyword)
{
    static const char *const words[] = {"red", "green", "blue", "alpha", "smooth", "steps", "gamma"};
    enum { CHANNELS = 4, COLOURS = 7, WORDS = sizeof words / sizeof *words };
    if (parser->sections == MAX_SECTIONS)
        return fail_at(parser, parser->number, parser->columns[keyword],
                       "expected at most a matrix and a curve for each channel");
    struct point_section *section = &parser->section[parser->sections++];
    parser->has_levels = false; /* a gamma is no level */
    *section = (struct point_section){
        .number = parser->number,
        .column = parser->columns[keyword],
        .is_table = keyword == KEYWORD_TABLE,
        .lines = &parser->lines[parser->count],
    };
    while (keyword != KEYWORD_MATRIX && skip_separators(parser)) {
        const char *start = parser->at, *end = token_end(parser);
        int word = 0;
        while (word < WORDS && !is_word(words[word], start, end))
            word++;
        if (word == WORDS || (section->is_table && word >= CHANNELS))
            return fail_word(parser, start, end,
                             section->is_table
                                 ? "red, green, blue or alpha, the channels of the table"
                                 : "red, green, blue or alpha, the channels of the curve, or smooth, steps "
                                   "or gamma",
                             words, section->is_table ? CHANNELS : WORDS);
        parser->at = end;
        if (word < CHANNELS) {
            section->channels |= 1u << word;
            continue;
        }
        if (section->shape != POINT_LINEAR)
            return FAIL_HERE(parser, start, "expected only one of smooth, steps and gamma, found a second");
        section->shape = POINT_SMOOTH + (unsigned)(word - CHANNELS);
        struct number gamma;
        skip_separators(parser);
        start = parser->at;
        if (section->shape == POINT_GAMMA) {
            if (!parse_number(parser, "the gamma, such as 2.2", &gamma))
                return false;
            section->gamma = gamma.value;
            if (!(gamma.value >= 0.1 && gamma.value <= 10))
                return FAIL_HERE(parser, start, "expected a gamma from 0.1 to 10");
        }
    }
    parser->has_levels = keyword != KEYWORD_MATRIX;
    if (parser->has_levels && section->channels == 0)
        section->channels = COLOURS;
    return true;
}

/* Read the keyword at the beginning of the line. */
static bool parse_keyword(struct parser *parser, enum keyword *result)
{
    const struct quoted_word word = next_word(parser);
    const char *start = parser->at, *end = token_end(parser);
    int keyword = 0;
    while (keyword < KEYWORD_COUNT && !is_word(keywords[keyword], start, end))
        keyword++;
    if (keyword == KEYWORD_COUNT)
        return fail_word(parser, start, end,
                         "a row of taps or one of title, scale, offset, abs, anchor, combine, matrix, curve "
                         "and table",
                         keywords, KEYWORD_COUNT);
    if (parser->sections > 0 ? keyword == KEYWORD_TITLE : parser->count > 0)
        return FAIL_HERE(parser, start, "expected a row of %s, found %s, which must come before the first row",
                         parser->sections > 0 ? "numbers" : "taps", word.text);
    if (keyword < KEYWORD_CURVE && parser->seen[keyword] != 0)
        return FAIL_HERE(parser, start, "expected %s only once, but line %zu has it too; remove one of the two",
                         word.text, parser->seen[keyword]);
    parser->seen[keyword] = parser->number;
    parser->columns[keyword] = column_of(parser, start);
    parser->at = end;
    *result = (enum keyword)keyword;
    return true;
}

static bool parse_value(struct parser *parser, enum keyword keyword, struct filter *filter)
{
    skip_separators(parser);
    const size_t column = column_of(parser, parser->at);
    struct number number;
    switch (keyword) {
    case KEYWORD_TITLE:
        return parse_title(parser, filter->title, sizeof filter->title);
    case KEYWORD_SCALE:
        return parse_single_number(parser, "a scale such as 16 or 0.5", &number) &&
               set_scale(parser, parser->number, column, number);
    case KEYWORD_OFFSET:
        return parse_single_number(parser, "an offset such as 128 or -0.5", &number) &&
               set_offset(parser, parser->number, column, number);
    case KEYWORD_ABS:
        filter->absolute = true;
        break;
    case KEYWORD_ANCHOR:
        parser->anchor_column = (uint32_t)column;
        return parse_anchor(parser, &parser->anchor_x) && parse_anchor(parser, &parser->anchor_y);
    case KEYWORD_COMBINE:
        return parse_combine(parser, &filter->combine);
    case KEYWORD_MATRIX:
    case KEYWORD_CURVE:
    case KEYWORD_TABLE:
        return parse_section(parser, keyword);
    case KEYWORD_COUNT:
        break;
    }
    return true;
}

/* Check that only separators are left in the line. */
static bool parse_line_end(struct parser *parser)
{
    return !skip_separators(parser) ||
           FAIL_HERE(parser, parser->at, "expected the end of the line, found %s", next_word(parser).text);
}

/* Read a line such as `scale 16`. */
static bool parse_setting(struct parser *parser, struct filter *filter)
{
    enum keyword keyword = KEYWORD_COUNT;
    return parse_keyword(parser, &keyword) && parse_value(parser, keyword, filter) && parse_line_end(parser);
}

static bool is_grid_separator(const struct parser *parser)
{
    return is_word(GRID_SEPARATOR, parser->at, token_end(parser));
}

/* Read the line between two grids. */
static bool parse_grid_separator(struct parser *parser)
{
    if (parser->count == 0)
        return FAIL_HERE(parser, parser->at, "expected the rows of the first grid before the line %s", GRID_SEPARATOR);
    if (parser->sections > 0)
        return FAIL_HERE(parser, parser->at, "expected no second grid with a matrix or curves; remove this line");
    if (parser->separator != 0)
        return FAIL_HERE(parser, parser->at, "expected at most two grids, but line %zu already begins the second",
                         parser->separator);
    if (parser->seen[KEYWORD_COMBINE] == 0)
        return FAIL_HERE(
            parser, parser->at,
            "expected a row of taps, found \"%s\", which begins a second grid; add a line before the first "
            "row that says how to combine the sums of both: combine magnitude, combine max or combine sum",
            GRID_SEPARATOR);
    parser->separator = parser->number;
    parser->separator_column = column_of(parser, parser->at);
    parser->first_count = parser->count;
    parser->at = token_end(parser);
    return parse_line_end(parser);
}

/* Skip blanks, and at most MARKS commas or semicolons, to the next tap of a row. */
static bool skip_to_tap(struct parser *parser, int marks)
{
    for (; parser->at < parser->end && is_separator(*parser->at); parser->at++)
        if (!is_blank(*parser->at) && marks-- == 0)
            return FAIL_HERE(parser, parser->at, "expected a tap before this %s; write 0 for an empty place",
                             *parser->at == ',' ? "comma" : "semicolon");
    return true;
}

/* The separators between the taps of a row. */
struct separators {
    char kind;         /* the first separator's kind: a blank, a comma or a semicolon, or NUL before it */
    const char *odd;   /* the first of another kind */
    const char *comma; /* the first comma between two digits */
    bool others;       /* is there any but a comma without blanks? */
};

/* Record the separator from START to the next tap. */
static void record_separator(const struct parser *parser, const char *start, struct separators *seen)
{
    char kind = ' ';
    for (const char *at = start; at < parser->at; at++)
        kind = is_blank(*at) ? kind : *at;
    if (seen->kind == '\0')
        seen->kind = kind;
    if (kind != seen->kind && seen->odd == NULL)
        seen->odd = start;
    if (*start != ',' || parser->at - start > 1)
        seen->others = true;
    else if (seen->comma == NULL && is_digit(start[-1]) && is_digit(*parser->at))
        seen->comma = start;
}

/* Commas alone may separate taps, as in 1,2,1. But `0,5 1,25` more probably has decimal commas than four taps, and `1
 * 2; 3 4` two rows of MATLAB than one. */
static bool check_separators(struct parser *parser, const struct separators *seen)
{
    if (seen->comma != NULL && seen->others)
        return FAIL_HERE(
            parser, seen->comma,
            "expected a space after each comma in a row that has spaces or semicolons, found a digit; " DECIMAL_COMMA);
    return seen->odd == NULL ||
           FAIL_HERE(parser, seen->odd,
                     "expected one kind of separator in a row, found another here; begin a new line "
                     "for each row of taps");
}

/* Read a line of numbers. */
static bool parse_row(struct parser *parser)
{
    const bool in_section = parser->sections > 0;
    const int max = in_section ? MAX_LINES : parser->separator == 0 ? FILTER_MAX + 1 : parser->first_count + FILTER_MAX;
    if (parser->count == max)
        return FAIL_HERE(parser, parser->at, "expected at most %d rows of %s", in_section ? max : FILTER_MAX,
                         in_section ? "numbers" : "taps");
    if (in_section)
        parser->section[parser->sections - 1].count++;
    struct filter_line *line = &parser->lines[parser->count++];
    line->number = parser->number;
    line->count = 0;
    struct separators seen = {0};
    parser->at = parser->start;
    if (!skip_to_tap(parser, 0))
        return false;
    while (parser->at < parser->end) {
        const size_t column = column_of(parser, parser->at);
        if (line->count == (in_section ? POINT_MAX : FILTER_MAX))
            return FAIL_HERE(parser, parser->at, "expected at most %d %s in a row", line->count,
                             in_section ? "numbers" : "taps");
        line->columns[line->count] = (uint32_t)column;
        if (!parse_number(parser,
                          parser->has_levels ? "a level such as 128, or a percentage such as 50%"
                          : in_section       ? "a weight such as 3, -0.5 or 1/16"
                                             : "a tap such as 3, -0.5 or 1/16",
                          &line->numbers[line->count]))
            return false;
        line->count++;
        line->columns[line->count] = (uint32_t)column_of(parser, parser->at);

        const char *end = parser->at;
        if (!skip_to_tap(parser, 1))
            return false;
        if (parser->at < parser->end)
            record_separator(parser, end, &seen);
    }
    return check_separators(parser, &seen);
}

/* The only control bytes in a text are tabs, line ends, and a CR before a line end. */
static bool check_bytes(struct parser *parser, const char *text, const char *end)
{
    size_t line = 1;
    const char *start = text;
    for (const char *at = text; at < end; at++) {
        if (*at == '\n') {
            line++;
            start = at + 1;
            continue;
        }
        const unsigned char byte = (unsigned char)*at;
        const bool line_end = byte == '\r' && (at + 1 == end || at[1] == '\n');
        if ((byte < 0x20 && byte != '\t' && !line_end) || byte == 0x7f)
            return fail_at(parser, line, (size_t)(at - start) + 1,
                           "expected text, found the byte 0x%02x; this is not a filter file", byte);
    }
    return true;
}

static bool parse_lines(struct parser *parser, const char *text, const char *end, struct filter *filter)
{
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *line_end = newline != NULL ? newline : end;
        const char *comment = memchr(text, '#', (size_t)(line_end - text));
        parser->number++;
        parser->start = parser->at = text;
        parser->end = comment != NULL ? comment : line_end;
        if (parser->end > text && parser->end[-1] == '\r')
            parser->end--;
        if (skip_separators(parser) && !(is_letter(*parser->at)      ? parse_setting(parser, filter)
                                         : is_grid_separator(parser) ? parse_grid_separator(parser)
                                                                     : parse_row(parser)))
            return false;
        text = newline != NULL ? newline + 1 : end;
    }
    if (parser->count == 0 && parser->sections == 0)
        return error_about(parser->error, ERROR_USAGE, parser->name,
                           "the file has no taps; expected at least one row of taps");
    return true;
}

/* The first line from FIRST on whose number of taps is not COUNT, or the number of lines. */
static int first_ragged(const struct parser *parser, int first, int64_t count)
{
    while (first < parser->count && parser->lines[first].count == count)
        first++;
    return first;
}

/* Report that line number RAGGED has not as many taps as the first. */
static bool fail_ragged(struct parser *parser, int ragged, const char *hint)
{
    const struct filter_line *first = &parser->lines[0], *line = &parser->lines[ragged];
    const int column = line->count < first->count ? line->count : first->count;
    return fail_at(parser, line->number, line->columns[column], "expected %d tap%s as in line %zu, found %d%s",
                   first->count, first->count == 1 ? "" : "s", first->number, line->count, hint);
}

/* Can the first line be the header of a libvips matrix: WIDTH HEIGHT [SCALE [OFFSET]], without a keyword before it? */
static bool is_matrix_header(const struct parser *parser)
{
    for (int i = 0; i < KEYWORD_COUNT; i++) {
        if (parser->seen[i] != 0)
            return false;
    }
    const struct filter_line *line = &parser->lines[0];
    return line->count >= 2 && line->count <= 4 && number_is_integer(line->numbers[0], 1, FILTER_MAX) &&
           number_is_integer(line->numbers[1], 1, FILTER_MAX);
}

/* Decide how to read the lines. *FIRST becomes the first row of taps: 0, or 1 after the header of a matrix.
 *
 * The text is a matrix if its first line can be a header and exactly HEIGHT lines of WIDTH taps follow. It is rows of
 * taps if all lines have as many taps as the first. Both are true only if the header has as many numbers as the matrix
 * has columns, 2 to 4: for example `3 3 9` and three lines of three. A wrong guess would silently make another picture,
 * so such a text is refused. The message says how to write each of them. */
static bool find_first_row(struct parser *parser, int *first)
{
    const struct filter_line *header = &parser->lines[0];
    const int ragged = first_ragged(parser, 0, header->count);
    const bool plain = ragged == parser->count && parser->count <= FILTER_MAX;
    const bool headed = is_matrix_header(parser);
    const int64_t width = headed ? header->numbers[0].numerator : 0;
    const int64_t height = headed ? header->numbers[1].numerator : 0;
    const bool matrix = headed && parser->count == height + 1 && first_ragged(parser, 1, width) == parser->count;
    *first = matrix;
    if (matrix && plain)
        return fail_at(
            parser, header->number, header->columns[0],
            "these lines are %d rows of %d taps and also a libvips matrix of %d x %d; for the rows put the line `scale "
            "1` before them, for the matrix put `scale` and `offset` lines in place of its first line",
            parser->count, header->count, (int)width, (int)height);
    if (matrix)
        return (header->count < 3 || set_scale(parser, header->number, header->columns[2], header->numbers[2])) &&
               (header->count < 4 || set_offset(parser, header->number, header->columns[3], header->numbers[3]));
    if (plain)
        return true;
    if (ragged == parser->count)
        return fail_at(parser, parser->lines[FILTER_MAX].number, parser->lines[FILTER_MAX].columns[0],
                       "expected at most %d rows of taps", FILTER_MAX);

    char hint[128] = "";
    if (headed && parser->lines[1].count == width)
        snprintf(hint, sizeof hint, " (or, if line %zu begins a libvips matrix, %d rows of %d taps in all)",
                 header->number, (int)height, (int)width);
    return fail_ragged(parser, ragged, hint);
}

/* Check that the lines are two grids of one size. Taps at the same index of both are then over the same sample. */
static bool check_grids(struct parser *parser)
{
    const size_t combine = parser->seen[KEYWORD_COMBINE], column = parser->columns[KEYWORD_COMBINE];
    if (parser->separator == 0)
        return fail_at(parser, combine, column,
                       "expected two grids of taps with a line %s between them, because combine makes one sum of two; "
                       "add the second grid or remove this line",
                       GRID_SEPARATOR);
    if (parser->seen[KEYWORD_ABS] != 0)
        return fail_at(parser, parser->seen[KEYWORD_ABS], parser->columns[KEYWORD_ABS],
                       "expected no abs with combine, whose result has no sign; remove this line");
    const int rows = parser->first_count, second_rows = parser->count - rows;
    if (rows > FILTER_MAX)
        return fail_at(parser, parser->lines[FILTER_MAX].number, parser->lines[FILTER_MAX].columns[0],
                       "expected at most %d rows of taps", FILTER_MAX);
    const int ragged = first_ragged(parser, 0, parser->lines[0].count);
    if (ragged < parser->count)
        return fail_ragged(parser, ragged, "");
    if (second_rows != rows)
        return fail_at(parser, parser->separator, parser->separator_column,
                       "expected %d row%s of taps after this line, as many as the first grid has, found %d; fill the "
                       "smaller grid with zeros",
                       rows, rows == 1 ? "" : "s", second_rows);
    return true;
}

/* Set the filter's size and anchor from the lines, and the parser's taps. */
static bool set_size_and_taps(struct parser *parser, struct filter *filter)
{
    const bool two = filter->combine != COMBINE_NONE;
    int first = 0;
    if (parser->is_rank && parser->separator != 0)
        return fail_at(parser, parser->separator, parser->separator_column,
                       "expected one grid of 0 and 1 after combine and a rank; remove this line and the second grid");
    if (!(two ? check_grids(parser) : find_first_row(parser, &first)))
        return false;
    filter->unscaled = !parser->scaled && !two;
    filter->is_matrix = first > 0;
    filter->width = parser->lines[first].count;
    filter->height = two ? parser->first_count : parser->count - first;
    filter->anchor_x = filter->width / 2;
    filter->anchor_y = filter->height / 2;
    if (parser->seen[KEYWORD_ANCHOR] != 0) {
        if (parser->anchor_x >= filter->width || parser->anchor_y >= filter->height)
            return fail_at(parser, parser->seen[KEYWORD_ANCHOR], parser->anchor_column,
                           "expected an anchor within the %d x %d taps: a column from 0 to %d and a row from 0 to %d",
                           filter->width, filter->height, filter->width - 1, filter->height - 1);
        filter->anchor_x = (int)parser->anchor_x;
        filter->anchor_y = (int)parser->anchor_y;
    }
    for (int y = 0; first + y < parser->count; y++) {
        for (int x = 0; x < filter->width; x++)
            parser->taps[y * filter->width + x] = number_divide(parser->lines[first + y].numbers[x], parser->scale);
    }
    return true;
}

/* Let the filter be what the sections say. */
static bool set_sections(struct parser *parser, struct filter *filter)
{
    struct point_fault fault;
    for (int i = KEYWORD_SCALE; i < KEYWORD_MATRIX; i++)
        if (parser->seen[i] != 0)
            return fail_at(parser, parser->seen[i], parser->columns[i],
                           "expected no %s in a filter of a matrix or curves; remove this line", keywords[i]);
    return point_read(parser->section, parser->sections, filter, &fault) ||
           fail_at(parser, fault.number, fault.column, "%s", fault.sentence);
}

static bool has_sample(const void *context, int x, int y)
{
    const struct parser *parser = context;
    return parser->lines[y].numbers[x].value == 1;
}

/* Let the filter, whose size and anchor are set, be ranks in a footprint. */
static bool set_footprint(struct parser *parser, struct filter *filter)
{
    for (int i = KEYWORD_SCALE; i <= KEYWORD_ABS; i++)
        if (parser->seen[i] != 0)
            return fail_at(parser, parser->seen[i], parser->columns[i],
                           "expected no %s in a filter of ranks, which has no sums; remove this line", keywords[i]);
    for (int y = 0; y < filter->height; y++)
        for (int x = 0; x < filter->width; x++)
            if (!number_is_integer(parser->lines[y].numbers[x], 0, 1))
                return fail_at(parser, parser->lines[y].number, parser->lines[y].columns[x],
                               "expected 1 for a sample that is put in order, or 0 for a sample that is not");
    const int anchor_x = filter->anchor_x, anchor_y = filter->anchor_y;
    if (!rank_make(filter, filter->width, filter->height, has_sample, parser, parser->share))
        return fail_at(parser, parser->lines[0].number, parser->lines[0].columns[0],
                       "expected at least one 1, a sample that is put in order");
    filter->anchor_x = filter->rank.anchor_x = anchor_x;
    filter->anchor_y = filter->rank.anchor_y = anchor_y;
    return true;
}

/* Let the filter be the grids of taps. */
static bool set_grids(struct parser *parser, struct filter *filter)
{
    if (!set_size_and_taps(parser, filter))
        return false;
    if (parser->is_rank)
        return set_footprint(parser, filter);
    if (!filter_set_taps(filter, parser->taps, parser->name, parser->error))
        return false;
    filter_derive(filter, parser->offset);
    return true;
}

bool filter_parse(const char *text, size_t size, const char *name, struct filter *filter, struct error *error)
{
    memset(filter, 0, sizeof *filter);
    filter_set_name(filter, name);
    if (size > FILTER_MAX_TEXT)
        return error_about(error, ERROR_USAGE, name, "is larger than the limit of %zu bytes; give a smaller file",
                           FILTER_MAX_TEXT);

    struct parser *parser = calloc(1, sizeof *parser);
    if (parser == NULL)
        return error_no_memory(error, "the taps of %s", name);
    parser->name = name;
    parser->error = error;
    parser->scale = NUMBER_ONE;
    parser->offset = NUMBER_ZERO;

    const char *end = text + size;
    const bool done = text_begin(&text, end, name, ERROR_USAGE, error) && check_bytes(parser, text, end) &&
                      parse_lines(parser, text, end, filter) &&
                      (parser->sections > 0 ? set_sections(parser, filter) : set_grids(parser, filter));
    free(parser);
    return done;
}
