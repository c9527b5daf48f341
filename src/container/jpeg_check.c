/* SPDX-License-Identifier: MIT
 *
 * The check of a JPEG: the segments up to the end of the image, the frame header, the sizes of Huffman tables. The
 * check also reads the headers for whoever decodes the file: no other code parses them. */
#include "container/check.h"
#include "container/other_content.h"
#include "container/report.h"

#include <string.h>

/* The maximal number of scans of a file. Encoders write about ten. A decoder goes through the whole picture for each
 * scan, and a scan may have very few bytes. Thousands of scans in a few kilobytes would keep a decoder busy for
 * minutes. */
enum { SCANS_MAX = 100 };

/* The maximal number of scans with one AC coefficient of a progressive file: the first sends all bits but 13 at most,
 * and each of the others sends one more (ITU-T T.81, G.1.1.1 and table B.3). These scans may have nearly no data: one
 * code can say that 32767 blocks have no more coefficients. */
enum { COEFFICIENT_SCANS_MAX = 1 + 13 };

/* The bits of data that a scan of arithmetic codes may lack. A flat picture needs nearly no data: a decision may take
 * about 2^-15 bits, and zeros at the end are left out (T.81, annex D). So 2^21 blocks, which are 134 Mpixel of grey,
 * need none. Each further block needs as many bits as with Huffman codes, so that a small file costs little work. */
enum { ARITHMETIC_FREE_BITS = 1 << 22 };

struct component_scans {
    bool filled;       /* one gave the DC coefficients */
    uint8_t count[64]; /* those with each AC coefficient */
};

struct jpeg_state {
    struct checked_file file;
    struct codec_info info; /* its width is 0 before the frame header */
    struct component_scans components[JPEG_COMPONENTS_IN_FRAME];
    bool is_unusual; /* the headers before the first scan have what few files have */
    unsigned last;   /* marker of the last segment */
    int scans;
    uint64_t data_bits;        /* the fewest bits of data that follow the last segment */
    struct jpeg_segment index; /* the index of the file's pictures (MPF); all zeros if there is none */
};

/* ---- Tables and other segments ---- */

/* Read one Huffman table: 4 bits of class, 4 bits of number, 16 counts of codes, SYMBOLS symbols. */
static void read_huffman_table(const uint8_t *data, size_t symbols, struct jpeg_state *state)
{
    struct jpeg_headers *headers = &state->info.jpeg;
    const unsigned class = data[0] >> 4, number = data[0] & 15;
    if (class > 1 || number >= JPEG_TABLES) {
        state->is_unusual = true;
        return;
    }
    struct jpeg_huffman *table = &(class == 0 ? headers->tables.dc : headers->tables.ac)[number];
    *table = (struct jpeg_huffman){{0}, {0}};
    memcpy(table->counts + 1, data + 1, 16);
    memcpy(table->symbols, data + 17, symbols);
    *(class == 0 ? &headers->dc : &headers->ac) |= 1U << number;
}

/* Check and read Huffman tables. stb_image 2.27 writes past its own tables if there are more than 256 symbols. */
static bool check_huffman_tables(const struct jpeg_segment *segment, struct jpeg_state *state)
{
    const uint8_t *data = segment->data;
    size_t left = segment->size;
    while (left > 0) {
        size_t symbols = 0;
        for (size_t i = 1; i < 17 && i < left; i++)
            symbols += data[i];
        if (left < 17 || symbols > 256 || left < 17 + symbols)
            return DAMAGED(state, "the Huffman tables at byte %zu are wrong", segment->at);
        if (state->scans == 0)
            read_huffman_table(data, symbols, state);
        data += 17 + symbols;
        left -= 17 + symbols;
    }
    return true;
}

/* Read a DQT segment: for each table 4 bits of precision, 4 of its number, and 64 values of 1 or 2 bytes in zigzag
 * order. Returns false if the segment is damaged. */
