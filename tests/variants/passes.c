/* SPDX-License-Identifier: MIT
 *
 * Filters in two passes: Gaussians, wide boxes, unsharp masks, and random vectors at the bounds of struct filter. Every
 * row of the table is compared with the reference, and the reference with a direct computation in 128 bits that shares
 * no code with it. */
#include "check.h"

#include "base/random.h"

#include <inttypes.h>
#include <math.h>

struct pass_shape {
    const char *spec; /* the specification for filter_find; NULL if the taps are random, of these sizes */
    int width, height;
    int row_bits, column_bits, row_shift; /* the taps of the row sum to 2^row_bits; row_shift 0: all taps are 1 */
    int anchor_x, anchor_y;
    bool is_16_bit; /* random taps for samples of uint16_t, else of uint8_t */
    double amount;
    int threshold;
};

enum { PLANES_MAX = 3 };

static const struct pass_shape pass_shapes[] = {
    {.spec = "gaussian:0.3"},
    {.spec = "gaussian:0.7"},
    {.spec = "gaussian:1"},
    {.spec = "gaussian:2.5", .amount = 0.5},
    {.spec = "gaussian:5"},
    {.spec = "gaussian:8", .amount = 1.5, .threshold = 5 << UNSHARP_LEVEL_BITS},
    {.spec = "gaussian:16"},
    {.spec = "gaussian:31", .amount = 127.99, .threshold = 1},
    {.spec = "gaussian:60"},
    {.spec = "gaussian:170"},
    {.width = 1, .height = 40, .row_bits = 14, .column_bits = 18, .row_shift = 8, .anchor_x = 0, .anchor_y = 39},
    {.width = 40, .height = 2, .row_bits = 18, .column_bits = 15, .row_shift = 10, .anchor_x = 39, .anchor_y = 0},
    {.width = 19, .height = 34, .row_bits = 18, .column_bits = 16, .row_shift = 10, .anchor_x = 18, .anchor_y = 0},
    {.width = 2,
     .height = 3,
     .row_bits = 15,
     .column_bits = 15,
     .row_shift = 7,
     .anchor_x = 1,
     .anchor_y = 2,
     .amount = 0.99,
     .threshold = 700},
    {.width = 97, .height = 90, .row_bits = 21, .column_bits = 21, .row_shift = 18, .anchor_x = 2, .anchor_y = 77},
    {.width = 3,
     .height = 2,
     .row_bits = 16,
     .column_bits = 15,
     .row_shift = 8,
     .anchor_x = 0,
     .anchor_y = 1,
     .amount = 1e-6},
    {.width = 1701,
     .height = 1701,
     .row_bits = 21,
     .column_bits = 19,
     .row_shift = 16,
     .anchor_x = 1700,
     .anchor_y = 3},
    {.width = 1, .height = 1, .row_bits = 21, .column_bits = 21, .row_shift = 15, .is_16_bit = true},
    {.width = 7,
     .height = 40,
     .row_bits = 24,
     .column_bits = 26,
     .row_shift = 18,
     .anchor_x = 6,
     .anchor_y = 39,
     .is_16_bit = true},
    {.width = 40,
     .height = 7,
     .row_bits = 26,
     .column_bits = 24,
     .row_shift = 20,
     .anchor_x = 0,
     .anchor_y = 1,
     .is_16_bit = true,
     .amount = 3},
    {.width = 90,
     .height = 97,
     .row_bits = 27,
     .column_bits = 28,
     .row_shift = 22,
     .anchor_x = 88,
     .anchor_y = 90,
     .is_16_bit = true},
    {.width = 600,
     .height = 520,
     .row_bits = 31,
     .column_bits = 31,
     .row_shift = 25,
     .anchor_x = 5,
     .anchor_y = 511,
     .is_16_bit = true},
    {.width = 520,
     .height = 600,
     .row_bits = 30,
     .column_bits = 30,
     .row_shift = 24,
     .anchor_x = 260,
     .anchor_y = 300,
     .is_16_bit = true,
     .amount = 60,
     .threshold = 9999},
    {.width = 2,
     .height = 3,
     .row_bits = 22,
     .column_bits = 22,
     .row_shift = 17,
     .anchor_x = 1,
     .anchor_y = 0,
     .is_16_bit = true,
     .threshold = 0},
    {.width = 129, .height = 129, .anchor_x = 64, .anchor_y = 64},
    {.width = 257, .height = 3, .anchor_x = 0, .anchor_y = 2},
    {.width = 3, .height = 259, .anchor_x = 1, .anchor_y = 0},
    {.width = 255, .height = 1, .anchor_x = 254},
    {.width = 1701, .height = 1701, .anchor_x = 850, .anchor_y = 850},
    {.width = 131, .height = 200, .anchor_x = 5, .anchor_y = 190},
};

