/* SPDX-License-Identifier: MIT
 *
 * The inner loops of the variant `cpu`, compiled once for each instruction set (meson.build lists them). A block of
 * outputs is four vectors wide and a group of rows high. Its sums stay in registers while the steps of the pass are
 * done once. A vector of samples is loaded once and meets the taps of every row of the group.
 *
 * Where a multiply-add sums 4 (or 2) neighbouring samples in each lane, as vpdpbusd, usdot (or vpmaddwd) do, one load
 * at column x serves the outputs x, x + 4, x + 8...; loads at x + 1, x + 2 and x + 3 serve the others. The samples need
 * no shuffles. The outputs of the four vectors are put in order when they are packed to bytes, which takes a shuffle in
 * any case. The cost for 64 outputs of one row, in vectors of 64 bytes:
 *
 *                                    3 x 3                     9 x 9              15 x 15
 *     this way, multiply-adds        3 * 4 = 12                9 * 3 * 4 = 108    15 * 4 * 4 = 240
 *               loads (a group of 4) 6 * 4 / 4 = 6             12 * 3 * 4 / 4 = 36 18 * 4 * 4 / 4 = 72
 *     fours of rows interleaved,     (1 + 1 + 2 + 2) * 3 = 18  3 * 9 * 4 = 108    (4 + 4 + 5 + 5) * 15 = 270
 *               loads                2 * 3 * 4 / 4 = 6         27                 5 * 15 * 4 / 4 = 75
 *
 * Interleaving also takes 16 shuffles for 64 columns of four rows. If each byte of a lane had a tap, 9 x 9 would take
 * 81 multiply-adds. */

#include "cpu/outputs.h"
#include "cpu/plain_loops.h"

#include <string.h>

/* samples * taps + sums. */
INLINE ints multiply_add_cells(enum arithmetic arithmetic, ints sums, ints samples, ints taps)
{
    switch (arithmetic) {
    case ARITHMETIC_BYTES:
#if HAS_FOURS
        return multiply_fours_add(sums, samples, taps);
#else
        break;
#endif
    case ARITHMETIC_NARROW:
#if HAS_BYTE_PAIRS
        return (ints)add_shorts((shorts)sums, multiply_byte_pairs(samples, taps));
#else
        break;
#endif
    case ARITHMETIC_WORDS:
    case ARITHMETIC_PAIRS:
        return multiply_pairs_add(sums, (shorts)samples, (shorts)taps);
    case ARITHMETIC_FLOATS:
        return (ints)((floats)samples * (floats)taps + (floats)sums);
    case ARITHMETIC_INTS:
        break;
    }
    return add(multiply(samples, taps), sums);
}

/* Bytes from an output, or a sum, to the next. */
INLINE size_t target_bytes(enum target target)
{
    return target == TARGET_U8 ? 1 : target == TARGET_U16 ? 2 : 4;
}

INLINE ints finish_float(float offset, bool absolute, ints c)
{
    if (absolute)
        c &= INT32_MAX;
    return (ints)((floats)c + repeat_float(offset));
}

INLINE ints pair_values(ints first, ints second)
{
    return (first & 0xffff) | shift_left(second, 16);
}

/* Two sums in a lane: their high halves. pair_low: their low halves less 32768. */
INLINE ints pair_high(ints first, ints second)
{
    return (ints)((uints)first >> 16) | (second & (int32_t)0xffff0000);
}

INLINE ints pair_low(ints first, ints second)
{
    return pair_values(first, second) ^ (int32_t)0x80008000;
}

/* The rows of a group. */
INLINE int group_of(enum arithmetic arithmetic)
{
    return arithmetic == ARITHMETIC_NARROW ? NARROW_GROUP : GROUP;
}

/* The vectors that hold the sums of a block while they are made. */
INLINE int sum_vectors(enum arithmetic arithmetic)
{
    return arithmetic == ARITHMETIC_NARROW ? 2 : 4;
}

/* The sums of a block. All loops over them are unrolled, so that every sum has a register of its own. */
struct sums {
    ints of[GROUP_MAX][4];
};

