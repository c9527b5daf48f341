/* SPDX-License-Identifier: MIT
 *
 * The kernel of tensor-core for large dense filters and samples of float, for compute capability 9.0: elsewhere it was
 * not measured. A float is cut into two halves of 11 bits, x = high + low / 2^11. So a product is three, with sums of
 * float:
 *
 *     t x = high high + (high low + low high) / 2^11 + what is left out: low low / 2^22
 *
 * A warp computes 16 rows of 64 outputs. A window of two rows and eight columns is a row of the matrix of samples. Each
 * column of the other matrix has the taps over it for one output of 4 x 2:
 *
 *     windows, two columns apart      taps for output (0, 0)    (0, 1)            (1, 0)   ...   (3, 1)
 *     [x x x x x x x x]               a b c d e f g h           . a b c d e f g   . . .
 *         [x x x x x x x x]           i j k l m n o p           . i j k l m n o   a b c
 *
 * Samples and taps are in cells of 2 x 2. Lane (g, t) has cell g + t of a row, for the windows and for all rows of
 * outputs. 31 x 31 taps are 34 x 32 products, 88% of them useful.
 *
 * Errors. u = 2^-24, and X is the largest sample under the filter.
 *
 * - A power of two scales the tile's largest sample to [2^14, 2^15), without an error. `high` errs by 2^-11 of it at
 *   most, and `low` by 2^-12 of that: 2 u of the sample. But halves end at 2^-24, which is 2^-36 with `low`: up to 16 u
 *   X if no sample of the tile but 0 has an exponent more than 30 below the largest. (If X is below 2^-126, 2^-147.)
 *   Taps are integers of 23 bits, and err by 2 u. `low low` is 4 u of t x at most.
 * - The unit cuts off the bits of an addend below the 24 bits of the largest, 2 u of it. 16 products are two sums of 9
 *   addends at most: 36 u sum|t x| for each block of 8 columns. Hence the sums end after a pair of rows, and floats add
 *   them up, with another u for each of the `steps` pairs. Sums with `low` are multiplied by 2^-11. These and the
 *   scales take 4 u.
 *
 * This is (26 + 36 blocks + steps) u sum|t| X at most. Sums of float have n u sum|t| X for n taps, and where this is
 * less, register-tiled filters (tensor_arrange_float). With 31 x 31 taps and random samples the errors were up to 4 u,
 * those of register-tiled 23, and those of a single sum 70.
 *
 * 0 times a sample that is not finite is not 0, and beside -3.4e38 all other samples would become 0. So each block
 * looks for the exponents of its tile first. If they are too far apart, it multiplies floats. */
#ifndef GPUCONV_TENSOR_FLOAT_CUH
#define GPUCONV_TENSOR_FLOAT_CUH

#include "kernels/tensor-core/tensor.cuh"

#include <cuda_fp16.h>

static constexpr int float_threads = 256;

/* Halves of four samples or taps: x of the upper row, y of the lower one. */
struct alignas(16) cell {
    uint2 high, low;
};

static __host__ __device__ __forceinline__ void split_pair(float x, float y, uint32_t &high, uint32_t &low)
{
    const __half2 h = __floats2half2_rn(x, y);
    const __half2 l = __floats2half2_rn((x - __low2float(h)) * 2048, (y - __high2float(h)) * 2048);
    memcpy(&high, &h, 4);
    memcpy(&low, &l, 4);
}

/* Add the products of 16 windows, LEFT and RIGHT, by TAPS. */
static __device__ __forceinline__ void multiply_halves(float (&d)[4], uint2 left, uint2 right, uint2 taps)
{
#if __CUDA_ARCH__ == 900
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
                 "{%0,%1,%2,%3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(left.x), "r"(right.x), "r"(left.y), "r"(right.y), "r"(taps.x), "r"(taps.y));
#endif
}

