/* SPDX-License-Identifier: MIT
 *
 * The variants of the CPU: the reference, written to be read, and the fast one, which comes from it in four steps.
 *
 * 1. The border leaves the inner loop. The image is cut into tiles; each input row of a tile is copied once, with its
 *    halo and what stands outside the image, into a row of a small ring that holds the rows under a group of outputs.
 *    That copy also widens the samples where the arithmetic wants them wider.
 * 2. The taps become a program (struct pass) without the zeros, for several rows of outputs at once. A block of outputs
 *    keeps its sums in vector registers while the program is walked once.
 * 3. One instruction multiplies and adds 2 or 4 taps in 32 bits, where the machine has it: taps that do not fit in 16
 * or 8 bits are split in parts, and the sums of a part shifted up before the next is added. All of it is modulo 2^32,
 *    and the whole sum fits, so it is exact.
 * 4. A separable filter is two such programs: its row applied to each input row on the way into a ring of sums, its
 *    column to that ring.
 * 5. A filter of two grids is two such programs over the same rows, whose rows of sums are then joined to outputs.
 * 6. Samples of 16 bits are words less 32768, and the sums the same as long as 32 bits hold them: up to sum|q| = 32767.
 *    Above that every sum is two, which are joined in doubles: of the high and the low bytes of the samples, or, where
 *    there are two passes, of the upper and the lower halves of the sums of the first.
 *
 * Tiles are handed to threads. conv_cpu_loops.c walks the programs; it is compiled once for each instruction set, and
 * the best that the machine has is taken at run time. */
#include "cpu/cpu.h"

#include "base/parallel.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* These are named in the table only. */
bool reference_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                      struct error *error);
bool cpu_prepare(struct plan *plan, struct device *device, struct error *error);
bool cpu_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                struct error *error);

static const void *row_at(const struct plane *plane, int channel, int y)
{
    return (const char *)plane->data + (size_t)channel * plane->plane_bytes + (size_t)y * plane->row_bytes;
}

static void *row_to(const struct plane *plane, int channel, int y)
{
    return (char *)plane->data + (size_t)channel * plane->plane_bytes + (size_t)y * plane->row_bytes;
}

/* The reference. */

/* The sum that GRID, one of the filter's, makes at (y, x). */
static int64_t reference_sum(const struct plan *plan, int grid, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    int64_t sum = 0;
    for (int i = 0; i < f->height; i++)
        for (int j = 0; j < f->width; j++) {
            const int from_y = border_index(y + i - f->anchor_y, in->height, plan->border);
            const int from_x = border_index(x + j - f->anchor_x, in->width, plan->border);
            if (from_y >= 0 && from_x >= 0)
                sum += (int64_t)f->taps[(grid * f->height + i) * f->width + j] *
                       (in->sample == SAMPLE_U8 ? ((const uint8_t *)row_at(in, channel, from_y))[from_x]
                                                : ((const uint16_t *)row_at(in, channel, from_y))[from_x]);
        }
    return sum;
}

static uint8_t reference_u8(const struct plan *plan, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    int64_t sum = reference_sum(plan, 0, in, channel, y, x);
    if (f->combine != COMBINE_NONE) {
        const int64_t first = llabs(sum), second = llabs(reference_sum(plan, 1, in, channel, y, x));
        if (f->combine == COMBINE_MAGNITUDE) {
            int level = 0;
            while (level < FILTER_LEVELS - 1 && f->steps[level + 1] <= first * first + second * second)
                level++;
            return (uint8_t)level;
        }
        sum = f->combine == COMBINE_SUM ? first + second : first > second ? first : second;
    }
    if (f->absolute && sum < 0)
        sum = -sum;
    sum += f->bias;
    const int64_t level = sum < 0 ? 0 : sum / f->scale; /* floor: a negative sum is clamped to 0 either way */
    return (uint8_t)(level < 255 ? level : 255);
}

static uint16_t reference_u16(const struct plan *plan, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    int64_t sum = reference_sum(plan, 0, in, channel, y, x);
    if (f->combine != COMBINE_NONE) {
        const int64_t first = llabs(sum), second = llabs(reference_sum(plan, 1, in, channel, y, x));
        if (f->combine == COMBINE_MAGNITUDE) {
            const uint128 squares = (uint128)first * (uint128)first + (uint128)second * (uint128)second;
            int level = 0;
            for (int half = 1 << 15; half > 0; half /= 2)
                level += root16_reaches(&plan->root16, squares, level + half) ? half : 0;
            return (uint16_t)level;
        }
        sum = f->combine == COMBINE_SUM ? first + second : first > second ? first : second;
    }
    if (f->absolute && sum < 0)
        sum = -sum;
    sum += f->bias16;
    const int64_t level = sum < 0 ? 0 : sum / f->scale;
    return (uint16_t)(level < 65535 ? level : 65535);
}

static double reference_float_sum(const struct plan *plan, int grid, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    double sum = 0;
    for (int i = 0; i < f->height; i++)
        for (int j = 0; j < f->width; j++) {
            const int from_y = border_index(y + i - f->anchor_y, in->height, plan->border);
            const int from_x = border_index(x + j - f->anchor_x, in->width, plan->border);
            if (from_y >= 0 && from_x >= 0)
                sum += (double)f->taps[(grid * f->height + i) * f->width + j] *
                       (double)((const float *)row_at(in, channel, from_y))[from_x];
        }
    return sum;
}

static float reference_f32(const struct plan *plan, const struct plane *in, int channel, int y, int x)
{
    const struct filter *f = plan->filter;
    double sum = reference_float_sum(plan, 0, in, channel, y, x);
    if (f->combine != COMBINE_NONE) {
        const double first = fabs(sum), second = fabs(reference_float_sum(plan, 1, in, channel, y, x));
        sum = f->combine == COMBINE_MAGNITUDE ? sqrt(first * first + second * second)
              : f->combine == COMBINE_SUM     ? first + second
                                              : fmax(first, second);
    }
    return (float)((f->absolute ? fabs(sum) : sum) / f->scale + f->offset);
}

struct images {
    const struct plan *plan;
    const struct plane *in, *out;
};

static void reference_row(void *context, int64_t index, int thread)
{
    (void)thread;
    const struct images *images = context;
    const struct plane *in = images->in, *out = images->out;
    const int channel = (int)(index / in->height), y = (int)(index % in->height);
    for (int x = 0; x < in->width; x++)
        if (in->sample == SAMPLE_U8)
            ((uint8_t *)row_to(out, channel, y))[x] = reference_u8(images->plan, in, channel, y, x);
        else if (in->sample == SAMPLE_U16)
            ((uint16_t *)row_to(out, channel, y))[x] = reference_u16(images->plan, in, channel, y, x);
        else
            ((float *)row_to(out, channel, y))[x] = reference_f32(images->plan, in, channel, y, x);
}

bool reference_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                      struct error *error)
{
    (void)device;
    (void)error;
    struct images images = {plan, in, out};
    parallel_for(parallel_threads(plan->threads), (int64_t)in->count * in->height, reference_row, &images);
    return true;
}

/* The fast one. */

