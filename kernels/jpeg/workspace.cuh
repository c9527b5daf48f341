/* SPDX-License-Identifier: MIT
 *
 * The buffers of JPEG on a GPU. jpeg.cu makes and releases them; the encoder and the decoder have their own. */
#ifndef GPUCONV_JPEG_WORKSPACE_CUH
#define GPUCONV_JPEG_WORKSPACE_CUH

#include "kernels/jpeg/jpeg.h"
#include "kernels/shared/conv.cuh"

/* Memory that grows: of the device, aligned to 512 bytes, or page-locked memory of the host. */
struct jpeg_buffer {
    uint8_t *bytes;
    size_t size;
    bool is_locked;
};

struct jpeg_encoder {
    struct jpeg_buffer coefficients; /* of all blocks in the order of the scan */
    struct jpeg_buffer scan;         /* the data of the scan, with and without stuffed bytes */
    struct jpeg_buffer counts;       /* sums by part of the scan, and how long it is */
    struct jpeg_buffer data;         /* page-locked: the downloaded data of the scan */
    struct jpeg_buffer sizes;        /* page-locked: how long they are */
};

struct jpeg_decoder {
    struct jpeg_buffer data, starts; /* page-locked: what device_jpeg_reserve gives */
};

struct device_jpeg {
    struct device *device;
    struct jpeg_encoder encoder;
    struct jpeg_decoder decoder;
};

/* Make BUFFER at least SIZE bytes long. What it held is lost if it grows, which waits for the kernels that use it.
 * (jpeg.cu) */
bool jpeg_buffer_reserve(struct device_jpeg *jpeg, struct jpeg_buffer *buffer, size_t size, struct error *error);

#endif
