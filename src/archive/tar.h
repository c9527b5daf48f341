/* SPDX-License-Identifier: MIT
 *
 * From a tar archive to another, member by member, in memory that does not depend on their lengths. libarchive reads
 * all headers, and writes those that change. A member that does not change is copied byte by byte, with all headers
 * that belong to it, so nothing that libarchive does not know is lost.
 *
 * One thread at a time may read, and one may write: tar_next and tar_hold read, tar_write and tar_write_same write, and
 * all other functions do both. */
#ifndef GPUCONV_TAR_H
#define GPUCONV_TAR_H

#include "base/error.h"
#include "base/file.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tar;

struct tar_member {
    /* Until tar_hold or the next tar_next. */
    const char *name; /* any bytes */
    const char *link; /* the path that a hard or symbolic link names; NULL for other members */

    bool is_hard_link;
    bool is_file;  /* a regular file with its own content */
    uint64_t size; /* bytes of the member's content */

    /* From tar_hold on. */
    uint8_t *bytes; /* all of the member: headers, content, padding. Release it with free. */
    size_t length;
    const uint8_t *content; /* in `bytes`; NULL if it is not whole there, as in a sparse file */
};

/* Begin to read the archive at INPUT, a path or "-", and to write to OUTPUT, which is open. Both must outlive *TAR.
 * Fails if libarchive cannot be loaded. Release *TAR with tar_close, also after a failure. */
bool tar_open(struct tar **tar, const char *input, const struct file_output *output, struct error *error);
void tar_close(struct tar *tar);

/* The smallest block, in bytes, that stays out of the cache that malloc keeps for each thread. A smaller block that
 * another thread has allocated would wait there, amid that thread's free memory, whose parts are then too small for the
 * next image: with small images, workers took twice the memory. */
enum { TAR_BLOCK_MIN = 1100 };

/* Find the next member; the content of the one before is skipped if it has not been read. *END says that there is none.
 * Fails if the archive is damaged or has no end, or is no archive. */
bool tar_next(struct tar *tar, struct tar_member *member, bool *end, struct error *error);

/* Read the member that tar_next has found into memory. */
bool tar_hold(struct tar *tar, struct tar_member *member, struct error *error);

/* Copy the member that tar_next has found to the output. After a failure its copy may be cut: then the output is no
 * archive. */
bool tar_copy(struct tar *tar, struct error *error);

/* Write a member that tar_hold has read, unchanged. */
bool tar_write_same(struct tar *tar, const struct tar_member *member, struct error *error);

/* Write a member under NAME with other content, SIZE bytes. A link has none; LINK is then what it names, else NULL.
 * With ERROR_WORK only this member cannot be written. */
bool tar_write(struct tar *tar, const struct tar_member *member, const char *name, const char *link,
               const uint8_t *content, size_t size, struct error *error);

/* Write the end of the archive. */
bool tar_write_end(struct tar *tar, struct error *error);

#endif
