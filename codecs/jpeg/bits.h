/* SPDX-License-Identifier: MIT
 *
 * The bits of a scan, read ahead. */
#ifndef GPUCONV_JPEG_BITS_H
#define GPUCONV_JPEG_BITS_H

#include "base/inline.h"
#include "jpeg/lookup.h"

struct reader {
    const uint8_t *data, *next; /* the byte after those in BUFFER */
    uint64_t buffer;            /* the next bits, from the top */
    unsigned count;             /* how many are valid */
};

/* Make at least 56 bits valid. */
INLINE void refill(struct reader *reader)
{
    uint64_t word;
    memcpy(&word, reader->next, sizeof word);
    reader->buffer |= be64toh(word) >> reader->count;
    reader->next += (63 - reader->count) >> 3;
    reader->count |= 56;
}

INLINE void seek(struct reader *reader, uint64_t bit)
{
    const unsigned skipped = bit & 7;
    reader->next = reader->data + (bit >> 3);
    reader->buffer = reader->count = 0;
    refill(reader);
    reader->buffer <<= skipped;
    reader->count -= skipped;
}

/* The position of the next bit in the data. */
INLINE uint64_t bit_position(const struct reader *reader)
{
    return (uint64_t)(reader->next - reader->data) * 8 - reader->count;
}

/* The entry for the next bits. */
INLINE uint32_t look_up_code(const struct reader *reader, const uint32_t *table)
{
    return table[reader->buffer >> (64 - JPEG_LOOKUP_BITS)];
}

/* Skip the bits of ENTRY. */
INLINE void skip(struct reader *reader, uint32_t entry)
{
    reader->buffer <<= entry & 63;
    reader->count -= entry & 63;
}

/* Has a block ended, properly, after STEPS steps? */
INLINE bool is_ended(unsigned steps)
{
    return steps == JPEG_BLOCK || steps - JPEG_STEPS_END < JPEG_BLOCK;
}

/* Walk over one AC coefficient that the table does not hold, after STEPS steps. Returns the steps then, or 0 if
 * it is damaged. */
static __attribute__((noinline, unused)) unsigned walk_slowly(struct reader *reader,
                                                              const struct jpeg_code_order *codes, unsigned steps)
{
    const uint64_t bit = bit_position(reader);
    int more = 0, value;
    const int bits = jpeg_read_ac(codes, jpeg_bits_at(reader->data, bit), &more, &value);
    if (bits == 0 || (more < JPEG_STEPS_END && steps + (unsigned)more > JPEG_BLOCK))
        return 0;
    seek(reader, bit + (unsigned)bits);
    return steps + (unsigned)more;
}

/* Walk to the end of a block, after STEPS steps. Returns false if it is damaged. */
INLINE bool walk_block(struct reader *reader, const struct jpeg_lookup *lookup, unsigned steps)
{
    while (steps < JPEG_BLOCK) {
        uint32_t entry = 0;
        while (steps < JPEG_BLOCK) {
            refill(reader);
            for (int i = 0; i < 4; i++) { /* at most 48 bits */
                entry = look_up_code(reader, lookup->next);
                skip(reader, entry);
                steps += entry >> 8;
                if (steps >= JPEG_BLOCK)
                    break;
            }
        }
        if (is_ended(steps))
            return true;
        /* The entry is slow, or goes past the end of the block. */
        seek(reader, bit_position(reader) - (entry & 63));
        steps = walk_slowly(reader, &lookup->ac, steps - (entry >> 8));
        if (steps == 0)
            return false;
    }
    return true;
}

#endif
