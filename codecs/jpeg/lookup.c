/* SPDX-License-Identifier: MIT */
#include "jpeg/lookup.h"

enum { SIZE = 1 << JPEG_LOOKUP_BITS, MASK = SIZE - 1 };

/* The symbols (bits 8 to 15) and lengths (bits 0 to 7) of the codes of at most JPEG_LOOKUP_BITS bits, by these bits; 0
 * for longer ones. */
struct singles {
    uint16_t entries[SIZE];
};

bool jpeg_order_codes(struct jpeg_code_order *codes, const struct jpeg_huffman *table)
{
    uint32_t code = 0;
    int32_t index = 0;
    codes->ends[0] = 0;
    for (int length = 1; length <= 16; length++, code <<= 1) {
        codes->offsets[length] = index - (int32_t)code;
        index += table->counts[length];
        code += table->counts[length];
        codes->ends[length] = code << (16 - length);
    }
    codes->ends[17] = UINT32_MAX;
    memcpy(codes->symbols, table->symbols, sizeof codes->symbols);
    return index > 0 && codes->ends[16] < 1 << 16;
}

void jpeg_symbol_codes(const struct jpeg_huffman *table, uint32_t *codes, int count)
{
    struct jpeg_code_order order;
    int index = 0;
    jpeg_order_codes(&order, table);
    memset(codes, 0, (size_t)count * sizeof *codes);
    for (int length = 1; length <= 16; length++)
        for (const int end = index + table->counts[length]; index < end && index < 256; index++) {
            const int symbol = table->symbols[index];
            if (symbol < count)
                codes[symbol] = (uint32_t)(length + (symbol & 15)) << 16 | (uint32_t)(index - order.offsets[length]);
        }
}

static void make_singles(struct singles *singles, const struct jpeg_code_order *codes)
{
    for (uint32_t i = 0; i < SIZE; i++) {
        int length;
        const int symbol = jpeg_find_symbol(codes, (uint64_t)i << (64 - JPEG_LOOKUP_BITS), &length);
        singles->entries[i] = (uint16_t)(symbol < 0 || length > JPEG_LOOKUP_BITS ? 0 : symbol << 8 | length);
    }
}

/* An entry whose first USED bits and STEPS steps are known: add the AC coefficients in the bits after them. */
static uint32_t add_coefficients(const struct singles *singles, uint32_t window, unsigned used, unsigned steps)
{
    while (steps < JPEG_STEPS_END) {
        const unsigned single = singles->entries[window << used & MASK];
        const unsigned symbol = single >> 8, size = symbol & 15, bits = (single & 255) + size;
        const unsigned more = size == 0 && symbol >> 4 != 15 ? JPEG_STEPS_END : (symbol >> 4) + 1;
        if (single == 0 || used + bits > JPEG_LOOKUP_BITS || (more < JPEG_STEPS_END && steps + more >= JPEG_BLOCK))
            break;
        used += bits;
        steps += more;
    }
    return used > 0 ? steps << 8 | used : (uint32_t)JPEG_STEPS_SLOW << 8;
}

static uint32_t make_entry(int bits, int steps, int value)
{
    return bits == 0 || bits > JPEG_LOOKUP_BITS ? (uint32_t)JPEG_STEPS_SLOW << 8
                                                : (uint32_t)(value & 0xffff) << 16 | (uint32_t)(steps << 8 | bits);
}

void jpeg_lookup_make(struct jpeg_lookup *lookup, const struct jpeg_huffman *dc, const struct jpeg_huffman *ac)
{
    struct singles singles;
    jpeg_order_codes(&lookup->dc, dc);
    jpeg_order_codes(&lookup->ac, ac);
    make_singles(&singles, &lookup->ac);
    for (uint32_t i = 0; i < SIZE; i++) {
        const uint64_t bits = (uint64_t)i << (64 - JPEG_LOOKUP_BITS);
        int value = 0, steps = 0;
        int used = jpeg_read_dc(&lookup->dc, bits, &value);
        const uint32_t entry = lookup->dc_values[i] = make_entry(used, 0, value);
        lookup->first[i] = entry >> 8 == JPEG_STEPS_SLOW
                               ? entry
                               : (entry & 0xffff0000u) | add_coefficients(&singles, i, (unsigned)used, 1);
        lookup->next[i] = add_coefficients(&singles, i, 0, 0);
        used = jpeg_read_ac(&lookup->ac, bits, &steps, &value);
        lookup->ac_values[i] = make_entry(used, steps, value);
    }
}
