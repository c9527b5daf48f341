/* SPDX-License-Identifier: MIT
 *
 * Two outputs are the same file if the device and inode of their folders and their last parts are equal. So neither
 * links nor a second path to the same folder hides a collision. */
#include "batch/collisions.h"

#include "base/file.h"
#include "codec/format.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files ---- */

/* A file, which may not exist yet. */
struct file_id {
    dev_t device;
    ino_t inode;  /* the file's inode; else that of the last folder of its path that exists */
    char *rest;   /* the path from that folder; NULL if the file exists */
    size_t index; /* the index of the job in the list, or of the file in FILES */
};

/* Find the file of a path whose last part is no link. */
static bool find_file_id(const char *path, struct file_id *id)
{
    struct stat status = {0};
    size_t length = 0; /* bytes of the folder's path at the beginning of PATH */
    char *folder = strdup(path);
    for (char *slash = folder; slash != NULL;) {
        slash = strrchr(folder, '/');
        length = slash == NULL ? 0 : slash == folder ? 1 : (size_t)(slash - folder);
        folder[length] = '\0';
        if (stat(length > 0 ? folder : ".", &status) == 0 || slash == folder)
            break;
    }
    id->device = status.st_dev;
    id->inode = status.st_ino;
    id->rest = folder != NULL ? strdup(path + length + strspn(path + length, "/")) : NULL;
    free(folder);
    return id->rest != NULL;
}

/* Order files by their identity. A file that exists never equals a file that does not exist. */
static int compare_identities(const void *a, const void *b)
{
    const struct file_id *p = a, *q = b;
    const int order = file_order(p->device, p->inode, q->device, q->inode);
    return order != 0 ? order : strcmp(p->rest != NULL ? p->rest : "", q->rest != NULL ? q->rest : "");
}

/* Order files by their identity, and then by their index. */
static int compare_file_ids(const void *a, const void *b)
{
    const struct file_id *p = a, *q = b;
    const int order = compare_identities(p, q);
    return order != 0 ? order : p->index < q->index ? -1 : p->index > q->index;
}

static struct file_id *make_file_ids(size_t count, struct error *error)
{
    struct file_id *ids = calloc(count + 1, sizeof *ids);
    if (ids == NULL)
        error_no_memory(error, "the list of files");
    return ids;
}

/* ---- Outputs ---- */

/* Find the file that JOB will write; its last part may be a link. */
static bool find_output_id(const struct job *job, struct file_id *id)
{
    struct stat status;
    errno = 0;
    char *real = lstat(job->output, &status) == 0 && S_ISLNK(status.st_mode) ? realpath(job->output, NULL) : NULL;
    const bool done = (real != NULL || errno != ENOMEM) && find_file_id(real != NULL ? real : job->output, id);
    free(real);
    return done;
}

/* Report that two jobs would write the same file. */
static bool refuse_outputs(const struct job *a, const struct job *b, bool in_place, struct error *error)
{
    const size_t stem = format_stem_length(a->name);
    const char *suffix = strrchr(file_name(b->output), '.');
    const bool same_stem = stem == format_stem_length(b->name) && memcmp(a->name, b->name, stem) == 0;
    if (in_place)
        return error_set(error, ERROR_USAGE,
                         "%s and %s are the same file, which would be filtered twice; leave one out", a->input,
                         b->input);
    if (a->number != b->number && strcmp(a->input, b->input) == 0)
        return error_set(error, ERROR_USAGE,
                         "two outputs of %s would both be written to %s; give each --also a folder of its own",
                         a->input, b->output);
    if (same_stem && suffix != NULL && strcmp(a->name, b->name) != 0) { /* other suffixes, which --format replaces */
        const bool changes = format_find_by_path(a->name) != format_find_by_path(b->output);
        return error_set(error, ERROR_USAGE,
                         "%s and %s would both be written to %s; give --keep-suffix for names such as %s%s, or leave "
                         "one out",
                         a->input, b->input, b->output, file_name(changes ? a->name : b->name), suffix);
    }
    return error_set(error, ERROR_USAGE,
                     "%s and %s would both be written to %s; leave one out, or give their common folder with -r, which "
                     "keeps subfolders",
                     a->input, b->input, b->output);
}

