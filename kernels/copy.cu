/* SPDX-License-Identifier: MIT
 *
 * copy: the work of src/cpu/ on the GPU, for filters with one tap that change no sample. A thread copies 16 bytes (16
 * samples of uint8_t, 8 of uint16_t, 4 of float) of each of 4 rows. All its loads come first, then all its stores.
 *
 *     in   ....|....abcd|efghijkl|....    16 bytes of output start anywhere in the input: two aligned loads of 16 bytes
 *                  |<- 16 ->|             hold them, and are shifted into position in registers. The 2nd load of a
 *     out          |abcdefgh|             thread is the first of the next one, which L1 answers.
 *
 * Loads: 1/16 per output if the offset is a multiple of 16 bytes, else 2/16 (uint8_t). No arithmetic on samples.
 *
 * Edges: a row above or below the image costs only the computation of its number. If 16 bytes are not wholly inside the
 * image, in the input or in the output, the whole warp copies them, one sample per thread. So the edge of a row costs
 * about one iteration of a loop, and not the time of the slowest thread.
 *
 * Limits: filters of one tap equal to the scale, without offset and abs. */
#include "kernels/shared/conv.cuh"

static constexpr int rows = 4;                      /* rows of a thread: 4 or 8 loads of 16 bytes under way */
static constexpr int threads_x = 32, threads_y = 8; /* a warp works on one row at a time */

/* 16 bytes that start SKIP bytes after the first of LOW. If SKIP is 0, HIGH is not read. SKIP is the same for all
 * threads. */
template <typename T>
static __device__ __forceinline__ uint4 align_bytes(uint4 low, uint4 high, unsigned skip)
{
    uint32_t word[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int k = 0; k < 6; k++)
        word[k] = skip & 8 ? word[k + 2] : word[k];
#pragma unroll
    for (int k = 0; k < 5; k++)
        word[k] = skip & 4 ? word[k + 1] : word[k];
    if (sizeof(T) < 4)
#pragma unroll
        for (int k = 0; k < 4; k++)
            word[k] = __funnelshift_r(word[k], word[k + 1], 8 * (skip & 3));
    return make_uint4(word[0], word[1], word[2], word[3]);
}

/* 16 bytes of output in each of COUNT rows from y on; the first comes from row FROM_Y. */
template <typename T, bool ALIGNED, int COUNT>
static __device__ __forceinline__ void copy_rows(const struct launch &launch, int y, int x, int from_y, int aligned_x,
                                                 unsigned skip)
{
    const unsigned char *from = (const unsigned char *)(in_row<T>(launch, from_y) + aligned_x);
    unsigned char *to = (unsigned char *)(out_row<T>(launch, y) + x);
    uint4 low[COUNT], high[COUNT];
#pragma unroll
    for (int k = 0; k < COUNT; k++, from += launch.in_row) {
        low[k] = ((const uint4 *)from)[0];
        high[k] = ALIGNED ? low[k] : ((const uint4 *)from)[1];
    }
#pragma unroll
    for (int k = 0; k < COUNT; k++, to += launch.out_row)
        *(uint4 *)to = ALIGNED ? low[k] : align_bytes<T>(low[k], high[k], skip);
}

/* With four blocks per multiprocessor, there are registers for 8 loads in flight, 64 KB per multiprocessor. The H200
 * needs about 12 KB to hide a microsecond of memory latency at 2 TB/s in each direction.
 *
 * If ALIGNED, the offset is a multiple of 16 bytes. The filter is a single tap, and its anchor may lie elsewhere. */
template <typename T, bool ALIGNED>
static __global__ void __launch_bounds__(threads_x *threads_y, 4) copy(struct launch launch)
{
    constexpr int unit = 16 / (int)sizeof(T); /* samples of a thread in a row */
    const int2 tile = block_tile(launch);
    const int warp_x = tile.x * threads_x * unit, x = warp_x + (int)threadIdx.x * unit;
    const int y = (tile.y * threads_y + (int)threadIdx.y) * rows;
    const int from_y = y - launch.anchor_y, count = min(rows, launch.height - y); /* equal in the whole warp */

    const int from_x = x - launch.anchor_x, aligned_x = from_x & -unit;
    const unsigned skip = (unsigned)(from_x - aligned_x) * (unsigned)sizeof(T);
    const bool inside =
        aligned_x >= 0 && aligned_x + (ALIGNED ? 1 : 2) * unit <= launch.width && x + unit <= launch.width;
    if (inside && count == rows && from_y >= 0 && from_y + rows <= launch.height) {
        copy_rows<T, ALIGNED, rows>(launch, y, x, from_y, aligned_x, skip);
    } else if (inside) {
#pragma unroll 1
        for (int k = 0; k < count; k++) {
            const int edge_y = border_index(from_y + k, launch.height, launch.border);
            if (edge_y < 0)
                *(uint4 *)(out_row<T>(launch, y + k) + x) = make_uint4(0, 0, 0, 0);
            else
                copy_rows<T, ALIGNED, 1>(launch, y + k, x, edge_y, aligned_x, skip);
        }
    }

    for (unsigned edges = __ballot_sync(~0u, x < launch.width && !inside); edges != 0; edges &= edges - 1) {
        const int to_x = warp_x + (__ffs((int)edges) - 1) * unit + (int)threadIdx.x % unit;
        if (to_x >= launch.width)
            continue;
        const int edge_x = border_index(to_x - launch.anchor_x, launch.width, launch.border);
#pragma unroll 1
        for (int k = (int)threadIdx.x / unit; k < count; k += threads_x / unit) {
            const int edge_y = border_index(from_y + k, launch.height, launch.border);
            out_row<T>(launch, y + k)[to_x] = edge_x < 0 || edge_y < 0 ? (T)0 : in_row<T>(launch, edge_y)[edge_x];
        }
    }
}

extern "C" bool copy_prepare(struct plan *, struct device *, struct error *)
{
    return true; /* the offset is a parameter of the kernel */
}

extern "C" bool copy_launch(const struct plan *plan, struct device *device, const struct plane *in,
                            const struct plane *out, struct error *error)
{
    struct launch launch = make_launch(plan, in, out);
    launch.filter_width = launch.filter_height = 1;
    launch.anchor_x = -plan->shift_x;
    launch.anchor_y = -plan->shift_y;
    const int bytes = plan->shift_x * (int)sample_bytes(plan->sample);
    const int unit = 16 / (int)sample_bytes(plan->sample);
    void (*const kernel)(struct launch) =
        plan->sample == SAMPLE_U8    ? (bytes % 16 ? copy<uint8_t, false> : copy<uint8_t, true>)
        : plan->sample == SAMPLE_U16 ? (bytes % 16 ? copy<uint16_t, false> : copy<uint16_t, true>)
                                     : (bytes % 16 ? copy<float, false> : copy<float, true>);
    return launch_kernel(kernel, launch, in->count, device,
                         {threads_x * unit, threads_y * rows, dim3(threads_x, threads_y)}, error);
}