static bool read_quantisers(const struct jpeg_segment *segment, struct jpeg_headers *headers)
{
    static const uint8_t order[JPEG_BLOCK] = JPEG_NATURAL_ORDER;
    for (size_t at = 0; at < segment->size;) {
        const unsigned wide = segment->data[at] >> 4, number = segment->data[at] & 15;
        const size_t bytes = wide != 0 ? 2 * JPEG_BLOCK : JPEG_BLOCK;
        if (wide > 1 || number >= JPEG_TABLES || segment->size - at - 1 < bytes)
            return false;
        const uint8_t *values = segment->data + at + 1;
        for (size_t k = 0; k < JPEG_BLOCK; k++)
            headers->tables.quantisers[number][order[k]] = wide != 0 ? (uint16_t)big16(values + 2 * k) : values[k];
        headers->quantisers |= 1U << number;
        at += 1 + bytes;
    }
    return true;
}

/* Read another segment before the first scan. Returns false for what few files have. */
static bool read_other(const struct jpeg_segment *segment, struct jpeg_headers *headers)
{
    const uint8_t *data = segment->data;
    const size_t size = segment->size;
    switch (segment->marker) {
    case JPEG_MARKER_DQT:
        return read_quantisers(segment, headers);
    case JPEG_MARKER_DRI:
        headers->restart_interval = size == 2 ? (int)big16(data) : 0;
        return size == 2;
    case JPEG_MARKER_APP0:
        headers->has_jfif |= size >= 14 && memcmp(data, "JFIF", 5) == 0;
        return true;
    case JPEG_MARKER_APP14:
        if (size >= 12 && memcmp(data, "Adobe", 5) == 0) {
            headers->has_adobe = true;
            headers->adobe_transform = data[11];
        }
        return true;
    default:
        return (segment->marker > JPEG_MARKER_APP0 && segment->marker <= JPEG_MARKER_APP15) ||
               segment->marker == JPEG_MARKER_COM;
    }
}

/* ---- The frame ---- */

/* The name of the unsupported kind of JPEG that MARKER begins, or NULL (T.81, table B.1; T.87). */
static const char *name_unsupported(unsigned marker)
{
    static const char *const kinds[256] = {
        [0xc3] = "lossless JPEG",     [0xcb] = "lossless JPEG",     [0xc5] = "hierarchical JPEG",
        [0xc6] = "hierarchical JPEG", [0xc7] = "hierarchical JPEG", [0xcd] = "hierarchical JPEG",
        [0xce] = "hierarchical JPEG", [0xcf] = "hierarchical JPEG", [0xde] = "hierarchical JPEG", /* DHP */
        [0xf7] = "JPEG-LS file",
    };
    return kinds[marker];
}

static bool is_progressive(unsigned frame)
{
    return frame == JPEG_MARKER_SOF2 || frame == JPEG_MARKER_SOF10;
}

/* Check and read a frame header: bits, height, width, number of components, then 3 bytes for each component: its
 * number, its horizontal and vertical factors in 4 bits each, its table of quantisers. */
static bool check_frame(const struct jpeg_segment *segment, struct jpeg_state *state)
{
    struct codec_info *info = &state->info;
    struct jpeg_headers *headers = &info->jpeg;
    const uint8_t *data = segment->data;
    if (state->info.width > 0)
        return DAMAGED(state, "it has %s", "two frame headers");
    if (segment->size < 6 || segment->size != 6 + 3 * (size_t)data[5])
        return DAMAGED(state, "its frame header has %zu bytes", segment->size);
    const unsigned components = data[5];
    info->width = headers->width = (int)big16(data + 3);
    info->height = headers->height = (int)big16(data + 1);
    info->channels = components >= 3 ? 3 : 1;
    info->bits = data[0];
    info->cmyk = components == 4;
    info->arithmetic = segment->marker >= JPEG_MARKER_SOF9;
    if (info->bits != 8)
        return REFUSE(state, "is a JPEG of %d bits per sample, and only 8 are read; save it again with 8 bits",
                      info->bits);
    if (info->height == 0)
        return REFUSE(state, "the JPEG file gives its height after the picture, which is not read; save it again");
    if (info->width == 0)
        return DAMAGED(state, "it claims %d pixels per row", 0);
    if (components == 2)
        return REFUSE(state, "is a JPEG of %u channels, which is not read; save it again as grey or RGB", components);
    if (components != 1 && components != 3 && components != 4)
        return DAMAGED(state, "it claims %u channels", components);
    headers->frame = segment->marker;
    headers->component_count = (int)components;
    for (unsigned i = 0; i < components; i++) {
        const uint8_t *of = data + 6 + 3 * (size_t)i;
        headers->components[i] = (struct jpeg_frame_component){
            .id = of[0], .horizontal = of[1] >> 4, .vertical = of[1] & 15, .quantiser = of[2]};
    }
    info->chroma_subsampling = jpeg_chroma_subsampling(headers);
    return true;
}

