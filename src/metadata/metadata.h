/* SPDX-License-Identifier: MIT
 *
 * What a file says besides its samples, on its way from the input to the output: read from the chunks of a PNG or the
 * segments of a JPEG, made to agree with the picture that is written, and put into an encoded file of either format.
 *
 * Nothing is carried that may show the picture before it was filtered: a blurred face must not be found in its file. So
 * EXIF is built anew from what is known to be harmless. That drops the thumbnail (IFD1), previews, the maker's notes and
 * what no directory refers to. An XMP packet that holds pictures is dropped, and so are the further segments of an
 * extended one, Photoshop's resources apart from IPTC and the copyright, and all other application segments. */
#ifndef GPUCONV_METADATA_H
#define GPUCONV_METADATA_H

#include "base/bytes.h"
#include "base/error.h"
#include "container/jpeg.h"
#include "image/image.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The most bytes of one part, inflated, and of all together. A JPEG's 255 segments hold 16.7 million of a profile. */
#define METADATA_PART_MOST ((size_t)16 << 20)
#define METADATA_MOST ((size_t)64 << 20)

/* What can be dropped with a warning, and why. */
enum metadata_part { METADATA_ICC, METADATA_EXIF, METADATA_XMP, METADATA_IPTC, METADATA_TEXT, METADATA_PARTS };
enum metadata_reason {
    METADATA_DAMAGED,
    METADATA_TOO_LARGE,
    METADATA_PICTURES,     /* it holds pictures, which show what has not been filtered */
    METADATA_OTHER_COLOUR, /* it describes other kinds of colour than the file has */
    METADATA_REASONS
};

/* Pixels per unit of length. Of RESOLUTION_ASPECT only the ratio counts. NONE: both numbers are 0. */
enum resolution_unit { RESOLUTION_NONE, RESOLUTION_ASPECT, RESOLUTION_INCH, RESOLUTION_CENTIMETRE, RESOLUTION_METRE };
struct resolution {
    enum resolution_unit unit;
    uint32_t horizontal, vertical;
};

struct metadata {
    struct blob icc;   /* a profile */
    char icc_name[80]; /* what a PNG calls it; may be empty */
    struct blob exif;  /* a TIFF block, built by exif_rebuild */
    struct blob xmp;   /* a packet, in UTF-8 */
    struct blob iptc;  /* Photoshop's resources that are carried, one after the other */
    struct blob texts; /* whole tEXt, zTXt and iTXt chunks; a JPEG's comments have the keyword Comment */

    uint8_t chromaticities[32], gamma[4], coding[4]; /* PNG's cHRM, gAMA and cICP */
    uint8_t intent;                                  /* PNG's sRGB */
    bool has_chromaticities, has_gamma, has_coding, has_srgb;
    struct resolution resolution;

    int orientation;  /* EXIF's, 1 to 8; 1 also where there is none, or none that is valid */
    uint32_t dropped; /* in reading: 1 << (part * METADATA_REASONS + reason) for each */
};

/* Read what the SIZE bytes of a PNG or JPEG say, which its check has found to be whole. METADATA is to be released with
 * metadata_free, also after a failure. Damaged parts are dropped and no error: only memory can fail. */
bool metadata_read_png(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error);
bool metadata_read_jpeg(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error);

/* Turn IMAGE upright, and let METADATA say that it is: orientation, sides and resolution. CHROMA turns with it. */
bool metadata_orient(struct metadata *metadata, struct image *image, struct chroma_subsampling *chroma,
                     struct error *error);

/* Put METADATA into the encoded file *BYTES of *SIZE, which is replaced by a larger one. DROPPED becomes what such a file
 * does not take, as in the struct. In a JPEG the texts of a PNG are silently reduced to comments, and its gamma,
 * chromaticities and coding, for which a JPEG has no place, to nothing. Fails only where there is not enough memory; the
 * file is then as it was. */
bool metadata_write_png(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint32_t *dropped,
                        struct error *error);
bool metadata_write_jpeg(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint32_t *dropped,
                         struct error *error);

/* Write which parts DROPPED names to TEXT, of SIZE bytes: "EXIF (is damaged), text (is too large)". */
void metadata_print_dropped(uint32_t dropped, char *text, size_t size);

/* Bytes that METADATA holds. */
size_t metadata_bytes(const struct metadata *metadata);

/* Release all. The struct may be all zero, and is empty afterwards: writing it changes nothing. */
void metadata_free(struct metadata *metadata);

#endif
