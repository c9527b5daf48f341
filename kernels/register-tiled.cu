/* SPDX-License-Identifier: MIT
 *
 * register-tiled: the work of src/cpu/ on the GPU, for any filter. Each lane keeps the sums of many neighbouring
 * outputs in registers. Its warp walks down a strip, and each lane computes 4 columns of it (strip.cuh has a drawing).
 * The taps are operands of the multiply-adds, from registers or from the constant bank.
 *
 * Loads: a warp copies each row of its strip once from memory to its ring, and a lane reads 1 + 2 ceil((fw - 1) / 8)
 * quads of it for 4 outputs (fw is odd, and quads start at multiples of 4). For 9 x 9, these are 3 loads, and basic has
 * 648. Multiply-adds: fw fh per output, the minimum unless the taps have a structure that helps; halo rows are added
 * only to sums of outputs that exist. Planes of uint8_t cost 2 more instructions per sample read and 3.75 per output,
 * none of them a conversion (quads.cuh). The rate of multiply-adds is the bound, because no warp waits at a barrier.
 *
 * Measured, 9 x 9 of 16384 x 16384 on an NVIDIA H200: uint8_t 1.02 ms (7.6 copies), float 0.893 ms (1.8 copies)
 *
 * Sums: float for planes of float, and for uint8_t if sum|q| * 255 < 2^24. There, float sums are exact, and float
 * multiply-adds have twice the rate of integer ones. Otherwise int32. In both cases the bytes are the canonical ones.
 * For uint16_t, sums are floats if floats hold the whole sums. Otherwise the two bytes are summed separately, each as
 * uint8_t is, with twice the multiply-adds.
 *
 * Limits: none. Square filters of 3 to 15 taps with the anchor in the centre have their own kernels (for uint16_t, 3 to
 * 9 taps with float sums). All others use the kernel in register-any.cuh: a lane has 16 x 4 outputs and loads taps as
 * it needs them. */
#include "kernels/shared/register-any.cuh"

static constexpr int largest_square = 15; /* with a kernel of its own */
static constexpr int largest_square16 = 9;

static __constant__ uint32_t taps[largest_square * largest_square];

/* Rows in a step of the loop: two, unless the instructions of two exceed the instruction cache. */
template <typename Sum>
static __host__ __device__ constexpr int step_rows_of(int size)
{
    return size <= (sizeof(Sum) == 8 ? 7 : 9) ? 2 : 1;
}

/* Taps of 9 x 9 that are in registers. The other 45 fit into the uniform registers, so the loop loads no taps. Larger
 * filters have too many taps, smaller ones wait for memory, and sums of halves leave no registers. */
template <typename Sum>
static __host__ __device__ constexpr int register_tap_count(int size)
{
    return size == 9 && sizeof(Sum) == 4 ? 36 : 0;
}

/* Blocks that the registers of a multiprocessor must hold. */
template <typename Sum>
static __host__ __device__ constexpr int tiled_blocks(int size)
{
    if (sizeof(Sum) == 8)
        return size == 3 ? 6 : size == 5 ? 5 : size == 7 ? 4 : 3;
    return size <= 5 ? 6 : size == 7 ? 5 : size <= 11 ? 4 : 3;
}

/* The largest number of rows of a strip. The blocks that run at one time cover the image's whole width and the height
 * of some strips. If their input and output fit into L2, no halo row comes from memory twice. Small filters are bound
 * by memory and need this; large ones need few halo rows. */
static constexpr int tiled_strip(int size, enum sample sample)
{
    if (sample == SAMPLE_F32 && size <= 7)
        return size <= 5 ? 10 : 24;
    return size == 3 || (size == 5 && sample != SAMPLE_U8) ? 32 : size <= 9 ? 64 : 128;
}

/* Add a window of samples, multiplied by filter row I, to SUM, the sums before it, and write them to TO. */
template <typename Sum, int SIZE>
static __device__ __forceinline__ void add_row(Sum (&to)[columns], const Sum (&sum)[columns], const Sum *v,
                                               const tap_of<Sum> *register_taps, int i)
{
#pragma unroll
    for (int c = 0; c < columns; c++) {
        Sum s = sum[c];
#pragma unroll
        for (int j = 0; j < SIZE; j++)
            s += (i * SIZE + j < register_tap_count<Sum>(SIZE) ? register_taps[i * SIZE + j]
                                                               : weight<tap_of<Sum>>(taps[i * SIZE + j])) *
                 v[j + c];
        to[c] = s;
    }
}

