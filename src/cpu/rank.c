/* SPDX-License-Identifier: MIT
 *
 * Filters of ranks: the passes of the CPU's variants, and the pass of the variant `reference`. */
#include "cpu/rank.h"
#include "base/parallel.h"
#include "base/round.h"
#include "cpu/cpu.h"
#include "cpu/tiles.h"

#include <stdlib.h>
#include <string.h>

/* ---- The reference ---- */

/* A pass, and the keys of a window for each thread. */
struct reference {
    const struct rank_run *run;
    uint32_t *keys;
};

static uint32_t key_at(const struct plane *planes, int channel, int y, int x)
{
    const void *row = plane_row(planes, channel, y);
    x *= plane_step(planes);
    return planes->sample == SAMPLE_U8    ? ((const uint8_t *)row)[x]
           : planes->sample == SAMPLE_U16 ? ((const uint16_t *)row)[x]
                                          : rank_key(((const uint32_t *)row)[x]);
}

static void store_key(const struct plane *planes, int channel, int y, int x, uint32_t key)
{
    void *row = plane_row(planes, channel, y);
    x *= plane_step(planes);
    if (planes->sample == SAMPLE_U8)
        ((uint8_t *)row)[x] = (uint8_t)key;
    else if (planes->sample == SAMPLE_U16)
        ((uint16_t *)row)[x] = (uint16_t)key;
    else
        ((uint32_t *)row)[x] = rank_bits(key);
}

/* The key of rank INDEX of COUNT keys, bit after bit: how many that begin as it does go on with 0? */
static uint32_t select_key(const uint32_t *keys, int count, int index)
{
    uint32_t prefix = 0;
    for (int bit = 31; bit >= 0; bit--) {
        int zeros = 0;
        prefix <<= 1;
        for (int i = 0; i < count; i++)
            zeros += keys[i] >> bit == prefix;
        if (index >= zeros) {
            index -= zeros;
            prefix++;
        }
    }
    return prefix;
}

static void reference_row(void *context, int64_t index, int thread)
{
    const struct reference *reference = context;
    const struct rank_run *run = reference->run;
    const struct plane *in = run->in;
    const struct rank *rank = &run->plan->filter->rank;
    const int rows = run->last_row - run->first_row;
    const int channel = (int)(index / rows), y = run->first_row + (int)(index % rows);
    const uint32_t outside = in->sample == SAMPLE_F32 ? rank_key(0) : 0;
    uint32_t *keys = reference->keys + (ptrdiff_t)thread * rank->count;
    for (int x = 0; x < in->width; x++) {
        int count = 0;
        for (int i = 0; i < rank->height; i++) {
            const int from_y = border_index(y + i - rank->anchor_y, in->height, run->plan->border);
            for (int j = 0; j < rank->width; j++) {
                const int from_x = border_index(x + j - rank->anchor_x, in->width, run->plan->border);
                if (rank_has(rank, j, i))
                    keys[count++] = from_y < 0 || from_x < 0 ? outside : key_at(in, channel, from_y, from_x);
            }
        }
        store_key(run->out, channel, y, x, select_key(keys, count, run->index));
    }
}

static bool run_reference(const struct rank_run *run, struct error *error)
{
    const int threads = thread_pool_threads(run->plan->pool), count = run->plan->filter->rank.count;
    struct reference reference = {run, malloc((size_t)threads * (size_t)count * sizeof *reference.keys)};
    if (reference.keys == NULL)
        return error_no_memory(error, "the filter %s", run->plan->filter->name);
    parallel_for(run->plan->pool, threads, (int64_t)run->in->count * (run->last_row - run->first_row), reference_row,
                 &reference);
    free(reference.keys);
    return true;
}

/* ---- The pass of the variant `cpu` ---- */

enum {
    ROW_BYTES = 256 << 10, /* bytes of the rows of scratch of a tile, if it is not narrow: they fit in a cache */
    WIDTH_MIN = 2048,      /* samples in a row of a tile: narrower tiles would have too many halo columns */
    WIDTH_MAX = 16384,
    TILES_A_THREAD = 4,      /* the least tiles of a thread, so that threads end at about the same time */
    LEVELS = 7,              /* windows of 1, 2, 4 ... 64 samples in a row */
    HISTOGRAM_MAX = 2 << 20, /* bytes of scratch of all other ranks, at most */
    FEW_SAMPLES = 6,         /* that are combined one by one */
};

