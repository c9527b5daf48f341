/* SPDX-License-Identifier: MIT */
#include "container/webp.h"

#include "container/check.h"
#include "container/other_content.h"
#include "container/report.h"

#include <string.h>

/* ---- The walk ---- */

struct webp_walk webp_walk_begin(const uint8_t *bytes)
{
    return (struct webp_walk){.bytes = bytes, .end = (size_t)webp_file_size(bytes), .at = WEBP_HEAD};
}

bool webp_walk_next(struct webp_walk *walk, struct webp_chunk *chunk)
{
    const size_t left = walk->end - walk->at;
    if (left < WEBP_CHUNK_HEAD)
        return false;
    const uint8_t *head = walk->bytes + walk->at;
    *chunk = (struct webp_chunk){
        .at = walk->at, .type = head, .data = head + WEBP_CHUNK_HEAD, .size = bytes_number(head + 4, 4, false)};
    if (chunk->size > left - WEBP_CHUNK_HEAD)
        return false;
    const size_t whole = WEBP_CHUNK_HEAD + chunk->size + chunk->size % 2;
    walk->at += whole < left ? whole : left; /* the zero after the last chunk may be missing */
    return true;
}

bool webp_chunk_append(struct blob *out, const char *type, const uint8_t *data, size_t size)
{
    uint8_t head[WEBP_CHUNK_HEAD];
    memcpy(head, type, 4);
    bytes_put_number(head + 4, 4, false, (uint32_t)size);
    return blob_append(out, head, sizeof head) && blob_append(out, data, size) && blob_append(out, "", size % 2);
}

/* ---- The check ---- */

struct reading {
    struct checked_file file;
    const uint8_t *bytes;
};

/* Report the chunk at which WALK has stopped, if there is one. Returns whether there is none. */
static bool check_walk_end(const struct reading *reading, const struct webp_walk *walk)
{
    return walk->at == walk->end || DAMAGED(reading, "the chunk at byte %zu is longer than its container", walk->at);
}

/* Read the sides of the picture in CHUNK, VP8 or VP8L. A frame of VP8 begins with three bytes, a start code and the
 * sides (RFC 6386, 9.1): bit 0 of the first byte is 0 in a key frame, bit 4 says that the frame is shown. */
static bool read_picture_sides(const struct reading *reading, const struct webp_chunk *chunk,
                               struct webp_header *header)
{
    const uint8_t *data = chunk->data;
    header->lossless = webp_chunk_is(chunk, "VP8L");
    if (header->lossless) {
        const uint32_t bits = chunk->size >= 5 ? bytes_number(data + 1, 4, false) : 0;
        if (chunk->size < 5 || data[0] != 0x2f || bits >> 29 != 0)
            return DAMAGED(reading, "its picture at byte %zu has no header", chunk->at);
        header->width = (int)(bits & 0x3fff) + 1;
        header->height = (int)(bits >> 14 & 0x3fff) + 1;
        header->has_alpha = bits >> 28 & 1;
        return true;
    }
    if (chunk->size < 10 || (data[0] & 0x11) != 0x10 || memcmp(data + 3, "\x9d\x01\x2a", 3) != 0)
        return DAMAGED(reading, "its picture at byte %zu has no header", chunk->at);
    header->width = (int)(bytes_number(data + 6, 2, false) & 0x3fff);
    header->height = (int)(bytes_number(data + 8, 2, false) & 0x3fff);
    return (header->width > 0 && header->height > 0) || DAMAGED(reading, "it has %s pixels", "no");
}

/* Find the picture in WALK, and fill HEADER but for its position. An ALPH chunk counts before VP8 only. */
static bool find_picture_chunk(const struct reading *reading, struct webp_walk *walk, struct webp_header *header)
{
    struct webp_chunk chunk;
    size_t alpha = 0;
    while (webp_walk_next(walk, &chunk)) {
        if (webp_chunk_is(&chunk, "ALPH") && alpha == 0)
            alpha = chunk.at;
        if (!webp_chunk_is(&chunk, "VP8 ") && !webp_chunk_is(&chunk, "VP8L"))
            continue;
        if (!read_picture_sides(reading, &chunk, header))
            return false;
        const bool uses_alpha = alpha > 0 && !header->lossless;
        header->has_alpha = header->has_alpha || uses_alpha;
        header->data = uses_alpha ? alpha : chunk.at;
        header->size = walk->at - header->data;
        return true;
    }
    return check_walk_end(reading, walk) && DAMAGED(reading, "it has no %s", "picture");
}

/* Read the frame in CHUNK, ANMF: x / 2, y / 2, width - 1, height - 1 and a duration in 3 bytes each, then flags, then
 * chunks. */
static bool read_frame(const struct reading *reading, const struct webp_chunk *chunk, struct webp_header *header)
{
    enum { FRAME = 16 };
    const size_t start = (size_t)(chunk->data - reading->bytes);
    struct webp_walk walk = {.bytes = reading->bytes, .end = start + chunk->size, .at = start + FRAME};
    if (chunk->size < FRAME)
        return DAMAGED(reading, "its frame at byte %zu has no header", chunk->at);
    if (!find_picture_chunk(reading, &walk, header))
        return false;
    const unsigned flags = chunk->data[FRAME - 1];
    header->blends = !(flags & 2) && header->has_alpha;
    header->clears = flags & 1;
    header->x = 2 * (int)bytes_number(chunk->data, 3, false);
    header->y = 2 * (int)bytes_number(chunk->data + 3, 3, false);
    return (header->width == (int)bytes_number(chunk->data + 6, 3, false) + 1 &&
            header->height == (int)bytes_number(chunk->data + 9, 3, false) + 1) ||
           DAMAGED(reading, "its frame at byte %zu has another size than the picture in it", chunk->at);
}

