/* SPDX-License-Identifier: MIT
 *
 * Decoding on the CPU.
 *
 * The next bits of the stream are an index into a table. An entry of the table stands for up to four literals, and a
 * length after up to three of them, if the index knows their codes.
 *
 *   bits 0 to 5     how many bits to take from the stream, extra bits included
 *   bits 8 to 13    how many of these come before the extra bits
 *   bits 16 to 25   the least length, or 0 if there is none; or NO_ENTRY or END_ENTRY
 *   bits 26 to 28   how many literals there are
 *   bits 32 to 63   their bytes, the first one in the lowest bits
 *
 * An entry for distances has 32 bits, and the least distance from bit 16 on. It is 0 if a code is too long for the
 * table, or wrong. */
#include "png/inflate.h"

#include "base/bytes.h"
#include "base/clones.h"
#include "base/inline.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

enum {
    ENTRY_EXTRA = 8,
    ENTRY_VALUE = 16,
    ENTRY_COUNT = 26,
    ENTRY_LITERALS = 32,
    ENTRY_LITERALS_MAX = 4,
    VALUE_BITS = (1 << (ENTRY_COUNT - ENTRY_VALUE)) - 1,
    END_ENTRY = 512, /* values of the end of a block, and of a code that is too long for the table, or wrong */
    NO_ENTRY = 513,
};

/* ---- Bits ---- */

/* At least 57 bits of the stream from BIT on. Zeros follow the stream. */
static uint64_t peek(const struct inflate_decoder *decoder, uint64_t bit)
{
    const size_t at = bit / 8;
    uint8_t last[8] = {0};
    if (at + sizeof last <= decoder->size)
        return little64(decoder->bytes + at) >> bit % 8;
    if (at < decoder->size)
        memcpy(last, decoder->bytes + at, decoder->size - at);
    return little64(last) >> bit % 8;
}

static inline uint64_t take_bits(const struct inflate_decoder *decoder, uint64_t *bit, unsigned bits)
{
    const uint64_t value = peek(decoder, *bit) & ((1u << bits) - 1);
    *bit += bits;
    return value;
}

/* ---- Codes ---- */

/* The next code of LENGTH bits. The stream has the bits in reverse, so the carry of the addition goes down. */
static uint32_t next_code(uint32_t reversed, unsigned length)
{
    uint32_t carry = 1u << (length - 1);
    for (; reversed & carry; carry >>= 1)
        reversed ^= carry;
    return reversed | carry;
}

/* The least length of an entry, 0, END_ENTRY or NO_ENTRY. */
static inline size_t coded_value(uint64_t entry)
{
    return entry >> ENTRY_VALUE & VALUE_BITS;
}

static inline size_t literals_of(uint64_t entry)
{
    return entry >> ENTRY_COUNT & 7;
}

/* The entry of a symbol of the first code, which has BITS bits. */
static uint64_t symbol_entry(unsigned symbol, unsigned bits)
{
    const unsigned i = symbol - DEFLATE_LENGTH_FIRST;
    uint64_t value = NO_ENTRY, extra = 0;
    if (symbol < DEFLATE_END)
        return (uint64_t)symbol << ENTRY_LITERALS | 1 << ENTRY_COUNT | bits << ENTRY_EXTRA | bits;
    if (symbol == DEFLATE_END) {
        value = END_ENTRY;
    } else if (i < LENGTH_LAST) {
        value = DEFLATE_LENGTH_MIN + deflate_base(i, LENGTH_STEPS);
        extra = deflate_length_extra(i);
    } else if (i == LENGTH_LAST) {
        value = DEFLATE_LENGTH_MAX;
    }
    return value << ENTRY_VALUE | bits << ENTRY_EXTRA | (bits + extra);
}

/* The entry of a distance whose code has BITS bits. */
static uint32_t distance_entry(unsigned symbol, unsigned bits)
{
    if (symbol >= DEFLATE_DISTANCES)
        return 0;
    return (1 + deflate_base(symbol, DISTANCE_STEPS)) << ENTRY_VALUE | bits << ENTRY_EXTRA |
           (bits + deflate_extra(symbol, DISTANCE_STEPS));
}

/* Find the symbol of the code that the lowest of BITS begin with. The code has more than *LENGTH bits; *LENGTH becomes
 * their number. Returns -1 if there is no such code. */
