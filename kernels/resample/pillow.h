/* SPDX-License-Identifier: MIT
 *
 * Pillow's rule on a GPU: planes of the variant `resample`, and the pictures of a tensor, many by one launch. */
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
    int outputs, taps; /* taps: of the output that has most */
};

/* A picture whose levels are of 8 bits, or planes of these or of levels of 16 bits. Strides are in bytes. */
struct pillow_picture {
    const uint8_t *in;
    uint8_t *out;
    size_t in_row, in_pixel, in_channel, out_row, out_pixel, out_channel; /* in_channel is 0 if grey becomes RGB */
    int width, height;                                                    /* pixels of OUT, which all get a level */
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

/* Words of an axis whose taps are made, and those words. */
size_t pillow_words(const struct resample_axis *axis);
void pillow_pack(const struct resample_axis *axis, int32_t *words);

/* Set the tiles of PICTURE, whose axes are COLUMNS and ROWS, so that the first pass of a tile with CHANNELS fits in
 * shared memory. Returns its bytes, or 0 if one output needs more than there is. */
size_t pillow_tiles(struct pillow_picture *picture, const struct resample_axis *columns,
                    const struct resample_axis *rows, int channels);

/* Queue the resizing of COUNT pictures of 3 channels to tensors. PICTURES and LEVELS are in device memory. TILES is the
 * most tiles of a picture, and SHARED the most bytes of shared memory. */
bool pillow_launch(struct device *device, const struct pillow_picture *pictures, size_t count,
                   const struct pillow_levels *levels, unsigned tiles, size_t shared, struct error *error);

/* As resample_prepare and resample_launch, for a filter with a kernel of Pillow. */
bool pillow_prepare_planes(struct plan *plan, struct device *device, struct error *error);
bool pillow_launch_planes(const struct plan *plan, struct device *device, const struct plane *in,
                          const struct plane *out, struct error *error);

#ifdef __cplusplus
}
#endif

/* The number of tiles of a picture. */
static inline unsigned pillow_tile_count(const struct pillow_picture *picture)
{
    return (unsigned)((picture->width - 1) / picture->tile_width + 1) *
           (unsigned)((picture->height - 1) / picture->tile_height + 1);
}

#endif
