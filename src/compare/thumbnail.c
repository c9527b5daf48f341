/* SPDX-License-Identifier: MIT */
#include "compare/compare_internal.h"

#include "base/inline.h"
#include "codec/codec.h"

#include <stdlib.h>
#include <string.h>

enum {
    EXACT_PIXELS = 64 * 64, /* pixels of the largest thumbnail that becomes a PNG: at most 12 KB and its headers */
    QUALITY = 80,           /* the quality of a thumbnail that is a JPEG */
    SQUARE = 8,             /* the side of a square of the ground, in pixels of a thumbnail */
};

/* The sums of the samples of one block of pixels, which becomes a pixel of the thumbnail. A sample times its alpha is
 * below 2^32, so 64 bits hold the sum of 2^31 pixels. Blocks of more pixels come from images of about 2^38 pixels: a
 * row or a column of them has up to 160 blocks. */
struct block {
    uint64_t colours[3]; /* the sums of samples times alpha, or the largest samples for SHRINK_LARGEST */
    uint64_t alpha, pixels;
};

/* Add row Y of IMAGE to its BLOCKS, SIDE pixels each. */
INLINE void add_row_to_blocks(const struct image *image, int y, int side, enum shrink shrink, bool is_16_bit,
                              struct block *blocks)
{
    const int channels = image->channels, colours = channels >= 3 ? 3 : 1;
    const uint8_t *bytes = image_row(image, y);
    const uint16_t *words = (const uint16_t *)(const void *)bytes;
    for (int x = 0; x < image->width; blocks++)
        for (int end = image->width - x > side ? x + side : image->width; x < end; x++) {
            const int first = x * channels;
            const uint64_t alpha = channels == colours ? 1
                                   : is_16_bit         ? words[first + colours]
                                                       : bytes[first + colours];
            for (int c = 0; c < colours; c++) {
                const uint64_t value = is_16_bit ? words[first + c] : bytes[first + c];
                uint64_t *sum = &blocks->colours[c];
                *sum = shrink == SHRINK_MEAN ? *sum + value * alpha : value > *sum ? value : *sum;
            }
            blocks->alpha += alpha;
            blocks->pixels++;
        }
}

/* Write a row of COUNT blocks to row Y of SMALL. WHITE is the largest level of a sample of the large image. */
static void put_row(const struct block *blocks, int count, enum shrink shrink, bool has_alpha, unsigned white,
                    const struct image *small, int y)
{
    uint8_t *out = image_row(small, y);
    for (int x = 0; x < count; x++)
        for (int c = 0; c < small->channels; c++) {
            const struct block *block = &blocks[x];
            const uint64_t ground = (x / SQUARE + y / SQUARE) % 2 == 0 ? white : white / 5 * 4;
            const uint64_t opaque = block->pixels * (has_alpha ? white : 1);
            const uint64_t sum = block->colours[c] + ground * (opaque - block->alpha);
            const uint64_t value =
                shrink == SHRINK_MEAN && opaque > 0 ? (sum + opaque / 2) / opaque : block->colours[c];
            *out++ = white == 255 ? (uint8_t)value : reduce_sample((unsigned)value);
        }
}

bool image_shrink(const struct image *image, enum shrink shrink, struct image *small, struct error *error)
{
    const int longest = image->width > image->height ? image->width : image->height;
    const int side = (longest + THUMBNAIL_SIDE - 1) / THUMBNAIL_SIDE;
    const bool is_16_bit = image_sample_bytes(image) == 2;
    struct block blocks[THUMBNAIL_SIDE];
    *small = (struct image){0};
    if (!image_allocate(small, (image->width + side - 1) / side, (image->height + side - 1) / side,
                        image->channels >= 3 ? 3 : 1, 8, error))
        return false;
    for (int y = 0; y < small->height; y++) {
        memset(blocks, 0, sizeof blocks);
        for (int row = y * side; row < image->height && row < (y + 1) * side; row++)
            if (is_16_bit)
                add_row_to_blocks(image, row, side, shrink, true, blocks);
            else
                add_row_to_blocks(image, row, side, shrink, false, blocks);
        put_row(blocks, small->width, shrink, image_has_alpha(image), is_16_bit ? 65535 : 255, small, y);
    }
    return true;
}

bool thumbnail_encode(const struct image *small, struct thumbnail *thumbnail)
{
    const struct codec_settings settings = {.quality = QUALITY, .compression = CODEC_COMPRESSION};
    const bool exact = small->width * small->height <= EXACT_PIXELS;
    *thumbnail = (struct thumbnail){
        .format = format_of(exact ? FORMAT_PNG : FORMAT_JPEG), .width = small->width, .height = small->height};
    const bool done = codec_encode(small, thumbnail->format, &settings, &thumbnail->bytes, &thumbnail->size, NULL);
    if (!done)
        *thumbnail = (struct thumbnail){0};
    return done;
}

void thumbnails_free(struct thumbnails *thumbnails)
{
    if (thumbnails == NULL)
        return;
    free(thumbnails->expected.bytes);
    free(thumbnails->actual.bytes);
    free(thumbnails->difference.bytes);
    free(thumbnails);
}
