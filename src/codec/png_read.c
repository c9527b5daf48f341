/* SPDX-License-Identifier: MIT
 *
 * The codec `parallel-png`, reading interlaced files: the passes are inflated as a whole, and their pixels are put
 * where they belong. */
#include "codec/codec_internal.h"

#include "codec/png_picture.h"

#include <stdlib.h>
#include <string.h>

/* The pixels of one pass over an interlaced picture, or all pixels of another picture. */
struct pass {
    size_t x, y;           /* of the first pixel */
    size_t step_x, step_y; /* from one pixel to the next */
    size_t width, height, row_bytes;
};

/* List the passes of the picture. Returns the bytes of all passes, with one byte more in front of each row. */
static size_t list_passes(const struct png_picture *picture, struct pass passes[7], int *count)
{
    /* Adam7: the first pixel's x and y, and the steps. */
    static const uint8_t adam7[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                        {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    size_t size = 0;
    *count = 0;
    for (int i = 0; i < (picture->interlaced ? 7 : 1); i++) {
        struct pass pass = {.step_x = 1, .step_y = 1};
        if (picture->interlaced)
            pass = (struct pass){.x = adam7[i][0], .y = adam7[i][1], .step_x = adam7[i][2], .step_y = adam7[i][3]};
        if (picture->width <= pass.x || picture->height <= pass.y)
            continue;
        pass.width = (picture->width - pass.x - 1) / pass.step_x + 1;
        pass.height = (picture->height - pass.y - 1) / pass.step_y + 1;
        pass.row_bytes = png_row_bytes(picture, pass.width);
        size += pass.height * (pass.row_bytes + 1);
        passes[(*count)++] = pass;
    }
    return size;
}

/* Make IMAGE from the rows of all passes at RAW. SCRATCH is for png_make_samples. */
static bool read_passes(const struct codec_input *input, const struct png_picture *picture, const struct pass *passes,
                        int count, const uint8_t *raw, uint8_t *scratch, struct image *image, struct error *error)
{
    const size_t pixel = image_pixel_bytes(image), row = picture->width * pixel;
    for (int i = 0; i < count; i++) {
        const struct pass *pass = &passes[i];
        uint8_t *first = image->samples + pass->y * row + pass->x * pixel;
        if (!png_filters_are_known(raw, pass->height, pass->row_bytes + 1))
            return codec_report_damaged(input, "unknown row filter", error);
        memset(scratch, 0, png_scratch_bytes(pass->row_bytes));
        png_make_samples(picture, raw, pass->height, pass->width, scratch, first, pass->step_x * pixel,
                         pass->step_y * row);
        raw += pass->height * (pass->row_bytes + 1);
    }
    return true;
}

/* Inflate the rows of all passes. They come first in the result, and png_scratch_bytes of memory follow. Release it with
 * free. NULL is an error. */
static uint8_t *inflate_passes(const struct codec_input *input, const struct png_picture *picture, size_t size,
                               struct error *error)
{
    const size_t scratch = png_scratch_bytes(png_row_bytes(picture, picture->width));
    uint8_t *raw = bytes_allocate(size + scratch);
    struct png_inflater *inflater =
        raw != NULL ? png_inflate_open(input, picture, size, error) : (codec_report_decode_memory(input, error), NULL);
    const bool done = inflater != NULL && png_inflate_next(inflater, raw, size, error);
    free(inflater);
    if (done)
        return raw;
    free(raw);
    return NULL;
}

bool png_check_rows(const struct codec_input *input, struct error *error)
{
    struct pass passes[7];
    struct png_picture picture;
    int count;
    png_picture_read(input, &picture);
    uint8_t *raw = inflate_passes(input, &picture, list_passes(&picture, passes, &count), error);
    free(raw);
    return raw != NULL;
}

bool png_decode(const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    struct pass passes[7];
    struct png_picture picture;
    int count;
    png_picture_read(input, &picture);
    const size_t size = list_passes(&picture, passes, &count);
    uint8_t *raw = inflate_passes(input, &picture, size, error);
    bool done = raw != NULL;
    if (done && !image_allocate(image, info->width, info->height, info->channels, info->bits, error))
        done = codec_report_decode_memory(input, error);
    else if (done && !read_passes(input, &picture, passes, count, raw, raw + size, image, error)) {
        image_free(image);
        done = false;
    }
    free(raw);
    return done;
}
