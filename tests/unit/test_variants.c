/* SPDX-License-Identifier: MIT
 *
 * The table of variants, the plans that it gives and refuses, and the automatic choice. check_variants checks what the
 * variants compute. */
#include "kernels/tensor-core/arrange.h"
#include "variants/choose.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "tests/lib/helpers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* 16 bits, by fractions of Python and the formula: sums beyond 32 bits, offsets that are no integers, all that combine.
 */
static void test_sixteen_bits_by_hand(void **state)
{
    (void)state;
    enum { WIDTH = 5, HEIGHT = 3 };
    static uint16_t in[HEIGHT][WIDTH] = {
        {0, 65535, 1, 40000, 65534}, {12345, 777, 50001, 32768, 65535}, {65535, 32767, 257, 9999, 60000}};
    static const struct {
        const char *text;
        enum border border;
        uint16_t out[HEIGHT * WIDTH];
    } cases[] = {
        {"scale 16\n1 2 1\n2 4 2\n1 2 1\n",
         BORDER_REFLECT101,
         {19664, 24371, 29886, 40826, 50959, 23760, 24387, 25994, 36746, 46517, 27856, 24403, 22103, 32666, 42076}},
        {"offset 128\n-2 -1 0\n-1 1 1\n0 1 2\n",
         BORDER_REPLICATE,
         {65535, 65535, 0, 65535, 65535, 65535, 39075, 4072, 65535, 65535, 65535, 8199, 0, 65535, 65535}},
        {"scale 7\noffset 0.3\nabs\n-5 1 3\n",
         BORDER_WRAP,
         {18801, 9440, 29745, 33877, 19287, 44791, 12799, 20709, 3025, 8830, 19529, 42097, 19160, 27036, 29593}},
        {"scale 5000001\n1400000 1399999 1400001\n1 -800000 1600003\n7 11 13\n",
         BORDER_REFLECT,
         {39321, 7865, 42350, 44121, 58385, 16624, 34226, 32036, 45278, 58385, 7131, 12514, 26552, 59125, 55475}},
        {"scale 8388607\noffset -100\n8000000 400000\n",
         BORDER_ZERO,
         {0, 0, 36799, 0, 15572, 0, 0, 0, 23547, 8675, 0, 38362, 5561, 0, 0}},
        {"scale 3\noffset 1/7\ncombine magnitude\n-1 1\n---\n2 -1\n",
         BORDER_ZERO,
         {37, 30930, 48883, 18892, 9819, 5856, 8891, 23059, 23173, 10959, 30930, 34577, 24345, 4569, 21381}},
        {"combine magnitude\n0 0 0\n-1 0 1\n0 0 0\n---\n0 -1 0\n0 0 0\n0 1 0\n",
         BORDER_REFLECT101,
         {0, 1, 25535, 65533, 0, 65535, 49917, 31992, 33784, 5534, 0, 65278, 22768, 59743, 0}},
        {"scale 4000003\noffset -2\ncombine magnitude\n3000000 -2999999\n---\n-1000000 1000003\n",
         BORDER_WRAP,
         {51295, 51296, 51295, 31108, 19672, 41536, 8631, 38401, 13110, 25391, 3862, 25391, 25187, 7188, 39015}},
        {"scale 9\ncombine sum\n5 -7\n---\n-4 2\n",
         BORDER_REPLICATE,
         {0, 65535, 65534, 39999, 31963, 5487, 11568, 49224, 17233, 32767, 29127, 32768, 32510, 9742, 50001}},
        {"scale 5\noffset 20.5\ncombine max\n3 -4\n---\n-4 2\n",
         BORDER_REFLECT,
         {5269, 57697, 57696, 37268, 33696, 10207, 14834, 44803, 32162, 38036, 31483, 44590, 31379, 13114, 47269}},
        {"offset 3\n0 0\n0 0\n",
         BORDER_ZERO,
         {771, 771, 771, 771, 771, 771, 771, 771, 771, 771, 771, 771, 771, 771, 771}},
        {"0 0 1\n", BORDER_ZERO, {65535, 1, 40000, 65534, 0, 777, 50001, 32768, 65535, 0, 32767, 257, 9999, 60000, 0}},
    };
    size_t count, rows = 0;
    const struct variant *table = variants(&count);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (size_t i = 0; i < count; i++) {
            static struct filter filter;
            uint16_t out[HEIGHT][WIDTH] = {{0}};
            const struct plane from = {SAMPLE_U16, WIDTH, HEIGHT, 1, sizeof in[0], sizeof in, in, false, STORED_FLOAT};
            const struct plane to = {SAMPLE_U16, WIDTH, HEIGHT, 1, sizeof out[0], sizeof out, out, false, STORED_FLOAT};
            struct plan plan;
            filter = parsed(cases[c].text);
            if (table[i].backend != BACKEND_CPU || !variant_accepts(&table[i], &filter, SAMPLE_U16))
                continue;
            assert_true(variant_plan(&plan, &filter, cases[c].border, SAMPLE_U16, &table[i], NULL));
            assert_true(variant_prepare(&plan, NULL, NULL));
            assert_true(variant_launch(&plan, NULL, &from, &to, NULL));
            plan_free(&plan);
            assert_memory_equal(out, cases[c].out, sizeof out);
            rows++;
        }
    assert_true(rows >= sizeof cases / sizeof cases[0]);
}

