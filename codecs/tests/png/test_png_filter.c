/* SPDX-License-Identifier: MIT
 *
 * PNG's row filters: each is undone, and the choice is compared with sums counted here. */
#include "png/png.h"

#include "base/vector/instruction_sets.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SIZE_MAX_HERE = 1000 };

/* Byte I after filter number FILTER, exactly as the standard defines it. */
static uint8_t filtered(unsigned filter, const uint8_t *row, const uint8_t *above, size_t i, size_t pixel)
{
    const int left = i >= pixel ? row[i - pixel] : 0, corner = i >= pixel ? above[i - pixel] : 0, up = above[i];
    const int guess = left + up - corner;
    const int a = abs(guess - left), b = abs(guess - up), c = abs(guess - corner);
    const int nearest = a <= b && a <= c ? left : b <= c ? up : corner;
    const int predictions[] = {0, left, up, (left + up) / 2, nearest};
    return (uint8_t)(row[i] - predictions[filter]);
}

static void make_rows(uint8_t *row, uint8_t *above, size_t size, unsigned kind, uint32_t seed)
{
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        const uint8_t noise = (uint8_t)(seed >> 24);
        above[i] = (uint8_t)(kind == 0 ? noise : kind == 1 ? i * 3 : noise & 7u);
        row[i] = (uint8_t)(seed >> 16);
        if (kind == 1)
            row[i] = (uint8_t)(i * 3 + (noise & 1));
        else if (kind == 2)
            row[i] = (uint8_t)(above[i] + (noise >> 7));
        else if (kind == 3)
            row[i] = (uint8_t)(255 - (noise & 3));
        else if (kind == 4)
            row[i] = above[i];
        else if (kind == 5)
            row[i] = above[i] = 0;
    }
}

/* Filter rows of all sizes of pixels by the loops that the workspace chooses. */
static void check_filtering(void)
{
    static const size_t pixels[] = {1, 2, 3, 4, 6, 8}, counts[] = {1, 2, 5, 16, 43, 111};
    uint8_t rows[2][SIZE_MAX_HERE + PNG_PIXEL_MAX], out[SIZE_MAX_HERE + 1];
    uint8_t *above = rows[0] + PNG_PIXEL_MAX, *row = rows[1] + PNG_PIXEL_MAX;
    struct deflate_workspace *work = deflate_workspace_new(false);
    unsigned chosen = 0; /* a bit for each filter */
    assert_non_null(work);
    memset(rows, 1, sizeof rows); /* the filter must not read the bytes before a row */
    for (unsigned i = 0; i < 6 * 6 * 6; i++) {
        const size_t pixel = pixels[i % 6], size = pixel * counts[i / 6 % 6];
        unsigned sums[5] = {0};
        make_rows(row, above, size, i / 36, i);
        for (unsigned filter = 0; filter < 5; filter++) {
            for (size_t k = 0; k < size; k++) {
                const unsigned magnitude = (unsigned)abs((int8_t)filtered(filter, row, above, k, pixel));
                sums[filter] += magnitude < 31 ? magnitude : 31;
            }
        }
        png_filter(work, row, above, size, pixel, out);
        assert_in_range(out[0], 0, 4);
        chosen |= 1u << out[0];
        for (unsigned filter = 0; filter < 5; filter++)
            assert_true(filter < out[0] ? sums[out[0]] < sums[filter] : sums[out[0]] <= sums[filter]);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(out[1 + k], filtered(out[0], row, above, k, pixel));
    }
    assert_int_equal(chosen, 31);
    free(work);
}

static void test_filtering_agrees_with_the_standard(void **state)
{
    size_t count;
    const enum instruction_set *sets = instruction_sets(&count);
    (void)state;
    for (size_t i = 0; i < count; i++) {
        setenv("GPUCONV_CPU", instruction_set_name(sets[i]), 1);
        check_filtering();
    }
    unsetenv("GPUCONV_CPU");
}

