/* SPDX-License-Identifier: MIT
 *
 * The tables of linear light: an error of a power changes no entry of sRGB's, 8 bits come back, and the tables have the
 * checksums that tests/lib/linear.py computes with integers. The levels of the other curves are those of libm, and the
 * tables change with the curve. */
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

/* The least distance to a point where an entry would change: see linear.h. */
static const double margin = 4e-7;

enum { STEPS = 131070 };

static struct linear *make(const struct curve *curves, int count, int bits)
{
    struct linear *linear = linear_allocate(NULL);
    assert_non_null(linear);
    assert_true(linear_set(linear, curves, count, bits));
    return linear;
}

static void test_no_rounding_is_close_to_a_tie(void **state)
{
    double last = -1;
    (void)state;
    for (int k = 0; k <= STEPS; k++) { /* the steps of 8 bits are among them */
        const double level = linear_level(&curve_srgb, k),
                     to_tie = k % 2 ? level - round(level) : level - floor(level) - 0.5;
        assert_true(fabs(to_tie) > margin);
        assert_true(level > last); /* also where the two pieces of the curve meet */
        last = level;
    }
}

/* 8 bits are lossless. 16 bits lose what linear.h says: up to 13 dark levels share one, so levels move by at most 6. */
static void test_8_bits_are_lossless_and_16_lose_what_is_documented(void **state)
{
    struct linear *linear = make(&curve_srgb, 1, 8);
    const struct linear_tables *tables = linear_of(linear, 2);
    int off = 0;
    (void)state;
    assert_true(linear_set(linear, &curve_srgb, 1, 16));
    for (int i = 0; i < 256; i++)
        assert_int_equal(tables->to8[tables->from8[i]], i);
    for (int i = 0; i < 65536; i++) {
        const int back = tables->to16[tables->from16[i]];
        off = abs(back - i) > off ? abs(back - i) : off;
        assert_int_equal(linear_to16(tables, tables->from16[i], (uint16_t)i), i);
        if (i > 0)
            assert_true(tables->from16[i] >= tables->from16[i - 1] && tables->to16[i] >= tables->to16[i - 1] &&
                        tables->to8[i] >= tables->to8[i - 1]);
    }
    assert_int_equal(off, 6);
    assert_int_equal(tables->from16[65535], 65535);
    assert_int_equal(tables->to16[65535], 65535);
    assert_int_equal(tables->to16[0], 0);
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
    struct linear *linear = make(&curve_srgb, 1, 8);
    const struct linear_tables *tables = linear_of(linear, 0);
    (void)state;
    assert_true(linear_set(linear, &curve_srgb, 1, 16));
    assert_int_equal(checksum(tables->from8, 256, 2), 0xec968dba);
    assert_int_equal(checksum(tables->from16, 65536, 2), 0xc7f7e468);
    assert_int_equal(checksum(tables->to8, 65536, 1), 0x9a173ca2);
    assert_int_equal(checksum(tables->to16, 65536, 2), 0x28ef7775);
    free(linear);
}

/* ---- Other curves ---- */

/* The number of entries that a sampled curve has in these tests. */
enum { ENTRIES = 301 };

/* The square of a sample, as entries. */
static void fill_entries(uint8_t *entries)
{
    for (int i = 0; i < ENTRIES; i++) {
        const int value = 65535 * i / (ENTRIES - 1) * i / (ENTRIES - 1);
        entries[2 * i] = (uint8_t)(value >> 8);
        entries[2 * i + 1] = (uint8_t)value;
    }
}

static long double pq(long double x)
{
    const long double root = powl(x, 32 / 2523.0L);
    return powl(fmaxl(root - 0.8359375L, 0) / (18.8515625L - 18.6875L * root), 8192 / 1305.0L);
}

static long double hlg(long double x)
{
    return x <= 0.5L ? x * x / 3 : (expl((x - 0.55991073L) / 0.17883277L) + 0.28466892L) / 12;
}

/* The light of the sample X by libm. */
static long double light(const struct curve *curve, long double x)
{
    if (curve->kind == CURVE_PQ)
        return pq(x);
    if (curve->kind == CURVE_HLG)
        return fminl(hlg(x), 1); /* its constants are rounded */
    return x < (long double)curve->d
               ? (long double)curve->c * x + (long double)curve->f
               : powl(fmaxl((long double)curve->a * x + (long double)curve->b, 0), (long double)curve->g) +
                     (long double)curve->e;
}

