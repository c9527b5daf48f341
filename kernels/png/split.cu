/* SPDX-License-Identifier: MIT
 *
 * Where the repetitions of each block are: steps 1 to 8 of png/deflate.h. The first kernel has a block of threads for
 * each block of bytes. The second one has a warp, because most of its work is one step after the other; a processor of
 * the GPU has many of them in flight. */
#include "kernels/png/encode.cuh"

namespace
{
constexpr int threads = 256, warps = threads / 32;
static_assert(threads == DEFLATE_LITERALS, "a thread has a price");

__device__ __forceinline__ int lane_id()
{
    return (int)threadIdx.x % 32;
}

/* 8 bytes, little-endian. Up to 4 bytes before and after them are read. */
__device__ __forceinline__ uint64_t load64(const uint8_t *bytes)
{
    const uint32_t *words = (const uint32_t *)((uintptr_t)bytes & ~(uintptr_t)3);
    const unsigned shift = 8 * (unsigned)((uintptr_t)bytes & 3);
    const uint32_t middle = words[1];
    return (uint64_t)__funnelshift_r(middle, words[2], shift) << 32 | __funnelshift_r(words[0], middle, shift);
}

/* The number of equal bytes at A and B, at most LIMIT. */
__device__ __forceinline__ int equal_length(const uint8_t *a, const uint8_t *b, int limit)
{
    int length = 0;
    for (; length + 8 <= limit; length += 8) {
        const uint64_t difference = load64(a + length) ^ load64(b + length);
        if (difference != 0)
            return length + (__ffsll((long long)difference) - 1) / 8;
    }
    while (length < limit && a[length] == b[length])
        length++;
    return length;
}

/* ---- Sets ---- */

/* The 32 bits from AT on. */
__device__ __forceinline__ uint32_t bits_from(const uint32_t *bits, int at)
{
    return __funnelshift_r(bits[at / 32], bits[at / 32 + 1], (unsigned)at % 32);
}

/* The first bit from AT on that is set, or END. */
__device__ __forceinline__ int find_next(const uint32_t *bits, int at, int end)
{
    for (; at < end; at += 32) {
        const uint32_t here = bits_from(bits, at);
        if (here != 0)
            return min(at + __ffs((int)here) - 1, end);
    }
    return end;
}

/* The number of bits from AT on that are set. */
__device__ __forceinline__ int count_ones(const uint32_t *bits, int at)
{
    int count = 0;
    uint32_t zeros;
    while ((zeros = ~bits_from(bits, at + count)) == 0)
        count += 32;
    return count + __ffs((int)zeros) - 1;
}

/* Set the starts of runs of LEAST bytes, and RUNS, the bytes of these runs, by all threads. */
__device__ void find_runs(struct block &block, unsigned least, uint32_t *runs)
{
    const unsigned rest = least - DEFLATE_LEAST; /* 0 to 4 */
    __syncthreads();
    for (int word = (int)threadIdx.x; word < set_words; word += threads) {
        uint32_t starts = 0;
        for (int i = 0; i < 2; i++) {
            uint64_t same = block.same[i][word];
            same |= word + 1 < set_words ? (uint64_t)block.same[i][word + 1] << 32 : 0;
            same &= same >> 1;
            same &= same >> 2;
            starts |= (uint32_t)(same & same >> rest);
        }
        block.starts[word] = starts;
    }
    __syncthreads();
    for (int word = (int)threadIdx.x; word < set_words; word += threads) {
        uint64_t starts = (uint64_t)block.starts[word] << 32 | (word > 0 ? block.starts[word - 1] : 0);
        starts |= starts << 1;
        starts |= starts << 2;
        runs[word] = (uint32_t)((starts | starts << rest) >> 32);
    }
    __syncthreads();
}

/* ---- Candidates ---- */

/* Of a warp, for the search of candidates. */
struct search {
    uint16_t latest[1 << DEFLATE_HASH_BITS]; /* 1 + the latest place with that hash; 0: none yet */
    uint16_t places[1024];                   /* of some words, in order */
    uint32_t found[32];                      /* the bits of these words whose places have a candidate */
};

/* Find the candidates of the places in BITS, by a warp. BITS become those that have one, and each of these is visited:
 * VISIT(place, candidate). */
template <typename Visit>
__device__ __forceinline__ void find_candidates(struct search &search, const uint8_t *bytes, uint32_t *bits,
                                                Visit visit)
{
    const int lane = lane_id();
    for (int i = lane; i < (1 << DEFLATE_HASH_BITS) / 2; i += 32)
        ((uint32_t *)search.latest)[i] = 0;
    for (int first = 0; first < set_words; first += 32) {
        uint32_t left = bits[first + lane];
        int end = __popc((int)left), count = end;
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(all_lanes, end, (unsigned)step);
            end += lane >= step ? other : 0;
        }
        const int whole = __shfl_sync(all_lanes, end, 31);
        for (int at = end - count; left != 0; left &= left - 1)
            search.places[at++] = (uint16_t)(32 * (first + lane) + __ffs((int)left) - 1);
        search.found[lane] = 0;
        __syncwarp();
        for (int i = lane; i - lane < whole; i += 32) {
            const bool is_place = i < whole;
            const int place = is_place ? search.places[i] : 0;
            const uint64_t here = load64(bytes + place);
            const uint32_t hash = is_place ? deflate_hash(here) : ~(uint32_t)lane;
            const unsigned peers = __match_any_sync(all_lanes, hash), before = peers & ((1u << lane) - 1);
            int from = is_place ? search.latest[hash] - 1 : -1;
            const int other = __shfl_sync(all_lanes, place, before != 0 ? 31 - __clz((int)before) : 0);
            from = before != 0 ? other : from;
            __syncwarp();
            if (is_place && peers >> lane == 1) /* the last one with this hash */
                search.latest[hash] = (uint16_t)(place + 1);
            if (is_place && from >= 0 && place - from <= WINDOW && load64(bytes + from) == here) {
                atomicOr(&search.found[place / 32 - first], 1u << place % 32);
                visit(place, from);
            }
            __syncwarp();
        }
        bits[first + lane] = search.found[lane];
        __syncwarp();
    }
}

