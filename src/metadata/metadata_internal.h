/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of this room. A file is not trusted: each length is checked against the size of the file. Each
 * part is copied only once, so the time is proportional to the file's size. Functions that return bool fail only if
 * there is not enough memory; metadata_read_end and metadata_insert report that. */
#ifndef GPUCONV_METADATA_INTERNAL_H
#define GPUCONV_METADATA_INTERNAL_H

#include "container/tiff.h"
#include "metadata/metadata.h"

/* The first bytes of EXIF and XMP in a JPEG's segments, and in texts of PNGs. The literals add a NUL. */
#define EXIF_HEAD "Exif\0"
#define XMP_HEAD "http://ns.adobe.com/xap/1.0/"

/* Do SIZE bytes begin as EXIF in a segment? Some writers put another byte than NUL at the end of its head. */
bool metadata_is_exif(const uint8_t *bytes, size_t size);

/* Do SIZE bytes begin with HEAD, its NUL included? */
bool bytes_begin(const uint8_t *bytes, size_t size, const char *head, size_t head_size);

/* The bit of `dropped` in struct metadata. */
uint64_t metadata_bit(enum metadata_part part, enum metadata_reason reason);

/* Note that a part is dropped. Returns true, because this is no failure. */
bool metadata_drop(struct metadata *metadata, enum metadata_part part, enum metadata_reason reason);

/* Inflate *SIZE bytes into OUT, up to MAX and to the rest of METADATA's bound for a file. *SIZE becomes the size
 * of the stream itself. If that fails, OUT has no bytes and PART is dropped. Release OUT with blob_free. */
bool metadata_inflate(struct metadata *metadata, enum metadata_part part, const uint8_t *bytes, size_t *size,
                      size_t max, struct blob *out);

/* Append a copy of SIZE bytes to the blob of a part, or drop the part if it is too large. */
bool metadata_add(struct metadata *metadata, enum metadata_part part, const void *bytes, size_t size);

/* Add SIZE bytes to METADATA, or drop them: a profile, EXIF with or without EXIF_HEAD or in a whole TIFF file, an XMP
 * packet, or several of Photoshop's resources. Only the first EXIF and the first packet
 * count, but for the orientation, which a later EXIF may give. */
bool metadata_add_icc(struct metadata *metadata, const uint8_t *bytes, size_t size);
bool metadata_add_exif(struct metadata *metadata, const uint8_t *bytes, size_t size);
bool metadata_add_exif_of_file(struct metadata *metadata, const uint8_t *bytes, size_t size);
bool metadata_add_xmp(struct metadata *metadata, const uint8_t *bytes, size_t size);
bool metadata_add_resources(struct metadata *metadata, const uint8_t *bytes, size_t size);

/* Drop what gives a position in the picture from EXIF and XMP. */
bool metadata_rebuild_turned(struct metadata *metadata);

/* End reading: make the parts of METADATA agree with each other. If DONE is false, report the error. */
bool metadata_read_end(bool done, struct metadata *metadata, struct error *error);

/* The offsets in the header of a profile of its colour space, and of the one that it converts to. */
enum { ICC_COLOUR = 16, ICC_CONNECTION = 20 };

/* The value of a tag of a profile that metadata_add_icc has added, and its size. NULL if there is none. */
const uint8_t *icc_find(const struct blob *icc, const char *tag, size_t *size);

/* Is there a profile for an encoded file, grey or not? A profile for another colour space is DROPPED. */
bool metadata_has_icc_for(const struct metadata *metadata, bool grey, uint64_t *dropped);

/* Insert ADDED into the encoded file at OFFSET, and release ADDED. If DONE is false, only release it and report the
 * error. */
bool metadata_insert(bool done, struct blob *added, size_t offset, uint8_t **bytes, size_t *size, struct error *error);

/* The offset of the text in the SIZE bytes of data of a tEXt, zTXt or iTXt chunk, or 0 if the chunk is damaged.
 * *COMPRESSED says whether the text is compressed. */
size_t png_text_start(const char *type, const uint8_t *data, size_t size, bool *compressed);

/* ---- Texts ---- */

/* Are the SIZE bytes text? Then they have no control characters, except ends of lines, tabs, NULs and the escapes of
 * ISO 2022. */
bool metadata_is_text(const uint8_t *bytes, size_t size);

/* Is a text of SIZE bytes short enough, also together with those that are kept? */
bool metadata_text_fits(const struct metadata *metadata, size_t size);

/* Count a text of SIZE bytes if it fits. Otherwise note that a part of PART is dropped, and return false. */
bool metadata_take_text(struct metadata *metadata, enum metadata_part part, size_t size);

/* Add a CHUNK that holds a text, as a chunk of a PNG, or drop it. TEXT is what it holds, inflated. */
bool metadata_add_text(struct metadata *metadata, const uint8_t *text, size_t size, const uint8_t *chunk,
                       size_t chunk_size);

/* ---- What --strip drops ---- */

/* What a tag, a property or a text says. */
enum metadata_class { METADATA_PUBLIC, METADATA_COPYRIGHT, METADATA_PRIVATE, METADATA_GPS };

/* Is a part of CLASS left out, as the strip of METADATA says? */
bool metadata_strips(const struct metadata *metadata, enum metadata_class class);

/* Drop the profile, and a PNG's cICP, cHRM, gAMA and sRGB. */
void metadata_drop_colours(struct metadata *metadata);

/* Set MATRIX to what makes light of sRGB of the light of the picture's colours, row by row: the primaries are those of
 * SOURCE. Each row sums to 1. It is the identity where they are sRGB's, but for their rounding. Returns false if they
 * cannot be read. */
bool metadata_find_matrix(const struct metadata *metadata, enum curve_source source, double matrix[9]);

