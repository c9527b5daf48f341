/* SPDX-License-Identifier: MIT
 *
 * The codec `parallel-jpeg`: JPEG on all threads, by jpeg/jpeg.h. Another codec reads what that does not support. */
#include "codec/codec_internal.h"

#include "base/parallel.h"
#include "jpeg/jpeg.h"

/* ---- Reading ---- */

static size_t reader_need(const struct codec_info *info)
{
    return jpeg_index_need(info->jpeg.height, info->data);
}

/* On one thread libjpeg-turbo is faster, and a small picture is decoded before other threads have begun. */
static bool reader_is_faster(const struct codec_info *info, const struct codec_settings *settings)
{
    enum { PIXELS = 1 << 19 };
    return info->jpeg.is_sequential && !info->cmyk && thread_pool_threads(settings->pool) > 1 &&
           (int64_t)info->width * info->height >= PIXELS;
}

static bool fetch_jpeg_rows(void *context, int first, int rows, uint8_t *raw, struct error *error)
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
    const struct jpeg_planes planes = {raw->data, raw->above, raw->below};
    jpeg_convert_band(reader->state, first, rows, &planes, samples);
    return true;
}

static bool reader_open(struct codec_reader *reader, struct error *error)
{
    const struct codec_input *input = &reader->input;
    const struct jpeg_headers *headers = &input->info->jpeg;
    const struct jpeg_scan scan = {input->bytes + headers->scan, headers->scan_size};
    struct jpeg_layout layout;
    (void)error;
    if (jpeg_layout_for_reading(&layout, headers)) {
        jpeg_layout_shrink(&layout, input->info->shrink);
        reader->state = jpeg_index_open(&layout, &scan, input->settings->pool);
    }
    reader->unsupported = reader->state == NULL;
    if (reader->unsupported)
        return false;
    struct row_source *source = &reader->source;
    source->multiple = jpeg_mcu_height(&layout);
    source->raw_bytes = jpeg_planes_bytes(&layout) / (size_t)source->multiple;
    source->fetch = fetch_jpeg_rows;
    source->read = read_rows;
    return true;
}

static void reader_close(struct codec_reader *reader)
{
    jpeg_index_free(reader->state);
    reader->state = NULL;
}

/* ---- Writing ---- */

/* Each thread makes one band, of at most a row or CODEC_BAND_BYTES. */
static size_t writer_need(const struct image *shape, const struct codec_settings *settings)
{
    enum { OTHER = 1 << 18 };
    const size_t row = image_bytes(shape) / (size_t)shape->height * 2 * JPEG_SIDE;
    const size_t band = row < CODEC_BAND_BYTES ? CODEC_BAND_BYTES : row,
                 file = codec_file_bound(shape, format_of(FORMAT_JPEG), settings);
    return (size_t)thread_pool_threads(settings->pool) * (band < file ? band : file) + OTHER;
}

static bool encode_jpeg_rows(void *context, int thread, int first, const struct image *rows, struct error *error)
{
    const struct codec_writer *writer = context;
    (void)thread;
    return jpeg_encode_band(writer->state, first, rows->height, rows->samples) ||
           error_no_memory(error, "the encoded image");
}

static bool write_rows(void *context, int first, const struct image *rows, struct error *error)
{
    struct codec_writer *writer = context;
    if (!jpeg_write_bands(writer->state, first, rows->height))
        return error_no_memory(error, "the encoded image");
    writer->written = jpeg_encoder_size(writer->state);
    return true;
}

static bool writer_open(struct codec_writer *writer, struct error *error)
{
    const struct image *shape = &writer->shape;
    const struct codec_settings *settings = writer->settings;
    struct jpeg_layout layout;
    jpeg_layout_for_writing(&layout, shape->width, shape->height, shape->channels, settings->chroma_subsampling,
                            settings->quality);
    writer->state = jpeg_encoder_open(&layout);
    writer->sink.multiple = JPEG_SIDE * layout.vertical;
    writer->sink.encode = encode_jpeg_rows;
    writer->sink.write = write_rows;
    return writer->state != NULL || error_no_memory(error, "the encoded image");
}

static bool writer_finish(struct codec_writer *writer, struct error *error)
{
    return jpeg_encoder_finish(writer->state, &writer->file.bytes, &writer->file.size) ||
           error_no_memory(error, "the encoded image");
}

static void writer_close(struct codec_writer *writer)
{
    jpeg_encoder_close(writer->state);
}

const struct codec_functions parallel_jpeg = {
    .reader_need = reader_need,
    .reader_is_faster = reader_is_faster,
    .reader_open = reader_open,
    .reader_close = reader_close,
    .writer_need = writer_need,
    .writer_open = writer_open,
    .writer_finish = writer_finish,
    .writer_close = writer_close,
};