/* ---- Prices ---- */

/* The price of the bytes from FROM to TO without other repetitions than runs. It stops where it exceeds ENOUGH. */
__device__ __forceinline__ unsigned price_bytes(const struct block &block, const uint8_t *bytes, int from, int to,
                                                unsigned enough)
{
    unsigned price = 0;
    bool is_run = from > 0 && has(block.runs, from - 1);
    for (int at = from; at < to && price <= enough; at++) {
        const bool was_run = is_run;
        is_run = has(block.runs, at);
        price += is_run ? (was_run ? 0 : RUN_PRICE) : block.prices[bytes[at]];
    }
    return price;
}

/* What a sample saves, in the mean of its bytes. */
__device__ __forceinline__ unsigned sample_gain(const struct block &block, const struct part &part, int place, int from)
{
    const int length = equal_length(part.bytes + place, part.bytes + from, min(part.size - place, SAMPLE_LENGTH));
    const unsigned old = price_bytes(block, part.bytes, place, place + length, ~0u);
    const unsigned now = deflate_repetition_price((unsigned)(place - from));
    return old > now ? (old - now) / (unsigned)length : 0;
}

/* ---- The first kernel: steps 1 to 5, and 7 ---- */

struct marking {
    struct search search;
    uint32_t counts[warps][DEFLATE_LITERALS]; /* of bytes outside of long runs */
    uint32_t total, lowest;
    unsigned long long price; /* of these bytes */
    bool pays;
};

/* Set the bytes that are the same, and the samples. No byte is in a repetition yet. */
__device__ __forceinline__ void mark_bytes(struct block &block, const struct part &part, int pixel)
{
    const int lane = lane_id();
    for (int word = (int)threadIdx.x / 32; word < set_words; word += warps) {
        const int at = 32 * word + lane, place = part.before + at;
        const uint8_t *byte = part.bytes + at;
        const bool is_inside = at < part.size;
        const unsigned near = __ballot_sync(all_lanes, is_inside && place > 0 && byte[0] == byte[-1]);
        const unsigned far =
            __ballot_sync(all_lanes, is_inside && pixel > 1 && place >= pixel && byte[0] == byte[-pixel]);
        const unsigned sampled = __ballot_sync(all_lanes, at + HASHED <= part.size && deflate_is_sampled(byte));
        if (lane == 0) {
            block.same[0][word] = near;
            block.same[1][word] = far;
            block.chosen[word] = sampled;
            block.begun[word] = block.covered[word] = 0;
        }
    }
}

