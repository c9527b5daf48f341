/* SPDX-License-Identifier: MIT
 *
 * The GPU's half of jpeg.h: opening and closing its buffers. */
#include "jpeg/workspace.cuh"

#include <stdlib.h>

bool device_jpeg_open(struct device *device, int mark, struct device_jpeg **opened, struct error *error)
{
    struct device_jpeg *jpeg = (struct device_jpeg *)calloc(1, sizeof *jpeg);
    *opened = jpeg;
    if (!jpeg)
        return error_no_memory(error, "the JPEG codec of a GPU");
    jpeg->device = device;
    jpeg->mark = mark;
    jpeg->encoder.sent.is_locked = jpeg->encoder.scan_sizes.is_locked = jpeg->encoder.data.is_locked = true;
    jpeg->decoder.data.is_locked = jpeg->decoder.result.is_locked = true;
    return true;
}

void device_jpeg_close(struct device_jpeg *jpeg)
{
    if (!jpeg)
        return;
    struct encoder *encoder = &jpeg->encoder;
    struct decoder *decoder = &jpeg->decoder;
    struct workspace *const buffers[] = {&encoder->sent,  &encoder->pictures,     &encoder->words,
                                         &encoder->scans, &encoder->scan_sizes,   &encoder->data,
                                         &decoder->data,  &decoder->result,       &decoder->upload,
                                         &decoder->work,  &decoder->coefficients, &decoder->samples};
    for (struct workspace *buffer : buffers)
        device_release(jpeg->device, buffer);
    free(decoder->loaded);
    free(encoder->capacities);
    free(jpeg);
}