/* ---- Scans ---- */

/* The blocks of SIZE pixels of a component, whose factor is FACTOR and the largest is MAX (ITU-T T.81, A.1.1 and
 * A.2.2). */
static uint64_t count_frame_blocks(int64_t size, unsigned factor, unsigned max)
{
    const uint64_t samples = ((uint64_t)size * factor + max - 1) / max;
    return (samples + 7) / 8;
}

/* The blocks of COMPONENT in a scan. A scan of several components has some more, to fill the last units. */
static uint64_t count_component_blocks(const struct jpeg_frame_component *component, const struct jpeg_headers *headers)
{
    unsigned horizontal = 1, vertical = 1;
    for (int i = 0; i < headers->component_count; i++) {
        const struct jpeg_frame_component *other = &headers->components[i];
        horizontal = other->horizontal > horizontal ? other->horizontal : horizontal;
        vertical = other->vertical > vertical ? other->vertical : vertical;
    }
    return count_frame_blocks(headers->width, component->horizontal, horizontal) *
           count_frame_blocks(headers->height, component->vertical, vertical);
}

/* The index in the frame of the component with number ID, or -1. Some writers give all the same number, so a second one
 * in a scan is the next with that number. TAKEN has a bit for each component that the scan has already. */
static int find_component(const struct jpeg_headers *headers, unsigned id, unsigned *taken)
{
    for (int i = 0; i < headers->component_count; i++)
        if (headers->components[i].id == id && !(*taken >> i & 1)) {
            *taken |= 1u << i;
            return i;
        }
    return -1;
}

/* Read the header of the first scan, which has SIZE bytes. */
static void read_first_scan(const uint8_t *data, size_t size, struct jpeg_state *state)
{
    struct jpeg_headers *headers = &state->info.jpeg;
    const size_t count = (size_t)headers->component_count;
    headers->has_quantisers = count == 1 || count == 3;
    state->is_unusual |= size != 4 + 2 * count || data[0] != count || data[1 + 2 * count] != 0 ||
                         data[2 + 2 * count] != JPEG_BLOCK - 1 || data[3 + 2 * count] != 0;
    for (size_t i = 0; i < count; i++) {
        struct jpeg_frame_component *component = &headers->components[i];
        headers->has_quantisers &=
            component->quantiser < JPEG_TABLES && headers->quantisers >> component->quantiser & 1;
        if (state->is_unusual)
            continue;
        state->is_unusual |= data[1 + 2 * i] != component->id;
        component->dc = data[2 + 2 * i] >> 4;
        component->ac = data[2 + 2 * i] & 15;
    }
}

/* Check the header of a scan: number of components, 2 bytes for each, the first and the last coefficient, bits. The
 * codecs find all other errors.
 *
 * A Huffman code has at least one bit. In a progressive file, the DC coefficient of each block has a code or one bit.
 * In another file, each block has a code for DC and at least one for AC. */
static bool check_scan(const struct jpeg_segment *segment, struct jpeg_state *state)
{
    const struct jpeg_headers *headers = &state->info.jpeg;
    const uint8_t *data = segment->data;
    const size_t count = segment->size > 0 ? data[0] : 0;
    unsigned taken = 0;
    if (state->scans++ == 0)
        read_first_scan(data, segment->size, state);
    if (state->scans > SCANS_MAX)
        return DAMAGED(state, "it has more than %d scans", SCANS_MAX);
    if (segment->size < 4 + 2 * count)
        return true;
    const unsigned first = data[1 + 2 * count], last = data[2 + 2 * count];
    const unsigned block_bits = !is_progressive(headers->frame) ? 2 : first == 0 ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        const int number = find_component(headers, data[1 + 2 * i], &taken);
        if (number < 0)
            continue;
        struct component_scans *scans = &state->components[number];
        state->data_bits += block_bits * count_component_blocks(&headers->components[number], headers);
        scans->filled |= block_bits > 0;
        for (unsigned k = first; block_bits == 0 && k <= last && k < 64; k++)
            if (++scans->count[k] > COEFFICIENT_SCANS_MAX)
                return DAMAGED(state, "it has more than %d scans with one coefficient", COEFFICIENT_SCANS_MAX);
    }
    return true;
}

