/* SPDX-License-Identifier: MIT
 *
 * Inflating on a GPU. A stream has no index, but a block with codes of its own is recognised by its header, at whatever
 * bit it begins. So the stream is cut into parts at such blocks, and a warp decodes a part:
 *
 *     find      a thread tests 32 bits for the beginning of such a header
 *     validate  a thread reads the lengths of the codes of what looks like one
 *     rank      the remaining beginnings get numbers, in their order
 *     measure   a warp decodes from one beginning until a block ends at another, and counts bytes
 *     link      one thread follows the parts from the first bit on; false beginnings are left out
 *     decode    a warp decodes a part again, to symbols of 16 bits. What it repeats from the parts before becomes a
 *               marker, a place in the 32 KiB before the part
 *     windows   these 32 KiB become known, part after part; groups of parts first without the group before
 *     resolve   all other symbols become bytes
 *
 * Nothing is written that was not counted, a part ends with its stream, and all counts have limits. Whatever is not
 * right is left to the CPU, which finds the words for it. */
#include "kernels/png/inflate.cuh"

#include "kernels/shared/prefix.cuh"
#include "png/inflate_codes.h"
#include "png/symbols.h"

namespace
{
constexpr unsigned all_lanes = 0xffffffff;
constexpr int threads = 256;
constexpr int window = 1 << 15, marker = 1 << 15; /* symbols from MARKER on are places in the window */
constexpr int chunk_words = 32;                   /* of marks, which have a common rank */
constexpr int group_parts = 32;                   /* whose windows are followed together */

/* A part of the stream, from a block's beginning to another's. */
struct part {
    uint64_t start, end; /* bits */
    uint64_t size;       /* bytes */
    uint64_t place;      /* of its first byte */
    int next;            /* the part at its end */
};

enum { NEXT_END = -1, NEXT_BAD = -2 };

/* What the kernels get, by value. */
struct stream {
    const uint32_t *words;
    uint64_t bits;   /* of the stream */
    uint32_t *marks; /* a bit for each bit of the stream: does a block begin there? */
    uint64_t *survivors;
    unsigned survivor_max, part_max;
    int mark_words, chunk_count;
    uint32_t *chunks; /* the number of marks before each chunk */
    uint64_t *sums;   /* of blocks of chunks */
    struct part *parts;
    int *chain; /* the numbers of the true parts */
    uint16_t *symbols;
    uint16_t *maps;   /* of the groups: the window after each, as symbols of the window before it */
    uint8_t *windows; /* the window before each group */
    uint8_t *out;
    uint64_t expected; /* bytes */
    struct inflate_state *state;
};

__device__ __forceinline__ int lane_id()
{
    return (int)threadIdx.x % 32;
}

/* 64 bits from BIT on. Words after the stream can be read. */
__device__ __forceinline__ uint64_t bits_at(const struct stream &stream, uint64_t bit)
{
    const uint32_t *words = stream.words + bit / 32;
    const unsigned shift = (unsigned)bit % 32;
    const uint32_t middle = words[1];
    return (uint64_t)__funnelshift_r(middle, words[2], shift) << 32 | __funnelshift_r(words[0], middle, shift);
}

/* ---- Beginnings ---- */

/* Do the lengths of the third code, COUNT times 3 bits, use that code up? */
__device__ __forceinline__ bool is_precode_whole(uint64_t bits, int count)
{
    int unused = 1 << PRECODE_MAX;
    for (int i = 0; i < count; i++, bits >>= 3)
        unused -= (bits & 7) != 0 ? 1 << PRECODE_MAX >> (bits & 7) : 0;
    return unused == 0;
}

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

/* ---- Codes ---- */

/* The codes of a warp. */
struct codes {
    uint32_t literals[1 << 10], distances[1 << 8];
    struct inflate_code literal_code, distance_code;
    uint8_t lengths[DEFLATE_LITLENS + DEFLATE_DISTANCES + 138];
    uint8_t precodes[1 << PRECODE_MAX];
    uint16_t used[INFLATE_CODE_MAX + 1];
};
constexpr int literal_bits = 10, distance_bits = 8;

/* Read the lengths of the codes of a block, after its type at *BIT, to LENGTHS. TABLE has 128 bytes. False: they are
 * wrong. By one thread. */
__device__ bool read_lengths(const struct stream &stream, uint64_t *bit, uint8_t *lengths, uint8_t *table,
                             int *literals, int *distances)
{
    const uint64_t head = bits_at(stream, *bit);
    *literals = DEFLATE_LENGTH_FIRST + (int)(head & 31);
    *distances = 1 + (int)(head >> 5 & 31);
    const int precodes = 4 + (int)(head >> 10 & 15), all = *literals + *distances;
    uint64_t precode = bits_at(stream, *bit + 14);
    if (*literals > DEFLATE_LITLENS || *distances > DEFLATE_DISTANCES || !is_precode_whole(precode, precodes))
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
                table[i] = (uint8_t)(symbol << 3 | length);
        }
    int i = 0, used = 0; /* of two codes */
    while (i < all && used <= 2 << INFLATE_CODE_MAX) {
        const uint64_t bits = bits_at(stream, *bit);
        const uint8_t entry = table[bits & ((1 << PRECODE_MAX) - 1)];
        const unsigned symbol = entry >> 3, own = entry & 7, extra = precode_extra(symbol);
        const int more = (int)(bits >> own & ((1u << extra) - 1));
        int count = 1, length = (int)symbol;
        *bit += own + extra;
        if (symbol >= 16) {
            count = (symbol == 18 ? 11 : 3) + more;
            if (symbol == 16 && i == 0)
                return false;
            length = symbol == 16 ? lengths[i - 1] : 0;
        }
        used += length > 0 ? count << (INFLATE_CODE_MAX - length) : 0;
        for (int k = 0; k < count; k++)
            lengths[i + k] = (uint8_t)length;
        i += count;
    }
    return i == all && *bit <= stream.bits && lengths[DEFLATE_END] != 0;
}

