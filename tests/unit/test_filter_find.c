/* SPDX-License-Identifier: MIT
 *
 * src/filter/find.c and describe.c: the shipped filters, the search path, chains, lists of names, descriptions. */
#include "filters.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- The shipped filters ---- */

static void test_shipped_filters_have_their_sizes_and_sums(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int width, height;
        int64_t sum; /* over the scale */
        bool separable, symmetric;
    } cases[] = {
        {"blur", 5, 5, 1, true, true},
        {"box3", 3, 3, 1, true, true},
        {"box5", 5, 5, 1, true, true},
        {"box9", 9, 9, 1, true, true},
        {"edge", 3, 3, 0, false, true},
        {"emboss", 3, 3, 1, false, false},
        {"gaussian3", 3, 3, 1, true, true},
        {"gaussian5", 5, 5, 1, true, true},
        {"gaussian7", 7, 7, 1, true, true},
        {"gaussian9", 9, 9, 1, true, true},
        {.name = "grey"},
        {"identity", 1, 1, 1, true, true},
        {.name = "invert"},
        {"laplacian", 3, 3, 0, false, true},
        {.name = "median"},
        {"prewitt", 3, 3, 0, false, false},
        {"scharr", 3, 3, 0, false, false},
        {.name = "sepia"},
        {"sharpen", 3, 3, 1, false, true},
        {"shift", 3, 1, 1, true, false},
        {"shift-down", 1, 3, 1, true, false},
        {"shift-left", 3, 1, 1, true, false},
        {"shift-right", 3, 1, 1, true, false},
        {"shift-up", 1, 3, 1, true, false},
        {"sobel", 3, 3, 0, false, false},
        {"sobel-x", 3, 3, 0, true, false},
        {"sobel-y", 3, 3, 0, true, false},
        {"unsharp", 5, 5, 1, false, true},
    };
    struct filter filter;
    for (size_t i = 0; i < COUNT(cases); i++) {
        shipped(cases[i].name, &filter);
        assert_true(strlen(filter.title) > 0);
        assert_true(builtin_filters[i].text[0] == '#');
        assert_true(strlen(builtin_filters[i].text) == builtin_filters[i].size);
        assert_string_equal(builtin_filters[i].name, cases[i].name); /* sorted, and no other filters */
        if (cases[i].width == 0) {                                   /* a matrix, curves or a footprint */
            assert_int_equal(filter.kind, strcmp(cases[i].name, "median") == 0 ? STEP_RANK : STEP_POINT);
            continue;
        }
        assert_int_equal(filter.width, cases[i].width);
        assert_int_equal(filter.height, cases[i].height);
        assert_int_equal(filter.anchor_x, cases[i].width / 2);
        assert_int_equal(filter.anchor_y, cases[i].height / 2);
        assert_int_equal(filter.tap_sum, cases[i].sum * filter.scale);
        assert_int_equal(filter.separable, cases[i].separable);
        assert_int_equal(is_symmetric(&filter, true), cases[i].symmetric);
        assert_int_equal(filter.absolute, strncmp(cases[i].name, "sobel-", 6) == 0);
        assert_true(filter.exact);
        assert_true(filter.offset == 0.0);
        assert_true(filter.absolute_sum * 255 < 1 << 24); /* exact in float too */
    }
    assert_int_equal(builtin_filter_count, COUNT(cases));
}