/* Filter ROWS rows, undo that, and compare. Each block has its own size, so that a sanitizer sees what lies outside. */
static void check_rows(size_t rows, size_t count, size_t pixel, unsigned seed)
{
    const size_t size = pixel * count;
    uint8_t *plain = calloc(rows + 1, size), *raw = malloc(rows * (size + 1)), *made = malloc(rows * size);
    uint8_t *scratch = malloc(size), *above = calloc(1, size);
    assert_true(plain != NULL && raw != NULL && made != NULL && scratch != NULL && above != NULL);
    for (size_t y = 0; y < rows; y++) {
        uint8_t *row = plain + (y + 1) * size;
        make_rows(row, scratch, size, (seed + (unsigned)y) % 4, seed + (unsigned)y);
        raw[y * (size + 1)] = (uint8_t)(seed < 5 ? seed : (seed >> y % 7) % 5); /* all alike, or mixed */
        for (size_t i = 0; i < size; i++)
            raw[y * (size + 1) + 1 + i] = filtered(raw[y * (size + 1)], row, row - size, i, pixel);
    }
    png_unfilter(raw, rows, above, size, pixel, made, scratch);
    assert_memory_equal(made, plain + size, rows * size);

    /* Undo the filters in columns: each changes nothing to its right. */
    memset(made, 170, rows * size);
    for (size_t first = 0, last; first < size; first = last) {
        last = first + pixel * (1 + seed % (1 + seed % 20));
        last = last < size ? last : size;
        uint8_t *less = malloc(last - first);
        const struct png_columns columns = {.size = size, .pixel = pixel, .first = first, .last = last};
        png_unfilter_columns(raw, rows, above, &columns, made, less);
        free(less);
        for (size_t y = 0; y < rows; y++) {
            assert_memory_equal(made + y * size, plain + (y + 1) * size, last);
            assert_true(last == size || made[y * size + last] == 170);
        }
    }
    free(plain);
    free(raw);
    free(made);
    free(scratch);
    free(above);
}

static void test_several_rows_are_undone_at_once(void **state)
{
    static const size_t pixels[] = {1, 2, 3, 4, 6, 8}, counts[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 43, 111};
    (void)state;
    for (size_t rows = 1; rows < 20; rows++)
        for (size_t i = 0; i < 6 * 11; i++)
            for (unsigned seed = 0; seed < 40; seed++)
                check_rows(rows, counts[i / 6], pixels[i % 6], seed);
}

/* Paeth's prediction of every three neighbours: of the second pixel in the second row. */
static void test_every_prediction_of_paeth_is_right(void **state)
{
    enum { SIZE = 2 * 256 };
    uint8_t above[SIZE], raw[SIZE + 1], made[SIZE], scratch[SIZE];
    (void)state;
    for (int left = 0; left < 256; left++)
        for (int corner = 0; corner < 256; corner++) {
            /* Pairs of bytes: corner and up, and below them left and what is predicted. */
            raw[0] = 4;
            for (int up = 0; up < 256; up++) {
                above[2 * up] = (uint8_t)corner;
                above[2 * up + 1] = (uint8_t)up;
            }
            for (int up = 0, before = 0, beside = 0; up < 256; beside = up, up++) {
                const int guess = before + corner - beside;
                const int a = abs(guess - before), b = abs(guess - corner), c = abs(guess - beside);
                raw[1 + 2 * up] = (uint8_t)(left - (a <= b && a <= c ? before : b <= c ? corner : beside));
                raw[2 + 2 * up] = 0;
                const int next = left + up - corner, d = abs(next - left), e = abs(next - up), f = abs(next - corner);
                before = d <= e && d <= f ? left : e <= f ? up : corner;
                scratch[up] = (uint8_t)before;
            }
            uint8_t expected[256];
            memcpy(expected, scratch, sizeof expected);
            png_unfilter(raw, 1, above, SIZE, 1, made, scratch);
            for (int up = 0; up < 256; up++)
                if (made[2 * up] != left || made[2 * up + 1] != expected[up])
                    fail_msg("left %d, above %d, corner %d: %d, expected %d", left, up, corner, made[2 * up + 1],
                             expected[up]);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filtering_agrees_with_the_standard),
        cmocka_unit_test(test_several_rows_are_undone_at_once),
        cmocka_unit_test(test_every_prediction_of_paeth_is_right),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
