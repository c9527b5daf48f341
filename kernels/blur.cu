/* SPDX-License-Identifier: MIT
 *
 * blur: the work of src/cpu/ on the GPU, for filters in two passes (struct filter) of up to 1701 taps a side, by the
 * integer matrix units: blurs, unsharp masks, wide boxes. Samples are uint8_t or uint16_t.
 *
 * Both passes are products of bytes with band matrices, as in tensor-core. A block walks down a strip of 32, 64 or 128
 * columns, 32 rows at a time. It has a warp for each 16 columns:
 *
 *     row taps         samples, in shared memory       rounded sums m of the rows, in a ring in shared memory
 *     [a b c . . ]     [32 samples of 8 rows,]         [blocks of 16 rows: of each column, 16 bytes side by side,]
 *     [. a b c . ]  x  [block after block    ]  ---->  [for each byte of m                                       ]
 *     [. . a b c ]
 *
 *     column taps      m, two blocks at a time         outputs
 *     [d e f . . ]     [32 rows of 8 columns,]         [16 rows of]
 *     [. d e f . ]  x  [pair after pair      ]  ---->  [ 8 columns]
 *
 * A lane's part of the first product is also its part of the second operand: rows 2 t, 2 t + 1, 8 + 2 t and 9 + 2 t of
 * column g, for lane (g, t) = (lane / 4, lane % 4). The operand should have rows 4 t to 4 t + 3 there. But the terms of
 * a sum may have any order, as long as the columns of the matrix of column taps have the same. The rows of the first
 * matrix, which are columns of the image, are ordered so that a lane ends with four outputs side by side.
 *
 * Numbers: a sample has 1 or 2 bytes, a tap and m have 2 or 3, all unsigned. The products of byte i of one and byte j
 * of the other are added up in the sum of weight i + j, below 3 * 1728 * 255^2 < 2^31. The whole, sum(weight w) 256^w,
 * has up to 53 bits, but only its upper bits are needed. floor(floor(a / 256) + b) = floor((a + 256 b) / 256). So the
 * sums are joined from the lowest on, with a shift and an addition each, in 32 bits.
 *
 * gaussian:8 of 16 bits has 81 taps, so its windows have 96 samples: 6 * 96 and 9 * 96 multiply-adds of bytes per
 * output. Loads: each sample once from memory; the halos of strips come from L2.
 *
 * On compute capability 9.0, wide filters have a kernel of their own (blur/transposed.cuh).
 *
 * Limits: filters in two passes whose ring fits in a block's shared memory. */
#include "kernels/blur/transposed.cuh"

#include <math.h>
#include <stdlib.h>

static constexpr int parts_max = 3;     /* bytes of a tap, and of m: one more than a sample has */
static constexpr int width_max = 128;   /* columns of a strip */
static constexpr int stages = 2;        /* stages of rows of samples; the block works on one of them */
static constexpr int segment_max = 4;   /* blocks of 32 samples of a window that are loaded at a time */
static constexpr int threads_max = 512; /* threads of a block of a kernel for any number of terms */
static constexpr int groups_max = 8;
static constexpr int transposed_taps = 2 * 88; /* taps of both passes from which on transposed.cuh is faster */
static constexpr int blocks_in_l1 = 8;         /* blocks of terms of uint8_t whose matrices stay in L1 */
static_assert((width_max - 16 + 32 * segment_max) * 2 <= 64 * 16,
              "the threads of the narrowest block load a row at once");

/* The argument of the kernel. */
struct blur_call {
    struct launch launch;
    struct passes passes;
    const uint32_t *taps;        /* the row's taps, then the column's: words or, unless `taps_in_shared`, matrices */
    int row_words, column_words; /* words of one part of the row's taps, and of the column's */
    bool taps_in_shared;
    struct used_blocks row_used[parts_max], column_used[parts_max];
    int strip;            /* output rows of a tile */
    int columns, tiles_y; /* tiles side by side, and one below the other */
    int tile_width;
    int shift;                     /* columns to the left of the image that the first tile also covers */
    int lead;                      /* samples from the first of a window to its first output */
    int row_blocks, column_blocks; /* blocks of 32 terms in a window */
    int segment;                   /* blocks of the row_blocks that are loaded at a time */
    int groups;                    /* groups of 32 rows that are worked on at a time; a warp has 16 columns of one */
    int pitch;                     /* bytes from a row of samples to the next */
    int row_log;                   /* the threads that load one row, 16 bytes each, are 2^row_log */
    int kernel_blocks;             /* BLOCKS of the kernel */
    int high;                      /* blocks of 16 rows that the outputs of 16 rows need */
    unsigned char *marks;          /* 1 for each pixel with detail in any plane; NULL if there is no threshold */
    size_t marks_row;              /* bytes */
};