static void test_shipped_filters_have_their_taps(void **state)
{
    (void)state;
    struct filter filter;
    shipped("sobel", &filter);
    assert_int_equal(filter.combine, COMBINE_MAGNITUDE);
    check_vector(filter.taps, (const int32_t[]){-1, 0, 1, -2, 0, 2, -1, 0, 1, -1, -2, -1, 0, 0, 0, 1, 2, 1}, 18);
    shipped("prewitt", &filter);
    check_vector(filter.taps, (const int32_t[]){-1, 0, 1, -1, 0, 1, -1, 0, 1, -1, -1, -1, 0, 0, 0, 1, 1, 1}, 18);
    shipped("scharr", &filter);
    assert_int_equal(filter.scale, 16);
    check_vector(filter.taps, (const int32_t[]){-3, 0, 3, -10, 0, 10, -3, 0, 3, -3, -10, -3, 0, 0, 0, 3, 10, 3}, 18);

    shipped("blur", &filter);
    check_vector(filter.row, (const int32_t[]){1, 4, 6, 4, 1}, 5);
    check_vector(filter.column, (const int32_t[]){1, 4, 6, 4, 1}, 5);
    shipped("gaussian3", &filter);
    check_vector(filter.row, (const int32_t[]){1, 2, 1}, 3);
    shipped("gaussian9", &filter);
    check_vector(filter.row, (const int32_t[]){4, 13, 30, 51, 60, 51, 30, 13, 4}, 9);
    shipped("edge", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){-1, -1, -1, -1, 8, -1, -1, -1, -1}, 1);
    shipped("laplacian", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){0, 1, 0, 1, -4, 1, 0, 1, 0}, 1);
    shipped("sharpen", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){0, -1, 0, -1, 5, -1, 0, -1, 0}, 1);
    shipped("sobel-x", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){-1, 0, 1, -2, 0, 2, -1, 0, 1}, 1);
    shipped("sobel-y", &filter);
    check_taps(&filter, 3, 3, (const int32_t[]){-1, -2, -1, 0, 0, 0, 1, 2, 1}, 1);

    /* out(x) = in(x - 1) moves the picture to the right: the tap is left of the anchor. */
    shipped("shift", &filter);
    check_taps(&filter, 3, 1, (const int32_t[]){1, 0, 0}, 1);
    shipped("shift-right", &filter);
    check_taps(&filter, 3, 1, (const int32_t[]){1, 0, 0}, 1);
    shipped("shift-left", &filter);
    check_taps(&filter, 3, 1, (const int32_t[]){0, 0, 1}, 1);
    shipped("shift-down", &filter);
    check_taps(&filter, 1, 3, (const int32_t[]){1, 0, 0}, 1);
    shipped("shift-up", &filter);
    check_taps(&filter, 1, 3, (const int32_t[]){0, 0, 1}, 1);

    /* Twice the picture minus its blur. */
    struct filter blur;
    shipped("unsharp", &filter);
    shipped("blur", &blur);
    assert_int_equal(filter.scale, blur.scale);
    for (int i = 0; i < 25; i++)
        assert_int_equal(filter.taps[i], (i == 12 ? 512 : 0) - blur.taps[i]);
}

/* ---- Finding ---- */

/* A temporary folder, which is the working folder while a test runs. */
struct working_folder {
    char path[64];
};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int enter(void **state)
{
    struct working_folder *folder = malloc(sizeof *folder);
    if (folder == NULL)
        return -1;
    strcpy(folder->path, "/tmp/gpuconv-test-XXXXXX");
    if (!mkdtemp(folder->path) || chdir(folder->path) != 0)
        return -1;
    *state = folder;
    return 0;
}

static int leave(void **state)
{
    struct working_folder *folder = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder->path);
    const bool done = chdir("/") == 0 && system(command) == 0;
    unsetenv("GPUCONV_FILTERS");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    free(folder);
    return done ? 0 : -1;
}