static void test_refuses_filters_that_a_variant_does_not_accept(void **state)
{
    (void)state;
    static const char general[] = "1 2\n3 4\n";
    static struct filter filter;
    filter = parsed(general);
    size_t count, refused = 0;
    const struct variant *table = variants(&count);
    for (size_t i = 0; i < count; i++) {
        struct plan plan;
        struct error error = {0};
        const bool taken = table[i].accepts == ACCEPTS_ALL || table[i].accepts == ACCEPTS_ONE_GRID ||
                           table[i].accepts == ACCEPTS_FEW_TAPS;
        const bool made = variant_plan(&plan, &filter, BORDER_WRAP, SAMPLE_U8, &table[i], &error);
        assert_true(made == (variant_is_built(&table[i]) && taken));
        if (!made) {
            assert_non_null(strstr(error.message, table[i].name));
            assert_int_equal(error.code, !taken ? ERROR_USAGE : ERROR_WORK);
            refused++;
        }
    }
    assert_true(refused >= 1);
    struct plan plan;
    struct error error = {0};
    assert_false(variant_plan(&plan, &filter, BORDER_WRAP, SAMPLE_U16, variant_find("basic", NULL), &error));
    assert_string_equal(error.message, "the variant basic does not take uint16 samples; leave --variant out or choose "
                                       "another (gpuconv --list-variants says which samples each takes)");
}

/* Rows for one grid refuse two, and the other way round, whatever the taps are. */
static void test_refuses_the_other_number_of_grids(void **state)
{
    (void)state;
    static struct filter one, two;
    one = parsed("1\n");
    two = parsed("combine max\n1\n---\n0\n");
    size_t count, of_two = 0, both = 0;
    const struct variant *table = variants(&count);
    for (size_t i = 0; i < count; i++) {
        struct plan plan;
        struct error error = {0};
        const bool takes_one = variant_accepts(&table[i], &one, SAMPLE_U8);
        const bool takes_two = variant_accepts(&table[i], &two, SAMPLE_U8);
        if (table[i].accepts == ACCEPTS_BLURS) {
            assert_false(takes_one || takes_two);
            assert_false(variant_plan(&plan, &one, BORDER_WRAP, SAMPLE_U8, &table[i], &error));
            assert_non_null(
                strstr(error.message,
                       "takes only filters in two passes with different taps, such as gaussian:2, and test is not "));
            continue;
        }
        if (table[i].accepts == ACCEPTS_TWO_PASSES) {
            assert_false(takes_one || takes_two);
            assert_false(variant_plan(&plan, &one, BORDER_WRAP, SAMPLE_F32, &table[i], &error));
            assert_non_null(strstr(
                error.message, "takes only filters in two passes, such as gaussian:20 and box:70, and test is not "));
            continue;
        }
        if (table[i].accepts == ACCEPTS_NONE) {
            assert_false(takes_one || takes_two);
            assert_false(variant_plan(&plan, &one, BORDER_WRAP, SAMPLE_U8, &table[i], &error));
            assert_non_null(
                strstr(error.message, table[i].steps[STEP_RESIZE].samples != 0
                                          ? "takes only filters that change the size of a picture, and test keeps it"
                                          : "takes only filters without taps, and test has some"));
            continue;
        }
        assert_true(takes_one || takes_two); /* a column, a row, a shift and few taps */
        assert_true((takes_one && takes_two) == (table[i].accepts == ACCEPTS_ALL));
        of_two += takes_two && !takes_one;
        both += takes_one && takes_two;
        if (!takes_two) {
            assert_false(variant_plan(&plan, &two, BORDER_WRAP, SAMPLE_U8, &table[i], &error));
            assert_non_null(strstr(error.message, "takes only filters of one grid, and test has two; "));
            assert_int_equal(error.code, ERROR_USAGE);
        }
        if (!takes_one) {
            assert_false(variant_plan(&plan, &one, BORDER_WRAP, SAMPLE_U8, &table[i], &error));
            assert_non_null(strstr(error.message, "takes only filters of two grids, and test has one; "));
        }
    }
    assert_true(of_two >= 1 && both == 2);
}

