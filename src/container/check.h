/* SPDX-License-Identifier: MIT
 *
 * The checks of a file before a codec reads it. stb silently accepts truncated and damaged files, and its JPEG decoder
 * trusts some numbers that it should not. So these functions walk the whole container first. They check the length of
 * every chunk, the CRC of those that the picture needs, the length of every segment, the sizes of tables, and the end.
 * Damaged files are then refused alike, whichever codec follows. */
#ifndef GPUCONV_CONTAINER_CHECK_H
#define GPUCONV_CONTAINER_CHECK_H

#include "base/error.h"
#include "container/heif.h"
#include "container/jpeg.h"
#include "container/pnm.h"
#include "container/tiff.h"
#include "container/webp.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The properties of a file and of its image. A check sets all but the last three. */
struct codec_info {
    int page;  /* the number of the picture in the file; before the check the wanted one, or 0 for the main one */
    int pages; /* the pictures that can be wanted; a check that fails may set it. 0 if the format has one only */
    int width, height, channels; /* the shape of the decoded image: 3 or 4 channels for a palette, 3 for CMYK */
    int bits;                    /* bits of its samples: 16 if the file has 16, else 8 */
    bool cmyk;                   /* a JPEG of 4 channels; decoding converts it to RGB */
    bool arithmetic;             /* a JPEG with arithmetic codes, not Huffman codes */
    bool interlaced;             /* a PNG whose rows are in several passes */
    bool progressive;            /* a JPEG in several scans: all of them are in memory before the first row is read */
    bool is_too_short;           /* no data of this length can fill a picture of this size */
    size_t data;                 /* bytes of the samples in the file, compressed or not */
    unsigned other_content;      /* what the file holds besides the image, as in other_content.h */
    struct chroma_subsampling chroma_subsampling;
    struct jpeg_headers jpeg; /* set only for a JPEG */
    struct pnm_header pnm;    /* set only for a PGM, PPM or PAM */
    struct webp_header webp;  /* set only for a WebP */
    struct tiff_header tiff;  /* set only for a TIFF */
    struct heif_header heif;  /* set only for a HEIC or AVIF */

    const struct format *format; /* by codec_inspect, as the next */
    size_t size;                 /* bytes of the file */
    const struct codec *codec;   /* by codec_choose_reader; after codec_decode, the one that has read the file */
    int shrink;                  /* by codec_shrink: the number of times that the decoder halves both sides */
};

/* Check the SIZE bytes of a PNG from its signature to IEND, of a JPEG from SOI to EOI, of a PGM, PPM or PAM up to its
 * last row, of a WebP up to the end that its head names, the directories of a TIFF, or the boxes of a HEIC or AVIF.
 * Bytes after the end are named in INFO->other_content and ignored. Fill INFO. NAME is the file's name, for the
 * error. */
typedef bool file_check(const uint8_t *bytes, size_t size, const char *name, struct codec_info *info,
                        struct error *error);
file_check png_check, jpeg_check, pnm_check, tiff_check, webp_check, heif_check;

/* Has a file of PAGES pictures the wanted PAGE? */
bool container_check_page(int page, int pages, const char *name, struct error *error);

#endif
