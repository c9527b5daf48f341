/* SPDX-License-Identifier: MIT
 *
 * PNG's row filters: each is undone, and the choice is compared with sums counted here. */
#include "codec/png_filter.h"

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
    }
}

static void test_filtering_and_unfiltering_agree_with_the_standard(void **state)
{
    static const size_t pixels[] = {1, 2, 3, 4, 6, 8}, counts[] = {1, 2, 5, 16, 43, 111};
    uint8_t rows[2][SIZE_MAX_HERE + PNG_PIXEL_MAX] = {{0}}, out[SIZE_MAX_HERE + 1], back[SIZE_MAX_HERE];
    uint8_t *above = rows[0] + PNG_PIXEL_MAX, *row = rows[1] + PNG_PIXEL_MAX;
    uint8_t *scratch = malloc(png_filter_scratch(SIZE_MAX_HERE));
    unsigned chosen = 0; /* a bit for each filter */
    (void)state;
    assert_non_null(scratch);
    for (unsigned i = 0; i < 6 * 6 * 4; i++) {
        const size_t pixel = pixels[i % 6], size = pixel * counts[i / 6 % 6];
        unsigned sums[5] = {0};
        make_rows(row, above, size, i / 36, i);
        for (unsigned filter = 0; filter < 5; filter++) {
            for (size_t k = 0; k < size; k++) {
                back[k] = filtered(filter, row, above, k, pixel);
                sums[filter] += (unsigned)abs((int8_t)back[k]);
            }
            assert_true(png_unfilter(filter, back, above, size, pixel));
            assert_memory_equal(back, row, size);
        }
        png_filter(row, above, size, pixel, scratch, out);
        assert_in_range(out[0], 0, 4);
        chosen |= 1u << out[0];
        for (unsigned filter = 0; filter < 5; filter++)
            assert_true(sums[out[0]] <= sums[filter]);
        for (size_t k = 0; k < size; k++)
            assert_int_equal(out[1 + k], filtered(out[0], row, above, k, pixel));
    }
    assert_int_equal(chosen, 31);
    free(scratch);
}

static void test_the_first_row_has_none_above(void **state)
{
    uint8_t above[96] = {0}, row[96], back[96];
    (void)state;
    make_rows(row, back, 96, 0, 7);
    for (unsigned filter = 0; filter < 5; filter++) {
        for (size_t k = 0; k < 96; k++)
            back[k] = filtered(filter, row, above, k, 3);
        assert_true(png_unfilter(filter, back, NULL, 96, 3));
        assert_memory_equal(back, row, 96);
    }
    assert_false(png_unfilter(5, back, NULL, 96, 3));
    assert_false(png_unfilter(255, back, above, 96, 3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filtering_and_unfiltering_agree_with_the_standard),
        cmocka_unit_test(test_the_first_row_has_none_above),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
