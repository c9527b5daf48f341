/* SPDX-License-Identifier: MIT
 *
 * Images of the library, and files in memory: decode and encode. */
#include "codec/codec.h"
#include "compare/compare.h"
#include "container/other_content.h"
#include "library/library.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Images ---- */

struct gpuconv_image *gpuconv_image_new(int width, int height, int channels, enum gpuconv_type type,
                                        struct gpuconv_error *error)
{
    struct error reason;
    struct gpuconv_image *image = calloc(1, sizeof *image);
    const int bits = type == GPUCONV_UINT8 ? 8 : type == GPUCONV_UINT16 ? 16 : 32;
    bool done = image != NULL || error_no_memory(&reason, "an image");
    if (done && (type < GPUCONV_UINT8 || type > GPUCONV_FLOAT || width < 1 || height < 1 || width > FORMAT_SIDE_MAX ||
                 height > FORMAT_SIDE_MAX || channels < 1 || channels > 4))
        done = error_set(&reason, ERROR_USAGE, "there is no image of %d x %d x %d samples and type %d", width, height,
                         channels, (int)type);
    done = done && image_allocate(&image->image, width, height, channels, bits, &reason);
    if (library_status(done, &reason, error) == GPUCONV_OK)
        return image;
    free(image);
    return NULL;
}

enum gpuconv_type library_type_of(int bits)
{
    return bits == 8 ? GPUCONV_UINT8 : bits == 16 ? GPUCONV_UINT16 : GPUCONV_FLOAT;
}

struct gpuconv_view gpuconv_image_view(const struct gpuconv_image *image)
{
    const struct image *decoded = &image->image;
    return gpuconv_interleaved(decoded->samples, decoded->width, decoded->height, decoded->channels,
                               library_type_of(decoded->bits));
}

void gpuconv_image_free(struct gpuconv_image *image)
{
    if (image == NULL)
        return;
    image_free(&image->image);
    metadata_free(&image->metadata);
    free(image);
}

void library_warn_dropped(struct gpuconv_error *error, const char *name, uint64_t dropped)
{
    char parts[512];
    dropped = metadata_without_notes(dropped);
    if (dropped == 0)
        return;
    metadata_print_dropped(dropped, parts, sizeof parts);
    library_warn(error, "%s: metadata not carried over: %s", name, parts);
}

/* ---- Decode ---- */

bool library_inspect(const void *bytes, size_t size, const char *name, const struct codec_settings *settings,
                     struct codec_info *info, struct error *error)
{
    return (bytes != NULL || error_set(error, ERROR_USAGE, "there are no bytes; give the bytes of an image")) &&
           codec_inspect(bytes, size, name, settings, info, error) && codec_choose_reader(info, settings, name, error);
}

enum gpuconv_status gpuconv_inspect(const void *bytes, size_t size, struct gpuconv_file_info *info,
                                    struct gpuconv_error *error)
{
    const struct codec_settings settings = {0};
    struct error reason;
    struct codec_info found;
    const bool done = library_inspect(bytes, size, "image", &settings, &found, &reason);
    *info = (struct gpuconv_file_info){0};
    if (done)
        *info = (struct gpuconv_file_info){.format = found.format->name,
                                           .width = found.width,
                                           .height = found.height,
                                           .channels = found.channels,
                                           .type = library_type_of(found.bits)};
    return library_status(done, &reason, error);
}

/* Decode the inspected INPUT to IMAGE, with its metadata. */
static bool decode_file(const struct codec_input *input, bool keeps_orientation, struct gpuconv_image *image,
                        struct error *error)
{
    const struct codec_info *info = input->info;
    image->chroma_subsampling = info->chroma_subsampling;
    image->metadata = (struct metadata){.max = METADATA_PART_MAX};
    return codec_read_picture(input, &image->image, &image->metadata, error) != NULL &&
           (keeps_orientation || metadata_orient(&image->metadata, &image->image, &image->chroma_subsampling, error));
}

