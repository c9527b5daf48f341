/* SPDX-License-Identifier: MIT
 *
 * Match the files of two folders. */
#include "compare/pairs.h"

#include "base/bytes.h"
#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool no_memory(struct error *error)
{
    return error_no_memory(error, "the list of pairs");
}

/* ---- Rows ---- */

/* Move the path of FILE to SIDE. */
static void take_file(struct row_file *side, struct job *file)
{
    side->relative = file->name;
    side->path = file->input;
    side->bytes = file->bytes;
    file->input = NULL;
}

/* Add the row of an expected and an actual file. One of them may be NULL. */
static bool add_pair(struct compare_rows *rows, struct job *expected, struct job *actual, struct error *error)
{
    struct compare_row *row = rows_add(rows);
    if (row == NULL)
        return no_memory(error);
    row->kind = actual == NULL ? ROW_MISSING : expected == NULL ? ROW_NEW : ROW_EQUAL;
    struct job *const listed[2] = {expected, actual};
    struct row_file *const files[2] = {&row->expected, &row->actual};
    for (int i = 0; i < 2; i++) {
        if (listed[i] == NULL)
            continue;
        if (listed[i]->problem != NULL) {
            struct error problem;
            error_about(&problem, listed[i]->problem_passes ? ERROR_READ : ERROR_WORK, listed[i]->input, "%s",
                        listed[i]->problem);
            row->kind = ROW_UNREADABLE;
            row_set_problem(row, &problem);
        }
        take_file(files[i], listed[i]);
    }
    row->name = expected != NULL ? row->expected.relative : row->actual.relative;
    return true;
}

static int compare_rows_by_name(const void *a, const void *b)
{
    const struct compare_row *p = a, *q = b;
    const int order = strcmp(p->name, q->name);
    return order != 0 ? order : (q->expected.path != NULL) - (p->expected.path != NULL);
}

static void sort_rows(struct compare_rows *rows)
{
    if (rows->count > 0)
        qsort(rows->rows, rows->count, sizeof *rows->rows, compare_rows_by_name);
}

/* ---- Matching ---- */

static int compare_stems(const char *a, const char *b)
{
    const size_t m = format_stem_length(a), n = format_stem_length(b);
    const int order = memcmp(a, b, m < n ? m : n);
    return order != 0 ? order : (m > n) - (m < n);
}

static int compare_files_by_stem(const void *a, const void *b)
{
    const struct job *p = *(struct job *const *)a, *q = *(struct job *const *)b;
    const int order = compare_stems(p->name, q->name);
    return order != 0 ? order : strcmp(p->name, q->name);
}

/* Files without a partner yet, sorted by name or by stem. */
struct left {
    struct job **files;
    size_t count;
};

static bool find_left(const struct file_list *list, bool by_stem, struct left *left)
{
    left->count = 0;
    left->files = calloc(list->count + 1, sizeof(struct job *));
    for (size_t i = 0; left->files != NULL && i < list->count; i++)
        if (list->jobs[i].input != NULL) /* else a row has taken the path */
            left->files[left->count++] = &list->jobs[i];
    if (by_stem && left->count > 0)
        qsort(left->files, left->count, sizeof *left->files, compare_files_by_stem);
    return left->files != NULL;
}

/* Add a row for each pair of files of two sorted lists that COMPARE calls equal. Unless ONLY_PAIRS, add also a row for
 * each file without a partner. */
static bool join_lists(struct left expected, struct left actual, int (*compare)(const char *, const char *),
                       bool only_pairs, struct compare_rows *rows, struct error *error)
{
    bool done = true;
    for (size_t i = 0, j = 0; done && (i < expected.count || j < actual.count);) {
        const int order = i == expected.count ? 1
                          : j == actual.count ? -1
                                              : compare(expected.files[i]->name, actual.files[j]->name);
        struct job *one = order <= 0 ? expected.files[i++] : NULL, *other = order >= 0 ? actual.files[j++] : NULL;
        if (order == 0 || !only_pairs)
            done = add_pair(rows, one, other, error);
    }
    return done;
}

/* Is the relative path NAME below FOLDER? If the relative path of FOLDER is its whole path, FOLDER is the folder of
 * that side that the user named, and all names are below it. */
static bool is_below(const char *name, const struct row_file *folder)
{
    if (folder->path == NULL || folder->relative == folder->path)
        return folder->path != NULL;
    const size_t length = strlen(folder->relative);
    return strncmp(name, folder->relative, length) == 0 && name[length] == '/';
}

/* If a file's partner may be in a folder that could not be read, the file is neither missing nor new: --update must not
 * delete or replace it. So its row has the folder's problem. */
