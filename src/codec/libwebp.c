/* SPDX-License-Identifier: MIT
 *
 * The codec `libwebp`. The library decodes into the whole image, and encodes from a picture of the whole image, which
 * rows fill as they come. The container check has found the data of the picture, or of the frames that it is of: the
 * library sees only those. */
#include "codec/codec_internal.h"

#include "base/bytes.h"
#include "base/parallel.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <webp/decode.h>
#include <webp/encode.h>

/* May the library use two threads? Where it codes alpha, it allocates on the second one. There errno would not tell
 * that memory was lacking: the library calls that damage, or takes a simpler way without a word, to other bytes. A
 * lossless picture has no work for the second one. */
static bool may_use_threads(const struct codec_settings *settings, bool has_alpha)
{
    return thread_pool_threads(settings->pool) > 1 && !has_alpha;
}

/* The initialisers of libwebp fail if its structs have another layout here. */
static bool report_version(struct error *error)
{
    return error_set(error, ERROR_WORK,
                     "libwebp does not have the version of this build; install that version, or build again");
}

/* Was an allocation refused in the last call, which takes at most NEED bytes? libwebp calls that damage, or takes a
 * simpler way without a word. errno alone is not enough: it is also ENOMEM if damaged data asked for an absurd size, or
 * if the heap could not grow and malloc mapped memory elsewhere. */
static bool lacks_memory(size_t need)
{
    if (errno != ENOMEM)
        return false;
    void *volatile memory = malloc(need);
    free(memory);
    return memory == NULL;
}

/* A call is made again if errno says that memory was lacking. */
enum { ATTEMPTS = 2 };

/* ---- Reading ---- */

/* Bytes besides the samples. A lossless picture, or its alpha, has 4 bytes for a pixel, and groups of Huffman codes.
 * Their tables have at most 20 KB each. libwebp writes at most 2600 of them, one for a square of 4 x 4 pixels or more,
 * each of at least 20 bits of the file. A file that was made to take memory has up to 2^16, which nothing but decoding
 * would find (SECURITY.md). A lossy picture has some rows of blocks. */
static size_t reader_need(const struct codec_info *info)
{
    enum { OTHER = 1 << 20, ROW = 128, TABLES = 20000, GROUPS_MAX = 2600, GROUP_BITS = 20 };
    const struct webp_header *header = &info->webp;
    const size_t width = (size_t)header->width, height = (size_t)header->height;
    size_t groups = header->size * 8 / GROUP_BITS;
    groups = groups < GROUPS_MAX ? groups : GROUPS_MAX;
    const size_t squares = ((width + 3) / 4) * ((height + 3) / 4);
    groups = groups < squares ? groups : squares;
    const size_t above = header->frames > 1 ? 4 * width * height : 0; /* a frame, before it is put over others */
    return OTHER + above + ROW * width +
           (header->lossless || header->has_alpha ? 5 * width * height + groups * TABLES : 0);
}

static bool report_damage(const struct codec_input *input, VP8StatusCode status, struct error *error)
{
    return codec_report_damaged(input,
                                status == VP8_STATUS_SUSPENDED || status == VP8_STATUS_NOT_ENOUGH_DATA
                                    ? "it ends too early"
                                    : "its codes are wrong",
                                error);
}

/* Decode one picture of the file to SAMPLES, the position of its first pixel in IMAGE. */
static bool decode_picture(const struct codec_input *input, const struct webp_header *header, const struct image *image,
                           uint8_t *samples, struct error *error)
{
    WebPDecoderConfig config;
    if (!WebPInitDecoderConfig(&config))
        return report_version(error);
    const size_t row = image_row_bytes(image);
    config.options.use_threads = may_use_threads(input->settings, header->has_alpha);
    config.output.colorspace = image->channels == 4 ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA =
        (WebPRGBABuffer){.rgba = samples,
                         .stride = (int)row,
                         .size = (size_t)(header->height - 1) * row + (size_t)(header->width * image->channels)};
    VP8StatusCode status = VP8_STATUS_OK;
    errno = ENOMEM;
    for (int i = 0; i < ATTEMPTS && errno == ENOMEM; i++) {
        errno = 0;
        status = WebPDecode(input->bytes + header->data, header->size, &config);
        WebPFreeDecBuffer(&config.output);
    }
    if (lacks_memory(reader_need(input->info)))
        return error_no_memory(error, "the decoder");
    return status == VP8_STATUS_OK || report_damage(input, status, error);
}