enum {
    TILE_BYTES = 24 << 10,        /* of a ring: three quarters of the smallest L1 data cache in use, 32 KiB */
    TILE_WIDTH_LEAST = 256,       /* or the halo columns are much beside it; high filters then live in L2 */
    TILE_WIDTH_MOST = 4096,       /* whole pages of a row at a time */
    TILE_HEIGHT_MOST = 256,       /* unless the filter's halo rows are much beside it */
    WINDOW_HEIGHT_MOST = 1024,    /* the same of running sums, whose halo rows are no cheaper than others */
    TILES_A_THREAD = 4,           /* so that threads end at about the same time */
    PARALLEL_WORK = 1 << 18,      /* multiply-adds below which waking threads costs more than it saves */
    WINDOW_TAPS = 25,             /* of equal taps from which on running sums take less time than multiply-adds */
    WINDOW_ROWS = 4,              /* of scratch: an entering and a leaving row, and two of column sums, twice as long */
    ALIGNMENT = 64,               /* a cache line, and the widest vector */
    IN_PLACE_WIDTHS = 8,          /* the narrow tiles at both ends are then at most a quarter of the image */
    PAST_CACHES_BYTES = 16 << 20, /* of output that no later pass finds in a cache */
};

/* What cpu_prepare derives from a plan. It does not depend on the planes, and launches only read it. */
struct program {
    const struct loops *loops;
    struct pass *first, *last; /* the same where there is one pass */
    struct pass *second;       /* of the second grid, after the first; NULL where there is one grid */
    int sums;                  /* rows of sums that are joined to one of outputs: DIGITS of each grid; 0: none are */
    int digits;                /* 1; of samples of uint16_t 2 where 32 bits do not hold a sum */
    enum share shares[2]; /* of samples of uint16_t: what the first pass reads, for each digit if there is one pass */
    bool is_root16;       /* magnitudes of uint16_t that doubles do not serve */
    struct join join;     /* of the two */
    struct join16 join16; /* of all SUMS, for samples of uint16_t */
    int shift_tap;        /* where outputs are samples: the tap that takes them; else -1 */
    bool is_window;       /* of equal taps: no steps */
};

/* One launch: what all its tiles share. */
struct launch {
    const struct plan *plan;
    const struct program *program;
    const struct plane *in, *out;
    bool past_caches; /* outputs are written past the caches */
    bool in_place;    /* samples are read where they stand, away from the border */
    int first_width, tile_width, tile_height, tiles_x, tiles_y; /* the first column of tiles has a width of its own */
    int input_sets, input_rows;                                 /* of a thread's scratch */
    int ring_rows; /* for each digit a ring of the first pass's sums, where there are two passes */
    int sum_rows;  /* SUMS of each row of a group */
    size_t input_bytes, ring_bytes, spare_bytes; /* of a row; sums are as long as the rings' rows */
    size_t scratch_bytes;
    char *scratch;
};

static size_t column_bytes(enum arithmetic arithmetic)
{
    return arithmetic == ARITHMETIC_BYTES ? 1 : arithmetic == ARITHMETIC_WORDS ? 2 : 4;
}