static void test_levels_are_those_of_libm(void **state)
{
    const struct curve curves[] = {
        curve_srgb,
        {.g = 0.1, .a = 1},
        {.g = 10, .a = 1},
        {.g = 563 / 256.0, .a = 1},
        {.g = 2.2, .a = 0.9, .b = 0.05, .e = 0.01},
        {.g = 3, .a = 0.8, .b = 0.2, .c = 0.1, .d = 0.2001, .e = -0.02, .f = 0.0066},
        {.kind = CURVE_PQ},
        {.kind = CURVE_HLG},
    };
    (void)state;
    for (size_t i = 0; i < sizeof curves / sizeof *curves; i++)
        for (int k = 0; k <= STEPS; k += 7) {
            const long double expected = 65535 * light(&curves[i], k / (long double)STEPS);
            assert_true(fabsl((long double)linear_level(&curves[i], k) - expected) <
                        (curves[i].kind == CURVE_PQ ? 1e-8L : 1e-10L));
        }
}

/* Entries of a sampled curve are exact, and between two of them the level is on the line. */
static void test_sampled_levels_are_on_lines(void **state)
{
    uint8_t entries[2 * ENTRIES];
    const struct curve curve = {.kind = CURVE_SAMPLED, .entries = entries, .count = ENTRIES};
    (void)state;
    fill_entries(entries);
    for (long long k = 0; k <= STEPS; k++) {
        const long long scaled = k * (ENTRIES - 1), i = scaled / STEPS, rest = scaled % STEPS;
        const long long from = entries[2 * i] << 8 | entries[2 * i + 1];
        const long long to = rest == 0 ? 0 : entries[2 * i + 2] << 8 | entries[2 * i + 3];
        const double level = linear_level(&curve, (int)k);
        assert_true(fabs(level - (double)(from * (STEPS - rest) + to * rest) / STEPS) < 1e-11);
        assert_true(k % (STEPS / 6) != 0 || level == floor(level) || rest != 0);
    }
}

/* Every linear level becomes the level whose light is nearest on the curve, and black stays black where several levels
 * are black. */
static void test_tables_give_the_nearest_level(void **state)
{
    uint8_t entries[2 * ENTRIES];
    const struct curve curves[] = {
        {.g = 2.2, .a = 1},
        {.kind = CURVE_PQ},
        {.kind = CURVE_SAMPLED, .entries = entries, .count = ENTRIES},
    };
    (void)state;
    fill_entries(entries);
    memset(entries, 0, 20);
    for (int i = 0; i < 3; i++) {
        struct linear *linear = make(&curves[i], 1, 8);
        const struct linear_tables *tables = linear_of(linear, 0);
        assert_true(linear_set(linear, &curves[i], 1, 16));
        for (int w = 0; w < 65536; w++) {
            const int v = tables->to8[w], deep = tables->to16[w];
            assert_true(v == 0 || linear_level(&curves[i], 257 * (2 * v - 1)) < w);
            assert_true(v == 255 || linear_level(&curves[i], 257 * (2 * v + 1)) >= w);
            assert_true(deep == 0 || linear_level(&curves[i], 2 * deep - 1) < w);
            assert_true(deep == 65535 || linear_level(&curves[i], 2 * deep + 1) >= w);
        }
        for (int v = 0; v < 65536; v++) {
            assert_int_equal(tables->from16[v], (int)floor(linear_level(&curves[i], 2 * v) + 0.5));
            assert_true(v % 257 != 0 || tables->from8[v / 257] == tables->from16[v]);
        }
        free(linear);
    }
}

/* The curve of Display P3, and sRGB's in 1024 entries rounded down, are sRGB's. Gamma 2.2 is not. */
static void test_roundings_of_srgb_are_srgb(void **state)
{
    uint8_t entries[2048];
    const struct curve p3 = {.g = 0x26666 / 65536.0,
                             .a = 0xf2a7 / 65536.0,
                             .b = 0x0d59 / 65536.0,
                             .c = 0x13d0 / 65536.0,
                             .d = 0x0a5b / 65536.0};
    const struct curve sampled = {.kind = CURVE_SAMPLED, .entries = entries, .count = 1024}, gamma = {.g = 2.2, .a = 1};
    const struct curve mixed[3] = {sampled, p3, curve_srgb};
    struct linear *linear = make(&curve_srgb, 1, 8);
    const unsigned version = linear->version;
    (void)state;
    for (int i = 0; i < 1024; i++) {
        const int value = (int)(65535 * light(&curve_srgb, i / 1023.0L));
        entries[2 * i] = (uint8_t)(value >> 8);
        entries[2 * i + 1] = (uint8_t)value;
    }
    assert_true(linear_set(linear, &p3, 1, 8) && linear_set(linear, &sampled, 1, 8) && linear_set(linear, mixed, 3, 8));
    assert_int_equal(linear->version, version);
    assert_int_equal(linear->count, 1);
    assert_true(linear_set(linear, &gamma, 1, 8));
    assert_int_not_equal(linear->version, version);
    free(linear);
}

