/* SPDX-License-Identifier: MIT
 *
 * Blocks with their own Huffman codes (RFC 1951, 3.2.7), in three steps. First, find sequences: some literals, then a
 * repetition. Second, count each symbol. Third, write the bits. */
#include "png/deflate.h"

#include <assert.h>
#include <endian.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 65535,   /* bytes of a block: the most that a stored block holds, so any block may be stored */
    WINDOW = 32768,  /* the largest distance */
    MATCH_MAX = 258, /* bytes of a repetition */
    MATCH_MIN = 8,   /* bytes that are compared at once; shorter repetitions rarely gain */
    /* The price of a length and a distance in 1/16 bit, without the distance's extra bits. It is an estimate, and
     * measurements show that it is good enough. */
    REPETITION_PRICE = 12 * 16,
    /* Skip ahead: the step grows by 1 byte for every 2^SKIP_BITS bytes without a repetition, up to STEP_MAX. A rejected
     * repetition counts as REJECTED bytes, because it took as long. Each bit of gain subtracts one byte. */
    SKIP_BITS = 6,
    REJECTED = 4,
    STEP_MAX = 32,
    GAIN_MAX = 256,  /* bits; a larger gain is not counted further */
    INSERT_STEP = 4, /* inside a repetition, one position in 4 is remembered */
    HASH_BITS = 14,
    LITERALS = 256,
    END = 256, /* the symbol that ends a block */
    LENGTH_FIRST = 257,
    LITLENS = 286,
    DISTANCES = 30,
    PRECODES = 19,
    /* With codes of at most 12 bits, four literals and the bits of an unfinished byte fit in 64 bits: 4 x 12 + 7. A
     * length and a distance with their extra bits fit too: 12 + 5 + 12 + 13 + 7. */
    CODE_MAX = 12,
    PRECODE_MAX = 7, /* the most that 3 bits hold */
    SYMBOLS_MAX = LITLENS,
    /* Each sequence but the last has a repetition of at least MATCH_MIN bytes. */
    SEQUENCES = BLOCK / MATCH_MIN + 1,
    BLOCK_SLACK = 16, /* bytes after the end for writes of 8 bytes at once, and for an empty block */
};

struct sequence {
    uint16_t literals;         /* how many come before the repetition */
    uint16_t length, distance; /* of the repetition; 0, 0: there is none */
    uint8_t length_symbol, distance_symbol;
};

struct code {
    uint16_t bits; /* the lowest is written first */
    uint16_t length;
};

struct deflate_workspace {
    uint32_t latest[1 << HASH_BITS]; /* 1 + the last place of bytes with that hash in the band; 0: none yet */
    struct sequence sequences[SEQUENCES];
    size_t count;
    uint16_t prices[LITERALS];
    uint32_t litlen_uses[SYMBOLS_MAX], distance_uses[DISTANCES];
    struct code litlens[SYMBOLS_MAX], distances[DISTANCES], precodes[PRECODES];
};

/* A writer of bits. */
struct bits {
    uint64_t waiting;
    unsigned count; /* below 8 after a flush */
    uint8_t *next;
};

struct deflate_workspace *deflate_workspace_new(void)
{
    return malloc(sizeof(struct deflate_workspace));
}

size_t deflate_bound(size_t size)
{
    const size_t stored = 5; /* bytes of a stored block's header; its first bits may need one more */
    return size + (size / BLOCK + 1) * (stored + 1) + BLOCK_SLACK;
}

static uint64_t load64(const uint8_t *bytes)
{
    uint64_t value;
    memcpy(&value, bytes, sizeof value);
    return value;
}

/* ---- Bits ---- */

static void bits_put(struct bits *bits, uint64_t value, unsigned count)
{
    bits->waiting |= value << bits->count;
    bits->count += count;
}

/* Write the whole bytes. This stores 8 bytes; the next flush overwrites those after the whole ones. */
static void bits_flush(struct bits *bits)
{
    const uint64_t waiting = htole64(bits->waiting);
    memcpy(bits->next, &waiting, sizeof waiting);
    bits->next += bits->count >> 3;
    bits->waiting >>= bits->count & ~7u;
    bits->count &= 7;
}