/* The multiply-adds of a step with rows LOW to HIGH of the group: of its columns, from COLUMN up to END. */
INLINE void multiply_columns(struct sums *sums, const struct column *column, const struct column *end, const char *from,
                             const enum arithmetic arithmetic, const int low, const int high)
{
    /* Two columns in each iteration: a tenth faster for floats, and no difference for bytes and words. */
    TWICE
    do {
        const char *at = from + column->offset;
        ints taps[GROUP_MAX];
        FOR_UNROLLED (a, low, high + 1)
            taps[a] = repeat(column->taps[a].i);
        FOR_UNROLLED (v, 0, sum_vectors(arithmetic)) {
            const ints samples = load(at + vector_offset(arithmetic, v));
            FOR_UNROLLED (a, low, high + 1)
                sums->of[a][v] = multiply_add_cells(arithmetic, sums->of[a][v], samples, taps[a]);
        }
    } while (++column < end);
}

/* Sums of 16 bits become sums of 32 bits, in LAYOUT_FOURS. */
INLINE void widen_sums(const struct pass *pass, struct sums *sums)
{
    const ints start = repeat((int32_t)((uint32_t)pass->start - (uint32_t)pass->narrow_start));
    FOR_UNROLLED (a, 0, NARROW_GROUP)
        FOR_UNROLLED (v, 0, 2) {
            const ints two = sums->of[a][v];
            sums->of[a][v] = add(shift_left(two, 16) >> 16, start);
            sums->of[a][v + 2] = add(two >> 16, start);
        }
}

/* Outputs of sums of 16 bits, the odd columns after the even ones. */
#if HAS_BYTE_PAIRS
INLINE ints join_bytes(shorts even, shorts odd)
{
    const shorts white = repeat_short(255);
    return (ints)(smaller_ushorts(even, white) | (shorts)((ushorts)smaller_ushorts(odd, white) << 8));
}

INLINE shorts finish_shorts(const struct narrow_finish *n, shorts sums)
{
    sums = subtract_ushorts(sums, repeat_short(n->less));
    if (n->multiplier == 0)
        return sums;
    return (shorts)((ushorts)multiply_high_ushorts(sums, repeat_short(n->multiplier)) >> n->shift);
}
#endif

/* Store sums of 16 bits, if the target needs no more. The PAIRS have the start of these sums. */
INLINE bool store_narrow(const struct pass *pass, const struct narrow_finish *narrow, const struct sums *sums,
                         bool past, char *const *to)
{
#if HAS_BYTE_PAIRS
    if (pass->target == TARGET_PAIRS) {
        FOR_UNROLLED (p, 0, NARROW_GROUP / 2)
            FOR_UNROLLED (v, 0, 2) {
                store(to[p] + v * VECTOR, pair_values(sums->of[2 * p][v], sums->of[2 * p + 1][v]));
                store(to[p] + (v + 2) * VECTOR, pair_high(sums->of[2 * p][v], sums->of[2 * p + 1][v]));
            }
        return true;
    }
    if (!narrow->is_used)
        return false;
    FOR_UNROLLED (a, 0, NARROW_GROUP)
        store_output(
            to[a],
            join_bytes(finish_shorts(narrow, (shorts)sums->of[a][0]), finish_shorts(narrow, (shorts)sums->of[a][1])),
            past);
    return true;
#else
    (void)pass, (void)narrow, (void)sums, (void)past, (void)to;
    return false;
#endif
}

/* The steps of a pass over single rows, where all rows of the group have the same taps. */
INLINE void sum_row_steps(const struct pass *pass, const void *const *rows, int x, const enum arithmetic arithmetic,
                          struct sums *sums)
{
    const struct column *column = pass->columns, *end = column + pass->steps->columns;
    const char *from[GROUP_MAX];
    FOR_UNROLLED (a, 0, group_of(arithmetic))
        from[a] = (const char *)rows[a] + (size_t)x * column_bytes(arithmetic);
    do {
        const ints taps = repeat(column->taps[0].i);
        FOR_UNROLLED (a, 0, group_of(arithmetic))
            FOR_UNROLLED (v, 0, sum_vectors(arithmetic))
                sums->of[a][v] = multiply_add_cells(
                    arithmetic, sums->of[a][v], load(from[a] + column->offset + vector_offset(arithmetic, v)), taps);
    } while (++column < end);
}

