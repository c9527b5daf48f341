/* SPDX-License-Identifier: MIT
 *
 * The decoder on a GPU. Whole files go through it and through libjpeg-turbo. Both must give the same samples. The files
 * that it hands to the CPU are counted. No intact file may be among them, except for data that are made so that they do
 * not synchronise. */
#include "check.h"

#include "base/random.h"
#include "jpeg_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 512, POISON = 0xa5 };

enum outcome { DECLINED, HANDED_OVER, DECODED };

enum { SHRINKS = 4, FILES_MAX = 8, PICTURES_MAX = SHRINKS * FILES_MAX };

/* A picture of a file, 1/2^SHRINK as wide and high. */
struct picture {
    const uint8_t *file;
    size_t size;
    int shrink;
    struct jpeg_layout layout;
    enum outcome outcome;
    size_t at, bytes; /* the offset of its samples among those of all pictures, and their bytes */
    size_t plane;     /* as in struct jpeg_input */
};

bool find_picture(const uint8_t *file, size_t size, int shrink, struct jpeg_layout *layout, struct jpeg_scan *scan)
{
    struct jpeg_headers headers;
    if (!read_jpeg_headers(file, size, &headers) || !jpeg_layout_for_reading(layout, &headers))
        return false;
    jpeg_layout_shrink(layout, shrink);
    *scan = (struct jpeg_scan){file + headers.scan, headers.scan_size};
    return true;
}

/* Decode COUNT pictures at once. Returns the samples of all, with guards around them; release them with free. */
static uint8_t *decode(struct test_gpu *gpu, struct picture *pictures, size_t count)
{
    struct error error = {0};
    struct jpeg_input inputs[PICTURES_MAX];
    bool is_decoded[PICTURES_MAX];
    size_t end = GUARD, known = 0;
    for (size_t i = 0; i < count; i++) {
        struct picture *picture = &pictures[i];
        const struct jpeg_layout *layout = &picture->layout;
        if (!find_picture(picture->file, picture->size, picture->shrink, &picture->layout, &inputs[known].scan))
            continue;
        const size_t pixels = (size_t)layout->width * (size_t)layout->height;
        picture->plane = layout->component_count == 3 && i % 3 == 1 ? pixels + pixels % 3 : 0;
        inputs[known].plane = picture->plane;
        inputs[known++].layout = layout;
        picture->outcome = HANDED_OVER;
        picture->at = end;
        picture->bytes = picture->plane > 0 ? 2 * picture->plane + pixels : pixels * (size_t)layout->component_count;
        end += (picture->bytes / GUARD + 2) * GUARD;
    }
    uint8_t *copy = allocate(end);
    if (known == 0)
        return copy;
    reserve_samples(gpu, end);
    must(device_fill(gpu->device, gpu->samples.bytes, POISON, end, &error), &error);
    must(device_jpeg_reserve(gpu->jpeg, inputs, known, &error), &error);
    for (size_t i = 0, k = 0; i < count; i++)
        if (pictures[i].outcome != DECLINED) {
            inputs[k].samples = gpu->samples.bytes + pictures[i].at;
            device_jpeg_load(gpu->jpeg, k++);
        }
    must(device_jpeg_decode(gpu->jpeg, &error), &error);
    must(device_jpeg_decoded(gpu->jpeg, is_decoded, &error), &error);
    must(device_download(gpu->device, copy, gpu->samples.bytes, end, &error), &error);
    must(device_wait(gpu->device, &error), &error);
    for (size_t i = 0, k = 0; i < count; i++)
        if (pictures[i].outcome != DECLINED && is_decoded[k++])
            pictures[i].outcome = DECODED;
    return copy;
}

