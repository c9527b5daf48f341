/* SPDX-License-Identifier: MIT
 *
 * The decoder of baseline JPEG: its samples are those of libjpeg-turbo, byte for byte. */
#include "base/file.h"
#include "base/parallel.h"
#include "jpeg/decode_loops.h"
#include "jpeg_files.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Headers ---- */

/* Read the headers of a file. False if it is not supported. */
static bool read_headers(const uint8_t *file, size_t size, struct jpeg_layout *layout, struct jpeg_scan *scan)
{
    struct jpeg_headers headers = {0};
    const bool done = read_jpeg_headers(file, size, &headers) && jpeg_layout_for_reading(layout, &headers);
    *scan = (struct jpeg_scan){file + headers.scan, headers.scan_size};
    return done;
}

static const int factors[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 1}};

enum { FACTORS = sizeof factors / sizeof *factors };

static void test_headers_say_what_was_written(void **state)
{
    (void)state;
    for (int i = 0; i < FACTORS; i++) {
        const struct jpeg_recipe recipe = {.width = 45 + i,
                                           .height = 31,
                                           .components = 3,
                                           .horizontal = factors[i][0],
                                           .vertical = factors[i][1],
                                           .quality = 60,
                                           .restart_mcus = i};
        struct jpeg_layout layout;
        struct jpeg_scan scan;
        size_t size = 0;
        uint8_t *file = make_jpeg(&recipe, &size);
        assert_true(read_headers(file, size, &layout, &scan));
        assert_int_equal(layout.width, recipe.width);
        assert_int_equal(layout.height, recipe.height);
        assert_int_equal(layout.component_count, 3);
        assert_int_equal(layout.horizontal, recipe.horizontal);
        assert_int_equal(layout.vertical, recipe.vertical);
        assert_int_equal(layout.restart_interval, i);
        assert_int_equal(layout.mcu_blocks, 2 + recipe.horizontal * recipe.vertical);
        assert_int_equal(layout.tables.quantisers[0][0], (16 * 80 + 50) / 100); /* T.81, table K.1 */
        assert_int_equal(layout.tables.quantisers[0][8], (12 * 80 + 50) / 100);
        assert_int_equal(layout.tables.dc[0].counts[3], 5); /* table K.3 */
        assert_int_equal(layout.tables.ac[1].counts[16], 119);
        assert_ptr_equal(scan.bytes + scan.size, file + size - 2);
        assert_int_equal(jpeg_count_segments(&layout, &scan),
                         i == 0 ? 1 : (layout.mcus_across * layout.mcus_down + i - 1) / i);
        free(file);
    }
}

static bool copies(const char *bytes, size_t size, size_t segments, const char *data, size_t data_size,
                   const uint32_t *starts)
{
    const struct jpeg_scan scan = {(const uint8_t *)bytes, size};
    uint8_t *copy = malloc(size); /* no byte more, for a sanitiser */
    uint32_t *found = malloc(segments * sizeof *found);
    size_t copied = 0;
    const bool done = jpeg_copy_scan(&scan, segments, copy, &copied, found);
    const bool is_right = done && copied == data_size && memcmp(copy, data, data_size) == 0 &&
                          memcmp(found, starts, segments * sizeof *found) == 0;
    free(copy);
    free(found);
    return is_right;
}

static void test_scan_is_copied_without_stuffing_and_markers(void **state)
{
    (void)state;
    assert_true(copies("abc", 3, 1, "abc", 3, (uint32_t[]){0}));
    assert_true(copies("\xff\0\xff\0", 4, 1, "\xff\xff", 2, (uint32_t[]){0}));
    assert_true(copies("a\xff\xd0"
                       "b\xff\0\xff\xd1"
                       "c",
                       9, 3,
                       "ab\xff"
                       "c",
                       4, (uint32_t[]){0, 1, 3}));
    assert_false(copies("a\xff\xd1"
                        "b",
                        4, 2, "ab", 2, (uint32_t[]){0, 1}));
    assert_false(copies("a\xff\xd0"
                        "b",
                        4, 1, "ab", 2, (uint32_t[]){0, 1}));
    assert_false(copies("ab", 2, 2, "ab", 2, (uint32_t[]){0, 1}));
    assert_false(copies("a\xff\xff\0", 4, 1, "a\xff", 2, (uint32_t[]){0}));
    assert_false(copies("a\xff", 2, 1, "a\xff", 2, (uint32_t[]){0}));
}

/* ---- Samples ---- */

