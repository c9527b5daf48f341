/* SPDX-License-Identifier: MIT
 *
 * Filters that change the size: the taps as the loops read them, tiles, and the reference. */
#include "cpu/resample.h"

#include "base/parallel.h"
#include "base/round.h"
#include "base/vector/instruction_sets.h"
#include "cpu/cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Does a picture become so small that tiles do not pay? They would take 32 copies of a row's inputs, and 256 bytes for
 * a tap of a column. By Pillow's rule, they always pay: its reference has no sums between the passes. */
static bool has_many_taps(const struct resample_axis *columns, const struct resample_axis *rows)
{
    return !resample_is_pillow(columns->kernel) &&
           (columns->count > RESAMPLE_TAPS_MAX || rows->count > RESAMPLE_TAPS_MAX);
}

/* ---- Taps ---- */

struct prepared {
    const struct resample_loops *loops;
    struct resample_taps columns, rows;
};

static const struct resample_loops *const all_loops[INSTRUCTION_SETS] = LOOPS_BY_SET(resample, avx512, vnni, i8mm);

/* Put the negative of TAP at index AT of a row of pairs. */
static void set_pair(struct resample_taps *taps, int32_t *row, int at, int32_t tap)
{
    int16_t words[2];
    const int32_t half = 1 << taps->low_bits >> 1, high = (half - tap) >> taps->low_bits;
    for (int part = 0; part < taps->parts; part++) {
        int32_t *pair = row + (ptrdiff_t)(at / 2) * taps->parts + part;
        memcpy(words, pair, sizeof words);
        words[at % 2] = (int16_t)(part == 0 ? high : -tap - high * (1 << taps->low_bits));
        memcpy(pair, words, sizeof words);
    }
}

/* Make pairs, which begin at even inputs. */
static bool make_pairs(struct resample_taps *taps)
{
    const struct resample_axis *axis = taps->axis;
    const int next = axis->period < axis->to ? resample_first(axis, axis->period) - resample_first(axis, 0) : 0;
    taps->count = axis->count / 2 + 1;
    if (next % 2 != 0)
        taps->period = 2 * axis->period < axis->to ? 2 * axis->period : axis->to;
    taps->period = taps->period < axis->made ? taps->period : axis->made;
    const size_t row_ints = (size_t)taps->count * (size_t)taps->parts;
    taps->pairs = calloc((size_t)taps->period * row_ints, sizeof *taps->pairs);
    taps->used = calloc((size_t)taps->period, sizeof *taps->used);
    for (int i = 0; taps->pairs != NULL && taps->used != NULL && i < taps->period; i++) {
        const int first = resample_first(axis, axis->first + i), skip = first & 1;
        taps->used[i] = (skip + resample_last(axis, axis->first + i) - first) / 2 + 1;
        for (int k = 0; k < axis->count; k++)
            set_pair(taps, taps->pairs + (size_t)i * row_ints, skip + k,
                     axis->taps[(ptrdiff_t)(i % axis->period) * axis->count + k]);
    }
    return taps->pairs != NULL && taps->used != NULL;
}

static bool make_doubles(struct resample_taps *taps, enum sample sample)
{
    const struct resample_axis *axis = taps->axis;
    const size_t count = (size_t)resample_kept(axis) * (size_t)axis->count;
    const double unit = sample == SAMPLE_F32 ? ldexp(1, -axis->shift) : 1;
    taps->taps = malloc(count * sizeof *taps->taps);
    for (size_t i = 0; taps->taps != NULL && i < count; i++)
        taps->taps[i] = axis->taps[i] * unit;
    return taps->taps != NULL;
}

