/* SPDX-License-Identifier: MIT
 *
 * register-tiled: each lane keeps the sums of many neighbouring outputs in registers: 4 columns of a strip that its
 * warp walks down (strip.cuh draws it). The taps are operands of the multiply-add, out of registers or the constant
 * bank.
 *
 * Loads: a warp copies each row of its strip once from memory to its ring, and a lane reads (fw + 6) / 4 quads of it,
 * rounded up, for 4 outputs; 9 x 9: 3 loads, where basic takes 648. Multiply-adds: fw fh, the least there is without
 * using the taps' structure; halo rows are added only to sums of outputs that exist. Planes of uint8_t cost 2
 * instructions more a sample read and 3.75 an output, none of them a conversion (strip.cuh says how). Arithmetic
 * intensity on device memory's side, 2 fw fh / (2 * bytes a sample) operations a byte: 9 x 9 81 (uint8_t), 20 (float);
 * the latter is near the ridge of today's GPUs, beyond it the multiply-add rate bounds, as no barrier joins warps.
 *
 * Sums: float for planes of float, and for uint8_t where sum|q| * 255 < 2^24, because there float sums are exact and
 * float multiply-adds have twice the rate of integer ones; else int32. Either way the canonical bytes.
 *
 * Limits: none. Square filters of 3 to 15 taps with the anchor in the centre have kernels of their own; all others take
 * the general one, which keeps 4 x 8 outputs and loads each tap, at about a third of the speed. */
#include "strip.cuh"

static __constant__ uint32_t taps[max_taps];

/* Rows of a turn of the loop: two, unless its instructions are then more than the instruction cache holds. */
static __host__ __device__ constexpr int turn_of(int size)
{
    return size <= 9 ? 2 : 1;
}

/* Taps of 9 x 9 that stand in registers. The other 45 fit into the uniform registers: so the loop loads none. Larger
 * filters have too many, smaller ones wait for memory. */
static __host__ __device__ constexpr int held_of(int size)
{
    return size == 9 ? 36 : 0;
}

/* Blocks that the registers of a multiprocessor must suffice for. */
static __host__ __device__ constexpr int blocks_of(int size)
{
    return size <= 5 ? 6 : size == 7 ? 5 : size <= 11 ? 4 : 3;
}

/* Rows of a strip, at most. The blocks that run at one time cover all of the image's width and some strips' height; as
 * long as that much of input and output fits into L2, no halo row comes from memory twice. Small filters are bound by
 * memory and want it so, large ones want few halo rows. */
static constexpr int strip_of(int size, enum sample sample)
{
    return size == 3 || (size == 5 && sample == SAMPLE_F32) ? 32 : size <= 9 ? 64 : 128;
}

/* Add a window of samples, multiplied by filter row I, to SUM, the sums before it, and write them to TO. */
template <typename Sum, int SIZE>
static __device__ __forceinline__ void add_row(Sum (&to)[columns], const Sum (&sum)[columns], const Sum *v,
                                               const Sum *held, int i)
{
#pragma unroll
    for (int c = 0; c < columns; c++) {
        Sum s = sum[c];
#pragma unroll
        for (int j = 0; j < SIZE; j++)
            s += (i * SIZE + j < held_of(SIZE) ? held[i * SIZE + j] : weight<Sum>(taps[i * SIZE + j])) * v[j + c];
        to[c] = s;
    }
}

template <typename T, typename Sum, int SIZE, int FINISH>
static __global__ void __launch_bounds__(32 * strip_warps, blocks_of(SIZE))
    register_tiled(const __grid_constant__ struct job job, const __grid_constant__ struct level level)
{
    using rows_ring = ring<T, SIZE / 2, turn_of(SIZE)>;
    constexpr int lead = lead_of(SIZE / 2), count = window_of<SIZE>, turn = rows_ring::turn;
    __shared__ __align__(16) unsigned char memory[strip_warps][rows_ring::bytes];
    const struct strip strip = find_strip(job);
    if (strip.x >= job.width)
        return;
    const int rows = strip.rows, x = strip.x + columns * (int)threadIdx.x, left = job.width - x;
    rows_ring ring(job, memory[threadIdx.y], strip.x, strip.y - SIZE / 2, rows + SIZE - 1);
    ring.start(job);

    Sum sum[SIZE][columns] = {}, first[columns], done[columns];
#pragma unroll
    for (int c = 0; c < columns; c++)
        first[c] = sum_start<T, Sum, FINISH>(job);
    const uint32_t begin = ring.window(lead);
    uint32_t from = begin;
    Sum held[held_of(SIZE) + 1];
#pragma unroll
    for (int k = 0; k < held_of(SIZE); k++)
        held[k] = weight<Sum>(taps[k + threadIdx.x / 32]); /* + 0, which the compiler does not know to be uniform */
    T *to = out_row<T>(job, strip.y) + x;

    /* At row r of the strip's input, sum[i] belongs to output row r - i, which has filter row i over it. Near the
     * strip's ends some of these outputs do not exist, and are not worked on. */
    int r = 0;
    auto take_turn = [&](auto is_steady) {
        constexpr bool steady = decltype(is_steady)::value;
        ring.wait();
#pragma unroll
        for (int k = 0; k < turn; k++) {
            Sum v[count];
            read_window<T>(from + k * rows_ring::row_bytes, v);
            if (k == 0)
                ring.template load<steady>(job);
            if (steady || (unsigned)(r + k - (SIZE - 1)) < (unsigned)rows) {
                add_row<Sum, SIZE>(done, sum[SIZE - 1], v + lead, held, SIZE - 1);
                store_sums<FINISH>(job, level, to, steady ? columns : left, done);
                to = next_row(to, job.out_row);
            }
#pragma unroll
            for (int i = SIZE - 2; i >= 0; i--)
                if (steady || (unsigned)(r + k - i) < (unsigned)rows)
                    add_row<Sum, SIZE>(sum[i + 1], i > 0 ? sum[i] : first, v + lead, held, i);
        }
        from = ring.following(from, begin);
        r += turn;
    };
    while (r < rows + SIZE - 1)
        if (ring.clear && r >= SIZE - 1 && r + turn <= rows) {
#pragma unroll 1
            do
                take_turn(known<true>());
            while (r + turn <= rows);
        } else {
            take_turn(known<false>());
        }
}

