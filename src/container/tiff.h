/* SPDX-License-Identifier: MIT
 *
 * The container of TIFF: directories of entries, one for each picture (TIFF 6.0, section 2). BigTIFF is the same with
 * offsets and counts of 8 bytes. This file reads entries for the check, the codec and the metadata. It knows nothing of
 * samples. */
#ifndef GPUCONV_TIFF_H
#define GPUCONV_TIFF_H

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tiff_tag {
    TIFF_TAG_KIND = 254, /* NewSubfileType */
    TIFF_TAG_WIDTH = 256,
    TIFF_TAG_HEIGHT = 257,
    TIFF_TAG_BITS = 258,
    TIFF_TAG_COMPRESSION = 259,
    TIFF_TAG_PHOTOMETRIC = 262,
    TIFF_TAG_FILL_ORDER = 266,
    TIFF_TAG_STRIPS = 273, /* their offsets */
    TIFF_TAG_ORIENTATION = 274,
    TIFF_TAG_SAMPLES = 277,
    TIFF_TAG_STRIP_ROWS = 278,
    TIFF_TAG_STRIP_SIZES = 279,
    TIFF_TAG_X_RESOLUTION = 282,
    TIFF_TAG_Y_RESOLUTION = 283,
    TIFF_TAG_PLANAR = 284,
    TIFF_TAG_FAX_3 = 292, /* options of the codes */
    TIFF_TAG_FAX_4 = 293,
    TIFF_TAG_RESOLUTION_UNIT = 296,
    TIFF_TAG_PREDICTOR = 317,
    TIFF_TAG_PALETTE = 320,
    TIFF_TAG_TILE_WIDTH = 322,
    TIFF_TAG_TILE_HEIGHT = 323,
    TIFF_TAG_TILES = 324,
    TIFF_TAG_TILE_SIZES = 325,
    TIFF_TAG_DIRECTORIES = 330, /* below this one */
    TIFF_TAG_EXTRA = 338,
    TIFF_TAG_SAMPLE_FORMAT = 339,
    TIFF_TAG_JPEG_TABLES = 347,
    TIFF_TAG_PREVIEW = 513, /* JPEGInterchangeFormat: its offset */
    TIFF_TAG_PREVIEW_SIZE = 514,
    TIFF_TAG_CHROMA_SUBSAMPLING = 530,
    TIFF_TAG_XMP = 700,
    TIFF_TAG_IPTC = 33723,
    TIFF_TAG_PHOTOSHOP = 34377,
    TIFF_TAG_EXIF = 34665, /* the offset of a directory, as in the next two */
    TIFF_TAG_GPS = 34853,
    TIFF_TAG_INTEROP = 40965,
    TIFF_TAG_ICC = 34675,
    TIFF_TAG_LAYERS = 37724, /* Photoshop's ImageSourceData */
    TIFF_TAG_DNG = 50706,    /* DNGVersion */
};

/* The types of values (TIFF 6.0, section 2; EXIF 3.0, 4.6.2; the last two but one are BigTIFF's). */
enum tiff_type {
    TIFF_TYPE_BYTE = 1,
    TIFF_TYPE_ASCII = 2,
    TIFF_TYPE_SHORT = 3,
    TIFF_TYPE_LONG = 4,
    TIFF_TYPE_RATIONAL = 5,
    TIFF_TYPE_SIGNED_BYTE = 6,
    TIFF_TYPE_UNDEFINED = 7,
    TIFF_TYPE_SIGNED_SHORT = 8,
    TIFF_TYPE_SIGNED_LONG = 9,
    TIFF_TYPE_SIGNED_RATIONAL = 10,
    TIFF_TYPE_IFD = 13,
    TIFF_TYPE_LONG8 = 16,
    TIFF_TYPE_IFD8 = 18,
    TIFF_TYPE_UTF8 = 129,
};

enum { TIFF_WHITE_IS_0, TIFF_BLACK_IS_0, TIFF_RGB, TIFF_PALETTE, TIFF_CMYK = 5, TIFF_YCBCR = 6 };

enum {
    TIFF_UNCOMPRESSED = 1,
    TIFF_FAX_RUNS = 2,
    TIFF_FAX_3,
    TIFF_FAX_4,
    TIFF_LZW = 5,
    TIFF_JPEG = 7,
    TIFF_DEFLATE = 8,
    TIFF_PACKBITS = 32773,
    TIFF_DEFLATE_OLD = 32946,
    TIFF_LZMA = 34925,
    TIFF_ZSTD = 50000,
};

enum { TIFF_SMALLER = 1 }; /* a bit of TIFF_TAG_KIND: another picture of a smaller size */

enum { TIFF_ASSOCIATED = 1, TIFF_UNASSOCIATED }; /* alpha that multiplies the colours, and alpha that does not */

/* A directory in a file of SIZE bytes. */
struct tiff_directory {
    const uint8_t *bytes;
    size_t size;
    bool big, wide;   /* big-endian; BigTIFF */
    size_t at, count; /* the offset of the first entry, and the number of entries */
    bool is_cut;      /* the file ends before the last of its entries, which are not counted */
    uint64_t next;    /* the offset of the next directory, or 0 */
};

