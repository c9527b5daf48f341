/* SPDX-License-Identifier: MIT */
#include "codec/codec_internal.h"

#include "base/file.h"
#include "base/parallel.h"
#include "container/other_content.h"
#include "image/stream.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table ---- */

enum {
    PNG = 1 << FORMAT_PNG,
    JPEG = 1 << FORMAT_JPEG,
    PNM = 1 << FORMAT_PGM | 1 << FORMAT_PPM | 1 << FORMAT_PNM | 1 << FORMAT_PAM,
    WEBP = 1 << FORMAT_WEBP,
    TIFF = 1 << FORMAT_TIFF,
    AVIF = 1 << FORMAT_AVIF,
    HEIC = 1 << FORMAT_HEIC,
};

/* The fastest codec comes first, as measured on a photo of 15 Mpixel (docs/benchmarks.md), and stb last. Up to its
 * limits stb reads all PNGs and JPEGs that codec_inspect accepts, except rare JPEGs: it would accept damaged ones. */
static const struct codec table[] = {
    {
        .name = "parallel-jpeg",
        .summary = "on all threads, the bytes of libjpeg-turbo",
        .reads = JPEG,
        .writes = JPEG,
        .read_bits = 8,
        .write_bits = 8,
        .reads_rare_jpegs = true,
        .shrinks = true,
        .may_fall_back = true,
        .any_order = true,
        .fetches = true,
        .has_gpu_version = true,
        .max_side = 65500, /* as libjpeg-turbo */
        .limits = "65500 pixels on a side",
        .jpeg_options = JPEG_OPTION_SUBSAMPLING,
#ifdef GPUCONV_LIBJPEG_TURBO
        .functions = &parallel_jpeg,
#endif
    },
    {
        .name = "libjpeg-turbo",
        .summary = "grey stays grey, and subsampling is kept",
        .reads = JPEG,
        .writes = JPEG,
        .read_bits = 8,
        .write_bits = 8,
        .reads_rare_jpegs = true,
        .shrinks = true,
        .max_side = 65500, /* JPEG_MAX_DIMENSION */
        .limits = "65500 pixels on a side",
        .jpeg_options = JPEG_OPTION_SUBSAMPLING | JPEG_OPTION_QUANTISERS | JPEG_OPTION_PROGRESSIVE,
#ifdef GPUCONV_LIBJPEG_TURBO
        .functions = &libjpeg_turbo,
#endif
    },
    {
        .name = "parallel-png",
        .summary = "compresses on all threads, to the same file on any number",
        .reads = PNG,
        .writes = PNG,
        .read_bits = 16,
        .write_bits = 16,
        .takes_compression = true,
        .fetches = true,
        .has_gpu_version = true,
        .functions = &parallel_png,
    },
    {
        .name = "parallel-pnm",
        .summary = "copies samples on all threads",
        .reads = PNM,
        .writes = PNM,
        .read_bits = 16,
        .write_bits = 16,
        .any_order = true,
        .functions = &parallel_pnm,
    },
    {
        .name = "libwebp",
        .summary = "lossy, also on two threads, or lossless",
        .reads = WEBP,
        .writes = WEBP,
        .read_bits = 8,
        .write_bits = 8,
#ifdef GPUCONV_LIBWEBP
        .functions = &libwebp,
#endif
    },
    {
        .name = "libtiff",
        .summary = "strips and tiles, of 1 to 16 bits",
        .reads = TIFF,
        .writes = TIFF,
        .read_bits = 16,
        .write_bits = 16,
        .takes_compression = true,
#ifdef GPUCONV_LIBTIFF
        .functions = &libtiff,
#endif
    },
    {
        .name = "libheif",
        .summary = "HEVC and AV1, of 8 to 12 bits",
        .reads = AVIF | HEIC,
        .writes = AVIF,
        .read_bits = 16,
        .write_bits = 16,
#ifdef GPUCONV_LIBHEIF
        .functions = &libheif,
#endif
    },
    {
        .name = "stb",
        .summary = "reads a JPEG to the same samples in every build",
        .reads = PNG | JPEG,
        .writes = PNG | JPEG,
        .read_bits = 16,
        .write_bits = 8,
        .max_bytes = (size_t)1 << 30, /* stb computes sizes in int, with a filter byte for each row of a PNG */
        .max_file = INT_MAX - 1024,   /* stb counts bytes in int, and stb.c passes up to 1024 more */
        .limits = "2^30 samples, half as many of 16 bits, and files of 2 GiB",
        .functions = &stb,
    },
};

