/* SPDX-License-Identifier: MIT
 *
 * The codec `libheif`. The library decodes into an image of its own, and encodes from one, which rows fill as they
 * come. The container check has read the sides and the kind of the picture: libheif must find the same before it
 * decodes. It turns, mirrors and crops the picture as the file says, and makes RGB of YCbCr. It is loaded when it is
 * used, not linked: every start of gpuconv would take 3 ms more to load it and its codecs. */
#include "base/parallel.h"
#include "base/text.h"
#include "codec/codec_internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <libheif/heif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The library ---- */

#define LIBHEIF_FUNCTIONS(X)                                                                                           \
    X(heif_context_alloc)                                                                                              \
    X(heif_context_encode_image)                                                                                       \
    X(heif_context_free)                                                                                               \
    X(heif_context_get_encoder_for_format)                                                                             \
    X(heif_context_get_image_handle)                                                                                   \
    X(heif_context_get_primary_image_handle)                                                                           \
    X(heif_context_read_from_memory_without_copy)                                                                      \
    X(heif_context_set_max_decoding_threads)                                                                           \
    X(heif_context_set_maximum_image_size_limit)                                                                       \
    X(heif_context_write)                                                                                              \
    X(heif_decode_image)                                                                                               \
    X(heif_decoder_descriptor_get_id_name)                                                                             \
    X(heif_decoding_options_alloc)                                                                                     \
    X(heif_decoding_options_free)                                                                                      \
    X(heif_encoder_descriptor_get_id_name)                                                                             \
    X(heif_encoder_release)                                                                                            \
    X(heif_encoder_set_lossless)                                                                                       \
    X(heif_encoder_set_lossy_quality)                                                                                  \
    X(heif_encoder_set_parameter_integer)                                                                              \
    X(heif_encoder_set_parameter_string)                                                                               \
    X(heif_encoding_options_alloc)                                                                                     \
    X(heif_encoding_options_free)                                                                                      \
    X(heif_get_decoder_descriptors)                                                                                    \
    X(heif_get_encoder_descriptors)                                                                                    \
    X(heif_have_encoder_for_format)                                                                                    \
    X(heif_image_add_plane)                                                                                            \
    X(heif_image_create)                                                                                               \
    X(heif_image_get_bits_per_pixel_range)                                                                             \
    X(heif_image_get_height)                                                                                           \
    X(heif_image_get_nclx_color_profile)                                                                               \
    X(heif_image_get_plane)                                                                                            \
    X(heif_image_get_plane_readonly)                                                                                   \
    X(heif_image_get_width)                                                                                            \
    X(heif_image_handle_get_height)                                                                                    \
    X(heif_image_handle_get_width)                                                                                     \
    X(heif_image_handle_get_luma_bits_per_pixel)                                                                       \
    X(heif_image_handle_has_alpha_channel)                                                                             \
    X(heif_image_handle_is_premultiplied_alpha)                                                                        \
    X(heif_image_handle_release)                                                                                       \
    X(heif_image_release)                                                                                              \
    X(heif_image_set_nclx_color_profile)                                                                               \
    X(heif_init)                                                                                                       \
    X(heif_nclx_color_profile_alloc)                                                                                   \
    X(heif_nclx_color_profile_free)

struct libheif {
#define LIBHEIF_FIELD(name) __typeof__(name) *name;
    LIBHEIF_FUNCTIONS(LIBHEIF_FIELD)
#undef LIBHEIF_FIELD
};

/* The name has been the same since version 1.0 of 2018. */
static const char file_name[] = "libheif.so.1";

/* Load libheif, which stays loaded. */
static bool load_library(struct libheif *library, struct error *error)
{
    errno = 0;
    void *handle = dlopen(file_name, RTLD_NOW | RTLD_LOCAL);
    bool done = handle != NULL;
#define LOAD(name) done = done && (*(void **)&library->name = dlsym(handle, #name)) != NULL;
    LIBHEIF_FUNCTIONS(LOAD)
#undef LOAD
    if (!done)
        return error_not_loaded(error, "HEIC and AVIF need", file_name, "install libheif");
    library->heif_init(NULL); /* loads its plug-ins, once */
    return true;
}

