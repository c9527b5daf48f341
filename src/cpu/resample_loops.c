/* SPDX-License-Identifier: MIT
 *
 * The loops of cpu/resample.h. This file is compiled once for each instruction set. */
#include "base/vector/vector.h"

#include "cpu/resample.h"

#include <math.h>
#include <string.h>

static const char *row_at(const struct resample_source *source, int y)
{
    y = y < 0 ? 0 : y > source->last ? source->last : y;
    return source->base + (ptrdiff_t)(y - source->top) * (ptrdiff_t)source->stride;
}

/* ---- Columns of uint8_t ---- */

/* The bytes of the first or the last half of each quad as words. */
INLINE shorts first_words(shorts bytes)
{
    const shorts zero = {0};
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? zip_first8(bytes, zero) : zip_first8(zero, bytes);
}

INLINE shorts last_words(shorts bytes)
{
    const shorts zero = {0};
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? zip_last8(bytes, zero) : zip_last8(zero, bytes);
}

/* Add to SUMS the pair of rows A and B, whose taps are PAIR. The four vectors of sums have bytes 0 to 3, 4 to 7, 8 to
 * 11 and 12 to 15 of each quad. */
INLINE void add_rows(const char *a, const char *b, const int32_t *pair, ints *sums)
{
    const shorts first = load_shorts(a), second = load_shorts(b), taps = (shorts)repeat(*pair);
    const shorts left = zip_first8(first, second), right = zip_last8(first, second);
    const shorts words[4] = {first_words(left), last_words(left), first_words(right), last_words(right)};
    for (int v = 0; v < 4; v++)
        sums[v] = multiply_pairs_add(sums[v], words[v], taps);
}

/* The bits of sums of uint8_t below the high ones. */
enum { COLUMN_CARRY = 8, ROW_CARRY = 16 };

/* Move the upper bits of the low sums to the high sums. */
INLINE void carry(int low_bits, int vectors, ints *high, ints *low)
{
    for (int v = 0; v < vectors; v++) {
        high[v] = add(high[v], low[v] >> low_bits);
        low[v] &= repeat((1 << low_bits) - 1);
    }
}

/* floor(-(HIGH 2^LOW_BITS + LOW) / 2^SHIFT + 1/2) */
INLINE ints finish(ints high, ints low, int low_bits, int shift)
{
    const ints half = repeat(1 << (shift - low_bits) >> 1);
    return add(subtract(half, high), -low >> low_bits) >> (shift - low_bits);
}

/* A vector of columns. */
static void block_bytes(const struct resample_taps *taps, const struct resample_source *source, int first,
                        const int32_t *pairs, int x, char *out)
{
    const ints middle = repeat(1 << (RESAMPLE_FRACTION + 7));
    ints high[4] = {{0}}, sums[4] = {{0}};
    for (int p = 0; p < taps->count;) {
        const int end = taps->count - p > taps->chunk ? p + taps->chunk : taps->count;
        for (; p < end; p++)
            add_rows(row_at(source, first + 2 * p) + x, row_at(source, first + 2 * p + 1) + x, pairs + p, sums);
        if (p < taps->count)
            carry(COLUMN_CARRY, 4, high, sums);
    }
    for (int v = 0; v < 4; v++)
        sums[v] = subtract(finish(high[v], sums[v], COLUMN_CARRY, taps->axis->shift - RESAMPLE_FRACTION), middle);
    store_shorts(out, pack_small(sums[0], sums[1]));
    store_shorts(out + VECTOR, pack_small(sums[2], sums[3]));
}

/* ---- Columns of uint16_t ---- */

