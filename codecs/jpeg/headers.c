/* SPDX-License-Identifier: MIT
 *
 * The layout of a file, and its headers, which mean the same to libjpeg-turbo: see its jdmarker.c, jdinput.c,
 * jdapimin.c (default_decompress_parms) and jdhuff.c (jpeg_make_d_derived_tbl). */
#include "jpeg/lookup.h"

#include <string.h>

/* ---- Reading ---- */

/* Only 1, 2 or 4 samples of brightness for one of colour are accepted. Other factors are rare and hard to write. */
struct chroma_subsampling jpeg_chroma_subsampling(const struct jpeg_headers *headers)
{
    const struct jpeg_frame_component *luma = headers->components;
    const int horizontal = luma->horizontal, vertical = luma->vertical;
    bool is_known = headers->component_count == 3 && (horizontal == 1 || horizontal == 2 || horizontal == 4) &&
                    (vertical == 1 || vertical == 2);
    for (int i = 1; i < 3; i++)
        is_known = is_known && luma[i].horizontal == 1 && luma[i].vertical == 1;
    return is_known ? (struct chroma_subsampling){horizontal, vertical} : (struct chroma_subsampling){0, 0};
}

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
    if (headers->has_jfif || headers->component_count == 1)
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
    if (headers->component_count == 1)
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
    const int count = headers->component_count;
    if (!headers->is_sequential || (count != 1 && count != 3) || !is_subsampling(headers) || !is_luma_chroma(headers))
        return false;
    *layout = (struct jpeg_layout){
        .width = headers->width,
        .height = headers->height,
        .component_count = count,
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
        layout->components[i].quantiser = component->quantiser;
        layout->components[i].dc = find_first(headers->tables.dc, component->dc);
        layout->components[i].ac = find_first(headers->tables.ac, component->ac);
    }
    return true;
}

