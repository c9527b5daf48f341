/* SPDX-License-Identifier: MIT
 *
 * The deflate for PNG: bytes of many kinds and sizes, in bands, against libdeflate's inflation. */
#include "png/png.h"

#include "base/vector/instruction_sets.h"
#include "png/rules.h"

#include <libdeflate.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Kinds of test data. */
enum kind { ZEROS, NOISE, FEW_VALUES, SKEWED, RUNS, TEXT, MIXED, KINDS };

static uint32_t next_random(uint32_t *state)
{
    uint32_t value = *state += 0x9e3779b9; /* mixed well, because the compressor would find repeated low bits */
    value = (value ^ value >> 16) * 0x21f0aaad;
    value = (value ^ value >> 15) * 0x735a2d97;
    return (value ^ value >> 15) >> 8;
}

static void fill(uint8_t *bytes, size_t size, enum kind kind, uint32_t seed)
{
    for (size_t i = 0; i < size;) {
        const uint32_t random = next_random(&seed);
        size_t run = 1;
        switch (kind) {
        case ZEROS:
            bytes[i] = 0;
            break;
        case NOISE:
            bytes[i] = (uint8_t)random;
            break;
        case FEW_VALUES:
            bytes[i] = (uint8_t)(random % 3);
            break;
        case SKEWED: /* each value is half as frequent as the one before: codes reach the length limit and beyond */
            bytes[i] = (uint8_t)__builtin_ctz(random | 1u << 23);
            break;
        case RUNS:
            run = random % 700 + 1;
            run = run < size - i ? run : size - i;
            memset(bytes + i, (int)(random >> 10), run);
            break;
        case TEXT: /* repeats bytes up to 40000 before, which is farther than the format allows */
            run = random % 300 + 1;
            run = run < size - i ? run : size - i;
            for (size_t k = 0, back = next_random(&seed) % 40000 + 1; k < run; k++)
                bytes[i + k] = i + k >= back && random & 1 << 12 ? bytes[i + k - back] : (uint8_t)next_random(&seed);
            break;
        default:
            run = size - i < 20000 ? size - i : 20000;
            fill(bytes + i, run, (enum kind)(random % MIXED), seed);
        }
        i += run;
    }
}

enum level { STORED, STANDARD, FAST, LEVELS };

/* Compress in bands, and inflate. Guard bytes after each band's bound must not change. */
static size_t check(enum level level, const uint8_t *bytes, size_t size, size_t band, size_t pixel)
{
    const size_t bands = (size - 1) / band + 1, capacity = bands * deflate_bound(band) + 1;
    const size_t out_max = deflate_bound(band) + (level == FAST ? DEFLATE_FAST_EXTRA : 0), guards = 8;
    uint8_t *out = malloc(capacity), *guarded = malloc(out_max + guards), *back = malloc(size);
    struct deflate_workspace *workspace = deflate_workspace_new(level == FAST);
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    size_t used = 0, consumed, given;
    assert_true(out != NULL && guarded != NULL && back != NULL && workspace != NULL);
    for (size_t at = 0; at < size; at += band) {
        const size_t part = size - at < band ? size - at : band;
        uint8_t *copy = malloc(part); /* a block of exactly this size, so that a sanitizer sees a read past its end */
        assert_non_null(copy);
        memcpy(copy, bytes + at, part);
        memset(guarded, 0xa5, out_max + guards);
        const bool last = at + part == size;
        const size_t made = level == STORED ? deflate_store(copy, part, last, guarded)
                                            : deflate_band(workspace, copy, part, pixel, last, guarded);
        assert_true(made > 0 && made <= deflate_bound(part));
        for (size_t i = out_max - deflate_bound(band) + deflate_bound(part); i < out_max + guards; i++)
            assert_int_equal(guarded[i], 0xa5);
        memcpy(out + used, guarded, made);
        used += made;
        free(copy);
    }
    out[used] = 0xff; /* a byte after the stream */
    assert_int_equal(libdeflate_deflate_decompress_ex(decompressor, out, used + 1, back, size, &consumed, &given),
                     LIBDEFLATE_SUCCESS);
    assert_int_equal(consumed, used);
    assert_int_equal(given, size);
    assert_memory_equal(back, bytes, size);
    libdeflate_free_decompressor(decompressor);
    free(out);
    free(guarded);
    free(back);
    free(workspace);
    return used;
}

static void test_every_kind_of_data_inflates_to_itself(void **state)
{
    static const size_t sizes[] = {1, 2, 7, 8, 9, 15, 257, 258, 259, 1000, 65534, 65535, 65536, 131071, 600000};
    uint8_t *bytes = malloc(600000);
    (void)state;
    assert_non_null(bytes);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (enum kind kind = ZEROS; kind < KINDS; kind++) {
            fill(bytes, sizes[s], kind, (uint32_t)(s * KINDS + kind));
            for (enum level level = STANDARD; level < LEVELS; level++) {
                check(level, bytes, sizes[s], sizes[s], 1);
                check(level, bytes, sizes[s], sizes[s] / 3 + 1, 1 + s % 8);
            }
            check(STORED, bytes, sizes[s], sizes[s] / 2 + 1, 1);
        }
    free(bytes);
}