static size_t round_up(size_t value, size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

static void copy_samples(const struct launch *launch, enum share share, const void *row, int x, int count, char *to)
{
    if (launch->plan->sample == SAMPLE_F32)
        memcpy(to, (const float *)row + x, (size_t)count * sizeof(float));
    else if (launch->plan->sample == SAMPLE_U16)
        launch->program->loops->widen16(launch->program->first->arithmetic, share, (const uint16_t *)row + x, count,
                                        to);
    else
        launch->program->loops->widen(launch->program->first->arithmetic, (const uint8_t *)row + x, count, to);
}

/* COUNT samples of 0. */
static void copy_zeros(const struct launch *launch, enum share share, int count, char *to)
{
    const int16_t centred = INT16_MIN; /* 0 - 32768 */
    if (share != SHARE_CENTRED) {
        memset(to, 0, (size_t)count * column_bytes(launch->program->first->arithmetic));
        return;
    }
    for (int k = 0; k < count; k++)
        memcpy(to + (size_t)k * sizeof centred, &centred, sizeof centred);
}

static void copy_cell(char *to, const char *from, size_t size)
{
    if (size == 1)
        *to = *from;
    else
        memcpy(to, from, size);
}

/* A row for the first pass: to[k] = in(y, x0 + k), or the SHARE of it, for k from 0 to COUNT, border included. */
static void load_row(const struct launch *launch, enum share share, int channel, int y, int x0, int count, char *to)
{
    const enum border border = launch->plan->border;
    const size_t size = column_bytes(launch->program->first->arithmetic);
    const int from_y = border_index(y, launch->in->height, border);
    if (from_y < 0) {
        copy_zeros(launch, share, count, to);
        return;
    }
    const void *row = row_at(launch->in, channel, from_y);
    const int width = launch->in->width;
    const int before = x0 < 0 ? (-x0 < count ? -x0 : count) : 0; /* columns left of the image */
    const int after = width - x0 < count ? width - x0 : count;   /* the first column right of it */
    if (after > before)
        copy_samples(launch, share, row, x0 + before, after - before, to + (size_t)before * size);
    for (int k = before > 0 || after <= before ? 0 : after; k < count; k++) {
        if (k == before && after > before)
            k = after;
        if (k == count)
            break;
        const int x = border_index(x0 + k, width, border);
        if (x < 0)
            copy_zeros(launch, share, 1, to + (size_t)k * size);
        else if (x >= x0 + before && x < x0 + after) /* it is in the row already */
            copy_cell(to + (size_t)k * size, to + (size_t)(x - x0) * size, size);
        else
            copy_samples(launch, share, row, x, 1, to + (size_t)k * size);
    }
}

/* One tile of one plane: rows Y0 to Y1, columns X0 to X1. */
struct tile {
    int channel, y0, y1, x0, x1;
};

/* Input row ROW of the tile, for the first pass, a SHARE of its samples: where it stands, if the pass reads samples as
 * they are and all that it reads is inside the image; else a copy in TO. */
static const void *tile_row(const struct launch *launch, enum share share, const struct tile *tile, int row, char *to)
{
    const struct filter *f = launch->plan->filter;
    const int y = tile->y0 + row - f->anchor_y, x = tile->x0 - f->anchor_x;
    const int count = tile->x1 - tile->x0 + f->width - 1;
    if (launch->in_place && x >= 0 && x + count + ROW_SLACK <= launch->in->width) {
        const int from_y = border_index(y, launch->in->height, launch->plan->border);
        if (from_y >= 0)
            return (const char *)row_at(launch->in, tile->channel, from_y) +
                   (size_t)x * sample_bytes(launch->in->sample);
    }
    load_row(launch, share, tile->channel, y, x, count, to);
    return to;
}

/* Where the image's row stands that is tile row ROW: to be fetched ahead, border or not. */
static const void *row_ahead(const struct launch *launch, const struct tile *tile, int row)
{
    const int y = tile->y0 + row - launch->plan->filter->anchor_y, last = launch->in->height - 1;
    return (const char *)row_at(launch->in, tile->channel, y < 0 ? 0 : y > last ? last : y) + tile->x0;
}

/* The rows of the output that a group writes; those below the tile go to a spare row. */
static void group_outs(const struct launch *launch, const struct tile *tile, int y, char *spare, void **outs)
{
    for (int a = 0; a < GROUP_MAX; a++)
        outs[a] = y + a < tile->y1 ? (char *)row_to(launch->out, tile->channel, y + a) +
                                         (size_t)tile->x0 * sample_bytes(launch->out->sample)
                                   : spare;
}

/* Where the rows of sums of a group stand that are joined. Those that the program does not have are never looked at. */
static void group_sums(const struct launch *launch, char *from, void *sums[SUMS_MAX][GROUP_MAX])
{
    const int group = launch->program->last->group;
    for (int sum = 0; sum < SUMS_MAX; sum++)
        for (int a = 0; a < GROUP_MAX; a++)
            sums[sum][a] =
                from + (sum < launch->program->sums && a < group ? (size_t)(sum * group + a) * launch->ring_bytes : 0);
}

/* The sum of column X that stands in ROWS, for samples of uint16_t. */
static int64_t sum_at(const struct launch *launch, void *const *rows, int x)
{
    const int lanes = launch->program->loops->lanes, k = x % (4 * lanes);
    if (launch->program->join16.layout == LAYOUT_TWOS)
        x += (k / (2 * lanes) * 2 + k % 2) * lanes + k % (2 * lanes) / 2 - k;
    const union cell first = ((const union cell *)rows[0])[x];
    const int64_t value = launch->program->join16.is_float ? (int64_t)first.f : first.i;
    return launch->program->digits == 1
               ? value
               : (int64_t)launch->program->join16.unit * value + ((const union cell *)rows[1])[x].i +
                     (int64_t)launch->program->join16.base;
}

/* Levels of COMBINE_MAGNITUDE that doubles may miss by one or two. */
static void join_roots(const struct launch *launch, void *const *sums, int width, uint16_t *out)
{
    void *const *const second = launch->program->digits == 1 ? sums + 1 : sums + 2;
    for (int x = 0; x < width; x++)
        out[x] =
            root16_level(&launch->plan->root16, (double)sum_at(launch, sums, x), (double)sum_at(launch, second, x));
}

/* Join the rows of sums of a group, of which row Y is the first, to the rows of outputs that are in the tile. */
static void join_group(const struct launch *launch, const struct tile *tile, int y, void *sums[SUMS_MAX][GROUP_MAX],
                       void *const *outs)
{
    const int width = tile->x1 - tile->x0;
    for (int a = 0; a < launch->program->last->group && y + a < tile->y1; a++) {
        void *const of_row[SUMS_MAX] = {sums[0][a], sums[1][a], sums[2][a], sums[3][a]};
        if (launch->plan->sample != SAMPLE_U16)
            launch->program->loops->join(&launch->program->join, of_row[0], of_row[1], width, launch->past_caches,
                                         outs[a]);
        else if (launch->program->is_root16)
            join_roots(launch, of_row, width, outs[a]);
        else
            launch->program->loops->join16(&launch->program->join16, of_row, width, launch->past_caches, outs[a]);
    }
}

static void convolve_at_once(const struct launch *launch, const struct tile *tile, char *scratch)
{
    const struct pass *pass = launch->program->first;
    const int width = tile->x1 - tile->x0;
    char *first_sum = scratch + (size_t)(launch->input_sets * launch->input_rows) * launch->input_bytes;
    char *spare = first_sum + (size_t)launch->sum_rows * launch->ring_bytes;
    const void *ring[2][FILTER_MAX + GROUP_MAX], *rows[2][FILTER_MAX + GROUP_MAX];
    void *outs[GROUP_MAX] = {NULL}, *sums[SUMS_MAX][GROUP_MAX] = {{NULL}};
    group_sums(launch, first_sum, sums);
    int loaded = 0;
    for (int y = tile->y0; y < tile->y1; y += pass->group) {
        const int top = y - tile->y0;
        for (; loaded < top + pass->row_count; loaded++)
            for (int set = 0; set < launch->input_sets; set++) {
                const int slot = loaded % launch->input_rows;
                ring[set][slot] = tile_row(launch, launch->program->shares[set], tile, loaded,
                                           scratch + (size_t)(set * launch->input_rows + slot) * launch->input_bytes);
            }
        for (int set = 0; set < launch->input_sets; set++)
            for (int r = 0; r < pass->row_count; r++)
                rows[set][r] = ring[set][(top + r) % launch->input_rows];
        group_outs(launch, tile, y, spare, outs);
        if (launch->program->sums == 0) {
            launch->program->loops->run(pass, rows[0], width, launch->past_caches, outs);
            continue;
        }
        for (int digit = 0; digit < launch->program->digits; digit++) {
            launch->program->loops->run(pass, rows[digit], width, false, sums[digit]);
            if (launch->program->second != NULL)
                launch->program->loops->run(launch->program->second, rows[digit], width, false,
                                            sums[launch->program->digits + digit]);
        }
        join_group(launch, tile, y, sums, outs);
    }
}

/* Rows of the image in a row of sums. */
static int rows_in_one(enum target target)
{
    return target == TARGET_PAIRS || target == TARGET_PAIR_HALVES ? 2 : 1;
}

static void convolve_in_passes(const struct launch *launch, const struct tile *tile, char *scratch)
{
    const struct pass *first = launch->program->first, *last = launch->program->last;
    const bool joined = launch->program->sums > 0;
    const int width = tile->x1 - tile->x0;
    char *rings = scratch + (size_t)launch->input_rows * launch->input_bytes;
    char *first_sum = rings + (size_t)(launch->program->digits * launch->ring_rows) * launch->ring_bytes;
    char *spare = first_sum + (size_t)launch->sum_rows * launch->ring_bytes;
    const int unit = rows_in_one(first->target);
    const void *rows[FILTER_MAX + GROUP_MAX];
    void *outs[2 * GROUP_MAX], *sums[SUMS_MAX][GROUP_MAX] = {{NULL}};
    group_sums(launch, first_sum, sums);
    int summed = 0; /* rows of the ring */
    for (int y = tile->y0; y < tile->y1; y += last->group) {
        const int top = (y - tile->y0) / unit;
        while (summed < top + last->row_count) {
            for (int a = 0; a < first->group; a++)
                rows[a] = tile_row(launch, launch->program->shares[0], tile, summed * unit + a,
                                   scratch + (size_t)a * launch->input_bytes);
            for (int a = 0; a < first->group / unit; a++)
                for (int digit = 0; digit < launch->program->digits; digit++)
                    outs[digit * first->group + a] =
                        rings +
                        (size_t)(digit * launch->ring_rows + (summed + a) % launch->ring_rows) * launch->ring_bytes;
            launch->program->loops->run(first, rows, width, false, outs);
            summed += first->group / unit;
        }
        group_outs(launch, tile, y, spare, outs);
        for (int digit = 0; digit < launch->program->digits; digit++) {
            for (int r = 0; r < last->row_count; r++)
                rows[r] =
                    rings + (size_t)(digit * launch->ring_rows + (top + r) % launch->ring_rows) * launch->ring_bytes;
            launch->program->loops->run(last, rows, width, !joined && launch->past_caches, joined ? sums[digit] : outs);
        }
        if (joined)
            join_group(launch, tile, y, sums, outs);
    }
}

/* A window of equal taps: sums of its columns slide down, the window slides along them. */
static void convolve_window(const struct launch *launch, const struct tile *tile, char *scratch)
{
    const struct filter *f = launch->plan->filter;
    const int width = tile->x1 - tile->x0, count = width + f->width - 1;
    char *entering = scratch, *leaving = entering + launch->input_bytes;
    uint16_t *columns = (uint16_t *)(void *)(leaving + launch->input_bytes);
    const struct window window = {f->width, f->taps[0],
                                  (int32_t *)(void *)(scratch + (size_t)launch->input_rows * launch->input_bytes)};
    memset(columns, 0, 2 * launch->input_bytes);
    memset(leaving, 0, launch->input_bytes);
    for (int row = 0; row < tile->y1 - tile->y0 + f->height - 1; row++) {
        const uint8_t *in = tile_row(launch, SHARE_ALL, tile, row, entering);
        const uint8_t *gone =
            row < f->height ? (const void *)leaving : tile_row(launch, SHARE_ALL, tile, row - f->height, leaving);
        launch->program->loops->slide(in, gone, count, columns);
        const int y = tile->y0 + row - (f->height - 1);
        if (y >= tile->y0)
            launch->program->loops->slide_across(launch->program->last, &window, columns, width, launch->past_caches,
                                                 row_ahead(launch, tile, row + 1),
                                                 row_ahead(launch, tile, row + 1 - f->height),
                                                 (uint8_t *)row_to(launch->out, tile->channel, y) + tile->x0);
    }
}

/* The picture moved, or left where it is: every row of outputs is a row of samples, border included. */
static void convolve_shift(const struct launch *launch, const struct tile *tile)
{
    const struct filter *f = launch->plan->filter;
    const int down = launch->program->shift_tap / f->width - f->anchor_y,
              right = launch->program->shift_tap % f->width - f->anchor_x;
    for (int y = tile->y0; y < tile->y1; y++)
        load_row(launch, SHARE_ALL, tile->channel, y + down, tile->x0 + right, tile->x1 - tile->x0,
                 (char *)row_to(launch->out, tile->channel, y) + (size_t)tile->x0 * sample_bytes(launch->out->sample));
}

static void convolve_numbered_tile(void *context, int64_t index, int thread)
{
    const struct launch *launch = context;
    const int width = launch->in->width, height = launch->in->height;
    const int column = (int)(index % launch->tiles_x);
    const int x0 = column == 0 ? 0 : (column - 1) * launch->tile_width + launch->first_width;
    const int y0 = (int)(index / launch->tiles_x % launch->tiles_y) * launch->tile_height;
    const struct tile tile = {
        .channel = (int)(index / launch->tiles_x / launch->tiles_y),
        .y0 = y0,
        .y1 = height - y0 < launch->tile_height ? height : y0 + launch->tile_height,
        .x0 = x0,
        .x1 = column == 0                       ? launch->first_width
              : width - x0 < launch->tile_width ? width
                                                : x0 + launch->tile_width,
    };
    char *scratch = launch->scratch + (size_t)thread * launch->scratch_bytes;
    if (launch->program->shift_tap >= 0)
        convolve_shift(launch, &tile);
    else if (launch->program->is_window)
        convolve_window(launch, &tile, scratch);
    else if (launch->program->first == launch->program->last)
        convolve_at_once(launch, &tile, scratch);
    else
        convolve_in_passes(launch, &tile, scratch);
}

/* Programs. */

/* Taps to be made a pass of: those of column j in row i, SIZE bits of it, from bit PART * SIZE on, such that the parts
 * sum to the tap and each is a signed number. */
static int32_t tap_part(int32_t tap, int part, int bits)
{
    int64_t rest = tap;
    for (;; part--) {
        const int64_t half = (int64_t)1 << (bits - 1);
        const int64_t digit = ((rest + half) & (2 * half - 1)) - half;
        if (part == 0)
            return (int32_t)digit;
        rest = (rest - digit) >> bits;
    }
}

/* How many parts of so many bits a tap takes. */
static int tap_parts(int32_t tap, int bits)
{
    int parts = 1;
    const int64_t half = (int64_t)1 << (bits - 1);
    for (int64_t rest = tap; rest < -half || rest >= half; parts++)
        rest = (rest - tap_part((int32_t)rest, 0, bits)) >> bits;
    return parts;
}

/* What a pass is made from: HEIGHT x WIDTH taps. */
struct weights {
    int width, height;
    const int32_t *taps;
    double divisor; /* of float taps */
};

static int weights_parts(const struct weights *w, int bits)
{
    int most = 1;
    for (int i = 0; i < w->width * w->height; i++) {
        const int parts = tap_parts(w->taps[i], bits);
        most = parts > most ? parts : most;
    }
    return most;
}

/* How many taps a lane takes across, and of how many bits they are; 0: as many as they have. */
static int lane_taps(enum arithmetic arithmetic)
{
    return arithmetic == ARITHMETIC_BYTES ? 4 : arithmetic == ARITHMETIC_WORDS ? 2 : 1;
}

static int part_bits(enum arithmetic arithmetic)
{
    return arithmetic == ARITHMETIC_BYTES ? 8 : arithmetic == ARITHMETIC_WORDS ? 16 : 0;
}

static bool pass_allocate(struct pass **pass, size_t columns)
{
    *pass = calloc(1, sizeof **pass);
    if (*pass == NULL)
        return false;
    (*pass)->columns = malloc(columns * sizeof *(*pass)->columns);
    return (*pass)->columns != NULL;
}

static void pass_free(struct pass *pass)
{
    if (pass == NULL)
        return;
    free(pass->columns);
    free(pass);
}

/* The tap at row I and column J; 0 outside. */
static int32_t weight_at(const struct weights *w, int i, int j)
{
    return i >= 0 && i < w->height && j < w->width ? w->taps[i * w->width + j] : 0;
}

/* The taps of one lane for output row A of the group: at memory row R and column J. */
static union cell lane_cell(const struct pass *pass, const struct weights *w, int part, int r, int a, int j)
{
    union cell cell = {.i = 0};
    switch (pass->arithmetic) {
    case ARITHMETIC_BYTES:
        for (int k = 0; k < 4; k++)
            cell.bytes[k] = (int8_t)tap_part(weight_at(w, r - a, j + k), part, 8);
        break;
    case ARITHMETIC_WORDS:
        for (int k = 0; k < 2; k++)
            cell.words[k] = (int16_t)tap_part(weight_at(w, r - a, j + k), part, 16);
        break;
    case ARITHMETIC_PAIRS:
        for (int k = 0; k < 2; k++)
            cell.words[k] = (int16_t)weight_at(w, 2 * r + k - a, j);
        break;
    case ARITHMETIC_FLOATS:
        cell.f = (float)(weight_at(w, r - a, j) / w->divisor);
        break;
    case ARITHMETIC_INTS:
        cell.i = weight_at(w, r - a, j);
        break;
    }
    return cell;
}

/* Is there a tap in the lane's first column? */
static bool starts_lane(enum arithmetic arithmetic, union cell cell)
{
    return arithmetic == ARITHMETIC_BYTES   ? cell.bytes[0] != 0
           : arithmetic == ARITHMETIC_WORDS ? cell.words[0] != 0
                                            : cell.i != 0;
}

/* Add the step of one part at memory row R, without what is 0 for every row of the group. */
static void add_step(struct pass *pass, const struct weights *w, int part, int r)
{
    int low = GROUP_MAX, high = 0, count = 0;
    for (int j = 0; j < w->width;) {
        struct column *column = &pass->columns[pass->column_count];
        bool starts = false;
        for (int a = 0; a < GROUP_MAX; a++) {
            column->taps[a] = a < pass->group ? lane_cell(pass, w, part, r, a, j) : (union cell){.i = 0};
            starts |= starts_lane(pass->arithmetic, column->taps[a]);
        }
        if (!starts) {
            j++;
            continue;
        }
        for (int a = 0; a < GROUP_MAX; a++)
            if (column->taps[a].i != 0) {
                low = a < low ? a : low;
                high = a > high ? a : high;
            }
        column->offset = j * (int32_t)column_bytes(pass->arithmetic);
        pass->column_count++;
        count++;
        j += lane_taps(pass->arithmetic);
    }
    if (count > 0)
        pass->steps[pass->step_count++] =
            (struct step){.row = (int16_t)r, .columns = (int16_t)count, .range = (uint8_t)STEP_RANGE(low, high)};
}

/* Make the program of all steps. */
static void pass_fill(struct pass *pass, const struct weights *w)
{
    const int bits = part_bits(pass->arithmetic);
    const int unit = pass->arithmetic == ARITHMETIC_PAIRS ? 2 : 1;
    pass->row_count = (w->height + pass->group - 1 + unit - 1) / unit;
    const int parts = bits > 0 ? weights_parts(w, bits) : 1;
    for (int part = parts - 1; part >= 0; part--) {
        if (part < parts - 1)
            pass->steps[pass->step_count++] = (struct step){.range = STEP_NEXT_PART};
        for (int r = 0; r < pass->row_count; r++)
            add_step(pass, w, part, r);
    }
}

/* The way of struct finish that is exact for the plan.
 *
 * FINISH_FLOAT: with t = S + B, the output is floor((t + 1/2) / D), and (t + 1/2) / D is at least 1 / 2D away from any
 * integer. Computed is S * fl(1/D) + fl((B + 1/2) / D), each of the four roundings off by at most u = 2^-24 of its
 * result: u |S| / D twice, u (|B| + 1) / D, and for a result below 300 (above, the output is 255 anyway) u 300. All of
 * it is below 1 / 2D where 2 |S| + |B| + 1 + 300 D < 2^23. Truncation is floor where the output is not 0. */
static void finish_make(const struct plan *plan, struct finish *finish)
{
    const struct filter *f = plan->filter;
    const int64_t most = f->absolute_sum * 255, bias = f->bias < 0 ? -f->bias : f->bias;
    *finish = (struct finish){.way = FINISH_MULTIPLY, .absolute = f->absolute, .rounding = plan->rounding};
    if (plan->rounding.wide) {
        finish->way = FINISH_EACH;
    } else if ((f->scale & (f->scale - 1)) == 0 && most + bias <= INT32_MAX) {
        finish->way = FINISH_SHIFT;
        finish->bias = (int32_t)f->bias;
        while (1 << finish->shift < f->scale)
            finish->shift++;
    } else if (2 * most + bias + 1 + 300 * (int64_t)f->scale < 1 << 23) {
        finish->way = FINISH_FLOAT;
        finish->factor = (float)(1.0 / f->scale);
        finish->term = (float)(((double)f->bias + 0.5) / f->scale);
    }
}

/* The cheaper arithmetic on samples of uint8_t for these weights. */
static enum arithmetic sample_arithmetic(const struct plan *plan, const struct program *program,
                                         const struct weights *w)
{
    if (!program->loops->words)
        return plan->float_exact ? ARITHMETIC_FLOATS : ARITHMETIC_INTS;
    const int bytes = weights_parts(w, 8) * ((w->width + 3) / 4), words = weights_parts(w, 16) * ((w->width + 1) / 2);
    return program->loops->bytes && bytes <= words && weights_parts(w, 8) <= PARTS_MOST ? ARITHMETIC_BYTES
                                                                                        : ARITHMETIC_WORDS;
}

/* Multiply-adds of a vector of outputs. */
static double pass_cost(enum arithmetic arithmetic, const struct weights *w)
{
    const int bits = part_bits(arithmetic), lane = lane_taps(arithmetic);
    return (double)w->height * ((w->width + lane - 1) / lane) * (bits > 0 ? weights_parts(w, bits) : 1);
}

/* Can sums of the row be held in 16 bits, once their middle is taken off? *START is what to begin them with. */
static bool fits_pairs(const struct filter *f, int32_t *start)
{
    int64_t negative = 0, positive = 0;
    for (int j = 0; j < f->width; j++)
        *(f->row[j] < 0 ? &negative : &positive) += (int64_t)f->row[j] * 255;
    *start = (int32_t)(INT16_MIN - negative);
    bool fits = positive - negative <= UINT16_MAX;
    for (int i = 0; i < f->height; i++)
        fits &= f->column[i] >= -INT16_MAX && f->column[i] <= INT16_MAX;
    return fits;
}

/* The number of the only tap that is not 0, where it is the scale and nothing is added: outputs are samples. Else -1.
 */
static int find_shift(const struct filter *f)
{
    int shift = -1;
    for (int i = 0; i < f->width * f->height; i++) {
        if (f->taps[i] == 0)
            continue;
        if (shift >= 0 || f->taps[i] != f->scale)
            return -1;
        shift = i;
    }
    return f->offset == 0 && !f->absolute ? shift : -1;
}

/* Are all taps equal, and enough of them for running sums to be cheaper than multiply-adds? */
static bool is_window(const struct filter *f)
{
    bool equal = f->width > 1;
    for (int i = 1; i < f->width * f->height; i++)
        equal &= f->taps[i] == f->taps[0];
    return equal && f->width * f->height >= WINDOW_TAPS;
}

/* A pass for each of the two grids, over the same rows of samples, and what joins their sums. */
static bool make_grids(const struct plan *plan, struct program *program)
{
    const struct filter *f = plan->filter;
    const bool planes = plan->sample == SAMPLE_F32;
    const double divisor = planes ? f->scale : 1;
    const struct weights both = {f->width, 2 * f->height, f->taps, divisor};
    const enum arithmetic arithmetic = planes ? ARITHMETIC_FLOATS : sample_arithmetic(plan, program, &both);
    const size_t columns = (size_t)(f->height + GROUP_MAX - 1) * (size_t)f->width;
    struct pass **const passes[] = {&program->last, &program->second};
    for (int grid = 0; grid < 2; grid++) {
        const struct weights w = {f->width, f->height, f->taps + grid * f->width * f->height, divisor};
        if (!pass_allocate(passes[grid], (planes ? 1 : PARTS_MOST) * columns))
            return false;
        struct pass *pass = *passes[grid];
        pass->group = program->loops->group;
        pass->arithmetic = arithmetic;
        pass->target = arithmetic == ARITHMETIC_FLOATS ? TARGET_FLOATS : TARGET_INTS;
        pass_fill(pass, &w);
    }
    program->first = program->last;
    program->shift_tap = -1;
    program->sums = 2;

    struct join *join = &program->join;
    *join = (struct join){
        .combine = f->combine,
        .is_float = arithmetic == ARITHMETIC_FLOATS,
        .target = planes ? TARGET_F32 : TARGET_U8,
        .layout = arithmetic == ARITHMETIC_BYTES   ? LAYOUT_FOURS
                  : arithmetic == ARITHMETIC_WORDS ? LAYOUT_TWOS
                                                   : LAYOUT_STRAIGHT,
        .offset = plan->offset,
        .steps = f->steps,
    };
    finish_make(plan, &join->finish);
    if (f->combine != COMBINE_MAGNITUDE || planes)
        return true;
    /* Levels are left as they are: a shift by 0, and the rounding of D = 1 and B = 0. */
    join->finish = (struct finish){.way = FINISH_SHIFT,
                                   .rounding = {.scale = 1, .high = 255, .bias = 1, .multiplier = UINT32_MAX}};
    /* N is at most 2^24 there, so sqrt(N) / D <= 2^12, and so is (O + 1/2): with seven roundings by u = 2^-24 at most,
     * what is truncated errs by less than 7 * 2^-12 < 2^-8, which is added so that it is not too low. */
    join->in_float = plan->root_in_float;
    join->factor = (float)(1.0 / f->scale);
    join->term = (float)(plan->twice_bias / (2.0 * f->scale) + 1.0 / 256);
    join->scale = f->scale;
    join->twice_bias = plan->twice_bias;
    return true;
}

/* Words of 16 bits. */

/* sum|q| up to which 32 bits hold sums of samples of uint16_t, and 16 bits all taps. */
enum { NARROW_SUM = INT16_MAX };
static_assert((int64_t)NARROW_SUM * 65535 <= INT32_MAX, "32 bits hold the sums");

static int64_t absolute_sum(const int32_t *taps, int count)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += taps[i] < 0 ? -(int64_t)taps[i] : taps[i];
    return sum;
}

