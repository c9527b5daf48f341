/* SPDX-License-Identifier: MIT
 *
 * The description of a filter, for --show. */
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

/* Print the sum of the taps, and its effect on an image of one colour. */
static void print_sum(FILE *stream, const struct filter *filter)
{
    double sum = (double)filter->tap_sum;
    fprintf(stream, "  sum        %lld", (long long)filter->tap_sum);
    if (filter->combine != COMBINE_NONE) {
        const int count = filter->width * filter->height;
        int64_t second_sum = 0;
        for (int i = count; i < 2 * count; i++)
            second_sum += filter->taps[i];
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