static void test_random_data_inflates_to_itself(void **state)
{
    uint8_t *bytes = malloc(20000);
    uint32_t random = 1;
    (void)state;
    assert_non_null(bytes);
    for (int i = 0; i < 600; i++) {
        const size_t size = next_random(&random) % (i % 3 == 0 ? 20000 : 400) + 1;
        fill(bytes, size, (enum kind)(next_random(&random) % KINDS), random);
        check(i % 2 ? FAST : STANDARD, bytes, size, next_random(&random) % size + 1, next_random(&random) % 8 + 1);
    }
    free(bytes);
}

/* Compressed data take the entropy and the description of the codes, and repetitions take nearly nothing. */
static void check_sizes(enum level level)
{
    enum { SIZE = 262144 };
    const double excess = level == FAST ? 1.05 : 1.02; /* the fast level has codes for all small values */
    uint8_t *bytes = malloc(SIZE);
    assert_non_null(bytes);
    fill(bytes, SIZE, ZEROS, 1);
    assert_in_range(check(level, bytes, SIZE, SIZE, 1), 1, SIZE / 200);
    fill(bytes, SIZE, NOISE, 2);
    assert_in_range(check(level, bytes, SIZE, SIZE, 1), SIZE, SIZE + 64); /* stored */
    fill(bytes, SIZE, FEW_VALUES, 3);
    assert_in_range(check(level, bytes, SIZE, SIZE, 1), SIZE / 8,
                    SIZE / 4 * excess); /* 2 bits: the end of a block is a fourth symbol */
    fill(bytes, SIZE, SKEWED, 4);
    assert_in_range(check(level, bytes, SIZE, SIZE, 1), SIZE / 4, SIZE / 4 * excess); /* 2 bits */
    fill(bytes, SIZE, RUNS, 5);
    assert_in_range(check(level, bytes, SIZE, SIZE, 1), 1, SIZE / 40);
    if (level == FAST) {
        free(bytes);
        return;
    }
    fill(bytes, 16000, NOISE, 6); /* noise that repeats, but not beyond a block of 65,472 bytes */
    for (size_t i = 16000; i < SIZE; i++)
        bytes[i] = bytes[i - 16000];
    assert_in_range(check(level, bytes, SIZE, SIZE, 1), 66000, 67000);
    free(bytes);
}

static void test_sizes_are_close_to_the_entropy(void **state)
{
    (void)state;
    check_sizes(STANDARD);
    check_sizes(FAST);
}

/* A block of the fast level with the maximal number of sequences: each value is a literal, and then a run. In another
 * block, the sample has five values, and the other bytes have all others. They are written with 12 bits before it is
 * stored. */
static void test_the_worst_blocks_of_the_fast_level(void **state)
{
    enum { EVERY = FAST_BLOCK / FAST_SAMPLE + 1, GROUP = 64 };
    uint8_t *bytes = malloc(FAST_BLOCK);
    uint32_t random = 1;
    (void)state;
    assert_non_null(bytes);
    for (size_t i = 0; i < FAST_BLOCK; i++)
        bytes[i] = (uint8_t)(i % DEFLATE_BLOCK / (FAST_RUN + 1));
    assert_in_range(check(FAST, bytes, FAST_BLOCK, FAST_BLOCK, 1), 1, FAST_BLOCK / 16);
    for (size_t i = 0; i < FAST_BLOCK; i++) {
        const bool is_sampled = i % DEFLATE_BLOCK / GROUP % EVERY == 0;
        const uint32_t value = next_random(&random);
        bytes[i] = (uint8_t)(is_sampled ? __builtin_ctz(value | 1u << 4) : 5 + (int)(value % 251));
    }
    assert_in_range(check(FAST, bytes, FAST_BLOCK, FAST_BLOCK, 3), FAST_BLOCK, FAST_BLOCK + 64);
    free(bytes);
}

/* Compress data of every kind with the instruction set that $GPUCONV_CPU asks for, and filter a row of it. */
static size_t make_bytes(uint8_t *bytes, size_t size, enum kind kind, size_t pixel, bool is_fast, uint8_t *out)
{
    struct deflate_workspace *workspace = deflate_workspace_new(is_fast);
    uint8_t rows[2][1000 + PNG_PIXEL_MAX] = {{0}};
    assert_non_null(workspace);
    fill(bytes, size, kind, (uint32_t)(kind + pixel));
    const size_t made = deflate_band(workspace, bytes, size, pixel, true, out), row = 77 * pixel;
    for (int i = 0; i < 2; i++)
        memcpy(rows[i] + PNG_PIXEL_MAX, bytes + (size_t)i * row, row);
    png_filter(workspace, rows[0] + PNG_PIXEL_MAX, rows[1] + PNG_PIXEL_MAX, row, pixel, out + made);
    free(workspace);
    return made + 1 + row;
}