/* What libheif decodes and encodes here. */
static void describe(char *text, size_t size)
{
    static const struct {
        enum heif_compression_format format;
        bool encodes;
        const char *words;
    } kinds[] = {{heif_compression_HEVC, false, "reads HEVC by"},
                 {heif_compression_AV1, false, "AV1 by"},
                 {heif_compression_AV1, true, "writes AV1 by"}};
    struct libheif library;
    text[0] = '\0';
    if (!load_library(&library, NULL)) {
        snprintf(text, size, "%s cannot be loaded", file_name);
        return;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const struct heif_decoder_descriptor *decoder;
        const struct heif_encoder_descriptor *encoder;
        const char *name = NULL;
        char word[64];
        if (kinds[i].encodes && library.heif_get_encoder_descriptors(kinds[i].format, NULL, &encoder, 1) > 0)
            name = library.heif_encoder_descriptor_get_id_name(encoder);
        else if (!kinds[i].encodes && library.heif_get_decoder_descriptors(kinds[i].format, &decoder, 1) > 0)
            name = library.heif_decoder_descriptor_get_id_name(decoder);
        snprintf(word, sizeof word, "%s %s", kinds[i].words, name != NULL ? name : "nothing");
        text_add_word(text, size, word, NULL);
    }
}

/* Report what libheif says, up to the end of the line. Returns false. */
static bool report(struct heif_error reason, const struct codec_input *input, struct error *error)
{
    char text[128];
    snprintf(text, sizeof text, "%.*s", (int)strcspn(reason.message, "\n"), reason.message);
    if (reason.code == heif_error_Memory_allocation_error && reason.subcode != heif_suberror_Security_limit_exceeded)
        return error_no_memory(error, input != NULL ? "the decoder" : "the encoded image");
    if (input != NULL && reason.code != heif_error_Unsupported_feature &&
        reason.code != heif_error_Memory_allocation_error)
        return codec_report_damaged(input, text, error);
    return error_set(error, ERROR_WORK, "libheif cannot %s the picture: %s; convert it first",
                     input != NULL ? "decode" : "encode", text);
}

/* Samples of more than 8 bits are in the machine's order. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
enum { RGB16 = heif_chroma_interleaved_RRGGBB_LE, RGBA16 = heif_chroma_interleaved_RRGGBBAA_LE };
#else
enum { RGB16 = heif_chroma_interleaved_RRGGBB_BE, RGBA16 = heif_chroma_interleaved_RRGGBBAA_BE };
#endif

/* The form of the library's image for one of CHANNELS: grey and its alpha are planes. */
static enum heif_chroma chroma_of(int channels, int bits)
{
    return channels < 3 ? heif_chroma_monochrome
           : bits > 8   ? (enum heif_chroma)(channels == 4 ? RGBA16 : RGB16)
                        : (channels == 4 ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB);
}

static enum heif_colorspace colorspace_of(int channels)
{
    return channels < 3 ? heif_colorspace_monochrome : heif_colorspace_RGB;
}

/* The plane for channel FIRST, 0 or 1, and those after it, of an image with CHANNELS. */
static enum heif_channel plane_of(int channels, int first)
{
    return channels >= 3 ? heif_channel_interleaved : first == 0 ? heif_channel_Y : heif_channel_Alpha;
}

/* ---- Reading ---- */

/* Bytes besides the samples, as measured: the decoder's picture, the library's two, and the decoder's own, for each
 * pixel of the coded picture; and what it has for pictures of any size. */
static size_t reader_need(const struct codec_info *info)
{
    enum { OTHER = 16 << 20, PIXEL = 24 };
    const struct heif_header *header = &info->heif;
    return OTHER + (size_t)header->width * (size_t)header->height * PIXEL * (header->bits > 8 ? 2 : 1);
}

/* Copy a plane of samples of BITS to COUNT channels of IMAGE from FIRST on: more than 8 bits become 16. A NARROW plane
 * has black at 16 of 255, and white at 235. */
static void copy_plane(const uint8_t *plane, size_t stride, int bits, bool narrow, const struct image *image, int first,
                       int count)
{
    enum { LEVELS = 1 << 12 };
    const size_t step = (size_t)(image->channels / count), samples = (size_t)image->width * (size_t)count;
    const unsigned max = image->bits == 8 ? 255 : 65535, low = narrow ? 16U << (bits - 8) : 0;
    const unsigned white = narrow ? 235U << (bits - 8) : (1U << bits) - 1, range = white > low ? white - low : 1;
    uint16_t levels[LEVELS];
    for (unsigned i = 0; i < LEVELS; i++)
        levels[i] = (uint16_t)(((i < low ? 0 : i < white ? i - low : range) * max + range / 2) / range);
    for (int y = 0; y < image->height; y++, plane += stride) {
        uint8_t *out = image_row(image, y) + first * (image->bits / 8);
        const uint16_t *in16 = (const uint16_t *)(const void *)plane;
        if (image->bits == 8 && bits == 8 && !narrow && step == 1) {
            memcpy(out, plane, samples);
            continue;
        }
        for (size_t i = 0; i < samples; i++) {
            const unsigned level = bits == 8 ? plane[i] : in16[i];
            if (image->bits == 8)
                out[i * step] = (uint8_t)levels[level < LEVELS ? level : LEVELS - 1];
            else
                ((uint16_t *)(void *)out)[i * step] = levels[level < LEVELS ? level : LEVELS - 1];
        }
    }
}

