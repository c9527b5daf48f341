/* SPDX-License-Identifier: MIT
 *
 * What a file must be before a codec sees it. stb reads truncated and damaged files without a word, and its JPEG decoder
 * trusts some numbers that it should not. So the whole container is walked first: the length and CRC of every chunk, the
 * length of every segment, the sizes of tables, the end. Damaged files are then refused alike, whichever codec follows. */
#ifndef GPUCONV_CONTAINER_CHECK_H
#define GPUCONV_CONTAINER_CHECK_H

#include "base/error.h"
#include "container/jpeg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a container says about its image. */
struct container_info {
    int64_t width, height; /* at least 1 */
    int channels;          /* 1 to 4, as the codecs give them: a palette is 3 or 4, and so is CMYK 3 */
    int bits;              /* of a sample in the file */
    bool cmyk;             /* a JPEG of 4 channels */
    struct chroma_subsampling chroma_subsampling;
};

/* Check the SIZE bytes of a PNG from its signature to IEND, of a JPEG from SOI to EOI; bytes behind that are ignored. Fill
 * INFO. NAME is the file's, for the error. */
bool png_check(const uint8_t *bytes, size_t size, const char *name, struct container_info *info, struct error *error);
bool jpeg_check(const uint8_t *bytes, size_t size, const char *name, struct container_info *info, struct error *error);

#endif