static int64_t plain_sum(const int32_t *taps, int count)
{
    int64_t sum = 0;
    for (int i = 0; i < count; i++)
        sum += taps[i];
    return sum;
}

/* What sums of samples less 32768 begin with, modulo 2^32. */
static int32_t centred_start(const struct weights *w)
{
    return (int32_t)(uint32_t)(uint64_t)(plain_sum(w->taps, w->width * w->height) * 32768);
}

/* The way of struct finish for outputs of uint16_t. What is shifted must not wrap, nor be where SSE2 does not pack it.
 */
static void finish16_make(const struct plan *plan, struct finish *finish)
{
    const struct filter *f = plan->filter;
    const int64_t bias = f->bias16 < 0 ? -f->bias16 : f->bias16;
    *finish = (struct finish){.way = FINISH_DOUBLE, .absolute = f->absolute, .rounding16 = plan->rounding16};
    if ((f->scale & (f->scale - 1)) == 0 && f->absolute_sum * 65535 + bias <= INT32_MAX - 32768) {
        finish->way = FINISH_SHIFT;
        finish->bias = (int32_t)f->bias16;
        while (1 << finish->shift < f->scale)
            finish->shift++;
    }
}

/* Numbers for joining sums to outputs of uint16_t. */
static void join16_make(const struct plan *plan, struct program *program, bool is_float)
{
    const struct filter *f = plan->filter;
    program->sums = program->digits * filter_grids(f);
    program->join16 = (struct join16){
        .combine = f->combine,
        .layout = program->loops->words ? LAYOUT_TWOS : LAYOUT_STRAIGHT,
        .is_float = is_float,
        .digits = program->digits,
        .unit = 256,
        .rounding = f->combine == COMBINE_MAGNITUDE ? plan->root16.rounding : plan->rounding16,
    };
    program->is_root16 = f->combine == COMBINE_MAGNITUDE && !plan->root16.is_exact;
}

