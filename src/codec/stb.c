/* SPDX-License-Identifier: MIT
 *
 * The codec `stb` reads and writes PNG and JPEG. Every gpuconv has it, built from one source, so it decodes a JPEG to
 * the same samples everywhere. stb_read.c and stb_write.c hold the implementations. docs/stb.md lists the faults of
 * stb. */
#include "codec/codec_internal.h"

#include "base/bytes.h"
#include "codec/png_picture.h"
#include "codec/stb_read.h"
#include "container/png.h"

#include <stb/stb_image.h>
#include <stb/stb_image_write.h>
#include <stdlib.h>
#include <string.h>

/* The bytes that stb's buffers may grow beyond the need. With this, tiny images (stb doubles their buffers often) and
 * files with a few bytes too many are still read. */
enum { GROW_SLACK = 1 << 16 };

/* Report why stb failed. Not every failure sets a reason: then stb still has the reason of an earlier one. To detect
 * this, stb_decode_bytes sets one of the two reasons below first. */
static bool report_failure(const struct codec_input *input, struct error *error)
{
    const char *reason = stbi_failure_reason();
    if (stb_read_refused())
        return codec_report_damaged(input, "it has far more data than its picture needs", error);
    if (reason != NULL && strcmp(reason, "outofmem") == 0)
        return error_no_memory(error, "the decoded image");
    if (reason != NULL && (strcmp(reason, "unknown image type") == 0 || strcmp(reason, "bad png sig") == 0))
        return codec_report_damaged(input, NULL, error);
    return codec_report_damaged(input, reason, error);
}

/* Copy CHUNK to TO, patched so that stb reads it correctly. Returns the end of the copy. */
static uint8_t *patch_chunk(const struct png_header *header, const struct png_chunk *chunk, uint8_t *to)
{
    const bool indexed = header->colour & PNG_PALETTE, transparency = png_chunk_is(chunk, "tRNS");
    const bool palette = indexed && png_chunk_is(chunk, "PLTE"), alpha = indexed && transparency;
    const uint32_t size = palette ? 3 * PNG_PALETTE_MAX : alpha ? PNG_PALETTE_MAX : chunk->size;
    uint8_t *data = to + PNG_CHUNK_HEAD;
    memcpy(to, chunk->head, PNG_CHUNK_HEAD + chunk->size);
    memset(data + chunk->size, alpha ? 255 : 0, size - chunk->size);
    put_big32(to, size);
    if (transparency && !indexed) {
        data[0] = 0;
        data[1] &= (uint8_t)((1u << header->bits) - 1);
    }
    return to + PNG_CHUNK_OVERHEAD + size;
}

/* Make a copy of a PNG that avoids two faults of stb 2.27. First, stb reads uninitialised stack for indices beyond
 * PLTE. So the copy's palette has all 256 colours; the missing ones are opaque black, as in the other codecs. Second,
 * stb compares eight bits of the transparent grey, but only as many count as a sample has (PNG, 11.3.2.1). So the other
 * bits are cleared. The CRCs of the copy are wrong, but stb ignores them. Returns NULL if there is not enough
 * memory. */
static uint8_t *patch_png_for_stb(const struct codec_input *input, size_t *size)
{
    const struct png_header header = png_file_header(input->bytes);
    struct png_walk walk = png_walk_begin(input->bytes, input->size);
    struct png_chunk chunk;
    uint8_t *copy = calloc(1, input->size + 4 * PNG_PALETTE_MAX);
    if (copy == NULL)
        return NULL;
    uint8_t *to = copy + PNG_SIGNATURE;
    memcpy(copy, input->bytes, PNG_SIGNATURE);
    while (png_walk_next(&walk, &chunk) == PNG_STEP_CHUNK)
        to = patch_chunk(&header, &chunk, to);
    *size = (size_t)(to - copy);
    return copy;
}

/* Does patch_png_for_stb change this file? Only palettes, and grey of less than 8 bits, need it. */
static bool needs_patch(const struct codec_input *input)
{
    if (input->info->format->id != FORMAT_PNG)
        return false;
    const struct png_header header = png_file_header(input->bytes);
    return header.colour & PNG_PALETTE || header.bits < 8;
}

static bool stb_decode_bytes(const struct codec_input *input, const uint8_t *bytes, size_t size, struct image *image,
                             struct error *error)
{
    const struct codec_info *info = input->info;
    /* The need of a file is its own size, doubled because stb collects its chunks. Or it is the size of its rows with
     * their filter bytes; interlacing nearly doubles that if rows are short. */
    const size_t row = (size_t)info->width * (size_t)info->channels * (size_t)info->bits / 8 + 1;
    const size_t rows = 2 * row * (size_t)info->height;
    int width, height, channels;
    stb_read_limit((2 * input->size > rows ? 2 * input->size : rows) + GROW_SLACK);
    /* An empty file sets a known reason (see report_failure). */
    stbi_info_from_memory(bytes, 0, &width, &height, &channels);
    void *samples = info->bits == 16 ? (void *)stbi_load_16_from_memory(bytes, (int)size, &width, &height, &channels, 0)
                                     : stbi_load_from_memory(bytes, (int)size, &width, &height, &channels, 0);
    if (samples == NULL)
        return report_failure(input, error);
    *image =
        (struct image){.width = width, .height = height, .channels = channels, .bits = info->bits, .samples = samples};
    return true;
}

static bool decode_checked(const struct codec_input *input, struct image *image, struct error *error)
{
    size_t size;
    /* stb reads no checksum, and reads zeros after a stream that ends too early. */
    if (input->info->format->id == FORMAT_PNG && !png_check_rows(input, error))
        return false;
    if (!needs_patch(input))
        return stb_decode_bytes(input, input->bytes, input->size, image, error);
    uint8_t *copy = patch_png_for_stb(input, &size);
    const bool done =
        copy != NULL ? stb_decode_bytes(input, copy, size, image, error) : error_no_memory(error, "a copy of the file");
    free(copy);
    return done;
}

/* The destination of the bytes of stb's writers. */
struct sink {
    struct blob file;
    bool failed;
};

/* Append SIZE bytes. stb's JPEG writer passes single bytes. */
static void sink_append(void *context, void *bytes, int size)
{
    struct sink *sink = context;
    sink->failed = sink->failed || !blob_append(&sink->file, bytes, (size_t)size);
}

static bool stb_encode(const struct image *image, const struct format *format, const struct codec_settings *settings,
                       uint8_t **bytes, size_t *size, struct error *error)
{
    const int width = image->width, height = image->height, channels = image->channels;
    struct sink sink = {0};
    const int done =
        format->id == FORMAT_PNG
            ? stbi_write_png_to_func(sink_append, &sink, width, height, channels, image->samples, 0)
            : stbi_write_jpg_to_func(sink_append, &sink, width, height, channels, image->samples, settings->quality);
    if (done == 0 || sink.failed) {
        blob_free(&sink.file);
        return error_no_memory(error, "the encoded image");
    }
    *bytes = sink.file.bytes;
    *size = sink.file.size;
    return true;
}

/* The state of stb's decoders, or of the inflater that checks the rows of a PNG first; and, for writing, that of
 * libdeflate. codec_whole_need has bounds for the picture's size. */
static size_t reader_need(const struct codec_info *info)
{
    (void)info;
    return ((size_t)1 << 16) + png_inflate_need();
}

static size_t writer_need(const struct image *shape, const struct codec_settings *settings)
{
    (void)shape;
    (void)settings;
    return 1 << 18;
}

const struct codec_functions stb = {
    .decode = decode_checked, .encode = stb_encode, .reader_need = reader_need, .writer_need = writer_need};
