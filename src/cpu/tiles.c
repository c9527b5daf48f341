/* SPDX-License-Identifier: MIT
 *
 * Tiles of the variant `cpu`.
 *
 * The border leaves the inner loop: each input row of a tile is copied once, with its halo and with what stands outside
 * the image, into a small ring of the rows that a group of outputs reads. The copy also widens samples for arithmetics
 * that need it. Where a pass reads samples as they are, a tile away from the border reads the plane itself. */
#include "cpu/tiles.h"

#include "base/round.h"
#include "cpu/cpu.h"

#include <string.h>

enum {
    TILE_BYTES = 24 << 10,    /* bytes of a ring: 3/4 of 32 KiB, the smallest L1 data cache in use */
    TILE_WIDTH_MIN = 256,     /* narrower tiles would read too many halo columns; high filters then use L2 */
    FIR_WIDTH = 512,          /* samples in a row of a tile for fast FIRs: halo columns take differences, too */
    TILE_WIDTH_MAX = 4096,    /* whole pages of a row */
    TILE_HEIGHT_MAX = 256,    /* more if the filter has many halo rows */
    WINDOW_HEIGHT_MAX = 1024, /* rows of a tile for running sums, which take as long for halo rows as for others */
    WINDOW_WIDTH_MAX = 16384, /* samples in a row for running sums: long rows are faster, though sums use L2 */
    TILES_A_THREAD = 4,       /* the least tiles of a thread, so that threads end at about the same time */
    OUTS_MAX = FIR_STEP * GROUP_MAX, /* rows that a pass makes at once: also COLUMN_GROUP_MAX */
    IN_PLACE_WIDTHS = 8,             /* the narrow tiles at both ends are then at most a quarter of the image */
};

static void copy_inputs(const struct tiling *tiling, enum sample_part part, const void *row, int x, int count, char *to)
{
    const struct program *program = tiling->program;
    if (tiling->plan->sample == SAMPLE_F32)
        memcpy(to, (const float *)row + x, (size_t)count * sizeof(float));
    else if (tiling->plan->sample == SAMPLE_U16)
        program->loops->widen16(program->first->arithmetic, part, (const uint16_t *)row + x, count, to);
    else
        program->loops->widen(program->first->arithmetic, (const uint8_t *)row + x, count, to);
}

/* Write COUNT samples of 0. */
static void copy_zeros(const struct tiling *tiling, enum sample_part part, int count, char *to)
{
    const size_t size = column_bytes(tiling->program->first->arithmetic);
    const uint16_t zero = 0;
    if (part == PART_CENTRED)
        for (int k = 0; k < count; k++)
            tiling->program->loops->widen16(tiling->program->first->arithmetic, part, &zero, 1, to + (size_t)k * size);
    else
        memset(to, 0, (size_t)count * size);
}

static void copy_cell(char *to, const char *from, size_t size)
{
    if (size == 1)
        *to = *from;
    else
        memcpy(to, from, size);
}

/* Make a row for the first pass, border included: to[k] = PART of in(y, x0 + k) for 0 <= k < COUNT. */
static void load_row(const struct tiling *tiling, enum sample_part part, int channel, int y, int x0, int count,
                     char *to)
{
    const enum border border = tiling->plan->border;
    const size_t size = column_bytes(tiling->program->first->arithmetic);
    const int from_y = border_index(y, tiling->in->height, border);
    if (from_y < 0) {
        copy_zeros(tiling, part, count, to);
        return;
    }
    const void *row = plane_row(tiling->in, channel, from_y);
    const int width = tiling->in->width, step = tiling->step, pixels = width / step;
    const int before = x0 < 0 ? (-x0 < count ? -x0 : count) : 0; /* columns left of the image */
    const int after = width - x0 < count ? width - x0 : count;   /* the first column right of it */
    if (after > before)
        copy_inputs(tiling, part, row, x0 + before, after - before, to + (size_t)before * size);
    for (int k = before > 0 || after <= before ? 0 : after; k < count; k++) {
        if (k == before && after > before)
            k = after;
        if (k == count)
            break;
        const int c = step > 1 ? ((x0 + k) % step + step) % step : 0; /* a division for each column takes long */
        const int pixel = border_index(step > 1 ? (x0 + k - c) / step : x0 + k, pixels, border);
        const int x = pixel < 0 ? pixel : pixel * step + c;
        if (x < 0)
            copy_zeros(tiling, part, 1, to + (size_t)k * size);
        else if (x >= x0 + before && x < x0 + after) /* TO has it already */
            copy_cell(to + (size_t)k * size, to + (size_t)(x - x0) * size, size);
        else
            copy_inputs(tiling, part, row, x, 1, to + (size_t)k * size);
    }
}