static void keep_unreadable(struct compare_rows *rows)
{
    for (size_t i = 0; i < rows->count; i++) {
        const struct compare_row *folder = &rows->rows[i];
        const char *path = folder->actual.path != NULL ? folder->actual.path : folder->expected.path;
        struct stat status;
        if (folder->kind != ROW_UNREADABLE || folder->problem == NULL || stat(path, &status) != 0 ||
            !S_ISDIR(status.st_mode))
            continue; /* many links may lead nowhere, but few folders are unreadable */
        for (size_t j = 0; j < rows->count; j++) {
            struct compare_row *row = &rows->rows[j];
            if ((row->kind == ROW_NEW && is_below(row->name, &folder->expected)) ||
                (row->kind == ROW_MISSING && is_below(row->name, &folder->actual))) {
                row->kind = ROW_UNREADABLE;
                row->problem = strdup(folder->problem);
                row->may_retry = folder->may_retry;
            }
        }
    }
}

static bool match(const struct file_list *expected, const struct file_list *actual, struct compare_rows *rows,
                  struct error *error)
{
    bool done = true;
    for (int by_stem = 0; done && by_stem < 2; by_stem++) {
        struct left a = {0}, b = {0};
        done = (find_left(expected, by_stem, &a) && find_left(actual, by_stem, &b)) || no_memory(error);
        done = done && join_lists(a, b, by_stem ? compare_stems : strcmp, !by_stem, rows, error);
        free(a.files);
        free(b.files);
    }
    keep_unreadable(rows);
    sort_rows(rows);
    return done;
}

/* ---- Masks ---- */

/* The first of the masks, sorted by stem, that has the name of a pair, or else its stem. Their COUNT if there is
 * none. */
static size_t find_mask(const struct left *masks, const char *name)
{
    size_t low = 0, high = masks->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare_stems(masks->files[middle]->name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i < masks->count && compare_stems(masks->files[i]->name, name) == 0; i++)
        if (strcmp(masks->files[i]->name, name) == 0)
            return i;
    return low < masks->count && compare_stems(masks->files[low]->name, name) == 0 ? low : masks->count;
}

/* Give each row the mask of its name. A mask that cannot be listed is an error: its pair would be compared without
 * it. */
static bool give_masks(const struct pairs_request *request, struct compare_rows *rows, struct error *error)
{
    struct file_list tree = {0};
    struct left masks = {0};
    bool done = file_list_make_tree(request->masks, "", request->warn, request->context, &tree, error);
    for (size_t i = 0; done && i < tree.count; i++)
        done = tree.jobs[i].problem == NULL || error_about(error, tree.jobs[i].problem_passes ? ERROR_READ : ERROR_WORK,
                                                           tree.jobs[i].input, "%s", tree.jobs[i].problem);
    done = done && (find_left(&tree, true, &masks) || no_memory(error));
    bool *used = done ? calloc(masks.count + 1, sizeof *used) : NULL;
    done = done && (used != NULL || no_memory(error));
    for (size_t i = 0; done && i < rows->count; i++) {
        const size_t found = find_mask(&masks, rows->rows[i].name);
        used[found] = true;
        if (found == masks.count)
            continue;
        struct row_file *mask = &rows->rows[i].mask;
        *mask = (struct row_file){.path = strdup(masks.files[found]->input), .bytes = masks.files[found]->bytes};
        done = mask->path != NULL || no_memory(error);
    }
    for (size_t i = 0; done && request->warn != NULL && i < masks.count; i++)
        if (!used[i])
            request->warn(request->context, masks.files[i]->input, ": has no pair; give the mask the name of a pair");
    free(used);
    free(masks.files);
    file_list_free(&tree);
    return done;
}

/* ---- Parts of the list ---- */

/* Keep the rows for which IS_WANTED returns true. */
static void keep_rows(struct compare_rows *rows, bool (*is_wanted)(const struct compare_row *row, void *context),
                      void *context)
{
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++) {
        if (is_wanted(&rows->rows[i], context)) {
            rows->rows[count++] = rows->rows[i];
            continue;
        }
        row_free(&rows->rows[i]);
    }
    rows->count = count;
}

/* A name of --files-from. */
struct name {
    char *text; /* NULL once a row owns it */
    bool found;
};

struct names {
    struct name *names;
    size_t count;
};

/* file_list_read_names' function: add NAME, without "./" at its beginning and slashes at its end. */
static bool add_name(void *context, const char *name, struct error *error)
{
    struct names *names = context;
    while (name[0] == '.' && name[1] == '/')
        name += 2 + strspn(name + 2, "/");
    size_t length = strlen(name);
    while (length > 0 && name[length - 1] == '/')
        length--;
    if (length == 0)
        return true;
    struct name *larger = array_grow(names->names, names->count, sizeof *larger);
    if (larger == NULL)
        return no_memory(error);
    names->names = larger;
    larger[names->count] = (struct name){.text = strndup(name, length)};
    return larger[names->count++].text != NULL || no_memory(error);
}

static int compare_listed_names(const void *a, const void *b)
{
    return strcmp(((const struct name *)a)->text, ((const struct name *)b)->text);
}

/* Is RELATIVE, or a folder that it is in, among the sorted names? */
static bool is_named(struct names *names, const char *relative)
{
    char path[4097];
    bool found = false;
    if (relative == NULL || strlen(relative) >= sizeof path)
        return false;
    strcpy(path, relative);
    for (char *slash = path; slash != NULL; slash = strrchr(path, '/')) {
        if (slash != path)
            *slash = '\0';
        const struct name key = {.text = path};
        struct name *name =
            names->count == 0 ? NULL : bsearch(&key, names->names, names->count, sizeof key, compare_listed_names);
        if (name != NULL)
            found = name->found = true;
        if (path[0] == '/')
            break;
    }
    return found;
}

