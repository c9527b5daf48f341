/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of inflate.c. The symbols of a stream. A block of threads decodes a part of it. In a block with codes,
 * each thread decodes a piece of 1,024 bits, and does not know where the first symbol begins. It guesses. A decoder
 * that begins at a wrong bit nearly always falls into step with the right one after some symbols. So a thread first
 * decodes the piece before its own, and guesses that its first symbol begins where that ends. Most guesses are right. A
 * thread whose guess was wrong decodes again, until all are right. (Weissenberger and Schmidt, "Massively Parallel
 * Huffman Decoding on GPUs", 2018.)
 *
 * The first kernel counts bytes, so that all pieces have a position. The second one has a block of threads for each
 * slice, which decodes its pieces to symbols of 16 bits: a byte, or a marker for a byte of the 32 KiB before the
 * slice. */
#include "png/inflate_parts.cuh"

namespace
{
constexpr int threads = span_pieces, warps = threads / 32;

/* ---- Codes ---- */

/* The codes of literals and lengths, and of distances. An entry of TABLE is a symbol, and below it 4 bits for the
 * length of its code. It is 0 if the code is longer, or wrong. VALUES has the base of a symbol, and from bit 16 on how
 * many extra bits it has. */
constexpr int literal_bits = 12, distance_bits = 9, distance_table = 1 << literal_bits;
constexpr unsigned distance_values = 32;
struct codes {
    uint16_t table[distance_table + (1 << distance_bits)];
    uint32_t values[2 * distance_values];
    struct inflate_code literals, distances;
    uint16_t used[2][INFLATE_CODE_MAX + 1];
};

/* Set the values that do not depend on the block, by all threads. */
__device__ __forceinline__ void set_values(struct codes &codes)
{
    const unsigned t = threadIdx.x, i = t - 1;
    if (t == 0)
        codes.values[0] = 0; /* the end of a block */
    else if (t <= LENGTH_LAST)
        codes.values[t] = (DEFLATE_LENGTH_MIN + deflate_base(i, LENGTH_STEPS)) | deflate_extra(i, LENGTH_STEPS) << 16;
    else if (t == LENGTH_LAST + 1)
        codes.values[t] = DEFLATE_LENGTH_MAX;
    else if (t >= distance_values && t < distance_values + DEFLATE_DISTANCES)
        codes.values[t] = (1 + deflate_base(t - distance_values, DISTANCE_STEPS)) |
                          deflate_extra(t - distance_values, DISTANCE_STEPS) << 16;
}
static_assert(LENGTH_LAST + 1 < distance_values && distance_values + DEFLATE_DISTANCES <= threads, "a thread a value");

/* Set CODE and its table of BITS bits, from the lengths of COUNT symbols, by a warp. Symbols from KNOWN on are
 * wrong. */
__device__ void set_code(struct inflate_code &code, uint16_t *used, uint16_t *table, int bits, const uint8_t *lengths,
                         int count, int known)
{
    const int lane = lane_id();
    if (lane <= INFLATE_CODE_MAX)
        code.count[lane] = used[lane] = 0;
    __syncwarp();
    for (int first = 0; first < count; first += 32) {
        const int length = first + lane < count ? lengths[first + lane] : 0;
        const unsigned peers = __match_any_sync(all_lanes, length);
        if (peers >> lane == 1 && length != 0)
            code.count[length] = (uint16_t)(code.count[length] + __popc((int)peers));
        __syncwarp();
    }
    if (lane == 0) {
        code.first[0] = code.index[0] = 0;
        for (int length = 1, next = 0, position = 0; length <= INFLATE_CODE_MAX; length++) {
            code.first[length] = next <<= 1;
            code.index[length] = (uint16_t)position;
            next += code.count[length];
            position += code.count[length];
        }
    }
    __syncwarp();
    for (int first = 0; first < count; first += 32) {
        const int symbol = first + lane, length = symbol < count ? lengths[symbol] : 0;
        const unsigned peers = __match_any_sync(all_lanes, length), before = peers & ((1u << lane) - 1);
        const int rank = used[length] + __popc((int)before);
        __syncwarp();
        if (peers >> lane == 1)
            used[length] = (uint16_t)(rank + 1);
        if (length != 0)
            code.list[code.index[length] + rank] = (uint16_t)symbol;
        if (length != 0 && length <= bits && symbol < known) {
            const uint16_t entry = (uint16_t)(symbol << 4 | length);
            for (uint32_t i = __brev((uint32_t)(code.first[length] + rank)) >> (32 - length); i < 1u << bits;
                 i += 1u << length)
                table[i] = entry;
        }
        __syncwarp();
    }
}

/* Set both codes from the lengths of SPAN, by all threads. */
__device__ void set_codes(struct codes &codes, const struct span &span)
{
    for (int i = (int)threadIdx.x; i < (int)(sizeof codes.table / 4); i += threads)
        ((uint32_t *)codes.table)[i] = 0;
    __syncthreads();
    if (threadIdx.x < 32)
        set_code(codes.literals, codes.used[0], codes.table, literal_bits, span.lengths, INFLATE_LITERALS,
                 DEFLATE_LITLENS);
    else if (threadIdx.x < 64)
        set_code(codes.distances, codes.used[1], codes.table + distance_table, distance_bits,
                 span.lengths + INFLATE_LITERALS, INFLATE_DISTANCES, DEFLATE_DISTANCES);
    __syncthreads();
}

/* Set the lengths of SPAN for a block of TYPE 1 or 2 at *BIT, after its type, by all threads. */
__device__ bool set_lengths(const struct inflate_launch &launch, struct code_lengths &codes, struct span &span,
                            unsigned type, uint64_t *bit)
{
    __shared__ uint64_t end; /* 0 if the lengths are wrong */
    const int t = (int)threadIdx.x;
    if (type == 1) {
        for (int i = t; i < INFLATE_LITERALS + INFLATE_DISTANCES; i += threads)
            span.lengths[i] = inflate_fixed_length(i);
    } else {
        if (t == 0) {
            uint64_t after = *bit;
            end = read_lengths(launch, &after, codes) && are_lengths_right(codes) ? after : 0;
        }
        __syncthreads();
        *bit = end;
        if (end == 0)
            return false;
        for (int i = t; i < INFLATE_LITERALS + INFLATE_DISTANCES; i += threads) {
            const int limit = i < INFLATE_LITERALS ? codes.literals : INFLATE_LITERALS + codes.distances;
            const int from = i < INFLATE_LITERALS ? i : i - INFLATE_LITERALS + codes.literals;
            span.lengths[i] = i < limit ? codes.lengths[from] : 0;
        }
    }
    __syncthreads();
    return true;
}

/* ---- Symbols ---- */

/* The next bits of the stream. */
struct reader {
    const uint32_t *next; /* the word after AHEAD */
    uint64_t buffer;      /* COUNT bits are right, at least 33 after a refill */
    uint32_t ahead;
    int count;
};

__device__ __forceinline__ struct reader read_from(const struct inflate_launch &launch, uint64_t bit)
{
    struct reader reader;
    reader.buffer = bits_at(launch, bit);
    reader.count = 64 - (int)(bit % 32);
    reader.buffer &= bit % 32 != 0 ? (1ull << reader.count) - 1 : ~0ull;
    reader.next = launch.words + bit / 32 + 3;
    reader.ahead = reader.next[-1];
    return reader;
}

/* A byte; a length, of 0 at the end of a block; or a distance. */
struct symbol {
    int bits; /* 0 if there is none */
    uint32_t value;
    bool is_byte;
};

/* The entry of the code that the lowest of BITS begin with, if it has more than KNOWN bits and a symbol below LIMIT;
 * else 0. */
__device__ __noinline__ unsigned long_entry(const struct inflate_code &code, uint32_t bits, int known, int limit)
{
    bits = __brev(bits);
    for (int length = known + 1; length <= INFLATE_CODE_MAX; length++) {
        const uint32_t i = (bits >> (32 - length)) - (uint32_t)code.first[length];
        if (i >= code.count[length])
            continue;
        const int symbol = code.list[code.index[length] + i];
        return symbol < limit ? (unsigned)(symbol << 4 | length) : 0;
    }
    return 0;
}

/* Take the next symbol from the stream. */
__device__ __forceinline__ struct symbol take_symbol(const struct codes &codes, struct reader &reader, bool is_distance)
{
    if (reader.count <= 32) {
        reader.buffer |= (uint64_t)reader.ahead << reader.count;
        reader.count += 32;
        reader.ahead = *reader.next++;
    }
    const uint32_t bits = (uint32_t)reader.buffer;
    unsigned entry = codes.table[is_distance ? distance_table + (bits & ((1 << distance_bits) - 1))
                                             : bits & ((1 << literal_bits) - 1)];
    if (entry == 0)
        entry = is_distance ? long_entry(codes.distances, bits, distance_bits, DEFLATE_DISTANCES)
                            : long_entry(codes.literals, bits, literal_bits, DEFLATE_LITLENS);
    const unsigned code_bits = entry & 15, number = entry >> 4;
    struct symbol symbol = {(int)code_bits, number, !is_distance && number < DEFLATE_END};
    if (!symbol.is_byte) {
        const uint32_t value = codes.values[is_distance ? distance_values + number : number - DEFLATE_END];
        const unsigned extra = value >> 16;
        symbol.value = (value & 0xffff) + (bits >> code_bits & ((1u << extra) - 1));
        symbol.bits += (int)extra;
    }
    reader.buffer >>= symbol.bits;
    reader.count -= symbol.bits;
    return entry != 0 ? symbol : (struct symbol){0, 0, false};
}

/* ---- The first kernel ---- */

/* Flags in the end of a piece, which counts from the span's first bit on: the block ends there, or there is no end. */
constexpr uint32_t ends = 1u << 30, broken = 1u << 31;
static_assert(span_pieces * piece_bits + 64 < ends, "flags are not bits of a position");

struct measuring {
    uint32_t ends[threads]; /* the end of each piece, in bits from the first bit of the span, with flags */
    uint32_t sums[warps];
    int number, last, mark;
    struct code_lengths lengths;
};

/* Decode the symbols that begin from START on, before LIMIT. Both count from bit BASE on. *BYTES becomes what they
 * mean. Returns the end. */
__device__ __forceinline__ uint32_t count_piece(const struct inflate_launch &launch, const struct codes &codes,
                                                uint64_t base, uint32_t start, uint32_t limit, uint32_t *bytes)
{
    struct reader reader = read_from(launch, base + start);
    int left = (int)(limit - start);
    uint32_t count = 0;
    for (bool is_distance = false; left > 0 || is_distance;) {
        const struct symbol symbol = take_symbol(codes, reader, is_distance);
        if (symbol.bits == 0)
            return broken;
        left -= symbol.bits;
        if (!is_distance && !symbol.is_byte && symbol.value == 0) {
            *bytes = count;
            return (limit - (uint32_t)left) | ends;
        }
        count += is_distance ? 0 : symbol.is_byte ? 1 : symbol.value;
        is_distance = !is_distance && !symbol.is_byte;
    }
    *bytes = count;
    return limit - (uint32_t)left;
}

/* Measure the pieces of a span, from bit span.bit on. Returns the end of the last one. */
__device__ uint32_t measure_span(const struct inflate_launch &launch, const struct codes &codes,
                                 struct measuring &shared, struct span &span)
{
    const uint32_t t = threadIdx.x, whole = (uint32_t)min((uint64_t)ends - 1, launch.bits - span.bit);
    const uint32_t limit = min((t + 1) * piece_bits, whole), begin = t * piece_bits;
    uint32_t start = begin, bytes = 0, all;
    if (t > 0 && begin < whole) { /* guess */
        start = count_piece(launch, codes, span.bit, begin - piece_bits, begin, &bytes);
        start = start < ends ? start : begin;
    }
    uint32_t end = start < whole ? count_piece(launch, codes, span.bit, start, limit, &bytes) : broken;
    shared.ends[t] = end;
    for (;;) {
        __syncthreads();
        const uint32_t right = t > 0 ? shared.ends[t - 1] : 0;
        if (!__syncthreads_or(right != start))
            break;
        if (right != start) {
            start = right;
            end = start < whole ? count_piece(launch, codes, span.bit, start, limit, &bytes) : broken;
            shared.ends[t] = end;
        }
    }
    const bool is_used = start < ends;
    if (is_used && (t == threads - 1 || end >= ends))
        shared.last = (int)t;
    bytes = is_used && end < broken ? bytes : 0;
    const uint32_t before = sum_before<warps>(shared.sums, bytes, &all);
    span.pieces[t] = {start, span.position + before};
    if (t == 0) {
        span.size = all;
        span.piece_count = shared.last + 1;
    }
    const uint32_t last = shared.ends[shared.last];
    __syncthreads();
    return last;
}

/* Append a span at BIT to PART. Returns NULL if there are too many. */
__device__ struct span *append_span(const struct inflate_launch &launch, struct measuring &shared, struct part &part,
                                    struct span *before, uint64_t bit)
{
    if (threadIdx.x == 0)
        shared.number = (int)atomicAdd(&launch.state->spans, 1u);
    __syncthreads();
    const int number = shared.number;
    __syncthreads();
    if ((unsigned)number >= launch.span_max)
        return NULL;
    struct span *span = launch.spans + number;
    if (threadIdx.x == 0) {
        span->bit = bit;
        span->position = (uint32_t)part.size;
        span->size = 0;
        span->piece_count = 0;
        span->next = -1;
        *(before != NULL ? &before->next : &part.first_span) = number;
    }
    __syncthreads();
    return span;
}

/* Measure a block with codes of TYPE at *BIT, after its type. *LAST is the part's last span. */
__device__ bool measure_block(const struct inflate_launch &launch, struct codes &codes, struct measuring &shared,
                              struct part &part, struct span **last, unsigned type, uint64_t *bit)
{
    struct span *span = append_span(launch, shared, part, *last, 0);
    if (span == NULL || !set_lengths(launch, shared.lengths, *span, type, bit))
        return false;
    set_codes(codes, *span);
    for (;;) {
        if (*bit >= launch.bits)
            return false;
        if (threadIdx.x == 0)
            span->bit = *bit;
        __syncthreads();
        const uint32_t end = measure_span(launch, codes, shared, *span);
        *last = span;
        *bit += end & (ends - 1);
        if (begins_slice(*span, (int)threadIdx.x))
            atomicAdd(&part.slices, 1u);
        if (threadIdx.x == 0)
            part.size += span->size;
        __syncthreads();
        if (end >= broken || *bit > launch.bits || part.size > launch.expected)
            return false;
        if (end >= ends)
            return true;
        span = append_span(launch, shared, part, *last, *bit);
        if (span == NULL)
            return false;
        for (int i = (int)threadIdx.x; i < (int)sizeof span->lengths; i += threads)
            span->lengths[i] = (*last)->lengths[i];
    }
}

/* Measure a stored block at *BIT, after its type. */
__device__ bool measure_stored(const struct inflate_launch &launch, struct measuring &shared, struct part &part,
                               struct span **last, uint64_t *bit)
{
    *bit = (*bit + 7) / 8 * 8;
    const uint32_t head = (uint32_t)bits_at(launch, *bit), size = head & 0xffff;
    *bit += 32;
    if (size != (~head >> 16) || *bit + 8 * (uint64_t)size > launch.bits || part.size + size > launch.expected)
        return false;
    if (size > 0) {
        *last = append_span(launch, shared, part, *last, *bit);
        if (*last == NULL)
            return false;
    }
    __syncthreads();
    if (threadIdx.x == 0 && size > 0) {
        (*last)->size = size;
        part.size += size;
        part.slices++;
    }
    __syncthreads();
    *bit += 8 * (uint64_t)size;
    return true;
}

/* Find the number of the mark at BIT, by a warp. Returns -1 if there is none. */
__device__ __forceinline__ int mark_at(const struct inflate_launch &launch, uint64_t bit)
{
    if (bit >= launch.bits || (launch.marks[bit / 32] >> bit % 32 & 1) == 0)
        return -1;
    const int word = (int)(bit / 32), lane_word = word / rank_words * rank_words + lane_id();
    const uint32_t here =
        lane_word > word ? 0 : launch.marks[lane_word] & (lane_word < word ? all_lanes : (1u << bit % 32) - 1);
    return (int)(launch.ranks[word / rank_words] + sum_of_lanes((uint32_t)__popc((int)here)));
}

/* Measure from part.start on until a block ends at a mark. Returns the number of the mark, or a NEXT. *END becomes the
 * bit after the last block. */
__device__ int measure_part(const struct inflate_launch &launch, struct codes &codes, struct measuring &shared,
                            struct part &part, uint64_t *end)
{
    struct span *last = NULL;
    for (uint64_t bit = part.start; bit + 3 <= launch.bits;) {
        const unsigned head = (unsigned)bits_at(launch, bit) & 7, type = head >> 1;
        bit += 3;
        if (type == 3 || !(type == 0 ? measure_stored(launch, shared, part, &last, &bit)
                                     : measure_block(launch, codes, shared, part, &last, type, &bit)))
            return NEXT_BAD;
        *end = bit;
        if ((head & 1) != 0)
            return NEXT_END;
        if (threadIdx.x < 32) {
            const int mark = mark_at(launch, bit);
            if (threadIdx.x == 0)
                shared.mark = mark;
        }
        __syncthreads();
        const int mark = shared.mark;
        __syncthreads();
        if (mark >= 0)
            return mark < (int)launch.state->parts ? mark : NEXT_BAD;
    }
    return NEXT_BAD;
}

__global__ void __launch_bounds__(threads) measure(const __grid_constant__ struct inflate_launch launch)
{
    __shared__ struct codes codes;
    __shared__ struct measuring shared;
    if (is_given_up(launch))
        return;
    set_values(codes);
    for (unsigned i = blockIdx.x; i < launch.state->parts; i += gridDim.x) {
        struct part &part = launch.parts[i];
        if (threadIdx.x == 0) {
            part.size = 0;
            part.first_span = -1;
            part.slices = 0;
        }
        __syncthreads();
        uint64_t end = part.start;
        const int next = measure_part(launch, codes, shared, part, &end);
        if (threadIdx.x == 0) {
            part.end = end;
            part.next = next;
            if (launch.state->spans > launch.span_max)
                launch.state->status = INFLATE_TOO_MANY;
        }
        __syncthreads();
    }
}

/* ---- The second kernel ---- */

/* Symbols that are resolved together: 32 lanes have a 32-bit mask of their starts each. Then the symbols of the buffer,
 * which is for a span. */
constexpr int batch = 32 * 32, buffer_symbols = 12 * batch;
static_assert(batch % threads == 0, "all threads have as many");
/* In the buffer: bytes, positions in the buffer, what is not known yet, and markers. The first symbol of a repetition
 * is its distance less 1, as if it were a marker, until the repetition is resolved. */
constexpr uint32_t first_position = 256, unknown = INFLATE_MARKER - 1;
static_assert(first_position + buffer_symbols <= unknown, "all positions have a symbol");

struct decoding {
    uint16_t symbols[buffer_symbols];
    uint32_t starts[buffer_symbols / 32]; /* a bit for each symbol: does a repetition start there? */
    int before[2];                        /* the distance of the last repetition before a batch: even ones, odd ones */
};

/* A thread's piece. */
struct piece_decoder {
    struct reader reader;
    uint32_t at, stop;       /* bytes, in the part */
    uint32_t rest, distance; /* bytes of a repetition that are still to come */
};

/* Decode the bytes before END to the buffer, which begins at FIRST. Returns false if a symbol is wrong. */
__device__ __forceinline__ bool decode_piece(const struct codes &codes, struct decoding &shared,
                                             struct piece_decoder &decoder, uint32_t first, uint32_t end)
{
    uint32_t length = 0; /* the length of a repetition whose distance comes next, else 0 */
    while (decoder.at < end || length > 0) {
        if (decoder.rest == 0) {
            const struct symbol symbol = take_symbol(codes, decoder.reader, length > 0);
            if (symbol.bits == 0 || (length == 0 && !symbol.is_byte && symbol.value == 0))
                return false;
            if (symbol.is_byte)
                shared.symbols[decoder.at++ - first] = (uint16_t)symbol.value;
            decoder.rest = length;
            decoder.distance = symbol.value;
            length = length > 0 || symbol.is_byte ? 0 : symbol.value;
            if (decoder.rest == 0)
                continue;
        }
        const uint32_t position = decoder.at - first, count = min(decoder.rest, end - decoder.at);
        shared.symbols[position] = (uint16_t)(INFLATE_MARKER | (decoder.distance - 1));
        atomicOr(&shared.starts[position / 32], 1u << position % 32);
        decoder.at += count;
        decoder.rest -= count;
    }
    return true;
}

/* Where the last repetition up to position I of the buffer begins, or -1. */
__device__ __forceinline__ int last_start(const struct decoding &shared, int i)
{
    int word = i / 32;
    uint32_t starts = shared.starts[word] & ((2u << i % 32) - 1);
    while (starts == 0 && word > 0)
        starts = shared.starts[--word];
    return starts != 0 ? 32 * word + 31 - __clz((int)starts) : -1;
}

/* The distance of the repetition that begins at START. That of the last one before BEGIN is BEFORE. */
__device__ __forceinline__ int distance_at(const struct decoding &shared, int start, int begin, int before)
{
    return start < begin ? before : (shared.symbols[start] & (INFLATE_MARKER - 1)) + 1;
}

/* The symbol at position I of the buffer, which begins at byte FIRST of SLICE. The positions before BEGIN are resolved.
 * BEFORE is the distance of the last repetition that begins before BEGIN. */
__device__ __forceinline__ uint32_t look_up(const struct inflate_launch &launch, const struct slice &slice,
                                            const struct decoding &shared, uint32_t first, int i, int begin, int before)
{
    const uint32_t here = shared.symbols[i];
    const int start = here < first_position ? -1 : last_start(shared, i);
    if (start < 0) /* a byte, or a piece that is wrong */
        return here & 255;
    const int distance = distance_at(shared, start, begin, before), after = i - start;
    const int from = start - distance + (after < distance ? after : after % distance);
    if (from >= 0)
        return from < begin ? shared.symbols[from] : first_position + (uint32_t)from;
    const int64_t position = (int64_t)first + from;
    if ((int64_t)slice.position + position < 0)
        launch.state->status = INFLATE_BAD; /* before the stream */
    return position >= 0 ? launch.symbols[slice.position + (uint64_t)position]
                         : (uint32_t)(INFLATE_MARKER + DEFLATE_WINDOW + (int)position);
}

/* Resolve the repetitions of the COUNT symbols in the buffer, which begins at byte FIRST of SLICE. */
__device__ void resolve_buffer(const struct inflate_launch &launch, const struct slice &slice, struct decoding &shared,
                               uint32_t first, int count)
{
    const int t = (int)threadIdx.x;
    for (int begin = 0; begin < count; begin += batch) {
        uint32_t symbols[batch / threads];
        const int before = shared.before[begin / batch % 2];
        bool is_unresolved;
#pragma unroll
        for (int k = 0; k < batch / threads; k++) {
            const int i = begin + k * threads + t;
            symbols[k] = i < count ? look_up(launch, slice, shared, first, i, begin, before) : 0;
        }
        if (t < 32) { /* one thread would search long: often there is no repetition in thousands of symbols */
            const int word = begin / 32 + t;
            const unsigned some = __ballot_sync(0xffffffff, shared.starts[word] != 0);
            if (t == (some != 0 ? 31 - __clz((int)some) : 0))
                shared.before[(begin / batch + 1) % 2] =
                    some != 0 ? distance_at(shared, last_start(shared, 32 * word + 31), begin, before) : before;
        }
        __syncthreads();
        do {
            is_unresolved = false;
#pragma unroll
            for (int k = 0; k < batch / threads; k++) {
                shared.symbols[begin + k * threads + t] = (uint16_t)symbols[k];
                is_unresolved |= symbols[k] >= first_position && symbols[k] < INFLATE_MARKER;
            }
            is_unresolved = __syncthreads_or(is_unresolved) != 0;
            if (is_unresolved) {
#pragma unroll
                for (int k = 0; k < batch / threads; k++)
                    if (symbols[k] >= first_position && symbols[k] < INFLATE_MARKER)
                        symbols[k] = shared.symbols[symbols[k] - first_position];
                __syncthreads();
            }
        } while (is_unresolved);
#pragma unroll
        for (int k = 0; k < batch / threads; k++) {
            const int i = begin + k * threads + t;
            if (i < count)
                launch.symbols[slice.position + first + (uint32_t)i] = (uint16_t)symbols[k];
        }
    }
    __syncthreads();
}

/* Decode a slice of a span with codes. NEXT is the slice after it. */
__device__ void decode_slice(const struct inflate_launch &launch, const struct codes &codes, struct decoding &shared,
                             const struct slice &slice, const struct slice &next)
{
    const struct span &span = launch.spans[slice.span];
    const int pieces = next.span == slice.span ? next.first : span.piece_count;
    const int t = slice.first + (int)threadIdx.x;
    const uint32_t size = (uint32_t)(next.position - slice.position);
    struct piece_decoder decoder = {};
    if (t < pieces) {
        decoder.reader = read_from(launch, span.bit + span.pieces[t].bit);
        decoder.at = span.pieces[t].position - slice.part_position;
        decoder.stop = t + 1 < pieces ? span.pieces[t + 1].position - slice.part_position : size;
    }
    for (uint32_t first = 0; first < size; first += buffer_symbols) {
        const uint32_t last = min(size - first, (uint32_t)buffer_symbols) + first;
        for (int i = (int)threadIdx.x; i < buffer_symbols / 2; i += threads)
            ((uint32_t *)shared.symbols)[i] = unknown << 16 | unknown;
        for (int i = (int)threadIdx.x; i < buffer_symbols / 32; i += threads)
            shared.starts[i] = 0;
        __syncthreads();
        if (decoder.at < last && decoder.at < decoder.stop &&
            !decode_piece(codes, shared, decoder, first, min(decoder.stop, last))) {
            launch.state->status = INFLATE_BAD;
            decoder.stop = 0;
        }
        __syncthreads();
        resolve_buffer(launch, slice, shared, first, (int)(last - first));
    }
}

__global__ void __launch_bounds__(threads) decode(const __grid_constant__ struct inflate_launch launch)
{
    __shared__ struct codes codes;
    __shared__ struct decoding shared;
    if (is_given_up(launch))
        return;
    set_values(codes);
    for (unsigned i = blockIdx.x; i < launch.state->slices; i += gridDim.x) {
        const struct slice slice = launch.slices[i], next = launch.slices[i + 1];
        const struct span &span = launch.spans[slice.span];
        if (span.piece_count > 0) {
            set_codes(codes, span);
            decode_slice(launch, codes, shared, slice, next);
        } else {
            const uint8_t *bytes = (const uint8_t *)launch.words + span.bit / 8;
            for (uint32_t k = threadIdx.x; k < span.size; k += threads)
                launch.symbols[slice.position + k] = bytes[k];
        }
        __syncthreads();
    }
}
} // namespace

bool measure_parts(struct device *device, const struct inflate_launch &launch, struct error *error)
{
    return queue_kernel(measure, inflate_grid(launch.part_max, 16), threads, 0, device, error, launch);
}

bool decode_slices(struct device *device, const struct inflate_launch &launch, struct error *error)
{
    return queue_kernel(decode, inflate_grid(launch.slice_max, 16), threads, 0, device, error, launch);
}
