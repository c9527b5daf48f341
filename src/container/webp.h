/* SPDX-License-Identifier: MIT
 *
 * The container of WebP: RIFF chunks (RFC 9649, section 2). This file walks over chunks for the check and the metadata,
 * and writes them. It knows nothing of samples. */
#ifndef GPUCONV_WEBP_H
#define GPUCONV_WEBP_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WEBP_HEAD = 12,          /* "RIFF", the bytes after this number, "WEBP" */
    WEBP_CHUNK_HEAD = 8,     /* a chunk's type and length, before its data; a zero follows data of an odd length */
    WEBP_EXTENDED_DATA = 10, /* bytes of data in VP8X: flags, 3 zeros, width - 1 and height - 1 in 3 bytes each */
    WEBP_SIDE_MAX = 1 << 14, /* pixels on a side of a picture */
};

/* The flags of VP8X. */
enum { WEBP_ANIMATION = 2, WEBP_XMP = 4, WEBP_EXIF = 8, WEBP_ALPHA = 16, WEBP_ICC = 32 };

/* The picture of a file, or a frame of an animation. If a picture is made of several frames, one over the other, its
 * sides are those of the canvas and its size is the sum, and it is lossless or has alpha if one of them is so, or
 * leaves a hole. */
struct webp_header {
    int x, y, width, height; /* its position on the canvas, which it fills unless the file is an animation */
    bool has_alpha, lossless;
    bool blends,
        clears;        /* a frame that is put over what is there, which its alpha shows; one that is removed after it */
    size_t data, size; /* its chunks in the file: VP8L, or VP8 and before it perhaps ALPH */
    size_t start;      /* the offset of the chunk of the first frame that it is made of */
    int frames;        /* the number of these frames, one after the other */
};

/* A complete chunk. */
struct webp_chunk {
    size_t at;           /* the offset of its type in the file */
    const uint8_t *type; /* four letters */
    const uint8_t *data;
    size_t size; /* bytes of the data */
};

/* A walk over the chunks in the first END of BYTES. */
struct webp_walk {
    const uint8_t *bytes;
    size_t end, at; /* AT is the offset of the next chunk */
};

/* Begin a walk at the first chunk of a file, which is at least as long as its head says. */
struct webp_walk webp_walk_begin(const uint8_t *bytes);

/* Step to the next chunk and fill CHUNK. Returns false at the end; walk->at is less than walk->end if the chunk there
 * is longer than what is left. */
bool webp_walk_next(struct webp_walk *walk, struct webp_chunk *chunk);

/* Step to the next frame of an animation that was checked, and fill FRAME but for its start and frames. Returns
 * false at the end. */
bool webp_next_frame(struct webp_walk *walk, struct webp_header *frame);

/* Is CHUNK of this type, four letters? */
static inline bool webp_chunk_is(const struct webp_chunk *chunk, const char *type)
{
    return memcmp(chunk->type, type, 4) == 0;
}

/* Append a chunk with SIZE bytes of data. Returns false if there is not enough memory. */
bool webp_chunk_append(struct blob *out, const char *type, const uint8_t *data, size_t size);

/* The bytes of the file from "RIFF" on, as its head says. */
static inline uint64_t webp_file_size(const uint8_t *bytes)
{
    return (uint64_t)WEBP_CHUNK_HEAD + bytes_number(bytes + 4, 4, false);
}

#endif
