/* SPDX-License-Identifier: MIT
 *
 * PNG's container: a signature, then chunks (PNG, third edition, section 5). One walker, which the check, the codecs and
 * the metadata use, and what puts a chunk together. Knows nothing of samples. */
#ifndef GPUCONV_CONTAINER_PNG_H
#define GPUCONV_CONTAINER_PNG_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PNG_SIGNATURE = 8,       /* bytes before the first chunk */
    PNG_CHUNK_HEAD = 8,      /* a chunk's length and type, before its data */
    PNG_CHUNK_OVERHEAD = 12, /* and its CRC, behind its data */
    PNG_HEADER_DATA = 13,    /* bytes of data in IHDR */
    PNG_PALETTE_MOST = 256,  /* entries of PLTE */
};

/* The bits of a colour type. */
enum { PNG_PALETTE = 1, PNG_COLOUR = 2, PNG_ALPHA = 4 };

extern const uint8_t png_signature[PNG_SIGNATURE];

/* A chunk that lies in the file as a whole. */
struct png_chunk {
    size_t at;           /* where its length begins in the file */
    const uint8_t *head; /* its length; its type and data follow */
    const char *type;    /* four letters, without a NUL */
    const uint8_t *data;
    uint32_t size; /* of the data in bytes */
};

/* What a step of the walk found. */
enum png_step {
    PNG_STEP_CHUNK,
    PNG_STEP_END,       /* IEND was the chunk before; nothing behind it is read */
    PNG_STEP_NO_CHUNK,  /* fewer bytes are left than the smallest chunk has */
    PNG_STEP_NO_TYPE,   /* there are no four letters where the type should be */
    PNG_STEP_TOO_LONG,  /* the length is above 2^31 - 1 */
    PNG_STEP_TRUNCATED, /* the chunk is longer than the rest of the file */
};

/* A walk over the chunks of a file. */
struct png_walk {
    const uint8_t *bytes;
    size_t size;
    size_t at; /* where the next chunk begins */
    bool ended;
};

/* Begin at the first chunk. The file is as long as its signature at least. */
struct png_walk png_walk_begin(const uint8_t *bytes, size_t size);

/* Step to the next chunk, and fill CHUNK. On a failure its place, type and length are set where they are in the file, and
 * the walk stays where it is. The CRC is not checked. */
enum png_step png_walk_next(struct png_walk *walk, struct png_chunk *chunk);

/* Is CHUNK of this type, four letters? */
bool png_chunk_is(const struct png_chunk *chunk, const char *type);

/* Does the CRC behind the data of CHUNK fit them and the type? */
bool png_chunk_crc_fits(const struct png_chunk *chunk);

/* The fields of IHDR, as they stand in the file. */
struct png_header {
    uint32_t width, height;
    unsigned bits, colour, compression, filter, interlace;
};

/* Read the PNG_HEADER_DATA bytes of data of IHDR. */
struct png_header png_header_read(const uint8_t *data);

/* The header of a file that png_check has found to be whole: IHDR is its first chunk. */
struct png_header png_file_header(const uint8_t *bytes);

/* Put length, type and CRC around the SIZE bytes of data at CHUNK + PNG_CHUNK_HEAD, and return where the next chunk
 * begins. */
uint8_t *png_chunk_close(uint8_t *chunk, const char *type, size_t size);

/* Append a chunk with SIZE bytes of data to OUT. False where there is not enough memory. */
bool png_chunk_append(struct blob *out, const char *type, const void *data, size_t size);

#endif