/* The program of one grid, whose sums are JOINED with others. */
static bool make_grid16(const struct plan *plan, struct program *program, enum arithmetic arithmetic, int grid,
                        bool joined, struct pass **made)
{
    const struct filter *f = plan->filter;
    const struct weights w = {f->width, f->height, f->taps + grid * f->width * f->height, 1};
    if (!pass_allocate(made, PARTS_MOST * (size_t)(f->height + GROUP_MAX - 1) * (size_t)f->width))
        return false;
    struct pass *pass = *made;
    pass->group = program->loops->group;
    pass->arithmetic = arithmetic;
    pass->target = !joined ? TARGET_U16 : arithmetic == ARITHMETIC_FLOATS ? TARGET_FLOATS : TARGET_INTS;
    pass->start = program->shares[0] == SHARE_CENTRED ? centred_start(&w) : 0;
    finish16_make(plan, &pass->finish);
    pass_fill(pass, &w);
    return true;
}

/* One program for each grid, over samples as they are or, where 32 bits do not hold the sums, over their bytes. */
static bool make_at_once16(const struct plan *plan, struct program *program, enum arithmetic arithmetic)
{
    const bool grids = plan->filter->combine != COMBINE_NONE, joined = program->digits == 2 || grids;
    if (program->digits == 2) {
        program->shares[0] = SHARE_HIGH;
        program->shares[1] = SHARE_LOW;
    }
    if (!make_grid16(plan, program, arithmetic, 0, joined, &program->last) ||
        (grids && !make_grid16(plan, program, arithmetic, 1, joined, &program->second)))
        return false;
    program->first = program->last;
    if (joined)
        join16_make(plan, program, arithmetic == ARITHMETIC_FLOATS);
    return true;
}

