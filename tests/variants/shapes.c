/* SPDX-License-Identifier: MIT
 *
 * The shapes of the tests' filters, and random taps for them. */
#include "check.h"

#include "base/random.h"

#include <inttypes.h>
#include <math.h>

enum {
    MEDIUM_TAP = 3000, /* more than 8 bits, less than 16 */
    TINY_TAP = 5       /* floats hold the squares of sums whose root is 255 */
};

const struct shape shapes[] = {
    {1, 1, .size = SMALL},
    {3, 3, .size = SMALL},
    {3, 3, .size = SMALL, .absolute = true},
    {3, 3, .size = LARGE, .anchored = true, .anchor_x = 0, .anchor_y = 2},
    {5, 5, .size = LARGE},
    {7, 7, .size = SMALL},
    {9, 9, .size = SMALL},
    {9, 9, .size = LARGE, .absolute = true},
    {9, 9, .size = WIDE},
    {2, 2, .size = SMALL},
    {4, 6, .size = SMALL, .anchored = true, .anchor_x = 3, .anchor_y = 0},
    {1, 17, .size = SMALL},
    {17, 1, .size = LARGE},
    {18, 33, .size = SMALL},
    {34, 19, .size = LARGE, .anchored = true, .anchor_x = 33, .anchor_y = 18},
    {11, 11, .size = SMALL},
    {13, 13, .size = LARGE},
    {15, 15, .size = SMALL, .pattern = SPARSE},
    {31, 31, .size = SMALL},
    {127, 127, .size = SMALL},
    {127, 127, .size = LARGE, .anchored = true, .anchor_x = 126, .anchor_y = 0},
    {3, 3, .size = SMALL, .pattern = SEPARABLE},
    {5, 5, .size = SMALL, .pattern = SEPARABLE},
    {7, 7, .size = LARGE, .pattern = SEPARABLE},
    {7, 7, .size = TINY, .pattern = SEPARABLE},
    {5, 11, .size = TINY, .pattern = SEPARABLE},
    {9, 9, .size = SMALL, .pattern = SEPARABLE},
    {11, 11, .size = LARGE, .pattern = SEPARABLE},
    {13, 13, .size = SMALL, .pattern = SEPARABLE},
    {15, 15, .size = SMALL, .pattern = SEPARABLE, .absolute = true},
    {21, 21, .size = SMALL, .pattern = SEPARABLE},
    {31, 31, .size = LARGE, .pattern = SEPARABLE},
    {9, 5, .size = SMALL, .pattern = SEPARABLE, .anchored = true, .anchor_x = 8, .anchor_y = 0},
    {33, 12, .size = LARGE, .pattern = SEPARABLE},
    {127, 127, .size = LARGE, .pattern = SEPARABLE},
    {9, 9, .size = SMALL, .pattern = UNEVEN},
    {16, 7, .size = SMALL, .pattern = UNEVEN},
    {7, 8, .size = LARGE, .pattern = UNEVEN},
    {17, 17, .size = MEDIUM, .pattern = SEPARABLE},
    {16, 17, .size = MEDIUM, .pattern = SEPARABLE, .power_scale = true},
    {15, 13, .size = LARGE, .pattern = POSITIVE},
    {13, 15, .size = LARGE, .pattern = POSITIVE, .power_scale = true},
    {11, 12, .size = LARGE, .pattern = SEPARABLE, .power_scale = true},
    {25, 25, .size = SMALL, .pattern = SEPARABLE, .absolute = true},
    {29, 31, .size = LARGE, .pattern = SEPARABLE, .power_scale = true},
    {20, 19, .size = LARGE, .pattern = POSITIVE},
    {19, 20, .size = LARGE, .pattern = POSITIVE, .power_scale = true},
    {19, 20, .size = LARGE, .pattern = SEPARABLE},
    {20, 19, .size = LARGE, .pattern = SEPARABLE, .power_scale = true},
    {13, 29, .size = SMALL, .pattern = SEPARABLE, .anchored = true, .anchor_x = 1, .anchor_y = 28},
    {33, 33, .size = SMALL, .pattern = SEPARABLE, .power_scale = true},
    {9, 9, .size = SMALL, .pattern = EQUAL},
    {31, 31, .size = SMALL, .pattern = EQUAL},
    {30, 12, .size = SMALL, .pattern = EQUAL, .absolute = true},
    {127, 127, .size = SMALL, .pattern = EQUAL},
    {5, 6, .size = LARGE, .pattern = EQUAL, .anchored = true, .anchor_x = 0, .anchor_y = 5},
    {2, 40, .size = SMALL, .pattern = EQUAL},
    {1, 1, .size = LARGE},
    {9, 9, .size = SMALL, .power_scale = true},
    {9, 9, .size = SMALL, .absolute = true, .power_scale = true},
    {5, 9, .size = LARGE, .power_scale = true},
    {8, 8, .size = SMALL, .absolute = true},
    {12, 5, .size = MEDIUM},
    {9, 9, .size = MEDIUM},
    {16, 16, .size = MEDIUM},
    {1, 1, .size = SMALL, .pattern = SHIFT},
    {5, 5, .size = SMALL, .pattern = SHIFT},
    {127, 1, .size = SMALL, .pattern = SHIFT, .anchored = true, .anchor_x = 0, .anchor_y = 0},
    {127, 1, .size = SMALL, .pattern = SHIFT, .anchored = true, .anchor_x = 126, .anchor_y = 0},
    {1, 127, .size = SMALL, .pattern = SHIFT, .anchored = true, .anchor_x = 0, .anchor_y = 63},
    {33, 9, .size = SMALL, .pattern = SHIFT, .anchored = true, .anchor_x = 16, .anchor_y = 8},
    {127, 3, .size = SMALL, .pattern = SHIFT, .anchored = true, .anchor_x = 126, .anchor_y = 0},
    {21, 11, .size = LARGE, .pattern = SPARSE},
    {127, 5, .size = SMALL, .pattern = SPARSE, .anchored = true, .anchor_x = 126, .anchor_y = 0},
    {3, 3, .size = TINY, .pattern = SLOPE, .grids = TWO_ROOT},
    {3, 3, .size = TINY, .pattern = SLOPE, .grids = TWO_ROOT, .power_scale = true},
    {3, 3, .size = TINY, .pattern = SLOPE, .grids = TWO_ROOT, .fraction = true},
    {3, 3, .size = MEDIUM, .pattern = SLOPE, .grids = TWO_ROOT},
    {3, 3, .size = TINY, .pattern = SLOPE, .grids = TWO_MAX},
    {3, 3, .size = TINY, .pattern = SLOPE, .grids = TWO_SUM},
    {3, 3, .size = SMALL, .pattern = SLOPE, .grids = TWO_MAX, .fraction = true},
    {3, 3, .size = LARGE, .pattern = SLOPE, .grids = TWO_SUM},
    {3, 3, .size = TINY, .grids = TWO_ROOT},
    {3, 3, .size = TINY, .pattern = SLOPE, .grids = TWO_ROOT, .anchored = true, .anchor_x = 0, .anchor_y = 2},
    {3, 3, .size = TINY, .grids = TWO_SUM, .fraction = true},
    {5, 5, .size = TINY, .grids = TWO_ROOT},
    {7, 7, .size = TINY, .grids = TWO_MAX},
    {9, 9, .size = SMALL, .grids = TWO_SUM, .power_scale = true},
    {1, 2, .size = TINY, .grids = TWO_ROOT},
    {2, 2, .size = TINY, .grids = TWO_ROOT},
    {6, 4, .size = MEDIUM, .grids = TWO_ROOT, .anchored = true, .anchor_x = 5, .anchor_y = 0},
    {5, 3, .size = LARGE, .grids = TWO_ROOT},
    {4, 7, .size = LARGE, .grids = TWO_MAX, .anchored = true, .anchor_x = 0, .anchor_y = 6},
    {15, 2, .size = WIDE, .grids = TWO_SUM, .anchored = true, .anchor_x = 3, .anchor_y = 1},
    {3, 5, .size = WIDE, .grids = TWO_ROOT, .fraction = true},
    {127, 127, .size = TINY, .grids = TWO_ROOT},
    {127, 127, .size = LARGE, .grids = TWO_SUM, .anchored = true, .anchor_x = 126, .anchor_y = 0},
};
const size_t shape_count = sizeof shapes / sizeof shapes[0];