/* The steps of a pass over single columns. */
INLINE void sum_column_steps(const struct pass *pass, const void *const *rows, int x, const enum arithmetic arithmetic,
                             struct sums *sums)
{
    const struct column *column = pass->columns;
    const struct step *end = pass->steps + pass->step_count;
    for (const struct step *step = pass->steps; step < end; step++, column++)
        multiply_columns(sums, column, column + 1, (const char *)rows[step->row] + (size_t)x * column_bytes(arithmetic),
                         arithmetic, 0, group_of(arithmetic) - 1);
}

/* Compute the sums of the block from column X on: all steps of PASS. */
INLINE void sum_pass_block(const struct pass *pass, const void *const *rows, int x, const enum arithmetic arithmetic,
                           struct sums *sums)
{
    const int part_bits = arithmetic == ARITHMETIC_BYTES ? 8 : 16;
    const struct step *end = pass->steps + pass->step_count;
    const ints start = arithmetic == ARITHMETIC_FLOATS   ? (ints){0}
                       : arithmetic == ARITHMETIC_NARROW ? (ints)repeat_short(pass->narrow_start)
                                                         : repeat(pass->start);
    const struct column *column = pass->columns;
    FOR_UNROLLED (a, 0, group_of(arithmetic))
        FOR_UNROLLED (v, 0, 4)
            sums->of[a][v] = start;
    if (pass->is_row) {
        sum_row_steps(pass, rows, x, arithmetic, sums);
        return;
    }
    if (arithmetic == ARITHMETIC_PAIRS) {
        sum_column_steps(pass, rows, x, arithmetic, sums);
        return;
    }
    for (const struct step *step = pass->steps; step < end; step++) {
        const char *from = (const char *)rows[step->row] + (size_t)x * column_bytes(arithmetic);
        const struct column *column_end = column + step->columns;
        switch (step->range) {
#define STEP(LOW, HIGH)                                                                                                \
    case STEP_RANGE(LOW, HIGH):                                                                                        \
        if ((HIGH) >= group_of(arithmetic))                                                                            \
            __builtin_unreachable();                                                                                   \
        multiply_columns(sums, column, column_end, from, arithmetic, LOW, (HIGH) < group_of(arithmetic) ? (HIGH) : 0); \
        break;
            STEP(0, 0)
            STEP(0, 1)
            STEP(1, 1)
            STEP(0, 2)
            STEP(0, 3)
            STEP(1, 2)
            STEP(1, 3)
            STEP(2, 2)
            STEP(2, 3)
            STEP(3, 3)
        case STEP_NEXT_PART:
            FOR_UNROLLED (a, 0, group_of(arithmetic))
                FOR_UNROLLED (v, 0, 4)
                    sums->of[a][v] = shift_left(sums->of[a][v], part_bits);
            break;
        default:
            __builtin_unreachable();
        }
        column = column_end;
    }
}

