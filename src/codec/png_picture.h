/* SPDX-License-Identifier: MIT
 *
 * Shared by the readers of PNG, by rows and of interlaced files: what the chunks say about the rows, the inflated bytes
 * of the rows, and samples from bytes. */
#ifndef GPUCONV_PNG_PICTURE_H
#define GPUCONV_PNG_PICTURE_H

#include "codec/codec_internal.h"
#include "container/png.h"
#include "container/zlib.h"
#include "png/png.h"

/* The contents of a file, apart from the samples. */
struct png_picture {
    struct png_layout layout;
    bool interlaced;
    struct png_stream stream;
};

/* The reader's functions, for the codec's row in png_write.c. png_decode reads interlaced files only. */
bool png_decode(const struct codec_input *input, struct image *image, struct error *error);
size_t png_reader_need(const struct codec_info *info);
bool png_reader_open(struct codec_reader *reader, struct error *error);
void png_reader_close(struct codec_reader *reader);

/* Read the chunks up to the last IDAT. */
void png_picture_read(const struct codec_input *input, struct png_picture *picture);

/* Are the filters of ROWS rows known? Each row has RAW_BYTES bytes, and its filter is the first. */
bool png_filters_are_known(const uint8_t *raw, size_t rows, size_t raw_bytes);

/* Memory to make samples of rows of SIZE bytes, for png_make_samples: zeros before the first row. */
static inline size_t png_scratch_bytes(size_t size)
{
    return (2 + PNG_ROWS) * size;
}

/* Where samples of 8 or 16 bits with all channels go: STEP bytes lie between two pixels, STRIDE between two rows. */
struct png_samples {
    uint8_t *first;
    size_t step, stride;
};

/* Make samples from the next ROWS rows of WIDTH pixels at RAW, which hold known filters. */
void png_make_samples(const struct png_layout *layout, const uint8_t *raw, size_t rows, size_t width, uint8_t *scratch,
                      struct png_samples to);

/* ---- The bytes of the rows, inflated from first to last: png_inflate.c ---- */

struct png_inflater;

/* Bytes of memory that an inflater holds at most, besides those for several threads. */
size_t png_inflate_need(void);

/* Bytes of memory that several threads take to inflate, or 0 if one thread inflates. One thread also inflates if the
 * settings do not allow these bytes. */
size_t png_inflate_extra(const struct codec_info *info, const struct codec_settings *settings);

/* Begin with the SIZE bytes that the rows of PICTURE have with their filters. INPUT and PICTURE must outlive the
 * inflater. Release it with png_inflate_close. NULL is an error. */
struct png_inflater *png_inflate_open(const struct codec_input *input, const struct png_picture *picture, size_t size,
                                      struct error *error);

/* Inflate the next SIZE bytes to OUT. Errors are found at the latest with the last bytes: few bytes may follow, and the
 * checksum must be right. */
bool png_inflate_next(struct png_inflater *inflater, uint8_t *out, size_t size, struct error *error);

/* Can other threads help? Then png_inflate_help does a piece of work, while one thread inflates and others help. It
 * returns false if there is none now. */
bool png_inflate_takes_help(const struct png_inflater *inflater);
bool png_inflate_help(struct png_inflater *inflater);

/* Release the inflater. NULL is allowed. */
void png_inflate_close(struct png_inflater *inflater);

#endif