static int find_symbol(const struct inflate_code *code, uint64_t bits, unsigned *length)
{
    uint32_t reversed = bits & 0xffff;
    reversed = (reversed >> 8 | reversed << 8) & 0xffff;
    reversed = (reversed >> 4 & 0x0f0f) | (reversed & 0x0f0f) << 4;
    reversed = (reversed >> 2 & 0x3333) | (reversed & 0x3333) << 2;
    reversed = (reversed >> 1 & 0x5555) | (reversed & 0x5555) << 1;
    for (unsigned here = *length + 1; here <= INFLATE_CODE_MAX; here++) {
        const uint32_t i = (reversed >> (16 - here)) - (uint32_t)code->first[here];
        if (i < code->count[here]) {
            *length = here;
            return code->list[code->index[here] + i];
        }
    }
    return -1;
}

/* The entry of a code that is too long for the table. */
static NOT_INLINED uint64_t long_symbol_entry(const struct inflate_code *code, uint64_t bits)
{
    unsigned length = INFLATE_LITERAL_BITS;
    const int symbol = find_symbol(code, bits, &length);
    return symbol >= 0 ? symbol_entry((unsigned)symbol, length) : (uint64_t)NO_ENTRY << ENTRY_VALUE;
}

static NOT_INLINED uint32_t long_distance_entry(const struct inflate_code *code, uint64_t bits)
{
    unsigned length = INFLATE_DISTANCE_BITS;
    const int symbol = find_symbol(code, bits, &length);
    return symbol >= 0 ? distance_entry((unsigned)symbol, length) : 0;
}

/* Set a code from the lengths of COUNT symbols. Returns how many codes of INFLATE_CODE_MAX bits are unused, which is
 * below 0 if the lengths do not fit. */
static int make_code(struct inflate_code *code, const uint8_t *lengths, int count)
{
    uint16_t next[INFLATE_CODE_MAX + 2] = {0};
    int unused = 1 << INFLATE_CODE_MAX;
    memset(code->count, 0, sizeof code->count);
    for (int i = 0; i < count; i++)
        code->count[lengths[i]]++;
    code->count[0] = 0;
    for (int length = 1, first = 0; length <= INFLATE_CODE_MAX; length++) {
        unused -= code->count[length] << (INFLATE_CODE_MAX - length);
        code->first[length] = first <<= 1;
        code->index[length] = next[length];
        first += code->count[length];
        next[length + 1] = (uint16_t)(next[length] + code->count[length]);
    }
    if (unused < 0)
        return unused;
    for (int i = 0; i < count; i++)
        if (lengths[i] != 0)
            code->list[next[lengths[i]]++] = (uint16_t)i;
    return unused;
}

/* Put an entry in the table, and in the list if others may be joined with it. */
static inline void enter(uint64_t *table, struct inflate_entries *all, uint64_t entry, uint32_t index, bool is_listed)
{
    table[index] = entry;
    all->list[all->count] = (struct inflate_entered){entry, index};
    all->count += is_listed;
}

/* Join each literal of FIRST bits with each entry of BITS - FIRST bits. */
static inline void join_entries(uint64_t *table, struct inflate_entries *all, unsigned first, unsigned bits)
{
    const struct inflate_entered *next = all->list + all->first[bits - first];
    const struct inflate_entered *next_end = all->list + all->first[bits - first + 1];
    const struct inflate_entered *literal = all->list + all->first[first],
                                 *literal_end = literal + all->literals[first];
    for (; next < next_end && literal < literal_end; literal++)
        for (const struct inflate_entered *other = next; other < next_end; other++) {
            const uint64_t high = other->entry >> ENTRY_LITERALS << ENTRY_LITERALS;
            const uint64_t both = literal->entry + (other->entry - high) + (high << 8); /* all numbers are sums */
            enter(table, all, both, literal->index | other->index << first,
                  bits < INFLATE_LITERAL_BITS && literals_of(both) < ENTRY_LITERALS_MAX);
        }
}

/* A table of BITS bits is that of one bit less, twice, with what has that many bits put in: symbols, and then literals
 * with what may follow them. */