/* Convert the sums of a block to outputs or rows of sums at TO, as the target of the pass says. */
INLINE void store_block_sums(const struct pass *pass, const struct finish *finish, struct sums *sums, bool past,
                             const enum arithmetic arithmetic, enum layout layout, char *const *to)
{
    const bool is_float = arithmetic == ARITHMETIC_FLOATS;
    ints(*c)[4] = sums->of;
    if (arithmetic == ARITHMETIC_NARROW) {
        if (store_narrow(pass, &finish->narrow, sums, past, to))
            return;
        widen_sums(pass, sums);
    }
    switch (pass->target) {
    case TARGET_U8:
        FOR_UNROLLED (a, 0, group_of(arithmetic))
            finish_bytes(finish, is_float, c[a], layout, past, (uint8_t *)to[a]);
        break;
    case TARGET_U16:
        FOR_UNROLLED (a, 0, group_of(arithmetic))
            finish_words(finish, is_float, c[a], layout, past, (uint16_t *)(void *)to[a]);
        break;
    case TARGET_PAIRS:
        FOR_UNROLLED (p, 0, group_of(arithmetic) / 2)
            FOR_UNROLLED (v, 0, 4)
                store(to[p] + v * VECTOR, pair_values(c[2 * p][v], c[2 * p + 1][v]));
        break;
    case TARGET_HIGH_LOW:
        FOR_UNROLLED (a, 0, group_of(arithmetic))
            FOR_UNROLLED (v, 0, 4) {
                store(to[a] + v * VECTOR, c[a][v] >> 16);
                store(to[group_of(arithmetic) + a] + v * VECTOR, c[a][v] & 0xffff);
            }
        break;
    case TARGET_PAIRS_HIGH_LOW:
        FOR_UNROLLED (p, 0, group_of(arithmetic) / 2)
            FOR_UNROLLED (v, 0, 4) {
                store(to[p] + v * VECTOR, pair_high(c[2 * p][v], c[2 * p + 1][v]));
                store(to[group_of(arithmetic) + p] + v * VECTOR, pair_low(c[2 * p][v], c[2 * p + 1][v]));
            }
        break;
    case TARGET_F32:
        FOR_UNROLLED (a, 0, group_of(arithmetic))
            FOR_UNROLLED (v, 0, 4)
                store_output(to[a] + v * VECTOR, finish_float(pass->offset, pass->absolute, c[a][v]), past);
        break;
    case TARGET_FLOATS:
        FOR_UNROLLED (a, 0, group_of(arithmetic))
            FOR_UNROLLED (v, 0, 4)
                store(to[a] + v * VECTOR, is_float ? c[a][v] : (ints) __builtin_convertvector(c[a][v], floats));
        break;
    case TARGET_INTS:
        FOR_UNROLLED (a, 0, group_of(arithmetic))
            FOR_UNROLLED (v, 0, 4)
                store(to[a] + v * VECTOR, c[a][v]);
        break;
    case TARGET_SHIFTED_INTS:
        FOR_UNROLLED (a, 0, group_of(arithmetic))
            FOR_UNROLLED (v, 0, 4)
                store(to[a] + v * VECTOR, c[a][v] >> finish->shift);
        break;
    case TARGET_SHIFTED_PAIRS:
        FOR_UNROLLED (p, 0, group_of(arithmetic) / 2)
            FOR_UNROLLED (v, 0, 4)
                store(to[p] + v * VECTOR, pair_values(c[2 * p][v] >> finish->shift, c[2 * p + 1][v] >> finish->shift));
        break;
    }
}

INLINE void prefetch_rows(const struct pass *pass, const void *const *rows, int x)
{
    for (int a = 0; a < pass->group && pass->ahead_bytes > 0; a++)
        __builtin_prefetch((const char *)rows[pass->row_count + a] + (size_t)x * pass->ahead_bytes);
}

/* Do blocks from column X on, until COUNT outputs are done. */
INLINE void run_blocks(const struct pass *pass, const void *const *rows, int x, int count, bool past, char *const *outs,
                       const enum arithmetic arithmetic)
{
    const enum target target = pass->target;
    const bool high_low = target == TARGET_HIGH_LOW || target == TARGET_PAIRS_HIGH_LOW;
    const size_t output_bytes = target_bytes(target);
    const bool samples = arithmetic <= ARITHMETIC_WORDS;
    const enum layout layout = samples ? sums_layout(arithmetic) : pass->layout;
    const struct finish finish =
        pass->finish; /* a copy, because a compiler must assume that a store may change the pass */
    char *to[2 * GROUP_MAX];
    for (int a = 0; a < (high_low ? 2 : 1) * group_of(arithmetic); a++)
        to[a] = outs[a];
    for (; count > 0; x += BLOCK, count -= BLOCK) {
        struct sums sums;
        prefetch_rows(pass, rows, x);
        sum_pass_block(pass, rows, x, arithmetic, &sums);
        store_block_sums(pass, &finish, &sums, past, arithmetic, layout, to);
        for (int a = 0; a < group_of(arithmetic); a++)
            to[a] += BLOCK * output_bytes;
        for (int a = group_of(arithmetic); high_low && a < 2 * group_of(arithmetic); a++)
            to[a] += BLOCK * output_bytes;
    }
}

