/* SPDX-License-Identifier: MIT
 *
 * The decoder of baseline JPEG: its samples are those of libjpeg-turbo, byte for byte. */
#include "jpeg/headers.h"
#include "jpeg_files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Headers ---- */

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
        assert_true(jpeg_read_headers(file, size, &layout, &scan));
        assert_int_equal(layout.width, recipe.width);
        assert_int_equal(layout.height, recipe.height);
        assert_int_equal(layout.components, 3);
        assert_int_equal(layout.horizontal, recipe.horizontal);
        assert_int_equal(layout.vertical, recipe.vertical);
        assert_int_equal(layout.restart_interval, i);
        assert_int_equal(layout.mcu_blocks, 2 + recipe.horizontal * recipe.vertical);
        assert_int_equal(layout.quantisers[0][0], (16 * 80 + 50) / 100); /* T.81, table K.1 */
        assert_int_equal(layout.quantisers[0][8], (12 * 80 + 50) / 100);
        assert_int_equal(layout.dc[0].counts[3], 5); /* table K.3 */
        assert_int_equal(layout.ac[1].counts[16], 119);
        assert_ptr_equal(scan.bytes + scan.size, file + size - 2);
        assert_true(jpeg_scan_holds(&scan, jpeg_segment_count(&layout)));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers_say_what_was_written),
        cmocka_unit_test(test_scan_is_copied_without_stuffing_and_markers),
    };
    return cmocka_run_group_tests_name("jpeg_decode", tests, NULL, NULL);
}