/* Count the bytes outside of long runs, and price them. */
__device__ __forceinline__ void price_literals(struct marking &marking, struct block &block, const struct part &part)
{
    const int t = (int)threadIdx.x, warp = t / 32, lane = lane_id();
    for (int i = t; i < warps * DEFLATE_LITERALS; i += threads)
        marking.counts[i / DEFLATE_LITERALS][i % DEFLATE_LITERALS] = 0;
    if (t == 0) {
        marking.total = 0;
        marking.lowest = PRICE_MAX;
        marking.price = 0;
    }
    __syncthreads();
    for (int word = warp; 32 * word < part.size; word += warps) {
        const int at = 32 * word + lane;
        if (at < part.size && (block.uncounted[word] >> lane & 1) == 0)
            atomicAdd(&marking.counts[warp][part.bytes[at]], 1u);
    }
    __syncthreads();
    uint32_t uses = 0;
    for (int i = 0; i < warps; i++)
        uses += marking.counts[i][t];
    atomicAdd(&marking.total, uses);
    __syncthreads();
    const unsigned price = deflate_price(marking.total, uses);
    atomicMin(&marking.lowest, price);
    atomicAdd(&marking.price, (unsigned long long)price * uses);
    block.prices[t] = (uint8_t)price;
    block.uses.litlens[t] = uses;
    __syncthreads();
}

__global__ void __launch_bounds__(threads) mark(const __grid_constant__ struct picture picture)
{
    __shared__ struct marking marking;
    struct block &block = picture.work[blockIdx.x];
    const struct part part = part_of(picture, (int)blockIdx.x);
    const int t = (int)threadIdx.x, lane = lane_id();
    mark_bytes(block, part, picture.pixel);
    find_runs(block, LONG_RUN, block.uncounted);
    price_literals(marking, block, part);
    find_runs(block, deflate_least_run(marking.lowest), block.runs);
    for (int word = t; word < set_words; word += threads)
        block.chosen[word] &= ~block.runs[word];
    __syncthreads();
    if (t < 32) {
        unsigned long long saved = 0;
        find_candidates(marking.search, part.bytes, block.chosen,
                        [&](int place, int from) { saved += sample_gain(block, part, place, from); });
#pragma unroll
        for (int step = 16; step > 0; step /= 2)
            saved += __shfl_xor_sync(all_lanes, saved, step);
        if (t == 0)
            block.pays = marking.pays = deflate_pays(saved, marking.price, marking.total, (uint64_t)part.size);
    }
    __syncthreads();
    if (!marking.pays)
        return;
    for (int word = t / 32; word < set_words; word += warps) {
        const int at = 32 * word + lane;
        const unsigned hashed =
            __ballot_sync(all_lanes, at + HASHED <= part.size && deflate_is_hashed(part.bytes + at));
        if (lane == 0)
            block.chosen[word] = hashed;
    }
}

/* ---- The second kernel: the rest of step 5, and step 8 ---- */

/* The symbols of a block's repetitions. */
struct repetition_uses {
    uint32_t lengths[DEFLATE_LITLENS - DEFLATE_LENGTH_FIRST], distances[DEFLATE_DISTANCES];
};

/* The walk of a lane. */
struct walk {
    struct block *block;
    struct part part;
    int pixel;
    struct repetition_uses *uses; /* NULL: the walk writes nothing */
};

__device__ __forceinline__ void set_bits(uint32_t *bits, int from, int to)
{
    for (int at = from; at < to; at += 32 - at % 32) {
        const int count = min(to - at, 32 - at % 32);
        atomicOr(&bits[at / 32], (all_lanes >> (32 - count)) << at % 32);
    }
}

/* Add a repetition, in parts. Returns its end: a rest that is too short is left. */
__device__ __forceinline__ int add_repetition(const struct walk &walk, int start, int length, int distance)
{
    const int rest = length % DEFLATE_LENGTH_MAX, end = start + length - (rest < DEFLATE_LENGTH_MIN ? rest : 0);
    if (walk.uses == NULL)
        return end;
    const unsigned symbol = deflate_symbol((unsigned)distance - 1, DISTANCE_STEPS);
    for (int at = start; at < end;) {
        const int part = min(end - at, (int)DEFLATE_LENGTH_MAX);
        walk.block->repetitions[at / DEFLATE_LENGTH_MIN] = (uint32_t)part | (uint32_t)distance << 16;
        set_bits(walk.block->begun, at, at + 1);
        atomicAdd(&walk.uses->lengths[deflate_length_symbol((unsigned)part)], 1u);
        atomicAdd(&walk.uses->distances[symbol], 1u);
        at += part;
    }
    set_bits(walk.block->covered, start, end);
    return end;
}