static void set_symbols(const struct inflate_code *code, uint64_t *table, struct inflate_entries *all)
{
    const uint16_t *symbol = code->list;
    uint32_t reversed = 0;
    all->count = 0;
    table[0] = (uint64_t)NO_ENTRY << ENTRY_VALUE;
    for (unsigned bits = 1; bits <= INFLATE_LITERAL_BITS; bits++) {
        memcpy(table + ((size_t)1 << (bits - 1)), table, sizeof *table << (bits - 1));
        all->first[bits] = all->count;
        all->literals[bits] = 0;
        for (int i = 0; i < code->count[bits]; i++, symbol++, reversed = next_code(reversed, bits)) {
            const uint64_t entry = symbol_entry(*symbol, bits);
            all->literals[bits] += *symbol < DEFLATE_END;
            enter(table, all, entry, reversed, bits < INFLATE_LITERAL_BITS && coded_value(entry) < END_ENTRY);
        }
        for (unsigned first = 1; first < bits; first++)
            join_entries(table, all, first, bits);
        all->first[bits + 1] = all->count;
    }
}

static void set_distances(const struct inflate_code *code, uint32_t *table)
{
    const uint16_t *symbol = code->list;
    uint32_t reversed = 0;
    table[0] = 0;
    for (unsigned bits = 1; bits <= INFLATE_DISTANCE_BITS; bits++) {
        memcpy(table + ((size_t)1 << (bits - 1)), table, sizeof *table << (bits - 1));
        for (int i = 0; i < code->count[bits]; i++, symbol++, reversed = next_code(reversed, bits))
            table[reversed] = distance_entry(*symbol, bits);
    }
}

/* Set both codes. The second may be empty: all decoders accept that, too. */
static bool set_codes(struct inflate_decoder *decoder, const uint8_t *lengths, int literals, int distances)
{
    struct inflate_code *first = &decoder->literal_code, *second = &decoder->distance_code;
    int unused = make_code(first, lengths, literals);
    if (!inflate_accepts(unused, first->count[1]))
        return false;
    unused = make_code(second, lengths + literals, distances);
    if (unused != 1 << INFLATE_CODE_MAX && !inflate_accepts(unused, second->count[1]))
        return false;
    set_symbols(&decoder->literal_code, decoder->literals, &decoder->entries);
    set_distances(&decoder->distance_code, decoder->distances);
    return true;
}

/* ---- Headers ---- */

enum { REPEAT = 16 }; /* the symbol for the length before */

/* The lengths of the code of lengths, 3 bits each, from BITS on. Do they use that code up? */
static inline bool is_precode_whole(uint64_t bits, int count)
{
    /* Each length uses a part of 2^7 codes. The table has the sums for three lengths. */
#define PART(sum, length) ((sum) + ((length) == 0 ? 0 : 1 << PRECODE_MAX >> (length)))
#define PARTS(sum)                                                                                                     \
    PART(sum, 0), PART(sum, 1), PART(sum, 2), PART(sum, 3), PART(sum, 4), PART(sum, 5), PART(sum, 6), PART(sum, 7)
#define PARTS2(sum)                                                                                                    \
    PARTS(PART(sum, 0)), PARTS(PART(sum, 1)), PARTS(PART(sum, 2)), PARTS(PART(sum, 3)), PARTS(PART(sum, 4)),           \
        PARTS(PART(sum, 5)), PARTS(PART(sum, 6)), PARTS(PART(sum, 7))
    static const uint8_t sums[512] = {PARTS2(PART(0, 0)), PARTS2(PART(0, 1)), PARTS2(PART(0, 2)), PARTS2(PART(0, 3)),
                                      PARTS2(PART(0, 4)), PARTS2(PART(0, 5)), PARTS2(PART(0, 6)), PARTS2(PART(0, 7))};
    unsigned sum = 0;
    bits &= ((uint64_t)1 << 3 * count) - 1;
    for (int i = 0; i < PRECODES; i += 3, bits >>= 9)
        sum += sums[bits & 511];
    return sum == 1 << PRECODE_MAX;
}

