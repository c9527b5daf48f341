/* SPDX-License-Identifier: MIT
 *
 * Filters that change each pixel by itself: matrices and curves, from a text or from a few parameters. */
#include "base/text.h"
#include "filter/filter_internal.h"
#include "image/linear.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

__extension__ typedef __int128 int128;

static const char *const channel_names[4] = {"red", "green", "blue", "alpha"};

/* ---- Curves ---- */

/* A number from 0 to 1 as a curve's cubic has it. */
enum { SMOOTH_BITS = 22, SLOPE_BITS = 16 };

/* The slope between points I and I + 1, in 2^-SLOPE_BITS. */
static int128 secant(const struct point_curve *curve, int i)
{
    return (int128)(curve->out[i + 1] - curve->out[i]) * (1 << SLOPE_BITS) / (curve->in[i + 1] - curve->in[i]);
}

/* The slope at point I: the harmonic mean of the slopes on both sides (Fritsch and Butland), or 0 if they differ in
 * sign. It is at most twice the smaller one, so the cubic is monotone (Fritsch and Carlson). */
static int128 slope(const struct point_curve *curve, int i)
{
    const int128 before = secant(curve, i > 0 ? i - 1 : 0);
    const int128 after = secant(curve, i < curve->count - 1 ? i : curve->count - 2);
    return before == 0 || after == 0 || (before < 0) != (after < 0) ? 0 : 2 * before * after / (before + after);
}

/* The output less that of point I, at distance T from it, where the next point is at distance H: Hermite's cubic in
 * integers. It is rounded down once, so it is monotone, too. Outputs have 30 bits, and H times a slope has 31 +
 * SLOPE_BITS, so all products are below 2^116. */
static int128 curve_smooth(const struct point_curve *curve, int i, int64_t t, int64_t h)
{
    const int128 one = (int128)1 << SMOOTH_BITS, s = ((int128)t << SMOOTH_BITS) / h, u = one - s;
    const int128 rise = (int128)(curve->out[i + 1] - curve->out[i]) * (s * s * (3 * one - 2 * s)) * (1 << SLOPE_BITS);
    const int128 bend = h * (slope(curve, i) * u - slope(curve, i + 1) * s) * (s * u);
    return (rise + bend) >> (3 * SMOOTH_BITS + SLOPE_BITS);
}

uint16_t point_curve_level(const struct point_curve *curve, uint16_t level)
{
    const int64_t x = (int64_t)level * POINT_UNIT;
    int i = 0; /* the last point that is not after X, or the first */
    while (i < curve->count - 1 && curve->in[i + 1] <= x)
        i++;
    int128 numerator = curve->out[i], denominator = 1; /* their quotient is the output in units */
    if (i < curve->count - 1 && x > curve->in[i] && curve->shape != POINT_STEPS) {
        const int64_t t = x - curve->in[i], h = curve->in[i + 1] - curve->in[i],
                      rise = curve->out[i + 1] - curve->out[i];
        switch (curve->shape) {
        case POINT_LINEAR:
            numerator = numerator * h + (int128)rise * t;
            denominator = h;
            break;
        case POINT_SMOOTH:
            numerator += curve_smooth(curve, i, t, h);
            break;
        case POINT_GAMMA:
            numerator += (int64_t)floor((double)rise * linear_power((double)t / (double)h, 1 / curve->gamma) + 0.5);
            break;
        case POINT_STEPS:
            break;
        }
    }
    /* Points are from 0 to 65535, and so are all levels between them. */
    return (uint16_t)((2 * numerator + denominator * POINT_UNIT) / (2 * denominator * POINT_UNIT));
}

/* ---- From sections to a filter ---- */

ERROR_PRINTF(4, 5)
static bool fail(struct point_fault *fault, size_t number, size_t column, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fault->sentence, sizeof fault->sentence, format, arguments);
    va_end(arguments);
    fault->number = number;
    fault->column = column;
    return false;
}

/* Set a row from numbers: COLUMNS weights, and then an offset if HAS_OFFSET. GRID is scratch: weights become integers
 * as the taps of a grid do. */
