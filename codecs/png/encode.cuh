/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of loops.h.
 * Between the two files of the encoder. png/rules.h defines what it writes, and counts the steps that the comments
 * here name. */
#ifndef GPUCONV_PNG_ENCODE_CUH
#define GPUCONV_PNG_ENCODE_CUH

#include "kernels/shared/lanes.cuh"
#include "kernels/shared/queue.cuh"
#include "png/codes.h"
#include "png/png.h"

constexpr int threads = 256, warps = threads / 32; /* threads and warps of a thread block, but for some kernels */
constexpr uint32_t each_byte = 0x01010101;

/* A bit for each byte of a block, and zeros. */
constexpr int set_words = 2048;
static_assert(set_words * 32 >= DEFLATE_BLOCK + 64, "two more words can be read");

/* The words of a description. Each length takes a code of at most 7 bits, and extra bits. A head comes first. */
constexpr int description_words =
    (3 + 5 + 5 + 4 + 3 * PRECODES + (DEFLATE_LITLENS + DEFLATE_DISTANCES) * (PRECODE_MAX + 7)) / 32 + 1;

/* What the kernels know of a block. */
struct block {
    uint32_t same[2][set_words];   /* the bytes that equal the byte before, and the one a pixel before */
    uint32_t starts[set_words];    /* the starts of runs */
    uint32_t runs[set_words];      /* the bytes of runs */
    uint32_t uncounted[set_words]; /* the bytes of long runs */
    uint32_t chosen[set_words];    /* where other repetitions are looked for, and then those that have a candidate */
    uint32_t begun[set_words];     /* the first bytes of repetitions */
    uint32_t covered[set_words];   /* the bytes of repetitions */
    uint16_t candidates[DEFLATE_BLOCK]; /* by position: its candidate, if the position is chosen */
    /* The length of a repetition, and from bit 16 on its distance. The index is half of the repetition's start.
     * Candidates need memory of their own: while a thread writes here, the thread before may still read candidates. The
     * search of candidates keeps its list of positions here. */
    uint32_t repetitions[DEFLATE_BLOCK / 2];
    uint8_t prices[DEFLATE_LITERALS];
    uint32_t has_repetitions; /* does the block have other repetitions than runs? */
    struct deflate_uses uses;
    struct deflate_tables tables;
    uint32_t is_stored;
    uint32_t description[description_words], description_bits;
    uint64_t bits;     /* bits of the block */
    uint64_t position; /* the position of the block's first bit, from the beginning of its band */
};

/* What the kernel of the last step tells the host. */
struct result {
    uint64_t size;
    uint32_t adler;
};

/* What the kernels get, by value. */
struct png_encode_launch {
    const uint8_t *samples;
    size_t row_bytes, band_bytes,
        bytes;                  /* bytes of a row of samples; filtered bytes of a full band, and of all bands */
    int height, pixel, is_wide; /* is_wide: samples of 16 bits, which change the order of their bytes */
    int bands, band_blocks, blocks;
    uint8_t *filtered;
    uint2 *
        sums; /* each row's, for the Adler-32: the sum of its bytes, and of its bytes times their distance to its end */
    struct block *block_list;
    uint64_t *ends; /* the end of each band in the stream, in bytes */
    uint32_t *stream;
    struct result *result;
};

/* A block's part of the filtered rows. */
struct part {
    const uint8_t *bytes;
    int size, before; /* bytes of the block, and of the band before it: none, or more than a pixel */
    bool ends_band, ends_stream;
};

static __device__ __forceinline__ struct part part_of(const struct png_encode_launch &launch, int number)
{
    const int band = number / launch.band_blocks, block = number % launch.band_blocks;
    const size_t start = (size_t)band * launch.band_bytes, at = (size_t)block * DEFLATE_BLOCK;
    const size_t end = launch.bytes - start < launch.band_bytes ? launch.bytes - start : launch.band_bytes;
    struct part part;
    part.bytes = launch.filtered + start + at;
    part.ends_band = end - at <= DEFLATE_BLOCK;
    part.ends_stream = part.ends_band && band == launch.bands - 1;
    part.size = part.ends_band ? (int)(end - at) : DEFLATE_BLOCK;
    part.before = block > 0 ? DEFLATE_BLOCK : 0;
    return part;
}

static __device__ __forceinline__ bool has(const uint32_t *bits, int at)
{
    return bits[at / 32] >> at % 32 & 1;
}

/* The bytes of a word of a set that are in a block of SIZE bytes. */
static __device__ __forceinline__ uint32_t inside(int word, int size)
{
    return size >= 32 * (word + 1) ? all_lanes : size <= 32 * word ? 0 : (1u << (size - 32 * word)) - 1;
}

/* 8 bytes, little-endian. Up to 4 bytes before and after them are read. */
static __device__ __forceinline__ uint64_t load64(const uint8_t *bytes)
{
    const uint32_t *words = (const uint32_t *)((uintptr_t)bytes & ~(uintptr_t)3);
    const unsigned shift = 8 * (unsigned)((uintptr_t)bytes & 3);
    const uint32_t middle = words[1];
    return (uint64_t)__funnelshift_r(middle, words[2], shift) << 32 | __funnelshift_r(words[0], middle, shift);
}

/* Steps 1 to 8: queue what splits all blocks into literals and repetitions, and counts them. (split.cu) */
bool split_blocks(struct device *device, const struct png_encode_launch &launch, struct error *error);

#endif