static void test_the_users_filters_come_before_the_built_in(void **state)
{
    const struct working_folder *folder = *state;
    struct filter filter;
    find("blur", &filter);
    assert_int_equal(filter.width, 5);

    /* The user's folder overrides built-in filters. The folders of the variable override that, in their order. */
    assert_int_equal(mkdir("config", 0700), 0);
    assert_int_equal(mkdir("config/gpuconv", 0700), 0);
    assert_int_equal(mkdir("config/gpuconv/filters", 0700), 0);
    assert_int_equal(mkdir("one", 0700), 0);
    assert_int_equal(mkdir("two", 0700), 0);
    write_file("config/gpuconv/filters/blur.txt", "1 1");
    write_file("config/gpuconv/filters/own.txt", "2 2 2");
    char path[128], list[256];
    snprintf(path, sizeof path, "%s/config", folder->path);
    setenv("XDG_CONFIG_HOME", path, 1);
    find("blur", &filter);
    assert_int_equal(filter.width, 2);
    find("own", &filter);
    assert_int_equal(filter.width, 3);

    write_file("two/blur.txt", "1 2 3 4");
    snprintf(list, sizeof list, ":%s/missing::%s/one:%s/two:", folder->path, folder->path, folder->path);
    setenv("GPUCONV_FILTERS", list, 1);
    find("blur", &filter);
    assert_int_equal(filter.width, 4);
    write_file("one/blur.txt", "1 2 3 4 5 6");
    find("blur", &filter);
    assert_int_equal(filter.width, 6);
    find("own", &filter);
    assert_int_equal(filter.width, 3);

    /* A broken file is an error, with the name of the file. */
    char message[256];
    write_file("one/blur.txt", "1 x");
    snprintf(message, sizeof message, "%s/one/blur.txt:1:3: expected a tap such as 3, -0.5 or 1/16, found \"x\"",
             folder->path);
    refuse_find("blur", ERROR_USAGE, message);

    /* A relative XDG_CONFIG_HOME is ignored; the folder is then in HOME. */
    unsetenv("GPUCONV_FILTERS");
    setenv("XDG_CONFIG_HOME", "config", 1);
    find("blur", &filter);
    assert_int_equal(filter.width, 5);
    unsetenv("XDG_CONFIG_HOME");
    snprintf(path, sizeof path, "%s/home", folder->path);
    assert_int_equal(rename("config", "home"), 0);
    assert_int_equal(mkdir("home/.config", 0700), 0);
    assert_int_equal(rename("home/gpuconv", "home/.config/gpuconv"), 0);
    char *home = getenv("HOME") != NULL ? strdup(getenv("HOME")) : NULL;
    setenv("HOME", path, 1);
    find("blur", &filter);
    assert_int_equal(filter.width, 2);
    unsetenv("HOME");
    find("blur", &filter);
    assert_int_equal(filter.width, 5);
    if (home)
        setenv("HOME", home, 1);
    free(home);
}

static void test_a_path_is_read_unless_a_filter_has_its_name(void **state)
{
    (void)state;
    struct filter filter;
    write_file("blur", "7");
    write_file("mine", "7 8");
    write_file("a,b", "7 8 9");
    write_file("big", "1");
    assert_int_equal(truncate("big", FILTER_MAX_TEXT + 1), 0);
    write_file("void", "");
    assert_int_equal(mkdir("folder", 0700), 0);

    find("./blur", &filter);
    assert_int_equal(filter.width, 1);
    find("blur", &filter); /* a name wins over a file */
    assert_int_equal(filter.width, 5);
    find("mine", &filter);
    assert_int_equal(filter.width, 2);
    find("a,b", &filter);
    assert_int_equal(filter.width, 3);

    refuse_find("./no/file", ERROR_USAGE, "./no/file: cannot be read: No such file or directory");
    refuse_find("./folder", ERROR_USAGE,
                "./folder: is a folder; FILTER is a name that gpuconv --list shows, or a file");
    refuse_find("/dev/zero", ERROR_USAGE, "/dev/zero: is not a regular file; give the path of a filter file");
    refuse_find("./big", ERROR_USAGE, "./big: is larger than the limit of 1048576 bytes; give a smaller file");
    refuse_find("void", ERROR_USAGE, "void: the file has no taps; expected at least one row of taps");
    refuse_find("folder", ERROR_USAGE, "folder: is a folder; FILTER is a name that gpuconv --list shows, or a file");

    /* A pipe. */
    int ends[2];
    const int input = dup(STDIN_FILENO);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "4 5 6 7 8", 9), 9);
    close(ends[1]);
    dup2(ends[0], STDIN_FILENO);
    close(ends[0]);
    find("/dev/stdin", &filter);
    assert_int_equal(filter.width, 5);
    dup2(input, STDIN_FILENO);
    close(input);

    /* A long path is complete in messages, and cut in the name. */
    char path[300];
    snprintf(path, sizeof path, "%s%s", "./", "");
    while (strlen(path) < 200)
        strcat(path, "./");
    strcat(path, "mine");
    struct error error = {.code = ERROR_NONE};
    assert_true(filter_find(path, &filter, NULL, &error));
    assert_int_equal(strlen(filter.name), sizeof filter.name - 1);
    assert_memory_equal(filter.name, path, sizeof filter.name - 1);
}

