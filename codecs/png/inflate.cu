/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of inflate_parts.c.
 * Inflating on a GPU. A stream has no index, but a block with codes of its own is recognised by its header, at whatever
 * bit it begins. So the stream is cut into parts at such blocks:
 *
 *     find      a thread tests 32 bits for the beginning of such a header
 *     validate  a thread reads the lengths of the codes of what looks like one
 *     rank      the remaining beginnings get numbers, in their order
 *     measure   inflate_parts.cu decodes from one beginning until a block ends at another, and counts bytes
 *     link      a warp follows the parts from the first bit on; false beginnings are left out
 *     list      these parts become slices of about 64 KiB
 *     decode    inflate_parts.cu decodes the slices to symbols of 16 bits. What a slice repeats from those before it
 *               becomes a marker, a position in the 32 KiB before the slice
 *     windows   these 32 KiB become known, slice after slice; groups of slices first without the group before
 *     resolve   all symbols become bytes
 *
 * Each write is bounded by a count, a part ends with its stream, and all counts have limits. Damaged streams, and those
 * with too many blocks for these limits, go to the CPU, which reports the error. A kernel returns at once if one before
 * it has set the status. */
#include "png/inflate_parts.cuh"

#include "kernels/shared/prefix.cuh"

namespace
{
constexpr int threads = 256;

/* ---- Beginnings ---- */

__global__ void __launch_bounds__(threads) find_beginnings(const __grid_constant__ struct inflate_launch launch)
{
    const uint64_t first = 32 * ((uint64_t)blockIdx.x * threads + threadIdx.x);
    if (first >= launch.bits)
        return;
    uint64_t found = inflate_find_heads(bits_at(launch, first)) & 0xffffffffu;
    for (; found != 0; found &= found - 1) {
        const uint64_t at = first + (uint64_t)(__ffsll((long long)found) - 1);
        if (at + 17 >= launch.bits ||
            !is_precode_whole(bits_at(launch, at + 17), 4 + (int)(bits_at(launch, at + 13) & 15)))
            continue;
        const unsigned position = atomicAdd(&launch.state->survivors, 1u);
        if (position < launch.survivor_max)
            launch.survivors[position] = at;
    }
}

__global__ void __launch_bounds__(64) validate(const __grid_constant__ struct inflate_launch launch)
{
    const unsigned count = min(launch.state->survivors, launch.survivor_max);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        atomicOr(launch.marks, 1u); /* the first block begins a part, whatever its type */
        if (launch.state->survivors > count)
            launch.state->status = INFLATE_TOO_MANY;
    }
    for (unsigned i = blockIdx.x * 64 + threadIdx.x; i < count; i += gridDim.x * 64) {
        struct code_lengths codes;
        uint64_t bit = launch.survivors[i] + 3;
        if (read_lengths(launch, &bit, codes) && are_lengths_right(codes))
            atomicOr(&launch.marks[launch.survivors[i] / 32], 1u << launch.survivors[i] % 32);
    }
}

/* Number the marks. A thread has RANK_WORDS words. */
__global__ void __launch_bounds__(threads) rank_marks(const __grid_constant__ struct inflate_launch launch)
{
    __shared__ unsigned ticket, sums[threads];
    __shared__ uint64_t before;
    const int t = (int)threadIdx.x;
    /* This kernel's last block sets the status, too, but only after all blocks have drawn a ticket. */
    if (is_given_up(launch))
        return;
    if (t == 0)
        ticket = atomicAdd(&launch.state->ticket, 1u);
    __syncthreads();
    const int index = (int)ticket * threads + t;
    unsigned count = 0;
    for (int i = 0; index < launch.rank_count && i < rank_words; i++)
        count += (unsigned)__popc((int)launch.marks[index * rank_words + i]);
    sum_up_to<threads>(sums, count);
    if (t < 32) {
        uint32_t none;
        const uint64_t sum = prefix_before(launch.sums, (int)ticket, sums[threads - 1], 0, &none);
        if (t == 0)
            before = sum;
    }
    __syncthreads();
    if (index >= launch.rank_count)
        return;
    unsigned rank = (unsigned)before + sums[t] - count;
    launch.ranks[index] = rank;
    for (int i = 0; i < rank_words; i++)
        for (uint32_t left = launch.marks[index * rank_words + i]; left != 0; left &= left - 1, rank++)
            if (rank < launch.part_max)
                launch.parts[rank].start = 32 * (uint64_t)(index * rank_words + i) + (uint64_t)(__ffs((int)left) - 1);
    if (index == launch.rank_count - 1) {
        launch.state->parts = min(rank, launch.part_max);
        if (rank > launch.part_max)
            launch.state->status = INFLATE_TOO_MANY;
    }
}

