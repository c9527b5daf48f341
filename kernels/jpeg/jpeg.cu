/* SPDX-License-Identifier: MIT
 *
 * The buffers of JPEG on a GPU. */
#include "kernels/jpeg/workspace.cuh"

#include <stdlib.h>

static void release(struct device_jpeg *jpeg, struct jpeg_buffer *buffer)
{
    if (buffer->is_locked)
        device_release_locked(jpeg->device, buffer->bytes);
    else
        device_release(jpeg->device, buffer->bytes);
    buffer->bytes = NULL;
    buffer->size = 0;
}

bool jpeg_buffer_reserve(struct device_jpeg *jpeg, struct jpeg_buffer *buffer, size_t size, struct error *error)
{
    if (size <= buffer->size)
        return true;
    /* An eighth more, because the next image may be a little larger. */
    const size_t more = size + size / 8;
    if (!device_wait(jpeg->device, error))
        return false;
    release(jpeg, buffer);
    void *bytes;
    if (!(buffer->is_locked ? device_allocate_locked(jpeg->device, more, &bytes, error)
                            : device_allocate(jpeg->device, more, &bytes, error)))
        return false;
    buffer->bytes = (uint8_t *)bytes;
    buffer->size = more;
    return true;
}

bool device_jpeg_open(struct device *device, struct device_jpeg **opened, struct error *error)
{
    *opened = NULL;
    struct device_jpeg *jpeg = (struct device_jpeg *)calloc(1, sizeof *jpeg);
    if (!jpeg)
        return error_set(error, ERROR_MEMORY, "not enough memory; close other programs");
    jpeg->device = device;
    jpeg->encoder.tables_sent.is_locked = jpeg->encoder.scan_size.is_locked = jpeg->encoder.data.is_locked = true;
    jpeg->decoder.data.is_locked = jpeg->decoder.result.is_locked = true;
    *opened = jpeg;
    return true;
}

void device_jpeg_close(struct device_jpeg *jpeg)
{
    if (!jpeg)
        return;
    struct encoder *encoder = &jpeg->encoder;
    struct decoder *decoder = &jpeg->decoder;
    struct jpeg_buffer *const buffers[] = {&encoder->tables, &encoder->tables_sent,  &encoder->words,
                                           &encoder->scan,   &encoder->scan_size,    &encoder->data,
                                           &decoder->data,   &decoder->result,       &decoder->upload,
                                           &decoder->work,   &decoder->coefficients, &decoder->samples};
    for (struct jpeg_buffer *buffer : buffers)
        release(jpeg, buffer);
    free(jpeg);
}
