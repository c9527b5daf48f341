/* SPDX-License-Identifier: MIT
 *
 * What program.c and tiles.c share with loops.c, which knows one instruction set. The pass is a list of multiply-adds
 * over rows of memory, and says what happens to the sums at its end. A filter is one pass from samples to outputs, or
 * two passes with rows of sums between them. */
#ifndef GPUCONV_LOOPS_H
#define GPUCONV_LOOPS_H

#include "base/vector/instruction_sets.h"
#include "plan/plan.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GROUP_MAX = 4,         /* rows of outputs that a pass makes at once, at most */
    BLOCK_MAX = 64,        /* outputs of a row that a pass makes at once, at most: four vectors of 16 lanes */
    ROW_SLACK = BLOCK_MAX, /* samples that loops may read, and sums that they may write, beyond the end of a row */
    TAP_PARTS_MAX = 3,     /* parts of a tap, at most */
};

/* What a row of memory holds, and what one multiply-add does in a lane of 32 bits. A column is the item at one x. */
enum arithmetic {
    ARITHMETIC_BYTES,  /* uint8_t samples; four neighbouring columns times four taps of int8_t */
    ARITHMETIC_NARROW, /* uint8_t samples; in half a lane, two neighbouring columns times two taps of int8_t */
    ARITHMETIC_WORDS,  /* int16_t samples; two neighbouring columns times two taps of int16_t */
    ARITHMETIC_PAIRS,  /* int16_t sums of two rows in one lane; a column of two rows times two taps of int16_t */
    ARITHMETIC_FLOATS, /* float; one column times one tap */
    ARITHMETIC_INTS,   /* int32_t; one column times one tap */
};

/* Bytes from a column to the next. */
static inline size_t column_bytes(enum arithmetic arithmetic)
{
    return arithmetic <= ARITHMETIC_NARROW ? 1 : arithmetic == ARITHMETIC_WORDS ? 2 : 4;
}

/* What a pass makes of its sums. Rows of sums keep the order of the lanes in the block (enum layout). */
enum target {
    TARGET_U8,     /* outputs of uint8_t, by struct finish */
    TARGET_F32,    /* outputs of float */
    TARGET_FLOATS, /* rows of sums for ARITHMETIC_FLOATS */
    TARGET_INTS,   /* for ARITHMETIC_INTS */
    TARGET_PAIRS,  /* for ARITHMETIC_PAIRS: one row for two */
    TARGET_U16,    /* outputs of uint16_t, by struct finish */

    /* Each sum s = 65536 h + l is stored in two rows: h, and GROUP rows further l. For ARITHMETIC_INTS, l is 0 to
     * 65535. For ARITHMETIC_PAIRS, one row holds the h of two rows, and the other row their l - 32768. */
    TARGET_HIGH_LOW,
    TARGET_PAIRS_HIGH_LOW,

    /* Rounded rows of sums, for filters in two passes: as TARGET_INTS and TARGET_PAIRS, but of S >> finish.shift. */
    TARGET_SHIFTED_INTS,
    TARGET_SHIFTED_PAIRS,
};

/* The part of a sample of uint16_t that a pass reads. */
enum sample_part {
    PART_ALL,
    PART_CENTRED, /* the sample less 32768, which int16_t holds */
    PART_HIGH,    /* its high byte */
    PART_LOW,     /* its low byte */
};

/* The columns that the four vectors of a block hold; each has L lanes. */
enum layout {
    LAYOUT_STRAIGHT, /* vector v, lane l: column v L + l */
    LAYOUT_TWOS,     /* 2 l + v % 2 + v / 2 * 2 L: lanes of two columns, loaded from two addresses */
    LAYOUT_FOURS,    /* 4 l + v: lanes of four columns, loaded from four addresses, or of halves, loaded from two */
};

/* The layout of the sums of samples. */
static inline enum layout sums_layout(enum arithmetic arithmetic)
{
    return arithmetic <= ARITHMETIC_NARROW  ? LAYOUT_FOURS
           : arithmetic == ARITHMETIC_WORDS ? LAYOUT_TWOS
                                            : LAYOUT_STRAIGHT;
}

/* A sum of 32 bits, or one, two or four taps. */
union cell {
    float f;
    int32_t i;
    int16_t words[2];
    int8_t bytes[4];
};

/* How a sum becomes an output of uint8_t or uint16_t. program.c takes the first way that is exact for the plan. */
enum finish_way {
    FINISH_SHIFT,    /* (S + bias) >> shift, where the scale is a power of two */
    FINISH_FLOAT,    /* truncate(S * factor + term) */
    FINISH_MULTIPLY, /* as rounding_apply */
    FINISH_EACH,     /* rounding_apply, sample by sample */
    FINISH_DOUBLE,   /* for uint16_t, as rounding16_apply */
    FINISH_UNSIGNED, /* S >> shift, where S is the sum modulo 2^32 */
};

