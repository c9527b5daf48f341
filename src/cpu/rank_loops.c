/* SPDX-License-Identifier: MIT
 *
 * Tiles of a pass of ranks, compiled once for each instruction set. Input rows have no border: rows at the border are
 * copied with it. Neighbours are as far apart as pixels are, so planes that are together are one wide plane for the
 * lowest and highest sample and for networks. */
#include "base/inline.h"
#include "base/round.h"
#include "cpu/cpu.h"
#include "cpu/rank.h"

#include <string.h>

/* The keys that a loop reads are none that it has written, but at the same column. */
#ifdef __clang__
#define IVDEP
#else
#define IVDEP _Pragma("GCC ivdep") _Pragma("GCC unroll 4")
#endif

#define LOWER(a, b) ((a) < (b) ? (a) : (b))
#define HIGHER(a, b) ((a) > (b) ? (a) : (b))
#define SUM(a, b) ((a) + (b))

/* ---- Histograms ---- */

/* How many samples of the window have each number, and each number >> SHIFT. BELOW is the sum of the first COARSE of
 * these. */
struct histogram {
    uint16_t fine[1 << 16], coarse[1 << 8];
};

/* The number of rank INDEX. *BELOW samples have numbers below *COARSE << SHIFT, which changes. */
INLINE int find_number(const struct histogram *h, int index, int shift, int *below, int *coarse)
{
    while (*below > index)
        *below -= h->coarse[--*coarse];
    while (*below + h->coarse[*coarse] <= index)
        *below += h->coarse[(*coarse)++];
    const uint16_t *fine = h->fine + *coarse * (1 << shift);
    for (int left = index - *below;;) {
        unsigned sum = 0;
        for (int i = 0; i < 16; i++)
            sum += fine[i];
        if ((int)sum <= left) {
            left -= (int)sum;
            fine += 16;
            continue;
        }
        while (*fine <= left)
            left -= *fine++;
        return (int)(fine - h->fine);
    }
}

/* Numbers of the tile's outputs, from those of its input. The window goes to and fro, one row after the other. */
INLINE void walk(const struct rank_tiling *tiling, int width, int height, int shift, const uint16_t *in,
                 struct histogram *h, uint16_t *out)
{
    const int pitch = tiling->pitch, index = tiling->run->index;
    int below = 0, coarse = 0;
    memset(h, 0, sizeof *h);
    for (int i = 0; i < tiling->sample_count; i++)
        for (int k = 0; k < tiling->samples[i].count; k++) {
            const int number = in[tiling->samples[i].y * pitch + tiling->samples[i].x + k];
            h->fine[number]++;
            h->coarse[number >> shift]++;
        }
    for (int y = 0, x = 0;; y++, in += pitch, out += pitch) {
        const int direction = y % 2, last = direction == 0 ? width - 1 : 0;
        for (;; x += 1 - 2 * direction) {
            out[x] = (uint16_t)find_number(h, index, shift, &below, &coarse);
            const int move = x == last ? 2 : direction;
            if (x == last && y == height - 1)
                return;
            const int32_t *entering = tiling->entering[move], *leaving = tiling->leaving[move];
            for (int i = 0; i < tiling->move_counts[move]; i++) {
                const int enters = in[x + entering[i]], leaves = in[x + leaving[i]];
                h->fine[enters]++;
                h->fine[leaves]--;
                h->coarse[enters >> shift]++;
                h->coarse[leaves >> shift]--;
                below += (enters >> shift < coarse) - (leaves >> shift < coarse);
            }
            if (x == last)
                break;
        }
    }
}

/* Number the distinct keys of COUNT pairs in their order. A pair is a key and, in its low 32 bits, the place of its
 * number in NUMBERS. KEYS gets the key of each number. The pairs and OTHER change. */
static void number_keys(uint64_t *pairs, uint64_t *other, int count, uint32_t *keys, uint16_t *numbers)
{
    for (int shift = 32; shift < 64; shift += 8) {
        int starts[257] = {0};
        for (int i = 0; i < count; i++)
            starts[(pairs[i] >> shift & 255) + 1]++;
        for (int k = 0; k < 256; k++)
            starts[k + 1] += starts[k];
        for (int i = 0; i < count; i++)
            other[starts[pairs[i] >> shift & 255]++] = pairs[i];
        uint64_t *const sorted = other;
        other = pairs;
        pairs = sorted;
    }
    for (int i = 0, number = -1; i < count; i++) {
        const uint32_t key = (uint32_t)(pairs[i] >> 32);
        if (i == 0 || key != keys[number])
            keys[++number] = key;
        numbers[(uint32_t)pairs[i]] = (uint16_t)number;
    }
}

/* ---- Keys of each type ---- */