const struct shape large_shapes[] = {
    {3, 3, .size = SMALL},
    {3, 3, .size = SMALL, .power_scale = true},
    {5, 5, .size = SMALL, .pattern = EQUAL, .anchored = true, .anchor_x = 0, .anchor_y = 4},
    {3, 5, .size = MEDIUM, .anchored = true, .anchor_x = 2, .anchor_y = 0},
    {7, 7, .size = LARGE, .pattern = SEPARABLE},
    {7, 7, .size = TINY, .pattern = SEPARABLE},
    {5, 11, .size = TINY, .pattern = SEPARABLE},
    {1, 3, .size = SMALL, .pattern = SHIFT},
    {2, 3, .size = WIDE},
    {7, 7, .size = SMALL, .pattern = SEPARABLE},
    {13, 5, .size = SMALL, .pattern = SEPARABLE},
    {21, 4, .size = SMALL, .pattern = SEPARABLE},
    {3, 3, .size = TINY, .pattern = SLOPE, .grids = TWO_ROOT},
    {3, 3, .size = SMALL, .pattern = SLOPE, .grids = TWO_SUM},
    {5, 3, .size = LARGE, .grids = TWO_ROOT},
};
const size_t large_shape_count = sizeof large_shapes / sizeof large_shapes[0];

