/* SPDX-License-Identifier: MIT
 *
 * Ranks of whole rectangles without histograms: medians of squares by networks, and lowest samples.
 *
 * Minima and maxima work on words. A word has two samples of uint8_t or uint16_t, in its halves, or the rank_key of a
 * float, whose type here is uint32_t. A sample of uint8_t is in the higher byte of its half. The lower byte has any
 * bits: they decide only between equal samples. */
#ifndef GPUCONV_RANK_RECTANGLES_CUH
#define GPUCONV_RANK_RECTANGLES_CUH

#include "base/round.h"
#include "kernels/shared/tile.cuh"
#include "plan/rank.h"

namespace
{
constexpr size_t row_alignment = 128; /* bytes, of planes */
constexpr int warp = 32;

/* ---- Words ---- */

template <typename T>
__device__ __forceinline__ uint32_t lower(uint32_t a, uint32_t b)
{
    return sizeof(T) == 4 ? min(a, b) : __vminu2(a, b);
}

template <typename T>
__device__ __forceinline__ uint32_t upper(uint32_t a, uint32_t b)
{
    return sizeof(T) == 4 ? max(a, b) : __vmaxu2(a, b);
}

/* Let A be the lower samples of A and B, and B the upper ones. */
template <typename T>
__device__ __forceinline__ void order(uint32_t &a, uint32_t &b)
{
    const uint32_t low = lower<T>(a, b);
    b = upper<T>(a, b);
    a = low;
}

/* The median of A <= B and C. */
template <typename T>
__device__ __forceinline__ uint32_t middle(uint32_t a, uint32_t b, uint32_t c)
{
    return upper<T>(a, lower<T>(b, c));
}

/* Sample K of two groups of samples as a word. */
template <typename T>
__device__ __forceinline__ uint32_t join(const uint32_t *first, const uint32_t *second, int k)
{
    if constexpr (sizeof(T) == 4)
        return first[k];
    const int word = k * (int)sizeof(T) / 4, byte = k * (int)sizeof(T) % 4;
    return __byte_perm(first[word], second[word],
                       sizeof(T) == 1 ? 0x4400u + 0x1111u * (unsigned)byte
                       : byte == 0    ? 0x5410u
                                      : 0x7632u);
}

/* The reverse, for eight words: the samples of FIRST and SECOND. */
template <typename T>
__device__ __forceinline__ void split(const uint32_t (&word)[8], uint32_t *first, uint32_t *second)
{
    if constexpr (sizeof(T) == 1) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const uint32_t low = __byte_perm(word[4 * k], word[4 * k + 1], 0x7351);
            const uint32_t high = __byte_perm(word[4 * k + 2], word[4 * k + 3], 0x7351);
            first[k] = __byte_perm(low, high, 0x5410);
            second[k] = __byte_perm(low, high, 0x7632);
        }
    } else if constexpr (sizeof(T) == 2) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            first[k] = __byte_perm(word[2 * k], word[2 * k + 1], 0x5410);
            second[k] = __byte_perm(word[2 * k], word[2 * k + 1], 0x7632);
        }
    } else {
#pragma unroll
        for (int k = 0; k < 8; k++)
            first[k] = word[k];
    }
}

/* ---- Loads and stores ---- */

/* Load BYTES, a multiple of 4, from an address that is a multiple of the largest power of two in BYTES, up to 16. */
template <int BYTES>
__device__ __forceinline__ void load_words(const void *from, uint32_t *words)
{
    if constexpr (BYTES % 16 == 0) {
#pragma unroll
        for (int k = 0; k < BYTES / 16; k++) {
            const uint4 four = __ldg((const uint4 *)from + k);
            words[4 * k] = four.x, words[4 * k + 1] = four.y, words[4 * k + 2] = four.z, words[4 * k + 3] = four.w;
        }
    } else if constexpr (BYTES == 8) {
        const uint2 two = __ldg((const uint2 *)from);
        words[0] = two.x, words[1] = two.y;
    } else {
        words[0] = __ldg((const uint32_t *)from);
    }
}

template <int BYTES>
__device__ __forceinline__ void store_words(void *to, const uint32_t *words)
{
    if constexpr (BYTES % 16 == 0) {
#pragma unroll
        for (int k = 0; k < BYTES / 16; k++)
            __stcs((uint4 *)to + k, make_uint4(words[4 * k], words[4 * k + 1], words[4 * k + 2], words[4 * k + 3]));
    } else {
        __stcs((uint2 *)to, make_uint2(words[0], words[1]));
    }
}