/* Read the lengths of both codes, which follow the block's type, at *BIT. */
static bool read_codes(struct inflate_decoder *decoder, uint64_t *bit)
{
    const int literals = DEFLATE_LENGTH_FIRST + (int)take_bits(decoder, bit, 5),
              distances = 1 + (int)take_bits(decoder, bit, 5);
    const int precodes = 4 + (int)take_bits(decoder, bit, 4), all = literals + distances;
    uint8_t precode[PRECODES] = {0}, lengths[DEFLATE_LITLENS + DEFLATE_DISTANCES + 138], table[1 << PRECODE_MAX];
    if (literals > DEFLATE_LITLENS || distances > DEFLATE_DISTANCES || !is_precode_whole(peek(decoder, *bit), precodes))
        return false;
    for (int i = 0; i < precodes; i++)
        precode[precode_at(i)] = (uint8_t)take_bits(decoder, bit, 3);
    uint32_t reversed = 0;
    for (unsigned length = 1; length <= PRECODE_MAX; length++)
        for (unsigned symbol = 0; symbol < PRECODES; symbol++) {
            if (precode[symbol] != length)
                continue;
            for (uint32_t i = reversed; i < 1 << PRECODE_MAX; i += 1u << length)
                table[i] = (uint8_t)(symbol << 3 | length);
            reversed = next_code(reversed, length);
        }
    int i = 0, used = 0; /* code space that both codes take; random bits exceed it after a few lengths */
    while (i < all && used <= 2 << INFLATE_CODE_MAX) {
        const uint8_t next = table[peek(decoder, *bit) & ((1 << PRECODE_MAX) - 1)];
        const unsigned symbol = next >> 3;
        *bit += next & 7;
        const int count = precode_least(symbol) + (int)take_bits(decoder, bit, precode_extra(symbol));
        const int length = symbol < REPEAT ? (int)symbol : symbol > REPEAT ? 0 : i > 0 ? lengths[i - 1] : REPEAT;
        if (length == REPEAT)
            return false;
        used += length > 0 ? count << (INFLATE_CODE_MAX - length) : 0;
        memset(lengths + i, length, (size_t)count);
        i += count;
    }
    decoder->has_fixed_codes = false;
    return i == all && lengths[DEFLATE_END] != 0 && set_codes(decoder, lengths, literals, distances);
}

/* Blocks with fixed codes may be tiny, so the tables are kept from one to the next. */
static bool set_fixed_codes(struct inflate_decoder *decoder)
{
    uint8_t lengths[INFLATE_LITERALS + INFLATE_DISTANCES];
    if (decoder->has_fixed_codes)
        return true;
    for (int i = 0; i < INFLATE_LITERALS + INFLATE_DISTANCES; i++)
        lengths[i] = (uint8_t)inflate_fixed_length(i);
    decoder->has_fixed_codes = set_codes(decoder, lengths, INFLATE_LITERALS, INFLATE_DISTANCES);
    return decoder->has_fixed_codes;
}

/* Read the header of a block, and set the state after it. */
static void read_block_header(struct inflate_decoder *decoder)
{
    uint64_t bit = decoder->bit;
    decoder->is_last = take_bits(decoder, &bit, 1) != 0;
    const uint64_t type = take_bits(decoder, &bit, 2);
    bool done = type < 3;
    decoder->state = INFLATE_CODES;
    if (type == 0) {
        bit = (bit + 7) / 8 * 8;
        decoder->state = INFLATE_STORED;
        decoder->stored = take_bits(decoder, &bit, 16);
        done = decoder->stored == (take_bits(decoder, &bit, 16) ^ 0xffff);
    } else if (type == 1) {
        done = set_fixed_codes(decoder);
    } else if (type == 2) {
        done = read_codes(decoder, &bit);
    }
    decoder->bit = bit;
    if (!done || bit > 8 * (uint64_t)decoder->size)
        decoder->state = INFLATE_DAMAGED;
}

bool inflate_find(struct inflate_decoder *decoder, uint64_t from, uint64_t to, uint64_t *start)
{
    enum { STEP = 48 };                     /* bits that a look at 57 can test */
    const uint64_t max = (uint64_t)1 << 19; /* bits of what looks like headers; photos have a tenth of that */
    uint64_t read = 0;
    for (uint64_t bit = from; bit < to; bit += STEP) {
        const uint64_t low = ((uint64_t)1 << STEP) - 1, next = peek(decoder, bit + STEP);
        uint64_t found = inflate_find_heads((peek(decoder, bit) & low) | next << STEP) & low;
        for (; found != 0; found &= found - 1) {
            const uint64_t at = bit + (unsigned)__builtin_ctzll(found);
            if (at >= to || !is_precode_whole(peek(decoder, at + 17), 4 + (int)(peek(decoder, at + 13) & 15)))
                continue;
            decoder->bit = at;
            read_block_header(decoder);
            *start = at;
            if (decoder->state == INFLATE_CODES)
                return true;
            if ((read += decoder->bit - at) > max)
                return false;
        }
    }
    return false;
}

