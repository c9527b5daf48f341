/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of codes.h.
 * The Huffman codes of a block, by a warp. The results are those of png/codes.h: the order of equal symbols, which may
 * be another one, does not matter, because only the number of codes of each length does. */
#ifndef GPUCONV_PNG_CODES_CUH
#define GPUCONV_PNG_CODES_CUH

#include "png/encode.cuh"

/* What a warp keeps in shared memory while it makes the codes of a block. */
struct coding {
    struct deflate_uses uses;
    struct deflate_codes codes;
    uint32_t keys[DEFLATE_LITLENS];    /* the symbols that are used, in 9 bits, and their uses above */
    uint32_t weights[DEFLATE_LITLENS]; /* in rising order: of the symbols, and then the lengths of their codes */
    unsigned lengths[CODE_MAX + 1];    /* the codes of each length */
    unsigned next[CODE_MAX + 1];       /* code of each length */
    uint32_t precode_uses[PRECODES];
    uint8_t described[DEFLATE_LITLENS + DEFLATE_DISTANCES];
    uint32_t description[description_words];
};

/* Put COUNT bits of VALUE, at most 64, at bit AT of WORDS, which may be shared or global. */
static __device__ __forceinline__ void put_bits(uint32_t *words, uint64_t at, uint64_t value, unsigned count)
{
    uint32_t *word = words + at / 32;
    const unsigned shift = (unsigned)at % 32;
    if (count == 0)
        return;
    atomicOr(word, (uint32_t)(value << shift));
    if (shift + count > 32)
        atomicOr(word + 1, (uint32_t)(value << shift >> 32));
    if (shift + count > 64)
        atomicOr(word + 2, (uint32_t)(value >> (64 - shift)));
}

/* List the symbols that are used, and up to two others if there are less than two. Returns their number. */
static __device__ __forceinline__ int list_symbols(struct coding &coding, const uint32_t *uses, int symbols)
{
    const int lane = (int)threadIdx.x;
    int count = 0;
    for (int first = 0; first < symbols; first += 32) {
        const int i = first + lane;
        const bool is_used = i < symbols && uses[i] > 0;
        const unsigned used = __ballot_sync(all_lanes, is_used);
        if (is_used)
            coding.keys[count + (int)lanes_before(used)] = uses[i] << 9 | (uint32_t)i;
        count += __popc((int)used);
    }
    if (lane == 0)
        for (int i = 0, n = count; n < 2; i++)
            if (uses[i] == 0)
                coding.keys[n++] = 1u << 9 | (uint32_t)i;
    __syncwarp();
    return max(count, 2);
}

/* Sort the keys: a key's rank is the number of smaller ones. */
static __device__ __forceinline__ void sort_keys(struct coding &coding, int count)
{
    constexpr int keys_each = (DEFLATE_LITLENS + 31) / 32;
    const int lane = (int)threadIdx.x;
    uint32_t keys[keys_each], ranks[keys_each] = {};
#pragma unroll
    for (int k = 0; k < keys_each; k++)
        keys[k] = 32 * k + lane < count ? coding.keys[32 * k + lane] : 0;
    for (int i = 0; i < count; i++) {
        const uint32_t key = coding.keys[i];
#pragma unroll
        for (int k = 0; k < keys_each; k++)
            ranks[k] += key < keys[k];
    }
    __syncwarp();
#pragma unroll
    for (int k = 0; k < keys_each; k++)
        if (32 * k + lane < count) {
            coding.keys[ranks[k]] = keys[k];
            coding.weights[ranks[k]] = keys[k] >> 9;
        }
    __syncwarp();
}

/* code_make of png/codes.h. */
static __device__ __forceinline__ void make_code(struct coding &coding, const uint32_t *uses, int symbols, int limit,
                                                 struct deflate_code *codes)
{
    const int lane = (int)threadIdx.x, count = list_symbols(coding, uses, symbols);
    for (int i = lane; i < symbols; i += 32)
        codes[i].bits = codes[i].length = 0;
    sort_keys(coding, count);
    if (lane == 0)
        huffman_lengths(coding.weights, count);
    if (lane <= CODE_MAX)
        coding.lengths[lane] = 0;
    __syncwarp();
    for (int i = lane; i < count; i += 32)
        atomicAdd(&coding.lengths[min(coding.weights[i], (uint32_t)limit)], 1u);
    __syncwarp();
    if (lane == 0) {
        limit_lengths(coding.lengths, limit);
        for (unsigned length = 1, first = 0; length <= (unsigned)limit; length++) {
            coding.next[length] = first;
            first = (first + coding.lengths[length]) << 1;
        }
    }
    __syncwarp();
    for (int i = lane; i < count; i += 32) { /* the rarest get the longest */
        unsigned length = (unsigned)limit;
        for (unsigned left = (unsigned)i; left >= coding.lengths[length]; length--)
            left -= coding.lengths[length];
        codes[coding.keys[i] & 511].length = (uint16_t)length;
    }
    __syncwarp();
    for (int first = 0; first < symbols; first += 32) {
        const int i = first + lane;
        const unsigned length = i < symbols ? codes[i].length : 0, peers = __match_any_sync(all_lanes, length);
        const unsigned code = (length > 0 ? coding.next[length] : 0) + lanes_before(peers);
        __syncwarp();
        if (length > 0) {
            codes[i].bits = (uint16_t)(__brev(code) >> (32 - length));
            if (peers >> lane == 1) /* the last one of this length */
                coding.next[length] = code + 1;
        }
        __syncwarp();
    }
}

