/* SPDX-License-Identifier: MIT
 *
 * Inflating on a GPU. A stream has no index, but a block with codes of its own is recognised by its header, at whatever
 * bit it begins. So the stream is cut into parts at such blocks:
 *
 *     find      a thread tests 32 bits for the beginning of such a header
 *     validate  a thread reads the lengths of the codes of what looks like one
 *     rank      the remaining beginnings get numbers, in their order
 *     measure   inflate_parts.cu decodes from one beginning until a block ends at another, and counts bytes
 *     link      a warp follows the parts from the first bit on; false beginnings are left out
 *     decode    inflate_parts.cu decodes these parts to symbols of 16 bits. What a part repeats from those before it
 *               becomes a marker, a place in the 32 KiB before the part
 *     windows   these 32 KiB become known, part after part; groups of parts first without the group before
 *     resolve   all other symbols become bytes
 *
 * Nothing is written that was not counted, a part ends with its stream, and all counts have limits. Whatever is not
 * right is left to the CPU, which finds the words for it. */
#include "kernels/png/inflate_parts.cuh"

#include "kernels/shared/prefix.cuh"

namespace
{
constexpr int threads = 256;
constexpr int group_parts = 32; /* whose windows are followed together */

/* ---- Beginnings ---- */

/* Not the last block, of type 2, neither count is 30 or 31 above its least, and 12 lengths of lengths or more: as
 * inflate_find in png/inflate.c. */
__global__ void __launch_bounds__(threads) find_beginnings(const __grid_constant__ struct stream stream)
{
    const uint64_t first = 32 * ((uint64_t)blockIdx.x * threads + threadIdx.x);
    if (first >= stream.bits)
        return;
    const uint64_t b = bits_at(stream, first);
    uint64_t found = ~b & ~(b >> 1) & (b >> 2) & ~(b >> 4 & b >> 5 & b >> 6 & b >> 7);
    found &= ~(b >> 9 & b >> 10 & b >> 11 & b >> 12) & b >> 16 & 0xffffffffu;
    for (; found != 0; found &= found - 1) {
        const uint64_t at = first + (uint64_t)(__ffsll((long long)found) - 1);
        if (at + 17 >= stream.bits ||
            !is_precode_whole(bits_at(stream, at + 17), 4 + (int)(bits_at(stream, at + 13) & 15)))
            continue;
        const unsigned place = atomicAdd(&stream.state->survivors, 1u);
        if (place < stream.survivor_max)
            stream.survivors[place] = at;
    }
}

__global__ void __launch_bounds__(64) validate(const __grid_constant__ struct stream stream)
{
    const unsigned count = min(stream.state->survivors, stream.survivor_max);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        atomicOr(stream.marks, 1u); /* the first block begins a part, whatever its type */
        if (stream.state->survivors > count)
            stream.state->status = INFLATE_TOO_MANY;
    }
    for (unsigned i = blockIdx.x * 64 + threadIdx.x; i < count; i += gridDim.x * 64) {
        struct code_lengths codes;
        uint64_t bit = stream.survivors[i] + 3;
        if (read_lengths(stream, &bit, codes) && are_lengths_right(codes))
            atomicOr(&stream.marks[stream.survivors[i] / 32], 1u << stream.survivors[i] % 32);
    }
}

/* Number the marks. A thread has RANK_WORDS words. */
__global__ void __launch_bounds__(threads) rank_marks(const __grid_constant__ struct stream stream)
{
    __shared__ unsigned ticket, sums[threads];
    __shared__ uint64_t before;
    const int t = (int)threadIdx.x;
    if (t == 0)
        ticket = atomicAdd(&stream.state->ticket, 1u);
    __syncthreads();
    const int own = (int)ticket * threads + t;
    unsigned count = 0;
    for (int i = 0; own < stream.rank_count && i < rank_words; i++)
        count += (unsigned)__popc((int)stream.marks[own * rank_words + i]);
    sums[t] = count;
    __syncthreads();
    for (int step = 1; step < threads; step *= 2) {
        const unsigned other = t >= step ? sums[t - step] : 0;
        __syncthreads();
        sums[t] += other;
        __syncthreads();
    }
    if (t < 32) {
        uint32_t none;
        const uint64_t sum = prefix_before(stream.sums, (int)ticket, sums[threads - 1], 0, &none);
        if (t == 0)
            before = sum;
    }
    __syncthreads();
    if (own >= stream.rank_count)
        return;
    unsigned rank = (unsigned)before + sums[t] - count;
    stream.ranks[own] = rank;
    for (int i = 0; i < rank_words; i++)
        for (uint32_t left = stream.marks[own * rank_words + i]; left != 0; left &= left - 1, rank++)
            if (rank < stream.part_max)
                stream.parts[rank].start = 32 * (uint64_t)(own * rank_words + i) + (uint64_t)(__ffs((int)left) - 1);
    if (own == stream.rank_count - 1) {
        stream.state->parts = min(rank, stream.part_max);
        if (rank > stream.part_max)
            stream.state->status = INFLATE_TOO_MANY;
    }
}

