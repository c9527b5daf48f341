/* SPDX-License-Identifier: MIT
 *
 * Whole files: read into memory, and written so that a file is there whole or not at all. Knows nothing of what they
 * hold. A path of "-" is standard input or output. */
#ifndef GPUCONV_FILE_H
#define GPUCONV_FILE_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The folder that holds PATH's last part, to be released with free; NULL where there is no memory. */
char *file_folder(const char *path);

/* Is PATH standard input or output? */
bool file_is_standard(const char *path);

/* What messages call PATH as an input, and as an output: "standard input" or "standard output" for "-". */
const char *file_input_name(const char *path);
const char *file_output_name(const char *path);

/* Read a whole file of at most LIMIT bytes. *BYTES is to be released with free. Directories, missing, empty and too
 * large files are errors that name the path. */
bool file_read(const char *path, size_t limit, uint8_t **bytes, size_t *size, struct error *error);

/* The same for text, which may be empty and ends with a NUL byte that *SIZE does not count. */
bool file_read_text(const char *path, size_t limit, char **text, size_t *size, struct error *error);

/* Write SIZE bytes to PATH so that it holds all of them or is as it was: into a temporary file in the same folder,
 * which is then renamed. What replaces a file is flushed to disk first, so that a power cut leaves the old content or
 * the new; a file that was not there before can be made again and is not waited for. A symbolic link stays and the file
 * it names is replaced; what is no regular file (a pipe, /dev/null) is written directly. The mode of a file that is
 * replaced is kept. */
bool file_write(const char *path, const uint8_t *bytes, size_t size, struct error *error);

/* Make the folder PATH, and those above it, where they are not there. */
bool file_make_folders(const char *path, struct error *error);

/* Do the two paths name one existing file (by device and inode)? */
bool file_same(const char *a, const char *b);

#endif