/* The part of 2^15 codes that COUNT lengths leave unused; below 0 if they do not fit. */
__device__ __forceinline__ int unused_codes(const uint8_t *lengths, int count)
{
    int unused = 1 << INFLATE_CODE_MAX;
    for (int i = 0; i < count; i++)
        unused -= lengths[i] != 0 ? 1 << (INFLATE_CODE_MAX - lengths[i]) : 0;
    return unused;
}

/* The first code must be whole. The second may be empty, or have one code of one bit. */
__device__ __forceinline__ bool are_lengths_right(const uint8_t *lengths, int literals, int distances)
{
    const int unused = unused_codes(lengths + literals, distances);
    int codes = 0;
    for (int i = 0; i < distances; i++)
        codes += lengths[literals + i] != 0;
    return unused_codes(lengths, literals) == 0 &&
           (unused == 0 || (unused == 1 << (INFLATE_CODE_MAX - 1) && codes == 1) || unused == 1 << INFLATE_CODE_MAX);
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
        uint8_t lengths[DEFLATE_LITLENS + DEFLATE_DISTANCES + 138], table[1 << PRECODE_MAX];
        uint64_t bit = stream.survivors[i] + 3;
        int literals, distances;
        if (read_lengths(stream, &bit, lengths, table, &literals, &distances) &&
            are_lengths_right(lengths, literals, distances))
            atomicOr(&stream.marks[stream.survivors[i] / 32], 1u << stream.survivors[i] % 32);
    }
}

/* Number the marks. A thread has a chunk. */
__global__ void __launch_bounds__(threads) rank_marks(const __grid_constant__ struct stream stream)
{
    __shared__ unsigned ticket, sums[threads];
    __shared__ uint64_t before;
    const int t = (int)threadIdx.x;
    if (t == 0)
        ticket = atomicAdd(&stream.state->ticket, 1u);
    __syncthreads();
    const int chunk = (int)ticket * threads + t;
    unsigned count = 0;
    for (int i = 0; chunk < stream.chunk_count && i < chunk_words; i++)
        count += (unsigned)__popc((int)stream.marks[chunk * chunk_words + i]);
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
    if (chunk >= stream.chunk_count)
        return;
    unsigned rank = (unsigned)before + sums[t] - count;
    stream.chunks[chunk] = rank;
    for (int i = 0; i < chunk_words; i++)
        for (uint32_t left = stream.marks[chunk * chunk_words + i]; left != 0; left &= left - 1, rank++)
            if (rank < stream.part_max)
                stream.parts[rank].start = 32 * (uint64_t)(chunk * chunk_words + i) + (uint64_t)(__ffs((int)left) - 1);
    if (chunk == stream.chunk_count - 1) {
        stream.state->parts = min(rank, stream.part_max);
        if (rank > stream.part_max)
            stream.state->status = INFLATE_TOO_MANY;
    }
}

