/* SPDX-License-Identifier: MIT
 *
 * What libjpeg-turbo makes of headers is in its jdmarker.c, jdinput.c, jdapimin.c (default_decompress_parms) and jdhuff.c
 * (jpeg_make_d_derived_tbl). */
#include "jpeg/lookup.h"

#include <string.h>

/* Is the table right? The symbols of DC are at most 15. */
static bool is_huffman(const struct jpeg_huffman *table, bool is_dc)
{
    struct jpeg_code_order codes;
    bool done = jpeg_order_codes(&codes, table);
    for (int i = 0; is_dc && i < 256; i++) /* those that are not used are 0 */
        done = done && table->symbols[i] <= 15;
    return done;
}

/* Are all tables of COMPONENT there, and right? */
static bool has_tables(const struct jpeg_headers *headers, const struct jpeg_frame_component *component)
{
    const unsigned quantiser = component->quantiser, dc = component->dc, ac = component->ac;
    return quantiser < JPEG_TABLES && dc < JPEG_TABLES && ac < JPEG_TABLES && (headers->quantisers >> quantiser & 1) &&
           (headers->dc >> dc & 1) && (headers->ac >> ac & 1) && is_huffman(&headers->tables.dc[dc], true) &&
           is_huffman(&headers->tables.ac[ac], false);
}

/* Are the components luma, blue and red difference? */
static bool is_luma_chroma(const struct jpeg_headers *headers)
{
    const struct jpeg_frame_component *components = headers->components;
    if (headers->has_jfif || headers->count == 1)
        return true;
    if (headers->has_adobe)
        return headers->adobe_transform == 1;
    return components[0].id != 'R' || components[1].id != 'G' || components[2].id != 'B';
}

/* Are the sampling factors those of a layout? */
static bool is_subsampling(const struct jpeg_headers *headers)
{
    const struct jpeg_frame_component *first = headers->components;
    const struct chroma_subsampling chroma = jpeg_chroma_subsampling(headers);
    if (headers->count == 1)
        return first->horizontal >= 1 && first->horizontal <= 4 && first->vertical >= 1 && first->vertical <= 4;
    return chroma.horizontal > 0 && chroma.horizontal * chroma.vertical <= 4;
}

/* The first table that says the same as number NUMBER: some files have all tables twice. */
static int find_first(const struct jpeg_huffman *tables, int number)
{
    int first = 0;
    while (memcmp(&tables[first], &tables[number], sizeof *tables) != 0)
        first++;
    return first;
}

bool jpeg_layout_for_reading(struct jpeg_layout *layout, const struct jpeg_headers *headers)
{
    const int count = headers->count;
    if (!headers->is_sequential || (count != 1 && count != 3) || !is_subsampling(headers) || !is_luma_chroma(headers))
        return false;
    *layout = (struct jpeg_layout){
        .width = headers->width,
        .height = headers->height,
        .components = count,
        .horizontal = count == 1 ? 1 : headers->components[0].horizontal,
        .vertical = count == 1 ? 1 : headers->components[0].vertical,
        .tables = headers->tables,
        .restart_interval = headers->restart_interval,
    };
    jpeg_layout_derive(layout);
    for (int i = 0; i < count; i++) {
        const struct jpeg_frame_component *component = &headers->components[i];
        if (!has_tables(headers, component))
            return false;
        layout->parts[i].quantiser = component->quantiser;
        layout->parts[i].dc = find_first(headers->tables.dc, component->dc);
        layout->parts[i].ac = find_first(headers->tables.ac, component->ac);
    }
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
