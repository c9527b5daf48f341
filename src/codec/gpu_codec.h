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

/* Append to HEAD what is in a file before the data of a scan of LAYOUT, or, if that is NULL, before the deflate data of
 * an image of SHAPE. Metadata may be put into it. */
bool codec_begin_file(const struct image *shape, const struct jpeg_layout *layout, struct blob *head,
                      struct error *error);

/* Put HEAD before the *SIZE bytes at DATA, and the end of the file after them. There, as many bytes as HEAD has must be
 * free. ADLER is the checksum of the filtered rows, and NULL for a scan. Returns the file, which has *SIZE bytes
 * then. */
uint8_t *codec_end_file(const struct blob *head, uint8_t *data, size_t *size, const uint32_t *adler);

#endif
