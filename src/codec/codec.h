/* SPDX-License-Identifier: MIT
 *
 * Bytes to image and back: THE TABLE of codecs, the choice of one, and what comes before all of them: the check of the
 * container and limits. Knows nothing of filters. */
#ifndef GPUCONV_CODEC_H
#define GPUCONV_CODEC_H

#include "base/error.h"
#include "codec/format.h"
#include "container/jpeg.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The largest image that is read or written: width x height x channels, half as many of 16 bits. That is also its bytes
 * in memory. stb computes sizes in int, so this must stay below 2^31 with a filter byte a row; 2^30 does. */
#define CODEC_MAX_SAMPLES ((size_t)1 << 30)

/* The largest file that is read: stb counts its bytes in an int. */
#define CODEC_MAX_BYTES ((size_t)INT32_MAX)

/* What a file is, beyond its samples. */
struct codec_info {
    const struct format *format;
    int width, height, channels; /* of the image that decoding gives */
    int bits;                    /* of a sample of it: 16 where the file has 16, else 8 */
    bool cmyk;                   /* a JPEG of 4 channels, which decoding turns into RGB */
    struct chroma_subsampling chroma_subsampling;
    const struct codec *codec; /* which one decoded; NULL after codec_inspect */
};

/* How to decode and encode. */
struct codec_settings {
    const struct codec *codec; /* NULL: the best for each file */
    int bits;                  /* wanted of a sample of a decoded image, 8 or 16; 0: those of the file */
    int quality;               /* of a JPEG, 1 to 100 */
    int compression;           /* of a PNG, 0 (none) to 9 */
    int threads;               /* 0: as many as there are processors; 1: none is started. Never changes the result. */
    struct chroma_subsampling chroma_subsampling; /* wanted of a JPEG; 0, 0: as the quality suggests */
    size_t most_pixels;                           /* width x height that is read; 0: what CODEC_MAX_SAMPLES allows */
};

/* The standard settings. */
enum { CODEC_COMPRESSION = 1, CODEC_QUALITY = 90 };

struct codec_input; /* codec_internal.h */

/* A row of the table. */
struct codec {
    const char *name, *summary;
    unsigned reads, writes;    /* 1 << format_id for each */
    int read_bits, write_bits; /* the most of a sample */
    bool reads_cmyk;           /* it reads JPEGs of 4 channels */
    bool takes_compression;    /* it uses codec_settings.compression */
    bool (*decode)(const struct codec_input *input, struct image *image, struct error *error); /* NULL: not built in */
    bool (*encode)(const struct image *image, const struct format *format, const struct codec_settings *settings,
                   uint8_t **bytes, size_t *size, struct error *error);
};

/* All codecs. The first that can is the best for each file. */
const struct codec *codecs(size_t *count);

/* The codec of that name, if it was built in; NULL is a usage error. */
const struct codec *codec_find(const char *name, struct error *error);

/* Does CODEC read, or write, files of FORMAT, whether or not it was built in? */
bool codec_reads(const struct codec *codec, const struct format *format);
bool codec_writes(const struct codec *codec, const struct format *format);

/* The codec that will write FORMAT with BITS a sample. Bits that the format cannot hold are reduced first. NULL is an
 * error: the codec that SETTINGS name cannot. */
const struct codec *codec_writer(const struct format *format, int bits, const struct codec_settings *settings,
                                 struct error *error);

/* Check SIZE bytes and say what they hold, without decoding them; NAME is for messages. The container is checked as a
 * whole (PNG: chunk order, lengths, CRCs, IEND; JPEG: segments up to EOI), then the size against CODEC_MAX_SAMPLES and
 * what SETTINGS allow; NULL allows all. */
bool codec_inspect(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                   struct codec_info *info, struct error *error);

/* The bits a sample that decoding INFO will give. */
static inline int codec_bits(const struct codec_info *info, const struct codec_settings *settings)
{
    return settings->bits > 0 ? settings->bits : info->bits;
}

/* Decode a file that codec_inspect has found to be INFO into IMAGE, to be released with image_free. INFO->codec is set.
 * The image has codec_bits a sample: those of the file, or what image_convert makes of them. */
bool codec_decode_inspected(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                            struct codec_info *info, struct image *image, struct error *error);

/* Inspect and decode. INFO may be NULL. */
bool codec_decode(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                  struct image *image, struct codec_info *info, struct error *error);

/* Encode IMAGE to memory; *BYTES is to be released with free. What FORMAT does not hold, alpha or bits, is dropped. stb
 * makes grey a JPEG in colour, the only kind that it writes. */
bool codec_encode(const struct image *image, const struct format *format, const struct codec_settings *settings,
                  uint8_t **bytes, size_t *size, struct error *error);

#endif
