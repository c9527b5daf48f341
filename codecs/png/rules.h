/* SPDX-License-Identifier: MIT
 *
 * A deflate (RFC 1951) for the filtered rows of PNG. Threads compress bands separately, and the bands together are one
 * stream. The bytes depend only on the band and on the size of a pixel: not on the number of threads, nor on the
 * instruction set. Except for the walk over a block's sequences, no rule needs the result of an
 * earlier byte. Therefore many threads, also those of a GPU, may work on one block.
 *
 * Why not a library? Streams of libdeflate cannot be joined, so it uses one thread. Filtered photos have almost no
 * repetitions but runs, and nearly all of the gain is in the Huffman codes. A compressor that looks for short
 * repetitions everywhere loses time, and the bits of distances.
 *
 * The definition. A picture is cut into bands of png_band_rows rows, the last one shorter. A band is its filtered rows,
 * each after the number of its filter. It is cut into blocks of 65,472 bytes, the last one shorter. All prices are in
 * 1/16 bit.
 *
 * 1. Same bytes. Byte i is the same at distance d if the band has a byte i - d, and both are equal. d is 1, or the
 *    bytes of a pixel.
 * 2. Long runs: 8 or more bytes of the block that are the same at one of these distances.
 * 3. Prices. Let T be the number of bytes outside of long runs. If U of them have a value, the price of this value is
 *    L(T) - L(U), at least 16 and at most 240. L(x) is 16 log2(x), linear between powers of two and rounded down. L(0)
 *    is 0.
 * 4. Runs. The least length is 128 over the lowest price, rounded up, 4 to 8. A run begins where at least as many bytes
 *    are the same at one of the distances. It has the distance at which more bytes are the same, or else distance 1,
 *    and ends with these bytes. From each position where a run begins, as many bytes as the least length are in a run.
 * 5. Other repetitions begin at chosen positions. A position is chosen by its next 8 bytes b0 to b7, which must be in
 *    the block. Let m be the sum of 3^i b_i: the position is chosen if m mod 4 is 1. It is also chosen if the sum of
 *    the differences is 12 or more: b, or 256 - b if that is smaller, and at most 31. A position's candidate is the
 *    latest chosen position before it in the block with the same hash: the upper 13 bits of the 8 bytes, as a
 *    little-endian number, times 0x9e3779b97f4a7c15 modulo 2^64. The candidate counts only if the 8 bytes are the same,
 *    and at most 32,768 bytes before.
 * 6. What a repetition saves: the prices of its bytes, less 240 and 16 for each extra bit of its distance. A byte in a
 *    run costs 0, or 128 if the byte before is not in a run.
 * 7. Samples: the positions outside of runs where m mod 32 is 13. The candidate of a sample is the latest sample
 *    with the same hash. For each sample with a candidate, let n be the number of equal bytes, at most 32. It saves
 *    what n bytes save, divided by n and rounded down, or nothing. If 32 times the sum of this is at least a 20th of
 *    the price of all T bytes, the block has other repetitions than runs. If T is at most half of the block's size, an
 *    80th is enough.
 * 8. The walk. It begins at the block's first byte. Where a run begins, take it. Else, if the block has other
 *    repetitions, take the candidate of a chosen position if it saves anything. It has all bytes from there that are
 *    equal, and all before that are equal and not in a repetition yet. Else, the byte is a literal. After a repetition,
 *    the walk goes on at its end. A repetition is written in parts of 258 bytes. A rest of 1 or 2 bytes is left.
 * 9. Codes. Each block has its own: codes.h says how their lengths follow from the counts of the symbols. A block
 *    that would be as large as its bytes is stored instead.
 *
 * The fast level has steps 1, 4, 8 and 9 only. A block has 589,248 bytes, in 9 parts of 65,472 bytes: a band is one
 * block, unless its rows are larger. A run has at least 32 bytes of one part, and a block has no other repetitions. The
 * codes follow from a sample. Divide the block's size by 16,384, round down and add 1: this is n. The first of each n
 * groups of 64 bytes of a part is in the sample. Its bytes count once, but those in runs do not. In addition, each
 * value from -32 to 31 and each other value of the block counts once. If the block has more than 4,096 bytes with other
 * values, all 256 values count once. The distances and the lengths of all parts of runs count, but the sum of each
 * symbol is divided by n and rounded up. A block that becomes larger is stored, too. The GPU does not write this level.
 *
 * The CPU and the GPU share the functions of this file, but split.cu chooses positions four at a time. */
#ifndef GPUCONV_PNG_RULES_H
#define GPUCONV_PNG_RULES_H

