/* SPDX-License-Identifier: MIT
 *
 * Bytes to image and back: THE TABLE of codecs, what goes before all of them (the checks of the container, limits), and
 * the choice. Knows nothing of filters. */
#ifndef GPUCONV_CODEC_H
#define GPUCONV_CODEC_H

#include "base/error.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum format { FORMAT_UNKNOWN, FORMAT_PNG, FORMAT_JPEG, FORMAT_COUNT };

/* The largest image that is read or written: width x height x channels, half as many of 16 bits, which is also its
 * bytes in memory. stb computes sizes in int, so this must stay below 2^31 with room for a filter byte a row; 2^30
 * does. */
#define CODEC_MAX_SAMPLES ((size_t)1 << 30)

/* The largest file that is read: stb counts its bytes in an int. */
#define CODEC_MAX_BYTES ((size_t)INT32_MAX)

/* How many samples of brightness a JPEG has for one of colour, across and down. 0, 0: not known, or not so simple. */
struct sampling {
    int across, down;
};

/* What a file is, beyond its samples. */
struct codec_info {
    enum format format;
    int width, height, channels; /* of the image that decoding gives */
    int bits;                    /* of a sample of it: 16 where the file has 16, else 8 */
    bool inks;                   /* a JPEG of 4 channels, which are turned into RGB */
    struct sampling sampling;
    const struct codec *codec; /* which one decoded; NULL after codec_inspect */
};

/* How to decode and encode. */
struct codec_settings {
    const struct codec *codec; /* NULL: the best for each file */
    int bits;                  /* that a decoded image is to have a sample, 8 or 16; 0: as many as the file */
    int quality;               /* of a JPEG, 1 to 100 */
    int compression;           /* of a PNG, 0 (none) to 9 */
    int threads;               /* 0: as many as there are processors; 1: none is started. Never changes what is made. */
    struct sampling sampling;  /* wanted of a JPEG; 0, 0: as the quality suggests */
    size_t most_pixels;        /* width x height that is read; 0: what CODEC_MAX_SAMPLES allows */
};

/* Where nobody asks for others. */
enum { CODEC_COMPRESSION = 1, CODEC_QUALITY = 90 };

struct codec_input; /* codec_row.h */

/* A row of the table. */
struct codec {
    const char *name, *summary;
    unsigned reads, writes;    /* 1 << format for each */
    int read_bits, write_bits; /* the most of a sample */
    bool inks;                 /* it reads JPEGs of 4 channels */
    bool levels;               /* it heeds codec_settings.compression */
    bool (*decode)(const struct codec_input *input, struct image *image, struct error *error); /* NULL: not built in */
    bool (*encode)(const struct image *image, enum format format, const struct codec_settings *settings,
                   uint8_t **bytes, size_t *size, struct error *error);
};

/* All codecs; for each file the first that can is the best. */
const struct codec *codecs(size_t *count);

/* The codec of that name, if it was built in; NULL is a usage error. */
const struct codec *codec_find(const char *name, struct error *error);

/* The codec that will write FORMAT with BITS a sample (those of a JPEG are reduced to 8), or NULL: the one that
 * SETTINGS name cannot. */
const struct codec *codec_writer(enum format format, int bits, const struct codec_settings *settings,
                                 struct error *error);

/* The format that a path's suffix names (.png .jpg .jpeg, in any case), or FORMAT_UNKNOWN. */
enum format codec_format_of_path(const char *path);

/* The format that a word names ("png", "jpg", "jpeg", in any case), or FORMAT_UNKNOWN. */
enum format codec_format_of_name(const char *name);

/* "PNG" or "JPEG". */
const char *codec_format_name(enum format format);

/* Check SIZE bytes and say what they hold, decoding nothing; NAME is for messages. The container is checked as a whole
 * (PNG: chunk order, lengths, CRCs, IEND; JPEG: marker segments up to EOI), then the size against CODEC_MAX_SAMPLES and
 * what SETTINGS allow; NULL allows all. */
bool codec_inspect(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                   struct codec_info *info, struct error *error);

/* The bits a sample of what decoding INFO is going to give. */
static inline int codec_bits(const struct codec_info *info, const struct codec_settings *settings)
{
    return settings->bits > 0 ? settings->bits : info->bits;
}

/* Decode what codec_inspect has found to be INFO into IMAGE (to be released with image_free). INFO->codec is set. The
 * image has codec_bits a sample: those of the file, or what image_convert makes of them. */
bool codec_decode_inspected(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                            struct codec_info *info, struct image *image, struct error *error);

/* Both of them. INFO may be NULL. */
bool codec_decode(const uint8_t *bytes, size_t size, const char *name, const struct codec_settings *settings,
                  struct image *image, struct codec_info *info, struct error *error);

/* Encode IMAGE to memory; *BYTES is to be released with free. JPEG holds no alpha: it is dropped; and 8 bits a sample:
 * 16 are reduced. stb makes grey a JPEG in colour, the only kind that it writes. */
bool codec_encode(const struct image *image, enum format format, const struct codec_settings *settings, uint8_t **bytes,
                  size_t *size, struct error *error);

#endif
