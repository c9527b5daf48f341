/* SPDX-License-Identifier: MIT
 *
 * A warp's walk down a strip of rows, shared by register-tiled, separable and gradient.
 *
 *     rows on their way, in shared memory       4 columns of one lane        sums of the outputs that a row
 *     [....|...........  row r + 6  ..|....]                                 belongs to, in registers
 *     [....|...........  ...........  ..|....]    [....][iiii][....]  ---->  [oooo] [oooo] [oooo] ...
 *     [....|...........  row r      ..|....]
 *
 * Each warp has its own ring of rows in shared memory. It is 128 columns wide, plus the filter's reach on both sides.
 * Copies to it are asynchronous (sm_80 and later) and several rows ahead. So no lane waits for memory, and no warp
 * waits at a barrier. Samples outside the image are filled in when the ring is loaded, so the code after it treats all
 * rows and columns alike.
 *
 * A row is read from the ring once and added at once to all of its SIZE rows of outputs, whose sums are in registers.
 * sum[i] is the sum of the output that has filter row i over this row. With the addition it moves up to sum[i + 1], for
 * i from the last to the first. That costs no instruction, because a multiply-add may write to another register than it
 * reads from. So the loop's body is one row, or two, and stays in the instruction cache. */
#ifndef GPUCONV_STRIP_CUH
#define GPUCONV_STRIP_CUH

#include "base/round.h"
#include "kernels/shared/copies.cuh"
#include "kernels/shared/quads.cuh"

static constexpr int columns = 4;     /* outputs of a lane side by side: a quad */
static constexpr int strip_warps = 4; /* warps of a block, side by side: memory that is used at one time is compact */
static constexpr int strip_width = 32 * columns;

/* Rows of a ring: enough copies on their way to hide memory's latency. A row of uint8_t has a quarter of the bytes. */
template <typename T>
constexpr int ring_slots = sizeof(T) == 1 ? 16 : 8;

/* The samples to add before the window, so that it starts at a multiple of 4. */
static __host__ __device__ constexpr int lead_of(int anchor_x)
{
    return (4 - anchor_x % 4) % 4;
}

/* Samples of a row that a lane reads for SIZE taps with the anchor in the centre. */
template <int SIZE>
constexpr int window_of = round_up(lead_of(SIZE / 2) + SIZE + columns - 1, 4);

/* Load a row of a ring that is partly outside the image, in words of 4 bytes. Not inlined, and called with values
 * instead of the launch, because few warps need it. */
template <typename T>
static __device__ __noinline__ void load_border_row(const unsigned char *plane, size_t in_row, int width, int height,
                                                    enum border border, int y, int x, uint32_t to, int words)
{
    constexpr int word = 4 / (int)sizeof(T); /* samples of 4 bytes */
    const int from_y = border_index(y, height, border);
    const T *row = (const T *)(plane + (size_t)max(from_y, 0) * in_row);
#pragma unroll 1
    for (int k = (int)threadIdx.x; k < words; k += 32) {
        const int from_x = x + k * word;
        if (from_y >= 0 && from_x >= 0 && from_x + word <= width) {
            copy_start<4, false>(to + 4 * k, row + from_x);
            continue;
        }
        uint32_t four = 0;
        if (sizeof(T) == 4) {
            const int at = border_index(from_x, width, border);
            if (from_y >= 0 && at >= 0) {
                copy_start<4, false>(to + 4 * k, row + at);
                continue;
            }
        } else if (from_y >= 0) {
#pragma unroll
            for (int b = 0; b < word; b++) {
                const int at = border_index(from_x + b, width, border);
                four |= (at < 0 ? 0 : (uint32_t)row[at]) << 8 * (int)sizeof(T) * b;
            }
        }
        write_shared(to + 4 * k, four);
    }
}

/* A warp's ring of SLOTS rows, which are loaded and used STEP_ROWS at a time. Its rows start BEFORE samples left of the
 * strip, so they start at a multiple of 16 bytes. */
