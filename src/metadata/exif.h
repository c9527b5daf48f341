/* SPDX-License-Identifier: MIT
 *
 * EXIF: a block that says how and when a picture was taken. It is rebuilt from tags that are known to hold a few
 * numbers or a text. So it holds no other picture (thumbnail, preview, maker notes), and it agrees with the written
 * picture. */
#ifndef GPUCONV_EXIF_H
#define GPUCONV_EXIF_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rebuild EXIF from the known tags of the block of SIZE bytes, at most 16 MiB. The result is empty if there are none,
 * or if BYTES are no such block. TURNED drops tags that give a place in the picture. *UNKNOWN says whether an unknown
 * tag, or an unfit value, was left out. Release EXIF with blob_free. Returns false if there is not enough memory. */
bool exif_rebuild(const uint8_t *bytes, size_t size, bool turned, struct blob *exif, bool *unknown);

/* The tag Orientation, 1 to 8, of a block from exif_rebuild or an empty one. 1 if it has no valid value. */
int exif_orientation(const struct blob *exif);

/* Change such a block: the picture is upright, or has so many pixels, or its horizontal and vertical resolutions are
 * swapped. Tags that the block lacks are not added. */
void exif_set_upright(struct blob *exif);
void exif_set_sides(struct blob *exif, int width, int height);
void exif_swap_resolutions(struct blob *exif);

#endif