enum { CODECS = sizeof table / sizeof *table };

const struct codec *codecs(size_t *count)
{
    *count = CODECS;
    return table;
}

const struct codec *codec_find(const char *name, struct error *error)
{
    const char *names[CODECS];
    for (size_t i = 0; i < CODECS; i++) {
        names[i] = table[i].name;
        if (strcmp(name, table[i].name) != 0)
            continue;
        if (codec_is_built_in(&table[i]))
            return &table[i];
        error_set(error, ERROR_USAGE, "the codec %s was not built into this gpuconv; gpuconv --list-codecs shows all",
                  name);
        return NULL;
    }
    const size_t nearest = error_nearest(name, names, CODECS, names, CODECS);
    error_unknown(error, "codec", name, names, nearest, "--list-codecs");
    return NULL;
}

/* ---- The choice ---- */

bool codec_reads(const struct codec *codec, const struct format *format)
{
    return codec->reads >> format->id & 1;
}

bool codec_writes(const struct codec *codec, const struct format *format)
{
    return codec->writes >> format->id & 1;
}

/* Is an image of SHAPE within the limits of CODEC? */
static bool holds_shape(const struct codec *codec, const struct image *shape)
{
    const int side = codec->max_side > 0 ? codec->max_side : INT_MAX;
    return shape->width <= side && shape->height <= side &&
           (codec->max_bytes == 0 || image_bytes(shape) <= codec->max_bytes);
}

/* Report that an image of SHAPE is too large for CODEC, but not for BETTER, which may be NULL. Returns false. */
static bool report_limits(const struct codec *codec, const struct image *shape, const struct codec *better,
                          struct error *error)
{
    return error_set(error, ERROR_WORK, "%d x %d x %d samples are too many for the codec %s: it takes at most %s; %s%s",
                     shape->width, shape->height, shape->channels, codec->name, codec->limits,
                     better != NULL ? "leave --codec out, or give " : "cut the image into pieces or scale it down",
                     better != NULL ? better->name : "");
}

/* The shape of the image of a file, as it is decoded. */
static struct image file_shape(const struct codec_info *info)
{
    return (struct image){.width = info->width, .height = info->height, .channels = info->channels, .bits = info->bits};
}

/* Does CODEC, which may not be built in, read this kind of file? */
static bool reads_kind(const struct codec *codec, const struct codec_info *info)
{
    return codec_reads(codec, info->format) && (codec->reads_rare_jpegs || !(info->cmyk || info->arithmetic));
}

/* Is the file within the limits of CODEC? */
static bool holds_file(const struct codec *codec, const struct codec_info *info)
{
    const struct image shape = file_shape(info);
    return holds_shape(codec, &shape) && (codec->max_file == 0 || info->size <= codec->max_file);
}

static bool is_worth_it(const struct codec *codec, const struct codec_info *info, const struct codec_settings *settings)
{
    return codec->functions->reader_is_faster == NULL || codec->functions->reader_is_faster(info, settings);
}

/* The first codec that can read this kind of file and is expected to be faster. Without SETTINGS, the first that
 * supports every file. If WHOLE, it must also support the size of this file. NULL if the file is too large for all, or
 * if it is a rare JPEG and libjpeg-turbo was not built in. */
