/* SPDX-License-Identifier: MIT
 *
 * The loops of cpu/resample.h. This file is compiled once for each instruction set. */
#include "base/vector/vector.h"

#include "cpu/resample.h"

#include <math.h>
#include <string.h>

/* ---- Pairs of rows ---- */

/* The columns of two rows as pairs of words. The four vectors have the even and the odd bytes of the first halves of
 * quads, and then those of the last halves. */
INLINE void pair_bytes(const char *a, const char *b, int32_t *to)
{
    const shorts first = load_shorts(a), second = load_shorts(b);
    const shorts halves[2] = {zip_first16(first, second), zip_last16(first, second)};
    for (int h = 0; h < 2; h++) {
        const ints low = (ints)halves[h] & 0x00ff00ff, high = (ints)((ushorts)halves[h] >> 8);
        const bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
        store(to + 2 * h * LANES, is_little ? low : high);
        store(to + (2 * h + 1) * LANES, is_little ? high : low);
    }
}

/* The columns of two rows of words, less 2^15, as pairs: the first halves of quads, and then the last ones. */
INLINE void pair_words(const char *a, const char *b, int32_t *to)
{
    const shorts first = load_shorts(a) ^ INT16_MIN, second = load_shorts(b) ^ INT16_MIN;
    store_shorts(to, zip_first16(first, second));
    store_shorts(to + LANES, zip_last16(first, second));
}

static void pair_two_rows(enum sample sample, const char *a, const char *b, int count, int32_t *to)
{
    const int each = VECTOR / (int)sample_bytes(sample);
    const size_t block = RESAMPLE_BLOCK * sample_bytes(sample); /* the next one is fetched while this one is summed */
    for (int x = 0; x < count; x += each, a += VECTOR, b += VECTOR) {
        __builtin_prefetch(a + block);
        __builtin_prefetch(b + block);
        if (sample == SAMPLE_U8)
            pair_bytes(a, b, to + x);
        else if (sample == SAMPLE_U16)
            pair_words(a, b, to + x);
        else
            store(to + x, load(a));
    }
}

/* ---- Columns ---- */

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
INLINE ints finish_sum(ints high, ints low, int low_bits, int shift)
{
    const ints half = repeat(1 << (shift - low_bits) >> 1);
    return add(subtract(half, high), -low >> low_bits) >> (shift - low_bits);
}

/* Store the quads of two vectors alternately. */
INLINE void store_alternating_quads(char *to, ints first, ints last)
{
    char halves[2][VECTOR];
    store(halves[0], first);
    store(halves[1], last);
    for (int q = 0; q < 2 * QUADS; q++)
        memcpy(to + q * QUAD, halves[q % 2] + q / 2 * QUAD, QUAD);
}

/* Let the first of two vectors, of even and of odd columns, have pairs in the order of memory. */
INLINE void join_columns(ints *sums)
{
    const bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    sums[0] = (sums[!is_little] & 0xffff) | shift_left(sums[is_little], 16);
}

/* 8 LANES columns of uint8_t, as m - 2^13. */
INLINE void columns_bytes(const struct resample_taps *taps, int count, const int32_t *pairs, const int32_t *const *rows,
                          int x, char *out)
{
    const int shift = taps->axis->shift - RESAMPLE_FRACTION;
    const ints middle = repeat(1 << (RESAMPLE_FRACTION + 7));
    ints high[8] = {{0}}, sums[8] = {{0}};
    for (int p = 0; p < count;) {
        const int end = count - p > taps->chunk ? p + taps->chunk : count;
        for (; p < end; p++) {
            const shorts pair = (shorts)repeat(pairs[p]);
            const int32_t *row = rows[p] + x;
            for (int v = 0; v < 8; v++)
                sums[v] = multiply_pairs_add(sums[v], load_shorts(row + v * LANES), pair);
        }
        if (p < count)
            carry(COLUMN_CARRY, 8, high, sums);
    }
    if (count > taps->chunk)
        for (int v = 0; v < 8; v++)
            sums[v] = subtract(finish_sum(high[v], sums[v], COLUMN_CARRY, shift), middle);
    else
        for (int v = 0; v < 8; v++)
            sums[v] = subtract(repeat((1 << (shift - 1)) - (1 << (shift + RESAMPLE_FRACTION + 7))), sums[v]) >> shift;
    for (int v = 0; v < 8; v += 2)
        join_columns(sums + v);
    store_alternating_quads(out, sums[0], sums[2]);
    store_alternating_quads(out + 2 * VECTOR, sums[4], sums[6]);
}