/* ---- Positions ---- */

/* Follow the parts from the first on, by a warp. Nearly always the next part has the next number, so a lane looks at
 * each of the next 32. */
__global__ void __launch_bounds__(32) link_parts(const __grid_constant__ struct inflate_launch launch)
{
    const int lane = lane_id();
    const unsigned parts = launch.state->parts;
    uint64_t position = 0;
    unsigned count = 0, slices = 0;
    int number = 0;
    if (is_given_up(launch))
        return;
    while (number >= 0 && count < launch.part_max) {
        const unsigned part = (unsigned)(number + lane);
        const int next = part < parts ? launch.parts[part].next : NEXT_BAD;
        const unsigned others = __ballot_sync(all_lanes, next != (int)part + 1);
        const int last = others != 0 ? __ffs((int)others) - 1 : 31; /* a lane */
        const bool is_part = lane <= last;
        const uint64_t size = is_part ? launch.parts[part].size : 0, end = sum_up_to_lane(size);
        const unsigned part_slices = is_part ? launch.parts[part].slices : 0, after = sum_up_to_lane(part_slices);
        if (is_part && count + (unsigned)lane < launch.part_max) {
            launch.parts[part].position = position + end - size;
            launch.parts[part].first_slice = slices + after - part_slices;
            launch.chain[count + (unsigned)lane] = (int)part;
        }
        if (lane == last)
            launch.state->end = launch.parts[part].end;
        position += __shfl_sync(all_lanes, end, 31);
        slices += __shfl_sync(all_lanes, after, 31);
        count += (unsigned)last + 1;
        number = __shfl_sync(all_lanes, next, last);
    }
    if (lane != 0)
        return;
    launch.state->chain = min(count, launch.part_max);
    launch.state->slices = slices;
    if (number != NEXT_END)
        launch.state->status = INFLATE_BAD;
    else if (position != launch.expected)
        launch.state->status = INFLATE_UNFINISHED;
    else if (slices > launch.slice_max)
        launch.state->status = INFLATE_TOO_MANY;
    else
        launch.slices[slices] = {position, 0, -1, 0}; /* the array has slice_max + 1 elements */
}

/* List the slices of each part, by a warp. */
__global__ void __launch_bounds__(threads) list_slices(const __grid_constant__ struct inflate_launch launch)
{
    const int lane = lane_id(), warps = threads / 32;
    if (is_given_up(launch))
        return;
    for (unsigned i = blockIdx.x * warps + threadIdx.x / 32; i < launch.state->chain; i += gridDim.x * warps) {
        const struct part &part = launch.parts[launch.chain[i]];
        unsigned at = part.first_slice;
        for (int number = part.first_span; number >= 0; number = launch.spans[number].next) {
            const struct span &span = launch.spans[number];
            for (int t = lane; t < span_pieces; t += 32) {
                const bool begins = begins_slice(span, t);
                const unsigned all = __ballot_sync(all_lanes, begins);
                const uint32_t position = t > 0 && begins ? span.pieces[t].position : span.position;
                if (begins)
                    launch.slices[at + (unsigned)__popc((int)(all & ((1u << lane) - 1)))] = {part.position + position,
                                                                                             position, number, t};
                at += (unsigned)__popc((int)all);
            }
        }
    }
}

/* ---- Windows ---- */

constexpr int window_threads = 1024;

