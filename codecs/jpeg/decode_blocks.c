/* SPDX-License-Identifier: MIT
 *
 * Huffman codes to samples: a row of MCUs. Blocks wait until there are as many of a kind as vectors have lanes. */
#include "jpeg/bits.h"
#include "jpeg/decode_loops.h"
#include "jpeg/samples.h"

#ifdef GPUCONV_PORTABLE
#include "jpeg/inverse_plain.h"
#else
#include "jpeg/inverse_vectors.h"
#endif

enum {
    DUMMY = JPEG_BLOCK,                                     /* what goes past the end of a block goes here */
    POSITIONS = JPEG_BLOCK + JPEG_STEPS_SLOW + 1,           /* a block, and the maximal number of steps of an entry */
    FEW = 10,                                               /* the first coefficients in zigzag order: within 4 x 4 */
    KINDS = 2,                                              /* blocks with more than FEW coefficients, and others */
    SLOTS = JPEG_COMPONENTS_MAX * KINDS * (BLOCKS - 1) + 1, /* one more than can wait */
};

/* Entry i is the index in natural order of the coefficient that i steps lead to. */
#define FIFTEEN DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY, DUMMY
#define SIXTY FIFTEEN, FIFTEEN, FIFTEEN, FIFTEEN
static const uint8_t positions[POSITIONS] = {DUMMY, JPEG_NATURAL_ORDER_LIST, DUMMY, SIXTY, SIXTY, SIXTY, SIXTY};

struct slot {
    _Alignas(32) int16_t coefficients[JPEG_BLOCK + 1]; /* in natural order; the last one is DUMMY */
};

/* Blocks that wait for others of their component and kind. */
struct waiting {
    struct slot *slots[BLOCKS];
    uint8_t *to[BLOCKS];
    unsigned count;
};

struct row {
    struct reader reader;
    struct slot slots[SLOTS];
    uint8_t spare[SLOTS]; /* numbers of slots of zeros */
    int spares;
    struct waiting waiting[JPEG_COMPONENTS_MAX][KINDS];
    const uint16_t *quantisers[JPEG_COMPONENTS_MAX];
    size_t stride[JPEG_COMPONENTS_MAX]; /* bytes of a row of a plane */
    int side[JPEG_COMPONENTS_MAX];
    uint16_t dc[JPEG_COMPONENTS_MAX];
};

/* Decode a block after its DC difference, and return the steps to its last coefficient. The index has checked the
 * codes. */
INLINE unsigned decode_coefficients(struct reader *reader, const struct jpeg_lookup *lookup, int16_t *coefficients)
{
    unsigned steps = 1;
    for (;;) {
        refill(reader);
        for (int i = 0; i < 4; i++) { /* at most 48 bits */
            const uint32_t entry = look_up_code(reader, lookup->ac_values);
            skip(reader, entry);
            steps += entry >> 8 & 255;
            coefficients[positions[steps]] = (int16_t)(entry >> 16);
            if (steps >= JPEG_BLOCK)
                break;
        }
        if (steps < JPEG_BLOCK)
            continue;
        if (steps < JPEG_STEPS_SLOW)
            break;
        int more = JPEG_STEPS_END, value = 0;
        const uint64_t bit = bit_position(reader);
        seek(reader, bit + (unsigned)jpeg_read_ac(&lookup->ac, jpeg_bits_at(reader->data, bit), &more, &value));
        steps += (unsigned)more - JPEG_STEPS_SLOW;
        coefficients[positions[steps]] = (int16_t)value;
        if (steps >= JPEG_BLOCK)
            break;
    }
    return steps >= JPEG_STEPS_END ? steps - JPEG_STEPS_END : steps;
}

INLINE uint16_t decode_dc(struct reader *reader, const struct jpeg_lookup *lookup)
{
    refill(reader);
    const uint32_t entry = look_up_code(reader, lookup->dc_values);
    skip(reader, entry);
    if ((entry & 63) > 0)
        return (uint16_t)(entry >> 16);
    const uint64_t bit = bit_position(reader);
    int value = 0;
    seek(reader, bit + (unsigned)jpeg_read_dc(&lookup->dc, jpeg_bits_at(reader->data, bit), &value));
    return (uint16_t)value;
}

/* Transform blocks to SIDE x SIDE samples. */
static void transform_by_side(const int16_t *const *coefficients, const uint16_t *quantisers, uint8_t *const to[BLOCKS],
                              size_t stride, int side, bool is_few)
{
    if (side == JPEG_SIDE && is_few)
        inverse_few(coefficients, quantisers, to, stride);
    else if (side == JPEG_SIDE)
        inverse(coefficients, quantisers, to, stride);
    else if (side == 4 && is_few)
        inverse_small(coefficients, quantisers, to, stride, 4, true);
    else if (side == 4)
        inverse_small(coefficients, quantisers, to, stride, 4, false);
    else if (is_few)
        inverse_small(coefficients, quantisers, to, stride, 2, true);
    else
        inverse_small(coefficients, quantisers, to, stride, 2, false);
}

