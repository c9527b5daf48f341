/* SPDX-License-Identifier: MIT
 *
 * Between deflate.c, which knows bands and codes, and deflate_loops.c and filter_loops.c, which are compiled once for
 * each instruction set. */
#ifndef GPUCONV_PNG_LOOPS_H
#define GPUCONV_PNG_LOOPS_H

#include "base/vector/instruction_sets.h"
#include "png/symbols.h"

#include <endian.h>
#include <stdint.h>
#include <string.h>

enum {
    DEFLATE_WORD = 64,                            /* bytes whose bits share a word of a bit set */
    DEFLATE_WORDS = 1023,                         /* words of a block's bit set */
    DEFLATE_BLOCK = DEFLATE_WORDS * DEFLATE_WORD, /* a stored block holds at most 65,535 bytes */
    DEFLATE_LEAST = 4,                            /* bytes of the shortest repetition, but for parts of a longer one */
    DEFLATE_HASH_BITS = 13,
    /* Parts of a repetition are longer than DEFLATE_LEAST together. The last sequence has no repetition. */
    DEFLATE_SEQUENCES = DEFLATE_BLOCK / DEFLATE_LEAST + 2,
};

/* Literals and then a repetition, which the last sequence of a block does not have. */
struct deflate_sequence {
    uint16_t literals, length, distance;
};

/* A place, and an earlier one that begins with the same bytes. */
struct deflate_candidate {
    uint16_t place, from;
};

/* One bit for each byte of a block, a word of zeros, and one that may be read. */
typedef uint64_t deflate_bits[DEFLATE_WORDS + 2];

/* The scratch memory of a thread. It keeps nothing from one block to the next. */
struct deflate_workspace {
    const struct png_loops *loops;

    /* The bytes that equal the byte before, and those that equal the byte one pixel before. */
    deflate_bits same[2];
    deflate_bits sampled;              /* where repetitions are looked for, to estimate what they gain */
    deflate_bits starts;               /* of runs that are long enough: from here on, so many bytes are the same */
    deflate_bits runs;                 /* the bytes of these runs */
    deflate_bits uncounted, sequenced; /* the bytes of long runs; those of repetitions */
    deflate_bits counted;              /* the bytes that are counted now */
    deflate_bits hashed;               /* where other repetitions are looked for */
    /* In the order of their places, and room for four more. */
    struct deflate_candidate candidates[DEFLATE_BLOCK + 4];
    size_t candidate_count;
    uint16_t latest[1 << DEFLATE_HASH_BITS]; /* 1 + the latest place with that hash; 0: none yet */
    struct deflate_sequence sequences[DEFLATE_SEQUENCES];
    size_t count, literal; /* sequences; the first byte that no sequence holds */
    uint8_t prices[DEFLATE_LITERALS];
    uint32_t litlen_uses[DEFLATE_LITLENS], distance_uses[DEFLATE_DISTANCES];
    /* Codes: their number of bits, and from bit 8 on the bits. The lowest is written first. The codes of lengths
     * include their extra bits. */
    uint32_t literals[DEFLATE_LITERALS], lengths[DEFLATE_LENGTH_MAX + 1], distances[DEFLATE_DISTANCES], end;
};

/* ---- Bits on their way to memory ---- */

struct deflate_writer {
    uint64_t waiting;
    unsigned count; /* below 8 after a flush */
    uint8_t *next;
};

static inline void deflate_put(struct deflate_writer *out, uint64_t value, unsigned count)
{
    out->waiting |= value << out->count;
    out->count += count;
}

static inline void deflate_put_code(struct deflate_writer *out, uint32_t code)
{
    deflate_put(out, code >> 8, code & 255);
}

/* Write the whole bytes. This stores 8 bytes; the next flush overwrites those after the whole ones. */
static inline void deflate_flush(struct deflate_writer *out)
{
    const uint64_t waiting = htole64(out->waiting);
    memcpy(out->next, &waiting, sizeof waiting);
    out->next += out->count >> 3;
    out->waiting >>= out->count & ~7u;
    out->count &= 7;
}

/* ---- One instruction set ---- */

struct png_loops {
    /* Split the SIZE bytes of a block into sequences, and count its symbols. The band has BEFORE bytes before
     * the block. */
    void (*split)(struct deflate_workspace *work, const uint8_t *block, size_t size, size_t before, size_t pixel);

    /* Write the symbols of the block. */
    void (*write)(const struct deflate_workspace *work, const uint8_t *block, struct deflate_writer *out);

    /* See png_filter. */
    void (*filter)(const uint8_t *row, const uint8_t *above, size_t size, size_t pixel, uint8_t *out);
};

extern const struct png_loops png_loops_portable;
#ifdef __x86_64__
extern const struct png_loops png_loops_sse2, png_loops_avx2, png_loops_avx512, png_loops_vnni;
#elif defined(__aarch64__)
extern const struct png_loops png_loops_neon;
#endif

#endif