/* Make the codes that describe the other two. */
static __device__ __forceinline__ void make_precode(struct coding &coding)
{
    struct deflate_codes &codes = coding.codes;
    const int lane = (int)threadIdx.x;
    int litlens = DEFLATE_LITLENS, distances = DEFLATE_DISTANCES, precodes = PRECODES;
    while (codes.litlens[litlens - 1].length == 0)
        litlens--;
    while (codes.distances[distances - 1].length == 0)
        distances--;
    for (int i = lane; i < litlens; i += 32)
        coding.described[i] = (uint8_t)codes.litlens[i].length;
    if (lane < distances)
        coding.described[litlens + lane] = (uint8_t)codes.distances[lane].length;
    if (lane < PRECODES)
        coding.precode_uses[lane] = 0;
    __syncwarp();
    if (lane == 0)
        codes.item_count = describe_codes(coding.described, litlens + distances, codes.items);
    __syncwarp();
    for (int i = lane; i < codes.item_count; i += 32)
        atomicAdd(&coding.precode_uses[codes.items[i] & 31], 1u);
    __syncwarp();
    make_code(coding, coding.precode_uses, PRECODES, PRECODE_MAX, codes.precodes);
    while (codes.precodes[precode_at(precodes - 1)].length == 0)
        precodes--;
    if (lane == 0) {
        codes.litlen_count = litlens;
        codes.distance_count = distances;
        codes.precode_count = precodes;
    }
    __syncwarp();
}

/* deflate_write_description. Returns its bits. */
static __device__ __forceinline__ unsigned describe(struct coding &coding, bool last)
{
    const struct deflate_codes &codes = coding.codes;
    const int lane = (int)threadIdx.x;
    for (int i = lane; i < description_words; i += 32)
        coding.description[i] = 0;
    __syncwarp();
    if (lane == 0)
        put_bits(coding.description, 0, deflate_head(&codes, last), DEFLATE_HEAD_BITS);
    if (lane < codes.precode_count)
        put_bits(coding.description, DEFLATE_HEAD_BITS + 3 * (unsigned)lane, codes.precodes[precode_at(lane)].length,
                 3);
    unsigned at = DEFLATE_HEAD_BITS + 3 * (unsigned)codes.precode_count;
    for (int first = 0; first < codes.item_count; first += 32) {
        unsigned value = 0, count = 0;
        if (first + lane < codes.item_count) {
            const unsigned item = codes.items[first + lane];
            const struct deflate_code code = codes.precodes[item & 31];
            value = code.bits | item >> 5 << code.length;
            count = code.length + precode_extra(item & 31);
        }
        const unsigned end = sum_up_to_lane(count);
        put_bits(coding.description, at + end - count, value, count);
        at += __shfl_sync(all_lanes, end, 31);
    }
    __syncwarp();
    return at;
}

/* The bits of all symbols, with their extra bits. */
static __device__ __forceinline__ unsigned symbol_bits(const struct coding &coding)
{
    unsigned bits = 0;
    for (unsigned i = threadIdx.x; i < DEFLATE_LITLENS; i += 32) {
        const bool has_extra = i >= DEFLATE_LENGTH_FIRST && i < DEFLATE_LENGTH_FIRST + LENGTH_LAST;
        const unsigned extra = has_extra ? deflate_extra(i - DEFLATE_LENGTH_FIRST, LENGTH_STEPS) : 0;
        bits += coding.uses.litlens[i] * (coding.codes.litlens[i].length + extra);
    }
    if (threadIdx.x < DEFLATE_DISTANCES)
        bits += coding.uses.distances[threadIdx.x] *
                (coding.codes.distances[threadIdx.x].length + deflate_extra(threadIdx.x, DISTANCE_STEPS));
    return sum_of_lanes(bits);
}

#endif