/* BLOCKS blocks of 8 columns of taps. The registers hold two thread blocks. */
template <int BLOCKS>
static __global__ void __launch_bounds__(float_threads, 2)
    tensor_float(const __grid_constant__ struct tensor_launch tensor)
{
#if __CUDA_ARCH__ == 900
    constexpr int words = float_columns / 2 + 4 * BLOCKS; /* cells of a row */
    extern __shared__ uint4 memory[];
    const int count = float_cells(BLOCKS, tensor.steps), tap_count = tensor.steps * BLOCKS * 32;
    const int thread = (int)threadIdx.x, lane = thread % 32, warp = thread / 32;
    struct cell *const samples = (struct cell *)memory, *const taps = samples + count;
    uint2 *const ranges = (uint2 *)(taps + tap_count); /* the range of each warp */
    const float *const plain_taps = (const float *)((const struct cell *)tensor.table + tap_count) + 1;
    for (int k = thread; k < tap_count; k += float_threads)
        ((uint4 *)taps)[k] = __ldg((const uint4 *)tensor.table + k);

    const struct tile tile = find_tile(tensor, (int)blockIdx.x, float_columns);
    struct launch launch = tensor.launch; /* the launch for the tile's plane */
    launch.in = tile.in;
    launch.out = tile.out;
    const int first_x = tile.x - launch.anchor_x, first_y = tile.y - launch.anchor_y;
    const bool inside = first_x >= 0 && first_y >= 0 && first_x + 2 * words <= launch.width &&
                        first_y + 2 * (count / words) <= launch.height;
    auto each_cell = [&](auto take) {
        if (inside)
#pragma unroll 8
            for (int k = thread; k < count; k += float_threads) {
                const float *const above = in_row<float>(launch, first_y + k / words * 2) + first_x + k % words * 2;
                const float *const below = (const float *)((const uint8_t *)above + launch.in_row);
                const float v[4] = {__ldg(above), __ldg(above + 1), __ldg(below), __ldg(below + 1)};
                take(k, v);
            }
        else
#pragma unroll 1
            for (int k = thread; k < count; k += float_threads) {
                const int y = first_y + k / words * 2, x = first_x + k % words * 2;
                const float v[4] = {load<float>(launch, y, x), load<float>(launch, y, x + 1),
                                    load<float>(launch, y + 1, x), load<float>(launch, y + 1, x + 1)};
                take(k, v);
            }
    };

    uint32_t largest = 0, smallest = ~0u; /* the bits of the magnitudes; less 1, so that 0 is not the smallest */
    each_cell([&](int, const float(&v)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            largest = max(largest, __float_as_uint(fabsf(v[i])));
            smallest = min(smallest, __float_as_uint(fabsf(v[i])) - 1);
        }
    });
    largest = __reduce_max_sync(~0u, largest);
    smallest = __reduce_min_sync(~0u, smallest);
    if (lane == 0)
        ranges[warp] = make_uint2(largest, smallest);
    __syncthreads();
