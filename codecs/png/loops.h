/* SPDX-License-Identifier: MIT
 *
 * Between deflate.c, which knows bands and codes, and deflate_loops.c and filter_loops.c, which are compiled once for
 * each instruction set. */
#ifndef GPUCONV_PNG_LOOPS_H
#define GPUCONV_PNG_LOOPS_H

#include "base/vector/instruction_sets.h"
#include "png/codes.h"

#include <stdint.h>

enum {
    DEFLATE_WORD = 64, /* bytes whose bits share a word of a bit set */
    DEFLATE_WORDS = DEFLATE_BLOCK / DEFLATE_WORD,
    DEFLATE_POSITIONS_TOGETHER = 4, /* positions that are listed without a branch; some may be after the last one */
    /* A block of the fast level has most: the runs, and a sequence without a repetition for each part. The parts of
     * a run are longer than FAST_RUN on average. */
    DEFLATE_SEQUENCES = FAST_BLOCK / FAST_RUN + FAST_BLOCK / DEFLATE_BLOCK,
};

/* Literals and then a repetition, which the last sequence of a block, or of a part of it, does not have. */
struct deflate_sequence {
    uint16_t literals, length, distance;
};

/* A position, and an earlier one whose bytes have the same hash, or UINT16_MAX. */
struct deflate_candidate {
    uint16_t position, from;
};

/* One bit for each byte of a block, or of a part of it, a word of zeros, and one that may be read. */
typedef uint64_t deflate_bits[DEFLATE_WORDS + 2];

/* The scratch memory of a thread. It keeps nothing from one block to the next. */
struct deflate_workspace {
    const struct png_loops *loops;
    bool is_fast;         /* the fast level */
    uint64_t orders[256]; /* the numbers of the bits that a byte has set, from 0 on, in a byte each */

    /* The bytes that equal the byte before, and those that equal the byte one pixel before. */
    deflate_bits same[2];
    deflate_bits sampled;              /* where repetitions are looked for, to estimate what they gain */
    deflate_bits starts;               /* the starts of runs that are long enough */
    deflate_bits runs;                 /* the bytes of these runs */
    deflate_bits uncounted, sequenced; /* the bytes of long runs; those of repetitions */
    deflate_bits counted;              /* the bytes that are counted now */
    deflate_bits hashed;               /* where other repetitions are looked for */
    struct deflate_candidate
        candidates[DEFLATE_BLOCK + DEFLATE_POSITIONS_TOGETHER]; /* in the order of their positions */
    size_t candidate_count;
    uint16_t first_candidates[DEFLATE_WORDS + 1]; /* the number of candidates before each word of `hashed` */
    uint16_t latest[1 << DEFLATE_HASH_BITS];      /* the latest position with that hash, or UINT16_MAX */
    struct deflate_sequence sequences[DEFLATE_SEQUENCES];
    size_t count, literal; /* sequences; the first byte that no sequence holds */
    uint8_t prices[DEFLATE_LITERALS];
    struct deflate_uses uses;
    struct deflate_tables tables;
};

/* ---- One instruction set ---- */

struct png_loops {
    /* Split the SIZE bytes of a block into sequences, and count its symbols. The band has BEFORE bytes before the
     * block. */
    void (*split)(struct deflate_workspace *workspace, const uint8_t *block, size_t size, size_t before, size_t pixel);

    /* Write the symbols of the block. */
    void (*write)(const struct deflate_workspace *workspace, const uint8_t *block, struct deflate_writer *out);

    /* See png_filter. */
    void (*filter)(const uint8_t *row, const uint8_t *above, size_t size, size_t pixel, bool is_fast, uint8_t *out);
};

extern const struct png_loops png_loops_portable;
#ifdef __x86_64__
extern const struct png_loops png_loops_sse2, png_loops_avx2, png_loops_avx512, png_loops_vnni;
#elif defined(__aarch64__)
extern const struct png_loops png_loops_neon;
#endif

#endif
