/* SPDX-License-Identifier: MIT
 *
 * Metadata: all contents of a file besides its samples. A PNG or WebP has them in chunks, a JPEG in segments, a TIFF in
 * a directory, and a HEIC or AVIF in items. They are adapted to the written picture, and put into an encoded file. A
 * HEIC is not written, and other formats hold none.
 *
 * No part is kept that may show the picture before it was filtered: a blurred face must not be found in its file. EXIF
 * is rebuilt from a list of known tags. This drops the thumbnail (IFD1), previews, maker notes and all bytes that no
 * directory refers to. XMP is rebuilt from properties of known namespaces, and a profile keeps the values of its tags.
 * The other segments of an extended XMP packet, Photoshop's resources except IPTC and the copyright, and all other
 * application segments are dropped. A text may hold a picture in any code, so only short texts are kept: they may be
 * longer, and XMP may have other namespaces, if somebody asks for that. */
#ifndef GPUCONV_METADATA_H
#define GPUCONV_METADATA_H

#include "base/bytes.h"
#include "base/error.h"
#include "container/jpeg.h"
#include "filter/chain.h"
#include "image/image.h"
#include "image/linear.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maximal number of bytes of one part, inflated, and of all parts together. METADATA_MAX also limits the bytes that
 * are inflated from a file, kept or not. A JPEG's 255 segments hold 16.7 million bytes of a profile. */
#define METADATA_PART_MAX ((size_t)16 << 20)
#define METADATA_MAX ((size_t)64 << 20)

/* The maximal number of bytes of one text, half as many as base64 takes for a small thumbnail, and of all texts of a
 * file. Two of 613 photos of public collections have a longer caption, and one has more text. */
#define METADATA_TEXT_MAX ((size_t)1000)
#define METADATA_TEXTS_MAX ((size_t)8000)

/* The maximal number of bytes of one text with KEEP_TEXT, inflated. */
#define METADATA_LONG_TEXT_MAX ((size_t)1 << 20)

/* The parts that can be dropped with a warning, and the reasons. */
enum metadata_part {
    METADATA_ICC,
    METADATA_EXIF,
    METADATA_XMP,
    METADATA_IPTC,
    METADATA_TEXT,
    METADATA_BLOBS,                   /* the parts before are blobs of bytes */
    METADATA_COLOUR = METADATA_BLOBS, /* PNG's gAMA, cHRM, sRGB and cICP */
    METADATA_CHUNK,                   /* another chunk of a PNG or WebP, or segment of a JPEG */
    METADATA_RESOLUTION,
    METADATA_C2PA, /* a signed manifest, which a changed picture cannot keep */
    METADATA_PARTS
};
enum metadata_reason {
    METADATA_DAMAGED,
    METADATA_TOO_LARGE,
    METADATA_OTHER_COLOUR,    /* it describes another colour space, size or orientation than the file has */
    METADATA_UNKNOWN,         /* what is not known to be text or a few numbers; the rest is kept */
    METADATA_NEEDS_KEEP_TEXT, /* more text, or properties of other namespaces; the rest is kept */
    METADATA_NOT_SUPPORTED,   /* the format has no such metadata */
    METADATA_LOSES_COLOURS,   /* without it, the colours look different */
    METADATA_MAKER = METADATA_LOSES_COLOURS, /* for EXIF: the maker's notes; the rest is kept */
    METADATA_REASONS
};

/* What --strip drops. */
enum metadata_level {
    STRIP_NOTHING,
    STRIP_MOST,    /* all but the copyright, and but what says the colours, unless they are sRGB's */
    STRIP_PRIVATE, /* places, names of persons, serial numbers and identifiers of pictures */
    STRIP_ALL,
};

/* What stays nevertheless: the parts by enum metadata_part, where ICC stands for all that says the colours, and what
 * says one thing in any part. */
enum metadata_kept { KEEP_RESOLUTION = METADATA_BLOBS, KEEP_COPYRIGHT, KEEP_GPS, KEEP_KINDS };

struct metadata_strip {
    enum metadata_level level;
    unsigned kept; /* 1 << each part and each kind that stays */
};

/* Pixels per unit of length. With RESOLUTION_ASPECT, only their ratio counts. With RESOLUTION_NONE, both numbers are
 * 0. */
enum resolution_unit { RESOLUTION_NONE, RESOLUTION_ASPECT, RESOLUTION_INCH, RESOLUTION_CENTIMETRE, RESOLUTION_METRE };
struct resolution {
    enum resolution_unit unit;
    uint32_t horizontal, vertical;
};

struct metadata {
    union {
        struct {
            struct blob icc;   /* a profile */
            struct blob exif;  /* a TIFF block from exif_rebuild */
            struct blob xmp;   /* a packet in UTF-8 */
            struct blob iptc;  /* Photoshop's resources that are kept, one after the other */
            struct blob texts; /* whole tEXt, zTXt and iTXt chunks; a JPEG's comments have the keyword Comment */
        };
        struct blob blobs[METADATA_BLOBS]; /* these five blobs, by enum metadata_part */
    };
    char icc_name[80]; /* the name of the profile in a PNG; may be empty */

    uint8_t chromaticities[32], gamma[4], coding[4]; /* PNG's cHRM, gAMA and cICP */
    uint8_t intent;                                  /* PNG's sRGB */
    uint8_t mastering[24], light[8]; /* PNG's mDCV and cLLI: the light of a display, and of the picture */
    bool has_chromaticities, has_gamma, has_coding, has_srgb, has_mastering, has_light;
    struct resolution resolution;

