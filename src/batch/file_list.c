/* SPDX-License-Identifier: MIT
 *
 * Names to jobs. Two paths are known to be one file by the device and inode of their folders and by their last parts,
 * so that neither links nor a second way to the same folder hide a collision. */
#include "batch/file_list.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* The largest list of files that is read: some ten million names. */
#define LIST_LIMIT ((size_t)1 << 30)

/* What jobs are made with. */
struct maker {
    const struct job_request *request;
    struct job_list *list;
    struct stat output; /* of the output folder */
    bool output_exists;
    struct error *error;
};

static bool no_memory(struct error *error)
{
    return error_set(error, ERROR_WORK, "not enough memory for the list of files; give fewer at a time");
}

/* ---- Names ---- */

static char *join(const char *folder, const char *name)
{
    char *path;
    size_t length = strlen(folder);
    while (length > 1 && folder[length - 1] == '/')
        length--;
    return asprintf(&path, "%.*s%s%s", (int)length, folder, folder[length - 1] == '/' ? "" : "/", name) < 0 ? NULL
                                                                                                            : path;
}

/* The last part of a path that names a file. */
static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash == NULL ? path : slash + 1;
}

/* Where the suffix of a name that is an image's begins; the name's end where it has none. */
static size_t stem_length(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot != NULL && format_find_by_path(name) != NULL ? (size_t)(dot - name) : strlen(name);
}

/* The path of the output for an input of RELATIVE path below the folder named: the name, with --suffix added to it and
 * its own suffix replaced where --format says otherwise. */
static char *output_path(const struct job_request *request, const char *relative)
{
    const size_t stem = stem_length(last_part(relative)) + (size_t)(last_part(relative) - relative);
    const bool replaced = request->format != NULL && request->format != format_find_by_path(relative);
    const char *end = replaced ? request->format->suffixes[0] : relative + stem;
    const char *added = request->suffix != NULL ? request->suffix : "";
    char *name, *path;
    if (asprintf(&name, "%.*s%s%s%s", (int)stem, relative, added, replaced ? "." : "", end) < 0)
        return NULL;
    path = join(request->output, name);
    free(name);
    return path;
}

/* ---- Jobs ---- */

static struct job *add(struct maker *maker)
{
    struct job_list *list = maker->list;
    if (list->count == list->capacity) {
        const size_t capacity = list->capacity > 0 ? 2 * list->capacity : 64;
        struct job *larger = realloc(list->jobs, capacity * sizeof *larger);
        if (larger == NULL)
            return NULL;
        list->jobs = larger;
        list->capacity = capacity;
    }
    list->jobs[list->count] = (struct job){0};
    return &list->jobs[list->count++];
}

/* An input that cannot be had, for the reason in errno. It fails alone, when its turn comes. */
static bool add_problem(struct maker *maker, const char *path)
{
    const int reason = errno;
    struct job *job = add(maker);
    if (job == NULL || (job->input = strdup(path)) == NULL ||
        asprintf(&job->problem, "cannot be read: %s", strerror(reason)) < 0)
        return no_memory(maker->error);
    return true;
}

/* A file, of which FACTS are known. */
static bool add_file(struct maker *maker, const char *path, const char *relative, const struct stat *facts)
{
    const struct job_request *request = maker->request;
    struct error *error = maker->error;
    const struct format *named = format_find_by_path(path);
    if (request->format == NULL && named == NULL)
        return error_about(error, ERROR_USAGE, path,
                           "its name does not say which format to write (.png, .jpg and .jpeg do); give --format");
    if (request->in_place && request->format != NULL && named != NULL && named != request->format)
        return error_about(error, ERROR_USAGE, path,
                           "--in-place keeps the name, which is not one of the other format that --format asks for; "
                           "leave one out");
    struct job *job = add(maker);
    if (job == NULL)
        return no_memory(error);
    *job = (struct job){
        .input = strdup(path),
        .output = request->in_place ? strdup(path) : output_path(request, relative),
        .bytes = S_ISREG(facts->st_mode) ? (uint64_t)facts->st_size : 0,
        .format = request->format != NULL ? request->format : named,
        .device = facts->st_dev,
        .inode = facts->st_ino,
    };
    return (job->input != NULL && job->output != NULL) || no_memory(error);
}

