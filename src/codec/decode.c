/* SPDX-License-Identifier: MIT
 *
 * Files to images: at once, or row by row. */
#include "codec/codec_internal.h"

#include "base/file.h"

#include <stdlib.h>

/* Convert the decoded IMAGE to the wanted bits a sample. */
static bool convert_bits(const struct codec_input *input, struct image *image, struct error *error)
{
    const int bits = codec_bits(input->info, input->settings);
    struct image converted;
    if (image->bits == bits)
        return true;
    const bool done = image_convert(image, bits, &converted, NULL) || codec_report_decode_memory(input, error);
    image_free(image);
    *image = converted;
    return done;
}

bool codec_reads_rows(const struct codec_info *info)
{
    return info->codec->reader_open != NULL && !info->interlaced;
}

size_t codec_reader_need(const struct codec_info *info)
{
    return info->codec->reader_need(info);
}

bool codec_reader_open(struct codec_reader *reader, const struct codec_input *input, struct error *error)
{
    *reader = (struct codec_reader){.input = *input};
    return input->info->codec->reader_open(reader, error);
}

bool codec_reader_fetch(struct codec_reader *reader, int rows, uint8_t *raw, struct error *error)
{
    return reader->input.info->codec->reader_fetch(reader, rows, raw, error);
}

/* Read rows of INFO's bits and convert them to samples of BITS. */
static bool read_converted(struct codec_reader *reader, int rows, uint8_t *raw, int bits, uint8_t *samples,
                           struct error *error)
{
    const struct codec_info *info = reader->input.info;
    struct image read, converted;
    if (!image_allocate(&read, info->width, rows, info->channels, info->bits, NULL))
        return codec_report_decode_memory(&reader->input, error);
    const bool done = info->codec->reader_read(reader, rows, raw, read.samples, error);
    converted = read;
    converted.bits = bits;
    converted.samples = samples;
    if (done)
        image_convert_samples(&read, &converted);
    image_free(&read);
    return done;
}

bool codec_reader_read(struct codec_reader *reader, int rows, uint8_t *raw, uint8_t *samples, struct error *error)
{
    const struct codec_info *info = reader->input.info;
    const int bits = codec_bits(info, reader->input.settings);
    return bits == info->bits ? info->codec->reader_read(reader, rows, raw, samples, error)
                              : read_converted(reader, rows, raw, bits, samples, error);
}

void codec_reader_close(struct codec_reader *reader)
{
    if (reader->input.info != NULL)
        reader->input.info->codec->reader_close(reader);
    *reader = (struct codec_reader){0};
}

/* Read all rows of a file into IMAGE. */
static bool read_rows(struct codec_reader *reader, struct image *image, struct error *error)
{
    /* They stay in a cache from the fetch to the read. PNG's filters are undone on eight rows at once. */
    enum { BAND_BYTES = 1 << 18, MULTIPLE = 8 };
    int most = reader->raw_bytes < BAND_BYTES ? BAND_BYTES / (int)(reader->raw_bytes + 1) : 1;
    if (most > MULTIPLE)
        most -= most % MULTIPLE;
    uint8_t *raw = NULL;
    bool done = true;
    if (reader->raw_bytes > 0) {
        raw = malloc((size_t)most * reader->raw_bytes);
        done = raw != NULL || codec_report_decode_memory(&reader->input, error);
    }
    for (int y = 0, rows; done && y < image->height; y += rows) {
        rows = image->height - y < most ? image->height - y : most;
        done = (raw == NULL || codec_reader_fetch(reader, rows, raw, error)) &&
               codec_reader_read(reader, rows, raw, image_row(image, y), error);
    }
    free(raw);
    return done;
}

/* Decode a whole file by the codec's reader of rows. */
static bool decode_by_rows(const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    struct codec_reader reader;
    if (!image_allocate(image, info->width, info->height, info->channels, codec_bits(info, input->settings), error))
        return codec_report_decode_memory(input, error);
    const bool done = codec_reader_open(&reader, input, error) && read_rows(&reader, image, error);
    codec_reader_close(&reader);
    if (!done)
        image_free(image);
    return done;
}

/* Decode a file at once, and check what the codec has made of it. */
static bool decode_at_once(const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    if (!info->codec->decode(input, image, error)) {
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

bool codec_decode_inspected(const struct codec_input *input, struct image *image, struct error *error)
{
    *image = (struct image){0};
    return codec_reads_rows(input->info) ? decode_by_rows(input, image, error) : decode_at_once(input, image, error);
}

bool codec_decode(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                  struct image *image, struct codec_info *info, struct error *error)
{
    struct codec_info found;
    const struct codec_input input = {
        .bytes = bytes, .size = size, .name = file_input_name(name), .info = &found, .settings = settings};
    *image = (struct image){0};
    if (!codec_inspect(bytes, size, name, settings, &found, error) ||
        !codec_choose_reader(&found, settings, input.name, error) || !codec_decode_inspected(&input, image, error))
        return false;
    if (info != NULL)
        *info = found;
    return true;
}