    size_t max;                  /* for reading: the maximal number of bytes of a part, inflated */
    bool keep_text;              /* for reading: keep texts of any length, and XMP of any namespace */
    int page;                    /* for reading: of which picture, as in struct codec_info */
    size_t directory;            /* while a TIFF is read: the offset of that picture's directory; else 0 */
    struct metadata_strip strip; /* for rebuilding parts: what is left out of them */
    bool needs_more;             /* a part has more, and might be kept */
    size_t inflated;             /* bytes that reading has inflated, kept or not */
    size_t text_bytes;           /* bytes of the texts that are kept */
    int orientation;             /* EXIF's orientation, 1 to 8; 1 also if there is no valid one */
    uint64_t dropped;            /* by reading: 1 << (part * METADATA_REASONS + reason) for each part */
};

/* Read the metadata of the SIZE bytes of a file, which its check must have accepted. METADATA has only MAX,
 * KEEP_TEXT and PAGE; the caller sets them. Release METADATA with metadata_free, also after a failure. Damaged parts
 * are dropped, and that is no error. Fails only if there is not enough memory. It allocates at most four times SIZE and
 * four times MAX, which is at most METADATA_PART_MAX. If MAX is less, and too small for a part, NEEDS_MORE says so:
 * free METADATA and try a larger MAX. */
typedef bool metadata_reader(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error);
metadata_reader metadata_read_png, metadata_read_jpeg, metadata_read_tiff, metadata_read_webp, metadata_read_heif;

/* The reader of a format without metadata. */
metadata_reader metadata_read_none;

/* Turn IMAGE upright. METADATA then say so: orientation, sides and resolution change, and CHROMA turns too. */
bool metadata_orient(struct metadata *metadata, struct image *image, struct chroma_subsampling *chroma,
                     struct error *error);

/* Let METADATA, and CHROMA, be of a picture that filters have made GEOMETRY of. What gives a position in the picture is
 * dropped. The resolution stays, but for a turn: it says how large the picture is printed. */
bool metadata_resize(struct metadata *metadata, const struct geometry *geometry, struct chroma_subsampling *chroma,
                     struct error *error);

/* What names the curve of the samples, in the order in which it counts (PNG, third edition, 4.3). */
enum curve_source { CURVE_OF_CICP, CURVE_OF_ICC, CURVE_OF_SRGB, CURVE_OF_GAMMA, CURVE_OF_EXIF, CURVE_ASSUMED };

/* Set the tables of an image of BITS, GREY or not, to the first curve in METADATA that can be read, else to sRGB's.
 * *UNREAD becomes 1 << source for each one before it that cannot be read. */
enum curve_source metadata_set_linear(const struct metadata *metadata, bool grey, int bits, struct linear *linear,
                                      unsigned *unread);

/* The source of a curve, for messages: "its ICC profile". */
const char *metadata_curve_name(enum curve_source source);

/* Are the colours those of sRGB, as far as the curve and the primaries are known? GREY says that there is one channel,
 * which has no primaries. True if METADATA say nothing of them. */
bool metadata_is_srgb(const struct metadata *metadata, bool grey);

/* How the levels of a picture become sRGB's: set the curves of COLOURS from the tables of LINEAR. These become those of
 * the picture, GREY or not, of BITS. WEIGHTS over COLOURS_SCALE make sRGB's light, and each row sums to it; *IS_MIXED
 * says whether they do more than nothing. Fails if the colours cannot be read, or if sRGB cannot hold them. */
enum { COLOURS_SCALE = 1 << 20 };
bool metadata_find_colours(const struct metadata *metadata, bool grey, int bits, struct linear *linear,
                           struct colours *colours, int32_t weights[3][3], bool *is_mixed, struct error *error);

/* Is there a profile that metadata_find_colours cannot read, as one of tables, and nothing that counts more? */
bool metadata_has_tables(const struct metadata *metadata, bool grey);

/* Let METADATA say that the colours are sRGB's. */
void metadata_set_srgb(struct metadata *metadata);

/* Would metadata_strip drop the profile, and the other parts that say the colours? */
bool metadata_strips_colours(const struct metadata *metadata, struct metadata_strip strip, bool grey);

/* Drop what STRIP says. Only what then changes the colours counts as dropped. Fails only if there is not enough
 * memory. */
bool metadata_strip(struct metadata *metadata, struct metadata_strip strip, bool grey, struct error *error);

/* Put METADATA into the encoded file of *SIZE bytes at *BYTES, which a larger allocation replaces. DROPPED becomes the
 * parts that such a file cannot hold, in bits as in struct metadata: see adapt.c. Fails only if there is not enough
 * memory; the file is then unchanged. */
typedef bool metadata_writer(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint64_t *dropped,
                             struct error *error);
metadata_writer metadata_write_png, metadata_write_jpeg, metadata_write_tiff, metadata_write_webp, metadata_write_avif,
    metadata_write_none;

/* DROPPED without the parts that files of phones and programs often have, and that say nothing to a reader. They are
 * worth a note, and no warning. */
uint64_t metadata_without_notes(uint64_t dropped);

/* Write the names and reasons of the DROPPED parts to TEXT, of SIZE bytes: "EXIF (is damaged), text (is too large)". */
void metadata_print_dropped(uint64_t dropped, char *text, size_t size);

/* The name of a part, for messages: "EXIF". */
const char *metadata_part_name(enum metadata_part part);

/* The parts in which A and B differ, as 1 << enum metadata_part. The orientation does not count: it becomes upright in
 * both. */
unsigned metadata_find_differences(struct metadata *a, struct metadata *b);

/* The bytes that METADATA holds. */
size_t metadata_bytes(const struct metadata *metadata);

/* Release all parts. The struct may be all zero. It is empty afterwards: writing it changes nothing. */
void metadata_free(struct metadata *metadata);

#endif