/* ---- Folders ---- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_names(char **names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(names[i]);
    free(names);
}

/* The names in a folder that are not hidden, in order. A failure that is not for want of memory sets errno only. */
static bool read_folder(const char *path, char ***names, size_t *count, bool *readable)
{
    DIR *folder = opendir(path);
    size_t capacity = 0;
    bool done = true;
    *names = NULL;
    *count = 0;
    *readable = folder != NULL;
    if (folder == NULL)
        return true;
    errno = 0;
    for (struct dirent *entry; done && (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        if (*count == capacity) {
            capacity = capacity > 0 ? 2 * capacity : 64;
            char **larger = realloc(*names, capacity * sizeof *larger);
            done = larger != NULL;
            *names = done ? larger : *names;
        }
        done = done && ((*names)[*count] = strdup(entry->d_name)) != NULL;
        *count += done;
        errno = 0;
    }
    *readable = errno == 0;
    const int reason = errno;
    closedir(folder);
    errno = reason;
    if (done && *count > 0)
        qsort(*names, *count, sizeof **names, compare_names);
    return done;
}

/* It and add_entry call each other, as deep as folders lie in each other: a path has 4096 bytes at most. */
/* NOLINTBEGIN(misc-no-recursion) */
static bool add_folder(struct maker *maker, const char *path, const char *relative);

/* What stands in a folder under NAME: an image, or perhaps a folder to descend to. Other things are passed over, among
 * them links to folders, which may lead in a circle. */
static bool add_entry(struct maker *maker, const char *folder, const char *folder_relative, const char *name)
{
    const bool image = format_find_by_path(name) != NULL;
    if (!image && !maker->request->recursive)
        return true;
    struct stat facts, itself;
    char *path = join(folder, name),
         *relative = folder_relative[0] != '\0' ? join(folder_relative, name) : strdup(name);
    bool done = path != NULL && relative != NULL;
    if (!done) {
        no_memory(maker->error);
    } else if (stat(path, &facts) != 0) {
        done = !image || add_problem(maker, path);
    } else if (S_ISREG(facts.st_mode)) {
        done = !image || add_file(maker, path, relative, &facts);
    } else if (S_ISDIR(facts.st_mode) && maker->request->recursive && lstat(path, &itself) == 0 &&
               S_ISDIR(itself.st_mode)) {
        if (maker->output_exists && facts.st_dev == maker->output.st_dev && facts.st_ino == maker->output.st_ino) {
            if (maker->request->warn != NULL)
                maker->request->warn(maker->request->context, path, ": is the output folder and is not read");
        } else {
            done = add_folder(maker, path, relative);
        }
    }
    free(path);
    free(relative);
    return done;
}

/* A folder's images, RELATIVE to the folder that was named. No folder stays open meanwhile. */
static bool add_folder(struct maker *maker, const char *path, const char *relative)
{
    char **names;
    size_t count;
    bool readable;
    bool done = read_folder(path, &names, &count, &readable) || no_memory(maker->error);
    if (done && !readable)
        done = add_problem(maker, path);
    for (size_t i = 0; done && i < count; i++)
        done = add_entry(maker, path, relative, names[i]);
    free_names(names, count);
    return done;
}
/* NOLINTEND(misc-no-recursion) */

/* ---- Inputs ---- */

/* A file or a folder that was named. */
static bool add_input(struct maker *maker, const char *path)
{
    const struct job_request *request = maker->request;
    struct stat facts;
    if (stat(path, &facts) != 0)
        return add_problem(maker, path);
    if (!S_ISDIR(facts.st_mode))
        return add_file(maker, path, last_part(path), &facts);
    if (maker->output_exists && facts.st_dev == maker->output.st_dev && facts.st_ino == maker->output.st_ino)
        return error_set(maker->error, ERROR_USAGE,
                         "%s is the output folder too, and a second run would filter what the first has written; name "
                         "another folder for --output, or give --in-place to replace the files",
                         path);
    const size_t before = maker->list->count;
    if (!add_folder(maker, path, ""))
        return false;
    if (maker->list->count == before && request->warn != NULL)
        request->warn(request->context, path,
                      request->recursive ? ": holds no image (.png, .jpg or .jpeg)"
                                         : ": holds no image (.png, .jpg or .jpeg); -r looks into its folders too");
    return true;
}

/* A name from a list. */
static bool add_listed(struct maker *maker, const char *name)
{
    return name[0] == '\0' || add_input(maker, strcmp(name, "-") == 0 ? "./-" : name);
}

static bool add_list(struct maker *maker)
{
    const struct job_request *request = maker->request;
    const char *name = file_input_name(request->files_from);
    const int separator = request->null_separated ? '\0' : '\n';
    char *text;
    size_t size;
    if (!file_read_text(request->files_from, LIST_LIMIT, &text, &size, maker->error))
        return false;
    bool done = true;
    text[size] = (char)separator;
    if (!request->null_separated && memchr(text, '\0', size) != NULL)
        done = error_about(maker->error, ERROR_USAGE, name, "holds a NUL byte, as lists of -0 do; give -0, too");
    for (char *end, *at = text; done && at < text + size; at = end + 1) {
        end = memchr(at, separator, (size_t)(text + size + 1 - at));
        *end = '\0';
        done = add_listed(maker, at);
    }
    free(text);
    return done;
}

/* ---- Checks ---- */

/* A file that may not exist yet. */
struct place {
    dev_t device;
    ino_t inode;  /* of the deepest folder on the way to it that exists */
    char *rest;   /* the path from there */
    size_t index; /* of the job */
};

/* Find the place of a path, of which the last part is no link. */
static bool find_place(const char *path, struct place *place)
{
    struct stat facts = {0};
    size_t length = 0; /* of the folder's name in PATH */
    char *folder = strdup(path);
    for (char *slash = folder; slash != NULL;) {
        slash = strrchr(folder, '/');
        length = slash == NULL ? 0 : slash == folder ? 1 : (size_t)(slash - folder);
        folder[length] = '\0';
        if (stat(length > 0 ? folder : ".", &facts) == 0 || slash == folder)
            break;
    }
    place->device = facts.st_dev;
    place->inode = facts.st_ino;
    place->rest = folder != NULL ? strdup(path + length + strspn(path + length, "/")) : NULL;
    free(folder);
    return place->rest != NULL;
}

static int compare_places(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
    if (p->device != q->device)
        return p->device < q->device ? -1 : 1;
    if (p->inode != q->inode)
        return p->inode < q->inode ? -1 : 1;
    const int order = strcmp(p->rest, q->rest);
    return order != 0 ? order : p->index < q->index ? -1 : 1;
}

/* The places that two jobs write must differ. */
static bool check_outputs(const struct job_list *list, bool in_place, struct error *error)
{
    struct place *places = calloc(list->count + 1, sizeof *places);
    size_t count = 0;
    bool done = places != NULL;
    for (size_t i = 0; done && i < list->count; i++) {
        if (list->jobs[i].output == NULL)
            continue;
        struct stat facts;
        errno = 0;
        char *real = lstat(list->jobs[i].output, &facts) == 0 && S_ISLNK(facts.st_mode)
                         ? realpath(list->jobs[i].output, NULL)
                         : NULL;
        places[count].index = i;
        done =
            (real != NULL || errno != ENOMEM) && find_place(real != NULL ? real : list->jobs[i].output, &places[count]);
        count += done;
        free(real);
    }
    if (!done)
        no_memory(error);
    else
        qsort(places, count, sizeof *places, compare_places);
    for (size_t i = 1; done && i < count; i++) {
        const struct place *p = &places[i - 1], *q = &places[i];
        const struct job *a = &list->jobs[p->index], *b = &list->jobs[q->index];
        if (p->device == q->device && p->inode == q->inode && strcmp(p->rest, q->rest) == 0)
            done = error_set(error, ERROR_USAGE,
                             in_place ? "%s and %s are the same file, which would be filtered twice; leave one out"
                                      : "%s and %s would both be written to %s; leave one out, or give the folder that "
                                        "holds both and -r, which keeps the tree",
                             a->input, b->input, b->output);
    }
    for (size_t i = 0; i < count; i++)
        free(places[i].rest);
    free(places);
    return done;
}

static int compare_inputs(const void *a, const void *b)
{
    const struct job *p = *(struct job *const *)a, *q = *(struct job *const *)b;
    if (p->device != q->device)
        return p->device < q->device ? -1 : 1;
    if (p->inode != q->inode)
        return p->inode < q->inode ? -1 : 1;
    return p < q ? -1 : p > q;
}

/* No job may write what a job reads, but in place its own input. */
static bool check_inputs(const struct job_list *list, bool in_place, struct error *error)
{
    const struct job **inputs = calloc(list->count + 1, sizeof *inputs);
    if (inputs == NULL)
        return no_memory(error);
    for (size_t i = 0; i < list->count; i++)
        inputs[i] = &list->jobs[i];
    qsort(inputs, list->count, sizeof *inputs, compare_inputs);

    bool done = true;
    for (size_t i = 0; done && i < list->count; i++) {
        const struct job *job = &list->jobs[i];
        struct stat facts;
        if (job->output == NULL || stat(job->output, &facts) != 0 || !S_ISREG(facts.st_mode))
            continue;
        size_t low = 0, high = list->count; /* the first input that is not before the output */
        while (low < high) {
            const size_t middle = (low + high) / 2;
            const struct job *other = inputs[middle];
            if (other->device < facts.st_dev || (other->device == facts.st_dev && other->inode < facts.st_ino))
                low = middle + 1;
            else
                high = middle;
        }
        for (; done && low < list->count; low++) {
            const struct job *other = inputs[low];
            if (other->device != facts.st_dev || other->inode != facts.st_ino)
                break;
            if (other == job && !in_place)
                done = error_set(error, ERROR_USAGE,
                                 "%s is the same file as %s; name another folder for --output, or give --in-place to "
                                 "replace the files",
                                 job->output, job->input);
            else if (other != job && in_place)
                done = error_set(error, ERROR_USAGE,
                                 "%s and %s are the same file, which would be filtered twice; "
                                 "leave one out",
                                 job->input, other->input);
            else if (other != job)
                done = error_set(error, ERROR_USAGE,
                                 "%s would be written to %s, which is the same file as the input %s; name another "
                                 "folder for --output, or leave that input out",
                                 job->input, job->output, other->input);
        }
    }
    free(inputs);
    return done;
}

static int compare_jobs(const void *a, const void *b)
{
    const struct job *p = a, *q = b;
    const int order = strcmp(p->output != NULL ? p->output : p->input, q->output != NULL ? q->output : q->input);
    return order != 0 ? order : strcmp(p->input, q->input);
}

bool jobs_make(const struct job_request *request, struct job_list *list, struct error *error)
{
    struct maker maker = {.request = request, .list = list, .error = error};
    *list = (struct job_list){0};
    maker.output_exists = !request->in_place && stat(request->output, &maker.output) == 0;
    if (maker.output_exists && !S_ISDIR(maker.output.st_mode))
        return error_about(error, ERROR_WORK, request->output, "is no folder; name one for --output");
    bool done = true;
    for (size_t i = 0; done && i < request->input_count; i++)
        done = add_input(&maker, request->inputs[i]);
    done = done && (request->files_from == NULL || add_list(&maker));
    if (done && list->count > 0)
        qsort(list->jobs, list->count, sizeof *list->jobs, compare_jobs);
    return done && check_outputs(list, request->in_place, error) && check_inputs(list, request->in_place, error);
}

static void free_job(struct job *job)
{
    free(job->input);
    free(job->output);
    free(job->problem);
}

void jobs_keep(struct job_list *list, const bool *kept)
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (kept[i])
            list->jobs[count++] = list->jobs[i];
        else
            free_job(&list->jobs[i]);
    }
    list->count = count;
}

void jobs_free(struct job_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free_job(&list->jobs[i]);
    free(list->jobs);
    *list = (struct job_list){0};
}