static bool set_row(const struct filter_line *line, int columns, bool has_offset, struct filter *grid,
                    struct point_row *row, struct point_fault *fault)
{
    struct error error;
    struct number offset = has_offset ? line->numbers[columns] : NUMBER_ZERO;
    memset(grid, 0, sizeof *grid);
    grid->width = columns;
    grid->height = 1;
    if (!(fabs(offset.value) <= 65535))
        return fail(fault, line->number, line->columns[columns], "expected an offset from -65535 to 65535");
    if (!filter_set_taps(grid, line->numbers, "a row", &error))
        return fail(fault, line->number, line->columns[0], "expected weights whose absolute values sum to at most %d",
                    FILTER_MAX_SUM);
    filter_derive(grid, offset.denominator == 0 ? number_round(offset) : offset);
    memcpy(row->weights, grid->taps, (size_t)columns * sizeof *row->weights);
    row->scale = grid->scale;
    row->bias = grid->bias;
    row->bias16 = grid->bias16;
    row->offset = grid->offset;
    row->exact = grid->exact;
    row->largest_error = grid->largest_error;
    return true;
}

static bool read_matrix(const struct point_section *section, struct point *point, struct point_fault *fault)
{
    const int rows = section->count, numbers = rows > 0 ? section->lines[0].count : 0;
    const bool has_alpha = rows == 4 || numbers == 5, has_offset = numbers == (has_alpha ? 5 : 4);
    if (!(rows == 1 || rows == 3 || rows == 4) || numbers < (has_alpha ? 4 : 3) || numbers > 5)
        return fail(fault, section->number, section->column,
                    "expected a matrix after this line: 1 or 3 rows of 3 to 5 numbers, or 4 rows of 4 or 5 numbers; "
                    "found %d row%s, the first of %d numbers",
                    rows, rows == 1 ? "" : "s", numbers);
    if (point->curve[0].count + point->curve[1].count + point->curve[2].count + point->curve[3].count > 0)
        return fail(fault, section->number, section->column, "expected the matrix before all curves; move it up");
    struct filter *grid = malloc(sizeof *grid); /* large */
    if (grid == NULL)
        return fail(fault, section->number, section->column, "there is not enough memory for a matrix");
    point->rows = rows;
    point->columns = has_alpha ? 4 : 3;
    bool done = true;
    for (int i = 0; done && i < rows; i++) {
        const struct filter_line *line = &section->lines[i];
        done = line->count == numbers
                   ? set_row(line, point->columns, has_offset, grid, &point->row[i], fault)
                   : fail(fault, line->number, line->columns[line->count < numbers ? line->count : numbers],
                          "expected %d numbers as in the first row of the matrix, found %d", numbers, line->count);
    }
    free(grid);
    return done;
}

/* A level of 255 in units of a point. */
static bool to_units(const struct filter_line *line, int index, int64_t *units, struct point_fault *fault)
{
    const struct number number = line->numbers[index];
    const int64_t one = (int64_t)257 * POINT_UNIT, denominator = number.denominator;
    if (!(number.value >= 0 && number.value <= 255))
        return fail(fault, line->number, line->columns[index],
                    "expected a level from 0 to 255, or a percentage from 0%% to 100%%");
    *units = denominator == 0
                 ? llround(number.value * (double)one)
                 : (int64_t)((2 * (int128)number.numerator * one + denominator) / (2 * (int128)denominator));
    return true;
}

static bool read_points(const struct point_section *section, struct point_curve *curve, struct point_fault *fault)
{
    for (int i = 0; i < section->count; i++) {
        const struct filter_line *line = &section->lines[i];
        if (i == POINT_MAX)
            return fail(fault, line->number, line->columns[0], "expected at most %d points of a curve", POINT_MAX);
        if (line->count != 2)
            return fail(fault, line->number, line->columns[line->count < 2 ? line->count : 2],
                        "expected a point of the curve, the two numbers IN OUT, found %d", line->count);
        if (!to_units(line, 0, &curve->in[i], fault) || !to_units(line, 1, &curve->out[i], fault))
            return false;
        if (i > 0 && curve->in[i] <= curve->in[i - 1])
            return fail(fault, line->number, line->columns[0],
                        "expected a larger first number than in the point before: a level has one result");
        curve->count++;
    }
    return curve->count > 1 || fail(fault, section->number, section->column,
                                    "expected at least two points IN OUT after this line, found %d", curve->count);
}

