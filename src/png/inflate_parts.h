/* SPDX-License-Identifier: MIT
 *
 * Inflating one deflate stream on several threads (inflate.h). The stream is cut into parts. One thread asks for the
 * bytes from the first to the last, and the others help. The bytes never depend on the number of threads, or on their
 * speed. Damaged streams end early; another decoder says what is wrong. */
#ifndef GPUCONV_PNG_INFLATE_PARTS_H
#define GPUCONV_PNG_INFLATE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a stream is cut. */
struct inflate_cut {
    size_t part;    /* bytes of a part of the stream */
    size_t symbols; /* that are decoded of a part at most, before its bytes are asked for */
    int slots;      /* parts that are in memory */
};

/* The usual cut of a stream of SIZE bytes, which hold about BYTES, for so many THREADS. */
struct inflate_cut inflate_usual_cut(size_t size, size_t bytes, int threads);

/* Bytes of memory at most. */
size_t inflate_parts_need(const struct inflate_cut *cut);

struct inflate_parts;

/* Begin with the SIZE bytes of a stream. They must outlive the result. Release it with inflate_parts_free. NULL: there
 * is not enough memory. */
struct inflate_parts *inflate_parts_open(const uint8_t *stream, size_t size, const struct inflate_cut *cut);

/* Inflate the next SIZE bytes to OUT. Returns how many there are: fewer at the end, or before a damaged place. */
size_t inflate_parts_next(struct inflate_parts *parts, uint8_t *out, size_t size);

/* Do a piece of the work, on any thread, while others do the same or ask for bytes. Returns false if there is none now:
 * there may be some when the others return. */
bool inflate_parts_help(struct inflate_parts *parts);

/* The byte of the stream after its last block. 0: it is not known, because more bytes come, or a damaged place. */
size_t inflate_parts_end(struct inflate_parts *parts);

/* Release the parts. NULL is allowed. */
void inflate_parts_free(struct inflate_parts *parts);

#endif