/* COUNT random taps from 0 to LIMIT with the sum 2^BITS. */
static void random_vector(int count, int bits, int32_t limit, uint64_t *state, int32_t *taps)
{
    const int32_t sum = (int32_t)1 << (bits < 31 ? bits : 30);
    for (int k = 0; k < count; k++) {
        taps[k] = sum / count + (k < sum % count);
        taps[k] *= bits < 31 ? 1 : 2;
        if (taps[k] > limit)
            fail("%d taps of at most %d do not sum to 2^%d", count, limit, bits);
    }
    for (int n = 0; n < 4 * count && count > 1; n++) {
        int32_t *from = &taps[random_between(state, 0, count - 1)], *to = &taps[random_between(state, 0, count - 1)];
        if (from != to) {
            const int32_t max = *from < limit - *to ? *from : limit - *to;
            const int32_t moved = n % 5 == 0 ? max : random_between(state, 0, max);
            *from -= moved;
            *to += moved;
        }
    }
}

static void random_passes(const struct pass_shape *shape, uint64_t *state, struct filter *filter)
{
    const int32_t limit = (shape->is_16_bit ? 1 << 22 : 1 << 15) - 1;
    snprintf(filter->name, sizeof filter->name, "random");
    filter->width = shape->width;
    filter->height = shape->height;
    filter->anchor_x = shape->anchor_x;
    filter->anchor_y = shape->anchor_y;
    filter->scale = 1;
    filter->tap_sum = filter->absolute_sum = 1;
    filter->separable = filter->two_pass = true;
    filter->row_shift = shape->row_shift;
    if (shape->row_shift > 0) {
        random_vector(shape->width, shape->row_bits, limit, state, filter->row);
        random_vector(shape->height, shape->column_bits, limit, state, filter->column);
        filter->pass_scale = (int64_t)1 << (shape->row_bits + shape->column_bits - shape->row_shift);
        return;
    }
    for (int k = 0; k < FILTER_PASS_MAX; k++) {
        filter->row[k] = k < shape->width;
        filter->column[k] = k < shape->height;
    }
    filter->pass_scale = (int64_t)shape->width * shape->height;
}

static void make_passes(const struct pass_shape *shape, uint64_t *state, struct filter *filter, struct filter *filter16)
{
    struct error error = {0};
    memset(filter, 0, sizeof *filter);
    memset(filter16, 0, sizeof *filter16);
    if (shape->spec == NULL)
        random_passes(shape, state, filter);
    else if (!filter_find(shape->spec, filter, filter16, &error))
        fail("%s", error.message);
    if (!filter->two_pass)
        fail("%s is not a filter in two passes", filter->name);
    for (struct filter *f = filter; f != NULL && shape->amount > 0; f = f->filter16) {
        f->amount = (int32_t)ceil(ldexp(shape->amount, UNSHARP_AMOUNT_BITS));
        f->threshold = f == filter && !shape->is_16_bit ? shape->threshold : 257 * shape->threshold;
        f->absolute_sum = 1 + (int64_t)ceil(2 * shape->amount);
    }
}

/* ---- The direct computation ---- */

/* The index that the border gives for INDEX, step by step. It is -1 if the border gives a zero. */
static int direct_index(int index, int size, enum border border)
{
    if (border == BORDER_REPLICATE)
        return index < 0 ? 0 : index >= size ? size - 1 : index;
    while (index < 0 || index >= size)
        switch (border) {
        case BORDER_ZERO:
            return -1;
        case BORDER_WRAP:
            index += index < 0 ? size : -size;
            break;
        case BORDER_REFLECT:
            index = index < 0 ? -1 - index : 2 * size - 1 - index;
            break;
        default:
            index = size == 1 ? 0 : index < 0 ? -index : 2 * size - 2 - index;
            break;
        }
    return index;
}

static int128 floor_half_up(int128 numerator, int128 denominator)
{
    const int128 twice = 2 * numerator + denominator, by = 2 * denominator;
    return twice / by - (twice % by < 0);
}