/* ---- What a format has no place for ---- */

/* The metadata of a file of a format that is no PNG, which has a place for all. */
enum metadata_of { METADATA_OF_JPEG, METADATA_OF_TIFF, METADATA_OF_WEBP, METADATA_OF_AVIF, METADATA_OF_NONE };

/* Metadata as a format can hold them. The blobs besides METADATA are those of its own. */
struct adapted {
    struct metadata metadata;
    struct blob icc, xmp, exif;
};

/* Let ADAPTED be METADATA for a format, with a picture that is GREY or not. What the format cannot hold is DROPPED.
 * METADATA must outlive it. Release it with metadata_adapted_free, also after a failure. */
bool metadata_adapt(const struct metadata *metadata, enum metadata_of of, bool grey, struct adapted *adapted,
                    uint64_t *dropped);
void metadata_adapted_free(struct adapted *adapted);

/* Has EXIF, a block from exif_rebuild or an empty one, only tags that every TIFF has, and that other parts of the
 * metadata hold? */
bool exif_says_nothing(const struct blob *exif);

/* One side of a resolution in pixels per metre, or 0 if that is unknown or does not fit. */
uint32_t resolution_per_metre(const struct resolution *resolution, bool vertical);

/* Does EXIF, a block from exif_rebuild or an empty one, say this resolution? */
bool metadata_exif_says(const struct blob *exif, const struct resolution *resolution);

/* Make a profile of the curve and the primaries that METADATA name without one. *IS_MADE becomes false if a profile
 * cannot hold them. */
bool metadata_make_icc(const struct metadata *metadata, bool grey, struct blob *icc, bool *is_made);

/* Set SOURCE and CURVES to what names the curve of the samples, or CURVE_ASSUMED. *COUNT is their number, or -1 if they
 * cannot be read. */
void metadata_find_curve(const struct metadata *metadata, bool grey, enum curve_source *source, struct curve *curves,
                         int *count);

/* Set XYZ to the matrix that makes XYZ, with D50 as white, of the light of the colours of SOURCE, row by row. Returns
 * false if they cannot be read. */
bool metadata_find_xyz(const struct metadata *metadata, enum curve_source source, double xyz[9]);

/* ---- XMP: a packet of properties that describe a picture ---- */

/* Rebuild XMP from the known properties of the packet of SIZE bytes. The result is empty if there are none, or if the
 * packet is not well-formed. TURNED drops those that give a position in the picture. METADATA count the texts and note
 * what is dropped. Release XMP with blob_free. Returns false if there is not enough memory. */
bool xmp_rebuild(struct metadata *metadata, const uint8_t *bytes, size_t size, bool turned, struct blob *xmp);

/* ---- EXIF: a block that says how and when a picture was taken ---- */

/* Rebuild EXIF from the known tags of the block of SIZE bytes, at most 16 MiB, as xmp_rebuild does. METADATA may then
 * have more texts than METADATA_TEXTS_MAX. */
bool exif_rebuild(struct metadata *metadata, const uint8_t *bytes, size_t size, bool turned, struct blob *exif);

/* Append a directory of a little-endian TIFF file to OUT, which will be at byte BASE of the file: OTHER_COUNT entries
 * of 12 bytes, and those of EXIF, a block from exif_rebuild or an empty one, whose tags are not among them. OUT has
 * some bytes already. Returns false if there is not enough memory. */
bool exif_append_directory(const struct blob *exif, size_t base, const uint8_t *others, size_t other_count,
                           struct blob *out);

/* The tag Orientation, 1 to 8, of a block from exif_rebuild or an empty one. 1 if it has no valid value, and 0 if there
 * is no such tag. */
int exif_orientation(const struct blob *exif);

/* The colours that a block from exif_rebuild, or an empty one, declares. An index of interoperability declares Adobe
 * RGB (1998). */
enum exif_colours { EXIF_COLOURS_NONE, EXIF_COLOURS_SRGB, EXIF_COLOURS_ADOBE, EXIF_COLOURS_OTHER };
enum exif_colours exif_colours(const struct blob *exif);

/* Change a block from exif_rebuild: set the orientation to upright, the colours to sRGB, or the sides in pixels; swap
 * the horizontal and vertical resolutions; or multiply the resolutions of the focal plane, in pixels per length on the
 * sensor. No tags are added. */
void exif_set_upright(struct blob *exif);
void exif_set_srgb(struct blob *exif);
void exif_set_sides(struct blob *exif, int width, int height);
void exif_swap_resolutions(struct blob *exif);
void exif_scale_focal_plane(struct blob *exif, double horizontal, double vertical);

/* ---- The tags of EXIF that are carried: those that are known to hold a few numbers or a text ---- */

/* The directories of EXIF. Each is reached by a tag of a directory further up in this list, so no file can make a
 * loop. */
enum exif_directory { DIRECTORY_IMAGE, DIRECTORY_EXIF, DIRECTORY_GPS, DIRECTORY_INTEROP, DIRECTORIES };

/* The action for a tag. */
enum exif_action {
    EXIF_CARRIED,
    EXIF_TEXT,    /* carried; it is a text */
    EXIF_SILENT,  /* left out of every file: pictures, and how and where the file was stored */
    EXIF_MAKER,   /* left out of every file, and noted: maker's notes */
    EXIF_UNKNOWN, /* left out with a warning: an unknown tag, or a value that is not as the tag's should be */
    EXIF_LONG     /* left out with a warning: a text that is too long */
};

/* Judge an entry. It becomes shorter if only the text at the beginning of its value is carried. The tags that refer to
 * directories are unknown here. */
enum exif_action exif_judge(const struct metadata *metadata, enum exif_directory directory, struct tiff_entry *entry);

#endif
