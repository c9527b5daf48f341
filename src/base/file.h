/* SPDX-License-Identifier: MIT
 *
 * Files. Reading takes all of a file into memory. Writing is atomic: afterwards the file is complete or as it was. The
 * path "-" is standard input or output. */
#ifndef GPUCONV_FILE_H
#define GPUCONV_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

/* The folder of PATH: "." for a plain name. Release it with free. NULL if there is not enough memory. */
char *file_folder(const char *path);

/* The last part of PATH. */
const char *file_name(const char *path);

/* Is PATH standard input or output? */
bool file_is_standard(const char *path);

/* The name of PATH in messages, as an input and as an output: "standard input" or "standard output" for "-". */
const char *file_input_name(const char *path);
const char *file_output_name(const char *path);

/* A device such as /dev/zero may have no end. No more is read of one, and a longer one is an error. */
enum { FILE_DEVICE_MAX = 1 << 20 };

/* Read a file of at most LIMIT bytes. Release *BYTES with free; it is NULL after an error. Folders and missing, empty
 * and too large files are errors, whose subject is the path. A pipe is read to its end. Unless NULL, INFO receives the
 * status of the file before its first byte was read. */
bool file_read(const char *path, size_t limit, uint8_t **bytes, size_t *size, struct stat *info, struct error *error);

/* Read a file as file_read does. If it is larger than FILE_HEAD bytes, and IS_WANTED returns false for the first
 * FILE_HEAD of them, read only these. */
enum { FILE_HEAD = 1 << 12 };
typedef bool file_head_judge(const uint8_t *bytes, size_t size);
bool file_read_wanted(const char *path, size_t limit, file_head_judge *is_wanted, uint8_t **bytes, size_t *size,
                      struct stat *info, struct error *error);

/* Read a text file, which may be empty, as file_read does. A NUL that *SIZE does not count follows the last byte.
 * Errors that pass, such as a lack of memory, have a code that says so; all others have CODE. */
bool file_read_text(const char *path, size_t limit, enum error_code code, char **text, size_t *size,
                    struct error *error);

/* The bytes of a temporary file's name, hidden and random, with the NUL. */
enum { FILE_TEMPORARY = sizeof ".gpuconv-0123456789abcdef" };

/* The functions that file_write calls before and after it renames the temporary file: begin, then allow, then end. */
struct file_guard {
    void (*begin)(void *context); /* file_write is about to look at what is there */
    /* May the new file replace the old one? INFO is the old one, which is no symbolic link, or NULL. */
    bool (*allow)(void *context, const struct stat *info, struct error *error);
    /* INFO is the new file, or NULL if it was not allowed or the rename has failed. */
    void (*end)(void *context, const struct stat *info);
    void *context;
};

/* Write SIZE bytes to the file PATH: to a temporary file in the same folder, which is then renamed. After an error the
 * old file is untouched. GUARD may be NULL.
 *
 * An existing file keeps its mode but the set-ID bits, and its owner, group, access control list and extended
 * attributes as far as the system lets this process set them. The new content is flushed to disk before the rename, so
 * that a power cut leaves the old content or the new. A new file is not flushed: it can be made again. A symbolic link
 * stays, and the file that it refers to is replaced. Other hard links keep the old content. Pipes and devices are
 * written directly, without GUARD. */
bool file_write(const char *path, const uint8_t *bytes, size_t size, const struct file_guard *guard,
                struct error *error);

/* A file that is written piece by piece, with the promises of file_write. */
struct file_output {
    int descriptor; /* open for writing */

    /* For replace.c. */
    const char *path; /* the path as the caller gave it, for error messages */
    char *real;       /* the path without symbolic links, or NULL for a pipe or device, which is written directly */
    int folder;       /* open, so that all steps are in one folder, even if it is renamed; -1 if REAL is NULL */
    bool exists;
    struct stat info;               /* if it exists */
    char temporary[FILE_TEMPORARY]; /* the name of the temporary file, or empty */
};

/* Begin to write to PATH, write SIZE bytes, and end. All are as in file_write, but signals are not blocked: block those
 * that end the program. Call file_output_close in any case; unless KEEP, the old file stays. */
bool file_output_open(struct file_output *output, const char *path, struct error *error);
bool file_output_write(const struct file_output *output, const void *bytes, size_t size, struct error *error);
bool file_output_close(struct file_output *output, bool keep, const struct file_guard *guard, struct error *error);

/* Delete the file PATH. */
bool file_remove(const char *path, struct error *error);

/* Does REASON, the errno of a file or folder that could not be made, hold for all others in its folder? */
bool file_refuses_new(int reason);

/* Make the folder PATH and its missing parents. */
bool file_make_folders(const char *path, struct error *error);

/* Is there a regular file at PATH, as an input or as an output? Then INFO describe it. It may be a standard stream. */
bool file_find_input(const char *path, struct stat *info);
bool file_find_output(const char *path, struct stat *info);

/* Is PATH, which need not exist, FOLDER or inside it? By the device and inode of each folder that it is in. */
bool file_is_inside(const char *path, const char *folder);

/* Are A and B the status of one file? */
static inline bool file_is_one(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* The order of two files, for qsort; 0 if they are one. */
static inline int file_order(dev_t device, ino_t inode, dev_t other_device, ino_t other_inode)
{
    return device != other_device ? (device < other_device ? -1 : 1) : (inode > other_inode) - (inode < other_inode);
}

/* Are INPUT and OUTPUT one existing regular file? */
bool file_same(const char *input, const char *output);

#endif
