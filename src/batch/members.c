/* SPDX-License-Identifier: MIT
 *
 * A job for each member. Workers read the members one at a time, so the input waits while all of them work. */
#include "batch/members.h"

#include "archive/tar.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "base/signals.h"

#include <errno.h>
#include <pthread.h>
#include <sha2.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    WINDOW_OF_WORKER = 32,        /* members between images, such as labels, are soon done */
    BUFFERED_OF_WORKER = 1 << 20, /* bytes of buffered members for each worker: beyond them, no member is read */
    UNCHANGED_MAX = 1 << 20,      /* a longer member that is no image is not buffered, but copied */
    MEMBER_BYTES = 4096,          /* bytes of memory for a member, besides its content */
};

/* The hashes of a name and of the name that it had in the input. Their key is random, so nobody can choose names with
 * equal hashes. By chance, a billion names have two of one hash in fewer than one of 10^20 runs. */
struct name {
    uint64_t hash[2]; /* hash[0] is 0 if the slot is free */
    uint64_t before;
};

struct names {
    struct name *slots;
    size_t capacity, count; /* the capacity is a power of two */
};

struct members {
    const struct members_request *request;
    struct tar *tar;
    struct file_output output;
    sigset_t before;
    size_t workers;
    size_t image_max; /* bytes */

    pthread_mutex_t lock;
    pthread_cond_t changed; /* signalled when one of the next three fields changes */
    size_t in_flight;       /* the number of jobs that are taken and not released */
    size_t buffered;        /* bytes of the members in memory */
    bool copies;            /* a worker copies a member from archive to archive */

    bool has_members;
    struct error input_error, output_error; /* ERROR_NONE if there is no error */
    uint8_t key[SHA256_DIGEST_LENGTH];      /* the key of the hashes of names */
    struct names names;                     /* the output names of images, if names may change */
    struct names left_out;                  /* the input names of images that failed */
};

struct member {
    struct job job; /* first, so that a job is a member */
    struct tar_member tar;
    struct members *members;
    const char *link; /* the target of a link, as it is called in the output; else NULL */
    size_t buffered;  /* bytes of memory for this member */
    char text[];      /* the bytes of all names of the member */
};

/* ---- Names ---- */

static struct name hash_name(const struct members *members, const char *text)
{
    struct name name = {0};
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA2_CTX context;
    SHA256Init(&context);
    SHA256Update(&context, members->key, sizeof members->key);
    SHA256Update(&context, (const uint8_t *)text, strlen(text));
    SHA256Final(digest, &context);
    memcpy(name.hash, digest, sizeof name.hash);
    name.hash[0] |= 1; /* the slot is not free */
    return name;
}

static struct name *find_name_slot(const struct names *names, struct name name)
{
    size_t i = (size_t)name.hash[1] & (names->capacity - 1);
    while (names->slots[i].hash[0] != 0 && memcmp(names->slots[i].hash, name.hash, sizeof name.hash) != 0)
        i = (i + 1) & (names->capacity - 1);
    return &names->slots[i];
}

/* Record NAME unless it is there. Returns what is there then; NULL if there is not enough memory. The table is at most
 * three quarters full. When it grows, the old and the new one have 4 slots a name: 96 bytes. */
static const struct name *record_name(struct names *names, struct name name)
{
    enum { FIRST = 1 << 10 };
    if (4 * names->count >= 3 * names->capacity) {
        struct names larger = {.capacity = names->capacity > 0 ? 2 * names->capacity : FIRST, .count = names->count};
        larger.slots = calloc(larger.capacity, sizeof *larger.slots);
        if (larger.slots == NULL)
            return NULL;
        for (size_t i = 0; i < names->capacity; i++)
            if (names->slots[i].hash[0] != 0)
                *find_name_slot(&larger, names->slots[i]) = names->slots[i];
        free(names->slots);
        *names = larger;
    }
    struct name *there = find_name_slot(names, name);
    if (there->hash[0] == 0) {
        *there = name;
        names->count++;
    }
    return there;
}