static bool read_table(const struct point_section *section, struct point_curve *curve, struct point_fault *fault)
{
    for (int i = 0; i < section->count; i++)
        for (int k = 0; k < section->lines[i].count; k++, curve->count++) {
            if (curve->count == POINT_MAX)
                return fail(fault, section->lines[i].number, section->lines[i].columns[k],
                            "expected %d levels, found more", POINT_MAX);
            curve->in[curve->count] = (int64_t)curve->count * 257 * POINT_UNIT;
            if (!to_units(&section->lines[i], k, &curve->out[curve->count], fault))
                return false;
        }
    return curve->count == POINT_MAX || fail(fault, section->number, section->column,
                                             "expected %d levels after this line, found %d", POINT_MAX, curve->count);
}

bool point_read(const struct point_section *sections, int count, struct filter *filter, struct point_fault *fault)
{
    struct point *point = &filter->point;
    filter->kind = STEP_POINT;
    filter->width = filter->height = 1;
    for (int i = 0; i < count; i++) {
        const struct point_section *section = &sections[i];
        struct point_curve curve = {.shape = section->shape, .gamma = section->gamma};
        if (section->channels == 0) {
            if (!read_matrix(section, point, fault))
                return false;
            continue;
        }
        if (!(section->is_table ? read_table : read_points)(section, &curve, fault))
            return false;
        for (int c = 0; c < 4; c++) {
            if (!(section->channels & 1u << c))
                continue;
            if (point->curve[c].count > 0)
                return fail(fault, section->number, section->column, "expected one curve for %s, found a second",
                            channel_names[c]);
            point->curve[c] = curve;
        }
    }
    return true;
}

/* ---- Parameters ---- */

bool write_levels(const struct point_words *words, FILE *text)
{
    const char *gamma = words->count > 2 ? words->text[2] : "";
    fprintf(text, "curve %s %s\n%s 0\n%s 255\n", words->count > 2 ? "gamma" : "", gamma, words->text[0],
            words->text[1]);
    return true;
}

bool write_gamma(const struct point_words *words, FILE *text)
{
    fprintf(text, "curve gamma %s\n0 0\n255 255\n", words->text[0]);
    return true;
}

/* Write the rows of a matrix that multiplies each colour by ITS_OWN, and all grey by GREY, the weights of Rec. 709. */
static void write_mix(double its_own, double grey, double offset, FILE *text)
{
    static const double weights[3] = {0.2126, 0.7152, 0.0722};
    fputs("matrix\n", text);
    for (int row = 0; row < 3; row++, fprintf(text, "%.12f\n", offset))
        for (int c = 0; c < 3; c++)
            fprintf(text, "%.12f ", grey * weights[c] + (c == row ? its_own : 0));
}

bool write_brightness(const struct point_words *words, FILE *text)
{
    write_mix(1, 0, words->value[0] * 2.55, text);
    return fabs(words->value[0]) <= 100;
}

bool write_contrast(const struct point_words *words, FILE *text)
{
    const double factor = 1 + words->value[0] / 100;
    write_mix(factor, 0, 127.5 * (1 - factor), text);
    return factor >= 0 && factor <= 11;
}

bool write_saturation(const struct point_words *words, FILE *text)
{
    const double factor = 1 + words->value[0] / 100;
    write_mix(factor, 1 - factor, 0, text);
    return factor >= 0 && factor <= 11;
}

bool write_threshold(const struct point_words *words, FILE *text)
{
    const char *percentage = words->text[0], *sign = strchr(percentage, '%') != NULL ? "" : "%";
    fprintf(text, "matrix\n0.2126 0.7152 0.0722\ncurve steps\n0 0\n%s%s 100%%\n", percentage, sign);
    return words->value[0] > 0 && words->value[0] <= 100;
}

