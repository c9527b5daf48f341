/* SPDX-License-Identifier: MIT
 *
 * The kernel of tensor-core for filters beyond tensor-walk.cuh on compute capability 9.0: windows of up to 48 samples,
 * as many rows and parts as fit in shared memory (31 x 31 with taps of one part, 15 x 15 with two or more).
 *
 * Hopper's warpgroup products read both operands from shared memory, where blocks of 8 rows of 16 bytes may lie at any
 * distance from each other. So a row of the image is a matrix as it is:
 *
 *     bytes  0 .. 15 | 16 .. 31 | 32 .. 47 | ...       column n of the matrix = chunk n of 16 outputs,
 *            column 0  column 1   column 2             its lower 16 bytes at 16 n, its upper 16 at 16 n + 16:
 *                      column 0's  column 1's          the next column's lower 16, which are read again
 *                      upper 16    upper 16
 *
 * A warpgroup computes 4 rows of 128 such chunks at a time. Row 16 y + x of the matrix is output x of the chunk in row
 * y. There is a product over UNITS times 16 bytes for each of the fh + 3 rows of samples under them. The matrix of taps
 * holds filter row i - y for row i. With UNITS = 3, three products take two rows: 32 bytes of one row, then its last 16
 * and the next row's first 16, then the next row's other 32. All matrices of taps stay in shared memory, with a ring of
 * rows that asynchronous copies fill.
 *
 * Multiply-adds per output: 32 (fh + 3) for windows of 32, 48 (fh + 3) for 48; 15 x 15 576 (225 are useful), 31 x 31
 * 1632 (961), at four times the rate of mma.sync a cycle a multiprocessor that mma.sync reaches half of. Registers hold
 * sums only, and the warps only issue, round and store. */
#ifndef GPUCONV_TENSOR_WIDE_CUH
#define GPUCONV_TENSOR_WIDE_CUH

#include "kernels/shared/warpgroup.cuh"
#include "kernels/tensor-core/tensor.cuh"

static constexpr int wide_strip = 1024; /* rows of a tile at most: it has to fill its ring before it starts */

#if __CUDA_ARCH_FEAT_SM90_ALL
/* Start d += taps * samples. */
static __device__ __forceinline__ void wide_product(int (&d)[64], uint64_t taps, uint64_t samples)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n128k32.s32.s8.u8 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                 "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, "
                 "%52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, %64, %65, 1;"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]),
                   "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]),
                   "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]),
                   "+r"(d[23]), "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]),
                   "+r"(d[30]), "+r"(d[31]), "+r"(d[32]), "+r"(d[33]), "+r"(d[34]), "+r"(d[35]), "+r"(d[36]),
                   "+r"(d[37]), "+r"(d[38]), "+r"(d[39]), "+r"(d[40]), "+r"(d[41]), "+r"(d[42]), "+r"(d[43]),
                   "+r"(d[44]), "+r"(d[45]), "+r"(d[46]), "+r"(d[47]), "+r"(d[48]), "+r"(d[49]), "+r"(d[50]),
                   "+r"(d[51]), "+r"(d[52]), "+r"(d[53]), "+r"(d[54]), "+r"(d[55]), "+r"(d[56]), "+r"(d[57]),
                   "+r"(d[58]), "+r"(d[59]), "+r"(d[60]), "+r"(d[61]), "+r"(d[62]), "+r"(d[63])
                 : "l"(taps), "l"(samples));
}
#endif

