/* SPDX-License-Identifier: MIT
 *
 * EXIF: a block that says how and when a picture was taken. It is built anew from what is known to be harmless, so that
 * no other picture (thumbnail, preview, the maker's notes) goes along, and made to agree with the picture. */
#ifndef GPUCONV_EXIF_H
#define GPUCONV_EXIF_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Make EXIF, to be released with blob_free, a block of what is carried of SIZE bytes, at most 16 MiB; empty where that
 * is nothing or BYTES are no such block. TURNED leaves out what says where something is in the picture. False where
 * there is no memory. */
bool exif_rebuild(const uint8_t *bytes, size_t size, bool turned, struct blob *exif);

/* Of a block that exif_rebuild has built, or an empty one: what the tag Orientation says, 1 to 8, or 1 where it says
 * nothing valid. */
int exif_orientation(const struct blob *exif);

/* Let it say that the picture is upright, how many pixels it has, or that its densities have changed places, each only
 * where it speaks of that. */
void exif_set_upright(struct blob *exif);
void exif_set_sides(struct blob *exif, int width, int height);
void exif_swap_resolutions(struct blob *exif);

#endif