/* Samples of a copy. */
template <typename T>
constexpr int unit = 16 / (int)sizeof(T);

/* Load the units that are not wholly inside the image, out of UNITS units of ROWS rows from row Y and column X on, a
 * word of 4 bytes at a time. The threads share the work. Not inlined, and called with values instead of the launch,
 * because few stages need it. */
template <typename T>
static __device__ __noinline__ void load_outside(const unsigned char *plane, size_t in_row, int width, int height,
                                                 enum border border, int y, int rows, int x, int units, uint32_t to,
                                                 int pitch)
{
    constexpr int word = 4 / (int)sizeof(T); /* samples of 4 bytes */
    const bool rows_inside = y >= 0 && y + rows <= height;
    const int before = x < 0 ? min((-x + unit<T> - 1) / unit<T>, units) : 0; /* units that begin left of the image */
    const int after = max(min((width - x) / unit<T>, units), before);        /* the first that ends right of it */
    const int count = 4 * (rows_inside ? before + units - after : units);    /* words of a row that are loaded here */
#pragma unroll 1
    for (int k = (int)threadIdx.x; k < rows * count; k += (int)blockDim.x) {
        const int r = k / count, i = k % count;
        const int w = i + (rows_inside && i >= 4 * before ? 4 * (after - before) : 0);
        const int from_y = border_index(y + r, height, border), from_x = x + w * word;
        const T *const row = (const T *)(plane + (size_t)max(from_y, 0) * in_row);
        uint32_t four = 0;
        if (from_y >= 0 && from_x >= 0 && from_x + word <= width)
            four = *(const uint32_t *)(row + from_x);
        else
            for (int b = 0; b < word && from_y >= 0; b++) {
                const int from = border_index(from_x + b, width, border);
                four |= (from < 0 ? 0 : (uint32_t)row[from]) << 8 * (int)sizeof(T) * b;
            }
        write_shared(to + r * pitch + 4 * w, four);
    }
}

static int parts_of_sample(enum sample sample)
{
    return (int)sample_bytes(sample) + 1;
}

/* The largest number of blocks of a window with a kernel of its own. */
template <typename T>
constexpr int blocks_max = sizeof(T) == 2 ? 2 : 3;

/* Blocks of threads per multiprocessor, by measurement: some registers spill, but more warps work. */
template <typename T>
static __host__ __device__ constexpr int resident(int blocks)
{
    return blocks == 0 ? 1 : blocks == 1 ? 3 : blocks == 2 && sizeof(T) == 1 ? 4 : 2;
}

/* The maximal number of threads of a block. */
static __host__ __device__ constexpr int threads_of(int blocks)
{
    return blocks == 0 ? threads_max : 2 * width_max;
}

/* ---- Samples: from memory to the stages in shared memory ---- */

/* Starts the copies of stages. A stage is `segment` blocks of the windows of the rows of all groups. The block loads
 * `step` rows at a time, and a thread 16 bytes of one. */
template <typename T, int BLOCKS>
struct stage_loader {
    static constexpr int bytes = (int)sizeof(T);

    const struct blur_call &call;
    const struct tile &tile;
    const int column, step, rows;
    const uint32_t first, stage_bytes;
    int y, block = 0; /* the next stage's first row, and its block of rows */
    const int end_y;
    const unsigned char *from;
    uint32_t thread_to, to;
    int x, units;               /* the first column of the next stage's rows, and their units */
    bool is_inside, all_inside; /* the image's columns: the thread's unit, and all */

