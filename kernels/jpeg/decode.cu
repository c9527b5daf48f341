/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of src/jpeg/decode.c and index.c.
 * The decoder on the device: its memory, its tables, and the order of its stages. */
#include "base/round.h"
#include "jpeg/lookup.h"
#include "kernels/jpeg/decode.cuh"

namespace
{
constexpr size_t alignment = 256;

/* The beginning of the page-locked memory. The segments and the bytes follow, and one copy takes all to the device. */
struct header {
    struct huffman_table tables[max_tables];
    uint16_t quantisers[JPEG_TABLES][JPEG_BLOCK]; /* column by column */
};
static_assert(sizeof(struct header) % 16 == 0, "quantisers and tables are read in words of 16 bytes");

constexpr size_t padding = 64; /* after the data: the last walk reads up to 16 bytes of it */

/* Fill TABLE, whose codes are those of a prefix code: jpeg_layout_for_reading has checked them. */
void make_table(const struct jpeg_huffman *huffman, bool is_dc, struct huffman_table *table)
{
    struct jpeg_code_order codes;
    jpeg_order_codes(&codes, huffman);
    memset(table, 0, sizeof *table);
    table->is_dc = is_dc;
    memcpy(table->symbols, huffman->symbols, sizeof table->symbols);
    for (uint32_t i = 0; i < 1u << look_bits; i++) {
        int length;
        const int symbol = jpeg_find_symbol(&codes, (uint64_t)i << (64 - look_bits), &length);
        if (length <= look_bits)
            table->lookup[i] = huffman_entry((uint32_t)symbol, (uint32_t)length, is_dc);
    }
    for (int i = 0; i < longer_codes; i++) {
        table->limit[i] = codes.ends[look_bits + 1 + i];
        table->offset[i] = codes.offsets[look_bits + 1 + i];
    }
}

/* The number of table NUMBER among TABLES, where it is made at its first use. */
uint8_t number_table(const struct jpeg_huffman *huffman, bool is_dc, int *number, struct huffman_table *tables,
                     struct scan *scan)
{
    if (*number < 0) {
        *number = (int)scan->table_count;
        make_table(huffman, is_dc, &tables[scan->table_count++]);
    }
    return (uint8_t)*number;
}

/* Make the tables of all components, each once, and say which ones the blocks of an MCU use. */
void make_tables(const struct jpeg_layout *layout, struct huffman_table *tables, struct scan *scan)
{
    int numbers[2][JPEG_TABLES];
    memset(numbers, -1, sizeof numbers);
    for (int i = 0; i < layout->mcu_blocks; i++) {
        const struct jpeg_component *from = &layout->components[layout->mcu_components[i]];
        scan->dc[i] = number_table(&layout->tables.dc[from->dc], true, &numbers[0][from->dc], tables, scan);
        scan->ac[i] = number_table(&layout->tables.ac[from->ac], false, &numbers[1][from->ac], tables, scan);
    }
}

/* Number the subsequences of all segments. Returns false if a segment is empty, or if there are too many bytes. */
bool number_subsequences(const struct decoder *decoder, uint32_t *starts, uint32_t *firsts, struct scan *scan)
{
    const uint32_t bytes = subsequence_bits / 8;
    uint32_t count = 0;
    if (decoder->size >= size_t{1} << 28)
        return false;
    starts[decoder->segments] = (uint32_t)decoder->size;
    for (size_t i = 0; i < decoder->segments; i++) {
        if (starts[i + 1] <= starts[i])
            return false;
        firsts[i] = count;
        count += (starts[i + 1] - starts[i] + bytes - 1) / bytes;
    }
    firsts[decoder->segments] = count;
    scan->segment_count = (uint32_t)decoder->segments;
    scan->subsequences = count;
    return true;
}

/* Describe the picture. Its component's samples are numbered from 0 on. Returns the bytes of all of them. */
size_t describe_picture(const struct jpeg_layout *layout, const uint16_t *quantisers, struct jpeg_decode_launch *launch)
{
    size_t bytes = 0;
    int first = 0;
    memset(launch, 0, sizeof *launch);
    launch->count = layout->component_count;
    launch->width = layout->width;
    launch->height = layout->height;
    launch->is_smooth = layout->side > 1;
    launch->mcus_across = (uint32_t)layout->mcus_across;
    launch->mcu_blocks = (uint32_t)layout->mcu_blocks;
    launch->segment_mcus = (uint32_t)layout->restart_interval;
    launch->quantisers = quantisers;
    for (int i = 0; i < layout->component_count; i++) {
        const struct jpeg_component *from = &layout->components[i];
        struct component *component = &launch->components[i];
        component->samples = (uint8_t *)bytes;
        component->pitch = round_up(jpeg_plane_stride(from), 128);
        component->width = from->width;
        component->height = from->height;
        component->blocks_across = from->blocks_across;
        component->blocks_down = from->blocks_down;
        component->side = from->side;
        component->across = from->across / 2; /* log2 of 1, 2 or 4 */
        component->down = from->down / 2;
        component->horizontal = from->horizontal == 4 ? 2 : from->horizontal - 1;
        component->vertical = from->vertical - 1;
        component->first = first;
        component->quantiser = from->quantiser;
        first += from->horizontal * from->vertical;
        bytes += component->pitch * (size_t)from->blocks_down * (size_t)from->side;
    }
    return bytes;
}

/* Give out parts of MEMORY one after another; where it is NULL, count only. */
struct parts {
    uint8_t *memory;
    size_t used;

