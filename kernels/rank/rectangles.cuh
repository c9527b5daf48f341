/* SPDX-License-Identifier: MIT
 *
 * Ranks of whole rectangles without histograms: medians of squares by networks, and lowest samples.
 *
 * A network is minima and maxima of two samples. They work on words. A word has two samples of uint8_t or uint16_t, in
 * its halves, or the rank_key of a float, whose type here is uint32_t. A sample of uint8_t is in the higher byte of its half. The lower byte has any
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
    uint32_t flip;               /* all bits if the highest sample is wanted: it is the lowest of the complements */
};

/* The samples of a thread in rows: COUNT from column X on. If some are outside the image, INDEX has the columns that
 * the border gives for them, STEP words apart. */
template <typename T, int COUNT, int EDGE>
struct row_loader {
    static constexpr int words = COUNT * (int)sizeof(T) / 4, edge_words = EDGE * (int)sizeof(T) / 4;

    const struct tile_call &call;
    const unsigned char *plane;
    int x, step;
    int *index;
    bool is_inside;

    __device__ __forceinline__ row_loader(const struct tile_call &call, int tile_plane, int x, int *index, int step)
        : call(call), plane(call.in + tile_plane * call.in_plane), x(x), step(step), index(index),
          is_inside(x >= 0 && x + COUNT <= call.width)
    {
        if (!is_inside)
#pragma unroll 1
            for (int k = 0; k < COUNT; k++)
                index[k * step] = border_index(x + k, call.width, call.border);
    }

    /* The samples of row Y, a float as its bits. The first EDGE and the last are loaded by themselves, because the
     * others are aligned. */
    __device__ __forceinline__ void load(int y, uint32_t *word) const
    {
        if (y < 0 || y >= call.height)
            y = border_index(y, call.height, call.border);
        const unsigned char *const row = plane + (size_t)max(y, 0) * call.in_row;
        if (is_inside && y >= 0) {
            const T *const from = (const T *)row + x;
            if constexpr (EDGE > 0) {
                load_words<EDGE *(int)sizeof(T)>(from, word);
                load_words<EDGE *(int)sizeof(T)>(from + COUNT - EDGE, word + words - edge_words);
            }
            load_words<(COUNT - 2 * EDGE) * (int)sizeof(T)>(from + EDGE, word + edge_words);
            return;
        }
#pragma unroll
        for (int k = 0; k < words; k++)
            word[k] = 0;
        if (y >= 0)
#pragma unroll
            for (int k = 0; k < COUNT; k++) {
                const int at = index[k * step];
                const uint32_t sample = at < 0 ? 0 : (uint32_t)((const T *)row)[at];
                word[k * (int)sizeof(T) / 4] |= sample << 8 * (k * (int)sizeof(T) % 4);
            }
    }
};

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
 *     5 x 5: 12 * 12/8 for the columns, 26 * 5/8 for pairs of columns, 29 for two pairs, 10 for the median: 73 */

constexpr int network_warps = 4;

template <typename T>
struct network_lane {
    static constexpr int outputs = sizeof(T) == 4 ? 8 : 16;
    static constexpr int edge = sizeof(T) == 1 ? 4 : 2; /* samples before the outputs and after them, in whole words */
    static constexpr int samples = outputs + 2 * edge;
    typedef struct row_loader<T, samples, edge> loader;
};

/* The words of row Y, from RADIUS columns before the first output on. */
template <typename T, int RADIUS>
__device__ __forceinline__ void load_row(const typename network_lane<T>::loader &loader, int y,
                                         uint32_t (&word)[8 + 2 * RADIUS])
{
    uint32_t raw[network_lane<T>::loader::words];
    loader.load(y, raw);
#pragma unroll
    for (int k = 0; k < 8 + 2 * RADIUS; k++) {
        word[k] = join<T>(raw, raw + 2 * sizeof(T), network_lane<T>::edge - RADIUS + k);
        if constexpr (sizeof(T) == 4)
            word[k] = rank_key(word[k]);
    }
}

/* Store the outputs in row Y. */
template <typename T>
__device__ __forceinline__ void store_row(const struct tile_call &call, const struct tile_place &place, int y, int x,
                                          uint32_t (&word)[8])
{
    uint32_t raw[network_lane<T>::outputs * sizeof(T) / 4];
    if constexpr (sizeof(T) == 4)
#pragma unroll
        for (int k = 0; k < 8; k++)
            word[k] = rank_bits(word[k]);
    split<T>(word, raw, raw + 2 * sizeof(T));
    unsigned char *const row = call.out + place.plane * call.out_plane + y * call.out_row;
    store_samples<T, network_lane<T>::outputs>((T *)row + x, raw, call.width - x);
}

