/* SPDX-License-Identifier: MIT
 *
 * The undoing of row filters. One plain loop is compiled for several instruction sets if the loader can choose one
 * (base/clones.h). */
#include "png/png.h"

#include "base/clones.h"
#include "base/vector/types.h"

#include <stdbool.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

/* ---- Undoing ----
 *
 * Each pixel depends on the one before. With Average and Paeth that takes longer than all else, so several rows are
 * undone at once: while row 0 is at pixel i, row k is at pixel i - k, and the pixel above it was made just before. A
 * pixel is a cell of 4 or 8 bytes, which it may fill in part. The cells of all rows are the lanes of two vectors. */

typedef uint8_t lanes __attribute__((vector_size(QUAD)));
typedef uint32_t cells4 __attribute__((vector_size(QUAD)));
typedef uint64_t cells8 __attribute__((vector_size(QUAD)));

enum { VECTORS = 2 };

#ifdef __SSE2__
#define MIN(a, b) ((lanes)_mm_min_epu8((__m128i)(a), (__m128i)(b)))
#define MAX(a, b) ((lanes)_mm_max_epu8((__m128i)(a), (__m128i)(b)))
#define LESS(a, b) ((lanes)_mm_subs_epu8((__m128i)(a), (__m128i)(b))) /* a - b, at least 0 */
#define TWICE(a) ((lanes)_mm_adds_epu8((__m128i)(a), (__m128i)(a)))   /* at most 255 */
#elif defined(__aarch64__)
#define MIN(a, b) vminq_u8(a, b)
#define MAX(a, b) vmaxq_u8(a, b)
#define LESS(a, b) vqsubq_u8(a, b)
#define TWICE(a) vqaddq_u8(a, a)
#else
#define MIN(a, b) (((a) & (lanes)((a) < (b))) | ((b) & (lanes)((a) >= (b))))
#define MAX(a, b) (((a) & (lanes)((a) >= (b))) | ((b) & (lanes)((a) < (b))))
#define LESS(a, b) (((a) - (b)) & (lanes)((a) > (b)))
#define TWICE(a) (((a) + (a)) | (lanes)((a) > 127))
#endif

/* The neighbours that a filter uses. With zeros instead of some, Paeth's prediction is that of the other filters:
 * left if the others are 0, above likewise, and 0 if all are. Average has its own. */
struct neighbours {
    lanes left, above, corner, average;
};

/* Predict a byte of each lane. Paeth takes the neighbour that is nearest to left + above - corner. Let x be what the
 * larger of left and above has over the corner, and y what the corner has over the smaller. If 2x <= y, the smaller is
 * nearest. If 2y <= x, the larger is. Otherwise the corner is between them, and nearest. If both hold, all three are
 * equal. */
INLINE lanes predict(const struct neighbours *use, lanes left, lanes above, lanes corner)
{
    const lanes a = left & use->left, b = above & use->above, c = corner & use->corner;
    const lanes low = MIN(a, b), high = MAX(a, b), x = LESS(high, c), y = LESS(c, low);
    const lanes is_low = (lanes)(LESS(TWICE(x), y) == 0), is_high = (lanes)(LESS(TWICE(y), x) == 0);
    const lanes average = (left & above) + (((left ^ above) >> 1) & 127);
    return (c ^ (is_low & (c ^ low)) ^ (is_high & (c ^ high))) | (average & use->average);
}

/* The rows that are undone at once, and those that stand for missing ones. */
struct wave {
    const uint8_t *in[PNG_ROWS], *above;
    uint8_t *out[PNG_ROWS];
    size_t size, pixel;
    struct neighbours use[VECTORS];
    lanes left[VECTORS], corner[VECTORS];
};

/* The first SIZE bytes of a cell of CELL bytes, as a number whose bytes are in their order in memory. */
INLINE uint64_t load_cell(const uint8_t *from, size_t cell, size_t size)
{
    uint32_t small = 0;
    uint64_t large = 0;
    memcpy(cell == 4 ? (void *)&small : (void *)&large, from, size);
    return cell == 4 ? small : large;
}

INLINE void store_cell(uint8_t *to, uint64_t value, size_t cell, size_t size)
{
    const uint32_t small = (uint32_t)value;
    memcpy(to, cell == 4 ? (const void *)&small : (const void *)&value, size);
}

