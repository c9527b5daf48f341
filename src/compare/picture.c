/* SPDX-License-Identifier: MIT */
#include "compare/picture.h"

#include "base/file.h"
#include "base/memory.h"
#include "codec/format.h"
#include "container/png.h"
#include "metadata/metadata.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A comment of either format. */
static const char mark[] = "Comment\0difference, by gpuconv --compare";

const struct format *picture_format(const struct compare_settings *settings)
{
    const struct format *format = settings->picture_format;
    if (format == NULL && settings->picture != NULL)
        format = format_find_by_path(settings->picture);
    return format != NULL ? format : format_of(FORMAT_PNG);
}

char *picture_path(const struct compare_settings *settings, const struct compare_row *row)
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

bool picture_mark(const struct format *format, uint8_t **bytes, size_t *size, struct error *error)
{
    struct metadata metadata = {0};
    uint32_t dropped;
    const bool done = png_chunk_append(&metadata.texts, "tEXt", mark, sizeof mark - 1)
                          ? format->write_metadata(&metadata, bytes, size, &dropped, error)
                          : error_no_memory(error, "a comment");
    metadata_free(&metadata);
    return done;
}

/* Is the file, of at most MOST bytes, a picture of a difference? What cannot be read is none. */
static bool is_marked(const char *path, size_t most)
{
    struct error unread;
    struct stat facts;
    struct codec_info info;
    struct metadata metadata = {0};
    uint8_t *bytes;
    size_t size;
    if (lstat(path, &facts) != 0 || !S_ISREG(facts.st_mode) || !file_read(path, most, &bytes, &size, NULL, &unread))
        return false;
    const bool marked = codec_inspect(bytes, size, path, NULL, &info, &unread) &&
                        info.format->read_metadata(bytes, size, METADATA_TEXT_MOST, &metadata, &unread) &&
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
    const size_t most = budget_file_most();
    for (size_t i = 0; done && i < rows->count; i++) {
        char *path = picture_path(settings, &rows->rows[i]);
        if (path == NULL)
            return error_no_memory(error, "a path");
        done = !is_marked(path, most) || file_remove(path, error);
        free(path);
    }
    return done;
}
