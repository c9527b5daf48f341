/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of decode_loops.h.
 * The stages of the decoder. decode.cu queues them; decode_scan.cu makes coefficients of the data, and
 * decode_samples.cu makes samples of coefficients. */
#ifndef GPUCONV_JPEG_DECODE_CUH
#define GPUCONV_JPEG_DECODE_CUH

#include "jpeg/workspace.cuh"

/* The data are cut into subsequences. A thread walks one, beginning in a state that it guesses at first. */
#ifndef SUBSEQUENCE_BITS
#define SUBSEQUENCE_BITS 1024
#endif
constexpr uint32_t subsequence_bits = SUBSEQUENCE_BITS;
static_assert(subsequence_bits % 32 == 0, "words do not straddle subsequences");

#ifndef WALK_THREADS
#define WALK_THREADS 256
#endif
constexpr int walk_threads = WALK_THREADS; /* threads of a thread block: one for each subsequence */
static_assert(walk_threads % 32 == 0 && walk_threads >= JPEG_BLOCK, "a thread sets a coefficient of a block");

/* Launches that hand states from block to block. Each carries a wrong state at least through one block. After the last
 * one, data that have not synchronised go to the CPU. */
constexpr int walk_launches = 6;

/* A Huffman table for decoding has entries of 16 bits. The next look_bits bits of the data are the number of an entry.
 * If they begin a longer code, the entry has the index of 64 more entries, and the next 6 bits are the number of one of
 * these. The entry of a symbol says all about it:
 *
 *     bits 0-4    bits of the code and of the value after it, 1 to 31; 0 where the code is longer
 *     bits 5-8    bits of the value
 *     bits 9-15   what the zigzag index advances by: 1 for DC; run + 1 for AC; 64 for the end of a block
 *
 * The entry of a longer code has that index, divided by 64, in bits 5-15. Codes of 11 bits or more take at most an
 * eighth of all 16-bit words: 256 symbols of 2^5 words each. */
constexpr int look_bits = 10, longest_code = 16, more_bits = longest_code - look_bits;
constexpr uint32_t end_of_block = 64;
constexpr uint32_t bad_entry = end_of_block << 9 | 1 << 5 | 1; /* no code: the end of a block, with a value */
constexpr uint32_t table_entries_max = (1 << look_bits) + (1 << longest_code) / 8;
static_assert(table_entries_max >> more_bits < 1 << 11, "the index of a longer code has 11 bits");

/* The tables of a scan are in shared memory, which has 48 KiB. The CPU decodes a picture that needs more. */
constexpr uint32_t tables_max = 46 * 1024 / sizeof(uint16_t);

/* The entry of a symbol whose code has LENGTH bits. */
static inline uint16_t huffman_entry(uint32_t symbol, uint32_t length, bool is_dc)
{
    const uint32_t size = symbol & 15, run = symbol >> 4;
    const uint32_t advance = is_dc ? 1 : size != 0 || run == 15 ? run + 1 : end_of_block;
    return (uint16_t)(advance << 9 | size << 5 | (length + size));
}

/* The data of a scan on the device. */
struct scan {
    const uint32_t *words;           /* the bytes, padded with at least 16 of any value */
    const uint32_t *starts, *firsts; /* each segment's first byte, and its first subsequence; then the ends */
    const uint16_t *tables;          /* one after another: TABLE_ENTRIES, a multiple of 64 */
    uint32_t segment_count, subsequences, table_entries; /* segments are restart intervals */
    uint32_t segment_blocks, blocks;                     /* blocks of a segment, and of all */
    uint32_t period;                                     /* blocks after which the tables of an MCU's blocks repeat */
    uint16_t dc[JPEG_MCU_BLOCKS_MAX], ac[JPEG_MCU_BLOCKS_MAX]; /* the first entries of the tables of each block */
};

/* What the walks over the subsequences find, on the device. */
struct walk {
    uint16_t *in, *out;    /* the states at the beginning and at the end of each subsequence */
    uint16_t *counts;      /* the number of blocks that end in each subsequence */
    uint32_t *blocks;      /* blocks that end before each subsequence in its thread block */
    uint32_t *totals;      /* blocks that end before each thread block */
    uint16_t *edges;       /* the last state of each thread block, after each launch */
    int16_t *dc;           /* each block's DC difference; after decode_sum_dc, the sum of differences in its tile */
    uint2 *dc_totals;      /* sums of DC before each tile of MCUs: each half of a word is a component's */
    int16_t *coefficients; /* the coefficients of each block of the scan, column by column */
    uint32_t *is_bad;
};