static void test_all_instruction_sets_make_the_same_bytes(void **state)
{
    enum { SIZE = 150000, CAPACITY = SIZE + 2000 + DEFLATE_FAST_EXTRA };
    size_t count;
    const enum instruction_set *sets = instruction_sets(&count);
    uint8_t *bytes = malloc(SIZE), *expected = malloc(CAPACITY), *out = malloc(CAPACITY);
    (void)state;
    assert_true(bytes != NULL && expected != NULL && out != NULL);
    for (enum kind kind = ZEROS; kind < KINDS; kind++)
        for (size_t pixel = 1; pixel <= PNG_PIXEL_MAX; pixel++)
            for (int is_fast = 0; is_fast < 2; is_fast++) {
                size_t size = 0;
                for (size_t i = 0; i < count; i++) {
                    setenv("GPUCONV_CPU", instruction_set_name(sets[i]), 1);
                    const size_t made = make_bytes(bytes, SIZE, kind, pixel, is_fast, i == 0 ? expected : out);
                    if (i == 0)
                        size = made;
                    assert_int_equal(made, size);
                    assert_memory_equal(i == 0 ? expected : out, expected, size);
                }
            }
    unsetenv("GPUCONV_CPU");
    free(bytes);
    free(expected);
    free(out);
}

/* The bytes are defined, and digests of an earlier compressor hold them. Bytes are repeated from 32,768 before, the
 * farthest, and from one byte more. A long run has a value that is rare on the fast level. */
static void test_the_bytes_stay(void **state)
{
    enum { SIZE = 150000 };
    static const uint32_t digests[2][KINDS][2] = {{{0xf7355203, 0xf7355203},
                                                   {0x655ee0f9, 0x5feadbc7},
                                                   {0x199621a5, 0x3438831c},
                                                   {0x19f85a82, 0x967e3082},
                                                   {0x391707cd, 0xf278dc96},
                                                   {0x19a0af2b, 0xcbc6fc89},
                                                   {0x52d8d6be, 0x75682943}},
                                                  {{0x4e95fddc, 0x4e95fddc},
                                                   {0x279f82ec, 0xbd75ecb2},
                                                   {0x2da31279, 0x06e70429},
                                                   {0x9c1dc47f, 0x7e15043e},
                                                   {0xd129b2fb, 0x02736278},
                                                   {0x226e8244, 0x51e832de},
                                                   {0x07b3ead7, 0xf70afb87}}};
    uint8_t *bytes = malloc(SIZE), *out = malloc(deflate_bound(SIZE) + DEFLATE_FAST_EXTRA);
    (void)state;
    for (unsigned i = 0; i < 2 * KINDS * 2; i++) {
        const size_t period = (size_t)DEFLATE_WINDOW + i % 2;
        struct deflate_workspace *workspace = deflate_workspace_new(i >= 2 * KINDS);
        assert_non_null(workspace);
        fill(bytes, SIZE, (enum kind)(i / 2 % KINDS), i);
        for (size_t at = period; at < SIZE; at += at % 5000 == 0 ? 2500 : 1)
            bytes[at] = bytes[at - period];
        for (size_t at = 1024; at + 2100 < SIZE; at += 4096) { /* 3 zeros, the last of many, and 5 bytes */
            memset(bytes + at, 0, 192);
            memset(bytes + at + 2044, 77, 20);
            memset(bytes + at + 2045, 0, 3);
            memcpy(bytes + at + 2048, bytes + at + 192, 5);
        }
        memset(bytes + SIZE - 6000, 200, 5000);
        const size_t size = deflate_band(workspace, bytes, SIZE, 3, true, out);
        assert_int_equal(libdeflate_crc32(0, out, size), digests[i / (2 * KINDS)][i / 2 % KINDS][i % 2]);
        free(workspace);
    }
    free(bytes);
    free(out);
}

/* A band has as many rows as fit into 512 KiB with a byte in front of each, but at least one and at most all. */
static void test_bands_have_whole_rows(void **state)
{
    static const struct {
        size_t row_bytes;
        int height, rows;
    } cases[] = {
        {1, 1, 1},         {1, 262143, 262143},     {1, 300000, 262144}, {15359, 2880, 34},
        {15360, 2880, 34}, {262143, 9, 2},          {262144, 9, 1},      {524287, 9, 1},
        {524288, 9, 1},    {(size_t)1 << 40, 9, 1}, {524287, 1, 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(png_band_rows(cases[i].row_bytes, cases[i].height), cases[i].rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bands_have_whole_rows),
        cmocka_unit_test(test_every_kind_of_data_inflates_to_itself),
        cmocka_unit_test(test_random_data_inflates_to_itself),
        cmocka_unit_test(test_sizes_are_close_to_the_entropy),
        cmocka_unit_test(test_the_worst_blocks_of_the_fast_level),
        cmocka_unit_test(test_all_instruction_sets_make_the_same_bytes),
        cmocka_unit_test(test_the_bytes_stay),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