/* ---- Places ---- */

/* Follow the parts from the first on, by a warp. Nearly always the next part has the next number, so a lane looks at
 * each of the next 32. */
__global__ void __launch_bounds__(32) link_parts(const __grid_constant__ struct stream stream)
{
    const int lane = lane_id();
    const unsigned parts = stream.state->parts;
    uint64_t place = 0;
    unsigned count = 0;
    int number = 0;
    while (number >= 0 && count < stream.part_max) {
        const unsigned own = (unsigned)(number + lane);
        const int next = own < parts ? stream.parts[own].next : NEXT_BAD;
        const unsigned others = __ballot_sync(all_lanes, next != (int)own + 1);
        const int last = others != 0 ? __ffs((int)others) - 1 : 31; /* a lane */
        const uint64_t size = lane <= last ? stream.parts[own].size : 0;
        uint64_t end = size;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const uint64_t other = __shfl_up_sync(all_lanes, end, (unsigned)step);
            end += lane >= step ? other : 0;
        }
        if (lane <= last && count + (unsigned)lane < stream.part_max) {
            stream.parts[own].place = place + end - size;
            stream.chain[count + (unsigned)lane] = (int)own;
        }
        if (lane == last)
            stream.state->end = stream.parts[own].end;
        place += __shfl_sync(all_lanes, end, 31);
        count += (unsigned)last + 1;
        number = __shfl_sync(all_lanes, next, last);
    }
    if (lane != 0)
        return;
    stream.state->chain = min(count, stream.part_max);
    stream.state->size = place;
    if (stream.state->status == INFLATED && (number != NEXT_END || place != stream.expected))
        stream.state->status = number != NEXT_END ? INFLATE_BAD : INFLATE_UNFINISHED;
}

/* ---- Windows ---- */

constexpr int window_threads = 1024;

/* Let MAP, of 2^15 symbols, which is the window before a part, become the window after it. */
template <typename T>
__device__ __forceinline__ void move_window(const struct stream &stream, const struct part &part, T *map)
{
    const int moved = (int)min(part.size, (uint64_t)window), stay = window - moved;
    T values[window / window_threads];
#pragma unroll
    for (int k = 0; k < window / window_threads; k++) {
        const int i = k * window_threads + (int)threadIdx.x;
        const uint32_t symbol =
            i < stay ? marker + (uint32_t)(i + moved) : stream.symbols[part.place + part.size - (uint64_t)(window - i)];
        values[k] = symbol < marker ? (T)symbol : map[symbol - marker];
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < window / window_threads; k++)
        map[k * window_threads + (int)threadIdx.x] = values[k];
    __syncthreads();
}

/* The window after each group, by that before it. */
__global__ void __launch_bounds__(window_threads) map_groups(const __grid_constant__ struct stream stream)
{
    if (stream.state->status != INFLATED)
        return;
    for (unsigned group = blockIdx.x; group * group_parts < stream.state->chain; group += gridDim.x) {
        uint16_t *map = stream.maps + (size_t)group * window;
        for (int i = (int)threadIdx.x; i < window; i += window_threads)
            map[i] = (uint16_t)(marker + i);
        __syncthreads();
        for (unsigned i = group * group_parts; i < (group + 1) * group_parts && i < stream.state->chain; i++)
            move_window(stream, stream.parts[stream.chain[i]], map);
    }
}

/* The window before each group. */
__global__ void __launch_bounds__(window_threads) join_groups(const __grid_constant__ struct stream stream)
{
    if (stream.state->status != INFLATED)
        return;
    for (int i = (int)threadIdx.x; i < window; i += window_threads)
        stream.windows[i] = 0;
    __syncthreads();
    for (unsigned group = 1; group * group_parts < stream.state->chain; group++) {
        const uint16_t *map = stream.maps + (size_t)(group - 1) * window;
        const uint8_t *before = stream.windows + (size_t)(group - 1) * window;
        uint8_t *after = stream.windows + (size_t)group * window;
        for (int i = (int)threadIdx.x; i < window; i += window_threads)
            after[i] = map[i] < marker ? (uint8_t)map[i] : before[map[i] - marker];
        __syncthreads();
    }
}

