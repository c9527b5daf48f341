/* SPDX-License-Identifier: MIT
 *
 * The sine and the cosine of Pillow's taps: the last digit, and that the faster ones give the same taps. */
#include "filter/pillow.c"

#include "base/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* A number from 1 to MAX. */
static int random_side(uint64_t *state, int max)
{
    return 1 + (int)(random_next(state) % (uint64_t)max);
}

static void test_hard_cases_are_rounded_to_the_nearest(void **state)
{
    (void)state;
    /* Near to the middle of two doubles among 300,000 random ones, by integers of 200 bits; glibc's is another double
     * for the second one and the last two of these. Then those near to a multiple of pi, and the ends. */
    static const struct {
        double x, value;
        bool is_cosine;
    } cases[] = {
        {0x1.278a13618ac80p+3, 0x1.811ea4b0c8628p-3, false},
        {0x1.fd6cc7b21b424p-1, 0x1.16cc51fc82ae2p-1, true},
        {0x1.c092e8183f65dp+1, -0x1.6b7f5d3706cdap-2, false},
        {0x1.6bb2254fb22f0p-2, 0x1.e00b5f9e77370p-1, true},
        {0x1.2506d08c01e33p+2, -0x1.fb6ba79b5de09p-1, false},
        {0x1.1f16d46ef9e66p+1, -0x1.3ec83368c2d11p-1, true},
        {0x1.921fb54442d18p+1, 0x1.1a62633145c07p-53, false},
        {0x1.921fb54442d18p+2, -0x1.1a62633145c07p-52, false},
        {0x1.2d97c7f3321d2p+3, 0x1.a79394c9e8a0ap-52, false},
        {1, 0x1.aed548f090ceep-1, false},
        {0x1p-26, 0x1p-26, false},
        {0x1p-30, 0x1p-30, false},
        {0x1p-28, 1, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true((cases[i].is_cosine ? cosine(cases[i].x, true) : sine(cases[i].x, true)) == cases[i].value);
}

static void test_others_are_as_near_as_those_of_libm(void **state)
{
    (void)state;
    uint64_t random = 65;
    int others = 0;
    for (int i = 0; i < 20000; i++) {
        const bool is_cosine = i % 2 == 1;
        const double x = (double)(random_next(&random) >> 11) * 0x1p-53 * (is_cosine ? M_PI : 3 * M_PI) + 1e-9;
        const double expected = is_cosine ? cos(x) : sin(x), value = is_cosine ? cosine(x, true) : sine(x, true);
        assert_true(fabs(value - expected) <= fabs(expected) * 0x1p-52);
        others += value != expected;
        assert_true(fabs((is_cosine ? cosine(x, false) : sine(x, false)) - value) <= 0x1p-49);
    }
    assert_true(others < 2000);
}

static void test_taps_are_those_of_exact_weights(void **state)
{
    (void)state;
    uint64_t random = 66;
    double weights[2048];
    int32_t near[2048], exact[2048];
    int unsure = 0;
    for (int i = 0; i < 4000; i++) {
        const enum resample_kernel kernel = i % 2 == 0 ? RESAMPLE_PILLOW_LANCZOS : RESAMPLE_PILLOW12_HAMMING;
        struct resample_axis axis;
        resample_shape(&axis, kernel, random_side(&random, i % 5 == 0 ? 1000 : 60), random_side(&random, 60), 8);
        const int output = random_side(&random, axis.to) - 1;
        const int count = resample_last(&axis, output) - resample_first(&axis, output) + 1;
        assert_true(count <= axis.count && make_output(&axis, output, weights, true, exact));
        if (!make_output(&axis, output, weights, false, near))
            unsure++;
        else
            assert_memory_equal(near, exact, (size_t)count * sizeof *near);
    }
    assert_true(unsure < 40);
}

/* With 0.54 as a double, the third tap would be 1657869. */
static void test_the_window_of_hamming_has_floats(void **state)
{
    (void)state;
    static const int32_t expected[] = {212512, 1055706, 1657868, 1055706, 212512};
    struct resample_axis axis;
    resample_shape(&axis, RESAMPLE_PILLOW_HAMMING, 9, 3, 8);
    assert_true(resample_make(&axis));
    assert_int_equal(resample_first(&axis, 1), 2);
    assert_memory_equal(axis.taps + axis.count, expected, sizeof expected);
    free(axis.taps);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hard_cases_are_rounded_to_the_nearest),
        cmocka_unit_test(test_others_are_as_near_as_those_of_libm),
        cmocka_unit_test(test_taps_are_those_of_exact_weights),
        cmocka_unit_test(test_the_window_of_hamming_has_floats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
