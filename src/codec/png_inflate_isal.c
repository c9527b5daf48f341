/* SPDX-License-Identifier: MIT
 *
 * Inflating by libisal: as many bytes as are wanted, from one IDAT chunk after the other. */
#include "codec/png_picture.h"

#include <isa-l/igzip_lib.h>
#include <stdlib.h>

struct png_inflater {
    const struct codec_input *input;
    struct png_walk walk; /* over the IDAT chunks */
    size_t left, spare;   /* bytes of the rows; how many may follow them */
    struct inflate_state stream;
};

/* Give the next chunk with data to the stream, which has read all data before. There may be none. */
static void next_chunk(struct png_inflater *inflater)
{
    struct png_chunk chunk;
    while (inflater->stream.avail_in == 0 && png_walk_next(&inflater->walk, &chunk) == PNG_STEP_CHUNK &&
           png_chunk_is(&chunk, "IDAT")) {
        inflater->stream.next_in = (uint8_t *)chunk.data; /* it is only read */
        inflater->stream.avail_in = chunk.size;
    }
}

/* Read the head of the stream. It may lie in two chunks. */
static bool read_head(struct png_inflater *inflater)
{
    uint8_t head[ZLIB_HEAD];
    for (int i = 0; i < ZLIB_HEAD; i++) {
        next_chunk(inflater);
        if (inflater->stream.avail_in == 0)
            return false;
        head[i] = *inflater->stream.next_in++;
        inflater->stream.avail_in--;
    }
    next_chunk(inflater);
    return inflater->stream.avail_in > 0 && zlib_head_is_known(head);
}

size_t png_inflate_need(const struct codec_info *info)
{
    (void)info;
    return sizeof(struct png_inflater);
}

struct png_inflater *png_inflate_open(const struct codec_input *input, const struct png_picture *picture, size_t size,
                                      struct error *error)
{
    struct png_inflater *inflater = malloc(sizeof *inflater);
    if (inflater == NULL) {
        error_no_memory(error, "the decoder");
        return NULL;
    }
    inflater->input = input;
    inflater->walk = (struct png_walk){
        .bytes = input->bytes, .size = input->size, .at = (size_t)(picture->stream.chunks - input->bytes)};
    inflater->left = size;
    inflater->spare = png_inflate_spare(picture);
    isal_inflate_init(&inflater->stream);
    inflater->stream.crc_flag = ISAL_ZLIB_NO_HDR_VER; /* the head is read here; the checksum is compared there */
    if (read_head(inflater))
        return inflater;
    free(inflater);
    png_inflate_report(input, ZLIB_UNKNOWN, error);
    return NULL;
}

/* Inflate up to SIZE bytes to OUT. *PRODUCED becomes their number. It is below SIZE only at the end of the stream. */
static enum zlib_result inflate(struct png_inflater *inflater, uint8_t *out, uint32_t size, uint32_t *produced)
{
    struct inflate_state *stream = &inflater->stream;
    stream->next_out = out;
    stream->avail_out = size;
    while (stream->avail_out > 0 && stream->block_state != ISAL_BLOCK_FINISH) {
        next_chunk(inflater);
        const uint32_t data = stream->avail_in, room = stream->avail_out;
        if (isal_inflate(stream) != ISAL_DECOMP_OK)
            return ZLIB_DAMAGED;
        if (stream->block_state != ISAL_BLOCK_FINISH && stream->avail_in == data && stream->avail_out == room)
            return ZLIB_DAMAGED; /* all data are read, and the stream goes on */
    }
    *produced = size - stream->avail_out;
    return ZLIB_DONE;
}

/* Inflate what follows the rows, up to a byte too many. */
static enum zlib_result inflate_spare(struct png_inflater *inflater)
{
    uint8_t bytes[4096];
    enum zlib_result result;
    uint32_t produced = 0, step;
    size_t room = inflater->spare + 1;
    do {
        step = room < sizeof bytes ? (uint32_t)room : sizeof bytes;
        result = inflate(inflater, bytes, step, &produced);
        room -= produced;
    } while (result == ZLIB_DONE && produced == step && room > 0);
    return result == ZLIB_DONE && room == 0 ? ZLIB_TOO_LARGE : result;
}

bool png_inflate_next(struct png_inflater *inflater, uint8_t *out, size_t size, struct error *error)
{
    enum { STEP = 1 << 30 }; /* libisal counts in 32 bits */
    enum zlib_result result = ZLIB_DONE;
    while (result == ZLIB_DONE && size > 0) {
        const uint32_t step = size < STEP ? (uint32_t)size : STEP;
        uint32_t produced = 0;
        result = inflate(inflater, out, step, &produced);
        if (result != ZLIB_DONE || produced < step)
            return png_inflate_report(inflater->input, result, error);
        inflater->left -= step;
        out += step;
        size -= step;
    }
    if (inflater->left == 0)
        result = inflate_spare(inflater);
    return result == ZLIB_DONE || png_inflate_report(inflater->input, result, error);
}
