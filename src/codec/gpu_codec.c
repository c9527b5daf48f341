/* SPDX-License-Identifier: MIT */
#include "codec/gpu_codec.h"

#include "codec/png_picture.h"

/* The codec for FORMAT that a GPU has, too. Returns NULL if there is none, if FORMAT is not the one with ID, or if
 * SETTINGS name another codec. */
static const struct codec *find_codec(enum format_id id, const struct format *format,
                                      const struct codec_settings *settings)
{
    size_t count;
    const struct codec *all = codecs(&count);
    for (size_t i = 0; i < count; i++)
        if (format->id == id && all[i].has_gpu_version && codec_writes(&all[i], format) && codec_is_built_in(&all[i]) &&
            (settings->codec == NULL || settings->codec == &all[i]))
            return &all[i];
    return NULL;
}

const struct codec *codec_plan_gpu_input(const struct codec_input *input, struct end *end)
{
    const struct codec_info *info = input->info;
    const struct codec *codec = find_codec(FORMAT_JPEG, info->format, input->settings);
    end->kind = END_HOST;
    if (codec != NULL && jpeg_layout_for_reading(&end->jpeg, &info->jpeg)) {
        end->kind = END_JPEG;
        end->scan = (struct jpeg_scan){input->bytes + info->jpeg.scan, info->jpeg.scan_size};
        jpeg_layout_shrink(&end->jpeg, info->shrink);
        return codec;
    }
    struct png_picture picture;
    codec = find_codec(FORMAT_PNG, info->format, input->settings);
    if (codec == NULL || info->interlaced)
        return NULL;
    png_picture_read(input, &picture); /* the inspection has checked the CRCs of the chunks */
    end->kind = END_PNG;
    end->png = picture.layout;
    end->stream = picture.stream;
    return codec;
}

const struct codec *codec_plan_gpu_output(const struct format *format, const struct image *shape,
                                          const struct codec_settings *settings, struct end *end)
{
    const struct codec *codec = find_codec(FORMAT_JPEG, format, settings);
    end->kind = END_HOST;
    if (codec != NULL && shape->width <= codec->max_side && shape->height <= codec->max_side &&
        !image_has_alpha(shape) && codec_missing_options(codec, format, settings) == 0) {
        end->kind = END_JPEG;
        jpeg_layout_for_writing(&end->jpeg, shape->width, shape->height, shape->channels, settings->chroma_subsampling,
                                settings->quality);
        return codec;
    }
    if (settings->compression != CODEC_COMPRESSION) /* other levels store, or compress again with a library */
        return NULL;
    codec = find_codec(FORMAT_PNG, format, settings);
    end->kind = codec != NULL ? END_PNG : END_HOST;
    return codec;
}

bool codec_begin_file(const struct image *shape, struct end *end, struct error *error)
{
    return (end->kind == END_JPEG ? jpeg_append_headers(&end->head, &end->jpeg)
                                  : png_begin_stream(shape, &end->head)) ||
           error_no_memory(error, "the encoded image");
}

uint8_t *codec_end_file(const struct end *end, bool copies, size_t *size, struct error *error)
{
    uint8_t *file = memcpy(end->data - end->head.size, end->head.bytes, end->head.size);
    uint8_t *last = end->data + end->size + JPEG_SOI_BYTES;
    if (end->kind == END_PNG)
        last = png_end_stream(end->data, end->size, end->adler, NULL);
    else
        put_big16(end->data + end->size, 0xff00 | JPEG_MARKER_EOI);
    struct blob copy = {0};
    *size = (size_t)(last - file);
    if (copies && !blob_append(&copy, file, *size))
        error_no_memory(error, "a file of %zu bytes", *size);
    return copies ? copy.bytes : file;
}