/* Put FRAME over IMAGE at the position of HEADER, both with alpha. */
static void blend(const struct image *frame, const struct webp_header *header, const struct image *image)
{
    for (int y = 0; y < header->height; y++) {
        const uint8_t *in = image_row(frame, y);
        uint8_t *out = image_row(image, header->y + y) + 4 * header->x;
        for (int x = 0; x < header->width; x++, in += 4, out += 4) {
            const unsigned above = 255U * in[3], below = (255U - in[3]) * out[3], both = above + below;
            for (int c = 0; c < 3 && above > 0; c++)
                out[c] = (uint8_t)((above * in[c] + below * out[c] + both / 2) / both);
            out[3] = above > 0 ? (uint8_t)((both + 127) / 255) : out[3];
        }
    }
}

/* Decode a frame into IMAGE, or over it if BLENDS. */
static bool decode_frame(const struct codec_input *input, const struct webp_header *frame, bool blends,
                         const struct image *image, struct error *error)
{
    struct image above;
    if (!blends)
        return decode_picture(input, frame, image, image_row(image, frame->y) + frame->x * image->channels, error);
    if (!image_allocate(&above, frame->width, frame->height, image->channels, 8, error))
        return false;
    const bool done = decode_picture(input, frame, &above, above.samples, error);
    if (done)
        blend(&above, frame, image);
    image_free(&above);
    return done;
}

static void clear(const struct image *image, const struct webp_header *frame)
{
    const size_t pixel = (size_t)image->channels;
    for (int y = 0; y < frame->height; y++)
        memset(image_row(image, frame->y + y) + (size_t)frame->x * pixel, 0, (size_t)frame->width * pixel);
}

/* Decode the frames of the picture, one over the other. */
static bool decode_frames(const struct codec_input *input, const struct image *image, struct error *error)
{
    const struct webp_header *header = &input->info->webp;
    struct webp_walk walk = webp_walk_begin(input->bytes);
    struct webp_header frame = {.clears = false};
    bool done = true;
    walk.at = header->start;
    for (int i = 0; done && i < header->frames; i++) {
        if (frame.clears)
            clear(image, &frame);
        done = webp_next_frame(&walk, &frame) && decode_frame(input, &frame, i > 0 && frame.blends, image, error);
    }
    return done;
}

static bool webp_decode(const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    const struct webp_header *header = &info->webp;
    if (!image_allocate(image, info->width, info->height, info->channels, 8, error))
        return false;
    if (info->channels == 4)
        memset(image->samples, 0, image_bytes(image)); /* transparent around the first frame */
    if (header->frames > 1 ? decode_frames(input, image, error) : decode_frame(input, header, false, image, error))
        return true;
    image_free(image);
    return false;
}

/* ---- Writing ---- */

struct webp_writer {
    WebPPicture picture;
    const struct codec_settings *settings;
    struct error *error; /* receives the error of append_to_file */
    struct blob *file;
};

/* As measured with noise: bytes for a pixel of the picture itself, its other colours, references to earlier pixels and
 * tokens. Alpha is coded without losses, beside a lossy picture. The histograms of a lossless picture come on top. */
static size_t writer_need(const struct image *shape, const struct codec_settings *settings)
{
    enum { OTHER = 4 << 20, LOSSLESS = 40, LOSSY = 28, ALPHA = 24, HISTOGRAMS = 2600, HISTOGRAM = 20000, BLOCK = 256 };
    const size_t pixels = (size_t)shape->width * (size_t)shape->height;
    const size_t blocks = pixels / BLOCK < HISTOGRAMS ? pixels / BLOCK : HISTOGRAMS;
    const bool has_alpha = image_has_alpha(shape), has_histograms = settings->lossless || has_alpha;
    const size_t each = settings->lossless ? LOSSLESS : has_alpha ? LOSSY + ALPHA : LOSSY;
    return OTHER + pixels * each + (has_histograms ? blocks * HISTOGRAM : 0);
}

