/* SPDX-License-Identifier: MIT
 *
 * The codec `libspng`: PNG by a second, independent library. It is slower than the codec `libdeflate`, so it is used
 * only on request. */
#include "codec/codec_internal.h"

#include <spng.h>
#include <stdlib.h>
#include <string.h>

static bool decode_failed(const struct codec_input *input, int reason, struct error *error)
{
    return reason == SPNG_EMEM ? codec_report_decode_memory(input, error)
                               : codec_report_damaged(input, spng_strerror(reason), error);
}

/* Clear those bits of the transparent colour that a sample does not have. They do not count (PNG, 11.3.2.1), but the
 * library compares them. Without such a colour, or with a palette, nothing changes. */
static void mask_transparency(spng_ctx *context)
{
    struct spng_ihdr header;
    struct spng_trns colour;
    if (spng_get_ihdr(context, &header) || header.color_type == SPNG_COLOR_TYPE_INDEXED ||
        spng_get_trns(context, &colour))
        return;
    const uint16_t mask = (uint16_t)((1u << header.bit_depth) - 1);
    colour.gray &= mask;
    colour.red &= mask;
    colour.green &= mask;
    colour.blue &= mask;
    spng_set_trns(context, &colour);
}

/* Decode to SAMPLES. With ALPHA there are 4 channels. Without it there are as many as in the file if a sample has 16
 * bits, else 3. */
static int decode_samples(const struct codec_input *input, bool alpha, uint8_t *samples, size_t size)
{
    const bool is_16_bit = input->info->bits == 16;
    const int format =
        alpha ? (is_16_bit ? SPNG_FMT_RGBA16 : SPNG_FMT_RGBA8) : (is_16_bit ? SPNG_FMT_PNG : SPNG_FMT_RGB8);
    spng_ctx *context = spng_ctx_new(0);
    int reason = context != NULL ? 0 : SPNG_EMEM;
    if (reason == 0) /* png_check has checked the CRCs */
        reason = spng_set_crc_action(context, SPNG_CRC_USE, SPNG_CRC_USE);
    if (reason == 0)
        reason = spng_set_png_buffer(context, input->bytes, input->size);
    if (reason == 0 && alpha)
        mask_transparency(context);
    if (reason == 0)
        reason = spng_decode_image(context, samples, size, format, alpha ? SPNG_DECODE_TRNS : 0);
    spng_ctx_free(context);
    return reason;
}

/* Copy the grey channel of COLOURS. The library returns grey as three equal channels, except for 16 bits without
 * alpha. */
static void keep_grey(const struct image *colours, struct image *grey)
{
    const size_t pixels = (size_t)grey->width * (size_t)grey->height, bytes = image_sample_bytes(grey);
    const size_t from = image_pixel_bytes(colours), to = image_pixel_bytes(grey);
    for (size_t i = 0; i < pixels; i++) {
        memcpy(grey->samples + i * to, colours->samples + i * from, bytes);
        if (to > bytes)
            memcpy(grey->samples + i * to + bytes, colours->samples + i * from + 3 * bytes, bytes);
    }
}

bool libspng_decode(const struct codec_input *input, struct image *image, struct error *error)
{
    const struct codec_info *info = input->info;
    const bool alpha = info->channels == 2 || info->channels == 4;
    const int channels = alpha ? 4 : info->bits == 16 ? info->channels : 3;
    struct image colours;
    if (!image_allocate(&colours, info->width, info->height, channels, info->bits, error))
        return false;
    const int reason = decode_samples(input, alpha, colours.samples, image_bytes(&colours));
    if (reason != 0) {
        image_free(&colours);
        return decode_failed(input, reason, error);
    }
    if (channels == info->channels) {
        *image = colours;
        return true;
    }
    const bool done = image_allocate(image, info->width, info->height, info->channels, info->bits, error);
    if (done)
        keep_grey(&colours, image);
    image_free(&colours);
    return done;
}

bool libspng_encode(const struct image *image, const struct format *format, const struct codec_settings *settings,
                    uint8_t **bytes, size_t *size, struct error *error)
{
    static const uint8_t types[] = {[1] = SPNG_COLOR_TYPE_GRAYSCALE,
                                    SPNG_COLOR_TYPE_GRAYSCALE_ALPHA,
                                    SPNG_COLOR_TYPE_TRUECOLOR,
                                    SPNG_COLOR_TYPE_TRUECOLOR_ALPHA};
    struct spng_ihdr header = {.width = (uint32_t)image->width,
                               .height = (uint32_t)image->height,
                               .bit_depth = (uint8_t)image->bits,
                               .color_type = types[image->channels]};
    spng_ctx *context = spng_ctx_new(SPNG_CTX_ENCODER);
    int reason = context != NULL ? 0 : SPNG_EMEM;
    if (reason == 0)
        reason = spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
    if (reason == 0)
        reason = spng_set_option(context, SPNG_IMG_COMPRESSION_LEVEL, settings->compression);
    if (reason == 0)
        reason = spng_set_ihdr(context, &header);
    if (reason == 0)
        reason = spng_encode_image(context, image->samples, image_bytes(image), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
    if (reason == 0)
        *bytes = spng_get_png_buffer(context, size, &reason);
    spng_ctx_free(context);
    return reason != 0 ? codec_report_encode_memory(image, format, error) : true; /* nothing else can fail here */
}
