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

const struct codec *codec_find_scan(const struct codec_input *input, struct jpeg_layout *layout, struct jpeg_scan *scan)
{
    const struct codec *codec = find_codec(FORMAT_JPEG, input->info->format, input->settings);
    const struct jpeg_headers *headers = &input->info->jpeg;
    *scan = (struct jpeg_scan){input->bytes + headers->scan, headers->scan_size};
    if (codec == NULL || !jpeg_layout_for_reading(layout, headers))
        return NULL;
    jpeg_layout_shrink(layout, input->info->shrink);
    return codec;
}

/* The inspection has checked the CRCs of the chunks. */
const struct codec *codec_find_stream(const struct codec_input *input, struct png_layout *layout,
                                      struct png_stream *stream)
{
    const struct codec *codec = find_codec(FORMAT_PNG, input->info->format, input->settings);
    struct png_picture picture;
    if (codec == NULL || input->info->interlaced)
        return NULL;
    png_picture_read(input, &picture);
    *layout = picture.layout;
    *stream = picture.stream;
    return codec;
}

const struct codec *codec_plan_scan(const struct format *format, const struct image *shape,
                                    const struct codec_settings *settings, struct jpeg_layout *layout)
{
    const struct codec *codec = find_codec(FORMAT_JPEG, format, settings);
    if (codec == NULL || shape->width > codec->max_side || shape->height > codec->max_side || image_has_alpha(shape) ||
        codec_missing_options(codec, format, settings) != 0)
        return NULL;
    jpeg_layout_for_writing(layout, shape->width, shape->height, shape->channels, settings->chroma_subsampling,
                            settings->quality);
    return codec;
}

/* Other levels store, or compress again with a library. */
const struct codec *codec_plan_stream(const struct format *format, const struct codec_settings *settings)
{
    return settings->compression == CODEC_COMPRESSION ? find_codec(FORMAT_PNG, format, settings) : NULL;
}

bool codec_begin_file(const struct image *shape, const struct jpeg_layout *layout, struct blob *head,
                      struct error *error)
{
    return (layout != NULL ? jpeg_append_headers(head, layout) : png_begin_stream(shape, head)) ||
           error_no_memory(error, "the encoded image");
}

uint8_t *codec_end_file(const struct blob *head, uint8_t *data, size_t *size, const uint32_t *adler)
{
    uint8_t *file = memcpy(data - head->size, head->bytes, head->size), *end = data + *size + JPEG_SOI_BYTES;
    if (adler != NULL)
        end = png_end_stream(data, *size, *adler, NULL);
    else
        put_big16(data + *size, 0xff00 | JPEG_MARKER_EOI);
    *size = (size_t)(end - file);
    return file;
}