/* No two jobs may write the same file. */
static bool check_outputs(const struct file_list *list, bool in_place, struct error *error)
{
    struct file_id *ids = make_file_ids(list->count, error);
    size_t count = 0;
    bool done = ids != NULL;
    for (size_t i = 0; done && i < list->count; i++) {
        if (list->jobs[i].output == NULL)
            continue;
        ids[count].index = i;
        done = find_output_id(&list->jobs[i], &ids[count]) || error_no_memory(error, "the list of files");
        count += done;
    }
    if (done)
        qsort(ids, count, sizeof *ids, compare_file_ids);
    for (size_t i = 1; done && i < count; i++) {
        const struct job *a = &list->jobs[ids[i - 1].index], *b = &list->jobs[ids[i].index];
        if (compare_identities(&ids[i - 1], &ids[i]) == 0)
            done = refuse_outputs(a, b, in_place, error);
    }
    for (size_t i = 0; i < count; i++)
        free(ids[i].rest);
    free(ids);
    return done;
}

/* ---- Outputs and inputs ---- */

/* Check that JOB does not write the file that OTHER reads. Their inodes were equal, but another program may have
 * replaced a file since, so look again. In place, a job may write its input. */
static bool check_other_input(const struct job *job, const struct job *other, bool in_place, struct error *error)
{
    if ((other == job && in_place) || !file_same(other->input, job->output))
        return true;
    if (other == job)
        return error_set(
            error, ERROR_USAGE,
            "%s is the same file as %s; give another folder for --output, or give --in-place to replace the files",
            job->output, job->input);
    if (in_place)
        return error_set(error, ERROR_USAGE,
                         "%s and %s are the same file, which would be filtered twice; leave one out", job->input,
                         other->input);
    return error_set(error, ERROR_USAGE,
                     "%s would be written to %s, which is the same file as the input %s; give another folder for "
                     "--output, or leave that input out",
                     job->input, job->output, other->input);
}

/* Check that no job writes a file that a job reads; in place, a job may write its input. Records which outputs
 * exist. */
static bool check_inputs(struct file_list *list, bool in_place, struct error *error)
{
    struct file_id *inputs = make_file_ids(list->count, error);
    if (inputs == NULL)
        return false;
    for (size_t i = 0; i < list->count; i++)
        inputs[i] = (struct file_id){.device = list->jobs[i].device, .inode = list->jobs[i].inode, .index = i};
    qsort(inputs, list->count, sizeof *inputs, compare_file_ids);

    bool done = true;
    for (size_t i = 0; done && i < list->count; i++) {
        struct job *job = &list->jobs[i];
        struct stat status;
        if (job->output == NULL || !file_find_output(job->output, &status))
            continue;
        job->output_device = status.st_dev;
        job->output_inode = status.st_ino;
        const struct file_id output = {.device = status.st_dev, .inode = status.st_ino};
        const struct file_id *end = inputs + list->count;
        const struct file_id *input = bsearch(&output, inputs, list->count, sizeof *inputs, compare_identities);
        while (input != NULL && input > inputs && compare_identities(input - 1, &output) == 0)
            input--;
        for (; done && input != NULL && input < end && compare_identities(input, &output) == 0; input++)
            done = check_other_input(job, &list->jobs[input->index], in_place, error);
    }
    free(inputs);
    return done;
}

/* No two outputs may be one file with a single name: an earlier run wrote it, in a folder that takes several names for
 * one. Hard links are several files as soon as one of them is replaced. */
static bool check_existing_outputs(const struct file_list *list, struct error *error)
{
    struct file_id *ids = make_file_ids(list->count, error);
    size_t count = 0;
    if (ids == NULL)
        return false;
    for (size_t i = 0; i < list->count; i++)
        if (list->jobs[i].output_inode != 0)
            ids[count++] = (struct file_id){
                .device = list->jobs[i].output_device, .inode = list->jobs[i].output_inode, .index = i};
    qsort(ids, count, sizeof *ids, compare_file_ids);
    bool done = true;
    for (size_t i = 1; done && i < count; i++) {
        const struct job *a = &list->jobs[ids[i - 1].index], *b = &list->jobs[ids[i].index];
        struct stat status;
        if (compare_identities(&ids[i - 1], &ids[i]) == 0 && file_find_output(a->output, &status) &&
            status.st_nlink == 1)
            done = error_set(error, ERROR_USAGE,
                             "%s and %s would both be written to one file, because the folder treats %s and %s as one "
                             "name; rename one, or write them to two folders",
                             a->input, b->input, a->output, b->output);
    }
    free(ids);
    return done;
}

bool collisions_check(struct file_list *list, bool in_place, struct error *error)
{
    return check_outputs(list, in_place, error) && check_inputs(list, in_place, error) &&
           check_existing_outputs(list, error);
}

/* ---- Other files ---- */

