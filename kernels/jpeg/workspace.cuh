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
    struct jpeg_layout layout; /* what was queued last */
    struct image image;
    struct jpeg_buffer tables;      /* codes and divisors */
    struct jpeg_buffer tables_sent; /* page-locked: what was uploaded there */
    struct jpeg_buffer words;       /* sums over tiles */
    struct jpeg_buffer scan;        /* the data of the scan */
    struct jpeg_buffer scan_size;   /* page-locked: how long they are, written by the kernel */
    struct jpeg_buffer data;        /* page-locked: the downloaded data */
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
