/* SPDX-License-Identifier: MIT
 *
 * Samples of float that are not finite, very small, or far apart. A sample may change the outputs that it is under, and
 * no others. So each output is held against the magnitudes of the samples and taps that it is the sum of. */
#include "check.h"

#include "base/random.h"
#include "plan/border.h"

#include <math.h>

enum samples { UNIT, NOT_A_NUMBER, INFINITE, NO_DATA, HALF, SMALL_UNIT, RANGE, WIDE_RANGE, DENORMAL, NOTHING, KINDS };

static const char *const names[KINDS] = {
    [UNIT] = "samples from 0 to 1",  [NOT_A_NUMBER] = "some NaN, one half zeros",
    [INFINITE] = "some infinities",  [NO_DATA] = "some -1e37",
    [HALF] = "one half times 1e20",  [SMALL_UNIT] = "samples to 1e-30",
    [RANGE] = "2^-14 to 2^14",       [WIDE_RANGE] = "2^-30 to 2^30",
    [DENORMAL] = "samples to 1e-39", [NOTHING] = "zeros",
};

static const struct {
    int width, height, anchor_x, anchor_y;
    bool negative; /* some taps are */
} filters[] = {
    {31, 31, 15, 15, false}, {11, 11, 5, 5, false}, {16, 17, 0, 16, true}, {45, 9, 44, 0, true}, {3, 3, 1, 1, true}};

static float sample_of(enum samples kind, const struct test_case *c, int x, uint64_t *state)
{
    const uint64_t random = random_next(state);
    const float unit = (float)(random >> 40) / (1 << 24);
    const bool is_rare = random % 4000 == 0, is_odd = random / 4000 % 2;
    switch (kind) {
    case NOT_A_NUMBER:
        return is_rare ? NAN : x < c->width / 2 ? 0 : unit;
    case INFINITE:
        return is_rare ? (is_odd ? INFINITY : -INFINITY) : unit;
    case NO_DATA:
        return is_rare ? -1e37F : unit;
    case HALF:
        return x < c->width / 2 ? unit * 1e20F : unit;
    case SMALL_UNIT:
        return unit * 1e-30F;
    case RANGE:
        return ldexpf(1 + unit, (int)(random / 8000 % 29) - 14);
    case WIDE_RANGE:
        return ldexpf(is_odd ? 1 + unit : -1 - unit, (int)(random / 8000 % 61) - 30);
    case DENORMAL:
        return unit * 1e-39F;
    case NOTHING:
        return 0;
    default:
        return unit;
    }
}

/* sum|t x| for each output. */
static void fill_magnitudes(const struct test_case *c, double *to)
{
    const struct filter *f = c->filter;
    for (int y = 0; y < c->height; y++)
        for (int x = 0; x < c->width; x++) {
            double sum = 0;
            for (int i = 0; i < f->height; i++) {
                const int from_y = border_index(y + i - f->anchor_y, c->height, c->border);
                const float *row = from_y < 0 ? NULL : (const float *)(const void *)row_of(&c->in.plane, 0, from_y);
                for (int j = 0; j < f->width && row != NULL; j++) {
                    const int from_x = border_index(x + j - f->anchor_x, c->width, c->border);
                    if (from_x >= 0)
                        sum += fabs((double)f->taps[i * f->width + j] / f->scale * (double)row[from_x]);
                }
            }
            to[y * c->width + x] = sum;
        }
}

void check_floats(struct checker *checker)
{
    uint64_t state = checker->options.seed;
    struct filter *filter = allocate(sizeof *filter);
    /* With 31 x 31 taps, one tile is inside, and the next one's filters end outside. */
    struct test_case c = {.filter = filter, .sample = SAMPLE_F32, .width = 390, .height = 150, .planes = 1};
    double *magnitudes = allocate((size_t)c.width * (size_t)c.height * sizeof *magnitudes);
    c.magnitudes = magnitudes;
    for (size_t s = 0; s < sizeof filters / sizeof filters[0]; s++) {
        const int width = filters[s].width, height = filters[s].height, limit = FILTER_MAX_SUM / (width * height);
        struct filter_text text;
        filter_text_open(&text);
        fprintf(text.stream, "scale %d\nanchor %d %d\n", FILTER_MAX_SUM / 2, filters[s].anchor_x, filters[s].anchor_y);
        for (int k = 0; k < width * height; k++) {
            const int tap = random_between(&state, filters[s].negative ? -limit : 1, limit);
            fprintf(text.stream, "%d%c", tap == 0 ? 1 : tap, (k + 1) % width == 0 ? '\n' : ' '); /* 0 may be left out */
        }
        filter_text_parse(&text, "dense", filter);
        for (enum samples kind = UNIT; kind < KINDS; kind++, c.number++) {
            c.border = (enum border)(c.number % BORDER_COUNT);
            case_open(&c);
            for (int y = 0; y < c.height; y++)
                for (int x = 0; x < c.width; x++)
                    ((float *)(void *)row_of(&c.in.plane, 0, y))[x] = sample_of(kind, &c, x, &state);
            fill_magnitudes(&c, magnitudes);
            snprintf(c.what, sizeof c.what, "%d x %d taps, border %s, %s", width, height, border_name(c.border),
                     names[kind]);
            case_check(checker, &c);
            case_close(&c);
        }
    }
    free(magnitudes);
    free(filter);
}