size_t jpeg_count_segments(const struct jpeg_layout *layout, const struct jpeg_scan *scan)
{
    const size_t mcus = (size_t)layout->mcus_across * (size_t)layout->mcus_down;
    const size_t interval = layout->restart_interval > 0 ? (size_t)layout->restart_interval : mcus;
    const size_t count = (mcus + interval - 1) / interval;
    return count <= scan->size / 3 + 1 ? count : 0;
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

/* ---- Writing ---- */

/* T.81, tables K.1 and K.2, row by row. */
static const uint8_t standard_quantisers[2][JPEG_BLOCK] = {
    {16, 11,  10,  16, 24, 40, 51, 61, 12,  12,  14,  19,  26, 58, 60, 55,  14,  13,  16,  24, 40, 57,
     69, 56,  14,  17, 22, 29, 51, 87, 80,  62,  18,  22,  37, 56, 68, 109, 103, 77,  24,  35, 55, 64,
     81, 104, 113, 92, 49, 64, 78, 87, 103, 121, 120, 101, 72, 92, 95, 98,  112, 100, 103, 99},
    {17, 18, 24, 47, 99, 99, 99, 99, 18, 21, 26, 66, 99, 99, 99, 99, 24, 26, 56, 99, 99, 99,
     99, 99, 47, 66, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99,
     99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99, 99},
};

/* Tables K.3 to K.6. */
static const struct jpeg_huffman standard_dc[2] = {
    {.counts = {0, 0, 1, 5, 1, 1, 1, 1, 1, 1}, .symbols = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
    {.counts = {0, 0, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1}, .symbols = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
};
static const struct jpeg_huffman standard_ac[2] = {
    {.counts = {0, 0, 2, 1, 3, 3, 2, 4, 3, 5, 5, 4, 4, 0, 0, 1, 0x7d},
     .symbols = {0x01, 0x02, 0x03, 0x00, 0x04, 0x11, 0x05, 0x12, 0x21, 0x31, 0x41, 0x06, 0x13, 0x51, 0x61, 0x07, 0x22,
                 0x71, 0x14, 0x32, 0x81, 0x91, 0xa1, 0x08, 0x23, 0x42, 0xb1, 0xc1, 0x15, 0x52, 0xd1, 0xf0, 0x24, 0x33,
                 0x62, 0x72, 0x82, 0x09, 0x0a, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x34,
                 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54, 0x55,
                 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75, 0x76,
                 0x77, 0x78, 0x79, 0x7a, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94, 0x95, 0x96,
                 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3, 0xb4, 0xb5,
                 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2, 0xd3, 0xd4,
                 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe1, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea, 0xf1,
                 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}},
    {.counts = {0, 0, 2, 1, 2, 4, 4, 3, 4, 7, 5, 4, 4, 0, 1, 2, 0x77},
     .symbols = {0x00, 0x01, 0x02, 0x03, 0x11, 0x04, 0x05, 0x21, 0x31, 0x06, 0x12, 0x41, 0x51, 0x07, 0x61, 0x71, 0x13,
                 0x22, 0x32, 0x81, 0x08, 0x14, 0x42, 0x91, 0xa1, 0xb1, 0xc1, 0x09, 0x23, 0x33, 0x52, 0xf0, 0x15, 0x62,
                 0x72, 0xd1, 0x0a, 0x16, 0x24, 0x34, 0xe1, 0x25, 0xf1, 0x17, 0x18, 0x19, 0x1a, 0x26, 0x27, 0x28, 0x29,
                 0x2a, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x53, 0x54,
                 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x73, 0x74, 0x75,
                 0x76, 0x77, 0x78, 0x79, 0x7a, 0x82, 0x83, 0x84, 0x85, 0x86, 0x87, 0x88, 0x89, 0x8a, 0x92, 0x93, 0x94,
                 0x95, 0x96, 0x97, 0x98, 0x99, 0x9a, 0xa2, 0xa3, 0xa4, 0xa5, 0xa6, 0xa7, 0xa8, 0xa9, 0xaa, 0xb2, 0xb3,
                 0xb4, 0xb5, 0xb6, 0xb7, 0xb8, 0xb9, 0xba, 0xc2, 0xc3, 0xc4, 0xc5, 0xc6, 0xc7, 0xc8, 0xc9, 0xca, 0xd2,
                 0xd3, 0xd4, 0xd5, 0xd6, 0xd7, 0xd8, 0xd9, 0xda, 0xe2, 0xe3, 0xe4, 0xe5, 0xe6, 0xe7, 0xe8, 0xe9, 0xea,
                 0xf2, 0xf3, 0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa}},
};

void jpeg_layout_for_writing(struct jpeg_layout *layout, int width, int height, int components,
                             struct chroma_subsampling chroma, int quality)
{
    /* Percent of the standard quantisers, as jpeg_quality_scaling has it. */
    const int percent = quality < 50 ? 5000 / quality : 200 - 2 * quality;
    chroma = jpeg_chroma_for(chroma, quality);
    *layout = (struct jpeg_layout){
        .width = width,
        .height = height,
        .component_count = components,
        .horizontal = components == 1 ? 1 : chroma.horizontal,
        .vertical = components == 1 ? 1 : chroma.vertical,
    };
    jpeg_layout_derive(layout);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < JPEG_BLOCK; k++) {
            const int quantiser = (standard_quantisers[i][k] * percent + 50) / 100;
            layout->tables.quantisers[i][k] = (uint16_t)(quantiser < 1 ? 1 : quantiser > 255 ? 255 : quantiser);
        }
        layout->tables.dc[i] = standard_dc[i];
        layout->tables.ac[i] = standard_ac[i];
    }
    for (int i = 1; i < components; i++)
        layout->components[i].quantiser = layout->components[i].dc = layout->components[i].ac = 1;
}

bool jpeg_segment_append(struct blob *out, enum jpeg_marker marker, const void *head, size_t head_size,
                         const uint8_t *bytes, size_t size)
{
    const size_t length = 2 + head_size + size;
    const uint8_t start[4] = {0xff, (uint8_t)marker, (uint8_t)(length >> 8), (uint8_t)length};
    return blob_append(out, start, sizeof start) && blob_append(out, head, head_size) && blob_append(out, bytes, size);
}

static bool append_quantisers(struct blob *out, const struct jpeg_layout *layout, int table)
{
    static const uint8_t order[JPEG_BLOCK] = JPEG_NATURAL_ORDER;
    uint8_t data[1 + JPEG_BLOCK] = {(uint8_t)table};
    for (int i = 0; i < JPEG_BLOCK; i++)
        data[1 + i] = (uint8_t)layout->tables.quantisers[table][order[i]];
    return jpeg_segment_append(out, JPEG_MARKER_DQT, data, sizeof data, NULL, 0);
}

/* TABLE is the class, 0 or 16, plus the number. */
static bool append_huffman(struct blob *out, const struct jpeg_huffman *huffman, int table)
{
    uint8_t head[17] = {(uint8_t)table};
    size_t symbols = 0;
    for (int i = 1; i <= 16; i++)
        symbols += head[i] = huffman->counts[i];
    return jpeg_segment_append(out, JPEG_MARKER_DHT, head, sizeof head, huffman->symbols, symbols);
}

bool jpeg_append_headers(struct blob *out, const struct jpeg_layout *layout)
{
    /* JFIF 1.1, pixels without a size, no thumbnail. */
    static const uint8_t jfif[] = {'J', 'F', 'I', 'F', 0, 1, 1, 0, 0, 1, 0, 1, 0, 0};
    static const uint8_t coefficients[] = {0, JPEG_BLOCK - 1, 0}; /* first, last, bits */
    const int components = layout->component_count, tables = components > 1 ? 2 : 1;
    uint8_t frame[6 + 3 * JPEG_COMPONENTS_MAX] = {8, [5] = (uint8_t)components};
    uint8_t scan[1 + 2 * JPEG_COMPONENTS_MAX] = {(uint8_t)components};
    for (int i = 0; i < components; i++) {
        const struct jpeg_component *component = &layout->components[i];
        frame[6 + 3 * i] = scan[1 + 2 * i] = (uint8_t)(i + 1);
        frame[7 + 3 * i] = (uint8_t)(component->horizontal << 4 | component->vertical);
        frame[8 + 3 * i] = (uint8_t)component->quantiser;
        scan[2 + 2 * i] = (uint8_t)(component->dc << 4 | component->ac);
    }
    put_big16(frame + 1, (unsigned)layout->height);
    put_big16(frame + 3, (unsigned)layout->width);
    bool done = blob_append(out, "\xff\xd8", JPEG_SOI_BYTES) &&
                jpeg_segment_append(out, JPEG_MARKER_APP0, jfif, sizeof jfif, NULL, 0);
    for (int i = 0; i < tables; i++)
        done = done && append_quantisers(out, layout, i);
    done = done && jpeg_segment_append(out, JPEG_MARKER_SOF0, frame, 6 + 3 * (size_t)components, NULL, 0);
    for (int i = 0; i < tables; i++)
        done =
            done && append_huffman(out, &layout->tables.dc[i], i) && append_huffman(out, &layout->tables.ac[i], 16 | i);
    return done && jpeg_segment_append(out, JPEG_MARKER_SOS, scan, 1 + 2 * (size_t)components, coefficients,
                                       sizeof coefficients);
}

bool jpeg_append_end(struct blob *out)
{
    return blob_append(out, "\xff\xd9", 2);
}
