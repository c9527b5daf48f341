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
 * a tap of a column. */
static bool has_many_taps(const struct resample_axis *columns, const struct resample_axis *rows)
{
    return columns->count > RESAMPLE_TAPS_MAX || rows->count > RESAMPLE_TAPS_MAX;
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
    const int32_t parts[2] = {high, -tap - high * (1 << taps->low_bits)};
    for (int part = 0; part < taps->parts; part++) {
        int32_t *pair = row + (ptrdiff_t)(at / 2) * taps->parts + part;
        memcpy(words, pair, sizeof words);
        words[at % 2] = (int16_t)parts[part];
        memcpy(pair, words, sizeof words);
    }
}

/* Make pairs. If IS_ALIGNED, they begin at even inputs. */
static bool make_pairs(struct resample_taps *taps, bool is_aligned)
{
    const struct resample_axis *axis = taps->axis;
    const int next = axis->period < axis->to ? resample_first(axis, axis->period) - resample_first(axis, 0) : 0;
    taps->count = (axis->count + 1) / 2 + (is_aligned && axis->count % 2 == 0);
    if (is_aligned && next % 2 != 0)
        taps->period = 2 * axis->period < axis->to ? 2 * axis->period : axis->to;
    const size_t row_ints = (size_t)taps->count * (size_t)taps->parts;
    taps->pairs = calloc((size_t)taps->period * row_ints, sizeof *taps->pairs);
    for (int i = 0; taps->pairs != NULL && i < taps->period; i++) {
        const int skip = is_aligned ? resample_first(axis, i) & 1 : 0;
        for (int k = 0; k < axis->count; k++)
            set_pair(taps, taps->pairs + (size_t)i * row_ints, skip + k,
                     axis->taps[(ptrdiff_t)(i % axis->period) * axis->count + k]);
    }
    return taps->pairs != NULL;
}

static bool make_doubles(struct resample_taps *taps, enum sample sample)
{
    const struct resample_axis *axis = taps->axis;
    const size_t count = (size_t)axis->period * (size_t)axis->count;
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
    if (plan->sample == SAMPLE_F32)
        return make_doubles(columns, plan->sample) && make_doubles(rows, plan->sample);
    if (plan->sample == SAMPLE_U16) {
        columns->parts = 2;
        columns->low_bits = v->shift - 14 < 15 ? v->shift - 14 : 15;
        columns->chunk = (1 << (16 - columns->low_bits)) - 1;
        return make_pairs(columns, false) && make_doubles(rows, plan->sample);
    }
    const double largest = v->gain * 127.5 * (1 << RESAMPLE_FRACTION) + 33;
    columns->chunk = 128;
    rows->chunk = h->gain * largest * ldexp(1, h->shift) < INT32_MAX ? RESAMPLE_TAPS_MAX : 2;
    return make_pairs(columns, false) && make_pairs(rows, true);
}

static void release(void *memory)
{
    struct prepared *prepared = memory;
    free(prepared->columns.pairs);
    free(prepared->columns.taps);
    free(prepared->rows.pairs);
    free(prepared->rows.taps);
    free(prepared);
}

static bool no_memory(const struct plan *plan, struct error *error)
{
    return error_no_memory(error, "the taps of %s", plan->filter->name);
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
        return no_memory(plan, error);
    prepared->loops = all_loops[set];
    plan->prepared = prepared;
    plan->release = release;
    return make_taps(prepared, plan) || no_memory(plan, error);
}

/* ---- Tiles ---- */

/* What all tiles of a launch share. Sizes are in bytes. */
struct resample_tiling {
    const struct plan *plan;
    const struct prepared *prepared;
    const struct plane *in, *out;
    int first_row, last_row; /* of the outputs, in the picture */
    int tile_width, tiles_x, tiles_y;
    int inputs;                                             /* of a row, that an output reads */
    size_t row_bytes;                                       /* of sums */
    size_t rows_bytes, cells_bytes, out_bytes, spare_bytes; /* of a thread */
    char *scratch;
};

/* Choose the size of the tiles: so wide that few columns are summed for two tiles, and that the sums stay in a
 * cache. */
