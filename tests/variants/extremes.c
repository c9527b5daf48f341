/* SPDX-License-Identifier: MIT
 *
 * The largest sums that filters can have. */
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns and rows of taps with these sums: on both sides of each limit at which the arithmetic changes (see
 * src/cpu/program.c), and at the largest sum that a filter may have. */
static const struct extreme {
    int width, height;
    int64_t row, column; /* sums; a column of 0: taps that are not separable and sum to ROW */
} extremes[] = {
    {3, 3, 256, 0},
    {3, 3, 257, 0},
    {5, 3, 32767, 0},
    {5, 3, 32768, 0},
    {4, 3, 65793, 0},
    {4, 3, 65794, 0},
    {3, 5, FILTER_MAX_SUM, 0},
    {1, 1, 32767, 0},
    {1, 1, 32768, 0},
    {2, 1, FILTER_MAX_SUM, 0},
    {15, 17, 16, 16},
    {15, 17, 257, 1000},
    {17, 15, 32767, 257},
    {17, 15, 32768, 257},
    {15, 17, 257, 32767},
    {17, 16, 256, 32768},
    {21, 20, 2901, 2902},
    {31, 127, 127, 258},
    {9, 9, 100, 327},
    {9, 9, 4096, 8},
};

/* COUNT nearly equal weights whose sizes sum to SUM, all positive or with alternating signs. */
static void spread(int64_t sum, int count, bool alternate, int64_t *weights)
{
    for (int k = 0; k < count; k++)
        weights[k] = (sum / count + (k < sum % count)) * (alternate && k % 2 ? -1 : 1);
}

/* KIND 0: taps of one sign; 1: of both; 2: of one, negated and with `abs`; 3: of both, with the image inverted. The
 * image is white under the taps above 0 and black under the others wherever the filter stands at a multiple of its
 * size. The sums there are the largest of all. The scale is a little above them, so the outputs there are next to
 * white, or to grey. */
static void check_extreme(const struct options *options, struct place *place, const struct extreme *e, int kind,
                          struct tally *tally)
{
    static int64_t taps[FILTER_MAX * FILTER_MAX], row[FILTER_MAX], column[FILTER_MAX];
    const bool alternate = kind == 1, minus = kind == 2, reverse = kind == 3;
    const int count = e->width * e->height;
    spread(e->row, e->column ? e->width : count, alternate || reverse, e->column ? row : taps);
    spread(e->column, e->height, false, column);
    for (int k = 0; k < count && e->column; k++)
        taps[k] = column[k / e->width] * row[k % e->width];
    const int64_t sum = e->row * (e->column ? e->column : 1);

    char *text = NULL, what[128];
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (stream == NULL)
        fail("not enough memory");
    fprintf(stream, "scale %lld\noffset %s\n%s", (long long)sum + 1, alternate || reverse ? "127" : "0",
            minus ? "abs\n" : "");
    for (int k = 0; k < count; k++)
        fprintf(stream, "%lld%c", (long long)(minus ? -taps[k] : taps[k]), (k + 1) % e->width ? ' ' : '\n');
    fclose(stream);
    struct filter *filter = allocate(sizeof *filter);
    struct error error = {0};
    if (!filter_parse(text, size, "extreme", filter, &error))
        fail("%s", error.message);
    if (filter->absolute_sum != sum)
        fail("the taps that sum to %lld have a common divisor", (long long)sum);

    const int width = e->width + 66, height = e->height + 3;
    for (enum sample sample = SAMPLE_U8; sample <= SAMPLE_U16; sample++) {
        struct guarded in = guarded_make(sample, width, height, 1, 0),
                       expected = guarded_make(sample, width, height, 1, 0);
        struct guarded actual = guarded_make(sample, width, height, 1, 0);
        memset(in.memory, 0xa5, in.size);
        for (int y = 0; y < height; y++)
            for (int x = 0; x < width; x++) {
                const bool above = taps[y % e->height * e->width + x % e->width] > 0;
                memset(row_of(&in.plane, 0, y) + (size_t)x * sample_bytes(sample), above == reverse ? 0 : 0xff,
                       sample_bytes(sample));
            }
        snprintf(what, sizeof what, "%d x %d taps that sum to %lld, kind %d, %s", e->width, e->height, (long long)sum,
                 kind, sample_name(sample));
        const struct test_case c = {.place = place,
                                    .filter = filter,
                                    .border = BORDER_WRAP,
                                    .sample = sample,
                                    .what = what,
                                    .poison = 0x5a,
                                    .in = &in,
                                    .expected = &expected,
                                    .actual = &actual};
        check_case(options, &c, tally);
        free(in.memory);
        free(expected.memory);
        free(actual.memory);
    }
    free(filter);
    free(text);
}

void check_extremes(const struct options *options, struct place *place, struct tally *tally)
{
    for (size_t e = 0; e < sizeof extremes / sizeof extremes[0]; e++)
        for (int kind = 0; kind < 4; kind++)
            check_extreme(options, place, &extremes[e], kind, tally);
}
