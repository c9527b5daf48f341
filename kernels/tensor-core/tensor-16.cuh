/* SPDX-License-Identifier: MIT
 *
 * The kernel of tensor-core for samples of uint16_t. It is tensor_group with other operands. A warp computes 4 rows of
 * 128 outputs at a time. It sums both bytes at the same time, so it reads taps and samples once.
 *
 * ldmatrix reads units of 8 samples: lane (g, t) gets samples 2 t and 2 t + 1 of chunk g. Two units are 16 samples, and
 * a byte permutation makes each operand: the low or the high bytes of samples 2 t, 2 t + 1, 8 + 2 t and 9 + 2 t. The
 * operand should have samples 4 t to 4 t + 3 there. But the terms of a sum may have any order, as long as the taps have
 * the same. With PACKED, the last operand has samples 2 t and 2 t + 1 of both rows of a pair.
 *
 * Each byte's sum is one over samples of 8 bits, so it fits in 32 bits. The whole has up to 40 (tensor_level16). */
#ifndef GPUCONV_TENSOR_16_CUH
#define GPUCONV_TENSOR_16_CUH

#include "kernels/shared/quads.cuh"
#include "kernels/tensor-core/tensor-group.cuh"

static constexpr int rows16 = 4;   /* output rows of a warp at a time, and input rows of a stage */
static constexpr int strip16 = 64; /* rows of a tile */

/* Blocks per multiprocessor. With larger windows, four would leave too little of L1 for the taps. */
static constexpr int resident16(int full)
{
    return full == 1 ? 4 : 3;
}

/* The level of a sum from those of its bytes, as level16 gives it, where 32 bits hold every level before it is clamped
 * (tensor_arrange_16). There are no conversions: 1.5 * 2^52 + n is a double with n in its last bits, |n| < 2^51. */
static __device__ __forceinline__ int tensor_level16(const struct rounding16 &rounding, int high, int low)
{
    const int64_t low_raised = (int64_t)((uint64_t)(uint32_t)(0x43380000 + (low >> 31)) << 32 | (uint32_t)low);
    const double raised = 6755399441055744.0, whole = __longlong_as_double((int64_t)high * 256 + low_raised) - raised;
    const double value = (rounding.absolute ? fabs(whole) : whole) * rounding.factor + rounding.term;
    return __double2loint(__dadd_rd(value, raised));
}