/* Store COUNT samples. Only the first LEFT are inside the image. */
template <typename T, int COUNT>
__device__ __forceinline__ void store_samples(T *to, const uint32_t *words, int left)
{
    if (left >= COUNT) {
        store_words<COUNT *(int)sizeof(T)>(to, words);
        return;
    }
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        if (k < left)
            to[k] = (T)(words[k * (int)sizeof(T) / 4] >> 8 * (k * (int)sizeof(T) % 4));
}

/* Where a kernel's tiles are, and what is outside. */
struct tile_call {
    const unsigned char *in;
    unsigned char *out;
    size_t in_row, in_plane, out_row, out_plane; /* strides in bytes */
    int width, height, planes;
    enum border border;
    int columns, tiles_y, strip; /* tiles side by side, tiles one below the other, rows of a tile */
    int tile_width;              /* columns of outputs of a tile */
    int side, anchor;            /* samples of a window in a row or a column, and the one over the output */
    void *pieces;                /* for the columns of a tall window: `side` words of 16 bytes for each lane; or NULL */
    uint32_t flip;               /* all bits if the highest sample is wanted: it is the lowest of the complements */
};

/* Row Y of a plane, or NULL for the zeros of a border. */
__device__ __forceinline__ const unsigned char *find_row(const struct tile_call &call, const unsigned char *plane,
                                                         int y)
{
    if (y < 0 || y >= call.height)
        y = border_index(y, call.height, call.border);
    return y < 0 ? NULL : plane + (size_t)y * call.in_row;
}

/* The tile of a warp or a block, and its plane. */
struct tile_place {
    int x, y, rows, plane;
};

__device__ __forceinline__ struct tile_place place_tile(const struct tile_call &call, int number)
{
    const int across = number / call.columns, plane = across / call.tiles_y;
    const int y = (across - plane * call.tiles_y) * call.strip;
    return {(number - across * call.columns) * call.tile_width, y, min(call.strip, call.height - y), plane};
}

struct tile_call make_call(const struct plan *plan, const struct plane *in, const struct plane *out)
{
    struct tile_call call = {};
    set_planes(&call, in, out);
    call.width = in->width;
    call.height = in->height;
    call.planes = in->count;
    call.border = plan->border;
    return call;
}

/* ---- Medians by networks ----
 *
 * A warp walks down a strip, two rows at a time. A lane has the outputs of eight words in a row: their samples are half
 * as far apart as the lane's outputs. So all neighbours of a word's samples are in words, too. Rows that both rows of
 * outputs read are put in order once for each column, and columns that two neighbours read are merged once.
 *
 * Minima and maxima for a word, with their part of the words beside the eight:
 *     3 x 3: 5 * 10/8 for the columns, 2 + 2 + 3 for their lowest, highest and middle ones, 4 for the median: 17
 *     5 x 5: 12 * 12/8 for the columns, 26 * 5/8 for pairs of columns, 18 for two pairs, 10 for the median: 62 */

constexpr int network_warps = 4;

/* The samples of a lane in a row: its outputs, and EDGE before and after them, in whole words. */
template <typename T, int RADIUS>
struct network_lane {
    static constexpr int outputs = sizeof(T) == 4 ? 8 : 16, edge = sizeof(T) == 1 ? 4 : 2, samples = outputs + 2 * edge;
    static constexpr int size = (int)sizeof(T), words = samples * size / 4, edge_words = edge * size / 4;

    const struct tile_call &call;
    const unsigned char *plane;
    int x, before[RADIUS], after[RADIUS]; /* what the border gives for the columns beside the image */

    __device__ __forceinline__ network_lane(const struct tile_call &call, int tile_plane, int x)
        : call(call), plane(call.in + tile_plane * call.in_plane), x(x)
    {
#pragma unroll
        for (int i = 0; i < RADIUS; i++) {
            before[i] = border_index(i - RADIUS, call.width, call.border);
            after[i] = border_index(call.width + i, call.width, call.border);
        }
    }

    /* The samples of row Y. Those after the row's end, up to a multiple of 16 bytes, are in its padding. */
    __device__ __forceinline__ void load(int y, uint32_t (&word)[words]) const
    {
        const unsigned char *const row = find_row(call, plane, y);
        const T *const from = (const T *)row + x;
#pragma unroll
        for (int k = 0; k < words; k++)
            word[k] = 0;
        if (row == NULL)
            return;
        load_words<outputs * size>(from, word + edge_words);
        if (x > 0)
            load_words<edge * size>(from - edge, word);
        else
#pragma unroll
            for (int i = 0; i < RADIUS; i++)
                set(word, edge - RADIUS + i, (const T *)row, before[i]);
        if (x + outputs < call.width)
            load_words<edge * size>(from + outputs, word + words - edge_words);
        if (x + outputs + RADIUS > call.width)
#pragma unroll
            for (int i = 0; i < RADIUS; i++)
                set(word, call.width - x + edge + i, (const T *)row, after[i]);
    }

