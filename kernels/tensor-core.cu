/* SPDX-License-Identifier: MIT
 *
 * tensor-core: the work of src/cpu/ on the GPU, for any filter: planes of uint8_t and uint16_t by the integer matrix
 * units, exactly, and planes of float by those of halves, with no larger error than sums of float have.
 *
 * The sum over a row of taps is a product with a band matrix. For outputs 0 to 7, side by side, and taps a to i:
 *
 *                           output 0 1 2 3 4 5 6 7
 *                                  a . . . . . . .   sample 0
 *                                  b a . . . . . .          1
 *                                  c b a . . . . .          2
 *     (samples 0 to 15)     x      . . .                           =   (shares of the sums of outputs 0 to 7)
 *                                  i h g f e d c b          8
 *                                  . i h g f e d c          9
 *                                  . . .
 *                                  . . . . . . . i          15
 *
 * The rows of one operand are many such chunks, and the other operand is the band matrix. The accumulators, 32-bit
 * integers, add up the sums over all rows of taps. Samples are u8, taps s8. A filter with larger taps is cut into parts
 * of -128 to 127 (plan/parts.h): q = q0 + 256 q1 + 256^2 q2 + 256^3 q3. Sums of parts may wrap; the whole, modulo 2^32,
 * does not. Samples of uint16_t are cut into their bytes.
 *
 * There are six kernels. A 9 x 9 filter in a window of 16 does 144 multiply-adds, 81 of them useful, and one read
 * of shared memory for 128 samples. So memory is the bound:
 *
 *     tensor-walk.cuh    small filters: taps and rows in registers
 *     tensor-passes.cuh  larger ones of rank 1, up to 33 taps a side: two products, one after the other
 *     tensor-wide.cuh    other larger ones on compute capability 9.0: both operands in shared memory
 *     tensor-group.cuh   all others, and other chips
 *     tensor-16.cuh      samples of uint16_t
 *     tensor-float.cuh   large filters on samples of float, on compute capability 9.0
 *
 * Which of them exist depends on the loaded code, not on the chip. Code for 7.5 that runs on 9.0 has neither
 * tensor_passes nor tensor_wide nor tensor_float.
 *
 * Loads: each sample once from memory, except for the halo of a strip. Up to 9 x 9, the arithmetic is far below the
 * units' rate, so the cost of rounding matters: one multiplication and half a clamping conversion per output
 * (tensor_make_quick).
 *
 * Limits: none. But register-tiled does what is too large for shared memory, and floats without tensor_float. */
#include "kernels/tensor-core/arrange.h"
#include "kernels/tensor-core/tensor-16.cuh"
#include "kernels/tensor-core/tensor-float.cuh"
#include "kernels/tensor-core/tensor-group.cuh"
#include "kernels/tensor-core/tensor-passes.cuh"
#include "kernels/tensor-core/tensor-walk.cuh"
#include "kernels/tensor-core/tensor-wide.cuh"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static_assert(FILTER_MAX_SUM < 127ll << 24, "four parts of int8 hold every tap");

static void arrange(const struct plan *plan, const struct device *device, struct tensor_arrangement *a)
{
    const struct device_info *info = device_get_info(device);
    if (plan->sample == SAMPLE_F32)
        tensor_arrange_float(plan->filter, info->code_capability == 90 ? info->block_shared : 0, a);
    else if (plan->sample == SAMPLE_U16)
        tensor_arrange_16(plan->filter, a);
    else
        tensor_arrange(plan->filter, info->code_capability >= 80, info->code_has_wgmma, a);
}

/* Byte BYTE of a word of taps: part PART of the tap in filter row I for output N of a chunk, over sample SAMPLE of the
 * chunk's window. */
static uint32_t tap_byte(const struct filter *f, const struct tensor_arrangement *a, int part, int i, int sample, int n,
                         int byte)
{
    const int j = sample - a->lead - n + f->anchor_x;
    if (i < 0 || i >= f->height || j < 0 || j >= f->width)
        return 0;
    return (uint32_t)(uint8_t)tap_part((int64_t)f->taps[i * f->width + j] * a->factor, part, 8) << 8 * byte;
}

