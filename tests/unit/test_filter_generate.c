/* SPDX-License-Identifier: MIT
 *
 * src/filter/generate.c: the parametric filters. */
#include "filters.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void test_a_box_has_equal_taps(void **state)
{
    (void)state;
    struct filter filter, shipped;
    find("box:1", &filter);
    find("box3", &shipped);
    check_same(&filter, &shipped);
    find("box:0", &filter);
    check_taps(&filter, 1, 1, (const int32_t[]){1}, 1);
    find("box:63", &filter);
    assert_int_equal(filter.width, 127);
    assert_int_equal(filter.scale, 127 * 127);
    assert_int_equal(filter.tap_sum, 127 * 127);
    assert_int_equal(filter.absolute_sum, 127 * 127);
    assert_string_equal(filter.title, "mean of a square");

    /* Wider ones are two exact passes, the same for all depths. */
    static const char *const wide[] = {"box:64", "box:511", "box:850"};
    for (size_t i = 0; i < COUNT(wide); i++) {
        const int side = 2 * atoi(wide[i] + strlen("box:")) + 1;
        find(wide[i], &filter);
        assert_true(filter.two_pass && filter.exact && filter.filter16 == NULL && filter_is_centred_square(&filter));
        assert_int_equal(filter.width, side);
        assert_int_equal(filter.pass_scale, (int64_t)side * side);
        assert_int_equal(filter.row_shift, 0);
        check_passes(&filter, true);
    }
}

/* Compare a blur with the Gaussian of SIGMA, whose weights go on for ever, and its bound with its own taps. */
static void check_gaussian(const struct filter *filter, double sigma, bool is_16_bit)
{
    const double levels = is_16_bit ? 65535.0 : 255.0;
    const int radius = filter->width / 2, far = (int)(12.0 * sigma) + radius + 2; /* e^-72 is left out */
    double sum = 1.0, row_sum = 0.0, column_sum = 0.0, error = 0.0;
    for (int x = 1; x <= far; x++)
        sum += 2.0 * exp(-0.5 * (x / sigma) * (x / sigma));
    for (int x = 0; x < filter->width; x++) {
        row_sum += filter->row[x];
        column_sum += filter->column[x];
    }
    assert_true(filter_is_centred_square(filter));
    for (int x = 0; x <= far; x++) {
        const double row = x <= radius ? filter->row[radius + x] / row_sum : 0.0;
        const double column = x <= radius ? filter->column[radius + x] / column_sum : 0.0;
        const double weight = exp(-0.5 * (x / sigma) * (x / sigma)) / sum;
        error += (x == 0 ? 0.5 : 1.0) * (fabs(row - weight) + fabs(column - weight));
        assert_true(x > radius || filter->row[radius + x] == filter->row[radius - x]);
        assert_true(x > radius || filter->column[radius + x] == filter->column[radius - x]);
    }
    if (!filter->two_pass) { /* one tap, whose error is exact: 1 minus the weight of the middle */
        check_taps(filter, 1, 1, (const int32_t[]){1}, 1);
        assert_true(fabs(levels * (1.0 - 1.0 / (sum * sum)) - filter->largest_error) < 1e-6);
    } else {
        const double rounded = ldexp(0.5, -(int)(log2(row_sum) - filter->row_shift));
        assert_true(fabs(levels * error + rounded - filter->largest_error) < 1e-6);
        assert_true(row_sum == exp2(floor(log2(row_sum))) && column_sum == exp2(floor(log2(column_sum))));
    }
    assert_false(filter->exact);
    assert_true(filter->largest_error <= (is_16_bit ? 0.09 : 0.092));
}

static void test_a_gaussian_has_the_weights_of_its_deviation(void **state)
{
    (void)state;
    struct filter filter;
    double sigma = 0.02;
    for (int i = 0; sigma < 170.0; i++) {
        char spec[32];
        snprintf(spec, sizeof spec, "gaussian:%.3f", sigma);
        sigma = strtod(spec + strlen("gaussian:"), NULL);
        find(spec, &filter);
        check_gaussian(&filter, sigma, false);
        check_gaussian(filter.filter16 != NULL ? filter.filter16 : &filter, sigma, filter.filter16 != NULL);
        sigma = i % 40 == 39 ? ceil(sigma * 4.0 + 0.001) / 4.0 : sigma * 1.02; /* also the round ones */
    }
    find("gaussian:170", &filter);
    check_gaussian(&filter, 170.0, false);
    check_gaussian(filter.filter16, 170.0, true);
    assert_true(filter.filter16->width > 1500);

    find("gaussian:1e-200", &filter);
    check_taps(&filter, 1, 1, (const int32_t[]){1}, 1);
    assert_true(filter_is_shift(&filter) && filter.filter16 == NULL);
    find("gaussian:0.2", &filter); /* what is left out shows in 16 bits only */
    assert_true(filter_is_shift(&filter) && filter.filter16->width == 3);
}