#define KEY uint8_t
#define NAME(x) x##_8
#define TO_KEY(sample) (sample)
#define FROM_KEY(key) (key)
#include "cpu/rank_keys.h"
#undef KEY
#undef NAME
#define KEY uint16_t
#define NAME(x) x##_16
#include "cpu/rank_keys.h"
#undef KEY
#undef NAME
#undef TO_KEY
#undef FROM_KEY
#define KEY uint32_t
#define NAME(x) x##_float
#define TO_KEY(sample) rank_key(sample)
#define FROM_KEY(key) rank_bits(key)
#include "cpu/rank_keys.h"

/* ---- Thresholds ---- */

/* A tile of one channel. Rows of all arrays are PITCH apart. */
struct thresholds {
    const struct rank_tiling *tiling;
    const uint8_t *in;
    uint8_t *out;           /* the level that each output has at least, as far as it is known; else 255 */
    uint8_t *counts, *sums; /* samples below a level in one column of a window, and in the window */
    uint16_t *counts16, *sums16;
};

/* TO[x] = FROM[x], and 1 more if ENTERING is below LEVEL, and 1 less if LEAVING is. */
static void count_below(const uint8_t *entering, const uint8_t *leaving, uint8_t level, int columns,
                        const uint8_t *from, uint8_t *to)
{
    if (leaving == NULL)
        IVDEP for (int x = 0; x < columns; x++) to[x] = (uint8_t)(from[x] + (entering[x] < level));
    else
        IVDEP for (int x = 0; x < columns; x++) to[x] =
            (uint8_t)(from[x] + (entering[x] < level) - (leaving[x] < level));
}

/* Outputs of LOW or more are MIDDLE or more, if the sum of samples below MIDDLE is at most INDEX. Returns whether some
 * stay LOW (bit 0), and whether some rise (bit 1). */
#define RAISE(name, type)                                                                                              \
    static int name(const type *sums, int index, uint8_t low, uint8_t middle, int count, uint8_t *out)                 \
    {                                                                                                                  \
        uint8_t stays = 0, rises = 0;                                                                                  \
        const type bound = (type)index;                                                                                \
        IVDEP for (int x = 0; x < count; x++)                                                                          \
        {                                                                                                              \
            const uint8_t is_low = out[x] == low ? 255 : 0, rise = is_low & (sums[x] <= bound ? 255 : 0);              \
            rises |= rise;                                                                                             \
            stays |= is_low ^ rise;                                                                                    \
            out[x] = (uint8_t)((out[x] & ~rise) | (middle & rise));                                                    \
        }                                                                                                              \
        return (stays != 0) + 2 * (rises != 0);                                                                        \
    }
RAISE(raise_8, uint8_t)
RAISE(raise_16, uint16_t)

/* Outputs that have the level LOW so far, in rows from FIRST to the one before LAST; they are below HIGH. */
struct range {
    int low, high, first, last;
};

/* Raise the outputs of RANGE that are in the upper half of its levels. LOWER and UPPER become the ranges of both
 * halves. They have no rows if they have no outputs. */
static void split_range(const struct thresholds *t, const struct range *range, struct range *lower, struct range *upper)
{
    enum { ROWS = 4 }; /* that are looked at together */
    const struct rank_tiling *tiling = t->tiling;
    const struct rank *rank = &tiling->run->plan->filter->rank;
    const int first = range->first, last = range->last, low = range->low, middle = (low + range->high) / 2;
    const int pitch = tiling->pitch, index = tiling->run->index;
    const int count = (last - first) * pitch - (rank->width - 1);
    memset(t->counts, 0, (size_t)pitch);
    for (int i = 0; i < rank->height; i++)
        count_below(t->in + (ptrdiff_t)(first + i) * pitch, NULL, (uint8_t)middle, pitch, t->counts, t->counts);
    for (int y = 1; y < last - first; y++) {
        const uint8_t *leaving = t->in + (ptrdiff_t)(first + y - 1) * pitch;
        uint8_t *to = t->counts + (ptrdiff_t)y * pitch;
        count_below(leaving + (ptrdiff_t)rank->height * pitch, leaving, (uint8_t)middle, pitch, to - pitch, to);
    }
    const bool is_small = rank->count <= UINT8_MAX;
    if (is_small) {
        across_8(sum_8, tiling->factors, rank->width, 1, t->counts, count, t->sums + RANK_TILE * pitch, t->sums);
    } else {
        IVDEP for (int x = 0; x < (last - first) * pitch; x++) t->counts16[x] = t->counts[x];
        across_16(sum_16, tiling->factors, rank->width, 1, t->counts16, count, t->sums16 + RANK_TILE * pitch,
                  t->sums16);
    }
    struct range *const halves[2] = {lower, upper}; /* outputs stay, or rise */
    *lower = (struct range){low, middle, last, first};
    *upper = (struct range){middle, range->high, last, first};
    for (int y = first, end; y < last; y = end) {
        end = last - y < ROWS ? last : y + ROWS;
        const ptrdiff_t row = (ptrdiff_t)(y - first) * pitch;
        const int outputs = (end - y) * pitch;
        uint8_t *out = t->out + (ptrdiff_t)y * pitch;
        const int found = is_small ? raise_8(t->sums + row, index, (uint8_t)low, (uint8_t)middle, outputs, out)
                                   : raise_16(t->sums16 + row, index, (uint8_t)low, (uint8_t)middle, outputs, out);
        for (int side = 0; side < 2; side++)
            if (found >> side & 1) {
                halves[side]->first = halves[side]->first < y ? halves[side]->first : y;
                halves[side]->last = end;
            }
    }
}