/* Make the taps of both axes for the loops. resample.h has the bounds of the chunks. */
static bool make_taps(struct prepared *prepared, const struct plan *plan)
{
    struct resample_taps *columns = &prepared->columns, *rows = &prepared->rows;
    const struct resample_axis *v = &plan->columns, *h = &plan->rows;
    *columns = (struct resample_taps){.axis = v, .period = v->period, .count = v->count, .parts = 1};
    *rows = (struct resample_taps){.axis = h, .period = h->period, .count = h->count, .parts = 1};
    rows->firsts = malloc((size_t)h->made * sizeof *rows->firsts);
    if (rows->firsts == NULL)
        return false;
    for (int x = 0; x < h->made; x++)
        rows->firsts[x] = resample_first(h, h->first + x);
    if (resample_is_pillow(v->kernel)) {
        columns->parts = rows->parts = 2;
        columns->low_bits = rows->low_bits = PILLOW_LOW_BITS;
        return make_pairs(columns) && make_pairs(rows);
    }
    if (plan->sample == SAMPLE_F32)
        return make_doubles(columns, plan->sample) && make_doubles(rows, plan->sample);
    if (plan->sample == SAMPLE_U16) {
        columns->parts = 2;
        columns->low_bits = v->shift - 14 < 15 ? v->shift - 14 : 15;
        columns->chunk = (1 << (16 - columns->low_bits)) - 1;
        return make_pairs(columns) && make_doubles(rows, plan->sample);
    }
    const double largest = v->gain * 127.5 * (1 << RESAMPLE_FRACTION) + 33;
    columns->chunk = 128;
    rows->chunk = (h->gain * largest + 32) * ldexp(1, h->shift) < INT32_MAX ? RESAMPLE_TAPS_MAX : 2;
    return make_pairs(columns) && make_pairs(rows);
}

static void free_prepared(void *memory)
{
    struct prepared *prepared = memory;
    free(prepared->columns.pairs);
    free(prepared->columns.taps);
    free(prepared->rows.pairs);
    free(prepared->rows.taps);
    free(prepared->columns.used);
    free(prepared->rows.used);
    free(prepared->rows.firsts);
    free(prepared);
}

static bool report_no_resample_memory(const struct plan *plan, struct error *error)
{
    const char *name = plan->filter != NULL ? plan->filter->name : resample_name(plan->rows.kernel);
    return error_no_memory(error, "the taps and sums of %s", name);
}

bool cpu_resample_prepare(struct plan *plan, struct device *device, struct error *error)
{
    (void)device;
    enum instruction_set set;
    if (!instruction_set_find(&set, error))
        return false;
    if (plan->prepared != NULL || has_many_taps(&plan->columns, &plan->rows))
        return true;
    struct prepared *prepared = calloc(1, sizeof *prepared);
    if (prepared == NULL)
        return report_no_resample_memory(plan, error);
    prepared->loops = all_loops[set];
    plan->prepared = prepared;
    plan->release = free_prepared;
    return make_taps(prepared, plan) || report_no_resample_memory(plan, error);
}

/* ---- Tiles ---- */

/* What all tiles of a launch share. Sizes are in bytes. */
struct resample_tiling {
    const struct plan *plan;
    const struct prepared *prepared;
    const struct plane *in, *out;
    int channels;                 /* whose samples lie together in both planes */
    int first_row, last_row;      /* the rows of the outputs, in the picture */
    bool sums_columns, sums_rows; /* the passes: one of them may be another tiling's, or left out */
    int tile_width, tile_rows, tiles_x, tiles_y;
    int row_inputs, column_inputs; /* the inputs of a unit of sums, and of a unit of pairs */
    size_t row_bytes;              /* bytes of a row of sums */
    int blocks;                    /* blocks whose pairs the next group of rows reuses: all of them, or one */
    size_t pairs_bytes, cells_bytes, out_bytes, spare_bytes, rows_bytes; /* bytes of each part of a thread's scratch */
    char *scratch;
};

/* Bytes of the pairs of all blocks of a tile, at most, if they are kept. */
enum { KEPT_BYTES = 1 << 20 };

/* Where row or pair of rows NUMBER, which may be negative, is among SLOTS. */
static int ring_slot(int number, int slots)
{
    return (int)(number - resample_floor(number, slots) * slots);
}