/* The taps over samples 4 WORD to 4 WORD + 3. */
static uint32_t taps_over(const struct filter *f, const struct tensor_arrangement *a, int part, int i, int word, int n)
{
    uint32_t value = 0;
    for (int e = 0; e < 4; e++)
        value |= tap_byte(f, a, part, i, 4 * word + e, n, e);
    return value;
}

/* The taps over samples 2 T, 2 T + 1, 8 + 2 T and 9 + 2 T of those from FIRST on; or, if PACKED, the first two of row I
 * and of the next one. */
static uint32_t word16(const struct filter *f, const struct tensor_arrangement *a, int part, int i, int first, int t,
                       bool packed, int n)
{
    uint32_t value = 0;
    for (int e = 0; e < 4; e++)
        value |= tap_byte(f, a, part, i + (packed ? e / 2 : 0), first + 2 * t + e % 2 + (packed ? 0 : e / 2 * 8), n, e);
    return value;
}

/* ---- The table of taps of one part, as a kernel reads it ---- */

/* Each function returns the end of the table. */

static uint32_t *fill_walk(const struct filter *f, const struct tensor_arrangement *a, int part, uint32_t *to)
{
    for (int lower = 0; lower < 2; lower++)
        for (int i = 0; i < a->height + 1; i++)
            for (int lane = 0; lane < 32; lane++)
                *to++ = taps_over(f, a, part, i - lower, lane % 4, lane / 4);
    for (int k = 0; k < 4; k++) /* after the last part */
        to[k] = f->absolute ? 0 : (uint32_t)a->bias;
    return to;
}

static uint32_t *fill_wide(const struct filter *f, const struct tensor_arrangement *a, int part, uint32_t *to)
{
    for (int k = 0; k < a->terms * term_bytes / 4; k++) {
        /* A term is two units of 64 rows of 4 words. Units go through the windows of all rows of samples, row after
         * row. */
        const int unit = k / 256, m = k % 256 / 4, word = k % 4;
        const int row = unit / a->units, at = unit % a->units;
        /* matrix row m: output row m / 16, output x of the chunk; a lane has rows g and g + 8, which are outputs 2 g
         * and 2 g + 1 */
        *to++ = taps_over(f, a, part, row - m / 16, 4 * at + word, m % 8 * 2 + m / 8 % 2);
    }
    return to;
}

/* All parts of the band matrix of VECTOR, whose first output has its first tap over term LEAD of the window. Terms and
 * outputs have the order that tensor-passes.cuh explains; with OF_ROWS, that of the samples. */
static uint32_t *fill_band(const int32_t *vector, int count, int factor, int lead, bool of_rows,
                           const struct tensor_arrangement *a, uint32_t *to)
{
    /* The blocks of an even window. With three blocks, also the two blocks of an odd window that are an operand, and
     * the last one of an even window. */
    static const int blocks[] = {0, 1, 1, 2, 2};
    for (int part = a->parts - 1; part >= 0; part--)
        for (int k = 0; k < pass_words(a->window); k++)
            for (int lane = 0; lane < 32; lane++) {
                const int t = lane % 4, m = lane / 4, below = k % 2;
                /* Rows m and m + 8 of the matrix are outputs that lane m / 2 has side by side in the end. */
                const int output = of_rows ? m / 2 * 4 + 2 * below + m % 2 : m + 8 * below;
                uint32_t word = 0;
                for (int e = 0; e < 4; e++) {
                    const int term = 16 * blocks[k / 2] + (of_rows ? 4 * t + e : 2 * t + e % 2 + 8 * (e / 2));
                    const int at = term - lead - output;
                    if (at < 0 || at >= count)
                        continue;
                    const int64_t q = (int64_t)vector[at] * factor;
                    word |= (uint32_t)(uint8_t)(a->unsigned_taps ? q : tap_part(q, part, 8)) << 8 * e;
                }
                *to++ = word;
            }
    return to;
}

static uint32_t *fill_passes(const struct filter *f, const struct tensor_arrangement *a, uint32_t *to)
{
    to = fill_band(f->row, f->width, 1, a->lead - f->anchor_x, true, a, to);
    to = fill_band(f->column, f->height, a->factor, 0, false, a, to);
    for (int k = 0; k < 4; k++)
        *to++ = a->start;
    *to++ = 256;
    return to;
}