/* Let MAP, of 2^15 symbols, which is the window before slice I, become the window after it. */
template <typename T>
__device__ __forceinline__ void move_window(const struct inflate_launch &launch, unsigned i, T *map)
{
    const uint64_t end = launch.slices[i + 1].position, size = end - launch.slices[i].position;
    const int stay = DEFLATE_WINDOW - (int)min(size, (uint64_t)DEFLATE_WINDOW);
    T values[DEFLATE_WINDOW / window_threads];
#pragma unroll
    for (int k = 0; k < DEFLATE_WINDOW / window_threads; k++) {
        const int at = k * window_threads + (int)threadIdx.x;
        const uint32_t symbol = at < stay ? INFLATE_MARKER + (uint32_t)(at + DEFLATE_WINDOW - stay)
                                          : launch.symbols[end - (uint64_t)(DEFLATE_WINDOW - at)];
        values[k] = symbol < INFLATE_MARKER ? (T)symbol : map[symbol - INFLATE_MARKER];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < DEFLATE_WINDOW / window_threads; k++)
        map[k * window_threads + (int)threadIdx.x] = values[k];
    __syncthreads();
}

/* Set the window after each group, as symbols of the window before the group. */
__global__ void __launch_bounds__(window_threads) map_groups(const __grid_constant__ struct inflate_launch launch)
{
    if (is_given_up(launch))
        return;
    for (unsigned group = blockIdx.x; group * group_slices < launch.state->slices; group += gridDim.x) {
        uint16_t *map = launch.maps + (size_t)group * DEFLATE_WINDOW;
        for (int i = (int)threadIdx.x; i < DEFLATE_WINDOW; i += window_threads)
            map[i] = (uint16_t)(INFLATE_MARKER + i);
        __syncthreads();
        for (unsigned i = group * group_slices; i < min((group + 1) * group_slices, launch.state->slices); i++)
            move_window(launch, i, map);
    }
}

/* Set the window before each group. */
__global__ void __launch_bounds__(window_threads) join_groups(const __grid_constant__ struct inflate_launch launch)
{
    if (is_given_up(launch))
        return;
    for (int i = (int)threadIdx.x; i < DEFLATE_WINDOW; i += window_threads)
        launch.windows[i] = 0;
    __syncthreads();
    for (unsigned group = 1; group * group_slices < launch.state->slices; group++) {
        const uint16_t *map = launch.maps + (size_t)(group - 1) * DEFLATE_WINDOW;
        const uint8_t *before = launch.windows + (size_t)(group - 1) * group_slices * DEFLATE_WINDOW;
        uint8_t *after = launch.windows + (size_t)group * group_slices * DEFLATE_WINDOW;
        for (int i = (int)threadIdx.x; i < DEFLATE_WINDOW; i += window_threads)
            after[i] = map[i] < INFLATE_MARKER ? (uint8_t)map[i] : before[map[i] - INFLATE_MARKER];
        __syncthreads();
    }
}

/* Set the window before each slice that does not begin a group. */
__global__ void __launch_bounds__(window_threads) split_groups(const __grid_constant__ struct inflate_launch launch)
{
    __shared__ uint8_t bytes[DEFLATE_WINDOW];
    if (is_given_up(launch))
        return;
    for (unsigned group = blockIdx.x; group * group_slices < launch.state->slices; group += gridDim.x) {
        uint8_t *windows = launch.windows + (size_t)group * group_slices * DEFLATE_WINDOW;
        for (int i = (int)threadIdx.x; i < DEFLATE_WINDOW; i += window_threads)
            bytes[i] = windows[i];
        __syncthreads();
        for (unsigned i = group * group_slices + 1; i < min((group + 1) * group_slices, launch.state->slices); i++) {
            move_window(launch, i - 1, bytes);
            windows += DEFLATE_WINDOW;
            for (int k = (int)threadIdx.x; k < DEFLATE_WINDOW; k += window_threads)
                windows[k] = bytes[k];
        }
        __syncthreads();
    }
}

/* Bytes from all symbols. */
__global__ void __launch_bounds__(threads) resolve(const __grid_constant__ struct inflate_launch launch)
{
    if (is_given_up(launch))
        return;
    for (unsigned i = blockIdx.x; i < launch.state->slices; i += gridDim.x) {
        const uint64_t position = launch.slices[i].position, size = launch.slices[i + 1].position - position;
        const uint16_t *__restrict__ symbols = launch.symbols + position;
        const uint8_t *__restrict__ before = launch.windows + (size_t)i * DEFLATE_WINDOW;
        uint8_t *__restrict__ out = launch.out + position;
#pragma unroll 8
        for (uint32_t k = threadIdx.x; k < size; k += threads)
            out[k] = symbols[k] < INFLATE_MARKER ? (uint8_t)symbols[k] : before[symbols[k] - INFLATE_MARKER];
    }
}
} // namespace

