/* SPDX-License-Identifier: MIT
 *
 * The check of a JPEG: the segments up to the end of the image, the frame header, the sizes of Huffman tables. */
#include "container/check.h"
#include "container/extras.h"

/* The most scans of a file. Encoders write about ten. A decoder goes through the whole picture for each scan, and a
 * scan may have very few bytes. Thousands of scans in a few kilobytes would keep a decoder busy for minutes. */
enum { SCANS_MOST = 100 };

/* The most scans with one AC coefficient of a progressive file: the first sends all bits but 13 at most, and each of the
 * others sends one more (ITU-T T.81, G.1.1.1 and table B.3). These scans may have nearly no data: one code can say that
 * 32767 blocks have no more coefficients. */
enum { COEFFICIENT_SCANS_MOST = 1 + 13 };

/* A component of the frame. */
struct jpeg_component {
    unsigned id, horizontal, vertical; /* sampling factors */
    bool filled;                       /* a scan gave its DC coefficients */
    uint8_t scans[64];                 /* with each AC coefficient */
};

/* The state of the check of a JPEG. */
struct jpeg_state {
    const char *name;
    struct error *error;
    struct container_info info; /* width 0: no frame header yet */
    struct jpeg_component components[4];
    unsigned count; /* of components */
    bool progressive;
    int scans;
    unsigned extras;           /* in segments; the frame header fills INFO anew */
    size_t data;               /* bytes of the scans */
    uint64_t data_bits;        /* the fewest bits of data that follow the last segment */
    struct jpeg_segment index; /* of several pictures; all zeros: there is none */
};

/* Report that the file is damaged. */
#define DAMAGED(state, format, ...)                                                                                    \
    error_about((state)->error, ERROR_WORK, (state)->name, "the JPEG file is damaged: " format "; get an intact copy", \
                __VA_ARGS__)

/* Why a kind of compression is not read, or NULL if it is read. The last hexadecimal digit of the frame's marker is its
 * kind. */
static const char *name_unsupported(unsigned marker)
{
    static const char *const kinds[16] = {
        [3] = "lossless",          [5] = "hierarchical",      [6] = "hierarchical",      [7] = "hierarchical",
        [9] = "arithmetic-coded",  [10] = "arithmetic-coded", [11] = "arithmetic-coded", [13] = "arithmetic-coded",
        [14] = "arithmetic-coded", [15] = "arithmetic-coded",
    };
    return kinds[marker & 15];
}

/* The chroma subsampling of three components. Each has 3 bytes: its number, its horizontal and vertical factors in 4
 * bits each, its table. Only 1, 2 or 4 samples of brightness for one of colour are accepted. Other factors are rare and
 * hard to write. */
static struct chroma_subsampling read_chroma_subsampling(const uint8_t *components)
{
    const int horizontal = components[1] >> 4, vertical = components[1] & 15;
    if (components[4] != 0x11 || components[7] != 0x11 || (horizontal != 1 && horizontal != 2 && horizontal != 4) ||
        (vertical != 1 && vertical != 2))
        return (struct chroma_subsampling){0, 0};
    return (struct chroma_subsampling){horizontal, vertical};
}

/* Check a frame header: bits, height, width, number of components, then 3 bytes for each component. */
static bool check_frame(const struct jpeg_segment *segment, struct jpeg_state *state)
{
    const char *unsupported = name_unsupported(segment->marker);
    const uint8_t *data = segment->data;
    if (unsupported != NULL)
        return error_about(state->error, ERROR_WORK, state->name,
                           "is a JPEG of the %s kind, which is not read; save it again as a plain JPEG or PNG",
                           unsupported);
    if (state->info.width > 0)
        return DAMAGED(state, "it has %s", "two frame headers");
    if (segment->size < 6 || segment->size != 6 + 3 * (size_t)data[5])
        return DAMAGED(state, "its frame header has %zu bytes", segment->size);
    const unsigned components = data[5];
    state->info = (struct container_info){
        .width = big16(data + 3),
        .height = big16(data + 1),
        .channels = components >= 3 ? 3 : 1,
        .bits = data[0],
        .cmyk = components == 4,
    };
    if (components == 3)
        state->info.chroma_subsampling = read_chroma_subsampling(data + 6);
    if (state->info.bits != 8)
        return error_about(state->error, ERROR_WORK, state->name,
                           "is a JPEG of %d bits a sample, and only 8 are read; save it again with 8 bits",
                           state->info.bits);
    if (state->info.height == 0)
        return error_about(state->error, ERROR_WORK, state->name,
                           "the JPEG file gives its height after the picture, which is not read; save it again");
    if (state->info.width == 0)
        return DAMAGED(state, "it claims %d pixels a row", 0);
    if (components != 1 && components != 3 && components != 4)
        return DAMAGED(state, "it claims %u channels", components);
    state->count = components;
    state->progressive = segment->marker == JPEG_MARKER_SOF2;
    for (unsigned i = 0; i < components; i++)
        state->components[i] = (struct jpeg_component){
            .id = data[6 + 3 * i], .horizontal = data[7 + 3 * i] >> 4, .vertical = data[7 + 3 * i] & 15};
    return true;
}

/* ---- Scans ---- */

/* The blocks of SIZE pixels of a component, whose factor is FACTOR and the largest is MOST (ITU-T T.81, A.1.1 and
 * A.2.2). */
static uint64_t count_blocks(int64_t size, unsigned factor, unsigned most)
{
    const uint64_t samples = ((uint64_t)size * factor + most - 1) / most;
    return (samples + 7) / 8;
}

