/* SPDX-License-Identifier: MIT
 *
 * zlib streams (RFC 1950), inflated: the picture of a PNG, and its compressed profile and texts. */
#ifndef GPUCONV_CONTAINER_ZLIB_H
#define GPUCONV_CONTAINER_ZLIB_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a stream has before and behind the compressed data. */
enum { ZLIB_HEAD = 2, ZLIB_TAIL = 4 };

enum zlib_result {
    ZLIB_DONE,
    ZLIB_NO_MEMORY,
    ZLIB_UNKNOWN,  /* the head names another compression, or a dictionary */
    ZLIB_DAMAGED,  /* what cannot be inflated, or does not fit its checksum */
    ZLIB_TOO_LARGE /* more would come than there is room for */
};

/* Inflate the SIZE bytes at STREAM into OUT, which has room for CAPACITY bytes; *USED becomes the number of those that
 * are filled. With TRUSTED the checksum at the end of the stream is not looked at: a CRC around it has been. */
enum zlib_result zlib_inflate(const uint8_t *stream, size_t size, bool trusted, uint8_t *out, size_t capacity,
                              size_t *used);

/* Inflate a stream of unknown length and at most MOST bytes into OUT, which is empty before. The checksum counts. OUT is
 * to be released with blob_free whatever the result. */
enum zlib_result zlib_inflate_blob(const uint8_t *stream, size_t size, size_t most, struct blob *out);

#endif