static void bits_put_code(struct bits *bits, struct code code)
{
    bits_put(bits, code.bits, code.length);
}

/* Fill the last byte with zeros. */
static void bits_align(struct bits *bits)
{
    bits->count = (bits->count + 7) & ~7u;
    bits_flush(bits);
}

/* ---- Codes ---- */

static int compare_uses(const void *a, const void *b)
{
    const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return left < right ? -1 : left > right;
}

/* Replace COUNT weights in rising order by the lengths of their Huffman codes, in falling order. This is the in-place
 * algorithm of Moffat and Katajainen. */
static void huffman_lengths(uint32_t *weights, int count)
{
    int leaf = 0, root = 0;
    for (int next = 0; next < count - 1;
         next++) { /* join the two lightest; the weight of a tree becomes the index of its parent */
        uint32_t sum = 0;
        for (int part = 0; part < 2; part++) {
            if (leaf >= count || (root < next && weights[root] < weights[leaf])) {
                sum += weights[root];
                weights[root++] = (uint32_t)next;
            } else {
                sum += weights[leaf++];
            }
        }
        weights[next] = sum;
    }
    weights[count - 2] = 0;
    for (int next = count - 3; next >= 0; next--) /* the depth of each inner node */
        weights[next] = weights[weights[next]] + 1;
    for (int depth = 0, free_nodes = 1, inner = count - 2, next = count - 1; free_nodes > 0; depth++) {
        int used = 0;
        while (inner >= 0 && weights[inner] == (uint32_t)depth) {
            used++;
            inner--;
        }
        for (; free_nodes > used; free_nodes--)
            weights[next--] = (uint32_t)depth;
        free_nodes = 2 * used;
    }
}

/* Count in LENGTHS how many of COUNT codes have each length. UNLIMITED are the lengths without a limit. Codes longer
 * than LIMIT get LIMIT bits. Then shorter codes are lengthened until the sum of 2^-length is 1. */
static void limit_lengths(const uint32_t *unlimited, int count, int limit, unsigned *lengths)
{
    unsigned sum = 0; /* of 2^(LIMIT - length) */
    for (int i = 0; i < count; i++) {
        const unsigned length = unlimited[i] < (uint32_t)limit ? unlimited[i] : (unsigned)limit;
        lengths[length]++;
        sum += 1u << ((unsigned)limit - length);
    }
    for (; sum > 1u << limit; sum--) {
        int length = limit - 1;
        while (lengths[length] == 0)
            length--;
        lengths[length]--;
        lengths[length + 1] += 2;
        lengths[limit]--;
    }
}

/* Set the bits of codes from their lengths, in rising order for each length (RFC 1951, 3.2.2). LENGTHS is the number of
 * codes of each length. */
static void assign_bits(const unsigned *lengths, int limit, int symbols, struct code *codes)
{
    unsigned next[CODE_MAX + 1] = {0}, first = 0;
    for (int length = 1; length <= limit; length++) {
        next[length] = first;
        first = (first + lengths[length]) << 1;
    }
    for (int i = 0; i < symbols; i++) {
        const unsigned length = codes[i].length;
        unsigned code = length > 0 ? next[length]++ : 0;
        for (unsigned bit = 0; bit < length; bit++, code >>= 1)
            codes[i].bits = (uint16_t)(2u * codes[i].bits | (code & 1));
    }
}

/* Make a Huffman code of at most LIMIT bits for symbols that occur USES times each. There are always two codes, because
 * some decoders refuse a single one. */