static size_t block_bytes(const struct resample_tiling *tiling)
{
    return (size_t)tiling->prepared->columns.count * RESAMPLE_BLOCK * sizeof(int32_t);
}

/* Choose the size of the tiles: so wide that few columns are summed for two tiles, and that the sums stay in a
 * cache; and so high that few rows are paired for two. */
static void choose_tiles(struct resample_tiling *tiling, int threads)
{
    enum { INPUTS = 1024, OUTPUTS = 1024, PIECE = 16, TILES_EACH = 4 };
    const struct prepared *prepared = tiling->prepared;
    const struct resample_axis *axis = prepared->rows.axis;
    const bool is_u8 = tiling->plan->sample == SAMPLE_U8;
    const int lanes = prepared->loops->lanes, rows = tiling->last_row - tiling->first_row;
    tiling->row_inputs = is_u8 ? 2 : 1;
    tiling->column_inputs = tiling->plan->sample == SAMPLE_F32 ? 1 : 2;
    const int from = tiling->sums_rows ? axis->from : 1, to = tiling->sums_rows ? axis->to : 1;
    const int64_t support = tiling->sums_rows ? (int64_t)prepared->rows.count * tiling->row_inputs : 0;
    const int64_t inputs = 4 * support > INPUTS ? 4 * support : INPUTS;
    const int64_t outputs = (inputs - support) * to / from / PIECE * PIECE;
    tiling->tile_width = (int)(outputs < PIECE ? PIECE : outputs > OUTPUTS ? OUTPUTS : outputs);
    tiling->tiles_x = (axis->made - 1) / tiling->tile_width + 1;
    const int planes = tiling->out->count / tiling->channels,
              wanted = TILES_EACH * threads / (tiling->tiles_x * planes);
    tiling->tile_rows = rows;
    if (threads > 1)
        tiling->tile_rows = wanted > 0 ? (rows / wanted / lanes + 1) * lanes : lanes;
    tiling->tiles_y = (rows - 1) / tiling->tile_rows + 1;

    /* The inputs of a tile, with one before its first and one for each part of an input that a step may gain. */
    const size_t width = (size_t)((int64_t)tiling->tile_width * from / to + support + 4);
    const size_t columns = round_up(width * (size_t)tiling->channels, RESAMPLE_BLOCK);
    tiling->row_bytes = columns * (is_u8 ? sizeof(int16_t) : sizeof(float));
    tiling->blocks = (int)(columns / RESAMPLE_BLOCK);
    if ((size_t)tiling->blocks * block_bytes(tiling) > KEPT_BYTES)
        tiling->blocks = 1;
    tiling->pairs_bytes = (size_t)tiling->blocks * block_bytes(tiling);
    tiling->cells_bytes = (size_t)lanes * tiling->row_bytes;
    tiling->out_bytes =
        round_up((size_t)(tiling->tile_width * tiling->channels) * sample_bytes(tiling->out->sample), RESAMPLE_PIECE) *
        (size_t)lanes;
    tiling->spare_bytes = 2 * RESAMPLE_BLOCK * sizeof(float);
    tiling->rows_bytes = round_up((size_t)prepared->columns.count * sizeof(void *), RESAMPLE_VECTOR_MAX);
}

static size_t scratch_bytes(const struct resample_tiling *tiling)
{
    return 2 * tiling->cells_bytes + tiling->out_bytes + tiling->pairs_bytes + tiling->spare_bytes + tiling->rows_bytes;
}

/* A tile while it is made. */
struct resample_tile {
    int channel;                 /* the first of those that are made */
    int x0, x1;                  /* its outputs */
    int start, left, right, end; /* the pixels that they read, and those of them that are in the picture */
    int next;                    /* the first pair of rows that is not in any block yet */
    char *sums, *cells, *outputs, *pairs, *spare;
    int firsts[RESAMPLE_LANES_MAX]; /* the first pair of rows of each row of a group */
    int slots[RESAMPLE_LANES_MAX];  /* and where it is in a block */
    int32_t **rows;                 /* the pairs of an output */
};

