/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of png.h: opening and closing its buffers. */
#include "png/workspace.cuh"

#include <stdlib.h>

bool device_png_open(struct device *device, struct device_png **opened, struct error *error)
{
    struct device_png *png = (struct device_png *)calloc(1, sizeof *png);
    *opened = png;
    if (!png)
        return error_no_memory(error, "the PNG codec of a GPU");
    png->device = device;
    png->encoder.result.is_locked = png->encoder.data.is_locked = true;
    png->decoder.result.is_locked = png->decoder.data.is_locked = true;
    return true;
}

void device_png_close(struct device_png *png)
{
    if (!png)
        return;
    struct png_encoder *encoder = &png->encoder;
    struct png_decoder *decoder = &png->decoder;
    struct workspace *const buffers[] = {&encoder->filtered, &encoder->sums,    &encoder->block_list, &encoder->ends,
                                         &encoder->stream,   &encoder->result,  &encoder->data,       &decoder->data,
                                         &decoder->result,   &decoder->stream,  &decoder->rows,       &decoder->sums,
                                         &decoder->layout,   &decoder->progress};
    for (struct workspace *buffer : buffers)
        device_release(png->device, buffer);
    inflate_release(png->device, &decoder->inflation);
    free(png);
}