template <int UNITS, int LEVEL>
static __global__ void __launch_bounds__(128 * wide_groups(UNITS), 1)
    tensor_wide(const __grid_constant__ struct tensor_launch tensor)
{
#if __CUDA_ARCH_FEAT_SM90_ALL
    constexpr int threads = 128 * wide_groups(UNITS), stage_rows = wide_stage(UNITS);
    constexpr int pitch = wide_pitch(UNITS), stage_bytes = stage_rows * pitch;
    extern __shared__ uint4 ring[];
    const struct launch &launch = tensor.launch;
    const int thread = (int)threadIdx.x, warp = thread / 32 % 4, lane = thread % 32, g = lane / 4, t = lane % 4;
    const int warpgroup = __shfl_sync(~0u, thread / 128, 0); /* so that the compiler sees that it is one for a warp */
    const struct tile tile = find_tile(tensor, (int)blockIdx.x, wide_columns);
    const uint32_t full = shared_address(ring), empty = full + 8 * wide_slots_max, taps = empty + 8 * wide_slots_max;
    const uint32_t stages = taps + tensor.parts * tensor.terms * term_bytes;
    const uint32_t capacity = tensor.slots * stage_bytes;

    /* The barrier of a full stage waits for the copies of all threads. That of an empty stage waits until all warps
     * have multiplied. */
    if (thread < tensor.slots) {
        barrier_make(full + 8 * thread, threads);
        barrier_make(empty + 8 * thread, threads / 32);
    }
    for (int k = thread; k < tensor.parts * tensor.terms * term_bytes / 16; k += threads)
        copy_start<16, true>(taps + 16 * k, (const uint4 *)tensor.table + k);

    /* 256 threads load 8 bytes each of a row. As many rows are loaded at a time as there are such sets of threads. The
     * first threads also load the rest of the rows. */
    constexpr int loaders = 256, loader_rows = stage_rows * loaders / threads, rest = pitch / 8 - loaders;
    static_assert(rest * stage_rows <= threads && pitch % 8 == 0, "one round for the rows' ends");
    const int load_x = tile.x - tensor.lead; /* a multiple of 8 */
    const struct edges edges = find_edges(load_x, pitch / 4, launch.filter_width, launch.width);
    const int my_row = thread / loaders * loader_rows, my_word = 2 * (thread % loaders);
    const bool loads = my_word >= edges.first && my_word < edges.last;
    const int rest_row = thread / rest, rest_word = 2 * (loaders + thread % rest);
    const bool loads_rest = rest_row < stage_rows && rest_word >= edges.first && rest_word < edges.last;
    const int input_rows = tile.rows + launch.filter_height - 1;
    int load_row = 0;
    uint32_t load_to = stages;
    auto load_stage = [&]() {
        if (load_row < input_rows) {
            const int y = tile.y - launch.anchor_y + load_row;
            if (loads)
                load_column<loader_rows, 8>(launch, tile.in, y + my_row, load_x + 4 * my_word,
                                            load_to + my_row * pitch + 4 * my_word, pitch);
            if (loads_rest)
                load_column<1, 8>(launch, tile.in, y + rest_row, load_x + 4 * rest_word,
                                  load_to + rest_row * pitch + 4 * rest_word, pitch);
            gather_edges(launch, tile.in, edges, y, stage_rows, load_x, load_to, pitch, thread, threads);
        }
        copy_commit();
        load_row += stage_rows;
        load_to = load_to + stage_bytes == stages + capacity ? stages : load_to + stage_bytes;
    };
    /* Wait for the thread's copies, and let the matrix unit read them. */
    auto finish_loads = [&]() {
        copy_wait<0>();
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    };
    for (int s = 0; s < tensor.slots - 1; s++)
        load_stage();
    finish_loads();
    __syncthreads();
    for (int s = 0; s < tensor.slots - wide_ahead; s++)
        barrier_arrive(full + 8 * s);

    /* One of the two stages ahead has arrived, but the other warps do not know it yet. The other is loaded while this
     * group of rows is worked on. So a warpgroup may be a group of rows ahead of another: one multiplies while another
     * rounds and stores. */
    struct ring_slot ready = {tensor.slots - wide_ahead, 0}, arriving = ready, working = {0, 0}, leaving = {0, 0};
    const uint32_t selector = swap_selector(g);
    const int column = tile.x + 32 * t + g % 2 * 16 + g / 2 * 4;
    uint8_t *to = tile.out + (tile.y + warpgroup * wide_rows + warp) * launch.out_row + column;
    uint32_t first = warpgroup * wide_rows * pitch; /* the offset in the ring of the rows under the matrix */
    const long long offset = (long long)tensor.bias * tensor.multiplier;
#pragma unroll 1
    for (int r = 0; r < tile.rows; r += stage_rows) {
        finish_loads();
        barrier_arrive(full + 8 * arriving.slot);
        arriving.advance(tensor.slots);
        if (r > 0) {
            barrier_wait(full + 8 * ready.slot, ready.parity);
            ready.advance(tensor.slots);
        }
        int sum[64] = {};
        uint64_t tap = describe(taps, 1024);
#pragma unroll 1
        for (int p = 0; p < tensor.parts; p++) {
#pragma unroll
            for (int k = 0; k < 64; k++)
                sum[k] *= 256;
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
            uint32_t at = first;
#pragma unroll 1
            for (int term = 0; term < tensor.terms; term += UNITS == 2 ? 1 : 3) {
                const uint64_t row = describe(stages + at, 16);
                wide_product(sum, tap, row);
                tap += term_bytes >> 4;
                at += pitch;
                if (UNITS == 3) {
                    /* The last 16 bytes of this row's windows and the first 16 of the next row's; then the other 32 of
                     * the next row's. */
                    wide_product(sum, tap, describe(stages + at - pitch + 32, pitch - 32));
                    tap += term_bytes >> 4;
                    wide_product(sum, tap, row + ((pitch + 16) >> 4));
                    tap += term_bytes >> 4;
                    at += pitch;
                }
                if (at == capacity)
                    at = 0;
            }
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
            if (p == 0) {
                /* The products run asynchronously. Meanwhile, load to where the last group of rows began. */
                if (r > 0) {
                    barrier_wait(empty + 8 * leaving.slot, leaving.parity);
                    leaving.advance(tensor.slots);
                }
                load_stage();
            }
            asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
#pragma unroll
            for (int k = 0; k < 64; k++)
                asm volatile("" : "+r"(sum[k])::"memory"); /* nothing may read the sums before this */
        }
        if (lane == 0)
            barrier_arrive(empty + 8 * working.slot);
        working.advance(tensor.slots);
        first = first + stage_bytes >= capacity ? first + stage_bytes - capacity : first + stage_bytes;

        /* Columns from the lane's first on; 0 below the tile. */
        const int left = r + warpgroup * wide_rows + warp < tile.rows ? launch.width - column : 0;
        const bool whole = tile.x + wide_columns <= launch.width && left > 0;
#pragma unroll
        for (int j = 0; j < wide_chunks / 8; j++) {
            int level[4];
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int s = LEVEL == LEVEL_ABSOLUTE ? abs(sum[4 * j + e]) : sum[4 * j + e];
                const int scaled = (int)((long long)s * tensor.multiplier + offset >> 32); /* one instruction */
                level[e] = LEVEL == LEVEL_SCALE ? scaled : scaled >> tensor.shift;
            }
            const uint32_t word =
                swap_pairs(pack_pair(level[0], level[2], pack_pair(level[1], level[3], 0)), 4, selector);
            if (whole)
                *(uint32_t *)(to + 8 * wide_chunk * j) = word;
            else
                store_guarded(to + 8 * wide_chunk * j, word, left - 8 * wide_chunk * j);
        }
        to += stage_rows * launch.out_row;
    }
#else
    __trap(); /* no body: the launch fails */
#endif
}

#endif