template <int FULL, int PACKED, bool QUICK>
static __global__ void __launch_bounds__(32 * warps, resident16(FULL))
    tensor_16(const __grid_constant__ struct tensor_launch tensor)
{
    constexpr int words = 2 * FULL + PACKED; /* words of taps for a pair of rows; and units of samples */
    extern __shared__ uint4 memory[];
    const struct launch &launch = tensor.launch;
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    const int index = (int)(blockIdx.x * blockDim.y + threadIdx.y);
    if (index >= tensor.tiles)
        return;
    const struct tile tile = find_tile(tensor, index, tile_columns);
    warp_loader<uint16_t, rows16> loader(tensor, tile, shared_address(memory), tensor.lead);
    const int pitch = loader.pitch, capacity = loader.capacity;

    /* The four matrices of a unit are chunks 0 to 7 and 8 to 15, then the same of the next row. */
    const uint32_t lane_at = loader.ring + lane % 8 * 16 + lane / 8 % 2 * tile_columns + lane / 16 * pitch;
    const int column = tile.x + chunk * g + 2 * t;
    uint8_t *to = tile.out + tile.y * launch.out_row + 2 * column;
    int first = 0; /* the first row of the window in the ring, in bytes */
#pragma unroll 1
    for (int r = 0; r < tile.rows; r += rows16, to += rows16 * launch.out_row) {
        copy_wait<1>();
        loader.load();
        matrix sum[rows16][2] = {}; /* sums of low bytes and of high bytes */
        const uint32_t *table = tensor.table;
#pragma unroll 1
        for (int p = 0; p < tensor.parts; p++) {
            if (p > 0)
#pragma unroll
                for (int k = 0; k < 8 * rows16; k++)
                    sum[k / 8][k / 4 % 2].v[k % 4] *= 256;
#pragma unroll 1
            for (int block = 0; block < tensor.blocks; block++) {
                uint32_t window[2][FULL][2][4], packed[2][2][2]; /* words of two pairs of rows */
                int at = first + block * 16 * words;             /* the next pair to read */
                const int wrap = capacity + block * 16 * words;
                auto load_pair = [&](int slot) {
                    uint32_t unit[words][4];
#pragma unroll
                    for (int k = 0; k < words; k++)
                        read_matrices(unit[k], lane_at + at + 16 * k);
#pragma unroll
                    for (int byte = 0; byte < 2; byte++) {
                        const uint32_t selector = byte == 0 ? 0x6420 : 0x7531;
#pragma unroll
                        for (int k = 0; k < 4 * FULL; k++)
                            window[slot][k / 4][byte][k % 4] =
                                __byte_perm(unit[k / 4 * 2][k % 4], unit[k / 4 * 2 + 1][k % 4], selector);
#pragma unroll
                        for (int k = 0; k < 2 * PACKED; k++)
                            packed[slot][byte][k] = __byte_perm(unit[words - 1][k], unit[words - 1][k + 2], selector);
                    }
                    at += 2 * pitch;
                    if (at >= wrap)
                        at -= capacity;
                };
                load_pair(0);
                uint32_t taps[2][2][words];
                table = load_taps<words>(table, lane, taps[0][0]);
                table = load_taps<words>(table, lane, taps[0][1]);
                /* Taps as in tensor_group. The pair that is read is that of outputs 2 and 3. */
                auto step = [&](int u) {
                    const uint32_t(*now)[words] = taps[u];
                    load_pair(1 - u);
                    table = load_taps<words>(table, lane, taps[1 - u][0]);
                    table = load_taps<words>(table, lane, taps[1 - u][1]);
#pragma unroll
                    for (int pair = 0; pair < rows16 / 2; pair++) {
                        const int slot = (u + pair) % 2;
#pragma unroll
                        for (int k = 0; k < 4 * FULL; k++) {
                            matrix &d = sum[2 * pair + k % 2][k / 2 % 2];
                            multiply32(d, window[slot][k / 4][k / 2 % 2], now[k % 2] + k / 4 * 2, d);
                        }
#pragma unroll
                        for (int k = 0; k < 4 * PACKED; k++) {
                            matrix &d = sum[2 * pair + k % 2][k / 2];
                            multiply16(d, packed[slot][k / 2], now[k % 2][2 * FULL], d);
                        }
                    }
                };
#pragma unroll 1
                for (int s = 1; s < tensor.steps; s += 2) { /* without a branch between them, or taps are loaded late */
                    step(0);
                    step(1);
                }
                if (tensor.steps % 2)
                    step(0);
                table -= 2 * words * 32; /* the words fetched ahead are the next block's */
            }
        }
        first += rows16 * pitch;
        if (first == capacity)
            first = 0;
        const struct rounding16 rounding = rounding16_of(launch);
        uint32_t word[rows16][2];
#pragma unroll
        for (int k = 0; k < rows16; k++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                int level[2];
#pragma unroll
                for (int c = 0; c < 2; c++) {
                    const int high = sum[k][1].v[2 * e + c], low = sum[k][0].v[2 * e + c];
                    level[c] = QUICK ? tensor_level16(rounding, high, low) : level16(launch, halves<int>(high, low));
                }
                word[k][e] = pack_levels16(level[0], level[1]);
            }
        /* A lane has two samples side by side, 4 bytes: a warp stores whole cache lines. */
        uint8_t *at_row = to;
        if (tile.x + tile_columns <= launch.width && r + rows16 <= tile.rows) {
#pragma unroll
            for (int k = 0; k < rows16; k++, at_row += launch.out_row)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    *(uint32_t *)(at_row + e * tile_columns) = word[k][e];
        } else {
#pragma unroll
            for (int k = 0; k < rows16; k++, at_row += launch.out_row)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    if (r + k < tile.rows)
                        store_guarded(at_row + e * tile_columns, word[k][e],
                                      2 * (launch.width - column) - e * tile_columns);
        }
    }
}

#endif