#pragma unroll
    for (int k = 0; k < float_threads / 32; k++) {
        largest = max(largest, ranges[k].x);
        smallest = min(smallest, ranges[k].y);
    }
    const int exponent = max((int)(largest >> 23), 30); /* the scale ends at 2^(14 + 127 - 30) */

    if (exponent == 255 || (int)((smallest + 1) >> 23) < exponent - 30) {
        /* Floats: a warp has 8 rows, and a lane four columns, 32 apart. */
        each_cell([&](int k, const float(&v)[4]) {
            float2 *const to = (float2 *)samples + k + k / words * words;
            to[0] = make_float2(v[0], v[1]);
            to[words] = make_float2(v[2], v[3]);
        });
        __syncthreads();
        float sum[8][4] = {};
        const float *from = (const float *)samples + 8 * warp * 2 * words + lane;
#pragma unroll 1
        for (int r = 0; r < 8 + launch.filter_height - 1; r++, from += 2 * words)
#pragma unroll 1
            for (int j = 0; j < launch.filter_width; j++) {
                const float v[4] = {from[j], from[j + 32], from[j + 64], from[j + 96]};
#pragma unroll
                for (int k = 0; k < 8; k++)
                    if ((unsigned)(r - k) < (unsigned)launch.filter_height) {
                        const float tap = __ldg(plain_taps + (r - k) * launch.filter_width + j);
#pragma unroll
                        for (int q = 0; q < 4; q++)
                            sum[k][q] += tap * v[q];
                    }
            }
#pragma unroll
        for (int k = 0; k < 32; k++)
            if (8 * warp + k / 4 < tile.rows && tile.x + k % 4 * 32 + lane < launch.width)
                finish(launch, sum[k / 4][k % 4],
                       out_row<float>(launch, tile.y + 8 * warp + k / 4) + tile.x + k % 4 * 32 + lane);
        return;
    }

    const float scale = __uint_as_float((uint32_t)(14 + 127 - exponent + 127) << 23);
    each_cell([&](int k, const float(&v)[4]) {
        struct cell c;
        split_pair(v[0] * scale, v[1] * scale, c.high.x, c.low.x);
        split_pair(v[2] * scale, v[3] * scale, c.high.y, c.low.y);
        samples[k] = c;
    });
    __syncthreads();

    constexpr int groups = 4, matrices = 2,
                  cells = 4 * matrices + BLOCKS - 2; /* groups of 4 rows, matrices of 16 windows */
    const int g = lane / 4, t = lane % 4, x = warp % 2 * 64, y = warp / 2 * 16;
    float sum[groups][matrices][4] = {};
    const struct cell *from = samples + y / 2 * words + x / 2 + g + t;
#pragma unroll 1
    for (int p = 0; p < tensor.steps + 2 * (groups - 1); p++, from += words) {
        struct cell row[cells];
#pragma unroll
        for (int o = 0; o < cells; o++)
            row[o] = from[4 * o];
#pragma unroll
        for (int r = 0; r < groups; r++)
            if ((unsigned)(p - 2 * r) < (unsigned)tensor.steps) {
                float high[matrices][4] = {}, low[matrices][4] = {};
#pragma unroll
                for (int b = 0; b < BLOCKS; b++) {
                    const struct cell tap = taps[((p - 2 * r) * BLOCKS + b) * 32 + lane], *const at = row + b;
#pragma unroll
                    for (int m = 0; m < matrices; m++)
                        multiply_halves(high[m], at[4 * m].high, at[4 * m + 2].high, tap.high);
#pragma unroll
                    for (int m = 0; m < matrices; m++)
                        multiply_halves(low[m], at[4 * m].low, at[4 * m + 2].low, tap.high);
#pragma unroll
                    for (int m = 0; m < matrices; m++)
                        multiply_halves(low[m], at[4 * m].high, at[4 * m + 2].high, tap.low);
                }
#pragma unroll
                for (int k = 0; k < 4 * matrices; k++)
                    sum[r][k / 4][k % 4] += fmaf(low[k / 4][k % 4], 1 / 2048.0f, high[k / 4][k % 4]);
            }
    }
    const float tap_unit = plain_taps[-1], unit = __uint_as_float((uint32_t)(exponent - 14) << 23);
#pragma unroll
    for (int r = 0; r < groups; r++)
#pragma unroll
        for (int k = 0; k < 2 * matrices; k++) { /* the tap's unit first, so that nothing overflows */
            const int row = y + 4 * r + t, column = tile.x + x + 16 * k + 2 * g;
            float2 two;
            finish(launch, sum[r][k / 2][k % 2 * 2] * tap_unit * unit, &two.x);
            finish(launch, sum[r][k / 2][k % 2 * 2 + 1] * tap_unit * unit, &two.y);
            float *const to = out_row<float>(launch, tile.y + row) + column;
            if (row < tile.rows && column + 1 < launch.width)
                *(float2 *)to = two;
            else if (row < tile.rows && column < launch.width)
                *to = two.x;
        }
#else
    __trap(); /* no body: the launch fails */
#endif
}

#endif
