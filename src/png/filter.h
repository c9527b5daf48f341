/* SPDX-License-Identifier: MIT
 *
 * The row filters of PNG, both ways. A filter replaces a row by its difference from a prediction, which compresses
 * better. These functions know only rows of bytes; codec/png_read.c and codec/png_write.c know the file around them. */
#ifndef GPUCONV_PNG_FILTER_H
#define GPUCONV_PNG_FILTER_H

#include <stddef.h>
#include <stdint.h>

/* The bytes of the largest pixel: four samples of 16 bits. A row to filter has so many zeros before its first byte. */
enum { PNG_PIXEL_MAX = 8 };

/* The numbers of the filters. */
enum { PNG_NONE, PNG_SUB, PNG_UP, PNG_AVERAGE, PNG_PAETH, PNG_FILTERS };

/* For the choice of a filter, larger differences count as much: the code of a rare byte is hardly longer than others.
 * Limits of 7, 15 and 20 make most files smaller yet, but some larger than no limit does. */
enum { PNG_DIFFERENCE_MAX = 31 };

enum { PNG_ROWS = 8 }; /* that are undone at once, which is faster than one by one */

struct deflate_workspace;

/* Filter ROW with the filter whose sum of magnitudes of differences is smallest; each counts at most
 * PNG_DIFFERENCE_MAX. The first of several such filters is taken. ABOVE is the
 * row above, or zeros for the first row. Both rows have SIZE bytes. Before each are PNG_PIXEL_MAX zeros. Write the
 * filter's number and the filtered row to OUT, 1 + SIZE bytes. A pixel has PIXEL bytes. WORK says for which
 * processor. */
void png_filter(const struct deflate_workspace *work, const uint8_t *row, const uint8_t *above, size_t size,
                size_t pixel, uint8_t *out);

/* Some columns of rows: the bytes from FIRST on, before LAST, of rows with SIZE bytes. A pixel has PIXEL bytes, and
 * FIRST and LAST are multiples of that. */
struct png_columns {
    size_t size, pixel, first, last;
};

/* Do what png_unfilter does for some columns only. The columns to the left must already be undone, in the rows and in
 * ABOVE. RAW, ABOVE and OUT are whole rows. WASTE has a byte for each of these columns. */
void png_unfilter_columns(const uint8_t *raw, size_t rows, const uint8_t *above, const struct png_columns *columns,
                          uint8_t *out, uint8_t *waste);

/* Undo the filters of ROWS rows at RAW, each SIZE bytes after the number of its filter, which is below PNG_FILTERS.
 * Write them to OUT, without the numbers. A pixel has 1, 2, 3, 4, 6 or 8 bytes. ABOVE is the row above the first, or
 * zeros. WASTE has SIZE bytes. */
void png_unfilter(const uint8_t *raw, size_t rows, const uint8_t *above, size_t size, size_t pixel, uint8_t *out,
                  uint8_t *waste);

#endif