/* Divide the colours by alpha. */
static void unpremultiply(const struct image *image)
{
    const size_t channels = (size_t)image->channels;
    for (size_t i = 0; i < image_samples(image); i++) {
        const size_t alpha = i / channels * channels + channels - 1;
        if (i == alpha)
            continue;
        if (image->bits == 8)
            image->samples[i] = (uint8_t)unpremultiply_sample(image->samples[i], image->samples[alpha]);
        else
            image_samples16(image)[i] =
                unpremultiply_sample16(image_samples16(image)[i], image_samples16(image)[alpha]);
    }
}

/* Copy what libheif has decoded to IMAGE, if it has the form that was asked for. */
static bool take_image(const struct libheif *library, const struct heif_image *decoded, const struct codec_input *input,
                       struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    const int step = info->channels < 3 ? 1 : info->channels;
    struct heif_color_profile_nclx *nclx = NULL;
    const bool is_narrow = step == 1 &&
                           library->heif_image_get_nclx_color_profile(decoded, &nclx).code == heif_error_Ok &&
                           !nclx->full_range_flag; /* the library widens colours only */
    library->heif_nclx_color_profile_free(nclx);
    if (!image_allocate(image, info->width, info->height, info->channels, info->bits, error))
        return false;
    for (int first = 0; first < info->channels; first += step) {
        enum heif_channel channel = plane_of(info->channels, first);
        int stride;
        if (channel == heif_channel_Y && library->heif_image_get_width(decoded, channel) < 0)
            channel = heif_channel_R; /* libheif 1.15 makes three equal planes of grey tiles */
        const uint8_t *plane = library->heif_image_get_plane_readonly(decoded, channel, &stride);
        const int bits = library->heif_image_get_bits_per_pixel_range(decoded, channel);
        if (plane == NULL || library->heif_image_get_width(decoded, channel) != info->width ||
            library->heif_image_get_height(decoded, channel) != info->height || bits < 8 || bits > 12) {
            image_free(image);
            return codec_report_damaged(input, "its parts do not fit each other", error);
        }
        copy_plane(plane, (size_t)stride, bits, is_narrow && first == 0, image, first, step);
    }
    return true;
}

/* Decode the picture of HANDLE, if it is as the check has found it. */
static bool decode_handle(const struct libheif *library, const struct heif_image_handle *handle,
                          const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    struct heif_image *decoded = NULL;
    struct heif_decoding_options *options = library->heif_decoding_options_alloc();
    if (options == NULL)
        return error_no_memory(error, "the decoder");
    options->strict_decoding = 1;
    /* Grey stays as it is coded: libheif converts it in some files only. */
    const bool is_grey = info->channels < 3;
    const struct heif_error reason =
        library->heif_decode_image(handle, &decoded, is_grey ? heif_colorspace_undefined : heif_colorspace_RGB,
                                   is_grey ? heif_chroma_undefined : chroma_of(info->channels, info->bits), options);
    library->heif_decoding_options_free(options);
    bool done = reason.code == heif_error_Ok || report(reason, input, error);
    done = done && take_image(library, decoded, input, image, error);
    if (done && image_has_alpha(image) && library->heif_image_handle_is_premultiplied_alpha(handle))
        unpremultiply(image);
    if (decoded != NULL)
        library->heif_image_release(decoded);
    return done;
}

