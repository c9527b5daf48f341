/* SPDX-License-Identifier: MIT
 *
 * running-sums: the work of src/cpu/ on the GPU, for boxes of up to 1701 x 1701 taps. The time hardly depends on the
 * size of the box. Samples are uint8_t or uint16_t.
 *
 *     rows y - r - 1 to y + r            columns, one row at a time
 *     - - - - - - -   subtract           column[x]  = sum of 2 r + 1 samples
 *     . . . . . . .                      before[x]  = column[0] + ... + column[x - 1]
 *     . . . y . . .                      sum(x)     = before[x + r + 1] - before[x - r]
 *     + + + + + + +   add
 *
 * A block walks down a tile. A thread has 8 columns side by side, and their sums of 2 r + 1 rows. To go down by a row,
 * it adds the samples of one row and subtracts those of another. The sums along a row are differences of prefix sums:
 * of the thread's columns, then of its warp, then of the block. They go to shared memory, because other threads read
 * them. Some rows are worked on at a time, so that the block waits for all its threads only twice for these.
 *
 * Numbers: before[] of uint8_t wraps around at 2^32. The differences do not: they are below 2^31 (filter/generate.c).
 * Those of uint16_t have 64 bits.
 *
 * Loads: the tile and its halo twice; the rows to subtract come from L2. Per sample, two additions to a column, two for
 * the prefix, one write to shared memory, two reads, one difference, and the rounding.
 *
 * Limits: filters whose taps are all 1. */
#include "kernels/shared/copies.cuh"
#include "kernels/shared/instructions.cuh"
#include "kernels/shared/lanes.cuh"
#include "kernels/shared/tile.cuh"

#include <type_traits>

static constexpr int eight = 8;                           /* columns of a thread */
static constexpr int padded = eight + 1;                  /* entries for them: threads side by side use all banks */
static constexpr int threads_min = 64, threads_max = 512; /* threads of a block */
static constexpr int warps_max = threads_max / 32;
static_assert(warps_max == 16, "half a warp adds up the sums of all warps");

/* Rows that are worked on at a time: 16 bytes of prefix sums for both types, which are an entry of shared memory. */
template <typename T>
constexpr int batch = 4 / (int)sizeof(T);

template <typename T>
using prefix = typename std::conditional<sizeof(T) == 1, uint32_t, uint64_t>::type;

/* The samples of a thread in a row. */
template <typename T>
using words = uint32_t[eight * sizeof(T) / 4];

/* The argument of the kernel. */
struct running_call {
    struct launch launch;
    int strip;            /* output rows of a tile */
    int columns, tiles_y; /* tiles side by side, and one below the other */
    int tile_width;       /* outputs; a multiple of 8 */
    int lead;             /* columns from the first of the block to its first output, a multiple of 8 */
    int low[eight];       /* the entries of before[x - r] for a thread's outputs, from its first entry on */
    int high[eight];      /* and those of before[x + r + 1] */
};

/* Add the samples of WORDS to the thread's columns, or subtract them. */
template <int SIGN>
static __device__ __forceinline__ void add_samples(uint32_t (&column)[eight], const uint32_t (&word)[2])
{
#pragma unroll
    for (int k = 0; k < eight; k++)
        add_products(column[k], word[k / 4], (SIGN & 255) << 8 * (k % 4));
}

template <int SIGN>
static __device__ __forceinline__ void add_samples(uint32_t (&column)[eight], const uint32_t (&word)[4])
{
#pragma unroll
    for (int k = 0; k < eight; k++)
        column[k] += (uint32_t)SIGN * (k % 2 == 0 ? word[k / 2] & 65535 : word[k / 2] >> 16);
}

/* Load eight samples inside the image. */
static __device__ __forceinline__ void load_samples(const unsigned char *from, uint32_t (&word)[2])
{
    const uint2 two = __ldg((const uint2 *)from);
    word[0] = two.x, word[1] = two.y;
}

static __device__ __forceinline__ void load_samples(const unsigned char *from, uint32_t (&word)[4])
{
    const uint4 four = __ldg((const uint4 *)from);
    word[0] = four.x, word[1] = four.y, word[2] = four.z, word[3] = four.w;
}

/* Load samples of any row Y. FROM are the samples in row 0. If some columns are outside the image, INDEX has those that
 * the border gives for them, THREADS words apart, and FROM is the plane. Not inlined, because few rows need it. */
template <typename T>
static __device__ __noinline__ uint4 load_any(const unsigned char *from, size_t in_row, int height, enum border border,
                                              int y, const int *index, int threads)
{
    words<T> word = {};
    const int from_y = border_index(y, height, border);
    const unsigned char *const row = from + (size_t)max(from_y, 0) * in_row;
    if (from_y >= 0 && index == NULL)
        load_samples(row, word);
    else
#pragma unroll
        for (int k = 0; k < eight && from_y >= 0; k++) {
            const int x = index[k * threads];
            word[k * sizeof(T) / 4] |= (x < 0 ? 0u : (uint32_t)((const T *)row)[x]) << 8 * (k * sizeof(T) % 4);
        }
    if constexpr (sizeof(T) == 1)
        return make_uint4(word[0], word[1], 0, 0);
    else
        return make_uint4(word[0], word[1], word[2], word[3]);
}

