/* SPDX-License-Identifier: MIT
 *
 * Files of a run that must not be the same. */
#ifndef GPUCONV_COLLISIONS_H
#define GPUCONV_COLLISIONS_H

#include "base/error.h"
#include "batch/file_list.h"
#include "filter/chain.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* No two jobs may write the same file, and no job may write a file that another reads. With IN_PLACE, a job may write
 * its own input. Records in LIST which outputs exist. */
bool collisions_check(struct file_list *list, bool in_place, struct error *error);

/* A file that a run reads, or writes if WRITTEN. */
struct other_file {
    const char *path, *role; /* the role is for messages: "the report" */
    bool written;            /* it is written, or is a stream to read, which nothing else may read */
    dev_t device;
    ino_t inode; /* 0 if there is no file yet */
};

/* Add the file at PATH, which may be NULL, to the COUNT FILES. Folders and devices are left out, because several may
 * use one. */
void other_files_add(struct other_file *files, size_t *count, const char *path, const char *role, bool written);

/* Add the files that the filters of CHAIN, which may be NULL, and their masks were read from. FILES must have two free
 * elements for each filter. */
void other_files_add_filters(struct other_file *files, size_t *count, const struct filter_chain *chain);

/* Is no file that is written another of the COUNT FILES, under any name? */
bool collisions_check_files(const struct other_file *files, size_t count, struct error *error);

/* Check that no file of OTHERS that is written is an image of the list or another file of OTHERS, and that no output of
 * the list is a file of OTHERS. */
bool collisions_check_others(const struct file_list *list, const struct other_file *others, size_t count,
                             struct error *error);

#endif
