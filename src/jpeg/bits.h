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

/* The number of the next bit. */
INLINE uint64_t place(const struct reader *reader)
{
    return (uint64_t)(reader->next - reader->data) * 8 - reader->count;
}

/* The entry for the next bits. */
INLINE uint32_t look_up(const struct reader *reader, const uint32_t *table)
{
    return table[reader->buffer >> (64 - JPEG_LOOKUP_BITS)];
}

/* Skip the bits of ENTRY. */
INLINE void skip(struct reader *reader, uint32_t entry)
{
    reader->buffer <<= entry & 63;
    reader->count -= entry & 63;
}

/* Has a block ended, properly, after so many steps? */
INLINE bool is_ended(unsigned steps)
{
    return steps == JPEG_BLOCK || steps - JPEG_STEPS_END < JPEG_BLOCK;
}

#endif