static const struct codec *best_reader(const struct codec_info *info, const struct codec_settings *settings, bool whole)
{
    for (const struct codec *codec = table; codec < table + CODECS; codec++)
        if (codec_is_built_in(codec) && reads_kind(codec, info) && (!whole || holds_file(codec, info)) &&
            (settings != NULL ? is_worth_it(codec, info, settings) : !codec->may_fall_back))
            return codec;
    return NULL;
}

/* The first codec for FORMAT; all of them are left out of this build. */
static const char *missing_codec(const struct format *format)
{
    const struct codec *codec = table;
    while (!codec_reads(codec, format))
        codec++;
    return codec->name;
}

void codec_describe(const struct codec *codec, char *text, size_t size)
{
    snprintf(text, size, "%s", codec->summary);
    if (codec_is_built_in(codec) && codec->functions->describe != NULL)
        codec->functions->describe(text, size);
}

bool codec_is_available(const struct format *format)
{
    for (const struct codec *codec = table; codec < table + CODECS; codec++)
        if (codec_is_built_in(codec) && codec_reads(codec, format))
            return true;
    return false;
}

bool codec_choose_reader(struct codec_info *info, const struct codec_settings *settings, const char *name,
                         struct error *error)
{
    const struct codec *best = best_reader(info, settings, true);
    const struct codec *first = best != NULL ? best : best_reader(info, settings, false);
    const struct codec *codec = settings->codec != NULL ? settings->codec : first;
    const struct image shape = file_shape(info);
    const char *kind = info->arithmetic ? "arithmetic-coded " : info->cmyk ? "CMYK " : "";
    info->codec = codec;
    if (!codec_is_available(info->format))
        return error_about(error, ERROR_WORK, name,
                           "is %s %s image, and this gpuconv was built without %s; convert it first, or build gpuconv "
                           "with that library",
                           format_article(info->format), info->format->name, missing_codec(info->format));
    if (first == NULL)
        return error_about(error, ERROR_WORK, name,
                           "is a%s %sJPEG, which is read only if libjpeg-turbo is built in; save it again as a plain "
                           "JPEG or PNG",
                           info->arithmetic ? "n" : "", kind);
    if (!reads_kind(codec, info))
        return error_about(error, ERROR_WORK, name, "the codec %s cannot read %s%s; leave --codec out, or give %s",
                           codec->name, kind, info->format->name, first->name);
    if (holds_file(codec, info))
        return true;
    report_limits(codec, &shape, best, error);
    error_add_subject(error, name);
    return false;
}

const struct codec *codec_find_substitute(const struct codec_info *info, struct error *error)
{
    const struct image shape = file_shape(info);
    const struct codec *codec = info->codec->may_fall_back ? best_reader(info, NULL, true) : info->codec;
    if (codec == NULL)
        report_limits(best_reader(info, NULL, false), &shape, NULL, error);
    return codec;
}

/* A format that holds larger images than FORMAT, or NULL. */
static const struct format *larger_format(const struct format *format)
{
    size_t count;
    const struct format *all = formats(&count);
    for (size_t i = 0; i < count; i++)
        if (all[i].max_side > format->max_side)
            return &all[i];
    return NULL;
}

/* Check that FORMAT holds the sides of an image of SHAPE. */
static bool check_sides(const struct image *shape, const struct format *format, struct error *error)
{
    const int side = format->max_side;
    const struct format *larger = larger_format(format);
    if (shape->width <= side && shape->height <= side)
        return true;
    return error_set(error, ERROR_WORK,
                     "%d x %d pixels are too many for %s %s file: at most %d on a side are written; cut the image into "
                     "pieces%s%s",
                     shape->width, shape->height, format_article(format), format->name, side,
                     larger != NULL ? " or write a " : "", larger != NULL ? larger->name : "");
}

struct image codec_converted_shape(const struct image *shape, const struct format *format,
                                   const struct codec_settings *settings)
{
    struct image converted = *shape;
    converted.samples = NULL;
    converted.bits = converted.bits > 8 && format->max_bits > 8 ? 16 : 8;
    if (!format->holds_alpha && image_has_alpha(shape))
        converted.channels = image_composed_channels(converted.channels, settings->background);
    if (!format->holds_grey && converted.channels == 1)
        converted.channels = 3;
    return converted;
}

