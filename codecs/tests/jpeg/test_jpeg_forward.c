/* SPDX-License-Identifier: MIT
 *
 * The arithmetic that the encoders for CPU and GPU share, against its definitions. */
#include "base/random.h"
#include "jpeg/forward.h"
#include "jpeg/lookup.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

static void test_quantisers_round_to_nearest(void **state)
{
    (void)state;
    for (int quantiser = 1; quantiser <= 255; quantiser++) {
        const struct jpeg_divisor divisor = jpeg_divisor_of((unsigned)quantiser);
        const int whole = 8 * quantiser;
        for (int value = -32768; value <= 32767; value++) {
            const int magnitude = (abs(value) + whole / 2) / whole;
            if (jpeg_quantise(value, divisor) != (value < 0 ? -magnitude : magnitude))
                fail_msg("%d / %d", value, whole);
        }
    }
}

static void test_colours_are_those_of_jfif(void **state)
{
    (void)state;
    for (int r = 0; r < 256; r += 5)
        for (int g = 0; g < 256; g += 5)
            for (int b = 0; b < 256; b += 5) {
                const double luma = 0.299 * r + 0.587 * g + 0.114 * b;
                assert_true(fabs(jpeg_luma(r, g, b) - luma) <= 0.51);
                assert_true(fabs(jpeg_blue_difference(r, g, b) - 128 - (b - luma) / 1.772) <= 0.51);
                assert_true(fabs(jpeg_red_difference(r, g, b) - 128 - (r - luma) / 1.402) <= 0.51);
            }
}

/* 8 times the DCT of T.81, A.3.3. */
static double exact_dct(const int *samples, int u, int v)
{
    const double angle = acos(-1.0) / 16;
    double sum = 0;
    for (int y = 0; y < JPEG_SIDE; y++)
        for (int x = 0; x < JPEG_SIDE; x++)
            sum += (samples[y * JPEG_SIDE + x] - 128) * cos((2 * x + 1) * u * angle) * cos((2 * y + 1) * v * angle);
    return 2 * sum * (u == 0 ? sqrt(0.5) : 1) * (v == 0 ? sqrt(0.5) : 1);
}

static void test_the_dct_is_near_the_exact_one(void **state)
{
    uint64_t random = 1;
    (void)state;
    for (int round = 0; round < 300; round++) {
        int samples[JPEG_BLOCK], value[JPEG_BLOCK];
        for (int i = 0; i < JPEG_BLOCK; i++)
            value[i] = samples[i] =
                round % 2 == 0 ? (int)(random_next(&random) >> 56) : (int)(random_next(&random) >> 63) * 255;
        for (int y = 0; y < JPEG_SIDE; y++) {
            jpeg_forward_dct(value + JPEG_SIDE * y, 1, false);
            value[JPEG_SIDE * y] -= JPEG_FIRST_PASS_LEVEL;
        }
        for (int x = 0; x < JPEG_SIDE; x++)
            jpeg_forward_dct(value + x, JPEG_SIDE, true);
        for (int i = 0; i < JPEG_BLOCK; i++)
            assert_true(fabs(value[i] - exact_dct(samples, i % JPEG_SIDE, i / JPEG_SIDE)) < 2);
    }
}

/* The table of T.81, K.3.1. */
static void test_codes_follow_their_lengths(void **state)
{
    static const struct jpeg_huffman table = {.counts = {0, 0, 1, 5, 1, 1, 1, 1, 1, 1},
                                              .symbols = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}};
    uint32_t codes[16];
    (void)state;
    jpeg_symbol_codes(&table, codes, 16);
    assert_int_equal(codes[0], 2 << 16);
    assert_int_equal(codes[1], 2 | 4 << 16);
    assert_int_equal(codes[5], 6 | 8 << 16);
    assert_int_equal(codes[11], 0x1fe | 20 << 16);
    assert_int_equal(codes[12], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quantisers_round_to_nearest),
        cmocka_unit_test(test_colours_are_those_of_jfif),
        cmocka_unit_test(test_the_dct_is_near_the_exact_one),
        cmocka_unit_test(test_codes_follow_their_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