bool write_posterize(const struct point_words *words, FILE *text)
{
    const int levels = words->value[0] >= 2 && words->value[0] <= 128 ? (int)words->value[0] : 0;
    fputs("curve steps\n", text);
    for (int i = 0; i < levels; i++)
        fprintf(text, "%d/%d %d/%d\n", 255 * i, levels, 255 * i, levels - 1);
    return levels == words->value[0] && strchr(words->text[0], '%') == NULL;
}

bool write_tint(const struct point_words *words, FILE *text)
{
    uint8_t colour[3];
    if (!text_read_colour(words->text[0], colour))
        return false;
    fputs("matrix\n", text);
    for (int c = 0; c < 3; c++)
        fprintf(text, "%d/2550000 %d/2550000 %d/2550000\n", 2126 * colour[c], 7152 * colour[c], 722 * colour[c]);
    return true;
}

bool write_swap(const struct point_words *words, FILE *text)
{
    const char *letters = words->text[0];
    if (strlen(letters) != 3 || strspn(letters, "RGB") != 3)
        return false;
    fputs("matrix\n", text);
    for (int c = 0; c < 3; c++)
        fprintf(text, "%d %d %d\n", letters[c] == 'R', letters[c] == 'G', letters[c] == 'B');
    return true;
}

/* Read the parameters after the first colon of SPEC. Numbers may have a percent sign. */
static bool read_words(const struct filter_form *form, const char *spec, struct point_words *words)
{
    const char *at = spec + strcspn(spec, ":");
    for (words->count = 0; *at == ':' && words->count < form->parameters; words->count++) {
        const char *end = at + 1 + strcspn(at + 1, ":");
        char *text = words->text[words->count];
        struct number number;
        if (end - at - 1 >= (ptrdiff_t)sizeof words->text[0])
            return false;
        snprintf(text, sizeof words->text[0], "%.*s", (int)(end - at - 1), at + 1);
        const bool is_number = number_read(at + 1, end - (end[-1] == '%'), &number) == NUMBER_FINE;
        words->value[words->count] = is_number ? number.value : NAN;
        if (!is_number && form->write != write_tint && form->write != write_swap)
            return false;
        at = end;
    }
    return *at == '\0' && words->count >= form->parameters - form->optional;
}

bool filter_make_point(const struct filter_form *form, const char *spec, struct filter *filter, struct filter *filter16,
                       struct error *error)
{
    (void)filter16;
    struct point_words words;
    struct text_buffer text;
    struct error reason;
    if (strlen(spec) >= sizeof filter->name || !read_words(form, spec, &words))
        return fail_spec(spec, form->usage, error);
    FILE *stream = text_open(&text);
    if (stream == NULL)
        return error_no_memory(error, "a filter");
    const bool is_right = form->write(&words, stream), is_whole = text_close(stream, &text);
    const bool done = is_whole && is_right && filter_parse(text.bytes, text.size, spec, filter, &reason);
    free(text.bytes);
    if (!is_whole)
        return error_no_memory(error, "a filter");
    if (done)
        snprintf(filter->title, sizeof filter->title, "%s", form->title);
    return done || fail_spec(spec, form->usage, error);
}

bool filter_make_automatic(const struct filter_form *form, const char *spec, struct filter *filter,
                           struct filter *filter16, struct error *error)
{
    (void)filter16;
    const size_t word = strcspn(spec, ":"), length = strlen(spec);
    struct number clip = NUMBER_ZERO;
    if (length >= sizeof filter->name ||
        (spec[word] == ':' &&
         (number_read(spec + word + 1, spec + length - (spec[length - 1] == '%'), &clip) != NUMBER_FINE ||
          !(clip.value >= 0 && clip.value <= 49))))
        return fail_spec(spec, form->usage, error);
    if (clip.denominator == 0 || clip.denominator > 1 << 20)
        clip = number_round(clip);
    filter_begin(STEP_POINT, spec, form->title, filter);
    filter->point.automatic = is_word("auto-levels", spec, spec + word) ? AUTOMATIC_EACH : AUTOMATIC_ALL;
    filter->point.clip = (struct share){clip.numerator, 100 * clip.denominator};
    return true;
}

/* ---- What it does ---- */

