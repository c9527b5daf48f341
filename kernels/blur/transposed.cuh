/* SPDX-License-Identifier: MIT
 *
 * Wide blurs on compute capability 9.0. Each pass is a kernel of its own that convolves the rows of a matrix and stores
 * the outputs transposed. So both passes are the same kernel: the first one makes m of the rows of the image, as a
 * matrix for each byte of m, and the second one makes outputs of the rows of m, which are the columns of the image.
 *
 *     samples of 64 rows          row taps           m
 *     [64 terms, in   ]       [. . a b c . . ]      [64 rows   ]
 *     [shared memory, ]   x   [. a b c . . . ]  =   [and       ]  transposed, to memory
 *     [stage by stage ]       [a b c . . . . ]      [64 columns]
 *
 * Hopper's warpgroup products take the first operand from registers and the second one from shared memory, where blocks
 * of 8 rows of 16 bytes may lie at any distance from each other. The rows of the matrix of taps are the outputs from
 * the last to the first. So the block of outputs 8 n and terms 16 k depends on n + 2 k alone, and one list of blocks of
 * 128 bytes has the matrices of all terms. It stays in shared memory.
 *
 * A warpgroup loads stages of 64 terms of 64 rows into a ring. Two or three more read them, for 64 columns each. They
 * do not wait for each other, so one rounds and stores while the others multiply.
 *
 * gaussian:170 of 16 bits has 1701 taps, so its windows have 1792 samples: 15 * 1792 multiply-adds of bytes per output,
 * or 13.3 million cycles for 16384 x 16384, at 4096 per cycle on each of 132 multiprocessors. */
#ifndef GPUCONV_BLUR_TRANSPOSED_CUH
#define GPUCONV_BLUR_TRANSPOSED_CUH

#include "kernels/blur/sums.cuh"
#include "kernels/shared/warpgroup.cuh"

static constexpr int part_side = 64; /* rows, columns and terms that are worked on at a time */
static constexpr int pass_slots = 8; /* slots of the ring */
static constexpr int pass_ahead = 4; /* stages whose copies run */
static constexpr int barrier_bytes = 2 * 8 * pass_slots;
static constexpr int row_padding = 16; /* bytes between rows in shared memory, so that eight rows are in all banks */
static constexpr size_t sums_bytes = 256 << 20; /* bytes of m, about: as many columns are worked on at a time */

/* Warpgroups of a block that multiply, as many as the registers allow. */
template <typename T>
constexpr int groups_of = sizeof(T) == 1 ? 3 : 2;

/* Threads of a block: each warpgroup, and one that loads. A multiprocessor has 65,536 registers. */
template <typename T>
constexpr int pass_threads = 128 * (groups_of<T> + 1);
static constexpr int load_registers = 40;
template <typename T>
constexpr int multiply_registers = (65536 / 128 - load_registers) / groups_of<T> / 8 * 8;

/* Matrices of bytes in device memory: of each plane, a part for each byte of a value. */
struct matrices {
    unsigned char *first;
    size_t row, part, plane; /* bytes from one to the next */
};

/* The argument of the kernel. */
struct pass_call {
    struct matrices in, edges, out;
    const unsigned char *taps; /* blocks of 128 bytes, part after part */
    int part_blocks;
    int rows, length;  /* the input's rows, and the samples of a row */
    int first, end;    /* the outputs of a row */
    int lead;          /* terms from the first of a window to its first output */
    int left, right_x; /* columns of `edges` left of the image, and the first one of those right of it */
    int slabs;         /* slabs of 32 terms in a window */
    int across, down, tiles;
    struct passes passes;
    struct matrices image; /* samples, for an unsharp mask */
    unsigned char *marks;  /* as in blur */
    size_t marks_row;
};

/* Write to OUT the WIDTH columns of the edges of rows of IN: LEFT from column -LEAD on, then those from RIGHT_X on. */
template <typename T>
static __global__ void __launch_bounds__(256)
    fill_edges(struct launch launch, int length, int lead, int left, int right_x)
{
    const int2 tile = block_tile(launch);
    const int x = tile.x * 64 + (int)threadIdx.x % 64, y = tile.y * 4 + (int)threadIdx.x / 64;
    if (x >= launch.width || y >= launch.height)
        return;
    const int from = border_index(x < left ? x - lead : right_x + x - left, length, launch.border);
    out_row<T>(launch, y)[x] = from < 0 ? 0 : in_row<T>(launch, y)[from];
}

