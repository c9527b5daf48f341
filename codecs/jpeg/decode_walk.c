/* SPDX-License-Identifier: MIT */
#include "jpeg/bits.h"
#include "jpeg/decode_loops.h"

/* Walk over a DC difference that the table does not hold, and add it to *SUM. Returns 0 if it is damaged, else 1. */
static __attribute__((noinline)) unsigned walk_dc_slowly(struct reader *reader, const struct jpeg_code_order *codes,
                                                         uint16_t *sum)
{
    const uint64_t bit = bit_position(reader);
    int value = 0;
    const int bits = jpeg_read_dc(codes, jpeg_bits_at(reader->data, bit), &value);
    if (bits == 0)
        return 0;
    seek(reader, bit + (unsigned)bits);
    *sum = (uint16_t)(*sum + value);
    return 1;
}

bool IN_SET(jpeg_walk)(const struct jpeg_index *index, struct jpeg_cursor *cursor, uint64_t count, uint64_t stop,
                       uint64_t end, uint64_t *failed)
{
    const int blocks = index->layout.mcu_blocks;
    struct reader reader = {.data = index->data};
    uint64_t bit = cursor->bit;
    int phase = cursor->phase;
    seek(&reader, bit);
    for (; count > 0 && bit < stop; count--) {
        const struct jpeg_lookup *lookup = index->blocks[phase];
        refill(&reader);
        const uint32_t entry = look_up_code(&reader, lookup->first);
        unsigned steps = entry >> 8 & 255;
        uint16_t sum = (uint16_t)(cursor->sums[phase] + (entry >> 16));
        skip(&reader, entry);
        if (steps == JPEG_STEPS_SLOW)
            steps = walk_dc_slowly(&reader, &lookup->dc, &sum);
        const bool is_whole = steps > 0 && walk_block(&reader, lookup, steps);
        const uint64_t next = bit_position(&reader);
        if (!is_whole || next > end) {
            *failed = next;
            break;
        }
        cursor->sums[phase] = sum;
        cursor->blocks++;
        bit = next;
        phase = phase + 1 == blocks ? 0 : phase + 1;
    }
    cursor->bit = bit;
    cursor->phase = phase;
    return count == 0 || bit >= stop;
}
