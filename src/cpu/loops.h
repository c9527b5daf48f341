/* SPDX-License-Identifier: MIT
 *
 * Between conv_cpu.c, which knows filters, borders, tiles and threads, and conv_cpu_loops.c, which knows one
 * instruction set. What crosses is a pass: a program of multiply-adds over rows of memory, with what is done to the
 * sums at its end. A filter is one pass from samples to outputs, or two with rows of sums between them. */
#ifndef GPUCONV_LOOPS_H
#define GPUCONV_LOOPS_H

#include "cpu/instruction_sets.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GROUP_MAX = 4,         /* rows of outputs that a pass makes at once, at most */
    BLOCK_MAX = 64,        /* outputs of a row that it makes at once, at most: four vectors of 16 lanes */
    ROW_SLACK = BLOCK_MAX, /* samples that may be read, and sums that may be written, after the end of a row */
    PARTS_MOST = 3,        /* that a tap is split in */
    STEPS_MAX = PARTS_MOST * (FILTER_MAX + GROUP_MAX),
};

/* What a row of memory holds and one multiply-add does in a lane of 32 bits, where a column is what stands at one x. */
enum arithmetic {
    ARITHMETIC_BYTES,  /* uint8_t samples; four neighbouring columns times four taps of int8_t */
    ARITHMETIC_WORDS,  /* int16_t samples; two neighbouring columns times two taps of int16_t */
    ARITHMETIC_PAIRS,  /* int16_t sums of two rows in one lane; a column of two rows times two taps of int16_t */
    ARITHMETIC_FLOATS, /* float; one column times one tap */
    ARITHMETIC_INTS,   /* int32_t; one column times one tap */
};

/* How far apart columns are, in bytes. */
static inline size_t column_bytes(enum arithmetic arithmetic)
{
    return arithmetic == ARITHMETIC_BYTES ? 1 : arithmetic == ARITHMETIC_WORDS ? 2 : 4;
}

/* What becomes of the sums. Rows of sums stay in the order in which the block's lanes came. */
enum target {
    TARGET_U8,     /* outputs of uint8_t, by struct finish */
    TARGET_F32,    /* outputs of float */
    TARGET_FLOATS, /* rows of sums for ARITHMETIC_FLOATS */
    TARGET_INTS,   /* for ARITHMETIC_INTS */
    TARGET_PAIRS,  /* for ARITHMETIC_PAIRS: one row for two */
    TARGET_U16,    /* outputs of uint16_t, by struct finish */

    /* Of sums s = 65536 h + l two rows, of h and, a group further, of l: for ARITHMETIC_INTS h and l, l from 0 to
     * 65535; for ARITHMETIC_PAIRS, one row of each for two, h and l - 32768. */
    TARGET_HALVES,
    TARGET_PAIR_HALVES,
};

/* What of a sample of uint16_t a row for a pass holds. */
enum share {
    SHARE_ALL,
    SHARE_CENTRED, /* the sample less 32768, which int16_t holds */
    SHARE_HIGH,    /* its high byte */
    SHARE_LOW,     /* its low byte */
};

/* Which columns the four vectors of a block hold, of L lanes each. */
enum layout {
    LAYOUT_STRAIGHT, /* vector v, lane l: column v L + l */
    LAYOUT_TWOS,     /* 2 l + v % 2 + v / 2 * 2 L: lanes of two columns, loaded at two places */
    LAYOUT_FOURS,    /* 4 l + v: lanes of four columns, loaded at four places */
};

/* A sum of 32 bits, or a tap, or two or four of them. */
union cell {
    float f;
    int32_t i;
    int16_t words[2];
    int8_t bytes[4];
};

/* How a sum becomes an output of uint8_t or uint16_t; the first that is exact for the plan is taken (finish_make). */
enum finish_way {
    FINISH_SHIFT,    /* (S + bias) >> shift, where the scale is a power of two */
    FINISH_FLOAT,    /* truncate(S * factor + term) */
    FINISH_MULTIPLY, /* as rounding_apply */
    FINISH_EACH,     /* rounding_apply itself, a sample at a time */
    FINISH_DOUBLE,   /* of uint16_t, as rounding16_apply; the only other way of these is FINISH_SHIFT */
};

struct finish {
    enum finish_way way;
    bool absolute;
    int32_t bias, shift;
    float factor, term;
    struct rounding rounding;
    struct rounding16 rounding16;
};

/* One multiply-add in each lane: where its samples stand from the row's beginning, in bytes, and its taps for each row
 * of the group. */
struct column {
    union cell taps[GROUP_MAX];
    int32_t offset;
};

/* The multiply-adds with one row of memory: the next COLUMNS of the pass, at least one, for some rows of the group. */
struct step {
    int16_t row, columns;
    uint8_t range; /* STEP_RANGE of the first and last of the group's rows, or STEP_NEXT_PART */
};