/* What a pass works on: in the first one, samples of T become m; in the second one, the bytes of m become samples. */
template <typename T, bool FIRST>
struct pass_of {
    static constexpr int groups = groups_of<T>, threads = pass_threads<T>;
    static constexpr int parts = parts_of<T>, bytes = FIRST ? (int)sizeof(T) : parts, weights = bytes + parts - 1;
    static constexpr bool paired = FIRST && sizeof(T) == 2; /* both bytes of a sample are side by side */
    static constexpr int planes = paired ? 1 : bytes,
                         in_bytes = paired ? 2 : 1; /* planes of a stage, bytes of a value */
    static constexpr int pitch = part_side * in_bytes + row_padding, plane = part_side * pitch, stage = planes * plane;
    static constexpr int out_bytes = FIRST ? 1 : (int)sizeof(T), out_parts = FIRST ? parts : 1;
    static constexpr int out_pitch = part_side * out_bytes + row_padding;
    static constexpr int fixed = barrier_bytes + groups * part_side * out_pitch + pass_slots * stage;
};

#if __CUDA_ARCH_FEAT_SM90_ALL
/* Start d += samples * taps. */
static __device__ __forceinline__ void pass_product(int (&d)[32], const uint32_t (&a)[4], uint64_t taps)
{
    asm volatile("wgmma.mma_async.sync.aligned.m64n64k32.s32.u8.u8 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, "
                 "%12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, "
                 "{%32, %33, %34, %35}, %36, 1;"
                 : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]), "+r"(d[6]), "+r"(d[7]),
                   "+r"(d[8]), "+r"(d[9]), "+r"(d[10]), "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]),
                   "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]), "+r"(d[21]), "+r"(d[22]),
                   "+r"(d[23]), "+r"(d[24]), "+r"(d[25]), "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]),
                   "+r"(d[30]), "+r"(d[31])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(taps));
}

/* Where a tile is: its first row, and its number among those side by side. */
struct tile_position {
    int plane, row, across;
};

static __device__ __forceinline__ struct tile_position find_position(const struct pass_call &call, int tile)
{
    const int below = tile / call.across, plane = below / call.down;
    return {plane, (below - plane * call.down) * part_side, tile - below * call.across};
}

/* Load STAGES stages of each of the block's tiles to the ring, by a warpgroup. */
template <typename T, bool FIRST>
static __device__ __forceinline__ void load_stages(const struct pass_call &call, int stages, uint32_t ring,
                                                   uint32_t full, uint32_t empty)
{
    using of = pass_of<T, FIRST>;
    constexpr int units = part_side * of::in_bytes / 16, step = 128 / units; /* units of a row; rows at a time */
    const int unit = (int)threadIdx.x % units, y = (int)threadIdx.x % 128 / units;
    int pending = 0;
    struct ring_slot at = {0, 0}, arriving = {0, 0};
    auto arrive = [&]() {
        barrier_arrive(full + 8 * arriving.slot);
        arriving.advance(pass_slots);
    };
    for (int tile = (int)blockIdx.x; tile < call.tiles; tile += (int)gridDim.x) {
        const struct tile_position at_tile = find_position(call, tile);
        const int last = call.rows - 1 - at_tile.row; /* the rows below repeat it */
        int x = call.first + at_tile.across * part_side * of::groups - call.lead;
        for (int s = 0; s < stages; s++, x += part_side) {
            const bool inside = x >= 0 && x + part_side <= call.length;
            const struct matrices &in = inside ? call.in : call.edges;
            const int column = inside ? x : x < 0 ? x + call.lead : call.left + x - call.right_x;
            const unsigned char *const from =
                in.first + at_tile.plane * in.plane + at_tile.row * in.row + column * of::in_bytes + 16 * unit;
            const uint32_t to = ring + at.slot * of::stage + 16 * unit;
            barrier_wait(empty + 8 * at.slot, at.parity ^ 1);
#pragma unroll
            for (int p = 0; p < of::planes; p++)
#pragma unroll
                for (int k = 0; k < part_side; k += step) {
                    const int row = k + y, slot = row / 16 * 16 + row % 2 * 8 + row % 16 / 2;
                    copy_start<16, true>(to + p * of::plane + slot * of::pitch,
                                         from + p * in.part + min(row, last) * in.row);
                }
            copy_commit();
            at.advance(pass_slots);
            copy_wait<pass_ahead>();
            if (++pending > pass_ahead)
                arrive();
        }
    }
    copy_wait<0>();
    for (pending = min(pending, pass_ahead); pending > 0; pending--)
        arrive();
}
#endif