    template <typename T>
    void take(T **part, size_t count)
    {
        *part = (T *)(memory + used);
        used += round_up(count * sizeof(T), alignment);
    }
};

/* The arrays that must begin with 0 come first, before the states: damaged data need not reach all blocks. */
void take_walk(struct parts *parts, const struct scan *scan, size_t mcus, struct walk *walk)
{
    const size_t blocks = blocks_of(scan->subsequences, walk_threads);
    parts->take(&walk->is_bad, 1);
    parts->take(&walk->dc, scan->blocks);
    parts->take(&walk->in, scan->subsequences);
    parts->take(&walk->out, scan->subsequences);
    parts->take(&walk->counts, scan->subsequences);
    parts->take(&walk->blocks, scan->subsequences);
    parts->take(&walk->totals, blocks);
    parts->take(&walk->edges, blocks * walk_launches);
    parts->take(&walk->dc_totals, blocks_of(mcus, tile_mcus));
}

/* Reserve the device's memory. */
bool reserve(struct device_jpeg *jpeg, const struct scan *scan, size_t mcus, size_t upload, size_t samples,
             struct walk *walk, struct error *error)
{
    struct decoder *decoder = &jpeg->decoder;
    struct parts parts = {};
    take_walk(&parts, scan, mcus, walk);
    if (!device_reserve_more(jpeg->device, &decoder->upload, upload, error) ||
        !device_reserve_more(jpeg->device, &decoder->work, parts.used, error) ||
        !device_reserve_more(jpeg->device, &decoder->coefficients, (size_t)scan->blocks * JPEG_BLOCK * sizeof(int16_t),
                             error) ||
        !device_reserve_more(jpeg->device, &decoder->samples, samples, error))
        return false;
    parts.memory = decoder->work.bytes;
    parts.used = 0;
    take_walk(&parts, scan, mcus, walk);
    walk->coefficients = (int16_t *)decoder->coefficients.bytes;
    return true;
}

/* Queue all stages. */
bool queue(struct device_jpeg *jpeg, const struct jpeg_layout *layout, const struct scan *scan, const struct walk *walk,
           const struct jpeg_decode_launch *launch, size_t upload, uint8_t *pixels, struct error *error)
{
    struct decoder *decoder = &jpeg->decoder;
    const cudaStream_t stream = device_stream(jpeg->device);
    const uint32_t mcus = scan->blocks / (uint32_t)layout->mcu_blocks;
    return device_upload(jpeg->device, decoder->upload.bytes, decoder->data.bytes, upload, error) &&
           device_fill(jpeg->device, walk->is_bad, 0, (size_t)((uint8_t *)walk->in - (uint8_t *)walk->is_bad), error) &&
           device_fill(jpeg->device, walk->coefficients, 0, (size_t)scan->blocks * JPEG_BLOCK * sizeof(int16_t),
                       error) &&
           decode_walk(scan, walk, stream, error) && decode_sum_dc(walk, mcus, layout, stream, error) &&
           decode_transform(launch, walk, stream, error) && decode_colour(launch, pixels, stream, error) &&
           device_download(jpeg->device, decoder->result.bytes, walk->is_bad, sizeof *walk->is_bad, error);
}
} // namespace

