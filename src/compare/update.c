/* SPDX-License-Identifier: MIT
 *
 * Accept the actual files: copy them over the expected ones. */
#include "compare/rows.h"

#include "base/file.h"
#include "codec/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copy the file FROM to TO, as file_write does, and make the folder of TO. */
static bool copy_file(const char *from, const char *to, size_t max, struct error *error)
{
    uint8_t *bytes;
    size_t size;
    if (!file_read(from, max, &bytes, &size, NULL, error))
        return false;
    char *folder = file_folder(to);
    const bool done = folder != NULL ? file_make_folders(folder, error) && file_write(to, bytes, size, NULL, error)
                                     : error_no_memory(error, "a path");
    free(folder);
    free(bytes);
    return done;
}

/* Report a step. Returns true. */
static bool report_step(const struct update_request *request, enum update_step step, const struct compare_row *row,
                        const char *why)
{
    request->on_step(request->context, step, row, why);
    return true;
}

/* Have the two files of a row names of different formats? */
static bool is_moved(const struct compare_row *row)
{
    return row->expected.path != NULL && row->actual.path != NULL &&
           format_find_by_path(row->expected.relative) != format_find_by_path(row->actual.relative);
}

static bool is_accepted(const struct compare_row *row, const struct update_request *request)
{
    return row->kind == ROW_DIFFERENT || row->kind == ROW_SHAPE || row->kind == ROW_NEW ||
           (request->renews && row->kind == ROW_TOLERATED);
}

/* Does the actual file of an accepted row replace the expected one? Otherwise it gets a new path. */
static bool is_replaced(const struct compare_row *row)
{
    return row->expected.path != NULL && !is_moved(row);
}

/* The path to which the actual file of a row is copied. NULL if there is not enough memory. */
static char *target_path(const struct compare_row *row, const struct update_request *request)
{
    char *path;
    if (is_replaced(row))
        return strdup(row->expected.path);
    if (!request->folders)
        return strdup(request->expected);
    return asprintf(&path, "%s/%s", request->expected, row->actual.relative) < 0 ? NULL : path;
}

/* Copy the actual file of a row to its target path. A file of another format replaces the expected one only if that may
 * be deleted: else both would stay. */
static bool accept_row(const struct compare_row *row, const struct update_request *request, struct error *error)
{
    const struct row_file *expected = &row->expected, *actual = &row->actual;
    const bool added = expected->path == NULL, moved = is_moved(row);
    if (!request->folders && format_find_by_path(request->expected) != format_find_by_path(actual->path))
        return error_set(error, ERROR_USAGE, "%s and %s have names of different formats; copy the file by hand",
                         request->expected, actual->path);
    if (moved && !request->removes)
        return report_step(request, UPDATE_KEPT, row,
                           "the actual file has another format; give --delete to replace it");
    char *path = target_path(row, request);
    bool done =
        path != NULL ? copy_file(actual->path, path, request->file_max, error) : error_no_memory(error, "a path");
    done = done && (!moved || file_remove(expected->path, error));
    free(path);
    return done && report_step(request, added ? UPDATE_ADDED : UPDATE_REPLACED, row, NULL);
}

static bool remove_row(const struct compare_row *row, const struct update_request *request, struct error *error)
{
    if (!request->removes)
        return report_step(request, UPDATE_KEPT, row, "give --delete to remove it");
    return file_remove(row->expected.path, error) && report_step(request, UPDATE_REMOVED, row, NULL);
}

/* ---- Links ---- */

/* A file of a row. Hard links are harmless: a copy replaces one name, and the other names keep the old file. */
struct row_link {
    dev_t device;
    ino_t inode;
    bool replaced; /* the update replaces the file */
    bool linked;   /* PATH is a symbolic link */
    const char *path;
};

/* Order links by the file that they lead to. The replaced links of a file come first. */
static int compare_links(const void *a, const void *b)
{
    const struct row_link *p = a, *q = b;
    const int order = file_order(p->device, p->inode, q->device, q->inode);
    if (order != 0)
        return order;
    return p->replaced != q->replaced ? q->replaced - p->replaced : strcmp(p->path, q->path);
}