    __device__ __forceinline__ stage_loader(const struct blur_call &call_, const struct tile &tile_, uint32_t first_,
                                            int rows_, int steps)
        : call(call_), tile(tile_), column((int)threadIdx.x & ((1 << call.row_log) - 1)),
          step((int)blockDim.x >> call.row_log), rows(rows_), first(first_), stage_bytes((uint32_t)(rows * call.pitch)),
          y(tile.y - call.launch.anchor_y), end_y(y + steps * rows),
          from(tile.in + (y + ((int)threadIdx.x >> call.row_log)) * (ptrdiff_t)call.launch.in_row +
               (tile.x - call.lead) * bytes + 16 * column),
          thread_to(((int)threadIdx.x >> call.row_log) * call.pitch + 16 * column), to(first)
    {
        set_columns();
    }

    __device__ __forceinline__ int row_blocks() const
    {
        return BLOCKS > 0 ? BLOCKS : call.row_blocks;
    }

    __device__ __forceinline__ int segment() const
    {
        return BLOCKS > 0 ? BLOCKS : call.segment;
    }

    __device__ __forceinline__ void set_columns()
    {
        x = tile.x - call.lead + 32 * block;
        units = (call.tile_width - 16 + 32 * min(segment(), row_blocks() - block)) / unit<T>;
        const int thread_x = x + column * unit<T>;
        is_inside = column < units && thread_x >= 0 && thread_x + unit<T> <= call.launch.width;
        all_inside = x >= 0 && x + units * unit<T> <= call.launch.width;
    }

    /* Start the copies of the next stage, if there is one. */
    __device__ __forceinline__ void load()
    {
        const struct launch &launch = call.launch;
        if (y < end_y) {
            const bool rows_inside = y >= 0 && y <= launch.height - rows;
            if (rows_inside && is_inside) {
                const ptrdiff_t next_from = step * (ptrdiff_t)launch.in_row;
                const uint32_t next_to = step * call.pitch;
                const unsigned char *thread_from = from + 32 * bytes * block;
                uint32_t at = to + thread_to;
#pragma unroll 1
                for (int r = 0; r < rows; r += 2 * step) {
                    copy_start<16, true>(at, thread_from);
                    copy_start<16, true>(at + next_to, thread_from + next_from);
                    thread_from += 2 * next_from;
                    at += 2 * next_to;
                }
            }
            if (!rows_inside || !all_inside)
                load_outside<T>(tile.in, launch.in_row, launch.width, launch.height, launch.border, y, rows, x, units,
                                to, call.pitch);
        }
        copy_commit();
        to = to == first + (stages - 1) * stage_bytes ? first : to + stage_bytes;
        if (BLOCKS == 0) {
            block = block + segment() < row_blocks() ? block + segment() : 0;
            set_columns();
            if (block > 0)
                return;
        }
        y += rows;
        from += rows * (ptrdiff_t)launch.in_row;
    }
};

