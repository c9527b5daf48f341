/* SPDX-License-Identifier: MIT
 *
 * Finding filters by name: the search path, the built-in filters, and the list of all names. */
#include "base/file.h"
#include "base/text.h"
#include "filter/filter_internal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Filters without taps ---- */

void filter_begin(enum step_kind kind, const char *spec, const char *title, struct filter *filter)
{
    memset(filter, 0, sizeof *filter);
    filter->kind = kind;
    filter->width = filter->height = 1;
    filter_set_name(filter, spec);
    snprintf(filter->title, sizeof filter->title, "%s", title);
}

bool fail_spec(const char *spec, const char *sentence, struct error *error)
{
    return error_set(error, ERROR_USAGE, "there is no filter \"%s\": %s", spec, sentence);
}

/* ---- Names ---- */

static bool is_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && !S_ISDIR(status.st_mode);
}

void source_file_set(struct source_file *file, const char *path, const struct stat *status)
{
    file->device = status->st_dev;
    file->inode = status->st_ino;
    file->bytes = status->st_size;
    file->seconds = status->st_mtim.tv_sec;
    file->nanoseconds = status->st_mtim.tv_nsec;
    if (file->path != path)
        snprintf(file->path, sizeof file->path, "%s", S_ISREG(status->st_mode) ? path : "");
}

/* Read the filter file PATH. SPEC becomes the filter's name. Accept only regular files and pipes, because a terminal
 * would never end. */