/* Choose the FACTORS of windows of WIDTH samples for which across() reads the fewest rows. */
static void choose_factors(int width, uint8_t *factors)
{
    uint8_t rows[FILTER_MAX + 1] = {0}, best[FILTER_MAX + 1] = {0}; /* for windows of each width */
    for (int w = 1; w <= width; w++) {
        rows[w] = (uint8_t)w;
        best[w] = 1;
        for (int factor = 2; factor < FEW_SAMPLES && w > FEW_SAMPLES; factor++)
            if (factor + 1 + w % factor + rows[w / factor] < rows[w]) {
                rows[w] = (uint8_t)(factor + 1 + w % factor + rows[w / factor]);
                best[w] = (uint8_t)factor;
            }
    }
    do {
        *factors = best[width];
        width /= *factors;
    } while (*factors++ > 1);
}

static enum rank_method choose_method(const struct rank_run *run)
{
    const struct rank *rank = &run->plan->filter->rank;
    const bool is_rectangle = rank->count == rank->width * rank->height;
    if (run->index == 0 || run->index == rank->count - 1)
        return RANK_ENDS;
    if (is_rectangle && rank->width == rank->height && rank->width <= 5 && rank->count % 2 == 1 &&
        run->index == rank->count / 2)
        return RANK_NETWORK;
    return is_rectangle && run->in->sample == SAMPLE_U8 ? RANK_THRESHOLDS : RANK_HISTOGRAM;
}

/* List the footprint's samples: each entry is a run of them in a row. SAMPLES has room for an entry of each sample. */
static void list_samples(const struct rank *rank, struct rank_samples *samples, struct rank_tiling *tiling)
{
    tiling->samples = samples;
    for (int y = 0; y < rank->height; y++)
        for (int x = 0; x < rank->width; x++) {
            struct rank_samples *last = &samples[tiling->sample_count];
            if (!rank_has(rank, x, y))
                continue;
            if (x == 0 || !rank_has(rank, x - 1, y)) {
                tiling->sample_count++;
                *last = (struct rank_samples){(uint8_t)x, (uint8_t)y, 0};
            } else {
                last--;
            }
            last->count++;
            tiling->longest = last->count > tiling->longest ? last->count : tiling->longest;
        }
}

static bool has_sample(const struct rank *rank, int x, int y)
{
    return x >= 0 && x < rank->width && y >= 0 && y < rank->height && rank_has(rank, x, y);
}

static void list_moves(const struct rank *rank, int32_t *places, struct rank_tiling *tiling)
{
    static const int moves[3][2] = {{1, 0}, {-1, 0}, {0, 1}};
    for (int move = 0; move < 3; move++) {
        const int dx = moves[move][0], dy = moves[move][1];
        int enters = 0, leaves = 0;
        int32_t *entering = places, *leaving = places + rank->count;
        for (int y = 0; y < rank->height; y++)
            for (int x = 0; x < rank->width; x++) {
                if (rank_has(rank, x, y) && !has_sample(rank, x + dx, y + dy))
                    entering[enters++] = (y + dy) * tiling->pitch + x + dx;
                if (rank_has(rank, x, y) && !has_sample(rank, x - dx, y - dy))
                    leaving[leaves++] = y * tiling->pitch + x;
            }
        tiling->entering[move] = entering;
        tiling->leaving[move] = leaving;
        tiling->move_counts[move] = enters;
        places += 2 * rank->count;
    }
}

/* Rows of scratch of a tile, for the lowest or highest samples. */
static int scratch_rows(const struct rank *rank)
{
    return (rank->count == rank->width * rank->height ? 2 : LEVELS) * rank->height + 8;
}

size_t cpu_rank_need(const struct filter *filter, size_t threads)
{
    const struct rank *rank = &filter->rank;
    const size_t row_max = (WIDTH_MIN + 4 * FILTER_MAX + RANK_ROW_ALIGNMENT) * sizeof(float);
    return threads * (rank->form == RANK_ONE && rank->index > 0 && rank->index < rank->count - 1
                          ? (size_t)HISTOGRAM_MAX
                          : ROW_BYTES + (size_t)scratch_rows(rank) * row_max);
}