/* Write whole blocks directly. A last partial block goes through a buffer, unless rows have slack for it. */
INLINE void run_pass(const struct pass *pass, const void *const *rows, int width, bool past, void *const *outs,
                     const enum arithmetic arithmetic)
{
    const bool exact = pass->target == TARGET_U8 || pass->target == TARGET_U16 || pass->target == TARGET_F32;
    const bool high_low = pass->target == TARGET_HIGH_LOW || pass->target == TARGET_PAIRS_HIGH_LOW;
    const int whole = exact ? width / BLOCK * BLOCK : width;
    const size_t output_bytes = target_bytes(pass->target);
    union cell rest[GROUP_MAX][BLOCK] __attribute__((aligned(VECTOR)));
    char *to[2 * GROUP_MAX];
    int count;
    for (int x = 0; x < width; x += count) {
        count = x < whole ? whole : width - whole;
        for (int a = 0; a < (high_low ? 2 : 1) * group_of(arithmetic); a++)
            to[a] = x < whole ? outs[a] : (char *)rest[a];
        run_blocks(pass, rows, x, count, past, to, arithmetic);
    }
    if (past)
        fence_past();
    if (whole < width)
        for (int a = 0; a < group_of(arithmetic); a++)
            memcpy((char *)outs[a] + (size_t)whole * output_bytes, rest[a], (size_t)(width - whole) * output_bytes);
}

/* As slide_across, for windows of pixels: 16 bits hold their sums, which are in the order of the columns. */
static void add_across(const struct pass *pass, const struct window *window, const uint16_t *columns, int width,
                       bool past, const uint8_t *next, const uint8_t *gone, uint8_t *out)
{
    const struct finish finish = pass->finish;
    const struct window of = *window;
    for (int x = 0; x < width; x += BLOCK) {
        uint8_t rest[BLOCK] __attribute__((aligned(VECTOR)));
        const bool whole = width - x >= BLOCK;
        shorts sums[2] = {{0}};
        __builtin_prefetch(next + x);
        __builtin_prefetch(gone + x);
        for (int k = 0; k < of.columns; k++)
            FOR_UNROLLED (half, 0, 2)
                sums[half] = add_shorts(sums[half], load_shorts(columns + x + k * of.step + half * 2 * LANES));
#if HAS_BYTE_PAIRS
        const shorts start = repeat_short(pass->narrow_start), white = repeat_short(255);
        FOR_UNROLLED (half, 0, 2)
            sums[half] = smaller_ushorts(finish_shorts(&finish.narrow, add_shorts(sums[half], start)), white);
        store_output(whole ? out + x : rest, gather_halves((ints)pack_shorts_unsigned(sums[0], sums[1])),
                     past && whole);
#else
        ints c[4];
        FOR_UNROLLED (v, 0, 4)
            c[v] = multiply_pairs(sums[v / 2], repeat_pair(v % 2 == 0, v % 2)) & 0xffff;
        finish_bytes(&finish, false, c, LAYOUT_TWOS, past && whole, whole ? out + x : rest);
#endif
        if (!whole)
            memcpy(out + x, rest, (size_t)(width - x));
    }
    if (past)
        fence_past();
}

/* ---- Roots of sums of 16 bits ---- */

#if HAS_BYTE_PAIRS

INLINE shorts roots(shorts a, shorts b, floats term)
{
    const shorts pairs[2] = {zip_first16(a, b), zip_last16(a, b)};
    ints root[2];
    FOR_UNROLLED (half, 0, 2)
        root[half] = __builtin_convertvector(
            square_root(__builtin_convertvector(multiply_pairs(pairs[half], pairs[half]), floats)) + term, ints);
    return pack(root[0], root[1]);
}

static void run_roots(const struct pass *first, const struct pass *second, float term, const void *const *rows,
                      int width, bool past, void *const *outs)
{
    for (int x = 0; x < width; x += BLOCK) {
        struct sums sums[2];
        const bool whole = width - x >= BLOCK;
        prefetch_rows(first, rows, x);
        sum_pass_block(first, rows, x, ARITHMETIC_NARROW, &sums[0]);
        sum_pass_block(second, rows, x, ARITHMETIC_NARROW, &sums[1]);
        FOR_UNROLLED (a, 0, NARROW_GROUP) {
            char rest[BLOCK] __attribute__((aligned(VECTOR))), *to = (char *)outs[a] + x;
            shorts levels[2];
            FOR_UNROLLED (v, 0, 2)
                levels[v] = roots((shorts)sums[0].of[a][v], (shorts)sums[1].of[a][v], repeat_float(term));
            store_output(whole ? to : rest, join_bytes(levels[0], levels[1]), past && whole);
            if (!whole)
                memcpy(to, rest, (size_t)(width - x));
        }
    }
    if (past)
        fence_past();
}