/* Pair rows NUMBER of WIDTH columns from X on. */
static void pair_tile_rows(const struct resample_tiling *tiling, const struct resample_tile *tile, int number, int x,
                           int width, int32_t *to)
{
    const struct plan *plan = tiling->plan;
    const int after = (tiling->in->width - tile->left) * tiling->channels - x; /* columns from X on */
    const size_t size = sample_bytes(plan->sample), bytes = (size_t)width * size;
    const char *rows[2];
    for (int i = 0; i < 2; i++) {
        const int y = number * tiling->column_inputs + i, last = tiling->in->height - 1; /* beyond it, taps may be 0 */
        const int row = y < plan->in_row ? 0 : y - plan->in_row < last ? y - plan->in_row : last;
        rows[i] = (const char *)plane_row(tiling->in, tile->channel, row) +
                  ((size_t)(tile->left * tiling->channels) + (size_t)x) * size;
        if (after < RESAMPLE_BLOCK) { /* no bytes beyond a row are read */
            char *copy = tile->spare + (size_t)i * RESAMPLE_BLOCK * sizeof(float);
            memcpy(copy, rows[i], bytes);
            rows[i] = copy;
        }
    }
    tiling->prepared->loops->pair_rows(plan->sample, rows[0], rows[1], width, to);
}

/* Sum a block of columns from X on, for COUNT rows of outputs from Y on. Returns the next pair of rows. */
static int sum_tile_block(const struct resample_tiling *tiling, const struct resample_tile *tile, int y, int count,
                          int x)
{
    const struct resample_taps *taps = &tiling->prepared->columns;
    const int slots = taps->count, columns = (tile->right - tile->left) * tiling->channels;
    const int width = columns - x < RESAMPLE_BLOCK ? columns - x : RESAMPLE_BLOCK;
    const size_t at = tiling->blocks > 1 ? (size_t)x * (size_t)slots * sizeof(int32_t) : 0;
    int32_t *pairs = (int32_t *)(void *)(tile->pairs + at);
    int next = tiling->blocks > 1 ? tile->next : INT32_MIN;
    for (int l = 0; l < count; l++) {
        const int first = tile->firsts[l];
        for (int k = 0, slot = tile->slots[l]; k < slots; k++) {
            tile->rows[k] = pairs + (ptrdiff_t)slot * RESAMPLE_BLOCK;
            slot = slot + 1 == slots ? 0 : slot + 1;
        }
        for (next = next < first ? first : next; next < first + slots; next++)
            pair_tile_rows(tiling, tile, next, x, width, tile->rows[next - first]);
        tiling->prepared->loops->columns(
            taps, tiling->plan->sample, y + l - taps->axis->first, (const int32_t *const *)tile->rows, width,
            tile->sums + (size_t)l * tiling->row_bytes + (size_t)x * sizeof(float) / (size_t)tiling->row_inputs);
    }
    return next;
}

/* Copy pixel FROM of the cells to pixel TO. */
static void copy_pixel(const struct resample_tiling *tiling, char *cells, int from, int to)
{
    const int each = tiling->row_inputs, lanes = tiling->prepared->loops->lanes, channels = tiling->channels;
    const size_t size = sizeof(int32_t) / (size_t)each;
    for (int c = 0; c < channels; c++)
        for (int l = 0; l < lanes; l++) {
            const int cell_from = (from / each * channels + c) * lanes + l,
                      cell_to = (to / each * channels + c) * lanes + l;
            memcpy(cells + (size_t)(cell_to * each + to % each) * size,
                   cells + (size_t)(cell_from * each + from % each) * size, size);
        }
}