/* The rows that a lane keeps from one step to the next, and the medians of two rows. */
template <typename T, int RADIUS>
struct network;

template <typename T>
struct network<T, 1> {
    static constexpr int columns = 10;
    uint32_t above[columns], row[columns]; /* rows y - 1 and y, for outputs of rows y and y + 1 */

    __device__ __forceinline__ void start(const typename network_lane<T>::loader &loader, int y)
    {
        load_row<T, 1>(loader, y - 1, above);
        load_row<T, 1>(loader, y, row);
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

    __device__ __forceinline__ void step(const typename network_lane<T>::loader &loader, int y, uint32_t (&first)[8],
                                         uint32_t (&second)[8])
    {
        uint32_t low[columns], high[columns], below[columns], last[columns];
        load_row<T, 1>(loader, y + 1, below);
        load_row<T, 1>(loader, y + 2, last);
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

/* The highest 3 of 10 words that rise and then fall, or the lowest 3 of words that fall and then rise. The last one is
 * the highest, or the lowest. */
template <typename T, bool HIGHEST>
__device__ __forceinline__ void find_outer(const uint32_t (&word)[10], uint32_t (&three)[3])
{
    const auto outer = [](uint32_t a, uint32_t b) { return HIGHEST ? upper<T>(a, b) : lower<T>(a, b); };
    const auto inner = [](uint32_t a, uint32_t b) { return HIGHEST ? lower<T>(a, b) : upper<T>(a, b); };
    uint32_t top[5]; /* the highest 5 */
#pragma unroll
    for (int i = 0; i < 5; i++)
        top[i] = outer(word[i], word[i + 5]);
    const uint32_t low = outer(inner(top[0], top[1]), inner(top[2], top[3]));
    const uint32_t p = outer(top[0], top[1]), q = outer(top[2], top[3]), high = inner(p, q);
    const uint32_t a = inner(low, high), b = outer(low, high), c = outer(p, q); /* 3 of the first four */
    three[0] = outer(a, inner(b, top[4]));
    three[1] = outer(b, inner(c, top[4]));
    three[2] = outer(c, top[4]);
}

template <typename T>
struct network<T, 2> {
    static constexpr int columns = 12;
    uint32_t above[columns];               /* row y - 2, for outputs of rows y and y + 1 */
    uint32_t low[columns], high[columns];  /* rows y - 1 and y in order */
    uint32_t row[columns], below[columns]; /* rows y and y + 1 */

    __device__ __forceinline__ void start(const typename network_lane<T>::loader &loader, int y)
    {
        load_row<T, 2>(loader, y - 2, above);
        load_row<T, 2>(loader, y - 1, low);
        load_row<T, 2>(loader, y, row);
        load_row<T, 2>(loader, y + 1, below);
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
            /* The lowest 10 and the highest 10 of the 20 samples that outputs 2 k and 2 k + 1 share. With five more, only
             * numbers 7 to 12 of the 20 can be the median, from 0 on. */
            uint32_t lowest[10], highest[10], high[3], low[3];
#pragma unroll
            for (int i = 0; i < 10; i++) {
                lowest[i] = lower<T>(pair[k][i], pair[k + 1][9 - i]);
                highest[i] = upper<T>(pair[k][i], pair[k + 1][9 - i]);
            }
            find_outer<T, true>(lowest, high);
            find_outer<T, false>(highest, low);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const uint32_t(&own)[5] = column[2 * k + 5 * i];
                uint32_t least = low[0]; /* number 5 of these 6 and the output's own 5 */
                least = lower<T>(least, upper<T>(high[0], own[4]));
                least = lower<T>(least, upper<T>(high[1], own[3]));
                least = lower<T>(least, upper<T>(high[2], own[2]));
                least = lower<T>(least, upper<T>(low[2], own[1]));
                least = lower<T>(least, upper<T>(low[1], own[0]));
                median[2 * k + i] = least;
            }
        }
    }

    __device__ __forceinline__ void step(const typename network_lane<T>::loader &loader, int y, uint32_t (&first)[8],
                                         uint32_t (&second)[8])
    {
        uint32_t next[columns], last[columns], four[columns][4];
        load_row<T, 2>(loader, y + 2, next);
        load_row<T, 2>(loader, y + 3, last);
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
__global__ void __launch_bounds__(warp *network_warps) find_medians(const __grid_constant__ struct tile_call call)
{
    __shared__ int index[network_warps][network_lane<T>::samples][warp];
    const int lane = (int)threadIdx.x, number = (int)blockIdx.x * network_warps + (int)threadIdx.y;
    const struct tile_place place = place_tile(call, number);
    const int x = place.x + lane * network_lane<T>::outputs;
    if (place.plane >= call.planes || x >= call.width)
        return;
    const typename network_lane<T>::loader loader(call, place.plane, x - network_lane<T>::edge,
                                                  &index[threadIdx.y][0][lane], warp);
    struct network<T, RADIUS> network;
    network.start(loader, place.y);
#pragma unroll 1
    for (int y = place.y; y < place.y + place.rows; y += 2) {
        uint32_t first[8], second[8];
        network.step(loader, y, first, second);
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
    call.tile_width = warp * network_lane<T>::outputs;
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

template <typename T>
__global__ void __launch_bounds__(256) find_lowest_in_rows(const __grid_constant__ struct tile_call call)
{
    constexpr int joined = sizeof(T) == 4 ? 1 : 2; /* rows of a word */
    constexpr int words = 2 * (int)sizeof(T);      /* of eight samples */
    extern __shared__ uint32_t memory[];
    const int threads = (int)blockDim.x, thread = (int)threadIdx.x;
    const struct tile_place place = place_tile(call, (int)blockIdx.x);
    const int lead = (call.anchor + 7) / 8 * 8, low = lead - call.anchor;
    const int to_x = place.x + 8 * thread;
    const bool is_direct = call.side <= 8, has_outputs = 8 * thread < call.tile_width && to_x < call.width;
    const struct row_loader<T, 8, 0> loader(call, place.plane, to_x - lead, (int *)memory + 32 * threads + thread,
                                            threads);
    uint32_t raw[2][words] = {};
#pragma unroll
    for (int r = 0; r < joined; r++)
        loader.load(place.y + r, raw[r]);
    unsigned char *to = call.out + place.plane * call.out_plane + place.y * call.out_row + to_x * (int)sizeof(T);
    uint32_t *from = memory + thread; /* the lowest up to a column, and then from a column on, for eight columns */
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
                loader.load(place.y + y + joined + r, raw[r]);
        uint32_t lowest = word[0];
#pragma unroll
        for (int k = 0; k < 8; k++) {
            lowest = is_direct ? word[k] : lower<T>(lowest, word[k]);
            from[k * threads] = lowest;
        }
        if (!is_direct) {
            lowest = word[7];
#pragma unroll
            for (int k = 7; k >= 0; k--) {
                lowest = lower<T>(lowest, word[k]);
                from[(8 + k) * threads] = lowest;
            }
        }
        __syncthreads();
        if (has_outputs) {
            uint32_t whole = UINT32_MAX; /* the threads that are whole in all windows */
            if (!is_direct)
                for (int t = 2; t < (low + call.side - 1) / 8; t++)
                    whole = lower<T>(whole, from[7 * threads + t]);
#pragma unroll
            for (int k = 0; k < 8; k++) {
                const int first = low + k, last = first + call.side - 1;
                if (is_direct) {
                    word[k] = UINT32_MAX;
                    for (int i = first; i <= last; i++)
                        word[k] = lower<T>(word[k], from[i % 8 * threads + i / 8]);
                    continue;
                }
                word[k] = lower<T>(from[(8 + first % 8) * threads + first / 8], from[last % 8 * threads + last / 8]);
                word[k] = lower<T>(word[k], whole);
                if (first / 8 == 0 && last / 8 > 1)
                    word[k] = lower<T>(word[k], from[7 * threads + 1]);
                if (last / 8 > (low + call.side - 1) / 8 && last / 8 > first / 8 + 1)
                    word[k] = lower<T>(word[k], from[7 * threads + last / 8 - 1]);
            }
            uint32_t result[2][words];
            split<T>(word, result[0], result[1]);
#pragma unroll
            for (int r = 0; r < joined; r++)
                if (y + r < place.rows)
                    store_words<8 * (int)sizeof(T)>(to + r * call.out_row, result[r]);
        }
        from = from == memory + thread ? from + 16 * threads : memory + thread;
    }
}

template <typename T>
__device__ __forceinline__ void keep_lowest(uint32_t (&lowest)[4], const unsigned char *from)
{
    uint32_t word[4];
    load_words<16>(from, word);
#pragma unroll
    for (int k = 0; k < 4; k++)
        lowest[k] = sizeof(T) == 1 ? __vminu4(lowest[k], word[k]) : lower<T>(lowest[k], word[k]);
}

/* A lane has 16 bytes of a row. */
template <typename T>
__global__ void __launch_bounds__(warp) find_lowest_in_columns(const __grid_constant__ struct tile_call call)
{
    extern __shared__ uint4 pieces[];
    const struct tile_place place = place_tile(call, (int)blockIdx.x);
    const int x = place.x + (int)threadIdx.x * 16 / (int)sizeof(T), side = call.side;
    const uint32_t outside = call.flip ^ (sizeof(T) == 4 ? 0x80000000 : 0);
    if (x >= call.width)
        return;
    const unsigned char *const plane = call.in + place.plane * call.in_plane + x * (int)sizeof(T);
    uint4 *const piece = pieces + threadIdx.x;
    const auto add_row = [&](uint32_t(&lowest)[4], int y, bool is_clear) {
        if (!is_clear && (y < 0 || y >= call.height)) {
            y = border_index(y, call.height, call.border);
            if (y < 0) {
                for (int k = 0; k < 4; k++)
                    lowest[k] = sizeof(T) == 1 ? __vminu4(lowest[k], outside) : lower<T>(lowest[k], outside);
                return;
            }
        }
        keep_lowest<T>(lowest, plane + (size_t)y * call.in_row);
    };
    const auto walk = [&](auto is_clear) {
#pragma unroll 1
        for (int start = 0; start < place.rows; start += side) {
            const int first = place.y - call.anchor + start, rows = min(side, place.rows - start);
            uint32_t lowest[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX};
#pragma unroll 8
            for (int i = side - 1; i >= 0; i--) {
                add_row(lowest, first + i, decltype(is_clear)::value);
                piece[i * warp] = make_uint4(lowest[0], lowest[1], lowest[2], lowest[3]);
            }
            for (int k = 0; k < 4; k++)
                lowest[k] = UINT32_MAX;
            unsigned char *to = call.out + place.plane * call.out_plane + (place.y + start) * call.out_row;
#pragma unroll 8
            for (int i = 0; i < rows; i++, to += call.out_row) {
                if (i > 0)
                    add_row(lowest, first + side + i - 1, decltype(is_clear)::value);
                const uint4 from = piece[i * warp];
                uint32_t word[4] = {from.x, from.y, from.z, from.w};
                for (int k = 0; k < 4; k++) {
                    word[k] =
                        (sizeof(T) == 1 ? __vminu4(lowest[k], word[k]) : lower<T>(lowest[k], word[k])) ^ call.flip;
                    if constexpr (sizeof(T) == 4)
                        word[k] = rank_bits(word[k]);
                }
                store_samples<T, 16 / (int)sizeof(T)>((T *)to + x, word, call.width - x);
            }
        }
    };
    const int first = place.y - call.anchor;
    if (first >= 0 && first + round_up(place.rows, side) + side <= call.height)
        walk(known<true>());
    else
        walk(known<false>());
}

/* ROWS are scratch planes for the lowest, or the highest, samples of rows. T is the type of a sample or, for floats, of
 * its bits. */
template <typename T>
bool queue_extremes(const struct plan *plan, bool is_highest, const struct plane *in, const struct plane *out,
                    const struct plane *rows, struct device *device, struct error *error)
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
                       (size_t)threads * (32 + 8) * 4, plan->filter->name, device, error))
        return false;

    const struct tile_call first = call;
    call = make_call(plan, rows, out);
    call.flip = first.flip;
    call.side = rank->height;
    call.anchor = rank->anchor_y;
    call.tile_width = warp * 16 / (int)sizeof(T);
    call.columns = (in->width + call.tile_width - 1) / call.tile_width;
    const size_t shared = (size_t)rank->height * warp * 16;
    choose_strip(&call, in, rank->height, rank->height, multiprocessors * min(24, (int)(200000 / shared)));
    return launch_blocks(find_lowest_in_columns<T>, call, call.columns * call.tiles_y * in->count, dim3(warp), shared,
                         plan->filter->name, device, error);
}
} // namespace

#endif