/* ---- Symbols ---- */

/* Copy SIZE bytes, and up to 31 more, from DISTANCE bytes before. */
INLINE void repeat_bytes(uint8_t *out, size_t distance, size_t size)
{
    const uint8_t *from = out - distance, *end = out + size;
    if (distance >= 32) {
        do {
            memcpy(out, from, 32);
            out += 32;
            from += 32;
        } while (out < end);
    } else if (distance >= 8) {
        do {
            memcpy(out, from, 8);
            out += 8;
            from += 8;
        } while (out < end);
    } else {
        /* A word that repeats them, and the largest multiple of the distance that it holds. */
        static const uint8_t steps[8] = {0, 8, 8, 6, 8, 5, 6, 7};
        uint64_t word = little64(from) & (((uint64_t)1 << 8 * distance) - 1);
        for (size_t bits = 8 * distance; bits < 64; bits *= 2)
            word |= word << bits;
        word = htole64(word);
        do {
            memcpy(out, &word, 8);
            out += steps[distance];
        } while (out < end);
    }
}

/* Put the literals of ENTRY to *AT, as bytes, or as symbols if WIDE. */
INLINE void put_literals(uint8_t **at, uint64_t entry, bool wide)
{
    const uint32_t literals = (uint32_t)(entry >> ENTRY_LITERALS), bytes = htole32(literals);
    const uint16_t symbols[] = {literals & 255, literals >> 8 & 255, literals >> 16 & 255, (uint16_t)(literals >> 24)};
    if (wide)
        memcpy(*at, symbols, sizeof symbols);
    else
        memcpy(*at, &bytes, sizeof bytes);
    *at += literals_of(entry) * (wide ? 2 : 1);
}

/* A table's index is a multiple of the bytes of an entry: some processors need one cycle more to multiply it. So the
 * next bit of the stream is this bit of a buffer, and the bits below are worthless. */
enum { BUFFER_FIRST = 3 };

/* The next bits of the stream. Those above the available ones are the stream's, too, or 0. */
struct bits {
    const uint8_t *in;          /* what comes after the available bits */
    uint64_t buffer, available; /* the lowest 6 bits are how many are available; the others are worthless */
};

/* Make at least 56 bits available, and 53 of them are the stream's. */
INLINE void refill_bits(struct bits *bits)
{
    bits->buffer |= little64(bits->in) << (bits->available & 63);
    bits->in += 7 - (bits->available >> 3 & 7);
    bits->available |= 56;
}

/* Drop the bits of ENTRY. */
INLINE void drop(struct bits *bits, uint64_t entry)
{
    bits->buffer >>= entry & 63;
    bits->available -= entry;
}

INLINE uint64_t look_up_symbol(const struct bits *bits, const uint64_t *table)
{
    const uint8_t *bytes = (const uint8_t *)table;
    uint64_t entry;
    static_assert(sizeof entry == 1 << BUFFER_FIRST, "an index is as far from the lowest bit");
    memcpy(&entry, bytes + (bits->buffer & ((1 << INFLATE_LITERAL_BITS) - 1) << BUFFER_FIRST), sizeof entry);
    return entry;
}

/* Drop the bits of ENTRY. Returns what its extra bits add to its value. */
INLINE size_t take_extra(struct bits *bits, uint64_t entry)
{
    const uint64_t taken = bits->buffer >> BUFFER_FIRST & (((uint64_t)1 << (entry & 63)) - 1);
    drop(bits, entry);
    return taken >> (entry >> ENTRY_EXTRA & 63);
}

/* Take an entry of literals only. Returns the next entry. */
INLINE uint64_t take_literals(struct bits *bits, uint64_t entry, const uint64_t *table, uint8_t **at, bool wide)
{
    put_literals(at, entry, wide);
    drop(bits, entry);
    return look_up_symbol(bits, table);
}

