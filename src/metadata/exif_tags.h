/* SPDX-License-Identifier: MIT
 *
 * The tags of EXIF that are carried: those that are known to hold a few numbers or a text. */
#ifndef GPUCONV_EXIF_TAGS_H
#define GPUCONV_EXIF_TAGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The directories of EXIF. Each is reached by a tag of a directory further up in this list, so no file can make a
 * loop. */
enum exif_directory { DIRECTORY_IMAGE, DIRECTORY_EXIF, DIRECTORY_GPS, DIRECTORY_INTEROP, DIRECTORIES };

/* The types of values (TIFF 6.0, section 2; EXIF 3.0, 4.6.2). */
enum exif_type { TYPE_SHORT = 3, TYPE_LONG = 4, TYPE_RATIONAL = 5, TYPE_IFD = 13, TYPE_UTF8 = 129 };

/* The action for a tag. */
enum exif_fate {
    EXIF_CARRIED,
    EXIF_SILENT, /* left out of every file: pictures, maker's notes, and how and where the file was stored */
    EXIF_UNKNOWN /* left out with a warning: an unknown tag, or a value that is not as the tag's should be */
};

/* The bytes of one value of a type, or 0 for an unknown type. */
size_t exif_type_size(unsigned type);

/* Judge a value of COUNT times TYPE, of which all bytes are at VALUE. *COUNT becomes smaller if only the text at its
 * beginning is carried. The tags that refer to directories are unknown here. */
enum exif_fate exif_judge(enum exif_directory directory, unsigned tag, unsigned type, uint32_t *count,
                          const uint8_t *value);

#endif
