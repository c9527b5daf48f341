/* SPDX-License-Identifier: MIT
 *
 * The code that tensor-core's kernels share: tiles, rows of samples on their way to shared memory, products of
 * matrices, and sums to samples. tensor-core.cu explains how the kernels belong together. */
#ifndef GPUCONV_TENSOR_CUH
#define GPUCONV_TENSOR_CUH

#include "kernels/shared/copies.cuh"
#include "kernels/shared/products.cuh"
#include "kernels/shared/tile.cuh"
#include "kernels/tensor-core/arrange.h"

/* The argument of the kernels of tensor-core. */
struct tensor_launch {
    struct launch launch;
    const uint32_t *table; /* taps in the order of the kernel's matrices */
    int strip;             /* output rows of a tile */
    int columns, tiles_y;  /* tiles side by side, and one below the other */
    int tiles;             /* tiles of all planes */
    int parts;             /* parts that taps are cut into */
    int lead;              /* samples from the first of a window to its first output */
    int slots;             /* stages of the ring */
    int pitch, before;     /* tensor_group: bytes of a ring's row, and those left of the tile */
    int blocks, steps;     /* tensor_group, tensor_16: column blocks, pairs of filter rows */
    int terms;             /* tensor_wide: products of a part */
    int first;             /* tensor_passes: the initial value of sums */
    int planes;            /* tensor_passes */
    int short_strip;       /* tensor_passes: output rows of a tile of those below the others */
    int short_y;           /* tensor_passes: such tiles, one below the other */
    bool quick;            /* level = (sum + bias) * multiplier >> 32 >> shift; otherwise the plan's rounding */
    int bias, multiplier, shift;
};

/* ---- Rows of samples: from memory to the ring in shared memory ---- */

/* Load ROWS rows from row Y on, BYTES of each from column X on. They are inside the image's columns, but may be outside
 * its rows. */
template <int ROWS, int BYTES>
static __device__ __forceinline__ void load_column(const struct launch &launch, const uint8_t *plane, int y, int x,
                                                   uint32_t to, int pitch)
{
    if (y >= 0 && y + ROWS <= launch.height) {
        const uint8_t *from = plane + y * launch.in_row + x;
#pragma unroll
        for (int k = 0; k < ROWS; k++)
            copy_start<BYTES, true>(to + k * pitch, from + k * launch.in_row);
        return;
    }
#pragma unroll 1
    for (int k = 0; k < ROWS; k++) {
        const int from_y = border_index(y + k, launch.height, launch.border);
        if (from_y >= 0)
            copy_start<BYTES, true>(to + k * pitch, plane + from_y * launch.in_row + x);
        else
            for (int byte = 0; byte < BYTES; byte += 4)
                write_shared(to + k * pitch + byte, 0);
    }
}

/* Words of the ring's rows that are outside the image: those before FIRST, and those from LAST to WORDS. No kernel
 * reads words beyond these. FIRST and LAST are multiples of 16 bytes from the row's start, so some samples of these
 * are inside. */
struct edges {
    int first, last, words;
};

/* Find the edges for rows of WORDS words from column X on, whose windows reach REACH samples beyond the image. For
 * samples of uint16_t, X, REACH and WIDTH are in bytes. */
static __device__ __forceinline__ struct edges find_edges(int x, int words, int reach, int width)
{
    struct edges e;
    e.first = x < 0 ? (-x + 15) / 16 * 4 : 0;
    e.last = width - x >= 4 * words ? words : (width - x) / 16 * 4;
    e.words = min(words, (width - x + reach + 3) / 4);
    e.first = min(e.first, e.words);
    e.last = max(e.last, e.first);
    return e;
}

/* Load WORDS words of samples of type T from column X on, of ROWS rows from row Y on; some of them are outside the
 * image. The threads share the work. Not inlined, and called with values instead of the launch, because few tiles need
 * it. */
template <typename T>
static __device__ __noinline__ void gather_words(const uint8_t *plane, size_t row_bytes, int width, int height,
                                                 enum border border, int y, int rows, int x, int words, uint32_t to,
                                                 int pitch, int thread, int threads)
{
    constexpr int bytes = (int)sizeof(T), samples = 4 / bytes; /* samples of a word */
    for (int k = thread; k < rows * words; k += threads) {
        const int i = k / words, w = k % words;
        const int from_y = border_index(y + i, height, border);
        uint32_t word = 0;
#pragma unroll
        for (int e = 0; e < samples && from_y >= 0; e++) {
            const int from_x = border_index(x + samples * w + e, width, border);
            word |= from_x < 0 ? 0 : (uint32_t)((const T *)(plane + from_y * row_bytes))[from_x] << 8 * bytes * e;
        }
        write_shared(to + i * pitch + 4 * w, word);
    }
}

