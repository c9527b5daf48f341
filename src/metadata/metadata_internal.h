/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of this room. A file is not trusted: each length is checked against the size of the file. Each
 * part is copied only once, so the time is proportional to the file's size. Functions that return bool fail only if there
 * is not enough memory; metadata_read_end and metadata_insert report that. */
#ifndef GPUCONV_METADATA_INTERNAL_H
#define GPUCONV_METADATA_INTERNAL_H

#include "metadata/metadata.h"

/* The first bytes of EXIF and XMP in a JPEG's segments, and in texts of PNGs. The literals add a NUL. */
#define EXIF_HEAD "Exif\0"
#define XMP_HEAD "http://ns.adobe.com/xap/1.0/"

/* Do SIZE bytes begin with HEAD, its NUL included? */
bool bytes_begin(const uint8_t *bytes, size_t size, const char *head, size_t head_size);

/* The bit of `dropped` in struct metadata. */
uint32_t metadata_bit(enum metadata_part part, enum metadata_reason reason);

/* Note that a part is dropped. Returns true: this is no failure. */
bool metadata_drop(struct metadata *metadata, enum metadata_part part, enum metadata_reason reason);

/* Inflate *SIZE bytes into OUT, up to MOST and to what is left of METADATA's bound for a file. *SIZE becomes the size
 * of the stream itself. If that fails, OUT has no bytes and PART is dropped. Release OUT with blob_free. */
bool metadata_inflate(struct metadata *metadata, enum metadata_part part, const uint8_t *bytes, size_t *size,
                      size_t most, struct blob *out);

/* Append a copy of SIZE bytes to BLOB, which belongs to METADATA, or drop the part if it is too large. */
bool metadata_add(struct metadata *metadata, enum metadata_part part, struct blob *blob, const void *bytes,
                  size_t size);

/* Add SIZE bytes to METADATA, or drop them: a profile, EXIF with or without EXIF_HEAD, an XMP packet, or several of
 * Photoshop's resources. Only the first EXIF and the first packet count. */
bool metadata_add_icc(struct metadata *metadata, const uint8_t *bytes, size_t size);
bool metadata_add_exif(struct metadata *metadata, const uint8_t *bytes, size_t size);
bool metadata_add_xmp(struct metadata *metadata, const uint8_t *bytes, size_t size);
bool metadata_add_resources(struct metadata *metadata, const uint8_t *bytes, size_t size);

/* End reading: make the parts of METADATA agree with each other. If DONE is false, report the error. */
bool metadata_read_end(bool done, struct metadata *metadata, struct error *error);

/* Remove a property from the packet, or set it to one digit, at each place where it occurs. */
void xmp_remove(struct blob *xmp, const char *name);
void xmp_set_digit(struct blob *xmp, const char *name, char digit);

/* Is there a profile for an encoded file, grey or not? A profile for another colour space is DROPPED. */
bool metadata_has_icc_for(const struct metadata *metadata, bool grey, uint32_t *dropped);

/* Insert ADDED into the encoded file at PLACE, and release ADDED. If DONE is false, only release it and report the
 * error. */
bool metadata_insert(bool done, struct blob *added, size_t place, uint8_t **bytes, size_t *size, struct error *error);

/* The place of the text in the SIZE bytes of data of a tEXt, zTXt or iTXt chunk, or 0 if the chunk is damaged.
 * *COMPRESSED says whether the text is compressed. */
size_t png_text_start(const char *type, const uint8_t *data, size_t size, bool *compressed);

#endif