static void code_make(const uint32_t *uses, int symbols, int limit, struct code *codes)
{
    uint32_t sorted[SYMBOLS_MAX], weights[SYMBOLS_MAX];
    unsigned lengths[CODE_MAX + 1] = {0}, left[CODE_MAX + 1];
    int count = 0;
    static_assert(SYMBOLS_MAX < 1 << 9 && BLOCK < 1 << 23, "uses and symbol share 32 bits");
    for (int i = 0; i < symbols; i++) {
        codes[i] = (struct code){0, 0};
        if (uses[i] > 0)
            sorted[count++] = uses[i] << 9 | (uint32_t)i;
    }
    for (int i = 0; count < 2; i++)
        if (uses[i] == 0)
            sorted[count++] = 1u << 9 | (uint32_t)i;
    qsort(sorted, (size_t)count, sizeof *sorted, compare_uses);
    for (int i = 0; i < count; i++)
        weights[i] = sorted[i] >> 9;
    huffman_lengths(weights, count);
    limit_lengths(weights, count, limit, lengths);
    memcpy(left, lengths, sizeof left);
    for (int i = 0, length = limit; i < count; i++) { /* the rarest get the longest */
        while (left[length] == 0)
            length--;
        left[length]--;
        codes[sorted[i] & 511].length = (uint16_t)length;
    }
    assign_bits(lengths, limit, symbols, codes);
}

static uint64_t code_cost(const uint32_t *uses, const struct code *codes, int symbols)
{
    uint64_t cost = 0;
    for (int i = 0; i < symbols; i++)
        cost += (uint64_t)uses[i] * codes[i].length;
    return cost;
}

/* ---- Lengths and distances ---- */

static unsigned log2_floor(unsigned value)
{
    return 31u - (unsigned)__builtin_clz(value);
}

/* Lengths minus 3 and distances minus 1 use the same scheme: one symbol for each value below 2^(STEPS+1), then 2^STEPS
 * symbols for each power of two. */
static unsigned scheme_symbol(unsigned value, unsigned steps)
{
    if (value < 2u << steps)
        return value;
    const unsigned power = log2_floor(value);
    return ((power - steps) << steps) + (value >> (power - steps));
}

static unsigned scheme_extra(unsigned symbol, unsigned steps)
{
    return symbol < 2u << steps ? 0 : (symbol >> steps) - 1;
}

enum { LENGTH_STEPS = 2, DISTANCE_STEPS = 1, LENGTH_LAST = 28 };

/* The longest repetition has a symbol of its own. */
static unsigned length_symbol(unsigned length)
{
    return length == MATCH_MAX ? LENGTH_LAST : scheme_symbol(length - 3, LENGTH_STEPS);
}

static unsigned length_extra(unsigned symbol)
{
    return symbol == LENGTH_LAST ? 0 : scheme_extra(symbol, LENGTH_STEPS);
}

/* ---- Sequences ---- */

static uint32_t hash(uint64_t value)
{
    return (uint32_t)((value * 0x9e3779b97f4a7c15u) >> (64 - HASH_BITS)); /* 2^64 over the golden ratio */
}

static void sequence_add(struct deflate_workspace *work, size_t literals, size_t length, size_t distance)
{
    struct sequence *s = &work->sequences[work->count++];
    *s = (struct sequence){(uint16_t)literals, (uint16_t)length, (uint16_t)distance, 0, 0};
    if (length == 0)
        return;
    s->length_symbol = (uint8_t)length_symbol((unsigned)length);
    s->distance_symbol = (uint8_t)scheme_symbol((unsigned)distance - 1, DISTANCE_STEPS);
    work->litlen_uses[LENGTH_FIRST + s->length_symbol]++;
    work->distance_uses[s->distance_symbol]++;
}

/* Count the bytes of a block as if all were literals. Four tables are used in turn, so that equal neighbours need not
 * wait for each other. */
static void count_bytes(struct deflate_workspace *work, const uint8_t *bytes, size_t size)
{
    uint32_t uses[4][LITERALS] = {{0}};
    size_t at = 0;
    for (; at + 4 <= size; at += 4)
        for (size_t i = 0; i < 4; i++)
            uses[i][bytes[at + i]]++;
    for (; at < size; at++)
        uses[0][bytes[at]]++;
    for (int i = 0; i < LITERALS; i++)
        work->litlen_uses[i] = uses[0][i] + uses[1][i] + uses[2][i] + uses[3][i];
}

