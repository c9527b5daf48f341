/* SPDX-License-Identifier: MIT
 *
 * What the files of check_png share. */
#ifndef GPUCONV_CHECK_PNG_H
#define GPUCONV_CHECK_PNG_H

#include "base/bytes.h"
#include "codecs/tests/codec_check.h"
#include "png/png_gpu.h"

/* A picture: height x width pixels, without a palette. Samples of 16 bits have the machine's byte order. */
struct picture {
    struct png_layout layout;
    uint8_t *samples;
};

/* Bytes of the decoded samples of a picture of LAYOUT. */
static inline size_t picture_bytes(const struct png_layout *layout)
{
    return (size_t)layout->height * (size_t)layout->width * (size_t)png_layout_channels(layout) *
           (layout->bits == 16 ? 2 : 1);
}

/* ---- reference.c: the CPU's codec, on one thread ---- */

enum { WINDOW_BITS_MAX = 15 };

/* Levels of compression. Others are those of libdeflate, which compresses the filtered rows again. */
enum { LEVEL_STORED, LEVEL_STANDARD, LEVEL_FAST };

/* Append the deflate data of PICTURE to DATA. *ADLER becomes the Adler-32 of the filtered rows. */
void reference_encode(const struct picture *picture, int level, struct blob *data, uint32_t *adler);

/* Append a stream of zlib to STREAM: a head, DATA, a checksum. */
void wrap_zlib(const struct blob *data, int window_bits, uint32_t adler, struct blob *stream);

/* The SIZE bytes that a stream of zlib holds. Release them with free. NULL if it is damaged, or holds fewer or more. */
uint8_t *reference_inflate(const struct blob *stream, size_t size);

/* The samples of a stream of zlib. Release them with free. NULL if it is damaged. */
uint8_t *reference_decode(const struct blob *stream, const struct png_layout *layout);

/* ---- bench.c ---- */

/* How fast the kernels are with the pictures of the files, on 1 to 16 streams. */
void bench_files(int count, char **names);

#endif