/* Bytes from all symbols. The parts of a group come one after the other. */
__global__ void __launch_bounds__(window_threads) resolve(const __grid_constant__ struct stream stream)
{
    __shared__ uint8_t bytes[window];
    if (stream.state->status != INFLATED)
        return;
    for (unsigned group = blockIdx.x; group * group_parts < stream.state->chain; group += gridDim.x) {
        for (int i = (int)threadIdx.x; i < window; i += window_threads)
            bytes[i] = stream.windows[(size_t)group * window + (size_t)i];
        __syncthreads();
        for (unsigned i = group * group_parts; i < (group + 1) * group_parts && i < stream.state->chain; i++) {
            const struct part part = stream.parts[stream.chain[i]];
#pragma unroll 8
            for (uint64_t k = threadIdx.x; k < part.size; k += window_threads) {
                const uint32_t symbol = stream.symbols[part.place + k];
                stream.out[part.place + k] = symbol < marker ? (uint8_t)symbol : bytes[symbol - marker];
            }
            move_window(stream, part, bytes);
        }
    }
}
} // namespace

/* ---- The host's part ---- */

bool inflate_queue(struct device *device, struct inflation *inflation, const uint8_t *bytes, size_t size, uint8_t *out,
                   size_t expected, struct error *error)
{
    const size_t words = size / 4 + 1, ranks = (words + rank_words - 1) / rank_words;
    const size_t survivors = size / 8 + 1024, parts = size / 2048 + 64, chunks = size / 1024 + 1024;
    const size_t groups = (parts + group_parts - 1) / group_parts, rank_blocks = (ranks + threads - 1) / threads;
    if (!device_buffer_reserve(device, &inflation->marks, ranks * rank_words * 4, error) ||
        !device_buffer_reserve(device, &inflation->survivors, survivors * 8, error) ||
        !device_buffer_reserve(device, &inflation->ranks, (rank_blocks + 1) * 8 + ranks * 4, error) ||
        !device_buffer_reserve(device, &inflation->parts, parts * (sizeof(struct part) + sizeof(int)), error) ||
        !device_buffer_reserve(device, &inflation->chunks, chunks * sizeof(struct chunk), error) ||
        !device_buffer_reserve(device, &inflation->symbols, expected * 2, error) ||
        !device_buffer_reserve(device, &inflation->maps, groups * window * 2, error) ||
        !device_buffer_reserve(device, &inflation->windows, groups * window, error) ||
        !device_buffer_reserve(device, &inflation->state, sizeof(struct inflate_state), error) ||
        !device_fill(device, inflation->marks.bytes, 0, ranks * rank_words * 4, error) ||
        !device_fill(device, inflation->ranks.bytes, 0, (rank_blocks + 1) * 8, error) ||
        !device_fill(device, inflation->state.bytes, 0, sizeof(struct inflate_state), error))
        return false;
    struct stream stream;
    stream.words = (const uint32_t *)bytes;
    stream.bits = 8 * (uint64_t)size;
    stream.marks = (uint32_t *)inflation->marks.bytes;
    stream.survivors = (uint64_t *)inflation->survivors.bytes;
    stream.survivor_max = (unsigned)survivors;
    stream.part_max = (unsigned)parts;
    stream.chunk_max = (unsigned)chunks;
    stream.rank_count = (int)ranks;
    stream.sums = (uint64_t *)inflation->ranks.bytes;
    stream.ranks = (uint32_t *)(stream.sums + rank_blocks + 1);
    stream.chunks = (struct chunk *)inflation->chunks.bytes;
    stream.parts = (struct part *)inflation->parts.bytes;
    stream.chain = (int *)(stream.parts + parts);
    stream.symbols = (uint16_t *)inflation->symbols.bytes;
    stream.maps = (uint16_t *)inflation->maps.bytes;
    stream.windows = inflation->windows.bytes;
    stream.out = out;
    stream.expected = expected;
    stream.state = (struct inflate_state *)inflation->state.bytes;
    const cudaStream_t queue = device_stream(device);
    const unsigned blocks_at_once = 132 * 16, groups_at_once = 132;
    find_beginnings<<<(unsigned)((words + threads - 1) / threads), threads, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    validate<<<blocks_at_once, 64, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    rank_marks<<<(unsigned)rank_blocks, threads, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    if (!measure_parts(device, stream, error))
        return false;
    link_parts<<<1, 32, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    if (!decode_parts(device, stream, error))
        return false;
    map_groups<<<groups_at_once, window_threads, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    join_groups<<<1, window_threads, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    resolve<<<groups_at_once, window_threads, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    return true;
}

void inflate_release(struct device *device, struct inflation *inflation)
{
    struct device_buffer *const buffers[] = {&inflation->marks, &inflation->survivors, &inflation->ranks,
                                             &inflation->parts, &inflation->chunks,    &inflation->symbols,
                                             &inflation->maps,  &inflation->windows,   &inflation->state};
    for (struct device_buffer *buffer : buffers)
        device_buffer_release(device, buffer);
}
