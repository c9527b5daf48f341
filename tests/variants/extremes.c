/* SPDX-License-Identifier: MIT
 *
 * The largest sums that filters can have. */
#include "check.h"

/* Columns and rows of taps with these sums: on both sides of each limit at which the arithmetic changes (see
 * src/cpu/program.c), and at the largest sum that a filter may have. */
static const struct extreme {
    int width, height;
    int64_t row, column; /* sums; if the column is 0, the taps are not separable and sum to ROW */
} extremes[] = {
    {1, 1, 127, 0},       {1, 1, 128, 0},       {2, 1, 128, 0},
    {2, 1, 129, 0},       {3, 3, 256, 0},       {3, 3, 257, 0},
    {3, 3, 258, 0},       {5, 3, 32767, 0},     {5, 3, 32768, 0},
    {4, 3, 65793, 0},     {4, 3, 65794, 0},     {3, 5, FILTER_MAX_SUM, 0},
    {1, 1, 32767, 0},     {1, 1, 32768, 0},     {2, 1, FILTER_MAX_SUM, 0},
    {15, 17, 16, 16},     {15, 17, 257, 1000},  {17, 15, 32767, 257},
    {17, 15, 32768, 257}, {15, 17, 257, 32767}, {17, 16, 256, 32768},
    {21, 20, 2901, 2902}, {31, 127, 127, 258},  {9, 9, 100, 327},
    {9, 9, 4096, 8},      {15, 16, 1965840, 0}, {15, 16, 1965841, 0},
    {31, 32, 4062240, 0}, {31, 32, 4062241, 0}, {31, 31, FILTER_MAX_SUM, 0},
    {16, 31, 60000, 0},   {21, 22, 46101, 0},
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
static void check_extreme(struct checker *checker, const struct extreme *e, int kind)
{
    static int64_t taps[FILTER_MAX * FILTER_MAX], written[FILTER_MAX * FILTER_MAX], row[FILTER_MAX], column[FILTER_MAX];
    const bool alternate = kind == 1, minus = kind == 2, reverse = kind == 3;
    const int count = e->width * e->height;
    spread(e->row, e->column ? e->width : count, alternate || reverse, e->column ? row : taps);
    spread(e->column, e->height, false, column);
    for (int k = 0; k < count && e->column; k++)
        taps[k] = column[k / e->width] * row[k % e->width];
    const int64_t sum = e->row * (e->column ? e->column : 1);

    struct filter_text text;
    filter_text_open(&text);
    fprintf(text.stream, "scale %lld\noffset %s\n%s", (long long)sum + 1, alternate || reverse ? "127" : "0",
            minus ? "abs\n" : "");
    for (int k = 0; k < count; k++)
        written[k] = minus ? -taps[k] : taps[k];
    filter_text_add_taps(&text, written, count, e->width);
    struct filter *filter = allocate(sizeof *filter);
    filter_text_parse(&text, "extreme", filter);
    if (filter->absolute_sum != sum)
        fail("the taps that sum to %lld have a common divisor", (long long)sum);

    struct test_case c = {
        .filter = filter, .border = BORDER_WRAP, .width = e->width + 66, .height = e->height + 3, .planes = 1};
    for (c.sample = SAMPLE_U8; c.sample <= SAMPLE_U16; c.sample++, c.number++) {
        case_open(&c);
        for (int y = 0; y < c.height; y++)
            for (int x = 0; x < c.width; x++) {
                const bool above = taps[y % e->height * e->width + x % e->width] > 0;
                memset(row_of(&c.in.plane, 0, y) + (size_t)x * sample_bytes(c.sample), above == reverse ? 0 : 0xff,
                       sample_bytes(c.sample));
            }
        snprintf(c.what, sizeof c.what, "%d x %d taps that sum to %lld, kind %d, %s", e->width, e->height,
                 (long long)sum, kind, sample_name(c.sample));
        case_check(checker, &c);
        case_close(&c);
    }
    free(filter);
}

/* ---- Sums of 16 bits ---- */

/* Check a filter of samples of uint8_t on an image that has all pairs of samples A and B, in columns 0 and 1 of each
 * three, and 0 or 255 beside them. */
static void check_pairs(struct checker *checker, const char *taps, int scale, double offset)
{
    struct filter_text text;
    filter_text_open(&text);
    fprintf(text.stream, "scale %d\noffset %.9g\n%s\n", scale, offset, taps);
    struct filter *filter = allocate(sizeof *filter);
    filter_text_parse(&text, "pairs", filter);
    struct test_case c = {.filter = filter,
                          .border = BORDER_REPLICATE,
                          .sample = SAMPLE_U8,
                          .width = 3 * 256,
                          .height = 512,
                          .planes = 1};
    case_open(&c);
    for (int y = 0; y < c.height; y++)
        for (int x = 0; x < c.width; x++)
            row_of(&c.in.plane, 0, y)[x] = (uint8_t)(x % 3 == 0 ? x / 3 : x % 3 == 1 ? y / 2 : y % 2 * 255);
    snprintf(c.what, sizeof c.what, "all pairs, taps %.20s..., scale %d, offset %g", taps, scale, offset);
    case_check(checker, &c);
    case_close(&c);
    free(filter);
}

/* With 1, 127 and 127 or 129, sums are all numbers up to 65280 or 65535. Scales and offsets are those on both sides of
 * the limits in src/cpu/narrow.c, and some that leave an error in their reciprocal. */
static void check_every_sum(struct checker *checker)
{
    static const char *const taps[] = {"1 127 127", "2 128 127", "-1 -127 -127", "1 127 -128", "1 64 64"};
    static const int scales[] = {1,   2,   3,   7,   9,   63,  64,  100,  127,   128,
                                 130, 250, 254, 255, 256, 257, 258, 1000, 40000, 70000};
    static const double offsets[] = {0, 0.5, 1, -1, -20, 128, 254.75, -250, 300};
    for (size_t t = 0; t < sizeof taps / sizeof taps[0]; t++)
        for (size_t s = 0; s < sizeof scales / sizeof scales[0]; s++)
            for (size_t o = t % 2; o < sizeof offsets / sizeof offsets[0]; o += checker->options.quick ? 4 : 1)
                check_pairs(checker, taps[t], scales[s], offsets[o]);
}

/* Roots of the sums of squares of all pairs of samples, and of the largest sums that have 16 bits. */
static void check_every_root(struct checker *checker)
{
    static const char *const grids[] = {"combine magnitude\n1 0 0\n---\n0 1 0", "combine magnitude\n3 0 -1\n---\n0 2 0",
                                        "combine magnitude\n128 0 0\n---\n0 1 0",
                                        "combine magnitude\n64 0 -64\n---\n0 127 1",
                                        "combine magnitude\n127 1 0\n---\n0 1 128"};
    static const double offsets[] = {0, 0.5, 1, -1.5, -2, 100};
    for (size_t g = 0; g < sizeof grids / sizeof grids[0]; g++)
        for (size_t o = 0; o < sizeof offsets / sizeof offsets[0]; o++)
            for (int scale = 1; scale <= 2; scale++)
                check_pairs(checker, grids[g], scale, offsets[o]);
}

void check_extremes(struct checker *checker)
{
    check_every_sum(checker);
    check_every_root(checker);
    for (size_t e = 0; e < sizeof extremes / sizeof extremes[0]; e++)
        for (int kind = 0; kind < 4; kind++)
            check_extreme(checker, &extremes[e], kind);
}
