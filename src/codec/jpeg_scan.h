/* SPDX-License-Identifier: MIT
 *
 * JPEG files around a scan that a GPU decodes or encodes. */
#ifndef GPUCONV_CODEC_JPEG_SCAN_H
#define GPUCONV_CODEC_JPEG_SCAN_H

#include "codec/codec.h"
#include "jpeg/jpeg.h"

/* Find the scan of a file whose reader is chosen. SCAN points into the file. Returns the codec that decodes such a scan
 * to the same samples. NULL: a GPU cannot read this file. */
const struct codec *codec_find_scan(const struct codec_input *input, struct jpeg_layout *layout,
                                    struct jpeg_scan *scan);

/* Fill LAYOUT for the scan of an image of SHAPE as FORMAT. Returns the codec that writes the same bytes. NULL: a GPU
 * cannot write this file. */
const struct codec *codec_plan_scan(const struct format *format, const struct image *shape,
                                    const struct codec_settings *settings, struct jpeg_layout *layout);

/* Make a file of SIZE bytes of data of a scan. Release *BYTES with free. */
bool codec_wrap_scan(const struct jpeg_layout *layout, const uint8_t *data, size_t size, uint8_t **bytes,
                     size_t *file_size, struct error *error);

#endif
