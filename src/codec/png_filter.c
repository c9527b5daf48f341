/* SPDX-License-Identifier: MIT
 *
 * Plain loops that the compiler vectorises with -O3. Two of them are compiled for several instruction sets if the
 * loader can choose one (base/clones.h). */
#include "codec/png_filter.h"

#include "base/clones.h"

#include <stdlib.h>
#include <string.h>

enum { NONE, SUB, UP, AVERAGE, PAETH };

/* The sum of a row's absolute differences, at most 128 each, cannot wrap below 2^25 bytes. FORMAT_SIDE_MOST keeps rows
 * below 2^24 pixels. A longer row may wrap. Then the chosen filter is worse, but the file is still right. */

/* |A - B| in 16 bits, which are enough here. A vector holds twice as many of these as of int. */
static inline int16_t distance(int16_t a, int16_t b)
{
    return (int16_t)(a < b ? b - a : a - b);
}

/* That of left, above and corner which is nearest to left + above - corner; the first one if several are. */
static inline uint8_t paeth(uint8_t left, uint8_t above, uint8_t corner)
{
    const int16_t to_left = distance(above, corner), to_above = distance(left, corner);
    const int16_t to_corner = distance((int16_t)(left + above), (int16_t)(2 * corner));
    const uint8_t other = to_above <= to_corner ? above : corner;
    return to_left <= to_above && to_left <= to_corner ? left : other;
}

static inline unsigned magnitude(uint8_t difference)
{
    const int8_t value = (int8_t)difference;
    return (unsigned)(value < 0 ? -value : value);
}

CLONES
static void try_all(const uint8_t *restrict row, const uint8_t *restrict above, size_t size, size_t pixel,
                    uint8_t *restrict sub, uint8_t *restrict up, uint8_t *restrict average, uint8_t *restrict best,
                    unsigned *restrict sums)
{
    const uint8_t *left = row - pixel, *corner = above - pixel;
    unsigned sum[PNG_FILTERS] = {0};
    for (size_t i = 0; i < size; i++) {
        const uint8_t x = row[i], a = left[i], b = above[i], c = corner[i];
        sub[i] = (uint8_t)(x - a);
        up[i] = (uint8_t)(x - b);
        average[i] = (uint8_t)(x - ((a + b) >> 1));
        best[i] = (uint8_t)(x - paeth(a, b, c));
        sum[NONE] += magnitude(x);
        sum[SUB] += magnitude(sub[i]);
        sum[UP] += magnitude(up[i]);
        sum[AVERAGE] += magnitude(average[i]);
        sum[PAETH] += magnitude(best[i]);
    }
    memcpy(sums, sum, sizeof sum);
}

void png_filter(const uint8_t *row, const uint8_t *above, size_t size, size_t pixel, uint8_t *scratch, uint8_t *out)
{
    unsigned sums[PNG_FILTERS];
    int best = NONE;
    try_all(row, above, size, pixel, scratch, scratch + size, scratch + 2 * size, scratch + 3 * size, sums);
    for (int i = SUB; i < PNG_FILTERS; i++)
        if (sums[i] < sums[best])
            best = i;
    out[0] = (uint8_t)best;
    memcpy(out + 1, best == NONE ? row : scratch + (size_t)(best - SUB) * size, size);
}

/* ---- Undoing: each byte depends on the byte one pixel before, which stays in a register ---- */

static inline void undo_sub(uint8_t *row, size_t size, size_t pixel)
{
    for (size_t i = pixel; i < size; i++)
        row[i] = (uint8_t)(row[i] + row[i - pixel]);
}

static inline void undo_average(uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
    uint8_t left[PNG_PIXEL_MAX] = {0};
    for (size_t i = 0; i + pixel <= size; i += pixel)
        for (size_t c = 0; c < pixel; c++) {
            left[c] = (uint8_t)(row[i + c] + ((left[c] + (above != NULL ? above[i + c] : 0)) >> 1));
            row[i + c] = left[c];
        }
}

/* The bytes of a pixel in lanes of 16 bits. Compilers for x86 and ARM use plain vector instructions for these. */
typedef int16_t lanes __attribute__((vector_size(2 * PNG_PIXEL_MAX)));
typedef uint8_t bytes __attribute__((vector_size(PNG_PIXEL_MAX)));

/* Load PIXEL bytes through an integer. Bytes that are put together in memory would make the load wait for the stores.
 * The first byte is the lowest on every machine that has lanes. */
static inline lanes lanes_load(const uint8_t *from, size_t pixel)
{
    uint64_t value = 0;
    bytes narrow;
    for (size_t i = 0; i < pixel; i++)
        value |= (uint64_t)from[i] << 8 * i;
    memcpy(&narrow, &value, sizeof narrow);
    return __builtin_convertvector(narrow, lanes);
}

static inline void lanes_store(uint8_t *to, lanes wide, size_t pixel)
{
    const bytes narrow = __builtin_convertvector(wide, bytes);
    uint64_t value;
    memcpy(&value, &narrow, sizeof value);
    for (size_t i = 0; i < pixel; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static inline lanes lanes_choose(lanes mask, lanes yes, lanes no)
{
    return (mask & yes) | (~mask & no);
}

static inline lanes lanes_magnitude(lanes value)
{
    const lanes negated = -value;
    return lanes_choose(value > negated, value, negated);
}

static inline void undo_paeth(uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
    lanes left = {0}, corner = {0};
    for (size_t i = 0; i + pixel <= size; i += pixel) {
        const lanes up = lanes_load(above + i, pixel);
        const lanes to_left = lanes_magnitude(up - corner), to_above = lanes_magnitude(left - corner);
        const lanes to_corner = lanes_magnitude(left + (up - corner - corner));
        const lanes other = lanes_choose(to_above <= to_corner, up, corner);
        left = lanes_choose((to_left <= to_above) & (to_left <= to_corner), left, other);
        left = (left + lanes_load(row + i, pixel)) & 255;
        corner = up;
        lanes_store(row + i, left, pixel);
    }
}

CLONES
static void undo_up(uint8_t *restrict row, const uint8_t *restrict above, size_t size)
{
    for (size_t i = 0; i < size; i++)
        row[i] = (uint8_t)(row[i] + above[i]);
}

/* With a constant PIXEL the compiler keeps the neighbours in registers. */
static inline void undo(unsigned filter, uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
    if (filter == SUB || (filter == PAETH && above == NULL)) /* without a row above, the nearest is the left one */
        undo_sub(row, size, pixel);
    else if (filter == AVERAGE)
        undo_average(row, above, size, pixel);
    else if (filter == PAETH)
        undo_paeth(row, above, size, pixel);
}

bool png_unfilter(unsigned filter, uint8_t *row, const uint8_t *above, size_t size, size_t pixel)
{
    if (filter >= PNG_FILTERS)
        return false;
    if (filter == UP && above != NULL)
        undo_up(row, above, size);
    if (filter == NONE || filter == UP)
        return true;
    switch (pixel) {
    case 1:
        undo(filter, row, above, size, 1);
        break;
    case 2:
        undo(filter, row, above, size, 2);
        break;
    case 3:
        undo(filter, row, above, size, 3);
        break;
    case 4:
        undo(filter, row, above, size, 4);
        break;
    case 6:
        undo(filter, row, above, size, 6);
        break;
    default:
        undo(filter, row, above, size, 8);
    }
    return true;
}