/* Words FIRST to FIRST + COUNT - 1 of all lanes. */
static uint32_t *put_lanes(uint32_t *to, const uint32_t (*lanes)[32], int first, int count)
{
    for (int lane = 0; lane < 32; lane++)
        for (int k = 0; k < count; k++)
            *to++ = lanes[first + k][lane];
    return to;
}

static uint32_t *fill_group(const struct filter *f, const struct tensor_arrangement *a, int part, uint32_t *to)
{
    const int words = 2 * a->full + a->packed;
    const bool is_16_bit = a->kernel == TENSOR_16;
    for (int block = 0; block < a->blocks; block++)
        for (int k = 0; k < a->height; k++) {
            const int i = k / 2 * 2 - k % 2; /* 0, -1, 2, 1, 4, 3: even outputs, odd outputs */
            const int word = block * (4 * a->full + 2 * a->packed);
            uint32_t lanes[5][32];
            for (int lane = 0; lane < 32; lane++) {
                const int t = lane % 4, n = lane / 4;
                for (int q = 0; q < 2 * a->full; q++)
                    lanes[q][lane] = is_16_bit ? word16(f, a, part, i + q % 2, 4 * word + 16 * (q / 2), t, false, n)
                                               : taps_over(f, a, part, i + q % 2, word + 4 * (q / 2) + t, n);
                if (a->packed)
                    lanes[2 * a->full][lane] = is_16_bit
                                                   ? word16(f, a, part, i, 4 * (word + 4 * a->full), t, true, n)
                                                   : taps_over(f, a, part, i + t / 2, word + 4 * a->full + t % 2, n);
            }
            int at = 0;
            if (words >= 4)
                to = put_lanes(to, lanes, 0, 4), at = 4;
            if (words % 4 >= 2)
                to = put_lanes(to, lanes, at, 2), at += 2;
            if (words % 2)
                to = put_lanes(to, lanes, at, 1);
        }
    return to;
}

/* Cells of q / 512, so that each q is a half's size; the unit of these; then q / D for sums of float. */
static uint32_t *fill_float(const struct filter *f, const struct tensor_arrangement *a, uint32_t *to)
{
    auto tap = [&](int i, int j) {
        return i < 0 || i >= f->height || j < 0 || j >= f->width ? 0 : (float)f->taps[i * f->width + j] / 512;
    };
    for (int k = 0; k < a->height / 2 * a->blocks * 32; k++, to += 4) {
        /* The lane has terms 2 t and 2 t + 1 of both rows, for output n: row n / 2, column n % 2. */
        const int t = k % 4, n = k % 32 / 4, block = k / 32;
        const int i = block / a->blocks * 2 - n / 2, j = block % a->blocks * 8 + 2 * t - n % 2;
        for (int row = 0; row < 2; row++)
            split_pair(tap(i + row, j), tap(i + row, j + 1), to[row], to[2 + row]);
    }
    for (int k = -1; k < f->width * f->height; k++, to++) {
        const float plain = (float)((k < 0 ? 512 : f->taps[k]) / (double)f->scale);
        memcpy(to, &plain, sizeof plain);
    }
    return to;
}

static size_t table_bytes(const struct filter *f, const struct tensor_arrangement *a)
{
    switch (a->kernel) {
    case TENSOR_WALK: /* and the bias four times */
        return ((size_t)a->parts * 2 * (a->height + 1) * 32 + 4) * 4;
    case TENSOR_PASSES: /* and where row sums start four times, and 256 */
        return ((size_t)2 * a->parts * pass_words(a->window) * 32 + 5) * 4;
    case TENSOR_WIDE:
        return (size_t)a->parts * a->terms * term_bytes;
    case TENSOR_FLOAT:
        return (size_t)4 * (a->height / 2 * a->blocks * 32 * 4 + 1 + f->width * f->height);
    default: /* and the words that the last step fetches ahead */
        return ((size_t)a->parts * a->blocks * a->height + 2) * (2 * a->full + a->packed) * 32 * 4;
    }
}

