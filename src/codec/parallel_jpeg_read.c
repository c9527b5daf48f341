/* SPDX-License-Identifier: MIT
 *
 * The codec `parallel-jpeg`, reading. The index of the scan is made when the file is opened. Then any thread fetches any
 * rows of MCUs as planes, and reads any of them as pixels (jpeg/decode.h). It declines what it does not take. */
#include "codec/codec_internal.h"

#include "base/parallel.h"
#include "jpeg/decode.h"

#include <stdlib.h>

size_t parallel_jpeg_reader_need(const struct codec_info *info)
{
    return jpeg_index_need(info->height, info->data);
}

/* On one thread libjpeg-turbo is faster, and a small picture is decoded before other threads have begun. */
bool parallel_jpeg_reader_repays(const struct codec_info *info, const struct codec_settings *settings)
{
    enum { PIXELS = 1 << 19 };
    return !info->progressive && !info->cmyk && thread_pool_threads(settings->pool) > 1 &&
           (int64_t)info->width * info->height >= PIXELS;
}

static bool fetch_rows(void *context, int first, int rows, uint8_t *raw, struct error *error)
{
    const struct codec_reader *reader = context;
    (void)error; /* the index has found all errors */
    jpeg_decode_band(reader->state, first, rows, raw);
    return true;
}

static bool read_rows(void *context, int first, int rows, const struct rows *raw, uint8_t *samples, struct error *error)
{
    const struct codec_reader *reader = context;
    (void)error;
    jpeg_convert_band(reader->state, first, rows, raw, samples);
    return true;
}

bool parallel_jpeg_reader_open(struct codec_reader *reader, struct error *error)
{
    const struct codec_input *input = &reader->input;
    const struct codec_info *info = input->info;
    struct jpeg_index *index = calloc(1, sizeof *index);
    struct jpeg_layout layout;
    struct jpeg_scan scan;
    (void)error;
    reader->state = index;
    reader->declined =
        index == NULL || !jpeg_read_headers(input->bytes, input->size, &layout, &scan) || layout.width != info->width ||
        layout.height != info->height || layout.components != info->channels ||
        !jpeg_index_make(index, &layout, &scan, jpeg_decode_best(), &jpeg_usual_chunking, input->settings->pool);
    if (reader->declined)
        return false;
    struct row_source *source = &reader->source;
    source->multiple = JPEG_SIDE * layout.vertical;
    source->raw_bytes = jpeg_planes_bytes(&layout) / (size_t)source->multiple;
    source->fetch = fetch_rows;
    source->read = read_rows;
    return true;
}

void parallel_jpeg_reader_close(struct codec_reader *reader)
{
    struct jpeg_index *index = reader->state;
    if (index != NULL)
        jpeg_index_free(index);
    free(index);
    reader->state = NULL;
}