/* Only libjpeg-turbo's code for x86-64 makes the decoder's samples of numbers that overflow. */
#ifdef __x86_64__
enum { WRAPS_ALIKE = true };
#else
enum { WRAPS_ALIKE = false };
#endif

/* How to decode a file. */
struct way {
    size_t set; /* number of the instruction set, modulo those that there are */
    struct jpeg_chunking chunking;
    struct thread_pool *pool;
    int band;       /* rows of MCUs at once */
    bool overflows; /* numbers may overflow */
    int shrink;     /* the picture becomes 1/2^SHRINK as wide and high */
};

/* Decode a band like a reader that knows nothing but the rows above and below. */
static void decode_band(const struct jpeg_index *index, int first, int rows, uint8_t *samples)
{
    const struct jpeg_layout *layout = &index->layout;
    const int height = jpeg_mcu_height(layout), mcu_rows = (rows + height - 1) / height;
    const size_t bytes = jpeg_planes_bytes(layout);
    const bool has_above = first > 0, has_below = first + rows < layout->height;
    uint8_t *above = has_above ? malloc(bytes) : NULL, *below = has_below ? malloc(bytes) : NULL;
    uint8_t *planes = malloc(bytes * (size_t)mcu_rows);
    jpeg_decode_band(index, first, rows, planes);
    if (has_above)
        jpeg_decode_band(index, first - height, height, above);
    if (has_below)
        jpeg_decode_band(index, first + mcu_rows * height, 1, below);
    const struct jpeg_planes all = {planes, has_above ? above + bytes : NULL, below};
    jpeg_convert_band(index, first, rows, &all, samples);
    free(above);
    free(below);
    free(planes);
}

/* Decode a file. NULL if it is unsupported. */
static uint8_t *decode(const uint8_t *file, size_t size, const struct way *way)
{
    struct jpeg_layout layout;
    struct jpeg_scan scan;
    size_t sets;
    const enum instruction_set *all = instruction_sets(&sets);
    if (!read_headers(file, size, &layout, &scan))
        return NULL;
    jpeg_layout_shrink(&layout, way->shrink);
    uint8_t *samples = NULL;
    struct jpeg_index *index =
        jpeg_index_build(&layout, &scan, jpeg_decode_loops_for(all[way->set % sets]), &way->chunking, way->pool);
    if (index != NULL) {
        const size_t row_bytes = (size_t)layout.width * (size_t)layout.component_count;
        const int rows = way->band * jpeg_mcu_height(&layout);
        samples = malloc(row_bytes * (size_t)layout.height);
        for (int y = 0; y < layout.height; y += rows)
            decode_band(index, y, rows < layout.height - y ? rows : layout.height - y, samples + (size_t)y * row_bytes);
    }
    jpeg_index_free(index);
    return samples;
}

/* Decode a file, and fail if the samples differ from libjpeg-turbo's, or from the portable set's where libjpeg-turbo
 * may have others. Returns whether it is unsupported. */
static bool is_unsupported(const uint8_t *file, size_t size, const struct way *way)
{
    struct jpeg_layout layout;
    struct jpeg_scan scan;
    uint8_t *samples = decode(file, size, way);
    if (samples == NULL)
        return true;
    assert_true(read_headers(file, size, &layout, &scan));
    jpeg_layout_shrink(&layout, way->shrink);
    int width = layout.width, height = layout.height, components = layout.component_count;
    const struct way portable = {.chunking = jpeg_usual_chunking, .band = 1, .shrink = way->shrink};
    uint8_t *expected = WRAPS_ALIKE || !way->overflows
                            ? decode_jpeg(file, size, way->shrink, &width, &height, &components)
                            : decode(file, size, &portable);
    assert_non_null(expected);
    assert_int_equal(width, layout.width);
    assert_int_equal(height, layout.height);
    const size_t row_bytes = (size_t)width * (size_t)components;
    for (int y = 0; y < height; y++)
        for (size_t x = 0; x < row_bytes; x++)
            if (samples[(size_t)y * row_bytes + x] != expected[(size_t)y * row_bytes + x])
                fail_msg("1/%d, %d x %d x %d: row %d, sample %zu is %d instead of %d", 1 << way->shrink, width, height,
                         components, y, x, samples[(size_t)y * row_bytes + x], expected[(size_t)y * row_bytes + x]);
    free(samples);
    free(expected);
    return false;
}

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 8;
}