/* Are there too few data for the picture? A macroblock of 16 x 16 pixels takes at least 3 bits: its modes have fixed
 * probabilities (RFC 6386, 11.2 and 11.4). A pixel of a lossless picture may take none. */
static bool has_too_few_bytes(const struct webp_header *header)
{
    const uint64_t blocks = (uint64_t)((header->width + 15) / 16) * (uint64_t)((header->height + 15) / 16);
    return !header->lossless && 3 * blocks > 8 * (uint64_t)header->size;
}

/* Add FRAME, whose chunk is at byte AT, to the picture in INFO. One that hides all before it begins it anew. */
static void add_frame(const struct webp_header *frame, size_t at, struct codec_info *info)
{
    struct webp_header *all = &info->webp;
    const bool is_whole = frame->width == info->width && frame->height == info->height;
    if (info->pages++ == 0 || (is_whole && !frame->blends)) {
        *all = *frame;
        all->start = at;
        all->has_alpha |= !is_whole;
        info->is_too_short = false;
    } else {
        all->has_alpha |= frame->has_alpha || all->clears;
        all->lossless |= frame->lossless;
        all->clears = frame->clears;
        all->width = info->width;
        all->height = info->height;
        all->size += frame->size;
    }
    all->frames++;
    info->is_too_short |= has_too_few_bytes(frame);
}

/* Does a frame fit the canvas of INFO, which another picture FILLS? */
static bool check_place(const struct reading *reading, const struct webp_header *header, const struct codec_info *info,
                        bool fills)
{
    return (info->width <= WEBP_SIDE_MAX && info->height <= WEBP_SIDE_MAX && header->x + header->width <= info->width &&
            header->y + header->height <= info->height &&
            (!fills || (header->width == info->width && header->height == info->height))) ||
           DAMAGED(reading, "its picture of %d x %d pixels does not fit its canvas of %d x %d", header->width,
                   header->height, info->width, info->height);
}

/* Find the picture in the chunks of a file, after VP8X, or the frames of an ANIMATION up to the wanted one. Count the
 * frames. */
static bool find_pages(const struct reading *reading, struct webp_walk *walk, bool is_animation,
                       struct codec_info *info)
{
    const int wanted = info->page > 0 ? info->page : 1;
    struct webp_header header = {.frames = 0};
    struct webp_walk first = *walk;
    struct webp_chunk chunk;
    if (!is_animation) {
        if (!find_picture_chunk(reading, &first, &header))
            return false;
        info->width = info->width > 0 ? info->width : header.width;
        info->height = info->height > 0 ? info->height : header.height;
        if (!check_place(reading, &header, info, true))
            return false;
        add_frame(&header, 0, info);
    }
    while (webp_walk_next(walk, &chunk)) {
        if (!is_animation || !webp_chunk_is(&chunk, "ANMF"))
            continue;
        if (info->pages >= wanted) {
            info->pages++;
            continue;
        }
        header = (struct webp_header){.frames = 0};
        if (!read_frame(reading, &chunk, &header) || !check_place(reading, &header, info, false))
            return false;
        add_frame(&header, chunk.at, info);
    }
    return check_walk_end(reading, walk) &&
           (info->pages > 0 || DAMAGED(reading, "it is an animation without %s", "a frame")) &&
           container_check_page(info->page, info->pages, reading->file.name, reading->file.error);
}

bool webp_next_frame(struct webp_walk *walk, struct webp_header *frame)
{
    const struct reading reading = {.bytes = walk->bytes};
    struct webp_chunk chunk;
    *frame = (struct webp_header){0};
    while (webp_walk_next(walk, &chunk))
        if (webp_chunk_is(&chunk, "ANMF"))
            return read_frame(&reading, &chunk, frame);
    return false;
}

bool webp_check(const uint8_t *bytes, size_t size, const char *name, struct codec_info *info, struct error *error)
{
    const struct reading reading = {{"WebP", name, error}, bytes};
    const struct webp_header *header = &info->webp;
    struct webp_chunk chunk;
    bool is_animation = false;
    *info = (struct codec_info){.page = info->page, .bits = 8};
    if (memcmp(bytes, "RIFF", 4) != 0 || webp_file_size(bytes) < WEBP_HEAD)
        return DAMAGED(&reading, "its first %d bytes are wrong", WEBP_HEAD);
    if (webp_file_size(bytes) > size)
        return TRUNCATED(&reading, "it has %zu of %llu bytes", size, (unsigned long long)webp_file_size(bytes));
    struct webp_walk walk = webp_walk_begin(bytes);
    const struct webp_walk all = walk;
    const bool is_extended = webp_walk_next(&walk, &chunk) && webp_chunk_is(&chunk, "VP8X");
    if (is_extended && chunk.size >= WEBP_EXTENDED_DATA) {
        info->width = (int)bytes_number(chunk.data + 4, 3, false) + 1;
        info->height = (int)bytes_number(chunk.data + 7, 3, false) + 1;
        is_animation = chunk.data[0] & WEBP_ANIMATION;
    } else {
        walk = all;
    }
    if (!find_pages(&reading, &walk, is_animation, info))
        return false;
    info->page = info->page > 0 ? info->page : 1;
    info->data = header->size;
    info->channels = header->has_alpha ? 4 : 3;
    info->other_content = (info->pages > 1 ? 1U << OTHER_FRAMES : 0) |
                          container_other_content_behind(bytes, size, all.end, &(struct jpeg_segment){0});
    return true;
}
