/* SPDX-License-Identifier: MIT
 *
 * The numbers of a baseline JPEG: what its headers say, and what follows from them. The encoder and the decoder use them
 * on the CPU and on a GPU, so nvcc reads this file too. The terms are those of ITU-T T.81. */
#ifndef GPUCONV_JPEG_LAYOUT_H
#define GPUCONV_JPEG_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    JPEG_COMPONENTS_MOST = 3,
    JPEG_SIDE = 8,             /* samples on a side of a block */
    JPEG_BLOCK = 64,           /* coefficients of a block */
    JPEG_MCU_BLOCKS_MOST = 10, /* T.81, B.2.3: 4 x 2 has them */
    JPEG_TABLES = 4,           /* quantisers, and Huffman tables of each class */
};

/* A Huffman table as DHT gives it (ITU-T T.81, B.2.4.2). */
struct jpeg_huffman {
    uint8_t counts[17]; /* codes of each length; counts[0] is 0 */
    uint8_t symbols[256];
};

/* A component of the picture. A single component has the factors 1 x 1, whatever the file says, because its scan is not
 * interleaved (A.2.2). */
struct jpeg_part {
    int horizontal, vertical;       /* sampling factors: its blocks in an MCU */
    int width, height;              /* in samples: ceil(width of the picture x factor / largest factor) (A.1.1) */
    int blocks_across, blocks_down; /* with those that fill the last MCUs */
    int quantiser, dc, ac;          /* numbers of its tables */
};

/* A picture: one or three components in one interleaved scan. Three are luma, blue and red difference. The chroma
 * components have the factors 1 x 1, and luma 1 x 1, 2 x 1, 2 x 2, 1 x 2 or 4 x 1; in a written picture also 4 x 2. */
struct jpeg_layout {
    int width, height;        /* in pixels, at least 1 */
    int components;           /* 1 or 3 */
    int horizontal, vertical; /* the largest factors: those of the first component */
    struct jpeg_part parts[JPEG_COMPONENTS_MOST];
    int mcus_across, mcus_down;
    int mcu_blocks;                               /* blocks of an MCU */
    uint8_t mcu_parts[JPEG_MCU_BLOCKS_MOST];      /* the component of each block of an MCU */
    uint16_t quantisers[JPEG_TABLES][JPEG_BLOCK]; /* in natural order: row by row */
    struct jpeg_huffman dc[JPEG_TABLES], ac[JPEG_TABLES];
    int restart_interval; /* in MCUs; 0: none */
};

/* The place in natural order of each coefficient in zigzag order (T.81, figure A.6). */
#define JPEG_NATURAL_ORDER                                                                                             \
    {                                                                                                                  \
        0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14,  \
            21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46,    \
            53, 60, 61, 54, 47, 55, 62, 63                                                                             \
    }

/* Fill what follows from width, height, components, horizontal and vertical: the parts but their tables, and the MCUs. */
static inline void jpeg_layout_derive(struct jpeg_layout *layout)
{
    const int mcu_width = JPEG_SIDE * layout->horizontal, mcu_height = JPEG_SIDE * layout->vertical;
    layout->mcus_across = (layout->width + mcu_width - 1) / mcu_width;
    layout->mcus_down = (layout->height + mcu_height - 1) / mcu_height;
    layout->mcu_blocks = 0;
    for (int i = 0; i < layout->components; i++) {
        struct jpeg_part *part = &layout->parts[i];
        part->horizontal = i == 0 ? layout->horizontal : 1;
        part->vertical = i == 0 ? layout->vertical : 1;
        part->width = (layout->width * part->horizontal + layout->horizontal - 1) / layout->horizontal;
        part->height = (layout->height * part->vertical + layout->vertical - 1) / layout->vertical;
        part->blocks_across = layout->mcus_across * part->horizontal;
        part->blocks_down = layout->mcus_down * part->vertical;
        for (int j = 0; j < part->horizontal * part->vertical; j++)
            layout->mcu_parts[layout->mcu_blocks++] = (uint8_t)i;
    }
}

#endif