/* Decode inside a block with codes, until the output is full, the block ends, or few bytes are left of INPUT, which has
 * SIZE bytes from byte number FIRST of the stream on. The output is of bytes, or symbols if WIDE. */
INLINE void decode_output(struct inflate_decoder *decoder, const uint8_t *input, size_t first, size_t size,
                          uint8_t *out, struct inflate_output *output, bool wide)
{
    enum { READ = 16 }; /* bytes that two refills read at most */
    const size_t unit = wide ? 2 : 1;
    const uint8_t *in_end = input + size - READ;
    uint8_t *at = out + output->at * unit, *end = out + output->end * unit;
    const uint64_t *table = decoder->literals;
    struct bits bits = {.in = input + (decoder->bit / 8 - first), .available = BUFFER_FIRST};
    refill_bits(&bits);
    drop(&bits, decoder->bit % 8);
    uint64_t entry = look_up_symbol(&bits, table);
    while (bits.in <= in_end && at < end) {
        /* 53 bits are enough for an entry of literals, a length whose code has 15 bits, and the next index: 11 + 15 + 5
         * extra bits + 11. After the second refill, they are enough for a distance and an index: 15 + 13 + 11. */
        refill_bits(&bits);
        if (coded_value(entry) == 0) {
            entry = take_literals(&bits, entry, table, &at, wide);
            if (coded_value(entry) == 0) {
                entry = take_literals(&bits, entry, table, &at, wide);
                continue;
            }
        }
        if (__builtin_expect(coded_value(entry) >= END_ENTRY,
                             0)) { /* or gcc puts what follows elsewhere, and 5% are lost */
            if (coded_value(entry) == NO_ENTRY)
                entry = long_symbol_entry(&decoder->literal_code, bits.buffer >> BUFFER_FIRST);
            if (coded_value(entry) >= END_ENTRY) {
                drop(&bits, entry);
                decoder->state = coded_value(entry) == NO_ENTRY ? INFLATE_DAMAGED
                                 : decoder->is_last             ? INFLATE_END
                                                                : INFLATE_HEADER;
                break;
            }
            if (coded_value(entry) == 0) {
                entry = take_literals(&bits, entry, table, &at, wide);
                continue;
            }
        }
        put_literals(&at, entry, wide);
        const size_t length = coded_value(entry) + take_extra(&bits, entry);
        const uint64_t next = bits.buffer >> BUFFER_FIRST;
        uint32_t distance_entry = decoder->distances[next & ((1 << INFLATE_DISTANCE_BITS) - 1)];
        refill_bits(&bits);
        if (distance_entry == 0)
            distance_entry = long_distance_entry(&decoder->distance_code, bits.buffer >> BUFFER_FIRST);
        const size_t distance = (distance_entry >> ENTRY_VALUE) + take_extra(&bits, distance_entry);
        if (distance == 0 || (!wide && distance > (size_t)(at - out) + output->known)) {
            decoder->state = INFLATE_DAMAGED;
            break;
        }
        entry = look_up_symbol(&bits, table);
        repeat_bytes(at, distance * unit, length * unit);
        at += length * unit;
    }
    decoder->bit = 8 * (uint64_t)((size_t)(bits.in - input) + first) - (bits.available & 63) + BUFFER_FIRST;
    output->at = (size_t)(at - out) / unit;
}

CLONES(decode_to_bytes,
       (struct inflate_decoder * decoder, const uint8_t *input, size_t first, size_t size, uint8_t *out,
        struct inflate_output *output),
       (decoder, input, first, size, out, output))
{
    decode_output(decoder, input, first, size, out, output, false);
}

CLONES(decode_symbols,
       (struct inflate_decoder * decoder, const uint8_t *input, size_t first, size_t size, uint8_t *out,
        struct inflate_output *output),
       (decoder, input, first, size, out, output))
{
    decode_output(decoder, input, first, size, out, output, true);
}