/* The sum of the column by the formulas of struct filter. If FLIPPED, it is the sum of the convolution with the same
 * taps. */
static int128 direct_sum(const struct filter *f, bool flipped, enum border border, const struct plane *in, int channel,
                         int y, int x)
{
    const int sign = flipped ? -1 : 1;
    int128 s = 0;
    for (int i = 0; i < f->height; i++) {
        const int from_y = direct_index(y + sign * (i - f->anchor_y), in->height, border);
        int128 sum = 0;
        for (int j = 0; j < f->width && from_y >= 0; j++) {
            const int from_x = direct_index(x + sign * (j - f->anchor_x), in->width, border);
            if (from_x >= 0)
                sum += (int128)f->row[j] * (int128)bench_sample(in, channel, from_y, from_x);
        }
        s += f->column[i] * floor_half_up(sum, (int128)1 << f->row_shift);
    }
    return s;
}

/* The outputs of a pixel, for each plane. */
static void direct_levels(const struct filter *f, bool flipped, enum border border, const struct plane *in, int y,
                          int x, int128 *levels)
{
    bool is_changed = false;
    for (int channel = 0; channel < in->count; channel++) {
        const int128 s = direct_sum(f, flipped, border, in, channel, y, x);
        const int128 sample = (int128)bench_sample(in, channel, y, x);
        const int128 e = 256 * sample - floor_half_up(256 * s, f->pass_scale);
        const int128 level = floor_half_up(((int128)1 << 28) * sample + f->amount * e, (int128)1 << 28);
        const int128 white = in->sample == SAMPLE_U8 ? 255 : 65535;
        levels[channel] = f->amount == 0  ? floor_half_up(s, f->pass_scale)
                          : level < 0     ? 0
                          : level > white ? white
                                          : level;
        is_changed |= f->amount == 0 || (e < 0 ? -e : e) >= f->threshold;
    }
    for (int channel = 0; channel < in->count && !is_changed; channel++)
        levels[channel] = (int128)bench_sample(in, channel, y, x);
}

static void check_direct(struct checker *checker, const struct filter *filter, bool flipped, const struct test_case *c)
{
    const struct plane *in = &c->in.plane, *out = &c->expected.plane;
    checker->cases++;
    for (int y = 0; y < in->height; y++)
        for (int x = 0; x < in->width; x++) {
            int128 levels[PLANES_MAX];
            direct_levels(filter, flipped, c->border, in, y, x, levels);
            for (int channel = 0; channel < in->count; channel++) {
                if (levels[channel] == (int128)bench_sample(out, channel, y, x))
                    continue;
                checker->mismatches++;
                fprintf(stderr, "MISMATCH reference: %s: at x %d y %d plane %d it is not %d\n", c->what, x, y, channel,
                        (int)levels[channel]);
                return;
            }
        }
}

/* ---- Cases ---- */

enum fill { FILL_RANDOM, FILL_BLOCKS, FILL_BLACK, FILL_WHITE, FILL_CHECKS, FILL_COUNT };

static void set_sample(const struct plane *plane, int channel, int y, int x, bool white)
{
    unsigned char *row = row_of(plane, channel, y);
    if (plane->sample == SAMPLE_F32)
        ((float *)(void *)row)[x] = white;
    else
        memset(row + (size_t)x * sample_bytes(plane->sample), white ? 0xff : 0, sample_bytes(plane->sample));
}

/* Blurs of random samples are grey. Blocks of black and white are not, if they are as large as the filter. */
static void fill_plane(const struct plane *plane, enum fill fill, int block, uint64_t *state)
{
    fill_random(plane, state);
    const uint64_t random = random_next(state);
    for (int channel = 0; channel < plane->count && fill != FILL_RANDOM; channel++)
        for (int y = 0; y < plane->height; y++)
            for (int x = 0; x < plane->width; x++)
                set_sample(plane, channel, y, x,
                           fill == FILL_WHITE || (fill == FILL_CHECKS && (x + y) % 2) ||
                               (fill == FILL_BLOCKS && random >> ((x / block * 7 + y / block) % 64) & 1));
}