template <typename T = uint8_t>
static __device__ __forceinline__ void gather_edges(const struct launch &launch, const uint8_t *plane,
                                                    const struct edges &e, int y, int rows, int x, uint32_t to,
                                                    int pitch, int thread, int threads)
{
    if (e.first > 0)
        gather_words<T>(plane, launch.in_row, launch.width, launch.height, launch.border, y, rows, x, e.first, to,
                        pitch, thread, threads);
    if (e.words > e.last)
        gather_words<T>(plane, launch.in_row, launch.width, launch.height, launch.border, y, rows,
                        x + 4 / (int)sizeof(T) * e.last, e.words - e.last, to + 4 * e.last, pitch, thread, threads);
}

/* A warp's own ring of tensor.slots stages of ROWS rows each, and the copies of a tile's samples to it. */
template <typename T, int ROWS>
struct warp_loader {
    static constexpr int bytes = (int)sizeof(T);
    const struct launch &launch;
    const struct tile &tile;
    const int pitch, capacity; /* bytes: of a row and of the ring */
    const uint32_t ring;
    const int x; /* the column of the rows' first sample */
    const struct edges edges;
    int row = 0; /* the first row of the next stage */
    uint32_t to; /* the address of the next stage */

    __device__ __forceinline__ warp_loader(const struct tensor_launch &tensor, const struct tile &tile_,
                                           uint32_t shared, int before)
        : launch(tensor.launch), tile(tile_), pitch(tensor.pitch), capacity(tensor.slots * ROWS * pitch),
          ring(shared + threadIdx.y * capacity), x(tile.x - before),
          edges(find_edges(bytes * x, pitch / 4, bytes * launch.filter_width, bytes * launch.width)), to(ring)
    {
        for (int s = 0; s < tensor.slots - 1; s++)
            load();
    }

    /* Start the copies of the next stage, if there is one. */
    __device__ __forceinline__ void load()
    {
        if (row < tile.rows + launch.filter_height - 1) {
            const int lane = (int)threadIdx.x, y = tile.y - launch.anchor_y + row;
            for (int w = 4 * lane; w < edges.last; w += 4 * 32)
                if (w >= edges.first)
                    load_column<ROWS, 16>(launch, tile.in, y, bytes * x + 4 * w, to + 4 * w, pitch);
            gather_edges<T>(launch, tile.in, edges, y, ROWS, x, to, pitch, lane, 32);
        }
        copy_commit();
        row += ROWS;
        to += ROWS * pitch;
        if (to == ring + capacity)
            to = ring;
    }
};

/* In products, A has samples and B has taps, except in tensor_passes. A row of A is the window of a chunk. */

static constexpr int tile_columns = 16 * chunk; /* outputs of a matrix */
static constexpr int warps = 4;                 /* warps of a block */

/* ---- Sums to samples ---- */

/* A sum to a level, before clamping, by enum tensor_level. */
template <int LEVEL>
static __device__ __forceinline__ int quick_level(const struct tensor_launch &tensor, int sum)
{
    if (LEVEL == LEVEL_SHIFT)
        return sum >> tensor.shift;
    if (LEVEL == LEVEL_ANY)
        return __mulhi((tensor.launch.rounding.absolute ? abs(sum) : sum) + tensor.bias, tensor.multiplier) >>
               tensor.shift;
    if (LEVEL == LEVEL_ABSOLUTE)
        sum = abs(sum) + tensor.bias;
    const int level = __mulhi(sum, tensor.multiplier);
    return LEVEL == LEVEL_SCALE ? level : level >> tensor.shift;
}

/* A lane has a pair of samples in each half of a word, and a lane whose number differs in the bit DISTANCE has their
 * neighbours. One of the two lanes gets the low halves, and the other the high halves. So each has four samples side by
 * side, and a warp stores whole cache lines. */
static __device__ __forceinline__ uint32_t swap_pairs(uint32_t pairs, int distance, uint32_t selector)
{
    return __byte_perm(pairs, __shfl_xor_sync(~0u, pairs, distance), selector);
}

static __device__ __forceinline__ uint32_t swap_selector(int odd)
{
    return odd % 2 ? 0x3276 : 0x5410;
}

/* Where the four samples of a lane's matrix are in its tile, after a swap over the lowest bit. */
static __device__ __forceinline__ int quad_offset(int lane)
{
    return lane % 2 * (tile_columns / 2) + lane / 4 * chunk + lane % 4 / 2 * 4;
}

/* Store four bytes of samples. Only the first LEFT are inside the image. */
static __device__ __noinline__ void store_guarded(uint8_t *to, uint32_t word, int left)
{
    if (left >= 4) {
        *(uint32_t *)to = word;
        return;
    }
    for (int k = 0; k < left; k++)
        to[k] = (uint8_t)(word >> 8 * k);
}

#endif
