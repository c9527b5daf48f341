/* SPDX-License-Identifier: MIT
 *
 * passes: the work of src/cpu/ on the GPU, for planes of float and filters in two passes, of any number of taps.
 *
 *     planes             sums, transposed              outputs
 *     x ->               y ->                          x ->
 *     +-----------+      +-------+                     +-----------+
 *   y |  |        | ---> |  ---  |  x     --->       y |   ---     |
 *     |  v        |      |       |                     |           |
 *     +-----------+      +-------+                     +-----------+
 *
 * One kernel runs twice. It sums down columns, because then the lanes of a warp read samples side by side, and
 * writes its outputs transposed, so that the second launch also sums down columns, which are rows of the planes. (The
 * column comes first here. The order makes no difference but that of rounded sums.)
 *
 * A lane has a column, and 16 outputs of it below each other. The samples that they share are in registers: for 16 taps
 * it loads as many samples, and multiplies each tap with 16 of them. So a load serves 16 multiply-adds, and the bound
 * is arithmetic: one multiply-add for each tap and sample. The outputs of a block are transposed in shared memory, so
 * that those of a warp are stored side by side. How samples are stored, and whether the border gives some of them,
 * decides branches that all lanes of a warp take alike, once for 256 multiply-adds. So there is one kernel for all.
 *
 * No sum is a difference of others, as in running-sums. So a sample that is infinite, no number, or much larger than
 * its neighbours, changes the outputs that it belongs to, and no others.
 *
 * An unsharp mask with a threshold looks at all planes of a pixel, and so takes a third launch over the blur.
 *
 * Limits: planes of float; filters in two passes. */
#include "base/round.h"
#include "image/stored.h"
#include "kernels/shared/conv.cuh"

#include <math.h>