    /* Let sample NUMBER be that of column AT, or 0 if there is none. */
    static __device__ __forceinline__ void set(uint32_t (&word)[words], int number, const T *row, int at)
    {
        const int shift = number * size % 4 * 8;
        const uint32_t all = (UINT32_MAX >> (32 - 8 * size)) << shift;
        const uint32_t sample = at < 0 ? 0 : (uint32_t)row[at] << shift;
#pragma unroll
        for (int k = 0; k < words; k++) {
            const uint32_t mask = number * size / 4 == k ? all : 0; /* no branch, which would move words to memory */
            word[k] = (word[k] & ~mask) | (sample & mask);
        }
    }
};

/* The words of a row, from RADIUS columns before the first output on. */
template <typename T, int RADIUS, int WORDS>
__device__ __forceinline__ void join_row(const uint32_t (&raw)[WORDS], uint32_t (&word)[8 + 2 * RADIUS])
{
#pragma unroll
    for (int k = 0; k < 8 + 2 * RADIUS; k++) {
        word[k] = join<T>(raw, raw + 2 * sizeof(T), network_lane<T, RADIUS>::edge - RADIUS + k);
        if constexpr (sizeof(T) == 4)
            word[k] = rank_key(word[k]);
    }
}

template <typename T, int RADIUS>
__device__ __forceinline__ void load_row(const struct network_lane<T, RADIUS> &lane, int y,
                                         uint32_t (&word)[8 + 2 * RADIUS])
{
    uint32_t raw[network_lane<T, RADIUS>::words];
    lane.load(y, raw);
    join_row<T, RADIUS>(raw, word);
}

/* Store the outputs in row Y. */
template <typename T>
__device__ __forceinline__ void store_row(const struct tile_call &call, const struct tile_place &place, int y, int x,
                                          uint32_t (&word)[8])
{
    uint32_t raw[network_lane<T, 1>::outputs * sizeof(T) / 4];
    if constexpr (sizeof(T) == 4)
#pragma unroll
        for (int k = 0; k < 8; k++)
            word[k] = rank_bits(word[k]);
    split<T>(word, raw, raw + 2 * sizeof(T));
    unsigned char *const row = call.out + place.plane * call.out_plane + y * call.out_row;
    store_samples<T, network_lane<T, 1>::outputs>((T *)row + x, raw, call.width - x);
}

/* The rows that a lane keeps from one step to the next, and the medians of two rows. */
template <typename T, int RADIUS>
struct network;

template <typename T>
struct network<T, 1> {
    static constexpr int columns = 10;
    uint32_t above[columns], row[columns]; /* rows y - 1 and y, for outputs of rows y and y + 1 */

    __device__ __forceinline__ void start(const struct network_lane<T, 1> &lane, int y)
    {
        load_row<T, 1>(lane, y - 1, above);
        load_row<T, 1>(lane, y, row);
    }

    /* The medians of eight words, from columns of which LOW <= HIGH and OTHER are the samples. */
    static __device__ __forceinline__ void find(const uint32_t (&low)[columns], const uint32_t (&high)[columns],
                                                const uint32_t (&other)[columns], uint32_t (&median)[8])
    {
        uint32_t lowest[columns], medians[columns], highest[columns];
#pragma unroll
        for (int k = 0; k < columns; k++) {
            lowest[k] = lower<T>(low[k], other[k]);
            highest[k] = upper<T>(high[k], other[k]);
            medians[k] = middle<T>(low[k], high[k], other[k]);
        }
#pragma unroll
        for (int k = 0; k < 8; k++) {
            const int a = k / 2 * 2 + 1, b = a + 1; /* the columns that the neighbour has, too */
            uint32_t p = upper<T>(upper<T>(lowest[k], lowest[k + 1]), lowest[k + 2]);
            uint32_t q = lower<T>(lower<T>(highest[k], highest[k + 1]), highest[k + 2]);
            order<T>(p, q);
            median[k] = middle<T>(p, q,
                                  middle<T>(lower<T>(medians[a], medians[b]), upper<T>(medians[a], medians[b]),
                                            medians[k % 2 == 0 ? k : k + 2]));
        }
    }