/* Loads the thread's samples of rows. */
template <typename T>
struct row_reader {
    const struct launch &launch;
    const unsigned char *from;
    const int *index;

    /* The samples of COUNT rows from row Y on. */
    template <int COUNT>
    __device__ __forceinline__ void read(int y, words<T> (&word)[COUNT]) const
    {
        if (index == NULL && y >= 0 && y <= launch.height - COUNT) {
            const unsigned char *row = from + (size_t)y * launch.in_row;
#pragma unroll
            for (int k = 0; k < COUNT; k++, row += launch.in_row)
                load_samples(row, word[k]);
            return;
        }
#pragma unroll
        for (int k = 0; k < COUNT; k++) {
            const uint4 four =
                load_any<T>(from, launch.in_row, launch.height, launch.border, y + k, index, (int)blockDim.x);
            word[k][0] = four.x, word[k][1] = four.y;
            if constexpr (sizeof(T) == 2)
                word[k][2] = four.z, word[k][3] = four.w;
        }
    }
};

/* An output from its sum: rounding_apply without the absolute value, because no sum is negative, and without
 * `wide`. */
static __device__ __forceinline__ uint32_t level_of(const struct launch &launch, uint32_t sum)
{
    const struct rounding &r = launch.rounding;
    const uint32_t t = (uint32_t)min(max((int)sum, r.low), r.high) + (uint32_t)(uint64_t)r.bias;
    return __umulhi(t, r.multiplier) >> r.shift;
}

static __device__ __forceinline__ uint32_t level_of(const struct launch &launch, uint64_t sum)
{
    const struct rounding16 rounding = rounding16_of(launch);
    return rounding16_apply(&rounding, (double)sum);
}

static __device__ __forceinline__ uint32_t pack_levels(const uint32_t (&level)[4])
{
    return __byte_perm(__byte_perm(level[0], level[1], 0x0040), __byte_perm(level[2], level[3], 0x0040), 0x5410);
}

static __device__ __forceinline__ uint32_t pack_levels(const uint32_t (&level)[2])
{
    return level[0] | level[1] << 16;
}

/* Store the outputs of a thread in a row. Only the first LEFT are inside the image. */
template <typename T>
static __device__ __forceinline__ void store_outputs(T *to, const words<T> &word, int left)
{
    if (left >= eight) {
        if constexpr (sizeof(T) == 1)
            *(uint2 *)to = make_uint2(word[0], word[1]);
        else
            *(uint4 *)to = make_uint4(word[0], word[1], word[2], word[3]);
        return;
    }
#pragma unroll
    for (int k = 0; k < eight; k++)
        if (k < left)
            to[k] = (T)(word[k * sizeof(T) / 4] >> 8 * (k * sizeof(T) % 4));
}

/* An entry of shared memory: the prefix sums of a column, for all rows that are worked on. */
template <typename T>
union entry {
    uint4 four;
    prefix<T> sum[batch<T>];
};