/* Append SIZE bytes to the file. */
static int append_to_file(const uint8_t *bytes, size_t size, const WebPPicture *picture)
{
    struct webp_writer *state = picture->custom_ptr;
    return codec_may_grow(state->settings, state->file->size + size, state->error) &&
           (blob_append(state->file, bytes, size) || error_no_memory(state->error, "the encoded image"));
}

/* Put COUNT pixels of CHANNELS into the library's form, 0xAARRGGBB. */
static void put_pixels(const uint8_t *in, int channels, size_t count, uint32_t *out)
{
    for (size_t i = 0; i < count; i++, in += channels) {
        const uint32_t colours =
            channels < 3 ? in[0] * 0x010101U : (uint32_t)in[0] << 16 | (uint32_t)in[1] << 8 | in[2];
        out[i] = (channels % 2 == 0 ? (uint32_t)in[channels - 1] << 24 : 0xff000000) | colours;
    }
}

static bool copy_rows_to_picture(void *context, int thread, int first, const struct image *rows, struct error *error)
{
    const struct codec_writer *writer = context;
    const WebPPicture *picture = &((struct webp_writer *)writer->state)->picture;
    (void)thread;
    (void)error;
    for (int y = 0; y < rows->height; y++)
        put_pixels(image_row(rows, y), rows->channels, (size_t)rows->width,
                   picture->argb + (size_t)(first + y) * (size_t)picture->argb_stride);
    return true;
}

static bool writer_open(struct codec_writer *writer, struct error *error)
{
    struct webp_writer *state = writer->state;
    writer->sink.multiple = 1;
    writer->sink.encode = copy_rows_to_picture;
    writer->finishes_late = true;
    state->settings = writer->settings;
    state->file = &writer->file;
    if (!WebPPictureInit(&state->picture))
        return report_version(error);
    state->picture.use_argb = 1;
    state->picture.width = writer->shape.width;
    state->picture.height = writer->shape.height;
    state->picture.writer = append_to_file;
    state->picture.custom_ptr = state;
    return WebPPictureAlloc(&state->picture) || error_no_memory(error, "the encoded image");
}

/* Encode with the defaults of cwebp. A lossless file keeps the colours of transparent pixels, too. */
static bool writer_finish(struct codec_writer *writer, struct error *error)
{
    struct webp_writer *state = writer->state;
    const struct codec_settings *settings = writer->settings;
    struct error reason = {.code = ERROR_NONE};
    enum { LOSSLESS_LEVEL = 6 };
    WebPConfig config;
    if (!WebPConfigInit(&config))
        return report_version(error);
    config.quality = (float)settings->quality;
    config.thread_level = may_use_threads(settings, image_has_alpha(&writer->shape)) && !settings->lossless;
    if (settings->lossless) {
        WebPConfigLosslessPreset(&config, LOSSLESS_LEVEL);
        config.exact = 1;
    }
    state->error = &reason;
    bool done = false;
    errno = ENOMEM;
    for (int i = 0; i < ATTEMPTS && errno == ENOMEM; i++) {
        errno = 0;
        reason = (struct error){.code = ERROR_NONE};
        blob_free(state->file);
        state->picture.use_argb = 1; /* a lossy picture gets other samples, too */
        done = WebPEncode(&config, &state->picture) != 0;
    }
    if (!done || lacks_memory(writer_need(&writer->shape, settings))) {
        if (state->picture.error_code == VP8_ENC_ERROR_PARTITION0_OVERFLOW ||
            state->picture.error_code == VP8_ENC_ERROR_PARTITION_OVERFLOW)
            return error_set(error, ERROR_WORK,
                             "the picture is too large for a lossy WebP of quality %d; give a lower --quality, or "
                             "--lossless",
                             settings->quality);
        if (reason.code == ERROR_NONE)
            return error_no_memory(error, "the encoded image");
        *error = reason;
        return false;
    }
    return true;
}

static void writer_close(struct codec_writer *writer)
{
    WebPPictureFree(&((struct webp_writer *)writer->state)->picture);
}

const struct codec_functions libwebp = {
    .writer_state = sizeof(struct webp_writer),
    .decode = webp_decode,
    .reader_need = reader_need,
    .writer_need = writer_need,
    .writer_open = writer_open,
    .writer_finish = writer_finish,
    .writer_close = writer_close,
};