/* The number of the mark at BIT, by a warp. -1: there is none. */
__device__ __forceinline__ int mark_at(const struct stream &stream, uint64_t bit)
{
    if (bit >= stream.bits || (stream.marks[bit / 32] >> bit % 32 & 1) == 0)
        return -1;
    const int word = (int)(bit / 32), own = word / chunk_words * chunk_words + lane_id();
    const uint32_t here = own > word ? 0 : stream.marks[own] & (own < word ? all_lanes : (1u << bit % 32) - 1);
    int before = __popc((int)here);
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        before += __shfl_xor_sync(all_lanes, before, step);
    return (int)stream.chunks[word / chunk_words] + before;
}

/* Set a code, and its table of BITS bits, from the lengths of COUNT symbols, by a warp. */
__device__ void set_code(struct codes &codes, struct inflate_code &code, uint32_t *table, int bits,
                         const uint8_t *lengths, int count, bool is_distance)
{
    const int lane = lane_id();
    for (int i = lane; i < 1 << bits; i += 32)
        table[i] = 0;
    if (lane <= INFLATE_CODE_MAX)
        code.count[lane] = codes.used[lane] = 0;
    __syncwarp();
    for (int first = 0; first < count; first += 32) {
        const int length = first + lane < count ? lengths[first + lane] : 0;
        const unsigned peers = __match_any_sync(all_lanes, length);
        if (peers >> lane == 1 && length != 0)
            code.count[length] = (uint16_t)(code.count[length] + __popc((int)peers));
        __syncwarp();
    }
    if (lane == 0) {
        code.first[0] = code.place[0] = 0;
        for (int length = 1, next = 0, place = 0; length <= INFLATE_CODE_MAX; length++) {
            code.first[length] = next <<= 1;
            code.place[length] = (uint16_t)place;
            next += code.count[length];
            place += code.count[length];
        }
    }
    __syncwarp();
    for (int first = 0; first < count; first += 32) {
        const int symbol = first + lane, length = symbol < count ? lengths[symbol] : 0;
        const unsigned peers = __match_any_sync(all_lanes, length), before = peers & ((1u << lane) - 1);
        const int rank = codes.used[length] + __popc((int)before);
        __syncwarp();
        if (peers >> lane == 1)
            codes.used[length] = (uint16_t)(rank + 1);
        if (length != 0)
            code.list[code.place[length] + rank] = (uint16_t)symbol;
        if (length != 0 && length <= bits) {
            const uint32_t entry = inflate_entry((unsigned)symbol, length, is_distance);
            for (uint32_t i = __brev((uint32_t)(code.first[length] + rank)) >> (32 - length); i < 1u << bits;
                 i += 1u << length)
                table[i] = entry;
        }
        __syncwarp();
    }
}

/* Set the codes of a block of TYPE 1 or 2 at *BIT, after its type, by a warp. */
__device__ bool set_codes(const struct stream &stream, struct codes &codes, unsigned type, uint64_t *bit)
{
    const int lane = lane_id();
    int literals = INFLATE_LITERALS, distances = INFLATE_DISTANCES;
    uint64_t after = *bit;
    int is_right = 1;
    if (type == 1) {
        for (int i = lane; i < INFLATE_LITERALS + INFLATE_DISTANCES; i += 32)
            codes.lengths[i] = i < 144 ? 8 : i < 256 ? 9 : i < 280 ? 7 : i < INFLATE_LITERALS ? 8 : 5;
    } else {
        if (lane == 0)
            is_right = read_lengths(stream, &after, codes.lengths, codes.precodes, &literals, &distances) &&
                       are_lengths_right(codes.lengths, literals, distances);
        is_right = __shfl_sync(all_lanes, is_right, 0);
        literals = __shfl_sync(all_lanes, literals, 0);
        distances = __shfl_sync(all_lanes, distances, 0);
        *bit = __shfl_sync(all_lanes, after, 0);
    }
    __syncwarp();
    if (!is_right)
        return false;
    set_code(codes, codes.literal_code, codes.literals, literal_bits, codes.lengths, literals, false);
    set_code(codes, codes.distance_code, codes.distances, distance_bits, codes.lengths + literals, distances, true);
    return true;
}