/* A pass. Row y of a stage is at 8 (y % 2) + y / 2 of its 16, so that a lane has two neighbours of each column. */
template <typename T, bool FIRST, bool UNSHARP>
static __global__ void __launch_bounds__(pass_threads<T>, 1)
    convolve_rows(const __grid_constant__ struct pass_call call)
{
#if __CUDA_ARCH_FEAT_SM90_ALL
    using of = pass_of<T, FIRST>;
    constexpr int parts = of::parts, bytes = of::bytes, weights = of::weights, out_bytes = of::out_bytes;
    extern __shared__ uint4 memory[];
    const int thread = (int)threadIdx.x, lane = thread % 32, g = lane / 4, t = lane % 4;
    const int warpgroup = __shfl_sync(~0u, thread / 128, 0); /* so that the compiler sees that it is one for a warp */
    /* The taps are not at the end: memcheck takes a matrix of 64 outputs by 32 terms to have no gaps or overlaps. */
    const uint32_t full = shared_address(memory), empty = full + 8 * pass_slots, taps = full + barrier_bytes;
    const uint32_t transposed = taps + parts * call.part_blocks * 128;
    const uint32_t ring = transposed + of::groups * part_side * of::out_pitch;
    const int my_stages = (call.slabs + 1) / 2, stages = my_stages + of::groups - 1;

    if (thread == 0)
        for (int k = 0; k < pass_slots; k++) {
            barrier_make(full + 8 * k, 128);
            barrier_make(empty + 8 * k, 128 * of::groups);
        }
    for (int k = thread; k < parts * call.part_blocks * 8; k += of::threads)
        copy_start<16, true>(taps + 16 * k, call.taps + 16 * k);
    copy_commit();
    copy_wait<0>();
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();

    if (warpgroup == of::groups) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(load_registers));
        load_stages<T, FIRST>(call, stages, ring, full, empty);
        return;
    }

    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(multiply_registers<T>));
    const int warp = thread / 32 % 4;
    const uint32_t lane_from = ring + (warp * 16 + lane % 8 + (of::paired ? 0 : lane / 8 % 2 * 8)) * of::pitch +
                               (of::paired ? lane / 8 : lane / 16) * 16;
    auto read = [&](uint32_t(&value)[bytes][4], uint32_t from) {
        if constexpr (of::paired) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                uint32_t word[4];
                read_matrices(word, from + h * 8 * of::pitch);
#pragma unroll
                for (int k = 0; k < 2; k++) {
                    value[0][2 * k + h] = __byte_perm(word[2 * k], word[2 * k + 1], 0x6420);
                    value[1][2 * k + h] = __byte_perm(word[2 * k], word[2 * k + 1], 0x7531);
                }
            }
        } else {
#pragma unroll
            for (int p = 0; p < bytes; p++)
                read_matrices(value[p], from + p * of::plane);
        }
    };
    int sum[weights][32];
    /* The last products but one have ended when this returns: those of the other VALUE. */
    auto multiply = [&](const uint32_t(&value)[bytes][4], uint64_t tap) {
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
        for (int p = 0; p < parts; p++)
#pragma unroll
            for (int i = 0; i < bytes; i++)
                pass_product(sum[p + i], value[i], tap + (uint32_t)(p * call.part_blocks * (128 >> 4)));
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
    };
    struct ring_slot at = {0, 0};
    const uint32_t my_transposed = transposed + warpgroup * part_side * of::out_pitch;
    const uint32_t transposed_to =
        my_transposed + (part_side - 1 - 2 * t) * of::out_pitch + (16 * warp + 2 * g) * out_bytes;
    constexpr int units = part_side * out_bytes / 16, unit_values = 16 / out_bytes; /* units of a transposed row */
    auto meet = [&]() { asm volatile("bar.sync %0, 128;" ::"r"(warpgroup + 1) : "memory"); };