template <typename T, int REACH, int STEP_ROWS>
struct ring {
    static constexpr int slots = ring_slots<T>, step_rows = STEP_ROWS;
    static constexpr int unit = 16 / (int)sizeof(T); /* samples of a copy */
    static constexpr bool wide = sizeof(T) == 1;     /* wider rows are faster without */
    static constexpr int before = round_up(REACH, unit), samples = strip_width + 2 * before, copies = samples / unit;
    static constexpr int row_bytes = samples * (int)sizeof(T), bytes = slots * row_bytes;
    static constexpr int together = copies <= 16 ? step_rows : 1; /* rows that one instruction copies */
    static constexpr int lanes = 32 / together;                   /* lanes of a row */
    static_assert(step_rows <= 2 && slots % step_rows == 0, "the rows of a step lie one after the other");

    uint32_t first;            /* the shared address of slot 0 */
    uint32_t to;               /* the shared address of the slot to load next */
    const unsigned char *from; /* the source of this lane's copy, if the row is wholly inside the image */
    int x;                     /* the image's column at which rows start */
    int next;                  /* the image's row to load next */
    int end;                   /* the row after the last that the strip needs */
    bool inside;               /* are all columns inside the image? */
    bool clear;                /* are all columns inside, and all rows except those of the first steps? */

    static __device__ __forceinline__ int lane()
    {
        return (int)threadIdx.x % lanes;
    }

    static __device__ __forceinline__ uint32_t lane_bytes()
    {
        return threadIdx.x / lanes * row_bytes + 16 * lane();
    }

    __device__ __forceinline__ ring(const struct launch &launch, const unsigned char *memory, int strip_x, int y,
                                    int rows)
    {
        first = shared_address(memory);
        to = first;
        x = strip_x - before;
        next = y;
        end = y + rows;
        inside = x >= 0 && x + samples <= launch.width;
        clear = inside && end + step_rows - 1 <= launch.height;
        from = launch.in + blockIdx.z * launch.in_plane +
               (int64_t)(next + (int)threadIdx.x / lanes) * (int64_t)launch.in_row +
               (x + unit * lane()) * (int)sizeof(T);
    }

    /* Start the copies of the rows of the next step. If CLEAR, `clear` is set and the first rows are done. A loop that
     * knows this calls no function. Across a call, uniform registers would not keep the taps. */
    template <bool CLEAR>
    __device__ __forceinline__ void load(const struct launch &launch)
    {
        if (next < end) {
            if (CLEAR || (inside && next >= 0 && next + step_rows <= launch.height)) {
#pragma unroll
                for (int i = 0; i < step_rows; i += together)
#pragma unroll
                    for (int k = 0; k < copies; k += lanes)
                        if (k + lanes <= copies || lane() < copies - k)
                            copy_start<16, wide>(to + lane_bytes() + i * row_bytes + 16 * k,
                                                 from + i * launch.in_row + 16 * k);
            } else {
#pragma unroll 1
                for (int i = 0; i < step_rows; i++)
                    load_border_row<T>(launch.in + blockIdx.z * launch.in_plane, launch.in_row, launch.width,
                                       launch.height, launch.border, next + i, x, to + i * row_bytes, row_bytes / 4);
            }
            next += step_rows;
            from += step_rows * launch.in_row;
            to += step_rows * row_bytes;
            if (to == first + bytes)
                to = first;
        }
        copy_commit();
    }

    /* Fill the ring except for the rows of one step. */
    __device__ __forceinline__ void start(const struct launch &launch)
    {
#pragma unroll 1
        for (int r = 0; r < slots - step_rows; r += step_rows)
            load<false>(launch);
    }

    /* Wait for the rows of the current step. The rows of other steps may still be on their way, except those of the
     * step whose slots are free next. */
    __device__ __forceinline__ void wait() const
    {
        copy_wait<slots / step_rows - 2>();
    }

    /* The address of the lane's window in slot 0, for a filter that starts LEAD samples into it. */
    __device__ __forceinline__ uint32_t window(int lead) const
    {
        return first + (before - REACH - lead + columns * (int)threadIdx.x) * (int)sizeof(T);
    }