template <typename T>
static __global__ void __launch_bounds__(threads_max, 2) running_sums(const __grid_constant__ struct running_call call)
{
    using P = prefix<T>;
    constexpr int rows = batch<T>;
    extern __shared__ uint4 memory[];
    const struct launch &launch = call.launch;
    const int threads = (int)blockDim.x, thread = (int)threadIdx.x, lane = thread % 32, warp = thread / 32;
    const struct tile tile = find_tile(call, (int)blockIdx.x, call.tile_width);
    uint4 *const before = memory + padded * thread;
    P *const totals = (P *)(memory + padded * threads);
    int *const index = (int *)(totals + rows * warps_max) + thread;

    const int x = tile.x - call.lead + eight * thread;
    const bool is_inside = x >= 0 && x + eight <= launch.width;
    if (!is_inside)
        for (int k = 0; k < eight; k++)
            index[k * threads] = border_index(x + k, launch.width, launch.border);
    const row_reader<T> reader = {launch, tile.in + (is_inside ? x * (ptrdiff_t)sizeof(T) : 0),
                                  is_inside ? NULL : index};

    uint32_t column[eight] = {};
    const int first = tile.y - launch.anchor_y - 1; /* the row to subtract for the first outputs */
    int y = first;
#pragma unroll 1
    for (; y + eight <= first + launch.filter_height; y += eight) {
        words<T> word[eight];
        reader.read(y, word);
#pragma unroll
        for (int k = 0; k < eight; k++)
            add_samples<1>(column, word[k]);
    }
#pragma unroll 1
    for (; y < first + launch.filter_height; y++) {
        words<T> word[1];
        reader.read(y, word);
        add_samples<1>(column, word[0]);
    }

    const int to_x = tile.x + eight * thread, left = launch.width - to_x;
    unsigned char *to = tile.out + (size_t)tile.y * launch.out_row + to_x * sizeof(T);
#pragma unroll 1
    for (y = 0; y < tile.rows; y += rows) {
        words<T> added[rows], subtracted[rows];
        reader.read(first + y + launch.filter_height, added);
        reader.read(first + y, subtracted);
        uint32_t part[rows][eight]; /* the thread's part of before[]: below 8 * 2^27 */
        P start[rows];
#pragma unroll
        for (int r = 0; r < rows; r++) {
            add_samples<1>(column, added[r]);
            add_samples<-1>(column, subtracted[r]);
            uint32_t sum = 0;
#pragma unroll
            for (int k = 0; k < eight; k++) {
                part[r][k] = sum;
                sum += column[k];
            }
            const P whole = sum_up_to_lane((P)sum);
            start[r] = whole - sum;
            if (lane == 31)
                totals[r * warps_max + warp] = whole;
        }
        __syncthreads();
        /* The warps before this one. Half a warp adds up a row. */
#pragma unroll
        for (int r = 0; r < rows; r += 2) {
            const P all = sum_up_to_lane<16>(lane % 16 < threads / 32 ? totals[r * warps_max + lane] : 0);
            const P upper = __shfl_sync(~0u, all, warp - 1), lower = __shfl_sync(~0u, all, warp + 15);
            start[r] += warp > 0 ? upper : 0;
            start[r + 1] += warp > 0 ? lower : 0;
        }
#pragma unroll
        for (int k = 0; k < eight; k++) {
            union entry<T> entry;
#pragma unroll
            for (int r = 0; r < rows; r++)
                entry.sum[r] = start[r] + part[r][k];
            before[k] = entry.four;
        }
        __syncthreads();

        if (eight * thread < call.tile_width && left > 0) {
            constexpr int samples = 4 / (int)sizeof(T); /* samples of a word */
            words<T> out[rows];
#pragma unroll
            for (int k = 0; k < eight; k += samples) {
                uint32_t level[rows][samples];
#pragma unroll
                for (int i = 0; i < samples; i++) {
                    union entry<T> low, high;
                    low.four = before[call.low[k + i]];
                    high.four = before[call.high[k + i]];
#pragma unroll
                    for (int r = 0; r < rows; r++)
                        level[r][i] = level_of(launch, high.sum[r] - low.sum[r]);
                }
#pragma unroll
                for (int r = 0; r < rows; r++)
                    out[r][k / samples] = pack_levels(level[r]);
            }
#pragma unroll
            for (int r = 0; r < rows; r++)
                if (y + r < tile.rows)
                    store_outputs((T *)(to + r * launch.out_row), out[r], left);
        }
        to += rows * launch.out_row;
    }
}

extern "C" bool running_sums_prepare(struct plan *, struct device *, struct error *)
{
    return true; /* the sides of the box are parameters of the kernel */
}

/* Choose the threads of a block, and with them the width of a tile. Fewer threads wait less for each other, and more
 * share one halo: by measurement, blocks of 512 take 1.3 times as long for a sample as blocks of 128. Returns the
 * threads. */
static int choose_tile(struct running_call *call, const struct filter *f, int width)
{
    int best = 0;
    double best_cost = 0;
    call->lead = (f->anchor_x + eight - 1) / eight * eight;
    const int low = call->lead - f->anchor_x, high = low + f->width;
    for (int k = 0; k < eight; k++) {
        call->low[k] = low + k + (low + k) / eight; /* an entry is left out after each eight */
        call->high[k] = high + k + (high + k) / eight;
    }
    for (int threads = threads_min; threads <= threads_max; threads *= 2) {
        const int tile_width = (eight * threads - call->lead - high) / eight * eight;
        if (tile_width <= 0)
            continue;
        const int columns = (width + tile_width - 1) / tile_width;
        const double cost = (double)columns * threads * (1 + threads / 1024.0);
        if (best == 0 || cost < best_cost) {
            best = threads;
            best_cost = cost;
            call->tile_width = tile_width;
            call->columns = columns;
        }
    }
    return best;
}

extern "C" bool running_sums_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                    const struct plane *out, struct error *error)
{
    const struct device_info *info = device_get_info(device);
    const bool is_16_bit = plan->sample == SAMPLE_U16;
    struct running_call call = {};
    call.launch = make_launch(plan, in, out);
    const int threads = choose_tile(&call, plan->filter, in->width);
    const size_t shared = (size_t)threads * (padded * sizeof(uint4) + eight * sizeof(int)) + warps_max * sizeof(uint4);
    choose_strip(&call, in, 4, plan->filter->height / 8 + 8, (double)info->multiprocessors * 1024 / threads);
    return launch_blocks(is_16_bit ? running_sums<uint16_t> : running_sums<uint8_t>, call,
                         call.columns * call.tiles_y * in->count, dim3((unsigned)threads), shared, plan->filter->name,
                         device, error);
}
