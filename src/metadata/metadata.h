/* SPDX-License-Identifier: MIT
 *
 * What a file says besides its samples, on its way from the input to the output: read from the chunks of a PNG or the
 * segments of a JPEG, made to agree with the picture that is written, put into an encoded file of either format. Knows
 * these containers, and neither the codecs' libraries nor filters.
 *
 * What may show the picture before it was filtered is not carried: a blurred face must not be found in its file. So
 * EXIF is built anew from what is known to be harmless, which leaves out the thumbnail (IFD1), previews, the maker's
 * notes and what no directory refers to; an XMP packet that holds pictures is left out, and so are the further segments
 * of an extended one, Photoshop's resources but for IPTC and the copyright, and all other application segments. */
#ifndef GPUCONV_METADATA_H
#define GPUCONV_METADATA_H

#include "base/bytes.h"
#include "base/error.h"
#include "codec/codec.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes of one part (a JPEG's 255 segments hold 16.7 million of a profile), inflated, and of all together. */
#define METADATA_PART_MOST ((size_t)16 << 20)
#define METADATA_MOST ((size_t)64 << 20)

/* What can be left out with a warning, and why. */
enum metadata_part { METADATA_ICC, METADATA_EXIF, METADATA_XMP, METADATA_IPTC, METADATA_TEXT, METADATA_PARTS };
enum metadata_reason {
    METADATA_DAMAGED,
    METADATA_TOO_LARGE,
    METADATA_PICTURES,     /* it holds pictures, which show what has not been filtered */
    METADATA_OTHER_COLOUR, /* it describes other kinds of colour than the file has */
    METADATA_REASONS
};

enum density { DENSITY_NONE, DENSITY_ASPECT, DENSITY_INCH, DENSITY_CENTIMETRE, DENSITY_METRE };

struct metadata {
    struct blob icc;   /* a profile */
    char icc_name[80]; /* what a PNG calls it; may be empty */
    struct blob exif;  /* a TIFF block, as metadata_read builds it */
    struct blob xmp;   /* a packet, in UTF-8 */
    struct blob iptc;  /* Photoshop's resources that are carried, one after the other */
    struct blob texts; /* whole tEXt, zTXt and iTXt chunks; a JPEG's comments have the keyword Comment */

    uint8_t chromaticities[32], gamma[4], coding[4]; /* PNG's cHRM, gAMA and cICP */
    uint8_t intent;                                  /* PNG's sRGB */
    bool has_chromaticities, has_gamma, has_coding, has_srgb;
    enum density density; /* pixels per this unit; of DENSITY_ASPECT only the ratio counts */
    uint32_t across, down;

    int orientation;   /* EXIF's, 1 to 8; 1 also where there is none, or none that is valid */
    uint32_t left_out; /* 1 << (part * METADATA_REASONS + reason) for each that was met in reading */
};

/* Read what SIZE bytes of FORMAT, which codec_inspect has found to be whole, say. METADATA is to be released with
 * metadata_free, also after a failure. What is damaged is left out and no error: all that can fail is memory. */
bool metadata_read(const uint8_t *bytes, size_t size, enum format format, struct metadata *metadata,
                   struct error *error);

/* Turn IMAGE upright, and let METADATA say that it is: orientation, sides and densities. SAMPLING turns with it. */
bool metadata_orient(struct metadata *metadata, struct image *image, struct sampling *sampling, struct error *error);

/* Put METADATA into the encoded file *BYTES of *SIZE, which is replaced by a larger one. LEFT_OUT becomes what does not
 * go into such a file, as in the struct; a PNG's texts are silently reduced to comments in a JPEG, and its gamma,
 * chromaticities and coding, for which a JPEG has no place, to nothing. Fails only where there is not enough memory;
 * the file is then as it was. */
bool metadata_write(const struct metadata *metadata, enum format format, uint8_t **bytes, size_t *size,
                    uint32_t *left_out, struct error *error);

/* Say in SIZE bytes at TEXT which parts LEFT_OUT names: "EXIF (is damaged), text (is too large)". */
void metadata_print_left_out(uint32_t left_out, char *text, size_t size);

/* Bytes that METADATA holds. */
size_t metadata_bytes(const struct metadata *metadata);

/* Release all; the struct may be all zero, and is empty afterwards: writing it changes nothing. */
void metadata_free(struct metadata *metadata);

#endif