namespace
{
constexpr int rows = 16;                  /* outputs of a lane, and taps of a step */
constexpr int warp = 32, warps = 8;       /* lanes, and warps of a block below each other */
constexpr int tile_height = rows * warps; /* outputs of a block */
constexpr size_t row_alignment = 128;     /* bytes, of planes */

/* One of the two launches. */
struct pass_call {
    const unsigned char *in, *image; /* what it reads, and for an unsharp mask the planes before the filter */
    unsigned char *out;
    size_t in_row, in_plane, image_row, image_plane, out_row, out_plane; /* strides in bytes */
    enum storage in_stored, image_stored, out_stored;
    int width, height; /* samples of a row and of a column of IN */
    int tiles_x;
    enum border border;
    int anchor, count; /* the number of the tap over the output; the number of taps */
    const float *taps; /* COUNT taps, in device memory */
    float amount;      /* the amount of the unsharp mask; 0 if the filter is a blur */
};

/* A sample of 16 bits from its bits, and its bits. */
__device__ __forceinline__ float small_value(uint16_t bits, enum storage stored)
{
    return stored == STORED_HALF ? half_value(bits) : bfloat16_value(bits);
}

__device__ __forceinline__ uint16_t small_of(float value, enum storage stored)
{
    return stored == STORED_HALF ? half_of(value) : bfloat16_of(value);
}

/* The sample in column X of a row. */
__device__ __forceinline__ float sample_at(const unsigned char *row, int x, enum storage stored)
{
    return stored == STORED_FLOAT ? ((const float *)row)[x] : small_value(((const uint16_t *)row)[x], stored);
}

__device__ __forceinline__ void write_at(unsigned char *row, int x, enum storage stored, float value)
{
    if (stored == STORED_FLOAT)
        ((float *)row)[x] = value;
    else
        ((uint16_t *)row)[x] = small_of(value, stored);
}

/* ROWS samples of column X from row Y on. IS_INSIDE: all are rows of the planes. Otherwise each lane finds what the
 * border gives for one row, and tells the others. All lanes of a warp call this. */
__device__ __forceinline__ void load_rows(const struct pass_call &call, const unsigned char *in, int x, int y,
                                          bool is_inside, float (&sample)[rows])
{
    const unsigned char *row = in + (ptrdiff_t)y * (ptrdiff_t)call.in_row;
    if (!is_inside) {
        const int own = border_index(y + (int)threadIdx.x, call.height, call.border);
#pragma unroll
        for (int r = 0; r < rows; r++) {
            const int from = __shfl_sync(~0u, own, r);
            sample[r] = from < 0 ? 0 : sample_at(in + (size_t)from * call.in_row, x, call.in_stored);
        }
    } else if (call.in_stored == STORED_FLOAT) {
#pragma unroll
        for (int r = 0; r < rows; r++, row += call.in_row)
            sample[r] = ((const float *)row)[x];
    } else {
#pragma unroll
        for (int r = 0; r < rows; r++, row += call.in_row)
            sample[r] = small_value(((const uint16_t *)row)[x], call.in_stored);
    }
}

/* Add up to COUNT TAPS, times the samples of LOW and HIGH: over tap i, output r has sample r + i. */
template <bool IS_WHOLE>
__device__ __forceinline__ void add_taps(float (&sum)[rows], const float (&low)[rows], const float (&high)[rows],
                                         const float *taps, int count)
{
#pragma unroll
    for (int i = 0; i < rows; i++) {
        if (!IS_WHOLE && i >= count)
            break;
        const float tap = taps[i];
#pragma unroll
        for (int r = 0; r < rows; r++)
            sum[r] += tap * (r + i < rows ? low[(r + i) % rows] : high[(r + i) % rows]);
    }
}

/* The sums of a lane's outputs in column X. Y is the row of the first sample under the first of TAPS. */
__device__ __forceinline__ void sum_column(const struct pass_call &call, const unsigned char *in, int x, int y,
                                           const float *taps, float (&sum)[rows])
{
    /* Up to 2 ROWS samples after those of the last tap's output are read, too, and may be outside. */
    const bool is_inside = y >= 0 && y + call.count + 2 * rows <= call.height;
    float low[rows], high[rows];
    int left = call.count;
    load_rows(call, in, x, y, is_inside, low);
    load_rows(call, in, x, y += rows, is_inside, high);
    for (; left >= 2 * rows; left -= 2 * rows, taps += 2 * rows) {
        add_taps<true>(sum, low, high, taps, rows);
        load_rows(call, in, x, y += rows, is_inside, low);
        add_taps<true>(sum, high, low, taps + rows, rows);
        load_rows(call, in, x, y += rows, is_inside, high);
    }
    for (; left > 0; left -= rows, taps += rows) {
        add_taps<false>(sum, low, high, taps, left);
#pragma unroll
        for (int r = 0; r < rows; r++)
            low[r] = high[r];
        if (left > rows)
            load_rows(call, in, x, y += rows, is_inside, high);
    }
}

__global__ void __launch_bounds__(warp *warps, 3) sum_columns(const __grid_constant__ struct pass_call call)
{
    extern __shared__ float4 memory[];
    float *const taps = (float *)memory;
    __shared__ float sums[warp][tile_height + 1]; /* one more, so that lanes use all banks */
    const int lane = (int)threadIdx.x, first = (int)threadIdx.y * rows;
    const int tile_x = (int)blockIdx.x % call.tiles_x * warp, tile_y = (int)blockIdx.x / call.tiles_x * tile_height;
    for (int i = (int)threadIdx.y * warp + lane; i < call.count; i += warp * warps)
        taps[i] = call.taps[i];
    __syncthreads();
    if (tile_y + first < call.height) {
        float sum[rows] = {};
        const int x = min(tile_x + lane, call.width - 1);
        sum_column(call, call.in + blockIdx.z * call.in_plane, x, tile_y + first - call.anchor, taps, sum);
#pragma unroll
        for (int r = 0; r < rows; r++)
            sums[lane][first + r] = sum[r];
    }
    __syncthreads();

    /* Column x is row x of the transposed planes. */
    for (int i = (int)threadIdx.y; i < warp && tile_x + i < call.width; i += warps) {
        const size_t row = (size_t)(tile_x + i);
        const unsigned char *image = call.image + blockIdx.z * call.image_plane + row * call.image_row;
        unsigned char *out = call.out + blockIdx.z * call.out_plane + row * call.out_row;
#pragma unroll
        for (int k = lane; k < tile_height; k += warp) {
            float value = sums[i][k];
            if (tile_y + k >= call.height)
                break;
            if (call.amount != 0) {
                const float sample = sample_at(image, tile_y + k, call.image_stored);
                value = sample + call.amount * (sample - value);
            }
            write_at(out, tile_y + k, call.out_stored, value);
        }
    }
}

/* OUT has the blur of IN. Let it have the unsharp mask, at each pixel where a plane has enough detail. */
__global__ void __launch_bounds__(warp *warps) mask_detail(struct launch launch, enum storage in_stored,
                                                           enum storage stored, int planes, float amount, float least)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * warp + (int)threadIdx.x, y = tile.y * warps + (int)threadIdx.y;
    if (x >= launch.width || y >= launch.height)
        return;
    const unsigned char *in = launch.in + (size_t)y * launch.in_row;
    unsigned char *out = launch.out + (size_t)y * launch.out_row;
    bool has_detail = false;
#pragma unroll 1
    for (int i = 0; i < planes; i++)
        has_detail |= fabsf(sample_at(in + i * launch.in_plane, x, in_stored) -
                            sample_at(out + i * launch.out_plane, x, stored)) >= least;
#pragma unroll 1
    for (int i = 0; i < planes; i++) {
        const float sample = sample_at(in + i * launch.in_plane, x, in_stored);
        unsigned char *to = out + i * launch.out_plane;
        const float detail = sample - sample_at(to, x, stored);
        write_at(to, x, stored, has_detail ? sample + amount * detail : sample);
    }
}

