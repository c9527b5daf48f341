/* SPDX-License-Identifier: MIT
 *
 * The list of files: which jobs it holds, in which order, and the collisions that it finds, in folders made for it. */
#include "batch/file_list.h"

#include "codec/format.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Help ---- */

static void make_file(const char *path, size_t size)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < size; i++)
        fputc('x', file);
    assert_int_equal(fclose(file), 0);
}

static void make_folder(const char *path)
{
    assert_int_equal(mkdir(path, 0777), 0);
}

/* Each test runs in an empty folder of its own. */
static int enter_folder(void **state)
{
    char path[] = "/tmp/gpuconv-list-XXXXXX";
    if (mkdtemp(path) == NULL || chdir(path) != 0)
        return -1;
    *state = strdup(path);
    return *state == NULL ? -1 : 0;
}

static int leave_folder(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", (const char *)*state);
    free(*state);
    return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

/* A request for the inputs in TEXT, which spaces separate and which is cut into them. */
struct wish {
    char text[256];
    char *inputs[16];
    struct list_request request;
};

static const struct list_request *wish_for(struct wish *wish, const char *inputs, const char *output)
{
    *wish = (struct wish){.request = {.output = output, .in_place = output == NULL}};
    snprintf(wish->text, sizeof wish->text, "%s", inputs);
    char *rest = wish->text;
    for (char *word; (word = strsep(&rest, " ")) != NULL && wish->request.input_count < 16;)
        wish->inputs[wish->request.input_count++] = word;
    wish->request.inputs = wish->inputs;
    return &wish->request;
}

/* The list holds EXPECTED: "INPUT>OUTPUT INPUT>OUTPUT", in this order. */
static void check_list(const struct list_request *request, const char *expected)
{
    struct error error = {.code = ERROR_NONE};
    struct file_list list;
    char text[1024] = "";
    if (!file_list_make(request, &list, &error))
        fail_msg("%s: %s", error.subject, error.message);
    for (size_t i = 0; i < list.count; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s>%s", i > 0 ? " " : "", list.jobs[i].input,
                 list.jobs[i].output != NULL ? list.jobs[i].output : "none");
    assert_string_equal(text, expected);
    file_list_free(&list);
}

/* The list is refused as a usage error, with PART in the message. */
static void check_refused(const struct list_request *request, const char *part)
{
    struct error error = {.code = ERROR_NONE};
    struct file_list list;
    assert_false(file_list_make(request, &list, &error));
    assert_int_equal(error.code, ERROR_USAGE);
    if (strstr(error.message, part) == NULL)
        fail_msg("\"%s\" is not in: %s", part, error.message);
    file_list_free(&list);
}

/* ---- Which jobs ---- */

static void test_jobs_are_sorted_by_output(void **state)
{
    (void)state;
    struct wish wish;
    make_folder("in");
    make_file("in/b.png", 1);
    make_file("in/a.JPG", 1);
    make_file("in/.hidden.png", 1);
    make_file("in/text.txt", 1);
    make_file("z.png", 1);
    make_file("Z.png", 1);
    check_list(wish_for(&wish, "z.png in Z.png", "out"), "Z.png>out/Z.png in/a.JPG>out/a.JPG in/b.png>out/b.png "
                                                         "z.png>out/z.png");
}

static void test_recursion_keeps_the_tree_and_follows_no_links(void **state)
{
    (void)state;
    struct wish wish;
    make_folder("in");
    make_folder("in/sub");
    make_file("in/sub/a.png", 1);
    make_file("in/a.png", 1);
    assert_int_equal(symlink("..", "in/sub/up"), 0);
    check_list(wish_for(&wish, "in", "out"), "in/a.png>out/a.png");
    wish.request.recursive = true;
    check_list(&wish.request, "in/a.png>out/a.png in/sub/a.png>out/sub/a.png");
}

static void test_recursion_leaves_the_output_folder_out(void **state)
{
    (void)state;
    struct wish wish;
    make_folder("in");
    make_folder("in/out");
    make_file("in/a.png", 1);
    make_file("in/out/a.png", 1);
    wish_for(&wish, "in", "in/out");
    wish.request.recursive = true;
    check_list(&wish.request, "in/a.png>in/out/a.png");
}

static void test_names_get_suffix_and_format(void **state)
{
    (void)state;
    struct wish wish;
    struct error error;
    make_file("a.png", 1);
    make_file("b.jpeg", 1);
    wish_for(&wish, "a.png b.jpeg", "out/");
    wish.request.suffix = "-blur";
    check_list(&wish.request, "a.png>out/a-blur.png b.jpeg>out/b-blur.jpeg");
    wish.request.format = format_find_by_path("x.jpg");
    check_list(&wish.request, "a.png>out/a-blur.jpg b.jpeg>out/b-blur.jpeg");
    wish.request.suffix = NULL;
    wish.request.format = NULL;
    make_file("plain", 1);
    struct file_list list;
    assert_true(file_list_make(wish_for(&wish, "plain a.png", "out"), &list, &error)); /* fails alone */
    assert_int_equal(list.count, 2);
    assert_null(list.jobs[0].problem);
    assert_non_null(strstr(list.jobs[1].problem, "no suffix of an output format"));
    file_list_free(&list);
}

static void test_an_unreadable_input_is_its_own_job(void **state)
{
    (void)state;
    struct wish wish;
    struct error error;
    struct file_list list;
    make_file("a.png", 5);
    assert_true(file_list_make(wish_for(&wish, "a.png none.png", "out"), &list, &error));
    assert_int_equal(list.count, 2);
    const struct job *missing = &list.jobs[list.jobs[0].problem == NULL];
    const struct job *present = &list.jobs[list.jobs[0].problem != NULL];
    assert_string_equal(missing->input, "none.png");
    assert_string_equal(missing->problem, "cannot be read: No such file or directory");
    assert_null(missing->output);
    assert_string_equal(present->input, "a.png");
    assert_int_equal(present->bytes, 5);
    file_list_free(&list);
}

static void test_in_place(void **state)
{
    (void)state;
    struct wish wish;
    make_file("a.png", 1);
    make_file("b.png", 1);
    check_list(wish_for(&wish, "b.png a.png", NULL), "a.png>a.png b.png>b.png");
    wish.request.format = format_find_by_path("x.png");
    check_list(&wish.request, "a.png>a.png b.png>b.png");
    assert_int_equal(link("a.png", "hard.png"), 0);
    check_refused(wish_for(&wish, "a.png hard.png", NULL), "are the same file, which would be filtered twice");
    assert_int_equal(symlink("a.png", "soft.png"), 0);
    check_refused(wish_for(&wish, "soft.png a.png", NULL), "are the same file, which would be filtered twice");
    check_refused(wish_for(&wish, "a.png ./a.png", NULL), "are the same file, which would be filtered twice");
}

/* ---- Collisions ---- */

static void test_two_inputs_of_one_output(void **state)
{
    (void)state;
    struct wish wish;
    make_folder("one");
    make_folder("two");
    make_file("one/a.png", 1);
    make_file("two/a.png", 1);
    make_file("two/a.jpg", 1);
    check_refused(wish_for(&wish, "one two", "out"), "one/a.png and two/a.png would both be written to out/a.png");
    check_list(wish_for(&wish, "two", "out"), "two/a.jpg>out/a.jpg two/a.png>out/a.png");
    wish.request.format = format_find_by_path("x.png");
    check_refused(&wish.request, "two/a.jpg and two/a.png would both be written to out/a.png");
}

static void test_outputs_that_are_one_through_links(void **state)
{
    (void)state;
    struct wish wish;
    make_folder("in");
    make_folder("in/x");
    make_folder("in/y");
    make_file("in/x/a.png", 1);
    make_file("in/y/a.png", 1);
    make_folder("out");
    make_folder("out/x");
    assert_int_equal(symlink("x", "out/y"), 0); /* one folder by two names */
    wish_for(&wish, "in", "out");
    wish.request.recursive = true;
    check_refused(&wish.request, "would both be written to");
    assert_int_equal(unlink("out/y"), 0);
    make_folder("out/y");
    check_list(&wish.request, "in/x/a.png>out/x/a.png in/y/a.png>out/y/a.png");
    make_file("out/y/a.png", 1);
    assert_int_equal(symlink("../y/a.png", "out/x/a.png"), 0); /* one file by two names */
    check_refused(&wish.request, "would both be written to");
}

static void test_outputs_over_inputs(void **state)
{
    (void)state;
    struct wish wish;
    make_folder("one");
    make_folder("two");
    make_file("one/a.png", 1);
    make_file("two/b.png", 1);
    check_refused(wish_for(&wish, "one/a.png", "one"), "one/a.png is the same file as one/a.png");
    check_refused(wish_for(&wish, "one", "one"), "is also the output folder");
    assert_int_equal(symlink("one", "again"), 0);
    check_refused(wish_for(&wish, "again", "one"), "is also the output folder");
    assert_int_equal(link("two/b.png", "one/c.png"), 0);
    make_file("two/c.png", 1);
    check_refused(wish_for(&wish, "two/c.png two/b.png", "one"),
                  "two/c.png would be written to one/c.png, which is the same file as the input two/b.png");
}

/* ---- Shards ---- */

/* The names of the files that shard INDEX of 3 does, and the whole list's fingerprint. */
static uint64_t keep_shard(const char *inputs, int index, char *names)
{
    struct wish wish;
    struct file_list list;
    struct error error;
    assert_true(file_list_make(wish_for(&wish, inputs, "out"), &list, &error));
    file_list_keep_shard(&list, &(struct shard){index, 3});
    names[0] = '\0';
    for (size_t i = 0; i < list.count; i++)
        strcat(strcat(names, list.jobs[i].name), " ");
    const uint64_t listing = list.listing;
    assert_true(list.listed >= list.count);
    file_list_free(&list);
    return listing;
}

/* A file that is still copied is larger in the eyes of another process, and a new file is in its list only. Neither
 * moves another file, and the fingerprint tells. */
static void test_shards_do_not_depend_on_other_files(void **state)
{
    (void)state;
    char before[3][256], after[3][256], moved[256];
    uint64_t listing = 0;
    assert_int_equal(mkdir("one", 0777), 0);
    for (char name[] = "one/a.png"; name[4] <= 'z'; name[4]++)
        make_file(name, 5);
    for (int i = 0; i < 3; i++)
        listing = keep_shard("one", i, before[i]);
    assert_int_equal(strlen(before[0]) + strlen(before[1]) + strlen(before[2]), 26 * strlen("a.png "));
    make_file("one/a.png", 900000);
    for (int i = 0; i < 3; i++) {
        assert_true(keep_shard("one", i, after[i]) != listing);
        assert_string_equal(after[i], before[i]);
    }
    make_file("one/a.png", 5);
    assert_true(keep_shard("one", 0, after[0]) == listing);
    assert_int_equal(rename("one", "two"), 0); /* elsewhere on another machine */
    assert_true(keep_shard("two/", 0, moved) == listing);
    assert_string_equal(moved, before[0]);
    assert_int_equal(unlink("two/z.png"), 0);
    for (int i = 0; i < 3; i++) {
        char *z = strstr(before[i], "z.png ");
        assert_true(keep_shard("two", i, after[i]) != listing);
        if (z != NULL)
            *z = '\0';
        assert_string_equal(after[i], before[i]);
    }
}

/* ---- One image ---- */

static void test_pair(void **state)
{
    (void)state;
    struct error error;
    struct file_list list;
    make_file("a.png", 7);
    assert_true(file_list_make_pair("a.png", "b.png", NULL, &list, &error));
    assert_int_equal(list.count, 1);
    assert_int_equal(list.jobs[0].bytes, 7);
    assert_string_equal(list.jobs[0].output, "b.png");
    const struct shard shards[] = {{0, 2}, {1, 2}};
    file_list_keep_shard(&list, &shards[0]);
    assert_int_equal(list.count, 1); /* a.png is the first shard's */
    file_list_keep_shard(&list, &shards[1]);
    assert_int_equal(list.count, 0);
    file_list_free(&list);

    assert_true(file_list_make_pair("none.png", "b.png", NULL, &list, &error)); /* reading says what is wrong */
    assert_null(list.jobs[0].problem);
    file_list_free(&list);
    assert_int_equal(link("a.png", "hard.png"), 0);
    assert_false(file_list_make_pair("a.png", "hard.png", NULL, &list, &error));
    assert_int_equal(error.code, ERROR_USAGE);
    file_list_free(&list);
    make_folder("folder");
    assert_false(file_list_make_pair("a.png", "folder", NULL, &list, &error));
    assert_string_equal(error.subject, "folder");
    file_list_free(&list);
    assert_false(file_list_make_pair("a.png", "nowhere/b.png", NULL, &list, &error));
    assert_non_null(strstr(error.message, "its folder must exist"));
    file_list_free(&list);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, enter_folder, leave_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_jobs_are_sorted_by_output),
        TEST(test_recursion_keeps_the_tree_and_follows_no_links),
        TEST(test_recursion_leaves_the_output_folder_out),
        TEST(test_names_get_suffix_and_format),
        TEST(test_an_unreadable_input_is_its_own_job),
        TEST(test_in_place),
        TEST(test_two_inputs_of_one_output),
        TEST(test_outputs_that_are_one_through_links),
        TEST(test_outputs_over_inputs),
        TEST(test_shards_do_not_depend_on_other_files),
        TEST(test_pair),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