static void test_an_unknown_name_is_refused_with_the_nearest(void **state)
{
    (void)state;
    refuse_find("blurr", ERROR_USAGE,
                "there is no filter named \"blurr\"; did you mean \"blur\"? (gpuconv --list shows all)");
    refuse_find("unsharpp", ERROR_USAGE,
                "there is no filter named \"unsharpp\"; did you mean \"unsharp\"? (gpuconv --list shows all)");
    refuse_find("unsharpp:2:1", ERROR_USAGE,
                "there is no filter named \"unsharpp:2:1\"; did you mean \"unsharp:2:1\"? (gpuconv --list shows all)");
    refuse_find("sobelt", ERROR_USAGE,
                "there is no filter named \"sobelt\"; did you mean \"sobel\"? (gpuconv --list shows all)");
    refuse_find("gausian", ERROR_USAGE,
                "there is no filter named \"gausian\"; did you mean gaussian? gaussian:SIGMA takes one number above 0 "
                "and up to 170, for "
                "example gaussian:2.5");
    refuse_find("gausian3", ERROR_USAGE,
                "there is no filter named \"gausian3\"; did you mean \"gaussian:3\"? (gpuconv --list shows all)");
    refuse_find("bx:3", ERROR_USAGE,
                "there is no filter named \"bx:3\"; did you mean \"box:3\"? (gpuconv --list shows all)");
    refuse_find("blur:3", ERROR_USAGE,
                "there is no filter named \"blur:3\"; did you mean \"blur\"? (gpuconv --list shows all)");
    refuse_find("quux", ERROR_USAGE, "there is no filter named \"quux\"; gpuconv --list shows all");
    refuse_find("", ERROR_USAGE, "a filter's name is empty; gpuconv --list shows all filters");
}

/* The rectangle of REGION in a picture of 40 x 31 pixels; IS_CUT if it reaches beyond it. */
static void check_region(const char *region, struct rectangle expected, bool is_cut)
{
    static struct filter filter, filter16;
    struct error error = {.code = ERROR_NONE};
    struct rectangle part;
    char spec[64];
    snprintf(spec, sizeof spec, "gaussian:2@%s", region);
    if (!filter_find(spec, &filter, &filter16, &error))
        fail_msg("%s: %s", spec, error.message);
    assert_string_equal(filter.name, spec);
    for (const struct filter *one = &filter; one != NULL; one = one->filter16) {
        assert_int_equal(filter_region(one, 40, 31, &part), !is_cut);
        assert_memory_equal(&part, &expected, sizeof part);
        assert_string_equal(one->name, spec);
    }
    assert_non_null(filter.filter16);
}

