/* SPDX-License-Identifier: MIT
 *
 * Inflating one deflate stream on one thread. The stream comes in pieces, which are copied to a buffer. */
#ifndef GPUCONV_PNG_INFLATE_STREAM_H
#define GPUCONV_PNG_INFLATE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Copies the next bytes of a stream to OUT. Returns their number: SIZE, or fewer at the end of the stream. */
typedef size_t inflate_read(void *context, uint8_t *out, size_t size);

struct inflate_stream;

/* Begin with a stream. READ is called with CONTEXT. Release the result with free. It is NULL if there is not enough
 * memory. */
struct inflate_stream *inflate_stream_open(inflate_read *read, void *context);

/* Bytes of memory. */
size_t inflate_stream_need(void);

/* Inflate the next SIZE bytes to OUT. Returns how many there are: fewer at the end, or before a damaged place. */
size_t inflate_stream_next(struct inflate_stream *stream, uint8_t *out, size_t size);

/* Copy the SIZE bytes that follow the last block to OUT. Returns false if the stream has not ended, or if there are
 * fewer. */
bool inflate_stream_end(struct inflate_stream *stream, uint8_t *out, size_t size);

#endif
