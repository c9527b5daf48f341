/* SPDX-License-Identifier: MIT
 *
 * The chunks of a PNG in memory, for the fuzzers. It shares nothing with gpuconv but libdeflate's CRC.
 *
 * A PNG is a signature and chunks; a chunk is a length (4 bytes), a name (4), data, and a checksum of name and data
 * (4). Numbers are big-endian. */
#ifndef GPUCONV_PNG_CHUNKS_H
#define GPUCONV_PNG_CHUNKS_H

#include <libdeflate.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum { PNG_SIGNATURE = 8, PNG_DATA = 8, PNG_OVERHEAD = 12 }; /* bytes: of a file, before and around a chunk's data */

static inline bool is_png(const uint8_t *data, size_t size)
{
    return size > PNG_SIGNATURE && memcmp(data, "\x89PNG", 4) == 0;
}

static inline void png_put32(uint8_t *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* The length of the data of the chunk at AT; SIZE_MAX if the chunk is not whole. */
static inline size_t png_chunk_length(const uint8_t *data, size_t size, size_t at)
{
    if (size < at + PNG_OVERHEAD)
        return SIZE_MAX;
    const uint8_t *bytes = data + at;
    const size_t length = (size_t)bytes[0] << 24 | (size_t)bytes[1] << 16 | (size_t)bytes[2] << 8 | bytes[3];
    return length > size - at - PNG_OVERHEAD ? SIZE_MAX : length;
}

/* Put the right checksum on each whole chunk. */
static inline void png_mend_checksums(uint8_t *data, size_t size)
{
    size_t at = PNG_SIGNATURE;
    for (size_t length; (length = png_chunk_length(data, size, at)) != SIZE_MAX; at += PNG_OVERHEAD + length)
        png_put32(data + at + PNG_DATA + length, libdeflate_crc32(0, data + at + 4, length + 4));
}

#endif