#pragma unroll 1
    for (int tile = (int)blockIdx.x; tile < call.tiles; tile += (int)gridDim.x) {
#pragma unroll
        for (int w = 0; w < weights; w++)
#pragma unroll
            for (int k = 0; k < 32; k++)
                sum[w][k] = (int)(FIRST     ? row_start<parts>(call.passes, w)
                                  : UNSHARP ? 0
                                            : column_start<parts>(call.passes, w));
        uint64_t tap = describe(taps, 256);
#pragma unroll 1
        for (int s = 0, slabs = call.slabs; s < stages; s++) {
            barrier_wait(full + 8 * at.slot, at.parity);
            if (s >= warpgroup && slabs > 0) {
                uint32_t even[bytes][4], odd[bytes][4];
                const uint32_t from = lane_from + at.slot * of::stage;
                read(even, from);
                multiply(even, tap);
                if (slabs > 1) {
                    read(odd, from + 32 * of::in_bytes);
                    multiply(odd, tap + (512 >> 4));
                }
                slabs -= 2;
                tap += 1024 >> 4;
            }
            barrier_arrive(empty + 8 * at.slot); /* each thread, so that racecheck knows who has read */
            at.advance(pass_slots);
        }
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        const struct tile_position at_tile = find_position(call, tile);
        const int plane = at_tile.plane, x = at_tile.row; /* x is the column in the transposed matrix */
        const int y = call.first + (at_tile.across * of::groups + warpgroup) * part_side;
        /* Each thread has some units of the transposed rows. */
        auto each_unit = [&](const struct matrices &out, auto take) {
#pragma unroll
            for (int k = thread % 128; k < part_side * units; k += 128) {
                const int down = k / units, right = k % units * unit_values;
                if (y + down < call.end)
                    take(out.first + plane * out.plane + (size_t)(y + down) * out.row + (x + right) * out_bytes,
                         my_transposed + down * of::out_pitch + k % units * 16,
                         FIRST ? unit_values : min(call.rows - x - right, unit_values)); /* m can hold all */
            }
        };
        if (UNSHARP) {
            each_unit(call.image, [&](const unsigned char *from, uint32_t to, int count) {
                uint32_t word[4] = {};
                if (count == unit_values)
                    *(uint4 *)word = __ldg((const uint4 *)from);
                else
#pragma unroll
                    for (int e = 0; e < 16; e++)
                        word[e / 4] |= e < count * out_bytes ? (uint32_t)from[e] << e % 4 * 8 : 0;
                write_shared16(to, word);
            });
            meet();
        }

        uint32_t level[32], marks = 0;
#pragma unroll
        for (int k = 0; k < 32; k++) {
            uint32_t one[weights];
#pragma unroll
            for (int w = 0; w < weights; w++) {
                asm volatile("" : "+r"(sum[w][k])::"memory"); /* nothing may read the sums before this */
                one[w] = (uint32_t)sum[w][k];
            }
            if constexpr (UNSHARP) {
                const uint32_t at = transposed_to - (8 * (k / 4) + k % 2) * of::out_pitch + k / 2 % 2 * out_bytes;
                const int sample = read_sample<T>(at), detail = unsharp_detail<T, weights>(call.passes, one, sample);
                level[k] = (uint32_t)passes_unsharp(&call.passes, sample, detail);
                marks |= passes_has_detail(&call.passes, detail) ? 1u << k : 0;
            } else {
                level[k] = FIRST ? row_sum<parts>(call.passes, one) : column_level<parts>(call.passes, one);
            }
        }
        if (UNSHARP && call.marks != NULL)
            for (; marks != 0; marks &= marks - 1) {
                const int k = __ffs((int)marks) - 1, right = 16 * warp + 2 * g + k / 2 % 2;
                const int down = part_side - 1 - 2 * t - 8 * (k / 4) - k % 2;
                if (x + right < call.rows && y + down < call.end)
                    call.marks[(size_t)(y + down) * call.marks_row + x + right] = 1;
            }

#pragma unroll
        for (int p = 0; p < of::out_parts; p++) {
#pragma unroll
            for (int k = 0; k < 32; k += k % 2 == 0 ? 1 : 3) {
                const uint32_t to = transposed_to - (8 * (k / 4) + k % 2) * of::out_pitch;
                constexpr int lowest = FIRST || UNSHARP ? 0 : 3; /* byte of an output */
                if constexpr (out_bytes == 2)
                    write_shared(to, level[k] | level[k + 2] << 16);
                else
                    write_shared2(to, __byte_perm(level[k], level[k + 2], (lowest + p) * 0x11 + 0x40));
            }
            meet();
            struct matrices out = call.out;
            out.first += p * out.part;
            each_unit(out, [&](unsigned char *to, uint32_t from, int count) {
                const uint4 four = read_shared16(from);
                const uint32_t word[4] = {four.x, four.y, four.z, four.w};
                if (count == unit_values)
                    *(uint4 *)to = four;
                else
#pragma unroll
                    for (int e = 0; e < 16; e++)
                        if (e < count * out_bytes)
                            to[e] = (unsigned char)(word[e / 4] >> e % 4 * 8);
            });
            meet();
        }
    }
