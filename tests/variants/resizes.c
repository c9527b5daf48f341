/* SPDX-License-Identifier: MIT
 *
 * Filters that move samples or change pixels by themselves, in all planes and types; and those that change the size:
 * every kernel, from a little to many times smaller and larger, each axis for itself. */
#include "check.h"

#include "base/random.h"

/* Sizes before and after. In some, only one side changes; 128 times and more takes a split of the taps, and outputs of
 * more than 4096 taps are made one row after the other. */
static const int resizes[][4] = {
    {1, 1, 9, 7},         {64, 64, 64, 64},    {64, 48, 32, 24},    {63, 47, 32, 24},   {130, 65, 64, 65},
    {33, 200, 33, 7},     {100, 100, 77, 131}, {257, 90, 200, 300}, {20, 20, 400, 333}, {700, 90, 5, 3},
    {1025, 260, 64, 16},  {5, 900, 700, 6},    {3000, 8, 11, 2},    {523, 101, 52, 10}, {300, 300, 299, 1},
    {2000, 1500, 31, 11}, {9, 4000, 40, 3},    {20000, 4, 100, 3},  {8000, 3, 1, 2},    {60000, 5, 100, 5},
    {100000, 2, 1, 1},    {3, 100000, 2, 1},   {2, 66000, 1, 2},    {4090, 4, 1, 1},    {4, 4090, 1, 1},
    {150, 1024, 150, 2},
};

/* Noise, only the two ends, or white: sums of these are the largest. */
enum content { CONTENT_NOISE, CONTENT_ENDS, CONTENT_WHITE, CONTENTS };

static void fill(const struct plane *plane, enum content content, uint64_t *state)
{
    fill_random(plane, state);
    for (int channel = 0; channel < plane->count && content != CONTENT_NOISE; channel++)
        for (int y = 0; y < plane->height; y++) {
            unsigned char *row = row_of(plane, channel, y);
            for (int x = 0; x < plane->width; x++)
                if (plane->sample == SAMPLE_U8)
                    row[x] = content == CONTENT_WHITE || row[x] & 1 ? 255 : 0;
                else if (plane->sample == SAMPLE_U16)
                    ((uint16_t *)(void *)row)[x] = content == CONTENT_WHITE || row[2 * x] & 1 ? 65535 : 0;
        }
}

static void check_resize(struct checker *checker, const struct filter *filter, const int *size, enum sample sample,
                         int planes, uint64_t number, uint64_t *state)
{
    struct test_case c = {.filter = filter,
                          .border = (enum border)(number % BORDER_COUNT),
                          .sample = sample,
                          .width = size[0],
                          .height = size[1],
                          .planes = planes,
                          .out_width = size[2],
                          .out_height = size[3],
                          .number = number};
    snprintf(c.what, sizeof c.what, "%s, %d x %d %s, %d planes", filter->name, size[0], size[1], sample_name(sample),
             c.planes);
    case_open(&c);
    fill(&c.in.plane, (enum content)(number / SAMPLE_COUNT % CONTENTS), state);
    case_check(checker, &c);
    case_close(&c);
}

void check_resizes(struct checker *checker)
{
    const uint64_t share = checker->options.share / 8 | 1; /* there are fewer of these cases */
    uint64_t state = checker->options.seed, number = 0;
    struct filter *filter = allocate(sizeof *filter);
    for (size_t r = 0; r < sizeof resizes / sizeof resizes[0]; r++)
        for (enum resample_kernel kernel = RESAMPLE_LANCZOS3; kernel < RESAMPLE_KERNELS; kernel++)
            for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++, number++) {
                char spec[64];
                struct error error = {0};
                snprintf(spec, sizeof spec, "resize:%dx%d:exact:%s", resizes[r][2], resizes[r][3],
                         resample_name(kernel));
                if (number % share != r % share)
                    continue;
                if (!filter_find(spec, filter, NULL, &error))
                    fail("%s", error.message);
                if (filter_is_pillow(filter) && (sample == SAMPLE_F32 || !filter_resize(filter, &(int){resizes[r][0]},
                                                                                        &(int){resizes[r][1]}, &error)))
                    continue;
                check_resize(checker, filter, resizes[r], sample, 1 + (int)(number % 3), number, &state);
            }
    free(filter);
}

/* Sizes after them are what the formats say. */
static const struct {
    const char *spec;
    int size[4];
} moves[] = {
    {"crop:50%", {301, 77, 151, 39}},
    {"crop:640x1+3+99", {700, 100, 640, 1}},
    {"crop:33x64+16+0", {64, 64, 33, 64}},
    {"crop:9x9:bottom:right", {9, 9, 9, 9}},
    {"pad:400x301", {257, 33, 400, 301}},
    {"pad:129x128:#f80", {128, 128, 129, 128}},
    {"turn:90", {301, 77, 77, 301}},
    {"turn:180", {1000, 65, 1000, 65}},
    {"turn:270", {1, 3000, 3000, 1}},
    {"turn:270", {640, 480, 480, 640}},
    {"mirror:x", {515, 64, 515, 64}},
    {"mirror:y", {64, 515, 64, 515}},
    {"mirror:x", {1, 1, 1, 1}},
    {"pad:100000x2:black", {99000, 1, 100000, 2}},
    {"sepia", {301, 77, 301, 77}},
    {"saturation:33.3", {64, 9, 64, 9}},
    {"levels:3%:90%:1.3", {2049, 5, 2049, 5}},
    {"threshold:50", {130, 65, 130, 65}},
    {"tint:#ff8000", {1, 1, 1, 1}},
    {"posterize:5", {9, 515, 9, 515}},
    {"pixelate:7", {301, 77, 301, 77}},
    {"pixelate:31", {1, 200, 1, 200}},
    {"pixelate:64", {130, 65, 130, 65}},
    {"pixelate:300", {2049, 301, 2049, 301}},
    {"pixelate:4096", {5, 3, 5, 3}},
    {"auto-levels", {301, 77, 301, 77}},
    {"auto-levels:2.5", {2049, 17, 2049, 17}},
    {"auto-contrast:30", {64, 515, 64, 515}},
    {"auto-contrast", {1, 1, 1, 1}},
};

void check_moves(struct checker *checker)
{
    uint64_t state = checker->options.seed, number = 0;
    struct filter *filter = allocate(sizeof *filter);
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        for (int planes = 1; planes <= 4; planes++)
            for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++) {
                struct error error = {0};
                if (!filter_find(moves[i].spec, filter, NULL, &error))
                    fail("%s", error.message);
                check_resize(checker, filter, moves[i].size, sample, planes, number++, &state);
            }
    free(filter);
}
