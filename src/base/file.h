/* SPDX-License-Identifier: MIT
 *
 * Whole files. Reading takes all of a file into memory. Writing is atomic: afterwards the file is complete or as it
 * was. The path "-" is standard input or output. */
#ifndef GPUCONV_FILE_H
#define GPUCONV_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The folder of PATH: "." for a plain name. Release it with free. NULL if there is not enough memory. */
char *file_folder(const char *path);

/* Is PATH standard input or output? */
bool file_is_standard(const char *path);

/* The name of PATH in messages, as an input and as an output: "standard input" or "standard output" for "-". */
const char *file_input_name(const char *path);
const char *file_output_name(const char *path);

/* Read a file of at most LIMIT bytes. Release *BYTES with free; it is NULL after an error. Folders and missing, empty
 * and too large files are errors, whose subject is the path. A pipe is read to its end. */
bool file_read(const char *path, size_t limit, uint8_t **bytes, size_t *size, struct error *error);

/* The same for text. It may be empty. A NUL that *SIZE does not count follows the last byte. */
bool file_read_text(const char *path, size_t limit, char **text, size_t *size, struct error *error);

/* Write SIZE bytes to the file PATH: to a temporary file in the same folder, which is then renamed. After an error the
 * old file is untouched.
 *
 * An existing file keeps its mode, and the new content is flushed to disk before the rename, so that a power cut leaves
 * the old content or the new. A new file is not flushed: it can be made again. A symbolic link stays, and the file
 * behind it is replaced. Pipes and devices are written directly. */
bool file_write(const char *path, const uint8_t *bytes, size_t size, struct error *error);

/* Make the folder PATH and its missing parents. */
bool file_make_folders(const char *path, struct error *error);

/* Are A and B paths of one existing regular file (by device and inode)? */
bool file_same(const char *a, const char *b);

#endif