#else
    __trap(); /* no body: the launch fails */
#endif
}

/* ---- The launch ---- */

/* The window of a pass: see struct pass_call. */
struct window {
    int lead, slabs, blocks; /* the last of 128 bytes, for a part of the taps */
};

/* Output x has TAPS taps, the first one for sample x - ANCHOR. Samples, or parts of m, have IN_BYTES. */
static constexpr struct window find_window(int taps, int anchor, int in_bytes)
{
    const int unit = 16 / in_bytes, lead = (anchor + unit - 1) / unit * unit; /* copies are aligned to 16 bytes */
    const int slabs = (lead - anchor + taps + part_side - 1 + 31) / 32;
    return {lead, slabs, 4 * slabs + part_side / 8 - 2};
}

/* Bytes of shared memory of a block. */
template <typename T, bool FIRST>
static constexpr int pass_shared(int blocks)
{
    return pass_of<T, FIRST>::fixed + parts_of<T> * blocks * 128;
}

static constexpr int max_blocks = find_window(FILTER_PASS_MAX, 1, 1).blocks;
static_assert(pass_shared<uint8_t, true>(max_blocks) <= 227 << 10 &&
                  pass_shared<uint8_t, false>(max_blocks) <= 227 << 10 &&
                  pass_shared<uint16_t, true>(max_blocks) <= 227 << 10 &&
                  pass_shared<uint16_t, false>(max_blocks) <= 227 << 10,
              "what 9.0 has");
static_assert(3LL * FILTER_PASS_MAX * 255 * 255 < 1LL << 31, "sums of a weight are int");

/* Write the blocks of the parts of VECTOR: element N of row R of block B has the tap for output 63 - R - 8 n and term
 * N + 16 k, for all n and k with n + 2 k = B. PAIRED terms are as in lane_word. */
static unsigned char *fill_blocks(const int32_t *vector, int taps, int factor, int parts, struct window window,
                                  int anchor, bool paired, unsigned char *to)
{
    for (int p = 0; p < parts; p++)
        for (int k = 0; k < window.blocks * 128; k++) {
            const int e = k % 16, term = paired ? e / 4 * 2 + e % 2 + e % 4 / 2 * 8 : e;
            const int at = k / 16 + term - (part_side - 1) - (window.lead - anchor);
            *to++ = at >= 0 && at < taps ? (unsigned char)((uint32_t)(vector[at] * factor) >> 8 * p) : 0;
        }
    return to;
}

/* Set what follows from the window and the length of a row, and lay out the edges' rows. Returns their bytes. */
static size_t set_edges(struct pass_call *call, struct window window, int length, int groups, int in_bytes)
{
    const int width = part_side * groups, stages = (window.slabs + 1) / 2 + groups - 1;
    const int end = (length + width - 1) / width * width - width - window.lead + part_side * stages;
    const int right = length < part_side ? 0 : length - part_side + 1;
    call->length = length;
    call->lead = window.lead;
    call->slabs = window.slabs;
    call->part_blocks = window.blocks;
    call->left = (window.lead + part_side - 1) / part_side * part_side;
    call->right_x = (right + window.lead + part_side - 1) / part_side * part_side - window.lead;
    call->edges.row = (size_t)(call->left + (end > call->right_x ? end - call->right_x : 0)) * (size_t)in_bytes;
    return call->edges.row;
}

/* Queue the copies of the edges of COUNT matrices, each IN_NEXT or OUT_NEXT bytes after the last. */
template <typename T>
static bool launch_edges(const struct pass_call &call, int count, size_t in_next, size_t out_next, enum border border,
                         struct device *device, struct error *error)
{
    const struct layout layout = {64, 4, dim3(256)};
    struct launch launch = {};
    launch.in = call.in.first;
    launch.out = call.edges.first;
    launch.in_row = call.in.row;
    launch.in_plane = in_next;
    launch.out_row = call.edges.row;
    launch.out_plane = out_next;
    launch.width = (int)(call.edges.row / sizeof(T));
    launch.height = call.rows;
    launch.border = border;
    return launch_kernel(fill_edges<T>, launch, count, device, layout, error, call.length, call.lead, call.left,
                         call.right_x);
}