/* 16 log2(VALUE) for values from 1 on, linear between powers of two. Integers give the same result everywhere. */
static unsigned log2_sixteenths(unsigned value)
{
    const unsigned power = log2_floor(value);
    return 16 * power + (unsigned)(((uint64_t)value << 4 >> power) & 15);
}

/* Estimate the bits of each literal, in 1/16 bit, from how often it occurs among SIZE bytes. */
static void price_literals(struct deflate_workspace *work, size_t size)
{
    const unsigned all = log2_sixteenths((unsigned)size);
    for (int i = 0; i < LITERALS; i++) {
        const unsigned uses = work->litlen_uses[i];
        const unsigned price = all - (uses > 0 ? log2_sixteenths(uses) : 0);
        work->prices[i] = (uint16_t)(price > 16 ? price : 16); /* every code has at least one bit */
    }
}

/* How many bits a repetition saves compared with its bytes as literals, up to GAIN_MAX. 0 if it saves none. */
static size_t estimate_gain(const struct deflate_workspace *work, const uint8_t *bytes, size_t length, size_t distance)
{
    const unsigned price = REPETITION_PRICE + 16 * log2_floor((unsigned)distance);
    unsigned literals = 0;
    for (size_t i = 0; i < length && literals < price + 16 * GAIN_MAX; i++)
        literals += work->prices[bytes[i]];
    return literals > price ? (literals - price) / 16 : 0;
}

/* The number of equal bytes at the beginning of A and B, at most LIMIT. */
static size_t equal_length(const uint8_t *a, const uint8_t *b, size_t limit)
{
    size_t length = 0;
    while (length + 8 <= limit) {
        const uint64_t difference = le64toh(load64(a + length) ^ load64(b + length));
        if (difference != 0)
            return length + (size_t)__builtin_ctzll(difference) / 8;
        length += 8;
    }
    while (length < limit && a[length] == b[length])
        length++;
    return length;
}

/* The length of the repetition that begins at AT, and the place FROM that it repeats. 0 if there is none in the
 * window. */
static size_t find_repetition(struct deflate_workspace *work, const uint8_t *band, size_t at, size_t end, size_t *from)
{
    const uint64_t here = load64(band + at);
    uint32_t *latest = &work->latest[hash(here)];
    *from = *latest - 1;
    const bool found = *latest > 0 && at - *from <= WINDOW && load64(band + *from) == here;
    *latest = (uint32_t)at + 1;
    return found ? MATCH_MIN + equal_length(band + at + MATCH_MIN, band + *from + MATCH_MIN, end - at - MATCH_MIN) : 0;
}

/* Split the block from START to END of the band into sequences. */
static void find_sequences(struct deflate_workspace *work, const uint8_t *band, size_t start, size_t end)
{
    size_t at = start, literal = start, misses = 0;
    work->count = 0;
    memset(work->litlen_uses, 0, sizeof work->litlen_uses);
    memset(work->distance_uses, 0, sizeof work->distance_uses);
    count_bytes(work, band + start, end - start);
    price_literals(work, end - start);
    while (at + sizeof(uint64_t) <= end) {
        size_t from, length = find_repetition(work, band, at, end, &from), back = 0;
        while (length > 0 && back < at - literal && back < from && band[at - back - 1] == band[from - back - 1])
            back++; /* include bytes that a long step skipped */
        const size_t gained = length > 0 ? estimate_gain(work, band + at - back, back + length, at - from) : 0;
        if (gained == 0) {
            misses += length > 0 ? REJECTED : 1;
            const size_t step = 1 + (misses >> SKIP_BITS);
            at += step < STEP_MAX ? step : STEP_MAX;
            continue;
        }
        at -= back;
        from -= back;
        misses -= gained < misses ? gained : misses;
        for (size_t i = back + INSERT_STEP; i + sizeof(uint64_t) <= length && at + i + 8 <= end; i += INSERT_STEP)
            work->latest[hash(load64(band + at + i))] = (uint32_t)(at + i) + 1;
        length += back;
        for (size_t part; length >= MATCH_MIN; length -= part, at += part, literal = at) {
            part = length < MATCH_MAX ? length : MATCH_MAX;
            for (size_t i = 0; i < part; i++)
                work->litlen_uses[band[at + i]]--;
            sequence_add(work, at - literal, part, at - from);
            from += part;
        }
    }
    sequence_add(work, end - literal, 0, 0);
    work->litlen_uses[END] = 1;
}