/* Two vectors of columns. The sums are those of the first and the second halves of quads, as m - 2^21. */
static void block_words(const struct resample_taps *taps, const struct resample_source *source, int first,
                        const int32_t *pairs, int x, char *out)
{
    const size_t at = (size_t)x * sizeof(uint16_t);
    ints high[4] = {{0}}, low[4] = {{0}};
    for (int p = 0; p < taps->count;) {
        const int end = taps->count - p > taps->chunk ? p + taps->chunk : taps->count;
        for (; p < end; p++) {
            const char *a = row_at(source, first + 2 * p) + at, *b = row_at(source, first + 2 * p + 1) + at;
            const shorts upper = (shorts)repeat(pairs[2 * p]), lower = (shorts)repeat(pairs[2 * p + 1]);
            for (int v = 0; v < 4; v++) {
                const shorts c = load_shorts(a + v / 2 * VECTOR), d = load_shorts(b + v / 2 * VECTOR);
                const shorts words = (v % 2 == 0 ? zip_first16(c, d) : zip_last16(c, d)) ^ INT16_MIN;
                high[v] = multiply_pairs_add(high[v], words, upper);
                low[v] = multiply_pairs_add(low[v], words, lower);
            }
        }
        if (p < taps->count)
            carry(taps->low_bits, 4, high, low);
    }
    for (int v = 0; v < 4; v++)
        store(out + v * VECTOR, finish(high[v], low[v], taps->low_bits, taps->axis->shift - RESAMPLE_FRACTION));
}

/* ---- Columns of floats ---- */

/* Four vectors of columns. */
static void block_floats(const struct resample_taps *taps, const struct resample_source *source, int first,
                         const double *factors, int x, char *out)
{
    const size_t at = (size_t)x * sizeof(float);
    floats sums[4] = {{0}};
    for (int k = 0; k < taps->count; k++) {
        const char *row = row_at(source, first + k) + at;
        for (int v = 0; v < 4; v++)
            sums[v] += (float)factors[k] * (floats)load(row + v * VECTOR);
    }
    for (int v = 0; v < 4; v++)
        store(out + v * VECTOR, (ints)sums[v]);
}

/* ---- Columns ---- */

static void block_columns(const struct resample_taps *taps, enum sample sample, const struct resample_source *source,
                          int first, int row, int x, char *out)
{
    const size_t at = (size_t)row * (size_t)taps->count;
    if (sample == SAMPLE_U8)
        block_bytes(taps, source, first, taps->pairs + at, x, out);
    else if (sample == SAMPLE_U16)
        block_words(taps, source, first, taps->pairs + 2 * at, x, out);
    else
        block_floats(taps, source, first, taps->taps + at, x, out);
}

static void sum_columns(const struct resample_taps *taps, enum sample sample, const struct resample_source *source,
                        int output, int width, char *spare, char *out)
{
    const int first = resample_first(taps->axis, output), row = output % taps->period;
    const int block = sample == SAMPLE_U8 ? VECTOR : 4 * LANES;
    const int inputs = sample == SAMPLE_F32 ? taps->count : 2 * taps->count;
    const size_t size = sample_bytes(sample), sums = sample == SAMPLE_U8 ? sizeof(int16_t) : sizeof(float);
    int x = 0;
    for (; x + block <= width; x += block)
        block_columns(taps, sample, source, first, row, x, out + (size_t)x * sums);
    if (x == width)
        return;
    /* No bytes beyond a row are read: copy the rest of the rows. */
    const struct resample_source copy = {.base = spare, .stride = (size_t)block * size, .last = inputs - 1};
    for (int k = 0; k < inputs; k++)
        memcpy(spare + (size_t)k * copy.stride, row_at(source, first + k) + (size_t)x * size,
               (size_t)(width - x) * size);
    block_columns(taps, sample, &copy, 0, row, 0, out + (size_t)x * sums);
}

/* ---- Cells ---- */

typedef int32_t cells __attribute__((vector_size(16)));
typedef int32_t loose_cells __attribute__((vector_size(16), aligned(1), may_alias));

#if defined(__clang__) || __GNUC__ >= 12
#define CHOOSE_CELLS(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CHOOSE_CELLS(a, b, ...) __builtin_shuffle(a, b, (cells){__VA_ARGS__})
#endif