/* One tile of one plane: rows Y0 to Y1, columns X0 to X1. */
struct tile {
    int channel, y0, y1, x0, x1;
    uint8_t *marks; /* a mark for each pixel, for the threshold of an unsharp mask, or NULL */
};

/* Are outputs to be made from row Y on? */
static bool goes_on(const struct tiling *tiling, const struct tile *tile, int y)
{
    return y < tile->y1 && !cpu_is_stopped(tiling->plan->stop);
}

/* Input row ROW of the tile for the first pass: PART of its samples. Returns a row of the plane if the pass reads
 * samples as they are and the row is all inside the image, and else a copy in TO. */
static const void *tile_row(const struct tiling *tiling, enum sample_part part, const struct tile *tile, int row,
                            char *to)
{
    const struct filter *f = tiling->plan->filter;
    const int y = tile->y0 + row - f->anchor_y, x = tile->x0 - f->anchor_x * tiling->step;
    const int count = tile->x1 - tile->x0 + (f->width - 1) * tiling->step;
    if (tiling->in_place && x >= 0 && x + count + ROW_SLACK <= tiling->in->width) {
        const int from_y = border_index(y, tiling->in->height, tiling->plan->border);
        if (from_y >= 0)
            return (const char *)plane_row(tiling->in, tile->channel, from_y) +
                   (size_t)x * sample_bytes(tiling->in->sample);
    }
    load_row(tiling, part, tile->channel, y, x, count, to);
    return to;
}

/* Row Y of a plane, from the first column of the tile on. */
static void *row_in_tile(const struct plane *plane, const struct tile *tile, int y)
{
    return (char *)plane_row(plane, tile->channel, y) + (size_t)tile->x0 * sample_bytes(plane->sample);
}

/* The rows of outputs of a group. Rows below the tile, and entries beyond the group, go to the spare row. */
static void group_outs(const struct tiling *tiling, const struct tile *tile, int y, char *spare, void **outs)
{
    for (int a = 0; a < OUTS_MAX; a++)
        outs[a] = a < tiling->program->last->group && y + a < tile->y1 ? row_in_tile(tiling->out, tile, y + a) : spare;
}

/* The rows of sums of a group, from FROM on. The entries beyond joined_rows are never read. */
static void group_sums(const struct tiling *tiling, char *from, void *sums[JOINED_ROWS_MAX][OUTS_MAX])
{
    const int group = tiling->program->last->group;
    for (int sum = 0; sum < JOINED_ROWS_MAX; sum++)
        for (int a = 0; a < OUTS_MAX; a++)
            sums[sum][a] =
                from +
                (sum < tiling->program->joined_rows && a < group ? (size_t)(sum * group + a) * tiling->ring_bytes : 0);
}

/* The sum of column X in ROWS, for samples of uint16_t. */
static int64_t sum_at(const struct tiling *tiling, void *const *rows, int x)
{
    const struct program *program = tiling->program;
    const int lanes = program->loops->lanes, k = x % (4 * lanes);
    if (program->join16.layout == LAYOUT_TWOS)
        x += (k / (2 * lanes) * 2 + k % 2) * lanes + k % (2 * lanes) / 2 - k;
    const union cell first = ((const union cell *)rows[0])[x];
    const int64_t value = program->join16.is_float ? (int64_t)first.f : first.i;
    return program->sum_parts == 1 ? value
                                   : (int64_t)program->join16.unit * value + ((const union cell *)rows[1])[x].i +
                                         (int64_t)program->join16.base;
}

/* Join to levels of COMBINE_MAGNITUDE, exactly. For filters whose levels doubles miss by one or two. */
static void join_roots(const struct tiling *tiling, void *const *sums, int width, uint16_t *out)
{
    void *const *const second = tiling->program->sum_parts == 1 ? sums + 1 : sums + 2;
    for (int x = 0; x < width; x++)
        out[x] =
            root16_level(&tiling->plan->root16, (double)sum_at(tiling, sums, x), (double)sum_at(tiling, second, x));
}