static void test_a_region_is_in_pixels_or_percent(void **state)
{
    (void)state;
    check_region("10x8+30+5", (struct rectangle){30, 5, 10, 8}, false);
    check_region("40x31+0+0", (struct rectangle){0, 0, 40, 31}, false);
    check_region("41x31+0+0", (struct rectangle){0, 0, 40, 31}, true);
    check_region("10x8-3-2", (struct rectangle){0, 0, 7, 6}, true);
    check_region("100000x1-99999+30", (struct rectangle){0, 30, 1, 1}, true);
    check_region("1x1+39+30", (struct rectangle){39, 30, 1, 1}, false);
    check_region("50%x50%+25%+25%", (struct rectangle){10, 8, 20, 16}, false); /* 15.5 and 7.75 */
    check_region("1.25%x100%+0%+0%", (struct rectangle){0, 0, 1, 31}, false);  /* half a pixel */
    check_region("1000%x1000%-500%-500%", (struct rectangle){0, 0, 40, 31}, true);
    check_region("50%x9+0-1.6%", (struct rectangle){0, 0, 20, 9}, false); /* -0.496 */
    check_region("50%x9+0-4.9%", (struct rectangle){0, 0, 20, 7}, true);  /* -1.519 */
    check_region("50%x9-1.25%-3", (struct rectangle){0, 0, 20, 6}, true); /* -0.5 */
    check_region("40/2x1e1+0+0", (struct rectangle){0, 0, 20, 10}, false);
}

static void test_what_is_no_region_is_refused(void **state)
{
    static const char *const wrong[] = {"",          "9x9",         "9x9+1",       "x9+1+1",       "9x+1+1",
                                        "9x9+1+1+1", "9x9+-1+1",    "-9x9+1+1",    "+9x9+1+1",     "9.5x9+1+1",
                                        "9x9+1+.5",  "9X9+1+1",     "9x9+1+1 ",    " 9x9+1+1",     "9x9+1e9+1",
                                        "9x9+1+1%%", "1001%x9+0+0", "9x9%9+1+1",   "100001x1+0+0", "9x9++1",
                                        "1/0x9+1+1", "9x9+1%+",     "9x9+0-100001"};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char spec[64], sentence[256];
        snprintf(spec, sizeof spec, "blur@%s", wrong[i]);
        snprintf(
            sentence, sizeof sentence,
            "\"%s\" is neither a region nor the file of a mask; give sides and an offset in pixels or percent, for "
            "example gaussian:12@100x80+20+30 or blur@50%%x50%%+25%%+25%%",
            wrong[i]);
        refuse_find(spec, ERROR_USAGE, sentence);
    }
    refuse_find(
        "turn:90@9x9+1+1", ERROR_USAGE,
        "turn:90 changes the size of the picture or moves it, so it cannot have a region; leave out \"@9x9+1+1\"");
}

static void test_a_name_may_have_the_sign_of_a_region(void **state)
{
    struct filter filter;
    struct error error = {.code = ERROR_NONE};
    (void)state;
    write_file("my@2x.txt", "3 4 5");
    assert_true(filter_find("./my@2x.txt", &filter, NULL, &error));
    assert_false(filter.region.is_set);
    assert_true(filter_find("./my@2x.txt@3x3+1+1", &filter, NULL, &error));
    assert_true(filter.region.is_set && filter.width == 3);
}