#endif

/* ---- Filters in two passes, with sums beyond 32 bits ---- */

INLINE void sum_row_parts(const struct row_parts *p, const char *row, int width, int32_t *out,
                          const enum arithmetic arithmetic, const int parts)
{
    for (int x = 0; x < width; x += BLOCK) {
        const char *from = row + (size_t)x * column_bytes(arithmetic);
        const union cell *taps = p->taps, *end = taps + p->count * parts;
        ints sums[ROW_PARTS_MAX][4];
        FOR_UNROLLED (part, 0, parts)
            FOR_UNROLLED (v, 0, 4)
                sums[part][v] = repeat(part == 0 ? p->start : 0);
        for (; taps < end; taps += parts, from += sizeof *taps)
            FOR_UNROLLED (v, 0, 4) {
                const ints samples = load(from + vector_offset(arithmetic, v));
                FOR_UNROLLED (part, 0, parts)
                    sums[part][v] = multiply_add_cells(arithmetic, sums[part][v], samples, repeat(taps[part].i));
            }
        FOR_UNROLLED (v, 0, 4) {
            ints sum = sums[0][v];
            FOR_UNROLLED (part, 1, parts)
                sum = add(sum >> p->bits, sums[part][v]);
            store(out + x + v * LANES, sum >> p->shift);
        }
    }
}

INLINE void run_row_parts(const struct pass *pass, const void *const *rows, int width, void *const *outs,
                          const enum arithmetic arithmetic)
{
    const struct row_parts p = pass->row_parts;
    for (int a = 0; a < pass->group; a++)
        switch (p.parts) {
        case 1:
            sum_row_parts(&p, rows[a], width, outs[a], arithmetic, 1);
            break;
        case 2:
            sum_row_parts(&p, rows[a], width, outs[a], arithmetic, 2);
            break;
        case 3:
            sum_row_parts(&p, rows[a], width, outs[a], arithmetic, 3);
            break;
        default:
            sum_row_parts(&p, rows[a], width, outs[a], arithmetic, 4);
            break;
        }
}

/* The sums of a group of rows, for one vector of columns in two halves. */
struct column_sums {
    doubles of[COLUMN_GROUP][2];
};

/* Add a row of sums, times its tap for each of the rows LOW to HIGH of the group. TAPS is at the tap of row 0. */
INLINE void multiply_row(struct column_sums *sums, const int32_t *row, const double *taps, const int low,
                         const int high)
{
    const doubles lower = load_doubles(row), upper = load_doubles(row + LANES / 2);
    FOR_UNROLLED (a, low, high + 1) {
        const doubles tap = repeat_double(taps[-a]);
        sums->of[a][0] = lower * tap + sums->of[a][0];
        sums->of[a][1] = upper * tap + sums->of[a][1];
    }
}

/* Output A of the group takes rows A to A + height - 1: at the first and the last rows, some outputs have no tap. */
INLINE void sum_double_column(const struct double_column *c, const void *const *rows, int x, struct column_sums *sums)
{
    const double *taps = c->taps + COLUMN_GROUP_MAX - 1;
    FOR_UNROLLED (a, 0, (int)COLUMN_GROUP)
        sums->of[a][0] = sums->of[a][1] = repeat_double(c->start);
    FOR_UNROLLED (r, 0, (int)COLUMN_GROUP - 1)
        multiply_row(sums, (const int32_t *)rows[r] + x, taps + r, 0, r);
    int r = COLUMN_GROUP - 1;
    for (; r < c->height; r++)
        multiply_row(sums, (const int32_t *)rows[r] + x, taps + r, 0, COLUMN_GROUP - 1);
    FOR_UNROLLED (k, 0, (int)COLUMN_GROUP - 1)
        if (c->height + k >= r)
            multiply_row(sums, (const int32_t *)rows[c->height + k] + x, taps + c->height + k, k + 1, COLUMN_GROUP - 1);
}

