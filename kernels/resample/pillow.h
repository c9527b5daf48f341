/* SPDX-License-Identifier: MIT
 *
 * Pillow's rule on a GPU: planes of the variant `resample`, and tables of pictures of any sizes, many by one launch.
 * Our own rule has such tables, too. */
#ifndef GPUCONV_RESAMPLE_PILLOW_H
#define GPUCONV_RESAMPLE_PILLOW_H

#include "kernels/device/device.h"
#include "plan/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One axis, in device memory: the first inputs of all outputs, the numbers of their taps, then the first taps of all
 * outputs, their second taps, and so on. */
struct pillow_pass {
    const int32_t *words;
    int outputs;
    int shift; /* bits that a sum has below what the pass makes */
};

/* A picture whose levels are of 8 bits, or planes of these or of levels of 16 bits. Strides are in bytes. */
struct pillow_picture {
    const uint8_t *in;
    uint8_t *out;
    ptrdiff_t in_row, in_pixel, out_row, out_pixel; /* below 0 if the picture is mirrored */
    size_t in_channel, out_channel;                 /* the first is 0 if grey becomes RGB, and both if it stays grey */
    int width, height;                              /* pixels of OUT, which all get a level */
    int x, y; /* the pixel of OUT that is the first of the outputs; they may lie partly beside it */
    struct pillow_pass rows, columns;
    bool rows_first;             /* resample_rows_first */
    int tile_width, tile_height; /* see pillow_tiles */
};

/* What levels become in a tensor. */
struct pillow_levels {
    uint8_t samples[3][256][sizeof(float)]; /* the sample of each level, as it is stored */
    uint8_t outside[3];                     /* the level of OUT beside the outputs */
    int bytes;                              /* bytes that a stored sample has */
};

/* The pictures of a launch, in device memory, and what the launch needs. */
struct pillow_table {
    const struct pillow_picture *pictures;
    const struct pillow_levels *levels; /* NULL if OUT gets the levels, and has none beside the outputs */
    bool is_pillow;                     /* by Pillow's rule, else by ours */
    unsigned tiles;                     /* tiles of the picture that has most */
    size_t shared;                      /* the most bytes of shared memory */
};

/* Queue the resizing of the COUNT pictures of TABLE, of 3 channels. */
bool pillow_launch(struct device *device, const struct pillow_table *table, size_t count, struct error *error);

/* As resample_prepare and resample_launch, for a filter with a kernel of Pillow. */
bool pillow_prepare_planes(struct plan *plan, struct device *device, struct error *error);
bool pillow_launch_planes(const struct plan *plan, struct device *device, const struct plane *in,
                          const struct plane *out, struct error *error);

#ifdef __cplusplus
}
#endif

/* ---- Layouts ---- */

#define PILLOW_SHARED_MAX ((size_t)3 * PILLOW_TAPS_MAX) /* bytes, 48 KiB: the inputs of one output of 3 channels */
#define PILLOW_OWN_MAX 4096 /* the longest side by our own rule, whose first pass makes two bytes a channel */

/* Inputs that SIDE neighbouring outputs of an axis read, at most: those between their middles, and those in reach. */
static inline size_t pillow_inputs(const struct resample_axis *axis, int side)
{
    if (side == 1)
        return (size_t)axis->count;
    const int64_t between = (int64_t)(side - 1) * axis->from / axis->to;
    const int64_t inputs = between + (int64_t)axis->longest * axis->reach / axis->to + 3;
    return (size_t)(inputs < axis->from ? inputs : axis->from);
}

/* Words of an axis whose taps are made: see struct pillow_pass. */
static inline size_t pillow_words(const struct resample_axis *axis)
{
    return (size_t)axis->made * (size_t)(axis->count + 2);
}

/* By our own rule, inputs outside the picture are those at its edge, which gets their taps. */
static inline void pillow_pack(const struct resample_axis *axis, int32_t *words)
{
    const size_t made = (size_t)axis->made, count = (size_t)axis->count;
    for (size_t i = 0; i < made; i++) {
        const int first = resample_first(axis, axis->first + (int)i), last = resample_last(axis, axis->first + (int)i);
        const int32_t *taps = axis->taps + i % (size_t)axis->period * count;
        int32_t *to = words + 2 * made + i;
        words[i] = first > 0 ? first : 0;
        words[made + i] = (last < axis->from ? last : axis->from - 1) - words[i] + 1;
        for (size_t k = 0; k < count; k++)
            to[k * made] = 0;
        for (int k = 0; k <= last - first; k++) {
            const int at = first + k < axis->from ? first + k - words[i] : words[made + i] - 1;
            to[(size_t)(at > 0 ? at : 0) * made] += taps[k];
        }
    }
}

/* The number of tiles of a picture. */
static inline unsigned pillow_tile_count(const struct pillow_picture *picture)
{
    return (unsigned)((picture->width - 1) / picture->tile_width + 1) *
           (unsigned)((picture->height - 1) / picture->tile_height + 1);
}

/* Set the tiles of PICTURE, whose axes are COLUMNS and ROWS, so that the first pass of a tile fits in shared memory. It
 * makes PIXEL_BYTES of a pixel. COUNT pictures or planes are resized at once: where they are few, tiles are smaller, as
 * a GPU needs some 1000 blocks. Returns the bytes of the first pass. One output always fits: see PILLOW_TAPS_MAX and
 * PILLOW_OWN_MAX. */
static inline size_t pillow_tiles(struct pillow_picture *picture, const struct resample_axis *columns,
                                  const struct resample_axis *rows, size_t pixel_bytes, size_t count)
{
    static const int sizes[][2] = {{32, 32}, {32, 16}, {32, 8}, {16, 8}, {8, 8}, {8, 4}, {4, 4}, {2, 2}, {1, 1}};
    size_t bytes = 0;
    for (int i = 0; i < 3 || bytes > PILLOW_SHARED_MAX; i++) {
        const int width = picture->tile_width = sizes[i][0], height = picture->tile_height = sizes[i][1];
        bytes = pixel_bytes * (picture->rows_first ? pillow_inputs(columns, height) * (size_t)width
                                                   : pillow_inputs(rows, width) * (size_t)height);
        if (bytes <= PILLOW_SHARED_MAX && pillow_tile_count(picture) * count >= 1000)
            break;
    }
    return bytes;
}

#endif
