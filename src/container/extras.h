/* SPDX-License-Identifier: MIT
 *
 * Contents of a file besides the picture that the codecs read: other pictures, a film, data after the end. */
#ifndef GPUCONV_EXTRAS_H
#define GPUCONV_EXTRAS_H

#include "container/jpeg.h"

#include <stddef.h>
#include <stdint.h>

/* A set of these is an unsigned number, 1 << extra for each. */
enum container_extra {
    EXTRA_FRAMES,   /* of an animated PNG, after the first */
    EXTRA_LAYERS,   /* of Adobe Fireworks */
    EXTRA_GAIN_MAP, /* of Ultra HDR, ISO 21496-1 or Apple: the picture's bright parts for bright screens */
    EXTRA_PICTURES,
    EXTRA_RAW,  /* a camera's samples before it made the picture */
    EXTRA_FILM, /* of a motion photo */
    EXTRA_DATA, /* of an unknown kind, after the end of the picture */
    EXTRA_COUNT
};

/* The extras in the file of SIZE bytes after END, the end of its picture. Padding does not count: zeros, FF, blanks and
 * ends of lines. INDEX is the segment of a JPEG that lists its pictures, MPF (CIPA DC-007); its data may be NULL. A
 * preview that it lists does not count, because it shows the same picture as the file. */
unsigned container_extras_behind(const uint8_t *bytes, size_t size, size_t end, const struct jpeg_segment *index);

/* The extras in a segment of a JPEG: second pictures and depths of Google's cameras, the samples of a
 * thermal camera. */
unsigned container_extras_of(const struct jpeg_segment *segment);

/* Is this the segment MPF? */
bool container_is_picture_index(const struct jpeg_segment *segment);

/* The bytes of the longest text about extras, with its NUL, are fewer. */
enum { EXTRAS_TEXT = 160 };

/* Write the names of EXTRAS to TEXT: "other pictures and a film". */
void container_print_extras(unsigned extras, char text[EXTRAS_TEXT]);

#endif