/* Write COUNT of the 2 LANES levels, in the order of LAYOUT, as the target says. */
INLINE void write_levels(const struct pass *pass, const int32_t *levels, int count, void *to)
{
    int32_t ints_of[2 * LANES];
    uint16_t words[2 * LANES];
    uint8_t bytes[2 * LANES];
    if (pass->layout == LAYOUT_TWOS)
        for (int l = 0; l < (int)LANES; l++) {
            ints_of[2 * l] = levels[l];
            ints_of[2 * l + 1] = levels[LANES + l];
        }
    else
        memcpy(ints_of, levels, sizeof ints_of);
    for (int k = 0; k < 2 * (int)LANES; k++) {
        words[k] = (uint16_t)ints_of[k];
        bytes[k] = (uint8_t)ints_of[k];
    }
    const void *from = pass->target == TARGET_U8    ? (const void *)bytes
                       : pass->target == TARGET_U16 ? (const void *)words
                                                    : ints_of;
    memcpy(to, from, (size_t)count * target_bytes(pass->target));
}

static void run_double_column(const struct pass *pass, const void *const *rows, int width, void *const *outs)
{
    const struct double_column c = pass->double_column;
    for (int x = 0; x < width; x += 2 * LANES) {
        int32_t levels[COLUMN_GROUP][2 * LANES];
        for (int v = 0; v < 2; v++) {
            struct column_sums sums;
            sum_double_column(&c, rows, x + v * LANES, &sums);
            FOR_UNROLLED (a, 0, (int)COLUMN_GROUP) {
                doubles lower = sums.of[a][0], upper = sums.of[a][1];
                if (c.divisor == 0) {
                    lower *= repeat_double(c.factor);
                    upper *= repeat_double(c.factor);
                } else {
                    lower /= repeat_double(c.divisor);
                    upper /= repeat_double(c.divisor);
                }
                store(levels[a] + v * LANES, join_doubles(lower, upper));
            }
        }
        const int count = width - x < 2 * (int)LANES ? width - x : 2 * (int)LANES;
        for (int a = 0; a < (int)COLUMN_GROUP; a++)
            write_levels(pass, levels[a], count, (char *)outs[a] + (size_t)x * target_bytes(pass->target));
    }
}

static void apply_pass(const struct pass *pass, const void *const *rows, int width, bool past, void *const *outs)
{
    if (pass->row_parts.taps != NULL) {
        if (HAS_PAIRS && pass->arithmetic == ARITHMETIC_WORDS)
            run_row_parts(pass, rows, width, outs, ARITHMETIC_WORDS);
        else
            run_row_parts(pass, rows, width, outs, ARITHMETIC_INTS);
        return;
    }
    if (pass->double_column.taps != NULL) {
        run_double_column(pass, rows, width, outs);
        return;
    }
    switch (pass->arithmetic) {
    case ARITHMETIC_BYTES:
        if (HAS_FOURS)
            run_pass(pass, rows, width, past, outs, ARITHMETIC_BYTES);
        break;
    case ARITHMETIC_NARROW:
        if (HAS_BYTE_PAIRS)
            run_pass(pass, rows, width, past, outs, ARITHMETIC_NARROW);
        break;
    case ARITHMETIC_WORDS:
        if (HAS_PAIRS)
            run_pass(pass, rows, width, past, outs, ARITHMETIC_WORDS);
        break;
    case ARITHMETIC_PAIRS:
        if (HAS_PAIRS)
            run_pass(pass, rows, width, past, outs, ARITHMETIC_PAIRS);
        break;
    case ARITHMETIC_FLOATS:
        run_pass(pass, rows, width, past, outs, ARITHMETIC_FLOATS);
        break;
    case ARITHMETIC_INTS:
        run_pass(pass, rows, width, past, outs, ARITHMETIC_INTS);
        break;
    }
}

/* Levels of COMBINE_MAGNITUDE, as root_fits_float says. Numbers of float that are not negative have the order of their
 * bits. Below 2^24 squares are exact, whether the compiler joins a multiplication to the addition or not. */
INLINE ints root_levels(const struct join *j, floats a, floats b)
{
    const floats max = repeat_float(1 << 24);
    const ints wide = (ints)(a * a + b * b);
    const floats n = (floats)smaller(wide, (ints)max);
    const floats guess = square_root(n) * repeat_float(j->factor) + repeat_float(j->term);
    const ints level = clamp(__builtin_convertvector(guess, ints), repeat(0), repeat(FILTER_LEVELS - 1));
    const ints k = subtract(multiply(level, repeat(2 * j->scale)), repeat(j->twice_bias));
    const ints signed_square = multiply(k, magnitude(k));
    return level + (ints)(signed_square > shift_left(__builtin_convertvector(n, ints), 2)); /* a true lane is -1 */
}