    /* BELOW and LAST are rows y + 1 and y + 2. */
    __device__ __forceinline__ void step(const uint32_t (&below)[columns], const uint32_t (&last)[columns],
                                         uint32_t (&first)[8], uint32_t (&second)[8])
    {
        uint32_t low[columns], high[columns];
#pragma unroll
        for (int k = 0; k < columns; k++) {
            low[k] = lower<T>(row[k], below[k]);
            high[k] = upper<T>(row[k], below[k]);
        }
        find(low, high, above, first);
        find(low, high, last, second);
#pragma unroll
        for (int k = 0; k < columns; k++) {
            above[k] = below[k];
            row[k] = last[k];
        }
    }
};

/* Merge A and B, each in order, into C by Batcher's odd-even merge. */
template <typename T>
__device__ __forceinline__ void merge2(uint32_t a0, uint32_t a1, uint32_t b0, uint32_t b1, uint32_t (&c)[4])
{
    c[0] = a0, c[1] = b0, c[2] = a1, c[3] = b1;
    order<T>(c[0], c[1]);
    order<T>(c[2], c[3]);
    order<T>(c[1], c[2]);
}

template <typename T>
__device__ __forceinline__ void merge5(const uint32_t (&a)[5], const uint32_t (&b)[5], uint32_t (&c)[10])
{
    uint32_t corner[4], odd[4]; /* samples 0 and 4; 1 and 3 */
    merge2<T>(a[0], a[4], b[0], b[4], corner);
    merge2<T>(a[1], a[3], b[1], b[3], odd);
    uint32_t even[6] = {corner[0], a[2], corner[1], b[2], corner[2], corner[3]};
    order<T>(even[1], even[3]);
    order<T>(even[1], even[2]);
    order<T>(even[3], even[4]);
    c[0] = even[0], c[9] = even[5];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        c[2 * i + 1] = odd[i], c[2 * i + 2] = even[i + 1];
        order<T>(c[2 * i + 1], c[2 * i + 2]);
    }
}

/* Numbers 1 and 2 of the four words A <= B and C <= D, in order. */
template <typename T>
__device__ __forceinline__ void merge_middle2(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t (&middle)[2])
{
    middle[0] = upper<T>(a, c);
    middle[1] = lower<T>(b, d);
    order<T>(middle[0], middle[1]);
}

/* Numbers 4 to 6 of the ten words 0, 2, 4, 6 and 8 of A and B, from 0 on, or numbers 3 to 5. */
template <typename T, bool UPPER>
__device__ __forceinline__ void merge_middle3(const uint32_t *a, const uint32_t *b, uint32_t (&middle)[3])
{
    uint32_t even[2], odd[2], center[2] = {a[4], b[4]};
    merge_middle2<T>(a[0], a[8], b[0], b[8], even);
    merge_middle2<T>(a[2], a[6], b[2], b[6], odd);
    order<T>(center[0], center[1]);
    even[0] = upper<T>(even[0], center[0]); /* numbers 2 and 3 of six */
    even[1] = lower<T>(even[1], center[1]);
    uint32_t low[2] = {odd[0], even[0]}, high[2] = {odd[1], even[1]};
    order<T>(low[0], low[1]);
    order<T>(high[0], high[1]);
    middle[0] = UPPER ? low[1] : low[0];
    middle[1] = UPPER ? high[0] : low[1];
    middle[2] = UPPER ? high[1] : high[0];
}

/* Numbers 7 to 12 of the twenty words of A and B, each in order: what Batcher's merge needs for them. */
template <typename T>
__device__ __forceinline__ void merge_middle6(const uint32_t (&a)[10], const uint32_t (&b)[10], uint32_t (&middle)[6])
{
    uint32_t even[3], odd[3];
    merge_middle3<T, true>(a, b, even);
    merge_middle3<T, false>(a + 1, b + 1, odd);
#pragma unroll
    for (int i = 0; i < 3; i++) {
        middle[2 * i] = odd[i], middle[2 * i + 1] = even[i];
        order<T>(middle[2 * i], middle[2 * i + 1]);
    }
}

template <typename T>
struct network<T, 2> {
    static constexpr int columns = 12;
    uint32_t above[columns];               /* row y - 2, for outputs of rows y and y + 1 */
    uint32_t low[columns], high[columns];  /* rows y - 1 and y in order */
    uint32_t row[columns], below[columns]; /* rows y and y + 1 */

    __device__ __forceinline__ void start(const struct network_lane<T, 2> &lane, int y)
    {
        load_row<T, 2>(lane, y - 2, above);
        load_row<T, 2>(lane, y - 1, low);
        load_row<T, 2>(lane, y, row);
        load_row<T, 2>(lane, y + 1, below);
#pragma unroll
        for (int k = 0; k < columns; k++) {
            high[k] = row[k];
            order<T>(low[k], high[k]);
        }
    }