/* 4 LANES columns of uint16_t, as m - 2^21. */
INLINE void columns_words(const struct resample_taps *taps, int count, const int32_t *pairs, const int32_t *const *rows,
                          int x, char *out)
{
    ints high[4] = {{0}}, low[4] = {{0}};
    for (int p = 0; p < count;) {
        const int end = count - p > taps->chunk ? p + taps->chunk : count;
        for (; p < end; p++) {
            const shorts upper = (shorts)repeat(pairs[2 * p]), lower = (shorts)repeat(pairs[2 * p + 1]);
            for (int v = 0; v < 4; v++) {
                const shorts words = load_shorts(rows[p] + x + v * LANES);
                high[v] = multiply_pairs_add(high[v], words, upper);
                low[v] = multiply_pairs_add(low[v], words, lower);
            }
        }
        if (p < count)
            carry(taps->low_bits, 4, high, low);
    }
    for (int v = 0; v < 4; v++)
        high[v] = finish_sum(high[v], low[v], taps->low_bits, taps->axis->shift - RESAMPLE_FRACTION);
    store_alternating_quads(out, high[0], high[1]);
    store_alternating_quads(out + 2 * VECTOR, high[2], high[3]);
}

/* ((sum + 2^21) >> 22) - LESS, where the sum is -(HIGH * 2^8 + LOW): at most 396 - LESS in absolute value. */
INLINE ints pillow_level(ints high, ints low, int less)
{
    const ints half = repeat((1 << (PILLOW_SHIFT - 1)) - (less << PILLOW_SHIFT));
    return subtract(half, add(shift_left(high, PILLOW_LOW_BITS), low)) >> PILLOW_SHIFT;
}

/* 4 LANES columns of uint8_t by Pillow's rule, as levels. */
INLINE void columns_pillow(int count, const int32_t *pairs, const int32_t *const *rows, int x, char *out)
{
    ints high[4] = {{0}}, low[4] = {{0}};
    for (int p = 0; p < count; p++) {
        const shorts upper = (shorts)repeat(pairs[2 * p]), lower = (shorts)repeat(pairs[2 * p + 1]);
        for (int v = 0; v < 4; v++) {
            const shorts bytes = load_shorts_once(rows[p] + x + v * LANES);
            high[v] = multiply_pairs_add(high[v], bytes, upper);
            low[v] = multiply_pairs_add(low[v], bytes, lower);
        }
    }
    for (int v = 0; v < 4; v++)
        high[v] = clamp(pillow_level(high[v], low[v], 0), repeat(0), repeat(255));
    join_columns(high);
    join_columns(high + 2);
    store_alternating_quads(out, high[0], high[2]);
}

/* 4 LANES columns of floats. */
INLINE void columns_floats(const struct resample_taps *taps, const double *factors, const int32_t *const *rows, int x,
                           char *out)
{
    floats sums[4] = {{0}};
    for (int k = 0; k < taps->count; k++)
        for (int v = 0; v < 4; v++)
            sums[v] += (float)factors[k] * (floats)load(rows[k] + x + v * LANES);
    for (int v = 0; v < 4; v++)
        store(out + v * VECTOR, (ints)sums[v]);
}