static bool record_left_out(struct members *members, const char *name)
{
    return record_name(&members->left_out, hash_name(members, name)) != NULL;
}

static bool was_left_out(const struct members *members, const char *name)
{
    return members->left_out.count > 0 && find_name_slot(&members->left_out, hash_name(members, name))->hash[0] != 0;
}

/* Is NAME the name of an image? As in a folder, hidden files do not count. */
static bool is_image_name(const char *name)
{
    return format_find_by_path(name) != NULL && file_name(name)[0] != '.';
}

/* The name that the image NAME gets, or another member keeps. */
static char *output_name(const struct members *members, const char *name)
{
    const struct list_request list = {
        .output = "", .format = members->request->format, .suffix = members->request->suffix};
    return is_image_name(name) ? file_list_output_path(&list, name) : strdup(name);
}

static bool renames(const struct members *members)
{
    return members->request->format != NULL || members->request->suffix != NULL;
}

/* ---- Jobs ---- */

static void free_member(struct member *member)
{
    free(member->tar.bytes);
    free(member);
}

static char *copy_text(char **end, const char *text)
{
    char *copy = *end;
    *end = stpcpy(copy, text) + 1;
    return copy;
}

/* A job for the member FOUND, which has no content yet. NULL if there is not enough memory. */
static struct member *make_member(struct members *members, const struct tar_member *found)
{
    char *output = output_name(members, found->name);
    char *link = found->link != NULL ? output_name(members, found->link) : NULL;
    struct member *member = NULL;
    if (output != NULL && (found->link == NULL || link != NULL)) {
        const size_t links = found->link != NULL ? strlen(found->link) + strlen(link) + 2 : 0;
        const size_t size = sizeof *member + strlen(found->name) + strlen(output) + 2 + links;
        member = calloc(1, size > TAR_BLOCK_MIN ? size : TAR_BLOCK_MIN);
    }
    if (member != NULL) {
        char *end = member->text;
        member->members = members;
        member->tar = *found;
        member->tar.name = member->job.input = copy_text(&end, found->name);
        member->job.output = copy_text(&end, output);
        if (link != NULL) {
            member->tar.link = copy_text(&end, found->link);
            member->link = copy_text(&end, link);
        }
        member->job.name = member->job.input;
        member->job.bytes = found->size;
        member->job.is_link = found->link != NULL;
    }
    free(output);
    free(link);
    return member;
}

bool members_are_broken(struct members *members)
{
    pthread_mutex_lock(&members->lock);
    const bool is_broken = members->output_error.code != ERROR_NONE;
    pthread_mutex_unlock(&members->lock);
    return is_broken;
}

/* The output is cut within a member because of ERROR, so no other can follow. */
static void break_output(struct members *members, struct job_result *result, const struct error *error)
{
    result->outcome = JOB_FAILED;
    result->error = *error;
    pthread_mutex_lock(&members->lock);
    members->output_error = *error;
    pthread_mutex_unlock(&members->lock);
}

/* job's `run` for a member that is no image. */
static void skip_member(const struct job *job, struct workers *workers, int number, struct job_result *result)
{
    (void)workers;
    (void)number;
    result->outcome = JOB_SKIPPED;
    result->input_bytes = (size_t)job->bytes;
}

/* job's `run` for a long member, and for an image that is too large to be buffered: copy the member from archive to
 * archive. All earlier members are written first, and no member is read meanwhile. */
static void copy_member(const struct job *job, struct workers *workers, int number, struct job_result *result)
{
    struct member *member = (struct member *)job;
    struct members *members = member->members;
    pthread_mutex_lock(&members->lock);
    while (members->in_flight > 1)
        pthread_cond_wait(&members->changed, &members->lock);
    pthread_mutex_unlock(&members->lock);
    skip_member(job, workers, number, result);
    if (is_image_name(job->input)) {
        result->outcome = JOB_FAILED;
        error_set(&result->error, ERROR_LIMIT, "is larger than the limit of %zu bytes; give a smaller file",
                  members->image_max);
    }
    const bool is_wanted = result->outcome == JOB_SKIPPED || members->request->keep_failed;
    struct error error;
    if (is_wanted && !members_are_broken(members) && !tar_copy(members->tar, &error))
        break_output(members, result, &error);
}