typedef void tensor_function(struct tensor_launch);

/* The kernel for a filter of HEIGHT rows, which is odd. */
template <int PARTS, int LEVEL, int LARGEST = walk_height>
static tensor_function *walk_of_height(int height)
{
    if constexpr (LARGEST > 1)
        if (height < LARGEST)
            return walk_of_height<PARTS, LEVEL, LARGEST - 2>(height);
    return tensor_walk<LARGEST, PARTS, LEVEL>;
}

template <int LARGEST = float_blocks>
static tensor_function *float_kernel(int blocks)
{
    if constexpr (LARGEST > float_blocks_min)
        if (blocks < LARGEST)
            return float_kernel<LARGEST - 1>(blocks);
    return tensor_float<LARGEST>;
}

template <int LEVEL>
static tensor_function *quick_kernel(const struct tensor_arrangement *a)
{
    if (a->kernel == TENSOR_WIDE)
        return a->units == 2 ? tensor_wide<2, LEVEL> : tensor_wide<3, LEVEL>;
    return a->parts == 1 ? walk_of_height<1, LEVEL>(a->height) : walk_of_height<2, LEVEL>(a->height);
}

template <int BLOCKS, int LEVEL>
static tensor_function *passes_kernel(const struct tensor_arrangement *a)
{
    if (a->planes == 2)
        return tensor_passes<BLOCKS, 2, 1, int8_t, LEVEL>;
    if (a->parts == 2)
        return tensor_passes<BLOCKS, 3, 2, int8_t, LEVEL>;
    return a->unsigned_taps ? tensor_passes<BLOCKS, 3, 1, uint8_t, LEVEL> : tensor_passes<BLOCKS, 3, 1, int8_t, LEVEL>;
}

template <int BLOCKS>
static tensor_function *passes_of_level(const struct tensor_arrangement *a)
{
    return a->level == LEVEL_SHIFT   ? passes_kernel<BLOCKS, LEVEL_SHIFT>(a)
           : a->level == LEVEL_SCALE ? passes_kernel<BLOCKS, LEVEL_SCALE>(a)
                                     : passes_kernel<BLOCKS, LEVEL_ANY>(a);
}

template <int FULL, int PACKED>
static tensor_function *group_kernel(const struct tensor_arrangement *a)
{
    if (a->kernel == TENSOR_GROUP)
        return tensor_group<FULL, PACKED>;
    return a->quick ? tensor_16<FULL, PACKED, true> : tensor_16<FULL, PACKED, false>;
}

static tensor_function *tensor_kernel(const struct tensor_arrangement *a)
{
    if (a->kernel == TENSOR_PASSES)
        return a->window == 2 ? passes_of_level<2>(a) : passes_of_level<3>(a);
    if (a->kernel == TENSOR_FLOAT)
        return float_kernel(a->blocks);
    if (a->kernel != TENSOR_GROUP && a->kernel != TENSOR_16)
        return a->level == LEVEL_ABSOLUTE ? quick_kernel<LEVEL_ABSOLUTE>(a)
               : a->level == LEVEL_SCALE  ? quick_kernel<LEVEL_SCALE>(a)
                                          : quick_kernel<LEVEL_SCALE_SHIFT>(a);
    return a->full == 1 ? a->packed ? group_kernel<1, 1>(a) : group_kernel<1, 0>(a)
           : a->packed ? group_kernel<2, 1>(a)
                        : group_kernel<2, 0>(a);
}

/* How a kernel is launched. A strip is MIN to LONGEST units of UNIT rows, less TRIM, so that it is whole stages with
 * its halo; each costs as much as START rows more. */
struct shape {
    int tile_width, unit, trim, min, longest, start;
    int tiles_a_block;
    int resident; /* tiles of a multiprocessor at one time, about */
    dim3 block;
    size_t shared;
};

