/* SPDX-License-Identifier: MIT
 *
 * What libjpeg-turbo makes of headers is in its jdmarker.c, jdinput.c, jdapimin.c (default_decompress_parms) and jdhuff.c
 * (jpeg_make_d_derived_tbl). */
#include "jpeg/headers.h"

#include "base/bytes.h"
#include "container/jpeg.h"

#include <string.h>

/* What the segments before the scan say. */
struct headers {
    struct jpeg_layout *layout;
    uint8_t ids[JPEG_COMPONENTS_MOST];
    bool has_frame, has_jfif, has_adobe, has_scan;
    struct jpeg_quantiser_tables quantisers;
    unsigned transform; /* of Adobe's segment */
    unsigned dc, ac;    /* a bit for each Huffman table that is there */
};

/* ---- Tables ---- */

/* Are the codes those of a prefix code (C.2)? The code of all ones is not used. The symbols of DC are at most 15. */
static bool is_huffman(const struct jpeg_huffman *table, bool is_dc)
{
    uint32_t code = 0;
    unsigned symbols = 0;
    for (int length = 1; length <= 16; length++, code <<= 1) {
        code += table->counts[length];
        symbols += table->counts[length];
        if (table->counts[length] > 0 && code >= 1u << length)
            return false;
    }
    for (unsigned i = 0; is_dc && i < symbols; i++)
        if (table->symbols[i] > 15)
            return false;
    return symbols > 0;
}

/* Each table: 4 bits of class, 4 bits of number, 16 counts of codes, the symbols. */
static bool read_huffman(struct headers *headers, const uint8_t *data, size_t size)
{
    while (size > 0) {
        const unsigned class = size < 17 ? 2 : data[0] >> 4u, number = data[0] & 15;
        if (class > 1 || number >= JPEG_TABLES)
            return false;
        struct jpeg_huffman *table = &(class == 0 ? headers->layout->dc : headers->layout->ac)[number];
        size_t symbols = 0;
        *table = (struct jpeg_huffman){{0}, {0}};
        for (int i = 1; i <= 16; i++)
            symbols += table->counts[i] = data[i];
        if (symbols > 256 || size < 17 + symbols)
            return false;
        memcpy(table->symbols, data + 17, symbols);
        *(class == 0 ? &headers->dc : &headers->ac) |= 1u << number;
        data += 17 + symbols;
        size -= 17 + symbols;
    }
    return true;
}

/* ---- Frame and scan ---- */

/* The sampling factors of three components. */
static bool is_subsampling(const struct jpeg_layout *layout, const uint8_t *components)
{
    const int horizontal = layout->horizontal, vertical = layout->vertical;
    return components[4] == 0x11 && components[7] == 0x11 &&
           ((horizontal == 1 && vertical == 1) || (horizontal == 2 && vertical == 1) ||
            (horizontal == 2 && vertical == 2) || (horizontal == 1 && vertical == 2) ||
            (horizontal == 4 && vertical == 1));
}

/* Bits, height, width, number of components, then 3 bytes for each: its id, its factors, its quantiser. */
static bool read_frame(struct headers *headers, const uint8_t *data, size_t size)
{
    struct jpeg_layout *layout = headers->layout;
    if (headers->has_frame || size < 9 || data[0] != 8 || (data[5] != 1 && data[5] != 3) || size != 6 + 3u * data[5])
        return false;
    headers->has_frame = true;
    layout->height = (int)big16(data + 1);
    layout->width = (int)big16(data + 3);
    layout->components = data[5];
    layout->horizontal = data[7] >> 4u;
    layout->vertical = data[7] & 15;
    if (layout->height == 0 || layout->width == 0)
        return false;
    for (int i = 0; i < layout->components; i++) {
        headers->ids[i] = data[6 + 3 * i];
        layout->parts[i].quantiser = data[8 + 3 * i];
    }
    if (layout->components == 3)
        return is_subsampling(layout, data + 6);
    const bool is_factor =
        layout->horizontal >= 1 && layout->horizontal <= 4 && layout->vertical >= 1 && layout->vertical <= 4;
    layout->horizontal = layout->vertical = 1;
    return is_factor;
}

