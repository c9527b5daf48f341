/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of decode.c and index.c.
 * The decoder on the device: its memory, its tables, and the order of its stages. */
#include "base/round.h"
#include "jpeg/decode.cuh"
#include "jpeg/lookup.h"

struct loaded {
    size_t header_at, firsts_at, starts_at, bytes_at; /* in the data */
    int tables[2][JPEG_TABLES]; /* the first entry of each table, of DC and of AC; -1 if no component uses it */
    size_t segments, size;      /* the scan's restart segments; its bytes without stuffing and restart markers */
    struct scan scan;           /* without addresses */
    bool is_unsupported;        /* the CPU has to decode the file */
};

namespace
{
constexpr size_t alignment = 256;

/* What comes before the tables of a picture; then come its segments and bytes. One copy takes all to the device. */
struct header {
    uint16_t quantisers[JPEG_TABLES][JPEG_BLOCK]; /* column by column */
};
static_assert(sizeof(struct header) % 16 == 0, "quantisers and tables are read in words of 16 bytes");

constexpr size_t padding = 64; /* after the data: the last walk reads up to 16 bytes of it */

/* The entries of HUFFMAN's table for longer codes: one for each 16-bit word that begins with such a code. */
size_t longer_entries(const struct jpeg_huffman *huffman)
{
    struct jpeg_code_order codes;
    jpeg_order_codes(&codes, huffman);
    return round_up(codes.ends[longest_code] - codes.ends[look_bits], 1 << more_bits);
}

/* Fill TABLE, whose codes are those of a prefix code: jpeg_layout_for_reading has checked them. */
void make_table(const struct jpeg_huffman *huffman, bool is_dc, uint16_t *table)
{
    constexpr uint32_t first = 1 << look_bits, more = 1 << more_bits;
    uint16_t *entry = table, *const last = table + first + longer_entries(huffman);
    uint32_t symbol = 0;
    for (uint32_t length = 1; length <= longest_code; length++) {
        for (int i = 0; i < huffman->counts[length]; i++, symbol++)
            for (int k = 1 << ((length <= look_bits ? look_bits : longest_code) - length); k > 0; k--)
                *entry++ = huffman_entry(huffman->symbols[symbol], length, is_dc);
        if (length == look_bits) {
            for (uint16_t *more_at = table + first; more_at < last; more_at += more)
                *entry++ = (uint16_t)((more_at - table) >> more_bits << 5);
            while (entry < table + first)
                *entry++ = (uint16_t)bad_entry;
        }
    }
    while (entry < last)
        *entry++ = (uint16_t)bad_entry;
}

/* The index of the first entry of a table, which is appended to the scan's tables at its first use. */
uint16_t append_table(const struct jpeg_huffman *huffman, int *table, struct scan *scan)
{
    if (*table < 0) {
        *table = (int)scan->table_entries;
        scan->table_entries += (1 << look_bits) + (uint32_t)longer_entries(huffman);
    }
    return (uint16_t)*table;
}

/* Append the tables of all components, each once, and say which ones the blocks of an MCU use. */
void append_tables(const struct jpeg_layout *layout, struct loaded *loaded)
{
    struct scan *scan = &loaded->scan;
    memset(loaded->tables, -1, sizeof loaded->tables);
    for (int i = 0; i < layout->mcu_blocks; i++) {
        const struct jpeg_component *from = &layout->components[layout->mcu_components[i]];
        scan->dc[i] = append_table(&layout->tables.dc[from->dc], &loaded->tables[0][from->dc], scan);
        scan->ac[i] = append_table(&layout->tables.ac[from->ac], &loaded->tables[1][from->ac], scan);
    }
}

/* Number the subsequences of all segments. Returns false if a segment is empty, or if there are too many bytes. */
bool number_subsequences(struct loaded *loaded, uint32_t *starts, uint32_t *firsts)
{
    const uint32_t bytes = subsequence_bits / 8;
    uint32_t count = 0;
    if (loaded->size >= size_t{1} << 28)
        return false;
    starts[loaded->segments] = (uint32_t)loaded->size;
    for (size_t i = 0; i < loaded->segments; i++) {
        if (starts[i + 1] <= starts[i])
            return false;
        firsts[i] = count;
        count += (starts[i + 1] - starts[i] + bytes - 1) / bytes;
    }
    firsts[loaded->segments] = count;
    loaded->scan.segment_count = (uint32_t)loaded->segments;
    loaded->scan.subsequences = count;
    return true;
}

/* libjpeg-turbo interpolates, but not across two samples or fewer, not to four times as many, and not in a picture of
 * an eighth. */
enum upsampling choose_upsampling(const struct jpeg_layout *layout)
{
    const struct jpeg_component *chroma = &layout->components[layout->component_count - 1];
    const bool is_smooth = layout->side > 1, is_wide = is_smooth && chroma->width > 2;
    if (chroma->across == 2 && chroma->down < 4 && is_wide)
        return chroma->down == 2 ? BOTH : ACROSS;
    return chroma->across == 1 && chroma->down == 2 && is_smooth ? DOWN : COPIED;
}

/* Describe the picture's components, but their samples. Returns the bytes of these, one after another. */
size_t describe_components(const struct jpeg_layout *layout, struct picture *picture)
{
    size_t bytes = 0;
    int first = 0;
    for (int i = 0; i < layout->component_count; i++) {
        const struct jpeg_component *from = &layout->components[i];
        struct component *component = &picture->components[i];
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

/* Number the tiles of the inverse DCT. */
void number_tiles(struct picture *picture)
{
    for (int i = 0; i < JPEG_COMPONENTS_MAX; i++) {
        const struct component *component = &picture->components[i];
        picture->tiles.first[i] = i < picture->count ? picture->transform_tiles : UINT32_MAX;
        if (i >= picture->count || component->side < JPEG_SIDE)
            continue;
        picture->tiles.across[i] = blocks_of((size_t)component->blocks_across, tile_blocks);
        picture->transform_tiles += picture->tiles.across[i] * (uint32_t)component->blocks_down;
    }
}

/* Describe the picture of INPUT, but its memory. Returns the bytes of its components' samples. */
size_t describe_picture(const struct jpeg_input *input, const struct loaded *loaded, struct picture *picture)
{
    const struct jpeg_layout *layout = input->layout;
    memset(picture, 0, sizeof *picture);
    if (loaded->is_unsupported)
        return 0;
    picture->scan = loaded->scan;
    picture->pixels = input->samples;
    picture->plane = input->plane;
    picture->count = layout->component_count;
    picture->width = layout->width;
    picture->height = layout->height;
    picture->upsampling = choose_upsampling(layout);
    picture->luma_blocks = layout->components[0].horizontal * layout->components[0].vertical;
    picture->mcus = (uint32_t)layout->mcus_across * (uint32_t)layout->mcus_down;
    picture->mcus_across = (uint32_t)layout->mcus_across;
    picture->mcu_blocks = (uint32_t)layout->mcu_blocks;
    picture->segment_mcus = (uint32_t)layout->restart_interval;
    const size_t bytes = describe_components(layout, picture);
    number_tiles(picture);
    picture->walk_blocks = blocks_of(picture->scan.subsequences, walk_threads);
    picture->dc_tiles = blocks_of(picture->mcus, tile_mcus);
    picture->colour_tiles = colour_tiles_across(layout->width) * blocks_of((size_t)layout->height, colour_height);
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

/* Give out the memory of all pictures. The arrays that must begin with 0 come first: damaged data need not reach all
 * blocks. Returns their bytes. */
size_t take_walks(struct parts *parts, struct picture *pictures, size_t count)
{
    uint32_t *is_bad;
    parts->take(&is_bad, count);
    for (size_t i = 0; i < count; i++) {
        pictures[i].walk.is_bad = is_bad + i;
        parts->take(&pictures[i].walk.dc, pictures[i].scan.blocks);
    }
    const size_t zeroed = parts->used;
    for (size_t i = 0; i < count; i++) {
        struct walk *walk = &pictures[i].walk;
        const size_t subsequences = pictures[i].scan.subsequences, blocks = pictures[i].walk_blocks;
        parts->take(&walk->in, subsequences);
        parts->take(&walk->out, subsequences);
        parts->take(&walk->counts, subsequences);
        parts->take(&walk->blocks, subsequences);
        parts->take(&walk->totals, blocks);
        parts->take(&walk->edges, blocks * walk_launches);
        parts->take(&walk->dc_totals, pictures[i].dc_tiles);
    }
    return zeroed;
}

/* Describe all pictures in the data. Returns the bytes of the components' samples, and in *BLOCKS the blocks of all. */
size_t describe_all(struct decoder *decoder, size_t *blocks)
{
    struct picture *pictures = (struct picture *)decoder->data.bytes;
    size_t samples = 0;
    *blocks = 0;
    for (size_t i = 0; i < decoder->count; i++) {
        const size_t bytes = describe_picture(&decoder->inputs[i], &decoder->loaded[i], &pictures[i]);
        for (int k = 0; k < pictures[i].count; k++)
            pictures[i].components[k].samples += samples; /* an offset, as yet */
        samples += bytes;
        *blocks += pictures[i].scan.blocks;
    }
    return samples;
}

/* Set the addresses on the device that the pictures in the data have. */
void set_addresses(struct decoder *decoder)
{
    struct picture *pictures = (struct picture *)decoder->data.bytes;
    int16_t *coefficients = (int16_t *)decoder->coefficients.bytes;
    for (size_t i = 0; i < decoder->count; i++) {
        struct picture *picture = &pictures[i];
        const struct loaded *loaded = &decoder->loaded[i];
        const uint8_t *data = decoder->upload.bytes;
        const struct header *header = (const struct header *)(data + loaded->header_at);
        picture->quantisers = header->quantisers[0];
        picture->scan.tables = (const uint16_t *)(header + 1);
        picture->scan.firsts = (const uint32_t *)(data + loaded->firsts_at);
        picture->scan.starts = (const uint32_t *)(data + loaded->starts_at);
        picture->scan.words = (const uint32_t *)(data + loaded->bytes_at);
        picture->walk.coefficients = coefficients;
        coefficients += (size_t)picture->scan.blocks * JPEG_BLOCK;
        for (int k = 0; k < picture->count; k++)
            picture->components[k].samples = decoder->samples.bytes + (size_t)picture->components[k].samples;
    }
}

/* Queue all stages. WORK has as many bytes that begin with 0. */
bool queue(struct device_jpeg *jpeg, const struct pictures *pictures, size_t zeroed, size_t coefficients,
           struct error *error)
{
    struct decoder *decoder = &jpeg->decoder;
    struct device *device = jpeg->device;
    return device_upload(device, decoder->upload.bytes, decoder->data.bytes, decoder->size, error) &&
           device_fill(device, decoder->work.bytes, 0, zeroed, error) &&
           device_fill(device, decoder->coefficients.bytes, 0, coefficients, error) &&
           decode_walk(pictures, device, error) && decode_sum_dc(pictures, device, error) &&
           decode_transform(pictures, device, error) && decode_colour(pictures, device, error) &&
           device_download(device, decoder->result.bytes, decoder->work.bytes, pictures->count * sizeof(uint32_t),
                           error);
}
} // namespace

bool device_jpeg_reserve(struct device_jpeg *jpeg, const struct jpeg_input *inputs, size_t count, struct error *error)
{
    struct decoder *decoder = &jpeg->decoder;
    struct loaded *all = (struct loaded *)realloc(decoder->loaded, count * sizeof *all);
    if (!all)
        return error_no_memory(error, "%zu pictures", count);
    decoder->loaded = all;
    decoder->inputs = inputs;
    decoder->count = count;
    decoder->size = round_up(count * sizeof(struct picture), alignment);
    for (size_t i = 0; i < count; i++) {
        struct loaded *loaded = &all[i];
        memset(loaded, 0, sizeof *loaded);
        loaded->segments = jpeg_count_segments(inputs[i].layout, &inputs[i].scan);
        append_tables(inputs[i].layout, loaded);
        loaded->is_unsupported = loaded->segments == 0 || loaded->scan.table_entries > tables_max;
        if (loaded->is_unsupported)
            continue;
        loaded->header_at = decoder->size;
        loaded->firsts_at = loaded->header_at + sizeof(struct header) + loaded->scan.table_entries * sizeof(uint16_t);
        loaded->starts_at = loaded->firsts_at + (loaded->segments + 1) * sizeof(uint32_t);
        loaded->bytes_at = round_up(loaded->starts_at + (loaded->segments + 1) * sizeof(uint32_t), 16);
        decoder->size = round_up(loaded->bytes_at + inputs[i].scan.size + padding, alignment);
    }
    return device_reserve_more(jpeg->device, &decoder->data, decoder->size, error);
}

void device_jpeg_load(struct device_jpeg *jpeg, size_t index)
{
    struct decoder *decoder = &jpeg->decoder;
    struct loaded *loaded = &decoder->loaded[index];
    const struct jpeg_input *input = &decoder->inputs[index];
    const struct jpeg_layout *layout = input->layout;
    uint8_t *data = decoder->data.bytes;
    uint32_t *starts = (uint32_t *)(data + loaded->starts_at);
    if (loaded->is_unsupported)
        return;
    loaded->is_unsupported =
        !jpeg_copy_scan(&input->scan, loaded->segments, data + loaded->bytes_at, &loaded->size, starts) ||
        !number_subsequences(loaded, starts, (uint32_t *)(data + loaded->firsts_at));
    if (loaded->is_unsupported)
        return;
    struct header *header = (struct header *)(data + loaded->header_at);
    struct scan *scan = &loaded->scan;
    const size_t mcus = (size_t)layout->mcus_across * (size_t)layout->mcus_down;
    scan->blocks = (uint32_t)(mcus * (size_t)layout->mcu_blocks);
    scan->segment_blocks = layout->restart_interval == 0 || (size_t)layout->restart_interval > mcus
                               ? scan->blocks
                               : (uint32_t)(layout->restart_interval * layout->mcu_blocks);
    scan->period = (uint32_t)jpeg_period(layout);
    uint16_t *tables = (uint16_t *)(header + 1);
    for (int i = 0; i < JPEG_TABLES; i++) {
        if (loaded->tables[0][i] >= 0)
            make_table(&layout->tables.dc[i], true, tables + loaded->tables[0][i]);
        if (loaded->tables[1][i] >= 0)
            make_table(&layout->tables.ac[i], false, tables + loaded->tables[1][i]);
    }
    for (int i = 0; i < JPEG_TABLES; i++)
        for (int j = 0; j < JPEG_BLOCK; j++)
            header->quantisers[i][j] = layout->tables.quantisers[i][j % JPEG_SIDE * JPEG_SIDE + j / JPEG_SIDE];
}

bool device_jpeg_decode(struct device_jpeg *jpeg, struct error *error)
{
    struct decoder *decoder = &jpeg->decoder;
    struct device *device = jpeg->device;
    struct picture *host = (struct picture *)decoder->data.bytes;
    size_t blocks;
    const size_t count = decoder->count, samples = describe_all(decoder, &blocks);
    const size_t coefficients = blocks * JPEG_BLOCK * sizeof(int16_t);
    struct parts parts = {};
    const size_t zeroed = take_walks(&parts, host, count);
    if (!device_reserve_more(device, &decoder->result, count * sizeof(uint32_t), error) ||
        !device_reserve_more(device, &decoder->upload, decoder->size, error) ||
        !device_reserve_more(device, &decoder->work, parts.used, error) ||
        !device_reserve_more(device, &decoder->coefficients, coefficients, error) ||
        !device_reserve_more(device, &decoder->samples, samples, error))
        return false;
    if (blocks == 0)
        return device_mark(device, jpeg->mark, error);
    parts.memory = decoder->work.bytes;
    parts.used = 0;
    take_walks(&parts, host, count);
    set_addresses(decoder);
    const struct pictures pictures = {host, (const struct picture *)decoder->upload.bytes, count};
    return queue(jpeg, &pictures, zeroed, coefficients, error) && device_mark(device, jpeg->mark, error);
}

bool device_jpeg_decoded(struct device_jpeg *jpeg, bool *is_decoded, struct error *error)
{
    const struct decoder *decoder = &jpeg->decoder;
    float unused;
    const bool done = device_elapsed(jpeg->device, jpeg->mark, jpeg->mark, &unused, error);
    for (size_t i = 0; i < decoder->count; i++)
        is_decoded[i] = done && !decoder->loaded[i].is_unsupported && ((const uint32_t *)decoder->result.bytes)[i] == 0;
    return done;
}