template <typename T, bool FIRST, bool UNSHARP>
static bool launch_pass(struct pass_call *call, int count, const char *name, struct device *device, struct error *error)
{
    using of = pass_of<T, FIRST>;
    const int width = part_side * of::groups, processors = device_get_info(device)->multiprocessors;
    call->across = (call->end - call->first + width - 1) / width;
    call->down = (call->rows + part_side - 1) / part_side;
    call->tiles = call->across * call->down * count;
    return launch_blocks(convolve_rows<T, FIRST, UNSHARP>, *call, call->tiles < processors ? call->tiles : processors,
                         dim3(of::threads), (size_t)pass_shared<T, FIRST>(call->part_blocks), name, device, error);
}

/* Queue both passes, for as many columns at a time as m can hold. If MARKS_ROW > 0, set *MARKS to the marks. */
template <typename T, bool UNSHARP>
static bool launch_transposed(const struct plan *plan, const struct passes &passes, const struct plane *in,
                              const struct plane *out, size_t marks_row, unsigned char **marks, struct device *device,
                              struct error *error)
{
    constexpr int parts = parts_of<T>, groups = groups_of<T>, width = part_side * groups;
    const struct filter *f = plan->filter;
    const size_t count = (size_t)in->count, side = part_side, row = ((size_t)in->height + side - 1) / side * side;
    const struct window across = find_window(f->width, f->anchor_x, sizeof(T));
    const struct window down = find_window(f->height, f->anchor_y, 1);
    struct pass_call first = {}, second = {};
    first.passes = second.passes = passes;
    first.taps = (const unsigned char *)device_table(device);
    second.taps = first.taps + parts * across.blocks * 128;

    const size_t fit = sums_bytes / (count * parts * row) / width, all = ((size_t)in->width + width - 1) / width;
    const size_t columns = (fit < 1 ? 1 : fit < all ? fit : all) * width;
    const size_t marks_bytes = marks_row * (size_t)in->height;
    first.in = {(unsigned char *)in->data, in->row_bytes, 0, in->plane_bytes};
    first.edges.plane = set_edges(&first, across, in->width, groups, sizeof(T)) * (size_t)in->height;
    second.edges.part = set_edges(&second, down, in->height, groups, 1) * columns;
    second.edges.plane = parts * second.edges.part;
    first.out.row = row;
    first.out.part = columns * row;
    first.out.plane = parts * first.out.part;
    void *scratch;
    if (!device_scratch(device, count * (first.out.plane + second.edges.plane + first.edges.plane) + marks_bytes,
                        &scratch, error))
        return false;
    unsigned char *const sums = (unsigned char *)scratch;
    second.edges.first = sums + count * first.out.plane;
    first.edges.first = second.edges.first + count * second.edges.plane;
    *marks = marks_bytes > 0 ? first.edges.first + count * first.edges.plane : NULL;
    second.marks_row = marks_row;
    second.in = first.out;
    second.in.first = sums;
    second.end = in->height;
    first.rows = in->height;

    if ((marks_bytes > 0 && !device_fill(device, *marks, 0, marks_bytes, error)) ||
        !launch_edges<T>(first, in->count, first.in.plane, first.edges.plane, plan->border, device, error))
        return false;
    for (int x = 0; x < in->width; x += (int)columns) {
        const size_t left = (size_t)x * sizeof(T);
        first.first = x;
        first.end = in->width - x < (int)columns ? in->width : x + (int)columns;
        first.out.first = sums - (size_t)x * row; /* column x is the first row of m */
        second.rows = first.end - x;
        second.image = {(unsigned char *)in->data + left, in->row_bytes, 0, in->plane_bytes};
        second.out = {(unsigned char *)out->data + left, out->row_bytes, 0, out->plane_bytes};
        second.marks = *marks != NULL ? *marks + x : NULL;
        /* All parts of all planes have equal distances. */
        if (!launch_pass<T, true, false>(&first, in->count, f->name, device, error) ||
            !launch_edges<uint8_t>(second, in->count * parts, second.in.part, second.edges.part, plan->border, device,
                                   error) ||
            !launch_pass<T, false, UNSHARP>(&second, in->count, f->name, device, error))
            return false;
    }
    return true;
}

#endif