/* Make COUNT rows of a tile, from row Y on. */
static void make_row_group(const struct resample_tiling *tiling, struct resample_tile *tile, int y, int count)
{
    const struct resample_loops *loops = tiling->prepared->loops;
    const enum sample sample = tiling->plan->sample;
    const struct plane *out = tiling->out;
    const int channels = tiling->channels, each = tiling->row_inputs, start = tile->start;
    const int columns = (tile->right - tile->left) * channels;
    int32_t *cells = (int32_t *)(void *)tile->cells, *outputs = (int32_t *)(void *)tile->outputs;
    char *to[RESAMPLE_LANES_MAX];
    int next = tile->next;
    for (int l = 0; l < count && tiling->sums_columns; l++) {
        tile->firsts[l] = (int)resample_floor(resample_first(&tiling->plan->columns, y + l), tiling->column_inputs);
        tile->slots[l] = ring_slot(tile->firsts[l], tiling->prepared->columns.count);
    }
    for (int x = 0; x < columns && tiling->sums_columns; x += RESAMPLE_BLOCK)
        next = sum_tile_block(tiling, tile, y, count, x);
    tile->next = next;
    for (int l = 0; l < count; l++)
        to[l] = (char *)plane_row(out, tile->channel, y + l - tiling->plan->out_row) +
                (size_t)(tile->x0 * channels) * sample_bytes(sample);
    for (int l = 0; l < count && !tiling->sums_columns; l++)
        loops->widen((const uint8_t *)plane_row(tiling->in, tile->channel, y + l - tiling->plan->in_row) +
                         (ptrdiff_t)tile->left * channels,
                     columns, (size_t)loops->lanes * tiling->in->row_bytes, tile->sums + (size_t)l * tiling->row_bytes);
    for (int l = 0; l < count && !tiling->sums_rows; l++)
        loops->narrow(tile->sums + (size_t)l * tiling->row_bytes, columns, (uint8_t *)to[l]);
    if (!tiling->sums_rows)
        return;
    loops->to_cells(tile->sums, tiling->row_bytes, (columns + each - 1) / each, each == 2 ? channels : 1,
                    cells + (ptrdiff_t)((tile->left - start) / each * channels) * loops->lanes);
    for (int x = start; x < tile->left; x++)
        copy_pixel(tiling, tile->cells, tile->left - start, x - start);
    for (int x = tile->right; x < tile->end; x++)
        copy_pixel(tiling, tile->cells, tile->right - 1 - start, x - start);
    loops->rows(&tiling->prepared->rows, sample, channels, cells, start, tile->x0, tile->x1, outputs);
    loops->to_rows(outputs, (size_t)((tile->x1 - tile->x0) * channels) * sample_bytes(sample), count, to);
}

/* One tile. */
static void resample_tile(void *context, int64_t index, int thread)
{
    const struct resample_tiling *tiling = context;
    const struct resample_taps *rows = &tiling->prepared->rows;
    const int tiles = tiling->tiles_x * tiling->tiles_y, number = (int)(index % tiles),
              lanes = tiling->prepared->loops->lanes;
    const int x0 = number % tiling->tiles_x * tiling->tile_width, width = tiling->in->width;
    const int y0 = tiling->first_row + number / tiling->tiles_x * tiling->tile_rows;
    const int y1 = tiling->last_row - y0 < tiling->tile_rows ? tiling->last_row : y0 + tiling->tile_rows;
    const int x1 = x0 + tiling->tile_width < tiling->out->width ? x0 + tiling->tile_width : tiling->out->width;

    /* The columns that the tile reads, from an even one on, and those of them that are in the picture. */
    const int copied = tiling->in->width == tiling->out->width ? x0 : rows->firsts[x0]; /* without a pass of rows */
    const int start = tiling->sums_rows ? rows->firsts[x0] & ~1 : copied;
    const int end = tiling->sums_rows ? rows->firsts[x1 - 1] + rows->count * tiling->row_inputs : copied + x1 - x0;
    char *sums = tiling->scratch + (size_t)thread * scratch_bytes(tiling);
    struct resample_tile tile = {
        .channel = (int)(index / tiles),
        .x0 = x0,
        .x1 = x1,
        .start = start,
        .left = start < 0 ? 0 : start,
        .right = end < width ? end : width,
        .end = end + end % 2,
        .next = INT32_MIN,
        .sums = sums,
        .cells = sums + tiling->cells_bytes,
    };
    tile.outputs = tile.cells + tiling->cells_bytes;
    tile.pairs = tile.outputs + tiling->out_bytes;
    tile.spare = tile.pairs + tiling->pairs_bytes;
    tile.rows = (int32_t **)(void *)(tile.spare + tiling->spare_bytes);
    for (int y = y0; y < y1 && !cpu_is_stopped(tiling->plan->stop); y += lanes)
        make_row_group(tiling, &tile, y, y1 - y < lanes ? y1 - y : lanes);
}