static void sum_resample_columns(const struct resample_taps *taps, enum sample sample, int output,
                                 const int32_t *const *rows, int count, char *out)
{
    const int kind = output % taps->period;
    const size_t at = (size_t)kind * (size_t)taps->count;
    if (sample == SAMPLE_U8 && taps->parts == 2)
        for (int x = 0; x < count; x += 4 * LANES)
            columns_pillow(taps->used[kind], taps->pairs + 2 * at, rows, x, out + (size_t)x * sizeof(int16_t));
    else if (sample == SAMPLE_U8)
        for (int x = 0; x < count; x += 8 * LANES)
            columns_bytes(taps, taps->used[kind], taps->pairs + at, rows, x, out + (size_t)x * sizeof(int16_t));
    else if (sample == SAMPLE_U16)
        for (int x = 0; x < count; x += 4 * LANES)
            columns_words(taps, taps->used[kind], taps->pairs + 2 * at, rows, x, out + (size_t)x * sizeof(int32_t));
    else
        for (int x = 0; x < count; x += 4 * LANES)
            columns_floats(taps, taps->taps + at, rows, x, out + (size_t)x * sizeof(float));
}

/* ---- Cells ---- */

typedef int32_t cells __attribute__((vector_size(16)));
typedef int32_t loose_cells __attribute__((vector_size(16), aligned(1), may_alias));

#if defined(__clang__) || __GNUC__ >= 12
#define CHOOSE_CELLS(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define CHOOSE_CELLS(a, b, ...) __builtin_shuffle(a, b, (cells){__VA_ARGS__})
#endif

typedef int16_t cell_words __attribute__((vector_size(16)));

#if defined(__clang__) || __GNUC__ >= 12
#define CHOOSE_WORDS(a, ...) (cells) __builtin_shufflevector((cell_words)(a), (cell_words)(a), __VA_ARGS__)
#else
#define CHOOSE_WORDS(a, ...) (cells) __builtin_shuffle((cell_words)(a), (cell_words){__VA_ARGS__})
#endif

/* Neighbouring words of one channel of CHANNELS as units. */
INLINE cells to_units(cells words, int channels)
{
    return channels == 2   ? CHOOSE_WORDS(words, 0, 2, 1, 3, 4, 6, 5, 7)
           : channels == 3 ? CHOOSE_WORDS(words, 0, 3, 1, 4, 2, 5, 6, 7)
           : channels == 4 ? CHOOSE_WORDS(words, 0, 4, 1, 5, 2, 6, 3, 7)
                           : words;
}

/* Transpose 4 x 4 cells, from four rows to four rows. */
INLINE void transpose_cells(const char *const from[4], int channels, char *const to[4])
{
    cells r[4];
    for (int i = 0; i < 4; i++)
        r[i] = to_units(*(const loose_cells *)(const void *)from[i], channels);
    const cells a = CHOOSE_CELLS(r[0], r[1], 0, 4, 1, 5), b = CHOOSE_CELLS(r[2], r[3], 0, 4, 1, 5);
    const cells c = CHOOSE_CELLS(r[0], r[1], 2, 6, 3, 7), d = CHOOSE_CELLS(r[2], r[3], 2, 6, 3, 7);
    const cells columns[4] = {CHOOSE_CELLS(a, b, 0, 1, 4, 5), CHOOSE_CELLS(a, b, 2, 3, 6, 7),
                              CHOOSE_CELLS(c, d, 0, 1, 4, 5), CHOOSE_CELLS(c, d, 2, 3, 6, 7)};
    for (int i = 0; i < 4; i++)
        *(loose_cells *)(void *)to[i] = columns[i];
}

static void to_cells(const char *rows, size_t stride, int units, int channels, int32_t *to)
{
    const int step = channels == 3 ? 3 : 4; /* units of whole pixels: the fourth is written again */
    for (int u = 0; u < units; u += step)
        for (int l = 0; l < LANES; l += 4) {
            const char *at = rows + (size_t)l * stride + (size_t)u * sizeof *to;
            const char *const from[4] = {at, at + stride, at + 2 * stride, at + 3 * stride};
            char *cell = (char *)(to + (size_t)u * LANES + l);
            char *const cells_to[4] = {cell, cell + VECTOR, cell + 2 * VECTOR, cell + 3 * VECTOR};
            transpose_cells(from, channels, cells_to);
        }
}

