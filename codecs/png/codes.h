/* SPDX-License-Identifier: MIT
 *
 * The Huffman codes of a block: their lengths from the uses of the symbols, their bits, and how a block describes them.
 * The GPU uses the functions with HOST_DEVICE; a warp does what the others do (codes.cuh). */
#ifndef GPUCONV_PNG_CODES_H
#define GPUCONV_PNG_CODES_H

#include "png/rules.h"
#include "png/symbols.h"

#include <assert.h>
#include <endian.h>
#include <stdbool.h>
#include <string.h>

/* With codes of at most 12 bits, four literals and the bits of an unfinished byte fit in 64 bits: 4 x 12 + 7. A length
 * and a distance with their extra bits fit too: 12 + 5 + 12 + 13 + 7. */
enum { CODE_MAX = 12, DEFLATE_HEAD_BITS = 3 + 5 + 5 + 4 };

/* How often a block has each symbol. */
struct deflate_uses {
    uint32_t litlens[DEFLATE_LITLENS], distances[DEFLATE_DISTANCES];
};

struct deflate_code {
    uint16_t bits; /* the lowest is written first */
    uint16_t length;
};

/* The codes of a block, and their description: items of the precode, the code of code lengths. */
struct deflate_codes {
    struct deflate_code litlens[DEFLATE_LITLENS], distances[DEFLATE_DISTANCES], precodes[PRECODES];
    uint16_t items[DEFLATE_LITLENS + DEFLATE_DISTANCES];
    int item_count, litlen_count, distance_count, precode_count;
};

/* The codes of bytes, lengths and distances, and of the block's end: their number of bits, and from bit 8 on the bits.
 * The lowest is written first. The codes of lengths include their extra bits. */
struct deflate_tables {
    uint32_t literals[DEFLATE_LITERALS], lengths[DEFLATE_LENGTH_MAX + 1], distances[DEFLATE_DISTANCES], end;
};

/* ---- Bits on their way to memory ---- */

struct deflate_writer {
    uint64_t waiting;
    unsigned count; /* below 8 after a flush */
    uint8_t *next;
};

static inline void deflate_put(struct deflate_writer *out, uint64_t value, unsigned count)
{
    out->waiting |= value << out->count;
    out->count += count;
}

static inline void deflate_put_code(struct deflate_writer *out, uint32_t code)
{
    deflate_put(out, code >> 8, code & 255);
}

/* Write the whole bytes. This stores 8 bytes; the next flush overwrites those after the whole ones. */
static inline void deflate_flush(struct deflate_writer *out)
{
    const uint64_t waiting = htole64(out->waiting);
    memcpy(out->next, &waiting, sizeof waiting);
    out->next += out->count >> 3;
    out->waiting >>= out->count & ~7u;
    out->count &= 7;
}

/* Fill the last byte with zeros. */
static inline void deflate_align(struct deflate_writer *out)
{
    out->count = (out->count + 7) & ~7u;
    deflate_flush(out);
}

/* ---- Codes ---- */