bool point_is_diagonal(const struct point *point)
{
    bool is_own = point->rows >= 3;
    for (int i = 0; i < point->rows; i++)
        for (int c = 0; c < point->columns; c++)
            is_own &= c == i || point->row[i].weights[c] == 0;
    return is_own;
}

bool filter_uses_alpha(const struct filter *filter)
{
    return filter->kind == STEP_POINT &&
           (filter->point.columns == 4 || filter->point.rows == 4 || filter->point.curve[3].count > 0);
}

bool point_curve_equal(const struct point_curve *a, const struct point_curve *b)
{
    bool is_equal = a->count == b->count && (a->count == 0 || (a->shape == b->shape && a->gamma == b->gamma));
    for (int i = 0; is_equal && i < a->count; i++)
        is_equal = a->in[i] == b->in[i] && a->out[i] == b->out[i];
    return is_equal;
}

static bool are_equal_rows(const struct point_row *a, const struct point_row *b)
{
    bool is_equal = a->scale == b->scale && a->bias16 == b->bias16;
    for (int c = 0; c < 4; c++)
        is_equal &= a->weights[c] == b->weights[c];
    return is_equal;
}

/* Are the sums of both rows equal for a grey pixel? */
static bool are_grey(const struct point_row *a, const struct point_row *b)
{
    return taps_sum(a->weights, 3) * b->scale == taps_sum(b->weights, 3) * a->scale &&
           (int64_t)a->weights[3] * b->scale == (int64_t)b->weights[3] * a->scale && a->offset == b->offset;
}

/* Do all colours have one curve? */
static bool has_one_curve(const struct point *point)
{
    return point_curve_equal(&point->curve[0], &point->curve[1]) &&
           point_curve_equal(&point->curve[0], &point->curve[2]);
}

bool filter_makes_colours(const struct filter *filter)
{
    const struct point *point = &filter->point;
    return filter->kind == STEP_POINT &&
           (!has_one_curve(point) || (point->colours != NULL && point->colours->curves > 1) ||
            (point->rows >= 3 &&
             !(are_grey(&point->row[0], &point->row[1]) && are_grey(&point->row[0], &point->row[2]))));
}

bool filter_is_flat(const struct filter *filter, int channels, int bits)
{
    const struct point *point = &filter->point;
    return filter->kind == STEP_POINT && point->automatic == AUTOMATIC_NONE && channels % 2 == 1 &&
           (point->rows == 0 || (bits < 32 && point_is_diagonal(point))) && !filter_makes_colours(filter) &&
           !filter_uses_alpha(filter);
}

bool filter_makes_grey(const struct filter *filter)
{
    const struct point *point = &filter->point;
    const struct point_row *row = point->row;
    return filter->kind == STEP_POINT && !filter->region.is_set && has_one_curve(point) &&
           (point->rows == 1 ||
            (point->rows >= 3 && are_equal_rows(&row[0], &row[1]) && are_equal_rows(&row[0], &row[2])));
}

bool filter_make_to_srgb(const struct filter_form *form, const char *spec, struct filter *filter,
                         struct filter *filter16, struct error *error)
{
    (void)filter16;
    const char *word = spec + strcspn(spec, ":");
    if (*word != '\0' && strcmp(word, ":black-point") != 0)
        return fail_spec(spec, form->usage, error);
    filter_begin(STEP_POINT, spec, form->title, filter);
    filter->point.needs_colours = true;
    filter->point.black_point = *word != '\0';
    return true;
}

/* ---- The row of the kind ---- */

bool point_joins_planes(const struct filter *filter)
{
    (void)filter; /* alpha is the last of all planes */
    return true;
}

static const char *shape_name(enum point_shape shape)
{
    static const char *const names[] = {"linear", "smooth", "steps", "gamma"};
    return names[shape];
}

