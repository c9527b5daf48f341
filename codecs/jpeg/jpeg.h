/* SPDX-License-Identifier: MIT
 *
 * Baseline JPEG on all cores, with the samples and the bytes of libjpeg-turbo. jpeg_gpu.h does this on a GPU. Other
 * folders use only these two headers. nvcc reads this file. The terms are those of ITU-T T.81.
 *
 * To decode, make a layout of the file's headers and open an index of its scan. Then any thread decodes any rows. To
 * encode, make a layout and open an encoder. Any thread encodes any rows, and one thread writes them to the file.
 *
 * Rows are rows of pixels. A call takes whole rows of MCUs, jpeg_mcu_height each, but for the last ones of the picture.
 * Functions that return false or NULL set no error. The decoder does not support rare files, nor files that
 * libjpeg-turbo refuses or warns about: another codec then reads them and reports their errors. */
#ifndef GPUCONV_JPEG_JPEG_H
#define GPUCONV_JPEG_JPEG_H

#include "base/bytes.h"

#ifdef __cplusplus
extern "C" {
#endif

struct thread_pool; /* base/parallel.h */

/* ---- Headers of files ---- */

/* Markers: the byte after FF. */
enum jpeg_marker {
    JPEG_MARKER_SOF0 = 0xc0, /* frame headers are SOF0 to SOF15, without the next three */
    JPEG_MARKER_SOF1 = 0xc1, /* extended sequential: a baseline picture may have it, too */
    JPEG_MARKER_SOF2 = 0xc2, /* progressive */
    JPEG_MARKER_DHT = 0xc4,
    JPEG_MARKER_JPG = 0xc8,
    JPEG_MARKER_SOF9 = 0xc9,  /* sequential with arithmetic codes */
    JPEG_MARKER_SOF10 = 0xca, /* progressive with arithmetic codes */
    JPEG_MARKER_DAC = 0xcc,
    JPEG_MARKER_SOF15 = 0xcf,
    JPEG_MARKER_RST0 = 0xd0, /* restart markers are RST0 to RST7 */
    JPEG_MARKER_SOI = 0xd8,
    JPEG_MARKER_EOI = 0xd9,
    JPEG_MARKER_SOS = 0xda,
    JPEG_MARKER_DQT = 0xdb,
    JPEG_MARKER_DRI = 0xdd,
    JPEG_MARKER_APP0 = 0xe0,
    JPEG_MARKER_APP1 = 0xe1,
    JPEG_MARKER_APP2 = 0xe2,
    JPEG_MARKER_APP3 = 0xe3,
    JPEG_MARKER_APP10 = 0xea,
    JPEG_MARKER_APP13 = 0xed,
    JPEG_MARKER_APP14 = 0xee,
    JPEG_MARKER_APP15 = 0xef,
    JPEG_MARKER_COM = 0xfe,
};

enum {
    JPEG_SOI_BYTES = 2,       /* before the first segment */
    JPEG_SEGMENT_MAX = 65533, /* the maximal bytes of a segment's data: the length has 16 bits and counts itself */
};

/* Chroma subsampling: how many samples of brightness there are for one of colour in each direction. 0, 0 means that it
 * is unknown or irregular. */
struct chroma_subsampling {
    int horizontal, vertical;
};

enum {
    JPEG_BLOCK = 64,              /* coefficients of a block */
    JPEG_TABLES = 4,              /* quantisers, DC and AC tables of a file: four each */
    JPEG_COMPONENTS_IN_FRAME = 4, /* at most */
};

/* The index in natural order (row by row) of each coefficient in zigzag order (T.81, figure A.6). */
#define JPEG_NATURAL_ORDER_LIST                                                                                        \
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,  \
        28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60,    \
        61, 54, 47, 55, 62, 63
#define JPEG_NATURAL_ORDER                                                                                             \
    {                                                                                                                  \
        JPEG_NATURAL_ORDER_LIST                                                                                        \
    }

/* A Huffman table as DHT gives it (T.81, B.2.4.2). */
struct jpeg_huffman {
    uint8_t counts[17]; /* codes of each length; counts[0] is 0 */
    uint8_t symbols[256];
};

/* Tables by their numbers. */
struct jpeg_tables {
    uint16_t quantisers[JPEG_TABLES][JPEG_BLOCK]; /* in natural order */
    struct jpeg_huffman dc[JPEG_TABLES], ac[JPEG_TABLES];
};

/* A component of the frame. */
struct jpeg_frame_component {
    uint8_t id, horizontal, vertical; /* its sampling factors */
    uint8_t quantiser, dc, ac;        /* numbers of its tables; those of Huffman tables are from the first scan */
};

/* What the headers of a file say, up to the header of its first scan. The caller reads them. */
struct jpeg_headers {
    unsigned frame; /* its marker */
    int width, height, component_count;
    struct jpeg_frame_component components[JPEG_COMPONENTS_IN_FRAME];
    struct jpeg_tables tables;
    unsigned quantisers, dc, ac; /* a bit for each table that is there */
    int restart_interval;        /* in units (MCUs), or 0 */
    bool has_jfif, has_adobe;
    unsigned adobe_transform;
    bool is_sequential; /* there is one scan, of whole blocks of all components in their order, in Huffman codes, and
                           nothing beside it is unusual */
    size_t scan, scan_size; /* if IS_SEQUENTIAL: where the data of the scan begin in the file, and their size */
    bool has_quantisers;    /* all components have theirs before the first scan, and there are 1 or 3 */
};

/* The chroma subsampling of three components; 0, 0 for others. */
struct chroma_subsampling jpeg_chroma_subsampling(const struct jpeg_headers *headers);

/* CHROMA or, if it is 0, 0, the subsampling for a file of QUALITY, as stb chooses it. */
static inline struct chroma_subsampling jpeg_chroma_for(struct chroma_subsampling chroma, int quality)
{
    const int factor = quality <= 90 ? 2 : 1;
    return chroma.horizontal != 0 ? chroma : (struct chroma_subsampling){factor, factor};
}

/* Append a segment to OUT: HEAD, then SIZE bytes. Both together have at most JPEG_SEGMENT_MAX bytes. Returns false if
 * there is not enough memory. */
bool jpeg_segment_append(struct blob *out, enum jpeg_marker marker, const void *head, size_t head_size,
                         const uint8_t *bytes, size_t size);

/* ---- Layout ---- */

enum {
    JPEG_COMPONENTS_MAX = 3,
    JPEG_SIDE = 8,            /* samples on a side of a block */
    JPEG_MCU_BLOCKS_MAX = 10, /* T.81, B.2.3: 4 x 2 has them */
};

/* A component of the picture. A single component has the factors 1 x 1, whatever the file says, because its scan is not
 * interleaved (A.2.2). */
struct jpeg_component {
    int horizontal, vertical;       /* sampling factors: its blocks in an MCU */
    int side;                       /* samples on a side of a block, once it is decoded: JPEG_SIDE, or fewer */
    int across, down;               /* pixels that a sample stands for: 1, 2 or 4, and 1 or 2 */
    int width, height;              /* in samples: ceil(width of the picture x factor / largest factor) (A.1.1) */
    int blocks_across, blocks_down; /* with those that fill the last MCUs */
    int quantiser, dc, ac;          /* numbers of its tables */
};

/* A picture: one or three components in one interleaved scan. Three are luma, blue and red difference. The chroma
 * components have the factors 1 x 1, and luma 1 x 1, 2 x 1, 2 x 2, 1 x 2 or 4 x 1; in a written picture also 4 x 2. */
struct jpeg_layout {
    int width, height;        /* in pixels, at least 1, as the decoder makes them */
    int component_count;      /* 1 or 3 */
    int horizontal, vertical; /* the largest factors: those of the first component */
    int side;                 /* samples on a side of that component's blocks */
    struct jpeg_component components[JPEG_COMPONENTS_MAX];
    int mcus_across, mcus_down;
    int mcu_blocks;                              /* blocks of an MCU */
    uint8_t mcu_components[JPEG_MCU_BLOCKS_MAX]; /* the component of each block of an MCU */
    struct jpeg_tables tables;
    int restart_interval; /* in MCUs, or 0 */
};

/* Fill what follows from width, height, component_count, horizontal and vertical: the components but their tables, and
 * the MCUs. */
static inline void jpeg_layout_derive(struct jpeg_layout *layout)
{
    const int mcu_width = JPEG_SIDE * layout->horizontal, mcu_height = JPEG_SIDE * layout->vertical;
    layout->side = JPEG_SIDE;
    layout->mcus_across = (layout->width + mcu_width - 1) / mcu_width;
    layout->mcus_down = (layout->height + mcu_height - 1) / mcu_height;
    layout->mcu_blocks = 0;
    for (int i = 0; i < layout->component_count; i++) {
        struct jpeg_component *component = &layout->components[i];
        component->horizontal = i == 0 ? layout->horizontal : 1;
        component->vertical = i == 0 ? layout->vertical : 1;
        component->side = JPEG_SIDE;
        component->across = layout->horizontal / component->horizontal;
        component->down = layout->vertical / component->vertical;
        component->width = (layout->width * component->horizontal + layout->horizontal - 1) / layout->horizontal;
        component->height = (layout->height * component->vertical + layout->vertical - 1) / layout->vertical;
        component->blocks_across = layout->mcus_across * component->horizontal;
        component->blocks_down = layout->mcus_down * component->vertical;
        for (int j = 0; j < component->horizontal * component->vertical; j++)
            layout->mcu_components[layout->mcu_blocks++] = (uint8_t)i;
    }
}

/* Let the decoder of a picture of LAYOUT, which is derived, make it smaller: 1/2^SHRINK as wide and high, rounded up,
 * for 0 to 3. A block then has fewer samples. As in libjpeg-turbo, a block of chroma has twice as many on a side while
 * that makes chroma no denser than luma: with 4:2:0, pixels need no upsampling. */
static inline void jpeg_layout_shrink(struct jpeg_layout *layout, int shrink)
{
    const int across = layout->horizontal * (layout->side >> shrink),
              down = layout->vertical * (layout->side >> shrink);
    for (int i = 0; i < layout->component_count; i++) {
        struct jpeg_component *component = &layout->components[i];
        component->side = layout->side >> shrink;
        while (component->side < JPEG_SIDE && across % (2 * component->horizontal * component->side) == 0 &&
               down % (2 * component->vertical * component->side) == 0)
            component->side *= 2;
        component->across = across / (component->horizontal * component->side);
        component->down = down / (component->vertical * component->side);
        const int wide = layout->horizontal * JPEG_SIDE, high = layout->vertical * JPEG_SIDE;
        component->width = (layout->width * component->horizontal * component->side + wide - 1) / wide;
        component->height = (layout->height * component->vertical * component->side + high - 1) / high;
    }
    layout->width = (layout->width + (1 << shrink) - 1) >> shrink;
    layout->height = (layout->height + (1 << shrink) - 1) >> shrink;
    layout->side >>= shrink;
}

/* Rows of pixels of a row of MCUs. */
static inline int jpeg_mcu_height(const struct jpeg_layout *layout)
{
    return layout->side * layout->vertical;
}

/* Have the components A and B the same Huffman tables? */
static inline bool jpeg_shares_codes(const struct jpeg_layout *layout, int a, int b)
{
    return layout->components[a].dc == layout->components[b].dc && layout->components[a].ac == layout->components[b].ac;
}

/* After how many blocks the Huffman tables of the blocks of an MCU repeat. A walk over the codes cannot tell blocks
 * with the same tables apart. */
static inline int jpeg_period(const struct jpeg_layout *layout)
{
    for (int period = 1;; period++) {
        bool repeats = layout->mcu_blocks % period == 0;
        for (int i = period; repeats && i < layout->mcu_blocks; i++)
            repeats = jpeg_shares_codes(layout, layout->mcu_components[i], layout->mcu_components[i - period]);
        if (repeats)
            return period; /* at the latest, that of the MCU */
    }
}

/* Fill LAYOUT from the headers of a file. Returns false if they are unsupported. */
bool jpeg_layout_for_reading(struct jpeg_layout *layout, const struct jpeg_headers *headers);

/* Fill LAYOUT as libjpeg-turbo would encode a picture of 1 or 3 COMPONENTS with QUALITY, 1 to 100. CHROMA is
 * as in jpeg_chroma_for: QUALITY decides if it is 0, 0. */
void jpeg_layout_for_writing(struct jpeg_layout *layout, int width, int height, int components,
                             struct chroma_subsampling chroma, int quality);

/* ---- Scan ---- */

/* The data of a scan in its file, with stuffed bytes and restart markers. */
struct jpeg_scan {
    const uint8_t *bytes;
    size_t size;
};

/* The restart segments of a picture of LAYOUT; 1 without restart markers. Returns 0 if SCAN is too short for them. Each
 * has a byte at least, and a marker before the next. */
size_t jpeg_count_segments(const struct jpeg_layout *layout, const struct jpeg_scan *scan);

/* Copy the data of SCAN without stuffed bytes and restart markers to DATA, which has scan->size bytes. Set *SIZE, and
 * in STARTS the offset of each of SEGMENTS segments. Returns false if the restart markers are not those that belong
 * there, or if the data have 2^32 bytes. */
bool jpeg_copy_scan(const struct jpeg_scan *scan, size_t segments, uint8_t *data, size_t *size, uint32_t *starts);

/* ---- Decoding ---- */

/* Where each row of MCUs begins in the data. */
struct jpeg_index;

/* Make the index of SCAN, on the threads of POOL. SCAN may go afterwards. Release it with jpeg_index_free. Returns
 * NULL if the data are damaged, or if there is not enough memory. It takes at most twice as long as one walk over all
 * codes. */
struct jpeg_index *jpeg_index_open(const struct jpeg_layout *layout, const struct jpeg_scan *scan,
                                   struct thread_pool *pool);

/* NULL is allowed. */
void jpeg_index_free(struct jpeg_index *index);

/* Bytes of memory that the index of a picture of HEIGHT pixels, with a scan of SIZE bytes, holds at most. */
size_t jpeg_index_need(int height, size_t size);

/* Bytes of a row of the plane of COMPONENT. */
static inline size_t jpeg_plane_stride(const struct jpeg_component *component)
{
    return (size_t)component->blocks_across * (size_t)component->side;
}

/* Bytes of its rows in a row of MCUs. */
static inline size_t jpeg_plane_bytes(const struct jpeg_component *component)
{
    return jpeg_plane_stride(component) * (size_t)component->vertical * (size_t)component->side;
}

/* Bytes of the planes of a row of MCUs. */
static inline size_t jpeg_planes_bytes(const struct jpeg_layout *layout)
{
    size_t bytes = 0;
    for (int i = 0; i < layout->component_count; i++)
        bytes += jpeg_plane_bytes(&layout->components[i]);
    return bytes;
}

/* Decode the rows of MCUs that begin in ROWS rows of pixels from row FIRST on, which begins one, to PLANES. That has
 * jpeg_planes_bytes for each. The planes of the components follow each other. */
void jpeg_decode_band(const struct jpeg_index *index, int first, int rows, uint8_t *planes);

/* What jpeg_decode_band has made of a band and of its neighbours, which upsampling reads. */
struct jpeg_planes {
    const uint8_t *band;
    const uint8_t *above; /* the end of the planes of the rows above; NULL at the top of the picture */
    const uint8_t *below; /* the planes of the rows below; NULL at its bottom */
};

/* Convert ROWS rows of pixels, from row FIRST on, which begins a row of MCUs, to SAMPLES: 1 or 3 bytes each, row by
 * row. PLANES are those of the same rows. */
void jpeg_convert_band(const struct jpeg_index *index, int first, int rows, const struct jpeg_planes *planes,
                       uint8_t *samples);

/* ---- Encoding ---- */

/* Append what comes before the data of a scan, and what follows them. LAYOUT is one for writing. Both return false if
 * there is not enough memory. */
bool jpeg_append_headers(struct blob *out, const struct jpeg_layout *layout);
bool jpeg_append_end(struct blob *out);

/* An encoder of a picture. It owns the file, and the encoded bands that are not in the file yet. */
struct jpeg_encoder;

/* Begin the file of a picture of LAYOUT, whose tables are set. Release the encoder with jpeg_encoder_close. This
 * returns NULL, and the functions below return false, if there is not enough memory. */
struct jpeg_encoder *jpeg_encoder_open(const struct jpeg_layout *layout);

/* Encode a band: ROWS rows of the picture, from row FIRST on. They begin and end where rows of MCUs do, or with the
 * picture. SAMPLES has a byte for each component of each pixel, row by row. Several threads may encode at a time. */
bool jpeg_encode_band(struct jpeg_encoder *encoder, int first, int rows, const uint8_t *samples);

/* Append the encoded bands of ROWS rows, from row FIRST on, to the file. The calls go from the top of the picture to
 * its bottom. */
bool jpeg_write_bands(struct jpeg_encoder *encoder, int first, int rows);

/* Bytes of the file so far. */
size_t jpeg_encoder_size(const struct jpeg_encoder *encoder);

/* Finish the file, after the last rows. The caller releases *BYTES with free. */
bool jpeg_encoder_finish(struct jpeg_encoder *encoder, uint8_t **bytes, size_t *size);

/* NULL is allowed. */
void jpeg_encoder_close(struct jpeg_encoder *encoder);

#ifdef __cplusplus
}
#endif

#endif
