/* SPDX-License-Identifier: MIT
 *
 * Check each output right before it is written, and record it. */
#include "batch/outputs.h"

#include "base/file.h"

#include <stdlib.h>
#include <string.h>

/* ---- The table ---- */

bool outputs_open(struct outputs *outputs, size_t count, struct report *report, struct error *error)
{
    outputs->report = report;
    pthread_mutex_init(&outputs->lock, NULL);
    outputs->capacity = count > 0 ? 2 * count + 1 : 0; /* at most half full */
    outputs->slots = calloc(outputs->capacity + 1, sizeof *outputs->slots);
    return outputs->slots != NULL || error_no_memory(error, "the list of files");
}

void outputs_close(struct outputs *outputs)
{
    pthread_mutex_destroy(&outputs->lock);
    free(outputs->slots);
}

/* The slot of a file, or the free slot for it. */
static struct output *find_output_slot(const struct outputs *outputs, const struct stat *status)
{
    size_t i = ((size_t)status->st_ino + 31 * (size_t)status->st_dev) % outputs->capacity;
    while (outputs->slots[i].job != NULL &&
           (outputs->slots[i].device != status->st_dev || outputs->slots[i].inode != status->st_ino))
        i = (i + 1) % outputs->capacity;
    return &outputs->slots[i];
}

/* ---- Checks ---- */

/* Is the file that STATUS describes neither the report nor the output of another job? A file's inode may be used again
 * once it is gone, so look at that job's output, too. */
static bool check_other_output(const struct outputs *outputs, const struct job *job, const struct stat *status,
                               struct error *error)
{
    struct stat now;
    if (outputs->report->inode != 0 && outputs->report->device == status->st_dev &&
        outputs->report->inode == status->st_ino)
        return error_set(error, ERROR_OUTPUT, "%s is the same file as the report %s; give another file for one of them",
                         job->output, outputs->report->path);
    const struct job *other = outputs->capacity > 0 ? find_output_slot(outputs, status)->job : NULL;
    if (other == NULL || other == job || stat(other->output, &now) != 0 || !file_is_one(&now, status))
        return true;
    return error_set(error, ERROR_OUTPUT,
                     "%s is the same file as %s, which this run has written: the folder treats both names as one; "
                     "rename one of the inputs, or write them to two folders",
                     job->output, other->output);
}

bool outputs_check(struct outputs *outputs, const struct job *job, const struct stat *status, struct error *error)
{
    pthread_mutex_lock(&outputs->lock);
    const bool done = check_other_output(outputs, job, status, error);
    pthread_mutex_unlock(&outputs->lock);
    return done;
}

/* ---- Writing ---- */

/* An output that is about to be written. */
struct writing {
    struct outputs *outputs;
    const struct job *job;
    const struct stat *read; /* NULL if not in place */
    const uint8_t *bytes;
    size_t size;
};

/* Is the file NOW, or nothing if NULL, still the one that was read? */
static bool check_unchanged(const struct writing *writing, const struct stat *now, struct error *error)
{
    const struct stat *read = writing->read;
    if (now != NULL && file_is_one(now, read) && now->st_size == read->st_size &&
        now->st_mtim.tv_sec == read->st_mtim.tv_sec && now->st_mtim.tv_nsec == read->st_mtim.tv_nsec)
        return true;
    return error_about(error, ERROR_READ, writing->job->output,
                       "was %s while it was filtered, and is left as it is now; run again",
                       now == NULL ? "removed" : "changed or replaced");
}

/* If an output has appeared since the run began, does it have the same bytes? Then another process does the same work.
 * If not, that process does other work, or is a shard and the folder uses one file for its output and this one. */
static bool check_new_output(const struct writing *writing, struct error *error)
{
    uint8_t *bytes;
    size_t size;
    if (writing->read != NULL || writing->job->output_inode != 0 || writing->outputs->capacity == 0)
        return true;
    const bool same = file_read(writing->job->output, writing->size, &bytes, &size, NULL, NULL) &&
                      size == writing->size && memcmp(bytes, writing->bytes, size) == 0;
    free(bytes);
    return same ||
           error_about(
               error, ERROR_OUTPUT, writing->job->output,
               "was written by another process during this run, and is kept; let each process write to other names");
}

/* Hold the lock from the check of the file until it is replaced, so that outputs are replaced one at a time. */
static void begin_replacing(void *context)
{
    const struct writing *writing = context;
    pthread_mutex_lock(&writing->outputs->lock);
}

static bool allow_replacing(void *context, const struct stat *status, struct error *error)
{
    const struct writing *writing = context;
    return (writing->read == NULL || check_unchanged(writing, status, error)) &&
           (status == NULL ||
            (check_other_output(writing->outputs, writing->job, status, error) && check_new_output(writing, error)));
}

static void end_replacing(void *context, const struct stat *status)
{
    const struct writing *writing = context;
    if (status != NULL && writing->outputs->capacity > 0)
        *find_output_slot(writing->outputs, status) =
            (struct output){.job = writing->job, .device = status->st_dev, .inode = status->st_ino};
    pthread_mutex_unlock(&writing->outputs->lock);
}

bool outputs_write(struct outputs *outputs, const struct job *job, const struct stat *read, const uint8_t *bytes,
                   size_t size, struct error *error)
{
    struct writing writing = {.outputs = outputs, .job = job, .read = read, .bytes = bytes, .size = size};
    const struct file_guard guard = {
        .begin = begin_replacing, .allow = allow_replacing, .end = end_replacing, .context = &writing};
    return file_write(job->output, bytes, size, &guard, error);
}
