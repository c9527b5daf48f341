/* SPDX-License-Identifier: MIT
 *
 * Bytes to image and back: PNG and JPEG through stb, the checks that stb leaves out, limits, and writing a
 * file so that it is there whole or not at all. Knows nothing of filters. A path of "-" is standard input or output. */
#ifndef GPUCONV_CODEC_H
#define GPUCONV_CODEC_H

#include "error.h"
#include "image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum format { FORMAT_UNKNOWN, FORMAT_PNG, FORMAT_JPEG };

/* The largest image that is read or written: width x height x channels, which is also its bytes in memory (a PNG of 16
 * bits a sample is read up to half of that: stb decodes it to 2 bytes each). stb computes sizes in int, so this must
 * stay below 2^31 with room for a filter byte a row; 2^30 does. */
#define CODEC_MAX_SAMPLES ((size_t)1 << 30)

/* What a file was, beyond its samples. */
struct codec_info {
    enum format format;
    bool reduced; /* it held 16 bits a sample, of which the upper 8 were kept */
};

/* The format that a path's suffix names (.png .jpg .jpeg, in any case), or FORMAT_UNKNOWN. */
enum format codec_format_of_path(const char *path);

/* The format that a word names ("png", "jpg", "jpeg", in any case), or FORMAT_UNKNOWN. */
enum format codec_format_of_name(const char *name);

/* "PNG" or "JPEG". */
const char *codec_format_name(enum format format);

/* Read a whole file of at most LIMIT bytes. *BYTES is to be released with free. Directories, missing, empty and too
 * large files are errors that name the path. */
bool codec_read(const char *path, size_t limit, uint8_t **bytes, size_t *size, struct error *error);

/* Decode SIZE bytes into IMAGE (to be released with image_free); NAME is for messages. The container is checked as a
 * whole first (PNG: chunk order, lengths, CRCs, IEND; JPEG: marker segments up to EOI), then the size against
 * CODEC_MAX_SAMPLES, and only then anything is decoded. INFO may be NULL. */
bool codec_decode(const uint8_t *bytes, size_t size, const char *name, struct image *image, struct codec_info *info,
                  struct error *error);

/* Encode IMAGE to memory; *BYTES is to be released with free. QUALITY is JPEG's, 1 to 100. JPEG holds no alpha: it is
 * dropped; and grey becomes a JPEG in colour, the only kind that stb writes. */
bool codec_encode(const struct image *image, enum format format, int quality, uint8_t **bytes, size_t *size,
                  struct error *error);

/* Write SIZE bytes to PATH so that it holds all of them or is as it was: into a temporary file in the same folder,
 * flushed to disk, then renamed. A symbolic link stays and the file it names is replaced; what is no regular file
 * (a pipe, /dev/null) is written directly. The mode of a file that is replaced is kept. */
bool codec_write(const char *path, const uint8_t *bytes, size_t size, struct error *error);

/* Do the two paths name one existing file (by device and inode)? */
bool codec_same_file(const char *a, const char *b);

#endif