#define STEP_RANGE(low, high) ((low)*GROUP_MAX + (high))
/* No multiply-adds: sums are multiplied by 256 (bytes) or 65536 (words). */
#define STEP_NEXT_PART (GROUP_MAX * GROUP_MAX)

struct pass {
    enum arithmetic arithmetic;
    enum target target;
    enum layout layout;
    int group;                    /* rows of outputs at once: what the loops say */
    int row_count;                /* rows of memory that a group reads */
    int step_count, column_count; /* in the order in which they are done */
    int32_t start;                /* what integer sums begin with */
    float offset;                 /* TARGET_F32: what is added */
    bool absolute;                /* TARGET_F32: of the sum's absolute value */
    struct finish finish;
    struct step steps[STEPS_MAX];
    struct column *columns;
};

/* How the sums of two grids become outputs: rows of sums that two passes of one arithmetic left. */
struct join {
    enum combine combine;
    bool is_float;        /* the sums are float */
    enum target target;   /* TARGET_U8 or TARGET_F32 */
    enum layout layout;   /* of the sums */
    float offset;         /* TARGET_F32: what is added */
    struct finish finish; /* of COMBINE_MAX and _SUM; of COMBINE_MAGNITUDE, which makes levels, that changes nothing */

    /* Of COMBINE_MAGNITUDE. In float, as root_fits_float says: truncate(sqrt(N) * factor + term) is the level or one
     * above it. Else by the filter's steps. */
    bool in_float;
    float factor, term;
    int32_t scale, twice_bias;
    const int64_t *steps;
};

/* How rows of sums of samples of uint16_t become outputs, by doubles, which hold all of them. The sum of a grid is
 * one row, or UNIT times a first plus a second plus BASE. Two grids' are combined; a magnitude is then finished with a
 * term that roots_fit_double proves. */
struct join16 {
    enum combine combine;
    enum layout layout; /* of the sums */
    bool is_float;      /* the sums are float, then one row each */
    int digits;         /* rows of a sum: 1 or 2 */
    double unit, base;
    struct rounding16 rounding;
};

/* Rows of sums that are joined, at most: two of each of two grids. */
#define SUMS_MAX 4

/* A window of equal taps, and room for PREFIX_CELLS(width + columns) sums. */
struct window {
    int columns;
    int32_t tap;
    int32_t *prefixes;
};

/* Room for sums of so many columns, ahead of them one vector and behind them one block of each of two kinds. */
#define PREFIX_CELLS(columns) ((columns) + 4 * BLOCK_MAX)

/* One instruction set. */
struct loops {
    const char *name;
    int group, lanes; /* rows of a group; lanes of a vector: a block is four vectors */
    bool bytes;       /* has it ARITHMETIC_BYTES? */
    bool words;       /* ARITHMETIC_WORDS and _PAIRS? */

    /* Do PASS from ROWS, of which the first WIDTH outputs' first column stands at each row's beginning, to OUTS. With PAST_CACHES, outputs are written past the
     * caches; they then begin at multiples of a vector. The same holds for the functions below. */
    void (*run)(const struct pass *pass, const void *const *rows, int width, bool past_caches, void *const *outs);

    /* For a window of equal taps. Slide a row of column sums down: add ENTERING, take off LEAVING. */
    void (*slide)(const uint8_t *entering, const uint8_t *leaving, int count, uint16_t *columns);

    /* Slide the window along a row of column sums: outputs of WIDTH windows, as the pass's FINISH says.
     * Meanwhile fetch the samples that enter at NEXT and leave at GONE. */
    void (*slide_across)(const struct pass *pass, const struct window *window, const uint16_t *columns, int width,
                         bool past_caches, const uint8_t *next, const uint8_t *gone, uint8_t *out);

    /* Join two rows of sums to WIDTH outputs. */
    void (*join)(const struct join *join, const void *first, const void *second, int width, bool past_caches,
                 void *out);

    /* Join rows of sums, those of a grid one after the other, to WIDTH outputs of uint16_t. */
    void (*join16)(const struct join16 *join, void *const *sums, int width, bool past_caches, uint16_t *out);

    /* Copy COUNT samples of uint8_t into a row for ARITHMETIC. */
    void (*widen)(enum arithmetic arithmetic, const uint8_t *from, int count, void *to);

    /* Copy a SHARE of COUNT samples of uint16_t into a row for _WORDS, _FLOATS or _INTS; SHARE_CENTRED is for _WORDS.
     */
    void (*widen16)(enum arithmetic arithmetic, enum share share, const uint16_t *from, int count, void *to);
};

/* The loops of the instruction set that $GPUCONV_CPU asks for, or of the best that the machine has. NULL and ERROR where
 * it does not have what is asked for. */
const struct loops *loops_find(struct error *error);

extern const struct loops loops_portable;
#ifdef GPUCONV_X86
extern const struct loops loops_sse2, loops_avx2, loops_avx512, loops_vnni;
#endif

#endif
