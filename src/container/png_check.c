/* SPDX-License-Identifier: MIT
 *
 * The check of a PNG: the signature, the order of the chunks, their CRCs and sizes. */
#include "container/check.h"
#include "container/other_content.h"
#include "container/png.h"
#include "container/report.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

struct png_state {
    struct checked_file file;
    struct codec_info info;
    unsigned colour;        /* type, as in PNG_PALETTE, PNG_COLOUR and PNG_ALPHA */
    uint32_t palette;       /* entries of PLTE; 0 before that */
    bool transparency;      /* tRNS was met */
    bool picture, finished; /* IDAT was met; another chunk was met after it */
    uint64_t data;          /* bytes in IDAT */
};

static bool check_header(const struct png_chunk *chunk, struct png_state *state)
{
    /* Bit N is set if a colour type may have N bits a sample. */
    static const uint32_t depths[7] = {
        [0] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16,
        [PNG_COLOUR] = 1 << 8 | 1 << 16,
        [PNG_COLOUR | PNG_PALETTE] = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 8,
        [PNG_ALPHA] = 1 << 8 | 1 << 16,
        [PNG_COLOUR | PNG_ALPHA] = 1 << 8 | 1 << 16,
    };
    if (chunk->size != PNG_HEADER_DATA)
        return DAMAGED(state, "its IHDR chunk has %u bytes instead of 13", chunk->size);
    const struct png_header header = png_header_read(chunk->data);
    state->info = (struct codec_info){
        .width = (int)header.width,
        .height = (int)header.height,
        .channels = (header.colour & PNG_COLOUR ? 3 : 1) + (header.colour & PNG_ALPHA ? 1 : 0),
        .bits = (int)header.bits,
        .interlaced = header.interlace != 0,
    };
    state->colour = header.colour;
    if (header.width < 1 || header.height < 1 || header.width > INT32_MAX || header.height > INT32_MAX)
        return DAMAGED(state, "it claims %u x %u pixels", header.width, header.height);
    if (header.colour > 6 || header.bits > 16 || !(depths[header.colour] >> header.bits & 1))
        return DAMAGED(state, "there is no colour type %u with %u bits per sample", header.colour, header.bits);
    if (header.compression != 0 || header.filter != 0 || header.interlace > 1)
        return DAMAGED(state, "compression %u, filter %u, interlace %u are unknown", header.compression, header.filter,
                       header.interlace);
    return true;
}

/* Check PLTE. A colour image may have one, but does not use it. */
static bool check_palette(const struct png_chunk *chunk, struct png_state *state)
{
    if (state->palette > 0 || state->picture || state->transparency)
        return DAMAGED(state, "chunk PLTE at byte %zu is %s", chunk->at,
                       state->palette > 0 ? "not the first" : "too late");
    if (chunk->size == 0 || chunk->size % 3 != 0 || chunk->size > 3 * PNG_PALETTE_MAX)
        return DAMAGED(state, "its PLTE chunk has %u bytes", chunk->size);
    state->palette = chunk->size / 3;
    return true;
}

/* Check tRNS: the alpha of the palette's first colours, or the one transparent colour in 2 bytes a channel. */
static bool check_transparency(const struct png_chunk *chunk, struct png_state *state)
{
    const bool paletted = state->colour & PNG_PALETTE;
    if (state->transparency || state->picture || (paletted && state->palette == 0))
        return DAMAGED(state, "chunk tRNS at byte %zu is %s", chunk->at,
                       state->transparency ? "not the first"
                       : state->picture    ? "too late"
                                           : "before PLTE");
    if (state->colour & PNG_ALPHA)
        return DAMAGED(state, "it has an alpha channel and chunk tRNS at byte %zu", chunk->at);
    if (paletted ? chunk->size > state->palette : chunk->size != 2 * (uint32_t)state->info.channels)
        return DAMAGED(state, "its tRNS chunk has %u bytes", chunk->size);
    state->transparency = true;
    return true;
}