/* Number of components, 2 bytes for each, then the first and the last coefficient, and bits. */
static bool read_scan(struct headers *headers, const uint8_t *data, size_t size)
{
    struct jpeg_layout *layout = headers->layout;
    const int count = layout->components;
    if (!headers->has_frame || size != 4 + 2 * (size_t)count || data[0] != count)
        return false;
    for (int i = 0; i < count; i++) {
        struct jpeg_part *part = &layout->parts[i];
        if (data[1 + 2 * i] != headers->ids[i])
            return false;
        part->dc = data[2 + 2 * i] >> 4u;
        part->ac = data[2 + 2 * i] & 15;
        if (part->quantiser >= JPEG_TABLES || part->dc >= JPEG_TABLES || part->ac >= JPEG_TABLES ||
            !headers->quantisers.is_known[part->quantiser] || !(headers->dc >> part->dc & 1) ||
            !(headers->ac >> part->ac & 1) || !is_huffman(&layout->dc[part->dc], true) ||
            !is_huffman(&layout->ac[part->ac], false))
            return false;
    }
    const uint8_t *last = data + 1 + 2 * (size_t)count;
    headers->has_scan = last[0] == 0 && last[1] == JPEG_BLOCK - 1 && last[2] == 0;
    return headers->has_scan;
}

/* Are the components luma, blue and red difference? */
static bool is_luma_chroma(const struct headers *headers)
{
    if (headers->has_jfif || headers->layout->components == 1)
        return true;
    if (headers->has_adobe)
        return headers->transform == 1;
    return memcmp(headers->ids, "RGB", 3) != 0;
}

/* Put the tables into natural order. */
static void sort_quantisers(struct headers *headers)
{
    static const uint8_t order[JPEG_BLOCK] = JPEG_NATURAL_ORDER;
    for (int i = 0; i < JPEG_TABLES; i++)
        for (int k = 0; k < JPEG_BLOCK; k++)
            headers->layout->quantisers[i][order[k]] = headers->quantisers.values[i][k];
}

/* ---- The file ---- */

static bool read_segment(struct headers *headers, const struct jpeg_segment *segment)
{
    const uint8_t *data = segment->data;
    const size_t size = segment->size;
    switch (segment->marker) {
    case JPEG_MARKER_SOF0:
    case JPEG_MARKER_SOF1:
        return read_frame(headers, data, size);
    case JPEG_MARKER_DHT:
        return read_huffman(headers, data, size);
    case JPEG_MARKER_DQT:
        return jpeg_read_quantisers(segment, &headers->quantisers);
    case JPEG_MARKER_DRI:
        headers->layout->restart_interval = size == 2 ? (int)big16(data) : 0;
        return size == 2;
    case JPEG_MARKER_SOS:
        return read_scan(headers, data, size);
    case JPEG_MARKER_APP0:
        headers->has_jfif |= size >= 14 && memcmp(data, "JFIF", 5) == 0;
        return true;
    case JPEG_MARKER_APP14:
        if (size >= 12 && memcmp(data, "Adobe", 5) == 0) {
            headers->has_adobe = true;
            headers->transform = data[11];
        }
        return true;
    default:
        return (segment->marker > JPEG_MARKER_APP0 && segment->marker <= JPEG_MARKER_APP15) ||
               segment->marker == JPEG_MARKER_COM;
    }
}

bool jpeg_read_headers(const uint8_t *bytes, size_t size, struct jpeg_layout *layout, struct jpeg_scan *scan)
{
    struct headers headers = {.layout = layout};
    struct jpeg_walk walk = jpeg_walk_begin(bytes, size);
    struct jpeg_segment segment;
    *layout = (struct jpeg_layout){0};
    while (!headers.has_scan) {
        const size_t from = walk.at; /* no other bytes may stand between segments */
        if (jpeg_walk_next(&walk, &segment) != JPEG_STEP_SEGMENT || segment.at != from ||
            !read_segment(&headers, &segment))
            return false;
    }
    sort_quantisers(&headers);
    jpeg_layout_derive(layout);
    scan->bytes = bytes + walk.at;
    if (!is_luma_chroma(&headers) || jpeg_walk_next(&walk, &segment) != JPEG_STEP_END)
        return false;
    scan->size = (size_t)(bytes + segment.at - scan->bytes);
    return true;
}

bool jpeg_copy_scan(const struct jpeg_scan *scan, size_t segments, uint8_t *data, size_t *size, uint32_t *starts)
{
    const uint8_t *next = scan->bytes, *end = next + scan->size;
    uint8_t *out = data;
    size_t count = 1;
    starts[0] = 0;
    if (scan->size > UINT32_MAX)
        return false;
    while (next < end) {
        const uint8_t *mark = memchr(next, 0xff, (size_t)(end - next));
        const size_t run = (size_t)((mark != NULL ? mark + 1 : end) - next);
        memcpy(out, next, run);
        out += run;
        next += run;
        if (mark == NULL)
            break;
        if (next == end)
            return false;
        const uint8_t after = *next++;
        if (after == 0) /* the FF before it is data */
            continue;
        if (count == segments || after != JPEG_MARKER_RST0 + ((count - 1) & 7))
            return false;
        starts[count++] = (uint32_t)(--out - data);
    }
    *size = (size_t)(out - data);
    return count == segments;
}
