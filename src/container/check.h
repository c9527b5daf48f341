/* SPDX-License-Identifier: MIT
 *
 * The checks of a file before a codec reads it. stb silently accepts truncated and damaged files, and its JPEG decoder
 * trusts some numbers that it should not. So these functions walk the whole container first. They check the length and
 * CRC of every chunk, the length of every segment, the sizes of tables, and the end. Damaged files are then refused
 * alike, whichever codec follows. */
#ifndef GPUCONV_CONTAINER_CHECK_H
#define GPUCONV_CONTAINER_CHECK_H

#include "base/error.h"
#include "container/jpeg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The properties of the image, as the container states them. */
struct container_info {
    int64_t width, height; /* at least 1 */
    int channels;          /* 1 to 4, as the codecs return them: 3 or 4 for a palette, 3 for CMYK */
    int bits;              /* of a sample in the file */
    bool cmyk;             /* a JPEG of 4 channels */
    bool interlaced;       /* a PNG whose rows are in several passes */
    bool progressive;      /* a JPEG in several scans */
    bool starved;          /* no data of this length can fill a picture of this size */
    size_t data;           /* bytes of compressed samples in the file */
    unsigned extras;       /* what the file holds besides, as in extras.h */
    struct chroma_subsampling chroma_subsampling;
    struct jpeg_headers jpeg; /* of a JPEG */
};

/* Check the SIZE bytes of a PNG from its signature to IEND, or of a JPEG from SOI to EOI. Bytes after that are named in
 * INFO->extras and ignored. Fill INFO. NAME is the file's name, for the error. */
bool png_check(const uint8_t *bytes, size_t size, const char *name, struct container_info *info, struct error *error);
bool jpeg_check(const uint8_t *bytes, size_t size, const char *name, struct container_info *info, struct error *error);

#endif