/* The outputs of ROWS rows are LOW or more, and below HIGH. Find them. 256 levels are halved at most 8 times, and one
 * half waits each time, so at most 9 ranges wait. */
static void find_outputs(const struct thresholds *t, int low, int high, int rows)
{
    enum { RANGES = 16 };
    struct range ranges[RANGES] = {{low, high, 0, rows}};
    for (int count = 1; count > 0 && !cpu_is_stopped(t->tiling->run->plan->stop);) {
        const struct range range = ranges[--count];
        if (range.high - range.low <= 1 || range.first >= range.last)
            continue;
        split_range(t, &range, &ranges[count], &ranges[count + 1]);
        count += 2;
    }
}

/* A rank of uint8_t in a rectangle, by bisection of the levels. The cost does not depend on the window's area, but on
 * how many levels the outputs of a tile have. */
static void run_thresholds(const struct rank_tiling *tiling, const struct rank_tile *tile, char *scratch)
{
    const struct rank *rank = &tiling->run->plan->filter->rank;
    const int pitch = tiling->pitch, rows = tile->y1 - tile->y0 + rank->height - 1;
    const size_t block = (size_t)pitch * RANK_TILE;
    uint8_t *in = (uint8_t *)scratch, low = UINT8_MAX, high = 0;
    const int outputs = tile->x1 - tile->x0, columns = outputs + rank->width - 1;
    struct thresholds t = {.tiling = tiling,
                           .in = in,
                           .out = in + 2 * block,
                           .counts = in + 3 * block,
                           .sums = in + 4 * block,
                           .counts16 = (uint16_t *)(in + 4 * block),
                           .sums16 = (uint16_t *)(in + 6 * block)};
    for (int row = 0; row < rows; row++, in += pitch) {
        load_8(tiling, tile->channel, tile->y0 + row - rank->anchor_y, tile->x0 - rank->anchor_x, columns, in);
        memset(in + columns, in[0], (size_t)(pitch - columns));
        for (int x = 0; x < pitch; x++) {
            low = LOWER(low, in[x]);
            high = HIGHER(high, in[x]);
        }
    }
    for (int y = 0; y < tile->y1 - tile->y0; y++) {
        memset(t.out + (ptrdiff_t)y * pitch, low, (size_t)outputs);
        memset(t.out + (ptrdiff_t)y * pitch + outputs, UINT8_MAX, (size_t)(pitch - outputs));
    }
    find_outputs(&t, low, high + 1, tile->y1 - tile->y0);
    for (int y = tile->y0; y < tile->y1; y++)
        put_8(tiling, tile, y, t.out + (ptrdiff_t)(y - tile->y0) * pitch);
}

/* ---- Tiles ---- */

#define RUN(name, key)                                                                                                 \
    static void name(const struct rank_tiling *tiling, const struct rank_tile *tile, char *scratch)                    \
    {                                                                                                                  \
        const struct rank *rank = &tiling->run->plan->filter->rank;                                                    \
        if (tiling->method == RANK_THRESHOLDS)                                                                         \
            run_thresholds(tiling, tile, scratch);                                                                     \
        else if (tiling->method == RANK_HISTOGRAM)                                                                     \
            histogram_##key(tiling, tile, scratch);                                                                    \
        else if (tiling->method == RANK_NETWORK)                                                                       \
            medians_##key(tiling, tile, (void *)scratch);                                                              \
        else if (rank->count == rank->width * rank->height)                                                            \
            rectangle_##key(tiling, tile, (void *)scratch);                                                            \
        else                                                                                                           \
            ends_##key(tiling, tile, (void *)scratch);                                                                 \
    }
RUN(run_8, 8)
RUN(run_16, 16)
RUN(run_float, float)

const struct rank_loops IN_SET(rank_loops) = {{[SAMPLE_U8] = run_8, [SAMPLE_U16] = run_16, [SAMPLE_F32] = run_float}};