/* BLOCKS of 32 terms in both windows, or 0 for any number. */
template <typename T, bool UNSHARP, int BLOCKS, bool SHARED>
static __global__ void __launch_bounds__(threads_of(BLOCKS), resident<T>(BLOCKS))
    blur(const __grid_constant__ struct blur_call call)
{
    constexpr int bytes = (int)sizeof(T), parts = parts_of<T>; /* bytes of a sample; parts of a tap and of m */
    constexpr int row_weights = bytes + parts - 1, column_weights = 2 * parts - 1;
    const int column_blocks = BLOCKS > 0 ? BLOCKS : call.column_blocks, groups = BLOCKS > 0 ? 1 : call.groups;
    extern __shared__ uint4 memory[];
    const struct launch &launch = call.launch;
    const int lane = (int)threadIdx.x % 32;
    /* One lane sends it to the others, so that the compiler sees that it is the same for a warp. */
    const int warp = __shfl_sync(~0u, (int)threadIdx.x / 32, 0);
    const struct tile tile = find_tile(call, (int)blockIdx.x, call.tile_width, call.shift);
    const int rows = groups * step_rows, blocks = 2 * groups; /* rows of a step, and its blocks of 16 rows */
    const int end = (tile.rows + 15) / 16, steps = (end + call.high + blocks - 2) / blocks;
    const int warps = call.tile_width / 16, down = groups == 1 ? 0 : warp / warps, across = warp - down * warps;

    const uint32_t first_stage = shared_address(memory), stage_bytes = (uint32_t)(rows * call.pitch);
    const uint32_t ring = first_stage + stages * stage_bytes;
    const uint32_t block_bytes = 16 * (uint32_t)call.tile_width; /* bytes of 16 rows, for one byte of m */
    const uint32_t ring_bytes = (uint32_t)(call.high + blocks - 1) * block_bytes; /* bytes of the ring, for one of m */

    typename std::conditional<SHARED, word_taps<parts, true>, matrix_taps<parts>>::type row_taps;
    typename std::conditional<SHARED, word_taps<parts, false>, matrix_taps<parts>>::type column_taps;
    if constexpr (SHARED) {
        const uint32_t words = ring + parts * ring_bytes;
        for (int k = (int)threadIdx.x; k < parts * (call.row_words + call.column_words); k += (int)blockDim.x)
            write_shared(words + 4 * k, call.taps[k]);
        row_taps = {words + 4 * lane_word(lane, true, bytes == 2), 4 * (uint32_t)call.row_words};
        column_taps = {words + 4 * (parts * call.row_words + lane_word(lane, false, true)),
                       4 * (uint32_t)call.column_words};
    } else {
        row_taps = {(const uint4 *)call.taps + lane};
        column_taps = {row_taps.at + parts * (BLOCKS > 0 ? BLOCKS : call.row_blocks) * 32};
    }

    stage_loader<T, BLOCKS> loader(call, tile, first_stage, rows, steps);
#pragma unroll 1
    for (int k = 0; k < stages - 1; k++)
        loader.load();

    /* To read samples, lane l gives the address of row l % 8 of matrix l / 8. For uint16_t, the four matrices are 32
     * samples of 8 rows; for uint8_t, 32 samples of 16 rows. */
    const uint32_t first_from = first_stage + down * step_rows * call.pitch + across * 16 * bytes +
                                (bytes == 2 ? lane % 8 * call.pitch + lane / 8 * 16
                                            : (lane / 16 * 8 + lane % 8) * call.pitch + lane / 8 % 2 * 16);
    uint32_t from = first_from;

    /* In the ring, the matrices are 8 columns of a block and of the next, then the next 8 columns. */
    const int column_group = across / 2, row_group = 2 * down + across % 2; /* groups of 32 columns, of 16 rows */
    const uint32_t ring_lane = ring + (column_group * 32 + lane / 16 * 8 + lane % 8) * 16;
    const uint32_t ring_to = ring + (across * 16 + lane / 4) * 16 + lane % 4 * 4;
    uint32_t write_at = 2 * down * block_bytes; /* the next block's offset in the ring */
    int group = 1 - call.high + row_group;      /* the warp's next 16 rows of outputs */
    const bool odd = lane % 2 != 0;
    const int x =
        tile.x + column_group * 32 + lane % 4 * 4; /* the first of four outputs in the first chunk of columns */
    const int to_x = odd ? x + 12 : x;             /* the first of eight outputs that are stored */
    int out_y = 16 * group + lane / 4;             /* their row; the others are eight rows below it */
    unsigned char *to = tile.out + (tile.y + out_y) * (ptrdiff_t)launch.out_row + to_x * bytes;
    /* Its first block in the ring, or the next one: block 1 - high is 2 * groups modulo the blocks of the ring. */
    uint32_t read_at = (blocks + row_group + lane / 8 % 2) % (call.high + blocks - 1) * block_bytes;

#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        matrix row[row_weights][eights];
#pragma unroll
        for (int w = 0; w < row_weights; w++)
#pragma unroll
            for (int k = 0; k < 4 * eights; k++)
                row[w][k / 4].v[k % 4] = (int)row_start<parts>(call.passes, w);
        auto row_at = row_taps;
        for (int k = 0; k < loader.row_blocks();) {
            copy_wait<stages - 2>();
            __syncthreads();
            loader.load();
            const int last = min(k + loader.segment(), loader.row_blocks());
#pragma unroll(BLOCKS > 0 ? BLOCKS : 1)
            for (uint32_t at = from; k < last; k++, at += 32 * bytes) {
                uint32_t taps[parts][4], samples[bytes][eights][2];
                row_at.load(taps);
                read_samples(at, call.pitch, samples);
                add_products<(BLOCKS > 0)>(row, taps, samples, call.row_used, k);
            }
            from = from == first_from + (stages - 1) * stage_bytes ? first_from : from + stage_bytes;
        }
#pragma unroll
        for (int b = 0; b < eights / 2; b++) {
            write_block<parts>(call.passes, row, b, ring_to + write_at, ring_bytes);
            write_at = write_at + block_bytes == ring_bytes ? 0 : write_at + block_bytes;
        }
        write_at += (blocks - 2) * block_bytes;
        write_at -= write_at >= ring_bytes ? ring_bytes : 0;
        __syncthreads();

        if (group >= 0 && group < end) {
            quads<T> out, in;
            if (UNSHARP)
                load_quads<T>(launch, tile, x, out_y, in);
            matrix column[column_weights][eights];
#pragma unroll
            for (int w = 0; w < column_weights; w++)
#pragma unroll
                for (int k = 0; k < 4 * eights; k++)
                    column[w][k / 4].v[k % 4] = UNSHARP ? 0 : (int)column_start<parts>(call.passes, w);
            uint32_t at = read_at;
            auto column_at = column_taps;
#pragma unroll(BLOCKS > 0 ? BLOCKS : 1)
            for (int k = 0; k < column_blocks; k++) {
                uint32_t taps[parts][4], sums[parts][eights][2];
                column_at.load(taps);
                read_sums(ring_lane + at, ring_bytes, sums);
                add_products<(BLOCKS > 0)>(column, taps, sums, call.column_used, k);
                at += 2 * block_bytes;
                at -= at >= ring_bytes ? ring_bytes : 0;
            }
            const uint32_t marks = finish_quads<T, parts, UNSHARP>(call.passes, column, in, out);
            if (UNSHARP && call.marks != NULL)
                store_marks(launch, marks, call.marks + (tile.y + out_y) * (ptrdiff_t)call.marks_row + x,
                            call.marks_row, tile.y + out_y, x);
            store_quads<T>(out, odd, to, launch.out_row, to_x >= 0 ? tile.rows - out_y : 0, launch.width - to_x);
        }
        group += blocks;
        out_y += rows;
        to += rows * (ptrdiff_t)launch.out_row;
        read_at += blocks * block_bytes;
        read_at -= read_at >= ring_bytes ? ring_bytes : 0;
    }
}