/* Note the SIZE bytes between a segment and the next, from byte AT on: they are the data of a scan, or nothing. */
static void record_data(size_t at, size_t size, struct jpeg_state *state)
{
    struct codec_info *info = &state->info;
    info->data += size;
    info->is_too_short |= 8 * (uint64_t)size + (info->arithmetic ? ARITHMETIC_FREE_BITS : 0) < state->data_bits;
    state->data_bits = 0;
    state->is_unusual |= state->scans == 0 && size > 0;
    info->jpeg.scan = at;
    info->jpeg.scan_size = size;
}

/* Check and read one complete segment. */
static bool check_segment(const struct jpeg_segment *segment, struct jpeg_state *state)
{
    const char *unsupported = name_unsupported(segment->marker);
    if (unsupported != NULL)
        return REFUSE(state, "is a %s, which is not read; save it again as a plain JPEG or PNG", unsupported);
    state->last = segment->marker;
    state->info.other_content |= container_other_content_of(segment);
    if (state->index.data == NULL && container_is_picture_index(segment))
        state->index = *segment;
    if (segment->marker == JPEG_MARKER_DHT)
        return check_huffman_tables(segment, state);
    if (jpeg_is_frame(segment->marker))
        return check_frame(segment, state);
    if (segment->marker == JPEG_MARKER_SOS)
        return check_scan(segment, state);
    if (state->scans == 0)
        state->is_unusual |= !read_other(segment, &state->info.jpeg);
    return true;
}

/* Report a step that found no segment. */
static bool report_jpeg_step(enum jpeg_step step, const struct jpeg_walk *walk, const struct jpeg_segment *segment,
                             const struct jpeg_state *state)
{
    if (step == JPEG_STEP_NOT_ALLOWED)
        return DAMAGED(state, "marker %02X at byte %zu is not allowed there", segment->marker, segment->at);
    if (step == JPEG_STEP_TOO_SHORT)
        return DAMAGED(state, "segment %02X at byte %zu claims %zu bytes", segment->marker, segment->at, segment->size);
    if (step == JPEG_STEP_TRUNCATED)
        return TRUNCATED(state, "segment %02X at byte %zu claims %zu bytes and %zu are left", segment->marker,
                         segment->at, segment->size, segment->left);
    return TRUNCATED(state, "it ends after %zu bytes without an end marker", walk->size);
}

bool jpeg_check(const uint8_t *bytes, size_t size, const char *name, struct codec_info *info, struct error *error)
{
    struct jpeg_state state = {.file = {"JPEG", name, error}};
    struct jpeg_walk walk = jpeg_walk_begin(bytes, size);
    struct jpeg_segment segment;
    enum jpeg_step step;
    size_t from = walk.at;
    while ((step = jpeg_walk_next(&walk, &segment)) == JPEG_STEP_SEGMENT) {
        record_data(from, segment.at - from, &state);
        if (!check_segment(&segment, &state))
            return false;
        from = walk.at;
    }
    if (step != JPEG_STEP_END)
        return report_jpeg_step(step, &walk, &segment, &state);
    struct codec_info *found = &state.info;
    if (found->width == 0 || state.scans == 0)
        return DAMAGED(&state, "it has no %s", state.scans > 0 ? "frame header" : "picture");
    record_data(from, segment.at - from, &state);
    for (int i = 0; i < found->jpeg.component_count; i++)
        found->is_too_short |= !state.components[i].filled;
    found->progressive = is_progressive(found->jpeg.frame) || state.scans > 1;
    found->jpeg.is_sequential =
        !state.is_unusual && !found->progressive && !found->arithmetic && state.last == JPEG_MARKER_SOS;
    found->other_content |= container_other_content_behind(bytes, size, size - segment.left, &state.index);
    *info = *found;
    return true;
}