static void choose_tiles(struct resample_tiling *tiling)
{
    enum { INPUTS = 1024, OUTPUTS = 1024, PIECE = 16 };
    const struct prepared *prepared = tiling->prepared;
    const struct resample_axis *axis = prepared->rows.axis;
    const bool is_u8 = tiling->plan->sample == SAMPLE_U8;
    const size_t lanes = (size_t)prepared->loops->lanes, vector = (size_t)prepared->loops->vector;
    tiling->inputs = prepared->rows.count * (is_u8 ? 2 : 1);
    const int64_t inputs = 4 * (int64_t)tiling->inputs > INPUTS ? 4 * (int64_t)tiling->inputs : INPUTS;
    const int64_t outputs = (inputs - tiling->inputs) * axis->to / axis->from / PIECE * PIECE;
    tiling->tile_width = (int)(outputs < PIECE ? PIECE : outputs > OUTPUTS ? OUTPUTS : outputs);
    tiling->tiles_x = (axis->to - 1) / tiling->tile_width + 1;
    tiling->tiles_y = (tiling->last_row - tiling->first_row - 1) / (int)lanes + 1;

    /* The inputs of a tile, with one before its first and one for each part of an input that a step may gain. */
    const size_t width = (size_t)((int64_t)tiling->tile_width * axis->from / axis->to) + (size_t)tiling->inputs + 4;
    const size_t unit = is_u8 ? sizeof(int16_t) : sizeof(float);
    tiling->row_bytes = round_up(width * unit, 4 * vector);
    tiling->rows_bytes = lanes * tiling->row_bytes;
    tiling->cells_bytes = lanes * tiling->row_bytes;
    tiling->out_bytes =
        round_up((size_t)tiling->tile_width * sample_bytes(tiling->out->sample), RESAMPLE_PIECE) * lanes;
    tiling->spare_bytes = 4 * (size_t)(prepared->columns.count + 1) * RESAMPLE_VECTOR_MAX;
}

static size_t scratch_bytes(const struct resample_tiling *tiling)
{
    return tiling->rows_bytes + tiling->cells_bytes + tiling->out_bytes + tiling->spare_bytes;
}

/* Copy column FROM of LANES cells to column TO. */
static void copy_column(char *cells, int lanes, bool is_u8, int from, int to)
{
    const int each = is_u8 ? 2 : 1;
    const size_t size = is_u8 ? sizeof(int16_t) : sizeof(float);
    for (int l = 0; l < lanes; l++)
        memcpy(cells + ((size_t)(to / each * lanes + l) * (size_t)each + (size_t)(to % each)) * size,
               cells + ((size_t)(from / each * lanes + l) * (size_t)each + (size_t)(from % each)) * size, size);
}