/* The row of marks of image row Y. */
static uint8_t *marks_row(const struct tile *tile, int y)
{
    return tile->marks + (size_t)(y - tile->y0) * (size_t)(tile->x1 - tile->x0);
}

/* The outputs of an unsharp mask for image row Y, from its blurs. */
static void join_unsharp(const struct tiling *tiling, const struct tile *tile, int y, const void *blurs, void *out)
{
    const struct loops *loops = tiling->program->loops;
    const struct passes *passes = &tiling->plan->passes;
    const void *in = row_in_tile(tiling->in, tile, y);
    loops->unsharp(passes, tiling->plan->sample, blurs, in, tile->x1 - tile->x0, out);
    if (tile->marks != NULL)
        loops->mark_detail(passes, tiling->plan->sample, blurs, in, tile->x1 - tile->x0, marks_row(tile, y));
}

/* Join the rows of sums of a group to outputs. Y is the first row of the group; rows below the tile are left out. */
static void join_group(const struct tiling *tiling, const struct tile *tile, int y,
                       void *sums[JOINED_ROWS_MAX][OUTS_MAX], void *const *outs)
{
    const struct program *program = tiling->program;
    const int width = tile->x1 - tile->x0;
    for (int a = 0; a < program->last->group && y + a < tile->y1; a++) {
        void *const of_row[JOINED_ROWS_MAX] = {sums[0][a], sums[1][a], sums[2][a], sums[3][a]};
        if (tiling->plan->filter->two_pass)
            join_unsharp(tiling, tile, y + a, of_row[0], outs[a]);
        else if (tiling->plan->sample != SAMPLE_U16)
            program->loops->join(&program->join, of_row[0], of_row[1], width, tiling->past_caches, outs[a]);
        else if (program->is_root16)
            join_roots(tiling, of_row, width, outs[a]);
        else
            program->loops->join16(&program->join16, of_row, width, tiling->past_caches, outs[a]);
    }
}

/* The row of the plane at tile row ROW, clamped to the image: an address to prefetch. */
static const void *row_ahead(const struct tiling *tiling, const struct tile *tile, int row)
{
    const int y = tile->y0 + row - tiling->plan->filter->anchor_y, last = tiling->in->height - 1;
    return row_in_tile(tiling->in, tile, y < 0 ? 0 : y > last ? last : y);
}

static void convolve_at_once(const struct tiling *tiling, const struct tile *tile, char *scratch)
{
    const struct program *program = tiling->program;
    const struct pass *pass = program->first;
    const int width = tile->x1 - tile->x0;
    char *first_sum = scratch + (size_t)(tiling->input_sets * tiling->input_rows) * tiling->input_bytes;
    char *spare = first_sum + (size_t)tiling->sum_rows * tiling->ring_bytes;
    const void *ring[2][FILTER_MAX + GROUP_MAX], *rows[2][FILTER_MAX + 2 * GROUP_MAX];
    void *outs[OUTS_MAX], *sums[JOINED_ROWS_MAX][OUTS_MAX];
    group_sums(tiling, first_sum, sums);
    int loaded = 0;
    for (int y = tile->y0; goes_on(tiling, tile, y); y += pass->group) {
        const int top = y - tile->y0;
        for (; loaded < top + pass->row_count; loaded++)
            for (int set = 0; set < tiling->input_sets; set++) {
                const int slot = loaded % tiling->input_rows;
                ring[set][slot] = tile_row(tiling, program->sample_parts[set], tile, loaded,
                                           scratch + (size_t)(set * tiling->input_rows + slot) * tiling->input_bytes);
            }
        for (int set = 0; set < tiling->input_sets; set++)
            for (int r = 0; r < pass->row_count; r++)
                rows[set][r] = ring[set][(top + r) % tiling->input_rows];
        for (int a = 0; a < pass->group; a++)
            rows[0][pass->row_count + a] = rows[1][pass->row_count + a] = row_ahead(tiling, tile, loaded + a);
        group_outs(tiling, tile, y, spare, outs);
        if (program->is_narrow_root)
            program->loops->run_roots(pass, program->second, program->root_term, rows[0], width, tiling->past_caches,
                                      outs);
        else if (program->joined_rows == 0)
            program->loops->run(pass, rows[0], width, tiling->past_caches, outs);
        if (program->joined_rows == 0)
            continue;
        for (int part = 0; part < program->sum_parts; part++) {
            program->loops->run(pass, rows[part], width, false, sums[part]);
            if (program->second != NULL)
                program->loops->run(program->second, rows[part], width, false, sums[program->sum_parts + part]);
        }
        join_group(tiling, tile, y, sums, outs);
    }
}