static void test_motion_draws_a_line_at_its_angle(void **state)
{
    (void)state;
    struct filter filter;
    static const int32_t nine[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
    find("motion:9:0", &filter);
    check_taps(&filter, 9, 1, nine, 9);
    find("motion:9:180", &filter);
    check_taps(&filter, 9, 1, nine, 9);
    find("motion:9:90", &filter);
    check_taps(&filter, 1, 9, nine, 9);
    find("motion:9:-90", &filter);
    check_taps(&filter, 1, 9, nine, 9);
    find("motion:1:33", &filter);
    check_taps(&filter, 1, 1, nine, 1);
    find("motion:2:0", &filter); /* half a pixel at both ends */
    check_taps(&filter, 3, 1, (const int32_t[]){1, 2, 1}, 4);
    find("motion:127:0", &filter);
    assert_int_equal(filter.width, 127);
    assert_int_equal(filter.tap_sum, 127);
    find("motion:127:45", &filter);
    assert_int_equal(filter.height, filter.width);

    /* Counter-clockwise: at 45 degrees the line goes from the lower left to the upper right. */
    find("motion:5:45", &filter);
    assert_true(tap(&filter, filter.width - 1, 0) > 0);
    assert_true(tap(&filter, 0, 0) == 0);
    find("motion:5:135", &filter);
    assert_true(tap(&filter, filter.width - 1, 0) == 0);
    assert_true(tap(&filter, 0, 0) > 0);
    find("motion:15:20", &filter); /* wider than high, with the right end above the left */
    assert_true(filter.width > filter.height);
    assert_true(tap(&filter, filter.width - 2, 0) > 0);

    struct filter turned;
    static const char *const specs[][2] = {{"motion:15:30", "motion:15:210"}, {"motion:20.5:-17", "motion:20.5:163"}};
    for (size_t i = 0; i < COUNT(specs); i++) {
        find(specs[i][0], &filter);
        find(specs[i][1], &turned);
        check_same(&filter, &turned);
        assert_true(is_symmetric(&filter, false));
        assert_int_equal(filter.tap_sum, filter.scale);
        assert_int_equal(filter.absolute_sum, filter.scale);
    }
}

/* The area of the pixel at X, Y in the circle: from many strips, not from the integral. */
static double area_in_circle(double radius, int x, int y)
{
    enum { STRIPS = 3000 };
    const double left = fmax(x - 0.5, -radius), width = fmin(x + 0.5, radius) - left;
    double area = 0.0;
    for (int i = 0; width > 0.0 && i < STRIPS; i++) {
        const double at = left + width * (i + 0.5) / STRIPS;
        const double height = sqrt(radius * radius - at * at);
        area += fmax(fmin(height, y + 0.5) - fmax(-height, y - 0.5), 0.0) * width / STRIPS;
    }
    return area;
}

static void check_disk(const struct filter *filter, double radius, double levels, double bound)
{
    double error = 0.0;
    const int reach = (int)ceil(radius);
    for (int y = -reach; y <= reach; y++)
        for (int x = -reach; x <= reach; x++) {
            const int column = x + filter->anchor_x, row = y + filter->anchor_y;
            const bool inside = column >= 0 && column < filter->width && row >= 0 && row < filter->height;
            error += fabs((inside ? (double)tap(filter, column, row) / filter->scale : 0.0) -
                          area_in_circle(radius, x, y) / (3.14159265358979323846 * radius * radius));
        }
    assert_true(fabs(levels / 2.0 * error - filter->largest_error) < levels * 1e-6);
    assert_true(filter->largest_error <= bound);
    assert_true(is_symmetric(filter, true));
    assert_int_equal(filter->tap_sum, filter->scale);
    assert_int_equal(filter->absolute_sum, filter->scale);
}

static void test_a_disk_has_the_area_of_its_radius(void **state)
{
    (void)state;
    struct filter filter;
    static const struct {
        const char *spec;
        double radius, bound; /* the radius, and the bound of the error in levels of 16 bits */
        int side;
    } cases[] = {{"disk:0.01", 0.01, 0, 1}, {"disk:0.5", 0.5, 0, 1},    {"disk:0.75", 0.75, 0.12, 3},
                 {"disk:1", 1, 0.12, 3},    {"disk:4.5", 4.5, 0.12, 9}, {"disk:10", 10, 0.12, 21},
                 {"disk:31", 31, 0.5, 63}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        find(cases[i].spec, &filter);
        assert_int_equal(filter.width, cases[i].side);
        check_disk(&filter, cases[i].radius, 255.0, 0.1);
        if (filter.filter16 != NULL)
            check_disk(filter.filter16, cases[i].radius, 65535.0, cases[i].bound);
    }
    find("disk:63", &filter);
    assert_int_equal(filter.width, 127);
    assert_true(filter.largest_error < 0.1 && filter.filter16->largest_error < 0.6);
    find("disk:1.5", &filter); /* by hand: the corners' area is 0.5451, the edges' 0.9722 */
    assert_true(fabs(tap(&filter, 0, 0) / (double)tap(&filter, 1, 1) - 0.5451) < 1e-3);
}

/* Compare with the infinite Laplacian of Gaussian, from libm. */
static void check_log(const struct filter *filter, double sigma, double levels)
{
    const int far = (int)(12.0 * sigma) + 2;
    double sum = 0.0, mean = 0.0, error = 0.0;
    for (int x = -far; x <= far; x++) {
        sum += exp(-0.5 * (x / sigma) * (x / sigma));
        mean += 2.0 * x * x * exp(-0.5 * (x / sigma) * (x / sigma));
    }
    mean /= sum;
    for (int y = -far; y <= far; y++)
        for (int x = -far; x <= far; x++) {
            const double weight =
                exp(-0.5 * (x * x + y * y) / (sigma * sigma)) / (sum * sum) * (x * x + y * y - mean) / (sigma * sigma);
            const int column = x + filter->anchor_x, row = y + filter->anchor_y;
            const bool inside = column >= 0 && column < filter->width && row >= 0 && row < filter->height;
            error += fabs((inside ? (double)tap(filter, column, row) / filter->scale : 0.0) - weight);
        }
    assert_true(levels / 2.0 * error <= filter->largest_error + levels * 1e-9);
    assert_true(levels / 2.0 * error >= 0.5 * filter->largest_error);
    assert_true(is_symmetric(filter, true));
    assert_int_equal(filter->tap_sum, 0);
    assert_true(tap(filter, filter->anchor_x, filter->anchor_y) < 0);
}

static void test_a_laplacian_of_gaussian_sums_to_zero(void **state)
{
    (void)state;
    struct filter filter;
    static const struct {
        const char *spec;
        double sigma, bound, bound16;
    } cases[] = {{"log:0.2", 0.2, 0.1, 0.12},   {"log:0.48", 0.48, 0.1, 0.12}, {"log:1", 1, 0.1, 0.3},
                 {"log:1.4", 1.4, 0.1, 0.4},    {"log:5", 5, 0.1, 5},          {"log:12", 12, 0.1, 25},
                 {"log:15.75", 15.75, 0.7, 160}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        find(cases[i].spec, &filter);
        check_log(&filter, cases[i].sigma, 255.0);
        assert_true(filter.largest_error <= cases[i].bound);
        if (filter.filter16 == NULL) {
            assert_true(257.0 * filter.largest_error <= cases[i].bound16);
            continue;
        }
        check_log(filter.filter16, cases[i].sigma, 65535.0);
        assert_true(filter.filter16->largest_error <= cases[i].bound16);
    }

    /* The second derivative of x^2 is 2, here times sigma squared. */
    find("log:3", &filter);
    double response = 0.0;
    for (int y = 0; y < filter.height; y++) {
        for (int x = 0; x < filter.width; x++)
            response += (double)tap(&filter, x, y) * (x - filter.anchor_x) * (x - filter.anchor_x) / filter.scale;
    }
    assert_true(response > 17.9 && response < 18.1);
}

static void test_an_unsharp_mask_is_a_blur_and_an_amount(void **state)
{
    (void)state;
    struct filter filter, blur;
    static struct filter blur16;
    find("gaussian:2", &blur);
    blur16 = *blur.filter16;
    find("unsharp:2:1.1:2.5", &filter);
    assert_string_equal(filter.title, "unsharp mask");
    assert_int_equal(filter.row_shift, blur.row_shift);
    assert_int_equal(filter.pass_scale, blur.pass_scale);
    assert_memory_equal(filter.row, blur.row, sizeof blur.row);
    assert_memory_equal(filter.filter16->column, blur16.column, sizeof blur.column);
    assert_int_equal(filter.amount, 1153434); /* 1.1 * 2^20 = 1153433.6 */
    assert_int_equal(filter.filter16->amount, 1153434);
    assert_int_equal(filter.threshold, 640);
    assert_int_equal(filter.filter16->threshold, 640 * 257);
    assert_int_equal(filter.absolute_sum, 5);
    const double step = 1153434.0 / 1048576.0;
    assert_true(fabs(filter.largest_error - 255.0 * (step - 1.1) - step * (blur.largest_error + 1.0 / 512)) < 1e-9);
    assert_true(fabs(filter.filter16->largest_error - 65535.0 * (step - 1.1) -
                     step * (blur16.largest_error + 1.0 / 512)) < 1e-9);

    find("unsharp:0.7:0.5", &filter);
    assert_int_equal(filter.threshold, 0);
    assert_int_equal(filter.absolute_sum, 3);
    find("unsharp:170:100:255", &filter);
    assert_true(filter.amount == 100 << 20 && filter.filter16->threshold == 65535 << 8);
    find("unsharp:1:0.000001", &filter);
    assert_int_equal(filter.amount, 1);
    find("unsharp:0.01:100", &filter); /* its blur is the image */
    assert_true(filter_is_shift(&filter) && filter.filter16 == NULL);
    find("unsharp", &filter); /* the shipped one */
    assert_false(filter.two_pass);
    assert_int_equal(filter.width, 5);
}

static void test_ranks_have_squares_and_disks(void **state)
{
    (void)state;
    static const struct {
        const char *spec;
        enum rank_form form;
        int side, reach, count, index;
    } cases[] = {
        {"median:1", RANK_ONE, 3, 1, 9, 4},
        {"median:63", RANK_ONE, 127, 63, 16129, 8064},
        {"erode:4/2", RANK_ONE, 5, 2, 25, 0},
        {"dilate:1:disk", RANK_ONE, 3, 1, 5, 4},
        {"median:1.42:disk", RANK_ONE, 3, 1, 9, 4},
        {"median:2.23:disk", RANK_ONE, 5, 2, 13, 6},
        {"median:2.2360680:disk", RANK_ONE, 5, 2, 21, 10},
        {"rank:2:25", RANK_ONE, 5, 2, 25, 6},
        {"rank:2:25%:disk", RANK_ONE, 5, 2, 13, 3},
        {"rank:63:100", RANK_ONE, 127, 63, 16129, 16128},
        {"open:3", RANK_OPEN, 7, 6, 49, 0},
        {"close:63:disk", RANK_CLOSE, 127, 126, 12453, 0},
        {"tophat:1", RANK_TOPHAT, 3, 2, 9, 0},
        {"blackhat:1", RANK_BLACKHAT, 3, 2, 9, 0},
        {"outline:5", RANK_OUTLINE, 11, 5, 121, 0},
    };
    struct filter filter;
    for (size_t i = 0; i < COUNT(cases); i++) {
        find(cases[i].spec, &filter);
        check_invariants(&filter);
        assert_int_equal(filter.rank.form, cases[i].form);
        assert_int_equal(filter.rank.width, cases[i].side);
        assert_int_equal(filter.rank.height, cases[i].side);
        assert_true(filter.anchor_x == cases[i].reach && filter.anchor_y == cases[i].reach);
        assert_true(filter.width == 2 * cases[i].reach + 1 && filter.height == filter.width);
        assert_int_equal(filter.rank.count, cases[i].count);
        assert_int_equal(filter.rank.index, cases[i].index);
    }
}

static void test_every_parametric_form_is_found(void **state)
{
    (void)state;
    struct filter filter;
    size_t count = 0;
    for (; filter_forms[count].form; count++) {
        char spec[64];
        snprintf(spec, sizeof spec, "%.*s%s", (int)strcspn(filter_forms[count].form, ":["), filter_forms[count].form,
                 strpbrk(filter_forms[count].form, ":[") == NULL ? ""
                 : strstr(filter_forms[count].form, "LENGTH")    ? ":3:30"
                 : strstr(filter_forms[count].form, "AMOUNT")    ? ":2:0.5"
                 : strstr(filter_forms[count].form, "resize")    ? ":2x"
                 : strstr(filter_forms[count].form, "turn")      ? ":270"
                 : strstr(filter_forms[count].form, "mirror")    ? ":y"
                 : strstr(filter_forms[count].form, "to-srgb")   ? ":black-point"
                 : strstr(filter_forms[count].form, "BLACK")     ? ":2:3"
                 : strstr(filter_forms[count].form, "tint")      ? ":#f80"
                 : strstr(filter_forms[count].form, "rank")      ? ":9.5:3%:disk"
                 : strstr(filter_forms[count].form, "RGB")       ? ":GBB"
                 : strstr(filter_forms[count].form, "SIZE")      ? ":2x3"
                                                                 : ":2");
        if (strcmp(spec, "cover:2x3") == 0) { /* it is two filters */
            struct filter *both;
            size_t filters;
            assert_true(filter_find_all(spec, filter_find, &both, &filters, NULL));
            assert_int_equal(filters, 2);
            free(both);
            continue;
        }
        find(spec, &filter);
        assert_true(strlen(filter_forms[count].summary) > 0);
    }
    assert_int_equal(count, FORM_COUNT);

#define UNSHARP_USAGE                                                                                                  \
    "unsharp:SIGMA:AMOUNT[:THRESHOLD] takes a deviation above 0 and up to 170, an amount from 0.000001 to 100 and "    \
    "optionally a threshold from 0 to 255 levels, for example unsharp:2:0.5 or unsharp:2:0.5:3"
    static const char *const cases[][2] = {
        {"unsharp:2", UNSHARP_USAGE},
        {"unsharp:2:", UNSHARP_USAGE},
        {"unsharp:2:0", UNSHARP_USAGE},
        {"unsharp:2:-1", UNSHARP_USAGE},
        {"unsharp:2:101", UNSHARP_USAGE},
        {"unsharp:171:1", UNSHARP_USAGE},
        {"unsharp:2:1:", UNSHARP_USAGE},
        {"unsharp:2:1:256", UNSHARP_USAGE},
        {"unsharp:2:1:-1", UNSHARP_USAGE},
        {"unsharp:2:1:3:4", UNSHARP_USAGE},
        {"gaussian", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:0", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:-1", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:170.01", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:nan", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:1e999", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:2x", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:2:3", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"gaussian:2:", "gaussian:SIGMA takes one number above 0 and up to 170, for example gaussian:2.5"},
        {"box:1.5", "box:R takes one whole number from 0 to 850, for example box:2"},
        {"box:-1", "box:R takes one whole number from 0 to 850, for example box:2"},
        {"box:851", "box:R takes one whole number from 0 to 850, for example box:2"},
        {"motion:9", "motion:LENGTH:ANGLE takes a length from 1 to 127 and an angle from -360 to 360 degrees, for "
                     "example motion:15:30"},
        {"motion:0.9:0", "motion:LENGTH:ANGLE takes a length from 1 to 127 and an angle from -360 to 360 degrees, for "
                         "example motion:15:30"},
        {"motion:127.1:0", "motion:LENGTH:ANGLE takes a length from 1 to 127 and an angle from -360 to 360 degrees, "
                           "for example motion:15:30"},
        {"motion:9:361", "motion:LENGTH:ANGLE takes a length from 1 to 127 and an angle from -360 to 360 degrees, for "
                         "example motion:15:30"},
        {"disk:0", "disk:R takes one number above 0 and up to 63, for example disk:4.5"},
        {"disk:63.1", "disk:R takes one number above 0 and up to 63, for example disk:4.5"},
        {"log:0.1", "log:SIGMA takes one number from 0.2 to 15.75, for example log:1.5"},
        {"log:16", "log:SIGMA takes one number from 0.2 to 15.75, for example log:1.5"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char message[512];
        snprintf(message, sizeof message, "there is no filter \"%s\": %s", cases[i][0], cases[i][1]);
        refuse_find(cases[i][0], ERROR_USAGE, message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_box_has_equal_taps),
        cmocka_unit_test(test_a_gaussian_has_the_weights_of_its_deviation),
        cmocka_unit_test(test_motion_draws_a_line_at_its_angle),
        cmocka_unit_test(test_a_disk_has_the_area_of_its_radius),
        cmocka_unit_test(test_a_laplacian_of_gaussian_sums_to_zero),
        cmocka_unit_test(test_an_unsharp_mask_is_a_blur_and_an_amount),
        cmocka_unit_test(test_ranks_have_squares_and_disks),
        cmocka_unit_test(test_every_parametric_form_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