static void to_rows(const int32_t *from, size_t bytes, int count, char *const *rows)
{
    char spare[4][RESAMPLE_PIECE];
    for (size_t at = 0; at < bytes; at += RESAMPLE_PIECE)
        for (int l = 0; l < count; l += 4) {
            const int32_t *first = from + at / 4 * LANES + l;
            const char *const units[4] = {(const char *)first, (const char *)(first + LANES),
                                          (const char *)(first + 2 * LANES), (const char *)(first + 3 * LANES)};
            char *to[4];
            const size_t size = bytes - at;
            for (int i = 0; i < 4; i++)
                to[i] = l + i < count && size >= RESAMPLE_PIECE ? rows[l + i] + at : spare[i];
            transpose_cells(units, 1, to);
            for (int i = 0; i < 4 && l + i < count && size < RESAMPLE_PIECE; i++)
                memcpy(rows[l + i] + at, spare[i], size);
        }
}

/* ---- Rows ---- */

/* A level of each row of the group less 128, for each of CHANNELS. */
INLINE void row_levels8(const struct resample_taps *taps, int count, int channels, const int32_t *cells_in,
                        const int32_t *pairs, ints *levels)
{
    const int shift = taps->axis->shift + RESAMPLE_FRACTION;
    ints high[4] = {{0}}, sums[4] = {{0}};
    for (int p = 0; p < count;) {
        const int end = count - p > taps->chunk ? p + taps->chunk : count;
        for (; p < end; p++, cells_in += channels * LANES) {
            const shorts pair = (shorts)repeat(pairs[p]);
            for (int c = 0; c < channels; c++)
                sums[c] = multiply_pairs_add(sums[c], load_shorts(cells_in + c * LANES), pair);
        }
        if (p < count)
            carry(ROW_CARRY, channels, high, sums);
    }
    for (int c = 0; c < channels; c++)
        levels[c] = count > taps->chunk ? finish_sum(high[c], sums[c], ROW_CARRY, shift)
                                        : subtract(repeat(1 << (shift - 1)), sums[c]) >> shift;
}

/* Compute levels of uint8_t by Pillow's rule, as row_levels8 does by ours. */
INLINE void row_levels_pillow(int count, int channels, const int32_t *cells_in, const int32_t *pairs, ints *levels)
{
    ints high[4] = {{0}}, low[4] = {{0}};
    for (int p = 0; p < count; p++, cells_in += channels * LANES) {
        const shorts upper = (shorts)repeat(pairs[2 * p]), lower = (shorts)repeat(pairs[2 * p + 1]);
        for (int c = 0; c < channels; c++) {
            const shorts cell = load_shorts_once(cells_in + c * LANES);
            high[c] = multiply_pairs_add(high[c], cell, upper);
            low[c] = multiply_pairs_add(low[c], cell, lower);
        }
    }
    for (int c = 0; c < channels; c++)
        levels[c] = pillow_level(high[c], low[c], 128);
}

/* Compute levels of uint16_t, as row_levels8 computes levels of uint8_t. */
INLINE void row_levels16(const struct resample_taps *taps, int channels, const int32_t *cells_in, const double *factors,
                         ints *levels)
{
    doubles sums[8] = {{0}};
    for (int k = 0; k < taps->count; k++, cells_in += channels * LANES)
        for (int c = 0; c < channels; c++) {
            const ints cell = load(cells_in + c * LANES);
            sums[2 * c] += factors[k] * first_doubles(cell);
            sums[2 * c + 1] += factors[k] * last_doubles(cell);
        }
    const double unit = ldexp(1, -taps->axis->shift - RESAMPLE_FRACTION);
    const double half = 32768.5 + (1 << 17); /* so that nothing that is converted is negative */
    for (int c = 0; c < channels; c++) {
        levels[c] = join_doubles(sums[2 * c] * unit + half, sums[2 * c + 1] * unit + half);
        levels[c] = clamp(subtract(levels[c], repeat(1 << 17)), repeat(0), repeat(65535));
    }
}

INLINE void row_floats(const struct resample_taps *taps, int channels, const int32_t *cells_in, const double *factors,
                       ints *levels)
{
    for (int c = 0; c < channels; c++) {
        floats sums = {0};
        for (int k = 0; k < taps->count; k++)
            sums += (float)factors[k] * (floats)load(cells_in + (k * channels + c) * LANES);
        levels[c] = (ints)sums;
    }
}

