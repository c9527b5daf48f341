/* SPDX-License-Identifier: MIT
 *
 * Inflating by libdeflate: all bytes at once into one buffer when it is opened. They are copied from there. */
#include "codec/png_picture.h"

#include <stdlib.h>
#include <string.h>

struct png_inflater {
    size_t done; /* bytes of the rows that were copied */
    uint8_t rows[];
};

/* All rows, and the data of the chunks when they are joined. */
size_t png_inflate_need(const struct codec_info *info)
{
    enum { OTHER = 1 << 17 }; /* the decompressor, and what may follow the rows */
    const size_t row = (size_t)info->width * (size_t)info->channels * (size_t)info->bits / 8 + 1;
    return row * ((size_t)info->height + 1) + info->size + OTHER;
}

/* The data of all IDAT chunks: those of the only one, or a copy in *JOINED. NULL: there is not enough memory. */
static const uint8_t *join_stream(const struct png_stream *stream, uint8_t **joined)
{
    const uint8_t *data = png_stream_data(stream);
    *joined = data != NULL ? NULL : malloc(stream->size);
    if (*joined != NULL)
        png_stream_copy(stream, 0, stream->size, *joined);
    return data != NULL ? data : *joined;
}

struct png_inflater *png_inflate_open(const struct codec_input *input, const struct png_picture *picture, size_t size,
                                      struct error *error)
{
    const size_t capacity = size + png_inflate_spare(picture);
    struct png_inflater *inflater = malloc(sizeof *inflater + capacity);
    enum zlib_result result = ZLIB_NO_MEMORY;
    size_t used = 0;
    uint8_t *joined;
    const uint8_t *stream = join_stream(&picture->stream, &joined);
    if (inflater != NULL && stream != NULL)
        result = zlib_inflate(stream, picture->stream.size, inflater->rows, capacity, NULL, &used);
    free(joined);
    if (result == ZLIB_DONE && used >= size) {
        inflater->done = 0;
        return inflater;
    }
    free(inflater);
    png_inflate_report(input, result, error);
    return NULL;
}

bool png_inflate_next(struct png_inflater *inflater, uint8_t *out, size_t size, struct error *error)
{
    (void)error; /* the opening has found all errors */
    memcpy(out, inflater->rows + inflater->done, size);
    inflater->done += size;
    return true;
}
