/* SPDX-License-Identifier: MIT
 *
 * EXIF: a block that says how and when a picture was taken. It is built anew from what is known to be harmless, so that it
 * carries no other picture (thumbnail, preview, the maker's notes), and made to agree with the picture. */
#ifndef GPUCONV_EXIF_H
#define GPUCONV_EXIF_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Build EXIF, to be released with blob_free, from what is carried of the block of SIZE bytes, at most 16 MiB. It is empty
 * where that is nothing, or BYTES are no such block. TURNED drops what says where something is in the picture. False
 * where there is not enough memory. */
bool exif_rebuild(const uint8_t *bytes, size_t size, bool turned, struct blob *exif);

/* What the tag Orientation says, 1 to 8, in a block that exif_rebuild has built or an empty one. 1 where it says nothing
 * valid. */
int exif_orientation(const struct blob *exif);

/* Let such a block say that the picture is upright, or how many pixels it has, or swap its horizontal and vertical
 * resolutions. Tags that are not there are not added. */
void exif_set_upright(struct blob *exif);
void exif_set_sides(struct blob *exif, int width, int height);
void exif_swap_resolutions(struct blob *exif);

#endif
