/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of find_candidates in deflate_loops.c.
 * The candidates of positions: for each, the latest position before it with the same hash and the same bytes (step 5 of
 * png/rules.h). */
#ifndef GPUCONV_PNG_CANDIDATES_CUH
#define GPUCONV_PNG_CANDIDATES_CUH

#include "png/encode.cuh"

/* For the search of candidates. Each warp has the hashes of one part. */
constexpr int parts = warps, part_shift = DEFLATE_HASH_BITS - 3, step_words = 4, step_positions = threads * step_words;
static_assert(parts == 8, "3 bits of a hash");

struct search {
    uint16_t latest[1 << DEFLATE_HASH_BITS]; /* 1 + the latest position with that hash, or 0 */
    uint32_t
        queue[step_positions]; /* a step's positions, by part: and from bit 16 on the hash, and then what LATEST has */
    uint32_t counts[warps][parts]; /* the number of each warp's positions in each part */
    uint32_t sums[warps];
};

/* List the positions in BITS in order, and empty BITS. Returns their number. */
static __device__ __forceinline__ int list_positions(struct search &search, uint32_t *bits, uint16_t *positions)
{
    constexpr int words_each = set_words / threads;
    uint32_t words[words_each], count = 0, whole;
#pragma unroll
    for (int i = 0; i < words_each; i++) {
        words[i] = bits[words_each * threadIdx.x + i];
        bits[words_each * threadIdx.x + i] = 0;
        count += (uint32_t)__popc((int)words[i]);
    }
    uint32_t at = sum_before<warps>(search.sums, count, &whole);
#pragma unroll
    for (int i = 0; i < words_each; i++)
        for (uint32_t left = words[i]; left != 0; left &= left - 1)
            positions[at++] = (uint16_t)(32 * (words_each * (int)threadIdx.x + i) + __ffs((int)left) - 1);
    __syncthreads();
    return (int)whole;
}

/* Queue up to step_positions positions from FIRST on, each in the part of its hash and there in order. Returns the
 * queue's part that the warp has: its begin, and from bit 16 on its end. */
static __device__ __forceinline__ uint32_t queue_positions(struct search &search, const uint8_t *bytes,
                                                           const uint16_t *positions, int first, int count)
{
    const int lane = lane_id(), warp = (int)threadIdx.x / 32;
    uint32_t items[step_words], before[step_words], sum = 0; /* the positions of the part whose number is the lane */
#pragma unroll
    for (int k = 0; k < step_words; k++) {
        const int i = first + 32 * (step_words * warp + k) + lane;
        const bool is_position = i < count;
        const uint32_t position = is_position ? positions[i] : 0, hash = deflate_hash(load64(bytes + position));
        const unsigned used = __ballot_sync(all_lanes, is_position);
        unsigned peers = used, mine = used;
#pragma unroll
        for (int bit = 0; bit < 3; bit++) {
            const unsigned set = __ballot_sync(all_lanes, (int)(hash >> (part_shift + bit) & 1));
            peers &= hash >> (part_shift + bit) & 1 ? set : ~set;
            mine &= lane >> bit & 1 ? set : ~set;
        }
        items[k] = position | hash << 16;
        before[k] = __shfl_sync(all_lanes, sum, (int)(hash >> part_shift)) + lanes_before(peers);
        sum += (uint32_t)__popc((int)mine);
    }
    if (lane < parts)
        search.counts[warp][lane] = sum;
    __syncthreads();
    uint32_t start = 0, whole = 0;
#pragma unroll
    for (int i = 0; i < warps; i++) {
        start += i < warp ? search.counts[i][lane % parts] : 0;
        whole += search.counts[i][lane % parts];
    }
    const uint32_t end = sum_up_to_lane(whole); /* for the first lanes, which have a part each */
    start += end - whole;
#pragma unroll
    for (int k = 0; k < step_words; k++) {
        const uint32_t at = __shfl_sync(all_lanes, start, (int)(items[k] >> (16 + part_shift))) + before[k];
        if (first + 32 * (step_words * warp + k) + lane < count)
            search.queue[at] = items[k];
    }
    __syncthreads();
    return __shfl_sync(all_lanes, (end - whole) | end << 16, warp);
}

/* Find the candidates of COUNT positions, and visit each position that has one: VISIT(position, candidate). A step
 * takes some positions. Each warp looks up those of its part, which only it has, one after the other. */
template <typename Visit>
static __device__ __forceinline__ void find_candidates(struct search &search, const uint8_t *bytes,
                                                       const uint16_t *positions, int count, Visit visit)
{
    const int lane = lane_id();
    for (int i = (int)threadIdx.x; i < (1 << DEFLATE_HASH_BITS) / 2; i += threads)
        ((uint32_t *)search.latest)[i] = 0;
    for (int first = 0; first < count; first += step_positions) {
        const uint32_t range = queue_positions(search, bytes, positions, first, count);
        const int end = (int)(range >> 16);
        for (int i = (int)(range & 0xffff) + lane; i - lane < end; i += 32) {
            const bool is_position = i < end;
            const uint32_t item = is_position ? search.queue[i] : ~(uint32_t)lane, hash = item >> 16;
            const unsigned peers = __match_any_sync(all_lanes, is_position ? hash : item);
            const unsigned before = peers & ((1u << lane) - 1);
            const uint32_t other = __shfl_sync(all_lanes, item, before != 0 ? 31 - __clz((int)before) : 0);
            uint32_t from = is_position ? search.latest[hash] : 0;
            from = before != 0 ? (other & 0xffff) + 1 : from;
            __syncwarp();
            if (is_position) {
                if (peers >> lane == 1) /* the last one with this hash */
                    search.latest[hash] = (uint16_t)((item & 0xffff) + 1);
                search.queue[i] = (item & 0xffff) | from << 16;
            }
            __syncwarp();
        }
        __syncthreads();
        for (int i = (int)threadIdx.x; i < min(count - first, step_positions); i += threads) {
            const int position = (int)(search.queue[i] & 0xffff), from = (int)(search.queue[i] >> 16) - 1;
            if (from >= 0 && position - from <= DEFLATE_WINDOW && load64(bytes + from) == load64(bytes + position))
                visit(position, from);
        }
    }
    __syncthreads();
}

#endif