void other_files_add(struct other_file *files, size_t *count, const char *path, const char *role, bool written)
{
    struct stat status = {0};
    if (path == NULL)
        return;
    const bool is_standard = file_is_standard(path);
    const bool there =
        (is_standard ? fstat(written ? STDOUT_FILENO : STDIN_FILENO, &status) : stat(path, &status)) == 0;
    if (there ? S_ISDIR(status.st_mode) || S_ISCHR(status.st_mode) : is_standard || !written)
        return;
    files[(*count)++] = (struct other_file){.path = written ? file_output_name(path) : file_input_name(path),
                                            .role = role,
                                            .written = written,
                                            .device = status.st_dev,
                                            .inode = status.st_ino};
}

/* Add FILE, which was read as PATH. */
static void add_source(struct other_file *files, size_t *count, const struct source_file *file, const char *path,
                       const char *role)
{
    if (file->inode != 0)
        files[(*count)++] =
            (struct other_file){.path = path, .role = role, .device = file->device, .inode = file->inode};
}

void other_files_add_filters(struct other_file *files, size_t *count, const struct filter_chain *chain)
{
    for (size_t i = 0; chain != NULL && i < chain->count; i++) {
        const struct filter *filter = &chain->filters[i];
        add_source(files, count, &filter->file, filter->name, "a filter");
        add_source(files, count, &filter->region.mask_file, filter->region.mask_file.path, "a mask");
    }
}

static bool refuse_same(const char *what, const char *name, const struct other_file *other, struct error *error)
{
    return error_set(error, ERROR_USAGE, "%s (%s) is the same file as %s (%s); give another file for one of them", name,
                     what, other->path, other->role);
}

bool collisions_check_files(const struct other_file *files, size_t count, struct error *error)
{
    struct file_id *ids = make_file_ids(count, error);
    bool done = ids != NULL;
    for (size_t i = 0; done && i < count; i++) {
        ids[i] = (struct file_id){.device = files[i].device, .inode = files[i].inode, .index = i};
        done =
            files[i].inode != 0 || find_file_id(files[i].path, &ids[i]) || error_no_memory(error, "the list of files");
    }
    if (done)
        qsort(ids, count, sizeof *ids, compare_file_ids);
    for (size_t i = 1; done && i < count; i++) {
        const struct other_file *a = &files[ids[i - 1].index], *b = &files[ids[i].index];
        if (compare_identities(&ids[i - 1], &ids[i]) == 0 && (a->written || b->written))
            done = a->written ? refuse_same(b->role, b->path, a, error) : refuse_same(a->role, a->path, b, error);
    }
    for (size_t i = 0; ids != NULL && i < count; i++)
        free(ids[i].rest);
    free(ids);
    return done;
}

/* Are OUTPUT and OTHER, neither of which exists, the same file? */
static bool same_file(const char *output, const struct other_file *other, bool *same)
{
    struct file_id a = {0}, b = {0};
    *same = strcmp(file_name(output), file_name(other->path)) == 0;
    if (!*same) /* the usual case needs no look at folders */
        return true;
    const bool done = find_file_id(output, &a) && find_file_id(other->path, &b);
    *same = done && compare_identities(&a, &b) == 0;
    free(a.rest);
    free(b.rest);
    return done;
}

/* Compare OTHER with the files of one job. */
static bool check_other_file(const struct job *job, const struct other_file *other, struct error *error)
{
    const bool there = other->inode != 0;
    bool same = false;
    if (other->written &&
        (there ? other->device == job->device && other->inode == job->inode : strcmp(other->path, job->input) == 0))
        return refuse_same("an input", file_input_name(job->input), other, error);
    if (job->output == NULL)
        return true;
    if (there)
        same = other->device == job->output_device && other->inode == job->output_inode;
    else if (other->written && job->output_inode == 0 && !same_file(job->output, other, &same))
        return error_no_memory(error, "the list of files");
    return !same || refuse_same("an output", file_output_name(job->output), other, error);
}

bool collisions_check_others(const struct file_list *list, const struct other_file *others, size_t count,
                             struct error *error)
{
    for (const struct other_file *other = others; other < others + count; other++) {
        for (size_t i = 0; i < list->count; i++)
            if (!check_other_file(&list->jobs[i], other, error))
                return false;
        for (const struct other_file *next = others; other->written && next < others + count; next++)
            if (next != other && other->inode != 0 && other->device == next->device && other->inode == next->inode)
                return refuse_same(next->role, next->path, other, error);
    }
    return true;
}
