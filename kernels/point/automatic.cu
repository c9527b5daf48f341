/* SPDX-License-Identifier: MIT
 *
 * The curves of auto-levels and auto-contrast, which follow from the levels of the picture: the work of find_ranges and
 * point_tables_stretch (src/cpu/point.c, src/plan/point.c) on the GPU. One kernel counts the levels of all colours. One
 * block then finds the ranges, and fills the tables. Nobody waits.
 *
 * Levels of 8 bits are counted in shared memory, and each block adds its counts to those in device memory. Others are
 * counted there at once. */
#include "kernels/point/automatic.h"
#include "kernels/shared/conv.cuh"

namespace
{
constexpr int threads = 256, colours_max = 3;
constexpr int rows = 16; /* rows that a block counts */

typedef unsigned long long count; /* a uint64_t, in the type that atomicAdd takes */

template <typename T>
__device__ __forceinline__ int find_level(T sample)
{
    if constexpr (sizeof(T) == 4)
        return point_float_level(sample);
    else
        return sample;
}

template <typename T>
__global__ void __launch_bounds__(threads) count_levels(const struct launch launch, count *counts)
{
    __shared__ uint32_t own[sizeof(T) == 1 ? threads : 1];
    const int first = (int)blockIdx.x * rows, last = min(first + rows, launch.height), c = (int)blockIdx.y;
    count *to = counts + (size_t)c * (sizeof(T) == 1 ? 256 : 65536);
    own[sizeof(T) == 1 ? threadIdx.x : 0] = 0;
    __syncthreads();
    for (int y = first; y < last; y++) {
        const T *row = (const T *)(launch.in + c * launch.in_plane + (size_t)y * launch.in_row);
        for (int x = (int)threadIdx.x; x < launch.width; x += threads) {
            const int level = find_level<T>(row[x]);
            if constexpr (sizeof(T) == 1)
                atomicAdd(&own[level], 1u); /* a block has fewer than 2^32 samples */
            else if (level >= 0)
                atomicAdd(&to[level], (count)1);
        }
    }
    __syncthreads();
    if (sizeof(T) == 1 && own[threadIdx.x % (sizeof(T) == 1 ? threads : 1)] > 0)
        atomicAdd(&to[threadIdx.x], (count)own[threadIdx.x % (sizeof(T) == 1 ? threads : 1)]);
}

/* The level at which the samples from one end on are more than CUT: from below, or from above. SUMS are those of
 * parts of SIZE levels; the counts of a level are those of COLOURS channels. */
__device__ int find_end(const count *sums, const count *counts, int levels, int colours, count cut, bool from_above)
{
    const int size = levels / threads;
    count seen = 0;
    int part = 0, i = 0;
    while (part < threads - 1 && seen + sums[from_above ? threads - 1 - part : part] <= cut)
        seen += sums[from_above ? threads - 1 - part++ : part++];
    for (; i < size - 1; i++) {
        const int level = part * size + i, at = from_above ? levels - 1 - level : level;
        for (int c = 0; c < colours; c++)
            seen += counts[(size_t)c * levels + at];
        if (seen > cut)
            break;
    }
    return from_above ? levels - 1 - part * size - i : part * size + i;
}

/* Make the tables FROM the plan's, in TO. */
template <typename T>
__global__ void __launch_bounds__(threads) stretch(const struct point_tables *from, const count *counts, int colours,
                                                   bool joins, struct share clip, struct point_tables *to)
{
    constexpr int levels = sizeof(T) == 1 ? 256 : 65536, size = levels / threads;
    __shared__ count sums[threads], all;
    __shared__ int ends[2];
    for (int c = 0; c < colours_max; c++) {
        const int taken = joins ? colours : 1; /* channels whose levels count */
        const count *own = counts + (joins || c >= colours ? 0 : (size_t)c * levels);
        count sum = 0;
        for (int k = 0; k < taken; k++)
            for (int i = 0; i < size; i++)
                sum += own[(size_t)k * levels + threadIdx.x * size + i];
        sums[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            all = 0;
            for (int i = 0; i < threads; i++)
                all += sums[i];
        }
        __syncthreads();
        if (threadIdx.x < 2)
            ends[threadIdx.x] =
                find_end(sums, own, levels, taken, all * (count)clip.numerator / (count)clip.denominator, threadIdx.x);
        __syncthreads();
        const struct point_range range = {ends[0], ends[1]};
        T *table = (T *)to->levels + (size_t)c * levels;
        for (int i = (int)threadIdx.x; i < levels; i += threads)
            table[i] = (T)point_stretch(range, i, levels - 1);
        __syncthreads(); /* before the next channel's sums */
    }
    if (threadIdx.x == 0) {
        memcpy((void *)to, from, offsetof(struct point_tables, levels));
        for (int c = 0; c < colours_max; c++)
            to->table_of[c] = c;
        to->tables = colours_max;
    }
}

template <typename S, typename T>
bool queue_both(const struct plan *plan, struct device *device, const struct plane *in, count *counts,
                struct point_tables *tables, struct error *error)
{
    const int colours = in->count > 2 ? colours_max : 1;
    const dim3 grid((unsigned)((in->height + rows - 1) / rows), (unsigned)colours);
    const struct point *point = &plan->filter->point;
    return queue_kernel(count_levels<S>, grid, threads, 0, device, error, planes_launch(in, in), counts) &&
           queue_kernel(stretch<T>, dim3(1), threads, 0, device, error,
                        (const struct point_tables *)device_table(device), (const count *)counts, colours,
                        point->automatic == AUTOMATIC_ALL, point->clip, tables);
}
} // namespace

bool automatic_tables(const struct plan *plan, struct device *device, const struct plane *in,
                      const struct point_tables **tables, struct error *error)
{
    const size_t levels = in->sample == SAMPLE_U8 ? 256 : 65536, counts = colours_max * levels * sizeof(count);
    void *scratch;
    if (!device_scratch(device, counts + sizeof(struct point_tables) + colours_max * levels * 2, &scratch, error) ||
        !device_fill(device, scratch, 0, counts, error))
        return false;
    struct point_tables *made = (struct point_tables *)((char *)scratch + counts);
    *tables = made;
    return in->sample == SAMPLE_U8    ? queue_both<uint8_t, uint8_t>(plan, device, in, (count *)scratch, made, error)
           : in->sample == SAMPLE_U16 ? queue_both<uint16_t, uint16_t>(plan, device, in, (count *)scratch, made, error)
                                      : queue_both<float, uint16_t>(plan, device, in, (count *)scratch, made, error);
}