/* Add the run that starts at AT: the longer one, or the one of a byte. Returns its end. */
__device__ __forceinline__ int add_run(const struct walk &walk, int at)
{
    const int bytes = count_ones(walk.block->same[0], at), pixels = count_ones(walk.block->same[1], at);
    return add_repetition(walk, at, max(bytes, pixels), bytes >= pixels ? 1 : walk.pixel);
}

/* Add the repetition of the candidate at AT, if it saves bits. LITERAL is the first byte that no repetition has.
 * Returns its end, or 0. */
__device__ __forceinline__ int try_other(const struct walk &walk, int literal, int at)
{
    const uint8_t *bytes = walk.part.bytes;
    const int from = walk.block->candidates[at];
    const unsigned price = deflate_repetition_price((unsigned)(at - from));
    const int length = equal_length(bytes + at, bytes + from, walk.part.size - at);
    int back = 0;
    while (at - back > literal && from - back > 0 && bytes[at - back - 1] == bytes[from - back - 1])
        back++;
    if (price_bytes(*walk.block, bytes, at - back, at + length, price) <= price)
        return 0;
    return add_repetition(walk, at - back, back + length, at - from);
}

/* Take what begins in the bytes from FIRST on, before END. LITERAL is as for try_other. Returns LITERAL of the bytes
 * after that. */
__device__ __forceinline__ int walk_segment(const struct walk &walk, int literal, int first, int end)
{
    const struct block &block = *walk.block;
    for (int at = max(literal, first), next; at < end; at = literal = next) {
        const int run = find_next(block.starts, at, end);
        next = 0;
        for (int place = at; block.pays != 0 && next == 0 && (place = find_next(block.chosen, place, run)) < run;
             place++)
            next = try_other(walk, literal, place);
        if (next == 0 && run == end)
            break;
        if (next == 0)
            next = add_run(walk, run);
    }
    return literal;
}

/* Each lane walks through a segment. Where it begins depends on the lane before. All lanes guess at first, and walk
 * again until none has guessed wrong: after K rounds, K lanes are right, and nearly always all of them. */
__global__ void __launch_bounds__(32) walk_blocks(const __grid_constant__ struct picture picture)
{
    __shared__ struct search search;
    __shared__ struct repetition_uses uses;
    const int lane = lane_id();
    struct block &block = picture.work[blockIdx.x];
    struct walk walk = {&block, part_of(picture, (int)blockIdx.x), picture.pixel, NULL};
    if (block.pays != 0)
        find_candidates(search, walk.part.bytes, block.chosen,
                        [&](int place, int from) { block.candidates[place] = (uint16_t)from; });
    for (int i = lane; i < (int)(sizeof uses / 4); i += 32)
        ((uint32_t *)&uses)[i] = 0;
    __syncwarp();
    const int segment = (walk.part.size + 31) / 32;
    const int first = min(lane * segment, walk.part.size), end = min(first + segment, walk.part.size);
    int literal = first, after = walk_segment(walk, literal, first, end);
    for (;;) {
        int right = __shfl_up_sync(all_lanes, after, 1);
        right = lane == 0 ? 0 : block.pays != 0 ? right : max(right, first);
        if (!__any_sync(all_lanes, right != literal))
            break;
        if (right != literal)
            after = walk_segment(walk, literal = right, first, end);
    }
    walk.uses = &uses;
    walk_segment(walk, literal, first, end);
    __syncwarp();
    for (int i = lane; i < DEFLATE_LITLENS - DEFLATE_LENGTH_FIRST; i += 32)
        block.uses.litlens[DEFLATE_LENGTH_FIRST + i] = uses.lengths[i];
    if (lane < DEFLATE_DISTANCES)
        block.uses.distances[lane] = uses.distances[lane];
}
} // namespace

bool split_blocks(struct device *device, const struct picture &picture, struct error *error)
{
    mark<<<(unsigned)picture.blocks, threads, 0, device_stream(device)>>>(picture);
    CUDA_TRY(cudaGetLastError(), error);
    walk_blocks<<<(unsigned)picture.blocks, 32, 0, device_stream(device)>>>(picture);
    CUDA_TRY(cudaGetLastError(), error);
    return true;
}