/* Why the image cannot be filtered; NULL if it can. */
static const char *find_problem(struct members *members, const struct member *member)
{
    const struct job *job = &member->job;
    if (member->tar.content == NULL)
        return "is stored as a sparse file; make the archive without tar's option --sparse";
    if (job->bytes == 0)
        return "is empty (0 bytes); give a file with something in it";
    if (!renames(members))
        return NULL;
    struct name name = hash_name(members, job->output);
    name.before = hash_name(members, job->input).hash[1];
    const struct name *there = record_name(&members->names, name);
    if (there == NULL)
        return "there is not enough memory for its name";
    return there->before == name.before ? NULL
                                        : "would get the name of another member; rename one, or leave --format out";
}

/* Read the member that was found, and complete its job. */
static bool read_member(struct members *members, struct member *member, struct error *error)
{
    struct job *job = &member->job;
    const struct format *format = members->request->format;
    const bool image = is_image_name(job->input) && member->tar.is_file;
    job->run = image ? NULL : skip_member;
    if (member->tar.size > (image ? members->image_max : UNCHANGED_MAX)) {
        job->run = copy_member;
        return true;
    }
    if (!tar_hold(members->tar, &member->tar, error))
        return false;
    if (image) {
        job->format = format != NULL ? format : format_find_by_path(job->input);
        job->content = member->tar.content;
        job->in_memory = true;
        job->problem = (char *)find_problem(members, member);
    }
    return true;
}

/* Find the next member that is wanted. Returns NULL at the end and after an error. */
static struct member *find_member(struct members *members, struct error *error)
{
    struct tar_member found;
    bool end;
    do {
        if (!tar_next(members->tar, &found, &end, error) || end)
            return NULL;
        members->has_members = true;
    } while (members->request->images_only && !(found.is_file && is_image_name(found.name)));
    struct member *member = make_member(members, &found);
    if (member == NULL)
        error_no_memory(error, "a member of the archive");
    return member;
}

/* Are enough members in memory, so that no more are read? Not while a worker may have nothing to do: results keep their
 * order, so they wait for the slowest one. */
static bool is_full(const struct members *members)
{
    return members->buffered >= members->workers * BUFFERED_OF_WORKER && members->in_flight >= 2 * members->workers;
}

/* job_source's `next`. */
static struct job *take_member(void *context)
{
    struct members *members = context;
    pthread_mutex_lock(&members->lock);
    while (members->copies || is_full(members))
        pthread_cond_wait(&members->changed, &members->lock);
    pthread_mutex_unlock(&members->lock);
    if (members_are_broken(members))
        return NULL;
    struct member *member = find_member(members, &members->input_error);
    if (member == NULL)
        return NULL;
    if (!read_member(members, member, &members->input_error)) {
        free_member(member);
        return NULL;
    }
    member->buffered = member->tar.length + MEMBER_BYTES;
    pthread_mutex_lock(&members->lock);
    members->in_flight++;
    members->buffered += member->buffered;
    members->copies = member->job.run == copy_member;
    pthread_mutex_unlock(&members->lock);
    return &member->job;
}

/* job_source's `release`. */
static void release_member(void *context, struct job *job)
{
    struct members *members = context;
    struct member *member = (struct member *)job;
    pthread_mutex_lock(&members->lock);
    members->in_flight--;
    members->buffered -= member->buffered;
    members->copies = members->copies && job->run != copy_member;
    pthread_cond_broadcast(&members->changed);
    pthread_mutex_unlock(&members->lock);
    free_member(member);
}

/* ---- Results ---- */