/* A row, whose sums 32 bits hold, then a column: in floats where they hold all sums, else, unless plain integers do,
 * once for the upper and once for the lower halves of the row's sums. */
static bool make_passes16(const struct plan *plan, struct program *program, enum arithmetic across,
                          enum arithmetic down)
{
    const struct filter *f = plan->filter;
    const struct weights row = {f->width, 1, f->row, 1}, column = {1, f->height, f->column, 1};
    if (!pass_allocate(&program->first, PARTS_MOST * GROUP_MAX * (size_t)f->width) ||
        !pass_allocate(&program->last, PARTS_MOST * (size_t)(f->height + GROUP_MAX - 1)))
        return false;
    struct pass *first = program->first, *last = program->last;
    first->group = last->group = program->loops->group;
    first->arithmetic = across;
    first->start = program->shares[0] == SHARE_CENTRED ? centred_start(&row) : 0;
    first->target = down == ARITHMETIC_FLOATS  ? TARGET_FLOATS
                    : program->digits == 1     ? TARGET_INTS
                    : down == ARITHMETIC_PAIRS ? TARGET_PAIR_HALVES
                                               : TARGET_HALVES;
    pass_fill(first, &row);
    last->arithmetic = down;
    last->target = program->digits == 1 ? TARGET_U16 : TARGET_INTS;
    last->layout = across == ARITHMETIC_WORDS ? LAYOUT_TWOS : LAYOUT_STRAIGHT;
    finish16_make(plan, &last->finish);
    pass_fill(last, &column);
    if (program->digits == 2) {
        join16_make(plan, program, false);
        program->join16.unit = 65536;
        program->join16.base = down == ARITHMETIC_PAIRS ? 32768.0 * (double)plain_sum(f->column, f->height) : 0;
    }
    return true;
}

