/* SPDX-License-Identifier: MIT
 *
 * What the rows of the table of codecs share with codec.c. Each stands in a file of its own. A decoder gets a file
 * whose container is whole and whose image is small enough; it gives an image of just the size, channels and bits that
 * are in INFO, or none. An encoder gets at most the bits that its row says, and JPEG's always 8. */
#ifndef GPUCONV_CODEC_ROW_H
#define GPUCONV_CODEC_ROW_H

#include "codec/codec.h"

/* A file to be decoded. */
struct codec_input {
    const uint8_t *bytes;
    size_t size;
    const char *name; /* for messages */
    const struct codec_info *info;
    const struct codec_settings *settings;
};

/* The data cannot be decoded; REASON, in the words of the library, may be NULL. */
bool codec_damaged(const struct codec_input *input, const char *reason, struct error *error);

/* There is not enough memory to decode. */
bool codec_no_memory(const struct codec_input *input, struct error *error);

/* There is not enough memory to encode. */
bool codec_no_room(const struct image *image, enum format format, struct error *error);

bool stb_decode(const struct codec_input *input, struct image *image, struct error *error);
bool stb_encode(const struct image *image, enum format format, const struct codec_settings *settings, uint8_t **bytes,
                size_t *size, struct error *error);
bool libdeflate_decode(const struct codec_input *input, struct image *image, struct error *error);
bool libdeflate_encode(const struct image *image, enum format format, const struct codec_settings *settings,
                       uint8_t **bytes, size_t *size, struct error *error);
bool jpeg_decode(const struct codec_input *input, struct image *image, struct error *error);
bool jpeg_encode(const struct image *image, enum format format, const struct codec_settings *settings, uint8_t **bytes,
                 size_t *size, struct error *error);
bool spng_decode(const struct codec_input *input, struct image *image, struct error *error);
bool spng_encode(const struct image *image, enum format format, const struct codec_settings *settings, uint8_t **bytes,
                 size_t *size, struct error *error);

#endif