#include "png/symbols.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DEFLATE_BLOCK = 1023 * 64, /* bytes; a stored block holds at most 65,535 */
    DEFLATE_LEAST = 4,         /* bytes of the shortest repetition, but for parts of a longer one */
    DEFLATE_HASH_BITS = 13,
    DEFLATE_LONG_RUN = 8,        /* bytes; longer runs are left out of the prices */
    DEFLATE_HASHED = 8,          /* bytes */
    DEFLATE_DIFFERENCE_MAX = 31, /* DEFLATE_HASHED of them fit in a byte */
    DEFLATE_DIFFERENCE_MIN = 12, /* a position whose differences have this sum is chosen */
    /* In 1/16 bit: the price of a run, and the one of another repetition, without the distance's extra bits. */
    RUN_PRICE = 8 * 16,
    REPETITION_PRICE = 15 * 16,
    PRICE_MIN = 1 * 16, /* every code has at least one bit */
    PRICE_MAX = 15 * 16,
    DEFLATE_SAMPLED = 32, /* positions of which one is sampled, on average */
    SAMPLE_LENGTH = 32,
    /* Repetitions must save this part of the price: more if most bytes are literals, because it takes time to look. */
    GAIN_PART_MANY = 20,
    GAIN_PART_FEW = 80,
    /* A position is chosen by its DEFLATE_HASHED bytes, so that positions with the same bytes are chosen together. The
     * last bits of a sum decide. A byte that repeats never has these bits: it is multiplied by 3280, a multiple of
     * 16. */
    SAMPLE_BITS = DEFLATE_SAMPLED - 1,
    SAMPLE_VALUE = 13,
    QUARTER_BITS = 3,
    QUARTER_VALUE = SAMPLE_VALUE & QUARTER_BITS,
    /* The fast level. */
    FAST_BLOCK = 9 * DEFLATE_BLOCK,
    FAST_RUN = 32,         /* bytes of the shortest run */
    FAST_SAMPLE = 1 << 14, /* bytes of a block that are counted, about */
    FAST_NEAR = 64,        /* values around 0; the others are rare */
    FAST_RARE = 1 << 12,   /* rare bytes; with more, all values have codes */
};

/* ---- Positions ---- */

static inline unsigned deflate_mix(const uint8_t *bytes)
{
    unsigned sum = 0;
    for (int i = DEFLATE_HASHED - 1; i >= 0; i--)
        sum = 3 * sum + bytes[i];
    return sum;
}

static inline bool deflate_is_sampled(const uint8_t *bytes)
{
    return (deflate_mix(bytes) & SAMPLE_BITS) == SAMPLE_VALUE;
}

/* A quarter of all positions, and all with large differences. */
static inline bool deflate_is_hashed(const uint8_t *bytes)
{
    unsigned sum = 0;
    for (int i = 0; i < DEFLATE_HASHED; i++) {
        const unsigned value = bytes[i] < 128 ? bytes[i] : 256u - bytes[i];
        sum += value < DEFLATE_DIFFERENCE_MAX ? value : DEFLATE_DIFFERENCE_MAX;
    }
    return sum >= DEFLATE_DIFFERENCE_MIN || (deflate_mix(bytes) & QUARTER_BITS) == QUARTER_VALUE;
}

static inline HOST_DEVICE uint32_t deflate_hash(uint64_t value)
{
    return (uint32_t)((value * 0x9e3779b97f4a7c15u) >> (64 - DEFLATE_HASH_BITS)); /* 2^64 over the golden ratio */
}

/* Is the value rare in filtered rows? */
static inline bool deflate_is_rare(uint8_t value)
{
    return (uint8_t)(value + FAST_NEAR / 2) >= FAST_NEAR;
}

/* ---- Prices, in 1/16 bit ---- */

/* 16 log2(VALUE), linear between powers of two; 0 for 0. Integers give the same result everywhere. */
static inline HOST_DEVICE unsigned deflate_log2_sixteenths(unsigned value)
{
    const unsigned power = value > 0 ? deflate_log2(value) : 0;
    return 16 * power + (unsigned)(((uint64_t)value << 4 >> power) & 15);
}

/* The price of a byte that TOTAL bytes have USES times. */
static inline HOST_DEVICE unsigned deflate_price(unsigned total, unsigned uses)
{
    const unsigned price = deflate_log2_sixteenths(total) - deflate_log2_sixteenths(uses);
    return price < PRICE_MIN ? PRICE_MIN : price > PRICE_MAX ? PRICE_MAX : price;
}

/* The bytes of the shortest run that is worth its price, where a byte costs LOWEST or more. */
static inline HOST_DEVICE unsigned deflate_least_run(unsigned lowest)
{
    const unsigned least = (RUN_PRICE + lowest - 1) / lowest;
    return least < DEFLATE_LEAST ? DEFLATE_LEAST : least > DEFLATE_LONG_RUN ? DEFLATE_LONG_RUN : least;
}

static inline HOST_DEVICE unsigned deflate_repetition_price(unsigned distance)
{
    return REPETITION_PRICE + 16 * deflate_extra(deflate_symbol(distance - 1, DISTANCE_STEPS), DISTANCE_STEPS);
}

/* Step 7: does a block of SIZE bytes have other repetitions than runs? SAVED is the sum of what its samples save. The
 * block has LITERALS bytes outside of long runs, and PRICE is the price of these. */
static inline HOST_DEVICE bool deflate_saves_enough(uint64_t saved, uint64_t price, uint64_t literals, uint64_t size)
{
    return saved * DEFLATE_SAMPLED * (2 * literals > size ? GAIN_PART_MANY : GAIN_PART_FEW) >= price;
}

#endif