/* How a sum of 16 bits becomes an output of uint8_t: S - LESS or 0, times MULTIPLIER >> 16 >> shift. There is no
 * multiplication if the MULTIPLIER is 0. */
struct narrow_finish {
    bool is_used;
    uint16_t less, multiplier;
    int shift;
};

struct finish {
    struct narrow_finish narrow; /* if it is used, it replaces the way */
    enum finish_way way;
    bool absolute;
    int32_t bias, shift;
    float factor, term;
    struct rounding rounding;
    struct rounding16 rounding16;
};

/* The row pass of a filter in two passes, where 32 bits do not hold its sums. A tap is the sum of PARTS digits, d_p
 * times 2^(p * bits), and S_p is the sum of d_p times the samples. The rounded sum is
 *
 *     (((start + S_0 >> bits) + S_1 >> bits) + ... S_last) >> shift
 *
 * as shifts that round down may be joined. Only the number before each shift must fit in 32 bits. */
struct row_parts {
    int parts, bits, shift;
    int count; /* the number of multiply-adds for each part: each has two taps in words, or one in integers */
    int32_t start;
    union cell *taps; /* taps[j * parts + p] has the taps of multiply-add j and part p */
};

#define ROW_PARTS_MAX 4

/* The column pass of the same filter, over rows of rounded sums. Doubles hold its sums, which start with START,
 * exactly. An output is the sum times FACTOR or, if the divisor is not 0, divided by it, rounded down. */
struct double_column {
    double start, factor, divisor;
    double *taps; /* COLUMN_GROUP_MAX - 1 zeros, the pass's taps, and as many zeros again */
    int height;   /* taps without the zeros */
};

/* The maximal number of rows of outputs that a double_column makes at once. */
#define COLUMN_GROUP_MAX 8

/* One multiply-add in each lane: the offset of its samples from the start of the row, in bytes, and its taps for each
 * row of the group. */
struct column {
    union cell taps[GROUP_MAX];
    int32_t offset;
};

/* The multiply-adds with one row of memory: the next COLUMNS of the pass (at least one), for some rows of the group. */
struct step {
    int16_t row, columns;
    uint8_t range; /* STEP_RANGE of the first and the last of these rows, or STEP_NEXT_PART */
};

#define STEP_RANGE(low, high) ((low)*GROUP_MAX + (high))
/* No multiply-adds: multiply the sums by 256 (bytes) or 65536 (words), before the next part of the taps. */
#define STEP_NEXT_PART (GROUP_MAX * GROUP_MAX)

struct pass {
    enum arithmetic arithmetic;
    enum target target;
    enum layout layout;
    int group;                    /* rows of outputs at once, as the loops have it */
    int row_count;                /* rows of memory that one group of outputs reads */
    size_t ahead_bytes;           /* bytes of a sample, if a group of rows of the plane to prefetch follows; else 0 */
    int step_count, column_count; /* in the order of execution */
    bool is_row;                  /* there is one row of taps, in one part: all steps have the columns of the first */
    int32_t start;                /* the value that integer sums start with */
    int16_t narrow_start;         /* the value that sums of ARITHMETIC_NARROW start with, so that 16 bits hold them */
    float offset;                 /* TARGET_F32: added to the sum */
    bool absolute;                /* TARGET_F32: take the absolute value first */
    struct finish finish;
    struct step *steps;
    struct column *columns;
    /* If one of these has taps, it replaces the steps. The rows of sums of the first are TARGET_INTS. */
    struct row_parts row_parts;
    struct double_column double_column;
};

/* How the sums of two grids become outputs. The rows of sums come from two passes with the same arithmetic. */
struct join {
    enum combine combine;
    bool is_float;        /* the sums are float */
    enum target target;   /* TARGET_U8 or TARGET_F32 */
    enum layout layout;   /* the layout of the sums in their rows */
    float offset;         /* TARGET_F32: added to the sum */
    struct finish finish; /* for COMBINE_MAX and _SUM; COMBINE_MAGNITUDE makes levels, which it does not change */

    /* COMBINE_MAGNITUDE: if in_float (see root_fits_float), truncate(sqrt(N) * factor + term) is the level or one above
     * it. Otherwise the level comes from the filter's steps. */
    bool in_float;
    float factor, term;
    int32_t scale, twice_bias;
    const int64_t *steps;
};

/* How rows of sums of samples of uint16_t become outputs, in doubles, which hold all of them. The sum of a grid is one
 * row, or UNIT times a first row plus a second row plus BASE. A magnitude is then finished with the term of struct
 * root16. */
struct join16 {
    enum combine combine;
    enum layout layout; /* the layout of the sums in their rows */
    bool is_float;      /* the sums are float, then one row each */
    int sum_parts;      /* rows of a sum: 1 or 2 */
    double unit, base;
    struct rounding16 rounding;
};

/* Rows of sums that are joined to one row of outputs, at most: two for each of two grids. */
#define JOINED_ROWS_MAX 4