/* ---- Blocks ---- */

/* Write the code lengths as symbols of a third code. Symbol 16 repeats the last length 3 to 6 times. Symbols 17 and 18
 * mean 3 to 10 and 11 to 138 zeros (RFC 1951, 3.2.7). Each item is a symbol in 5 bits, with its extra bits above. */
static int describe_codes(const uint8_t *lengths, int count, uint16_t *items)
{
    int used = 0;
    for (int i = 0; i < count;) {
        const int limit = count - i < 138 ? count - i : 138;
        int run = 1;
        while (run < limit && lengths[i + run] == lengths[i])
            run++;
        if (lengths[i] == 0 && run >= 3) {
            items[used++] = (uint16_t)(run < 11 ? 17 | (run - 3) << 5 : 18 | (run - 11) << 5);
        } else if (run >= 4) {
            run = run < 7 ? run : 7;
            items[used++] = lengths[i];
            items[used++] = (uint16_t)(16 | (run - 4) << 5);
        } else {
            run = 1;
            items[used++] = lengths[i];
        }
        i += run;
    }
    return used;
}

/* The description of a block's codes. */
struct description {
    uint16_t items[LITLENS + DISTANCES];
    int count, litlens, distances, precodes;
};

/* The order of the lengths of the third code: rare ones last. */
static const uint8_t precode_order[PRECODES] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

static const unsigned precode_extra[PRECODES] = {[16] = 2, [17] = 3, [18] = 7};

/* Make all codes of the block. Returns the bits of the block, its codes included. */
static uint64_t make_codes(struct deflate_workspace *work, struct description *description)
{
    uint8_t lengths[LITLENS + DISTANCES];
    uint32_t uses[PRECODES] = {0};
    uint64_t cost;
    code_make(work->litlen_uses, LITLENS, CODE_MAX, work->litlens);
    code_make(work->distance_uses, DISTANCES, CODE_MAX, work->distances);
    for (description->litlens = LITLENS; work->litlens[description->litlens - 1].length == 0;)
        description->litlens--;
    for (description->distances = DISTANCES; work->distances[description->distances - 1].length == 0;)
        description->distances--;
    for (int i = 0; i < description->litlens; i++)
        lengths[i] = (uint8_t)work->litlens[i].length;
    for (int i = 0; i < description->distances; i++)
        lengths[description->litlens + i] = (uint8_t)work->distances[i].length;
    description->count = describe_codes(lengths, description->litlens + description->distances, description->items);
    for (int i = 0; i < description->count; i++)
        uses[description->items[i] & 31]++;
    code_make(uses, PRECODES, PRECODE_MAX, work->precodes);
    for (description->precodes = PRECODES; work->precodes[precode_order[description->precodes - 1]].length == 0;)
        description->precodes--;

    cost = 3 + 5 + 5 + 4 + 3 * (uint64_t)description->precodes + code_cost(uses, work->precodes, PRECODES);
    for (int i = 0; i < PRECODES; i++)
        cost += (uint64_t)uses[i] * precode_extra[i];
    cost += code_cost(work->litlen_uses, work->litlens, LITLENS);
    cost += code_cost(work->distance_uses, work->distances, DISTANCES);
    for (unsigned i = 0; i <= LENGTH_LAST; i++)
        cost += (uint64_t)work->litlen_uses[LENGTH_FIRST + i] * length_extra(i);
    for (unsigned i = 0; i < DISTANCES; i++)
        cost += (uint64_t)work->distance_uses[i] * scheme_extra(i, DISTANCE_STEPS);
    return cost;
}

