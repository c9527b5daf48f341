/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of the splitting in deflate_loops.c.
 * Where the repetitions of each block are: steps 1 to 8 of png/rules.h. Both kernels have a block of threads for each
 * block of bytes. */
#include "png/candidates.cuh"
#include "png/encode.cuh"

namespace
{
static_assert(threads == DEFLATE_LITERALS, "a thread has a price");

/* The number of equal bytes at A and B, at most LIMIT. The first DEFLATE_HASHED bytes are equal. */
__device__ __forceinline__ int equal_length(const uint8_t *a, const uint8_t *b, int limit)
{
    int length = DEFLATE_HASHED;
    for (; length + 8 <= limit; length += 8) {
        const uint64_t difference = load64(a + length) ^ load64(b + length);
        if (difference != 0)
            return length + (__ffsll((long long)difference) - 1) / 8;
    }
    while (length < limit && a[length] == b[length])
        length++;
    return length;
}

/* The number of equal bytes before A and B, at most LIMIT. */
__device__ __forceinline__ int equal_before(const uint8_t *a, const uint8_t *b, int limit)
{
    int length = 0;
    for (; length + 8 <= limit; length += 8) {
        const uint64_t difference = load64(a - length - 8) ^ load64(b - length - 8);
        if (difference != 0)
            return length + __clzll((long long)difference) / 8;
    }
    while (length < limit && a[-length - 1] == b[-length - 1])
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

/* Words of a set, as a set. */
struct word_set {
    uint32_t bits[set_words / 32 + 1];
};

/* The number of bits from AT on that are set. BROKEN is the set of words with zeros. */
__device__ __forceinline__ int count_ones(const uint32_t *bits, const struct word_set &broken, int at)
{
    const uint32_t zeros = ~bits_from(bits, at);
    if (zeros != 0)
        return __ffs((int)zeros) - 1;
    const int word = find_next(broken.bits, at / 32 + 1, set_words);
    return 32 * word + __ffs((int)~bits[word]) - 1 - at;
}

/* Set the starts of runs of LENGTH bytes, and RUNS, the bytes of these runs, by all threads. */
__device__ void find_runs(struct block &block, unsigned length, uint32_t *runs)
{
    const unsigned rest = length - DEFLATE_LEAST; /* 0 to 4 */
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

/* ---- Prices ---- */

/* The price of the bytes from FROM to TO without other repetitions than runs, if it does not exceed ENOUGH; else more
 * than ENOUGH. */
__device__ __forceinline__ unsigned price_bytes(const uint32_t *run_bytes, const uint8_t *prices, const uint8_t *bytes,
                                                int from, int to, unsigned enough)
{
    unsigned price = 0;
    uint32_t was_run = from > 0 && has(run_bytes, from - 1);
    for (int at = from; at < to && price <= enough; at += 32) {
        const uint32_t here = inside(0, to - at), runs = bits_from(run_bytes, at);
        price += RUN_PRICE * (unsigned)__popc((int)(runs & ~(runs << 1 | was_run) & here));
        was_run = runs >> 31;
        uint32_t left = here & ~runs;
        for (const uint8_t *next = bytes + at; left != 0 && price <= enough; next += 8, left >>= 8) {
            if ((left & 255) == 0)
                continue;
            const uint64_t together = load64(next);
#pragma unroll
            for (int k = 0; k < 8; k++)
                price += left >> k & 1 ? prices[together >> 8 * k & 255] : 0;
        }
    }
    return price;
}

/* What a sample saves, in the mean of its bytes. */
__device__ __forceinline__ unsigned sample_gain(const struct block &block, const uint8_t *prices,
                                                const struct part &part, int position, int from)
{
    const int length = equal_length(part.bytes + position, part.bytes + from, min(part.size - position, SAMPLE_LENGTH));
    const unsigned old = price_bytes(block.runs, prices, part.bytes, position, position + length, ~0u);
    const unsigned now = deflate_repetition_price((unsigned)(position - from));
    return old > now ? (old - now) / (unsigned)length : 0;
}

/* Can the candidate FROM of POSITION save bits, whatever is before it? Most cannot, and threads work evenly on this. */
__device__ __forceinline__ bool may_save(const struct block &block, const uint8_t *prices, const struct part &part,
                                         int position, int from)
{
    constexpr int enough = 32; /* equal bytes in one direction: the walk looks at these again */
    const uint8_t *const a = part.bytes + position, *const b = part.bytes + from;
    const unsigned price = deflate_repetition_price((unsigned)(position - from));
    const int after = equal_length(a, b, min(part.size - position, enough)),
              before = equal_before(a, b, min(from, enough));
    return after == enough || before == enough ||
           price_bytes(block.runs, prices, part.bytes, position - before, position + after, price) > price;
}

/* ---- The first kernel: steps 1 to 5, and 7 ---- */

struct marking {
    union {
        uint32_t counts[warps][DEFLATE_LITERALS]; /* each warp's uses of bytes outside of long runs */
        struct search search;                     /* after that */
    };
    uint8_t prices[DEFLATE_LITERALS];
    uint32_t total, lowest;
    uint32_t price, saved; /* the price of these bytes, and what samples save; both are below 2^32 */
};

/* The 32 bytes from a position on, in words of 4, with 8 bytes before and 12 after them. Up to 3 more on both sides are
 * read. */
constexpr int words_before = 2, words_here = 8, words_after = 3;

struct words {
    uint32_t words[words_before + words_here + words_after];

    __device__ __forceinline__ uint32_t at(int word) const
    {
        return words[words_before + word];
    }
};

__device__ __forceinline__ struct words load_words(const uint8_t *bytes)
{
    constexpr int count = words_before + words_here + words_after;
    struct words around;
    const uint32_t *from = (const uint32_t *)((uintptr_t)bytes & ~(uintptr_t)3) - words_before;
    const unsigned shift = 8 * (unsigned)((uintptr_t)bytes & 3);
    uint32_t low = from[0];
#pragma unroll
    for (int i = 0; i < count; i++) {
        const uint32_t high = from[i + 1];
        around.words[i] = __funnelshift_r(low, high, shift);
        low = high;
    }
    return around;
}

/* The upper bits of 4 bytes, as 4 bits from bit 28 on. */
__device__ __forceinline__ uint32_t upper_bits(uint32_t bytes)
{
    return (bytes & 0x80 * each_byte) * 0x00204081u & 0xf0000000u;
}

/* In the upper bit of each byte: is it zero? */
__device__ __forceinline__ uint32_t is_zero(uint32_t bytes)
{
    return ~(((bytes & 0x7f * each_byte) + 0x7f * each_byte) | bytes);
}

/* deflate_mix for 4 positions, modulo DEFLATE_SAMPLED. */
__device__ __forceinline__ uint32_t mix_words(uint32_t first, uint32_t second, uint32_t third)
{
    constexpr uint32_t mask = SAMPLE_BITS * each_byte; /* 3 times this and as much again fit in a byte */
    first &= mask;
    second &= mask;
    third &= mask;
    uint32_t sum = __funnelshift_r(second, third, 24);
    sum = (3 * sum + __funnelshift_r(second, third, 16)) & mask;
    sum = (3 * sum + __funnelshift_r(second, third, 8)) & mask;
    sum = (3 * sum + second) & mask;
    sum = (3 * sum + __funnelshift_r(first, second, 24)) & mask;
    sum = (3 * sum + __funnelshift_r(first, second, 16)) & mask;
    sum = (3 * sum + __funnelshift_r(first, second, 8)) & mask;
    return (3 * sum + first) & mask;
}

/* The magnitudes of 4 differences. Larger ones than 15 count as 15, which exceeds DEFLATE_DIFFERENCE_MIN. */
__device__ __forceinline__ uint32_t small_magnitudes(uint32_t bytes)
{
    const uint32_t sign = bytes >> 7 & each_byte, magnitude = (bytes ^ 255 * sign) + sign;
    const uint32_t large = (magnitude + 0x70 * each_byte) >> 7 & each_byte;
    return (magnitude & 0x0f * each_byte) | 15 * large;
}
static_assert(DEFLATE_DIFFERENCE_MIN <= 15 && DEFLATE_HASHED * 15 < 128,
              "sums of DEFLATE_HASHED magnitudes fit in 7 bits");

/* The sums of two neighbours in steps of BYTES bytes, for 4 positions. */
__device__ __forceinline__ uint32_t sum_pairs(uint32_t first, uint32_t second, unsigned bytes)
{
    return first + __funnelshift_r(first, second, 8 * bytes);
}

/* Set the bytes that are the same, and the samples. No byte is in a repetition yet. */
__device__ __forceinline__ void mark_bytes(struct block &block, const struct part &part, int pixel)
{
    for (int word = (int)threadIdx.x; word < set_words; word += threads) {
        uint32_t same_byte = 0, same_pixel = 0, sampled = 0;
        if (32 * word < part.size) {
            const struct words around = load_words(part.bytes + 32 * word);
#pragma unroll
            for (int i = 0; i < words_here; i++) {
                const uint32_t before = around.at(i - 1), here = around.at(i);
                const uint32_t pixel_before = pixel > 4
                                                  ? __funnelshift_r(around.at(i - 2), before, 0u - 8 * (unsigned)pixel)
                                                  : __funnelshift_r(before, here, 0u - 8 * (unsigned)pixel);
                const uint32_t mixed = mix_words(here, around.at(i + 1), around.at(i + 2));
                same_byte = same_byte >> 4 | upper_bits(is_zero(here ^ __funnelshift_r(before, here, 24)));
                same_pixel = same_pixel >> 4 | upper_bits(is_zero(here ^ pixel_before));
                sampled = sampled >> 4 | upper_bits(is_zero(mixed ^ SAMPLE_VALUE * each_byte));
            }
            const bool is_first = part.before + word == 0;
            same_byte &= inside(word, part.size) & (is_first ? all_lanes << 1 : all_lanes);
            same_pixel &= pixel > 1 ? inside(word, part.size) & (is_first ? all_lanes << pixel : all_lanes) : 0;
            sampled &= inside(word, part.size - DEFLATE_HASHED + 1);
        }
        block.same[0][word] = same_byte;
        block.same[1][word] = same_pixel;
        block.chosen[word] = sampled;
        block.begun[word] = 0;
    }
}

/* Choose the positions of step 5. */
__device__ __forceinline__ void choose_hashed(struct block &block, const struct part &part)
{
    for (int word = (int)threadIdx.x; word < set_words; word += threads) {
        uint32_t hashed = 0;
        if (32 * word < part.size) {
            const struct words around = load_words(part.bytes + 32 * word);
            uint32_t sums[words_here + words_after];
#pragma unroll
            for (int i = 0; i < words_here + words_after; i++)
                sums[i] = small_magnitudes(around.at(i));
#pragma unroll
            for (int i = 0; i < words_here + 2; i++)
                sums[i] = sum_pairs(sums[i], sums[i + 1], 1);
#pragma unroll
            for (int i = 0; i < words_here + 1; i++)
                sums[i] = sum_pairs(sums[i], sums[i + 1], 2);
#pragma unroll
            for (int i = 0; i < words_here; i++) {
                const uint32_t mixed = mix_words(around.at(i), around.at(i + 1), around.at(i + 2));
                const uint32_t is_quarter = is_zero((mixed ^ QUARTER_VALUE * each_byte) & QUARTER_BITS * each_byte);
                hashed = hashed >> 4 |
                         upper_bits(is_quarter | (sums[i] + sums[i + 1] + (128 - DEFLATE_DIFFERENCE_MIN) * each_byte));
            }
        }
        block.chosen[word] = hashed & inside(word, part.size - DEFLATE_HASHED + 1);
    }
}

/* Count the bytes outside of long runs, and price them. */
__device__ __forceinline__ void price_literals(struct marking &marking, struct block &block, const struct part &part)
{
    const int t = (int)threadIdx.x;
    for (int i = t; i < warps * DEFLATE_LITERALS; i += threads)
        marking.counts[i / DEFLATE_LITERALS][i % DEFLATE_LITERALS] = 0;
    if (t == 0) {
        marking.total = 0;
        marking.lowest = PRICE_MAX;
        marking.price = marking.saved = 0;
    }
    __syncthreads();
    for (int at = 8 * t; at < part.size; at += 8 * threads) {
        const uint64_t bytes = load64(part.bytes + at);
        const uint32_t counted = ~((const uint8_t *)block.uncounted)[at / 8] & inside(0, part.size - at);
#pragma unroll
        for (int k = 0; k < 8; k++)
            if (counted >> k & 1)
                atomicAdd(&marking.counts[t / 32][bytes >> 8 * k & 255], 1u);
    }
    __syncthreads();
    uint32_t uses = 0;
    for (int i = 0; i < warps; i++)
        uses += marking.counts[i][t];
    atomicAdd(&marking.total, uses);
    __syncthreads();
    const unsigned price = deflate_price(marking.total, uses);
    atomicMin(&marking.lowest, price);
    atomicAdd(&marking.price, price * uses);
    block.prices[t] = marking.prices[t] = (uint8_t)price;
    block.uses.litlens[t] = uses;
    __syncthreads();
}

__global__ void __launch_bounds__(threads) mark(const __grid_constant__ struct png_encode_launch launch)
{
    __shared__ struct marking marking;
    struct block &block = launch.block_list[blockIdx.x];
    const struct part part = part_of(launch, (int)blockIdx.x);
    mark_bytes(block, part, launch.pixel);
    find_runs(block, DEFLATE_LONG_RUN, block.uncounted);
    price_literals(marking, block, part);
    find_runs(block, deflate_least_run(marking.lowest), block.runs);
    for (int word = (int)threadIdx.x; word < set_words; word += threads)
        block.chosen[word] &= ~block.runs[word];
    __syncthreads();
    uint32_t saved = 0;
    uint16_t *const positions = (uint16_t *)block.repetitions;
    const int count = list_positions(marking.search, block.chosen, positions);
    find_candidates(marking.search, part.bytes, positions, count,
                    [&](int position, int from) { saved += sample_gain(block, marking.prices, part, position, from); });
    atomicAdd(&marking.saved, saved);
    __syncthreads();
    const bool has_repetitions = deflate_saves_enough(marking.saved, marking.price, marking.total, (uint64_t)part.size);
    if (threadIdx.x == 0)
        block.has_repetitions = has_repetitions;
    if (has_repetitions)
        choose_hashed(block, part);
}

/* ---- The second kernel: the rest of step 5, and step 8 ---- */

/* Bytes of a block; length and distance as in struct block. No length: there is none. */
struct repetition {
    int start;
    uint32_t numbers;
};

struct walking {
    union {
        struct search search;
        uint32_t covered[set_words]; /* after the search, but for whole words */
    };
    struct word_set broken[2]; /* words of struct block's SAME that have zeros */
    struct word_set whole;     /* whole words that are covered */
    uint8_t prices[DEFLATE_LITERALS];
    int after[threads]; /* the first byte after each walk that no repetition has */
    struct deflate_uses uses;
};

/* The walk of a thread through the repetitions that begin in its segment. The segments are whole words of sets, so only
 * the thread writes to them. But the first repetition may begin before the segment. */
struct walk {
    struct block *block;
    struct part part;
    const struct walking *shared;
    int pixel;
    bool has_repetitions;
    int first, end;          /* the segment's first byte, and its end */
    struct repetition early; /* the one that begins before the segment */
    int literal, after;      /* the first byte that no repetition has, before and after the walk */
};

__device__ __forceinline__ int length_of(uint32_t numbers)
{
    return (int)(numbers & 0xffff);
}

/* A repetition, which is written in parts. A rest that is too short is left. */
__device__ __forceinline__ struct repetition make_repetition(int start, int length, int distance)
{
    const int rest = length % DEFLATE_LENGTH_MAX;
    length -= rest < DEFLATE_LENGTH_MIN ? rest : 0;
    return {start, (uint32_t)length | (uint32_t)distance << 16};
}

/* The run that starts at AT: the longer one, or the one of a byte. */
__device__ __forceinline__ struct repetition run_at(const struct walk &walk, int at)
{
    const int bytes = count_ones(walk.block->same[0], walk.shared->broken[0], at);
    const int pixels = count_ones(walk.block->same[1], walk.shared->broken[1], at);
    return make_repetition(at, max(bytes, pixels), bytes >= pixels ? 1 : walk.pixel);
}

/* The repetition of the candidate FROM at AT, if it saves bits; or else only where the equal bytes end. LITERAL is the
 * first byte that no repetition has. */
__device__ __forceinline__ struct repetition try_other(const struct walk &walk, int literal, int at, int from)
{
    const uint8_t *bytes = walk.part.bytes;
    const unsigned price = deflate_repetition_price((unsigned)(at - from));
    const int length = equal_length(bytes + at, bytes + from, walk.part.size - at);
    const int back = equal_before(bytes + at, bytes + from, min(at - literal, from));
    if (price_bytes(walk.block->runs, walk.shared->prices, bytes, at - back, at + length, price) <= price)
        return {at + length, 0};
    return make_repetition(at - back, back + length, at - from);
}

/* The first repetition from AT on that the walk takes. */
__device__ __forceinline__ struct repetition next_repetition(const struct walk &walk, int literal, int at)
{
    const struct block &block = *walk.block;
    const int run = find_next(block.starts, at, walk.end);
    int distance = 0, end = 0; /* the last equal bytes that save nothing: at their other positions they do not either */
    for (int position = at; walk.has_repetitions && (position = find_next(block.chosen, position, run)) < run;
         position++) {
        const int from = block.candidates[position];
        if (position < end && position - from == distance)
            continue;
        const struct repetition other = try_other(walk, literal, position, from);
        if (other.numbers != 0)
            return other;
        distance = position - from;
        end = other.start;
    }
    return run < walk.end ? run_at(walk, run) : repetition{0, 0};
}

__device__ __forceinline__ void clear_bits(uint32_t *bits, int from, int to)
{
    for (int at = from; at < to; at += 32 - at % 32)
        bits[at / 32] &= ~(inside(0, to - at) << at % 32);
}

/* Walk through the segment, from LITERAL on. A walk that is not the first one ends where it meets the one before: at a
 * repetition with the same end, all others are the same, too. */
__device__ __forceinline__ void walk_segment(struct walk &walk, int literal, bool is_first)
{
    struct block &block = *walk.block;
    const struct repetition old = walk.early;
    int cleared = walk.first; /* up to here, only this walk's repetitions are in the set */
    walk.literal = literal;
    walk.early.numbers = 0;
    for (int at = max(literal, walk.first); at < walk.end; at = literal) {
        const struct repetition next = next_repetition(walk, literal, at);
        if (next.numbers == 0)
            break;
        literal = next.start + length_of(next.numbers);
        if (next.start < walk.first) {
            walk.early = next;
            if (old.numbers != 0 && old.start + length_of(old.numbers) == literal)
                return;
            continue;
        }
        uint32_t *const numbers = &block.repetitions[next.start / 2];
        if (!is_first) {
            clear_bits(block.begun, cleared, next.start);
            if (has(block.begun, next.start) && *numbers == next.numbers)
                return;
            cleared = next.start + 1;
        }
        block.begun[next.start / 32] |= 1u << next.start % 32;
        *numbers = next.numbers;
    }
    if (!is_first)
        clear_bits(block.begun, cleared, walk.end);
    walk.after = literal;
}

__device__ __forceinline__ void set_bits(uint32_t *bits, int from, int to)
{
    for (int at = from; at < to; at += 32 - at % 32)
        atomicOr(&bits[at / 32], inside(0, to - at) << at % 32);
}

/* Cut the repetition into parts, and count its symbols. */
__device__ __forceinline__ void cut_repetition(struct walking &walking, struct block &block, int start)
{
    const uint32_t distance = block.repetitions[start / 2] >> 16;
    const int length = length_of(block.repetitions[start / 2]), end = start + length;
    const int parts = length / DEFLATE_LENGTH_MAX, rest = length % DEFLATE_LENGTH_MAX;
    const int first = (start - 1) / 32 + 1, last = end / 32; /* whole words */
    set_bits(walking.covered, start, min(end, 32 * first));
    set_bits(walking.whole.bits, first, last);
    set_bits(walking.covered, max(32 * last, start), end);
    if (parts > 0) {
        atomicAdd(&walking.uses.litlens[DEFLATE_LENGTH_FIRST + LENGTH_LAST], (uint32_t)parts);
        for (int at = start; at < end; at += DEFLATE_LENGTH_MAX) {
            atomicOr(&block.begun[at / 32], 1u << at % 32);
            block.repetitions[at / 2] = (uint32_t)min(end - at, (int)DEFLATE_LENGTH_MAX) | distance << 16;
        }
    }
    if (rest > 0)
        atomicAdd(&walking.uses.litlens[DEFLATE_LENGTH_FIRST + deflate_length_symbol((unsigned)rest)], 1u);
    atomicAdd(&walking.uses.distances[deflate_symbol(distance - 1, DISTANCE_STEPS)], (uint32_t)(parts + (rest > 0)));
}

/* Cut all repetitions into parts. */
__device__ __forceinline__ void cut_repetitions(struct walking &walking, struct block &block)
{
    constexpr int words_each = set_words / threads;
    uint32_t begun[words_each];
#pragma unroll
    for (int i = 0; i < words_each; i++) {
        begun[i] = block.begun[threads * i + (int)threadIdx.x];
        walking.covered[threads * i + (int)threadIdx.x] = 0;
    }
    if (threadIdx.x < set_words / 32)
        walking.whole.bits[threadIdx.x] = 0;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < words_each; i++)
        for (uint32_t left = begun[i]; left != 0; left &= left - 1)
            cut_repetition(walking, block, 32 * (threads * i + (int)threadIdx.x) + __ffs((int)left) - 1);
    __syncthreads();
}

/* Count the literals again: those in long runs were not counted, and the bytes of repetitions were. */
__device__ __forceinline__ void count_literals(struct walking &walking, struct block &block, const struct part &part)
{
    for (int word = (int)threadIdx.x; word < set_words; word += threads) {
        const uint32_t covered = has(walking.whole.bits, word) ? all_lanes : walking.covered[word];
        for (uint32_t left = (block.uncounted[word] ^ covered) & inside(word, part.size); left != 0; left &= left - 1) {
            const int bit = __ffs((int)left) - 1;
            atomicAdd(&walking.uses.litlens[part.bytes[32 * word + bit]], covered >> bit & 1 ? all_lanes : 1u);
        }
        block.covered[word] = covered;
    }
    __syncthreads();
}

/* Find the words of the same bytes that have zeros. */
__device__ __forceinline__ void find_broken(struct walking &walking, const struct block &block)
{
    for (int word = (int)threadIdx.x; word < set_words; word += threads)
        for (int i = 0; i < 2; i++) {
            const unsigned broken = __ballot_sync(all_lanes, block.same[i][word] != all_lanes);
            if (lane_id() == 0)
                walking.broken[i].bits[word / 32] = broken;
        }
    if (threadIdx.x < 2)
        walking.broken[threadIdx.x].bits[set_words / 32] = 0;
    __syncthreads();
}

/* Blocks of threads on a multiprocessor, which has 1,024 threads before 8.0, and at least 1,536 from there on. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
[[maybe_unused]] constexpr int walks_at_once = 4;
#else
[[maybe_unused]] constexpr int walks_at_once = 5;
#endif

/* Each thread walks through a segment. Where it begins depends on the thread before. All threads guess at first, and
 * walk again until none has guessed wrong: after K rounds, K threads are right, and nearly always all of them. */
__global__ void __launch_bounds__(threads, walks_at_once)
    walk_blocks(const __grid_constant__ struct png_encode_launch launch)
{
    __shared__ struct walking walking;
    const int t = (int)threadIdx.x;
    struct block &block = launch.block_list[blockIdx.x];
    const struct part part = part_of(launch, (int)blockIdx.x);
    const bool has_repetitions = block.has_repetitions != 0;
    walking.prices[t] = block.prices[t];
    for (int i = t; i < (int)(sizeof walking.uses / 4); i += threads) {
        uint32_t *const uses = (uint32_t *)&walking.uses;
        uses[i] = i < DEFLATE_LITERALS ? block.uses.litlens[i] : i == DEFLATE_END;
    }
    __syncthreads();
    if (has_repetitions) {
        uint16_t *const positions = (uint16_t *)block.repetitions;
        const int count = list_positions(walking.search, block.chosen, positions);
        find_candidates(walking.search, part.bytes, positions, count, [&](int position, int from) {
            if (!may_save(block, walking.prices, part, position, from))
                return;
            block.candidates[position] = (uint16_t)from;
            atomicOr(&block.chosen[position / 32], 1u << position % 32);
        });
    }
    find_broken(walking, block);
    const int segment = ((part.size - 1) / (32 * threads) + 1) * 32;
    struct walk walk = {&block, part, &walking, launch.pixel, has_repetitions};
    walk.first = min(t * segment, part.size);
    walk.end = min(walk.first + segment, part.size);
    walk_segment(walk, walk.first, true);
    for (;;) {
        walking.after[t] = walk.after;
        __syncthreads();
        const int right = t == 0 ? 0 : has_repetitions ? walking.after[t - 1] : max(walking.after[t - 1], walk.first);
        if (!__syncthreads_or(right != walk.literal))
            break;
        if (right != walk.literal)
            walk_segment(walk, right, false);
    }
    if (walk.early.numbers != 0) {
        atomicOr(&block.begun[walk.early.start / 32], 1u << walk.early.start % 32);
        block.repetitions[walk.early.start / 2] = walk.early.numbers;
    }
    __syncthreads();
    cut_repetitions(walking, block);
    count_literals(walking, block, part);
    for (int i = t; i < (int)(sizeof walking.uses / 4); i += threads)
        ((uint32_t *)&block.uses)[i] = ((const uint32_t *)&walking.uses)[i];
}
} // namespace

bool split_blocks(struct device *device, const struct png_encode_launch &launch, struct error *error)
{
    const unsigned blocks = (unsigned)launch.blocks;
    return queue_kernel(mark, blocks, threads, 0, device, error, launch) &&
           queue_kernel(walk_blocks, blocks, threads, 0, device, error, launch);
}
