/* SPDX-License-Identifier: MIT
 *
 * Filters of ranks: footprints of all forms, on pictures that are smaller and larger than a window, a part of a row and
 * a tile. Bits are compared, as floats may be no numbers. Bands of rows, and samples of a pixel side by side, are what
 * the CPU's streams ask for. */
#include "check.h"

#include "base/random.h"
#include "base/vector/instruction_sets.h"

#include <inttypes.h>
#include <math.h>

/* Names, or the text of a file. */
static const char *const specs[] = {
    "median:1",
    "median:2",
    "median:3",
    "median:7",
    "median:8",
    "rank:3:20",
    "rank:1:30",
    "median:40",
    "erode:1",
    "erode:2",
    "erode:7",
    "erode:63",
    "dilate:3",
    "dilate:30:disk",
    "open:2",
    "close:3:disk",
    "tophat:2",
    "blackhat:4:disk",
    "outline:1",
    "median:4.5:disk",
    "combine median\nanchor 4 0\n1 0 1 1 1\n0 0 0 0 1\n1 1 0 1 0\n",
    "combine minimum\nanchor 6 2\n1 0 1 1 1 0 1\n0 0 0 0 0 0 0\n0 1 1 1 1 1 1\n1 0 0 0 0 0 0\n",
    "combine median\nanchor 0 2\n1 1 1\n1 1 1\n1 1 1\n",
    "combine maximum\nanchor 0 0\n1 1 1 1 1 1 1 1 1\n",
    "combine rank 70%\nanchor 1 8\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n1 1\n",
    "combine median\n1\n",
    "combine minimum\n1 1\n",
    "combine maximum\nanchor 1 0\n1 1 1 1\n1 1 1 1\n",
    "combine minimum\n1 1 1 1 1 1\n1 1 1 1 1 1\n1 1 1 1 1 1\n",
    "combine maximum\n1 1 1 1 1 1 1 1\n",
    "combine rank 40%\n1 1 1 1 1 1\n1 1 1 1 1 1\n",
};

static const int picture_sizes[][2] = {{1, 1},   {1, 67},    {67, 1},   {4, 3},     {6, 9},   {33, 31},
                                       {64, 65}, {131, 140}, {301, 37}, {1501, 11}, {2300, 6}};

enum content { NOISE, CONSTANT, FEW_LEVELS, SLOPE_DOWN, ENDS, SPECIAL, CONTENTS };

/* Make random samples less random. */
static void change(const struct plane *planes, enum content content, uint64_t *state)
{
    static const float specials[] = {0, -0.0f, INFINITY, -INFINITY, NAN, -NAN, 1e-42f, -1e-42f, 3, -3};
    for (int channel = 0; channel < planes->count; channel++)
        for (int y = 0; y < planes->height; y++)
            for (int x = 0; x < planes->width; x++) {
                unsigned char *row = row_of(planes, channel, y);
                const uint64_t random = random_next(state);
                const int level = content == CONSTANT     ? 77
                                  : content == FEW_LEVELS ? (int)(random % 4) * 60
                                  : content == SLOPE_DOWN ? (3 * y + x + (int)(random % 3)) % 256
                                                          : (int)(random % 2) * 255;
                if (planes->sample == SAMPLE_U8)
                    row[x] = (unsigned char)level;
                else if (planes->sample == SAMPLE_U16)
                    ((uint16_t *)(void *)row)[x] = (uint16_t)(level * 257);
                else
                    ((float *)(void *)row)[x] = content == SPECIAL
                                                    ? specials[random % (sizeof specials / sizeof *specials)]
                                                    : (float)level / 255;
            }
}

static void find_filter(const char *spec, struct filter *filter)
{
    struct error error = {0};
    if (!(strchr(spec, '\n') != NULL ? filter_parse(spec, strlen(spec), "footprint", filter, &error)
                                     : filter_find(spec, filter, NULL, &error)))
        fail("%s", error.message);
}

/* Compute the expected image. Where it has floats that are no numbers, case_check would not find them equal. */
static void expect(struct checker *checker, struct test_case *c)
{
    struct plan plan;
    struct error error = {0};
    if (!variant_plan(&plan, c->filter, c->border, c->sample, variant_reference(), &error) ||
        !run_variant(checker, &plan, &c->in, &c->expected, &error))
        fail("%s", error.message);
    plan_free(&plan);
}

/* COUNT planes of one size, or such that are together. */
static struct guarded make_planes(const struct plane *like, bool is_together, size_t padding, struct plane *planes)
{
    const int step = is_together ? like->count : 1;
    const struct guarded guarded =
        guarded_make(like->sample, like->width * step, like->height, like->count / step, padding);
    *planes = guarded.plane;
    planes->width = like->width;
    planes->count = like->count;
    planes->is_together = is_together;
    if (is_together)
        planes->plane_bytes = sample_bytes(like->sample);
    return guarded;
}

