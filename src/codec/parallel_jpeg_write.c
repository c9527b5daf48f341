/* SPDX-License-Identifier: MIT
 *
 * The codec `parallel-jpeg`, writing. Any thread encodes any rows of MCUs (jpeg/jpeg.h). */
#include "codec/codec_internal.h"

#include "jpeg/jpeg.h"

#include <stdlib.h>

struct encoding {
    struct jpeg_encoder *encoder;
    struct jpeg_band *
        *bands; /* of each row of MCUs: the band that begins with it, until it is in the file; else NULL */
    int rows;   /* of MCUs */
    struct jpeg_file file;
};

static bool report_memory(const struct codec_writer *writer, struct error *error)
{
    return codec_report_encode_memory(&writer->shape, writer->format, error);
}

/* The file is as long as libjpeg-turbo's. Each thread makes one band, of at most a row or CODEC_BAND_BYTES. */
size_t parallel_jpeg_writer_need(const struct image *shape, const struct codec_settings *settings, int threads)
{
    enum { OTHER = 1 << 18 };
    const size_t bytes = image_bytes(shape), row = bytes / (size_t)shape->height * 2 * JPEG_SIDE;
    const size_t band = row < CODEC_BAND_BYTES ? CODEC_BAND_BYTES : row;
    const size_t file = settings->quality <= 90 ? bytes : 9 * bytes / 4;
    return file + (size_t)threads * (band < file ? band : file) + OTHER;
}

static bool encode_rows(void *context, int thread, int first, const struct image *rows, struct error *error)
{
    const struct codec_writer *writer = context;
    (void)thread;
    struct encoding *encoding = writer->state;
    struct jpeg_band *band = jpeg_band_encode(encoding->encoder, rows);
    encoding->bands[first / writer->sink.multiple] = band;
    return band != NULL || report_memory(writer, error);
}

static bool write_rows(void *context, int first, const struct image *rows, struct error *error)
{
    const struct codec_writer *writer = context;
    struct encoding *encoding = writer->state;
    for (int y = first; y < first + rows->height; y += writer->sink.multiple) {
        struct jpeg_band **band = &encoding->bands[y / writer->sink.multiple];
        if (*band == NULL)
            continue; /* a band of several rows of MCUs has begun above */
        if (!jpeg_file_append(&encoding->file, encoding->encoder, *band))
            return report_memory(writer, error);
        free(*band);
        *band = NULL;
    }
    return true;
}

bool parallel_jpeg_writer_open(struct codec_writer *writer, int threads, struct error *error)
{
    (void)threads;
    const struct image *shape = &writer->shape;
    const struct codec_settings *settings = writer->settings;
    struct encoding *encoding = calloc(1, sizeof *encoding);
    struct jpeg_layout layout;
    if (encoding == NULL)
        return report_memory(writer, error);
    writer->state = encoding;
    jpeg_layout_for_writing(&layout, shape->width, shape->height, shape->channels, settings->chroma_subsampling,
                            settings->quality);
    encoding->encoder = jpeg_encoder_open(&layout);
    encoding->rows = layout.mcus_down;
    writer->sink.multiple = JPEG_SIDE * layout.vertical;
    writer->sink.encode = encode_rows;
    writer->sink.write = write_rows;
    encoding->bands = calloc((size_t)layout.mcus_down, sizeof *encoding->bands);
    return (encoding->encoder != NULL && encoding->bands != NULL &&
            jpeg_append_headers(&encoding->file.blob, &layout)) ||
           report_memory(writer, error);
}

bool parallel_jpeg_writer_finish(struct codec_writer *writer, uint8_t **bytes, size_t *size, struct error *error)
{
    struct encoding *encoding = writer->state;
    if (!jpeg_file_end(&encoding->file))
        return report_memory(writer, error);
    *bytes = encoding->file.blob.bytes;
    *size = encoding->file.blob.size;
    encoding->file.blob = (struct blob){0};
    return true;
}

void parallel_jpeg_writer_close(struct codec_writer *writer)
{
    struct encoding *encoding = writer->state;
    if (encoding == NULL)
        return;
    for (int i = 0; encoding->bands != NULL && i < encoding->rows; i++)
        free(encoding->bands[i]);
    free(encoding->bands);
    free(encoding->encoder);
    blob_free(&encoding->file.blob);
    free(encoding);
    writer->state = NULL;
}
