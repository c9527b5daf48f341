/* SPDX-License-Identifier: MIT
 *
 * Two outputs are the same file if the device and inode of their folders and their last parts are equal. So neither links
 * nor a second path to the same folder hides a collision. */
#include "batch/collisions.h"

#include "base/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static bool no_memory(struct error *error)
{
    return error_set(error, ERROR_WORK, "not enough memory for the list of files; give fewer at a time");
}

/* ---- Places ---- */

/* A file that may not exist yet. */
struct place {
    dev_t device;
    ino_t inode;  /* of the deepest folder on the way to it that exists */
    char *rest;   /* the path from there */
    size_t index; /* of the job */
};

/* Find the place of a path whose last part is no link. */
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

static bool same_places(const struct place *p, const struct place *q)
{
    return p->device == q->device && p->inode == q->inode && strcmp(p->rest, q->rest) == 0;
}

/* No two jobs may write the same place. */
static bool check_outputs(const struct file_list *list, bool in_place, struct error *error)
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
        if (same_places(p, q))
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

/* ---- Outputs and inputs ---- */

static int compare_inputs(const void *a, const void *b)
{
    const struct job *p = *(struct job *const *)a, *q = *(struct job *const *)b;
    if (p->device != q->device)
        return p->device < q->device ? -1 : 1;
    if (p->inode != q->inode)
        return p->inode < q->inode ? -1 : 1;
    return p < q ? -1 : p > q;
}

/* No job may write what any job reads, except its own input in place. Notes which outputs exist. */
static bool check_inputs(struct file_list *list, bool in_place, struct error *error)
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
        if (job->output == NULL || !file_find_output(job->output, &facts))
            continue;
        list->jobs[i].output_device = facts.st_dev;
        list->jobs[i].output_inode = facts.st_ino;
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

static int compare_existing_outputs(const void *a, const void *b)
{
    const struct job *p = *(struct job *const *)a, *q = *(struct job *const *)b;
    if (p->output_device != q->output_device)
        return p->output_device < q->output_device ? -1 : 1;
    if (p->output_inode != q->output_inode)
        return p->output_inode < q->output_inode ? -1 : 1;
    return p < q ? -1 : p > q;
}

/* No two outputs may be one file with a single name: an earlier run wrote it, in a folder that takes several names for
 * one. Hard links are several files as soon as one of them is replaced. */
static bool check_existing_outputs(const struct file_list *list, struct error *error)
{
    const struct job **jobs = calloc(list->count + 1, sizeof *jobs);
    size_t count = 0;
    if (jobs == NULL)
        return no_memory(error);
    for (size_t i = 0; i < list->count; i++)
        if (list->jobs[i].output_inode != 0)
            jobs[count++] = &list->jobs[i];
    qsort(jobs, count, sizeof *jobs, compare_existing_outputs);
    bool done = true;
    for (size_t i = 1; done && i < count; i++) {
        const struct job *a = jobs[i - 1], *b = jobs[i];
        struct stat facts;
        if (a->output_device == b->output_device && a->output_inode == b->output_inode &&
            file_find_output(a->output, &facts) && facts.st_nlink == 1)
            done = error_set(error, ERROR_USAGE,
                             "%s and %s would both be written to one file, because the folder takes %s and %s for one "
                             "name; rename one, or write them to two folders",
                             a->input, b->input, a->output, b->output);
    }
    free(jobs);
    return done;
}

bool collisions_check(struct file_list *list, bool in_place, struct error *error)
{
    return check_outputs(list, in_place, error) && check_inputs(list, in_place, error) &&
           check_existing_outputs(list, error);
}

/* ---- Other files ---- */

static bool refuse_same(const char *what, const char *name, const struct other_file *other, struct error *error)
{
    return error_set(error, ERROR_USAGE, "%s (%s) is the same file as %s (%s); name another file for one of them", name,
                     what, other->path, other->role);
}

/* Would OUTPUT, which does not exist, be made at the place of OTHER, which does not either? */
static bool same_place(const char *output, const struct other_file *other, bool *same)
{
    struct place a = {0}, b = {0};
    const char *output_slash = strrchr(output, '/'), *other_slash = strrchr(other->path, '/');
    *same = strcmp(output_slash != NULL ? output_slash + 1 : output,
                   other_slash != NULL ? other_slash + 1 : other->path) == 0;
    if (!*same) /* the usual case needs no look at folders */
        return true;
    const bool done = find_place(output, &a) && find_place(other->path, &b);
    *same = done && same_places(&a, &b);
    free(a.rest);
    free(b.rest);
    return done;
}

/* Compare OTHER with the files of one job. */
static bool check_other(const struct job *job, const struct other_file *other, struct error *error)
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
    else if (other->written && job->output_inode == 0 && !same_place(job->output, other, &same))
        return no_memory(error);
    return !same || refuse_same("an output", file_output_name(job->output), other, error);
}

bool collisions_check_others(const struct file_list *list, const struct other_file *others, size_t count,
                             struct error *error)
{
    for (const struct other_file *other = others; other < others + count; other++) {
        for (size_t i = 0; i < list->count; i++)
            if (!check_other(&list->jobs[i], other, error))
                return false;
        for (const struct other_file *next = others; other->written && next < others + count; next++)
            if (next != other && other->inode != 0 && other->device == next->device && other->inode == next->inode)
                return refuse_same(next->role, next->path, other, error);
    }
    return true;
}