static struct shape choose_shape(const struct plan *plan, const struct device *device,
                                 const struct tensor_arrangement *a, struct tensor_launch *tensor)
{
    const struct filter *f = plan->filter;
    if (a->kernel == TENSOR_WALK) {
        const int rows = walk_rows(a->height);
        struct shape shape = {walk_columns, rows, a->height - 1, 2, walk_strip(a->height), a->height};
        shape.tiles_a_block = warps;
        shape.resident = 4 * warps;
        shape.block = dim3(32, warps);
        shape.shared = (size_t)warps * walk_stages(a->height) * rows * walk_pitch;
        return shape;
    }
    if (a->kernel == TENSOR_PASSES) {
        tensor->first = (int)a->first;
        struct shape shape = {pass_columns, pass_rows, 16 * (a->window - 1), 2, pass_strip, pass_rows};
        shape.tiles_a_block = 1;
        shape.resident = pass_resident(a->planes, a->parts);
        shape.block = dim3(32 * pass_warps);
        shape.shared = (size_t)pass_shared(a->window);
        return shape;
    }
    if (a->kernel == TENSOR_WIDE) {
        const int rows = wide_stage(a->units);
        tensor->terms = a->terms;
        tensor->slots = wide_slots(a->units, f->height);
        struct shape shape = {wide_columns, rows, 0, 1, wide_strip / rows, f->height + wide_ahead * rows};
        shape.tiles_a_block = shape.resident = 1;
        shape.block = dim3(128 * wide_groups(a->units));
        shape.shared = wide_shared(a, f->height);
        return shape;
    }
    tensor->blocks = a->blocks;
    tensor->steps = a->height / 2;
    if (a->kernel == TENSOR_FLOAT) {
        struct shape shape = {float_columns, float_rows, 0, 1, 1, 1, 1, 2, dim3(float_threads), a->shared};
        return shape;
    }
    /* The stages under a group's rows, with its window; and two that are being loaded. */
    const bool is_16_bit = a->kernel == TENSOR_16;
    const int rows = is_16_bit ? rows16 : group, window = a->blocks * (16 * a->full + 8 * a->packed);
    if (is_16_bit) {
        tensor->pitch = 2 * (tile_columns - chunk + window);
        tensor->slots = (a->height + 2 + rows16 - 1) / rows16 + 2;
    } else {
        tensor->before = (a->lead + 15) / 16 * 16;
        tensor->pitch = (tensor->before - a->lead + tile_columns - chunk + window + 15) / 16 * 16;
        tensor->slots = (group + a->height + 1 + group - 1) / group + 2; /* it reads a pair of rows more */
    }
    const size_t ring = (size_t)tensor->slots * rows * tensor->pitch;
    /* Two blocks should share a multiprocessor even if the filter is large. The chip also has a limit per block. */
    const size_t block_shared = device_get_info(device)->block_shared, max = 100 * 1024;
    int count = warps;
    while (count > 1 && count * ring > (block_shared < max ? block_shared : max))
        count /= 2;
    struct shape shape = {tile_columns, rows, 0, 1, (is_16_bit ? strip16 : group_strip) / rows, f->height};
    shape.tiles_a_block = count;
    shape.resident = (is_16_bit ? resident16(a->full) : 4) * count;
    shape.block = dim3(32, (unsigned)count);
    shape.shared = count * ring;
    return shape;
}

/* Is there no kernel, or not enough shared memory for one warp's ring? Compute capability 7.5 has 64 KB, where samples
 * of uint16_t take about 110 x 110 taps at most. Then register-tiled filters, with the same bytes. */
static bool is_for_registers(const struct plan *plan, const struct device *device, const struct tensor_arrangement *a)
{
    struct tensor_launch tensor;
    return a->kernel == TENSOR_NONE || (a->kernel == TENSOR_16 && choose_shape(plan, device, a, &tensor).shared >
                                                                      device_get_info(device)->block_shared);
}

extern "C" bool register_tiled_prepare(struct plan *plan, struct device *device, struct error *error);
extern "C" bool register_tiled_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                      const struct plane *out, struct error *error);