void point_describe(FILE *stream, const struct filter *filter)
{
    const struct point *point = &filter->point;
    if (point->automatic != AUTOMATIC_NONE)
        fprintf(stream, "  levels     from the picture's, %s; at each end %.7g%% of the samples may clip\n",
                point->automatic == AUTOMATIC_EACH ? "each colour by itself" : "all colours together",
                100 * (double)point->clip.numerator / (double)point->clip.denominator);
    if (point->needs_colours)
        fprintf(
            stream,
            "  colours    by the curves and primaries of each file; 8 and 16 bits, through light of 16 bits\n"
            "  tables     a profile of tables, or of CMYK: by littleCMS, whose versions differ by a level; relative "
            "intent%s\n",
            point->black_point ? ", black becomes black" : "");
    for (int i = 0; i < point->rows; i++) {
        const struct point_row *row = &point->row[i];
        fprintf(stream, "  %-10s", point->rows == 1 ? "colours" : channel_names[i]);
        for (int c = 0; c < point->columns; c++)
            fprintf(stream, " %d", row->weights[c]);
        fprintf(stream, " over %d, offset %s, ", row->scale, text_of_double(row->offset, (char[TEXT_OF_SIZE]){0}));
        if (row->exact)
            fputs("exact\n", stream);
        else
            fprintf(stream, "rounded once, largest error %.2g of 255 levels\n", row->largest_error);
    }
    for (int c = 0; c < 4; c++) {
        const struct point_curve *curve = &point->curve[c];
        const bool is_first = c == 0 || !point_curve_equal(curve, &curve[-1]);
        if (curve->count == 0 || !is_first)
            continue;
        fprintf(stream, "  curve      %s", channel_names[c]);
        for (int next = c + 1; next < 4 && point_curve_equal(curve, &point->curve[next]); next++)
            fprintf(stream, ", %s", channel_names[next]);
        fprintf(stream, ": %s", shape_name(curve->shape));
        if (curve->shape == POINT_GAMMA)
            fprintf(stream, " %s", text_of_double(curve->gamma, (char[TEXT_OF_SIZE]){0}));
        for (int i = 0; i < curve->count; i++)
            fprintf(stream, "%s%.7g to %.7g", i % 8 == 0 ? "\n    " : ", ", (double)curve->in[i] / (257 * POINT_UNIT),
                    (double)curve->out[i] / (257 * POINT_UNIT));
        fputc('\n', stream);
    }
}

void point_print(FILE *file, const struct filter *filter)
{
    static const char *const automatic[] = {"null", "\"each\"", "\"all\""};
    const struct point *point = &filter->point;
    fprintf(file, "\"automatic\":%s,\"clip\":%s,\"matrix\":[",
            point->black_point     ? "\"file, black point\""
            : point->needs_colours ? "\"file\""
                                   : automatic[point->automatic],
            point->automatic == AUTOMATIC_NONE
                ? "null"
                : text_of_double(100 * (double)point->clip.numerator / (double)point->clip.denominator,
                                 (char[TEXT_OF_SIZE]){0}));
    for (int i = 0; i < point->rows; i++) {
        const struct point_row *row = &point->row[i];
        fprintf(file, "%s{\"weights\":[", i > 0 ? "," : "");
        for (int c = 0; c < point->columns; c++)
            fprintf(file, "%s%d", c > 0 ? "," : "", row->weights[c]);
        fprintf(file, "],\"scale\":%d,\"offset\":%s,\"exact\":%s,\"largest_error\":%.17g}", row->scale,
                text_of_double(row->offset, (char[TEXT_OF_SIZE]){0}), row->exact ? "true" : "false",
                row->largest_error);
    }
    fputs("],\"curves\":[", file);
    for (int c = 0, printed = 0; c < 4; c++) {
        const struct point_curve *curve = &point->curve[c];
        if (curve->count == 0)
            continue;
        fprintf(file, "%s{\"channel\":\"%s\",\"shape\":\"%s\",\"gamma\":%s,\"points\":[", printed++ > 0 ? "," : "",
                channel_names[c], shape_name(curve->shape),
                text_of_double(curve->shape == POINT_GAMMA ? curve->gamma : 1, (char[TEXT_OF_SIZE]){0}));
        for (int i = 0; i < curve->count; i++)
            fprintf(file, "%s[%.10g,%.10g]", i > 0 ? "," : "", (double)curve->in[i] / (257 * POINT_UNIT),
                    (double)curve->out[i] / (257 * POINT_UNIT));
        fputs("]}", file);
    }
    fputc(']', file);
}