/* Compare the pixels with those of libjpeg-turbo. */
static void check_picture(const struct picture *picture, const uint8_t *samples, const char *what)
{
    const struct jpeg_layout *layout = &picture->layout;
    int width = 0, height = 0, components = 0;
    uint8_t *expected = decode_jpeg(picture->file, picture->size, picture->shrink, &width, &height, &components);
    if (expected == NULL)
        fail("%s: libjpeg-turbo refuses what the GPU decodes", what);
    if (width != layout->width || height != layout->height || components != layout->component_count)
        fail("%s: libjpeg-turbo decodes %d x %d pixels of %d bytes", what, width, height, components);
    const size_t row = (size_t)width * (size_t)components;
    for (size_t i = 0; i < row * (size_t)height; i++) {
        const size_t pixel = i / (size_t)components, channel = i % (size_t)components;
        const int sample = samples[picture->plane > 0 ? channel * picture->plane + pixel : i];
        if (sample != expected[i])
            fail("%s: at 1/%d, row %zu, column %zu, channel %zu is %d, not %d", what, 1 << picture->shrink, i / row,
                 pixel % (size_t)width, channel, sample, expected[i]);
    }
    free(expected);
}

/* Decode COUNT files at once, each in all sizes. */
static void check_files(struct test_gpu *gpu, uint8_t *const *files, const size_t *sizes, size_t count,
                        enum outcome *outcomes, const char *what)
{
    struct picture pictures[PICTURES_MAX];
    for (size_t i = 0; i < count * SHRINKS; i++)
        pictures[i] = (struct picture){
            .file = files[i / SHRINKS], .size = sizes[i / SHRINKS], .shrink = (int)(i % SHRINKS), .outcome = DECLINED};
    uint8_t *samples = decode(gpu, pictures, count * SHRINKS);
    size_t end = 0; /* the end of the picture before */
    for (size_t i = 0; i < count * SHRINKS; i++) {
        const struct picture *picture = &pictures[i];
        gpu->cases++;
        outcomes[i / SHRINKS] = picture->outcome;
        if (picture->outcome != pictures[i - i % SHRINKS].outcome)
            fail("%s: at 1/%d, the outcome is another one", what, 1 << picture->shrink);
        if (picture->outcome == DECLINED)
            continue;
        /* Nothing is written outside, and nothing is made of bad data. */
        const size_t from = picture->at + (picture->outcome == DECODED ? picture->bytes : 0);
        for (; end < picture->at; end++)
            if (samples[end] != POISON)
                fail("%s: the decoder wrote before picture %zu", what, i);
        for (end = from; end < picture->at + picture->bytes + GUARD; end++)
            if (samples[end] != POISON)
                fail("%s: the decoder wrote %s", what,
                     picture->outcome == DECODED ? "outside the image" : "an image that the CPU has to decode");
        if (picture->outcome == DECODED)
            check_picture(picture, samples + picture->at, what);
    }
    free(samples);
}

static enum outcome check_file(struct test_gpu *gpu, uint8_t *file, size_t size, const char *what)
{
    enum outcome outcome;
    check_files(gpu, &file, &size, 1, &outcome, what);
    return outcome;
}

static void describe(const struct jpeg_recipe *recipe, char *text, size_t size)
{
    snprintf(text, size,
             "%d x %d, %d components, %d x %d, quality %d, restarts %d %d, optimised %d, shared %d, noise %d, flat %d, "
             "seed %u, coefficients %u",
             recipe->width, recipe->height, recipe->components, recipe->horizontal, recipe->vertical, recipe->quality,
             recipe->restart_mcus, recipe->restart_rows, recipe->is_optimised, recipe->shares_tables, recipe->noise,
             recipe->is_flat, recipe->seed, recipe->coefficients);
}

enum { WHAT = 256 };

/* Check the file of RECIPE, and describe it as WHAT. */
static enum outcome outcome_of(struct test_gpu *gpu, const struct jpeg_recipe *recipe, char what[WHAT])
{
    size_t size;
    uint8_t *file = make_jpeg(recipe, &size);
    describe(recipe, what, WHAT);
    const enum outcome outcome = check_file(gpu, file, size, what);
    free(file);
    return outcome;
}