/* ---- Symbols ---- */

/* The next bits of the stream. All lanes of a warp read the same. */
struct reader {
    const uint32_t *next; /* the word after AHEAD */
    uint64_t buffer;      /* COUNT bits are right, at least 33 after a refill */
    uint32_t ahead;
    int count;
};

__device__ __forceinline__ struct reader read_from(const struct stream &stream, uint64_t bit)
{
    struct reader reader;
    reader.buffer = bits_at(stream, bit);
    reader.count = 64 - (int)(bit % 32);
    reader.buffer &= bit % 32 != 0 ? (1ull << reader.count) - 1 : ~0ull;
    reader.next = stream.words + bit / 32 + 3;
    reader.ahead = reader.next[-1];
    return reader;
}

__device__ __forceinline__ uint64_t bit_of(const struct stream &stream, const struct reader &reader)
{
    return 32 * (uint64_t)(reader.next - 1 - stream.words) - (uint64_t)reader.count;
}

__device__ __forceinline__ void refill(struct reader &reader)
{
    if (reader.count > 32)
        return;
    reader.buffer |= (uint64_t)reader.ahead << reader.count;
    reader.count += 32;
    reader.ahead = *reader.next++;
}

__device__ __forceinline__ void drop(struct reader &reader, unsigned bits)
{
    reader.buffer >>= bits;
    reader.count -= (int)bits;
}

/* The value of a length or a distance, whose bits are dropped. */
__device__ __forceinline__ int take_value(struct reader &reader, uint32_t entry)
{
    const unsigned bits = entry & 31, own = entry >> 8 & 15;
    const int value = (int)((entry >> 16) + (uint32_t)(reader.buffer >> own & ((1ull << (bits - own)) - 1)));
    drop(reader, bits);
    return value;
}

/* A part's output, by a warp. */
struct output {
    uint16_t *symbols;          /* of the part; NULL: they are only counted */
    uint64_t size, max, before; /* BEFORE: bytes of the parts before */
    int waiting;                /* literals that are not written yet; lane K has number K */
    uint16_t literal;
};

__device__ __forceinline__ void write_waiting(struct output &output)
{
    if (output.symbols != NULL && lane_id() < output.waiting)
        output.symbols[output.size - (uint64_t)output.waiting + (uint64_t)lane_id()] = output.literal;
    output.waiting = 0;
}

__device__ __forceinline__ void put_literal(struct output &output, uint32_t byte)
{
    if (output.waiting == lane_id())
        output.literal = (uint16_t)byte;
    output.size++;
    if (++output.waiting == 32)
        write_waiting(output);
}

/* Repeat LENGTH symbols from DISTANCE before. What is before the part becomes markers. */
__device__ __forceinline__ void repeat(struct output &output, int length, int distance)
{
    write_waiting(output);
    __syncwarp();
    if (output.symbols != NULL)
        for (int i = lane_id(); i < length; i += 32) {
            const int64_t from = (int64_t)output.size - distance + i % distance;
            output.symbols[output.size + (uint64_t)i] =
                from >= 0 ? output.symbols[from] : (uint16_t)(marker + window + (int)from);
        }
    output.size += (uint64_t)length;
    __syncwarp();
}