    /* The medians of eight words, from columns of which FOUR are in order and OTHER is the fifth sample. */
    static __device__ __forceinline__ void find(const uint32_t (&four)[columns][4], const uint32_t (&other)[columns],
                                                uint32_t (&median)[8])
    {
        uint32_t column[columns][5], pair[5][10];
#pragma unroll
        for (int k = 0; k < columns; k++) {
            column[k][0] = lower<T>(four[k][0], other[k]);
#pragma unroll
            for (int i = 1; i < 4; i++)
                column[k][i] = middle<T>(four[k][i - 1], four[k][i], other[k]);
            column[k][4] = upper<T>(four[k][3], other[k]);
        }
#pragma unroll
        for (int k = 0; k < 5; k++)
            merge5<T>(column[2 * k + 1], column[2 * k + 2], pair[k]);
#pragma unroll
        for (int k = 0; k < 4; k++) {
            /* With five more samples, only numbers 7 to 12 of the 20 that outputs 2 k and 2 k + 1 share can be the
             * median. */
            uint32_t shared[6];
            merge_middle6<T>(pair[k], pair[k + 1], shared);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                uint32_t least = shared[5]; /* number 5 of these six and the output's own five */
#pragma unroll
                for (int j = 0; j < 5; j++)
                    least = lower<T>(least, upper<T>(shared[j], column[2 * k + 5 * i][4 - j]));
                median[2 * k + i] = least;
            }
        }
    }

    /* NEXT and LAST are rows y + 2 and y + 3. */
    __device__ __forceinline__ void step(const uint32_t (&next)[columns], const uint32_t (&last)[columns],
                                         uint32_t (&first)[8], uint32_t (&second)[8])
    {
        uint32_t four[columns][4];
#pragma unroll
        for (int k = 0; k < columns; k++) {
            const uint32_t next_low = lower<T>(below[k], next[k]), next_high = upper<T>(below[k], next[k]);
            merge2<T>(low[k], high[k], next_low, next_high, four[k]);
            low[k] = next_low;
            high[k] = next_high;
        }
        find(four, above, first);
        find(four, last, second);
#pragma unroll
        for (int k = 0; k < columns; k++) {
            above[k] = row[k];
            row[k] = next[k];
            below[k] = last[k];
        }
    }
};

template <typename T, int RADIUS>
__global__ void __launch_bounds__(warp *network_warps, RADIUS == 1 ? 5 : 3)
    find_medians(const __grid_constant__ struct tile_call call)
{
    constexpr int words = network_lane<T, RADIUS>::words;
    const struct tile_place place = place_tile(call, (int)blockIdx.x * network_warps + (int)threadIdx.y);
    const int x = place.x + (int)threadIdx.x * network_lane<T, RADIUS>::outputs;
    if (place.plane >= call.planes || x >= call.width)
        return;
    const struct network_lane<T, RADIUS> lane(call, place.plane, x);
    struct network<T, RADIUS> network;
    network.start(lane, place.y);
    uint32_t raw[2][words]; /* the next rows: they are loaded a step before they are used */
    if (RADIUS == 1) {
        lane.load(place.y + RADIUS, raw[0]);
        lane.load(place.y + RADIUS + 1, raw[1]);
    }
#pragma unroll 1
    for (int y = place.y; y < place.y + place.rows; y += 2) {
        uint32_t first[8], second[8], next[8 + 2 * RADIUS], last[8 + 2 * RADIUS];
        if (RADIUS == 2) {
            lane.load(y + RADIUS, raw[0]);
            lane.load(y + RADIUS + 1, raw[1]);
        }
        join_row<T, RADIUS>(raw[0], next);
        join_row<T, RADIUS>(raw[1], last);
        if (RADIUS == 1) {
            lane.load(y + RADIUS + 2, raw[0]);
            lane.load(y + RADIUS + 3, raw[1]);
        }
        network.step(next, last, first, second);
        store_row<T>(call, place, y, x, first);
        if (y + 1 < call.height)
            store_row<T>(call, place, y + 1, x, second);
    }
}