static unsigned char *sample_at(const struct plane *planes, int channel, int y, int x)
{
    return row_of(planes, channel, y) + (size_t)(x * plane_step(planes)) * sample_bytes(planes->sample);
}

/* Compare rows FIRST_ROW to the one before LAST_ROW with what the reference has made of all. */
static void check_band(struct checker *checker, const struct test_case *c, bool is_together, int first_row,
                       int last_row)
{
    const size_t size = sample_bytes(c->sample);
    struct plane in, out;
    struct error error = {0};
    struct plan plan;
    const struct guarded from = make_planes(&c->in.plane, is_together, 0, &in);
    const struct guarded to = make_planes(&c->in.plane, is_together, ROW_STEP, &out);
    memset(from.memory, c->poison, from.size);
    memset(to.memory, c->poison, to.size);
    for (int channel = 0; channel < in.count; channel++)
        for (int y = 0; y < in.height; y++)
            for (int x = 0; x < in.width; x++)
                memcpy(sample_at(&in, channel, y, x), sample_at(&c->in.plane, channel, y, x), size);
    if (!variant_plan(&plan, c->filter, c->border, c->sample, variant_find("cpu", NULL), &error))
        fail("%s", error.message);
    plan.pool = &checker->pool;
    plan.first_row = first_row;
    plan.last_row = last_row;
    if (!variant_prepare(&plan, NULL, &error) || !variant_launch(&plan, NULL, &in, &out, &error))
        fail("%s: %s", c->what, error.message);
    plan_free(&plan);
    bool is_right = guards_intact(&to, c->poison);
    unsigned char untouched[sizeof(float)];
    memset(untouched, c->poison, sizeof untouched);
    for (int channel = 0; channel < out.count; channel++)
        for (int y = 0; y < out.height; y++)
            for (int x = 0; x < out.width; x++)
                is_right &=
                    memcmp(sample_at(&out, channel, y, x),
                           y >= first_row && y < last_row ? sample_at(&c->expected.plane, channel, y, x) : untouched,
                           size) == 0;
    checker->cases++;
    checker->mismatches += !is_right;
    if (!is_right)
        fprintf(stderr, "MISMATCH cpu %s: %s: rows %d to %d of planes%s\n", getenv("GPUCONV_CPU"), c->what, first_row,
                last_row, is_together ? " that are together" : "");
    free(from.memory);
    free(to.memory);
}

/* The first band has all rows. */
static void check_bands(struct checker *checker, struct test_case *c, uint64_t *state)
{
    size_t sets;
    const enum instruction_set *all = instruction_sets(&sets);
    for (size_t s = 0; s < sets; s++) {
        setenv("GPUCONV_CPU", instruction_set_name(all[s]), 1);
        for (int band = 0; band < 3; band++) {
            const int first = band == 0 ? 0 : random_between(state, 0, c->height - 1);
            const int last = band == 0 ? c->height : random_between(state, first + 1, c->height);
            check_band(checker, c, (c->number + s) % 2 == 0, first, last);
        }
    }
}

void check_ranks(struct checker *checker)
{
    const struct options *options = &checker->options;
    const double work = options->quick ? 6e6 : 3e7;                     /* the reference takes longest */
    const uint64_t share = options->large ? 1 : options->share / 8 | 1; /* there are fewer of these cases */
    uint64_t state = options->seed, chosen = options->seed;
    struct filter *filter = allocate(sizeof *filter);
    struct test_case c = {.filter = filter};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        find_filter(specs[i], filter);
        for (size_t s = 0; s < sizeof picture_sizes / sizeof *picture_sizes; s++)
            for (enum content content = 0; content < CONTENTS; content++, c.number++) {
                /* All borders and types meet each filter, and all meet each content. */
                c.sample = (enum sample)((c.number + s) % SAMPLE_COUNT);
                c.border = (enum border)((c.number / SAMPLE_COUNT + i) % BORDER_COUNT);
                c.planes = 1 + (int)((c.number + i) % 4);
                c.width = picture_sizes[s][0];
                c.height = picture_sizes[s][1];
                if (content == SPECIAL)
                    c.sample = SAMPLE_F32;
                /* By chance, as sizes, contents and types depend on the number. */
                if (random_next(&chosen) % share != 0 ||
                    (double)filter->rank.count * c.width * c.height * c.planes > work)
                    continue;
                snprintf(c.what, sizeof c.what, "%.20s, content %d, %d x %d %s, %d planes, border %s", specs[i],
                         (int)content, c.width, c.height, sample_name(c.sample), c.planes, border_name(c.border));
                case_open(&c);
                fill_random(&c.in.plane, &state);
                if (content != NOISE)
                    change(&c.in.plane, content, &state);
                if (content == SPECIAL && options->cpu)
                    expect(checker, &c);
                if ((content == SPECIAL || case_check(checker, &c)) && options->cpu)
                    check_bands(checker, &c, &state);
                case_close(&c);
            }
    }
    free(filter);
}