extern "C" bool tensor_core_prepare(struct plan *plan, struct device *device, struct error *error)
{
    struct tensor_arrangement a;
    arrange(plan, device, &a);
    if (is_for_registers(plan, device, &a))
        return register_tiled_prepare(plan, device, error);
    uint32_t *table = (uint32_t *)calloc(1, table_bytes(plan->filter, &a)), *to = table;
    if (!table)
        return error_no_memory(error, "the taps of %s", plan->filter->name);
    if (a.kernel == TENSOR_PASSES)
        fill_passes(plan->filter, &a, to);
    else if (a.kernel == TENSOR_FLOAT)
        fill_float(plan->filter, &a, to);
    else
        for (int part = a.parts - 1; part >= 0; part--)
            to = a.kernel == TENSOR_WALK   ? fill_walk(plan->filter, &a, part, to)
                 : a.kernel == TENSOR_WIDE ? fill_wide(plan->filter, &a, part, to)
                                           : fill_group(plan->filter, &a, part, to);
    const bool done = upload_table(device, table, table_bytes(plan->filter, &a), error);
    free(table);
    return done;
}

/* Choose the strip with the least total time: the waves of resident tiles, times the time of a tile. From four waves on
 * they overlap, so their number need not be whole. */
static void choose_strip(const struct shape &shape, const struct device *device, const struct plane *in,
                         struct tensor_launch *tensor)
{
    const double resident = (double)device_get_info(device)->multiprocessors * shape.resident;
    const int columns = (in->width + shape.tile_width - 1) / shape.tile_width;
    double best = 0;
    for (int units = shape.longest; units >= shape.min; units--) {
        const int strip = units * shape.unit - shape.trim, tiles_y = (in->height + strip - 1) / strip;
        const double waves = (double)columns * tiles_y * in->count / resident;
        const double cost = (waves < 4 ? ceil(waves) : waves) * (strip + shape.start);
        if (best == 0 || cost < best) {
            best = cost;
            tensor->strip = strip;
            tensor->tiles_y = tiles_y;
        }
    }
    tensor->columns = columns;
    tensor->tiles = columns * tensor->tiles_y * in->count;
}

/* Multiprocessors are not equally fast, and most of them are idle during the last tiles. So if there are several waves,
 * the lower rows of the image are in shorter strips, which come last. */
static void shorten_last_strips(const struct shape &shape, const struct device *device, const struct plane *in,
                                struct tensor_launch *tensor)
{
    const double waves = (double)tensor->tiles / (device_get_info(device)->multiprocessors * shape.resident);
    tensor->planes = in->count;
    if (waves < 3)
        return;
    tensor->short_strip = pass_short * shape.unit - shape.trim;
    tensor->tiles_y = (int)(in->height * (1 - pass_share) / tensor->strip);
    const int left = in->height - tensor->tiles_y * tensor->strip;
    tensor->short_y = (left + tensor->short_strip - 1) / tensor->short_strip;
    tensor->tiles = tensor->columns * (tensor->tiles_y + tensor->short_y) * in->count;
}

extern "C" bool tensor_core_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                   const struct plane *out, struct error *error)
{
    struct tensor_arrangement a;
    arrange(plan, device, &a);
    if (is_for_registers(plan, device, &a))
        return register_tiled_launch(plan, device, in, out, error);
    struct tensor_launch tensor;
    memset(&tensor, 0, sizeof tensor);
    tensor.launch = make_launch(plan, in, out);
    tensor.table = (const uint32_t *)device_table(device);
    tensor.parts = a.parts;
    tensor.lead = a.lead;
    tensor.quick = a.quick;
    tensor.bias = a.bias;
    tensor.multiplier = a.multiplier;
    tensor.shift = a.shift;
    const struct shape shape = choose_shape(plan, device, &a, &tensor);

    choose_strip(shape, device, in, &tensor);
    if (a.kernel == TENSOR_PASSES)
        shorten_last_strips(shape, device, in, &tensor);
    tensor_function *const kernel = tensor_kernel(&a);
    if (a.kernel == TENSOR_FLOAT) /* two blocks of a multiprocessor need nearly all of what L1 could have */
        CUDA_TRY(cudaFuncSetAttribute((const void *)kernel, cudaFuncAttributePreferredSharedMemoryCarveout, 100),
                 error);
    return launch_blocks(kernel, tensor, (tensor.tiles + shape.tiles_a_block - 1) / shape.tiles_a_block, shape.block,
                         shape.shared, plan->filter->name, device, error);
}