template <typename T>
bool queue_medians(const struct plan *plan, const struct plane *in, const struct plane *out, struct device *device,
                   struct error *error)
{
    const bool is_3 = plan->filter->rank.width == 3;
    struct tile_call call = make_call(plan, in, out);
    call.tile_width = warp * network_lane<T, 1>::outputs;
    call.columns = (in->width + call.tile_width - 1) / call.tile_width;
    choose_strip(&call, in, 2, 4, (double)device_get_info(device)->multiprocessors * (is_3 ? 24 : 12));
    const int tiles = call.columns * call.tiles_y * in->count;
    void (*const kernel)(struct tile_call) = is_3 ? find_medians<T, 1> : find_medians<T, 2>;
    return queue_kernel(kernel, dim3((unsigned)((tiles + network_warps - 1) / network_warps)),
                        dim3(warp, network_warps), 0, device, error, call);
}

/* ---- Lowest samples ----
 *
 * First of rows, by a block. A thread has eight columns of two rows, or of one of floats. It writes the lowest of its
 * samples from each column on, and up to each column, to shared memory. The window of an output is the end of one
 * thread's columns, all columns of some, and the begin of another's:
 *
 *     [. . . . . x x x][x x x x x x x x][x x . . . . . .]
 *
 * Then of columns, by a warp that walks down, in the same way: it has pieces of rows as high as the window. It goes up
 * through a piece, and keeps the lowest samples from each row on in shared memory. Then it goes down through the next
 * piece. The time does not depend on the sides of the window, but for the reads of whole threads. */

/* Eight samples of a row from column X on, or four floats, some of them outside the image. Not inlined, because few
 * threads need it. */
template <typename T>
__device__ __noinline__ uint4 gather_samples(const T *row, int x, int width, enum border border)
{
    uint32_t word[4] = {};
#pragma unroll
    for (int k = 0; k < 16 / max((int)sizeof(T), 2); k++) {
        const int at = border_index(x + k, width, border);
        word[k * (int)sizeof(T) / 4] |= (at < 0 ? 0 : (uint32_t)row[at]) << 8 * (k * (int)sizeof(T) % 4);
    }
    return make_uint4(word[0], word[1], word[2], word[3]);
}

/* Eight samples of row Y from column X on. */
template <typename T>
__device__ __forceinline__ void load_eight(const struct tile_call &call, const unsigned char *plane, int y, int x,
                                           uint32_t (&word)[2 * sizeof(T)])
{
    const T *const row = (const T *)find_row(call, plane, y);
    if (row != NULL && x >= 0 && x + 8 <= call.width) {
        load_words<8 * (int)sizeof(T)>(row + x, word);
        return;
    }
#pragma unroll
    for (int i = 0; i < 2 * (int)sizeof(T); i += 4) {
        const uint4 four = row == NULL ? make_uint4(0, 0, 0, 0) : gather_samples(row, x + i, call.width, call.border);
        word[i] = four.x, word[i + 1] = four.y;
        if constexpr (sizeof(T) > 1)
            word[i + 2] = four.z, word[i + 3] = four.w;
    }
}

/* Where a thread's word of column K is, from its first one on. One word is left out after eight, so that threads side
 * by side use all banks. */
__device__ __forceinline__ int padded(int k)
{
    return k + k / 8;
}

/* Let windows that begin side by side be wider by STEP samples. They have at least as many. */
template <typename T, int STEP>
__device__ __forceinline__ void widen(uint32_t (&lowest)[15], bool is_wider)
{
    if (is_wider)
#pragma unroll
        for (int k = 0; k + STEP < 15; k++)
            lowest[k] = lower<T>(lowest[k], lowest[k + STEP]);
}