static bool heif_decode(const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    const struct heif_header *header = &info->heif;
    enum { TILE_MAX = 4096 }; /* the tiles of a small picture may be larger than it */
    struct libheif library;
    struct heif_image_handle *handle = NULL;
    if (!load_library(&library, error))
        return false;
    if (library.heif_get_decoder_descriptors(header->is_av1 ? heif_compression_AV1 : heif_compression_HEVC, NULL, 0) ==
        0)
        return error_set(error, ERROR_WORK,
                         "libheif has no decoder for %s; install its plug-in, such as the Debian package "
                         "libheif-plugin-%s",
                         header->is_av1 ? "AV1" : "HEVC", header->is_av1 ? "dav1d" : "libde265");
    struct heif_context *context = library.heif_context_alloc();
    if (context == NULL)
        return error_no_memory(error, "the decoder");
    const int side = header->width > header->height ? header->width : header->height;
    library.heif_context_set_maximum_image_size_limit(context, side > TILE_MAX ? side : TILE_MAX);
    library.heif_context_set_max_decoding_threads(context, thread_pool_threads(input->settings->pool) - 1);
    struct heif_error reason =
        library.heif_context_read_from_memory_without_copy(context, input->bytes, input->size, NULL);
    if (reason.code == heif_error_Ok)
        reason = input->settings->page > 0 ? library.heif_context_get_image_handle(context, header->item, &handle)
                                           : library.heif_context_get_primary_image_handle(context, &handle);
    bool done = reason.code == heif_error_Ok || report(reason, input, error);
    if (done && (library.heif_image_handle_get_width(handle) != info->width ||
                 library.heif_image_handle_get_height(handle) != info->height ||
                 library.heif_image_handle_get_luma_bits_per_pixel(handle) != header->bits))
        done = codec_report_damaged(input, "its parts do not fit each other", error);
    if (done && (library.heif_image_handle_has_alpha_channel(handle) != 0) != (info->channels % 2 == 0))
        done = error_set(error, ERROR_WORK, "libheif cannot read its alpha, which has another size; convert it first");
    done = done && decode_handle(&library, handle, input, image, error);
    if (handle != NULL)
        library.heif_image_handle_release(handle);
    library.heif_context_free(context);
    return done;
}

/* ---- Writing ---- */

struct heif_state {
    struct libheif library;
    struct heif_context *context;
    struct heif_image *image;
    struct error error; /* the error of append_to_file */
};

/* As measured with noise: bytes for each pixel, and what aom has for pictures of any size. */
static size_t writer_need(const struct image *shape, const struct codec_settings *settings)
{
    enum { OTHER = 32 << 20, PIXEL = 56 };
    (void)settings;
    return OTHER + (size_t)shape->width * (size_t)shape->height * PIXEL * (shape->bits > 8 ? 2 : 1);
}

/* Bits of a sample in a file of 16 bits. */
enum { WRITTEN_BITS = 12, WRITTEN_WHITE = (1 << WRITTEN_BITS) - 1 };

static bool copy_rows_to_image(void *context, int thread, int first, const struct image *rows, struct error *error)
{
    const struct codec_writer *writer = context;
    const struct heif_state *state = writer->state;
    const int channels = rows->channels, step = channels < 3 ? 1 : channels;
    (void)thread;
    (void)error;
    for (int c = 0; c < channels; c += step) {
        int stride;
        uint8_t *plane = state->library.heif_image_get_plane(state->image, plane_of(channels, c), &stride);
        for (int y = 0; y < rows->height; y++) {
            uint8_t *out = plane + (size_t)(first + y) * (size_t)stride;
            const uint8_t *in = image_row(rows, y) + c * (rows->bits / 8);
            const size_t count = (size_t)rows->width * (size_t)step, skip = (size_t)(channels / step);
            for (size_t i = 0; i < count; i++)
                if (rows->bits == 8)
                    out[i] = in[i * skip];
                else
                    ((uint16_t *)(void *)out)[i] =
                        (uint16_t)((((const uint16_t *)(const void *)in)[i * skip] * (uint32_t)WRITTEN_WHITE + 32767) /
                                   65535);
        }
    }
    return true;
}

static bool writer_open(struct codec_writer *writer, struct error *error)
{
    struct heif_state *state = writer->state;
    const struct libheif *library = &state->library;
    const struct image *shape = &writer->shape;
    const int channels = shape->channels;
    writer->sink.multiple = 1;
    writer->sink.encode = copy_rows_to_image;
    writer->finishes_late = true;
    if (!load_library(&state->library, error))
        return false;
    if (!library->heif_have_encoder_for_format(heif_compression_AV1))
        return error_set(error, ERROR_WORK,
                         "libheif has no encoder for AV1; install its plug-in, such as the Debian package "
                         "libheif-plugin-aomenc");
    state->context = library->heif_context_alloc();
    struct heif_error reason = library->heif_image_create(shape->width, shape->height, colorspace_of(channels),
                                                          chroma_of(channels, shape->bits), &state->image);
    for (int c = 0; c < channels && reason.code == heif_error_Ok; c += channels < 3 ? 1 : channels)
        reason = library->heif_image_add_plane(state->image, plane_of(channels, c), shape->width, shape->height,
                                               shape->bits == 8 ? 8 : WRITTEN_BITS);
    return reason.code == heif_error_Ok ? state->context != NULL || error_no_memory(error, "the encoded image")
                                        : report(reason, NULL, error);
}