static void check_recipe(struct test_gpu *gpu, const struct jpeg_recipe *recipe)
{
    char what[WHAT];
    const enum outcome outcome = outcome_of(gpu, recipe, what);
    /* Values of random coefficients are as long as codes of their own tables: such data may not synchronise. */
    const bool may_hand_over = recipe->coefficients > 0 && recipe->is_optimised;
    if (outcome == DECLINED || (outcome == HANDED_OVER && !may_hand_over))
        fail("%s: %s", what, outcome == DECLINED ? "declined" : "handed over to the CPU");
}

/* Sampling factors of luma; the last is grey. */
static const int factors[][2] = {{2, 2}, {1, 1}, {2, 1}, {1, 2}, {4, 1}, {0, 0}};
enum { FACTORS = sizeof factors / sizeof *factors };

/* Random settings for a picture of WIDTH x HEIGHT. */
static struct jpeg_recipe make_recipe(int width, int height, int kind, uint64_t *state)
{
    const bool is_grey = factors[kind][0] == 0;
    struct jpeg_recipe recipe = {.width = width, .height = height};
    recipe.components = is_grey ? 1 : 3;
    recipe.horizontal = is_grey ? random_between(state, 1, 4) : factors[kind][0]; /* grey: they mean nothing */
    recipe.vertical = is_grey ? random_between(state, 1, 4) : factors[kind][1];
    recipe.quality = random_between(state, 0, 3) == 0 ? 100 : random_between(state, 1, 100);
    recipe.restart_mcus = random_between(state, 0, 3) == 0 ? random_between(state, 1, 9) : 0;
    recipe.restart_rows = recipe.restart_mcus == 0 && random_between(state, 0, 3) == 0;
    recipe.is_optimised = random_between(state, 0, 2) == 0;
    recipe.shares_tables = random_between(state, 0, 4) == 0;
    recipe.noise = (const int[]){0, 20, 100, 255}[random_between(state, 0, 3)];
    recipe.is_flat = random_between(state, 0, 7) == 0;
    recipe.seed = (uint32_t)random_next(state);
    recipe.coefficients = random_between(state, 0, 2) == 0 ? (uint32_t)random_between(state, 1, 5) : 0;
    return recipe;
}

static void check_sizes(struct test_gpu *gpu, const struct check_options *options, uint64_t *state)
{
    const int step = options->quick ? 9 : 1, times = options->quick ? 1 : 6;
    for (int kind = 0; kind < FACTORS; kind++)
        for (int width = 1; width <= 64; width += width < 18 && !options->quick ? 1 : step)
            for (int i = 0; i < times; i++) {
                const int height = i == 0 ? 65 - width : random_between(state, 1, 64);
                const struct jpeg_recipe recipe = make_recipe(width, height, kind, state);
                check_recipe(gpu, &recipe);
            }
    for (int multiple = 80; multiple <= (options->quick ? 80 : 1024); multiple *= 2)
        for (int kind = 0; kind < FACTORS; kind++)
            for (int i = -1; i <= 1; i++) {
                const struct jpeg_recipe recipe =
                    make_recipe(multiple + i, random_between(state, 1, 9) * 16 + 1 - i, kind, state);
                check_recipe(gpu, &recipe);
            }
}