/* Check one complete chunk. One whose CRC is wrong is ignored if no picture needs it. */
static bool check_chunk(const struct png_chunk *chunk, struct png_state *state)
{
    const bool first = chunk->at == PNG_SIGNATURE, picture = png_chunk_is(chunk, "IDAT");
    const bool end = png_chunk_is(chunk, "IEND"), intact = png_chunk_crc_fits(chunk);
    if (first && png_chunk_is(chunk, "CgBI"))
        return REFUSE(state,
                      "is a PNG optimised for iPhones (CgBI), which is not read; convert it with Xcode's pngcrush "
                      "-revert-iphone-optimizations");
    if (!intact && !png_chunk_is_needless(chunk))
        return DAMAGED(state, "the checksum of chunk %.4s at byte %zu is wrong", chunk->type, chunk->at);
    if (first != png_chunk_is(chunk, "IHDR"))
        return DAMAGED(state, "chunk %.4s at byte %zu is %s", chunk->type, chunk->at,
                       first ? "where IHDR must be" : "not the first");
    if (first)
        return check_header(chunk, state);
    if (picture && state->finished)
        return DAMAGED(state, "its IDAT chunks do not follow each other at byte %zu", chunk->at);
    if (picture && state->colour & PNG_PALETTE && state->palette == 0)
        return DAMAGED(state, "it has no PLTE chunk before byte %zu", chunk->at);
    state->finished = state->picture && !picture;
    state->picture |= picture;
    state->data += picture ? chunk->size : 0;
    if (!intact)
        return true;
    if (png_chunk_is(chunk, "PLTE"))
        return check_palette(chunk, state);
    if (png_chunk_is(chunk, "tRNS"))
        return check_transparency(chunk, state);
    if (end && (chunk->size != 0 || !state->picture))
        return DAMAGED(state, "%s", chunk->size != 0 ? "its IEND chunk is not empty" : "it has no IDAT chunk");
    if (png_chunk_is(chunk, "fdAT"))
        state->info.other_content |= 1U << OTHER_FRAMES;
    if (memcmp(chunk->type, "mkB", 3) == 0 || png_chunk_is(chunk, "mkTS"))
        state->info.other_content |= 1U << OTHER_LAYERS;
    if (isupper((unsigned char)chunk->type[0]) && !picture && !end)
        return REFUSE(state, "the PNG file needs a decoder for chunk %.4s at byte %zu; save it again as a plain PNG",
                      chunk->type, chunk->at);
    return true;
}

/* Report a step that found no chunk. */
static bool report_png_step(enum png_step step, const struct png_walk *walk, const struct png_chunk *chunk,
                            const struct png_state *state)
{
    if (step == PNG_STEP_NO_TYPE)
        return DAMAGED(state, "no chunk begins at byte %zu", chunk->at);
    if (step == PNG_STEP_TOO_LONG)
        return DAMAGED(state, "chunk %.4s at byte %zu claims %u bytes", chunk->type, chunk->at, chunk->size);
    if (step == PNG_STEP_TRUNCATED)
        return TRUNCATED(state, "chunk %.4s at byte %zu claims %u bytes and %zu are left", chunk->type, chunk->at,
                         chunk->size, walk->size - chunk->at - PNG_CHUNK_OVERHEAD);
    return TRUNCATED(state, "it ends after %zu bytes without an IEND chunk", walk->size);
}

/* Is there too little data for the rows? Deflate makes at most 258 bytes of two bits: a code for the length and one for
 * the distance have at least one bit each. A row is counted without a part of a byte; interlaced rows are longer. */
static bool has_too_little_data(const struct png_state *state)
{
    enum { RATIO_MAX = 258 * 8 / 2 };
    const uint64_t width = (uint64_t)state->info.width, height = (uint64_t)state->info.height;
    const uint64_t channels = state->colour & PNG_PALETTE ? 1 : (uint64_t)state->info.channels;
    assert(height > 0); /* IHDR is checked */
    return RATIO_MAX * state->data / height < 1 + width * channels * (uint64_t)state->info.bits / 8;
}

bool png_check(const uint8_t *bytes, size_t size, const char *name, struct codec_info *info, struct error *error)
{
    struct png_state state = {.file = {"PNG", name, error}};
    struct png_chunk chunk;
    enum png_step step;
    if (size < PNG_SIGNATURE || memcmp(bytes, png_signature, PNG_SIGNATURE) != 0)
        return DAMAGED(&state, "the %d bytes of its signature are wrong", PNG_SIGNATURE);
    struct png_walk walk = png_walk_begin(bytes, size);
    while ((step = png_walk_next(&walk, &chunk)) == PNG_STEP_CHUNK)
        if (!check_chunk(&chunk, &state))
            return false;
    if (step != PNG_STEP_END)
        return report_png_step(step, &walk, &chunk, &state);
    *info = state.info;
    info->channels += state.transparency;
    info->is_too_short = has_too_little_data(&state);
    info->bits = info->bits > 8 ? 16 : 8;
    info->data = state.data;
    info->other_content |= container_other_content_behind(bytes, size, walk.at, &(struct jpeg_segment){0});
    return true;
}