/* Transpose 4 x 4 cells: from four rows to four rows that are STRIDE bytes apart. */
INLINE void transpose(const char *const from[4], char *to, size_t stride)
{
    cells r[4];
    for (int i = 0; i < 4; i++)
        r[i] = *(const loose_cells *)(const void *)from[i];
    const cells a = CHOOSE_CELLS(r[0], r[1], 0, 4, 1, 5), b = CHOOSE_CELLS(r[2], r[3], 0, 4, 1, 5);
    const cells c = CHOOSE_CELLS(r[0], r[1], 2, 6, 3, 7), d = CHOOSE_CELLS(r[2], r[3], 2, 6, 3, 7);
    const cells columns[4] = {CHOOSE_CELLS(a, b, 0, 1, 4, 5), CHOOSE_CELLS(a, b, 2, 3, 6, 7),
                              CHOOSE_CELLS(c, d, 0, 1, 4, 5), CHOOSE_CELLS(c, d, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++)
        *(loose_cells *)(void *)(to + (size_t)i * stride) = columns[i];
}

/* Where piece INDEX of 16 bytes is in a row of sums. In a row of integers, the first halves of all quads come before
 * the last halves. */
INLINE size_t piece_at(size_t index, bool is_zipped)
{
    const size_t pieces = 2 * QUADS, at = index % pieces;
    return (is_zipped ? index - at + at % 2 * QUADS + at / 2 : index) * QUAD;
}

static void to_cells(const char *rows, size_t stride, int units, bool is_zipped, int32_t *to)
{
    for (int u = 0; u < units; u += 4) {
        const size_t at = piece_at((size_t)u / 4, is_zipped);
        for (int l = 0; l < LANES; l += 4) {
            const char *const from[4] = {rows + (size_t)l * stride + at, rows + (size_t)(l + 1) * stride + at,
                                         rows + (size_t)(l + 2) * stride + at, rows + (size_t)(l + 3) * stride + at};
            transpose(from, (char *)(to + (size_t)u * LANES + l), sizeof(ints));
        }
    }
}

static void to_rows(const int32_t *from, size_t bytes, int count, char *const *rows)
{
    for (size_t at = 0; at < bytes; at += RESAMPLE_PIECE)
        for (int l = 0; l < count; l += 4) {
            const int32_t *first = from + at / 4 * LANES + l;
            const char *const units[4] = {(const char *)first, (const char *)(first + LANES),
                                          (const char *)(first + 2 * LANES), (const char *)(first + 3 * LANES)};
            char transposed[4][RESAMPLE_PIECE];
            transpose(units, transposed[0], RESAMPLE_PIECE);
            const size_t size = bytes - at < RESAMPLE_PIECE ? bytes - at : RESAMPLE_PIECE;
            for (int i = 0; i < 4 && l + i < count; i++)
                if (size == RESAMPLE_PIECE)
                    memcpy(rows[l + i] + at, transposed[i], RESAMPLE_PIECE);
                else
                    memcpy(rows[l + i] + at, transposed[i], size);
        }
}

/* ---- Rows ---- */

/* A level of each row of the group. */
INLINE ints row_bytes(const struct resample_taps *taps, const int32_t *cells_in, const int32_t *pairs)
{
    ints high[2] = {{0}}, sums[2] = {{0}};
    for (int p = 0; p < taps->count;) {
        const int end = taps->count - p > taps->chunk ? p + taps->chunk : taps->count;
        for (; p + 1 < end; p += 2)
            for (int v = 0; v < 2; v++)
                sums[v] = multiply_pairs_add(sums[v], load_shorts(cells_in + (size_t)(p + v) * LANES),
                                             (shorts)repeat(pairs[p + v]));
        for (; p < end; p++)
            sums[0] = multiply_pairs_add(sums[0], load_shorts(cells_in + (size_t)p * LANES), (shorts)repeat(pairs[p]));
        sums[0] = add(sums[0], sums[1]);
        sums[1] = repeat(0);
        if (p < taps->count)
            carry(ROW_CARRY, 1, high, sums);
    }
    const ints levels = finish(high[0], sums[0], ROW_CARRY, taps->axis->shift + RESAMPLE_FRACTION);
    return clamp(add(levels, repeat(128)), repeat(0), repeat(255));
}

/* The first bit of output NUMBER of COUNT in a cell. */
INLINE int first_bit(int number, int count)
{
    return 32 / count * (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? number : count - 1 - number);
}

static void rows_bytes(const struct resample_taps *taps, const int32_t *cells_in, int start, int first, int last,
                       int32_t *out)
{
    for (int x = first; x < last; x += 4, out += LANES) {
        ints four = {0};
        for (int i = 0; i < 4 && x + i < last; i++) {
            const int at = (resample_first(taps->axis, x + i) - start) / 2;
            const int32_t *pairs = taps->pairs + (size_t)((x + i) % taps->period) * (size_t)taps->count;
            four |= shift_left(row_bytes(taps, cells_in + (ptrdiff_t)at * LANES, pairs), first_bit(i, 4));
        }
        store(out, four);
    }
}

/* A level of uint16_t of each row of the group. */
INLINE ints row_words(const struct resample_taps *taps, const int32_t *cells_in, const double *factors)
{
    doubles sums[2] = {{0}};
    for (int k = 0; k < taps->count; k++) {
        const ints cell = load(cells_in + (size_t)k * LANES);
        sums[0] += factors[k] * first_doubles(cell);
        sums[1] += factors[k] * last_doubles(cell);
    }
    const double unit = ldexp(1, -taps->axis->shift - RESAMPLE_FRACTION);
    const double half = 32768.5 + (1 << 17); /* so that nothing that is converted is negative */
    const ints levels = subtract(join_doubles(sums[0] * unit + half, sums[1] * unit + half), repeat(1 << 17));
    return clamp(levels, repeat(0), repeat(65535));
}

static void rows_words(const struct resample_taps *taps, const int32_t *cells_in, int start, int first, int last,
                       int32_t *out)
{
    for (int x = first; x < last; x += 2, out += LANES) {
        ints two = {0};
        for (int i = 0; i < 2 && x + i < last; i++) {
            const int32_t *from = cells_in + (ptrdiff_t)(resample_first(taps->axis, x + i) - start) * LANES;
            const double *factors = taps->taps + (size_t)((x + i) % taps->period) * (size_t)taps->count;
            two |= shift_left(row_words(taps, from, factors), first_bit(i, 2));
        }
        store(out, two);
    }
}

static void rows_floats(const struct resample_taps *taps, const int32_t *cells_in, int start, int first, int last,
                        int32_t *out)
{
    for (int x = first; x < last; x++, out += LANES) {
        const int32_t *from = cells_in + (ptrdiff_t)(resample_first(taps->axis, x) - start) * LANES;
        const double *factors = taps->taps + (size_t)(x % taps->period) * (size_t)taps->count;
        floats sums = {0};
        for (int k = 0; k < taps->count; k++)
            sums += (float)factors[k] * (floats)load(from + (size_t)k * LANES);
        store(out, (ints)sums);
    }
}

static void sum_rows(const struct resample_taps *taps, enum sample sample, const int32_t *cells_in, int start,
                     int first, int last, int32_t *out)
{
    if (sample == SAMPLE_U8)
        rows_bytes(taps, cells_in, start, first, last, out);
    else if (sample == SAMPLE_U16)
        rows_words(taps, cells_in, start, first, last, out);
    else
        rows_floats(taps, cells_in, start, first, last, out);
}

const struct resample_loops IN_SET(resample) = {
    .lanes = LANES,
    .vector = VECTOR,
    .columns = sum_columns,
    .to_cells = to_cells,
    .rows = sum_rows,
    .to_rows = to_rows,
};