/* A fast FIR: rows of words, and their differences. Each kind of rows has a ring. A new row J completes the row
 * J - KIND of each kind, because KIND is the sum of the distances of its differences. */
static void convolve_fir(const struct tiling *tiling, const struct tile *tile, char *scratch)
{
    const struct program *program = tiling->program;
    const int count = tiling->input_rows, group = program->first->group, width = tile->x1 - tile->x0;
    char *sums = scratch + (size_t)(FIR_STEP * count) * tiling->input_bytes;
    char *spare = sums + (size_t)tiling->sum_rows * tiling->ring_bytes;
    const void *rows[FILTER_MAX + FIR_STEP * GROUP_MAX];
    void *outs[OUTS_MAX], *to[GROUP_MAX];
    int loaded = 0;
#define FIR_ROW(kind, row) ((void *)(scratch + (size_t)((kind)*count + (row) % count) * tiling->input_bytes))
#define SUM_ROW(product, a) (sums + (size_t)((product)*group + (a)) * tiling->ring_bytes)
    for (int y = tile->y0; goes_on(tiling, tile, y); y += program->last->group) {
        const int top = y - tile->y0;
        for (; loaded < top + count; loaded++) {
            tile_row(tiling, PART_ALL, tile, loaded, FIR_ROW(0, loaded));
            for (int kind = 1; kind < FIR_STEP && kind <= loaded; kind++) {
                const int less = kind & (kind - 1), row = loaded - kind; /* LESS lacks the nearest difference */
                program->loops->subtract(FIR_ROW(less, row), FIR_ROW(less, loaded - less),
                                         width + tiling->plan->filter->width - 1, FIR_ROW(kind, row));
            }
        }
        for (int row = loaded; row < loaded + program->last->group; row++)
            for (int x = 0; x < width; x += SCRATCH_ALIGNMENT)
                __builtin_prefetch((const char *)row_ahead(tiling, tile, row) + x);
        for (int n = 0; n < FIR_PRODUCTS; n++) {
            const struct fir_product p = fir_products[n];
            for (int r = 0; r < program->first->row_count + group; r++)
                rows[r] = FIR_ROW(FIR_STEP - 1 - p.free, top + (p.ones | p.free) + FIR_STEP * r);
            for (int a = 0; a < group; a++)
                to[a] = SUM_ROW(n, a);
            program->loops->run(program->products[n], rows, width, false, to);
        }
        group_outs(tiling, tile, y, spare, outs);
        for (int part = 0; part < FIR_STEP; part++) {
            int used = 0;
            for (int n = 0; n < FIR_PRODUCTS; n++)
                for (int a = 0; a < group && (part & ~fir_products[n].free) == fir_products[n].ones; a++)
                    rows[used++] = SUM_ROW(n, a);
            for (int a = 0; a < group; a++)
                to[a] = outs[part + FIR_STEP * a];
            program->loops->run(program->last, rows, width, tiling->past_caches, to);
        }
    }
}

/* Image rows in one row of sums. */
static int rows_in_one(enum target target)
{
    return target == TARGET_PAIRS || target == TARGET_PAIRS_HIGH_LOW || target == TARGET_SHIFTED_PAIRS ? 2 : 1;
}