/* An entry whose value is in the file. */
struct tiff_entry {
    size_t index; /* the entry's index in the directory */
    unsigned tag, type;
    size_t count;
    const uint8_t *value;
    size_t size; /* bytes of the value; 0 if the type is unknown, or if it is longer than the file */
};

/* The picture of a file. */
struct tiff_header {
    int samples, bits; /* samples of a pixel, and bits of a sample, in the file */
    unsigned photometric, compression;
    bool is_tiled, is_separate; /* each channel has strips or tiles of its own */
    bool is_associated;
    int cell_width, cell_height; /* pixels on the sides of a cell: a tile or a strip */
    size_t cells;                /* the number of all cells */
    size_t cell_max;             /* bytes of the largest cell in the file */
    size_t numbers;              /* the count of numbers that a decoder needs, besides the lists of cells */
    bool has_wrong_sizes;        /* the list of the cells' bytes is missing, or not right */
    size_t coefficients;         /* the maximal number of coefficients of a JPEG of several scans in a cell */
};

/* Bytes of a row of a strip or tile, decoded. */
static inline size_t tiff_cell_row(const struct tiff_header *header)
{
    const size_t samples = header->is_separate ? 1 : (size_t)header->samples;
    return ((size_t)header->cell_width * samples * (size_t)header->bits + 7) / 8;
}

/* Open the first directory of a file with the first bytes of a TIFF, or the one at AT. Returns false if it is not whole
 * in the file. */
bool tiff_open_first(const uint8_t *bytes, size_t size, struct tiff_directory *directory);
bool tiff_open_at(const struct tiff_directory *first, uint64_t at, struct tiff_directory *directory);

/* Find the directory of picture PAGE, from 1, among FIRST and those that follow it: DIRECTORY, which may be cut. PAGE 0
 * is the main picture: the first one or, if that is a smaller size of another one, the largest that is none. Returns
 * its page, or 0 if there is none. *PAGES is the number of pictures; 0 if directories overlap, as in a circle. */
int tiff_find_page(const struct tiff_directory *first, int page, struct tiff_directory *directory, int *pages);

/* A TIFF of pages. Release `file` with blob_free. */
struct tiff_pages {
    struct blob file;
    size_t link; /* where it has the offset of the next page's directory */
};

/* Append the page of a file of SIZE bytes, which this program wrote: its offsets are little-endian, and no two of its
 * directories or lists of strips are one. They change in BYTES, too. */
bool tiff_add_page(struct tiff_pages *pages, uint8_t *bytes, size_t size, struct error *error);

/* Open a directory of a block that may be damaged, whose first bytes are not checked. A directory that is cut has as
 * many entries as are there, or none. */
void tiff_open_damaged(const uint8_t *bytes, size_t size, struct tiff_directory *directory);
void tiff_open_damaged_at(const struct tiff_directory *first, uint64_t at, struct tiff_directory *directory);

/* The offsets of a directory and of its end. Its values may be anywhere. */
size_t tiff_start(const struct tiff_directory *directory);
size_t tiff_end(const struct tiff_directory *directory);

/* Read entry INDEX. Returns false if its value is not in the file. */
bool tiff_read_entry(const struct tiff_directory *directory, size_t index, struct tiff_entry *entry);

/* Find TAG. Returns false if there is none, or if its value is not in the file. */
bool tiff_find(const struct tiff_directory *directory, unsigned tag, struct tiff_entry *entry);

/* Count the numbers in the values of the entries that a decoder needs, but for those in lists of strips or tiles. */
size_t tiff_count_needed(const struct tiff_directory *directory);

/* The lists of strips or tiles. The second one has no number if it is missing. */
struct tiff_cells {
    struct tiff_entry offsets, sizes;
};

/* Find the lists. Some writers list tiles as strips. Returns false if there are no offsets. */
bool tiff_find_cells(const struct tiff_directory *directory, struct tiff_cells *cells);

/* The bytes of cell INDEX: as listed or, if it is not listed or reaches beyond the end of the file, as follows from its
 * pixels, or up to the next cell or the end of the file. */
uint64_t tiff_cell_size(const struct tiff_directory *directory, const struct tiff_header *header,
                        const struct tiff_cells *cells, size_t index);

/* Write a directory of the needed entries to BYTES: the first of each tag, and no next directory. If SIZES_AT is not 0,
 * the list of bytes of the strips or tiles has CELLS numbers of tiff_offset_bytes each there; if CELLS is 1, it is the
 * only number itself. Returns its size. */
enum { TIFF_NEEDED_BYTES = 512 };
size_t tiff_put_needed(const struct tiff_directory *directory, size_t sizes_at, size_t cells,
                       uint8_t bytes[TIFF_NEEDED_BYTES]);

/* Bytes of an offset in the file: 4, or 8 in a BigTIFF. */
size_t tiff_offset_bytes(const struct tiff_directory *directory);

/* Number INDEX of an entry whose type is a whole number without a sign; else 0. */
uint64_t tiff_number(const struct tiff_directory *directory, const struct tiff_entry *entry, size_t index);

/* The first number of TAG, or OTHER if there is none. */
uint64_t tiff_find_number(const struct tiff_directory *directory, unsigned tag, uint64_t other);

#endif
