/* SPDX-License-Identifier: MIT
 *
 * register-tiled: each thread keeps the sums of many neighbouring outputs in registers: 4 columns of a strip that it
 * walks down (strip.cuh draws it). The taps are operands of the multiply-add, out of the constant bank.
 *
 * Loads: (fw + 6) / 4 quads, rounded up, for 4 outputs; 9 x 9: 3 loads, where basic takes 648. Multiply-adds: fw fh,
 * the least there is without using the taps' structure, and fh - 1 halo rows of them a strip. Arithmetic intensity on
 * device memory's side, 2 fw fh / (2 * bytes a sample) operations a byte: 9 x 9 81 (uint8_t), 20 (float); the latter is
 * near the ridge of today's GPUs, beyond it the multiply-add rate bounds, as no shared memory and no barrier is in the
 * way. Neighbouring threads load the same quads from L1.
 *
 * Sums: float for planes of float, and for uint8_t where sum|q| * 255 < 2^24, because there float sums are exact and
 * float multiply-adds have twice the rate of integer ones; else int32. Either way the canonical bytes.
 *
 * Limits: none. Square filters of 3 to 15 taps with the anchor in the centre have kernels of their own; all others take
 * the general one, which keeps 4 x 8 outputs and loads each tap, at about a third of the speed. */
#include "strip.cuh"

static __constant__ uint32_t taps[max_taps];

/* An input row that is multiplied by each row of taps. */
template <typename Sum, int SIZE>
struct tap_row {
    const Sum *v;

    __device__ __forceinline__ explicit tap_row(const Sum *samples) : v(samples)
    {
    }

    __device__ __forceinline__ void add(Sum (&sum)[columns], int i) const
    {
#pragma unroll
        for (int j = 0; j < SIZE; j++)
#pragma unroll
            for (int c = 0; c < columns; c++)
                sum[c] += weight<Sum>(taps[i * SIZE + j]) * v[j + c];
    }
};

template <typename T, typename Sum, int SIZE>
static __global__ void __launch_bounds__(threads_x *threads_y, 1) register_tiled(struct job job)
{
    walk_strip<T, Sum, SIZE, tap_row<Sum, SIZE>>(job);
}

static constexpr int general_rows = 8; /* outputs of a thread in a column */

/* Any filter. Each row goes by in quads, two of them in registers at a time. */
template <typename T, typename Sum>
static __global__ void __launch_bounds__(threads_x *threads_y) register_tiled_general(struct job job)
{
    const int2 tile = block_tile(job);
    const int x = tile.x * tile_width + (int)threadIdx.x * columns;
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
static void (*kernel_of_square(int size))(struct job)
{
    if (size == SIZE)
        return register_tiled<T, Sum, SIZE>;
    if constexpr (SIZE > 3)
        return kernel_of_square<T, Sum, SIZE - 2>(size);
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
    void (*square)(struct job) = is_centred_square(plan->filter) ? kernel_of_square<T, Sum>(plan->filter->width) : NULL;
    if (square) /* the strip's length was chosen by measurement, at 16384 x 16384 and 3 to 31 taps */
        return launch_walk(square, 6 * plan->filter->height, plan, device, in, out, error);
    return launch_tiles(register_tiled_general<T, Sum>, plan, device, in, out,
                        {tile_width, threads_y * general_rows, dim3(threads_x, threads_y)}, error);
}

extern "C" bool register_tiled_launch(const struct plan *plan, struct device *device, const struct plane *in,
                                      const struct plane *out, struct error *error)
{
    return plan->sample == SAMPLE_F32 ? launch<float, float>(plan, device, in, out, error)
           : plan->float_exact        ? launch<uint8_t, float>(plan, device, in, out, error)
                                      : launch<uint8_t, int>(plan, device, in, out, error);
}
