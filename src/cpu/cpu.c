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
#include "cpu/tiles.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARALLEL_WORK = 1 << 18,      /* multiply-adds below which waking threads costs more than it saves */
    PAST_CACHES_BYTES = 16 << 20, /* of output that no later pass finds in a cache */
};

/* Is the output too large to be found in a cache by who reads it, and laid out for stores past the caches? Tiles begin
 * at multiples of BLOCK_MAX samples. */
static bool goes_past_caches(const struct plane *out)
{
    return out->plane_bytes * (size_t)out->count >= PAST_CACHES_BYTES &&
           ((uintptr_t)out->data | out->row_bytes | (out->count > 1 ? out->plane_bytes : 0)) % SCRATCH_ALIGNMENT == 0;
}

static bool no_memory(const struct plan *plan, struct error *error)
{
    return error_set(error, ERROR_WORK, "not enough memory for the filter %s; close other programs or lower --threads",
                     plan->filter->name);
}

static void release_program(void *prepared)
{
    program_free(prepared);
}

bool cpu_prepare(struct plan *plan, struct device *device, struct error *error)
{
    (void)device;
    const struct loops *loops = loops_find(error);
    if (plan->prepared != NULL || loops == NULL)
        return loops != NULL;
    plan->prepared = program_make(plan, loops);
    if (plan->prepared == NULL)
        return no_memory(plan, error);
    plan->release = release_program;
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
    tiles_choose(&launch, threads);
    const int64_t tiles = (int64_t)launch.tiles_x * launch.tiles_y * in->count;
    threads = tiles < threads ? (int)tiles : threads;
    launch.scratch = aligned_alloc(SCRATCH_ALIGNMENT, (size_t)threads * launch.scratch_bytes);
    if (launch.scratch == NULL)
        return no_memory(plan, error);
    /* Vectors reach a little beyond a row, with taps of 0: let nothing stand there that nobody wrote. */
    memset(launch.scratch, 0, (size_t)threads * launch.scratch_bytes);
    parallel_for(threads, tiles, tile_convolve, &launch);
    free(launch.scratch);
    return true;
}
