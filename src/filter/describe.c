/* SPDX-License-Identifier: MIT
 *
 * The description of a filter, for --show, as text and as JSON. */
#include "base/text.h"
#include "filter/filter_internal.h"

#include <math.h>
#include <stdio.h>

static const char *const combine_names[COMBINE_COUNT] = {
    [COMBINE_NONE] = "none", [COMBINE_MAGNITUDE] = "magnitude", [COMBINE_MAX] = "max", [COMBINE_SUM] = "sum"};

const char *combine_name(enum combine combine)
{
    return combine_names[combine];
}

static void print_vector(FILE *stream, const char *name, const int32_t *values, int count)
{
    fprintf(stream, "%s", name);
    for (int i = 0; i < count; i++)
        fprintf(stream, " %d", values[i]);
}

/* The sum of the taps of a grid, 0 or 1. */
static int64_t grid_sum(const struct filter *filter, int grid)
{
    const int count = filter->width * filter->height;
    int64_t sum = 0;
    for (int i = grid * count; i < (grid + 1) * count; i++)
        sum += filter->taps[i];
    return sum;
}

/* Print the sum of the taps, and its effect on an image of one colour. */
static void print_sum(FILE *stream, const struct filter *filter)
{
    double sum = (double)filter->tap_sum;
    fprintf(stream, "  sum        %lld", (long long)filter->tap_sum);
    if (filter->combine != COMBINE_NONE) {
        const int64_t second_sum = grid_sum(filter, 1);
        fprintf(stream, " and %lld", (long long)second_sum);
        const double first = fabs(sum), second = fabs((double)second_sum);
        sum = filter->combine == COMBINE_MAX   ? fmax(first, second)
              : filter->combine == COMBINE_SUM ? first + second
                                               : sqrt(first * first + second * second);
    }
    fprintf(stream, ": a constant image ");
    if (sum == filter->scale)
        fprintf(stream, "stays as it is");
    else if (sum == 0.0)
        fprintf(stream, "becomes 0");
    else
        fprintf(stream, "is multiplied by %.6g", sum / filter->scale);
    if (filter->offset != 0.0)
        fprintf(stream, ", then the offset is added");
    fprintf(stream, "\n");
}

static void print_exactness(FILE *stream, const struct filter *filter)
{
    if (filter->exact) {
        fprintf(stream, "  taps       exact\n");
        return;
    }
    int power = 0; /* the scale of rounded taps is a power of two */
    while ((int64_t)1 << power < filter->scale)
        power++;
    fprintf(stream, "  taps       rounded once to 1/2^%d, largest error %.2g of 255 levels\n", power,
            filter->largest_error);
}

static void print_taps(FILE *stream, const struct filter *filter)
{
    const int rows = filter_grids(filter) * filter->height;
    int widest = 0;
    for (int i = 0; i < filter->width * rows; i++) {
        const int width = snprintf(NULL, 0, "%d", filter->taps[i]);
        if (width > widest)
            widest = width;
    }
    for (int y = 0; y < rows; y++) {
        if (y == filter->height)
            fprintf(stream, "  %s\n", GRID_SEPARATOR);
        fprintf(stream, " ");
        for (int x = 0; x < filter->width; x++)
            fprintf(stream, " %*d", widest, filter->taps[y * filter->width + x]);
        fprintf(stream, "\n");
    }
}

char *filter_describe(const struct filter *filter)
{
    struct text_buffer text;
    FILE *stream = text_open(&text);
    if (stream == NULL)
        return NULL;
    text_print_escaped(stream, filter->name);
    fputs(filter->title[0] != '\0' ? ": " : "", stream);
    text_print_escaped(stream, filter->title);
    fputc('\n', stream);
    static const char *const formulas[COMBINE_COUNT] = {
        [COMBINE_MAGNITUDE] = "sqrt(s1^2 + s2^2)", [COMBINE_MAX] = "max(|s1|, |s2|)", [COMBINE_SUM] = "|s1| + |s2|"};
    const bool two = filter->combine != COMBINE_NONE;
    fprintf(stream, "  size       %d x %d%s, anchor %d %d\n", filter->width, filter->height, two ? ", two grids" : "",
            filter->anchor_x, filter->anchor_y);
    if (two)
        fprintf(stream, "  combine    %s: %s of the grids' sums\n", combine_names[filter->combine],
                formulas[filter->combine]);
    fprintf(stream, "  scale      %d\n", filter->scale);
    print_sum(stream, filter);
    fprintf(stream, "  offset     %.10g\n", filter->offset);
    if (filter->absolute)
        fprintf(stream, "  abs        the sum's absolute value is taken\n");
    print_exactness(stream, filter);
    if (!two)
        fprintf(stream, "  separable  ");
    if (two) {
        fprintf(stream, "\n");
    } else if (filter->separable) {
        print_vector(stream, "yes: column", filter->column, filter->height);
        print_vector(stream, ", row", filter->row, filter->width);
        fprintf(stream, "\n\n");
    } else {
        fprintf(stream, "no\n\n");
    }
    print_taps(stream, filter);
    return text_close(stream, &text) ? text.bytes : NULL;
}

/* ---- JSON ---- */

/* VALUES may be NULL. */
static void print_array(FILE *file, const char *name, const int32_t *values, int count)
{
    fprintf(file, ",\"%s\":%s", name, values == NULL ? "null" : "[");
    if (values == NULL)
        return;
    for (int i = 0; i < count; i++)
        fprintf(file, "%s%d", i == 0 ? "" : ",", values[i]);
    fputc(']', file);
}

void filter_print_json(FILE *file, const struct filter *filter)
{
    fputs("{\"name\":", file);
    text_print_json(file, filter->name);
    text_print_json_member(file, "title", filter->title);
    fprintf(file, ",\"width\":%d,\"height\":%d,\"anchor\":[%d,%d]", filter->width, filter->height, filter->anchor_x,
            filter->anchor_y);
    text_print_json_member(file, "combine", combine_name(filter->combine));
    fprintf(file, ",\"scale\":%d,\"sums\":[", filter->scale);
    for (int grid = 0; grid < filter_grids(filter); grid++)
        fprintf(file, "%s%lld", grid > 0 ? "," : "", (long long)grid_sum(filter, grid));
    fprintf(file, "],\"offset\":%.17g,\"absolute\":%s,\"exact\":%s,\"largest_error\":%.6g,\"separable\":%s",
            filter->offset, filter->absolute ? "true" : "false", filter->exact ? "true" : "false",
            filter->exact ? 0 : filter->largest_error, filter->separable ? "true" : "false");
    print_array(file, "column", filter->separable ? filter->column : NULL, filter->height);
    print_array(file, "row", filter->separable ? filter->row : NULL, filter->width);
    print_array(file, "taps", filter->taps, filter_grids(filter) * filter->width * filter->height);
    fputc('}', file);
}
