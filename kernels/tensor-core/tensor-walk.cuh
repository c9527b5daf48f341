/* SPDX-License-Identifier: MIT
 *
 * The kernel of tensor-core for small filters: at most 9 rows, a window of 16 samples, taps of one or two parts. A warp
 * walks down a strip of 256 columns. All taps, and the rows under the filter, are in registers.
 *
 *     a row of 256 + 2 x 16 samples     two matrices of 16 chunks of 8 outputs; a chunk's window of 16 samples is two
 *     in the warp's ring, in shared     registers of each lane. A row is read once and then, with the row above or
 *     memory, by asynchronous copies    below it, is an operand of the products of all outputs whose windows hold it.
 *
 * Rows are taken in pairs. For an output row that starts in a pair's upper row, the filter's rows 0 and 1 are over the
 * first pair, 2 and 3 over the next. For one that starts in the lower row, row 0 is over the lower half of the first
 * pair, 1 and 2 over the next. So a pair is a whole operand of a product over 32 bytes, and nothing moves between
 * registers. The table has the taps in both alignments.
 *
 * 9 x 9, two rows of 256 outputs: 8 reads of shared memory, 20 products, 32 instructions to round, pack and swap 16
 * sums per lane, 4 stores. */
#ifndef GPUCONV_TENSOR_WALK_CUH
#define GPUCONV_TENSOR_WALK_CUH

#include "kernels/tensor-core/tensor.cuh"

static constexpr int walk_tiles = 2; /* matrices side by side */
static constexpr int walk_columns = walk_tiles * tile_columns;
static constexpr int walk_before = 16; /* bytes of the ring's row left of the tile, and right of it */
static constexpr int walk_pitch = walk_columns + 2 * walk_before;

/* Rows of a stage of the ring: a multiple of the window's, so that its registers are known at compile time, and 6 or
 * more. The window holds whole pairs of rows: one row more than the filter, whose height is odd. */
static __host__ __device__ constexpr int walk_rows(int height)
{
    return (6 + height) / (height + 1) * (height + 1);
}

/* Stages of the ring. The warp works on one of them. Their number is chosen by measurement, as is that of the stages of
 * a strip. With longer strips, the tiles that run at one time use more memory than L2 holds. Shorter strips have more
 * halo. */
static __host__ __device__ constexpr int walk_stages(int height)
{
    return height == 9 ? 2 : 3;
}

static __host__ __device__ constexpr int walk_strip(int height)
{
    return height <= 3 ? 6 : height == 5 ? 10 : height == 7 ? 9 : 8;
}