/* Sort keys of a symbol in 9 bits and its uses above, below 2^16. Symbols are in order, so only the uses are sorted. */
static inline void sort_uses(uint32_t *keys, int count)
{
    uint32_t other[DEFLATE_LITLENS], *from = keys, *to = other;
    for (int shift = 9; shift < 25; shift += 8) {
        int offsets[256 + 1] = {0};
        for (int i = 0; i < count; i++)
            offsets[(from[i] >> shift & 255) + 1]++;
        for (int i = 0; i < 256; i++)
            offsets[i + 1] += offsets[i];
        for (int i = 0; i < count; i++)
            to[offsets[from[i] >> shift & 255]++] = from[i];
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
}

/* Replace COUNT weights in rising order by the lengths of their Huffman codes, in falling order. This is the in-place
 * algorithm of Moffat and Katajainen. */
static inline HOST_DEVICE void huffman_lengths(uint32_t *weights, int count)
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

/* LENGTHS: how many codes have each length. Those with more than LIMIT bits count as LIMIT bits. Shorter codes are
 * lengthened until the sum of 2^-length is 1. */
static inline HOST_DEVICE void limit_lengths(unsigned *lengths, int limit)
{
    unsigned sum = 0; /* the code space that is used: the sum of 2^(LIMIT - length) */
    for (int length = 1; length <= limit; length++)
        sum += lengths[length] << (limit - length);
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
static inline void assign_bits(const unsigned *lengths, int limit, int symbols, struct deflate_code *codes)
{
    unsigned next[CODE_MAX + 1] = {0}, first = 0;
    for (int length = 1; length <= limit; length++) {
        next[length] = first;
        first = (first + lengths[length]) << 1;
    }
    for (int i = 0; i < symbols; i++) /* a length of 0 leaves no bits */
        codes[i].bits = (uint16_t)next[codes[i].length]++;
    for (int i = 0; i < symbols; i++) { /* in the other order */
        unsigned bits = codes[i].bits;
        bits = (bits >> 1 & 0x5555) | (bits & 0x5555) << 1;
        bits = (bits >> 2 & 0x3333) | (bits & 0x3333) << 2;
        bits = (bits >> 4 & 0x0f0f) | (bits & 0x0f0f) << 4;
        bits = (bits >> 8 & 0x00ff) | (bits & 0x00ff) << 8;
        codes[i].bits = (uint16_t)(bits >> (16 - codes[i].length));
    }
}

/* Make a Huffman code of at most LIMIT bits for symbols that occur USES times each. There are always two codes, because
 * some decoders refuse a single one. */
static inline void code_make(const uint32_t *uses, int symbols, int limit, struct deflate_code *codes)
{
    uint32_t sorted[DEFLATE_LITLENS], weights[DEFLATE_LITLENS];
    unsigned lengths[CODE_MAX + 1] = {0}, left[CODE_MAX + 1];
    int count = 0;
    static_assert(DEFLATE_LITLENS < 1 << 9 && DEFLATE_BLOCK < 1 << 16, "uses and symbol share 32 bits");
    for (int i = 0; i < symbols; i++) {
        codes[i].bits = codes[i].length = 0;
        if (uses[i] > 0)
            sorted[count++] = uses[i] << 9 | (uint32_t)i;
    }
    for (int i = 0; count < 2; i++)
        if (uses[i] == 0)
            sorted[count++] = 1u << 9 | (uint32_t)i;
    sort_uses(sorted, count);
    for (int i = 0; i < count; i++)
        weights[i] = sorted[i] >> 9;
    huffman_lengths(weights, count);
    for (int i = 0; i < count; i++)
        lengths[weights[i] < (uint32_t)limit ? weights[i] : (uint32_t)limit]++;
    limit_lengths(lengths, limit);
    memcpy(left, lengths, sizeof left);
    for (int i = 0, length = limit; i < count; i++) { /* the rarest get the longest */
        while (left[length] == 0)
            length--;
        left[length]--;
        codes[sorted[i] & 511].length = (uint16_t)length;
    }
    assign_bits(lengths, limit, symbols, codes);
}

static inline uint64_t code_cost(const uint32_t *uses, const struct deflate_code *codes, int symbols)
{
    uint64_t cost = 0;
    for (int i = 0; i < symbols; i++)
        cost += (uint64_t)uses[i] * codes[i].length;
    return cost;
}

/* Write the code lengths as symbols of the precode. Symbol 16 repeats the last length 3 to 6 times. Symbols 17 and 18
 * mean 3 to 10 and 11 to 138 zeros (RFC 1951, 3.2.7). Each item is a symbol in 5 bits, with its extra bits above. */
static inline HOST_DEVICE int describe_codes(const uint8_t *lengths, int count, uint16_t *items)
{
    int used = 0;
    for (int i = 0; i < count;) {
        const int max = lengths[i] == 0 ? 138 : 7, limit = count - i < max ? count - i : max;
        int run = 1;
        while (run < limit && lengths[i + run] == lengths[i])
            run++;
        if (lengths[i] == 0 && run >= 3) {
            items[used++] = (uint16_t)(run < 11 ? 17 | (run - 3) << 5 : 18 | (run - 11) << 5);
        } else if (run >= 4) {
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

/* Make all codes of the block. Returns the bits of the block, its codes included. */
static inline uint64_t deflate_make_codes(const struct deflate_uses *uses, struct deflate_codes *codes)
{
    uint8_t lengths[DEFLATE_LITLENS + DEFLATE_DISTANCES];
    uint32_t precode_uses[PRECODES] = {0};
    uint64_t cost;
    code_make(uses->litlens, DEFLATE_LITLENS, CODE_MAX, codes->litlens);
    code_make(uses->distances, DEFLATE_DISTANCES, CODE_MAX, codes->distances);
    for (codes->litlen_count = DEFLATE_LITLENS; codes->litlens[codes->litlen_count - 1].length == 0;)
        codes->litlen_count--;
    for (codes->distance_count = DEFLATE_DISTANCES; codes->distances[codes->distance_count - 1].length == 0;)
        codes->distance_count--;
    for (int i = 0; i < codes->litlen_count; i++)
        lengths[i] = (uint8_t)codes->litlens[i].length;
    for (int i = 0; i < codes->distance_count; i++)
        lengths[codes->litlen_count + i] = (uint8_t)codes->distances[i].length;
    codes->item_count = describe_codes(lengths, codes->litlen_count + codes->distance_count, codes->items);
    for (int i = 0; i < codes->item_count; i++)
        precode_uses[codes->items[i] & 31]++;
    code_make(precode_uses, PRECODES, PRECODE_MAX, codes->precodes);
    for (codes->precode_count = PRECODES; codes->precodes[precode_at(codes->precode_count - 1)].length == 0;)
        codes->precode_count--;

    cost = DEFLATE_HEAD_BITS + 3 * (uint64_t)codes->precode_count + code_cost(precode_uses, codes->precodes, PRECODES);
    for (int i = 0; i < PRECODES; i++)
        cost += (uint64_t)precode_uses[i] * precode_extra((unsigned)i);
    cost += code_cost(uses->litlens, codes->litlens, DEFLATE_LITLENS);
    cost += code_cost(uses->distances, codes->distances, DEFLATE_DISTANCES);
    for (unsigned i = 0; i < LENGTH_LAST; i++)
        cost += (uint64_t)uses->litlens[DEFLATE_LENGTH_FIRST + i] * deflate_length_extra(i);
    for (unsigned i = 0; i < DEFLATE_DISTANCES; i++)
        cost += (uint64_t)uses->distances[i] * deflate_extra(i, DISTANCE_STEPS);
    return cost;
}

/* The head of a block with codes of its own: three bits for its type, and three counts. */
static inline HOST_DEVICE unsigned deflate_head(const struct deflate_codes *codes, bool last)
{
    const unsigned counts = (unsigned)(codes->litlen_count - DEFLATE_LENGTH_FIRST) |
                            (unsigned)(codes->distance_count - 1) << 5 | (unsigned)(codes->precode_count - 4) << 10;
    return (last ? 1 : 0) | 2u << 1 | counts << 3;
}

/* A code's bits, and EXTRA above them. */
static inline HOST_DEVICE uint32_t table_entry(struct deflate_code code, unsigned extra, unsigned extra_bits)
{
    return (code.bits | extra << code.length) << 8 | (code.length + extra_bits);
}

static inline void deflate_write_description(const struct deflate_codes *codes, bool last, struct deflate_writer *out)
{
    deflate_put(out, deflate_head(codes, last), DEFLATE_HEAD_BITS);
    deflate_flush(out);
    for (int i = 0; i < codes->precode_count; i++) {
        deflate_put(out, codes->precodes[precode_at(i)].length, 3);
        deflate_flush(out);
    }
    for (int i = 0; i < codes->item_count; i++) {
        const unsigned symbol = codes->items[i] & 31, extra = codes->items[i] >> 5;
        deflate_put_code(out, table_entry(codes->precodes[symbol], extra, precode_extra(symbol)));
        deflate_flush(out);
    }
}

/* Set the entries FIRST, FIRST + STEP and so on of each table. */
static inline HOST_DEVICE void deflate_set_tables(struct deflate_tables *tables, const struct deflate_codes *codes,
                                                  unsigned first, unsigned step)
{
    for (unsigned i = first; i < DEFLATE_LITERALS; i += step)
        tables->literals[i] = table_entry(codes->litlens[i], 0, 0);
    for (unsigned length = first; length <= DEFLATE_LENGTH_MAX; length += step) {
        tables->lengths[length] = 0;
        if (codes->litlen_count <= DEFLATE_LENGTH_FIRST)
            continue; /* the block has no repetition */
        const unsigned symbol = length < DEFLATE_LENGTH_MIN ? 0 : deflate_length_symbol(length);
        const unsigned extra = deflate_length_extra(symbol);
        tables->lengths[length] = table_entry(codes->litlens[DEFLATE_LENGTH_FIRST + symbol],
                                              (length - DEFLATE_LENGTH_MIN) & ((1u << extra) - 1), extra);
    }
    for (unsigned i = first; i < DEFLATE_DISTANCES; i += step)
        tables->distances[i] = table_entry(codes->distances[i], 0, 0);
    if (first == 0)
        tables->end = table_entry(codes->litlens[DEFLATE_END], 0, 0);
}

#endif