/* Make rows FIRST to LAST - 1 of the outputs by the passes of TILING. */
static bool launch_tiles(struct resample_tiling tiling, const struct plan *plan, int first, int last,
                         struct error *error)
{
    tiling.plan = plan;
    tiling.prepared = plan->prepared;
    tiling.channels = plane_step(tiling.in);
    tiling.first_row = first;
    tiling.last_row = last;
    const int max = thread_pool_threads(plan->pool);
    choose_tiles(&tiling, max);
    const int64_t tiles = (int64_t)tiling.tiles_x * tiling.tiles_y * (tiling.out->count / tiling.channels);
    const int threads = tiles < max ? (int)tiles : max;
    const size_t size = round_up((size_t)threads * scratch_bytes(&tiling), RESAMPLE_VECTOR_MAX);
    tiling.scratch = aligned_alloc(RESAMPLE_VECTOR_MAX, size);
    if (tiling.scratch == NULL)
        return report_no_resample_memory(plan, error);
    memset(tiling.scratch, 0, size); /* whole vectors are read, also of rows that do not exist */
    parallel_for(plan->pool, threads, tiles, resample_tile, &tiling);
    free(tiling.scratch);
    return true;
}

/* Let BYTES be planes of uint8_t like PLANES, with HEIGHT rows. Release their data with free. */
static bool make_bytes(const struct plan *plan, const struct plane *planes, int height, struct plane *bytes,
                       struct error *error)
{
    *bytes = *planes;
    bytes->sample = SAMPLE_U8;
    bytes->height = height;
    bytes->row_bytes = (size_t)planes->width * (size_t)plane_step(planes);
    bytes->plane_bytes = planes->is_together ? 1 : bytes->row_bytes * (size_t)height;
    bytes->data = malloc((size_t)planes->width * (size_t)planes->count * (size_t)height);
    return bytes->data != NULL || report_no_resample_memory(plan, error);
}

/* Resize planes of uint8_t as Pillow does. A pass that keeps the length is left out. If the rows come first, they make
 * a picture. */
static bool launch_bytes(const struct plan *plan, const struct plane *in, const struct plane *out, int first, int last,
                         struct error *error)
{
    struct resample_tiling tiling = {.in = in, .out = out};
    struct plan pass = *plan;
    struct plane middle;
    int from, to;
    tiling.sums_columns = !pillow_keeps(&plan->columns);
    tiling.sums_rows = !pillow_keeps(&plan->rows);
    if (!plan->rows_first || !tiling.sums_columns || !tiling.sums_rows)
        return launch_tiles(tiling, plan, first, last, error);
    resample_span(&plan->columns, first, last, &from, &to);
    if (!make_bytes(plan, out, to - from, &middle, error))
        return false;
    pass.out_row = from;
    tiling = (struct resample_tiling){.in = in, .out = &middle, .sums_rows = true};
    bool done = launch_tiles(tiling, &pass, from, to, error);
    pass.in_row = from;
    pass.out_row = plan->out_row;
    tiling = (struct resample_tiling){.in = &middle, .out = out, .sums_columns = true};
    done = done && launch_tiles(tiling, &pass, first, last, error);
    free(middle.data);
    return done;
}