/* Does CODEC write the bits of SHAPE, or the maximal bits that the format holds? */
static bool writes_bits(const struct codec *codec, const struct format *format, const struct image *shape)
{
    const int converted = shape->bits > 8 && format->max_bits > 8 ? 16 : 8;
    return codec_is_built_in(codec) && codec_writes(codec, format) && converted <= codec->write_bits;
}

unsigned codec_missing_options(const struct codec *codec, const struct format *format,
                               const struct codec_settings *settings)
{
    const unsigned wanted = (settings->subsampling > 0 ? JPEG_OPTION_SUBSAMPLING : 0u) |
                            (settings->quantisers != NULL ? JPEG_OPTION_QUANTISERS : 0u) |
                            (settings->progressive ? JPEG_OPTION_PROGRESSIVE : 0u);
    return format->id == FORMAT_JPEG ? wanted & ~codec->jpeg_options : 0;
}

/* The first codec that writes the format and bits of an image of SHAPE, and that takes, if WHOLE, its size and
 * the options. parallel-png writes all PNGs, and stb JPEGs up to its limits. Returns NULL if the image is too large for
 * all, or if no codec takes the options. */
static const struct codec *best_writer(const struct format *format, const struct image *shape,
                                       const struct codec_settings *settings, bool whole)
{
    for (const struct codec *codec = table; codec < table + CODECS; codec++)
        if (writes_bits(codec, format, shape) &&
            (!whole || (holds_shape(codec, shape) && codec_missing_options(codec, format, settings) == 0)))
            return codec;
    return NULL;
}

const struct codec *codec_find_writer(const struct format *format, const struct image *shape,
                                      const struct codec_settings *settings, struct error *error)
{
    const int bits = shape->bits;
    const struct codec *fit = best_writer(format, shape, settings, true);
    const struct codec *best = fit != NULL ? fit : best_writer(format, shape, settings, false);
    const struct codec *codec = settings->codec != NULL ? settings->codec : best;
    if (!codec_is_available(format)) {
        error_set(error, ERROR_USAGE, "this gpuconv was built without %s, so it cannot write %s; write another format",
                  missing_codec(format), format->name);
        return NULL;
    }
    if (format->is_only_read) {
        error_set(error, ERROR_USAGE,
                  "gpuconv reads %s and does not write it; write another format, such as avif or jpg", format->name);
        return NULL;
    }
    if (!check_sides(shape, format, error))
        return NULL;
    if (!format->holds_colour && codec_converted_shape(shape, format, settings).channels > 1) {
        error_set(error, ERROR_WORK, "%s files are grey, and the image has colours; write a .ppm, .pnm or .pam",
                  format->name);
        return NULL;
    }
    if (!codec_writes(codec, format)) {
        error_set(error, ERROR_USAGE, "the codec %s cannot write %s; leave --codec out, or give %s", codec->name,
                  format->name, best->name);
        return NULL;
    }
    if (!writes_bits(codec, format, shape)) {
        error_set(
            error, settings->bits > 0 ? ERROR_USAGE : ERROR_WORK,
            "the codec %s writes %d bits per sample, and the image has %d; give --codec %s, or --depth %d to reduce it",
            codec->name, codec->write_bits, bits, best->name, codec->write_bits);
        return NULL;
    }
    if (best->takes_compression && !codec->takes_compression && settings->compression != CODEC_COMPRESSION) {
        error_set(error, ERROR_USAGE,
                  "the codec %s has one compression only; leave --compression out, or give --codec %s", codec->name,
                  best->name);
        return NULL;
    }
    if (!holds_shape(codec, shape)) {
        report_limits(codec, shape, fit, error);
        return NULL;
    }
    const unsigned missing = codec_missing_options(codec, format, settings);
    if (missing != 0) {
        error_set(error, ERROR_USAGE, "the codec %s has no --%s; leave it out%s%s", codec->name,
                  missing & JPEG_OPTION_SUBSAMPLING  ? "subsampling"
                  : missing & JPEG_OPTION_QUANTISERS ? "quality keep"
                                                     : "progressive",
                  fit != NULL ? ", or give --codec " : "", fit != NULL ? fit->name : "");
        return NULL;
    }
    return codec;
}