static void test_a_chain_of_filters_is_found_in_order(void **state)
{
    (void)state;
    struct filter *filters = NULL;
    size_t count = 0;
    struct error error = {.code = ERROR_NONE};
    write_file("blur,edge", "3 4 5");
    write_file("mine", "7 8");

    assert_true(filter_find_all("blur,gaussian:2,./mine", filter_find, &filters, &count, &error));
    assert_int_equal(count, 3);
    assert_string_equal(filters[0].name, "blur");
    assert_string_equal(filters[1].name, "gaussian:2");
    assert_string_equal(filters[2].name, "./mine");
    assert_int_equal(filters[2].width, 2);
    free(filters);

    assert_true(filter_find_all("blur,edge", filter_find, &filters, &count, &error)); /* a file of this name exists */
    assert_int_equal(count, 1);
    assert_int_equal(filters[0].width, 3);
    assert_int_equal(filters[0].height, 1);
    free(filters);

    static const char *const cases[][2] = {
        {"blur,,edge", "filter 2 of \"blur,,edge\" is empty; expected names with one comma between them"},
        {",blur", "filter 1 of \",blur\" is empty; expected names with one comma between them"},
        {"blur,", "filter 2 of \"blur,\" is empty; expected names with one comma between them"},
        {"", "a filter's name is empty; gpuconv --list shows all filters"},
        {"blur,edgy", "there is no filter named \"edgy\"; did you mean \"edge\"? (gpuconv --list shows all)"},
        {"blur,gaussian:2,5",
         "there is no filter named \"5\", and commas join filters; write a decimal comma as a point: "
         "gaussian:2.5"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_false(filter_find_all(cases[i][0], filter_find, &filters, &count, &error));
        assert_null(filters);
        assert_string_equal(error.message, cases[i][1]);
        assert_int_equal(error.code, ERROR_USAGE);
    }
}

static bool has(char **names, size_t count, const char *name)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += strcmp(names[i], name) == 0;
    assert_true(found <= 1);
    return found == 1;
}

static void test_names_are_listed_once_and_sorted(void **state)
{
    (void)state;
    char **names = NULL;
    size_t count = 0, before = 0;
    struct error error = {.code = ERROR_NONE};
    assert_true(filter_names(&names, &before, &error));
    assert_true(before >= builtin_filter_count);
    for (size_t i = 0; i < builtin_filter_count; i++)
        assert_true(has(names, before, builtin_filters[i].name));
    assert_false(has(names, before, "mine"));
    free(names);

    write_file("mine.txt", "1");
    write_file("blur.txt", "1");
    write_file("notes.md", "1");
    write_file(".hidden.txt", "1");
    write_file(".txt", "1");
    assert_int_equal(mkdir("folder.txt", 0700), 0);
    setenv("GPUCONV_FILTERS", ".:.", 1);
    assert_true(filter_names(&names, &count, &error));
    assert_int_equal(count, before + 1);
    assert_true(has(names, count, "mine"));
    assert_true(has(names, count, "blur"));
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(names[i - 1], names[i]) < 0);
    free(names);
}

/* ---- Describing ---- */

static char *describe(const struct filter *filter)
{
    char *text;
    size_t size;
    FILE *stream = open_memstream(&text, &size);
    assert_non_null(stream);
    filter_describe(stream, filter);
    fclose(stream);
    return text;
}

static void check_description(const struct filter *filter, const char *expected)
{
    char *text = describe(filter);
    assert_string_equal(text, expected);
    free(text);
}

static void test_a_description_says_what_was_read(void **state)
{
    (void)state;
    struct filter filter;
    shipped("gaussian3", &filter);
    check_description(&filter, "test.txt: 3x3 Gaussian blur\n"
                               "  size       3 x 3, anchor 1 1\n"
                               "  scale      16\n"
                               "  sum        16: a constant image stays as it is\n"
                               "  offset     0\n"
                               "  taps       exact\n"
                               "  separable  yes: column 1 2 1, row 1 2 1\n"
                               "\n"
                               "  1 2 1\n"
                               "  2 4 2\n"
                               "  1 2 1\n");

    parse("abs\noffset 2.5\nscale 2\nanchor 0 0\n10 -1 7", &filter);
    check_description(&filter, "test.txt\n"
                               "  size       3 x 1, anchor 0 0\n"
                               "  scale      2\n"
                               "  sum        16: a constant image is multiplied by 8, then the offset is added\n"
                               "  offset     2.5\n"
                               "  abs        the sum's absolute value is taken\n"
                               "  taps       exact\n"
                               "  separable  yes: column 1, row 10 -1 7\n"
                               "\n"
                               "  10 -1  7\n");

    parse("0.123456789 0.876543211\n1 -2", &filter);
    check_description(&filter, "test.txt\n"
                               "  size       2 x 2, anchor 1 1\n"
                               "  scale      2097152\n"
                               "  sum        0: a constant image becomes 0\n"
                               "  offset     0\n"
                               "  taps       rounded once to 1/2^21, largest error 8.5e-05 of 255 levels\n"
                               "  separable  no\n"
                               "\n"
                               "    258908  1838244\n"
                               "   2097152 -4194304\n");

    parse("combine magnitude\nscale 2\n1 2\n---\n-1 5\n", &filter);
    check_description(&filter, "test.txt\n"
                               "  size       2 x 1, two grids, anchor 1 0\n"
                               "  combine    magnitude: sqrt(s1^2 + s2^2) of the grids' sums\n"
                               "  scale      2\n"
                               "  sum        3 and 4: a constant image is multiplied by 2.5\n"
                               "  offset     0\n"
                               "  taps       exact\n"
                               "\n"
                               "   1  2\n"
                               "  ---\n"
                               "  -1  5\n");
}

