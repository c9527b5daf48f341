/* SPDX-License-Identifier: MIT
 *
 * Accept: what is expected becomes what is actual. */
#include "compare/rows.h"

#include "base/file.h"
#include "codec/format.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Tell of a step. Returns true. */
static bool report_step(const struct update_request *request, enum update_step step, const struct compare_row *row,
                        const char *why)
{
    request->on_step(request->context, step, row, why);
    return true;
}

/* Copy the actual file of a row to where it belongs. A file of another format takes the place of the expected one only
 * if that may be deleted: else both would stay. */
static bool accept_row(const struct compare_row *row, const struct update_request *request, struct error *error)
{
    const struct row_file *expected = &row->expected, *actual = &row->actual;
    const bool added = expected->path == NULL;
    const bool moved = !added && format_find_by_path(expected->relative) != format_find_by_path(actual->relative);
    char *path = NULL;
    if (moved && request->expected == NULL)
        return error_about(error, ERROR_USAGE, expected->path,
                           "and %s have names of different formats; copy the file by hand", actual->path);
    if (moved && !request->removes)
        return report_step(request, UPDATE_KEPT, row,
                           "the actual file has another format; give --delete to replace it");
    if (!added && !moved)
        path = strdup(expected->path);
    else if (asprintf(&path, "%s/%s", request->expected, actual->relative) < 0)
        path = NULL;
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

bool rows_update(const struct compare_rows *rows, const struct update_request *request, struct error *error)
{
    size_t problems = 0;
    for (size_t i = 0; i < rows->count; i++)
        problems += rows->rows[i].kind == ROW_UNREADABLE || rows->rows[i].problem != NULL;
    if (problems > 0)
        return error_set(error, ERROR_WORK,
                         "nothing was updated, because %zu pair%s could not be compared; repair or remove the file%s",
                         problems, problems == 1 ? "" : "s", problems == 1 ? "" : "s");
    bool done = true;
    for (size_t i = 0; done && i < rows->count; i++) {
        const struct compare_row *row = &rows->rows[i];
        if (!request->may_go_on(request->context))
            break;
        if (row->kind == ROW_MISSING)
            done = remove_row(row, request, error);
        else if (row->kind == ROW_DIFFERENT || row->kind == ROW_SHAPE || row->kind == ROW_NEW)
            done = accept_row(row, request, error);
    }
    return done;
}