void filter_text_open(struct filter_text *text)
{
    text->stream = open_memstream(&text->text, &text->size);
    if (text->stream == NULL)
        fail("not enough memory");
}

void filter_text_add_taps(struct filter_text *text, const int64_t *taps, int count, int width)
{
    for (int k = 0; k < count; k++)
        fprintf(text->stream, "%" PRId64 "%c", taps[k], (k + 1) % width == 0 ? '\n' : ' ');
}

void filter_text_parse(struct filter_text *text, const char *name, struct filter *filter)
{
    struct error error = {0};
    fclose(text->stream);
    if (!filter_parse(text->text, text->size, name, filter, &error))
        fail("%s", error.message);
    if (!filter->exact)
        fail("the taps of a filter were not read as they were written:\n%s", text->text);
    free(text->text);
}

static bool is_separable(const struct shape *shape)
{
    return shape->pattern == SEPARABLE || shape->pattern == UNEVEN || shape->pattern == POSITIVE;
}

/* Make COUNT taps sum to 0, as the taps of edge filters do. Otherwise all magnitudes would be about equal and hide
 * errors. */
static void balance(int64_t *taps, int count, uint64_t *state)
{
    int64_t sum = 0;
    for (int k = 0; k < count; k++)
        sum += taps[k];
    const int64_t each = sum / count;
    for (int k = 0; k < count; k++, sum -= each)
        taps[k] -= each;
    for (; sum != 0; sum += sum < 0 ? 1 : -1)
        taps[random_between(state, 0, count - 1)] -= sum < 0 ? -1 : 1;
}

/* Two grids of random taps. Both sums have mean 0 and the deviation 73.9 * sqrt(squares). */
static void random_gradient(const struct shape *shape, uint64_t *state, struct filter *filter)
{
    const int count = shape->width * shape->height;
    const int limit = shape->size == TINY     ? TINY_TAP
                      : shape->size == SMALL  ? 100
                      : shape->size == MEDIUM ? MEDIUM_TAP
                                              : FILTER_MAX_SUM / 4 / count;
    int64_t *taps = allocate(2 * (size_t)count * sizeof *taps);
    for (int k = 0; k < 2 * count; k++)
        taps[k] = random_between(state, -limit, limit);
    for (int grid = 0; grid < 2; grid++)
        balance(taps + grid * count, count, state);
    if (taps[0] == 0) { /* so that not all are zero */
        taps[0] += limit;
        taps[count - 1] -= limit;
    }
    if (shape->pattern == SLOPE) {
        const int outer = random_between(state, 1, limit), inner = random_between(state, 1, limit);
        for (int k = 0; k < 9; k++) {
            taps[k] = (k % 3 - 1) * (k / 3 == 1 ? inner : outer);
            taps[9 + k] = (k / 3 - 1) * (k % 3 == 1 ? inner : outer);
        }
    }
    double squares = 0;
    for (int k = 0; k < 2 * count; k++)
        squares += (double)taps[k] * (double)taps[k] / 2;
    double divisor = floor(sqrt(squares) * 73.9 / 60) + 1;
    if (shape->size == WIDE)
        divisor = fmax(divisor, (1 << 23) + 11);
    if (shape->power_scale)
        divisor = exp2(ceil(log2(divisor)));

    struct filter_text text;
    filter_text_open(&text);
    fprintf(text.stream, "combine %s\nscale %.0f\noffset %s\n",
            shape->grids == TWO_ROOT  ? "magnitude"
            : shape->grids == TWO_MAX ? "max"
                                      : "sum",
            divisor,
            shape->size == WIDE                     ? "99.7"
            : shape->fraction                       ? "-7.3"
            : shape->width % 2 && shape->height % 2 ? "0"
                                                    : "9");
    if (shape->anchored)
        fprintf(text.stream, "anchor %d %d\n", shape->anchor_x, shape->anchor_y);
    filter_text_add_taps(&text, taps, count, shape->width);
    fputs("---\n", text.stream);
    filter_text_add_taps(&text, taps + count, count, shape->width);
    filter_text_parse(&text, "random", filter);
    free(taps);
}

