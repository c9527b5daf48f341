/* SPDX-License-Identifier: MIT
 *
 * Files around what a GPU decodes or encodes: the scan of a JPEG, and the stream of a PNG. */
#ifndef GPUCONV_CODEC_GPU_CODEC_H
#define GPUCONV_CODEC_GPU_CODEC_H

#include "codec/codec.h"
#include "container/png.h"
#include "jpeg/jpeg.h"
#include "png/png.h"

/* Find the scan of a file whose reader is chosen. SCAN points into the file. Returns the codec that decodes such a scan
 * to the same samples, or NULL if a GPU cannot read this file. */
const struct codec *codec_find_scan(const struct codec_input *input, struct jpeg_layout *layout,
                                    struct jpeg_scan *scan);

/* Find the stream of a file whose reader is chosen, and how its rows become samples. STREAM points into the file.
 * Returns the codec that decodes such a stream to the same samples, or NULL if a GPU cannot read this file. */
const struct codec *codec_find_stream(const struct codec_input *input, struct png_layout *layout,
                                      struct png_stream *stream);

/* Fill LAYOUT for the scan of an image of SHAPE as FORMAT. Returns the codec that writes the same bytes, or NULL if a
 * GPU cannot write this file, or if it has no scan. */
const struct codec *codec_plan_scan(const struct format *format, const struct image *shape,
                                    const struct codec_settings *settings, struct jpeg_layout *layout);

/* The codec that writes the same bytes as a GPU whose output is the stream of a PNG; or NULL if a GPU cannot write this
 * file, or if it has no stream. */
const struct codec *codec_plan_stream(const struct format *format, const struct codec_settings *settings);

/* Make a file of SIZE bytes of data of a scan. Release *BYTES with free. */
bool codec_wrap_scan(const struct jpeg_layout *layout, const uint8_t *data, size_t size, uint8_t **bytes,
                     size_t *file_size, struct error *error);

/* Make a file of SIZE bytes of deflate data: all bands of an image of SHAPE. ADLER is the checksum of its filtered
 * rows. Release *BYTES with free. */
bool codec_wrap_stream(const struct image *shape, const uint8_t *data, size_t size, uint32_t adler, uint8_t **bytes,
                       size_t *file_size, struct error *error);

#endif
