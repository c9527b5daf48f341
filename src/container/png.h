/* SPDX-License-Identifier: MIT
 *
 * The container of PNG: a signature, then chunks (PNG, third edition, section 5). This file walks over chunks for the
 * check, the codecs and the metadata, and writes them. It knows nothing of samples. */
#ifndef GPUCONV_CONTAINER_PNG_H
#define GPUCONV_CONTAINER_PNG_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PNG_SIGNATURE = 8,       /* bytes before the first chunk */
    PNG_CHUNK_HEAD = 8,      /* a chunk's length and type, before its data */
    PNG_CHUNK_OVERHEAD = 12, /* a chunk's length, type and CRC: all of it but its data */
    PNG_HEADER_DATA = 13,    /* bytes of data in IHDR */
    PNG_PALETTE_MAX = 256,   /* entries of PLTE */
};

/* The bits of a colour type. */
enum { PNG_PALETTE = 1, PNG_COLOUR = 2, PNG_ALPHA = 4 };

extern const uint8_t png_signature[PNG_SIGNATURE];

/* A complete chunk of a file. */
struct png_chunk {
    size_t at;           /* the offset of its length in the file */
    const uint8_t *head; /* its length; its type and data follow */
    const char *type;    /* four letters, without a NUL */
    const uint8_t *data;
    uint32_t size; /* bytes of the data */
};

/* The result of a step of the walk. */
enum png_step {
    PNG_STEP_CHUNK,
    PNG_STEP_END,       /* the last chunk was IEND; the walk ignores later bytes */
    PNG_STEP_NO_CHUNK,  /* fewer bytes are left than the size of the smallest chunk */
    PNG_STEP_NO_TYPE,   /* the type is not four letters */
    PNG_STEP_TOO_LONG,  /* the length is above 2^31 - 1 */
    PNG_STEP_TRUNCATED, /* the chunk is longer than the rest of the file */
};

/* A walk over the chunks of a file. */
struct png_walk {
    const uint8_t *bytes;
    size_t size;
    size_t at; /* the offset of the next chunk */
    bool ended;
};

/* Begin a walk at the first chunk. The file must be at least as long as its signature. */
struct png_walk png_walk_begin(const uint8_t *bytes, size_t size);

/* Step to the next chunk and fill CHUNK. After a failure, CHUNK has the offset, type and length that are in the file,
 * and the walk stays where it is. The CRC is not checked. */
enum png_step png_walk_next(struct png_walk *walk, struct png_chunk *chunk);

/* Is CHUNK of this type, four letters? */
bool png_chunk_is(const struct png_chunk *chunk, const char *type);

/* Is CHUNK of a type that no picture needs? tRNS is not: without it, invisible pixels would show. Neither is an unknown
 * type, because a damaged one may have been any other. */
bool png_chunk_is_needless(const struct png_chunk *chunk);

/* Is the CRC of CHUNK right for its type and data? */
bool png_chunk_crc_fits(const struct png_chunk *chunk);

/* The fields of IHDR. */
struct png_header {
    uint32_t width, height;
    unsigned bits, colour, compression, filter, interlace;
};

/* Read the fields from the PNG_HEADER_DATA bytes of data of IHDR. */
struct png_header png_header_read(const uint8_t *data);

/* The header of a file that png_check has accepted: IHDR is its first chunk. */
struct png_header png_file_header(const uint8_t *bytes);

/* The data of all IDAT chunks of a file that png_check has accepted, so these chunks follow each other. */
struct png_stream {
    const uint8_t *chunks; /* the length of the first one */
    size_t size;           /* bytes of data */
};

/* The data, if one chunk has them all; else NULL. */
const uint8_t *png_stream_data(const struct png_stream *stream);

/* Copy the data from byte FIRST up to, not including, byte LAST. */
void png_stream_copy(const struct png_stream *stream, size_t first, size_t last, uint8_t *to);

/* Write the length, type and CRC of a chunk around the SIZE bytes of data at CHUNK + PNG_CHUNK_HEAD. Returns where
 * the next chunk begins. */
uint8_t *png_chunk_close(uint8_t *chunk, const char *type, size_t size);

/* Append a chunk with SIZE bytes of data to OUT. Returns false if there is not enough memory. */
bool png_chunk_append(struct blob *out, const char *type, const void *data, size_t size);

#endif