static bool read_filter_file(const char *path, const char *spec, struct filter *filter, struct error *error)
{
    struct stat status = {0};
    const bool there = stat(path, &status) == 0;
    if (there && S_ISDIR(status.st_mode))
        return error_about(error, ERROR_USAGE, path,
                           "is a folder; FILTER is a name that gpuconv --list shows, or a file");
    if (there && !S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
        return error_about(error, ERROR_USAGE, path, "is not a regular file; give the path of a filter file");
    char *text;
    size_t size;
    const char *file = file_is_standard(path) ? "./-" : path; /* here "-" is a file's name, not standard input */
    bool done = file_read_text(file, FILTER_MAX_TEXT, ERROR_USAGE, &text, &size, error);
    if (done) {
        done = filter_parse(text, size, path, filter, error);
        filter_set_name(filter, spec);
        source_file_set(&filter->file, path, &status);
    }
    free(text);
    return done;
}

/* Write the folder number INDEX of the search path to FOLDER, of SIZE bytes. Returns false if there are fewer. */
static bool search_folder(size_t index, char *folder, size_t size)
{
    const char *list = getenv("GPUCONV_FILTERS");
    for (size_t length; list != NULL && *list != '\0'; list += length + (list[length] == ':')) {
        length = strcspn(list, ":");
        if (length > 0 && index-- == 0)
            return snprintf(folder, size, "%.*s", (int)length, list) >= 0;
    }

    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    if (config != NULL && *config == '/') { /* the XDG standard says: ignore relative paths */
        if (index-- == 0)
            return snprintf(folder, size, "%s/gpuconv/filters", config) >= 0;
    } else if (home != NULL && *home != '\0') {
        if (index-- == 0)
            return snprintf(folder, size, "%s/.config/gpuconv/filters", home) >= 0;
    }
#ifdef GPUCONV_FILTER_DIR
    if (index == 0)
        return snprintf(folder, size, "%s", GPUCONV_FILTER_DIR) >= 0;
#endif
    return false;
}

/* Find the filter NAME. *IS_THERE says whether there is one. If there is, the result says whether it could be read. */
static bool find_named(const char *name, bool *is_there, struct filter *filter, struct error *error)
{
    char folder[PATH_MAX], path[PATH_MAX];
    *is_there = true;
    for (size_t i = 0; search_folder(i, folder, sizeof folder); i++) {
        const int length = snprintf(path, sizeof path, "%s/%s.txt", folder, name);
        if (length > 0 && (size_t)length < sizeof path && is_file(path))
            return read_filter_file(path, name, filter, error);
    }
    for (size_t i = 0; i < builtin_filter_count; i++) {
        if (strcmp(builtin_filters[i].name, name) == 0)
            return filter_parse(builtin_filters[i].text, builtin_filters[i].size, name, filter, error);
    }
    *is_there = false;
    return false;
}

bool filter_find_known(const char *spec, bool *is_known, struct filter *filter, struct filter *filter16,
                       struct error *error)
{
    *is_known = true;
    if (*spec == '\0')
        return error_set(error, ERROR_USAGE, "a filter's name is empty; gpuconv --list shows all filters");
    const size_t word = strcspn(spec, ":");
    const struct filter_form *form = form_find(spec, word);
    if (form != NULL && spec[word] == ':')
        return form->make(form, spec, filter, filter16, error);
    if (strchr(spec, '/'))
        return read_filter_file(spec, spec, filter, error);

    const bool done = find_named(spec, is_known, filter, error);
    if (*is_known)
        return done;
    *is_known = true;
    if (is_file(spec))
        return read_filter_file(spec, spec, filter, error);
    if (form != NULL)
        return form->make(form, spec, filter, filter16, error); /* this fails and says which parameters are missing */
    if (access(spec, F_OK) == 0)
        return read_filter_file(spec, spec, filter, error); /* this fails: it is a folder */
    *is_known = false;
    return false;
}

static bool is_current(const struct source_file *file)
{
    struct stat status;
    return file->path[0] == '\0' ||
           (stat(file->path, &status) == 0 && file->device == status.st_dev && file->inode == status.st_ino &&
            file->bytes == status.st_size && file->seconds == status.st_mtim.tv_sec &&
            file->nanoseconds == status.st_mtim.tv_nsec);
}

bool filter_is_current(const struct filter *filter)
{
    return is_current(&filter->file) && is_current(&filter->region.mask_file);
}

bool filter_is_named(const char *spec)
{
    const size_t length = strcspn(spec, ":,@");
    char **names = NULL;
    size_t count = 0;
    bool named = form_find(spec, length) != NULL;
    if (named || !filter_names(&names, &count, NULL))
        return named;
    for (size_t i = 0; i < count; i++)
        named |= strlen(names[i]) == length && memcmp(names[i], spec, length) == 0;
    free(names);
    return named;
}

bool filter_find_all(const char *argument, filter_finder *find, struct filter **filters, size_t *count,
                     struct error *error)
{
    const bool one_file = is_file(argument);
    char *copy = one_file ? strdup(argument) : expand_covers(argument, error);
    *filters = NULL;
    if (copy == NULL)
        return one_file ? error_no_memory(error, "a filter") : false;
    *count = 1;
    for (const char *at = copy; *at != '\0'; at++)
        *count += *at == ',' && !one_file;
    *filters = malloc(2 * *count * sizeof **filters); /* large; FIND fills each that is used */
    bool done = *filters != NULL || error_no_memory(error, "%zu filters", *count);
    const char *before = "";
    char *spec = copy, *next;
    for (size_t i = 0; done && i < *count; i++, before = spec, spec = next) {
        next = spec + (one_file ? strlen(spec) : strcspn(spec, ","));
        if (*next == ',')
            *next++ = '\0';
        if (*spec == '\0' && *count > 1)
            done =
                error_set(error, ERROR_USAGE,
                          "filter %zu of \"%s\" is empty; expected names with one comma between them", i + 1, argument);
        else
            done = find(spec, &(*filters)[i], &(*filters)[*count + i], error);
        if (!done && error != NULL && error->code == ERROR_USAGE && strchr(before, ':') != NULL && *spec != '\0' &&
            spec[strspn(spec, "0123456789")] == '\0')
            error_set(error, ERROR_USAGE,
                      "there is no filter named \"%s\", and commas join filters; write a decimal comma as a point: "
                      "%s.%s",
                      spec, before, spec);
    }
    free(copy);
    if (!done) {
        free(*filters); /* no mask was read */
        *filters = NULL;
    }
    return done;
}

static int compare_names(const void *a, const void *b)
{
    const char *const *left = a, *const *right = b;
    return strcmp(*left, *right);
}

/* Write the names of the filters in FOLDER to STREAM, each with its NUL, and add their number to *COUNT. A folder of
 * the search path need not exist: only a lack of memory or descriptors is a failure. */
static bool list_filters_in(const char *folder, FILE *stream, size_t *count)
{
    DIR *directory = opendir(folder);
    if (directory == NULL)
        return errno != ENOMEM && errno != EMFILE && errno != ENFILE;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        const char *name = entry->d_name, *suffix = ".txt";
        const size_t length = strlen(name), rest = strlen(suffix);
        char path[PATH_MAX];
        if (length <= rest || name[0] == '.' || strcmp(name + length - rest, suffix) != 0)
            continue;
        const int path_length = snprintf(path, sizeof path, "%s/%s", folder, name);
        if (path_length < 0 || (size_t)path_length >= sizeof path || !is_file(path))
            continue;
        fprintf(stream, "%.*s%c", (int)(length - rest), name, '\0');
        ++*count;
    }
    closedir(directory);
    return true;
}

bool filter_names(char ***names, size_t *count, struct error *error)
{
    struct text_buffer text;
    size_t found = builtin_filter_count;
    char folder[PATH_MAX];
    FILE *stream = text_open(&text);
    bool done = stream != NULL;
    for (size_t i = 0; done && i < builtin_filter_count; i++)
        fprintf(stream, "%s%c", builtin_filters[i].name, '\0');
    for (size_t i = 0; done && search_folder(i, folder, sizeof folder); i++)
        done = list_filters_in(folder, stream, &found);
    done = stream != NULL && text_close(stream, &text) && done;
    char **list = *names = done ? malloc(found * sizeof *list + text.size) : NULL;
    char *name = list != NULL ? memcpy((void *)(list + found), text.bytes, text.size) : NULL;
    free(text.bytes);
    if (list == NULL)
        return error_no_memory(error, "the names of the filters");
    for (size_t i = 0; i < found; i++, name += strlen(name) + 1)
        list[i] = name;
    qsort(list, found, sizeof *list, compare_names);
    *count = 0;
    for (size_t i = 0; i < found; i++)
        if (i == 0 || strcmp(list[i], list[*count - 1]) != 0)
            list[(*count)++] = list[i];
    return true;
}