static void test_accepts_shifts_and_few_taps(void **state)
{
    (void)state;
    static struct filter filter;
    struct plan plan;
    struct error error = {0};
    const struct variant *sparse = variant_find("sparse", NULL), *copy = variant_find("copy", NULL);
    filter = parsed("anchor 2 0\n0 0 0\n0 5 0\n-7 0 0\n");
    assert_false(variant_accepts(copy, &filter, SAMPLE_U8));
    filter = parsed("scale 7\n0 7 0\n");
    assert_true(variant_accepts(copy, &filter, SAMPLE_U8));
    filter.absolute = true;
    assert_false(variant_accepts(copy, &filter, SAMPLE_U8));

    filter.width = filter.height = FILTER_MAX;
    memset(filter.taps, 0, sizeof filter.taps);
    for (int i = 0; i < SPARSE_MAX; i++)
        filter.taps[FILTER_MAX * FILTER_MAX - 1 - i] = -1;
    assert_true(variant_accepts(sparse, &filter, SAMPLE_F32));
    filter.taps[0] = 1;
    assert_false(variant_plan(&plan, &filter, BORDER_ZERO, SAMPLE_U8, sparse, &error));
    assert_non_null(strstr(error.message, "at most 8192 taps that are not zero"));
    assert_non_null(strstr(error.message, "has 8193"));
}

/* A variant that any GPU has, or the CPU, is chosen for each FILTER, and accepts it. */
static void check_choice(const struct filter *filter)
{
    static const int sides[] = {1, 7, 640, 20000};
    for (enum backend backend = BACKEND_CPU; backend <= BACKEND_CUDA; backend++)
        for (enum sample sample = 0; sample < SAMPLE_COUNT; sample++)
            for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) {
                const struct work work = {
                    .width = sides[i], .height = sides[i], .planes = 3, .sample = sample, .threads = 1};
                const struct variant *choice = variant_choose(filter, backend, &work);
                if (choice == NULL)
                    fail_msg("no %s variant takes %s samples and %s", backend_name(backend), sample_name(sample),
                             filter->name);
                const struct variant_step *step = &choice->steps[filter->kind];
                assert_int_equal(choice->backend, backend);
                assert_non_null(step->seconds);
                assert_true((step->samples | choice->two_pass) & 1u << sample);
                assert_true(variant_accepts(choice, filter, sample));
                assert_true(choice->capability <= 75); /* the oldest generation */
            }
}

/* Each filter of a chain. Returns false if there is no such filter. */
static bool check_spec(const char *spec)
{
    struct filter *filters;
    size_t count;
    struct error error;
    if (!filter_find_all(spec, filter_find, &filters, &count, &error))
        return false;
    for (size_t i = 0; i < count; i++)
        check_choice(&filters[i]);
    free(filters);
    return true;
}

static void test_every_filter_has_a_variant_everywhere(void **state)
{
    (void)state;
    static const char *const texts[] = {"1\n", "0 1 0\n1 -4 1\n0 1 0\n", "1 1 1 1\n", "combine max\n1\n---\n2\n"};
    static const char *const specs[] = {
        "motion:127:30", "disk:63",   "log:12",          "resize:50%",      "resize:900x800:exact:box",
        "thumbnail:30%", "crop:1x1",  "cover:40x40",     "pad:20000x20000", "turn:90",
        "mirror:x",      "median:63", "rank:2.5:3:disk", "open:9"};
    /* Filters in two passes of all widths: an eighth more each time, until there are no larger ones. */
    static const char *const forms[] = {"gaussian:%g", "unsharp:%g:1.5", "unsharp:%g:0.3:2", "box:%.0f"};
    static struct filter filter;
    char spec[64];
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        filter = parsed(texts[i]);
        check_choice(&filter);
    }
    for (size_t i = 0; i < builtin_filter_count; i++)
        assert_true(check_spec(builtin_filters[i].name));
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        assert_true(check_spec(specs[i]));
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        double width = 0.25;
        while (snprintf(spec, sizeof spec, forms[i], width), check_spec(spec))
            width += width / 8;
        assert_true(width > 150);
    }
}

