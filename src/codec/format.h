/* SPDX-License-Identifier: MIT
 *
 * THE TABLE of formats: a row for each. All differences between formats are in their rows. Apart from the codecs, no
 * other code names a format. */
#ifndef GPUCONV_FORMAT_H
#define GPUCONV_FORMAT_H

#include "base/error.h"
#include "container/check.h"
#include "metadata/metadata.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The indices of the rows in the table. Formats that are only read come last. */
enum format_id {
    FORMAT_PNG,
    FORMAT_JPEG,
    FORMAT_PGM,
    FORMAT_PPM,
    FORMAT_PNM,
    FORMAT_PAM,
    FORMAT_WEBP,
    FORMAT_TIFF,
    FORMAT_AVIF,
    FORMAT_HEIC,
    FORMAT_COUNT
};

/* The maximal number of suffixes and magics of a format, with a NULL after them. */
enum { FORMAT_SUFFIXES = 4, FORMAT_MAGICS = 5 };

/* The options that only some formats have. */
enum format_option {
    FORMAT_QUALITY = 1 << 0,
    FORMAT_LOSSLESS = 1 << 1,
    FORMAT_SUBSAMPLING = 1 << 2,
    FORMAT_PROGRESSIVE = 1 << 3,
    FORMAT_COMPRESSION = 1 << 4,
    FORMAT_BACKGROUND = 1 << 5, /* in no row: the formats without alpha */
};

/* A row of the table. A pointer to a row is NULL if the format is unknown or was not given. */
struct format {
    enum format_id id;
    const char *name;                      /* in messages: "PNG" */
    const char *suffixes[FORMAT_SUFFIXES]; /* suffixes of names, without the dot; the usual one first, NULL ends them */
    const char
        *magics[FORMAT_MAGICS];    /* the first bytes of a file; NULL ends them. PNM has none: its files have others' */
    size_t magic_at, magic_size;   /* their offset and size; the check reports damage around them */
    int max_side;                  /* the maximal number of pixels on a side in a file that gpuconv writes */
    int max_bits;                  /* the maximal number of bits of a sample in a file; 9 to 16 are in rows of 16 */
    int work_of_byte;              /* the time that a byte of a file takes, relative to the other formats */
    bool holds_grey, holds_colour; /* without grey, a grey image becomes RGB */
    bool holds_alpha, holds_comments;
    bool has_pages;       /* a file may hold several pictures that can be read */
    bool is_lossy;        /* a file may have a quality */
    bool is_for_browsers; /* they show it */
    bool is_only_read;
    unsigned options; /* bits of enum format_option: those that change how a file is written */
    int unit_rows;    /* rows that are encoded together, at most; 1 if any number is */
    bool (*check)(const uint8_t *bytes, size_t size, const char *name, struct codec_info *info, struct error *error);
    bool (*read_metadata)(const uint8_t *bytes, size_t size, struct metadata *metadata, struct error *error);
    bool (*write_metadata)(const struct metadata *metadata, uint8_t **bytes, size_t *size, uint64_t *dropped,
                           struct error *error);
};

/* The largest width and height that are read or written. So a row has fewer than 2^27 bytes, and offsets in it fit into
 * an int; all samples have fewer than 2^51 bytes, so that their small multiples fit into a size_t. stb_image refuses an
 * image that is wider or higher than 2^24 (STBI_MAX_DIMENSIONS), and stb_image_write adds up differences of at most 128
 * along a row in int. */
enum { FORMAT_SIDE_MAX = (1 << 24) - 1 };

/* All formats, FORMAT_COUNT rows. */
const struct format *formats(size_t *count);

/* The row of ID. */
const struct format *format_of(enum format_id id);

/* The format of a suffix without its dot ("png", "jpg", "jpeg", in any case), or NULL. */
const struct format *format_find_by_suffix(const char *suffix);

/* Write the suffixes of all formats, or of those that are WRITTEN, to TEXT, of SIZE bytes: ".png, .jpg and .pgm", where
 * CONJUNCTION is "and". */
void format_join_suffixes(const char *conjunction, bool written, char *text, size_t size);

/* The format of a path's suffix, or NULL. */
const struct format *format_find_by_path(const char *path);

/* The length of a path without the suffix of an image, if it has one. */
size_t format_stem_length(const char *path);

/* Write to TEXT, of SIZE bytes, what a file is whose name ends in SUFFIX, without its dot and in small letters, and a
 * command that converts it: " is a GIF image; convert it first: ...". Returns false if no such kind is known. */
bool format_describe_foreign(const char *suffix, char *text, size_t size);

/* The article of a format's name: "an" AVIF, "a" PNG. */
static inline const char *format_article(const struct format *format)
{
    return format->name[0] == 'A' ? "an" : "a";
}

/* The format whose magic is at the beginning of the SIZE bytes. Returns NULL, with an error that says what the file
 * probably is. NAME is the file's name. */
const struct format *format_find_by_magic(const uint8_t *bytes, size_t size, const char *name, struct error *error);

#endif
