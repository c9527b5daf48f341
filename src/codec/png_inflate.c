/* SPDX-License-Identifier: MIT
 *
 * Inflating by libdeflate: all bytes at once into one buffer, from which they are copied. */
#include "codec/png_picture.h"

#include <stdlib.h>
#include <string.h>

struct png_inflater {
    const struct codec_input *input;
    const struct png_picture *picture;
    size_t size;   /* bytes of the rows */
    size_t done;   /* bytes that were read */
    uint8_t *rows; /* NULL before the first of them */
};

/* All rows, and the data of the chunks when they are joined. */
size_t png_inflate_need(const struct codec_info *info)
{
    enum { OTHER = 1 << 17 }; /* the decompressor, and what may follow the rows */
    const size_t row = (size_t)info->width * (size_t)info->channels * (size_t)info->bits / 8 + 1;
    return row * ((size_t)info->height + 1) + info->size + OTHER;
}

struct png_inflater *png_inflate_open(const struct codec_input *input, const struct png_picture *picture, size_t size,
                                      struct error *error)
{
    struct png_inflater *inflater = malloc(sizeof *inflater);
    if (inflater == NULL)
        codec_report_decode_memory(input, error);
    else
        *inflater = (struct png_inflater){.input = input, .picture = picture, .size = size};
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

/* Inflate all rows. ZLIB_DONE: the stream may be too short. */
static enum zlib_result inflate_rows(struct png_inflater *inflater, size_t *used)
{
    const size_t capacity = inflater->size + png_inflate_spare(inflater->picture);
    uint8_t *joined;
    const uint8_t *stream = join_stream(inflater, &joined);
    inflater->rows = malloc(capacity);
    const enum zlib_result result =
        stream == NULL || inflater->rows == NULL
            ? ZLIB_NO_MEMORY
            : zlib_inflate(stream, inflater->picture->stream_size, inflater->rows, capacity, used);
    free(joined);
    return result;
}

bool png_inflate_next(struct png_inflater *inflater, uint8_t *out, size_t size, struct error *error)
{
    if (inflater->rows == NULL) {
        size_t used = 0;
        const enum zlib_result result = inflate_rows(inflater, &used);
        if (result != ZLIB_DONE || used < inflater->size)
            return png_inflate_report(inflater->input, result, error);
    }
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