static void test_a_description_of_two_passes_has_two_vectors(void **state)
{
    (void)state;
    struct filter filter;
    find("unsharp:0.3:0.5:3", &filter);
    check_description(&filter, "unsharp:0.3:0.5:3: unsharp mask\n"
                               "  size       3 x 3, anchor 1 1\n"
                               "  passes     the row, its sums rounded to 1/2^8 of a level, then the column\n"
                               "  mask       in + 0.5 (in - blur), where |in - blur| is at least 3 levels\n"
                               "  sum        32768 and 32768: a constant image stays as it is\n"
                               "  taps       rounded once to 1/2^15 and 1/2^15, largest error 0.0065 of 255 levels\n"
                               "  row        126 32516 126\n"
                               "  column     126 32516 126\n"
                               "\n"
                               "  For samples of more than 8 bits:\n"
                               "  size       3 x 3, anchor 1 1\n"
                               "  passes     the row, its sums rounded to 1/2^6 of a level, then the column\n"
                               "  mask       in + 0.5 (in - blur), where |in - blur| is at least 771 levels\n"
                               "  sum        4194304 and 4194304: a constant image stays as it is\n"
                               "  taps       rounded once to 1/2^22 and 1/2^22, largest error 0.019 of 65535 levels\n"
                               "  row        16090 4162124 16090\n"
                               "  column     16090 4162124 16090\n");
    find("box:64", &filter);
    char *text = describe(&filter);
    assert_non_null(strstr(text,
                           "  passes     the row, then the column\n  sum        129 and 129: a constant image stays "
                           "as it is\n  taps       exact\n  row        1 1 1 1"));
    assert_null(strstr(text, "more than 8 bits"));
    free(text);
}

int main(void)
{
    /* The tests must not see the user's own filters. */
    unsetenv("GPUCONV_FILTERS");
    setenv("XDG_CONFIG_HOME", "/nonexistent", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shipped_filters_have_their_sizes_and_sums),
        cmocka_unit_test(test_shipped_filters_have_their_taps),
        cmocka_unit_test_setup_teardown(test_the_users_filters_come_before_the_built_in, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_path_is_read_unless_a_filter_has_its_name, enter, leave),
        cmocka_unit_test(test_an_unknown_name_is_refused_with_the_nearest),
        cmocka_unit_test_setup_teardown(test_a_region_is_in_pixels_or_percent, enter, leave),
        cmocka_unit_test_setup_teardown(test_what_is_no_region_is_refused, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_name_may_have_the_sign_of_a_region, enter, leave),
        cmocka_unit_test_setup_teardown(test_a_chain_of_filters_is_found_in_order, enter, leave),
        cmocka_unit_test_setup_teardown(test_names_are_listed_once_and_sorted, enter, leave),
        cmocka_unit_test(test_a_description_says_what_was_read),
        cmocka_unit_test(test_a_description_of_two_passes_has_two_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
