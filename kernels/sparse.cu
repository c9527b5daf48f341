/* SPDX-License-Identifier: MIT
 *
 * sparse: the work of src/cpu/ on the GPU, with only the taps that are not zero, as a list in constant memory: shifts
 * with weights, Laplacians, emboss, motion lines, outlines. A thread has the sums of 4 columns of 8 rows (float: 4
 * rows) in registers. For each tap, it adds samples of the input at the tap's offset:
 *
 *     taps        list               4 outputs under one tap of uint8_t: two aligned words have their samples,
 *     . 3 .       (-1, 0, 3)         and are shifted to them:
 *     . . .       ( 1, 1, 2)                       |....|.abc|d...|
 *     . . 2                                           low  high
 *
 * Taps over the same two words of a row follow each other in the list and share the loads. Each of the 4 bytes is
 * multiplied in place: dp2a multiplies two neighbouring bytes by two 16-bit weights, one of which is 0. Taps beyond 16
 * bits need separate bytes. With float, the columns of a thread are 32 apart, so that the loads of a warp are side by
 * side, wherever they start.
 *
 * Loads: at most 2 words for 4 outputs and a tap (uint8_t), or 4 words (float). Multiply-adds: one for each tap that is
 * not zero, so one for each loaded sample. L1 answers nearly all loads, and is as busy as the arithmetic.
 *
 * Sums: int32 for planes of uint8_t, without conversions; the canonical bytes.
 *
 * Limits: SPARSE_MAX taps that are not zero. It is fast if these are few. With many of them, the variants that keep a
 * window of samples in registers are faster, because they load each sample once for many taps. */
#include "kernels/shared/quads.cuh"

static constexpr int columns = 4;                   /* outputs of a thread side by side */
static constexpr int byte_rows = 8, float_rows = 4; /* and one above the other: 16 loads in flight per tap */
static constexpr int threads_x = 32, threads_y = 4; /* small blocks: 5 of them fit the registers of a multiprocessor */
static constexpr int tile_width = threads_x * columns;

/* One tap: its offset from the output and its weight, which is q for planes of uint8_t and q / D for planes of float.
 * It is read as one word of 8 bytes. */
struct alignas(8) tap {
    int8_t y, word_x; /* word_x: its column, rounded down to a multiple of 4 */
    uint8_t rest_x;   /* the rest of its column, 0 to 3 */
    uint8_t fresh;    /* bits */
    uint32_t weight;
};

enum { FRESH = 1, BOTH = 2 }; /* the words are not those of the tap before; the taps of these words need both */

static_assert(FILTER_MAX <= 127, "offsets from -126 to 126, rounded down to multiples of 4, are from -128 to 124");
static_assert(sizeof(struct tap) * SPARSE_MAX <= 65536, "constant memory is 64 KB a module");

static __constant__ uint2 taps[SPARSE_MAX]; /* struct tap */

static __device__ __forceinline__ struct tap read_tap(int i)
{
    const uint2 words = taps[i];
    struct tap tap;
    memcpy(&tap, &words, sizeof tap);
    return tap;
}

/* The word at columns x to x + 3 of row Y. Some columns, and the row, may be outside the image. Not inlined, and called
 * with values, because few threads need it and the others are faster without it. */
static __device__ __noinline__ uint32_t word_outside(const unsigned char *plane, size_t row_bytes, int width,
                                                     int height, enum border border, int y, int x)
{
    const int from_y = border_index(y, height, border);
    uint32_t word = 0;
    for (int k = 0; k < 4; k++) {
        const int from_x = border_index(x + k, width, border);
        if (from_x >= 0 && from_y >= 0)
            word |= (uint32_t)plane[from_y * row_bytes + from_x] << 8 * k;
    }
    return word;
}

static __device__ __noinline__ float sample_outside(const unsigned char *plane, size_t row_bytes, int width, int height,
                                                    enum border border, int y, int x)
{
    const int from_y = border_index(y, height, border), from_x = border_index(x, width, border);
    return from_y < 0 || from_x < 0 ? 0.0f : ((const float *)(plane + from_y * row_bytes))[from_x];
}

