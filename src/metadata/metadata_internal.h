/* SPDX-License-Identifier: MIT
 *
 * What the files of this room share. Nothing in a file is trusted: each length is compared with what is there. What is
 * read is copied once, so that the time grows with the bytes only. */
#ifndef GPUCONV_METADATA_INTERNAL_H
#define GPUCONV_METADATA_INTERNAL_H

#include "metadata/metadata.h"

/* What EXIF and XMP begin with in a JPEG's segments, and in texts of PNGs, with the literal's own NUL. */
#define EXIF_HEAD "Exif\0"
#define XMP_HEAD "http://ns.adobe.com/xap/1.0/"

/* Do SIZE bytes begin with HEAD, its NUL included? */
bool bytes_begin(const uint8_t *bytes, size_t size, const char *head, size_t head_size);

/* Report that there is not enough memory. Returns false. */
bool metadata_report_memory(struct error *error);

/* The bit of struct metadata's dropped. */
uint32_t metadata_bit(enum metadata_part part, enum metadata_reason reason);

/* Note that a part is dropped. Returns true: that is no failure. */
bool metadata_drop(struct metadata *metadata, enum metadata_part part, enum metadata_reason reason);

/* Append a copy of SIZE bytes to BLOB, one of METADATA's, or drop them where they are too many. False where there is not
 * enough memory; so with the next four. */
bool metadata_add(struct metadata *metadata, enum metadata_part part, struct blob *blob, const void *bytes, size_t size,
                  struct error *error);

/* Take SIZE bytes into METADATA, or drop them: a profile, EXIF with or without EXIF_HEAD, an XMP packet, and a row of
 * Photoshop's resources. The first EXIF and the first packet count. */
bool metadata_add_icc(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error);
bool metadata_add_exif(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error);
bool metadata_add_xmp(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error);
bool metadata_add_resources(struct metadata *metadata, const uint8_t *bytes, size_t size, struct error *error);

/* Let METADATA agree in itself, once all of a file is read. */
void metadata_settle(struct metadata *metadata);

/* Remove a property from the packet, or set it to one digit, wherever it stands. */
void xmp_remove(struct blob *xmp, const char *name);
void xmp_set_digit(struct blob *xmp, const char *name, char digit);

/* Is there a profile that fits an encoded file, grey or not? One that does not is DROPPED. */
bool metadata_has_icc_for(const struct metadata *metadata, bool grey, uint32_t *dropped);

/* Insert ADDED, which is released, into the encoded file at PLACE. With DONE false, only release it and report. */
bool metadata_insert(bool done, struct blob *added, size_t place, uint8_t **bytes, size_t *size, struct error *error);

/* Where the text begins in the SIZE bytes of data of a tEXt, zTXt or iTXt chunk, and is it compressed? 0 where the chunk
 * is damaged. */
size_t png_text_start(const char *type, const uint8_t *data, size_t size, bool *compressed);

#endif