template <typename T, typename Sum, int SIZE, bool QUICK>
static __global__ void __launch_bounds__(32 * strip_warps, tiled_blocks<Sum>(SIZE))
    register_tiled(const __grid_constant__ struct launch launch, const __grid_constant__ struct level level)
{
    using rows_ring = ring<T, SIZE / 2, step_rows_of<Sum>(SIZE)>;
    constexpr int lead = lead_of(SIZE / 2), count = window_of<SIZE>, step_rows = rows_ring::step_rows;
    __shared__ __align__(16) unsigned char memory[strip_warps][rows_ring::bytes];
    const struct strip strip = find_strip(launch);
    if (strip.x >= launch.width)
        return;
    const int rows = strip.rows, x = strip.x + columns * (int)threadIdx.x, left = launch.width - x;
    rows_ring ring(launch, memory[threadIdx.y], strip.x, strip.y - SIZE / 2, rows + SIZE - 1);
    ring.start(launch);

    Sum sum[SIZE][columns] = {}, first[columns], done[columns];
#pragma unroll
    for (int c = 0; c < columns; c++)
        first[c] = sum_start<T, Sum, QUICK>(launch);
    const uint32_t begin = ring.window(lead);
    uint32_t from = begin;
    tap_of<Sum> register_taps[register_tap_count<Sum>(SIZE) + 1];
#pragma unroll
    for (int k = 0; k < register_tap_count<Sum>(SIZE); k++)
        register_taps[k] =
            weight<tap_of<Sum>>(taps[k + threadIdx.x / 32]); /* + 0: the compiler does not know that it is uniform */
    T *to = out_row<T>(launch, strip.y) + x;

    /* At row r of the strip's input, sum[i] belongs to output row r - i, and filter row i is over it. Near the strip's
     * ends some of these outputs do not exist. They are skipped. */
    int r = 0;
    auto take_step = [&](auto is_steady) {
        constexpr bool steady = decltype(is_steady)::value;
        ring.wait();
#pragma unroll
        for (int k = 0; k < step_rows; k++) {
            Sum v[count];
            read_window<T>(from + k * rows_ring::row_bytes, v);
            if (k == 0)
                ring.template load<steady>(launch);
            if (steady || (unsigned)(r + k - (SIZE - 1)) < (unsigned)rows) {
                add_row<Sum, SIZE>(done, sum[SIZE - 1], v + lead, register_taps, SIZE - 1);
                store_sums<QUICK>(launch, level, to, steady ? columns : left, done);
                to = next_row(to, launch.out_row);
            }
#pragma unroll
            for (int i = SIZE - 2; i >= 0; i--)
                if (steady || (unsigned)(r + k - i) < (unsigned)rows)
                    add_row<Sum, SIZE>(sum[i + 1], i > 0 ? sum[i] : first, v + lead, register_taps, i);
        }
        from = ring.following(from, begin);
        r += step_rows;
    };
    while (r < rows + SIZE - 1)
        if (ring.clear && r >= SIZE - 1 && r + step_rows <= rows) {
#pragma unroll 1
            do
                take_step(known<true>());
            while (r + step_rows <= rows);
        } else {
            take_step(known<false>());
        }
}

/* The kernel for a square filter of SIZE taps. */
template <typename T, typename Sum, int SIZE = sizeof(T) == 2 ? largest_square16 : largest_square>
static walk_kernel *tiled_of_size(int size, bool quick)
{
    if (size == SIZE)
        return quick ? register_tiled<T, Sum, SIZE, may_be_quick<T, Sum>> : register_tiled<T, Sum, SIZE, false>;
    if constexpr (SIZE > 3)
        return tiled_of_size<T, Sum, SIZE - 2>(size, quick);
    else
        return NULL;
}

/* Does the filter have a kernel of its own? */
static bool is_square(const struct plan *plan)
{
    const struct filter *filter = plan->filter;
    const int largest = plan->sample != SAMPLE_U16 ? largest_square : plan->float_exact ? largest_square16 : 0;
    return filter_is_centred_square(filter) && filter->width >= 3 && filter->width <= largest;
}

/* The size of the table for any filter, in quads. */
static int table_quads(const struct filter *filter)
{
    return (filter->width + 3) / 4 * filter->height + 2 * any_slack;
}

extern "C" bool register_tiled_prepare(struct plan *plan, struct device *device, struct error *error)
{
    const struct filter *filter = plan->filter;
    const bool square = is_square(plan);
    uint32_t words[4 * any_quads_max] = {};
    for (int i = 0; i < filter->height; i++)
        for (int j = 0; j < filter->width; j++)
            words[square ? i * filter->width + j : 4 * (any_slack + j / 4 * filter->height + i) + j % 4] =
                tap_word(plan, filter->taps[i * filter->width + j], filter->scale);
    const int quads = table_quads(filter);
    if (square)
        return upload_words(device, taps, words, filter->width * filter->height, error);
    if (quads <= any_near)
        return upload_words(device, near_taps, words, 4 * quads, error);
    return upload_table(device, words, sizeof(uint4) * (size_t)quads, error);
}

template <typename T, typename Sum, bool FAR>
static bool launch_any(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                       struct error *error)
{
    return launch_kernel(register_tiled_any<T, Sum, FAR>, make_launch(plan, in, out), in->count, device,
                         {any_width<Sum>, any_warps<FAR> * any_rows, dim3(32, any_warps<FAR>)}, error,
                         (const uint4 *)device_table(device));
}

template <typename T, typename Sum>
static bool launch_tiled(sum_types<T, Sum>, const struct plan *plan, struct device *device, const struct plane *in,
                         const struct plane *out, struct error *error)
{
    const struct level level = level_of(plan);
    if constexpr (!std::is_same<Sum, halves<int>>::value)
        if (is_square(plan))
            return launch_walk(tiled_of_size<T, Sum>(plan->filter->width, level.quick), level,
                               tiled_strip(plan->filter->width, plan->sample), 8 * plan->filter->width, plan, device,
                               in, out, error);
    return table_quads(plan->filter) <= any_near ? launch_any<T, Sum, false>(plan, device, in, out, error)
                                                 : launch_any<T, Sum, true>(plan, device, in, out, error);
}

extern "C" bool register_tiled_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                      const struct plane *out, struct error *error)
{
    return with_types(plan, [&](auto types) { return launch_tiled(types, plan, device, in, out, error); });
}