/* A pixel without detail in any plane keeps its samples. A thread has four samples of a row side by side. */
template <typename T>
static __global__ void __launch_bounds__(256)
    keep_unmarked(struct launch launch, const unsigned char *marks, size_t marks_row)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * 128 + 4 * ((int)threadIdx.x % 32), y = tile.y * 8 + (int)threadIdx.x / 32;
    if (x >= launch.width || y >= launch.height)
        return;
    const uint32_t four = *(const uint32_t *)(marks + y * marks_row + x);
    const T *in = in_row<T>(launch, y) + x;
    T *out = out_row<T>(launch, y) + x;
#pragma unroll
    for (int k = 0; k < 4; k++)
        if ((four >> 8 * k & 255) == 0 && x + k < launch.width)
            out[k] = in[k];
}

/* ---- The table of taps ---- */

/* Write COUNT words (see lane_word) for each part of VECTOR, whose first tap is over term LEAD for the first output. TO
 * is all zeros. */
static void fill_words(const int32_t *vector, int taps, int factor, int parts, int lead, bool paired, int count,
                       uint32_t *to)
{
    for (int p = 0; p < parts; p++)
        for (int word = 0; word < count; word++, to++)
            for (int e = 0; e < 4; e++) {
                const int at = word - 15 - lead + (paired ? e % 2 + 8 * (e / 2) : e);
                if (at >= 0 && at < taps)
                    *to |= ((uint32_t)(vector[at] * factor) >> 8 * p & 255) << 8 * e;
            }
}

