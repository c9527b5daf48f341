/* SPDX-License-Identifier: MIT
 *
 * Make a list of jobs from the names of files and folders. Each job has one input and one output. No two jobs write the
 * same file, and none writes a file that another reads. No image is opened. */
#ifndef GPUCONV_FILE_LIST_H
#define GPUCONV_FILE_LIST_H

#include "base/error.h"
#include "batch/job.h"
#include "batch/shard.h"
#include "codec/codec.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file_list {
    struct job *jobs; /* in the order of their outputs: the same on every machine that sees the same files */
    size_t count;
    size_t listed;    /* the number of jobs of all shards */
    uint64_t listing; /* a hash of the names and sizes of these jobs' inputs, in any order */
};

/* Called for each input that is left out. The warning is NAME, directly followed by TEXT. */
typedef void list_warner(void *context, const char *name, const char *text);

/* Another output of each input: by FILTER, to the folder OUTPUT. */
struct also {
    const char *output, *filter;
};

struct list_request {
    char *const *inputs; /* files and folders */
    size_t input_count;
    const char *files_from; /* NULL, or a file that lists more inputs, "-" for standard input */
    bool null_separated;    /* the names in FILES_FROM are separated by NUL bytes, not by line ends */
    bool recursive;
    bool in_place;
    const char *output; /* the folder for outputs; NULL in place */
    struct also also[OUTPUTS_MAX - 1];
    size_t also_count;
    const char *suffix;          /* what to add to each name; NULL for nothing */
    const struct format *format; /* the format to write; NULL for that of each name's suffix */
    bool keeps_suffix;           /* FORMAT's suffix follows a name's suffix, and does not replace it */
    bool pages;                  /* make a job for each page of a file, as file_list_split_pages does */

    list_warner *warn; /* may be NULL */
    void *context;
};

/* Fill LIST with the jobs of REQUEST; release it with file_list_free, also after a failure. Nothing is created. */
bool file_list_make(const struct list_request *request, struct file_list *list, struct error *error);

/* Replace the last jobs of LIST, one for each of OUTPUTS of one file, by one for each of its pages, with out-001.png
 * and so on for out.png. A file whose pages cannot be counted has one, whose job says why. A file that may have several
 * is read. */
bool file_list_split_pages(struct file_list *list, size_t outputs, struct error *error);

/* The path of the output for the input at RELATIVE, a path below the folder that the user named. --suffix is added to
 * its name, and --format may replace the format's suffix, or follow it. Release it with free. NULL if there is not
 * enough memory. */
char *file_list_output_path(const struct list_request *request, const char *relative);

/* Fill LIST with jobs that have no output, one for each image that the inputs of REQUEST name, in their order. */
bool file_list_make_inputs(const struct list_request *request, struct file_list *list, struct error *error);

/* Fill LIST with jobs that have no output, one for each image in FOLDER and the folders inside it, sorted by name.
 * Fails if the folder OTHER is one of these folders, for example by a bind mount. WARN is called for each link to a
 * folder. */
bool file_list_make_tree(const char *folder, const char *other, list_warner *warn, void *context,
                         struct file_list *list, struct error *error);

/* Add a job that has no output, for the file at PATH; "-" is standard input. */
bool file_list_add(struct file_list *list, const char *path, struct error *error);

/* Call EACH for each name in the file FROM, "-" for standard input, until it fails. The names are one per line, or
 * separated by NUL bytes. */
bool file_list_read_names(const char *from, bool null_separated,
                          bool (*each)(void *context, const char *name, struct error *error), void *context,
                          struct error *error);

/* Fill LIST with one job, from INPUT to OUTPUT. Both may be "-". FORMAT NULL is the input's format. Fails if OUTPUT
 * cannot be written or is INPUT. Release LIST with file_list_free, also after a failure. */
bool file_list_make_pair(const char *input, const char *output, const struct format *format, struct file_list *list,
                         struct error *error);

/* Record the hash of the whole list, and drop the jobs of other shards. Jobs whose outputs exist stay. Link
 * those with one input. */
void file_list_keep_shard(struct file_list *list, const struct shard *shard);

/* Can the codec of SETTINGS write every format of the list? */
bool file_list_check_codec(const struct file_list *list, const struct codec_settings *settings, struct error *error);

/* Release the list, which becomes empty. */
void file_list_free(struct file_list *list);

#endif