static void put_description(const struct deflate_workspace *work, const struct description *description, bool last,
                            struct bits *bits)
{
    bits_put(bits, last | 2u << 1, 3); /* a block with codes of its own */
    bits_put(bits, (uint64_t)(description->litlens - 257), 5);
    bits_put(bits, (uint64_t)(description->distances - 1), 5);
    bits_put(bits, (uint64_t)(description->precodes - 4), 4);
    bits_flush(bits);
    for (int i = 0; i < description->precodes; i++) {
        bits_put(bits, work->precodes[precode_order[i]].length, 3);
        bits_flush(bits);
    }
    for (int i = 0; i < description->count; i++) {
        bits_put_code(bits, work->precodes[description->items[i] & 31]);
        bits_put(bits, description->items[i] >> 5, precode_extra[description->items[i] & 31]);
        bits_flush(bits);
    }
}

static void put_sequences(const struct deflate_workspace *work, const uint8_t *bytes, struct bits *out)
{
    const struct code *litlens = work->litlens;
    struct bits bits = *out;
    for (size_t i = 0; i < work->count; i++) {
        const struct sequence *s = &work->sequences[i];
        size_t at = 0;
        for (; at + 4 <= s->literals; at += 4) {
            bits_put_code(&bits, litlens[bytes[at]]);
            bits_put_code(&bits, litlens[bytes[at + 1]]);
            bits_put_code(&bits, litlens[bytes[at + 2]]);
            bits_put_code(&bits, litlens[bytes[at + 3]]);
            bits_flush(&bits);
        }
        for (; at < s->literals; at++) {
            bits_put_code(&bits, litlens[bytes[at]]);
            bits_flush(&bits);
        }
        bytes += (size_t)s->literals + s->length;
        if (s->length == 0)
            continue;
        bits_put_code(&bits, litlens[LENGTH_FIRST + s->length_symbol]);
        const unsigned extra = length_extra(s->length_symbol);
        bits_put(&bits, (s->length - 3u) & ((1u << extra) - 1), extra);
        bits_put_code(&bits, work->distances[s->distance_symbol]);
        const unsigned far = scheme_extra(s->distance_symbol, DISTANCE_STEPS);
        bits_put(&bits, (s->distance - 1u) & ((1u << far) - 1), far);
        bits_flush(&bits);
    }
    bits_put_code(&bits, litlens[END]);
    bits_flush(&bits);
    *out = bits;
}

static void put_stored(const uint8_t *bytes, size_t size, bool last, struct bits *bits)
{
    bits_put(bits, last, 3);
    bits_align(bits);
    bits_put(bits, size | (~size & 0xffff) << 16, 32);
    bits_flush(bits);
    if (size > 0)
        memcpy(bits->next, bytes, size);
    bits->next += size;
}

size_t deflate_band(struct deflate_workspace *work, const uint8_t *bytes, size_t size, bool last, uint8_t *out)
{
    struct bits bits = {.next = out};
    memset(work->latest, 0, sizeof work->latest);
    for (size_t start = 0, end; start < size; start = end) {
        struct description description;
        end = size - start < BLOCK ? size : start + BLOCK;
        const bool final = last && end == size;
        find_sequences(work, bytes, start, end);
        if (make_codes(work, &description) < 8 * (uint64_t)(end - start)) {
            put_description(work, &description, final, &bits);
            put_sequences(work, bytes + start, &bits);
        } else {
            put_stored(bytes + start, end - start, final, &bits);
        }
    }
    if (last)
        bits_align(&bits);
    else
        put_stored(NULL, 0, false, &bits); /* an empty block, which ends at a whole byte */
    return (size_t)(bits.next - out);
}

size_t deflate_store(const uint8_t *bytes, size_t size, bool last, uint8_t *out)
{
    struct bits bits = {.next = out};
    for (size_t start = 0, end; start < size; start = end) {
        end = size - start < BLOCK ? size : start + BLOCK;
        put_stored(bytes + start, end - start, last && end == size, &bits);
    }
    return (size_t)(bits.next - out);
}