/* Decode the symbols of a block with codes. False: they are wrong, or too many. */
__device__ bool decode_symbols(const struct stream &stream, const struct codes &codes, struct reader &reader,
                               struct output &output)
{
    const uint32_t *const end = stream.words + stream.bits / 32 + 4;
    while (output.size <= output.max && reader.next <= end) {
        refill(reader);
        uint32_t entry = codes.literals[reader.buffer & ((1 << literal_bits) - 1)];
        if (entry == 0)
            entry = inflate_long(&codes.literal_code, reader.buffer, literal_bits, false);
        if ((entry >> 5 & 3) != 0) {
            put_literal(output, entry >> 8);
            drop(reader, entry & 31);
            continue;
        }
        if (entry == 0)
            return false;
        const int length = take_value(reader, entry);
        if (length == 0)
            return true;
        refill(reader);
        entry = codes.distances[reader.buffer & ((1 << distance_bits) - 1)];
        if (entry == 0)
            entry = inflate_long(&codes.distance_code, reader.buffer, distance_bits, true);
        if (entry == 0)
            return false;
        const int distance = take_value(reader, entry);
        if (output.symbols != NULL && (uint64_t)distance > output.size + output.before)
            return false;
        repeat(output, length, distance);
    }
    return false;
}

/* Copy a stored block at *BIT, after its type. */
__device__ bool copy_stored(const struct stream &stream, uint64_t *bit, struct output &output)
{
    *bit = (*bit + 7) / 8 * 8;
    const uint32_t head = (uint32_t)bits_at(stream, *bit), size = head & 0xffff;
    *bit += 32;
    if (size != (~head >> 16) || *bit + 8 * (uint64_t)size > stream.bits || output.size + size > output.max)
        return false;
    const uint8_t *from = (const uint8_t *)stream.words + *bit / 8;
    if (output.symbols != NULL)
        for (uint32_t i = (uint32_t)lane_id(); i < size; i += 32)
            output.symbols[output.size + i] = from[i];
    output.size += size;
    *bit += 8 * (uint64_t)size;
    __syncwarp();
    return true;
}

/* Decode from bit START until a block ends at a mark, or at STOP. *NEXT becomes the number of the mark, or a NEXT.
 * Returns the bit after the last block. */
__device__ uint64_t decode_blocks(const struct stream &stream, struct codes &codes, uint64_t start, uint64_t stop,
                                  struct output &output, int *next)
{
    uint64_t bit = start;
    *next = NEXT_BAD;
    for (;;) {
        if (bit + 3 > stream.bits)
            return bit;
        const unsigned head = (unsigned)bits_at(stream, bit) & 7, type = head >> 1;
        bit += 3;
        if (type == 0) {
            if (!copy_stored(stream, &bit, output))
                return bit;
        } else {
            if (type == 3 || !set_codes(stream, codes, type, &bit))
                return bit;
            struct reader reader = read_from(stream, bit);
            const bool is_right = decode_symbols(stream, codes, reader, output);
            write_waiting(output);
            __syncwarp();
            bit = bit_of(stream, reader);
            if (!is_right || bit > stream.bits || output.size > output.max)
                return bit;
        }
        if ((head & 1) != 0) {
            *next = NEXT_END;
            return bit;
        }
        const int mark = bit == stop ? -1 : mark_at(stream, bit);
        if (mark >= 0)
            *next = mark;
        if (mark >= 0 || bit == stop)
            return bit;
    }
}

__global__ void __launch_bounds__(32) measure(const __grid_constant__ struct stream stream)
{
    __shared__ struct codes codes;
    for (unsigned i = blockIdx.x; i < stream.state->parts; i += gridDim.x) {
        struct part &part = stream.parts[i];
        struct output output = {NULL, 0, stream.expected, 0, 0, 0};
        int next;
        const uint64_t end = decode_blocks(stream, codes, part.start, ~0ull, output, &next);
        if (lane_id() == 0) {
            part.end = end;
            part.size = output.size;
            part.next = next;
        }
        __syncwarp();
    }
}

/* Follow the parts from the first on. */
__global__ void link_parts(const __grid_constant__ struct stream stream)
{
    uint64_t place = 0;
    unsigned count = 0;
    int number = 0;
    while (number >= 0 && count < stream.part_max) {
        struct part &part = stream.parts[number];
        part.place = place;
        place += part.size;
        stream.chain[count++] = number;
        stream.state->end = part.end;
        number = part.next;
    }
    stream.state->chain = count;
    stream.state->size = place;
    if (stream.state->status == INFLATED && (number != NEXT_END || place != stream.expected))
        stream.state->status = number != NEXT_END ? INFLATE_BAD : INFLATE_UNFINISHED;
}