template <typename T>
__global__ void __launch_bounds__(256, 4) find_lowest_in_rows(const __grid_constant__ struct tile_call call)
{
    constexpr int joined = sizeof(T) == 4 ? 1 : 2; /* rows of a word */
    extern __shared__ uint32_t memory[];
    const int threads = (int)blockDim.x, thread = (int)threadIdx.x, side = call.side;
    const struct tile_place place = place_tile(call, (int)blockIdx.x);
    const int lead = (call.anchor + 7) / 8 * 8, low = lead - call.anchor;
    const int x = place.x - lead + 8 * thread, to_x = x + lead;
    const bool has_outputs = 8 * thread < call.tile_width && to_x < call.width;
    const unsigned char *const plane = call.in + place.plane * call.in_plane;
    unsigned char *to = call.out + place.plane * call.out_plane + place.y * call.out_row + to_x * (int)sizeof(T);
    const int carry = 8 - low; /* outputs from this one on begin in the next thread's columns */
    uint32_t raw[2][2 * sizeof(T)] = {};
#pragma unroll
    for (int r = 0; r < joined; r++)
        load_eight<T>(call, plane, place.y + r, x, raw[r]);
    uint32_t *from = memory + 9 * thread; /* the lowest samples from a column on, and beside them up to a column */
    const int upto = 9 * threads;
#pragma unroll 1
    for (int y = 0; y < place.rows; y += joined, to += joined * call.out_row) {
        uint32_t word[8];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            word[k] = join<T>(raw[0], raw[1], k);
            if constexpr (sizeof(T) == 4)
                word[k] = rank_key(word[k]);
            word[k] ^= call.flip;
        }
        if (y + joined < place.rows)
#pragma unroll
            for (int r = 0; r < joined; r++)
                load_eight<T>(call, plane, place.y + y + joined + r, x, raw[r]);
        uint32_t lowest = word[0];
#pragma unroll
        for (int k = 0; k < 8; k++) { /* for a narrow window, the samples themselves */
            lowest = side <= 8 ? word[k] : lower<T>(lowest, word[k]);
            from[upto + k] = lowest;
        }
        if (side > 8) {
            lowest = word[7];
#pragma unroll
            for (int k = 7; k >= 0; k--) {
                lowest = lower<T>(lowest, word[k]);
                from[k] = lowest;
            }
        }
        __syncthreads();
        if (has_outputs) {
            if (side <= 8) {
                uint32_t sample[15];
#pragma unroll
                for (int k = 0; k < 15; k++)
                    sample[k] = k < 7 + side ? from[upto + padded(low + k)] : UINT32_MAX;
                widen<T, 1>(sample, side >= 2);
                widen<T, 2>(sample, side >= 4);
                widen<T, 4>(sample, side >= 8);
                widen<T, 1>(sample, side == 3 || side == 5 || side == 7);
                widen<T, 2>(sample, side == 6 || side == 7);
#pragma unroll
                for (int k = 0; k < 8; k++)
                    word[k] = sample[k];
            } else {
                const int end = low + side - 1, last = end / 8; /* the thread with the first output's last sample */
                const int end_carry = 8 - end % 8;
                uint32_t whole = UINT32_MAX; /* the lowest sample of threads that are in all windows */
                for (int t = 2; t < last; t++)
                    whole = lower<T>(whole, from[upto + 9 * t + 7]);
                /* Outputs before `carry` also have the columns of the next thread, and from end_carry on those of
                 * thread `last`, if these are whole. */
                const uint32_t next = from[upto + 9 + 7], final = from[upto + 9 * last + 7];
#pragma unroll
                for (int k = 0; k < 8; k++) {
                    uint32_t least =
                        lower<T>(from[low + k + (k >= carry)], from[upto + end + last + k + (k >= end_carry)]);
                    const int last_of = last + (k >= end_carry), first_of = k >= carry;
                    least = lower<T>(least, whole);
                    if (first_of == 0 && last_of > 1)
                        least = lower<T>(least, next);
                    if (k >= end_carry && last > first_of)
                        least = lower<T>(least, final);
                    word[k] = least;
                }
            }
            uint32_t result[2][2 * sizeof(T)];
            split<T>(word, result[0], result[1]);
#pragma unroll
            for (int r = 0; r < joined; r++)
                if (y + r < place.rows)
                    store_words<8 * (int)sizeof(T)>(to + r * call.out_row, result[r]);
        }
        from = from == memory + 9 * thread ? from + 18 * threads : memory + 9 * thread;
    }
}

template <typename T>
__device__ __forceinline__ uint4 lower_of(const uint4 &a, const uint4 &b)
{
    if constexpr (sizeof(T) == 1)
        return make_uint4(__vminu4(a.x, b.x), __vminu4(a.y, b.y), __vminu4(a.z, b.z), __vminu4(a.w, b.w));
    else
        return make_uint4(lower<T>(a.x, b.x), lower<T>(a.y, b.y), lower<T>(a.z, b.z), lower<T>(a.w, b.w));
}

/* A lane has 16 bytes of a row. Its piece has been gone through from the end on up to the row of the output. Before it
 * are the samples of the next piece. */