/* A recipe with random values where SIZE and FACTORS do not say more. */
static struct jpeg_recipe make_recipe(int width, int height, int kind, uint32_t *seed)
{
    struct jpeg_recipe recipe = {.width = width, .height = height, .horizontal = 1, .vertical = 1};
    recipe.components = kind < FACTORS ? 3 : 1;
    if (kind < FACTORS) {
        recipe.horizontal = factors[kind][0];
        recipe.vertical = factors[kind][1];
    }
    recipe.quality = 1 + (int)(next_random(seed) % 100);
    recipe.is_optimised = next_random(seed) % 3 == 0;
    recipe.shares_tables = next_random(seed) % 4 == 0;
    recipe.noise = (int)(next_random(seed) & 255);
    const uint32_t restarts = next_random(seed) % 4;
    if (restarts == 2)
        recipe.restart_mcus = 1 + (int)(next_random(seed) % 9);
    if (restarts == 3)
        recipe.restart_rows = 1 + (int)(next_random(seed) % 2);
    recipe.seed = next_random(seed);
    return recipe;
}

static struct way make_way(uint32_t number)
{
    return (struct way){.set = number, .chunking = jpeg_usual_chunking, .band = 1 + (int)(number / 3 % 3)};
}

static void check_recipe(const struct jpeg_recipe *recipe, const struct way *way)
{
    size_t size = 0;
    uint8_t *file = make_jpeg(recipe, &size);
    struct way one = *way;
    for (one.shrink = 0; one.shrink <= 3; one.shrink++)
        assert_false(is_unsupported(file, size, &one));
    free(file);
}

/* Each width up to 64, and each height, with several partners. */
static void test_every_size_and_subsampling(void **state)
{
    uint32_t seed = 1, number = 0;
    (void)state;
    for (int kind = 0; kind <= FACTORS; kind++)
        for (int side = 1; side <= 64; side++)
            for (int i = 0; i < 6; i++) {
                const int other = 1 + (int)(next_random(&seed) % 64);
                const struct jpeg_recipe recipe =
                    make_recipe(i % 2 == 0 ? side : other, i % 2 == 0 ? other : side, kind, &seed);
                const struct way way = make_way(number++);
                check_recipe(&recipe, &way);
            }
}

/* Around the multiples of 16, and of the tiles in which colours are converted. */
static void test_sizes_around_blocks_and_tiles(void **state)
{
    static const int widths[] = {79, 80, 81, 95, 96, 97, 1023, 1024, 1025, 1026, 2047, 2049, 3000};
    uint32_t seed = 2, number = 0;
    (void)state;
    for (int kind = 0; kind <= FACTORS; kind++)
        for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
            const struct jpeg_recipe recipe =
                make_recipe(widths[i], 15 + (int)(i % 3) + 16 * (int)(i % 2), kind, &seed);
            const struct way way = make_way(number++);
            check_recipe(&recipe, &way);
        }
}

static void test_every_quality(void **state)
{
    uint32_t seed = 3, number = 0;
    (void)state;
    for (int quality = 1; quality <= 100; quality++)
        for (int kind = 0; kind <= FACTORS; kind += 2) {
            struct jpeg_recipe recipe = make_recipe(50, 40, kind, &seed);
            recipe.quality = quality;
            const struct way way = make_way(number++);
            check_recipe(&recipe, &way);
        }
}

/* Coefficients that no picture has, up to those that wrap and saturate. */
static void test_any_coefficients(void **state)
{
    static const int scales[] = {1, 100, 1000, 3000, 10000, 50000, 1000000};
    uint32_t seed = 4, number = 0;
    (void)state;
    for (uint32_t coefficients = 1; coefficients <= 5; coefficients++)
        for (int kind = 0; kind <= FACTORS; kind++)
            for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
                for (int j = 0; j < 3; j++) {
                    struct jpeg_recipe recipe = make_recipe(90, 70, kind, &seed);
                    recipe.coefficients = coefficients;
                    recipe.scale = scales[i];
                    struct way way = make_way((uint32_t)j + 3 * number++);
                    way.overflows = true;
                    check_recipe(&recipe, &way);
                }
}

/* ---- The index ---- */

