/* SPDX-License-Identifier: MIT
 *
 * The codec `stb`: both formats, built from the same source wherever gpuconv is, so that a JPEG gives the same samples
 * everywhere. stb_read.c and stb_write.c hold the implementations. */
#include "codec/codec_internal.h"

#include "codec/stb_read.h"

#include <stb_image.h>
#include <stb_image_write.h>
#include <stdlib.h>
#include <string.h>

/* Where encoding begins; doubled as needed. */
enum { FIRST_CAPACITY = 1 << 16 };

/* What stb's buffers may grow to beyond need, so that tiny images, whose buffers are doubled often, and files with a
 * few bytes too many are read. */
enum { GROW_SLACK = 1 << 16 };

/* Say in words why stb gave up. Not all of its failures set a reason, and what then stands there is that of an
 * earlier one: here always one of the two below. */
static bool decode_failed(const struct codec_input *input, struct error *error)
{
    const char *const reason = stbi_failure_reason();

    if (stb_read_refused())
        return codec_damaged(input, "it holds far more data than its picture has", error);
    if (reason && strcmp(reason, "outofmem") == 0)
        return codec_no_memory(input, error);
    if (reason && (strcmp(reason, "unknown image type") == 0 || strcmp(reason, "bad png sig") == 0))
        return codec_damaged(input, NULL, error);
    return codec_damaged(input, reason, error);
}

enum { DEPTH = 24, COLOUR_TYPE = 25, PALETTED = 3 }; /* where they stand in a PNG: IHDR comes first */

/* stb 2.27 takes the colours of indices that a palette does not have from wherever its stack was. Make a copy of a PNG
 * whose palette has all 256: the missing ones opaque black, as the other codecs have them. And of the grey that is
 * transparent it takes eight bits where only as many count as a sample has (PNG, 11.3.2.1): clear the others. The
 * copy's checksums are wrong, which stb does not look at. NULL where there is not enough memory. */
static uint8_t *mend(const struct codec_input *input, size_t *size)
{
    enum { SIGNATURE = 8, HEAD = 8, CHECKSUM = 4, COLOURS = 256 };
    const bool indexed = input->bytes[COLOUR_TYPE] == PALETTED;
    const uint8_t *from = input->bytes + SIGNATURE;
    uint8_t *const copy = calloc(1, input->size + 4 * COLOURS);
    uint8_t *to = copy ? copy + SIGNATURE : NULL;

    if (!copy)
        return NULL;
    memcpy(copy, input->bytes, SIGNATURE);
    for (bool end = false; !end;) { /* codec.c has found the chunks to be whole */
        const uint32_t length = (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
        const bool transparency = memcmp(from + 4, "tRNS", 4) == 0, alpha = indexed && transparency;
        const bool palette = indexed && memcmp(from + 4, "PLTE", 4) == 0;
        const uint32_t full = palette ? 3 * COLOURS : alpha ? COLOURS : length;
        memcpy(to, from, HEAD + length);
        memset(to + HEAD + length, alpha ? 255 : 0, full - length);
        to[2] = (uint8_t)(full >> 8); /* longer ones are copied as they are */
        to[3] = (uint8_t)full;
        if (transparency && !indexed) {
            to[HEAD] = 0;
            to[HEAD + 1] &= (uint8_t)((1u << input->bytes[DEPTH]) - 1);
        }
        end = memcmp(from + 4, "IEND", 4) == 0;
        from += HEAD + length + CHECKSUM;
        to += HEAD + full + CHECKSUM;
    }
    *size = (size_t)(to - copy);
    return copy;
}

static bool decode(const struct codec_input *input, const uint8_t *bytes, size_t size, struct image *image,
                   struct error *error)
{
    const struct codec_info *const info = input->info;
    /* What a file needs: its own size, doubled as stb goes through its chunks, or its rows, filter bytes included,
     * which interlacing nearly doubles where they are short. */
    const size_t row = (size_t)info->width * (size_t)info->channels * (size_t)info->bits / 8 + 1;
    const size_t rows = 2 * row * (size_t)info->height;
    int width, height, channels;

    stb_read_limit((2 * input->size > rows ? 2 * input->size : rows) + GROW_SLACK);
    /* An empty file: sets the reason to a known one. */
    stbi_info_from_memory(bytes, 0, &width, &height, &channels);
    void *const samples = info->bits == 16
                              ? (void *)stbi_load_16_from_memory(bytes, (int)size, &width, &height, &channels, 0)
                              : stbi_load_from_memory(bytes, (int)size, &width, &height, &channels, 0);
    if (!samples)
        return decode_failed(input, error);
    *image =
        (struct image){.width = width, .height = height, .channels = channels, .bits = info->bits, .samples = samples};
    return true;
}

bool stb_decode(const struct codec_input *input, struct image *image, struct error *error)
{
    size_t size;

    if (input->info->format != FORMAT_PNG || (input->bytes[COLOUR_TYPE] != PALETTED && input->bytes[DEPTH] >= 8))
        return decode(input, input->bytes, input->size, image, error);
    uint8_t *const copy = mend(input, &size);
    const bool done = copy ? decode(input, copy, size, image, error) : codec_no_memory(input, error);
    free(copy);
    return done;
}

/* Where stb's writers put their bytes. */
struct sink {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed;
};

/* Take SIZE bytes; stb's JPEG writer gives them one by one. */
static void sink_append(void *context, void *bytes, int size)
{
    struct sink *const sink = context;
    const size_t needed = sink->size + (size_t)size;

    if (needed > sink->capacity && !sink->failed) {
        const size_t doubled = sink->capacity > 0 ? sink->capacity * 2 : FIRST_CAPACITY;
        const size_t capacity = needed > doubled ? needed : doubled;
        uint8_t *const larger = realloc(sink->bytes, capacity);
        sink->failed = !larger;
        if (larger) {
            sink->bytes = larger;
            sink->capacity = capacity;
        }
    }
    if (sink->failed)
        return;
    memcpy(sink->bytes + sink->size, bytes, (size_t)size);
    sink->size = needed;
}

bool stb_encode(const struct image *image, enum format format, const struct codec_settings *settings, uint8_t **bytes,
                size_t *size, struct error *error)
{
    const int width = image->width, height = image->height, channels = image->channels;
    struct sink sink = {0};
    const int done =
        format == FORMAT_PNG
            ? stbi_write_png_to_func(sink_append, &sink, width, height, channels, image->samples, 0)
            : stbi_write_jpg_to_func(sink_append, &sink, width, height, channels, image->samples, settings->quality);

    if (!done || sink.failed) {
        free(sink.bytes);
        return codec_no_room(image, format, error);
    }
    *bytes = sink.bytes;
    *size = sink.size;
    return true;
}