/* The registers are enough for 4 blocks per multiprocessor. With more blocks, the window would spill. */
template <int HEIGHT, int PARTS, int LEVEL>
static __global__ void __launch_bounds__(32 * warps, 4) tensor_walk(const __grid_constant__ struct tensor_launch tensor)
{
    constexpr int stage_rows = walk_rows(HEIGHT), stage_bytes = stage_rows * walk_pitch, stages = walk_stages(HEIGHT);
    constexpr int pairs = (HEIGHT + 1) / 2;
    extern __shared__ uint4 ring[];
    const struct launch &launch = tensor.launch;
    const int lane = (int)threadIdx.x, g = lane / 4, t = lane % 4;
    const int index = (int)(blockIdx.x * warps + threadIdx.y);
    if (index >= tensor.tiles)
        return;
    const struct tile tile = find_tile(tensor, index, walk_columns);
    const int input_rows = tile.rows + HEIGHT - 1;
    const uint32_t mine = shared_address(ring) + threadIdx.y * stages * stage_bytes, end = mine + stages * stage_bytes;

    /* Taps for outputs that start in an upper row, and for those that start in a lower one. */
    uint32_t taps[2][PARTS][pairs][2];
#pragma unroll
    for (int p = 0; p < PARTS; p++)
#pragma unroll
        for (int lower = 0; lower < 2; lower++)
#pragma unroll
            for (int m = 0; m < pairs; m++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    taps[lower][p][m][e] = __ldg(tensor.table + (((p * 2 + lower) * pairs + m) * 2 + e) * 32 + lane);

    /* A lane loads 16 bytes of a row. */
    const int load_x = tile.x - walk_before;
    const struct edges edges = find_edges(load_x, walk_pitch / 4, chunk, launch.width);
    const bool loads = 4 * lane >= edges.first && 4 * lane < edges.last;
    int load_row = 0;
    uint32_t load_to = mine;
    auto load_stage = [&]() {
        if (load_row < input_rows) {
            const int y = tile.y - launch.anchor_y + load_row;
            if (loads)
                load_column<stage_rows, 16>(launch, tile.in, y, load_x + 16 * lane, load_to + 16 * lane, walk_pitch);
            gather_edges(launch, tile.in, edges, y, stage_rows, load_x, load_to, walk_pitch, lane, 32);
        }
        copy_commit();
        load_row += stage_rows;
        load_to = load_to + stage_bytes == end ? mine : load_to + stage_bytes;
    };
#pragma unroll 1
    for (int s = 0; s < stages - 1; s++)
        load_stage();

    /* Loaded from memory, so that the compiler keeps them in four registers. If it knows that they are equal, it makes
     * them anew for each product. */
    matrix bias, zero = {};
#pragma unroll
    for (int k = 0; k < 4; k++)
        bias.v[k] = (int)__ldg(tensor.table + PARTS * 4 * pairs * 32 + k);
    /* For a pair of rows: chunks g and g + 8 of the upper row, then those of the lower row. */
    uint32_t window[pairs][walk_tiles][4] = {};

    const uint32_t selector = swap_selector(t);
    const int column = tile.x + quad_offset(lane), left = launch.width - column;
    const bool full = tile.x + walk_columns <= launch.width;
    uint8_t *to = tile.out + (tile.y - (HEIGHT - 1)) * (ptrdiff_t)launch.out_row + column;
    const uint32_t lane_from = walk_before - tensor.lead + chunk * g + 4 * t;
    uint32_t from = mine;
    int r = 0; /* the stage's first row */
    /* IS_STEADY says whether all outputs of the stage are inside the image. */
    auto work_on_stage = [&](auto is_steady) {
        constexpr bool steady = decltype(is_steady)::value;
#pragma unroll
        for (int u = 0; u < stage_rows; u += 2) {
            const int newest = u / 2 % pairs;
#pragma unroll
            for (int c = 0; c < walk_tiles; c++)
#pragma unroll
                for (int k = 0; k < 4; k++)
                    window[newest][c][k] = read_shared(from + lane_from + (u + k / 2) * walk_pitch + c * tile_columns +
                                                       k % 2 * (tile_columns / 2));
            if (!steady && (r + u + 1 < HEIGHT - 1 || r + u - (HEIGHT - 1) >= tile.rows)) {
                to += 2 * launch.out_row;
                continue;
            }
            /* Rows u and u + 1 of the stage are the last under two output rows. The first of these starts in row u -
             * (HEIGHT - 1), the upper row of a pair because HEIGHT is odd; the second starts one row below. */
            matrix sum[2][walk_tiles];
#pragma unroll
            for (int p = 0; p < PARTS; p++) {
                if (p > 0)
#pragma unroll
                    for (int o = 0; o < 2; o++)
#pragma unroll
                        for (int c = 0; c < walk_tiles; c++)
#pragma unroll
                            for (int k = 0; k < 4; k++)
                                sum[o][c].v[k] = sum[o][c].v[k] * 256 + (p == PARTS - 1 ? bias.v[k] : 0);
#pragma unroll
                for (int m = 0; m < pairs; m++)
#pragma unroll
                    for (int o = 0; o < 2; o++)
#pragma unroll
                        for (int c = 0; c < walk_tiles; c++) {
                            const matrix &before = m > 0 || p > 0 ? sum[o][c] : PARTS == 1 ? bias : zero;
                            const uint32_t *pair = window[(newest + 1 + m) % pairs][c];
                            if (o == 0 && m == pairs - 1) /* the filter's last row lies over the upper one only */
                                multiply16(sum[o][c], pair, taps[o][p][m][0], before);
                            else if (o == 1 && m == 0) /* and the first over the lower one only */
                                multiply16(sum[o][c], pair + 2, taps[o][p][m][1], before);
                            else
                                multiply32(sum[o][c], pair, taps[o][p][m], before);
                        }
            }
#pragma unroll
            for (int o = 0; o < 2; o++) {
                uint32_t word[walk_tiles];
#pragma unroll
                for (int c = 0; c < walk_tiles; c++) {
                    int level[4];
#pragma unroll
                    for (int k = 0; k < 4; k++)
                        level[k] = quick_level<LEVEL>(tensor, sum[o][c].v[k]);
                    word[c] = swap_pairs(pack_pair(level[0], level[1], pack_pair(level[2], level[3], 0)), 1, selector);
                }
                if (steady)
#pragma unroll
                    for (int c = 0; c < walk_tiles; c++)
                        *(uint32_t *)(to + c * tile_columns) = word[c];
                else if ((unsigned)(r + u + o - (HEIGHT - 1)) < (unsigned)tile.rows)
#pragma unroll
                    for (int c = 0; c < walk_tiles; c++)
                        store_guarded(to + c * tile_columns, word[c], left - c * tile_columns);
                to += launch.out_row;
            }
        }
    };
#pragma unroll 1
    for (r = 0; r < input_rows; r += stage_rows) {
        copy_wait<stages - 2>();
        load_stage();
        if (full && r >= HEIGHT - 1 && r + stage_rows <= input_rows)
            work_on_stage(known<true>());
        else
            work_on_stage(known<false>());
        from = from + stage_bytes == end ? mine : from + stage_bytes;
    }
}

#endif