static constexpr int general_rows = 8; /* outputs of a thread in a column */
static constexpr int threads_y = 4;

/* Any filter. Each row goes by in quads, two of them in registers at a time. */
template <typename T, typename Sum>
static __global__ void __launch_bounds__(32 * threads_y) register_tiled_general(const __grid_constant__ struct job job)
{
    const int2 tile = block_tile(job);
    const int x = tile.x * strip_width + (int)threadIdx.x * columns;
    const int y = (tile.y * threads_y + (int)threadIdx.y) * general_rows;
    if (x >= job.width || y >= job.height)
        return;
    Sum sum[general_rows][columns] = {};
    const int lead = lead_of(job.anchor_x), left = x - job.anchor_x;
    for (int r = 0; r < general_rows + job.filter_height - 1; r++) {
        const int from_y = border_index(y - job.anchor_y + r, job.height, job.border);
        quad<Sum> next = load_quad<T, Sum>(job, from_y, left - lead);
        for (int j0 = -lead; j0 < job.filter_width; j0 += 4) {
            const quad<Sum> first = next;
            next = load_quad<T, Sum>(job, from_y, left + j0 + 4);
            const Sum v[8] = {first.v[0], first.v[1], first.v[2], first.v[3],
                              next.v[0],  next.v[1],  next.v[2],  next.v[3]};
#pragma unroll
            for (int k = 0; k < general_rows; k++) {
                const int i = r - k;
                if (i < 0 || i >= job.filter_height)
                    continue;
#pragma unroll
                for (int u = 0; u < 4; u++) {
                    if (j0 + u < 0 || j0 + u >= job.filter_width)
                        continue;
                    const Sum tap = weight<Sum>(taps[i * job.filter_width + j0 + u]);
#pragma unroll
                    for (int c = 0; c < columns; c++)
                        sum[k][c] += tap * v[u + c];
                }
            }
        }
    }
#pragma unroll
    for (int k = 0; k < general_rows; k++)
        if (y + k < job.height)
            store_quad<true>(job, y + k, x, sum[k], (T *)0);
}

/* The kernel for a square filter of SIZE taps, or NULL. */
template <typename T, typename Sum, int SIZE = 15>
static walk_kernel *kernel_of_square(int size, bool quick)
{
    constexpr int finish = (Sum)0.5f > 0 ? FINISH_QUICK : FINISH_ANY; /* sums of int are never quick */
    if (size == SIZE)
        return quick ? register_tiled<T, Sum, SIZE, finish> : register_tiled<T, Sum, SIZE, FINISH_ANY>;
    if constexpr (SIZE > 3)
        return kernel_of_square<T, Sum, SIZE - 2>(size, quick);
    else
        return NULL;
}

extern "C" bool register_tiled_prepare(const struct plan *plan, struct device *device, struct error *error)
{
    const struct filter *filter = plan->filter;
    const int count = filter->width * filter->height;
    uint32_t words[max_taps];
    for (int i = 0; i < count; i++)
        words[i] = tap_word(plan, filter->taps[i], filter->scale);
    return upload_words(device, taps, words, count, error);
}

template <typename T, typename Sum>
static bool launch(const struct plan *plan, struct device *device, const struct plane *in, const struct plane *out,
                   struct error *error)
{
    const struct level level = level_of(plan);
    walk_kernel *square =
        is_centred_square(plan->filter) ? kernel_of_square<T, Sum>(plan->filter->width, level.quick) : NULL;
    if (square)
        return launch_walk(square, level, strip_of(plan->filter->width, plan->sample), plan, device, in, out, error);
    return launch_tiles(register_tiled_general<T, Sum>, plan, device, in, out,
                        {strip_width, threads_y * general_rows, dim3(32, threads_y)}, error);
}

extern "C" bool register_tiled_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                      const struct plane *out, struct error *error)
{
    return plan->sample == SAMPLE_F32 ? launch<float, float>(plan, device, in, out, error)
           : plan->float_exact        ? launch<uint8_t, float>(plan, device, in, out, error)
                                      : launch<uint8_t, int>(plan, device, in, out, error);
}