/* Move row 0 to the pixel at AT. CELL is 4 or 8. If WHOLE is set, a cell from there on is in the row, and no row is
 * before its first pixel. The next steps write the bytes of a cell after the pixel again. */
INLINE void step(struct wave *wave, size_t at, size_t cell, bool whole)
{
    const size_t rows = VECTORS * QUAD / cell, pixel = wave->pixel;
    uint64_t in[PNG_ROWS] = {0}, above = 0;
    lanes up[VECTORS], raw[VECTORS];
    for (size_t k = 0; k < rows; k++)
        if (whole || (at >= k * pixel && at - k * pixel < wave->size))
            in[k] = load_cell(wave->in[k] + (at - k * pixel), cell, whole ? cell : pixel);
    if (whole || at < wave->size)
        above = load_cell(wave->above + at, cell, whole ? cell : pixel);
    if (cell == 4) {
        up[0] = (lanes)CHOOSE(cells4, (cells4){(uint32_t)above}, wave->left[0], 0, 4, 5, 6);
        up[1] = (lanes)CHOOSE(cells4, wave->left[0], wave->left[1], 3, 4, 5, 6);
        raw[0] = (lanes)(cells4){(uint32_t)in[0], (uint32_t)in[1], (uint32_t)in[2], (uint32_t)in[3]};
        raw[1] = (lanes)(cells4){(uint32_t)in[4], (uint32_t)in[5], (uint32_t)in[6], (uint32_t)in[7]};
    } else {
        up[0] = (lanes)CHOOSE(cells8, (cells8){above}, wave->left[0], 0, 2);
        up[1] = (lanes)CHOOSE(cells8, wave->left[0], wave->left[1], 1, 2);
        raw[0] = (lanes)(cells8){in[0], in[1]};
        raw[1] = (lanes)(cells8){in[2], in[3]};
    }
    lanes begun[VECTORS] = {{0}}; /* other rows keep what is to their left */
    if (!whole)
        for (size_t k = 0; k < rows; k++)
            memset((uint8_t *)begun + k * cell, at >= k * pixel ? 255 : 0, cell);
    for (size_t v = 0; v < VECTORS; v++) {
        const lanes produced = raw[v] + predict(&wave->use[v], wave->left[v], up[v], wave->corner[v]);
        wave->left[v] = whole ? produced : (produced & begun[v]) | (wave->left[v] & ~begun[v]);
        wave->corner[v] = up[v];
    }
    for (size_t k = 0; k < rows; k++) {
        const lanes *produced = &wave->left[k * cell / QUAD];
        const uint64_t value = cell == 4 ? ((const cells4)*produced)[k % 4] : ((const cells8)*produced)[k % 2];
        if (whole || (at >= k * pixel && at - k * pixel < wave->size))
            store_cell(wave->out[k] + (at - k * pixel), value, cell, whole ? cell : pixel);
    }
}

INLINE void run_wave(const struct wave *from, size_t cell)
{
    struct wave wave = *from; /* in registers */
    const size_t behind = (VECTORS * QUAD / cell - 1) * wave.pixel;
    size_t at = 0;
    for (; at < behind && at < wave.size + behind; at += wave.pixel)
        step(&wave, at, cell, false);
    for (; at + cell <= wave.size; at += wave.pixel)
        step(&wave, at, cell, true);
    for (; at < wave.size + behind; at += wave.pixel)
        step(&wave, at, cell, false);
}