constexpr int tile_mcus = 256; /* MCUs whose DC values one thread block sums up */

static __host__ __device__ inline uint32_t blocks_of(size_t items, int size)
{
    return (uint32_t)((items + (size_t)size - 1) / (size_t)size);
}

/* A component's samples on the device, and how its blocks lie in the scan. */
struct component {
    uint8_t *samples;
    size_t pitch; /* bytes of a row, a multiple of 128 */
    int width, height;
    int blocks_across, blocks_down;
    int horizontal, vertical; /* log2 of the sampling factors */
    int side;                 /* samples on a side of a block */
    int across, down;         /* log2 of the pixels that a sample stands for */
    int first;                /* the index in an MCU of the component's first block */
    int quantiser;
};

/* How chroma samples become as many as the pixels are. COPIED is for all factors. */
enum upsampling { COPIED, ACROSS, DOWN, BOTH, UPSAMPLINGS };

/* The tiles of each component, blocks side by side, are numbered one after another. */
struct tiles {
    uint32_t across[JPEG_COMPONENTS_MAX], first[JPEG_COMPONENTS_MAX + 1];
};

/* A picture on the device. The kernels get an array of them, and blockIdx.y is the number of the picture. Blocks of
 * threads beyond those that a picture needs do nothing. */
struct picture {
    struct scan scan;
    struct walk walk;
    struct component components[JPEG_COMPONENTS_MAX];
    struct tiles tiles; /* the tiles of components with whole blocks */
    uint8_t *pixels;
    size_t plane;               /* as in struct jpeg_input */
    const uint16_t *quantisers; /* each column by column */
    int count;                  /* the number of components */
    int width, height;
    enum upsampling upsampling;
    int luma_blocks; /* blocks of luma in an MCU */
    uint32_t mcus, mcus_across, mcu_blocks;
    uint32_t segment_mcus; /* 0 if there is one segment */

    /* Blocks of threads of the stages. All are 0 if the CPU has to decode the picture. */
    uint32_t walk_blocks, dc_tiles, transform_tiles, colour_tiles;
};

/* Many pictures: how the host sees those that are queued together. */
struct pictures {
    const struct picture *host, *device;
    size_t count;
};

/* The largest NEED(picture) of all pictures, such as blocks of threads. */
template <typename Need>
static inline uint32_t max_of(const struct pictures *pictures, Need need)
{
    uint32_t max = 0;
    for (size_t i = 0; i < pictures->count; i++) {
        const uint32_t needed = need(pictures->host[i]);
        max = needed > max ? needed : max;
    }
    return max;
}

constexpr int transform_threads = 256, tile_blocks = transform_threads / JPEG_SIDE;
constexpr int colour_width = 128, colour_height = 8; /* pixels of a block of threads */
constexpr int colour_alignment =
    16; /* pixels; as bytes, they are whole sectors of memory with 3 channels, and half ones with 1 */

/* Tiles side by side: rows may begin up to COLOUR_ALIGNMENT - 1 pixels early. */
static __host__ __device__ inline uint32_t colour_tiles_across(int width)
{
    return blocks_of((size_t)width + colour_alignment - 1, colour_width);
}

/* Queue the walks over the scans: coefficients, but DC as differences. (decode_scan.cu) */
bool decode_walk(const struct pictures *pictures, struct device *device, struct error *error);

/* The next stages do nothing for a picture in which the walk has found bad data. */

/* Queue the sums of DC differences in each tile of MCUs, and before each tile. (decode_scan.cu) */
bool decode_sum_dc(const struct pictures *pictures, struct device *device, struct error *error);

/* Queue the inverse DCT of all blocks, to as many samples as the components have. (decode_samples.cu) */
bool decode_transform(const struct pictures *pictures, struct device *device, struct error *error);

/* Queue the upsampling and the colours: the components' samples become pixels. (decode_samples.cu) */
bool decode_colour(const struct pictures *pictures, struct device *device, struct error *error);

#endif
