/* SPDX-License-Identifier: MIT
 *
 * The functions of one instruction set. */
#ifndef GPUCONV_JPEG_DECODE_SET_H
#define GPUCONV_JPEG_DECODE_SET_H

#include "jpeg/decode_loops.h"

bool IN_SET(jpeg_walk)(const struct jpeg_index *index, struct jpeg_cursor *cursor, uint64_t count, uint64_t stop,
                       uint64_t end, uint64_t *failed);
void IN_SET(jpeg_decode_row)(const struct jpeg_index *index, int row, uint8_t *planes);
void IN_SET(jpeg_convert)(const struct jpeg_layout *layout, int first, int rows, const struct rows *planes,
                          uint8_t *samples);

#endif