void random_filter(const struct shape *shape, uint64_t *state, struct filter *filter)
{
    const int count = shape->width * shape->height;
    if (shape->grids != ONE) {
        random_gradient(shape, state, filter);
        return;
    }
    /* The absolute sum of LARGE taps stays below 2^31 / 255 and, from 3 taps on, above 2^24 / 255. */
    const int limit = shape->size == SMALL    ? (count < 600 ? 100 : 4)
                      : shape->size == MEDIUM ? MEDIUM_TAP
                                              : FILTER_MAX_SUM / count;
    int64_t *taps = allocate((size_t)count * sizeof *taps);
    int column[FILTER_MAX], row[FILTER_MAX];
    const int vector_limit = (int)sqrt(limit), uneven = shape->pattern == UNEVEN ? 4 : 1;
    const bool positive = shape->pattern == POSITIVE;
    for (int i = 0; i < shape->height; i++)
        column[i] = random_between(state, positive ? 0 : -vector_limit / uneven, vector_limit / uneven);
    for (int j = 0; j < shape->width; j++)
        row[j] = random_between(state, positive ? 0 : -vector_limit * uneven, vector_limit * uneven);
    column[0] = vector_limit / uneven; /* so that not all are zero */
    row[0] = vector_limit * uneven;
    const int kept = random_between(state, 0, count - 1);
    double sum = 0, squares = 0;
    for (int k = 0; k < count; k++) {
        taps[k] = is_separable(shape) ? column[k / shape->width] * row[k % shape->width]
                                      : random_between(state, -limit, limit);
        if (shape->pattern == SPARSE && k % 7 != 0)
            taps[k] = 0;
        if ((k == 0 && taps[k] == 0) || shape->pattern == EQUAL)
            taps[k] = limit;
        if (shape->pattern == SHIFT)
            taps[k] = k == kept;
        sum += (double)taps[k];
        squares += (double)taps[k] * (double)taps[k];
    }
    /* Samples 0 to 255 have mean 127.5 and deviation 73.9. */
    double divisor = floor(sqrt(squares) * 73.9 / 45) + 1;
    if (shape->size == WIDE)
        divisor = fmax(divisor, (1 << 23) + 11);
    if (shape->pattern == EQUAL || shape->pattern == POSITIVE) /* the border repeats samples, which add up */
        divisor *= 4;
    if (shape->power_scale)
        divisor = exp2(ceil(log2(divisor)));
    if (shape->pattern == SHIFT)
        divisor = 1;
    const double offset = shape->pattern == SHIFT ? 0 : shape->absolute ? 60 : floor(128 - sum * 127.5 / divisor);

    struct filter_text text;
    filter_text_open(&text);
    fprintf(text.stream, "scale %.0f\noffset %.0f\n%s", divisor, fmax(-65535, fmin(65535, offset)),
            shape->absolute ? "abs\n" : "");
    if (shape->anchored)
        fprintf(text.stream, "anchor %d %d\n", shape->anchor_x, shape->anchor_y);
    filter_text_add_taps(&text, taps, count, shape->width);
    filter_text_parse(&text, "random", filter);
    if (is_separable(shape) && !filter->separable)
        fail("the random filter of %d x %d taps is not separable", shape->width, shape->height);
    free(taps);
}