static void check_pass_case(struct checker *checker, const struct filter *original, bool flipped, struct test_case c,
                            uint64_t *state)
{
    const enum fill fill = (enum fill)(c.number / 2 % FILL_COUNT);
    struct filter *filter = allocate(sizeof *filter);
    *filter = *original;
    filter->filter16 = NULL;
    if (flipped)
        filter_flip(filter);
    c.filter = filter;
    c.planes = 1 + (int)(c.number % PLANES_MAX);
    snprintf(c.what, sizeof c.what,
             "%s, %d x %d taps in two passes, shift %d, amount %d, threshold %d, anchor %d %d, %d x %d %s, "
             "%d planes, fill %d, border %s",
             filter->name, filter->width, filter->height, filter->row_shift, filter->amount, filter->threshold,
             filter->anchor_x, filter->anchor_y, c.width, c.height, sample_name(c.sample), c.planes, (int)fill,
             border_name(c.border));
    case_open(&c);
    fill_plane(&c.in.plane, fill, filter->width > 16 ? filter->width / 3 : 4, state);
    const bool is_expected = case_check(checker, &c);
    const double products = (double)c.width * c.height * c.planes * filter->width * filter->height;
    /* a tiny Gaussian is the identity, a grid */
    if (is_expected && original->two_pass && c.sample != SAMPLE_F32 && products < 2e6)
        check_direct(checker, original, flipped, &c);
    case_close(&c);
    free(filter);
}

static const int pass_sizes[][2] = {{1, 1},    {5, 3},   {67, 1},   {2, 131},  {1, 999},
                                    {21, 140}, {31, 64}, {130, 65}, {700, 90}, {1025, 260}};

/* The row sums of a wide blur have 256 MB on a GPU. These images need more, so that their columns are filtered in two
 * parts. */
static void check_tall(struct checker *checker, uint64_t *state)
{
    static const struct pass_shape tall_shapes[] = {
        {.width = 3, .height = 181, .row_bits = 16, .column_bits = 18, .row_shift = 10, .anchor_x = 2, .anchor_y = 170},
        {.width = 5,
         .height = 177,
         .row_bits = 24,
         .column_bits = 26,
         .row_shift = 18,
         .anchor_x = 1,
         .anchor_y = 9,
         .is_16_bit = true},
    };
    struct filter *filter = allocate(sizeof *filter), *filter16 = allocate(sizeof *filter16);
    for (size_t p = 0; p < sizeof tall_shapes / sizeof tall_shapes[0]; p++) {
        make_passes(&tall_shapes[p], state, filter, filter16);
        const struct test_case c = {.sample = tall_shapes[p].is_16_bit ? SAMPLE_U16 : SAMPLE_U8,
                                    .border = BORDER_REPLICATE,
                                    .width = 200,
                                    .height = 400000};
        check_pass_case(checker, filter_of_depth(filter, c.sample != SAMPLE_U8), false, c, state);
    }
    free(filter);
    free(filter16);
}

void check_passes(struct checker *checker)
{
    const struct options *options = &checker->options;
    const uint64_t share = options->share / 4 | 1; /* there are fewer of these cases */
    uint64_t state = options->seed;
    struct filter *filter = allocate(sizeof *filter), *filter16 = allocate(sizeof *filter16);
    struct test_case c = {0};
    for (size_t p = 0; p < sizeof pass_shapes / sizeof pass_shapes[0]; p++) {
        const struct pass_shape *shape = &pass_shapes[p];
        make_passes(shape, &state, filter, filter16);
        for (size_t s = 0; s < sizeof pass_sizes / sizeof pass_sizes[0]; s++) {
            c.width = pass_sizes[s][0];
            c.height = pass_sizes[s][1];
            const int64_t taps = (int64_t)c.width * c.height * (filter->width + filter->height);
            if (taps > (options->quick ? 15000000 : 250000000)) /* for the reference */
                continue;
            for (c.border = 0; c.border < BORDER_COUNT; c.border++)
                for (c.sample = 0; c.sample < SAMPLE_COUNT; c.sample++, c.number++) {
                    const bool any_depth = shape->spec != NULL || shape->row_shift == 0 || c.sample == SAMPLE_F32;
                    /* In floats, an e next to the threshold may fall on its other side. */
                    if ((!any_depth && shape->is_16_bit != (c.sample == SAMPLE_U16)) ||
                        (c.sample == SAMPLE_F32 && shape->threshold > 0) || c.number % share != p % share)
                        continue;
                    check_pass_case(checker, filter_of_depth(filter, c.sample != SAMPLE_U8),
                                    shape->spec == NULL && c.number % 4 == 0, c, &state);
                }
        }
    }
    if (checker->device != NULL && !options->quick)
        check_tall(checker, &state);
    free(filter);
    free(filter16);
}