template <typename T>
__global__ void __launch_bounds__(warp) find_lowest_in_columns(const __grid_constant__ struct tile_call call)
{
    extern __shared__ uint4 own_pieces[];
    const struct tile_place place = place_tile(call, (int)blockIdx.x);
    const int x = place.x + (int)threadIdx.x * 16 / (int)sizeof(T), side = call.side;
    const uint32_t outside = call.flip ^ (sizeof(T) == 4 ? 0x80000000 : 0);
    if (x >= call.width)
        return;
    const unsigned char *const plane = call.in + place.plane * call.in_plane + x * (int)sizeof(T);
    unsigned char *to = call.out + place.plane * call.out_plane + place.y * call.out_row;
    uint4 *const piece =
        (call.pieces != NULL ? (uint4 *)call.pieces + (size_t)blockIdx.x * side * warp : own_pieces) + threadIdx.x;
    const auto load = [&](int y) {
        const unsigned char *const row = find_row(call, plane, y);
        return row == NULL ? make_uint4(outside, outside, outside, outside) : __ldg((const uint4 *)row);
    };
    const int first = place.y - call.anchor;
#pragma unroll 4
    for (int i = 0; i < side; i++)
        piece[i * warp] = load(first + i);
#pragma unroll 1
    for (int start = 0; start < place.rows; start += side) {
        uint4 lowest = piece[(side - 1) * warp];
#pragma unroll 4
        for (int i = side - 2; i >= 0; i--) {
            lowest = lower_of<T>(lowest, piece[i * warp]);
            piece[i * warp] = lowest;
        }
        lowest = make_uint4(UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX);
#pragma unroll 4
        for (int i = 0; i < min(side, place.rows - start); i++, to += call.out_row) {
            const uint4 found = lower_of<T>(lowest, piece[i * warp]);
            const uint4 next = load(first + start + side + i);
            lowest = lower_of<T>(lowest, next);
            piece[i * warp] = next;
            uint32_t word[4] = {found.x ^ call.flip, found.y ^ call.flip, found.z ^ call.flip, found.w ^ call.flip};
            if constexpr (sizeof(T) == 4)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    word[k] = rank_bits(word[k]);
            store_samples<T, 16 / (int)sizeof(T)>((T *)to + x, word, call.width - x);
        }
    }
}

/* Bytes of a warp's piece in shared memory at most, but for uint8_t. More would leave room for few warps: pieces of 127
 * rows in device memory take 0.7 of the time for uint16_t, and 1.5 of it for uint8_t. */
constexpr size_t shared_piece = 16384;

/* Bytes of scratch memory for all pieces of LIKE's planes, 0 if they are in shared memory. Strips are at least as high
 * as pieces. */
size_t find_piece_bytes(const struct rank *rank, const struct plane *like)
{
    const size_t row = round_up((size_t)like->width * sample_bytes(like->sample), warp * 16);
    return like->sample != SAMPLE_U8 && (size_t)rank->height * warp * 16 > shared_piece
               ? row * (size_t)(like->height + rank->height) * (size_t)like->count
               : 0;
}

/* ROWS are scratch planes for the lowest, or the highest, samples of rows. T is the type of a sample or, for floats, of
 * its bits. */
template <typename T>
bool queue_extremes(const struct plan *plan, bool is_highest, const struct plane *in, const struct plane *out,
                    const struct plane *rows, void *pieces, struct device *device, struct error *error)
{
    const struct rank *rank = &plan->filter->rank;
    const double multiprocessors = device_get_info(device)->multiprocessors;
    struct tile_call call = make_call(plan, in, rows);
    call.flip = is_highest ? UINT32_MAX : 0;
    call.side = rank->width;
    call.anchor = rank->anchor_x;
    const int beyond = (7 + round_up(rank->anchor_x, 8) - rank->anchor_x + rank->width - 1) / 8; /* threads */
    int threads = 0;
    for (int tried = 64; tried <= 256; tried += 32) {
        const int columns = (in->width + 8 * (tried - beyond) - 1) / (8 * (tried - beyond));
        if (threads == 0 || columns * tried < call.columns * threads) {
            threads = tried;
            call.columns = columns;
        }
    }
    call.tile_width = 8 * (threads - beyond);
    choose_strip(&call, in, 2, 1, multiprocessors * 1024 / threads);
    if (!launch_blocks(find_lowest_in_rows<T>, call, call.columns * call.tiles_y * in->count, dim3((unsigned)threads),
                       (size_t)threads * 36 * 4, plan->filter->name, device, error))
        return false;

    const struct tile_call first = call;
    call = make_call(plan, rows, out);
    call.flip = first.flip;
    call.side = rank->height;
    call.anchor = rank->anchor_y;
    call.tile_width = warp * 16 / (int)sizeof(T);
    call.columns = (in->width + call.tile_width - 1) / call.tile_width;
    const size_t bytes = (size_t)rank->height * warp * 16;
    choose_strip(&call, in, rank->height, rank->height, multiprocessors * 24);
    const int tiles = call.columns * call.tiles_y * in->count;
    call.pieces = find_piece_bytes(rank, in) > 0 ? pieces : NULL;
    return launch_blocks(find_lowest_in_columns<T>, call, tiles, dim3(warp), call.pieces == NULL ? bytes : 0,
                         plan->filter->name, device, error);
}
} // namespace

#endif