static void test_threads_and_chunks(void **state)
{
    static const struct jpeg_chunking chunkings[] = {{1024, 0}, {1024, 1500}, {5000, 100}, {8192, 8192}, {65536, 4096}};
    static const int threads[] = {1, 2, 5};
    struct thread_pool pools[3];
    uint32_t seed = 5, number = 0;
    (void)state;
    for (int i = 0; i < 3; i++)
        thread_pool_open(&pools[i], threads[i]);
    for (int kind = 0; kind <= FACTORS; kind++)
        for (size_t i = 0; i < sizeof chunkings / sizeof *chunkings; i++)
            for (int j = 0; j < 3; j++) {
                struct jpeg_recipe recipe = make_recipe(320, 200, kind, &seed);
                recipe.coefficients = number % 11 == 0 ? number % 5 + 1 : 0;
                struct way way = make_way(number++);
                way.overflows = recipe.coefficients > 0;
                way.chunking = chunkings[i];
                way.pool = &pools[j];
                check_recipe(&recipe, &way);
            }
    for (int i = 0; i < 3; i++)
        thread_pool_close(&pools[i]);
}

static void test_photo(void **state)
{
    char path[4096];
    uint8_t *bytes = NULL;
    size_t size = 0;
    struct error error = {0};
    struct thread_pool pool;
    (void)state;
    const int length = snprintf(path, sizeof path, "%s/samples/rocket.jpg", getenv("GPUCONV_SOURCE_ROOT"));
    assert_in_range(length, 1, sizeof path - 1);
    assert_true(file_read(path, 1 << 24, &bytes, &size, NULL, &error));
    thread_pool_open(&pool, 3);
    for (uint32_t i = 0; i < 6; i++) {
        struct way way = make_way(i);
        way.pool = i < 3 ? &pool : NULL;
        way.chunking.chunk = 40000;
        assert_false(is_unsupported(bytes, size, &way));
    }
    thread_pool_close(&pool);
    free(bytes);
}

/* Guesses come right within the usual lead, also where all components have the same tables and the index in the MCU
 * cannot be known. */
static void test_guesses_come_right(void **state)
{
    struct thread_pool pool;
    (void)state;
    thread_pool_open(&pool, 2);
    for (int i = 0; i < 2; i++) {
        const struct jpeg_recipe recipe = {.width = 1200,
                                           .height = 900,
                                           .components = 3,
                                           .horizontal = 2,
                                           .vertical = 2,
                                           .quality = 90,
                                           .noise = 60,
                                           .shares_tables = i == 1};
        const struct jpeg_chunking chunking = {1 << 16, jpeg_usual_chunking.lead};
        struct jpeg_layout layout;
        struct jpeg_scan scan;
        size_t size = 0;
        uint8_t *file = make_jpeg(&recipe, &size);
        assert_in_range(size, 20 << 13, SIZE_MAX); /* 20 chunks */
        assert_true(read_headers(file, size, &layout, &scan));
        enum instruction_set set;
        instruction_set_find(&set, NULL);
        struct jpeg_index *index = jpeg_index_build(&layout, &scan, jpeg_decode_loops_for(set), &chunking, &pool);
        assert_non_null(index);
        assert_int_equal(index->period, i == 1 ? 1 : 6);
        assert_in_range(index->wrong_guesses, 0, 2);
        jpeg_index_free(index);
        const struct way way = {.chunking = chunking, .pool = &pool, .band = 4, .set = 2};
        assert_false(is_unsupported(file, size, &way));
        free(file);
    }
    thread_pool_close(&pool);
}

/* A grey file whose scan are these bytes, with the tables of the standard. */
static uint8_t *make_grey(int width, int height, int restart_mcus, const uint8_t *bytes, size_t size, size_t *file_size)
{
    const struct jpeg_recipe recipe = {.width = width,
                                       .height = height,
                                       .components = 1,
                                       .horizontal = 1,
                                       .vertical = 1,
                                       .quality = 50,
                                       .restart_mcus = restart_mcus};
    struct jpeg_layout layout;
    struct jpeg_scan scan;
    uint8_t *file = make_jpeg(&recipe, file_size);
    assert_true(read_headers(file, *file_size, &layout, &scan));
    const size_t head = (size_t)(scan.bytes - file);
    file = realloc(file, head + size + 2);
    memcpy(file + head, bytes, size);
    memcpy(file + head + size, "\xff\xd9", 2);
    *file_size = head + size + 2;
    return file;
}

/* A difference of +2047 in each block: 111111110 11111111111, then the end of the block: 1010. */
static void test_dc_wraps(void **state)
{
    enum { ACROSS = 40, BLOCKS = ACROSS * 30 };
    uint8_t bytes[4 * BLOCKS];
    size_t size;
    (void)state;
    for (int i = 0; i < BLOCKS; i++)
        memcpy(bytes + 4 * (size_t)i, "\xff\0\x7f\xfa", 4);
    uint8_t *file = make_grey(8 * ACROSS, 8 * BLOCKS / ACROSS, 0, bytes, sizeof bytes, &size);
    for (uint32_t i = 0; i < 3; i++) {
        struct way way = make_way(i);
        way.overflows = true;
        assert_false(is_unsupported(file, size, &way));
    }
    free(file);
}