static __device__ __forceinline__ uint32_t load_word(const struct launch &launch, int y, int x)
{
    if (y >= 0 && y < launch.height && x >= 0 && x + 4 <= launch.width)
        return *(const uint32_t *)(in_row<uint8_t>(launch, y) + x);
    return word_outside(in_row<uint8_t>(launch, 0), launch.in_row, launch.width, launch.height, launch.border, y, x);
}

static __device__ __forceinline__ float load_sample(const struct launch &launch, int y, int x)
{
    if (y >= 0 && y < launch.height && x >= 0 && x < launch.width)
        return in_row<float>(launch, y)[x];
    return sample_outside(in_row<unsigned char>(launch, 0), launch.in_row, launch.width, launch.height, launch.border,
                          y, x);
}

/* Add the samples of WORD times WEIGHT to 4 sums. If WIDE, the weight may not fit in 16 bits. */
template <bool WIDE>
static __device__ __forceinline__ void add(int (&sum)[columns], uint32_t word, uint32_t weight)
{
    if (WIDE) {
#pragma unroll
        for (int c = 0; c < columns; c++)
            sum[c] += (int)weight * byte_as<int>(word, c);
    } else {
        const uint32_t first = weight & 0xffff, second = weight << 16;
        sum[0] = dot_lower(first, word, sum[0]);
        sum[1] = dot_lower(second, word, sum[1]);
        sum[2] = dot_upper(first, word, sum[2]);
        sum[3] = dot_upper(second, word, sum[3]);
    }
}

/* If GUARDED, some of the samples may be outside the image. */
template <bool WIDE, bool GUARDED>
static __device__ __forceinline__ void sum_words(const struct launch &launch, int count, int y, int x,
                                                 int (&sum)[byte_rows][columns])
{
    const unsigned char *from = in_row<unsigned char>(launch, y) + x;
    uint32_t low[byte_rows] = {}, high[byte_rows] = {};
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const struct tap tap = read_tap(i);
        const unsigned char *row = from + ((ptrdiff_t)tap.y * (ptrdiff_t)launch.in_row + tap.word_x);
        if (tap.fresh & FRESH) {
            const bool both = tap.fresh & BOTH;
#pragma unroll
            for (int k = 0; k < byte_rows; k++, row += launch.in_row) {
                low[k] = GUARDED ? load_word(launch, y + k + tap.y, x + tap.word_x) : *(const uint32_t *)row;
                if (both)
                    high[k] =
                        GUARDED ? load_word(launch, y + k + tap.y, x + tap.word_x + 4) : *(const uint32_t *)(row + 4);
            }
        }
#pragma unroll
        for (int k = 0; k < byte_rows; k++)
            add<WIDE>(sum[k], __funnelshift_r(low[k], high[k], 8u * tap.rest_x), tap.weight);
    }
}

/* Is every sample that the taps read for the warp's outputs inside the image? Words are rounded outwards. */
static __device__ __forceinline__ bool warp_inside(const struct launch &launch, int y, int warp_x, int rows)
{
    constexpr int reach = 3 + 4; /* samples of a word beyond its first one, and the next word */
    const int right = launch.filter_width - 1 - launch.anchor_x, below = launch.filter_height - 1 - launch.anchor_y;
    return warp_x - launch.anchor_x - 3 >= 0 && warp_x + tile_width - columns + right + reach < launch.width &&
           y - launch.anchor_y >= 0 && y + rows - 1 + below < launch.height;
}

template <bool WIDE>
static __global__ void __launch_bounds__(threads_x *threads_y) sparse_bytes(struct launch launch, int count)
{
    const int2 tile = block_tile(launch);
    const int warp_x = tile.x * tile_width, x = warp_x + (int)threadIdx.x * columns;
    const int y = (tile.y * threads_y + (int)threadIdx.y) * byte_rows;
    if (x >= launch.width || y >= launch.height)
        return;
    int sum[byte_rows][columns] = {};
    if (warp_inside(launch, y, warp_x, byte_rows))
        sum_words<WIDE, false>(launch, count, y, x, sum);
    else
        sum_words<WIDE, true>(launch, count, y, x, sum);
#pragma unroll
    for (int k = 0; k < byte_rows; k++)
        if (y + k < launch.height)
            store_quad<uint8_t>(launch, y + k, x, sum[k]);
}

