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

/* No job may write what any job reads, except its own input in place. */
static bool check_inputs(const struct file_list *list, bool in_place, struct error *error)
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

bool collisions_check(const struct file_list *list, bool in_place, struct error *error)
{
    return check_outputs(list, in_place, error) && check_inputs(list, in_place, error);
}
