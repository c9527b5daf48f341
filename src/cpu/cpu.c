/* SPDX-License-Identifier: MIT
 *
 * The variant `cpu`: prepare and tiling. It comes from the reference (reference.c) in these steps.
 *
 * 1. The border leaves the inner loop. The image is cut into tiles, and each input row of a tile is copied once, with
 *    its halo and what stands outside the image (tiles.c).
 * 2. The taps become a program for several rows of outputs at once, without the taps that are 0 (program.c). The inner
 *    loop walks the program once for a block of outputs, whose sums stay in vector registers (loops.c).
 * 3. One instruction multiplies and adds 2 or 4 taps in 32 bits, where the machine has it. Taps that do not fit in 16
 *    or 8 bits are split into parts. Small sums have 16 bits (narrow.h), and large dense filters take fewer
 *    multiply-adds than they have taps (fast_fir.h).
 * 4. A separable filter has two passes. The first applies the row to each input row and leaves its sums in a ring. The
 *    second applies the column to that ring. A filter in two passes has rounded rows of sums. For samples of 16 bits,
 *    its row pass splits taps into digits, and its column pass sums in doubles.
 * 5. A filter of two grids has two passes over the same rows. Their rows of sums are then joined to outputs.
 * 6. Samples of 16 bits are read as words less 32768. 32 bits hold their sums up to sum|q| = 32767. Beyond that, every
 *    sum has two parts, which are joined in doubles: the sums of the samples' high and low bytes or, with two passes,
 *    of the high and low halves of the first pass's sums.
 * 7. Narrow planes become wide ones, and taps that reach far beyond small planes are joined (thin.c).
 * 8. Boxes of few taps and the identity do not need planes: their columns are the pixels' samples (cpu_takes_pixels).
 *
 * Threads take the tiles. loops.c is compiled once for each instruction set, and the fastest one that the machine has
 * is chosen at run time (base/vector/instruction_sets.h). */
#include "cpu/cpu.h"

#include "base/parallel.h"
#include "cpu/thin.h"
#include "cpu/tiles.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREAD_WORK = 1 << 22,        /* multiply-adds, about 0.1 ms; a thread that does less is not worth its start */
    PAST_CACHES_BYTES = 16 << 20, /* output that is larger is not in a cache when it is read again */
};

/* Should outputs be written past the caches? Only if they are too many to be found in a cache later, and aligned to
 * whole vectors. Tiles begin at multiples of BLOCK_MAX samples. */
static bool goes_past_caches(const struct plane *out)
{
    return out->plane_bytes * (size_t)out->count >= PAST_CACHES_BYTES &&
           ((uintptr_t)out->data | out->row_bytes | (out->count > 1 ? out->plane_bytes : 0)) % SCRATCH_ALIGNMENT == 0;
}

static bool report_no_plan_memory(const struct plan *plan, struct error *error)
{
    return error_no_memory(error, "the filter %s", plan->filter->name);
}

static void release_program(void *prepared)
{
    program_free(prepared);
}

static const struct loops *const all_loops[INSTRUCTION_SETS] = LOOPS_BY_SET(loops, avx512, vnni, i8mm);

bool cpu_prepare(struct plan *plan, struct device *device, struct error *error)
{
    (void)device;
    enum instruction_set set;
    if (!instruction_set_find(&set, error))
        return false;
    if (plan->prepared != NULL)
        return true;
    plan->prepared = program_make(plan, all_loops[set]);
    if (plan->prepared == NULL)
        return report_no_plan_memory(plan, error);
    plan->release = release_program;
    return true;
}

static bool run_tiles(const struct plan *plan, const struct plane *from, const struct plane *to, struct error *error)
{
    const struct program *program = plan->prepared;
    const int step = plane_step(from);
    struct plane flat_in = *from, flat_out = *to; /* pixels become samples of one plane */
    flat_in.width = flat_out.width *= step;
    flat_in.count = flat_out.count /= step;
    const struct plane *in = &flat_in, *out = &flat_out;
    struct tiling tiling = {
        .plan = plan,
        .program = from->is_together ? program->pixels : program,
        .in = in,
        .out = out,
        .step = step,
        .first_row = plan->last_row > 0 ? plan->first_row : 0,
        .last_row = plan->last_row > 0 ? plan->last_row : in->height,
        .past_caches = goes_past_caches(out),
    };
    assert(tiling.program != NULL);
    const double work = (double)in->width * in->height * in->count * filter_multiply_adds(plan->filter);
    int threads = thread_pool_threads(plan->pool);
    threads = work / THREAD_WORK < threads ? (int)(work / THREAD_WORK) + 1 : threads;
    tiles_choose(&tiling, threads);
    const int64_t tiles = tiles_count(&tiling);
    threads = tiles < threads ? (int)tiles : threads;
    tiling.scratch = aligned_alloc(SCRATCH_ALIGNMENT, (size_t)threads * tiling.scratch_bytes);
    if (tiling.scratch == NULL)
        return report_no_plan_memory(plan, error);
    /* Vectors read a little beyond a row, where the taps are 0. These bytes must be initialised. */
    memset(tiling.scratch, 0, (size_t)threads * tiling.scratch_bytes);
    parallel_for(plan->pool, threads, tiles, tile_convolve, &tiling);
    free(tiling.scratch);
    return true;
}

bool cpu_launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                struct error *error)
{
    (void)device;
    return in->is_together ? run_tiles(plan, in, out, error) : thin_launch(plan, in, out, run_tiles, error);
}