/* Combine a vector of sums of each grid to what the finish takes, or to outputs of float. */
INLINE ints join_vector(const struct join *j, ints a, ints b)
{
    a = j->is_float ? (ints)magnitude_floats((floats)a) : magnitude(a);
    b = j->is_float ? (ints)magnitude_floats((floats)b) : magnitude(b);
    if (j->combine == COMBINE_MAX)
        return larger(a, b);
    if (j->combine == COMBINE_SUM)
        return j->is_float ? (ints)((floats)a + (floats)b) : add(a, b);
    if (j->target == TARGET_F32)
        return (ints)square_root((floats)a * (floats)a + (floats)b * (floats)b);
    return j->is_float ? root_levels(j, (floats)a, (floats)b)
                       : root_levels(j, __builtin_convertvector(a, floats), __builtin_convertvector(b, floats));
}

/* Join a block sum by sum, and write COUNT outputs of it: for magnitudes that floats do not give exactly. */
NOT_INLINED static void join_each(const struct join *j, const int32_t *first, const int32_t *second, int count,
                                  uint8_t *out)
{
    for (int k = 0; k < BLOCK; k++) {
        const int position = block_position(j->layout, k / LANES, k % LANES);
        float a, b;
        if (position >= count)
            continue;
        memcpy(&a, &first[k], sizeof a);
        memcpy(&b, &second[k], sizeof b);
        out[position] =
            j->is_float ? root_level(j->steps, (int32_t)a, (int32_t)b) : root_level(j->steps, first[k], second[k]);
    }
}

static void join_grid_sums(const struct join *from, const void *first, const void *second, int width, bool past_caches,
                           void *out)
{
    const struct join j = *from; /* a copy, because a compiler must assume that a store may change it */
    const bool each = j.combine == COMBINE_MAGNITUDE && j.target == TARGET_U8 && !j.in_float;
    const bool is_float = j.is_float && j.combine != COMBINE_MAGNITUDE; /* levels are integers */
    const size_t output_bytes = j.target == TARGET_U8 ? 1 : sizeof(union cell);
    union cell rest[BLOCK] __attribute__((aligned(VECTOR)));
    const int32_t *a = first, *b = second;
    for (int x = 0; x < width; x += BLOCK, a += BLOCK, b += BLOCK) {
        const int left = width - x;
        if (each) {
            join_each(&j, a, b, left, (uint8_t *)out + x);
            continue;
        }
        void *to = left >= BLOCK ? (char *)out + (size_t)x * output_bytes : (char *)rest;
        const bool past = past_caches && left >= BLOCK;
        ints c[4];
        FOR_UNROLLED (v, 0, 4)
            c[v] = join_vector(&j, load(a + v * LANES), load(b + v * LANES));
        if (j.target == TARGET_U8)
            finish_bytes(&j.finish, is_float, c, j.layout, past, to);
        else
            FOR_UNROLLED (v, 0, 4)
                store_output((char *)to + v * VECTOR, finish_float(j.offset, false, c[v]), past);
        if (left < BLOCK)
            memcpy((char *)out + (size_t)x * output_bytes, rest, (size_t)left * output_bytes);
    }
    if (past_caches)
        fence_past();
}

const struct loops IN_SET(loops) = {
    .group = GROUP,
    .narrow_group = NARROW_GROUP,
    .lanes = LANES,
    .column_group = COLUMN_GROUP,
    .bytes = HAS_FOURS,
    .narrow = HAS_BYTE_PAIRS,
    .words = HAS_PAIRS,
    .run = apply_pass,
#if HAS_BYTE_PAIRS
    .run_roots = run_roots,
#endif
    .subtract = subtract_words,
    .slide = slide,
    .slide_times = slide_times,
    .slide_across = slide_across,
    .add_across = add_across,
    .slide_wide = slide_wide,
    .slide_across_wide = slide_across_wide,
    .join = join_grid_sums,
    .join16 = join16,
    .unsharp = unsharp,
    .mark_detail = mark_detail,
    .keep_unmarked = keep_unmarked,
    .widen = widen8,
    .widen16 = widen16,
};