__global__ void __launch_bounds__(32) decode(const __grid_constant__ struct stream stream)
{
    __shared__ struct codes codes;
    if (stream.state->status != INFLATED)
        return;
    for (unsigned i = blockIdx.x; i < stream.state->chain; i += gridDim.x) {
        const struct part part = stream.parts[stream.chain[i]];
        struct output output = {stream.symbols + part.place, 0, part.size, part.place, 0, 0};
        int next;
        const uint64_t end = decode_blocks(stream, codes, part.start, part.end, output, &next);
        if (lane_id() == 0 && (end != part.end || output.size != part.size))
            stream.state->status = INFLATE_BAD;
        __syncwarp();
    }
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
    const size_t words = size / 4 + 1, chunks = (words + chunk_words - 1) / chunk_words;
    const size_t survivors = size / 8 + 1024, parts = size / 2048 + 64;
    const size_t groups = (parts + group_parts - 1) / group_parts, rank_blocks = (chunks + threads - 1) / threads;
    if (!device_buffer_reserve(device, &inflation->marks, chunks * chunk_words * 4, error) ||
        !device_buffer_reserve(device, &inflation->survivors, survivors * 8, error) ||
        !device_buffer_reserve(device, &inflation->chunks, (rank_blocks + 1) * 8 + chunks * 4, error) ||
        !device_buffer_reserve(device, &inflation->parts, parts * (sizeof(struct part) + sizeof(int)), error) ||
        !device_buffer_reserve(device, &inflation->symbols, expected * 2, error) ||
        !device_buffer_reserve(device, &inflation->maps, groups * window * 2, error) ||
        !device_buffer_reserve(device, &inflation->windows, groups * window, error) ||
        !device_buffer_reserve(device, &inflation->state, sizeof(struct inflate_state), error) ||
        !device_fill(device, inflation->marks.bytes, 0, chunks * chunk_words * 4, error) ||
        !device_fill(device, inflation->chunks.bytes, 0, (rank_blocks + 1) * 8, error) ||
        !device_fill(device, inflation->state.bytes, 0, sizeof(struct inflate_state), error))
        return false;
    struct stream stream;
    stream.words = (const uint32_t *)bytes;
    stream.bits = 8 * (uint64_t)size;
    stream.marks = (uint32_t *)inflation->marks.bytes;
    stream.survivors = (uint64_t *)inflation->survivors.bytes;
    stream.survivor_max = (unsigned)survivors;
    stream.part_max = (unsigned)parts;
    stream.mark_words = (int)words;
    stream.chunk_count = (int)chunks;
    stream.sums = (uint64_t *)inflation->chunks.bytes;
    stream.chunks = (uint32_t *)(stream.sums + rank_blocks + 1);
    stream.parts = (struct part *)inflation->parts.bytes;
    stream.chain = (int *)(stream.parts + parts);
    stream.symbols = (uint16_t *)inflation->symbols.bytes;
    stream.maps = (uint16_t *)inflation->maps.bytes;
    stream.windows = inflation->windows.bytes;
    stream.out = out;
    stream.expected = expected;
    stream.state = (struct inflate_state *)inflation->state.bytes;
    const cudaStream_t queue = device_stream(device);
    const unsigned warps_at_once = 132 * 16, groups_at_once = 132;
    find_beginnings<<<(unsigned)((words + threads - 1) / threads), threads, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    validate<<<warps_at_once, 64, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    rank_marks<<<(unsigned)rank_blocks, threads, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    measure<<<warps_at_once, 32, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    link_parts<<<1, 1, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
    decode<<<warps_at_once, 32, 0, queue>>>(stream);
    CUDA_TRY(cudaGetLastError(), error);
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
    struct device_buffer *const buffers[] = {&inflation->marks,   &inflation->survivors, &inflation->chunks,
                                             &inflation->parts,   &inflation->symbols,   &inflation->maps,
                                             &inflation->windows, &inflation->state};
    for (struct device_buffer *buffer : buffers)
        device_buffer_release(device, buffer);
}