/* The scan of blocks of difference 0 (00) and no more (1010), and what is not quite one. */
static void test_damage_is_declined(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        bool is_right;
        int blocks; /* with restart markers between them; 0 if there is one, without markers */
    } scans[] = {
        {"\x2b", 1, true, 0},              /* 00 1010 11 */
        {"\x28", 1, true, 0},              /* any bits may fill the byte */
        {"\x2b\x2b", 2, false, 0},         /* a byte too many */
        {"\x2b\xff\0", 3, false, 0},       /* a byte too many, FF, and its stuffed zero */
        {"\x2e", 1, false, 0},             /* 00 1011 10: a code that ends after the data */
        {"\x3f\xff\0\xff\0", 5, false, 0}, /* 00 111111 ...: there is no code of ones alone */
        {"\x3f\xe7\xfe\x7f\xe7\xfe\x7f\xe7\xfe\x7f", 10, false,
         0}, /* 11111111001: 16 zeros, until there are too many */
        {"\x2b\xff\xd0\x28", 4, true, 2},
        {"\x2b\x2b\xff\xd0\x28", 5, false, 2}, /* a byte too many in the first segment */
        {"\x2b\xff\xd0\x28\x2b", 5, false, 2},
        {"\x2b\xff\xd0\xff\xd1\x2b", 6, false, 3}, /* a segment without data */
        {"\xff\xd0\x2b", 3, false, 0},             /* a restart marker without restarts */
    };
    (void)state;
    for (size_t i = 0; i < sizeof scans / sizeof *scans; i++)
        for (uint32_t j = 0; j < 3; j++) {
            size_t size;
            uint8_t *file = make_grey(scans[i].blocks > 0 ? 8 * scans[i].blocks : 8, 8, scans[i].blocks > 0,
                                      (const uint8_t *)scans[i].bytes, scans[i].size, &size);
            const struct way way = make_way(j);
            assert_int_equal(is_unsupported(file, size, &way), !scans[i].is_right);
            free(file);
        }
}

/* A mutated file has the samples of libjpeg-turbo, or is unsupported. */
static void test_mutated_files(void **state)
{
    enum { FILES = 60, MUTATIONS = 60 };
    uint32_t seed = 6, unsupported = 0;
    struct thread_pool pool;
    (void)state;
    thread_pool_open(&pool, 2);
    for (uint32_t i = 0; i < FILES; i++) {
        const struct jpeg_recipe recipe = make_recipe(70 + (int)i, 60, (int)(i % (FACTORS + 1)), &seed);
        size_t size = 0;
        uint8_t *file = make_jpeg(&recipe, &size);
        for (uint32_t j = 0; j < MUTATIONS; j++) {
            const uint32_t from = j % 3 == 0 ? 0 : next_random(&seed),
                           at = (from + next_random(&seed)) % (uint32_t)size;
            const uint8_t old = file[at];
            struct way way = make_way(i + j);
            way.overflows = true;
            file[at] = (uint8_t)(j % 2 == 0 ? old ^ 1u << (next_random(&seed) & 7) : next_random(&seed));
            way.pool = j % 4 == 0 ? &pool : NULL;
            way.chunking = (struct jpeg_chunking){2048, 500};
            unsupported += is_unsupported(file, size, &way);
            file[at] = old;
        }
        free(file);
    }
    thread_pool_close(&pool);
    assert_in_range(unsupported, FILES * MUTATIONS / 50, FILES * MUTATIONS * 9 / 10); /* both happen */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_say_what_was_written),
        cmocka_unit_test(test_scan_is_copied_without_stuffing_and_markers),
        cmocka_unit_test(test_every_size_and_subsampling),
        cmocka_unit_test(test_sizes_around_blocks_and_tiles),
        cmocka_unit_test(test_every_quality),
        cmocka_unit_test(test_any_coefficients),
        cmocka_unit_test(test_threads_and_chunks),
        cmocka_unit_test(test_photo),
        cmocka_unit_test(test_guesses_come_right),
        cmocka_unit_test(test_dc_wraps),
        cmocka_unit_test(test_damage_is_declined),
        cmocka_unit_test(test_mutated_files),
    };
    return cmocka_run_group_tests_name("jpeg_decode", tests, NULL, NULL);
}