template <bool GUARDED>
static __device__ __forceinline__ void sum_samples(const struct launch &launch, int count, int y, int x,
                                                   float (&sum)[float_rows][columns])
{
    const float *from = in_row<float>(launch, y) + x;
    const size_t step = launch.in_row / sizeof(float);
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const struct tap tap = read_tap(i);
        const int tap_x = tap.word_x + tap.rest_x;
        const float *row = from + ((ptrdiff_t)tap.y * (ptrdiff_t)step + tap_x);
        const float weight = __uint_as_float(tap.weight);
#pragma unroll
        for (int k = 0; k < float_rows; k++)
#pragma unroll
            for (int c = 0; c < columns; c++)
                sum[k][c] += weight * (GUARDED ? load_sample(launch, y + k + tap.y, x + threads_x * c + tap_x)
                                               : row[k * step + threads_x * c]);
    }
}

static __global__ void __launch_bounds__(threads_x *threads_y) sparse_floats(struct launch launch, int count)
{
    const int2 tile = block_tile(launch);
    const int warp_x = tile.x * tile_width, x = warp_x + (int)threadIdx.x;
    const int y = (tile.y * threads_y + (int)threadIdx.y) * float_rows;
    if (x >= launch.width || y >= launch.height)
        return;
    float sum[float_rows][columns] = {};
    if (warp_inside(launch, y, warp_x, float_rows))
        sum_samples<false>(launch, count, y, x, sum);
    else
        sum_samples<true>(launch, count, y, x, sum);
#pragma unroll
    for (int k = 0; k < float_rows; k++)
#pragma unroll
        for (int c = 0; c < columns; c++)
            if (y + k < launch.height && x + threads_x * c < launch.width)
                finish(launch, sum[k][c], out_row<float>(launch, y + k) + x + threads_x * c);
}

extern "C" bool sparse_prepare(struct plan *plan, struct device *device, struct error *error)
{
    const struct filter *filter = plan->filter;
    struct tap list[SPARSE_MAX];
    struct tap *first = NULL; /* the first of the taps over one pair of words */
    int count = 0;
    for (int i = 0; i < filter->width * filter->height; i++) {
        if (filter->taps[i] == 0)
            continue;
        const int y = i / filter->width - filter->anchor_y, x = i % filter->width - filter->anchor_x;
        struct tap *tap = &list[count++];
        tap->y = (int8_t)y;
        tap->word_x = (int8_t)(x & -4);
        tap->rest_x = (uint8_t)(x & 3);
        tap->fresh = 0;
        if (first == NULL || first->y != tap->y || first->word_x != tap->word_x) {
            first = tap;
            first->fresh = FRESH;
        }
        if (tap->rest_x != 0)
            first->fresh |= BOTH;
        const float weight = (float)((double)filter->taps[i] / filter->scale);
        if (plan->sample == SAMPLE_F32)
            memcpy(&tap->weight, &weight, sizeof weight);
        else
            tap->weight = (uint32_t)filter->taps[i];
    }
    return upload_words(device, taps, list, count * (int)(sizeof *list / 4), error);
}

extern "C" bool sparse_launch(const struct plan *plan, struct device *device, const struct plane *in,
                              const struct plane *out, struct error *error)
{
    void (*const kernel)(struct launch, int) = plan->sample == SAMPLE_F32       ? sparse_floats
                                               : plan->largest_tap <= INT16_MAX ? sparse_bytes<false>
                                                                                : sparse_bytes<true>;
    const int rows = plan->sample == SAMPLE_F32 ? float_rows : byte_rows;
    return launch_kernel(kernel, make_launch(plan, in, out), in->count, device,
                         {tile_width, threads_y * rows, dim3(threads_x, threads_y)}, error, plan->tap_count);
}
