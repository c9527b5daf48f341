/* SPDX-License-Identifier: MIT
 *
 * The container of HEIC and AVIF: boxes (ISO/IEC 14496-12) with items, their properties and references (ISO/IEC
 * 23008-12). This file walks over them for the check and the metadata, and writes them. It knows nothing of samples. */
#ifndef GPUCONV_HEIF_H
#define GPUCONV_HEIF_H

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The maximal number of pixels on a side: libheif reads no more. */
enum { HEIF_SIDE_MAX = 1 << 15 };

/* What a file's check finds besides the shape of its primary picture. */
struct heif_header {
    bool is_av1;       /* it is coded as AV1, not as HEVC */
    int bits;          /* bits of its samples, 8 to 12 */
    int width, height; /* its sides before it is turned or cropped */
    uint32_t item;     /* its number among the file's items */
};

/* A box, or what is left of its data for a walk over the boxes in them. */
struct heif_box {
    const uint8_t *type; /* four letters */
    const uint8_t *data;
    size_t size; /* bytes of the data */
};

/* Step to the next box in REST, which then begins after it. Returns false at the end; REST->size is more than 0 if the
 * box there is longer than what is left. */
bool heif_next(struct heif_box *rest, struct heif_box *box);

/* Is this of TYPE, four letters? */
static inline bool heif_is(const uint8_t *type, const char *wanted)
{
    return memcmp(type, wanted, 4) == 0;
}

/* Read the big-endian number in the next COUNT bytes of REST, at most 8, and step over it. If there are fewer, it is 0
 * and REST becomes empty. */
uint64_t heif_take(struct heif_box *rest, size_t count);

/* The boxes that describe the items of a file. A box that the file lacks is empty. */
struct heif_file {
    const uint8_t *bytes;
    size_t size;
    uint32_t primary;                              /* the item that is the file's picture; 0 if there is none */
    struct heif_box meta;                          /* they are in this one */
    struct heif_box items;                         /* infe boxes */
    struct heif_box references;                    /* a box for each item that refers to others, and for each kind */
    struct heif_box properties;                    /* a box for each property */
    struct heif_box associations, locations, data; /* ipma, iloc and idat */
    size_t id_size;                                /* bytes of an item's number in the references */
};

/* Find the boxes of the SIZE bytes of a file. */
struct heif_file heif_open(const uint8_t *bytes, size_t size);

/* Let the primary item of FILE be picture PAGE, from 1 in the order of the items, unless that is 0 or there is none.
 * Pictures that others are of, and those that are hidden, do not count. *PAGES is their number. Returns the page of the
 * primary item, or 0 if it is none of them. */
int heif_choose_page(struct heif_file *file, int page, int *pages);

struct heif_item {
    uint32_t id;
    const uint8_t *type; /* four letters: hvc1, av01, grid, Exif, mime... */
    bool is_hidden;
    struct heif_box words; /* its name and, of a mime item, the kind of its contents, each with a NUL */
};

/* Step over a file's items: REST is file->items at first. */
bool heif_next_item(struct heif_box *rest, struct heif_item *item);

struct heif_reference {
    const uint8_t *type; /* four letters: auxl, cdsc, dimg, thmb... */
    uint32_t from;
    struct heif_box to; /* the numbers of items that it refers to, for heif_take of file->id_size bytes */
};

/* Step over FILE's references: REST is file->references at first. */
bool heif_next_reference(const struct heif_file *file, struct heif_box *rest, struct heif_reference *reference);

/* Step over the properties of an item: REST is heif_properties_of it at first. */
struct heif_box heif_properties_of(const struct heif_file *file, uint32_t id);
bool heif_next_property(const struct heif_file *file, struct heif_box *rest, struct heif_box *property);

/* Find the bytes of an item, if they are in one piece. */
bool heif_locate(const struct heif_file *file, uint32_t id, struct heif_box *data);

/* ---- Writing ---- */

/* An item to write. Its number is its index + 1, and the first item is the picture. */
struct heif_new_item {
    const char *type;       /* four letters, and what follows the item's empty name */
    size_t type_size;       /* bytes of both */
    const char *reference;  /* the kind of its reference to the first item; NULL if it has none */
    struct blob properties; /* boxes */
    struct heif_box data;
};

/* Append a box with SIZE bytes of data. Returns false if there is not enough memory. */
bool heif_append(struct blob *out, const char *type, const void *data, size_t size);

/* Append a file with COUNT items, after the ftyp box of FILE. Returns false if there is not enough memory. */
bool heif_write(const struct heif_file *file, const struct heif_new_item *items, size_t count, struct blob *out);

#endif