    /* The address of a window one step later. */
    __device__ __forceinline__ uint32_t following(uint32_t from, uint32_t begin) const
    {
        const uint32_t next_from = from + step_rows * row_bytes;
        return next_from == begin + bytes ? begin : next_from;
    }
};

/* A quad at FROM in shared memory. */
template <typename T>
static __device__ __forceinline__ raw_quad<T> read_shared_quad(uint32_t from)
{
    if constexpr (sizeof(T) == 1)
        return {read_shared(from)};
    else if constexpr (sizeof(T) == 2)
        return {read_shared8(from)};
    else {
        const uint4 four = read_shared16(from);
        return {make_float4(__uint_as_float(four.x), __uint_as_float(four.y), __uint_as_float(four.z),
                            __uint_as_float(four.w))};
    }
}

/* The window of COUNT samples from the ring. */
template <typename T, typename Sum, int COUNT>
static __device__ __forceinline__ void read_window(uint32_t from, Sum (&v)[COUNT])
{
#pragma unroll
    for (int k = 0; k < COUNT; k += 4) {
        const quad<Sum> four = read_shared_quad<T>(from + k * (int)sizeof(T)).template unpack<Sum>();
#pragma unroll
        for (int c = 0; c < 4; c++)
            v[k + c] = four.v[c];
    }
}

/* The address in this column one row below. */
template <typename T>
static __device__ __forceinline__ T *next_row(T *at, size_t row_bytes)
{
    return (T *)((char *)at + row_bytes);
}

/* The strip of the image that a warp computes. */
struct strip {
    int x, y, rows; /* the position of its first output, and its rows */
};

static __device__ __forceinline__ struct strip find_strip(const struct launch &launch)
{
    const int2 tile = block_tile(launch);
    struct strip strip;
    /* The warp's number is the same for all lanes. The compiler sees this only if one lane sends the number to the
     * others. */
    strip.x = (tile.x * strip_warps + __shfl_sync(~0u, (int)threadIdx.y, 0)) * strip_width;
    strip.y = tile.y * launch.strip;
    strip.rows = min(launch.strip, launch.height - strip.y);
    return strip;
}

/* Choose the rows of strips, SHORTEST to LONGEST in steps of STEP, so that the multiprocessor with most blocks ends
 * first. A block has WIDTH columns, and takes the time of its rows and of HALO tenths of a row. Long strips have fewer
 * halo rows; short ones share the work more evenly. The start and the end of a launch take as long as four blocks.
 * Measured on an H200, for floats of 2 to 268 megapixels and strips of 6 to 128 rows: filters of 7 x 7 to 25 x 25 take
 * 2.5% longer with these choices than with the best ones, and took 10% longer with powers of two. HALO fits these times
 * best: 0.8 rows for each row of taps, 2 rows for one of a separable filter, and 4 rows for a gradient. */
static inline int strip_rows(int shortest, int longest, int step, int halo, int width, const struct device *device,
                             const struct plane *in)
{
    const int64_t multiprocessors = device_get_info(device)->multiprocessors;
    const int64_t across = (int64_t)(in->width + width - 1) / width * in->count;
    int64_t least = INT64_MAX;
    int chosen = longest;
    for (int rows = shortest; rows <= longest; rows += step) {
        const int64_t blocks = (across * ((in->height + rows - 1) / rows) + multiprocessors - 1) / multiprocessors;
        if ((10 * rows + halo) * (blocks + 4) < least) {
            least = (10 * rows + halo) * (blocks + 4);
            chosen = rows;
        }
    }
    return chosen;
}

/* A kernel that walks down strips. */
typedef void walk_kernel(struct launch, struct level);

/* Launch a kernel in strips of at most LONGEST rows. HALO is as for strip_rows. */
static inline bool launch_walk(walk_kernel *kernel, const struct level &level, int longest, int halo,
                               const struct plan *plan, struct device *device, const struct plane *in,
                               const struct plane *out, struct error *error)
{
    const int strip = strip_rows(8, longest, 2, halo, strip_warps * strip_width, device, in);
    return launch_kernel(kernel, make_launch(plan, in, out), in->count, device,
                         {strip_warps * strip_width, strip, dim3(32, strip_warps), strip}, error, level);
}

#endif