/* One tile of one plane. */
static void resample_tile(void *context, int64_t index, int thread)
{
    const struct resample_tiling *tiling = context;
    const struct resample_loops *loops = tiling->prepared->loops;
    const struct resample_taps *columns = &tiling->prepared->columns, *rows = &tiling->prepared->rows;
    const struct plane *in = tiling->in, *out = tiling->out;
    const struct plan *plan = tiling->plan;
    const bool is_u8 = plan->sample == SAMPLE_U8;
    const int tiles = tiling->tiles_x * tiling->tiles_y, channel = (int)(index / tiles), tile = (int)(index % tiles);
    const int x0 = tile % tiling->tiles_x * tiling->tile_width;
    const int x1 = x0 + tiling->tile_width < out->width ? x0 + tiling->tile_width : out->width;
    const int y0 = tiling->first_row + tile / tiling->tiles_x * loops->lanes;
    const int count = tiling->last_row - y0 < loops->lanes ? tiling->last_row - y0 : loops->lanes;

    /* The columns that the tile reads, from an even one on, and those of them that are in the picture. */
    const int start = resample_first(rows->axis, x0) & ~1, end = resample_first(rows->axis, x1 - 1) + tiling->inputs;
    const int left = start < 0 ? 0 : start, right = end < in->width ? end : in->width;

    char *sums = tiling->scratch + (size_t)thread * scratch_bytes(tiling), *cells = sums + tiling->rows_bytes;
    char *outputs = cells + tiling->cells_bytes, *spare = outputs + tiling->out_bytes;
    const struct resample_source source = {
        .base = (const char *)plane_row(in, channel, 0) + (size_t)left * sample_bytes(in->sample),
        .stride = in->row_bytes,
        .top = plan->in_row,
        .last = plan->in_row + in->height - 1, /* taps of 0 may be beyond it */
    };
    char *to[RESAMPLE_LANES_MAX];
    for (int l = 0; l < count; l++) {
        to[l] = (char *)plane_row(out, channel, y0 + l - plan->out_row) + (size_t)x0 * sample_bytes(out->sample);
        loops->columns(columns, plan->sample, &source, y0 + l, right - left, spare,
                       sums + (size_t)l * tiling->row_bytes);
    }
    const int each = is_u8 ? 2 : 1, units = (right - left + each - 1) / each;
    loops->to_cells(sums, tiling->row_bytes, units, plan->sample != SAMPLE_F32,
                    (int32_t *)(void *)cells + (ptrdiff_t)(left - start) / each * loops->lanes);
    for (int x = start; x < left; x++)
        copy_column(cells, loops->lanes, is_u8, left - start, x - start);
    for (int x = right; x < end + end % 2; x++)
        copy_column(cells, loops->lanes, is_u8, right - 1 - start, x - start);
    loops->rows(rows, plan->sample, (int32_t *)(void *)cells, start, x0, x1, (int32_t *)(void *)outputs);
    loops->to_rows((int32_t *)(void *)outputs, (size_t)(x1 - x0) * sample_bytes(out->sample), count, to);
}

bool cpu_resample_launch(const struct plan *plan, struct device *device, const struct plane *in,
                         const struct plane *out, struct error *error)
{
    if (plan->prepared == NULL)
        return reference_resample_launch(plan, device, in, out, error);
    struct resample_tiling tiling = {
        .plan = plan,
        .prepared = plan->prepared,
        .in = in,
        .out = out,
        .first_row = plan->out_row + (plan->last_row > 0 ? plan->first_row : 0),
        .last_row = plan->out_row + (plan->last_row > 0 ? plan->last_row : out->height),
    };
    choose_tiles(&tiling);
    const int64_t tiles = (int64_t)tiling.tiles_x * tiling.tiles_y * out->count;
    const int max = thread_pool_threads(plan->pool), threads = tiles < max ? (int)tiles : max;
    const size_t size = round_up((size_t)threads * scratch_bytes(&tiling), RESAMPLE_VECTOR_MAX);
    tiling.scratch = aligned_alloc(RESAMPLE_VECTOR_MAX, size);
    if (tiling.scratch == NULL)
        return error_no_memory(error, "the sums of %s", plan->filter->name);
    memset(tiling.scratch, 0, size); /* whole vectors are read, also of rows that do not exist */
    parallel_for(plan->pool, threads, tiles, resample_tile, &tiling);
    free(tiling.scratch);
    return true;
}

/* Taps are 4 bytes, and up to 8 more as the loops read them; weights are 8 bytes each, and released before. The rows of
 * a tile have at most the inputs that choose_tiles takes, those of 16 outputs, and those of one output twice. */
size_t cpu_resample_need(const struct resample_axis *columns, const struct resample_axis *rows, size_t threads)
{
    const size_t taps = resample_bytes(columns) + resample_bytes(rows);
    const size_t weights = 2 * taps;
    if (has_many_taps(columns, rows))
        return taps + weights + threads * (size_t)rows->from * sizeof(double);
    const size_t inputs = 1024 + 8 * (size_t)(rows->count + 4) + 16 * (size_t)(rows->from / rows->to + 1);
    const size_t width = round_up(inputs, 2 * RESAMPLE_VECTOR_MAX);
    const size_t spare = 4 * (size_t)(columns->count + 1) * RESAMPLE_VECTOR_MAX + RESAMPLE_VECTOR_MAX;
    return 5 * taps + threads * (RESAMPLE_LANES_MAX * (2 * width + 1024 + RESAMPLE_PIECE) * sizeof(float) + spare);
}