/* ---- Errors ---- */

bool codec_report_damaged(const struct codec_input *input, const char *reason, struct error *error)
{
    if (reason != NULL && strncmp(reason, "Improper call", strlen("Improper call")) == 0)
        reason = NULL; /* libjpeg's words for a JPEG that ends before its picture */
    return error_about(
        error, ERROR_WORK, input->name, "the %s file is damaged: its data cannot be decoded%s%s%s; get an intact copy",
        input->info->format->name, reason != NULL ? " (" : "", reason != NULL ? reason : "", reason != NULL ? ")" : "");
}

/* ---- Inspection ---- */

/* Accept only sides up to FORMAT_SIDE_MAX, and at most MAX pixels, unless MAX is 0. */
static bool check_size(const struct codec_info *info, size_t max, const char *name, struct error *error)
{
    if (info->width > FORMAT_SIDE_MAX || info->height > FORMAT_SIDE_MAX)
        return error_about(error, ERROR_WORK, name,
                           "%d x %d pixels are too many: at most %d on a side are read; cut it into pieces or "
                           "scale it down",
                           info->width, info->height, FORMAT_SIDE_MAX);
    if (max > 0 && (size_t)info->width * (size_t)info->height > max)
        return error_about(error, ERROR_WORK, name,
                           "%d x %d pixels are more than the %zu that are allowed; scale it down, or "
                           "raise max-pixels",
                           info->width, info->height, max);
    return true;
}

bool codec_inspect(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                   struct codec_info *info, struct error *error)
{
    name = file_input_name(name);
    const struct format *format = format_find_by_magic(bytes, size, name, error);
    const int page = settings != NULL ? settings->page : 0;
    *info = (struct codec_info){.page = page};
    if (format == NULL || !format->check(bytes, size, name, info, error))
        return false;
    if (info->pages == 0) /* the format has one picture only */
        info->page = info->pages = 1;
    if (page > 0) /* nobody expects the others */
        info->other_content &= ~(1U << OTHER_FRAMES | 1U << OTHER_PICTURES);
    if (!container_check_page(page, info->pages, name, error) ||
        !check_size(info, settings != NULL ? settings->max_pixels : 0, name, error))
        return false;
    if (info->is_too_short)
        return error_about(error, ERROR_WORK, name,
                           "the %s file is damaged: its data are too few for %d x %d pixels; get an intact copy",
                           format->name, info->width, info->height);
    info->format = format;
    info->size = size;
    return true;
}

/* ---- Encoding ---- */

/* Set CONVERTED to ROWS as a codec gets them. COPY is what the caller releases with image_free. */
static bool convert_rows(const struct image *rows, const struct format *format, const struct codec_settings *settings,
                         struct image *converted, struct image *copy, struct error *error)
{
    const struct image wanted = codec_converted_shape(rows, format, settings);
    *converted = *rows;
    *copy = (struct image){0};
    if (wanted.channels != rows->channels) {
        if (!image_compose(rows, settings->background, wanted.channels, copy, error))
            return false;
        *converted = *copy;
    }
    if (converted->bits == wanted.bits)
        return true;
    struct image composed = *copy;
    const bool done = image_convert(converted, wanted.bits, copy, error);
    image_free(&composed);
    *converted = *copy;
    return done;
}

/* Convert ROWS to what the codec gets, and let it encode them, or write them if it encodes nothing. */
static bool encode_converted(void *context, int thread, int first, const struct image *rows, struct error *error)
{
    struct codec_writer *writer = context;
    struct image converted, copy;
    bool done = convert_rows(rows, writer->format, writer->settings, &converted, &copy, error);
    if (done)
        done = writer->inner.encode != NULL ? writer->inner.encode(writer, thread, first, &converted, error)
                                            : writer->inner.write(writer, first, &converted, error);
    image_free(&copy);
    return done;
}

