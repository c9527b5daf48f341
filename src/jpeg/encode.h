/* SPDX-License-Identifier: MIT
 *
 * An encoder of baseline JPEG, whose files are those of libjpeg-turbo, byte for byte. Any thread encodes any rows of MCUs
 * to a band: bits that do not depend on other bands. One thread then joins the bands in their order. */
#ifndef GPUCONV_JPEG_ENCODE_H
#define GPUCONV_JPEG_ENCODE_H

#include "base/bytes.h"
#include "image/image.h"
#include "jpeg/encode_loops.h"

struct jpeg_encoder {
    struct jpeg_layout layout;
    struct jpeg_divisors divisors[2]; /* of luma, of chroma */
    struct jpeg_codes codes[2];
    const struct jpeg_encode_loops *loops;
};

/* Some rows of MCUs. The DC values of the first MCU cannot be coded without the band above, so that MCU is not in the
 * bits. Release a band with free. */
struct jpeg_band {
    int16_t first[JPEG_MCU_BLOCKS_MOST][JPEG_BLOCK]; /* the blocks of the first MCU, as in struct jpeg_blocks */
    uint64_t first_nonzero[JPEG_MCU_BLOCKS_MOST];
    int last_dc[JPEG_COMPONENTS_MOST]; /* of the last MCU */
    uint64_t bit_count;
    uint8_t bits[]; /* of all MCUs but the first, without stuffed bytes */
};

/* A file whose headers are written. The struct owns the bytes. */
struct jpeg_file {
    struct blob blob;
    uint64_t held; /* the last HELD_COUNT bits, 0 to 7, are not in the blob yet */
    int held_count;
    int predictors[JPEG_COMPONENTS_MOST];
};

const struct jpeg_encode_loops *jpeg_encode_loops_for(enum instruction_set set);

/* Prepare to encode a picture of LAYOUT, whose tables are set, with the instruction set that $GPUCONV_CPU asks
 * for, or with the fastest. */
void jpeg_encoder_prepare(struct jpeg_encoder *encoder, const struct jpeg_layout *layout);

/* Encode ROWS of the picture, of 8 bits. They begin and end where rows of MCUs do, or with the picture. They have as
 * many channels as the layout components. NULL: there is not enough memory. */
struct jpeg_band *jpeg_band_encode(const struct jpeg_encoder *encoder, const struct image *rows);

/* Append bands, in their order, and at last the end of the file. Returns false if there is not enough memory. */
bool jpeg_file_append(struct jpeg_file *file, const struct jpeg_encoder *encoder, const struct jpeg_band *band);
bool jpeg_file_end(struct jpeg_file *file);

/* Append the first COUNT bits at BITS, with a 0 byte behind each FF. */
bool jpeg_file_append_bits(struct jpeg_file *file, const uint8_t *bits, uint64_t count);

#endif