static void convolve_in_passes(const struct tiling *tiling, const struct tile *tile, char *scratch)
{
    const struct program *program = tiling->program;
    const struct pass *first = program->first, *last = program->last;
    const bool joined = program->joined_rows > 0;
    const int width = tile->x1 - tile->x0;
    char *rings = scratch + (size_t)tiling->input_rows * tiling->input_bytes;
    char *first_sum = rings + (size_t)(program->sum_parts * tiling->ring_rows) * tiling->ring_bytes;
    char *spare = first_sum + (size_t)tiling->sum_rows * tiling->ring_bytes;
    const int unit = rows_in_one(first->target);
    const void **rows = (const void **)(spare + tiling->spare_bytes); /* too many for a small stack */
    void *outs[OUTS_MAX], *sums[JOINED_ROWS_MAX][OUTS_MAX];
    group_sums(tiling, first_sum, sums);
    for (int a = 0; a < OUTS_MAX; a++)
        outs[a] = spare;
    const int needed = tile->y1 - tile->y0 + tiling->plan->filter->height - 1; /* by the outputs that are kept */
    int summed = 0;                                                            /* rows of sums made so far */
    for (int y = tile->y0; goes_on(tiling, tile, y); y += last->group) {
        const int top = (y - tile->y0) / unit;
        while (summed < top + last->row_count && summed * unit < needed && !cpu_is_stopped(tiling->plan->stop)) {
            for (int a = 0; a < first->group; a++)
                rows[a] = tile_row(tiling, program->sample_parts[0], tile, summed * unit + a,
                                   scratch + (size_t)a * tiling->input_bytes);
            for (int a = 0; a < first->group; a++)
                rows[first->group + a] = row_ahead(tiling, tile, summed * unit + first->group + a);
            for (int a = 0; a < first->group / unit; a++)
                for (int part = 0; part < program->sum_parts; part++)
                    outs[part * first->group + a] =
                        rings +
                        (size_t)(part * tiling->ring_rows + (summed + a) % tiling->ring_rows) * tiling->ring_bytes;
            program->loops->run(first, rows, width, false, outs);
            summed += first->group / unit;
        }
        group_outs(tiling, tile, y, spare, outs);
        for (int part = 0; part < program->sum_parts; part++) {
            for (int r = 0; r < last->row_count; r++)
                rows[r] =
                    rings + (size_t)(part * tiling->ring_rows + (top + r) % tiling->ring_rows) * tiling->ring_bytes;
            program->loops->run(last, rows, width, !joined && tiling->past_caches, joined ? sums[part] : outs);
        }
        if (joined)
            join_group(tiling, tile, y, sums, outs);
    }
}

/* The first rows of a window, all but one, where the border repeats rows of the image: add each row once, times its
 * count. ENTERING is memory for a row. */
static void add_repeated_rows(const struct tiling *tiling, const struct tile *tile, int count, void *entering,
                              void *columns)
{
    const struct program *program = tiling->program;
    const struct filter *f = tiling->plan->filter;
    const int top = tile->y0 - f->anchor_y;
    int times[FILTER_PASS_MAX] = {0};
    for (int row = 0; row < f->height - 1; row++) {
        const int y = border_index(top + row, tiling->in->height, tiling->plan->border);
        if (y >= 0)
            times[y]++;
    }
    for (int y = 0; y < tiling->in->height; y++)
        if (times[y] > 0)
            program->loops->slide_times(tiling->plan->sample, tile_row(tiling, PART_ALL, tile, y - top, entering),
                                        times[y], count, program->is_wide_window, columns);
}

/* All taps are equal: the sums of the columns slide down, and the window slides along them. */
static void convolve_window(const struct tiling *tiling, const struct tile *tile, char *scratch)
{
    const struct program *program = tiling->program;
    const struct loops *loops = program->loops;
    const struct filter *f = tiling->plan->filter;
    const int width = tile->x1 - tile->x0, count = width + (f->width - 1) * tiling->step;
    char *entering = scratch, *leaving = entering + tiling->input_bytes;
    void *columns = leaving + tiling->input_bytes + SCRATCH_ALIGNMENT;
    const struct window window = {f->width, tiling->step, f->taps[0]};
    struct wide_window wide = program->wide_window;
    wide.prefixes = (void *)(scratch + (size_t)tiling->input_rows * tiling->input_bytes);
    memset(leaving + tiling->input_bytes, 0, 2 * tiling->input_bytes);
    memset(leaving, 0, tiling->input_bytes);
    int row = 0;
    if (tiling->in->height < f->height) {
        add_repeated_rows(tiling, tile, count, entering, columns);
        row = f->height - 1;
    }
    for (; goes_on(tiling, tile, tile->y0 + row - (f->height - 1)); row++) {
        const void *in = tile_row(tiling, PART_ALL, tile, row, entering);
        const void *gone = row < f->height ? NULL : tile_row(tiling, PART_ALL, tile, row - f->height, leaving);
        const int y = tile->y0 + row - (f->height - 1);
        if (program->is_wide_window)
            loops->slide_wide(wide.sample, in, gone, count, columns);
        else
            loops->slide(in, gone != NULL ? gone : leaving, count, columns);
        if (y < tile->y0)
            continue;
        if (program->is_wide_window)
            loops->slide_across_wide(&wide, columns, width, row_in_tile(tiling->out, tile, y));
        else
            (tiling->step > 1 ? loops->add_across : loops->slide_across)(
                program->last, &window, columns, width, tiling->past_caches, row_ahead(tiling, tile, row + 1),
                row_ahead(tiling, tile, row + 1 - f->height), row_in_tile(tiling->out, tile, y));
    }
}

