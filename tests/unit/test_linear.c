/* SPDX-License-Identifier: MIT
 *
 * The tables of linear light: an error of pow changes no entry, 8 bits come back, and the tables have the checksums that
 * tests/lib/linear.py computes with integers. */
#include "image/linear.h"

#include <libdeflate.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The least distance to a point where an entry would change: see linear.h. Doubles near 65535 are 7e-12 apart, and the
 * error of pow is hardly larger. */
static const double margin = 4e-7;

static void test_no_rounding_is_close_to_a_tie(void **state)
{
    (void)state;
    for (int n = 255; n <= 65535; n += 65280)
        for (int i = 0; i <= n; i++) {
            const double rounded = 65535 * linear_light(i / (double)n);
            assert_true(fabs(rounded - floor(rounded) - 0.5) > margin);
            if (i == n)
                continue;
            const double compared = 65535 * linear_light((i + 0.5) / n);
            assert_true(fabs(compared - round(compared)) > margin);
            assert_true(compared <
                        65535 * linear_light((i + 1.5) / n)); /* also where the two pieces of the curve meet */
        }
}

/* 8 bits are lossless. 16 bits lose what linear.h says: up to 13 dark levels share one, so levels move by at most 6. */
static void test_8_bits_are_lossless_and_16_lose_what_is_documented(void **state)
{
    struct linear *linear = linear_make(NULL);
    int off = 0;
    (void)state;
    assert_non_null(linear);
    for (int i = 0; i < 256; i++)
        assert_int_equal(linear->to8[linear->from8[i]], i);
    for (int i = 0; i < 65536; i++) {
        const int back = linear->to16[linear->from16[i]];
        off = abs(back - i) > off ? abs(back - i) : off;
        if (i > 0)
            assert_true(linear->from16[i] >= linear->from16[i - 1] && linear->to16[i] >= linear->to16[i - 1] &&
                        linear->to8[i] >= linear->to8[i - 1]);
    }
    assert_int_equal(off, 6);
    assert_int_equal(linear->from16[65535], 65535);
    assert_int_equal(linear->to16[65535], 65535);
    assert_int_equal(linear->to16[0], 0);
    free(linear);
}

/* The checksum of COUNT entries of BYTES each, big-endian. */
static uint32_t checksum(const void *table, size_t count, size_t bytes)
{
    static uint8_t ordered[131072];
    for (size_t i = 0; i < count; i++) {
        const unsigned value = bytes == 1 ? ((const uint8_t *)table)[i] : ((const uint16_t *)table)[i];
        if (bytes == 2)
            ordered[2 * i] = (uint8_t)(value >> 8);
        ordered[bytes * i + bytes - 1] = (uint8_t)value;
    }
    return libdeflate_crc32(0, ordered, count * bytes);
}

static void test_tables_have_their_checksums(void **state)
{
    struct linear *linear = linear_make(NULL);
    (void)state;
    assert_non_null(linear);
    assert_int_equal(checksum(linear->from8, 256, 2), 0xec968dba);
    assert_int_equal(checksum(linear->from16, 65536, 2), 0xc7f7e468);
    assert_int_equal(checksum(linear->to8, 65536, 1), 0x9a173ca2);
    assert_int_equal(checksum(linear->to16, 65536, 2), 0x28ef7775);
    free(linear);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_rounding_is_close_to_a_tie),
        cmocka_unit_test(test_8_bits_are_lossless_and_16_lose_what_is_documented),
        cmocka_unit_test(test_tables_have_their_checksums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