/* Queue the launch over the columns of IN: of the planes, or of their sums, where IMAGE has the planes. */
bool queue_pass(const struct plan *plan, const struct plane *in, const struct plane *out, const struct plane *image,
                float amount, struct device *device, struct error *error)
{
    const struct filter *filter = plan->filter;
    const bool is_second = image != NULL;
    struct pass_call call = {};
    set_planes(&call, in, out);
    call.in_stored = in->stored;
    call.out_stored = out->stored;
    call.width = in->width;
    call.height = in->height;
    call.tiles_x = (in->width + warp - 1) / warp;
    call.border = plan->border;
    call.anchor = is_second ? filter->anchor_x : filter->anchor_y;
    call.count = is_second ? filter->width : filter->height;
    call.taps = (const float *)device_table(device) + (is_second ? filter->height : 0);
    if (is_second) {
        call.image = (const unsigned char *)image->data;
        call.image_row = image->row_bytes;
        call.image_plane = image->plane_bytes;
        call.image_stored = image->stored;
        call.amount = amount;
    }
    const int tiles_y = (in->height + tile_height - 1) / tile_height;
    const dim3 grid((unsigned)call.tiles_x * (unsigned)tiles_y, 1, (unsigned)in->count);
    /* The compiler loads four taps of a step at a time, also some that it does not use. */
    const size_t shared = round_up((size_t)call.count, rows) * sizeof(float);
    return queue_kernel(sum_columns, grid, dim3(warp, warps), shared, device, error, call);
}
} // namespace

/* The taps of the column, then of the row. Constant memory would be too slow: warps read them at different times. */
extern "C" bool passes_prepare(struct plan *plan, struct device *device, struct error *error)
{
    const struct filter *filter = plan->filter;
    float taps[2 * FILTER_PASS_MAX];
    for (int i = 0; i < filter->height; i++)
        taps[i] = (float)(filter->column[i] / (double)filter->pass_scale);
    for (int j = 0; j < filter->width; j++)
        taps[filter->height + j] = (float)ldexp(filter->row[j], -filter->row_shift);
    return upload_table(device, taps, (size_t)(filter->height + filter->width) * sizeof *taps, error);
}

extern "C" bool passes_launch(const struct plan *plan, struct device *device, const struct plane *in,
                              const struct plane *out, struct error *error)
{
    const struct filter *filter = plan->filter;
    const float amount = (float)filter->amount / (1 << UNSHARP_AMOUNT_BITS);
    const float least = (float)(ldexp(filter->threshold, -UNSHARP_LEVEL_BITS) / 65535); /* a threshold for 16 bits */
    struct plane sums = {};
    sums.width = in->height;
    sums.height = in->width;
    sums.count = in->count;
    sums.row_bytes = round_up((size_t)sums.width * sizeof(float), row_alignment);
    sums.plane_bytes = sums.row_bytes * (size_t)sums.height;
    return device_scratch(device, sums.plane_bytes * (size_t)sums.count, &sums.data, error) &&
           queue_pass(plan, in, &sums, NULL, 0, device, error) &&
           queue_pass(plan, &sums, out, in, least > 0 ? 0 : amount, device, error) &&
           (!(least > 0) ||
            launch_kernel(mask_detail, planes_launch(in, out), 1, device, {warp, warps, dim3(warp, warps)}, error,
                          in->stored, out->stored, in->count, amount, least));
}
