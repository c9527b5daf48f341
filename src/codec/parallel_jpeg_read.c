/* SPDX-License-Identifier: MIT
 *
 * The codec `parallel-jpeg`, reading. The index of the scan is made when the file is opened. Then any thread fetches any
 * rows of MCUs as planes, and reads any of them as pixels (jpeg/jpeg.h). Another codec reads what is unsupported. */
#include "codec/codec_internal.h"

#include "base/parallel.h"
#include "jpeg/jpeg.h"

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
    const struct jpeg_headers *headers = &input->info->jpeg;
    const struct jpeg_scan scan = {input->bytes + headers->scan, headers->scan_size};
    struct jpeg_layout layout;
    (void)error;
    if (jpeg_layout_for_reading(&layout, headers))
        reader->state = jpeg_index_open(&layout, &scan, input->settings->pool);
    reader->declined = reader->state == NULL;
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
    jpeg_index_free(reader->state);
    reader->state = NULL;
}
