/* SPDX-License-Identifier: MIT
 *
 * Upper bounds of the memory that codecs take. Each codec's own functions say what its reader and its writer take. This
 * file adds them up. tests/unit/test_codec_memory.c compares both with what codecs allocate. */
#include "codec/codec_internal.h"

#include "base/memory.h"
#include "base/round.h"

/* ---- Reading ---- */

static size_t reader_need(const struct codec *codec, const struct codec_info *info)
{
    return codec->functions->reader_need != NULL ? codec->functions->reader_need(info) : 0;
}

size_t codec_reader_need(const struct codec_info *info)
{
    const struct codec *substitute = codec_find_substitute(info, NULL);
    const size_t need = reader_need(info->codec, info);
    const size_t other = substitute != NULL ? reader_need(substitute, info) : 0;
    return need > other ? need : other;
}

size_t codec_reader_extra(const struct codec_info *info, const struct codec_settings *settings)
{
    const struct codec_functions *functions = info->codec->functions;
    return functions->reader_extra != NULL && codec_reads_rows(info) ? functions->reader_extra(info, settings) : 0;
}

/* Components of a JPEG are fetched in whole units of up to 32 samples, and rows of a PNG with a byte for the filter. */
size_t codec_raw_bytes(const struct codec_info *info)
{
    const size_t sample = info->bits > 8 ? 2 : 1;
    return info->codec->fetches ? ((size_t)info->width + 31) * (size_t)info->channels * sample + 1 : 0;
}

/* ---- Writing ---- */

size_t codec_writer_need(const struct codec *codec, const struct image *shape, const struct format *format,
                         const struct codec_settings *settings)
{
    const struct image converted = codec_converted_shape(shape, format, settings);
    return codec->functions->writer_need != NULL ? codec->functions->writer_need(&converted, settings) : 0;
}

/* A PNM has the bytes of its rows, and a PNG at most these, a filter for each row and the heads of stored blocks. A
 * sample of a JPEG, in whole units, takes at most a byte up to quality 90. Above, a coefficient of 8 bits has a code of
 * at most 10 bits. More of the 64 cannot be larger, because the sum of their squares is at most 64 x 128^2. */
size_t codec_file_bound(const struct image *shape, const struct format *format, const struct codec_settings *settings)
{
    enum { OTHER = 1 << 16 };
    const struct image converted = codec_converted_shape(shape, format, settings);
    const size_t unit = (size_t)format->unit_rows, height = round_up((size_t)shape->height, unit);
    const size_t samples = round_up((size_t)shape->width, unit) * height * image_pixel_bytes(&converted);
    return (settings->quality <= 90 || !format->is_lossy ? samples + samples / 1024 : 9 * samples / 4) + height + OTHER;
}

/* A small buffer of a file doubles as needed; while it is copied, both are in memory. A large one is moved, grows by
 * quarters, and occupies only the pages that are written. */
size_t codec_file_need(size_t size)
{
    enum { FIRST = 1 << 18 };
    size_t need = FIRST;
    while (need < size)
        need += need < MEMORY_COPIED_MAX ? need : need / 4;
    return need;
}

bool codec_may_grow(const struct codec_settings *settings, size_t size, struct error *error)
{
    return settings->may_grow == NULL || settings->may_grow(settings->context, codec_file_need(size), error);
}

/* ---- Whole images ---- */

/* The bytes of NEED beyond COUNTED, which are counted already. */
static size_t beyond(size_t need, size_t counted)
{
    return need > counted ? need - counted : 0;
}

/* Let S be the bytes of the samples, before or after the filters and with the bits of the file or of the image,
 * whichever are more. The steps need at most:
 *
 *   decode an interlaced PNG          S, and S inflated
 *   decode row by row                 S, and the reader's need; 3 S bound the coefficients of a progressive JPEG
 *   decode fetched rows               S, S with the bits of the file, and the fetched rows, in whole units
 *   convert the bits, or turn it      S, and S
 *   filter                            S, and S
 *   encode                            S, and S for the file, and S/2 while its buffer grows by halves;
 *                                     from --compression 2 on 2 S more for filtered rows and a second stream
 *
 * So 4 S bound a decoder and 4.5 S an encoder, which follows it. The need of a reader beyond 3 S is added, and that of
 * a writer beyond 2 S. */
size_t codec_whole_need(const struct codec_info *info, const struct image *shape, const struct codec *encoder,
                        const struct format *format, const struct codec_settings *settings)
{
    const size_t before = (size_t)info->width * (size_t)info->height * (size_t)info->channels;
    const size_t after = image_samples(shape);
    const size_t samples = (shape->bits > 8 || info->bits > 8 ? 2 : 1) * (before > after ? before : after);
    const size_t raw = info->codec->any_order ? codec_raw_bytes(info) * ((size_t)info->height + CODEC_UNIT_ROWS) : 0;
    const size_t writer = encoder != NULL ? codec_writer_need(encoder, shape, format, settings) : 0;
    return 4 * samples + beyond(raw, 2 * samples) + beyond(codec_reader_need(info), 3 * samples) +
           beyond(writer, 2 * samples) + (settings->compression > CODEC_COMPRESSION ? samples / 2 : 0);
}