/* A filter that moves the picture: rows are copied. */
static bool make_shift16(struct program *program)
{
    if (!pass_allocate(&program->last, 1))
        return false;
    program->first = program->last;
    program->last->arithmetic = ARITHMETIC_WORDS; /* rows as they are */
    program->last->group = program->loops->group;
    program->last->row_count = 1; /* of scratch, which tiles are fitted to */
    return true;
}

/* Choose the arithmetic for samples of uint16_t and make the program's passes. */
static bool make_program16(const struct plan *plan, struct program *program)
{
    const struct filter *f = plan->filter;
    const bool words = program->loops->words, float_exact = sums_fit_float(f, SAMPLE_U16);
    const bool narrow = f->absolute_sum <= NARROW_SUM;
    program->shift_tap = f->combine == COMBINE_NONE ? find_shift(f) : -1;
    if (program->shift_tap >= 0)
        return make_shift16(program);
    const enum arithmetic once = words ? ARITHMETIC_WORDS : float_exact ? ARITHMETIC_FLOATS : ARITHMETIC_INTS;
    program->shares[0] = words ? SHARE_CENTRED : SHARE_ALL;
    program->digits = narrow ? 1 : 2;
    if (f->separable && f->width > 1 && f->height > 1 && absolute_sum(f->row, f->width) <= NARROW_SUM &&
        absolute_sum(f->column, f->height) <= NARROW_SUM) {
        const struct weights all = {f->width, f->height, f->taps, 1}, row = {f->width, 1, f->row, 1};
        if (3 * pass_cost(once, &row) + f->height + 6 < program->digits * pass_cost(once, &all)) {
            const enum arithmetic down = float_exact ? ARITHMETIC_FLOATS : words ? ARITHMETIC_PAIRS : ARITHMETIC_INTS;
            program->digits = down == ARITHMETIC_PAIRS ? 2 : program->digits;
            return make_passes16(plan, program, once, down);
        }
    }
    return make_at_once16(plan, program, once);
}

/* Choose the arithmetic and make the program's passes. */
static bool make_passes(const struct plan *plan, struct program *program)
{
    const struct filter *f = plan->filter;
    const bool planes = plan->sample == SAMPLE_F32;
    if (plan->sample == SAMPLE_U16)
        return make_program16(plan, program);
    if (f->combine != COMBINE_NONE)
        return make_grids(plan, program);
    const struct weights all = {f->width, f->height, f->taps, planes ? f->scale : 1};
    const struct weights row = {f->width, 1, f->row, 1}, column = {1, f->height, f->column, all.divisor};
    const enum arithmetic once = planes ? ARITHMETIC_FLOATS : sample_arithmetic(plan, program, &all);
    enum arithmetic across = once, down = once;
    int32_t start = 0;
    program->shift_tap = find_shift(f);
    program->is_window = program->shift_tap < 0 && !planes && is_window(f);
    bool passes = f->separable && f->width > 1 && f->height > 1 && program->shift_tap < 0 && !program->is_window;
    if (passes && !planes) {
        across = sample_arithmetic(plan, program, &row);
        down = plan->float_exact ? ARITHMETIC_FLOATS : ARITHMETIC_INTS;
        if (program->loops->words && fits_pairs(f, &start))
            down = ARITHMETIC_PAIRS;
    }
    if (passes) {
        const double down_cost = down == ARITHMETIC_PAIRS ? (f->height + 1) / 2 : f->height;
        passes = 3 * pass_cost(across, &row) + down_cost + 6 < pass_cost(once, &all);
    }

    const size_t columns = (size_t)(f->height + GROUP_MAX - 1) * (size_t)f->width;
    const size_t parts = planes ? 1 : PARTS_MOST;
    if (!pass_allocate(&program->last, parts * columns) ||
        (passes && !pass_allocate(&program->first, parts * GROUP_MAX * (size_t)f->width)))
        return false;
    struct pass *last = program->last;
    last->group = program->loops->group;
    last->target = planes ? TARGET_F32 : TARGET_U8;
    last->offset = plan->offset;
    last->absolute = f->absolute;
    finish_make(plan, &last->finish);
    if (program->shift_tap >= 0 || program->is_window) {
        program->first = last;
        last->arithmetic = planes ? ARITHMETIC_FLOATS : ARITHMETIC_BYTES; /* rows as they are */
        last->row_count = WINDOW_ROWS;
        return true;
    }
    if (!passes) {
        program->first = last;
        last->arithmetic = once;
        pass_fill(last, &all);
        return true;
    }
    struct pass *first = program->first;
    first->group = program->loops->group;
    first->arithmetic = across;
    first->target = down == ARITHMETIC_PAIRS ? TARGET_PAIRS : down == ARITHMETIC_FLOATS ? TARGET_FLOATS : TARGET_INTS;
    pass_fill(first, &row);
    last->arithmetic = down;
    last->layout = across == ARITHMETIC_BYTES   ? LAYOUT_FOURS
                   : across == ARITHMETIC_WORDS ? LAYOUT_TWOS
                                                : LAYOUT_STRAIGHT;
    if (down == ARITHMETIC_PAIRS) {
        int64_t sum = 0;
        for (int i = 0; i < f->height; i++)
            sum += f->column[i];
        first->start = start;
        last->start = (int32_t)(uint32_t)(uint64_t)(-start * sum);
    }
    pass_fill(last, &column);
    return true;
}

