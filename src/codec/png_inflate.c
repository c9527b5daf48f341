/* SPDX-License-Identifier: MIT
 *
 * Inflating by libdeflate: all bytes at once into one buffer, from which they are copied. */
#include "codec/png_picture.h"
#include "container/zlib.h"

#include <stdlib.h>
#include <string.h>

struct png_inflater {
    const struct codec_input *input;
    const struct png_picture *picture;
    size_t size, spare; /* bytes of the rows; how many more are ignored */
    size_t done;
    uint8_t *rows; /* NULL before the first byte is read */
};

struct png_inflater *png_inflate_open(const struct codec_input *input, const struct png_picture *picture, size_t size,
                                      struct error *error)
{
    enum { SPARE_BYTES = 1 << 16 }; /* besides a row; a stream with more bytes is damaged */
    struct png_inflater *inflater = malloc(sizeof *inflater);
    if (inflater == NULL) {
        codec_report_decode_memory(input, error);
        return NULL;
    }
    *inflater = (struct png_inflater){.input = input,
                                      .picture = picture,
                                      .size = size,
                                      .spare = png_row_bytes(picture, picture->width) + SPARE_BYTES};
    return inflater;
}

/* The data of all IDAT chunks: those of the only one, or a copy in *JOINED. NULL: there is not enough memory. */
static const uint8_t *join_stream(const struct png_inflater *inflater, uint8_t **joined)
{
    const struct codec_input *input = inflater->input;
    struct png_walk walk = {.bytes = input->bytes, .size = input->size, .at = inflater->picture->stream};
    struct png_chunk chunk;
    *joined = NULL;
    if (png_walk_next(&walk, &chunk) == PNG_STEP_CHUNK && chunk.size == inflater->picture->stream_size)
        return chunk.data;
    uint8_t *to = *joined = malloc(inflater->picture->stream_size);
    for (; to != NULL && png_chunk_is(&chunk, "IDAT"); png_walk_next(&walk, &chunk)) {
        memcpy(to, chunk.data, chunk.size);
        to += chunk.size;
    }
    return *joined;
}

/* Inflate the rows, or up to SPARE bytes more: some writers add a few bytes, and all readers ignore them. Returns false
 * with a reason, or without one if there is not enough memory. */
static bool inflate_rows(struct png_inflater *inflater, const char **reason)
{
    const size_t capacity = inflater->size + inflater->spare;
    size_t used = 0;
    uint8_t *joined;
    const uint8_t *stream = join_stream(inflater, &joined);
    *reason = NULL;
    inflater->rows = malloc(capacity);
    const enum zlib_result result =
        stream == NULL || inflater->rows == NULL
            ? ZLIB_NO_MEMORY
            : zlib_inflate(stream, inflater->picture->stream_size, inflater->rows, capacity, &used);
    free(joined);
    switch (result) {
    case ZLIB_DONE:
        if (used >= inflater->size)
            return true;
        *reason = "it ends before the last row";
        break;
    case ZLIB_NO_MEMORY:
        break;
    case ZLIB_UNKNOWN:
        *reason = "its compression is unknown";
        break;
    case ZLIB_DAMAGED:
        *reason = "its compression or checksum is damaged";
        break;
    case ZLIB_TOO_LARGE:
        *reason = "it goes on after the last row";
        break;
    }
    return false;
}

bool png_inflate_next(struct png_inflater *inflater, uint8_t *out, size_t size, struct error *error)
{
    const char *reason;
    if (inflater->rows == NULL && !inflate_rows(inflater, &reason))
        return reason != NULL ? codec_report_damaged(inflater->input, reason, error)
                              : codec_report_decode_memory(inflater->input, error);
    memcpy(out, inflater->rows + inflater->done, size);
    inflater->done += size;
    return true;
}

void png_inflate_close(struct png_inflater *inflater)
{
    if (inflater == NULL)
        return;
    free(inflater->rows);
    free(inflater);
}