/* The bytes of the four words of each quad, interleaved: 0, 4, 8, 12, 1 and so on. */
INLINE shorts transpose_bytes(shorts bytes)
{
#if HAS_SHUFFLE
    static const uint8_t indices[QUAD] = {0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15};
    return shuffle(bytes, load_quad(indices));
#else
    const shorts pairs = zip_first8(bytes, zip_last64(bytes, bytes)); /* 0, 8, 1, 9 to 3, 11, and 4, 12 to 7, 15 */
    return zip_first8(pairs, zip_last64(pairs, pairs));
#endif
}

/* A cell of the levels of outputs: four of uint8_t, which are less 128, two of uint16_t or one float. */
INLINE ints join_levels(enum sample sample, const ints *levels)
{
    const bool is_little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    if (sample == SAMPLE_U8) {
        const shorts middle = repeat_short(128), first = add_shorts(pack(levels[0], levels[1]), middle);
        return (ints)transpose_bytes(pack_shorts_unsigned(first, add_shorts(pack(levels[2], levels[3]), middle)));
    }
    if (sample == SAMPLE_U16)
        return levels[!is_little] | shift_left(levels[is_little], 16);
    return levels[0];
}

INLINE void sum_rows_of(const struct resample_taps *taps, enum sample sample, int channels, const int32_t *cells_in,
                        int start, int first, int last, int32_t *out)
{
    const int each = 4 / (int)sample_bytes(sample), inputs = sample == SAMPLE_U8 ? 2 : 1;
    int kind = first % taps->period, number = 0;
    ints levels[4], cell[4] = {{0}};
    for (int x = first; x < last; x++) {
        const int32_t *from = cells_in + (ptrdiff_t)((taps->firsts[x] - start) / inputs) * channels * LANES;
        const size_t at = (size_t)kind * (size_t)taps->count;
        if (sample == SAMPLE_U8 && taps->parts == 2)
            row_levels_pillow(taps->count, channels, from, taps->pairs + 2 * at, levels);
        else if (sample == SAMPLE_U8)
            row_levels8(taps, taps->used[kind], channels, from, taps->pairs + at, levels);
        else if (sample == SAMPLE_U16)
            row_levels16(taps, channels, from, taps->taps + at, levels);
        else
            row_floats(taps, channels, from, taps->taps + at, levels);
        for (int c = 0; c < channels; c++) {
            cell[number++] = levels[c];
            if (number == each || (x == last - 1 && c == channels - 1)) {
                store(out, join_levels(sample, cell));
                out += LANES;
                number = 0;
            }
        }
        kind = kind + 1 == taps->period ? 0 : kind + 1;
    }
}

static void sum_resample_rows(const struct resample_taps *taps, enum sample sample, int channels,
                              const int32_t *cells_in, int start, int first, int last, int32_t *out)
{
    /* Sums stay in registers if the compiler knows their number. */
    if (channels == 1)
        sum_rows_of(taps, sample, 1, cells_in, start, first, last, out);
    else if (channels == 2)
        sum_rows_of(taps, sample, 2, cells_in, start, first, last, out);
    else if (channels == 3)
        sum_rows_of(taps, sample, 3, cells_in, start, first, last, out);
    else
        sum_rows_of(taps, sample, 4, cells_in, start, first, last, out);
}

/* ---- Bytes ---- */

static void widen_bytes(const uint8_t *from, int count, size_t ahead, char *to)
{
    int16_t *words = (int16_t *)(void *)to;
    for (int i = 0; i < count; i += 64)
        __builtin_prefetch(from + i + ahead);
    for (int i = 0; i < count; i++)
        words[i] = from[i];
}

static void narrow_words(const char *from, int count, uint8_t *to)
{
    const int16_t *words = (const int16_t *)(const void *)from;
    for (int i = 0; i < count; i++)
        to[i] = (uint8_t)words[i];
}

const struct resample_loops IN_SET(resample) = {
    .lanes = LANES,
    .vector = VECTOR,
    .pair_rows = pair_two_rows,
    .columns = sum_resample_columns,
    .widen = widen_bytes,
    .narrow = narrow_words,
    .to_cells = to_cells,
    .rows = sum_resample_rows,
    .to_rows = to_rows,
};