/* A window of equal taps. */
struct window {
    int columns, step; /* samples from a column to the next one */
    int32_t tap;
};

/* A window of taps of 1, larger than the other, for samples of uint8_t or uint16_t: out = truncate((sum + term) *
 * factor). It has memory for one more prefix than columns. */
struct wide_window {
    enum sample sample;
    int columns;
    double term, factor;
    uint64_t *prefixes;
};

/* One instruction set. */
struct loops {
    int group, lanes; /* rows of a group; lanes of a vector. A block is four vectors */
    int narrow_group; /* rows of a group with ARITHMETIC_NARROW */
    int column_group; /* rows of a group of a double_column */
    bool bytes;       /* it has ARITHMETIC_BYTES */
    bool narrow;      /* it has ARITHMETIC_NARROW */
    bool words;       /* it has ARITHMETIC_WORDS and ARITHMETIC_PAIRS */

    /* Apply PASS to ROWS, each from the first column of the first output, and write WIDTH outputs of each row of the
     * group to OUTS. With PAST_CACHES, outputs are written past the caches; they then begin at multiples of a vector.
     * This holds for the functions below too. */
    void (*run)(const struct pass *pass, const void *const *rows, int width, bool past_caches, void *const *outs);

    /* With ARITHMETIC_NARROW, where int16_t holds the sums of both passes: write truncate(sqrt(S1^2 + S2^2) + term), at
     * most 255. */
    void (*run_roots)(const struct pass *first, const struct pass *second, float term, const void *const *rows,
                      int width, bool past_caches, void *const *outs);

    /* For a fast FIR: write the differences of COUNT words. */
    void (*subtract)(const int16_t *from, const int16_t *other, int count, int16_t *to);

    /* For a window of equal taps: slide a row of column sums down. Add ENTERING, subtract LEAVING. */
    void (*slide)(const uint8_t *entering, const uint8_t *leaving, int count, uint16_t *columns);

    /* Add TIMES times ENTERING to the sums of a window. They are uint32_t for a wide window, else uint16_t. */
    void (*slide_times)(enum sample sample, const void *entering, int times, int count, bool is_wide, void *columns);

    /* Slide the window along a row of column sums: WIDTH outputs, by the pass's FINISH. There is a 0 before the row.
     * Meanwhile prefetch the samples that enter at NEXT and leave at GONE. */
    void (*slide_across)(const struct pass *pass, const struct window *window, const uint16_t *columns, int width,
                         bool past_caches, const uint8_t *next, const uint8_t *gone, uint8_t *out);

    /* Do what slide_across does for planes for interleaved pixels (cpu_takes_pixels). */
    void (*add_across)(const struct pass *pass, const struct window *window, const uint16_t *columns, int width,
                       bool past_caches, const uint8_t *next, const uint8_t *gone, uint8_t *out);

    /* Do what slide and slide_across do for a wide window. LEAVING is NULL while rows enter only. */
    void (*slide_wide)(enum sample sample, const void *entering, const void *leaving, int count, uint32_t *columns);
    void (*slide_across_wide)(const struct wide_window *window, const uint32_t *columns, int width, void *out);

    /* Join two rows of sums to WIDTH outputs. */
    void (*join)(const struct join *join, const void *first, const void *second, int width, bool past_caches,
                 void *out);

    /* Join rows of sums to WIDTH outputs of uint16_t. The rows of one grid follow each other. */
    void (*join16)(const struct join16 *join, void *const *sums, int width, bool past_caches, uint16_t *out);

    /* The outputs of an unsharp mask without a threshold, from rows of WIDTH samples and of their blurs: of uint16_t
     * for samples of uint8_t, of int32_t for uint16_t, both in 2^-UNSHARP_LEVEL_BITS levels, and of float for float. */
    void (*unsharp)(const struct passes *passes, enum sample sample, const void *blurs, const void *in, int width,
                    void *out);

    /* For the threshold of an unsharp mask: mark_detail sets the marks of the samples with enough detail. In the end,
     * keep_unmarked copies the samples of all pixels without a mark from IN. */
    void (*mark_detail)(const struct passes *passes, enum sample sample, const void *blurs, const void *in, int width,
                        uint8_t *marks);
    void (*keep_unmarked)(enum sample sample, const uint8_t *marks, const void *in, int width, void *out);

    /* Copy COUNT samples of uint8_t into a row for ARITHMETIC. */
    void (*widen)(enum arithmetic arithmetic, const uint8_t *from, int count, void *to);

    /* Copy PART of COUNT samples of uint16_t into a row for ARITHMETIC_WORDS, _FLOATS or _INTS. PART_CENTRED is not for
     * _FLOATS. */
    void (*widen16)(enum arithmetic arithmetic, enum sample_part part, const uint16_t *from, int count, void *to);
};

extern const struct loops loops_portable, loops_sse2, loops_avx2, loops_avx512, loops_vnni, loops_neon, loops_i8mm;

#endif
