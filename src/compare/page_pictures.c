/* SPDX-License-Identifier: MIT
 *
 * The pictures that a page of HTML brings: in itself, or in a folder beside it. So the page can be uploaded alone, or
 * with that folder. */
#include "compare/compare_internal.h"
#include "compare/report.h"

#include "base/file.h"
#include "base/memory.h"
#include "codec/codec.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *page_side_name(enum page_side side)
{
    static const char *const names[PAGE_SIDES] = {"expected", "actual", "difference"};
    return names[side];
}

const struct thumbnail *page_thumbnail(const struct compare_row *row, enum page_side side)
{
    if (row->thumbnails == NULL)
        return NULL;
    const struct thumbnail *const all[PAGE_SIDES] = {&row->thumbnails->expected, &row->thumbnails->actual,
                                                     &row->thumbnails->difference};
    return all[side]->format != NULL ? all[side] : NULL;
}

const char *page_picture_path(const struct compare_row *row, enum page_side side)
{
    return side == PAGE_EXPECTED ? row->expected.path : side == PAGE_ACTUAL ? row->actual.path : row->picture;
}

/* The bytes of the file that shows a side, or 0 if there is none. An unreadable row is shown as far as a thumbnail
 * could be made. */
static size_t picture_size(const struct compare_row *row, enum page_side side)
{
    struct stat status;
    const char *path = page_picture_path(row, side);
    if (path == NULL || file_is_standard(path) || !file_find_input(path, &status) ||
        (row->kind >= ROW_UNREADABLE && page_thumbnail(row, side) == NULL))
        return 0;
    return (size_t)status.st_size;
}

/* ---- The folder ---- */

/* The folder of the page at PATH: report_files for report.html. NULL if there is not enough memory. */
static char *folder_of(const char *path)
{
    char *folder;
    const char *name = file_name(path), *point = strrchr(name, '.');
    const int length = point != NULL && point > name ? (int)(point - path) : (int)strlen(path);
    return asprintf(&folder, "%.*s_files", length, path) < 0 ? NULL : folder;
}

/* Is it the name of a picture that an earlier page brought? */
static bool is_ours(const char *name)
{
    char side[16], suffix[8], more;
    size_t number;
    return sscanf(name, "pair-%zu-%15[a-z].%7[a-z]%c", &number, side, suffix, &more) == 3;
}

/* Remove what an earlier page brought, and the folder if it is empty then. */
static bool remove_old(const char *folder, struct error *error)
{
    DIR *stream = opendir(folder);
    bool done = true;
    for (const struct dirent *entry; done && stream != NULL && (entry = readdir(stream)) != NULL;) {
        char *path = NULL;
        if (!is_ours(entry->d_name))
            continue;
        if (asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
            path = NULL;
        done = path != NULL ? file_remove(path, error) : error_no_memory(error, "a path");
        free(path);
    }
    if (stream != NULL)
        closedir(stream);
    rmdir(folder);
    return done;
}

bool page_pictures_open(struct page_pictures *pictures, const char *path, const struct report_request *request,
                        struct error *error)
{
    const struct compare_rows *rows = request->rows;
    size_t all = 0;
    *pictures = (struct page_pictures){.left = PAGE_EMBEDDED_MAX};
    for (size_t i = 0; i < rows->count; i++)
        for (enum page_side side = 0; rows->rows[i].kind != ROW_EQUAL && side < PAGE_SIDES; side++)
            all += picture_size(&rows->rows[i], side);
    char *folder = folder_of(path);
    if (folder == NULL)
        return error_no_memory(error, "a path");
    bool done = file_is_standard(path) || remove_old(folder, error);
    const bool compared = file_is_inside(folder, request->expected) || file_is_inside(folder, request->actual);
    if (done && all > PAGE_EMBEDDED_MAX && !file_is_standard(path) && !compared)
        done = file_make_folders(pictures->folder = folder, error);
    else
        free(folder);
    pictures->leaves_some = all > PAGE_EMBEDDED_MAX && pictures->folder == NULL;
    return done;
}

/* ---- A picture ---- */

/* Make an image that browsers cannot show a PNG. */
static bool convert_to_png(struct page_picture *picture, const char *path, struct error *error)
{
    const struct codec_settings settings = {.compression = CODEC_COMPRESSION};
    struct image image = {0};
    uint8_t *bytes = NULL;
    picture->format = format_of(FORMAT_PNG);
    const bool done = codec_decode(picture->bytes, picture->size, path, &settings, &image, NULL, error) &&
                      codec_encode(&image, picture->format, &settings, &bytes, &picture->size, error);
    image_free(&image);
    free(picture->bytes);
    picture->bytes = bytes;
    return done;
}

/* Copy the picture to the folder, and make its link. */
static bool copy_to_folder(struct page_pictures *pictures, enum page_side side, struct page_picture *picture,
                           struct error *error)
{
    char *path = NULL;
    bool done = asprintf(&path, "%s/pair-%zu-%s.%s", pictures->folder, pictures->number, page_side_name(side),
                         picture->format->suffixes[0]) >= 0;
    done = done ? file_write(path, picture->bytes, picture->size, NULL, error) : error_no_memory(error, "a path");
    picture->link = done ? strdup(path + (file_name(pictures->folder) - pictures->folder)) : NULL;
    free(path);
    return picture->link != NULL;
}

/* Read the picture at PATH, in a format that browsers show. */
static bool read_picture(struct page_picture *picture, const char *path, struct error *error)
{
    if (!file_read(path, budget_file_max(), &picture->bytes, &picture->size, NULL, error))
        return false;
    picture->format = format_find_by_magic(picture->bytes, picture->size, path, error);
    if (picture->format == NULL)
        return false;
    return picture->format->is_for_browsers || convert_to_png(picture, path, error);
}

bool page_picture_take(struct page_pictures *pictures, const struct compare_row *row, enum page_side side,
                       struct page_picture *picture, struct error *error)
{
    const size_t size = picture_size(row, side);
    struct error problem;
    *picture = (struct page_picture){0};
    if (pictures->row != row)
        pictures->number++;
    pictures->row = row;
    if (size == 0 || (pictures->folder == NULL && size > pictures->left))
        return true;
    const bool is_read = read_picture(picture, page_picture_path(row, side), &problem);
    if (is_read)
        pictures->left -= size < pictures->left ? size : pictures->left;
    else if (problem.code == ERROR_MEMORY)
        *error = problem;
    const bool done = is_read ? pictures->folder == NULL || copy_to_folder(pictures, side, picture, error)
                              : problem.code != ERROR_MEMORY; /* else it has gone or changed: its thumbnail stays */
    if (!is_read || !done) {
        free(picture->bytes);
        picture->bytes = NULL;
    }
    return done;
}