bool library_decode_settings(const struct gpuconv_decode_options *options, struct codec_settings *settings,
                             struct error *error)
{
    *settings =
        (struct codec_settings){.bits = options->bits, .max_pixels = options->max_pixels, .page = options->page};
    if (options->page < 0)
        return error_set(error, ERROR_USAGE, "page %d was asked for; give a page from 1, or 0 for the main picture",
                         options->page);
    if (options->bits != 0 && options->bits != 8 && options->bits != 16)
        return error_set(error, ERROR_USAGE,
                         "%d bits a sample were asked for; give 8 or 16, or 0 for those of the file", options->bits);
    return library_check_reserved(options->reserved, sizeof options->reserved / sizeof *options->reserved, error);
}

static struct gpuconv_image *decode(struct gpuconv_context *context, const void *bytes, size_t size,
                                    const struct gpuconv_decode_options *options, struct codec_info *info,
                                    struct error *error)
{
    const struct gpuconv_decode_options defaults = {0}, *o = options != NULL ? options : &defaults;
    struct codec_settings settings;
    if (!library_check_context(context, error) || !library_decode_settings(o, &settings, error))
        return NULL;
    settings.pool = &context->pool;
    const char *name = o->name != NULL ? o->name : "image";
    const struct codec_input input = {.bytes = bytes, .size = size, .name = name, .info = info, .settings = &settings};
    if (!library_inspect(bytes, size, name, &settings, info, error))
        return NULL;
    struct gpuconv_image *image = calloc(1, sizeof *image);
    if (image == NULL) {
        error_no_memory(error, "an image");
        return NULL;
    }
    pthread_mutex_lock(&context->mutex);
    settings.reader_extra = codec_reader_extra(info, &settings);
    const bool done = decode_file(&input, o->keep_orientation != 0, image, error);
    pthread_mutex_unlock(&context->mutex);
    if (done)
        return image;
    error_add_subject(error, name);
    gpuconv_image_free(image);
    return NULL;
}

void library_warn_decoded(struct gpuconv_error *error, const char *name, const struct codec_info *info)
{
    if (info->cmyk)
        library_warn(error, "%s is CMYK, and becomes RGB", name);
    if (info->other_content != 0) {
        char names[OTHER_CONTENT_TEXT];
        container_print_other_content(info->other_content, names);
        library_warn(error, "%s also contains %s; only its first picture is used", name, names);
    }
}

struct gpuconv_image *gpuconv_decode(struct gpuconv_context *context, const void *bytes, size_t size,
                                     const struct gpuconv_decode_options *options, struct gpuconv_error *error)
{
    struct error reason;
    struct codec_info info;
    struct gpuconv_image *image = decode(context, bytes, size, options, &info, &reason);
    if (LIBRARY_RESULT(image, &reason, error) == NULL)
        return NULL;
    const char *name = options != NULL && options->name != NULL ? options->name : "image";
    library_warn_decoded(error, name, &info);
    library_warn_dropped(error, name, image->metadata.dropped);
    return image;
}

/* ---- Encode ---- */