/* One small image is done on the CPU before a GPU has started; a large one with a large filter is not. */
static void test_model_prefers_the_cpu_for_small_work(void **state)
{
    (void)state;
    static struct filter small, large;
    small = parsed("1 2 1\n");
    struct error error;
    if (!filter_find("disk:31", &large, NULL, &error))
        fail_msg("%s", error.message);
    const struct total_work photo = {
        .image = {.width = 1920, .height = 1080, .planes = 3, .sample = SAMPLE_U8, .threads = 2}};
    const struct total_work huge = {
        .image = {.width = 16384, .height = 16384, .planes = 3, .sample = SAMPLE_U8, .threads = 16}};
    const struct backend_seconds quick = cost_backends(&small, 1, &photo), slow = cost_backends(&large, 1, &huge);
    assert_true(quick.cpu < quick.cuda);
    assert_true(slow.cpu > slow.cuda);
}

/* The seconds of as many images like one, with the start of the GPU. */
static struct backend_seconds cost_all(const struct filter *filter, const struct total_work *work, int images)
{
    const struct backend_seconds one = cost_backends(filter, 1, work);
    return (struct backend_seconds){images * one.cpu / work->workers, cost_start(work) + images * one.cuda};
}

/* A batch goes to a GPU that decodes its inputs or encodes its outputs, and the same batch stays on the CPU if the CPU
 * must do both in either case. */
static void test_model_counts_what_a_gpu_codes(void **state)
{
    (void)state;
    static struct filter filter;
    filter = parsed("1 2 1\n");
    struct backend_seconds seconds[3][3];
    for (enum gpu_codec decodes = GPU_CODEC_NONE; decodes <= GPU_CODEC_PNG; decodes++)
        for (enum gpu_codec encodes = GPU_CODEC_NONE; encodes <= GPU_CODEC_PNG; encodes++) {
            const struct total_work batch = {
                .image = {.width = 5120, .height = 2880, .planes = 3, .sample = SAMPLE_U8, .threads = 1},
                .workers = 16,
                .gpus = 1,
                .gpu_decodes = decodes,
                .gpu_encodes = encodes};
            seconds[decodes][encodes] = cost_all(&filter, &batch, 100);
        }
    for (enum gpu_codec other = GPU_CODEC_NONE; other <= GPU_CODEC_PNG; other++) {
        const double none = seconds[other][GPU_CODEC_NONE].cpu;
        const double png = seconds[other][GPU_CODEC_PNG].cpu - none, jpeg = seconds[other][GPU_CODEC_JPEG].cpu - none;
        assert_true(png > jpeg && jpeg > 0);
        const double from_none = seconds[GPU_CODEC_NONE][other].cpu;
        const double from_png = seconds[GPU_CODEC_PNG][other].cpu - from_none;
        assert_true(from_png > seconds[GPU_CODEC_JPEG][other].cpu - from_none && from_png > png / 3);
        assert_true(seconds[other][GPU_CODEC_PNG].cuda < seconds[other][GPU_CODEC_PNG].cpu);
        assert_true(seconds[GPU_CODEC_PNG][other].cpu - seconds[GPU_CODEC_PNG][other].cuda >
                    seconds[GPU_CODEC_NONE][other].cpu - seconds[GPU_CODEC_NONE][other].cuda);
    }
    assert_true(seconds[GPU_CODEC_NONE][GPU_CODEC_NONE].cuda > seconds[GPU_CODEC_NONE][GPU_CODEC_NONE].cpu);
    /* 16 cores are faster with many small PNGs, and a GPU with as many small JPEGs. */
    for (enum gpu_codec codec = GPU_CODEC_JPEG; codec <= GPU_CODEC_PNG; codec++) {
        const struct total_work batch = {
            .image = {.width = 500, .height = 375, .planes = 3, .sample = SAMPLE_U8, .threads = 1},
            .workers = 16,
            .gpus = 1,
            .gpu_decodes = codec,
            .gpu_encodes = codec};
        const struct backend_seconds small = cost_all(&filter, &batch, 10000);
        assert_true((small.cuda < small.cpu) == (codec == GPU_CODEC_JPEG));
    }
}