/* The filter only moves the image, or leaves it: every row of outputs is a row of samples, border included. */
static void convolve_shift(const struct tiling *tiling, const struct tile *tile)
{
    const int down = tiling->plan->shift_y, right = tiling->plan->shift_x;
    for (int y = tile->y0; goes_on(tiling, tile, y); y++)
        load_row(tiling, PART_ALL, tile->channel, y + down, tile->x0 + right, tile->x1 - tile->x0,
                 row_in_tile(tiling->out, tile, y));
}

static void convolve_plane(const struct tiling *tiling, const struct tile *tile, char *scratch)
{
    const struct program *program = tiling->program;
    if (program->is_shift)
        convolve_shift(tiling, tile);
    else if (program->is_window || program->is_wide_window)
        convolve_window(tiling, tile, scratch);
    else if (program->products[0] != NULL)
        convolve_fir(tiling, tile, scratch);
    else if (program->first == program->last)
        convolve_at_once(tiling, tile, scratch);
    else
        convolve_in_passes(tiling, tile, scratch);
}

void tile_convolve(void *context, int64_t index, int thread)
{
    const struct tiling *tiling = context;
    const int width = tiling->in->width, last = tiling->last_row;
    const int column = (int)(index % tiling->tiles_x);
    const int x0 = column == 0 ? 0 : (column - 1) * tiling->tile_width + tiling->first_width;
    const int y0 = tiling->first_row + (int)(index / tiling->tiles_x % tiling->tiles_y) * tiling->tile_height;
    char *scratch = tiling->scratch + (size_t)thread * tiling->scratch_bytes;
    struct tile tile = {
        .y0 = y0,
        .y1 = last - y0 < tiling->tile_height ? last : y0 + tiling->tile_height,
        .x0 = x0,
        .x1 = column == 0                       ? tiling->first_width
              : width - x0 < tiling->tile_width ? width
                                                : x0 + tiling->tile_width,
    };
    if (tiling->mark_bytes > 0) {
        tile.marks = (uint8_t *)scratch + tiling->scratch_bytes - tiling->mark_bytes;
        memset(tile.marks, 0, tiling->mark_bytes);
    }
    const int first = (int)(index / tiling->tiles_x / tiling->tiles_y) * tiling->tile_planes;
    for (tile.channel = first; tile.channel < first + tiling->tile_planes; tile.channel++)
        convolve_plane(tiling, &tile, scratch);
    if (tile.marks == NULL || cpu_is_stopped(tiling->plan->stop))
        return;
    for (tile.channel = 0; tile.channel < tiling->tile_planes; tile.channel++)
        for (int y = tile.y0; y < tile.y1; y++)
            tiling->program->loops->keep_unmarked(tiling->plan->sample, marks_row(&tile, y),
                                                  row_in_tile(tiling->in, &tile, y), tile.x1 - tile.x0,
                                                  row_in_tile(tiling->out, &tile, y));
}

int64_t tiles_count(const struct tiling *tiling)
{
    return (int64_t)tiling->tiles_x * tiling->tiles_y * (tiling->in->count / tiling->tile_planes);
}