bool library_encode_settings(const struct gpuconv_encode_options *options, struct codec_settings *settings,
                             const struct format **format, struct error *error)
{
    const struct gpuconv_image *like = options->metadata_of;
    const uint32_t colour = options->has_background ? options->background : 0xffffff;
    *settings = (struct codec_settings){
        .quality = options->quality > 0 ? options->quality : CODEC_QUALITY,
        .compression = options->compression == 0 ? CODEC_COMPRESSION : options->compression,
        .progressive = options->progressive != 0,
        .lossless = options->lossless != 0,
        .background = {(uint8_t)(colour >> 16), (uint8_t)(colour >> 8), (uint8_t)colour},
        .subsampling = options->subsampling,
    };
    if (options->compression < 0) /* -1 is none, and -2 is fast */
        settings->compression = options->compression == -1 ? 0 : CODEC_COMPRESSION_FAST;
    *format = format_find_by_suffix(options->format != NULL ? options->format : "png");
    if (*format == NULL) {
        char suffixes[256];
        format_join_suffixes("or", true, suffixes, sizeof suffixes);
        return error_set(error, ERROR_USAGE, "there is no format \"%s\"; give one of %s, without the dot",
                         options->format, suffixes);
    }
    if (options->quality < 0 || options->quality > 100 || options->compression < -2 || options->compression > 9 ||
        colour > 0xffffff)
        return error_set(error, ERROR_USAGE,
                         "the quality is %d, the compression %d and the background 0x%x; give 1 to 100, -2 to 9, and "
                         "0xRRGGBB",
                         options->quality, options->compression, (unsigned)colour);
    if (like != NULL)
        settings->chroma_subsampling = like->chroma_subsampling;
    if (options->subsampling != 0)
        settings->chroma_subsampling = jpeg_chroma_of(options->subsampling);
    if (options->subsampling != 0 && settings->chroma_subsampling.horizontal == 0)
        return error_set(error, ERROR_USAGE, "there is no chroma subsampling %d; give 444, 422, 420, 440 or 411",
                         options->subsampling);
    return library_check_reserved(options->reserved, sizeof options->reserved / sizeof *options->reserved, error);
}

bool library_write_metadata(const struct gpuconv_image *like, const struct image *image, const struct format *format,
                            uint8_t **bytes, size_t *size, uint64_t *dropped, struct error *error)
{
    struct metadata metadata = like->metadata; /* these two parts say the size */
    metadata.exif = metadata.xmp = (struct blob){0};
    const bool done = (blob_append(&metadata.exif, like->metadata.exif.bytes, like->metadata.exif.size) &&
                       blob_append(&metadata.xmp, like->metadata.xmp.bytes, like->metadata.xmp.size)) ||
                      error_no_memory(error, "metadata");
    const struct geometry geometry = {
        .width = image->width,
        .height = image->height,
        .horizontal = (double)image->width / like->image.width,
        .vertical = (double)image->height / like->image.height,
        .is_moved = image->width != like->image.width || image->height != like->image.height,
    };
    struct chroma_subsampling chroma = like->chroma_subsampling;
    const bool is_written = done && metadata_resize(&metadata, &geometry, &chroma, error) &&
                            format->write_metadata(&metadata, bytes, size, dropped, error);
    blob_free(&metadata.exif);
    blob_free(&metadata.xmp);
    return is_written;
}

/* Encode IMAGE, and put the metadata of LIKE into the file, unless it is NULL. */
static bool encode_with_metadata(const struct image *image, const struct gpuconv_image *like,
                                 const struct format *format, const struct codec_settings *settings, struct blob *file,
                                 uint64_t *dropped, struct error *error)
{
    if (codec_encode(image, format, settings, &file->bytes, &file->size, error) &&
        (like == NULL || library_write_metadata(like, image, format, &file->bytes, &file->size, dropped, error)))
        return true;
    blob_free(file);
    return false;
}

static bool encode_view(struct gpuconv_context *context, const struct gpuconv_view *view,
                        const struct gpuconv_encode_options *options, struct blob *file, const struct format **to,
                        uint64_t *dropped, struct error *error)
{
    const struct gpuconv_encode_options defaults = {0}, *o = options != NULL ? options : &defaults;
    const struct gpuconv_image *like = o->metadata_of;
    struct codec_settings settings;
    struct image image, copy;
    if (!library_check_context(context, error))
        return false;
    if (!library_encode_settings(o, &settings, to, error) || !view_take_image(view, "image", &image, &copy, error))
        return false;
    settings.pool = &context->pool;
    pthread_mutex_lock(&context->mutex);
    const bool done = encode_with_metadata(&image, like, *to, &settings, file, dropped, error);
    pthread_mutex_unlock(&context->mutex);
    image_free(&copy);
    return done;
}