/* Planes that the variant `cpu` turns take one and a half times to three times as long as square ones. */
static void test_model_knows_which_planes_are_turned(void **state)
{
    static struct filter filter;
    const struct variant *cpu = variant_find("cpu", NULL);
    const struct work square = {.width = 3162, .height = 3162, .planes = 1, .sample = SAMPLE_U16, .threads = 1};
    (void)state;
    assert_true(filter_find("box:200", &filter, NULL, NULL));
    for (int width = 1; width <= 400; width++) {
        const struct work tall = {
            .width = width, .height = 10000000 / width, .planes = 1, .sample = SAMPLE_U16, .threads = 1};
        assert_true(cost_variant_seconds(cpu, &filter, &tall) < 3 * cost_variant_seconds(cpu, &filter, &square));
    }
}

/* One row is the reference, wherever it stands in the table. It accepts everything, and is named so. */
static void test_one_row_is_the_reference(void **state)
{
    (void)state;
    size_t count, references = 0;
    const struct variant *table = variants(&count), *reference = variant_reference();
    for (size_t i = 0; i < count; i++) {
        references += table[i].is_reference;
        assert_true(table[i].is_reference == (&table[i] == reference));
        assert_true(table[i].is_reference == (strcmp(table[i].name, "reference") == 0));
    }
    assert_int_equal(references, 1);
    assert_int_equal(reference->backend, BACKEND_CPU);
    assert_int_equal(reference->accepts, ACCEPTS_ALL);
    for (enum step_kind kind = 0; kind < STEP_KINDS; kind++) {
        assert_non_null(reference->steps[kind].launch);
        assert_int_equal(reference->steps[kind].samples, (1u << SAMPLE_COUNT) - 1);
    }
}

/* A separable filter of WIDTH x HEIGHT taps of 1 in its column, and of TAP in its row. */
static struct tensor_arrangement arranged(int width, int height, int tap, int scale)
{
    static struct filter filter;
    struct tensor_arrangement arrangement;
    filter = (struct filter){.width = width,
                             .height = height,
                             .anchor_x = width / 2,
                             .anchor_y = height / 2,
                             .scale = scale,
                             .bias = scale / 2,
                             .separable = true,
                             .absolute_sum = (int64_t)width * height * tap};
    for (int j = 0; j < width; j++)
        filter.row[j] = tap;
    for (int i = 0; i < height; i++)
        filter.column[i] = 1;
    for (int i = 0; i < width * height; i++)
        filter.taps[i] = tap;
    tensor_arrange(&filter, true, true, &arrangement);
    return arrangement;
}

/* The kernels of tensor-core on either side of each limit. */
static void test_arrangements_of_tensor_core(void **state)
{
    (void)state;
    assert_int_equal(arranged(9, 9, 127, 81).kernel, TENSOR_WALK);
    assert_int_equal(arranged(11, 9, 127, 81).kernel, TENSOR_PASSES);
    assert_int_equal(arranged(9, 11, 127, 81).kernel, TENSOR_PASSES);
    assert_int_equal(arranged(17, 17, 1, 16).window, 2);
    assert_int_equal(arranged(18, 17, 1, 16).window, 3);
    assert_int_equal(arranged(17, 18, 1, 16).window, 3);
    assert_int_equal(arranged(33, 33, 1, 16).kernel, TENSOR_PASSES);
    assert_int_equal(arranged(33, 34, 1, 16).kernel,
                     TENSOR_GROUP);                       /* and the taps of tensor_wide fill its shared memory */
    assert_int_equal(arranged(13, 13, 19, 16).planes, 2); /* 13 * 19 * 255 < 2^16 */
    assert_int_equal(arranged(13, 13, 20, 16).planes, 3);
    assert_true(arranged(3, 13, 255, 16).unsigned_taps);
    assert_false(arranged(3, 13, 256, 16).unsigned_taps);
    assert_int_equal(arranged(2, 11, 32639, 16).kernel, TENSOR_PASSES); /* the largest tap in two parts */
    assert_int_equal(arranged(2, 11, 32640, 16).kernel, TENSOR_WIDE);
    assert_int_equal(arranged(3, 11, 21931, 16).kernel, TENSOR_PASSES); /* 3 * 21931 * 255 = 2^24 - 1 */
    assert_int_equal(arranged(3, 11, 21932, 16).kernel, TENSOR_WIDE);
    assert_int_equal(arranged(11, 11, 1, 64).level, LEVEL_SHIFT);
    assert_int_equal(arranged(11, 11, 1, 121).level, LEVEL_SCALE);
    assert_false(arranged(11, 11, 1, (1 << 22) + 1).quick);
    assert_int_equal(arranged(11, 11, 1, (1 << 22) + 1).kernel, TENSOR_GROUP);
}

