/* SPDX-License-Identifier: MIT */
#include "base/text.h"
#include "filter/filter_internal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    return taps_sum(filter->taps + (ptrdiff_t)grid * count, count);
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

/* Print 1 / SCALE, as a power of 2 if it is one. */
static void print_unit(FILE *stream, int64_t scale)
{
    int power = 0;
    while ((int64_t)1 << power < scale)
        power++;
    if ((int64_t)1 << power == scale)
        fprintf(stream, "1/2^%d", power);
    else
        fprintf(stream, "1/%lld", (long long)scale);
}

static void print_exactness(FILE *stream, const struct filter *filter, int levels)
{
    fputs("  taps       ", stream);
    if (filter->exact) {
        fputs("exact\n", stream);
        return;
    }
    fputs("rounded once to ", stream);
    if (filter->two_pass) {
        print_unit(stream, taps_sum(filter->row, filter->width));
        fputs(" and ", stream);
        print_unit(stream, taps_sum(filter->column, filter->height));
    } else {
        print_unit(stream, filter->scale);
    }
    fprintf(stream, ", largest error %.2g of %d levels\n", filter->largest_error, levels);
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

static void describe_passes(FILE *stream, const struct filter *filter, int levels)
{
    fputs("  passes     the row", stream);
    if (filter->row_shift != 0) {
        fputs(", its sums rounded to ", stream);
        print_unit(stream, taps_sum(filter->row, filter->width) >> filter->row_shift);
        fputs(" of a level", stream);
    }
    fputs(", then the column\n", stream);
    if (filter->amount != 0)
        fprintf(stream, "  mask       in + %.7g (in - blur), where |in - blur| is at least %.6g levels\n",
                ldexp(filter->amount, -UNSHARP_AMOUNT_BITS), ldexp(filter->threshold, -UNSHARP_LEVEL_BITS));
    fprintf(stream, "  sum        %lld and %lld: a constant image stays as it is\n",
            (long long)taps_sum(filter->row, filter->width), (long long)taps_sum(filter->column, filter->height));
    print_exactness(stream, filter, levels);
    print_vector(stream, "  row       ", filter->row, filter->width);
    print_vector(stream, "\n  column    ", filter->column, filter->height);
    fputc('\n', stream);
}

static void describe_grids(FILE *stream, const struct filter *filter, int levels)
{
    static const char *const formulas[COMBINE_COUNT] = {
        [COMBINE_MAGNITUDE] = "sqrt(s1^2 + s2^2)", [COMBINE_MAX] = "max(|s1|, |s2|)", [COMBINE_SUM] = "|s1| + |s2|"};
    const bool two = filter->combine != COMBINE_NONE;
    if (two)
        fprintf(stream, "  combine    %s: %s of the grids' sums\n", combine_names[filter->combine],
                formulas[filter->combine]);
    fprintf(stream, "  scale      %d\n", filter->scale);
    print_sum(stream, filter);
    fprintf(stream, "  offset     %s\n", text_of_double(filter->offset, (char[TEXT_OF_SIZE]){0}));
    if (filter->absolute)
        fprintf(stream, "  abs        the sum's absolute value is taken\n");
    print_exactness(stream, filter, levels);
    if (two) {
        fprintf(stream, "\n");
    } else if (filter->separable) {
        print_vector(stream, "  separable  yes: column", filter->column, filter->height);
        print_vector(stream, ", row", filter->row, filter->width);
        fprintf(stream, "\n\n");
    } else {
        fprintf(stream, "  separable  no\n\n");
    }
    print_taps(stream, filter);
}

void taps_describe(FILE *stream, const struct filter *filter)
{
    for (const struct filter *one = filter; one != NULL; one = one->filter16) {
        if (one != filter)
            fprintf(stream, "\n  For samples of more than 8 bits:\n");
        fprintf(stream, "  size       %d x %d%s, anchor %d %d\n", one->width, one->height,
                filter_grids(one) == 2 ? ", two grids" : "", one->anchor_x, one->anchor_y);
        (one->two_pass ? describe_passes : describe_grids)(stream, one, one == filter ? 255 : 65535);
    }
}

const char *filter_window_name(const struct filter *filter)
{
    return filter_kind(filter)->work == NULL ? "pixels"
           : filter_is_separable(filter)     ? "taps, separable"
                                             : "taps, not separable";
}

void filter_describe(FILE *stream, const struct filter *filter)
{
    text_print_escaped(stream, filter->name);
    fputs(filter->title[0] != '\0' ? ": " : "", stream);
    text_print_escaped(stream, filter->title);
    fputc('\n', stream);
    if (filter->region.is_set)
        fputs("  region     only there; the rest of the picture stays as it is\n", stream);
    filter_kind(filter)->describe(stream, filter);
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

/* Print all members but the names and `filter16`. */
static void print_members(FILE *file, const struct filter *filter)
{
    fprintf(file, "\"width\":%d,\"height\":%d,\"anchor\":[%d,%d]", filter->width, filter->height, filter->anchor_x,
            filter->anchor_y);
    text_print_json_member(file, "combine", combine_name(filter->combine));
    fprintf(file, ",\"scale\":%lld,\"sums\":[", (long long)(filter->two_pass ? filter->pass_scale : filter->scale));
    for (int grid = 0; grid < filter_grids(filter); grid++)
        fprintf(file, "%s%lld", grid > 0 ? "," : "",
                (long long)(filter->two_pass ? filter->pass_scale : grid_sum(filter, grid)));
    fprintf(file, "],\"offset\":%s,\"absolute\":%s,\"exact\":%s,\"largest_error\":%.6g,\"separable\":%s",
            text_of_double(filter->offset, (char[TEXT_OF_SIZE]){0}), filter->absolute ? "true" : "false",
            filter->exact ? "true" : "false", filter->exact ? 0 : filter->largest_error,
            filter->separable ? "true" : "false");
    print_array(file, "column", filter->separable ? filter->column : NULL, filter->height);
    print_array(file, "row", filter->separable ? filter->row : NULL, filter->width);
    print_array(file, "taps", filter->two_pass ? NULL : filter->taps,
                filter->two_pass ? 0 : filter_grids(filter) * filter->width * filter->height);
    if (filter->two_pass)
        fprintf(file, ",\"row_shift\":%d", filter->row_shift);
    else
        fputs(",\"row_shift\":null", file);
    if (filter->amount != 0)
        fprintf(file, ",\"amount\":%.17g,\"threshold\":%.17g", ldexp(filter->amount, -UNSHARP_AMOUNT_BITS),
                ldexp(filter->threshold, -UNSHARP_LEVEL_BITS));
    else
        fputs(",\"amount\":null,\"threshold\":null", file);
}

void filter_print_json(FILE *file, const struct filter *filter)
{
    fputs("{\"name\":", file);
    text_print_json(file, filter->name);
    text_print_json_member(file, "title", filter->title);
    if (filter->region.is_set && strrchr(filter->name, '@') != NULL)
        text_print_json_member(file, "region", strrchr(filter->name, '@') + 1);
    fputc(',', file);
    filter_kind(filter)->print(file, filter);
    fputc('}', file);
}

void taps_print(FILE *file, const struct filter *filter)
{
    print_members(file, filter);
    fputs(",\"deep\":", file);
    if (filter->filter16 != NULL) {
        fputc('{', file);
        print_members(file, filter->filter16);
        fputc('}', file);
    } else {
        fputs("null", file);
    }
}
