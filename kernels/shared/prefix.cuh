/* SPDX-License-Identifier: MIT
 *
 * For codecs/ on the GPU: sums over all blocks of threads before one, in a single launch (Merrill and
 * Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016). Each block draws a ticket, which says
 * what part of the work it does. It publishes its own sum. It looks back at the blocks with lower tickets until one has
 * published a sum from the beginning. Then it publishes its own sum from the beginning. A block waits only for blocks
 * with lower tickets. These run already, so all blocks finish. */
#ifndef GPUCONV_PREFIX_CUH
#define GPUCONV_PREFIX_CUH

#include "kernels/shared/lanes.cuh"

/* A published word: a sum of 48 bits, 8 bits of any meaning, and how far the sum reaches. */
constexpr int prefix_sum_bits = 48;
constexpr uint64_t prefix_sum_mask = (1ull << prefix_sum_bits) - 1;
constexpr uint64_t prefix_own = 1ull << 62, prefix_whole = 2ull << 62, prefix_reach = 3ull << 62;

/* A word that is 0 is unpublished. A word is complete in itself, so no fence is needed. */
static __device__ __forceinline__ uint64_t prefix_load(const uint64_t *word)
{
    return *(const volatile uint64_t *)word;
}

static __device__ __forceinline__ void prefix_publish(uint64_t *word, uint64_t value)
{
    *(volatile uint64_t *)word = value;
}

/* Publish SUM and EXTRA of block TICKET in WORDS, which were 0, and return the sum of all blocks with lower tickets.
 * *BEFORE becomes the extra bits of the previous block, or 0. A whole warp calls this. */
static __device__ __forceinline__ uint64_t prefix_before(uint64_t *words, int ticket, uint64_t sum, uint32_t extra,
                                                         uint32_t *before)
{
    const int lane = lane_id();
    const uint64_t mine = sum | (uint64_t)extra << prefix_sum_bits;
    *before = 0;
    if (ticket == 0) {
        if (lane == 0)
            prefix_publish(words, mine | prefix_whole);
        return 0;
    }
    if (lane == 0)
        prefix_publish(words + ticket, mine | prefix_own);
    uint64_t result = 0;
    for (int last = ticket - 1;; last -= 32) {
        uint64_t word;
        do /* before the first block there is nothing */
            word = last >= lane ? prefix_load(words + (last - lane)) : prefix_whole;
        while (__any_sync(all_lanes, word == 0));
        if (last == ticket - 1)
            *before = (uint32_t)(__shfl_sync(all_lanes, word, 0) >> prefix_sum_bits) & 255;
        const unsigned whole = __ballot_sync(all_lanes, (word & prefix_reach) == prefix_whole);
        result += sum_of_lanes(whole == 0 || lane <= __ffs((int)whole) - 1 ? word & prefix_sum_mask : 0);
        if (whole != 0)
            break;
    }
    if (lane == 0)
        prefix_publish(words + ticket, ((result + sum) & prefix_sum_mask) | (mine & ~prefix_sum_mask) | prefix_whole);
    return result;
}

#endif