/* Append SIZE bytes to the file. */
static struct heif_error append_to_file(struct heif_context *context, const void *bytes, size_t size, void *user)
{
    struct codec_writer *writer = user;
    struct error *error = &((struct heif_state *)writer->state)->error;
    (void)context;
    return codec_may_grow(writer->settings, writer->file.size + size, error) &&
                   (blob_append(&writer->file, bytes, size) || error_no_memory(error, "the encoded image"))
               ? (struct heif_error){heif_error_Ok, heif_suberror_Unspecified, ""}
               : (struct heif_error){heif_error_Memory_allocation_error, heif_suberror_Unspecified, ""};
}

/* Encode as heif-enc does by default: a lossy picture has chroma 4:2:0. A lossless one is not converted to YCbCr. The
 * file does not claim how its colours are: the metadata may. */
static struct heif_error encode(const struct codec_writer *writer, struct heif_encoder *encoder,
                                struct heif_encoding_options *options, struct heif_color_profile_nclx *nclx)
{
    const struct heif_state *state = writer->state;
    const struct libheif *library = &state->library;
    const struct codec_settings *settings = writer->settings;
    const bool is_rgb = settings->lossless && writer->shape.channels >= 3;
    nclx->color_primaries = heif_color_primaries_unspecified;
    nclx->transfer_characteristics = heif_transfer_characteristic_unspecified;
    nclx->matrix_coefficients = is_rgb ? heif_matrix_coefficients_RGB_GBR : heif_matrix_coefficients_ITU_R_BT_601_6;
    nclx->full_range_flag = 1;
    options->output_nclx_profile = nclx;
    /* One thread makes other bytes than two or more: aom then searches in another way. */
    const int threads = thread_pool_threads(settings->pool);
    library->heif_encoder_set_parameter_integer(encoder, "threads", threads > 2 ? threads : 2);
    /* libheif 1.15 uses only the image's. */
    struct heif_error reason = library->heif_image_set_nclx_color_profile(state->image, nclx);
    if (reason.code == heif_error_Ok)
        reason = settings->lossless ? library->heif_encoder_set_lossless(encoder, 1)
                                    : library->heif_encoder_set_lossy_quality(encoder, settings->quality);
    if (reason.code == heif_error_Ok && is_rgb)
        reason = library->heif_encoder_set_parameter_string(encoder, "chroma", "444");
    return reason.code == heif_error_Ok
               ? library->heif_context_encode_image(state->context, state->image, encoder, options, NULL)
               : reason;
}

static bool writer_finish(struct codec_writer *writer, struct error *error)
{
    const struct heif_state *state = writer->state;
    const struct libheif *library = &state->library;
    struct heif_writer file = {.writer_api_version = 1, .write = append_to_file};
    struct heif_encoder *encoder = NULL;
    struct heif_encoding_options *options = library->heif_encoding_options_alloc();
    struct heif_color_profile_nclx *nclx = library->heif_nclx_color_profile_alloc();
    struct heif_error reason = {heif_error_Memory_allocation_error, heif_suberror_Unspecified, ""};
    if (options != NULL && nclx != NULL)
        reason = library->heif_context_get_encoder_for_format(state->context, heif_compression_AV1, &encoder);
    if (reason.code == heif_error_Ok)
        reason = encode(writer, encoder, options, nclx);
    if (reason.code == heif_error_Ok)
        reason = library->heif_context_write(state->context, &file, writer);
    if (encoder != NULL)
        library->heif_encoder_release(encoder);
    library->heif_nclx_color_profile_free(nclx);
    library->heif_encoding_options_free(options);
    if (state->error.code == ERROR_NONE)
        return reason.code == heif_error_Ok || report(reason, NULL, error);
    *error = state->error;
    return false;
}

static void writer_close(struct codec_writer *writer)
{
    const struct heif_state *state = writer->state;
    if (state->image != NULL)
        state->library.heif_image_release(state->image);
    if (state->context != NULL)
        state->library.heif_context_free(state->context);
}

const struct codec_functions libheif = {
    .writer_state = sizeof(struct heif_state),
    .describe = describe,
    .decode = heif_decode,
    .reader_need = reader_need,
    .writer_need = writer_need,
    .writer_open = writer_open,
    .writer_finish = writer_finish,
    .writer_close = writer_close,
};