void tiles_choose(struct tiling *tiling, int threads)
{
    const struct program *program = tiling->program;
    const struct filter *f = tiling->plan->filter;
    const bool is_fir = program->products[0] != NULL, passes = program->first != program->last && !is_fir;
    const int width = tiling->in->width, height = tiling->last_row - tiling->first_row;
    /* The rows of sums that the first pass writes at once. */
    const int step = program->first->group / rows_in_one(program->first->target);
    tiling->input_sets = is_fir ? FIR_STEP : passes ? 1 : program->sum_parts;
    tiling->input_rows = is_fir ? FIR_STEP * (program->first->row_count + 1) - 1 : program->first->row_count;
    /* The first pass may write the last of its rows when the second one has gone on by less than that. */
    const int lag = step - program->last->group / rows_in_one(program->first->target);
    tiling->ring_rows =
        passes ? (int)round_up((size_t)(program->last->row_count + (lag > 0 ? lag : 0)), (size_t)step) : 0;
    tiling->sum_rows = is_fir ? FIR_PRODUCTS * step : program->joined_rows * program->last->group;
    const size_t sample = column_bytes(program->first->arithmetic);
    const size_t column = (size_t)(tiling->input_sets * tiling->input_rows) * sample +
                          (size_t)(program->sum_parts * tiling->ring_rows + tiling->sum_rows) * sizeof(union cell);
    int max = (int)(TILE_BYTES / column);
    max = max < TILE_WIDTH_MIN ? TILE_WIDTH_MIN : max > TILE_WIDTH_MAX ? TILE_WIDTH_MAX : max;
    if (program->is_window)
        max = WINDOW_WIDTH_MAX;
    else if (is_fir)
        max = FIR_WIDTH;
    /* The narrow tiles at the left and the right border are not read in place. */
    const int narrow = (int)round_up((size_t)((f->width - 1) * tiling->step) + 1 + ROW_SLACK, BLOCK_MAX);
    tiling->in_place = (tiling->plan->sample == SAMPLE_F32 || program->first->arithmetic <= ARITHMETIC_NARROW) &&
                       width >= IN_PLACE_WIDTHS * narrow;
    const int edge = tiling->in_place ? narrow : 0;
    const int inner = width - 2 * edge;
    const int columns_x = (inner + max - 1) / max;
    tiling->tile_width = (int)round_up((size_t)((inner + columns_x - 1) / columns_x), BLOCK_MAX);
    tiling->first_width = edge > 0 ? edge : tiling->tile_width < width ? tiling->tile_width : width;
    tiling->tiles_x = 1 + (width - tiling->first_width + tiling->tile_width - 1) / tiling->tile_width;

    const int height_max = program->is_window || program->is_wide_window ? WINDOW_HEIGHT_MAX : TILE_HEIGHT_MAX;
    int tile_height = 4 * f->height > height_max ? 4 * f->height : height_max;
    const bool has_threshold = f->two_pass && tiling->plan->passes.amount != 0 && tiling->plan->passes.threshold > 0;
    tiling->tile_planes = has_threshold ? tiling->in->count : 1;
    const int64_t columns = (int64_t)tiling->tiles_x * (tiling->in->count / tiling->tile_planes);
    const int64_t wanted = (threads > 1 ? (int64_t)TILES_A_THREAD * threads : 1) / columns + 1;
    if (height / wanted < tile_height)
        tile_height = (int)(height / wanted) > f->height ? (int)(height / wanted) : f->height;
    const int group = program->last->group > GROUP_MAX ? program->last->group : GROUP_MAX;
    tiling->tile_height = (int)round_up((size_t)tile_height, (size_t)group);
    tiling->tiles_y = (height + tiling->tile_height - 1) / tiling->tile_height;

    const size_t reach = (size_t)(tiling->tile_width + (f->width - 1) * tiling->step + ROW_SLACK);
    tiling->input_bytes = round_up(reach * sample, SCRATCH_ALIGNMENT);
    tiling->ring_bytes = (size_t)(tiling->tile_width + ROW_SLACK) * sizeof(union cell);
    if (program->is_window) {
        tiling->input_bytes = round_up(reach + SCRATCH_ALIGNMENT, SCRATCH_ALIGNMENT);
    }
    if (program->is_wide_window) {
        tiling->input_bytes = round_up(reach * sizeof(uint32_t), SCRATCH_ALIGNMENT);
        tiling->ring_rows = 1;
        tiling->ring_bytes = round_up((reach + 1) * sizeof(uint64_t), SCRATCH_ALIGNMENT);
    }
    tiling->spare_bytes = round_up((size_t)tiling->tile_width * sample_bytes(tiling->in->sample), SCRATCH_ALIGNMENT);
    tiling->scratch_bytes = (size_t)(tiling->input_sets * tiling->input_rows) * tiling->input_bytes +
                            (size_t)(program->sum_parts * tiling->ring_rows + tiling->sum_rows) * tiling->ring_bytes +
                            tiling->spare_bytes +
                            round_up((FILTER_PASS_MAX + COLUMN_GROUP_MAX) * sizeof(void *), SCRATCH_ALIGNMENT);
    if (has_threshold)
        tiling->mark_bytes = round_up((size_t)tiling->tile_width * (size_t)tiling->tile_height, SCRATCH_ALIGNMENT);
    tiling->scratch_bytes += tiling->mark_bytes;
}
