/* SPDX-License-Identifier: MIT
 *
 * Filters of ranks: the passes of the CPU's variants, and the pass of the variant `reference`. */
#include "cpu/rank.h"
#include "base/parallel.h"
#include "cpu/cpu.h"

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
    return launch(plan, in, out, run_reference, error);
}
