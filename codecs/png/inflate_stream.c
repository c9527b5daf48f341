/* SPDX-License-Identifier: MIT */
#include "png/png.h"

#include "png/inflate.h"

#include <stdlib.h>
#include <string.h>

enum {
    INPUT = 1 << 15,  /* bytes of the stream that are read at once */
    OUTPUT = 1 << 16, /* bytes that are inflated at once */
};

struct inflate_stream {
    inflate_read *read;
    void *context;
    struct inflate_decoder decoder;
    size_t known;      /* bytes of the window before the output that there are */
    size_t begin, end; /* the bytes of the output that are next */
    uint8_t input[INPUT], output[DEFLATE_WINDOW + OUTPUT + INFLATE_SPARE];
};

size_t inflate_stream_need(void)
{
    return sizeof(struct inflate_stream);
}

/* Move the bytes of the input that are not decoded to its beginning, and read more after them. */
static void read_more_input(struct inflate_stream *stream)
{
    const size_t done = stream->decoder.bit / 8, left = stream->decoder.size - done;
    memmove(stream->input, stream->input + done, left);
    const size_t read = stream->read(stream->context, stream->input + left, INPUT - left);
    inflate_continue(&stream->decoder, stream->input, left + read, left + read == INPUT);
}

struct inflate_stream *inflate_stream_open(inflate_read *read, void *context)
{
    struct inflate_stream *stream = malloc(sizeof *stream); /* to set all to 0 takes longer than a small picture */
    if (stream == NULL)
        return NULL;
    stream->read = read;
    stream->context = context;
    stream->known = stream->begin = stream->end = 0;
    inflate_begin(&stream->decoder, (const uint8_t *)"", 0, 0);
    read_more_input(stream);
    return stream;
}

/* Inflate the next SIZE bytes, and up to INFLATE_SPARE more, to OUT, after the window. Returns their number. */
static size_t inflate_more(struct inflate_stream *stream, uint8_t *out, size_t size)
{
    struct inflate_decoder *decoder = &stream->decoder;
    struct inflate_output output = {.end = size, .known = stream->known};
    while (decoder->state < INFLATE_END && output.at < size) {
        inflate_bytes(decoder, out, &output, UINT64_MAX);
        if (decoder->has_more && output.at < size)
            read_more_input(stream);
    }
    stream->known = stream->known + output.at < DEFLATE_WINDOW ? stream->known + output.at : DEFLATE_WINDOW;
    return output.at;
}

size_t inflate_stream_next(struct inflate_stream *stream, uint8_t *out, size_t size)
{
    uint8_t *window = stream->output, *bytes = window + DEFLATE_WINDOW;
    size_t done = 0;
    while (done < size) {
        if (stream->begin == stream->end && done >= DEFLATE_WINDOW && size - done > OUTPUT) {
            done += inflate_more(stream, out + done, size - done - INFLATE_SPARE); /* OUT has the window, too */
            memcpy(window, out + done - DEFLATE_WINDOW, DEFLATE_WINDOW);
            stream->begin = stream->end = 0;
        }
        if (stream->begin == stream->end) {
            memmove(window, window + stream->end, DEFLATE_WINDOW);
            stream->begin = 0;
            stream->end = inflate_more(stream, bytes, OUTPUT);
            if (stream->end == 0)
                break;
        }
        const size_t left = stream->end - stream->begin, some = size - done < left ? size - done : left;
        memcpy(out + done, bytes + stream->begin, some);
        stream->begin += some;
        done += some;
    }
    return done;
}

bool inflate_stream_end(struct inflate_stream *stream, uint8_t *out, size_t size)
{
    const struct inflate_decoder *decoder = &stream->decoder;
    if (stream->begin < stream->end || decoder->state != INFLATE_END)
        return false;
    const size_t end = (size_t)((decoder->bit + 7) / 8), left = decoder->size - end, some = left < size ? left : size;
    memcpy(out, stream->input + end, some);
    return some == size || (decoder->has_more && stream->read(stream->context, out + some, size - some) == size - some);
}
