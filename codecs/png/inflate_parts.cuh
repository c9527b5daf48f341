/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of inflate.h.
 * Between the two files that inflate: the stream, and what the kernels know of it. */
#ifndef GPUCONV_PNG_INFLATE_PARTS_CUH
#define GPUCONV_PNG_INFLATE_PARTS_CUH

#include "kernels/shared/lanes.cuh"
#include "png/inflate.cuh"
#include "png/symbols.h"

/* Smaller numbers, for tests, give small pictures several slices and groups. */
#ifndef SLICE_BYTES
#define SLICE_BYTES 65536
#define GROUP_SLICES 32
#endif

constexpr int span_pieces = 128; /* a thread has a piece */
constexpr uint32_t piece_bits = 1024;

/* Where a thread begins. */
struct piece {
    uint32_t bit;      /* from the span's first one on */
    uint32_t position; /* the offset of its first byte in the part */
};

/* Some symbols of a block with codes, or a stored block. */
struct span {
    uint64_t bit;            /* the bit at which the first symbol, or stored byte, begins */
    uint32_t position, size; /* bytes in the part */
    int next;                /* span of this part, or -1 */
    int piece_count;         /* 0 in a stored block */
    struct piece pieces[span_pieces];
    uint8_t lengths[INFLATE_LITERALS + INFLATE_DISTANCES]; /* the code lengths of the block */
};

/* A part of the stream, from a block's beginning to another's. */
struct part {
    uint64_t start, end; /* bits */
    uint64_t size;       /* bytes */
    uint64_t position;   /* the offset of its first byte in the inflated stream */
    int next;            /* the part at its end, or one of these */
    int first_span;
    unsigned slices, first_slice; /* count; number */
};

enum { NEXT_END = -1, NEXT_BAD = -2 };

/* Some pieces of a span, of about SLICE_BYTES bytes, or a stored block. Repetitions can make a span large, so slices,
 * not parts, are decoded beside each other. After the last one there is another, for the end. */
struct slice {
    uint64_t position;      /* the offset of its first byte in the inflated stream */
    uint32_t part_position; /* the offset of its first byte in its part */
    int span, first;        /* its number; the first piece */
};
constexpr uint32_t slice_bytes = SLICE_BYTES;
constexpr int group_slices = GROUP_SLICES; /* whose windows are followed together */

/* What the kernels get, by value. */
struct inflate_launch {
    const uint32_t *words;
    uint64_t bits;   /* bits of the stream */
    uint32_t *marks; /* a bit for each bit of the stream: does a block begin there? */
    uint64_t *survivors;
    unsigned survivor_max, part_max, span_max, slice_max;
    int rank_count;
    uint32_t *ranks; /* the number of marks before each RANK_WORDS words */
    uint64_t *sums;  /* the sums of blocks of ranks */
    struct part *parts;
    struct span *spans;
    int *chain; /* the numbers of the true parts */
    struct slice *slices;
    uint16_t *symbols;
    uint16_t *maps;   /* the window after each group, as symbols of the window before it */
    uint8_t *windows; /* the window before each slice */
    uint8_t *out;
    uint64_t expected; /* bytes */
    struct inflate_state *state;
};

constexpr int rank_words = 32; /* words of marks that have a common rank */

/* The blocks of a launch that loop over COUNT pieces of work, at most EACH on a multiprocessor of an H100 or H200,
 * which have 132. Chips with more leave some idle. */
static inline unsigned inflate_grid(size_t count, size_t each)
{
    constexpr size_t multiprocessors = 132;
    return (unsigned)(count < each * multiprocessors ? count : each * multiprocessors);
}

/* Is the stream left to the CPU already? Counts and positions then have no bounds, so the kernel must return. All
 * threads of a block call this. They get the same answer, even while another block of the launch sets the status. */
static __device__ __forceinline__ bool is_given_up(const struct inflate_launch &launch)
{
    return __syncthreads_or(launch.state->status != INFLATED) != 0;
}

/* Does piece T of SPAN begin a slice? Its size does not count. */
static __device__ __forceinline__ bool begins_slice(const struct span &span, int t)
{
    if (t == 0 || t >= span.piece_count)
        return t == 0;
    return (span.pieces[t].position - span.position) / slice_bytes !=
           (span.pieces[t - 1].position - span.position) / slice_bytes;
}

/* 64 bits from BIT on. Words after the stream can be read. */
static __device__ __forceinline__ uint64_t bits_at(const struct inflate_launch &launch, uint64_t bit)
{
    const uint32_t *words = launch.words + bit / 32;
    const unsigned shift = (unsigned)bit % 32;
    const uint32_t middle = words[1];
    return (uint64_t)__funnelshift_r(middle, words[2], shift) << 32 | __funnelshift_r(words[0], middle, shift);
}

/* ---- The lengths of codes ---- */

/* The lengths of a block's codes. A repetition of lengths may end after the last one: the array is 138 longer. */
struct code_lengths {
    uint8_t lengths[DEFLATE_LITLENS + DEFLATE_DISTANCES + 138];
    uint8_t table[1 << PRECODE_MAX]; /* the precode's table */
    int literals, distances;         /* counts */
};