/* The tiles, and the scratch of each thread. */
static void choose_tiles(struct rank_tiling *tiling, int threads)
{
    const struct rank_run *run = tiling->run;
    const struct rank *rank = &run->plan->filter->rank;
    const bool is_wide = tiling->method <= RANK_NETWORK;
    const int height = run->last_row - run->first_row, lanes = tiling->lanes;
    const int rows = scratch_rows(rank);
    const size_t size = sample_bytes(run->in->sample);
    int width = RANK_TILE;
    if (is_wide) {
        width = (int)(ROW_BYTES / ((size_t)rows * size));
        width = (width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width) / lanes;
        if (tiling->method == RANK_NETWORK)
            width = RANK_PART / lanes;
    }
    if (tiling->method == RANK_THRESHOLDS)
        width = (rank->width < RANK_TILE / 4 ? RANK_TILE : 2 * RANK_TILE) - (rank->width - 1);
    tiling->tiles_x = (run->in->width + width - 1) / width;
    tiling->tile_width = is_wide ? (run->in->width + tiling->tiles_x - 1) / tiling->tiles_x : width;
    tiling->tiles_x = (run->in->width + tiling->tile_width - 1) / tiling->tile_width;
    const int planes = run->in->count / lanes;
    const int wanted = (threads > 1 ? TILES_A_THREAD * threads : 1) / (tiling->tiles_x * planes) + 1;
    tiling->tile_height = height / wanted > 2 * rank->height ? height / wanted : 2 * rank->height;
    if (!is_wide)
        tiling->tile_height = rank->height < RANK_TILE / 4 ? RANK_TILE / 4 : RANK_TILE;
    if (tiling->tile_height > height)
        tiling->tile_height = height;
    tiling->tiles_y = (height + tiling->tile_height - 1) / tiling->tile_height;
    tiling->pitch = (int)round_up((size_t)((tiling->tile_width + rank->width - 1) * lanes), RANK_ROW_ALIGNMENT);
    const size_t area = (size_t)tiling->pitch * (size_t)(tiling->tile_height + rank->height - 1);
    if (tiling->method == RANK_NETWORK)
        tiling->scratch_bytes = 36 * RANK_PITCH * size;
    else if (is_wide)
        tiling->scratch_bytes = (size_t)rows * (size_t)tiling->pitch * size;
    else if (tiling->method == RANK_THRESHOLDS)
        tiling->scratch_bytes = (size_t)tiling->pitch * RANK_TILE * 16;
    else
        tiling->scratch_bytes = (1 << 17) + 512 +
                                area * (2 * sizeof(uint16_t) + sizeof(uint32_t) + 2 * sizeof(uint64_t)) +
                                (size_t)tiling->pitch * sizeof(uint32_t);
    tiling->scratch_bytes = round_up(tiling->scratch_bytes, SCRATCH_ALIGNMENT);
}

static const struct rank_loops *const all_loops[INSTRUCTION_SETS] = LOOPS_BY_SET(rank_loops, avx512, vnni, i8mm);

/* What threads share. */
struct passing {
    struct rank_tiling tiling;
    const struct rank_loops *loops;
};

static void run_tile(void *context, int64_t index, int thread)
{
    const struct passing *passing = context;
    const struct rank_tiling *tiling = &passing->tiling;
    const struct rank_run *run = tiling->run;
    if (cpu_is_stopped(run->plan->stop))
        return;
    const int tiles = tiling->tiles_x * tiling->tiles_y, at = (int)(index % tiles);
    struct rank_tile tile = {.channel = (int)(index / tiles),
                             .x0 = at % tiling->tiles_x * tiling->tile_width,
                             .y0 = run->first_row + at / tiling->tiles_x * tiling->tile_height};
    tile.x1 = tile.x0 + tiling->tile_width < run->in->width ? tile.x0 + tiling->tile_width : run->in->width;
    tile.y1 = tile.y0 + tiling->tile_height < run->last_row ? tile.y0 + tiling->tile_height : run->last_row;
    const struct rank *rank = &run->plan->filter->rank;
    const int left = rank->anchor_x - tile.x0, right = tile.x1 + rank->width - 1 - rank->anchor_x - run->in->width;
    if (run->plan->border != BORDER_WRAP && tile.x1 - tile.x0 >= rank->width) {
        tile.left = left > 0 ? left : 0;
        tile.right = right > 0 ? right : 0;
    }
    passing->loops->run[run->in->sample](tiling, &tile, tiling->scratch + (size_t)thread * tiling->scratch_bytes);
}

static bool run_pass(const struct rank_run *run, struct error *error)
{
    const struct rank *rank = &run->plan->filter->rank;
    enum instruction_set set;
    if (!instruction_set_find(&set, error))
        return false;
    struct passing passing = {.tiling = {.run = run, .method = choose_method(run)}, .loops = all_loops[set]};
    struct rank_tiling *tiling = &passing.tiling;
    int threads = thread_pool_threads(run->plan->pool);
    tiling->lanes = tiling->method <= RANK_NETWORK ? plane_step(run->in) : 1;
    choose_factors(rank->width, tiling->factors);
    choose_tiles(tiling, threads);
    const int64_t tiles = (int64_t)tiling->tiles_x * tiling->tiles_y * (run->in->count / tiling->lanes);
    threads = tiles < threads ? (int)tiles : threads;
    tiling->scratch = aligned_alloc(SCRATCH_ALIGNMENT, (size_t)threads * tiling->scratch_bytes);
    int32_t *places = malloc((size_t)rank->count * (6 * sizeof *places + sizeof(struct rank_samples)));
    const bool done = tiling->scratch != NULL && places != NULL;
    if (done) {
        list_samples(rank, (void *)(places + 6 * rank->count), tiling);
        list_moves(rank, places, tiling);
        parallel_for(run->plan->pool, threads, tiles, run_tile, &passing);
    } else {
        error_no_memory(error, "the filter %s", run->plan->filter->name);
    }
    free(tiling->scratch);
    free(places);
    return done;
}

