/* SPDX-License-Identifier: MIT
 *
 * Shared by the codecs and codec.c. Each codec has its own file. A decoder gets a file with an intact container, and an
 * image that is small enough. It returns an image with exactly the size, channels and bits of INFO, or fails. An
 * encoder gets at most the bits of its row and of the format's row. */
#ifndef GPUCONV_CODEC_INTERNAL_H
#define GPUCONV_CODEC_INTERNAL_H

#include "codec/codec.h"

/* The codec that reads the file if the chosen one does not support it; the chosen one itself if that supports every
 * file. Returns NULL, with an error, if the file is too large for all others. */
const struct codec *codec_find_substitute(const struct codec_info *info, struct error *error);

/* The bits of enum jpeg_option that SETTINGS want in a file of FORMAT and that CODEC lacks. */
unsigned codec_missing_options(const struct codec *codec, const struct format *format,
                               const struct codec_settings *settings);

/* The shape that a codec gets of an image of SHAPE: as many bits as FORMAT holds, and no alpha where it is put over the
 * background. Grey becomes RGB where FORMAT holds no grey. */
struct image codec_converted_shape(const struct image *shape, const struct format *format,
                                   const struct codec_settings *settings);

/* Report that the data cannot be decoded. REASON is the library's message, or NULL. Returns false. */
bool codec_report_damaged(const struct codec_input *input, const char *reason, struct error *error);

/* Check that the compressed rows of a PNG are whole: that they inflate to the rows of its size, or to a little more,
 * and that their checksum is right. */
bool png_check_rows(const struct codec_input *input, struct error *error);

/* Append to FILE what is before the deflate data of a PNG of SHAPE. */
bool png_begin_stream(const struct image *shape, struct blob *file);

/* Complete the file around SIZE bytes at DATA. After them, PNG_CHUNK_OVERHEAD bytes must be free for each chunk, and as
 * many more. CRC is of the type of IDAT, the head of the stream and the data, or NULL. Returns the end of the file. */
uint8_t *png_end_stream(uint8_t *data, size_t size, uint32_t adler, const uint32_t *crc);

extern const struct codec_functions parallel_jpeg, libjpeg_turbo, parallel_png, parallel_pnm, libheif, libtiff, libwebp,
    stb;

#endif