/* Write ROWS, which are converted unless the codec encodes nothing. */
static bool write_converted(void *context, int first, const struct image *rows, struct error *error)
{
    struct codec_writer *writer = context;
    const size_t size = writer->written + codec_file_bound(rows, writer->format, writer->settings);
    if (!codec_may_grow(writer->settings, size, error))
        return false;
    return writer->inner.encode != NULL ? writer->inner.write(writer, first, rows, error)
                                        : encode_converted(writer, 0, first, rows, error);
}

bool codec_writer_open(struct codec_writer *writer, const struct image *shape, const struct format *format,
                       const struct codec_settings *settings, struct error *error)
{
    struct row_sink *sink = &writer->sink;
    *writer = (struct codec_writer){
        .sink = {.context = writer},
        .codec = codec_find_writer(format, shape, settings, error),
        .format = format,
        .settings = settings,
        .shape = codec_converted_shape(shape, format, settings),
    };
    if (writer->codec == NULL)
        return false;
    const struct codec_functions *functions = writer->codec->functions;
    writer->state = functions->writer_state > 0 ? calloc(1, functions->writer_state) : NULL;
    if (functions->writer_state > 0 && writer->state == NULL)
        return error_no_memory(error, "the encoded image");
    if (!functions->writer_open(writer, error))
        return false;
    writer->inner = *sink;
    if (writer->shape.channels != shape->channels || writer->shape.bits != shape->bits)
        sink->image = NULL;
    if (sink->write != NULL)
        sink->write = write_converted;
    if (sink->encode != NULL)
        sink->encode = encode_converted;
    return true;
}

bool codec_writer_finish(struct codec_writer *writer, uint8_t **bytes, size_t *size, struct error *error)
{
    const struct codec_functions *functions = writer->codec->functions;
    if (functions->writer_finish != NULL && !functions->writer_finish(writer, error))
        return false;
    *bytes = writer->file.bytes;
    *size = writer->file.size;
    writer->file = (struct blob){0};
    return true;
}

void codec_writer_close(struct codec_writer *writer)
{
    const struct codec_functions *functions = writer->codec != NULL ? writer->codec->functions : NULL;
    if (functions != NULL && functions->writer_close != NULL && writer->state != NULL)
        functions->writer_close(writer);
    if (functions != NULL && functions->writer_state > 0)
        free(writer->state);
    blob_free(&writer->file);
    writer->codec = NULL;
    writer->state = NULL;
}

/* Encode IMAGE at once, with the bits and channels that FORMAT holds. */
static bool encode_whole(const struct codec *codec, const struct image *image, const struct format *format,
                         const struct codec_settings *settings, uint8_t **bytes, size_t *size, struct error *error)
{
    struct image converted, copy;
    const bool done = convert_rows(image, format, settings, &converted, &copy, error) &&
                      codec->functions->encode(&converted, format, settings, bytes, size, error);
    image_free(&copy);
    return done;
}

bool codec_encode(const struct image *image, const struct format *format, const struct codec_settings *settings,
                  uint8_t **bytes, size_t *size, struct error *error)
{
    const struct codec *codec = codec_find_writer(format, image, settings, error);
    struct codec_writer writer;
    *bytes = NULL;
    *size = 0;
    if (codec == NULL)
        return false;
    if (!codec_writes_rows(codec))
        return encode_whole(codec, image, format, settings, bytes, size, error);
    const struct row_source source = {.image = image, .any_order = true};
    const bool done = codec_writer_open(&writer, image, format, settings, error) &&
                      stream_move(image, source, writer.sink, settings->pool, error) &&
                      codec_writer_finish(&writer, bytes, size, error);
    codec_writer_close(&writer);
    return done;
}