/* Pictures whose data take many blocks of threads. */
static void check_large(struct test_gpu *gpu, const struct check_options *options, uint64_t *state)
{
    for (int kind = 0; kind < FACTORS; kind++)
        for (int i = 0; i < (options->quick ? 1 : 4); i++) {
            struct jpeg_recipe recipe =
                make_recipe(options->quick ? 430 : 2000 + random_between(state, 0, 2000),
                            options->quick ? 300 : 1500 + random_between(state, 0, 1500), kind, state);
            recipe.quality = (const int[]){90, 95, 75, 40}[i];
            recipe.noise = (const int[]){100, 30, 255, 60}[i];
            recipe.coefficients = 0;
            recipe.is_flat = false;
            recipe.is_optimised = i % 2 == 1;
            recipe.shares_tables = i == 2;
            check_recipe(gpu, &recipe);
        }
    for (int kind = 0; kind < FACTORS; kind++) { /* data that hardly synchronise, or not in time */
        struct jpeg_recipe recipe = make_recipe(options->quick ? 400 : 2000, options->quick ? 300 : 1500, kind, state);
        recipe.restart_mcus = recipe.restart_rows = 0;
        recipe.is_optimised = true;
        recipe.coefficients = 4;
        check_recipe(gpu, &recipe);
    }
}

enum { INSERTED_MAX = 3 * 2 }; /* bytes that damage adds */

/* Bytes up to the next restart marker, or to the last two bytes of the file. */
static size_t bytes_to_restart(const uint8_t *file, size_t size, size_t at)
{
    size_t end = at;
    while (end + 2 < size && (file[end] != 0xff || (file[end + 1] & 0xf8) != 0xd0))
        end++;
    return end - at;
}

/* Change some bytes of a file, mostly in the data; cut some out, or insert a marker. Returns the new size. */
static size_t mutate(uint8_t *file, size_t size, uint64_t *state)
{
    static const uint8_t markers[] = {0xd0, 0xd1, 0xd7, 0xd9, 0xda, 0xfe, 0xff, 0};
    const size_t data = size > 700 ? 620 : size / 2;
    for (int i = random_between(state, 1, 3); i > 0; i--) {
        const size_t from = random_between(state, 0, 9) == 0 ? 2 : data;
        if (size < from + 4)
            break;
        const size_t at = from + random_next(state) % (size - from - 2), left = size - 2 - at; /* EOI stays */
        const int reach = random_between(state, 0, 3);
        const size_t most = reach == 0 || left < 9 ? left : 9;
        const size_t some = reach == 1 ? bytes_to_restart(file, size, at) : random_next(state) % (most + 1);
        switch (random_between(state, 0, 4)) {
        case 0:
            file[at] = (uint8_t)random_next(state);
            break;
        case 1:
            file[at] ^= (uint8_t)(1 << random_between(state, 0, 7));
            break;
        case 2:
            memset(file + at, random_between(state, 0, 1) ? 0 : 0x55, some);
            break;
        case 3:
            memmove(file + at, file + at + some, size - at - some);
            size -= some;
            break;
        default: /* inserted, or instead of what is there */
            if (random_between(state, 0, 1)) {
                memmove(file + at + 2, file + at, size - at);
                size += 2;
            }
            file[at] = 0xff;
            file[at + 1] = markers[random_between(state, 0, (int)sizeof markers - 1)];
        }
    }
    return size;
}

static void check_mutated(struct test_gpu *gpu, const struct check_options *options, uint64_t *state)
{
    size_t outcomes[3] = {0};
    for (int i = 0; i < (options->quick ? 150 : 600); i++) {
        const struct jpeg_recipe recipe =
            make_recipe(random_between(state, 1, 200), random_between(state, 1, 200), i % FACTORS, state);
        size_t size;
        char what[256];
        uint8_t *file = make_jpeg(&recipe, &size);
        describe(&recipe, what, sizeof what);
        const size_t count = options->quick ? 4 : FILES_MAX;
        uint8_t *copies[FILES_MAX];
        size_t sizes[FILES_MAX];
        enum outcome found[FILES_MAX];
        for (size_t j = 0; j < count; j++) {
            copies[j] = allocate(size + INSERTED_MAX);
            memcpy(copies[j], file, size);
            sizes[j] = j == count / 2 ? size : mutate(copies[j], size, state); /* an intact one among damaged ones */
        }
        check_files(gpu, copies, sizes, count, found, what);
        for (size_t j = 0; j < count; j++) {
            outcomes[found[j]] += j != count / 2;
            free(copies[j]);
        }
        free(file);
    }
    printf("damaged files: %zu declined, %zu handed over, %zu decoded\n", outcomes[DECLINED], outcomes[HANDED_OVER],
           outcomes[DECODED]);
}

