/* SPDX-License-Identifier: MIT
 *
 * Properties that hold whatever the reference says, so that the reference is checked too. Each is checked on one plane
 * of uint8_t that went through a variant. */
#include "check.h"

#include "base/random.h"

struct property {
    const char *name, *filter; /* a filter's text */
    bool (*holds)(const struct plane *in, const struct plane *out, const struct filter *filter);
};

static bool is_copy(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    (void)filter;
    for (int y = 0; y < in->height; y++)
        if (memcmp(row_of(in, 0, y), row_of(out, 0, y), (size_t)in->width) != 0)
            return false;
    return true;
}

/* 0 0 1 with its anchor in the centre takes the sample on the right: the picture moves left by one. */
static bool is_moved_left(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    (void)filter;
    for (int y = 0; y < in->height; y++)
        if (memcmp(row_of(in, 0, y) + 1, row_of(out, 0, y), (size_t)in->width - 1) != 0)
            return false;
    return true;
}

/* A column 1 0 0 takes the sample above: the picture moves down. */
static bool is_moved_down(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    (void)filter;
    for (int y = 1; y < in->height; y++)
        if (memcmp(row_of(in, 0, y - 1), row_of(out, 0, y), (size_t)in->width) != 0)
            return false;
    return true;
}

/* The input is 0 but for a 1 in the middle. Correlation gives the taps there, turned by 180 degrees. */
static bool is_impulse_response(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++) {
            const int i = in->height / 2 - y + filter->anchor_y, j = in->width / 2 - x + filter->anchor_x;
            const bool under = i >= 0 && i < filter->height && j >= 0 && j < filter->width;
            if (row_of(out, 0, y)[x] != (under ? filter->taps[i * filter->width + j] : 0))
                return false;
        }
    return true;
}

static bool is_constant(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    (void)filter;
    for (int y = 0; y < out->height; y++)
        for (int x = 0; x < out->width; x++)
            if (row_of(out, 0, y)[x] != *row_of(in, 0, 0))
                return false;
    return true;
}

/* The input is zeros but for every pair of samples, as the right and the lower neighbour of one pixel in three by
 * three. By the definition, the level there is the greatest n with (2 D n - D)^2 <= 4 q^2 (a^2 + b^2). */
static bool is_root(const struct plane *in, const struct plane *out, const struct filter *filter)
{
    const int64_t q = filter->taps[5], scale = filter->scale;
    for (int y = 1; y < in->height; y += 3)
        for (int x = 1; x < in->width; x += 3) {
            const int64_t a = row_of(in, 0, y)[x + 1], b = row_of(in, 0, y + 1)[x];
            int64_t n = 0;
            while (n < 255 &&
                   (2 * scale * (n + 1) - scale) * (2 * scale * (n + 1) - scale) <= 4 * q * q * (a * a + b * b))
                n++;
            if (row_of(out, 0, y)[x] != n)
                return false;
        }
    return true;
}

static void fill_pairs(const struct plane *plane)
{
    for (int y = 0; y < plane->height; y++)
        for (int x = 0; x < plane->width; x++)
            row_of(plane, 0, y)[x] = (unsigned char)(y % 3 == 1 && x % 3 == 2   ? x / 3
                                                     : y % 3 == 2 && x % 3 == 1 ? y / 3
                                                                                : 0);
}

#define NEIGHBOURS(q) "combine magnitude\n0 0 0\n-" q " 0 " q "\n0 0 0\n---\n0 -" q " 0\n0 0 0\n0 " q " 0\n"

static const struct property properties[] = {
    {"magnitudes are rounded roots", NEIGHBOURS("1"), is_root},
    {"magnitudes are rounded roots, by 2", "scale 2\n" NEIGHBOURS("1"), is_root},
    {"magnitudes are rounded roots, 3 by 4", "scale 4\n" NEIGHBOURS("3"), is_root},
    {"magnitudes are rounded roots, 15 by 16", "scale 16\n" NEIGHBOURS("15"), is_root},
    {"magnitudes are rounded roots, 17 by 24", "scale 24\n" NEIGHBOURS("17"), is_root},
    {"magnitudes are rounded roots, 61 by 64", "scale 64\n" NEIGHBOURS("61"), is_root},
    {"magnitudes are rounded roots, 800011 by 1000001", "scale 1000001\n" NEIGHBOURS("800011"), is_root},
    {"identity is a copy", "1", is_copy},
    {"a shift is a move to the left", "0 0 1", is_moved_left},
    {"a shift is a move down", "1\n0\n0", is_moved_down},
    {"an impulse gives the taps", "1 2 3 4\n5 6 7 8\n9 10 11 250", is_impulse_response},
    {"an impulse gives separable taps", "anchor 0 2\n2 4 6\n3 6 9\n50 100 150\n", is_impulse_response},
    {"a constant stays constant", "scale 7\n1 2 1\n2 -4 3\n1 0 1", is_constant},
    {"a constant stays constant, separable", "1/16 2/16 1/16\n2/16 4/16 2/16\n1/16 2/16 1/16", is_constant},
};

void check_properties(struct checker *checker)
{
    struct filter *filter = allocate(sizeof *filter);
    uint64_t state = checker->options.seed;
    for (size_t p = 0; p < sizeof properties / sizeof properties[0]; p++) {
        const struct property *property = &properties[p];
        struct error error = {0};
        if (!filter_parse(property->filter, strlen(property->filter), "property", filter, &error))
            fail("%s", error.message);
        const bool pairs = property->holds == is_root; /* 256 times three samples each way */
        const int width = pairs ? 768 : 211, height = pairs ? 768 : 67;
        struct guarded in = guarded_make(SAMPLE_U8, width, height, 1, 0);
        struct guarded out = guarded_make(SAMPLE_U8, width, height, 1, 0);
        memset(in.memory, property->holds == is_constant ? 173 : 0, in.size);
        if (property->holds == is_impulse_response)
            row_of(&in.plane, 0, in.plane.height / 2)[in.plane.width / 2] = 1;
        else if (pairs)
            fill_pairs(&in.plane);
        else if (property->holds != is_constant)
            fill_random(&in.plane, &state);
        size_t count;
        const struct variant *rows = variants(&count);
        for (size_t i = 0; i < count; i++) {
            struct plan plan;
            if (!is_wanted(&checker->options, &rows[i]) || !variant_accepts(&rows[i], filter, SAMPLE_U8))
                continue;
            memset(out.memory, 0xa5, out.size);
            if (!variant_plan(&plan, filter, BORDER_REFLECT101, SAMPLE_U8, &rows[i], &error) ||
                !run_variant(checker, &plan, &in, &out, &error))
                fail("%s: %s", rows[i].name, error.message);
            plan_free(&plan);
            checker->cases++;
            if (!property->holds(&in.plane, &out.plane, filter)) {
                checker->mismatches++;
                fprintf(stderr, "MISMATCH %s: it does not hold that %s\n", rows[i].name, property->name);
            }
        }
        free(in.memory);
        free(out.memory);
    }
    free(filter);
}