/* Add PATH, unless it is NULL or has gone. */
static void add_link(struct row_link *links, size_t *count, const char *path, bool replaced)
{
    struct stat status, itself;
    if (path != NULL && stat(path, &status) == 0 && lstat(path, &itself) == 0)
        links[(*count)++] = (struct row_link){status.st_dev, status.st_ino, replaced, S_ISLNK(itself.st_mode), path};
}

/* Check that no replaced file is also the file of another name in either folder, through a symbolic link. */
static bool check_replaced(const struct compare_rows *rows, const struct update_request *request, struct error *error)
{
    size_t count = 0;
    bool done = true;
    struct row_link *links = calloc(2 * rows->count + 1, sizeof *links);
    if (links == NULL)
        return error_no_memory(error, "the list of files");
    for (size_t i = 0; i < rows->count; i++) {
        const struct compare_row *row = &rows->rows[i];
        add_link(links, &count, row->expected.path, is_accepted(row, request) && is_replaced(row));
        add_link(links, &count, row->actual.path, false);
    }
    qsort(links, count, sizeof *links, compare_links);
    for (size_t i = 1, first = 0; done && i < count; i++) {
        if (links[i].device != links[first].device || links[i].inode != links[first].inode)
            first = i;
        else if (links[first].replaced && (links[first].linked || links[i].linked))
            done = error_set(
                error, ERROR_USAGE,
                "nothing was updated, because %s and %s are the same file through a link; replace the link with a copy",
                links[first].path, links[i].path);
    }
    free(links);
    return done;
}

/* The copy of a row's actual file must not go into the actual folder. If it has no partner, it must go to a new file in
 * the expected folder: a file in a linked folder was not compared, and a file system may take two names for one. */
static bool check_target(const struct compare_row *row, const struct update_request *request, struct error *error)
{
    char *path = target_path(row, request);
    bool done = path != NULL || error_no_memory(error, "a path");
    if (done && is_replaced(row) && file_is_inside(path, request->actual))
        done = error_set(error, ERROR_USAGE,
                         "nothing was updated, because %s is a link into %s; replace the link with a copy", path,
                         request->actual);
    else if (done && !is_replaced(row) && (access(path, F_OK) == 0 || !file_is_inside(path, request->expected)))
        done = error_set(error, ERROR_USAGE,
                         "nothing was updated, because %s is in a linked folder or exists under another name; replace "
                         "the link with a folder, or rename %s",
                         path, row->actual.path);
    free(path);
    return done;
}

/* Check all rows before the first step. */
static bool check_rows(const struct compare_rows *rows, const struct update_request *request, struct error *error)
{
    size_t problems = 0;
    for (size_t i = 0; i < rows->count; i++)
        problems += rows->rows[i].kind >= ROW_UNREADABLE || rows->rows[i].problem != NULL;
    if (problems > 0)
        return error_set(error, ERROR_WORK,
                         "nothing was updated, because %zu pair%s could not be compared; repair or remove the file%s",
                         problems, problems == 1 ? "" : "s", problems == 1 ? "" : "s");
    if (!request->folders || access(request->expected, F_OK) != 0)
        return true; /* a lone file, or no folder yet, contains no links */
    bool done = check_replaced(rows, request, error);
    for (size_t i = 0; done && i < rows->count; i++)
        done = !is_accepted(&rows->rows[i], request) || check_target(&rows->rows[i], request, error);
    return done;
}

bool rows_update(const struct compare_rows *rows, const struct update_request *request, struct error *error)
{
    bool done = check_rows(rows, request, error);
    for (size_t i = 0; done && i < rows->count; i++) {
        const struct compare_row *row = &rows->rows[i];
        if (!request->may_go_on(request->context))
            break;
        if (row->kind == ROW_MISSING)
            done = remove_row(row, request, error);
        else if (is_accepted(row, request))
            done = accept_row(row, request, error);
    }
    return done;
}