/* A segment that ends early, at each of its bytes, or is empty: segments of flat pictures have two bytes at most. */
static void check_short_segments(struct test_gpu *gpu)
{
    const struct jpeg_recipe recipe = {.width = 70,
                                       .height = 20,
                                       .components = 1,
                                       .horizontal = 1,
                                       .vertical = 1,
                                       .quality = 50,
                                       .restart_mcus = 1,
                                       .is_flat = true};
    size_t size;
    uint8_t *file = make_jpeg(&recipe, &size), *copy = allocate(size);
    for (size_t at = size / 2; at + 2 < size; at++) {
        const size_t cut = bytes_to_restart(file, size, at);
        memcpy(copy, file, at);
        memcpy(copy + at, file + at + cut, size - at - cut);
        if (cut > 0 && check_file(gpu, copy, size - cut, "a short segment") == DECODED)
            fail("a segment without its last %zu bytes is decoded", cut);
    }
    free(copy);
    free(file);
}

/* Shared memory can hold two tables of long codes, but not three. */
static void check_long_tables(struct test_gpu *gpu)
{
    for (int tables = 1; tables <= 3; tables++) {
        const struct jpeg_recipe recipe = {.width = 90,
                                           .height = 70,
                                           .components = 3,
                                           .quality = 90,
                                           .noise = 100,
                                           .horizontal = 1,
                                           .vertical = 1,
                                           .long_tables = tables};
        char what[WHAT];
        const enum outcome outcome = outcome_of(gpu, &recipe, what);
        if (outcome != (tables < 3 ? DECODED : HANDED_OVER))
            fail("%s: outcome %d with %d tables of long codes", what, (int)outcome, tables);
    }
}

/* Intact files that are for the CPU. */
static void check_declined(struct test_gpu *gpu, uint64_t *state)
{
    static const int others[][2] = {{4, 2}, {2, 4}, {1, 4}, {3, 1}, {1, 3}, {3, 2}, {2, 3}};
    enum { OTHERS = sizeof others / sizeof *others };
    for (int i = 0; i < OTHERS + 4; i++) {
        struct jpeg_recipe recipe = make_recipe(random_between(state, 1, 70), random_between(state, 1, 70), 0, state);
        recipe.coefficients = 0;
        recipe.is_optimised = false; /* arithmetic codes have no tables */
        if (i < OTHERS) {
            recipe.horizontal = others[i][0];
            recipe.vertical = others[i][1];
        }
        recipe.components = i < OTHERS + 2 ? 3 : 4;
        recipe.is_progressive = i == OTHERS;
        recipe.is_arithmetic = i == OTHERS + 1;
        recipe.is_ycck = i == OTHERS + 3;
        char what[WHAT];
        if (outcome_of(gpu, &recipe, what) != DECLINED)
            fail("%s: is not declined", what);
    }
}

void check_decoder(const struct check_options *options, struct test_gpu *gpu)
{
    uint64_t state = options->seed;
    check_sizes(gpu, options, &state);
    check_large(gpu, options, &state);
    check_short_segments(gpu);
    check_long_tables(gpu);
    check_declined(gpu, &state);
    check_mutated(gpu, options, &state);
}

void check_decoder_beside(const struct check_options *options, struct test_gpu *gpu)
{
    uint64_t state = options->seed;
    for (int i = 0; i < (options->quick ? 4 : 100); i++) {
        const int width = random_between(&state, 1, 400), height = random_between(&state, 1, 400);
        const struct jpeg_recipe recipe = make_recipe(width, height, i % FACTORS, &state);
        check_recipe(gpu, &recipe);
    }
}