/* Choose the tiles: as wide as a ring in L1 allows, and enough of them for the threads. */
static void make_tiles(struct launch *launch, int threads)
{
    const struct filter *f = launch->plan->filter;
    const bool passes = launch->program->first != launch->program->last;
    const int width = launch->in->width, height = launch->in->height;
    const int made = launch->program->first->group /
                     rows_in_one(launch->program->first->target); /* of a ring, that the first pass makes at once */
    launch->input_sets = passes ? 1 : launch->program->digits;
    launch->input_rows = launch->program->first->row_count;
    launch->ring_rows = passes ? (launch->program->last->row_count + made - 1) / made * made : 0;
    launch->sum_rows = launch->program->sums * launch->program->last->group;
    const size_t sample = column_bytes(launch->program->first->arithmetic);
    const size_t column = (size_t)(launch->input_sets * launch->input_rows) * sample +
                          (size_t)(launch->program->digits * launch->ring_rows + launch->sum_rows) * sizeof(union cell);
    int most = (int)(TILE_BYTES / column);
    most = most < TILE_WIDTH_LEAST ? TILE_WIDTH_LEAST : most > TILE_WIDTH_MOST ? TILE_WIDTH_MOST : most;
    /* What is read in place has narrow tiles at the left and the right, which are not. */
    const int narrow = (int)round_up((size_t)f->width + ROW_SLACK, BLOCK_MAX);
    launch->in_place = (launch->plan->sample == SAMPLE_F32 || launch->program->first->arithmetic == ARITHMETIC_BYTES) &&
                       width >= IN_PLACE_WIDTHS * narrow;
    const int edge = launch->in_place ? narrow : 0;
    const int inner = width - 2 * edge;
    const int columns_x = (inner + most - 1) / most;
    launch->tile_width = (int)round_up((size_t)((inner + columns_x - 1) / columns_x), BLOCK_MAX);
    launch->first_width = edge > 0 ? edge : launch->tile_width < width ? launch->tile_width : width;
    launch->tiles_x = 1 + (width - launch->first_width + launch->tile_width - 1) / launch->tile_width;

    const int height_most = launch->program->is_window ? WINDOW_HEIGHT_MOST : TILE_HEIGHT_MOST;
    int tile_height = 4 * f->height > height_most ? 4 * f->height : height_most;
    const int64_t columns = (int64_t)launch->tiles_x * launch->in->count;
    const int64_t wanted = (threads > 1 ? (int64_t)TILES_A_THREAD * threads : 1) / columns + 1;
    if (height / wanted < tile_height)
        tile_height = (int)(height / wanted) > f->height ? (int)(height / wanted) : f->height;
    launch->tile_height = (int)round_up((size_t)tile_height, GROUP_MAX);
    launch->tiles_y = (height + launch->tile_height - 1) / launch->tile_height;

    const size_t reach = (size_t)(launch->tile_width + f->width - 1 + ROW_SLACK);
    launch->input_bytes = round_up(reach * sample, ALIGNMENT);
    launch->ring_bytes = (size_t)(launch->tile_width + ROW_SLACK) * sizeof(union cell);
    if (launch->program->is_window) {
        launch->input_bytes = round_up(reach + 2 * BLOCK_MAX, ALIGNMENT);
        launch->ring_rows = 1;
        launch->ring_bytes = round_up(PREFIX_CELLS(reach), BLOCK_MAX) * sizeof(int32_t);
    }
    launch->spare_bytes = round_up((size_t)launch->tile_width * sample_bytes(launch->in->sample), ALIGNMENT);
    launch->scratch_bytes =
        (size_t)(launch->input_sets * launch->input_rows) * launch->input_bytes +
        (size_t)(launch->program->digits * launch->ring_rows + launch->sum_rows) * launch->ring_bytes +
        launch->spare_bytes;
}

/* The instruction sets from the plain to the fast; each needs what those before it need. */
static const struct loops *const all_loops[] = {
    &loops_portable,
#ifdef GPUCONV_X86
    &loops_sse2,     &loops_avx2, &loops_avx512, &loops_vnni,
#endif
};

enum { ALL_LOOPS = sizeof all_loops / sizeof all_loops[0] };

const char *const *cpu_instruction_sets(size_t *count)
{
    static const char *const names[] = {
        "portable",
#ifdef GPUCONV_X86
        "sse2",     "avx2", "avx512", "vnni",
#endif
    };
    static_assert(sizeof names / sizeof names[0] == ALL_LOOPS, "each has a name");
    *count = ALL_LOOPS;
#ifdef GPUCONV_X86
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
    *count -= (size_t)(!avx2 + !avx512 + !vnni);
#endif
    return names;
}

static const struct loops *find_loops(struct error *error)
{
    size_t count;
    const char *const *names = cpu_instruction_sets(&count);
    const char *asked = getenv("GPUCONV_CPU");
    if (asked == NULL || asked[0] == 0)
        return all_loops[count - 1];
    for (size_t i = 0; i < count; i++)
        if (strcmp(asked, names[i]) == 0)
            return all_loops[i];
    error_set(
        error, ERROR_USAGE,
        "GPUCONV_CPU asks for the instruction set \"%s\", which this processor or this build does not have; unset "
        "it, or take one from %s to %s",
        asked, names[0], names[count - 1]);
    return NULL;
}

bool cpu_instruction_set(const char **name, struct error *error)
{
    const struct loops *loops = find_loops(error);
    *name = loops != NULL ? loops->name : NULL;
    return loops != NULL;
}

/* Is the output too large to be found in a cache by who reads it, and laid out for stores past the caches? Tiles begin
 * at multiples of BLOCK_MAX samples. */
static bool goes_past_caches(const struct plane *out)
{
    return out->plane_bytes * (size_t)out->count >= PAST_CACHES_BYTES &&
           ((uintptr_t)out->data | out->row_bytes | (out->count > 1 ? out->plane_bytes : 0)) % ALIGNMENT == 0;
}

static bool no_memory(const struct plan *plan, struct error *error)
{
    return error_set(error, ERROR_WORK, "not enough memory for the filter %s; close other programs or lower --threads",
                     plan->filter->name);
}

static void program_free(void *prepared)
{
    struct program *program = prepared;
    if (program == NULL)
        return;
    if (program->first != program->last)
        pass_free(program->first);
    pass_free(program->second);
    pass_free(program->last);
    free(program);
}

bool cpu_prepare(struct plan *plan, struct device *device, struct error *error)
{
    (void)device;
    const struct loops *loops = find_loops(error);
    if (plan->prepared != NULL || loops == NULL)
        return loops != NULL;
    struct program *program = calloc(1, sizeof *program);
    if (program != NULL) {
        program->loops = loops;
        program->digits = 1;
    }
    if (program == NULL || !make_passes(plan, program)) {
        program_free(program);
        return no_memory(plan, error);
    }
    plan->prepared = program;
    plan->release = program_free;
    return true;
}

bool cpu_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                struct error *error)
{
    (void)device;
    const struct filter *f = plan->filter;
    struct launch launch = {
        .plan = plan, .program = plan->prepared, .in = in, .out = out, .past_caches = goes_past_caches(out)};
    assert(launch.program != NULL);
    const double work = (double)in->width * in->height * in->count * f->width * f->height * filter_grids(f);
    int threads = work < PARALLEL_WORK ? 1 : parallel_threads(plan->threads);
    make_tiles(&launch, threads);
    const int64_t tiles = (int64_t)launch.tiles_x * launch.tiles_y * in->count;
    threads = tiles < threads ? (int)tiles : threads;
    launch.scratch = aligned_alloc(ALIGNMENT, (size_t)threads * launch.scratch_bytes);
    if (launch.scratch == NULL)
        return no_memory(plan, error);
    /* Vectors reach a little beyond a row, with taps of 0: let nothing stand there that nobody wrote. */
    memset(launch.scratch, 0, (size_t)threads * launch.scratch_bytes);
    parallel_for(threads, tiles, convolve_numbered_tile, &launch);
    free(launch.scratch);
    return true;
}
