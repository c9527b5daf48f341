/* SPDX-License-Identifier: MIT
 *
 * Files around what a GPU decodes or encodes: the scan of a JPEG, and the stream of a PNG. */
#ifndef GPUCONV_CODEC_GPU_CODEC_H
#define GPUCONV_CODEC_GPU_CODEC_H

#include "codec/codec.h"
#include "codec/end.h"

/* Let END be what a GPU can decode of a file whose reader is chosen: a scan or a stream, which points into the file.
 * Returns the codec that decodes it to the same samples. If a GPU cannot read this file, END is END_HOST, and the
 * function returns NULL. */
const struct codec *codec_plan_gpu_input(const struct codec_input *input, struct end *end);

/* Let END be what a GPU can encode of an image of SHAPE as FORMAT. Returns the codec that writes the same bytes. If a
 * GPU cannot write this file, END is END_HOST, and the function returns NULL. */
const struct codec *codec_plan_gpu_output(const struct format *format, const struct image *shape,
                                          const struct codec_settings *settings, struct end *end);

/* Make end->head of what a GPU will encode of an image of SHAPE. Metadata may be put into it. */
bool codec_begin_file(const struct image *shape, struct end *end, struct error *error);

/* Complete the file around what a GPU has encoded. Returns its *SIZE bytes, which are where the data are or, if COPIES,
 * a copy to release with free. NULL if there is too little memory for that. */
uint8_t *codec_end_file(const struct end *end, bool copies, size_t *size, struct error *error);

#endif