/* Transform the blocks that wait. */
static void transform_waiting(struct row *row, int component, int kind)
{
    struct waiting *waiting = &row->waiting[component][kind];
    const int16_t *coefficients[BLOCKS];
    if (waiting->count == 0)
        return;
    for (unsigned i = waiting->count; i < BLOCKS; i++) {
        waiting->slots[i] = waiting->slots[0];
        waiting->to[i] = waiting->to[0];
    }
    for (int i = 0; i < BLOCKS; i++)
        coefficients[i] = waiting->slots[i]->coefficients;
    transform_by_side(coefficients, row->quantisers[component], waiting->to, row->stride[component],
                      row->side[component], kind == 0);
    for (unsigned i = 0; i < waiting->count; i++) {
        memset(waiting->slots[i]->coefficients, 0, JPEG_BLOCK * sizeof(int16_t));
        row->spare[row->spares++] = (uint8_t)(waiting->slots[i] - row->slots);
    }
    waiting->count = 0;
}

/* Fill a block of SIDE x SIDE samples without AC coefficients. The sums of both passes wrap and saturate as those of
 * the transforms. */
INLINE void fill_block(int16_t dc, uint16_t quantiser, uint8_t *to, size_t stride, int side)
{
    const unsigned product = (uint16_t)dc * (unsigned)quantiser;
    const int sample = side == 2 ? (int32_t)((product << 17) + (1u << 19)) >> 20 : ((int16_t)(product * 4u) + 16) >> 5;
    const uint64_t eight = 0x0101010101010101u * (uint64_t)jpeg_inverse_sample(sample);
    if (side == 1)
        *to = jpeg_inverse_single(dc, quantiser);
    for (int y = 0; side > 1 && y < side; y++) {
        if (side == JPEG_SIDE)
            memcpy(to + (size_t)y * stride, &eight, sizeof eight);
        else
            memcpy(to + (size_t)y * stride, &eight, (size_t)side);
    }
}

static void decode_block(struct row *row, const struct jpeg_lookup *lookup, int component, uint8_t *to)
{
    struct slot *slot = &row->slots[row->spare[row->spares - 1]];
    const int side = row->side[component];
    row->dc[component] = (uint16_t)(row->dc[component] + decode_dc(&row->reader, lookup));
    const unsigned steps =
        side == 1 ? walk_block(&row->reader, lookup, 1) : decode_coefficients(&row->reader, lookup, slot->coefficients);
    if (steps == 1) {
        fill_block((int16_t)row->dc[component], row->quantisers[component][0], to, row->stride[component], side);
        return;
    }
    slot->coefficients[0] = (int16_t)row->dc[component];
    row->spares--;
    const int kind = steps > FEW;
    struct waiting *waiting = &row->waiting[component][kind];
    waiting->slots[waiting->count] = slot;
    waiting->to[waiting->count++] = to;
    if (waiting->count == BLOCKS)
        transform_waiting(row, component, kind);
}

void IN_SET(jpeg_decode_row)(const struct jpeg_index *index, int number, uint8_t *planes)
{
    const struct jpeg_layout *layout = &index->layout;
    struct row row = {.reader.data = index->data, .spares = SLOTS};
    uint8_t *blocks[JPEG_MCU_BLOCKS_MAX]; /* where those of the next MCU go */
    int count = 0;
    for (int i = 0; i < layout->component_count; i++) {
        const struct jpeg_component *component = &layout->components[i];
        row.quantisers[i] = layout->tables.quantisers[component->quantiser];
        row.side[i] = component->side;
        row.stride[i] = jpeg_plane_stride(component);
        row.dc[i] = index->rows[number].dc[i];
        for (int y = 0; y < component->vertical; y++, planes += (size_t)component->side * row.stride[i])
            for (int x = 0; x < component->horizontal; x++)
                blocks[count++] = planes + (size_t)x * (size_t)component->side;
    }
    for (int i = 0; i < SLOTS; i++)
        row.spare[i] = (uint8_t)i;
    seek(&row.reader, index->rows[number].bit);
    const int64_t first = (int64_t)number * layout->mcus_across;
    for (int64_t x = 0; x < layout->mcus_across; x++) {
        if (x > 0 && layout->restart_interval > 0 && (first + x) % layout->restart_interval == 0) {
            seek(&row.reader, (uint64_t)index->segments[(first + x) / layout->restart_interval] * 8);
            memset(row.dc, 0, sizeof row.dc);
        }
        for (int i = 0; i < count; i++) {
            const int component = layout->mcu_components[i];
            decode_block(&row, index->blocks[i], component, blocks[i]);
            blocks[i] += (size_t)layout->components[component].horizontal * (size_t)row.side[component];
        }
    }
    for (int i = 0; i < layout->component_count; i++)
        for (int kind = 0; kind < KINDS; kind++)
            transform_waiting(&row, i, kind);
}