/* ---- Passes ---- */

/* Planes like LIKE, with undefined samples. Free their data. */
static bool allocate_like(const struct plane *like, struct plane *planes, struct error *error)
{
    if (!like->is_together)
        return plane_allocate(planes, like->sample, like->width, like->height, like->count, error);
    if (!plane_allocate(planes, like->sample, like->width * like->count, like->height, 1, error))
        return false;
    planes->width = like->width;
    planes->count = like->count;
    planes->plane_bytes = like->plane_bytes;
    planes->is_together = true;
    return true;
}

/* OUT = HIGH - LOW, for COUNT samples of a row. Levels are at least 0. */
static void subtract_row(enum sample sample, const void *high, const void *low, void *out, int count)
{
    for (int x = 0; sample == SAMPLE_U8 && x < count; x++) {
        const int difference = ((const uint8_t *)high)[x] - ((const uint8_t *)low)[x];
        ((uint8_t *)out)[x] = (uint8_t)(difference > 0 ? difference : 0);
    }
    for (int x = 0; sample == SAMPLE_U16 && x < count; x++) {
        const int difference = ((const uint16_t *)high)[x] - ((const uint16_t *)low)[x];
        ((uint16_t *)out)[x] = (uint16_t)(difference > 0 ? difference : 0);
    }
    for (int x = 0; sample == SAMPLE_F32 && x < count; x++)
        ((float *)out)[x] = rank_difference(((const float *)high)[x], ((const float *)low)[x]);
}

/* Subtract in OUT, which has the result of the last pass of RUN. FIRST has that of the first. */
static void subtract(const struct rank_run *run, const struct plane *first, const struct plane *out)
{
    const enum rank_form form = run->plan->filter->rank.form;
    const struct plane *high = form == RANK_TOPHAT ? run->in : form == RANK_OUTLINE ? first : out;
    const struct plane *low = form == RANK_BLACKHAT ? run->in : out;
    const int channels = out->is_together ? 1 : out->count, count = out->width * plane_step(out);
    for (int channel = 0; channel < channels; channel++)
        for (int y = run->first_row; y < run->last_row; y++)
            subtract_row(out->sample, plane_row(high, channel, y), plane_row(low, channel, y),
                         plane_row(out, channel, y), count);
}

/* The rows that the second pass reads for those of RUN. */
static void add_halo(const struct rank_run *run, int *first_row, int *last_row)
{
    const struct rank *rank = &run->plan->filter->rank;
    const int above = rank->anchor_y, below = rank->height - 1 - above, halo = above > below ? above : below;
    const bool is_whole = run->plan->border == BORDER_WRAP;
    *first_row = is_whole || run->first_row < halo ? 0 : run->first_row - halo;
    *last_row = is_whole || run->last_row > run->in->height - halo ? run->in->height : run->last_row + halo;
}

/* Do all passes, each by PASS. */
static bool launch(const struct plan *plan, const struct plane *in, const struct plane *out,
                   bool (*pass)(const struct rank_run *run, struct error *error), struct error *error)
{
    const struct rank *rank = &plan->filter->rank;
    const struct rank_passes passes = rank_passes(rank);
    struct rank_run run = {
        .plan = plan,
        .in = in,
        .out = out,
        .index = passes.first,
        .first_row = plan->last_row > 0 ? plan->first_row : 0,
        .last_row = plan->last_row > 0 ? plan->last_row : in->height,
    };
    struct plane between = {0};
    if (passes.second < 0)
        return pass(&run, error);
    if (!allocate_like(in, &between, error))
        return false;
    struct rank_run first = run, second = run;
    first.out = &between;
    second.in = passes.reads_input ? in : &between;
    second.index = passes.second;
    if (!passes.reads_input)
        add_halo(&run, &first.first_row, &first.last_row);
    const bool done = pass(&first, error) && pass(&second, error);
    if (done && rank_subtracts(rank))
        subtract(&run, &between, out);
    plane_free(&between);
    return done;
}

bool reference_rank_launch(const struct plan *plan, struct device *device, const struct plane *in,
                           const struct plane *out, struct error *error)
{
    (void)device;
    return launch(plan, in, out, run_reference, error);
}

bool cpu_rank_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                     struct error *error)
{
    (void)device;
    return launch(plan, in, out, run_pass, error);
}
