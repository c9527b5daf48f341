/* SPDX-License-Identifier: MIT
 *
 * zlib streams (RFC 1950): inflate the picture of a PNG, and its compressed profile and texts. */
#ifndef GPUCONV_CONTAINER_ZLIB_H
#define GPUCONV_CONTAINER_ZLIB_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a stream before and after the compressed data. */
enum { ZLIB_HEAD = 2, ZLIB_TAIL = 4 };

enum zlib_result {
    ZLIB_DONE,
    ZLIB_NO_MEMORY,
    ZLIB_UNKNOWN,   /* the head names another compression, or a dictionary */
    ZLIB_DAMAGED,   /* the data cannot be inflated, or the checksum is wrong */
    ZLIB_TOO_LARGE, /* the data do not fit into the buffer */
};

/* Is the head known: the method deflate, a window of at most 32 KiB, a multiple of 31, and no dictionary? */
bool zlib_head_is_known(const uint8_t head[ZLIB_HEAD]);

/* Inflate the SIZE bytes at STREAM into the CAPACITY bytes at OUT, and check the checksum. *USED becomes the number of
 * bytes written. Bytes after the checksum are ignored: *READ, unless READ is NULL, becomes the size of the stream. */
enum zlib_result zlib_inflate(const uint8_t *stream, size_t size, uint8_t *out, size_t capacity, size_t *read,
                              size_t *used);

/* Inflate a stream of unknown length into OUT, which is empty before, up to MAX bytes, at least one. *SIZE
 * becomes the size of the stream itself. After a failure OUT has the size that was tried. Release OUT with blob_free,
 * whatever the result is. */
enum zlib_result zlib_inflate_blob(const uint8_t *stream, size_t *size, size_t max, struct blob *out);

#endif