/* keep_rows' function: is one of the row's files named? Both are looked up, so that the names count as found. */
static bool is_row_named(const struct compare_row *row, void *names)
{
    const bool expected = is_named(names, row->expected.relative);
    return is_named(names, row->actual.relative) || expected;
}

/* Add a row for each name that is in neither folder. A name may occur several times. */
static bool add_unknown(struct names *names, struct compare_rows *rows, struct error *error)
{
    const char *before = "";
    for (size_t i = 0; i < names->count; i++) {
        struct name *name = &names->names[i];
        const bool is_known = name->found || strcmp(name->text, before) == 0;
        before = name->text;
        if (is_known)
            continue;
        struct error problem;
        struct compare_row *row = rows_add(rows);
        if (row == NULL)
            return no_memory(error);
        error_about(&problem, ERROR_WORK, name->text, "is in neither folder; give a file in one of the folders");
        *row = (struct compare_row){.kind = ROW_UNREADABLE, .expected = {.path = name->text}};
        row->name = row->expected.relative = row->expected.path;
        row_set_problem(row, &problem);
        name->text = NULL;
    }
    return true;
}

/* Keep the rows that the list names. A name that is in neither folder is a row that cannot be read. */
static bool keep_named(const struct pairs_request *request, struct compare_rows *rows, struct error *error)
{
    struct names names = {0};
    bool done = file_list_read_names(request->files_from, request->null_separated, add_name, &names, error);
    if (done && names.count > 0)
        qsort(names.names, names.count, sizeof *names.names, compare_listed_names);
    if (done)
        keep_rows(rows, is_row_named, &names);
    done = done && add_unknown(&names, rows, error);
    for (size_t i = 0; i < names.count; i++)
        free(names.names[i].text);
    free(names.names);
    sort_rows(rows);
    return done;
}

/* keep_rows' function: every process that sees the pair finds the same shard for it, whatever other files it sees. */
static bool is_in_shard(const struct compare_row *row, void *context)
{
    const struct shard *shard = context;
    return shard_of(row->name, shard->count) == shard->index;
}

/* ---- The whole ---- */

/* Is there nothing to do in any shard? Without one actual file an update would only remove: then a program that failed,
 * or a folder that is not mounted, would empty the expected folder. */
static bool has_no_work(const struct pairs_request *request, const struct compare_rows *rows, size_t actual_count)
{
    size_t count = 0;
    for (size_t i = 0; i < rows->count; i++)
        count += request->updates || rows->rows[i].kind == ROW_EQUAL || rows->rows[i].kind == ROW_UNREADABLE;
    return count == 0 || (request->updates && actual_count == 0);
}

bool pairs_make(const struct pairs_request *request, struct compare_rows *rows, struct error *error)
{
    struct file_list expected = {0}, actual = {0};
    const bool none = request->updates && access(request->expected, F_OK) != 0;
    const bool done =
        (none ||
         file_list_make_tree(request->expected, request->actual, request->warn, request->context, &expected, error)) &&
        file_list_make_tree(request->actual, request->expected, request->warn, request->context, &actual, error) &&
        match(&expected, &actual, rows, error) && (request->masks == NULL || give_masks(request, rows, error)) &&
        (request->files_from == NULL || keep_named(request, rows, error));
    struct shard shard = request->shard;
    rows->no_work = has_no_work(request, rows, actual.count);
    if (done && shard.count > 1)
        keep_rows(rows, is_in_shard, &shard);
    file_list_free(&expected);
    file_list_free(&actual);
    return done;
}

bool path_is_absent(const char *path)
{
    struct stat status;
    return !file_is_standard(path) && lstat(path, &status) != 0 && (errno == ENOENT || errno == ENOTDIR);
}

bool pairs_make_one(const char *expected, const char *actual, bool updates, struct compare_rows *rows,
                    struct error *error)
{
    struct stat status;
    if (path_is_absent(expected) && path_is_absent(actual))
        return error_set(error, ERROR_WORK, "neither %s nor %s exists; check both paths", expected, actual);
    struct compare_row *row = rows_add(rows);
    if (row == NULL)
        return no_memory(error);
    const char *const names[2] = {expected, actual};
    struct row_file *const files[2] = {&row->expected, &row->actual};
    for (int i = 0; i < 2; i++) {
        if (path_is_absent(names[i])) {
            row->kind = i == 0 ? ROW_NEW : ROW_MISSING;
            rows->no_work = i == 1 || !updates;
            continue;
        }
        files[i]->relative = files[i]->path = strdup(names[i]);
        if (files[i]->path == NULL)
            return no_memory(error);
        if (file_find_input(names[i], &status))
            files[i]->bytes = (uint64_t)status.st_size;
    }
    row->name = row->kind == ROW_NEW ? row->actual.relative : row->expected.relative;
    return true;
}