/* ---- The host's part ---- */

bool inflate_queue(struct device *device, struct inflation *inflation, const uint8_t *bytes, size_t size, uint8_t *out,
                   size_t expected, struct error *error)
{
    const size_t words = size / 4 + 1, ranks = (words + rank_words - 1) / rank_words;
    const size_t survivors = size / 8 + 1024, parts = size / 2048 + 64, spans = size / 1024 + 1024;
    const size_t slices = expected / slice_bytes + size / 8192 + 64,
                 groups = (slices + group_slices - 1) / group_slices;
    const size_t rank_blocks = (ranks + threads - 1) / threads;
    struct inflate_launch launch;
    if (!reserve_items(device, &inflation->marks, ranks * rank_words, &launch.marks, error) ||
        !reserve_items(device, &inflation->survivors, survivors, &launch.survivors, error) ||
        !reserve_items(device, &inflation->sums, rank_blocks, &launch.sums, error) ||
        !reserve_items(device, &inflation->ranks, ranks, &launch.ranks, error) ||
        !reserve_items(device, &inflation->parts, parts, &launch.parts, error) ||
        !reserve_items(device, &inflation->chain, parts, &launch.chain, error) ||
        !reserve_items(device, &inflation->spans, spans, &launch.spans, error) ||
        !reserve_items(device, &inflation->slices, slices + 1, &launch.slices, error) ||
        !reserve_items(device, &inflation->symbols, expected, &launch.symbols, error) ||
        !reserve_items(device, &inflation->maps, groups * DEFLATE_WINDOW, &launch.maps, error) ||
        !reserve_items(device, &inflation->windows, slices * DEFLATE_WINDOW, &launch.windows, error) ||
        !reserve_items(device, &inflation->state, 1, &launch.state, error) ||
        !device_fill(device, launch.marks, 0, ranks * rank_words * sizeof *launch.marks, error) ||
        !device_fill(device, launch.sums, 0, rank_blocks * sizeof *launch.sums, error) ||
        !device_fill(device, launch.state, 0, sizeof *launch.state, error))
        return false;
    launch.words = (const uint32_t *)bytes;
    launch.bits = 8 * (uint64_t)size;
    launch.survivor_max = (unsigned)survivors;
    launch.part_max = (unsigned)parts;
    launch.span_max = (unsigned)spans;
    launch.slice_max = (unsigned)slices;
    launch.rank_count = (int)ranks;
    launch.out = out;
    launch.expected = expected;
    const unsigned find_blocks = (unsigned)((words + threads - 1) / threads);
    return queue_kernel(find_beginnings, find_blocks, threads, 0, device, error, launch) &&
           queue_kernel(validate, inflate_grid(survivors / 64 + 1, 16), 64, 0, device, error, launch) &&
           queue_kernel(rank_marks, (unsigned)rank_blocks, threads, 0, device, error, launch) &&
           measure_parts(device, launch, error) && queue_kernel(link_parts, 1, 32, 0, device, error, launch) &&
           queue_kernel(list_slices, inflate_grid(parts, 1), threads, 0, device, error, launch) &&
           decode_slices(device, launch, error) &&
           queue_kernel(map_groups, inflate_grid(groups, 1), window_threads, 0, device, error, launch) &&
           queue_kernel(join_groups, 1, window_threads, 0, device, error, launch) &&
           queue_kernel(split_groups, inflate_grid(groups, 1), window_threads, 0, device, error, launch) &&
           queue_kernel(resolve, inflate_grid(slices, 16), threads, 0, device, error, launch);
}

void inflate_release(struct device *device, struct inflation *inflation)
{
    struct workspace *const buffers[] = {&inflation->marks, &inflation->survivors, &inflation->sums,
                                         &inflation->ranks, &inflation->parts,     &inflation->chain,
                                         &inflation->spans, &inflation->slices,    &inflation->symbols,
                                         &inflation->maps,  &inflation->windows,   &inflation->state};
    for (struct workspace *buffer : buffers)
        device_release(device, buffer);
}