/* Tables are made for each change of the curve or the depth, and only then. */
static void test_tables_change_with_the_curve(void **state)
{
    uint8_t entries[2 * ENTRIES];
    const struct curve gamma = {.g = 1.8, .a = 1},
                       sampled = {.kind = CURVE_SAMPLED, .entries = entries, .count = ENTRIES};
    const struct curve three[3] = {gamma, curve_srgb, {.kind = CURVE_HLG}}, same[3] = {gamma, gamma, gamma};
    struct linear *linear = make(&gamma, 1, 8);
    unsigned version = linear->version;
    (void)state;
    fill_entries(entries);
    assert_true(linear_set(linear, &gamma, 1, 8) && linear_set(linear, same, 3, 8));
    assert_true(linear->version == version && linear->count == 1);
    assert_true(linear_set(linear, &gamma, 1, 16) && linear->version != version &&
                linear->tables[0].from8[255] == 65535);
    version = linear->version;
    assert_true(linear_set(linear, &gamma, 1, 8) && linear->version == version);

    assert_true(linear_set(linear, three, 3, 8) && linear->version != version && linear->count == 3);
    for (int i = 0; i < 3; i++) {
        struct linear *own = make(&three[i], 1, 8);
        assert_memory_equal(linear_of(linear, i)->from8, own->tables[0].from8, sizeof own->tables[0].from8);
        assert_memory_equal(linear_of(linear, i)->to8, own->tables[0].to8, sizeof own->tables[0].to8);
        free(own);
    }
    version = linear->version;
    assert_true(linear_set(linear, three, 3, 8) && linear->version == version);
    assert_true(linear_set(linear, &gamma, 1, 8) && linear->version != version && linear->count == 1);

    assert_true(linear_set(linear, &sampled, 1, 8));
    const uint16_t before = linear->tables[0].from8[100];
    memset(entries, 0, ENTRIES); /* another image may have its entries at the same address */
    assert_true(linear_set(linear, &sampled, 1, 8) && linear->tables[0].from8[100] != before);
    free(linear);
}

/* A curve that falls or does not rise is refused, and the next curve is right again. A step back of a level, as
 * rounding makes, is taken. */
static void test_curves_that_fall_are_refused(void **state)
{
    uint8_t entries[2 * ENTRIES];
    const struct curve falls[] = {
        {.kind = CURVE_SAMPLED, .entries = entries, .count = ENTRIES},
        {.g = 1, .a = -1, .b = 1},
        {.g = 2, .a = 0, .b = 1},
        {.g = 2, .a = 1, .c = 2, .d = 0.5},
    };
    struct linear *linear = make(&curve_srgb, 1, 8);
    (void)state;
    fill_entries(entries);
    entries[2 * 150 + 1] = (uint8_t)(entries[2 * 149 + 1] - 1); /* the upper byte stays */
    entries[2 * 150] = entries[2 * 149];
    assert_true(linear_set(linear, falls, 1, 16));
    entries[2 * 150 + 1]--;
    for (int i = 0; i < 4; i++)
        for (int bits = 8; bits <= 16; bits += 8)
            assert_true(!linear_set(linear, &falls[i], 1, bits) ||
                        (i == 0 && bits == 8)); /* between two of its levels */
    assert_true(linear_set(linear, &curve_srgb, 1, 8));
    assert_int_equal(checksum(linear->tables[0].from8, 256, 2), 0xec968dba);
    free(linear);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_rounding_is_close_to_a_tie),
        cmocka_unit_test(test_8_bits_are_lossless_and_16_lose_what_is_documented),
        cmocka_unit_test(test_tables_have_their_checksums),
        cmocka_unit_test(test_levels_are_those_of_libm),
        cmocka_unit_test(test_sampled_levels_are_on_lines),
        cmocka_unit_test(test_tables_give_the_nearest_level),
        cmocka_unit_test(test_roundings_of_srgb_are_srgb),
        cmocka_unit_test(test_tables_change_with_the_curve),
        cmocka_unit_test(test_curves_that_fall_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