/* Write the matrices of such words: for each block of terms and each part, 16 bytes for each lane. Returns their
 * end. */
static uint32_t *fill_matrices(const uint32_t *words, int count, int parts, int blocks, bool of_rows, bool paired,
                               uint32_t *to)
{
    for (int b = 0; b < blocks; b++)
        for (int p = 0; p < parts; p++)
            for (int k = 0; k < 4 * 32; k++)
                *to++ = words[p * count + 32 * b + lane_word(k / 4, of_rows, paired) + k % 4 / 2 * 16 -
                              k % 2 * below(of_rows)];
    return to;
}

static struct used_blocks find_used(const int32_t *vector, int count, int factor, int part, int lead)
{
    int first = count, last = -1; /* taps */
    for (int k = 0; k < count; k++)
        if ((uint32_t)(vector[k] * factor) >> 8 * part & 255) {
            first = k < first ? k : first;
            last = k;
        }
    if (last < 0)
        return {0, 0};
    first = (lead + first) / 32; /* a tap is over as many terms as there are outputs */
    return {first, (lead + last + 15) / 32 - first + 1};
}

/* The factors of all taps. With that of the row, row_shift of uint16_t is at least 16. With that of the column, the
 * scale of uint8_t is 2^24. Taps have as many bytes as before. */
struct factors {
    int row, column;
};

/* The numbers of a launch that follow from the filter and the sample type alone. */
static struct factors arrange(const struct plan *plan, struct blur_call *call)
{
    struct factors factors = {1, 1};
    const struct filter *f = plan->filter;
    const int parts = parts_of_sample(plan->sample);
    call->passes = plan->passes;
    for (; parts == 3 && call->passes.row_shift < 16; factors.row *= 2) {
        call->passes.row_shift++;
        call->passes.row_half *= 2;
    }
    for (; parts == 2 && call->passes.scale_shift < 24; factors.column *= 2) {
        call->passes.scale_shift++;
        call->passes.scale *= 2;
        call->passes.half *= 2;
    }
    call->lead = (f->anchor_x + 7) / 8 * 8;
    call->shift = plan->sample == SAMPLE_U16 ? 0 : (16 - call->lead % 16) % 16; /* copies are aligned to 16 bytes */
    call->row_blocks = (call->lead - f->anchor_x + f->width + 15 + 31) / 32;
    call->column_blocks = (f->height + 15 + 31) / 32;
    call->high = (f->height + 15 + 15) / 16;
    const int blocks = call->row_blocks > call->column_blocks ? call->row_blocks : call->column_blocks;
    if (f->amount == 0 && blocks <= (plan->sample == SAMPLE_U16 ? blocks_max<uint16_t> : blocks_max<uint8_t>))
        call->row_blocks = call->column_blocks = call->kernel_blocks = blocks;
    call->row_words = 32 * call->row_blocks + 16; /* see lane_word */
    call->column_words = 32 * call->column_blocks + 16;
    const int segments = (call->row_blocks + segment_max - 1) / segment_max;
    call->segment = (call->row_blocks + segments - 1) / segments;
    for (int p = 0; p < parts; p++) {
        call->row_used[p] = find_used(f->row, f->width, factors.row, p, call->lead - f->anchor_x);
        call->column_used[p] = find_used(f->column, f->height, factors.column, p, 0);
    }
    return factors;
}

/* ---- The launch ---- */

typedef void blur_function(struct blur_call);

template <typename T>
static blur_function *kernel_of(const struct blur_call *call)
{
    const bool unsharp = call->passes.amount != 0;
    if constexpr (blocks_max<T> >= 3)
        if (call->kernel_blocks == 3)
            return blur<T, false, 3, false>;
    return call->kernel_blocks == 1   ? blur<T, false, 1, false>
           : call->kernel_blocks == 2 ? blur<T, false, 2, false>
           : call->taps_in_shared     ? (unsharp ? blur<T, true, 0, true> : blur<T, false, 0, true>)
                                      : (unsharp ? blur<T, true, 0, false> : blur<T, false, 0, false>);
}

