/* SPDX-License-Identifier: MIT
 *
 * The rules and numbers of deflate.h, which says what they mean. The CPU and the GPU share this file,
 * but kernels/png/split.cu chooses places four at a time. */
#ifndef GPUCONV_PNG_RULES_H
#define GPUCONV_PNG_RULES_H

#include "png/symbols.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    DEFLATE_BLOCK = 1023 * 64, /* bytes; a stored block holds at most 65,535 */
    DEFLATE_LEAST = 4,         /* bytes of the shortest repetition, but for parts of a longer one */
    DEFLATE_HASH_BITS = 13,
    WINDOW = 32768,      /* the largest distance */
    LONG_RUN = 8,        /* bytes; longer runs are left out of the prices */
    HASHED = 8,          /* bytes */
    DIFFERENCE_MAX = 31, /* HASHED of them fit in a byte */
    DEAR = 12,
    /* In 1/16 bit: the price of a run, and the one of another repetition, without the distance's extra bits. */
    RUN_PRICE = 8 * 16,
    REPETITION_PRICE = 15 * 16,
    PRICE_MIN = 1 * 16, /* every code has at least one bit */
    PRICE_MAX = 15 * 16,
    SAMPLED = 32, /* one place in so many is sampled, on average */
    SAMPLE_LENGTH = 32,
    /* Repetitions must save this part of the price: more if most bytes are literals, because it takes time to look. */
    GAIN_PART_MANY = 20,
    GAIN_PART_FEW = 80,
    /* A place is chosen by its HASHED bytes, so that places with the same bytes are chosen together. The last bits of a
     * sum decide. They are never these for a byte that repeats: it is multiplied by 3280, a multiple of 16. */
    SAMPLE_BITS = SAMPLED - 1,
    SAMPLE_VALUE = 13,
    QUARTER_BITS = 3,
    QUARTER_VALUE = SAMPLE_VALUE & QUARTER_BITS,
};

/* ---- Places ---- */

static inline unsigned deflate_mix(const uint8_t *bytes)
{
    unsigned sum = 0;
    for (int i = HASHED - 1; i >= 0; i--)
        sum = 3 * sum + bytes[i];
    return sum;
}

static inline bool deflate_is_sampled(const uint8_t *bytes)
{
    return (deflate_mix(bytes) & SAMPLE_BITS) == SAMPLE_VALUE;
}

/* A quarter of all places, and all with large differences. */
static inline bool deflate_is_hashed(const uint8_t *bytes)
{
    unsigned sum = 0;
    for (int i = 0; i < HASHED; i++) {
        const unsigned value = bytes[i] < 128 ? bytes[i] : 256u - bytes[i];
        sum += value < DIFFERENCE_MAX ? value : DIFFERENCE_MAX;
    }
    return sum >= DEAR || (deflate_mix(bytes) & QUARTER_BITS) == QUARTER_VALUE;
}

static inline HOST_DEVICE uint32_t deflate_hash(uint64_t value)
{
    return (uint32_t)((value * 0x9e3779b97f4a7c15u) >> (64 - DEFLATE_HASH_BITS)); /* 2^64 over the golden ratio */
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
    return least < DEFLATE_LEAST ? DEFLATE_LEAST : least > LONG_RUN ? LONG_RUN : least;
}

static inline HOST_DEVICE unsigned deflate_repetition_price(unsigned distance)
{
    return REPETITION_PRICE + 16 * deflate_extra(deflate_symbol(distance - 1, DISTANCE_STEPS), DISTANCE_STEPS);
}

/* Step 7: does a block of SIZE bytes have other repetitions than runs? SAVED is the sum of what its samples save. The
 * block has LITERALS bytes outside of long runs, and PRICE is the price of these. */
static inline HOST_DEVICE bool deflate_pays(uint64_t saved, uint64_t price, uint64_t literals, uint64_t size)
{
    return saved * SAMPLED * (2 * literals > size ? GAIN_PART_MANY : GAIN_PART_FEW) >= price;
}

#endif