/* Do the lengths of the precode, COUNT times 3 bits, use that code up? Of 2^PRECODE_MAX codes, one of length L takes
 * 2^(PRECODE_MAX - L). Four lengths at a time choose bytes with these numbers. */
static __device__ __forceinline__ bool is_precode_whole(uint64_t bits, int count)
{
    constexpr uint32_t up_to_3 = 16u << 24 | 32 << 16 | 64 << 8, from_4 = 1u << 24 | 2 << 16 | 4 << 8 | 8;
    uint32_t used = 0;
    bits &= (1ull << 3 * count) - 1;
#pragma unroll
    for (int i = 0; i < (PRECODES + 3) / 4; i++, bits >>= 12) {
        const uint32_t four = (uint32_t)bits;
        const uint32_t nibbles = (four & 7) | (four & 0x38) << 1 | (four & 0x1c0) << 2 | (four & 0xe00) << 3;
        used = __dp4a(__byte_perm(up_to_3, from_4, nibbles), 0x01010101u, used);
    }
    return used == 1 << PRECODE_MAX;
}
static_assert(PRECODE_MAX == 7, "the numbers are those of 7 bits");

/* Read the lengths of the codes of a block, after its type at *BIT, by one thread. Returns false if they are wrong. */
static __device__ bool read_lengths(const struct inflate_launch &launch, uint64_t *bit, struct code_lengths &codes)
{
    const uint64_t head = bits_at(launch, *bit);
    codes.literals = DEFLATE_LENGTH_FIRST + (int)(head & 31);
    codes.distances = 1 + (int)(head >> 5 & 31);
    const int precodes = 4 + (int)(head >> 10 & 15), all = codes.literals + codes.distances;
    uint64_t precode = bits_at(launch, *bit + 14);
    if (codes.literals > DEFLATE_LITLENS || codes.distances > DEFLATE_DISTANCES || !is_precode_whole(precode, precodes))
        return false;
    *bit += 14 + 3 * (uint64_t)precodes;
    uint64_t by_symbol = 0; /* the lengths, 3 bits for each symbol */
    for (int i = 0; i < precodes; i++, precode >>= 3)
        by_symbol |= (precode & 7) << 3 * precode_at(i);
    uint32_t code = 0;
    for (unsigned length = 1; length <= PRECODE_MAX; length++, code <<= 1)
        for (unsigned symbol = 0; symbol < PRECODES; symbol++) {
            if ((by_symbol >> 3 * symbol & 7) != length)
                continue;
            const uint32_t reversed = __brev(code++) >> (32 - length);
            for (uint32_t i = reversed; i < 1 << PRECODE_MAX; i += 1u << length)
                codes.table[i] = (uint8_t)(symbol << 3 | length);
        }
    int i = 0, used = 0; /* code space that both codes take */
    while (i < all && *bit <= launch.bits && used <= 2 << INFLATE_CODE_MAX) {
        const uint64_t bits = bits_at(launch, *bit);
        const uint8_t entry = codes.table[bits & ((1 << PRECODE_MAX) - 1)];
        const unsigned symbol = entry >> 3, code_bits = entry & 7, extra = precode_extra(symbol);
        const int more = (int)(bits >> code_bits & ((1u << extra) - 1));
        int count = 1, length = (int)symbol;
        *bit += code_bits + extra;
        if (symbol >= 16) {
            count = precode_least(symbol) + more;
            if (symbol == 16 && i == 0)
                return false;
            length = symbol == 16 ? codes.lengths[i - 1] : 0;
        }
        used += length > 0 ? count << (INFLATE_CODE_MAX - length) : 0;
        for (int k = 0; k < count; k++)
            codes.lengths[i + k] = (uint8_t)length;
        i += count;
    }
    return i == all && *bit <= launch.bits && codes.lengths[DEFLATE_END] != 0;
}

/* The part of 2^15 codes that COUNT lengths leave unused; below 0 if they do not fit. */
static __device__ __forceinline__ int unused_codes(const uint8_t *lengths, int count)
{
    int unused = 1 << INFLATE_CODE_MAX;
    for (int i = 0; i < count; i++)
        unused -= lengths[i] != 0 ? 1 << (INFLATE_CODE_MAX - lengths[i]) : 0;
    return unused;
}

/* The first code must be whole. The second may be empty, or have one code of one bit. */
static __device__ __forceinline__ bool are_lengths_right(const struct code_lengths &codes)
{
    const uint8_t *distances = codes.lengths + codes.literals;
    const int unused = unused_codes(distances, codes.distances);
    int count = 0;
    for (int i = 0; i < codes.distances; i++)
        count += distances[i] != 0;
    return unused_codes(codes.lengths, codes.literals) == 0 &&
           (inflate_accepts(unused, count) || unused == 1 << INFLATE_CODE_MAX);
}

/* Queue the kernels that measure all parts, and that decode all slices. (inflate_parts.cu) */
bool measure_parts(struct device *device, const struct inflate_launch &launch, struct error *error);
bool decode_slices(struct device *device, const struct inflate_launch &launch, struct error *error);

#endif
