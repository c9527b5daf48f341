/* SPDX-License-Identifier: MIT
 *
 * Pictures of differences as files: their names, and the mark that a later run looks for. */
#include "compare/compare_internal.h"

#include "base/file.h"
#include "base/memory.h"
#include "codec/format.h"
#include "container/png.h"
#include "metadata/metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A comment of a PNG or JPEG. */
static const char mark[] = "Comment\0difference, by gpuconv --compare";

static const struct format *picture_format(const struct compare_settings *settings)
{
    const struct format *format = settings->picture_format;
    if (format == NULL && settings->picture != NULL)
        format = format_find_by_path(settings->picture);
    return format != NULL ? format : format_of(FORMAT_PNG);
}

/* The path of a row's picture: the row's name below the folder, and the suffix of the pictures' format, unless the name
 * has it. Release it with free. Returns NULL if there is not enough memory, or SETTINGS ask for no picture. */
static char *picture_path(const struct compare_settings *settings, const struct compare_row *row)
{
    const struct format *format = picture_format(settings);
    char *path;
    if (settings->picture != NULL)
        return strdup(settings->picture);
    const bool same = format_find_by_path(row->name) == format;
    return settings->pictures == NULL || asprintf(&path, "%s/%s%s%s", settings->pictures, row->name, same ? "" : ".",
                                                  same ? "" : format->suffixes[0]) < 0
               ? NULL
               : path;
}

/* Put the mark into the encoded picture of *SIZE bytes at *BYTES. A larger allocation replaces *BYTES. */
static bool add_mark(const struct format *format, uint8_t **bytes, size_t *size, struct error *error)
{
    struct metadata metadata = {0};
    uint64_t dropped;
    const bool done = png_chunk_append(&metadata.texts, "tEXt", mark, sizeof mark - 1)
                          ? format->write_metadata(&metadata, bytes, size, &dropped, error)
                          : error_no_memory(error, "a comment");
    metadata_free(&metadata);
    return done;
}

/* No picture may replace another file in the folder. The pictures of an earlier run are removed by now. */
static bool check_free(const struct compare_settings *settings, const char *path, struct error *error)
{
    struct stat status;
    if (settings->picture != NULL || lstat(path, &status) != 0)
        return true;
    return error_about(error, ERROR_WORK, path,
                       "already exists, and is not from an earlier comparison; move it, or give another folder");
}

bool picture_save(const struct pair_worker *worker, const struct codec_settings *codec, const struct image *picture,
                  struct compare_row *row, struct error *error)
{
    const struct compare_settings *settings = worker->settings;
    const struct format *format = picture_format(settings);
    char *path = picture_path(settings, row);
    uint8_t *bytes = NULL;
    size_t size;
    bool done = path != NULL || error_no_memory(error, "a path");
    done = done && codec_encode(picture, format, codec, &bytes, &size, error) && add_mark(format, &bytes, &size, error);
    if (done && workers_begin_output(worker->workers)) {
        char *folder = settings->picture == NULL ? file_folder(path) : NULL;
        done = (folder == NULL || file_make_folders(folder, error)) && check_free(settings, path, error) &&
               file_write(path, bytes, size, NULL, error);
        free(folder);
        workers_end_output(worker->workers);
    }
    free(bytes);
    if (done)
        row->picture = path;
    else
        free(path);
    if (!done && error->no_new_files && settings->no_new_files != NULL)
        atomic_store(settings->no_new_files, true);
    return done;
}

/* Is the file a picture of a difference? A file that is unreadable or larger than MAX bytes is none. */
static bool is_marked(const char *path, size_t max)
{
    struct stat status;
    struct codec_info info;
    struct metadata metadata = {.max = METADATA_LONG_TEXT_MAX};
    uint8_t *bytes;
    size_t size;
    if (lstat(path, &status) != 0 || !S_ISREG(status.st_mode) || !file_read(path, max, &bytes, &size, NULL, NULL))
        return false;
    const bool marked = codec_inspect(bytes, size, path, NULL, &info, NULL) &&
                        info.format->read_metadata(bytes, size, &metadata, NULL) &&
                        bytes_contain(metadata.texts.bytes, metadata.texts.size, mark + strlen(mark) + 1);
    metadata_free(&metadata);
    free(bytes);
    return marked;
}

bool pictures_remove_old(const struct compare_settings *settings, const struct compare_rows *rows, struct error *error)
{
    bool done = true;
    if (settings->pictures == NULL && settings->picture == NULL)
        return true;
    const size_t max = budget_file_max();
    for (size_t i = 0; done && i < rows->count; i++) {
        char *path = picture_path(settings, &rows->rows[i]);
        if (path == NULL)
            return error_no_memory(error, "a path");
        done = !is_marked(path, max) || file_remove(path, error);
        free(path);
    }
    return done;
}
