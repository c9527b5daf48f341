/* SPDX-License-Identifier: MIT
 *
 * The choice of a row's filter, compiled once for each instruction set. */
#include "png/loops.h"

#include "base/vector/vector.h"
#include "png/png.h"

/* Filter a vector of ROW. The neighbour that is nearest to LEFT + ABOVE - CORNER is Paeth's prediction: filter.c, which
 * undoes filters, says why. */
INLINE uchars filter_vector(int filter, uchars row, uchars left, uchars above, uchars corner)
{
    if (filter == PNG_NONE)
        return row;
    if (filter == PNG_SUB)
        return row - left;
    if (filter == PNG_UP)
        return row - above;
    if (filter == PNG_AVERAGE)
        return row - ((left & above) + (((left ^ above) >> 1) & 127));
    const uchars low = smaller_uchars(left, above), high = larger_uchars(left, above), zero = {0};
    const uchars x = subtract_uchars(high, corner), y = subtract_uchars(corner, low);
    const uchars is_low = (uchars)(subtract_uchars(add_uchars(x, x), y) == zero);
    const uchars is_high = (uchars)(subtract_uchars(add_uchars(y, y), x) == zero);
    return row - (corner ^ (is_low & (corner ^ low)) ^ (is_high & (corner ^ high)));
}

/* Add up the magnitudes of each filter's differences. */
INLINE void add_differences(ints sums[PNG_FILTERS], uchars row, uchars left, uchars above, uchars corner)
{
    for (int filter = PNG_NONE; filter < PNG_FILTERS; filter++) {
        const uchars difference = filter_vector(filter, row, left, above, corner);
        const uchars magnitude = smaller_uchars(difference, -difference);
        sums[filter] = add_byte_sums(sums[filter], smaller_uchars(magnitude, PNG_DIFFERENCE_MAX - (uchars){0}));
    }
}

/* A vector of a row and of its neighbours. */
struct part {
    uint8_t row[VECTOR], left[VECTOR], above[VECTOR], corner[VECTOR];
};

/* The COUNT bytes from AT on, at most a vector, with zeros after them and for neighbours outside of the picture. */
static struct part load_part(const uint8_t *row, const uint8_t *above, size_t at, size_t count, size_t pixel)
{
    struct part part = {{0}, {0}, {0}, {0}};
    const size_t outside = at > 0 ? 0 : pixel < count ? pixel : count;
    memcpy(part.row, row + at, count);
    memcpy(part.above, above + at, count);
    memcpy(part.left + outside, row + at + outside - pixel, count - outside);
    memcpy(part.corner + outside, above + at + outside - pixel, count - outside);
    return part;
}

INLINE void filter_row(int filter, const uint8_t *row, const uint8_t *above, size_t size, size_t pixel, uint8_t *out)
{
    for (size_t i = 0, count; i < size; i += count) {
        count = size - i < VECTOR ? size - i : VECTOR;
        if (i > 0 && count == VECTOR) {
            store(out + i, (ints)filter_vector(filter, load_uchars(row + i), load_uchars(row + i - pixel),
                                               load_uchars(above + i), load_uchars(above + i - pixel)));
            continue;
        }
        const struct part part = load_part(row, above, i, count, pixel);
        const uchars filtered = filter_vector(filter, load_uchars(part.row), load_uchars(part.left),
                                              load_uchars(part.above), load_uchars(part.corner));
        memcpy(out + i, &filtered, count);
    }
}

void IN_SET(png_filter)(const uint8_t *row, const uint8_t *above, size_t size, size_t pixel, bool is_fast,
                        uint8_t *out);

void IN_SET(png_filter)(const uint8_t *row, const uint8_t *above, size_t size, size_t pixel, bool is_fast, uint8_t *out)
{
    ints sums[PNG_FILTERS] = {{0}};
    uint32_t totals[PNG_FILTERS] = {0};
    if (!is_fast && memcmp(row, above, size) == 0) { /* Up leaves zeros; None and Sub do so for a row of zeros only */
        out[0] = row[0] == 0 && memcmp(row, row + 1, size - 1) == 0 ? PNG_NONE : PNG_UP;
        memset(out + 1, 0, size);
        return;
    }
    for (size_t i = 0; i < size; i += is_fast && i % PNG_FAST_BYTES == 0 ? 3 * PNG_FAST_BYTES : 0) {
        const size_t count = size - i < VECTOR ? size - i : VECTOR;
        if (i > 0 && count == VECTOR) {
            add_differences(sums, load_uchars(row + i), load_uchars(row + i - pixel), load_uchars(above + i),
                            load_uchars(above + i - pixel));
        } else {
            const struct part part = load_part(row, above, i, count, pixel);
            add_differences(sums, load_uchars(part.row), load_uchars(part.left), load_uchars(part.above),
                            load_uchars(part.corner));
        }
        i += VECTOR;
    }
    int best = PNG_NONE;
    for (int filter = PNG_NONE; filter < PNG_FILTERS; filter++) {
        for (int l = 0; l < LANES; l++)
            totals[filter] += (uint32_t)sums[filter][l];
        if (totals[filter] < totals[best])
            best = filter;
    }
    out[0] = (uint8_t)best;
    if (best == PNG_NONE)
        memcpy(out + 1, row, size);
    else if (best == PNG_SUB)
        filter_row(PNG_SUB, row, above, size, pixel, out + 1);
    else if (best == PNG_UP)
        filter_row(PNG_UP, row, above, size, pixel, out + 1);
    else if (best == PNG_AVERAGE)
        filter_row(PNG_AVERAGE, row, above, size, pixel, out + 1);
    else
        filter_row(PNG_PAETH, row, above, size, pixel, out + 1);
}
