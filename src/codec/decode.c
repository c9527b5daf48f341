/* SPDX-License-Identifier: MIT
 *
 * Files to images: at once, or row by row. */
#include "codec/codec_internal.h"

#include "base/file.h"
#include "image/stream.h"
#include "metadata/littlecms.h"

#include <stdlib.h>

/* Make sRGB of the samples of a file, by its profile. A codec that decodes CMYK has done it. */
static void convert_colours(const struct codec_input *input, struct image *image)
{
    const struct transform *transform = input->info->cmyk ? NULL : input->settings->transform;
    for (int y = 0; transform != NULL && y < image->height; y++)
        transform_apply(transform, image_row(image, y), image_row(image, y), (size_t)image->width);
}

/* Convert the decoded IMAGE to the wanted bits a sample. */
static bool convert_bits(const struct codec_input *input, struct image *image, struct error *error)
{
    const int bits = codec_bits(input->info, input->settings);
    struct image converted;
    convert_colours(input, image);
    if (image->bits == bits)
        return true;
    const bool done = image_convert(image, bits, &converted, error);
    image_free(image);
    *image = converted;
    return done;
}

/* Does CODEC read this file row by row? */
static bool reads_rows(const struct codec *codec, const struct codec_info *info)
{
    return codec->functions->reader_open != NULL && !info->interlaced;
}

bool codec_reads_rows(const struct codec_info *info)
{
    const struct codec *substitute = codec_find_substitute(info, NULL);
    return reads_rows(info->codec, info) && (substitute == NULL || reads_rows(substitute, info));
}

/* ---- Readers ---- */

/* Read rows of the file's bits and colours, and convert them to samples with codec_bits. */
static bool read_converted(void *context, int first, int rows, const struct rows *raw, uint8_t *samples,
                           struct error *error)
{
    const struct codec_reader *reader = context;
    const struct codec_info *info = reader->input.info;
    struct image read, converted;
    if (!image_allocate(&read, info->width, rows, info->channels, info->bits, error))
        return false;
    const bool done = reader->inner.read(context, first, rows, raw, read.samples, error);
    converted = read;
    converted.bits = codec_bits(info, reader->input.settings);
    converted.samples = samples;
    if (done) {
        convert_colours(&reader->input, &read);
        image_convert_samples(&read, &converted);
    }
    image_free(&read);
    return done;
}

/* Open a reader of CODEC. */
static bool open_reader(struct codec_reader *reader, const struct codec_input *input, const struct codec *codec,
                        struct error *error)
{
    const struct codec_info *info = input->info;
    struct row_source *source = &reader->source;
    *reader = (struct codec_reader){
        .source = {.context = reader, .multiple = 1, .any_order = codec->any_order}, .input = *input, .codec = codec};
    const struct codec_functions *functions = codec->functions;
    if (reads_rows(codec, info)) {
        reader->state = functions->reader_state > 0 ? calloc(1, functions->reader_state) : NULL;
        if (functions->reader_state > 0 && reader->state == NULL)
            return error_no_memory(error, "the decoder");
        if (!functions->reader_open(reader, error))
            return false;
    }
    if (source->read != NULL &&
        (codec_bits(info, input->settings) != info->bits || (input->settings->transform != NULL && !info->cmyk))) {
        reader->inner = *source;
        source->image = NULL;
        source->read = read_converted;
    }
    return true;
}

bool codec_reader_open(struct codec_reader *reader, const struct codec_input *input, struct error *error)
{
    if (open_reader(reader, input, input->info->codec, error))
        return true;
    if (!reader->unsupported)
        return false;
    codec_reader_close(reader);
    const struct codec *codec = codec_find_substitute(input->info, error);
    if (codec != NULL)
        return open_reader(reader, input, codec, error);
    error_add_subject(error, input->name);
    return false;
}

void codec_reader_close(struct codec_reader *reader)
{
    if (reader->codec != NULL && reads_rows(reader->codec, reader->input.info)) {
        const struct codec_functions *functions = reader->codec->functions;
        if (functions->reader_close != NULL && (functions->reader_state == 0 || reader->state != NULL))
            functions->reader_close(reader);
        if (functions->reader_state > 0)
            free(reader->state);
    }
    *reader = (struct codec_reader){0};
}

/* ---- Whole files ---- */

/* Decode a file row by row. */
static bool decode_by_rows(const struct codec_reader *reader, struct image *image, struct error *error)
{
    const struct codec_input *input = &reader->input;
    const struct codec_info *info = input->info;
    if (!image_allocate(image, info->width, info->height, info->channels, codec_bits(info, input->settings), error))
        return false;
    const struct row_sink sink = {.image = image, .multiple = 1};
    const bool done = stream_move(image, reader->source, sink, input->settings->pool, error);
    if (!done)
        image_free(image);
    return done;
}

/* Decode a file at once, and check what the codec has made of it. */
static bool decode_at_once(const struct codec_reader *reader, struct image *image, struct error *error)
{
    const struct codec_input *input = &reader->input;
    const struct codec_info *info = input->info;
    if (!reader->codec->functions->decode(input, image, error)) {
        *image = (struct image){0};
        return false;
    }
    if (image->width != info->width || image->height != info->height || image->channels != info->channels ||
        image->bits != info->bits) {
        image_free(image);
        return error_about(error, ERROR_WORK, input->name,
                           "the %s file is damaged: its headers contradict each other; get an intact copy",
                           info->format->name);
    }
    return convert_bits(input, image, error);
}

bool codec_reader_decode(struct codec_reader *reader, struct image *image, struct error *error)
{
    *image = (struct image){0};
    return reader->source.read != NULL ? decode_by_rows(reader, image, error) : decode_at_once(reader, image, error);
}

const struct codec *codec_read_picture(const struct codec_input *input, struct image *image, struct metadata *metadata,
                                       struct error *error)
{
    struct codec_reader reader = {0};
    *image = (struct image){0};
    if (metadata != NULL)
        metadata->page = input->settings->page;
    const bool done =
        (metadata == NULL || input->info->format->read_metadata(input->bytes, input->size, metadata, error)) &&
        codec_reader_open(&reader, input, error) && codec_reader_decode(&reader, image, error);
    const struct codec *codec = done ? reader.codec : NULL;
    codec_reader_close(&reader);
    return codec;
}

bool codec_decode(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                  struct image *image, struct codec_info *info, struct error *error)
{
    struct codec_info found;
    const struct codec_input input = {
        .bytes = bytes, .size = size, .name = file_input_name(name), .info = &found, .settings = settings};
    *image = (struct image){0};
    if (!codec_inspect(bytes, size, name, settings, &found, error) ||
        !codec_choose_reader(&found, settings, input.name, error))
        return false;
    found.codec = codec_read_picture(&input, image, NULL, error);
    if (found.codec == NULL)
        error_add_subject(error, input.name);
    else if (info != NULL)
        *info = found;
    return found.codec != NULL;
}