/* The columns and groups of a tile, and what of the windows is loaded at a time. Returns the bytes of shared memory of
 * a block. The rows of eight samples that a warp reads at a time should be in all banks, so the pitch is an odd
 * multiple of 16 bytes if PADDED. */
static size_t set_shape(struct blur_call *call, int width, int groups, int segment, bool padded, enum sample sample)
{
    call->tile_width = width;
    call->groups = groups;
    call->segment = segment;
    call->pitch = (width - 16 + 32 * segment) * (int)sample_bytes(sample);
    call->row_log = 2; /* a thread has two rows or more: 8 << row_log >= width */
    while (16 << call->row_log < call->pitch || 8 << call->row_log < width)
        call->row_log++;
    call->pitch += padded && call->pitch / 16 % 2 == 0 ? 16 : 0;
    const int ring = (call->high + 2 * groups - 1) * 16 * width, words = call->row_words + call->column_words;
    return (size_t)(stages * groups * step_rows * call->pitch) +
           (size_t)parts_of_sample(sample) *
               ((size_t)ring + (call->taps_in_shared ? (size_t)words * sizeof(uint32_t) : 0));
}

/* What choose_shape gives a kernel: the bytes of shared memory of a block, and the blocks of a multiprocessor. */
struct shape {
    size_t shared;
    int blocks;
};

/* Choose the shape with which most warps work on a multiprocessor, and of these the widest one. The taps are in
 * shared memory unless they are few, or twice as many warps fit without them. If nothing fits, the pitch is
 * unpadded. */
static struct shape choose_shape(struct blur_call *call, enum sample sample, size_t block_shared)
{
    const bool any = call->kernel_blocks == 0;
    const int all = threads_of(call->kernel_blocks) * (sample == SAMPLE_U16 ? resident<uint16_t>(call->kernel_blocks)
                                                                            : resident<uint8_t>(call->kernel_blocks));
    const int segment = call->segment;
    struct blur_call best = *call;
    struct shape shape = {set_shape(&best, 32, 1, any ? 1 : segment, false, sample), 1};
    int threads = 0; /* threads of a multiprocessor */
    const bool few = sample == SAMPLE_U8 && call->row_blocks + call->column_blocks <= blocks_in_l1;
    for (int in_shared = any && !few; in_shared >= 0; in_shared--, threads = threads > 0 ? 2 * threads - 1 : 0) {
        call->taps_in_shared = in_shared;
        for (int width = width_max; width >= 32; width /= 2)
            for (int groups = 1; groups <= (any ? groups_max : 1); groups *= 2)
                for (int s = segment; s >= (any ? 1 : segment); s--) {
                    const size_t shared = set_shape(call, width, groups, s, true, sample);
                    const int by_memory = (int)((block_shared + 1024) / (shared + 1024)); /* CUDA takes 1 KB of each */
                    const int by_threads = all / (2 * width * groups);
                    const int blocks = by_memory < by_threads ? by_memory : by_threads;
                    if (blocks * 2 * width * groups > threads) {
                        threads = blocks * 2 * width * groups;
                        shape = {shared, blocks};
                        best = *call;
                    }
                }
    }
    *call = best;
    return shape;
}

/* Are both passes done one after the other (transposed.cuh)? */
static bool is_transposed(const struct plan *plan, struct device *device)
{
    const struct filter *f = plan->filter;
    return device_get_info(device)->code_has_wgmma && f->width + f->height >= transposed_taps;
}