/* Which filters the sums of halves suit, with SHARED KB of shared memory. */
static enum tensor_kernel arranged_for_float(int width, int height, size_t shared)
{
    static struct filter filter;
    struct tensor_arrangement arrangement;
    filter.width = width;
    filter.height = height;
    tensor_arrange_float(&filter, shared * 1024, &arrangement);
    return arrangement.kernel;
}

static void test_arrangements_for_float(void **state)
{
    (void)state;
    assert_int_equal(arranged_for_float(15, 15, 227), TENSOR_NONE);
    assert_int_equal(arranged_for_float(16, 8, 227), TENSOR_NONE); /* 26 + 36 * 3 + 6 > 128 */
    assert_int_equal(arranged_for_float(16, 9, 227), TENSOR_FLOAT);
    assert_int_equal(arranged_for_float(31, 5, 227), TENSOR_NONE);
    assert_int_equal(arranged_for_float(31, 6, 227), TENSOR_FLOAT);
    assert_int_equal(arranged_for_float(31, 31, 92), TENSOR_NONE);
    assert_int_equal(arranged_for_float(31, 31, 93), TENSOR_FLOAT); /* 94976 bytes and 64 */
    assert_int_equal(arranged_for_float(39, 39, 227), TENSOR_FLOAT);
    assert_int_equal(arranged_for_float(40, 20, 227), TENSOR_NONE);
    assert_int_equal(arranged_for_float(39, 127, 227), TENSOR_NONE);
    assert_int_equal(arranged_for_float(31, 31, 0), TENSOR_NONE);
}

/* Dense filters on floats go to the tensor cores where these are faster. */
static void test_choice_for_float(void **state)
{
    (void)state;
    static struct filter filter;
    const struct work work = {.width = 4096, .height = 4096, .planes = 1, .sample = SAMPLE_F32};
    for (int side = 9; side <= 127; side += 2) {
        filter = (struct filter){.width = side, .height = side, .anchor_x = side / 2, .anchor_y = side / 2, .scale = 1};
        for (int k = 0; k < side * side; k++)
            filter.taps[k] = k + 1;
        filter.absolute_sum = (int64_t)side * side * (side * side + 1) / 2;
        assert_string_equal(variant_choose(&filter, BACKEND_CUDA, &work)->name,
                            side >= 17 && side <= 39 ? "tensor-core" : "register-tiled");
    }
}

static void test_variant_names(void **state)
{
    (void)state;
    size_t count;
    const struct variant *table = variants(&count);
    for (size_t i = 0; i < count; i++) {
        assert_ptr_equal(variant_find(table[i].name, NULL), &table[i]);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(table[i].name, table[j].name);
    }
    struct error error;
    assert_null(variant_find("seperable", &error));
    assert_non_null(strstr(error.message, "did you mean \"separable\"?"));
    assert_int_equal(error.code, ERROR_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sixteen_bits_by_hand),
        cmocka_unit_test(test_refuses_filters_that_a_variant_does_not_accept),
        cmocka_unit_test(test_refuses_the_other_number_of_grids),
        cmocka_unit_test(test_accepts_shifts_and_few_taps),
        cmocka_unit_test(test_every_filter_has_a_variant_everywhere),
        cmocka_unit_test(test_model_prefers_the_cpu_for_small_work),
        cmocka_unit_test(test_model_counts_what_a_gpu_codes),
        cmocka_unit_test(test_model_knows_which_planes_are_turned),
        cmocka_unit_test(test_one_row_is_the_reference),
        cmocka_unit_test(test_arrangements_of_tensor_core),
        cmocka_unit_test(test_arrangements_for_float),
        cmocka_unit_test(test_choice_for_float),
        cmocka_unit_test(test_variant_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