void library_warn_encoded(struct gpuconv_error *error, const struct gpuconv_view *view, const struct format *format,
                          const struct gpuconv_encode_options *options)
{
    if (!format->holds_alpha && view->channels % 2 == 0 && (options == NULL || !options->has_background))
        library_warn(error, "%s cannot store alpha; the image is put on white, unless you give a background",
                     format->name);
    if (view->type == GPUCONV_UINT16 && format->max_bits < 16)
        library_warn(error, "%s stores %d bits per sample; the image's 16 bits are reduced", format->name,
                     format->max_bits);
}

enum gpuconv_status gpuconv_encode(struct gpuconv_context *context, const struct gpuconv_view *view,
                                   const struct gpuconv_encode_options *options, void **bytes, size_t *size,
                                   struct gpuconv_error *error)
{
    struct error reason;
    const struct format *format;
    uint64_t dropped = 0;
    struct blob file = {0};
    const bool done = encode_view(context, view, options, &file, &format, &dropped, &reason);
    *bytes = file.bytes;
    *size = file.size;
    const enum gpuconv_status status = library_status(done, &reason, error);
    if (!done)
        return status;
    library_warn_encoded(error, view, format, options);
    library_warn_dropped(error, format->name, dropped);
    return status;
}

void gpuconv_free(void *memory)
{
    free(memory);
}

/* ---- Compare ---- */

/* Copy the samples of IMAGE to COPY, and let IMAGE use these, unless it does already. */
static bool ensure_copy(struct image *image, struct image *copy, struct error *error)
{
    return copy->samples != NULL || library_copy_image(image, image, copy, error);
}

/* Set IMAGES to the images of both views. Unless STRICT, both get the channels that hold both. *SAME_SHAPE becomes
 * whether they have one shape. */
static bool take_pair(const struct gpuconv_view *expected, const struct gpuconv_view *actual, bool strict,
                      struct image images[2], struct image copies[2], bool *same_shape, struct error *error)
{
    copies[0] = copies[1] = (struct image){0};
    if (!view_take_image(expected, "expected image", &images[0], &copies[0], error) ||
        !view_take_image(actual, "actual image", &images[1], &copies[1], error))
        return false;
    const int a = images[0].channels, b = images[1].channels;
    *same_shape = images[0].width == images[1].width && images[0].height == images[1].height &&
                  images[0].bits == images[1].bits && (a == b || !strict);
    for (int i = 0; i < 2 && *same_shape && a != b; i++) {
        if (!ensure_copy(&images[i], &copies[i], error) || !image_widen(&copies[i], channels_of_both(a, b), error))
            return false;
        images[i] = copies[i];
    }
    return true;
}

static bool set_compare_rules(const struct gpuconv_compare_options *options, struct compare_rules *rules,
                              struct error *error)
{
    const double psnr = options->min_psnr, ssim = options->min_ssim, local = options->min_local_ssim;
    *rules = (struct compare_rules){
        .tolerance = options->tolerance,
        .different = options->different,
        .ignores_transparent = options->ignore_transparent != 0,
        .ignores_antialiasing = options->ignore_antialiasing != 0,
    };
    if (options->tolerance < 0)
        return error_set(error, ERROR_USAGE, "the tolerance is %d; give 0 or more", options->tolerance);
    if (!(options->tolerance_yiq >= 0 && options->tolerance_yiq <= 1 && ssim >= 0 && ssim <= 1 && local >= 0 &&
          local <= 1 && psnr >= 0 && psnr <= 200))
        return error_set(error, ERROR_USAGE,
                         "the YIQ tolerance is %g, and the lowest SSIM %g, local SSIM %g and PSNR %g; give 0 to 1, and "
                         "a PSNR of 0 to 200",
                         options->tolerance_yiq, ssim, local, psnr);
    rules->yiq = (int)lround(options->tolerance_yiq * COMPARE_MILLION);
    rules->lowest[LIMIT_PSNR] = (int)lround(psnr * COMPARE_MILLION);
    rules->lowest[LIMIT_SSIM] = (int)lround(ssim * COMPARE_MILLION);
    rules->lowest[LIMIT_LOCAL_SSIM] = (int)lround(local * COMPARE_MILLION);
    rules->any_pixels =
        rules_limit_numbers(rules) && options->tolerance == 0 && rules->yiq == 0 && options->different == 0;
    return library_check_reserved(options->reserved, sizeof options->reserved / sizeof *options->reserved, error);
}

