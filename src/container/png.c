/* SPDX-License-Identifier: MIT */
#include "container/png.h"

#include <ctype.h>
#include <libdeflate.h>
#include <string.h>

const uint8_t png_signature[PNG_SIGNATURE] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};

struct png_walk png_walk_begin(const uint8_t *bytes, size_t size)
{
    return (struct png_walk){.bytes = bytes, .size = size, .at = PNG_SIGNATURE};
}

enum png_step png_walk_next(struct png_walk *walk, struct png_chunk *chunk)
{
    const size_t left = walk->size - walk->at;
    *chunk = (struct png_chunk){.at = walk->at};
    if (walk->ended)
        return PNG_STEP_END;
    if (left < PNG_CHUNK_OVERHEAD)
        return PNG_STEP_NO_CHUNK;
    const uint8_t *head = walk->bytes + walk->at;
    *chunk = (struct png_chunk){
        .at = walk->at,
        .head = head,
        .type = (const char *)head + 4,
        .data = head + PNG_CHUNK_HEAD,
        .size = big32(head),
    };
    for (int i = 0; i < 4; i++)
        if (!isalpha((unsigned char)chunk->type[i]))
            return PNG_STEP_NO_TYPE;
    if (chunk->size > INT32_MAX)
        return PNG_STEP_TOO_LONG;
    if (left - PNG_CHUNK_OVERHEAD < chunk->size)
        return PNG_STEP_TRUNCATED;
    walk->at += PNG_CHUNK_OVERHEAD + chunk->size;
    walk->ended = png_chunk_is(chunk, "IEND");
    return PNG_STEP_CHUNK;
}

bool png_chunk_is(const struct png_chunk *chunk, const char *type)
{
    return memcmp(chunk->type, type, 4) == 0;
}

bool png_chunk_is_needless(const struct png_chunk *chunk)
{
    static const char types[] = "acTL bKGD cHRM cICP cLLI dSIG eXIf fcTL fdAT gAMA gIFg gIFt gIFx hIST iCCP iTXt mDCV "
                                "oFFs pCAL pHYs sBIT sCAL sPLT sRGB sTER tEXt tIME zTXt";
    return memmem(types, sizeof types, chunk->type, 4) != NULL;
}

bool png_chunk_crc_fits(const struct png_chunk *chunk)
{
    return big32(chunk->data + chunk->size) == libdeflate_crc32(0, chunk->type, (size_t)chunk->size + 4);
}

struct png_header png_header_read(const uint8_t *data)
{
    return (struct png_header){
        .width = big32(data),
        .height = big32(data + 4),
        .bits = data[8],
        .colour = data[9],
        .compression = data[10],
        .filter = data[11],
        .interlace = data[12],
    };
}

struct png_header png_file_header(const uint8_t *bytes)
{
    return png_header_read(bytes + PNG_SIGNATURE + PNG_CHUNK_HEAD);
}

const uint8_t *png_stream_data(const struct png_stream *stream)
{
    return big32(stream->chunks) == stream->size ? stream->chunks + PNG_CHUNK_HEAD : NULL;
}

void png_stream_copy(const struct png_stream *stream, size_t first, size_t last, uint8_t *to)
{
    const uint8_t *chunk = stream->chunks;
    for (size_t at = 0, size; at < last; at += size, chunk += PNG_CHUNK_OVERHEAD + size) {
        size = big32(chunk);
        const size_t from = at > first ? at : first, end = at + size < last ? at + size : last;
        if (from < end)
            memcpy(to + (from - first), chunk + PNG_CHUNK_HEAD + (from - at), end - from);
    }
}

uint8_t *png_chunk_close(uint8_t *chunk, const char *type, size_t size)
{
    put_big32(chunk, (uint32_t)size);
    memcpy(chunk + 4, type, 4);
    put_big32(chunk + PNG_CHUNK_HEAD + size, libdeflate_crc32(0, chunk + 4, size + 4));
    return chunk + PNG_CHUNK_OVERHEAD + size;
}

bool png_chunk_append(struct blob *out, const char *type, const void *data, size_t size)
{
    uint8_t *chunk = blob_extend(out, PNG_CHUNK_OVERHEAD + size);
    if (chunk == NULL)
        return false;
    if (size > 0)
        memcpy(chunk + PNG_CHUNK_HEAD, data, size);
    png_chunk_close(chunk, type, size);
    return true;
}