/* Write a member that is not filtered. Only a link to an image with a new name changes. */
static bool write_unchanged(struct members *members, const struct member *member, struct error *error)
{
    const struct tar_member *tar = &member->tar;
    const bool changes = tar->link != NULL && renames(members) &&
                         (strcmp(member->job.output, tar->name) != 0 || strcmp(member->link, tar->link) != 0);
    return changes ? tar_write(members->tar, tar, member->job.output, member->link, NULL, 0, error)
                   : tar_write_same(members->tar, tar, error);
}

/* job_source's `complete`: write the job's output, or the unchanged member, to the archive. */
static void write_member(void *context, struct job_result *result)
{
    struct members *members = context;
    const struct member *member = (const struct member *)result->job;
    struct error error = {0};
    if (members_are_broken(members) || member->job.run == copy_member)
        return;
    bool done = true;
    if (result->outcome == JOB_DONE)
        done = tar_write(members->tar, &member->tar, member->job.output, NULL, result->output, result->output_bytes,
                         &error);
    else if (result->outcome == JOB_FAILED && !members->request->keep_failed)
        done = record_left_out(members, member->job.input) || error_no_memory(&error, "a member of the archive");
    else if (member->tar.is_hard_link && was_left_out(members, member->tar.link))
        done = error_about(&error, ERROR_WORK, member->job.input, "is a hard link to %s, which was left out",
                           member->tar.link);
    else
        done = write_unchanged(members, member, &error);
    if (done)
        return;
    if (error.code != ERROR_WORK) {
        break_output(members, result, &error);
    } else {
        result->outcome = JOB_FAILED;
        result->error = error;
        record_left_out(members, member->job.input);
    }
}

/* ---- The whole ---- */

bool members_open(struct members **opened, const struct members_request *request, struct job_source *source,
                  struct error *error)
{
    struct members *members = *opened = calloc(1, sizeof *members);
    struct memory_budget budget;
    sigset_t signals;
    struct stat info;
    if (members == NULL)
        return error_no_memory(error, "an archive");
    members->workers = (size_t)(request->workers > 0 ? request->workers : parallel_processors());
    signals_find_ending(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, &members->before);
    pthread_mutex_init(&members->lock, NULL);
    pthread_cond_init(&members->changed, NULL);
    budget_open(&budget, request->memory, (int)members->workers);
    members->image_max = budget_input_max(&budget);
    budget_close(&budget);
    members->request = request;
    *source = (struct job_source){.next = take_member,
                                  .complete = write_member,
                                  .release = release_member,
                                  .context = members,
                                  .in_order = true,
                                  .window = members->workers * WINDOW_OF_WORKER,
                                  .bytes = file_find_input(request->input, &info) ? (double)info.st_size : 0};
    const bool done = file_output_open(&members->output, request->output, error) &&
                      tar_open(&members->tar, request->input, &members->output, error) &&
                      (getrandom(members->key, sizeof members->key, 0) == sizeof members->key ||
                       error_set(error, ERROR_WORK, "the system cannot give random numbers: %s", strerror(errno)));
    if (!done)
        members->input_error = *error;
    return done;
}

void members_abandon(struct members *members)
{
    if (members != NULL)
        file_output_close(&members->output, false, NULL, NULL);
}

bool members_close(struct members *members, bool keep, struct error *error)
{
    if (members == NULL)
        return true;
    struct error *fault = &members->output_error;
    keep = keep && !members_are_broken(members) && (members->has_members || members->input_error.code == ERROR_NONE) &&
           tar_write_end(members->tar, fault);
    file_output_close(&members->output, keep, NULL, fault);
    if (fault->code == ERROR_NONE)
        fault = &members->input_error;
    const bool done = fault->code == ERROR_NONE;
    if (!done)
        *error = *fault;
    tar_close(members->tar);
    free(members->names.slots);
    free(members->left_out.slots);
    pthread_mutex_destroy(&members->lock);
    pthread_cond_destroy(&members->changed);
    pthread_sigmask(SIG_SETMASK, &members->before, NULL);
    free(members);
    return done;
}