extern "C" bool blur_prepare(struct plan *plan, struct device *device, struct error *error)
{
    const struct filter *f = plan->filter;
    const int parts = parts_of_sample(plan->sample);
    const bool paired = plan->sample == SAMPLE_U16;
    struct blur_call call = {};
    const struct factors factors = arrange(plan, &call);
    if (is_transposed(plan, device)) {
        const struct window across = find_window(f->width, f->anchor_x, (int)sample_bytes(plan->sample));
        const struct window down = find_window(f->height, f->anchor_y, 1);
        const size_t bytes = 128 * (size_t)(parts * (across.blocks + down.blocks));
        unsigned char *const blocks = (unsigned char *)malloc(bytes);
        if (blocks == NULL)
            return error_no_memory(error, "the taps of %s", f->name);
        unsigned char *const to =
            fill_blocks(f->row, f->width, factors.row, parts, across, f->anchor_x, paired, blocks);
        fill_blocks(f->column, f->height, factors.column, parts, down, f->anchor_y, false, to);
        const bool done = upload_table(device, blocks, bytes, error);
        free(blocks);
        return done;
    }
    choose_shape(&call, plan->sample, device_get_info(device)->block_shared);
    const size_t row_words = (size_t)(parts * call.row_words),
                 all_words = row_words + (size_t)(parts * call.column_words);
    const size_t matrices = 4 * 32 * (size_t)(parts * (call.row_blocks + call.column_blocks));
    uint32_t *const words = (uint32_t *)calloc(all_words + matrices, sizeof *words);
    if (words == NULL)
        return error_no_memory(error, "the taps of %s", f->name);
    fill_words(f->row, f->width, factors.row, parts, call.lead - f->anchor_x, paired, call.row_words, words);
    fill_words(f->column, f->height, factors.column, parts, 0, true, call.column_words, words + row_words);
    uint32_t *to = fill_matrices(words, call.row_words, parts, call.row_blocks, true, paired, words + all_words);
    fill_matrices(words + row_words, call.column_words, parts, call.column_blocks, false, true, to);
    const bool done = upload_table(device, call.taps_in_shared ? words : words + all_words,
                                   (call.taps_in_shared ? all_words : matrices) * sizeof *words, error);
    free(words);
    return done;
}

/* The fused kernel, for tiles of all planes. */
static bool launch_fused(const struct plan *plan, struct blur_call *call, const struct plane *in, struct device *device,
                         struct error *error)
{
    const struct device_info *info = device_get_info(device);
    call->taps = (const uint32_t *)device_table(device);
    const struct shape shape = choose_shape(call, plan->sample, info->block_shared);
    blur_function *const kernel = plan->sample == SAMPLE_U16 ? kernel_of<uint16_t>(call) : kernel_of<uint8_t>(call);
    call->columns = (in->width + call->shift + call->tile_width - 1) / call->tile_width;
    choose_strip(call, in, call->groups * step_rows, plan->filter->height + step_rows,
                 (double)info->multiprocessors * shape.blocks);
    return launch_blocks(kernel, *call, call->columns * call->tiles_y * in->count,
                         dim3((unsigned)(2 * call->tile_width * call->groups)), shape.shared, plan->filter->name,
                         device, error);
}

extern "C" bool blur_launch(const struct plan *plan, struct device *device, const struct plane *in,
                            const struct plane *out, struct error *error)
{
    struct blur_call call = {};
    arrange(plan, &call);
    call.launch = make_launch(plan, in, out);
    call.marks_row = plan->passes.threshold > 0 ? ((size_t)in->width + 3) / 4 * 4 : 0;
    const bool is_16_bit = plan->sample == SAMPLE_U16;
    if (is_transposed(plan, device)) {
        const bool unsharp = plan->passes.amount != 0;
        auto *const run = is_16_bit ? (unsharp ? launch_transposed<uint16_t, true> : launch_transposed<uint16_t, false>)
                                    : (unsharp ? launch_transposed<uint8_t, true> : launch_transposed<uint8_t, false>);
        if (!run(plan, call.passes, in, out, call.marks_row, &call.marks, device, error))
            return false;
    } else {
        const size_t marks_bytes = call.marks_row * (size_t)in->height;
        if (marks_bytes > 0 && !(device_scratch(device, marks_bytes, (void **)&call.marks, error) &&
                                 device_fill(device, call.marks, 0, marks_bytes, error)))
            return false;
        if (!launch_fused(plan, &call, in, device, error))
            return false;
    }
    const struct layout layout = {128, 8, dim3(256)};
    return call.marks == NULL ||
           launch_kernel(is_16_bit ? keep_unmarked<uint16_t> : keep_unmarked<uint8_t>, call.launch, in->count, device,
                         layout, error, (const unsigned char *)call.marks, call.marks_row);
}
