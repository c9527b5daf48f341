/* SPDX-License-Identifier: MIT
 *
 * THE TABLE of formats: what gpuconv knows about PNG and JPEG files, a row each. What differs between formats is asked
 * of a row; nothing else names one, apart from the codecs. */
#ifndef GPUCONV_FORMAT_H
#define GPUCONV_FORMAT_H

#include "base/error.h"
#include "container/check.h"
#include "metadata/metadata.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The places of the rows in the table. */
enum format_id { FORMAT_PNG, FORMAT_JPEG, FORMAT_COUNT };

/* A row. NULL in place of one means that the format is unknown, or that nobody named one. */
struct format {
    enum format_id id;
    const char *name;        /* in messages: "PNG" */
    const char *suffixes[3]; /* of file names, without the dot, the usual one first; then NULL */
    const char *magic;       /* the bytes that a file begins with */
    size_t magic_size;       /* a damaged signature behind them is for the check to report */
    int most_side;           /* pixels on a side that are written */
    int most_bits;           /* of a sample */
    bool holds_alpha;
    bool (*check)(const uint8_t *bytes, size_t size, const char *name, struct container_info *info,
                  struct error *error);
    bool (*read_metadata)(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error);
    bool (*write_metadata)(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint32_t *dropped,
                           struct error *error);
};

/* The largest width and height that are read or written. stb_image takes no image that is wider or higher than 2^24
 * (STBI_MAX_DIMENSIONS), and stb_image_write adds up differences of at most 128 along a row in int. The limit also
 * leaves CODEC_MAX_SAMPLES room for a filter byte a row. */
enum { FORMAT_SIDE_MOST = (1 << 24) - 1 };

/* All formats, FORMAT_COUNT rows. */
const struct format *formats(size_t *count);

/* The row of ID. */
const struct format *format_of(enum format_id id);

/* The format that a suffix without its dot names ("png", "jpg", "jpeg", in any case), or NULL. */
const struct format *format_find_by_suffix(const char *suffix);

/* The format that the suffix of a path names, or NULL. */
const struct format *format_find_by_path(const char *path);

/* The format that SIZE bytes begin like. NULL is an error, which says what they probably are; NAME is the file's. */
const struct format *format_find_by_magic(const uint8_t *bytes, size_t size, const char *name, struct error *error);

#endif
