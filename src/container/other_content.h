/* SPDX-License-Identifier: MIT
 *
 * Contents of a file besides the picture that the codecs read: other pictures, a film, data after the end. */
#ifndef GPUCONV_OTHER_CONTENT_H
#define GPUCONV_OTHER_CONTENT_H

#include "container/jpeg.h"

#include <stddef.h>
#include <stdint.h>

/* A set of these is an unsigned number, 1 << extra for each. */
enum container_extra {
    OTHER_FRAMES,   /* frames of an animated PNG, after the first */
    OTHER_LAYERS,   /* layers of Adobe Fireworks or Photoshop */
    OTHER_GAIN_MAP, /* Ultra HDR, ISO 21496-1 or Apple: the picture's bright parts for bright screens */
    OTHER_PICTURES,
    OTHER_RAW,  /* a camera's samples before it made the picture */
    OTHER_FILM, /* the film of a motion photo */
    OTHER_DATA, /* data of an unknown kind, after the end of the picture */
    OTHER_COUNT
};

/* The other content in the file of SIZE bytes after END, the end of its picture. Padding does not count: zeros, FF,
 * blanks and ends of lines. INDEX is the segment of a JPEG that lists its pictures, MPF (CIPA DC-007); its data may be
 * NULL. A preview that it lists does not count, because it shows the same picture as the file. */
unsigned container_other_content_behind(const uint8_t *bytes, size_t size, size_t end,
                                        const struct jpeg_segment *index);

/* The other content in a segment of a JPEG: second pictures and depths of Google's cameras, the samples of a
 * thermal camera. */
unsigned container_other_content_of(const struct jpeg_segment *segment);

/* Is this the segment MPF? */
bool container_is_picture_index(const struct jpeg_segment *segment);

/* The bytes of the longest text about other content, with its NUL, are fewer. */
enum { OTHER_CONTENT_TEXT = 160 };

/* Write the names of OTHER_CONTENT to TEXT: "other pictures and a film". */
void container_print_other_content(unsigned other_content, char text[OTHER_CONTENT_TEXT]);

#endif