bool device_jpeg_load(struct device_jpeg *jpeg, const struct jpeg_layout *layout, const struct jpeg_scan *scan,
                      struct error *error)
{
    struct decoder *decoder = &jpeg->decoder;
    const size_t segments = decoder->segments = jpeg_count_segments(layout, scan);
    decoder->is_unsupported = segments == 0;
    if (decoder->is_unsupported)
        return true;
    decoder->starts_at = sizeof(struct header) + (segments + 1) * sizeof(uint32_t);
    decoder->bytes_at = round_up(decoder->starts_at + (segments + 1) * sizeof(uint32_t), 16);
    if (!device_reserve_more(jpeg->device, &decoder->data, decoder->bytes_at + scan->size + padding, error))
        return false;
    uint8_t *bytes = decoder->data.bytes;
    decoder->is_unsupported = !jpeg_copy_scan(scan, segments, bytes + decoder->bytes_at, &decoder->size,
                                              (uint32_t *)(bytes + decoder->starts_at));
    return true;
}

bool device_jpeg_decode(struct device_jpeg *jpeg, const struct jpeg_layout *layout, uint8_t *samples,
                        struct error *error)
{
    struct decoder *decoder = &jpeg->decoder;
    if (decoder->is_unsupported)
        return true;
    uint8_t *bytes = decoder->data.bytes;
    struct header *header = (struct header *)bytes;
    const size_t mcus = (size_t)layout->mcus_across * (size_t)layout->mcus_down;
    const size_t upload = decoder->bytes_at + decoder->size + padding;
    struct scan scan = {};
    scan.blocks = (uint32_t)(mcus * (size_t)layout->mcu_blocks);
    scan.segment_blocks = layout->restart_interval == 0 || (size_t)layout->restart_interval > mcus
                              ? scan.blocks
                              : (uint32_t)(layout->restart_interval * layout->mcu_blocks);
    make_tables(layout, header->tables, &scan);
    decoder->is_unsupported = !number_subsequences(decoder, (uint32_t *)(bytes + decoder->starts_at),
                                                   (uint32_t *)(bytes + sizeof *header), &scan);
    if (decoder->is_unsupported)
        return true;
    scan.period = (uint32_t)jpeg_period(layout);
    for (int i = 0; i < JPEG_TABLES; i++)
        for (int j = 0; j < JPEG_BLOCK; j++)
            header->quantisers[i][j] = layout->tables.quantisers[i][j % JPEG_SIDE * JPEG_SIDE + j / JPEG_SIDE];

    struct walk walk = {};
    struct jpeg_decode_launch launch;
    const size_t sample_bytes = describe_picture(layout, NULL, &launch);
    if (!device_reserve_more(jpeg->device, &decoder->result, sizeof *walk.is_bad, error) ||
        !reserve(jpeg, &scan, mcus, upload, sample_bytes, &walk, error))
        return false;
    const uint8_t *on_device = decoder->upload.bytes;
    for (int i = 0; i < launch.count; i++)
        launch.components[i].samples = decoder->samples.bytes + (size_t)launch.components[i].samples;
    launch.quantisers = ((const struct header *)on_device)->quantisers[0];
    launch.is_bad = walk.is_bad;
    scan.tables = ((const struct header *)on_device)->tables;
    scan.firsts = (const uint32_t *)(on_device + sizeof *header);
    scan.starts = (const uint32_t *)(on_device + decoder->starts_at);
    scan.words = (const uint32_t *)(on_device + decoder->bytes_at);
    return queue(jpeg, layout, &scan, &walk, &launch, upload, samples, error);
}

bool device_jpeg_decoded(struct device_jpeg *jpeg, bool *is_decoded, struct error *error)
{
    *is_decoded = false;
    if (!device_wait(jpeg->device, error))
        return false;
    *is_decoded = !jpeg->decoder.is_unsupported && *(const uint32_t *)jpeg->decoder.result.bytes == 0;
    return true;
}