/* The blocks of COMPONENT in a scan. A scan of several components has some more, to fill the last units. */
static uint64_t count_component_blocks(const struct jpeg_component *component, const struct jpeg_state *state)
{
    unsigned horizontal = 1, vertical = 1;
    for (unsigned i = 0; i < state->count; i++) {
        const struct jpeg_component *other = &state->components[i];
        horizontal = other->horizontal > horizontal ? other->horizontal : horizontal;
        vertical = other->vertical > vertical ? other->vertical : vertical;
    }
    return count_blocks(state->info.width, component->horizontal, horizontal) *
           count_blocks(state->info.height, component->vertical, vertical);
}

/* The component of a scan with number ID, or NULL. Some writers give all the same number, so a second one in a scan is
 * the next with that number. TAKEN has a bit for each component that the scan has already. */
static struct jpeg_component *find_component(struct jpeg_state *state, unsigned id, unsigned *taken)
{
    for (unsigned i = 0; i < state->count; i++)
        if (state->components[i].id == id && !(*taken >> i & 1)) {
            *taken |= 1u << i;
            return &state->components[i];
        }
    return NULL;
}

/* Check the header of a scan: number of components, 2 bytes for each, the first and the last coefficient, bits. What is
 * wrong with it otherwise is left to the codecs.
 *
 * A Huffman code has at least one bit. In a progressive file, the DC coefficient of each block has a code or one bit. In
 * another file, each block has a code for DC and at least one for AC. */
static bool check_scan(const struct jpeg_segment *segment, struct jpeg_state *state)
{
    const uint8_t *data = segment->data;
    const size_t count = segment->size > 0 ? data[0] : 0;
    unsigned taken = 0;
    if (++state->scans > SCANS_MOST)
        return DAMAGED(state, "it has more than %d scans", SCANS_MOST);
    if (segment->size < 4 + 2 * count)
        return true;
    const unsigned first = data[1 + 2 * count], last = data[2 + 2 * count];
    const unsigned block_bits = !state->progressive ? 2 : first == 0 ? 1 : 0;
    for (size_t i = 0; i < count; i++) {
        struct jpeg_component *component = find_component(state, data[1 + 2 * i], &taken);
        if (component == NULL)
            continue;
        state->data_bits += block_bits * count_component_blocks(component, state);
        component->filled |= block_bits > 0;
        for (unsigned k = first; block_bits == 0 && k <= last && k < 64; k++)
            if (++component->scans[k] > COEFFICIENT_SCANS_MOST)
                return DAMAGED(state, "it has more than %d scans with one coefficient", COEFFICIENT_SCANS_MOST);
    }
    return true;
}

/* Count the SIZE bytes between a segment and the next: they are the data of a scan, or nothing. */
static void count_data(size_t size, struct jpeg_state *state)
{
    state->data += size;
    state->info.starved |= 8 * (uint64_t)size < state->data_bits;
    state->data_bits = 0;
}

/* Check Huffman tables. A table has 17 bytes that give the number of symbols of each length, then the symbols.
 * stb_image 2.27 writes past its own tables if there are more than 256 symbols. */
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
        data += 17 + symbols;
        left -= 17 + symbols;
    }
    return true;
}

/* Check one complete segment. */
static bool check_segment(const struct jpeg_segment *segment, struct jpeg_state *state)
{
    state->extras |= container_extras_of(segment);
    if (state->index.data == NULL && container_is_picture_index(segment))
        state->index = *segment;
    if (segment->marker == JPEG_MARKER_DHT)
        return check_huffman_tables(segment, state);
    if (jpeg_is_frame(segment->marker))
        return check_frame(segment, state);
    return segment->marker != JPEG_MARKER_SOS || check_scan(segment, state);
}

/* Report a step that found no segment. */
static bool report_jpeg_step(enum jpeg_step step, const struct jpeg_walk *walk, const struct jpeg_segment *segment,
                             const struct jpeg_state *state)
{
    if (step == JPEG_STEP_NO_PLACE)
        return DAMAGED(state, "marker %02X at byte %zu has no place there", segment->marker, segment->at);
    if (step == JPEG_STEP_TOO_SHORT)
        return DAMAGED(state, "segment %02X at byte %zu claims %zu bytes", segment->marker, segment->at, segment->size);
    if (step == JPEG_STEP_TRUNCATED)
        return error_about(state->error, ERROR_WORK, state->name,
                           "the JPEG file is truncated: segment %02X at byte %zu claims %zu bytes and %zu are left; "
                           "get an intact copy",
                           segment->marker, segment->at, segment->size, segment->left);
    return error_about(state->error, ERROR_WORK, state->name,
                       "the JPEG file is truncated: it ends after %zu bytes without an end marker; get an intact copy",
                       walk->size);
}

bool jpeg_check(const uint8_t *bytes, size_t size, const char *name, struct container_info *info, struct error *error)
{
    struct jpeg_state state = {.name = name, .error = error};
    struct jpeg_walk walk = jpeg_walk_begin(bytes, size);
    struct jpeg_segment segment;
    enum jpeg_step step;
    size_t from = walk.at;
    while ((step = jpeg_walk_next(&walk, &segment)) == JPEG_STEP_SEGMENT) {
        count_data(segment.at - from, &state);
        if (!check_segment(&segment, &state))
            return false;
        from = walk.at;
    }
    if (step != JPEG_STEP_END)
        return report_jpeg_step(step, &walk, &segment, &state);
    if (state.info.width == 0 || state.scans == 0)
        return DAMAGED(&state, "it holds no %s", state.scans > 0 ? "frame header" : "picture");
    count_data(segment.at - from, &state);
    for (unsigned i = 0; i < state.count; i++)
        state.info.starved |= !state.components[i].filled;
    state.info.progressive = state.progressive || state.scans > 1;
    *info = state.info;
    info->data = state.data;
    info->extras = state.extras | container_extras_behind(bytes, size, size - segment.left, &state.index);
    return true;
}