/* Copy rows FIRST to LAST - 1 of planes to others of their shape: see image_convert_samples. */
static void convert_rows(const struct plane *from, const struct plane *to, int first, int last)
{
    const int parts = from->is_together ? 1 : from->count;
    struct image in = {.width = from->width * plane_step(from), .height = 1, .channels = 1}, out = in;
    in.bits = 8 * (int)sample_bytes(from->sample);
    out.bits = 8 * (int)sample_bytes(to->sample);
    for (int i = first * parts; i < last * parts; i++) {
        in.samples = plane_row(from, i % parts, i / parts);
        out.samples = plane_row(to, i % parts, i / parts);
        image_convert_samples(&in, &out);
    }
}

/* Planes of uint16_t are copied to bytes and back. */
static bool launch_pillow(struct plan plan, const struct plane *in, const struct plane *out, int first, int last,
                          struct error *error)
{
    struct plane from = {0}, to = {0};
    if (plan.sample == SAMPLE_U8)
        return launch_bytes(&plan, in, out, first, last, error);
    plan.sample = SAMPLE_U8;
    bool done = make_bytes(&plan, in, in->height, &from, error) && make_bytes(&plan, out, out->height, &to, error);
    if (done) {
        convert_rows(in, &from, 0, in->height);
        done = launch_bytes(&plan, &from, &to, first, last, error);
    }
    if (done)
        convert_rows(&to, out, first - plan.out_row, last - plan.out_row);
    free(from.data);
    free(to.data);
    return done;
}

bool cpu_resample_launch(const struct plan *plan, struct device *device, const struct plane *in,
                         const struct plane *out, struct error *error)
{
    const int first = plan->out_row + (plan->last_row > 0 ? plan->first_row : 0),
              last = plan->out_row + (plan->last_row > 0 ? plan->last_row : out->height);
    if (plan->prepared == NULL)
        return reference_resample_launch(plan, device, in, out, error);
    if (resample_is_pillow(plan->columns.kernel))
        return launch_pillow(*plan, in, out, first, last, error);
    return launch_tiles((struct resample_tiling){.in = in, .out = out, .sums_columns = true, .sums_rows = true}, plan,
                        first, last, error);
}

/* Taps are 4 bytes, and up to 8 more as the loops read them; weights are 8 bytes each, and released before. The rows of
 * a tile have at most the inputs that choose_tiles takes, those of 16 outputs, and those of one output twice, of four
 * channels. By Pillow's rule, the picture between the passes and the copies of planes of uint16_t have four channels,
 * too. */
size_t cpu_resample_need(const struct resample_axis *columns, const struct resample_axis *rows, size_t threads)
{
    const size_t taps = resample_bytes(columns) + resample_bytes(rows);
    if (has_many_taps(columns, rows))
        return 3 * taps + threads * (size_t)rows->from * sizeof(double);
    const size_t rows_made = (size_t)columns->from + threads * (size_t)columns->count;
    const size_t middle =
        resample_is_pillow(columns->kernel)
            ? 4 * ((size_t)rows->made * (rows_made + (size_t)columns->made) + (size_t)rows->from * rows_made)
            : 0;
    const size_t inputs = 1024 + 8 * (size_t)(rows->count + 4) + 16 * (size_t)(rows->from / rows->to + 1);
    const size_t width = 4 * inputs + RESAMPLE_BLOCK, outputs = 4 * (1024 + RESAMPLE_PIECE);
    const size_t block = (size_t)(columns->count + 1) * (RESAMPLE_BLOCK * sizeof(float) + sizeof(void *));
    return 5 * taps + (size_t)rows->made * sizeof(int) + middle +
           threads * (RESAMPLE_LANES_MAX * (2 * width + outputs) * sizeof(float) + KEPT_BYTES + block +
                      2 * RESAMPLE_BLOCK * sizeof(float) + RESAMPLE_VECTOR_MAX);
}