/* Undo COUNT rows at once, at most as many as there are cells. The missing rows repeat the last one to SCRATCH_ROW. */
CLONES(undo_rows,
       (const uint8_t *raw, size_t count, const uint8_t *above, const struct png_columns *columns, uint8_t *out,
        uint8_t *scratch_row),
       (raw, count, above, columns, out, scratch_row))
{
    const size_t pixel = columns->pixel, first = columns->first, cell = pixel <= 4 ? 4 : 8;
    struct wave wave = {.above = above + first, .size = columns->last - first, .pixel = pixel};
    if (first > 0)
        memcpy(wave.corner, above + first - pixel, pixel);
    for (size_t k = 0; k < VECTORS * QUAD / cell; k++) {
        const size_t row = k < count ? k : count - 1;
        const uint8_t *from = raw + row * (columns->size + 1);
        uint8_t bytes[4][QUAD];
        struct neighbours *use = &wave.use[k * cell / QUAD];
        memcpy(bytes, use, sizeof bytes);
        memset(&bytes[0][k * cell % QUAD], from[0] == PNG_SUB || from[0] == PNG_PAETH ? 255 : 0, cell);
        memset(&bytes[1][k * cell % QUAD], from[0] == PNG_UP || from[0] == PNG_PAETH ? 255 : 0, cell);
        memset(&bytes[2][k * cell % QUAD], from[0] == PNG_PAETH ? 255 : 0, cell);
        memset(&bytes[3][k * cell % QUAD], from[0] == PNG_AVERAGE ? 255 : 0, cell);
        memcpy(use, bytes, sizeof bytes);
        wave.in[k] = from + 1 + first;
        wave.out[k] = k < count ? out + k * columns->size + first : scratch_row;
        if (first > 0)
            memcpy((uint8_t *)wave.left + k * cell, out + row * columns->size + first - pixel, pixel);
    }
    if (cell == 4)
        run_wave(&wave, 4);
    else
        run_wave(&wave, 8);
}

/* The sum of the pixels stays in a register. */
static void undo_sub(const uint8_t *row, const struct png_columns *columns, uint8_t *out)
{
    typedef uint8_t cell __attribute__((vector_size(PNG_PIXEL_MAX)));
    const size_t size = columns->last, pixel = columns->pixel;
    cell left = {0}, next = {0};
    size_t i = columns->first;
    if (i > 0)
        memcpy(&left, out + i - pixel, pixel);
    for (; i + pixel + sizeof next <= size; i += 2 * pixel) { /* two pixels wait for one sum */
        cell both;
        memcpy(&next, row + i, sizeof next);
        memcpy(&both, row + i + pixel, sizeof both);
        both += next;
        next += left;
        memcpy(out + i, &next, sizeof next);
        left += both;
        memcpy(out + i + pixel, &left, sizeof left);
    }
    for (; i + sizeof next <= size; i += pixel) {
        memcpy(&next, row + i, sizeof next);
        left += next;
        memcpy(out + i, &left, sizeof left);
    }
    for (; i < size; i += pixel) {
        memcpy(&next, row + i, pixel);
        left += next;
        memcpy(out + i, &left, pixel);
    }
}

CLONES(undo_up, (const uint8_t *restrict row, const uint8_t *restrict above, size_t size, uint8_t *restrict out),
       (row, above, size, out))
{
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(row[i] + above[i]);
}

/* The number of rows up to the last one of ROWS rows at RAW with Average or Paeth. Other rows are faster alone. */
static size_t slow_rows(const uint8_t *raw, size_t rows, size_t size)
{
    size_t count = 1;
    for (size_t k = 1; k < rows; k++)
        count = raw[k * (size + 1)] >= PNG_AVERAGE ? k + 1 : count;
    return count;
}

void png_unfilter_columns(const uint8_t *raw, size_t rows, const uint8_t *above, const struct png_columns *columns,
                          uint8_t *out, uint8_t *scratch_row)
{
    const size_t max = columns->pixel <= 4 ? PNG_ROWS : PNG_ROWS / 2, size = columns->size;
    const size_t first = columns->first, count = columns->last - first;
    for (size_t done; rows > 0; rows -= done) {
        done = 1;
        if (raw[0] == PNG_NONE)
            memcpy(out + first, raw + 1 + first, count);
        else if (raw[0] == PNG_SUB)
            undo_sub(raw + 1, columns, out);
        else if (raw[0] == PNG_UP)
            undo_up(raw + 1 + first, above + first, count, out + first);
        else
            undo_rows(raw, done = slow_rows(raw, rows < max ? rows : max, size), above, columns, out, scratch_row);
        raw += done * (size + 1);
        out += done * size;
        above = out - size;
    }
}

void png_unfilter(const uint8_t *raw, size_t rows, const uint8_t *above, size_t size, size_t pixel, uint8_t *out,
                  uint8_t *scratch_row)
{
    png_unfilter_columns(raw, rows, above, &(struct png_columns){size, pixel, 0, size}, out, scratch_row);
}