/* Copy bytes of a stored block. */
static void copy_stored(struct inflate_decoder *decoder, uint8_t *out, struct inflate_output *output, bool wide)
{
    const size_t at = decoder->bit / 8, left = decoder->size - at, fits = output->end - output->at;
    size_t count = decoder->stored < fits ? decoder->stored : fits;
    if (decoder->stored > left && !decoder->has_more)
        decoder->state = INFLATE_DAMAGED;
    count = count < left ? count : left;
    for (size_t i = 0; wide && i < count; i++)
        ((uint16_t *)(void *)out)[output->at + i] = decoder->bytes[at + i];
    if (!wide)
        memcpy(out + output->at, decoder->bytes + at, count);
    output->at += count;
    decoder->bit += 8 * count;
    decoder->stored -= count;
    if (decoder->stored == 0 && decoder->state == INFLATE_STORED)
        decoder->state = decoder->is_last ? INFLATE_END : INFLATE_HEADER;
}

static void run_decoder(struct inflate_decoder *decoder, uint8_t *out, struct inflate_output *output, uint64_t stop,
                        bool wide)
{
    const size_t tail = decoder->size < INFLATE_TAIL ? 0 : decoder->size - INFLATE_TAIL;
    while (decoder->state < INFLATE_END && output->at < output->end &&
           (!decoder->has_more || decoder->bit / 8 + INFLATE_AHEAD < decoder->size)) {
        if (decoder->state == INFLATE_HEADER) {
            if (decoder->bit >= stop)
                return;
            read_block_header(decoder);
        } else if (decoder->state == INFLATE_STORED) {
            copy_stored(decoder, out, output, wide);
        } else {
            const bool ends = !decoder->has_more && (decoder->bit / 8 >= tail + INFLATE_TAIL / 2 || tail == 0);
            (wide ? decode_symbols : decode_to_bytes)(decoder, ends ? decoder->tail : decoder->bytes, ends ? tail : 0,
                                                      ends ? sizeof decoder->tail : decoder->size, out, output);
            if (decoder->bit > 8 * (uint64_t)decoder->size)
                decoder->state = INFLATE_DAMAGED;
        }
    }
}

void inflate_bytes(struct inflate_decoder *decoder, uint8_t *out, struct inflate_output *output, uint64_t stop)
{
    run_decoder(decoder, out, output, stop, false);
}

void inflate_symbols(struct inflate_decoder *decoder, uint16_t *out, struct inflate_output *output, uint64_t stop)
{
    run_decoder(decoder, (uint8_t *)out, output, stop, true);
}

void inflate_continue(struct inflate_decoder *decoder, const uint8_t *bytes, size_t size, bool has_more)
{
    const size_t tail = size < INFLATE_TAIL ? 0 : size - INFLATE_TAIL;
    decoder->bytes = bytes;
    decoder->size = size;
    decoder->has_more = has_more;
    decoder->bit %= 8;
    memset(decoder->tail, 0, sizeof decoder->tail);
    memcpy(decoder->tail, bytes + tail, size - tail);
}

void inflate_begin(struct inflate_decoder *decoder, const uint8_t *bytes, size_t size, uint64_t bit)
{
    decoder->bit = 0;
    inflate_continue(decoder, bytes, size, false);
    decoder->bit = bit;
    decoder->state = INFLATE_HEADER;
    decoder->has_fixed_codes = false;
}

/* ---- Windows ---- */

void inflate_mark(uint16_t *out)
{
    for (unsigned i = 0; i < DEFLATE_WINDOW; i++)
        out[i] = (uint16_t)(INFLATE_MARKER | i);
}

CLONES(resolve, (const uint16_t *symbols, size_t count, const uint8_t *bytes, uint8_t *out),
       (symbols, count, bytes, out))
{
    enum { STEP = 64 };
    size_t i = 0;
    for (; i + STEP <= count; i += STEP) {
        uint16_t some[STEP], any = 0;
        memcpy(some, symbols + i, sizeof some);
        for (size_t k = 0; k < STEP; k++)
            any |= some[k];
        if (any & INFLATE_MARKER)
            for (size_t k = 0; k < STEP; k++)
                out[i + k] = bytes[some[k]];
        else
            for (size_t k = 0; k < STEP; k++)
                out[i + k] = (uint8_t)some[k];
    }
    for (; i < count; i++)
        out[i] = bytes[symbols[i]];
}

void inflate_resolve(const uint16_t *symbols, size_t count, const uint8_t *bytes, uint8_t *out)
{
    resolve(symbols, count, bytes, out);
}