/* Compare two images of one shape by RULES. If RULES ignore pixels, the second one is a copy, which changes. */
static bool compare_image_pair(struct gpuconv_context *context, const struct image images[2],
                               const struct compare_rules *rules, struct gpuconv_difference *result,
                               struct error *error)
{
    struct difference found;
    uint8_t *flags;
    pthread_mutex_lock(&context->mutex);
    const bool done = compare_by_rules(&images[0], &images[1], rules, &context->pool, &found, &flags, error);
    pthread_mutex_unlock(&context->mutex);
    free(flags);
    if (!done)
        return false;
    *result = (struct gpuconv_difference){
        .same_shape = 1,
        .largest = found.largest,
        .first_x = found.first_x,
        .first_y = found.first_y,
        .box_x = found.box.x,
        .box_y = found.box.y,
        .box_width = found.box.width,
        .box_height = found.box.height,
        .pixels = found.pixels,
        .tolerated = found.tolerated,
        .psnr = found.psnr,
        .ssim = found.largest > 0 ? found.ssim.mean : 1,
        .antialiased = found.antialiased,
        .local_ssim = found.largest > 0 ? found.ssim.lowest : 1,
        .beyond = compare_limits(rules, &found) != 0,
    };
    memcpy(result->largest_of, found.largest_of, sizeof result->largest_of);
    return true;
}

enum gpuconv_status gpuconv_compare_with(struct gpuconv_context *context, const struct gpuconv_view *expected,
                                         const struct gpuconv_view *actual,
                                         const struct gpuconv_compare_options *options,
                                         struct gpuconv_difference *difference, struct gpuconv_error *error)
{
    const struct gpuconv_compare_options defaults = {0}, *o = options != NULL ? options : &defaults;
    struct error reason;
    struct compare_rules rules;
    struct image images[2], copies[2] = {{0}};
    bool same_shape = false;
    *difference = (struct gpuconv_difference){0};
    bool done = library_check_context(context, &reason) && set_compare_rules(o, &rules, &reason) &&
                take_pair(expected, actual, o->strict_channels != 0, images, copies, &same_shape, &reason);
    if (done && same_shape && (rules.ignores_antialiasing || rules.ignores_transparent))
        done = ensure_copy(&images[1], &copies[1], &reason);
    if (done && same_shape)
        done = compare_image_pair(context, images, &rules, difference, &reason);
    else
        difference->beyond = 1;
    image_free(&copies[0]);
    image_free(&copies[1]);
    return library_status(done, &reason, error);
}

enum gpuconv_status gpuconv_compare(struct gpuconv_context *context, const struct gpuconv_view *expected,
                                    const struct gpuconv_view *actual, int tolerance,
                                    struct gpuconv_difference *difference, struct gpuconv_error *error)
{
    const struct gpuconv_compare_options options = {.tolerance = tolerance, .strict_channels = 1};
    return gpuconv_compare_with(context, expected, actual, &options, difference, error);
}

struct gpuconv_image *gpuconv_compare_picture(const struct gpuconv_view *expected, const struct gpuconv_view *actual,
                                              struct gpuconv_error *error)
{
    struct error reason;
    struct image images[2], copies[2] = {{0}};
    bool same_shape = false;
    struct gpuconv_image *picture = calloc(1, sizeof *picture);
    const bool done = (picture != NULL || error_no_memory(&reason, "an image")) &&
                      take_pair(expected, actual, false, images, copies, &same_shape, &reason) &&
                      (same_shape || error_set(&reason, ERROR_USAGE,
                                               "the sizes or types of the images differ; make them the same")) &&
                      difference_picture(&images[0], &images[1], NULL, &picture->image, &reason);
    image_free(&copies[0]);
    image_free(&copies[1]);
    if (library_status(done, &reason, error) == GPUCONV_OK)
        return picture;
    free(picture);
    return NULL;
}
