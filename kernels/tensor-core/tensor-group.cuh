/* SPDX-License-Identifier: MIT
 *
 * The kernel of tensor-core that is for every filter. A warp computes 8 rows of 128 outputs at a time. The rows under
 * them are in a ring in shared memory, one ring per warp. Taps come through L1.
 *
 * A window of 8 outputs is cut into blocks of 4 FULL + 2 PACKED words: FULL operands of 16 bytes of each row, and, with
 * PACKED, one operand that holds 8 bytes of each of two rows. A filter of 15 columns needs 6 words (8 without PACKED),
 * one of 31 columns 10. Wider filters take several blocks, one after the other, for the same sums. Rows are taken in
 * pairs as in tensor-walk.cuh, so odd rows of outputs have their own alignment of taps.
 *
 * Taps of several parts: the sums of the highest part are multiplied by 256 before those of the next are added, which
 * is exact modulo 2^32, and the whole sum fits in 32 bits. */
#ifndef GPUCONV_TENSOR_GROUP_CUH
#define GPUCONV_TENSOR_GROUP_CUH

#include "kernels/tensor-core/tensor.cuh"

static constexpr int group = 8;                   /* output rows of a warp at a time, and input rows of a stage */
static constexpr int group_pairs = group / 2 + 1; /* pairs of input rows in registers, one of them under way */
static constexpr int group_strip = 64;            /* rows of a tile, by measurement */

/* COUNT words of taps of a lane. The words of all lanes are stored in fours, then in twos, then singly. */
template <int COUNT>
static __device__ __forceinline__ const uint32_t *load_taps(const uint32_t *from, int lane, uint32_t (&taps)[COUNT])
{
    int at = 0;
    if constexpr (COUNT >= 4) {
        const uint4 v = __ldg((const uint4 *)from + lane);
        taps[0] = v.x, taps[1] = v.y, taps[2] = v.z, taps[3] = v.w;
        from += 4 * 32;
        at = 4;
    }
    if constexpr (COUNT % 4 >= 2) {
        const uint2 v = __ldg((const uint2 *)from + lane);
        taps[at] = v.x, taps[at + 1] = v.y;
        from += 2 * 32;
        at += 2;
    }
    if constexpr (COUNT % 2) {
        taps[at] = __ldg(from + lane);
        from += 32;
    }
    return from;
}

template <int FULL, int PACKED>
static __global__ void __launch_bounds__(32 * warps, 4)
    tensor_group(const __grid_constant__ struct tensor_launch tensor)
{
    constexpr int words = 2 * FULL + PACKED;            /* words of taps for a pair of rows */
    constexpr int block_bytes = 16 * FULL + 8 * PACKED; /* bytes of samples */
    constexpr int unroll = 2 * group_pairs;             /* both the window's and the taps' registers come round */
    extern __shared__ uint4 memory[];
    const struct launch &launch = tensor.launch;
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    const int index = (int)(blockIdx.x * blockDim.y + threadIdx.y);
    if (index >= tensor.tiles)
        return;
    const struct tile tile = find_tile(tensor, index, tile_columns);
    warp_loader<uint8_t, group> loader(tensor, tile, shared_address(memory), tensor.before);
    const int pitch = loader.pitch, capacity = loader.capacity;

    const int column = tile.x + quad_offset(lane);
    const uint32_t selector = swap_selector(t);
    const uint32_t lane_left = loader.ring + tensor.before - tensor.lead + chunk * g + 4 * t;
    const uint32_t lane_packed =
        loader.ring + tensor.before - tensor.lead + chunk * g + 4 * (t % 2) + 16 * FULL + t / 2 * pitch;
    int first = 0; /* the group's first row in the ring, in bytes */
#pragma unroll 1
    for (int r = 0; r < tile.rows; r += group) {
        copy_wait<1>();
        loader.load();
        matrix sum[group] = {};
        const uint32_t *table = tensor.table;
#pragma unroll 1
        for (int p = 0; p < tensor.parts; p++) {
            if (p > 0)
#pragma unroll
                for (int k = 0; k < 4 * group; k++)
                    sum[k / 4].v[k % 4] *= 256;
#pragma unroll 1
            for (int block = 0; block < tensor.blocks; block++) {
                uint32_t window[group_pairs][FULL][4], packed[group_pairs][2];
                int at = first + block * block_bytes; /* the next pair of rows to read */
                const int wrap = capacity + block * block_bytes;
                auto load_pair = [&](int slot) {
#pragma unroll
                    for (int q = 0; q < FULL; q++)
#pragma unroll
                        for (int k = 0; k < 4; k++)
                            window[slot][q][k] =
                                read_shared(lane_left + at + 16 * q + k % 2 * (tile_columns / 2) + k / 2 * pitch);
                    if (PACKED)
#pragma unroll
                        for (int k = 0; k < 2; k++)
                            packed[slot][k] = read_shared(lane_packed + at + k * (tile_columns / 2));
                    at += 2 * pitch;
                    if (at >= wrap)
                        at -= capacity;
                };
#pragma unroll
                for (int m = 0; m < group / 2; m++)
                    load_pair(m);
                uint32_t taps[2][2][words];
                table = load_taps<words>(table, lane, taps[0][0]);
                table = load_taps<words>(table, lane, taps[0][1]);
#pragma unroll 1
                for (int s = 0; s < tensor.steps; s += unroll) {
#pragma unroll
                    for (int u = 0; u < unroll; u++) {
                        if (s + u >= tensor.steps)
                            break;
                        /* Rows 2 s and 2 s + 1 of the filter for even outputs, 2 s - 1 and 2 s for odd ones. The next
                         * taps, and the next pair of rows, are fetched meanwhile. */
                        const uint32_t(*now)[words] = taps[u % 2];
                        table = load_taps<words>(table, lane, taps[(u + 1) % 2][0]);
                        table = load_taps<words>(table, lane, taps[(u + 1) % 2][1]);
                        load_pair((u + group / 2) % group_pairs);
#pragma unroll
                        for (int q = 0; q < FULL; q++)
#pragma unroll
                            for (int k = 0; k < group; k++)
                                multiply32(sum[k], window[(u + k / 2) % group_pairs][q], now[k % 2] + 2 * q, sum[k]);
                        if (PACKED)
#pragma unroll
                            for (int k = 0; k < group; k++)
                                multiply16(sum[k], packed[(u + k / 2) % group_pairs], now[k % 2][2 * FULL], sum[k]);
                    }
                }
                table -= 2 * words * 32; /* the words fetched ahead are the next block's */
            }
        }
        first += group * pitch;
        if (first == capacity)
            first = 0;
        uint8_t *to = tile.out + (tile.y + r) * launch.out_row + column;
        const bool whole = tile.x + tile_columns <= launch.width && r + group <= tile.rows;
#pragma unroll
        for (int k = 0; k < group; k++) {
            int level[4];
            if (tensor.quick) {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    level[e] = quick_level<LEVEL_ANY>(tensor, sum[k].v[e]);
            } else {
#pragma unroll
                for (int e = 0; e < 4; e++)
                    level[e] = finish_sum(launch, sum[k].v[e]);
            }
            const uint32_t word =
                swap_pairs(pack_pair(level[0], level[1], pack_pair(level[2], level[3], 0)), 1, selector);
            if (whole)
                *(uint32_t *)(to + k * launch.out_row) = word;
            else if (r + k < tile.rows)
                store_guarded(to + k * launch.out_row, word, launch.width - column);
        }
    }
}

#endif
